"""File formats, and the functions that read and write them; `recognition` recognizes contents.

A new format is a module in this package and a line in `FORMATS`. Files are written under a
temporary name and renamed when they are complete, so a file that exists is complete.

>>> [form.name for form in formats_of("plan")], suffixes("rows")[0]
(['plan'], '.csv')
>>> recognized_format(b"PAR1", "run.parquet", "a trace", "trace").name
'parquet'
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from opticoll.errors import ConfigError
from opticoll.formats.recognition import recognize, refusal

Holds = Literal["choices", "fabric", "plan", "program", "rows", "schedule", "timeline", "trace"]
"""Kinds of file contents.

The reader of a plan or program has one argument: the path. The reader of a schedule also has the
number of ranks as an argument, and returns notes with the schedule. The reader of a fabric also has
the fields that are given with the file. The reader of a trace also has the content and
the number of operations per second as arguments. A writer has the content as its first argument and
the path as its last argument.
"""


@dataclass(frozen=True)
class Format:
    """File format: its name, its kind of content, its file endings, and functions as `module:name`.

    A file of a `sized` format contains numbers of bytes, so the writer also receives the size of
    the collective in bytes, before the path. A writer of several files returns their paths. A file
    of an `on_links` format sends only over links, so the fabric must have a link for every
    transfer. `beside` are the fields that may be given with a fabric's file. A file of a `fibres`
    format may be a graph of fibres; then all options of `wdm_graph` may be given with it.
    """

    name: str
    holds: Holds
    suffixes: tuple[str, ...]
    reads: str = ""
    writes: str = ""
    sized: bool = False
    on_links: bool = False
    beside: tuple[str, ...] = ()
    fibres: bool = False

    def read(self, *source: Any, **fields: Any) -> Any:
        """Reads a file with the format's function; the first use imports the function's module."""
        return _function(self.reads)(*source, **fields)

    def write(self, *content_and_path: Any, **options: Any) -> list[Path] | None:
        """Writes a file with the function of the format.

        Returns the paths of the files if there are several.
        """
        paths: list[Path] | None = _function(self.writes)(*content_and_path, **options)
        return paths


_OF_GRAPHS = (
    *("rate", "latency", "ties", "members", "without", "degraded", "positions"),
    *("rate_from", "unit", "length_from", "wavelengths", "hosts", "directed"),
)

FORMATS = (
    Format(
        *("graphml", "fabric", (".graphml",), "graphml:read", "graphml:write"),
        beside=_OF_GRAPHS,
        fibres=True,
    ),
    Format("gml", "fabric", (".gml",), "gml:read", beside=_OF_GRAPHS, fibres=True),
    Format(
        *("edge_list", "fabric", (".edgelist", ".edges", ".txt"), "edge_list:read"),
        beside=_OF_GRAPHS,
        fibres=True,
    ),
    Format(
        *("nccl_topology", "fabric", (".xml",), "nccl_topology:read"),
        beside=("boxes", "latency", "processor_rate"),
    ),
    Format(
        *("hwloc", "fabric", (".xml",), "hwloc_topology:read"),
        beside=("boxes", "latency", "processor_rate", "pci_rate", "nic_rate"),
    ),
    Format("sndlib", "fabric", (".xml",), "sndlib:read", beside=_OF_GRAPHS, fibres=True),
    Format(
        *("node_link", "fabric", (".json",), "node_link:read", "node_link:write"),
        beside=_OF_GRAPHS,
        fibres=True,
    ),
    Format(
        *("infragraph", "fabric", (".yaml", ".yml", ".json", ".pb")),
        *("infragraph_file:read", "infragraph_file:write"),
        beside=("rate", "latency"),
    ),
    Format("astra_network", "fabric", (".yml", ".yaml", ".json"), "astra_network:read"),
    Format("ns3_topology", "fabric", (".topo", ".txt"), "ns3_topology:read"),
    Format("htsim_topology", "fabric", (".topo",), "htsim_topology:read"),
    Format(
        *("nvidia_topo", "fabric", (".txt",), "nvidia_topo:read"),
        beside=("nvlink_rate", "pci_rate", "latency"),
    ),
    Format(
        "plan", "plan", (".plan", ".txt", ".zst"), "core_texts:read_plan", "core_texts:write_plan"
    ),
    Format("chakra", "program", (".et",), "chakra_traces:read", "chakra_traces:write", sized=True),
    Format("chakra_json", "program", (), "chakra_traces:read"),
    Format("msccl", "program", (".xml",), "core_texts:read_msccl", "core_texts:write_msccl"),
    Format(
        *("mscclpp", "program", (".mscclpp.json",)),
        *("mscclpp_plan:read", "mscclpp_plan:write"),
        sized=True,
    ),
    Format("csv", "rows", (".csv",), writes="table:write_csv"),
    Format("sends", "schedule", (".csv",), "sends_csv:read", "sends_csv:write"),
    Format(
        *("goal", "schedule", (".goal",), "core_texts:read_goal", "core_texts:write_goal"),
        sized=True,
    ),
    Format("te_ccl", "schedule", (".json",), "te_ccl:read", "te_ccl:write", on_links=True),
    Format("sccl", "schedule", (".json",), "sccl:read", on_links=True),
    *(
        Format(name, "choices", suffixes, writes="selection_table:write")
        for name, suffixes in (
            ("nccl", (".conf",)),
            ("rccl", ()),
            ("ncclx", ()),
            ("ncclx_json", ()),
            ("open_mpi", ()),
            ("open_mpi_rules", (".rules",)),
            ("mpich", ()),
            ("ucc", ()),
            ("oneccl", ()),
        )
    ),
    Format("parquet", "rows", (".parquet",), writes="table:write_parquet"),
    Format("perfetto", "timeline", (".json",), writes="chrome_trace:write"),
    Format("parquet", "trace", (".parquet",), "parquet_table:read"),
    Format("chakra", "trace", (".et",), "chakra_traces:read_trace"),
    Format("chakra_json", "trace", (), "chakra_traces:read_trace"),
    Format("simai_workload", "trace", (), "simai_workload:read_trace"),
    Format("liballprof", "trace", (), "liballprof:read_trace"),
    Format("otf2", "trace", (".otf2", ".tar"), "otf2_archive:read_trace"),
    Format("goal", "trace", (".goal",), "trace_file:goal"),
    Format(
        *("time_independent", "trace", (".tit",)),
        *("trace_file:time_independent", "core_texts:write_time_independent"),
        sized=True,
    ),
    Format("time_independent_index", "trace", (), "trace_file:time_independent_index"),
    Format("table", "trace", (".csv",), "trace_file:table"),
)
"""All formats."""


def formats_of(holds: Holds) -> list[Format]:
    """Returns all formats for a kind of content."""
    return [form for form in FORMATS if form.holds == holds]


def suffixes(holds: Holds) -> tuple[str, ...]:
    """Returns the file endings of all formats for a kind of content."""
    return tuple(suffix for form in formats_of(holds) for suffix in form.suffixes)


def named_format(holds: Holds, path: str) -> Format:
    """Returns the format to which a file's ending belongs, or else the first format of the kind."""
    candidates = formats_of(holds)
    return next(
        (form for form in candidates if path.lower().endswith(form.suffixes)), candidates[0]
    )


def recognized_format(content: bytes, path: object, wanted: str, *holds: Holds) -> Format | None:
    """Returns the format of a content, which must be of one of the kinds `holds`.

    Returns None if no signature fits. `path` and `wanted`, such as `a trace`, are words for the
    error.

    Raises
    ------
    ConfigError
        The content is of another kind; the message says what it is, and how to use it.
    """
    kind = recognize(content)
    if kind is None:
        return None
    for form in FORMATS:
        if form.name == kind.name and form.holds in holds and form.reads:
            return form
    raise ConfigError(refusal(path, kind, wanted))


def _function(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(import_module(f"{__name__}.{module}"), name)
    return function
