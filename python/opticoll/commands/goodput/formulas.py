"""Formulas for runs with checkpoints: the best interval, and the goodput.

C is the time to write a checkpoint, tau the time of work between two checkpoints, M the mean time
between failures, R the time from a failure to the next work. Failures are a Poisson process.

>>> round(young(60, 3.1 * 3600)), round(daly(60, 3.1 * 3600))
(1157, 1118)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def young(checkpoint_s: float, between_s: float) -> float:
    """Returns tau = sqrt(2 C M), the interval that minimizes C / tau + tau / (2 M).

    Young, A first order approximation to the optimum checkpoint interval, CACM 17(9), 1974. It
    holds if C and tau are far below M.
    """
    return math.sqrt(2 * checkpoint_s * between_s)


def daly(checkpoint_s: float, between_s: float) -> float:
    """Returns tau = sqrt(2 C M) (1 + x / 3 + x^2 / 9) - C with x = sqrt(C / (2 M)), if C < 2 M.

    Otherwise returns M. Daly, A higher order estimate of the optimum checkpoint interval for
    restart dumps, FGCS 22(3), 2006. The terms approximate the maximum of `complete`.
    """
    if checkpoint_s >= 2 * between_s:
        return between_s
    root = math.sqrt(checkpoint_s / (2 * between_s))
    return young(checkpoint_s, between_s) * (1 + root / 3 + root**2 / 9) - checkpoint_s


def first_order(
    checkpoint_s: float, interval_s: float, state_rate: float, stopped_share: float
) -> float:
    """Returns 1 - (C / tau + tau / (2 M) + R / M), or 0 if this is negative.

    `state_rate` is 1 / M of the failures that lose state, `stopped_share` the sum of R / M.
    """
    lost = checkpoint_s / interval_s + interval_s * state_rate / 2 + stopped_share
    return max(0.0, 1 - lost)


def complete(checkpoint_s: float, interval_s: float, between_s: float, restart_s: float) -> float:
    """Returns tau / (M exp(R / M) (exp((tau + C) / M) - 1)), which holds for all C, tau, R and M.

    This is the inverse of Daly's complete cost function. Work, checkpoint and restart may all fail,
    and a restart that fails starts anew. From one checkpoint to the next takes E on average, where
    E = (M + E_R) (exp((tau + C) / M) - 1), and a restart takes E_R = M (exp(R / M) - 1).
    """
    exponent = (interval_s + checkpoint_s) / between_s
    # Beyond exp(700) the goodput is 0 for every practical purpose, and exp would overflow.
    if exponent + restart_s / between_s > 700:
        return 0.0
    return interval_s / (between_s * math.exp(restart_s / between_s) * math.expm1(exponent))


def missing_units(units: int, unavailable: float) -> NDArray[np.float64]:
    """Returns the probabilities that 0, 1, ... of the units are in repair at a time.

    `unavailable` is the probability of one unit, f T / (1 + f T) with failure rate f and mean
    repair time T. Units fail and are repaired independently, so the number is binomial.
    """
    if unavailable == 0:
        return np.array([1.0])
    count = np.arange(units)
    ratios = np.log((units - count) / (count + 1)) + math.log(unavailable / (1 - unavailable))
    logarithms = np.concatenate([[0.0], np.cumsum(ratios)]) + units * math.log1p(-unavailable)
    probabilities: NDArray[np.float64] = np.exp(logarithms)
    return probabilities


def student(values: int) -> float:
    """Returns t of the 95 % interval of the mean of so many independent values.

    Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5, with z = 1.959964.

    >>> round(student(31), 4), round(student(121), 4)
    (2.0423, 1.9799)
    """
    z, freedom = 1.959964, values - 1
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


OPTIMA = {"young": young, "daly": daly}
"""Optimum of the interval by the name of the formula."""
