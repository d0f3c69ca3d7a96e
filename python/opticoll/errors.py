"""Exceptions of opticoll, a class for each kind of error, derived from `OpticollError`.

The first group comes from the compiled core, the second from the Python side. The message is one
sentence that names the value at fault, with a hint where the cure is known.

>>> import opticoll
>>> try:
...     opticoll.Fabric("wdm_ring:ranks=0,wavelengths=4")
... except opticoll.errors.OpticollError as error:
...     print(type(error).__name__)
FabricError
"""

import shlex
from importlib import import_module, metadata
from typing import Any

from opticoll._core import (
    AlgorithmError,
    CollectiveError,
    FabricError,
    MemoryLimitError,
    OpticollError,
    PlanFileError,
    ProgramError,
    ScheduleError,
    SimulationError,
    TraceError,
    TrainingError,
    UnitError,
    WavelengthError,
)

__all__ = [
    "AlgorithmError",
    "CollectiveError",
    "ConfigError",
    "FabricError",
    "FileError",
    "MemoryLimitError",
    "OpticollError",
    "PlanFileError",
    "ProgramError",
    "ReadingNote",
    "RunError",
    "ScheduleError",
    "SimulationError",
    "TraceError",
    "TrainingError",
    "UnitError",
    "UsageError",
    "UserAlgorithmError",
    "WavelengthError",
]


class ReadingNote(UserWarning):
    """Note on how a file was read: the meaning given to attributes, and ignored attributes."""


class UsageError(OpticollError):
    """Arguments that do not go together, or one that is missing."""


class RunError(OpticollError):
    """Processes that did not come to the end of a program; the message names rank and step."""

    exit_code = 1


class ConfigError(OpticollError):
    """An invalid YAML file, graph or scenario; the message names file and place."""


class FileError(OpticollError):
    """A file that cannot be read or written; the message names it."""


class UserAlgorithmError(OpticollError):
    """A user's own algorithm that cannot be imported or called, or returned no schedule."""


def installing(extra: str) -> str:
    """Returns the command that installs the packages of an extra."""
    needed = [requirement.split(";") for requirement in metadata.requires("opticoll") or []]
    packages = [
        requirement[0].strip()
        for requirement in needed
        if requirement[1:] and shlex.split(requirement[1])[-1] == extra
    ]
    return f"pip install {shlex.join(packages)}"


def needed(module: str, use: str, extra: str = "", package: str = "") -> Any:
    """Imports a module of a package that may be missing; `use` begins the sentence of the error.

    Raises
    ------
    UsageError
        It is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = package or module.partition(".")[0]
        command = installing(extra) if extra else f"pip install {package}"
        raise UsageError(
            f"{use} the package `{package}`, which is not installed; `{command}` does it"
        ) from error
