"""The electrical side of the WRHT poster: times against theory, and rates at which claims hold.

On a switch of rate B with a latency of L per cable, consider an all_reduce of M bytes on N ranks.
The ring takes 2 (N - 1) (2 L + M / (N B)). Recursive doubling takes log2(N) (2 L + M / B). Halving
and doubling takes 2 log2(N) 2 L + 2 (N - 1) / N M / B.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import TypedDict

import pytest

from opticoll_papers import wrht
from opticoll_papers.common import Results
from opticoll_papers.wrht import electrical
from opticoll_papers.wrht.cases import MODELS, wrht_claimed_s
from support import ALL_CASES, BROAD, Run

LATENCY_S = 500e-9


class BreakEven(TypedDict):
    """A line of break_even.csv, with numbers parsed."""

    fabric: str
    algorithm: str
    model: str
    ranks: int
    rate: float


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Results:
    if not ALL_CASES:
        pytest.skip(BROAD)
    return wrht.reproduce(Results(tmp_path_factory.mktemp("wrht") / "new", "wrht", quick=True))


def theory(algorithm: str, ranks: int, size: float, bytes_per_s: float) -> float:
    step, depth = 2 * LATENCY_S, ranks.bit_length() - 1
    match algorithm:
        case "ring":
            return 2 * (ranks - 1) * (step + size / ranks / bytes_per_s)
        case "recursive_doubling":
            return depth * (step + size / bytes_per_s)
        case _:
            return 2 * depth * step + 2 * (ranks - 1) / ranks * size / bytes_per_s


def test_times_on_a_switch_are_those_of_theory(study: Results) -> None:
    on_switch = [row for row in study.electrical if row["fabric"] == "crossbar"]
    assert len(on_switch) == 4 * 4 * 2
    for row in on_switch:
        rate = row["rate_bits_per_second"] / 8
        for column, name in (
            ("e_ring_s", "ring"),
            ("e_rd_s", "recursive_doubling"),
            ("e_hd_s", "halving_doubling"),
        ):
            expected = theory(name, row["ranks"], row["size_bytes"], rate)
            # Blocks are whole numbers of bytes, so each of at least 100 kB has up to one byte more.
            assert row[column] == pytest.approx(expected, rel=1e-5)


def test_a_tapered_tree_slows_only_what_leaves_its_leaves(study: Results) -> None:
    # 16 ranks per leaf share 8 cables. In the ring, 1 rank in 16 sends out of its leaf. In
    # recursive doubling, all ranks do so at half the rate, in the log2(N) - 4 steps with partners
    # on other leaves.
    for row in study.electrical:
        if row["fabric"] != "fat_tree" or row["rate_bits_per_second"] > 10**10:
            continue
        sent = row["size_bytes"] / (row["rate_bits_per_second"] / 8)
        depth = row["ranks"].bit_length() - 1
        assert row["e_ring_s"] == pytest.approx(2 * sent * (1 - 1 / row["ranks"]), rel=0.03)
        assert row["e_rd_s"] == pytest.approx((4 + 2 * (depth - 4)) * sent, rel=0.01)


def test_every_row_is_proved_and_holds_both_of_wrhts_numbers(study: Results) -> None:
    assert {(row["fabric"], row["ranks"]) for row in study.electrical} == {
        (fabric, ranks) for fabric in electrical.FABRICS for ranks in electrical.QUICK_RANKS
    }
    for row in study.electrical:
        assert row["verified"]
        # Reference, section 1.5: 2 steps at 128 ranks and 3 at 256, each of d / B + a.
        steps = {128: 2, 256: 3}[row["ranks"]]
        expected = steps * (row["size_bytes"] / 5e9 + 25e-6)
        assert row["wrht_claimed_s"] == pytest.approx(expected, rel=1e-9)
        assert row["wrht_constructed_s"] == pytest.approx(expected, rel=1e-9)
        # Quick runs plan optical rings only for 128 ranks.
        assert (row["auto_s"] is None) == (row["ranks"] > 128)
        assert row["auto_s"] is None or row["auto_s"] < expected


def break_even(study: Results) -> list[BreakEven]:
    with (study.folder / "break_even.csv").open(encoding="utf-8", newline="") as file:
        return [
            BreakEven(
                fabric=row["fabric"],
                algorithm=row["algorithm"],
                model=row["model"],
                ranks=int(row["ranks"]),
                rate=float(row["rate_bits_per_second"]),
            )
            for row in csv.DictReader(file)
        ]


def test_at_the_break_even_rate_theory_takes_wrhts_time(study: Results) -> None:
    rows = [row for row in break_even(study) if row["fabric"] == "crossbar"]
    assert len(rows) == 4 * 3 * 2
    for row in rows:
        size = 4 * MODELS[row["model"]]
        expected = wrht_claimed_s(row["ranks"], size)
        seconds = theory(row["algorithm"], row["ranks"], size, row["rate"] / 8)
        assert seconds == pytest.approx(expected, rel=1e-5)


def test_what_was_solved_for_was_simulated_too(study: Results) -> None:
    with (study.folder / "break_even.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            assert float(row["simulated_s"]) == pytest.approx(
                float(row["wrht_claimed_s"]), rel=1e-6
            )


def mean_saved(bytes_per_s: float, more_s: float = 0.0) -> float:
    """Returns the percentage that WRHT saves on a switch whose cables are `more_s` slower."""
    saved = []
    for ranks in electrical.QUICK_RANKS:
        for model in MODELS.values():
            for name, steps in (
                ("ring", 2 * (ranks - 1)),
                ("recursive_doubling", ranks.bit_length() - 1),
            ):
                seconds = theory(name, ranks, 4 * model, bytes_per_s) + 2 * steps * more_s
                saved.append(1 - wrht_claimed_s(ranks, 4 * model) / seconds)
    return 100 * sum(saved) / len(saved)


PRINTED = {"electrical": 75.76, "optical": 91.86}


@pytest.mark.parametrize("rate", [10, 40])
def test_the_mean_is_that_of_theory_and_judged_against_its_own_number(
    study: Results, rate: int
) -> None:
    id = f"headline.electrical.{rate}"
    assert study.computed[id].value == pytest.approx(mean_saved(rate * 1e9 / 8), rel=1e-4)
    (said,) = (one for one in study.findings if one["id"] == id)
    assert said["paper"] == PRINTED["electrical"]
    # WRHT sends 2 or 3 vectors at 40 Gb/s, the baselines 2 and 7 or 8: only slow ports explain 75
    # %.
    assert said["verdict"] == ("conditional" if rate == 10 else "undecided")


@pytest.mark.parametrize("rate", [100, 400])
def test_the_mean_with_faster_ports_is_that_of_theory(study: Results, rate: int) -> None:
    note = study.computed["headline.electrical.40"].note
    assert f"{mean_saved(rate * 1e9 / 8):+.1f} % on a single switch at {rate} Gb/s" in note


@pytest.mark.parametrize(("place", "claimed"), [(0, "electrical"), (2, "optical")])
def test_the_claimed_mean_is_met_at_the_rate_that_is_said(
    study: Results, place: int, claimed: str
) -> None:
    said = study.computed["headline.electrical"]
    rate = float(re.findall(r"([\d.]+) Gb/s give", said.note)[place])
    # The rate is rounded to 1 Mb/s.
    assert mean_saved(rate * 1e9 / 8) == pytest.approx(PRINTED[claimed], abs=0.01)
    assert said.value == pytest.approx(PRINTED["electrical"], abs=0.01)


@pytest.mark.parametrize("rate", [40, 100, 400])
def test_the_latency_that_would_explain_the_claim_is_out_of_reach(
    study: Results, rate: int
) -> None:
    note = study.computed["headline.electrical"].note
    latency_ms = float(re.findall(rf"([\d.]+) ms at {rate} Gb/s give", note)[0])
    more_s = latency_ms / 1e3 - LATENCY_S
    assert mean_saved(rate * 1e9 / 8, more_s) == pytest.approx(PRINTED["electrical"], abs=0.01)
    assert latency_ms > 0.1


def test_wrht_is_faster_below_the_least_break_even_rate(study: Results) -> None:
    rows = break_even(study)
    for algorithm in ("ring", "recursive_doubling"):
        computed = study.computed[f"fig2.electrical.{algorithm}.40"]
        for fabric in electrical.FABRICS:
            own = [
                row["rate"] / 1e9
                for row in rows
                if (row["fabric"], row["algorithm"]) == (fabric, algorithm)
            ]
            assert f"{electrical.FABRICS[fabric]} from {min(own):.3g} Gb/s" in computed.note
            assert fabric != "crossbar" or computed.value == pytest.approx(min(own))


def test_long_is_refused_where_it_means_nothing(run: Run, tmp_path: Path) -> None:
    for arguments, hint in (
        (("optree", "--long"), "no longer cases"),
        (("wrht", "--long", "--quick"), "give one of them"),
    ):
        refused = run("reproduce", *arguments, "--output", tmp_path / "new")
        assert refused.code == 2
        assert hint in refused.err
        assert not (tmp_path / "new").exists()


def test_rows_are_written_as_they_are_printed(study: Results) -> None:
    with (study.folder / "electrical.csv").open(encoding="utf-8", newline="") as file:
        written = list(csv.DictReader(file))
    assert len(written) == len(study.electrical)
    for row, line in zip(study.electrical, written, strict=True):
        assert float(line["e_ring_s"]) == row["e_ring_s"]
        assert json.loads(line["verified"]) is row["verified"]
    for suffix in ("svg", "png"):
        assert (study.folder / f"fig2_crossbar.{suffix}").stat().st_size > 0
