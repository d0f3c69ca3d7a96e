"""The items of the OpTree paper, abstract and sections IV to VI: its evaluation and outlook."""

from __future__ import annotations

from opticoll_papers.judging import (
    AtLeast,
    AtMost,
    Between,
    Claim,
    Equal,
    NotDone,
    NotStated,
    Used,
    Within,
)
from opticoll_papers.optree.claims_readings import BRACKET, EVEN, NE, VISIBLE, WRHT

_SETUP = (
    Claim(
        id="setup.simulator",
        where="IV.A",
        says="The simulator is that of the WRHT paper, extended by all_gathers. It computes "
        "formulas from profiles of neural networks.",
        unit="",
        judge=NotDone(
            "it is not published; here formulas of the paper stand beside plans that are "
            "constructed, verified and simulated slot by slot"
        ),
    ),
    Claim(
        id="setup.profiles",
        where="IV.A",
        says="Traces of neural networks are its input.",
        unit="",
        judge=NotStated("which networks and which sizes; no figure or number names one"),
    ),
    Claim(
        id="setup.topology",
        where="IV.A",
        says="The topology is a bidirectional ring.",
        unit="directions",
        printed=2,
        judge=Used(),
    ),
    Claim(
        id="setup.wavelengths",
        where="IV.A",
        says="The default is 64 wavelengths.",
        unit="wavelengths",
        printed=64,
        judge=Used(),
        remark="On each directed fibre. The paper does not say so, but with 64 on both directions "
        "together neither its example nor Table I would agree.",
    ),
    Claim(
        id="setup.rate",
        where="III.A, IV.A",
        says="A wavelength has 40 Gb/s.",
        unit="Gb/s",
        printed=40,
        judge=Used(),
    ),
    Claim(
        id="setup.reconfiguration",
        where="IV.A",
        says="Resonators take 25 us to reconfigure.",
        unit="us",
        printed=25,
        judge=Used(),
    ),
    Claim(
        id="setup.packets",
        where="IV.A",
        says="Packets have 128 bytes, flits 32.",
        unit="bytes",
        printed=(128, 32),
        judge=Used(),
        remark="The options `packet` and `flit` of a ring. They matter for the conversion only: "
        "setup.conversion.",
    ),
    Claim(
        id="setup.conversion",
        where="IV.A",
        says="O/E/O conversion takes a cycle per flit.",
        unit="% of a step",
        judge=NotStated("how long a cycle is, and whether flits are converted while others follow"),
        command="opticoll simulate all_gather --size 4MiB --algorithm ring "
        "--fabric optree_paper:ranks=2,conversion=1ns,flit=32B,packet=message",
        remark="Shown beside: what a conversion at 1 GHz adds to the step of a block of 4 MiB, if "
        "the whole block is converted before it is sent. It has no influence on ratios of step "
        "counts, which give the published reductions: reductions.nodes.ring.",
    ),
    Claim(
        id="setup.data_type",
        where="IV.A",
        says="The data type is float32.",
        unit="",
        judge=NotDone("an all_gather moves bytes whatever they mean; sizes are given in bytes"),
    ),
    Claim(
        id="setup.devices",
        where="IV.A",
        says="Each node has one GPU.",
        unit="",
        judge=NotDone("a rank of opticoll is a node of the ring, whatever computes there"),
    ),
)


def _shape(ranks: int, words: tuple[str, ...]) -> tuple[Claim, Claim]:
    says = f"At {ranks} nodes the curve over depths 5 to 9 is {', then '.join(words)}"
    return (
        Claim(
            id=f"fig4.shape.{ranks}",
            where="IV.B, Fig. 4",
            says=f"{says}; here by Theorem 1.",
            unit="course",
            printed=words,
            judge=Equal("consistent"),
        ),
        Claim(
            id=f"fig4.shape.{ranks}.constructed",
            where="IV.B, Fig. 4",
            says=f"{says}; here by trees that exist.",
            unit="course",
            printed=words,
            judge=Equal(),
            reading=f"{EVEN}; of such trees the best of each depth",
            remark="Constructed and verified.",
        ),
    )


_TIES = (
    "A referee asks for `undecided`, because nearly any depth would pass. A depth that ties is one "
    "of the best, which is all that the paper says; the row says that others are, too"
)


def _best(ranks: int, depth: int) -> tuple[Claim, Claim]:
    return (
        Claim(
            id=f"fig4.best.{ranks}",
            where="IV.B, Fig. 4",
            says=f"At {ranks} nodes depth {depth} is best; here by Theorem 1.",
            unit="stages",
            printed=depth,
            judge=Equal("consistent"),
        ),
        Claim(
            id=f"fig4.best.{ranks}.constructed",
            where="IV.B, Fig. 4",
            says=f"At {ranks} nodes depth {depth} is best; here by trees that exist.",
            unit="slots above the fewest",
            judge=AtMost(0, "best is not off by one; ties are best, too"),
            reading=EVEN,
            remark=f"Slots of the best tree of {depth} stages less those of the best tree of any "
            "depth. Nearly all depths tie, so that other depths would pass, too.",
            dispute=_TIES,
        ),
    )


_FIGURE_FOUR = (
    Claim(
        id="fig4.cases",
        where="IV.B, Fig. 4",
        says="Trees of 512 to 4096 nodes are compared by depth.",
        unit="nodes",
        printed=(512, 1024, 2048, 4096),
        judge=Used(),
    ),
    Claim(
        id="fig4.message",
        where="IV.B",
        says="The message size is 4M.",
        unit="",
        judge=NotStated(
            "the unit, and whether of one node or of all; the figure is normalised, and no ratio "
            "of step counts depends on it"
        ),
    ),
    Claim(
        id="fig4.normalised",
        where="IV.B, Fig. 4",
        says="Results are divided by the optimal result of OpTree.",
        unit="least value",
        printed=1.0,
        judge=Used(),
        evaluates="the words",
        remark="In fig4.csv each number of nodes is divided by its own best.",
    ),
    Claim(
        id="fig4.one_stage",
        where="IV.B, Fig. 4",
        says="Depth 1 is the one-stage model.",
        unit="steps apart",
        judge=AtMost(0, "the same model takes the same steps"),
        remark="Theorem 1 at k = 1 against verified plans of one stage, at 512 and 1024 nodes. The "
        "theorem is stated for k from 2 on.",
    ),
    *_shape(512, ("flat", "rising")),
    *_shape(1024, ("falling", "flat", "rising")),
    *_shape(2048, ("falling", "rising")),
    *_shape(4096, ("falling", "rising")),
    Claim(
        id="fig4.dramatic",
        where="IV.B, Fig. 4",
        says="The rise at 512 and the falls at 2048 and 4096 nodes are dramatic, the rise at 1024 "
        "is rapid.",
        unit="% of the steps",
        judge=AtLeast(10, "a dramatic or rapid change is by a tenth at least"),
        reading="dramatic and rapid mean a share of the steps, not of an axis",
        remark="By Theorem 1; the least of the four changes.",
    ),
    Claim(
        id="fig4.best.lost",
        where="IV.B",
        says="The best depths of 512 and 1024 nodes are named.",
        unit="stages",
        judge=NotStated("these two numbers, which are cut off in the text at hand"),
        remark="Shown beside: the best depths, ties included.",
    ),
    *_best(2048, 7),
    *_best(4096, 8),
    Claim(
        id="fig4.theory",
        where="IV.B",
        says="Simulation is in line with the theory: the best depths are those of Theorem 2.",
        unit="cases of 4",
        judge=AtLeast(4, "a confirmation has no exceptions"),
        reading=f"{EVEN}; k* is rounded up",
        remark="Numbers of nodes at which no tree has fewer slots than the best of k* stages. "
        "Nearly all depths tie, so that other k* would pass, too.",
        dispute=_TIES,
    ),
    Claim(
        id="fig4.one_stage.reduction",
        where="IV.B",
        says="Against one stage OpTree saves time.",
        unit="% of the time",
        judge=NotStated("the percentage, which is cut off in the text at hand"),
        remark="Shown beside: the mean over the four numbers of nodes, by verified plans.",
    ),
)

_FIVE = "IV.C, Fig. 5"
_SIX = "IV.C, Fig. 6"
_BY_STEPS = "By the paper's step counts, as all times of Figs 5 and 6 unless a row says otherwise."
_TIE = "If a step of two blocks took twice as long as one of a block, NE would tie with Ring."

_FIGURE_FIVE = (
    Claim(
        id="fig5.cases",
        where=_FIVE,
        says="1024 and 2048 nodes with 64 wavelengths are compared.",
        unit="nodes, wavelengths",
        printed=(1024, 64, 2048, 64),
        judge=Used(),
    ),
    Claim(
        id="fig5.sizes",
        where=_FIVE,
        says="Sizes of messages lie in a range.",
        unit="",
        judge=NotStated(
            "the range, which is cut off in the text at hand; fig5.csv has 1 KiB to 16 MiB"
        ),
    ),
    Claim(
        id="fig5.normalised",
        where="IV.C, Figs 5 and 6",
        says="Results are divided by the first result of OpTree.",
        unit="",
        judge=NotStated(
            "whether by the first of a figure or of each of its parts; the sentence is damaged in "
            "the text at hand"
        ),
        remark="fig5.csv and fig6.csv divide by the first of the figure. fig5.wrht_falls needs "
        "that of each part.",
    ),
    Claim(
        id="fig5.optree_lowest",
        where=_FIVE,
        says="OpTree takes the least time.",
        unit="times OpTree's",
        judge=AtLeast(1.01, VISIBLE),
        reading=f"{WRHT}; {NE}; {BRACKET}",
        remark=f"{_BY_STEPS} The least of the others.",
    ),
    Claim(
        id="fig5.optree_lowest.constructed",
        where=_FIVE,
        says="OpTree takes the least time; here by plans, beside Ring and NE.",
        unit="times OpTree's",
        judge=AtLeast(1.01, VISIBLE),
        remark="Verified plans, simulated for blocks of 1 KiB to 16 MiB. WRHT is left out: "
        "figures.wrht.",
    ),
    Claim(
        id="fig5.ring_highest",
        where=_FIVE,
        says="Ring takes the most time.",
        unit="times the second",
        judge=AtLeast(1.01, VISIBLE),
        reading=f"{WRHT}; {NE}",
        remark=f"The time of Ring over the longest of the others, at least. {_TIE}",
    ),
    Claim(
        id="fig5.slow_growth",
        where=_FIVE,
        says="Times grow slowly with the size of the message.",
        unit="times as long",
        judge=NotStated("the range of sizes, and whether a message is of one node or of all"),
        remark="Shown beside: from 1 KiB to 16 MiB, if a message is the block of one node.",
    ),
    Claim(
        id="fig5.wrht_falls",
        where=_FIVE,
        says="From 1024 to 2048 nodes the total time of WRHT falls and gets close to OpTree's.",
        unit="times as long",
        judge=AtMost(0.99, VISIBLE),
        reading=f"results of each number of nodes are divided by OpTree's there; {WRHT}; {BRACKET}",
    ),
    Claim(
        id="fig5.reason",
        where=_FIVE,
        says="From 1024 to 2048 nodes the steps of OpTree grow faster than those of WRHT.",
        unit="times the growth",
        judge=AtLeast(1.01, VISIBLE),
        reading=f"{WRHT}; {BRACKET}",
    ),
    Claim(
        id="figures.wrht",
        where="IV.C, Figs 5 and 6",
        says="WRHT takes part in the comparisons.",
        unit="slots",
        judge=NotStated("how WRHT, an all_reduce, gathers: see baseline.wrht"),
        remark="Shown beside: opticoll's own version, every block by a lightpath of its own, at "
        "the two cases of Fig. 5 and the two of Fig. 6. Nearly all of its slots hand out.",
    ),
)

_FIGURE_SIX = (
    Claim(
        id="fig6.cases",
        where=_SIX,
        says="1024 nodes with 96 and with 128 wavelengths are compared.",
        unit="nodes, wavelengths",
        printed=(1024, 96, 1024, 128),
        judge=Used(),
    ),
    Claim(
        id="fig6.optree_lowest",
        where=_SIX,
        says="OpTree takes the least time.",
        unit="times OpTree's",
        judge=AtLeast(1.01, VISIBLE),
        reading=f"{WRHT}; {NE}",
        remark="The least of the others.",
    ),
    Claim(
        id="fig6.optree_lowest.constructed",
        where=_SIX,
        says="OpTree takes the least time; here by plans, beside Ring and NE.",
        unit="times OpTree's",
        judge=AtLeast(1.01, VISIBLE),
        remark="Verified plans, simulated for blocks of 1 KiB to 16 MiB. WRHT is left out: "
        "figures.wrht.",
    ),
    Claim(
        id="fig6.ring_highest",
        where=_SIX,
        says="Ring takes the most time.",
        unit="times the second",
        judge=AtLeast(1.01, VISIBLE),
        reading=f"{WRHT}; {NE}",
        remark=f"The time of Ring over the longest of the others, at least. {_TIE}",
    ),
    Claim(
        id="fig6.optree_falls",
        where=_SIX,
        says="From 96 to 128 wavelengths the time of OpTree falls.",
        unit="times as long",
        judge=AtMost(0.99, VISIBLE),
        remark="The best trees found, simulated for blocks of 1 KiB to 16 MiB.",
    ),
    Claim(
        id="fig6.optree_slightly",
        where=_SIX,
        says="From 96 to 128 wavelengths the time of OpTree falls slightly.",
        unit="% of the steps",
        judge=Between(1, 10, "slightly: by up to a tenth"),
        reading="slightly is a small share of OpTree's own time",
    ),
    Claim(
        id="fig6.wrht_rises",
        where=_SIX,
        says="From 96 to 128 wavelengths the time of WRHT rises.",
        unit="times as long",
        judge=AtLeast(1.01, VISIBLE),
        reading=f"{WRHT}; the increasing trend is that with wavelengths, though the sentence goes "
        "on: with the increasing message size",
    ),
    Claim(
        id="fig6.wrht_ring",
        where=_SIX,
        says="With 128 wavelengths WRHT takes less time than Ring.",
        unit="times Ring's",
        judge=AtMost(0.99, VISIBLE),
        reading=WRHT,
    ),
    Claim(
        id="fig6.wrht_neighbour_exchange",
        where=_SIX,
        says="With 128 wavelengths WRHT takes slightly more time than NE.",
        unit="times NE's",
        judge=Between(1.01, 1.1, "slightly: from one per cent to a tenth more"),
        reading=f"{WRHT}; {NE}",
    ),
)

_CUT = Within(
    0.02,
    "the paper cuts off digits after the second, in each case and again in their mean, which "
    "loses less than 0.01 twice",
)
_CUT_ONCE = Within(0.01, "a mean of two printed numbers, cut off after two digits")
_NAMES = {"wrht": "WRHT", "ring": "Ring", "neighbour_exchange": "NE"}
_STEPS = "a step takes as long in all algorithms, so that sizes and delays cancel"
_OWN = {"wrht": f"; {WRHT}", "ring": "", "neighbour_exchange": f"; {NE}"}
_SETS = {
    "nodes": (
        "on average with different numbers of nodes",
        (56.36, 92.76, 85.54),
        f"1024 and 2048 nodes, as in Fig. 5; {BRACKET}",
    ),
    "wavelengths": (
        "on average with different numbers of wavelengths",
        (88.06, 95.84, 91.69),
        "64, 96, 128 and 256 wavelengths, a set that was searched for because it gives the three "
        "averages (reductions.wavelengths.cases); the text at hand names 96 and 128, and is cut "
        "off where it says which were used",
    ),
}

_SLIP = (
    "The two other headlines agree to the last digit, so that 88.58 looks like a slip for 88.61."
)

_REDUCTIONS = (
    *(
        Claim(
            id=f"reductions.{id}.{name}",
            where="I, IV.C",
            says=f"OpTree saves {value} % of the time of {label} {words}.",
            unit="% of the time",
            printed=value,
            judge=_CUT,
            reading=f"{cases}; {_STEPS}{_OWN[name]}",
        )
        for id, (words, printed, cases) in _SETS.items()
        for (name, label), value in zip(_NAMES.items(), printed, strict=True)
    ),
    Claim(
        id="reductions.wavelengths.cases",
        where="I, IV.C",
        says="The averages are those of different numbers of wavelengths.",
        unit="number of sets",
        judge=NotStated("which; the sentence is cut off in the text at hand"),
        uses=tuple(f"reductions.wavelengths.{name}" for name in _NAMES),
        remark="Shown beside: how many sets of up to five of 15 numbers of wavelengths give all "
        "three printed averages (case_sets.csv).",
    ),
    *(
        Claim(
            id=f"reductions.headline.{name}",
            where="Abstract, VI",
            says=f"OpTree saves {value} % of the time of {label} on average.",
            unit="% of the time",
            printed=value,
            judge=_CUT_ONCE,
            reading="the headline is the mean of the averages over nodes and over wavelengths",
            uses=(f"reductions.nodes.{name}", f"reductions.wavelengths.{name}"),
            remark=_SLIP if name == "neighbour_exchange" else "",
        )
        for (name, label), value in zip(_NAMES.items(), (72.21, 94.30, 88.58), strict=True)
    ),
)

_DISCUSSION = (
    Claim(
        id="discussion.hardware",
        where="V",
        says="A real optical network would give more accurate times.",
        unit="",
        judge=NotDone("outside the scope of the paper, and of a simulator"),
    ),
    Claim(
        id="discussion.terarack",
        where="V",
        says="OpTree is well suited for architectures like TeraRack.",
        unit="",
        judge=NotStated("by which measure; the items on Figs 4 to 6 are about such a ring"),
    ),
    Claim(
        id="discussion.fat_tree",
        where="V",
        says="OpTree can easily fit into a fat tree, with other switch configurations only.",
        unit="times the fastest",
        judge=NotStated("what fits easily, and which configurations; no speed is claimed"),
        command="opticoll plan all_gather --fabric fat_tree:down=16x16,up=1x16 "
        "--algorithm opticoll_papers.optree.fat_tree:optree,radices=4x4x4x4",
        remark="Shown beside: the time of OpTree's sends over that of the fastest other "
        "all_gather, the most over blocks of 1 KiB, 64 KiB and 4 MiB, with full bisection and with "
        "8 cables upwards per leaf. 256 nodes, 16 per leaf, 100 Gb/s and 500 ns per cable, radices "
        "4x4x4x4.",
    ),
    Claim(
        id="conclusion.future",
        where="VI",
        says="Other topologies and mixed devices are left to the future.",
        unit="",
        judge=NotDone("no claim"),
    ),
)

EVALUATION: tuple[Claim, ...] = (
    *_SETUP,
    *_FIGURE_FOUR,
    *_FIGURE_FIVE,
    *_FIGURE_SIX,
    *_REDUCTIONS,
    *_DISCUSSION,
)
