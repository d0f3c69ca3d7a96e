"""Prints the table of the page "Light or copper", and the commands that compute its numbers.

python validation/light_or_copper.py
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from typing import Any

from opticoll.outputs.layout import human_energy

PARTS = "examples/light-or-copper.yaml"

FAT_TREES = {
    256: "fat_tree:down=64x4,up=1x2,links=1x32",
    4096: "fat_tree:down=64x64,up=1x32,links=1x2",
    65536: "fat_tree:down=64x64x16,up=1x64x8,links=1x1x8",
}
"""Full bandwidth; each switch has 128 ports, so that a switch of 144 ports can replace it."""

SWITCHES = {256: "", 4096: ",switch_ports=64", 65536: ",switch_ports=256"}
TORI = {256: "4x8x8,spares=1", 4096: "16x16x16,spares=6", 65536: "64x32x32,spares=48"}

Fabric = tuple[str, str, str, list[str]]
"""Name, specification, algorithm, and options that replace the packet switches."""


def fabrics(ranks: int) -> list[Fabric]:
    """Returns four fabrics whose ranks can inject 800 Gb/s."""
    tree = f"{FAT_TREES[ranks]},rate=800Gb/s,latency=500ns"
    circuits = f"circuit_switch:ranks={ranks},ports=2,planes=2{SWITCHES[ranks]},rate=400Gb/s"
    torus = f"ocs_torus:dims={TORI[ranks]},rate=133Gb/s,latency=500ns"
    return [
        ("packets, pluggable modules", tree, "halving_doubling", []),
        ("packets, co-packaged optics", tree, "halving_doubling", ["--switch", "q3450_cpo"]),
        ("circuits", circuits, "dual_plane_halving_doubling", []),
        ("torus of copper and light", torus, "multi_ring", []),
    ]


def answer(*words: str) -> Any:
    """Returns the JSON of a command, which is printed."""
    print("$ opticoll", shlex.join(words), file=sys.stderr, flush=True)
    line = [sys.executable, "-m", "opticoll", *words, "--json"]
    return json.loads(subprocess.run(line, check=False, capture_output=True, text=True).stdout)


def line(ranks: int, fabric: Fabric) -> list[str]:
    """Returns a line of the table: time, energy, power, price and goodput of a fabric."""
    name, spec, algorithm, switch = fabric
    parts = ["--components", PARTS, *switch]
    *_, total = answer("list", "bom", spec, *parts)
    run = ["--checkpoint", "30s", "--restart", "3min"]
    (goodput,) = answer("goodput", "--fabric", spec, *parts, *run)
    if ranks == 65536 and algorithm == "multi_ring":
        # The plan would have 25 billion transfers.
        bound = answer("bound", "all_reduce", "--fabric", spec, "--size", "1GB")
        seconds = max(one["time_s"] or 0 for one in bound["bounds"])
        shown = f">= {1e3 * seconds:.2f} ms"
        bits = "-"
    else:
        options = ["--fabric", spec, "--size", "1GB", "--algorithm", algorithm]
        plan = answer("plan", "all_reduce", *options, *parts)
        proved = "" if plan["verified"] else " (not proved)"
        seconds, shown = plan["time_s"], f"{1e3 * plan['time_s']:.2f} ms{proved}"
        bits = human_energy(plan["energy_j"])
    power = total["power_w"]
    return [
        f"{ranks:,}",
        name,
        shown,
        bits,
        human_energy(power * seconds),
        f"{power / ranks:,.3g} W",
        f"{total['price_usd'] / ranks:,.0f} USD",
        f"{goodput['goodput']:.1%}",
        goodput["largest_part"],
    ]


def main() -> None:
    """Prints the table in Markdown."""
    heads = ["GPUs", "fabric", "all_reduce of 1 GB", "bits and lasers", "static"]
    heads += ["power per GPU", "price per GPU", "goodput", "fails most"]
    print("|", " | ".join(heads), "|")
    print("|", " | ".join(["--:", "---", *["--:"] * 6, "---"]), "|")
    for ranks in FAT_TREES:
        for fabric in fabrics(ranks):
            print("|", " | ".join(line(ranks, fabric)), "|", flush=True)


if __name__ == "__main__":
    main()
