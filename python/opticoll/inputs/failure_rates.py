"""Failure rates of the parts of a machine: the built-in table, YAML or TOML files, and options.

A rate is a text in one of two forms, after the number of parts of each device if it is not 1:

* `148/16384/54d`: 148 failures of 16,384 parts in 54 days;
* `300FIT`: failures of a part in 10^9 hours.

A file lists the kinds of parts:

    source: logs of our cluster, 2026
    parts:
      - {part: gpu, rate: 148/16384/54d}
      - {part: optics, rate: 2*300FIT}
      - {part: software, rate: 54/16384/54d, repair: false}
      - {part: link, rate: 35/16384/54d, keeps_state: true}

The same file in TOML has a section `[[parts]]` for each kind. `repair: false` means that the run
starts again without a repair. `keeps_state: true` means that the devices keep their memory, so that
the run goes on where it stopped. Errors name file and field, in YAML also the line.

>>> from opticoll.inputs.failure_rates import LLAMA_3, given
>>> round(54 * 24 / (16384 * sum(part.rate for part in LLAMA_3.parts) * 54 * 86400), 3)
3.093
>>> [part] = given(["optics=2*300FIT,keeps_state"], "none").parts
>>> part.part, round(part.rate * 3600e9), part.repair, part.keeps_state
('optics', 600, True, True)
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from opticoll.errors import ConfigError, OpticollError, UsageError
from opticoll.formats.document import Text, is_yaml
from opticoll.formats.toml import is_toml, read_yaml_or_toml
from opticoll.inputs.values import to_seconds
from opticoll.names import nearest

HOURS_OF_FIT = 10**9
"""Hours in the definition of the unit FIT: failures in time."""

FORM = "write 148/16384/54d (failures/parts/time) or 300FIT, after 2* for two parts of each device"


def to_rate(value: Any) -> float:
    """Converts a rate to failures of one device per second.

    Raises
    ------
    UsageError
        The text has neither form, or a number is out of range.
    """
    number, star, rest = str(value).rpartition("*")
    try:
        parts = float(number) if star else 1.0
        if rest.strip() == "0":
            rate = 0.0
        elif rest.strip().upper().endswith("FIT"):
            rate = float(rest.strip()[:-3]) / (HOURS_OF_FIT * 3600)
        else:
            failures, of, time = rest.split("/")
            rate = float(failures) / (float(of) * to_seconds("rate", time))
        rate *= parts
    except OpticollError:
        raise
    except (ValueError, ZeroDivisionError) as error:
        raise UsageError(f"`{value}` is not a failure rate; {FORM}") from error
    if not 0 <= rate < math.inf:
        raise UsageError(f"`{value}` is not a failure rate of at least 0; {FORM}")
    return rate


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"`{value}` is neither true nor false")
    return value


@dataclass(frozen=True)
class Part:
    """Kind of part, with its failures per device and second."""

    part: Text
    """Name of the kind."""
    rate: Annotated[float, to_rate]
    """Failures of one device per second."""
    repair: Annotated[bool, _truth] = True
    """Whether the unit with the failed part is repaired; otherwise the run starts again with it."""
    keeps_state: Annotated[bool, _truth] = False
    """Whether the run goes on where it stopped, instead of from the last checkpoint."""


@dataclass(frozen=True)
class FailureRates:
    """Kinds of parts, and the source of their rates."""

    parts: list[Part]
    source: Text = "given by the user"


def _llama_3(part: str, failures: int, *, repair: bool = True) -> Part:
    return Part(part, to_rate(f"{failures}/16384/54d"), repair)


LLAMA_3 = FailureRates(
    [
        _llama_3("gpu", 148),
        _llama_3("hbm", 72),
        _llama_3("software", 54, repair=False),
        _llama_3("network", 35),
        _llama_3("host_maintenance", 32),
        _llama_3("gpu_sram", 19),
        _llama_3("gpu_processor", 17),
        _llama_3("nic", 7),
        _llama_3("nccl_timeout", 7, repair=False),
        _llama_3("silent_corruption", 6),
        _llama_3("gpu_thermal", 6),
        _llama_3("ssd", 3),
        _llama_3("power_supply", 3),
        _llama_3("chassis", 2),
        _llama_3("io_board", 2),
        _llama_3("dependency", 2, repair=False),
        _llama_3("cpu", 2),
        _llama_3("memory", 2),
    ],
    "Llama 3 405B, arXiv 2407.21783, table 5; secondary text: glennklockwood.com, component "
    "reliability; unconfirmed: the paper itself was not read",
)
"""Unexpected interruptions in 54 days on 16,384 H100; the 18 counts add up to the stated 419.

Which kinds need no repair is opticoll's assignment; the table does not say so.
"""

TABLES = {"llama3": LLAMA_3, "none": FailureRates([])}
"""Built-in tables of failure rates by name."""


def read(path: str | os.PathLike[str]) -> FailureRates:
    """Reads failure rates from a YAML file, or from a TOML file (ending `.toml`).

    Raises
    ------
    ConfigError
        The file is no valid list of rates; the message names the field.
    FileError
        The file cannot be read.
    """
    return read_yaml_or_toml(path, FailureRates)


def replaced_kinds(table: FailureRates, network: Iterable[str]) -> list[str]:
    """Returns the kinds of a table that contain parts of a network, which have rates of their own.

    `nic` contains network interfaces, and `network` all other parts between devices. A kind with
    the name of a part is this part.

    >>> replaced_kinds(LLAMA_3, ["transceiver"]), replaced_kinds(LLAMA_3, ["nic", "ocs"])
    (['network'], ['network', 'nic'])
    """
    parts = set(network)
    within = parts | ({"network"} if parts - {"nic"} else set())
    return [part.part for part in table.parts if part.part in within]


def given(rates: Sequence[str], table: str, network: Sequence[Part] = ()) -> FailureRates:
    """Returns the rates of a table or file, in which `rates` (`KIND=RATE`) replace or add kinds.

    Parts of a `network` replace the kinds that contain them, and are added before `rates`.

    Raises
    ------
    OpticollError
        There is no such table, the file is invalid, or a rate is invalid.
    """
    if is_yaml(table) or is_toml(table):
        found = read(table)
    elif table in TABLES:
        found = TABLES[table]
    else:
        raise UsageError(
            f"--rates: there is no table `{table}`{nearest(table, TABLES)}; or give a file with "
            "the ending .yaml or .toml"
        )
    replaced = replaced_kinds(found, (part.part for part in network))
    parts = {part.part: part for part in found.parts if part.part not in replaced}
    parts |= {part.part: part for part in network}
    for text in rates:
        kind, equals, rest = text.partition("=")
        rate, *words = rest.split(",")
        if not equals or not kind or set(words) - {"no_repair", "keeps_state"}:
            raise UsageError(
                f"--rate: `{text}` has not the form KIND=RATE, such as gpu=148/16384/54d, with "
                "`,no_repair` or `,keeps_state` after it where this holds"
            )
        try:
            parts[kind] = Part(
                kind, to_rate(rate), "no_repair" not in words, "keeps_state" in words
            )
        except UsageError as error:
            raise UsageError(f"--rate {kind}: {error}") from error
    source = found.source if found.parts or not rates else FailureRates([]).source
    if rates and found.parts:
        source += f"; --rate: {', '.join(text.partition('=')[0] for text in rates)}"
    return replace(found, parts=[part for part in parts.values() if part.rate > 0], source=source)
