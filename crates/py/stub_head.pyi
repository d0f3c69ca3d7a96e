"""The compiled core. Everything numeric happens there; see the modules of this package for use."""

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
"""In the columns `source_port` and `destination_port`: beside a circuit switch."""
CONVERTED: int
"""In the column `wavelength`: converters choose it link by link."""

class OpticollError(ValueError):
    """Base of all errors of opticoll."""

    field: tuple[str | int, ...]
    """The argument at fault; set by `opticoll.compare` only."""
    hint: ClassVar[str | None]
    """What helps after an error of this kind, where the message does not say it all."""

class UnitError(OpticollError): ...

class FabricError(OpticollError):
    option: str | None
    """The option at fault, if it is one."""

class CollectiveError(OpticollError): ...
class AlgorithmError(OpticollError): ...
class ScheduleError(OpticollError): ...
class WavelengthError(OpticollError): ...
class PlanFileError(OpticollError): ...
class ProgramError(OpticollError): ...

class SimulationError(OpticollError):
    setting: str | None
    """The setting at fault, if it is one."""

class MemoryLimitError(OpticollError): ...
class TraceError(OpticollError): ...
class TrainingError(OpticollError): ...

class OptionEntry(TypedDict):
    """An option of a record, or something else that is said of it under a name."""

    name: str
    meaning: str
    unit: str | None
    range: str | None  # values, in words
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
    collective: str | None  # of an algorithm, else None
    by_size: bool  # whether an algorithm's plans depend on the size and the policy
    family: str | None  # the only family of fabrics that an algorithm is for; None is any

class Drawing(TypedDict, total=False):
    """How a fabric is drawn; what its family has of it."""

    places: NDArray[np.float64]  # a row a vertex, ranks first: x to the right, y upwards
    around: NDArray[np.uint32]  # links that lead from one side of the picture to the other
    nodes: NDArray[np.uint32]  # by rank, the node of a grid of switches
    dark: list[tuple[int, int]]  # ranks, and the planes in which no light reaches them

class OptionValue(TypedDict):
    """An option of a fabric."""

    value: int | str
    unit: str
    meaning: str

class FieldRecord(TypedDict):
    """A total of an outcome, or a column of a table."""

    name: str
    unit: str
    meaning: str

class CollectiveCost(TypedDict):
    """What a collective costs, and how that was found; parts of the time are within it."""

    time_ps: int
    reconfiguration_ps: int
    control_ps: int
    simulator: str
    policy: str | None
    start: str | None

class FittingGroups(TypedDict):
    """Groups and sharding that fit a device."""

    tensor: int
    pipeline: int
    expert: int
    sharded: int
    micro_batches: int
    total_bytes: int

class GroupCollectiveRecord(TypedDict):
    """A collective of groups of a kind; `collective` is None for a message between stages."""

    group: str
    collective: str | None
    ranks: int
    size_bytes: int
    count: int
    layer: int | None
    back: bool
