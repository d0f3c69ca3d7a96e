//! GPU servers that another fabric joins: light on rails and on one copy, and links.

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::plan::Plan;
use opticoll::simulate::{self, Policy, TimingModel};
use opticoll::units::{Bytes, Time};
use opticoll::verify::{ViolationKind, verify};
use opticoll::{bounds, planner};

/// Four servers of 8 GPUs with 3.6 Tb/s and 2 times 400 ns within a server.
fn light(outside: &str) -> Fabric {
    let spec = format!("gpu_servers:model=dgx_h100,boxes=4,outside={outside}");
    Fabric::parse(&spec).unwrap()
}

const OUTSIDES: [&str; 4] = [
    "circuit_switch/ports=2/rate=400Gb/s",
    "wdm_ring/wavelengths=4/rate=50GB/s",
    "wdm_ring/wavelengths=2/converters=full/multicast=drop_and_continue",
    "wdm_torus/dims=2x2/wavelengths=2/rate=50GB/s",
];

fn plan(kind: CollectiveKind, algorithm: &str, fabric: &Fabric, size: u64) -> Plan {
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let method = TimingModel::default();
    let spec = algorithm.parse().unwrap();
    let planned = planner::plan(&spec, fabric, collective, Bytes::new(size), &method).unwrap();
    planned.plan
}

const KINDS: [CollectiveKind; 8] = [
    CollectiveKind::AllGather,
    CollectiveKind::AllReduce,
    CollectiveKind::AllToAll,
    CollectiveKind::Broadcast,
    CollectiveKind::Gather,
    CollectiveKind::Reduce,
    CollectiveKind::ReduceScatter,
    CollectiveKind::Scatter,
];

#[test]
fn every_collective_is_planned_on_rails_of_light() {
    for outside in OUTSIDES {
        let fabric = light(outside);
        // Several blocks on one lightpath need a lightpath with a channel.
        let is_converted = outside.contains("converters");
        for kind in KINDS {
            if is_converted && kind == CollectiveKind::AllToAll {
                continue;
            }
            for root in [0, 13] {
                let collective = Collective::new(kind, 32).unwrap().with_root(root).unwrap();
                let (spec, size) = ("per_rail".parse().unwrap(), Bytes::new(1 << 20));
                let method = TimingModel::default();
                let planned = planner::plan(&spec, &fabric, collective, size, &method);
                let plan = planned.unwrap().plan;
                assert_eq!(verify(&plan), [], "{outside} {kind} {root}");
                let time = simulate::run(&plan, size, &method).unwrap().time;
                let bound = planner::time_bound(&fabric, &collective, size, &method).unwrap();
                let bound = bound.expect("the merged servers have one").time;
                assert!(bound <= time, "{outside} {kind}: {bound} {time}");
                let slots = bounds::slots_bound(&fabric, &collective, true).unwrap();
                assert!(slots.steps <= u64::from(plan.slots()), "{outside} {kind}");
            }
        }
    }
}

/// A rank that sends a sum only after it is complete: the root of a tree.
#[test]
fn sums_at_the_root_of_a_tree_contain_its_server() {
    let fabric = light("circuit_switch/ports=4/rate=100Gb/s");
    for rail in [
        "switch_configurations/algorithm=double_binary_tree",
        "static/topology=ring/on_links=tree_packing",
        "ring",
    ] {
        let algorithm = format!("per_rail:outside={rail}");
        let all_reduce = plan(CollectiveKind::AllReduce, &algorithm, &fabric, 1 << 20);
        assert_eq!(verify(&all_reduce), [], "{rail}");
    }
}

/// All_gather of b bytes on s servers over a switch with one port: s - 1 slots of b at the port's
/// rate. The last block of each rail is then sent to 7 GPUs, in one more slot.
#[test]
fn an_all_gather_takes_the_time_of_its_rails_and_of_the_last_packets() {
    let fabric = light("circuit_switch/rate=400Gb/s/reconfiguration=10us");
    let plan = plan(
        CollectiveKind::AllGather,
        "per_rail:outside=ring",
        &fabric,
        9_000_000,
    );
    assert_eq!(verify(&plan), []);
    assert_eq!(plan.slots(), 4);
    let outcome = simulate::run(&plan, Bytes::new(9_000_000), &TimingModel::default()).unwrap();
    let on_rail = 3 * 9_000_000 * 20;
    let packets = 800_000 + 7 * 9_000_000 * 8 * 10 / 36;
    assert_eq!(outcome.time, Time::from_ps(on_rail + packets));
}

/// A slot of packets is not charged, a slot with light is.
#[test]
fn packets_need_no_reconfiguration() {
    let fabric = light("wdm_ring/wavelengths=4/rate=400Gb/s/reconfiguration=25us");
    let plan = plan(CollectiveKind::AllGather, "rails", &fabric, 4096);
    let lit = (0..plan.slots()).filter(|slot| {
        let mut lightpaths = plan.lightpaths();
        lightpaths
            .any(|one| one.slot == *slot && one.transfer.source % 8 == one.transfer.destination % 8)
    });
    let (lit, slots) = (lit.count() as u64, u64::from(plan.slots()));
    assert!(lit < slots, "the last slot has packets only");
    let time = |policy| {
        let method = TimingModel {
            policy: Some(policy),
            ..TimingModel::default()
        };
        simulate::run(&plan, Bytes::new(4096), &method)
            .unwrap()
            .time
            .ps()
    };
    assert_eq!(
        time(Policy::EveryStep) - time(Policy::Free),
        lit * 25_000_000
    );
}

#[test]
fn packets_stay_in_their_server_and_light_on_its_rail() {
    for outside in OUTSIDES {
        let fabric = light(outside);
        let valid = plan(CollectiveKind::AllGather, "per_rail", &fabric, 1 << 20);
        assert_eq!(verify(&valid), [], "{outside}");
        let packet = fabric.light().unwrap().packet().unwrap();
        let kinds = |plan: &Plan| verify(plan).iter().map(|one| one.kind).collect::<Vec<_>>();
        for index in (0..valid.len()).step_by(7) {
            let mut wrong = valid.clone();
            let is_packet = valid.light[index] == packet;
            let other = (0..valid.len()).find(|&other| (valid.light[other] == packet) != is_packet);
            wrong.light[index] = valid.light[other.unwrap()];
            let found = kinds(&wrong);
            // Light between two rails, a packet between two servers, or light without a route.
            let expected = [ViolationKind::Path, ViolationKind::Route];
            assert!(
                found.iter().any(|kind| expected.contains(kind)),
                "{outside} {index} {found:?}"
            );
        }
    }
}

/// The light of a rail obeys the rules of the outside: two lightpaths of one rail collide where
/// those of two rails do not.
#[test]
fn light_of_one_rail_collides_as_on_the_outside() {
    let fabric = light("wdm_ring/wavelengths=4");
    let valid = plan(CollectiveKind::AllGather, "rails", &fabric, 1 << 20);
    assert_eq!(verify(&valid), []);
    let packet = fabric.light().unwrap().packet().unwrap();
    let lit: Vec<usize> = (0..valid.len())
        .filter(|&index| valid.light[index] != packet)
        .collect();
    let mut rejected = 0;
    for pair in lit.windows(2) {
        let [one, other] = [pair[0], pair[1]].map(|index| valid.lightpath(index));
        let shares = one.transfer.source == other.transfer.source && one.slot == other.slot;
        if !shares || valid.light[pair[0]] == valid.light[pair[1]] {
            continue;
        }
        let mut wrong = valid.clone();
        wrong.light[pair[1]] = valid.light[pair[0]];
        rejected += usize::from(!verify(&wrong).is_empty());
        assert_eq!(
            verify(&wrong).first().map(|one| one.kind),
            Some(ViolationKind::Collision)
        );
    }
    assert!(rejected > 8, "{rejected}");
}

#[test]
fn groups_of_ranks_have_a_server_a_rail_or_whole_servers() {
    let fabric = light("wdm_ring/wavelengths=4");
    let part = |members: &[u32]| fabric.part(members).map(|part| part.to_string());
    let server: Vec<u32> = (8..16).collect();
    let own = part(&server).unwrap();
    assert!(
        own.starts_with("gpu_servers:model=dgx_h100,boxes=1"),
        "{own}"
    );
    assert!(own.contains("in_network=none,library=none"), "{own}");
    assert!(part(&[8, 9]).unwrap().contains("members=0+1"));
    let rail = Fabric::parse("wdm_ring:ranks=4,wavelengths=4").unwrap();
    assert_eq!(part(&[3, 11, 19, 27]).unwrap(), rail.to_string());
    let two: Vec<u32> = (0..16).collect();
    assert!(part(&two).unwrap().contains("boxes=2"));
    assert!(
        part(&[0, 9])
            .unwrap_err()
            .to_string()
            .contains("whole servers")
    );
}

/// Links between servers: the route of a rail is that of the outside, after a hop to the rail.
#[test]
fn links_join_servers_as_on_the_outside() {
    let outside = Fabric::parse("torus:dims=4x2,rate=50GB/s,latency=1us").unwrap();
    let spec = "gpu_servers:model=dgx_h100,boxes=8,outside=torus/dims=4x2/rate=50GB/s/latency=1us";
    let fabric = Fabric::parse(spec).unwrap();
    let (network, one) = (fabric.network().unwrap(), outside.network().unwrap());
    for (from, to) in (0..8).flat_map(|from| (0..8).map(move |to| (from, to))) {
        if from == to {
            continue;
        }
        let (mut expected, mut route) = (Vec::new(), Vec::new());
        one.route(from, to, &mut expected);
        network.route(8 * from + 3, 8 * to + 3, &mut route);
        assert_eq!(route.len(), expected.len() + 2, "{from} {to}");
        let mut over_rail = Vec::new();
        network.route(8 * from + 1, 8 * to + 3, &mut over_rail);
        assert_eq!(over_rail.len(), route.len() + 2);
        assert_eq!(over_rail[2..], route);
        let mut at = 8 * from + 1;
        for link in over_rail {
            let (start, end) = network.ends(link).unwrap();
            assert_eq!(start, at);
            at = end;
        }
        assert_eq!(at, 8 * to + 3);
    }
    let rail: Vec<u32> = (0..8).map(|server| 8 * server + 5).collect();
    assert_eq!(fabric.part(&rail).unwrap(), outside);
    for algorithm in ["rails", "per_rail", "per_rail:outside=tree_packing"] {
        let all_reduce = plan(CollectiveKind::AllReduce, algorithm, &fabric, 1 << 20);
        assert_eq!(verify(&all_reduce), [], "{algorithm}");
    }
    for kind in KINDS {
        assert_eq!(
            verify(&plan(kind, "per_rail", &fabric, 1 << 20)),
            [],
            "{kind}"
        );
    }
}

#[test]
fn wrong_outsides_are_refused() {
    let cases = [
        (
            "outside=wdm_ring/wavelengths=4/ranks=5",
            "joins 5 ranks, not 4 servers",
        ),
        ("outside=passive_star/wavelengths=8", "use a wdm_ring"),
        (
            "outside=circuit_switch/packet_rate=1Gb/s",
            "a packet network of its own",
        ),
        (
            "outside=wdm_ring/wavelengths=4,in_network=reduce",
            "only forward",
        ),
        (
            "outside=wdm_ring/wavelengths=4,network_latency=1us",
            "latencies of its own",
        ),
        (
            "outside=wdm_ring/wavelengths=4,members=0-7",
            "state it for the outside",
        ),
        ("layout=flat", "needs outside"),
        ("outside", "write / in place of"),
        ("outside=wdm_ring:wavelengths=4", "write / in place of"),
    ];
    for (options, expected) in cases {
        let spec = format!("gpu_servers:model=dgx_h100,boxes=4,{options}");
        let error = Fabric::parse(&spec).unwrap_err().to_string();
        assert!(error.contains(expected), "{options}: {error}");
    }
    for outside in OUTSIDES {
        let fabric = light(outside);
        assert_eq!(
            Fabric::parse(&fabric.to_string()).unwrap(),
            fabric,
            "{fabric}"
        );
    }
}

/// Blocks of an all_to_all differ by a byte. A slow fibre may carry the smaller ones only.
#[test]
fn a_bound_of_merged_servers_counts_the_smallest_blocks() {
    let outside = "wdm_line/wavelengths=1/rate=100Gb/s/degraded=1>0@1Mb/s/reconfiguration=0s";
    let spec = format!("gpu_servers:model=dgx_h100,boxes=3,outside={outside}");
    let fabric = Fabric::parse(&spec).unwrap();
    let collective = Collective::new(CollectiveKind::AllToAll, 24).unwrap();
    let method = TimingModel {
        policy: Some(Policy::Free),
        ..TimingModel::default()
    };
    for size in [1, 2, 25, 49, 24_000].map(Bytes::new) {
        let planned = planner::plan(
            &"per_rail".parse().unwrap(),
            &fabric,
            collective,
            size,
            &method,
        );
        let time = simulate::run(&planned.unwrap().plan, size, &method)
            .unwrap()
            .time;
        let bound = planner::time_bound(&fabric, &collective, size, &method).unwrap();
        assert!(bound.is_none_or(|bound| bound.time <= time), "{size}");
    }
}
