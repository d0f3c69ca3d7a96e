"""Exceptions of opticoll, all derived from `OpticollError`, with a class for each kind of error.

The compiled core defines the errors that it raises; this module defines the other errors. The
message of an error is one sentence that names the wrong value. A hint follows if opticoll knows how
to fix the problem.

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
    "PlotError",
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


class PlotError(OpticollError):
    """Error of a figure that cannot be drawn."""


class ReadingNote(UserWarning):
    """Note on the reading of a file: the meaning of its attributes, and the attributes left out."""


class UsageError(OpticollError):
    """Error of arguments that contradict each other, or of a missing argument."""


class RunError(OpticollError):
    """Error of processes that did not finish a program; the message names rank and step."""

    exit_code = 1


class ConfigError(OpticollError):
    """Error of an invalid YAML file, graph or scenario; the message names file and place."""


class FileError(OpticollError):
    """Error of a file that cannot be read or written; the message names the file."""


class UserAlgorithmError(OpticollError):
    """Error of a user algorithm that cannot be imported or called, or that returns no schedule."""


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
    """Imports a module of an optional package.

    The error message begins with `use`, such as `Parquet tables are read by`. If an extra of
    opticoll contains the package, `extra` is its name. If the package and the module have different
    names, `package` is the name of the package.

    Raises
    ------
    UsageError
        The package is not installed; the message says how to install it.
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = package or module.partition(".")[0]
        command = installing(extra) if extra else f"pip install {package}"
        raise UsageError(
            f"{use} the package `{package}`, which is not installed; `{command}` does it"
        ) from error
