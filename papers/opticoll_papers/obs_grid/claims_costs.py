"""Slides on algorithms: the printed formulas, evaluated here at the printed parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from opticoll_papers.judging import (
    AtLeast,
    Claim,
    Equal,
    NotDone,
    NotStated,
    Rounded,
    Used,
)
from opticoll_papers.obs_grid.costs import FORMULA_BYTES, PORTS

P, LOG = 64, 6
ALPHA, BETA, GAMMA = 0.0001, 8 / 10**9, 0.01

EXACT = Rounded(9)
"""Formulas give a time to the nanosecond."""

LABELS = {
    "linear": "Linear",
    "ring": "Ring",
    "recursive_doubling": "Recursive doubling",
    "binomial_tree": "Binomial tree",
}
STEPS = {"linear": P - 1, "ring": P - 1, "recursive_doubling": LOG, "binomial_tree": LOG}
STEPS_SAID = {
    "linear": "p - 1",
    "ring": "p - 1",
    "recursive_doubling": "log p",
    "binomial_tree": "log p",
}
EXISTING: dict[str, tuple[str, Callable[[int], float]]] = {
    "linear": ("(p - 1) (α + n β)", lambda n: (P - 1) * (ALPHA + n * BETA)),
    "ring": ("(p - 1) (α + n/p β)", lambda n: (P - 1) * (ALPHA + n / P * BETA)),
    "recursive_doubling": (
        "log p α + (p - 1) n/p β",
        lambda n: LOG * ALPHA + (P - 1) * n / P * BETA,
    ),
    "binomial_tree": ("log p (α + n β)", lambda n: LOG * (ALPHA + n * BETA)),
}
NAIVE: dict[str, tuple[str, Callable[[int], float]]] = {
    "linear": ("(p - 1) (α + n β + γ)", lambda n: (P - 1) * (ALPHA + n * BETA + GAMMA)),
    "ring": ("2 (p - 1) (α + n/p β + γ)", lambda n: 2 * (P - 1) * (ALPHA + n / P * BETA + GAMMA)),
    "recursive_doubling": (
        "log p (α + γ) + (p - 1) n/p β",
        lambda n: LOG * (ALPHA + GAMMA) + (P - 1) * n / P * BETA,
    ),
    "binomial_tree": ("log p (α + n β + γ)", lambda n: LOG * (ALPHA + n * BETA + GAMMA)),
}
SET_UPS: dict[str, tuple[str, Callable[[int], int]]] = {
    "linear": ("[(p - 1) / k]", lambda k: -(-(P - 1) // k)),
    "ring": ("1", lambda k: 1),
    "recursive_doubling": ("ceil(log p / k)", lambda k: -(-LOG // k)),
    "binomial_tree": ("floor(log p / k)", lambda k: LOG // k),
}
"""With k ports."""
NAIVE_SET_UPS = {"linear": P - 1, "ring": 2 * (P - 1), "recursive_doubling": LOG}
NAIVE_SET_UPS["binomial_tree"] = LOG

BRACKETS = "plain brackets stand for ceil, which recursive doubling prints"
PRINTED = "the brackets are floor, as in the extracted text of the slides"
CORRECTED = "ceil in place of the printed floor"
FLOOR = (
    "With floor no setup at all would be left for more ports than log p, and the paper's own "
    "simulator, whose trees have log 16 = 4 rounds, prints the same times for 2 and 3 ports. The "
    "brackets are those of the slides' extracted text."
)
SIZES_SAID = "n = 1 KiB and 1 MiB, sizes that are not in the paper"
AT = "at p = 64, α = 100 us, β = 8 ns, γ = 10 ms"


def _with_ports(name: str, set_ups: Callable[[int], int]) -> tuple[float, ...]:
    sending = EXISTING[name][1]
    return tuple(
        sending(size) + set_ups(ports) * GAMMA for ports in PORTS[1:] for size in FORMULA_BYTES
    )


def _saved(name: str, set_ups: Callable[[int], int]) -> tuple[int, ...]:
    return tuple(NAIVE_SET_UPS[name] - set_ups(ports) for ports in PORTS[1:])


def _ceil(ports: int) -> int:
    return -(-LOG // ports)


def _algorithm(name: str) -> Iterator[Claim]:
    label, collective, spelling, size = LABELS[name], "all_gather", name, "16B"
    if name in ("linear", "binomial_tree"):
        collective, spelling, size = "broadcast", name.removesuffix("_tree"), "1KiB"
    block = (
        "" if size == "1KiB" else "The command takes n/p: 16 bytes of each rank are 1 KiB in all."
    )
    command = (
        f"opticoll simulate {collective} --fabric light_path_grid:ranks=64,ports=2 "
        f"--algorithm {spelling} --size {size} --policy {{}}"
    )
    here = f"{label}: behaviour, cost on existing network"
    yield Claim(
        id=f"{name}.steps",
        where=here,
        says=f"{label} takes {STEPS_SAID[name]} steps.",
        unit="steps",
        printed=STEPS[name],
        evaluates=f"{STEPS_SAID[name]} at p = 64",
        judge=Equal(),
        command=command.format("free"),
    )
    yield from _behaviour(name, here, command.format("free"))
    formula, value = EXISTING[name]
    yield Claim(
        id=f"{name}.existing",
        where=here,
        says=f"The cost without setups is {formula}.",
        unit="s",
        printed=tuple(value(size) for size in FORMULA_BYTES),
        evaluates=f"the formula {AT}, {SIZES_SAID}",
        judge=EXACT,
        remark=block,
        command=command.format("free"),
    )
    here = f"{label}: cost on optical network"
    formula, value = NAIVE[name]
    yield Claim(
        id=f"{name}.naive",
        where=here,
        says=f"The cost with one port is {formula}.",
        unit="s",
        printed=tuple(value(size) for size in FORMULA_BYTES),
        evaluates=f"the formula {AT}, {SIZES_SAID}",
        judge=EXACT,
        remark=block,
        command=command.replace("ports=2", "ports=1").format("every_step"),
    )
    if name == "ring":
        yield Claim(
            id="ring.naive_odd",
            where=here,
            says="With one port a ring of any p has 2 (p - 1) setups.",
            unit="setups",
            printed=124,
            evaluates="2 (p - 1) at p = 63, where the slides evaluate p = 64 only",
            judge=Equal(),
            reading="the formula is meant for any p, and all pairs of a step end before the next",
            remark="Steps in lock-step are judged: the pairs of neighbours of an odd ring fall "
            "into three groups without a common rank, so that each of the p - 1 steps takes three "
            "setups. Counting alone gives 126 at least: p (p - 1) messages, of which (p - 1) / 2 "
            "go at once.",
        )
    formula, set_ups = SET_UPS[name]
    condition = "k >= 2 ports" if name == "ring" else "k ports"
    added = "γ" if name == "ring" else f"{formula} γ"
    reading = {"linear": BRACKETS, "binomial_tree": PRINTED}.get(name, "")
    floor = FLOOR if name == "binomial_tree" else ""
    printed = Claim(
        id=f"{name}.ports",
        where=here,
        says=f"With {condition} {added} is added to the cost without setups.",
        unit="s",
        printed=_with_ports(name, set_ups),
        evaluates=f"the formula {AT}; k = 2, 3, 4, for each {SIZES_SAID}",
        judge=EXACT,
        reading=reading,
        remark=floor or block,
        command=command.format("establish_release"),
    )
    yield printed
    saving = "2p - 3" if name == "ring" else f"{_naive_said(name)} - {formula}"
    saved = Claim(
        id=f"{name}.saved",
        where=here,
        says=f"The delay is reduced by {saving} setups.",
        unit="setups",
        printed=_saved(name, set_ups),
        evaluates=f"{saving} at p = 64, k = 2, 3, 4",
        judge=Equal(),
        reading="the delay is counted in setups" if name == "ring" else reading,
        remark=floor,
        command=command.format("establish_release"),
    )
    yield saved
    if name == "ring":
        yield Claim(
            id="ring.saved_time",
            where=here,
            says="The delay is reduced by (2p - 3) γ, as the difference of the slides' formulas.",
            unit="s",
            printed=((2 * P - 3) * GAMMA,) * 2,
            evaluates=f"the formula {AT}, {SIZES_SAID}",
            judge=EXACT,
            remark="The total time with one port less that with two. It is larger by "
            "(p - 1) (α + n/p β): more ports also save one of the two transfers of each step, "
            "which the slide does not count.",
            command=command.format("establish_release"),
        )
    if name == "binomial_tree":
        for one, values, judge in (
            (printed, _with_ports(name, _ceil), EXACT),
            (saved, _saved(name, _ceil), Equal()),
        ):
            yield Claim(
                id=f"{one.id}_ceil",
                where=here,
                says=one.says.replace("floor", "ceil"),
                unit=one.unit,
                printed=values,
                evaluates=one.evaluates.replace("floor", "ceil"),
                judge=judge,
                reading=CORRECTED,
                command=one.command,
            )


def _naive_said(name: str) -> str:
    return "(p - 1)" if name == "linear" else "log p"


def _behaviour(name: str, here: str, command: str) -> Iterator[Claim]:
    """What the slides say of a single step."""
    largest = FORMULA_BYTES[-1]
    says, unit, printed, evaluates, remark = {
        "linear": (
            "The root sends its message to the other processes one after the other.",
            "ranks",
            (1, 63),
            "the words at p = 64: senders and receivers",
            "Senders, and ranks in the order of their steps.",
        ),
        "ring": (
            "Each process sends n/p bytes to its neighbour in the ring.",
            "ranks away, bytes",
            (1, largest // P),
            "the words at p = 64, n = 1 MiB",
            "",
        ),
        "recursive_doubling": (
            "In step i a process exchanges with another at a distance of 2^(i - 1).",
            "ranks away",
            tuple(2**step for step in range(LOG)),
            "2^(i - 1) for i = 1 to 6",
            "Of rank 0.",
        ),
        "binomial_tree": (
            "The root sends its message to the others by a binomial tree.",
            "ranks",
            tuple(2**step for step in range(1, LOG + 1)),
            "the words at p = 64: in each step every rank that has the message sends it",
            "Ranks that have the message after each step.",
        ),
    }[name]
    yield Claim(
        id=f"{name}.partners",
        where=here,
        says=says,
        unit=unit,
        printed=printed,
        evaluates=evaluates,
        judge=Used(),
        remark=remark,
        command=command.replace("simulate", "show").partition(" --policy")[0],
    )
    share, said = {
        "ring": (largest / P, "n/p β"),
        "recursive_doubling": (largest / P, "2^(i - 1) n/p β"),
    }.get(name, (largest, "n β"))
    costs = tuple(ALPHA + 2**step * share * BETA for step in range(LOG))
    doubling = name == "recursive_doubling"
    yield Claim(
        id=f"{name}.step",
        where=here,
        says=f"{'Step i' if doubling else 'A step'} costs α + {said}.",
        unit="s",
        printed=costs if doubling else (costs[0],) * 2,
        evaluates=f"the formula {AT}, n = 1 MiB",
        judge=Rounded(9, "used"),
        remark="" if doubling else "The shortest and the longest step.",
        command=command,
    )


_ADAPTING = "Adapting MPI collectives"
_NETWORK = "Underlying optical networks"
_MESSAGE = (
    "opticoll simulate broadcast --fabric light_path_grid:ranks=2 --algorithm linear --size 1KiB"
)

ALGORITHMS = (
    Claim(
        id="mpich.allgather",
        where=_ADAPTING,
        says="MPICH 1.2.6 and later run MPI_Allgather by the ring below 512 KB and by recursive "
        "doubling from there on.",
        unit="below, above",
        printed=("ring", "recursive_doubling"),
        judge=Equal(),
        remark="Read off MPICH's source, not computed: below 524288 bytes in all `allgather.c` "
        "takes recursive doubling, where the number of processes is a power of two, and from there "
        "on the ring (`MPIR_CVAR_ALLGATHER_LONG_MSG_SIZE`; in MPICH 1.2 "
        "`MPIR_ALLGATHER_LONG_MSG`). The command shows the times of both in the model of the "
        "slides.",
        dispute="A referee says that a text that was read is no computed value. The source of "
        "MPICH is what the sentence speaks of, and says the opposite",
        command="opticoll compare all_gather --fabric light_path_grid:ranks=64,ports=2 "
        "--algorithms ring,recursive_doubling --size 16KiB --policy free",
    ),
    Claim(
        id="algorithms.variants",
        where=_ADAPTING,
        says="Other algorithms are variants of the four.",
        unit="",
        judge=NotDone("the slides name no other algorithm"),
    ),
    Claim(
        id="network.processes",
        where=_NETWORK,
        says="A node runs one process.",
        unit="ranks",
        printed=1,
        judge=Used(),
    ),
    Claim(
        id="network.ports",
        where=_NETWORK,
        says="All processes have the same number of ports, k: the others that a node can "
        "communicate with at once.",
        unit="ports",
        printed=(1, 2, 3, 4),
        judge=Used(),
        remark="Ports that the root of the linear algorithm uses where k is 1, 2, 3, 4.",
    ),
    Claim(
        id="network.duplex",
        where=_NETWORK,
        says="A lightpath carries both ways at once.",
        unit="times longer",
        printed=1.0,
        evaluates="the words: two messages that cross take as long as one",
        judge=Used(),
    ),
    Claim(
        id="network.constant",
        where=_NETWORK,
        says="To set lightpaths up takes as long for several as for one.",
        unit="s",
        printed=(GAMMA,) * 4,
        evaluates="the words: γ = 10 ms for k = 1, 2, 3, 4 paths",
        judge=Rounded(9, "used"),
    ),
    Claim(
        id="network.managed",
        where=_NETWORK,
        says="A message with path management takes α + n β + γ.",
        unit="s",
        printed=tuple(ALPHA + size * BETA + GAMMA for size in FORMULA_BYTES),
        evaluates=f"the formula {AT}, {SIZES_SAID}",
        judge=Rounded(9, "used"),
        command=_MESSAGE,
    ),
    Claim(
        id="network.plain",
        where=_NETWORK,
        says="A message over a path that is there takes α + n β.",
        unit="s",
        printed=tuple(ALPHA + size * BETA for size in FORMULA_BYTES),
        evaluates=f"the formula {AT}, {SIZES_SAID}",
        judge=Rounded(9, "used"),
        command=f"{_MESSAGE} --paths warm",
    ),
    *(claim for name in LABELS for claim in _algorithm(name)),
)

_EVALUATION = "Simple evaluation"
_EFFECTIVE = "Results of various MPI collectives"
WORTH = 20
"""Per cent of the naive time: what a method must save to be called effective."""

EVALUATION = (
    Claim(
        id="evaluation.ideal",
        where=_EVALUATION,
        says="In the ideal case a setup costs nothing.",
        unit="setups",
        printed=(0,) * 4,
        evaluates="the words, for each of the four algorithms",
        judge=Used(),
        remark="Setups that are charged, 64 ranks.",
    ),
    Claim(
        id="evaluation.naive",
        where=_EVALUATION,
        says="The naive method sets up and releases paths for every communication.",
        unit="setups",
        printed=(P - 1, 2 * (P - 1), LOG, LOG),
        evaluates="the words: a setup for each step, two for one of the ring",
        judge=Used(),
        remark="Setups that are charged: linear, ring, recursive doubling, binomial tree.",
    ),
    Claim(
        id="evaluation.processes",
        where=_EVALUATION,
        says="There are p = 64 processes.",
        unit="processes",
        printed=P,
        judge=Used(),
    ),
    Claim(
        id="evaluation.ports",
        where=_EVALUATION,
        says="A process has 1 to 4 ports.",
        unit="ports",
        printed=(1, 2, 3, 4),
        judge=Used(),
    ),
    Claim(
        id="evaluation.one_port",
        where=_EVALUATION,
        says="One port equals the naive method.",
        unit="times naive",
        printed=(1.0,) * 4,
        evaluates="the words, for each of the four algorithms",
        judge=Equal(),
        remark="Paths set up for as many steps as one port allows, over paths set up for every "
        "step; 1 MiB.",
    ),
    Claim(
        id="evaluation.alpha",
        where=_EVALUATION,
        says="The latency α is 100 us.",
        unit="s",
        printed=ALPHA,
        judge=Used(),
    ),
    Claim(
        id="evaluation.beta",
        where=_EVALUATION,
        says="The bandwidth is 1 Gb/s.",
        unit="bit/s",
        printed=10**9,
        judge=Used(),
        reading="the note of the table holds, and not its column of values: see "
        "`evaluation.beta_time`",
    ),
    Claim(
        id="evaluation.beta_time",
        where=_EVALUATION,
        says="β, the time of a byte, has the value 10^9.",
        unit="s",
        printed=10**9,
        judge=Equal(),
        remark="Two entries of the slides contradict each other: with the bandwidth in the note "
        "of the same row a byte takes 8 ns. Read off two messages of the computed cost.",
        dispute="A referee says that nobody wrote this sentence, which joins two slides. It is how "
        "the table reads with the formulas, where β is multiplied by bytes: either the value or "
        "the name is wrong",
    ),
    Claim(
        id="evaluation.gamma",
        where=_EVALUATION,
        says="To set a path up and release it takes γ = 10 ms.",
        unit="s",
        printed=GAMMA,
        judge=Used(),
        remark="Read off a message of two ranks.",
        command=_MESSAGE,
    ),
    Claim(
        id="evaluation.curves",
        where=_EFFECTIVE,
        says="Curves show the time of each algorithm: ideal, naive, with 2, 3 and 4 ports.",
        unit="",
        judge=NotDone(
            "not compared: no number is printed on them; ours are in `costs.svg` and `costs.csv`"
        ),
    ),
    *(
        Claim(
            id=f"effective.{name}",
            where=_EFFECTIVE,
            says=f"The method is effective for messages below 1 MB: {label.lower()}.",
            unit="% less",
            judge=AtLeast(WORTH, "effective: a fifth of the naive time is saved at least"),
            remark="4 ports; the least of n = 1 kB to 1 MB.",
        )
        for name, label in LABELS.items()
    ),
    Claim(
        id="effective.beyond",
        where=_EFFECTIVE,
        says="The method is effective for messages below 1 MB; here beyond.",
        unit="% less",
        judge=NotStated("whether it is not effective beyond"),
        remark="Shown beside: what linear, ring, recursive doubling and binomial tree save with "
        "4 ports at n = 10 MB.",
    ),
)
