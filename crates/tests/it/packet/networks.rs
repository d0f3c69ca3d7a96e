//! The packet simulator on fabrics with fixed routes.

use opticoll::fabric::Fabric;
use opticoll::simulate::packet;
use opticoll::simulate::packet::{
    Overheads, PacketError, PacketOptions, PacketOutcome, PacketRouting, PacketWork, Pattern,
    Traffic,
};
use opticoll::units::{Bytes, Time};

use crate::rows;

use super::{collective, cut, kib, sends, traffic};

/// Runs traffic in which all ranks send to the rank half way around and to random ranks, more than
/// the links carry, through buffers of two chunks.
fn crowded(fabric: &Fabric, virtual_channels: Option<u32>) -> Result<PacketOutcome, PacketError> {
    let ranks = fabric.ranks();
    let patterns = [Pattern::Shift(ranks / 2), Pattern::Uniform];
    let sent = |pattern| Traffic {
        pattern,
        ..Traffic::uniform(Bytes::new(8192), Time::from_ps(100_000), 40)
    };
    let work = PacketWork {
        collective: None,
        traffic: patterns.map(sent).into(),
    };
    let options = PacketOptions {
        virtual_channels,
        buffers: kib(1, 1, 1),
        ..cut(2048, 512)
    };
    packet::simulate(fabric, &work, &options)
}

#[test]
fn channels_suffice_on_every_fabric() {
    // Fabric; channels that its routes need.
    let cases = [
        ("crossbar:ranks=17", 1),
        ("fat_tree:down=4x4,up=1x2", 1),
        ("fat_tree:arity=4,levels=3", 1),
        ("mesh:dims=4x3", 1),
        ("fully_connected:ranks=6", 1),
        ("electrical_ring:ranks=9", 2),
        // A cycle of links with routes of two hops in each dimension of at least four places.
        ("torus:dims=4x4", 3),
        ("torus:dims=5x3x4", 3),
        ("torus:dims=5x5,terminals=2", 3),
        (
            "custom:ranks=5,switches=5,links=0-5+1-6+2-7+3-8+4-9+5-6+6-7+7-8+8-9+9-5",
            2,
        ),
    ];
    for (spelling, channels) in cases {
        let fabric = Fabric::parse(&format!("{spelling},rate=1GB/s,latency=10ns")).unwrap();
        let outcome = crowded(&fabric, None).unwrap_or_else(|error| panic!("{spelling}: {error}"));
        let used = 1 + outcome.channels.channel.iter().max().unwrap();
        assert_eq!(used, channels, "{spelling}");
        assert_eq!(
            outcome.message_latency.count(),
            u64::from(fabric.ranks()) * 80
        );
        assert_eq!(outcome.bytes_sent, outcome.bytes_delivered, "{spelling}");
        let capacities = outcome.channels.capacity_chunks.iter();
        assert!(
            outcome
                .channels
                .peak_chunks
                .iter()
                .zip(capacities)
                .all(|(peak, most)| peak <= most)
        );
    }
}

#[test]
fn rings_deadlock_on_one_channel() {
    for spelling in ["electrical_ring:ranks=9", "torus:dims=5x5"] {
        let fabric = Fabric::parse(&format!("{spelling},rate=1GB/s,latency=0ns")).unwrap();
        let network = fabric.network().unwrap();
        let Err(PacketError::Deadlock { cycle, .. }) = crowded(&fabric, Some(1)) else {
            panic!("{spelling} did not deadlock");
        };
        for (place, &(link, _)) in cycle.iter().enumerate() {
            let next = cycle[(place + 1) % cycle.len()].0;
            let met = network.ends(link).unwrap().1;
            assert_eq!(met, network.ends(next).unwrap().0, "{spelling} {cycle:?}");
        }
    }
}

#[test]
fn fixed_routes_take_the_sum_of_their_parts() {
    // Fabric, destination of rank 0, links between, routers. Where ranks are routers, ports of
    // their own into and out of the network come on top, without latency.
    let cases = [
        ("crossbar:ranks=4", 1, 2, 2, 1),
        ("fat_tree:down=4x4,up=1x2", 15, 4, 4, 3),
        ("electrical_ring:ranks=9", 3, 5, 3, 4),
        ("torus:dims=4x4", 5, 4, 2, 3),
    ];
    for (spelling, destination, wires, latencies, routers) in cases {
        let fabric = Fabric::parse(&format!("{spelling},rate=1GB/s,latency=10ns")).unwrap();
        let options = PacketOptions {
            overheads: Overheads::NONE,
            ..cut(512, 512)
        };
        let schedule = sends(fabric.ranks(), &[(0, destination)]);
        let outcome = collective(&fabric, &schedule, 100, &options);
        let expected = 1000 * (wires * 100 + latencies * 10 + routers * 50);
        assert_eq!(outcome.message_latency.max().ps(), expected, "{spelling}");
        assert_eq!(outcome.routers_passed, routers, "{spelling}");
    }
}

/// A fabric, the routing, and a part of the refusal.
const NO_PACKETS: &str = "
wdm_ring:ranks=8,wavelengths=2 | minimal | wdm_ring
crossbar:ranks=5,duplex=half,rate=1GB/s | minimal | half-duplex
torus:dims=4x4,rate=1GB/s | adaptive | torus
crossbar:ranks=4,sharing=per_flow,rate=1GB/s | minimal | share
dragonfly:terminals_per_router=2,routers_per_group=4,global_per_router=2,duplex=half,rate=1GB/s
    | minimal | half-duplex
";

#[test]
fn what_packets_cannot_travel_is_refused() {
    let uniform = || Traffic::uniform(Bytes::new(512), Time::from_ps(1_000_000), 1);
    for [spelling, routing, reason] in rows(NO_PACKETS) {
        let routing = *PacketRouting::ALL
            .iter()
            .find(|one| one.name() == routing)
            .unwrap();
        let fabric = Fabric::parse(spelling).unwrap();
        let work = PacketWork {
            collective: None,
            traffic: vec![uniform()],
        };
        let options = PacketOptions {
            routing,
            ..PacketOptions::default()
        };
        let error = packet::simulate(&fabric, &work, &options).unwrap_err();
        assert!(error.to_string().contains(reason), "{spelling}: {error}");
    }
    let fabric = Fabric::parse("crossbar:ranks=4,rate=1GB/s").unwrap();
    assert_eq!(
        traffic(&fabric, uniform(), &cut(512, 512))
            .message_latency
            .count(),
        4
    );
}
