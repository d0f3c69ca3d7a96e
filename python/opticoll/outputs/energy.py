"""Energy of a plan: what its bits take in the parts that they pass, and the static power.

The core counts the bytes that pass the parts of each kind (`Plan.passed_parts`). The energy of a
plan, `energy_j`, has three terms:

1. **Bits.** A bit that passes a part takes the power of the part divided by its rate, of a switch
   divided by the rate of all ports. Half of it is taken at each end of a link or circuit. A cable
   takes its energy per bit.
2. **Lasers.** The laser of an optical module takes its power while it is lit. On a network of links
   all lasers are lit for the whole time. The laser of a circuit is lit while the circuit sends. The
   bits (term 1) take the energy of the module without its laser.
3. **Reconfigurations.** Each takes the `reconfiguration energy` of every switch of the fabric, if a
   value is stated.

So `energy_j` is the energy of a machine whose parts take no power while no bits pass. Today's parts
take their power all the time: `static_energy_j` is the power of all parts times the time.

>>> import opticoll
>>> plan = opticoll.plan("broadcast", "torus:dims=2,rate=800Gb/s", "binomial")
>>> energy = plan_energy(plan, plan.simulate("1MB"), 10**6)
>>> f"{8e6 * (20e-12 - 1.25e-12):.4g}", f"{energy.bits_j:.4g}"
('0.00015', '0.00015')
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from opticoll._core import Fabric, Outcome, Plan
from opticoll.formulas import delivered_bytes
from opticoll.outputs import bill
from opticoll.outputs.bill import BillRow, BillTotalRow, Part
from opticoll.outputs.layout import PICOSECONDS

MODULES = ("transceiver", "wdm_transceiver", "tunable_transceiver")
"""Components of bills that have a laser."""

LASER = "laser"
"""Component whose energy per bit is the share of the laser in the energy of a module."""


@dataclass(frozen=True)
class PlanEnergy:
    """Energy of a plan at one size, and the static power and price of its fabric."""

    bits_j: float
    """Energy of the bits in the parts that they pass, without lasers."""
    lasers_j: float
    """Energy of the lasers while they are lit."""
    circuit_lasers_j: float
    """Part of `lasers_j`: lasers of circuits."""
    reconfigurations_j: float
    """Energy of the reconfigurations; 0 if no value is stated."""
    static_j: float
    """Static power of the fabric times the time."""
    unknown: list[str]
    """Components that bits pass and whose energy is not known."""
    power_w: float
    """Static power of all parts of the fabric whose power is known."""
    power_unknown: list[str]
    """Components of the fabric whose power is not known."""
    price_unknown: list[str]
    """Components of the fabric whose price is not known."""
    price_usd: float | None
    """Price of all parts of the fabric whose price is known; None if no price is known."""
    per_bit_j: float | None = None
    """Energy per bit of a result that its rank did not hold before; None if there is none."""

    @property
    def total_j(self) -> float:
        """Sum of the three terms."""
        return self.bits_j + self.lasers_j + self.reconfigurations_j


def bill_total(fabric: Fabric) -> BillTotalRow:
    """Returns the sums over the parts of a fabric, with the values of components in use."""
    return _bill(fabric.spec, bill.in_use())[1]


@lru_cache(maxsize=64)
def _bill(spec: str, values: bill.Values) -> tuple[list[BillRow], BillTotalRow]:
    *parts, total = bill.bill(Fabric(spec), values.catalogue(), switch=values.switch)
    assert isinstance(total, BillTotalRow)
    return [row for row in parts if isinstance(row, BillRow)], total


@lru_cache(maxsize=256)
def _energy_of(part: Part, values: bill.Values) -> tuple[Fraction | None, Fraction]:
    """Returns the energies of a bit in a part without its laser, and in its laser, in joules.

    The first is None if no value is stated.
    """
    component, _, rate, ports, _ = part
    catalogue = values.catalogue()
    whole = bill.energy_per_bit(part, catalogue)
    if whole is None or component not in MODULES:
        return whole, Fraction(0)
    laser = bill.energy_per_bit((LASER, "", rate, ports, 1), catalogue) or Fraction(0)
    return whole - min(laser, whole), min(laser, whole)


def plan_energy(plan: Plan, outcome: Outcome, size_bytes: int) -> PlanEnergy:
    """Returns the energy of a plan in a simulation with `size_bytes`.

    The values are those of `list components`, and those in use (`bill.using`).
    """
    counted = 0 if plan.fabric.electrical else outcome.totals.get("reconfigurations") or 0
    passed = plan.passed_parts(outcome, size_bytes)
    energy = passed_energy(plan.fabric, passed, outcome.time_ps, counted)
    delivered = None
    if plan.collective.demand is None:
        delivered = delivered_bytes(plan.collective.kind, plan.fabric.ranks, size_bytes)
    return replace(energy, per_bit_j=energy.total_j / (8 * delivered)) if delivered else energy


def passed_energy(
    fabric: Fabric, passed: tuple[Sequence[Part], int | None], time_ps: int, reconfigurations: int
) -> PlanEnergy:
    """Returns the energy of what a plan needed of the parts of a fabric (`Plan.passed_parts`)."""
    values = bill.in_use()
    passed_parts, lit_bytes = passed
    if values.switch is not None:
        passed_parts = bill.with_switch(passed_parts, values.catalogue(), values.switch)
    parts, total = _bill(fabric.spec, values)
    time = Fraction(time_ps, PICOSECONDS)
    bits, lasers = Fraction(0), Fraction(0)
    unknown = []
    packet_rate = fabric.option("packet_rate")
    in_circuits = Fraction(0)
    for component, place, rate, ports, halves in passed_parts:
        in_part, in_laser = _energy_of((component, place, rate, ports, 1), values)
        if in_part is None:
            unknown.append(component)
            continue
        bits += 4 * halves * in_part
        in_circuits = max(in_circuits, in_laser)
    circuit_lasers = 8 * (lit_bytes or 0) * in_circuits
    for row in parts:
        # Beside circuits, only the packet network, with a module at each rank, is always lit.
        count = row.count if lit_bytes is None else fabric.ranks
        if lit_bytes is None or row.rate == packet_rate:
            part = (row.component, row.place or "", row.rate, row.ports, 1)
            lasers += count * (row.rate or 0) * time * _energy_of(part, values)[1]
    each = bill.reconfiguration_energy(parts, values.catalogue())
    return PlanEnergy(
        bits_j=float(bits),
        lasers_j=float(lasers + circuit_lasers),
        circuit_lasers_j=float(circuit_lasers),
        reconfigurations_j=float(reconfigurations * each),
        static_j=float(Fraction(total.power_w) * time),
        unknown=list(dict.fromkeys(unknown)),
        power_w=total.power_w,
        power_unknown=total.unknown_power,
        price_unknown=total.unknown_price,
        price_usd=total.price_usd,
    )
