"""Request for a plan: collective, fabric, algorithm, size, demand and settings, all checked.

>>> request = read("all-gather", "wdm_ring:ranks=16,wavelengths=2", "Ring", size="4MiB")
>>> request.algorithm, request.size_bytes, request.plan()
('ring', 4194304, <Plan of all_gather by ring on 16 ranks: 15 slots, 240 transfers>)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from opticoll import _core, errors
from opticoll._core import Collective, Demand, Fabric, Plan
from opticoll.inputs import demands, user_algorithm, user_function
from opticoll.inputs.fabric_files import need_fabric
from opticoll.inputs.plan_cache import plan_once, verify_once
from opticoll.inputs.values import to_bytes, to_root
from opticoll.names import DEFAULT_ALGORITHM, algorithm_spelling, has_root, known_names

if TYPE_CHECKING:
    from opticoll._core import Violation
    from opticoll.inputs.demands import DemandLike
    from opticoll.inputs.fabric_files import FabricLike
    from opticoll.inputs.settings import Settings
    from opticoll.inputs.user_algorithm import UserAlgorithm
    from opticoll.inputs.user_function import Option


class PlanArguments(Protocol):
    """Arguments of a plan on a command line; None is a missing argument."""

    @property
    def fabric(self) -> FabricLike | None: ...
    @property
    def algorithm(self) -> str | UserAlgorithm | None: ...
    @property
    def size(self) -> str | int | None: ...
    @property
    def root(self) -> int | None: ...
    @property
    def demand(self) -> DemandLike | None: ...
    @property
    def settings(self) -> Settings: ...


@dataclass(frozen=True)
class Request:
    """Request for a plan; all values have the types that the compiled core requires."""

    collective: str
    fabric: Fabric
    algorithm: str
    function: tuple[UserAlgorithm, Mapping[str, Option]] | None
    """User algorithm with its options, or None."""
    size_bytes: int | None
    root: int
    demand: Demand | None
    wavelength: str
    settings: Settings

    def plan(
        self,
        watch: Callable[[str], object] | None = None,
        refuse: Callable[[Plan], str | None] | None = None,
    ) -> Plan:
        """Builds the plan; `watch` is called as in `opticoll.plan`.

        `auto` selects among the plans for which `refuse` returns None. For the other plans,
        `refuse` returns the reason.
        """
        if self.function is None:
            return _core.plan(
                self.collective,
                self.fabric,
                self.algorithm,
                root=self.root,
                wavelength=self.wavelength,
                size_bytes=self.size_bytes,
                watch=watch,
                demand=self.demand,
                refuse=refuse,
                **self.settings,
            )
        ranks, (function, options) = self.fabric.ranks, self.function
        demanded = Collective(self.collective, ranks, root=self.root, demand=self.demand)
        schedule = user_algorithm.call(function, demanded, self.fabric, dict(options))
        try:
            return _core.make_plan(
                schedule, self.fabric, self.algorithm, self.wavelength, self.size_bytes
            )
        except errors.ScheduleError as error:
            raise errors.UserAlgorithmError(
                f"algorithm `{self.algorithm}` returned a schedule that cannot be planned: {error}"
            ) from error

    def proved(
        self, key: Callable[[], Hashable], watch: Callable[[str], object]
    ) -> tuple[Plan, list[Violation]]:
        """Returns the plan and its violations; uses the cached plan if its key equals `key()`."""
        plan = plan_once(key, partial(self.plan, watch))
        return plan, verify_once(plan)


def read(
    collective: str,
    fabric: FabricLike | None,
    algorithm: str | UserAlgorithm | None = None,
    *,
    size: str | int | None = None,
    root: int = 0,
    demand: DemandLike | None = None,
    wavelength: str = "auto",
    settings: Settings | None = None,
) -> Request:
    """Checks and converts the arguments of `opticoll.plan`.

    Raises
    ------
    OpticollError
        A name is unknown, or an argument is invalid.
    """
    fabric = need_fabric(fabric)
    root = to_root(root, fabric)
    size_bytes = None if size is None else to_bytes(size)
    demanded = None
    if demand is not None:
        demanded, size_bytes = demands.checked_demand(collective, demand, fabric.ranks, size_bytes)
    function: tuple[UserAlgorithm, Mapping[str, Option]] | None = None
    if algorithm is None:
        algorithm = DEFAULT_ALGORITHM
    if not isinstance(algorithm, str):
        name, function = user_function.name_of(algorithm), (algorithm, {})
    elif user_algorithm.is_user_algorithm(algorithm):
        name, function = algorithm.strip(), user_algorithm.load(algorithm)
    else:
        name = algorithm_spelling(collective, algorithm)
    return Request(
        collective=collective,
        fabric=fabric,
        algorithm=name,
        function=function,
        size_bytes=size_bytes,
        root=root,
        demand=demanded,
        wavelength=wavelength,
        settings={} if settings is None else settings,
    )


def read_options(collective: str, arguments: PlanArguments, assignment: str | None) -> Request:
    """Checks and converts a collective and the arguments of a command, as `read` does.

    `assignment` is the algorithm that assigns wavelengths (default: `auto`).
    """
    kind = _core.collective_kind(collective)
    check_root(kind, arguments.root)
    check_assignment(assignment, "wavelengths=2 in --fabric sets how many there are")
    # A demand may state a size of its own.
    has_size = arguments.size is not None or arguments.demand is not None
    size = arguments.size if has_size else demands.DEFAULT_SIZE
    return read(
        kind,
        arguments.fabric,
        arguments.algorithm,
        size=size,
        root=0 if arguments.root is None else arguments.root,
        demand=arguments.demand,
        wavelength="auto" if assignment is None else assignment,
        settings=arguments.settings,
    )


def check_root(kind: str, root: int | None) -> None:
    """Raises an error if a root is given for a collective that has no root."""
    if root is not None and not has_root(kind):
        names = known_names("collectives")
        rooted = [name for name in names if has_root(name)]
        raise errors.UsageError(f"--root: {kind} has no root; only {', '.join(rooted)} have one")


def check_assignment(assignment: str | None, hint: str) -> None:
    """Raises an error if the user confused `--wavelength` with the number of wavelengths."""
    if assignment is not None and assignment.replace(",", "").strip().isdigit():
        raise errors.UsageError(
            f"--wavelength {assignment}: this is the rule by which wavelengths are assigned; {hint}"
        )
