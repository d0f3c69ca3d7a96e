"""User algorithms, written in Python.

A user algorithm is a function of a collective and a fabric that returns a `Schedule`. Options are
keyword arguments. On the command line, the function is named `package.module:function`, and options
follow after commas. Modules are also searched in the current directory:

    opticoll plan all_gather --fabric optree_paper --algorithm mypkg.mine:double_tree,branches=2

An option's value that is a whole number becomes an `int`, `true` and `false` become a `bool`, and
other values stay a `str`. The schedule then gets routes and wavelengths and is verified, like every
other schedule.

>>> import numpy as np
>>> import opticoll
>>> def everyone_tells_everyone(collective, fabric):
...     schedule = opticoll.Schedule(collective)
...     ranks = np.arange(fabric.ranks)
...     for distance in range(1, fabric.ranks):
...         schedule.step(ranks, ranks, (ranks + distance) % fabric.ranks)
...     return schedule
>>> fabric = opticoll.Fabric("wdm_ring:ranks=5,wavelengths=2")
>>> opticoll.plan("all_gather", fabric, everyone_tells_everyone).verify()
[]
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import TypeAlias

from opticoll._core import AlgorithmError, Collective, Fabric, Schedule
from opticoll.errors import UserAlgorithmError

Option: TypeAlias = int | bool | str
"""Value of an option on the command line."""

UserAlgorithm: TypeAlias = Callable[..., Schedule]
"""Function (collective, fabric, **options) that returns a schedule."""

_SPELLING = re.compile(r"(?P<module>[\w.]+):(?P<function>[\w.]+)(?:,(?P<options>.*))?")


def is_user_algorithm(spec: str) -> bool:
    """Returns whether a specification has the form `module:function`, not `name:key=value`."""
    return _SPELLING.fullmatch(spec.strip()) is not None


def load(spec: str) -> tuple[UserAlgorithm, dict[str, Option]]:
    """Imports the function, and parses the options, of `module:function,key=value`.

    Raises
    ------
    UserAlgorithmError
        The module cannot be imported, the module has no such function, or an option is not of the
        form `key=value`.
    """
    match = _SPELLING.fullmatch(spec.strip())
    if match is None:
        raise UserAlgorithmError(f"`{spec}` is not of the form module:function,key=value")
    options = _parse_options(spec, match["options"])
    target: object = _import_module(spec, match["module"])
    for name in match["function"].split("."):
        try:
            target = getattr(target, name)
        except BaseException as error:
            _pass_on(error)
            raise UserAlgorithmError(
                f"cannot load algorithm `{spec}`: `{match['module']}` has no `{match['function']}`"
            ) from error
    if not callable(target):
        raise UserAlgorithmError(
            f"cannot load algorithm `{spec}`: it is not a function but of type "
            f"`{type(target).__name__}`"
        )
    return target, options


def call(
    function: UserAlgorithm,
    collective: Collective,
    fabric: Fabric,
    options: dict[str, Option] | None = None,
) -> Schedule:
    """Calls a user's function and returns its schedule.

    Raises
    ------
    UserAlgorithmError
        The function raises an exception, or returns no schedule of the collective. If the function
        raises `AlgorithmError` to refuse the request, that error is passed on.
    """
    name = name_of(function)
    try:
        schedule: object = function(collective, fabric, **(options or {}))
    except AlgorithmError as error:
        # The hint lists opticoll's algorithms, which does not help with a user's function.
        vars(error)["hint"] = None
        raise
    except BaseException as error:
        _pass_on(error)
        raise UserAlgorithmError(
            f"algorithm `{name}` raised {type(error).__name__}: {_one_line(error)}{_place(error)}"
        ) from error
    if not isinstance(schedule, Schedule):
        raise UserAlgorithmError(
            f"algorithm `{name}` returned an object of type `{type(schedule).__name__}`; "
            "it must return an opticoll.Schedule"
        )
    made_for = schedule.collective
    if _identity(made_for) != _identity(collective):
        raise UserAlgorithmError(
            f"algorithm `{name}` returned a schedule for another collective: "
            f"{_describe(made_for)}, asked for was {_describe(collective)}"
        )
    return schedule


def name_of(function: UserAlgorithm) -> str:
    """Returns the command-line name of a function: `module:function`."""
    module = getattr(function, "__module__", None) or type(function).__module__
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{module}:{name}"


def _parse_options(spec: str, text: str | None) -> dict[str, Option]:
    options: dict[str, Option] = {}
    for part in text.split(",") if text is not None else []:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key.isidentifier() or not value:
            raise UserAlgorithmError(f"`{part}` in algorithm `{spec}` is not a key=value")
        if key in options:
            raise UserAlgorithmError(f"`{key}` is given twice in algorithm `{spec}`")
        options[key] = _parse_value(value)
    return options


def _parse_value(text: str) -> Option:
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text


def _import_module(spec: str, module: str) -> object:
    import importlib

    # As with `python -m`, the current directory is searched first, for the user's file.
    folder = os.getcwd()
    if folder not in sys.path and "" not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(module)
    except BaseException as error:
        _pass_on(error)
        raise UserAlgorithmError(
            f"cannot load algorithm `{spec}`: importing `{module}` failed with "
            f"{type(error).__name__}: {_one_line(error)}{_place(error)}"
        ) from error


def _pass_on(error: BaseException) -> None:
    """Raises an exception again if an interrupt or a panic caused it, and not user code."""
    if type(error) is KeyboardInterrupt or type(error).__name__ == "PanicException":
        raise error


def _one_line(error: BaseException) -> str:
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # the user's exception cannot be converted to text
        lines = []
    return lines[0] if lines else "no message"


def _place(error: BaseException) -> str:
    """Returns file and line at which user code failed; empty if no user code was executed."""
    import traceback

    if isinstance(error, SyntaxError):
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [
        frame
        for frame in frames
        if frame.filename != __file__ and not frame.filename.startswith("<frozen")
    ]
    machinery = (os.sep + "importlib" + os.sep + "__init__.py",)
    theirs = [frame for frame in theirs if not frame.filename.endswith(machinery)]
    if not theirs:
        return ""
    last = theirs[-1]
    return f" ({os.path.basename(last.filename)}, line {last.lineno})"


def _identity(collective: Collective) -> tuple[str, int, int]:
    return (collective.kind, collective.ranks, collective.root)


def _describe(collective: Collective) -> str:
    return f"{collective.kind} on {collective.ranks} ranks, root {collective.root}"
