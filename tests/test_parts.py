"""Parts of fabrics: planned around what is broken, and among ranks that take part.

Optima by hand: the ranks of a set X receive the blocks of all ranks outside over the links into X.
"""

import json
from fractions import Fraction
from pathlib import Path

import pytest

import opticoll
from opticoll import Fabric
from opticoll.cli.main import main
from opticoll.commands import replan
from opticoll.inputs import imported
from opticoll.outputs.optimum import optimum
from support import Run, answer, proved, some_of

OPTIMA = [
    # Rank 1 has three links left of 100 Gb/s: 15 blocks of 8 Gb over 300 Gb/s.
    ("torus:dims=4x4", "0>1", None, Fraction(15 * 8, 300)),
    # Rank 5 has left: its neighbours have three links left, and 14 blocks to receive.
    ("torus:dims=4x4", "rank 5", None, Fraction(14 * 8, 300)),
    # Rank 3 receives 15 blocks over NVSwitch alone; its box has 8 over 7 NICs of 25 GB/s.
    ("dgx_a100:boxes=2", "NIC of rank 3", None, max(Fraction(15, 300), Fraction(8, 175))),
    # Half the network: NICs 1, 3, 5, 7 of a box are dead with their switch.
    ("dgx_a100:boxes=2", "network switch 1", None, max(Fraction(15, 300), Fraction(8, 100))),
    # 8 + 8 + 4 ranks: the box of four needs 16 blocks over its 8 NICs of 25 GB/s, those of the four
    # ranks that take no part among them.
    ("dgx_a100:boxes=3", None, "0-15+16-19", Fraction(16, 200)),
    # On a ring of six, ranks 0, 2 and 4 take part; over each way of a member comes one block.
    ("electrical_ring:ranks=6", None, "0+2+4", Fraction(2 * 8, 200)),
]


@pytest.mark.parametrize(("spec", "without", "members", "seconds"), OPTIMA)
def test_the_optimum_of_a_part_is_that_of_its_tightest_cut(
    spec: str, without: str | None, members: str | None, seconds: Fraction
) -> None:
    parts = {"without": without, "members": members}
    fabric = Fabric(spec, **{name: value for name, value in parts.items() if value})
    assert optimum("all_gather", fabric) == (seconds, seconds)


COLLECTIVES = ["all_gather", "reduce_scatter", "all_reduce", "broadcast", "all_to_all", "scatter"]


@pytest.mark.parametrize("kind", COLLECTIVES)
@pytest.mark.parametrize(("spec", "without", "members", "seconds"), OPTIMA)
def test_plans_of_parts_pass_both_verifiers(
    kind: str, spec: str, without: str | None, members: str | None, seconds: Fraction
) -> None:
    parts = {"without": without, "members": members}
    given = {name: value for name, value in parts.items() if value}
    plan = opticoll.plan(kind, Fabric(spec, latency="500ns", **given), size="64KiB")
    proved(plan)
    assert opticoll.Plan.from_text(plan.to_text()) == plan
    if kind == "all_gather":
        assert plan.simulate("64KiB").time_ps >= seconds * 65536 * 1000


def test_the_command_line_names_what_is_broken(capsys: pytest.CaptureFixture[str]) -> None:
    line = "bound all_gather --fabric dgx_a100:boxes=2 --without"
    asked = [*line.split(), "NIC of rank 3", "--json"]
    assert main(asked) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["optimum"], row["intact_lower_bound"]) == ("1/20", "3/65")
    assert row["fabric"].endswith("without=21")
    # The row's command line names the part as an option of the fabric.
    assert main([*row["command"].split()[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == row
    assert main(asked[:-1]) == 0
    text = capsys.readouterr().out
    optimum = "optimum: 1/20 s (50.00 ms) for a block of 1 GB"
    assert f"{optimum}; 3/65 s (46.15 ms) with nothing broken" in text


def test_what_breaks_later_is_added(capsys: pytest.CaptureFixture[str]) -> None:
    fabric = "torus:dims=4x4,without=0>1"
    asked = ["plan", "all_gather", "--fabric", fabric, "--without", "5", "--members", "0-14"]
    assert main([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fabric"].endswith("without=0>1+5,members=0-14")
    assert main([*asked, "--without", "rank 99"]) == 2
    assert "there is no `rank 99`" in capsys.readouterr().err
    assert main(["bound", "all_gather", "--without", "3"]) == 2
    assert "--without goes with --fabric" in capsys.readouterr().err


def test_plans_are_made_anew_on_what_is_left() -> None:
    plan = opticoll.plan("broadcast", "torus:dims=4x4", size="1MiB", root=6)
    row = opticoll.replan(plan, "without=rank 5", algorithm="auto")
    assert row.violations == []
    assert row.ranks == 15
    # Rank 6 is number 5 of those that are left.
    assert row.root == 5
    assert row.slowdown >= 1
    with pytest.raises(opticoll.OpticollError, match="the root, node 6, has left"):
        opticoll.replan(plan, "without=6", algorithm="auto")


def test_a_name_alone_says_what_failed() -> None:
    plan = opticoll.plan("all_gather", "dgx_a100:boxes=2", "tree_packing:trees=1", size="1MiB")
    named, spelled = (opticoll.replan(plan, f"{key}NIC of rank 3") for key in ("", "without="))
    assert named.fabric == spelled.fabric
    assert named.fabric.endswith("without=21")
    assert named.chosen != plan.algorithm
    for spec, slower in (
        ("circuit_switch:ranks=4,ports=2", "1.1@9Gb/s"),
        ("wss_grid:rows=2,columns=2", "1.row@9Gb/s"),
    ):
        row = opticoll.replan(opticoll.plan("all_gather", spec, size="1MiB"), slower)
        assert (row.violations, row.fabric) == ([], Fabric(spec, degraded=slower).spec)
    # Ranks that are left are named anew, by their numbers in the whole fabric.
    members = opticoll.replan(plan, "members=0-11")
    assert (members.ranks, members.fabric[-12:]) == (12, "members=0-11")
    again = opticoll.replan(members.plan, "members=0-7")
    assert (again.ranks, again.fabric[-11:]) == (8, "members=0-7")


def test_ranks_that_are_cut_off_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["plan", "all_gather", "--fabric", "mesh:dims=4x1", "--without", "rank 1 <-> rank 2"]
    assert main(asked) == 2
    assert "no links lead from rank 0 to rank 2, rank 3" in capsys.readouterr().err


RING_COLLECTIVES = [*COLLECTIVES, "gather", "reduce"]

SLOWER = [
    # Rank 1 receives 15 blocks of 8 Gb over three links of 100 Gb/s and one of 25.
    ("torus:dims=4x4", "0>1@25Gb/s", Fraction(15 * 8, 325)),
    ("torus:dims=4x4", "rank 0 <-> rank 1@25Gb/s", Fraction(15 * 8, 325)),
    # All links of rank 3 are slower.
    ("torus:dims=4x4", "rank 3@40Gb/s", Fraction(15 * 8, 160)),
    # Rank 3 receives at 300 GB/s over NVSwitch and 12.5 over its NIC; its box has 7 others of 25.
    ("dgx_a100:boxes=2", "NIC of rank 3@100Gb/s", max(Fraction(150, 3125), Fraction(80, 1875))),
    ("electrical_ring:ranks=6", "2-3@1Gb/s+2-3@50Gb/s", Fraction(5 * 8, 101)),
]


@pytest.mark.parametrize(("spec", "degraded", "seconds"), SLOWER)
def test_the_optimum_knows_what_is_slower(spec: str, degraded: str, seconds: Fraction) -> None:
    fabric = Fabric(spec, degraded=degraded)
    assert Fabric(fabric.spec) == fabric
    assert fabric.intact == Fabric(spec)
    assert optimum("all_gather", fabric) == (seconds, seconds)
    plan = opticoll.plan("all_gather", fabric, size="64KiB")
    assert plan.verify() == []
    assert plan.simulate("64KiB").time_ps >= seconds * 65536 * 1000
    row = opticoll.replan(opticoll.plan("all_gather", spec, size="64KiB"), degraded)
    assert (row.fabric, row.violations) == (fabric.spec, [])


def by_hand(fabric: str, steps: str, slots: str) -> opticoll.Plan:
    return opticoll.Plan.from_text(
        f"opticoll plan 1\ncollective broadcast ranks=4 root=0 pieces=1\nfabric {fabric}\n"
        f"algorithm by hand\nsteps {steps}\n{slots}\nend {slots.count('copy')}\n"
    )


def test_a_lightpath_has_the_rate_of_its_slowest_part() -> None:
    ring = "wdm_ring:ranks=4,wavelengths=2,rate=8Gb/s,degraded=1>2@2Gb/s+w1@4Gb/s"
    slots = "slot 0\ncopy 0 0>1 cw 0.0\nslot 1\ncopy 0 0>3 ccw 0.1\nslot 2\ncopy 0 1>2 cw 0.1"
    plan = by_hand(ring, "1 1 1", slots)
    proved(plan)
    # 1,000 bytes at 8, 4 and 2 Gb/s; counter-clockwise no link is slower.
    times = [1_000_000, 2_000_000, 4_000_000]
    assert plan.simulate("1000B", policy="free").time_ps == sum(times)
    back = by_hand(ring, "1", "slot 0\ncopy 0 0>2 ccw 0.0\ncopy 0 0>1 cw 0.0\ncopy 0 0>3 ccw 0.1")
    assert back.simulate("1000B", policy="free").time_ps == 2_000_000
    some = by_hand(
        "wdm_ring:ranks=8,wavelengths=1,rate=8Gb/s,members=0+1+3+4,degraded=1>2@2Gb/s",
        "1 1",
        "slot 0\ncopy 0 0>1 cw 0.0\nslot 1\ncopy 0 1>2 cw 0.0",
    )
    # From node 1 to node 3, over the link from 1 to 2.
    assert some.simulate("1000B", policy="free").time_ps == 1_000_000 + 4_000_000


@pytest.mark.parametrize("kind", ["all_gather", "all_reduce", "broadcast"])
@pytest.mark.parametrize("policy", ["every_step", "per_port"])
@pytest.mark.parametrize(
    ("degraded", "slowest", "broken"),
    [
        ("w1@39Gb/s", 39, {"dead": "1"}),
        ("w1@1Gb/s", 1, {"dead": "1"}),
        ("2>3@30Gb/s", 30, {"broken": "2-3cw"}),
        ("2-3@2Gb/s+w0@1Gb/s", 1, {"broken": "2-3", "dead": "0"}),
    ],
)
def test_what_is_slower_is_used_or_left_out(
    kind: str, policy: str, degraded: str, slowest: int, broken: dict[str, str]
) -> None:
    whole = Fabric("wdm_ring:ranks=6,wavelengths=4")
    fabrics = [whole, whole.with_options(degraded=degraded), whole.with_options(**broken)]
    plans = [opticoll.plan(kind, one, size="64KiB", policy=policy) for one in fabrics]
    assert plans[1].verify() == []
    full, time, without = (plan.simulate("64KiB", policy=policy).time_ps for plan in plans)
    # The extra time is at most 40 Gb/s over the lowest rate, rounded up.
    assert time <= without
    assert time * slowest <= (full + 1000) * 40


def test_a_circuit_has_the_rate_of_its_slower_port() -> None:
    switch = "circuit_switch:ranks=4,ports=2,rate=8Gb/s,degraded=1.0@2Gb/s+2.1@4Gb/s+1.0@3Gb/s"
    slots = "slot 0\ncopy 0 0>1 0.0\nslot 1\ncopy 0 0>2 1.1\nslot 2\ncopy 0 1>3 1.1"
    plan = by_hand(switch, "1 1 1", slots)
    proved(plan)
    assert Fabric(plan.fabric.spec) == plan.fabric
    # 1,000 bytes at 2 Gb/s, into the slower port, then at 4 and 8 Gb/s.
    assert plan.simulate("1000B", policy="free").time_ps == 4_000_000 + 2_000_000 + 1_000_000


@pytest.mark.parametrize("simulator", ["circuit", "control"])
def test_light_has_the_rate_of_its_slower_transceiver(simulator: str) -> None:
    grid = (
        "wss_grid:rows=2,columns=2,rate=8Gb/s,tuning=0s,slow_switch=0s,"
        "degraded=1.row@2Gb/s+2.row@4Gb/s+2.column@1Gb/s"
    )
    slots = "slot 0\ncopy 0 0>1 row.0\nslot 1\ncopy 0 1>3 column.0\nslot 2\ncopy 0 3>2 row.0"
    plan = by_hand(grid, "1 1 1", slots)
    proved(plan)
    # 1,000 bytes at 2, 8 and 4 Gb/s.
    policy = "two_tier" if simulator == "control" else "every_step"
    outcome = plan.simulate("1000B", simulator=simulator, policy=policy)
    assert outcome.time_ps == 4_000_000 + 1_000_000 + 2_000_000


@pytest.mark.parametrize("kind", ["all_gather", "all_reduce", "all_to_all", "broadcast"])
@pytest.mark.parametrize(
    ("spec", "degraded", "broken"),
    [
        ("circuit_switch:ranks=6,ports=3,latency=1us", "2.0@{}Gb/s", {"dead_ports": "2.0"}),
        (
            "circuit_switch:ranks=6,ports=2,planes=2,rate=100Gb/s,startup=1us",
            "2.0@{0}Gb/s+4.1@{0}Gb/s",
            {"dead_ports": "2.0+4.1"},
        ),
        ("wss_grid:rows=3,columns=3", "4.row@{}Gb/s", {"dead_transceivers": "4.row"}),
    ],
)
@pytest.mark.parametrize("slowest", [60, 1])
def test_slower_ports_are_used_or_left_out(
    kind: str, spec: str, degraded: str, broken: dict[str, str], slowest: int
) -> None:
    whole = Fabric(spec)
    slower = whole.with_options(degraded=degraded.format(slowest))
    plans = [
        opticoll.plan(kind, one, size="16KiB")
        for one in (whole, slower, whole.with_options(**broken))
    ]
    proved(plans[1])
    full, time, without = (plan.simulate("16KiB").time_ps for plan in plans)
    rate = 800 if "latency" in spec else 100
    assert time <= without
    assert time * slowest <= (full + 1000) * rate
    _, bounds = opticoll._core.time_bounds(kind, slower, 2**14, 0, None, None, None)
    assert all(time >= bound[0] for bound in bounds)


def test_the_bound_of_a_rank_counts_its_slower_ports() -> None:
    # Rank 3 receives seven blocks of 1,000 bytes over ports of 8 and 2 Gb/s, which are 10 Gb/s.
    fabric = Fabric(
        "circuit_switch:ranks=8,ports=2,rate=8Gb/s,reconfiguration=0s,degraded=3.1@2Gb/s"
    )
    _, bounds = opticoll._core.time_bounds("all_gather", fabric, 1000, 0, "free", None, None)
    assert max(bound[0] for bound in bounds) == 7000 * 1000 * 8 // 10


EVERY_STEP_PS = 25_000_000


@pytest.mark.parametrize("kind", RING_COLLECTIVES)
@pytest.mark.parametrize("part", ["members=0+4+8+12+13", "members=1-6,without=3", "without=5+9"])
def test_ranks_of_a_ring_of_light_plan_as_a_ring_of_as_many(kind: str, part: str) -> None:
    some = Fabric(f"wdm_ring:ranks=16,wavelengths=4,{part}")
    alone = Fabric("wdm_ring:wavelengths=4", ranks=some.ranks)
    plans = [opticoll.plan(kind, fabric, size="256KiB") for fabric in (some, alone)]
    proved(plans[0])
    assert opticoll.Plan.from_text(plans[0].to_text()) == plans[0]
    times = {plan.simulate("256KiB").time_ps for plan in plans}
    assert (len(times), plans[0].algorithm) == (1, plans[1].algorithm)


def test_light_takes_its_time_over_every_link_between_nodes() -> None:
    fabric = Fabric("wdm_ring:ranks=16,wavelengths=1,rate=8Gb/s,propagation=1us,members=0+1+3+7")
    plan = opticoll.plan("all_gather", fabric, "ring", size="1000B")
    proved(plan)
    # Three slots of 1 us for the bytes; the longest lightpath leads from node 7 to node 16.
    assert plan.simulate("1000B").time_ps == 3 * (EVERY_STEP_PS + 1_000_000 + 9_000_000)


@pytest.mark.parametrize("kind", RING_COLLECTIVES)
@pytest.mark.parametrize(
    "part",
    [
        "members=0+1+3+4+6+9,reach=4,propagation=200ns",
        "members=0+2+4+6+8+10,reach=4",
        "without=5,reach=1",
        "members=0+3+5+8,broken=1-2,multicast=drop_and_continue",
        "without=2+7,launch_power=0dBm,sensitivity=-20dBm,through_loss=1dB,converters=full",
    ],
)
def test_plans_on_some_ranks_of_a_ring_of_light_keep_to_its_limits(kind: str, part: str) -> None:
    fabric = Fabric(f"wdm_ring:ranks=12,wavelengths=4,{part}")
    plan = opticoll.plan(kind, fabric, size="64KiB")
    proved(plan)
    _, bounds = opticoll._core.time_bounds(kind, fabric, 65536, 0, None, None, None)
    assert all(plan.simulate("64KiB").time_ps >= bound[0] for bound in bounds)


def test_a_rank_of_a_ring_of_light_fails() -> None:
    plan = opticoll.plan("broadcast", "wdm_ring:ranks=8,wavelengths=2", size="1MiB", root=6)
    row = opticoll.replan(plan, "rank 5", algorithm="auto")
    assert (row.violations, row.ranks, row.root) == ([], 7, 5)
    assert row.fabric.endswith("without=5")
    cut = opticoll.replan(row.plan, "3>4", algorithm="auto")
    assert cut.violations == []
    assert cut.fabric.endswith("broken=3-4cw,without=5")
    with pytest.raises(opticoll.OpticollError, match="the root, node 6, has left"):
        opticoll.replan(plan, "6", algorithm="auto")
    assert opticoll.Fabric(row.fabric).intact == plan.fabric


def test_a_port_of_a_circuit_switch_fails() -> None:
    plan = opticoll.plan("all_gather", "circuit_switch:ranks=4,ports=2", size="1MiB")
    row = opticoll.replan(plan, "dead_ports=1.0", algorithm="auto")
    assert (row.violations, row.slowdown >= 1) == ([], True)


def test_an_old_plan_is_timed_and_verified_on_a_degraded_fabric(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "old.plan"
    ring = "wdm_ring:ranks=8,wavelengths=2"
    plan = opticoll.plan("all_gather", ring, "ring:stripes=2", size="1MiB")
    opticoll.write_plan(plan, path)
    on_dead = int((plan.columns()["wavelength"] == 1).sum())
    refuted = run("verify", path, "--fabric", f"{ring},dead=1", "--json")
    assert refuted.code == 1
    assert json.loads(refuted.out)["violations"][0]["kind"] == "dead_wavelength"
    assert len(json.loads(refuted.out)["violations"]) == on_dead > 0
    assert "was planned for wdm_ring:ranks=8,wavelengths=2," in refuted.err
    path = tmp_path / "wires.plan"
    wires = "electrical_ring:ranks=6,latency=1ms"
    opticoll.write_plan(opticoll.plan("all_gather", wires, "ring", size="1MiB"), path)
    times = []
    for fabric in (wires, f"{wires},rate=50Gb/s", f"{wires},without=0>1"):
        row = answer(run, "simulate", path, "--fabric", fabric, "--start", "step")
        times.append(row["time_s"])
    # Five steps of a block each; the message from rank 0 to 1 goes five links the other way round.
    sending = 5 * 2**20 * 8 / 100e9
    expected = [5e-3 + sending, 5e-3 + 2 * sending, 25e-3 + sending]
    assert times == pytest.approx(expected)


def test_routes_of_an_old_plan_keep_their_links(run: Run, tmp_path: Path) -> None:
    fabric = "custom:ranks=2,switches=2,links=0-2+1-2+0-3+1-3"
    text = (
        "opticoll plan 1\ncollective broadcast ranks=2 root=0 pieces=1\n"
        f"fabric {Fabric(fabric).spec}\nalgorithm by hand\nsteps 1\nslot 0\n"
        "copy 0 0>1 via 4.7\nend 1\n"
    )
    path = tmp_path / "old.plan"
    path.write_text(text)
    # Without the link 0>2 all numbers behind it are one lower.
    assert run("verify", path, "--fabric", fabric, "--format", "plan").code == 0
    degraded = run("verify", path, "--fabric", f"{fabric},without=2>0")
    assert (degraded.code, degraded.err.count("error")) == (0, 0)
    gone = run("verify", path, "--fabric", f"{fabric},without=0>3")
    assert gone.code == 2
    assert "sends over rank 0 -> switch 1" in gone.err


LEAVES = "fat_tree:down=4x4,up=1x2,latency=500ns"


SLOWER_THAN_WITHOUT = [
    (LEAVES, "16-20@{}Gb/s", "16-20"),
    ("torus:dims=4x4,latency=1us", "0-1@{}Gb/s", "0-1"),
    ("dgx_a100:boxes=2", "NIC of rank 3@{}Gb/s", "NIC of rank 3"),
]


@pytest.mark.parametrize(
    ("collective", "spec", "degraded", "without"),
    some_of(
        [
            (kind, *one)
            for kind in ("all_reduce", "all_gather", "broadcast")
            for one in SLOWER_THAN_WITHOUT
        ],
        2,
    ),
)
def test_a_slower_link_is_never_worse_than_none_nor_a_plan_than_the_old_one(
    tmp_path: Path, collective: str, spec: str, degraded: str, without: str
) -> None:
    size = 1 << 20
    path = tmp_path / "old.plan"
    opticoll.write_plan(opticoll.plan(collective, spec, size=size), path)
    gone = opticoll.plan(collective, Fabric(spec, without=without), size=size)
    most = gone.simulate(size).time_ps
    for rate in some_of((25, 1, 75), 3):
        fabric = Fabric(spec, degraded=degraded.format(rate))
        plan = opticoll.plan(collective, fabric, size=size)
        assert not plan.verify()
        time_ps = plan.simulate(size).time_ps
        assert time_ps <= most
        old, _ = imported.read_plan(path, fabric=fabric)
        assert time_ps <= old.simulate(size).time_ps


def test_an_algorithm_of_a_whole_fabric_runs_by_name_where_a_link_is_slower() -> None:
    slower = Fabric("dgx_a100:boxes=2", degraded="NIC of rank 3@100Gb/s")
    plan = opticoll.plan("all_reduce", slower, "rails:minimize=steps", size="16KiB")
    whole = opticoll.plan("all_reduce", "dgx_a100:boxes=2", "rails:minimize=steps", size="16KiB")
    assert not plan.verify()
    assert plan.simulate().time_ps > whole.simulate().time_ps


def test_several_failures_are_a_list() -> None:
    plan = opticoll.plan("all_gather", "torus:dims=4x4", "ring", size="1MiB")
    several = opticoll.replan(plan, ["rank 5", "0-1@50Gb/s", "rank 6"])
    assert several.fabric.endswith("without=5+6,degraded=0-1@50Gb/s")
    asked = ["replan", "all_gather", "--fabric", "torus:dims=4x4", "--json"]
    assert main([*asked, "--failed", "rank 5", "--failed", "rank 6"]) == 0


def test_a_failure_is_checked_before_a_plan_is_made(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(replan, "obtain")
    for failed in ("switch 0", "switch 0@1Gb/s"):
        asked = ["replan", "all_gather", "--fabric", "torus:dims=4x4", "--failed", failed]
        assert main(asked) == 2
        assert "there is no `switch 0`" in capsys.readouterr().err


def test_parts_of_a_plan_file_are_those_of_its_fabric(
    capsys: pytest.CaptureFixture[str], plan_file: Path
) -> None:
    assert main(["verify", str(plan_file), "--without", "3>4"]) == 1
    assert "broken" in capsys.readouterr().out


def test_replan_says_what_the_old_plan_takes_on_what_is_left() -> None:
    plan = opticoll.plan("all_gather", "electrical_ring:ranks=4,rate=8Gb/s", "ring", size="1MB")
    # Three steps of a block each; half the rate takes twice as long.
    slower = opticoll.replan(plan, "0>1@4Gb/s")
    assert plan.simulate().time_ps == 3 * 10**9
    assert slower.old_plan_time_s == pytest.approx(6e-3)
    assert opticoll.replan(plan, "rank 3").old_plan_time_s is None


@pytest.mark.parametrize("collective", ["all_gather", "all_reduce"])
def test_a_nic_that_still_receives_is_no_worse_than_one_that_is_broken(collective: str) -> None:
    times = []
    for broken in ("rank 3 -> NIC of rank 3", "NIC of rank 3"):
        fabric = opticoll.Fabric(f"dgx_h100:boxes=2,without={broken}")
        plan = opticoll.plan(collective, fabric, size="64MiB")
        assert plan.verify() == []
        times.append(plan.simulate("64MiB").time_ps)
    assert times[0] <= times[1]
