"""Command `profile`: the operators of a model on one device of a group, with their times."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from opticoll._core import TrainingModel
from opticoll.cli.option_types import argument, count, option
from opticoll.cli.runner import Command, on_command_line, rows_file
from opticoll.errors import UsageError
from opticoll.inputs.device import DEFAULT_DEVICE, device_warnings
from opticoll.outputs.layout import align, human_seconds
from opticoll.outputs.rows import Row, means
from opticoll.outputs.units import Bytes, Count, Number, Positive, Seconds
from opticoll.outputs.watch import Watch

MAX_BATCH = 2**31

MAX_RANKS = 2**20


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Parameters of `opticoll profile`."""

    model: str | None = argument(
        "Model, such as resnet50 or llama3_8b:sequence=4096; see `opticoll list models` (required)",
        default=None,
    )
    device: str | None = option(
        f"Accelerator, such as h100; see `opticoll list devices` (default: {DEFAULT_DEVICE})"
    )
    batch: int | None = count("Samples of a micro-batch (default: 1)", MAX_BATCH)
    tensor_parallel: int | None = count(
        "Number of ranks that divide each matrix (default: 1)", MAX_RANKS
    )


class OperatorRow(Row):
    """An operator; operators of different blocks that are alike share a row."""

    layer: str = means("Layer, where `block` stands for the number of a block", "layer")
    operator: str = means("Operator", "operator")
    count: Positive = means("Number of such operators in the model", "times")
    operations: Count = means("Operations of both passes of one operator", "operations")
    bytes: Bytes = means("Bytes that both passes of one operator read and write", "bytes")
    forward_s: Seconds = means("Time of the forward pass of one operator", "forward")
    backward_s: Seconds = means("Time of the backward pass of one operator", "backward")


class ProfileRow(Row):
    """The operators of a model, and the times of a micro-batch."""

    model: str = means("Complete specification of the model")
    label: str = means("Name as printed in figures")
    device: str = means("Device")
    batch: Positive = means("Number of samples of the micro-batch")
    tensor_parallel: Positive = means("Number of ranks that divide each matrix")
    forward_s: Seconds = means("Time of the forward pass")
    backward_s: Seconds = means("Time of the backward pass")
    flops: Number = means("Operations per second of both passes of the device")
    operators: list[OperatorRow] = means("Operators in the order of the forward pass")


def compute(parameters: Parameters, watch: Watch) -> Iterator[ProfileRow]:
    """Computes the times of all operators.

    Raises
    ------
    OpticollError
        The model or the device is unknown, or the device has an efficiency.
    """
    if parameters.model is None:
        raise UsageError("the model is missing; give one such as gpt3_175b")
    model = TrainingModel(parameters.model)
    device = parameters.device or DEFAULT_DEVICE
    batch, tensor = parameters.batch or 1, parameters.tensor_parallel or 1
    for warning in device_warnings(model, device):
        watch.note(f"warning: {warning}")
    alike: dict[tuple[str, ...], OperatorRow] = {}
    for layer, operator, operations, moved, seconds in model.operators(batch, device, tensor):
        name = re.sub(r"^block\d+\.", "block.", layer)
        key = (name, operator, str(seconds))
        number = alike[key].count if key in alike else 0
        alike[key] = OperatorRow(
            layer=name,
            operator=operator,
            count=number + 1,
            operations=sum(operations),
            bytes=sum(moved),
            forward_s=seconds[0],
            backward_s=seconds[1],
        )
    operators = list(alike.values())
    forward = sum(row.count * row.forward_s for row in operators)
    backward = sum(row.count * row.backward_s for row in operators)
    total = sum(row.count * row.operations for row in operators)
    yield ProfileRow(
        model=model.name,
        label=model.label,
        device=device,
        batch=batch,
        tensor_parallel=tensor,
        forward_s=forward,
        backward_s=backward,
        flops=total / (forward + backward),
        operators=operators,
    )


def _text(parameters: Parameters, rows: list[ProfileRow]) -> str:
    (row,) = rows
    both = row.forward_s + row.backward_s
    headings = ["layer", "operator", "times", "forward", "backward", "share", "TFLOP/s", "TB/s"]
    cells = []
    for part in row.operators:
        time = part.forward_s + part.backward_s
        cells.append(
            [
                part.layer,
                part.operator,
                str(part.count),
                human_seconds(part.forward_s),
                human_seconds(part.backward_s),
                f"{part.count * time / both:.1%}",
                f"{part.operations / time / 1e12:,.0f}" if part.operations else "-",
                f"{part.bytes / time / 1e12:.2f}",
            ]
        )
    return "\n".join(
        [
            f"forward {human_seconds(row.forward_s)}, backward {human_seconds(row.backward_s)}; "
            f"{row.flops / 1e12:,.0f} TFLOP/s",
            "",
            f"model    {row.label}",
            f"device   {row.device}",
            f"batch    {row.batch}",
            f"tensor   {row.tensor_parallel}",
            "",
            align(cells, headings, set(range(2, 8))),
        ]
    )


COMMAND = Command(
    name="profile",
    example="opticoll profile gpt3_175b --device h100 --tensor-parallel 8",
    parameters=Parameters,
    rows=ProfileRow,
    compute=compute,
    text=_text,
    progress_label="operators",
    shape="row",
    files=(rows_file(lambda _, rows: rows[0].operators),),
)
command_line = on_command_line(COMMAND)
