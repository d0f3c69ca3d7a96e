"""`show` of a plan that the verifier rejects says so, in text, in JSON and in the figure."""

import json
import re
from pathlib import Path

import pytest

import opticoll
from opticoll.plot import style
from support import Run

# Two lightpaths of rank 0 start on wavelength 0 of the link from 0 to 1.
COLLISION = """opticoll plan 1
collective broadcast ranks=3 root=0 pieces=1
fabric wdm_graph:ranks=3,links=0-1+1-2,wavelengths=2
algorithm theirs
steps 1
slot 0
copy 0 0>1 0.{first} via 0
copy 0 0>2 0.0 via 0.2
end 2
"""


@pytest.mark.parametrize("is_valid", [False, True])
def test_show_says_whether_the_verifier_rejects_a_plan(
    run: Run, tmp_path: Path, is_valid: bool
) -> None:
    file = tmp_path / "theirs.plan"
    file.write_text(COLLISION.format(first=int(is_valid)))
    shown = run("show", str(file))
    assert shown.code == (0 if is_valid else 1)
    assert bool(re.search("verified +NO: 1 violation", shown.out)) is not is_valid
    assert ("share wavelength 0 on fibre 0" in shown.out) is not is_valid
    row = json.loads(run("show", str(file), "--json").out)
    assert row["verified"] is is_valid
    assert len(row["violations"]) == (0 if is_valid else 1)
    heading = style.heading(opticoll.read_plan(file))
    assert heading.startswith("NOT VALID (1 violation): ") is not is_valid
