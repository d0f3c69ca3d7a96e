"""The poster's items on all_gather in its order, what it prints of each, and how each is judged."""

from __future__ import annotations

from opticoll_papers.dragonfly.claims_readings import (
    BACKGROUND,
    BRIEF,
    BRIEF_ORDERS,
    GATHER_RULES,
    LEAST,
    NATURAL,
    ORDERS,
    PICTURE,
    SHUFFLED,
    SLIGHT,
    SLIGHTLY,
    SMART,
    both,
    under,
)
from opticoll_papers.judging import (
    AtLeast,
    AtMost,
    Between,
    Claim,
    Equal,
    NotDone,
    NotStated,
    Rounded,
    Used,
)

MPICH = "the number of ranks is no power of two, as 5256."
MPICH_SOURCE = (
    "Read off MPICH's source, not computed: with less than 81920 bytes in all "
    "(`MPIR_CVAR_ALLGATHER_SHORT_MSG_SIZE`) `MPIR_Allgather_intra` takes Bruck's algorithm, from "
    "there on the ring. With a power of two of ranks it takes recursive doubling below 512 KiB."
)
THREE_BLOCKS = {
    "pipelined": "A referee asks why 1 % is a win here and 8 % no significant difference of TREE, "
    "GLF and LLF. Less than 2 % is no win now; the trees are judged beside LIN's lead",
    "occupies_port": "A referee misses blocks of 4 KiB, which were simulated with pipelines alone. "
    "There TAR gains more at 4 KiB than at smaller blocks, so that the least gain, which is "
    "judged, is not expected there",
}
ONE_BLOCK = (
    "A referee notes that one block of 15 B decides, and that BRUCK loses with some small "
    "transfers on smaller networks. The poster's network is the one with 5256 terminals; there "
    "only blocks up to 15 B are less than 80 KiB together, and each is a part of one chunk"
)
RANDOM_BLOCKS = (
    "blocks that are 80 KiB or more together, on the networks on which they are simulated; only "
    "TAR knows where ranks are"
)

GATHER = "AllGather"
EVALUATION = "AllGather, Evaluation"
GATHERED = "AllGather, Conclusion"
NOWHERE = "Not stated by the poster"

ALGORITHMS = (
    Claim(
        id="ring.algorithm",
        where=GATHER,
        says="RING passes blocks around a ring.",
        unit="successors of a rank",
        judge=Between(1, 1, "a rank of a ring sends to its successor alone", good="used"),
    ),
    Claim(
        id="ring.mpich",
        where=GATHER,
        says="MPICH takes RING from 80 KiB.",
        printed=80,
        unit="KiB",
        judge=Equal(),
        reading=MPICH,
        remark=MPICH_SOURCE,
    ),
    Claim(
        id="bruck.algorithm",
        where=GATHER,
        says="BRUCK is Bruck's algorithm.",
        unit="extra steps",
        judge=Between(0, 0, "Bruck's algorithm takes log2 N steps, rounded up", good="used"),
    ),
    Claim(
        id="bruck.mpich",
        where=GATHER,
        says="MPICH takes BRUCK below 80 KiB.",
        printed=80,
        unit="KiB",
        judge=Equal(),
        reading=MPICH,
        remark=MPICH_SOURCE,
    ),
    Claim(
        id="tar.ring",
        where=GATHER,
        says="TAR first builds a smart ring.",
        unit="extra crossings",
        judge=Between(
            0, 0, "a ring that is smart about groups leaves each group once", good="used"
        ),
        remark="The poster does not say how the ring is built. In opticoll's it takes the groups "
        "in order, enters each where the link from the last one lands and leaves it where the link "
        "to the next one begins.",
    ),
    Claim(
        id="tar.data",
        where=GATHER,
        says="TAR then sends the data along it.",
        unit="successors of a rank",
        judge=Between(1, 1, "a rank of a ring sends to its successor alone", good="used"),
    ),
    Claim(
        id="tar.idea",
        where=GATHER,
        says="The idea of TAR is to minimise the use of global links.",
        unit="",
        judge=NotStated(
            "it does not say whether use is the number of links, their bytes or the time for which "
            "they are busy; the two rows below judge bytes"
        ),
    ),
    Claim(
        id="tar.global.least",
        where=GATHER,
        says="TAR minimises data on global links (among all algorithms).",
        unit="times the least",
        judge=AtMost(1 + SLIGHT / 100, LEAST),
        reading=SMART,
        remark="The least: each block comes to each other group once. The same yardstick as of "
        "llf.global.least.",
    ),
    Claim(
        id="tar.global.rings",
        where=GATHER,
        says="TAR minimises data on global links (among rings).",
        unit="times the least",
        judge=AtMost(1 + SLIGHT / 100, LEAST),
        reading=SMART,
        remark="The least of a ring: a link between groups for each group, with every block but "
        "one. The same yardstick as of llf.global.trees: the least among algorithms of its kind.",
    ),
)

NETWORK = (
    Claim(
        id="evaluation.simulator",
        where=EVALUATION,
        says="CODES on ROSS simulates events.",
        unit="",
        judge=NotDone(
            "CODES itself is no part of opticoll, whose own packet simulator takes its place; the "
            "page of the study compares both on the same workloads"
        ),
    ),
    *(
        Claim(
            id=f"network.{id}",
            where=EVALUATION,
            says=says,
            unit="",
            printed=printed,
            judge=Used(),
        )
        for id, says, printed in (
            ("terminals", "There are 5256 terminals.", 5256),
            ("groups", "They are in 73 groups.", 73),
            ("routers", "A group has 12 routers.", 12),
            ("terminals_per_router", "A router has 6 terminals.", 6),
        )
    ),
    *(
        Claim(
            id=f"network.{id}_rate",
            where=EVALUATION,
            says=f"{id.capitalize()} links have {printed} GiB/s.",
            unit="GiB/s",
            printed=printed,
            judge=Rounded(6, good="used"),
        )
        for id, printed in (("global", 4.7), ("local", 5.25), ("terminal", 5.25))
    ),
    Claim(
        id="settings.open",
        where=NOWHERE,
        says="Not an item of the poster: the settings that a simulation needs and it leaves open.",
        unit="",
        judge=NotStated("each value that is taken here stands below"),
        remark="A router has 6 global links, so that the 12 of a group reach each of the 72 other "
        "groups once; port i of router r leads to group r + 12 i, as in CODES. Rank i is on "
        "terminal i, routes are minimal. A router delays a chunk by 50 ns, as in CODES; a link "
        "takes the time of its bytes. Software takes no time; each microsecond of it would speak "
        "for algorithms of few messages, BRUCK and the trees. A packet has 512 B: in all_gather it "
        "is one chunk, in scatter it is two of 256 B, as in a configuration that CODES shipped. "
        "Only scatter has chunks of 512 B, too; there they move the ratios of the trees to LIN, "
        "and the rows scatter.twice say how far. A channel of local and terminal links has a "
        "buffer of 16 KiB, one of global links 32 KiB; scatter has six other sizes, too. Blocks of "
        "all_gather have 15 B to 64 KiB. Scatter runs on the network of all_gather, its root is "
        "terminal 0. As background traffic every terminal sends 2 KiB to a random one every 2 us, "
        "which is 18 % of its link. The smaller networks of this page are balanced dragonflies: "
        "9 groups of 4 routers with 2 terminals each (72), and 33 groups of 8 routers with 4 "
        "terminals each (1056).",
    ),
    Claim(
        id="settings.together",
        where=NOWHERE,
        says="Not an item of the poster: one set of settings under which all that it claims holds.",
        unit="claims",
        judge=NotStated(
            "it does not name its settings; both rules by which its simulator has charged the "
            "delay of a router are tried"
        ),
        remark="Shown: how many claims hold if routers are pipelines, how many if a router's delay "
        "occupies its port, and how many are judged under both. In the names of items RULE stands "
        "for pipelined or occupies_port.",
    ),
)

CONCLUSIONS = (
    Claim(
        id="all_gather.figure",
        where=EVALUATION,
        says="A figure shows times of RING, BRUCK and TAR.",
        unit="",
        judge=NotStated(f"{PICTURE}; the rows below judge what is concluded from it"),
    ),
    *(
        Claim(
            id=f"all_gather.tar.{rule}",
            where=GATHERED,
            says=under("TAR wins", BRIEF[rule]),
            unit="% less time",
            judge=AtLeast(SLIGHT, SLIGHTLY),
            reading=both("blocks that are 80 KiB or more together", NATURAL, GATHER_RULES[rule]),
            remark="Against the faster of RING and BRUCK at the block at which TAR gains least.",
            dispute=THREE_BLOCKS[rule],
        )
        for rule in GATHER_RULES
    ),
    Claim(
        id="all_gather.tar.flows",
        where=GATHERED,
        says=under("TAR wins", "blocks of 64 KiB by flows"),
        unit="% less time",
        judge=AtLeast(SLIGHT, SLIGHTLY),
        reading=both("blocks of 64 KiB; flows in place of packets", NATURAL),
        remark="Against the faster of RING and BRUCK.",
    ),
    Claim(
        id="all_gather.tar.shuffled",
        where=GATHERED,
        says=under("TAR wins", "RING and BRUCK with ranks in random order"),
        unit="% less time",
        judge=AtLeast(SLIGHT, SLIGHTLY),
        reading=both(
            RANDOM_BLOCKS,
            GATHER_RULES["pipelined"],
        ),
        remark="Against the faster of RING and BRUCK at the block at which TAR gains least.",
    ),
    Claim(
        id="all_gather.awareness",
        where=GATHERED,
        says="Awareness of the topology matters.",
        unit="% less time",
        judge=AtLeast(SLIGHT, SLIGHTLY),
        reading=both("blocks of 64 B", SHUFFLED, GATHER_RULES["pipelined"]),
        remark="TAR against RING, whose ring then knows nothing of the network.",
    ),
    *(
        Claim(
            id=f"all_gather.bruck.{order}.{rule}",
            where=GATHERED,
            says=under(
                "BRUCK is still better for small transfers", BRIEF_ORDERS[order], BRIEF[rule]
            ),
            unit="% less time",
            judge=AtLeast(SLIGHT, SLIGHTLY),
            reading=both(
                "small is below the 80 KiB of all blocks together below which MPICH takes BRUCK; "
                "the largest simulated block of them",
                ORDERS[order],
                GATHER_RULES[rule],
            ),
            remark="Against TAR.",
            dispute=ONE_BLOCK if (order, rule) == ("natural", "pipelined") else "",
        )
        for order in ORDERS
        for rule in GATHER_RULES
    ),
    *(
        Claim(
            id=f"all_gather.background.{rule}",
            where=GATHERED,
            says=under("Background traffic does not change the behaviour", BRIEF[rule]),
            unit="reversed pairs",
            judge=AtMost(
                0,
                "of no pair of algorithms is one faster by 1 % without and the other with "
                "background traffic, at any block",
            ),
            reading=both(
                "behaviour is which of two algorithms is the faster",
                BACKGROUND,
                NATURAL,
                GATHER_RULES[rule],
            ),
            dispute="A referee notes that the times change by unequal shares, which are shown. The "
            "poster does not say that shares are alike, and compares algorithms with each other",
        )
        for rule in GATHER_RULES
    ),
)

CLAIMS: tuple[Claim, ...] = (*ALGORITHMS, *NETWORK, *CONCLUSIONS)
"""Every item of the poster's part on all_gather."""
