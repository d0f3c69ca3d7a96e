"""OpTree's sends on fat trees, which the paper's discussion suggests, and other all_gathers."""

from __future__ import annotations

import opticoll
from opticoll import Fabric
from opticoll_papers.common import Results
from opticoll_papers.judging import Computed

RANKS = 256
TREES = {"full bisection": "down=16x16,up=1x16", "8 cables upwards per leaf": "down=16x16,up=1x8"}
CABLES = "rate=100Gb/s,latency=500ns"
SIZES = (1024, 64 * 1024, 4 * 1024**2)
OTHERS = (
    "ring",
    "ring_bidirectional",
    "neighbour_exchange",
    "recursive_doubling",
    "bruck",
    "direct",
)


def reproduce(results: Results) -> dict[str, Computed]:
    """Compares OpTree with other all_gathers on two fat trees; writes fat_tree.csv."""
    rows, worst, notes, violations = [], [], [], 0
    for name, shape in TREES.items():
        fabric = Fabric(f"fat_tree:{shape},{CABLES}")
        plan = opticoll.plan("all_gather", fabric, "optree:radices=4x4x4x4")
        violations += len(plan.verify())
        others = {other: opticoll.plan("all_gather", fabric, other) for other in OTHERS}
        ratios, each = [], []
        for size in SIZES:
            own = plan.simulate(size).time_ps / 1e12
            times = {
                other: plan_of.simulate(size).time_ps / 1e12 for other, plan_of in others.items()
            }
            fastest = min(times, key=lambda other: times[other])
            ratios.append(own / times[fastest])
            each.append(
                f"{opticoll.format_size(size)} {1e3 * own:.4g} ms ({fastest} "
                f"{1e3 * times[fastest]:.4g})"
            )
            rows += [
                {"fabric": fabric.spec, "algorithm": other, "size_bytes": size, "time_s": time}
                for other, time in {"optree": own, **times}.items()
            ]
        worst.append(max(ratios))
        notes.append(f"{name}: {', '.join(each)}")
    results.write("fat_tree", rows)
    return {
        "discussion.fat_tree": Computed(
            tuple(worst),
            f"Time of OpTree, fastest other in parentheses; {'; '.join(notes)}. The plans have "
            f"{violations} violations.",
        )
    }
