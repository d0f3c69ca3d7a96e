"""The commands `replan` and `tasks`, for grids of tunable circuits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from opticoll.cli import words
from opticoll.cli.arguments import obtain, size_of
from opticoll.cli.commands import Answer, app, to_json
from opticoll.cli.files import Files, check_files
from opticoll.cli.options import (
    NO_METHOD,
    AlgorithmOption,
    FabricOption,
    JsonOption,
    MethodOption,
    OutputOption,
    RootOption,
    SizeOption,
    Source,
    TableOption,
)
from opticoll.cli.waiting import Waiting
from opticoll.settings import given

__all__ = ["replan", "tasks"]


@app.command
def replan(
    source: Source,
    /,
    *,
    failed: Annotated[
        str,
        Parameter(
            help="What fails, as in a fabric: dead_transceivers=5.row+9.column,dead_ports=row3.2; "
            "and leaving=5+8-11 for nodes."
        ),
    ],
    instead: Annotated[
        str | None,
        Parameter(help="Algorithm on what is left, such as auto; the same if not given."),
    ] = None,
    fabric: FabricOption = None,
    algorithm: AlgorithmOption = None,
    size: SizeOption = None,
    method: MethodOption = NO_METHOD,
    root: RootOption = None,
    output: OutputOption = None,
    as_json: JsonOption = False,
) -> Answer:
    """Plan anew on what failures leave of a wss_grid; verify, and say how much longer it takes."""
    import opticoll
    from opticoll.report import grids as report
    from opticoll.study import grids

    check_files(output=output)
    settings = given(vars(method))
    with Waiting("planning") as waiting:
        before = obtain(source, fabric, algorithm, None, root, size, settings, waiting)
        size_bytes = size_of(before, size)
        anew = grids.replan(before, failed, instead, size=size_bytes, settings=settings)
        outcome = anew.plan.simulate(size_bytes, **settings)
        row = grids.replan_row(before, failed, anew, outcome, size_bytes)
    files = Files().write(output, lambda path: opticoll.write_plan(anew.plan, path))
    shown = to_json(row) if as_json else report.replanned(anew.plan, row)
    return Answer(shown, code=1 if anew.violations else 0, files=files)


@app.command
def tasks(
    file: Annotated[
        Path, Parameter(help="Tasks that share a wss_grid, in YAML.", converter=words.path)
    ],
    /,
    *,
    csv: TableOption = None,
    as_json: JsonOption = False,
) -> Answer:
    """Run several tasks on one wss_grid: an arbiter admits each when its ports are free."""
    from opticoll import task_list
    from opticoll.report import grids as report
    from opticoll.study import grids

    check_files(csv=csv)
    fabric, listed = task_list.read(file)
    with Waiting("running tasks") as waiting:
        rows = grids.run_tasks(fabric, listed, waiting.update)
    files = Files().table(csv, rows)
    code = 0 if all(row["verified"] for row in rows) else 1
    return Answer(to_json(rows) if as_json else report.tasks_text(fabric, rows), code, files=files)
