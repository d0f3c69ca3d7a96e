"""The compiled core, which does all numerical work; the package `opticoll` exports its classes."""

from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, TypedDict, Unpack, final

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

class Settings(TypedDict, total=False):
    """A simulator and its settings as text; None selects the default."""

    simulator: str | None
    policy: str | None
    paths: str | None
    start: str | None
    weights: str | None
    endpoint: str | None
    background: str | None
    link_bin: str | None
    step_overhead: str | None
    protocol: str | None
    routing: str | None
    packet: str | None
    chunk: str | None
    buffers: str | None
    router_delay: str | None
    router_delay_rule: str | None
    credit_delay: str | None
    arbitration: str | None
    small_delays: str | None
    jitter: str | None
    routing_seed: str | None
    virtual_channels: str | None
    cores: str | None
    issue: str | None
    overhead: str | None
    placement: str | None

@final
class Collective:
    """A collective operation, which determines the rank that has each chunk at the start, and the rank
    that needs it at the end.

    A **chunk** is the unit that transfers move. The collective has one block per rank, one block
    per pair of ranks, or a single vector. Each block (or the vector) is cut into `pieces` chunks.

    Parameters
    ----------
    kind : str
        The name, such as `all_gather` (see `opticoll list collectives`).
    ranks : int
        Number of ranks.
    root : int
        The root rank of broadcast, reduce, gather and scatter; 0 for other collectives.
    pieces : int
        Number of chunks into which each block is cut.
    demand : Demand, optional
        The bytes of each block of an all_to_all (default: equal blocks).

    Raises
    ------
    CollectiveError
        The name is unknown, or a number is out of range.

    Examples
    --------
    >>> import opticoll
    >>> collective = opticoll.Collective("reduce", 8, root=3, pieces=2)
    >>> collective
    Collective('reduce', 8, root=3, pieces=2)
    >>> collective.kind, collective.ranks, collective.root, collective.pieces
    ('reduce', 8, 3, 2)
    >>> collective.chunks, collective.combines, collective.size_convention
    (2, True, 'bytes of the vector')
    >>> demand = opticoll.Demand([[0, 3], [1, 0]])
    >>> opticoll.Collective("all_to_all", 2, demand=demand).demand.amounts
    [[0, 3], [1, 0]]
    """
    def __copy__(self) -> Collective: ...
    def __deepcopy__(self, memo: Any, /) -> Collective: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __getnewargs_ex__(self) -> tuple[tuple[str, int], dict[str, Any]]: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(
        cls, kind: str, ranks: int, *, root: int = 0, pieces: int = 1, demand: Demand | None = None
    ) -> Collective: ...
    def __repr__(self) -> str: ...
    def after(self, chunk: int) -> int | None:
        """Returns the rank that needs a chunk at the end, or None for all ranks.

        Parameters
        ----------
        chunk : int
            The chunk, from 0 to `chunks` - 1.

        Raises
        ------
        IndexError
            The chunk does not exist.

        Examples
        --------
        >>> import opticoll
        >>> opticoll.Collective("scatter", 8, root=2).after(5)
        5
        """
    def before(self, chunk: int) -> int | None:
        """Returns the rank that has a chunk at the start, or None for all ranks.

        Parameters
        ----------
        chunk : int
            The chunk, from 0 to `chunks` - 1.

        Raises
        ------
        IndexError
            The chunk does not exist.

        Examples
        --------
        >>> import opticoll
        >>> opticoll.Collective("scatter", 8, root=2).before(5)
        2
        """
    @property
    def chunks(self) -> int:
        """The number of chunks."""
    @property
    def combines(self) -> bool:
        """True if the collective reduces chunks, as reduce, reduce_scatter and all_reduce do."""
    @property
    def demand(self) -> Demand | None:
        """The bytes of each block of an all_to_all; None if all blocks, including a rank's own, are
        equal.
        """
    @property
    def kind(self) -> str:
        """The name of the collective, such as `all_gather`."""
    @property
    def pieces(self) -> int:
        """The number of chunks into which each block is cut."""
    @property
    def ranks(self) -> int:
        """The number of ranks."""
    @property
    def root(self) -> int:
        """The root rank; 0 for collectives without a root."""
    @property
    def size_convention(self) -> str:
        """The quantity that the size of this collective counts, in words."""

@final
class Demand:
    """The bytes that each rank sends to each other rank in an all_to_all.

    If the collective has another size than `largest`, all amounts are scaled in proportion.

    Parameters
    ----------
    amounts : list of list of int
        One row for each source, with the bytes for each destination.

    Raises
    ------
    CollectiveError
        The rows do not form a square matrix, or all amounts are zero.

    Examples
    --------
    >>> import opticoll
    >>> demand = opticoll.Demand([[0, 300, 100], [0, 0, 200], [50, 0, 0]])
    >>> demand
    <Demand of 3 ranks, 400 bytes of one rank at most>
    >>> demand.ranks, demand.largest, demand.amounts[0], demand.even_block
    (3, 400, [0, 300, 100], None)
    """
    def __copy__(self) -> Demand: ...
    def __deepcopy__(self, memo: Any, /) -> Demand: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __getnewargs__(self) -> tuple[list[list[int]]]: ...
    def __hash__(self) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, amounts: list[list[int]]) -> Demand: ...
    def __repr__(self) -> str: ...
    @property
    def amounts(self) -> list[list[int]]:
        """The bytes from each source to each destination, one row per source."""
    @property
    def even_block(self) -> int | None:
        """The bytes for each pair of different ranks if all pairs have the same amount; None if blocks
        differ.
        """
    @property
    def largest(self) -> int:
        """The largest number of bytes that a rank sends, including bytes to itself.

        For a collective of this size, the amounts are not scaled.
        """
    @property
    def ranks(self) -> int:
        """The number of ranks."""

@final
class DeviceWork:
    """Work whose time a device tells, such as one pass of some operators."""
    @staticmethod
    def product(m: int, n: int, k: int) -> DeviceWork:
        """Returns the product of an m x k by a k x n matrix in 16 bits."""
    def seconds(self, device: str) -> float:
        """Returns the seconds of the work on a device such as `h100`. Raises TrainingError if the
        device is unknown, or has an efficiency in place of the times of operators.
        """

@final
class EventTable:
    """A table of the ranks' calls, to which batches of rows are appended."""
    def __new__(cls, ranks: int | None, communicators: dict[int, list[int]]) -> EventTable: ...
    def extend(
        self,
        names: list[str],
        call: NDArray[np.uint32],
        numbers: list[NDArray[np.uint64]],
        sizes: list[tuple[int, list[int]]],
    ) -> None:
        """Appends rows. `names` are the names of calls, and `call` has the index in `names` of each
        row's call. `numbers` has eight columns with one number per row.

        The columns are rank, peer, send_bytes, recv_bytes, tag, comm, req and compute_ns; 2^64 - 1
        stands for a missing number. `sizes` has (row, bytes for each member) for each Alltoallv.
        Raises TraceError, which names the row.
        """
    def finish(self) -> Trace:
        """Returns the trace of all rows, and empties the table. Raises TraceError."""

@final
class Fabric:
    """A network: a family, such as `wdm_ring` or `dragonfly`, and its options.

    Fabrics with equal specifications are equal. They can be pickled and used as keys of a
    dictionary.

    Parameters
    ----------
    spec : str
        A specification such as `wdm_ring:ranks=16,wavelengths=2`, or the name of a family or preset
        (see `opticoll list fabrics` for the options of each family with units and defaults).
    options : int or str
        Options by name, which replace options in the specification; rates and times are text with a
        unit.

    Raises
    ------
    FabricError
        The family or an option is unknown, a value is out of range, or an option is missing. The
        attribute `option` names the option.

    Examples
    --------
    >>> import opticoll
    >>> ring = opticoll.Fabric("wdm_ring:ranks=16,wavelengths=2", rate="25Gb/s")
    >>> ring.spec
    'wdm_ring:ranks=16,wavelengths=2,fibres=1,rate=25Gb/s,reconfiguration=25us'
    >>> ring.family, ring.ranks, ring.electrical
    ('wdm_ring', 16, False)
    >>> ring.accelerator, opticoll.Fabric("dgx_h100").accelerator
    (None, 'h100')
    >>> opticoll.Fabric("circuit_switch:ranks=4,ports=2").circuit_ports
    2
    >>> opticoll.Fabric("dgx_h100:boxes=2").group_size
    8
    >>> ring.simulator, ring.policy, ring.injection_bandwidth
    ('circuit', 'every_step', 100000000000)
    >>> ring.words.split(", ")[:3]
    ['16 ranks', '1 fibre per direction', '2 wavelengths per fibre']
    >>> ring.options["rate"]["value"], ring.options["rate"]["unit"]
    (25000000000, 'bit/s')
    >>> ring.light_fields
    {'direction': ['cw', 'ccw'], 'fibre': [], 'wavelength': []}
    >>> star = opticoll.Fabric("crossbar:ranks=2")
    >>> star.link_count, star.link_names[:2]
    (4, ['rank 0 -> switch', 'switch -> rank 0'])
    >>> opticoll.Fabric("crossbar:ranks=2,in_network=reduce").switch_work
    ['reduce']
    >>> star.link_rates[0], star.link_ends
    (100000000000, [(0, 2), (2, 0), (1, 2), (2, 1)])
    >>> star.bill[-1]
    ('packet_switch', '', 100000000000, 2, 1)
    >>> opticoll.Fabric("crossbar:ranks=2,latency=1us").latency_ps
    2000000
    >>> star.drawing["places"].shape
    (3, 2)
    """
    def __copy__(self) -> Fabric: ...
    def __deepcopy__(self, memo: Any, /) -> Fabric: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, spec: str, /, **options: str | int) -> Fabric: ...
    def __reduce__(self) -> tuple[Any, tuple[str]]: ...
    def __repr__(self) -> str: ...
    @property
    def accelerator(self) -> str | None:
        """The name of the accelerator of a rank, such as `h100`; None if the fabric does not state it."""
    def as_custom(self) -> Fabric:
        """Returns an electrical fabric as a fabric of the family `custom`, with the same ranks,
        switches, links and names.

        Routes on the new fabric have the fewest links, as on all custom fabrics. They may differ
        from the routes of this fabric.

        Raises
        ------
        FabricError
            The fabric has neither links that messages share nor a graph of fibres, or more than
            16384 ranks and switches.

        Examples
        --------
        >>> import opticoll
        >>> custom = opticoll.Fabric("crossbar:ranks=2,rate=40Gb/s").as_custom()
        >>> custom.spec.split(",")[:3]
        ['custom:ranks=2', 'switches=1', 'links=0-2@40Gb/s+1-2@40Gb/s']
        """
    @property
    def bill(self) -> list[tuple[str, str, int | None, int | None, int]]:
        """The parts of the fabric, as a list with a tuple for each kind of part.

        A tuple has the component; the place, which is empty if the component has one place only;
        the rate of the part or of each of its ports in bits per second, or None; the number of
        ports of a switch, or None; and the number of parts.
        """
    @property
    def circuit_ports(self) -> int | None:
        """The number of ports of a rank on the `circuit_switch` that joins the ranks, or of a server
        on the one that joins servers; None without such a switch.
        """
    @property
    def drawing(self) -> Drawing:
        """The positions at which figures draw the parts of the fabric: a dictionary with some of these
        entries.

        - `places`: for an electrical fabric, the x (to the right) and y (upwards) of each vertex,
          ranks first; float64 array of shape (vertices, 2).
        - `around`: for an electrical fabric, the links that lead from one side of the picture to
          the other; uint32 array.
        - `nodes`: for a grid of switches, the node of each rank; uint32 array of shape (ranks,).
        - `dark`: for a grid of switches, (rank, plane) for each plane in which no light reaches a
          rank; list.
        """
    @property
    def electrical(self) -> bool:
        """True if messages share links, as on all fabrics without circuits."""
    @property
    def family(self) -> str:
        """The name of the family, such as `wdm_ring`."""
    @staticmethod
    def from_networkx(graph: networkx.Graph) -> Fabric:
        """Returns the fabric of a NetworkX graph, which `to_networkx` or another program made.

        Functions with a parameter `fabric` also accept the graph itself.

        Parameters
        ----------
        graph : networkx.Graph
            The graph. A node is a rank, unless its attribute `kind` is `switch`. Edges may have the
            attributes `rate`, `latency`, `sharing` and `duplex`; the graph may have their defaults. An
            edge of a directed graph leads in one direction only. A graph with the attribute
            `wavelengths` is a graph of fibres.

        Raises
        ------
        ConfigError
            The graph is no valid fabric; the message names the node or edge.
        FabricError
            The value is no graph, or plans do not apply to its fabric.

        Examples
        --------
        >>> import networkx, opticoll
        >>> graph = networkx.star_graph(["switch", "left", "right"])
        >>> graph.nodes["switch"]["kind"] = "switch"
        >>> graph.edges["switch", "right"]["rate"] = "40Gb/s"
        >>> fabric = opticoll.Fabric.from_networkx(graph)
        >>> fabric.ranks, fabric.link_rates
        (2, [100000000000, 100000000000, 40000000000, 40000000000])
        """
    @property
    def group_size(self) -> int | None:
        """The number of consecutive ranks of a server or group; None if ranks form no groups."""
    @property
    def idle_ranks(self) -> int:
        """The number of vertices, directly after the ranks, that are ranks of the whole fabric, but
        failed (`without`) or take no part (`members`).

        Data or light of other ranks pass them.

        Examples
        --------
        >>> import opticoll
        >>> part = opticoll.Fabric("wdm_line:ranks=3,wavelengths=1,without=1")
        >>> part.ranks, part.idle_ranks, part.vertex_names
        (2, 1, ['rank 0', 'rank 1 (node 2)', 'node 1'])
        """
    @property
    def injection_bandwidth(self) -> int:
        """The rate at which a rank can send on all of its links or transmitters at once, in bits per
        second; the minimum over all ranks.
        """
    @property
    def intact(self) -> Fabric:
        """The fabric as it was before all failures.

        Examples
        --------
        >>> import opticoll
        >>> opticoll.Fabric("torus:dims=4x4", without="rank 5").intact.ranks
        16
        """
    @property
    def latency_ps(self) -> int:
        """The time in picoseconds of a message without bytes from rank 0 to the farthest rank."""
    @property
    def light_fields(self) -> dict[str, list[str]]:
        """The fields of light that each transfer on this fabric has, with the names of their values.

        A field without names has numbers as values. Electrical fabrics have no fields.
        """
    @property
    def link_count(self) -> int:
        """The number of directed links of an electrical fabric or of a graph of fibres; 0 for other
        fabrics.
        """
    @property
    def link_ends(self) -> list[tuple[int, int]] | None:
        """The source and destination of each link of an electrical fabric or of a graph of fibres, as
        a list indexed by link; None if they are unknown.

        Sources and destinations are vertices; ranks have the lowest numbers, and switches follow.
        """
    def link_name(self, link: int) -> str | None:
        """Returns the name of a link of an electrical fabric or of a graph of fibres, or None if there
        is no such link.

        Parameters
        ----------
        link : int
            Number of the link, from 0 to `link_count` - 1.

        Raises
        ------
        OverflowError
            The number is negative or not below 2^32.

        Examples
        --------
        >>> import opticoll
        >>> opticoll.Fabric("torus:dims=4x4").link_name(0)
        'rank 0 -> rank 1'
        """
    @property
    def link_names(self) -> list[str]:
        """The names of the links of an electrical fabric or of a graph of fibres, as a list indexed by
        link.
        """
    @property
    def link_rates(self) -> list[int]:
        """The rates of the links of an electrical fabric, or of the channels of the links of a graph
        of fibres, in bits per second, as a list indexed by link.
        """
    def option(self, name: str) -> Any:
        """Returns the value of an option, or None if the option is not set.

        Times are in picoseconds, rates in bits per second.

        Parameters
        ----------
        name : str
            The option, such as `rate`.

        Examples
        --------
        >>> import opticoll
        >>> opticoll.Fabric("torus:dims=4x4").option("rate")
        100000000000
        """
    @property
    def options(self) -> dict[str, OptionValue]:
        """The options that are set, by name, each with its value, unit and meaning.

        Times are in picoseconds (unit `ps`), rates in bits per second (unit `bit/s`).
        """
    def part(self, members: list[int]) -> Fabric:
        """Returns the part of the fabric that some of its ranks occupy.

        The ranks are renumbered in their order.

        On a fabric with links, the part has these ranks and all links. On a fabric with circuits,
        the part is a smaller fabric of the same family.

        Parameters
        ----------
        members : list of int
            The ranks, in increasing order.

        Raises
        ------
        FabricError
            The fabric has no such part.

        Examples
        --------
        >>> import opticoll
        >>> opticoll.Fabric("torus:dims=4x4").part([0, 4, 8]).ranks
        3
        """
    @property
    def policy(self) -> str | None:
        """The default policy, which defines the reconfigurations that cost time; None on an electrical
        fabric.
        """
    @property
    def ranks(self) -> int:
        """The number of ranks."""
    def route(self, source: int, destination: int) -> list[int]:
        """Returns the links of a message between two ranks of an electrical fabric: a list of link
        numbers, in order.

        Parameters
        ----------
        source : int
            Rank that sends.
        destination : int
            Rank that receives.

        Raises
        ------
        FabricError
            The fabric is not electrical, or the ranks are equal or do not exist.

        Examples
        --------
        >>> import opticoll
        >>> torus = opticoll.Fabric("torus:dims=4x4")
        >>> [torus.link_name(link) for link in torus.route(0, 5)]
        ['rank 0 -> rank 1', 'rank 1 -> rank 5']
        """
    @property
    def simulator(self) -> str:
        """The name of the simulator that times plans by default."""
    @property
    def spec(self) -> str:
        """The specification with all options that are set, which `Fabric` accepts."""
    @property
    def switch_ports(self) -> int:
        """The number of ports of each circuit switch; 0 if the fabric has no circuit switches."""
    @property
    def switch_work(self) -> list[str]:
        """Work of each switch of an electrical fabric on data that pass: `none`, `multicast`, `reduce`
        or `reduce+multicast`.
        """
    @property
    def switches(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """The circuit switches of a fabric, as a list of (name, pairs of connected ports).

        Only an `ocs_torus` has switches in this list. They are set before a plan starts.

        Examples
        --------
        >>> import opticoll
        >>> torus = opticoll.Fabric("ocs_torus:dims=4x4x8,spares=1")
        >>> len(torus.switches), torus.switch_ports
        (48, 6)
        >>> torus.switches[-1]
        ('switch z 3.3', [('cube 0 +z', 'cube 1 -z'), ('cube 1 +z', 'cube 0 -z')])
        """
    def to_networkx(self) -> networkx.Graph:
        """Returns the ranks, switches and links of an electrical fabric as a NetworkX graph.

        All functions with a parameter `fabric` accept such a graph.

        Nodes have the attribute `kind` (`rank` or `switch`). Edges have the attributes `rate` and
        `latency`. The graph is directed if some links lead in one direction only.

        Raises
        ------
        FabricError
            The fabric has no links that messages share.
        UsageError
            The package `networkx` is not installed.

        Examples
        --------
        >>> import opticoll
        >>> graph = opticoll.Fabric("crossbar:ranks=2,rate=40Gb/s").to_networkx()
        >>> graph.edges["rank 0", "switch"]
        {'rate': '40Gb/s', 'latency': '0s'}
        >>> opticoll.plan("all_reduce", graph, "ring").fabric.family
        'custom'
        """
    @property
    def vertex_names(self) -> list[str]:
        """The names of the ranks and then of the switches of an electrical fabric or of a graph of
        fibres, as a list; empty for other fabrics.

        Examples
        --------
        >>> import opticoll
        >>> opticoll.Fabric("crossbar:ranks=2").vertex_names
        ['rank 0', 'rank 1', 'switch']
        """
    def with_options(self, **options: str | int) -> Fabric:
        """Returns the same fabric with changed options.

        Parameters
        ----------
        options : int or str
            Options by name; rates and times are text with a unit.

        Raises
        ------
        FabricError
            An option is unknown or a value is out of range.

        Examples
        --------
        >>> import opticoll
        >>> opticoll.Fabric("wdm_ring:ranks=16,wavelengths=2").with_options(ranks=32).ranks
        32
        """
    @property
    def words(self) -> str:
        """Sentence on the components of the fabric."""

@final
class GroupedTraining:
    """An iteration of training whose model is divided among groups of ranks."""
    def __new__(
        cls,
        model: str,
        ranks: int,
        groups: tuple[int, int, int],
        *,
        batch: int,
        micro_batches: int = 1,
        data: int | None = None,
        sharded: int = 0,
        device: str | None = None,
        throughput: str | None = None,
        bytes_per_parameter: int = 4,
        buckets: str = "ddp",
        overlap: bool = True,
        weights: tuple[list[list[list[tuple[int, list[int]]]]], list[int]] | None = None,
        capacity: int | None = None,
        expert_copies: int = 0,
        placement: str = "order",
        expert_chunks: int = 1,
        recompute: str = "none",
        sequence_parallel: bool = False,
        flash: bool = True,
        chunks: int = 1,
        wide_gradients: bool = False,
        context: int = 1,
        context_exchange: str = "ring",
        narrow_dispatch: bool = False,
        overlap_tensor: bool = False,
        overlap_experts: bool = False,
        prefetch: int | None = None,
        fused_loss: bool = False,
    ) -> GroupedTraining:
        """Divides a model among groups of ranks. Raises TrainingError if the numbers contradict each
        other.

        `groups` are the numbers of ranks for tensor, pipeline and expert parallelism. `weights` are
        those of `expert_weights`. `capacity` is the capacity factor in millionths. `placement` is
        `order` or `load`. `recompute` is `none`, `selective` or `full`. `chunks` is the number of
        model chunks of a stage. `context` is the number of ranks that divide the tokens of a
        sample, `context_exchange` is `ring` or `all_to_all`. `prefetch` is the number of units
        whose parameters are gathered ahead.
        """
    @property
    def assignments(self) -> tuple[int, int]:
        """The number of assignments of tokens to experts, and the number of assignments above the
        capacity of experts, summed over all layers and sources.
        """
    @property
    def context(self) -> int:
        """The number of ranks that divide the tokens of a sample."""
    def demand(self, layer: int, back: bool, micro_batch: int = 0) -> list[list[int]]:
        """Returns the bytes from each expert-parallel rank to each other rank in a layer of experts,
        for a chunk of a micro-batch. If `back` is true, the tokens return from the experts.
        """
    def expert_layer(self, layer: int, micro_batch: int = 0) -> ExpertLayer:
        """Returns the times and tokens of the experts of a layer, and the ranks of their copies.

        `received` are the assignments of tokens to the experts of each rank, `least_received` is a
        lower bound on their maximum, and `hosts` are the ranks of each expert. Raises TrainingError
        if there is no such layer.
        """
    @property
    def groups(self) -> tuple[int, int, int, int]:
        """The numbers of ranks of tensor, pipeline, expert and data parallelism."""
    def made_of(self) -> list[GroupCollectiveRecord]:
        """Returns the distinct collectives of an iteration, each with its number of calls: the calls
        of one rank of each stage, added over all stages.

        `collective` is None for a message between stages. `layer` is the layer of an uneven
        exchange, `micro_batch` its first micro-batch, and `back` is True if its tokens return.
        """
    def memory_of_device(self) -> tuple[int, int, int, int, int]:
        """Returns the bytes on a device of the pipeline stage that needs the most memory, for weights,
        gradients, optimizer, activations and working memory.
        """
    @property
    def micro_batches(self) -> int:
        """The number of micro-batches of an iteration."""
    def over(
        self, fabric: str, algorithms: dict[str, str], **settings: Unpack[Settings]
    ) -> Outcome:
        """Simulates an iteration in which all groups use the fabric together. Raises the errors of
        `replay_trace`.
        """
    def that_fit(self, device_bytes: int) -> FittingGroups | None:
        """Returns the groups and sharding that take at most `device_bytes` with the fewest changes, or
        None if there are none.
        """
    @property
    def tokens(self) -> int:
        """The number of tokens of a micro-batch on a rank; 0 if the model has no tokens."""
    def with_times(
        self,
        times_ps: list[int],
        port_sets: list[int] | None = None,
        plans: list[Plan | None] = ...,
        ports: int = 1,
        setup_ps: int = 0,
    ) -> Outcome:
        """Simulates an iteration in which the collectives of `made_of` take the given picoseconds.

        `port_sets` has, for each collective, the index of its set of ports. The collectives of a
        rank with the same set run one after another. With None, collectives of different kinds of
        groups do not wait for each other. `plans` are the plans of the collectives on a circuit
        switch with `ports` ports of a rank. If the circuits with which a plan starts are not up,
        its collective takes `setup_ps` picoseconds longer.
        """

@final
class Outcome:
    """The result of a simulation: totals, which are single values, and tables of columns.

    Totals and tables are attributes: `outcome.time_ps`, `outcome.slots["start_ps"]`. Each simulator
    has its own totals and tables. `describe` returns the meanings and units of the totals, and
    `Table.describe` the meanings and units of the columns. Outcomes with equal totals and tables
    are equal. Outcomes can be pickled.

    Examples
    --------
    >>> import opticoll
    >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "optree:radices=4x4")
    >>> outcome = plan.simulate("4MiB")
    >>> outcome.time_ps, outcome.totals["reconfigurations"]
    (10366329600, 12)
    >>> {name: table.shape for name, table in outcome.tables.items()}
    {'settings': (0,), 'slots': (12,), 'links': (2, 16), 'ranks': (16,), 'critical_path': (12,)}
    >>> outcome.slots["start_ps"][:2]
    array([        0, 863860800], dtype=uint64)
    """
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __copy__(self) -> Outcome: ...
    def __deepcopy__(self, memo: Any, /) -> Outcome: ...
    def __dir__(self) -> list[str]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __getattr__(self, name: str, /) -> Any: ...
    def __hash__(self) -> int: ...
    def __reduce__(
        self,
    ) -> tuple[
        Any,
        tuple[
            list[tuple[str, str, str, Any]],
            list[tuple[str, str, list[tuple[str, int]], list[tuple[str, str, str, Any]]]],
        ],
    ]: ...
    def __repr__(self) -> str: ...
    def _repr_html_(self) -> str: ...
    def describe(self) -> list[FieldRecord]:
        """Returns the descriptions of the totals: a list of dictionaries with the name, the unit and
        the meaning of each total.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
        >>> outcome = plan.simulate("4MiB")
        >>> field = outcome.describe()[3]
        >>> field["name"], field["unit"]
        ('time_ps', 'ps')
        """
    def plot(
        self,
        path: str | PathLike[str] | None = None,
        plan: Plan | None = None,
        title: str = "",
        *,
        ax: Axes | None = None,
    ) -> None:
        """Draws the quantities that the simulator measured over time (see `opticoll.plot.outcome`):
        the slots of a plan, the latencies of packets, or the losses of bursts.

        Parameters
        ----------
        path : str or PathLike, optional
            The file; its suffix (svg, png or pdf) determines the format.
        plan : Plan, optional
            The simulated plan. If it was simulated with a `link_bin`, the figure shows the use of
            its links. On a dragonfly, the figure shows the load of links beside the latencies.
        title : str
            The title of the figure.
        ax : matplotlib.axes.Axes, optional
            The axes in which the figure is drawn, instead of a file.

        Raises
        ------
        PlotError
            The suffix is unknown, the outcome has no quantities over time, or a figure with several
            panels is requested in axes.
        FileError
            The file cannot be written.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
        >>> plan.simulate("4MiB").plot("slots.svg")
        """
    @property
    def tables(self) -> dict[str, Table]:
        """The tables by name."""
    def to_pandas(self) -> pandas.DataFrame:
        """Returns the totals as a pandas DataFrame with one row; `Table.to_pandas` returns the rows of
        a table.

        Raises
        ------
        UsageError
            The package `pandas` is not installed.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
        >>> outcome = plan.simulate("4MiB")
        >>> outcome.to_pandas()["time_ps"].tolist()
        [12957912000]
        """
    @property
    def totals(self) -> dict[str, Any]:
        """The totals by name; None if a total does not apply."""

@final
class Plan:
    """A schedule with a route, a wavelength and a slot for every transfer.

    `opticoll.plan` makes a plan, and `opticoll.read_plan` reads a plan. `len(plan)` is the number
    of transfers. Two plans are equal if they have the same fabric, collective, algorithm and size,
    and in each step the same transfers with the same light and slots, in any order. Plans can be
    pickled.

    Examples
    --------
    >>> import opticoll
    >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "optree:radices=4x4")
    >>> plan
    <Plan of all_gather by optree:radices=4x4 on 16 ranks: 12 slots, 240 transfers>
    >>> plan.collective.kind, plan.fabric.ranks, plan.algorithm, plan.asked, plan.size_bytes
    ('all_gather', 16, 'optree:radices=4x4', 'optree:radices=4x4', None)
    >>> len(plan), plan.slots, plan.step_slots, plan.claimed_steps
    (240, 12, [4, 8], 12)
    >>> plan.rotation_symmetric, plan.pipelined, plan.pipeline
    (False, False, None)
    >>> plan.wavelengths_used, plan.configurations, plan.bound[:2]
    (2, 8, (5, 'relay_tree'))

    A plan by `auto` lists the candidates from which it was chosen, and the reasons for the choice:

    >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=5,wavelengths=1", size="4MiB")
    >>> plan.candidates[0]
    ('ring_bidirectional', 2, 1727721600, '')
    >>> plan.reasons[1]
    'not simulated to the end: 18 candidates that cannot be faster'
    """
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __copy__(self) -> Plan: ...
    def __deepcopy__(self, memo: Any, /) -> Plan: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __len__(self) -> int: ...
    def __reduce__(
        self,
    ) -> tuple[Any, tuple[str, str | None, list[tuple[str, int, int, str]], list[str]]]: ...
    def __repr__(self) -> str: ...
    def _repr_html_(self) -> str: ...
    @property
    def algorithm(self) -> str:
        """The specification of the algorithm, with its options."""
    @property
    def asked(self) -> str:
        """The requested algorithm, such as `auto`."""
    @property
    def bound(self) -> tuple[int, str, str] | None:
        """The lower bound on the number of slots of any plan, as (number of slots, name of the bound,
        assumptions), or None.

        If some lightpath of the plan carries several chunks, the bound allows any number of chunks
        per lightpath.
        """
    @property
    def candidates(self) -> list[tuple[str, int, int, str]]:
        """The plans that `auto` compared, as a list of (name, slots, time in picoseconds, reason).

        The chosen plan is first. The reason is empty if the plan was simulated. Otherwise the
        reason says why the plan was left out, and slots and time are lower bounds. The list is
        empty for other algorithms.
        """
    @property
    def claimed_steps(self) -> int | None:
        """The number of steps that the algorithm's paper states, or None."""
    @property
    def collective(self) -> Collective:
        """The collective, with its root and its number of pieces."""
    def columns(self) -> dict[str, NDArray[Any]]:
        """Returns the transfers as NumPy arrays: a dictionary of columns, each with one entry per
        transfer in the order of the schedule.

        The columns direction, fibre and wavelength exist on a `wdm_ring`. Other optical fabrics
        have the columns that `Fabric.light_fields` names. Electrical fabrics have none of these
        columns.

        Columns
        -------
        chunk : uint32
            First chunk of the transfer, from 0 to `plan.collective.chunks` - 1.
        count : uint32
            Number of consecutive chunks.
        source, destination : uint32
            Ranks that send and receive, from 0 to `plan.fabric.ranks` - 1.
        action : uint8
            0: the destination stores a copy. 1: the destination reduces the chunks into its own.
        direction, fibre : uint8
            On a `wdm_ring` only: the direction of the lightpath (0 clockwise, 1 counter-clockwise)
            and its fibre.
        wavelength : uint16
            On a `wdm_ring` only: the wavelength, from 0; 65535 if converters choose a wavelength
            for each link.
        slot : uint32
            Slot of the transfer, from 0 to `plan.slots` - 1; on electrical fabrics the step of the
            transfer.

        Raises
        ------
        ScheduleError
            The plan has more than 2^26 transfers; use `slot_columns` slot by slot.

        Examples
        --------
        >>> import opticoll
        >>> ring = "wdm_ring:ranks=16,wavelengths=2"
        >>> plan = opticoll.plan("all_gather", ring, "optree:radices=4x4")
        >>> columns = plan.columns()
        >>> for name, column in columns.items():
        ...     print(name, column.dtype, column.shape, column[-1])
        chunk uint32 (240,) 15
        count uint32 (240,) 1
        source uint32 (240,) 15
        destination uint32 (240,) 14
        action uint8 (240,) 0
        direction uint8 (240,) 1
        fibre uint8 (240,) 0
        wavelength uint16 (240,) 1
        slot uint32 (240,) 7
        """
    @property
    def configurations(self) -> int:
        """The number of different sets of circuits that the slots of the plan use."""
    def ends(self, transfer: int) -> tuple[int, int]:
        """Returns the rank that sends a transfer, and the rank that receives it.

        Parameters
        ----------
        transfer : int
            Index of the transfer, from 0 to `len(plan)` - 1.

        Raises
        ------
        IndexError
            The transfer does not exist.

        Examples
        --------
        >>> import opticoll
        >>> opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring").ends(3)
        (3, 4)
        """
    def expected_packets(
        self, size: int | str | None = None, **settings: Unpack[Settings]
    ) -> tuple[int, int, int]:
        """Forecasts the work of the packet simulator: the number of messages, the number of chunks,
        and an estimate of the number of forwards by routers.

        Parameters
        ----------
        size : int or str, optional
            Size of the collective, in bytes or as text with a unit (default: the size of the plan).
        settings
            Settings of the packet simulator, as for `simulate`.

        Raises
        ------
        SimulationError
            The fabric has no routers, or a setting is unknown or does not apply.
        UnitError
            No size is given and the plan has none, or the size is malformed.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_gather", "torus:dims=4x4", "ring")
        >>> plan.expected_packets("1MiB")
        (240, 491520, 1105920)
        """
    def export(
        self, path: str | PathLike[str], format: str | None = None, *, size: str | int | None = None
    ) -> list[Path]:
        """Writes the plan in the format of another program, such as MSCCL XML; `opticoll.write_plan`
        writes plan files.

        If the format cannot express light and slots, a plan file such as `ours.xml.plan` is written
        as well.

        Parameters
        ----------
        path : str or PathLike
            The file.
        format : str, optional
            The format, such as `msccl`; see `opticoll list formats` (default: the format of the
            file's ending).
        size : str or int, optional
            Size of the collective, in bytes or as text with a unit, for formats that contain bytes
            (default: the plan's size, or 4 MiB).

        Returns
        -------
        list of Path
            The written files.

        Raises
        ------
        FileError
            The file cannot be written.
        UsageError
            The format does not exist.
        ProgramError
            The plan exceeds a limit of the format.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=4,wavelengths=1", "ring")
        >>> [path.name for path in plan.export("ours.xml")]
        ['ours.xml', 'ours.xml.plan']
        """
    @property
    def fabric(self) -> Fabric:
        """The fabric, with all its options."""
    @staticmethod
    def from_text(text: str) -> Plan:
        """Reads the text of a plan file.

        Parameters
        ----------
        text : str
            The complete text, which starts with `opticoll plan 1`.

        Raises
        ------
        PlanFileError
            The text is no plan; the message names line and column.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("broadcast", "wdm_ring:ranks=4,wavelengths=1", "binomial")
        >>> opticoll.Plan.from_text(plan.to_text()).slots == plan.slots
        True
        """
    def hop_columns(self, slot: int | None = None) -> dict[str, NDArray[Any]]:
        """Returns the hops of transfers on a grid of tunable circuits (`wss_grid`) as NumPy arrays of
        equal length.

        A transfer between nodes that share neither row nor column has two hops, over a relay. On
        other fabrics the arrays are empty. The fields of the fabric's light (`Fabric.light_fields`)
        are additional columns.

        Parameters
        ----------
        slot : int, optional
            Only the hops of this slot (default: all slots).

        Columns
        -------
        transfer : uint64
            Index of the transfer in the plan.
        source, destination : uint32
            Ranks at the ends of the hop.
        slot : uint32
            Slot of the hop.

        Raises
        ------
        OverflowError
            The slot is negative or not below 2^32.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_to_all", "wss_grid:rows=2,columns=2", "direct")
        >>> hops = plan.hop_columns(slot=0)
        >>> list(hops)
        ['transfer', 'source', 'destination', 'slot', 'plane', 'wavelength']
        """
    def least_margin(self) -> LossBudget | None:
        """Returns the loss budget of the transfer with the least margin; None if the fabric has no
        loss budget, or if no transfer has light.

        Powers are in dBm, losses and margins in dB. Each entry of `losses` has the name of what the
        light passes (`what`), the number of times (`count`) and the loss each time (`loss_db`).

        Raises
        ------
        MemoryLimitError
            The margins of all rows need more memory than the limit.

        Examples
        --------
        >>> import opticoll
        >>> star = "passive_star:ranks=8,wavelengths=4,launch_power=0dBm,sensitivity=-12dBm"
        >>> weakest = opticoll.plan("broadcast", star).least_margin()
        >>> weakest["margin_db"], weakest["losses"][1]["loss_db"]
        (2.9691, 9.0309)
        """
    def margins(self, slot: int) -> dict[str, NDArray[Any]]:
        """Returns the margins of the transfers of a slot as NumPy arrays of equal length: the power
        that arrives at the receiver, above the least power that the receiver detects.

        The arrays are empty if the fabric has no loss budget (option `launch_power`).

        Parameters
        ----------
        slot : int
            The slot, from 0.

        Columns
        -------
        transfer : uint64
            Index of the transfer in the plan. Transfers without light are not listed.
        margin : float64
            Margin in dB. Of a relayed transfer, the margin of its weakest hop.
        osnr : float64
            Ratio of signal to noise in a band of 0.1 nm, in dB. NaN if the fabric states no noise.

        Raises
        ------
        OverflowError
            The slot is negative or not below 2^32.

        Examples
        --------
        >>> import opticoll
        >>> losses = "launch_power=0dBm,sensitivity=-10dBm,through_loss=1dB,resonators=1"
        >>> plan = opticoll.plan("broadcast", f"wdm_ring:ranks=4,wavelengths=2,{losses}", "direct")
        >>> plan.margins(0)["margin"]
        array([10.,  9., 10.])
        """
    def message_times(
        self, size: int | str | None = None, start: str = "rendezvous"
    ) -> list[tuple[int, int, int]]:
        """Returns the messages of a plan on an electrical fabric, as a list of (transfer, start, end)
        with times in picoseconds.

        Parameters
        ----------
        size : int or str, optional
            Size of the collective, in bytes or as text with a unit (default: the size of the plan).
        start : str
            The start rule: `rendezvous`, `step` or another of `opticoll list start_rules`.

        Raises
        ------
        SimulationError
            The fabric is not electrical, or the start rule is unknown.
        UnitError
            No size is given and the plan has none, or the size is malformed.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_gather", "crossbar:ranks=4", "ring")
        >>> plan.message_times("1MiB")[:2]
        [(0, 0, 83886080), (1, 0, 83886080)]
        """
    @property
    def names_routes(self) -> bool:
        """True if the plan names the route of some transfer on an electrical fabric.

        Examples
        --------
        >>> import opticoll
        >>> opticoll.plan("broadcast", "electrical_ring:ranks=3", "linear").names_routes
        False
        """
    def passed_parts(
        self, outcome: Outcome, size: int | str | None = None
    ) -> tuple[list[tuple[str, str, int | None, int | None, int]], int | None]:
        """Returns what a simulation of the plan needed of the parts of the fabric, as a tuple (parts,
        bytes).

        Parts has the form of `Fabric.bill`, with the bytes that pass the parts of each kind in
        halves of bytes instead of the number of parts. Half of a byte passes the parts at each end
        of a link or circuit. Bytes are those that ranks send over circuits. They are None on a
        network of links, where all transmitters are always lit.

        Parameters
        ----------
        outcome : Outcome
            Result of a simulation of this plan.
        size : int or str, optional
            Size of the collective in the simulation (default: the size of the plan).

        Raises
        ------
        SimulationError
            The outcome is not the result of a simulation of a plan.
        UnitError
            No size is given and the plan has none, or the size is malformed.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("broadcast", "crossbar:ranks=2,rate=1Gb/s", "binomial")
        >>> parts, lit = plan.passed_parts(plan.simulate("1KiB"), "1KiB")
        >>> parts[0], lit
        (('transceiver', 'at ranks', 1000000000, None, 2048), None)
        """
    @property
    def pipeline(self) -> tuple[int, int] | None:
        """The numbers of wavelengths and of pieces that each stored row of a pipelined plan
        represents; None for other plans.
        """
    @property
    def pipelined(self) -> bool:
        """True if the plan is pipelined and only the transfers of its first chunks are stored."""
    def plot(
        self,
        path: str | PathLike[str] | None = None,
        view: str | None = None,
        *,
        slot: int | None = None,
        size: int | None = None,
        rank: int | None = None,
        chunk: int | None = None,
        ax: Axes | None = None,
    ) -> None:
        """Draws the plan to a file or in matplotlib axes (see `opticoll.plot.plan`).

        Parameters
        ----------
        path : str or PathLike, optional
            The file; its suffix (svg, png or pdf) determines the format.
        view : str, optional
            The view, such as `space_time` (default: the fabric's default view).
        slot : int, optional
            The slot, for views of one slot.
        size : int, optional
            Size of the collective in bytes, for views of time.
        rank, chunk : int, optional
            The rank or the chunk whose trees are drawn, for the view `trees`.
        ax : matplotlib.axes.Axes, optional
            The axes in which the figure is drawn, instead of a file.

        Raises
        ------
        PlotError
            The suffix or the view is unknown, the plan does not fit the view, or a view with
            several panels is requested in axes.
        FileError
            The file cannot be written.

        Examples
        --------
        >>> import opticoll
        >>> ring = "wdm_ring:ranks=16,wavelengths=2"
        >>> plan = opticoll.plan("all_gather", ring, "optree:radices=4x4")
        >>> plan.plot("slot0.svg", slot=0)
        """
    @property
    def reasons(self) -> list[str]:
        """The reasons why `auto` chose this plan, as a list of sentences; empty for other algorithms."""
    @property
    def rotation_symmetric(self) -> bool:
        """True if the plan is rotation-symmetric and only the transfers of rank 0 are stored."""
    def route(self, transfer: int) -> list[int]:
        """Returns the links of a transfer's route on an electrical fabric, in order; an empty list on
        other fabrics.

        If the plan names no route for the transfer, the result is the fabric's route
        (`Fabric.route`).

        Parameters
        ----------
        transfer : int
            Index of the transfer, from 0 to `len(plan)` - 1.

        Raises
        ------
        IndexError
            The transfer does not exist.

        Examples
        --------
        >>> import opticoll
        >>> text = opticoll.plan("broadcast", "electrical_ring:ranks=3", "linear").to_text()
        >>> plan = opticoll.Plan.from_text(text.replace("copy 0 0>2", "copy 0 0>2 via 0.2"))
        >>> plan.route(0), plan.route(1)
        ([0], [0, 2])
        """
    def run(
        self,
        size: str | int | None = None,
        *,
        on: str = "process",
        type: str = "int32",
        operator: str = "sum",
        repetitions: int = 1,
        time_limit: str = "30s",
    ) -> list[RunRow]:
        """Executes the plan with real bytes, and compares every output byte with the definition of the
        collective.

        The measured times are those of this machine, not of the fabric.

        Parameters
        ----------
        size : str or int, optional
            Size of the collective, in bytes or as text with a unit; commas separate several sizes
            (default: 4 MiB).
        on : str
            Place of execution: `process` for this process, or `mpi` for one MPI process per rank.
        type : str
            Type of the elements, such as `float32`.
        operator : str
            Operator that reductions apply: `sum`, `prod`, `min` or `max`.
        repetitions : int
            Number of repetitions; the reported time is their mean.
        time_limit : str
            Time without progress after which MPI processes are stopped.

        Returns
        -------
        list of RunRow
            One row for each size and mode (in place, out of place).

        Raises
        ------
        UsageError
            The plan violates a rule, or MPI is not installed.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_reduce", "wdm_ring:ranks=4,wavelengths=1", "ring")
        >>> [(row.mode, row.wrong) for row in plan.run("1KiB", operator="max")]
        [('out of place', 0), ('in place', 0)]
        """
    def simulate(
        self,
        size: int | str | None = None,
        *,
        watch: Callable[[int, int, int], None] | None = None,
        timeline: bool = False,
        **settings: Unpack[Settings],
    ) -> Outcome:
        """Simulates the plan, and returns its time and other results.

        Parameters
        ----------
        size : int or str, optional
            Size of the collective, in bytes or as text with a unit such as `"4MiB"` (default: the
            size of the plan).
        watch : callable, optional
            Callback of the packet simulator, called at intervals as `watch(events,
            messages_delivered, time_ps)`.
        timeline : bool
            True to record the load of links and buffers over time, with the packet simulator.
        settings
            The simulator and its settings, as text: `simulator="packet"`, `policy="free"`,
            `start="step"`. `opticoll list settings` lists all settings. By default the simulator is
            `circuit` under the policy `every_step` on a `wdm_ring`, and `fluid` on electrical
            fabrics.

        Returns
        -------
        Outcome
            Its total `time_ps` is the time in picoseconds.

        Raises
        ------
        UnitError
            No size is given and the plan has none, or the size is malformed.
        SimulationError
            A setting is unknown or does not apply; the attribute `setting` names the setting.
        MemoryLimitError
            The simulation would need more memory than the limit.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
        >>> plan.simulate("4MiB").time_ps
        12957912000
        >>> plan.simulate("4MiB", policy="free").time_ps
        12582912000
        """
    @property
    def size_bytes(self) -> int | None:
        """The size of the collective in bytes, or None; `Collective.size_convention` says which bytes
        the size counts.
        """
    def slot_columns(self, slot: int) -> dict[str, NDArray[Any]]:
        """Returns the transfers of a slot as NumPy arrays: the columns of `columns`, and the indices
        of the transfers in the plan.

        Parameters
        ----------
        slot : int
            The slot, from 0.

        Columns
        -------
        transfer : uint64
            Index of the transfer in the plan, as in the arrays of `columns`.

        Raises
        ------
        OverflowError
            The slot is negative or not below 2^32.

        Examples
        --------
        >>> import opticoll
        >>> ring = "wdm_ring:ranks=16,wavelengths=2"
        >>> plan = opticoll.plan("all_gather", ring, "optree:radices=4x4")
        >>> slot = plan.slot_columns(0)
        >>> len(slot["transfer"]), slot["source"][:3], slot["destination"][:3]
        (12, array([0, 1, 1], dtype=uint32), array([4, 5, 9], dtype=uint32))
        """
    @property
    def slots(self) -> int:
        """The number of time slots."""
    @property
    def step_slots(self) -> list[int]:
        """The number of slots of each step of the schedule, as a list."""
    def to_networkx(self, slot: int | None = None) -> networkx.MultiDiGraph:
        """Returns the transfers of a slot, or of the whole plan, as a directed NetworkX graph.

        The first nodes are the ranks, in order. Other nodes are the switches of the fabric. Nodes have
        the names and the attribute `kind` of `Fabric.to_networkx`; if ranks have no names, rank 5 is
        `rank 5`.

        Each transfer is an edge. Its key is the index of the transfer in the plan. Its attributes are
        the columns of `columns`. If the plan or the fabric determines the links that the transfer
        passes, the attribute `links` is a list of (start, end) with the names of nodes.

        Parameters
        ----------
        slot : int, optional
            The slot, from 0 (default: all slots).

        Raises
        ------
        IndexError
            The plan has no such slot.
        UsageError
            The package `networkx` is not installed.

        Examples
        --------
        >>> import opticoll
        >>> ring = "wdm_ring:ranks=4,wavelengths=2"
        >>> graph = opticoll.plan("all_gather", ring, "ring").to_networkx(slot=0)
        >>> graph.number_of_nodes(), graph.number_of_edges()
        (4, 4)
        >>> graph.edges["rank 0", "rank 1", 0]["wavelength"]
        0
        """
    def to_pandas(self) -> pandas.DataFrame:
        """Returns the transfers as a pandas DataFrame with the columns of `columns`.

        Raises
        ------
        UsageError
            The package `pandas` is not installed.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
        >>> len(plan.to_pandas())
        240
        """
    def to_text(self) -> str:
        """Returns the plan as the text of a plan file, for `from_text` and `opticoll.read_plan`.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("broadcast", "wdm_ring:ranks=4,wavelengths=1", "binomial")
        >>> plan.to_text().splitlines()[1]
        'collective broadcast ranks=4 root=0 pieces=1'
        """
    def verify(self) -> list[Violation]:
        """Verifies the plan from its text alone, and returns a list of all violations.

        The list is empty if the plan is valid.

        The verifier shares no code with the planners. It checks that the fabric can carry every
        transfer in its slot, that every rank has a chunk before it sends the chunk, and that every
        rank ends with the chunks that the collective requires. A violation of a rotation-symmetric
        plan represents all rotations of its transfers.

        Examples
        --------
        >>> import opticoll
        >>> opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring").verify()
        []
        """
    @property
    def wavelengths_used(self) -> int:
        """The number of different wavelengths in use; 0 on fabrics without wavelengths."""
    def with_size(self, size_bytes: int) -> Plan:
        """Returns the same plan with another size for later simulations.

        Parameters
        ----------
        size_bytes : int
            The size in bytes.

        Raises
        ------
        OverflowError
            The size is negative or not below 2^64.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
        >>> plan.with_size(1024).size_bytes
        1024
        """

@final
class Program:
    """A collective as instructions of its ranks.

    The thread blocks of a rank send, receive, copy and reduce chunks of buffers.

    Runtimes such as MSCCL execute programs. `opticoll.read_program` reads programs from files.

    Examples
    --------
    >>> import opticoll
    >>> program = opticoll.Program.from_msccl('''
    ... <algo name="pair" nchunksperloop="2" ngpus="2" coll="allgather" inplace="1">
    ...   <gpu id="0"><tb id="0" send="1" recv="1" chan="0">
    ...     <step s="0" type="s" srcbuf="o" srcoff="0" cnt="1"/>
    ...     <step s="1" type="r" dstbuf="o" dstoff="1" cnt="1"/></tb></gpu>
    ...   <gpu id="1"><tb id="0" send="0" recv="0" chan="0">
    ...     <step s="0" type="s" srcbuf="o" srcoff="0" cnt="1"/>
    ...     <step s="1" type="r" dstbuf="o" dstoff="0" cnt="1"/></tb></gpu></algo>''')
    >>> program
    <Program pair of all_gather: 2 ranks, 2 thread blocks, 4 instructions>
    >>> program.name, program.collective.ranks, program.thread_blocks
    ('pair', 2, 2)
    >>> program.in_place, program.out_of_place, program.in_network
    (True, False, False)
    >>> for violation in program.verify(in_place=True).violations:
    ...     place = (violation.rank, violation.thread_block, violation.step, violation.line)
    ...     print(violation.kind, *place)
    ...     print(violation.sentence.split("; ")[0])
    not_written 1 0 0 7
    rank 1, thread block 0, step 0: reads chunk 0 of output, which has not been written
    wrong_result 0 0 1 5
    rank 0: output chunk 1 holds nothing at the end, not chunk 0 of rank 1
    """
    def __len__(self) -> int: ...
    def __repr__(self) -> str: ...
    @property
    def collective(self) -> Collective:
        """The collective that the program executes."""
    @staticmethod
    def from_chakra(traces: list[bytes]) -> Program:
        """Reads Chakra traces whose nodes send and receive the chunks of a collective, such as a
        custom collective of ASTRA-sim.

        Parameters
        ----------
        traces : list of bytes
            The content of each rank's file, in the order of ranks.

        Raises
        ------
        ProgramError
            A trace is malformed, or does not state which chunks it moves; the message names rank
            and byte.
        CollectiveError
            The collective is invalid.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_gather", "crossbar:ranks=4", "ring")
        >>> opticoll.Program.from_chakra(opticoll.Program.from_plan(plan).to_chakra(1024))
        <Program ring of all_gather: 4 ranks, 4 thread blocks, 24 instructions>
        """
    @staticmethod
    def from_msccl(text: str) -> Program:
        """Reads the text of an MSCCL XML file.

        Parameters
        ----------
        text : str
            The complete text.

        Raises
        ------
        ProgramError
            The text is malformed; the message names the line.
        CollectiveError
            The collective is invalid.

        Examples
        --------
        >>> import opticoll
        >>> head = '<algo nchunksperloop="1" ngpus="1" coll="allreduce" inplace="1">'
        >>> opticoll.Program.from_msccl(head + '<gpu id="0"/></algo>')
        <Program  of all_reduce: 1 ranks, 0 thread blocks, 0 instructions>
        """
    @staticmethod
    def from_mscclpp(text: str) -> Program:
        """Reads the text of an execution plan of MSCCL++ (JSON).

        The operations of such a plan access buffers of other ranks.

        Parameters
        ----------
        text : str
            The complete text.

        Raises
        ------
        ProgramError
            The text is malformed, or MSCCL++ cannot execute the plan; the message names the line.
        CollectiveError
            The collective is invalid.

        Examples
        --------
        >>> import opticoll
        >>> program = opticoll.Program.from_mscclpp('''
        ... {"name": "alone", "collective": "allreduce", "protocol": "Simple", "inplace": true,
        ...  "gpus": [{"id": 0, "input_chunks": 1, "output_chunks": 1, "scratch_chunks": 0,
        ...            "threadblocks": []}]}''')
        >>> program
        <Program alone of all_reduce: 1 ranks, 0 thread blocks, 0 instructions>
        >>> program.one_sided, program.ranks_per_server
        (False, None)
        """
    @staticmethod
    def from_plan(plan: Plan) -> Program:
        """Returns a program that executes the schedule of a plan.

        Links and light are not part of a program. A multicast becomes one message to each receiver,
        and an aggregation one message from each sender. No file format expresses such a plan.

        Parameters
        ----------
        plan : Plan
            The plan.

        Raises
        ------
        ProgramError
            The collective is a barrier, which moves no chunks.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_reduce", "wdm_ring:ranks=8,wavelengths=1", "ring")
        >>> opticoll.Program.from_plan(plan)
        <Program ring of all_reduce: 8 ranks, 8 thread blocks, 120 instructions>
        """
    @property
    def in_network(self) -> bool:
        """True if switches add or multicast in the plan that the program executes."""
    @property
    def in_place(self) -> bool:
        """True if the program supports calls whose input and output share memory."""
    @property
    def name(self) -> str:
        """The name of the program."""
    @property
    def one_sided(self) -> bool:
        """True if instructions access buffers of other ranks."""
    @property
    def out_of_place(self) -> bool:
        """True if the program supports calls with separate buffers."""
    @property
    def ranks_per_server(self) -> int | None:
        """The number of consecutive ranks that form a server, or None if all ranks share memory."""
    def run(
        self,
        inputs: list[bytes],
        *,
        elements: int,
        element_type: str = "int32",
        operator: str = "sum",
        in_place: bool = False,
    ) -> list[bytes]:
        """Executes the program with real bytes in this process.

        Parameters
        ----------
        inputs : list of bytes
            The input buffer of each rank.
        elements : int
            Number of elements per chunk.
        element_type : str
            Type of the elements: `int8`, `uint8`, `int32`, `uint32`, `int64`, `uint64`, `float32`
            or `float64`.
        operator : str
            Operator that reductions apply: `sum`, `prod`, `min` or `max`.
        in_place : bool
            True if input and output share memory.

        Returns
        -------
        list of bytes
            The output buffer of each rank.

        Raises
        ------
        ProgramError
            The program deadlocks or accesses chunks outside of its buffers; the message names rank
            and step.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_reduce", "crossbar:ranks=3", "ring")
        >>> program = opticoll.Program.from_plan(plan)
        >>> inputs = [bytes([1, 2, 3]), bytes([10, 20, 30]), bytes([100, 0, 0])]
        >>> program.run(inputs, elements=1, element_type="uint8")[2]
        b'o\\\\x16!'
        """
    def schedule(self, *, in_place: bool) -> tuple[Schedule, int]:
        """Returns the schedule of a proved program, with steps that follow from the order of messages.

        Parameters
        ----------
        in_place : bool
            True if input and output share memory.

        Returns
        -------
        tuple of Schedule and int
            The schedule, and the number of chunks that the schedule leaves out because the
            receiving rank already has them.

        Raises
        ------
        ProgramError
            A rank has several partial sums of one chunk.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_gather", "crossbar:ranks=4", "ring")
        >>> program = opticoll.Program.from_plan(plan)
        >>> program.schedule(in_place=True)
        (<Schedule of all_gather: 3 steps, 12 transfers>, 0)
        """
    def scratch(self, rank: int) -> int:
        """Returns the number of chunks of a rank's scratch buffer.

        Parameters
        ----------
        rank : int
            The rank.

        Raises
        ------
        IndexError
            The rank does not exist.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("broadcast", "crossbar:ranks=2", "linear")
        >>> opticoll.Program.from_plan(plan).scratch(1)
        0
        """
    @property
    def thread_blocks(self) -> int:
        """The number of thread blocks of all ranks."""
    def thread_blocks_of(
        self, rank: int
    ) -> list[tuple[int, int, int, list[tuple[str, int, int, int, int, int, int, int]]]]:
        """Returns the thread blocks of a rank, as a list of (rank to send to, rank to receive from,
        channel, instructions).

        A rank of -1 means no rank.

        An instruction is (operation, source buffer, source chunk, destination buffer, destination
        chunk, number of chunks, thread block to wait for, step to wait for). Operations have the
        names in MSCCL files. Buffers are 0 for input, 1 for output and 2 for scratch. Thread block
        and step are -1 if the instruction waits for no other.

        Parameters
        ----------
        rank : int
            The rank.

        Raises
        ------
        IndexError
            The rank does not exist.
        ProgramError
            Instructions access buffers of other ranks.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("broadcast", "crossbar:ranks=2", "linear")
        >>> program = opticoll.Program.from_plan(plan)
        >>> program.thread_blocks_of(1)
        [(-1, 0, 0, [('r', 1, 0, 1, 0, 1, -1, -1)])]
        """
    def to_chakra(self, size_bytes: int) -> list[bytes]:
        """Returns the program as Chakra traces, one per rank, in the form that ASTRA-sim reads for
        custom collectives.

        Parameters
        ----------
        size_bytes : int
            Size of the collective in bytes, which must be divisible into equal chunks.

        Raises
        ------
        ProgramError
            The size is not divisible into equal chunks of whole bytes.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_gather", "crossbar:ranks=4", "ring")
        >>> program = opticoll.Program.from_plan(plan)
        >>> len(program.to_chakra(1024))
        4
        """
    def to_msccl(self) -> str:
        """Returns the program as the text of an MSCCL XML file, with all attributes that runtimes
        require.

        Raises
        ------
        ProgramError
            The program exceeds a limit of the runtimes, such as 256 steps in a thread block.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_gather", "crossbar:ranks=4", "ring")
        >>> program = opticoll.Program.from_plan(plan)
        >>> print(program.to_msccl().splitlines()[2].strip())
        <tb id="0" send="1" recv="3" chan="0">
        """
    def to_mscclpp(self, size_bytes: int, protocol: str | None = None) -> str:
        """Returns the program as the text of an execution plan of MSCCL++ (JSON).

        The plan is for calls in place if PyTorch calls the collective in place: all_reduce, reduce
        and broadcast. If switches add or multicast in the plan of the program, they do so in
        MSCCL++.

        Parameters
        ----------
        size_bytes : int
            Size of the collective in bytes, which must be divisible into equal chunks of multiples
            of 16 bytes.
        protocol : str, optional
            `LL` for messages that are packets with flags, or `Simple` (default: `LL` up to 64 KiB
            if the program allows it).

        Raises
        ------
        ProgramError
            The size is not divisible, the protocol does not fit, or the program exceeds a limit of
            MSCCL++.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_gather", "crossbar:ranks=4", "ring")
        >>> text = opticoll.Program.from_plan(plan).to_mscclpp(1 << 20)
        >>> opticoll.Program.from_mscclpp(text).one_sided
        True
        """
    def verify(self, *, in_place: bool, fabric: Fabric | None = None) -> ProgramProof:
        """Verifies the program, in place or with separate buffers, and returns all violations.

        Parameters
        ----------
        in_place : bool
            True if input and output share memory.
        fabric : Fabric, optional
            A fabric that must have a link for every message (default: any rank may send to any
            other rank).

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_gather", "crossbar:ranks=4", "ring")
        >>> program = opticoll.Program.from_plan(plan)
        >>> proof = program.verify(in_place=True)
        >>> proof.violations, proof.remarks, proof.messages, proof.chunks_sent
        ([], [], 12, 12)
        """

@final
class ProgramProof:
    """The result of `Program.verify`."""
    @property
    def chunks_sent(self) -> int:
        """The number of chunks that the messages carry."""
    @property
    def messages(self) -> int:
        """The number of messages between ranks."""
    @property
    def remarks(self) -> list[ProgramViolation]:
        """Remarks on correct but unusual parts of the program, as a list."""
    @property
    def violations(self) -> list[ProgramViolation]:
        """All violations, as a list; empty if the program is valid."""

@final
class ProgramViolation:
    """A rule that a program violates at one place, or a remark on an unusual part."""
    def __repr__(self) -> str: ...
    @property
    def kind(self) -> str:
        """The name of the violated rule, such as `race` or `wrong_result`."""
    @property
    def line(self) -> int | None:
        """The line of the file, or None; for a Chakra trace, the position of the node in its rank's
        file, counted from 1.
        """
    @property
    def rank(self) -> int | None:
        """The rank, or None."""
    @property
    def sentence(self) -> str:
        """The violation or remark, in one sentence."""
    @property
    def step(self) -> int | None:
        """The index of the instruction in its thread block, or None."""
    @property
    def thread_block(self) -> int | None:
        """The index of the thread block at its rank, or None."""

@final
class Schedule:
    """The transfers of a collective in steps, without routes and wavelengths.

    A user's algorithm returns a schedule.

    `len(schedule)` is the number of transfers. `opticoll.plan` assigns the routes, wavelengths and
    slots of the transfers.

    Parameters
    ----------
    collective : Collective
        The collective that the transfers perform.

    Examples
    --------
    >>> import numpy as np
    >>> import opticoll
    >>> def ring(collective, fabric):
    ...     "Ring all_gather: in each step every rank passes on the block that it received last."
    ...     schedule = opticoll.Schedule(collective)
    ...     ranks = np.arange(fabric.ranks)
    ...     for step in range(fabric.ranks - 1):
    ...         schedule.step((ranks - step) % fabric.ranks, ranks, (ranks + 1) % fabric.ranks)
    ...     return schedule
    >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=8,wavelengths=1", ring)
    >>> plan.slots, plan.verify()
    (7, [])
    >>> schedule = ring(plan.collective, plan.fabric)
    >>> schedule.steps, len(schedule), schedule.collective.kind
    (7, 56, 'all_gather')
    """
    def __len__(self) -> int: ...
    def __new__(cls, collective: Collective) -> Schedule: ...
    def __repr__(self) -> str: ...
    def claim(
        self,
        *,
        paper_steps: int | None = None,
        schedule_steps: int | None = None,
        chunks_sent_per_rank: int | None = None,
        neighbours_only: bool = False,
    ) -> None:
        """Replaces the claims that the schedule makes about itself.

        The verifier reports every false claim, except `paper_steps`.

        Parameters
        ----------
        paper_steps : int, optional
            Number of steps that a paper states, for comparison.
        schedule_steps : int, optional
            Number of steps of the schedule.
        chunks_sent_per_rank : int, optional
            Number of chunks that each rank sends.
        neighbours_only : bool
            True if every transfer is between neighbours on the ring.

        Raises
        ------
        OverflowError
            A number is negative or too large.

        Examples
        --------
        >>> import opticoll
        >>> def late(collective, fabric):
        ...     schedule = opticoll.Schedule(collective)
        ...     schedule.step(0, 0, [1, 2, 3])
        ...     schedule.claim(schedule_steps=2)
        ...     return schedule
        >>> plan = opticoll.plan("broadcast", "crossbar:ranks=4", late)
        >>> [violation.kind for violation in plan.verify()]
        ['claim']
        """
    @property
    def collective(self) -> Collective:
        """The collective that the transfers perform."""
    def step(
        self,
        chunk: Any,
        source: Any,
        destination: Any,
        count: Any | None = None,
        action: str | list[str] | None = None,
    ) -> None:
        """Appends a step: transfers that do not depend on each other.

        Every argument except `action` is an integer, or a one-dimensional array of integers with
        one entry per transfer. A single integer applies to all transfers of the step.

        Parameters
        ----------
        chunk : int or array of int, shape (transfers,)
            First chunk to send, from 0 to `collective.chunks` - 1.
        source : int or array of int, shape (transfers,)
            Rank that sends.
        destination : int or array of int, shape (transfers,)
            Rank that receives.
        count : int or array of int, shape (transfers,), optional
            Number of consecutive chunks (default: 1).
        action : str or list of str, optional
            `copy`: the destination stores the chunks. `reduce`: the destination adds the chunks to
            its own chunks. A single word applies to all transfers of the step (default: `copy`).

        Raises
        ------
        ScheduleError
            An array has another type, shape or length, or a value is out of range. The schedule
            remains unchanged.

        Examples
        --------
        >>> import opticoll
        >>> schedule = opticoll.Schedule(opticoll.Collective("broadcast", 4))
        >>> schedule.step(0, 0, [1, 2, 3])
        >>> schedule
        <Schedule of broadcast: 1 steps, 3 transfers>
        """
    @property
    def steps(self) -> int:
        """The number of steps."""

@final
class Table:
    """A table of a simulation: columns by name, as NumPy arrays.

    A column is an array of the table's shape, or a list if its values are texts or may be None.
    `len(table)` is the number of rows. Iteration over the table yields one dictionary per row.

    Examples
    --------
    >>> import opticoll
    >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
    >>> outcome = plan.simulate("4MiB")
    >>> links = outcome.links
    >>> links.name, links.shape, links.axes, len(links)
    ('links', (2, 16), ('direction', 'rank'), 32)
    >>> list(links.columns)
    ['busy_ps', 'bytes']
    >>> outcome.ranks.row
    'A row per rank.'
    >>> next(iter(outcome.slots))
    {'start_ps': 0, 'end_ps': 863860800, 'reconfiguration_ps': 25000000, 'lightpaths': 16}
    """
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __copy__(self) -> Table: ...
    def __deepcopy__(self, memo: Any, /) -> Table: ...
    def __getitem__(self, name: str, /) -> Any: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def __len__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, tuple[Outcome, str]]: ...
    def __repr__(self) -> str: ...
    def _repr_html_(self) -> str: ...
    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the axes, as a tuple of texts."""
    @property
    def columns(self) -> dict[str, Any]:
        """The columns by name, as NumPy arrays of the table's shape or as lists."""
    def describe(self) -> list[FieldRecord]:
        """Returns the descriptions of the columns: a list of dictionaries with the name, the unit and
        the meaning of each column.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
        >>> outcome = plan.simulate("4MiB")
        >>> field = outcome.slots.describe()[0]
        >>> field["name"], field["unit"]
        ('start_ps', 'ps')
        """
    @property
    def name(self) -> str:
        """The name of the table."""
    @property
    def row(self) -> str:
        """Sentence on the meaning of a row."""
    def rows(self) -> list[dict[str, Any]]:
        """Returns the rows: a list with one dictionary of plain numbers and texts per row.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
        >>> outcome = plan.simulate("4MiB")
        >>> row = outcome.slots.rows()[1]
        >>> row["start_ps"], row["end_ps"]
        (863860800, 1727721600)
        """
    @property
    def shape(self) -> tuple[int, ...]:
        """The number of entries along each axis, as a tuple of integers."""
    def to_pandas(self) -> pandas.DataFrame:
        """Returns the rows as a pandas DataFrame, with the axes of the table as its index.

        Raises
        ------
        UsageError
            The package `pandas` is not installed.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
        >>> outcome = plan.simulate("4MiB")
        >>> int(outcome.slots.to_pandas()["lightpaths"].sum())
        240
        """

@final
class TimedModel:
    """Layers of a model, with the times and gradients for one batch."""
    def __new__(cls, layers: list[tuple[str, list[int], int, int]]) -> TimedModel:
        """Creates a model from tuples, one per layer: name, bytes of each gradient, picoseconds of the
        forward pass, picoseconds of the backward pass.
        """
    def buckets(self, rule: str) -> list[int]:
        """Returns the number of bytes of each bucket, in the order of sending."""
    def iterate(self, rule: str, overlap: bool, costs: dict[int, tuple[int, int, int]]) -> Outcome:
        """Simulates an iteration. `costs` maps the size of an all_reduce to three times in
        picoseconds: in total, of reconfiguration, and of control.
        """
    @property
    def layers(self) -> list[tuple[str, list[int], int, int]]:
        """The name, the bytes of each gradient, and the picoseconds of the forward and the backward
        pass of each layer.
        """

@final
class Trace:
    """The trace of an MPI program, which `opticoll.read_trace` reads and `opticoll.replay` replays.

    Examples
    --------
    >>> import opticoll
    >>> trace = opticoll.read_trace(
    ...     b"# app=hello ranks=2\\\\nrank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns\\\\n"
    ...     b"0,Send,1,8,0,7,0,,100\\\\n1,Recv,0,0,8,7,0,,40\\\\n"
    ... )
    >>> trace
    <Trace 2 ranks, 2 events>
    >>> trace.ranks, trace.events, trace.messages, trace.has_calls, trace.plan
    (2, 2, (1, 8), True, None)
    """
    def __repr__(self) -> str: ...
    @property
    def events(self) -> int:
        """The number of calls; for a GOAL file, the number of operations; for a Chakra trace, the
        number of nodes.
        """
    def exported_from(self, plan: Plan | None) -> Trace:
        """Returns the same trace, with `plan` as the plan that was exported as this trace.

        Parameters
        ----------
        plan : Plan or None
            The plan, which must have a size; None for a trace without a plan.

        Raises
        ------
        TraceError
            The plan has no size.

        Examples
        --------
        >>> import opticoll
        >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=2,wavelengths=1", "ring")
        >>> plan = plan.with_size(16)
        >>> messages = b"num_ranks 2\\\\nrank 0 {\\\\nl0: send 8b to 1\\\\n}\\\\n"
        >>> messages += b"rank 1 {\\\\nl0: recv 8b from 0\\\\n}\\\\n"
        >>> trace = opticoll.read_trace(messages).exported_from(plan)
        >>> trace.plan == plan
        True
        """
    @property
    def has_calls(self) -> bool:
        """True if each rank of the trace makes one call after another; False for traces of single
        messages, and for graphs of dependent operations.
        """
    @property
    def messages(self) -> tuple[int, int]:
        """The number of point-to-point messages of the program, without collectives, and their bytes."""
    @property
    def plan(self) -> Plan | None:
        """The plan that was exported as this trace, or None.

        A replay on the plan's fabric executes the plan instead of the trace.
        """
    @property
    def ranks(self) -> int:
        """The number of ranks of the program."""

@final
class TrainingModel:
    """A neural network whose training can be timed: its layers with their parameters and operations.

    Parameters
    ----------
    spec : str
        A name, or a name with options, such as `resnet50` or `gpt:layers=12,width=768` (see
        `opticoll list models`, which also names the source of each model).
    sequence : int, optional
        Tokens of a sample; may exceed the positions of the model (default: as in `spec`).

    Raises
    ------
    TrainingError
        The model is unknown, or an option is unknown or out of range.

    Examples
    --------
    >>> import opticoll
    >>> model = opticoll.TrainingModel("resnet50")
    >>> model.name, model.label, model.parameters
    ('resnet50', 'ResNet50', 25557032)
    >>> model.sample, model.epoch_samples, model.operations
    ('image', 1281167, (8178368512, 16120709120))
    """
    def __new__(cls, spec: str, sequence: int | None = None) -> TrainingModel: ...
    @property
    def epoch_samples(self) -> int | None:
        """The number of samples in an epoch of the usual data set, or None."""
    @property
    def label(self) -> str:
        """The name of the model in figures, such as `ResNet50`."""
    def lacks_products_of(self, device: str) -> bool:
        """Returns whether a device computes products of 8-bit floats that the model does not have.

        Parameters
        ----------
        device : str
            A device such as `h100:precision=fp8`.

        Raises
        ------
        TrainingError
            The device is unknown.

        Examples
        --------
        >>> import opticoll
        >>> opticoll.TrainingModel("resnet50").lacks_products_of("h100:precision=fp8")
        True
        """
    def memory(self, batch: int) -> tuple[int, int, int, int, int]:
        """Returns the memory that training needs on a device, in bytes: weights, gradients, optimizer
        state, activations and working memory.

        Parameters
        ----------
        batch : int
            Samples per device and iteration.

        Raises
        ------
        OverflowError
            The batch is negative or not below 2^64.

        Examples
        --------
        >>> import opticoll
        >>> opticoll.TrainingModel("resnet50").memory(32)
        (51114064, 51114064, 306684384, 1422653952, 0)
        """
    @property
    def name(self) -> str:
        """The name of the model, such as `resnet50`."""
    @property
    def operations(self) -> tuple[int, int]:
        """The floating-point operations per sample of the forward pass, and of the backward pass."""
    def operators(
        self, samples: int, device: str, tensor: int = 1
    ) -> list[tuple[str, str, tuple[int, int], tuple[int, int], tuple[float, float]]]:
        """Returns the operators of all layers on one rank of a group, with their times.

        Parameters
        ----------
        samples : int
            Samples of a micro-batch.
        device : str
            A device such as `h100`.
        tensor : int
            Ranks that divide each matrix.

        Returns
        -------
        list
            Tuples of the layer, the operator, and three pairs for the forward and the backward
            pass: operations, bytes, and seconds.

        Raises
        ------
        TrainingError
            The device is unknown, or has an efficiency in place of the times of operators; or the
            model cannot be divided among `tensor` ranks.

        Examples
        --------
        >>> import opticoll
        >>> opticoll.TrainingModel("gpt2_small").operators(1, "h100")[2][:3]
        ('block0.query_key_value', 'product', (3623878656, 7247757312))
        """
    @property
    def parameters(self) -> int:
        """The number of trainable parameters."""
    @property
    def sample(self) -> str:
        """The noun for a sample, such as `image`."""
    def timed(
        self,
        batch: int,
        device: str | None = None,
        throughput: str | None = None,
        bytes_per_parameter: int = 4,
    ) -> TimedModel:
        """Returns the layers with their times on a device.

        Parameters
        ----------
        batch : int
            Samples per device and iteration.
        device : str, optional
            A device such as `a100:efficiency=0.4` (default: the first of `opticoll list devices`).
        throughput : str, optional
            A measured throughput of a device, such as `50TFLOP/s` or `1100images/s`, instead of the
            device's own.
        bytes_per_parameter : int
            Bytes of a gradient.

        Returns
        -------
        TimedModel
            `layers` is a list of (name, bytes of each gradient, forward time in picoseconds,
            backward time in picoseconds).

        Raises
        ------
        TrainingError
            The device is unknown, the throughput is malformed, or the batch is 0.

        Examples
        --------
        >>> import opticoll
        >>> opticoll.TrainingModel("resnet50").timed(32, "a100").layers[0]
        ('conv1', [37632], 872078282, 872078282)
        """
    def work(
        self,
        samples: int,
        tensor: int,
        layers: list[str] | None,
        without: list[str],
        backward: bool,
    ) -> DeviceWork:
        """Returns the work of one pass of some layers on one rank of a group.

        Parameters
        ----------
        samples : int
            Samples of a micro-batch.
        tensor : int
            Ranks that divide each matrix.
        layers : list of str, optional
            Names of the layers; None selects all layers.
        without : list of str
            Names of operators that are left out.
        backward : bool
            Whether the pass is the backward pass.

        Raises
        ------
        OverflowError
            A number is negative or not below 2^64.

        Examples
        --------
        >>> import opticoll
        >>> model = opticoll.TrainingModel("gpt3_175b")
        >>> expand = model.work(1, 8, ["block0.expand"], ["activation"], backward=False)
        >>> expand.seconds("h100:products=1,depth=0.000001,launch=0.000001")
        0.0003126770943641717
        """

@final
class Violation:
    """A rule that a plan violates at one place; `Plan.verify` returns a list of violations.

    Examples
    --------
    >>> import opticoll
    >>> plan = opticoll.plan("broadcast", "wdm_ring:ranks=4,wavelengths=1", "direct")
    >>> text = plan.to_text().replace("0>1", "0>2", 1)
    >>> violation, *more = opticoll.Plan.from_text(text).verify()
    >>> violation.kind, violation.transfers, violation.slot, violation.rank, violation.chunk
    ('duplicate', [2, 0], 1, 2, 0)
    >>> violation.link, violation.wavelength
    (None, None)
    >>> for clause in violation.sentence.split(", "):
    ...     print(clause)
    slot 1: transfer 2 (rank 0 to 2) brings chunk 0 to rank 2
    which gets it in slot 0 by transfer 0 (rank 0 to 2)
    """
    def __repr__(self) -> str: ...
    @property
    def chunk(self) -> int | None:
        """The chunk for which the plan violates the rule, or None if the rule concerns no chunk."""
    @property
    def kind(self) -> str:
        """The name of the rule, such as `missing` or `collision`."""
    @property
    def link(self) -> tuple[int, str, int] | None:
        """The ring's link concerned as (sending rank, direction `cw` or `ccw`, fibre), or None."""
    @property
    def rank(self) -> int | None:
        """The rank at which the plan violates the rule, or None if the rule concerns no rank."""
    @property
    def sentence(self) -> str:
        """A sentence that describes the violation."""
    @property
    def slot(self) -> int | None:
        """The slot in which the plan violates the rule, or None if the rule concerns no slot."""
    @property
    def transfers(self) -> list[int]:
        """The indices of the transfers that violate the rule, as a list, which may be empty."""
    @property
    def wavelength(self) -> int | None:
        """The wavelength concerned, or None if the rule concerns no wavelength."""

def burst_fixed_point(fabric: str, offered_load: float | int) -> float:
    """Returns the burst loss ratio of Poisson bursts to all destinations, with full wavelength
    conversion, by the reduced-load fixed point. `offered_load` is in Erlang per host.
    """

def burst_hosts(fabric: str) -> tuple[int, int, str]:
    """Returns the number of nodes of a network, the number of hosts per node, and the specification
    of an electrical fabric with the same nodes and links.
    """

def burst_rate(fabric: str) -> int:
    """Returns the rate of a wavelength of a network in bits per second."""

def call_names() -> list[str]:
    """Returns the names of the kinds of calls; a timeline refers to them by index."""

def carries_messages(fabric: Fabric, **settings: Unpack[Settings]) -> bool:
    """Returns whether the simulator of a fabric can time single messages, as programs send them."""

def check_algorithm(collective: str, name: str) -> None:
    """Checks that an algorithm of a collective has this name."""

def check_buckets(rule: str) -> str:
    """Checks a rule for buckets independently of the model, and returns its standard form."""

def check_bursts(fabric: str, settings: dict[str, str]) -> str:
    """Returns the complete specification of a burst-switched network. Raises the errors that
    `simulate_bursts` would raise.
    """

def check_settings(**settings: Unpack[Settings]) -> None:
    """Checks that settings are valid for at least one plan."""

def circuits_agree(plans: list[Plan]) -> bool:
    """Returns whether all circuits of the plans can be up at the same time."""

def collective_cost(plan: Plan, size_bytes: int, **settings: Unpack[Settings]) -> CollectiveCost:
    """Simulates a verified plan, and returns the cost of its collective."""

def collective_kind(name: str) -> str:
    """Returns the printed name of a collective for a name in any accepted spelling."""

def concurrent_flow_bound(
    kind: str, fabric: Fabric, lengths: list[int], root: int = 0
) -> tuple[int, int] | None:
    """Returns the lower bound that `lengths`, a length for each link, prove for all_to_all, scatter
    and gather: the time per block of 10^9 bytes in seconds, as a fraction. Returns None if
    `lengths` prove no bound.
    """

def delivered_plan(runs: Outcome, plan: Plan, run: int, collective: int) -> Plan:
    """Returns the transfers of one copy of `plan` in the order of their arrival, as a plan for the
    verifier. `run` is the index of the replication, and `collective` is the index of the copy.
    """

def device_constants(device: str) -> list[tuple[str, float]]:
    """Returns the constants of a device that are fitted to measured times, by name."""

def device_memory(device: str | None = None) -> int:
    """Returns the memory of a device in bytes (default: of the default device)."""

def engset(sources: int, load: float | int, servers: int) -> float:
    """Returns the call congestion of Engset's formula: the share of calls that are blocked."""

def erlang_b(load: float | int, servers: int) -> float:
    """Returns the blocking probability of Erlang's B formula for an offered `load` in Erlang."""

def expected_traffic(
    fabric: Fabric, traffic: str, **settings: Unpack[Settings]
) -> tuple[int, int, int]:
    """Forecasts the work of `simulate_traffic`: the number of messages, the number of chunks, and the
    approximate number of forwards by routers.
    """

def expert_weights(
    model: str, skew: str, ranks: int, micro_batches: int = 1
) -> tuple[list[list[list[tuple[int, list[int]]]]], list[int]]:
    """Returns the weights of experts that a rule such as `zipf:exponent=1.2,seed=0` describes: tables,
    and the number of the table of each micro-batch. Tables have, by layer and source, the source's
    tokens in millionths of the tokens of a micro-batch, and the weight of each expert. Raises
    TrainingError for an unknown rule.
    """

def fields_of(result: str) -> list[FieldRecord]:
    """Returns the name, unit and meaning of every total of a type of results, and of every column. A
    column is named `table.column`.
    """

def format_size(size_bytes: int) -> str:
    """Writes a size in the largest unit in which it is a whole number.

    Parameters
    ----------
    size_bytes : int
        The size in bytes.

    Raises
    ------
    OverflowError
        The number is negative or not below 2^64.

    Examples
    --------
    >>> import opticoll
    >>> opticoll.format_size(4194304)
    '4MiB'
    """

def format_time(time_ps: int) -> str:
    """Writes a time as an exact decimal number with its unit.

    Parameters
    ----------
    time_ps : int
        The time in picoseconds.

    Raises
    ------
    OverflowError
        The number is negative or not below 2^64.

    Examples
    --------
    >>> import opticoll
    >>> opticoll.format_time(1500000)
    '1.5us'
    """

def generated_demand(spec: str, ranks: int) -> Demand:
    """Returns the demand of a generator such as `zipf:exponent=1.2,seed=0` for `ranks` ranks."""

def interrupt_all() -> None:
    """Stops all work of the compiled core on every thread: each call in progress raises
    `KeyboardInterrupt`.

    Examples
    --------
    >>> import opticoll
    >>> opticoll.interrupt_all()
    """

def library_numbers(name: str) -> list[tuple[str, str, str, int, int, int]]:
    """Returns the costs of the record of a library that is called `name`. Raises KeyError if there is
    no such record.
    """

def library_times(plan: Plan, sizes: list[int], library: str) -> list[tuple[int, str]]:
    """Returns the times of NCCL's own collectives that run like `plan`, as pairs of picoseconds and
    protocol, for several sizes. `library` has the options `library` and costs of `gpu_servers`; its
    name is ignored.
    """

def make_plan(
    schedule: Schedule,
    fabric: Fabric,
    algorithm: str,
    wavelength: str = "auto",
    size_bytes: int | None = None,
) -> Plan:
    """Makes a plan of a copy of a schedule: routes its transfers and assigns wavelengths."""

def memory_limit() -> int | None:
    """Returns the limit in bytes: the limit that the user set, or the memory that the machine has
    available. Returns None if this memory is unknown.
    """

def parameter_memory(parameters: int) -> tuple[int, int, int]:
    """Returns the bytes that parameters need on a device, for weights, gradients and optimizer."""

def parse_size(text: str) -> int:
    """Converts a size with its unit to a whole number of bytes.

    Parameters
    ----------
    text : str
        A size such as `4MiB`.

    Raises
    ------
    UnitError
        The text is malformed, has no unit, or is no whole number of bytes.

    Examples
    --------
    >>> import opticoll
    >>> opticoll.parse_size("4MiB")
    4194304
    """

def parse_time(text: str) -> int:
    """Converts a time with its unit to a whole number of picoseconds.

    Parameters
    ----------
    text : str
        A time such as `25us`.

    Raises
    ------
    UnitError
        The text is malformed, has no unit, or is no whole number of picoseconds.

    Examples
    --------
    >>> import opticoll
    >>> opticoll.parse_time("25us")
    25000000
    """

def pickled_outcome(totals: list[Any], tables: list[Any]) -> Outcome:
    """Restores a pickled outcome."""

def pickled_plan(
    text: str, asked: str | None, candidates: list[tuple[str, int, int, str]], reasons: list[str]
) -> Plan:
    """Restores a pickled plan, with the candidates that `auto` compared."""

def place_ranks(
    fabric: str,
    plan: Plan,
    copies: int,
    size: int | str,
    starts: list[list[int]],
    *,
    search: bool = True,
) -> tuple[list[int], int, int, bool]:
    """Places the ranks of `copies` copies of a plan on hosts. Returns the host of each rank, the cost
    in bytes times hops, a lower bound on the cost, and True if the cost is the minimum.

    The search starts from the placements `starts`, among others. If `search` is false, the first of
    them is evaluated instead.
    """

def plan(
    kind: str,
    fabric: Fabric,
    algorithm: str,
    *,
    root: int = 0,
    wavelength: str = "auto",
    size_bytes: int | None = None,
    watch: Callable[[str], object] | None = None,
    demand: Demand | None = None,
    refuse: Callable[[Plan], str | None] | None = None,
    **settings: Unpack[Settings],
) -> Plan:
    """Makes a plan by an algorithm, whose schedule gets routes and wavelengths, or by a planner such
    as relay_tree or auto.

    A planner plans for `size_bytes` (default: 4 MiB) and for the settings. `auto` calls `watch`
    with the name of each candidate before it builds the candidate. It selects the fastest plan for
    which `refuse` returns None; otherwise `refuse` returns the reason.
    """

def plans_for(collective: str, algorithm: str, fabric: Fabric) -> bool:
    """Returns False if the algorithm is a planner for another kind of fabric, such as fabrics with
    links.
    """

def read_chakra(contents: list[bytes]) -> Trace:
    """Reads an execution trace from the contents of its Chakra files, one for each rank. Raises
    TraceError.
    """

def read_goal_schedule(text: str) -> Schedule:
    """Reads the schedule that a GOAL file states in its comments. Raises TraceError, which names the
    line.
    """

def read_trace(
    content: bytes | bytearray, form: str, operations_per_second: int = 1000000000
) -> Trace:
    """Reads a trace in the format `table`, `time_independent` or `goal`.

    Raises TraceError, which names the line, the byte, or the rank and event.
    """

def records(kind: str) -> list[Record]:
    """Returns the records of a kind, such as `algorithms`. Raises KeyError if there is no such kind."""

def relay_tree_costs(ranks: int, depth: int) -> list[int]:
    """Returns the minimum total lengths, in links, of relay trees over `ranks` ranks with depth 1, 2
    and so on up to `depth`.
    """

def replan(
    plan: Plan,
    failed: str,
    algorithm: str = "auto",
    size: int | str | None = None,
    **settings: Unpack[Settings],
) -> tuple[Plan, int, int]:
    """Plans a collective anew after failures. Returns the new plan, the time of the old plan on the
    old fabric, and the time of the new plan on the remaining fabric. Times are in picoseconds.

    Raises FabricError for invalid failures, and AlgorithmError if no plan exists.
    """

def replay_trace(
    trace: Trace,
    network: str,
    algorithms: dict[str, str],
    *,
    compute_factor: tuple[int, int] = ...,
    rank_factors: dict[int, tuple[int, int]] = ...,
    overhead_ps: int = 0,
    eager_bytes: int | None = None,
    rendezvous: bool = False,
    timeline: bool = False,
    bursts: dict[str, str] | None = None,
    **settings: Unpack[Settings],
) -> Outcome:
    """Replays a trace on a fabric, or with a cost model such as `zero`, `hockney:...`, `loggp:...` or
    `lightpath_grid:...`.

    With `bursts`, which are settings of lightpaths and bursts, the network is a network of
    `simulate_bursts`, and each message requests a lightpath. Raises FabricError, SimulationError,
    AlgorithmError, or TraceError, which names the rank, the event and the line if they are known.
    """

def rounded_rate(text: str) -> str | None:
    """Returns the rounded value of a rate such as `4.7GiB/s`. Returns None if the rate is a whole
    number of bits per second.
    """

def set_memory_limit(limit: str | None) -> None:
    """Limits the memory that the compiled core may use, as estimated before each computation.

    Parameters
    ----------
    limit : str or None
        A size such as `4GiB`; None for the memory that the machine has available.

    Raises
    ------
    UnitError
        The text is not a size.

    Examples
    --------
    >>> import opticoll
    >>> opticoll.set_memory_limit("4GiB")
    >>> opticoll.set_memory_limit(None)
    """

def simulate_bursts(
    fabric: str,
    settings: dict[str, str],
    *,
    threads: int = 1,
    progress: Callable[[int, int], object] | None = None,
) -> Outcome:
    """Simulates bursts on a network with wavelengths. `settings` are texts, by the names of the
    records `burst_settings`.

    `progress` is called with the number of bursts measured so far and the number to be measured; an
    exception in `progress` ends the simulation. The outcome does not depend on the number of
    threads. Raises FabricError, or SimulationError, whose attribute `setting` names the wrong
    setting.
    """

def simulate_collectives(
    fabric: str,
    plan: Plan,
    places: list[list[int]],
    size: int | str,
    settings: dict[str, str],
    *,
    external: bool = True,
    threads: int = 1,
    progress: Callable[[int], object] | None = None,
) -> Outcome:
    """Simulates copies of a plan that run concurrently over lightpaths. `places` has the host of each
    rank, for each copy.

    `settings` are texts, by the names of the records `congestion_settings` and `burst_settings`. If
    `external` is false, there are no background bursts. `progress` is called with the number of
    completed replications; an exception in it ends the run. The outcome does not depend on the
    number of threads. Raises FabricError, ScheduleError for a plan with lightpaths, or
    SimulationError, whose attribute `setting` names the setting at fault, if there is one.
    """

def simulate_tasks(
    tasks: list[tuple[Plan, int, int, int]],
) -> list[tuple[int, int, int, int, int, int, Outcome]]:
    """Simulates tasks on one wss_grid. A task is (plan, bytes, number of rounds, time of its request
    in picoseconds).

    Returns for each task the times of admission, start and end in picoseconds, the number of
    messages of the arbiter, the number of ports, the number of switch settings, and the outcome of
    one round. Raises SimulationError.
    """

def simulate_traffic(
    fabric: Fabric,
    traffic: str,
    *,
    watch: Callable[[int, int, int], None] | None = None,
    timeline: bool = False,
    **settings: Unpack[Settings],
) -> Outcome:
    """Simulates traffic on a fabric, packet by packet, without a collective."""

def slots_bound(kind: str, fabric: Fabric, root: int = 0) -> tuple[int, str, str]:
    """Returns the lower bound on the number of slots of plans that send whole blocks, with the bound's
    name and assumption.
    """

def take_memory(what: str, bytes: int) -> None:
    """Raises an error if a computation needs more memory than the limit, before it starts.

    Parameters
    ----------
    what : str
        The computation, as the error names it.
    bytes : int
        The estimated memory in bytes.

    Raises
    ------
    MemoryLimitError
        The estimate is above the limit.

    Examples
    --------
    >>> import opticoll
    >>> opticoll._core.take_memory("reading `a.json`", 1000)
    """

def task_conflicts(plans: list[Plan]) -> list[Violation]:
    """Returns the violations of plans that use one grid at the same time."""

def throughput_optimum(
    kind: str, fabric: Fabric, root: int = 0
) -> tuple[tuple[int, int], tuple[int, int] | None] | None:
    """Returns the throughput optimum in seconds for 10^9 bytes, as two fractions (numerator,
    denominator).

    No plan takes less time than the first fraction. Some plan takes at most the second fraction,
    which is None if no such plan is known. Returns None if not even a lower bound is known.
    """

def time_bound(
    kind: str,
    fabric: Fabric,
    size_bytes: int,
    policy: str | None,
    root: int = 0,
    paths: str | None = None,
    simulator: str | None = None,
    placement: str | None = None,
    demand: Demand | None = None,
) -> tuple[int | None, str | None, str]:
    """Returns a lower bound on the time of any plan: picoseconds, name of the bound, assumption.

    Without a bound, returns None, None and the reason, for example that flows do not share the
    cables of a rank. `placement`, which the packet simulator uses, also moves the root.
    """

def time_bounds(
    kind: str,
    fabric: Fabric,
    size_bytes: int,
    root: int = 0,
    policy: str | None = None,
    paths: str | None = None,
    demand: Demand | None = None,
) -> tuple[
    str | None,
    list[
        tuple[
            int,
            str,
            str,
            tuple[list[int], int, list[str], list[int], tuple[int, int, int] | None] | None,
        ]
    ],
]:
    """Returns the policy to which the bounds apply (None on electrical fabrics), and every lower bound
    on the time of any plan.

    A bound has a time in picoseconds, a name, an assumption and a witness. The witness of a cut has
    the ranks on one side, the number of parts that these ranks form, and the names of the links
    between the sides. The witness of link lengths has the names and the lengths of links. The
    witness of trees of lightpaths has the number of slots, the links of all trees, and the number
    of trees. With a demand over circuits, the list contains the bound `direct`, which applies only
    to plans without relays.
    """

def uncharged_setup_ps(fabric: Fabric, policy: str) -> int:
    """Returns the picoseconds of a setup of circuits between two plans; 0 if `policy` charges no
    setup, or if the time of each plan contains its first setup.
    """

def unite(
    plan: Plan,
    fabric: Fabric,
    groups: list[list[int]],
    size_bytes: int,
    **settings: Unpack[Settings],
) -> tuple[Plan, int, list[Violation]]:
    """Unites the plans of groups of ranks that carry out `plan` at the same time, each for its own
    members. Returns the plan on the whole fabric, its size in bytes, and its violations.
    """

def write_messages(plan: Plan, path: str | PathLike[str], form: str, size_bytes: int) -> None:
    """Writes the messages of a plan to a file, in the format `goal` or `time_independent`.

    Raises OSError, or TraceError if the format cannot express the messages.
    """
