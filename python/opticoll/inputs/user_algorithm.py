"""User algorithms, written in Python.

A user algorithm is a function of a collective and a fabric that returns a `Schedule`. Options are
keyword arguments. On the command line, the function has a name as in `user_function`:

    opticoll plan all_gather --fabric optree_paper --algorithm mypkg.mine:double_tree,branches=2

The schedule then gets routes and wavelengths and is verified, like every other schedule.

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

from collections.abc import Callable
from typing import TypeAlias

from opticoll._core import AlgorithmError, Collective, Fabric, Schedule
from opticoll.errors import UserAlgorithmError
from opticoll.inputs import user_function
from opticoll.inputs.user_function import Option
from opticoll.names import canonical, known_names

UserAlgorithm: TypeAlias = Callable[..., Schedule]
"""Function (collective, fabric, **options) that returns a schedule."""


def is_user_algorithm(spec: str) -> bool:
    """Returns whether a text names a user's function, and not an algorithm of opticoll.

    >>> is_user_algorithm("mypkg.mine:double_tree,branches=2"), is_user_algorithm("ring:stripes")
    (True, False)
    """
    name = spec.strip().partition(":")[0]
    return user_function.is_named(spec) and canonical(name, known_names("algorithms")) is None


def load(spec: str) -> tuple[UserAlgorithm, dict[str, Option]]:
    """Imports the function, and parses the options, of `module:function,key=value`.

    Raises
    ------
    UserAlgorithmError
        The module cannot be imported, the module has no such function, or an option is not of the
        form `key=value`.
    """
    return user_function.load("algorithm", spec, UserAlgorithmError)


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
    name, arguments = user_function.name_of(function), [collective, fabric]
    try:
        schedule = user_function.call(
            "algorithm",
            name,
            function,
            arguments,
            UserAlgorithmError,
            options or {},
            (AlgorithmError,),
        )
    except AlgorithmError as error:
        # The hint lists opticoll's algorithms, which does not help with a user's function.
        vars(error)["hint"] = None
        raise
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


def _identity(collective: Collective) -> tuple[str, int, int]:
    return (collective.kind, collective.ranks, collective.root)


def _describe(collective: Collective) -> str:
    return f"{collective.kind} on {collective.ranks} ranks, root {collective.root}"
