"""What the poster says of networks, times and savings: section 3, abstract and conclusion."""

from __future__ import annotations

from opticoll.papers.judging import (
    AtLeast,
    Claim,
    NotDone,
    NotStated,
    Rounded,
    Used,
)

MODELS = {
    "alexnet": "AlexNet",
    "vgg16": "VGG16",
    "resnet50": "ResNet50",
    "googlenet": "GoogLeNet",
}

_HEADLINE = "Abstract; 4 Conclusion"
_SETUP = "3 Experimental setup"
_FIGURE = "3 Results, Fig. 2"
_FULL = "Another text: abstract of the full paper (arXiv 2207.10982, version 2)"

_LIGHT = "64 wavelengths of 40 Gb/s, 25 us a step, groups of 2w + 1, float32 gradients"
_ELECTRICAL = "500 ns a cable, whose far end is a switch; flows share links max-min fairly"
_EXCHANGED = "the abstract's two numbers are exchanged (headline.order.exchanged)"
_MEANS = "the poster's two numbers are means of those of the full paper"
_AS_MUCH = "as much as is printed, or more"
_BEST = (
    "The mean over four networks at that number of ranks from 128 to 4096 that favours WRHT most. "
    "O-Ring is the one optical baseline in the poster."
)
_WITHOUT = "numbers of ranks and wavelengths, rates and delays"
_LONG = (
    "The mean over E-Ring and E-RD, four networks and N = 128 to 1024 (256 with --quick, 4096 with "
    "--long)."
)

HEADLINE = (
    Claim(
        id="headline.electrical",
        where=_HEADLINE,
        says="WRHT takes 75.76 % less time than all_reduces on electrical networks.",
        unit="% less time",
        printed=75.76,
        judge=NotStated(f"{_WITHOUT}, topology, and over what is averaged"),
        remark="The next rows assume them.",
    ),
    Claim(
        id="headline.electrical.10",
        where=_HEADLINE,
        says="WRHT takes 75.76 % less time than all_reduces on electrical networks; here with "
        "slow ports.",
        unit="% less time",
        printed=75.76,
        judge=AtLeast(75.76, _AS_MUCH),
        reading=f"one switch, 10 Gb/s a port; {_ELECTRICAL}; {_LIGHT}",
        remark=_LONG,
    ),
    Claim(
        id="headline.electrical.40",
        where=_HEADLINE,
        says="WRHT takes 75.76 % less time than all_reduces on electrical networks; here with "
        "ports as fast as a wavelength.",
        unit="% less time",
        printed=75.76,
        judge=AtLeast(75.76, _AS_MUCH),
        reading=f"one switch, 40 Gb/s a port; {_ELECTRICAL}; {_LIGHT}",
        remark=_LONG,
    ),
    Claim(
        id="headline.electrical.exchanged",
        where=_HEADLINE,
        says="WRHT takes 91.86 % less time than all_reduces on electrical networks, if the "
        "abstract's two numbers are exchanged.",
        unit="% less time",
        printed=91.86,
        judge=AtLeast(91.86, _AS_MUCH),
        reading=f"{_EXCHANGED}; one switch, 10 Gb/s a port; {_ELECTRICAL}; {_LIGHT}",
        remark=_LONG,
    ),
    Claim(
        id="headline.electrical.rate",
        where=_HEADLINE,
        says="Electrical networks have some rate.",
        unit="Gb/s",
        judge=NotStated("the rate"),
        uses=("headline.electrical", "headline.optical"),
        remark="Shown beside: the rates of a port that give 75.76 % on one switch and on a fat "
        "tree, then those that give 91.86 %, each simulated. A rank on the ring has 64 wavelengths "
        "of 40 Gb/s each way.",
    ),
    Claim(
        id="headline.electrical.latency",
        where=_HEADLINE,
        says="Electrical networks have some latency.",
        unit="ms",
        judge=NotStated("the latency"),
        uses=("headline.electrical",),
        remark="Shown beside: the latencies of a cable and switch that give 75.76 % on one "
        "switch, with ports of 40, 100 and 400 Gb/s, each simulated. This study has 0.0005 ms.",
    ),
    Claim(
        id="headline.optical",
        where=_HEADLINE,
        says="WRHT takes 91.86 % less time than all_reduces on optical networks.",
        unit="% less time",
        printed=91.86,
        judge=NotStated(f"{_WITHOUT}, and over what is averaged"),
        remark="The next rows assume them.",
    ),
    Claim(
        id="headline.optical.assumed",
        where=_HEADLINE,
        says="WRHT takes 91.86 % less time than all_reduces on optical networks; here than O-Ring.",
        unit="% less time",
        printed=91.86,
        judge=AtLeast(91.86, _AS_MUCH),
        reading=_LIGHT,
        remark=_BEST,
    ),
    Claim(
        id="headline.optical.exchanged",
        where=_HEADLINE,
        says="WRHT takes 75.76 % less time than all_reduces on optical networks, if the abstract's "
        "two numbers are exchanged.",
        unit="% less time",
        printed=75.76,
        judge=AtLeast(75.76, _AS_MUCH),
        reading=f"{_EXCHANGED}; {_LIGHT}",
        remark=_BEST,
    ),
    Claim(
        id="full.optical",
        where=_FULL,
        says="WRHT takes 80.81, 64.36 and 82.12 % less time than three optical all_reduces.",
        unit="% less time",
        printed=(80.81, 64.36, 82.12),
        judge=NotDone("not in the poster; of the full paper only the abstract was at hand"),
    ),
    Claim(
        id="full.electrical",
        where=_FULL,
        says="WRHT takes 92.42 and 91.31 % less time than two electrical all_reduces.",
        unit="% less time",
        printed=(92.42, 91.31),
        judge=NotDone("not in the poster; of the full paper only the abstract was at hand"),
    ),
    Claim(
        id="headline.order",
        where=f"{_HEADLINE}, with the full paper",
        says="75.76 % is against electrical networks, 91.86 % against optical ones.",
        unit="% less time",
        printed=(75.76, 91.86),
        judge=Rounded(2),
        uses=("full.electrical", "full.optical"),
        reading=_MEANS,
        remark="Electrical, then optical. The means are the other way round.",
    ),
    Claim(
        id="headline.order.exchanged",
        where=f"{_HEADLINE}, with the full paper",
        says="75.76 % and 91.86 % are exchanged: 91.86 % is against electrical networks, 75.76 % "
        "against optical ones.",
        unit="% less time",
        printed=(91.86, 75.76),
        judge=Rounded(2),
        uses=("full.electrical", "full.optical"),
        reading=f"{_MEANS}; the abstract's `respectively` is the wrong way round",
        remark="Electrical, then optical. Two of the three optical baselines are then not in the "
        "poster.",
    ),
)

_MILLIONS = (62.3, 138, 25, 6.7977)

SETUP = (
    *(
        Claim(
            id=f"setup.{model}",
            where=_SETUP,
            says=f"{label} has {millions} million parameters.",
            unit="million parameters",
            printed=millions,
            judge=Used(),
        )
        for (model, label), millions in zip(MODELS.items(), _MILLIONS, strict=True)
    ),
    Claim(
        id="setup.format",
        where=_SETUP,
        says="Different amounts of data of the networks are sent.",
        unit="bytes",
        judge=NotStated("the number format of gradients"),
        remark="Shown beside: a parameter in float32, used here.",
    ),
    Claim(
        id="setup.dataset",
        where=_SETUP,
        says="The dataset is ImageNet.",
        unit="",
        judge=NotDone("the time of an all_reduce does not depend on it"),
    ),
    Claim(
        id="setup.simulators",
        where=_SETUP,
        says="Light is simulated by a simulator of the authors, electrical networks by SimGrid.",
        unit="",
        judge=NotDone(
            "the authors' simulator is not published; here opticoll simulates both, light by slots "
            "and cables by flows. Its flows are compared with SimGrid elsewhere: docs/validation.md"
        ),
    ),
    Claim(
        id="setup.scale",
        where=_SETUP,
        says="Numbers of nodes and wavelengths are varied.",
        unit="",
        judge=NotStated("which"),
    ),
    Claim(
        id="setup.algorithms",
        where=_FIGURE,
        says="The baselines are Ring and RD, on electrical networks, and Ring on light.",
        unit="",
        judge=NotStated(
            "what RD does where N is no power of two; here N is one, and RD is recursive doubling "
            "of whole vectors"
        ),
    ),
)

FIGURE_2 = (
    Claim(
        id="fig2.values",
        where=_FIGURE,
        says="Bars show times of Ring and RD on electrical networks, of Ring and WRHT on light.",
        unit="",
        judge=NotStated("any value, and the scales of the bars"),
        remark="fig2_optical, fig2_crossbar and fig2_fat_tree are drawn for stated ones.",
    ),
    *(
        Claim(
            id=f"fig2.optical.{model}",
            where=f"{_FIGURE}; 4 Conclusion",
            says=f"WRHT takes less time than O-Ring for {label}.",
            unit="% less time",
            judge=AtLeast(1, "one per cent: less is no difference"),
            reading=f"{_LIGHT}; at every number of ranks",
            remark="The least of N = 128 to 4096. Every step of WRHT sends the whole gradient on "
            "one wavelength, every step of the ring 1/N of it.",
            command="opticoll compare all_reduce --fabric optree_paper:ranks=256 --algorithms "
            f"ring,wrht --size {size}",
        )
        for (model, label), size in zip(
            MODELS.items(), ("249200000B", "552MB", "100MB", "27190800B"), strict=True
        )
    ),
    *(
        Claim(
            id=f"fig2.electrical.{algorithm}",
            where=f"{_FIGURE}; 4 Conclusion",
            says=f"WRHT takes less time than {name}.",
            unit="Gb/s",
            judge=AtLeast(40, "a port as fast as one wavelength; WRHT has 64 of them"),
            reading=f"one switch; {_ELECTRICAL}; {_LIGHT}",
            remark="The rate of a port below which WRHT is faster for all four networks and every "
            "N from 128 to 1024 (256 with --quick, 4096 with --long).",
        )
        for algorithm, name in (("ring", "E-Ring"), ("recursive_doubling", "E-RD"))
    ),
)

CONCLUSION = (
    Claim(
        id="conclusion.steps",
        where="4 Conclusion",
        says="Several wavelengths reduce the total number of steps.",
        unit="times the steps",
        judge=AtLeast(1.01, "one per cent: less is no difference"),
        reading="groups of 2w + 1",
        remark="With one wavelength, over those with 64: the least of N = 16 to 4096.",
    ),
    Claim(
        id="conclusion.electrical",
        where="4 Conclusion",
        says="WRHT significantly outperforms all_reduces on electrical networks.",
        unit="% less time",
        judge=AtLeast(10, "significantly: a tenth at least"),
        reading=f"one switch, ports as fast as a wavelength, 40 Gb/s; {_ELECTRICAL}; {_LIGHT}",
        remark=_LONG,
    ),
    Claim(
        id="conclusion.optical",
        where="4 Conclusion",
        says="WRHT significantly outperforms all_reduces on optical networks.",
        unit="% less time",
        judge=AtLeast(10, "significantly: a tenth at least"),
        reading=_LIGHT,
        remark="Than O-Ring, mean over four networks and N = 128 to 4096.",
    ),
)
