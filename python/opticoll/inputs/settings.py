"""Settings of simulators, as the keyword arguments of `plan`, `simulate` and `compare`.

The records of the compiled core define the names and types of all settings. `opticoll list
settings` shows the values of each setting, and the simulators to which the setting applies.

>>> set_settings({"policy": "free", "start": None})
{'policy': 'free'}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from opticoll._core import records

if TYPE_CHECKING:
    from opticoll._core import Settings as Settings
else:
    Settings = dict

SETTING_NAMES = ("simulator", *(record["name"] for record in records("settings")))
"""Names of the simulator and its settings."""


def set_settings(fields: Mapping[str, object]) -> Settings:
    """Returns the settings in `fields` that have a value other than None."""
    return cast(
        "Settings", {name: fields[name] for name in SETTING_NAMES if fields.get(name) is not None}
    )
