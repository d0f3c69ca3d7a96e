"""The items of the OpTree paper, section III.D: routing, theorems, Table I and time."""

from __future__ import annotations

from opticoll_papers.judging import (
    AtLeast,
    AtMost,
    Claim,
    Equal,
    NotStated,
    Used,
)
from opticoll_papers.optree.claims_readings import (
    BEST,
    COUNT,
    EVEN,
    GROUP,
    PHASES,
    ROUNDED_UP,
    THETA,
)

_ROUTING = (
    Claim(
        id="routing",
        where="III.D.1, Fig. 3",
        says="In stage j the nodes at one position of sibling groups exchange all they have, on "
        "the ring in stage 1 and on their group's segment later.",
        unit="violations",
        judge=AtMost(0, "a plan is valid or it is not", good="used"),
        remark="The algorithm `optree`; the verifier follows every block.",
    ),
    Claim(
        id="routing.children",
        where="III.D.1",
        says="At the i-th level a child has N^((k - 1)/k) network nodes.",
        unit="nodes of a child",
        printed=(16, 16, 16),
        judge=Equal(),
        evaluates="the words for N = 64 and k = 3, at levels 1, 2 and 3",
        remark="True at level 1 only. The paper's own stage j, some lines below, has N/m^j.",
    ),
    Claim(
        id="routing.whole",
        where="III.D.1",
        says="A parent has at most m = N^(1/k) children, and k = log_m N.",
        unit="cases of 20",
        judge=NotStated(
            "which tree has k stages where N^(1/k) is no whole number: up to ceil(N^(1/k)) "
            "children everywhere, or different radices in different stages"
        ),
        remark="Shown beside: in how many cases of Fig. 4's inset N^(1/k) is whole.",
    ),
    Claim(
        id="routing.unequal",
        where="III.D.1",
        says="Where m does not divide, groups have up to ceil(N/m^j) nodes.",
        unit="",
        judge=NotStated(
            "who is the partner of a node whose position a smaller sibling group does not have; "
            "opticoll spreads positions evenly, so that every block arrives once"
        ),
    ),
    Claim(
        id="routing.data",
        where="III.D.1",
        says="In stage j a node sends m^(j - 1) d, by m^(j - 1) wavelengths.",
        unit="blocks",
        printed=(1, 4, 16),
        judge=Used(),
        evaluates="m^(j - 1) at m = 4, j = 1, 2, 3",
        remark="To each partner, on 64 nodes with a tree of 4x4x4.",
    ),
    Claim(
        id="routing.load",
        where="III.D.1 and 2",
        says="A wavelength carries data of size d in a step.",
        unit="blocks",
        printed=1,
        judge=Used(),
        evaluates="the words",
        remark="The most that a lightpath carries in the plan of Table I.",
    ),
)

_THEOREMS = (
    Claim(
        id="theorem1.equal",
        where="III.D.2, Theorem 1",
        says="k stages take ceil((2k - 1) N^(1 + 1/k) / (8w)) steps; here where everything "
        "divides.",
        unit="slots off the formula",
        judge=AtMost(0, COUNT),
        reading="N = m^k, 4 divides m, and w divides the wavelengths of every stage; the theorem "
        "has none of these conditions",
    ),
    Claim(
        id="theorem1.stages",
        where="III.D.2, Theorem 1",
        says="k stages take ceil((2k - 1) N^(1 + 1/k) / (8w)) steps; here where w does not divide "
        "the wavelengths of the stages.",
        unit="slots",
        printed=8,
        judge=Equal(),
        evaluates="the formula at N = 16, w = 3, k = 2",
        reading="stages do not overlap",
        remark="A tree of 4x4. Its stages need 8 and 16 wavelengths, so 3 and 6 slots. The theorem "
        "rounds their sum up; the paper's own example rounds each stage up.",
    ),
    Claim(
        id="theorem1.any",
        where="III.D.2, Theorem 1",
        says="k stages take ceil((2k - 1) N^(1 + 1/k) / (8w)) steps; here for k from 2 to 6 on 64 "
        "nodes with 8 wavelengths.",
        unit="slots off the formula",
        judge=AtMost(0, COUNT),
        reading=f"{EVEN}; of such trees the best of each depth",
        remark="At k = 4 and 5, N^(1/k) is no whole number.",
    ),
    Claim(
        id="theorem1.proof",
        where="III.D.2, proof of Theorem 1",
        says="The steps that the proof counts for each stage add up to the 70 of Table I, at 1024 "
        "nodes, 64 wavelengths and k = 7.",
        unit="steps",
        printed=70,
        judge=Equal("consistent"),
        remark="The brackets of the proof stand around m^2/(8w) and m^2/(4w). They count a whole "
        "step for the first stage of each subset, and none for the later stages.",
    ),
    Claim(
        id="theorem1.proof.identity",
        where="III.D.2, proof of Theorem 1",
        says="m^(j - 1) ceil(N/m^j) floor(m^2/(4w)) = floor(m^2/(4w)) ceil(N/m).",
        unit="exceptions of 2",
        judge=AtMost(0, "an identity has no exceptions"),
        remark="At N = 16, k = 3 and w = 1, where the factor floor(m^2/(4w)) is not 0, at j = 2 "
        "and 3. m is N^(1/k) or that rounded up, whichever gives fewer exceptions.",
    ),
    Claim(
        id="theorem2.derivative",
        where="III.D.2, Theorem 2",
        says="With k continuous, Theorem 1 is least at (ln N + sqrt(ln N (ln N - 2)))/2.",
        unit="stages off the least",
        judge=AtMost(0.001, "a thousandth of a stage is far below what rounding to whole k does"),
        remark="Largest difference to what a numerical search finds, N = 16 to 4096.",
    ),
    Claim(
        id="theorem2.ceiling",
        where="III.D.2, Eq. 2",
        says="k*, rounded up as Eq. 2 is printed, gives the fewest steps of all k by Theorem 1.",
        unit="exceptions of 7",
        judge=AtMost(0, BEST),
        reading=ROUNDED_UP,
        remark="N = 16 with w = 2; N = 64, 256, 512, 1024, 2048, 4096 with w = 64.",
    ),
    Claim(
        id="theorem2.nearest",
        where="III.D.2, below Eq. 2",
        says="k*, rounded to a whole number as the text below Eq. 2 says, gives the fewest steps "
        "of all k by Theorem 1.",
        unit="exceptions of 7",
        judge=AtMost(0, BEST),
        reading="the bracket of Eq. 2, printed as a ceiling, rounds to the nearest",
        remark="The cases of theorem2.ceiling.",
    ),
    Claim(
        id="theorem2.bracket",
        where="III.D.2, Table I, IV.B",
        says="k* of Eq. 2 is the best depth that is printed: 7 at 1024 nodes (Table I) and 7 at "
        "2048 nodes (the minimum of Fig. 4).",
        unit="number of readings",
        judge=AtLeast(1, "one reading of the bracket must give both"),
        reading="the bracket rounds k* itself, up or to the nearest, whatever the steps are",
        uses=("table1.optree.depth", "fig4.best.2048"),
        remark="Readings of the bracket of Eq. 2 that give both: rounded up as printed, and "
        "rounded to the nearest.",
    ),
    Claim(
        id="theorem2.trees",
        where="I, III.D.2, Theorem 2",
        says="k* stages give the fewest steps among all m-ary trees.",
        unit="slots above the fewest",
        judge=AtMost(0, BEST),
        reading=f"{EVEN}; k* = 7 at 1024 nodes with 64 wavelengths",
        remark="Other numbers of stages tie with k*. With at most 3 children everywhere, another "
        "reading, a tree of 7 stages takes 91 slots: table1.optree.constructed.",
    ),
)

_BASELINES = (
    Claim(
        id="baseline.ring",
        where="III.D.2",
        says="Ring takes N - 1 steps, each with data d.",
        unit="slots, slots, blocks",
        printed=(15, 1023, 1),
        judge=Equal(),
        evaluates="the words at N = 16 and N = 1024",
    ),
    Claim(
        id="baseline.neighbour_exchange",
        where="III.D.2",
        says="NE takes N/2 steps, each but the first with data 2d.",
        unit="steps, steps, blocks, blocks",
        printed=(8, 512, 1, 2),
        judge=Equal(),
        evaluates="the words at N = 16 and N = 1024, in the first and in a later step",
    ),
    Claim(
        id="baseline.wrht",
        where="III.D.2",
        says="WRHT collects in 1 + ceil(p (p^(theta - 1) - 1)/(p - 1)) steps and hands out in "
        "(theta - 1) p^(theta - 1) or theta p^(theta - 1).",
        unit="",
        judge=NotStated(
            "p, theta, which of the two holds when, and who sends what to whom in an all_gather: "
            "the cited WRHT is an all_reduce. So no plan of opticoll can refute its numbers; "
            "table1.wrht is judged under a reading"
        ),
    ),
    Claim(
        id="baseline.wrht.total",
        where="III.D.2",
        says="The total of WRHT, 1 + ceil((N - p)/(p - 1)) and the steps to hand out, is the sum "
        "of its two phases.",
        unit="values of p",
        judge=AtMost(0, "a total is the sum of its parts"),
        reading=THETA,
        remark="Whole p from 2 to 1024 at which it is not, N = 1024.",
    ),
)

_TABLE = (
    Claim(
        id="table1.ring",
        where="Table I",
        says="Ring takes 1023 steps on 1024 nodes with 64 wavelengths.",
        unit="slots",
        printed=1023,
        judge=Equal(),
        command="opticoll plan all_gather --fabric optree_paper --algorithm ring",
    ),
    Claim(
        id="table1.neighbour_exchange",
        where="Table I",
        says="NE takes 512 steps on 1024 nodes with 64 wavelengths.",
        unit="slots",
        printed=512,
        judge=Equal(),
        reading="two wavelengths carry the two blocks of a step side by side",
        command="opticoll plan all_gather --fabric optree_paper --algorithm neighbour_exchange",
    ),
    Claim(
        id="table1.wrht",
        where="Table I with III.D.2",
        says="WRHT takes 259 steps on 1024 nodes with 64 wavelengths; here by the two phases of "
        "the text.",
        unit="steps",
        printed=259,
        judge=Equal(),
        reading=PHASES,
    ),
    Claim(
        id="table1.wrht.total.first",
        where="Table I with III.D.2",
        says="WRHT takes 259 steps on 1024 nodes with 64 wavelengths; here by the first total of "
        "the text, which hands out in (theta - 1) p^(theta - 1).",
        unit="steps",
        printed=259,
        judge=Equal(),
        reading=GROUP,
    ),
    Claim(
        id="table1.wrht.total.second",
        where="Table I with III.D.2",
        says="WRHT takes 259 steps on 1024 nodes with 64 wavelengths; here by the second total of "
        "the text, which hands out in theta p^(theta - 1).",
        unit="steps",
        printed=259,
        judge=Equal(),
        reading=GROUP,
    ),
    Claim(
        id="table1.wrht.formula",
        where="Table I",
        says="The formula in WRHT's row of the table gives its 259.",
        unit="values of p",
        judge=AtLeast(1, "some p must give it"),
        uses=("table1.wrht",),
        remark="Whole p from 2 to 1024 that give it, theta being log_p N or that rounded up.",
    ),
    Claim(
        id="table1.wrht.constructed",
        where="Table I",
        says="WRHT carries out an all_gather on 1024 nodes with 64 wavelengths.",
        unit="slots",
        judge=NotStated("how WRHT, an all_reduce, gathers: see baseline.wrht"),
        command="opticoll plan all_gather --fabric optree_paper --algorithm wrht",
        remark="Shown beside: opticoll's own version, every block by a lightpath of its own.",
    ),
    Claim(
        id="table1.one_stage",
        where="Table I",
        says="One-stage takes 128 steps on 1024 nodes with 64 wavelengths.",
        unit="slots",
        printed=128,
        judge=Equal(),
        command="opticoll plan all_gather --fabric optree_paper --algorithm one_stage",
        remark="128 is N/8. The formula beside it, ceil(N^2/(8w)), gives what is computed.",
    ),
    Claim(
        id="table1.optree",
        where="Table I",
        says="OpTree takes 70 steps on 1024 nodes with 64 wavelengths; here by Theorem 1 at k*.",
        unit="steps",
        printed=70,
        judge=Equal("consistent"),
        remark="The printed formula evaluated. It counts with 1024^(1/7) = 2.69 children.",
    ),
    Claim(
        id="table1.optree.depth",
        where="Table I",
        says="k* is 7 on 1024 nodes.",
        unit="stages",
        printed=7,
        judge=Equal("consistent"),
        reading=ROUNDED_UP,
        remark="Eq. 2 evaluated.",
    ),
    Claim(
        id="table1.optree.constructed",
        where="Table I",
        says="OpTree takes 70 steps on 1024 nodes with 64 wavelengths; here by trees that exist.",
        unit="slots",
        printed=70,
        judge=Equal(),
        reading=EVEN,
        command="opticoll plan all_gather --fabric optree_paper --algorithm optree",
        remark="All trees with equal groups are compared by the loads of their links. Of trees "
        "with unequal groups only some are tried, so one of 70 slots may exist.",
    ),
)

_CONVERTED = "What the conversion adds to a block of 4 MiB over what it adds to one of 1 KiB."

_TIME = (
    Claim(
        id="time",
        where="III.D.3, Theorem 3",
        says="The time is the number of steps times d/B + a.",
        unit="ps off the product",
        judge=AtMost(0, "a formula is exact", good="used"),
        remark="The circuit simulator charges d/B + a in each slot under its policy every_step. "
        "Plans of OpTree, Ring and one-stage on 16 "
        "nodes, d of 1 B, 4 KiB and 4 MiB.",
    ),
    Claim(
        id="time.constant",
        where="III.D.3 with IV.A",
        says="a, the delay of O/E/O conversion and of reconfiguration, is constant; here if "
        "nothing overlaps.",
        unit="times",
        judge=AtMost(1.01, "one per cent more is still constant"),
        reading="a block is converted flit after flit, one cycle each (IV.A), before it is sent",
        remark=_CONVERTED,
    ),
    Claim(
        id="time.constant.overlapping",
        where="III.D.3 with IV.A",
        says="a, the delay of O/E/O conversion and of reconfiguration, is constant; here if flits "
        "or packets overlap.",
        unit="times",
        judge=AtMost(1.01, "one per cent more is still constant"),
        reading="a flit or a packet is sent on while the next one is converted",
        remark=_CONVERTED,
    ),
    Claim(
        id="equation3",
        where="III.D.3, Eq. 3 and Theorem 3",
        says="The steps of Eq. 3, ceil(N m log_m N / (4w)), are the 70 of Table I.",
        unit="steps",
        printed=70,
        judge=Equal("consistent"),
        remark="At N = 1024, w = 64, k = 7. Eq. 3 has 2k where Theorem 1 has 2k - 1.",
    ),
    Claim(
        id="theorem3.trees",
        where="Abstract, Theorem 3",
        says="k* stages take the least time of all m-ary trees.",
        unit="times the least",
        judge=AtMost(1, "no other depth may take less time"),
        reading=f"{EVEN}; k* = 7 at 1024 nodes with 64 wavelengths",
        remark="Simulated for the sizes of Figs 5 and 6; trees of other depths take as long: "
        "theorem2.trees.",
    ),
    Claim(
        id="theorem3.proof",
        where="III.D.3, proof of Theorem 3",
        says="The steps of the proof, ceil((2k - 1) N / (8w)), are the 70 of Table I.",
        unit="steps",
        printed=70,
        judge=Equal("consistent"),
        remark="At N = 1024, w = 64, k = 7. The proof has lost the factor N^(1/k).",
    ),
)

DESIGN: tuple[Claim, ...] = (
    *_ROUTING,
    *_THEOREMS,
    *_BASELINES,
    *_TABLE,
    *_TIME,
)
