"""The figures that a command of opticoll draws, beside the pages that print the command."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

__all__ = ["COMMANDS", "MAPS", "STUDIES", "SWEEPS", "draw", "reproduce", "sweep"]

EXAMPLES = Path(__file__).parents[2] / "examples"

COMMANDS = {
    "all_gather": (
        "compare all_gather --fabric optree_paper --size 4MiB "
        "--algorithms ring,neighbour_exchange,wrht,optree,relay_tree --figure"
    ),
    "cookbook_times": (
        "compare all_gather --fabric wdm_ring:ranks=64,wavelengths=16 --sizes 1KiB..64MiB "
        "--algorithms ring,optree,relay_tree --figure"
    ),
    "cookbook_slot": (
        "show all_gather --fabric wdm_ring:ranks=16,wavelengths=4 --algorithm relay_tree --slot 0 "
        "--figure"
    ),
    "fat_tree_all_reduce": (
        "compare all_reduce "
        "--fabric fat_tree:down=16x8x8,up=1x8x8,links=1x1x1,rate=12.5GB/s,latency=500ns "
        "--algorithms ring,recursive_doubling,halving_doubling --sizes 1KiB..1GiB --figure"
    ),
    "fibre_lightpaths": (
        "show all_gather --fabric nsfnet:wavelengths=8 --algorithm direct:order=at_once --slot 1 "
        "--figure"
    ),
    "torus_load": (
        "show all_reduce --fabric torus:dims=6x5 --algorithm recursive_doubling --figure"
    ),
    "torus_trees": (
        "show all_gather --fabric torus:dims=4x4 --algorithm tree_packing:trees=4,chunks=1 "
        "--size 1MiB --view trees --of-rank 5 --figure"
    ),
    "fat_tree_messages": (
        "show all_reduce --fabric fat_tree:down=4x4,up=1x2,latency=1us "
        "--algorithm halving_doubling --size 1MiB --view space_time --figure"
    ),
    "fat_tree_use": (
        "simulate all_reduce --fabric fat_tree:down=4x4,up=1x2,latency=1us "
        "--algorithm halving_doubling --size 64MiB --figure"
    ),
    "oddl_slot": (
        "show all_reduce --fabric "
        "wss_grid:rows=4,columns=4,dead_transceivers=6.row,nodes=0-14 "
        "--algorithm halving_doubling --slot 0 --figure"
    ),
    "oddl_space_time": (
        "show all_reduce --fabric "
        "wss_grid:rows=4,columns=4,dead_transceivers=6.row,nodes=0-14 "
        "--algorithm halving_doubling --view space_time --figure"
    ),
    "obs_grid_ports": (
        "show all_gather --fabric lightpath_grid:ranks=8,ports=2 "
        "--algorithm recursive_doubling --size 100kB --figure"
    ),
    "circuit_switch_ports": (
        "show all_reduce --fabric "
        "circuit_switch:ranks=8,startup=100ns,latency=100ns,reconfiguration=1us --size 1MiB "
        "--algorithm switch_configurations:algorithm=cyclic_doubling --figure"
    ),
    "circuit_switch_configurations": (
        "show all_reduce --fabric "
        "circuit_switch:ranks=8,startup=100ns,latency=100ns,reconfiguration=1us --size 1MiB "
        "--algorithm switch_configurations:algorithm=cyclic_doubling --view configurations --figure"
    ),
    "replay_mg": (
        "replay crates/tests/data/traces/mg.A.16.csv.zst "
        "--fabric fat_tree:down=4x4,up=1x2,rate=1Gb/s,latency=5us --figure"
    ),
    "congestion": (
        "congestion all_reduce "
        "--fabric wdm_ladder:rungs=5,hosts=10,wavelengths=10,rate=10Gb/s "
        "--algorithm recursive_doubling --ranks 20 --size 1MB --offered-load 0,0.2,0.4,0.6,0.8 "
        "--congestion retry,all_or_nothing,degrade --figure"
    ),
    "goodput": "goodput --devices 256,4096,65536 --interval 2min,5min,young,30min,2h --figure",
}
"""Commands by the figure whose path follows them: some half a minute in all."""

MAPS = {
    "circuit_switch_map": (
        "compare all_reduce --fabric circuit_switch:ranks=64,startup=100ns,latency=100ns "
        "--sizes 1KiB..1GiB --reconfiguration 10ns,100ns,1us,10us,100us,1ms,10ms "
        "--algorithms ring,recursive_doubling,halving_doubling,"
        "switch_configurations:algorithm=cyclic_doubling --figure"
    ),
}
"""Commands whose figure takes some minutes, by the figure whose path follows them."""

SWEEPS = {
    "wavelengths": "wavelengths-or-fat-tree",
    "reconfiguration": "reconfiguration-time",
    "failures": "failed-cable",
}
"""Studies whose page has a figure, by name, with their file in `examples/`: a minute in all."""

STUDIES = {
    "wrht --long": {"fig2_fat_tree": "wrht_electrical"},
    "obs_grid": {
        "applications": "obs_grid_applications",
        "costs": "obs_grid_costs",
        "ladder": "obs_grid_ladder",
    },
    "oddl": {
        "timeline": "oddl_timeline",
        "four_nodes": "oddl_four_nodes",
        "iteration": "oddl_iteration",
        "scaling": "oddl_scaling",
    },
}
"""Figures by the study that draws them, with its options, and its name for each: some minutes."""


def draw(
    folder: Path, suffix: str, say: Callable[[str], None], commands: dict[str, str] = COMMANDS
) -> None:
    """Runs commands by their figures."""
    for figure, command in commands.items():
        _run([*shlex.split(command), str(folder / f"{figure}.{suffix}")], say)


def sweep(folder: Path, suffix: str, say: Callable[[str], None]) -> None:
    """Computes the sweeps and copies the figures of their page, which are .svg only."""
    with tempfile.TemporaryDirectory() as name:
        parts = ("store.sqlite", "page.html", "drawn")
        store, page, drawn = (str(Path(name) / part) for part in parts)
        for file in SWEEPS.values():
            _run(["sweep", str(EXAMPLES / f"{file}.yaml"), "--store", store], say)
        _run(["report", store, "--output", page, "--figures", drawn], say)
        for study in SWEEPS if suffix == "svg" else ():
            source = Path(drawn) / f"{study}.svg"
            (folder / f"study_{study}.svg").write_bytes(source.read_bytes())


def reproduce(folder: Path, suffix: str, say: Callable[[str], None]) -> None:
    """Runs the studies in full and copies the figures that the pages show."""
    for study, figures in STUDIES.items():
        with tempfile.TemporaryDirectory() as name:
            _run(["reproduce", *shlex.split(study), "--output", name], say)
            for drawn, figure in figures.items():
                source = Path(name) / f"{drawn}.{suffix}"
                (folder / f"{figure}.{suffix}").write_bytes(source.read_bytes())


def _run(words: list[str], say: Callable[[str], None]) -> None:
    say(f"opticoll {shlex.join(words)}")
    line = [sys.executable, "-m", "opticoll", *words]
    subprocess.run(line, stdout=subprocess.DEVNULL, check=True)
