"""Exports of plans in every format, and the same schedule when an export is read again."""

from __future__ import annotations

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

import opticoll
from opticoll import exports, formats
from opticoll.errors import OpticollError, ProgramError
from opticoll.inputs.imported import KNOWN
from opticoll.names import known_names
from opticoll.outputs.records import record_rows
from support import RING, Run, proved, some_of

KINDS = known_names("collectives")

Sent = tuple[int, int, int, str]
"""Chunk, source, destination, action."""


def steps(plan: opticoll.Plan) -> list[list[Sent]]:
    """Returns the transfers of each step, chunk by chunk, sorted; empty steps are left out."""
    columns = {name: column.tolist() for name, column in plan.columns().items()}
    step_of = [step for step, slots in enumerate(plan.step_slots) for _ in range(slots)]
    sent: dict[int, list[Sent]] = defaultdict(list)
    names = ("slot", "chunk", "count", "source", "destination", "action")
    for slot, first, count, source, destination, action in zip(
        *(columns[name] for name in names), strict=True
    ):
        word = "reduce" if action else "copy"
        moved = ((chunk, source, destination, word) for chunk in range(first, first + count))
        sent[step_of[slot]].extend(moved)
    return [sorted(sent[step]) for step in sorted(sent)]


def test_a_step_may_copy_and_reduce(tmp_path: Path) -> None:
    plan = opticoll.plan("all_reduce", "crossbar:ranks=8", "double_binary_tree")
    # One tree is still reduced when the other broadcasts.
    assert any(len({action for *_, action in sent}) == 2 for sent in steps(plan))
    plan.export(tmp_path / "trees.csv", "sends")
    back = opticoll.read_plan(tmp_path / "trees.csv", fabric="crossbar:ranks=8")
    assert steps(back) == steps(plan)
    proved(back)


def test_what_is_sent_in_vain_is_kept(tmp_path: Path) -> None:
    schedule = opticoll.Schedule(opticoll.Collective("all_gather", 3))
    schedule.step([0, 1, 2], [0, 1, 2], [1, 2, 0])
    schedule.step([0, 1, 2, 0], [1, 2, 0, 0], [2, 0, 1, 1])
    plan = opticoll.plan("all_gather", "crossbar:ranks=3", lambda *_: schedule)
    plan.export(tmp_path / "twice.csv", "sends")
    back = opticoll.read_plan(tmp_path / "twice.csv", fabric="crossbar:ranks=3")
    assert steps(back) == steps(plan)
    assert [one.kind for one in back.verify()] == ["duplicate"]


def test_each_transfer_of_a_step_has_an_action_of_its_own() -> None:
    schedule = opticoll.Schedule(opticoll.Collective("all_reduce", 2))
    schedule.step(0, [0, 1], [1, 0], action=["reduce", "copy"])
    assert (schedule.steps, len(schedule)) == (1, 2)
    for wrong in (["reduce"] * 3, ["reduce", "add"], "add"):
        with pytest.raises(opticoll.errors.ScheduleError, match="action"):
            schedule.step(0, [0, 1], [1, 0], action=wrong)


# Without latency plans would be cut into pieces of a few bytes.
FABRICS = (
    "crossbar:ranks=5,latency=1us",
    "torus:dims=2x3,latency=1us",
    "mesh:dims=2x3,latency=1us",
    "dgx1",
    "fully_connected:ranks=2,latency=1us",
    "wdm_ring:ranks=6,wavelengths=2",
    "wss_grid:rows=2,columns=3,latency=1us",
)
FORMATS = ("plan", "msccl", "chakra", "sends", "goal", "te_ccl")


def plans(kind: str, fabric: str) -> Iterator[opticoll.Plan]:
    """Yields a plan by every algorithm that runs there; algorithms with the same transfers once."""
    seen = []
    for one in record_rows("algorithms"):
        if one.collective != kind:
            continue
        try:
            plan = opticoll.plan(kind, fabric, one.name, size="4KiB")
        except OpticollError:
            continue
        if plan not in seen:
            seen.append(plan)
            yield plan


def size_of(plan: opticoll.Plan) -> int:
    """Returns a size at which chunks have 12 bytes each."""
    return 12 * plan.collective.chunks


def written(plan: opticoll.Plan, folder: Path, form: str) -> Path:
    """Writes a plan in a format; returns the file to read."""
    path = folder / f"file{KNOWN[form].suffixes[0]}"
    if form == "plan":
        opticoll.write_plan(plan, path)
        return path
    size = size_of(plan) if exports.KNOWN[form].sized else None
    return plan.export(path, form, size=size)[0]


REDUCE = ("reduce", "reduce_scatter", "all_reduce")


def is_held(plan: opticoll.Plan, form: str) -> bool:
    """Returns whether a format can hold the schedule of a plan."""
    if form == "te_ccl":
        return plan.collective.kind not in (*REDUCE, "barrier") and over_links(plan)
    return plan.collective.kind != "barrier" or form in ("plan", "sends")


def over_links(plan: opticoll.Plan) -> bool:
    """Returns whether ranks that exchange messages have a link, or only switches between them."""
    fabric = plan.fabric
    links = fabric.link_ends
    if links is None:
        return True
    pairs = {(a, b) for step in steps(plan) for _, a, b, _ in step}
    passed = (links[link][0] for a, b in pairs for link in fabric.route(a, b)[1:])
    return all(vertex >= fabric.ranks for vertex in passed)


@pytest.mark.parametrize(("kind", "fabric"), some_of(product(KINDS, FABRICS), 3))
def test_what_is_read_again_is_the_same_schedule(tmp_path: Path, kind: str, fabric: str) -> None:
    tried: Counter[str] = Counter()
    for number, plan in enumerate(plans(kind, fabric)):
        for form in FORMATS:
            folder = tmp_path / f"{form}{number}"
            folder.mkdir()
            if not is_held(plan, form):
                with pytest.raises(OpticollError):
                    written(plan, folder, form)
                continue
            try:
                path = written(plan, folder, form)
            except ProgramError as limit:
                assert "MSCCL runtimes accept at most" in str(limit)  # noqa: PT017
                continue
            # Programs with --fabric may send only where links or switches join two ranks.
            on = fabric if form in ("sends", "goal", "te_ccl") else None
            back = opticoll.read_plan(path, fabric=on)
            assert back.collective == plan.collective
            assert steps(back) == steps(plan), (form, plan.algorithm)
            proved(back)
            tried[form] += 1
    assert tried["plan"] == tried["sends"] > 0
    assert kind == "barrier" or min(tried[form] for form in ("msccl", "chakra", "goal")) > 0


SWITCH = ("all_gather", "--fabric", "crossbar:ranks=4", "--algorithm", "ring")


def test_a_table_has_each_transfer_of_a_ring(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "ring.csv"
    finished = run("export", *SWITCH, "--output", table)
    assert (finished.code, finished.err) == (0, f"opticoll: wrote {table}\n")
    # In step s rank r hands on the block that it received last, that of rank r - s.
    sent = [
        (step, (rank - step) % 4, rank, (rank + 1) % 4) for step in range(3) for rank in range(4)
    ]
    expected = [
        f"{number},{step},copy,{block},1,{rank},{next_rank}"
        for number, (step, block, rank, next_rank) in enumerate(sent)
    ]
    heading = "transfer,slot,action,chunk,count,source,destination"
    assert table.read_text().splitlines() == [heading, *expected]


def test_a_table_names_the_light_of_a_transfer(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "ring.csv"
    plan = opticoll.plan("all_reduce", RING, "wrht")
    kept = tmp_path / "wrht.plan"
    opticoll.write_plan(plan, kept)
    assert run("export", kept, "--output", table).code == 0
    rows = list(csv.DictReader(table.open()))
    columns = opticoll.read_plan(kept).columns()
    assert [int(row["wavelength"]) for row in rows] == columns["wavelength"].tolist()
    assert {row["direction"] for row in rows} <= {"cw", "ccw"}
    assert [row["action"] == "reduce" for row in rows] == [bool(one) for one in columns["action"]]


def test_a_plan_is_the_same_after_every_form_of_its_file(run: Run, tmp_path: Path) -> None:
    plan = opticoll.plan("all_gather", "wdm_ring:ranks=64,wavelengths=16", "relay_tree")
    first = tmp_path / "tree.plan"
    opticoll.write_plan(plan, first)
    compressed, text = tmp_path / "tree.plan.zst", tmp_path / "tree.text"
    assert run("import", first, "--output", compressed).code == 0
    assert run("import", compressed, "--format", "PLAN", "--output", text).code == 0
    assert text.read_text() == first.read_text()
    assert run("verify", compressed).code == 0


@pytest.mark.parametrize("name", exports.KNOWN)
def test_every_format_is_written_and_told(run: Run, tmp_path: Path, name: str) -> None:
    path = tmp_path / f"plan{exports.KNOWN[name].suffixes[0]}"
    finished = run("export", *SWITCH, "--format", name, "--output", path, "--json")
    assert finished.code == 0
    row = json.loads(finished.out)
    assert (row["format"], row["transfers"], row["chosen"]) == (name, 12, "ring")
    # Traces of Chakra are a file for each rank; the plan is beside every trace.
    files = [tmp_path / f"plan.{rank}.et" for rank in range(4)] if name == "chakra" else [path]
    # A plan of MSCCL++ has a script that loads it.
    files += [path.with_suffix(".py")] if name == "mscclpp" else []
    traces = {one.name for one in formats.formats_of("trace")} - {"parquet"}
    files += [path.with_name(f"{path.name}.plan")] if name in traces else []
    assert sorted(tmp_path.iterdir()) == files


@pytest.mark.parametrize("rank", [1, 3])
def test_files_of_one_export_are_all_written_or_none(run: Run, tmp_path: Path, rank: int) -> None:
    blocked = tmp_path / f"ring.{rank}.et"
    blocked.mkdir()
    finished = run("export", *SWITCH, "--output", tmp_path / "ring.et")
    assert finished.code == 2
    assert f"cannot write `{blocked}`" in finished.err
    assert list(tmp_path.iterdir()) == [blocked]
    blocked.rmdir()
    assert run("export", *SWITCH, "--output", tmp_path / "ring.et").code == 0
    written = sorted(one.name for one in tmp_path.iterdir())
    assert written == ["ring.0.et", "ring.1.et", "ring.2.et", "ring.3.et", "ring.et.plan"]


def test_a_violated_plan_is_written_with_a_warning(run: Run, tmp_path: Path) -> None:
    plan = tmp_path / "broken.plan"
    text = opticoll.plan("all_gather", RING, "ring").to_text()
    plan.write_text(text.replace("copy 3 ", "copy 2 "), encoding="utf-8")
    written = run("export", plan, "--output", tmp_path / "t.csv")
    assert "warning: the plan is violated" in written.err
    assert (tmp_path / "t.csv").exists()
