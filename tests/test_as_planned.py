"""Collectives inside programs are carried out as they are planned."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import opticoll
from opticoll import Fabric, Trace, errors
from opticoll.commands.train import Train
from opticoll.commands.train.groups import why_alone
from opticoll.inputs.settings import Settings
from support import Run

CALLS = {
    "all_reduce": "Allreduce",
    "all_gather": "Allgather",
    "all_to_all": "Alltoall",
    "reduce_scatter": "Reduce_scatter",
    "broadcast": "Bcast",
    "gather": "Gather",
}
ROOTED = ("broadcast", "gather")
RING = "wdm_ring:ranks=8,wavelengths=4,rate=25Gb/s,reconfiguration=10us"


def program(
    collective: str, ranks: int, size: int, groups: Mapping[int, Sequence[int]] | None = None
) -> Trace:
    """Returns a trace in which every group of ranks executes a collective once."""
    groups = groups or {0: range(ranks)}
    lines = [f"# app=one ranks={ranks}"]
    lines += [
        f"# comm {number} = {' '.join(map(str, members))}"
        for number, members in groups.items()
        if number
    ]
    lines.append("rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns")
    for number, members in groups.items():
        root = members[0] if collective in ROOTED else ""
        lines += [
            f"{rank},{CALLS[collective]},{root},{size},{size},,{number},,0" for rank in members
        ]
    return opticoll.read_trace("\n".join([*lines, ""]).encode())


@pytest.mark.parametrize("collective", CALLS)
@pytest.mark.parametrize(
    "fabric",
    [
        RING,
        RING + ",broken=1-2",
        RING + ",multicast=drop_and_continue",
        "wdm_ring:ranks=9,wavelengths=3,rate=25Gb/s,members=0+2+3+7",
    ],
)
def test_a_collective_on_light_takes_the_time_of_its_plan(fabric: str, collective: str) -> None:
    ranks = Fabric(fabric).ranks
    for size in (1000, 1 << 20):
        row = opticoll.replay(program(collective, ranks, size), fabric)
        (chosen,) = row.collectives
        plan = opticoll.plan(collective, fabric, size=chosen.size_bytes)
        assert not plan.verify()
        assert row.time_ps == plan.simulate(chosen.size_bytes).time_ps


@pytest.mark.parametrize("ending", ["goal", "tit", "et"])
@pytest.mark.parametrize(
    "fabric",
    [
        RING,
        "torus:dims=4x2,rate=100Gb/s,latency=1us",
        "circuit_switch:ranks=8,ports=2",
        "lightpath_grid:ranks=8,ports=2",
        "passive_star:ranks=8,wavelengths=4",
        "wss_grid:rows=2,columns=4",
    ],
)
@pytest.mark.parametrize("collective", ["all_reduce", "all_to_all"])
def test_an_exported_plan_is_replayed_as_planned(
    tmp_path: Path, fabric: str, collective: str, ending: str
) -> None:
    size = 3 << 20
    plan = opticoll.plan(collective, fabric, size=size)
    path = plan.export(tmp_path / f"one.{ending}", size=size)[0]
    row = opticoll.replay(path, fabric)
    assert row.time_ps == plan.simulate(size).time_ps
    assert "plan" in row.transport
    assert row.collectives[0].chosen == plan.algorithm
    # The plan counts on its own fabric only.
    elsewhere = opticoll.replay(path, "hockney:latency=1us,rate=10Gb/s")
    assert elsewhere.transport == "message by message"


def test_a_trace_that_was_changed_is_replayed_message_by_message(tmp_path: Path) -> None:
    plan = opticoll.plan("all_reduce", RING, size="1MiB")
    path = plan.export(tmp_path / "one.goal")[0]
    path.write_text(path.read_text().replace("calc 0", "calc 7"))
    row = opticoll.replay(path, RING)
    assert row.time_ps != plan.simulate().time_ps
    assert row.transport == "each message by a lightpath of one wavelength"


@pytest.mark.parametrize("collective", CALLS)
@pytest.mark.parametrize(
    "fabric",
    [
        "torus:dims=4x2,latency=500ns",
        "dgx_a100:boxes=2,library=none",
        "fat_tree:down=4x2,up=1x2",
    ],
)
def test_plans_that_name_routes_are_carried_out_by_them(fabric: str, collective: str) -> None:
    size = 1 << 20
    row = opticoll.replay(program(collective, Fabric(fabric).ranks, size), fabric)
    plan = opticoll.plan(collective, fabric, size=row.collectives[0].size_bytes)
    assert plan.algorithm == row.collectives[0].chosen
    assert row.time_ps == plan.simulate(row.collectives[0].size_bytes).time_ps


def test_times_without_the_costs_of_a_library_say_so(tmp_path: Path) -> None:
    fabric = "dgx_a100:boxes=2"
    size = 1 << 20
    plan = opticoll.plan("all_reduce", fabric, size=size)
    whole = plan.simulate(size).time_ps
    # The plan of an exported trace is one call, which has the costs.
    exported = opticoll.replay(plan.export(tmp_path / "one.goal")[0], fabric)
    assert (exported.time_ps, exported.warnings) == (whole, [])
    # Messages of a program and flows of a plan do not have them.
    replayed = opticoll.replay(program("all_reduce", 16, size), fabric)
    assert replayed.collectives[0].chosen == plan.algorithm
    flows = opticoll.measure(plan, size, simulator="fluid")
    grouped = opticoll.train("bert_large", fabric, batch=4, device="a100", tensor_parallel=2)
    for row in (replayed, flows, grouped):
        (warning,) = row.warnings
        assert "times by fluid are without the costs of the library a100_sxm" in warning
    assert max(replayed.time_ps, flows.time_ps) < whole
    without = opticoll.replay(program("all_reduce", 16, size), f"{fabric},library=none")
    assert without.warnings == []
    # If groups are timed alone, their calls have the costs.
    alone = opticoll.train(
        "bert_large", fabric, batch=4, device="a100", tensor_parallel=2, contention="none"
    )
    assert (alone.simulator, alone.warnings) == ("bulk_synchronous", [])


TORUS = "torus:dims=4x4,rate=100Gb/s,latency=1us"


@pytest.mark.parametrize(
    ("collective", "algorithm"),
    [
        ("all_reduce", "auto"),
        ("all_reduce", "halving_doubling"),
        ("all_gather", "auto"),
        ("all_gather", "ring"),
        ("all_to_all", "auto"),
        ("all_to_all", "direct"),
    ],
)
@pytest.mark.parametrize("members", [(0, 1, 2, 3), (0, 5, 10, 15), (0, 2, 8, 10)])
def test_a_group_carries_out_the_plan_of_its_ranks(
    members: tuple[int, ...], collective: str, algorithm: str
) -> None:
    size = 1 << 20
    asked = {collective: algorithm}
    row = opticoll.replay(program(collective, 16, size, {1: members}), TORUS, collectives=asked)
    (chosen,) = row.collectives
    plan = opticoll.plan(collective, Fabric(TORUS).part(list(members)), chosen.chosen, size=size)
    assert algorithm in ("auto", chosen.chosen)
    assert not plan.verify()
    simulated = plan.simulate(size)
    assert row.time_ps == simulated.time_ps
    assert row.bytes == sum(rank["sent_bytes"] for rank in simulated.ranks.rows())
    # On links, a step has one slot.
    names = ("slot", "source", "destination", "action")
    columns = plan.columns()
    messages = set(zip(*(columns[name].tolist() for name in names), strict=True))
    assert row.messages == len(messages)


def test_groups_share_a_plan_if_they_are_alike() -> None:
    def chosen(*groups: Sequence[int]) -> list[str]:
        trace = program("all_reduce", 16, 1 << 20, dict(enumerate(groups, start=1)))
        return [one.chosen for one in opticoll.replay(trace, TORUS).collectives]

    def alone(members: Sequence[int]) -> str:
        (name,) = chosen(members)
        return name

    row, other_row, square = (0, 1, 2, 3), (4, 5, 6, 7), (0, 2, 8, 10)
    assert chosen(row, other_row) == [alone(row)]
    # Two steps lead from one corner of the square to the next over a rank that is no member.
    assert alone(square) != alone(row)
    assert chosen(row, square) == [alone(row), alone(square)]


def test_a_row_names_the_algorithm_that_its_groups_ran() -> None:
    # Tensor groups are rows of the torus, data groups its columns; each plans for itself.
    options: dict[str, Any] = {"batch": 4, "device": "a100", "tensor_parallel": 4}
    row = opticoll.train("bert_large", TORUS, **options, collectives={"all_reduce": "ring"})
    assert row.groups is not None
    assert {one.algorithm for one in row.groups.collectives} == {"ring"}
    row = opticoll.train("bert_large", TORUS, **options)
    assert row.groups is not None
    assert all(one.algorithm for one in row.groups.collectives)


def test_a_plan_file_is_no_trace(run: Run, tmp_path: Path) -> None:
    opticoll.write_plan(opticoll.plan("all_gather", RING), tmp_path / "one.plan")
    finished = run("replay", tmp_path / "one.plan", "--fabric", RING)
    assert (finished.code, "a plan of opticoll, not a trace" in finished.err) == (2, True)


def test_neighbours_share_no_links_and_others_take_turns() -> None:
    def time_ps(groups: Mapping[int, Sequence[int]]) -> int:
        return opticoll.replay(program("all_reduce", 8, 1 << 20, groups), RING).time_ps

    one, other = range(4), range(4, 8)
    assert time_ps({1: one, 2: other}) == time_ps({1: one}) == time_ps({1: other})
    even, odd = range(0, 8, 2), range(1, 8, 2)
    assert time_ps({1: even, 2: odd}) == time_ps({1: even}) + time_ps({1: odd})


@pytest.mark.parametrize(
    "fabric",
    ["wdm_ring:ranks=16,wavelengths=8,rate=25Gb/s", "crossbar:ranks=16,rate=400Gb/s,latency=1us"],
)
def test_stating_the_defaults_of_groups_changes_no_iteration(fabric: str) -> None:
    def iteration_s(**stated: Any) -> float:
        row = opticoll.train("bert_large", fabric, batch=4, device="a100", **stated)
        return row.iteration_s

    plain = iteration_s()
    for stated in ({"data_parallel": 16}, {"micro_batches": 1}, {"tensor_parallel": 1}):
        assert iteration_s(**stated) == plain


def test_fabrics_of_a_comparison_are_judged_alike() -> None:
    asked = Train(tensor_parallel=2)
    electrical: Settings = {}
    fabrics = [
        (Fabric("crossbar:ranks=8"), electrical),
        (Fabric("passive_star:ranks=8,wavelengths=4"), electrical),
    ]
    assert why_alone(asked, fabrics[:1]) is None
    reason: Any = why_alone(asked, fabrics)
    assert "passive_star" in reason
    assert "alike" in reason


def calls(ranks: int, groups: Mapping[int, Sequence[int]], *rows: str) -> Trace:
    lines = [f"# app=one ranks={ranks}"]
    lines += [f"# comm {one} = {' '.join(map(str, group))}" for one, group in groups.items()]
    lines.append("rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns")
    return opticoll.read_trace("\n".join([*lines, *rows, ""]).encode())


@pytest.mark.parametrize(
    "damage", ["broken=1-2", "broken=1-2cw", "broken=1-2cw+6-7cw", "degraded=1-2@100Mb/s"]
)
def test_a_group_whose_links_are_damaged_goes_around_the_ring(damage: str) -> None:
    ring = f"wdm_ring:ranks=8,wavelengths=2,{damage}"

    def time_ps(members: Sequence[int]) -> int:
        return opticoll.replay(program("all_reduce", 8, 10**6, {1: members}), ring).time_ps

    assert time_ps(range(4)) <= time_ps(range(8))
    assert time_ps([1, 2]) <= time_ps(range(8))


def test_a_plan_releases_the_ports_of_its_ranks() -> None:
    message = ("0,Send,7,1000,0,0,0,,0", "7,Recv,0,0,1000,0,0,,0")
    collective = [f"{rank},Allreduce,,1000000,1000000,0,1,,0" for rank in range(4)]
    trace = calls(8, {1: range(4)}, *message, *collective, *message)
    for ports, setups in (("", 1), (",ports=1", 2)):
        ring = f"wdm_ring:ranks=8,wavelengths=2{ports}"
        used: Any = opticoll.replay(trace, ring, policy="on_change").lightpath_setups
        assert used.setups == setups


@pytest.mark.parametrize("ranks", [2, 4])
def test_an_exchange_of_various_equal_blocks_is_an_exchange_of_equal_blocks(ranks: int) -> None:
    ring = f"wdm_ring:ranks={ranks},wavelengths={2 * ranks},rate=10Gb/s"
    sizes = "# v " + " ".join(["100000"] * ranks)
    various = [f"{rank},Alltoallv,,{ranks * 100000},0,0,0,,0\n{sizes}" for rank in range(ranks)]
    even = opticoll.replay(program("all_to_all", ranks, 100000 * ranks), ring)
    assert opticoll.replay(calls(ranks, {}, *various), ring).time_ps == even.time_ps


@pytest.mark.parametrize("fabric", ["wdm_ring:ranks=4,wavelengths=2", "crossbar:ranks=4"])
def test_a_trace_of_more_ranks_than_the_fabric_says_so(fabric: str) -> None:
    with pytest.raises(errors.TraceError, match="8 ranks, but the fabric has 4"):
        opticoll.replay(program("all_reduce", 8, 1000), fabric)


@pytest.mark.parametrize(
    "fabric",
    [
        "crossbar:ranks=8,latency=500ns,degraded=0@25Gb/s",
        "electrical_ring:ranks=8,latency=500ns",
        "fat_tree:down=4x4,up=1x2,latency=1us,degraded=0-16@25Gb/s",
        RING,
    ],
)
@pytest.mark.parametrize("collective", CALLS)
def test_the_order_of_a_communicator_changes_nothing(fabric: str, collective: str) -> None:
    ranks = Fabric(fabric).ranks
    times = {
        opticoll.replay(program(collective, ranks, 1 << 20, {1: members}), fabric).time_ps
        for members in ([6, 7, 0, 1], [6, 0, 1, 7])
    }
    assert len(times) == 1


@pytest.mark.parametrize(
    ("on", "fits"),
    [
        (RING, True),
        (RING.replace("wavelengths=4", "wavelengths=9"), True),
        (RING.replace("wavelengths=4", "wavelengths=1"), False),
        ("torus:dims=2x4", False),
    ],
)
def test_an_export_takes_as_long_replayed_as_simulated_where_its_plan_fits(
    run: Run, tmp_path: Path, on: str, fits: bool
) -> None:
    path, *_ = opticoll.plan("all_reduce", RING, size="1MiB").export(tmp_path / "one.goal")
    row = opticoll.replay(path, on)
    assert ("by the plan that was exported" in row.transport) == fits
    finished = run("simulate", path, "--fabric", on)
    assert finished.code == 0
    assert ("is not used: " in finished.err) != fits
    if fits:
        own = run("simulate", f"{path}.plan", "--fabric", on, "--json")
        assert json.loads(own.out)["time_ps"] == row.time_ps
        assert json.loads(run("simulate", path, "--fabric", on, "--json").out)["time_ps"] == (
            row.time_ps
        )
