"""The options that several commands share, each described once."""

# Not `from __future__ import annotations`: cyclopts reads the types of a dataclass at run time.

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import make_dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from opticoll import words
from opticoll._core import records

FabricOption = Annotated[
    str | None,
    Parameter(help="A preset, family:key=value,... or a YAML file; see `opticoll list fabrics`."),
]
FabricsOption = Annotated[
    list[str] | None,
    Parameter(
        help="A preset, family:key=value,... or a YAML file; may be given again.", negative=()
    ),
]
AlgorithmOption = Annotated[
    str | None,
    Parameter(
        help="name:key=value,... or your own module:function,key=value; auto if not given, the "
        "fastest plan found."
    ),
]
SizeOption = Annotated[
    str | None,
    Parameter(help="Such as 4MiB or 4MB; 4MiB if not given.", allow_leading_hyphen=True),
]
WavelengthOption = Annotated[
    str | None, Parameter(help="How wavelengths are assigned; see `opticoll list wavelengths`.")
]
RootOption = Annotated[
    int | None,
    Parameter(
        help="Root of broadcast, reduce, gather, scatter; 0 if not given.",
        converter=words.whole(),
        allow_leading_hyphen=True,
    ),
]
JsonOption = Annotated[bool, Parameter(name="--json", negative=(), help="Print JSON.")]


class _FurtherSettings(Group):
    """Settings that `--help` leaves out and `--help-all` shows."""

    shown = False

    @property
    def show(self) -> bool:
        """Whether the help that is asked for has them."""
        return _FurtherSettings.shown


FURTHER = _FurtherSettings("Further settings")


@contextmanager
def all_settings_shown(shown: bool) -> Iterator[None]:
    """While help is printed: whether it shows all settings."""
    _FurtherSettings.shown = shown
    try:
        yield
    finally:
        _FurtherSettings.shown = False


OF_PLANS = ("issue", "overhead", "placement", "background")
"""Settings of packets that mean nothing where there is no plan."""


def _group(name: str, helps: dict[str, str], further: Sequence[str] = ()) -> Any:
    """A dataclass with a field for each option; some are shown by --help-all alone."""
    groups: dict[str, Any] = {one: {"group": FURTHER} for one in further}
    fields = [
        (one, Annotated[str | None, Parameter(help=text, **groups.get(one, {}))], None)
        for one, text in helps.items()
    ]
    made = make_dataclass(name, fields, frozen=True)
    made.__module__ = __name__  # cyclopts takes what is of `types` for no dataclass
    return made


def _simulators(record: Mapping[str, Any]) -> list[str]:
    """The simulators that know a setting."""
    return [meaning for name, meaning in record["options"] if name == "simulator"]


def _method(name: str, without: Sequence[str] = ()) -> Any:
    """A field for the simulator and one for each recorded setting."""
    simulators = ", ".join(record["name"] for record in records("simulators"))
    default = "chosen by the fabric if not given"
    helps = {"simulator": f"{simulators}; {default}; settings of packet: --help-all."}
    settings = [record for record in records("settings") if record["name"] not in without]
    for record in settings:
        helps[record["name"]] = f"{record['summary']}; for {' and '.join(_simulators(record))}."
    further = [record["name"] for record in settings if "help" in dict(record["options"])]
    return _group(name, helps, further)


def _helps(
    settings: Iterable[Mapping[str, Any]],
    *,
    several: Sequence[str] = (),
    without: Sequence[str] = (),
) -> dict[str, str]:
    """What each setting is, and its default; `several` may have values with commas."""
    return {
        record["name"]: f"{'Several with commas. ' if record['name'] in several else ''}"
        f"{record['summary']}; {dict(record['options'])['default']} if not given."
        for record in settings
        if record["name"] not in without
    }


def _packets() -> dict[str, str]:
    """What the settings of packets alone are."""
    known = (one for one in records("settings") if "packet" in _simulators(one))
    helps = _helps(known, without=OF_PLANS)
    helps["routing"] = helps["routing"].replace(";", "; several with commas;", 1)
    helps["routing"] += " Of bursts: fixed, or least_loaded of the shortest routes."
    return helps


SEVERAL = ("source", "offered_load", "signalling", "assignment", "converters")
"""Settings of bursts of which a command compares values; packets have `routing` as well."""

if TYPE_CHECKING:
    MethodOptions = Any
    ReplayOptions = Any
    PacketOptions = Any
    BurstOptions = Any
    CongestionOptions = Any
else:
    MethodOptions = _method("MethodOptions")
    ReplayOptions = _method("ReplayOptions", ("start", "endpoint", "issue", "overhead"))
    PacketOptions = _group("PacketOptions", _packets())
    BurstOptions = _group(
        "BurstOptions", _helps(records("burst_settings"), several=SEVERAL, without=["routing"])
    )
    CongestionOptions = _group(
        "CongestionOptions", _helps(records("congestion_settings"), several=["congestion"])
    )

# No option given.
NO_METHOD, NO_REPLAY, NO_PACKETS = MethodOptions(), ReplayOptions(), PacketOptions()
NO_BURSTS, NO_CONGESTION = BurstOptions(), CongestionOptions()

MethodOption = Annotated[MethodOptions, Parameter(name="*")]
ReplayOption = Annotated[ReplayOptions, Parameter(name="*")]
PacketOption = Annotated[PacketOptions, Parameter(name="*")]
BurstOption = Annotated[BurstOptions, Parameter(name="*", group="Bursts")]

CongestionOption = Annotated[CongestionOptions, Parameter(name="*")]
