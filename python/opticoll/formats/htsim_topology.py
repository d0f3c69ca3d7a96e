"""Fat trees of htsim in two or three tiers (`FatTreeTopology::load` of csg-htsim).

The head has the numbers `Nodes`, `Tiers` and `Podsize`. Each `Tier` has `Downlink_speed_Gbps` and
`Downlink_Latency_ns` of its links downwards, `Radix_Down` and `Radix_Up` of its switches, and
optionally `Bundle` (number of parallel links downwards) and `Switch_Latency_ns`. Names are in upper
or lower case; `#` begins a comment. Queues are not read.

Nodes become ranks. A link towards a switch has the latency of the link and of the switch.
"""

from __future__ import annotations

from pathlib import Path

from opticoll._core import Fabric
from opticoll.formats.content import MAX_TEXT_BYTES, read_text
from opticoll.formats.network_graph import Graph, MisplacedError
from opticoll.names import nearest

MAX_NODES = 2**14
MAX_LINKS = 2**20
MAX_NUMBER = 10**9

HEAD = ("nodes", "tiers", "podsize")
NEEDED = ("downlink_speed_gbps", "downlink_latency_ns", "radix_down")
OPTIONAL = {"radix_up": 0, "bundle": 1, "switch_latency_ns": 0, "oversubscribed": 1}
UNREAD = ("queue_up", "queue_down")

NAMES = ("tor", "agg", "core")
"""Names of the switches of each tier."""


def read(path: Path) -> Fabric:
    """Reads a fabric from a file.

    Raises
    ------
    ConfigError
        The file is no such topology, or its numbers contradict each other; the message names the
        line or the field.
    FileError
        The file cannot be read.
    """
    head, tiers = _parsed(read_text(path, "topology of htsim", most=MAX_TEXT_BYTES))
    nodes, pod_size = head["nodes"], head["podsize"]
    if len(tiers) != head["tiers"] or len(tiers) not in (2, 3):
        raise MisplacedError(("Tiers",), f"there are {len(tiers)} tiers; htsim has 2 or 3")
    if nodes > MAX_NODES:
        raise MisplacedError(("Nodes",), f"there are at most {MAX_NODES} nodes")
    for number, tier in enumerate(tiers):
        above = tiers[number + 1]["bundle"] if number + 1 < len(tiers) else 1
        if tier["radix_down"] % tier["bundle"] or tier["radix_up"] % above:
            raise MisplacedError((f"Tier {number}",), "a radix must be a multiple of the bundle")
    pods = nodes // pod_size
    tors = pod_size // tiers[0]["radix_down"]
    aggs = tiers[0]["radix_up"] // tiers[1]["bundle"]
    counts = [nodes, tors * pods, aggs * pods]
    links = nodes * (1 + tiers[0]["radix_up"] + tiers[1]["radix_up"])
    if not all(tier["radix_up"] for tier in tiers[:-1]) or links > MAX_LINKS:
        raise MisplacedError(("Radix_Up",), f"it must be above 0, with at most {MAX_LINKS} links")
    # Number of switches below a switch of the next tier, and its radix.
    below = [
        (pods * pod_size, nodes, "Podsize"),
        (tors * tiers[0]["radix_down"], pod_size, "Tier 0"),
    ]
    below.append((tors * tiers[1]["bundle"], tiers[1]["radix_down"], "Tier 1"))
    if len(tiers) == 3:
        wide = tiers[1]["radix_up"] // tiers[2]["bundle"]
        counts.append(aggs * wide)
        below.append((pods * tiers[2]["bundle"], tiers[2]["radix_down"], "Tier 2"))
    elif pods > 1:
        raise MisplacedError(("Podsize",), "two tiers are one pod; write the number of nodes")
    for found, stated, field in below:
        if found != stated or not found:
            problem = f"the numbers of this tier give {found}, and not {stated}"
            raise MisplacedError((field,), problem)
    names = [[str(node) for node in range(nodes)]]
    names += [[f"{NAMES[t]} {i}" for i in range(count)] for t, count in enumerate(counts[1:])]
    graph = Graph(
        ranks=names[0], switches=[name for tier in names[1:] for name in tier], file=path.name
    )
    graph.number((), ())
    for node in range(nodes):
        _cables(graph, tiers, 0, names[0][node], names[1][node // tiers[0]["radix_down"]])
    for tor, name in enumerate(names[1]):
        for agg in range(aggs):
            _cables(graph, tiers, 1, name, names[2][tor // tors * aggs + agg])
    for agg, name in enumerate(names[2] if len(tiers) == 3 else ()):
        for up in range(counts[3] // aggs):
            _cables(graph, tiers, 2, name, names[3][agg % aggs + aggs * up])
    return graph.fabric()


def _cables(graph: Graph, tiers: list[dict[str, int]], tier: int, down: str, up: str) -> None:
    """Adds the cables of a bundle between a switch of a tier and a vertex below it."""
    own = tiers[tier]
    to_up = own["downlink_latency_ns"] + own["switch_latency_ns"]
    to_down = own["downlink_latency_ns"] + (tiers[tier - 1]["switch_latency_ns"] if tier else 0)
    rate = f"{own['downlink_speed_gbps']}Gb/s"
    for _ in range(own["bundle"]):
        place = (f"Tier {tier}",)
        if to_up == to_down:
            graph.link(place, down, up, "-", [rate, f"{to_up}ns"])
        else:
            graph.link(place, down, up, ">", [rate, f"{to_up}ns"])
            graph.link(place, up, down, ">", [rate, f"{to_down}ns"])


def _parsed(text: str) -> tuple[dict[str, int], list[dict[str, int]]]:
    """Returns the numbers of the head, and those of each tier."""
    head: dict[str, int] = {}
    tiers: dict[int, dict[str, int]] = {}
    fields = head
    known: tuple[str, ...] = (*HEAD, "tier")
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        place, name = (f"line {number}",), words[0].lower()
        if name not in known:
            raise MisplacedError(place, f"`{words[0]}` is not known{nearest(name, known)}")
        if len(words) != 2 or not words[1].isdecimal() or int(words[1]) > MAX_NUMBER:
            problem = f"`{words[0]}` has one whole number up to {MAX_NUMBER}"
            raise MisplacedError(place, problem)
        value = int(words[1])
        if name == "tier":
            fields, known = tiers.setdefault(value, {}), (*NEEDED, *OPTIONAL, *UNREAD, "tier")
        elif name in fields:
            raise MisplacedError(place, f"`{words[0]}` is stated twice")
        elif not value and name not in ("switch_latency_ns", *UNREAD):
            raise MisplacedError(place, f"`{words[0]}` is above 0")
        else:
            fields[name] = value
    for where, stated, needed in [
        ("head", head, HEAD),
        *((f"Tier {t}", tiers[t], NEEDED) for t in tiers),
    ]:
        for name in needed:
            if name not in stated:
                raise MisplacedError((where,), f"`{name}` is missing")
    if sorted(tiers) != list(range(len(tiers))):
        raise MisplacedError(("Tier",), f"tiers are 0, 1 and so on, not {sorted(tiers)}")
    return head, [OPTIONAL | tiers[tier] for tier in sorted(tiers)]
