"""The records of everything that has a name: what `opticoll list` prints.

Records are declared in the compiled core, one per algorithm, fabric family, preset, simulator,
policy and wavelength assignment; nothing here repeats them.

>>> from opticoll import registry
>>> registry.DEFAULT_ALGORITHM in registry.algorithm_names("broadcast")
True
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Literal, get_args

from opticoll import _core
from opticoll.errors import AlgorithmError, CollectiveError, UsageError
from opticoll.rows import Row, means

DEFAULT_ALGORITHM = "auto"
"""The algorithm where none is named: the fastest plan found for the size and the settings."""


Kind = Literal[
    "algorithms",
    "fabrics",
    "presets",
    "simulators",
    "policies",
    "start_rules",
    "settings",
    "burst_settings",
    "congestion_settings",
    "congestion_policies",
    "collectives",
    "wavelengths",
    "models",
    "devices",
]
"""What can be listed."""


class OptionRow(Row):
    """An option or setting of a record."""

    name: str = means("Name of the option")
    meaning: str = means("What the option is")
    unit: str | None = means("Unit of its values", absent="its values have no unit")
    range: str | None = means("Values that the option takes", absent="its meaning says it")
    default: str | None = means(
        "Value if the option is not given", absent="it is required, or its meaning says it"
    )
    required: bool = means("Whether the option must be given")
    source: str | None = means(
        "Source of the option and of its default", absent="the source is that of the record"
    )

    def about(self, citation: str) -> str:
        """The option in words; its source where that is not the one of the record."""
        unit = f", in {self.unit}" if self.unit and self.unit not in (self.range or "") else ""
        default = f"default {self.default}" if self.default else ""
        said = [f"{self.range or ''}{unit}", "required" if self.required else default]
        values = "; ".join(filter(None, said))
        source = f"; source: {self.source}" if self.source not in (None, citation) else ""
        return f"{self.meaning}{f' ({values})' if values else ''}{source}"


class RecordRow(Row):
    """A record of something that has a name."""

    kind: Kind = means("Kind of the record")
    name: str = means("Name as typed")
    label: str = means("Name as printed in figures")
    summary: str = means("What it is, in one sentence")
    citation: str = means("Source")
    options: list[OptionRow] = means("Options with their meaning")
    collective: str | None = means(
        "Collective of an algorithm", absent="the record is not an algorithm"
    )
    family: str | None = means(
        "Families of fabrics that an algorithm is made for, joined by commas",
        absent="the record is for all families, or is not an algorithm",
    )


KINDS: tuple[str, ...] = get_args(Kind)


def records(kind: str) -> list[RecordRow]:
    """Records of one kind (one of `KINDS`), in the order of their declaration.

    Raises
    ------
    UsageError
        The kind is none of `KINDS`.
    """
    if kind not in KINDS:
        raise UsageError(f"nothing is listed as `{kind}`{nearest(kind, KINDS)}")
    return [
        RecordRow.of(
            record, kind=kind, options=[OptionRow(**option) for option in record["options"]]
        )
        for record in _core.records(kind)
    ]


def record(kind: str, name: str) -> RecordRow:
    """The record of a kind with a name."""
    return next(one for one in records(kind) if one.name == name)


def listing(what: str | None) -> list[RecordRow]:
    """Records: all, those of a kind, the algorithms of a collective, or those with a name.

    Options behind a name, as in `ring:stripes=all`, change nothing.

    Raises
    ------
    UsageError
        Nothing has that name.
    """
    kind = what and canonical(what, KINDS)
    if what is None or kind:
        kinds = ("fabrics", "presets") if kind == "fabrics" else (kind,) if kind else KINDS
        return [record for one in kinds for record in records(one)]
    try:
        collective = _core.collective_kind(what)
    except CollectiveError as error:
        every = [record for kind in KINDS for record in records(kind)]
        name = canonical(what.partition(":")[0], [record.name for record in every])
        if name is None:
            known = [*KINDS, *dict.fromkeys(record.name for record in every)]
            near = nearest(what, known, "; `opticoll list` shows what there is")
            raise UsageError(f"nothing is listed as `{what}`{near}") from error
        return [record for record in every if record.name == name]
    return [one for one in records("algorithms") if one.collective == collective]


def algorithm_names(collective: str, family: str | None = None) -> list[str]:
    """Names of the algorithms of a collective.

    With a family of fabrics, those that are made for others are left out.
    """
    kind = _core.collective_kind(collective)
    of_kind = [record for record in _core.records("algorithms") if record["collective"] == kind]
    if family:
        of_kind = [one for one in of_kind if family in (one["family"] or family).split(", ")]
    return [record["name"] for record in of_kind]


def plans_by_size(algorithm: str) -> bool:
    """Whether the plans of an algorithm as spelled depend on the size and the policy."""
    return (
        "<" in algorithm or canonical(algorithm.partition(":")[0], _planned_by_size()) is not None
    )


def takes_all_stripes(algorithm: str) -> bool:
    """Whether an algorithm has the option `stripes=all`, which planners of their own do not.

    >>> takes_all_stripes("ring"), takes_all_stripes("levels")
    (True, False)
    """
    options = (
        option
        for record in records("algorithms")
        if record.name == algorithm
        for option in record.options
    )
    return any(one.name == "stripes" and "all" in (one.range or "").split(", ") for one in options)


@cache
def _planned_by_size() -> tuple[str, ...]:
    """The algorithms whose plans depend on the size and the policy."""
    records = _core.records("algorithms")
    return tuple(record["name"] for record in records if record["by_size"])


def has_root(collective: str) -> bool:
    """Whether a collective has a root: whether its demands change with it."""

    def demands(root: int) -> list[tuple[int | None, int | None]]:
        demanded = _core.Collective(collective, 2, root=root)
        chunks = range(demanded.chunks)
        return [(demanded.before(chunk), demanded.after(chunk)) for chunk in chunks]

    return demands(0) != demands(1)


def canonical(name: str, known: Iterable[str]) -> str | None:
    """The known name that a name stands for, whatever its case, hyphens and underscores.

    >>> canonical("WDM-Ring", ["wdm_ring"])
    'wdm_ring'
    """
    wanted = _letters(name)
    return next((one for one in known if _letters(one) == wanted), None)


def algorithm_spelling(collective: str, spec: str) -> str:
    """The spelling of an algorithm with its recorded name; an unknown name is left as it is.

    >>> algorithm_spelling("all_gather", "Bruck<80KiB, Ring")
    'bruck<80KiB,ring'

    Raises
    ------
    AlgorithmError
        The numbers of an option are separated by commas, which separate options.
    """
    small, less, rest = spec.partition("<")
    size, comma, large = rest.partition(",")
    if comma:
        parts = [algorithm_spelling(collective, part) for part in (small, large)]
        return f"{parts[0]}{less}{size.strip()},{parts[1]}"
    numbers = re.search(r"=([0-9]+(?:,[0-9]+)+)", spec)
    if numbers is not None:
        fixed = numbers[1].replace(",", "x")
        raise AlgorithmError(f"`{spec}`: a comma starts another option; write {fixed}")
    name, colon, options = spec.strip().partition(":")
    return f"{canonical(name, algorithm_names(collective)) or name}{colon}{options}"


CUSTOM_FILES: dict[str, tuple[str, set[str]]] = {}
"""Names of the files that custom fabrics were read from, with the options that the files give to
all links, by specification."""


def fabric_text(spec: str) -> str:
    """A fabric as titles name it: its specification; of a custom one its file and a summary.

    >>> fabric_text("crossbar:ranks=4,rate=1Gb/s")
    'crossbar:ranks=4,rate=1Gb/s'
    >>> fabric_text("custom:ranks=2,switches=1,links=0-2+2-1@1Gb/s,rate=9Gb/s,latency=0s")
    'custom (1 switch, 2 cables; rate 9Gb/s for 1 cable, latency 0s)'
    """
    family, _, options = spec.partition(":")
    given = dict(option.partition("=")[::2] for option in options.split(","))
    if family != "custom" or "links" not in given:
        return spec
    file, in_file = CUSTOM_FILES.get(spec, (family, {"rate", "latency"}))
    cables = [cable.split("@")[1:] for cable in given["links"].split("+")]
    size = _counted(given.get("switches", "0"), "switch", "switches")
    size += _counted(str(len(cables)), "cable", "cables")
    shared = []
    for option, unit in (("rate", r"[bB]/s$"), ("latency", r"[0-9][munp]?s$")):
        others = sum(not any(re.search(unit, one) for one in own) for own in cables)
        if others and option in given:
            default = "" if option in in_file else "default "
            of = " and ".join(_counted(str(others), "cable", "cables"))
            of = f" for {of}" if others < len(cables) else ""
            shared.append(f"{default}{option} {given[option]}{of}")
    return f"{file} ({'; '.join(filter(None, [', '.join(size), ', '.join(shared)]))})"


def _counted(number: str, one: str, several: str) -> list[str]:
    return [] if number == "0" else [f"{number} {one if number == '1' else several}"]


def fabric_labels(spellings: Iterable[str], without: Iterable[str] = ()) -> dict[str, str]:
    """Short names for fabrics: the family, and the options in which those of a family differ.

    Options in `without` are left out, so that fabrics may share a name. Custom fabrics are named by
    their files, or in words.

    >>> fabric_labels(["crossbar:ranks=4,rate=1Gb/s", "torus:dims=4x4,a=1", "torus:dims=8x2,a=1"])
    {'crossbar:ranks=4,rate=1Gb/s': 'crossbar', 'torus:dims=4x4,a=1': 'torus:dims=4x4', \
'torus:dims=8x2,a=1': 'torus:dims=8x2'}
    """
    families: dict[str, dict[str, list[str]]] = {}
    for spelling in spellings:
        family, _, options = spelling.partition(":")
        kept = [one for one in options.split(",") if one.partition("=")[0] not in without]
        families.setdefault(family, {})[spelling] = kept
    labels: dict[str, str] = {}
    for family, members in families.items():
        if family == "custom":
            texts = {spelling: fabric_text(spelling) for spelling in members}
            files = {spelling: text.partition(" (")[0] for spelling, text in texts.items()}
            told = (names for names in (files, texts) if len({*names.values()}) == len(members))
            labels |= next(told, {spelling: spelling for spelling in members})
            continue
        for spelling, kept in members.items():
            own = [one for one in kept if not all(one in other for other in members.values())]
            labels[spelling] = f"{family}:{','.join(own)}" if own else family
    return labels


def nearest(name: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """`; did you mean X?` where a known name is near, otherwise a list of what is known."""
    import difflib

    names = list(known)
    near = difflib.get_close_matches(name.lower(), names, n=1)
    if near:
        return f"; did you mean `{near[0]}`?"
    return f"; known are {', '.join(names)}" if otherwise is None else otherwise


def _letters(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()


def without_defaults(kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a kind that differ from their defaults.

    >>> without_defaults("settings", {"routing": "minimal", "packet": "4KiB"})
    {'packet': '4KiB'}
    """
    default = {
        record["name"]: one["meaning"]
        for record in _core.records(kind)
        for one in record["options"]
        if one["name"] == "default"
    }
    return {name: value for name, value in given.items() if str(value) != default.get(name)}
