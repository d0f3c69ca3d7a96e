"""Slides on the network: blocking on the ladder, the testbed, and congestion."""

from __future__ import annotations

from opticoll_papers.judging import (
    AtLeast,
    AtMost,
    Between,
    Claim,
    NotStated,
    Used,
    Within,
)

_LADDER = "Blocking probability"
_BURSTS = (
    "opticoll traffic --simulator burst --fabric ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s"
)

LADDER = (
    Claim(
        id="ladder.network",
        where=_LADDER,
        says="The network is a ladder of 2 x 5 nodes.",
        unit="nodes",
        printed=10,
        judge=Used(),
        command=_BURSTS,
    ),
    Claim(
        id="ladder.computers",
        where=_LADDER,
        says="It connects 100 computers.",
        unit="computers",
        printed=100,
        judge=Used(),
        command=_BURSTS,
    ),
    Claim(
        id="ladder.wavelengths",
        where=_LADDER,
        says="A link has 28 wavelengths.",
        unit="wavelengths",
        printed=28,
        judge=Used(),
        command=_BURSTS,
    ),
    Claim(
        id="ladder.rate",
        where=_LADDER,
        says="A wavelength has the rate of 10 Gb Ethernet.",
        unit="bit/s",
        printed=10 * 10**9,
        judge=Used(),
        command=_BURSTS,
    ),
    Claim(
        id="ladder.load",
        where=_LADDER,
        says='The "traffic intensity" is 0.9.',
        unit="erlang",
        printed=0.9,
        judge=Used(),
        remark="The slide does not say of what; `ladder.loss` lists the readings.",
        command=_BURSTS,
    ),
    Claim(
        id="ladder.length",
        where=_LADDER,
        says="A burst lasts 100 ms.",
        unit="s",
        printed=0.1,
        judge=Used(),
        remark="Bytes of a burst over the rate of a wavelength.",
        command=_BURSTS,
    ),
    Claim(
        id="ladder.bytes",
        where=_LADDER,
        says="That is about 100 MB at 10 Gb/s.",
        unit="bytes",
        printed=100 * 10**6,
        judge=Within(0.5, "about, with one printed digit: half of it either way", share=True),
        uses=("ladder.length", "ladder.rate"),
        remark="100 ms at 10 Gb/s are 125 MB, overheads left out.",
    ),
    Claim(
        id="ladder.source",
        where=_LADDER,
        says="Bursts come as a Poisson process.",
        unit="share lost",
        printed=0.214582,
        evaluates="Erlang's loss formula, which holds for a Poisson process: 10 erlang on 10 "
        "wavelengths",
        judge=Within(0.03, "of 2e5 bursts, by chance", share=True, good="used"),
        remark="One link between two nodes of ten computers each, without queues. What the slide "
        "leaves open (whether a computer that sends already queues, sends beside, or drops) is "
        "among the readings of `ladder.loss`.",
        command="opticoll traffic --simulator burst --fabric "
        "custom:ranks=2,links=0-1,rate=10Gb/s,hosts=10,wavelengths=10 --source poisson "
        "--offered-load 1 --destinations other_nodes --bursts 2e5",
    ),
    Claim(
        id="ladder.destination",
        where=_LADDER,
        says="A burst goes to a random node.",
        unit="times mean",
        judge=Between(
            1, 1.2, "uniform but for chance, of some 2000 bursts for each pair", good="used"
        ),
        remark="The largest count of a pair of nodes over the mean.",
        command=_BURSTS,
    ),
    Claim(
        id="ladder.loss",
        where=_LADDER,
        says='Fewer than one burst in 10^6 is lost at a "traffic intensity" of 0.9, by assignment '
        "of wavelengths.",
        unit="share lost",
        printed=1e-6,
        judge=Between(0, 1e-6, "the whole interval of 95 % lies below one in 10^6"),
        reading="a computer sends one burst at a time and queues the others, 0.9 is the "
        "load of a computer, a burst takes the first wavelength that is free on its whole path, "
        "and receivers are no bottleneck",
        dispute="The slide states none of this, and a referee may hold another reading to be the "
        "obvious one: of the ten readings in the list three meet the claim. Wavelengths "
        "at random and full converters meet it as well, so that their assignment is not shown to "
        "be the cause. The one that is judged gives every printed word a meaning: a load below 1, "
        "a Poisson process for each computer, and assignment of wavelengths",
        command=_BURSTS,
    ),
)

_TESTBED = "Experimental evaluation of OBS network"
_RING_OF_FOUR = (
    "the four nodes form a ring, two of them with two computers and two with one; links have 4 "
    "wavelengths, bursts last 100 ms, and the load of a computer is 0.9"
)
_SIX = (
    "custom:ranks=6,switches=4,links=0-6+1-6+2-7+3-7+4-8+5-9+6-7+7-8+8-9+9-6,rate=10Gb/s,hosts=1,"
    "wavelengths=4"
)

TESTBED = (
    Claim(
        id="testbed.nodes",
        where=_TESTBED,
        says="Six computers are connected by four nodes.",
        unit="nodes, computers",
        printed=(4, 6),
        judge=Used(),
        remark="Of the network of `testbed.assignment`.",
        command=f"opticoll congestion all_gather --fabric {_SIX} --algorithm ring --ports 2 "
        "--size 100kB",
    ),
    Claim(
        id="testbed.links",
        where=_TESTBED,
        says="Nodes have tunable transponders and are joined by links of several wavelengths.",
        unit="",
        judge=NotStated("how the nodes are joined, how many wavelengths, which rates"),
    ),
    Claim(
        id="testbed.assignment",
        where=_TESTBED,
        says="Congestion is controlled by assigning wavelengths.",
        unit="times fewer lost",
        judge=AtLeast(10, "controlled: an order of magnitude fewer are lost"),
        reading=_RING_OF_FOUR,
        remark="Lost without control: wavelengths chosen at random among those free on the first "
        "link; with control: a wavelength that is free on the whole path. The ratio is that of the "
        "lower end of the first interval of 95 % to the upper end of the second.",
        command=f"opticoll traffic --simulator burst --fabric {_SIX} --bursts 2e5",
    ),
    Claim(
        id="testbed.switching",
        where="Congestion control by wavelength assignment and path switching time",
        says="The time to switch a path was measured.",
        unit="",
        judge=NotStated("the slide is a picture without numbers in its text"),
    ),
)

_CONGESTION = "Collective communication in real optical network environment"
_LOADED = (
    "the network is the ladder of 100 computers, with 10 wavelengths and bursts of 100 ms at a "
    "load of 0.6 beside; messages of 100 kB, two ports"
)
_COMMAND = (
    "opticoll congestion {} --fabric ladder:rungs=5,hosts=10,wavelengths=10,rate=10Gb/s "
    "--algorithm {} --size 100kB --ports 2 --offered-load 0.6 --replications 100"
)
_RING = _COMMAND.format("all_gather", "ring")
_TREE = _COMMAND.format("broadcast", "binomial")

CONGESTION = (
    Claim(
        id="congestion.blocked",
        where=_CONGESTION,
        says="Wavelengths bound the lightpaths, so that some cannot be set up (a ladder with 10 "
        "wavelengths).",
        unit="% blocked",
        judge=AtLeast(5, "more often than one time in 20"),
        reading=_LOADED,
        remark="Collectives that meet a blocked setup, of as many rings as binomial trees, without "
        "retries. Wavelengths and load were chosen so that setups are blocked.",
        command=f"{_RING} --retries 0",
    ),
    Claim(
        id="congestion.blocked_own",
        where=_CONGESTION,
        says="Wavelengths bound the lightpaths, so that some cannot be set up (the slides' own "
        "ladder).",
        unit="% blocked",
        judge=AtLeast(5, "more often than one time in 20"),
        reading="the network is the ladder of 100 computers, with 28 wavelengths and bursts of "
        "100 ms at a load of 0.9 beside; messages of 100 kB, two ports",
        remark="As `congestion.blocked`.",
        command=_RING.replace("wavelengths=10", "wavelengths=28").replace("0.6", "0.9")
        + " --retries 0",
    ),
    Claim(
        id="congestion.fails",
        where=_CONGESTION,
        says="A collective that meets congestion fails.",
        unit="% failed",
        printed=100,
        evaluates="the words: each collective that meets a blocked setup",
        judge=Used(),
        remark="Without retries the simulator fails such a collective by definition.",
        command=f"{_RING} --retries 0",
    ),
    Claim(
        id="congestion.multiple",
        where=_CONGESTION,
        says="Congestion is a problem of algorithms that use several paths at a time, such as the "
        "ring.",
        unit="times failures",
        judge=AtLeast(1, "no fewer than of an algorithm that uses one path at a time"),
        reading=_LOADED,
        remark="Failures of the ring (all_gather, two ports) over those of a linear broadcast with "
        "one port, without retries. A linear broadcast asks for 99 paths one after the other, the "
        "ring once for 100.",
        command=f"{_RING} --retries 0",
    ),
    Claim(
        id="congestion.multiple_request",
        where=_CONGESTION,
        says="To ask for several paths at once is a problem (each request).",
        unit="times blocked",
        judge=AtLeast(1.5, "a problem: a request for all paths is blocked clearly more often"),
        reading=_LOADED,
        remark="Share of blocked requests of the ring over that of the linear broadcast. A request "
        "for 100 paths is blocked more often than one for a single path by construction; the row "
        "says by how much.",
        command=f"{_RING} --retries 0",
    ),
    Claim(
        id="congestion.retry",
        where=_CONGESTION,
        says="Retrying is necessary.",
        unit="% failed",
        judge=AtMost(5, "with retries nearly all must end, where without retries they fail"),
        reading=f"{_LOADED}; 20 retries",
        remark="Of as many rings as trees. On the slides' own ladder nothing is blocked "
        "(`congestion.blocked_own`), and no retry is needed.",
        command=_RING,
    ),
    Claim(
        id="congestion.allocation",
        where=_CONGESTION,
        says="Algorithms with a hierarchy, such as the binomial tree, need a smart allocation of "
        "paths.",
        unit="times longer",
        judge=NotStated("which paths there are to choose from, and what a smart allocation is"),
        remark="Shown beside, of opticoll's own: placement of ranks on hosts in place of "
        "allocation of paths, in the network of `congestion.blocked`. Ranks in the order of the "
        "hosts, and one after the other at the next node, over the best placement found.",
        command=f"{_TREE} --placement natural,spread,best --congestion degrade",
    ),
)
