"""Commands that are refused, each with words of its error."""

from __future__ import annotations

from support import RING

EIGHT = "wdm_ring:ranks=8,wavelengths=2"
SWITCH = "crossbar:ranks=8,rate=8Gb/s"
TREE = "fat_tree:down=4x4,up=1x2,rate=100Gb/s,latency=1us"
FOUR = "circuit_switch:ranks=4,reconfiguration=1us"
OTHER = "circuit_switch:ranks=8,startup=100ns,latency=100ns"
ONE = "circuit_switch:ranks=6,startup=100ns,latency=100ns,reconfiguration=1us"
TWO = "circuit_switch:ranks=6,ports=2,planes=2,latency=100ns"
FEW = "circuit_switch:ranks=6,ports=2,planes=2,switch_ports=3,dead_ports=5.1"
PATHS = "lightpath_grid:ranks=8,ports=2"
STAR = "passive_star:ranks=6,wavelengths=3,transmitters=2,receivers=2"
GRID = "wss_grid:rows=2,columns=2,rate=100Gb/s"
REPLAN = (
    "replan all_reduce --fabric wss_grid:rows=4,columns=4,rate=8Gb/s,tuning=0s "
    "--algorithm halving_doubling --size 16KiB"
)
EXPORT = "export all_gather --fabric crossbar:ranks=4 --algorithm ring"
CONGESTION = (
    "congestion all_reduce --fabric wdm_ladder:rungs=5,hosts=2,wavelengths=6,rate=10Gb/s,latency=0s"
)
BURSTS = (
    "traffic --simulator burst --csv table.csv "
    "--fabric wdm_ladder:rungs=5,hosts=10,wavelengths=12,rate=10Gb/s"
)
PACKETS = (
    "traffic --fabric dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2"
)
TRAINED = "train --model resnet50 --batch 32 --fabric crossbar:ranks=4,rate=100Gb/s,latency=0s"
GROUPED = "train --model gpt3_6_7b --batch 4 --fabric crossbar:ranks=8,rate=400Gb/s,latency=0s"
EXPERTS = "train --model mixtral_8x7b --batch 4 --fabric crossbar:ranks=8 --expert-parallel 8"

# Each command is followed by words of its error, or of the hint after the error.
REFUSED = f"""
# Commands, options and values.
pln => Did you mean "plan"?
plan => COLLECTIVE
plan all_gather => --fabric | optree_paper
plan all_gater --fabric {RING} => did you mean `all_gather`?
plan all_gather --fabric {RING} --algorithm optre => did you mean `optree`?
plan all_gather --fabric {RING} --algorithm binary_tree => all_gather
plan all_gather --fabric wdm_ladder:rungs=5,hosts=10,wavelengths=28 => hosts=1 | --bursts
plan all_gather --fabric ladder:rungs=5,wavelengths=28 => electrical | write wdm_ladder:
plan all_gather --fabric dragonfly:wavelengths=28 => electrical | write wdm_graph:
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
plan all_gather --fabric {RING} --size 4 MiB => hint: write 4MiB, without a space
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
plan all_gather --fabric {RING} --algorithm ring --wavelength optimal
    => only one-stage all-to-all steps
plan all_gather --fabric {RING} --wavelength frist_fit => did you mean `first_fit`
plan all_gather --fabric {RING} --wavelength first_fit:seed=1 => known are auto, optimal
plan broadcast --fabric {RING} --root 16 => root 16 is not a rank
plan broadcast --fabric {RING} --root=-1 => root -1 is not a rank
plan broadcast --fabric {RING} --root first => --root | `first` | whole number
plan broadcast --fabric {RING} --root 1.5 => --root | `1.5` | whole number
plan broadcast --fabric {RING} --root 0x3 => --root | `0x3` | whole number
plan broadcast --fabric {RING} --root 1e0 => --root | `1e0` | whole number
plan broadcast --fabric {RING} --root '' => --root | `` | whole number
plan broadcast --fabric {RING} --root -1 => root -1 is not a rank
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
compare all_gather --fabric {RING} --algorithms optree:radices=4,4 => `4` is not an algorithm | 4x4
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
compare all_gather --fabric {RING} --algorithms ring optree
    => `optree` belongs to no option | hint: write --algorithms ring,optree, with commas
compare all_gather --fabric {RING} --ranks 8,ten => `ten`
compare all_gather --fabric {RING} --wavelengths 2,0 => `0` | --wavelengths
compare all_gather --fabric {RING} --sizes 4MiB..1KiB => `4MiB..1KiB`
compare all_gather --fabric {RING} --sizes 0B..1KiB => start must be above 0
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
compare all_reduce --fabric {OTHER} --reconfiguration 1us..1ns => start must be above 0
compare all_reduce --fabric {OTHER} --reconfiguration 0s..1ms => start must be above 0
compare all_reduce --fabric {OTHER} --reconfiguration 7 => `7`
compare all_reduce --fabric crossbar:ranks=4 --reconfiguration 1us,2us => reconfiguration
run all_gather --ranks 4 --type float8 => --type
run all_gather --ranks 4 --mpi-args -q => --mpi-args is for --on mpi
run all_gather --ranks 4 --operator mean => --operator
run all_gather --ranks 4 --time-limit 3 => `3` is not a time
run all_gather --ranks 0 => --ranks

# Files to write.
{EXPORT} => --output is missing
export all_reduce --fabric torus:dims=2x4 --format open_mpi --output t.json => is made from rows
{EXPORT} --output plan.doc => must end in .et or .xml or .mscclpp.json or .csv or .goal or .json
{EXPORT} --output plan.csv --format cvs => did you mean `csv`?
{EXPORT} --output nowhere/plan.csv => there is no folder
export nothing.plan --output plan.csv => there is no file
export --fabric {EIGHT} --output f.graphml => cannot express the circuits | wdm_ring
export --output f.graphml => --fabric for the fabric alone
export --fabric torus:dims=2x2 --size 1MB --output f.graphml => --size goes with a plan
export --fabric torus:dims=2x2 --algorithm ring --output f.graphml => --algorithm goes with a plan
export --fabric torus:dims=2x2 --format msccl --output f.graphml => no `msccl` | graphml
export all_gather --fabric torus:dims=2x2 --format graphml --output f.graphml => no `graphml`

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
plan all_gather --fabric {ONE},dead_ports=1.1 => `1.1` is not a port
plan all_gather --fabric {ONE},dead_ports=1.0 => from rank 0 to rank 1
plan all_gather --fabric {ONE},switch_ports=3 => need planes=2
plan all_gather --fabric {ONE},packet_latency=1us => needs packet_rate
plan all_gather --fabric {ONE} --algorithm switch_configurations:configurations=packet
    => packet_rate
plan all_to_all --fabric {FEW} --algorithm shifts => leave switch_ports out
simulate all_gather --fabric {ONE} --policy two_tier => use all_stop
plan all_gather --fabric {ONE} --algorithm relay_tree => needs a wdm_ring
plan all_to_all --fabric {ONE} --algorithm shifts:shifts=2 => not lead
plan all_to_all --fabric {ONE} --algorithm shifts:shifts=9 => below
plan all_to_all --fabric {ONE} --algorithm shifts:shifts=all,relays=2 => fewest
plan all_to_all --fabric {ONE} --algorithm shifts:shifts=all,relays=all,cycles=3 => left out
plan all_to_all --fabric {ONE} --algorithm shifts:cycles=3 => needs shifts=all
plan all_gather --fabric {ONE} --algorithm shifts => an all_to_all only
plan all_gather --fabric crossbar:ranks=4 --algorithm shifts => ports of a circuit_switch
plan scatter --fabric wdm_ring:ranks=4,wavelengths=2 --algorithm tree:light_trees=2 => multicast
plan all_to_all --fabric {TWO} --algorithm static => with planes=1
plan all_gather --fabric {ONE} --algorithm static:topology=star => kautz
plan all_gather --fabric {ONE} --algorithm static:topology=hypercube => power
plan all_gather --fabric {ONE} --algorithm static:shifts=2 => lead to all
plan all_gather --fabric crossbar:ranks=4 --algorithm static => does not run here, on 4 ranks
plan all_gather --fabric {ONE} --algorithm switch_configurations:algorithm=rnig
    => did you mean `ring`
show all_reduce --fabric torus:dims=4x4 --view configurations => --view configurations: torus

# Demands.
plan all_gather --demand random --fabric {FOUR} => only all_to_all takes a demand
plan all_to_all --demand randm --fabric {FOUR} => did you mean `random`
plan all_to_all --demand zipf:exponent=x --fabric {FOUR} => exponent
plan all_to_all --demand none.csv --fabric {FOUR} => none.csv
plan all_to_all --demand random --algorithm shifts --fabric {FOUR} => decomposition
plan all_to_all --demand random --algorithm decomposition:max_chunk=0B --fabric {FOUR}
    => 4096 chunks

# Grids of light paths.
simulate all_gather --fabric {PATHS} --simulator fluid --algorithm ring => use circuit
simulate all_gather --fabric {PATHS} --policy on_change --algorithm ring => setup_teardown
simulate all_gather --fabric {PATHS} --policy free --paths kept --algorithm ring
    => leave the setting paths out
simulate all_gather --fabric {PATHS} --paths dropped --algorithm ring => released
simulate all_gather --fabric {PATHS} --simulator control --algorithm ring
    => its lasers are not tuned flow by flow
simulate all_gather --fabric {PATHS} --start step --algorithm ring => leave the start out
simulate all_gather --fabric {EIGHT} --policy setup_teardown --algorithm ring
    => setup_teardown for the ports of a lightpath_grid
simulate all_gather --fabric {EIGHT} --paths kept --algorithm ring
    => paths: on wdm_ring all circuits of a slot are set up together
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
{REPLAN} --failed dead_ports=row9.1 => does not exist on the grid
{REPLAN} --failed dead_port=row1.1 => dead_ports
{REPLAN} --failed leaving=3-1 => ends before
{REPLAN} --failed leaving=0-15 => no node is left
{REPLAN} --failed dead_transceivers=5.row+5.column => no route leads from
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
congestion all_reduce --fabric ladder:rungs=5 => electrical | wdm_ladder
congestion all_reduce --fabric wdm_ring:ranks=4,wavelengths=1 => wdm_ring
{CONGESTION} --algorithm rung => did you mean `ring`
{CONGESTION} --figure times.txt => .png
{CONGESTION} --max-back-off 1us => back_off

# Traffic of bursts.
{BURSTS} --offered-load 0.9, => --offered-load | two commas
{BURSTS} --offered-load 2 => below 1
{BURSTS} --offered-load 0.5,x => number greater than 0
{BURSTS} --assignment firstfit,best => unknown value `best`
{BURSTS} --bursts 0 => bursts | whole number
{BURSTS} --routing valiant => routing | fixed
traffic --simulator burst --csv table.csv --fabric ladder:rungs=5 => electrical | wdm_ladder
traffic --simulator burst --csv table.csv --fabric nowhere.yaml => nowhere.yaml
{BURSTS} --packet 1KiB => --packet | for packets
{BURSTS} --period 2us => --period | for packets
{BURSTS} --figure loss.txt => .png
{BURSTS} --routes 5 --signalling jet => two_way
{BURSTS} --routes 5 --routing least_loaded => fixed
traffic --fabric wdm_ladder:rungs=5,wavelengths=12 --simulator fluid --csv table.csv => fluid
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

# Training.
train --model resnet50 --batch 8 => --fabric
train --fabric {SWITCH} --batch 8 => model | resnet50
train --model resnet50 --fabric {SWITCH} => batch
train --model resnet50 --fabric {SWITCH} --batch 0 => --batch | in 1..
train --model resnet5 --batch 32 --fabric {SWITCH} => did you mean `resnet50`?
{TRAINED} --device a10 => did you mean `a100`?
{TRAINED} --device a100 --throughput 5TFLOP/s => device and throughput
{TRAINED} --throughput 5 => TFLOP/s
{TRAINED} --buckets 25M => buckets | 25MB or 25MiB
{TRAINED} --gradients float8 => did you mean `float32`?
{TRAINED} --profile layers.csv => model and profile
train --fabric {SWITCH} --profile layers.csv => no file `layers.csv`
train --fabric {SWITCH} --profile layers.txt => .csv or .yaml
train --model gpt2_small --batch 32 --fabric {SWITCH} --epochs 2 => samples
{TRAINED} --algorithm ring+ => ring+ring
{TRAINED} --policy free => policy
{TRAINED} --algorithm bruck => bruck
{TRAINED} --figure picture.gif => .png
{TRAINED} --csv table.txt => .csv

# Training with groups of ranks.
{GROUPED} --tensor-parallel 3 => does not divide the 8 ranks
train --model gpt3_6_7b --batch 4 --fabric crossbar:ranks=12 --tensor-parallel 3
    => 32 heads of attention; 1, 2, 4, 8, 16, 32 divide them
train --model gpt3_6_7b --batch 4 --fabric crossbar:ranks=35 --pipeline-parallel 35
    => 32 blocks, and at most 34 chunks
train --model mixtral_8x7b --batch 4 --fabric crossbar:ranks=12 --tensor-parallel 2
    --expert-parallel 3 => 8 experts of a block; 1, 2, 4, 8 divide them
train --model mixtral_8x7b --batch 4 --fabric crossbar:ranks=8 --tensor-parallel 2
    --expert-parallel 8 => 4 replicas of the model; 1, 2, 4 divide them
{GROUPED} --tensor-parallel 2 --data-parallel 2 => data-parallel 4 fits
{GROUPED} --context-parallel 3 => tensor-parallel 1 x context-parallel 3 x pipeline-parallel 1
{GROUPED} --context-parallel 2 --attention scores => needs FlashAttention
train --model gpt:layers=2,width=64,heads=4,sequence=2047 --batch 4 --fabric crossbar:ranks=8
    --context-parallel 2 => 2 x context-parallel 4 does not divide the 2047 tokens of a sample
train --model gpt:layers=2,width=64,heads=4 --batch 4 --fabric crossbar:ranks=8
    --context-parallel 8 --context-exchange all_to_all => 4 heads of attention; 1, 2, 4 divide them
{GROUPED} --context-exchange rings => there is no `rings`; did you mean `ring`
{GROUPED} --prefetch 2 => prefetch 2 | --sharded 1, 2 or 3
{GROUPED} --micro-batches 3 => does not divide the batch of 4
{GROUPED} --sharded 4 => --sharded | 0..3
{GROUPED} --expert-parallel 2 => has no experts
{TRAINED} --tensor-parallel 2 => not a transformer
train --profile layers.csv --fabric {SWITCH} --sharded 1 => profile does not say how
{GROUPED} --sharded 1 --algorithm ring+ring => --sharded 1 sends both
{GROUPED} --expert-skew zipf => has no experts
{EXPERTS} --expert-skew zip:exponent=1 => unknown skew | zipf
{EXPERTS} --expert-skew zipf:power=1 => no option `power` | exponent
{EXPERTS} --expert-skew burst:period=0 => period | 1 to
{EXPERTS} --expert-skew hot_rank:share=2 => share | 0 to 1
{EXPERTS} --replicate-experts 57 => replicate-experts 57 | at most 56
{EXPERTS} --expert-chunks 3 => expert-chunks 3 does not divide the
{EXPERTS} --expert-placement best => order
{GROUPED} --expert-chunks 2 => has no experts
{GROUPED} --capacity-factor 0 => capacity-factor
{GROUPED} --reconfigure never => reconfigure | crossbar
{GROUPED} --collective ring => all_reduce=ring
{GROUPED} --contention none --device-memory 40GB => GPT-3 6.7B does not fit the device
    | and the device has 40.0 GB | GB of that are activations, with FlashAttention, recomputation
    | none, of all micro-batches in flight
train --model gpt3_6_7b --batch 4 --fabric circuit_switch:ranks=8 --tensor-parallel 8
    --contention simulated => contention | circuit_switch
"""
