"""What the slides print, in their order, and how each item is judged."""

from __future__ import annotations

from opticoll.papers.judging import AtLeast, Claim, NotDone, NotStated, Used
from opticoll.papers.obs_grid import claims_bursts, claims_costs, claims_programs

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
        where="Comparison: optical and existing network",
        says="Setting paths up and releasing them affects programs that communicate often.",
        unit="of 3 pairs in the same order",
        judge=AtLeast(
            3, "of any two programs the one with more calls per second must slow down more"
        ),
        remark="EP, FT and MG with one port: calls for each second without set-ups, and how many "
        "times longer the program then takes, in traces of real runs.",
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
        says="A light path costs about 10 ms for each communication.",
        unit="s",
        printed=0.01,
        judge=Used(),
    ),
    Claim(
        id="work.greatly",
        where="Our work",
        says="Collectives are greatly affected.",
        unit="times longer",
        judge=AtLeast(10, "greatly: by an order of magnitude, for each of the four algorithms"),
        remark="The least of the four, of 1 KiB among 64 ranks with one port.",
        command="opticoll compare all_gather --fabric light_path_grid:ranks=64 "
        "--algorithms ring,recursive_doubling --size 16B",
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
        unit="",
        judge=NotStated("no result of it is printed; the summary calls it work in progress"),
    ),
)

_END = (
    Claim(
        id="related.hidden",
        where="Related work (1)",
        says="Setting up takes milliseconds, computing between calls microseconds, so that "
        "predicting calls cannot hide it.",
        unit="times as long as computing",
        judge=AtLeast(10, "so much longer than the median of computing between calls in MG"),
        remark="10 ms over the median of computing before a call, in a trace of a real run of MG.",
    ),
    Claim(
        id="related.ports",
        where="Related work (1)",
        says="Collectives that depend on the number of ports have been simulated by others.",
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
        id="summary.reduction",
        where="Summary",
        says="Setting up several paths at once reduces the time, in the model and in simulation.",
        unit="% less",
        judge=AtLeast(10, "less could hide in what a model leaves out"),
        remark="The least of EP, FT and MG with 4 ports and one, traces of real runs.",
    ),
    Claim(
        id="future.congestion",
        where="Future work",
        says="Collectives under heavy congestion, with other processes beside, are work to come.",
        unit="times as long as without bursts",
        judge=NotStated("nothing is printed; `opticoll congestion` computes it"),
        remark="Ring with two ports under the reading of `congestion.refused`.",
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
