//! Closed forms met by plans: ASTRA-sim's analytical backend, whose formulas reproduce its runs to
//! the nanosecond, and both rules of how long a link is taken.
//!
//! ASTRA-sim rounds every hop down to whole nanoseconds and adds two costs that are no network: 10
//! ns per endpoint event and three accesses to local memory per reduction. Here plans are made,
//! verified and simulated as flows, and only these three things are put on top: the durations of
//! the steps are the simulator's. The times in the tables are those that ASTRA-sim printed, at 50
//! GiB/s and 500 ns per link.
//!
//! **Two rules.** ASTRA-sim takes a link for the time of sending s / B and lets the latency L pass
//! beside (messages behind one another: L + k s / B); TACOS takes it for L + s / B (k (L + s / B)).
//! As flows the first is what messages take that are sent at once and share the link, the second
//! what they take one after the other, each when the one before has arrived. Where messages are
//! pipelined over several links flows share and do not queue: there the first rule is a closed form
//! beside the plan.

use opticoll::collective::CollectiveKind;
use opticoll::collective::CollectiveKind::{AllGather, AllReduce, ReduceScatter};
use opticoll::fabric::Fabric;
use opticoll::simulate;
use opticoll::simulate::TimingModel;
use opticoll::units::{Bytes, Time};

use crate::electrical::proved;
use crate::rows;

const CABLES: &str = "rate=50GiB/s,latency=500ns";
const LATENCY_NS: f64 = 500.0;
const MIB: u64 = 1 << 20;

/// Nanoseconds to send bytes at 50 GiB/s.
fn sending_ns(bytes: u64) -> f64 {
    bytes as f64 / (50.0 * (1u64 << 30) as f64) * 1e9
}

/// The moment at which a switch passes on a message of s bytes.
#[derive(Clone, Copy)]
enum Switch {
    /// The message is still arriving: 2 L + s / B, as for flows (ASTRA-sim without congestion).
    CutThrough,
    /// The message has arrived: 2 (L + s / B), each hop rounded down (ASTRA-sim with congestion).
    StoreAndForward,
    /// The network has no switch: L + s / B.
    None,
}

/// Durations of the steps of a plan that is proved, in nanoseconds.
fn steps_ns(kind: CollectiveKind, algorithm: &str, fabric: &str, size: u64) -> Vec<f64> {
    let fabric = Fabric::parse(&format!("{fabric},{CABLES}")).unwrap();
    let plan = proved(kind, algorithm, &fabric);
    let outcome = simulate::run(&plan, Bytes::new(size), &TimingModel::default()).unwrap();
    let slots = &outcome.slots;
    assert_eq!(slots.end.last(), Some(&outcome.time));
    // One step begins when the other has ended.
    assert_eq!(slots.start[0], Time::ZERO);
    assert_eq!(slots.start[1..], slots.end[..slots.end.len() - 1]);
    let times = slots.start.iter().zip(&slots.end);
    times
        .map(|(start, end)| (end.ps() - start.ps()) as f64 / 1000.0)
        .collect()
}

/// Returns the duration of a plan's steps in whole nanoseconds, each hop rounded down as ASTRA-sim
/// rounds.
fn network_ns(steps: &[f64], switch: Switch) -> u64 {
    // A step is a whole number of picoseconds, rounded: 805.176 for 805.17578125.
    let hop = |step: &f64| match switch {
        Switch::None | Switch::CutThrough => step.floor() as u64,
        Switch::StoreAndForward => 2 * (step - LATENCY_NS).floor() as u64,
    };
    steps.iter().map(hop).sum()
}

/// Returns the time of one write and two reads of local memory at 1600 GB/s.
fn reduction_ns(bytes: u64) -> u64 {
    3 * (bytes as f64 / 1600e9 * 1e9).floor() as u64
}

/// Returns the time that ASTRA-sim adds to the time of the network.
fn on_top_ns(kind: CollectiveKind, algorithm: &str, ranks: u64, size: u64) -> u64 {
    let depth = u64::from(ranks.ilog2());
    let part = size / ranks;
    match (kind, algorithm) {
        (AllGather, "ring") => 10 * ranks,
        (AllGather, "recursive_doubling") => 10 * (depth + 1),
        (ReduceScatter, _) => (ranks - 1) * reduction_ns(part) + 10 * ranks,
        (AllReduce, "ring") => (ranks - 1) * reduction_ns(part) + 10 * (2 * (ranks - 1) + 1),
        // The first and largest of the reductions is never charged.
        (AllReduce, _) => {
            let reductions = (2..=depth).map(|step| reduction_ns(size >> step));
            reductions.sum::<u64>() + 10 * (2 * depth + 1)
        }
        _ => 20,
    }
}

/// A collective, its algorithm, fabric, switch, ranks and size, and the nanoseconds printed.
const PRINTED: &str = r"
all_gather | ring | electrical_ring | no switch | 64 | 1MiB | 1262593
all_gather | ring | electrical_ring | no switch | 256 | 1MiB | 5110465
all_gather | ring | electrical_ring | no switch | 64 | 100MiB | 123079015
all_gather | ring | electrical_ring | no switch | 256 | 100MiB | 498176935
reduce_scatter | ring | electrical_ring | no switch | 64 | 1MiB | 53245
all_reduce | ring | electrical_ring | no switch | 64 | 1MiB | 104590
all_reduce | ring | electrical_ring | no switch | 256 | 1MiB | 300400
all_reduce | ring | electrical_ring | no switch | 64 | 100MiB | 4102948
all_reduce | ring | electrical_ring | no switch | 256 | 100MiB | 4346740
all_reduce | ring | crossbar | store_and_forward | 64 | 1MiB | 206020
all_reduce | halving_doubling | crossbar | cut_through | 64 | 1MiB | 51518
all_reduce | halving_doubling | crossbar | store_and_forward | 64 | 1MiB | 89964
all_reduce | halving_doubling | crossbar | cut_through | 256 | 1MiB | 56035
all_reduce | halving_doubling | crossbar | store_and_forward | 256 | 1MiB | 94937
all_reduce | halving_doubling | crossbar | cut_through | 1024 | 1MiB | 60192
all_reduce | halving_doubling | crossbar | store_and_forward | 1024 | 1MiB | 99208
all_reduce | halving_doubling | crossbar | cut_through | 64 | 100MiB | 3952572
all_reduce | halving_doubling | crossbar | store_and_forward | 64 | 100MiB | 7797782
all_reduce | halving_doubling | crossbar | cut_through | 256 | 100MiB | 4004690
all_reduce | halving_doubling | crossbar | store_and_forward | 256 | 100MiB | 7895674
all_reduce | halving_doubling | crossbar | cut_through | 1024 | 100MiB | 4020748
all_reduce | halving_doubling | crossbar | store_and_forward | 1024 | 100MiB | 7923174
all_gather | recursive_doubling | crossbar | cut_through | 64 | 1MiB | 1236538
all_gather | recursive_doubling | crossbar | store_and_forward | 64 | 1MiB | 2467006
all_gather | recursive_doubling | crossbar | cut_through | 256 | 1MiB | 4988558
all_gather | recursive_doubling | crossbar | store_and_forward | 256 | 1MiB | 9969026
all_to_all | direct | fully_connected | no switch | 64 | 1MiB | 825
all_to_all | direct | fully_connected | no switch | 256 | 1MiB | 596
";

#[test]
fn plans_take_what_astra_sim_printed() {
    for [kind, algorithm, family, switch, ranks, size, printed] in rows(PRINTED) {
        let switch = match switch {
            "cut_through" => Switch::CutThrough,
            "store_and_forward" => Switch::StoreAndForward,
            _ => Switch::None,
        };
        let (kind, ranks): (_, u64) = (kind.parse().unwrap(), ranks.parse().unwrap());
        let size = size.parse::<Bytes>().unwrap().get();
        let steps = steps_ns(kind, algorithm, &format!("{family}:ranks={ranks}"), size);
        let got = network_ns(&steps, switch) + on_top_ns(kind, algorithm, ranks, size);
        assert_eq!(
            got.to_string(),
            printed,
            "{kind} by {algorithm} on {ranks} ranks, {size}"
        );
    }
}

/// ASTRA-sim run with schedules written by hand, on a ring of 16 and blocks of 1 MiB: nothing on
/// top.
#[test]
fn rings_one_and_two_ways_take_what_schedules_by_hand_took() {
    for (algorithm, printed) in [("ring", 300_465), ("ring_bidirectional", 160_248)] {
        let steps = steps_ns(AllGather, algorithm, "electrical_ring:ranks=16", MIB);
        assert_eq!(network_ns(&steps, Switch::None), printed, "{algorithm}");
    }
}

fn time_ns(kind: CollectiveKind, algorithm: &str, fabric: &str, size: u64) -> f64 {
    let fabric = Fabric::parse(&format!("{fabric},{CABLES}")).unwrap();
    let plan = proved(kind, algorithm, &fabric);
    let outcome = simulate::run(&plan, Bytes::new(size), &TimingModel::default()).unwrap();
    outcome.time.ps() as f64 / 1000.0
}

fn near(got: f64, expected: f64, what: &str) {
    // Every step is rounded to whole picoseconds.
    assert!(
        (got - expected).abs() <= 0.1,
        "{what}: {got}, not {expected}"
    );
}

/// Blocks of all others over the one cable to the switch: latency once under ASTRA-sim's rule, with
/// every block under that of TACOS.
#[test]
fn both_rules_of_link_occupancy_are_ways_to_send() {
    for ranks in [4u64, 16, 33] {
        for size in [1000, MIB] {
            let fabric = format!("crossbar:ranks={ranks}");
            let blocks = (ranks - 1) as f64;
            let sent = sending_ns(size);
            let while_sending = 2.0 * LATENCY_NS + blocks * sent;
            let whole_hop = blocks * (2.0 * LATENCY_NS + sent);
            let at_once = time_ns(AllGather, "direct:order=at_once", &fabric, size);
            let one_by_one = time_ns(AllGather, "direct:order=shift", &fabric, size);
            near(at_once, while_sending, "at once");
            near(one_by_one, whole_hop, "one by one");
            near(
                one_by_one - at_once,
                (blocks - 1.0) * 2.0 * LATENCY_NS,
                "apart",
            );
        }
    }
}

/// Both rules give the same times if no link has two messages at the same time.
#[test]
fn rules_agree_where_every_message_waits_for_the_one_before() {
    for ranks in [4u64, 16] {
        let expected = (ranks - 1) as f64 * (LATENCY_NS + sending_ns(MIB));
        let fabric = format!("electrical_ring:ranks={ranks}");
        near(time_ns(AllGather, "ring", &fabric, MIB), expected, "ring");
    }
}

/// A chain of k segments over N - 1 links. A plan's next segment leaves when the one before has
/// arrived, TACOS's rule: (N - 2 + k) (L + s / B). ASTRA-sim's, (N - 1) (L + s / B) + (k - 1) s /
/// B, lets a segment queue behind another on a link; flows would share it, so it is a closed form
/// only.
#[test]
fn a_pipelined_chain_takes_the_whole_hop_for_each_segment() {
    for (ranks, segments) in [(2u64, 1u64), (2, 8), (5, 4), (9, 16)] {
        let size = segments * MIB;
        let line = format!("mesh:dims={ranks}");
        let algorithm = format!("chain:segments={segments}");
        let got = time_ns(CollectiveKind::Broadcast, &algorithm, &line, size);
        let hop = LATENCY_NS + sending_ns(MIB);
        let whole_hop = (ranks - 2 + segments) as f64 * hop;
        let while_sending = (ranks - 1) as f64 * hop + (segments - 1) as f64 * sending_ns(MIB);
        near(got, whole_hop, "chain");
        near(
            got - while_sending,
            (segments - 1) as f64 * LATENCY_NS,
            "apart",
        );
    }
}
