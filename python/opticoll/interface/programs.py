"""Whole programs: replayed traces of MPI and iterations of training."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from opticoll._core import Trace
from opticoll.interface.command import one

if TYPE_CHECKING:
    from typing import Unpack

    from opticoll.commands.replay import ReplayRow
    from opticoll.commands.train import TrainingRow
    from opticoll.inputs.fabric_files import FabricLike
    from opticoll.inputs.settings import Settings
    from opticoll.inputs.user_algorithm import UserAlgorithm


def replay(
    trace: str | PathLike[str] | Trace,
    fabric: FabricLike = "zero",
    *,
    collectives: Mapping[str, str] | None = None,
    cpu_factor: str | float | Mapping[Any, str | float] = 1,
    eager: str | int | None = None,
    end_overhead: str | None = None,
    operations_per_second: int | None = None,
    timeline: bool = False,
    bursts: Mapping[str, str] | None = None,
    **settings: Unpack[Settings],
) -> ReplayRow:
    r"""Replays the trace of an MPI program over a network.

    Parameters
    ----------
    trace
        A trace that `read_trace` has read, or its file or folder.
    fabric
        A fabric, its specification or file, a graph of NetworkX, or a cost model such as
        `hockney:latency=1us,rate=10Gb/s` (`zero`, `hockney`, `loggp`, `lightpath_grid`).
    collectives
        The algorithm of each collective by its name, such as `{"all_reduce": "ring"}`; the other
        collectives have `auto`, the fastest plan found for their ranks and their size.
    cpu_factor
        Factor of local work, such as `0.5` or `1/3`; of some ranks as `"1,3=1.5,8-15=2"`, in which
        a plain number is for all other ranks, or as a mapping such as `{3: 1.5, "8-15": 2}`.
    eager
        Largest message that leaves before its receive has begun: a size, `all` or `none`.
    end_overhead
        Time that a rank spends on each message sent and received, such as `500ns`.
    operations_per_second
        Rate of floating-point operations, for traces that count operations instead of time.
    timeline
        Whether the `outcome` of the row has the begin and the end of every call.
    bursts
        Settings of circuits and of bursts by name, for a network of bursts in which each message
        asks for a circuit. `fabric` is then a network as for the function `bursts`; `offered_load`
        is 0 by default.
    settings
        The simulator and its settings, as for `Plan.simulate`.

    Returns
    -------
    ReplayRow
        The time of the program and its parts, in seconds, with the `outcome`.

    Raises
    ------
    OpticollError
        The file is not a trace; a network, algorithm or setting is unknown; or the program cannot
        continue, such as a receive without a send.

    Examples
    --------
    >>> import opticoll
    >>> trace = opticoll.read_trace(
    ...     b"# app=hello ranks=2\nrank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns\n"
    ...     b"0,Send,1,8,0,7,0,,100\n1,Recv,0,0,8,7,0,,40\n"
    ... )
    >>> opticoll.replay(trace, "hockney:latency=1us,rate=10Gb/s").time_s
    1.1064e-06
    """
    row: ReplayRow = one("replay", **locals())
    return row


def train(
    model: str | None,
    fabric: FabricLike,
    *,
    batch: int | None = None,
    device: str | None = None,
    throughput: str | None = None,
    profile: str | PathLike[str] | None = None,
    device_memory: str | int | None = None,
    algorithm: str | UserAlgorithm | None = None,
    gradients: str = "float32",
    buckets: str = "ddp",
    overlap: bool = True,
    epochs: int | None = None,
    samples: int | None = None,
    wavelength: str = "auto",
    tensor_parallel: int | None = None,
    pipeline_parallel: int | None = None,
    data_parallel: int | None = None,
    expert_parallel: int | None = None,
    expert_skew: str | None = None,
    capacity_factor: str | float | None = None,
    sharded: int | None = None,
    micro_batches: int | None = None,
    collectives: Mapping[str, str] | None = None,
    contention: str | None = None,
    reconfigure: str | None = None,
    **settings: Unpack[Settings],
) -> TrainingRow:
    """Times an iteration of training, and the part of it that waits for the network.

    Parameters
    ----------
    model
        A model such as `resnet50` or `gpt:layers=12,width=768` (see `opticoll list models`); None
        with a profile.
    fabric
        The fabric, its specification, its file, or a graph of NetworkX; its ranks are the devices.
    batch
        Samples per replica of the model and iteration, which is a device unless groups of ranks
        divide the model; a profile may contain it.
    device, throughput
        The device, such as `a100:efficiency=0.4`, or a measured throughput of one device, such as
        `50TFLOP/s` or `1100images/s` (default: the first device of `opticoll list devices`).
    profile
        A file of measured layers, in place of model and device (see
        `opticoll.inputs.layer_profile`).
    device_memory
        Memory of a device, such as `80GB` (default: the memory of the device).
    algorithm
        Algorithm of the all_reduce, as for `plan`; `A+B` is a reduce_scatter by A and then an
        all_gather by B (default: `auto` for each size of a bucket).
    gradients
        Number format of gradients on the network: `float32`, `float16` or `bfloat16`.
    buckets
        How gradients are grouped: `tensor`, `all`, `ddp` (1 MiB, then 25 MiB) or a size such as
        `25MiB`.
    overlap
        Whether buckets are sent during the backward pass.
    epochs, samples
        Length of the training: number of epochs, and samples of an epoch.
    wavelength
        Assignment of wavelengths, such as `first_fit`.
    tensor_parallel, pipeline_parallel, data_parallel, expert_parallel
        Numbers of ranks that divide each matrix, of stages, of replicas of the model, and of
        replicas that divide the experts. If any of these or of the following is given, groups of
        ranks divide the model, and the row has `groups`.
    expert_skew, capacity_factor
        Skew of tokens among experts, `zipf:exponent=...,seed=...` or the name of a .csv file, and
        the capacity of an expert as a multiple of its even share.
    sharded
        Stage of ZeRO, 0 to 3: what replicas divide.
    micro_batches
        Number of micro-batches of an iteration (default: 1; in a pipeline one for each sample).
    collectives
        Algorithms of the collectives of groups by their names (default: `auto`).
    contention
        `simulated`, or `none`: each group is timed as if it were alone.
    reconfigure
        What the settings of a `circuit_switch` are planned for: each exchange among experts
        (`layer`), all of an `iteration` together, or none (`never`).
    settings
        The simulator and its settings, as for `Plan.simulate`.

    Returns
    -------
    TrainingRow
        Times of the iteration and its parts in seconds, and a row for each bucket.

    Raises
    ------
    OpticollError
        As for `plan`; the model or device is unknown, the file is not a profile, or arguments do
        not go together.

    Examples
    --------
    >>> import opticoll
    >>> ring = "wdm_ring:ranks=16,wavelengths=8"
    >>> row = opticoll.train("resnet50", ring, batch=32, algorithm="ring")
    >>> round(row.iteration_s, 6), round(row.exposed_communication_s, 6), len(row.buckets)
    (0.047202, 0.029388, 3)
    """
    row: TrainingRow = one("train", **{**locals(), "fabric": [fabric]})
    return row
