"""The poster's networks: their parameters, and the communication share of an iteration."""

from __future__ import annotations

import opticoll
from opticoll import TrainingModel
from opticoll_papers.judging import Computed
from opticoll_papers.wrht.cases import BYTES_PER_PARAMETER, MODELS

WORKERS = 256
RATES = (10, 100)
SHARE = (50, 90)  # range of the share of an iteration in percent


def parameters() -> dict[str, Computed]:
    """Computes the parameters, and bytes per parameter, of the study.

    The notes list the parameters in opticoll's layer tables.
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
    """Finds networks whose iterations spend 50 to 90 percent on communication over one switch."""
    sentences, inside = [], {}
    for rate in RATES:
        fabric = f"crossbar:ranks={WORKERS},rate={rate}Gb/s,latency=500ns"
        waits = {}
        for model in MODELS:
            row = opticoll.train(model.lower(), fabric, batch=32, device="v100", algorithm="ring")
            assert row["verified"]
            waits[model] = 100 * row["exposed_communication_s"] / row["iteration_s"]
        inside[rate] = sum(SHARE[0] <= share <= SHARE[1] for share in waits.values())
        each = ", ".join(f"{model} {share:.1f} %" for model, share in waits.items())
        sentences.append(f"At {rate} Gb/s {each}.")
    return {"intro.share": Computed(inside[RATES[-1]], " ".join(sentences))}
