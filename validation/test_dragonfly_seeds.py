"""The table of draws: what it computes on the smallest ring, and what the page says of it."""

from __future__ import annotations

import dragonfly_page as page
import dragonfly_seeds as seeds
import pytest


def test_a_seed_gives_one_of_the_two_times_of_the_small_ring() -> None:
    (row,) = seeds.draws(seeds.SMALL_WORKLOADS, 10, 2)
    assert len(row.ours) == 10
    # Decided as they come, or by priority once two streams meet: see the packet simulator's tests.
    early = [time for time in row.ours if time == pytest.approx(104.5, rel=0.002)]
    late = [time for time in row.ours if 111 < time < 115.5]
    assert early
    assert len(late) > len(early)
    assert len(early) + len(late) == 10
    assert row.within
    assert row.mean == pytest.approx(sum(row.ours) / 10)
    assert [one.ours for one in seeds.draws(seeds.SMALL_WORKLOADS, 10, 1)] == [row.ours]


def test_a_value_outside_is_told() -> None:
    assert not seeds.Draws("x", "finish", 5.0, (4.0, 4.9)).within
    assert seeds.Draws("x", "finish", 4.9, (4.0, 4.9)).within


def test_the_page_has_a_row_for_every_quantity() -> None:
    committed = page.PAGE.read_text(encoding="utf-8")
    section = committed.split("<!-- seeds -->")[1].split("<!-- end -->")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")][2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    wanted = [
        (one.name, quantity, codes)
        for one in seeds.WORKLOADS
        for quantity, codes in one.codes.items()
    ]
    assert [(name, quantity, float(codes)) for name, quantity, codes, *_ in cells] == wanted
    for _, _, codes, mean, between, off, within in cells:
        least, most = map(float, between.split(" to "))
        assert least <= float(mean) <= most
        assert 100 * (float(mean) / float(codes) - 1) == pytest.approx(
            float(off.split()[0]), abs=0.06
        )
        assert (within == "yes") == (least <= float(codes) <= most)
