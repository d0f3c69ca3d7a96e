"""The command `train`."""

# Not `from __future__ import annotations`: cyclopts reads the types of a dataclass at run time.

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from opticoll.cli import words
from opticoll.cli.arguments import need_fabric, users_print_to_stderr
from opticoll.cli.commands import Answer, app, to_json
from opticoll.cli.files import Files, check_files
from opticoll.cli.options import (
    NO_METHOD,
    FabricOption,
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
    fabric: FabricOption = None,
    options: Annotated[ComputeOptions, Parameter(name="*")] = NOTHING,
    algorithm: Annotated[
        str | None,
        Parameter(
            help="Of the all_reduce; A+B is a reduce_scatter by A and then an all_gather by B, "
            "such as optree+optree."
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

    check_files(csv=csv, figure=figure)
    job = training.Job(
        fabric=need_fabric(fabric),
        algorithm=algorithm,
        wavelength="auto" if wavelength is None else wavelength,
        settings=given(vars(method)),
        **vars(options),
    )
    with Waiting("training") as waiting, users_print_to_stderr():
        row = training.train(job, waiting.update)
    files = Files().table(csv, row["timeline"]).write(figure, lambda path: draw(row, path))
    code = 0 if row["verified"] else 1
    return Answer(to_json(row) if as_json else training_text(row), code, files=files)


def draw(row: "TrainingRow", path: Path) -> None:
    """Draw the course of an iteration."""
    from opticoll.plot import style
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
