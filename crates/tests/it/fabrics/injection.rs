//! The injection bandwidth of a rank against a count by hand of its transmitters, and the latency
//! to the farthest rank against a sum by hand over its route.

use opticoll::fabric::Fabric;
use opticoll::units::Time;

use crate::{rows, sum};

const GIGA: u128 = 1_000_000_000;

/// Specifications with the transmitters of a rank times their rate (Gb/s), counted by hand.
const COUNTED: &str = "
# Two directions, two fibres each, four wavelengths on a fibre.
wdm_ring:ranks=8,wavelengths=4,fibres=2,rate=40Gb/s | 2*2*4*40
wdm_ring:ranks=8,wavelengths=4,rate=40Gb/s,ports=3 | 3*40
wdm_ring:ranks=8,wavelengths=4,rate=40Gb/s,dead=1 | 2*3*40
# Rank 3 lacks the way to 4, or rank 4 the way to 3; with both, each has one way left.
wdm_ring:ranks=8,wavelengths=4,rate=40Gb/s,broken=3-4cw | 4*40
wdm_ring:ranks=8,wavelengths=4,rate=40Gb/s,broken=3-4 | 4*40
wss_grid:rows=4,columns=4,rate=100Gb/s | 2*100
wss_grid:rows=1,columns=4,rate=100Gb/s | 100
wss_grid:rows=4,columns=4,rate=100Gb/s,dead_transceivers=5.row | 100
lightpath_grid:ranks=16,ports=3,rate=10Gb/s | 3*10
crossbar:ranks=8,rate=100Gb/s | 100
crossbar:ranks=8,rate=100Gb/s,duplex=half | 100
fat_tree:down=4x4,up=1x2,rate=100Gb/s | 100
dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2,rate=40Gb/s | 40
fully_connected:ranks=5,rate=10Gb/s | 4*10
torus:dims=4x4,rate=10Gb/s | 4*10
# The corner of a mesh has two neighbours.
mesh:dims=4x4,rate=10Gb/s | 2*10
electrical_ring:ranks=6,rate=10Gb/s | 2*10
# The slowest rank counts.
custom:ranks=3,switches=1,links=0-3@100Gb/s+1-3@1Gb/s+2-3@50Gb/s | 1
";

#[test]
fn a_rank_injects_what_leaves_it() {
    for [spelling, expected] in rows(COUNTED) {
        let fabric = Fabric::parse(spelling).unwrap();
        let expected = u128::from(sum(expected)) * GIGA;
        assert_eq!(fabric.injection_bandwidth(), expected, "{spelling}");
    }
}

/// Specifications with the latency (ns) from rank 0 to the farthest rank, computed by hand.
const FARTHEST_LATENCIES: &str = "
crossbar:ranks=8 | 0
crossbar:ranks=1,latency=1us | 0
crossbar:ranks=8,latency=500ns | 2*500
fat_tree:down=4x4,up=1x2,latency=100ns | 4*100
torus:dims=4x4,latency=100ns | 4*100
mesh:dims=4x4,latency=100ns | 6*100
dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2,latency=10ns,\
        global_latency=300ns
    | 2*10 + 2*10 + 300
# Over an NVSwitch, and over two interfaces and a switch.
dgx_a100 | 1100
dgx_h100 | 800
nvl72 | 1150
# GPUs 0 and 9 have interfaces at two switches: over one of the boxes' NVSwitches, too.
dgx_a100:boxes=2 | 2700 + 1100
dgx_h100:boxes=3 | 2700
nvl72:boxes=2 | 2700
mi250:boxes=2 | 2700
dgx_h100:boxes=2,latency=2us | 8000
dgx_h100:boxes=2,network_latency=1us | 4000
# A GPU without a link to the other box is two NVLinks away from one that has, and so is the
# last of the other.
dgx2:boxes=2 | 300 + 2600 + 300
wdm_ring:ranks=8,wavelengths=4 | 0
wdm_ring:ranks=8,wavelengths=4,propagation=10ns,conversion=3ns | 4*10 + 3
wdm_ring:ranks=8,wavelengths=4,propagation=10ns,reach=2 | 2*10
lightpath_grid:ranks=16,ports=3,latency=100us | 100000
circuit_switch:ranks=8,ports=2,rate=400Gb/s,latency=500ns | 500
passive_star:ranks=8,wavelengths=4,latency=70ns | 70
wss_grid:rows=4,columns=4,latency=90ns | 90
";

#[test]
fn the_farthest_rank_is_as_far_as_its_route_is_long() {
    for [spelling, nanoseconds] in rows(FARTHEST_LATENCIES) {
        let fabric = Fabric::parse(spelling).unwrap_or_else(|error| panic!("{spelling}: {error}"));
        let expected = Time::from_ps(1000 * sum(nanoseconds));
        assert_eq!(fabric.latency(), expected, "{spelling}");
        // A specification states all values, so that later defaults of a model do not change it.
        let read = Fabric::parse(&fabric.to_string()).unwrap();
        assert_eq!((read.latency(), &read), (expected, &fabric));
    }
}

#[test]
fn latencies_of_servers_that_are_stated_change_nothing() {
    for boxes in [1, 2] {
        let parse = |options: &str| Fabric::parse(&format!("dgx_h100:boxes={boxes}{options}"));
        let plain = parse("").unwrap();
        assert_eq!(
            parse(",latency=400ns,network_latency=675ns").unwrap(),
            plain
        );
        assert_eq!(parse(",network_latency=675ns").unwrap(), plain);
    }
}
