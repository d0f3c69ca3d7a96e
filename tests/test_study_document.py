"""Study files: points, conditions, derived values, searches, and messages about mistakes."""

from __future__ import annotations

import itertools
import shlex
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import opticoll
from opticoll.cli.main import app
from opticoll.commands import COMMANDS
from opticoll.errors import ConfigError, UsageError
from opticoll.formats.document import read_fields
from opticoll.study import document
from opticoll.study.expression import Expression, Quantity
from opticoll.study.points import command_line, command_of, options_of, parameters_of, points
from opticoll.study.search import Candidate, Found, Optimise, ValueOf, check, renamed, rounds
from support import Run, written_study


def listed(folder: Path, text: str) -> list[dict[str, Any]]:
    study = document.read(written_study(folder, f"study: s\ncommand: simulate\n{text}"))
    return [point.options for point in points(study)]


def test_points_are_the_product_of_grid_zip_and_points(tmp_path: Path) -> None:
    options = listed(
        tmp_path,
        "options: {collective: all_gather}\n"
        "points: [{fabric: 'wdm_ring:wavelengths=1'},"
        " {fabric: terarack, algorithm: [ring, auto]}]\n"
        "zip: {fabric.ranks: [4, 8], size: [1KiB, 2KiB]}\n"
        "grid: {policy: [free, on_change]}\n",
    )
    assert len(options) == (1 + 2) * 2 * 2
    assert options[0] == {
        "collective": "all_gather", "fabric": "wdm_ring:wavelengths=1,ranks=4",
        "size": "1KiB", "policy": "free",
    }  # fmt: skip
    assert {one["size"] for one in options if "ranks=8" in one["fabric"]} == {"2KiB"}


def test_ranges_grow_by_factors_or_by_sums_with_units(tmp_path: Path) -> None:
    options = listed(
        tmp_path,
        "options: {collective: all_gather, fabric: terarack}\n"
        "grid: {size: {from: 1KiB, to: 1MiB, times: 32}, root: {from: 0, to: 4, plus: 2}}\n",
    )
    assert [one["size"] for one in options][::3] == ["1KiB", "32KiB", "1MiB"]
    assert [one["root"] for one in options][:3] == [0, 2, 4]


def test_derived_values_and_conditions_know_axes_and_options_of_fabrics(tmp_path: Path) -> None:
    options = listed(
        tmp_path,
        "options: {collective: all_gather}\n"
        "points: [{fabric: wdm_ring, fabric.ranks: [8, 16], fabric.wavelengths: [2, 4, 16]},"
        " {fabric: 'crossbar:ranks=16'}, {fabric: 'crossbar:ranks=2'}]\n"
        "where: [ranks >= wavelengths, ranks > 2]\n"
        "derive: {fabric.rate: 25.6Tb/s / (2 * wavelengths)}\n",
    )
    assert [one["fabric"] for one in options] == [
        "wdm_ring:ranks=8,wavelengths=2,rate=6400Gb/s",
        "wdm_ring:ranks=8,wavelengths=4,rate=3200Gb/s",
        "wdm_ring:ranks=16,wavelengths=2,rate=6400Gb/s",
        "wdm_ring:ranks=16,wavelengths=4,rate=3200Gb/s",
        "wdm_ring:ranks=16,wavelengths=16,rate=800Gb/s",
        "crossbar:ranks=16",
    ]


def test_replications_are_seeds(tmp_path: Path) -> None:
    path = written_study(
        tmp_path,
        "study: s\ncommand: congestion\nreplications: {seed: 3}\n"
        "options: {collective: all_gather, fabric: 'wdm_ladder:rungs=4,hosts=4,wavelengths=4'}\n",
    )
    found = points(document.read(path))
    assert [(one.options["seed"], one.replication) for one in found] == [(0, 0), (1, 1), (2, 2)]
    assert len({one.key for one in found}) == 3


FEW = "{from: 1, to: 101, plus: 1}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("command: nothing", "line 2, command: `nothing` is not a command with points"),
        ("command: results", "line 2, command: `results` is not a command with points"),
        ("command: simulate\ngrid: {size: []}", "line 3, grid: give a list of values"),
        ("command: simulate\ngird: {size: 1}", "line 3, gird: there is no such field"),
        ("command: simulate\nzip: {size: [1, 2], root: [1]}", "the same number of values"),
        ("command: simulate\nwhere: import os", "`import os` is not an expression"),
        ("command: simulate\nwhere: __import__('os')", "the functions of expressions are min"),
        ("command: simulate\ngrid: {size: {from: 1KiB, to: 1s, times: 2}}", "same unit"),
        ("command: simulate\ngrid: {size: {from: 1KiB, to: 1MiB, times: 1}}", "a range grows"),
        ("command: simulate\noptions: {size: 1KiB}\ngrid: {size: [1KiB]}", "in options too"),
        ("command: simulate\ngrid: {a: {from: 1, to: 50000, plus: 1}}", "at most 10000 values"),
        (f"command: simulate\ngrid: {{a: {FEW}, b: {FEW}, c: {FEW}}}", "more than 1000000"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_study_is_said_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=r"study\.yaml") as refused:
        document.read(written_study(tmp_path, f"study: s\n{text}\n"))
    assert message in str(refused.value)


def test_a_name_that_no_point_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no point has a `rank`"):
        listed(tmp_path, "options: {collective: all_gather, fabric: terarack}\nwhere: rank > 1\n")


@pytest.mark.parametrize(
    "text",
    ["().__class__", "x[0]", "lambda: 1", "[a for a in b]", "open('f')", "a.b()", "2**64**64",
     "f'{a}'", "1us + 1B", "not 3", "'a' * 9", "(a := 3)", "a" * 2000, "9e999999999",
     "9e999999999B"],
)  # fmt: skip
def test_expressions_compute_and_do_nothing_else(text: str) -> None:
    with pytest.raises(UsageError):
        Expression(text).value({"a": 1, "b": 2, "x": "y"}.__getitem__)


def on_the_command_line(words: list[str]) -> Any:
    """Reads the parameters of a command as the command line does."""
    _, bound, _ = app.parse_args(words, exit_on_error=False, print_error=False)
    return command_of(words[0]).parameters(*bound.args, **vars(bound.kwargs["options"]))


LINES = [
    "simulate all_gather --fabric terarack --size 4MiB --per step --policy free --root 3",
    "simulate barrier --fabric=torus:dims=4x4 --link-bin 10us --cores 2 --wavelength first_fit",
    "compare all_gather --fabric terarack --fabric optree_paper --algorithms ring,optree:k=2",
    "train --fabric terarack --model alexnet --batch 64 --no-overlap --gradients float16",
    "congestion all_reduce --fabric wdm_ladder:rungs=4,hosts=4 --offered-load 0.4 --seed 7",
    "traffic --fabric torus:dims=4x4 --messages 10 --bytes 512B --jitter 5ns --simulator packet",
    "replay tests/data/ep.tit --cpu-factor 2 --collective all_reduce=ring --operations 1000000",
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.split()[0])
def test_options_are_read_as_on_the_command_line(line: str) -> None:
    words = shlex.split(line)
    known = {option.flag: option for option in options_of(words[0]).values() if option.flag}
    flags = {option.negative: option for option in known.values() if option.hint is bool}
    options: dict[str, Any] = {}
    rest = [
        part for word in words[1:] for part in (word.split("=", 1) if word[0] == "-" else [word])
    ]
    place = iter(one.name for one in options_of(words[0]).values() if not one.flag)
    while rest:
        word = rest.pop(0)
        if word in flags:
            options[flags[word].name] = False
        elif word in known:
            several = options.setdefault(known[word].name, [])
            several.append(rest.pop(0))
        else:
            options[next(place)] = word
    options = {name: one[0] if isinstance(one, list) and len(one) == 1 else one
               for name, one in options.items()}  # fmt: skip
    assert parameters_of(words[0], options) == on_the_command_line(words)
    again = shlex.split(command_line(words[0], options))[1:]
    assert on_the_command_line(again) == on_the_command_line(words)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in document.WITHOUT_POINTS])
def test_every_option_of_every_command_may_be_an_axis(name: str) -> None:
    shown = {flag for command in app[name].assemble_argument_collection(parse_docstring=False)
             for flag in command.names}  # fmt: skip
    output = {f"--{file.option}" for file in command_of(name).files} | {"--json"}
    flags = {one.flag for one in options_of(name).values()}
    missing = {flag for flag in shown if flag.startswith("--") and flag not in flags | output}
    others = ("--algorithm", "--op")  # second names
    assert all(flag.startswith(("--no-", "--empty-")) or flag in others for flag in missing)


def wanted(**fields: Any) -> Optimise:
    def refuse(place: Any, problem: str) -> ConfigError:
        return ConfigError(f"{place}: {problem}")

    return check(read_fields(Optimise, renamed(fields), refuse))


def searched(
    looked_for: Optimise, points: list[dict[str, Any]], time: Any
) -> tuple[list[tuple[dict[str, Any], str]], int]:
    """Searches where a point takes `time(point)`; returns the finds, and the points computed.

    `time` may return several results of a point by name.
    """
    proposed: list[dict[str, Any]] = []

    def value_of(expression: Expression, place: int) -> Any:
        taken = time(proposed[place])
        result = taken if isinstance(taken, dict) else {"time_s": taken}
        row = {**proposed[place], **result}
        unknown = taken is None or any(row.get(name, 0) is None for name in expression.names)
        return None if unknown else expression.value(row.__getitem__)

    search = rounds(looked_for, [Candidate(one, one.__getitem__) for one in points])
    give: ValueOf | None = None
    while True:
        try:
            proposed += search.send(give)  # type: ignore[arg-type]
        except StopIteration as end:
            found: list[Found] = end.value
            return [
                (proposed[one.place], ": ".join([one.what, ", ".join(one.told)]).rstrip(": "))
                for one in found
            ], len(proposed)
        give = value_of


def test_the_cheapest_point_that_meets_a_time_is_found_without_computing_dearer_ones() -> None:
    points = [{"wavelengths": count, "size": size} for size in (1, 2) for count in range(64, 0, -1)]
    looked_for = wanted(cheapest="wavelengths", meets="time_s <= 1/10", for_each=["size"])
    found, computed = searched(
        looked_for, points, lambda point: Fraction(point["size"], point["wavelengths"])
    )
    assert found == [
        ({"wavelengths": 10, "size": 1}, "cheapest for size = 1: wavelengths = 10, time_s = 0.1"),
        ({"wavelengths": 20, "size": 2}, "cheapest for size = 2: wavelengths = 20, time_s = 0.1"),
    ]
    assert computed <= 10 + 20 + 2 * 8


def test_nothing_is_found_where_nothing_meets_the_time() -> None:
    points = [{"wavelengths": count} for count in range(1, 20)]
    looked_for = wanted(cheapest="wavelengths", meets="time_s < 1")
    assert searched(looked_for, points, lambda point: 2) == ([], 19)
    assert searched(looked_for, points, lambda point: None) == ([], 19)


def test_a_cost_that_depends_on_results_is_minimised_over_all() -> None:
    points = [{"wavelengths": count} for count in range(1, 9)]
    looked_for = wanted(cheapest="wavelengths * time_s", meets="time_s < 20")
    found, computed = searched(
        looked_for, points, lambda point: 16 if point["wavelengths"] == 1 else 9
    )
    assert found == [({"wavelengths": 1}, "cheapest: wavelengths * time_s = 16, time_s = 16")]
    assert computed == 8


def test_a_pareto_front_has_every_point_that_no_other_beats() -> None:
    points = [
        {"cost": cost, "number": number} for cost, number in itertools.product(range(9), range(9))
    ]

    def time(point: dict[str, Any]) -> int:
        return int(point["cost"] * 7 + point["number"] * 5) % 23

    found, computed = searched(wanted(pareto=["cost", "time_s"]), points, time)
    every = [(one["cost"], time(one)) for one in points]
    front = {
        (cost, took) for cost, took in every
        if not any(a <= cost and b <= took and (a, b) != (cost, took) for a, b in every)
    }  # fmt: skip
    assert {(one["cost"], time(one)) for one, _ in found} == front
    assert computed == 81

    found, _ = searched(wanted(pareto=["cost", "time_s", "number"]), points, time)
    triples = [(one["cost"], time(one), one["number"]) for one in points]
    best = {
        one for one in triples
        if not any(other != one and all(a <= b for a, b in zip(other, one, strict=True))
                   for other in triples)
    }  # fmt: skip
    assert {(one["cost"], time(one), one["number"]) for one, _ in found} == best


def test_points_without_a_value_are_counted() -> None:
    points = [{"cost": cost, "lamp": lamp} for cost in (1, 2) for lamp in ("a", "b", "c")]
    prices = {"a": 5, "b": None, "c": 7}

    def results(point: dict[str, Any]) -> dict[str, Any]:
        return {"time_s": point["cost"], "price": prices[point["lamp"]]}

    lacking = {"cost": 1, "lamp": "b"}
    cheapest = {"cost": 1, "lamp": "a"}
    for looked_for, without in (
        (wanted(pareto=["cost", "price * time_s"]), "price * time_s"),
        (wanted(cheapest="price * time_s", meets="time_s < 9"), "price * time_s"),
        (wanted(cheapest="cost", meets="price < 6"), "price < 6"),
    ):
        found, _ = searched(looked_for, points, results)
        (left, words), (best, _), *others = found
        assert words == f"not compared: 2 of 6 points with unknown `{without}`, the first of them"
        assert (left, best, others) == (lacking, cheapest, [])
    # A point that misses a condition is left out anyway.
    found, _ = searched(wanted(pareto=["cost", "price"], meets="time_s < 2"), points, results)
    assert found[0][1] == "not compared: 1 of 6 points with unknown `price`, the first of them"


@pytest.mark.parametrize("crossing", [2, 3, 17, 500, 999, 1000])
def test_a_break_even_among_whole_numbers_is_exact(crossing: int) -> None:
    looked_for = wanted(
        break_even="wavelengths", of={"fabric": "ring"}, against={"fabric": "tree"},
        **{"from": 1, "to": 1000},
    )  # fmt: skip
    found, computed = searched(
        looked_for,
        [{}],
        lambda point: (
            1 if point["fabric"] == "tree" else Fraction(crossing, int(point["wavelengths"]))
        ),
    )
    (first, words), (second, _) = found
    assert first == {"fabric": "ring", "wavelengths": str(crossing)}
    assert second["fabric"] == "tree"
    ends = f"from wavelengths = {crossing}, not yet at {crossing - 1}"
    assert words == f"break-even: `of` is not worse than `against` {ends}, time_s = 1"
    assert computed <= 4 + 2 * 16


def test_a_break_even_of_a_time_is_within_its_share() -> None:
    looked_for = wanted(
        break_even="setup", of={"fabric": "ring"}, against={"fabric": "tree"}, within="0.1%",
        axis_of="of", **{"from": "1us", "to": "10ms"},
    )  # fmt: skip
    crossing = Fraction(123456, 10**9)

    def time(point: dict[str, Any]) -> Any:
        if point["fabric"] == "tree":
            assert "setup" not in point
            return crossing
        value = Expression("setup").value(point.__getitem__)
        assert isinstance(value, Quantity)
        return value.number

    ((point, _), _), _ = searched(looked_for, [{}], time)
    found = Expression("setup").value(point.__getitem__).number
    assert crossing < found <= crossing * Fraction(1002, 1000)


def test_sides_that_never_change_places_are_said() -> None:
    looked_for = wanted(
        break_even="size", of={"a": 1}, against={"a": 2}, **{"from": "1KiB", "to": "1GiB"}
    )
    ((_, words),), _ = searched(looked_for, [{}], lambda point: point["a"])
    assert words == "no break-even: `of` is not worse than `against` at both ends"


SIDES = {"break_even": "a", "of": {"b": 1}, "against": {"b": 2}}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "give one of"),
        ({"cheapest": "a", "pareto": ["a", "b"]}, "give one of"),
        ({"pareto": ["a"]}, "two or more expressions"),
        ({"break_even": "a"}, "needs from, to, of and against"),
        ({**SIDES, "from": "1ms", "to": "1us"}, "is less"),
        ({**SIDES, "from": "0", "to": "1"}, "above 0"),
    ],
)  # fmt: skip
def test_incomplete_searches_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        wanted(**fields)


RECONFIGURATION = """
study: reconfiguration
command: simulate
options: {collective: all_reduce, size: 1MiB, algorithm: ring}
optimise:
  break_even: fabric.reconfiguration
  from: 1us
  to: 10ms
  of: {fabric: "wdm_ring:ranks=8,wavelengths=2", policy: every_step}
  against: {fabric: "fat_tree:down=4x2,up=1x2,rate=10Gb/s"}
  axis_of: of
"""


def test_a_break_even_is_a_verified_row_of_the_store(run: Run, tmp_path: Path) -> None:
    study = written_study(tmp_path, RECONFIGURATION)
    row = opticoll.sweep(study, jobs=1)
    assert [one.what.partition(":")[0] for one in row.found] == [
        "break-even", "the other side of the break-even",
    ]  # fmt: skip
    found = opticoll.results(tmp_path / "study.sqlite", where="found != ''")
    assert len(found) == 2
    ring, tree = found
    assert ring["verified"]
    assert tree["verified"]
    assert tree["time_s"] < ring["time_s"] <= 1.02 * tree["time_s"]
    assert opticoll.sweep(study, jobs=1).computed == 0
    shown = run("results", tmp_path / "study.sqlite", "--found")
    assert "2 rows" in shown.out
    with pytest.raises(UsageError, match="has no shards"):
        opticoll.sweep(study, shard="1/2")


def test_energy_power_price_and_shares_have_units() -> None:
    names = {"energy_j": 0.004, "static_power_w": 1500, "price_usd": 900, "goodput": 0.995}
    condition = "energy_j < 5mJ and static_power_w < 2kW and price_usd < 1000 USD"
    for text, met in [
        (f"{condition} and goodput > 99%", True),
        ("energy_j < 3mJ", False),
        ("static_power_w < 1 kW", False),
    ]:
        assert Expression(text).value(lambda name: Fraction(str(names[name]))) is met


def test_a_search_in_a_study_file_is_checked_with_its_line(tmp_path: Path) -> None:
    text = "study: s\ncommand: simulate\noptimise: {pareto: [wavelengths]}\n"
    with pytest.raises(ConfigError, match=r"line 3, optimise.pareto: a Pareto front"):
        document.read(written_study(tmp_path, text))
