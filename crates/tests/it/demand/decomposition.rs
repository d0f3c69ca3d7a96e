//! Decompositions over circuit switches: their times are near the bound, and an exhaustive search
//! finds no sequence of settings below the bound.

use std::collections::HashMap;

use super::*;
use crate::{refusal, some_of};
use itertools::iproduct;
use opticoll::simulate::Policy;

/// Returns the time of the decomposition and the bound of plans without relays, in picoseconds.
fn against_the_bound(fabric: &str, demand: DemandMatrix, size: u64, policy: Policy) -> (u64, u64) {
    let fabric = Fabric::parse(&format!("circuit_switch:{fabric},startup=0s,latency=0s")).unwrap();
    let collective = demanding(demand);
    let method = TimingModel::from(policy);
    let plan = proved("decomposition", &fabric, collective, size, &method);
    let time = time(&plan, size, &method);
    let bounds = time_bounds(&fabric, &collective, Bytes::new(size), &method).unwrap();
    let direct = bounds.iter().find(|one| one.bound.name == "direct");
    // Equal blocks are no demand, for which there is no bound without relays.
    (time.ps(), direct.map_or(0, |one| one.bound.time.ps()))
}

/// 800 Gb/s: 10 ps for a byte.
const BETA: u64 = 10;

#[test]
fn on_128_ranks_the_gap_to_the_bound_is_15_percent_at_most() {
    let size = 1u64 << 30;
    for demand in ["random", "zipf:exponent=1.2", "one_hot"] {
        let matrix = generated(demand, 128);
        let all: u128 = matrix.matrix().into_iter().map(u128::from).sum();
        // A hundredth of the mean time of a row.
        let row = all / 128 * u128::from(size * BETA) / u128::from(matrix.largest());
        let change = row / 100 / 1000;
        let policies = [Policy::AllStop, Policy::Planes, Policy::PerPort];
        for (planes, policy) in some_of(iproduct!([1, 2, 4], policies), 4) {
            let fabric =
                format!("ranks=128,ports={planes},planes={planes},reconfiguration={change}ns");
            let (time, bound) = against_the_bound(&fabric, matrix.clone(), size, policy);
            let gap = time as f64 / bound as f64 - 1.0;
            assert!(
                gap <= 0.15,
                "{demand}, {planes} planes, {}: {gap:.4}",
                policy.name()
            );
        }
    }
}

#[test]
fn equal_blocks_take_the_least_time_without_relays_where_planes_divide_them() {
    for (ranks, planes) in [(9u64, 1), (9, 2), (9, 4), (13, 3), (17, 8)] {
        for first_configuration in ["free", "charged"] {
            let fabric = format!(
                "ranks={ranks},ports={planes},planes={planes},reconfiguration=3us,\
                 first_configuration={first_configuration}"
            );
            let size = ranks << 16;
            let uniform = generated("uniform", ranks as u32);
            let (time, _) = against_the_bound(&fabric, uniform, size, Policy::Planes);
            let free = if first_configuration == "free" {
                planes
            } else {
                0
            };
            let expected =
                ((ranks - 1) * BETA * (1 << 16) + (ranks - 1 - free) * 3_000_000) / planes;
            assert_eq!(time, expected, "{ranks} {planes} {first_configuration}");
        }
    }
}

#[test]
fn bounds_by_hand() {
    // Rank 0 sends 3 and 1 bytes, rank 1 sends 2: 4 bytes and 2 pairs of rank 0; receivers have 1,
    // 3 and 1 + 1.
    let matrix = DemandMatrix::from_matrix(3, &[0, 3, 1, 0, 0, 2, 0, 0, 0]).unwrap();
    let bounds = |fabric: &str, policy: Policy| -> Vec<(&'static str, u64)> {
        let fabric = Fabric::parse(&format!("circuit_switch:ranks=3,{fabric}")).unwrap();
        let collective = demanding(matrix.clone());
        let bounds = time_bounds(
            &fabric,
            &collective,
            Bytes::new(4),
            &TimingModel::from(policy),
        )
        .unwrap();
        bounds
            .iter()
            .map(|one| (one.bound.name, one.bound.time.ps()))
            .collect()
    };
    let fabric = "startup=7ps,latency=5ps,reconfiguration=100ps";
    // Two settings of 12 ps each beside the bytes and one change. One setting with relays: rank 0's
    // 3 bytes over one circuit and 1 over two, or 5 and 2 x 1 over all; rank 2 is reached in two
    // slots.
    let direct = 2 * 12 + 100 + 4 * BETA;
    let relayed = 7 + 2 * 5 + 4 * BETA;
    assert_eq!(
        bounds(fabric, Policy::AllStop),
        [("configurations", relayed), ("direct", direct)]
    );
    let charged = format!("{fabric},first_configuration=charged");
    let both = [("configurations", relayed + 100), ("direct", direct + 100)];
    assert_eq!(bounds(&charged, Policy::AllStop), both);
    assert_eq!(
        bounds(&charged, Policy::PerPort)[1],
        ("direct", 12 + 4 * BETA + 200)
    );
    // Two ports reach both ranks at once; each has 2 bytes of rank 0 at the least.
    let two = format!("ports=2,planes=2,{fabric}");
    assert_eq!(bounds(&two, Policy::Planes)[1], ("direct", 12 + 2 * BETA));
}

/// The most time of a chunk.
const LONGEST: u32 = 4;

/// Lists the maximal partial matchings of this number of ranks: no pair can be added to them.
fn settings(ranks: usize) -> Vec<Vec<(usize, usize)>> {
    fn go_on(
        ranks: usize,
        row: usize,
        own: &mut Vec<(usize, usize)>,
        all: &mut Vec<Vec<(usize, usize)>>,
    ) {
        if row == ranks {
            all.push(own.clone());
            return;
        }
        go_on(ranks, row + 1, own, all);
        for column in (0..ranks).filter(|column| *column != row) {
            if own.iter().all(|(_, taken)| *taken != column) {
                own.push((row, column));
                go_on(ranks, row + 1, own, all);
                own.pop();
            }
        }
    }
    let mut all = Vec::new();
    go_on(ranks, 0, &mut Vec::new(), &mut all);
    let within = |one: &Vec<(usize, usize)>, other: &Vec<(usize, usize)>| {
        one.len() < other.len() && one.iter().all(|pair| other.contains(pair))
    };
    let largest: Vec<_> = all
        .iter()
        .filter(|one| !all.iter().any(|other| within(one, other)))
        .cloned()
        .collect();
    largest
}

/// Returns the least time over all sequences of settings of whole lengths, each of which costs
/// `change`.
fn least(
    left: &[u32],
    ranks: usize,
    change: u32,
    settings: &[Vec<(usize, usize)>],
    known: &mut HashMap<Vec<u32>, u32>,
) -> u32 {
    if left.iter().all(|amount| *amount == 0) {
        return 0;
    }
    if let Some(time) = known.get(left) {
        return *time;
    }
    let mut best = u32::MAX;
    for setting in settings {
        for lasting in 1..=LONGEST {
            let mut after = left.to_vec();
            for (row, column) in setting {
                let amount = &mut after[row * ranks + column];
                *amount = amount.saturating_sub(lasting);
            }
            if after != left {
                best = best.min(change + lasting + least(&after, ranks, change, settings, known));
            }
            // Longer than every pair of the setting needs.
            if setting
                .iter()
                .all(|(row, column)| after[row * ranks + column] == 0)
            {
                break;
            }
        }
    }
    known.insert(left.to_vec(), best);
    best
}

#[test]
fn no_sequence_of_settings_goes_below_the_bound() {
    use rand::RngExt;
    let mut random = rand_pcg::Pcg64::new(7, 0);
    let (mut cases, mut met, mut worst) = (0, 0, 1.0f64);
    for (ranks, filled, tries) in [(3usize, 6, 60), (4, 6, 60)] {
        let settings = settings(ranks);
        for _ in 0..tries {
            let mut amounts = vec![0u32; ranks * ranks];
            for _ in 0..filled {
                let (row, column) = (random.random_range(0..ranks), random.random_range(0..ranks));
                if row != column {
                    amounts[row * ranks + column] = random.random_range(1..=LONGEST);
                }
            }
            if amounts.iter().all(|amount| *amount == 0) {
                continue;
            }
            for change in [0u32, 1, 3] {
                // A unit of an amount takes 10 ps x 1000 bytes.
                let shares: Vec<u64> = amounts
                    .iter()
                    .map(|amount| 1000 * u64::from(*amount))
                    .collect();
                let matrix = DemandMatrix::from_matrix(ranks as u32, &shares).unwrap();
                let size = matrix.largest();
                let fabric = format!(
                    "ranks={ranks},reconfiguration={}ns,first_configuration=charged",
                    10 * change
                );
                let (time, bound) = against_the_bound(&fabric, matrix, size, Policy::AllStop);
                let optimum = least(&amounts, ranks, change, &settings, &mut HashMap::new());
                let optimum = 10_000 * u64::from(optimum);
                assert!(
                    bound <= optimum,
                    "{amounts:?} {change}: {bound} above {optimum}"
                );
                cases += 1;
                met += u32::from(time <= optimum);
                worst = worst.max(time as f64 / optimum as f64);
            }
        }
    }
    println!("{met} of {cases} are optimal; the worst takes {worst:.3} times the optimum");
    assert!(
        cases >= 300 && 10 * met >= 8 * cases && worst <= 1.34,
        "{met} of {cases}, {worst}"
    );
}

#[test]
fn dead_ports_are_left_out_and_several_switches_refused() {
    let size = 1 << 24;
    for policy in [Policy::AllStop, Policy::Planes, Policy::PerPort] {
        let fabric = "ranks=9,ports=4,planes=2,dead_ports=3.1+5.1+7.2,reconfiguration=1us";
        let two = "ranks=9,ports=2,planes=2,reconfiguration=1us";
        let [left, alike] = [fabric, two].map(|fabric| {
            let (time, bound) = against_the_bound(fabric, generated("random", 9), size, policy);
            assert!(bound <= time);
            time
        });
        // Ports 0 and 3 are left, on two planes.
        assert_eq!(left, alike, "{}", policy.name());
    }
    let collective = demanding(generated("random", 9));
    for fabric in [
        "ranks=9,ports=2,planes=2,switch_ports=3",
        "ranks=9,ports=2,dead_ports=1.0+2.1",
    ] {
        let fabric = Fabric::parse(&format!("circuit_switch:{fabric}")).unwrap();
        let error = refusal("decomposition", &fabric, collective, None);
        assert!(error.contains("does not run here, on 9 ranks"), "{error}");
    }
}

#[test]
fn auto_takes_a_decomposition_where_blocks_differ() {
    let fabric =
        Fabric::parse("circuit_switch:ranks=16,ports=2,planes=2,reconfiguration=1us").unwrap();
    let collective = demanding(generated("random", 16));
    for policy in [Policy::AllStop, Policy::Planes, Policy::PerPort] {
        let method = TimingModel::from(policy);
        let [auto, direct] = ["auto", "direct"].map(|name| {
            let plan = proved(name, &fabric, collective, 1 << 24, &method);
            (time(&plan, 1 << 24, &method), plan.algorithm)
        });
        assert!(auto.0 < direct.0, "{}", policy.name());
        assert_eq!(auto.1, "decomposition");
    }
}
