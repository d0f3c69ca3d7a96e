"""The page of the dragonfly study says what its cases and CODES say."""

from __future__ import annotations

from pathlib import Path

import dragonfly_page as page
import pytest


def test_the_committed_page_is_what_the_committed_cases_give(tmp_path: Path) -> None:
    committed = page.PAGE.read_text(encoding="utf-8")
    results = page.study(page.CASES, tmp_path)
    assert page.fill(committed, page.study_sections(results)) == committed
    assert page.items(results) == page.ITEMS.read_text(encoding="utf-8")
    assert "left_out" not in {one.verdict for one in results.findings}
    assert all(row["verified"] for row in page.read_cases(page.CASES).values())
    for name in page.DRAWN:
        assert (page.FIGURES / f"dragonfly_{name}.svg").exists()


def test_a_disagreement_needs_a_reason() -> None:
    agrees = page.Cell("W2 1056 TAR", "finish us", "13710.6", "13710.6", 0.9)
    assert page.reason(agrees) is None
    alone = page.Cell("W2 1056 TAR", "finish us", "14000", "13710.6", 2.1)
    with pytest.raises(ValueError, match="nobody has said why"):
        page.reason(alone)
    explained = page.Cell("W2 1056 TAR", "max message us", "27", "26.4", 2.1)
    assert page.reason(explained) is not None


def test_the_pages_values_of_codes_agree_within_their_tolerance() -> None:
    committed = page.PAGE.read_text(encoding="utf-8")
    section = committed.split("<!-- peer -->")[1].split("<!-- end -->")[0]
    lines = [line for line in section.splitlines() if line.endswith(" |") and " % " in f"{line} "]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert len(cells) > 100
    for case, quantity, ours, peer, difference in cells:
        percent = float(difference.split()[0])
        marked = "(" in difference
        assert 100 * (float(ours) / float(peer) - 1) == pytest.approx(percent, abs=0.02)
        assert (page.reason(page.Cell(case, quantity, ours, peer, percent)) is not None) == marked
