"""The machine of sections III.A and IV.A, as the study has it."""

from __future__ import annotations

import opticoll
from opticoll import Fabric
from opticoll.papers.judging import Computed
from opticoll.papers.kit import POLICY

FLIT_BYTES = 32
CYCLE_PS = 1000  # of 1 GHz: the paper gives no clock
BLOCK, SMALL = 4 * 1024**2, 1024


def reproduce() -> dict[str, Computed]:
    """What the presets are, and what a conversion flit by flit would cost."""
    ring, rack = Fabric("optree_paper"), Fabric("terarack")
    options = ring.options
    around = opticoll.plan("all_gather", ring, "ring_bidirectional").columns()
    return {
        "machine.fibres": Computed(2 * _whole(rack, "fibres")),
        "machine.directions": Computed(2 * _whole(ring, "fibres")),
        "machine.resonators": Computed(_whole(ring, "wavelengths")),
        "setup.topology": Computed(len(set(around["direction"].tolist())), f"`{ring.spec}`."),
        "setup.wavelengths": Computed(_whole(ring, "wavelengths")),
        "setup.rate": Computed(int(options["rate"]["value"]) // 10**9),
        "setup.reconfiguration": Computed(int(options["reconfiguration"]["value"]) // 10**6),
        "setup.conversion": _conversion(),
        "time.constant": Computed(
            (BLOCK // FLIT_BYTES) / (SMALL // FLIT_BYTES),
            f"{SMALL // FLIT_BYTES} flits of {FLIT_BYTES} bytes in a block of 1 KiB, "
            f"{BLOCK // FLIT_BYTES} in one of 4 MiB.",
        ),
    }


def _conversion() -> Computed:
    """What a conversion adds to a step: a pause after each flit is a lower rate."""

    def step_ps(**options: str) -> int:
        plan = opticoll.plan("all_gather", Fabric("optree_paper:ranks=2", **options), "ring")
        return int(plan.simulate(BLOCK, policy=POLICY).time_ps)

    bits = 8 * FLIT_BYTES
    usual = Fabric("optree_paper").options["rate"]["value"]
    paused = bits * 10**12 // (bits * 10**12 // int(usual) + CYCLE_PS)
    step, late, slow = step_ps(), step_ps(conversion="1ns"), step_ps(rate=f"{paused}b/s")
    return Computed(
        100 * (slow / step - 1),
        f"{step / 1e6:.1f} us, {slow / 1e6:.1f} us with a pause of 1 ns after each of the "
        f"{BLOCK // FLIT_BYTES} flits, {late - step} ps more with conversion=1ns.",
    )


def _whole(fabric: Fabric, name: str) -> int:
    return int(fabric.options[name]["value"])
