"""Costs of collectives over lightpaths, from plans for 64 ranks that are simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypedDict

import opticoll
from opticoll import Fabric, Outcome, Plan, format_size
from opticoll_papers import plots
from opticoll_papers.common import Results, TableRow
from opticoll_papers.judging import Computed

RANKS = 64
ROUNDS = 6  # binary logarithm of 64 ranks
PORTS = (1, 2, 3, 4)
LATENCY_S, BYTE_S, SET_UP_S = 100e-6, 8e-9, 10e-3

FORMULA_BYTES = (2**10, 2**20)
"""Sizes n in bytes for which n/64 is a whole number of bytes."""

TABLE_BYTES = (10**3, 10**4, 10**5, 10**6, 10**7)
CURVE_BYTES = tuple(factor * 10**power for power in range(3, 7) for factor in (1, 2, 5))
CURVE_BYTES += (10**7,)
QUICK_BYTES = TABLE_BYTES


@dataclass(frozen=True)
class Algorithm:
    """An algorithm of the paper: its label, and opticoll's names of collective and algorithm."""

    label: str
    collective: str
    spelling: str

    def block(self, size: int) -> int:
        """Converts the paper's size, all bytes that a rank receives, to opticoll's size."""
        return -(-size // RANKS) if self.collective == "all_gather" else size


ALGORITHMS = {
    "linear": Algorithm("Linear", "broadcast", "linear"),
    "ring": Algorithm("Ring", "all_gather", "ring"),
    "recursive_doubling": Algorithm("Recursive doubling", "all_gather", "recursive_doubling"),
    "binomial_tree": Algorithm("Binomial tree", "broadcast", "binomial"),
}
WAYS = {"ideal": "Ideal", "naive": "Naive"} | {f"{k}_ports": f"{k} ports" for k in PORTS[1:]}


class CostRow(TypedDict):
    """Cost of a collective at one size, from a verified plan."""

    algorithm: str
    bytes: int
    way: str
    setups: int
    time_s: float


PROVED = "Constructed and verified: no rank holds paths to more others than it has ports."


@cache
def proved(name: str, ports: int, ranks: int = RANKS) -> Plan:
    """Returns the verified plan of an algorithm, by the paper's name."""
    algorithm = ALGORITHMS[name]
    fabric = f"lightpath_grid:ranks={ranks},ports={ports}"
    plan = opticoll.plan(algorithm.collective, fabric, algorithm.spelling)
    violations = plan.verify()
    assert not violations, violations
    return plan


def simulated(name: str, ports: int, size: int, policy: str = "setup_teardown") -> Outcome:
    """Simulates a collective; `size` is in bytes, and `ports` is the number of ports per rank."""
    return proved(name, ports).simulate(ALGORITHMS[name].block(size), policy=policy)


def exchange_alone(size: int) -> int:
    """Returns the picoseconds of one message between two ranks over an existing lightpath."""
    plan = opticoll.plan("broadcast", "lightpath_grid:ranks=2,ports=1", "linear")
    assert not plan.verify()
    return int(plan.simulate(size, policy="free").time_ps)


def seconds(name: str, ports: int, size: int, policy: str = "setup_teardown") -> float:
    """Returns the time of a collective in seconds."""
    return float(simulated(name, ports, size, policy).time_ps / 1e12)


def run(results: Results, *, quick: bool) -> dict[str, Computed]:
    """Computes the four tables and curves; writes costs.csv, .svg, .png and effective.csv."""
    sizes = sorted({*TABLE_BYTES, *(QUICK_BYTES if quick else CURVE_BYTES)})
    rows = {
        (name, size, way): _row(name, size, way)
        for name in ALGORITHMS
        for size in sizes
        for way in WAYS
    }
    results.write("costs", list(rows.values()))
    results.show(
        "Seconds of a collective of n bytes among 64 ranks: 100 us, 1 Gb/s, 10 ms to set up and "
        "release (costs.csv)",
        ["algorithm", "n", *WAYS.values()],
        [
            [algorithm.label, format_size(size), *(_seconds(rows[name, size, way]) for way in WAYS)]
            for name, algorithm in ALGORITHMS.items()
            for size in TABLE_BYTES
        ],
        left=(0,),
    )
    _draw(results, rows, sizes)
    _doubled(results)
    return (
        _network()
        | {key: algorithm for name in ALGORITHMS for key, algorithm in _algorithm(name).items()}
        | _evaluation()
        | _hidden()
        | _effective(rows)
        | _mpich()
    )


def _hidden() -> dict[str, Computed]:
    """Computes the share of setups that one port performs while another port sends messages."""
    ideal, hidden, whole = (
        seconds("recursive_doubling", 2, RANKS * 10**6, policy)
        for policy in ("free", "per_port", "setup_teardown")
    )
    return {
        "work.overlap": Computed(
            100 * (1 - (hidden - ideal) / (whole - ideal)),
            f"Of {1e3 * (whole - ideal):.3g} ms {1e3 * (hidden - ideal):.3g} ms stay.",
        )
    }


def _row(name: str, size: int, way: str) -> CostRow:
    ports = {"ideal": 2, "naive": 1}.get(way) or int(way.partition("_")[0])
    outcome = simulated(name, ports, size, "free" if way == "ideal" else "setup_teardown")
    return CostRow(
        algorithm=name,
        bytes=size,
        way=way,
        setups=outcome.reconfigurations,
        time_s=outcome.time_ps / 1e12,
    )


def _seconds(row: CostRow) -> str:
    return f"{row['time_s']:.6f}"


def _draw(
    results: Results, rows: dict[tuple[str, int, str], CostRow], sizes: Sequence[int]
) -> None:
    panels = [
        plots.Panel(
            algorithm.label,
            [
                plots.Curve(
                    label,
                    [(size, rows[name, size, way]["time_s"]) for size in sizes],
                    colour,
                    # If more ports make no difference, this curve coincides with another curve.
                    dashed=way == "4_ports",
                )
                for colour, (way, label) in enumerate(WAYS.items())
            ],
        )
        for name, algorithm in ALGORITHMS.items()
    ]
    results.draw(
        "costs",
        plots.curves,
        panels,
        x_label="Size n (bytes)",
        y_label="Time (s)",
        title="64 ranks, latency 100 µs, rate 1 Gb/s, setup and teardown of lightpaths 10 ms",
        x_sizes=True,
        log_x=True,
    )


def _network() -> dict[str, Computed]:
    """Computes the costs of a message in the model, from plans of two ranks and of `linear`."""
    fabric = Fabric(f"lightpath_grid:ranks={RANKS}")
    pair = opticoll.plan("broadcast", "lightpath_grid:ranks=2", "linear")
    exchange = opticoll.plan("all_gather", "lightpath_grid:ranks=2", "recursive_doubling")
    assert not pair.verify()
    assert not exchange.verify()
    managed, plain = (
        tuple(pair.simulate(size, policy=policy).time_ps / 1e12 for size in FORMULA_BYTES)
        for policy in ("setup_teardown", "free")
    )
    ways = exchange.simulate(FORMULA_BYTES[-1], policy="free").time_ps / 1e12
    setups = tuple(
        (seconds("linear", ports, 1024) - seconds("linear", ports, 1024, "free"))
        / simulated("linear", ports, 1024).reconfigurations
        for ports in PORTS
    )
    longer = {
        size: {name: seconds(name, 1, size) / seconds(name, 2, size, "free") for name in ALGORITHMS}
        for size in FORMULA_BYTES
    }
    words = ", ".join(
        f"{ratio:.3g} ({algorithm.label.lower()})"
        for algorithm, ratio in zip(
            ALGORITHMS.values(), longer[FORMULA_BYTES[-1]].values(), strict=True
        )
    )
    # In the first step of recursive doubling, all ranks exchange n/64 bytes.
    first = next(iter(simulated("recursive_doubling", 2, FORMULA_BYTES[-1], "free").slots))
    alone = exchange_alone(FORMULA_BYTES[-1] // RANKS)
    one_path = managed[0] - plain[0]
    return {
        "comparison.dedicated": Computed((first["end_ps"] - first["start_ps"]) / alone),
        "work.set_up": Computed(_rounded(one_path)),
        "work.greatly": Computed(min(longer[FORMULA_BYTES[0]].values()), f"With 1 MiB: {words}."),
        "network.processes": Computed(fabric.ranks // RANKS),
        "network.ports": Computed(tuple(_ports(ports) for ports in PORTS), PROVED),
        "network.duplex": Computed(ways / plain[-1]),
        "network.constant": Computed(setups),
        "network.managed": Computed(managed, PROVED),
        "network.plain": Computed(plain, PROVED),
        "evaluation.processes": Computed(fabric.ranks),
        "evaluation.ports": Computed(
            tuple(
                Fabric(f"lightpath_grid:ranks={RANKS},ports={ports}").option("ports")
                for ports in PORTS
            )
        ),
        "evaluation.alpha": Computed(fabric.option("latency") / 1e12),
        "evaluation.beta": Computed(fabric.option("rate")),
        "evaluation.beta_time": Computed(
            round((plain[-1] - plain[0]) / (FORMULA_BYTES[-1] - FORMULA_BYTES[0]), 15)
        ),
        "evaluation.gamma": Computed(_rounded(one_path)),
    }


def _rounded(seconds: float) -> float:
    """Rounds seconds to picoseconds, which removes rounding errors of subtractions."""
    return round(seconds, 12)


def _ports(ports: int) -> int:
    """Returns the number of ports that rank 0 uses in the linear algorithm."""
    columns = proved("linear", ports).columns()
    ends = zip(columns["source"].tolist(), columns["source_port"].tolist(), strict=True)
    return len({port for source, port in ends if source == 0})


def _algorithm(name: str) -> dict[str, Computed]:
    """Computes the steps, times and setups of an algorithm."""
    plan = proved(name, 2)
    largest = FORMULA_BYTES[-1]
    spans = [
        (slot["end_ps"] - slot["start_ps"]) / 1e12
        for slot in simulated(name, 2, largest, "free").slots
    ]
    saved = tuple(
        simulated(name, 1, largest).reconfigurations
        - simulated(name, ports, largest).reconfigurations
        for ports in PORTS[1:]
    )
    with_ports = Computed(
        tuple(seconds(name, ports, size) for ports in PORTS[1:] for size in FORMULA_BYTES), PROVED
    )
    computed = {
        "steps": Computed(plan.slots, PROVED),
        "partners": Computed(_partners(name, plan), PROVED),
        "step": Computed((min(spans), max(spans))),
        "existing": Computed(tuple(seconds(name, 2, size, "free") for size in FORMULA_BYTES)),
        "naive": Computed(
            tuple(seconds(name, 1, size, "every_step") for size in FORMULA_BYTES), PROVED
        ),
        "ports": with_ports,
        "saved": Computed(saved),
    }
    if name == "recursive_doubling":
        computed["step"] = Computed(tuple(spans))
    if name == "ring":
        computed["naive_odd"] = Computed(proved(name, 1, 63).simulate(64).reconfigurations, PROVED)
        saved_times = [
            [
                seconds(name, 1, size, policy) - seconds(name, 2, size, policy)
                for policy in ("setup_teardown", "free")
            ]
            for size in FORMULA_BYTES
        ]
        computed |= {
            "saved_time": Computed(tuple(_rounded(total - free) for total, free in saved_times)),
            "saved_time.total": Computed(tuple(_rounded(total) for total, _ in saved_times)),
        }
    if name == "binomial_tree":
        computed |= {"ports.ceil": with_ports, "saved.ceil": Computed(saved)}
    return {f"{name}.{key}": value for key, value in computed.items()}


def _partners(name: str, plan: Plan) -> tuple[int, ...]:
    """Returns the numbers with which the paper's claims describe an algorithm's transfers."""
    columns = plan.columns()
    rows = list(
        zip(
            columns["slot"].tolist(),
            columns["source"].tolist(),
            columns["destination"].tolist(),
            columns["count"].tolist(),
            strict=True,
        )
    )
    match name:
        case "linear":
            in_order = [destination for _, _, destination, _ in sorted(rows)]
            return len({source for _, source, _, _ in rows}), len(set(in_order))
        case "ring":
            (away,) = {(destination - source) % RANKS for _, source, destination, _ in rows}
            (blocks,) = {count for *_, count in rows}
            return away, blocks * FORMULA_BYTES[-1] // RANKS
        case "recursive_doubling":
            return _distances(plan)
        case _:
            have, after = {0}, []
            for slot in range(plan.slots):
                have |= {
                    destination for slot_of_row, _, destination, _ in rows if slot_of_row == slot
                }
                after.append(len(have))
            return tuple(after)


def _distances(plan: Plan) -> tuple[int, ...]:
    """Returns the distance from rank 0 to its partner in each slot."""
    columns = plan.columns()
    met: dict[int, int] = {}
    for source, destination, slot in zip(
        columns["source"].tolist(),
        columns["destination"].tolist(),
        columns["slot"].tolist(),
        strict=True,
    ):
        if source == 0:
            met[slot] = destination
    return tuple(met[slot] for slot in sorted(met))


def _evaluation() -> dict[str, Computed]:
    """Computes the claims on the ideal and the naive method."""
    size = 2**20
    return {
        "evaluation.ideal": Computed(
            tuple(simulated(name, 2, size, "free").reconfigurations for name in ALGORITHMS)
        ),
        "evaluation.naive": Computed(
            tuple(simulated(name, 1, size, "every_step").reconfigurations for name in ALGORITHMS)
        ),
        "evaluation.one_port": Computed(
            tuple(
                seconds(name, 1, size) / seconds(name, 1, size, "every_step") for name in ALGORITHMS
            )
        ),
    }


def _effective(rows: dict[tuple[str, int, str], CostRow]) -> dict[str, Computed]:
    """Computes the percentage of the naive time that 4 ports save."""
    computed, least, beyond = {}, [], []
    for name in ALGORITHMS:
        saved = {
            size: 100 * (1 - rows[name, size, "4_ports"]["time_s"] / row["time_s"])
            for (algorithm, size, way), row in rows.items()
            if (algorithm, way) == (name, "naive")
        }
        least.append(min(saved.values()))
        beyond.append(round(saved[10**7], 3))
        computed[f"effective.{name}"] = Computed(
            min(share for size, share in saved.items() if size <= 10**6),
            "The n from which sending takes longer than setting up is in `effective.csv`.",
        )
    computed["effective.beyond"] = Computed(tuple(beyond))
    return computed | {"summary.reduction_model": Computed(min(least))}


MPICH = ("recursive_doubling", "ring")
"""Algorithms of MPICH's `MPIR_Allgather_intra` for 2^i processes, below and from 512 KiB."""


def _mpich() -> dict[str, Computed]:
    """Computes MPICH's choice, and the faster algorithm in the slides' cost model."""

    def ratio(size: int, ports: int, policy: str) -> float:
        doubling = seconds("recursive_doubling", ports, size, policy)
        return doubling / seconds("ring", ports, size, policy)

    sizes = [2**power for power in range(10, 25)]
    free, paths = (
        [ratio(size, 2, policy) for size in sizes] for policy in ("free", "setup_teardown")
    )
    return {
        "mpich.allgather": Computed(
            MPICH,
            "In the cost model of the slides the two never change places: from 1 KiB to 16 MiB "
            f"doubling takes {min(free):.3g} to {max(free):.3g} times as long as the ring without "
            f"setups, and {min(paths):.3g} to {max(paths):.3g} times as long with two ports.",
        )
    }


def _doubled(results: Results) -> None:
    """Shows the size at which the naive method takes twice the ideal time; writes effective.csv."""
    # A message takes as long as its setup if alpha + m beta = gamma.
    message = (SET_UP_S - LATENCY_S) / BYTE_S
    doubled = {
        "linear": message,
        "ring": RANKS * message,
        # Messages have n/p, 2 n/p and so on up to n/2 bytes: gamma log p = alpha log p + (p-1)/p n
        # beta.
        "recursive_doubling": message * ROUNDS * RANKS / (RANKS - 1),
        "binomial_tree": message,
    }
    rows: list[TableRow] = []
    for name, exact in doubled.items():
        size = round(exact)
        naive, ideal = seconds(name, 1, size), seconds(name, 2, size, "free")
        # Only half of a step of the ring is setup.
        parts = 2 if name == "ring" else 1
        rows.append(
            {
                "algorithm": name,
                "bytes": size,
                "naive_s": naive,
                "ideal_s": ideal,
                "4_ports_s": seconds(name, 4, size),
                "naive_over_ideal": naive / (parts * ideal),
            }
        )
    results.write("effective", rows)
    results.show(
        "n at which setting up takes as long as sending (effective.csv); the ring's half-steps are "
        "compared with half-steps",
        ["algorithm", "n (MB)", "naive / ideal"],
        [
            [
                ALGORITHMS[str(row["algorithm"])].label,
                f"{row['bytes'] / 1e6:.2f}",
                f"{row['naive_over_ideal']:.3f}",
            ]
            for row in rows
        ],
    )
