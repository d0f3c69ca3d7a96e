"""Short names of fabrics for titles, tables and figures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache

from opticoll._core import records

GRAPH_FILES: dict[str, tuple[str, frozenset[str]]] = {}
"""Files from which graphs were read, with the options stated for all links.

The key is the text of the graph.
"""

GRAPH = ("ranks", "switches", "links", "names", "positions")
"""Options that are the graph itself, which its name stands for."""


def options_of(spec: str) -> dict[str, str]:
    """Returns the options of a specification.

    >>> options_of("torus:dims=4x4,rate=1Gb/s")
    {'dims': '4x4', 'rate': '1Gb/s'}
    """
    return dict(part.partition("=")[::2] for part in spec.partition(":")[2].split(",") if part)


def graph_text(spec: str) -> str:
    """Returns the text of a graph: its vertices and links; empty if the fabric lists no links."""
    stated = options_of(spec)
    # The links of a `fat_tree` are numbers of cables.
    lists_links = {"ranks", "links"} <= stated.keys()
    return repr([stated.get(name) for name in ("links", "names")]) if lists_links else ""


def remember(spec: str, file: str, stated: Iterable[str] = ("rate", "latency")) -> None:
    """Remembers that the graph of a fabric was read from a file, with the options `stated`."""
    if graph := graph_text(spec):
        GRAPH_FILES[graph] = (file, frozenset(stated))


def remember_command(spec: str, command: str | None) -> None:
    """Remembers the file after `--fabric` of a command that names one fabric."""
    given = re.findall(r"--fabric[ =]'?([^ ':=,]+)", command or "")
    file = given[0].rpartition("/")[2] if len(given) == 1 else ""
    if re.search(r"\.[A-Za-z]+$", file):
        remember(spec, file)


@cache
def _presets() -> dict[str, str]:
    """Returns the names of the presets that are graphs, by the text of the graph."""
    stands_for = {
        option["meaning"]: str(record["name"])
        for record in records("presets")
        for option in record["options"]
        if option["name"] == "stands for"
    }
    return {graph_text(spec): name for spec, name in stands_for.items() if graph_text(spec)}


@cache
def defaults(family: str) -> dict[str, str | None]:
    """Returns the default of each option of a family as text, or None if the option is required."""
    return {
        option["name"]: None if option["required"] else option["default"] or ""
        for record in records("fabrics")
        if record["name"] == family
        for option in record["options"]
    }


def short_name(spec: str) -> str:
    """Returns the name of a graph's file or preset; of other fabrics the family."""
    graph = graph_text(spec)
    if graph in GRAPH_FILES:
        return GRAPH_FILES[graph][0]
    return _presets().get(graph) or spec.partition(":")[0]


def fabric_text(spec: str) -> str:
    """Returns the title of a fabric: its specification, or the name and summary of a graph.

    The summary states the options that differ from their defaults.

    >>> fabric_text("crossbar:ranks=4,rate=1Gb/s")
    'crossbar:ranks=4,rate=1Gb/s'
    >>> fabric_text("custom:ranks=2,switches=1,links=0-2+2-1@1Gb/s,rate=9Gb/s,latency=0s")
    'custom (1 switch, 2 cables; rate 9Gb/s for 1 cable, latency 0s)'
    >>> fabric_text("fat_tree:down=4x4,up=1x2,links=1x1")
    'fat_tree:down=4x4,up=1x2,links=1x1'
    >>> fabric_text("wdm_graph:ranks=2,links=0-1@9km,rate=1Gb/s,wavelengths=4,converters=full")
    'wdm_graph (1 cable; wavelengths 4; rate 1Gb/s; converters full)'
    """
    family = spec.partition(":")[0]
    stated = options_of(spec)
    if not graph_text(spec):
        return spec
    cables = [cable.split("@")[1:] for cable in stated["links"].split("+")]
    light = [f"{key} {stated[key]}" for key in ("wavelengths", "fibres") if key in stated]
    size = _counted(stated.get("switches", "0"), "switch", "switches")
    size += _counted(str(len(cables)), "cable", "cables")
    usual = defaults(family)
    _, in_file = GRAPH_FILES.get(graph_text(spec), ("", {"rate", "latency"}))
    shared = []
    for option in _OF_CABLES:
        others = without_own(spec, option)
        if others and option in stated:
            default = "" if option in in_file else "default "
            of = " and ".join(_counted(str(others), "cable", "cables"))
            of = f" for {of}" if others < len(cables) else ""
            shared.append(f"{default}{option} {stated[option]}{of}")
    elsewhere = (*GRAPH, "wavelengths", "fibres", "rate", "latency")
    further = [
        f"{option} {value}"
        for option, value in stated.items()
        if option not in elsewhere and value != usual.get(option)
    ]
    summary = "; ".join(filter(None, map(", ".join, (size, light, shared, further))))
    return f"{short_name(spec)} ({summary})"


_OF_CABLES = {"rate": r"[bB]/s$", "latency": r"[0-9]([munp]?s|k?m)$"}
"""Ends of the texts with which a cable states its own rate, or its own latency or length."""


def without_own(spec: str, option: str) -> int:
    """Returns the number of cables of a graph that have the graph's `rate` or `latency`.

    >>> without_own("custom:ranks=3,links=0-1@80km+1-2@1Gb/s,latency=1us", "latency")
    1
    """
    cables = [cable.split("@")[1:] for cable in options_of(spec)["links"].split("+")]
    unit = _OF_CABLES[option]
    return sum(not any(re.search(unit, text) for text in cable) for cable in cables)


def _counted(number: str, singular: str, plural: str) -> list[str]:
    return [] if number == "0" else [f"{number} {singular if number == '1' else plural}"]


def fabric_labels(spellings: Iterable[str], without: Iterable[str] = ()) -> dict[str, str]:
    """Returns short names by fabric: the family, and options that differ within the family.

    Options in `without` are left out, so several fabrics may get the same name. In place of the
    family, a graph has the name of its file or preset, and its options in a label include defaults.
    Different graphs with one name have their summaries.

    >>> fabric_labels(["crossbar:ranks=4,rate=1Gb/s", "torus:dims=4x4,a=1", "torus:dims=8x2,a=1"])
    {'crossbar:ranks=4,rate=1Gb/s': 'crossbar', 'torus:dims=4x4,a=1': 'torus:dims=4x4', \
'torus:dims=8x2,a=1': 'torus:dims=8x2'}
    """
    members_of: dict[str, list[str]] = {}
    for spelling in dict.fromkeys(spellings):
        members_of.setdefault(short_name(spelling), []).append(spelling)
    labels: dict[str, str] = {}
    for name, members in members_of.items():
        if len({graph_text(spelling) for spelling in members}) > 1:
            texts = {spelling: fabric_text(spelling) for spelling in members}
            is_clear = len({*texts.values()}) == len(members)
            labels |= texts if is_clear else {spelling: spelling for spelling in members}
            continue
        options = {spelling: options_of(spelling) for spelling in members}
        given = dict.fromkeys(option for stated in options.values() for option in stated)
        for spelling, stated in options.items():
            usual = defaults(spelling.partition(":")[0]) if graph_text(spelling) else {}
            options[spelling] = {
                option: value
                for option in given
                if (value := stated.get(option) or usual.get(option)) and option not in without
            }
        counts = Counter(option for stated in options.values() for option in stated.items())
        for spelling, stated in options.items():
            differing = [
                f"{option}={value}"
                for option, value in stated.items()
                if counts[option, value] < len(members)
            ]
            labels[spelling] = f"{name}:{','.join(differing)}" if differing else name
    return labels
