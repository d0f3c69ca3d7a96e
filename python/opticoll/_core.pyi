"""The compiled core. Everything numeric happens there; see the modules of this package for use."""

from collections.abc import Callable, Iterator
from os import PathLike
from typing import Any, Literal, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from opticoll.settings import Settings

Float64 = NDArray[np.float64]
UInt64 = NDArray[np.uint64]

__version__: str
CONVERTED: int  # in the column `wavelength`: converters choose it link by link

class OpticollError(Exception):
    field: tuple[str | int, ...]  # the argument at fault; set by `opticoll.compare` only

class UnitError(OpticollError): ...

class FabricError(OpticollError):
    option: str | None  # the option at fault, if it is one

class CollectiveError(OpticollError): ...
class AlgorithmError(OpticollError): ...
class ScheduleError(OpticollError): ...
class WavelengthError(OpticollError): ...
class PlanFileError(OpticollError): ...

class SimulationError(OpticollError):
    setting: str | None  # the setting at fault, if it is one

class MemoryLimitError(OpticollError): ...
class TraceError(OpticollError): ...
class TrainingError(OpticollError): ...

class Record(TypedDict):
    """One entry of `list`: an algorithm, fabric family, preset, simulator, policy or assignment."""

    name: str
    label: str
    summary: str
    citation: str
    options: list[tuple[str, str]]  # option, meaning
    collective: str | None  # of an algorithm, else None
    by_size: bool  # whether an algorithm's plans depend on the size and the policy
    family: str | None  # the only family of fabrics that an algorithm is for; None is any

class Drawing(TypedDict):
    """How a fabric is drawn, as its family usually is, or by the distances of its links."""

    places: NDArray[np.float64]  # a row a vertex, ranks first: x to the right, y upwards
    around: NDArray[np.uint32]  # links that lead from one side of the picture to the other

class Fabric:
    def __init__(self, spec: str, /, **options: str | int) -> None:
        """Options replace or complete those of the spec."""
    @property
    def spec(self) -> str: ...  # complete spelling
    @property
    def family(self) -> str: ...
    @property
    def words(self) -> str: ...  # what it is made of: `16 ranks, 1 fibre per direction, ...`
    @property
    def ranks(self) -> int: ...
    @property
    def electrical(self) -> bool: ...  # links and routes, no light
    @property
    def link_count(self) -> int: ...  # of an electrical fabric
    @property
    def link_names(self) -> list[str]: ...  # of an electrical fabric, by the number of the link
    def link_name(self, link: int) -> str | None: ...
    @property
    def link_rates(self) -> list[int]: ...  # bits per second
    @property
    def link_ends(self) -> list[tuple[int, int]] | None:
        """From and to of each link, ranks first and then routers; None where they are not known."""
    @property
    def drawing(self) -> Drawing | None: ...  # of an electrical fabric
    @property
    def dragonfly_shape(self) -> tuple[int, int, int] | None:
        """Groups, routers per group and ranks per router of a dragonfly."""
    def route(self, source: int, destination: int) -> list[int]:
        """The links from a rank to another one; raises FabricError where there is no route."""
    @property
    def ring(self) -> bool: ...  # whether light goes around a ring
    @property
    def grid(self) -> tuple[int, int] | None: ...  # rows and columns of tunable circuits
    @property
    def grid_nodes(self) -> list[int]: ...  # the node of each rank of a grid
    @property
    def grid_dark(self) -> list[tuple[int, int]]: ...  # rank, and plane that no light reaches
    @property
    def control_ps(self) -> int | None: ...  # a control message of a grid
    @property
    def slow_switch_ps(self) -> int | None: ...  # to set a grid's switches, once for a task
    @property
    def path_ports(self) -> int | None: ...  # ports of a rank for light paths
    @property
    def path_times_ps(self) -> tuple[int, int, int] | None: ...  # latency, to set up, to release
    @property
    def light_fields(self) -> list[tuple[str, str, list[str]]]: ...  # name, meaning, named values
    @property
    def has_wavelengths(self) -> bool: ...  # whether plans say which wavelength carries what

    # What follows is refused for electrical fabrics.
    @property
    def wavelengths(self) -> int: ...
    @property
    def fibres(self) -> int: ...
    @property
    def rate_bits_per_second(self) -> int: ...
    @property
    def reconfiguration_ps(self) -> int: ...
    @property
    def simulator(self) -> str: ...  # that times plans where none is named
    @property
    def injection_bandwidth(self) -> int: ...  # bits per second; the least of ranks that differ
    def with_options(self, **options: str | int) -> Fabric: ...  # the same with other options

class Collective:
    def __init__(self, kind: str, ranks: int, *, root: int = 0, pieces: int = 1) -> None: ...
    @property
    def kind(self) -> str: ...
    @property
    def ranks(self) -> int: ...
    @property
    def root(self) -> int: ...
    @property
    def pieces(self) -> int: ...
    @property
    def chunks(self) -> int: ...
    @property
    def combines(self) -> bool: ...
    @property
    def size_convention(self) -> str: ...
    def before(self, chunk: int) -> int | None: ...  # the rank, or None for all ranks
    def after(self, chunk: int) -> int | None: ...

class Schedule:
    def __init__(self, collective: Collective) -> None: ...
    def step(
        self,
        chunk: Any,
        source: Any,
        destination: Any,
        count: Any = 1,
        action: Literal["copy", "reduce"] = "copy",
    ) -> None:
        """Append one step.

        chunk, source, destination and count are integers or arrays of integers with one
        dimension; a single number holds for all transfers of the step. Raises ScheduleError.
        """
    def claim(
        self,
        *,
        paper_steps: int | None = None,
        schedule_steps: int | None = None,
        chunks_sent_per_rank: int | None = None,
        neighbours_only: bool = False,
    ) -> None:
        """Replace the claims; all but paper_steps are enforced by the verifier."""
    @property
    def collective(self) -> Collective: ...
    @property
    def steps(self) -> int: ...
    def __len__(self) -> int: ...

class Violation:
    @property
    def kind(self) -> str: ...
    @property
    def transfers(self) -> list[int]: ...
    @property
    def slot(self) -> int | None: ...
    @property
    def rank(self) -> int | None: ...
    @property
    def chunk(self) -> int | None: ...
    @property
    def link(self) -> tuple[int, str, int] | None: ...  # rank it starts at, cw|ccw, fibre
    @property
    def wavelength(self) -> int | None: ...
    @property
    def sentence(self) -> str: ...

class Plan:
    @staticmethod
    def from_text(text: str) -> Plan: ...
    def to_text(self) -> str: ...
    @property
    def fabric(self) -> Fabric: ...
    @property
    def collective(self) -> Collective: ...
    @property
    def algorithm(self) -> str: ...
    @property
    def asked(self) -> str: ...  # `auto` where it chose the algorithm, else the algorithm
    @property
    def size_bytes(self) -> int | None: ...
    def with_size(self, size_bytes: int) -> Plan: ...
    @property
    def slots(self) -> int: ...
    @property
    def step_slots(self) -> list[int]: ...  # slots of each step of the schedule
    def __len__(self) -> int: ...  # transfers
    @property
    def folded(self) -> bool: ...  # kept as what rank 0 sends, for all ranks
    @property
    def wavelengths_used(self) -> int: ...
    @property
    def configurations(self) -> int: ...
    @property
    def bound(self) -> tuple[int, str, str] | None:
        """The lower bound on slots, its name and its assumption."""
    @property
    def candidates(self) -> list[tuple[str, int, int, str]]:
        """What `auto` compared, the chosen one first, then by time.

        Name, slots, time in picoseconds, and why it was left out: empty where it was made and
        simulated. Where it was not, slots and time are the least that they may be.
        """
    @property
    def reasons(self) -> list[str]: ...  # why `auto` chose this plan
    @property
    def claimed_steps(self) -> int | None: ...
    def columns(self) -> dict[str, NDArray[Any]]:
        """One entry a transfer, in the order of the schedule.

        chunk, count, source, destination, action (0 copy, 1 reduce), the fields of light that
        `Fabric.light_fields` names, slot. On a ring, direction (0 cw, 1 ccw), fibre and
        wavelength (CONVERTED: converted on the way); on electrical fabrics no light.
        Raises ScheduleError for a folded plan of more than 2^26 transfers.
        """
    def slot_columns(self, slot: int) -> dict[str, NDArray[Any]]:
        """The columns of one slot, and `transfer`: the indices in the whole plan."""
    def hop_columns(self, slot: int | None = None) -> dict[str, NDArray[Any]]:
        """On a grid, the hops of one slot, or of all.

        transfer, source, destination, slot, plane (0 row, 1 column), wavelength.
        """
    def ends(self, transfer: int) -> tuple[int, int]: ...  # source and destination
    def verify(self) -> list[Violation]:
        """Everything wrong; transfers of a folded plan are orbits, for all their rotations."""
    def simulate(
        self,
        size: int | str | None = None,
        *,
        watch: Callable[[int, int, int], None] | None = None,
        timeline: bool = False,
        **settings: Unpack[Settings],
    ) -> Outcome:
        """Run a simulator; the size in bytes or as text with a unit, else the plan's own.

        On rings: circuit under the policy every_step, if nothing else is said. On electrical
        fabrics: fluid. The packet simulator calls `watch(events, messages_delivered, time_ps)` now
        and then, and measures the table `timeline` if asked.
        Raises SimulationError, with the attribute `setting` where one is at fault.
        """
    def expected_packets(
        self, size: int | str | None = None, **settings: Unpack[Settings]
    ) -> tuple[int, int, int]:
        """The packet simulator's work: messages, chunks, about how many forwards by routers."""
    def message_times(
        self, size: int | str | None = None, start: str = "rendezvous"
    ) -> list[tuple[int, int, int]]:
        """(first transfer, start_ps, end_ps) of each message as plain flows, electrical fabrics."""

class FieldRecord(TypedDict):
    """A total of an outcome, or a column of a table."""

    name: str
    unit: str
    meaning: str

class Table:
    """Columns by name, each an array of the table's shape, or a list of texts or of None.

    Iteration gives one dictionary of plain values for each row.
    """

    @property
    def name(self) -> str: ...
    @property
    def row(self) -> str: ...  # what a row is
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def axes(self) -> tuple[str, ...]: ...
    @property
    def columns(self) -> dict[str, Any]: ...
    def describe(self) -> list[FieldRecord]: ...
    def rows(self) -> list[dict[str, Any]]: ...
    def __getitem__(self, name: str) -> Any: ...
    def __contains__(self, name: str) -> bool: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def __len__(self) -> int: ...  # rows

class Outcome:
    """The result of a simulation: totals, and tables of columns.

    Both are attributes, too: `outcome.time_ps`, `outcome.slots["start_ps"]`.
    """

    @property
    def totals(self) -> dict[str, Any]: ...
    @property
    def tables(self) -> dict[str, Table]: ...
    def describe(self) -> list[FieldRecord]: ...
    def __getattr__(self, name: str) -> Any: ...

def simulate_traffic(
    fabric: Fabric,
    traffic: str,
    *,
    watch: Callable[[int, int, int], None] | None = None,
    timeline: bool = False,
    **settings: Unpack[Settings],
) -> Outcome:
    """Traffic alone, such as `uniform:bytes=2KiB,period=1us,messages=100`, packet by packet.

    Raises SimulationError.
    """

def expected_traffic(
    fabric: Fabric, traffic: str, **settings: Unpack[Settings]
) -> tuple[int, int, int]:
    """Its work: messages, chunks, about how many forwards by routers."""

def traffic_patterns() -> dict[str, str]: ...  # name, what it is

class CollectiveCost(TypedDict):
    """What a collective costs, and how that was found; parts of the time are within it."""

    time_ps: int
    reconfiguration_ps: int
    control_ps: int
    simulator: str
    policy: str | None
    start: str | None

class TrainingModel:
    def __init__(self, spec: str) -> None:
        """A model such as `resnet50`; raises TrainingError."""
    def memory(self, batch: int) -> tuple[int, int, int, int]: ...
    # bytes on a device: weights, gradients, optimizer, activations
    @property
    def name(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def sample(self) -> str: ...  # what one is
    @property
    def epoch_samples(self) -> int | None: ...  # of the data that it is known for
    @property
    def parameters(self) -> int: ...
    @property
    def operations(self) -> tuple[int, int]: ...  # for a sample: forward, backward
    def timed(
        self,
        batch: int,
        device: str | None = None,
        throughput: str | None = None,
        bytes_per_parameter: int = 4,
    ) -> TimedModel:
        """The layers with their times on a device, or where one is given at a throughput."""

class TimedModel:
    def __init__(self, layers: list[tuple[str, list[int], int, int]]) -> None:
        """Name, bytes of each gradient, picoseconds forward and backward of each layer."""
    @property
    def layers(self) -> list[tuple[str, list[int], int, int]]: ...
    def buckets(self, rule: str) -> list[int]: ...  # bytes, in the order of sending
    def iterate(
        self, rule: str, overlap: bool, costs: dict[int, tuple[int, int, int]]
    ) -> Iteration:
        """Costs by size in bytes: picoseconds in all, of reconfiguration, of control."""

class Iteration:
    """`time_ps` is the sum of compute, exposed, reconfiguration and control."""

    @property
    def time_ps(self) -> int: ...
    @property
    def compute_ps(self) -> int: ...
    @property
    def forward_ps(self) -> int: ...
    @property
    def exposed_ps(self) -> int: ...
    @property
    def reconfiguration_ps(self) -> int: ...
    @property
    def simulator(self) -> str: ...  # that times plans where none is named
    @property
    def injection_bandwidth(self) -> int: ...  # bits per second; the least of ranks that differ
    @property
    def control_ps(self) -> int: ...
    @property
    def sending_ps(self) -> tuple[int, int, int]:
        """Everything sent, hidden or not: all, of reconfiguration, of control."""
    @property
    def buckets(self) -> dict[str, UInt64]:
        """One entry a bucket: bytes, tensors, layer, ready_ps, start_ps, end_ps."""

def collective_cost(plan: Plan, size_bytes: int, **settings: Unpack[Settings]) -> CollectiveCost:
    """Simulate a plan that was verified."""

def check_buckets(rule: str) -> str: ...  # as spelled in full; raises TrainingError
def device_memory(device: str | None = None) -> int: ...  # bytes; raises TrainingError
def parameter_memory(parameters: int) -> tuple[int, int, int]: ...

# bytes of weights, gradients and the optimizer's state

class BurstOutcome:
    @property
    def bursts(self) -> int: ...  # measured
    @property
    def lost(self) -> int: ...
    @property
    def loss(self) -> float: ...
    @property
    def loss_low(self) -> float: ...  # 95 %: the wider of batch means and exact binomial
    @property
    def loss_high(self) -> float: ...
    @property
    def lost_at(self) -> dict[str, int]: ...  # links, converters, receivers
    @property
    def mean_wait_ps(self) -> int: ...  # for the transmitter
    @property
    def simulated_seconds(self) -> float: ...  # in all replications together
    @property
    def network(self) -> str: ...
    @property
    def by_hops(self) -> dict[str, UInt64]: ...  # offered, lost: by links on the way, from 0
    @property
    def by_pair(self) -> dict[str, UInt64]: ...  # offered, lost: (nodes, nodes)
    @property
    def moments(self) -> dict[str, UInt64]: ...  # end_ps, offered, lost: one entry a round
    @property
    def links(self) -> dict[str, NDArray[Any]]: ...  # utilisation, wasted, refused
    @property
    def link_names(self) -> list[str]: ...

class Trace:
    """Calls of all ranks of a program, or, of GOAL, its messages and local work."""

    @property
    def ranks(self) -> int: ...
    @property
    def events(self) -> int: ...  # calls; of GOAL, operations
    @property
    def messages(self) -> tuple[int, int]: ...  # of the program itself, and their bytes
    @property
    def has_calls(self) -> bool: ...

class EventTable:
    """Calls of ranks that come as columns, a batch of rows at a time."""

    def __init__(self, ranks: int | None, communicators: dict[int, list[int]]) -> None: ...
    def extend(
        self,
        names: list[str],
        call: NDArray[np.uint32],
        numbers: list[NDArray[np.uint64]],
        sizes: list[tuple[int, list[int]]],
    ) -> None:
        """Append rows: names of calls, of each row the index of its call, and its numbers.

        The numbers are rank, peer, send_bytes, recv_bytes, tag, comm, req and compute_ns, 2^64 - 1
        for one that is missing; `sizes` are rows of an Alltoallv with the bytes for each member.
        Raises TraceError, which names the row.
        """
    def finish(self) -> Trace:
        """The trace of all rows; raises TraceError."""

def read_goal_file(path: str | PathLike[str]) -> Trace:
    """Read binary GOAL rank by rank, without holding the file; raises OSError and TraceError."""

def read_trace(content: bytes, form: str, operations_per_second: int = ...) -> Trace:
    """A trace of the form `table`, `time_independent`, `goal` or `goal_binary`.

    The lines of a `table` are in no file, and no message names them.

    Raises TraceError, which names line, byte, or rank and event.
    """

class CallColumns(TypedDict):
    """A kind of call: by rank how often it was made and the time inside; what it sent in all."""

    calls: NDArray[np.uint64]
    time_ps: NDArray[np.uint64]
    messages: int
    bytes: int

class ReplayLightPaths(TypedDict, total=False):
    """What light paths cost; the last three only where waiting is simulated."""

    set_ups: int
    setting_up_ps: int
    waited: int
    waiting_ps: int
    most_at_once: int
    refusals: int  # in a network of bursts, as what follows
    bursts: int
    bursts_lost: int

class Replay:
    """A program that was replayed over a network."""

    @property
    def time_ps(self) -> int: ...
    @property
    def messages(self) -> int: ...
    @property
    def bytes(self) -> int: ...
    @property
    def events(self) -> int: ...  # of the replay itself
    @property
    def nodes(self) -> int: ...  # messages, receives, and pieces of local work
    @property
    def simulator(self) -> str: ...
    @property
    def network(self) -> str: ...
    @property
    def light_paths(self) -> ReplayLightPaths | None: ...
    @property
    def chosen(self) -> list[tuple[str, int, int | None, str, str]]: ...  # of each collective:
    # its kind, its ranks, the bytes planned for, what was asked for, the algorithm
    @property
    def busiest_link(self) -> tuple[str, float] | None: ...  # with the share of its rate used
    @property
    def ranks_columns(self) -> dict[str, NDArray[np.uint64]]: ...
    @property
    def calls(self) -> dict[str, CallColumns]: ...
    @property
    def timeline(self) -> dict[str, NDArray[Any]]: ...  # rank, event, call, start_ps, end_ps

def call_names() -> list[str]: ...  # by their number in a time-line
def replay_trace(
    trace: Trace,
    network: str,
    algorithms: dict[str, str],
    *,
    compute_factor: tuple[int, int] = (1, 1),
    overhead_ps: int = 0,
    eager_bytes: int | None = None,
    rendezvous: bool = False,
    timeline: bool = False,
    bursts: dict[str, str] | None = None,
    **settings: Unpack[Settings],
) -> Replay:
    """Replay a trace over `zero`, `hockney:...`, `loggp:...`, `light_path_grid:...` or a fabric.

    With `bursts`, settings of light paths and of bursts (`congestion_settings`, `burst_settings`),
    over a network as of `simulate_bursts`, in which each message asks for a light path.

    Raises FabricError, SimulationError, AlgorithmError, and TraceError, which names rank, event and
    line where one is at fault.
    """

def simulate_bursts(
    fabric: str,
    settings: dict[str, str],
    *,
    threads: int = 1,
    progress: Callable[[int, int], object] | None = None,
) -> BurstOutcome:
    """Simulate bursts on `ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s` or the like.

    The settings are those of `burst_settings`. `progress` is called with bursts measured and to be
    measured; what it raises ends the run. The outcome does not depend on the number of threads.
    Raises FabricError, or SimulationError with the attribute `setting` where one is at fault.
    """

def check_bursts(fabric: str, settings: dict[str, str]) -> str:
    """The network in full words; raises what `simulate_bursts` would raise."""

class CollectiveRuns:
    def __len__(self) -> int: ...  # replications
    @property
    def network(self) -> str: ...
    @property
    def failed(self) -> int: ...  # replications in which a collective gave up
    @property
    def mean_seconds(self) -> float | None: ...  # of the others, like the next
    @property
    def interval_seconds(self) -> tuple[float, float] | None: ...  # 95 %, Student's; None of < 2
    @property
    def times_ps(self) -> list[int | None]: ...  # None where a collective gave up
    @property
    def columns(self) -> dict[str, UInt64]:
        """Of each replication: refusals, phases, degraded, waited_ps, bursts, bursts_lost."""

    def failure(
        self, run: int, collective: int
    ) -> tuple[int, tuple[int, int], int, int] | None: ...  # step, hosts, tries, ps
    def executed(self, run: int, collective: int) -> Plan:
        """The transfers that arrived, in the order in which they did."""

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
) -> CollectiveRuns:
    """Copies of a plan at once over light paths; `places` are the hosts of each one's ranks.

    The settings are those of `congestion_settings` and `burst_settings`. Without `external` there
    are no bursts. `progress` is called with the number of replications so far; what it raises ends
    the run. The outcome does not depend on the number of threads. Raises FabricError, ScheduleError
    for a plan with light, or SimulationError with the attribute `setting` where one is at fault.
    """

def burst_rate(fabric: str) -> int: ...  # bits per second of a wavelength
def burst_hosts(fabric: str) -> tuple[int, int]: ...  # nodes, hosts at each
def place_ranks(
    fabric: str,
    plan: Plan,
    copies: int,
    size: int | str,
    starts: list[list[int]],
    *,
    search: bool = True,
) -> tuple[list[int], int, int, bool]:
    """Computers of all ranks, bytes times hops, a lower bound, whether it is the least.

    The search sets out from `starts` among others; without it the first of them is judged.
    """

def congestion_settings() -> list[Record]: ...
def congestion_policies() -> list[Record]: ...
def burst_settings() -> list[Record]: ...
def erlang_b(load: float, servers: int) -> float: ...
def engset(sources: int, load: float, servers: int) -> float: ...  # load of a source that pauses
def burst_fixed_point(fabric: str, intensity: float) -> float:
    """Loss of Poisson bursts with full conversion: the reduced-load fixed point."""

def interrupt_all() -> None:
    """Stop all work of the core, on every thread: each call raises KeyboardInterrupt."""

def set_memory_limit(limit: str | None) -> None:
    """The limit on forecasts of memory, such as 4GiB; None: what the machine has left."""

def parse_size(text: str) -> int: ...
def parse_time(text: str) -> int: ...
def rounded_rate(text: str) -> str | None: ...  # none where the rate is exact
def format_size(size_bytes: int) -> str: ...
def format_time(time_ps: int) -> str: ...
def collective_kind(name: str) -> str: ...  # any accepted spelling to the printed one
def build_schedule(collective: Collective, fabric: Fabric, algorithm: str) -> Schedule: ...
def make_plan(
    schedule: Schedule,
    fabric: Fabric,
    algorithm: str,
    wavelength: str = "auto",
    size_bytes: int | None = None,
) -> Plan:
    """Route and assign wavelengths; the schedule is copied."""

def plan(
    kind: str,
    fabric: Fabric,
    algorithm: str,
    *,
    root: int = 0,
    wavelength: str = "auto",
    size_bytes: int | None = None,
    watch: Callable[[str], object] | None = None,
    **settings: Unpack[Settings],
) -> Plan:
    """build_schedule and make_plan in one, or a plan by the planner (relay_tree, auto).

    The planner plans for a size (4 MiB if none is given) and for settings; `auto` calls `watch`
    with the name of each candidate before it is made.
    """

def replan(
    plan: Plan,
    failed: str,
    algorithm: str | None = None,
    size: int | str | None = None,
    **settings: Unpack[Settings],
) -> tuple[Plan, int, int]:
    """On a wss_grid, after failures: the plan anew, picoseconds before and after.

    Raises FabricError for failures that are none, AlgorithmError where nothing can be planned.
    """

def simulate_tasks(
    tasks: list[tuple[Plan, int, int, int]],
) -> list[tuple[int, int, int, int, int, int, Outcome]]:
    """Tasks on one wss_grid: plan, bytes, rounds and picoseconds of the request of each.

    Returns picoseconds admitted, started and ended, messages of the arbiter, ports, settings of
    switches, and one round. Raises SimulationError.
    """

def task_conflicts(plans: list[Plan]) -> list[Violation]:
    """What is wrong with running plans side by side on one wss_grid."""

def check_settings(**settings: Unpack[Settings]) -> None:
    """Raise SimulationError if one is none, whatever the plan."""

def time_bound(
    kind: str,
    fabric: Fabric,
    size_bytes: int,
    policy: str | None,
    root: int = 0,
    paths: str | None = None,
    simulator: str | None = None,
    placement: str | None = None,
) -> tuple[int | None, str | None, str]:
    """The lower bound on the time of any plan in picoseconds, its name and its assumption.

    Without a bound two times None, and why: `closed_form` times no plan, or flows do not share the
    cables of a rank. With a placement of packets the root is where the placement puts it.
    """

def slots_bound(kind: str, fabric: Fabric, root: int = 0) -> tuple[int, str, str]:
    """The lower bound on slots, its name and its assumption; blocks are whole."""

def relay_tree_costs(ranks: int, depth: int) -> list[int]:
    """Least total length in links of relay trees of depth at most 1, 2, ..., `depth`."""

def algorithms() -> list[Record]: ...
def fabrics() -> list[Record]: ...
def presets() -> list[Record]: ...
def models() -> list[Record]: ...
def devices() -> list[Record]: ...
def simulators() -> list[Record]: ...
def policies() -> list[Record]: ...
def start_rules() -> list[Record]: ...
def settings() -> list[Record]: ...
def collectives() -> list[Record]: ...
def wavelength_assignments() -> list[Record]: ...

# Formulas of the papers, for `reproduce`.
def optree_steps(ranks: int, wavelengths: int, depth: int) -> int: ...  # Theorem 1
def optree_depth(ranks: int, rounding: Literal["ceil", "round"] = "ceil") -> int | None:
    """Theorem 2; None for N <= 7."""

def optree_stage_loads(ranks: int, radices: list[int]) -> list[int]:
    """The greatest link load of each stage, in lightpaths of one item."""

def optree_best_radices(ranks: int, wavelengths: int) -> list[int]: ...  # what depth=auto picks
def one_stage_wavelengths(ranks: int, *, paper: bool = False) -> int:
    """Lemma 1: the exact value, or as the paper has it, ceil(N^2/8)."""

def wrht_all_gather_steps(ranks: int, wavelengths: int) -> int:
    """As the OpTree paper evaluates it: 259 at (1024, 64)."""

def wrht_all_reduce_steps(ranks: int, wavelengths: int, group_size: int | None = None) -> int:
    """As the WRHT poster gives it; the group size is 2w + 1 where none is given."""
