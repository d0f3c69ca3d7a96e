"""Plans that are exported and read again are the same schedule, in every format that holds it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

import opticoll
from opticoll import exports
from opticoll.errors import OpticollError, ProgramError
from opticoll.inputs.imported import KNOWN
from opticoll.names import known_names
from opticoll.outputs.records import record_rows
from support import proved, some_of

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
                assert "MSCCL runtimes take at most" in str(limit)  # noqa: PT017
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
