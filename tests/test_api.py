"""The Python interface: the same words as the command line, and a user's own algorithms."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opticoll
from opticoll import Collective, Fabric, Schedule, errors, reference
from opticoll.inputs.values import split_algorithms, split_counts, split_sizes
from support import RING


def test_import_loads_no_heavy_module() -> None:
    code = (
        "import sys, opticoll; "
        "heavy = {'cyclopts', 'matplotlib', 'pydantic', 'rich', 'ruamel', 'zstandard'}; "
        "print(*heavy & set(sys.modules))"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (finished.stdout.strip(), finished.stderr) == ("", "")


def test_six_lines_make_prove_and_time_a_plan() -> None:
    fabric = Fabric(RING)
    plan = opticoll.plan("all_gather", fabric, "optree:radices=4x4", size="4MiB")
    assert plan.size_bytes == 4 * 2**20
    assert plan.verify() == []
    outcome = plan.simulate(4 * 2**20, policy="every_step")
    assert outcome.time_ps == 12 * (838_860_800 + 25_000_000)


def test_fabric_options_complete_and_replace_those_of_the_spelling() -> None:
    fabric = Fabric("wdm_ring", ranks=16, wavelengths=2)
    assert fabric == Fabric(RING)
    assert Fabric(RING, wavelengths=4) == fabric.with_options(wavelengths=4)
    assert fabric.with_options(wavelengths=4).option("wavelengths") == 4
    assert Fabric("optree_paper", ranks=8).option("rate") == 40 * 10**9
    assert Fabric("terarack").option("fibres") == 2


def test_fabric_survives_pickling_and_its_own_spelling() -> None:
    fabric = Fabric(RING, rate="25Gb/s", reconfiguration="20us", conversion="1ns", ports=3)
    assert pickle.loads(pickle.dumps(fabric)) == fabric
    assert Fabric(fabric.spec) == fabric
    assert fabric.options["reconfiguration"] == {
        "value": 20 * 10**6,
        "unit": "ps",
        "meaning": "time to reconfigure circuits",
    }


def test_fabric_error_names_its_option() -> None:
    with pytest.raises(errors.FabricError) as caught:
        Fabric(RING, wavelengths=0)
    assert caught.value.option == "wavelengths"


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: opticoll.parse_size("4M"), errors.UnitError),
        (lambda: Fabric("ring"), errors.FabricError),
        (lambda: Collective("all_gater", 4), errors.CollectiveError),
        (lambda: Collective("broadcast", 4, root=4), errors.CollectiveError),
        (lambda: opticoll.plan("all_gather", RING, "rng"), errors.AlgorithmError),
        (lambda: opticoll.plan("all_gather", RING, "ring", root=-1), errors.CollectiveError),
        (lambda: opticoll.plan("all_gather", RING, wavelength="x"), errors.WavelengthError),
        (lambda: opticoll.Plan.from_text("hello"), errors.PlanFileError),
        (
            lambda: opticoll.plan("all_gather", RING).simulate(1, simulator="x"),
            errors.SimulationError,
        ),
        (lambda: opticoll.read_plan("missing.plan"), errors.FileError),
        (lambda: opticoll.compare("all_gather", RING, []), errors.UsageError),
        (lambda: opticoll.plan("all_gather", RING, "mine:"), errors.OpticollError),
        (lambda: opticoll.plan("all_gather", RING, size=-1), errors.UnitError),
        (lambda: opticoll.plan("all_gather", RING, size=2**64), errors.UnitError),
        (lambda: opticoll.plan("all_gather", RING, size=1.5), errors.UnitError),  # type: ignore[arg-type]
        (lambda: opticoll.plan("all_gather", RING, root=0.5), errors.CollectiveError),  # type: ignore[arg-type]
        (lambda: opticoll.plan("all_gather", 3), errors.FabricError),
        (lambda: opticoll.plan("all_gather", "missing.yaml"), errors.FileError),
        (lambda: opticoll.plan("all_gather", RING, "ring").simulate(), errors.UnitError),
        (lambda: opticoll.plan("all_gather", RING).simulate(-1), errors.UnitError),
        (lambda: opticoll.plan("all_gather", RING).simulate(1.5), errors.UnitError),  # type: ignore[arg-type]
        (lambda: opticoll.compare("all_gather", RING, sizes=[1.5]), errors.UnitError),  # type: ignore[list-item]
        (lambda: opticoll.compare("all_gather", 3), errors.FabricError),
        (lambda: Fabric("crossbar:ranks=8").route(0, 0), errors.OpticollError),
        (lambda: Fabric("crossbar:ranks=8").route(0, 8), errors.OpticollError),
    ],
)
def test_every_error_is_an_opticoll_error_of_its_kind(make: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind) as caught:
        make()
    assert isinstance(caught.value, opticoll.OpticollError)
    assert str(caught.value)


@pytest.mark.parametrize(
    ("kind", "chunks", "combines", "before", "after"),
    [
        ("all_gather", 4, False, [0, 1, 2, 3], [None] * 4),
        ("gather", 4, False, [0, 1, 2, 3], [2] * 4),
        ("scatter", 4, False, [2] * 4, [0, 1, 2, 3]),
        ("reduce_scatter", 4, True, [None] * 4, [0, 1, 2, 3]),
        ("broadcast", 1, False, [2], [None]),
        ("reduce", 1, True, [None], [2]),
        ("all_reduce", 1, True, [None], [None]),
        ("barrier", 1, True, [None], [None]),
        ("all_to_all", 16, False, [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4, [0, 1, 2, 3] * 4),
    ],
)
def test_collectives_demand_what_mpi_says(
    kind: str, chunks: int, combines: bool, before: list[int | None], after: list[int | None]
) -> None:
    collective = Collective(kind, 4, root=2)
    assert (collective.chunks, collective.combines) == (chunks, combines)
    assert [collective.before(chunk) for chunk in range(chunks)] == before
    assert [collective.after(chunk) for chunk in range(chunks)] == after
    with pytest.raises(IndexError):
        collective.before(chunks)


def test_columns_describe_the_plan() -> None:
    plan = opticoll.plan("all_gather", "wdm_ring:ranks=5,wavelengths=1", "ring")
    columns = plan.columns()
    assert {name: column.dtype.kind for name, column in columns.items()} == dict.fromkeys(
        ("chunk", "count", "source", "destination", "action", "direction", "fibre", "wavelength",
         "slot"), "u",
    )  # fmt: skip
    assert all(column.shape == (20,) for column in columns.values())
    assert ((columns["source"] + 1) % 5 == columns["destination"]).all()
    assert (np.bincount(columns["slot"]) == [5, 5, 5, 5]).all()
    assert (columns["direction"] == 0).all()


def test_failed_write_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.plan"
    path.write_text("precious")

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", no_space)
    with pytest.raises(errors.FileError, match="No space left"):
        opticoll.write_plan(opticoll.plan("all_gather", RING), path)
    assert path.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [path]


def shift(collective: Collective, fabric: Fabric, *, step: int = 1) -> Schedule:
    """Ring all_gather that passes blocks `step` ranks on; complete where step and N are coprime."""
    schedule = Schedule(collective)
    ranks = np.arange(fabric.ranks)
    for turn in range(fabric.ranks - 1):
        schedule.step((ranks - step * turn) % fabric.ranks, ranks, (ranks + step) % fabric.ranks)
    return schedule


def test_own_function_is_planned_and_verified() -> None:
    plan = opticoll.plan("all_gather", RING, shift)
    assert plan.algorithm.endswith(":shift")
    assert plan.slots == 15
    assert plan.verify() == []


def test_own_function_that_does_not_deliver_is_caught() -> None:
    def every_other(collective: Collective, fabric: Fabric) -> Schedule:
        return shift(collective, fabric, step=2)

    plan = opticoll.plan("all_gather", RING, every_other)
    # In 15 turns a block visits the 8 ranks of its parity twice; 8 other ranks never get it.
    missing = [violation for violation in plan.verify() if violation.kind == "missing"]
    assert {(violation.rank, violation.chunk) for violation in missing} == {
        (rank, chunk) for rank in range(16) for chunk in range(16) if (rank - chunk) % 2
    }


@pytest.mark.parametrize(
    ("claims", "holds"),
    [
        ({"neighbours_only": True}, True),
        ({"schedule_steps": 15}, True),
        ({"schedule_steps": 14}, False),
        ({"chunks_sent_per_rank": 15}, True),
        ({"chunks_sent_per_rank": 14}, False),
        ({"paper_steps": 3}, True),
    ],
)
def test_claims_of_an_own_function_are_enforced(claims: dict[str, Any], holds: bool) -> None:
    def claimed(collective: Collective, fabric: Fabric) -> Schedule:
        schedule = shift(collective, fabric)
        schedule.claim(**claims)
        return schedule

    plan = opticoll.plan("all_gather", RING, claimed)
    kinds = [violation.kind for violation in plan.verify()]
    assert kinds == ([] if holds else ["claim"])
    assert plan.claimed_steps == claims.get("paper_steps")


def test_own_algorithm_is_compared_like_any_other() -> None:
    comparison = opticoll.compare("all_gather", RING, ["ring", shift])
    ring, own, _auto = comparison.rows
    assert own["algorithm"].endswith(":shift")
    for key in ("steps", "transfers", "time_ps", "wavelengths_used", "verified"):
        assert own[key] == ring[key]
    assert comparison.refusals == []


STEPS: dict[str, tuple[tuple[Any, ...], str]] = {
    "rank too high": ((0, 0, 16), "destination: 16"),
    "negative rank": ((0, -1, 1), "source: -1"),
    "chunk too high": ((16, 0, 1), "chunk: 16"),
    "no chunks": ((0, 0, 1, 0), "count: 0"),
    "fractions": ((0.5, 0, 1), "chunk: must be integers"),
    "words": (("a", 0, 1), "chunk: must be integers"),
    "truth values": ((True, 0, 1), "chunk: must be integers"),
    "two dimensions": (([[0]], 0, 1), "one dimension"),
    "different lengths": (([0, 1], [0, 1, 2], 3), "chunk has 2 entries, source has 3"),
    "unknown action": ((0, 0, 1, 1, "move"), "`move`"),
    "beyond 64 bits": ((2**70, 0, 1), "chunk"),
}


@pytest.mark.parametrize("name", STEPS)
def test_bad_step_is_refused_and_adds_nothing(name: str) -> None:
    arguments, message = STEPS[name]
    schedule = Schedule(Collective("all_gather", 16))
    with pytest.raises(errors.ScheduleError, match=message):
        schedule.step(*arguments)
    assert (schedule.steps, len(schedule)) == (0, 0)


def test_step_broadcasts_single_numbers() -> None:
    schedule = Schedule(Collective("broadcast", 4))
    schedule.step(0, 0, [1, 2, 3])
    assert (schedule.steps, len(schedule)) == (1, 3)
    schedule.step([], [], [])
    assert (schedule.steps, len(schedule)) == (2, 3)


@given(
    st.lists(
        st.sampled_from(["ring", "optree:k=2", "wrht:group_size=5,striping=true", "m.n:f,a=1,b=x"]),
        min_size=1,
    )
)
def test_lists_of_algorithms_are_split_where_they_were_joined(algorithms: list[str]) -> None:
    assert split_algorithms(",".join(algorithms)) == algorithms


@given(st.integers(min_value=1, max_value=2**40), st.integers(min_value=0, max_value=20))
def test_range_of_sizes_grows_fourfold_up_to_its_end(first: int, doublings: int) -> None:
    last = first * 2**doublings
    sizes = split_sizes(f"{first}B..{last}B")
    steps = [first * 4**power for power in range(doublings // 2 + 1)]
    assert sizes == [*steps, *([last] if doublings % 2 else [])]


@given(st.lists(st.integers(min_value=1, max_value=10**6), min_size=1, unique=True))
def test_lists_of_counts_are_read_as_written(counts: list[int]) -> None:
    assert split_counts("--ranks", ", ".join(map(str, counts))) == counts


def test_lists_of_a_comparison_may_be_one_text() -> None:
    comparison = opticoll.compare("all_gather", RING, "ring,optree:k=2", sizes="1KiB..4KiB")
    cases = [(row["algorithm"], row["size_bytes"]) for row in comparison.rows]
    assert cases == [
        (name, size) for name in ("ring", "optree:k=2", "auto") for size in (1024, 4096)
    ]
    row, _auto = opticoll.compare("all_gather", RING, "ring", sizes="4MiB").rows
    assert row["size_bytes"] == 2**22


def test_fabric_may_be_a_file(tmp_path: Path) -> None:
    path = tmp_path / "ring.yaml"
    path.write_text("family: wdm_ring\nranks: 6\nwavelengths: 2\n")
    assert opticoll.plan("all_gather", str(path), "ring").fabric.ranks == 6
    row, _auto = opticoll.compare("all_gather", str(path), "ring").rows
    assert row["ranks"] == 6


def test_the_planner_refuses_an_assignment_it_would_not_use() -> None:
    fabric = "wdm_ring:ranks=16,wavelengths=2"
    for algorithm in ("relay_tree", "auto"):
        with pytest.raises(opticoll.errors.AlgorithmError, match="assigns wavelengths itself"):
            opticoll.plan("all_gather", fabric, algorithm, wavelength="best_fit")


FOLDED = "wdm_ring:ranks=64,wavelengths=8"


def test_folded_plans_look_like_any_other(tmp_path: Path) -> None:
    plan = opticoll.plan("all_reduce", FOLDED, "relay_tree:pieces=2", size="1MiB")
    assert plan.rotation_symmetric
    assert plan.verify() == []
    assert len(plan) == 2 * 2 * 64 * 63
    assert plan.wavelengths_used == 8
    columns = plan.columns()
    assert all(len(column) == len(plan) for column in columns.values())
    for slot in range(plan.slots):
        here = plan.slot_columns(slot)
        np.testing.assert_array_equal(here["transfer"], np.flatnonzero(columns["slot"] == slot))
        for name, column in columns.items():
            np.testing.assert_array_equal(here[name], column[here["transfer"]], name)
    for transfer in plan.simulate(policy="per_port").critical_path["transfer"]:
        ends = (columns["source"][transfer], columns["destination"][transfer])
        assert plan.ends(transfer) == ends
    with pytest.raises(IndexError):
        plan.ends(len(plan))
    opticoll.write_plan(plan, tmp_path / "folded.plan")
    read = opticoll.read_plan(tmp_path / "folded.plan")
    assert read.rotation_symmetric
    assert read == plan
    assert read.to_text() == plan.to_text()
    # The reference verifier expands the file with a parser of its own.
    assert reference.verify_text(plan.to_text()) == []
    # Without one rotation of a transfer the plan is neither rotation-symmetric nor right.
    text = plan.to_text().replace(" x64 ", " x63 ", 1).replace(f"end {len(plan)}", "end 16127")
    broken = opticoll.Plan.from_text(text)
    assert not broken.rotation_symmetric
    assert broken.verify() != []


def test_columns_of_a_plan_too_large_for_them_are_refused() -> None:
    plan = opticoll.plan("all_reduce", "optree_paper", "relay_tree:pieces=64")
    assert len(plan) == 2 * 64 * 1024 * 1023
    assert plan.verify() == []
    # A rank lacks 1023 blocks: from both sides in every slot but the last of the all_gather, which
    # is the first of the reduce_scatter.
    assert len(plan.slot_columns(0)["transfer"]) == 64 * 1024
    assert len(plan.slot_columns(511)["transfer"]) == 2 * 64 * 1024
    assert len(plan.slot_columns(1023)["transfer"]) == 64 * 1024
    with pytest.raises(opticoll.errors.ScheduleError, match="slot_columns"):
        plan.columns()


def test_measure_gives_the_row_of_compare() -> None:
    fabric = "optree_paper:ranks=16,wavelengths=2"
    plan = opticoll.plan("all_gather", fabric, "ring")
    compared = opticoll.compare("all_gather", fabric, "ring", sizes="1MiB", policy="free").rows
    row = opticoll.measure(plan, "1MiB", policy="free")
    assert {**row, "command": compared[0].command} == dict(compared[0])


def test_a_trace_is_read_from_its_content_as_from_its_file(tmp_path: Path) -> None:
    import zstandard

    content = (
        b"# app=hello ranks=2\nrank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns\n"
        b"0,Send,1,8,0,7,0,,100\n1,Recv,0,0,8,7,0,,40\n"
    )
    (tmp_path / "hello.csv").write_bytes(content)
    sources = (tmp_path / "hello.csv", content, zstandard.ZstdCompressor().compress(content))
    times = {opticoll.replay(opticoll.read_trace(one))["time_ps"] for one in sources}
    # Rank 1 waits from 40 ns on for a message that is sent at 100 ns.
    assert times == {100_000}


def test_traffic_bursts_and_congestion_are_those_of_the_command_line() -> None:
    # 72 terminals, 10 messages of 2 KiB each.
    dragonfly = "dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2"
    done = opticoll.traffic(dragonfly, "uniform", size="2KiB", period="1us", messages=10)
    assert done.bytes_delivered == 72 * 10 * 2048 == done.outcome.bytes_delivered
    ladder = "wdm_ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s"
    lost = opticoll.bursts(ladder, {"bursts": "1e4", "warm_up": "0"})
    assert (lost.bursts, lost.lost, lost.outcome.lost) == (10_000, 0, 0)
    ring = opticoll.congestion(
        "all_gather",
        "wdm_ladder:rungs=5,wavelengths=4,rate=10Gb/s,latency=0s",
        "ring",
        size="1MB",
        settings={"ports": "2", "replications": "1"},
    )
    # 9 steps, each with set-up, 1 MB at 10 Gb/s and release.
    assert (ring.verified, ring.time_s, len(ring.outcome.runs)) == (True, 0.0181, 1)


def test_notebooks_show_plans_outcomes_tables_and_comparisons() -> None:
    ring = "wdm_ring:ranks=8,wavelengths=2"
    plan = opticoll.plan("all_gather", ring, "ring")
    outcome = plan.simulate("1MiB")
    comparison = opticoll.compare("all_gather", ring, "ring", sizes="1KiB,1MiB")
    shown = [one._repr_html_() for one in (plan, outcome, outcome.slots, comparison)]
    assert all("<table>" in text for text in shown)
    assert "<svg" in shown[0]
    assert opticoll.format_time(outcome.time_ps)[:4] in shown[1]
    assert shown[2].count("<tr>") == 1 + plan.slots
    assert shown[3].count("<tr>") == 1 + len(comparison.rows)


def test_a_comparison_is_drawn_and_becomes_a_dataframe(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    comparison = opticoll.compare("all_gather", "crossbar:ranks=4", "ring", sizes="1KiB,1MiB")
    frame = comparison.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["time_ps"]) == [row.time_ps for row in comparison.rows]
    (path,) = comparison.plot(tmp_path / "times.svg")
    assert path.read_text(encoding="utf-8").count("<path") > 10


def test_plans_outcomes_and_tables_become_dataframes() -> None:
    pytest.importorskip("pandas")
    plan = opticoll.plan("all_gather", "wdm_ring:ranks=8,wavelengths=2", "ring")
    outcome = plan.simulate("1MiB")
    assert list(plan.to_pandas().columns) == list(plan.columns())
    assert len(plan.to_pandas()) == len(plan)
    assert outcome.to_pandas()["time_ps"].tolist() == [outcome.time_ps]
    assert outcome.slots.to_pandas()["end_ps"].tolist() == outcome.slots["end_ps"].tolist()
    links = outcome.links.to_pandas()
    assert list(links.index.names) == list(outcome.links.axes)
    assert links.loc[(1, 3), "bytes"] == outcome.links["bytes"][1, 3]


BURSTS = {"bursts": "1e3", "warm_up": "0"}


@pytest.mark.parametrize("name", ["circuit", "fluid", "use of links", "packet", "burst"])
def test_an_outcome_draws_what_it_measured(name: str, tmp_path: Path) -> None:
    path = tmp_path / "outcome.svg"
    plan = opticoll.plan("all_gather", "torus:dims=4x2", "ring")
    if name == "circuit":
        plan = opticoll.plan("all_gather", "wdm_ring:ranks=8,wavelengths=2", "ring")
    made = {
        "circuit": lambda: plan.simulate("1MiB").plot(path),
        "fluid": lambda: plan.simulate("1MiB").plot(path, title="A ring"),
        "use of links": lambda: plan.simulate("1MiB", link_bin="10us").plot(path, plan),
        "packet": lambda: plan.simulate("64KiB", simulator="packet").plot(path, plan),
        "burst": lambda: opticoll.bursts(
            "wdm_ladder:rungs=3,hosts=2,wavelengths=4", BURSTS
        ).outcome.plot(path),
    }
    made[name]()
    assert path.read_text(encoding="utf-8").count("<path") > 10


def test_an_outcome_without_times_is_not_drawn(tmp_path: Path) -> None:
    plan = opticoll.plan("all_gather", "crossbar:ranks=1", "ring")
    with pytest.raises(opticoll.OpticollError, match="the plan has no slots"):
        plan.simulate("1KiB").plot(tmp_path / "none.svg")
    row = opticoll.replay(Path(__file__).parent / "data/ep.A.16.goal.zst", "zero")
    with pytest.raises(opticoll.OpticollError, match="nothing to draw over time"):
        row.outcome.plot(tmp_path / "none.svg")
