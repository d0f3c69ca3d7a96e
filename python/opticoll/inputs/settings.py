"""Settings of simulators, as the keyword arguments of `plan`, `simulate` and `compare`.

Their names come from the records of the compiled core, and so do their types in its stub.
`opticoll list settings` says what each takes and which simulators know it.

>>> given({"policy": "free", "start": None})
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


def given(fields: Mapping[str, object]) -> Settings:
    """Returns the settings among named values, without those that are None."""
    return cast(
        "Settings", {name: fields[name] for name in SETTING_NAMES if fields.get(name) is not None}
    )
