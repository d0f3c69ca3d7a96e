"""Bad input: one line that says what is wrong, exit code 2, nothing printed, nothing written."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import zstandard

import opticoll
from opticoll import errors
from opticoll.formats import content
from support import RING, Run

LIMIT = "must be"


def check(run: Run, folder: Path, arguments: list[str], *words: str) -> None:
    """The command is refused, its error or hint has all the words, and the folder is as before."""
    before = sorted(folder.iterdir())
    finished = run(*arguments)
    assert finished.code == 2
    assert finished.out == ""
    first, *hints = finished.err.splitlines()
    assert first.startswith("opticoll: error: ")
    assert all(hint.startswith("hint: ") for hint in hints)
    assert len(hints) <= 1
    for word in words:
        told = word.removeprefix("hint: ")
        assert told in (first if told == word else hints[0])
    assert "Traceback" not in finished.err
    assert sorted(folder.iterdir()) == before


PLAN = ["plan", "all_gather"]
ON_RING = [*PLAN, "--fabric", RING]

EIGHT = "wdm_ring:ranks=8,wavelengths=2"
SWITCH = "crossbar:ranks=8,rate=8Gb/s"
TREE = "fat_tree:down=4x4,up=1x2,rate=100Gb/s,latency=1us"
FOUR = "circuit_switch:ranks=4,reconfiguration=1us"
OTHER = "circuit_switch:ranks=8,startup=100ns,latency=100ns"
ONE = "circuit_switch:ranks=6,startup=100ns,latency=100ns,reconfiguration=1us"
TWO = "circuit_switch:ranks=6,ports=2,planes=2,latency=100ns"
FEW = "circuit_switch:ranks=6,ports=2,planes=2,switch_ports=3,dead_ports=5.1"
PATHS = "light_path_grid:ranks=8,ports=2"
STAR = "passive_star:ranks=6,wavelengths=3,transmitters=2,receivers=2"
GRID = "wss_grid:rows=2,columns=2,rate=100Gb/s"
REPLAN = (
    "replan all_reduce --fabric wss_grid:rows=4,columns=4,rate=8Gb/s,tuning=0s "
    "--algorithm halving_doubling --size 16KiB"
)
EXPORT = "export all_gather --fabric crossbar:ranks=4 --algorithm ring"
CONGESTION = (
    "congestion all_reduce --fabric ladder:rungs=5,hosts=2,wavelengths=6,rate=10Gb/s,latency=0s"
)
BURSTS = (
    "traffic --simulator burst --csv table.csv "
    "--fabric ladder:rungs=5,hosts=10,wavelengths=12,rate=10Gb/s"
)
PACKETS = (
    "traffic --fabric dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2"
)

# A command, and the words of its error, or of the hint after it.
REFUSED = f"""
# Commands, options and values.
pln => Did you mean "plan"?
plan => COLLECTIVE
plan all_gather => --fabric | optree_paper
plan all_gater --fabric {RING} => did you mean `all_gather`?
plan all_gather --fabric {RING} --algorithm optre => did you mean `optree`?
plan all_gather --fabric {RING} --algorithm binary_tree => all_gather
plan all_gather --fabric wdm_rin:ranks=4 => did you mean `wdm_ring`?
plan all_gather --fabric terrarack => did you mean `terarack`?
plan all_gather --fabric wdm_ring:rank=4,wavelengths=1 => no option `rank` | `ranks`
plan all_gather --fabric {RING} --algorithm optree:radixes=4x4 => did you mean `radices`?
plan all_gather --fabric wdm_ring:ranks=4,ranks=5,wavelengths=1 => twice
plan all_gather --fabric wdm_ring:wavelengths=1 => needs ranks=
plan all_gather --fabric wdm_ring:ranks=0,wavelengths=1 => ranks=0 | must be
plan all_gather --fabric wdm_ring:ranks=4,wavelengths=0 => wavelengths=0 | must be
plan all_gather --fabric wdm_ring:ranks=4,wavelengths=2.5 => wavelengths=2.5 | whole
plan all_gather --fabric wdm_ring:ranks=-4,wavelengths=1 => ranks=-4 | whole
plan all_gather --fabric wdm_ring:ranks=99999999999,wavelengths=1 => ranks | whole
plan all_gather --fabric wdm_ring:ranks=4,wavelengths=1,rate=40G => rate=40G
plan all_gather --fabric wdm_ring:ranks=4,wavelengths=1,rate=0Gb/s => rate
plan all_gather --fabric wdm_ring:ranks=4,wavelengths=1,reconfiguration=25
    => reconfiguration=25 | 25us
plan all_gather --fabric wdm_ring:ranks=4,wavelengths=1,reconfiguration=0.3ps
    => 0.3ps | whole number of picoseconds
plan all_gather --fabric {RING} --size 4M => 4MB or 4MiB
plan all_gather --fabric {RING} --size 4096 => 4096 | unit
plan all_gather --fabric {RING} --size 1.5B => 1.5B | whole number of bytes
plan all_gather --fabric {RING} --size 99999999TiB => too large
plan all_gather --fabric {RING} --size=-4MiB => -4MiB
plan all_gather --fabric {RING} --size '' => size
plan all_gather --fabric {RING} --algorithm optree:k=99 => k=99 | 4
plan all_gather --fabric {RING} --algorithm optree:k=0 => k=0
plan all_gather --fabric {RING} --algorithm optree:k=2.5 => k=2.5 | whole
plan all_gather --fabric {RING} --algorithm optree:radices=2x2 => radices=2x2 | 16
plan all_gather --fabric {RING} --algorithm optree:radices=4y4 => radices=4y4
plan all_gather --fabric wdm_ring:ranks=7,wavelengths=1 --algorithm neighbour_exchange
    => on 7 ranks | even
plan all_gather --fabric {RING} --policy never => unknown policy `never` | every_step
plan all_gather --fabric {RING} --simulator circus => did you mean `circuit`?
plan all_gather --fabric {RING} --wavelength first => `first` | first_fit
plan all_gather --fabric {RING} --wavelength random:seed=2.5 => seed=2.5
plan broadcast --fabric {RING} --root 16 => root 16 is no rank
plan broadcast --fabric {RING} --root=-1 => root -1 is no rank
plan broadcast --fabric {RING} --root first => --root | `first` | whole number
plan broadcast --fabric {RING} --root 1.5 => --root | `1.5` | whole number
plan broadcast --fabric {RING} --root 0x3 => --root | `0x3` | whole number
plan broadcast --fabric {RING} --root 1e0 => --root | `1e0` | whole number
plan broadcast --fabric {RING} --root '' => --root | `` | whole number
plan broadcast --fabric {RING} --root -1 => root -1 is no rank
plan all_gather --fabric {RING} --root 0 => all_gather has no root
compare all_reduce --fabric {RING} --root 0 => all_reduce has no root
{CONGESTION} --seed -1 => --seed | 0..4294967295
{CONGESTION} --seed 4294967296 => --seed | 0..4294967295
{CONGESTION} --seed 99999999999 => --seed | 0..4294967295
{CONGESTION} --seed 1.5 => --seed | `1.5` | whole number
plan all_gather --fabric {RING} --seed 1 => Unknown option: --seed
show all_gather --fabric {RING} --slot 1.5 => --slot | `1.5` | whole number
show all_gather --fabric {RING} --view space_time --slot 0 --figure out.svg => --slot | all slots
show all_gather --fabric {RING} --view space-time => --figure
plan all_gather --fabric {RING} --size -4MiB => -4MiB | not negative
plan all_gather --fabric {RING} --algorithm optree:radices=4,4 => optree:radices=4,4 | write 4x4
compare all_gather --fabric {RING} --algorithms optree:radices=4,4 => `4` is no algorithm | 4x4
compare all_gather --fabric {RING} --wavelength 1,2 => --wavelengths 1,2
plan all_gather --fabric {RING} --wavelength 2 => wavelengths=2 in --fabric
plan all_gather --fabric {RING} --algorithms ring => Did you mean --algorithm?
compare all_gather --fabric {RING} --wavelengths 0 => --wavelengths 32,64
compare all_gather --fabric {RING} --sizes 1KiB.. => `1KiB..` | end is missing
compare all_gather --fabric {RING} --sizes ..1KiB => `..1KiB` | start is missing
plan all_gather --fabric {RING} --output '' => --output is empty
compare all_gather --fabric {RING} --csv out.txt => out.txt | .csv
compare all_gather --fabric {RING} --csv out.svg --figure out.svg => out.svg | .csv
reproduce wrht --output /dev/null => /dev/null | not a folder
reproduce wrht --output /proc/nowhere => /proc/nowhere
plan all_gather --fabric {RING} --polcy free => --policy
plan all_gather --fabric {RING} all_reduce => all_reduce
plan all_gather --fabric {RING} --output nowhere/out.plan => no folder `nowhere`
plan all_gather --fabric {RING} --output . => folder
verify missing.plan => no file `missing.plan`
verify missing => `missing` | nor is there such a plan file
show all_gather --fabric {RING} --figure out.gif => .gif | .svg
compare all_gather --fabric {RING} --figure out => no suffix
show all_gather --fabric {RING} --slot 99 => no slot 99
show all_gather --fabric {RING} --slot=-1 => no slot -1
show all_gather --fabric {RING} --view cube => space_time
simulate all_gather --fabric {RING} --per slot => --per
compare all_gather --fabric wdm_ring:ranks=7,wavelengths=1 --algorithms ring,neighbour_exchange
    => neighbour_exchange | even
compare all_gather --fabric {RING} --algorithms ring,,optree => no algorithm between two commas
compare all_gather --fabric {RING} --ranks 8,ten => `ten`
compare all_gather --fabric {RING} --wavelengths 2,0 => `0` | --wavelengths
compare all_gather --fabric {RING} --sizes 4MiB..1KiB => `4MiB..1KiB`
compare all_gather --fabric {RING} --sizes 0B..1KiB => start above 0
compare all_gather --fabric {RING} --sizes 1KiB --size 1KiB => --size and --sizes
compare missing.yaml => no file `missing.yaml`
plan all_gather --fabric no.yml => no file `no.yml`
reproduce optre => did you mean `optree`?
list alogrithms => did you mean `algorithms`?
plan all_gather --fabric {RING} --algorithm no_such_module:f => no_such_module
simulate all_gather --fabric wdm_ring:ranks=64,wavelengths=8 --wavelength first_fit
    => `auto` | name another algorithm
simulate all_gather --fabric {TREE} --simulator circuit
    => circuit | use fluid | hint: opticoll list simulators
simulate all_gather --fabric {TREE} --policy free => policy
plan all_gather --fabric {RING} --memory-limit => needs a size
plan all_gather --fabric {RING} --memory-limit 4G => 4GB or 4GiB
plan all_gather --fabric {RING} --memory-limit 4GB --memory-limit=5GB => given twice
compare all_reduce --fabric {OTHER} --reconfiguration 10ns.. => its end is missing
compare all_reduce --fabric {OTHER} --reconfiguration 1us..1ns => must start above 0 and not fall
compare all_reduce --fabric {OTHER} --reconfiguration 0s..1ms => must start above 0 and not fall
compare all_reduce --fabric {OTHER} --reconfiguration 7 => `7`
compare all_reduce --fabric crossbar:ranks=4 --reconfiguration 1us,2us => reconfiguration
run all_gather --ranks 4 --type bfloat16 => --type
run all_gather --ranks 4 --operator mean => --operator
run all_gather --ranks 4 --time-limit 3 => `3` is not a time
run all_gather --ranks 0 => --ranks

# Files to write.
{EXPORT} => --output is missing
{EXPORT} --output plan.doc => must end in .et or .xml or .csv or .goal or .json
{EXPORT} --output plan.csv --format cvs => did you mean `csv`?
{EXPORT} --output nowhere/plan.csv => there is no folder
export nothing.plan --output plan.csv => there is no file

# Figures.
show all_to_all --algorithm direct --figure x.svg --fabric {EIGHT} --view fabric => use --view ring
show all_to_all --algorithm direct --figure x.svg --fabric {EIGHT} --size 1MiB => leave --size out
simulate all_gather --algorithm ring --fabric optree_paper --figure x.svg => light on a wdm_ring
simulate all_gather --algorithm ring --fabric wss_grid:rows=2,columns=2 --figure x.svg
    => light on a wss_grid
simulate all_gather --algorithm ring --fabric optree_paper --simulator circuit --figure x.svg
    => the simulator circuit
simulate all_gather --algorithm ring --fabric crossbar:ranks=4 --simulator circuit --figure x.svg
    => the simulator circuit
simulate all_gather --algorithm ring --fabric crossbar:ranks=4 --simulator liquid --figure x.svg
    => liquid

# Fabrics of links.
plan all_reduce --fabric {SWITCH} --policy free --algorithm ring => leave the policy out
plan all_reduce --fabric {SWITCH} --policy every_step --algorithm ring => leave the policy out
plan all_reduce --fabric {SWITCH} --simulator circuit --algorithm ring => use fluid
plan all_reduce --fabric {SWITCH} --start stpe --algorithm ring => did you mean `step`
plan all_reduce --fabric {SWITCH} --wavelength first_fit --algorithm ring => without wavelengths
plan all_reduce --fabric {SWITCH} --algorithm relay_tree => needs a wdm_ring
plan all_reduce --fabric {SWITCH} --algorithm wrht => needs a wdm_ring
compare all_reduce --fabric {SWITCH} --policy free => leave the policy out
compare all_reduce --fabric {SWITCH} --wavelengths 2 => wavelengths
show all_reduce --fabric {SWITCH} --figure x.svg --view ring --algorithm ring
    => use --view fabric or space_time
show all_reduce --fabric {SWITCH} --view space_time --algorithm ring => give --figure
show all_reduce --fabric {SWITCH} --figure x.svg --slot 14 --algorithm ring => from 0
simulate all_gather --algorithm ring --fabric {SWITCH} --per time => --link-bin 10us
simulate all_gather --algorithm ring --fabric {SWITCH} --per time --link-bin 0s => such as 1us
simulate all_gather --algorithm ring --fabric {SWITCH} --link-bin fast => fast
simulate all_gather --algorithm ring --fabric {EIGHT} --link-bin 1us => fluid
plan all_gather --fabric {EIGHT} --simulator fluid => fluid
plan all_gather --fabric {EIGHT} --start step => fluid

# Circuit switches.
plan all_gather --fabric circuit_switch => needs ranks=...
plan all_gather --fabric {ONE},planes=2 => must divide ports=1
plan all_gather --fabric {ONE},dead_ports=1.1 => `1.1` is no port
plan all_gather --fabric {ONE},dead_ports=1.0 => from rank 0 to rank 1
plan all_gather --fabric {ONE},switch_ports=3 => need planes=2
plan all_gather --fabric {ONE},beside_latency=1us => needs beside_rate
plan all_gather --fabric {ONE} --algorithm settings:settings=beside => beside_rate
plan all_to_all --fabric {FEW} --algorithm shifts => leave switch_ports out
simulate all_gather --fabric {ONE} --policy two_tier => use all_stop
plan all_gather --fabric {ONE} --algorithm relay_tree => needs a wdm_ring
plan all_to_all --fabric {ONE} --algorithm shifts:shifts=2 => not lead
plan all_to_all --fabric {ONE} --algorithm shifts:shifts=9 => below
plan all_to_all --fabric {ONE} --algorithm rotor:hops=3 => hops
plan all_to_all --fabric {ONE} --algorithm rotor:hops=2,cycles=3 => 2 with
plan all_to_all --fabric {TWO} --algorithm static => with planes=1
plan all_gather --fabric {ONE} --algorithm static:topology=star => kautz
plan all_gather --fabric {ONE} --algorithm static:topology=hypercube => power
plan all_gather --fabric {ONE} --algorithm static:shifts=2 => lead to all
plan all_gather --fabric crossbar:ranks=4 --algorithm static => does not run here, on 4 ranks
plan all_gather --fabric {ONE} --algorithm settings:algorithm=rnig => did you mean `ring`
show all_reduce --fabric torus:dims=4x4 --view settings => --view settings: torus

# Demands.
plan all_gather --demand random --fabric {FOUR} => only all_to_all takes a demand
plan all_to_all --demand randm --fabric {FOUR} => did you mean `random`
plan all_to_all --demand zipf:exponent=x --fabric {FOUR} => exponent
plan all_to_all --demand none.csv --fabric {FOUR} => none.csv
plan all_to_all --demand random --algorithm shifts --fabric {FOUR} => decomposition
plan all_to_all --demand random --algorithm decomposition:longest=0B --fabric {FOUR} => 4096 chunks

# Grids of light paths.
simulate all_gather --fabric {PATHS} --simulator fluid --algorithm ring => use circuit
simulate all_gather --fabric {PATHS} --policy on_change --algorithm ring => establish_release
simulate all_gather --fabric {PATHS} --policy free --paths kept --algorithm ring
    => leave the setting paths out
simulate all_gather --fabric {PATHS} --paths dropped --algorithm ring => released
show all_gather --fabric {PATHS} --view ring --algorithm ring => --view ports
show all_gather --fabric {PATHS} --view ports --slot 1 --algorithm ring => leave --slot out
plan all_gather --fabric {PATHS} --wavelength first_fit --algorithm ring => leave the assignment
plan all_gather --fabric {PATHS} --algorithm relay_tree => needs a wdm_ring

# Passive stars.
plan all_gather --fabric passive_star:ranks=4 => needs wavelengths=...
simulate all_gather --fabric {STAR} --policy two_tier => use every_step
plan all_gather --fabric {STAR} --algorithm relay_tree => needs a wdm_ring
plan all_gather --fabric {STAR} --wavelength first_fit => leave

# Grids of tunable circuits.
plan all_reduce --fabric wss_grid:columns=4 => rows=
plan all_reduce --fabric wss_grid:rows=2,columns=2,plan=fast => xor
plan all_reduce --fabric wss_grid:rows=2,columns=2,nodes=0-4 => 0 to 3
plan all_reduce --fabric wss_grid:rows=2,columns=2,nodes=3-1 => ends before
plan all_reduce --fabric wss_grid:rows=2,columns=2,nodes=0-1+1 => twice
plan all_reduce --fabric wss_grid:rows=2,columns=2,dead_transceivers=4.row => 5.row
plan all_reduce --fabric wss_grid:rows=2,columns=2,dead_ports=row2.0 => row3.2
plan all_reduce --fabric wss_grid:rows=4,columns=2,ports=3 => from 4
plan all_reduce --fabric wss_grid:rows=2,columns=2,colums=3 => columns
plan all_reduce --fabric wss_grid:rows=4096,columns=4096 => at most
simulate all_reduce --fabric {GRID} --algorithm ring --simulator fluid => use circuit
simulate all_reduce --fabric {GRID} --algorithm ring --policy per_port => two_tier
simulate all_reduce --fabric {GRID} --algorithm ring --start step => leave the start out
plan all_reduce --fabric {GRID} --algorithm relay_tree => needs a wdm_ring
plan all_reduce --fabric {GRID} --algorithm ring --wavelength first_fit => leave the assignment
show all_reduce --fabric {GRID} --algorithm ring --view ring => use --view grid
show all_reduce --fabric {GRID} --algorithm ring --view space_time => give --figure
{REPLAN} --failed dead_ports=row9.1 => no such place
{REPLAN} --failed dead_port=row1.1 => dead_ports
{REPLAN} --failed leaving=3-1 => ends before
{REPLAN} --failed leaving=0-15 => no node is left
{REPLAN} --failed dead_transceivers=5.row+5.column => no light leads
{REPLAN} --failed leaving=3 --instead fast => fast

# Collectives over light paths that may be blocked.
{CONGESTION} --offered-load 0.9, => --offered-load | two commas
{CONGESTION} --offered-load -1 => --offered-load | from 0 on
{CONGESTION} --offered-load 2 => below 1
{CONGESTION} --congestion retri => did you mean `retry`
{CONGESTION} --placement bast => did you mean `best`
{CONGESTION} --bursts source => --bursts | key=value
{CONGESTION} --bursts sauce=poisson => did you mean `source`
{CONGESTION} --bursts seed=3 => --seed
{CONGESTION} --seed 3 => --seed | nothing is drawn
{CONGESTION} --bursts bursts=3 => leave it out
{CONGESTION} --ports 0 => ports | from 1
{CONGESTION} --ranks 21 => 21 ranks | 20 hosts
{CONGESTION} --collectives 30 => do not fit
{CONGESTION} --root 1 => root
{CONGESTION} --size 1 => size
congestion all_reduce --fabric ladder:rungs=5 => wavelengths=...
congestion all_reduce --fabric wdm_ring:ranks=4,wavelengths=1 => wdm_ring
{CONGESTION} --algorithm rung => did you mean `ring`
{CONGESTION} --figure times.txt => .png
{CONGESTION} --longest-back-off 1us => back_off

# Traffic of bursts.
{BURSTS} --offered-load 0.9, => --offered-load | two commas
{BURSTS} --offered-load 2 => below 1
{BURSTS} --offered-load 0.5,x => no number
{BURSTS} --assignment firstfit,best => unknown value `best`
{BURSTS} --bursts 0 => bursts | whole number
{BURSTS} --routing valiant => routing | fixed
traffic --simulator burst --csv table.csv --fabric ladder:rungs=5 => wavelengths=...
traffic --simulator burst --csv table.csv --fabric nowhere.yaml => nowhere.yaml
{BURSTS} --packet 1KiB => --packet | for packets
{BURSTS} --period 2us => --period | for packets
{BURSTS} --figure loss.txt => .png
traffic --fabric ladder:rungs=5,wavelengths=12 --simulator fluid --csv table.csv => fluid
traffic --fabric crossbar:ranks=4 --offered-load 0.5 => --simulator burst

# Traffic of packets.
{PACKETS} --pattern unifrom => did you mean `uniform`
{PACKETS} --pattern uniform,,nearest => --pattern | list of patterns
{PACKETS} --pattern pair:from=0,to=1 => pair
{PACKETS} --pattern hot_spot:rank=72 => 0 to 71
{PACKETS} --bytes 2K => 2K
{PACKETS} --bytes 1KiB, => --bytes | between two commas
{PACKETS} --period 0s => period | at least 1 ns
{PACKETS} --messages 0 => --messages | 0
{PACKETS} --messages many => --messages | many
{PACKETS} --routing shortest => routing | minimal
{PACKETS} --routing minimal, => --routing
{PACKETS} --chunk 4KiB => packet
{PACKETS} --buffers 16KiB => buffers | three sizes
{PACKETS} --buffers 100B,100B,100B => buffer
{PACKETS} --router-delay-rule piped => did you mean `pipelined`
{PACKETS} --jobs 0 => --jobs | 0
{PACKETS} --figure latency.txt => .png
{PACKETS} --csv table.txt => .csv
{PACKETS} --placement natural => --placement
traffic --fabric {EIGHT} => electrical
traffic --fabric crossbar:ranks=8 --pattern group_shift => no groups
traffic --fabric crossbar:ranks=8 --routing valiant => dragonfly
"""


def cases(text: str) -> list[list[str]]:
    """Each command with the words of its error, which may stand on a line of their own."""
    lines = text.replace("\n    =>", " =>").splitlines()
    return [line.split(" => ") for line in lines if " => " in line]


@pytest.mark.parametrize(("command", "words"), cases(REFUSED))
def test_bad_input_is_refused_in_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    check(run, tmp_path, shlex.split(command), *words.split(" | "))


# The answer is there before its file is seen to be impossible.
UNWRITTEN = """
export all_gather --fabric crossbar:ranks=1 --output plan.csv => no transfers
show all_gather --algorithm bruck --figure x.svg --fabric crossbar:ranks=8192
    => too many for one picture
show all_to_all --algorithm direct --figure x.svg --fabric crossbar:ranks=128 --view space_time
    => draw the fabric instead
simulate all_gather --fabric crossbar:ranks=1 --figure x.svg => no link carried anything
"""


@pytest.mark.parametrize(("command", "why"), cases(UNWRITTEN))
def test_what_no_file_can_show_is_refused_after_the_answer(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    finished = run(*command.split())
    assert finished.code == 2
    assert why in finished.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (f"{CONGESTION} --seed", ["--seed", "too large"]),
        (f"compare all_gather --fabric {RING} --ranks", ["--ranks"]),
    ],
)
def test_numbers_of_thousands_of_digits_are_refused(
    run: Run, tmp_path: Path, command: str, words: list[str]
) -> None:
    check(run, tmp_path, [*command.split(), "9" * 5000], *words)


FABRIC_FILES: dict[str, tuple[str, tuple[str, ...]]] = {
    "no fields": ("- 1\n- 2\n", ("f.yaml", "fields")),
    "empty": ("", ("f.yaml", "fields")),
    "no family": ("ranks: 4\n", ("f.yaml", "`family: wdm_ring`")),
    "family and preset": ("family: wdm_ring\npreset: terarack\n", ("f.yaml", "twice")),
    "misspelt family": ("family: wdm_rin\n", ("line 1", "family", "did you mean `wdm_ring`?")),
    "misspelt option": (
        "family: wdm_ring\nranks: 4\nwavelenghts: 2\n",
        ("line 3", "wavelenghts", "did you mean `wavelengths`?"),
    ),
    "half a wavelength": (
        "family: wdm_ring\n\n# a comment\nranks: 4\nwavelengths: 2.5\n",
        ("line 5", "wavelengths", "whole number"),
    ),
    "list in place of a number": (
        "family: wdm_ring\nranks: [4]\nwavelengths: 2\n",
        ("line 2", "ranks", "one value"),
    ),
    "missing option": ("family: wdm_ring\nranks: 4\n", ("f.yaml", "needs wavelengths=")),
    "field given twice": ("family: wdm_ring\nranks: 4\nranks: 5\n", ("line 3", "ranks")),
    "no YAML": ("family: [wdm_ring\nranks: 4\n", ("f.yaml", "line 2", "no YAML")),
    "a tab": ("family: wdm_ring\n\tranks: 4\n", ("f.yaml", "line 2")),
}


@pytest.mark.parametrize("name", FABRIC_FILES)
def test_bad_fabric_file_is_refused_with_its_line(run: Run, tmp_path: Path, name: str) -> None:
    content, words = FABRIC_FILES[name]
    path = tmp_path / "f.yaml"
    path.write_text(content)
    check(run, tmp_path, [*PLAN, "--fabric", str(path)], *words)


HEAD = "collective: all_gather\nfabric: optree_paper\n"

SCENARIOS: dict[str, tuple[str, tuple[str, ...]]] = {
    "no collective": ("fabric: optree_paper\n", ("s.yaml", "`collective` is missing")),
    "no fabric": ("collective: all_gather\n", ("s.yaml", "`fabric` is missing")),
    "misspelt collective": (
        "fabric: optree_paper\ncollective: all_gater\n",
        ("line 2", "collective", "did you mean `all_gather`?"),
    ),
    "misspelt field": (f"{HEAD}algoritms: [ring]\n", ("line 3", "did you mean `algorithms`?")),
    "fabric that is a number": ("collective: all_gather\nfabric: 5\n", ("line 2", "fabric")),
    "misspelt preset": (
        "collective: all_gather\nfabric: optre_paper\n",
        ("line 2", "fabric", "did you mean `optree_paper`?"),
    ),
    "bad value within a fabric": (
        "collective: all_gather\nfabric:\n  family: wdm_ring\n  ranks: 0\n  wavelengths: 2\n",
        ("line 4", "fabric.ranks", LIMIT),
    ),
    "size with a bare M": (f"{HEAD}sizes: [1KiB, 4M]\n", ("line 3", "sizes", "4MB or 4MiB")),
    "size without a unit": (f"{HEAD}sizes: 4096\n", ("line 3", "sizes", "unit")),
    "no sizes": (f"{HEAD}sizes: []\n", ("at least one",)),
    "half a rank": (f"{HEAD}ranks: [512, 2.5]\n", ("line 3", "ranks", "`2.5`")),
    "ranks in words": (f"{HEAD}ranks: many\n", ("line 3", "ranks", "`many`")),
    "true wavelengths": (f"{HEAD}wavelengths: true\n", ("line 3", "wavelengths")),
    "unknown policy": (f"{HEAD}policy: never\n", ("line 3", "policy", "`never`")),
    "misspelt simulator": (f"{HEAD}simulator: circut\n", ("line 3", "did you mean `circuit`?")),
    "root in words": (f"{HEAD}root: first\n", ("line 3", "root")),
    "algorithm that is a number": (
        f"{HEAD}algorithms: [7]\n",
        ("line 3", "algorithms.0", "`7` is no text"),
    ),
    "unknown algorithm": (
        f"{HEAD}algorithms:\n  - ring\n  - optre\n",
        ("s.yaml", "line 5", "algorithms.1", "did you mean `optree`?"),
    ),
    "bad option of an algorithm": (
        f"{HEAD}algorithms: [ring,\n  optree:k=99]\n",
        ("s.yaml", "line 4", "algorithms.1", "k=99"),
    ),
    "missing module of an algorithm": (
        f"{HEAD}algorithms:\n  - no_such_module:f\n",
        ("s.yaml", "line 4", "no_such_module"),
    ),
    "no algorithms": (f"{HEAD}algorithms: []\n", ("line 3", "algorithms", "at least one")),
    "sizes left empty": (f"{HEAD}sizes:\n", ("line 3", "sizes", "at least one")),
    "no ranks": (f"{HEAD}ranks: []\n", ("line 3", "ranks", "at least one")),
    "unknown assignment": (
        f"{HEAD}algorithms: ring\nwavelength: first\n",
        ("s.yaml", "line 4", "wavelength", "first_fit"),
    ),
    "root that is no rank": (
        "collective: broadcast\nfabric: optree_paper:ranks=8\nroot: 99\n",
        ("s.yaml", "line 3", "root 99 is no rank"),
    ),
    "root of half": (
        "collective: broadcast\nfabric: optree_paper\nroot: 1.5\n",
        ("line 3", "root", "`1.5` is no whole number"),
    ),
    "root of a collective without one": (f"{HEAD}root: 0\n", ("line 3", "has no root")),
    "too many ranks": (
        f"{HEAD}ranks: [8, 99999999999]\nalgorithms: ring\n",
        ("s.yaml", "line 3", "ranks.1", "99999999999"),
    ),
    "simulator of other fabrics": (
        f"{HEAD}simulator: fluid\nalgorithms: bruck\n",
        ("s.yaml", "line 3", "simulator", "use circuit"),
    ),
    "policy that is a list": (f"{HEAD}policy: [free]\n", ("line 3", "policy", "no text")),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_bad_scenario_is_refused_with_its_line(run: Run, tmp_path: Path, name: str) -> None:
    content, words = SCENARIOS[name]
    path = tmp_path / "s.yaml"
    path.write_text(content)
    check(run, tmp_path, ["compare", str(path)], *words)


def test_an_option_at_fault_is_not_blamed_on_the_scenario(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(f"{HEAD}algorithms: ring\n")
    finished = run("compare", path, "--algorithms", "optre")
    assert finished.code == 2
    assert "did you mean `optree`?" in finished.err
    assert "s.yaml" not in finished.err


def test_unit_after_a_space_is_hinted_at(run: Run) -> None:
    finished = run(*ON_RING, "--size", "4", "MiB")
    assert finished.code == 2
    assert "hint: write 4MiB, without a space" in finished.err


def test_a_list_with_spaces_is_hinted_at(run: Run) -> None:
    finished = run("compare", *ON_RING[1:], "--algorithms", "ring", "optree")
    assert finished.code == 2
    assert "`optree` belongs to no option" in finished.err
    assert "hint: write --algorithms ring,optree, with commas" in finished.err


def test_a_rank_that_a_table_of_sends_does_not_have_is_named_with_its_line(
    run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "sends.csv"
    heading = "# all_gather ranks=4\nstep,source,destination,chunk\n"
    path.write_text(f"{heading}0,0,1,0\n0,1,4,1\n")
    finished = run("verify", path)
    assert finished.code == 2
    assert "sends.csv`, line 4: destination 4: ranks are 0 to 3" in finished.err


def test_too_many_chunks_are_counted_in_the_error(run: Run) -> None:
    finished = run("plan", "all_to_all", "--fabric", "wdm_ring:ranks=1000000,wavelengths=64")
    assert finished.code == 2
    chunks = 1_000_000**2
    assert f"would have {chunks} chunks: there may be {2**32 - 1} at most" in finished.err
    assert "hint: try fewer ranks, or fewer pieces of a block" in finished.err


def test_chunks_are_numbered_with_32_bits() -> None:
    ranks = 2**16
    assert opticoll.Collective("all_to_all", ranks - 1).chunks == (ranks - 1) ** 2
    with pytest.raises(errors.CollectiveError, match=f"would have {ranks**2} chunks"):
        opticoll.Collective("all_to_all", ranks)
    with pytest.raises(errors.CollectiveError, match="1 piece or more, not 0"):
        opticoll.Collective("all_gather", 4, pieces=0)


def test_too_few_transfers_are_hinted_at_and_the_hint_helps(run: Run) -> None:
    least = opticoll.Fabric(RING).ranks - 1
    on_ring = ["plan", "broadcast", "--fabric", RING, "--algorithm"]
    finished = run(*on_ring, f"auto:transfers={least - 1}")
    assert finished.code == 2
    assert f"every plan has more than {least - 1} transfers" in finished.err
    assert "hint: allow more by --algorithm auto:transfers=N, or try fewer ranks" in finished.err
    assert run(*on_ring, f"auto:transfers={100 * least}").code == 0


def test_folder_for_figures_that_is_a_file_is_refused_before_work(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "keep.svg"
    path.write_text("precious")
    check(run, tmp_path, ["reproduce", "wrht", "--quick", "--output", str(path)], "keep.svg")
    assert path.read_text() == "precious"


def test_every_flipped_bit_of_a_compressed_plan_is_noticed_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "a.plan.zst"
    plan = opticoll.plan("all_gather", RING)
    opticoll.write_plan(plan, path)
    content = path.read_bytes()
    noticed = 0
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            read = opticoll.read_plan(path)
        except (opticoll.errors.FileError, opticoll.errors.PlanFileError):
            noticed += 1
        else:
            assert read.to_text() == plan.to_text()
    assert noticed > 7 * len(content)


@pytest.mark.parametrize("tail", [b"x", b"x" * 9000, b"\x28\xb5\x2f\xfd"])
def test_bytes_after_a_compressed_plan_are_refused(run: Run, tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "a.plan.zst"
    opticoll.write_plan(opticoll.plan("all_gather", RING), path)
    path.write_bytes(path.read_bytes() + tail)
    check(run, tmp_path, ["verify", str(path)], "a.plan.zst", "bytes follow")


def test_compressed_plan_beyond_the_limit_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.plan.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(bytes(10**7)))
    monkeypatch.setattr(content, "MOST_BYTES", 10**6)
    check(run, tmp_path, ["verify", str(path)], "bomb.plan.zst", "too large")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("suffix", [".plan", ".plan.zst"])
def test_plan_file_cut_short_is_refused(
    run: Run, tmp_path: Path, share: float, suffix: str
) -> None:
    path = tmp_path / f"cut{suffix}"
    opticoll.write_plan(opticoll.plan("all_gather", RING), path)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    check(run, tmp_path, ["verify", str(path)], path.name)


def test_every_cut_at_a_line_is_refused(run: Run, tmp_path: Path) -> None:
    lines = opticoll.plan("all_gather", RING, "ring").to_text().splitlines(keepends=True)
    path = tmp_path / "cut.plan"
    path.touch()
    for kept in range(len(lines)):
        path.write_text("".join(lines[:kept]))
        check(run, tmp_path, ["verify", str(path)], "cut.plan")


MALFORMED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "more slots than memory holds": ("steps 4 8", "steps 4 4294967000", ("line 7", "slots")),
    "another version": ("opticoll plan 1", "opticoll plan 2", ("line 1",)),
    "another kind of file": ("opticoll plan 1", "hello", ("line 1",)),
    "misspelt collective": ("all_gather", "all_gater", ("line 2", "all_gather")),
    "bad fabric": ("wavelengths=2", "wavelengths=0", ("line 3", "wavelengths=0")),
    "unknown direction": (" cw ", " east ", ("line", "column", "cw")),
    "unknown action": ("copy", "move", ("line", "move")),
    "wrong count at the end": ("end 240", "end 239", ("line", "239")),
    "more repetitions than memory holds": (" x4 ", " x4294967295 ", ("line", "column", "240")),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_plan_file_is_refused_with_its_place(
    run: Run, plan_file: Path, name: str
) -> None:
    old, new, words = MALFORMED[name]
    text = plan_file.read_text()
    assert old in text
    plan_file.write_text(text.replace(old, new, 1))
    check(run, plan_file.parent, ["verify", str(plan_file)], "tree.plan", *words)


def test_binary_file_is_no_plan(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "noise.plan"
    path.write_bytes(bytes(range(128, 256)))
    check(run, tmp_path, ["verify", str(path)], "noise.plan", "UTF-8")


@pytest.mark.parametrize(
    ("fabric", "words"),
    [
        ("wdm_ring:ranks=8,wavelengths=2", ["8 ranks", "16"]),
        ("crossbar:ranks=16", ["does not fit crossbar", "wavelengths=2", "line"]),
    ],
)
def test_a_fabric_that_a_plan_does_not_fit_is_refused(
    run: Run, plan_file: Path, fabric: str, words: list[str]
) -> None:
    check(run, plan_file.parent, ["verify", str(plan_file), "--fabric", fabric], *words)


@pytest.mark.parametrize(
    "option", [("--algorithm", "ring"), ("--wavelength", "auto"), ("--root", "0")]
)
def test_plan_file_takes_no_option_that_it_holds(
    run: Run, plan_file: Path, option: tuple[str, str]
) -> None:
    check(run, plan_file.parent, ["simulate", str(plan_file), *option], option[0])


def test_folder_is_no_plan_file(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "folder.plan"
    folder.mkdir()
    check(run, tmp_path, ["verify", str(folder)], "folder.plan")


USER_CODE: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "syntax error": ("def f(:\n", "broken:f", ("importing `broken`", "SyntaxError")),
    "raises on import": ("raise OSError('no licence')\n", "broken:f", ("OSError", "no licence")),
    "no such function": ("x = 1\n", "broken:f", ("`broken` has no `f`",)),
    "not callable": ("f = 7\n", "broken:f", ("no function", "`int`")),
    "returns nothing": ("def f(c, m): pass\n", "broken:f", ("`NoneType`", "opticoll.Schedule")),
    "raises": (
        "def f(c, m):\n    return 1 // 0\n",
        "broken:f",
        ("ZeroDivisionError", "broken.py, line 2"),
    ),
    "exits": ("def f(c, m): raise SystemExit('bye')\n", "broken:f", ("SystemExit", "bye")),
    "no such option": ("def f(c, m): pass\n", "broken:f,depth=3", ("TypeError", "depth")),
    "option without a value": ("def f(c, m): pass\n", "broken:f,depth", ("`depth`", "key=value")),
    "another collective": (
        "import opticoll\n"
        "def f(c, m): return opticoll.Schedule(opticoll.Collective('all_reduce', 16))\n",
        "broken:f",
        ("another collective", "all_reduce"),
    ),
    "rank that does not exist": (
        "import opticoll\n"
        "def f(c, m):\n"
        "    s = opticoll.Schedule(c)\n"
        "    s.step(0, 0, 16)\n"
        "    return s\n",
        "broken:f",
        ("destination", "16", "broken.py, line 4"),
    ),
    "transfer to itself": (
        "import opticoll\n"
        "def f(c, m):\n"
        "    s = opticoll.Schedule(c)\n"
        "    s.step(0, 3, 3)\n"
        "    return s\n",
        "broken:f",
        ("algorithm `broken:f`", "rank 3 to itself"),
    ),
    "refuses": (
        "import opticoll\ndef f(c, m): raise opticoll.errors.AlgorithmError('only on Sundays')\n",
        "broken:f",
        ("only on Sundays",),
    ),
}


@pytest.mark.parametrize("name", USER_CODE)
def test_broken_user_algorithm_is_refused_in_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    code, spec, words = USER_CODE[name]
    # A module of its own name for each case, as Python keeps what it has imported.
    module = f"broken_{list(USER_CODE).index(name)}"
    (tmp_path / f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    arguments = [*ON_RING, "--algorithm", spec.replace("broken", module)]
    check(run, tmp_path, arguments, *(word.replace("broken", module) for word in words))
