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
//! on Multiprocessing Timing Anomalies, 1969). Then the busiest rank swaps an instance with another
//! rank, or gives one away, as long as both ranks end with fewer tokens than the busiest rank had.
//! With further copies, placement and division take turns: the parts of the copies become the
//! tokens of the instances, which are swapped and divided again, until the busiest rank has no
//! fewer tokens. Swaps and divisions both decrease the sum of squares of the ranks' tokens.
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
//! the ranks; the tokens per copy of an expert; because two of E + 1 experts share a rank, the E-th
//! and the (E + 1)-th most tokens of experts without further copies together; and, because the
//! other ranks have room for only (E - 1) R of the x + N instances (R is the room of a rank), the
//! most tokens of such an expert and the fewest tokens of the remaining instances of its rank
//! together.

use std::cmp::Reverse;

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

/// Copies of experts on ranks.
struct Instances {
    /// Expert of each instance.
    experts: Vec<usize>,
    /// Number of tokens of each instance.
    loads: Vec<u128>,
    /// True for each instance whose rank is given.
    given: Vec<bool>,
    /// Instances of each rank.
    placed: Vec<Vec<usize>>,
    /// Number of tokens of each rank.
    sums: Vec<u128>,
    /// Maximum number of instances of a rank.
    room: usize,
}

/// Returns the ranks of the copies of each expert. `loads` contains the number of tokens of each
/// expert, `copies` the number of its copies, and `given` the rank of its first copy if this rank
/// is given. A rank has at most `room` copies.
pub fn hosts(
    loads: &[u128],
    copies: &[u64],
    given: &[Option<usize>],
    ranks: usize,
    room: usize,
) -> Vec<Vec<usize>> {
    let mut instances = Instances::new(loads, copies, given, ranks, room);
    instances.relieve();
    let mut best = instances.hosts(loads.len());
    if copies.iter().all(|&copies| copies == 1) {
        return best;
    }
    let mut shares = divided(loads, &best, ranks);
    loop {
        let least = most(&best, &shares, ranks);
        instances.assign(&shares);
        instances.relieve();
        let next = instances.hosts(loads.len());
        shares = divided(loads, &next, ranks);
        if most(&next, &shares, ranks) >= least {
            return best;
        }
        best = next;
    }
}

/// Returns the most tokens of a rank.
fn most(hosts: &[Vec<usize>], shares: &[Vec<u128>], ranks: usize) -> u128 {
    let mut sums = vec![0; ranks];
    for (rank, share) in hosts.iter().flatten().zip(shares.iter().flatten()) {
        sums[*rank] += share;
    }
    sums.into_iter().max().unwrap_or(0)
}

impl Instances {
    /// Places the instances longest first, each with an equal part of the tokens of its expert.
    fn new(
        loads: &[u128],
        copies: &[u64],
        given: &[Option<usize>],
        ranks: usize,
        room: usize,
    ) -> Instances {
        let mut instances = Instances {
            experts: Vec::new(),
            loads: Vec::new(),
            given: Vec::new(),
            placed: vec![Vec::new(); ranks],
            sums: vec![0; ranks],
            room,
        };
        for (expert, (load, &copies)) in loads.iter().zip(copies).enumerate() {
            for copy in 0..copies {
                instances.experts.push(expert);
                instances.loads.push(load / u128::from(copies));
                let rank = given[expert].filter(|_| copy == 0);
                instances.given.push(rank.is_some());
                if let Some(rank) = rank {
                    instances.place(instances.experts.len() - 1, rank);
                }
            }
        }
        let all = 0..instances.experts.len();
        let mut order: Vec<usize> = all.filter(|&one| !instances.given[one]).collect();
        order.sort_by_key(|&one| Reverse(instances.loads[one]));
        for one in order {
            let open = (0..ranks).filter(|&rank| instances.placed[rank].len() < room);
            // A second copy on a rank relieves no rank.
            let expert = instances.experts[one];
            let second = |rank: usize| instances.has(rank, expert, None);
            let best = open.min_by_key(|&rank| (second(rank), instances.sums[rank], rank));
            instances.place(one, best.unwrap_or(0));
        }
        instances
    }

    fn place(&mut self, one: usize, rank: usize) {
        self.placed[rank].push(one);
        self.sums[rank] += self.loads[one];
    }

    /// Returns whether a rank has a copy of an expert besides the instance `except`.
    fn has(&self, rank: usize, expert: usize, except: Option<usize>) -> bool {
        let mut others = self.placed[rank].iter();
        others.any(|&other| Some(other) != except && self.experts[other] == expert)
    }

    /// Separates copies of the same expert. Then relieves the busiest rank until no swap does.
    fn relieve(&mut self) {
        for rank in 0..self.placed.len() {
            for one in self.placed[rank].clone() {
                if self.has(rank, self.experts[one], Some(one)) {
                    self.swap(rank, &[one], u128::MAX);
                }
            }
        }
        let busiest = |sums: &[u128]| (0..sums.len()).max_by_key(|&rank| sums[rank]);
        while let Some(rank) = busiest(&self.sums) {
            if !self.swap(rank, &self.placed[rank].clone(), self.sums[rank]) {
                break;
            }
        }
    }

    /// Moves one of the instances `ones` of `rank` to another rank, or swaps it with an instance of
    /// the other rank. Of all swaps, takes that after which the busier of both ranks has the fewest
    /// tokens, if these are fewer than `limit`. Returns whether there is such a swap.
    fn swap(&mut self, rank: usize, ones: &[usize], limit: u128) -> bool {
        let mut best = (limit, None);
        for target in (0..self.sums.len()).filter(|&target| target != rank) {
            let empty = (self.placed[target].len() < self.room).then_some(None);
            let others = self.placed[target].iter().copied().map(Some);
            for other in empty.into_iter().chain(others) {
                for &one in ones {
                    let back = other.map_or(0, |other| self.loads[other]);
                    let here = self.sums[rank] - self.loads[one] + back;
                    let there = self.sums[target] - back + self.loads[one];
                    if here.max(there) < best.0 && self.may_swap(rank, one, target, other) {
                        best = (here.max(there), Some((one, target, other)));
                    }
                }
            }
        }
        let Some((one, target, other)) = best.1 else {
            return false;
        };
        for (one, from, to) in [(Some(one), rank, target), (other, target, rank)] {
            if let Some(one) = one {
                self.placed[from].retain(|&other| other != one);
                self.sums[from] -= self.loads[one];
                self.place(one, to);
            }
        }
        true
    }

    /// Returns whether no rank is given for two instances, and they meet no copies of their experts
    /// on each other's ranks.
    fn may_swap(&self, rank: usize, one: usize, target: usize, other: Option<usize>) -> bool {
        let comes =
            |other: usize| !self.given[other] && !self.has(rank, self.experts[other], Some(one));
        !self.given[one] && !self.has(target, self.experts[one], other) && other.is_none_or(comes)
    }

    /// Returns the ranks of the copies of each of `experts` experts, in the order of the copies.
    fn hosts(&self, experts: usize) -> Vec<Vec<usize>> {
        let mut rank_of = vec![0; self.experts.len()];
        for (rank, placed) in self.placed.iter().enumerate() {
            placed.iter().for_each(|&one| rank_of[one] = rank);
        }
        let mut hosts = vec![Vec::new(); experts];
        for (expert, rank) in self.experts.iter().zip(rank_of) {
            hosts[*expert].push(rank);
        }
        hosts
    }

    /// Gives each instance the tokens in `shares`, indexed by expert and copy.
    fn assign(&mut self, shares: &[Vec<u128>]) {
        self.loads = shares.concat();
        for (sum, placed) in self.sums.iter_mut().zip(&self.placed) {
            *sum = placed.iter().map(|&one| self.loads[one]).sum();
        }
    }
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

/// Returns a lower bound on the most tokens of a rank, whatever the placement of at most `room`
/// copies on a rank. `loads` contains the number of tokens of each expert, and `copies` the number
/// of its copies.
pub fn lower_bound(loads: &[u128], copies: &[u64], ranks: usize, room: usize) -> u128 {
    let mean = loads.iter().sum::<u128>().div_ceil(ranks as u128);
    let parts = loads.iter().zip(copies);
    let part = parts
        .map(|(load, &copies)| load.div_ceil(copies.into()))
        .max();
    let single = loads.iter().zip(copies).filter(|(_, copies)| **copies == 1);
    let mut single: Vec<u128> = single.map(|(load, _)| *load).collect();
    single.sort_unstable_by_key(|load| Reverse(*load));
    let two = single.get(ranks.wrapping_sub(1)).zip(single.get(ranks));
    // A copy of an expert with several copies may have no tokens.
    let instances: u64 = copies.iter().sum();
    let least = (instances as usize).saturating_sub((ranks - 1) * room);
    let idle = instances as usize - single.len();
    let others = least
        .saturating_sub(1 + idle)
        .min(single.len().saturating_sub(1));
    let busiest = single.first().map_or(0, |most| {
        most + single.iter().rev().take(others).sum::<u128>()
    });
    mean.max(part.unwrap_or(0))
        .max(two.map_or(0, |(one, other)| one + other))
        .max(busiest)
}
