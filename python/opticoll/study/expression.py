"""Arithmetic and conditions with units, as studies write them; other Python code is refused.

Python's own parser reads an expression, and an interpreter of allowed nodes computes its value.
Allowed are numbers, texts, names, arithmetic, comparisons, `and`, `or`, `not`, `in`, `A if B else
C`, and the functions of `FUNCTIONS`. A value is a size, a time, a rate or a plain number. Values of
different units cannot be added or compared.

>>> rate = Expression("25.6Tb/s / (2 * wavelengths)")
>>> rate.names, str(rate.value({"wavelengths": 64}.__getitem__))
(('wavelengths',), '200Gb/s')
>>> Expression("ranks >= wavelengths and size < 4MiB").value(
...     {"ranks": 64, "wavelengths": 8, "size": "1MiB"}.__getitem__)
True
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from opticoll.errors import OpticollError, UsageError

MAX_LENGTH = 1000
"""Maximum number of characters of an expression."""

MAX_BITS = 4096
"""Maximum number of bits of a number; without a limit, powers could fill the memory."""

_PREFIXES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
_TIMES = {"s": 0, "ms": -3, "us": -6, "ns": -9, "ps": -12}

_PLAIN = {
    "uJ": -6,
    "mJ": -3,
    "J": 0,
    "kJ": 3,
    "mW": -3,
    "W": 0,
    "kW": 3,
    "MW": 6,
    "USD": 0,
    "%": -2,
}

SIZE, TIME, RATE, NUMBER = (1, 0), (0, 1), (1, -1), (0, 0)
"""Units as exponents of bytes and of seconds."""

UNITS: dict[str, tuple[Fraction, tuple[int, int]]] = {
    **{f"{prefix}B": (Fraction(n), SIZE) for prefix, n in (_PREFIXES | _BINARY).items()},
    **{f"{prefix}B/s": (Fraction(n), RATE) for prefix, n in (_PREFIXES | _BINARY).items()},
    **{f"{prefix}b/s": (Fraction(n, 8), RATE) for prefix, n in _PREFIXES.items()},
    **{unit: (Fraction(10) ** power, TIME) for unit, power in _TIMES.items()},
    **{unit: (Fraction(10) ** power, NUMBER) for unit, power in _PLAIN.items()},
}
"""Units by name: the value of the unit in bytes and seconds, and the exponents of both.

Joules, watts, dollars and percent are plain numbers.
"""

_LADDERS = {
    SIZE: [f"{prefix}B" for prefix in ("Ti", "Gi", "Mi", "Ki", "T", "G", "M", "K", "")],
    RATE: [f"{prefix}b/s" for prefix in ("T", "G", "M", "K", "")],
    TIME: list(_TIMES),
}
"""Units in which quantities are written, from the largest to the smallest."""

_QUANTITY = re.compile(
    r"(?<![\w.])([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)\s?("
    + "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
    + r")(?![\w])"
)

_WRITTEN = re.compile(f"'[^']*'|\"[^\"]*\"|{_QUANTITY.pattern}", _QUANTITY.flags)
"""Pattern of quantities, and of texts in quotation marks, whose content is no quantity."""
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")


@dataclass(frozen=True)
class Quantity:
    """Exact number with a unit; `unit` has the exponents of bytes and of seconds."""

    number: Fraction
    unit: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        """Returns a text that options accept, in the largest unit that gives a whole number.

        If no unit gives a whole number, the value is rounded to the smallest unit.
        """
        if self.unit == (0, 0):
            whole = self.number.denominator == 1
            return str(self.number.numerator) if whole else repr(float(self.number))
        if self.unit not in _LADDERS:
            raise UsageError("a result is neither a number nor a size, a time or a rate")
        ladder = _LADDERS[self.unit]
        for name in ladder:
            count = self.number / UNITS[name][0]
            if count.denominator == 1 and count:
                return f"{count}{name}"
        return f"{round(self.number / UNITS[ladder[-1]][0])}{ladder[-1]}"

    def rounded(self) -> str:
        """Returns the quantity for people: at most four digits, in the largest suitable unit."""
        if self.unit not in _LADDERS:
            return str(self.number) if self.number.denominator == 1 else f"{float(self.number):.4g}"
        ladder = _LADDERS[self.unit]
        whole = [name for name in ladder if (self.number / UNITS[name][0]).denominator == 1]
        some = [name for name in ladder if abs(self.number) >= UNITS[name][0]] or ladder[-1:]
        name = next(
            (unit_name for unit_name in whole if abs(self.number / UNITS[unit_name][0]) in _SHORT),
            some[0],
        )
        return f"{float(self.number / UNITS[name][0]):.4g}{name}"


_SHORT = range(1, 1000)
"""Numbers that are short enough to be written as whole numbers in a unit."""


def quantity(value: object) -> Quantity | None:
    """Parses a number or a text such as `4MiB`; returns None for other texts."""
    if isinstance(value, Quantity):
        return value
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | Fraction):
        return Quantity(Fraction(value))
    if isinstance(value, float):
        return Quantity(Fraction(repr(value))) if math.isfinite(value) else None
    text = str(value).strip()
    if match := _QUANTITY.fullmatch(text):
        size, unit = UNITS[match[2]]
        return Quantity(Fraction(match[1]) * size, unit)
    return Quantity(Fraction(text)) if _NUMBER.fullmatch(text) else None


Lookup = Callable[[str], Any]
"""Function that returns the value of a name; raises KeyError for unknown names."""


class Expression:
    """Parsed expression; `names` are the names in the expression.

    Raises
    ------
    UsageError
        The text is not an expression, or it has a part that is not allowed.
    """

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        if len(text) > MAX_LENGTH:
            raise UsageError(f"an expression has more than {MAX_LENGTH} characters")
        quoted = _WRITTEN.sub(
            lambda match: f"_('{match[1]}{match[2]}')" if match[1] else match[0], self.text
        )
        try:
            self._tree = ast.parse(quoted, mode="eval").body
            nodes = list(ast.walk(self._tree))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            reason = error.msg if isinstance(error, SyntaxError) else error
            raise UsageError(f"`{self.text}` is not an expression: {reason}") from error
        for node in nodes:
            self._check(node)
        inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        self.names = tuple(
            dict.fromkeys(
                _dotted(node)
                for node in nodes
                if isinstance(node, ast.Name | ast.Attribute)
                and id(node) not in inner
                and id(node) not in called
            )
        )

    def _check(self, node: ast.AST) -> None:
        if isinstance(node, ast.Call):
            is_allowed = isinstance(node.func, ast.Name) and node.func.id in {"_", *FUNCTIONS}
            if not is_allowed or node.keywords:
                names = ", ".join(FUNCTIONS)
                raise UsageError(f"`{self.text}`: the functions of expressions are {names}")
        elif isinstance(node, ast.Attribute):
            _dotted(node)
        elif not isinstance(node, _ALLOWED):
            kind = type(node).__name__
            raise UsageError(f"`{self.text}`: {kind} has no meaning in an expression")
        elif isinstance(node, ast.Constant) and not (
            isinstance(node.value, int | str)
            or (isinstance(node.value, float) and math.isfinite(node.value))
        ):
            raise UsageError(f"`{self.text}`: `{node.value!r}` has no meaning in an expression")

    def value(self, lookup: Lookup) -> Any:
        """Computes the value: a Quantity, a text, a truth value, or None for a missing value.

        `lookup` returns the value of a name.

        Raises
        ------
        UsageError
            Units cannot be combined, or the expression divides by zero.
        KeyError
            A name has no value.
        """
        try:
            return self._value(self._tree, lookup)
        except OpticollError:
            raise
        except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
            raise UsageError(f"`{self.text}`: {error}") from error

    def holds(self, lookup: Lookup) -> bool:
        """Returns whether a condition is true; raises UsageError if the value is no truth value."""
        value = self.value(lookup)
        if not isinstance(value, bool):
            raise UsageError(f"`{self.text}` is not a condition, such as `ranks >= 8`")
        return value

    def _value(self, node: ast.AST, lookup: Lookup) -> Any:
        match node:
            case ast.Constant():
                return node.value if isinstance(node.value, str) else _plain(node.value)
            case ast.Name() | ast.Attribute():
                return _plain(lookup(_dotted(node)))
            case ast.Call(func=ast.Name(id="_"), args=[ast.Constant(value=text)]):
                return quantity(text)
            case ast.Call(func=ast.Name(id=name)):
                return FUNCTIONS[name](*(self._value(argument, lookup) for argument in node.args))
            case ast.UnaryOp(op=ast.Not()):
                return not _truth(self._value(node.operand, lookup))
            case ast.UnaryOp():
                number = _number(self._value(node.operand, lookup))
                negative = isinstance(node.op, ast.USub)
                return Quantity(-number.number, number.unit) if negative else number
            case ast.BinOp():
                ends = (self._value(operand, lookup) for operand in (node.left, node.right))
                return _arithmetic(type(node.op), *map(_number, ends))
            case ast.BoolOp():
                every = isinstance(node.op, ast.And)
                truths = (_truth(self._value(value, lookup)) for value in node.values)
                return all(truths) if every else any(truths)
            case ast.Compare():
                values = [
                    self._value(operand, lookup) for operand in (node.left, *node.comparators)
                ]
                pairs = zip(node.ops, values, values[1:], strict=False)
                return all(_compared(type(op), left, right) for op, left, right in pairs)
            case ast.IfExp():
                condition = _truth(self._value(node.test, lookup))
                return self._value(node.body if condition else node.orelse, lookup)
            case ast.List() | ast.Tuple():
                return [self._value(operand, lookup) for operand in node.elts]
        raise AssertionError(node)


_ALLOWED = (
    *(ast.Constant, ast.Name, ast.Load, ast.UnaryOp, ast.USub, ast.UAdd, ast.Not, ast.BinOp),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BoolOp, ast.And),
    *(ast.Or, ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn),
    *(ast.IfExp, ast.List, ast.Tuple),
)


def _dotted(node: ast.AST) -> str:
    """Returns a name such as `fabric.ranks` from its node in the syntax tree."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    raise UsageError("only names have a point in them, such as `fabric.ranks`")


def _plain(value: Any) -> Any:
    """Converts a number, or a text with a unit, to a quantity; other values stay unchanged."""
    converted = quantity(value)
    return value if converted is None else converted


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"`{value}` is neither true nor false")
    return value


def _number(value: Any) -> Quantity:
    if not isinstance(value, Quantity):
        raise TypeError(f"`{value}` is not a number")
    return value


def _limited(number: Fraction, unit: tuple[int, int]) -> Quantity:
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > MAX_BITS:
        raise ValueError("a number is too large")
    return Quantity(number, unit)


def _arithmetic(operation: type[ast.operator], left: Quantity, right: Quantity) -> Quantity:
    a, b = left.number, right.number
    if operation is ast.Mult:
        return _limited(a * b, (left.unit[0] + right.unit[0], left.unit[1] + right.unit[1]))
    if operation is ast.Div:
        return _limited(a / b, (left.unit[0] - right.unit[0], left.unit[1] - right.unit[1]))
    if operation is ast.Pow:
        if left.unit != (0, 0) or right.unit != (0, 0) or abs(b) > 64:
            raise ValueError("a power has a plain number below and one up to 64 above")
        return _limited(
            a ** int(b) if b.denominator == 1 else Fraction(float(a) ** float(b)), (0, 0)
        )
    if left.unit != right.unit:
        raise TypeError(f"`{left}` and `{right}` have different units")
    if operation is ast.FloorDiv:
        return Quantity(Fraction(a // b))
    whole: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mod: operator.mod,
    }
    return _limited(whole[operation](a, b), left.unit)


_ORDER: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def _compared(operation: type[ast.cmpop], left: Any, right: Any) -> bool:
    if left is None or right is None:
        # As in SQL, a comparison with a missing value is false.
        return False
    if operation in (ast.In, ast.NotIn):
        within = str(left) in right if isinstance(right, str) else left in right
        return within == (operation is ast.In)
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        # Zero is zero in every unit.
        if left.unit != right.unit and left.number and right.number:
            raise TypeError(f"`{left}` and `{right}` have different units")
        left, right = left.number, right.number
    if operation in _ORDER:
        return _ORDER[operation](left, right)
    return bool(left == right) == (operation is ast.Eq)


def _rounding(function: Callable[[float], float]) -> Callable[[Any], Quantity]:
    def rounded(value: Any) -> Quantity:
        number = _number(value)
        if number.unit != (0, 0):
            raise TypeError(f"`{number}` has a unit; divide by one first")
        integer = function(number.number)  # type: ignore[arg-type]
        return Quantity(Fraction(integer))

    return rounded


def _extreme(choose: Callable[..., Fraction]) -> Callable[..., Quantity]:
    def chosen(*values: Any) -> Quantity:
        numbers = [_number(value) for value in values]
        if len({number.unit for number in numbers}) != 1:
            raise TypeError("values have different units, or there are none")
        return Quantity(choose(number.number for number in numbers), numbers[0].unit)

    return chosen


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": _extreme(min),
    "max": _extreme(max),
    "floor": _rounding(math.floor),
    "ceil": _rounding(math.ceil),
    "round": _rounding(round),
    "sqrt": _rounding(math.sqrt),
    "log2": _rounding(math.log2),
    "abs": lambda value: Quantity(abs(_number(value).number), _number(value).unit),
}
"""Functions that expressions may call, by name."""
