"""An all_reduce of your own: every block goes around the ring twice, first summed, then copied."""

import numpy as np

import opticoll


def all_reduce(collective: opticoll.Collective, fabric: opticoll.Fabric) -> opticoll.Schedule:
    """Builds an all_reduce along a ring, with one chunk of the vector for each rank."""
    ranks = fabric.ranks
    schedule = opticoll.Schedule(opticoll.Collective("all_reduce", ranks, pieces=ranks))
    everyone = np.arange(ranks)
    following = (everyone + 1) % ranks
    for step in range(ranks - 1):
        schedule.step((everyone - step) % ranks, everyone, following, action="reduce")
    for step in range(ranks - 1):
        schedule.step((everyone + 1 - step) % ranks, everyone, following)
    return schedule
