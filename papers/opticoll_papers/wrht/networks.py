"""The poster's networks: their parameters, and what of an iteration waits for an electrical one."""

from __future__ import annotations

import opticoll
from opticoll import TrainingModel
from opticoll_papers.judging import Computed
from opticoll_papers.wrht.cases import BYTES_PER_PARAMETER, MODELS

WORKERS = 256
RATES = (10, 100)
SHARE = (50, 90)  # percent of an iteration, the range of the search


def parameters() -> dict[str, Computed]:
    """Returns the parameters and bytes per parameter of the study.

    Notes give the parameters of opticoll's layer tables.
    """
    used = {
        f"setup.{model.lower()}": Computed(
            count / 1e6,
            "Counted layer by layer, in the variant of torchvision: "
            f"{TrainingModel(model.lower()).parameters / 1e6:.4g} million.",
        )
        for model, count in MODELS.items()
    }
    return used | {"setup.format": Computed(BYTES_PER_PARAMETER)}


def shares() -> dict[str, Computed]:
    """Networks of whose iteration 50 to 90 percent wait for one switch."""
    told, inside = [], {}
    for rate in RATES:
        fabric = f"crossbar:ranks={WORKERS},rate={rate}Gb/s,latency=500ns"
        waits = {}
        for model in MODELS:
            row = opticoll.train(model.lower(), fabric, batch=32, device="v100", algorithm="ring")
            assert row["verified"]
            waits[model] = 100 * row["exposed_communication_s"] / row["iteration_s"]
        inside[rate] = sum(SHARE[0] <= one <= SHARE[1] for one in waits.values())
        each = ", ".join(f"{model} {one:.1f} %" for model, one in waits.items())
        told.append(f"At {rate} Gb/s {each}.")
    return {"intro.share": Computed(inside[RATES[-1]], " ".join(told))}
