//! Lower bounds on times over electrical links, and plans that meet them.

use opticoll::algorithm;
use opticoll::bound::electrical as electrical_bound;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::simulate::{self, Method};
use opticoll::units::{Bytes, Time};

use super::{FABRICS, proved};

/// Whether a time is at least another, within the rounding of rates that are no whole numbers.
fn at_least(time: Time, least: Time) -> bool {
    time.seconds() >= least.seconds() * (1.0 - 1e-9)
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
            for record in algorithm::records_for(&fabric) {
                let lit = matches!(record.name, "optree" | "one_stage" | "wrht");
                if lit || (record.accepts)(fabric.ranks()).is_err() {
                    continue;
                }
                let plan = proved(record.collective, record.name, &fabric);
                for size in [1, 1000, 1 << 20] {
                    let size = Bytes::new(size);
                    let collective = Collective::new(record.collective, fabric.ranks()).unwrap();
                    let bound = electrical_bound::best(network, &collective, size).unwrap();
                    assert_eq!(bound.is_none(), options == "sharing=per_flow");
                    let time = simulate::run(&plan, size, &Method::default()).unwrap().time;
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
        let time = simulate::run(&plan, size, &Method::default()).unwrap().time;
        assert!(at_least(least, time), "{kind}: {time} > {least}");
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
        (CollectiveKind::Barrier, 0, "rounds", 2000.0),
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

/// Two ranks and a half-duplex cable: what either sends takes the cable from the other.
#[test]
fn bounds_count_the_cables_of_each_rank_each_way() {
    for (fabric, milliseconds) in [
        ("crossbar:ranks=2,rate=8Gb/s", 1.0),
        ("crossbar:ranks=2,rate=8Gb/s,duplex=half", 1.0),
        ("crossbar:ranks=2,rate=8Gb/s,latency=3ms", 7.0),
        ("fully_connected:ranks=5,rate=8Gb/s,latency=3ms", 4.0),
        ("electrical_ring:ranks=3,rate=8Gb/s", 1.0),
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

/// Closed forms of what crosses a cut, in blocks of 1 MB over cables of 1 MB per ms; and plans that
/// take no longer.
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
            "custom:ranks=8,switches=2,links=0-8+1-8+2-9+3-9+4-9+5-9+6-9+7-9+8-9@2Gb/s+0-1,rate=8Gb/s",
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
            let time = simulate::run(&plan, size, &Method::default()).unwrap().time;
            assert!(
                at_least(bound.time, time),
                "{fabric}: {time} > {}",
                bound.time
            );
        }
    }
}
