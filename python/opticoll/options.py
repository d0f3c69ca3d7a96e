"""The options that several commands share, each described once."""

# Not `from __future__ import annotations`: cyclopts reads the types of a dataclass at run time.

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import make_dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from opticoll import registry, words
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

if TYPE_CHECKING:
    MethodOptions = Any
    ReplayOptions = Any
    PacketOptions = Any
    BurstOptions = Any
    CongestionOptions = Any
else:

    def _options(name, helps, further=()):
        """A dataclass with a field for each option; some are shown by --help-all alone."""
        kind = str | None
        groups = {one: {"group": FURTHER} for one in further}
        fields = [
            (one, Annotated[kind, Parameter(help=text, **groups.get(one, {}))], None)
            for one, text in helps.items()
        ]
        made = make_dataclass(name, fields, frozen=True)
        made.__module__ = __name__  # cyclopts takes what is of `types` for no dataclass
        return made

    def _known(record):
        """The simulators that know a setting."""
        return [one.meaning for one in record.options if one.name == "simulator"]

    def _default(record):
        """What holds where a setting is not given."""
        return next(one.meaning for one in record.options if one.name == "default")

    def _method_options(name, without=()):
        """A field for the simulator and one for each recorded setting."""
        simulators = ", ".join(record.name for record in registry.records("simulators"))
        default = "chosen by the fabric if not given"
        helps = {"simulator": f"{simulators}; {default}; settings of packet: --help-all."}
        settings = [record for record in registry.records("settings") if record.name not in without]
        for record in settings:
            helps[record.name] = f"{record.summary}; for {' and '.join(_known(record))}."
        further = [record.name for record in settings if _known(record) == ["packet"]]
        # A screen is full.
        further += ["link_bin", "paths"]
        return _options(name, helps, further)

    def _packet_options():
        """A field for each setting of packets alone."""
        helps = {
            record.name: f"{record.summary}; {_default(record)} if not given."
            for record in registry.records("settings")
            if "packet" in _known(record) and record.name not in OF_PLANS
        }
        helps["routing"] = helps["routing"].replace(";", "; several with commas;", 1)
        helps["routing"] += " Of bursts: fixed, or least_loaded of the shortest routes."
        return _options("PacketOptions", helps)

    def _burst_options():
        """A field for each setting of bursts that packets do not have as well."""
        helps = {
            record["name"]: f"{record['summary']}; {record['options'][0][1]} if not given."
            for record in records("burst_settings")
            if record["name"] != "routing"
        }
        for name in ("source", "intensity", "signalling", "assignment", "converters"):
            helps[name] = f"Several with commas. {helps[name]}"
        return _options("BurstOptions", helps)

    def _congestion_options():
        """A field for each setting of light paths that may be refused."""
        helps = {
            record["name"]: f"{record['summary']}; {record['options'][0][1]} if not given."
            for record in records("congestion_settings")
        }
        helps["congestion"] = f"Several with commas. {helps['congestion']}"
        return _options("CongestionOptions", helps)

    MethodOptions = _method_options("MethodOptions")
    ReplayOptions = _method_options("ReplayOptions", ("start", "endpoint", "issue", "overhead"))
    PacketOptions = _packet_options()
    BurstOptions = _burst_options()
    CongestionOptions = _congestion_options()

NO_METHOD = MethodOptions()
"""No simulator and no setting given."""

NO_REPLAY = ReplayOptions()
"""The same, of simulators that carry the messages of a replay."""

NO_PACKETS = PacketOptions()
"""No setting of packets given."""

NO_BURSTS = BurstOptions()
"""No setting of bursts given."""

NO_CONGESTION = CongestionOptions()
"""No setting of light paths that may be refused given."""

MethodOption = Annotated[MethodOptions, Parameter(name="*")]
ReplayOption = Annotated[ReplayOptions, Parameter(name="*")]
PacketOption = Annotated[PacketOptions, Parameter(name="*")]
BurstOption = Annotated[BurstOptions, Parameter(name="*", group="Bursts")]

CongestionOption = Annotated[CongestionOptions, Parameter(name="*")]
