//! Bounds for switch grids: values against theory, all plans, and the least time of all plans of
//! four ranks.

use crate::auto::auto_is_not_below_its_bound;
use crate::reconfiguration_cost;
use opticoll::family::wss_grid::WssGrid;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use opticoll::algorithms::records_for;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::simulate;
use opticoll::simulate::Policy;
use opticoll::units::{Bytes, Time};
use proptest::prelude::*;

use super::proved;

pub(super) fn bound(
    fabric: &str,
    kind: CollectiveKind,
    bytes: u64,
    policy: Policy,
) -> (u64, &'static str) {
    let fabric = Fabric::parse(fabric).unwrap();
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let grid = fabric.downcast::<WssGrid>().unwrap();
    let bound = opticoll::bounds::wss_grid::best(
        grid,
        &collective,
        Bytes::new(bytes),
        reconfiguration_cost(grid, policy),
    )
    .unwrap();
    (bound.time.ps(), bound.name)
}

#[test]
fn bounds_are_those_of_theory() {
    use CollectiveKind::{AllGather, AllReduce, AllToAll, Barrier, Broadcast, Gather};
    // A byte takes 1000 ps; c = 2 * 100 + 10 + 40 = 250 ns, L = 30 ns.
    let four =
        "wss_grid:rows=4,columns=4,rate=8Gb/s,control=100ns,tuning=10ns,lock=40ns,latency=30ns";
    let (fresh, latency) = (250_000, 30_000);
    let one = fresh + latency;
    for (options, kind, bytes, expected, name) in [
        // 2 (15 / 16) of the vector over two transceivers, and one over a single one.
        ("", AllReduce, 16_000, one + 15_000_000, "bandwidth"),
        (
            ",dead_ports=row0.0",
            AllReduce,
            16_000,
            one + 16_000_000,
            "bandwidth",
        ),
        ("", AllGather, 1000, one + 15 * 500_000, "bandwidth"),
        // A rank with one transceiver takes in everything by it.
        (
            ",dead_ports=column0.0",
            AllGather,
            1000,
            one + 15_000_000,
            "bandwidth",
        ),
        // Four ranks of a row send to twelve others by the one transceiver across that works.
        (
            ",dead_ports=column0.0+column1.0+column2.0",
            AllToAll,
            16_000,
            one + 48_000_000,
            "cut",
        ),
        (
            ",dead_ports=column0.0+column1.0+column2.0",
            AllReduce,
            16_000,
            // 30 vectors over 29 transceivers are more than one vector over one.
            one + 2 * 15 * 16_000_000 / 29,
            "bandwidth",
        ),
        (
            ",nodes=0-1+4-5,dead_ports=column0.0",
            Gather,
            1000,
            one + 3_000_000,
            "bandwidth",
        ),
        ("", Gather, 1000, one + 15 * 500_000, "bandwidth"),
        // Of 15 partners 6 are one hop away and 9 two: 24 hops of a thousand bytes by two
        // transceivers; four ranks of a row send to twelve others by four transceivers.
        ("", AllToAll, 16_000, one + 12_000_000, "bandwidth"),
        // The first two are told after c + L, and after 2 c + L two more, and by 2 c + 2 L four
        // more by those: nine. By 3 c + 2 L, 4 + 2 * 2 + 2 + ... are.
        ("", Barrier, 0, fresh + told(16, latency, fresh), "rounds"),
        ("", Broadcast, 0, told(16, one, fresh), "rounds"),
        (
            "",
            Broadcast,
            1000,
            told(16, one, fresh) + 500_000,
            "rounds",
        ),
    ] {
        let fabric = format!("{four}{options}");
        assert_eq!(
            bound(&fabric, kind, bytes, Policy::TwoTier),
            (expected, name),
            "{options} {kind}"
        );
    }
    // Slot by slot ceil(log3 16) = 3 slots, charged or not, are too few for 2 (15 / 16) of the
    // vector: cut after the first of them, a rank that receives twice and then sends twice has 3
    // contributions, on which 7 depend, one that does neither has 1 of 1. 3 of 4 ranks must be of
    // the first kind for a mean of 16: 3 transfers for each rank. Four slots are enough. Bounds are
    // rounded down.
    let slots = |policy| bound(four, AllReduce, 16_000, policy).0;
    assert_eq!(slots(Policy::EveryStep), 4 * one + 15_000_000 - 1);
    assert_eq!(slots(Policy::Free), 4 * latency + 15_000_000 - 1);
    // In one row every rank has one partner at a time.
    let row = Fabric::parse("wss_grid:rows=1,columns=5").unwrap();
    let collective = Collective::new(Broadcast, 5).unwrap();
    assert_eq!(
        opticoll::bounds::wss_grid::slots(row.downcast::<WssGrid>().unwrap(), &collective).steps,
        3
    );
}

/// Returns the time at which `ranks` ranks are told, where each rank tells two others `first` after
/// it was told and two more every `next` later. The function counts, time by time, the ranks that
/// can have been told.
fn told(ranks: u64, first: u64, next: u64) -> u64 {
    fn count(time: i64, first: i64, next: i64) -> u64 {
        let tellings = (0..)
            .map(|again| time - first - again * next)
            .take_while(|left| *left >= 0);
        1 + tellings
            .map(|left| 2 * count(left, first, next))
            .sum::<u64>()
    }
    let step = 10_000;
    let times = (0..).map(|time| time * step);
    let enough = |time: &u64| count(*time as i64, first as i64, next as i64) >= ranks;
    times.clone().find(enough).unwrap()
}

/// Two by two ranks: the neighbours in the row and in the column.
const PARTNERS: [[usize; 2]; 4] = [[1, 2], [0, 3], [3, 0], [2, 1]];

/// The chunks that each rank holds, as a mask, and the transmitters that sent in the slot before.
type State = ([u16; 4], u8);

/// Returns the least time of any plan on 2 x 2 ranks of a collective that only copies, slot by
/// slot, over all possible sends. A chunk takes `chunk_ps`; a circuit used in the slot before stays
/// up.
///
/// More light and more chunks do no harm. If bursts have at most `most` chunks, and new circuits
/// are either charged or not made, every usable transmitter therefore sends as many chunks as it
/// can; the search tries every choice of these chunks.
fn least(start: [u16; 4], goal: [u16; 4], fresh: u64, latency: u64, chunk_ps: u64) -> u64 {
    let mut least: HashMap<State, u64> = HashMap::from([((start, 0), 0)]);
    let mut open = BinaryHeap::from([Reverse((0, (start, 0u8)))]);
    while let Some(Reverse((time, state))) = open.pop() {
        let (held, lit) = state;
        if (0..4).all(|rank| held[rank] & goal[rank] == goal[rank]) {
            return time;
        }
        if least[&state] < time {
            continue;
        }
        for (most, charged) in (1..=6).flat_map(|most| [(most, 0), (most, fresh)]) {
            let taken = charged + latency + u64::from(most) * chunk_ps;
            let usable = if charged > 0 || fresh == 0 { 0xff } else { lit };
            for (next, now_lit) in sent(held, usable, most) {
                let known = least.entry((next, now_lit)).or_insert(u64::MAX);
                if time + taken < *known {
                    *known = time + taken;
                    open.push(Reverse((time + taken, (next, now_lit))));
                }
            }
        }
    }
    unreachable!("every rank reaches every other")
}

/// Lists all states that can follow a slot in which every usable transmitter sends `most` chunks,
/// or all chunks that its partner lacks if those are fewer.
fn sent(held: [u16; 4], usable: u8, most: u32) -> Vec<State> {
    let mut after = vec![(held, 0u8)];
    for port in (0..8).filter(|port| usable & (1 << port) != 0) {
        let (from, to) = (port / 2, PARTNERS[port / 2][port % 2]);
        let lacks = held[from] & !held[to];
        let count = most.min(lacks.count_ones());
        let bursts = (1..=lacks).filter(|burst| burst & !lacks == 0 && burst.count_ones() == count);
        let bursts: Vec<u16> = bursts.collect();
        if bursts.is_empty() {
            continue;
        }
        let with = |(next, lit): &([u16; 4], u8)| {
            let (next, lit) = (*next, *lit);
            bursts.clone().into_iter().map(move |burst| {
                let mut next = next;
                next[to] |= burst;
                (next, lit | (1 << port))
            })
        };
        after = after.iter().flat_map(with).collect();
        after.sort_unstable();
        after.dedup();
    }
    after.retain(|(next, _)| *next != held);
    after
}

#[test]
fn no_plan_of_four_ranks_beats_the_bound_and_some_meet_it() {
    use CollectiveKind::{AllGather, Broadcast, Gather, Scatter};
    let blocks = [1u16, 2, 4, 8];
    for (control, latency, bytes) in [
        (0u64, 0u64, 1000u64),
        (100, 0, 10),
        (100, 30, 1000),
        (5, 400, 10),
        (0, 70, 0),
    ] {
        let fabric = format!(
            "wss_grid:rows=2,columns=2,rate=8Gb/s,tuning=0s,control={control}ns,latency={latency}ns"
        );
        let (fresh, late) = (2000 * control, 1000 * latency);
        for (kind, start, goal, pieces) in [
            (Broadcast, [1, 0, 0, 0], [1; 4], 1),
            (Broadcast, [3, 0, 0, 0], [3; 4], 2),
            (AllGather, blocks, [15; 4], 1),
            (Gather, blocks, [15, 0, 0, 0], 1),
            (Scatter, [15, 0, 0, 0], blocks, 1),
        ] {
            let fewest = least(start, goal, fresh, late, bytes * 1000);
            // A broadcast in two pieces is of twice as many bytes.
            let (time, _) = bound(&fabric, kind, bytes * pieces, Policy::TwoTier);
            let case = format!("{kind} in {pieces}, {control}, {latency}, {bytes}");
            assert!(time <= fewest, "{case}: {time} {fewest}");
            let free = bound(&fabric, kind, bytes * pieces, Policy::Free).0;
            assert!(free <= least(start, goal, 0, late, bytes * 1000), "{case}");
            // Where nothing is to be sent, two ranks are told, and then the last.
            if bytes == 0 && kind != Gather && kind != AllGather {
                assert_eq!(free, fewest, "{case}");
            }
        }
        // Slots: two, since log3 4 is above 1.
        assert_eq!(least([1, 0, 0, 0], [1; 4], 0, 1, 0), 2);
    }
    // A scatter's two halves leave by two transceivers at once, after the circuits are tuned.
    let fabric = "wss_grid:rows=2,columns=2,rate=8Gb/s,tuning=0s,control=1us";
    let fewest = least([63, 0, 0, 0], [0, 3, 12, 48], 2_000_000, 0, 1_000_000);
    assert!(bound(fabric, Scatter, 2000, Policy::TwoTier).0 <= fewest);
}

proptest! {
    #![proptest_config(crate::unsaved(24))]

    #[test]
    fn no_algorithm_is_faster_than_the_bound(
        rows in 1u32..5, columns in 1u32..5, bytes in 0u64..200_000, control in 0u64..3_000_000,
        lock in 0u64..100_000, latency in 0u64..3_000_000, wound in 0usize..4
    ) {
        let wounds = ["", ",dead_transceivers=0.row", ",dead_ports=column0.1", ",nodes=0-2"];
        let whole = rows < 2 || columns < 2 || wound == 0;
        let fabric = format!(
            "wss_grid:rows={rows},columns={columns},control={control}ps,lock={lock}ps,\
             latency={latency}ps{}", if whole { "" } else { wounds[wound] }
        );
        let parsed = Fabric::parse(&fabric).unwrap();
        let grid = parsed.downcast::<WssGrid>().unwrap();
        for record in records_for(&parsed) {
            let of_rings = ["optree", "one_stage", "wrht"].contains(&record.name);
            if of_rings || (record.accepts)(parsed.ranks()).is_err() {
                continue;
            }
            let plan = proved(record.collective, record.name, &fabric);
            let collective = plan.schedule.collective;
            let slots = opticoll::bounds::wss_grid::slots(grid, &collective).steps;
            prop_assert!(u64::from(plan.slots()) >= slots, "{}", record.name);
            for (simulator, policy) in [
                ("control", Policy::TwoTier), ("circuit", Policy::TwoTier),
                ("circuit", Policy::EveryStep), ("circuit", Policy::Free),
            ] {
                let (size, charge) = (Bytes::new(bytes), reconfiguration_cost(grid, policy));
                let outcome = simulate::simulate(&plan, size, policy, simulator).unwrap();
                let bound = opticoll::bounds::wss_grid::best(grid, &collective, size, charge);
                let bound = bound.unwrap();
                prop_assert!(
                    outcome.time >= bound.time || plan.is_empty(),
                    "{} on {fabric} by {simulator}, {}: {} {}",
                    record.name, policy.name(), outcome.time, bound.time
                );
                prop_assert!(plan.fabric.ranks() > 1 || bound.time == Time::ZERO);
            }
        }
    }
}

proptest! {
    #![proptest_config(crate::unsaved(40))]

    #[test]
    fn no_plan_of_auto_is_faster_than_the_bound(
        rows in 1u32..7, columns in 1u32..7, bytes in 0u64..20_000, control in 0u64..30_000,
        tuning in 0u64..60_000, latency in 0u64..30_000, kind in 0..CollectiveKind::ALL.len(),
        policy in 0usize..3
    ) {
        prop_assume!(rows * columns > 1);
        let text = format!(
            "wss_grid:rows={rows},columns={columns},control={control}ps,tuning={tuning}ps,\
             latency={latency}ps"
        );
        let policy = [Policy::TwoTier, Policy::EveryStep, Policy::Free][policy];
        auto_is_not_below_its_bound(&text, CollectiveKind::ALL[kind], policy, Bytes::new(bytes))?;
    }
}
