"""The compiled core. Everything numeric happens there; see the modules of this package for use."""

from collections.abc import Callable, Iterator
from os import PathLike
from typing import Any, ClassVar, Literal, TypedDict, Unpack, final

import numpy as np
from numpy.typing import NDArray

__version__: str
CONVERTED: int
"""In the column `wavelength`: converters choose it link by link."""

class OpticollError(Exception):
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

class SimulationError(OpticollError):
    setting: str | None
    """The setting at fault, if it is one."""

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

class Settings(TypedDict, total=False):
    """A simulator and its settings as text; None where a default holds."""

    simulator: str | None
    policy: str | None
    paths: str | None
    start: str | None
    weights: str | None
    endpoint: str | None
    background: str | None
    link_bin: str | None
    step_overhead: str | None
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
    """What must be true at the end, chunk by chunk."""
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, kind: str, ranks: int, *, root: int = 0, pieces: int = 1) -> Collective: ...
    def __repr__(self) -> str: ...
    def after(self, chunk: int) -> int | None: ...
    def before(self, chunk: int) -> int | None: ...
    @property
    def chunks(self) -> int: ...
    @property
    def combines(self) -> bool: ...
    @property
    def kind(self) -> str: ...
    @property
    def pieces(self) -> int: ...
    @property
    def ranks(self) -> int: ...
    @property
    def root(self) -> int: ...
    @property
    def size_convention(self) -> str: ...

@final
class EventTable:
    """Calls of ranks that come as columns, a batch of rows at a time."""
    def __new__(cls, ranks: int | None, communicators: dict[int, list[int]]) -> EventTable: ...
    def extend(
        self,
        names: list[str],
        call: NDArray[np.uint32],
        numbers: list[NDArray[np.uint64]],
        sizes: list[tuple[int, list[int]]],
    ) -> None:
        """Append rows: names of calls, of each row the index of its call, and its numbers.

        The numbers are rank, peer, send_bytes, recv_bytes, tag, comm, req and compute_ns, 2^64 - 1 for one that is
        missing; `sizes` are rows of an Alltoallv with the bytes for each member. Raises TraceError, which names the row.
        """
    def finish(self) -> Trace:
        """The trace of all rows; the table is empty afterwards. Raises TraceError."""

@final
class Fabric:
    """What the machine is."""
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, spec: str, /, **options: str | int) -> Fabric: ...
    def __reduce__(self) -> tuple[Any, tuple[str]]: ...
    def __repr__(self) -> str: ...
    @property
    def drawing(self) -> Drawing:
        """How it is drawn: of an electrical fabric `places` of its vertices, ranks first, and links that lead `around`; of
        a grid of switches the `nodes` of its ranks, and ranks with the planes in which they are `dark`.
        """
    @property
    def electrical(self) -> bool: ...
    @property
    def family(self) -> str: ...
    @property
    def injection_bandwidth(self) -> int:
        """Bits per second that a rank can send: of ranks that differ, the least."""
    @property
    def light_fields(self) -> dict[str, list[str]]:
        """The fields of light in plans by name, each with the names of its values where it has such."""
    @property
    def link_count(self) -> int: ...
    @property
    def link_ends(self) -> list[tuple[int, int]] | None:
        """Source and destination of each link, ranks first and then routers; none where they are not known."""
    def link_name(self, link: int) -> str | None:
        """A link of an electrical fabric in words; none where there is no such link."""
    @property
    def link_names(self) -> list[str]:
        """The links of an electrical fabric in words, by their numbers."""
    @property
    def link_rates(self) -> list[int]:
        """Bits per second of each link of an electrical fabric."""
    def option(self, name: str) -> Any:
        """The value of an option, times in picoseconds, rates in bits per second; none where it is not in `options`."""
    @property
    def options(self) -> dict[str, OptionValue]:
        """The options by name, but for those that have a silent default."""
    @property
    def ranks(self) -> int: ...
    def route(self, source: int, destination: int) -> list[int]:
        """The links of an electrical fabric on the way between two ranks."""
    @property
    def simulator(self) -> str:
        """The simulator that times plans where none is named."""
    @property
    def spec(self) -> str: ...
    def with_options(self, **options: str | int) -> Fabric: ...
    @property
    def words(self) -> str:
        """What it is made of, in words."""

@final
class Outcome:
    """The result of a simulation: totals, and tables of columns.

    Both are attributes, too: `outcome.time_ps`, `outcome.slots["start_ps"]`.
    """
    def __dir__(self) -> list[str]: ...
    def __getattr__(self, name: str, /) -> Any: ...
    def __repr__(self) -> str: ...
    def describe(self) -> list[FieldRecord]:
        """Name, unit and meaning of each total."""
    @property
    def tables(self) -> dict[str, Table]:
        """The tables by name."""
    @property
    def totals(self) -> dict[str, Any]:
        """The totals by name; None where one does not apply."""

@final
class Plan:
    """A schedule with a route, a wavelength and a slot for every transfer."""
    def __eq__(self, value: object, /) -> bool: ...
    def __len__(self) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __repr__(self) -> str: ...
    @property
    def algorithm(self) -> str: ...
    @property
    def asked(self) -> str:
        """What was asked for, such as `auto`, where the algorithm was chosen by it."""
    @property
    def bound(self) -> tuple[int, str, str] | None:
        """The lower bound on slots, its name and its assumption. Where lightpaths carry several chunks, the
        one that holds for any number of them.
        """
    @property
    def candidates(self) -> list[tuple[str, int, int, str]]:
        """What `auto` compared, the chosen one first, then by time: name, slots, picoseconds, why it was left out.

        The reason is empty where the plan was made and simulated. Where it was not, slots and time are the least that
        they may be.
        """
    @property
    def claimed_steps(self) -> int | None: ...
    @property
    def collective(self) -> Collective: ...
    def columns(self) -> dict[str, NDArray[Any]]:
        """One entry a transfer, in the order of the schedule.

        chunk, count, source, destination, action (0 copy, 1 reduce), the fields of the fabric's light (`light_fields`) and
        slot. Raises ScheduleError for a folded plan of more than 2^26 transfers.
        """
    @property
    def configurations(self) -> int: ...
    def ends(self, transfer: int) -> tuple[int, int]:
        """Source and destination of a transfer."""
    def expected_packets(
        self, size: int | str | None = None, **settings: Unpack[Settings]
    ) -> tuple[int, int, int]:
        """The work of the packet simulator: messages, chunks, about how many forwards by routers."""
    @property
    def fabric(self) -> Fabric: ...
    @property
    def folded(self) -> bool:
        """Whether the plan is kept as what rank 0 sends, for all ranks."""
    @staticmethod
    def from_text(text: str) -> Plan: ...
    def hop_columns(self, slot: int | None = None) -> dict[str, NDArray[Any]]:
        """The hops of a slot, or of all, on a grid of tunable circuits."""
    def message_times(
        self, size: int | str | None = None, start: str = "rendezvous"
    ) -> list[tuple[int, int, int]]:
        """(transfer, start, end) of each message on an electrical fabric, in picoseconds."""
    def plot(
        self,
        path: str | PathLike[str],
        view: str | None = None,
        *,
        slot: int | None = None,
        size: int | None = None,
    ) -> None:
        """Draws the plan by `opticoll.plot.plan`, in a view or the usual one of its fabric; a size in bytes."""
    @property
    def reasons(self) -> list[str]:
        """Why `auto` chose this plan, in sentences."""
    def simulate(
        self,
        size: int | str | None = None,
        *,
        watch: Callable[[int, int, int], None] | None = None,
        timeline: bool = False,
        **settings: Unpack[Settings],
    ) -> Outcome:
        """Run a simulator; the size in bytes or as text with a unit, else the plan's own.

        On rings: circuit under the policy every_step, if nothing else is said. On electrical fabrics: fluid. The packet
        simulator calls `watch(events, messages_delivered, time_ps)` now and then, and measures the table `timeline` if
        asked. Raises SimulationError, with the attribute `setting` where one is at fault.
        """
    @property
    def size_bytes(self) -> int | None: ...
    def slot_columns(self, slot: int) -> dict[str, NDArray[Any]]:
        """The columns of one slot, and `transfer`: the indices in the whole plan."""
    @property
    def slots(self) -> int: ...
    @property
    def step_slots(self) -> list[int]:
        """Slots of each step of the schedule."""
    def to_text(self) -> str: ...
    def verify(self) -> list[Violation]:
        """Everything wrong; transfers of a folded plan are orbits, for all their rotations."""
    @property
    def wavelengths_used(self) -> int: ...
    def with_size(self, size_bytes: int) -> Plan: ...

@final
class Schedule:
    """What moves: transfers in steps."""
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
        """Replace the claims; all but paper_steps are enforced by the verifier."""
    @property
    def collective(self) -> Collective: ...
    def step(
        self,
        chunk: Any,
        source: Any,
        destination: Any,
        count: Any | None = None,
        action: str = "copy",
    ) -> None:
        """Append one step.

        chunk, source, destination and count are integers or arrays of integers with one dimension; a single number holds
        for all transfers of the step. Raises ScheduleError.
        """
    @property
    def steps(self) -> int: ...

@final
class Table:
    """Columns by name, each an array of the table's shape, or a list of texts or of None.

    Iteration gives one dictionary of plain values for each row.
    """
    def __contains__(self, name: str, /) -> bool: ...
    def __getitem__(self, name: str, /) -> Any: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def __len__(self) -> int: ...
    def __repr__(self) -> str: ...
    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the axes."""
    @property
    def columns(self) -> dict[str, Any]:
        """All columns by name."""
    def describe(self) -> list[FieldRecord]:
        """Name, unit and meaning of each column."""
    @property
    def name(self) -> str: ...
    @property
    def row(self) -> str:
        """What a row is."""
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary of plain values for each row; without NumPy."""
    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""

@final
class TimedModel:
    """Layers with their gradients and times for a batch."""
    def __new__(cls, layers: list[tuple[str, list[int], int, int]]) -> TimedModel:
        """From (name, bytes of each gradient, picoseconds forward, picoseconds backward) of each layer."""
    def buckets(self, rule: str) -> list[int]:
        """The bytes of the buckets, in the order in which they are sent."""
    def iterate(self, rule: str, overlap: bool, costs: dict[int, tuple[int, int, int]]) -> Outcome:
        """An iteration; costs by size are picoseconds: all, of reconfiguration, of control."""
    @property
    def layers(self) -> list[tuple[str, list[int], int, int]]:
        """The name of each layer, its bytes, its picoseconds forward and backward."""

@final
class Trace:
    """What a trace was read as."""
    def __repr__(self) -> str: ...
    @property
    def events(self) -> int:
        """Calls; of GOAL, operations."""
    @property
    def has_calls(self) -> bool:
        """Whether it holds calls, with collectives; otherwise only messages."""
    @property
    def messages(self) -> tuple[int, int]:
        """Messages between two ranks that the program itself sends, and their bytes: collectives aside."""
    @property
    def ranks(self) -> int: ...

@final
class TrainingModel:
    """A model that is known by name."""
    def __new__(cls, spec: str) -> TrainingModel: ...
    @property
    def epoch_samples(self) -> int | None: ...
    @property
    def label(self) -> str: ...
    def memory(self, batch: int) -> tuple[int, int, int, int]:
        """Bytes on a device for a batch: weights, gradients, optimizer, activations."""
    @property
    def name(self) -> str: ...
    @property
    def operations(self) -> tuple[int, int]:
        """Floating-point operations for a sample: forward, and backward."""
    @property
    def parameters(self) -> int: ...
    @property
    def sample(self) -> str: ...
    def timed(
        self,
        batch: int,
        device: str | None = None,
        throughput: str | None = None,
        bytes_per_parameter: int = 4,
    ) -> TimedModel:
        """The layers with their times for a batch; a device, or where one is given a throughput."""

@final
class Violation:
    """One rule broken in one place."""
    def __repr__(self) -> str: ...
    @property
    def chunk(self) -> int | None: ...
    @property
    def kind(self) -> str: ...
    @property
    def link(self) -> tuple[int, str, int] | None: ...
    @property
    def rank(self) -> int | None: ...
    @property
    def sentence(self) -> str: ...
    @property
    def slot(self) -> int | None: ...
    @property
    def transfers(self) -> list[int]: ...
    @property
    def wavelength(self) -> int | None: ...

def build_schedule(collective: Collective, fabric: Fabric, algorithm: str) -> Schedule:
    """The schedule that an algorithm makes."""

def burst_fixed_point(fabric: str, offered_load: float | int) -> float:
    """Loss of Poisson bursts to everyone with full conversion, by the reduced-load fixed point."""

def burst_hosts(fabric: str) -> tuple[int, int]:
    """Nodes of a network, and hosts at each."""

def burst_rate(fabric: str) -> int:
    """Bits per second of a wavelength of a network."""

def call_names() -> list[str]:
    """The kinds of calls, in the order of their numbers in a time-line."""

def check_buckets(rule: str) -> str:
    """Refuses a rule that is none, whatever the model."""

def check_bursts(fabric: str, settings: dict[str, str]) -> str:
    """The network in full words; raises what `simulate_bursts` would raise."""

def check_settings(**settings: Unpack[Settings]) -> None:
    """Refuses settings that are none, whatever the plan."""

def collective_cost(plan: Plan, size_bytes: int, **settings: Unpack[Settings]) -> CollectiveCost:
    """Simulates a plan that was verified."""

def collective_kind(name: str) -> str:
    """The printed name of a collective, from any accepted spelling."""

def delivered_plan(runs: Outcome, plan: Plan, run: int, collective: int) -> Plan:
    """Of a replication and collective, the transfers that arrived, in the order in which they did, as a plan to be
    verified.
    """

def device_memory(device: str | None = None) -> int:
    """Bytes of the memory of a device; of the default one if none is named."""

def engset(sources: int, load: float | int, servers: int) -> float:
    """Engset's call congestion."""

def erlang_b(load: float | int, servers: int) -> float:
    """Erlang's B."""

def expected_traffic(
    fabric: Fabric, traffic: str, **settings: Unpack[Settings]
) -> tuple[int, int, int]:
    """The work of [`simulate_traffic`] before it starts: messages, chunks, about how many forwards."""

def fields_of(result: str) -> list[FieldRecord]:
    """Name, unit and meaning of every total, and of every column as `table.column`, of a type of results."""

def format_size(size_bytes: int) -> str:
    """A size in the largest unit in which it is a whole number."""

def format_time(time_ps: int) -> str:
    """A time as an exact decimal."""

def interrupt_all() -> None:
    """Stops all work of the core, on every thread: each call raises `KeyboardInterrupt`."""

def make_plan(
    schedule: Schedule,
    fabric: Fabric,
    algorithm: str,
    wavelength: str = "auto",
    size_bytes: int | None = None,
) -> Plan:
    """Route and assign wavelengths; the schedule is copied."""

def one_stage_wavelengths(ranks: int, *, paper: bool = False) -> int:
    """Wavelengths of a one-stage all-to-all on a ring, exact or as the paper has it."""

def optree_best_radices(ranks: int, wavelengths: int) -> list[int]:
    """The radices that `optree:depth=auto` picks."""

def optree_depth(ranks: int, rounding: Literal["ceil", "round"] = "ceil") -> int | None:
    """Theorem 2 of the OpTree paper; None where it is undefined."""

def optree_stage_loads(ranks: int, radices: list[int]) -> list[int]:
    """The greatest link load of each stage of an OpTree."""

def optree_steps(ranks: int, wavelengths: int, depth: int) -> int:
    """Theorem 1 of the OpTree paper."""

def parameter_memory(parameters: int) -> tuple[int, int, int]:
    """Bytes of so many parameters on a device: weights, gradients, optimizer."""

def parse_size(text: str) -> int:
    """The bytes that a size such as `4MiB` means."""

def parse_time(text: str) -> int:
    """The picoseconds that a time such as `25us` means."""

def place_ranks(
    fabric: str,
    plan: Plan,
    copies: int,
    size: int | str,
    starts: list[list[int]],
    *,
    search: bool = True,
) -> tuple[list[int], int, int, bool]:
    """Hosts of all ranks, bytes times hops, a lower bound, whether it is the least.

    The search sets out from `starts` among others; without it the first of them is judged.
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
    **settings: Unpack[Settings],
) -> Plan:
    """build_schedule and make_plan in one, or a plan by the planner (relay_tree, auto).

    The planner plans for a size (4 MiB if none is given) and for settings; `auto` calls `watch` with the name of each
    candidate before it is made.
    """

def read_goal_file(path: str | PathLike[str]) -> Trace:
    """Read binary GOAL rank by rank, without holding the file; raises OSError and TraceError."""

def read_trace(
    content: bytes | bytearray, form: str, operations_per_second: int = 1000000000
) -> Trace:
    """A trace of the form `table`, `time_independent`, `goal` or `goal_binary`.

    The lines of a `table` are in no file, and no message names them. Raises TraceError, which names line, byte, or rank
    and event.
    """

def records(kind: str) -> list[Record]:
    """The records of a kind, such as `algorithms`; KeyError for another word."""

def relay_tree_costs(ranks: int, depth: int) -> list[int]:
    """C_1(N), ..., C_depth(N): the least total lengths of relay trees of a depth, in links."""

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

def replay_trace(
    trace: Trace,
    network: str,
    algorithms: dict[str, str],
    *,
    compute_factor: tuple[int, int] = ...,
    overhead_ps: int = 0,
    eager_bytes: int | None = None,
    rendezvous: bool = False,
    timeline: bool = False,
    bursts: dict[str, str] | None = None,
    **settings: Unpack[Settings],
) -> Outcome:
    """Replay a trace over a fabric, or a cost model such as `zero`, `hockney:...`, `loggp:...`, `light_path_grid:...`.

    With `bursts`, settings of light paths and of bursts, over a network as of `simulate_bursts`, in which each message
    asks for a light path. Raises FabricError, SimulationError, AlgorithmError, and TraceError, which names rank, event
    and line where one is at fault.
    """

def rounded_rate(text: str) -> str | None:
    """What a rate such as `4.7GiB/s` is rounded to; none where it is a whole number of bits per second."""

def set_memory_limit(limit: str | None) -> None:
    """Sets the limit on forecasts of memory, such as `4GiB`; none: what the machine has left."""

def simulate_bursts(
    fabric: str,
    settings: dict[str, str],
    *,
    threads: int = 1,
    progress: Callable[[int, int], object] | None = None,
) -> Outcome:
    """Simulate bursts on a network with wavelengths; the settings are the records `burst_settings`, as text.

    `progress` is called with bursts measured and to be measured; what it raises ends the run. The outcome does not
    depend on the number of threads. Raises FabricError, or SimulationError with the attribute `setting` where one is at
    fault.
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
    """Copies of a plan at once over light paths; `places` are the hosts of each one's ranks.

    The settings are the records `congestion_settings` and `burst_settings`. Without `external` there are no bursts.
    `progress` is called with the number of replications so far; what it raises ends the run. The outcome does not depend
    on the number of threads. Raises FabricError, ScheduleError for a plan with light, or SimulationError with the
    attribute `setting` where one is at fault.
    """

def simulate_tasks(
    tasks: list[tuple[Plan, int, int, int]],
) -> list[tuple[int, int, int, int, int, int, Outcome]]:
    """Tasks on one wss_grid: plan, bytes, rounds and picoseconds of the request of each.

    Returns picoseconds admitted, started and ended, messages of the arbiter, ports, settings of switches, and one round.
    Raises SimulationError.
    """

def simulate_traffic(
    fabric: Fabric,
    traffic: str,
    *,
    watch: Callable[[int, int, int], None] | None = None,
    timeline: bool = False,
    **settings: Unpack[Settings],
) -> Outcome:
    """Traffic alone on a fabric, packet by packet."""

def slots_bound(kind: str, fabric: Fabric, root: int = 0) -> tuple[int, str, str]:
    """The lower bound on slots, its name and its assumption; blocks are whole."""

def task_conflicts(plans: list[Plan]) -> list[Violation]:
    """What is wrong with running plans side by side on one grid."""

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

    Without a bound two times None, and why: `closed_form` times no plan, or flows do not share the cables of a rank.
    With a placement of packets the root is where the placement puts it.
    """

def traffic_patterns() -> dict[str, str]:
    """The names of patterns with what they are."""

def wrht_all_gather_steps(ranks: int, wavelengths: int) -> int:
    """Steps of WRHT as the OpTree paper turns it into an all-gather."""

def wrht_all_reduce_steps(ranks: int, wavelengths: int, group_size: int | None = None) -> int:
    """Steps of WRHT as its poster gives them; the group size is 2w + 1 where none is given."""
