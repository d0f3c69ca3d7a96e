"""The reproduction of the OBS grid paper, against formulas, published values and a slow replay."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import pytest

from opticoll_papers import obs_grid
from opticoll_papers.claims import load
from opticoll_papers.common import Results
from opticoll_papers.obs_grid import applications, costs

RANKS, LATENCY, BYTE, SET_UP = 64, 100e-6, 8e-9, 10e-3


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Computes a quick run of the study."""
    return obs_grid.reproduce(Results(tmp_path_factory.mktemp("obs_grid"), "obs_grid", quick=True))


def rows(results: Results, name: str) -> list[dict[str, str]]:
    with (results.folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def value(results: Results, id: str) -> Any:
    return results.computed[id].value


def test_only_what_few_bursts_and_replications_cannot_tell_is_left_out(results: Results) -> None:
    left_out = {one.id for one in results.findings if one.verdict == "left_out"}
    assert left_out == {
        "ladder.loss",
        "congestion.blocked",
        "congestion.multiple",
        "congestion.multiple.two_ports",
        "congestion.multiple_request",
        "congestion.allocation",
    }
    for name in ("costs", "applications", "ladder"):
        assert (results.folder / f"{name}.png").stat().st_size > 10_000


def seconds(algorithm: str, size: float, way: str) -> float:
    """Returns the time by the corrected formulas; an all_gather's block has whole bytes."""
    rounds = int(math.log2(RANKS))
    ports = {"ideal": math.inf, "naive": 1}.get(way) or int(way[0])
    block = math.ceil(size / RANKS)
    message = LATENCY + size * BYTE
    match algorithm:
        case "linear":
            time, setups = (RANKS - 1) * message, math.ceil((RANKS - 1) / ports)
        case "binomial_tree":
            time, setups = rounds * message, math.ceil(rounds / ports)
        case "recursive_doubling":
            time = rounds * LATENCY + (RANKS - 1) * block * BYTE
            setups = math.ceil(rounds / ports)
        case _:
            parts = 2 if ports == 1 else 1
            time = parts * (RANKS - 1) * (LATENCY + block * BYTE)
            setups = 2 * (RANKS - 1) if ports == 1 else 1
    return time + (0 if way == "ideal" else setups * SET_UP)


def test_costs_are_those_of_the_formulas(results: Results) -> None:
    cost_rows = rows(results, "costs")
    assert len(cost_rows) == 4 * 5 * 5
    for row in cost_rows:
        expected = seconds(row["algorithm"], float(row["bytes"]), row["way"])
        assert float(row["time_s"]) == pytest.approx(expected, rel=1e-12), row
    printed = {
        (row["algorithm"], int(row["bytes"]), row["way"]): f"{float(row['time_s']):.6f}"
        for row in cost_rows
    }
    # Values of the formulas computed by hand, to the microsecond.
    assert printed["linear", 10**6, "4_ports"] == "0.670300"
    assert printed["ring", 10**3, "naive"] == "1.272616"
    assert printed["ring", 10**7, "2_ports"] == "0.095050"
    assert printed["recursive_doubling", 10**5, "2_ports"] == "0.031388"
    assert printed["recursive_doubling", 10**7, "3_ports"] == "0.099350"
    assert printed["binomial_tree", 10**3, "4_ports"] == "0.020648"


def test_set_ups_are_counted_with_ceil(results: Results) -> None:
    rounds, steps = 6, RANKS - 1
    for name, naive, needed in (
        ("linear", steps, [32, 21, 16]),
        ("ring", 2 * steps, [1, 1, 1]),
        ("recursive_doubling", rounds, [3, 2, 2]),
        ("binomial_tree", rounds, [3, 2, 2]),
    ):
        assert value(results, f"{name}.saved") == tuple(naive - one for one in needed)
    # Each step of a ring with an odd number of ranks has three matchings.
    assert value(results, "ring.naive_odd") == 3 * 62
    # More ports also save one of the two transfers in a step.
    for size in (2**10, 2**20):
        saved = costs.seconds("ring", 1, size) - costs.seconds("ring", 2, size)
        transfers = steps * (LATENCY + size / RANKS * BYTE)
        assert saved == pytest.approx(125 * SET_UP + transfers, abs=1e-12)
        assert any(
            saved == pytest.approx(one, abs=1e-9) for one in value(results, "ring.saved_time.total")
        )
    assert value(results, "ring.saved_time") == (125 * SET_UP, 125 * SET_UP)


def test_the_printed_floor_is_a_set_up_short_with_four_ports_only(results: Results) -> None:
    (claim,) = (one for one in load("obs_grid") if one.id == "binomial_tree.ports")
    assert isinstance(claim.printed, tuple)
    away = [
        own - float(their)
        for own, their in zip(value(results, claim.id), claim.printed, strict=True)
    ]
    assert away == pytest.approx([0, 0, 0, 0, SET_UP, SET_UP], abs=1e-12)


def test_doubling_is_never_slower_than_the_ring_without_set_ups() -> None:
    for size in (2**18, 2**20):
        ring = 63 * LATENCY + 63 / 64 * size * BYTE
        assert costs.seconds("ring", 2, size, "free") == pytest.approx(ring, rel=1e-9)
        doubling = costs.seconds("recursive_doubling", 2, size, "free")
        assert doubling == pytest.approx(ring - 57 * LATENCY, rel=1e-9)


def test_each_algorithm_sends_as_its_slide_says(results: Results) -> None:
    assert value(results, "linear.partners") == (1, 63)
    assert value(results, "ring.partners") == (1, 2**20 // 64)
    assert value(results, "recursive_doubling.partners") == (1, 2, 4, 8, 16, 32)
    assert value(results, "binomial_tree.partners") == (2, 4, 8, 16, 32, 64)


def test_twice_the_ideal_time_is_where_a_message_takes_its_set_up(results: Results) -> None:
    message = (SET_UP - LATENCY) / BYTE
    row_by_algorithm = {row["algorithm"]: row for row in rows(results, "effective")}
    for algorithm, factor in (
        ("linear", 1.0),
        ("binomial_tree", 1.0),
        ("ring", 64.0),
        ("recursive_doubling", 6 * 64 / 63),
    ):
        assert int(row_by_algorithm[algorithm]["bytes"]) == round(factor * message)
        assert float(row_by_algorithm[algorithm]["naive_over_ideal"]) == pytest.approx(2, abs=1e-4)


def test_collectives_add_their_set_ups(results: Results) -> None:
    collectives = {"EP": 5, "FT": 17}
    application_rows = rows(results, "applications")
    assert len(application_rows) == 10
    for row in application_rows:
        ports = {"ideal": math.inf, "naive": 1}.get(row["way"]) or int(row["way"][0])
        name = row["application"]
        each = math.ceil(4 / ports) if ports < 5 else 0
        added = collectives[name] * each * SET_UP
        # Ranks of a real run arrive at different times, which hides part of the setups.
        assert added - 1e-3 <= float(row["increase_s"]) <= added + 1e-9
        if each:
            own = value(results, f"{name.lower()}.{row['way']}.setups")
            assert own == pytest.approx(each, abs=0.01)


def test_the_two_ends_of_the_increase_of_mg_count_messages_alike(results: Results) -> None:
    for messages, text in ((4, None), (1, "7.55 to 14.19 s")):
        least = (654 + 101 * messages) * SET_UP
        if text is None:
            assert value(results, "mg.increase") == pytest.approx((least, least + 6.64))
        else:
            assert f"{least:.4g} to {least + 6.64:.4g} s" == text
            assert text in results.computed["mg.increase"].note


def test_a_message_of_an_all_to_all_carries_half_of_the_buffer(results: Results) -> None:
    assert value(results, "simulation.all_to_all_bytes") == 0.5


def test_paths_that_are_kept_are_set_up_once(results: Results) -> None:
    """In EP, all collectives have the same four partners, and four ports suffice for them."""
    kept = applications.replayed(applications.table("ep"), applications.grid(4), "kept")
    free = applications.replayed(applications.table("ep"), applications.IDEAL)
    assert kept.time_s - free.time_s == pytest.approx(SET_UP / 2, abs=1e-9)


def test_congestion_costs_what_the_model_charges(results: Results) -> None:
    row_by_case = {row["case"]: row for row in rows(results, "congestion")}
    step = LATENCY + 10**5 * 8 / 10**10
    assert float(row_by_case["ring, no bursts"]["time_s"]) == pytest.approx(SET_UP + 99 * step)
    assert value(results, "goal.testbed") == pytest.approx(SET_UP + 5 * step)
    # Without retries, a replication ends at the first blocked setup.
    for name in ("ring", "tree", "linear"):
        row = row_by_case[f"{name}, no retries"]
        assert round(float(row["blocked"]) * 10) == int(row["failed"]) > 0
    # A link of the ladder on the slides carries 11 bursts on 28 wavelengths on average.
    for name in ("ring", "tree"):
        assert row_by_case[f"{name}, own ladder, no retries"]["failed"] == "0"


def test_bursts_without_queues_are_lost_as_erlang_says(results: Results) -> None:
    blocked = 1.0
    for wavelengths in range(1, 11):
        blocked = 10 * blocked / (wavelengths + 10 * blocked)
    assert blocked == pytest.approx(0.21458, abs=1e-5)
    assert value(results, "ladder.source") == pytest.approx(blocked, rel=0.03)


def rounds_of(call: str, size: int, root: int) -> list[list[tuple[int, int, int]]]:
    """Returns (source, destination, bytes) per round of doubling or binomial trees on 16 ranks."""
    if call in ("Barrier", "Allreduce", "Alltoall"):
        amount = size // 2 if call == "Alltoall" else size
        return [[(rank, rank ^ 2**bit, amount) for rank in range(16)] for bit in range(4)]
    downwards = [
        [((rank + root) % 16, (rank + half + root) % 16, size) for rank in range(0, 16, 2 * half)]
        for half in (8, 4, 2, 1)
    ]
    if call == "Bcast":
        return downwards
    upwards = [[(child, parent, size) for parent, child, _ in sent] for sent in downwards[::-1]]
    return upwards if call == "Reduce" else []


def slow_replay(text: str, ports: int, half_ps: int) -> int:
    """Returns the picoseconds of a replay that keeps one clock per rank.

    A group of `ports` rounds costs half a setup before the rounds, and half a setup after them.
    """
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    calls: dict[int, list[dict[str, str]]] = {rank: [] for rank in range(16)}
    for row in csv.DictReader(lines):
        calls[int(row["rank"])].append(row)
    clock = [0] * 16
    for number in range(len(calls[0])):
        rows = [calls[rank][number] for rank in range(16)]
        for rank, row in enumerate(rows):
            clock[rank] += int(row["compute_ns"]) * 1000
        size = max(int(row["send_bytes"]) for row in rows)
        rounds = rounds_of(rows[0]["call"], size, int(rows[0]["peer"] or 0))
        own = [
            [index for index, sent in enumerate(rounds) if any(rank in one[:2] for one in sent)]
            for rank in range(16)
        ]
        for index, sent in enumerate(rounds):
            for rank in range(16):
                if index in own[rank] and own[rank].index(index) % ports == 0:
                    clock[rank] += half_ps
            ends: dict[int, int] = {}
            for source, destination, amount in sent:
                end = max(clock[source], clock[destination]) + 100_000_000 + amount * 8_000
                # The lightpath occupies both ranks until the last byte has arrived.
                for rank in (source, destination):
                    ends[rank] = max(end, ends.get(rank, 0))
            for rank, end in ends.items():
                clock[rank] = max(clock[rank], end)
            for rank in range(16):
                last = index in own[rank] and (
                    (own[rank].index(index) + 1) % ports == 0 or index == own[rank][-1]
                )
                if last:
                    clock[rank] += half_ps
    return max(clock)


@pytest.mark.parametrize("application", ["ep", "ft"])
def test_traces_take_what_a_slow_replay_says(application: str) -> None:
    text = applications.table(application)
    times = applications.times(text)
    assert times["ideal"] == slow_replay(text, 4, 0)
    for way, ports in applications.WAYS.items():
        assert times[way] == slow_replay(text, ports, 5_000_000_000), way


def test_half_of_the_ranks_of_mg_send_as_often_as_the_first(results: Results) -> None:
    calls = {row["call"]: row for row in rows(results, "motivation")}
    # Collectives are equal on all ranks. The other ranks send 724 times and receive 714 times.
    assert [int(row["ranks_as_rank_0"]) for row in calls.values()] == [16, 16, 16, 8, 16, 8, 8]
    assert (int(calls["send"]["most"]), int(calls["irecv"]["most"])) == (724, 714)
    assert int(calls["irecv"]["rank_0"]) == int(calls["wait"]["rank_0"])


def test_losses_agree_with_another_simulator(results: Results) -> None:
    """Burst losses from another simulator, and from theory for the receivers."""
    ladders = {(row["reading"], int(row["wavelengths"])): row for row in rows(results, "ladder")}
    for name, expected, tolerance in (
        ("one_way_random", 0.128, 0.05),
        ("one_way_first_fit", 0.32, 0.05),
        ("busiest_link", 0.074, 0.08),
        ("one_receiver", 0.47, 0.05),
    ):
        assert float(ladders[name, 28]["loss"]) == pytest.approx(expected, rel=tolerance), name
    assert int(ladders["whole_path", 28]["lost"]) == 0
    twenty = ladders["whole_path", 20]
    assert float(twenty["loss_low"]) <= 2.1e-4 <= float(twenty["loss_high"])


def test_files_are_written_where_asked_for(results: Results) -> None:
    assert {Path(name).suffix for name in results.files} == {".csv", ".svg", ".png"}
    assert all((results.folder / name).exists() for name in results.files)
