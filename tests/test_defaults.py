"""Choices of the shortest commands: `auto`, for their own size and settings."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path

import pytest

import opticoll
from opticoll import errors
from opticoll.names import algorithm_names, known_names
from support import Run, proved, some_of
from test_cli import run_json

RING = "wdm_ring:ranks=64,wavelengths=8"
TREE = "fat_tree:down=4x4,up=1x2,rate=100Gb/s,latency=1us"
LADDER = "wdm_ladder:rungs=4,hosts=2,wavelengths=4,rate=10Gb/s"

FABRICS = {
    "ring": "wdm_ring:ranks=16,wavelengths=2",
    "fast ring": "wdm_ring:ranks=64,wavelengths=8,reconfiguration=1us",
    "light trees": "wdm_ring:ranks=12,wavelengths=4,multicast=drop_and_continue",
    "broken ring": "wdm_ring:ranks=12,wavelengths=4,broken=3-4",
    "few ports": "wdm_ring:ranks=10,wavelengths=4,ports=3",
    "dead wavelength": "wdm_ring:ranks=9,wavelengths=3,dead=1",
    "crossbar": "crossbar:ranks=12,rate=100Gb/s,latency=1us",
    "dragonfly": "dragonfly:terminals_per_router=2,routers_per_group=2,global_per_router=1",
    "grid": "wss_grid:rows=3,columns=4,control=1us",
    "light paths": "lightpath_grid:ranks=9,ports=2",
}
KINDS = known_names("collectives")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FABRICS)
def test_what_auto_shows_can_be_named_and_takes_the_time_shown(name: str, kind: str) -> None:
    fabric = opticoll.Fabric(FABRICS[name])
    policies: list[dict[str, str]] = (
        [{}, {"policy": "on_change"}] if "direction" in fabric.light_fields else [{}]
    )
    for size, policy in some_of(product(("1MiB", "1KiB", "64MiB"), policies), 3):
        chosen = opticoll.plan(kind, fabric, size=size, **policy)  # type: ignore[arg-type]
        assert chosen.candidates
        assert chosen.candidates[0][0] == chosen.algorithm
        simulated = [one for one in chosen.candidates if not one[3]]
        for candidate, _, time_ps, _ in simulated:
            plan = opticoll.plan(kind, fabric, candidate, size=size, **policy)  # type: ignore[arg-type]
            assert plan.simulate(**policy).time_ps == time_ps, candidate  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_every_listed_name_is_known_and_named_where_one_is_not(kind: str) -> None:
    names = algorithm_names(kind)
    with pytest.raises(errors.AlgorithmError) as caught:
        opticoll.plan(kind, "crossbar:ranks=8", "zzzzzz")
    listed = str(caught.value).partition("known are ")[2].split(", ")
    assert sorted(listed) == sorted(names)
    for name in names:
        try:
            opticoll.plan(kind, FABRICS["dragonfly"], name)
        except errors.AlgorithmError as error:
            assert "unknown" not in str(error)  # noqa: PT017 (one that does not run here is fine)


def test_auto_is_always_compared_and_beats_no_one_it_could_have_chosen(
    run: Run, tmp_path: Path
) -> None:
    table, figure = tmp_path / "rows.csv", tmp_path / "rows.svg"
    options = ["all_gather", "--fabric", RING, "--size", "1KiB", "--algorithms", "ring,optree"]
    finished = run("compare", *options, "--csv", table, "--figure", figure)
    chosen = opticoll.plan("all_gather", RING, size="1KiB").algorithm
    assert f"auto chose {chosen}" in finished.out
    head, *lines = table.read_text().splitlines()
    column = head.split(",").index("algorithm")
    assert [line.split(",")[column] for line in lines] == ["ring", "optree", "auto"]
    assert "Auto: " in figure.read_text()
    rows = opticoll.compare("all_gather", RING, sizes="1KiB..1MiB").rows
    for size in {row["size_bytes"] for row in rows}:
        times = {row["algorithm"]: row["time_ps"] for row in rows if row["size_bytes"] == size}
        assert times["auto"] == min(times.values())


def test_plan_files_take_nothing_that_a_plan_is_chosen_for(run: Run, plan_file: Path) -> None:
    for options in (["--size", "1KiB"], ["--policy", "free"]):
        finished = run("verify", plan_file, *options)
        assert finished.code == 2
        assert f"{options[0]} only steers the choice of a plan" in finished.err
        assert f"leave {options[0]} out, or time the plan with `opticoll simulate" in finished.err


def test_several_fabrics_are_compared_each_with_its_own_settings(run: Run, tmp_path: Path) -> None:
    fabrics = ["--fabric", "crossbar:ranks=16,rate=100Gb/s", "--fabric", RING]
    options = ["all_reduce", *fabrics, "--size", "1MB", "--start", "step", "--policy", "on_change"]
    rows = run_json(run, "compare", "compare", *options)
    families = {row["fabric"].partition(":")[0]: row for row in rows if row["algorithm"] == "auto"}
    assert (families["crossbar"]["start"], families["crossbar"]["policy"]) == ("step", None)
    assert (families["wdm_ring"]["start"], families["wdm_ring"]["policy"]) == (None, "on_change")
    assert families["crossbar"]["injection_bandwidth"] == 100 * 10**9
    # Both ways around, eight wavelengths each.
    assert families["wdm_ring"]["injection_bandwidth"] == 2 * 8 * 40 * 10**9
    figure = tmp_path / "fabrics.svg"
    finished = run("compare", *options, "--figure", figure)
    assert finished.code == 0, finished.err
    assert figure.stat().st_size > 10_000
    assert (
        "differ in the bandwidth that a rank can inject, from 100 Gb/s to 640 Gb/s" in finished.out
    )
    one = run("compare", "all_reduce", "--fabric", RING, "--algorithms", "ring").out
    assert "differ in the bandwidth" not in one
    sizes = ["--sizes", "1KiB,1MB", "--figure", figure]
    assert run("compare", "all_reduce", *fabrics, *sizes).code == 0
    # A named algorithm must run on one of the fabrics.
    assert run("compare", "all_reduce", *fabrics, "--algorithms", "wrht").code == 0
    finished = run("compare", "all_reduce", *fabrics, "--algorithms", "neighbour_exchange")
    assert finished.code == 2


def test_scenarios_may_name_several_fabrics(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(
        f"collective: all_reduce\nfabric:\n  - {TREE}\n  - family: wdm_ring\n    ranks: 16\n"
        "    wavelengths: 2\nalgorithms: ring\nsizes: 1KiB\n"
    )
    rows = run_json(run, "compare", "compare", path)
    assert [(row["fabric"].partition(":")[0], row["algorithm"]) for row in rows] == [
        ("fat_tree", "ring"),
        ("fat_tree", "auto"),
        ("wdm_ring", "ring"),
        ("wdm_ring", "auto"),
    ]


def test_training_chooses_for_each_size_and_warns_of_memory(run: Run, tmp_path: Path) -> None:
    options = ["--model", "resnet50", "--batch", "32"]
    row = run_json(run, "train", "train", *options, "--fabric", RING)
    assert row["algorithm"] == "auto"
    for one in row["collectives"]:
        alone = opticoll.plan("all_reduce", RING, size=one["size_bytes"])
        assert one["algorithm"] == alone.algorithm
        assert one["time_s"] * 1e12 == pytest.approx(alone.simulate().time_ps)
    assert (row["warnings"], row["memory"]["fits"]) == ([], True)
    ring = run_json(run, "train", "train", *options, "--fabric", RING, "--algorithm", "ring")
    assert row["iteration_s"] < ring["iteration_s"]

    large = ["--model", "gpt3_175b", "--batch", "1", "--fabric", TREE, "--buckets", "all"]
    finished = run("train", *large, "--json")
    row = json.loads(finished.out)
    # 16 bytes for each of 175 billion parameters (ZeRO, section 3.1), and 34 s h bytes for each of
    # 96 layers (Korthikanti et al., equation 1, without the scores, on 2048 tokens of width 12288).
    states = 16 * row["parameters"]
    kept = row["memory"]["total_bytes"] - row["memory"]["working_bytes"]
    assert kept == states + 96 * 34 * 2048 * 12288
    assert row["memory"]["fits"] is False
    assert len(row["warnings"]) == 1
    assert finished.err.startswith("opticoll: warning: GPT-3 175B does not fit the device: ")
    assert run_json(run, "train", "train", *large, "--device-memory", "4TB")["warnings"] == []

    both = ["--fabric", RING, "--fabric", "crossbar:ranks=64,rate=100Gb/s"]
    table, figure = tmp_path / "training.csv", tmp_path / "training.svg"
    finished = run("train", *options, *both, "--csv", table, "--figure", figure, "--json")
    assert [one["fabric"].partition(":")[0] for one in json.loads(finished.out)] == [
        "wdm_ring",
        "crossbar",
    ]
    assert table.read_text().startswith("fabric,injection_bandwidth,bytes,")
    assert figure.stat().st_size > 5000
    assert "differ in the bandwidth that a rank can inject" in run("train", *options, *both).out


def test_congestion_takes_the_fastest_without_bursts(run: Run) -> None:
    settings = {"replications": "2", "ports": "2"}
    chosen = opticoll.congestion("all_reduce", LADDER, size=10**5, settings=settings)
    times = {}
    for name in algorithm_names("all_reduce"):
        if name != "auto":
            try:
                row = opticoll.congestion("all_reduce", LADDER, name, size=10**5, settings=settings)
            except errors.AlgorithmError:
                continue
            times[name] = row.time_s
    assert chosen.time_s == min(time for time in times.values() if time is not None)
    assert times[chosen.chosen] == chosen.time_s
    assert chosen.injection_bandwidth == 2 * 10 * 10**9
    options = ["--fabric", LADDER, "--size", "100kB", "--ports", "2", "--replications", "2"]
    finished = run("congestion", "all_reduce", *options)
    assert finished.code == 0
    assert chosen.chosen in finished.out


@pytest.mark.parametrize("asked", ["auto", "hierarchical", "relay_tree", "relay_tree:pieces=2"])
def test_replays_take_every_planner(run: Run, tmp_path: Path, asked: str) -> None:
    rows = "\n".join(f"{rank},Allreduce,,1600,1600,,0,,{rank}" for rank in range(16))
    path = tmp_path / "trace.csv"
    head = "rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns"
    path.write_text(f"# app=small ranks=16\n{head}\n{rows}\n")
    fabric = "wdm_ring:ranks=16,wavelengths=4"
    options = ["--fabric", fabric, "--collective", f"all_reduce={asked}"]
    row = run_json(run, "replay", "replay", path, *options)
    (used,) = row["collectives"]
    size = None if asked.startswith("relay_tree") else 1600
    assert (used["algorithm"], used["size_bytes"], used["ranks"]) == (asked, size, 16)
    plan = opticoll.plan("all_reduce", fabric, asked, size=1600)
    assert used["chosen"] == plan.algorithm
    assert row["injection_bandwidth"] == 2 * 4 * 40 * 10**9
    for network in ("zero", "hockney:latency=1us,rate=10Gb/s", "loggp:latency=1us,rate=10Gb/s"):
        assert run("replay", path, "--fabric", network, *options[2:]).code == 0
    assert run("replay", path, *options[2:]).code == 0
    default = run_json(run, "replay", "replay", path, "--fabric", fabric)
    assert default["collectives"][0]["algorithm"] == "auto"


@pytest.mark.parametrize("command", [["compare", "all_reduce"], ["train", "--model", "resnet50"]])
def test_fabrics_of_unequal_size_are_compared_with_a_warning(run: Run, command: list[str]) -> None:
    fabrics = ["--fabric", "wdm_ring:ranks=8,wavelengths=4"]
    fabrics += ["--fabric", "crossbar:ranks=4,rate=100Gb/s,latency=0s"]
    batch = ["--batch", "32"] if command[0] == "train" else []
    printed = run(*command, *batch, "--algorithm", "ring", *fabrics).out
    assert "differ in the number of ranks, from 4 to 8" in printed
    assert any(line.split()[:2] == ["fabric", "ranks"] for line in printed.splitlines())


@pytest.mark.parametrize(
    ("options", "stripes"),
    [
        ("dead=3", 7),
        ("dead=0+5", 6),
        ("fibres=2,dead=1.0+1.7", 14),
        ("broken=2-3", 8),
        ("broken=2-3cw", 8),
        ("converters=full", 8),
        ("converters=full,dead=2", 7),
        ("ports=3", 3),
        ("multicast=drop_and_continue", 8),
        ("reach=5,broken=0-1", 8),
    ],
)
def test_a_ring_is_striped_over_every_wavelength_that_can_be_used(
    options: str, stripes: int
) -> None:
    ring = f"wdm_ring:ranks=6,wavelengths=8,rate=8Gb/s,{options}"
    plan = opticoll.plan("all_gather", ring, "ring:stripes=all", size="840KB")
    proved(plan)
    # Five slots: a reconfiguration each, and the part of a block on one wavelength at 1 B/ns.
    assert plan.simulate("840KB").time_ps == 5 * (25_000_000 + 840_000_000 // stripes)
    with pytest.raises(errors.AlgorithmError, match=f"leave room for {stripes} stripes on"):
        opticoll.plan("all_gather", ring, f"ring:stripes={stripes + 1}", size="840KB")


def test_compare_says_what_is_not_striped_and_which_row_auto_is(run: Run) -> None:
    finished = run(
        "compare", "all_reduce", "--fabric", "wdm_ring:ranks=30,wavelengths=7", "--size", "25MB"
    )
    assert "left out: `double_binary_tree:stripes=all`: the plan without stripes uses" in (
        finished.err
    )
    assert re.search(r"^auto chose .* \(the (plan of|same steps and time as) ", finished.out, re.M)


def test_results_say_the_latency_that_the_fabric_says(run: Run) -> None:
    star, both = "crossbar:ranks=4,latency=1us", ["--fabric", "crossbar:ranks=4"]
    row = run_json(run, "plan", "plan", "all_reduce", "--fabric", star)
    # Up to the switch and down.
    assert (row["fabric_latency_s"], row["warnings"]) == (2e-6, [])
    both += ["--fabric", star]
    differ = "differ in latency, from 0 s to 2.000 us to the farthest rank"
    said = run("compare", "all_reduce", *both, "--algorithms", "ring").out
    assert differ in " ".join(said.split())
    said = run("train", "--model", "resnet50", "--batch", "32", *both, "--algorithm", "ring").out
    assert differ in " ".join(said.split())
    one = run("compare", "all_reduce", "--fabric", star, "--algorithms", "ring").out
    assert "differ in latency" not in one


def test_steps_without_latency_are_warned_of(run: Run) -> None:
    warning = "warning: crossbar states no latency, so many short steps take no longer"
    options = ["all_reduce", "--fabric", "crossbar:ranks=4", "--algorithm", "ring"]
    row = run_json(run, "plan", "plan", *options)
    assert row["steps"] == 6
    assert len(row["warnings"]) == 1
    assert warning in run("plan", *options).out
    assert warning in run("simulate", *options).out
    assert warning in run("compare", *options).out
    train = ["train", "--model", "resnet50", "--batch", "32", *options[1:]]
    assert warning in run(*train).err
    # One step is as long as its bytes take, and circuits take time to be set up.
    single = ["all_gather", "--fabric", "crossbar:ranks=4", "--algorithm", "direct:order=at_once"]
    assert run_json(run, "plan", "plan", *single)["warnings"] == []
    assert run_json(run, "plan", "plan", "all_gather", "--fabric", RING)["warnings"] == []


@pytest.mark.parametrize("broken", ["", ",broken=3-4"])
def test_a_plan_says_what_circuits_that_stay_up_would_take(run: Run, broken: str) -> None:
    fabric = f"wdm_ring:ranks=16,wavelengths=4{broken}"
    plan = ["all_reduce", "--fabric", fabric, "--size", "1MiB"]
    row = run_json(run, "plan", "plan", *plan)
    other = run_json(run, "plan", "plan", *plan, "--policy", "on_change")
    assert (row["policy"], row["on_change_time_s"]) == ("every_step", other["time_s"])
    assert row["on_change_algorithm"] == other["chosen"]
    assert (other["on_change_time_s"], other["on_change_algorithm"]) == (None, None)
    stated = run_json(run, "plan", "plan", *plan, "--policy", "every_step")
    assert stated["on_change_time_s"] == row["on_change_time_s"]
    assert row["time_s"] > 1.1 * row["on_change_time_s"]
    said = " ".join(run("plan", *plan).out.split())
    times = row["time_s"] / row["on_change_time_s"]
    assert f"(--policy on_change), {other['chosen']} takes" in said
    assert f"every_step takes {times:.3g} times as long" in said
    # A ring of named order has the same circuits in all of its 30 slots: 29 set-ups of 25 us fewer.
    ring = [*plan, "--algorithm", "ring"]
    row = run_json(run, "plan", "plan", *ring)
    assert row["steps"] == 30
    assert row["on_change_algorithm"] == "ring"
    assert row["time_s"] - row["on_change_time_s"] == pytest.approx(29 * 25e-6)
    # One slot is set up once under both.
    single = ["all_gather", "--fabric", "wdm_ring:ranks=4,wavelengths=4", "--algorithm"]
    assert "stay up" not in run("plan", *single, "one_stage").out
    assert run_json(run, "plan", "plan", "all_reduce", "--fabric", TREE)["on_change_time_s"] is None


@pytest.mark.parametrize("algorithm", ["ring", "double_binary_tree"])
def test_auto_considers_channels_where_servers_have_several_interfaces(algorithm: str) -> None:
    def considered(fabric: str) -> bool:
        plan = opticoll.plan("all_reduce", fabric, size="1GiB")
        return f"{algorithm}:channels=all" in [name for name, *_ in plan.candidates]

    assert considered("dgx_a100:boxes=2")
    # There a rank has one link, and one server is left by none.
    assert not considered("crossbar:ranks=16")
    assert not considered("dgx_a100")
