"""Searches that find the best points of a study and compute only some of its points.

A search works in rounds: it proposes points, receives their results, and proposes further points.
At the end it reports its findings. Each finding is a verified row of the store.

    optimise: {cheapest: fabric.wavelengths, meets: time_s <= 1ms, for_each: [size]}
    optimise: {cheapest: energy_j, for_each: [size]}
    optimise: {pareto: [time_s, static_power_w, price_usd]}
    optimise:
      break_even: fabric.reconfiguration
      from: 1us
      to: 10ms
      of: {fabric: "wdm_ring:ranks=64,wavelengths=16"}
      against: {fabric: "fat_tree:down=8x8,up=1x8"}
      axis_of: of

`cheapest` computes points by increasing cost until a point meets all conditions. If the cost
depends on results, such as the energy, it computes all points. Of points with the same cost, it
finds the first one. A point without a value, such as an unknown price, cannot be compared: the
findings state the number of such points. `break_even` bisects the range of an
axis to find the value at which the faster of two alternatives becomes the slower one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any

from opticoll.errors import ConfigError, UsageError
from opticoll.formats.document import text
from opticoll.study.expression import Expression, Quantity, quantity
from opticoll.study.store import Result

Value = Any

CONCURRENT_POINTS = 8
"""Number of points per round of a search for the cheapest point; at least one per group."""

BREAK_EVEN_TOLERANCE = Fraction(1, 100)
"""Relative width of the interval at which the search for a break-even ends."""

VERIFIED = Expression("1")
"""Expression that has a value for each verified point."""

UNVERIFIED_NOTE = "a side has no verified result"


def _expressions(value: object) -> list[Expression]:
    values = value if isinstance(value, list) else [value]
    return [Expression(str(item)) for item in values]


def _expression(value: object) -> Expression:
    return Expression(str(value))


def _several(value: object) -> list[Expression]:
    if not isinstance(value, list) or len(value) < 2:
        raise ConfigError(
            "a Pareto front has two or more expressions, such as [wavelengths, time_s]"
        )
    return _expressions(value)


def _names(value: object) -> list[str]:
    return [text(item) for item in (value if isinstance(value, list) else [value])]


def _end(value: object) -> Quantity:
    end = quantity(value)
    if end is None or end.number <= 0:
        raise ConfigError(f"`{value}` is not a number above 0")
    return end


def _share(value: object) -> Fraction:
    percent = str(value).strip().removesuffix("%")
    share = quantity(percent)
    if share is None or share.unit != (0, 0) or not 0 < share.number < 100:
        raise ConfigError(f"`{value}` is not a share such as 1%")
    return share.number / 100


def _side(value: object) -> dict[str, Value]:
    if not isinstance(value, dict):
        raise ConfigError(f"`{value}` is not a set of options, such as {{algorithm: ring}}")
    return {name.replace("-", "_"): side_value for name, side_value in value.items()}


def _one_of(value: object) -> str:
    if value not in ("both", "of", "against"):
        raise ConfigError(f"`{value}` is none of both, of, against")
    return str(value)


@dataclass(frozen=True)
class Optimise:
    """Goal of a search: one of `cheapest`, `pareto` and `break_even`."""

    cheapest: Annotated[Expression, _expression] | None = None
    meets: Annotated[list[Expression], _expressions] = field(default_factory=list)
    pareto: Annotated[list[Expression], _several] | None = None
    for_each: Annotated[list[str], _names] = field(default_factory=list)
    break_even: Annotated[str, text] | None = None
    start: Annotated[Any, _end] | None = None
    end: Annotated[Any, _end] | None = None
    within: Annotated[Any, _share] = BREAK_EVEN_TOLERANCE
    of: Annotated[dict[str, Value], _side] = field(default_factory=dict)
    against: Annotated[dict[str, Value], _side] = field(default_factory=dict)
    axis_of: Annotated[str, _one_of] = "both"
    column: Annotated[Expression, _expression] | None = None


@dataclass(frozen=True)
class Candidate:
    """Options of a point that a search may compute, with the values of names in expressions.

    The function `scope` returns the value of a name.
    """

    options: dict[str, Value]
    scope: Callable[[str], Any]


@dataclass(frozen=True)
class Found:
    """Candidate that a search found: its index among all proposed candidates, and a description.

    `told` are texts: the candidate's cost, and the values in the search's conditions. `names` are
    the axes that `told` contains.
    """

    place: int
    what: str
    told: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


ValueOf = Callable[[Expression, int], Any]
"""Function that returns an expression's value for a candidate's index.

The value is None if the candidate is unverified, or if a name in the expression has no value.
"""

Rounds = Generator[list[dict[str, Value]], ValueOf, list[Found]]
"""Generator that yields options of points, receives their `ValueOf`, and returns the findings."""


def renamed(value: object) -> object:
    """Returns the fields of a search with `from` and `to` renamed to `start` and `end`."""
    names = {"from": "start", "to": "end"}
    if not isinstance(value, dict):
        return value
    return {names.get(name, name): field_value for name, field_value in value.items()}


def check(wanted: Optimise) -> Optimise:
    """Checks that a goal is complete and contains one search; raises ConfigError otherwise."""
    kinds = [
        name for name in ("cheapest", "pareto", "break_even") if getattr(wanted, name) is not None
    ]
    if len(kinds) != 1:
        raise ConfigError("give one of cheapest, pareto and break_even")
    if kinds == ["break_even"]:
        if wanted.start is None or wanted.end is None or not wanted.of or not wanted.against:
            raise ConfigError("`break_even` needs from, to, of and against")
        if wanted.start.unit != wanted.end.unit or wanted.start.number >= wanted.end.number:
            raise ConfigError("`from` is less than `to`, in the same unit")
    return wanted


def rounds(wanted: Optimise, candidates: Sequence[Candidate]) -> Rounds:
    """Returns the rounds of a search; `break_even` searches once for each candidate."""
    if wanted.break_even is not None:
        return _break_even(wanted, candidates)
    if wanted.pareto is not None:
        return _pareto(wanted, wanted.pareto, candidates)
    assert wanted.cheapest is not None
    return _cheapest(wanted, wanted.cheapest, candidates)


def _groups(wanted: Optimise, candidates: Sequence[Candidate]) -> dict[tuple[str, ...], list[int]]:
    """Groups the indices of candidates by the values of the names in `for_each`."""
    grouped: dict[tuple[str, ...], list[int]] = {}
    for place, candidate in enumerate(candidates):
        try:
            key = tuple(f"{name} = {candidate.scope(name)}" for name in wanted.for_each)
        except KeyError as error:
            raise UsageError(f"for_each: a point has no {error}") from error
        grouped.setdefault(key, []).append(place)
    return grouped


def _for(key: tuple[str, ...]) -> str:
    return f" for {', '.join(key)}" if key else ""


def _number(value: Any, expression: Expression) -> Quantity | None:
    if value is not None and not isinstance(value, Quantity):
        raise UsageError(f"`{expression.text}` is not a number")
    return value


def _values(value_of: ValueOf, place: int, expressions: Sequence[Expression]) -> tuple[str, ...]:
    """Returns each expression with its value for the candidate at index `place`.

    An example is `time_s = 1.5ms`. Equal texts are returned once.
    """
    by_text = {expression.text: value_of(expression, place) for expression in expressions}
    return tuple(
        f"{name} = {value.rounded() if isinstance(value, Quantity) else value}"
        for name, value in by_text.items()
    )


def _measures(conditions: Sequence[Expression]) -> list[Expression]:
    """Returns the names in conditions, each as an expression."""
    return [Expression(name) for condition in conditions for name in condition.names]


def _pareto(
    wanted: Optimise, axes: Sequence[Expression], candidates: Sequence[Candidate]
) -> Rounds:
    """Searches for the Pareto front: points that no other point beats in all `axes`."""
    value_of = yield [candidate.options for candidate in candidates]
    findings: list[Found] = []
    for key, places in _groups(wanted, candidates).items():
        met = [place for place in places if _meets(wanted, value_of, place)]
        findings += _unknown(wanted, axes, value_of, places, key)
        ends = {place: [_number(value_of(axis, place), axis) for axis in axes] for place in met}
        candidates_met = [
            ([end.number for end in known], place)
            for place, at in ends.items()
            if len(known := [end for end in at if end is not None]) == len(axes)
        ]
        front: list[list[Fraction]] = []
        # A point that beats another one comes before it in this order.
        for numbers, place in sorted(candidates_met):
            if not any(
                all(best <= number for best, number in zip(other, numbers, strict=True))
                for other in front
            ):
                front.append(numbers)
                values = _values(value_of, place, axes)
                names = (*wanted.for_each, *(axis.text for axis in axes))
                findings.append(Found(place, f"Pareto front{_for(key)}", values, names))
    return findings


def _unknown(
    wanted: Optimise,
    values: Sequence[Expression],
    value_of: ValueOf,
    places: Sequence[int],
    key: tuple[str, ...],
) -> list[Found]:
    """Returns findings on verified points that cannot be compared, with their number.

    A condition or one of `values` has no value for these points, and no condition is false.
    """
    verified = [place for place in places if value_of(VERIFIED, place) is not None]
    open_points = [
        place
        for place in verified
        if all(value_of(condition, place) is not False for condition in wanted.meets)
    ]
    findings = []
    for expression in (*wanted.meets, *values):
        lacking = [place for place in open_points if value_of(expression, place) is None]
        if lacking:
            points = f"{len(lacking)} of {len(verified)} points"
            unknown = f"unknown `{expression.text}`, the first of them"
            what = f"not compared{_for(key)}: {points} with {unknown}"
            findings.append(Found(lacking[0], what, (), tuple(wanted.for_each)))
    return findings


def _meets(wanted: Optimise, value_of: ValueOf, place: int) -> bool:
    return all(value_of(condition, place) is True for condition in wanted.meets)


def _cheapest(wanted: Optimise, cost: Expression, candidates: Sequence[Candidate]) -> Rounds:
    """Searches each group for the cheapest point that meets all conditions."""
    costs: list[Quantity | None] = []
    for candidate in candidates:
        try:
            costs.append(_number(cost.value(candidate.scope), cost))
        except KeyError:
            costs.append(None)
    shown = [cost, *_measures(wanted.meets)]

    def cheapest(value_of: ValueOf, place: int, key: tuple[str, ...]) -> Found:
        names = (*wanted.for_each, *(expression.text for expression in shown))
        return Found(place, f"cheapest{_for(key)}", _values(value_of, place, shown), names)

    order: dict[int, int] = {}
    grouped = _groups(wanted, candidates)
    if any(known_cost is None for known_cost in costs):
        # If a cost depends on results, all points must be computed first.
        value_of = yield [any_candidate.options for any_candidate in candidates]
        findings: list[Found] = []
        for key, places in grouped.items():
            met = [place for place in places if _meets(wanted, value_of, place)]
            findings += _unknown(wanted, [cost], value_of, places, key)
            costs_of = {place: _number(value_of(cost, place), cost) for place in met}
            costs_of_group = [
                (value.number, place) for place, value in costs_of.items() if value is not None
            ]
            if costs_of_group:
                findings.append(cheapest(value_of, min(costs_of_group)[1], key))
        return findings

    def by_cost(place: int) -> tuple[Fraction, int]:
        cost_of_place = costs[place]
        assert cost_of_place is not None
        return cost_of_place.number, place

    untried = {key: sorted(places, key=by_cost, reverse=True) for key, places in grouped.items()}
    findings = []
    tried: dict[tuple[str, ...], list[int]] = {key: [] for key in untried}
    while untried:
        share = max(1, CONCURRENT_POINTS // len(untried))
        proposed: dict[tuple[str, ...], list[int]] = {}
        for key, places in untried.items():
            proposed[key] = [places.pop() for _ in range(min(share, len(places)))]
        every = [place for places in proposed.values() for place in places]
        order |= {place: len(order) + at for at, place in enumerate(every)}
        value_of = yield [candidates[place].options for place in every]
        for key, places in proposed.items():
            met = [place for place in places if _meets(wanted, value_of, order[place])]
            tried[key] += [order[place] for place in places]
            if met or not untried[key]:
                findings += _unknown(wanted, [], value_of, tried[key], key)
            if met:
                findings.append(cheapest(value_of, order[met[0]], key))
            if met or not untried[key]:
                del untried[key]
    return findings


@dataclass
class _Bracket:
    """Interval that contains the break-even value.

    `at_high` has the candidates' indices of the two alternatives at the value `high`.
    """

    options: dict[str, Value]
    name: str
    low: Quantity
    high: Quantity
    lead: bool | None = None
    at_high: tuple[int, int] | None = None
    over: bool = False

    def middle(self, within: Fraction) -> Quantity | None:
        """Returns the next value to compute, or None if the interval is narrower than `within`."""
        low, high = self.low.number, self.high.number
        if self.low.unit == (0, 0) and low.denominator == 1 and high.denominator == 1:
            if high - low <= 1:
                return None
            middle = Fraction(math.isqrt(int(low) * int(high)))
            return Quantity(min(max(middle, low + 1), high - 1))
        if high <= low * (1 + within):
            return None
        # Keep enough digits to distinguish the ends: the grain is at most a tenth of the tolerance.
        root = Fraction(math.sqrt(low * high))
        grain = Fraction(10) ** math.floor(math.log10(root * within / 10))
        rounded = round(root / grain) * grain
        return Quantity(rounded, self.low.unit) if low < rounded < high else None


def _break_even(wanted: Optimise, candidates: Sequence[Candidate]) -> Rounds:
    """Searches for the value of an axis at which one alternative overtakes the other."""
    axis, column = wanted.break_even, wanted.column or Expression("time_s")
    assert axis is not None
    assert wanted.start is not None
    assert wanted.end is not None
    brackets = []
    for candidate in candidates:
        named = [f"{name} = {candidate.scope(name)}" for name in wanted.for_each]
        brackets.append(_Bracket(candidate.options, _for(tuple(named)), wanted.start, wanted.end))

    def pair(bracket: _Bracket, value: Quantity) -> list[dict[str, Value]]:
        sides = []
        for name, side in (("of", wanted.of), ("against", wanted.against)):
            options = {**bracket.options, **side}
            varied = wanted.axis_of in ("both", name)
            sides.append({**options, axis: str(value)} if varied else options)
        return sides

    def leads(value_of: ValueOf, place: int) -> bool | None:
        """Returns whether the first alternative is at least as good as the second.

        The result is None if an alternative has no verified row.
        """
        ours, theirs = (_number(value_of(column, at), column) for at in (place, place + 1))
        return None if ours is None or theirs is None else ours.number <= theirs.number

    # The study states the options of both alternatives, so findings do not repeat them.
    names = (*wanted.for_each, axis, *wanted.of, *wanted.against)
    findings: list[Found] = []
    value_of = yield [
        side
        for bracket in brackets
        for value in (bracket.low, bracket.high)
        for side in pair(bracket, value)
    ]
    for at, bracket in enumerate(brackets):
        bracket.lead = leads(value_of, 4 * at)
        last = leads(value_of, 4 * at + 2)
        bracket.at_high = (4 * at + 2, 4 * at + 3)
        if bracket.lead is None or last is None:
            bracket.over = True
            findings.append(
                Found(4 * at, f"no break-even{bracket.name}: {UNVERIFIED_NOTE}", (), names)
            )
        elif bracket.lead == last:
            bracket.over = True
            order = f"`of` is {'not worse' if last else 'worse'} than `against` at both ends"
            findings.append(Found(4 * at + 2, f"no break-even{bracket.name}: {order}", (), names))
    count = 4 * len(brackets)
    while True:
        proposals = [
            (bracket, middle)
            for bracket in brackets
            if not bracket.over and (middle := bracket.middle(wanted.within)) is not None
        ]
        if not proposals:
            break
        value_of = yield [side for bracket, middle in proposals for side in pair(bracket, middle)]
        for bracket, middle in proposals:
            lead = leads(value_of, count)
            if lead is None:
                bracket.over = True
                findings.append(
                    Found(count, f"no break-even{bracket.name}: {UNVERIFIED_NOTE}", (), names)
                )
            elif lead == bracket.lead:
                bracket.low = middle
            else:
                bracket.high, bracket.at_high = middle, (count, count + 1)
            count += 2
    for bracket in brackets:
        if bracket.over or bracket.at_high is None:
            continue
        order = f"`of` is {'worse' if bracket.lead else 'not worse'} than `against`"
        ends = f"{order} from {axis} = {bracket.high.rounded()}, not yet at {bracket.low.rounded()}"
        sides = ("break-even", ends), ("the other side of the break-even", "")
        for place, (description, where) in zip(bracket.at_high, sides, strict=True):
            values = _values(value_of, place, [column])
            mentioned = (where, *values) if where else values
            findings.append(Found(place, f"{description}{bracket.name}", mentioned, names))
    return findings


def verified_row(result: Result | None) -> Mapping[str, Any] | None:
    """Returns the first row of a result; None if it has no rows or a violated plan."""
    rows = None if result is None else result.rows
    return rows[0] if rows and rows[0].get("verified", True) else None
