"""Tori of cubes: optima of slices, plans that come near them, and cubes that fail.

The graph is built here once more, from the definition; distances come from a search in it. Values
of slices of TPU v4 are those of the literature.
"""

from __future__ import annotations

import json
from collections import deque
from fractions import Fraction
from itertools import product

import pytest

import opticoll
from opticoll import Fabric
from opticoll.outputs import linear_program
from opticoll.outputs.optimum import optimum
from opticoll.reference.families import read_fabric
from support import Run, broad, proved

UNIT = "rate=1GB/s"

Place = tuple[int, ...]


def neighbours(sides: Place, *, twisted: bool) -> dict[Place, list[Place]]:
    """Returns the places one step up and one step down along each axis: x up, x down, y up, ..."""
    short = min(sides)
    after: dict[Place, list[Place]] = {}
    for place in product(*map(range, sides)):
        steps = []
        for axis, step in product(range(3), (1, -1)):
            next_place = list(place)
            next_place[axis] += step
            around, next_place[axis] = divmod(next_place[axis], sides[axis])
            if twisted and around and sides[axis] == short:
                for along in range(3):
                    if sides[along] == 2 * short:
                        next_place[along] = (next_place[along] + around * short) % sides[along]
            steps.append(tuple(next_place))
        after[place] = steps
    return after


def distances(after: dict[Place, list[Place]]) -> dict[Place, int]:
    """Links from the first place to each."""
    first = (0, 0, 0)
    found: dict[Place, int] = {first: 0}
    open_places: deque[Place] = deque([first])
    while open_places:
        place = open_places.popleft()
        for next_place in after[place]:
            if next_place not in found:
                found[next_place] = found[place] + 1
                open_places.append(next_place)
    return found


SLICES = [
    # Sides, twisted, seconds of an all_to_all for a block of 1 GB. Of a straight torus
    # N k / 8 for the longest side k; of a twisted one where it is known.
    ((4, 4, 4), False, Fraction(32)),
    ((4, 4, 8), False, Fraction(128)),
    ((4, 4, 8), True, Fraction(220, 3)),
    ((8, 4, 4), True, Fraction(220, 3)),
    ((4, 8, 8), False, Fraction(256)),
    ((4, 8, 8), True, None),
    ((8, 8, 8), False, Fraction(512)),
]


def spec_of(sides: Place, *, twisted: bool) -> str:
    dims = "x".join(map(str, sides))
    return f"ocs_torus:dims={dims},{UNIT}" + (",twisted" if twisted else "")


@pytest.mark.parametrize(("sides", "twisted", "seconds"), SLICES)
def test_the_optimum_of_an_all_to_all_is_exact(
    sides: Place,
    twisted: bool,
    seconds: Fraction | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(linear_program, "optimum", lambda fabric, kind, root: None)
    fabric = Fabric(spec_of(sides, twisted=twisted))
    # The sum of all distances divided by the number of links is a lower bound.
    hops = sum(distances(neighbours(sides, twisted=twisted)).values())
    least, most = optimum("all_to_all", fabric)
    assert least == most
    assert least == (Fraction(hops, 6) if seconds is None else seconds)
    ranks = fabric.ranks
    assert optimum("all_gather", fabric) == (Fraction(ranks - 1, 6), Fraction(ranks - 1, 6))


@pytest.mark.parametrize(("sides", "twisted", "seconds"), SLICES[:6])
def test_a_linear_program_of_one_source_says_the_same(
    sides: Place, twisted: bool, seconds: Fraction | None
) -> None:
    """All sources alike: what rank 0 sends along a direction is what each link of it carries."""
    highspy = pytest.importorskip("highspy")
    after = neighbours(sides, twisted=twisted)
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    infinity = highspy.kHighsInf
    others = [place for place in after if place != (0, 0, 0)]
    rows = {place: index for index, place in enumerate(others)}
    for _ in rows:
        model.addRow(1.0, 1.0, 0, [], [])
    for _ in range(6):
        model.addRow(-infinity, 0.0, 0, [], [])
    for place, steps in after.items():
        for direction, other in enumerate(steps):
            entries = [(len(rows) + direction, 1.0)]
            entries += [(rows[other], 1.0)] if other in rows else []
            entries += [(rows[place], -1.0)] if place in rows else []
            own, values = zip(*entries, strict=True)
            model.addCol(0.0, 0.0, infinity, len(own), list(own), list(values))
    model.addCol(1.0, 0.0, infinity, 6, [len(rows) + one for one in range(6)], [-1.0] * 6)
    model.run()
    least, _ = optimum("all_to_all", Fabric(spec_of(sides, twisted=twisted)))
    assert least is not None
    assert model.getInfo().objective_function_value == pytest.approx(float(least), rel=1e-9)


@broad
@pytest.mark.parametrize(("sides", "twisted", "seconds"), SLICES[1:3])
def test_a_large_all_to_all_is_within_five_percent_and_verified(
    sides: Place, twisted: bool, seconds: Fraction
) -> None:
    fabric = Fabric(spec_of(sides, twisted=twisted), latency="1us")
    size = 128 * 10**7
    plan = opticoll.plan("all_to_all", fabric, size=size)
    proved(plan)
    time_ps = plan.simulate(size).time_ps
    assert float(seconds) * 10**10 <= time_ps <= 1.05 * float(seconds) * 10**10


def test_rings_go_around_straight_slices_only(run: Run) -> None:
    straight = "ocs_torus:dims=4x4x8"
    plan = opticoll.plan("all_gather", straight, "multi_ring", size="1MiB")
    assert (plan.verify(), plan.slots) == ([], 2 + 2 + 4)
    asked = run(
        *("plan", "all_gather", "--fabric", f"{straight},twisted", "--algorithm", "multi_ring")
    )
    assert asked.code == 2
    assert "those of a twisted torus do not" in asked.err


def test_a_word_alone_is_an_option_that_is_set(run: Run) -> None:
    short, long = (Fabric(f"ocs_torus:dims=4x4x8,twisted{value}") for value in ("", "=yes"))
    assert short == long
    read_fabric("ocs_torus:dims=4x4x8,twisted")
    asked = run("bound", "all_to_all", "--fabric", "ocs_torus:dims=4x4x8,twist")
    assert asked.code == 2
    assert "did you mean `twisted`" in asked.err


FAILED = "ocs_torus:dims=8x8x8,spares=1,ports=18"


def test_a_failed_cube_changes_its_own_fibres_alone(run: Run) -> None:
    asked = ("replan", "all_gather", "--fabric", FAILED, "--algorithm", "multi_ring")
    done = run(*asked, "--failed", "without=cube 3", "--size", "1MiB", "--json")
    assert done.code == 0
    row = json.loads(done.out)
    assert row["fabric"].endswith("without=cube3")
    assert (row["verified"], row["ranks"], row["slowdown"]) == (True, 512, 1)
    assert row["fibres_rematched"] == 96
    assert len({one["name"] for one in row["rematched"]}) == len(row["rematched"]) == 48
    for one in row["rematched"]:
        axis = one["name"].split()[1]
        # Two circuits of the failed cube become two of the spare cube with the same others.
        assert len(one["before"]) == len(one["now"]) == 2
        renamed = json.dumps(one["before"]).replace("cube 3", "cube 8")
        assert json.loads(renamed) == one["now"]
        assert f"cube 3 +{axis}" in json.dumps(one["before"])
    text = run(*asked, "--failed", "without=cube 3", "--size", "1MiB").out
    assert "48 of 48 circuit switches change and reconnect 96 fibres" in text
    assert "joined before" in text
    idle = run(*asked, "--failed", "without=cube 8", "--size", "1MiB").out
    assert "none of 48 circuit switches changes" in idle


def test_show_lists_what_switches_join(run: Run) -> None:
    shown = ("show", "all_gather", "--fabric", "ocs_torus:dims=4x4x8,twisted")
    row = json.loads(run(*shown, "--algorithm", "direct", "--json").out)
    assert len(row["switches"]) == 48
    # A step around x leads to the other cube; in a straight slice to the same one.
    assert row["switches"][0] == {
        "name": "switch x 0.0",
        "circuits": [
            {"ports": ["cube 0 +x", "cube 1 -x"]},
            {"ports": ["cube 1 +x", "cube 0 -x"]},
        ],
    }
    text = run(*shown, "--algorithm", "direct").out
    assert "48 circuit switches, 4 ports of each in use" in text
    plain = json.loads(run("show", "all_gather", "--fabric", "torus:dims=4x4", "--json").out)
    assert "switches" not in plain
