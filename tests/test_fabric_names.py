"""Names of graphs of fibres in results and figures: the file or the preset, with its options."""

from pathlib import Path

import pytest

from opticoll._core import Fabric
from opticoll.outputs import fabric_names
from opticoll.outputs.fabric_names import fabric_labels, fabric_text
from opticoll.plot import style
from support import Run

CABLES = "Alpha Beta 47\nBeta Gamma 31\nGamma Delta 58\nDelta Alpha 65\n"


@pytest.fixture(autouse=True)
def region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes a network of fibres into the current folder, where no graph was read from a file."""
    # Another test may have read the graph of a preset from a file.
    monkeypatch.setattr(fabric_names, "GRAPH_FILES", {})
    monkeypatch.chdir(tmp_path)
    Path("region.edges").write_text(CABLES)


def test_results_state_each_option_of_fibres_that_is_not_the_default(run: Run) -> None:
    options = {
        "converters": "full",
        "dead": "1",
        "multicast": "drop_and_continue",
        "transmitters": "2",
        "receivers": "3",
        "without": "2-3",
        "reconfiguration": "10us",
        "launch_power": "0dBm",
        "sensitivity": "-20dBm",
        "link_loss": "2dB",
    }
    light = ",".join(f"{name}={value}" for name, value in options.items())
    text = run("bound", "all_gather", "--fabric", f"region.edges:wavelengths=4,{light}").out
    (first,) = (line for line in text.splitlines() if "region.edges" in line)
    for name, value in options.items():
        assert f"{name} {value}" in first
    plain = run("bound", "all_gather", "--fabric", "region.edges:wavelengths=4").out
    assert "region.edges (4 cables; wavelengths 4, fibres 1; default rate 100Gb/s)" in plain


@pytest.mark.parametrize("preset", ["nsfnet", "geant"])
def test_a_preset_of_fibres_is_named_by_itself(preset: str) -> None:
    spec = Fabric(f"{preset}:wavelengths=4").spec
    assert fabric_text(spec).startswith(f"{preset} (")
    assert style.named_fabric(spec).startswith(f"{preset} (")
    assert fabric_labels([spec]) == {spec: preset}


def test_a_graph_in_a_plan_file_is_named_by_the_plan_file(run: Run) -> None:
    graph = "wdm_graph:ranks=3,links=0-1+1-2+2-0@3km,wavelengths=2"
    run("plan", "all_gather", "--fabric", graph, "--size", "1MiB", "--output", "mine.plan")
    assert "mine.plan (3 cables; wavelengths 2" in run("show", "mine.plan").out


@pytest.mark.parametrize(
    "asked",
    [
        ["traffic", "--simulator", "burst", "--warm-up", "10", "--bursts", "100"],
        ["congestion", "all_gather", "--algorithm", "direct", "--size", "1MB"],
    ],
)
def test_light_on_demand_names_its_graph_in_short(run: Run, asked: list[str]) -> None:
    text = run(*asked, "--fabric", "nsfnet:wavelengths=4", "--replications", "2").out
    assert "nsfnet (21 cables; wavelengths 4, fibres 1; rate 100Gb/s)" in text
    assert "links=" not in text


def test_labels_of_one_graph_have_the_options_that_differ() -> None:
    several = [
        Fabric(f"nsfnet:wavelengths={count}{more}").spec
        for count in (2, 4)
        for more in ("", ",converters=full")
    ]
    assert (
        list(fabric_labels(several, ["wavelengths"]).values())
        == [
            "nsfnet:converters=none",
            "nsfnet:converters=full",
        ]
        * 2
    )


def test_a_figure_of_a_sweep_over_fibres_has_a_line_for_each_other_setting(run: Run) -> None:
    Path("study.yaml").write_text(
        "study: region\ncommand: simulate\n"
        "options: {collective: all_gather, fabric: region.edges, size: 1MiB, algorithm: direct}\n"
        'grid: {fabric.wavelengths: [1, 2, 4], fabric.converters: ["none", full]}\n'
    )
    run("sweep", "study.yaml")
    run("report", "study.sqlite", "--output", "page.html", "--figures", "figures")
    drawn = Path("figures/region.svg").read_text()
    labels = {part.partition("<")[0] for part in drawn.split(">") if part.startswith("region")}
    assert {"region.edges:converters=none", "region.edges:converters=full"} == labels
    assert "wdm_graph" not in drawn
