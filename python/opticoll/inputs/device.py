"""Device of a training run."""

from __future__ import annotations

from opticoll._core import Fabric, TrainingModel
from opticoll.names import known_names

DEFAULT_DEVICE = known_names("devices")[0]

OF_FABRIC = f"that of the fabric's servers, or {DEFAULT_DEVICE}"
"""Default of the option `device` in texts of help."""


def device_on(fabric: Fabric, device: str | None) -> str:
    """Returns the device of the ranks of a fabric: `device`, or the default on this fabric.

    >>> device_on(Fabric("dgx_a100"), None), device_on(Fabric("crossbar:ranks=4"), None)
    ('a100', 'h100')
    """
    return device or fabric.accelerator or DEFAULT_DEVICE


def unlisted_accelerator(fabric: Fabric, device: str | None) -> list[str]:
    """Returns a warning if servers of GPUs compute as another device, since theirs is not listed.

    >>> unlisted_accelerator(Fabric("mi250"), None)
    ['no device is listed for the GPUs of mi250, so they compute as h100; choose one with --device']
    """
    if device is not None or fabric.family != "gpu_servers" or fabric.accelerator is not None:
        return []
    model = fabric.option("model")
    return [
        f"no device is listed for the GPUs of {model}, so they compute as {DEFAULT_DEVICE}; "
        "choose one with --device"
    ]


def device_warnings(model: TrainingModel, device: str) -> list[str]:
    """Returns a warning if 8-bit floats of a device change no product of a model.

    >>> device_warnings(TrainingModel("resnet50"), "h100:precision=fp8")
    ['h100:precision=fp8 changes no product: all products of ResNet50 are of 16-bit floats']
    """
    if not model.lacks_products_of(device):
        return []
    return [f"{device} changes no product: all products of {model.label} are of 16-bit floats"]
