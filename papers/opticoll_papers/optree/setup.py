"""The machine of sections III.A and IV.A, and the costs of conversions."""

from __future__ import annotations

import opticoll
from opticoll import Fabric
from opticoll_papers.common import POLICY
from opticoll_papers.judging import Computed

BLOCK, SMALL = 4 * 1024**2, 1024
FLIT, PACKET = "32B", "128B"
OVERLAPS = {
    "flits overlap": "",
    "packets overlap": f",packet={PACKET}",
    "nothing overlaps": ",packet=message",
}
"""Options of the fabric by overlap: the part of a message that is sent during the conversion."""


def reproduce() -> dict[str, Computed]:
    """Computes the claims on presets, and the cost of converting flit by flit."""
    ring = Fabric("optree_paper")
    options = ring.options
    around = opticoll.plan("all_gather", ring, "ring_bidirectional").columns()
    return {
        "machine.directions": Computed(2 * _whole(ring, "fibres")),
        "machine.resonators": Computed(_whole(ring, "wavelengths")),
        "setup.topology": Computed(len(set(around["direction"].tolist())), f"`{ring.spec}`."),
        "setup.wavelengths": Computed(_whole(ring, "wavelengths")),
        "setup.rate": Computed(int(options["rate"]["value"]) // 10**9),
        "setup.reconfiguration": Computed(int(options["reconfiguration"]["value"]) // 10**6),
        **_conversion(),
    }


def _conversion() -> dict[str, Computed]:
    """Computes the time that a conversion of one 1 GHz cycle per flit adds to a step.

    Each value assumes another overlap of conversion and transmission.
    """

    def step_ps(size: int, options: str = "") -> int:
        plan = opticoll.plan("all_gather", f"optree_paper:ranks=2{options}", "ring")
        return int(plan.simulate(size, policy=POLICY).time_ps)

    added = {
        (name, size): step_ps(size, f",conversion=1ns,flit={FLIT}{packet}") - step_ps(size)
        for name, packet in OVERLAPS.items()
        for size in (SMALL, BLOCK)
    }
    sentence = "Blocks of 1 KiB and of 4 MiB take longer by " + "; ".join(
        f"{added[name, SMALL] / 1000:g} and {added[name, BLOCK] / 1000:g} ns if {name}"
        for name in OVERLAPS
    )
    converting = Fabric("optree_paper", conversion="1ns", flit=FLIT, packet=PACKET).options
    return {
        "setup.packets": Computed(
            tuple(
                int(str(converting[name]["value"]).removesuffix("B")) for name in ("packet", "flit")
            )
        ),
        "setup.conversion": Computed(
            100 * added["nothing overlaps", BLOCK] / step_ps(BLOCK), f"{sentence}."
        ),
        "time.constant": Computed(
            added["nothing overlaps", BLOCK] / added["nothing overlaps", SMALL], f"{sentence}."
        ),
        "time.constant.overlapping": Computed(
            max(
                added[name, BLOCK] / added[name, SMALL]
                for name in ("flits overlap", "packets overlap")
            ),
            f"{sentence}.",
        ),
    }


def _whole(fabric: Fabric, name: str) -> int:
    return int(fabric.options[name]["value"])
