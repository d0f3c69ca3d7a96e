"""The commands: what each takes, does and says.

Heavy imports are inside the commands, so that `opticoll --help` is there at once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from opticoll import __version__, errors
from opticoll.cli import words
from opticoll.cli.arguments import (
    build,
    check_per,
    check_planned,
    check_view,
    compose_scenario,
    obtain,
    size_of,
    to_be_drawn,
    users_print_to_stderr,
)
from opticoll.cli.files import Files, check_files, kept_on_failure
from opticoll.cli.options import (
    ALL_DEFAULT,
    NO_METHOD,
    AlgorithmOption,
    ComparisonOptions,
    FabricOption,
    FigureOption,
    JsonOption,
    MethodOption,
    OutputOption,
    RootOption,
    SizeOption,
    Source,
    TableOption,
    WavelengthOption,
)
from opticoll.cli.waiting import Waiting
from opticoll.settings import given

if TYPE_CHECKING:
    from opticoll._core import Outcome, Plan, Violation
    from opticoll.settings import Settings
    from opticoll.study.comparison import Row

__all__ = ["Answer", "app"]

app = App(
    name="opticoll",
    version=f"opticoll {__version__}",
    help="Plan, prove and simulate collective communication on optical interconnects.",
    help_epilogue="Everywhere: --memory-limit 4GiB. "
    "Try: opticoll compare all_gather --fabric optree_paper",
    help_flags=["--help", "-h", "--help-all"],
    version_flags=["--version"],
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)


@dataclass(frozen=True)
class Answer:
    """What a command says: text for standard output, notes for standard error, its exit code."""

    text: str
    code: int = 0
    notes: list[str] = field(default_factory=list)
    files: Files = field(default_factory=Files)


@app.command(name="list")
def list_(
    kind: Annotated[
        str | None,
        Parameter(
            help="algorithms, fabrics, presets, simulators, policies, start_rules, settings, "
            "collectives, wavelengths, models or devices, with options; or a collective, for its "
            "algorithms."
        ),
    ] = None,
    /,
    *,
    as_json: JsonOption = False,
) -> Answer:
    """List algorithms, fabrics, simulators, policies, collectives, wavelength assignments."""
    from opticoll import registry
    from opticoll.report import text

    listed = registry.listing(kind)
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
    method: MethodOption = NO_METHOD,
    wavelength: WavelengthOption = None,
    root: RootOption = None,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> Answer:
    """Build a plan, verify it, and say what it needs and how long it takes."""
    import opticoll
    from opticoll.report import text
    from opticoll.study.comparison import measure

    check_files(output=output)
    settings = given(vars(method))
    with Waiting("planning") as waiting:
        made = build(collective, fabric, algorithm, wavelength, root, size, settings, waiting)
        size_bytes = size_of(made, size)
        violations = made.verify()
        outcome = watched(waiting, made, size_bytes, settings)
        row = measure(made, violations, outcome, size_bytes)
        files = Files().write(output, lambda path: opticoll.write_plan(made, path))
    shown = to_json(row) if as_json else text.plan_summary(made, row)
    return Answer(shown, code=1 if violations else 0, files=files)


def watched(
    waiting: Waiting, plan: Plan, size_bytes: int, settings: Settings, *, timeline: bool = False
) -> Outcome:
    """Simulate; the packet simulator says what lies before it, and how far it is."""
    packets = (settings.get("simulator") or "").strip().lower() == "packet"
    if not packets:
        return plan.simulate(size_bytes, **settings)
    work = plan.expected_packets(size_bytes, **settings)
    waiting.announce_work(*work)

    def watch(_events: int, messages: int, _time_ps: int) -> None:
        waiting.update("messages delivered", messages, work[0])

    return plan.simulate(size_bytes, watch=watch, timeline=timeline, **settings)


def drawn(made: Plan, size_bytes: int, outcome: Outcome, figure: Path) -> None:
    """Draw an outcome of packets or of flows."""
    from opticoll import plot as figures
    from opticoll._core import format_size

    title = f"{made.algorithm}: {made.collective.kind}, {format_size(size_bytes)}"
    if "latencies" in outcome.tables:
        figures.packets(outcome, made.fabric, figure, title)
    else:
        figures.link_use(made, outcome, figure, title)


@app.command
def verify(
    source: Source,
    /,
    *,
    fabric: FabricOption = None,
    algorithm: AlgorithmOption = None,
    size: SizeOption = None,
    method: MethodOption = NO_METHOD,
    wavelength: WavelengthOption = None,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> Answer:
    """Prove a plan: data, order, links and wavelengths, claims. Exit code 1 if it is violated."""
    settings = given(vars(method))
    check_planned(source, size, settings)
    with Waiting("verifying") as waiting:
        made = obtain(source, fabric, algorithm, wavelength, root, size, settings, waiting)
        violations = made.verify()
    return proof(made, violations, as_json)


def proof(made: Plan, found: list[Violation], as_json: bool) -> Answer:
    """Whether a plan is proved, and what it violates."""
    from opticoll.report import layout, text
    from opticoll.study.comparison import describe_violation

    violations = [describe_violation(violation) for violation in found]
    answer = {
        "collective": made.collective.kind,
        "algorithm": made.asked,
        "chosen": made.algorithm,
        "fabric": made.fabric.spec,
        "ranks": made.fabric.ranks,
        "wavelengths": made.fabric.wavelengths if made.fabric.has_wavelengths else None,
        "steps": made.slots,
        "transfers": len(made),
        "verified": not violations,
        "violations": violations,
    }
    code = 1 if violations else 0
    if as_json:
        return Answer(to_json(answer), code)
    head = (
        f"{text.algorithm_name(made.algorithm, made.asked)}: "
        f"{made.collective.kind} on {made.fabric.ranks} ranks, "
        f"{layout.plural(made.slots, 'slot')}, {layout.plural(len(made), 'transfer')}"
    )
    lines = [
        head,
        f"verified: {text.verdict(violations, electrical=made.fabric.electrical)}",
        *text.violation_lines(violations),
    ]
    return Answer("\n".join(lines), code)


@app.command
def simulate(
    source: Source,
    /,
    *,
    fabric: FabricOption = None,
    algorithm: AlgorithmOption = None,
    size: SizeOption = None,
    method: MethodOption = NO_METHOD,
    per: Annotated[
        Literal["step", "link", "rank", "time"] | None,
        Parameter(
            help="Print a table of these; time: what links carry in each --link-bin.",
            converter=words.choice,
        ),
    ] = None,
    wavelength: WavelengthOption = None,
    root: RootOption = None,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> Answer:
    """Say how long a plan takes: in all, on its critical path, per step, link, rank or in time."""
    from opticoll.report import outcome as outcome_text
    from opticoll.report import text, values
    from opticoll.study.comparison import measure

    settings = given(vars(method))
    check_per(per, settings)
    check_files(figure=figure)
    code, notes = 0, []
    with Waiting("simulating") as waiting:
        made = obtain(source, fabric, algorithm, wavelength, root, size, settings, waiting)
        size_bytes = size_of(made, size)
        if figure is not None:
            settings = to_be_drawn(made.fabric, settings)
        violations = made.verify()
        outcome = watched(waiting, made, size_bytes, settings, timeline=figure is not None)
        files = Files().write(figure, lambda path: drawn(made, size_bytes, outcome, path))
    row = measure(made, violations, outcome, size_bytes)
    if violations:
        code = 1
        notes.append("warning: the plan is violated (see `opticoll verify`); its time means little")
    if as_json:
        return Answer(to_json(values.outcome_values(made, row, outcome, per)), code, notes, files)
    parts = [text.plan_summary(made, row), outcome_text.outcome_summary(made, outcome)]
    if per is not None:
        parts.append(outcome_text.outcome_table(made, outcome, per))
    return Answer("\n\n".join(parts), code, notes, files)


@app.command
def compare(
    source: Annotated[str, Parameter(help="A collective such as all_gather, or a scenario.yaml.")],
    /,
    *,
    options: Annotated[ComparisonOptions, Parameter(name="*")] = ALL_DEFAULT,
    figure: FigureOption = None,
    csv: TableOption = None,
    as_json: JsonOption = False,
) -> Answer:
    """Compare algorithms on the same fabrics, sizes and policy; every plan is verified."""
    from opticoll.report import text
    from opticoll.study import comparison

    scenario = compose_scenario(source, options)
    check_files(csv=csv, figure=figure)
    rows: list[Row] = []
    with Waiting("comparing") as waiting, users_print_to_stderr(), kept_on_failure(csv, rows):
        try:
            result = comparison.compare(scenario, waiting.update, rows.append)
        except errors.OpticollError as error:
            raise scenario.located(error) from error
    files = Files().table(csv, rows).write(figure, lambda path: draw_comparison(rows, path))
    notes = list(dict.fromkeys(text.left_out(one) for one in result.refusals))
    code = 0 if all(row["verified"] for row in rows) else 1
    return Answer(to_json(rows) if as_json else text.comparison_table(rows), code, notes, files)


def draw_comparison(rows: list[Row], figure: Path) -> list[Path]:
    """Draw rows; returns the files, of which there are several where there are many panels."""
    from opticoll.plot import comparison as draw

    return draw(rows, figure)


@app.command
def show(
    source: Source,
    /,
    *,
    fabric: FabricOption = None,
    algorithm: AlgorithmOption = None,
    view: Annotated[
        Literal["ring", "grid", "fabric", "space_time", "ports"] | None,
        Parameter(
            help="ring, grid: the light of one slot; fabric: the load of electrical links; ports: "
            "light paths over time; space_time: everything over time. By the fabric if not given.",
            converter=words.choice,
        ),
    ] = None,
    slot: Annotated[
        int | None,
        Parameter(
            help="The time slot to show, from 0; the first if not given, all in the view fabric.",
            converter=words.whole(),
            allow_leading_hyphen=True,
        ),
    ] = None,
    wavelength: WavelengthOption = None,
    root: RootOption = None,
    size: SizeOption = None,
    method: MethodOption = NO_METHOD,
    figure: FigureOption = None,
    as_json: JsonOption = False,
) -> Answer:
    """Show a plan: a slot's lightpaths or messages as text, or a picture with --figure."""
    from opticoll.report import layout, text, values

    if view in ("space_time", "ports") and slot is not None:
        raise errors.UsageError(f"--slot: the view {view} shows all slots; leave --slot out")
    if view == "space_time" and figure is None:
        raise errors.UsageError("the view space_time is a picture; give --figure picture.svg")
    check_files(figure=figure)
    settings = given(vars(method))
    if settings:
        check_planned(source, None, settings)
    with Waiting("drawing") as waiting:
        made = obtain(source, fabric, algorithm, wavelength, root, size, settings, waiting)
        shape = check_view(made, view, size if made.asked == made.algorithm else None)
        if slot is not None and not 0 <= slot < made.slots:
            raise errors.UsageError(
                f"there is no slot {slot}: the plan has {layout.plural(made.slots, 'slot')}, from 0"
            )
        files = Files().write(figure, lambda path: draw_plan(made, shape, slot, size, path))
    slot = 0 if slot is None else slot
    if as_json:
        shown = to_json(values.slot_values(made, slot))
    else:
        shown = text.plan_head(made)
        if view != "space_time":
            shown += f"\n\n{text.lightpath_lines(made, slot)}"
    return Answer(shown, files=files)


def draw_plan(made: Plan, view: str, slot: int | None, size: str | None, figure: Path) -> None:
    """Draw a plan in a view that `check_view` returned; sizes matter only where it takes them."""
    from opticoll import plot

    match view:
        case "ports":
            plot.light_paths(made, figure, size=size_of(made, size))
        case "ring":
            plot.ring(made, 0 if slot is None else slot, figure)
        case "grid":
            plot.grid(made, 0 if slot is None else slot, figure)
        case "fabric":
            plot.fabric(made, figure, slot=slot, size=size_of(made, size))
        case _ if made.fabric.electrical:
            plot.messages(made, figure, size=size_of(made, size))
        case _ if made.fabric.grid is not None:
            plot.grid_space_time(made, figure)
        case _:
            plot.space_time(made, figure)


@app.command
def reproduce(
    name: Annotated[str, Parameter(help="The paper: dragonfly, obs_grid, oddl, optree or wrht.")],
    /,
    *,
    output: Annotated[
        Path | None,
        Parameter(
            help="Folder for figures and tables; reproduced/NAME if not given.",
            converter=words.path,
        ),
    ] = None,
    quick: Annotated[bool, Parameter(negative=(), help="Leave out the largest cases.")] = False,
    long: Annotated[
        bool,
        Parameter(
            negative=(),
            help="Add cases that take minutes: wrht on 4096 ranks; obs_grid, 4e8 bursts.",
        ),
    ] = False,
    jobs: Annotated[
        int | None,
        Parameter(
            help="Simulations side by side; as many as there are cores if not given.",
            converter=words.whole(least=1, most=1024),
            allow_leading_hyphen=True,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> Answer:
    """Compute a paper's tables and figures anew, with a verdict on each number."""
    from opticoll.report import text
    from opticoll.study import reproduction

    name = reproduction.paper_name(name)
    folder = Path("reproduced", name) if output is None else output
    if long and quick:
        raise errors.UsageError("--quick and --long are both given; give one of them")
    with Waiting(f"reproducing {name}") as waiting:
        results = reproduction.reproduce(name, folder, quick, waiting.update, long=long, jobs=jobs)
    notes = [f"wrote to {folder}: {', '.join(results.files)}"]
    if as_json:
        answer = {
            "paper": name,
            "output": str(folder),
            "findings": results.findings,
            "ours": results.ours,
            "electrical": results.electrical,
        }
        return Answer(to_json(answer), notes=notes)
    return Answer(text.study_text(results), notes=notes)


def to_json(value: object) -> str:
    """JSON for machines, indented for whoever looks at it."""
    return json.dumps(value, indent=2, ensure_ascii=False)
