"""Output of `nvidia-smi topo -m`: how each pair of a server's GPUs is joined.

GPUs become ranks; network interfaces are not read. The output states no rates:

* `NV18` stands for 18 NVLinks. `nvlink_rate` is the rate of one NVLink in each direction.
* `PIX`, `PXB`, `PHB`, `NODE` and `SYS` name the highest part of the PCI tree between two GPUs.
  `pci_rate` is the rate of every link of this tree. If NVLinks join all GPUs, the tree is left out.

If the NVLinks of a GPU to all others together are more than a GPU has, they lead to switches, and
all NVLink switches are one switch, as in NCCL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from opticoll._core import Fabric
from opticoll.formats.content import MAX_TEXT_BYTES, read_text
from opticoll.formats.network_graph import Graph, MisplacedError, bits_per_second, note, texts

MAX_NVLINKS = 18
"""Number of NVLinks of a GPU of the generations Hopper and Blackwell; earlier GPUs have fewer."""

LEVELS = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""Parts of the PCI tree from the bottom: one bridge, bridges, processor, NUMA node, system."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

Cable = tuple[str, str, int]
"""Both ends of a cable, and its rate in b/s."""

Pairs = dict[tuple[int, int], str]
"""Cells of the matrix above its diagonal."""


def read(
    path: Path, *, nvlink_rate: object = None, pci_rate: object = None, latency: object = None
) -> Fabric:
    """Reads the server in a file.

    Raises
    ------
    ConfigError
        The file is no such output, or a rate is missing; the message names the line.
    FileError
        The file cannot be read.
    """
    names, pairs = _matrix(read_text(path, "output of nvidia-smi", most=MAX_TEXT_BYTES))
    graph = Graph(ranks=names, file=path.name)
    graph.options = {} if latency is None else texts((), {"latency": latency}, ("latency",))
    nvlinks = {ends: int(cell[2:]) for ends, cell in pairs.items() if cell.startswith("NV")}
    parts = _joined(len(names), nvlinks)
    cables: list[Cable] = []
    if nvlinks:
        rate = _rate("nvlink_rate", nvlink_rate, "of one NVLink, such as 25GB/s")
        for part in parts:
            cables += _nvlink_cables(graph, part, nvlinks, rate)
    if len(parts) > 1:
        cables += _tree(graph, pairs, _rate("pci_rate", pci_rate, "of PCI, such as 24GB/s"))
    elif pci_rate is not None or any(cell in LEVELS for cell in pairs.values()):
        note(path.name, "NVLinks join all GPUs, so the links of PCI are left out")
    graph.number((), ())
    for start, end, bits in cables:
        graph.link((), start, end, "-", [f"{bits}b/s"])
    return graph.fabric()


def _matrix(text: str) -> tuple[list[str], Pairs]:
    """Returns the names of the GPUs, and the cells of their matrix."""
    columns: list[str] = []
    rows: dict[str, tuple[str, list[str]]] = {}
    for number, line in enumerate(_COLOUR.sub("", text).splitlines(), 1):
        words = line.replace("CPU Affinity", "CPU").split()
        if words and not columns and words[0] == "GPU0":
            columns = words[: words.index("CPU")] if "CPU" in words else words
        elif words and words[0] in columns:
            rows[words[0]] = (f"line {number}", words[1 : 1 + len(columns)])
    names = [name for name in columns if re.fullmatch("GPU[0-9]{1,4}", name)]
    pairs: Pairs = {}
    for number, name in enumerate(names):
        if name not in rows or len(rows[name][1]) < len(columns):
            raise MisplacedError((), f"the matrix has no complete row `{name}`")
        place, cells = rows[name]
        for other, cell in zip(names, (cells[columns.index(name)] for name in names), strict=True):
            low, high = sorted((number, names.index(other)))
            if low == high:
                continue
            if cell not in LEVELS and not re.fullmatch("NV[0-9]{1,3}", cell):
                known = f"NV18, {', '.join(LEVELS)}"
                raise MisplacedError((place,), f"`{cell}` is not known; known are {known}")
            if pairs.setdefault((low, high), cell) != cell:
                raise MisplacedError((place,), f"`{cell}` differs from the row `{other}`")
    if not names:
        raise MisplacedError((), "there is no matrix whose first column is `GPU0`")
    return names, pairs


def _rate(name: str, value: object, what: str) -> int:
    """Returns the rate that an option states, in b/s."""
    if value is None:
        raise MisplacedError((), f"the output states no rates; give `{name}`, the rate {what}")
    return bits_per_second(name, value)


def _joined(count: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Returns the parts into which pairs join the numbers below `count`."""
    part = {number: [number] for number in range(count)}
    for low, high in pairs:
        if part[low] is not part[high]:
            part[low] += part[high]
            part |= dict.fromkeys(part[high], part[low])
    return [sorted(numbers) for number, numbers in part.items() if min(numbers) == number]


def _nvlink_cables(
    graph: Graph, part: list[int], nvlinks: dict[tuple[int, int], int], rate: int
) -> list[Cable]:
    """Returns the cables of GPUs that NVLinks join, with each other or with a switch."""
    own = {ends: count for ends, count in nvlinks.items() if ends[0] in part}
    most = max(sum(n for ends, n in own.items() if gpu in ends) for gpu in part) if own else 0
    if most <= MAX_NVLINKS:
        return [(graph.ranks[a], graph.ranks[b], n * rate) for (a, b), n in own.items()]
    counts = set(own.values())
    if len(counts) > 1 or 2 * len(own) != len(part) * (len(part) - 1):
        problem = f"a GPU has {most} NVLinks to others, and not as many to each of them"
        raise MisplacedError((), problem)
    graph.switches.append(f"nvswitch {len(graph.switches)}")
    return [(graph.ranks[gpu], graph.switches[-1], counts.copy().pop() * rate) for gpu in part]


def _tree(graph: Graph, pairs: Pairs, rate: int) -> list[Cable]:
    """Returns the cables of the tree of PCI, with a switch where several parts meet."""
    heads: dict[tuple[int, ...], str] = {(gpu,): name for gpu, name in enumerate(graph.ranks)}
    cables = []
    for level, kind in enumerate(LEVELS):
        # NVLinks hide the parts of PCI between their GPUs; the system joins all GPUs.
        joined = [
            ends
            for ends, cell in pairs.items()
            if kind == LEVELS[-1] or cell in LEVELS[: level + 1]
        ]
        for part in _joined(len(graph.ranks), joined):
            below = [gpus for gpus in heads if gpus[0] in part]
            if len(below) > 1:
                name = f"{kind} {len(graph.switches)}"
                graph.switches.append(name)
                cables += [(heads.pop(gpus), name, rate) for gpus in below]
                heads[tuple(part)] = name
    return cables
