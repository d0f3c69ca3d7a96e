"""Workloads of SimAI: the layers of a training, with times and collectives, as AICB writes them.

    HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4
    1
    layer -1 1000 ALLREDUCE 4096 1000 NONE 0 1000 ALLREDUCE 8192 100

A line has the name of a layer, an unused number, then time in ns, collective and bytes of the
forward pass, of the gradients of inputs and of the gradients of weights, and the time of the update
of weights in ns. One iteration becomes a graph of nodes for each rank (`Workload.cc` of SimAI):

* Forward passes in the order of the file, then backward passes in the opposite order.
* A rank waits for the collectives of the forward pass and of the gradients of inputs. Collectives
  of gradients of weights run beside the backward passes of further layers, and end with the update.
* A collective is among the ranks of a tensor group (forward, inputs) or of a data group (weights).
  `_EP` and `_DP_EP` name the experts' group and the group of their replicas. Ranks of a tensor
  group are consecutive (`MockNcclGroup.cc`).
* Bytes are those of the whole vector. A block of an all_gather has bytes / ranks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from json import dumps
from typing import NamedTuple

from opticoll._core import Trace, TraceError, read_chakra, take_memory
from opticoll.formats.chakra_nodes import COLLECTIVES, KINDS, Node, Value, encoded

POLICIES = ("HYBRID_TRANSFORMER", "HYBRID_TRANSFORMER_FWD_IN_BCKWD")

MAX_RANKS = 2**16

KINDS_OF_COLLECTIVES = {
    "ALLREDUCE": "ALL_REDUCE",
    "ALLGATHER": "ALL_GATHER",
    "REDUCESCATTER": "REDUCE_SCATTER",
    "ALLTOALL": "ALL_TO_ALL",
}

PHASES = ("TP", "TP", "DP")
"""Group of a collective without ending: forward pass, gradients of inputs, of weights."""

BYTES_PER_NODE = 400
"""Bytes of memory of a node of a rank while the nodes are converted."""

NODES_PER_LAYER = 7
"""Maximum number of nodes of a layer on a rank: work and a collective for each of three parts, and
the update."""


class Part(NamedTuple):
    """Part of a layer: its time in ns, and its collective with the whole vector's bytes."""

    time_ns: int
    collective: str
    group: str
    size: int


class Layer(NamedTuple):
    """Layer: forward pass, gradients of inputs, gradients of weights, and time of the update."""

    parts: list[Part]
    update_ns: int


def groups_of(tensor: int, expert: int, ranks: int) -> dict[str, Callable[[int], list[int]]]:
    """Returns the functions from a rank to its group, by name of the kind of group.

    >>> groups = groups_of(tensor=2, expert=2, ranks=8)
    >>> {name: group(5) for name, group in groups.items()}
    {'TP': [4, 5], 'DP': [1, 3, 5, 7], 'EP': [5, 7], 'DP_EP': [1, 5]}
    """
    block = tensor * expert

    def tensor_group(rank: int) -> list[int]:
        start = rank - rank % tensor
        return list(range(start, start + tensor))

    def expert_group(rank: int) -> list[int]:
        start = rank - rank % block + rank % tensor
        return list(range(start, start + block, tensor))

    return {
        "TP": tensor_group,
        "DP": lambda rank: list(range(rank % tensor, ranks, tensor)),
        "EP": expert_group,
        "DP_EP": lambda rank: list(range(rank % block, ranks, block)),
    }


def read_trace(path: str | os.PathLike[str], content: bytes, _: int) -> Trace:
    """Reads a workload as the trace of one iteration on all its ranks.

    Raises
    ------
    TraceError
        The file is no such workload, or of a kind that is not read; the message names the line.
    MemoryLimitError
        The nodes of all ranks need more memory than the limit.
    """
    lines = [line.strip() for line in content.decode("utf-8", "replace").splitlines()]
    head, stated_count = [*lines, "", ""][:2]
    policy = head.partition(" ")[0]
    if policy not in POLICIES:
        known = " and ".join(POLICIES)
        raise TraceError(f"line 1: the loop `{policy}` is not read; {known} are")
    stated = {key: int(number) for key, number in re.findall(r"(\w+):\s*(\d{1,9})\b", head)}
    needed = ("model_parallel_NPU_group", "all_gpus")
    if missing := [key for key in needed if not stated.get(key)]:
        raise TraceError(f"line 1: `{missing[0]}: N` is missing; AICB of SimAI writes it")
    tensor, ranks, expert = stated[needed[0]], stated[needed[1]], stated.get("ep") or 1
    if ranks > MAX_RANKS or ranks % (tensor * expert):
        problem = f"is not a multiple of {tensor * expert} (tensor and experts), up to {MAX_RANKS}"
        raise TraceError(f"line 1: `all_gpus: {ranks}` {problem}")
    if stated.get("pp", 1) > 1:
        raise TraceError(
            f"line 1: `pp: {stated['pp']}`: the file does not state the messages between stages"
        )
    if stated.get("checkpoint_initiates"):
        raise TraceError("line 1: `checkpoint_initiates`: repeated forward passes are not read")
    numbered = [(line, text.split()) for line, text in enumerate(lines, 1) if text.strip()][2:]
    layers = [_layer(line, fields) for line, fields in numbered]
    if stated_count != str(len(layers)):
        raise TraceError(f"line 2: there are {len(layers)} layers, not `{stated_count}`")
    nodes = ranks * len(layers) * NODES_PER_LAYER
    take_memory(f"reading `{path}`", BYTES_PER_NODE * nodes)
    groups = groups_of(tensor, expert, ranks)
    return read_chakra([_nodes(layers, groups, rank) for rank in range(ranks)])


def _layer(line: int, fields: list[str]) -> Layer:
    if len(fields) != 12:
        raise TraceError(f"line {line}: there are {len(fields)} fields, and not the 12 of a layer")

    def whole(position: int) -> int:
        if not re.fullmatch("[0-9]{1,18}", fields[position]):
            raise TraceError(f"line {line}: `{fields[position]}` is not a whole number")
        return int(fields[position])

    parts = []
    for phase, first in zip(PHASES, (2, 5, 8), strict=True):
        kind, _, group = fields[first + 1].partition("_")
        is_known = kind in KINDS_OF_COLLECTIVES and group in ("", "EP", "DP_EP")
        if kind != "NONE" and not is_known:
            known = ", ".join(KINDS_OF_COLLECTIVES)
            raise TraceError(
                f"line {line}: the collective `{fields[first + 1]}` is not read; {known} and NONE "
                "are, and the endings _EP and _DP_EP"
            )
        collective = KINDS_OF_COLLECTIVES.get(kind, "")
        parts.append(Part(whole(first), collective, group or phase, whole(first + 2)))
    return Layer(parts, whole(11))


@dataclass
class _Rank:
    """Nodes of a rank under construction; `last` is the node for which the next one waits."""

    nodes: list[Node] = field(default_factory=list)
    last: tuple[int, ...] = ()

    def add(self, kind: str, **attributes: Value) -> tuple[int, ...]:
        number = len(self.nodes)
        node = Node(number, KINDS.index(kind), data=self.last, attributes=attributes)
        self.nodes.append(node)
        return (number,)


def _nodes(layers: list[Layer], groups: dict[str, Callable[[int], list[int]]], rank: int) -> bytes:
    """Returns the binary trace of a rank."""
    members = {name: group(rank) for name, group in groups.items()}
    names = {name: f"{name} {ranks[0]}" for name, ranks in members.items()}
    defined = [{"pg_name": names[name], "ranks": ranks} for name, ranks in members.items()]
    metadata = Node(0, KINDS.index("METADATA_NODE"), inputs=dumps(defined))
    made = _Rank([metadata])

    def add_part(part: Part) -> tuple[int, ...]:
        """Adds a part; returns the node of its collective, or of its computation."""
        made.last = made.add("COMP_NODE", duration_ns=part.time_ns)
        count = len(members[part.group])
        if not part.collective or not part.size or count == 1:
            return made.last
        size = part.size // count if part.collective == "ALL_GATHER" else part.size
        number = COLLECTIVES.index(part.collective)
        name = names[part.group]
        return made.add("COMM_COLL_NODE", comm_type=number, comm_size=size, pg_name=name)

    for layer in layers:
        made.last = add_part(layer.parts[0])
    for layer in reversed(layers):
        made.last = add_part(layer.parts[1])
        ended = add_part(layer.parts[2])
        computed, made.last = made.last, ended
        made.add("MEM_STORE_NODE", duration_ns=layer.update_ns)
        made.last = computed
    return encoded(made.nodes)
