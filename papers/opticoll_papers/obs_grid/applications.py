"""MPI programs over lightpaths: the NAS benchmarks EP, FT and MG of class A on 16 ranks.

The folder `traces` has traces of real runs of NPB 3.3 on 16 ranks, with calls, sizes, and the
compute time of each rank between its calls.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib import resources
from itertools import combinations, pairwise
from statistics import median
from typing import Any

import zstandard

import opticoll
from opticoll import Fabric, plot
from opticoll_papers import plots
from opticoll_papers.common import Results, TableRow
from opticoll_papers.judging import Computed

ALGORITHMS = {
    "all_reduce": "recursive_doubling",
    "all_to_all": "recursive_doubling",
    "barrier": "recursive_doubling",
    "broadcast": "binomial",
    "reduce": "binomial",
}
"""Algorithms of collectives in the paper's simulator, by name of the collective."""

PROGRAMS = ("ep", "ft")
COLLECTIVES = ("all_reduce", "barrier", "broadcast", "reduce")
MESSAGES = ("send", "irecv")
MG_CALLS = ("all_reduce", "barrier", "broadcast", "irecv", "reduce", "send", "wait")
"""Calls of the benchmark MG."""

IDEAL = "lightpath_grid:ranks=16,ports=4,setup=0s"
WAYS = {"naive": 1, "2_ports": 2, "3_ports": 3, "4_ports": 4}
LABELS = {"ideal": "Ideal", "naive": "Naive"} | {f"{k}_ports": f"{k} ports" for k in (2, 3, 4)}

PICOSECONDS = 10**12

Replayed = Any
"""Row of `opticoll.replay`."""


@cache
def table(application: str) -> str:
    """Reads the event table of a benchmark's run."""
    name = f"{application}.A.16.csv.zst"
    packed = resources.files(__package__).joinpath("traces", name).read_bytes()
    return zstandard.ZstdDecompressor().decompressobj().decompress(packed).decode()


@cache
def replayed(text: str, network: str, paths: str | None = None) -> Replayed:
    """Replays a program on a network, with the paper's algorithms for collectives."""
    trace = opticoll.read_trace(text.encode())
    return opticoll.replay(trace, network, collectives=ALGORITHMS, paths=paths)


def calls(row: Replayed) -> dict[str, Any]:
    """Returns the number of calls of each kind per rank."""
    done = row.outcome
    return dict(zip(done.kinds["call"], done.calls["calls"], strict=True))


def grid(ports: int) -> str:
    """Returns the specification of the paper's network with a number of ports per rank."""
    return f"lightpath_grid:ranks=16,ports={ports}"


@cache
def times(text: str) -> dict[str, int]:
    """Returns the picoseconds without setups, and the picoseconds with each number of ports."""
    networks = {"ideal": IDEAL} | {way: grid(ports) for way, ports in WAYS.items()}
    return {way: replayed(text, network).time_ps for way, network in networks.items()}


def increases(application: str) -> dict[str, float]:
    """Returns the seconds that setups add to a trace, by number of ports."""
    real = times(table(application))
    return {way: (real[way] - real["ideal"]) / PICOSECONDS for way in WAYS}


def run(results: Results) -> dict[str, Computed]:
    """Computes the claims on EP and FT, with a table; writes applications.csv."""
    rows: list[TableRow] = []
    computed: dict[str, Computed] = {}
    for application in PROGRAMS:
        real, printed = times(table(application)), paper_times(results, application)
        for way in LABELS:
            rows.append(
                {
                    "application": application.upper(),
                    "way": way,
                    "trace_s": real[way] / PICOSECONDS,
                    "increase_s": (real[way] - real["ideal"]) / PICOSECONDS,
                }
            )
        computed |= _program(application, real) | _from_printed(application, printed)
    results.write("applications", rows)
    results.show(
        "Seconds of EP and FT, class A, 16 processes, in traces of real runs (applications.csv)",
        ["", "way", "trace", "longer"],
        [
            [
                row["application"],
                LABELS[str(row["way"])],
                *(f"{row[key]:.3f}" for key in ("trace_s", "increase_s")),
            ]
            for row in rows
        ],
        left=(0, 1),
    )
    return computed | _together() | _both_printed(results) | _frequency() | _simulator()


def paper_times(results: Results, application: str) -> dict[str, float]:
    """Returns the printed times in seconds, by number of ports."""
    return dict(zip(LABELS, results.printed(f"{application}.times"), strict=True))


def _program(application: str, real: Mapping[str, int]) -> dict[str, Computed]:
    text, added = table(application), increases(application)
    counts = _collectives(text)
    assert len(counts) == 1, "ranks make as many collectives"
    count, set_up_s = counts.pop(), _set_up_s()
    computed = {
        "times": Computed(tuple(round(real[way] / PICOSECONDS, 6) for way in LABELS)),
        "equal": Computed(1000 * abs(added["2_ports"] - added["3_ports"])),
        "collectives": Computed(count),
        **{
            f"{way}.setups": Computed(
                added[way] / set_up_s / count, f"The trace takes {added[way]:.3f} s longer."
            )
            for way in WAYS
        },
    }
    return {f"{application}.{key}": value for key, value in computed.items()}


def _from_printed(application: str, printed: Mapping[str, float]) -> dict[str, Computed]:
    """Computes the claims that follow from printed times."""
    ideal, added = printed["ideal"], increases(application)
    lacking = tuple(round(1000 * (added[way] - (printed[way] - ideal)), 1) for way in WAYS)
    percent = {
        f"{application}.{way}.percent": Computed(100 * (printed[way] / ideal - 1)) for way in WAYS
    }
    return percent | {f"{application}.lacking": Computed(lacking)}


def _both_printed(results: Results) -> dict[str, Computed]:
    """Computes the claims that follow from the printed times of both programs."""
    printed = {program: paper_times(results, program) for program in PROGRAMS}
    counts = {program: results.printed(f"{program}.collectives") for program in PROGRAMS}
    added = {program: [own[way] - own["ideal"] for way in WAYS] for program, own in printed.items()}
    reduced = {
        program: 100 * (1 - own["4_ports"] / own["naive"]) for program, own in printed.items()
    }
    often = {name: counts[name] / own["ideal"] for name, own in printed.items()}
    slower = {name: own["naive"] / own["ideal"] - 1 for name, own in printed.items()}
    order = slower["ft"] / slower["ep"] if often["ft"] > often["ep"] else 0.0
    return {
        "comparison.frequency_printed": Computed(
            order,
            "; ".join(
                f"{name.upper()} {often[name]:.2g} collectives/s, {100 * slower[name]:.3g} % longer"
                for name in PROGRAMS
            )
            + ".",
        ),
        "programs.directly_printed": Computed(
            tuple(
                round(ft / counts["ft"] / (ep / counts["ep"]), 4)
                for ep, ft in zip(added["ep"], added["ft"], strict=True)
            )
        ),
        "programs.each_port": Computed(
            max(100 * after / before for own in added.values() for before, after in pairwise(own)),
            "The third port leaves as much as two: ceil(4 / 3) = ceil(4 / 2).",
        ),
        "summary.reduction_printed": Computed(
            min(reduced.values()), f"EP {reduced['ep']:.3g} %, FT {reduced['ft']:.3g} %."
        ),
    }


def _set_up_s() -> float:
    return float(2 * Fabric(grid(1)).option("setup") / PICOSECONDS)


def _collectives(text: str) -> set[int]:
    """Returns the number of collectives per rank; several numbers if ranks differ."""
    counts_by_call = [
        counts for call, counts in calls(replayed(text, "zero")).items() if call in ALGORITHMS
    ]
    return {int(total) for total in sum(counts_by_call)}


def _together() -> dict[str, Computed]:
    """Computes the claims on EP, FT and MG together."""
    ep, ft = (increases(name) for name in PROGRAMS)
    several = replayed(table("ep"), grid(4)).lightpath_setups
    assert several is not None
    each = {name: _collectives(table(name)).pop() for name in PROGRAMS}
    rising = any(
        after > 1.01 * before for own in (ep, ft) for before, after in pairwise(own.values())
    )
    left = max(100 * added["4_ports"] / added["naive"] for added in (ep, ft))
    kept_s = {
        (program, ports): replayed(table(program), grid(ports)).time_ps
        / replayed(table(program), grid(ports), "kept").time_ps
        for program in (*PROGRAMS, "mg")
        for ports in (1, 2, 4)
    }
    hidden = []
    for program, added in zip(PROGRAMS, (ep, ft), strict=True):
        predicted_ps = replayed(table(program), grid(1), "predicted").time_ps
        left_s = (predicted_ps - times(table(program))["ideal"]) / PICOSECONDS
        hidden.append(100 * (1 - left_s / added["naive"]))
    four = replayed(table("mg"), grid(4)).time_s / replayed(table("mg"), grid(1)).time_s
    reduced = [100 * (1 - share) for share in (*(_left(name) for name in PROGRAMS), four)]
    return {
        "programs.directly": Computed(
            tuple((ft[way] / each["ft"]) / (ep[way] / each["ep"]) for way in WAYS)
        ),
        "programs.more_ports": Computed(
            100.0 if rising else left, "A third port leaves as much as two."
        ),
        "related.prediction": Computed(min(hidden), "EP {:.3g} %, FT {:.3g} %.".format(*hidden)),
        "method.together": Computed(several.setups / 16 / each["ep"]),
        "method.kept": Computed(
            kept_s["mg", 4],
            f"EP, FT and MG with 1, 2 and 4 ports are {min(kept_s.values()):.3g} to "
            f"{max(kept_s.values()):.3g} times faster.",
        ),
        "summary.reduction": Computed(
            min(reduced), "EP {:.3g} %, FT {:.3g} %, MG {:.3g} %.".format(*reduced)
        ),
    }


def _frequency() -> dict[str, Computed]:
    """Computes whether programs that communicate more often slow down more."""
    frequent = {}
    for program in (*PROGRAMS, "mg"):
        free, naive = (replayed(table(program), network) for network in (IDEAL, grid(1)))
        counts_by_call = calls(free)
        count = sum(
            int(own[0]) for call, own in counts_by_call.items() if call in (*ALGORITHMS, *MESSAGES)
        )
        frequent[program] = (count / free.time_s, naive.time_s / free.time_s)
    pairs = list(combinations(frequent.values(), 2))
    return {
        "comparison.frequency": Computed(
            sum((first[0] > second[0]) == (first[1] > second[1]) for first, second in pairs),
            "; ".join(
                f"{program.upper()} {often:.3g} calls/s, {slow:.3g} times longer"
                for program, (often, slow) in frequent.items()
            )
            + ".",
        )
    }


def _left(application: str) -> float:
    """Returns the ratio of the time with 4 ports to the time with one port."""
    real = times(table(application))
    return real["4_ports"] / real["naive"]


def _simulator() -> dict[str, Computed]:
    """Computes the parameters of the replay, and the cost of a message in the replay."""
    fabric = Fabric(grid(4))
    rows = [replayed(table(program), grid(4)) for program in (*PROGRAMS, "mg")]
    algorithms = {program.collective: program.chosen for row in rows for program in row.collectives}
    whole, unreleased, free = (
        replayed(_message(2**10), f"lightpath_grid:ranks=2,{options}").time_ps
        for options in ("ports=1", "ports=1,teardown=0s", "ports=1,setup=0s")
    )
    set_up, release = (unreleased - free) / PICOSECONDS, (whole - unreleased) / PICOSECONDS
    sent = tuple(
        replayed(_message(size), "lightpath_grid:ranks=2,ports=1,setup=0s").time_s
        for size in (2**10, 2**20)
    )
    named = tuple(table(program).partition("app=")[2].partition(" ")[0] for program in PROGRAMS)
    return {
        "comparison.set_up": Computed(min(set_up, release)),
        "simulation.programs": Computed((*named, rows[0].ranks)),
        "simulation.bandwidth": Computed(fabric.option("rate")),
        "simulation.latency": Computed(fabric.option("latency") / PICOSECONDS),
        "simulation.path": Computed(set_up + release),
        "simulation.all_to_all_bytes": Computed(_forwarded(2**20)),
        **{f"simulation.{name}": Computed(algorithms[name]) for name in ALGORITHMS},
        "simulator.parts": Computed(
            tuple(
                row.compute_s / (_computing(table(program)) / 1e9)
                for program, row in zip((*PROGRAMS, "mg"), rows, strict=True)
            )
        ),
        "simulator.set_up": Computed((set_up, release)),
        "simulator.message": Computed(sent),
    }


def _forwarded(size: int) -> float:
    """Returns the share of a rank's all_to_all bytes that one message carries."""
    lines = ["# app=all_to_all ranks=16 unit=ns", "# comm 0 = " + " ".join(map(str, range(16)))]
    lines.append("rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns")
    for rank in range(16):
        lines += [
            f"{rank},{call},,{sent},{sent},,0,,0"
            for call, sent in (("Init", 0), ("Alltoall", size), ("Finalize", 0))
        ]
    fabric = Fabric(grid(4))
    latency_s, rate = fabric.option("latency") / PICOSECONDS, fabric.option("rate")
    each_s = replayed("\n".join(lines) + "\n", IDEAL).time_s / 4
    return float(round((each_s - latency_s) * rate / 8 / size, 9))


def _message(size: int) -> str:
    """Returns a program of two ranks that send one message of `size` bytes."""
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
    """Returns the nanoseconds of computing before each call, by rank."""
    parts: dict[str, list[int]] = {}
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for row in csv.DictReader(lines):
        parts.setdefault(row["rank"], []).append(int(row["compute_ns"]))
    return parts


def _computing(text: str) -> int:
    """Returns the nanoseconds of the rank that computes longest."""
    return max(sum(own) for own in _parts(text).values())


def draw(results: Results) -> None:
    """Draws the printed and the computed increases; writes applications.svg and .png."""
    panels = []
    for application in PROGRAMS:
        printed, added = paper_times(results, application), increases(application)
        panels.append(
            plot.BarPanel(
                application.upper(),
                {
                    "paper": [1000 * (printed[way] - printed["ideal"]) for way in WAYS],
                    "trace of a real run": [1000 * added[way] for way in WAYS],
                },
            )
        )
    results.draw(
        "applications",
        plots.grouped_bars,
        panels,
        [LABELS[way] for way in WAYS],
        x_label="",
        y_label="Longer than ideal (ms)",
        title="NAS benchmarks, class A, 16 ranks, lightpaths of 1 Gb/s, setup and teardown 10 ms",
        log_y=False,
    )


def motivation(results: Results) -> dict[str, Computed]:
    """Computes MG's calls per process, and the cost of a setup for each; writes motivation.csv."""
    free, naive = (replayed(table("mg"), network) for network in (IDEAL, grid(1)))
    counts_by_call = {name: counts for name, counts in calls(free).items() if name in MG_CALLS}
    set_up_s = _set_up_s()
    rows: list[TableRow] = [
        {
            "call": name,
            "rank_0": int(counts_by_call[name][0]),
            "fewest": int(counts_by_call[name].min()),
            "most": int(counts_by_call[name].max()),
            "ranks_as_rank_0": int((counts_by_call[name] == counts_by_call[name][0]).sum()),
            "set_ups_s": round(int(counts_by_call[name][0]) * set_up_s, 3),
        }
        for name in MG_CALLS
    ]
    results.write("motivation", rows)
    results.show(
        "Calls of a process of MG, class A, 16 processes, and 10 ms for each (motivation.csv)",
        ["call", "rank 0", "fewest", "most", "ranks as rank 0", "10 ms each (s)"],
        [[*list(row.values())[:-1], f"{row['set_ups_s']:.2f}"] for row in rows],
    )
    spread = {
        str(row["call"]): f"{row['most']} on all ranks."
        if row["fewest"] == row["most"]
        else f"{row['fewest']} to {row['most']}, by rank."
        for row in rows
    }
    counts = {name: int(own[0]) for name, own in counts_by_call.items()}
    collectives = sum(counts[name] for name in COLLECTIVES)
    assert _collectives(table("mg")) == {collectives}
    sends, receives = (round(counts[name] * set_up_s, 3) for name in ("send", "irecv"))
    printed = {
        name: results.printed(f"mg.calls.{name}") for name in ("send", "irecv", *COLLECTIVES)
    }
    path_s = results.printed("mg.set_up")

    def ends(messages: int) -> tuple[float, float]:
        added = collectives * messages * set_up_s
        return round(sends + added, 3), round(sends + receives + added, 3)

    measured, one_port, four_ports = results.printed("mg.time"), ends(1), ends(4)
    return {
        **{f"mg.calls.{name}": Computed(counts[name], spread[name]) for name in MG_CALLS},
        "mg.time": Computed(free.time_s),
        "mg.set_up": Computed(set_up_s),
        "mg.sends": Computed(round(printed["send"] * path_s, 3)),
        "mg.receives": Computed(round(printed["irecv"] * path_s, 3)),
        "mg.collectives": Computed(sum(printed[name] for name in COLLECTIVES)),
        "mg.collectives_cost": Computed(collectives * 4 * set_up_s),
        "mg.increase": Computed(
            four_ports,
            f"As times {measured} s: {four_ports[0] / measured:.3g} to "
            f"{four_ports[1] / measured:.3g}. With one message for each collective: "
            f"{one_port[0]:.4g} to {one_port[1]:.4g} s, or "
            f"{one_port[0] / measured:.3g} to {one_port[1] / measured:.3g} times.",
        ),
        "mg.significant": Computed(naive.time_s / free.time_s),
        **_hidden(set_up_s),
    }


def _hidden(set_up_s: float) -> dict[str, Computed]:
    """Computes the ratio of a setup time to the median computing time before a call."""
    ratio, words = {}, {}
    for program in (*PROGRAMS, "mg"):
        gaps = [part for own in _parts(table(program)).values() for part in own if part > 0]
        ratio[program] = set_up_s * 1e9 / median(gaps)
        long = [part for part in gaps if part >= set_up_s * 1e9]
        words[program] = (
            f"{program.upper()}: {ratio[program]:.4g} times the median of {median(gaps) / 1e3:.4g} "
            f"us; {len(long) / len(gaps):.2%} of calls come after at least 10 ms of "
            f"computing, with {sum(long) / sum(gaps):.0%} of its time."
        )
    return {
        "related.hidden": Computed(ratio["mg"], words["mg"]),
        "related.hidden_programs": Computed(
            min(ratio[name] for name in PROGRAMS),
            " ".join(words[name] for name in PROGRAMS)
            + " Before such calls a predicted setup could be hidden.",
        ),
    }
