"""The trees of a plan: read off its transfers, as text, JSON and figure."""

import json
from pathlib import Path

import pytest
from matplotlib.figure import Figure

import opticoll
from opticoll.cli.main import main
from opticoll.errors import UsageError
from opticoll.outputs.trees import trees
from opticoll.plot import output


def test_the_chunk_of_a_rank_goes_around_the_ring() -> None:
    plan = opticoll.plan("all_gather", "electrical_ring:ranks=5", "ring", size="1KiB")
    (tree,) = trees(plan, rank=3)
    assert (tree.root, tree.chunks, tree.action, tree.depth) == (3, [3], "copy", 4)
    moves = [(edge.slot, edge.source, edge.destination) for edge in tree.edges]
    assert moves == [(step, (3 + step) % 5, (4 + step) % 5) for step in range(4)]


@pytest.mark.parametrize(
    "kind", ["all_gather", "reduce_scatter", "broadcast", "reduce", "all_reduce"]
)
def test_trees_of_a_packing_span_all_ranks(kind: str) -> None:
    plan = opticoll.plan(kind, "torus:dims=3x3", "tree_packing:trees=2,chunks=2", size="64KiB")
    assert plan.verify() == []
    found = trees(plan, rank=4 if kind in ("all_gather", "reduce_scatter") else None)
    assert found
    for tree in found:
        far = [one.destination if tree.action == "copy" else one.source for one in tree.edges]
        assert sorted([*far, tree.root]) == list(range(9))
        assert 1 <= tree.depth <= 8
    each = plan.collective.pieces if kind in ("all_gather", "reduce_scatter") else None
    assert each is None or sum(len(tree.chunks) for tree in found) == each
    if kind == "all_reduce":
        # Each chunk is reduced and then copied.
        assert {tree.action for tree in found} == {"copy", "reduce"}


def test_trees_are_printed_and_drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    figures: list[Figure] = []
    kept = output.save

    def save(figure: Figure, path: Path) -> None:
        figures.append(figure)
        kept(figure, path)

    monkeypatch.setattr(output, "save", save)
    asked = ["show", "all_gather", "--fabric", "torus:dims=3x3"]
    asked += ["--algorithm", "tree_packing:trees=2,chunks=1"]
    asked += ["--size", "1MiB", "--view", "trees", "--of-rank", "4"]
    figure = tmp_path / "trees.svg"
    assert main([*asked, "--json", "--figure", str(figure)]) == 0
    row = json.loads(capsys.readouterr().out)
    assert [tree["chunks"] for tree in row["trees"]] == [[8], [9]]
    assert all(len(tree["edges"]) == 8 for tree in row["trees"])
    assert figure.exists()
    titles = [axes.get_title("left") for axes in figures[0].axes if axes.get_title("left")]
    assert [title.split(":")[0] for title in titles] == ["copy chunk 8", "copy chunk 9"]
    assert main(asked) == 0
    text = capsys.readouterr().out
    assert text.count("copy from rank 4") == 2
    assert "  step 0" in text


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--view trees --of-rank 9", "there is no rank 9: ranks are 0 to 8"),
        ("--view trees --of-chunk 99", "there is no chunk 99"),
        ("--of-rank 1", "add --view trees"),
        ("--view trees --of-rank 1 --of-chunk 1", "give one of them"),
        ("--view trees --slot 1", "leave --slot out"),
    ],
)
def test_trees_that_are_none_are_refused(
    options: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["show", "all_gather", "--fabric", "torus:dims=3x3", "--algorithm", "ring"]
    assert main([*asked, *options.split()]) == 2
    assert sentence in capsys.readouterr().err


def test_ranks_and_chunks_are_checked() -> None:
    plan = opticoll.plan("broadcast", "torus:dims=2x2", "binomial", size="1KiB")
    with pytest.raises(UsageError, match="no rank 4"):
        trees(plan, rank=4)
    with pytest.raises(UsageError, match="no chunk -1"):
        trees(plan, chunk=-1)
