"""Slides on algorithms: the printed formulas, evaluated here at the printed parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from opticoll.papers.judging import (
    AtLeast,
    AtMost,
    Claim,
    Equal,
    NotStated,
    Rounded,
    Used,
)
from opticoll.papers.obs_grid.costs import FORMULA_BYTES, PORTS

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

BRACKETS = "plain brackets stand for ceil, as recursive doubling prints it"
CORRECTED = "ceil in place of the printed floor"
FLOOR = (
    "With floor no set-up at all would be left for more ports than log p, and the paper's own "
    "simulator, whose trees have log 16 = 4 rounds, prints the same times for 2 and 3 ports."
)
SIZES_SAID = "of " + " and ".join(f"{size} bytes" for size in FORMULA_BYTES)


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
    command = (
        f"opticoll simulate {collective} --fabric light_path_grid:ranks=64,ports=2 "
        f"--algorithm {spelling} --size {size} --policy {{}}"
    )
    here = f"{label}: behaviour, cost on existing network"
    yield Claim(
        id=f"{name}.steps",
        where=here,
        says=f"{label} takes {STEPS_SAID[name]} steps.",
        unit="steps, p = 64",
        printed=STEPS[name],
        judge=Equal(),
        command=command.format("free"),
    )
    yield from _behaviour(name, here)
    formula, value = EXISTING[name]
    yield Claim(
        id=f"{name}.existing",
        where=here,
        says=f"The cost without set-ups is {formula}.",
        unit=f"s, n {SIZES_SAID}",
        printed=tuple(value(size) for size in FORMULA_BYTES),
        judge=EXACT,
        command=command.format("free"),
    )
    here = f"{label}: cost on optical network"
    formula, value = NAIVE[name]
    yield Claim(
        id=f"{name}.naive",
        where=here,
        says=f"The cost with one port is {formula}.",
        unit=f"s, n {SIZES_SAID}",
        printed=tuple(value(size) for size in FORMULA_BYTES),
        judge=EXACT,
        command=command.replace("ports=2", "ports=1").format("every_step"),
    )
    if name == "ring":
        yield Claim(
            id="ring.naive_odd",
            where=here,
            says="The naive cost has 2 (p - 1) set-ups, for any p.",
            unit="set-ups, p = 63",
            printed=124,
            judge=Equal(),
            remark="An odd ring is no union of two matchings: with one port a step falls into "
            "three parts. The paper evaluates p = 64 only, where the factor 2 holds.",
        )
    formula, set_ups = SET_UPS[name]
    condition = "k >= 2 ports" if name == "ring" else "k ports"
    reading = BRACKETS if name == "linear" else ""
    printed = Claim(
        id=f"{name}.ports",
        where=here,
        says=f"With {condition} {formula} γ is added to the cost without set-ups.",
        unit=f"s, k = 2, 3, 4, each n {SIZES_SAID}",
        printed=_with_ports(name, set_ups),
        judge=EXACT,
        reading=reading,
        remark=FLOOR if name == "binomial_tree" else "",
        command=command.format("establish_release"),
    )
    yield printed
    saving = "2p - 3" if name == "ring" else f"{_naive_said(name)} - {formula}"
    saved = Claim(
        id=f"{name}.saved",
        where=here,
        says=f"The delay is reduced by {saving} set-ups.",
        unit="set-ups saved, k = 2, 3, 4",
        printed=_saved(name, set_ups),
        judge=Equal(),
        reading=reading,
        remark=FLOOR if name == "binomial_tree" else "",
        command=command.format("establish_release"),
    )
    yield saved
    if name == "ring":
        yield Claim(
            id="ring.saved_time",
            where=here,
            says="The delay is reduced by (2p - 3) γ.",
            unit=f"s, k = 2, n {SIZES_SAID}",
            printed=((2 * P - 3) * GAMMA,) * len(FORMULA_BYTES),
            judge=EXACT,
            remark="As the difference of the two times. More ports also save one of the two "
            "transfers of each step, (p - 1) (α + n/p β), which the slide does not count.",
        )
    if name == "binomial_tree":
        for one, values, judge in (
            (printed, _with_ports(name, _ceil), EXACT),
            (saved, _saved(name, _ceil), Equal()),
        ):
            yield Claim(
                id=f"{one.id}_ceil",
                where=here,
                says="The same with ceil(log p / k).",
                unit=one.unit,
                printed=values,
                judge=judge,
                reading=CORRECTED,
                command=one.command,
            )


def _naive_said(name: str) -> str:
    return "(p - 1)" if name == "linear" else "log p"


def _behaviour(name: str, here: str) -> Iterator[Claim]:
    """What the slides say of a single step."""
    largest = FORMULA_BYTES[-1]
    if name == "recursive_doubling":
        yield Claim(
            id="recursive_doubling.partners",
            where=here,
            says="In step i a process exchanges with another at a distance of 2^(i - 1).",
            unit="ranks away",
            printed=tuple(2**step for step in range(LOG)),
            judge=Equal("used"),
        )
        yield Claim(
            id="recursive_doubling.step",
            where=here,
            says="Step i costs α + 2^(i - 1) n/p β.",
            unit=f"s, n = {largest} bytes",
            printed=tuple(ALPHA + 2**step * largest / P * BETA for step in range(LOG)),
            judge=EXACT,
        )
        return
    share, said = (largest / P, "n/p") if name == "ring" else (largest, "n")
    yield Claim(
        id=f"{name}.step",
        where=here,
        says=f"A step costs α + {said} β.",
        unit=f"s, n = {largest} bytes, shortest and longest step",
        printed=(ALPHA + share * BETA,) * 2,
        judge=EXACT,
    )


_NETWORK = "Underlying optical networks"

ALGORITHMS = (
    Claim(
        id="mpich.below",
        where="Adapting MPI collectives",
        says="MPICH's all-gather takes the ring below 512 KB.",
        unit="times as long by recursive doubling",
        judge=AtLeast(1, "the ring is the right choice where it is not slower"),
        remark="64 ranks on the existing network of the slides, 256 KiB in all.",
        command="opticoll compare all_gather --fabric light_path_grid:ranks=64,ports=2 "
        "--algorithms ring,recursive_doubling --size 4KiB --policy free",
    ),
    Claim(
        id="mpich.above",
        where="Adapting MPI collectives",
        says="MPICH's all-gather takes recursive doubling from 512 KB on.",
        unit="times as long by the ring",
        judge=AtLeast(1, "doubling is the right choice where it is not slower"),
        remark="64 ranks on the existing network of the slides, 1 MiB in all. MPICH itself does it "
        "the other way around: doubling below 524288 bytes, the ring from there on "
        "(`MPIR_CVAR_ALLGATHER_LONG_MSG_SIZE` in its `allgather.c`).",
        command="opticoll compare all_gather --fabric light_path_grid:ranks=64,ports=2 "
        "--algorithms ring,recursive_doubling --size 16KiB --policy free",
    ),
    Claim(
        id="mpich.crossing",
        where="Adapting MPI collectives",
        says="Ring and recursive doubling change places at 512 KB.",
        unit="changes from 1 KiB to 16 MiB",
        printed=1,
        judge=Equal(),
        remark="64 ranks on the existing network: how often the faster of the two changes.",
    ),
    Claim(
        id="network.processes",
        where=_NETWORK,
        says="A node runs one process.",
        unit="ranks of a node",
        printed=1,
        judge=Used(),
    ),
    Claim(
        id="network.ports",
        where=_NETWORK,
        says="All processes have the same number of ports, the others that a node can communicate "
        "with at once.",
        unit="ports that the root of linear uses, k = 1, 2, 3, 4",
        printed=(1, 2, 3, 4),
        judge=Used(),
    ),
    Claim(
        id="network.duplex",
        where=_NETWORK,
        says="A path carries both ways at once.",
        unit="times as long to exchange as to send",
        printed=1.0,
        judge=Used(),
    ),
    Claim(
        id="network.constant",
        where=_NETWORK,
        says="To set paths up takes as long for several as for one.",
        unit="s of a set-up, k = 1, 2, 3, 4",
        printed=(GAMMA,) * 4,
        judge=Rounded(9, "used"),
    ),
    Claim(
        id="network.managed",
        where=_NETWORK,
        says="A message with path management takes α + n β + γ.",
        unit=f"s, n {SIZES_SAID}",
        printed=tuple(ALPHA + size * BETA + GAMMA for size in FORMULA_BYTES),
        judge=EXACT,
        command="opticoll simulate broadcast --fabric light_path_grid:ranks=2 --algorithm linear "
        "--size 1KiB",
    ),
    Claim(
        id="network.plain",
        where=_NETWORK,
        says="A message over a path that is there takes α + n β.",
        unit=f"s, n {SIZES_SAID}",
        printed=tuple(ALPHA + size * BETA for size in FORMULA_BYTES),
        judge=EXACT,
        command="opticoll simulate broadcast --fabric light_path_grid:ranks=2 --algorithm linear "
        "--size 1KiB --paths warm",
    ),
    *(claim for name in LABELS for claim in _algorithm(name)),
)

_EVALUATION = "Simple evaluation"
_EFFECTIVE = "Results of various MPI collectives"
WORTH = 20
"""Per cent of the naive time: what a method must save to be called effective."""

EVALUATION = (
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
        unit="times the naive time, each algorithm",
        printed=(1.0,) * 4,
        judge=Equal(),
        remark="Paths set up for as many steps as one port allows, over paths set up for every "
        "step; 1 MiB.",
    ),
    Claim(
        id="evaluation.alpha",
        where=_EVALUATION,
        says="The latency is 100 us.",
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
        remark="The table lists 10^9 in the row of β, which the formulas use as a time for each "
        "byte: they make sense with 8 ns.",
    ),
    Claim(
        id="evaluation.gamma",
        where=_EVALUATION,
        says="To set a path up and release it takes 10 ms.",
        unit="s",
        printed=GAMMA,
        judge=Used(),
    ),
    Claim(
        id="evaluation.curves",
        where=_EFFECTIVE,
        says="Curves show the time of each algorithm: ideal, naive, with 2, 3 and 4 ports.",
        unit="",
        judge=NotStated("no number is printed on the curves; ours are in costs.svg and costs.csv"),
    ),
    *(
        Claim(
            id=f"effective.{name}",
            where=_EFFECTIVE,
            says=f"The method is effective for messages below 1 MB: {label.lower()}.",
            unit="% less than naive",
            judge=AtLeast(WORTH, "effective: a fifth of the naive time is saved at least"),
            remark="4 ports; the least of n = 1 kB to 1 MB.",
        )
        for name, label in LABELS.items()
    ),
    *(
        Claim(
            id=f"effective.{name}.only",
            where=_EFFECTIVE,
            says=f"1 MB is where the method stops being effective: {label.lower()}.",
            unit="% less than naive",
            judge=AtMost(WORTH, "no longer effective: less than a fifth is saved"),
            remark="4 ports, n = 10 MB.",
        )
        for name, label in LABELS.items()
    ),
)
