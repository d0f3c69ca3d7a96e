"""Claims of papers: the file `claims.yaml` beside each paper, in the order of the paper.

A claim has the keys `claim` (its name), `where` (its place in the paper), `says` (in our words),
`unit`, `judge` (the criterion, see `CRITERIA`), and those of `Claim` that it needs. Where it is
judged under several `readings`, each has what differs, `case` (added to the name) and `here` (what
tells it from the others, in words).

>>> claims = load("optree")
>>> [claim.id for claim in claims if claim.claim == "table1.optree"]
['table1.optree', 'table1.optree.constructed']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from ruamel.yaml import YAML

from opticoll_papers.judging import (
    AtLeast,
    AtMost,
    Between,
    Claim,
    Criterion,
    Equal,
    NotDone,
    NotStated,
    Rounded,
    Used,
    Within,
)

CRITERIA: dict[str, Callable[..., Criterion]] = {
    "equal": lambda _, **more: Equal(**more),
    "used": lambda _: Used(),
    "rounded": Rounded,
    "within": Within,
    "at_least": AtLeast,
    "at_most": AtMost,
    "between": lambda limits, **more: Between(*limits, **more),
    "not_done": NotDone,
    "not_stated": NotStated,
}
"""By the key that names each: its value, then `why`, and `good` for another verdict than usual.

`share: true` allows the part `within` of the printed number, not so many of its unit.
"""


@cache
def load(paper: str) -> tuple[Claim, ...]:
    """Loads the claims of a paper; each reading of a claim is a claim of its own.

    Raises
    ------
    KeyError, TypeError
        The file has a criterion or key that is not known.
    """
    text = files("opticoll_papers").joinpath(paper, "claims.yaml").read_text(encoding="utf-8")
    return tuple(one for claim in YAML(typ="safe").load(text) for one in _readings(claim))


def _readings(given: Mapping[str, Any]) -> Iterator[Claim]:
    shared = dict(given)
    readings = shared.pop("readings", [{}])
    for reading in readings:
        own = shared | reading
        name = ".".join([shared["claim"], *filter(None, [own.pop("case", None)])])
        says = own["says"]
        if here := own.pop("here", None):
            says = f"{says.removesuffix('.')} ({here})."
        own["judge"] = _criterion(own["judge"])
        lists = {key: tuple(own[key]) for key in own if isinstance(own[key], list)}
        yield Claim(**own | lists | {"id": name, "says": says})


def _criterion(given: str | Mapping[str, Any]) -> Criterion:
    words = {given: None} if isinstance(given, str) else dict(given)
    name = next(iter(words))
    value = words.pop(name)
    return CRITERIA[name](value, **words)
