"""Row on the memory that a model occupies on a device."""

from opticoll.outputs.rows import Row, means
from opticoll.outputs.units import Bytes


class MemoryRow(Row):
    """The memory that a model occupies on a device."""

    weights_bytes: Bytes = means("Weights, 2 bytes per parameter")
    gradients_bytes: Bytes = means("Gradients, 2 bytes per parameter, or 4 with float32")
    optimizer_bytes: Bytes = means("State of Adam, 12 bytes per parameter")
    activations_bytes: Bytes | None = means(
        "Activations of the batch that the backward pass needs",
        absent="the computing times come from a profile, which has no data on activations",
    )
    working_bytes: Bytes | None = means(
        "Values that exist for a part of the iteration, such as logits and gradients of "
        "activations",
        absent="the computing times come from a profile, which has no data on activations",
    )
    total_bytes: Bytes = means("Sum of all parts")
    device_bytes: Bytes | None = means(
        "Memory of the device", absent="the computing times come from a measured throughput"
    )
    fits: bool | None = means(
        "Whether the model fits the device", absent="the memory of the device is not known"
    )


def memory_row(parts: tuple[int, ...], device_bytes: int | None) -> MemoryRow:
    """Returns the memory that a model needs.

    `parts` are the bytes for weights, gradients, optimizer and, if known, activations and working
    memory.
    """
    return MemoryRow(
        weights_bytes=parts[0],
        gradients_bytes=parts[1],
        optimizer_bytes=parts[2],
        activations_bytes=parts[3] if len(parts) > 3 else None,
        working_bytes=parts[4] if len(parts) > 3 else None,
        total_bytes=sum(parts),
        device_bytes=device_bytes,
        fits=None if device_bytes is None else sum(parts) <= device_bytes,
    )
