"""The items of the OpTree paper, abstract and sections IV to VI: its evaluation and outlook."""

from __future__ import annotations

from opticoll.papers.judging import (
    AtLeast,
    AtMost,
    Between,
    Claim,
    Criterion,
    Equal,
    NotDone,
    NotStated,
    Used,
    Within,
)

_ONE_STEP = "all algorithms take the same time for a step"
_WRHT = "the steps of WRHT are those that give Table I's 259: p = 2w + 1, theta = ceil(log_p N)."
_NE = "a step of NE, which carries two blocks, takes as long as one with a single block."
_READINGS = {"wrht": _WRHT, "ring": "", "neighbour_exchange": _NE}
_NAMES = {"wrht": "WRHT", "ring": "Ring", "neighbour_exchange": "NE"}

_CUT_TWICE = Within(
    0.02,
    "the paper cuts after two digits, each case and then their mean: twice less than 0.01 points",
)
_CUT_THRICE = Within(0.03, "and the mean of two such means is cut once more")
_CUT_ONCE = Within(0.01, "a mean of two printed numbers, cut after two digits")

_VISIBLE = "one percent: less is no difference in a figure"

_SETUP = (
    Claim(
        id="setup.simulator",
        where="IV.A",
        says="The simulator is the authors', of formulas, fed with profiles of neural networks.",
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
        unit="directions in which neighbours are reached",
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
        remark="Per direction: only so the paper's example and Table I come out.",
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
        unit="",
        judge=NotDone(
            "circuits carry blocks whole, without headers, so that cutting them into packets "
            "changes no time; flits would matter for the conversion only: see setup.conversion"
        ),
    ),
    Claim(
        id="setup.conversion",
        where="IV.A",
        says="O/E/O conversion takes a cycle per flit.",
        unit="% by which a block of 4 MiB takes longer, were the clock 1 GHz",
        judge=NotStated(
            "the clock. A ring has a delay per lightpath, `conversion`, which is the whole of it "
            "where flits follow one another without a pause, and no setting per flit. Shown is "
            "what a pause of one cycle at 1 GHz after each flit would add, as a lower rate. No "
            "published ratio depends on it, since it is the same in each step"
        ),
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
    says = f"At {ranks} nodes the curve over depths 5 to 9 is {', then '.join(words)}."
    return (
        Claim(
            id=f"fig4.shape.{ranks}",
            where="IV.B, Fig. 4",
            says=says,
            unit="course of the steps, k = 5 to 9",
            printed=words,
            judge=Equal(),
            remark="By Theorem 1. The paper calls some of these rises and falls dramatic; from k = "
            "5 to 9 they are of some percent.",
        ),
        Claim(
            id=f"fig4.shape.{ranks}.constructed",
            where="IV.B, Fig. 4",
            says=f"The same of trees of {ranks} nodes that exist.",
            unit="course of the slots, k = 5 to 9",
            printed=words,
            judge=Equal(),
            remark="Trees of k nearly equal radices, constructed and verified.",
        ),
    )


def _best(ranks: int, depth: int) -> tuple[Claim, Claim]:
    says = f"At {ranks} nodes depth {depth} is best."
    return (
        Claim(
            id=f"fig4.best.{ranks}",
            where="IV.B, Fig. 4",
            says=says,
            unit="stages with the fewest steps by Theorem 1",
            printed=depth,
            judge=Equal(),
        ),
        Claim(
            id=f"fig4.best.{ranks}.constructed",
            where="IV.B, Fig. 4",
            says=f"{says[:-1]} for trees that exist.",
            unit="stages of the best tree found",
            printed=depth,
            judge=Equal(),
            command=f"opticoll plan all_gather --fabric optree_paper:ranks={ranks} "
            "--algorithm optree",
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
        id="fig4.one_stage",
        where="IV.B, Fig. 4",
        says="Depth 1 is the one-stage model.",
        unit="steps at depth 1 less those of one stage, at 512 and 1024 nodes",
        printed=(0, 0),
        judge=Equal(),
        remark="Theorem 1 at k = 1 against plans of one stage.",
    ),
    *_shape(512, ("flat", "rising")),
    *_shape(1024, ("falling", "flat", "rising")),
    *_shape(2048, ("falling", "rising")),
    *_shape(4096, ("falling", "rising")),
    Claim(
        id="fig4.best.lost",
        where="IV.B",
        says="The best depths of 512 and 1024 nodes are named.",
        unit="stages",
        judge=NotStated(
            "in the text at hand these two numbers are cut off; Theorem 1 has ties, shown as "
            "512: and 1024:"
        ),
    ),
    *_best(2048, 7),
    *_best(4096, 8),
    Claim(
        id="fig4.theory",
        where="IV.B",
        says="Simulation confirms the theory: the best depths are those of Theorem 2.",
        unit="of four N at which the best tree that exists has k* stages",
        judge=AtLeast(4, "a confirmation has no exceptions"),
        remark="The figure as described is Theorem 1 plotted, so it cannot confirm it.",
    ),
    Claim(
        id="fig4.one_stage.reduction",
        where="IV.B",
        says="Against one stage OpTree saves time.",
        unit="% on average over the four N, by plans",
        judge=AtLeast(50, "the figure shows one stage far above all others: at least twice"),
        remark="The printed percentage is cut off in the text at hand.",
    ),
)


def _figures(
    id: str, where: str, says: str, unit: str, judge: Criterion, reading: str = _WRHT
) -> tuple[Claim, Claim]:
    """A claim about a figure, by the paper's step counts and by plans."""
    return (
        Claim(
            id=id,
            where=where,
            says=says,
            unit=unit,
            judge=judge,
            reading=reading,
            remark="By the paper's step counts.",
        ),
        Claim(
            id=f"{id}.constructed",
            where=where,
            says=f"{says[:-1]}, by plans that are carried out.",
            unit=unit,
            judge=judge,
            remark="Plans constructed, verified and simulated for blocks of 1 KiB to 16 MiB.",
        ),
    )


_FIVE = "IV.C, Fig. 5"
_SIX = "IV.C, Fig. 6"

_FIGURES_FIVE_AND_SIX = (
    Claim(
        id="fig5.cases",
        where=_FIVE,
        says="1024 and 2048 nodes, 64 wavelengths.",
        unit="nodes, wavelengths",
        printed=(1024, 64, 2048, 64),
        judge=Used(),
    ),
    Claim(
        id="fig5.sizes",
        where=_FIVE,
        says="Sizes of messages lie in a range.",
        unit="",
        judge=NotStated("the range is cut off in the text at hand; here 1 KiB to 16 MiB"),
    ),
    *_figures(
        "fig5.optree_lowest",
        _FIVE,
        "OpTree takes the least time.",
        "times as long as OpTree, the least of the others",
        AtLeast(1.01, _VISIBLE),
    ),
    *_figures(
        "fig5.ring_highest",
        _FIVE,
        "Ring takes the most time.",
        "times as long as the longest of the others, Ring, the least",
        AtLeast(1.01, _VISIBLE),
    ),
    Claim(
        id="fig5.slow_growth",
        where=_FIVE,
        says="Times grow slowly with the size of the message.",
        unit="times as long for 16 MiB as for 1 KiB, if a message is a block",
        judge=NotStated("the range of sizes, and whether a message is of one node or of all"),
    ),
    *_figures(
        "fig5.wrht_falls",
        _FIVE,
        "From 1024 to 2048 nodes the time of WRHT falls.",
        "times as long at 2048 nodes, the most",
        AtMost(0.99, _VISIBLE),
    ),
    Claim(
        id="fig5.wrht_falls.shared",
        where=_FIVE,
        says="The same, if the message is that of all nodes together, 4 MiB.",
        unit="times as long at 2048 nodes",
        judge=AtMost(0.99, _VISIBLE),
        reading=f"{_WRHT} A block is an N-th of the message.",
    ),
    *_figures(
        "fig5.wrht_approaches",
        _FIVE,
        "It comes near that of OpTree.",
        "times the ratio WRHT to OpTree of 1024 nodes, at 2048, the most",
        AtMost(0.9, "nearer by a tenth at least"),
    ),
    *_figures(
        "fig5.reason",
        _FIVE,
        "The steps of OpTree grow faster with N than those of WRHT.",
        "growth of OpTree's steps over that of WRHT's, 1024 to 2048 nodes",
        AtLeast(1.1, "faster by a tenth at least"),
    ),
    Claim(
        id="fig6.cases",
        where=_SIX,
        says="1024 nodes with 96 and with 128 wavelengths.",
        unit="nodes, wavelengths",
        printed=(1024, 96, 1024, 128),
        judge=Used(),
    ),
    *_figures(
        "fig6.optree_lowest",
        _SIX,
        "OpTree takes the least time.",
        "times as long as OpTree, the least of the others",
        AtLeast(1.01, _VISIBLE),
    ),
    *_figures(
        "fig6.ring_highest",
        _SIX,
        "Ring takes the most time.",
        "times as long as the longest of the others, Ring, the least",
        AtLeast(1.01, _VISIBLE),
    ),
    *_figures(
        "fig6.optree_falls",
        _SIX,
        "From 96 to 128 wavelengths the time of OpTree falls.",
        "times as long at 128, the most",
        AtMost(0.99, _VISIBLE),
        reading="",
    ),
    *_figures(
        "fig6.optree_slightly",
        _SIX,
        "It falls slightly only.",
        "times as long at 128, least and most",
        Between(0.9, 0.99, "slightly: by up to a tenth"),
        reading="",
    ),
    *_figures(
        "fig6.wrht_rises",
        _SIX,
        "From 96 to 128 wavelengths the time of WRHT rises.",
        "times as long at 128, the least",
        AtLeast(1.01, _VISIBLE),
    ),
    *_figures(
        "fig6.wrht_ring",
        _SIX,
        "With 128 wavelengths WRHT takes less time than Ring.",
        "times as long as Ring, the most",
        AtMost(0.99, _VISIBLE),
    ),
    *_figures(
        "fig6.wrht_neighbour_exchange",
        _SIX,
        "With 128 wavelengths WRHT takes slightly more time than NE.",
        "times as long as NE, least and most",
        Between(1.001, 1.1, "slightly: by up to a tenth"),
    ),
)


def _reductions(
    id: str,
    where: str,
    says: str,
    printed: tuple[float, float, float],
    *,
    reading: str = "",
    judge: Within = _CUT_TWICE,
    constructed: bool = True,
) -> tuple[Claim, ...]:
    """Reductions against WRHT, Ring and NE: by step counts, and in time by plans."""
    found = []
    for (name, own), value in zip(_READINGS.items(), printed, strict=True):
        sentence = f"OpTree saves {value}% of the time of {_NAMES[name]} {says}."
        found.append(
            Claim(
                id=f"{id}.{name}",
                where=where,
                says=sentence,
                unit="%",
                printed=value,
                judge=judge,
                reading=" ".join(one for one in (reading, own) if one),
                remark=f"By the paper's step counts; {_ONE_STEP}, so sizes and delays cancel.",
            )
        )
        if constructed:
            found.append(
                Claim(
                    id=f"{id}.{name}.constructed",
                    where=where,
                    says=f"{sentence[:-1]}, by plans.",
                    unit="%",
                    printed=value,
                    judge=judge,
                    reading=reading,
                    remark="Time for blocks of 4 MiB, plans constructed, verified and simulated.",
                )
            )
    return tuple(found)


_HEADLINE = (72.21, 94.30, 88.58)
_NODES = (56.36, 92.76, 85.54)
_WAVELENGTHS = (88.06, 95.84, 91.69)
_W256 = "the average takes in w = 64 and w = 256; the paper names 96 and 128 only."

_REDUCTIONS = (
    *_reductions("reductions.nodes", "I, IV.C", "on average over 1024 and 2048 nodes", _NODES),
    *_reductions(
        "reductions.wavelengths",
        "I, IV.C",
        "on average over 96 and 128 wavelengths",
        _WAVELENGTHS,
        constructed=False,
    ),
    *_reductions(
        "reductions.wavelengths.w256",
        "I, IV.C",
        "on average over 64, 96, 128 and 256 wavelengths",
        _WAVELENGTHS,
        reading=_W256,
    ),
    *_reductions(
        "reductions.headline",
        "Abstract, VI",
        "on average over both",
        _HEADLINE,
        reading=_W256,
        judge=_CUT_THRICE,
    ),
    *(
        Claim(
            id=f"reductions.headline.{name}.printed",
            where="Abstract with IV.C",
            says=f"The headline against {_NAMES[name]} is the mean of the two averages.",
            unit="%",
            printed=_HEADLINE[index],
            judge=_CUT_ONCE,
            uses=(f"reductions.nodes.{name}", f"reductions.wavelengths.{name}"),
        )
        for index, name in enumerate(_NAMES)
    ),
    Claim(
        id="reductions.nodes.sets",
        where="IV.C",
        says="The three averages over nodes are those of 1024 and 2048 nodes.",
        unit="other sets of up to five of six N that give the three numbers",
        judge=AtMost(0, "another set would do as well"),
        uses=tuple(f"reductions.nodes.{name}" for name in _NAMES),
        remark="Eq. 2 under each of its readings: see case_sets.csv.",
    ),
    Claim(
        id="reductions.wavelengths.sets",
        where="IV.C",
        says="The three averages over wavelengths are those of 64, 96, 128 and 256.",
        unit="other sets of up to five of 15 w that give the three numbers",
        judge=AtMost(0, "another set would do as well"),
        uses=tuple(f"reductions.wavelengths.{name}" for name in _NAMES),
        remark="Eq. 2 under each of its readings: see case_sets.csv.",
    ),
    *_reductions(
        "reductions.journal.1024",
        "journal version, abstract",
        "on 1024 nodes",
        (72.97, 93.15, 86.32),
        constructed=False,
    ),
    *_reductions(
        "reductions.journal.nodes",
        "journal version, abstract",
        "on average over 512 to 4096 nodes",
        (42.27, 92.74, 85.49),
        constructed=False,
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
        id="discussion.fat_tree.valid",
        where="V",
        says="OpTree fits a fat tree with other switch settings only.",
        unit="violations of the same sends on a fat tree of 256 nodes",
        judge=AtMost(0, "a plan is valid or it is not"),
        command="opticoll plan all_gather --fabric fat_tree:down=16x16,up=1x16 "
        "--algorithm opticoll.papers.optree.fat_tree:optree,radices=4x4x4x4",
    ),
    Claim(
        id="discussion.fat_tree.time",
        where="V",
        says="It fits it well, with full bisection.",
        unit="times as long as the fastest other all_gather, the most over three sizes",
        judge=AtMost(1.1, "what fits well is at most a tenth slower than what is used there"),
        remark="256 nodes, 16 per leaf, 100 Gb/s and 500 ns per cable; blocks of 1 KiB, 64 KiB and "
        "4 MiB; the radices of the ring's best tree.",
    ),
    Claim(
        id="discussion.fat_tree.tapered",
        where="V",
        says="It fits it well, with half as many cables above the leaves as below.",
        unit="times as long as the fastest other all_gather, the most over three sizes",
        judge=AtMost(1.1, "what fits well is at most a tenth slower than what is used there"),
        remark="As discussion.fat_tree.time, with 8 cables upwards per leaf.",
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
    *_FIGURES_FIVE_AND_SIX,
    *_REDUCTIONS,
    *_DISCUSSION,
)
