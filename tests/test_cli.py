"""The command line: what each command prints, writes and returns.

Expected numbers come from the papers: 4-ary OpTree on 16 ranks and 2 wavelengths takes 4 + 8 = 12
slots; a step of d = 4 MiB on a 40 Gb/s wavelength takes 838.8608 us, and 25 us to reconfigure.
"""

from __future__ import annotations

import dataclasses
import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import opticoll
from opticoll.cli.main import app
from opticoll.commands import COMMANDS
from opticoll.inputs.scenarios import Scenario
from opticoll.inputs.settings import SETTING_NAMES
from opticoll.names import algorithm_names, known_names, plans_by_size
from opticoll.outputs import records
from opticoll.outputs.records import KINDS, record_rows
from support import RING, Run

SCHEMAS = {name: import_module(f"opticoll.commands.{name}").COMMAND.schema() for name in COMMANDS}
TREE = "optree:radices=4x4"
STEP_PS = 838_860_800 + 25_000_000


def validate(name: str, value: Any) -> None:
    """Checks a value against a command's schema, which must describe all its keys."""
    schema = SCHEMAS[name]
    Draft202012Validator(schema).validate(value)
    if isinstance(value, dict):
        shapes = schema.get("oneOf", [schema])
        assert any(value.keys() <= shape.get("properties", {}).keys() for shape in shapes)


def run_json(run: Run, schema: str, *arguments: str | Path, code: int = 0) -> Any:
    finished = run(*arguments, "--json")
    assert finished.code == code, finished.err
    value = json.loads(finished.out)
    validate(schema, value)
    return value


DRAGONFLY = "dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=1"


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_schema_is_a_schema_with_a_title(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["title"]


def test_schemas_notice_a_missing_key(run: Run) -> None:
    row = run_json(run, "plan", "plan", "all_gather", "--fabric", RING)
    for key in row.keys() - {"command"}:  # rows made in Python have none
        with pytest.raises(Exception, match="required property"):
            validate("plan", {other: row[other] for other in row if other != key})


def test_plan_names_the_default_algorithm(run: Run) -> None:
    finished = run("plan", "broadcast", "--fabric", RING, "--root", "3")
    assert "(chosen by auto)" in finished.out
    assert "root 3" in finished.out


def test_plan_json_holds_the_papers_numbers(run: Run) -> None:
    row = run_json(run, "plan", "plan", "allgather", "--fabric", RING, "--algorithm", TREE)
    assert row["collective"] == "all_gather"
    assert (row["ranks"], row["wavelengths"], row["size_bytes"]) == (16, 2, 4 * 2**20)
    assert (row["steps"], row["claimed_steps"], row["transfers"]) == (12, 12, 16 * 15)
    assert row["time_ps"] == 12 * STEP_PS
    assert row["time_s"] == pytest.approx(12 * STEP_PS / 1e12, rel=1e-12)
    # 15 blocks reach a rank over 2 wavelengths from either side, at best without a pause.
    assert 15 / 4 <= row["bound_steps"] <= row["steps"]
    assert 15 / 4 * 838_860_800e-12 <= row["bound_time_s"] <= row["time_s"]
    assert (row["verified"], row["violations"]) == (True, [])


def test_auto_gives_its_reasons_and_the_runners_up(run: Run) -> None:
    arguments = ("plan", "all_gather", "--fabric", RING, "--algorithm", "Auto")
    row = run_json(run, "plan", *arguments)
    assert row["algorithm"] == "auto"
    assert row["chosen"] != row["algorithm"]
    first, *others = row["candidates"]
    assert (first["name"], first["steps"]) == (row["chosen"], row["steps"])
    assert first["simulated"]
    assert first["time_s"] == pytest.approx(row["time_s"])
    assert others
    for one in others:
        assert first["time_s"] <= one["time_s"] or not one["simulated"]
    assert row["chosen"] in row["reasons"][0]
    said = run(*arguments).out
    assert f"{row['chosen']} (chosen by auto)" in said
    for one in others[:3]:
        assert one["name"] in said
    assert all(word in said for word in ("candidate", "simulated", "cannot be faster"))


def test_other_algorithms_are_not_chosen_from_anything(run: Run) -> None:
    row = run_json(run, "plan", "plan", "all_gather", "--fabric", RING, "--algorithm", "ring")
    assert (row["candidates"], row["reasons"]) == ([], [])
    assert row["chosen"] == row["algorithm"] == "ring"


@pytest.mark.parametrize(
    ("fabric", "algorithm", "line"),
    [
        # C_5(16) = 20 <= 4 * 5, while C_4(16) = 22 > 4 * 4.
        (RING, "relay_tree", r"steps 5, lower bound 5 \(relay_tree\), gap 0 %; "),
        # 12 / 5 - 1 = 140 %.
        (RING, TREE, r"steps 12, lower bound 5 \(relay_tree\), gap 140 %; time 10\.37 ms, "),
        ("wdm_ring:ranks=1,wavelengths=1", "ring", r"steps 0, lower bound 0 \(receive\); time 0 s"),
    ],
)
def test_a_plan_begins_with_a_line_that_says_all(
    run: Run, fabric: str, algorithm: str, line: str
) -> None:
    finished = run("plan", "all_gather", "--fabric", fabric, "--algorithm", algorithm)
    (first, *_) = finished.out.splitlines()
    assert re.match(line, first), first
    assert re.search(r"; time [0-9.]+ \w+, bound [0-9.]+ \w+ \([a-z_]+\)", first), first
    assert first.endswith("; policy every_step; verified")


SOME_FABRICS = [
    *(RING, DRAGONFLY, "torus:dims=4x4", "circuit_switch:ranks=8", "wss_grid:rows=3,columns=4"),
    *("wdm_torus:dims=4x4,wavelengths=2", "dgx_h100:boxes=2,outside=circuit_switch"),
    *("dgx_h100", "dgx_h100:boxes=2"),
]
"""Every listed algorithm runs on one of these."""


@pytest.mark.parametrize(
    ("collective", "algorithm"),
    [(one["collective"], one["name"]) for one in record_rows("algorithms") if one["collective"]],
)
def test_every_listed_algorithm_plans_and_is_verified(
    run: Run, collective: str, algorithm: str
) -> None:
    asked = ("plan", collective, "--algorithm", algorithm, "--json", "--fabric")
    done = (run(*asked, fabric) for fabric in SOME_FABRICS)
    row = json.loads(next(one.out for one in done if one.code == 0))
    validate("plan", row)
    assert (row["collective"], row["verified"]) == (collective, True)
    assert row["algorithm"].partition(":")[0] == algorithm
    assert plans_by_size(algorithm) or row["chosen"].partition(":")[0] == algorithm


@pytest.mark.parametrize("name", ["out.plan", "out.plan.zst", "out.txt"])
def test_plan_file_verifies_and_simulates_as_what_it_was_written_from(
    run: Run, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    options = ("--fabric", RING, "--algorithm", TREE, "--size", "1MB")
    planned = run_json(run, "plan", "plan", "all_gather", *options, "--output", path)
    assert path.exists()
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    assert run_json(run, "verify", "verify", path)["verified"] is True
    simulated = run_json(run, "simulate", "simulate", path)
    assert simulated.pop("command").endswith(name)
    # Only `plan` prints the time under another policy.
    for name in ("command", "on_change_time_s", "on_change_algorithm"):
        del planned[name]
    assert {key: simulated[key] for key in planned} == planned
    assert simulated["size_bytes"] == 1_000_000
    assert simulated["simulator"] == "circuit"


def test_zst_file_is_compressed(run: Run, tmp_path: Path) -> None:
    options = ("plan", "all_gather", "--fabric", RING, "--output")
    run(*options, tmp_path / "a.plan")
    run(*options, tmp_path / "a.plan.zst")
    plain = (tmp_path / "a.plan").read_bytes()
    compressed = (tmp_path / "a.plan.zst").read_bytes()
    assert plain.startswith(b"opticoll plan 1\n")
    assert compressed.startswith(b"\x28\xb5\x2f\xfd")
    assert len(compressed) < len(plain)


def test_written_file_has_the_usual_permissions(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.plan"
    run("plan", "all_gather", "--fabric", RING, "--output", path)
    plain = tmp_path / "plain"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode


def without(plan_file: Path, dropped: list[str], left: int) -> Path:
    """Writes the plan without some of its lines, with `left` lightpaths."""
    lines = [line for line in plan_file.read_text().splitlines() if line not in dropped]
    path = plan_file.with_name("broken.plan")
    path.write_text("\n".join([*lines[:-1], f"end {left}"]) + "\n")
    return path


def without_one(plan_file: Path) -> Path:
    """Writes the plan without one lightpath of its first stage."""
    lines = plan_file.read_text().splitlines()
    single = next(line for line in lines if line.startswith("copy") and " x" not in line)
    return without(plan_file, [single], 239)


def test_plan_without_a_lightpath_is_violated_where_it_is_missed(run: Run, plan_file: Path) -> None:
    path = without_one(plan_file)
    finished = run("verify", path)
    assert finished.code == 1
    assert "verified: NO: 4 violations" in finished.out
    answer = run_json(run, "verify", "verify", path, code=1)
    assert answer["verified"] is False
    # The receiver lacks the block in the end, and cannot hand it to its 3 siblings in stage 2.
    kinds = sorted(violation["kind"] for violation in answer["violations"])
    assert kinds == ["missing", "not_held", "not_held", "not_held"]
    assert all(violation["sentence"] in finished.out for violation in answer["violations"])


def test_people_see_twenty_violations_and_the_count_of_the_rest(run: Run, plan_file: Path) -> None:
    lines = plan_file.read_text().splitlines()
    empty = without(plan_file, [line for line in lines if line.startswith("copy")], 0)
    # Every one of 16 ranks lacks the blocks of 15 others.
    assert len(run_json(run, "verify", "verify", empty, code=1)["violations"]) == 16 * 15
    shown = run("verify", empty).out
    assert "240 violations" in shown
    assert "and 220 more" in shown
    assert len(shown.splitlines()) == 2 + 20 + 1


def test_simulating_a_violated_plan_warns_and_exits_with_one(run: Run, plan_file: Path) -> None:
    finished = run("simulate", without_one(plan_file))
    assert finished.code == 1
    assert "warning: the plan is violated" in finished.err


def test_verify_builds_what_is_no_file(run: Run) -> None:
    answer = run_json(run, "verify", "verify", "all_reduce", "--fabric", RING)
    assert answer["verified"] is True


def test_same_fabric_in_other_words_fits_a_plan_file(run: Run, plan_file: Path) -> None:
    assert run("verify", plan_file, "--fabric", f"{RING},rate=40000Mb/s,fibres=1").code == 0


def test_per_step_times_add_up_to_the_whole(run: Run, plan_file: Path) -> None:
    answer = run_json(run, "simulate", "simulate", plan_file, "--per", "step")
    steps = answer["per_step"]
    assert [step["end_ps"] for step in steps] == [STEP_PS * (slot + 1) for slot in range(12)]
    assert sum(step["lightpaths"] for step in steps) == 240
    assert answer["critical_path"][-1]["end_ps"] == answer["time_ps"]


def test_per_link_bytes_add_up_to_bytes_times_hops(run: Run, plan_file: Path) -> None:
    answer = run_json(run, "simulate", "simulate", plan_file, "--per", "link", "--size", "1000B")
    columns = opticoll.read_plan(plan_file).columns()
    distance = (columns["destination"].astype(int) - columns["source"]) % 16
    hops = [
        16 - steps if way else steps
        for steps, way in zip(distance, columns["direction"], strict=True)
    ]
    assert sum(link["bytes"] for link in answer["per_link"]) == 1000 * sum(hops)


SCENARIO = """\
collective: all_gather
fabric:
  family: wdm_ring
  ranks: 16
  wavelengths: 2
algorithms: [ring, "optree:radices=4x4"]
sizes: [1KiB, 4MiB]
policy: on_change
"""


def test_scenario_file_is_the_same_as_its_options(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    options = (
        "--fabric", RING, "--algorithms", "ring,optree:radices=4x4",
        "--sizes", "1KiB,4MiB", "--policy", "on_change",
    )  # fmt: skip
    from_file = run_json(run, "compare", "compare", path)
    assert from_file == run_json(run, "compare", "compare", "all_gather", *options)


def test_options_win_over_the_scenario_file(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    rows = run_json(run, "compare", "compare", path, "--size", "2MiB", "--policy", "free")
    assert {(row["size_bytes"], row["policy"]) for row in rows} == {(2**21, "free")}


@pytest.mark.parametrize(
    "content",
    [
        "family: wdm_ring\nranks: 16\nwavelengths: 2\nrate: 40Gb/s\n",
        "preset: optree_paper\nranks: 16\nwavelengths: 2\n",
    ],
)
def test_fabric_file_is_a_fabric(run: Run, tmp_path: Path, content: str) -> None:
    path = tmp_path / "ring.yaml"
    path.write_text(content)
    row = run_json(run, "plan", "plan", "all_gather", "--fabric", path)
    assert row["fabric"] == opticoll.Fabric(RING).spec


def test_scenario_finds_its_fabric_file_beside_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "ring.yaml").write_text("family: wdm_ring\nranks: 6\nwavelengths: 2\n")
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("collective: all-reduce\nfabric: ring.yaml\nalgorithms: ring\n")
    row, _auto = run_json(run, "compare", "compare", scenario)
    assert (row["collective"], row["ranks"], row["size_bytes"]) == ("all_reduce", 6, 2**22)


def test_show_lists_the_lightpaths_of_a_slot(run: Run, plan_file: Path) -> None:
    answer = run_json(run, "show", "show", plan_file, "--slot", "11")
    columns = opticoll.read_plan(plan_file).columns()
    expected = (columns["slot"] == 11).sum()
    assert len(answer["lightpaths"]) == expected
    text = run("show", plan_file, "--slot", "11").out
    assert f"slot 11: {expected} lightpaths" in text
    assert sum(line.startswith("copy") for line in text.splitlines()) == expected


@pytest.mark.parametrize("view", ["ring", "space_time"])
def test_show_draws_a_picture(run: Run, plan_file: Path, tmp_path: Path, view: str) -> None:
    path = tmp_path / "picture.svg"
    finished = run("show", plan_file, "--view", view, "--figure", path)
    assert finished.code == 0
    assert path.read_text().lstrip().startswith("<?xml")


@pytest.mark.parametrize("kind", [None, *KINDS])
def test_list_names_every_record(run: Run, kind: str | None) -> None:
    arguments = [] if kind is None else [kind]
    records = run_json(run, "list", "list", *arguments)
    shown = " ".join(run("list", *arguments).out.split())
    assert records
    for record in records:
        if kind is None:
            assert f"{record['kind']} " in shown
        else:
            assert record["name"] in shown
            assert record["summary"] in shown


@pytest.mark.parametrize("kind", KINDS)
def test_list_of_a_name_shows_its_record_in_full(run: Run, kind: str) -> None:
    collectives = {*known_names("collectives")}
    for record in record_rows(kind)[:4]:
        if record["name"] in collectives:
            continue
        shown = " ".join(run("list", record["name"]).out.split())
        assert record["summary"] in shown
        assert record["citation"] in shown
        assert all(option["meaning"] in shown for option in record["options"])


@pytest.mark.parametrize("kind", ["algorithms", "models", "devices", "wavelengths"])
def test_options_state_their_values_and_default_in_fields(run: Run, kind: str) -> None:
    for record in run_json(run, "list", "list", kind):
        for option in record["options"]:
            assert option["range"], option
            assert option["required"] or option["default"], option
            assert "default" not in option["meaning"]


def test_list_shows_what_a_specification_names(run: Run) -> None:
    shown = run("list", "ring:stripes=all").out
    assert shown == run("list", "ring").out
    assert re.search(r"^  stripes +number of wavelengths", shown, re.MULTILINE)
    for fabric in ("crossbar:ranks=4,rate=1Gb/s,latency=0s", "torus:dims=2x2"):
        asked = ("--fabric", fabric, "--algorithm", "ring:stripes=all")
        refused = run("plan", "all_gather", *asked)
        assert refused.code == 2
        assert "stripes are wavelengths of a wdm_ring, and " in refused.err


def test_list_is_one_screen_and_says_what_to_type_next(run: Run) -> None:
    lines = run("list").out.splitlines()
    assert len(lines) <= HELP_LINES
    assert max(map(len, lines)) <= HELP_COLUMNS
    for line in (line for line in lines if line.startswith("opticoll list")):
        command, _ = line.split("  ", 1)
        assert run(*command.split()[1:]).code == 0


def test_wavelength_assignments_are_taken_from_the_list(run: Run) -> None:
    for record in record_rows("wavelengths"):
        arguments = ("--fabric", RING, "--algorithm", "one_stage", "--wavelength", record["name"])
        row = run_json(run, "plan", "plan", "all_gather", *arguments)
        assert row["verified"] is True
        # Lemma 1: 32 wavelengths, hence 16 slots of two; first-fit orders may need more.
        assert row["steps"] >= 16


def test_same_command_prints_the_same_bytes(run: Run) -> None:
    arguments = ("plan", "all_gather", "--fabric", RING, "--json")
    coloured = (*arguments, "--algorithm", "optree", "--wavelength", "best_fit")
    for command in (arguments, coloured):
        first = run(*command)
        assert first.code == 0
        assert first.out == run(*command).out


HELP_LINES, HELP_COLUMNS = 41, 80

NOT_NOUNS = {
    "A", "An", "The", "As", "At", "By", "From", "How", "In", "Of", "So", "Such", "Until", "What",
    "When", "Which", "Who", "Whether", "Add", "Compute", "Draw", "Keep", "Leave", "Print", "Say",
    "Send", "Show", "Take", "Write",
}  # fmt: skip
"""First words of texts that do not define a value."""


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_fits_a_screen_and_ends_with_an_example(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(HELP_COLUMNS))
    finished = run(*name.split(), "--help")
    assert finished.code == 0
    lines = finished.out.splitlines()
    assert len(lines) <= HELP_LINES
    assert max(map(len, lines)) <= HELP_COLUMNS
    assert finished.out == run(*name.split(), "-h").out
    example = finished.out.partition("\nExample")[2].replace("\\\n", " ").splitlines()
    assert example[-1].startswith(f"  opticoll {name or 'compare'} ")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_its_value_is_and_its_default(
    run: Run, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    text = run(name, "--help-all").out.partition("\n\nExample:")[0]
    assert "default: False" not in text
    assert "()" not in text
    entries = re.findall(r"^  (--\S.*(?:\n {6,}.*)*)", text, re.MULTILINE)
    assert entries
    for entry in entries:
        label, _, said = " ".join(
            re.sub(r"(?<=\S) {2,}", "\n", entry, count=1).split(" ")
        ).partition("\n")
        said = " ".join(said.split())
        assert said[0].isupper(), entry
        assert said.split()[0] not in NOT_NOUNS, entry
        assert not said.endswith("."), entry
        if " " in label.replace(", ", "") and not label.endswith(("FILE", "FOLDER")):
            assert "(default: " in said or "(required" in said, entry


def test_version_is_that_of_the_package(run: Run) -> None:
    assert run("--version").out.strip() == f"opticoll {opticoll.__version__}"


def test_list_of_a_collective_holds_its_algorithms(run: Run) -> None:
    records = run_json(run, "list", "list", "AllGather")
    names = [record["name"] for record in records]
    assert names == algorithm_names("all_gather")
    assert "ring" in names
    assert "binary_tree" not in names


@pytest.mark.parametrize(
    ("algorithm", "recorded"),
    [
        ("OpTree:Radices=4x4", TREE),
        ("one-stage", "one_stage"),
        ("Neighbour-Exchange", "neighbour_exchange"),
    ],
)
def test_names_and_options_take_any_case_and_results_carry_the_recorded_name(
    run: Run, algorithm: str, recorded: str
) -> None:
    asked = ("--fabric", "wdm_ring:Ranks=16,WAVELENGTHS=2", "--algorithm", algorithm)
    row = run_json(run, "plan", "plan", "all_gather", *asked)
    assert (row["fabric"], row["algorithm"]) == (opticoll.Fabric(RING).spec, recorded)


def test_names_in_yaml_take_any_case_and_hyphens(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(
        "collective: All-Gather\nfabric:\n  family: WDM-Ring\n  ranks: 6\n  wavelengths: 1\n"
        "algorithms: Ring\npolicy: every-step\nsimulator: Circuit\n"
    )
    row, _auto = run_json(run, "compare", "compare", path)
    assert (row["algorithm"], row["policy"], row["simulator"]) == ("ring", "every_step", "circuit")


def test_bytes_are_counted_on_each_link(run: Run) -> None:
    # Five ranks pass four blocks one hop each; of four others on a ring, two are two hops away.
    options = ("all_gather", "--fabric", "electrical_ring:ranks=5", "--size", "1KB")
    for algorithm, hops in (("ring", 5 * 4), ("direct:order=at_once", 5 * (1 + 1 + 2 + 2))):
        for simulator in ("fluid", "packet", "bulk_synchronous"):
            named = ("--algorithm", algorithm, "--simulator", simulator)
            row = run_json(run, "simulate", "simulate", *options, *named)
            assert row["link_bytes"] == hops * 1000, (algorithm, simulator)
    lit = ("all_gather", "--fabric", "wdm_ring:ranks=5,wavelengths=4", "--size", "1KB")
    row = run_json(run, "simulate", "simulate", *lit, "--algorithm", "one_stage")
    assert row["link_bytes"] == 5 * (1 + 1 + 2 + 2) * 1000


def test_one_rank_has_no_slots_to_show(run: Run) -> None:
    finished = run("show", "all_gather", "--fabric", "wdm_ring:ranks=1,wavelengths=1")
    assert finished.code == 0
    assert "no slots" in finished.out
    assert "slot 0" not in finished.out


def test_writing_keeps_the_mode_and_follows_a_link(run: Run, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "a.plan", tmp_path / "link.plan"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    assert run("plan", "all_gather", "--fabric", RING, "--output", link).code == 0
    assert link.is_symlink()
    assert target.read_bytes().startswith(b"opticoll plan 1")
    assert target.stat().st_mode & 0o777 == 0o640


def test_unexpected_error_is_a_bug_and_exits_with_seventy(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("lost")

    monkeypatch.setattr(records, "record_rows", broken)
    finished = run("list")
    assert (finished.code, finished.out) == (70, "")
    (line,) = finished.err.splitlines()
    assert "internal error: KeyError: 'lost'" in line


EXAMPLES = Path(__file__).parents[1] / "examples"


def test_examples_run_as_they_stand(run: Run) -> None:
    row = run_json(run, "plan", "plan", "all_gather", "--fabric", EXAMPLES / "fabric.yaml")
    assert (row["ranks"], row["wavelengths"], row["verified"]) == (64, 8, True)
    rows = run_json(run, "compare", "compare", EXAMPLES / "scenario.yaml")
    # Two numbers of wavelengths, three algorithms and auto, three sizes.
    assert len(rows) == 2 * 4 * 3
    assert {row["wavelengths"] for row in rows} == {4, 8}
    assert {row["size_bytes"] for row in rows} == {2**16, 2**18, 2**20}
    assert all(row["verified"] and row["policy"] == "on_change" for row in rows)


def test_scenario_fields_and_exit_codes_are_documented() -> None:
    documented = (EXAMPLES.parent / "docs" / "scenario.md").read_text(encoding="utf-8")
    fields = {field.name for field in dataclasses.fields(Scenario)}
    fields -= {"origin", "overridden", "settings", "fabrics"}
    for field in ["fabric", *fields, *SETTING_NAMES]:
        assert f"`{field}`" in documented
    for code in (0, 1, 2, 70, 130):
        assert f"| {code} |" in documented


@pytest.mark.parametrize("command", COMMANDS)
def test_help_in_full_has_every_option(run: Run, command: str) -> None:
    """An option without a group of help would be taken and never shown."""
    shown = run(command, "--help-all").out
    taken = app[command].assemble_argument_collection()
    names = [name for one in taken if one.show for name in one.names if name.startswith("--")]
    options = {name for name in names if not name.startswith("--no-")}
    assert options
    shown_names = set(re.findall(r"--(?:no-)?[a-z-]+[a-z]", shown))
    assert {name for name in options if not {name, f"--no-{name[2:]}"} & shown_names} == set()


def test_an_algorithm_is_chosen_by_the_size(run: Run) -> None:
    asked = ("plan", "all_gather", "--fabric", "crossbar:ranks=16")
    for size, chosen in (("80KiB", "ring"), ("81919B", "bruck"), ("1MiB", "ring")):
        row = run_json(run, "plan", *asked, "--size", size, "--algorithm", "Bruck<80KiB, ring")
        assert row["chosen"] == chosen
        assert row["algorithm"] == "bruck<80KiB,ring"
    done = run(*asked, "--algorithm", "bruck<80KiB")
    assert done.code == 2
    assert "the value from this size on is missing" in done.err


def test_a_list_of_algorithms_may_have_rules(run: Run) -> None:
    done = run(
        *("compare", "all_gather", "--fabric", "crossbar:ranks=8", "--sizes", "1KiB,1MiB"),
        *("--algorithms", "ring,bruck<80KiB,ring", "--no-auto", "--json"),
    )
    rows = json.loads(done.out)
    assert [(row["algorithm"], row["chosen"]) for row in rows] == [
        ("ring", "ring"),
        ("ring", "ring"),
        ("bruck<80KiB,ring", "bruck"),
        ("bruck<80KiB,ring", "ring"),
    ]
