"""File formats: how a file of each format is recognized, and which function reads or writes it.

A format is a module here and a line of `FORMATS`. Files are written under a temporary name and
renamed when complete, so that a file that exists is a file that is whole.

>>> [form.name for form in formats_of("plan")], suffixes("rows")[0]
(['plan'], '.csv')
>>> recognized_format("trace", b"PAR1").name
'parquet'
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

Holds = Literal["choices", "fabric", "plan", "program", "rows", "schedule", "timeline", "trace"]
"""Kinds of file contents.

Plans and programs are read from a path; schedules from a path and a number of ranks, with notes;
fabrics from a path and the fields that a YAML file has beside `graph`; traces from a path, a
content and a rate of operations. Writers take the content first and the path last.
"""


@dataclass(frozen=True)
class Format:
    """File format: its name, content, endings of files, and functions as `module:name`.

    `shows` recognizes a content; a content that no format recognizes has the last one of its kind.
    Files of a `sized` format state bytes: their writer takes the size of the collective in
    bytes before the path. A writer of several files returns their paths.
    `on_links` formats send over links only, so that a fabric must have each of them. `beside` are
    the fields that a YAML file of a fabric may have beside `graph`.
    """

    name: str
    holds: Holds
    suffixes: tuple[str, ...]
    reads: str = ""
    writes: str = ""
    shows: Callable[[bytes], bool] | None = None
    sized: bool = False
    on_links: bool = False
    beside: tuple[str, ...] = ()

    def read(self, *source: Any, **fields: Any) -> Any:
        """Reads a file with the function of the format, whose module is loaded on first use."""
        return _function(self.reads)(*source, **fields)

    def write(self, *content_and_path: Any) -> list[Path] | None:
        """Writes a file with the function of the format; returns the paths if there are several."""
        paths: list[Path] | None = _function(self.writes)(*content_and_path)
        return paths


_SENDS = re.compile(rb"\s*#[ \t]*[a-z_]+[ \t][^\n]*\branks=\d+[^\n]*\n")
_ACTION = re.compile(rb"\s*(#[^\n]*\n\s*)*\d+\s+[a-z_]+(\s|$)")


def _is_goal(content: bytes) -> bool:
    first = re.sub(rb"//[^\n]*|/\*.*?\*/", b"", content[:4096], flags=re.DOTALL).lstrip()
    return first.startswith((b"num_ranks", b"rank "))


_OF_GRAPHS = ("rate", "latency", "members", "without", "rate_from", "unit")

FORMATS = (
    Format(
        *("graphml", "fabric", (".graphml",), "graphml:read", "graphml:write"),
        beside=_OF_GRAPHS,
    ),
    Format(
        *("nccl_topology", "fabric", (".xml",), "nccl_topology:read"), beside=("boxes", "latency")
    ),
    Format(
        *("node_link", "fabric", (".json",), "node_link:read", "node_link:write"),
        shows=lambda content: b'"nodes"' in content,
        beside=_OF_GRAPHS,
    ),
    Format(
        *("infragraph", "fabric", (".yaml", ".yml", ".json", ".pb")),
        *("infragraph_file:read", "infragraph_file:write"),
        shows=lambda content: b"instances" in content,
        beside=("rate", "latency"),
    ),
    Format(
        "plan", "plan", (".plan", ".txt", ".zst"), "core_texts:read_plan", "core_texts:write_plan"
    ),
    Format(
        *("chakra", "program", (".et",), "chakra_traces:read", "chakra_traces:write"),
        shows=lambda content: bool(_function("chakra_traces:is_trace")(content)),
        sized=True,
    ),
    Format(
        *("msccl", "program", (".xml",), "core_texts:read_msccl", "core_texts:write_msccl"),
        shows=lambda content: b"<algo" in content[:65536],
    ),
    Format("csv", "rows", (".csv",), writes="table:write_csv"),
    Format(
        *("sends", "schedule", (".csv",), "sends_csv:read", "sends_csv:write"),
        shows=lambda content: _SENDS.match(content[:4096]) is not None,
    ),
    Format(
        *("goal", "schedule", (".goal",), "core_texts:read_goal", "core_texts:write_goal"),
        shows=_is_goal,
        sized=True,
    ),
    Format(
        *("te_ccl", "schedule", (".json",), "te_ccl:read", "te_ccl:write"),
        shows=lambda content: content.lstrip()[:1] == b"{" and b" traveled over " in content,
        on_links=True,
    ),
    Format("nccl_tuner", "choices", (".conf",), writes="nccl_tuner:write"),
    Format("parquet", "rows", (".parquet",), writes="table:write_parquet"),
    Format("perfetto", "timeline", (".json",), writes="chrome_trace:write"),
    Format(
        *("parquet", "trace", (".parquet",), "parquet_table:read"),
        shows=lambda content: content.startswith(b"PAR1"),
    ),
    Format(
        *("chakra", "trace", (".et",), "chakra_traces:read_trace"),
        shows=lambda content: bool(_function("chakra_traces:is_trace")(content)),
    ),
    Format(
        *("otf2", "trace", (".otf2", ".tar"), "otf2_archive:read_trace"),
        shows=lambda content: content[257:262] == b"ustar" or content[1:6] == b"BOTF2",
    ),
    Format("goal", "trace", (".goal",), "trace_file:goal", shows=_is_goal),
    Format(
        *("time_independent", "trace", (".tit",)),
        *("trace_file:time_independent", "core_texts:write_time_independent"),
        shows=lambda content: _ACTION.match(content[:4096]) is not None,
        sized=True,
    ),
    Format("table", "trace", (".csv",), "trace_file:table"),
)
"""All formats; among formats of one kind, the first that recognizes a content is used."""


def formats_of(holds: Holds) -> list[Format]:
    """Returns the formats of one kind."""
    return [form for form in FORMATS if form.holds == holds]


def suffixes(holds: Holds) -> tuple[str, ...]:
    """Returns all endings of files of one kind."""
    return tuple(suffix for form in formats_of(holds) for suffix in form.suffixes)


def named_format(holds: Holds, path: str) -> Format:
    """Returns the format of a file name's ending, or the first format of the kind."""
    known = formats_of(holds)
    return next((form for form in known if path.lower().endswith(form.suffixes)), known[0])


def recognized_format(holds: Holds, content: bytes) -> Format:
    """Returns the format that recognizes a content."""
    known = formats_of(holds)
    return next(
        (form for form in known if form.shows is not None and form.shows(content)), known[-1]
    )


def _function(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(import_module(f"{__name__}.{module}"), name)
    return function
