"""Recognition of files by their content: what a file is, and how opticoll can use it.

`CONTENTS` has one entry for each format that opticoll reads, and entries for files that people have
and that opticoll does not read. Every reader that gets a file of another kind quotes the entry.

>>> recognize(b"PAR1").name
'parquet'
>>> refusal("a.npy", recognize(b"\\x93NUMPY"), "a fabric")
'`a.npy` is an array of NumPy, not a fabric; save it as text (numpy.savetxt)'
>>> recognize(b"nothing of all this") is None
True
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

_EXAMINED = 2**18
"""Number of bytes at each end of a content that are searched; 0.1 s for all signatures."""


BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Bytes with which some editors begin a text in UTF-8."""


class Content(NamedTuple):
    """Kind of file: its name, a noun phrase, its signature, and how opticoll can use it."""

    name: str
    """Name of the format in `formats.FORMATS`; other names are no formats."""
    noun: str
    shows: Callable[[bytes], bool]
    """Returns whether the beginning of a content has the signature."""
    use: str


def recognize(content: bytes) -> Content | None:
    """Returns the kind of a file by its content; None if no signature fits."""
    content = content.removeprefix(BYTE_ORDER_MARK)
    if len(content) > 2 * _EXAMINED:
        content = content[:_EXAMINED] + content[-_EXAMINED:]
    return next((kind for kind in CONTENTS if kind.shows(content)), None)


def refusal(path: object, kind: Content, wanted: str) -> str:
    """Returns what a file is in place of `wanted`, such as `a fabric`, and how to use it."""
    return f"`{path}` is {kind.noun}, not {wanted}; {kind.use}"


def _begins(*magics: bytes) -> Callable[[bytes], bool]:
    return lambda content: content.startswith(magics)


def _has(*patterns: str) -> Callable[[bytes], bool]:
    """Returns a function that finds all `patterns`; `^` is the beginning of a line."""
    compiled = [re.compile(pattern.encode(), re.MULTILINE) for pattern in patterns]
    return lambda content: all(pattern.search(content) for pattern in compiled)


def _xml(*tags: str) -> Callable[[bytes], bool]:
    """Returns a function that finds XML with elements of all `tags`."""
    has = _has(*(rf"<(?:\w+:)?{tag}[\s/>]" for tag in tags))
    return lambda content: content.lstrip()[:1] == b"<" and has(content)


def _json(*keys: str) -> Callable[[bytes], bool]:
    """Returns a function that finds a JSON object or list with all `keys`."""
    has = _has(*(rf'"(?:{key})"\s*:' for key in keys))
    return lambda content: content.lstrip()[:1] in (b"{", b"[") and has(content)


def _starts(pattern: str) -> Callable[[bytes], bool]:
    """Returns a function that matches a pattern at the first line that is no comment (`#`)."""
    compiled = re.compile(rf"\s*(?:#[^\n]*\n\s*)*(?:{pattern})".encode())
    return lambda content: compiled.match(content) is not None


def _is_goal(content: bytes) -> bool:
    first = re.sub(rb"//[^\n]*|/\*.*?\*/", b"", content[:4096], flags=re.DOTALL).lstrip()
    return first.startswith((b"num_ranks", b"rank "))


def _is_list_of_files(content: bytes) -> bool:
    """Returns whether each line is one word with a letter and with a dot or a slash."""
    words = (
        content[:4096].rpartition(b"\n")[0].split(b"\n") if content[4096:] else content.split(b"\n")
    )
    words = [word.strip() for word in words if word.strip()]
    pattern = re.compile(rb"(?=.*[A-Za-z])(?=.*[./])[^\s,:;={}<>\[\]\"]+")
    return bool(words) and all(pattern.fullmatch(word) for word in words)


def _is_chakra(content: bytes) -> bool:
    """Returns whether a content begins with a trace's header and a node.

    The node may be cut off.
    """
    try:
        length, at = _number(content, 0)
        end = at + length
        while at < end:
            key, at = _number(content, at)
            length, at = _number(content, at)
            if key not in (0x0A, 0x12) or at + length > end:
                return False
            at += length
        if end == len(content):
            return end > 0
        _, at = _number(content, end)
        key, _ = _number(content, at)
    except IndexError:
        return False
    return key in (0x08, 0x12, 0x18)


def _number(content: bytes, at: int) -> tuple[int, int]:
    """Returns the number at position `at`, and the position after the number.

    Each byte contains seven bits of the number, the lowest bits first.
    """
    number = 0
    for place in range(5):
        byte = content[at + place]
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return number, at + place + 1
    raise IndexError(at)


_YAML = r"\b{}[\"']?\s*:"
"""Pattern of a key of YAML or JSON."""

_FABRIC = "give it as `--fabric FILE`"
_SCHEDULE = "`opticoll verify FILE` proves it, and `opticoll import FILE` makes it a plan"
_TRACE = "`opticoll replay FILE` times it"
_MESSAGES = f"{_TRACE}; `opticoll verify FILE` proves it if it states the chunks of its messages"
_PACKED = "decompress the file first"
_NETWORKX = "opticoll reads GraphML: networkx.write_graphml(networkx."

CONTENTS = (
    # Binary files, and texts that begin with a word of their own.
    Content("parquet", "a trace or table in Parquet", _begins(b"PAR1"), _TRACE),
    Content(
        *("otf2", "an OTF2 archive"),
        lambda content: content[257:262] == b"ustar" or content[1:6] == b"BOTF2",
        _TRACE,
    ),
    Content("numpy", "an array of NumPy", _begins(b"\x93NUMPY"), "save it as text (numpy.savetxt)"),
    Content(
        *("sqlite", "a database of SQLite", _begins(b"SQLite format 3\0")),
        "if `opticoll sweep` wrote it, `opticoll results FILE` prints it; other databases are "
        "not read",
    ),
    Content("xz", "a file compressed with xz", _begins(b"\xfd7zXZ\0"), f"{_PACKED}: xz -dk FILE"),
    Content(
        "gzip", "a file compressed with gzip", _begins(b"\x1f\x8b"), f"{_PACKED}: gzip -dk FILE"
    ),
    Content("bzip2", "a file compressed with bzip2", _begins(b"BZh"), f"{_PACKED}: bzip2 -dk FILE"),
    Content("zip", "a zip archive", _begins(b"PK\x03\x04"), "unpack the archive first"),
    Content("hdf5", "a file of HDF5", _begins(b"\x89HDF\r\n\x1a\n"), "opticoll does not read HDF5"),
    Content(
        "pickle",
        "a pickle of Python",
        _begins(b"\x80\x04", b"\x80\x05"),
        "opticoll never loads pickles, because they can run any code; save the content as text",
    ),
    Content(
        *("utf_16", "a text in UTF-16", _begins(b"\xff\xfe", b"\xfe\xff")),
        "save it as UTF-8, such as by iconv -f UTF-16 -t UTF-8",
    ),
    Content(
        *("picture", "a picture or document", _begins(b"\x89PNG", b"%PDF-", b"\xff\xd8\xff")),
        "opticoll reads the data from which it was made",
    ),
    Content("elf", "a program or library", _begins(b"\x7fELF"), "opticoll does not load it"),
    Content(
        *("git_lfs", "a pointer of Git LFS in place of a file"),
        _begins(b"version https://git-lfs.github.com/"),
        "`git lfs pull` fetches the file",
    ),
    Content(
        *("html", "a page in HTML", _starts(r"(?i:<!doctype html|<html[\s>])")),
        "a download may have failed, or have led to a page about the file",
    ),
    Content(
        *("goal_binary", "GOAL in binary form", _begins((4223).to_bytes(8, "little"))),
        "opticoll reads the text from which txt2bin made it",
    ),
    Content(
        *("plan", "a plan of opticoll", _begins(b"opticoll plan ")),
        "`opticoll simulate FILE` times it",
    ),
    Content(
        "sends", "a list of sends", _has(r"\A\s*#[ \t]*[a-z_]+[ \t][^\n]*\branks=\d+"), _SCHEDULE
    ),
    Content("time_independent", "a trace of SimGrid", _starts(r"\d+\s+[A-Za-z]+(?:\s|$)"), _TRACE),
    Content(
        *("time_independent_index", "a list of files, such as the traces of SimGrid"),
        _is_list_of_files,
        _TRACE,
    ),
    Content("table", "an event table", _starts(r"(?=[^\n]*\brank\b)[^\n]*\bcall\b[^\n]*,"), _TRACE),
    Content("goal", "a program in GOAL", _is_goal, _MESSAGES),
    Content("gml", "a graph in GML", _starts(r"(?:[A-Z]\w*\s+\S[^\n]*\s+)*graph\s*\["), _FABRIC),
    Content(
        *("dot", "a graph in DOT (Graphviz)", _starts(r"(?:strict\s+)?(?:di)?graph\b[^\n\[]*\{")),
        f"{_NETWORKX}nx_pydot.read_dot(FILE), ...)",
    ),
    Content(
        "pajek", "a graph in Pajek", _starts(r"\*[Vv]ertices"), f"{_NETWORKX}read_pajek(FILE), ...)"
    ),
    Content(
        *("sndlib_native", "a network of SNDlib in its native form", _starts(r"\?SNDlib native")),
        "opticoll reads its XML form, which SNDlib offers beside it",
    ),
    Content(
        *("htsim_topology", "a topology of htsim", _starts(r"(?i:nodes)\s+\d+\s+(?i:tiers)\s")),
        _FABRIC,
    ),
    Content(
        *("htsim_messages", "a connection matrix of htsim"),
        _starts(r"(?i:nodes)\s+\d+\s+(?i:connections)\s"),
        "opticoll replays GOAL and time-independent traces of messages",
    ),
    Content(
        *(
            "simai_workload",
            "a workload of SimAI or ASTRA-sim 1",
            _starts(r"[A-Z_]+[^\n]*\n\s*\d+\s*\n\S+\s+-1\s"),
        ),
        _TRACE,
    ),
    Content(
        *("tuner", "a tuner table of NCCL"),
        _starts(r"(?:allreduce|broadcast|reduce|allgather|reducescatter),\d+,\d+,[a-z_]+,"),
        "NCCL reads it; `opticoll export ROWS --format nccl` writes such tables",
    ),
    # XML.
    Content("msccl", "a program in MSCCL XML", _xml("algo"), _SCHEDULE),
    Content("nccl_topology", "a topology of NCCL", _xml("system", "cpu"), _FABRIC),
    Content("graphml", "a graph in GraphML", _xml("graphml"), _FABRIC),
    Content("sndlib", "a network of SNDlib", _xml("networkStructure"), _FABRIC),
    Content(
        *("nccl_graphs", "the rings and trees that NCCL chose", _xml("graphs")),
        "opticoll reads the topology, which NCCL_TOPO_DUMP_FILE=FILE writes",
    ),
    Content("hwloc", "a topology of hwloc", _xml("topology", "object"), _FABRIC),
    Content(
        *("simgrid_platform", "a platform of SimGrid", _xml("platform")),
        "write its hosts and links as an edge list or GraphML",
    ),
    Content("gexf", "a graph in GEXF", _xml("gexf"), f"{_NETWORKX}read_gexf(FILE), ...)"),
    # JSON.
    Content("mscclpp", "an execution plan of MSCCL++", _json("gpus", "threadblocks"), _SCHEDULE),
    Content(
        *("te_ccl", "a result of TE-CCL"),
        lambda content: content.lstrip()[:1] == b"{" and b" traveled over " in content,
        _SCHEDULE,
    ),
    Content("sccl", "an algorithm of SCCL (msccl-tools)", _json("m?sccl_type"), _SCHEDULE),
    Content(
        *("kineto", "a timeline of PyTorch or Chrome", _json("traceEvents")),
        "opticoll replays Chakra traces, into which `chakra_trace_link` and `chakra_converter` "
        "convert it",
    ),
    Content(
        *("pytorch_trace", "an execution trace of PyTorch", _json("schema", "nodes", "pid")),
        "opticoll replays Chakra traces, into which `chakra_trace_link` and `chakra_converter` "
        "convert it",
    ),
    Content(
        *(
            "chakra_json",
            "a Chakra trace as JSON",
            _json("ctrl_?[dD]eps|data_?[dD]eps|durationMicros"),
        ),
        _MESSAGES,
    ),
    Content(
        *("astra_system", "a system of ASTRA-sim", _json("scheduling-policy")),
        "it states algorithms and no links; give opticoll the network (.yml), and the algorithm "
        "as `--algorithm`",
    ),
    Content(
        *("astra_dimensions", "the logical dimensions of ASTRA-sim", _json("logical-dims")),
        "it states no links; give opticoll the topology of ns-3 or htsim that belongs to it, or "
        "write `torus:dims=AxB,rate=...`",
    ),
    Content(
        *("astra_memory", "a remote memory of ASTRA-sim", _json("memory-type")),
        "it states no links; give opticoll the network (.yml)",
    ),
    Content(
        *("astra_network_1", "a network of ASTRA-sim 1", _json("topologies-per-dim|units-count")),
        "opticoll reads the form of ASTRA-sim 2, with the fields topology, npus_count, bandwidth "
        "and latency (.yml)",
    ),
    Content(
        "node_link", "a graph as node-link JSON", _json("nodes", "directed|links|edges"), _FABRIC
    ),
    # YAML, also as JSON, and texts that have the signature anywhere.
    Content(
        *("astra_network", "a network of ASTRA-sim"),
        _has(_YAML.format("topology"), _YAML.format("npus_count")),
        _FABRIC,
    ),
    Content(
        *("infragraph", "a description in InfraGraph"),
        _has(_YAML.format("devices"), _YAML.format("instances")),
        _FABRIC,
    ),
    Content("fabric", "a fabric of opticoll", _has(r"^(?:family|preset)\s*:"), _FABRIC),
    Content("study", "a study of opticoll", _has(r"^study\s*:"), "`opticoll sweep FILE` runs it"),
    Content(
        *("nvidia_topo", "the output of `nvidia-smi topo -m`"),
        _has(r"^\W*GPU0\b.*\bCPU Affinity|^\W*GPU0\s+X\b"),
        _FABRIC,
    ),
    Content(
        *("ns3_topology", "a topology of ns-3 or SimAI"),
        _has(
            r"\A\s*\d+(?:\s+\d+){2}(?:(?:\s+\d+){2}\s+\S+)?.*\n",
            r"^\d+\s+\d+\s+\S+bps\s+\S+s\s+\S+",
        ),
        _FABRIC,
    ),
    Content("liballprof", "a trace of liballprof", _has(r"^MPI_[A-Z][A-Za-z_]+\s*:\s*\d"), _TRACE),
    Content(
        *("nccl_tests", "the output of nccl-tests or OSU's benchmarks"),
        _has(r"^#.*(?:\bout-of-place\b|\bOSU MPI\b|\bnThread \d)"),
        "`opticoll calibrate` fits the costs of a machine to it",
    ),
    Content(
        *("hostfile", "a host file of MPI", _has(r"^[\w.-]+[ \t]+(?:max_)?slots[ \t]*=[ \t]*\d")),
        "it names hosts and no links",
    ),
    Content(
        *("slurm", "a topology of Slurm", _has(r"^SwitchName=")),
        "it states no rates; write its switches and nodes as an edge list or GraphML",
    ),
    Content(
        *("ibnetdiscover", "the output of ibnetdiscover", _has(r'^(?:Switch|Ca)\s+\d+\s+"')),
        "write its switches and hosts as GraphML with the rates of the links",
    ),
    Content("chakra", "a Chakra trace", _is_chakra, _MESSAGES),
)
"""All kinds of files; of several signatures that fit, the first counts."""
