//! Plans that keep both transceivers busy: their slots and bytes against theory, and the fewest
//! slots by a search.

use std::collections::BTreeSet;

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::plan::Plan;
use opticoll::planner;
use opticoll::simulate;
use opticoll::simulate::{Policy, TimingModel};
use opticoll::units::{Bytes, Time};

use crate::{proved_plan, refusal};

/// A byte takes 1000 ps, and a slot takes 10 ns.
const BYTE: u64 = 1000;
const SLOT: u64 = 10_000;

fn fabric(rows: u32, columns: u32) -> Fabric {
    let spec = format!("wss_grid:rows={rows},columns={columns},rate=8Gb/s,tuning=10ns");
    Fabric::parse(&spec).unwrap()
}

/// Returns the verified plan that a planner makes for a size, and its time under `every_step`.
fn timed(fabric: &Fabric, collective: Collective, name: &str, bytes: u64) -> (Plan, u64) {
    let (size, method) = (Bytes::new(bytes), TimingModel::from(Policy::EveryStep));
    let planned = proved_plan(name, fabric, collective, size, &method);
    let time = simulate::run(&planned.plan, size, &method).unwrap().time;
    let bound = planner::time_bound(fabric, &collective, size, &method).unwrap();
    assert!(bound.is_none_or(|bound| bound.time <= time));
    (planned.plan, time.ps())
}

fn collective(kind: CollectiveKind, fabric: &Fabric) -> Collective {
    Collective::new(kind, fabric.ranks()).unwrap()
}

#[test]
fn shifts_fill_both_planes() {
    use CollectiveKind::{AllGather, AllToAll, ReduceScatter};
    for (rows, columns) in [
        (1, 2),
        (2, 2),
        (2, 3),
        (3, 3),
        (1, 5),
        (6, 1),
        (5, 7),
        (8, 8),
        (4, 16),
    ] {
        let fabric = fabric(rows, columns);
        let ranks = u64::from(rows * columns);
        let planes = if rows.min(columns) > 1 { 2 } else { 1 };
        for kind in [AllGather, ReduceScatter, AllToAll] {
            // Blocks of 1,000 bytes: a hundred slots.
            let bytes = if kind == AllGather {
                1000
            } else {
                1000 * ranks
            };
            let (plan, time) = timed(&fabric, collective(kind, &fabric), "shifts", bytes);
            let slots = u64::from(plan.slots());
            let blocks = (time - slots * SLOT) / (1000 * BYTE);
            // Each rank needs all blocks but its own; those for ranks that share no switch take a
            // hop along the row and one along the column.
            let others = ranks - 1;
            let hops = [rows * (columns - 1), columns * (rows - 1)].map(u64::from);
            let least = match kind {
                AllToAll => hops[0].max(hops[1]),
                _ => others.div_ceil(planes),
            };
            assert!(blocks >= least, "{kind} on {fabric}: {blocks} blocks");
            assert!(
                blocks <= least + 1 + least / 8,
                "{kind} on {fabric}: {blocks} blocks, {least} at least"
            );
        }
    }
}

#[test]
fn what_a_root_sends_or_receives_is_what_it_receives_in_an_all_gather() {
    use CollectiveKind::{AllGather, Gather, Scatter};
    for (rows, columns) in [(1, 2), (2, 3), (1, 5), (6, 1), (5, 7), (8, 8)] {
        let fabric = fabric(rows, columns);
        let (_, expected) = timed(&fabric, collective(AllGather, &fabric), "shifts", 1000);
        for kind in [Gather, Scatter] {
            for root in [0, fabric.ranks() - 1] {
                let rooted = collective(kind, &fabric).with_root(root).unwrap();
                let (_, time) = timed(&fabric, rooted, "shifts", 1000);
                assert_eq!(time, expected, "{kind} on {fabric}");
            }
        }
    }
}

#[test]
fn circuits_that_stay_are_tuned_once() {
    use CollectiveKind::{AllGather, AllReduce, Barrier, ReduceScatter};
    let method = TimingModel::from(Policy::TwoTier);
    for side in [4, 8] {
        let fabric = fabric(side, side);
        let ranks = u64::from(fabric.ranks());
        // Along diagonals 2, 3, ..., side, ..., 2, 1 ranks are told, half of them by each plane.
        let told = (2..=u64::from(side)).chain((1..u64::from(side)).rev());
        let blocks = told.map(|told| told.div_ceil(2)).sum::<u64>();
        for (kind, bytes, expected) in [
            (AllGather, 10, SLOT + blocks * 10 * BYTE),
            (ReduceScatter, 10 * ranks, SLOT + blocks * 10 * BYTE),
            (AllReduce, 10 * ranks, SLOT + 2 * blocks * 10 * BYTE),
            (Barrier, 0, SLOT),
        ] {
            let asked = collective(kind, &fabric);
            let size = Bytes::new(bytes);
            let planned = proved_plan("auto", &fabric, asked, size, &method);
            let outcome = simulate::run(&planned.plan, size, &method).unwrap();
            let time = outcome.time.ps();
            assert!(time <= expected, "{kind} on {fabric}: {time} {expected}");
        }
    }
}

/// Returns whether some sequence of `slots` pairs of shifts leads from the places in `told` to all
/// places. The search tries all sequences.
fn lead_to_all(rows: u32, columns: u32, slots: usize, told: &BTreeSet<(u32, u32)>) -> bool {
    if told.len() as u32 == rows * columns {
        return true;
    }
    if slots == 0 {
        return false;
    }
    let pairs = (0..rows).flat_map(|down| (0..columns).map(move |right| (down, right)));
    pairs.into_iter().any(|(down, right)| {
        let mut next = told.clone();
        next.extend(
            told.iter()
                .map(|(row, column)| ((row + down) % rows, *column)),
        );
        next.extend(
            told.iter()
                .map(|(row, column)| (*row, (column + right) % columns)),
        );
        lead_to_all(rows, columns, slots - 1, &next)
    })
}

#[test]
fn the_fewest_slots_of_shifts_are_those_of_a_search_of_all() {
    for (rows, columns) in [(2, 2), (2, 3), (3, 3), (3, 4), (4, 4)] {
        let start = BTreeSet::from([(0, 0)]);
        let fewest = (1..).find(|&slots| lead_to_all(rows, columns, slots, &start));
        let fabric = fabric(rows, columns);
        // All bytes together take less than a slot.
        let gather = collective(CollectiveKind::AllGather, &fabric);
        let (plan, time) = timed(&fabric, gather, "shifts", 1);
        assert_eq!(Some(plan.slots() as usize), fewest, "{rows} x {columns}");
        assert!(time < u64::from(plan.slots() + 1) * SLOT);
    }
}

#[test]
fn pieces_arrive_by_both_planes_in_every_slot() {
    use CollectiveKind::{Broadcast, Reduce};
    for (rows, columns, root) in [
        (2, 2, 3),
        (4, 4, 6),
        (8, 8, 0),
        (4, 2, 5),
        (3, 5, 7),
        (3, 4, 11),
        (1, 8, 3),
        (5, 1, 2),
    ] {
        let fabric = fabric(rows, columns);
        let pieces = 10;
        for shape in ["hypercube", "ring"] {
            // Slots in which a line passes a piece on to all.
            let depth = |ranks: u32| match ranks {
                1 => 0,
                2 => 1,
                _ if shape == "hypercube" && ranks.is_power_of_two() => ranks.ilog2() + 1,
                _ => ranks - 1,
            };
            let is_line = rows.min(columns) == 1;
            let slots = pieces + depth(rows) + depth(columns) - u32::from(is_line);
            let parts = if is_line { 1 } else { 2 };
            for kind in [Broadcast, Reduce] {
                let collective = collective(kind, &fabric).with_root(root).unwrap();
                let name = format!("pipelined:pieces={pieces},shape={shape}");
                let bytes = u64::from(parts * pieces) * 50;
                let is_cube = |ranks: u32| ranks > 1 && ranks.is_power_of_two();
                if shape == "hypercube" && !is_cube(rows) && !is_cube(columns) {
                    let error = refusal(&name, &fabric, collective, None);
                    assert!(error.contains("needs a power of two"), "{error}");
                    continue;
                }
                let (plan, time) = timed(&fabric, collective, &name, bytes);
                assert_eq!(plan.slots(), slots, "{kind} by {name} on {fabric}");
                assert_eq!(time, u64::from(slots) * (SLOT + 50 * BYTE));
            }
        }
    }
}

#[test]
fn auto_comes_near_the_bounds_of_a_grid() {
    use CollectiveKind::{AllGather, AllReduce, AllToAll, Broadcast, Reduce, ReduceScatter};
    let fabric = fabric(4, 4);
    for kind in [
        AllGather,
        ReduceScatter,
        AllReduce,
        AllToAll,
        Broadcast,
        Reduce,
    ] {
        // The vector takes 1,600 slots.
        let (_, time) = timed(&fabric, collective(kind, &fabric), "auto", 16_000_000);
        let method = TimingModel::from(Policy::EveryStep);
        let size = Bytes::new(16_000_000);
        let bound = planner::time_bound(&fabric, &collective(kind, &fabric), size, &method);
        let bound = bound.unwrap().unwrap().time;
        let most = Time::from_ps(bound.ps() / 100 * 115);
        assert!(
            Time::from_ps(time) <= most,
            "{kind}: {time} ps, {bound} at least"
        );
    }
}

/// Direct plans of a thousand ranks are relayed over thousands of slots. If `auto` built these
/// plans first, it would have no time for others.
#[test]
fn auto_comes_near_the_bound_of_a_thousand_ranks_where_changed_circuits_are_charged() {
    use CollectiveKind::{AllReduce, AllToAll, ReduceScatter};
    let fabric = Fabric::parse("wss_grid:rows=32,columns=32").unwrap();
    let method = TimingModel::from(Policy::TwoTier);
    let size = Bytes::new(64 << 10);
    for kind in [AllReduce, AllToAll, ReduceScatter] {
        let collective = collective(kind, &fabric);
        let auto = "auto".parse().unwrap();
        let planned = planner::plan(&auto, &fabric, collective, size, &method).unwrap();
        // The outcome that `auto` reports equals the outcome of a simulation.
        let outcome = simulate::run(&planned.plan, size, &method).unwrap();
        assert_eq!(planned.outcome.as_deref(), Some(&outcome), "{kind}");
        let bound = planner::time_bound(&fabric, &collective, size, &method);
        let bound = bound.unwrap().unwrap().time.ps();
        let time = outcome.time.ps();
        assert!(
            bound <= time && time <= bound / 100 * 110,
            "{kind}: {time} ps, {bound} at least"
        );
    }
}
