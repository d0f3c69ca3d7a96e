"""The selection tables of NCCL, RCCL, NCCLX, Open MPI, MPICH, UCC and oneCCL.

Each dialect is a record: the library's names of collectives and algorithms, what the library counts
as the size, and the text of a table. An algorithm is listed only where the library sends the
messages of opticoll's plan. For Open MPI 5.0 and MPICH 5.0, tests compare the messages of a running
library with those of the plan. The entries of the other libraries follow their sources: NCCL and
RCCL of June 2026, torchcomms (NCCLX) and UCC of August 2026, oneCCL of March 2025.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from importlib.resources import files
from textwrap import wrap
from typing import Any

from opticoll.formats.selection_table import Algorithm, Call, Choice, Dialect, Place, Table

MAX_LINE_LENGTH = 200
"""Maximum length of a comment; NCCL and RCCL read characters after the 255th as another line."""

NO_END = 2**64 - 1
"""Largest number that NCCL and RCCL read, as the end of the last range."""


def _same(size: int, ranks: int) -> int:
    return size


def _all_blocks(size: int, ranks: int) -> int:
    return size * ranks


def _block(size: int, ranks: int) -> int:
    return size // ranks


def _no_bytes(size: int, ranks: int) -> int:
    return 0


def _power_of_two(place: Place) -> bool:
    return place.ranks & (place.ranks - 1) == 0


def _no_power_of_two(place: Place) -> bool:
    return not _power_of_two(place)


def _even(place: Place) -> bool:
    return place.ranks % 2 == 0


def _one_server(place: Place) -> bool:
    return place.servers < 2


def _no_servers(place: Place) -> bool:
    return place.servers < 0


# NCCL has a ring, or two trees, for each network interface; a single ring of several servers would
# leave the other interfaces idle. Its chains pipeline pieces, from the root or to the root.
_RINGS = (Algorithm("ring:channels=all", "ring"), Algorithm("ring", "ring", _one_server))
_TREES = (
    Algorithm("double_binary_tree:channels=all,segments=*", "tree"),
    Algorithm("double_binary_tree:segments=*", "tree", _one_server),
)
_CHAIN = Algorithm("chain:segments=*", "ring")
# The switches of NVLink add and multicast within a server. PAT needs a server for each
# GPU, as on fabrics whose ranks do not form servers.
_NVLS = Algorithm("nvls:segments=*", "nvls", _one_server)
_NVLS_TREE = Algorithm("nvls_tree:segments=*", "nvls_tree")
_PAT = Algorithm("pat", "pat", _no_servers)


def _call(
    collective: str, name: str, size: Callable[[int, int], int], *algorithms: Algorithm
) -> Call:
    return Call(collective, name, size, algorithms)


def _nccl_calls(*, nvlink: bool, per_rank: bool = False) -> tuple[Call, ...]:
    """Returns the calls of NCCL, with or without switches that add.

    NCCL counts the larger one of the buffers of a rank; NCCLX divides it by the ranks.
    """
    one, all_blocks = (_block, _same) if per_rank else (_same, _all_blocks)
    gathers = (*_RINGS, *((_NVLS, _PAT) if nvlink else ()))
    sums = (*_RINGS, *_TREES, *((_NVLS, _NVLS_TREE) if nvlink else ()))
    return (
        _call("all_gather", "allgather", all_blocks, *gathers),
        _call("reduce_scatter", "reducescatter", one, *gathers),
        _call("all_reduce", "allreduce", one, *sums),
        _call("broadcast", "broadcast", one, _CHAIN),
        _call("reduce", "reduce", one, _CHAIN),
    )


def _comments(table: Table, *first: str) -> list[str]:
    sentences = (*first, *table.remarks)
    return [f"# {line}" for text in sentences for line in wrap(text, MAX_LINE_LENGTH)]


def _nccl(table: Table, channels: int) -> str:
    lines = _comments(
        table,
        "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks",
        "Times are simulated, of a ring or two trees for each network interface of a server.",
    )
    for choice in table.choices:
        most = NO_END if choice.most is None else choice.most
        names = (choice.call, choice.least, most, choice.algorithm.theirs, choice.protocol)
        numbers = (channels, choice.place.servers, choice.place.ranks)
        lines.append(",".join(map(str, (*names, *numbers))))
    return "\n".join([*lines, ""])


def _ncclx_rule(choice: Choice) -> dict[str, dict[str, Any]]:
    """Returns a choice as a rule of NCCLX; without servers, each rank is a node."""
    ranks, nodes = choice.place.ranks, choice.place.servers
    nodes = ranks if nodes < 1 else nodes
    end = ")" if choice.most is None else f"{choice.most}]"
    return {
        "filter": {
            "collective": choice.call,
            "bytesPerRank": f"[{choice.least},{end}",
            "nNodes": nodes,
            "nLocalRanks": ranks // nodes,
        },
        "config": {"algorithm": choice.algorithm.theirs, "protocol": choice.protocol},
    }


def _ncclx(table: Table) -> str:
    header = "collective,bytesPerRank,algorithm,protocol,channels,nNodes,nLocalRanks"
    lines = _comments(table, header)
    for rule in map(_ncclx_rule, table.choices):
        limits, config = rule["filter"], rule["config"]
        names = (limits["collective"], limits["bytesPerRank"], *config.values())
        # A value of -1 leaves the number of channels to NCCLX.
        lines.append(",".join(map(str, (*names, -1, limits["nNodes"], limits["nLocalRanks"]))))
    return "\n".join([*lines, ""])


def _ncclx_json(table: Table) -> str:
    return _json({"rules": [_ncclx_rule(choice) for choice in table.choices]})


def _json(content: dict[str, Any]) -> str:
    return json.dumps(content, indent=1) + "\n"


_ROOTED = ("gather", "scatter")
_ROOT_KNOWS = "only the root knows the bytes by which the library selects"
_ONLY_ONE = "the library has one algorithm only"

_BRUCK = Algorithm("bruck", "bruck")
_RING = Algorithm("ring", "ring")
_DOUBLING = Algorithm("recursive_doubling", "recursive_doubling")
_SHIFTS = (
    Algorithm("pairwise:order=shift", "pairwise"),
    Algorithm("pairwise", "pairwise", _no_power_of_two),
)
# On other numbers of ranks, Open MPI and MPICH fold ranks in differently than opticoll.
_HALVINGS = tuple(
    Algorithm(name, "recursive_halving", _power_of_two)
    for name in ("recursive_halving", "recursive_doubling")
)

_OPEN_MPI = (
    _call(
        "all_gather",
        "allgather",
        _all_blocks,
        Algorithm("bruck", "bruck-k-fanout", settings=(("faninout", "2"),)),
        Algorithm("recursive_doubling", "recursive_doubling", _power_of_two),
        _RING,
        Algorithm("neighbour_exchange", "neighbor", _even),
    ),
    _call("reduce_scatter", "reduce_scatter", _same, *_HALVINGS, _RING),
    _call("reduce_scatter", "reduce_scatter_block", _same, *_HALVINGS),
    _call(
        "all_reduce",
        "allreduce",
        _same,
        _DOUBLING,
        _RING,
        Algorithm("halving_doubling", "rabenseifner", _power_of_two),
    ),
    _call(
        "broadcast",
        "bcast",
        _same,
        Algorithm("direct", "basic_linear"),
        Algorithm("chain", "pipeline", cut=True),
        Algorithm(
            "scatter_all_gather:all_gather=recursive_doubling", "scatter_allgather", _power_of_two
        ),
        Algorithm("scatter_all_gather", "scatter_allgather_ring"),
    ),
    _call(
        "reduce",
        "reduce",
        _same,
        Algorithm("linear", "linear"),
        Algorithm("chain", "pipeline", cut=True),
        Algorithm("binomial", "binomial"),
    ),
    _call(
        "all_to_all",
        "alltoall",
        _same,
        Algorithm("direct", "linear"),
        *_SHIFTS,
        Algorithm("bruck", "modified_bruck"),
    ),
    _call(
        "barrier",
        "barrier",
        _no_bytes,
        Algorithm("recursive_doubling", "recursive_doubling", _power_of_two),
        Algorithm("dissemination", "bruck"),
    ),
)

_OPEN_MPI_NUMBERS: dict[str, tuple[int, dict[str, int]]] = {
    "allgather": (0, {"bruck-k-fanout": 2, "recursive_doubling": 3, "ring": 4, "neighbor": 5}),
    "allreduce": (2, {"recursive_doubling": 3, "ring": 4, "rabenseifner": 6}),
    "alltoall": (3, {"linear": 1, "pairwise": 2, "modified_bruck": 3}),
    "barrier": (6, {"recursive_doubling": 3, "bruck": 4}),
    "bcast": (
        7,
        {"basic_linear": 1, "pipeline": 3, "scatter_allgather": 8, "scatter_allgather_ring": 9},
    ),
    "reduce": (11, {"linear": 1, "pipeline": 3, "binomial": 5}),
    "reduce_scatter": (12, {"recursive_halving": 2, "ring": 3}),
    "reduce_scatter_block": (13, {"recursive_halving": 3}),
}
"""Numbers of Open MPI's collectives and of their algorithms, by name."""


def _open_mpi(table: Table) -> str:
    """Returns the rules that Open MPI 6 reads: JSON, of which the first rule that matches holds."""
    collectives = {
        call: [
            {
                "comm_size_min": ranks,
                "comm_size_max": ranks,
                "rules": [_open_mpi_rule(choice) for choice in choices],
            }
            for ranks, choices in of_ranks.items()
        ]
        for call, of_ranks in table.by_call().items()
    }
    return _json({"rule_file_version": 3, "module": "tuned", "collectives": collectives})


def _open_mpi_rule(choice: Choice) -> dict[str, Any]:
    end = {} if choice.most is None else {"msg_size_max": choice.most}
    settings = {name: int(value) for name, value in choice.algorithm.settings}
    piece = {"seg_size": choice.piece} if choice.algorithm.cut else {}
    return {
        "msg_size_min": choice.least,
        **end,
        "alg": choice.algorithm.theirs,
        **settings,
        **piece,
    }


def _open_mpi_rules(table: Table) -> str:
    """Returns the rules that Open MPI 5 reads.

    A rule holds from its number of ranks, or of bytes, up to the next rule. Algorithm 0 leaves the
    choice to Open MPI. The rules of 0 ranks also hold for all numbers below the next rule.
    """
    calls = table.by_call()
    lines = [*_comments(table, "For Open MPI 5."), f"{len(calls)} # collectives"]
    nothing = ["1 # range of sizes", "0 0 0 0"]
    for call, of_ranks in calls.items():
        number, algorithms = _OPEN_MPI_NUMBERS[call]
        rules: dict[int, list[str]] = {0: nothing}
        for ranks, choices in of_ranks.items():
            rules[ranks] = [f"{len(choices)} # ranges of sizes"]
            for choice in choices:
                name = choice.algorithm.theirs
                rules[ranks] += [f"{choice.least} {algorithms[name]} 0 {choice.piece} # {name}"]
            rules[ranks + 1] = nothing
        lines += [f"{number} # {call}", f"{len(rules)} # numbers of ranks"]
        for ranks, own in rules.items():
            lines += [f"{ranks} # ranks", *own]
    return "\n".join([*lines, ""])


_TWO = (("k", "2"),)
_MPICH_CHAIN = (
    ("tree_type", "kary"),
    ("k", "1"),
    ("is_non_blocking", "1"),
    ("recv_pre_posted", "0"),
)
_MPICH_BLOCKS = (*_SHIFTS, *_HALVINGS)

_MPICH = (
    _call(
        "all_gather",
        "allgather",
        _all_blocks,
        Algorithm("bruck", "brucks"),
        Algorithm("recursive_doubling", "recursive_doubling", _power_of_two),
        _RING,
    ),
    _call("reduce_scatter", "reduce_scatter", _same, *_MPICH_BLOCKS),
    _call("reduce_scatter", "reduce_scatter_block", _same, *_MPICH_BLOCKS),
    _call(
        "all_reduce",
        "allreduce",
        _same,
        _DOUBLING,
        _RING,
        Algorithm("halving_doubling", "reduce_scatter_allgather"),
    ),
    _call(
        "broadcast",
        "bcast",
        _same,
        Algorithm("binomial", "binomial"),
        Algorithm("chain", "pipelined_tree", settings=_MPICH_CHAIN, cut=True),
        Algorithm(
            "scatter_all_gather:all_gather=recursive_doubling",
            "scatter_recursive_doubling_allgather",
            _power_of_two,
        ),
        Algorithm("scatter_all_gather", "scatter_ring_allgather"),
    ),
    _call("reduce", "reduce", _same, Algorithm("binomial", "binomial")),
    _call(
        "all_to_all",
        "alltoall",
        _block,
        Algorithm("direct", "scattered"),
        Algorithm("bruck", "brucks"),
        Algorithm("pairwise", "pairwise"),
        Algorithm("pairwise:order=xor", "pairwise", _power_of_two),
        Algorithm("pairwise:order=shift", "pairwise", _no_power_of_two),
    ),
    _call(
        "barrier",
        "barrier",
        _no_bytes,
        Algorithm("dissemination", "k_dissemination", settings=_TWO),
    ),
)

_MPICH_TOTALS = ("allgather", "reduce_scatter", "reduce_scatter_block")
"""Calls for which MPICH tests the bytes of all blocks; for the others, those of a rank."""


def _mpich(table: Table) -> str:
    """Returns MPICH's own choices, with those of the table on its numbers of ranks.

    MPICH stops if its file has no choice for a call, a number of ranks or an operation.
    """
    tree = mpich_choices()
    for call, of_ranks in table.by_call().items():
        own = tree[f"collective={call}"]
        before = own["comm_type=intra"]
        sizes: dict[str, Any] = {}
        for ranks, choices in of_ranks.items():
            sizes[f"comm_size<{ranks}"] = before
            sizes[f"comm_size<={ranks}"] = _mpich_choices(call, choices)
        own["comm_type=intra"] = {**sizes, "comm_size=any": before}
    return _json(tree)


def mpich_choices() -> dict[str, Any]:
    """Returns the choices of MPICH without a file, as the tree that its file of choices has."""
    text = files("opticoll.formats").joinpath("data/mpich_choices.txt").read_text("utf-8")
    tree: dict[str, Any] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        place, _, algorithm = line.partition(" -> ")
        (call, *conditions), (name, *settings) = place.split(), algorithm.split()
        node = tree.setdefault(f"collective={call}", {})
        for condition in conditions:
            kind = "comm_type=" if condition in ("intra", "inter") else ""
            node = node.setdefault(f"{kind}{condition}", {})
        node[f"algorithm=MPIR_{call.capitalize()}_{name}"] = {one: {} for one in settings}
    return tree


def _mpich_choices(call: str, choices: list[Choice]) -> dict[str, Any]:
    """Returns the choices of a call on a number of ranks."""
    measure = "total_msg_size" if call in _MPICH_TOTALS else "avg_msg_size"
    if len(choices) == 1:
        return _mpich_algorithm(call, choices[0])
    return {
        f"{measure}=any" if choice.most is None else f"{measure}<={choice.most}": _mpich_algorithm(
            call, choice
        )
        for choice in choices
    }


def _mpich_algorithm(call: str, choice: Choice) -> dict[str, Any]:
    """Returns an algorithm, and the algorithm for calls on which MPICH cannot run the first one."""
    algorithm = choice.algorithm
    piece = (("chunk_size", str(choice.piece)),) if algorithm.cut else ()
    settings: dict[str, Any] = {
        f"{name}={value}": {} for name, value in (*algorithm.settings, *piece)
    }
    start = f"algorithm=MPIR_{call.capitalize()}_intra_"
    chosen = {start + algorithm.theirs: settings}
    doubling: dict[str, Any] = {start + "recursive_doubling": {}}
    if call == "alltoall":
        in_place: dict[str, Any] = {start + "pairwise_sendrecv_replace": {}}
        return {"is_sendbuf_inplace=yes": in_place, "is_sendbuf_inplace=no": chosen}
    if algorithm.theirs == "reduce_scatter_allgather":
        parts = {"count<pow2": doubling, "count=any": chosen}
        return {"is_op_built_in=yes": parts, "is_op_built_in=no": doubling}
    if algorithm.theirs in ("pairwise", "recursive_halving") or (call, algorithm.theirs) == (
        "allreduce",
        "ring",
    ):
        return {"is_commutative=yes": chosen, "is_commutative=no": doubling}
    return chosen


def _radix_two(call: str) -> tuple[tuple[str, str], ...]:
    return ((f"UCC_TL_UCP_{call}_KN_RADIX", "2"),)


# On several nodes, UCC would order the ranks of these algorithms by node (allgather_ring.c,
# allreduce_knomial.c and reduce_scatter_ring.c in src/components/tl/ucp).
_IN_ORDER = (("UCC_TL_UCP_RANKS_REORDERING", "n"),)
_ONE_WAY = (("UCC_TL_UCP_REDUCE_SCATTER_RING_BIDIRECTIONAL", "n"), *_IN_ORDER)
_AT_ONCE = ("direct:order=at_once", "one_stage")

_UCC = (
    _call(
        "all_gather",
        "allgather",
        _all_blocks,
        Algorithm("recursive_doubling", "knomial", _power_of_two, _radix_two("ALLGATHER")),
        Algorithm("ring", "ring", settings=_IN_ORDER),
        Algorithm("neighbour_exchange", "neighbor", _even),
        _BRUCK,
        *(Algorithm(name, "linear") for name in _AT_ONCE),
    ),
    _call(
        "all_reduce",
        "allreduce",
        _same,
        Algorithm(
            "recursive_doubling", "knomial", _power_of_two, (*_radix_two("ALLREDUCE"), *_IN_ORDER)
        ),
        Algorithm("ring", "ring", settings=_ONE_WAY),
    ),
    _call(
        "broadcast", "bcast", _same, Algorithm("binomial", "knomial", settings=_radix_two("BCAST"))
    ),
    _call(
        "reduce", "reduce", _same, Algorithm("binomial", "knomial", settings=_radix_two("REDUCE"))
    ),
    _call(
        "all_to_all",
        "alltoall",
        _same,
        *(
            Algorithm(
                algorithm.ours,
                "pairwise",
                algorithm.on,
                (("UCC_TL_UCP_ALLTOALL_PAIRWISE_NUM_POSTS", "1"),),
            )
            for algorithm in _SHIFTS
        ),
        _BRUCK,
    ),
)


def _exports(table: Table, variables: dict[str, str]) -> str:
    lines = [f"export {name}='{value}'" for name, value in variables.items()]
    return "\n".join([*_comments(table, "For `source` in a shell."), *lines, ""])


def _ucc(table: Table) -> str:
    """Returns UCC's variables; ranges touch at their ends, as in UCC's own choices."""
    tokens: list[str] = []
    settings: dict[str, str] = {}
    for choice in table.choices:
        end = "inf" if choice.most is None else choice.most + 1
        ranks = choice.place.ranks
        team = f"[{ranks}-{ranks}]"
        sizes = f"{choice.least}-{end}"
        tokens.append(f"{choice.call}:{sizes}:host:{team}:inf:@{choice.algorithm.theirs}")
        settings |= dict(choice.algorithm.settings)
    return _exports(table, {"UCC_TL_UCP_TUNE": "#".join(tokens), **settings})


# Of an all_gather, oneCCL counts the bytes of a rank's block, also where blocks differ (their mean:
# src/coll/selection/selector_allgatherv.cpp). Calls with one buffer and with two, and calls with
# equal and with unequal blocks, have variables of their own (src/common/env/vars.hpp).
_ONECCL_GATHERS = (_RING, *(Algorithm(name, "naive") for name in _AT_ONCE))
_ONECCL_BROADCASTS = (Algorithm("direct", "naive"), Algorithm("scatter_all_gather", "ring"))

_ONECCL = (
    _call("all_gather", "ALLGATHER", _same, *_ONECCL_GATHERS),
    _call("all_gather", "ALLGATHERV", _same, *_ONECCL_GATHERS),
    _call(
        "reduce_scatter",
        "REDUCE_SCATTER",
        _block,
        _RING,
        *(Algorithm(shift.ours, "naive", shift.on) for shift in _SHIFTS),
    ),
    _call(
        "all_reduce",
        "ALLREDUCE",
        _same,
        _DOUBLING,
        _RING,
        Algorithm("halving_doubling", "rabenseifner"),
    ),
    _call("broadcast", "BCAST", _same, *_ONECCL_BROADCASTS),
    _call("broadcast", "BROADCAST", _same, *_ONECCL_BROADCASTS),
    _call("reduce", "REDUCE", _same, Algorithm("binomial", "tree")),
)


def _oneccl(table: Table) -> str:
    variables = {
        f"CCL_{call}": ";".join(_oneccl_blocks(choices))
        for call, of_ranks in table.by_call().items()
        for choices in of_ranks.values()
    }
    return _exports(table, variables)


def _oneccl_blocks(choices: list[Choice]) -> Iterable[str]:
    for choice in choices:
        end = "max" if choice.most is None else choice.most
        yield f"{choice.algorithm.theirs}:{choice.least}-{end}"


DIALECTS = {
    "nccl": Dialect("NCCL", _nccl_calls(nvlink=True), partial(_nccl, channels=0), protocols=True),
    # RCCL refuses 0, and NCCL's plug-in takes one channel for -1: each leaves the number so.
    "rccl": Dialect("RCCL", _nccl_calls(nvlink=False), partial(_nccl, channels=-1), protocols=True),
    "ncclx": Dialect("NCCLX", _nccl_calls(nvlink=True, per_rank=True), _ncclx, protocols=True),
    "ncclx_json": Dialect(
        "NCCLX", _nccl_calls(nvlink=True, per_rank=True), _ncclx_json, protocols=True
    ),
    "open_mpi": Dialect("Open MPI", _OPEN_MPI, _open_mpi, dict.fromkeys(_ROOTED, _ROOT_KNOWS)),
    "open_mpi_rules": Dialect(
        "Open MPI", _OPEN_MPI, _open_mpi_rules, dict.fromkeys(_ROOTED, _ROOT_KNOWS)
    ),
    # MPICH reads sizes by atoi.
    "mpich": Dialect("MPICH", _MPICH, _mpich, dict.fromkeys(_ROOTED, _ONLY_ONE), largest=2**31 - 1),
    "ucc": Dialect("UCC", _UCC, _ucc),
    "oneccl": Dialect("oneCCL", _ONECCL, _oneccl, blind=True),
}
"""All dialects, by name."""
