"""The machine of sections III.A and IV.A, as the study has it."""

from __future__ import annotations

import opticoll
from opticoll import Fabric
from opticoll.papers.judging import Computed
from opticoll.papers.kit import step_time_ps

FLIT_BYTES = 32
CYCLE_PS = 1000  # of 1 GHz: the paper gives no clock
BLOCK = 4 * 1024**2


def reproduce() -> dict[str, Computed]:
    """What the presets are, and what a conversion flit by flit would cost."""
    ring, rack = Fabric("optree_paper"), Fabric("terarack")
    options = ring.options
    around = opticoll.plan("all_gather", ring, "ring_bidirectional").columns()
    table = opticoll.plan("all_gather", ring, "optree")
    violations = len(table.verify())
    slower = (BLOCK // FLIT_BYTES) * CYCLE_PS / step_time_ps(BLOCK)
    return {
        "machine.fibres": Computed(2 * _whole(rack, "fibres")),
        "machine.directions": Computed(2 * _whole(ring, "fibres")),
        "machine.resonators": Computed(_whole(ring, "wavelengths")),
        "machine.assignment": Computed(
            violations, f"{len(table)} lightpaths in {table.slots} slots."
        ),
        "setup.topology": Computed(len(set(around["direction"].tolist())), f"`{ring.spec}`."),
        "setup.wavelengths": Computed(_whole(ring, "wavelengths")),
        "setup.rate": Computed(int(options["rate"]["value"]) // 10**9),
        "setup.reconfiguration": Computed(int(options["reconfiguration"]["value"]) // 10**6),
        "setup.conversion": Computed(
            100 * slower,
            f"{BLOCK // FLIT_BYTES} flits of {FLIT_BYTES} B at 1 ns each beside "
            f"{step_time_ps(BLOCK) / 1e6:.1f} us for a step.",
        ),
    }


def _whole(fabric: Fabric, name: str) -> int:
    return int(fabric.options[name]["value"])
