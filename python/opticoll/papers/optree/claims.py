"""The items of the OpTree paper, sections I to III: what it prints, and how each is judged."""

from __future__ import annotations

from opticoll.papers.judging import (
    AtLeast,
    AtMost,
    Claim,
    Equal,
    NotDone,
    NotStated,
    Used,
)
from opticoll.papers.optree.claims_evaluation import EVALUATION

GROUP = (
    "p, which the paper defines nowhere, is 2w + 1 as in the group's WRHT, and theta is "
    "ceil(log_p N)."
)
"""Under which the 259 of Table I comes out."""

NEVER_MORE = "what is optimal or exact is not off by one"

_INTRODUCTION = (
    Claim(
        id="intro.cost_of_electrical",
        where="I",
        says="In electrical networks communication holds large models up; optical networks have "
        "several orders of magnitude more bandwidth.",
        unit="",
        judge=NotStated("neither network is given a rate, a size or a model"),
    ),
    Claim(
        id="intro.steps.existing",
        where="I, III.D, VI",
        says="OpTree needs far fewer steps than existing all_gathers on an optical ring.",
        unit="times as many slots as OpTree, the least of Ring, NE, WRHT and one-stage",
        judge=AtLeast(2, "far fewer is at most half as many"),
        remark="At the paper's default, N = 1024 and w = 64.",
    ),
    Claim(
        id="intro.steps.existing.example",
        where="I, III.D with III.C",
        says="The same in the paper's own example of 16 nodes and 2 wavelengths.",
        unit="slots of NE per slot of OpTree",
        judge=AtLeast(1.01, "fewer steps than existing algorithms, in any number"),
        remark="The example does not look at NE.",
    ),
    Claim(
        id="intro.steps.existing.4096",
        where="I, III.D with Fig. 4",
        says="The same at 4096 nodes and 64 wavelengths, by the formulas of the paper itself.",
        unit="steps of WRHT per step of OpTree",
        judge=AtLeast(1.01, "fewer steps than existing algorithms, in any number"),
        reading=GROUP,
    ),
    Claim(
        id="related_work",
        where="II",
        says="Other work aims at fewer wavelengths or at electrical networks.",
        unit="",
        judge=NotDone("a survey; nothing in it is computed"),
    ),
)

_ARCHITECTURE = (
    Claim(
        id="machine.fibres",
        where="III.A, Fig. 1",
        says="TeraRack has four single-mode fibre rings, half of them each way.",
        unit="fibres",
        printed=4,
        judge=Used(),
        command="opticoll list fabrics",
        remark="The preset terarack. The paper's own counts use one fibre each way: "
        "see machine.directions.",
    ),
    Claim(
        id="machine.directions",
        where="III.A, Fig. 1 (b)",
        says="Two rings carry the traffic, one clockwise and one counter-clockwise.",
        unit="fibres",
        printed=2,
        judge=Used(),
        remark="The preset optree_paper; with four the steps of Table I would halve.",
    ),
    Claim(
        id="machine.resonators",
        where="III.A",
        says="Each optical interface has 64 micro-ring resonators, so selects any of 64 "
        "wavelengths.",
        unit="wavelengths per directed fibre",
        printed=64,
        judge=Used(),
    ),
    Claim(
        id="machine.laser",
        where="III.A",
        says="A comb laser outside the node feeds it; resonators modulate and filter.",
        unit="",
        judge=NotDone(
            "lasers and modulators are not modelled one by one: they are a rate per wavelength "
            "and a time to reconfigure"
        ),
    ),
    Claim(
        id="machine.assignment",
        where="III.A",
        says="Routes and wavelengths are assigned in the control plane.",
        unit="lightpaths that share a wavelength of a link in a slot, or break another rule",
        printed=0,
        judge=Equal("used"),
        remark="opticoll assigns them itself, and its verifier looks for conflicts in every plan: "
        "here in that of Table I.",
    ),
)

_LEMMAS = (
    Claim(
        id="lemma1.ring.even",
        where="III.B, Lemma 1",
        says="An all-to-all in one stage on a ring of N nodes, N even, needs ceil(N^2/8) "
        "wavelengths.",
        unit="wavelengths at N = 4, 8, 12 and 16",
        printed=(2, 8, 18, 32),
        judge=Equal(),
        remark="The printed formula evaluated by hand.",
    ),
    Claim(
        id="lemma1.ring.odd",
        where="III.B, Lemma 1",
        says="The same for N odd.",
        unit="wavelengths at N = 3, 5, 7 and 9",
        printed=(2, 4, 7, 11),
        judge=Equal(),
        remark="The printed formula evaluated by hand.",
    ),
    Claim(
        id="lemma1.line",
        where="III.B, Lemma 1",
        says="On a line of N nodes it needs floor(N^2/4) wavelengths.",
        unit="wavelengths at N = 3, 4, 5, 8, 9 and 16",
        printed=(2, 4, 6, 16, 20, 64),
        judge=Equal(),
        command="opticoll plan all_gather --algorithm one_stage "
        "--fabric wdm_ring:ranks=16,wavelengths=64,broken=15-0",
        remark="The printed formula evaluated by hand. A ring with a cut between its last and "
        "its first node is a line.",
    ),
    Claim(
        id="lemma1.unrealistic",
        where="III.B",
        says="With many nodes one stage needs unrealistically many wavelengths.",
        unit="times the 64 wavelengths of an interface, at N = 1024",
        judge=AtLeast(10, "several fibres and interfaces could make up for less"),
    ),
    Claim(
        id="conversions",
        where="III.B",
        says="In k stages data becomes electronic k - 1 times before the operation ends.",
        unit="conversions of a block between its source and its last receiver, k = 1, 2, 3, 4",
        printed=(0, 1, 2, 3),
        judge=Equal(),
        remark="16 nodes: one stage, then trees of 4x4, 4x2x2 and 2x2x2x2.",
    ),
    Claim(
        id="lemma2",
        where="III.B, Lemma 2",
        says="An m-ary tree of height k has at most m^k leaves.",
        unit="nodes, for (m, k) = (2, 3), (3, 2), (3, 3), (4, 2)",
        printed=(8, 9, 27, 16),
        judge=Equal(),
        remark="The printed formula evaluated by hand; computed is the largest ring, of up "
        "to 40 nodes, on which opticoll builds OpTree with k radices m.",
    ),
)

_EXAMPLE = (
    Claim(
        id="example.nodes",
        where="III.C",
        says="The example has 16 nodes and 2 wavelengths.",
        unit="nodes, wavelengths",
        printed=(16, 2),
        judge=Used(),
    ),
    Claim(
        id="example.one_stage.wavelengths",
        where="III.C, Fig. 2 (a)",
        says="In one stage it needs 32 wavelengths.",
        unit="wavelengths",
        printed=32,
        judge=Equal(),
    ),
    Claim(
        id="example.one_stage",
        where="III.C, Fig. 2 (a)",
        says="In one stage it takes 16 steps.",
        unit="slots",
        printed=16,
        judge=Equal(),
        command="opticoll plan all_gather --fabric optree_paper:ranks=16,wavelengths=2 "
        "--algorithm one_stage",
    ),
    Claim(
        id="example.two_stages.subsets",
        where="III.C, Fig. 2 (b)",
        says="With a 4-ary tree node 1 exchanges with 5, 9 and 13, then with 2, 3 and 4.",
        unit="partners of node 1, stage by stage",
        printed=("5 9 13", "2 3 4"),
        judge=Used(),
        command="opticoll show all_gather --fabric optree_paper:ranks=16,wavelengths=2 "
        "--algorithm optree:radices=4x4",
    ),
    Claim(
        id="example.two_stages.data",
        where="III.C",
        says="A node sends d to each partner in stage 1 and 4d in stage 2.",
        unit="blocks per partner, stage by stage",
        printed=(1, 4),
        judge=Used(),
    ),
    Claim(
        id="example.two_stages.wavelengths",
        where="III.C",
        says="The stages need 8 and 16 wavelengths.",
        unit="wavelengths, stage by stage",
        printed=(8, 16),
        judge=Equal(),
    ),
    Claim(
        id="example.two_stages.slots",
        where="III.C",
        says="They take 4 and 8 steps.",
        unit="slots, stage by stage",
        printed=(4, 8),
        judge=Equal(),
    ),
    Claim(
        id="example.two_stages",
        where="III.C, Fig. 2 (b)",
        says="In two stages, with a 4-ary tree, it takes 12 steps.",
        unit="slots",
        printed=12,
        judge=Equal(),
        command="opticoll plan all_gather --fabric optree_paper:ranks=16,wavelengths=2 "
        "--algorithm optree:radices=4x4",
    ),
    Claim(
        id="example.three_stages.wavelengths",
        where="III.C, Fig. 2 (c)",
        says="The three stages of the 3-ary tree (2, 3 and 3 children) need 8, 12 and 12.",
        unit="wavelengths, stage by stage",
        printed=(8, 12, 12),
        judge=Equal(),
        remark="In the first stage opposite arcs of two pairs can share a wavelength; the paper "
        "gives each pair one of its own.",
    ),
    Claim(
        id="example.three_stages",
        where="III.C, Fig. 2 (c)",
        says="In three stages, with a 3-ary tree, it takes 16 steps.",
        unit="slots",
        printed=16,
        judge=Equal(),
        command="opticoll plan all_gather --fabric optree_paper:ranks=16,wavelengths=2 "
        "--algorithm optree:radices=2x3x3",
    ),
    Claim(
        id="example.three_stages.theorem",
        where="III.C with Theorem 1",
        says="Theorem 1, which is said to count the steps, agrees with the 16 at k = 3.",
        unit="steps",
        printed=16,
        judge=Equal(),
    ),
    Claim(
        id="example.fewest",
        where="III.C",
        says="Of the three schemes the 4-ary tree takes the fewest steps.",
        unit="slots fewer than the better of the two others",
        judge=AtLeast(1, "fewer is by one slot or more"),
    ),
    Claim(
        id="example.trade_off",
        where="III.C",
        says="More stages are not always better: steps fall, then rise with their number.",
        unit="slots more in one stage, and in three, than in two",
        judge=AtLeast(1, "a rise is by one slot or more"),
        remark="The smaller of both differences. Other trees of three stages tie with two: "
        "4x2x2 takes 12 slots as well.",
    ),
)

_DESIGN = (
    Claim(
        id="routing",
        where="III.D.1, Fig. 3",
        says="In stage j the nodes at one position of sibling groups exchange all they have, in "
        "the ring in stage 1 and in their group's segment later.",
        unit="violations of the plans with 2 to 5 stages on 1024 nodes",
        printed=0,
        judge=Equal("used"),
        remark="The algorithm `optree`; both verifiers follow every block.",
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
        id="routing.load",
        where="III.D.1 and 2",
        says="A wavelength carries one block of size d in a step.",
        unit="blocks per lightpath, most",
        printed=1,
        judge=Used(),
    ),
    Claim(
        id="theorem1.divisible",
        where="III.D.2, Theorem 1",
        says="k stages take ceil((2k - 1) N^(1 + 1/k) / (8w)) steps: if N = m^k and 4 divides m.",
        unit="slots off the formula, most",
        judge=AtMost(0, NEVER_MORE),
        remark="16, 64, 256 and 1024 nodes with trees of 4, 64 with 8, 256 with 16.",
    ),
    Claim(
        id="theorem1.any",
        where="III.D.2, Theorem 1",
        says="The same for any k from 2 to 6 on 64 nodes with 8 wavelengths.",
        unit="slots off the formula, most",
        judge=AtMost(0, NEVER_MORE),
        remark="The formula counts with m = N^(1/k), which is no whole number for k = 4 and 5.",
    ),
    Claim(
        id="theorem1.proof",
        where="III.D.2, proof of Theorem 1",
        says="Adding what the proof counts for each stage gives the theorem's steps; for 1024 "
        "nodes, 64 wavelengths and k = 7 these are 70.",
        unit="steps",
        printed=70,
        judge=Equal(),
        remark="The rounding brackets of the proof stand around m^2/(8w) and m^2/(4w), so they "
        "count a whole step for the first stage of each subset, and none for the later ones.",
    ),
    Claim(
        id="theorem2.derivative",
        where="III.D.2, Theorem 2",
        says="With k continuous, Theorem 1 is least at (ln N + sqrt(ln N (ln N - 2)))/2.",
        unit="stages off the least value that a search finds, most",
        judge=AtMost(0.001, "a thousandth of a stage is far below what rounding to whole k does"),
        remark="N = 16, 64, 256, 512, 1024, 2048, 4096.",
    ),
    Claim(
        id="theorem2.ceiling",
        where="III.D.2, Eq. 2",
        says="k*, rounded up as Eq. 2 prints it, gives the fewest steps of all k by Theorem 1.",
        unit="of seven N at which it does not",
        judge=AtMost(0, NEVER_MORE),
        remark="w = 64; N = 16 with w = 2.",
    ),
    Claim(
        id="theorem2.nearest",
        where="III.D.2, below Eq. 2",
        says="The same, with the bracket as the text names it: rounding to a whole number.",
        unit="of seven N at which it does not",
        judge=AtMost(0, NEVER_MORE),
        reading="the bracket of Eq. 2, printed as a ceiling, rounds to the nearest; Table I's k* = "
        "7 at 1024 nodes needs the ceiling.",
    ),
    Claim(
        id="theorem2.trees",
        where="III.D.2, Theorem 2",
        says="k* gives the fewest steps among all m-ary trees, on 1024 nodes with 64 wavelengths.",
        unit="slots more than the best tree takes",
        judge=AtMost(0, NEVER_MORE),
        remark="Both constructed and verified: seven stages of at most 3 children, and the best "
        "tree that is found.",
    ),
    Claim(
        id="baseline.ring",
        where="III.D.2",
        says="Ring takes N - 1 steps, each with a block.",
        unit="slots at N = 16 and 1024, blocks per lightpath",
        printed=(15, 1023, 1),
        judge=Equal(),
    ),
    Claim(
        id="baseline.neighbour_exchange",
        where="III.D.2",
        says="NE takes N/2 steps, each but the first with two blocks.",
        unit="steps at N = 16 and 1024, blocks per rank in the first and in a later step",
        printed=(8, 512, 1, 2),
        judge=Equal(),
    ),
    Claim(
        id="baseline.wrht",
        where="III.D.2",
        says="WRHT collects in 1 + ceil(p (p^(theta - 1) - 1)/(p - 1)) steps and hands out in "
        "(theta - 1) p^(theta - 1) or theta p^(theta - 1).",
        unit="",
        judge=NotStated(
            "neither p nor theta is defined, nor when which of the two holds; table1.wrht is "
            "judged under a reading"
        ),
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
        says="NE takes 512.",
        unit="slots",
        printed=512,
        judge=Equal(),
        command="opticoll plan all_gather --fabric optree_paper --algorithm neighbour_exchange",
        remark="Two wavelengths carry the two blocks of a step side by side.",
    ),
    Claim(
        id="table1.neighbour_exchange.one_wavelength",
        where="Table I with III.D.2",
        says="It takes 512 steps of the same length as those of Ring, on one wavelength like Ring.",
        unit="slots",
        printed=512,
        judge=Equal(),
        command="opticoll plan all_gather --fabric optree_paper:wavelengths=1 "
        "--algorithm neighbour_exchange",
    ),
    Claim(
        id="table1.wrht",
        where="Table I",
        says="WRHT takes 259.",
        unit="steps by the formula in the text",
        printed=259,
        judge=Equal(),
        reading=GROUP,
    ),
    Claim(
        id="table1.wrht.formula",
        where="Table I",
        says="The formula in the row of the table gives its 259.",
        unit="steps",
        printed=259,
        judge=Equal(),
        remark=f"With the reading under which 259 comes out of the text: {GROUP}",
    ),
    Claim(
        id="table1.wrht.constructed",
        where="Table I",
        says="An all_gather by WRHT takes 259.",
        unit="slots",
        printed=259,
        judge=Equal(),
        command="opticoll plan all_gather --fabric optree_paper --algorithm wrht",
    ),
    Claim(
        id="table1.one_stage",
        where="Table I",
        says="One-stage takes 128.",
        unit="slots",
        printed=128,
        judge=Equal(),
        command="opticoll plan all_gather --fabric optree_paper --algorithm one_stage",
        remark="128 is N/8; the formula beside it, ceil(N^2/(8w)), gives what is computed.",
    ),
    Claim(
        id="table1.optree",
        where="Table I",
        says="OpTree takes 70.",
        unit="steps by Theorem 1 at k*",
        printed=70,
        judge=Equal(),
        remark="By the formula alone, for a tree with 1024^(1/7) = 2.69 children, of which there "
        "is none.",
    ),
    Claim(
        id="table1.optree.depth",
        where="Table I",
        says="k* is 7.",
        unit="stages",
        printed=7,
        judge=Equal(),
        remark="Eq. 2 with its bracket as printed, a ceiling.",
    ),
    Claim(
        id="table1.optree.constructed",
        where="Table I",
        says="A tree takes 70.",
        unit="slots of the best tree found",
        printed=70,
        judge=Equal(),
        command="opticoll plan all_gather --fabric optree_paper --algorithm optree",
    ),
    Claim(
        id="table1.optree.paper_tree",
        where="Table I",
        says="A tree of 7 stages takes 70.",
        unit="slots",
        printed=70,
        judge=Equal(),
        command="opticoll plan all_gather --fabric optree_paper --algorithm optree:depth=paper",
    ),
)

_TIME = (
    Claim(
        id="time",
        where="III.D.3, Theorem 3",
        says="The time is the number of steps times d/B + a.",
        unit="ps off that product, most",
        judge=AtMost(0, "a formula is exact"),
        remark="Circuit simulator, policy every_step, plans of OpTree, Ring and one-stage on 16 "
        "nodes, d of 1 B, 4 KiB and 4 MiB.",
    ),
    Claim(
        id="equation3",
        where="III.D.3, Eq. 3 and Theorem 3",
        says="The steps of Eq. 3, ceil(N m log_m N / (4w)), are those of Table I.",
        unit="steps at N = 1024, w = 64, k = 7",
        printed=70,
        judge=Equal(),
        remark="Eq. 3 has 2k where Theorem 1 has 2k - 1.",
    ),
    Claim(
        id="theorem3.proof",
        where="III.D.3, proof of Theorem 3",
        says="So are those of the proof, ceil((2k - 1) N / (8w)).",
        unit="steps at N = 1024, w = 64, k = 7",
        printed=70,
        judge=Equal(),
        remark="The proof has lost the factor N^(1/k).",
    ),
)

CLAIMS: tuple[Claim, ...] = (
    *_INTRODUCTION,
    *_ARCHITECTURE,
    *_LEMMAS,
    *_EXAMPLE,
    *_DESIGN,
    *_TABLE,
    *_TIME,
    *EVALUATION,
)
