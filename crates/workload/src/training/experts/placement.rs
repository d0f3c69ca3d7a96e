//! Copies of experts, their placement on the ranks of an expert-parallel group, and the division of
//! tokens among them.
//!
//! With N further copies, x + N instances of experts share E ranks, at most ceil((x + N) / E) on
//! each rank.
//!
//! **Copies.** Each further copy goes to the expert with the most tokens per copy, as in DeepSeek's
//! EPLB (github.com/deepseek-ai/EPLB, `replicate_experts`). No other numbers of copies have a
//! smaller maximum of tokens per copy: as long as an instance has more tokens than the best
//! maximum, its expert has fewer copies than in the best solution, so the rule never exceeds the
//! copies of the best solution before it reaches the best maximum.
//!
//! **Placement.** Instances are placed in descending order of their tokens, each on the rank with
//! the fewest tokens that has room: longest processing time first (LPT), as in EPLB
//! (`balanced_packing`). Without the limit on instances, and without further copies, the most
//! tokens of a rank are at most 4/3 - 1 / (3 E) times those of the best placement (Graham, Bounds
//! on Multiprocessing Timing Anomalies, 1969).
//!
//! **Division.** The tokens of an expert divide among its copies such that the most tokens of a
//! rank are as few as possible, as in DeepSeek's LPLB, which solves a linear program for each
//! batch. Here each expert in turn levels the ranks of its copies until nothing changes, but at
//! most `TURNS` times. Every turn is the best one for its expert. The turns decrease the sum of
//! squares of the ranks' tokens, a convex function with one constraint for each expert, to its
//! minimum. At the minimum, the maximum is smallest, too.
//! All tokens are at the first copies in the beginning, so copies never slow down a layer.
//!
//! **Lower bounds** on the most tokens of a rank, for any placement of the copies: the mean over
//! the ranks; the tokens per copy of an expert; and, because two of E + 1 experts share a rank, the
//! E-th and the (E + 1)-th most tokens of experts without further copies together.

use std::cmp::Reverse;

/// Copy of an expert, which is placed on a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instance {
    /// The expert.
    pub expert: usize,
    /// Number of tokens of the instance.
    pub load: u128,
    /// Rank of the instance, if it is given.
    pub rank: Option<usize>,
}

/// Returns the number of copies of each expert, for `further` copies besides one of each expert.
/// `loads` contains the number of tokens of each expert. An expert has at most `most` copies.
pub fn copies(loads: &[u128], further: u64, most: u64) -> Vec<u64> {
    let mut counts = vec![1; loads.len()];
    for _ in 0..further {
        let open = (0..loads.len()).filter(|&expert| counts[expert] < most);
        let more = |one: &usize, other: &usize| {
            let scaled = |expert: usize, by: usize| loads[expert] * u128::from(counts[by]);
            // Among equal experts, the first one gets the copy.
            scaled(*one, *other)
                .cmp(&scaled(*other, *one))
                .then(other.cmp(one))
        };
        let Some(expert) = open.max_by(more) else {
            break;
        };
        counts[expert] += 1;
    }
    counts
}

/// Returns the rank of each instance. A rank has at most `room` instances. Instances with a given
/// rank are placed first, the other instances longest first. A rank has two copies of an expert
/// only if no other rank has room.
pub fn longest_first(instances: &[Instance], ranks: usize, room: usize) -> Vec<usize> {
    let mut loads = vec![0u128; ranks];
    let mut placed: Vec<Vec<usize>> = vec![Vec::new(); ranks];
    let mut of_instance = vec![0; instances.len()];
    let mut order: Vec<usize> = (0..instances.len()).collect();
    order.sort_by_key(|&one| (instances[one].rank.is_none(), Reverse(instances[one].load)));
    for number in order {
        let Instance { expert, load, rank } = instances[number];
        let open = (0..ranks).filter(|&rank| placed[rank].len() < room);
        let best = open.min_by_key(|&rank| (placed[rank].contains(&expert), loads[rank], rank));
        let rank = rank.or(best).unwrap_or(0);
        loads[rank] += load;
        placed[rank].push(expert);
        of_instance[number] = rank;
    }
    of_instance
}

/// Maximum number of turns of each expert in [`divided`]. An assumption: turns end earlier if
/// nothing changes, and rounding to whole tokens alone changes little.
const TURNS: usize = 64;

/// Returns the number of tokens of each copy, indexed by expert and copy. `loads` contains the
/// number of tokens of each expert, and `hosts` the ranks of its copies.
pub fn divided(loads: &[u128], hosts: &[Vec<usize>], ranks: usize) -> Vec<Vec<u128>> {
    let mut sums = vec![0u128; ranks];
    let mut shares: Vec<Vec<u128>> = Vec::with_capacity(loads.len());
    for (load, hosts) in loads.iter().zip(hosts) {
        let mut share = vec![0; hosts.len()];
        share[0] = *load;
        sums[hosts[0]] += load;
        shares.push(share);
    }
    for _ in 0..TURNS {
        let mut changed = false;
        for (expert, hosts) in hosts
            .iter()
            .enumerate()
            .filter(|(_, hosts)| hosts.len() > 1)
        {
            for (rank, share) in hosts.iter().zip(&shares[expert]) {
                sums[*rank] -= share;
            }
            let share = level(loads[expert], hosts, &sums);
            for (rank, share) in hosts.iter().zip(&share) {
                sums[*rank] += share;
            }
            changed |= share != shares[expert];
            shares[expert] = share;
        }
        if !changed {
            break;
        }
    }
    shares
}

/// Divides `load` among the ranks `hosts` such that the ranks that get a part have the same sum,
/// except for rounding, and no other rank has less. `sums` contains the other tokens of each rank.
/// A rank that occurs twice gets its part once.
fn level(load: u128, hosts: &[usize], sums: &[u128]) -> Vec<u128> {
    let mut order: Vec<usize> = (0..hosts.len())
        .filter(|&copy| !hosts[..copy].contains(&hosts[copy]))
        .collect();
    order.sort_by_key(|&copy| sums[hosts[copy]]);
    let (mut count, mut total) = (0, load);
    for &copy in &order {
        // A rank takes part if the common level is above its own tokens.
        let own = sums[hosts[copy]];
        if count > 0 && total <= own * count {
            break;
        }
        (count, total) = (count + 1, total + own);
    }
    let mut share = vec![0; hosts.len()];
    for (place, &copy) in order.iter().take(count as usize).enumerate() {
        let whole = total / count + u128::from((place as u128) < total % count);
        share[copy] = whole - sums[hosts[copy]].min(whole);
    }
    share
}

/// Returns a lower bound on the most tokens of a rank, whatever the placement. `loads` contains the
/// number of tokens of each expert, and `copies` the number of its copies.
pub fn lower_bound(loads: &[u128], copies: &[u64], ranks: usize) -> u128 {
    let mean = loads.iter().sum::<u128>().div_ceil(ranks as u128);
    let parts = loads.iter().zip(copies);
    let part = parts
        .map(|(load, &copies)| load.div_ceil(copies.into()))
        .max();
    let single = loads.iter().zip(copies).filter(|(_, copies)| **copies == 1);
    let mut single: Vec<u128> = single.map(|(load, _)| *load).collect();
    single.sort_unstable_by_key(|load| Reverse(*load));
    let two = single.get(ranks.wrapping_sub(1)).zip(single.get(ranks));
    mean.max(part.unwrap_or(0))
        .max(two.map_or(0, |(one, other)| one + other))
}
