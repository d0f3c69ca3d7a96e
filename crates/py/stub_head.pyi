"""The compiled core, which does all numerical work; the package `opticoll` exports its classes."""

from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, TypedDict, Unpack, final

import networkx
import numpy as np
import pandas
from matplotlib.axes import Axes
from numpy.typing import NDArray

from opticoll.commands.run import RunRow

__version__: str
BESIDE: int
"""Value of `source_port` and `destination_port` for a message that does not use the switch."""
CONVERTED: int
"""Value of `wavelength` if converters choose a wavelength on each link."""

class OpticollError(ValueError):
    """Base class of all errors of opticoll."""

    field: tuple[str | int, ...]
    """Path to the wrong argument; only `opticoll.compare` sets it."""
    hint: ClassVar[str | None]
    """Remedy for errors of this class whose messages name none, or None."""

class UnitError(OpticollError): ...

class FabricError(OpticollError):
    option: str | None
    """The wrong option, or None."""

class CollectiveError(OpticollError): ...
class AlgorithmError(OpticollError): ...
class ScheduleError(OpticollError): ...
class WavelengthError(OpticollError): ...
class PlanFileError(OpticollError): ...
class ProgramError(OpticollError): ...

class SimulationError(OpticollError):
    setting: str | None
    """The wrong setting, or None."""

class MemoryLimitError(OpticollError): ...
class TraceError(OpticollError): ...
class TrainingError(OpticollError): ...

class OptionEntry(TypedDict):
    """An option of a record, or another fact on the record, by name."""

    name: str
    meaning: str
    unit: str | None
    range: str | None  # possible values, in words
    default: str | None
    required: bool
    source: str | None

class Record(TypedDict):
    """One entry of `list`: an algorithm, fabric family, preset, simulator, policy or assignment."""

    name: str
    label: str
    summary: str
    citation: str
    options: list[OptionEntry]
    collective: str | None  # only for algorithms
    depends_on_size: bool  # True if plans of an algorithm depend on size and policy
    family: str | None  # only family that an algorithm supports; None: all families

class Drawing(TypedDict, total=False):
    """Positions at which a fabric is drawn; a family has some of these entries."""

    places: NDArray[np.float64]  # (x, y) of each vertex, ranks first; x to the right, y upwards
    around: NDArray[np.uint32]  # links between opposite edges of the figure
    nodes: NDArray[np.uint32]  # node of each rank in a grid of switches
    dark: list[tuple[int, int]]  # (rank, plane) if no light of the plane reaches the rank

class PassedLoss(TypedDict):
    """Part of the loss of light."""

    what: str
    count: int
    loss_db: float

class LossBudget(TypedDict):
    """Powers and losses of the light of a transfer."""

    transfer: int
    launch_power_dbm: float
    sensitivity_dbm: float
    losses: list[PassedLoss]
    margin_db: float
    osnr_db: float | None  # None if the fabric states no noise

class OptionValue(TypedDict):
    """Value of a fabric's option, with its unit and its meaning."""

    value: int | str
    unit: str
    meaning: str

class FieldRecord(TypedDict):
    """Description of a total of an outcome, or of a column of a table."""

    name: str
    unit: str
    meaning: str

class CollectiveCost(TypedDict):
    """Cost of a collective, and settings of the simulation; `time_ps` includes the other times.

    `passed` is what `Plan.passed_parts` returns.
    """

    time_ps: int
    reconfiguration_ps: int
    control_ps: int
    simulator: str
    policy: str | None
    start: str | None
    reconfigurations: int
    passed: tuple[list[tuple[str, str, int | None, int | None, int]], int | None]

class FittingGroups(TypedDict):
    """Ranks per group, and a sharding, with which a model fits a device."""

    tensor: int
    context: int
    pipeline: int
    expert: int
    sharded: int
    micro_batches: int
    total_bytes: int

class ExpertLayer(TypedDict):
    """Layer of experts in a micro-batch; times and tokens of a chunk, by expert-parallel rank."""

    forward_ps: list[int]
    backward_ps: list[int]
    received: list[int]
    least_received: int
    hosts: list[list[int]]

class GroupCollectiveRecord(TypedDict):
    """Collective of one kind of groups; `collective` is None for a message between stages."""

    group: str
    collective: str | None
    ranks: int
    size_bytes: int
    count: int
    layer: int | None
    micro_batch: int | None
    back: bool
