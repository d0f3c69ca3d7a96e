"""Files that are changed in one place: how many changes are rejected, and how many do no harm.

    python validation/mutants_table.py             the table in Markdown
    python validation/mutants_table.py --most 50   at most 50 changes of a kind in a file (10)

The files are those of opticoll's own tests, and those of others in the folders that environment
variables name: `OPTICOLL_MSCCL` (XML), `OPTICOLL_MSCCLPP` (JSON), `OPTICOLL_CHAKRA` (a folder for
each trace), `OPTICOLL_SENDS` (CSV) and `OPTICOLL_TE_CCL` (JSON). A file that is not proved as it is
has no mutants. The script fails where the verifiers disagree, or where both accept a change and the
bytes of a run are wrong. `tests/mutants.py` says what is changed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

TESTS = Path(__file__).parents[1] / "tests"
if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))

import mutants  # noqa: E402
import opticoll  # noqa: E402
from opticoll import Program  # noqa: E402
from opticoll.formats import chakra_traces  # noqa: E402
from opticoll.names import known_names  # noqa: E402
from test_schedules_of_others import te_ccl as direct_result  # noqa: E402

HEADING = (
    *("files", "number of files", "mutants", "refused by both readers"),
    *("rejected by both verifiers", "of these only for a race", "equal bytes"),
)
PLANS = (
    ("all_gather", "electrical_ring:ranks=4", "ring_bidirectional"),
    ("all_reduce", "electrical_ring:ranks=4", "ring"),
    ("all_to_all", "crossbar:ranks=4", "direct"),
    ("all_reduce", "torus:dims=2x3", "auto"),
    ("reduce_scatter", "torus:dims=2x3", "auto"),
)
SWITCHED = tuple(
    (kind, "crossbar:ranks=4,in_network=reduce+multicast", "nvls")
    for kind in ("all_reduce", "all_gather", "broadcast")
)
"""Plans whose switches add or multicast, which only MSCCL++ executes."""

EXPORTED = tuple(
    (kind, "dgx_h100", "auto", size)
    for kind in known_names("collectives")
    if kind != "barrier"
    for size in ("64KiB", "4MiB")
)
"""Plans that `opticoll export` writes for eight GPUs."""

SIZES = (16, 1 << 16)
"""Bytes of a chunk in plans of MSCCL++: packets; and puts, shared by thread blocks."""

NAMES = {
    "msccl": "MSCCL XML",
    "mscclpp": "plans of MSCCL++",
    "chakra": "Chakra traces",
    "sends": "CSV of sends",
    "te_ccl": "results of TE-CCL",
}


class Case(NamedTuple):
    """A file to change: its format, whether it is opticoll's own, its name and its content."""

    form: str
    own: bool
    name: str
    content: Any


def cases() -> Iterator[Case]:
    """Yields all files; those of other tools come last."""
    for path in sorted((TESTS / "data/programs").glob("*.xml")):
        yield Case("msccl", True, path.name, path.read_text())
    for path in sorted((TESTS / "data/mscclpp").glob("*.json")):
        yield Case("mscclpp", True, path.name, path.read_text())
    for plan_of in (*PLANS, *SWITCHED):
        plan = opticoll.plan(*plan_of, size="64B")
        for size in SIZES:
            written = Program.from_plan(plan).to_mscclpp(plan.collective.chunks * size)
            yield Case("mscclpp", True, f"{' '.join(plan_of)}, {size} bytes a chunk", written)
    for kind, fabric, algorithm, total in EXPORTED:
        # Up to 64 KiB, `export` writes packets, otherwise the protocol Simple.
        protocol = "auto" if total == "64KiB" else "simple"
        plan = opticoll.plan(kind, fabric, algorithm, size=total, protocol=protocol)
        with tempfile.TemporaryDirectory() as own:
            path = plan.export(Path(own, "own.mscclpp.json"), size=total)[0]
            yield Case("mscclpp", True, f"{kind} of {total} on {fabric}", path.read_text())
    for kind, fabric, algorithm in PLANS:
        plan = opticoll.plan(kind, fabric, algorithm, size="64B")
        name = f"{kind} on {fabric}"
        traces = Program.from_plan(plan).to_chakra(plan.collective.chunks * 24)
        yield Case("chakra", True, name, traces)
        with tempfile.TemporaryDirectory() as own:
            (path,) = plan.export(Path(own, "own.csv"), "sends")
            yield Case("sends", True, name, path.read_text())
    yield Case("te_ccl", True, "all_gather", direct_result(range(4)))
    endings = {"msccl": "*.xml", "mscclpp": "*.json", "sends": "*.csv", "te_ccl": "*.json"}
    for form, ending in endings.items():
        folder = os.environ.get(f"OPTICOLL_{form.upper()}")
        for path in sorted(Path(folder).glob(ending)) if folder else []:
            yield Case(form, False, path.name, path.read_text())
    others = os.environ.get("OPTICOLL_CHAKRA")
    for path in sorted(Path(others).glob("*/*.0.et")) if others else []:
        traces = [one.read_bytes() for one in chakra_traces.paths_of(path)]
        yield Case("chakra", False, path.name, traces)


def form_of(case: Case) -> mutants.Form:
    """Returns the functions that read and change a file."""
    if case.form == "te_ccl":
        return mutants.te_ccl(case.content)
    forms = (mutants.MSCCL, mutants.MSCCLPP, mutants.CHAKRA, mutants.SENDS)
    return {form.name: form for form in forms}[case.form]


def judged(case: Case, most: int) -> Counter[str] | None:
    """Counts the fates of the mutants of a file; None if the file itself is not proved."""
    try:
        form = form_of(case)
        ways = mutants.modes(form.first(case.content))
    except opticoll.OpticollError:
        return None
    if any(any(mutants.wrong(case.content, form, in_place=way)) for way in ways):
        return None
    total: Counter[str] = Counter()
    for (_, what), number in mutants.judged(form, case.content, most).items():
        total[what] += number
    return total


def rows(most: int, processes: int) -> Iterator[list[str]]:
    """Yields a row for each format and origin."""
    all_cases = list(cases())
    with ProcessPoolExecutor(processes) as pool:
        all_counts = list(pool.map(partial(judged, most=most), all_cases))
    for form, named in NAMES.items():
        for own in (True, False):
            pairs = zip(all_cases, all_counts, strict=True)
            found = [
                (case, counts) for case, counts in pairs if (case.form, case.own) == (form, own)
            ]
            total: Counter[str] = Counter()
            for case, counts in found:
                if counts is None:
                    print(f"{case.name} is not proved, so it has no mutants", file=sys.stderr)
                total.update(counts or {})
            number = sum(counts is not None for _, counts in found)
            if number == 0:
                continue
            race = total["only by a race"]
            numbers = (
                *(number, total["tried"], total["refused"]),
                *(total["rejected"] - total["refused"], race, total["equivalent"]),
            )
            cells = [f"{number:,}" for number in numbers]
            if form in ("sends", "te_ccl"):
                # Steps leave no accesses without order.
                cells[-2] = "-"
            yield [f"{named}, {'own' if own else 'of others'}", *cells]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--most", type=int, default=10, help="mutants of a kind in a file")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    print(f"| {' | '.join(HEADING)} |")
    print(f"|---|{'---:|' * (len(HEADING) - 1)}")
    for row in rows(asked.most, asked.processes):
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
