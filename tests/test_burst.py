"""Bursts of light from Python: settings as text, columns, progress and refusals."""

from __future__ import annotations

import pytest

from opticoll import _core

LADDER = "ladder:columns=5,computers=10,wavelengths={},rate=10Gb/s"


def test_columns_add_up_and_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    outcome = _core.simulate_bursts(
        LADDER.format(16),
        threads=2,
        progress=lambda done, target: told.append((done, target)),
        bursts="5e4",
        source="poisson",
    )
    assert told[-1] == (outcome.bursts, 50_000) == (50_000, 50_000)
    assert outcome.loss_low < outcome.loss < outcome.loss_high
    for columns in (outcome.by_hops, outcome.by_pair, outcome.moments):
        assert columns["offered"].sum() == outcome.bursts
        assert columns["lost"].sum() == outcome.lost == sum(outcome.lost_at.values())
    assert outcome.by_pair["lost"].shape == (10, 10)
    assert len(outcome.link_names) == len(outcome.links["utilisation"]) == 26
    # The busiest link is offered 10.91 Erlang.
    assert outcome.links["utilisation"].max() < 10.91 / 16


def test_theory_is_that_of_the_literature() -> None:
    assert _core.erlang_b(20.0, 28) == pytest.approx(0.018792, rel=5e-5)
    assert _core.engset(2, 0.5, 1) == pytest.approx(1 / 3)
    loss = _core.burst_fixed_point(LADDER.format(28), 0.9)
    assert loss == pytest.approx(7.32e-6 * 90 / 99, rel=3e-3)


@pytest.mark.parametrize(
    ("settings", "setting", "problem"),
    [
        ({"intensity": "much"}, "intensity", "no number"),
        ({"assignment": "first"}, "assignment", "did you mean `first_fit`"),
        ({"intensty": "1"}, None, "did you mean `intensity`"),
    ],
)
def test_settings_are_refused_with_their_name(
    settings: dict[str, str], setting: str | None, problem: str
) -> None:
    with pytest.raises(_core.SimulationError, match=problem) as error:
        _core.simulate_bursts(LADDER.format(28), **settings)
    assert error.value.setting == setting


@pytest.mark.parametrize("fabric", ["ladder:columns=5", "lader:wavelengths=2", "ladder:columns=x"])
def test_fabrics_are_refused(fabric: str) -> None:
    with pytest.raises(_core.FabricError):
        _core.simulate_bursts(fabric)


def test_what_progress_raises_ends_the_run() -> None:
    def enough(done: int, target: int) -> None:
        raise InterruptedError(f"{done} of {target}")

    with pytest.raises(InterruptedError):
        _core.simulate_bursts(LADDER.format(28), progress=enough, bursts="1e6")


def test_every_setting_has_a_summary_and_a_default() -> None:
    for record in _core.burst_settings():
        assert record["summary"]
        assert record["options"][0][0] == "default"
