"""Short names of fabrics for titles, tables and figures."""

from __future__ import annotations

import re
from collections.abc import Iterable

CUSTOM_FILES: dict[str, tuple[str, set[str]]] = {}
"""Files from which graphs were read, with the options that a file gives to all links.

The key is the specification of the fabric.
"""


def fabric_text(spec: str) -> str:
    """Returns the title of a fabric: its specification, or the file and summary of a graph.

    >>> fabric_text("crossbar:ranks=4,rate=1Gb/s")
    'crossbar:ranks=4,rate=1Gb/s'
    >>> fabric_text("custom:ranks=2,switches=1,links=0-2+2-1@1Gb/s,rate=9Gb/s,latency=0s")
    'custom (1 switch, 2 cables; rate 9Gb/s for 1 cable, latency 0s)'
    """
    family, _, options = spec.partition(":")
    stated = dict(option.partition("=")[::2] for option in options.split(","))
    if family not in ("custom", "wdm_graph") or "links" not in stated:
        return spec
    file, in_file = CUSTOM_FILES.get(spec, (family, {"rate", "latency"}))
    cables = [cable.split("@")[1:] for cable in stated["links"].split("+")]
    light = [f"{key} {stated[key]}" for key in ("wavelengths", "fibres") if key in stated]
    size = _counted(stated.get("switches", "0"), "switch", "switches")
    size += _counted(str(len(cables)), "cable", "cables")
    shared = []
    for option, unit in (("rate", r"[bB]/s$"), ("latency", r"[0-9]([munp]?s|k?m)$")):
        others = sum(not any(re.search(unit, text) for text in cable) for cable in cables)
        if others and option in stated:
            default = "" if option in in_file else "default "
            of = " and ".join(_counted(str(others), "cable", "cables"))
            of = f" for {of}" if others < len(cables) else ""
            shared.append(f"{default}{option} {stated[option]}{of}")
    return f"{file} ({'; '.join(filter(None, map(', '.join, (size, light, shared))))})"


def _counted(number: str, singular: str, plural: str) -> list[str]:
    return [] if number == "0" else [f"{number} {singular if number == '1' else plural}"]


def fabric_labels(spellings: Iterable[str], without: Iterable[str] = ()) -> dict[str, str]:
    """Returns short names by fabric: the family, and options that differ within the family.

    Options in `without` are left out, so several fabrics may get the same name. Custom fabrics are
    named by their files, or by their summaries.

    >>> fabric_labels(["crossbar:ranks=4,rate=1Gb/s", "torus:dims=4x4,a=1", "torus:dims=8x2,a=1"])
    {'crossbar:ranks=4,rate=1Gb/s': 'crossbar', 'torus:dims=4x4,a=1': 'torus:dims=4x4', \
'torus:dims=8x2,a=1': 'torus:dims=8x2'}
    """
    families: dict[str, dict[str, list[str]]] = {}
    for spelling in spellings:
        family, _, options = spelling.partition(":")
        stated = [part for part in options.split(",") if part.partition("=")[0] not in without]
        families.setdefault(family, {})[spelling] = stated
    labels: dict[str, str] = {}
    for family, members in families.items():
        if family in ("custom", "wdm_graph") and all("links=" in one for one in members):
            texts = {spelling: fabric_text(spelling) for spelling in members}
            files = {spelling: text.partition(" (")[0] for spelling, text in texts.items()}
            distinct = (names for names in (files, texts) if len({*names.values()}) == len(members))
            labels |= next(distinct, {spelling: spelling for spelling in members})
            continue
        for spelling, stated in members.items():
            differing = [
                option
                for option in stated
                if not all(option in other for other in members.values())
            ]
            labels[spelling] = f"{family}:{','.join(differing)}" if differing else family
    return labels
