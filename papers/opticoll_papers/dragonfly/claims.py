"""The poster's items in its order, what it prints of each, and how each is judged."""

from __future__ import annotations

from opticoll_papers.dragonfly import claims_gather, claims_scatter
from opticoll_papers.dragonfly.claims_readings import GATHER_RULES, MINIMAL, NATURAL, SLIGHT, both
from opticoll_papers.judging import AtLeast, AtMost, Between, Claim, NotDone, NotStated

DISCUSSION = "Discussion"
ONGOING = "Ongoing work"
ANNOUNCED = "announced; nothing is claimed of it"
NO_MODEL = "announced; the poster has no model of energy, no algorithm and no result"
JOULES = "The numbers are energies on links by a model of opticoll with assumed energies a bit."

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
    Claim(
        id="introduction.new",
        where="AllGather; Scatter",
        says="TAR, LIN, GLF and LLF are contributions of the poster.",
        unit="",
        judge=NotDone("that an algorithm is new is no number"),
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
        remark="Bytes that terminals inject: the all_gather with the fewest against the scatter "
        "with the most.",
    ),
    Claim(
        id="discussion.contention",
        where=DISCUSSION,
        says="All_gather creates more contention than scatter.",
        unit="times scatter's",
        judge=AtLeast(1 + SLIGHT / 100, "the poster names no amount; 1 % is more"),
        reading=both(
            "contention is the time for which messages wait beyond what each takes alone in an "
            "empty network, summed over all messages; the all_gather with the least of it against "
            "the scatter with the most",
            "72 terminals, blocks of 1 KiB",
            NATURAL,
            GATHER_RULES["pipelined"],
        ),
        dispute="Referees call this the harshest choice of algorithms, and its error as large as "
        "the times. The poster names no algorithms here. Where the error may reverse the order the "
        "row is undecided as chance; BRUCK's messages wait far longer than any scatter's",
    ),
    *(
        Claim(
            id=f"discussion.slowest.{size}",
            where=DISCUSSION,
            says=f"The slowest link determines the time of a ring (blocks of {words}).",
            unit="times the link's",
            judge=Between(
                0.9, 1.1, "the ring's time follows that of the link, but for a tenth at most"
            ),
            reading=both(
                "72 terminals; the slowest link and the others of its class are made half as fast",
                NATURAL,
                GATHER_RULES["pipelined"],
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
        unit="uneven links",
        judge=AtMost(0, "on one path each link carries all messages of a terminal or none"),
        reading=both(MINIMAL, NATURAL),
        remark="Each terminal sends the same number of messages. A link between routers is uneven "
        "if what it carries is no multiple of that number.",
    ),
    Claim(
        id="discussion.balance",
        where=DISCUSSION,
        says="There is no balance across buffers (TAR, RING).",
        unit="% of buffers unused",
        judge=Between(50, 100, "with balance most buffers would be used"),
        reading=both("blocks of 64 B", NATURAL, GATHER_RULES["pipelined"]),
        dispute="A referee notes that by its busiest buffer BRUCK is less balanced than RING and "
        "TAR. Both numbers are shown; the poster does not say that BRUCK is balanced",
        remark="Of RING and TAR. Counted are the buffers between routers that minimal routes may "
        "use; unused are those that no chunk comes to.",
    ),
    Claim(
        id="ongoing.broadcast",
        where=ONGOING,
        says="Broadcast as a scatter and an all_gather.",
        unit="steps",
        judge=NotStated("announced; the poster has no result on it"),
        remark="The number is that of opticoll's verified plan by GLF and TAR, `--algorithm "
        "scatter_all_gather:scatter=glf,all_gather=tar`.",
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
        judge=NotStated(NO_MODEL),
        remark=f"{JOULES} RING, TAR and BRUCK, blocks of 64 B.",
    ),
    Claim(
        id="ongoing.energy.scatter",
        where=ONGOING,
        says="How efficient algorithms of scatter are in energy.",
        unit="mJ",
        judge=NotStated(NO_MODEL),
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
