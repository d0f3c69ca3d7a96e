"""Loss budgets: powers of light in dBm, and losses in dB, of fabrics whose light has them.

The reference reads a loss as a number with its unit. It knows no components by name: opticoll
writes the loss of a component into the specification of a fabric.
"""

from __future__ import annotations

from decimal import Decimal

from opticoll.reference.words import Check, expect, like

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
    return {key: Decimal(options.get(key, "0").rstrip("dBm")) for key in known}


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
