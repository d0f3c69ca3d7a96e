"""Bursts of light from Python: settings as text, columns, progress and refusals."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from opticoll import _core
from support import Run
from test_cli import run_json

LADDER = "wdm_ladder:rungs=5,hosts=10,wavelengths={},rate=10Gb/s"


def test_columns_add_up_and_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    outcome = _core.simulate_bursts(
        LADDER.format(16),
        {"bursts": "5e4", "source": "poisson"},
        threads=2,
        progress=lambda done, target: told.append((done, target)),
    )
    assert told[-1] == (outcome.bursts, 50_000) == (50_000, 50_000)
    assert outcome.loss_low < outcome.loss < outcome.loss_high
    for columns in (outcome.by_hops, outcome.by_pair, outcome.moments):
        assert columns["offered"].sum() == outcome.bursts
        assert (
            columns["lost"].sum()
            == outcome.lost
            == (outcome.lost_at_links + outcome.lost_at_converters + outcome.lost_at_receivers)
        )
    assert (len(outcome.by_pair), len(outcome.links)) == (10 * 10, 26)
    # The busiest link is offered 10.91 Erlang.
    assert outcome.links["utilisation"].max() < 10.91 / 16


@pytest.mark.parametrize(
    ("settings", "setting", "problem"),
    [
        ({"offered_load": "much"}, "offered_load", "not a number"),
        ({"assignment": "first"}, "assignment", "did you mean `first_fit`"),
        ({"offered_lod": "1"}, None, "did you mean `offered_load`"),
    ],
)
def test_settings_are_refused_with_their_name(
    settings: dict[str, str], setting: str | None, problem: str
) -> None:
    with pytest.raises(_core.SimulationError, match=problem) as error:
        _core.simulate_bursts(LADDER.format(28), settings)
    assert error.value.setting == setting


def test_what_progress_raises_ends_the_run() -> None:
    def enough(done: int, target: int) -> None:
        raise InterruptedError(f"{done} of {target}")

    with pytest.raises(InterruptedError):
        _core.simulate_bursts(LADDER.format(28), {"bursts": "1e6"}, progress=enough)


def test_every_setting_has_a_summary_and_a_default() -> None:
    for record in _core.records("burst_settings"):
        assert record["summary"]
        assert record["options"][0]["name"] == "default"


TRAFFIC = ["traffic", "--simulator", "burst", "--warm-up", "1000", "--bursts", "2e4"]


def test_the_command_prints_what_the_core_counted(run: Run) -> None:
    options = ["--fabric", LADDER.format(16), "--source", "poisson", "--signalling", "jet"]
    row = run_json(run, "traffic", *TRAFFIC, *options, "--assignment", "random", "--seed", "3")
    outcome = _core.simulate_bursts(
        LADDER.format(16),
        {
            "source": "poisson",
            "signalling": "jet",
            "assignment": "random",
            "seed": "3",
            "warm_up": "1000",
            "bursts": "2e4",
        },
    )
    assert (row["bursts"], row["lost"]) == (20_000, outcome.lost)
    assert (row["loss_low"], row["loss_high"]) == (outcome.loss_low, outcome.loss_high)
    assert sum(one["lost"] for one in row["by_pair"]) == outcome.lost
    assert [one["links"] for one in row["by_hops"]] == list(range(6))
    assert len(row["links"]) == 26
    assert set(row["settings"].split()) == {"seed=3", "warm_up=1000", "bursts=2e4"}


def test_lists_make_a_case_of_each_combination(run: Run, tmp_path: Path) -> None:
    table, figure = tmp_path / "loss.csv", tmp_path / "loss.png"
    options: list[str | Path] = ["--fabric", LADDER.format(12), "--offered-load", "0.5,0.9"]
    options += ["--assignment", "first_fit,random", "--figure", figure, "--csv", table]
    rows = run_json(run, "traffic", *TRAFFIC, *options, "--jobs", "1")
    cases = [(row["offered_load"], row["assignment"]) for row in rows]
    expected = [(0.5, "first_fit"), (0.5, "random"), (0.9, "first_fit"), (0.9, "random")]
    assert cases == expected
    assert figure.read_bytes().startswith(b"\x89PNG")
    with table.open() as lines:
        assert [float(row["loss"]) for row in csv.DictReader(lines)] == [
            row["loss"] for row in rows
        ]
    assert run_json(run, "traffic", *TRAFFIC, *options, "--jobs", "2") == rows


def test_one_case_is_said_in_lines_and_drawn(run: Run, tmp_path: Path) -> None:
    figure = tmp_path / "one.svg"
    finished = run(*TRAFFIC, "--fabric", LADDER.format(12), "--figure", figure)
    assert finished.code == 0
    assert "95 %" in finished.out
    assert "transmitter, 0.9 Erlang" in finished.out
    assert figure.exists()
    several = run(*TRAFFIC, "--fabric", LADDER.format(12), "--signalling", "jet,jit,two_way")
    assert len(several.out.splitlines()) == 5


def test_every_setting_is_an_option(run: Run) -> None:
    finished = run("traffic", "--help-all")
    for record in _core.records("burst_settings"):
        assert f"--{record['name'].replace('_', '-')} " in finished.out, record["name"]
