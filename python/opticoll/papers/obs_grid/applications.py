"""MPI programs over light paths: the NAS benchmarks EP, FT and MG, class A, 16 processes.

The traces in `traces` are of real runs of NPB 3.3 on 16 ranks: calls, sizes, and the time that each
rank computed between them. Computing is scaled where the paper's own times are asked for.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from functools import cache
from importlib import resources
from itertools import combinations
from statistics import median
from typing import Any

import zstandard

import opticoll
from opticoll import Fabric, plot
from opticoll.papers.judging import Computed
from opticoll.papers.kit import Results, TableRow

ALGORITHMS = {
    "all_reduce": "recursive_doubling",
    "all_to_all": "recursive_doubling",
    "barrier": "recursive_doubling",
    "broadcast": "binomial",
    "reduce": "binomial",
}
"""As the paper's simulator has them."""

PROGRAMS = ("ep", "ft")
COLLECTIVES = ("all_reduce", "barrier", "broadcast", "reduce")
MG_CALLS = ("all_reduce", "barrier", "broadcast", "irecv", "reduce", "send", "wait")
"""Of MG."""

IDEAL = "light_path_grid:ranks=16,ports=4,establish=0s"
WAYS = {"naive": 1, "2_ports": 2, "3_ports": 3, "4_ports": 4}
LABELS = {"ideal": "Ideal", "naive": "Naive"} | {f"{k}_ports": f"{k} ports" for k in (2, 3, 4)}

PICOSECONDS = 10**12

Replayed = Any
"""A row of `opticoll.replay`."""


@cache
def table(application: str) -> str:
    """The event table of a run."""
    name = f"{application}.A.16.csv.zst"
    packed = resources.files(__package__).joinpath("traces", name).read_bytes()
    return zstandard.ZstdDecompressor().decompressobj().decompress(packed).decode()


def without_skew(text: str, work_ps: int) -> str:
    """The same calls, with all computing before the first, alike on every rank."""
    head = [line for line in text.splitlines() if line.startswith("#")]
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines))
    begun: set[str] = set()
    for row in rows:
        row["compute_ns"] = "0" if row["rank"] in begun else str(work_ps // 1000)
        begun.add(row["rank"])
    written = io.StringIO()
    writer = csv.DictWriter(written, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return "\n".join(head) + "\n" + written.getvalue()


def replayed(text: str, network: str, paths: str | None = None) -> Replayed:
    """A program over a network, its collectives as the paper has them."""
    trace = opticoll.read_trace(text.encode())
    return opticoll.replay(trace, network, collectives=ALGORITHMS, paths=paths)


def calls(row: Replayed) -> dict[str, Any]:
    """How often each rank made each kind of call."""
    done = row.outcome
    return dict(zip(done.kinds["call"], done.calls["calls"], strict=True))


def grid(ports: int) -> str:
    """The paper's network."""
    return f"light_path_grid:ranks=16,ports={ports}"


@cache
def times(text: str) -> dict[str, int]:
    """Picoseconds without set-ups and with so many ports."""
    networks = {"ideal": IDEAL} | {way: grid(ports) for way, ports in WAYS.items()}
    return {way: replayed(text, network).time_ps for way, network in networks.items()}


def increases(application: str) -> dict[str, float]:
    """Seconds that set-ups add to a trace, by way."""
    real = times(table(application))
    return {way: (real[way] - real["ideal"]) / PICOSECONDS for way in WAYS}


def model(application: str, ideal_s: float) -> dict[str, int]:
    """Picoseconds of the calls of a program that takes so long without set-ups."""
    text = table(application)
    sending = replayed(without_skew(text, 0), IDEAL).time_ps
    return times(without_skew(text, round(ideal_s * PICOSECONDS) - sending))


def run(results: Results) -> dict[str, Computed]:
    """The table of EP and FT; writes applications.csv."""
    rows: list[TableRow] = []
    computed: dict[str, Computed] = {}
    for application in PROGRAMS:
        printed = results.printed(f"{application}.ideal")
        made, real = model(application, printed), times(table(application))
        for way in LABELS:
            rows.append(
                {
                    "application": application.upper(),
                    "way": way,
                    "model_s": made[way] / PICOSECONDS,
                    "trace_s": real[way] / PICOSECONDS,
                    "model_increase_s": (made[way] - made["ideal"]) / PICOSECONDS,
                    "trace_increase_s": (real[way] - real["ideal"]) / PICOSECONDS,
                }
            )
        computed |= _program(application, made, real)
        computed |= {
            f"{application}.{way}.percent": Computed(
                100 * (results.printed(f"{application}.{way}") / printed - 1)
            )
            for way in WAYS
        }
    results.write("applications", rows)
    results.show(
        "Seconds of EP and FT, class A, 16 processes: the paper's ideal time with the set-ups of "
        "all collectives; a trace of a real run (applications.csv)",
        ["", "way", "model", "trace", "+ model", "+ trace"],
        [
            [
                row["application"],
                LABELS[str(row["way"])],
                *(f"{row[key]:.3f}" for key in ("model_s", "trace_s")),
                *(f"{row[f'{key}_increase_s']:.3f}" for key in ("model", "trace")),
            ]
            for row in rows
        ],
        left=(0, 1),
    )
    return computed | _together() | _simulator()


def _program(application: str, made: dict[str, int], real: dict[str, int]) -> dict[str, Computed]:
    text, added = table(application), increases(application)
    counts = _collectives(text)
    assert len(counts) == 1, "ranks make as many collectives"
    found = {
        "ideal": Computed(real["ideal"] / PICOSECONDS),
        "equal": Computed(1000 * abs(added["2_ports"] - added["3_ports"])),
        "collectives": Computed(counts.pop()),
    }
    for way, ports in WAYS.items():
        found |= {
            way: Computed(
                made[way] / PICOSECONDS,
                f"{found['collectives'].value} collectives of 4 rounds, each with "
                f"ceil(4/{ports}) set-ups of 10 ms.",
            ),
            f"{way}.increase": Computed(added[way]),
        }
    return {f"{application}.{key}": one for key, one in found.items()}


def _collectives(text: str) -> set[int]:
    """How many collectives ranks make: one number where all make as many."""
    made = [counts for call, counts in calls(replayed(text, "zero")).items() if call in ALGORITHMS]
    return {int(total) for total in sum(made)}


def _together() -> dict[str, Computed]:
    """What EP, FT and MG show together."""
    ep, ft = (increases(one) for one in PROGRAMS)
    several = replayed(table("ep"), grid(4)).light_paths
    assert several is not None
    each = {one: _collectives(table(one)).pop() for one in PROGRAMS}
    rising = any(
        added[f"{ports + 1}_ports"] > added["naive" if ports == 1 else f"{ports}_ports"] + 0.001
        for added in (ep, ft)
        for ports in (1, 2, 3)
    )
    left = max(100 * added["4_ports"] / added["naive"] for added in (ep, ft))
    kept = {
        (program, ports): replayed(table(program), grid(ports)).time_ps
        / replayed(table(program), grid(ports), "kept").time_ps
        for program in (*PROGRAMS, "mg")
        for ports in (1, 2, 4)
    }
    frequent = []
    for program in (*PROGRAMS, "mg"):
        free, naive = (replayed(table(program), network) for network in (IDEAL, grid(1)))
        made = sum(int(counts[0]) for counts in calls(free).values())
        frequent.append((made / free.time_s, naive.time_s / free.time_s))
    pairs = list(combinations(frequent, 2))
    four = replayed(table("mg"), grid(4)).time_s / replayed(table("mg"), grid(1)).time_s
    return {
        "comparison.frequency": Computed(
            sum((one[0] > two[0]) == (one[1] > two[1]) for one, two in pairs),
            "; ".join(f"{often:.3g} calls/s, {slow:.3g} times" for often, slow in frequent) + ".",
        ),
        "programs.directly": Computed(
            tuple((ft[way] / each["ft"]) / (ep[way] / each["ep"]) for way in WAYS)
        ),
        "programs.more_ports": Computed(100.0 if rising else left),
        "method.together": Computed(several.set_ups / 16 / each["ep"]),
        "method.kept": Computed(kept["mg", 4]),
        "method.kept_never_slower": Computed(min(kept.values())),
        "summary.reduction": Computed(
            100 * (1 - max(four, *(_left(program) for program in PROGRAMS)))
        ),
    }


def _left(application: str) -> float:
    """The time with 4 ports over that with one."""
    real = times(table(application))
    return real["4_ports"] / real["naive"]


def _simulator() -> dict[str, Computed]:
    """Parameters of the replay, and what a message costs there."""
    fabric = Fabric(grid(4))
    rows = [replayed(table(one), grid(4)) for one in (*PROGRAMS, "mg")]
    algorithms = {one.collective: one.chosen for row in rows for one in row.collectives}
    whole, unreleased, free = (
        replayed(_message(2**10), f"light_path_grid:ranks=2,{options}").time_ps
        for options in ("ports=1", "ports=1,release=0s", "ports=1,establish=0s")
    )
    set_up, release = (unreleased - free) / PICOSECONDS, (whole - unreleased) / PICOSECONDS
    sent = tuple(
        replayed(_message(size), "light_path_grid:ranks=2,ports=1,establish=0s").time_s
        for size in (2**10, 2**20)
    )
    return {
        "simulation.programs": Computed(rows[0].ranks),
        "simulation.bandwidth": Computed(fabric.option("rate")),
        "simulation.latency": Computed(fabric.option("latency") / PICOSECONDS),
        "simulation.path": Computed(set_up + release),
        **{f"simulation.{name}": Computed(algorithms[name]) for name in ALGORITHMS},
        "simulator.parts": Computed(
            tuple(
                row.compute_s / (_computing(table(one)) / 1e9)
                for one, row in zip((*PROGRAMS, "mg"), rows, strict=True)
            )
        ),
        "simulator.set_up": Computed((set_up, release)),
        "simulator.message": Computed(sent),
    }


def _message(size: int) -> str:
    """A program of two ranks: one message of so many bytes."""
    return "\n".join(
        (
            "# app=message ranks=2 unit=ns",
            "# comm 0 = 0 1",
            "rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns",
            "0,Init,,0,0,,0,,0",
            f"0,Send,1,{size},0,0,0,,0",
            "0,Finalize,,0,0,,0,,0",
            "1,Init,,0,0,,0,,0",
            f"1,Recv,0,0,{size},0,0,,0",
            "1,Finalize,,0,0,,0,,0",
            "",
        )
    )


def _parts(text: str) -> dict[str, list[int]]:
    """Nanoseconds of computing before each call, by rank."""
    parts: dict[str, list[int]] = {}
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for row in csv.DictReader(lines):
        parts.setdefault(row["rank"], []).append(int(row["compute_ns"]))
    return parts


def _computing(text: str) -> int:
    """Nanoseconds of the rank that computes longest."""
    return max(sum(own) for own in _parts(text).values())


def draw(results: Results, paper: Mapping[str, Any]) -> None:
    """Writes applications.svg and .png; `paper` are the increases that it prints, by item."""
    panels = [
        plot.BarPanel(
            application.upper(),
            {
                "paper": [1000 * paper[f"{application}.{way}.increase"] for way in WAYS],
                "trace of a real run": [1000 * increases(application)[way] for way in WAYS],
            },
        )
        for application in PROGRAMS
    ]
    results.draw(
        "applications",
        plot.grouped_bars,
        panels,
        [LABELS[way] for way in WAYS],
        x_label="",
        y_label="Longer than ideal (ms)",
        title="NAS benchmarks, class A, 16 processes, over light paths",
        log_y=False,
    )


def motivation(results: Results) -> dict[str, Computed]:
    """MG: calls of a process, and what a set-up for each would cost; writes motivation.csv."""
    free, naive = (replayed(table("mg"), network) for network in (IDEAL, grid(1)))
    made = {name: counts for name, counts in calls(free).items() if name in MG_CALLS}
    set_up_s = 2 * Fabric(grid(1)).option("establish") / PICOSECONDS
    rows: list[TableRow] = [
        {
            "call": name,
            "rank_0": int(made[name][0]),
            "fewest": int(made[name].min()),
            "most": int(made[name].max()),
            "ranks_as_rank_0": int((made[name] == made[name][0]).sum()),
            "set_ups_s": round(int(made[name][0]) * set_up_s, 3),
        }
        for name in MG_CALLS
    ]
    results.write("motivation", rows)
    results.show(
        "Calls of a process of MG, class A, 16 processes, and 10 ms for each (motivation.csv)",
        ["call", "rank 0", "fewest", "most", "ranks as rank 0", "10 ms each (s)"],
        [[*list(row.values())[:-1], f"{row['set_ups_s']:.2f}"] for row in rows],
    )
    spread = {str(row["call"]): f"{row['fewest']} to {row['most']} on all ranks." for row in rows}
    counts = {name: int(own[0]) for name, own in made.items()}
    collectives = sum(counts[name] for name in COLLECTIVES)
    assert _collectives(table("mg")) == {collectives}
    sends, receives = (round(counts[name] * set_up_s, 3) for name in ("send", "irecv"))
    least, most = sends + collectives * set_up_s, sends + receives + collectives * 4 * set_up_s
    measured = results.printed("mg.time")
    gaps = [part for own in _parts(table("mg")).values() for part in own if part > 0]
    return {
        **{f"mg.calls.{name}": Computed(counts[name], spread[name]) for name in MG_CALLS},
        "mg.time": Computed(free.time_s),
        "mg.set_up": Computed(set_up_s),
        "mg.sends": Computed(sends),
        "mg.receives": Computed(receives),
        "mg.collectives": Computed(collectives),
        "mg.collectives_cost": Computed(collectives * 4 * set_up_s),
        "mg.increase.times": Computed((least / measured, most / measured)),
        "mg.increase.seconds": Computed((least, most)),
        "mg.significant": Computed(naive.time_s / free.time_s),
        "related.hidden": Computed(
            set_up_s * 1e9 / median(gaps),
            f"The median of computing is {median(gaps) / 1e3:.3g} us.",
        ),
    }
