"""The compiled core makes plans on rings of light, and judges them: the reference must agree."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from opticoll import _core
from opticoll.names import ACTIONS
from opticoll.reference import Transfer, read, verify_text
from opticoll.reference.ring import CONVERTED, Channel
from plan_mutants import mutated
from support import compare_mutants, core_kinds, reference_kinds


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


MANY = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


@MANY
@given(made_plans())
def test_what_the_core_plans_is_proved_by_both(plan: _core.Plan) -> None:
    text = plan.to_text()
    assert verify_text(text) == []
    assert plan.verify() == []
    assert Counter(read(text).transfers) == Counter(unfolded(plan))
    assert read(text).steps == list(plan.step_slots)


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
        found |= set().union(*compare_mutants(text, mutated, [1, 1, 2] * 30))
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
