"""Messages about light that is not received name the link, the option and a way out."""

from pathlib import Path

import pytest

from opticoll.outputs import fabric_names
from support import Run

POWER = "launch_power=0dBm,sensitivity=-20dBm"
# The light of the shortest cable, of 22 km, loses 4.4 dB at 0.2 dB/km.
CABLES = "Alpha Beta 47\nBeta Gamma 31\nGamma Delta 58\nDelta Eps 22\n"


@pytest.fixture(autouse=True)
def region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes a network of fibres into the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("my.edges").write_text(CABLES)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        # 300 km, the shortest of nsfnet, lose 60 dB of the 20 dB between power and sensitivity.
        (
            f"nsfnet:wavelengths=8,{POWER},fibre_loss=0.2dB/km",
            ["Ithaca -> Washington, 300km", "40dB below the sensitivity", "noise_figure"],
        ),
        # 57.95 dB less 4.4 dB and 5 dB.
        (
            f"my.edges:wavelengths=8,{POWER},fibre_loss=0.2dB/km,noise_figure=5dB,osnr=50dB",
            ["osnr=50dB", "Delta -> Eps, 22km", "OSNR of 48.55", "50dB are needed"],
        ),
        # Rank 0 to 2: 78 km lose 15.6 dB at 0.2 dB/km; to 3: 27.2 dB, 7.2 dB too much.
        (
            f"my.edges:wavelengths=8,{POWER},fibre_loss=0.2dB/km",
            ["from Alpha to Delta", "3 links", "7.2dB below the sensitivity", "one_hop"],
        ),
        ("my.edges:wavelengths=8,reach=1", ["from Alpha to Gamma", "reach of light is 1"]),
        (
            f"my.edges:wavelengths=8,{POWER},fibre_loss=fiber_1550",
            ["no fibre is called `fiber_1550`; did you mean `fibre_1550`?"],
        ),
        (
            f"my.edges:wavelengths=8,{POWER},fibre_loss=0.2dB/km,osnr=17dB",
            ["osnr=17dB", "no effect", "noise_figure or crosstalk"],
        ),
    ],
)
def test_light_that_is_not_received(run: Run, options: str, words: list[str]) -> None:
    finished = run("show", "broadcast", "--fabric", options, "--algorithm", "linear")
    assert finished.code == 2
    for word in words:
        assert word in finished.err


@pytest.mark.parametrize("fabric", ["my.edges", "nsfnet"])
def test_a_latency_that_no_link_has_is_noted(
    run: Run, fabric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another test may have read the same graph from a file.
    monkeypatch.setattr(fabric_names, "GRAPH_FILES", {})
    asked = ["show", "broadcast", "--algorithm", "linear", "--fabric"]
    noted = run(*asked, f"{fabric}:wavelengths=4,latency=1ms")
    assert noted.code == 0
    assert f"{fabric}: latency=1ms has no effect" in noted.err
    assert "no effect" not in run(*asked, f"{fabric}:wavelengths=4").err


def test_packets_on_fibres_name_the_simulator_of_bursts(run: Run) -> None:
    finished = run("traffic", "--fabric", "my.edges:wavelengths=4")
    assert finished.code == 2
    assert "--simulator burst" in finished.err
