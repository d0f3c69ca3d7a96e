"""The command line that computes a row again, from the options that the row names.

>>> words_of("plan", {"collective": "all_gather", "fabric": "wdm_ring:ranks=4,wavelengths=1",
...     "algorithm": "ring", "size_bytes": 1024, "policy": "free", "start": None, "settings": []})
'opticoll plan all_gather --fabric wdm_ring:ranks=4,wavelengths=1 --algorithm ring --size 1024B \
--policy free'
"""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, get_type_hints

from opticoll import registry

REPEATED = ("plan", "simulate", "train")
"""Commands whose rows name every option that a number depends on."""

NOT_OF_A_ROW = ("per", "source", "wavelength", "device", "throughput", "profile")
"""Options that are no column of a row, or that are read from a column of another name."""

PROFILE = "profile "
"""Begins the source of times of a training that was timed from a profile of its layers."""


def words_of(command: str | None, row: Mapping[str, Any]) -> str | None:
    """The command line, where the row names all that its numbers depend on."""
    if command not in REPEATED:
        return None
    words = ["opticoll", str(command)]
    if command != "train":
        words.append(str(row["collective"]))
    profiled = str(row.get("compute", "")).startswith(PROFILE)
    for option, column in _options(str(command)).items():
        value = row.get(column)
        if value is None or (option == "root" and value == 0) or (profiled and option == "model"):
            continue
        if isinstance(value, bool):
            words += [] if value else [f"--no-{option}"]
        else:
            text = f"{value}B" if column.endswith("_bytes") else str(value)
            words += [f"--{option.replace('_', '-')}", text]
    words += _source_of_times(row) if command == "train" else []
    words += _settings(row.get("settings"))
    return shlex.join(words)


@cache
def _options(command: str) -> dict[str, str]:
    """The columns of a row by the options of a command that they give."""
    asks = import_module(f"opticoll.commands.{command}").COMMAND.asks
    hints = get_type_hints(asks)
    own = [one for one in dataclasses.fields(asks) if one.kw_only]
    names = [one.name for one in own if not dataclasses.is_dataclass(hints[one.name])]
    options = {name: f"{name}_bytes" if name == "size" else name for name in names}
    options |= {name: name for name in ("policy", "start", "simulator")}
    return {name: column for name, column in options.items() if name not in NOT_OF_A_ROW}


def _source_of_times(row: Mapping[str, Any]) -> Iterator[str]:
    """Where the times of the layers of a training come from."""
    compute = str(row["compute"])
    if compute.startswith(PROFILE):
        yield from ("--profile", compute.removeprefix(PROFILE))
        return
    devices = {one["name"] for one in registry.records("devices")}
    yield from ("--device" if compute.partition(":")[0] in devices else "--throughput", compute)


def _settings(settings: Any) -> Iterator[str]:
    """Settings that differ from the plain model; CSV files have them as JSON."""
    known = json.loads(settings) if isinstance(settings, str) and settings else settings
    for one in known or ():
        yield from (f"--{one['name'].replace('_', '-')}", str(one["value"]))
