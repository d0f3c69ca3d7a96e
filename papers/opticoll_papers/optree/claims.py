"""The items of the OpTree paper, sections I to III.C: what it prints, and how each is judged."""

from __future__ import annotations

from opticoll_papers.judging import (
    AtLeast,
    AtMost,
    Claim,
    Equal,
    NotDone,
    NotStated,
    Rounded,
    Used,
)
from opticoll_papers.optree.claims_design import DESIGN
from opticoll_papers.optree.claims_evaluation import EVALUATION
from opticoll_papers.optree.claims_readings import MUCH, VISIBLE, WRHT

_STRIPED = (
    "a ring cuts every block over all 64 wavelengths, which the paper neither says nor excludes, "
    "and reconfigures at every step"
)

_INTRODUCTION = (
    Claim(
        id="intro.cost_of_electrical",
        where="I",
        says="Communication limits applications on electrical networks. Optical networks offer "
        "rates that are several orders of magnitude higher.",
        unit="",
        judge=NotStated("neither network is given a rate, a size or a model"),
    ),
    Claim(
        id="intro.circuits",
        where="I",
        says="Optical transmission is circuit switching: each path has a wavelength of its own.",
        unit="violations",
        judge=AtMost(0, "a plan is valid or it is not", good="used"),
        remark="The verifier looks for lightpaths that share a wavelength of a link in a slot.",
    ),
    Claim(
        id="intro.ring",
        where="I",
        says="A ring is chosen because it is more feasible and prototypes exist.",
        unit="",
        judge=NotStated("by which measure a ring is more feasible, and than which topology"),
    ),
    Claim(
        id="intro.traditional",
        where="Abstract, I",
        says="Traditional all_gathers do not work well on optical networks, because they take no "
        "account of optical communication; here with blocks of 4 MiB.",
        unit="times OpTree's time",
        judge=AtLeast(1.01, VISIBLE),
        reading=f"{_STRIPED}; 1024 nodes, blocks of 4 MiB",
        command="opticoll simulate all_gather --fabric optree_paper --size 4MiB "
        "--algorithm ring_bidirectional:stripes=64",
        remark="The faster of two rings is judged. With one wavelength, as the paper has it, Ring "
        "takes 14 times as long as OpTree: table1.ring.",
    ),
    Claim(
        id="intro.traditional.small",
        where="Abstract, I",
        says="Traditional all_gathers do not work well on optical networks, because they take no "
        "account of optical communication; here with blocks of 1 KiB.",
        unit="times OpTree's time",
        judge=AtLeast(1.01, VISIBLE),
        reading=f"{_STRIPED}; 1024 nodes, blocks of 1 KiB",
        command="opticoll simulate all_gather --fabric optree_paper --size 1KiB "
        "--algorithm ring_bidirectional:stripes=64",
        remark="The faster of two rings is judged.",
    ),
    Claim(
        id="intro.first",
        where="I",
        says="OpTree is the first scheme that optimises the time of all_gather on optical "
        "networks.",
        unit="",
        judge=NotDone("a claim about literature"),
    ),
    Claim(
        id="intro.steps.existing",
        where="Abstract, I, III.D, VI",
        says="OpTree needs much fewer steps than existing all_gathers on an optical ring; here on "
        "the 1024 nodes and 64 wavelengths of Table I.",
        unit="times OpTree's slots",
        judge=AtLeast(2, MUCH),
        remark="Judged is the least of Ring, NE and one-stage. With one wavelength NE takes as "
        "many slots as Ring, and the claim holds by more. WRHT's all_gather is not defined: "
        "baseline.wrht.",
    ),
    Claim(
        id="intro.steps.existing.example",
        where="Abstract, I, VI",
        says="OpTree needs much fewer steps than existing all_gathers; we tried it on the 16 nodes "
        "and 2 wavelengths of section III.C.",
        unit="times OpTree's slots",
        judge=AtLeast(2, MUCH),
        reading="the claim is for every number of nodes and wavelengths, not only for Table I's; "
        "NE sends the two blocks of a step on two wavelengths",
        remark="Judged is NE. The paper's own example does not look at NE.",
    ),
    Claim(
        id="intro.steps.existing.4096",
        where="Abstract, I, VI",
        says="OpTree needs much fewer steps than existing all_gathers; we tried it on the 4096 "
        "nodes and 64 wavelengths of Fig. 4.",
        unit="times OpTree's steps",
        judge=AtLeast(2, MUCH),
        reading=f"the claim is for every number of nodes, not only for Table I's; {WRHT}",
        remark="Judged is WRHT, by the formulas of the paper itself, which does not compare at "
        "4096 nodes.",
    ),
    Claim(
        id="related_work",
        where="II",
        says="Other work aims at fewer wavelengths, or at electrical networks.",
        unit="",
        judge=NotDone("a survey; nothing in it is computed"),
    ),
)

_ARCHITECTURE = (
    Claim(
        id="machine.fibres",
        where="III.A",
        says="Data cross four single-mode fibre rings.",
        unit="fibres",
        printed=4,
        judge=NotDone("no number on this page uses four fibres: see machine.directions"),
        remark="The preset terarack has four, two each way.",
    ),
    Claim(
        id="machine.directions",
        where="III.A, Fig. 1 (b)",
        says="Two rings carry the traffic, one clockwise and one counter-clockwise.",
        unit="fibres",
        printed=2,
        judge=Used(),
        remark="The preset optree_paper, used on this page. With four fibres the steps of Table I "
        "would halve.",
    ),
    Claim(
        id="machine.interfaces",
        where="III.A",
        says="A node has four optical interfaces.",
        unit="",
        judge=NotDone("interfaces are not modelled apart from fibres: see machine.fibres"),
    ),
    Claim(
        id="machine.resonators",
        where="III.A",
        says="An interface has 64 micro-ring resonators, so it selects any of 64 wavelengths.",
        unit="wavelengths",
        printed=64,
        judge=Used(),
        remark="Of each directed fibre.",
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
        id="machine.compatible",
        where="III.A",
        says="OpTree is compatible with other, similar optical systems.",
        unit="",
        judge=NotDone("the paper names none"),
    ),
    Claim(
        id="machine.assignment",
        where="III.A, V",
        says="Routes and wavelengths are assigned in the control plane, by FlowRing.",
        unit="",
        judge=NotStated("how FlowRing assigns them"),
        remark="opticoll assigns routes and wavelengths itself, and verifies them: intro.circuits.",
    ),
)

_LEMMAS = (
    Claim(
        id="lemma1.ring.even",
        where="III.B, Lemma 1",
        says="An all-to-all in one stage on a ring of N nodes needs ceil(N^2/8) wavelengths, here "
        "for N even.",
        unit="wavelengths",
        printed=(2, 5, 8, 13, 18, 25, 32),
        judge=Equal(),
        evaluates="the formula at N = 4, 6, 8, 10, 12, 14, 16",
    ),
    Claim(
        id="lemma1.ring.odd",
        where="III.B, Lemma 1",
        says="An all-to-all in one stage on a ring of N nodes needs ceil(N^2/8) wavelengths, here "
        "for N odd.",
        unit="wavelengths",
        printed=(2, 4, 7, 11),
        judge=Equal(),
        evaluates="the formula at N = 3, 5, 7, 9",
    ),
    Claim(
        id="lemma1.line",
        where="III.B, Lemma 1",
        says="An all-to-all in one stage on a line of N nodes needs floor(N^2/4) wavelengths.",
        unit="wavelengths",
        printed=(2, 4, 6, 16, 20, 64),
        judge=Equal(),
        evaluates="the formula at N = 3, 4, 5, 8, 9, 16",
        command="opticoll plan all_gather --algorithm one_stage "
        "--fabric wdm_ring:ranks=16,wavelengths=64,broken=15-0",
        remark="A ring with a cut between its last and its first node is a line.",
    ),
    Claim(
        id="lemma1.unrealistic",
        where="III.B",
        says="With many nodes one stage needs unrealistically many wavelengths.",
        unit="times 64",
        judge=AtLeast(10, "several fibres and interfaces could make up for less"),
        remark="At N = 1024, beside the 64 wavelengths of an interface.",
    ),
    Claim(
        id="conversions",
        where="III.B",
        says="In k stages data become electronic k - 1 times before the operation ends.",
        unit="conversions",
        printed=(0, 1, 2, 3),
        judge=Equal(),
        evaluates="k - 1 at k = 1, 2, 3, 4",
        remark="Of a block, between its source and its last receiver, on 16 nodes: one stage, then "
        "trees of 4x4, 4x2x2 and 2x2x2x2.",
    ),
    Claim(
        id="lemma2",
        where="III.B, Lemma 2",
        says="An m-ary tree of height k has at most m^k leaves.",
        unit="nodes",
        printed=(8, 9, 27, 16),
        judge=Equal(),
        evaluates="m^k at (m, k) = (2, 3), (3, 2), (3, 3), (4, 2)",
        remark="Computed is the largest ring, of up to 40 nodes, on which opticoll builds OpTree "
        "with k radices m.",
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
        says="In one stage the example needs 32 wavelengths.",
        unit="wavelengths",
        printed=32,
        judge=Equal(),
    ),
    Claim(
        id="example.one_stage",
        where="III.C, Fig. 2 (a)",
        says="In one stage the example takes 16 steps.",
        unit="slots",
        printed=16,
        judge=Equal(),
        command="opticoll plan all_gather --fabric optree_paper:ranks=16,wavelengths=2 "
        "--algorithm one_stage",
        remark="A slot of a plan is what the paper calls a step or time slot.",
    ),
    Claim(
        id="example.two_stages.subsets",
        where="III.C, Fig. 2 (b)",
        says="With a 4-ary tree node 1 exchanges with 5, 9 and 13, then with 2, 3 and 4.",
        unit="nodes",
        printed=("5 9 13", "2 3 4"),
        judge=Used(),
        command="opticoll show all_gather --fabric optree_paper:ranks=16,wavelengths=2 "
        "--algorithm optree:radices=4x4",
    ),
    Claim(
        id="example.two_stages.data",
        where="III.C",
        says="A node sends d to each partner in stage 1 and 4d in stage 2.",
        unit="blocks",
        printed=(1, 4),
        judge=Used(),
    ),
    Claim(
        id="example.two_stages.wavelengths",
        where="III.C",
        says="The two stages need 8 and 16 wavelengths.",
        unit="wavelengths",
        printed=(8, 16),
        judge=Equal(),
    ),
    Claim(
        id="example.two_stages.slots",
        where="III.C",
        says="The two stages take 4 and 8 steps.",
        unit="slots",
        printed=(4, 8),
        judge=Equal(),
    ),
    Claim(
        id="example.two_stages",
        where="III.C, Fig. 2 (b)",
        says="In two stages, with a 4-ary tree, the example takes 12 steps.",
        unit="slots",
        printed=12,
        judge=Equal(),
        command="opticoll plan all_gather --fabric optree_paper:ranks=16,wavelengths=2 "
        "--algorithm optree:radices=4x4",
    ),
    Claim(
        id="example.three_stages.depth",
        where="III.C",
        says="The 3-ary tree has a depth of log_3 16 = 3.",
        unit="stages",
        printed=3,
        judge=Rounded(0, "consistent"),
        reading="a depth is a whole number of stages, so the logarithm is rounded",
    ),
    Claim(
        id="example.three_stages.wavelengths",
        where="III.C, Fig. 2 (c)",
        says="The three stages of the 3-ary tree (2, 3 and 3 children) need 8, 12 and 12 "
        "wavelengths.",
        unit="wavelengths",
        printed=(8, 12, 12),
        judge=Equal(),
        remark="In stage 1 opposite arcs of two pairs of nodes can share a wavelength. The paper "
        "gives each pair a wavelength of its own.",
        dispute="A referee says that the tree has unequal groups, for which the paper names no "
        "partners. The two groups of stage 1, which alone differs, are equal",
    ),
    Claim(
        id="example.three_stages",
        where="III.C, Fig. 2 (c)",
        says="In three stages, with a 3-ary tree, the example takes 16 steps.",
        unit="slots",
        printed=16,
        judge=Equal(),
        command="opticoll plan all_gather --fabric optree_paper:ranks=16,wavelengths=2 "
        "--algorithm optree:radices=2x3x3",
        dispute="A referee says that this rests on our rule for unequal groups. The later stages "
        "take 6 slots each, as many as the paper counts; only stage 1, with equal groups, takes 2 "
        "in place of 4",
    ),
    Claim(
        id="example.three_stages.theorem",
        where="III.C with Theorem 1",
        says="Theorem 1 counts the 16 steps of the tree with three stages.",
        unit="steps",
        printed=16,
        judge=Equal("consistent"),
        remark="Computed is Theorem 1 at k = 3.",
    ),
    Claim(
        id="example.fewest",
        where="III.C",
        says="Of the three schemes the 4-ary tree takes the fewest steps.",
        unit="slots",
        judge=AtLeast(1, "fewer is by one slot or more"),
        remark="Slots that the better of the two others takes more.",
    ),
    Claim(
        id="example.trade_off",
        where="III.C",
        says="So there is a trade-off between the number of stages and time: one stage and three "
        "stages take more steps than two.",
        unit="slots",
        judge=AtLeast(1, "more is by one slot or more"),
        reading="the best tree of three stages is meant, not only the 3-ary tree of the example",
        remark="Slots that the better of one stage and three stages takes more than two stages.",
    ),
)

CLAIMS: tuple[Claim, ...] = (
    *_INTRODUCTION,
    *_ARCHITECTURE,
    *_LEMMAS,
    *_EXAMPLE,
    *DESIGN,
    *EVALUATION,
)
