"""Execution plans of MSCCL++ (JSON), and a script that loads a plan under PyTorch.

>>> import pathlib, tempfile, opticoll
>>> plan = opticoll.plan("all_gather", "crossbar:ranks=4", "ring")
>>> path = pathlib.Path(tempfile.mkdtemp()) / "ring.mscclpp.json"
>>> [file.name for file in write(opticoll.Program.from_plan(plan), 1 << 20, path)]
['ring.mscclpp.json', 'ring.mscclpp.py']
>>> program = read(path)
>>> program.collective.kind, program.one_sided, program.verify(in_place=False).violations
('all_gather', True, [])
"""

from __future__ import annotations

import os
from pathlib import Path

from opticoll._core import Program, ProgramError
from opticoll.formats.atomic import write_file
from opticoll.formats.content import MAX_TEXT_BYTES, naming, read_text

LOADED = ("all_reduce", "all_gather", "reduce_scatter")
"""Collectives that MSCCL++ executes in place of NCCL and whose calls name no root.

MSCCL++ would execute a plan of broadcast for every root.
"""

LOADER = '''"""Loads an execution plan into MSCCL++, and calls {kind} of PyTorch with it.

    LD_PRELOAD=libmscclpp_nccl.so torchrun --nnodes={nodes} --nproc_per_node={per_node} {script}

Jobs of your own call `load` before `init_process_group`. MSCCL++ takes the plan for sums {called}
with sizes in the plan's range. All other calls go to its own algorithms, or to NCCL.
"""

import os
from pathlib import Path

import mscclpp
import mscclpp.ext

PLAN = Path(__file__).with_name("{plan}")


def load():
    """Registers the plan for this process."""
    algorithm = mscclpp.Algorithm(
        id=PLAN.stem,
        execution_plan=mscclpp.ExecutionPlan(str(PLAN), int(os.environ["RANK"])),
        constraint=mscclpp.Algorithm.Constraint(world_size={ranks}, n_ranks_per_node={per_node}),
    )
    mscclpp.ext.AlgorithmCollectionBuilder().add_algorithm_builder(algorithm)


if __name__ == "__main__":
    import torch
    import torch.distributed as dist

    load()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)

    def buffer(elements, value):
        """Returns memory at the same offset on all ranks, which switches may access."""
        memory = mscclpp.RawGpuBuffer(4 * elements).to_dlpack(data_type=str(torch.float32))
        return torch.utils.dlpack.from_dlpack(memory).fill_(value)

{call}
    dist.destroy_process_group()
'''
"""Script that is written beside a plan."""

CALLS = {
    "all_reduce": (
        "data = buffer({elements}, 1)",
        "dist.all_reduce(data)",
        "assert (data == {ranks}).all()",
    ),
    "all_gather": (
        "own = buffer({elements}, dist.get_rank())",
        "data = buffer({ranks} * {elements}, -1)",
        "dist.all_gather_into_tensor(data, own)",
        "assert (data == torch.arange({ranks}, device=device).repeat_interleave({elements})).all()",
    ),
    "reduce_scatter": (
        "own = buffer({elements}, 1)",
        "data = buffer({elements} // {ranks}, -1)",
        "dist.reduce_scatter_tensor(data, own)",
        "assert (data == {ranks}).all()",
    ),
}
"""Statements that call a collective with float32 elements and check its result."""


def read(path: str | os.PathLike[str]) -> Program:
    """Reads a program from an execution plan.

    Raises
    ------
    FileError
        The file cannot be read, decompressed, or decoded as UTF-8.
    ProgramError
        The program is malformed, or MSCCL++ cannot execute it; the message names file and line.
    """
    text = read_text(path, "JSON file", MAX_TEXT_BYTES)
    with naming(path, ProgramError):
        return Program.from_mscclpp(text)


def write(
    program: Program,
    size_bytes: int,
    path: str | os.PathLike[str],
    *,
    protocol: str | None = None,
) -> list[Path]:
    """Writes an execution plan, and a script that loads it if PyTorch calls the collective.

    `protocol` is `Simple` or `LL` (default: by the size). Returns the paths of the files.

    Raises
    ------
    FileError
        A file cannot be written.
    ProgramError
        MSCCL++ cannot execute the program; the message names the limit that it exceeds.
    """
    place = Path(path)
    text = program.to_mscclpp(size_bytes, protocol)
    write_file(place, text)
    kind, ranks = program.collective.kind, program.collective.ranks
    per_node = min(ranks, program.ranks_per_server or ranks)
    if kind not in LOADED or ranks % per_node:
        return [place]
    loader = place.with_suffix(".py")
    words = {"elements": str(size_bytes // 4), "ranks": str(ranks)}
    call = "\n".join(f"    {line.format_map(words)}" for line in CALLS[kind])
    values = {
        "kind": kind,
        "nodes": ranks // per_node,
        "per_node": per_node,
        "script": loader.name,
        "called": "in place" if Program.from_mscclpp(text).in_place else "out of place",
        "plan": place.name,
        "ranks": ranks,
        "call": call,
    }
    write_file(loader, LOADER.format_map(values))
    return [place, loader]
