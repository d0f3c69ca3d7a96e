"""Bills of materials: the parts of a fabric with their power, price and failures.

The core counts the parts (`Fabric.bill`). A part is a component, and a component has values, each
from one source (`opticoll list components`). Sums use the first value of a property that is a
single number; values of users come first. The power of a part is the first of these that has a
value:

1. the power of the component for the part's rate, such as `transceiver_800g`;
2. the power of the component;
3. its power per port, times the number of ports;
4. its energy per bit, times the rate (of each port).

If none has a value, the power of the part is unknown. A sum leaves the part out, and says so.

>>> from opticoll import Fabric
>>> rows = bill(Fabric("crossbar:ranks=2,rate=800Gb/s"), Values().catalogue())
>>> [(row.component, row.count, row.power_w) for row in rows[:2]]
[('transceiver', 2, 32.0), ('transceiver', 2, 32.0)]
>>> rows[-1].power_w, rows[-1].unknown_power
(192.128, [])
>>> rows[-1].unknown_price
['fibre_cable', 'nic', 'packet_switch']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from typing import Annotated, Literal, NamedTuple

from opticoll._core import Fabric
from opticoll.errors import UsageError
from opticoll.names import nearest
from opticoll.outputs.layout import align, format_rate, wrapped
from opticoll.outputs.records import OptionRow, RecordRow, record_rows
from opticoll.outputs.rows import Row, means
from opticoll.outputs.units import BitsPerSecond, Positive, Share, Unit

Catalogue = Mapping[str, Iterable[OptionRow]]
"""The values of each component, by name; values of users stand first."""

Watts = Annotated[float, Unit("W", "{:,.6g} W".format)]
Dollars = Annotated[float, Unit("USD", "{:,.2f} USD".format)]
FailureRate = Annotated[float, Unit("FIT", "{:,.6g} FIT".format)]

PER_BIT = Fraction(1, 10**12)
"""Joules of a picojoule."""

HOURS = 10**9
"""Hours to which a failure rate in FIT refers."""


class BillRow(Row):
    """Parts of one kind of a fabric."""

    kind: Literal["bom"] = means("Kind of the record")
    component: str = means("Component, as in `opticoll list components`")
    place: str | None = means(
        "Place of the parts in the fabric", absent="the component has one place only"
    )
    ports: Positive | None = means("Number of ports of a part", absent="the part is not a switch")
    rate: BitsPerSecond | None = means(
        "Rate of a part, or of each of its ports, in one direction", absent="it has no rate"
    )
    count: Positive = means("Number of parts")
    power_each_w: Watts | None = means("Power of a part", absent="no value is stated")
    power_w: Watts | None = means("Power of all parts of the row", absent="no value is stated")
    share: Share | None = means(
        "Share of the total power", absent="no value is stated, or the total is 0"
    )
    power_rule: str | None = means("How the power of a part follows", absent="no value is stated")
    price_usd: Dollars | None = means("Price of all parts of the row", absent="no value is stated")
    failures_fit: FailureRate | None = means(
        "Failures of all parts of the row in 10^9 hours", absent="no value is stated"
    )
    sources: list[str] = means("Values that the row uses, each with its source")


class BillTotalRow(Row):
    """Sums over the parts of a fabric."""

    kind: Literal["bom_total"] = means("Kind of the record")
    fabric: str = means("Fabric")
    power_w: Watts = means("Static power of all parts whose power is known")
    unknown_power: list[str] = means("Components whose power is not known")
    price_usd: Dollars | None = means(
        "Price of all parts whose price is known", absent="no price is known"
    )
    unknown_price: list[str] = means("Components whose price is not known")
    failures_fit: FailureRate | None = means(
        "Failures in 10^9 hours of all parts whose failure rate is known",
        absent="no failure rate is known",
    )
    unknown_failures: list[str] = means("Components whose failure rate is not known")


class Used(NamedTuple):
    """Value that a sum uses, the rule that gives it, and the listed value with its source."""

    value: Fraction
    rule: str
    source: str


@dataclass(frozen=True, eq=False)
class Values:
    """Values of components from a user's file, which come before the listed values."""

    own: Mapping[str, list[OptionRow]] = field(default_factory=dict)
    switch: str | None = None
    """Component with ports that replaces all packet switches, with the modules at their ports."""

    @cache  # noqa: B019 - each file of values is read once
    def catalogue(self) -> dict[str, list[OptionRow]]:
        """Returns the values of all components."""
        listed = {record.name: record.options for record in record_rows("components")}
        names = dict.fromkeys([*listed, *self.own])
        return {name: [*self.own.get(name, []), *listed.get(name, [])] for name in names}


_IN_USE: ContextVar[Values] = ContextVar("values of components", default=Values())  # noqa: B039


def in_use() -> Values:
    """Returns the values of components that the command uses."""
    return _IN_USE.get()


@contextmanager
def using(values: Values) -> Iterator[None]:
    """Uses `values` for the energy and power of all rows that are computed in the context."""
    token = _IN_USE.set(values)
    try:
        yield
    finally:
        _IN_USE.reset(token)


def bill(
    fabric: Fabric,
    values: Catalogue,
    *,
    rank_power: Fraction | None = None,
    switch: str | None = None,
) -> list[BillRow | BillTotalRow]:
    """Returns the parts of a fabric, and their sums in the last row.

    `rank_power` is the power of a rank in watts, which no component states. `switch` is a component
    with ports that replaces all packet switches together with the transceivers at their ports.

    Raises
    ------
    UsageError
        `switch` is no switch, or it has too few ports or too slow ones; or `rank_power` is given
        for a fabric whose GPUs are parts of the bill.
    """
    parts = fabric.bill
    if switch is not None:
        if all(component != "packet_switch" for component, *_ in parts):
            raise UsageError(f"`{switch}` replaces packet switches, and this fabric has none")
        parts = with_switch(parts, values, switch)
    rows = [
        _row(component, place, rate, ports, count, values)
        for component, place, rate, ports, count in parts
    ]
    if rank_power is not None:
        refuse_rank_power(parts)
        rows.append(_rank_row(fabric.ranks, rank_power))
    total = sum(row.power_w or 0 for row in rows)
    if total:
        rows = [
            row if row.power_w is None else replace(row, share=row.power_w / total) for row in rows
        ]

    def unknown(name: str) -> list[str]:
        return list(dict.fromkeys(row.component for row in rows if row[name] is None))

    def known(name: str) -> float | None:
        stated = [row[name] for row in rows if row[name] is not None]
        return sum(stated) if stated else None

    sums = BillTotalRow(
        kind="bom_total",
        fabric=fabric.spec,
        power_w=total,
        unknown_power=unknown("power_w"),
        price_usd=known("price_usd"),
        unknown_price=unknown("price_usd"),
        failures_fit=known("failures_fit"),
        unknown_failures=unknown("failures_fit"),
    )
    return [*rows, sums]


def devices(parts: Iterable[Part]) -> str | None:
    """Returns the component of the GPUs, if they are parts of the bill."""
    return next((component for component, *_ in parts if component.startswith("gpu")), None)


def refuse_rank_power(parts: Iterable[Part]) -> None:
    """Raises UsageError if the GPUs are parts of the bill, since their power is stated there."""
    component = devices(parts)
    if component is not None:
        raise UsageError(
            f"--rank-power: the GPUs are parts of this fabric; state the power of `{component}` in "
            "--components"
        )


Part = tuple[str, str, int | None, int | None, int]


def with_switch(parts: Sequence[Part], values: Catalogue, name: str) -> list[Part]:
    """Replaces packet switches, and the transceivers at their ports, by the switch `name`."""
    if name not in values:
        raise UsageError(f"there is no component `{name}`{nearest(name, values)}")
    most = {value.name: _number(value) for value in reversed(list(values[name]))}
    ports, rate = most.get("ports"), most.get("port rate")
    if ports is None or rate is None:
        raise UsageError(f"`{name}` states no number of ports and no port rate")
    replaced: list[Part] = []
    for component, place, part_rate, part_ports, count in parts:
        if component == "packet_switch":
            if (part_ports or 0) > ports or (part_rate or 0) > rate * 10**9:
                raise UsageError(
                    f"`{name}` has {ports} ports of {rate} Gb/s; the fabric has a switch of "
                    f"{part_ports} ports of {format_rate(part_rate or 0)}"
                )
            replaced.append((name, "", part_rate, part_ports, count))
        elif (component, place) != ("transceiver", "at switches"):
            replaced.append((component, place, part_rate, part_ports, count))
    return replaced


def _rank_row(ranks: int, power: Fraction) -> BillRow:
    return BillRow.of(
        kind="bom",
        component="rank",
        count=ranks,
        power_each_w=float(power),
        power_w=float(power * ranks),
        power_rule="power",
        sources=[f"power {float(power):g} W; given: --rank-power"],
    )


def _row(
    component: str, place: str, rate: int | None, ports: int | None, count: int, values: Catalogue
) -> BillRow:
    of_rate = f"{component}_{rate // 10**9}g" if rate and rate % 10**9 == 0 else None
    names = [name for name in (of_rate, component) if name and name in values]

    def first(*ways: tuple[str, Fraction | None, str]) -> Used | None:
        """Returns the first value by the ways (property, factor, rule); users' values come first.

        A component for the rate comes before the component for all rates.
        """
        for is_own in (True, False):
            for property_name, factor, rule in ways:
                for name in names:
                    for value in values[name]:
                        number = _number(value)
                        if (
                            factor is not None
                            and value.name == property_name
                            and number is not None
                            and _is_own(value) == is_own
                        ):
                            return Used(number * factor, rule, value.as_value())
        return None

    total_rate = None if rate is None else Fraction(rate) * (ports or 1) * PER_BIT
    per_port = None if ports is None else Fraction(ports)
    power = first(
        ("power", Fraction(1), "power"),
        ("power per port", per_port, "power per port x ports"),
        ("energy", total_rate, "energy x rate" if ports is None else "energy x ports x rate"),
    )
    price = first(
        ("price", Fraction(1), "price"), ("price per port", per_port, "price per port x ports")
    )
    failures = first(("failure rate", Fraction(1), "failure rate"))
    used = [value for value in (power, price, failures) if value]
    return BillRow.of(
        kind="bom",
        component=component,
        place=place or None,
        ports=ports,
        rate=rate,
        count=count,
        power_each_w=power and float(power.value),
        power_w=power and float(power.value * count),
        power_rule=power and power.rule,
        price_usd=price and float(price.value * count),
        failures_fit=failures and float(failures.value * count),
        sources=list(dict.fromkeys(value.source for value in used)),
    )


def energy_per_bit(part: Part, values: Catalogue) -> Fraction | None:
    """Returns the energy of a bit that passes a part, in joules; None if no value is stated.

    A part without a rate, such as a cable, has the energy that its component states, which is that
    of the electrical ports at its ends.
    """
    component, place, rate, ports, _ = part
    power = _row(component, place, rate, ports, 1, values).power_each_w
    if power is not None and rate:
        return Fraction(power) / (rate * (ports or 1))
    stated = _first(values.get(component, ()), "energy")
    if stated is not None:
        return stated * PER_BIT
    return None if power is None else Fraction(0)


def reconfiguration_energy(parts: Iterable[BillRow], values: Catalogue) -> Fraction:
    """Returns the energy of a reconfiguration of all switches, in joules; 0 if none is stated."""
    total = Fraction(0)
    for row in parts:
        each = _first(values.get(row.component, ()), "reconfiguration energy")
        total += row.count * (each or Fraction(0))
    return total


def _first(values: Iterable[OptionRow], name: str) -> Fraction | None:
    """Returns the first value of a property that is a single number."""
    numbers = (_number(value) for value in values if value.name == name)
    return next((number for number in numbers if number is not None), None)


OWN = "given: "
"""Beginning of the source of a user's value."""


def _is_own(value: OptionRow) -> bool:
    return (value.source or "").startswith(OWN)


def _number(value: OptionRow) -> Fraction | None:
    """Returns the number of a value, or None for a range such as `14 to 16`."""
    return None if " " in (value.range or " ") else Fraction(value.range or 0)


def bill_text(rows: list[BillRow | BillTotalRow]) -> str:
    """Returns a table of the parts, the sums, and the sources of the values."""
    parts = [row for row in rows if isinstance(row, BillRow)]
    sources = list(dict.fromkeys(source for row in parts for source in row.sources))
    numbers = {source: str(number) for number, source in enumerate(sources, 1)}
    cells = [
        [
            " ".join(filter(None, [row.component, row.place])),
            str(row.ports or ""),
            format_rate(row.rate) if row.rate else "",
            f"{row.count:,}",
            "unknown" if row.power_each_w is None else f"{row.power_each_w:,.6g} W",
            "" if row.power_w is None else f"{row.power_w:,.12g} W",
            "" if row.share is None else f"{row.share:.1%}",
            ", ".join(numbers[source] for source in row.sources),
        ]
        for row in parts
    ]
    heads = ["part", "ports", "rate", "number", "power each", "power", "share", "source"]
    lines = [align(cells, heads, {1, 2, 3, 4, 5, 6}), ""]
    for total in rows:
        if isinstance(total, BillTotalRow):
            lines += wrapped(_sums(total), 0)
    listed = [f"{number}. {source}" for source, number in numbers.items()]
    return "\n".join([*lines, *([""] if listed else []), *wrapped(listed, 0)])


def _sums(total: BillTotalRow) -> list[str]:
    """Returns the sums in words; a sum without any value is left out, except that of power."""

    def without(names: list[str]) -> str:
        return f"; not in it, without a listed value: {', '.join(names)}" if names else ""

    lines = [f"static power {total.power_w:,.12g} W{without(total.unknown_power)}"]
    if total.price_usd is None:
        lines.append("price: no part has a listed price")
    else:
        lines.append(f"price {total.price_usd:,.2f} USD{without(total.unknown_price)}")
    if total.failures_fit is not None:
        rate = total.failures_fit
        between = f"; a failure every {HOURS / rate:,.6g} h" if rate else ""
        unknown = without(total.unknown_failures)
        lines.append(f"failures {rate:,.12g} in 10^9 h{between}{unknown}")
    return lines


def component_record(name: str, summary: str, options: list[OptionRow]) -> RecordRow:
    """Returns the record of a user's component."""
    return RecordRow.of(
        kind="components", name=name, label=name, summary=summary, citation="", options=options
    )
