"""Predicted and measured times of NCCL, by the script that fills docs/machines.md."""

from __future__ import annotations

import statistics

import machines
import pytest

WITH_NVLINK = [system for system in machines.SYSTEMS if system != "l40s"]


@pytest.mark.parametrize("system", WITH_NVLINK)
def test_times_of_a_size_left_out_are_predicted_within_six_per_cent(system: str) -> None:
    row = machines.calibrated(system)
    assert statistics.fmean(abs(time.error) for time in row.times) <= 0.06
    assert len(row.costs) <= 12


@pytest.mark.parametrize("system", [system for system in WITH_NVLINK if system != "gb200"])
def test_eight_ranks_are_predicted_from_two_and_four_within_twelve_per_cent(system: str) -> None:
    assert statistics.fmean(machines.eight_from_fewer(system)) <= 0.12
