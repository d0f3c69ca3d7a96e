"""Simulations of the Dragonfly poster's study: networks, settings, and the cases of each scale.

The poster states its network (5256 terminals; 4.7 and 5.25 GiB/s). It states neither packets,
chunks, buffers, routing nor block sizes. The values here are a configuration that its simulator
(CODES) shipped in that spring, minimal routes, and blocks as large as packets can be simulated.

>>> from opticoll_papers.dragonfly.cases import FULL, fabric
>>> fabric(FULL.gather).ranks, FULL.gather_sizes("pipelined", background=False)["TAR"]
(5256, (15, 64, 1024, 4096))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from opticoll import Fabric, format_size

Rule = Literal["pipelined", "occupies_port"]
RULES: tuple[Rule, ...] = ("pipelined", "occupies_port")
"""Rules: a chunk in a router leaves its output port free (`pipelined`), or occupies it."""

Sizes = Mapping[str, tuple[int, ...]]
"""Block sizes in bytes, by algorithm."""

GLOBAL_RATE = "40372692582b/s"  # 4.7 GiB/s, rounded to whole bits per second

ALGORITHMS: Mapping[str, tuple[str, str | None]] = {
    "RING": ("ring", None),
    "TAR": ("tar", None),
    "BRUCK": ("bruck", None),
    "RING shuffled": ("ring", "shuffled-1"),
    "BRUCK shuffled": ("bruck", "shuffled-1"),
    "LIN": ("lin", None),
    "TREE": ("binomial", None),
    "GLF": ("glf", None),
    "LLF": ("llf", None),
    "LLF flat": ("llf:groups=flat", None),
}
"""The algorithm, and the placement of ranks (None: natural order), by the poster's names.

The flat LLF sends from a router directly to the router's groups, not along a tree.
"""

SCATTERS = ("LIN", "TREE", "GLF", "LLF")
SCATTER_BYTES = 1024  # as in the poster
MPICH_BYTES = 80 * 1024
"""`MPIR_CVAR_ALLGATHER_SHORT_MSG_SIZE`: if all blocks together have fewer bytes, and the number of
ranks is no power of two, MPICH uses Bruck's algorithm. The poster calls such transfers small."""

BACKGROUND = "uniform:bytes=2KiB,period=2us"
"""Traffic of 18 % of a terminal's injection bandwidth; the poster states no rate."""


@dataclass(frozen=True)
class Delays:
    """Latencies of links to terminals, of links within groups and of links between groups."""

    terminal_ps: int
    local_ps: int
    global_ps: int


@dataclass(frozen=True)
class Cut:
    """Packet and chunk size in bytes, and buffer sizes of local, global and terminal channels."""

    packet_bytes: int
    chunk_bytes: int
    buffers: str = "16KiB,32KiB,16KiB"


GATHER_CUT = Cut(512, 512)
SCATTER_CUT = Cut(512, 256)
WHOLE_CUT = Cut(512, 512)  # each packet is a single chunk
LARGE_CUT = Cut(4096, 4096, "64KiB,64KiB,64KiB")

Buffers = tuple[int, int, int]
"""Buffer sizes of local, global and terminal channels, in KiB."""

BUFFERS: tuple[Buffers, ...] = (
    (1, 2, 1),
    (2, 4, 2),
    (4, 8, 4),
    (8, 16, 8),
    (16, 32, 16),
    (32, 64, 32),
    (64, 128, 64),
)
"""Buffer sizes for scatters, from four chunks of 256 B upwards."""

SCATTER_BUFFERS: Buffers = (16, 32, 16)
"""Buffer sizes in `SCATTER_CUT`."""

PACKETS = "packet"
FLUID = "fluid"
FLUID_DELAYED = "fluid, delays"
"""Flows whose links have the delays of routers and chunks as latencies.

Messages are eager: a sender is free when its message has left."""


@dataclass(frozen=True)
class Case:
    """A simulation; `network` is the number of terminals per router of a balanced dragonfly.

    `variant` is one of `VARIANTS`, or empty for the balanced dragonfly itself.
    """

    network: int
    collective: str
    algorithm: str
    size_bytes: int
    cut: Cut
    rule: Rule = "pipelined"
    background: bool = False
    simulator: str = PACKETS
    variant: str = ""

    @property
    def words(self) -> str:
        """Description of the case for progress reports."""
        beside = ", background" if self.background else ""
        size = format_size(self.size_bytes)
        ranks = fabric(self.network).ranks
        more = "".join(
            f", {part}" for part in (self.simulator, self.variant) if part != PACKETS and part
        )
        return f"{self.algorithm} {size} on {ranks}, {self.rule}{beside}{more}"


@dataclass(frozen=True)
class Scale:
    """Cases of a study at one scale.

    Networks are numbers of terminals per router, and sizes are bytes of a block.

    `alone` are the sizes of all_gathers on the network `gather`, by rule. `beside` are the sizes
    with background traffic, by rule; `gather_beside` is the network for each size. `placed` are
    sizes for ranks in random order, on the network `placed_on`. `flows` are sizes on the largest
    network that only the fluid simulator computes.

    `scatter` is the network of scatters, and `scatter_beside` their network with background
    traffic. `buffers` are the buffer sizes of scatters. `compared` are the networks and sizes for
    which flows are compared with packets.
    """

    gather: int
    alone: Mapping[Rule, Sizes]
    gather_beside: Mapping[int, int]
    beside: Mapping[Rule, Sizes]
    placed_on: int
    placed: tuple[int, ...]
    flows: tuple[int, ...]
    scatter: int
    scatter_beside: int
    buffers: tuple[Buffers, ...]
    compared: Mapping[int, Mapping[Cut, Sizes]]

    def gather_sizes(self, rule: Rule, *, background: bool) -> Sizes:
        """Returns the block sizes in bytes of each all_gather algorithm."""
        return (self.beside if background else self.alone).get(rule, {})


WIDE, NARROW = "24 routers a group", "146 groups"
SLOW_GLOBAL, SLOW_LOCAL = "global links at half the rate", "local links at half the rate"

SHAPES: Mapping[str, str] = {
    WIDE: "terminals_per_router=3,routers_per_group=24,global_per_router=3",
    NARROW: "terminals_per_router=6,routers_per_group=6,global_per_router=25,groups=146",
}
"""Other dragonflies of 5256 terminals: groups as large with smaller routers, or half as large."""

RATES: Mapping[str, str] = {
    SLOW_GLOBAL: "rate=5.25GiB/s,global_rate=20186346291b/s",
    SLOW_LOCAL: f"rate=5.25GiB/s,local_rate=2.625GiB/s,global_rate={GLOBAL_RATE}",
}
"""Balanced dragonflies in which one class of links is slower."""

VARIANTS = (*SHAPES, *RATES)
"""Variants of the poster's network on which scatters are simulated."""


@lru_cache
def fabric(network: int, delays: Delays | None = None, variant: str = "") -> Fabric:
    """Returns a dragonfly with the poster's rates: 2 p routers per group, p global links each.

    `network` is p, the number of terminals per router. Values of 2, 4 and 6 give 72, 1056 and 5256
    terminals. If `variant` is one of `SHAPES`, the shape determines the number of terminals.
    """
    balanced = (
        f"terminals_per_router={network},routers_per_group={2 * network},"
        f"global_per_router={network}"
    )
    rates = RATES.get(variant, f"rate=5.25GiB/s,global_rate={GLOBAL_RATE}")
    latencies = "latency=0ns"
    if delays is not None:
        latencies = (
            f"terminal_latency={delays.terminal_ps}ps,"
            f"local_latency={delays.local_ps}ps,global_latency={delays.global_ps}ps"
        )
    return Fabric(f"dragonfly:{SHAPES.get(variant, balanced)},{rates},{latencies}")


def _same(sizes: tuple[int, ...], *algorithms: str) -> dict[str, tuple[int, ...]]:
    return dict.fromkeys(algorithms, sizes)


RINGS = ("RING", "TAR")
BRUCKS = ("BRUCK", "BRUCK shuffled")
COMPARED = (*RINGS, "BRUCK")

JUDGED_BYTES = (64, 1024, 4096, 65536)
"""Block sizes in bytes for which TAR is judged, if they are simulated."""

DISCUSSED = 2
"""Network of the poster's discussion; even its large blocks can be simulated by packets."""

FULL = Scale(
    gather=6,
    alone={
        "pipelined": _same((15, 64, 1024, 4096), *RINGS) | _same((15, 64), *BRUCKS),
        "occupies_port": _same((15, 64, 1024), *RINGS) | _same((15, 64), *BRUCKS),
    },
    gather_beside={15: 6, 64: 6, 1024: 4, 4096: 4},
    beside={
        "pipelined": _same((15, 64, 1024, 4096), *RINGS, *BRUCKS),
        "occupies_port": _same((15, 64), *RINGS, *BRUCKS),
    },
    placed_on=4,
    placed=(64, 1024, 4096),
    flows=(4096, 65536),
    scatter=6,
    scatter_beside=6,
    buffers=BUFFERS,
    compared={
        2: {GATHER_CUT: _same((64, 256, 1024, 4096, 16384, 65536), *COMPARED)},
        4: {
            GATHER_CUT: _same((64, 256, 1024, 4096), *COMPARED),
            LARGE_CUT: _same((16384, 65536), *RINGS) | {"BRUCK": (16384,)},
        },
    },
)
"""Cases on the poster's network; a ring with blocks above 4 KiB would have 10^9 chunks."""

QUICK = Scale(
    gather=4,
    alone={
        "pipelined": _same((64, 1024), *RINGS) | _same((64,), *BRUCKS),
        "occupies_port": _same((64, 1024), *RINGS) | _same((64,), *BRUCKS),
    },
    gather_beside={64: 2, 1024: 2, 4096: 2},
    beside={
        "pipelined": _same((64, 1024, 4096), *RINGS, *BRUCKS),
        "occupies_port": _same((64,), *RINGS, *BRUCKS),
    },
    placed_on=2,
    placed=(64, 4096),
    flows=(65536,),
    scatter=6,
    scatter_beside=2,
    buffers=BUFFERS[::3],
    compared={
        2: {GATHER_CUT: _same((64, 1024, 4096, 16384), *COMPARED)},
        4: {LARGE_CUT: _same((4096,), *RINGS)},
    },
)
"""Cases of a quick run: scatters on the poster's network, without background traffic."""


def all_cases(scale: Scale, needs: Callable[[str], bool] = lambda part: True) -> list[Case]:
    """Returns all different simulations that the selected parts of the study need at a scale."""
    parts = {
        "all_gather": [*_gathers(scale), *_compared(scale)],
        "scatter": _scatters(scale),
        "discussion": _discussed(scale),
    }
    return list(dict.fromkeys(case for part, own in parts.items() if needs(part) for case in own))


def _gathers(scale: Scale) -> Iterator[Case]:
    for rule in RULES:
        for algorithm, sizes in scale.gather_sizes(rule, background=False).items():
            for size in sizes:
                yield gather(scale.gather, algorithm, size, rule=rule)
        for algorithm, sizes in scale.gather_sizes(rule, background=True).items():
            for size in sizes:
                for background in (False, True):
                    network = scale.gather_beside[size]
                    yield gather(network, algorithm, size, rule=rule, background=background)
    for algorithm in ("TAR", "RING shuffled", "BRUCK shuffled"):
        for size in scale.placed:
            yield gather(scale.placed_on, algorithm, size)
    # Cases for bytes on links, and for the use of buffers.
    for algorithm in COMPARED:
        for network in {scale.placed_on, min(scale.gather, 4)}:
            yield gather(network, algorithm, 64)
    for algorithm in COMPARED:
        for size in scale.flows:
            yield flows(gather(scale.gather, algorithm, size))


def _scatters(scale: Scale) -> Iterator[Case]:
    yield scatter(scale.scatter, "LLF flat", "pipelined")
    for rule in RULES:
        for algorithm in SCATTERS:
            yield scatter(scale.scatter, algorithm, rule)
        for algorithm in SCATTERS:
            yield scatter(scale.scatter_beside, algorithm, rule)
            yield scatter(scale.scatter_beside, algorithm, rule, background=True)
            for buffers in scale.buffers:
                yield scatter(scale.scatter, algorithm, rule, buffers=buffers)
            for variant in VARIANTS:
                yield scatter(scale.scatter, algorithm, rule, variant=variant)
            yield scatter(scale.scatter, algorithm, rule, cut=WHOLE_CUT)


def _compared(scale: Scale) -> Iterator[Case]:
    for network, cuts in scale.compared.items():
        for cut, algorithms in cuts.items():
            for algorithm, sizes in algorithms.items():
                for size in sizes:
                    case = gather(network, algorithm, size, cut=cut)
                    yield case
                    yield flows(case)
                    yield flows(case, delayed=True)


def _discussed(scale: Scale) -> Iterator[Case]:
    for algorithm in COMPARED:
        yield gather(DISCUSSED, algorithm, SCATTER_BYTES)
    for algorithm in SCATTERS:
        yield Case(DISCUSSED, "scatter", algorithm, SCATTER_BYTES, GATHER_CUT)


def gather(
    network: int,
    algorithm: str,
    size_bytes: int,
    *,
    cut: Cut = GATHER_CUT,
    rule: Rule = "pipelined",
    background: bool = False,
) -> Case:
    """Returns the case of an all_gather that is simulated packet by packet."""
    return Case(network, "all_gather", algorithm, size_bytes, cut, rule, background)


def flows(case: Case, *, delayed: bool = False) -> Case:
    """Returns the same case for the fluid simulator, optionally with the delays of chunks."""
    return replace(case, simulator=FLUID_DELAYED if delayed else FLUID)


def scatter(
    network: int,
    algorithm: str,
    rule: Rule,
    *,
    background: bool = False,
    buffers: Buffers | None = None,
    variant: str = "",
    cut: Cut = SCATTER_CUT,
) -> Case:
    """Returns the case of a scatter with the poster's size; `buffers` are in KiB."""
    if buffers is not None:
        cut = replace(cut, buffers=",".join(f"{kib}KiB" for kib in buffers))
    case = Case(network, "scatter", algorithm, SCATTER_BYTES, cut, rule, background)
    return replace(case, variant=variant)
