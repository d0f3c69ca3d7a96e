"""The reference verifier: right on plans made by hand, and of one mind with the compiled core."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from opticoll import _core
from opticoll.reference import (
    CONVERTED,
    Lightpath,
    NotAPlan,
    Plan,
    Problem,
    read,
    verify,
    verify_text,
)


def write(collective: str, fabric: str, steps: str, slots: str, claims: str = "") -> str:
    """A plan text with the given lines; lightpaths are counted here, without repetitions."""
    body = [line.strip() for line in slots.strip().splitlines() if line.strip()]
    count = sum(not line.startswith("slot") for line in body)
    head = [
        "opticoll plan 1",
        f"collective {collective}",
        f"fabric wdm_ring:{fabric}",
        "algorithm by hand",
        *claims.split("\n"),
        f"steps {steps}",
    ]
    return "\n".join([*head, *body, f"end {count}"]) + "\n"


def kinds(text: str) -> list[str]:
    return sorted(problem.kind for problem in verify(read(text)))


def core_kinds(text: str) -> set[str]:
    return {violation.kind for violation in _core.Plan.from_text(text).verify()}


PAIR = "ranks=2,wavelengths=1"
THREE = "ranks=3,wavelengths=1"
FOUR = "ranks=4,wavelengths=1"
TO_TWO = "broadcast ranks=2 root=0 pieces=1"
TO_THREE = "broadcast ranks=3 root=0 pieces=1"
FROM_THREE = "gather ranks=3 root=0 pieces=1"
FROM_FOUR = "gather ranks=4 root=0 pieces=1"
SUM_OF_TWO = "all_reduce ranks=2 root=0 pieces=1"
SUM_OF_THREE = "all_reduce ranks=3 root=0 pieces=1"

# A claim, then collective, fabric, slots of each step, lightpaths, and the kinds of the problems.
BY_HAND = [
    (
        "ranks on the way may take a share of the light",
        TO_THREE,
        "ranks=3,wavelengths=1,ports=1,multicast=drop_and_continue",
        "1",
        "slot 0\ncopy 0 0>1 cw 0.0\ncopy 0 0>2 cw 0.0",
        [],
    ),
    (
        "light that is added up cannot be shared",
        SUM_OF_THREE,
        "ranks=3,wavelengths=1,multicast=drop_and_continue",
        "1 1",
        "slot 0\nreduce 0 0>1 cw 0.0\nreduce 0 0>2 cw 0.0\nslot 1\nreduce 0 1>0 cw 0.0",
        ["collision", "double_reduction", "missing", "missing", "missing"],
    ),
    (
        "light does not cross a cut, in the direction that is cut",
        TO_THREE,
        "ranks=3,wavelengths=1,broken=1-0cw",
        "1",
        "slot 0\ncopy 0 0>1 cw 0.0\ncopy 0 0>2 ccw 0.0",
        ["broken_fibre"],
    ),
    (
        "a dead wavelength carries nothing",
        TO_TWO,
        "ranks=2,wavelengths=2,fibres=2,dead=0+1.1",
        "1",
        "slot 0\ncopy 0 0>1 cw 1.1",
        ["dead_wavelength"],
    ),
    (
        "light goes no farther than it reaches",
        TO_THREE,
        "ranks=3,wavelengths=1,reach=1",
        "1",
        "slot 0\ncopy 0 0>2 cw 0.0\ncopy 0 0>1 ccw 0.0",
        ["reach", "reach"],
    ),
    (
        "light is received down to the sensitivity",
        TO_THREE,
        "ranks=3,wavelengths=1,launch_power=0dBm,sensitivity=-1.5dBm,through_loss=0.5dB,drop_loss=1dB",
        "1",
        "slot 0\ncopy 0 0>2 cw 0.0\ncopy 0 0>1 ccw 0.0",
        [],
    ),
    (
        "a share taken on the way is lost to the others",
        TO_THREE,
        "ranks=3,wavelengths=1,launch_power=0dBm,sensitivity=-1.5dBm,through_loss=0.5dB,"
        "split_loss=1.1dB,multicast=drop_and_continue",
        "1",
        "slot 0\ncopy 0 0>1 cw 0.0\ncopy 0 0>2 cw 0.0",
        ["reach"],
    ),
    ("nothing to do", "all_gather ranks=1 root=0 pieces=1", "ranks=1,wavelengths=1", "", "", []),
    ("a block arrives", TO_TWO, PAIR, "1", "slot 0\ncopy 0 0>1 cw 0.0", []),
    ("a block is missing", TO_TWO, PAIR, "1", "", ["missing"]),
    (
        "relays pass on in the next step",
        TO_THREE,
        THREE,
        "1 1",
        "slot 0\ncopy 0 0>1 cw 0.0\nslot 1\ncopy 0 1>2 cw 0.0",
        [],
    ),
    (
        "relays do not pass on in the same step, not even in a later slot",
        TO_THREE,
        THREE,
        "2",
        "slot 0\ncopy 0 0>1 cw 0.0\nslot 1\ncopy 0 1>2 cw 0.0",
        ["same_step_forward"],
    ),
    (
        "nobody sends what it does not hold",
        TO_THREE,
        THREE,
        "1 1",
        "slot 0\ncopy 0 1>2 cw 0.0\nslot 1\ncopy 0 0>1 cw 0.0",
        ["not_held"],
    ),
    (
        "nobody is sent what it has",
        TO_TWO,
        PAIR,
        "1 1",
        "slot 0\ncopy 0 0>1 cw 0.0\nslot 1\ncopy 0 1>0 cw 0.0",
        ["duplicate"],
    ),
    (
        "nobody is sent the same twice at once",
        TO_TWO,
        PAIR,
        "1",
        "slot 0\ncopy 0 0>1 cw 0.0\ncopy 0 0>1 ccw 0.0",
        ["duplicate"],
    ),
    (
        "signals of a barrier tell something new, though not of everybody",
        "barrier ranks=3 root=0 pieces=1",
        THREE,
        "1 1",
        "slot 0\nreduce 0 0>1 cw 0.0\nreduce 0 1>2 cw 0.0\nreduce 0 2>0 cw 0.0\n"
        "slot 1\nreduce 0 0>2 ccw 0.0\nreduce 0 1>0 ccw 0.0\nreduce 0 2>1 ccw 0.0",
        [],
    ),
    (
        "a barrier is over when all have heard from all",
        "barrier ranks=3 root=0 pieces=1",
        THREE,
        "1",
        "slot 0\nreduce 0 0>1 cw 0.0\nreduce 0 1>2 cw 0.0\nreduce 0 2>0 cw 0.0",
        ["missing"] * 3,
    ),
    (
        "a signal that tells nothing new is one too many, and so is a second one in a step",
        "barrier ranks=2 root=0 pieces=1",
        PAIR,
        "1 1",
        "slot 0\nreduce 0 0>1 cw 0.0\nreduce 0 0>1 ccw 0.0\nreduce 0 1>0 cw 0.0\n"
        "slot 1\nreduce 0 0>1 cw 0.0",
        ["duplicate", "duplicate"],
    ),
    (
        "nothing is reduced where nothing combines",
        TO_TWO,
        PAIR,
        "1",
        "slot 0\nreduce 0 0>1 cw 0.0",
        ["wrong_action"],
    ),
    (
        "two ranks reduce into each other",
        SUM_OF_TWO,
        PAIR,
        "1",
        "slot 0\nreduce 0 0>1 cw 0.0\nreduce 0 1>0 cw 0.0",
        [],
    ),
    (
        "two ranks reduce into each other, in two slots of one step",
        SUM_OF_TWO,
        PAIR,
        "2",
        "slot 0\nreduce 0 0>1 cw 0.0\nslot 1\nreduce 0 1>0 cw 0.0",
        [],
    ),
    (
        "in two steps the second sends back what it was sent",
        SUM_OF_TWO,
        PAIR,
        "1 1",
        "slot 0\nreduce 0 0>1 cw 0.0\nslot 1\nreduce 0 1>0 cw 0.0",
        ["double_reduction"],
    ),
    (
        "a copy takes the sum back",
        SUM_OF_TWO,
        PAIR,
        "1 1",
        "slot 0\nreduce 0 0>1 cw 0.0\nslot 1\ncopy 0 1>0 cw 0.0",
        [],
    ),
    (
        "a copy of the same is a duplicate",
        SUM_OF_TWO,
        PAIR,
        "1 1",
        "slot 0\nreduce 0 0>1 cw 0.0\nreduce 0 1>0 cw 0.0\nslot 1\ncopy 0 1>0 cw 0.0",
        ["duplicate"],
    ),
    (
        "a copy loses nothing",
        SUM_OF_TWO,
        PAIR,
        "1",
        "slot 0\ncopy 0 0>1 cw 0.0",
        ["lost_contribution", "missing", "missing"],
    ),
    (
        "a copy arrives alone",
        SUM_OF_THREE,
        THREE,
        "1 1",
        """
        slot 0
        reduce 0 1>0 ccw 0.0
        reduce 0 2>0 cw 0.0
        slot 1
        copy 0 0>1 cw 0.0
        copy 0 0>2 ccw 0.0
        reduce 0 1>2 cw 0.0
        """,
        ["copy_conflict"],
    ),
    (
        "two lightpaths on one wavelength collide",
        FROM_FOUR,
        FOUR,
        "1 1",
        "slot 0\ncopy 1 1>0 ccw 0.0\ncopy 2 2>0 ccw 0.0\nslot 1\ncopy 3 3>0 cw 0.0",
        ["collision"],
    ),
    (
        "two wavelengths keep them apart",
        FROM_FOUR,
        "ranks=4,wavelengths=2",
        "1",
        "slot 0\ncopy 1 1>0 ccw 0.0\ncopy 2 2>0 ccw 0.1\ncopy 3 3>0 cw 0.0",
        [],
    ),
    (
        "two fibres keep them apart",
        FROM_FOUR,
        "ranks=4,wavelengths=1,fibres=2",
        "1",
        "slot 0\ncopy 1 1>0 ccw 0.0\ncopy 2 2>0 ccw 1.0\ncopy 3 3>0 cw 0.0",
        [],
    ),
    (
        "ports are counted",
        FROM_FOUR,
        "ranks=4,wavelengths=2,ports=2",
        "1",
        "slot 0\ncopy 1 1>0 ccw 0.0\ncopy 2 2>0 ccw 0.1\ncopy 3 3>0 cw 0.0",
        ["ports"],
    ),
    (
        "converters do with any wavelengths",
        FROM_THREE,
        "ranks=3,wavelengths=2,converters=full",
        "1",
        "slot 0\ncopy 1 1>0 ccw 0.*\ncopy 2 2>0 ccw 0.*",
        [],
    ),
    (
        "converters need wavelengths enough",
        FROM_THREE,
        "ranks=3,wavelengths=1,converters=full",
        "1",
        "slot 0\ncopy 1 1>0 ccw 0.*\ncopy 2 2>0 ccw 0.0",
        ["overload"],
    ),
    (
        "nothing converts without converters",
        TO_TWO,
        PAIR,
        "1",
        "slot 0\ncopy 0 0>1 cw 0.*",
        ["conversion"],
    ),
    ("a fibre exists", TO_TWO, PAIR, "1", "slot 0\ncopy 0 0>1 cw 1.0", ["fibre_range"]),
    ("a wavelength exists", TO_TWO, PAIR, "1", "slot 0\ncopy 0 0>1 cw 0.1", ["wavelength_range"]),
    (
        "a chunk exists",
        TO_TWO,
        PAIR,
        "1",
        "slot 0\ncopy 0+2 0>1 cw 0.0",
        ["chunk_range", "missing"],
    ),
    (
        "a transfer goes somewhere",
        TO_TWO,
        PAIR,
        "1",
        "slot 0\ncopy 0 0>0 cw 0.0\ncopy 0 0>1 cw 0.0",
        ["self_transfer"],
    ),
]


@pytest.mark.parametrize(
    ("collective", "fabric", "steps", "slots", "expected"),
    [row[1:] for row in BY_HAND],
    ids=[row[0] for row in BY_HAND],
)
def test_plans_by_hand(
    collective: str, fabric: str, steps: str, slots: str, expected: list[str]
) -> None:
    text = write(collective, fabric, steps, slots)
    assert kinds(text) == expected
    assert core_kinds(text) == set(expected)


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("claim neighbours_only", ["claim"]),
        ("claim schedule_steps 2", []),
        ("claim schedule_steps 3", ["claim"]),
        ("claim chunks_sent_per_rank 2", []),
        ("claim chunks_sent_per_rank 1", ["claim"]),
        ("claim paper_steps 99\nclaim paper_step_share 1/7", []),
    ],
)
def test_claims_are_enforced_but_for_those_of_the_paper(claim: str, expected: list[str]) -> None:
    slots = "slot 0\ncopy 0 0>1 cw 0.0\ncopy 0 0>2 ccw 0.0\nslot 1\ncopy 0 2>3 cw 0.0"
    text = write("broadcast ranks=4 root=0 pieces=1", FOUR, "1 1", slots, claim)
    assert kinds(text) == expected
    assert core_kinds(text) == set(expected)


def test_every_kind_that_a_text_can_show_is_tried() -> None:
    # Steps of several slots are wrong without light only: tests/test_electrical.py.
    tried = {kind for row in BY_HAND for kind in row[5]} | {"claim", "step_order"}
    with open(__file__.replace("tests/test_reference.py", "python/opticoll/reference.py")) as file:
        source = file.read()
    # A kind is the first argument of a Problem, or the first of a pair of kind and sentence.
    known = set(re.findall(r'(?:Problem\(|found\.append\(\(|return \[\()\s*"(\w+)"', source))
    known |= {"same_step_forward", "not_held"}
    assert len(known) >= 17
    assert known == tried


def test_repetitions_are_unfolded_innermost_first() -> None:
    text = write(
        "all_gather ranks=4 root=0 pieces=1",
        "ranks=4,wavelengths=2",
        "1",
        "slot 0\ncopy 3 3>0 cw 0.0 x2 wavelength+1 x2 chunk+1 rank+1",
    ).replace("end 1", "end 4")
    assert read(text).lightpaths == [
        Lightpath(0, "copy", 3, 1, 3, 0, "cw", 0, 0),
        Lightpath(0, "copy", 3, 1, 3, 0, "cw", 0, 1),
        Lightpath(0, "copy", 0, 1, 0, 1, "cw", 0, 0),
        Lightpath(0, "copy", 0, 1, 0, 1, "cw", 0, 1),
    ]


def test_the_example_of_the_format_is_proved() -> None:
    with open(__file__.replace("tests/test_reference.py", "docs/plan-format.md")) as file:
        example = file.read().split("```")[1]
    assert example.strip().startswith("opticoll plan 1")
    assert verify_text(example.strip()) == []


WHOLE = write(TO_TWO, PAIR, "1", "slot 0\ncopy 0 0>1 cw 0.0")


@pytest.mark.parametrize(
    "text",
    [
        "",
        WHOLE.replace("plan 1", "plan 2"),
        WHOLE.replace("end 1", ""),
        WHOLE.replace("end 1", "end 2"),
        WHOLE + "slot 0",
        WHOLE.replace("broadcast", "narrowcast"),
        WHOLE.replace("root=0", "root=2"),
        WHOLE.replace("fabric wdm_ring:ranks=2", "fabric wdm_ring:ranks=3"),
        WHOLE.replace("slot 0", "slot 1"),
        WHOLE.replace("slot 0\n", ""),
        WHOLE.replace("steps 1\n", ""),
        WHOLE.replace("copy", "move"),
        WHOLE.replace("0>1", "0>2"),
        WHOLE.replace("copy 0", "copy 1"),
        WHOLE.replace("cw", "up"),
        WHOLE.replace("0.0", "0"),
        WHOLE.replace("0.0", "0.0 x0"),
        WHOLE.replace("0.0", "0.0 rank+1"),
        WHOLE.replace("0.0", "-1.0"),
    ],
)
def test_what_is_no_plan_is_refused(text: str) -> None:
    assert verify_text(WHOLE) == []
    with pytest.raises(NotAPlan):
        read(text)
    with pytest.raises(_core.PlanFileError):
        _core.Plan.from_text(text)


# The compiled core makes plans, and judges them and their mutants: the reference must agree.


@st.composite
def made_plans(draw: st.DrawFn) -> _core.Plan:
    """A small plan by any algorithm on any fabric."""
    record = draw(st.sampled_from(_core.algorithms()))
    ranks = draw(st.integers(1, 9))
    options = {"wavelengths": draw(st.integers(1, 4)), "fibres": draw(st.integers(1, 2))}
    spec = f"wdm_ring:ranks={ranks}," + ",".join(f"{key}={value}" for key, value in options.items())
    if draw(st.booleans()):
        spec += f",ports={draw(st.integers(1, 2))}"
    if draw(st.booleans()):
        spec += ",converters=full"
    rooted = record["collective"] in ("broadcast", "reduce", "gather", "scatter")
    root = draw(st.integers(0, ranks - 1)) if rooted else 0
    assignment = draw(st.sampled_from(["auto", "first_fit", "best_fit", "random:seed=7"]))
    try:
        return _core.plan(
            record["collective"] or "",
            _core.Fabric(spec),
            record["name"],
            root=root,
            wavelength=assignment,
        )
    except _core.AlgorithmError:
        assume(False)
        raise


def unfolded(plan: _core.Plan) -> list[Lightpath]:
    """The lightpaths of a plan of the core, from its columns."""
    columns = {name: column.tolist() for name, column in plan.columns().items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [
        Lightpath(
            slot=row["slot"],
            action=("copy", "reduce")[row["action"]],
            chunk=row["chunk"],
            count=row["count"],
            source=row["source"],
            destination=row["destination"],
            way=("cw", "ccw")[row["direction"]],
            fibre=row["fibre"],
            wavelength=CONVERTED if row["wavelength"] == 2**16 - 1 else row["wavelength"],
        )
        for row in rows
    ]


def rewritten(head: list[str], steps: list[int], lightpaths: list[Lightpath]) -> str:
    """A plan text with a head of its own and one line for each lightpath."""
    lines = [*head, "steps " + " ".join(map(str, steps))]
    slot = None
    for path in sorted(lightpaths, key=lambda path: path.slot):
        if path.slot != slot:
            slot = path.slot
            lines.append(f"slot {slot}")
        wavelength = "*" if path.wavelength is CONVERTED else path.wavelength
        lines.append(
            f"{path.action} {path.chunk}+{path.count} {path.source}>{path.destination} "
            f"{path.way} {path.fibre}.{wavelength}"
        )
    return "\n".join([*lines, f"end {len(lightpaths)}"])


# What a ring may have or lack beyond what a plan was made for.
CAPABILITIES = [
    "multicast=drop_and_continue",
    "multicast=drop_and_continue,reach=2",
    "multicast=drop_and_continue,launch_power=0dBm,sensitivity=-1dBm,through_loss=0.15dB,"
    "resonators=2,split_loss=0.2dB",
    "reach=1",
    "launch_power=2.5dBm,sensitivity=-1dBm,through_loss=0.5dB,drop_loss=1.25dB",
    "broken=0-1",
    "broken=1-0ccw+1-2cw",
    "dead=0",
    "dead=0.1+0.0",
]


@st.composite
def mutants(draw: st.DrawFn) -> str:
    """The text of a plan with some entries changed, lightpaths dropped or doubled.

    The fabric may have, or lack, what the plan was not made for.
    """
    plan = draw(made_plans())
    head = plan.to_text().split("\nsteps")[0].splitlines()
    options = draw(st.none() | st.sampled_from(CAPABILITIES))
    if options is not None:
        head[2] += f",{options}"
        try:
            _core.Fabric(head[2].removeprefix("fabric "))
        except _core.FabricError:
            assume(False)
    lightpaths = unfolded(plan)
    steps = list(plan.step_slots)
    assume(bool(lightpaths))
    ranks, chunks = plan.collective.ranks, plan.collective.chunks
    for _ in range(draw(st.integers(0, 3))):
        index = draw(st.integers(0, len(lightpaths) - 1))
        path = lightpaths[index]
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
            if len(lightpaths) > 1:
                del lightpaths[index]
        elif column == "double":
            lightpaths.append(path)
        elif column == "later":
            steps.append(1)
            lightpaths[index] = replace(path, slot=sum(steps) - 1)
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
            lightpaths[index] = replace(path, **{column: draw(values)})
    return rewritten(head, steps, lightpaths)


MANY = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


@MANY
@given(made_plans())
def test_what_the_core_plans_is_proved_by_both(plan: _core.Plan) -> None:
    text = plan.to_text()
    assert verify_text(text) == []
    assert plan.verify() == []
    assert Counter(read(text).lightpaths) == Counter(unfolded(plan))
    assert read(text).steps == list(plan.step_slots)


@st.composite
def shared_light(draw: st.DrawFn) -> str:
    """A plan of light trees, some of whose lightpaths are changed; often right, often nearly."""
    ranks = draw(st.integers(2, 7))
    options = draw(st.sampled_from(["", *CAPABILITIES[1:3], "broken=0-1", "ports=1", "dead=1"]))
    options = options.removeprefix("multicast=drop_and_continue,")
    spec = f"wdm_ring:ranks={ranks},wavelengths=2,multicast=drop_and_continue"
    fabric = _core.Fabric(f"{spec},{options}" if options else spec)
    plan = _core.plan("all_gather", fabric, "relay_tree")
    head = plan.to_text().split("\nsteps")[0].splitlines()
    lightpaths = unfolded(plan)
    for _ in range(draw(st.integers(0, 2))):
        index = draw(st.integers(0, len(lightpaths) - 1))
        column = draw(st.sampled_from(["chunk", "source", "destination", "wavelength", "way"]))
        value = getattr(lightpaths[draw(st.integers(0, len(lightpaths) - 1))], column)
        lightpaths[index] = replace(lightpaths[index], **{column: value})
    return rewritten(head, list(plan.step_slots), lightpaths)


@MANY
@given(shared_light())
def test_both_judge_light_trees_alike(text: str) -> None:
    assert {problem.kind for problem in verify(read(text))} == core_kinds(text)


@MANY
@given(mutants())
def test_both_find_the_same_kinds_of_problems(text: str) -> None:
    assert {problem.kind for problem in verify(read(text))} == core_kinds(text)


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


def test_a_plan_can_be_made_without_its_text() -> None:
    plan = read(WHOLE)
    silent = Plan(plan.collective, plan.fabric, plan.steps)
    assert [problem.kind for problem in verify(silent)] == ["missing"]
