"""Functions for whole programs: replay of MPI traces, and iterations of training."""

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
    r"""Replays the trace of an MPI program on a network.

    Parameters
    ----------
    trace
        A trace that `read_trace` returned, or the path of a trace file or folder.
    fabric
        A fabric, its specification or file, a NetworkX graph, or a cost model such as
        `hockney:latency=1us,rate=10Gb/s` (`zero`, `hockney`, `loggp`, `lightpath_grid`).
    collectives
        Algorithm of each named collective, such as `{"all_reduce": "ring"}`. All other collectives
        use `auto`, the fastest plan found for the collective's ranks and size.
    cpu_factor
        Factor on the duration of local work, such as `0.5` or `1/3`. Ranks may have factors of
        their own: `"1,3=1.5,8-15=2"`, or a mapping such as `{3: 1.5, "8-15": 2}`. A number without
        ranks is for all other ranks.
    eager
        Largest message that is sent before its receive is posted: a size, `all` or `none`.
    end_overhead
        CPU time of a rank for each message that it sends or receives, such as `500ns`.
    operations_per_second
        Rate of floating-point operations, for traces that count operations instead of time.
    timeline
        Whether the row's `outcome` records the start and the end of every call.
    bursts
        Settings of circuits and bursts by name. If given, each message requests a circuit of a
        burst-switched network. Then `fabric` is a network as for the function `bursts`, and
        `offered_load` is 0 by default.
    settings
        The simulator and its settings, as for `Plan.simulate`.

    Returns
    -------
    ReplayRow
        The time of the program and its components, in seconds, with the `outcome`.

    Raises
    ------
    OpticollError
        The file is no trace; a network, algorithm or setting is unknown; or the program cannot
        continue, for example because a receive has no send.

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
    context_parallel: int | None = None,
    context_exchange: str | None = None,
    pipeline_parallel: int | None = None,
    data_parallel: int | None = None,
    expert_parallel: int | None = None,
    expert_skew: str | None = None,
    capacity_factor: str | float | None = None,
    replicate_experts: int | None = None,
    expert_placement: str | None = None,
    expert_chunks: int | None = None,
    sharded: int | None = None,
    prefetch: int | None = None,
    micro_batches: int | None = None,
    chunks: int | None = None,
    sequence_parallel: bool | None = None,
    overlap_tensor: bool | None = None,
    overlap_experts: bool | None = None,
    recompute: str | None = None,
    attention: str | None = None,
    loss: str | None = None,
    main_gradients: str | None = None,
    dispatch: str | None = None,
    collectives: Mapping[str, str] | None = None,
    contention: str | None = None,
    reconfigure: str | None = None,
    **settings: Unpack[Settings],
) -> TrainingRow:
    """Computes how long an iteration of training takes, and how long it waits for the network.

    Parameters
    ----------
    model
        A model such as `resnet50` or `gpt:layers=12,width=768` (see `opticoll list models`). None
        if `profile` is given.
    fabric
        The fabric, its specification, its file, or a NetworkX graph; its ranks are the devices.
    batch
        Number of samples that each replica of the model processes per iteration (default: the
        number in the profile). A replica is one device, or a group of ranks that divide the model.
    device, throughput
        The device, such as `a100:efficiency=0.4`, or a measured throughput of one device, such as
        `50TFLOP/s` or `1100images/s` (default: the device of the fabric's servers, or `h100`).
    profile
        A file of measured layers, which replaces model and device (see
        `opticoll.inputs.layer_profile`).
    device_memory
        Memory of a device, such as `80GB` (default: the memory of the device).
    algorithm
        Algorithm of the all_reduce, as for `plan`. `A+B` is a reduce_scatter by A followed by an
        all_gather by B. The default is `auto`, which makes a plan for each size of buckets.
    gradients
        Number format of gradients on the network: `float32`, `float16` or `bfloat16`.
    buckets
        Grouping of gradients: `tensor`, `all`, `ddp` (1 MiB, then 25 MiB) or a size such as
        `25MiB`.
    overlap
        Whether the network sends buckets while the backward pass computes.
    epochs, samples
        Length of the training: the number of epochs, and the number of samples per epoch.
    wavelength
        Algorithm that assigns wavelengths, such as `first_fit`.
    tensor_parallel, context_parallel, pipeline_parallel, data_parallel, expert_parallel
        Five numbers: ranks that divide each matrix, ranks that divide the tokens of a sample,
        pipeline stages, replicas of the model, and ranks that divide the experts. If any of these
        options or of the options below is given, groups of ranks divide the model, and the row has
        `groups`.
    context_exchange
        Exchange of context-parallel ranks at attention: `ring` or `all_to_all` (default: `ring`).
    expert_skew, capacity_factor
        `expert_skew` is the distribution of tokens over experts: a rule such as `zipf:exponent=1.2`
        or `hot_rank`, or a .csv file. An expert's capacity is `capacity_factor` times an even share
        of the tokens.
    replicate_experts, expert_placement
        Number of further copies of the most loaded experts of a layer (default: 0), and their
        placement on ranks: in the `order` of their numbers, or by `load` (default: `order`).
    expert_chunks
        Number of chunks in which tokens are sent to experts (default: 1).
    sharded
        Stage of ZeRO, 0 to 3, which determines the data that replicas divide among themselves.
    prefetch
        Number of units (blocks) whose sharded parameters are gathered ahead; with stage 1 or 2
        during the next forward pass (default: 1 with stage 3; else after the optimizer's step).
    micro_batches
        Number of micro-batches per iteration (default: 1, or in a pipeline, one per sample).
    chunks
        Number of model chunks of a pipeline stage; several chunks interleave the stages
        (default: 1).
    sequence_parallel
        Whether tensor-parallel ranks divide the tokens between the matrices (default: False).
    overlap_tensor, overlap_experts
        Whether exchanges of tensor-parallel ranks run beside the matrix products next to them, and
        exchanges among experts beside the computing of another micro-batch (default: False).
    recompute
        Part of the forward pass that the backward pass computes again: `none`, `selective` (scores
        of attention) or `full` (blocks) (default: `none`).
    attention
        Kernels of attention: `flash`, or `scores`, which are stored (default: `flash`).
    loss
        Kernels of the loss: `float32`, with copies of the logits, or `fused` (default: `float32`).
    main_gradients
        Number format in which a device sums up gradients: `bfloat16` or `float32` (default:
        `bfloat16`).
    dispatch
        Number format of tokens on their way to experts: `bf16` or `fp8` (default: `bf16`).
    collectives
        Algorithm of each named collective of the groups (default: `auto`).
    contention
        `simulated`: all groups compete for the network. `united`: the groups of one kind share
        the fabric. `none`: each group is timed alone.
    reconfigure
        When the circuits of a `circuit_switch` change: for each `collective`, the same for all
        exchanges of experts in an `iteration`, or `never`.
    settings
        The simulator and its settings, as for `Plan.simulate`.

    Returns
    -------
    TrainingRow
        Times of the iteration and its parts in seconds, and a row for each bucket.

    Raises
    ------
    OpticollError
        Any reason that `plan` lists, the model or device is unknown, the file is no profile, or
        arguments contradict each other.

    Examples
    --------
    >>> import opticoll
    >>> ring = "wdm_ring:ranks=16,wavelengths=8"
    >>> row = opticoll.train("resnet50", ring, batch=32, algorithm="ring")
    >>> round(row.iteration_s, 6), round(row.exposed_communication_s, 6), len(row.buckets)
    (0.04679, 0.03367, 3)
    """
    row: TrainingRow = one("train", **{**locals(), "fabric": [fabric]})
    return row
