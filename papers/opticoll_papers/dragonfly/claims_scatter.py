"""The poster's items on scatter in its order, what it prints of each, and how each is judged."""

from __future__ import annotations

from opticoll_papers.dragonfly.claims_readings import (
    BACKGROUND,
    BRIEF,
    BUFFERS_16,
    BUFFERS_64,
    INSIGNIFICANT,
    LEAST,
    MINIMAL,
    PICTURE,
    SCATTER_RULES,
    SIGNIFICANT,
    SLIGHT,
    SLIGHTLY,
    TWICE,
    both,
    under,
)
from opticoll_papers.judging import AtLeast, AtMost, Between, Claim, NotStated, Used

SCATTER = "Scatter"
HEADLINE = "Scatter, LIN twice faster"
BESIDE = "Scatter, background traffic"
BUFFERS = "Scatter, Major impact factor"
SCATTERED = "Scatter, Conclusion"

TREES = ("TREE", "GLF", "LLF")
NO_SLOWDOWN = "no slowdown is within a tenth of what the root's own link needs"
LARGE = "an order of magnitude"
MORE_THAN_TWICE = (
    "Referees call more than twice no objection here, since the poster prints no rate of this "
    "traffic, and expect that a somewhat lower one meets the limits. The limits stay those of the "
    "headline: at this rate LIN leads by more, without traffic by less. No lower rate was "
    "simulated, and none is chosen after the result"
)
RANGES = {
    "pipelined": "",
    "occupies_port": "Referees objected to a range of buffers from 1 to 64 KiB beside rates that "
    "change by a factor of two. One step of the buffers is a factor of two now. Over the whole "
    "range buffers move the ratio as far as the rule of the delay does, but upwards: the poster's "
    "reason would need small buffers to make LIN's lead, and they take it away. The measure was "
    "changed with the results known; by the whole range the claim would hold, by 1.03 times",
}
ONE_FULL = (
    "A referee asks for more than one full buffer. The yardstick is that of LIN, of which the "
    "poster says that none is saturated; the numbers are shown"
)
LEADS = (
    "The time of the slowest less that of the fastest, over the mean of the three less LIN's time. "
    "The limit was a tenth of the time until a referee objected that this reading may lack the "
    "factor of two; it was changed with the results known."
)
USING_TREE = "each phase of LLF is a binomial tree, also that from a router to its groups."
SIZES = {"": BUFFERS_16, ".large_buffers": BUFFERS_64}
BRIEF_SIZES = {"": "buffers of 16 KiB", ".large_buffers": "buffers of 64 KiB"}

ALGORITHMS = (
    Claim(
        id="tree.algorithm",
        where=SCATTER,
        says="TREE is a binomial tree.",
        unit="extra steps",
        judge=Between(0, 0, "a binomial tree takes log2 N steps, rounded up", good="used"),
    ),
    Claim(
        id="glf.phases",
        where=SCATTER,
        says="GLF sends to groups, then to routers, then to terminals.",
        unit="terminals out of order",
        judge=Between(0, 0, "the three phases in order", good="used"),
    ),
    Claim(
        id="glf.tree",
        where=SCATTER,
        says="GLF uses TREE in each phase.",
        unit="extra steps",
        judge=Between(
            0, 0, "binomial trees over groups, routers and terminals one after another", good="used"
        ),
    ),
    Claim(
        id="glf.first_phase",
        where=SCATTER,
        says="GLF uses global links in the first phase only.",
        unit="terminals out of order",
        judge=Between(0, 0, "none sends to another group after data went within one", good="used"),
    ),
    Claim(
        id="lin.algorithm",
        where=SCATTER,
        says="LIN sends to the terminals one by one.",
        unit="wrong messages",
        judge=Between(0, 0, "one message from the root to each terminal", good="used"),
    ),
    Claim(
        id="lin.links",
        where=SCATTER,
        says="LIN minimises the use of links.",
        unit="times the least",
        judge=AtMost(1 + SLIGHT / 100, LEAST),
        reading=MINIMAL,
        remark="The least is counted from the network, not from LIN's messages: the links of a "
        "minimal route from the root to each terminal.",
        dispute="A referee calls that LIN's own routes and asks for a claim that holds. Minimal "
        "routes are a reading, since the poster names none; within it no algorithm has fewer, and "
        "one that relays has more.",
    ),
    Claim(
        id="llf.phases",
        where=SCATTER,
        says="LLF sends to routers of the root's group, then to groups, routers and terminals.",
        unit="terminals out of order",
        judge=Between(0, 0, "the four phases in order", good="used"),
    ),
    Claim(
        id="llf.tree",
        where=SCATTER,
        says="LLF uses TREE in each phase.",
        unit="extra steps",
        judge=Between(
            0,
            0,
            "binomial trees over routers, the groups of a router, routers and terminals one after "
            "another",
            good="used",
        ),
    ),
    Claim(
        id="llf.global.least",
        where=SCATTER,
        says="LLF minimises data on global links (among all algorithms).",
        unit="times the least",
        judge=AtMost(1 + SLIGHT / 100, LEAST),
        reading=USING_TREE,
        remark="The least: each block for another group crosses once.",
    ),
    Claim(
        id="llf.global.trees",
        where=SCATTER,
        says="LLF minimises data on global links (among the three that use trees).",
        unit="times the next",
        judge=AtMost(1 - SLIGHT / 100, SLIGHTLY),
        reading=USING_TREE,
        remark="Against the better of TREE and GLF.",
    ),
)

HEADLINES = (
    Claim(
        id="scatter.size",
        where=HEADLINE,
        says="Each terminal is sent 1 KiB.",
        unit="B",
        printed=1024,
        judge=Used(),
    ),
    Claim(
        id="scatter.figure",
        where=HEADLINE,
        says="A figure shows times of LIN, TREE, GLF and LLF.",
        unit="",
        judge=NotStated(f"{PICTURE}; the rows below judge what is concluded from it"),
    ),
    *(
        Claim(
            id=f"scatter.twice.{rule}.{name}",
            where=f"{HEADLINE}; Conclusion",
            says=under(f"LIN is twice as fast as {name}", BRIEF[rule], BRIEF_SIZES[""]),
            unit="times LIN's time",
            judge=Between(1.5, 2.5, TWICE),
            reading=both(BUFFERS_16, SCATTER_RULES[rule]),
        )
        for rule in SCATTER_RULES
        for name in TREES
    ),
    *(
        Claim(
            id=f"scatter.twice.{rule}.large_buffers",
            where=f"{HEADLINE}; Conclusion",
            says=under(
                "LIN is twice as fast as TREE, GLF and LLF",
                BRIEF[rule],
                BRIEF_SIZES[".large_buffers"],
            ),
            unit="times LIN's time",
            judge=Between(1.5, 2.5, TWICE),
            reading=both(BUFFERS_64, SCATTER_RULES[rule]),
        )
        for rule in SCATTER_RULES
    ),
    Claim(
        id="scatter.background.figure",
        where=BESIDE,
        says="A figure shows them with uniform background traffic.",
        unit="",
        judge=NotStated(f"{PICTURE}; the rows below judge the headline that it stands under"),
    ),
    *(
        Claim(
            id=f"scatter.background.{rule}",
            where=BESIDE,
            says=under(
                "LIN is twice as fast as TREE, GLF and LLF beside uniform background traffic",
                BRIEF[rule],
            ),
            unit="times LIN's time",
            judge=Between(1.5, 2.5, TWICE),
            reading=both(
                "the headline, under which the figure stands, holds for it, too",
                BACKGROUND,
                BUFFERS_16,
                SCATTER_RULES[rule],
            ),
            dispute="" if rule == "pipelined" else MORE_THAN_TWICE,
        )
        for rule in SCATTER_RULES
    ),
)

REASONS = (
    *(
        Claim(
            id=f"scatter.buffers.{rule}",
            where=BUFFERS,
            says=under("The size of buffers is the major factor", BRIEF[rule]),
            unit="times the next factor",
            judge=AtLeast(1, "the major factor moves the ratio most"),
            reading=both(
                "a factor moves the ratio of the mean of TREE, GLF and LLF to LIN; buffers are "
                "made twice as large, where that moves it most; the other factors are the rule of "
                "a router's delay, chunks of 512 B in place of 256 B, and local or global links at "
                "half the rate",
                SCATTER_RULES[rule],
            ),
            dispute=RANGES[rule],
        )
        for rule in SCATTER_RULES
    ),
    *(
        Claim(
            id=f"scatter.buffers.cause.{rule}",
            where=BUFFERS,
            says=under("Full buffers make TREE, GLF and LLF slower than LIN", BRIEF[rule]),
            unit="times LIN's lead",
            judge=AtLeast(
                1 + SLIGHT / 100,
                "if full buffers were the cause, LIN would lead by more with small buffers than "
                "with large ones; 1 % is a difference",
            ),
            reading=SCATTER_RULES[rule],
            remark="The mean of TREE, GLF and LLF over LIN with buffers of 1 KiB against that with "
            "64 KiB.",
        )
        for rule in SCATTER_RULES
    ),
    Claim(
        id="scatter.trees.data",
        where=BUFFERS,
        says="TREE, GLF and LLF transfer large amounts of data at a time.",
        unit="times LIN's message",
        judge=AtLeast(10, LARGE),
        reading="the amount that an algorithm transfers at a time is its largest message; half of "
        "the messages of a binomial tree have one block.",
        remark="The largest message of each of the three, of which the least is judged.",
    ),
    *(
        Claim(
            id=f"scatter.trees.fill.{rule}.{name}",
            where=BUFFERS,
            says=under(f"{name} fills buffers", BRIEF[rule]),
            unit="full buffers",
            judge=AtLeast(1, "any buffer of a router that is full at some time"),
            reading=both(BUFFERS_16, SCATTER_RULES[rule]),
            dispute=ONE_FULL if (rule, name) == ("pipelined", "TREE") else "",
        )
        for rule in SCATTER_RULES
        for name in TREES
    ),
    *(
        Claim(
            id=f"scatter.trees.fill.{rule}.large_buffers",
            where=BUFFERS,
            says=under(
                "TREE, GLF and LLF fill buffers", BRIEF[rule], BRIEF_SIZES[".large_buffers"]
            ),
            unit="full buffers",
            judge=AtLeast(1, "any buffer of a router that is full at some time"),
            reading=both(BUFFERS_64, SCATTER_RULES[rule]),
            remark="Of the three the one that fills fewest.",
        )
        for rule in SCATTER_RULES
    ),
    *(
        Claim(
            id=f"scatter.trees.slowed.{rule}",
            where=BUFFERS,
            says=under("Full buffers slow TREE, GLF and LLF down", BRIEF[rule]),
            unit="% less time",
            judge=AtLeast(SLIGHT, SLIGHTLY),
            reading=SCATTER_RULES[rule],
            remark="With buffers of 64 KiB for each channel of local and terminal links against "
            "1 KiB; of the three the one that gains least.",
        )
        for rule in SCATTER_RULES
    ),
    Claim(
        id="scatter.lin.message",
        where=BUFFERS,
        says="LIN transfers 1 KiB at a time.",
        unit="B",
        printed=1024,
        judge=Used(),
    ),
    *(
        Claim(
            id=f"scatter.lin.full.{rule}{size}",
            where=BUFFERS,
            says=under("LIN saturates no buffer", BRIEF[rule], BRIEF_SIZES[size]),
            unit="full buffers",
            judge=AtMost(0, "no buffer means none"),
            reading=both(SIZES[size], SCATTER_RULES[rule]),
        )
        for rule in SCATTER_RULES
        for size in SIZES
    ),
    *(
        Claim(
            id=f"scatter.lin.slowdown.{rule}{size}",
            where=BUFFERS,
            says=under("LIN is not slowed down", BRIEF[rule], BRIEF_SIZES[size]),
            unit="times its link's time",
            judge=AtMost(1.1, NO_SLOWDOWN),
            reading=both(SIZES[size], SCATTER_RULES[rule]),
            remark="Against what the root's link needs for all blocks.",
        )
        for rule in SCATTER_RULES
        for size in SIZES
    ),
)

CONCLUSIONS = (
    *(
        Claim(
            id=f"scatter.topology.{rule}",
            where=SCATTERED,
            says=under(
                "Characteristics of the topology have an impact on performance", BRIEF[rule]
            ),
            unit="% less time",
            judge=AtLeast(SLIGHT, SLIGHTLY),
            reading=both(
                "the numbers of groups and routers are the characteristics that are changed, at "
                "5256 terminals",
                BUFFERS_16,
                SCATTER_RULES[rule],
            ),
            remark="On the fastest against the slowest of three networks; of the four algorithms "
            "the one that changes most, since one is enough for an impact.",
        )
        for rule in SCATTER_RULES
    ),
    *(
        Claim(
            id=f"scatter.hardware.{rule}",
            where=SCATTERED,
            says=under(
                "Characteristics of the hardware have an impact on performance", BRIEF[rule]
            ),
            unit="% less time",
            judge=AtLeast(SLIGHT, SLIGHTLY),
            reading=both(
                "sizes of buffers and rates of local and global links are the characteristics that "
                "are changed",
                SCATTER_RULES[rule],
            ),
            remark="With the best against the worst of them; of the four algorithms the one that "
            "changes most, since one is enough for an impact.",
        )
        for rule in SCATTER_RULES
    ),
    *(
        Claim(
            id=f"scatter.others.{rule}",
            where=SCATTERED,
            says=under("LLF, GLF and TREE do not differ significantly", BRIEF[rule]),
            unit="LIN's leads",
            judge=AtMost(SIGNIFICANT, INSIGNIFICANT),
            reading=both(BUFFERS_16, SCATTER_RULES[rule]),
            remark=LEADS,
        )
        for rule in SCATTER_RULES
    ),
    *(
        Claim(
            id=f"scatter.others.background.{rule}",
            where=SCATTERED,
            says=under(
                "LLF, GLF and TREE do not differ significantly beside background traffic",
                BRIEF[rule],
            ),
            unit="LIN's leads",
            judge=AtMost(SIGNIFICANT, INSIGNIFICANT),
            reading=both(
                "the conclusion holds with background traffic, too",
                BACKGROUND,
                BUFFERS_16,
                SCATTER_RULES[rule],
            ),
            remark=LEADS,
        )
        for rule in SCATTER_RULES
    ),
)

CLAIMS: tuple[Claim, ...] = (*ALGORITHMS, *HEADLINES, *REASONS, *CONCLUSIONS)
"""Every item of the poster's part on scatter."""
