"""The poster's networks: their parameters, and what of an iteration waits for an electrical one."""

from __future__ import annotations

import opticoll
from opticoll import TrainingModel
from opticoll.papers.judging import Computed
from opticoll.papers.wrht.cases import BYTES_PER_PARAMETER, MODELS

WORKERS = 256
RATES = (10, 100)


def parameters() -> dict[str, Computed]:
    """Those that are used, and those of opticoll's layer tables."""
    used = {f"setup.{model.lower()}": Computed(count / 1e6) for model, count in MODELS.items()}
    counted = {
        f"setup.{model.lower()}.counted": Computed(TrainingModel(model.lower()).parameters / 1e6)
        for model in MODELS
    }
    return used | counted | {"setup.format": Computed(BYTES_PER_PARAMETER)}


def shares() -> dict[str, Computed]:
    """Percent of an iteration that waits for the network, on one switch."""
    computed = {}
    for rate in RATES:
        fabric = f"crossbar:ranks={WORKERS},rate={rate}Gb/s,latency=500ns"
        waits = []
        for model in MODELS:
            row = opticoll.train(model.lower(), fabric, batch=32, device="v100", algorithm="ring")
            assert row["verified"]
            waits.append(100 * row["exposed_communication_s"] / row["iteration_s"])
        computed[f"intro.share.{rate}.most"] = Computed(max(waits))
        computed[f"intro.share.{rate}.all"] = Computed(tuple(waits))
    return computed
