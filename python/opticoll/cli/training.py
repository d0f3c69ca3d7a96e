"""The command `train`."""

# Not `from __future__ import annotations`: cyclopts reads the types of a dataclass at run time.

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from opticoll.cli import words
from opticoll.cli.arguments import need_fabrics, users_print_to_stderr
from opticoll.cli.commands import Answer, app, to_json
from opticoll.cli.files import Files, check_files
from opticoll.cli.options import (
    NO_METHOD,
    FabricsOption,
    FigureOption,
    JsonOption,
    MethodOption,
    TableOption,
    WavelengthOption,
)
from opticoll.cli.waiting import Waiting
from opticoll.settings import given

if TYPE_CHECKING:
    from opticoll.study.training import TrainingRow

__all__ = ["train"]

MOST = 2**40


def _count(help_: str) -> Parameter:
    return Parameter(
        help=help_, converter=words.whole(least=1, most=MOST), allow_leading_hyphen=True
    )


@dataclass(frozen=True)
class ComputeOptions:
    """What computes, and on what."""

    model: Annotated[
        str | None,
        Parameter(help="Such as resnet50 or gpt:layers=12,width=768; see `list models`."),
    ] = None
    batch: Annotated[int | None, _count("Samples per device and iteration.")] = None
    device: Annotated[
        str | None,
        Parameter(help="What computes, such as a100:efficiency=0.4; see `list devices`."),
    ] = None
    throughput: Annotated[
        str | None,
        Parameter(
            help="In its place a rate measured on one device: 50TFLOP/s or 1100images/s.",
            allow_leading_hyphen=True,
        ),
    ] = None
    profile: Annotated[
        Path | None,
        Parameter(
            help="In place of model and device: layers with their times, .csv or .yaml.",
            converter=words.path,
        ),
    ] = None
    device_memory: Annotated[
        str | None,
        Parameter(help="Memory of the device, such as 80GB; that of `list devices` if not given."),
    ] = None
    gradients: Annotated[
        Literal["float32", "float16", "bfloat16"],
        Parameter(help="Number format in which gradients are sent.", converter=words.choice),
    ] = "float32"
    buckets: Annotated[
        str,
        Parameter(help="Gradients sent together: tensor, all, ddp (1MiB, then 25MiB) or a size."),
    ] = "ddp"
    overlap: Annotated[
        bool, Parameter(help="Send during the backward pass.", negative="--no-overlap")
    ] = True
    epochs: Annotated[int | None, _count("Say how long so many epochs take.")] = None
    samples: Annotated[
        int | None,
        _count("Samples of an epoch; those of ImageNet for networks for images if not given."),
    ] = None


NOTHING = ComputeOptions()


@app.command
def train(
    *,
    fabric: FabricsOption = None,
    options: Annotated[ComputeOptions, Parameter(name="*")] = NOTHING,
    algorithm: Annotated[
        str | None,
        Parameter(
            help="Of the all_reduce; A+B: reduce_scatter by A, all_gather by B; auto if not given."
        ),
    ] = None,
    method: MethodOption = NO_METHOD,
    wavelength: WavelengthOption = None,
    figure: FigureOption = None,
    csv: TableOption = None,
    as_json: JsonOption = False,
) -> Answer:
    """Time an iteration of data-parallel training: computing, and what it waits for."""
    from opticoll.report.training import training_text
    from opticoll.study import training
    from opticoll.study.comparison import settings_on

    check_files(csv=csv, figure=figure)
    machines = need_fabrics(fabric)
    jobs = [
        training.Job(
            fabric=machine,
            algorithm=algorithm,
            wavelength="auto" if wavelength is None else wavelength,
            settings=settings_on(machine, machines, given(vars(method))),
            **vars(options),
        )
        for machine in machines
    ]
    with Waiting("training") as waiting, users_print_to_stderr():
        rows = [training.train(job, waiting.update) for job in jobs]
    warnings = dict.fromkeys(warning for row in rows for warning in row["warnings"])
    notes = [f"warning: {warning}" for warning in warnings]
    buckets = [bucket for row in rows for bucket in timeline(row)]
    files = Files().table(csv, buckets).write(figure, lambda path: draw(rows, path))
    code = 0 if all(row["verified"] for row in rows) else 1
    if as_json:
        return Answer(to_json(rows[0] if len(rows) == 1 else rows), code, notes, files)
    return Answer(training_text(rows), code, notes, files)


def timeline(row: "TrainingRow") -> list[dict[str, object]]:
    """The buckets of an iteration, each with the fabric that carries it."""
    own = {"fabric": row["fabric"], "injection_bandwidth": row["injection_bandwidth"]}
    return [{**own, **bucket} for bucket in row["timeline"]]


def draw(rows: "list[TrainingRow]", path: Path) -> None:
    """Draw the course of an iteration; of several fabrics, what their iterations consist of."""
    from opticoll.plot import style

    row = rows[0]
    if len(rows) > 1:
        draw_parts(rows, path)
        return
    from opticoll.plot.training import Bar, iteration_timeline

    bars = [
        Bar(style.size_text(one["bytes"]), one["ready_s"], one["start_s"], one["end_s"])
        for one in row["timeline"]
    ]
    iteration_timeline(
        row["forward_s"],
        row["compute_s"],
        bars,
        path,
        title=f"{row['label']}, batch {row['batch']}, {row['ranks']} ranks: "
        f"iteration {style.time_text(row['iteration_s'])}",
    )


def draw_parts(rows: "list[TrainingRow]", path: Path) -> None:
    """Draw the parts of an iteration, a bar for each fabric."""
    from opticoll import registry
    from opticoll.plot.stacked_bars import StackedPanel, stacked_bars
    from opticoll.report.training import PARTS

    labels = registry.fabric_labels(row["fabric"] for row in rows)
    title = f"{rows[0]['label']}, batch {rows[0]['batch']}"
    parts = {name: [row[key] for row in rows] for name, key in PARTS.items()}  # type: ignore[literal-required]
    bars = [labels[row["fabric"]] for row in rows]
    stacked_bars([StackedPanel("", parts)], bars, path, x_label="Iteration", title=title)
