"""Slides on the network: blocking on the ladder, the testbed, and congestion."""

from __future__ import annotations

from collections.abc import Iterator

from opticoll.papers.judging import (
    AtLeast,
    AtMost,
    Between,
    Claim,
    NotStated,
    Used,
    Within,
)

_LADDER = "Blocking probability"
_LOSS = 1e-6
_READINGS = {
    "whole_path": "a host sends one burst at a time and queues the others, takes the first "
    "wavelength that is free on the whole path, receivers are no bottleneck; intensity is the load "
    "of a host",
    "random": "the same, a random wavelength of those that are free",
    "converters": "the same, with full converters",
    "poisson": "no queues: several bursts of a host at once; first fit on the whole path",
    "poisson_converters": "no queues, full converters",
    "one_way_pwa": "one-way reservation, wavelengths learned for each destination",
    "one_way_random": "one-way reservation, a random wavelength of those free on the first link",
    "one_way_first_fit": "one-way reservation, the first wavelength free on the first link",
    "busiest_link": "no queues, intensity is that of a wavelength of the busiest link",
    "one_receiver": "queues, first fit on the whole path, one receiver for each host",
}


_OPTIONS = {
    "random": "--assignment random",
    "converters": "--converters full",
    "poisson": "--source poisson",
    "poisson_converters": "--source poisson --converters full",
    "one_way_pwa": "--signalling jet --assignment pwa --warm-up 3e6",
    "one_way_random": "--signalling jet --assignment random",
    "one_way_first_fit": "--signalling jet",
    "busiest_link": "--source poisson --offered-load 2.077",
    "one_receiver": "--receivers 1",
}


def _losses() -> Iterator[Claim]:
    command = (
        "opticoll traffic --simulator burst --fabric "
        "ladder:rungs=5,hosts=10,wavelengths=28,rate=10Gb/s"
    )
    for name, reading in _READINGS.items():
        short = reading.partition(";")[0].partition(", receivers")[0]
        yield Claim(
            id=f"ladder.{name}",
            where=_LADDER,
            says=f"Fewer than one burst in 10^6 is lost at a traffic intensity of 0.9: {short}.",
            unit="share lost, interval of 95 %",
            printed=_LOSS,
            judge=Between(0, _LOSS, "the whole interval lies below one in 10^6"),
            reading=reading,
            command=f"{command} {_OPTIONS.get(name, '')}".rstrip(),
        )


LADDER = (
    Claim(
        id="ladder.network",
        where=_LADDER,
        says="The network is a ladder of 2 x 5 nodes.",
        unit="nodes",
        printed=10,
        judge=Used(),
    ),
    Claim(
        id="ladder.computers",
        where=_LADDER,
        says="It connects 100 computers.",
        unit="computers",
        printed=100,
        judge=Used(),
    ),
    Claim(
        id="ladder.wavelengths",
        where=_LADDER,
        says="A link has 28 wavelengths.",
        unit="wavelengths",
        printed=28,
        judge=Used(),
    ),
    Claim(
        id="ladder.intensity",
        where=_LADDER,
        says="The traffic intensity is 0.9.",
        unit="",
        printed=0.9,
        judge=Used(),
        remark="Of what the slide does not say: see the readings below.",
    ),
    Claim(
        id="ladder.length",
        where=_LADDER,
        says="A burst lasts 100 ms.",
        unit="s",
        printed=0.1,
        judge=Used(),
        remark="Bytes of a burst over the rate of a wavelength.",
    ),
    Claim(
        id="ladder.bytes",
        where=_LADDER,
        says="That is about 100 MB at 10 Gb/s.",
        unit="bytes",
        printed=100 * 10**6,
        judge=Within(0.1, "about: a tenth", share=True),
        remark="100 MB take 80 ms; losses depend on the time alone.",
    ),
    Claim(
        id="ladder.source",
        where=_LADDER,
        says="Bursts come as a Poisson process.",
        unit="",
        judge=NotStated("whether a host that sends already queues, sends beside, or drops"),
        remark="All readings draw the times between bursts of a host from an exponential "
        "distribution.",
    ),
    Claim(
        id="ladder.destination",
        where=_LADDER,
        says="A burst goes to a random node.",
        unit="largest over mean share of a pair",
        judge=Between(1, 1.2, "uniform but for chance: of 100 pairs with some 2000 bursts each"),
    ),
    *_losses(),
    Claim(
        id="ladder.fewest",
        where=_LADDER,
        says="28 wavelengths are used.",
        unit="wavelengths",
        printed=28,
        judge=NotStated("whether fewer would do"),
        uses=("ladder.whole_path",),
        remark="Shown beside: the fewest simulated of which the interval of 95 % lies below one in "
        "10^6 (0: none), under the reading of `ladder.whole_path`.",
    ),
)

_TESTBED = "Experimental evaluation of OBS network"
_RING_OF_FOUR = (
    "four nodes in a ring with two computers each (a ladder of two rungs), 4 wavelengths, bursts "
    "of 100 ms at an intensity of 0.9"
)

TESTBED = (
    Claim(
        id="testbed.nodes",
        where=_TESTBED,
        says="Six computers are connected by four nodes.",
        unit="nodes and computers",
        printed=(4, 6),
        judge=Used(),
        remark="The collective of `testbed.collective` is carried out on so many.",
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
        unit="times as many bursts lost without",
        judge=AtLeast(10, "controlled: an order of magnitude fewer are lost"),
        reading=_RING_OF_FOUR,
        remark="Bursts lost on wavelengths chosen at random without knowing the path, over bursts "
        "lost where a wavelength free on the whole path is assigned (upper end of 95 %).",
        command="opticoll traffic --simulator burst --fabric "
        "ladder:rungs=2,hosts=2,wavelengths=4,rate=10Gb/s",
    ),
    Claim(
        id="testbed.switching",
        where="Congestion control by wavelength assignment and path switching time",
        says="The time to switch a path was measured.",
        unit="",
        judge=NotStated("the slide is a picture without numbers in its text"),
    ),
    Claim(
        id="testbed.collective",
        where=_TESTBED,
        says="Collectives run on the testbed.",
        unit="s",
        judge=NotStated("no collective was timed there"),
        remark="Shown beside: an all_gather of 100 kB from each of six computers by the ring, two "
        "ports, 10 ms for a set-up.",
        command="opticoll congestion all_gather --fabric "
        "ladder:rungs=2,hosts=2,wavelengths=4,rate=10Gb/s --algorithm ring --ranks 6 --ports 2 "
        "--size 100kB",
    ),
)

_CONGESTION = "Collective communication in real optical network environment"
_LOADED = (
    "the ladder of 100 computers with 10 wavelengths and bursts of 100 ms at an intensity of 0.6 "
    "beside; 100 kB, two ports; the slide states no network, and on its own ladder of 28 "
    "wavelengths at 0.9 nothing is refused"
)
_COMMAND = (
    "opticoll congestion {} --fabric ladder:rungs=5,hosts=10,wavelengths=10,rate=10Gb/s "
    "--algorithm {} --size 100kB --ports 2 --offered-load 0.6 --replications 100"
)
_RING = _COMMAND.format("all_gather", "ring")
_TREE = _COMMAND.format("broadcast", "binomial")

CONGESTION = (
    Claim(
        id="congestion.refused",
        where=_CONGESTION,
        says="Wavelengths bound the light paths, so that some cannot be set up.",
        unit="% of ring and tree that meet a refusal",
        judge=AtLeast(5, "more often than one time in 20"),
        reading=_LOADED,
        remark="Of as many rings as trees, without retries.",
        command=_RING,
    ),
    Claim(
        id="congestion.fails",
        where=_CONGESTION,
        says="A collective that meets congestion fails.",
        unit="% of those that meet a refusal, without retries",
        judge=AtLeast(99, "each of them"),
        reading=_LOADED,
        command=f"{_RING} --retries 0",
    ),
    Claim(
        id="congestion.multiple",
        where=_CONGESTION,
        says="That is a problem of algorithms that need several paths at once, such as the ring.",
        unit="failures of the ring over those of linear",
        judge=AtLeast(1, "no fewer than of an algorithm that needs one path at a time"),
        reading=_LOADED,
        remark="Without retries; linear with one port sets up one path after the other. Failures "
        "of the whole collective: linear asks 99 times, the ring once for 100 paths.",
        command=f"{_RING} --retries 0",
    ),
    Claim(
        id="congestion.multiple_request",
        where=_CONGESTION,
        says="To need several paths at once is a problem.",
        unit="refusals of a request of the ring over those of linear",
        judge=AtLeast(2, "a request for all paths is refused clearly more often than for one"),
        reading=_LOADED,
        remark="The same collectives, for each request.",
        command=f"{_RING} --retries 0",
    ),
    Claim(
        id="congestion.retry",
        where=_CONGESTION,
        says="Asking again is necessary.",
        unit="% that fail with 20 retries",
        judge=AtMost(5, "with retries nearly all must end, where without they fail"),
        reading=_LOADED,
        remark="Of as many rings as trees.",
        command=_RING,
    ),
    *(
        Claim(
            id=f"congestion.placement.{name}",
            where=_CONGESTION,
            says="The binomial tree needs a smart allocation of paths.",
            unit="times as long as with the best placement found",
            judge=AtLeast(1.2, "needs: a fifth longer without, more than replications differ"),
            reading=_LOADED,
            remark=f"Ranks {words}; best: least bytes times hops found.",
            command=f"{_TREE} --placement {name},best --congestion degrade",
        )
        for name, words in {
            "natural": "in the order of the hosts, node by node",
            "spread": "one after the other at the next node",
        }.items()
    ),
)
