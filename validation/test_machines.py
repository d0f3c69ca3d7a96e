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


def test_alternatives_of_a_box_change_where_measured_curves_have_kinks() -> None:
    found = [machines.kinks(*one) for one in (("a100_sxm", 8), ("h100_sxm", 8), ("b200_sxm", 8))]
    same, count = machines.agreement([*found, machines.kinks("l40s", 8)], "winners")
    assert same >= 0.8 * count


def test_a_kink_is_a_time_below_the_line_of_the_times_before() -> None:
    # 10 us and 1 us for each KB, up to 8 KB; then 20 us and half of that.
    assert machines.is_kink([2000, 8000, 32000], [12, 18, 36])
    assert not machines.is_kink([2000, 4000, 8000], [12, 14, 18])
    # An overlap of latency and bytes is convex.
    overlap = [float((100 + size**2) ** 0.5) for size in (1, 10, 100)]
    assert not machines.is_kink([1, 10, 100], overlap)


@pytest.mark.parametrize("system", [system for system in WITH_NVLINK if system != "gb200"])
def test_eight_ranks_are_predicted_from_two_and_four_within_twelve_per_cent(system: str) -> None:
    assert statistics.fmean(machines.eight_from_fewer(system)) <= 0.12
