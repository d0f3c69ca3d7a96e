"""Scenarios of `opticoll compare`, from arguments or from YAML (1.2) files.

The field `fabric` of a file may be a specification, the name of a fabric file, the fields of a
fabric, or a list of these:

    collective: all_gather
    fabric: optree_paper
    algorithms: [ring, "optree:radices=4x4x4x4x4"]
    sizes: 1KiB..1GiB
    wavelengths: [32, 64, 128]

Errors name the file, the line and the field.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, make_dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from opticoll._core import Fabric, OpticollError, check_settings, collective_kind
from opticoll.errors import ConfigError
from opticoll.formats.document import Document, Place, Text, text, whole
from opticoll.inputs import demands
from opticoll.inputs.fabric_files import (
    fabric_of_fields,
    parse_fabric,
    split_options,
    to_fabrics,
)
from opticoll.inputs.imported import is_plan_file
from opticoll.inputs.settings import SETTING_NAMES, Settings, set_settings
from opticoll.inputs.values import split_algorithms, split_sizes, split_times, to_bytes
from opticoll.names import has_root

if TYPE_CHECKING:
    from opticoll.inputs.fabric_files import FabricLike
    from opticoll.inputs.user_algorithm import UserAlgorithm


@dataclass(frozen=True)
class Scenario:
    """Scenario of a comparison: fabrics, algorithms, sizes and settings."""

    collective: str
    fabrics: Sequence[Fabric]
    sizes: list[int]
    algorithms: Sequence[str | UserAlgorithm] | None = None
    ranks: Sequence[int] | None = None
    wavelengths: Sequence[int] | None = None
    reconfiguration: Sequence[str] | None = None
    """Reconfiguration times, which replace the time of the fabric."""
    auto: bool = True
    settings: Settings = field(default_factory=Settings)
    wavelength: str = "auto"
    root: int = 0
    demand: Any = None
    """Demand in a form that `opticoll.plan` accepts."""
    origin: Document | None = None
    """File from which the scenario was read."""
    overridden: frozenset[str] = frozenset()
    """Fields that options replaced; errors in these fields do not name the file."""

    def located(self, error: OpticollError) -> OpticollError:
        """Adds file, line and field to an error if the file caused the error."""
        field: Place = getattr(error, "field", ())
        if self.origin is None or not field or field[0] in self.overridden:
            return error
        return self.origin.error(field, str(error).removeprefix(f"{field[0]}: "))


def to_scenario(
    collective: str,
    fabric: FabricLike | Iterable[FabricLike],
    algorithms: str | Iterable[str | UserAlgorithm] | None = None,
    *,
    sizes: str | int | Iterable[str | int] | None = None,
    ranks: Iterable[int] | None = None,
    wavelengths: Iterable[int] | None = None,
    reconfiguration: str | Iterable[str] | None = None,
    **others: Any,
) -> Scenario:
    """Creates a scenario from the arguments of `opticoll.compare`; `others` are further fields.

    Raises
    ------
    OpticollError
        A collective is unknown, or a fabric or size is invalid.
    """
    ranks = None if ranks is None else list(ranks)
    fabrics = to_fabrics(fabric, ranks)
    if isinstance(algorithms, str):
        algorithms = split_algorithms(algorithms)
    if sizes is None:
        demand = others.get("demand")
        demand_bytes = None if demand is None else demands.to_demand(demand, fabrics[0].ranks)[1]
        sizes = demands.DEFAULT_SIZE if demand_bytes is None else demand_bytes
    if isinstance(sizes, str):
        sizes_bytes = split_sizes(sizes)
    else:
        listed = sizes if isinstance(sizes, Iterable) else [sizes]
        sizes_bytes = list(dict.fromkeys(to_bytes(size) for size in listed))
    return Scenario(
        collective=collective_kind(collective),
        fabrics=fabrics,
        sizes=sizes_bytes,
        algorithms=None if algorithms is None else list(algorithms),
        ranks=ranks,
        wavelengths=None if wavelengths is None else list(wavelengths),
        reconfiguration=None if reconfiguration is None else _read_times(reconfiguration),
        **others,
    )


def read_scenario(path: str | os.PathLike[str]) -> Scenario:
    """Reads a scenario from a YAML file.

    Raises
    ------
    ConfigError
        The file is no valid scenario; the message names line and field.
    FileError
        The file, or a fabric file that it names, cannot be read.
    """
    document = Document.read(path)
    fields: dict[str, Any] = dict(vars(document.fields(_ScenarioFile)))
    if fields["root"] is None:
        fields["root"] = 0
    elif not has_root(fields["collective"]):
        raise document.error(("root",), f"{fields['collective']} has no root; leave it out")
    fabric = fields.pop("fabric")
    if isinstance(fabric, list):
        listed = enumerate(fabric)
        machines = [_machine(document, member, ("fabric", place)) for place, member in listed]
    else:
        machines = [_machine(document, fabric, ("fabric",))]
    settings = set_settings(fields)
    fields = {key: value for key, value in fields.items() if key not in SETTING_NAMES}
    fabrics = to_fabrics(machines)
    if fields["algorithms"] is not None:
        folder = document.path.parent
        fields["algorithms"] = [
            str(folder / name) if is_plan_file(name) else name for name in fields["algorithms"]
        ]
    if fields["demand"] is not None:
        fields |= _demanded(document, fields["demand"], fabrics[0].ranks)
    return Scenario(fabrics=fabrics, origin=document, settings=settings, **fields)


def _demanded(document: Document, demand: str, ranks: int) -> dict[str, Any]:
    """Returns the field `demand`, and the field `sizes` if the demand has a number of bytes.

    If `demand` is the name of a file, the folder of the scenario is added to the name. If the
    scenario has sizes, these sizes stay.
    """
    if demands.names_file(demand):
        demand = str(document.path.parent / demand)
    try:
        _, size_bytes = demands.to_demand(demand, ranks)
    except OpticollError as error:
        raise document.error(("demand",), str(error)) from error
    has_size = size_bytes is not None and "sizes" not in document.content
    return {"demand": demand, **({"sizes": [size_bytes]} if has_size else {})}


def _machine(document: Document, fabric: str | dict[str, Any], place: Place) -> Fabric:
    """Returns the fabric of a specification, of a fabric file, or of fields in the scenario."""
    if isinstance(fabric, dict):
        return fabric_of_fields(document, fabric, place)
    if split_options(fabric)[0] is not None:
        return parse_fabric(str(document.path.parent / fabric))
    try:
        return parse_fabric(fabric)
    except OpticollError as error:
        raise document.error(place, str(error)) from error


def _read_fabric_field(value: Any) -> Any:
    if value == [] or not isinstance(value, (str, dict, list)):
        raise ConfigError("must be a spelling, a file name, or fields such as `family:`")
    return value


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) or value is None else [value]


def _read_algorithms(value: Any) -> Any:
    return split_algorithms(value) if isinstance(value, str) else value


def _read_sizes(value: Any) -> Any:
    return [size for item in _listed(value) or () for size in split_sizes(str(item))]


def _read_times(value: Any) -> Any:
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [time for item in value for time in split_times(str(item))]
    return split_times(str(value))


def _read_setting(name: str, value: Any) -> str:
    check_settings(**set_settings({name: text(value)}))
    return str(value)


@dataclass(frozen=True)
class _ScenarioFields:
    """Fields of a scenario file, except settings of simulators."""

    collective: Annotated[Text, collective_kind]
    fabric: Annotated[Any, _read_fabric_field]
    algorithms: Annotated[list[Annotated[str, text]], _read_algorithms] | None = None
    sizes: Annotated[list[int], _read_sizes] = field(default_factory=lambda: [4 * 2**20])
    ranks: Annotated[list[Annotated[int, whole(1, 2**63)]], _listed] | None = None
    wavelengths: Annotated[list[Annotated[int, whole(1, 2**63)]], _listed] | None = None
    reconfiguration: Annotated[list[str], _read_times] | None = None
    wavelength: Annotated[str, text] = "auto"
    root: Annotated[int, whole(0, 2**32)] | None = None
    demand: Annotated[str, text] | None = None


_ScenarioFile = make_dataclass(
    "_ScenarioFile",
    [(name, Annotated[str, partial(_read_setting, name)] | None, None) for name in SETTING_NAMES],
    bases=(_ScenarioFields,),
    frozen=True,
)
