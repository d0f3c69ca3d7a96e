"""An all_gather of one's own: blocks travel in two interleaved rings, one each way.

    cd examples
    opticoll compare all_gather --fabric wdm_ring:ranks=16,wavelengths=4 \\
        --algorithms ring,skipping_ring:all_gather,skip=2

In each step every rank passes the block it got last to the rank `skip` places on, until the ranks
of its residue class have everything; then neighbours hand on what the other classes lack.
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
