//! Lower bounds on slots and times against exhaustive search and against formulas from theory.

use opticoll::bounds::ReconfigurationCost;
use opticoll::bounds::wdm_ring;
use opticoll::bounds::wdm_ring::multi_block;
use opticoll::bounds::wdm_ring::multi_block::{Followed, PART};
use opticoll::bounds::wdm_ring::relay_tree::RelayCosts;
use opticoll::bounds::wdm_ring::{price, time};
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::family::wdm_ring::WdmRing;
use proptest::prelude::*;

mod all_reduce;
mod graph;
mod random;
mod searched;

fn ring(ranks: u32, wavelengths: u32) -> WdmRing {
    ring_from_spec(&format!("wdm_ring:ranks={ranks},wavelengths={wavelengths}"))
}

fn ring_from_spec(fabric: &str) -> WdmRing {
    Fabric::parse(fabric)
        .unwrap()
        .downcast::<WdmRing>()
        .unwrap()
        .clone()
}

fn gather(ranks: u32) -> Collective {
    Collective::new(CollectiveKind::AllGather, ranks).unwrap()
}

/// Returns the least priced length over *all* relay trees on a ring: it tries every parent of every
/// rank, from the definition, and does not use contiguity. The slot of a rank is one of
/// 1..=prices.len(), and its parent is any rank of a smaller slot.
fn exhaustive(ranks: usize, prices: &[u64]) -> u64 {
    let slots = prices.len();
    let mut least = u64::MAX;
    let mut slot = vec![1; ranks];
    slot[0] = 0;
    loop {
        let mut total = 0;
        for rank in 1..ranks {
            let parents = (0..ranks).filter(|&parent| slot[parent] < slot[rank]);
            let hops = parents.map(|parent| {
                let apart = rank.abs_diff(parent);
                apart.min(ranks - apart) as u64
            });
            total += prices[slot[rank] - 1] * hops.min().unwrap();
        }
        least = least.min(total);
        let Some(next) = (1..ranks).find(|&rank| slot[rank] < slots) else {
            return least;
        };
        slot[1..next].fill(1);
        slot[next] += 1;
    }
}

/// Returns the least length over all *rooted labelled trees* of a depth, by their parent lists. The
/// search is slower than [`exhaustive`] and does not use its step "the nearest rank of a smaller
/// slot is the best parent".
fn exhaustive_by_parents(ranks: usize, depth: usize) -> u64 {
    let mut least = u64::MAX;
    let mut parent = vec![0; ranks];
    loop {
        let deep = |mut rank: usize| {
            let mut hops = 0;
            while rank != 0 && hops <= depth {
                rank = parent[rank];
                hops += 1;
            }
            hops
        };
        if (1..ranks).all(|rank| deep(rank) <= depth) {
            let length = |rank: usize| {
                let apart = rank.abs_diff(parent[rank]);
                apart.min(ranks - apart) as u64
            };
            least = least.min((1..ranks).map(length).sum());
        }
        let Some(next) = (1..ranks).find(|&rank| parent[rank] + 1 < ranks) else {
            return least;
        };
        parent[1..next].fill(0);
        parent[next] += 1;
    }
}

/// Returns whether some tree of least length and of this depth, in which every rank is joined to
/// its nearest parent, has a rank whose subtree is not an interval.
fn crossing_tree_with_nearest_parents(ranks: usize, depth: usize) -> bool {
    let mut slot = vec![1; ranks];
    slot[0] = 0;
    loop {
        let apart = |a: usize, b: usize| a.abs_diff(b).min(ranks - a.abs_diff(b));
        let parent: Vec<usize> = (0..ranks)
            .map(|rank| {
                let smaller = (0..ranks).filter(|&other| slot[other] < slot[rank]);
                smaller.min_by_key(|&other| apart(rank, other)).unwrap_or(0)
            })
            .collect();
        for through in 1..ranks {
            let reached = |mut rank: usize| {
                while rank != through && rank != 0 {
                    rank = parent[rank];
                }
                rank == through
            };
            let edges = (1..ranks - 1).filter(|&rank| reached(rank) != reached(rank + 1));
            let inner = edges.count() + usize::from(reached(1)) + usize::from(reached(ranks - 1));
            if inner != 2 {
                return true;
            }
        }
        let Some(next) = (1..ranks).find(|&rank| slot[rank] < depth) else {
            return false;
        };
        slot[1..next].fill(1);
        slot[next] += 1;
    }
}

#[test]
fn the_dynamic_program_finds_the_least_of_all_relay_trees() {
    for ranks in 2..=9 {
        for (depth, cost) in (1..ranks).zip(RelayCosts::new(ranks as u32)) {
            if depth < 5 || ranks < 9 {
                let least = exhaustive(ranks, &vec![1; depth]);
                assert_eq!(cost, least, "N = {ranks}, depth {depth}");
            }
        }
    }
    for ranks in 2..=7 {
        for (depth, cost) in (1..ranks).zip(RelayCosts::new(ranks as u32)) {
            let least = exhaustive_by_parents(ranks, depth);
            assert_eq!(cost, least, "all parents: N = {ranks}, depth {depth}");
        }
    }
}

#[test]
fn trees_with_nearest_parents_reach_intervals() {
    for ranks in 2..=8 {
        for depth in 1..ranks.min(5) {
            assert!(
                !crossing_tree_with_nearest_parents(ranks, depth),
                "N = {ranks}, depth {depth}"
            );
        }
    }
}

#[test]
fn priced_trees_are_the_least_of_all() {
    for prices in [
        vec![1, 1, 1],
        vec![3, 1],
        vec![1, 3],
        vec![5, 2, 1],
        vec![1, 2, 5],
        vec![2, 7, 1],
        vec![0, 1, 1],
        vec![4, 3, 2, 1],
    ] {
        for ranks in 2..=8 {
            assert_eq!(
                price::cheapest(ranks as u32, &prices),
                Some(exhaustive(ranks, &prices)),
                "N = {ranks}, prices {prices:?}"
            );
        }
    }
}

/// Computes G(p) by the recursion itself.
fn priced_by_the_recursion(ranks: usize, prices: &[u64]) -> u64 {
    const UNREACHED: u64 = 1 << 50;
    let least_sums = |one: &[u64], other: &[u64]| -> Vec<u64> {
        let least = |n: usize| (0..=n).map(|x| one[x] + other[n - x]).min().unwrap();
        (0..ranks).map(least).collect()
    };
    let mut later = vec![UNREACHED; ranks];
    later[0] = 0;
    for &price in prices.iter().rev() {
        let mut one_end = vec![0; ranks];
        for x in 1..ranks {
            let before = (0..x).map(|y| one_end[y] + later[x - y - 1]);
            one_end[x] = price * x as u64 + before.min().unwrap();
        }
        later = least_sums(&one_end, &least_sums(&one_end, &later));
    }
    later[ranks - 1]
}

proptest! {
    #[test]
    fn merged_prices_give_what_the_recursion_gives(
        ranks in 1usize..60,
        prices in prop::collection::vec(0u64..50, 1..7),
    ) {
        let merged = price::cheapest(ranks as u32, &prices).unwrap();
        prop_assert_eq!(merged, priced_by_the_recursion(ranks, &prices));
        let loads = price::loads(ranks as u32, &prices).unwrap();
        let paid: u64 = loads.iter().zip(&prices).map(|(load, price)| load * price).sum();
        prop_assert_eq!(merged, paid, "the loads of a cheapest tree, priced");
    }
}

#[test]
fn equal_prices_give_the_plain_tree_cost() {
    for ranks in [2, 3, 10, 31, 64, 100] {
        for (depth, cost) in (1..12).zip(RelayCosts::new(ranks)) {
            let priced = price::cheapest(ranks, &vec![3; depth]);
            assert_eq!(priced, Some(3 * cost), "N = {ranks}, depth {depth}");
        }
    }
}

/// The greatest length for S slots, as the linear program over mixtures of relay trees gives it:
/// least sum of b_s with the loads of the mixture at most 2c b_s and b_s <= n_s, by column
/// generation with HiGHS 1.12 (scipy.optimize.linprog); here times 2c.
#[test]
fn prices_of_scarce_slots_are_as_good_as_a_linear_program() {
    for (ranks, channels, steps, optimum) in [
        (64, 16, 3, 191.0),
        (64, 16, 4, 142.0),
        (64, 16, 5, 123.0),
        (64, 16, 6, 114.0),
        (64, 16, 7, 112.0),
        (1024, 128, 3, 13239.0),
        (1024, 128, 4, 6271.0),
        (1024, 128, 5, 4604.0),
        (1024, 128, 6, 3859.0),
    ] {
        let priced =
            multi_block::length(ranks, channels, channels, steps, Followed::Blocks).unwrap();
        let length = (priced.tree - priced.paid) as f64 / PART as f64;
        let about = |value: f64| (length - value).abs() < 1e-9;
        assert!(
            about(optimum),
            "{ranks} ranks, {steps} slots: {length}, not {optimum}"
        );
    }
    // The same program has no solution for two slots.
    assert_eq!(multi_block::least_steps(64, 16, 16, 2), 3);
    assert_eq!(multi_block::least_steps(1024, 128, 128, 2), 3);
}

/// The same for broadcasts: mixtures of relay trees that begin in any slot, of which at most 2c
/// bytes for each of the longest lightpath leave the root; by HiGHS, too.
#[test]
fn prices_of_early_slots_are_nearly_as_good_as_a_linear_program() {
    for (ranks, channels, steps, optimum) in [
        (64, 16, 2, 238.0),
        (64, 16, 3, 162.33),
        (64, 16, 4, 143.5),
        (64, 16, 6, 126.49),
        (64, 16, 10, 113.56),
        (64, 16, 14, 107.25),
    ] {
        let cost = RelayCosts::new(ranks).nth(steps as usize - 1).unwrap();
        let length = wdm_ring::root_bound::length(ranks, channels, channels, steps, cost) as f64;
        assert!(
            length <= optimum + 0.01,
            "{steps} slots: {length}, not {optimum}"
        );
        assert!(
            length >= 0.98 * optimum,
            "{steps} slots: {length}, not {optimum}"
        );
    }
}

/// Every relay tree within the capacity of lightpaths is at least as long as the bound. The test
/// tries all slots of all ranks, joins each rank to the nearest rank with an earlier slot, and puts
/// at most n_s = (1 + 2c)^(s - 1) blocks on a lightpath.
#[test]
fn no_tree_within_what_lightpaths_can_carry_is_below_the_bound() {
    let mut fitting = 0;
    for (ranks, channels, steps) in [
        (5, 2, 2),
        (7, 2, 2),
        (7, 2, 3),
        (8, 4, 2),
        (9, 2, 3),
        (9, 4, 2),
    ] {
        let held = |step: usize| 5u64.min(1 + channels).pow(step as u32).min(ranks);
        let blocks = multi_block::length(
            ranks as u32,
            channels,
            channels,
            steps as u64,
            Followed::Blocks,
        );
        let sums = multi_block::length(
            ranks as u32,
            channels,
            channels,
            steps as u64,
            Followed::Contributions,
        );
        let (blocks, sums) = (blocks.unwrap(), sums.unwrap());
        let mut slot = vec![1usize; ranks as usize];
        slot[0] = 0;
        loop {
            let mut loads = vec![0u64; steps];
            for rank in 1..ranks as usize {
                let earlier = (0..ranks as usize).filter(|&other| slot[other] < slot[rank]);
                let apart = earlier.map(|other| {
                    rank.abs_diff(other)
                        .min(ranks as usize - rank.abs_diff(other))
                });
                loads[slot[rank] - 1] += apart.min().unwrap() as u64;
            }
            if (0..steps).all(|step| loads[step] <= channels * held(step)) {
                fitting += 1;
                let total: u64 = loads.iter().sum();
                assert!(
                    total * PART >= blocks.tree - blocks.paid,
                    "{ranks} ranks, {slot:?}"
                );
                // Of sums, slot s serves n_s ranks with each byte.
                let served: f64 = (0..steps)
                    .map(|step| loads[step] as f64 / held(step) as f64)
                    .sum();
                let least = (sums.tree.saturating_sub(sums.paid)) as f64 / PART as f64;
                assert!(
                    served * ranks as f64 + 1e-9 >= least,
                    "{ranks} ranks, {slot:?}"
                );
                assert!(
                    multi_block::least_steps(ranks as u32, channels, channels, 1) <= steps as u64
                );
            }
            let Some(next) = (1..ranks as usize).find(|&rank| slot[rank] < steps) else {
                break;
            };
            slot[1..next].fill(1);
            slot[next] += 1;
        }
    }
    assert!(fitting > 500, "{fitting} trees fit");
}

/// Computes C_1(N), C_2(N), ... by the recursion itself: it tries every last child and every place
/// of the relay.
fn lengths_by_the_recursion(ranks: usize, depths: usize) -> Vec<u64> {
    const UNREACHED: u64 = 1 << 40;
    let mut one_sided = vec![UNREACHED; ranks];
    one_sided[0] = 0;
    let mut costs = Vec::new();
    for _ in 0..depths {
        let to_child = |size: usize| {
            let splits = (0..size).map(|l| l as u64 + 1 + one_sided[l] + one_sided[size - 1 - l]);
            splits.min().unwrap()
        };
        let to_child: Vec<u64> = (1..ranks).map(to_child).collect();
        let mut deeper = vec![0; ranks];
        for n in 1..ranks {
            let children = (1..=n).map(|s| deeper[n - s] + (n - s) as u64 + to_child[s - 1]);
            deeper[n] = children.min().unwrap();
        }
        one_sided = deeper;
        let sides = (0..ranks).map(|a| one_sided[a] + one_sided[ranks - 1 - a]);
        costs.push(sides.min().unwrap());
    }
    costs
}

#[test]
fn merged_differences_give_what_the_recursion_gives() {
    for ranks in (1..=70).chain([127, 200, 301]) {
        let merged: Vec<u64> = RelayCosts::new(ranks).take(40).collect();
        assert_eq!(
            merged,
            lengths_by_the_recursion(ranks as usize, 40),
            "N = {ranks}"
        );
    }
}

#[test]
fn tree_costs_at_both_ends_are_closed_forms() {
    for ranks in [2u32, 3, 4, 7, 16, 33, 128] {
        let costs: Vec<u64> = RelayCosts::new(ranks).take(ranks as usize).collect();
        assert_eq!(costs[0], u64::from(ranks * ranks / 4), "one stage, {ranks}");
        let deep = ranks as usize / 2;
        assert_eq!(costs[deep - 1], u64::from(ranks - 1), "hop by hop, {ranks}");
        assert!(costs.is_sorted_by(|one, next| one >= next));
    }
}

#[test]
fn least_steps_of_all_gather() {
    // Computed independently for the reference table of the relay-tree planner.
    for (ranks, wavelengths, steps) in [
        (16, 2, 5),
        (16, 4, 3),
        (64, 8, 7),
        (64, 16, 5),
        (128, 8, 15),
        (256, 16, 15),
        (512, 16, 31),
        (512, 64, 11),
        (1024, 16, 61),
        (1024, 64, 19),
        (1024, 128, 11),
        (2048, 64, 32),
    ] {
        let bound = wdm_ring::best(&ring(ranks, wavelengths), &gather(ranks));
        assert_eq!(
            (bound.steps, bound.name),
            (steps, "relay_tree"),
            "N = {ranks}, w = {wavelengths}"
        );
    }
}

#[test]
fn simple_bounds_of_every_collective() {
    use CollectiveKind::*;
    // (collective, N, w, pieces, slots): counted by hand.
    for (kind, ranks, wavelengths, pieces, steps) in [
        (AllGather, 1, 1, 1, 0),
        (AllGather, 2, 1, 1, 1),
        (AllGather, 9, 1, 1, 4),  // 8 blocks over 2 channels
        (AllGather, 9, 4, 1, 2),  // growth: 1 + 8 = 9 in one slot, but trees are too long
        (AllGather, 3, 1, 4, 4),  // 8 chunks over 2 channels
        (AllGather, 5, 64, 1, 1), // all to all in one slot
        (ReduceScatter, 9, 1, 1, 4),
        (AllReduce, 27, 1, 1, 4), // 3^3, but trees are too long
        (AllReduce, 28, 1, 1, 4),
        (AllReduce, 4, 1, 7, 6), // 2 * 3 * 7 receptions, 8 in a slot
        (AllReduce, 3, 1, 1, 1),
        (AllReduce, 5, 4, 40, 8), // 2 * 4 * 40 receptions, 5 * 8 in a slot; 40 over 8 would be 5
        (Broadcast, 1024, 64, 1, 2),
        (Reduce, 129, 64, 1, 1),
        (Gather, 1024, 64, 1, 8),
        (Scatter, 16, 2, 1, 4),
        (AllToAll, 16, 2, 1, 16), // 64 over the cut of 4 channels
        (AllToAll, 3, 1, 1, 1),
    ] {
        let collective = Collective::new(kind, ranks)
            .unwrap()
            .with_pieces(pieces)
            .unwrap();
        let bound = wdm_ring::best(&ring(ranks, wavelengths), &collective);
        assert_eq!(bound.steps, steps, "{kind} {ranks} {wavelengths} {pieces}");
        assert!(!bound.assumption.is_empty());
    }
}

#[test]
fn ports_and_fibres_count() {
    let check = |fabric: &str, kind, steps| {
        let ring = ring_from_spec(fabric);
        let collective = Collective::new(kind, ring.ranks).unwrap();
        assert_eq!(wdm_ring::best(&ring, &collective).steps, steps, "{fabric}");
    };
    let kind = CollectiveKind::Gather;
    check("wdm_ring:ranks=17,wavelengths=2", kind, 4);
    check("wdm_ring:ranks=17,wavelengths=2,fibres=2", kind, 2);
    check("wdm_ring:ranks=17,wavelengths=2,ports=1", kind, 16);
    check(
        "wdm_ring:ranks=17,wavelengths=2,ports=1",
        CollectiveKind::Broadcast,
        5,
    );
}

#[test]
fn times_of_the_reference_table() {
    // (block, every slot charged, never charged) in milliseconds, N = 1024, w = 64, 40 Gb/s, 25 us.
    for (size, charged, never) in [
        // 0.52 with relay trees alone; with few blocks in the first slots by the linear program
        // below.
        ("64KiB", 0.52504, 0.105),
        ("1MiB", 3.85, 1.68),
        ("4MiB", 13.68, 6.70),
        ("32MiB", 66.4, 53.6),
        ("128MiB", 227.3, 214.5),
    ] {
        let milliseconds = |charge| {
            let bound = time::best(
                &ring(1024, 64),
                &gather(1024),
                size.parse().unwrap(),
                charge,
            );
            bound.unwrap().time.seconds() * 1e3
        };
        let close = |found: f64, expected: f64| (found - expected).abs() < 0.005 * expected + 1e-4;
        let found = (
            milliseconds(ReconfigurationCost::EverySlot),
            milliseconds(ReconfigurationCost::Never),
            milliseconds(ReconfigurationCost::Once),
        );
        assert!(close(found.0, charged), "{size}: {found:?}");
        assert!(close(found.1, never), "{size}: {found:?}");
        assert!(close(found.2, never + 0.025), "{size}: {found:?}");
    }
    let reduce = Collective::new(CollectiveKind::AllReduce, 1024).unwrap();
    for (size, expected) in [("100MB", 0.31), ("249MB", 0.78), ("552MB", 1.72)] {
        let bound = time::best(
            &ring(1024, 64),
            &reduce,
            size.parse().unwrap(),
            ReconfigurationCost::Never,
        );
        let found = bound.unwrap().time.seconds() * 1e3;
        assert!((found - expected).abs() < 0.006, "{size}: {found}");
    }
}

/// Each bound counted by hand, and the name that is printed: a name is printed only with a number
/// that the bound of that name reaches.
#[test]
fn the_name_is_that_of_a_bound_that_binds() {
    use CollectiveKind::{AllGather, AllReduce, Broadcast, ReduceScatter, Scatter};
    for (options, kind, steps, name) in [
        // Two blocks over one channel, or one port; a tree of length 2 would fit into one slot.
        ("ranks=3,wavelengths=1,broken=0-2", AllGather, 2, "receive"),
        ("ranks=3,wavelengths=1,ports=1", AllGather, 2, "receive"),
        ("ranks=3,wavelengths=1,ports=1", ReduceScatter, 2, "receive"),
        // 42 deliveries, of which the first slot makes 2 (7 + 3) and each later one 21; a tree fits
        // into two.
        ("ranks=7,wavelengths=2,ports=3", AllGather, 3, "first_slot"),
        // Both say two: receive is named, which assumes less.
        ("ranks=5,wavelengths=1", AllGather, 2, "receive"),
        ("ranks=64,wavelengths=8", AllGather, 7, "relay_tree"),
        // Threefold in each slot; in the third, 18 new ranks next to 9 are farther than 9 ranks
        // with 2 channels reach.
        ("ranks=27,wavelengths=1", AllReduce, 4, "spread"),
        ("ranks=4,wavelengths=1", AllReduce, 2, "growth"),
        ("ranks=1024,wavelengths=64", Broadcast, 2, "growth"),
    ] {
        let ring = ring_from_spec(&format!("wdm_ring:{options}"));
        let collective = Collective::new(kind, ring.ranks).unwrap();
        let bound = wdm_ring::best(&ring, &collective);
        assert_eq!(
            (bound.steps, bound.name),
            (steps, name),
            "{kind} on {options}"
        );
    }
    // One block over two channels, in one slot of 25 us: no tree, and no second round.
    let bound = |kind, ranks, size: &str, charge| {
        let collective = Collective::new(kind, ranks).unwrap();
        let bound = time::best(&ring(ranks, 1), &collective, size.parse().unwrap(), charge);
        bound.unwrap().name
    };
    assert_eq!(
        bound(AllGather, 2, "1MiB", ReconfigurationCost::EverySlot),
        "bandwidth"
    );
    assert_eq!(
        bound(AllGather, 2, "1MiB", ReconfigurationCost::Never),
        "bandwidth"
    );
    // Blocks of a scatter follow no trees; sums of an all_reduce take more links than a tree and N
    // - 1 more.
    assert_eq!(
        bound(Scatter, 9, "1B", ReconfigurationCost::EverySlot),
        "rounds"
    );
    assert_eq!(
        bound(AllReduce, 9, "1B", ReconfigurationCost::EverySlot),
        "crossings"
    );
    assert_eq!(
        bound(AllGather, 64, "4KiB", ReconfigurationCost::EverySlot),
        "relay_tree"
    );
}
