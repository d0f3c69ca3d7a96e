"""Study files: points, conditions, derived values, and messages about mistakes."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from opticoll.cli.main import app
from opticoll.commands import COMMANDS
from opticoll.errors import ConfigError, UsageError
from opticoll.study import document
from opticoll.study.expression import Expression
from opticoll.study.points import command_line, command_of, options_of, parameters_of, points
from support import written_study


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
        "options: {collective: all_gather, fabric: 'ladder:rungs=4,hosts=4,wavelengths=4'}\n",
    )
    found = points(document.read(path))
    assert [(one.options["seed"], one.replication) for one in found] == [(0, 0), (1, 1), (2, 2)]
    assert len({one.key for one in found}) == 3


FEW = "{from: 1, to: 101, plus: 1}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("command: nothing", "line 2, command: `nothing` is no command with points"),
        ("command: results", "line 2, command: `results` is no command with points"),
        ("command: simulate\ngrid: {size: []}", "line 3, grid: give a list of values"),
        ("command: simulate\ngird: {size: 1}", "line 3, gird: there is no such field"),
        ("command: simulate\nzip: {size: [1, 2], root: [1]}", "the same number of values"),
        ("command: simulate\nwhere: import os", "`import os` is no expression"),
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
    "congestion all_reduce --fabric ladder:rungs=4,hosts=4 --offered-load 0.4 --seed 7",
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
    assert all(flag.startswith(("--no-", "--empty-")) or flag == "--algorithm" for flag in missing)
