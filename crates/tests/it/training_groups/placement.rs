//! Placement of copies of experts: near the best of all placements, and above the lower bound.

use opticoll::workload::training::experts::placement::{copies, divided, hosts, lower_bound};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// The least maximum of tokens per copy, by trying all numbers of copies.
fn best_copies(loads: &[u128], further: u64, most: u64) -> f64 {
    let Some((first, rest)) = loads.split_first() else {
        return 0.0;
    };
    let options = (0..=further.min(most - 1)).map(|more| {
        let each = *first as f64 / (more + 1) as f64;
        each.max(best_copies(rest, further - more, most))
    });
    options.fold(f64::INFINITY, f64::min)
}

/// Most tokens of a rank, with `copies` placed by load.
fn placed(loads: &[u128], copies: &[u64], ranks: usize, room: usize) -> u128 {
    let hosts = hosts(loads, copies, &vec![None; loads.len()], ranks, room);
    let shares = divided(loads, &hosts, ranks);
    let (mut sums, mut counts) = (vec![0; ranks], vec![0; ranks]);
    for (rank, share) in hosts.iter().flatten().zip(shares.iter().flatten()) {
        sums[*rank] += share;
        counts[*rank] += 1;
    }
    for (hosts, copies) in hosts.iter().zip(copies) {
        let different: BTreeSet<&usize> = hosts.iter().collect();
        assert_eq!(different.len() as u64, *copies);
    }
    assert!(counts.iter().all(|count| *count <= room));
    sums.into_iter().max().unwrap()
}

/// Most tokens of a rank if tokens divide among the copies of their experts in the best way. A set
/// of ranks computes for all experts that have copies on these ranks only. By the theorem of
/// maximum flow and minimum cut, one of these sets determines the best maximum.
fn best_division(loads: &[u128], hosts: &[Vec<usize>], ranks: usize) -> f64 {
    let of_set = (1..1usize << ranks).map(|set| {
        let inside = |hosts: &&Vec<usize>| hosts.iter().all(|rank| set >> rank & 1 == 1);
        let all = hosts.iter().zip(loads).filter(|(hosts, _)| inside(hosts));
        all.map(|(_, load)| *load as f64).sum::<f64>() / f64::from(set.count_ones())
    });
    of_set.fold(0.0, f64::max)
}

/// Most tokens of a rank in the best placement of copies and division of tokens.
fn best(loads: &[u128], copies: &[u64], ranks: usize, room: usize) -> f64 {
    best_placement(loads, copies, &mut Vec::new(), &mut vec![room; ranks])
}

/// Least [`best_division`] over all placements of copies, of which `hosts` are placed.
fn best_placement(
    loads: &[u128],
    copies: &[u64],
    hosts: &mut Vec<Vec<usize>>,
    rooms: &mut [usize],
) -> f64 {
    let ranks = rooms.len();
    let Some(&count) = copies.get(hosts.len()) else {
        return best_division(loads, hosts, ranks);
    };
    let mut best = f64::INFINITY;
    for set in 1..1usize << ranks {
        let chosen: Vec<usize> = (0..ranks).filter(|rank| set >> rank & 1 == 1).collect();
        if chosen.len() as u64 != count || chosen.iter().any(|&rank| rooms[rank] == 0) {
            continue;
        }
        chosen.iter().for_each(|&rank| rooms[rank] -= 1);
        hosts.push(chosen);
        best = best.min(best_placement(loads, copies, hosts, rooms));
        let chosen = hosts.pop().unwrap();
        chosen.iter().for_each(|&rank| rooms[rank] += 1);
    }
    best
}

/// Loads of experts whose popularity follows a power of their place, with noise: between equal
/// experts and an exponent of 2.
fn random_loads(experts: usize, state: &mut u64) -> Vec<u128> {
    let mut random = |below: u64| {
        *state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (*state >> 33) % below
    };
    let exponent = random(200) as f64 / 100.0;
    let load = |_| {
        let place = 1 + random(experts as u64);
        let noise = 0.5 + random(1000) as f64 / 1000.0;
        1 + (1e6 * noise * (place as f64).powf(-exponent)) as u128
    };
    (0..experts).map(load).collect()
}

/// The page on experts states these numbers.
#[test]
fn placements_by_load_are_near_the_best() {
    let mut state = 1;
    for (experts, ranks, further, cases, mean, worst) in
        [(9, 3, 0, 200, 0.001, 0.025), (6, 3, 3, 200, 0.005, 0.085)]
    {
        let mut above = Vec::new();
        for case in 0..cases {
            let loads = random_loads(experts, &mut state);
            let further = if further == 0 { 0 } else { 1 + case % further };
            let counts = copies(&loads, further, ranks as u64);
            let room = (experts + further as usize).div_ceil(ranks);
            let found = placed(&loads, &counts, ranks, room) as f64;
            let best = best(&loads, &counts, ranks, room);
            assert!(lower_bound(&loads, &counts, ranks, room) as f64 <= best + 1.0);
            above.push(found / best - 1.0);
        }
        let of_all = above.iter().sum::<f64>() / above.len() as f64;
        let most = above.iter().copied().fold(0.0, f64::max);
        println!("{experts} experts, {ranks} ranks: {of_all:.4} on average, at most {most:.4}");
        assert!(of_all <= mean && most <= worst, "{of_all} {most}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_placement_by_load_is_within_a_third_of_the_best(
        loads in prop::collection::vec(0u128..100, 1..8),
        ranks in 1usize..4,
    ) {
        let ones = vec![1; loads.len()];
        let best_load = best(&loads, &ones, ranks, loads.len()) as u128;
        let found = placed(&loads, &ones, ranks, loads.len());
        // Graham 1969: 4/3 - 1 / (3 E).
        prop_assert!(3 * ranks as u128 * found <= (4 * ranks as u128 - 1) * best_load);
        prop_assert!(lower_bound(&loads, &ones, ranks, loads.len()) <= best_load);
    }

    #[test]
    fn ranks_with_room_for_few_experts_stay_above_the_bound(
        loads in prop::collection::vec(0u128..100, 1..8),
        ranks in 1usize..4,
    ) {
        let room = loads.len().div_ceil(ranks);
        let ones = vec![1; loads.len()];
        let best_load = best(&loads, &ones, ranks, room) as u128;
        let found = placed(&loads, &ones, ranks, room);
        let bound = lower_bound(&loads, &ones, ranks, room);
        prop_assert!(bound <= best_load && best_load <= found);
    }

    #[test]
    fn copies_minimize_the_most_tokens_of_a_copy(
        loads in prop::collection::vec(0u128..100, 1..6),
        further in 0u64..6,
        most in 2u64..4,
    ) {
        let counts = copies(&loads, further, most);
        let found = loads.iter().zip(&counts).map(|(load, count)| *load as f64 / *count as f64);
        let found = found.fold(0.0, f64::max);
        prop_assert!((found - best_copies(&loads, further, most)).abs() < 1e-9);
        prop_assert!(counts.iter().all(|count| (1..=most).contains(count)));
    }

    #[test]
    fn tokens_divide_among_copies_in_the_best_way(
        experts in prop::collection::vec(
            (0u128..1000, prop::collection::vec(0usize..4, 1..4)),
            1..7,
        ),
    ) {
        let ranks = 4;
        let (loads, hosts): (Vec<u128>, Vec<Vec<usize>>) = experts.into_iter().unzip();
        let mut sums = vec![0; ranks];
        for (expert, shares) in divided(&loads, &hosts, ranks).iter().enumerate() {
            prop_assert_eq!(shares.iter().sum::<u128>(), loads[expert]);
            for (rank, share) in hosts[expert].iter().zip(shares) {
                sums[*rank] += share;
            }
        }
        let best = best_division(&loads, &hosts, ranks);
        let most = *sums.iter().max().unwrap() as f64;
        // Whole tokens: each expert may round up.
        prop_assert!(best <= most && most <= best + loads.len() as f64, "{} {}", best, most);
        let counts: Vec<u64> = hosts.iter().map(|hosts| hosts.len() as u64).collect();
        let on = |rank| hosts.iter().flatten().filter(|&&host| host == rank).count();
        let room = (0..ranks).map(on).max().unwrap();
        prop_assert!(lower_bound(&loads, &counts, ranks, room) as f64 <= most);
    }
}
