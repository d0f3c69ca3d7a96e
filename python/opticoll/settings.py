"""The settings of simulators, as the keyword arguments of `plan`, `simulate` and `compare`.

`opticoll list settings` says what each takes and which simulators know it.

>>> from opticoll import registry
>>> [record["name"] for record in registry.records("settings")] == list(NAMES)
True
>>> given({"policy": "free", "start": None})
{'policy': 'free'}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict, cast


class Settings(TypedDict, total=False):
    """A simulator and its settings as text; None where a default holds."""

    simulator: str | None
    policy: str | None
    paths: str | None
    start: str | None
    weights: str | None
    endpoint: str | None
    background: str | None
    link_bin: str | None
    routing: str | None
    packet: str | None
    chunk: str | None
    buffers: str | None
    router_delay: str | None
    router_delay_rule: str | None
    credit_delay: str | None
    arbitration: str | None
    small_delays: str | None
    jitter: str | None
    routing_seed: str | None
    virtual_channels: str | None
    cores: str | None
    issue: str | None
    overhead: str | None
    placement: str | None


NAMES = tuple(name for name in Settings.__annotations__ if name != "simulator")
"""The settings, without the simulator."""


def given(fields: Mapping[str, object]) -> Settings:
    """The settings among named values that are not left out."""
    names = ("simulator", *NAMES)
    return cast("Settings", {name: fields[name] for name in names if fields.get(name) is not None})
