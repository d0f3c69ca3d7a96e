"""The poster's items in its order, what it prints of each, and how each is judged."""

from __future__ import annotations

from opticoll.papers.dragonfly import claims_gather, claims_scatter
from opticoll.papers.dragonfly.claims_readings import MINIMAL, NATURAL, RULES, SLIGHT, both
from opticoll.papers.judging import AtLeast, AtMost, Between, Claim, NotDone

DISCUSSION = "Discussion"
ONGOING = "Ongoing work"
ANNOUNCED = "announced; nothing is claimed of it"
JOULES = (
    "The computed values are energies on links by a model of opticoll with assumed energies a bit."
)

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

DISCUSSED = (
    Claim(
        id="discussion.complex",
        where=DISCUSSION,
        says="It is complex to make all_gather aware of the hardware.",
        unit="",
        judge=NotDone("a judgement without a measure; the rows below judge its reasons"),
    ),
    Claim(
        id="discussion.data",
        where=DISCUSSION,
        says="All_gather sends a lot more data than scatter.",
        unit="times the bytes",
        judge=AtLeast(10, "a lot more is an order of magnitude"),
        remark="Bytes that terminals inject: RING against LIN.",
    ),
    Claim(
        id="discussion.contention",
        where=DISCUSSION,
        says="All_gather creates more contention than scatter.",
        unit="times the scatters",
        judge=AtLeast(1 + SLIGHT / 100, "the poster names no amount; 1 % is more"),
        reading=both(
            "contention is the time for which messages wait beyond what each takes alone in an "
            "empty network, summed over all messages; the all_gather with the least of it against "
            "the scatter with the most",
            "72 terminals, blocks of 1 KiB, routers are pipelines",
            NATURAL,
        ),
    ),
    *(
        Claim(
            id=f"discussion.slowest.{size}",
            where=DISCUSSION,
            says=f"The slowest link determines the time of a ring (blocks of {words}).",
            unit="of its extra time",
            judge=Between(
                0.9, 1.1, "the ring's time follows that of the link, but for a tenth at most"
            ),
            reading=both(
                "72 terminals; the slowest link and the others of its class are made half as fast",
                NATURAL,
                RULES["pipelined"],
            ),
            remark="By how much RING and TAR take longer, over how much longer the slowest link "
            "takes for its bytes.",
        )
        for size, words in (("1KiB", "1 KiB"), ("64KiB", "64 KiB"))
    ),
    Claim(
        id="discussion.path",
        where=DISCUSSION,
        says="Terminals transfer on the same path (TAR, RING).",
        unit="links with a part",
        judge=AtMost(0, "on one path each link carries all messages of a terminal or none"),
        reading=both(MINIMAL, NATURAL),
        remark="Links between routers whose number of messages is no whole number of terminals.",
    ),
    Claim(
        id="discussion.balance",
        where=DISCUSSION,
        says="There is no balance across buffers (TAR, RING).",
        unit="% of buffers unused",
        judge=Between(50, 100, "with balance most buffers would be used"),
        reading=both("blocks of 64 B", NATURAL, RULES["pipelined"]),
        remark="Of RING and TAR. Counted are the buffers between routers that minimal routes may "
        "use; unused are those that no chunk comes to.",
    ),
    Claim(
        id="ongoing.broadcast",
        where=ONGOING,
        says="Broadcast as a scatter and an all_gather.",
        unit="",
        judge=NotDone(ANNOUNCED),
        remark="opticoll has it: `--algorithm scatter_all_gather:scatter=glf,all_gather=tar`.",
    ),
    Claim(
        id="ongoing.reduce",
        where=ONGOING,
        says="Algorithms that compute, such as reduce.",
        unit="",
        judge=NotDone(ANNOUNCED),
    ),
    Claim(
        id="ongoing.energy.all_gather",
        where=ONGOING,
        says="How efficient algorithms of all_gather are in energy.",
        unit="mJ",
        judge=NotDone(ANNOUNCED),
        remark=f"{JOULES} RING, TAR and BRUCK, blocks of 64 B.",
    ),
    Claim(
        id="ongoing.energy.scatter",
        where=ONGOING,
        says="How efficient algorithms of scatter are in energy.",
        unit="mJ",
        judge=NotDone(ANNOUNCED),
        remark=f"{JOULES} LIN, TREE, GLF and LLF.",
    ),
)

CLAIMS: tuple[Claim, ...] = (
    *INTRODUCTION,
    *claims_gather.CLAIMS,
    *claims_scatter.CLAIMS,
    *DISCUSSED,
)
"""Every item of the poster."""
