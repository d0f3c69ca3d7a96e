"""What the poster prints, section by section, and how each item is judged."""

from __future__ import annotations

from opticoll.papers.judging import (
    AtLeast,
    AtMost,
    Between,
    Claim,
    Equal,
    NotDone,
    NotStated,
    Used,
)
from opticoll.papers.wrht import claims_results

_ABSTRACT = "Abstract"
_INTRO = "1 Introduction"
_SCHEME = "2 The WRHT scheme"
_REDUCE = f"{_SCHEME}, reduce stage"
_BROADCAST = f"{_SCHEME}, broadcast stage"

_LARGEST_GROUPS = (
    "groups of 2w + 1, the largest that w wavelengths serve; the poster does not fix m"
)
_SIMULATE = "opticoll simulate all_reduce --fabric optree_paper:ranks=1024 --size 100MB --algorithm"
_TRAIN = (
    "opticoll train --model vgg16 --fabric crossbar:ranks=256,rate={rate}Gb/s,latency=500ns "
    "--batch 32 --device v100 --algorithm ring"
)

_OPENING = (
    Claim(
        id="intro.background",
        where=f"{_ABSTRACT}; {_INTRO}",
        says="Training needs fast all_reduces; electrical networks have low rates, high latency "
        "and congestion; light offers rate, low delay and low power.",
        unit="",
        judge=NotDone("background, without numbers"),
    ),
    *(
        claim
        for rate in (10, 100)
        for claim in (
            Claim(
                id=f"intro.share.{rate}.most",
                where=_INTRO,
                says="All_reduces of many workers may take 50 to 90 % of an iteration on "
                "electrical networks (some network).",
                unit="% of an iteration, the largest of four networks",
                judge=AtLeast(50, "the lower end: it may take that much"),
                reading="256 V100 with 32 images each behind one switch of "
                f"{rate} Gb/s, 500 ns a cable; ring; float32 in buckets sent during the backward "
                "pass; the share is what waits for the network",
                command=_TRAIN.format(rate=rate),
            ),
            Claim(
                id=f"intro.share.{rate}.all",
                where=_INTRO,
                says="All_reduces of many workers may take 50 to 90 % of an iteration on "
                "electrical networks (each network).",
                unit="% of an iteration: AlexNet, VGG16, ResNet50, GoogLeNet",
                judge=Between(50, 90, "the printed range, for each of the poster's networks"),
                reading=f"as for intro.share.{rate}.most",
                command=_TRAIN.format(rate=rate),
            ),
        )
    ),
    Claim(
        id="intro.ring_steps",
        where=_INTRO,
        says="A ring all_reduce takes 2 (n - 1) steps.",
        unit="steps, n = 4, 16, 64, 128",
        printed=(6, 30, 126, 254),
        judge=Equal(),
        command=f"{_SIMULATE} ring",
    ),
    Claim(
        id="intro.ring_wavelength",
        where=_INTRO,
        says="The ring assumes one wavelength for each step.",
        unit="wavelengths in use, of 64",
        printed=1,
        judge=Equal(),
        command=f"{_SIMULATE} ring",
    ),
    Claim(
        id="intro.ring_unsuitable",
        where=_INTRO,
        says="So the ring is unsuitable for light: it takes no advantage of several wavelengths.",
        unit="times as long as WRHT, the worst of four networks",
        judge=AtLeast(1.1, "a tenth longer, though its chunks are cut over the wavelengths"),
        reading="128 ranks, 64 wavelengths of 40 Gb/s, 25 us a step; chunks of the ring striped "
        f"over all wavelengths; {_LARGEST_GROUPS}",
        remark="The ring as published uses one wavelength, but nothing ties it to one.",
        command=_SIMULATE.replace("1024", "128") + " ring:stripes=64",
    ),
    Claim(
        id="intro.objective",
        where=_INTRO,
        says="WRHT has the objective of minimising steps and time.",
        unit="steps of WRHT, and a bound; 1024 ranks",
        judge=NotStated("how near to the minimum it claims to come"),
        remark="Shown beside for 64 wavelengths: the steps, and a lower bound on those of plans.",
        command=f"{_SIMULATE} wrht",
    ),
    Claim(
        id="intro.first",
        where=_INTRO,
        says="WRHT is the first scheme for all_reduce on optical interconnects.",
        unit="",
        judge=NotDone("a claim about literature"),
    ),
)

_MECHANISM = (
    Claim(
        id="scheme.terarack",
        where=_SCHEME,
        says="It is built on TeraRack, an architecture of micro-ring resonators.",
        unit="",
        judge=NotDone(
            "devices; the ring of opticoll has what the scheme uses: fibres each way and "
            "wavelengths"
        ),
    ),
    Claim(
        id="scheme.ring",
        where=_SCHEME,
        says="N nodes are joined one after the other to a ring.",
        unit="fabric of opticoll",
        printed="wdm_ring",
        judge=Used(),
        remark="Ranks in a ring, fibres to the next rank each way.",
    ),
    Claim(
        id="scheme.parameters",
        where=_SCHEME,
        says="A waveguide has w wavelengths, each of bandwidth B.",
        unit="wavelengths, bit/s",
        judge=NotStated("w and B"),
        remark="Shown beside: those of the group's OpTree paper, used below.",
    ),
    Claim(
        id="scheme.groups",
        where=_REDUCE,
        says="Step i leaves ceil(N / m^i) representatives.",
        unit="representatives after steps 1 to 4, N = 1024, m = 5",
        printed=(205, 41, 9, 2),
        judge=Equal(),
        command="opticoll show all_reduce --fabric optree_paper:ranks=1024,wavelengths=2 "
        "--algorithm wrht --slot 0",
    ),
    Claim(
        id="scheme.middle",
        where=_REDUCE,
        says="The middle node of a group is its representative.",
        unit="share of groups, N = 1024, m = 5",
        printed=1.0,
        judge=Equal(),
    ),
    Claim(
        id="scheme.group_wavelengths",
        where=_REDUCE,
        says="A representative collects by floor(m / 2) wavelengths.",
        unit="wavelengths in step 1, m = 3, 5, 9, 33, 129",
        printed=(1, 2, 4, 16, 64),
        judge=Equal(),
        command=f"{_SIMULATE} wrht:group_size=9",
    ),
    Claim(
        id="scheme.reuse",
        where=_SCHEME,
        says="Groups share no links, so all use the same wavelengths.",
        unit="links that lightpaths of two groups cross, N = 1024, m = 129",
        printed=0,
        judge=Equal(),
        command=f"{_SIMULATE} wrht",
    ),
    Claim(
        id="scheme.assignment",
        where=_SCHEME,
        says="First fit or best fit assigns the wavelengths within a group.",
        unit="wavelengths in step 1 by first fit, by best fit; m = 129",
        printed=(64, 64),
        judge=Equal(),
        remark="floor(m / 2), as printed, by either.",
        command=f"{_SIMULATE} wrht --wavelength best_fit",
    ),
    Claim(
        id="scheme.group_size",
        where=_REDUCE,
        says="All nodes are partitioned into groups of m.",
        unit="ranks in a group",
        judge=NotStated("m; only that floor(m / 2) wavelengths must do"),
        remark="Shown beside: 2w + 1, the reading of this study, at w = 64. It gives the fewest "
        "steps.",
    ),
    *(
        Claim(
            id=f"scheme.group_size.{model}",
            where=_REDUCE,
            says=f"Groups of m, for the gradient of {label}.",
            unit="best m, ms with it, ms with m = 2w + 1",
            judge=NotStated("m, and what becomes of wavelengths that a group leaves"),
            remark="Shown beside, and not in the poster: the vector is cut over the wavelengths "
            "that groups of m leave, N = 1024, w = 64, m of 3, 5, 9, 17, 129.",
            command=f"{_SIMULATE} wrht:group_size=3,striping=true",
        )
        for model, label in claims_results.MODELS.items()
    ),
    Claim(
        id="scheme.repeated",
        where=_REDUCE,
        says="Grouping is repeated until the wavelengths allow an all-to-all among "
        "representatives.",
        unit="representatives, the most of any N computed, w = 64",
        judge=AtMost(22, "22^2 / 8 = 60.5 of 64 wavelengths; 23 would need 67"),
        remark="N = 16 to 4096, groups of 129 and of 3.",
        command=f"{_SIMULATE} wrht:group_size=3",
    ),
    Claim(
        id="scheme.last",
        where=_SCHEME,
        says="m* = ceil(N / m^(L - 1)) representatives are in the last step, L = ceil(log_m N).",
        unit="representatives, N = 512, 1024, 2048, w = 64",
        printed=(4, 8, 16),
        judge=Equal(),
        reading=_LARGEST_GROUPS,
        command=f"{_SIMULATE} wrht",
    ),
    Claim(
        id="scheme.all_to_all.even",
        where=_SCHEME,
        says="Their all-to-all requires ceil(m*^2 / 8) wavelengths (even m*).",
        unit="wavelengths, m* = 2, 4, 6, ... 16",
        printed=(1, 2, 5, 8, 13, 18, 25, 32),
        judge=Equal(),
        command="opticoll simulate all_reduce --fabric optree_paper:ranks=16 --algorithm wrht "
        "--size 1MB",
    ),
    Claim(
        id="scheme.all_to_all.odd",
        where=_SCHEME,
        says="Their all-to-all requires ceil(m*^2 / 8) wavelengths (odd m*).",
        unit="wavelengths, m* = 3, 5, 7, ... 15",
        printed=(2, 4, 7, 11, 16, 22, 29),
        judge=Equal(),
        remark="An odd ring has no ties of two ways: (m*^2 - 1) / 8 do. The formula is an upper "
        "bound.",
        command="opticoll simulate all_reduce --fabric optree_paper:ranks=15 --algorithm wrht "
        "--size 1MB",
    ),
    Claim(
        id="scheme.mirror",
        where=_BROADCAST,
        says="The broadcast stage is the reduce stage backwards.",
        unit="share of transfers with their mirror image, N = 1024, w = 2",
        printed=1.0,
        judge=Equal(),
    ),
    Claim(
        id="scheme.figure_1",
        where="Figure 1",
        says="A drawing of the working principle.",
        unit="",
        judge=NotDone("a drawing without numbers; what it shows is judged item by item above"),
    ),
    Claim(
        id="scheme.figure_3",
        where=_BROADCAST,
        says="The broadcast stage is in the lower part of Figure 3.",
        unit="figure",
        printed=3,
        judge=NotDone("a misprint: there are two figures; Figure 1 must be meant"),
    ),
)


def _steps(ranks: int, wavelengths: int, group: int) -> int:
    """The poster's count: 2L, or 2L - 1 where the last representatives' all-to-all fits."""
    depth, reach = 1, group
    while reach < ranks:
        depth, reach = depth + 1, reach * group
    last = -(-ranks // (reach // group))
    return 2 * depth - int(last**2 <= 8 * wavelengths)


_COUNTS = (
    *(
        Claim(
            id=f"steps.{wavelengths}",
            where=_BROADCAST,
            says="WRHT takes 2 ceil(log_m N) or 2 ceil(log_m N) - 1 steps.",
            unit=f"steps, N = 16, 32, ... 4096, w = {wavelengths}",
            printed=tuple(
                _steps(2**power, wavelengths, 2 * wavelengths + 1) for power in range(4, 13)
            ),
            judge=Equal(),
            reading=_LARGEST_GROUPS,
            remark="Which of the two: 2L - 1 where the all-to-all of m* representatives fits.",
            command=f"{_SIMULATE.replace('1024', f'1024,wavelengths={wavelengths}')} wrht",
        )
        for wavelengths in (1, 2, 4, 16, 64, 128, 256)
    ),
    Claim(
        id="steps.groups",
        where=_BROADCAST,
        says="The same for groups of any m: 2 ceil(log_m N) or one less.",
        unit="steps, N = 1024, w = 64, m = 3, 5, 9, 33, 129",
        printed=tuple(_steps(1024, 64, group) for group in (3, 5, 9, 33, 129)),
        judge=Equal(),
        remark="By the text the all-to-all comes as soon as its wavelengths suffice, here at 22 "
        "representatives; the formula goes on to the last L - 1 levels. For small m the scheme "
        "as described is faster than its formula.",
        command=f"{_SIMULATE} wrht:group_size=3",
    ),
)

CLAIMS: tuple[Claim, ...] = (
    *claims_results.HEADLINE,
    *_OPENING,
    *_MECHANISM,
    *_COUNTS,
    *claims_results.SETUP,
    *claims_results.FIGURE_2,
    *claims_results.CONCLUSION,
)
