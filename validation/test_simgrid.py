"""opticoll's simulator of flows beside SimGrid itself, where it is installed."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from simgrid import TOLERANCE, compared
from simgrid_cases import TOPOLOGIES, random_cases
from simgrid_peers import MissingError, build_ours, build_simgrid

Programs = tuple[Path, Path]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    try:
        return build_simgrid(tmp_path_factory.mktemp("simgrid")), build_ours()
    except MissingError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_end_is_that_of_simgrid(programs: Programs, topology: str) -> None:
    cases = [case for case in random_cases(7, 12) if case.topology == topology]
    assert len(cases) == 12
    assert {case.weights for case in cases} == {None, "inverse_latency"}
    for case in cases:
        row = compared(*programs, case)
        assert row.ends > 1
        assert row.difference <= TOLERANCE, case.name


def test_the_comparison_would_notice_a_slower_cable(programs: Programs) -> None:
    noticed = 0
    for case in random_cases(7, 12):
        if case.topology == "custom":
            # The first cable is that of rank 0: a thousandth of its rate for SimGrid only.
            wrong = re.sub(r'(bandwidth="\d+)000Bps', r"\1Bps", case.platform, count=1)
            row = compared(*programs, dataclasses.replace(case, platform=wrong))
            noticed += row.difference > TOLERANCE
    assert noticed == 12
