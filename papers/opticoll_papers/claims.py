"""Claims of papers, which the file `claims.yaml` of each paper lists in the order of the paper.

A claim has the keys `claim` (its name), `where` (the place in the paper), `says` (the claim in our
words), `unit`, `judge` (the criterion, see `CRITERIA`), and other keys of `Claim`. A claim that is
judged under several readings has a list `readings`. Each reading has the keys that differ, `case`
(which is appended to the name) and `here` (the difference in words).

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
"""Classes of criteria by their key in the file.

The key's value is the number of the criterion. `why` gives the reason, and `good` another verdict
than usual. With `share: true`, the number of `within` is a fraction of the printed number.
"""


@cache
def load(paper: str) -> tuple[Claim, ...]:
    """Loads the claims of a paper; each reading of a claim becomes a separate claim.

    Raises
    ------
    KeyError, TypeError
        The file has an unknown criterion or key.
    """
    text = files("opticoll_papers").joinpath(paper, "claims.yaml").read_text(encoding="utf-8")
    return tuple(reading for claim in YAML(typ="safe").load(text) for reading in _readings(claim))


def _readings(claim: Mapping[str, Any]) -> Iterator[Claim]:
    shared = dict(claim)
    readings = shared.pop("readings", [{}])
    for reading in readings:
        own = shared | reading
        name = ".".join([shared["claim"], *filter(None, [own.pop("case", None)])])
        says = own["says"]
        if difference := own.pop("here", None):
            says = f"{says.removesuffix('.')} ({difference})."
        own["judge"] = _criterion(own["judge"])
        lists = {key: tuple(own[key]) for key in own if isinstance(own[key], list)}
        yield Claim(**own | lists | {"id": name, "says": says})


def _criterion(stated: str | Mapping[str, Any]) -> Criterion:
    words = {stated: None} if isinstance(stated, str) else dict(stated)
    name = next(iter(words))
    value = words.pop(name)
    return CRITERIA[name](value, **words)
