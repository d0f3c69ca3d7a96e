"""Files and traces of strangers: each is refused in one printable line, with exit code 2."""

from __future__ import annotations

import io
import json
import random
import subprocess
import sys
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import python_checks
from python_checks import pack

import opticoll
from opticoll.formats import otf2_archive, parquet_table
from opticoll.formats.content import read_content
from support import RING, Finished, Run
from test_bad_input import check
from test_replay import DATA, as_parquet, real

ESCAPE = "\x1b[2K\rverified: yes"
RIGHT_TO_LEFT = "\u202e"

ON_RING = f"collective: all_gather\nfabric: {RING}\n"
TASK = "fabric: wss_grid:rows=2,columns=2\ntasks:\n"
HEADER = "rank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns"
LAYER = "name,parameters,forward,backward\n"

BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)

# Content of each file, and words of the message.
Cases = Mapping[str, tuple[str | bytes, str]]

YAML: Cases = {
    "names for names, 10^8 times": (BOMB, "s.yaml, line | more than 1000000 values"),
    "a list that holds itself": ("a: &a [*a]\n", "line 1 | holds itself"),
    "fields that hold themselves": ("a: &a {b: *a}\n", "line 1 | holds itself"),
    "lists in lists": (f"a: {'[' * 10**5}", "nested too deeply"),
    "fields in fields": ("a: " + "{a: " * 70 + "}" * 70, "line 1 | more than 64 deep"),
    "no such date": (f"{ON_RING}root: 2024-13-45\n", "line 3 | root | 2024-13-45 | whole number"),
    "a number of 5000 digits": (f"{ON_RING}root: {'9' * 5000}\n", "line 3 | 99... "),
    "a number beyond all": (f"{ON_RING}root: 1e999\n", "line 3 | root | inf"),
    "a size that is no number": (f"{ON_RING}sizes: .nan\n", "line 3 | sizes | nan"),
    "a tag of Python": (
        f"{ON_RING}root: !!python/object/apply:os.system [true]\n",
        "line 3 | python/object/apply:os.system | no meaning here",
    ),
    "a tag of nobody": (f"{ON_RING}root: !mine 5\n", "line 3 | `!mine`"),
    "a tag that its text belies": (f"{ON_RING}root: !!int abc\n", "line 3 | `abc`"),
    "a list called a number": (f"{ON_RING}root: !!int [1]\n", "line 3 | tag"),
    "fields called a list": (f"{ON_RING}root: !!seq {{a: 1}}\n", "line 3 | tag"),
    "a list called fields": (f"{ON_RING}root: !!map [a, b]\n", "line 3 | tag"),
    "a text called a list": (f"{ON_RING}root: !!seq abc\n", "line 3 | tag"),
    "bytes": (f"{ON_RING}root: !!binary aGk=\n", "line 3 | binary"),
    "half a character": (f'{ON_RING}policy: "\\ud800"\n', "line 3 | \\ud800 | do not print"),
    "a character beyond all": (f'{ON_RING}policy: "\\Uffffffff"\n', "not valid YAML"),
    "a control character": (f"{ON_RING}policy: \x07\n", "not valid YAML | #x0007"),
    "fields that are merged": (f"x: &x {{root: 1}}\n<<: *x\n{ON_RING}", "line 2 | <<"),
    "a field given twice": (f"{ON_RING}fabric: {RING}\n", "line 3 | `fabric` | twice"),
    "a list as the name of a field": ("[a, b]: 1\n", "line 1 | name of a field"),
    "two documents": (f"{ON_RING}---\n{ON_RING}", "line 3 | another document"),
    "an unknown name": ("a: *b\n", "line 1 | undefined alias"),
    "another version": (f"%YAML 9.1\n---\n{ON_RING}", "not valid YAML"),
    "nothing": ("", "expected fields"),
    "nothing but a word": ("word", "expected fields"),
    "bytes that are no text": (b"\xff\xff", "byte 0 is not UTF-8"),
    "an escape in a value": (ON_RING + r'policy: "\e[2K"' + "\n", "line 3 | \\u001b"),
    "a word of a megabyte": (f"{ON_RING}policy: {'x' * 10**6}\n", "line 3 | xx... "),
    "more bytes than are read": (b"#" * (8 * 2**20 + 1), "too large"),
}


def reduced(field: str) -> str:
    return f"{TASK}- {{collective: all_reduce, {field}}}\n"


TASKS: Cases = {
    "a date for a collective": (f"{TASK}- {{collective: 2024-01-01}}\n", "line 3"),
    "rounds of a date": (reduced("rounds: 2024-01-01"), "line 3 | tasks.0.rounds"),
    "a name that turns the line": (
        reduced('name: "a\\r\\u202eb"'),
        "line 3 | \\u202e | do not print",
    ),
    "a list for a size": (reduced("size: [1]"), "line 3 | size"),
    "an infinite time": (reduced("request: .inf"), "line 3 | request | inf"),
    "a task that is a number": (f"{TASK}- 5\n", "line 3 | tasks.0"),
}

LAYERS: Cases = {
    "a cell of a megabyte": (f"{LAYER}{'x' * 10**6},1,1us,1us\n", "line 2 | field limit"),
    "a number of 5000 digits": (f"{LAYER}a,{'9' * 5000},1us,1us\n", "line 2 | 99..."),
    "a quotation that does not end": (f'{LAYER}"a,1,1us,1us\n', "line 2 | not valid CSV"),
    "a quotation that goes on": (f'{LAYER}"a"b,1,1us,1us\n', "line 2 | not valid CSV"),
    "a null character": (f"{LAYER}a\0,1,1us,1us\n", "line 2"),
    "a name in two lines": (f'{LAYER}"a\nb",1,1us,1us\n', "line 3 | do not print"),
    "a name for a terminal": (f"{LAYER}\x1b[2Kverified: yes,1,1us,1us\n", "line 2 | \\u001b"),
    "a cell too many": (f"{LAYER}a,1,1us,1us,1\n", "line 2 | 5 cells"),
}
MODELS: Cases = {
    "an infinite number of parameters": (
        "layers: [{name: a, parameters: .inf, forward: 1us, backward: 1us}]",
        "line 1 | layers.0.parameters | inf",
    ),
    "a model that holds itself": ("layers: &a [*a]\n", "holds itself"),
    "a model in two lines": (
        'model: "a\\nb"\nlayers: [{name: a, parameters: 1, forward: 1us, backward: 1us}]',
        "line 1 | a b | do not print",
    ),
    "a batch that is a date": ("batch: 2024-01-01\nlayers: []\n", "line 1 | batch"),
}


def node_link(**changes: object) -> str:
    graph: dict[str, object] = {
        "nodes": [{"id": "a"}, {"id": "b"}],
        "links": [{"source": "a", "target": "b"}],
    }
    return json.dumps({**graph, **changes})


def one_node(**fields: object) -> str:
    return node_link(nodes=[{"id": "a", **fields}, {"id": "b"}])


def one_link(**ends: object) -> str:
    return node_link(links=[{"source": "a", "target": "b", **ends}])


def graphml(inside: str, before: str = "") -> str:
    return f'{before}<graphml><graph edgedefault="undirected">{inside}</graph></graphml>'


NODES = '<node id="a"/><node id="b"/>'
HYPEREDGE = '<hyperedge><endpoint node="a"/></hyperedge>'

GRAPHS: Cases = {
    "a kind that is a list": (one_node(kind=["switch"]), "nodes.0.kind | not a kind"),
    "a kind that is a set of fields": (one_node(kind={"rank": 1}), "nodes.0.kind | not a kind"),
    "a kind that is a number": (one_node(kind=5), "nodes.0.kind | `5` is not a kind"),
    "half a character": (node_link(nodes=[{"id": "\ud800"}]), "nodes | do not print"),
    "half a character in an option": (node_link(graph={"rate": "\udfff"}), "graph.rate | \\udfff"),
    "a name that a terminal obeys": (one_node(id=ESCAPE), "nodes | \\u001b[2K | do not print"),
    "a name in two lines": (node_link(nodes=[{"id": "a\nb"}]), "do not print"),
    "a name from right to left": (node_link(nodes=[{"id": RIGHT_TO_LEFT}]), "nodes | \\u202e"),
    "lists in lists": ("[" * 10**5, "not valid JSON | nested too deeply"),
    "a number of 5000 digits": (f'{{"nodes": {"9" * 5000}}}', "not valid JSON"),
    "a field given twice": ('{"nodes": [], "nodes": []}', "`nodes` is given twice"),
    "a direction that is text": (node_link(directed="false"), "directed"),
    "attributes that are a list": (node_link(graph=[]), "graph"),
    "ends that are fields": (one_link(source={}), "links.0 | no rank or switch"),
    "a name of a megabyte": (one_link(source="x" * 10**6), "links.0 | xx... "),
}
GRAPHML: Cases = {
    "an edge of three": (graphml(NODES + HYPEREDGE), "hyperedge.0 | two vertices"),
    "an encoding that is none": (
        graphml(NODES, '<?xml version="1.0" encoding="\x01"?>'),
        "not valid XML",
    ),
    "entities in entities": (
        graphml("&b;", '<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>'),
        "document type",
    ),
    "an unknown entity": (graphml("&b;"), "not valid XML | entity"),
    "elements in elements": (graphml("<graph>" * 10**5), "line 1 | more than 64 deep"),
    "a graph in a node": (graphml('<node id="a"><graph/></node>'), "graphs inside nodes"),
    "a name that turns the line": (graphml('<node id="a&#x202e;b"/>'), "node | \\u202e"),
}

PLAN_HEAD = "opticoll plan 1\ncollective all_gather ranks=2 root=0 pieces=1\nfabric {}\n"


def named(character: str) -> str:
    return PLAN_HEAD.format(f"custom:ranks=2,links=0-1,names=a{character}+b")


PLANS: Cases = {
    "an escape in a word": (f"opticoll plan 1\n{ESCAPE} x\n", "line 2 | \\u{1b}"),
    "a fabric that turns the line": (named(RIGHT_TO_LEFT), "line 3 | \\u202e | do not print"),
    "a name with an escape": (named("%1B"), "line 3 | \\u001b | do not print"),
    "a word of ten megabytes": (f"opticoll plan 1\n{'x' * 10**7}\n", "line 2 | xx..."),
    "a size of a megabyte": (
        PLAN_HEAD.format("crossbar:ranks=2") + f"algorithm x\nsize {'9' * 10**6}\n",
        "line | 99...",
    ),
}
RESULTS: Cases = {
    "JSON nested too deeply": (
        '{"7-Flows": ["Chunk 0 from 0 traveled over 0->1 in epoch 0"], "x": ' + "[" * 100_000,
        "not valid JSON | nested too deeply",
    ),
}

COMMANDS: list[tuple[list[str], str, Cases]] = [
    (["compare"], "s.yaml", YAML),
    (["tasks"], "t.yaml", TASKS),
    (["train", "--fabric", RING, "--profile"], "l.csv", LAYERS),
    (["train", "--fabric", RING, "--profile"], "l.yaml", MODELS),
    (["plan", "all_gather", "--fabric"], "g.json", GRAPHS),
    (["plan", "all_gather", "--fabric"], "g.graphml", GRAPHML),
    (["verify"], "p.plan", PLANS),
    (["verify"], "p.json", RESULTS),
]
CASES = [
    pytest.param([*command, file], *case, id=f"{command[0]}: {name}")
    for command, file, files in COMMANDS
    for name, case in files.items()
]


@pytest.mark.parametrize(("command", "content", "words"), CASES)
def test_a_hostile_file_is_refused_in_one_line(
    run: Run, tmp_path: Path, command: list[str], content: str | bytes, words: str
) -> None:
    path = tmp_path / command[-1]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    before = time.process_time()
    check(shown(run), tmp_path, [*command[:-1], str(path)], *words.split(" | "))
    assert time.process_time() - before < 30


def shown(run: Run) -> Run:
    """Runs a command and checks that its messages are short and have only printable characters."""

    def run_and_look(*arguments: str | Path) -> Finished:
        finished = run(*arguments)
        assert all(line.isprintable() for line in finished.err.splitlines())
        assert len(finished.err) < 4000
        return finished

    return run_and_look


def test_what_an_algorithm_line_holds_cannot_fake_a_verdict(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "p.plan"
    opticoll.write_plan(opticoll.plan("all_gather", RING, "ring"), path)
    whole = path.read_text()
    for character in (ESCAPE, RIGHT_TO_LEFT, "\x85", "\x9b2K"):
        path.write_text(whole.replace("algorithm ring", f"algorithm ring{character}"))
        for command in ("verify", "simulate", "show"):
            finished = run(command, path)
            # The reader refuses control characters; characters that reverse a line are escaped.
            assert finished.code == (0 if character == RIGHT_TO_LEFT else 2)
            assert ("\\u202e" in finished.out) == (character == RIGHT_TO_LEFT)
            assert ("line 4" in finished.err) == (character != RIGHT_TO_LEFT)
            lines = (finished.out + finished.err).splitlines()
            assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("name", ["ring$\\frac$x", "ring" * 10**5])
@pytest.mark.parametrize("suffix", ["svg", "pdf"])
def test_a_figure_shows_names_as_they_are(run: Run, tmp_path: Path, suffix: str, name: str) -> None:
    path, figure = tmp_path / "p.plan", tmp_path / f"f.{suffix}"
    opticoll.write_plan(opticoll.plan("all_gather", RING, "ring"), path)
    path.write_text(path.read_text().replace("algorithm ring", f"algorithm {name}"))
    finished = run("show", path, "--figure", figure)
    assert (finished.code, finished.err) == (0, f"opticoll: wrote {figure}\n")
    if suffix == "svg":
        ElementTree.parse(figure)


def test_names_of_files_stay_in_their_line(run: Run, tmp_path: Path) -> None:
    path = tmp_path / f"a\n{ESCAPE}.csv"
    path.write_text(f"# ranks=1\n{HEADER}\n0,Init,,0,0,,,,5\n")
    plain, hostile = (
        run("replay", path.rename(tmp_path / "b.csv")),
        run("replay", (tmp_path / "b.csv").rename(path)),
    )
    assert (plain.code, hostile.code) == (0, 0)
    assert hostile.out.count("\n") == plain.out.count("\n")
    assert "a\\u000a\\u001b[2K\\u000dverified: yes.csv" in hostile.out
    figure = tmp_path / "f\nverified: yes.svg"
    finished = run("show", "all_gather", "--fabric", RING, "--figure", figure)
    assert finished.err.count("\n") == 1
    assert "f\\u000averified" in finished.err


def test_a_name_of_a_file_that_is_no_text_is_shown(run: Run, tmp_path: Path) -> None:
    missing = f"{tmp_path}/\udcff.plan"
    finished = shown(run)("verify", missing)
    assert finished.code == 2
    assert "\\udcff.plan" in finished.err
    finished = shown(run)("verify", "all_gather", "--fabric", "\udcff")
    assert (finished.code, len(finished.err.splitlines())) == (2, 1)


def changed(content: bytes, generator: random.Random) -> bytes:
    """Returns the content with one to four bytes, lines or brackets changed, lost or doubled."""
    text = bytearray(content)
    for _ in range(generator.randint(1, 4)):
        at = generator.randrange(len(text) + 1)
        match generator.randrange(5):
            case 0:
                text[at : at + 1] = generator.choice(LIKELY)
            case 1:
                text[at:at] = generator.choice(LIKELY)
            case 2:
                del text[at : at + generator.choice((1, 1, 5, 40))]
            case 3:
                text[at : at + 1] = bytes([generator.randrange(256)])
            case _:
                text[at:at] = text[at : at + generator.choice((1, 10, 40))]
    return bytes(text)


LIKELY = [*(bytes([one]) for one in b"\0\t\n\x1b !\"#%&'*,-.0159:<>@[]_{|}~"), b"1e999", b"\\ud800"]
LIKELY += [b"2024-01-01", b"!!int ", b"&a ", b"*a", b"9" * 30, b"null", b"\xe2\x80\xae", b"\xff"]


@pytest.mark.parametrize(
    "reader",
    [
        *("yaml", "toml", "graph_json", "graphml", "nccl_topology", "layers", "tar"),
        "hwloc",
        *("sends", "te_ccl", "sccl", "gml", "edge_list", "sndlib", "measured_times"),
        *("simai_workload", "liballprof", "chakra_json"),
    ],
)
@pytest.mark.filterwarnings("ignore::opticoll.errors.ReadingNote")
def test_changed_seeds_are_read_or_refused(reader: str) -> None:
    generator = random.Random(11)
    if reader == "tar":
        files = dict(python_checks.archive_files()[:2])
        seeds = [python_checks.pack({name: bytearray(one) for name, one in files.items()})]
    else:
        seeds = [path.read_bytes() for path in (python_checks.FUZZ / "seeds" / reader).iterdir()]
    check_reader = python_checks.CHECKS[reader]
    for seed in seeds:
        said = check_reader(seed)
        # Each seed is for one of the readers of YAML, or of the two of TOML.
        assert len(said) == {"yaml": 5, "toml": 1, "tar": 1}.get(reader, 0), said
        for _ in range(100):
            check_reader(changed(seed, generator))


# Exceptions of a user's algorithm, and words of the message.
RAISED: dict[str, tuple[str, str]] = {
    "what is no Exception": (
        "class Mine(BaseException): pass\ndef f(c, m): raise Mine('enough')\n",
        "Mine | enough | line 2",
    ),
    "a kind of Ctrl-C": (
        "class Mine(KeyboardInterrupt): pass\ndef f(c, m): raise Mine('enough')\n",
        "Mine | enough",
    ),
    "what cannot be written": (
        "class Mine(BaseException):\n    def __str__(self): return 1 / 0\n"
        "def f(c, m): raise Mine\n",
        "Mine | no message",
    ),
    "the end of a generator, on import": ("raise GeneratorExit('now')\n", "GeneratorExit | now"),
    "an exit, asked for a name": ("def __getattr__(name): raise SystemExit(3)\n", "has no `f`"),
    "an escape": (f"def f(c, m): raise ValueError({ESCAPE!r})\n", "\\u001b[2K"),
    "a megabyte": ("def f(c, m): raise ValueError('x' * 10**6)\n", "ValueError | xx... "),
}


@pytest.mark.parametrize("name", RAISED)
def test_whatever_a_user_algorithm_raises_is_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    code, words = RAISED[name]
    # A module of its own name for each case, as Python keeps what it has imported.
    module = f"raising_{list(RAISED).index(name)}"
    (tmp_path / f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    arguments = ["plan", "all_gather", "--fabric", RING, "--algorithm", f"{module}:f"]
    check(shown(run), tmp_path, arguments, *words.split(" | "))


def test_ctrl_c_within_a_user_algorithm_interrupts() -> None:
    def interrupted(collective: opticoll.Collective, fabric: opticoll.Fabric) -> opticoll.Schedule:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        opticoll.plan("all_gather", RING, interrupted)


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type, header.linkname = kind, link
    return header


def sparse() -> tarfile.TarInfo:
    """Returns the header of a sparse file that claims a terabyte in no bytes."""
    header = member("traces.def")
    header.pax_headers = {
        "GNU.sparse.map": "0,0",
        "GNU.sparse.size": str(2**40),
        "GNU.sparse.name": "traces.def",
    }
    return header


DEEP = "/".join(["d" * 200] * 20)

# Members of a tar file, and words of the message.
TARS: dict[str, tuple[list[tarfile.TarInfo], str]] = {
    "a link out of the folder": ([member("a", tarfile.SYMTYPE, "..")], "`a` | links"),
    "a link and a file beyond it": (
        [member("a", tarfile.SYMTYPE, "../out"), member("a/planted")],
        "`a` | links",
    ),
    "a hard link": ([member("a", tarfile.LNKTYPE, "../../etc/passwd")], "`a` | links"),
    "a pipe": ([member("a", tarfile.FIFOTYPE)], "`a` | neither a file nor a folder"),
    "a device": ([member("a", tarfile.CHRTYPE)], "`a` | devices"),
    "an absolute name": ([member("/tmp/planted")], "`/tmp/planted` | below its own folder"),
    "a name above": ([member("a/../../planted")], "`a/../../planted` | below its own folder"),
    "a folder above": ([member("..", tarfile.DIRTYPE)], "`..` | below its own folder"),
    "a name with an escape": ([member("a" + ESCAPE)], "\\u001b | below its own folder"),
    "one name twice": ([member("a"), member("a")], "not an intact tar file | exists"),
    "a file within a file": ([member("a"), member("a/b")], "not an intact tar file"),
    "a name too long for a folder": ([member("a" * 300)], "not an intact tar file | too long"),
    "a path too long": ([member(DEEP)], "not an intact tar file | too long"),
    "a file with holes": ([sparse()], "too large"),
    "no anchor": ([member("a")], "0 anchor files"),
    "two anchors": ([member("a.otf2"), member("b.otf2")], "2 anchor files"),
    "an empty anchor": ([member("a.otf2")], "not an intact OTF2 archive"),
}


@pytest.mark.parametrize("name", TARS)
def test_an_archive_writes_nothing_outside_its_own_folder(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    members, words = TARS[name]
    path, scratch = tmp_path / "run.tar", tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as packed:
        for header in members:
            packed.addfile(header)
    check(shown(run), tmp_path, ["replay", str(path)], *words.split(" | "))
    assert not list(scratch.iterdir())
    assert not Path("/tmp/planted").exists()


def test_an_archive_of_too_many_bytes_or_files_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.tar"
    with tarfile.open(path, "w") as packed:
        for number in range(10):
            header = member(f"{number}")
            header.size = 1000
            packed.addfile(header, io.BytesIO(bytes(1000)))
    for limit, most in (("MAX_FILES", 9), ("MAX_BYTES", 9999)):
        with monkeypatch.context() as limited:
            limited.setattr(otf2_archive, limit, most)
            check(run, tmp_path, ["replay", str(path)], "too large", str(most))


def files_of(name: str) -> dict[str, bytes]:
    """Returns the files of an archive by name."""
    packed = io.BytesIO(read_content(DATA / f"{name}.A.16.otf2.tar.zst"))
    with tarfile.open(fileobj=packed) as tar:
        members = [(one.name, tar.extractfile(one)) for one in tar.getmembers() if one.isfile()]
        return {name: file.read() for name, file in members if file is not None}


def test_a_damaged_archive_is_refused_in_one_line(tmp_path: Path) -> None:
    """The C library says much more, on the standard error of the process."""
    files = files_of("ft")
    path = tmp_path / "run.tar"
    for damaged in ("ft.A.16/traces.def", "ft.A.16/traces/13.evt", "ft.A.16/traces/0.def"):
        content = files[damaged]
        changed = {**files, damaged: content[: len(content) // 2] + b"\xff" * 40}
        path.write_bytes(pack({name: bytearray(inside) for name, inside in changed.items()}))
        command = [sys.executable, "-m", "opticoll", "replay", str(path)]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert (finished.returncode, finished.stdout) == (2, ""), damaged
        (line,) = finished.stderr.splitlines()
        assert line.startswith(f"opticoll: error: `{path}` is not an intact OTF2 archive: "), (
            damaged
        )


def test_an_archive_that_keeps_its_library_busy_is_given_up(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An anchor file that announces 2.6 thousand million properties: seconds of computing."""
    anchor = "is.A.16/traces.otf2"
    files = {name: bytearray(content) for name, content in files_of("is").items()}
    files[anchor][48] = 0x9B
    path = tmp_path / "run.tar"
    path.write_bytes(pack(files))
    monkeypatch.setattr(otf2_archive, "LEAST_SECONDS", 1)
    monkeypatch.setattr(otf2_archive, "SECONDS_PER_MEGABYTE", 0)
    check(shown(run), tmp_path, ["replay", str(path)], "not an intact OTF2", "more than 1 s")


def test_no_module_of_the_current_folder_reads_an_archive(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "otf2.py").write_text("raise SystemExit(99)")
    monkeypatch.chdir(tmp_path)
    assert run("replay", DATA / "ep.A.16.otf2.tar.zst").code == 0


EXCHANGE = "0,Alltoallv,,12,9,,0,,1\n# v 5 7\n1,Alltoallv,,9,12,,0,,1\n# v {}\n"

# Tables that contradict themselves, and words of the message.
TABLES: dict[str, tuple[str, str]] = {
    "sizes that make other bytes": (EXCHANGE.format("4 6"), "line 6 | 10 bytes | sends 9"),
    "sizes beyond 64 bits": (
        EXCHANGE.format(f"{2**64 - 1} 10"),
        f"line 6 | {2**64 + 9} bytes | sends 9",
    ),
    "a cell too many": ("0,Init,,0,0,,0,,0,7\n", "line 3 | 10 cells | 9 columns"),
    "an escape for a call": (f"0,{ESCAPE[:4]},,0,0,,0,,0\n", "line 3 | `\\u001b[2K`"),
    "a call of a megabyte": (f"0,{'x' * 10**6},,0,0,,0,,0\n", "line 3 | xx... (1000000"),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_that_contradicts_itself_is_refused(run: Run, tmp_path: Path, name: str) -> None:
    rows, words = TABLES[name]
    path = tmp_path / "trace.csv"
    path.write_text(f"# ranks=2\n{HEADER}\n{rows}")
    check(shown(run), tmp_path, ["replay", str(path)], *words.split(" | "))


COLUMNS: dict[str, list[Any]] = {
    "rank": [0, 1],
    "call": ["Init", "Init"],
    "peer": [None, None],
    "send_bytes": [0, 0],
    "recv_bytes": [0, 0],
    "tag": [None, None],
    "comm": [0, 0],
    "req": [None, None],
    "compute_ns": [5, 7],
}

# Changed columns and metadata, and words of the message.
PARQUET: dict[str, tuple[dict[str, list[Any]], dict[str, str], str]] = {
    "a row within a cell": (
        {"call": ["Init", "Init,,0,0,,0,,0\n1,Finalize"]},
        {},
        "row 2 | unknown call `Init,,0",
    ),
    "a comment within a cell": ({"call": ["Init", "#"]}, {}, "row 2 | unknown call `#`"),
    "a list in a cell": ({"tag": [[1], [2]]}, {}, "row 1 | tag | `[1]`"),
    "an unknown call": ({"call": ["Init", "Send_all"]}, {}, "row 2 | unknown call `Send_all`"),
    "a number that is none": ({"compute_ns": [5.5, 7.0]}, {}, "row 1 | `5.5` | nanoseconds"),
    "sizes that make other bytes": (
        {"call": ["Alltoallv", "Init"], "sizes": [[1, 2], None]},
        {},
        "row 1 | 3 bytes | sends 0",
    ),
    "words for sizes": (
        {"call": ["Alltoallv", "Init"], "sizes": [["0", "0\n1,Init"], None]},
        {},
        "row 1 | sizes",
    ),
    "ranks in words": ({}, {"ranks": "2 ranks=3"}, "`ranks` | whole number"),
    "a row within the ranks of a communicator": (
        {},
        {"comm 1": "0 1\n0,Init"},
        "`comm 1` | whole number",
    ),
    "a row for the name of a communicator": ({}, {"comm 1\n0": "0 1"}, "comm 1 | whole number"),
    "more rows than are read": ({}, {}, "too large | 2 rows"),
}


@pytest.mark.parametrize("name", PARQUET)
def test_a_parquet_table_holds_its_rows_and_no_more(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    import pyarrow
    from pyarrow import parquet

    columns, metadata, words = PARQUET[name]
    if name == "more rows than are read":
        monkeypatch.setattr(parquet_table, "MAX_ROWS", 1)
    path = tmp_path / "trace.parquet"
    table = pyarrow.table({**COLUMNS, **columns})
    parquet.write_table(table.replace_schema_metadata({"ranks": "2", **metadata}), path)
    check(shown(run), tmp_path, ["replay", str(path)], *words.split(" | "))


def test_no_thread_outlives_the_reading_of_a_parquet_file(tmp_path: Path) -> None:
    """A thread that outlives the reading may abort the process at its end, after the result."""
    path = tmp_path / "trace.parquet"
    as_parquet(real("is"), path)
    code = (
        "import os, sys, pyarrow.parquet\n"
        "from opticoll.formats import trace_file\n"
        "threads = lambda: len(os.listdir('/proc/self/task'))\n"
        "before = threads()\n"
        "trace_file.read(sys.argv[1])\n"
        "print(threads() - before)\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "0\n"
