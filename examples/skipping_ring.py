"""An all_gather of your own: blocks travel in strides, then neighbours exchange the rest.

First, every rank passes its most recently received block to the rank `skip` positions further. Then
all ranks of a residue class (numbers that are equal modulo `skip`) have all blocks of the class.
Finally, every rank passes the blocks of whole classes to its neighbour.
"""

import numpy as np

import opticoll
from opticoll.errors import AlgorithmError


def all_gather(
    collective: opticoll.Collective, fabric: opticoll.Fabric, skip: int = 2
) -> opticoll.Schedule:
    """Blocks go around in strides of `skip`, which must divide the number of ranks."""
    ranks = fabric.ranks
    if ranks % skip:
        raise AlgorithmError(f"{skip} does not divide {ranks} ranks; choose another skip")
    schedule = opticoll.Schedule(collective)
    everyone = np.arange(ranks)
    strides = ranks // skip
    for step in range(strides - 1):
        schedule.step((everyone - step * skip) % ranks, everyone, (everyone + skip) % ranks)
    for step in range(skip - 1):
        # The whole residue class of rank r - step, block by block, to the next rank.
        for stride in range(strides):
            blocks = (everyone - step + stride * skip) % ranks
            schedule.step(blocks, everyone, (everyone + 1) % ranks)
    return schedule
