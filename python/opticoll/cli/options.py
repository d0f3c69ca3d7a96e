"""The options that several commands share, each described once, and those of a comparison."""

# Not `from __future__ import annotations`: cyclopts reads the types of a dataclass at run time.

from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from opticoll import registry
from opticoll.cli import words

__all__ = [
    "ALL_DEFAULT",
    "NO_METHOD",
    "AlgorithmOption",
    "ComparisonOptions",
    "FabricOption",
    "FigureOption",
    "JsonOption",
    "MethodOption",
    "OutputOption",
    "RootOption",
    "SeedOption",
    "SizeOption",
    "Source",
    "TableOption",
    "WavelengthOption",
]

FabricOption = Annotated[
    str | None,
    Parameter(help="A preset, family:key=value,... or a YAML file; see `opticoll list fabrics`."),
]
AlgorithmOption = Annotated[
    str | None,
    Parameter(help="name:key=value,... or your own module:function,key=value."),
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
SeedOption = Annotated[
    int,
    Parameter(
        help="Reported with the result; these simulators draw no random numbers.",
        converter=words.whole(least=0, most=words.MOST_SEED),
        allow_leading_hyphen=True,
    ),
]
OutputOption = Annotated[
    Path | None,
    Parameter(help="Write the plan here; .zst compresses it.", converter=words.path),
]
FigureOption = Annotated[
    Path | None, Parameter(help="Draw it: .svg, .png or .pdf.", converter=words.path)
]
TableOption = Annotated[
    Path | None, Parameter(help="Write the rows here: .csv.", converter=words.path)
]
JsonOption = Annotated[bool, Parameter(name="--json", negative=(), help="Print JSON.")]
Source = Annotated[str, Parameter(help="A plan file, or a collective such as all_gather.")]


if TYPE_CHECKING:
    MethodOptions = Any
else:

    def _method_options():
        """A field for the simulator and one for each recorded setting."""
        simulators = ", ".join(record["name"] for record in registry.records("simulators"))
        default = "circuit on rings and fluid on electrical fabrics if not given"
        helps = {"simulator": f"{simulators}; {default}."}
        for record in registry.records("settings"):
            known = [one["meaning"] for one in record["options"] if one["name"] == "simulator"]
            helps[record["name"]] = f"{record['summary']}; for {' and '.join(known)}."
        kind = str | None
        fields = [
            (name, Annotated[kind, Parameter(help=text)], None) for name, text in helps.items()
        ]
        made = make_dataclass("MethodOptions", fields, frozen=True)
        made.__module__ = __name__  # cyclopts takes what is of `types` for no dataclass
        return made

    MethodOptions = _method_options()

NO_METHOD = MethodOptions()
"""No simulator and no setting given."""

MethodOption = Annotated[MethodOptions, Parameter(name="*")]


@dataclass(frozen=True)
class ComparisonOptions:
    """What `compare` takes for a `Scenario`, as text; None where it was not given."""

    fabric: FabricOption = None
    algorithms: Annotated[
        str | None,
        Parameter(
            name=["--algorithms", "--algorithm"],
            help="Such as auto,ring,optree:k=5; all that run there but auto if not given.",
        ),
    ] = None
    size: SizeOption = None
    sizes: Annotated[
        str | None,
        Parameter(
            help="1KiB,4MiB or 1KiB..1GiB (each four times the last).", allow_leading_hyphen=True
        ),
    ] = None
    ranks: Annotated[str | None, Parameter(help="Numbers of ranks, such as 512,1024.")] = None
    wavelengths: Annotated[
        str | None, Parameter(help="Numbers of wavelengths per fibre, such as 32,64,128.")
    ] = None
    method: MethodOption = NO_METHOD
    wavelength: WavelengthOption = None
    root: RootOption = None


ALL_DEFAULT = ComparisonOptions()
"""No option given."""
