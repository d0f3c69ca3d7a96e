"""What the poster says of networks, times and savings: section 3, abstract and conclusion."""

from __future__ import annotations

from opticoll.papers.judging import (
    AtLeast,
    Claim,
    NotDone,
    NotStated,
    Rounded,
    Used,
    Within,
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
_FULL = "Abstract of the full paper (arXiv, version 2), beside the poster"

_LIGHT = (
    "128 to 4096 ranks, 64 wavelengths of 40 Gb/s, 25 us a step, groups of 2w + 1, float32 "
    "gradients"
)
_ELECTRICAL = "500 ns a cable, whose far end is a switch; flows share links max-min fairly"
_FABRICS = {
    "crossbar": "one switch",
    "fat_tree": "a fat tree with 16 ranks and 8 cables upwards at a leaf",
}
_EXCHANGED = "the abstract's two numbers are exchanged (headline.order)"
_WITHOUT = "numbers of ranks and wavelengths, rates and delays"
_LONG = (
    "Over N = 128 to 1024 (256 with --quick, 4096 with --long) and the four networks, E-Ring and "
    "E-RD."
)

HEADLINE = (
    Claim(
        id="headline.electrical",
        where=_HEADLINE,
        says="WRHT takes 75.76 % less time than all_reduces on electrical networks.",
        unit="%",
        printed=75.76,
        judge=NotStated(f"{_WITHOUT}, topology, and over what is averaged"),
        remark="Judged under readings below.",
    ),
    *(
        Claim(
            id=f"headline.electrical.{fabric}.{rate}",
            where=_HEADLINE,
            says="WRHT takes 75.76 % less time than all_reduces on electrical networks "
            f"({label}, {rate} Gb/s a port).",
            unit="% less time, mean",
            printed=75.76,
            judge=AtLeast(75.76, "as much as is printed, or more"),
            reading=f"{label}, {rate} Gb/s a port; {_ELECTRICAL}; {_LIGHT}",
            remark=_LONG,
        )
        for fabric, label in _FABRICS.items()
        for rate in (10, 40, 100, 400)
    ),
    *(
        Claim(
            id=f"headline.electrical.{fabric}.exchanged",
            where=_HEADLINE,
            says="WRHT takes 91.86 % less time than all_reduces on electrical networks "
            f"({label}, 10 Gb/s a port).",
            unit="% less time, mean",
            printed=91.86,
            judge=AtLeast(91.86, "as much as is printed, or more"),
            reading=f"{_EXCHANGED}; {label}, 10 Gb/s a port, the rate of these that favours WRHT "
            f"most; {_ELECTRICAL}; {_LIGHT}",
            remark=_LONG,
        )
        for fabric, label in _FABRICS.items()
    ),
    *(
        Claim(
            id=f"headline.electrical.{fabric}.{name}",
            where=_HEADLINE,
            says=f"The rate of an electrical port, {label}{words}.",
            unit="Gb/s",
            judge=NotStated("the rate"),
            uses=(used,),
            remark="Shown beside: the rate at which the printed mean comes out, simulated there. A "
            "wavelength has 40 Gb/s, and a rank on the ring 64 of them each way.",
        )
        for fabric, label in _FABRICS.items()
        for name, words, used in (
            ("rate", "", "headline.electrical"),
            ("rate_exchanged", ", for 91.86 %", "headline.optical"),
        )
    ),
    *(
        Claim(
            id=f"headline.electrical.latency.{rate}",
            where=_HEADLINE,
            says=f"The latency of a cable and switch, ports of {rate} Gb/s.",
            unit="ms",
            judge=NotStated("the latency"),
            uses=("headline.electrical",),
            remark="Shown beside: the latency on one switch at which the printed mean comes out, "
            "simulated there; this study has 0.0005 ms.",
        )
        for rate in (40, 100, 400)
    ),
    Claim(
        id="headline.optical",
        where=_HEADLINE,
        says="WRHT takes 91.86 % less time than all_reduces on optical networks.",
        unit="%",
        printed=91.86,
        judge=NotStated(f"{_WITHOUT}, and over what is averaged"),
        remark="Judged under readings below.",
    ),
    Claim(
        id="headline.optical.mean",
        where=_HEADLINE,
        says="WRHT takes 91.86 % less time than all_reduces on optical networks (mean).",
        unit="% less time than O-Ring, mean over networks and N",
        printed=91.86,
        judge=AtLeast(91.86, "as much as is printed, or more"),
        reading=_LIGHT,
        remark="O-Ring is the one optical baseline in the poster.",
    ),
    Claim(
        id="headline.optical.largest",
        where=_HEADLINE,
        says="WRHT takes 91.86 % less time than all_reduces on optical networks (best N).",
        unit="% less time than O-Ring, mean over networks, at the N that favours WRHT most",
        printed=91.86,
        judge=AtLeast(91.86, "as much as is printed, or more"),
        reading=_LIGHT,
        remark="No choice among these N has a larger mean.",
    ),
    Claim(
        id="headline.optical.exchanged",
        where=_HEADLINE,
        says="WRHT takes 75.76 % less time than all_reduces on optical networks (best N).",
        unit="% less time than O-Ring, mean over networks, at the N that favours WRHT most",
        printed=75.76,
        judge=AtLeast(75.76, "as much as is printed, or more"),
        reading=f"{_EXCHANGED}; {_LIGHT}",
    ),
    Claim(
        id="full.optical",
        where=_FULL,
        says="WRHT takes 80.81, 64.36 and 82.12 % less time than three optical all_reduces.",
        unit="%",
        printed=(80.81, 64.36, 82.12),
        judge=NotDone(
            "not in the poster, which has one of the three; of that text only the "
            "abstract was at hand"
        ),
    ),
    Claim(
        id="full.electrical",
        where=_FULL,
        says="WRHT takes 92.42 and 91.31 % less time than two electrical all_reduces.",
        unit="%",
        printed=(92.42, 91.31),
        judge=NotDone("not in the poster; of that text only the abstract was at hand"),
    ),
    Claim(
        id="headline.order",
        where=_HEADLINE,
        says="75.76 % is against electrical networks, 91.86 % against optical ones.",
        unit="%, means of the full paper: electrical, optical",
        printed=(75.76, 91.86),
        judge=Rounded(2),
        uses=("full.electrical", "full.optical"),
        remark="The means of the full paper come out the other way round.",
    ),
    Claim(
        id="headline.order.exchanged",
        where=_HEADLINE,
        says="The same numbers, exchanged: 91.86 % against electrical, 75.76 % against optical.",
        unit="%, means of the full paper: electrical, optical",
        printed=(91.86, 75.76),
        judge=Rounded(2),
        uses=("full.electrical", "full.optical"),
        reading="the abstract's `respectively` is the wrong way round",
        remark="Two of the three optical baselines are then not in the poster.",
    ),
)

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
        for (model, label), millions in zip(MODELS.items(), (62.3, 138, 25, 6.7977), strict=True)
    ),
    *(
        Claim(
            id=f"setup.{model}.counted",
            where=_SETUP,
            says=f"{label} has {millions} million parameters (counted layer by layer).",
            unit="million parameters",
            printed=millions,
            judge=Within(
                0.05,
                "variants of a network differ by some per cent: grouped convolutions, classifiers "
                "beside the main one",
                share=True,
            ),
            reading="the variant that opticoll knows, that of torchvision",
            command="opticoll list models",
        )
        for (model, label), millions in zip(MODELS.items(), (62.3, 138, 25, 6.7977), strict=True)
    ),
    Claim(
        id="setup.format",
        where=_SETUP,
        says="Different amounts of data of the networks are sent.",
        unit="bytes a parameter",
        judge=NotStated("the number format of gradients"),
        remark="Shown beside: float32, used here.",
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
        judge=NotDone("both are simulated by opticoll here, light by slots, cables by flows"),
    ),
    Claim(
        id="setup.scale",
        where=_SETUP,
        says="Numbers of nodes and wavelengths are varied.",
        unit="",
        judge=NotStated("which"),
    ),
)

FIGURE_2 = (
    Claim(
        id="fig2.values",
        where=_FIGURE,
        says="Times of Ring and RD on electrical networks, of Ring and WRHT on light.",
        unit="bars",
        judge=NotStated("any value: bars without numbers, for unstated scales"),
        remark="fig2_optical and fig2_crossbar, fig2_fat_tree are drawn for stated ones.",
    ),
    *(
        Claim(
            id=f"fig2.optical.{model}",
            where=_FIGURE,
            says=f"WRHT takes less time than O-Ring ({label}).",
            unit="% less time, the least of N = 128 to 4096",
            judge=AtLeast(0, "at no number of ranks slower"),
            reading=_LIGHT,
            remark="Every step of WRHT sends the whole gradient on one wavelength, every step of "
            "the ring 1/N of it.",
            command="opticoll compare all_reduce --fabric optree_paper:ranks=256 --algorithms "
            f"ring,wrht --size {size}",
        )
        for (model, label), size in zip(
            MODELS.items(), ("249200000B", "552MB", "100MB", "27190800B"), strict=True
        )
    ),
    *(
        Claim(
            id=f"fig2.electrical.{fabric}.{algorithm}",
            where=_FIGURE,
            says=f"WRHT takes less time than {name} ({label}).",
            unit="Gb/s of a port below which WRHT is faster for all networks and N",
            judge=AtLeast(40, "a port as fast as one wavelength; WRHT has 64 of them"),
            reading=f"{label}; {_ELECTRICAL}; {_LIGHT}",
            remark="N = 128 to 1024 (256 with --quick, 4096 with --long).",
        )
        for fabric, label in _FABRICS.items()
        for algorithm, name in (("ring", "E-Ring"), ("recursive_doubling", "E-RD"))
    ),
)

CONCLUSION = (
    Claim(
        id="conclusion.steps",
        where="4 Conclusion",
        says="Several wavelengths reduce the total number of steps.",
        unit="times as many steps with one wavelength as with 64, the least of N = 16 to 4096",
        judge=AtLeast(2, "half the steps at least"),
        reading="groups of 2w + 1",
    ),
    Claim(
        id="conclusion.electrical",
        where="4 Conclusion",
        says="WRHT significantly outperforms all_reduces on electrical networks.",
        unit="% less time, mean",
        judge=AtLeast(10, "significantly: a tenth at least"),
        reading=f"one switch, ports as fast as a wavelength, 40 Gb/s; {_ELECTRICAL}; {_LIGHT}",
        remark=_LONG,
    ),
    Claim(
        id="conclusion.optical",
        where="4 Conclusion",
        says="WRHT significantly outperforms all_reduces on optical networks.",
        unit="% less time than O-Ring, mean over networks and N",
        judge=AtLeast(10, "significantly: a tenth at least"),
        reading=_LIGHT,
    ),
)
