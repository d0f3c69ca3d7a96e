"""Equal answers to one question, asked in every way, for drawn questions; and stated defaults.

A further way to ask is one function with `@way`, which returns an answer for each question.
"""

from __future__ import annotations

import dataclasses
import json
import random
import re
import typing
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from cyclopts import Parameter

import opticoll
from opticoll import errors
from opticoll.cli.option_types import hints
from opticoll.names import has_root, known_names
from opticoll.outputs.rows import plain
from support import ALL_CASES, Run, some_of, written_study

Settings = dict[str, str]

DRAWN = 60 if ALL_CASES else 30
SEED = 38

ELECTRICAL: list[Settings] = [
    {},
    {"start": "step"},
    {"start": "sender"},
    {"simulator": "bulk_synchronous", "step_overhead": "1us"},
]

FABRICS: list[tuple[str, list[Settings]]] = [
    (
        "wdm_ring:ranks={},wavelengths=2",
        [{}, *({"policy": one} for one in ("on_change", "per_port", "free"))],
    ),
    ("wdm_ring:ranks={},wavelengths=4,dead=1", [{}, {"policy": "on_change"}]),
    (
        "circuit_switch:ranks={},ports=2,latency=500ns,reconfiguration=1us",
        [{}, {"policy": "per_port"}, {"policy": "every_step"}],
    ),
    ("circuit_switch:ranks={},ports=2,planes=2", [{}, {"policy": "planes"}]),
    ("lightpath_grid:ranks={},ports=2", [{}]),
    ("passive_star:ranks={},wavelengths=3", [{}, {"policy": "free"}]),
    ("wss_grid:rows=2,columns=3", [{}, {"policy": "free"}]),
    ("crossbar:ranks={},latency=1us", ELECTRICAL),
    ("fully_connected:ranks={},latency=500ns", ELECTRICAL),
    ("electrical_ring:ranks={}", ELECTRICAL),
    ("mesh:dims=3x2,duplex=half,latency=1us", ELECTRICAL),
    ("torus:dims=3x3,latency=100ns", ELECTRICAL),
    ("fat_tree:down=2x4,up=1x2,latency=1us", ELECTRICAL),
    ("dgx_a100", ELECTRICAL),
    ("dragonfly:terminals_per_router=1,routers_per_group=2,global_per_router=1", ELECTRICAL),
    ("custom:ranks=5,links=0-1@40Gb/s+1-2+2-3@10Gb/s+3-4+4-0+1-3,latency=1us", ELECTRICAL),
    ("custom:ranks=4,switches=2,links=0-4+2-4+1-5+3-5+4-5@10Gb/s", ELECTRICAL),
]


@dataclasses.dataclass(frozen=True)
class Question:
    """A collective on a fabric, its size and how it is timed."""

    collective: str
    fabric: str
    size: str
    root: int | None
    demand: str | None
    settings: Settings

    @property
    def given(self) -> dict[str, Any]:
        """Returns the options of a question besides collective, fabric and size."""
        own = {"root": self.root, "demand": self.demand, **self.settings}
        return {name: value for name, value in own.items() if value is not None}

    @property
    def arguments(self) -> list[str]:
        """The same as a command line without the name of the command."""
        words = [self.collective, "--fabric", self.fabric, "--size", self.size]
        for name, value in self.given.items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        return words


def drawn() -> Iterator[Question]:
    """Questions by a seed, as many of each fabric."""
    generator = random.Random(SEED)
    kinds = known_names("collectives")
    for number in range(DRAWN):
        spec, settings = FABRICS[number % len(FABRICS)]
        fabric = opticoll.Fabric(spec.format(generator.randint(2, 9)))
        kind = generator.choice([*kinds, "all_to_all", "all_reduce"])
        rooted = has_root(kind) and generator.random() < 0.5
        demands = [None, "uniform", "random:seed=3", "zipf:exponent=0", "one_hot"]
        yield Question(
            kind,
            fabric.spec,
            generator.choice(["1B", "1000B", "64KiB", "1MiB", "5MB", "64MiB"]),
            generator.randrange(fabric.ranks) if rooted else None,
            generator.choice(demands) if kind == "all_to_all" else None,
            generator.choice(settings),
        )


QUESTIONS = list(drawn())

Answer = dict[str, Any]
"""A row without its command line, or `refused` with the reason."""

Way = Callable[[Run, Path, Sequence[Question]], Sequence[Answer | None]]
"""Answers in the order of the questions; none to a question that cannot be asked in this way."""

WAYS: dict[str, Way] = {}


def way(asks: Way) -> Way:
    WAYS[asks.__name__] = asks
    return asks


def printed(run: Run, *arguments: str) -> Any:
    """Runs a command; returns its JSON, or the reason why it refuses."""
    finished = run(*arguments, "--json")
    if finished.code == 2:
        return {"refused": finished.err}
    assert finished.code == 0, finished.err
    return json.loads(finished.out)


@way
def plan(run: Run, folder: Path, questions: Sequence[Question]) -> list[Answer]:
    return [printed(run, "plan", *one.arguments) for one in questions]


@way
def simulate(run: Run, folder: Path, questions: Sequence[Question]) -> list[Answer]:
    return [printed(run, "simulate", *one.arguments) for one in questions]


@way
def verify(run: Run, folder: Path, questions: Sequence[Question]) -> list[Answer]:
    return [printed(run, "verify", *one.arguments) for one in questions]


@way
def show(run: Run, folder: Path, questions: Sequence[Question]) -> list[Answer]:
    return [printed(run, "show", *one.arguments) for one in questions]


@way
def simulate_of_a_file(run: Run, folder: Path, questions: Sequence[Question]) -> list[Answer]:
    answers = []
    for one in questions:
        path = folder / "one.plan"
        finished = run("plan", *one.arguments, "--output", path)
        if finished.code == 2:
            answers.append({"refused": finished.err})
            continue
        settings = [
            word
            for name, value in one.settings.items()
            for word in (f"--{name.replace('_', '-')}", value)
        ]
        row = printed(run, "simulate", str(path), *settings)
        # A file keeps no record of the choice, and sorts transfers: of links that bound the time
        # alike it may name another.
        for name in ("candidates", "reasons", "algorithm", "bottleneck"):
            row.pop(name)
        answers.append(row)
    return answers


@way
def compare(run: Run, folder: Path, questions: Sequence[Question]) -> list[Answer]:
    answers = []
    for one in questions:
        rows = printed(run, "compare", *one.arguments, "--algorithms", "auto")
        answers.append(rows if isinstance(rows, dict) else rows[-1])
    return answers


@way
def bound(run: Run, folder: Path, questions: Sequence[Question]) -> list[Answer]:
    answers = []
    for one in questions:
        words = dataclasses.replace(
            one,
            settings={name: own for name, own in one.settings.items() if name in ("policy",)},
        ).arguments
        row = printed(run, "bound", *words)
        if "refused" not in row:
            # `direct` holds only for plans without relays; omitted values are zero.
            times = [own["time_s"] for own in row["bounds"] if own["name"] != "direct"]
            row = {
                **{name: row[name] for name in ("collective", "fabric", "size_bytes", "policy")},
                "bound_time_s": times[0] if times else 0.0,
            }
        answers.append(row)
    return answers


@way
def sweep(run: Run, folder: Path, questions: Sequence[Question]) -> list[Answer]:
    points = [
        {
            "collective": one.collective,
            "fabric": one.fabric,
            "size": one.size,
            **{name.replace("_", "-"): value for name, value in one.given.items()},
        }
        for one in questions
    ]
    path = written_study(folder, json.dumps({"study": "one", "command": "plan", "points": points}))
    store = folder / "one.sqlite"
    finished = run("sweep", path, "--store", store)
    assert finished.code in (0, 1), finished.err
    answers = {}
    for row in printed(run, "results", str(store)):
        answers[row["point"]] = row
    return [answers.get(number, {"refused": "a failed point"}) for number in range(len(points))]


@way
def in_python(run: Run, folder: Path, questions: Sequence[Question]) -> list[Answer]:
    answers = []
    for one in questions:
        try:
            made = opticoll.plan(one.collective, one.fabric, size=one.size, **one.given)
            size_bytes: Any = made.size_bytes
            row = opticoll.measure(made, size_bytes, **one.settings)
            answers.append(plain(row))
        except errors.OpticollError as error:
            answers.append({"refused": str(error)})
    return answers


@way
def compare_in_python(run: Run, folder: Path, questions: Sequence[Question]) -> list[Answer]:
    answers = []
    for one in questions:
        try:
            rows = opticoll.compare(
                one.collective, one.fabric, "auto", sizes=one.size, **one.given
            ).rows
            answers.append(plain(rows[-1]))
        except errors.OpticollError as error:
            answers.append({"refused": str(error)})
    return answers


OF_REPLAYS = ("policy", "paths")
"""Settings of plans that replays and training have, too."""


@way
def replay_of_an_export(
    run: Run, folder: Path, questions: Sequence[Question]
) -> list[Answer | None]:
    def ask(one: Question) -> Answer | None:
        if any(name not in OF_REPLAYS for name in one.settings):
            return None
        try:
            made = opticoll.plan(one.collective, one.fabric, size=one.size, **one.given)
        except errors.OpticollError as error:
            return {"refused": str(error)}
        try:
            path = made.export(folder / "one.tit")[0]
        except errors.TraceError:
            # Messages without bytes, and blocks that differ.
            return None
        settings: dict[str, Any] = {**one.settings}
        row = plain(opticoll.replay(path, one.fabric, **settings))
        # The settings of a plan are those of its circuit switch, and its warnings concern its
        # steps.
        return {name: own for name, own in row.items() if name not in ("settings", "warnings")}

    return [ask(one) for one in questions]


@way
def train(run: Run, folder: Path, questions: Sequence[Question]) -> list[Answer | None]:
    def ask(one: Question) -> Answer | None:
        size = opticoll.parse_size(one.size)
        if one.collective != "all_reduce" or size % 4:
            return None
        profile = folder / "one.csv"
        profile.write_text(f"name,parameters,forward,backward\nonly,{size // 4},1us,1us\n")
        settings: dict[str, Any] = {**one.settings}
        try:
            row = opticoll.train(None, one.fabric, profile=profile, batch=1, **settings)
        except errors.OpticollError as error:
            return {"refused": str(error)}
        shared = ("fabric", "injection_bandwidth", "fabric_latency_s")
        time_s = row.iteration_s - 2e-6
        return {name: plain(row)[name] for name in shared} | {"time_s": pytest.approx(time_s)}

    return [ask(one) for one in questions]


@pytest.fixture(scope="module")
def answers() -> dict[str, Sequence[Answer | None]]:
    """Collects the answers of the ways asked so far."""
    return {}


@pytest.mark.parametrize("name", WAYS)
def test_every_way_to_ask_gives_the_answer_of_plan(
    run: Run, tmp_path: Path, answers: dict[str, Sequence[Answer | None]], name: str
) -> None:
    for asked in dict.fromkeys(["plan", name]):
        if asked not in answers:
            answers[asked] = WAYS[asked](run, tmp_path, QUESTIONS)
    assert len(answers[name]) == len(QUESTIONS)
    assert sum(one is not None for one in answers[name]) > DRAWN // 20
    for question, first, own in zip(QUESTIONS, answers["plan"], answers[name], strict=True):
        if own is None:
            continue
        assert first is not None
        assert ("refused" in first) == ("refused" in own), (question, first, own)
        if "refused" in first:
            assert first["refused"]
            assert own["refused"]
            continue
        shared = [one for one in first if one in own and one != "command"]
        if not first["bound_time_s"]:
            # If no bound is known, the row has a reason, and `bound` lists no bound.
            assert first["bound_time_s"] == 0 or first["bound_time_assumption"]
            shared = [one for one in shared if one != "bound_time_s"]
        assert len(shared) > 3
        assert {one: own[one] for one in shared} == {one: first[one] for one in shared}, question


def test_most_questions_have_an_answer(run: Run, tmp_path: Path) -> None:
    assert (
        sum(one is not None and "refused" not in one for one in plan(run, tmp_path, QUESTIONS))
        > DRAWN * 3 // 4
    )


RING = "wdm_ring:ranks=4,wavelengths=2"
SWITCH = "crossbar:ranks=4,latency=1us"
ROUTERS = "dragonfly:terminals_per_router=1,routers_per_group=2,global_per_router=1"

METHODS = [
    ("broadcast", "--fabric", RING),
    ("all_to_all", "--fabric", SWITCH),
    ("all_gather", "--fabric", "fat_tree:down=2x2,up=1x2", "--simulator", "bulk_synchronous"),
    ("scatter", "--fabric", ROUTERS, "--size", "4KiB", "--simulator", "packet"),
    ("gather", "--fabric", "lightpath_grid:ranks=4,ports=2"),
]
"""Collectives that together take every setting of a method."""

COMMANDS: dict[str, list[tuple[str, ...]]] = {
    "plan": some_of(METHODS, 4),
    "simulate": METHODS,
    "verify": some_of(METHODS, 4),
    "show": some_of(METHODS, 4),
    "compare": [(*one, "--algorithms", "auto") for one in some_of(METHODS[:3], 2)],
    "bound": METHODS[:2],
    "replan": [
        ("all_to_all", "--fabric", SWITCH, "--failed", "members=0-2"),
        ("broadcast", "--fabric", RING, "--failed", "broken=1-2"),
    ],
    "run": [("all_reduce", "--fabric", SWITCH, "--algorithm", "ring", "--size", "4KiB")],
    "traffic": [
        ("--fabric", ROUTERS, "--messages", "4"),
        (
            *("--fabric", "wdm_ladder:rungs=2,hosts=2,wavelengths=2,rate=10Gb/s"),
            *("--simulator", "burst", "--bursts", "2000"),
        ),
    ],
    "export": [
        ("all_gather", "--fabric", RING, "--output", "one.goal"),
        ("all_to_all", "--fabric", SWITCH, "--size", "4KiB", "--output", "one.xml"),
    ],
    "congestion": [
        (
            *("all_reduce", "--fabric", "wdm_ladder:rungs=2,hosts=2,wavelengths=2,rate=10Gb/s"),
            *("--offered-load", "0.2", "--replications", "2"),
        )
    ],
    "replay": [("calls.csv", "--fabric", RING), ("calls.csv", "--fabric", SWITCH)],
    "train": [
        ("--model", "resnet50", "--batch", "32", "--fabric", RING, "--algorithm", "ring"),
        (
            "--model",
            "gpt:layers=2,width=64,heads=4",
            "--batch",
            "2",
            "--fabric",
            SWITCH,
            "--tensor-parallel",
            "2",
        ),
    ],
}
"""For each command arguments that answer quickly."""

CALLS = """# app=one ranks=4
rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns
0,Send,1,8,0,7,0,,100
1,Recv,0,0,8,7,0,,40
""" + "".join(f"{rank},Allreduce,,4096,4096,,0,,0\n" for rank in range(4))
"""A message and a collective, for `replay`."""

IN_WORDS: dict[str, typing.Callable[[opticoll.Fabric], str]] = {
    "by the fabric": lambda fabric: fabric.simulator,
    "all": lambda fabric: f"0-{fabric.ranks - 1}",
    "the fabric's": lambda fabric: str(fabric.ranks),
    "the same for all pairs": lambda _: "uniform",
    "--algorithm": lambda _: "auto",
}
"""Defaults that are said in words, as values."""


def options(kind: type) -> Iterator[tuple[str, str]]:
    """Yields the options of a record of parameters, and the defaults that their help states."""
    for name, hint in hints(kind).items():
        within = getattr(hint, "__origin__", hint)
        if dataclasses.is_dataclass(within):
            yield from options(typing.cast("type", within))
        for one in getattr(hint, "__metadata__", ()):
            stated = re.search(
                r"\(default: (.*)\)\s*$", getattr(one, "help", None) or "", re.DOTALL
            )
            if isinstance(one, Parameter) and stated is not None:
                names = [*(one.name or ())]
                own = names[0] if names and names != ["*"] else f"--{name}"
                yield own.replace("_", "-"), stated[1]


def value(default: str, fabric: opticoll.Fabric) -> str:
    """Returns the value of a stated default, without the words after the value."""
    if default.startswith("the fabric's own"):
        return fabric.policy or "every_step"
    head = re.split(r"[,;:] ", default)[0]
    return IN_WORDS[head](fabric) if head in IN_WORDS else head


BESIDE = {
    "elements": ("time_s", "algorithm_bandwidth", "bus_bandwidth"),
    "eager": ("settings",),
    "offered_load": ("settings",),
    "iteration_s": (
        *("groups", "collectives", "timeline", "exposed_communication_s", "reconfiguration_s"),
    ),
}
"""By a field that tells the rows of a command: times of this machine, settings as they were given,
and parts of an iteration, of which groups have others."""


def bare(answer: Any) -> Any:
    """Rows without the command line that computes each, and without what is beside the answer."""
    if isinstance(answer, list):
        return [bare(one) for one in answer]
    beside = {"command", *(one for tell in answer.keys() & BESIDE.keys() for one in BESIDE[tell])}
    return {name: one for name, one in answer.items() if name not in beside}


UNSTATED = {
    "--without": "names what is broken",
    "--cost": "the links of the fabric",
    "--wavelengths": "numbers of a fabric that may have none",
    "--reconfiguration": "times of a fabric that may have none",
    "--components": "a file",
    "--switch": "a component and modules",
    "--rank-power": "of the fabric's bill",
    "--sequence-parallel": "a flag",
    "--overlap-tensor": "a flag",
    "--overlap-experts": "a flag",
    "--prefetch": "of sharded parameters",
    "--device": "of the fabric's servers",
    "--device-memory": "of the device",
    "--sizes": "stands in place of --size",
    "--per": "no table",
    "--view": "as the fabric's light is",
    "--slot": "of some views",
    "--of-rank": "of some views",
    "--of-chunk": "of some views",
    "--ranks": "of files",
    "--format": "of files",
    "--virtual-channels": "the number that routes need",
    "--warm-up": "for each host",
    "--jobs": "of the machine",
    "--instead": "of plans from files",
}
"""Options whose default is no value that can be typed, and why."""


@pytest.mark.parametrize("command", COMMANDS)
def test_an_option_given_its_own_default_changes_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("calls.csv").write_text(CALLS)
    parameters = import_module(f"opticoll.commands.{command}").COMMAND.parameters
    accepted: set[str] = set()
    stated = dict(options(parameters))
    for base in COMMANDS[command]:
        answer = printed(run, command, *base)
        assert "refused" not in answer, answer
        spec = base[base.index("--fabric") + 1]
        # A machine with several hosts at a rank is no fabric of plans.
        fabric = opticoll.Fabric(SWITCH if spec.startswith("wdm_ladder") else spec)
        for option, default in stated.items():
            if option in base or option in UNSTATED:
                continue
            again = printed(run, command, *base, option, value(default, fabric))
            if "refused" in again:
                # Settings of other simulators, a root or a demand of other collectives.
                assert option.strip("-") in again["refused"].replace("_", "-"), again
                continue
            accepted.add(option)
            assert bare(again) == bare(answer), (base, option, default)
    assert accepted
    if command == "simulate":
        assert accepted | set(UNSTATED) >= set(stated)
