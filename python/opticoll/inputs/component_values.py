"""Values of components from a user's YAML or TOML file, which come before the listed values.

    components:
      - name: transceiver_800g
        power: 14.5 W
        price: 900 USD
        failure_rate: 200 FIT
        source: data sheet of our module, May 2026
      - name: packet_switch
        energy: 12 pJ/b
        source: measured

In TOML, each component is a table `[[components]]` with the same fields.

A component that opticoll does not list is a switch for `--switch`, and states `ports` and
`port_rate`. `source` says where the values come from.

>>> import pathlib, tempfile
>>> path = pathlib.Path(tempfile.mkdtemp()) / "parts.yaml"
>>> _ = path.write_text("components: [{name: nic, power: 25 W, source: measured}]")
>>> value = read(path)["nic"][0]
>>> value.name, value.range, value.unit, value.source
('power', '25', 'W', 'given: measured')
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, NamedTuple

from opticoll.errors import ConfigError
from opticoll.formats.document import text
from opticoll.formats.toml import read_yaml_or_toml
from opticoll.names import nearest
from opticoll.outputs.bill import OWN
from opticoll.outputs.records import OptionRow, record_rows

NUMBER = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s*(\S+)")

UNITS = {
    "power": "W",
    "power_per_port": "W/port",
    "energy": "pJ/b",
    "price": "USD",
    "price_per_port": "USD/port",
    "failure_rate": "FIT",
    "reconfiguration_energy": "J",
    "ports": "ports",
    "port_rate": "Gb/s",
}
"""Unit of each property; a field's name has `_` where the name of the property has a blank."""


def quantity(unit: str) -> Callable[[object], str]:
    """Returns a function that checks that a value is a number with `unit`, and returns the number.

    >>> quantity("W")("16.5 W")
    '16.5'
    """

    def read(value: object) -> str:
        match = NUMBER.fullmatch(str(value).strip())
        if match is None or match[2] != unit:
            raise ConfigError(f"`{value}` is not a number with the unit {unit}, such as 16 {unit}")
        return match[1]

    return read


def watts(value: str) -> Fraction:
    """Returns the number of watts of a text such as `200W`."""
    return Fraction(quantity("W")(value))


def _name(value: object) -> str:
    name = text(value)
    if not re.fullmatch("[a-z][a-z0-9_]*", name):
        raise ConfigError(f"`{name}` is not a name of lower-case letters, digits and _")
    return name


def _source(value: object) -> str:
    source = text(value).strip()
    if not source:
        raise ConfigError("the source is empty")
    return source


class Component(NamedTuple):
    """Values of a component, all from one source."""

    name: Annotated[str, _name]
    source: Annotated[str, _source]
    condition: Annotated[str, text] = ""
    power: Annotated[str, quantity("W")] | None = None
    power_per_port: Annotated[str, quantity("W/port")] | None = None
    energy: Annotated[str, quantity("pJ/b")] | None = None
    price: Annotated[str, quantity("USD")] | None = None
    price_per_port: Annotated[str, quantity("USD/port")] | None = None
    failure_rate: Annotated[str, quantity("FIT")] | None = None
    reconfiguration_energy: Annotated[str, quantity("J")] | None = None
    ports: Annotated[str, quantity("ports")] | None = None
    port_rate: Annotated[str, quantity("Gb/s")] | None = None


@dataclass(frozen=True)
class Components:
    """Content of a file."""

    components: list[Component]


def read(path: str | os.PathLike[str]) -> dict[str, list[OptionRow]]:
    """Reads the values of components from a YAML file, or a TOML file if its name ends in `.toml`.

    Raises
    ------
    FileError
        The file cannot be read.
    ConfigError
        A field is missing, unknown or invalid; the error names file and field, and in YAML the
        line. Or a component is not listed, and is no switch.
    """
    listed = [record.name for record in record_rows("components")]
    values: dict[str, list[OptionRow]] = {}
    for place, component in enumerate(read_yaml_or_toml(path, Components).components):
        if component.name not in listed and (
            component.ports is None or component.port_rate is None
        ):
            raise ConfigError(
                f"{os.fspath(path)}, components.{place}.name: unknown component `{component.name}`"
                f"{nearest(component.name, listed, '; see `opticoll list components`')} (a switch "
                "of your own for --switch states ports and port_rate)"
            )
        own = values.setdefault(component.name, [])
        for field, unit in UNITS.items():
            number = getattr(component, field)
            if number is not None:
                own.append(
                    OptionRow(
                        name=field.replace("_", " "),
                        meaning=component.condition,
                        unit=unit,
                        range=number,
                        default=None,
                        required=False,
                        source=f"{OWN}{component.source}",
                    )
                )
    return values
