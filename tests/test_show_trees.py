"""Light trees in `show`: transfers on one light of a rank count once, and are marked."""

from pathlib import Path

import pytest

import opticoll
from opticoll.outputs.lights import lights_of
from opticoll.plot.fibres import lit
from support import Run

# Rank 0 sends chunk 0 to ranks 1 and 2 in a light tree, and to rank 3 over another first link.
TREE = """opticoll plan 1
collective broadcast ranks=4 root=0 pieces=1
fabric wdm_graph:ranks=4,links=0-1+1-2+3-0,wavelengths=2,{options}
algorithm theirs
steps 1
slot 0
copy 0 0>1 0.{light} via 0
copy 0 0>2 0.{light} via 0.2
copy 0 0>3 0.{light} via 5
end 3
"""


@pytest.mark.parametrize(
    ("options", "light"),
    [
        ("multicast=drop_and_continue", "0"),
        ("multicast=drop_and_continue,converters=full", "*"),
    ],
)
def test_a_light_tree_counts_once_and_is_marked(
    run: Run, tmp_path: Path, options: str, light: str
) -> None:
    file = tmp_path / "theirs.plan"
    file.write_text(TREE.format(options=options, light=light))
    shown = run("show", file, "--figure", tmp_path / "tree.svg")
    assert shown.code == 0, shown.out + shown.err
    text = shown.out
    assert "slot 0: 1 light tree and 1 lightpath of 3 transfers" in text
    lines = [line.rstrip() for line in text.splitlines() if line.startswith("copy")]
    assert [line.endswith("light tree") for line in lines] == [True, False]
    assert "0 > 1 2 " in lines[0]
    assert f"wavelength {light}" in lines[0]
    drawn = (tmp_path / "tree.svg").read_text()
    assert "1 light tree and 1 lightpath" in drawn
    assert "source of a light tree" in drawn
    plan = opticoll.read_plan(file)
    assert len(lights_of(plan, 0)) == 2
    # A tree has one lane on all of its links.
    paths = lit(plan, 0)
    assert paths.lane[0] == paths.lane[1]


def test_without_light_trees_each_route_is_a_lightpath(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "theirs.plan"
    text = TREE.format(options="converters=full", light="*")
    file.write_text(text.replace("converters=full", "converters=full,fibres=2"))
    assert "slot 0: 3 lightpaths\n" in run("show", file).out


def test_transfers_on_the_same_route_and_light_are_one_lightpath(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "theirs.plan"
    file.write_text(
        "opticoll plan 1\ncollective scatter ranks=3 root=0 pieces=1\n"
        "fabric wdm_graph:ranks=3,links=0-1+1-2,wavelengths=2\nalgorithm theirs\nsteps 2\n"
        "slot 0\ncopy 1 0>1 0.0 via 0\ncopy 2 0>1 0.0 via 0\nslot 1\ncopy 2 1>2 0.0 via 2\nend 3\n"
    )
    shown = run("show", file)
    assert "slot 0: 1 lightpath of 2 transfers" in shown.out
    assert shown.out.count("0 > 1") == 2
