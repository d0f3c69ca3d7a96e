"""opticoll plans, proves and simulates collective communication on optical interconnects.

>>> import opticoll
>>> fabric = opticoll.Fabric("wdm_ring:ranks=16,wavelengths=2,rate=40Gb/s,reconfiguration=25us")
>>> plan = opticoll.plan("all_gather", fabric, "optree:radices=4x4")
>>> plan.slots, plan.verify()
(12, [])
>>> opticoll.format_time(plan.simulate(opticoll.parse_size("4MiB"), policy="every_step").time_ps)
'10.3663296ms'

Sizes are texts with a unit (`4MiB`), or whole numbers of bytes. Names are the same in Python and on
the command line. Importing this package imports only the compiled core.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from opticoll import _core, errors
from opticoll._core import (
    Collective,
    Demand,
    Fabric,
    OpticollError,
    Outcome,
    Plan,
    Program,
    Schedule,
    Table,
    Trace,
    TrainingModel,
    Violation,
    format_size,
    format_time,
    interrupt_all,
    parse_size,
    parse_time,
    set_memory_limit,
)
from opticoll.interface.files import (
    read_fabric,
    read_plan,
    read_program,
    read_trace,
    write_csv,
    write_plan,
)
from opticoll.interface.graphs import METHODS as _METHODS
from opticoll.interface.networks import bursts, congestion, traffic
from opticoll.interface.planning import bound, compare, measure, plan, records, replan, tasks
from opticoll.interface.programs import replay, train

if TYPE_CHECKING:
    from opticoll.study.interface import results, sweep

__version__: str = _core.__version__

for _kind, _methods in _METHODS.items():
    for _method in _methods:
        setattr(_kind, _method.__name__, _method)

__all__ = [
    "Collective",
    "Demand",
    "Fabric",
    "OpticollError",
    "Outcome",
    "Plan",
    "Program",
    "Schedule",
    "Table",
    "Trace",
    "TrainingModel",
    "Violation",
    "__version__",
    "bound",
    "bursts",
    "compare",
    "congestion",
    "errors",
    "format_size",
    "format_time",
    "interrupt_all",
    "measure",
    "parse_size",
    "parse_time",
    "plan",
    "read_fabric",
    "read_plan",
    "read_program",
    "read_trace",
    "records",
    "replan",
    "replay",
    "results",
    "set_memory_limit",
    "sweep",
    "tasks",
    "traffic",
    "train",
    "write_csv",
    "write_plan",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Returns `results` or `sweep`, and imports the functions' module on first use."""
    if name not in ("results", "sweep"):
        raise AttributeError(f"module `opticoll` has no attribute `{name}`")
    return getattr(import_module("opticoll.study.interface"), name)
