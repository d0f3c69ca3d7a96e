//! Lower bounds on times over electrical links against formulas by hand, and plans that meet the
//! bounds.

use opticoll::algorithms;
use opticoll::bounds::electrical as electrical_bound;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::plan::Plan;
use opticoll::schedule::{Action, Schedule, Transfer};
use opticoll::simulate;
use opticoll::simulate::{TimingModel, fluid};
use opticoll::units::{Bytes, Time};
use opticoll::verify::verify;

use super::{FABRICS, proved};

mod random;

/// Returns whether a time is at least another time, within the rounding of the flow simulator.
fn at_least(time: Time, least: Time) -> bool {
    time.seconds() >= least.seconds() * (1.0 - fluid::ROUNDING)
}

#[test]
fn no_plan_is_faster_than_the_bound_and_some_meet_it() {
    let smaller = [
        "crossbar:ranks=2",
        "crossbar:ranks=3",
        "fully_connected:ranks=4",
        "electrical_ring:ranks=5",
    ];
    for fabric in FABRICS.iter().chain(&smaller) {
        for options in [
            "latency=0s",
            "latency=1us",
            "duplex=half",
            "sharing=per_flow",
        ] {
            let fabric = Fabric::parse(&format!("{fabric},{options}")).unwrap();
            let network = fabric.network().unwrap();
            for record in algorithms::records_for(&fabric) {
                let lit = matches!(record.name, "one_stage" | "wrht");
                if lit || (record.accepts)(fabric.ranks()).is_err() {
                    continue;
                }
                let plan = proved(record.collective, record.name, &fabric);
                for size in [1, 1000, 1 << 20] {
                    let size = Bytes::new(size);
                    let collective = Collective::new(record.collective, fabric.ranks()).unwrap();
                    let bound = electrical_bound::best(network, &collective, size).unwrap();
                    assert_eq!(bound.is_none(), options == "sharing=per_flow");
                    let time = simulate::run(&plan, size, &TimingModel::default())
                        .unwrap()
                        .time;
                    let least = bound.map_or(Time::ZERO, |bound| bound.time);
                    assert!(at_least(time, least), "{}: {time} < {least}", record.name);
                }
            }
        }
    }
    // Theory: on a switch these are as fast as any plan can be.
    let fabric = Fabric::parse("crossbar:ranks=16,rate=8Gb/s").unwrap();
    for (kind, algorithm, milliseconds) in [
        (CollectiveKind::AllGather, "ring", 240.0),
        (CollectiveKind::AllReduce, "ring", 30.0),
        (CollectiveKind::AllReduce, "halving_doubling", 30.0),
        (CollectiveKind::ReduceScatter, "recursive_halving", 15.0),
        (CollectiveKind::AllToAll, "pairwise", 15.0),
        (CollectiveKind::Gather, "binomial", 240.0),
        (CollectiveKind::Scatter, "linear", 240.0),
    ] {
        let (size, collective) = (Bytes::new(16_000_000), Collective::new(kind, 16).unwrap());
        let bound = electrical_bound::best(fabric.network().unwrap(), &collective, size);
        let least = bound.unwrap().unwrap().time;
        assert_eq!(
            (least.seconds() * 1e9).round(),
            milliseconds * 1e6,
            "{kind}"
        );
        let plan = proved(kind, algorithm, &fabric);
        let time = simulate::run(&plan, size, &TimingModel::default())
            .unwrap()
            .time;
        assert!(at_least(least, time), "{kind}: {time} > {least}");
    }
}

/// A message waits 1 us within a rack of 16 ranks, and 2 us between racks: 240 copies of a KiB from
/// the root take 19 us, and a forwarded message waits 3 us.
#[test]
fn what_is_forwarded_takes_the_latencies_of_two_messages() {
    let fabric = Fabric::parse("fat_tree:down=16x16,up=1x8,latency=500ns,rate=100Gb/s").unwrap();
    for kind in [
        CollectiveKind::Broadcast,
        CollectiveKind::Reduce,
        CollectiveKind::AllReduce,
    ] {
        let collective = Collective::new(kind, 256).unwrap();
        let network = fabric.network().unwrap();
        let bound = electrical_bound::best(network, &collective, Bytes::new(1024)).unwrap();
        let bound = bound.unwrap();
        assert_eq!(bound.name, "relays", "{kind}");
        assert_eq!(bound.time, Time::from_ps(3_000_000), "{kind}");
    }
}

/// Two servers of 8 GPUs: 2 us and a MiB at 400 GB/s between them, and a microsecond within each
/// for 7 of 8 parts.
#[test]
fn what_is_summed_up_before_it_crosses_and_spread_after_it_waits_on_both_sides() {
    let fabric = Fabric::parse("dgx_h100:boxes=2,latency=500ns,in_network=none").unwrap();
    let collective = Collective::new(CollectiveKind::AllReduce, 16).unwrap();
    let network = fabric.network().unwrap();
    let bound = electrical_bound::best(network, &collective, Bytes::new(1 << 20)).unwrap();
    let bound = bound.unwrap();
    assert_eq!(bound.name, "cut");
    assert_eq!(bound.time, Time::from_ps(2_000_000 + 2_621_440 + 1_750_000));
}

/// Two servers of 8 GPUs, 1 us apart within a server and 2 us over the network, of which each GPU
/// has 25 GB/s. The 8 links between the servers carry the root's bytes after 2 us if they are its
/// own, after 3 us if they are another GPU's: 8 T - 2 us - 7 x 3 us is a MiB at 25 GB/s. So they do
/// backwards.
#[test]
fn what_comes_late_to_a_link_has_less_time_on_it() {
    let fabric = Fabric::parse("dgx_a100:boxes=2,latency=500ns").unwrap();
    let network = fabric.network().unwrap();
    for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce] {
        let collective = Collective::new(kind, 16).unwrap();
        let bound = electrical_bound::best(network, &collective, Bytes::new(1 << 20)).unwrap();
        let bound = bound.unwrap();
        assert_eq!(bound.name, "quickest_flow");
        assert_eq!(bound.time, Time::from_ps((41_943_040 + 23_000_000) / 8));
    }
}

/// On a switch of N = 16 ranks, where a message waits 2 us and a rank moves 1 byte per ns.
#[test]
fn rounds_are_paid_for_with_latencies_or_with_bytes() {
    let fabric = Fabric::parse("crossbar:ranks=16,rate=8Gb/s,latency=1us").unwrap();
    let bound = |kind, bytes| {
        let collective = Collective::new(kind, 16).unwrap();
        let bound = electrical_bound::best(fabric.network().unwrap(), &collective, bytes);
        bound.unwrap().unwrap()
    };
    for (kind, bytes, name, nanoseconds) in [
        // One round: 15 messages from (or to) the root.
        (CollectiveKind::Broadcast, 100, "rounds", 3500.0),
        (CollectiveKind::Reduce, 100, "rounds", 3500.0),
        // Two: the root alone sends for 2000 ns, then all 15 others take in at once.
        (
            CollectiveKind::Broadcast,
            2000,
            "rounds",
            4000.0 + 28_000.0 / 15.0,
        ),
        (
            CollectiveKind::Reduce,
            2000,
            "rounds",
            4000.0 + 28_000.0 / 15.0,
        ),
        // One: 16 * 15 messages over 16 cables.
        (CollectiveKind::AllReduce, 100, "rounds", 3500.0),
        // Two: 4000 + 1000 - 2000 / 15.
        (
            CollectiveKind::AllReduce,
            1000,
            "rounds",
            5000.0 - 2000.0 / 15.0,
        ),
        // 30 messages of a vector over 16 cables.
        (CollectiveKind::AllReduce, 16_000, "bandwidth", 32_000.0),
        (CollectiveKind::AllGather, 1000, "bandwidth", 17_000.0),
        (CollectiveKind::Barrier, 0, "latency", 2000.0),
    ] {
        let bound = bound(kind, Bytes::new(bytes));
        assert_eq!(bound.name, name, "{kind} of {bytes} bytes");
        let difference = bound.time.seconds() * 1e9 - nanoseconds;
        assert!(
            difference.abs() < 0.01,
            "{kind} of {bytes} bytes: {}",
            bound.time
        );
    }
}

/// Two ranks and a half-duplex cable: while one rank sends, the other rank cannot.
#[test]
fn bounds_count_the_cables_of_each_rank_each_way() {
    for (fabric, milliseconds) in [
        ("crossbar:ranks=2,rate=8Gb/s", 1.0),
        ("crossbar:ranks=2,rate=8Gb/s,duplex=half", 2.0),
        ("crossbar:ranks=2,rate=8Gb/s,latency=3ms", 7.0),
        ("fully_connected:ranks=5,rate=8Gb/s,latency=3ms", 4.0),
        // Four blocks in and one out over four cables.
        ("fully_connected:ranks=5,rate=8Gb/s,duplex=half", 1.25),
        ("electrical_ring:ranks=3,rate=8Gb/s", 1.0),
        ("electrical_ring:ranks=3,rate=8Gb/s,duplex=half", 1.5),
        ("fully_connected:ranks=5,rate=8Gb/s", 1.0),
        ("custom:ranks=2,links=0>1@8Gb/s+1>0@4Gb/s", 2.0),
    ] {
        let fabric = Fabric::parse(fabric).unwrap();
        let collective = Collective::new(CollectiveKind::AllGather, fabric.ranks()).unwrap();
        let size = Bytes::new(1_000_000);
        let bound = electrical_bound::best(fabric.network().unwrap(), &collective, size);
        let time = bound.unwrap().unwrap().time;
        assert_eq!(time.seconds() * 1e3, milliseconds, "{fabric}");
    }
}

/// Closed forms of the bytes that cross a cut, in blocks of 1 MB over cables of 1 MB per ms, and
/// plans that are no slower.
#[test]
fn cuts_bound_what_single_ranks_do_not() {
    for (fabric, kind, algorithm, milliseconds) in [
        // Four leaves of 4 ranks, 2 cables above each: 4 * 12 blocks must leave a leaf.
        (
            "fat_tree:down=4x4,up=1x2,rate=8Gb/s",
            CollectiveKind::AllToAll,
            "direct",
            24.0,
        ),
        // Runs of 7 and 8 ranks of a ring, 7 * 8 blocks each way over two cables.
        (
            "electrical_ring:ranks=15,rate=8Gb/s",
            CollectiveKind::AllToAll,
            "direct",
            28.0,
        ),
        // Halves of a mesh's longer side, whichever it is: 8 * 8 blocks over two cables.
        (
            "mesh:dims=2x8,rate=8Gb/s",
            CollectiveKind::AllToAll,
            "",
            32.0,
        ),
        (
            "mesh:dims=8x2,rate=8Gb/s",
            CollectiveKind::AllToAll,
            "",
            32.0,
        ),
        // The blocks of 6 ranks for the other two, over a cable of a quarter of the rate.
        (
            "custom:ranks=8,switches=2,links=0-8+1-8+2-9+3-9+4-9+5-9+6-9+7-9+8-9@2Gb/s+0-1,\
             rate=8Gb/s",
            CollectiveKind::AllGather,
            "",
            24.0,
        ),
        // A vector of 8 blocks for each of two parts, over one cable.
        (
            "custom:ranks=8,switches=2,links=0-8+1-8+2-8+3-8+4-9+5-9+6-9+7-9+8-9@4Gb/s,rate=8Gb/s",
            CollectiveKind::AllReduce,
            "",
            16.0,
        ),
    ] {
        let fabric = Fabric::parse(fabric).unwrap();
        let collective = Collective::new(kind, fabric.ranks()).unwrap();
        let blocks = match kind {
            CollectiveKind::AllGather => 1,
            _ => u64::from(fabric.ranks()),
        };
        let size = Bytes::new(1_000_000 * blocks);
        let network = fabric.network().unwrap();
        let bound = electrical_bound::best(network, &collective, size).unwrap();
        let bound = bound.unwrap();
        assert_eq!(bound.name, "cut", "{kind} on {fabric}");
        assert_eq!(
            bound.time.seconds() * 1e3,
            milliseconds,
            "{kind} on {fabric}"
        );
        if !algorithm.is_empty() {
            let plan = proved(kind, algorithm, &fabric);
            let time = simulate::run(&plan, size, &TimingModel::default())
                .unwrap()
                .time;
            assert!(
                at_least(bound.time, time),
                "{fabric}: {time} > {}",
                bound.time
            );
        }
    }
}

/// Times counted by hand: the latencies of a shortest route, and the bytes from there over the last
/// cables.
#[test]
fn latencies_count_over_whole_ways() {
    use CollectiveKind::{
        AllGather, AllReduce, Barrier, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
    };
    // Five ranks in a row and a switch between the third and the fourth: 1, 1, 1 + 2, 1 us.
    let row = "custom:ranks=5,switches=1,links=0-1+1-2+2-5+5-3@2us+3-4,rate=8Gb/s,latency=1us";
    let dragonfly = "dragonfly:terminals_per_router=1,routers_per_group=2,global_per_router=1,\
                     groups=3,rate=8Gb/s,latency=0s,local_latency=2us,global_latency=10us";
    for (fabric, kind, root, bytes, name, nanoseconds) in [
        (row, Barrier, 0, 0, "latency", 6000.0),
        (row, Broadcast, 0, 0, "latency", 6000.0),
        (row, Broadcast, 0, 8000, "latency", 14_000.0),
        (row, Reduce, 4, 8000, "latency", 14_000.0),
        // Over one of two cables of rank 2 only; whichever way the vector comes, it takes 4 us.
        (row, Broadcast, 2, 0, "latency", 4000.0),
        (row, AllReduce, 0, 0, "latency", 6000.0),
        // Blocks at 1, 2, 5 and 6 us of an end; the last four take in 4 us after the nearest is
        // there.
        (row, Gather, 0, 10, "latency", 6010.0),
        (row, Gather, 0, 1000, "latency", 7000.0),
        (row, Gather, 0, 3000, "bandwidth", 13_000.0),
        (row, Scatter, 0, 1000, "latency", 7000.0),
        (row, AllGather, 0, 1000, "latency", 7000.0),
        (row, ReduceScatter, 0, 5000, "latency", 7000.0),
        // Ranks of other groups: from the one router through local, global and local cables.
        (dragonfly, Barrier, 0, 0, "latency", 14_000.0),
    ] {
        let fabric = Fabric::parse(fabric).unwrap();
        let collective = Collective::new(kind, fabric.ranks()).unwrap();
        let collective = collective.with_root(root).unwrap();
        let network = fabric.network().unwrap();
        let bound = electrical_bound::best(network, &collective, Bytes::new(bytes)).unwrap();
        let bound = bound.unwrap();
        let case = format!("{kind} of {bytes} B, root {root}, on {fabric}: {bound:?}");
        assert_eq!(bound.name, name, "{case}");
        assert_eq!(bound.time.seconds() * 1e9, nanoseconds, "{case}");
    }
}

/// A part of the vector leaves for the near rank while the rest waits for the latencies of the far
/// rank: bytes that leave a rank may move until the end, whatever their distance.
#[test]
fn latencies_of_what_leaves_a_rank_are_not_added_to_its_bytes() {
    let fabric = "custom:ranks=3,links=0-1@8Gb/s+1-2@80Gb/s,latency=10us";
    let fabric = Fabric::parse(fabric).unwrap();
    let reduce = Collective::new(CollectiveKind::Reduce, 3).unwrap();
    let reduce = reduce.with_root(2).unwrap().with_pieces(4).unwrap();
    let mut schedule = Schedule::new(reduce);
    let add = |chunk, source, destination| Transfer {
        action: Action::Reduce,
        ..Transfer::copy(chunk, source, destination)
    };
    schedule.begin_step();
    schedule.push(add(0, 0, 1));
    (1..4).for_each(|chunk| schedule.push(add(chunk, 0, 2)));
    schedule.begin_step();
    (0..4).for_each(|chunk| schedule.push(add(chunk, 1, 2)));
    let plan = Plan::without_light(&fabric, schedule, "by hand".into());
    assert_eq!(verify(&plan), []);
    let size = Bytes::new(40_000);
    let method = TimingModel::from_settings([("start", "sender")]).unwrap();
    let time = simulate::run(&plan, size, &method).unwrap().time;
    let bound = electrical_bound::best(fabric.network().unwrap(), &reduce, size);
    let bound = bound.unwrap().unwrap();
    // 40 us on the first cable, from 10 us on; the far rank is 20 us away.
    assert_eq!(
        (bound.name, bound.time.seconds() * 1e6),
        ("bandwidth", 50.0)
    );
    assert!(
        at_least(time, bound.time) && at_least(bound.time, time),
        "{time}"
    );
}

/// A rank whose router has slow cables, and nobody else, is bounded by them.
#[test]
fn a_rank_and_the_router_of_its_own_are_a_part() {
    let fabric = "dragonfly:terminals_per_router=1,routers_per_group=2,global_per_router=1,\
                  groups=3,\
                  rate=400Gb/s,local_rate=8Gb/s,global_rate=8Gb/s";
    let fabric = Fabric::parse(fabric).unwrap();
    let collective = Collective::new(CollectiveKind::AllGather, 6).unwrap();
    let bound = electrical_bound::best(
        fabric.network().unwrap(),
        &collective,
        Bytes::new(1_000_000),
    );
    let bound = bound.unwrap().unwrap();
    // Five blocks of 1 MB over a local and a global cable of 1 MB per ms; by its own cable, 0.1 ms.
    // A group of two takes in four blocks over two global cables.
    assert_eq!((bound.name, bound.time.seconds() * 1e3), ("cut", 2.5));
    let plan = proved(CollectiveKind::AllGather, "ring", &fabric);
    let time = simulate::run(&plan, Bytes::new(1_000_000), &TimingModel::default());
    assert!(at_least(time.unwrap().time, bound.time));
}

/// Each byte passes a cable at its source and a cable at its destination, and each cable serves
/// both directions.
#[test]
fn half_duplex_cables_carry_what_comes_and_what_goes() {
    for (kind, milliseconds, algorithm) in [
        // 2 (N - 1) vectors sent and as many received, over four cables.
        (CollectiveKind::AllReduce, 12.0, "ring"),
        // A part of each other vector in, and one to each.
        (CollectiveKind::AllToAll, 6.0, "pairwise"),
        (CollectiveKind::ReduceScatter, 4.0, ""),
    ] {
        let fabric = Fabric::parse("crossbar:ranks=4,rate=8Gb/s,duplex=half").unwrap();
        let collective = Collective::new(kind, 4).unwrap();
        let size = Bytes::new(4_000_000);
        let bound = electrical_bound::best(fabric.network().unwrap(), &collective, size);
        let least = bound.unwrap().unwrap().time;
        assert_eq!(least.seconds() * 1e3, milliseconds, "{kind}");
        if !algorithm.is_empty() {
            let plan = proved(kind, algorithm, &fabric);
            let time = simulate::run(&plan, size, &TimingModel::default())
                .unwrap()
                .time;
            assert!(at_least(least, time), "{kind}: {time} > {least}");
        }
    }
}

/// The root's place decides: a slow or a fast cable leads to it.
#[test]
fn bounds_of_rooted_collectives_are_those_of_the_roots_place() {
    let fabric = "custom:ranks=3,switches=1,links=0-3@100Gb/s+1-3@1Gb/s+2-3@1Gb/s";
    let fabric = Fabric::parse(fabric).unwrap();
    let settings = [
        ("simulator", "packet"),
        ("placement", "1-0-2"),
        ("router_delay", "0ns"),
    ];
    let method = TimingModel::from_settings(settings).unwrap();
    let spec = "direct".parse().unwrap();
    let gather = |root| {
        let gather = Collective::new(CollectiveKind::Gather, 3).unwrap();
        gather.with_root(root).unwrap()
    };
    let size = Bytes::new(1_000_000);
    let plan = opticoll::planner::plan(&spec, &fabric, gather(1), size, &method).unwrap();
    let time = simulate::run(&plan.plan, size, &method).unwrap().time;
    let at =
        electrical_bound::collective_as_placed(&gather(1), &method.packet.placement.terminals(3));
    let bound = electrical_bound::best(fabric.network().unwrap(), &at.unwrap(), size);
    let bound = bound.unwrap().unwrap().time;
    // One block over each cable of 1 Gb/s; and two over that of the root are faster.
    assert_eq!(bound.seconds() * 1e3, 8.0);
    assert!(
        time >= bound && time.seconds() < 1.001 * bound.seconds(),
        "{time}"
    );
}
