"""Functions of users, named `package.module:function` on the command line.

Options follow after commas and become keyword arguments: a whole number becomes an `int`, `true`
and `false` become a `bool`, and other values stay a `str`. Modules are also searched in the current
directory.

>>> is_named("mypkg.mine:double_tree,branches=2"), is_named("optree:radices=4x4")
(True, False)
>>> function, options = load("fabric", "json:dumps,indent=1", OpticollError)
>>> call("fabric", "json:dumps", function, [[]], OpticollError, options)
'[]'
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from opticoll._core import OpticollError

Option: TypeAlias = int | bool | str
"""Value of an option on the command line."""

_SPELLING = re.compile(r"(?P<module>[\w.]+):(?P<function>[\w.]+)(?:,(?P<options>.*))?")


def is_named(spec: str) -> bool:
    """Returns whether a specification has the form `module:function`, not `name:key=value`."""
    return _SPELLING.fullmatch(spec.strip()) is not None


def load(
    noun: str, spec: str, kind: type[OpticollError]
) -> tuple[Callable[..., Any], dict[str, Option]]:
    """Imports the function, and parses the options, of `module:function,key=value`.

    `noun` says what the function makes, such as `algorithm`; `kind` is the class of errors.

    Raises
    ------
    OpticollError
        The module cannot be imported, the module has no such function, or an option is not of the
        form `key=value`.
    """
    match = _SPELLING.fullmatch(spec.strip())
    if match is None:
        raise kind(f"`{spec}` is not of the form module:function,key=value")
    options = _parse_options(noun, spec, match["options"], kind)
    target: object = _import_module(noun, spec, match["module"], kind)
    for name in match["function"].split("."):
        try:
            target = getattr(target, name)
        except BaseException as error:
            _pass_on(error)
            raise kind(
                f"cannot load {noun} `{spec}`: `{match['module']}` has no `{match['function']}`"
            ) from error
    if not callable(target):
        raise kind(
            f"cannot load {noun} `{spec}`: it is not a function but of type "
            f"`{type(target).__name__}`"
        )
    return target, options


def call(
    noun: str,
    name: str,
    function: Callable[..., Any],
    arguments: Sequence[object],
    kind: type[OpticollError],
    options: Mapping[str, Option],
    refusals: tuple[type[OpticollError], ...] = (),
) -> object:
    """Calls a user's function and returns its value.

    Errors of the classes `refusals` are passed on; any other exception becomes one of the class
    `kind`.

    Raises
    ------
    OpticollError
        The function raises an exception.
    """
    try:
        return function(*arguments, **options)
    except refusals:
        raise
    except BaseException as error:
        _pass_on(error)
        raise kind(
            f"{noun} `{name}` raised {type(error).__name__}: {_one_line(error)}{_place(error)}"
        ) from error


def name_of(function: Callable[..., Any]) -> str:
    """Returns the command-line name of a function: `module:function`."""
    module = getattr(function, "__module__", None) or type(function).__module__
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return f"{module}:{name}"


def _parse_options(
    noun: str, spec: str, text: str | None, kind: type[OpticollError]
) -> dict[str, Option]:
    options: dict[str, Option] = {}
    for part in text.split(",") if text is not None else []:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key.isidentifier() or not value:
            raise kind(f"`{part}` in {noun} `{spec}` is not a key=value")
        if key in options:
            raise kind(f"`{key}` is given twice in {noun} `{spec}`")
        options[key] = _parse_value(value)
    return options


def _parse_value(text: str) -> Option:
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text


def _import_module(noun: str, spec: str, module: str, kind: type[OpticollError]) -> object:
    import importlib

    # As with `python -m`, the current directory is searched first, for the user's file.
    folder = os.getcwd()
    if folder not in sys.path and "" not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(module)
    except BaseException as error:
        _pass_on(error)
        raise kind(
            f"cannot load {noun} `{spec}`: importing `{module}` failed with "
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
