"""Options that several commands share; each option is described once."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import make_dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter

from opticoll._core import records
from opticoll.cli import option_types


class _Shown(Group):
    """Group of options that `--help-all` shows and `--help` hides."""

    all = False

    @property
    def show(self) -> bool:
        """True if the current help page shows the group."""
        return _Shown.all


OUTPUT = Group("Output", sort_key=3)
BURSTS = Group("Bursts", sort_key=2)
FURTHER = _Shown("Further options", sort_key=4)
GROUPS = _Shown("Groups of ranks", sort_key=4)

FabricOption = Annotated[
    str | None,
    Parameter(
        help="Fabric: a preset, family:key=value,..., a file, or your own module:function; see "
        "`opticoll list fabrics` (required)"
    ),
]
FabricsOption = Annotated[
    list[str] | None,
    Parameter(
        help="Fabric: a preset, family:key=value,..., a file, or your own module:function; repeat "
        "the option for several (required)",
        negative=(),
    ),
]
SizeOption = Annotated[
    str | None,
    Parameter(
        help="Size of the collective, such as 4MiB or 4MB (default: 4MiB)",
        metavar="SIZE",
        allow_leading_hyphen=True,
    ),
]
ComponentsOption = Annotated[
    Path | None,
    Parameter(
        help="YAML or TOML file with power, prices and failure rates of components, which come "
        "before the listed values (default: see `opticoll list components`)",
        group=FURTHER,
    ),
]
SwitchOption = Annotated[
    str | None,
    Parameter(
        help="Component of all packet switches, with the optical modules at their ports, such as "
        "q3450_cpo (default: packet_switch, and a transceiver at each port)",
        metavar="COMPONENT",
        group=FURTHER,
    ),
]
WavelengthOption = Annotated[
    str | None,
    Parameter(
        help="Algorithm that assigns wavelengths; see `opticoll list wavelengths` (default: auto)",
        metavar="RULE",
        group=FURTHER,
    ),
]
RootOption = Annotated[
    int | None,
    Parameter(
        help="Root of broadcast, reduce, gather, scatter (default: 0)",
        converter=option_types.whole(),
        allow_leading_hyphen=True,
        group=FURTHER,
    ),
]
DemandOption = Annotated[
    str | None,
    Parameter(
        help="Bytes of each pair of ranks of an all_to_all: a CSV file, or uniform, random:seed=0, "
        "zipf:exponent=1,seed=0, one_hot:seed=0 (default: the same for all pairs)",
        metavar="DEMAND",
        group=FURTHER,
    ),
]
EXPERT_SKEW = (
    "Skew of tokens among experts: a rule such as zipf:exponent=1.2 (see `opticoll list skews`), "
    "or a .csv file of weights by layer (default: none, all experts alike)"
)
CAPACITY_FACTOR = (
    "Capacity of an expert as a multiple of its even share, such as 1.25; tokens above it are "
    "dropped (default: none, no tokens are dropped)"
)
EXPERT_COPIES = "Number of further copies of the most loaded experts of a layer"
EXPERT_PLACEMENT = (
    "Placement of experts on ranks: in the order of their numbers, or by load (default: order)"
)
EXPERT_CHUNKS = (
    "Number of chunks in which tokens are sent to experts while the experts compute for earlier "
    "chunks"
)
InputFormatOption = Annotated[
    str | None,
    Parameter(
        help="Format of the file; see `opticoll list formats` (default: recognized by content)",
        metavar="NAME",
        group=FURTHER,
    ),
]
InputRanksOption = Annotated[
    int | None,
    Parameter(
        help="Number of ranks, for a file that does not state the number, such as a result of "
        "TE-CCL (default: derived from its vertices)",
        converter=option_types.whole(least=1),
        group=FURTHER,
    ),
]
JsonOption = Annotated[
    bool, Parameter(name="--json", negative=(), help="Output as JSON", group=OUTPUT)
]


@contextmanager
def all_settings_shown(shown: bool) -> Iterator[None]:
    """Shows or hides further settings in help pages within a `with` block."""
    _Shown.all = shown
    try:
        yield
    finally:
        _Shown.all = False


BOUND_SETTINGS = ("policy", "paths")
"""Settings that lower bounds depend on."""

PLAN_SETTINGS = ("issue", "overhead", "placement", "background")
"""Settings of the packet simulator that apply only to plans."""

LIST_SETTINGS = ("source", "offered_load", "signalling", "assignment", "converters", "congestion")
"""Settings with several values, if a command compares these values; for packets also `routing`."""


def _simulators(record: Mapping[str, Any]) -> list[str]:
    """Returns the names of the simulators that have this setting."""
    return [fact["meaning"] for fact in record["options"] if fact["name"] == "simulator"]


def _about(record: Mapping[str, Any]) -> dict[str, str]:
    """Returns the properties of a setting, such as `default` and `unit`, by their names."""
    return {fact["name"]: fact["meaning"] for fact in record["options"]}


def _parameter(record: Mapping[str, Any], group: str | Group, text: str = "") -> Parameter:
    """Returns the command-line parameter of a setting."""
    about = _about(record)
    default = f"(default: {about['default']})"
    parts = [text or record["summary"]]
    if record["name"] in LIST_SETTINGS:
        parts[0] += "; several with commas"
    return Parameter(
        help=" ".join([*parts, default]),
        metavar=_metavar(about),
        group=_further(record) if "help" in about else group,
    )


def _metavar(about: Mapping[str, str]) -> str:
    """Returns the placeholder of a setting's value in help pages."""
    if "unit" in about:
        return {"time": "TIME", "bytes": "SIZE"}[about["unit"]]
    return "N" if about["values"].startswith("a whole number") else "TEXT"


_GROUPS: dict[str, Group] = {}


def _further(record: Mapping[str, Any]) -> Group:
    """Returns the group of a setting in help pages: all settings of the same simulators."""
    title = f"Settings of {' and '.join(_simulators(record))}"
    return _GROUPS.setdefault(title, _Shown(title, sort_key=5))


def _group(name: str, options: Mapping[str, Parameter]) -> Any:
    """Returns an object with a field for each option; all fields are None."""
    fields = [
        (option_name, Annotated[str | None, option], None)
        for option_name, option in options.items()
    ]
    group_class = make_dataclass(name, fields, frozen=True)
    # cyclopts does not recognize a dataclass of the module `types`.
    group_class.__module__ = __name__
    return group_class()


def _settings(
    kind: str, group: str | Group = "Options", without: Sequence[str] = ()
) -> dict[str, Parameter]:
    """Returns the command-line parameter of each setting of a kind."""
    wanted = (record for record in records(kind) if record["name"] not in without)
    return {record["name"]: _parameter(record, group) for record in wanted}


def _method(name: str, without: Sequence[str] = (), group: str | Group = "Options") -> Any:
    """Returns an object with fields for the simulator and for the simulators' settings."""
    simulators = ", ".join(record["name"] for record in records("simulators"))
    text = f"Simulator: {simulators} (default: by the fabric)"
    simulator = Parameter(help=text, metavar="NAME", group=group)
    return _group(name, {"simulator": simulator} | _settings("settings", group, without))


def _packets() -> dict[str, Parameter]:
    """Returns the settings of packet traffic without plans.

    The description of `routing` also covers bursts.
    """
    others = [
        record["name"] for record in records("settings") if "packet" not in _simulators(record)
    ]
    options = _settings("settings", "Options", [*others, *PLAN_SETTINGS])
    (packets,) = (record for record in records("settings") if record["name"] == "routing")
    (bursts,) = (record for record in records("burst_settings") if record["name"] == "routing")
    ways = _about(bursts)["values"].replace(", ", " or ")
    text = f"{packets['summary']}; several with commas; of bursts: {ways}"
    return options | {"routing": _parameter(packets, "Options", text)}


# Objects in which no option is given: defaults for the fields of parameter classes.
METHOD: Any = _method("MethodOptions")
FURTHER_METHOD: Any = _method("FurtherMethodOptions", group=FURTHER)
REPLAY: Any = _method("ReplayOptions", ("start", "endpoint", "issue", "overhead"))
BOUNDED: Any = _group(
    "BoundedOptions", {name: _settings("settings")[name] for name in BOUND_SETTINGS}
)
PACKETS: Any = _group("PacketOptions", _packets())
BURST_OPTIONS: Any = _group("BurstOptions", _settings("burst_settings", BURSTS, ["routing"]))
CONGESTION: Any = _group("CongestionOptions", _settings("congestion_settings"))
