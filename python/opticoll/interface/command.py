"""Commands as functions."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def rows(command: str, settings: Mapping[str, Any] | None = None, **values: Any) -> list[Any]:
    """Runs a command, loading its module, and returns its rows."""
    from opticoll.cli.runner import run

    command_record = import_module(f"opticoll.commands.{command}").COMMAND
    return run(command_record, **values, **(settings or {}))


def one(command: str, settings: Mapping[str, Any] | None = None, **values: Any) -> Any:
    """Runs a command and returns its only row."""
    (row,) = rows(command, settings, **values)
    return row
