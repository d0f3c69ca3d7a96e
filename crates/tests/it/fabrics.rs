//! Electrical fabrics: links, routes and specifications against formulas, searches and SimGrid's
//! routes.

mod arrangements;
mod bisection;
mod cubes;
mod injection;
mod part;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use opticoll::fabric::Fabric;
use opticoll::network::Network;

use crate::{number, rows, sum};

/// Fabrics small enough to look at all pairs: specification, ranks, links by the family's formula,
/// the greatest number of links of a route, and where routes are shortest: `always`, `never`, or
/// among the routes that stay in the groups of both ends, given as ranks of a router times routers
/// of a group.
const FABRICS: &str = "
crossbar:ranks=1 | 1 | 2 | 0 | always
crossbar:ranks=17 | 17 | 2*17 | 2 | always
crossbar:ranks=5,duplex=half | 5 | 5 | 2 | always
# Links of a level: vertices below x ways up x cables, in both directions.
fat_tree:down=5,up=1 | 5 | 2*5 | 2 | always
fat_tree:down=4x4,up=1x2 | 16 | 2*16 + 2*4*2 | 4 | always
fat_tree:down=4x3x2,up=1x2x3,links=1x2x1 | 24 | 2*24 + 2*6*2*2 + 2*2*2*3 | 6 | always
fat_tree:down=2x3,up=2x2,links=3x2 | 6 | 2*6*2*3 + 2*3*2*2*2 | 4 | always
fat_tree:arity=4,levels=3 | 64 | 2*64 + 2*16*4 + 2*16*4 | 6 | always
fat_tree:arity=4,levels=3,taper=2,duplex=half | 64 | 64 + 16*2 + 4*2*4 | 6 | always
# Ranks, pairs of routers per group, pairs of groups.
dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2 | 72
    | 2*72 + 2*9*6 + 2*36 | 5 | 2x4
dragonfly:terminals_per_router=1,routers_per_group=3,global_per_router=2,groups=5,duplex=half | 15
    | 15 + 5*3 + 10 | 5 | 1x3
dragonfly:terminals_per_router=2,routers_per_group=4,groups=3,arrangement=simgrid | 24
    | 2*24 + 2*3*6 + 2*3 | 5 | 2x4
dragonfly:terminals_per_router=1,routers_per_group=4,global_per_router=2,routing=valiant | 36
    | 2*36 + 2*9*6 + 2*36 | 7 | never
# Per dimension as many cables as nodes, one where it has two.
torus:dims=5 | 5 | 2*5 | 2 | always
torus:dims=2 | 2 | 2 | 1 | always
torus:dims=4x3 | 12 | 2*24 | 2 + 1 | always
torus:dims=3x1x2x5 | 30 | 2*30 + 2*15 + 2*30 | 1 + 1 + 2 | always
torus:dims=4x4,duplex=half | 16 | 32 | 4 | always
torus:dims=3x3,terminals=2 | 18 | 2*18 + 2*18 | 2 + 2 | always
mesh:dims=4x3 | 12 | 2*3*3 + 2*4*2 | 3 + 2 | always
mesh:dims=1 | 1 | 0 | 0 | always
mesh:dims=2x3x2 | 12 | 2*6 + 2*8 + 2*6 | 1 + 2 + 1 | always
ladder:rungs=5 | 10 | 2*13 | 4 + 1 | always
ladder:rungs=5,terminals=10 | 100 | 2*13 + 2*100 | 4 + 1 + 2 | always
electrical_ring:ranks=9 | 9 | 2*9 | 4 | always
electrical_ring:ranks=8 | 8 | 2*8 | 4 | always
line:ranks=7 | 7 | 2*6 | 6 | always
line:ranks=1 | 1 | 0 | 0 | always
# Half of the ranks times the dimensions are cables.
hypercube:ranks=16 | 16 | 2*8*4 | 4 | always
hypercube:ranks=32,duplex=half | 32 | 16*5 | 5 | always
hypercube:ranks=2 | 2 | 2 | 1 | always
hypercube:ranks=1 | 1 | 0 | 0 | always
# From a leaf on the left to a leaf on the right.
tree:ranks=15 | 15 | 2*14 | 3 + 3 | always
tree:ranks=9,arity=8 | 9 | 2*8 | 2 | always
tree:ranks=12,arity=3,duplex=half | 12 | 11 | 2 + 2 | always
tree:ranks=6,arity=1 | 6 | 2*5 | 5 | always
custom:ranks=3,links=0-1@80km+1-2@500m@1us | 3 | 2*2 | 2 | always
# Six links leave every rank. The diameter of the twisted slice of TPU v4 is known, that of the
# others by a search.
ocs_torus:dims=4x4x8 | 128 | 6*128 | 2 + 2 + 4 | always
ocs_torus:dims=4x4x8,twisted | 128 | 6*128 | 6 | always
ocs_torus:dims=8x4x4,twisted=yes | 128 | 6*128 | 6 | always
ocs_torus:dims=2x4x4,cube=2,twisted | 32 | 6*32 | 3 | always
ocs_torus:dims=2x2x4,cube=2,duplex=half | 16 | 3*16 | 1 + 1 + 2 | always
ocs_torus:dims=3x3x3,cube=3 | 27 | 6*27 | 3 | always
# Within a cube it is a mesh.
ocs_torus:dims=2x2x4 | 16 | 2*8 + 2*8 + 2*12 | 1 + 1 + 3 | always
fully_connected:ranks=9 | 9 | 9*8 | 1 | always
fully_connected:ranks=6,duplex=half | 6 | 15 | 1 | always
custom:ranks=4,switches=3,links=0-4+1~4+2-5+3-5+4-6+5-6+4-5@1us+4-5 | 4 | 2*7 + 1 | 3 | always
custom:ranks=3,links=0>1+1>2+2>0,names=a+b+c | 3 | 3 | 2 | always
";

#[test]
fn routes_are_walks_without_loops_and_shortest_where_claimed() {
    for [spelling, ranks, links, longest, shortest] in rows(FABRICS) {
        let ranks: u32 = number(ranks);
        let groups = shortest.split_once('x');
        let groups: Option<(u32, u32)> = groups.map(|(one, other)| (number(one), number(other)));
        let fabric = Fabric::parse(spelling).unwrap();
        let network = fabric.network().unwrap();
        assert_eq!(network.ranks(), ranks, "{spelling}: ranks");
        assert_eq!(fabric.ranks(), ranks, "{spelling}: ranks");
        assert_eq!(
            network.links().len(),
            sum(links) as usize,
            "{spelling}: links"
        );
        let beside = neighbours(network);
        let mut seen = 0;
        for source in 0..ranks {
            let group = |vertex: u32| match groups {
                Some((terminals, routers)) if vertex < ranks => vertex / (terminals * routers),
                Some((_, routers)) => (vertex - ranks) / routers,
                None => 0,
            };
            for destination in (0..ranks).filter(|rank| *rank != source) {
                let walk = walked(network, source, destination);
                seen = seen.max(walk.len() - 1);
                if shortest == "never" {
                    continue;
                }
                let allowed = |vertex| [group(source), group(destination)].contains(&group(vertex));
                let expected = distance(&beside, source, destination, allowed);
                assert_eq!(
                    walk.len() - 1,
                    expected,
                    "{spelling}: {source} to {destination}: {walk:?}"
                );
            }
        }
        assert_eq!(seen as u64, sum(longest), "{spelling}: diameter in links");
    }
}

#[test]
fn every_link_has_two_ends_and_a_name_of_its_own() {
    for [spelling, ..] in rows::<5>(FABRICS) {
        let fabric = Fabric::parse(spelling).unwrap();
        let network = fabric.network().unwrap();
        let mut names = BTreeSet::new();
        for link in 0..network.links().len() as u32 {
            let (one, other) = network.ends(link).unwrap();
            assert_ne!(one, other, "{spelling}");
            let name = network.link_name(link);
            assert!(name.contains("->"), "{spelling}: {name}");
            assert!(names.insert(name.clone()), "{spelling}: twice {name}");
        }
        let beyond = network.links().len() as u32;
        assert_eq!(network.ends(beyond), None, "{spelling}");
        assert!(!network.link_name(beyond).is_empty());
    }
}

/// A fabric, two ranks, and the names of the links from one to the other.
const NAMED: &str = "
crossbar:ranks=4 | 0 | 3 | rank 0 -> switch, switch -> rank 3
fat_tree:down=2x2x2,up=1x2x2,links=1x1x2 | 0 | 7
    | rank 0 -> leaf 0, leaf 0 -> level 2 switch 1, level 2 switch 1 -> spine 3 (cable 1), \
spine 3 -> level 2 switch 3 (cable 0), level 2 switch 3 -> leaf 3, leaf 3 -> rank 7
dragonfly:terminals_per_router=1,routers_per_group=2,global_per_router=1 | 0 | 3
    | rank 0 -> group 0 router 0, group 0 router 0 -> group 0 router 1, \
group 0 router 1 -> group 1 router 0, group 1 router 0 -> group 1 router 1, \
group 1 router 1 -> rank 3
mesh:dims=3,duplex=half | 2 | 1 | rank 1 <-> rank 2
custom:ranks=2,switches=1,links=0-2+2~1,names=a%20b+c+%C3%A9 | 0 | 1
    | a b -> \u{e9}, \u{e9} <-> c
";

#[test]
fn links_are_named_in_words() {
    for [spelling, source, destination, names] in rows(NAMED) {
        let fabric = Fabric::parse(spelling).unwrap();
        let network = fabric.network().unwrap();
        let [source, destination] = [source, destination].map(|rank| rank.parse().unwrap());
        let route = route(network, source, destination);
        let found: Vec<String> = route.iter().map(|link| network.link_name(*link)).collect();
        assert_eq!(found.join(", "), names, "{spelling}");
    }
}

/// Equal up to the numbering of links: which flows share which links is the same.
#[test]
fn routes_agree_with_simgrid() {
    let mut platforms = 0;
    let mut network: Option<Fabric> = None;
    let (mut ours, mut theirs) = (BTreeMap::new(), BTreeMap::new());
    for line in include_str!("fabrics/simgrid_routes.txt").lines() {
        if let Some(spelling) = line.strip_prefix("fabric ") {
            network = Some(Fabric::parse(spelling).unwrap());
            (ours, theirs) = (BTreeMap::new(), BTreeMap::new());
            platforms += 1;
            continue;
        }
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let numbers: Vec<u32> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        let fabric = network.as_ref().unwrap();
        let found = route(fabric.network().unwrap(), numbers[0], numbers[1]);
        assert_eq!(found.len(), numbers.len() - 2, "{fabric}: {line}");
        for (our, their) in found.iter().zip(&numbers[2..]) {
            assert_eq!(
                ours.entry(*our).or_insert(*their),
                their,
                "{fabric}: {line}"
            );
            assert_eq!(
                theirs.entry(*their).or_insert(*our),
                our,
                "{fabric}: {line}"
            );
        }
    }
    assert_eq!(platforms, 3);
}

#[test]
fn fabrics_are_read_back_from_their_complete_spelling() {
    let more = [
        "crossbar:ranks=3,rate=12.5GB/s,latency=150ns,sharing=per_flow",
        "dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2,rate=5.25GiB/s,\
         global_rate=4.7GB/s,local_latency=3ns,terminal_latency=1ns,routing=valiant,seed=7",
        "torus:dims=4x4,terminals=2,terminal_rate=400Gb/s,latency=1us",
        "Fat-Tree:arity=4",
        "custom:ranks=2,links=0-1@400Gb/s@1us@per_flow+0~1@2ns,ties=first,rate=10Gb/s",
    ];
    for spelling in rows::<5>(FABRICS).map(|one| one[0]).chain(more) {
        let fabric = Fabric::parse(spelling).unwrap();
        let spelled = fabric.to_string();
        let again = Fabric::parse(&spelled).unwrap();
        assert_eq!(again, fabric, "{spelling}");
        assert_eq!(again.to_string(), spelled, "{spelling}");
        let (one, other) = (fabric.network().unwrap(), again.network().unwrap());
        assert_eq!(one.links(), other.links(), "{spelling}");
    }
}

#[test]
fn rates_and_latencies_are_those_of_the_class() {
    let fabric = Fabric::parse(
        "dragonfly:terminals_per_router=1,routers_per_group=2,global_per_router=1,rate=1Gb/s,\
         local_rate=2Gb/s,global_rate=3Gb/s,terminal_latency=4ns,latency=5ns,sharing=per_flow",
    )
    .unwrap();
    let network = fabric.network().unwrap();
    for (link, rate, latency) in route(network, 0, 3)
        .into_iter()
        .zip([1, 2, 3, 2, 1])
        .zip([4, 5, 5, 5, 4])
        .map(|((link, rate), latency)| (network.links()[link as usize], rate, latency))
    {
        assert_eq!(link.rate.bits_per_second(), rate * 1_000_000_000);
        assert_eq!(link.latency.ps(), latency * 1_000);
        assert_eq!(link.sharing, opticoll::network::Sharing::PerFlow);
    }
}

/// Specifications that no fabric has, and words of the error.
const IMPOSSIBLE: &str = "
fat_tree:down=4x4,up=1x4,rate=1Gb/sx2Gb/sx3Gb/s | has 3 values for 2 levels
fat_tree:down=4x4,up=1x4,rate=1Gb/sxfast | `fast`
crossbar:rate=1Gb/s | needs ranks=
crossbar:ranks=0 | from 1 to 1048576
crossbar:ranks=4,rate=-1Gb/s | is not a rate
crossbar:ranks=4,rate=0Gb/s | greater than zero
crossbar:ranks=4,latency=5 | give the unit
crossbar:ranks=4,duplex=both | `full` or `half`
crossbar:ranks=4,sharing=some | `shared` or `per_flow`
crossbar:rank=4 | did you mean `ranks`
crosbar:ranks=4 | did you mean `crossbar`
fat_tree:up=1 | needs down=
fat_tree:down=4x4 | needs up=
fat_tree:down=4x4,up=1 | give one for each level
fat_tree:down=4x0,up=1x1 | `0` must be a whole number
fat_tree:down=4;4,up=1x1 | such as 16x8x8
fat_tree:arity=4,taper=3 | must divide arity=4
fat_tree:arity=4,down=4x4 | either arity or down
fat_tree:down=4,up=1,taper=2 | goes with arity
fat_tree:down=4096x4096,up=1x1 | 16777216 ranks; at most 1048576
fat_tree:down=2x2,up=1000000x1000000 | links; at most
fat_tree:down=1048576x1048576x1048576x1048576x1048576x1048576x1048576,up=1x1x1x1x1x1x1
    | ranks; at most
dragonfly:terminals_per_router=2,routers_per_group=4 | needs global_per_router=
dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2,groups=10 | from 1 to 9
dragonfly:terminals_per_router=2,routers_per_group=4,groups=5,arrangement=simgrid | from 1 to 4
dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2,seed=1
    | goes with routing=valiant
dragonfly:terminals_per_router=9999,routers_per_group=9999,global_per_router=9999 | ranks; at most
torus:ranks=4 | no option `ranks`
torus:rate=1Gb/s | needs dims=
torus:dims=4x | write numbers
torus:dims=1024x1025 | ranks; at most
torus:dims=4,terminal_rate=1Gb/s | without terminals
torus:dims=2x2x2x2x2x2x2x2x2x2x2x2x2x2x2x2x2 | at most 16
ocs_torus:cube=4 | needs dims=
ocs_torus:dims=4x8 | 2 numbers for 3 sides
ocs_torus:dims=4x4x6 | a multiple of 4
ocs_torus:dims=4x4x4,cube=1 | 2 ranks or more
ocs_torus:dims=4x4x12,twisted | defined for sides of n and 2n
ocs_torus:dims=4x4x4,twisted | defined for sides of n and 2n
ocs_torus:dims=2x2x4,twisted | does not wrap around
ocs_torus:dims=4x4x8,twisted=some | `no` or `yes`
ocs_torus:dims=16x16x36,ports=136
    | 144 cubes need 288 ports of each of the 48 switches, which have 136
ocs_torus:dims=16x16x16,spares=5,ports=136 | 64 cubes and 5 spares need 138 ports
ladder:dims=4 | no option `dims`
electrical_ring:rate=1Gb/s | needs ranks=
hypercube:ranks=12 | must be a power of 2
tree:ranks=4,arity=0 | arity
custom:ranks=2,links=0-1@5miles | is not a
custom:ranks=2,links=0-1@0.5m | not a whole number of metres
custom:ranks=2,links=0-1,positions=1/2 | 1 positions for 2
custom:ranks=2,links=0-1,positions=1/2+91/0 | `91/0` is not a latitude
custom:ranks=2,links=0-1,positions=1/2+NaN/0 | is not a latitude
wdm_graph:ranks=2,links=0-1@80km | needs wavelengths=
fully_connected:ranks=5000 | 24995000 links; at most 16777216
custom:ranks=2 | needs links=
custom:ranks=2,links=0-2 | there is no vertex 2; ranks and switches are 0 to 1
custom:ranks=2,links=0-1+1-1 | link 1 (`1-1`): a link joins two different
custom:ranks=2,links=0:1 | such as 0-4
custom:ranks=2,links=0-x | `x` is not the number
custom:ranks=2,links=0-1@-1Gb/s | is not a rate
custom:ranks=2,links=0-1@5 | give the unit
custom:ranks=3,links=0-1 | no links lead from rank 0 to rank 2
custom:ranks=2,links=0>1,names=a+b | no links lead from b to a
custom:ranks=2,links=0-1,names=a | 1 names for 2
custom:ranks=2,links=0-1,names=a+a | `a` is given twice
custom:ranks=2,links=0-1,names=a+%G1 | is not a name
custom:ranks=2,links=0-1,ties=last | `spread` or `first`
custom:ranks=40000,links=0-1 | from 1 to 32768
# Rings of wavelengths.
wdm_ring:ranks=0,wavelengths=2 | from 1 to
wdm_ring:ranks=4,wavelengths=0 | from 1 to
wdm_ring:ranks=4.5,wavelengths=1 | whole number
wdm_ring:wavelengths=1 | needs ranks=
wdm_ring:ranks=4 | needs wavelengths=
wdm_rign:ranks=4,wavelengths=1 | did you mean `wdm_ring`
wdm_ring:rank=4,wavelengths=1 | did you mean `ranks`
wdm_ring:ranks=4,wavelengths=1,rate=40G | known units
wdm_ring:ranks=4,wavelengths=1,ports=3 | from 1 to 2
wdm_ring:ranks=4,ranks=4,wavelengths=1 | given twice
wdm_ring:ranks=4,wavelengths=1,flit=0B | at least 1B
wdm_ring:ranks=4,wavelengths=1,packet=128B | needs flit=
wdm_ring:ranks=4,wavelengths=1,flit=32B,packet=100B | whole number of flits
wdm_ring:ranks | ranks=yes: must be a whole number
wdm_ring:ranks=8,wavelengths=4,fibres=2,multicast=yes | must be `none` or `drop_and_continue`
wdm_ring:ranks=8,wavelengths=4,fibres=2,reach=0 | must be from 1 to
wdm_ring:ranks=8,wavelengths=4,fibres=2,broken=3 | not a pair of neighbours
wdm_ring:ranks=8,wavelengths=4,fibres=2,broken=3-5 | 3 and 5 are not neighbours
wdm_ring:ranks=8,wavelengths=4,fibres=2,broken=7-8 | ranks are below 8
wdm_ring:ranks=8,wavelengths=4,fibres=2,broken=3>4 | not a pair of neighbours
wdm_ring:ranks=8,wavelengths=4,fibres=2,dead=4 | wavelengths count from 0 and are below 4
wdm_ring:ranks=8,wavelengths=4,fibres=2,dead=2.1 | fibres count from 0 and are below 2
wdm_ring:ranks=8,wavelengths=4,fibres=2,dead=x | not a whole number
wdm_ring:ranks=8,wavelengths=4,fibres=2,dead=0+1+2+3 | no wavelength is left
wdm_ring:ranks=8,wavelengths=4,launch_power=5dBm | needs sensitivity
wdm_ring:ranks=8,wavelengths=4,resonators=5 | needs launch_power
wdm_ring:ranks=8,wavelengths=4,launch_power=5,sensitivity=-9dBm,through_loss=1dB
    | needs its unit
wdm_ring:ranks=8,wavelengths=4,launch_power=0dBm,sensitivity=-9dBm,through_loss=-1dB
    | must not be negative
wdm_ring:ranks=8,wavelengths=4,launch_power=0dBm,sensitivity=-9dBm,through_loss=0.0000001dB
    | at most six digits
wdm_ring:ranks=8,wavelengths=4,launch_power=0dBm,sensitivity=1dBm,through_loss=1dB
    | does not reach the next rank
wdm_ring:ranks=8,wavelengths=4,launch_power=0dBm,sensitivity=-9dBm,through_loss=1dB,drop_loss=9.1dB
    | does not reach the next rank
wdm_ring:ranks=8,wavelengths=4,launch_power=0dBm,sensitivity=-9dBm,through_loss=0dB,link_loss=9.1dB
    | does not reach the next rank
wdm_ring:ranks=8,wavelengths=4,launch_power=0dBm,sensitivity=-9dBm,through_loss=conector
    | did you mean `connector`
wdm_ring:ranks=8,wavelengths=4,launch_power=0dBm,sensitivity=-9dBm,through_loss=2.5*connector
    | needs a whole number
wdm_ring:ranks=8,wavelengths=4,launch_power=0dBm,sensitivity=-9dBm,through_loss=2*fibre_1550
    | needs a length, such as 2.5km*fibre_1550
wdm_ring:ranks=8,wavelengths=4,launch_power=0dBm,sensitivity=-9dBm,through_loss=999dB+1dB
    | must be below 1000dB
# Light that every lightpath weakens alike: at 10 log10 100 = 20 dB, 100 ranks share what 101 cannot.
passive_star:ranks=101,wavelengths=4,launch_power=0dBm,sensitivity=-20dBm
    | 0.043214dB too weak: launch power 0dBm, losses division among all ranks 20.043214dB
passive_star:ranks=100,wavelengths=4,launch_power=0dBm,sensitivity=-20dBm,excess_loss=0.5dB
    | 0.5dB too weak
passive_star:ranks=4,wavelengths=4,excess_loss=0.5dB | needs launch_power
passive_star:ranks=4,wavelengths=4,through_loss=0.5dB | has no option `through_loss`
circuit_switch:ranks=8,launch_power=0dBm,sensitivity=-2dBm,switch_loss=palomar+2*connector
    | 1.5dB too weak: launch power 0dBm, losses switch 3.5dB
circuit_switch:ranks=8,switch_loss=2dB | needs launch_power
wss_grid:rows=2,columns=2,launch_power=0dBm,sensitivity=-10dBm,switch_loss=wss,fixed_loss=2.1dB
    | 0.1dB too weak
lightpath_grid:ranks=4,launch_power=-1dBm,sensitivity=-3dBm,fixed_loss=80km*fibre_1550
    | 14dB too weak
lightpath_grid:ranks=4,launch_power=-1dBm,sensitivity=0dBm | 1dB too weak
wdm_torus:dims=4x4,wavelengths=2,launch_power=0dBm,sensitivity=-2dBm,fibre_loss=fibre_1550
    | needs the length of every link
wdm_torus:dims=4x4,wavelengths=2,launch_power=0dBm,sensitivity=-2dBm,link_loss=2.1dB
    | reaches the end of no link: on the best, rank 0 -> rank 1, it arrives 0.1dB below
wdm_torus:dims=4x4,wavelengths=2,link_loss=2.1dB | `wdm_torus` needs launch_power
wdm_torus:dims=4x4,wavelengths=2,launch_power=0dBm,sensitivity=-2dBm,span=80km | needs noise_figure
wdm_torus:dims=4x4,wavelengths=2,launch_power=0dBm,sensitivity=-2dBm,crosstalk=40dB | 0dB or less
wdm_torus:dims=4x4,wavelengths=2,launch_power=0dBm,sensitivity=-2dBm,link_loss=20dB,\
        noise_figure=5dB,osnr=33dB | has an OSNR of 32.953
# Grids and switches.
lightpath_grid | needs ranks=
lightpath_grid:ranks=4,ports=0 | ports=0
lightpath_grid:ranks=4,ports=257 | ports=257
lightpath_grid:ranks=4,rate=1 | rate=1
lightpath_grid:ranks=4,wavelengths=2 | has no option `wavelengths`
circuit_switch:ranks=8,dead_ports=8.0 | `8.0` is not a port of 8 ranks
circuit_switch:ranks=8,dead_ports=3 | `3` is not a port of 8 ranks
circuit_switch:ranks=8,dead_ports=3.0 | no circuits from rank 0 to rank 3
circuit_switch:ranks=8,ports=2,planes=2,dead_ports=0.0+0.1 | no circuits from rank 0 to rank 1
# Rank 0 on plane 0 alone, all others on plane 1.
circuit_switch:ranks=3,ports=2,planes=2,dead_ports=0.1+1.0+2.0 | no circuits from rank 0 to rank 1
circuit_switch:ranks=8,switch_ports=4 | need planes=2 or more for 8 ranks
circuit_switch:ranks=65,ports=2,planes=2,switch_ports=8 | need planes=3 or more
circuit_switch:ranks=8,ports=4,planes=2,switch_ports=3 | must be 4 or more
# Row 1 has lost its column.
circuit_switch:ranks=4,ports=2,planes=2,switch_ports=2,dead_ports=2.1+3.1 | from rank 0 to rank 2
circuit_switch:ranks=8,ports=3,planes=2 | must divide ports=3
circuit_switch:ranks=8,reconfiguration=1us+x | reconfiguration
circuit_switch:ranks=8,packet_latency=1us | needs packet_rate
# Parts that are missing.
ocs_torus:dims=4x4x8,without=cube 1 | the slice has none; give spares=1
ocs_torus:dims=4x4x8,spares=1,without=cube 1+cube 0
    | its spare is in use or has failed; give spares=2
ocs_torus:dims=4x4x8,spares=1,without=cube 2+cube 0 | its spare is in use or has failed
ocs_torus:dims=4x4x8,spares=1,without=cube 3 | cubes are 0 to 2
ocs_torus:dims=4x4x8,spares=2,without=cube 1+cube 1 | named twice
torus:dims=4x4,without=cube 1 | there is no `cube 1`
torus:dims=4x4,without=0>9 | the fabric has no `0>9`; its vertices are 0 to 15
torus:dims=4x4,without=16 | the fabric has no `16`
dgx_a100:without=GPU 3 | there is no `GPU 3`; vertices have names such as `rank 0`
torus:dims=4x4,members=3-1 | `3-1`: ranks are 0 to 15
torus:dims=4x4,members=a | write ranks such as 0-7+16
crossbar:ranks=2,without=0+1 | no rank is left
electrical_ring:ranks=4,without=0-1+2-3 | no links lead from rank 0 to rank 1, rank 2
electrical_ring:ranks=4,without=1>0+3>0 | no links lead from rank 1, rank 2, rank 3 to rank 0
wss_grid:rows=2,columns=2,without=0 | no option `without`
wdm_ring:ranks=8,wavelengths=2,without=0+1+2+3+4+5+6+7 | no rank is left
wdm_ring:ranks=8,wavelengths=2,members=3,without=3 | no rank is left
wdm_ring:ranks=8,wavelengths=2,members=8 | ranks are 0 to 7
wdm_ring:ranks=8,wavelengths=2,without=9 | there is no rank 9
wdm_ring:ranks=8,wavelengths=2,without=NIC | write ranks such as 5
wdm_ring:ranks=8,wavelengths=2,without=2>4 | 2 and 4 are not neighbours
# Parts that are slower.
torus:dims=4x4,degraded=0-1 | write 0-1@10Gb/s
torus:dims=4x4,degraded=0-1@100Gb/s | a degraded part has less
torus:dims=4x4,degraded=0-2@1Gb/s | the fabric has no `0-2`
torus:dims=4x4,degraded=0-1@1GHz | GHz
wdm_ring:ranks=8,wavelengths=2,degraded=3@1Gb/s | write links such as 3-4
wdm_ring:ranks=8,wavelengths=2,degraded=w2@1Gb/s | are below 2
wdm_ring:ranks=8,wavelengths=2,degraded=w1@40Gb/s | a degraded part has less
wdm_ring:ranks=8,wavelengths=2,degraded=3-5@1Gb/s | 3 and 5 are not neighbours
circuit_switch:ranks=4,ports=2,degraded=3.2@1Gb/s | not a port of 4 ranks with 2 ports each
circuit_switch:ranks=4,ports=2,degraded=3.0@800Gb/s | a degraded part has less
circuit_switch:ranks=4,ports=2,degraded=3.0 | write 3.0@10Gb/s
wss_grid:rows=2,columns=2,degraded=4.row@1Gb/s | does not exist on the grid
wss_grid:rows=2,columns=2,degraded=3.row@100Gb/s | a degraded part has less
";

#[test]
fn impossible_fabrics_are_refused_with_a_hint() {
    for [spelling, hint] in rows(IMPOSSIBLE) {
        let error = Fabric::parse(spelling).unwrap_err().to_string();
        assert!(error.contains(hint), "{spelling}: {error}");
    }
}

fn route(network: &dyn Network, source: u32, destination: u32) -> Vec<u32> {
    let mut links = Vec::new();
    network.route(source, destination, &mut links);
    let mut again = vec![7];
    network.route(source, destination, &mut again);
    assert_eq!(again[1..], links, "appended, and the same each time");
    links
}

/// Returns the vertices of a route, and checks that each link starts where the link before it ends.
fn walked(network: &dyn Network, source: u32, destination: u32) -> Vec<u32> {
    let mut walk = vec![source];
    for link in route(network, source, destination) {
        let here = *walk.last().unwrap();
        let (one, other) = network.ends(link).unwrap();
        let half = network.link_name(link).contains("<->");
        assert!(
            here == one || (half && here == other),
            "from vertex {here} over {}",
            network.link_name(link)
        );
        let next = if here == one { other } else { one };
        assert!(!walk.contains(&next), "vertex {next} twice after {walk:?}");
        walk.push(next);
    }
    assert_eq!(*walk.last().unwrap(), destination, "{walk:?}");
    walk
}

/// Lists, for each vertex, the vertices to which a link leads.
fn neighbours(network: &dyn Network) -> BTreeMap<u32, Vec<u32>> {
    let mut beside: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for link in 0..network.links().len() as u32 {
        let (one, other) = network.ends(link).unwrap();
        beside.entry(one).or_default().push(other);
        if network.link_name(link).contains("<->") {
            beside.entry(other).or_default().push(one);
        }
    }
    beside
}

/// Returns the fewest links between two vertices over allowed vertices, by breadth-first search.
fn distance(
    beside: &BTreeMap<u32, Vec<u32>>,
    source: u32,
    destination: u32,
    allowed: impl Fn(u32) -> bool,
) -> usize {
    let mut reached = BTreeMap::from([(source, 0)]);
    let mut waiting = VecDeque::from([source]);
    while let Some(vertex) = waiting.pop_front() {
        for &next in beside.get(&vertex).into_iter().flatten() {
            if allowed(next) && !reached.contains_key(&next) {
                reached.insert(next, reached[&vertex] + 1);
                waiting.push_back(next);
            }
        }
    }
    reached[&destination]
}
