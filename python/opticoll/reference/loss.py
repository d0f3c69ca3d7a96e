"""Loss budgets: powers of light in dBm, and losses in dB, of fabrics whose light has them.

The reference reads a loss as a number with its unit. It knows no components by name: opticoll
writes the loss of a component into the specification of a fabric.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal

from opticoll.reference.words import LENGTHS, Check, expect, like, quantity

LOSS = r"[0-9]{1,3}(\.[0-9]{1,6})?dB"
POWERS: dict[str, Check] = dict.fromkeys(("launch_power", "sensitivity"), like(f"-?{LOSS}m"))


def checks(*losses: str) -> dict[str, Check]:
    """Returns the checks of the options of a loss budget whose losses are `losses`."""
    return {**POWERS, **dict.fromkeys(losses, like(LOSS))}


def read(
    options: dict[str, str], losses: tuple[str, ...], needed: tuple[str, ...] = ()
) -> dict[str, Decimal]:
    """Returns the powers and losses of light by option; empty if no such option is given.

    If one is given, both powers and all options in `needed` must be given. A loss that is not
    given is 0.
    """
    known = (*POWERS, *losses)
    if not {*known, *needed} & set(options):
        return {}
    for key in (*POWERS, *needed):
        expect(key in options, f"`{key}` is missing")
    return {key: decibels(options.get(key, "0")) for key in known}


def decibels(word: str) -> Decimal:
    """Returns the number of a word such as `-3dBm`, `2dB` or `0.2dB/km`."""
    return Decimal(word.removesuffix("/km").rstrip("dBm"))


def arrives(levels: dict[str, Decimal], lost: Decimal) -> bool:
    """Returns whether light that has lost `lost` dB is strong enough; True without powers."""
    return not levels or levels["launch_power"] - lost >= levels["sensitivity"]


def expect_arrival(options: dict[str, str], *losses: str, more: Decimal = Decimal(0)) -> None:
    """Checks that light arrives which has each of `losses` once, and `more` dB in addition."""
    levels = read(options, losses)
    lost = sum((levels.get(key, Decimal(0)) for key in losses), more)
    expect(arrives(levels, lost), "light is too weak at its receiver")


def of_splitter(outputs: int) -> Decimal:
    """Returns 10 log10(outputs), the loss of even division, to the nearest millionth of a dB."""
    return (10 * Decimal(outputs).log10()).quantize(Decimal("0.000001"))


class GraphBudget:
    """Loss and noise of light on a graph of fibres; `docs/loss.md` states how they add up."""

    def __init__(self, options: dict[str, str], losses: tuple[str, ...]) -> None:
        noise = {"noise_figure", "span", "crosstalk", "osnr"} & set(options)
        self.levels = read(options, (*losses, "fibre_loss"))
        expect(bool(self.levels) or not noise, "noise needs powers of light")
        expect("span" not in options or "noise_figure" in options, "no amplifier ends a span")
        sources = {"noise_figure", "crosstalk"} & noise
        expect("osnr" not in options or bool(sources), "no noise limits the ratio to the signal")
        ratios = {key: float(decibels(options[key])) for key in noise - {"span"}}
        self.noise_figure = ratios.get("noise_figure")
        self.osnr = ratios.get("osnr")
        self.crosstalk = 10 ** (ratios["crosstalk"] / 10) if "crosstalk" in ratios else 0.0
        self.span = int(quantity(options.get("span", "80km"), LENGTHS))

    def expect_a_link(self, lengths: Sequence[int | None]) -> None:
        """Checks that light arrives after some link, and that all lengths are known."""
        if self.levels:
            needed = self.levels["fibre_loss"] > 0
            expect(not needed or None not in lengths, "a link has no length")
            arrives = any(self.arrives([length], 0) for length in {*lengths} or {0})
            expect(arrives, "no light arrives")

    def arrives(self, lengths: Sequence[int | None], splits: int) -> bool:
        """Returns whether light is received after links of `lengths`, in metres, and `splits`."""
        if not self.levels:
            return True
        metres = [length or 0 for length in lengths]
        lost = self.levels["fixed_loss"] + self.levels["drop_loss"]
        if self.noise_figure is None:
            fibre = self.levels["fibre_loss"] * sum(metres) / 1000
            lost += fibre.quantize(Decimal("0.000001"), ROUND_CEILING)
            lost += len(metres) * self.levels["link_loss"]
            lost += (len(metres) - 1) * self.levels["through_loss"]
            lost += splits * self.levels["split_loss"]
        return arrives(self.levels, lost) and self.is_clear(metres, splits)

    def is_clear(self, metres: list[int], splits: int) -> bool:
        """Returns whether the ratio of signal to noise is large enough, to a millionth of a dB."""
        if self.osnr is None:
            return True
        noise = (len(metres) - 1) * (self.amplified("through_loss") + self.crosstalk)
        noise += splits * self.amplified("split_loss")
        for length in metres:
            spans = max(-(-length // self.span), 1)
            lost = float(self.levels["link_loss"] + self.levels["fibre_loss"] * length / 1000)
            noise += spans * self.amplifier(lost / spans)
        return noise <= 0 or round(-10 * math.log10(noise), 6) >= self.osnr

    def amplified(self, key: str) -> float:
        """Returns the noise of the amplifier after a device with the loss `key`."""
        lost = float(self.levels[key])
        return self.amplifier(lost) if lost else 0.0

    def amplifier(self, lost: float) -> float:
        """Returns the noise of an amplifier after a loss of `lost` dB, relative to the signal.

        At the amplifier's input, a power of h * f * B * F is noise, with Planck's constant h, the
        frequency f of light of 1550 nm, the band B of 0.1 nm and the noise figure F.
        """
        if self.noise_figure is None:
            return 0.0
        least = 6.62607015e-34 * (299792458 / 1550e-9) * 12.5e9 * 1000
        level = self.noise_figure - (float(self.levels["launch_power"]) - lost)
        return least * 10 ** (level / 10)
