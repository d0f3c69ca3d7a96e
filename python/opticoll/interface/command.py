"""Functions that run the commands of `opticoll` from Python."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def rows(command: str, settings: Mapping[str, Any] | None = None, **values: Any) -> list[Any]:
    """Runs a command and returns its rows; imports the command's module on first use."""
    from opticoll.cli.runner import run

    command_record = import_module(f"opticoll.commands.{command}").COMMAND
    return run(command_record, **values, **(settings or {}))


def one(command: str, settings: Mapping[str, Any] | None = None, **values: Any) -> Any:
    """Runs a command that returns a single row, and returns this row."""
    (row,) = rows(command, settings, **values)
    return row
