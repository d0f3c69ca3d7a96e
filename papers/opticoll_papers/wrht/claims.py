"""What the poster prints, section by section, and how each item is judged."""

from __future__ import annotations

from opticoll_papers.judging import (
    AtLeast,
    AtMost,
    Claim,
    Equal,
    NotDone,
    NotStated,
    Used,
)
from opticoll_papers.wrht import claims_results

_ABSTRACT = "Abstract"
_INTRO = "1 Introduction"
_SCHEME = "2 The WRHT scheme"
_REDUCE = f"{_SCHEME}, reduce stage"
_BROADCAST = f"{_SCHEME}, broadcast stage"

_LARGEST_GROUPS = (
    "groups of 2w + 1, the largest that w wavelengths serve; the poster does not fix m"
)
_SIMULATE = "opticoll simulate all_reduce --fabric optree_paper:ranks=1024 --size 100MB --algorithm"
_EVERY = "an algorithm is used as printed everywhere or not at all"

_OPENING = (
    Claim(
        id="intro.background",
        where=f"{_ABSTRACT}; {_INTRO}",
        says="Training needs fast all_reduces. Electrical networks have low rates, high latency "
        "and congestion. Light offers high rates, low delay and low power.",
        unit="",
        judge=NotDone("background, without numbers"),
    ),
    Claim(
        id="intro.wdm",
        where=_ABSTRACT,
        says="WRHT takes advantage of several wavelengths to reduce the time of communication.",
        unit="times longer",
        judge=AtLeast(1.01, "one per cent: less is no difference"),
        reading=f"40 Gb/s a wavelength, 25 us a step; {_LARGEST_GROUPS}",
        remark="The time of WRHT with one wavelength, over that with 64: the least of four "
        "networks and N = 16 to 4096.",
        command=_SIMULATE.replace("ranks=1024", "ranks=1024,wavelengths=1") + " wrht",
    ),
    Claim(
        id="intro.degraded",
        where=_INTRO,
        says="Training degrades when communication costs more than parallel work gains.",
        unit="",
        judge=NotDone("true by its words; no number or case"),
    ),
    Claim(
        id="intro.existing",
        where=f"{_ABSTRACT}; {_INTRO}",
        says="Most existing all_reduces are made for electrical networks and do not use several "
        "wavelengths.",
        unit="",
        judge=NotDone("a claim about literature"),
    ),
    Claim(
        id="intro.share",
        where=_INTRO,
        says="All_reduces of many workers may take 50 to 90 % of an iteration on electrical "
        "networks.",
        unit="networks of 4",
        judge=AtLeast(1, "the poster says `may`: one network is enough"),
        reading="256 V100 with 32 images each behind one switch of 100 Gb/s and 500 ns a cable; "
        "ring; float32 in buckets that are sent during the backward pass; the share is what waits "
        "for the network",
        command="opticoll train --model alexnet --batch 32 --device v100 --algorithm ring "
        "--fabric crossbar:ranks=256,rate=100Gb/s,latency=500ns",
        remark="Of the poster's four networks those whose share is from 50 to 90 %. The poster "
        "cites another paper for it.",
    ),
    Claim(
        id="intro.ring_steps",
        where=_INTRO,
        says="A ring all_reduce takes 2 (n - 1) steps.",
        unit="steps",
        printed=(6, 30, 126, 254),
        judge=Equal(),
        evaluates="the formula at n = 4, 16, 64, 128",
        command=_SIMULATE.replace("1024", "128") + " ring",
    ),
    Claim(
        id="intro.ring_wavelength",
        where=_INTRO,
        says="The ring assumes one wavelength for each step.",
        unit="wavelengths",
        printed=1,
        judge=Used(),
        command=f"{_SIMULATE} ring",
        remark="The plan uses one of the 64 wavelengths of the ring of light.",
    ),
    Claim(
        id="intro.ring_unsuitable",
        where=_INTRO,
        says="The ring is unsuitable for optical networks, because it uses one wavelength in each "
        "step.",
        unit="times faster",
        judge=AtLeast(1.01, "one per cent: less is no difference"),
        reading="a suitable ring cuts its chunks over all wavelengths, which the poster neither "
        "says nor excludes; 128 ranks, 64 wavelengths of 40 Gb/s, 25 us a step",
        remark="The ring with one wavelength in each step, over the ring that uses all of them: "
        "the least of four networks. The first beside WRHT is in `fig2.optical.*`.",
        dispute="A referee asks for rows that compare the ring on all wavelengths with WRHT. The "
        "poster does not make this comparison; the note has it",
        command=_SIMULATE.replace("1024", "128") + " ring:stripes=64",
    ),
    Claim(
        id="intro.objective",
        where=_INTRO,
        says="WRHT has the objective of minimising steps and time.",
        unit="steps",
        judge=NotStated("how near to the minimum it claims to come"),
        remark="Shown beside: steps of WRHT, and a lower bound on those of any plan, for 1024 "
        "ranks and 64 wavelengths.",
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
        unit="neighbours",
        printed=2,
        judge=Used(),
        evaluates="the words",
        remark="The fabric wdm_ring: ranks in a ring, with fibres to the next rank each way.",
        dispute="A referee asks for the reading that fibres go both ways. The printed floor(m / 2) "
        "and the groups that share no link ask for both: with one way half of a group would reach "
        "its middle only through all other groups",
    ),
    Claim(
        id="scheme.nodes",
        where=_SCHEME,
        says="A node is a GPU.",
        unit="",
        judge=NotDone("the time of an all_reduce does not depend on what a node computes with"),
    ),
    Claim(
        id="scheme.parameters",
        where=_SCHEME,
        says="A waveguide has w wavelengths, each of bandwidth B.",
        unit="wavelengths, bit/s",
        judge=NotStated("w and B"),
        remark="Shown beside: those of the group's OpTree paper, which this page uses.",
    ),
    Claim(
        id="scheme.groups",
        where=_REDUCE,
        says="Step i leaves ceil(N / m^i) representatives.",
        unit="representatives",
        printed=(205, 41, 9, 2),
        judge=Equal(),
        evaluates="the formula at N = 1024, m = 5, i = 1, 2, 3, 4",
        command="opticoll show all_reduce --fabric optree_paper:ranks=1024,wavelengths=2 "
        "--algorithm wrht --slot 0",
    ),
    Claim(
        id="scheme.middle",
        where=_REDUCE,
        says="The middle node of a group is its representative.",
        unit="share of groups",
        judge=AtLeast(1, _EVERY, good="used"),
        remark="N = 1024, m = 5, step 1.",
    ),
    Claim(
        id="scheme.reduction",
        where=_REDUCE,
        says="A representative reduces what it has collected, and sends the result in the next "
        "step.",
        unit="violations",
        judge=AtMost(0, "a plan is valid or it is not", good="used"),
        remark="N = 1024, w = 2 and 64. The verifier follows every contribution to every sum.",
    ),
    Claim(
        id="scheme.group_wavelengths",
        where=_REDUCE,
        says="A representative collects by floor(m / 2) wavelengths.",
        unit="wavelengths",
        printed=(1, 2, 2, 4, 8, 16, 64),
        judge=Equal(),
        evaluates="the formula at m = 3, 4, 5, 9, 16, 33, 129",
        command=f"{_SIMULATE} wrht:group_size=9",
    ),
    Claim(
        id="scheme.reuse",
        where=_SCHEME,
        says="Groups share no links, so all use the same wavelengths.",
        unit="shared links",
        judge=AtMost(0, "groups share a link or they do not"),
        remark="Links that lightpaths of two groups cross, in all steps of the reduce stage but "
        "the all-to-all, N = 1024 and 4096, m = 3, 5 and 129.",
        command=f"{_SIMULATE} wrht",
    ),
    Claim(
        id="scheme.assignment",
        where=_SCHEME,
        says="First fit or best fit assigns the wavelengths within a group.",
        unit="wavelengths",
        printed=(64, 64),
        judge=Equal(),
        evaluates="floor(m / 2) at m = 129, for either",
        command=f"{_SIMULATE} wrht --wavelength best_fit",
    ),
    Claim(
        id="scheme.group_size",
        where=_REDUCE,
        says="All nodes are partitioned into groups of m.",
        unit="ranks",
        judge=NotStated("m. It only follows that floor(m / 2) must not exceed w"),
        remark="Shown beside: 2w + 1, the reading of this study, at w = 64. It gives the fewest "
        "steps.",
    ),
    Claim(
        id="scheme.group_size.striped",
        where=_REDUCE,
        says="All nodes are partitioned into groups of m; here with small groups.",
        unit="ms",
        judge=NotStated("m, and what becomes of the wavelengths that a small group leaves"),
        remark="Shown beside, and not in the poster: the time of AlexNet, VGG16, ResNet50 and "
        "GoogLeNet with the best m of 3, 5, 9, 17, 129, if the vector is cut over the wavelengths "
        "that groups leave, N = 1024, w = 64. By hand, VGG16 and m = 3: 552 MB on 64 wavelengths "
        "of 5 GB/s, and 25 us, 13 times. These plans form groups until two representatives are "
        "left, also of fewer than 22, which breaks the rule of `scheme.repeated`; with the 9 steps "
        "of that rule it would be 50.8 ms, since 13 representatives exchange with 3 wavelengths "
        "for each vector; with the 14 of 2 ceil(log_m N) 24.5 ms.",
        command=f"{_SIMULATE} wrht:group_size=3,striping=true",
    ),
    Claim(
        id="scheme.repeated",
        where=_REDUCE,
        says="Grouping is repeated until the wavelengths allow an all-to-all among "
        "representatives.",
        unit="exceptions of 18",
        judge=AtMost(0, "neither one grouping less nor one more", good="used"),
        remark="N = 16, 32, 64 to 4096, w = 64, groups of 129 and of 3: an all-to-all among more "
        "than the wavelengths allow, or a grouping of so few that they would allow it.",
        command=f"{_SIMULATE} wrht:group_size=3",
    ),
    Claim(
        id="scheme.last",
        where=_SCHEME,
        says="m* = ceil(N / m^(L - 1)) representatives are in the last step, L = ceil(log_m N).",
        unit="representatives",
        printed=(4, 8, 16),
        judge=Equal(),
        evaluates="the formula at N = 512, 1024, 2048 with w = 64",
        reading=_LARGEST_GROUPS,
        remark="At N = 128 and 4096 the formula gives 128 and 32, for which 2048 and 128 "
        "wavelengths would be needed; there one more grouping comes, and no all-to-all.",
        command=f"{_SIMULATE} wrht",
    ),
    Claim(
        id="scheme.all_to_all.even",
        where=_SCHEME,
        says="Their all-to-all requires ceil(m*^2 / 8) wavelengths (even m*).",
        unit="wavelengths",
        printed=(1, 2, 5, 8, 13, 18, 25, 32),
        judge=Equal(),
        evaluates="the formula at m* = 2, 4, 6 to 16",
        command="opticoll simulate all_reduce --fabric optree_paper:ranks=16 --algorithm wrht "
        "--size 1MB",
    ),
    Claim(
        id="scheme.all_to_all.odd",
        where=_SCHEME,
        says="Their all-to-all requires ceil(m*^2 / 8) wavelengths (odd m*).",
        unit="wavelengths",
        printed=(2, 4, 7, 11, 16, 22, 29),
        judge=Equal(),
        evaluates="the formula at m* = 3, 5, 7 to 15",
        remark="On an odd ring no two ways are equally long, and (m*^2 - 1) / 8 wavelengths "
        "suffice.",
        command="opticoll simulate all_reduce --fabric optree_paper:ranks=15 --algorithm wrht "
        "--size 1MB",
    ),
    Claim(
        id="scheme.all_to_all.enough",
        where=_SCHEME,
        says="ceil(m*^2 / 8) wavelengths are enough for their all-to-all (odd m*).",
        unit="too few",
        judge=AtMost(0, "they suffice for each m* or they do not"),
        reading="`requires` means that so many are enough",
        remark="Of m* = 3, 5, 7 to 15 those that need more.",
        command="opticoll simulate all_reduce --fabric optree_paper:ranks=15 --algorithm wrht "
        "--size 1MB",
    ),
    Claim(
        id="scheme.alone",
        where=_SCHEME,
        says="There is an all-to-all only if more than one representative is left.",
        unit="ranks",
        printed=0,
        judge=Used(),
        evaluates="the words: ranks in an all-to-all where one is left",
        remark="N = 27, w = 1, m = 3: 9, 3 and 1 are left.",
        command="opticoll show all_reduce --fabric optree_paper:ranks=27,wavelengths=1 "
        "--algorithm wrht --slot 2",
    ),
    Claim(
        id="scheme.mirror",
        where=_BROADCAST,
        says="The broadcast stage is the reduce stage backwards.",
        unit="share of transfers",
        judge=AtLeast(1, _EVERY, good="used"),
        remark="Transfers that go back in the mirrored step, N = 1024, w = 2.",
    ),
    Claim(
        id="scheme.broadcast_wavelengths",
        where=_BROADCAST,
        says="A representative broadcasts by floor(m / 2) wavelengths.",
        unit="wavelengths",
        printed=(1, 2, 2, 4, 8, 16, 64),
        judge=Equal(),
        evaluates="the formula at m = 3, 4, 5, 9, 16, 33, 129",
        remark="In the last step.",
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
    Claim(
        id="steps",
        where=_BROADCAST,
        says="WRHT takes 2 ceil(log_m N) or 2 ceil(log_m N) - 1 steps.",
        unit="steps",
        printed=tuple(_steps(2**power, 64, 129) for power in range(4, 13)),
        judge=Equal(),
        evaluates="the formula at N = 16, 32, 64 to 4096 with w = 64",
        reading=f"{_LARGEST_GROUPS}; one step less where the all-to-all among the last "
        "representatives fits the wavelengths",
        command=f"{_SIMULATE} wrht",
    ),
    Claim(
        id="steps.groups",
        where=_BROADCAST,
        says="WRHT takes 2 ceil(log_m N) or 2 ceil(log_m N) - 1 steps; here with groups of other "
        "sizes.",
        unit="steps",
        printed=tuple(_steps(1024, 64, group) for group in (3, 5, 9, 33, 129)),
        judge=Equal(),
        evaluates="the formula at N = 1024, w = 64, m = 3, 5, 9, 33, 129",
        reading="m may be smaller than 2w + 1, which the poster neither says nor excludes",
        remark="By the text the all-to-all comes as soon as its wavelengths suffice, here at 22 "
        "representatives. The formula goes on to the last level. For small m the scheme as "
        "described is faster than its formula.",
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
