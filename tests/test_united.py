"""Groups of one kind that run their collectives at the same time."""

from typing import Any

import pytest

import opticoll
from opticoll import Fabric, _core
from opticoll.commands.train import Train
from opticoll.commands.train.group_prices import groups_of
from opticoll.commands.train.group_rows import GroupCollectiveRow
from opticoll.commands.train.groups import divide

MODEL = "gpt:layers=4,width=1024,heads=16,sequence=512,vocabulary=1024"


def collectives(fabric: str, **options: Any) -> list[GroupCollectiveRow]:
    """Returns the collectives of an iteration."""
    row = opticoll.train(MODEL, fabric, batch=8, device="h100", **options)
    assert row.verified
    assert row.groups is not None
    return row.groups.collectives


def test_every_rank_is_in_one_group_of_a_kind() -> None:
    model = "moe:layers=4,width=1024,experts=4,top_k=1,heads=8,sequence=512,vocabulary=1024"
    division = {"tensor_parallel": 2, "pipeline_parallel": 2, "expert_parallel": 2}
    asked = Train(model=model, **division, micro_batches=4)  # type: ignore[arg-type]
    training = divide(asked, model, 8, 32, 4)
    kinds = {one["group"]: one for one in training.made_of()}
    assert kinds.keys() == {"tensor", "pipeline", "expert", "data", "expert_data"}
    for kind, record in kinds.items():
        groups = groups_of(training, record)
        assert all(len(group) == record["ranks"] for group in groups)
        ranks = [rank for group in groups for rank in group]
        if kind == "pipeline":
            # Rank r of the first stage sends to rank r of the second.
            assert groups == [[rank, rank + 16] for rank in range(16)]
        else:
            assert sorted(ranks) == list(range(32))
    # Rank t + T (d + D p), with T = 2 and D = 8; E = 2 consecutive replicas share experts.
    assert groups_of(training, kinds["expert"])[:3] == [[0, 2], [1, 3], [4, 6]]
    assert groups_of(training, kinds["expert_data"])[1] == [1, 5, 9, 13]


@pytest.mark.parametrize("exchange", ["ring", "all_to_all"])
def test_context_parallel_ranks_are_between_tensor_and_data_parallel_ranks(exchange: str) -> None:
    # Rank t + T (c + C (d + D p)), with T = 2, C = 4, D = 2 and P = 2.
    division = {"tensor_parallel": 2, "context_parallel": 4, "pipeline_parallel": 2}
    asked = Train(model=MODEL, **division, context_exchange=exchange)  # type: ignore[arg-type]
    training = divide(asked, MODEL, 8, 32, 4)
    kinds = {one["group"]: groups_of(training, one) for one in training.made_of()}
    assert kinds["context"] == [[r, r + 2, r + 4, r + 6] for r in (0, 1, 8, 9, 16, 17, 24, 25)]
    assert kinds["data"][1] == [1, 3, 5, 7, 9, 11, 13, 15]
    assert kinds["pipeline"] == [[rank, rank + 16] for rank in range(16)]


@pytest.mark.parametrize(
    "fabric",
    [
        "circuit_switch:ranks=16,ports=2,rate=400Gb/s",
        "lightpath_grid:ranks=16,ports=2",
        "wss_grid:rows=4,columns=4",
        "dgx_h100:boxes=2,outside=circuit_switch/ports=4/rate=120Gb/s",
    ],
)
def test_groups_without_common_parts_have_the_time_alone(fabric: str) -> None:
    tensor = 8 if fabric.startswith("dgx") else 4
    united = collectives(fabric, tensor_parallel=tensor)
    # The simulators of packets within servers and of one server round to picoseconds differently.
    for one in united:
        assert one.time_s == pytest.approx(one.alone_s, rel=1e-6)
    alone = collectives(fabric, tensor_parallel=tensor, contention="none")
    assert [one.time_s for one in alone] == [one.alone_s for one in united]


def test_groups_of_a_star_share_its_wavelengths() -> None:
    # In a direct all_reduce of S bytes among 4 ranks, a rank sends three blocks of S / 4 and then
    # its sum, once, because the light of a star reaches all receivers. These are S bytes of each of
    # 16 ranks on 4 wavelengths of 100 Gb/s. The united plan leaves no wavelength idle.
    star = "passive_star:ranks=16,wavelengths=4,reconfiguration=0s"
    options: dict[str, Any] = {"tensor_parallel": 4, "algorithm": "direct"}
    for one in collectives(star, **options):
        assert one.time_s == pytest.approx(16 * one.size_bytes / 4 / (100e9 / 8), rel=1e-6)


def test_opposite_ranks_of_a_ring_share_its_fibres() -> None:
    # Data groups are 8 pairs of opposite ranks of a ring. A rank exchanges S / 2 bytes in each of
    # the two steps of an all_reduce: 16 messages over 8 links each, on 32 directed fibres. So a
    # fibre carries 4 messages in each step, and two wavelengths cannot take fewer than 2 slots.
    ring = "wdm_ring:ranks=16,wavelengths=2,reconfiguration=1us,rate=100Gb/s"
    options: dict[str, Any] = {"tensor_parallel": 8, "algorithm": "direct"}
    rows = collectives(ring, **options, contention="united")
    data = [one for one in rows if one.group == "data"]
    assert data
    for one in data:
        slot = one.size_bytes / 2 / (100e9 / 8)
        assert one.time_s is not None
        assert one.alone_s is not None
        assert one.time_s >= 2 * 2 * slot
        assert one.time_s > one.alone_s


def test_sizes_that_differ_stay_a_demand_among_all_ranks() -> None:
    # Two groups of two ranks, each with 3 MB one way and 1 MB back, on 100 Gb/s: the longer
    # message takes 3e6 * 8 / 1e11 s. Each rank has a port of its own.
    switch = Fabric("circuit_switch:ranks=4,ports=1,rate=100Gb/s,reconfiguration=1us")
    demand = _core.Demand([[0, 3_000_000], [1_000_000, 0]])
    plan = _core.plan(
        "all_to_all", switch.part([0, 2]), "direct", size_bytes=demand.largest, demand=demand
    )
    united, size, wrong = _core.unite(plan, switch, [[0, 2], [1, 3]], demand.largest)
    assert wrong == []
    assert united.verify() == []
    sent = [rank["sent_bytes"] for rank in united.simulate(size).ranks.rows()]
    assert sent == [3_000_000, 3_000_000, 1_000_000, 1_000_000]
    assert united.simulate(size).time_ps == 240_000_000


def test_two_levels_by_hand() -> None:
    # 2 servers with 8 GPUs. Tensor groups are servers: a GPU reaches its switch at 3.6 Tb/s and
    # sends 7/8 of the vector in each of two steps of a direct all_reduce. Data groups are pairs on
    # a rail, with 4 ports of 120 Gb/s for each GPU: each GPU sends half of the vector twice.
    fabric = "dgx_h100:boxes=2,latency=0s,outside=circuit_switch/ports=4/rate=120Gb/s"
    options: dict[str, Any] = {"tensor_parallel": 8, "algorithm": "direct"}
    rows = collectives(fabric, **options)
    assert {one.group for one in rows} == {"tensor", "data"}
    for one in rows:
        size_bits = 8 * one.size_bytes
        if one.group == "tensor":
            assert one.ranks == 8
            expected = 2 * size_bits * 7 / 8 / 3.6e12
        else:
            assert one.ranks == 2
            expected = 2 * size_bits / 2 / 120e9
        assert one.time_s == pytest.approx(expected, rel=1e-5)


def test_rails_over_two_links_between_cubes_keep_their_routes() -> None:
    # Neighbours in a dimension of 2 have two links, which trees use both; by default routes, all
    # transfers would take the same one. The rails share no link.
    torus = "ocs_torus/dims=2x2x2/cube=2/rate=80Gb/s"
    servers = Fabric(f"dgx_h100:boxes=8,in_network=none,library=none,outside={torus}")
    rails = [[gpu + 8 * box for box in range(8)] for gpu in range(8)]
    size = 4 << 20
    plan = opticoll.plan("all_reduce", servers.part(rails[0]), "tree_packing:trees=6", size=size)
    united, whole, wrong = _core.unite(plan, servers, rails, size)
    assert not wrong
    assert united.simulate(size=whole).time_ps == plan.simulate(size=size).time_ps
    # 6 links of 80 Gb/s for each rank, each of which sends and receives 2 (n - 1) / n vectors.
    seconds = plan.simulate(size=size).time_ps / 1e12
    assert seconds == pytest.approx(1.75 * size * 8 / 480e9, rel=1e-4)
