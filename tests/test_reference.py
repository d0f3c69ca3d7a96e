"""The reference verifier: right on plans made by hand, and of one mind with the compiled core."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import defaultdict
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import pytest

from opticoll import _core
from opticoll.reference import (
    NotAPlan,
    Plan,
    Transfer,
    circuit_switch,
    families,
    graph,
    grid,
    lightpath_grid,
    links,
    read,
    ring,
    rules,
    star,
    verify,
    verify_text,
)
from support import core_kinds

PAIR = "wdm_ring:ranks=2,wavelengths=1"
BY_HAND = Path(__file__).parents[1] / "crates/tests/data/plans_by_hand.txt"


def write(fabric: str, collective: str, lines: list[str], claims: str = "") -> str:
    """Writes a plan from lines that begin with their slot, or with step and slot."""
    kind, ranks, *rest = collective.split()
    root, pieces = [*rest, *("0", "1")[len(rest) :]]
    times: list[tuple[int, int]] = []
    by_slot: defaultdict[int, list[str]] = defaultdict(list)
    for line in lines:
        time, transfer = line.split(maxsplit=1)
        step, slot = map(int, time.split(":") if ":" in time else (time, time))
        times.append((step, slot))
        by_slot[slot].append(transfer)
    ends = [0]
    for step in range(max(times, default=(-1, 0))[0] + 1):
        own = [slot + 1 for at, slot in times if at == step]
        later = [slot for at, slot in times if at > step]
        ends.append(max(ends[-1], *own, min(later, default=0)))
    steps = [end - start for start, end in pairwise(ends)]
    return "\n".join(
        [
            "opticoll plan 1",
            f"collective {kind} ranks={ranks} root={root} pieces={pieces}",
            f"fabric {fabric}",
            "algorithm by hand",
            *claims.split("\n"),
            f"steps {' '.join(map(str, steps))}",
            *(line for slot in sorted(by_slot) for line in (f"slot {slot}", *by_slot[slot])),
            f"end {len(lines)}\n",
        ]
    )


def read_cases() -> dict[str, tuple[str, list[str]]]:
    """Reads the plans made by hand: text and kinds of problems of each plan, by its claim."""
    words = [line for line in BY_HAND.read_text().splitlines() if line[:1] not in ("#", ">")]
    found = {}
    for case in filter(None, map(str.strip, "\n".join(words).split("\n\n"))):
        claim, about, *lines = case.splitlines()
        fabric, collective, broken = (word.strip() for word in about.split("|"))
        found[claim] = (write(fabric, collective, lines), sorted(broken.split()))
    return found


CASES = read_cases()
JUDGES = (circuit_switch, graph, grid, lightpath_grid, links, ring, rules, star)
# Of these plans readers refuse the text; the core verifies them in memory.
UNREADABLE = {
    "a source must be a rank",
    "a destination must be a rank",
    "the collective and the fabric have the same ranks",
    "a chunk must exist",
}


def kinds(text: str) -> list[str]:
    return sorted(problem.kind for problem in verify(read(text)))


@pytest.mark.parametrize("claim", CASES)
def test_plans_by_hand(claim: str) -> None:
    text, expected = CASES[claim]
    if claim in UNREADABLE:
        with pytest.raises(NotAPlan):
            read(text)
        with pytest.raises(_core.PlanFileError):
            _core.Plan.from_text(text)
        return
    assert core_kinds(text) == set(expected)
    if expected == ["collision"] * 3:
        # Of three lights that meet, the core names each pair, the reference each but the first.
        expected = expected[1:]
    assert kinds(text) == expected


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
    lines = ["0 copy 0 0>1 cw 0.0", "0 copy 0 0>2 ccw 0.0", "1 copy 0 2>3 cw 0.0"]
    text = write("wdm_ring:ranks=4,wavelengths=1", "broadcast 4", lines, claim)
    assert kinds(text) == expected
    assert core_kinds(text) == set(expected)


def test_every_kind_that_a_text_can_show_is_tried() -> None:
    tried = {kind for claim in CASES.keys() - UNREADABLE for kind in CASES[claim][1]}
    tried |= {"claim"}
    sources = [inspect.getsource(module) for module in JUDGES]
    known = set(re.findall(r'Problem\(\s*"(\w+)"', "".join(sources)))
    known |= {"same_step_forward", "not_held"}
    assert len(known) >= 23
    assert known == tried


def test_families_are_those_of_the_core_with_the_same_options() -> None:
    known = {
        record["name"]: {option["name"] for option in record["options"]}
        for record in _core.records("fabrics")
    }
    # For models of single messages no plan is made.
    assert known.keys() - families.FAMILIES.keys() == {"zero", "hockney", "loggp"}
    for family, (options, _) in families.FAMILIES.items():
        assert set(options) == known[family], family


def test_a_fabric_of_no_family_is_refused() -> None:
    with pytest.raises(NotAPlan, match="the reference knows no fabric `moebius_ring`"):
        read(WHOLE.replace("wdm_ring", "moebius_ring"))


def test_repetitions_are_unfolded_innermost_first() -> None:
    repeated = ["0 copy 3 3>0 cw 0.0 x2 wavelength+1 x2 chunk+1 rank+1"]
    text = write("wdm_ring:ranks=4,wavelengths=2", "all_gather 4", repeated)
    text = text.replace("end 1", "end 4")
    assert read(text).transfers == [
        Transfer(0, "copy", 3, 1, 3, 0, ring.Channel("cw", 0, 0)),
        Transfer(0, "copy", 3, 1, 3, 0, ring.Channel("cw", 0, 1)),
        Transfer(0, "copy", 0, 1, 0, 1, ring.Channel("cw", 0, 0)),
        Transfer(0, "copy", 0, 1, 0, 1, ring.Channel("cw", 0, 1)),
    ]


def test_the_examples_of_the_format_are_proved_by_both_readers() -> None:
    pattern = re.compile(r"^opticoll plan 1$.*?^end \d+$", re.MULTILINE | re.DOTALL)
    examples = pattern.findall((Path(__file__).parents[1] / "docs/plan-format.md").read_text())
    forms = []
    for example in examples:
        assert verify_text(example) == []
        plan = _core.Plan.from_text(f"{example}\n")
        assert plan.verify() == []
        assert plan.to_text() == f"{example}\n"
        forms.append((plan.collective.kind, plan.rotation_symmetric, plan.pipelined))
    assert forms == [
        ("all_gather", True, False),
        ("all_to_all", True, False),
        ("broadcast", False, True),
    ]


WHOLE = write(PAIR, "broadcast 2", ["0 copy 0 0>1 cw 0.0"])


def test_a_plan_can_be_made_without_its_text() -> None:
    plan = read(WHOLE)
    silent = Plan(plan.collective, plan.fabric, plan.steps)
    assert [problem.kind for problem in verify(silent)] == ["missing"]


def test_reference_verifier_imports_itself_and_the_standard_library_only() -> None:
    modules = set()
    for file in files("opticoll").joinpath("reference").iterdir():
        if not file.name.endswith(".py"):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {name.name for name in node.names}
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0
                modules.add(str(node.module))
    own = {module for module in modules if f"{module}.".startswith("opticoll.reference.")}
    assert own
    assert {module.partition(".")[0] for module in modules - own} <= sys.stdlib_module_names
