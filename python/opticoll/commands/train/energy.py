"""Energy of an iteration and of a whole training: network, devices, and emissions of the grid."""

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from opticoll._core import Fabric
from opticoll.errors import UsageError
from opticoll.inputs.component_values import watts
from opticoll.outputs import bill
from opticoll.outputs.bill import Watts
from opticoll.outputs.energy import PlanEnergy, bill_total, passed_energy
from opticoll.outputs.layout import human_energy
from opticoll.outputs.rows import Row, means
from opticoll.outputs.units import Joules, Number

if TYPE_CHECKING:
    from opticoll._core import CollectiveCost

JOULES_PER_KWH = 3_600_000

NO_TRAINING = "no number of epochs was given, or the power of the devices is not known"
DEVICES_UNKNOWN = "the bill of the fabric has no devices, and --rank-power was not given"


class EnergyRow(Row):
    """Energy of an iteration, of a sample and of a whole training."""

    static_power_w: Watts = means(
        "Static power of all parts of the fabric whose power is known, with GPUs if they are parts"
    )
    devices_power_w: Watts | None = means(
        "Power of all devices, as given by --rank-power", absent="--rank-power was not given"
    )
    iteration_energy_j: Joules = means("Power of fabric and devices times the iteration")
    sample_energy_j: Joules = means("The same energy per sample")
    bits_energy_j: Joules | None = means(
        "Energy of the bits of an iteration in the parts that they pass, and of reconfigurations",
        absent="all groups are simulated together",
    )
    laser_energy_j: Joules | None = means(
        "Energy of the lasers in an iteration while they are lit",
        absent="all groups are simulated together, and lasers are lit for circuits only",
    )
    training_energy_kwh: Number | None = means("Energy of the training", absent=NO_TRAINING)
    training_co2_tonnes: Number | None = means(
        "Emissions of the training in tonnes of CO2 equivalent",
        absent=f"{NO_TRAINING}, or no --grid-intensity was given",
    )
    energy_unknown: list[str] = means("Components whose power or energy is not known")


class Spent(NamedTuple):
    """Energy of one kind of collective, and how often an iteration contains this kind."""

    energy: PlanEnergy
    times: float


def spent_by(fabric: Fabric, cost: "CollectiveCost", times: float = 1) -> Spent:
    """Returns the energy of `times` collectives that cost `cost`, on a part of a fabric."""
    counted = 0 if fabric.electrical else cost["reconfigurations"]
    energy = passed_energy(fabric, cost["passed"], cost["time_ps"], counted)
    return Spent(energy, times)


def grid_intensity(text: str) -> Fraction:
    """Returns the grams of CO2 equivalent per kWh of a text such as `400g/kWh`."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*g/kWh\s*", text)
    if match is None:
        raise UsageError(f"--grid-intensity: `{text}` is not a number of g/kWh, such as 400g/kWh")
    return Fraction(match[1])


def check_energy(fabric: Fabric, rank_power: str | None, intensity: str | None) -> None:
    """Raises an error if the fabric has devices of its own, or a value is malformed."""
    if rank_power is not None:
        bill.refuse_rank_power(fabric.bill)
        watts(rank_power)
    if intensity is not None:
        grid_intensity(intensity)


def energy_row(
    fabric: Fabric,
    spent: Iterable[Spent] | None,
    *,
    iteration_ps: int,
    samples: int,
    training_s: float | None,
    rank_power: str | None,
    intensity: str | None,
) -> EnergyRow:
    """Returns the energy of an iteration whose collectives take `spent`."""
    whole = passed_energy(fabric, ([], None if fabric.electrical else 0), iteration_ps, 0)
    parts = list(spent or ())
    has_devices = bill.devices(fabric.bill) is not None
    devices = None if rank_power is None else float(watts(rank_power) * fabric.ranks)
    power = whole.power_w + (devices or 0)
    bits = sum((one.energy.bits_j + one.energy.reconfigurations_j) * one.times for one in parts)
    lit = sum(one.energy.circuit_lasers_j * one.times for one in parts)
    unstated = bill_total(fabric).unknown_power.copy()
    unstated += [name for one in parts for name in one.energy.unknown]
    training = None
    if training_s is not None and (has_devices or devices is not None):
        training = power * training_s / JOULES_PER_KWH
    grams = None if intensity is None else float(grid_intensity(intensity))
    energy = power * iteration_ps / 1e12
    return EnergyRow(
        static_power_w=whole.power_w,
        devices_power_w=devices,
        iteration_energy_j=energy,
        sample_energy_j=energy / samples,
        bits_energy_j=None if spent is None else bits,
        laser_energy_j=None if spent is None and not fabric.electrical else whole.lasers_j + lit,
        training_energy_kwh=training,
        training_co2_tonnes=None if training is None or grams is None else training * grams / 1e6,
        energy_unknown=list(dict.fromkeys(unstated)),
    )


def energy_facts(row: EnergyRow) -> list[list[str]]:
    """Returns facts on the energy for the text output."""
    devices = "" if row.devices_power_w is None else f" + devices {row.devices_power_w:,.6g} W"
    facts = [
        f"fabric {row.static_power_w:,.6g} W{devices}, so {human_energy(row.iteration_energy_j)} "
        f"per iteration and {human_energy(row.sample_energy_j)} per sample"
    ]
    if row.bits_energy_j is not None and row.laser_energy_j is not None:
        facts[0] += f"; bits alone {human_energy(row.bits_energy_j)}"
        facts[0] += f", lasers {human_energy(row.laser_energy_j)}"
    if row.energy_unknown:
        facts.append(f"not in it, without a listed value: {', '.join(row.energy_unknown)}")
    return [["energy" if number == 0 else "", fact] for number, fact in enumerate(facts)]


def training_energy(row: EnergyRow) -> str:
    """Returns the energy and the emissions of a training as the end of a sentence."""
    if row.training_energy_kwh is None:
        return ""
    tonnes = row.training_co2_tonnes
    emissions = "" if tonnes is None else f", {tonnes:,.4g} tonnes of CO2 equivalent"
    return f"; {row.training_energy_kwh:,.6g} kWh{emissions}"
