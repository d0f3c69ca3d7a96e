//! Bills of materials: parts of small fabrics, counted by hand.

use opticoll::components::component;
use opticoll::fabric::Fabric;
use opticoll::families::{FAMILIES, presets};

use crate::rows;

/// A fabric, and its parts by hand.
const BILLS: &str = "
# Four cables, each with a transceiver at both ends; one switch.
crossbar:ranks=4,rate=800Gb/s
    | 4 transceiver at ranks of 800Gb/s;4 transceiver at switches of 800Gb/s;4 fibre_cable;\
      4 nic at ranks of 800Gb/s;1 packet_switch with 4 ports of 800Gb/s
# Two leaves with 2 cables down and 2 up, two spines with 2 cables down.
fat_tree:arity=2,levels=2,rate=400Gb/s
    | 4 transceiver at ranks of 400Gb/s;12 transceiver at switches of 400Gb/s;8 fibre_cable;\
      4 nic at ranks of 400Gb/s;2 packet_switch with 2 ports of 400Gb/s;\
      2 packet_switch with 4 ports of 400Gb/s
# 4 x 4 ranks have 32 cables; a failed rank is still there.
torus:dims=4x4,rate=100Gb/s,without=5 | 64 transceiver at ranks of 100Gb/s;32 fibre_cable
# Links in one direction are cables.
custom:ranks=3,links=0>1+1>2+2>0,rate=1Gb/s | 6 transceiver at ranks of 1Gb/s;3 fibre_cable
crossbar:ranks=2,rate=1Gb/s,duplex=half
    | 2 transceiver at ranks of 1Gb/s;2 transceiver at switches of 1Gb/s;2 fibre_cable;\
      2 nic at ranks of 1Gb/s;1 packet_switch with 2 ports of 1Gb/s
# 4 ranks x 2 directions x 2 wavelengths.
wdm_ring:ranks=4,wavelengths=2
    | 16 wdm_transceiver at ranks of 40Gb/s;16 ring_drop;8 fibre
wdm_ring:ranks=4,wavelengths=2,ports=3,members=0+2
    | 12 wdm_transceiver at ranks of 40Gb/s;16 ring_drop;8 fibre
# The middle rank has two links, the others have one.
wdm_graph:ranks=3,links=0-1+1-2,wavelengths=4,rate=100Gb/s
    | 16 wdm_transceiver at ranks of 100Gb/s;4 fibre;1 light_switch with 2 ports
wdm_graph:ranks=3,links=0-1+1-2,wavelengths=4,rate=100Gb/s,without=0-1,members=1+2
    | 16 wdm_transceiver at ranks of 100Gb/s;4 fibre;1 light_switch with 2 ports
wdm_graph:ranks=3,links=0-1+1-2,wavelengths=4,rate=100Gb/s,transmitters=3,fibres=2
    | 9 wdm_transceiver at ranks of 100Gb/s;23 wdm_receiver at ranks of 100Gb/s;8 fibre;\
      1 light_switch with 4 ports
# Two spans of 80 km and one, in both directions; two fibres leave the middle rank.
wdm_graph:ranks=3,links=0-1@160km+1-2@80km,wavelengths=1,rate=100Gb/s,launch_power=0dBm,\
        sensitivity=-30dBm,fibre_loss=0.2dB/km,noise_figure=5dB,through_loss=10dB
    | 4 wdm_transceiver at ranks of 100Gb/s;4 fibre;8 amplifier;1 light_switch with 2 ports
circuit_switch:ranks=8,ports=2,planes=2,rate=800Gb/s
    | 16 transceiver at ranks of 800Gb/s;16 fibre_cable;2 ocs with 8 ports
# 4 rows and 4 columns of 4 ranks.
circuit_switch:ranks=16,ports=2,planes=2,switch_ports=4,rate=800Gb/s,packet_rate=100Gb/s
    | 32 transceiver at ranks of 800Gb/s;32 fibre_cable;8 ocs with 4 ports;\
      16 transceiver at ranks of 100Gb/s;16 nic at ranks of 100Gb/s
# Two cubes of 3 * 16 * 3 cables and 6 * 16 fibres; 3 * 16 switches.
ocs_torus:dims=4x4x8,rate=100GB/s
    | 288 copper_cable;192 transceiver at ranks of 800Gb/s;192 fibre_cable;48 ocs with 4 ports
ocs_torus:dims=2x2x2,cube=2,rate=100GB/s,spares=1,ports=136
    | 24 copper_cable;48 transceiver at ranks of 800Gb/s;48 fibre_cable;12 ocs with 136 ports
# A mesh of 12 cables within a cube.
ocs_torus:dims=2x2x2,cube=4 | 12 copper_cable
passive_star:ranks=4,wavelengths=2,transmitters=2,rate=10Gb/s
    | 4 tunable_transceiver at ranks of 10Gb/s;4 tunable_transmitter at ranks of 10Gb/s;\
      1 star_coupler with 4 ports;4 fibre_cable
wss_grid:rows=2,columns=3
    | 12 tunable_transceiver at ranks of 100Gb/s;12 fibre_cable;5 wss with 3 ports
lightpath_grid:ranks=4,ports=2 | 8 transceiver at ranks of 1Gb/s
# 16 GPUs; copper within the servers; NICs of 50 GB/s to one switch.
gpu_servers:model=dgx_h100,boxes=2
    | 16 gpu_h100;16 copper_cable;16 transceiver at ranks of 400Gb/s;\
      16 transceiver at switches of 400Gb/s;16 fibre_cable;16 nic at ranks of 400Gb/s;\
      2 server_switch with 8 ports of 3.6Tb/s;1 packet_switch with 16 ports of 400Gb/s
# Eight rails, each a switch with two ports.
gpu_servers:model=dgx_h100,boxes=2,outside=crossbar/rate=50GB/s
    | 16 gpu_h100;16 copper_cable;2 server_switch with 8 ports of 3.6Tb/s;\
      16 transceiver at ranks of 400Gb/s;16 transceiver at switches of 400Gb/s;16 fibre_cable;\
      16 nic at ranks of 400Gb/s;8 packet_switch with 2 ports of 400Gb/s
# Eight rails, each a ring of two ranks with one wavelength in each direction.
gpu_servers:model=dgx_h100,boxes=2,outside=wdm_ring/wavelengths=1/rate=50GB/s
    | 16 gpu_h100;16 copper_cable;2 server_switch with 8 ports of 3.6Tb/s;\
      32 wdm_transceiver at ranks of 400Gb/s;32 ring_drop;32 fibre
# GPU 0 of each server sends to GPU 1 of the other one; 16 pairs of GPUs in each server.
gpu_servers:model=ndv2,boxes=2
    | 16 gpu;32 copper_cable;4 transceiver at ranks of 100Gb/s;2 fibre_cable;\
      4 nic at ranks of 100Gb/s
";

#[test]
fn parts_are_those_counted_by_hand() {
    for [fabric, expected] in rows(BILLS) {
        let bill = Fabric::parse(fabric).unwrap_or_else(|error| panic!("{error}"));
        let lines: Vec<String> = bill.bill().lines().map(|line| line.to_string()).collect();
        let mut expected: Vec<&str> = expected.split(';').map(str::trim).collect();
        let mut lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        expected.sort_unstable();
        lines.sort_unstable();
        assert_eq!(lines, expected, "{fabric}");
    }
}

/// Published: 216 switches of 144 ports join 10,368 GPUs (Lambda, table on Quantum-X Q3450-LD).
#[test]
fn a_fat_tree_of_10368_ranks_has_216_switches_of_144_ports() {
    let tree = Fabric::parse("fat_tree:down=72x144,up=1x72,rate=800Gb/s").unwrap();
    assert_eq!(tree.ranks(), 10_368);
    let bill = tree.bill();
    let switches = bill
        .lines()
        .filter(|line| line.kind.component == "packet_switch");
    let switches: Vec<_> = switches.map(|line| (line.kind.ports, line.count)).collect();
    assert_eq!(switches, [(Some(144), 216)]);
}

#[test]
fn every_part_of_an_example_is_a_listed_component() {
    let examples = FAMILIES.iter().map(|family| family.example);
    let presets = presets().map(|preset| preset.spec);
    let mut fabrics = 0;
    for fabric in examples
        .chain(presets)
        .filter_map(|spec| Fabric::parse(spec).ok())
    {
        let bill = fabric.bill();
        assert!(bill.lines().next().is_some(), "{fabric}");
        for line in bill.lines() {
            assert!(component(line.kind.component).is_some(), "{fabric}: {line}");
            assert!(line.count > 0, "{fabric}: {line}");
        }
        fabrics += 1;
    }
    assert!(fabrics >= 26, "{fabrics}");
}
