"""The command line: `opticoll COMMAND --help` says what each command takes.

Results go to standard output, everything else to standard error. Exit codes: 0 as asked, 1 a plan
violates what it must keep, 2 bad input (one line says what, nothing is written), 130 interrupted.

This is the only module that prints. Commands return text; `main` prints it when all is done, so
that a failure leaves nothing behind on standard output.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter

from opticoll import __version__, _core, errors

if TYPE_CHECKING:
    from types import TracebackType

    from rich.progress import Progress, TaskID

    from opticoll._core import Fabric, Plan
    from opticoll.config import Scenario

__all__ = ["app", "main"]

DEFAULT_SIZE = "4MiB"
DEFAULT_POLICY = "every_step"
DEFAULT_SIMULATOR = "circuit"

app = App(
    name="opticoll",
    version=f"opticoll {__version__}",
    help="Plan, prove and simulate collective communication on optical interconnects.",
    help_epilogue="Try: opticoll compare all_gather --fabric wdm_ring:ranks=16,wavelengths=2",
    help_flags=["--help", "-h"],
    version_flags=["--version"],
    result_action="return_value",
)


@dataclass(frozen=True)
class Answer:
    """What a command says: text for standard output, notes for standard error, the exit code."""

    text: str
    code: int = 0
    notes: list[str] = field(default_factory=list)


# The options that several commands share; each is described once.
FabricOption = Annotated[
    str | None,
    Parameter(help="A preset, family:key=value,... or a YAML file; see `opticoll list fabrics`."),
]
AlgorithmOption = Annotated[
    str | None,
    Parameter(help="name:key=value,... or your own module:function,key=value."),
]
SizeOption = Annotated[str | None, Parameter(help="Such as 4MiB or 4MB; 4MiB if not given.")]
PolicyOption = Annotated[
    str, Parameter(help="When reconfiguration is charged; see `opticoll list policies`.")
]
SimulatorOption = Annotated[str, Parameter(help="circuit or closed_form (the paper's formula).")]
WavelengthOption = Annotated[
    str | None, Parameter(help="How wavelengths are assigned; see `opticoll list wavelengths`.")
]
RootOption = Annotated[
    int | None, Parameter(help="Root of broadcast, reduce, gather, scatter; 0 if not given.")
]
SeedOption = Annotated[
    int, Parameter(help="Reported with the result; these simulators draw no random numbers.")
]
OutputOption = Annotated[Path | None, Parameter(help="Write the plan here; .zst compresses it.")]
JsonOption = Annotated[bool, Parameter(name="--json", negative=(), help="Print JSON.")]
Source = Annotated[str, Parameter(help="A plan file, or a collective such as all_gather.")]
ListKind = Literal[
    "algorithms", "fabrics", "presets", "simulators", "policies", "collectives", "wavelengths"
]


@app.command(name="list")
def list_(
    kind: Annotated[
        ListKind | None, Parameter(help="What to list, with options and sources.")
    ] = None,
    /,
    *,
    as_json: JsonOption = False,
) -> Answer:
    """List algorithms, fabrics, simulators, policies, collectives, wavelength assignments."""
    from opticoll import registry
    from opticoll.report import text

    wanted = list(registry.KINDS) if kind is None else [kind]
    if kind == "fabrics":
        wanted = ["fabrics", "presets"]
    listed = {name: registry.records(name) for name in wanted}
    if as_json:
        return Answer(to_json([record for records in listed.values() for record in records]))
    parts = [
        (f"{name.upper()}\n" if len(listed) > 1 else "")
        + text.record_list(records, full=kind is not None)
        for name, records in listed.items()
    ]
    return Answer("\n\n".join(parts))


@app.command
def plan(
    collective: Annotated[str, Parameter(help="Such as all_gather; see `opticoll list`.")],
    /,
    *,
    fabric: FabricOption = None,
    algorithm: AlgorithmOption = None,
    size: SizeOption = None,
    policy: PolicyOption = DEFAULT_POLICY,
    simulator: SimulatorOption = DEFAULT_SIMULATOR,
    wavelength: WavelengthOption = None,
    root: RootOption = None,
    seed: SeedOption = 0,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> Answer:
    """Build a plan, verify it, and say what it needs and how long it takes."""
    import opticoll
    from opticoll.formats.atomic import check_writable
    from opticoll.report import text
    from opticoll.study.comparison import measure

    if output is not None:
        check_writable(output)
    with Waiting("planning"):
        size_bytes = _core.parse_size(DEFAULT_SIZE if size is None else size)
        made, note = build(collective, fabric, algorithm, wavelength, root, size_bytes)
        violations = made.verify()
        outcome = made.simulate(size_bytes, policy=policy, simulator=simulator)
        row = measure(made, violations, outcome, size_bytes, seed)
        if output is not None:
            opticoll.write_plan(made, output)
    notes = [] if output is None else [f"wrote {output}"]
    shown = to_json(row) if as_json else text.plan_summary(made, row, note)
    return Answer(shown, code=1 if violations else 0, notes=notes)


@app.command
def verify(
    source: Source,
    /,
    *,
    fabric: FabricOption = None,
    algorithm: AlgorithmOption = None,
    wavelength: WavelengthOption = None,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> Answer:
    """Prove a plan: data, order, links and wavelengths, claims. Exit code 1 if it is violated."""
    from opticoll.report import text
    from opticoll.study.comparison import describe_violation

    with Waiting("verifying"):
        made, _ = obtain(source, fabric, algorithm, wavelength, root)
        violations = [describe_violation(violation) for violation in made.verify()]
    answer = {
        "collective": made.collective.kind,
        "algorithm": made.algorithm,
        "fabric": made.fabric.spec,
        "ranks": made.fabric.ranks,
        "wavelengths": made.fabric.wavelengths,
        "steps": made.slots,
        "transfers": len(made),
        "verified": not violations,
        "violations": violations,
    }
    code = 1 if violations else 0
    if as_json:
        return Answer(to_json(answer), code)
    head = (
        f"{made.algorithm}: {made.collective.kind} on {made.fabric.ranks} ranks, "
        f"{text.plural(made.slots, 'slot')}, {text.plural(len(made), 'transfer')}"
    )
    lines = [head, f"verified: {text.verdict(violations)}", *text.violation_lines(violations)]
    return Answer("\n".join(lines), code)


@app.command
def simulate(
    source: Source,
    /,
    *,
    fabric: FabricOption = None,
    algorithm: AlgorithmOption = None,
    size: SizeOption = None,
    policy: PolicyOption = DEFAULT_POLICY,
    simulator: SimulatorOption = DEFAULT_SIMULATOR,
    per: Annotated[
        Literal["step", "link", "rank"] | None, Parameter(help="Print a table of these.")
    ] = None,
    wavelength: WavelengthOption = None,
    root: RootOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> Answer:
    """Say how long a plan takes: in all, along its critical path, per step, link or rank."""
    from opticoll.report import text, values
    from opticoll.study.comparison import measure

    with Waiting("simulating"):
        made, note = obtain(source, fabric, algorithm, wavelength, root)
        size_bytes = size_of(made, size)
        violations = made.verify()
        outcome = made.simulate(size_bytes, policy=policy, simulator=simulator)
    row = measure(made, violations, outcome, size_bytes, seed)
    code, notes = 0, []
    if violations:
        code = 1
        notes.append("warning: the plan is violated (see `opticoll verify`); its time means little")
    if as_json:
        return Answer(to_json(values.outcome_values(row, outcome, per)), code, notes)
    parts = [text.plan_summary(made, row, note), text.outcome_summary(made, outcome)]
    if per is not None:
        parts.append(text.outcome_table(outcome, per))
    return Answer("\n\n".join(parts), code, notes)


@app.command
def compare(
    source: Annotated[str, Parameter(help="A collective such as all_gather, or a scenario.yaml.")],
    /,
    *,
    fabric: FabricOption = None,
    algorithms: Annotated[
        str | None, Parameter(help="Such as ring,optree:k=5; all that run there if not given.")
    ] = None,
    size: SizeOption = None,
    sizes: Annotated[
        str | None, Parameter(help="1KiB,4MiB or 1KiB..1GiB (each four times the last).")
    ] = None,
    ranks: Annotated[str | None, Parameter(help="Numbers of ranks, such as 512,1024.")] = None,
    wavelengths: Annotated[
        str | None, Parameter(help="Numbers of wavelengths per fibre, such as 32,64,128.")
    ] = None,
    policy: Annotated[
        str | None,
        Parameter(help="When reconfiguration is charged: every_step if not given."),
    ] = None,
    simulator: Annotated[
        str | None, Parameter(help="circuit (if not given) or closed_form (the paper's formula).")
    ] = None,
    wavelength: WavelengthOption = None,
    root: RootOption = None,
    plot: Annotated[Path | None, Parameter(help="Draw it: .svg, .png or .pdf.")] = None,
    csv: Annotated[Path | None, Parameter(help="Write the rows here.")] = None,
    as_json: JsonOption = False,
) -> Answer:
    """Compare algorithms on the same fabrics, sizes and policy; every plan is verified."""
    from opticoll.formats.atomic import check_writable
    from opticoll.formats.table import write_csv
    from opticoll.report import text
    from opticoll.study import comparison

    scenario = compose_scenario(
        source, fabric, algorithms, size, sizes, ranks, wavelengths, policy, simulator,
        wavelength, root,
    )  # fmt: skip
    if csv is not None:
        check_writable(csv)
    if plot is not None:
        from opticoll.plot.output import check_path

        check_path(plot)
    with Waiting("comparing") as waiting:
        result = comparison.compare(
            scenario.collective,
            scenario.fabric,
            scenario.algorithms,
            sizes=scenario.sizes,
            ranks=scenario.ranks,
            wavelengths=scenario.wavelengths,
            policy=scenario.policy,
            simulator=scenario.simulator,
            root=scenario.root,
            wavelength=scenario.wavelength,
            progress=waiting.update,
        )
        rows = result.rows
        notes = [f"`{one.algorithm}` is left out: {one.reason}" for one in result.refusals]
        if plot is not None:
            from opticoll.plot import comparison as draw

            draw(rows, plot)
            notes.append(f"wrote {plot}")
        if csv is not None:
            write_csv(rows, csv)
            notes.append(f"wrote {csv}")
    code = 0 if all(row["verified"] for row in rows) else 1
    shown = to_json(rows) if as_json else text.comparison_table(rows)
    return Answer(shown, code, list(dict.fromkeys(notes)))


@app.command
def show(
    source: Source,
    /,
    *,
    fabric: FabricOption = None,
    algorithm: AlgorithmOption = None,
    view: Annotated[
        Literal["ring", "space_time"],
        Parameter(help="One slot's lightpaths around the ring, or all slots over time."),
    ] = "ring",
    slot: Annotated[int, Parameter(help="The time slot to show, from 0.")] = 0,
    wavelength: WavelengthOption = None,
    root: RootOption = None,
    output: Annotated[Path | None, Parameter(help="Draw it: .svg, .png or .pdf.")] = None,
    as_json: JsonOption = False,
) -> Answer:
    """Show a plan: a slot's lightpaths as text, or a picture of them with --output."""
    from opticoll.report import text, values

    if output is not None:
        from opticoll.plot.output import check_path

        check_path(output)
    with Waiting("drawing"):
        made, _ = obtain(source, fabric, algorithm, wavelength, root)
        if not 0 <= slot < max(made.slots, 1):
            raise errors.UsageError(
                f"there is no slot {slot}: the plan has {text.plural(made.slots, 'slot')}, from 0"
            )
        if output is not None:
            from opticoll import plot

            if view == "ring":
                plot.ring(made, slot, output)
            else:
                plot.space_time(made, output)
    if as_json:
        shown = to_json(values.slot_values(made, slot))
    else:
        shown = f"{text.plan_head(made)}\n\n{text.lightpath_lines(made, slot)}"
    return Answer(shown, notes=[] if output is None else [f"wrote {output}"])


@app.command
def reproduce(
    name: Annotated[str, Parameter(help="The paper: optree or wrht.")],
    /,
    *,
    output: Annotated[
        Path | None, Parameter(help="Folder for figures and tables; reproduced/NAME if not given.")
    ] = None,
    quick: Annotated[bool, Parameter(negative=(), help="Leave out the largest cases.")] = False,
    as_json: JsonOption = False,
) -> Answer:
    """Compute a paper's tables and figures anew, with a verdict on each number."""
    from opticoll import study
    from opticoll.report import text

    folder = Path("reproduced", name) if output is None else output
    with Waiting(f"reproducing {name}"):
        findings = study.reproduce(name, folder, quick)
    notes = [f"wrote figures and tables to {folder}"]
    if as_json:
        answer = {"paper": name, "output": str(folder), "findings": findings}
        return Answer(to_json(answer), notes=notes)
    return Answer(text.findings_table(findings), notes=notes)


def build(
    collective: str,
    fabric: str | None,
    algorithm: str | None,
    wavelength: str | None,
    root: int | None,
    size_bytes: int | None = None,
) -> tuple[Plan, str]:
    """The plan that the options ask for, and a note on the algorithm where it was not named."""
    import opticoll
    from opticoll import registry

    kind = _core.collective_kind(collective)
    note = ""
    if algorithm is None:
        algorithm = registry.default_algorithm(kind)
        note = f" (not named: the first listed for {kind})"
    made = opticoll.plan(
        kind,
        need_fabric(fabric),
        algorithm,
        size=size_bytes,
        root=0 if root is None else root,
        wavelength="auto" if wavelength is None else wavelength,
    )
    return made, note


def obtain(
    source: str,
    fabric: str | None,
    algorithm: str | None,
    wavelength: str | None,
    root: int | None,
) -> tuple[Plan, str]:
    """The plan in a file, or the one that a collective and options ask for; and a note on it."""
    import opticoll
    from opticoll import config

    if not names_plan_file(source):
        try:
            return build(source, fabric, algorithm, wavelength, root)
        except errors.CollectiveError as error:
            if "unknown" in str(error):
                raise errors.CollectiveError(f"{error} (and there is no such plan file)") from error
            raise
    given = {"--algorithm": algorithm, "--wavelength": wavelength, "--root": root}
    for option, value in given.items():
        if value is not None:
            raise errors.UsageError(f"{option} cannot be given with a plan file: it holds its own")
    made = opticoll.read_plan(source)
    if fabric is not None and config.parse_fabric(fabric).spec != made.fabric.spec:
        raise errors.UsageError(
            f"`{source}` is a plan for another fabric: it holds for {made.fabric.spec}, "
            f"given was {config.parse_fabric(fabric).spec}"
        )
    return made, ""


def names_plan_file(source: str) -> bool:
    """Whether a source is a file, by its name or because it exists and is no collective."""
    from opticoll.formats.plan_file import SUFFIXES

    if source.endswith(SUFFIXES) or os.sep in source:
        return True
    try:
        _core.collective_kind(source)
    except errors.CollectiveError:
        return os.path.exists(source)
    return False


def need_fabric(fabric: str | None) -> Fabric:
    """The fabric of an option that must be given."""
    from opticoll import config

    if fabric is None:
        raise errors.UsageError(
            "--fabric is missing; give a preset such as optree_paper, "
            "or wdm_ring:ranks=16,wavelengths=2"
        )
    return config.parse_fabric(fabric)


def size_of(made: Plan, size: str | None) -> int:
    """The size in bytes: as asked for, else as in the plan, else the default."""
    if size is not None:
        return _core.parse_size(size)
    return _core.parse_size(DEFAULT_SIZE) if made.size_bytes is None else made.size_bytes


def compose_scenario(
    source: str,
    fabric: str | None,
    algorithms: str | None,
    size: str | None,
    sizes: str | None,
    ranks: str | None,
    wavelengths: str | None,
    policy: str | None,
    simulator: str | None,
    wavelength: str | None,
    root: int | None,
) -> Scenario:
    """The comparison that a scenario file or a collective asks for; options win over the file."""
    from dataclasses import replace

    from opticoll import config

    if size is not None and sizes is not None:
        raise errors.UsageError("--size and --sizes are both given; give one of them")
    sizes = sizes if size is None else size
    if config.is_yaml(source):
        scenario = config.read_scenario(source)
        if fabric is not None:
            scenario = replace(scenario, fabric=config.parse_fabric(fabric))
    else:
        scenario = config.Scenario(
            collective=_core.collective_kind(source),
            fabric=need_fabric(fabric),
            sizes=[_core.parse_size(DEFAULT_SIZE)],
        )
    given: dict[str, Any] = {
        "algorithms": None if algorithms is None else config.split_algorithms(algorithms),
        "sizes": None if sizes is None else config.split_sizes(sizes),
        "ranks": None if ranks is None else config.split_counts("--ranks", ranks),
        "wavelengths": (
            None if wavelengths is None else config.split_counts("--wavelengths", wavelengths)
        ),
        "policy": policy,
        "simulator": simulator,
        "wavelength": wavelength,
        "root": root,
    }
    return replace(scenario, **{key: value for key, value in given.items() if value is not None})


def to_json(value: object) -> str:
    """JSON for machines, indented for whoever looks at it."""
    return json.dumps(value, indent=2, ensure_ascii=False)


class Waiting:
    """A progress bar on standard error, once a second has passed and only on a terminal."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._done, self._total = 0, 0
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(1.0, self._appear) if sys.stderr.isatty() else None

    def __enter__(self) -> Waiting:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        with self._lock:
            self._timer = None
            if self._bar is not None:
                self._bar.stop()

    def update(self, label: str, done: int, total: int) -> None:
        """Say what is being done, as number `done` of `total`."""
        with self._lock:
            self._label, self._done, self._total = label, done, total
            if self._bar is not None and self._task is not None:
                self._bar.update(self._task, description=label, completed=done, total=total)

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._timer is None:
                return
            columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(
                self._label, completed=self._done, total=self._total or None
            )
            self._bar.start()


# What helps after an error of a kind, where the message itself does not say it all.
HINTS: dict[type[errors.OpticollError], str] = {
    errors.AlgorithmError: "see `opticoll list algorithms`",
    errors.CollectiveError: "see `opticoll list collectives`",
    errors.FabricError: "see `opticoll list fabrics`",
    errors.SimulationError: "see `opticoll list simulators` and `opticoll list policies`",
    errors.WavelengthError: "see `opticoll list wavelengths`",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; `argv` are the arguments after `opticoll`."""
    try:
        answer = app(argv, exit_on_error=False, print_error=False)
        if not isinstance(answer, Answer):
            return 0
        for note in answer.notes:
            print(f"opticoll: {note}", file=sys.stderr)
        print(answer.text, flush=True)
        return answer.code
    except BrokenPipeError:
        # The reader has seen enough (`| head`); Python must not try to flush again at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except CycloptsError as error:
        command = " ".join(error.command_chain or ())
        return refuse(str(error), f"see `opticoll {command} --help`".replace("  ", " "))
    except errors.OpticollError as error:
        return refuse(str(error), HINTS.get(type(error)))
    except MemoryError:
        return refuse("there is not enough memory for this", "try fewer ranks")
    except KeyboardInterrupt:
        print("opticoll: interrupted", file=sys.stderr)
        return 130


def refuse(message: str, hint: str | None) -> int:
    """Say what was wrong on standard error; returns the exit code for bad input."""
    print(f"opticoll: error: {' '.join(message.split())}", file=sys.stderr)
    if hint is not None:
        print(f"hint: {hint}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
