"""The poster's items on all_gather in its order, what it prints of each, and how each is judged."""

from __future__ import annotations

from opticoll.papers.dragonfly.claims_readings import (
    BACKGROUND,
    BRIEF,
    BRIEF_ORDERS,
    LEAST,
    NATURAL,
    ORDERS,
    PICTURE,
    RULES,
    SHUFFLED,
    SLIGHT,
    SLIGHTLY,
    SMART,
    both,
    under,
)
from opticoll.papers.judging import (
    AtLeast,
    AtMost,
    Between,
    Claim,
    NotDone,
    NotStated,
    Rounded,
    Used,
)

MPICH = "a fact about MPICH, which opticoll does not contain"

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
        judge=NotDone(MPICH),
        remark="The computed values are sizes of all blocks together, ranks in natural order: the "
        "largest simulated size at which BRUCK is faster than RING, and the smallest at which it "
        "is slower.",
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
        judge=NotDone(f"{MPICH}; see ring.mpich"),
    ),
    Claim(
        id="tar.ring",
        where=GATHER,
        says="TAR first builds a smart ring.",
        unit="extra crossings",
        judge=Between(
            0, 0, "a ring that is smart about groups leaves each group once", good="used"
        ),
        reading=SMART,
    ),
    Claim(
        id="tar.data",
        where=GATHER,
        says="TAR then sends the data along it.",
        unit="successors of a rank",
        judge=Between(1, 1, "a rank of a ring sends to its successor alone", good="used"),
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
    *(
        Claim(
            id=f"settings.{id}",
            where=NOWHERE,
            says=f"The poster does not say {what}.",
            unit="",
            judge=NotStated(f"taken here: {taken}"),
        )
        for id, what, taken in (
            (
                "global_links",
                "how many global links a router has",
                "6, with which 12 routers reach each of 72 other groups once",
            ),
            (
                "arrangement",
                "which router of a group has the link to which group",
                "that of CODES: port i of router r leads to group r + 12 i",
            ),
            (
                "cut",
                "into which packets and chunks messages are cut",
                "packets of 512 B, in chunks of 512 B for all_gather and of 256 B for scatter",
            ),
            ("routing", "how packets are routed", "minimal routes"),
            (
                "delays",
                "how long routers and links delay a chunk",
                "50 ns a router, as in CODES, and nothing but its bytes a link",
            ),
            (
                "software",
                "how much time software takes for a message",
                "none; each microsecond of it speaks for algorithms of few messages, BRUCK and the "
                "trees",
            ),
            ("placement", "which rank is on which terminal", "rank i on terminal i"),
            ("blocks", "how large blocks of all_gather are", "15 B to 64 KiB"),
        )
    ),
    Claim(
        id="settings.together",
        where=NOWHERE,
        says="The poster does not say under which one set of settings all that it claims holds.",
        unit="claims",
        judge=NotStated(
            "both rules by which its simulator has charged the delay of a router are tried"
        ),
        remark="Shown: how many claims hold if routers are pipelines, how many if a router's delay "
        "occupies its port, and how many are judged under both.",
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
            reading=both("blocks that are 80 KiB or more together", NATURAL, RULES[rule]),
            remark="Against the faster of RING and BRUCK at the block at which TAR gains least.",
        )
        for rule in RULES
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
            "blocks that are 80 KiB or more together; only TAR knows where ranks are",
            RULES["pipelined"],
        ),
        remark="Against the faster of RING and BRUCK at the block at which TAR gains least.",
    ),
    Claim(
        id="all_gather.awareness",
        where=GATHERED,
        says="Awareness of the topology matters.",
        unit="% less time",
        judge=AtLeast(SLIGHT, SLIGHTLY),
        reading=both("blocks of 64 B", SHUFFLED, RULES["pipelined"]),
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
                RULES[rule],
            ),
            remark="Against TAR.",
        )
        for order in ORDERS
        for rule in RULES
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
            reading=both(BACKGROUND, NATURAL, RULES[rule]),
        )
        for rule in RULES
    ),
)

CLAIMS: tuple[Claim, ...] = (*ALGORITHMS, *NETWORK, *CONCLUSIONS)
"""Every item of the poster's part on all_gather."""
