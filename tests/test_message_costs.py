"""Times of messages from a user's function: `--cost module:function`.

Expected times follow from the functions, and from the port that the messages of a rank share.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import opticoll
from opticoll.errors import ReadingNote, UsageError
from opticoll.inputs.message_costs import with_costs
from support import Run, answer

MODULE = """
def affine(size, source, destination, hops, rate=10):
    return 1e-6 * hops + size / (rate * 1e9)


def far(size, source, destination, hops):
    return (1e-6 if 1 in (source, destination) else 1e-3) + size / 1e9


def ways(size, source, destination, hops):
    return size / (1e9 if source < destination else 2e9)


def eager(size, source, destination, hops):
    return 1e-6 + size / 1e9 if size <= 4096 else 9e-6 + size / 1e9


def text(size, source, destination, hops):
    return "1us"


def constant(size, source, destination, hops):
    return 1e-6


def broken(size):
    return 1e-6
"""

MEBIBYTE = 2**20


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """Writes the functions to a module, and returns its name."""
    name = f"costs_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return name


def time_ps(fabric: opticoll.Fabric, collective: str, algorithm: str | None = None) -> int:
    plan = opticoll.plan(collective, fabric, algorithm, size=MEBIBYTE)
    return opticoll.measure(plan, MEBIBYTE).time_ps or 0


def test_a_message_takes_the_time_of_the_function(module: str) -> None:
    # Ranks 0 and 2 of a ring of four are two hops apart; only these two take part.
    ring = opticoll.Fabric("torus:dims=4,members=0+2")
    fabric = with_costs(ring, f"{module}:affine,rate=25")
    seconds = 2e-6 + MEBIBYTE / 25e9
    assert time_ps(fabric, "broadcast") == pytest.approx(seconds * 1e12, abs=2)


def test_messages_of_a_rank_share_its_port(module: str) -> None:
    fabric = with_costs(opticoll.Fabric("crossbar:ranks=4"), f"{module}:affine")
    # The root sends three blocks at once, each two hops.
    seconds = 2e-6 + 3 * MEBIBYTE / 10e9
    assert time_ps(fabric, "scatter", "direct") == pytest.approx(seconds * 1e12, abs=4)
    assert time_ps(fabric, "gather", "direct") == pytest.approx(seconds * 1e12, abs=4)


def test_auto_avoids_what_the_function_makes_slow(module: str) -> None:
    fabric = with_costs(opticoll.Fabric("crossbar:ranks=3"), f"{module}:far")
    # By way of rank 1 a small message arrives after 2 us, and directly after 1 ms.
    plan = opticoll.plan("broadcast", fabric, size=8)
    assert opticoll.measure(plan, 8).time_ps == 2 * (10**6 + 8000)


def test_a_function_may_differ_by_direction(module: str) -> None:
    fabric = with_costs(opticoll.Fabric("crossbar:ranks=2"), f"{module}:ways")
    rates = {fabric.link_name(link): rate for link, rate in enumerate(fabric.link_rates or ())}
    assert rates["switch 0 -> switch 1"] == 8 * 10**9
    assert rates["switch 1 -> switch 0"] == 16 * 10**9
    assert rates["rank 1 -> switch 1"] == 16 * 10**9
    assert rates["switch 1 -> rank 1"] == 8 * 10**9


def test_a_note_states_how_far_other_functions_are_off(module: str) -> None:
    machine = opticoll.Fabric("crossbar:ranks=2")
    with pytest.warns(ReadingNote, match=r"differs by up to [1-9][0-9.]*%"):
        with_costs(machine, f"{module}:eager")


@pytest.mark.parametrize(
    ("fabric", "function", "words"),
    [
        ("crossbar:ranks=2", "text", "returned `'1us'` for 0 bytes from rank 0 to rank 1"),
        ("crossbar:ranks=2", "constant", "the time does not grow with the size"),
        ("crossbar:ranks=2", "broken", "raised TypeError"),
        ("crossbar:ranks=2", "none", "has no `none`"),
        ("wdm_ring:ranks=4,wavelengths=1", "affine", "wdm_ring has circuits"),
        ("crossbar:ranks=129", "affine", "up to 128 ranks, and there are 129"),
    ],
)
def test_what_is_no_cost_is_refused(module: str, fabric: str, function: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        with_costs(opticoll.Fabric(fabric), f"{module}:{function}")
    assert words in str(caught.value)


@pytest.mark.parametrize("command", ["plan", "simulate", "bound", "compare"])
def test_commands_take_the_costs(run: Run, module: str, command: str) -> None:
    asked = [command, "broadcast", "--fabric", "crossbar:ranks=2", "--size", "1MiB"]
    row = answer(run, *asked, "--cost", f"{module}:affine")
    rows = row if isinstance(row, list) else row.get("bounds", [row])
    times = [one["time_s"] for one in rows]
    assert times[0] == pytest.approx(2e-6 + MEBIBYTE / 10e9, rel=0.03)


def test_a_study_varies_the_costs(module: str, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(f"""
study: costs
command: simulate
options: {{collective: broadcast, size: 1MiB, fabric: "crossbar:ranks=2"}}
grid: {{cost: ["{module}:affine,rate=1", "{module}:affine,rate=2"]}}
""")
    assert opticoll.sweep(tmp_path / "study.yaml", jobs=1).computed == 2
    rows = opticoll.results(tmp_path / "study.sqlite")
    times = [2e-6 + MEBIBYTE / rate / 1e9 for rate in (1, 2)]
    assert [row["time_s"] for row in rows] == pytest.approx(times)
    assert opticoll.sweep(tmp_path / "study.yaml", jobs=1).computed == 0
    path = tmp_path / f"{module}.py"
    path.write_text(path.read_text() + "\n")
    assert opticoll.sweep(tmp_path / "study.yaml", jobs=1).computed == 2


def test_costs_need_a_fabric(run: Run, module: str) -> None:
    result = run("plan", "broadcast", "--cost", f"{module}:affine")
    assert result.code == 2
    assert "--cost goes with --fabric" in result.err
