"""What the papers print, computed anew in full."""

from __future__ import annotations

from pathlib import Path

import pytest

from opticoll.commands.reproduce import reproduce

PERCENTAGE_POINTS = 0.05


@pytest.mark.parametrize("paper", ["optree", "wrht"])
def test_reproduced_numbers_are_within_their_tolerance(paper: str, tmp_path: Path) -> None:
    findings = reproduce(paper, tmp_path, quick=False).findings
    compared = 0
    for finding in findings:
        printed, computed = finding["paper"], finding["computed"]
        numeric = isinstance(printed, int | float) and isinstance(computed, int | float)
        if finding["verdict"] != "reproduced" or not numeric:
            continue
        tolerance = PERCENTAGE_POINTS if finding["unit"] == "%" else 0
        assert abs(float(computed) - float(printed)) <= tolerance, finding
        compared += 1
    assert compared > 0 or paper == "wrht"
    assert list(tmp_path.glob("*.csv"))
    assert list(tmp_path.glob("*.svg"))
