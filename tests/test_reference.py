"""The reference verifier: right on plans made by hand, and of one mind with the compiled core."""

from __future__ import annotations

import inspect
import re

import pytest

from opticoll import _core
from opticoll.reference import (
    NotAPlan,
    Plan,
    Transfer,
    families,
    links,
    read,
    ring,
    rules,
    verify,
    verify_text,
)
from support import core_kinds


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
        "what several ranks combine may be one light",
        SUM_OF_THREE,
        "ranks=3,wavelengths=1,multicast=drop_and_continue",
        "1 1",
        "slot 0\nreduce 0 0>1 cw 0.0\nreduce 0 0>2 cw 0.0\nslot 1\nreduce 0 1>0 cw 0.0",
        ["double_reduction", "missing", "missing", "missing"],
    ),
    (
        "what goes between two ranks on one wavelength is one lightpath, with one port",
        "broadcast ranks=2 root=0 pieces=2",
        "ranks=2,wavelengths=1,ports=1",
        "1",
        "slot 0\ncopy 0 0>1 cw 0.0\ncopy 1 0>1 cw 0.0",
        [],
    ),
    (
        "beside converters it is one, too",
        "broadcast ranks=2 root=0 pieces=2",
        "ranks=2,wavelengths=1,ports=1,converters=full",
        "1",
        "slot 0\ncopy 0 0>1 cw 0.0\ncopy 1 0>1 cw 0.0",
        [],
    ),
    (
        "what is converted has no wavelength to share",
        "broadcast ranks=2 root=0 pieces=2",
        "ranks=2,wavelengths=1,converters=full",
        "1",
        "slot 0\ncopy 0 0>1 cw 0.*\ncopy 1 0>1 cw 0.*",
        ["overload"],
    ),
    (
        "one lightpath beside a converted one is one",
        "broadcast ranks=2 root=0 pieces=3",
        "ranks=2,wavelengths=2,converters=full,ports=2",
        "1",
        "slot 0\ncopy 0 0>1 cw 0.0\ncopy 1 0>1 cw 0.0\ncopy 2 0>1 cw 0.*",
        [],
    ),
    (
        "beside light trees it is one, too",
        "broadcast ranks=2 root=0 pieces=2",
        "ranks=2,wavelengths=1,ports=1,multicast=drop_and_continue",
        "1",
        "slot 0\ncopy 0 0>1 cw 0.0\ncopy 1 0>1 cw 0.0",
        [],
    ),
    (
        "a light tree carries nothing else",
        "scatter ranks=3 root=0 pieces=1",
        "ranks=3,wavelengths=1,ports=1,multicast=drop_and_continue",
        "1",
        "slot 0\ncopy 1 0>1 cw 0.0\ncopy 1 0>2 cw 0.0\ncopy 2 0>2 cw 0.0",
        ["collision"],
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
        "light passes the nodes of ranks that take no part, but not a cut between them",
        TO_THREE,
        "ranks=9,wavelengths=1,members=0-2+6,without=1,broken=3-4cw",
        "1 1",
        "slot 0\ncopy 0 0>1 cw 0.0\nslot 1\ncopy 0 1>2 cw 0.0",
        ["broken_fibre"],
    ),
    (
        "it takes its wavelength on all links between nodes",
        TO_THREE,
        "ranks=9,wavelengths=1,members=0+3+6",
        "1",
        "slot 0\ncopy 0 0>1 cw 0.0\ncopy 0 0>2 cw 0.0",
        ["collision"],
    ),
    (
        "links between nodes count for its reach",
        TO_THREE,
        "ranks=9,wavelengths=1,members=0+3+7,reach=3",
        "1 1",
        "slot 0\ncopy 0 0>1 cw 0.0\nslot 1\ncopy 0 1>2 cw 0.0",
        ["reach"],
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
        ("claim paper_steps 99", []),
    ],
)
def test_claims_are_enforced_but_for_those_of_the_paper(claim: str, expected: list[str]) -> None:
    slots = "slot 0\ncopy 0 0>1 cw 0.0\ncopy 0 0>2 ccw 0.0\nslot 1\ncopy 0 2>3 cw 0.0"
    text = write("broadcast ranks=4 root=0 pieces=1", FOUR, "1 1", slots, claim)
    assert kinds(text) == expected
    assert core_kinds(text) == set(expected)


def test_every_kind_that_a_text_can_show_is_tried() -> None:
    # Steps of several slots are wrong without light only: tests/test_electrical.py; of routes,
    # tests/test_routes.py.
    tried = {kind for row in BY_HAND for kind in row[5]} | {"claim", "step_order", "route"}
    sources = [inspect.getsource(module) for module in (links, ring, rules)]
    known = set(re.findall(r'Problem\(\s*"(\w+)"', "".join(sources)))
    known |= {"same_step_forward", "not_held"}
    assert len(known) >= 17
    assert known == tried


def test_families_are_those_of_the_core_with_the_same_options() -> None:
    known = {
        record["name"]: {option["name"] for option in record["options"]}
        for record in _core.records("fabrics")
    }
    # For networks of bursts and for models of single messages no plan is made.
    of_bursts = {"wavelengths", "hosts"}
    assert known.keys() - families.FAMILIES.keys() == {"zero", "hockney", "loggp"}
    for family, (options, _) in families.FAMILIES.items():
        unplanned = of_bursts if family in links.OPTIONS else set()
        assert set(options) == known[family] - unplanned, family


def test_a_fabric_of_no_family_is_refused() -> None:
    with pytest.raises(NotAPlan, match="the reference knows no fabric `moebius_ring`"):
        read(WHOLE.replace("wdm_ring", "moebius_ring"))


def test_repetitions_are_unfolded_innermost_first() -> None:
    text = write(
        "all_gather ranks=4 root=0 pieces=1",
        "ranks=4,wavelengths=2",
        "1",
        "slot 0\ncopy 3 3>0 cw 0.0 x2 wavelength+1 x2 chunk+1 rank+1",
    ).replace("end 1", "end 4")
    assert read(text).transfers == [
        Transfer(0, "copy", 3, 1, 3, 0, ring.Channel("cw", 0, 0)),
        Transfer(0, "copy", 3, 1, 3, 0, ring.Channel("cw", 0, 1)),
        Transfer(0, "copy", 0, 1, 0, 1, ring.Channel("cw", 0, 0)),
        Transfer(0, "copy", 0, 1, 0, 1, ring.Channel("cw", 0, 1)),
    ]


def test_the_examples_of_the_format_are_proved_by_both_readers() -> None:
    with open(__file__.replace("tests/test_reference.py", "docs/plan-format.md")) as file:
        pattern = re.compile(r"^opticoll plan 1$.*?^end \d+$", re.MULTILINE | re.DOTALL)
        examples = pattern.findall(file.read())
    forms = []
    for example in examples:
        assert verify_text(example) == []
        plan = _core.Plan.from_text(f"{example}\n")
        assert plan.verify() == []
        assert plan.to_text() == f"{example}\n"
        forms.append((plan.collective.kind, plan.folded, plan.pipelined))
    assert forms == [
        ("all_gather", True, False),
        ("all_to_all", True, False),
        ("broadcast", False, True),
    ]


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


def test_a_plan_can_be_made_without_its_text() -> None:
    plan = read(WHOLE)
    silent = Plan(plan.collective, plan.fabric, plan.steps)
    assert [problem.kind for problem in verify(silent)] == ["missing"]
