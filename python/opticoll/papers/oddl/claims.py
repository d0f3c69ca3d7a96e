"""What the paper prints, section by section, and how each item is judged."""

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

_INTRO = "1 Introduction"
_ARCHITECTURE = "2 Architecture"
_PROTOTYPE = "3 Prototype"
_TABLE = "Table 1"

_DELAYS = "500 ns a control message, 100 ns to lock, 500 ns a hop; the paper states tuning only"
_GRID = "wss_grid:rows=16,columns=16"
_AT_ONCE = (
    "both transceivers of a node send at once, two parts of the vector in turned dimensions; the "
    "paper has one dimension after the other"
)
_LARGER = "the assumptions printed above the table of larger systems"
_SIMULATE = (
    f"opticoll simulate all_reduce --fabric {_GRID} --algorithm halving_doubling --size 4MiB"
)

_OPENING = (
    Claim(
        id="intro.background",
        where=_INTRO,
        says="Training is distributed, links within nodes are fast, photonics gives bandwidth.",
        unit="",
        judge=NotDone("background, without numbers"),
    ),
    Claim(
        id="intro.share",
        where=_INTRO,
        says="Communication often takes as much as 90 % of the time of computing.",
        unit="%",
        printed=90,
        judge=NotDone("a measurement of others, on machines that the paper does not describe"),
    ),
    Claim(
        id="intro.switches",
        where=_INTRO,
        says="Optical switches with many ports are slow; wavelengths switch in microseconds or "
        "nanoseconds.",
        unit="times as long to set a switch as to tune a laser",
        judge=AtLeast(1000, "slow beside fast: three orders of magnitude"),
        reading="setting the wavelength-selective switches takes 100 ms",
    ),
)

_STEPS = (
    Claim(
        id="ring.steps",
        where=_ARCHITECTURE,
        says="A ring all_reduce takes 2 (N - 1) steps.",
        unit="steps, N = 4, 16, 64, 256",
        printed=(6, 30, 126, 510),
        judge=Equal(),
        command=_SIMULATE.replace("halving_doubling", "ring"),
    ),
    Claim(
        id="ring.efficiency",
        where=_ARCHITECTURE,
        says="So the ring becomes inefficient as the system grows, halving and doubling does not.",
        unit="times as long as halving and doubling",
        judge=AtLeast(1.1, "a tenth longer at least"),
        reading="25 MiB on 1024 nodes behind one switch of 100 Gb/s, 500 ns a message",
        command="opticoll compare all_reduce --fabric "
        "crossbar:ranks=1024,rate=100Gb/s,latency=250ns --algorithms ring,halving_doubling "
        "--size 25MiB",
    ),
    Claim(
        id="hd.steps",
        where=_ARCHITECTURE,
        says="Halving and doubling takes 2 log2 N steps.",
        unit="steps, N = 4, 8, 16, ... 256",
        printed=(4, 6, 8, 10, 12, 14, 16),
        judge=Equal(),
        command=_SIMULATE,
    ),
    Claim(
        id="hd.steps_large",
        where=_ARCHITECTURE,
        says="Halving and doubling takes 2 log2 N steps.",
        unit="steps, N = 512, 1024, 2048, 4096",
        printed=(18, 20, 22, 24),
        judge=Equal(),
        command=_SIMULATE.replace("rows=16,columns=16", "rows=64,columns=64"),
    ),
    *(
        Claim(
            id=f"fat_tree.{name}",
            where=_ARCHITECTURE,
            says="On conventional fat trees some exchanges over long distances meet contention.",
            unit="times as long as behind one switch, the slowest exchange",
            judge=AtLeast(2, "significant: some exchange takes twice as long"),
            reading=f"two levels, leaves of 16 of 256 nodes, {words}, D-mod-k routes; 25 MiB",
            remark=remark,
            command="opticoll simulate all_reduce --fabric "
            f"fat_tree:down=16x16,up=1x{up},rate=100Gb/s,latency=250ns "
            "--algorithm halving_doubling:order=far --size 25MiB",
        )
        for name, up, words, remark in (
            ("tapered", 4, "one uplink for four nodes", ""),
            (
                "full",
                16,
                "an uplink for each node",
                "D-mod-k gives every destination an uplink of its own: exchanges never meet.",
            ),
        )
    ),
)

_SWITCHES = (
    *(
        Claim(
            id=f"switches.{nodes}",
            where=f"{_ARCHITECTURE}, Fig. 1",
            says=f"{nodes} nodes need {count} switches with {ports} ports.",
            unit="switches, ports",
            printed=(count, ports),
            judge=Equal(),
            remark="Rows and columns of the grid of the fabric, and the more of them.",
            command=f"opticoll simulate all_reduce --fabric wss_grid:rows={ports},columns={ports} "
            "--algorithm halving_doubling --size 4MiB",
        )
        for nodes, count, ports in ((1024, 64, 32), (4096, 128, 64))
    ),
    Claim(
        id="grid.ports",
        where=f"{_ARCHITECTURE}, Fig. 1",
        says="Each node is connected to a horizontal and a vertical switch.",
        unit="ports of a node",
        printed=2,
        judge=Used(),
    ),
    Claim(
        id="grid.scalability",
        where=f"{_ARCHITECTURE}, Fig. 1",
        says="Two dimensions make the network scale.",
        unit="times the ports of a switch in one dimension",
        judge=AtLeast(10, "1024 nodes: switches an order of magnitude smaller"),
    ),
    Claim(
        id="grid.performance",
        where=f"{_ARCHITECTURE}, Fig. 1",
        says="Two dimensions enhance performance.",
        unit="times faster than one dimension",
        judge=AtLeast(1.1, "a tenth faster at least"),
        reading=f"an all_reduce of 25 MiB on 16 nodes; {_DELAYS}",
        remark="4 x 4 and 1 x 16 nodes, transceivers of one rate: halving and doubling uses one of "
        "the two at a time.",
    ),
    Claim(
        id="grid.performance_both",
        where=f"{_ARCHITECTURE}, Fig. 1",
        says="Two dimensions enhance performance (both at once).",
        unit="times faster than one dimension",
        judge=AtLeast(1.1, "a tenth faster at least"),
        reading=f"{_AT_ONCE}; an all_reduce of 25 MiB on 16 nodes; {_DELAYS}",
        command="opticoll compare all_reduce --fabric wss_grid:rows=4,columns=4 --algorithms "
        "halving_doubling,dual_plane_halving_doubling --size 25MiB",
    ),
    Claim(
        id="one_hop",
        where=_ARCHITECTURE,
        says="On 2^i x 2^j nodes all communication takes one hop, horizontal or vertical.",
        unit="share of transfers",
        printed=1.0,
        judge=Equal(),
        remark="Of halving and doubling on 1 x 8, 2 x 8, 8 x 2, 4 x 4, 4 x 16 and 16 x 16 nodes: "
        "transfers from a source to a destination of its row or column, all sent on without a "
        "relay. Nodes that share neither are two hops apart; the algorithm never joins them.",
        command=_SIMULATE,
    ),
)

_RECONFIGURATION = (
    Claim(
        id="fig2.partners",
        where=f"{_ARCHITECTURE}, Fig. 2",
        says="Node 1 of 8 connects to nodes 5, 3, 2, 3 and 5.",
        unit="partners",
        printed=(5, 3, 2, 3, 5),
        judge=Equal(),
        command="opticoll show all_reduce --fabric wss_grid:rows=1,columns=8,plan=xor "
        "--algorithm halving_doubling:order=far --slot 0",
    ),
    Claim(
        id="fig2.pattern",
        where=f"{_ARCHITECTURE}, Fig. 2",
        says="It tunes to one wavelength, another, a third, and back in reverse.",
        unit="wavelengths, numbered as they come",
        printed=(1, 2, 3, 2, 1),
        judge=Equal(),
    ),
    Claim(
        id="fig2.names",
        where=f"{_ARCHITECTURE}, Fig. 2",
        says="Those are wavelengths 2, 3, 1, 3 and 2.",
        unit="wavelengths of opticoll",
        printed=(2, 3, 1, 3, 2),
        judge=NotStated("which frequency a number stands for: numbers are names"),
        remark="Shown beside: numbers of the wavelength plan `xor`, by distance 1, 2, 4.",
    ),
    Claim(
        id="fig2.wavelengths",
        where=f"{_ARCHITECTURE}, Fig. 2",
        says="Three wavelengths make the subnetwork of 8 nodes.",
        unit="wavelengths",
        printed=3,
        judge=Equal(),
    ),
    Claim(
        id="fig2.circuits",
        where=f"{_ARCHITECTURE}, Fig. 2",
        says="Node 1 of 8 connects five times in an all_reduce.",
        unit="circuits of a node",
        printed=5,
        judge=Equal(),
        remark="Counted by the simulation of the protocol. 2 log2 N - 1 for every N computed: the "
        "two exchanges in the middle have the same partner (switches.csv).",
    ),
    Claim(
        id="switch.static",
        where=_ARCHITECTURE,
        says="A central arbiter sets the switches before a training, and takes no part after.",
        unit="settings in 20 epochs",
        printed=1,
        judge=Used(),
        remark="Training time beyond its iterations, over the time of a setting.",
    ),
    Claim(
        id="control.ends",
        where=_ARCHITECTURE,
        says="A control unit exchanges messages with its destinations only.",
        unit="control messages of a circuit",
        judge=NotStated("which messages there are"),
        remark="Shown beside: a request, a grant and a release.",
    ),
    Claim(
        id="control.node",
        where=_ARCHITECTURE,
        says="Control grows more slowly than linearly with the system (of a node).",
        unit="exponent, 16 to 256 nodes",
        judge=AtMost(0.95, "clearly below 1, which is linear"),
        reading="overhead: the messages that a node sends for an all_reduce",
        command=f"{_SIMULATE} --json",
    ),
    Claim(
        id="control.system",
        where=_ARCHITECTURE,
        says="Control grows more slowly than linearly with the system (in all).",
        unit="exponent, 16 to 256 nodes",
        judge=AtMost(0.95, "clearly below 1, which is linear"),
        reading="overhead: the messages of all nodes together for an all_reduce",
        command=f"{_SIMULATE} --json",
    ),
    Claim(
        id="control.nic",
        where=_ARCHITECTURE,
        says="Control units are part of the optical network interfaces, the arbiter is one.",
        unit="",
        judge=NotDone("hardware"),
    ),
)

_RUN = (
    Claim(
        id="prototype.nodes",
        where=_PROTOTYPE,
        says="Four servers are joined by one switch.",
        unit="nodes, switches that they use",
        printed=(4, 1),
        judge=Used(),
    ),
    Claim(
        id="prototype.ideal",
        where=_PROTOTYPE,
        says="The ideal network is one electrical switch of 100 Gb/s for all nodes.",
        unit="nodes, bit/s",
        printed=(4, 100 * 10**9),
        judge=Used(),
    ),
    Claim(
        id="prototype.rate",
        where=_PROTOTYPE,
        says="Transceivers have 100 Gb/s.",
        unit="bit/s",
        printed=100 * 10**9,
        judge=Used(),
    ),
    Claim(
        id="prototype.model",
        where=_PROTOTYPE,
        says="They train ResNet50.",
        unit="model",
        printed="ResNet50",
        judge=Used(),
    ),
    Claim(
        id="prototype.dataset",
        where=_PROTOTYPE,
        says="They train on ImageNet.",
        unit="images",
        judge=NotStated("the number of images"),
        remark="Shown beside: of the training set, as used.",
    ),
    Claim(
        id="prototype.algorithm",
        where=_PROTOTYPE,
        says="They reduce by halving and doubling.",
        unit="algorithm",
        printed="halving_doubling",
        judge=Used(),
    ),
    Claim(
        id="prototype.tuning",
        where=f"{_PROTOTYPE}, Fig. 4",
        says="A wavelength is switched in 10.5 ns.",
        unit="s",
        printed=10.5e-9,
        judge=Used(),
        remark="A measured number; the default of the fabric.",
    ),
    Claim(
        id="prototype.fast_enough",
        where=f"{_PROTOTYPE}, Fig. 4",
        says="That is fast enough for each flow.",
        unit="% of the time of sending",
        judge=AtMost(1, "fast enough: one per cent at most"),
        remark="ResNet50's gradients, an all_reduce for each of 161 tensors, which tunes most.",
    ),
    Claim(
        id="prototype.wavelengths",
        where=_PROTOTYPE,
        says="Two wavelengths are in use.",
        unit="wavelengths",
        printed=2,
        judge=Equal(),
        command="opticoll simulate all_reduce --fabric wss_grid:rows=1,columns=4,plan=xor "
        "--algorithm halving_doubling --size 4MiB",
    ),
    Claim(
        id="prototype.frequencies",
        where=_PROTOTYPE,
        says="They lie at 1565.941 and 1546.5377 nm.",
        unit="nm",
        printed=(1565.941, 1546.5377),
        judge=NotDone("wavelengths are numbers here, without a spectrum"),
    ),
    Claim(
        id="prototype.ethernet",
        where=_PROTOTYPE,
        says="Control messages go by an Ethernet switch.",
        unit="s",
        judge=NotStated("how long a message takes there"),
    ),
    Claim(
        id="table1.electrical",
        where=_TABLE,
        says="20 epochs behind an electrical switch take 97.3 minutes.",
        unit="min",
        printed=97.3,
        judge=NotStated("batch, precision, devices of a server, input of images"),
        remark="Shown beside: what computing alone takes if a server has one Ascend 910 and makes "
        "2115 images per second, as MindSpore 0.5 reports for batch 256. The run is bound by "
        "computing or by its input, and is no test of a network.",
    ),
    Claim(
        id="table1.oddl",
        where=_TABLE,
        says="On ODDL they take 97.8 minutes.",
        unit="min",
        printed=97.8,
        judge=NotStated("how long a request takes, the batch, what is sent together"),
        uses=("table1.electrical",),
        remark="Shown beside: shortest and longest for batches of 32 to 256, three ways to send, "
        "with and without overlap, where request and grant take 0 to 2 us; computing is fitted to "
        "the printed time behind an electrical switch.",
    ),
    Claim(
        id="table1.difference",
        where=_TABLE,
        says="ODDL takes 30 s longer.",
        unit="s",
        printed=30,
        judge=NotStated("how long a request takes, the batch, what is sent together"),
        uses=("table1.electrical", "table1.oddl"),
        remark="Shown beside: what tuning lasers makes of it, batch 256, an all_reduce for each "
        "tensor.",
    ),
    Claim(
        id="table1.equivalent_printed",
        where=_TABLE,
        says="ODDL is equivalent to an electrical switch (the printed times).",
        unit="times as long",
        judge=AtMost(1.01, "two runs of one training differ by a per cent"),
        uses=("table1.electrical", "table1.oddl"),
    ),
    Claim(
        id="table1.equivalent",
        where=_TABLE,
        says="ODDL is equivalent to an electrical switch (computed).",
        unit="times as long, the worst case",
        judge=AtMost(1.01, "two runs of one training differ by a per cent"),
        uses=("table1.electrical",),
        remark="Requests take no time: what optical circuits and tuning alone add. The printed "
        "ratio, 1.0051, is no result of it.",
    ),
    Claim(
        id="table1.equivalent_control",
        where=_TABLE,
        says="ODDL is equivalent to an electrical switch (with control).",
        unit="times as long, the worst case",
        judge=AtMost(1.01, "two runs of one training differ by a per cent"),
        uses=("table1.electrical",),
        reading="request and grant take 2 us together",
    ),
    Claim(
        id="table1.accuracy",
        where=_TABLE,
        says="Both reach an accuracy of 80.2 %.",
        unit="%",
        printed=80.2,
        judge=NotDone("nothing is trained; the network does not change what is computed"),
    ),
    Claim(
        id="latency.low",
        where=_PROTOTYPE,
        says="The latency of the network is low.",
        unit="times that of one electrical switch",
        judge=NotStated("what a request, a grant, locking and the fibre take"),
        remark=f"Shown beside: an exchange without data on 256 nodes, with {_DELAYS}; 250 ns a "
        "cable of the switch.",
    ),
    Claim(
        id="latency.constant",
        where=_PROTOTYPE,
        says="The latency stays as low when the network grows.",
        unit="times as long on 256 nodes as on 16",
        judge=AtMost(1.1, "a tenth more at most for sixteen times the nodes"),
        reading=f"of an exchange without data: {_DELAYS}",
        remark="One hop through one switch, whatever the size. The number of exchanges grows with "
        "log N.",
    ),
    Claim(
        id="outlook.prototype",
        where=_PROTOTYPE,
        says="A large prototype is to show advantages over other architectures.",
        unit="",
        judge=NotDone("work to come there"),
    ),
)

_CONCLUSION = (
    Claim(
        id="conclusion.scalable",
        where="4 Conclusion",
        says="The network is scalable.",
        unit="times as long as behind one switch, the worst case",
        judge=AtMost(1.05, "an iteration of training at most a twentieth longer"),
        reading=_LARGER,
        remark="VGG19 and ResNet50 on 16 to 4096 nodes.",
    ),
    Claim(
        id="conclusion.overhead",
        where="4 Conclusion",
        says="The overhead of control is low.",
        unit="% of an iteration, the worst case",
        judge=AtMost(5, "low: a twentieth at most"),
        reading=_LARGER,
        remark="VGG19 and ResNet50 on 16 to 4096 nodes; what overlap with computing does not hide.",
    ),
    Claim(
        id="journal.fat_tree",
        where="Journal version (JOCN 16(3), 2024), abstract",
        says="VGG19 on 1024 nodes trains 1.6 times faster than on a fat tree.",
        unit="times faster",
        printed=1.6,
        judge=NotStated("taper, batch, device, algorithm on the tree"),
        remark=f"Not in this paper. Shown beside: far partners first, under {_LARGER}.",
    ),
    Claim(
        id="journal.ring",
        where="Journal version (JOCN 16(3), 2024), abstract",
        says="VGG19 on 1024 nodes trains 1.7 times faster than on SiP-Ring.",
        unit="times faster",
        printed=1.7,
        judge=NotStated("the ring, its rates, batch and device"),
        remark="Not in this paper. Shown beside: on the rings of the OpTree and WRHT papers, by "
        "WRHT, by OpTree and by opticoll's planner; their ranks have 25 times the bandwidth of a "
        "transceiver.",
    ),
)

CLAIMS: tuple[Claim, ...] = (
    *_OPENING,
    *_STEPS,
    *_SWITCHES,
    *_RECONFIGURATION,
    *_RUN,
    *_CONCLUSION,
)
