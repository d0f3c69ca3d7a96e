"""The compiled core makes plans, and judges them and their mutants: the reference must agree."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from opticoll import _core
from opticoll.names import ACTIONS
from opticoll.reference import NotAPlan, Plan, Problem, Transfer, read, verify, verify_text
from opticoll.reference.ring import CONVERTED, Channel
from support import compare_mutants, core_kinds, reference_kinds, with_another_number
from test_reference import CASES


@st.composite
def made_plans(draw: st.DrawFn) -> _core.Plan:
    """Draws a plan of few transfers by any algorithm on any ring."""
    record = draw(st.sampled_from(_core.records("algorithms")))
    # Sets of 130 ranks take several words of the core.
    ranks = draw(st.sampled_from([*range(1, 10), 130]))
    options = {"wavelengths": draw(st.integers(1, 4)), "fibres": draw(st.integers(1, 2))}
    spec = f"wdm_ring:ranks={ranks}," + ",".join(f"{key}={value}" for key, value in options.items())
    if draw(st.booleans()):
        spec += f",ports={draw(st.integers(1, 2))}"
    if draw(st.booleans()):
        spec += ",converters=full"
    rooted = record["collective"] in ("broadcast", "reduce", "gather", "scatter")
    root = draw(st.integers(0, ranks - 1)) if rooted else 0
    assignment = draw(st.sampled_from(["auto", "first_fit", "best_fit"]))
    try:
        plan = _core.plan(
            record["collective"] or "",
            _core.Fabric(spec),
            record["name"],
            root=root,
            wavelength=assignment,
        )
    except _core.AlgorithmError:
        assume(False)
        raise
    assume(plan.columns()["slot"].size < 1000)
    return plan


def unfolded(plan: _core.Plan) -> list[Transfer]:
    """Returns the transfers of a plan of the core, from its columns."""
    columns = {name: column.tolist() for name, column in plan.columns().items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [
        Transfer(
            slot=row["slot"],
            action=ACTIONS[row["action"]],
            chunk=row["chunk"],
            count=row["count"],
            source=row["source"],
            destination=row["destination"],
            light=Channel(
                way=("cw", "ccw")[row["direction"]],
                fibre=row["fibre"],
                wavelength=CONVERTED if row["wavelength"] == 2**16 - 1 else row["wavelength"],
            ),
        )
        for row in rows
    ]


def rewritten(head: list[str], steps: list[int], transfers: list[Transfer]) -> str:
    """Returns a plan text with a head of its own and one line for each transfer."""
    lines = [*head, "steps " + " ".join(map(str, steps))]
    slot = None
    for transfer in sorted(transfers, key=lambda transfer: transfer.slot):
        if transfer.slot != slot:
            slot = transfer.slot
            lines.append(f"slot {slot}")
        way, fibre, wavelength = transfer.light
        channel = f"{fibre}.{'*' if wavelength is CONVERTED else wavelength}"
        data = f"{transfer.action} {transfer.chunk}+{transfer.count}"
        lines.append(f"{data} {transfer.source}>{transfer.destination} {way} {channel}")
    return "\n".join([*lines, f"end {len(transfers)}"])


def changed(transfer: Transfer, column: str, value: Any) -> Transfer:
    """Returns a transfer with another value in one field of its own or of its light."""
    if column in Channel._fields:
        return replace(transfer, light=transfer.light._replace(**{column: value}))
    return replace(transfer, **{column: value})


# Capabilities that a ring may have or lack, other than those of its plan.
CAPABILITIES = [
    "multicast=drop_and_continue",
    "multicast=drop_and_continue,reach=2",
    "multicast=drop_and_continue,launch_power=0dBm,sensitivity=-1dBm,through_loss=0.15dB,"
    "resonators=2,split_loss=0.2dB",
    "reach=1",
    "launch_power=2.5dBm,sensitivity=-1dBm,through_loss=0.5dB,drop_loss=1.25dB",
    "launch_power=1.2dBm,sensitivity=-1dBm,through_loss=0.1dB,link_loss=0.7dB,fixed_loss=0.3dB",
    "broken=0-1",
    "broken=1-0ccw+1-2cw",
    "dead=0",
    "dead=0.1+0.0",
]


MADE = made_plans().map(_core.Plan.to_text)
BY_HAND = [text for text, broken in CASES.values() if not broken and "\nfabric wdm_ring" in text]
"""The texts of the sound plans that are made by hand."""


@st.composite
def taken_apart(draw: st.DrawFn, texts: st.SearchStrategy[str] = MADE) -> tuple[list[str], Plan]:
    """Draws a sound plan: the lines of its text before the steps, and the plan as read."""
    text = draw(texts)
    plan = read(text)
    assume(bool(plan.transfers))
    return text.split("\nsteps")[0].splitlines(), plan


@st.composite
def mutants(draw: st.DrawFn) -> str:
    """Draws the text of a plan with some entries changed, transfers dropped or doubled.

    The fabric may have, or lack, a capability that the plan was not made for.
    """
    head, plan = draw(taken_apart(MADE | st.sampled_from(BY_HAND)))
    options = draw(st.none() | st.sampled_from(CAPABILITIES))
    if options is not None:
        head[2] += f",{options}"
        try:
            _core.Fabric(head[2].removeprefix("fabric "))
        except _core.FabricError:
            assume(False)
    transfers, steps = list(plan.transfers), list(plan.steps)
    ranks, chunks = plan.collective.ranks, plan.collective.chunks
    for _ in range(draw(st.integers(0, 3))):
        index = draw(st.integers(0, len(transfers) - 1))
        transfer = transfers[index]
        column = draw(
            st.sampled_from(
                [
                    *("drop", "double", "later", "split"),
                    *("slot", "action", "chunk", "count", "source", "destination"),
                    *("way", "fibre", "wavelength"),
                ]
            )
        )
        if column == "drop":
            if len(transfers) > 1:
                del transfers[index]
        elif column == "double":
            transfers.append(transfer)
        elif column == "later":
            steps.append(1)
            transfers[index] = replace(transfer, slot=sum(steps) - 1)
        elif column == "split":
            where = draw(st.integers(0, len(steps) - 1))
            first = draw(st.integers(0, steps[where]))
            steps[where : where + 1] = [first, steps[where] - first]
        else:
            values: st.SearchStrategy[Any] = {
                "slot": st.integers(0, sum(steps) - 1),
                "action": st.sampled_from(["copy", "reduce"]),
                "chunk": st.integers(0, chunks - 1),
                "count": st.integers(0, 3),
                "source": st.integers(0, ranks - 1),
                "destination": st.integers(0, ranks - 1),
                "way": st.sampled_from(["cw", "ccw"]),
                "fibre": st.integers(0, 2),
                "wavelength": st.none() | st.integers(0, 4),
            }[column]
            transfers[index] = changed(transfer, column, draw(values))
    return rewritten(head, steps, transfers)


MANY = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
MORE = settings(MANY, max_examples=600)


@MANY
@given(made_plans())
def test_what_the_core_plans_is_proved_by_both(plan: _core.Plan) -> None:
    text = plan.to_text()
    assert verify_text(text) == []
    assert plan.verify() == []
    assert Counter(read(text).transfers) == Counter(unfolded(plan))
    assert read(text).steps == list(plan.step_slots)


@st.composite
def shared_light(draw: st.DrawFn) -> str:
    """Draws a plan of light trees with some changed transfers; often right, often nearly right."""
    ranks = draw(st.integers(2, 7))
    options = draw(st.sampled_from(["", *CAPABILITIES[1:3], "broken=0-1", "ports=1", "dead=1"]))
    options = options.removeprefix("multicast=drop_and_continue,")
    spec = f"wdm_ring:ranks={ranks},wavelengths=2,multicast=drop_and_continue"
    fabric = _core.Fabric(f"{spec},{options}" if options else spec)
    plan = _core.plan("all_gather", fabric, "relay_tree")
    head = plan.to_text().split("\nsteps")[0].splitlines()
    transfers = unfolded(plan)
    for _ in range(draw(st.integers(0, 2))):
        index = draw(st.integers(0, len(transfers) - 1))
        column = draw(st.sampled_from(["chunk", "source", "destination", "wavelength", "way"]))
        other = transfers[draw(st.integers(0, len(transfers) - 1))]
        value = getattr(other.light if column in Channel._fields else other, column)
        transfers[index] = changed(transfers[index], column, value)
    return rewritten(head, list(plan.step_slots), transfers)


@MANY
@given(shared_light())
def test_both_judge_light_trees_alike(text: str) -> None:
    assert {problem.kind for problem in verify(read(text))} == core_kinds(text)


@MORE
@given(mutants())
def test_both_find_the_same_kinds_of_problems(text: str) -> None:
    assert {problem.kind for problem in verify(read(text))} == core_kinds(text)


def links(transfer: Transfer, ranks: int) -> set[int]:
    """Returns the links of a lightpath, each by the rank that the lightpath leaves."""
    step = 1 if transfer.light.way == "cw" else -1
    hops = (transfer.destination - transfer.source) * step % ranks
    return {(transfer.source + step * hop) % ranks for hop in range(hops)}


@MORE
@given(taken_apart(), st.data())
def test_what_is_left_out_doubled_or_in_the_light_of_another_is_always_rejected(
    parts: tuple[list[str], Plan], data: st.DataObject
) -> None:
    head, plan = parts
    transfers, steps = list(plan.transfers), list(plan.steps)
    index = data.draw(st.integers(0, len(transfers) - 1))
    one = transfers[index]
    change = data.draw(st.sampled_from(["drop", "double", "double later", "share"]))
    if change == "drop":
        del transfers[index]
    elif change == "double":
        transfers.append(one)
    elif change == "double later":
        steps.append(1)
        transfers.append(replace(one, slot=sum(steps) - 1))
    else:
        meeting = [
            at
            for at, other in enumerate(transfers)
            if other.slot == one.slot
            and other.light.way == one.light.way
            and other.light.wavelength is not CONVERTED
            and other.source != one.source
            and links(other, plan.collective.ranks) & links(one, plan.collective.ranks)
        ]
        assume(bool(meeting))
        other = data.draw(st.sampled_from(meeting))
        transfers[other] = replace(transfers[other], light=one.light)
    text = rewritten(head, steps, transfers)
    assert core_kinds(text)
    assert reference_kinds(text) == core_kinds(text)


@MANY
@given(made_plans(), st.data())
def test_both_refuse_and_judge_changed_texts_alike(plan: _core.Plan, data: st.DataObject) -> None:
    """Numbers of the folded text are changed: repetitions, shifts, steps, claims, the end."""
    head, body = plan.to_text().split("algorithm ")
    places = list(re.finditer(r"\d+", body.split("\n", 1)[1]))
    start = body.index("\n") + 1
    for place in data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=2)):
        number = str(data.draw(st.integers(0, 9)))
        body = body[: start + place.start()] + number + body[start + place.end() :]
    text = f"{head}algorithm {body}"
    assert judge_by_reference(text) == judge_by_core(text)


# Rings and pieces of a block for which a plan of relay trees is its own rotation.
FOLDED = [
    ("wdm_ring:ranks=6,wavelengths=2", 1),
    ("wdm_ring:ranks=12,wavelengths=3", 2),
    ("wdm_ring:ranks=10,wavelengths=1,fibres=3", 2),
    ("wdm_ring:ranks=8,wavelengths=1,converters=full", 3),
    ("wdm_ring:ranks=16,wavelengths=2", 1),
]


@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter", "all_reduce"])
def test_a_folded_plan_is_judged_as_its_transfers(collective: str) -> None:
    found: set[str] = set()
    for fabric, pieces in FOLDED:
        plan = _core.plan(collective, _core.Fabric(fabric), f"relay_tree:pieces={pieces}")
        assert plan.rotation_symmetric
        text = plan.to_text()
        if "converters" in fabric:
            text = text.replace("cw 0.0", "cw 0.*")
        few = text.replace("\nalgorithm", ",ports=1\nalgorithm")
        assert core_kinds(few) == reference_kinds(few)
        found |= core_kinds(few)
        found |= set().union(*compare_mutants(text, with_another_number, [1, 1, 2] * 30))
    assert found >= {"collision", "overload", "ports", "missing", "wavelength_range"}
    assert found & {"not_held", "duplicate", "double_reduction"}


RING = "wdm_ring:ranks=7"

# Collective, fabric and algorithm of a plan; words of its text and what stands in their place; and
# what follows from that by the rules of docs/model.md, in words and as kinds.
CHANGED = {
    "all data arrive, on wavelengths of which two are dead; with the third, two ports suffice": (
        ("reduce_scatter", "wdm_ring:ranks=5,wavelengths=3", "optree"),
        [("reconfiguration=25us", "reconfiguration=25us,ports=2,dead=0.1+0.0")],
        {"dead_wavelength"},
    ),
    "with one port, what is on dead wavelengths needs ports as well": (
        ("reduce_scatter", "wdm_ring:ranks=5,wavelengths=3", "optree"),
        [("reconfiguration=25us", "reconfiguration=25us,ports=1,dead=0.1+0.0")],
        {"dead_wavelength", "ports"},
    ),
    "as many ports as channels of both directions are no limit": (
        ("broadcast", "wdm_ring:ranks=3,wavelengths=1", "binomial"),
        [("reconfiguration=25us", "reconfiguration=25us,ports=2")],
        set(),
    ),
    "the last rank of a chain gets nothing": (
        ("broadcast", f"{RING},wavelengths=1", "pipelined:pieces=8"),
        [("copy 0 5>6 cw", "copy 0 6>6 cw")],
        {"self_transfer", "missing"},
    ),
    "a rank in a chain gets nothing, and sends it on": (
        ("broadcast", f"{RING},wavelengths=1", "pipelined:pieces=8"),
        [("copy 8 6>5 ccw", "copy 8 6>6 ccw")],
        {"self_transfer", "not_held", "missing"},
    ),
    "data arrive over wavelengths that do not exist, for two of four streams": (
        ("broadcast", f"{RING},wavelengths=4", "pipelined:pieces=8"),
        [("5>6 cw 0.0", "5>6 cw 0.2")],
        {"wavelength_range"},
    ),
    "data arrive over a fibre that does not exist": (
        ("broadcast", f"{RING},wavelengths=1", "pipelined:pieces=8"),
        [("5>6 cw 0.0", "5>6 cw 1.0")],
        {"fibre_range"},
    ),
    "wavelengths that do not exist on fibres of which the second does not": (
        ("broadcast", f"{RING},wavelengths=1,fibres=2", "pipelined:pieces=8"),
        [("5>6 cw 0.0", "5>6 cw 1.1")],
        {"wavelength_range", "fibre_range"},
    ),
}


@pytest.mark.parametrize("claim", CHANGED)
def test_both_say_what_follows_from_the_rules(claim: str) -> None:
    (collective, fabric, algorithm), changes, kinds = CHANGED[claim]
    text = _core.plan(collective, _core.Fabric(fabric), algorithm).to_text()
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    assert core_kinds(text) == kinds
    assert reference_kinds(text) == kinds


def judge_by_reference(text: str) -> set[str] | None:
    try:
        found: list[Problem] = verify(read(text))
    except NotAPlan:
        return None
    return {problem.kind for problem in found}


def judge_by_core(text: str) -> set[str] | None:
    try:
        return core_kinds(text)
    except _core.PlanFileError:
        return None
