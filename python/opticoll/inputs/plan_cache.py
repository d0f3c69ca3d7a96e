"""Cache of the last plan and its violations, for points of a study that share a plan.

Only workers of a study use the cache. The cache contains at most one plan, so memory stays bounded.

>>> built = []
>>> with remembered():
...     first = plan_once(lambda: "ring", lambda: built.append(1) or "a plan")
...     again = plan_once(lambda: "ring", lambda: built.append(2) or "another plan")
>>> again, built
('a plan', [1])
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opticoll._core import Plan, Violation


@dataclass
class _Last:
    """Cached plan with its key; after the first verification, also the violations."""

    key: Hashable
    plan: Any
    violations: list[Violation] | None = None


class _Memory(threading.local):
    on = False
    last: _Last | None = None


_memory = _Memory()


@contextmanager
def remembered() -> Iterator[None]:
    """Caches the last plan of this thread within a `with` block."""
    _memory.on = True
    try:
        yield
    finally:
        _memory.on, _memory.last = False, None


def plan_once(key_of: Callable[[], Hashable], make: Callable[[], Plan]) -> Plan:
    """Returns the cached plan if the plan has the key; otherwise makes a plan and caches it.

    Outside of `remembered`, nothing is cached.
    """
    if not _memory.on:
        return make()
    key = key_of()
    if _memory.last is None or _memory.last.key != key:
        _memory.last = None
        _memory.last = _Last(key, make())
    plan: Plan = _memory.last.plan
    return plan


def verify_once(plan: Plan) -> list[Violation]:
    """Returns the violations of a plan, from the cache if `plan` is the cached plan."""
    last = _memory.last
    if last is None or last.plan is not plan:
        return plan.verify()
    if last.violations is None:
        last.violations = plan.verify()
    return last.violations
