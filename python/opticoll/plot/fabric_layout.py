"""Where the vertices of an electrical fabric are drawn: ranks first, then switches.

>>> from opticoll import Fabric
>>> from opticoll.plot.fabric_layout import places
>>> places(Fabric("torus:dims=2x2")).round(1).tolist()
[[0.0, 0.0], [1.0, 0.0], [0.0, -1.0], [1.0, -1.0]]
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from opticoll._core import Fabric
from opticoll.plot.output import PlotError

Places = NDArray[np.float64]
"""One row a vertex: x to the right, y upwards."""

MOST_VERTICES = 6000
_MOST_UNKNOWN = 400  # of custom fabrics: the distances between all pairs are needed


def places(fabric: Fabric) -> Places:
    """The places of all vertices, as the fabric's family is usually drawn.

    A crossbar is a star, a fat tree has levels, a dragonfly groups around a circle, a torus or
    mesh of up to three dimensions a grid; whatever else is known by its links only is laid out so
    that distances on paper are near those in links.

    Raises PlotError for too many vertices to be told apart.
    """
    ends = fabric.link_ends or []
    vertices = max([fabric.ranks, *(1 + max(pair) for pair in ends)])
    if vertices > MOST_VERTICES:
        raise PlotError(
            f"{vertices} ranks and switches are too many for one picture (at most {MOST_VERTICES})"
        )
    options = _options(fabric)
    match fabric.family:
        case "crossbar":
            return np.vstack([_circle(fabric.ranks), [[0.0, 0.0]]])
        case "fully_connected" | "electrical_ring":
            return _with_ranks(_circle(vertices - _apart(fabric, vertices)), fabric, vertices)
        case "fat_tree":
            return _tree(_numbers(options["down"]), _numbers(options["up"]))
        case "dragonfly":
            terminals = int(options["terminals_per_router"])
            return _dragonfly(terminals, int(options["routers_per_group"]), fabric.ranks)
        case "torus" | "mesh" if len(_numbers(options["dims"])) <= 3:
            dims = _numbers(options["dims"])
            if len(dims) == 1 and fabric.family == "torus":
                return _with_ranks(_circle(dims[0]), fabric, vertices)
            return _with_ranks(_grid(dims), fabric, vertices)
        case "ladder":
            return _with_ranks(_grid([int(options["rungs"]), 2]), fabric, vertices)
    if vertices > _MOST_UNKNOWN:
        raise PlotError(
            f"{vertices} ranks and switches of a {fabric.family} are too many to be laid out by "
            f"their links (at most {_MOST_UNKNOWN})"
        )
    return _by_distance(vertices, ends)


def wrapping(fabric: Fabric) -> NDArray[np.bool_]:
    """Which links lead around a torus that is drawn as a grid, from one side to the other."""
    ends = np.array(fabric.link_ends or [], dtype=np.int64).reshape(-1, 2)
    dims = _numbers(_options(fabric).get("dims", "1"))
    if fabric.family != "torus" or len(dims) not in (2, 3):
        return np.zeros(len(ends), dtype=np.bool_)
    nodes = int(np.prod(dims))
    first = int(ends.max()) + 1 - nodes
    between = (ends >= first).all(axis=1)
    around = np.zeros(len(ends), dtype=np.bool_)
    stride = 1
    for dim in dims:
        at = (ends - first) // stride % dim
        around |= between & (np.abs(at[:, 0] - at[:, 1]) > 1)
        stride *= dim
    return around


def _options(fabric: Fabric) -> dict[str, str]:
    parts = fabric.spec.partition(":")[2].split(",")
    return {key: value for key, _, value in (part.partition("=") for part in parts)}


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split("x")]


def _circle(count: int) -> Places:
    """Number 0 at the top, clockwise."""
    angles = np.pi / 2 - 2 * np.pi * np.arange(count) / max(count, 1)
    # Neighbours a fixed way apart, but never all on one point.
    radius = max(1.0, count / (2 * np.pi))
    return radius * np.column_stack([np.cos(angles), np.sin(angles)])


def _apart(fabric: Fabric, vertices: int) -> int:
    """Ranks that stand beside the nodes, rather than being the nodes."""
    return fabric.ranks if vertices > fabric.ranks else 0


def _with_ranks(nodes: Places, fabric: Fabric, vertices: int) -> Places:
    """Nodes, and where they are routers the ranks in a row below each."""
    if not _apart(fabric, vertices):
        return nodes
    each = fabric.ranks // len(nodes)
    shift = (np.arange(each) - (each - 1) / 2) * (0.6 / max(each, 2))
    beside = np.column_stack([shift, np.full(each, -0.34)])
    owner = _owners(fabric, vertices)
    place = np.zeros(len(nodes), dtype=np.int64)
    ranks = np.empty((fabric.ranks, 2))
    for rank, node in enumerate(owner):
        ranks[rank] = nodes[node] + beside[place[node] % each]
        place[node] += 1
    return np.vstack([ranks, nodes])


def _owners(fabric: Fabric, vertices: int) -> list[int]:
    """The router of each rank, counted from 0."""
    owner = [0] * fabric.ranks
    for source, destination in fabric.link_ends or []:
        rank, router = sorted((source, destination))
        if rank < fabric.ranks <= router < vertices:
            owner[rank] = router - fabric.ranks
    return owner


def _tree(down: Sequence[int], up: Sequence[int]) -> Places:
    """Levels above one another, each spread over the same width."""
    levels = range(len(down) + 1)
    counts = [int(np.prod(up[:level]) * np.prod(down[level:])) for level in levels]
    width = max(4.0, 0.34 * max(counts))
    height = 0.42 * width / len(down)
    return np.vstack(
        [
            np.column_stack([(np.arange(count) + 0.5) / count * width, np.full(count, y * height)])
            for y, count in enumerate(counts)
        ]
    )


def _dragonfly(terminals: int, routers: int, ranks: int) -> Places:
    """Groups around a circle; a group's routers around a smaller one, its ranks outside of them."""
    groups = ranks // (terminals * routers)
    inner = max(0.6, 0.16 * routers * min(terminals, 4) / 2)
    outer = max(2.2 * inner, groups * (inner + 0.75) / np.pi)
    at_router, at_rank = [], []
    for group in range(groups):
        turn = np.pi / 2 - 2 * np.pi * group / groups
        centre = outer * np.array([np.cos(turn), np.sin(turn)])
        for router in range(routers):
            angle = turn + 2 * np.pi * (router + 0.5) / routers
            at_router.append(centre + inner * np.array([np.cos(angle), np.sin(angle)]))
            for terminal in range(terminals):
                step = 2 * np.pi / routers / (terminals + 0.6)
                fan = angle + (terminal - (terminals - 1) / 2) * step
                far = inner + 0.42
                at_rank.append(centre + far * np.array([np.cos(fan), np.sin(fan)]))
    return np.array(at_rank + at_router)


def _grid(dims: Sequence[int]) -> Places:
    """Coordinate 0 to the right, 1 downwards, 2 into the paper."""
    dims = [*dims, 1, 1][:3]
    deep = np.array([0.36, 0.28])
    rows = []
    for z, y, x in product(range(dims[2]), range(dims[1]), range(dims[0])):
        rows.append(np.array([float(x), -float(y)]) * (1 if dims[2] == 1 else 1.6) + z * deep)
    return np.array(rows)


def _by_distance(vertices: int, ends: Sequence[tuple[int, int]]) -> Places:
    """Places whose distances are near those in links: stress majorization from a circle.

    Gansner, Koren and North, Graph Drawing by Stress Majorization, 2004: each round moves every
    vertex to the mean of where the others would have it, weighted by 1 / distance^2.
    """
    far = np.full((vertices, vertices), np.inf)
    np.fill_diagonal(far, 0)
    beside: list[set[int]] = [set() for _ in range(vertices)]
    for a, b in ends:
        beside[a].add(b)
        beside[b].add(a)
    for start in range(vertices):
        front = [start]
        for vertex in front:
            for other in sorted(beside[vertex]):
                if far[start, other] == np.inf:
                    far[start, other] = far[start, vertex] + 1
                    front.append(other)
    far[far == np.inf] = vertices
    at = _circle(vertices)
    np.fill_diagonal(far, 1)
    weight = far**-2
    np.fill_diagonal(weight, 0)
    total = weight.sum(axis=1)[:, None]
    for _ in range(300):
        apart = at[:, None, :] - at[None, :, :]
        length = np.sqrt((apart**2).sum(axis=2))
        scale = far / np.maximum(length, 1e-9)
        wanted = at[None, :, :] + apart * scale[:, :, None]
        at = (weight[:, :, None] * wanted).sum(axis=1) / np.maximum(total, 1e-12)
    return at
