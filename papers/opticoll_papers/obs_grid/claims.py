"""What the slides print, in their order, and how each item is judged.

A word of amount without a number ("less", "reduces") asks for one per cent, since the computation
is deterministic; "about" with one printed digit allows half of the number either way.
"""

from __future__ import annotations

from opticoll_papers.judging import AtLeast, Claim, NotDone, NotStated, Used
from opticoll_papers.obs_grid import claims_bursts, claims_costs, claims_programs
from opticoll_papers.obs_grid.claims_programs import TRACES

_COMPARISON = "Comparison: optical and existing network"
_OTHERS = "Related work (1)"

_FRAME = (
    Claim(
        id="background",
        where="Slides before `Comparison`",
        says="Machines, grids and networks of the time; a vision of clusters over optical grids.",
        unit="",
        judge=NotDone("no algorithm, number or claim on collectives is among them"),
    ),
    Claim(
        id="comparison.frequency",
        where=_COMPARISON,
        says="Setting lightpaths up and releasing them affects programs that communicate often.",
        unit="pairs in order",
        judge=AtLeast(
            3, "of any two of the three programs the one with more calls per second slows down more"
        ),
        reading=f"calls are {TRACES}",
        remark="EP, FT and MG in traces of real runs: collectives, sends and receives of rank 0 in "
        "each second without setups, and how many times longer the program takes with one port. "
        "Three programs make three pairs: the number of pairs in that order is judged.",
    ),
    Claim(
        id="comparison.frequency_printed",
        where=_COMPARISON,
        says="Setting lightpaths up and releasing them affects programs that communicate often "
        "(printed times and collectives of EP and FT).",
        unit="times as much",
        judge=AtLeast(1.01, "more, without a number: one per cent"),
        uses=("ep.times", "ft.times", "ep.collectives", "ft.collectives"),
        remark="By the printed numbers FT has more collectives in a second than EP, by our traces "
        "fewer calls. Judged is how many times as long FT's share of setups is as EP's.",
    ),
    Claim(
        id="comparison.dedicated",
        where=_COMPARISON,
        says="A lightpath is dedicated to its two ends; links of an existing network are shared.",
        unit="times longer",
        printed=1.0,
        evaluates="the word dedicated: other messages do not make a message longer",
        judge=Used(),
        remark="The first step of recursive doubling, in which all 64 ranks exchange 16 KiB, over "
        "one such message alone.",
    ),
    Claim(
        id="comparison.set_up",
        where=_COMPARISON,
        says="A lightpath is set up before communication and released after it.",
        unit="s",
        judge=AtLeast(1e-6, "both take time; the shorter of the two is judged", good="used"),
        remark="Read off a message of a program of two ranks, as in `simulator.set_up`.",
    ),
    Claim(
        id="comparison.limited",
        where=_COMPARISON,
        says="The number of connections is limited by the wavelengths.",
        unit="",
        judge=NotStated("the number; `ladder.wavelengths` and `congestion.blocked` have one"),
    ),
    Claim(
        id="japan",
        where="Several works in Japan",
        says="Other projects provision paths slowly, as circuits, and run out of wavelengths.",
        unit="",
        judge=NotDone("results of others, without numbers"),
    ),
    Claim(
        id="work.delay",
        where="Our work",
        says="MPI is known to scale to delays of 20 ms.",
        unit="ms",
        printed=20,
        judge=NotDone("a result of others, on machines that the slides do not describe"),
    ),
    Claim(
        id="work.set_up",
        where="Our work",
        says="A lightpath costs about 10 ms for each communication.",
        unit="s",
        printed=0.01,
        judge=Used(),
        remark="Read off a message of two ranks.",
        command="opticoll simulate broadcast --fabric light_path_grid:ranks=2 --algorithm linear "
        "--size 1KiB",
    ),
    Claim(
        id="work.greatly",
        where="Our work",
        says="Collectives are greatly affected.",
        unit="times longer",
        judge=AtLeast(10, "greatly: by an order of magnitude, for each of the four algorithms"),
        reading="messages of 1 KiB among 64 ranks, one port",
        remark="The least of the four algorithms is judged.",
        command="opticoll compare broadcast --fabric light_path_grid:ranks=64,ports=1 "
        "--algorithms linear,binomial --size 1KiB",
    ),
    Claim(
        id="work.overlap",
        where="Our work",
        says="Setting up should be hidden behind communication of the program.",
        unit="",
        judge=NotStated("no slide says how, and no formula or result contains it"),
    ),
    Claim(
        id="goal.testbed",
        where="Goal",
        says="The methods are confirmed by execution on a testbed.",
        unit="s",
        judge=NotStated("no result of it is printed, and the summary calls it work in progress"),
        remark="Shown beside: the simulated time of an all_gather of 100 kB from each of six "
        "computers by the ring with two ports, on the testbed of `testbed.nodes`.",
    ),
)

_END = (
    Claim(
        id="related.hidden",
        where=_OTHERS,
        says="Setting up takes milliseconds, computing between calls microseconds, so that "
        "predicting calls cannot hide the setups.",
        unit="times longer",
        judge=AtLeast(10, "so much longer than the median of computing before a call"),
        reading="the program is MG",
        remark="10 ms over the median of computing before a call, in a trace of a real run.",
    ),
    Claim(
        id="related.hidden_programs",
        where=_OTHERS,
        says="Computing between calls is too short to hide setups (the programs that the slides "
        "simulate).",
        unit="times longer",
        judge=AtLeast(10, "so much longer than the median of computing before a call"),
        reading="the programs are EP and FT",
        remark="The less of EP and FT is judged, in traces of real runs.",
    ),
    Claim(
        id="related.prediction",
        where=_OTHERS,
        says="Others predict communication and establish paths in advance.",
        unit="",
        judge=NotDone("a method of others; `related.hidden` judges what the slides say against it"),
    ),
    Claim(
        id="related.ports",
        where=_OTHERS,
        says="Others have collectives that depend on the number of ports: effective in simulation, "
        "hard to implement, without handling of congestion.",
        unit="",
        judge=NotDone("results of others, without numbers"),
    ),
    Claim(
        id="related.electrical",
        where="Related work (2)",
        says="Others send small messages and collectives over an electrical network beside.",
        unit="",
        judge=NotDone("results of others, without numbers"),
    ),
    Claim(
        id="summary.reduction_model",
        where="Summary",
        says="Setting up several paths at once reduces the time in the model.",
        unit="% less",
        judge=AtLeast(1, "reduces, without a number: one per cent"),
        remark="The least of the four algorithms with 4 ports and with one, n = 1 kB to 10 MB.",
        command="opticoll simulate broadcast --fabric light_path_grid:ranks=64,ports=4 "
        "--algorithm binomial --size 10MB",
    ),
    Claim(
        id="summary.reduction",
        where="Summary",
        says="Setting up several paths at once reduces the time in simulation.",
        unit="% less",
        judge=AtLeast(1, "reduces, without a number: one per cent"),
        reading=f"programs are {TRACES}, on other processors",
        remark="The least of EP, FT and MG with 4 ports and with one.",
    ),
    Claim(
        id="summary.reduction_printed",
        where="Summary",
        says="Setting up several paths at once reduces the time (printed times of EP and FT).",
        unit="% less",
        judge=AtLeast(1, "reduces, without a number: one per cent"),
        uses=("ep.times", "ft.times"),
        remark="The less of EP and FT is judged.",
    ),
    Claim(
        id="summary.testbed",
        where="Summary",
        says="Tests on real optical switches are in progress.",
        unit="",
        judge=NotDone("work in progress there; the slide `Goal` calls it done"),
    ),
    Claim(
        id="future.congestion",
        where="Future work",
        says="Collectives under heavy congestion, with other processes beside, are future work.",
        unit="",
        judge=NotDone("future work there; `opticoll congestion` computes such collectives"),
    ),
)

CLAIMS: tuple[Claim, ...] = (
    *_FRAME,
    *claims_programs.MG,
    *claims_programs.METHOD,
    *claims_bursts.LADDER,
    *claims_bursts.TESTBED,
    *claims_costs.ALGORITHMS,
    *claims_bursts.CONGESTION,
    *claims_costs.EVALUATION,
    *claims_programs.SIMULATOR,
    *_END,
)
