"""The reader of the core and that of the reference take and refuse the same texts."""

from __future__ import annotations

import random

import pytest

from opticoll import _core
from opticoll.reference import NotAPlan, TooLarge, read, verify_text
from opticoll.reference.families import read_fabric

RING = "wdm_ring:ranks=3,wavelengths=2,fibres=2"
GRID = "wss_grid:rows=2,columns=2"
PATHS = "lightpath_grid:ranks=3,ports=2"


def plan(
    fabric: str = RING,
    lines: str = "copy 0 0>1 cw 0.0",
    head: str = "opticoll plan 1",
    collective: str = "broadcast ranks=3 root=0 pieces=4",
    options: str = "",
    steps: str = "1 1",
    slots: str = "slot 0",
    end: str = "end 1",
) -> str:
    said = [head, f"collective {collective}", f"fabric {fabric}", "algorithm by hand"]
    said += [line for line in options.split("|") if line]
    return "\n".join([*said, f"steps {steps}", slots, *lines.split("|"), end]) + "\n"


def of_grid(options: str = "", line: str = "copy 0 0>1 row.0", end: str = "end 1") -> str:
    return plan(GRID + options, line, collective="broadcast ranks=4 root=0 pieces=4", end=end)


def with_nodes(nodes: str) -> str:
    return plan(
        f"{GRID},nodes={nodes}", "copy 0 0>1 row.0", collective="gather ranks=2 root=0 pieces=1"
    )


# Characters that some readers take for the end of a line or for blanks.
ODD = [
    "\x00",
    "\x07",
    "\x0b",
    "\x0c",
    "\x1b",
    "\x1c",
    "\x1d",
    "\x1e",
    "\x1f",
    "\x7f",
    "\x85",
    "\xa0",
]
ODD += ["\u1680", "\u2003", "\u2028", "\u2029", "\u202f", "\u3000", "\ufeff", "\u200b", "\r"]

TAKEN_OF_RING = """
ports=all Ports=8 reach=1 dead=0+1.1 flit=32B flit=1KiB,packet=4KiB flit=32B,packet=message
broken=2-0ccw+0-1 rate=2.5GB/s propagation=0ps
"""
TAKEN = [
    plan(),
    plan().replace("\n", "\r\n"),
    plan().rstrip("\n"),
    plan(lines="  copy\t0   0>1 cw  0.0\t # to the next"),
    plan(lines="|# copy 1 0>2 ccw 0.0|copy 0 0>1 cw 0.0"),
    plan(lines="copy 0+4 0>1 cw 0.0"),
    plan(lines="copy 0+0 0>1 cw 0.0"),
    plan(lines="copy 003 00>01 cw 00.01"),
    plan(lines="copy 0 0>1 cw 255.65534"),
    plan(lines="copy 0 0>1 cw 0.*"),
    plan(lines="copy 0 0>1 cw 0.0 x1"),
    plan(lines="copy 0 0>1 cw 0.0 x2 wavelength+1 wavelength+2 x2 fibre+1", end="end 4"),
    plan(lines="copy 0 0>1 cw 0.* x2 wavelength+0", end="end 2"),
    plan(lines="copy 0 0>1 cw 0.0" + " x1" * 32),
    plan(lines="copy 0 0>1 cw 0.0 x2 chunk+1 slot+1", end="end 2"),
    plan(lines="copy 0 0>1 cw 0.0 x2 slot+1 x1 slot+9", end="end 2"),
    plan(lines="copy 0 0>1 cw 0.0 x2 turn+2", end="end 2"),
    plan(lines="copy 4294967295 0>1 cw 0.0").replace("copy 4294967295", "copy 3"),
    plan(lines="", end="end 0"),
    plan(lines="", steps="", slots="", end="end 0"),
    plan(options="size 1.5KiB|claim paper_steps 18446744073709551615|claim neighbours_only"),
    plan(collective="Broad-Cast ranks=3 root=2 pieces=1431655765"),
    *(plan(f"{RING},{option}") for option in TAKEN_OF_RING.split()),
    plan("WDM-ring:wavelengths=2,ranks=3,RECONFIGURATION=0.001ns,converters=full"),
    plan(f"{RING},launch_power=-0.5dBm,sensitivity=-20dBm,through_loss=0.01dB,resonators=65536"),
    plan(f"{RING},launch_power=0dBm,sensitivity=-2dBm,through_loss=9dB,link_loss=2dB"),
    plan("crossbar:ranks=3,rate=4KiB/s,latency=0s", "copy 0+2 0>1"),
    plan(PATHS, "copy 0 0>1 255.65535"),
    plan(PATHS + ",setup=1ms", "copy 0 0>1 0.1 x2 rank+1", end="end 2"),
    of_grid(),
    of_grid(",plan=cyclic,dead_ports=row1.1+column0.0,dead_transceivers=3.row"),
    of_grid(line="copy 0 0>1>3 row.0 column.0@1"),
    of_grid(line="copy 0 0>1 row.0 x2 wavelength+1 x2 rank+1", end="end 4"),
    with_nodes("0+3"),
    with_nodes("3-3+0-0"),
]

# Replacements for a word of a plan that is read, by the word.
CHUNKS = "+1 -1 0+ 0++1 4 1e0 ² 0+4294967296 0+-1 ٣ 1_0"
ENDS = "0>3 0>1>2 0-1 >1 0> +0>1"
LIGHT = [
    *("cw", "0.0", "CW 0.0", "cw 0", "cw 256.0", "row 0.0", "cw -1.0", "cw 0.65535"),
    *("cw .0", "cw 0.", "cw *.0", "cw 0.+1"),
]
REPEATED = [
    *("x0", "x", "x+1", "rank+1", "x1 rank", "2", "x2", "x1 step+1", "x1 rank-1", "x1 rank+"),
    *("x1 chunk+4294967296", "x4294967295 x4294967295 x4294967295", "x1 turn+3"),
]
SLOTS = ["", "slot 2", "slot -1", "slot 0\nslot 0", "slot 0 1", "slot"]
END = [
    *("end 2", "end", "end 1 1", "end +1", "end 1\nslot 1", "", "ends 1", "end 1\nend 1"),
    *("end 99999999999999999999", "end 0"),
]
OPTIONS = [
    *("size 1", "size 1K", "size 0.3B", "size 1B|size 1B", "size 1B 2", "size -1B"),
    *("claim", "claim best", "claim paper_steps 1|size 1B", "claim paper_steps -1"),
    *("claim paper_steps", "claim neighbours_only|claim neighbours_only"),
    *("claim schedule_steps 4294967296", "claim paper_steps 18446744073709551616"),
]
COLLECTIVES = [
    "broadcast ranks=3 root=3 pieces=1",
    "broadcast ranks=3 root=0 pieces=0",
    "broadcast root=0 ranks=3 pieces=1",
    "broadcast ranks=3 root=0",
    "broadcast ranks=+3 root=0 pieces=1",
    "gather ranks=3 root=0 pieces=1431655766",
    "broadcast ranks=4 root=0 pieces=4",
    "broad ranks=3 root=0 pieces=4",
]
RINGS = """
moebius_ring:ranks=3 wdm_ring wdm_ring: wdm_ring:ranks=3 wdm_ring:ranks=3,wavelengths=0
wdm_ring:ranks=3,wavelengths=4097 wdm_ring:ranks=+3,wavelengths=2 wdm_ring:ranks=3,wavelengths=2,
wdm_ring:ranks=3,wavelengths=2,ranks=3
"""
OF_RING = """
colour=red port=8 ports=9 ports=0 ports=few rate=4 rate=0b/s rate=1kbps rate=1.GB/s rate=
conversion=1 conversion=0.1ps conversion=99999999s flit=0B flit=1 packet=32B packet=message
flit=32B,packet=0B flit=32B,packet=100B flit=32B,packet=all converters=Full multicast=yes reach=0
reach=all broken=0-0 broken=0-3 broken=0 broken=0-1cww broken=0-1+ broken=+0-1 dead=2 dead=2.0
dead=0. dead=0+1 dead=+0 dead= through_loss=1dB
launch_power=5,sensitivity=-20dBm,through_loss=0.01dB
launch_power=5dBm,sensitivity=-20dBm,through_loss=-1dB
launch_power=-21dBm,sensitivity=-20dBm,through_loss=1dB
launch_power=5dBm,sensitivity=-20.0000001dBm,through_loss=1dB
launch_power=0dBm,sensitivity=-2dBm,through_loss=0dB,link_loss=1.5dB,fixed_loss=0.6dB resonators=2
"""
OF_GRID = """
colour=red plan=any ports=1 tuning=soon dead_ports=row2.0 dead_ports=row0.2 dead_ports=row.0
dead_transceivers=4.row dead_transceivers=0.rows
"""
ON_GRID = [
    *("0>1 row.*", "0>1 cw 0.0", "0>1 row.0 x1 fibre+1", "0>1>3 row.0", "0>1>3 row.0 column.0"),
    "0>1>3 row.0 column.0@1 x1",
]
NODES = "0+0 1-0 0+4 0+ +0+1 0-1-2 none 0"

REFUSED = [
    "",
    "\n",
    plan(head="opticoll  plan 1"),
    plan(head=" opticoll plan 1"),
    plan(head="opticoll plan 2"),
    plan(head="\ufeffopticoll plan 1"),
    *(plan(lines=f"copy 0{odd}0>1 cw 0.0") for odd in ODD),
    *(plan(lines=f"copy 0 0>1 cw 0.0{odd}slot 1") for odd in ODD),
    *(plan().replace("by hand", f"by{odd}hand") for odd in ODD if odd not in "\ufeff\u200b"),
    plan().rstrip("\n") + "\r",
    plan().replace("\n", "\r"),
    *(plan(lines=f"copy {chunks} 0>1 cw 0.0") for chunks in [*CHUNKS.split(), ""]),
    *(plan(lines=f"copy 0 {ends} cw 0.0") for ends in ENDS.split()),
    *(plan(lines=f"copy 0 0>1 {light}") for light in LIGHT),
    *(plan(lines=f"copy 0 0>1 cw 0.0 {more}") for more in REPEATED),
    plan(lines="copy 0 0>1 cw 0.0" + " x1" * 33),
    plan(lines="copy 0 0>1 cw 0.0 x2 slot+2", end="end 2"),
    plan(lines="copy 0 0>1 cw 0.0 x2 slot+1 x2 slot+1", end="end 4"),
    plan(lines="copy 0 0>1 cw 255.0 x2 fibre+1", end="end 2"),
    plan(lines="copy 0 0>1 cw 0.65534 x2 wavelength+1", end="end 2"),
    plan(lines="copy 0 0>1 cw 0.* x1 wavelength+1"),
    plan(lines="move 0 0>1 cw 0.0"),
    *(plan(slots=slots) for slots in SLOTS),
    *(plan(end=end) for end in END),
    *(plan(steps=steps) for steps in ("1 x", "16777216 1", "4294967296")),
    plan().replace("steps 1 1\n", ""),
    *(plan(options=options) for options in OPTIONS),
    *(plan(collective=collective) for collective in COLLECTIVES),
    *(plan(fabric) for fabric in RINGS.split()),
    *(plan(f"{RING},{option}") for option in OF_RING.split()),
    plan("crossbar:ranks=3,colour=red", "copy 0 0>1"),
    plan("crossbar:ranks=3,rate=fast", "copy 0 0>1"),
    plan("crossbar:ranks=3", "copy 0 0>1 cw 0.0"),
    plan("crossbar:ranks=3", "copy 0 0>1 x1 wavelength+1"),
    *(plan(PATHS, f"copy 0 0>1 {light}") for light in ("0.*", "256.0", "0.65536")),
    plan(PATHS, "copy 0 0>1"),
    plan(PATHS + ",colour=red", "copy 0 0>1 0.0"),
    plan(PATHS + ",ports=257", "copy 0 0>1 0.0").replace("ports=2,", ""),
    *(of_grid(f",{option}") for option in OF_GRID.split()),
    *(of_grid(line=f"copy 0 {line}") for line in ON_GRID),
    *(with_nodes(nodes) for nodes in NODES.split()),
]


def core_takes(text: str) -> bool:
    try:
        _core.Plan.from_text(text)
    except _core.PlanFileError:
        return False
    return True


def reference_takes(text: str) -> bool:
    try:
        read(text)
    except NotAPlan:
        return False
    return True


@pytest.mark.parametrize("text", TAKEN)
def test_both_readers_take_what_is_of_the_form(text: str) -> None:
    assert core_takes(text)
    assert reference_takes(text)


@pytest.mark.parametrize("text", REFUSED)
def test_both_readers_refuse_what_is_not(text: str) -> None:
    assert not core_takes(text)
    assert not reference_takes(text)


def test_the_reference_refuses_what_would_take_it_too_long() -> None:
    text = plan("crossbar:ranks=3", "copy 0+1000000000 0>1").replace(
        "pieces=4", "pieces=1000000000"
    )
    assert core_takes(text)
    with pytest.raises(TooLarge, match="1000000000 chunks"):
        verify_text(text)


FABRICS = [
    *("wdm_ring:ranks=8,wavelengths=4", "wdm_ring:ranks=8,wavelengths=4,fibres=2,dead=0.1"),
    *("wss_grid:rows=4,columns=4", "lightpath_grid:ranks=8,ports=2"),
    *("passive_star:ranks=8,wavelengths=4", "circuit_switch:ranks=8,ports=2"),
    *("crossbar:ranks=4", "fully_connected:ranks=4", "electrical_ring:ranks=5"),
    *("torus:dims=3x3", "mesh:dims=3x3,terminals=2", "ladder:rungs=4", "ocs_torus:dims=4x4x4"),
    *("fat_tree:down=2x2,up=1x2", "fat_tree:arity=4,levels=2", "gpu_servers:model=dgx_a100"),
    "dragonfly:terminals_per_router=2,routers_per_group=2,global_per_router=1",
    "custom:ranks=3,switches=1,links=0-3+1-3@400Gb/s+2~3,names=a+b+c+d",
    "gpu_servers:model=dgx_h100,boxes=4,outside=wdm_ring/wavelengths=4",
    "gpu_servers:model=dgx_h100,boxes=4,outside=torus/dims=2x2/rate=50GB/s",
]

VALUES = """
0 1 2 3 7 16 1000 4294967296 -1 1.5 yes no none all full 0s 25us 0.1ps 0b/s 40Gb/s
4x4 0x2 2x 2x2x2 1-2 7-0 0-1cw 3+3 0+1 half shared per_flow cyclic simgrid valiant first
rails flat reduce circuit_switch wdm_ring/ranks=4 wdm_ring/wavelengths=2/rate=50GB/s torus/dims=4
circuit_switch/packet_rate=1Gb/s circuit_switch/ranks=3 crossbar/rate=1Gb//s
0.1 1usx2us 1Gb/sx2Gb/s 0-1 0>1+1-2 1-0+2-0+3-0@x a+b a+b+c+d 3dB any
"""


def mutated(seed: int) -> str:
    """Returns a specification of a fabric in which options are changed, added or left out."""
    draw = random.Random(seed)
    family, _, given = draw.choice(FABRICS).partition(":")
    (record,) = (one for one in _core.records("fabrics") if one["name"] == family)
    known = [option["name"] for option in record["options"]]
    options = dict(one.split("=", 1) for one in given.split(","))
    for _ in range(draw.randint(1, 3)):
        # Only the core knows which vertices can be broken.
        name = draw.choice([one for one in [*known, *options, "depth"] if one != "without"])
        if draw.random() < 0.1:
            options.pop(name, None)
        else:
            options[name] = draw.choice(VALUES.split())
    return f"{family}:{','.join(f'{name}={value}' for name, value in options.items())}"


def test_what_the_core_refuses_as_a_fabric_the_reference_refuses() -> None:
    accepted = {}
    refused = 0
    for text in map(mutated, range(4000)):
        try:
            _core.Fabric(text)
        except _core.OpticollError as error:
            refused += 1
            try:
                read_fabric(text)
            except (NotAPlan, KeyError, ValueError):
                continue
            accepted[text] = str(error)
    assert accepted == {}
    assert refused > 2000
