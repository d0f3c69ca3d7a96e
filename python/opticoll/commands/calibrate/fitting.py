"""Fit of the costs of a library, or of the constants of a device, to measured times.

The compiled core computes every time. For a library, it simulates the plan that NCCL runs, a ring
or, for an all_to_all, direct sends, with the protocol that NCCL selects. For a device, it sums the
times of operators. The fit minimizes the squares of the logarithms of predicted over measured
times; errors of a network above 5 % have less weight. A weak prior keeps a cost that the times do
not determine at its value in the record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from opticoll._core import Fabric, Plan, device_constants, library_numbers, library_times, records
from opticoll._core import plan as make_plan
from opticoll.errors import UsageError
from opticoll.inputs.layer_times import LayerTime
from opticoll.inputs.measured_times import Measured

SOFT_ERROR = 0.05
"""Relative error above which an error has less weight: times of networks have outliers."""

PRIOR = 0.02
"""Relative error that counts as much as a cost that is e times its value in the record."""

STARTS = 3
"""Number of starts of a fit, which are costs around the record by chance."""

SPREAD = 0.5
"""Standard deviation of the logarithms of the costs at which a fit starts."""

STEP = 1e-4
"""Relative step of numerical derivatives. Costs are whole numbers, so it must not be too small."""

DETERMINED = 5 * PRIOR
"""Least sensitivity of the times to the logarithm of a cost that the times determine."""

BOUNDS = {"time": (10**4, 10**9), "millionths": (10**4, 10**6), "constant": (10**3, 10**11)}
"""Least and greatest costs of a fit: 10 ns and 1 ms in picoseconds, shares in millionths, and
constants of a device in millionths."""

PRECISION = {"time": 10**3, "millionths": 100, "whole": 1, "constant": 10**3}
"""Multiples to which fitted costs are rounded: 1 ns, 0.0001, and 0.001."""

Costs = dict[str, int]
"""Costs by name, in their smallest units."""


@dataclass(frozen=True)
class Number:
    """A cost of a library: its name, unit, meaning, and value in the record."""

    name: str
    unit: str
    meaning: str
    value: int
    least: int
    most: int

    def text(self, value: int) -> str:
        """Returns a value as the text of an option."""
        if self.unit == "time":
            return f"{value / 10**6:.6f}".rstrip("0").rstrip(".") + "us"
        if self.unit in ("millionths", "constant"):
            return f"{value / 10**6:.6f}".rstrip("0").rstrip(".")
        return str(value)


@dataclass(frozen=True)
class Predicted:
    """Predicted time of a measured time, with the protocol."""

    time_us: float
    protocol: str


Timed = Measured | LayerTime


class Model(Protocol):
    """Times of rows as a function of costs."""

    numbers: list[Number]
    floors: Mapping[str, int]
    """Values below which a cost has no effect."""
    loss: str
    """Loss of `scipy.optimize.least_squares`."""

    def options(self, costs: Mapping[str, int]) -> dict[str, str]:
        """Returns costs as options of the fabric or device."""

    def predict(self, costs: Mapping[str, int], rows: Sequence[Any]) -> list[Predicted]:
        """Returns the times of rows."""


class DeviceModel:
    """Times of layers on a device, as a function of its constants."""

    floors: Mapping[str, int] = {}
    loss = "linear"  # times of layers, unlike those of networks, have no outliers

    def __init__(self, device: str) -> None:
        """Reads the constants of the device.

        Raises
        ------
        TrainingError
            The device is unknown.
        """
        self.name = device.partition(":")[0]
        options = {option["name"]: option["meaning"] for option in _options(self.name)}
        least, most = BOUNDS["constant"]
        self.numbers = [
            Number(name, "constant", options[name], round(value * 10**6), least, most)
            for name, value in device_constants(device)
        ]

    def options(self, costs: Mapping[str, int]) -> dict[str, str]:
        """Returns constants as options of the device."""
        return {number.name: number.text(costs[number.name]) for number in self.numbers}

    def spec(self, costs: Mapping[str, int]) -> str:
        """Returns the specification of the device with these constants."""
        options = self.options(costs).items()
        return f"{self.name}:{','.join(f'{name}={text}' for name, text in options)}"

    def predict(self, costs: Mapping[str, int], rows: Sequence[LayerTime]) -> list[Predicted]:
        """Returns the times of rows."""
        device = self.spec(costs)
        return [Predicted(row.work.seconds(device) * 1e6, "") for row in rows]


def _options(device: str) -> list[Any]:
    """Returns the records of the options of a device."""
    return next(record["options"] for record in records("devices") if record["name"] == device)


class LibraryModel:
    """Times of NCCL's collectives on a fabric with a library, as a function of the costs."""

    loss = "soft_l1"

    def __init__(self, fabric: Fabric, rows: Sequence[Measured]) -> None:
        """Plans every collective that was measured.

        Raises
        ------
        UsageError
            A row has more ranks than the fabric.
        """
        self.library = str(fabric.option("library"))
        self.numbers = [Number(*number) for number in library_numbers(self.library)]
        self._plans = {
            (kind, ranks): _plan(fabric, kind, ranks)
            for kind, ranks in dict.fromkeys((row.collective, row.ranks) for row in rows)
        }
        # A step takes at least the latency of its route, so a shorter latency has no effect.
        latency_ps = min(plan.fabric.latency_ps for plan in self._plans.values())
        self.floors: Mapping[str, int] = {"ll_step": latency_ps}

    def options(self, costs: Mapping[str, int]) -> dict[str, str]:
        """Returns costs as options of the fabric."""
        return {number.name: number.text(costs[number.name]) for number in self.numbers}

    def predict(self, costs: Mapping[str, int], rows: Sequence[Measured]) -> list[Predicted]:
        """Returns the times of rows."""
        values = "".join(f",{name}={text}" for name, text in self.options(costs).items())
        library = f"costs:library={self.library}{values}"
        places: dict[tuple[str, int], list[int]] = {}
        for place, row in enumerate(rows):
            places.setdefault((row.collective, row.ranks), []).append(place)
        predicted: list[Any] = [None] * len(rows)
        for key, of_plan in places.items():
            sizes = [rows[place].size_bytes for place in of_plan]
            times = library_times(self._plans[key], sizes, library)
            for place, (time_ps, protocol) in zip(of_plan, times, strict=True):
                predicted[place] = Predicted(time_ps / 10**6, protocol)
        return predicted


def _plan(fabric: Fabric, kind: str, ranks: int) -> Plan:
    """Returns the plan that NCCL runs on the first ranks of a fabric."""
    if ranks > fabric.ranks:
        raise UsageError(
            f"a row has {ranks} ranks, the fabric only {fabric.ranks}; give more boxes, such as "
            "--family gpu_servers:model=dgx_h100,boxes=2"
        )
    if ranks < fabric.ranks:
        fabric = fabric.with_options(members=f"0-{ranks - 1}")
    algorithm = "direct" if kind == "all_to_all" else "ring"
    return make_plan(kind, fabric, algorithm)


@dataclass(frozen=True)
class Fitted:
    """Costs of a fit, its cost function, and whether the times determine each cost."""

    costs: Costs
    loss: float
    determined: dict[str, bool]


def fit(
    model: Model,
    rows: Sequence[Timed],
    starts: Iterable[Mapping[str, int]],
    least_squares: Callable[..., Any],
) -> Fitted:
    """Returns the best fit from several starts."""
    fits = [
        fit_from(model, rows, {**start, **whole}, least_squares)
        for start in starts
        for whole in _whole_numbers(model.numbers)
    ]
    return min(fits, key=lambda found: found.loss)


def _whole_numbers(numbers: Sequence[Number]) -> Iterator[dict[str, int]]:
    """Yields all values of the numbers that are whole, such as the exponent `overlap`."""
    whole = [number for number in numbers if number.unit == "whole"]
    values: list[dict[str, int]] = [{}]
    for number in whole:
        values = [
            {**others, number.name: value}
            for others in values
            for value in range(number.least, number.most + 1)
        ]
    yield from values


def fit_from(
    model: Model, rows: Sequence[Timed], start: Mapping[str, int], least_squares: Callable[..., Any]
) -> Fitted:
    free = [number for number in model.numbers if number.unit != "whole"]
    prior = np.log([max(number.value, 1) for number in free])
    bounds = [BOUNDS[number.unit] for number in free]
    low = np.log(
        [
            max(least, number.least, model.floors.get(number.name, 0))
            for number, (least, _) in zip(free, bounds, strict=True)
        ]
    )
    high = np.log(
        [
            number.most if number.name == "crowd" else min(most, number.most)
            for number, (_, most) in zip(free, bounds, strict=True)
        ]
    )
    measured = np.log([row.time_us for row in rows])

    def costs_of(logarithms: Any) -> Costs:
        values = {
            number.name: round(math.exp(value))
            for number, value in zip(free, logarithms, strict=True)
        }
        return {**start, **values}

    def residuals(logarithms: Any) -> Any:
        predicted = model.predict(costs_of(logarithms), rows)
        errors = np.log([time.time_us for time in predicted]) - measured
        return np.concatenate([errors, PRIOR * (logarithms - prior)])

    begin = np.log([max(start[number.name], 1) for number in free])
    found = least_squares(
        residuals,
        np.clip(begin, low + 1e-6, high - 1e-6),
        bounds=(low, high),
        loss=model.loss,
        f_scale=SOFT_ERROR,
        diff_step=STEP,
        x_scale=1.0,
        xtol=1e-5,
        ftol=1e-6,
    )
    sensitivity = np.linalg.norm(found.jac[: len(rows)], axis=0)
    determined = {
        number.name: bool(size > DETERMINED) for number, size in zip(free, sensitivity, strict=True)
    }
    return Fitted(costs_of(found.x), float(found.cost), determined)


def starts_of(numbers: Sequence[Number], count: int = STARTS) -> list[Costs]:
    """Returns the starts of a fit; none is the record, to which its own times were fitted."""
    random = np.random.default_rng(0)
    starts = []
    for _ in range(count):
        factors = np.exp(random.normal(0, SPREAD, len(numbers)))
        starts.append(
            {
                number.name: number.value
                if number.unit == "whole"
                else round(number.value * float(factor))
                for number, factor in zip(numbers, factors, strict=True)
            }
        )
    return starts


def rounded(numbers: Sequence[Number], costs: Mapping[str, int]) -> Costs:
    """Returns costs rounded to multiples of `PRECISION`."""
    return {
        number.name: min(
            number.most, round(costs[number.name] / PRECISION[number.unit]) * PRECISION[number.unit]
        )
        for number in numbers
    }
