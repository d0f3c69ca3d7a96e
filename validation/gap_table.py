"""Time over bound, and planning time, of every collective on 14 fabrics, as a page.

    python validation/gap_table.py --store gaps.jsonl --out docs/gap-table.md
    python validation/gap_table.py --store fibres.jsonl --fibres

The second command computes rows of five collectives on graphs of fibres under two policies, and
prints their gaps.

Each row is one `opticoll plan`; the store keeps what is computed, so that the command may be
stopped and called again. The worst rows need a sentence in `gap_reasons.yaml`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile

import yaml

from opticoll.outputs import layout

REASONS = Path(__file__).parent / "gap_reasons.yaml"

LINKS = "rate=100Gb/s,latency=500ns"
FABRICS = (
    "wdm_ring:ranks=1024,wavelengths=64",
    "wdm_ring:ranks=64,wavelengths=8",
    "wdm_ring:ranks=64,wavelengths=8,broken=3-4",
    "wss_grid:rows=32,columns=32",
    "lightpath_grid:ranks=256",
    "circuit_switch:ranks=1024,ports=4,rate=200Gb/s,latency=500ns,reconfiguration=10us",
    f"crossbar:ranks=1024,{LINKS}",
    f"fat_tree:down=32x32,up=1x16,{LINKS}",
    f"torus:dims=32x32,{LINKS}",
    f"torus:dims=8x8x16,{LINKS}",
    f"dragonfly:terminals_per_router=4,routers_per_group=8,global_per_router=4,{LINKS}",
    "dgx_h100:boxes=128,in_network=none,library=none",
    "dgx_a100:boxes=5,library=none",
    "mi250:boxes=2",
)
COLLECTIVES = (
    "all_gather",
    "reduce_scatter",
    "all_reduce",
    "broadcast",
    "reduce",
    "scatter",
    "gather",
    "all_to_all",
    "barrier",
)
CHANNELS = "wavelengths=8,rate=100Gb/s,reconfiguration=25us"
# Cables of NSFNET and of GEANT in 2012, without lengths.
NSFNET = (
    "0-1+0-2+0-7+1-2+1-3+2-5+3-4+3-10+4-5+4-6+5-9+5-13+6-7+6-9+7-8+8-9+"
    "8-11+8-12+10-11+10-12+11-13+12-13"
)
GEANT = (
    "0-1+0-2+0-4+0-30+0-34+1-33+2-4+2-31+2-32+2-35+2-36+2-38+3-4+3-5+3-10+"
    "3-19+3-30+4-5+4-6+4-8+4-16+4-17+4-29+4-31+5-23+6-7+7-8+7-25+7-34+8-9+"
    "8-25+9-15+9-18+9-25+9-29+11-13+12-13+12-14+12-15+12-20+12-22+13-14+13-22+"
    "15-29+16-34+17-30+21-27+22-23+22-26+22-27+23-29+24-25+24-34+27-28+28-29+"
    "30-39+32-34+33-34+35-36+36-37+38-39"
)
FIBRES = (
    f"wdm_ring:ranks=64,{CHANNELS}",
    f"wdm_torus:dims=4x4,{CHANNELS}",
    f"wdm_torus:dims=8x8,{CHANNELS}",
    f"wdm_mesh:dims=4x4,{CHANNELS}",
    f"wdm_hypercube:ranks=16,{CHANNELS}",
    f"wdm_line:ranks=16,{CHANNELS}",
    f"wdm_graph:ranks=14,links={NSFNET},{CHANNELS}",
    f"wdm_graph:ranks=40,links={GEANT},{CHANNELS}",
)
FIBRE_COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce", "broadcast", "all_to_all")
POLICIES = ("every_step", "on_change")
SIZES = ("1KiB", "64KiB", "1MiB", "100MB")

MAX_GAP_PERCENT = {"1KiB": 100.0}
"""Gaps in percent that are near the bound, by size; 15 where none is given."""

MAX_CPU_SECONDS = 60
"""CPU seconds, because a busy machine does not change them."""
MAX_WORST_ROWS = 10

INTRODUCTION = """\
# How far plans are from their bounds, and how long planning takes

This page has the plans of `auto` for every collective, for four sizes, on 14 fabrics. Every plan was verified. The gap is
(time - bound) / bound. Under the assumption that `opticoll bound` prints, no plan is faster than the bound. CPU seconds
(of all threads) and memory are those of the whole command `opticoll plan`.

The goals are a median gap of 3 %, a gap of at most 15 % in nine of ten rows (at most 100 % for 1 KiB), and planning in at
most 3 s and 500 MB. The column `near` counts the rows whose gap meets this limit. In the table of a fabric, a cell has the
time of the plan, the gap and the CPU seconds.

`python validation/gap_table.py --store gaps.jsonl --out docs/gap-table.md` computes the rows and writes this page.
"""  # noqa: E501

WORST_ROWS = (
    "Each line has the time of the plan, the gap, the CPU seconds, and the reason for the gap."
)


@dataclass(frozen=True)
class Entry:
    """A collective of a size on a fabric: the plan of `auto`, its bound, and what planning took.

    `seconds` is None where no plan was found in `MAX_CPU_SECONDS`, or none is possible.
    """

    fabric: str
    collective: str
    size: str
    seconds: float | None
    bound: float
    chosen: str
    cpu: float
    megabytes: float
    policy: str = ""

    @property
    def gap(self) -> float | None:
        """Excess of the plan's time over its bound, in percent of the bound."""
        if self.seconds is None or not self.bound:
            return None
        return 100 * (self.seconds / self.bound - 1)

    @property
    def is_near(self) -> bool:
        """True if the gap is within the goal."""
        return self.gap is not None and self.gap <= MAX_GAP_PERCENT.get(self.size, 15.0)


def fibre_questions() -> Iterator[tuple[str, str, str, str]]:
    """Graphs of fibres, collectives, sizes and policies."""
    for fabric in FIBRES:
        for collective in FIBRE_COLLECTIVES:
            for size in SIZES[1:]:
                for policy in POLICIES:
                    yield fabric, collective, size, policy


def questions() -> Iterator[tuple[str, str, str, str]]:
    """Fabrics, collectives, sizes and the default policy; a barrier has no size."""
    for fabric in FABRICS:
        for collective in COLLECTIVES:
            for size in SIZES[:1] if collective == "barrier" else SIZES:
                yield fabric, collective, size, ""


def planned(fabric: str, collective: str, size: str, policy: str) -> Entry:
    """Plans the entry of a question in a process of its own."""
    command = [sys.executable, "-m", "opticoll", "plan", collective]
    command += ["--fabric", fabric, "--size", size, "--json"]
    command += ["--policy", policy] if policy else []
    with TemporaryFile() as out:
        limit = ["prlimit", f"--cpu={MAX_CPU_SECONDS}"]
        started = subprocess.Popen([*limit, *command], stdout=out, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        row = json.loads(out.read()) if started.returncode == 0 else {}
    if row and not row["verified"]:
        raise ValueError(f"{collective} of {size} on {fabric}: the plan is refuted")
    return Entry(
        fabric,
        collective,
        size,
        row.get("time_s"),
        row.get("bound_time_s") or 0.0,
        row.get("chosen", ""),
        used.ru_utime + used.ru_stime,
        used.ru_maxrss / 1000,
        policy,
    )


def computed(store: Path, asked: list[tuple[str, str, str, str]]) -> list[Entry]:
    """Returns the entries of questions; computes those that the store does not have."""
    lines = store.read_text(encoding="utf-8").splitlines() if store.exists() else []
    known = [Entry(**json.loads(line)) for line in lines]
    found = {(one.fabric, one.collective, one.size, one.policy): one for one in known}
    with store.open("a", encoding="utf-8") as file:
        for question in asked:
            if question not in found:
                found[question] = planned(*question)
                print(json.dumps(asdict(found[question])), file=file, flush=True)
                print(*question, f"{found[question].cpu:.1f} s", file=sys.stderr)
    return [found[question] for question in asked]


def page(entries: list[Entry], reasons: list[dict[str, list[str]]]) -> str:
    """Returns the page in Markdown.

    Raises:
        ValueError: One of the worst rows has no sentence.
    """
    lines = [INTRODUCTION, *summary(entries), "", "## The worst rows", "", WORST_ROWS, ""]
    apart = [one for one in entries if not one.is_near]
    worst = sorted(apart, key=lambda one: -(one.gap or float("inf")))[:MAX_WORST_ROWS]
    for one in worst:
        about = [
            str(reason["sentence"])
            for reason in reasons
            if one.collective in reason["collectives"]
            and one.fabric.startswith(tuple(reason["fabrics"]))
        ]
        if not about:
            what = f"{one.collective} of {one.size} on {one.fabric}"
            raise ValueError(f"{what}: {REASONS.name} has no sentence for it")
        lines.append(f"- `{one.fabric}`, {one.collective}, {one.size}: {cell(one)}. {about[0]}")
    for fabric in dict.fromkeys(one.fabric for one in entries):
        own = [one for one in entries if one.fabric == fabric]
        lines += ["", f"## {fabric}", "", *table(own)]
    return "\n".join(lines) + "\n"


def summary(entries: list[Entry]) -> Iterator[str]:
    """Yields the gaps of each fabric, and the maximum cost of planning."""
    yield "| fabric | rows | median gap | near | largest gap | most CPU s | most MB |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for fabric in [*dict.fromkeys(one.fabric for one in entries), None]:
        own = [one for one in entries if fabric in (None, one.fabric)]
        gaps = [float("inf") if one.gap is None else one.gap for one in own if one.bound]
        name = "all" if fabric is None else f"`{fabric}`"
        near = sum(one.is_near for one in own)
        yield (
            f"| {name} | {len(own)} | {median(gaps):.1f} % | {near} | {max(gaps):.0f} % "
            f"| {max(one.cpu for one in own):.1f} | {max(one.megabytes for one in own):.0f} |"
        )


def table(entries: list[Entry]) -> Iterator[str]:
    """Yields a row for each collective, with a column for each size."""
    yield f"| collective | {' | '.join(SIZES)} |"
    yield f"|---|{'---|' * len(SIZES)}"
    for collective in dict.fromkeys(one.collective for one in entries):
        cells = {one.size: cell(one) for one in entries if one.collective == collective}
        yield f"| {collective} | {' | '.join(cells.get(size, '') for size in SIZES)} |"


def cell(one: Entry) -> str:
    """Returns time, gap and CPU seconds."""
    if one.seconds is None:
        return f"none in {one.cpu:.0f} s"
    gap = "no bound" if one.gap is None else f"{one.gap:.1f} %"
    return f"{layout.human_seconds(one.seconds)}, {gap}, {one.cpu:.1f} s"


def main() -> int:
    """Writes the page; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, required=True, help="the rows computed so far")
    parser.add_argument("--out", type=Path, help="write the page here")
    parser.add_argument("--fibres", action="store_true", help="rows on graphs of fibres")
    arguments = parser.parse_args()
    if arguments.fibres:
        entries = computed(arguments.store, list(fibre_questions()))
        for one in sorted(entries, key=lambda one: one.gap if one.gap is not None else -1.0):
            print(
                f"{one.fabric} {one.collective} {one.size} {one.policy}: {cell(one)}, {one.chosen}"
            )
        print("\n".join(summary(entries)))
        return 0
    entries = computed(arguments.store, list(questions()))
    if arguments.out is not None:
        reasons = yaml.safe_load(REASONS.read_text(encoding="utf-8"))
        arguments.out.write_text(page(entries, reasons), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
