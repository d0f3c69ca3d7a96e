"""Iterations that others measured: errors of `train`, and the page that states them."""

from __future__ import annotations

import functools
import statistics

import pytest
import training_page
import training_times

Point = tuple[float, float]


@functools.cache
def sets() -> dict[str, list[Point]]:
    return {entry.name: list(entry.points()) for entry in training_page.SETS}


def errors(name: str) -> tuple[float, float]:
    """Returns the mean and the greatest error."""
    found = [abs(predicted / measured - 1) for measured, predicted in sets()[name]]
    return statistics.fmean(found), max(found)


def test_iterations_of_megatron_on_a100() -> None:
    mean, worst = errors("A100, Korthikanti et al.")
    assert mean <= 0.036
    assert worst <= 0.08


def test_iterations_of_vtrain_on_several_servers() -> None:
    points = sets()["A100, vTrain, 64 to 512 GPUs"]
    assert len(points) == 37
    assert errors("A100, vTrain, 64 to 512 GPUs")[0] <= 0.1
    assert training_times.rank_correlation(points) >= 0.9


def test_iterations_of_vtrain_on_one_server() -> None:
    points = sets()["A100, vTrain, one server"]
    assert len(points) == 720
    assert errors("A100, vTrain, one server")[0] <= 0.1
    assert training_times.rank_correlation(points) >= 0.95


def test_iterations_on_b200() -> None:
    assert len(sets()["B200, SimuMax"]) == 43
    assert errors("B200, SimuMax")[0] <= 0.08


@pytest.mark.parametrize("name", ["Memory, Korthikanti et al.", "Memory, B200, SimuMax"])
def test_memory_is_within_one_and_a_half_per_cent(name: str) -> None:
    assert errors(name)[1] <= 0.015


def test_the_page_states_these_errors() -> None:
    found = {entry: sets()[entry.name] for entry in training_page.SETS}
    assert training_page.table(found) in training_page.PAGE.read_text(encoding="utf-8")
