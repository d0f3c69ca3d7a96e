"""The poster's items in its order, what it prints of each, and how each is judged."""

from __future__ import annotations

from opticoll.papers.dragonfly.cases import SIGNIFICANT
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

SIGNIFICANCE = (
    "the poster calls differences significant and names no limit; order of ranks, size of chunks "
    "and its simulator's version change times by some percent, so that a tenth is the least to ask"
)
FEWER = "a tenth less at least, by the same reason"
TWICE = "twice, to one decimal of its share: a fifth of one times LIN's time either way"
STILL_TWICE = (
    "as without background traffic, twice; more is no objection, since the poster prints no rate "
    "of this traffic"
)
MAJOR = "a major factor moves the headline's twice by half at least"
NO_SLOWDOWN = "no slowdown is within a tenth of what the root's own link needs"

CUT = "chunks, buffers and routes of a configuration that CODES shipped in the poster's year"
RULES = {
    "pipelined": f"a router passes chunks on as a pipeline, as in CODES since October 2016; {CUT}.",
    "occupies_port": f"the delay of a router keeps its port busy, as in CODES until October 2016; "
    f"{CUT}.",
}
NATURAL = "ranks are on the terminals in order."
SHUFFLED = "ranks are on the terminals in random order, seed 1."
ORDERS = {"natural": NATURAL, "shuffled": SHUFFLED}

PICTURE = "the figure is a picture; neither its axes nor its values are printed as numbers"
MPICH = "a fact about MPICH, which opticoll does not contain"
HERE = "what is taken here stands on the page of the study"


def _and(*readings: str) -> str:
    """Several readings as one sentence."""
    return "; ".join(one.rstrip(".") for one in readings) + "."


GATHER = "AllGather"
EVALUATION = "AllGather, Evaluation"
GATHERED = "AllGather, Conclusion"
SCATTER = "Scatter"
SCATTERED = "Scatter, Conclusion"
BUFFERS = "Scatter, Major impact factor"
DISCUSSION = "Discussion"
ONGOING = "Ongoing work"

INTRODUCTION = (
    Claim(
        id="introduction.cost",
        where="New efficient communication algorithms",
        says="Networks of older shapes cost too much at scale; a dragonfly is a new shape.",
        unit="",
        judge=NotDone("a motivation without a number, and opticoll knows no prices"),
    ),
    Claim(
        id="introduction.room",
        where="New efficient communication algorithms",
        says="It leaves room for new efficient algorithms.",
        unit="",
        judge=NotDone("a motivation; the rows on TAR, LIN, GLF and LLF judge what came of it"),
    ),
)

GATHERS = (
    Claim(
        id="ring.algorithm",
        where=GATHER,
        says="RING passes blocks around a ring.",
        unit="ranks that a rank sends to",
        judge=Between(1, 1, "a rank of a ring sends to its successor alone", good="used"),
    ),
    Claim(
        id="ring.mpich",
        where=GATHER,
        says="MPICH takes RING from 80 KiB.",
        printed=80,
        unit="KiB of all blocks: the largest where BRUCK is faster than RING, the smallest where "
        "it is not",
        judge=NotDone(MPICH),
        remark="Beside it the blocks between which the faster of both changes here, ranks in "
        "natural order.",
    ),
    Claim(
        id="bruck.algorithm",
        where=GATHER,
        says="BRUCK is Bruck's algorithm.",
        unit="steps beyond log2 N, rounded up",
        judge=Between(0, 0, "Bruck's algorithm has so many", good="used"),
    ),
    Claim(
        id="bruck.mpich",
        where=GATHER,
        says="MPICH takes BRUCK below 80 KiB.",
        printed=80,
        unit="KiB of all blocks",
        judge=NotDone(f"{MPICH}; see ring.mpich"),
    ),
    Claim(
        id="tar.ring",
        where=GATHER,
        says="TAR first builds a smart ring.",
        unit="edges between groups beyond one out of each group",
        judge=Between(0, 0, "a ring that is smart about groups leaves each once", good="used"),
        reading="groups in order, each entered where the link from the last one lands and left "
        "where the link to the next one begins.",
    ),
    Claim(
        id="tar.data",
        where=GATHER,
        says="TAR then sends the data along it.",
        unit="ranks that a rank sends to",
        judge=Between(1, 1, "a rank of a ring sends to its successor alone", good="used"),
    ),
    Claim(
        id="tar.global.least",
        where=GATHER,
        says="TAR minimises data on global links.",
        unit="times the least that a ring through all groups needs",
        judge=AtMost(1, "the least there is"),
    ),
    Claim(
        id="tar.global.natural",
        where=GATHER,
        says="TAR puts less data on global links than RING.",
        unit="% less",
        judge=AtLeast(SIGNIFICANT, FEWER),
        reading=NATURAL,
        remark="The poster says that TAR minimises, not against what; RING is its other ring.",
    ),
    Claim(
        id="tar.global.shuffled",
        where=GATHER,
        says="TAR puts less data on global links than RING.",
        unit="% less",
        judge=AtLeast(SIGNIFICANT, FEWER),
        reading=SHUFFLED,
    ),
    Claim(
        id="evaluation.simulator",
        where=EVALUATION,
        says="CODES on ROSS simulates events.",
        unit="",
        judge=NotDone(
            "CODES itself is no part of opticoll, whose own packet simulator takes its place; the "
            "page of the study holds it against CODES's results"
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
            where=EVALUATION,
            says=says,
            unit="",
            judge=NotStated(f"the poster prints no {what}; {HERE}"),
        )
        for id, says, what in (
            ("cut", "Messages are cut into packets and chunks.", "size of packets or chunks"),
            ("buffers", "Routers have buffers.", "size of buffers"),
            ("routing", "Packets are routed.", "way of routing"),
            ("delays", "Routers and links have delays.", "delay of routers, links or software"),
            ("placement", "Ranks are on terminals.", "placement of ranks"),
            ("blocks", "Blocks of all_gather have sizes.", "size of blocks"),
            ("background", "Background traffic is uniform.", "rate of background traffic"),
        )
    ),
    Claim(
        id="all_gather.figure",
        where=EVALUATION,
        says="A figure shows times of RING, BRUCK and TAR.",
        unit="",
        judge=NotStated(f"{PICTURE}; the rows below judge what is concluded from it"),
    ),
    *(
        Claim(
            id=f"all_gather.tar.{rule}.{size}",
            where=GATHERED,
            says="TAR wins.",
            unit="% less time than the faster of RING and BRUCK",
            judge=AtLeast(SIGNIFICANT, SIGNIFICANCE),
            reading=_and(f"blocks of {size}", NATURAL, by, RULES[rule]),
        )
        for rule, size, by in (
            ("pipelined", "64B", "packets"),
            ("pipelined", "1KiB", "packets"),
            ("pipelined", "4KiB", "packets"),
            ("pipelined", "64KiB", "flows in place of packets"),
            ("occupies_port", "64B", "packets"),
            ("occupies_port", "1KiB", "packets"),
        )
    ),
    Claim(
        id="all_gather.awareness",
        where=GATHERED,
        says="Awareness of the topology matters.",
        unit="% less time of TAR than of a ring that does not know the network",
        judge=AtLeast(SIGNIFICANT, SIGNIFICANCE),
        reading=_and("blocks of 64B", SHUFFLED, RULES["pipelined"]),
    ),
    *(
        Claim(
            id=f"all_gather.bruck.{order}.{size}",
            where=GATHERED,
            says="BRUCK is still better for small transfers.",
            unit="% less time than TAR",
            judge=AtLeast(SIGNIFICANT, SIGNIFICANCE),
            reading=_and(f"blocks of {size}", ORDERS[order], RULES["pipelined"]),
        )
        for order, size in (
            ("natural", "16B"),
            ("natural", "64B"),
            ("shuffled", "16B"),
            ("shuffled", "64B"),
            ("shuffled", "1KiB"),
        )
    ),
    *(
        Claim(
            id=f"all_gather.background.{rule}.{size}",
            where=GATHERED,
            says="Background traffic does not change the behaviour.",
            unit="pairs of algorithms that change",
            judge=AtMost(
                0,
                "no pair goes from one of these to another: the first, the second takes "
                f"{SIGNIFICANT:g} % less time, neither",
            ),
            reading=_and(
                f"blocks of {size}; every terminal sends 2 KiB to a random one every 2 us",
                RULES[rule],
            ),
        )
        for rule, size in (
            ("pipelined", "64B"),
            ("pipelined", "1KiB"),
            ("pipelined", "4KiB"),
            ("occupies_port", "64B"),
        )
    ),
)

SCATTERS = (
    Claim(
        id="tree.algorithm",
        where=SCATTER,
        says="TREE is a binomial tree.",
        unit="steps beyond log2 N, rounded up",
        judge=Between(0, 0, "a binomial tree has so many", good="used"),
    ),
    Claim(
        id="glf.phases",
        where=SCATTER,
        says="GLF sends to groups, then to routers, then to terminals.",
        unit="terminals that send in another order",
        judge=Between(0, 0, "the three phases in order", good="used"),
    ),
    Claim(
        id="glf.first_phase",
        where=SCATTER,
        says="GLF uses global links in the first phase only.",
        unit="terminals that cross groups after data went within one",
        judge=AtMost(0, "only means none"),
    ),
    Claim(
        id="lin.algorithm",
        where=SCATTER,
        says="LIN sends to the terminals one by one.",
        unit="messages that others than the root send, and terminals sent to twice or never",
        judge=Between(0, 0, "one message from the root to each", good="used"),
    ),
    Claim(
        id="lin.links",
        where=SCATTER,
        says="LIN minimises the use of links.",
        unit="times the bytes on links of the next best algorithm",
        judge=AtMost(1 - SIGNIFICANT / 100, FEWER),
    ),
    Claim(
        id="llf.phases",
        where=SCATTER,
        says="LLF sends to routers of the root's group, then to groups, routers and terminals.",
        unit="terminals that send in another order",
        judge=Between(0, 0, "the four phases in order", good="used"),
    ),
    Claim(
        id="llf.global.least",
        where=SCATTER,
        says="LLF minimises data on global links.",
        unit="times the least: each block for another group once",
        judge=AtMost(1, "the least there is"),
        reading="the poster says that LLF uses TREE, so that a binomial tree serves the groups of "
        "a router.",
    ),
    Claim(
        id="llf.global.flat",
        where=SCATTER,
        says="LLF minimises data on global links.",
        unit="times the least: each block for another group once",
        judge=AtMost(1, "the least there is"),
        reading="each router sends straight to its groups, and only the other phases use TREE.",
    ),
    Claim(
        id="llf.global.trees",
        where=SCATTER,
        says="LLF minimises data on global links.",
        unit="times the bytes of the better of TREE and GLF",
        judge=AtMost(1 - SIGNIFICANT / 100, FEWER),
        reading="least among the three that use trees; the same binomial tree.",
    ),
    Claim(
        id="scatter.size",
        where="Scatter, LIN twice faster",
        says="Each terminal is sent 1 KiB.",
        unit="B",
        printed=1024,
        judge=Used(),
    ),
    Claim(
        id="scatter.figure",
        where="Scatter, LIN twice faster",
        says="A figure shows times of LIN, TREE, GLF and LLF.",
        unit="",
        judge=NotStated(f"{PICTURE}; the rows below judge what is concluded from it"),
    ),
    *(
        Claim(
            id=f"scatter.twice.{rule}.{name}",
            where="Scatter, LIN twice faster; Conclusion",
            says=f"LIN is twice as fast as {name}.",
            unit="times LIN's time",
            judge=Between(1.8, 2.2, TWICE),
            reading=_and("buffers of 16, 32 and 16 KiB", RULES[rule]),
        )
        for rule in RULES
        for name in ("TREE", "GLF", "LLF")
    ),
    *(
        Claim(
            id=f"scatter.twice.{rule}.large_buffers",
            where="Scatter, LIN twice faster; Conclusion",
            says="LIN is twice as fast as TREE, GLF and LLF.",
            unit="times LIN's time",
            judge=Between(1.8, 2.2, TWICE),
            reading=_and("buffers of 64, 128 and 64 KiB", RULES[rule]),
        )
        for rule in RULES
    ),
    Claim(
        id="scatter.background.figure",
        where="Scatter, background traffic",
        says="A figure shows them with uniform background traffic.",
        unit="",
        judge=NotStated(f"{PICTURE}; the rows below judge what it stands under"),
    ),
    *(
        Claim(
            id=f"scatter.background.{rule}",
            where="Scatter, background traffic",
            says="LIN is twice as fast with uniform background traffic, too.",
            unit="times LIN's time, the fastest of TREE, GLF and LLF",
            judge=AtLeast(1.8, STILL_TWICE),
            reading=_and("every terminal sends 2 KiB to a random one every 2 us", RULES[rule]),
        )
        for rule in RULES
    ),
    *(
        Claim(
            id=f"scatter.buffers.{rule}",
            where=BUFFERS,
            says="The size of buffers is the major factor.",
            unit="times the ratio of others to LIN, buffers that make it most against least",
            judge=AtLeast(1.5, MAJOR),
            reading=_and("buffers of 1, 2, 1 to 64, 128, 64 KiB", RULES[rule]),
        )
        for rule in RULES
    ),
    Claim(
        id="scatter.trees.data",
        where=BUFFERS,
        says="TREE, GLF and LLF transfer large amounts of data.",
        unit="times the bytes that terminals inject under LIN, the least of the three",
        judge=AtLeast(2, "large beside LIN's: more than rounding could make of as much again"),
    ),
    *(
        Claim(
            id=f"scatter.trees.fill.{rule}",
            where=BUFFERS,
            says="They fill buffers.",
            unit="buffers of routers that are full at some time, the least of the three",
            judge=AtLeast(1, "any"),
            reading=_and("buffers of 16, 32 and 16 KiB", RULES[rule]),
        )
        for rule in RULES
    ),
    *(
        Claim(
            id=f"scatter.trees.slowed.{rule}",
            where=BUFFERS,
            says="Full buffers slow them down.",
            unit="% of time that buffers of 64, 128, 64 KiB in place of 1, 2, 1 save the one that "
            "gains most",
            judge=AtLeast(SIGNIFICANT, SIGNIFICANCE),
            reading=RULES[rule],
        )
        for rule in RULES
    ),
    Claim(
        id="scatter.lin.message",
        where=BUFFERS,
        says="LIN transfers 1 KiB at a time.",
        unit="B of its largest message",
        printed=1024,
        judge=Used(),
    ),
    *(
        Claim(
            id=f"scatter.lin.full.{rule}",
            where=BUFFERS,
            says="LIN saturates no buffer.",
            unit="buffers of routers that are full at some time",
            judge=AtMost(0, "no buffer means none"),
            reading=_and("buffers of 16, 32 and 16 KiB", RULES[rule]),
        )
        for rule in RULES
    ),
    *(
        Claim(
            id=f"scatter.lin.slowdown.{rule}",
            where=BUFFERS,
            says="LIN is not slowed down.",
            unit="times what the root's link needs for all blocks",
            judge=AtMost(1 + SIGNIFICANT / 100, NO_SLOWDOWN),
            reading=_and("buffers of 16, 32 and 16 KiB", RULES[rule]),
        )
        for rule in RULES
    ),
    *(
        Claim(
            id=f"scatter.topology.{rule}",
            where=SCATTERED,
            says="Characteristics of the topology have an impact on performance.",
            unit="% between LIN's times with terminals in order and in random order",
            judge=AtLeast(SIGNIFICANT, SIGNIFICANCE),
            reading=RULES[rule],
        )
        for rule in RULES
    ),
    Claim(
        id="scatter.hardware",
        where=SCATTERED,
        says="Characteristics of the hardware have an impact on performance.",
        unit="% between TREE's times under both rules of a router's delay",
        judge=AtLeast(SIGNIFICANT, SIGNIFICANCE),
        reading=f"the delay of a router is the characteristic that is changed; {CUT}.",
    ),
    *(
        Claim(
            id=f"scatter.others.{rule}",
            where=SCATTERED,
            says="LLF, GLF and TREE do not differ significantly.",
            unit="% between the slowest and the fastest",
            judge=AtMost(SIGNIFICANT, SIGNIFICANCE),
            reading=RULES[rule],
        )
        for rule in RULES
    ),
)

DISCUSSED = (
    Claim(
        id="discussion.data",
        where=DISCUSSION,
        says="All_gather sends a lot more data than scatter.",
        unit="times the bytes that terminals inject: RING against LIN",
        judge=AtLeast(10, "a lot more is an order of magnitude"),
    ),
    *(
        Claim(
            id=f"discussion.contention.{name}",
            where=DISCUSSION,
            says=f"It creates more contention ({name}).",
            unit="us that ports wait for buffers, beyond the most of the scatters",
            judge=AtLeast(1, "any waiting that scatters do not have"),
            reading=_and("72 terminals, blocks of 1 KiB", NATURAL, RULES["pipelined"]),
        )
        for name in ("RING", "TAR", "BRUCK")
    ),
    *(
        Claim(
            id=f"discussion.slowest.{name}.{size}",
            where=DISCUSSION,
            says="The slowest link determines the time of a ring.",
            unit=f"times what {name}'s busiest link needs for its bytes",
            judge=Between(1, 1 + SIGNIFICANT / 100, "that link is busy but for a tenth at most"),
            reading=_and(f"72 terminals, blocks of {size}", NATURAL, RULES["pipelined"]),
        )
        for size in ("1KiB", "64KiB")
        for name in ("RING", "TAR")
    ),
    *(
        Claim(
            id=f"discussion.path.{name}",
            where=DISCUSSION,
            says=f"Terminals transfer on the same path ({name}).",
            unit="most routes that the messages of a terminal take",
            judge=Between(1, 1, "the same means one"),
            reading="minimal routes; a route is a source and a destination.",
        )
        for name in ("RING", "TAR")
    ),
    *(
        Claim(
            id=f"discussion.balance.{name}",
            where=DISCUSSION,
            says=f"There is no balance across buffers ({name}).",
            unit="% of the buffers between routers that minimal routes may use and that no chunk "
            "comes to",
            judge=AtLeast(50, "with balance most buffers would be used"),
            reading=_and("blocks of 64 B", NATURAL, RULES["pipelined"]),
        )
        for name in ("RING", "TAR")
    ),
    Claim(
        id="ongoing.broadcast",
        where=ONGOING,
        says="Broadcast as a scatter and an all_gather.",
        unit="",
        judge=NotDone("announced; nothing is claimed of it"),
        remark="opticoll has it: `--algorithm scatter_all_gather:scatter=glf,all_gather=tar`.",
    ),
    Claim(
        id="ongoing.reduce",
        where=ONGOING,
        says="Algorithms that compute, such as reduce.",
        unit="",
        judge=NotDone("announced; nothing is claimed of it"),
    ),
    Claim(
        id="ongoing.energy.all_gather",
        where=ONGOING,
        says="How efficient algorithms of all_gather are in energy.",
        unit="mJ on links by RING, TAR and BRUCK, blocks of 64 B",
        judge=NotStated("announced; the poster prints neither a model nor a result"),
        remark="Beside it what bytes and hops give with energies per bit that are assumed.",
    ),
    Claim(
        id="ongoing.energy.scatter",
        where=ONGOING,
        says="How efficient algorithms of scatter are in energy.",
        unit="mJ on links by LIN, TREE, GLF and LLF",
        judge=NotStated("announced; the poster prints neither a model nor a result"),
        remark="Beside it what bytes and hops give with energies per bit that are assumed.",
    ),
)

CLAIMS: tuple[Claim, ...] = (*INTRODUCTION, *GATHERS, *SCATTERS, *DISCUSSED)
"""Every item of the poster."""
