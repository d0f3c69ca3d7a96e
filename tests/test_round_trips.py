"""Plans that are exported and read again are the same schedule, in every format that holds it."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

import opticoll
from opticoll import reference

Sent = tuple[int, int, int, str]
"""Chunk, source, destination, action."""


def steps(plan: opticoll.Plan) -> list[list[Sent]]:
    """What each step sends, chunk by chunk, sorted; steps without transfers are left out."""
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
    assert (back.verify(), reference.verify_text(back.to_text())) == ([], [])


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
