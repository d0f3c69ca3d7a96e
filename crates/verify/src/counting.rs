//! Proof of reductions along trees by counting contributions.
//!
//! Suppose that every rank gives its set of contributions away at most once, and takes nothing more
//! until it receives the result. Then no contribution can count twice, and the number of
//! contributions of a rank decides which copies are correct. A rank is *open* until it has given
//! its set away. At first every rank is open and has its own contribution. The sets of the open
//! ranks are disjoint and together contain all ranks, as long as every delivery is one of these:
//!
//! - An open rank that takes nothing in this step gives its set, once, to an open rank that gives
//!   nothing in this step. The first rank is then no longer open, and the second has both sets.
//! - A rank that had all contributions at the start of the step is copied to a rank that did not,
//!   and which gives and takes nothing else in this step. If one rank has all contributions, no
//!   other rank is open, so that no open set changes.
//!
//! Then no rule is broken, and a rank with as many contributions as there are ranks has all of
//! them. Other deliveries are replayed with sets ([`super::combining`]), which prove them or report
//! violations. Time and memory are proportional to the number of deliveries.

use std::ops::Range;

use super::delivery::Delivery;
use opticoll_plan::collective::{Collective, Holders};
use opticoll_plan::schedule::Action;

const NEVER: u32 = u32::MAX;

/// State of the set of a rank.
#[derive(Clone, Copy)]
struct Tally {
    contributions: u32,
    is_open: bool,
    /// Last step in which the rank gave; `took` is the last step in which it took.
    gave: u32,
    took: u32,
}

const UNTOUCHED: Tally = Tally {
    contributions: 1,
    is_open: true,
    gave: NEVER,
    took: NEVER,
};

/// Tallies of all ranks, for one chunk after the other.
pub(super) struct Counting {
    collective: Collective,
    of_rank: Vec<Tally>,
}

impl Counting {
    pub(super) fn new(collective: Collective) -> Counting {
        Counting {
            collective,
            of_rank: vec![UNTOUCHED; collective.ranks() as usize],
        }
    }

    /// Returns whether counting proves that the deliveries of a chunk break no rule and that all
    /// ranks end with the demanded contributions. The deliveries are in the order of their steps.
    pub(super) fn prove(&mut self, chunk: u32, deliveries: &[Delivery]) -> bool {
        let steps = deliveries.chunk_by(|one, next| one.step == next.step);
        let proved = steps.into_iter().all(|step| self.counts(step)) && self.is_complete(chunk);
        for delivery in deliveries {
            for rank in [delivery.source, delivery.destination] {
                self.of_rank[rank as usize] = UNTOUCHED;
            }
        }
        proved
    }

    /// Counts a step. Returns whether all of its deliveries are allowed.
    fn counts(&mut self, step: &[Delivery]) -> bool {
        let ranks = self.collective.ranks();
        for delivery in step {
            let source = &mut self.of_rank[delivery.source as usize];
            let is_right = match delivery.action {
                Action::Reduce => source.is_open && source.gave != delivery.step,
                Action::Copy => source.contributions == ranks,
            };
            if !is_right {
                return false;
            }
            if delivery.action == Action::Reduce {
                source.gave = delivery.step;
            }
        }
        for delivery in step {
            let given = self.of_rank[delivery.source as usize].contributions;
            let taker = &mut self.of_rank[delivery.destination as usize];
            let is_right = match delivery.action {
                Action::Reduce => taker.is_open,
                Action::Copy => taker.contributions < ranks && taker.took != delivery.step,
            };
            if !is_right || taker.gave == delivery.step {
                return false;
            }
            taker.took = delivery.step;
            taker.contributions = match delivery.action {
                Action::Reduce => taker.contributions + given,
                Action::Copy => ranks,
            };
            taker.is_open &= delivery.action == Action::Reduce;
        }
        for delivery in step {
            if delivery.action == Action::Reduce {
                self.of_rank[delivery.source as usize].is_open = false;
            }
        }
        true
    }

    /// Returns whether all ranks that the collective names have all contributions.
    fn is_complete(&self, chunk: u32) -> bool {
        let demanded: Range<u32> = match self.collective.after(chunk) {
            Holders::One(rank) => rank..rank + 1,
            Holders::All => 0..self.collective.ranks(),
        };
        let demanded = demanded.start as usize..demanded.end as usize;
        let mut demanded = self.of_rank[demanded].iter();
        demanded.all(|tally| tally.contributions == self.collective.ranks())
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;
    use opticoll_plan::collective::CollectiveKind;

    /// Returns whether deliveries break no rule of sets and all ranks end with the demanded
    /// contributions, with sets as bit masks.
    fn holds_by_sets(collective: Collective, deliveries: &[Delivery]) -> bool {
        let all = (1u32 << collective.ranks()) - 1;
        let mut held: Vec<u32> = (0..collective.ranks()).map(|rank| 1 << rank).collect();
        for step in deliveries.chunk_by(|one, next| one.step == next.step) {
            let sent: Vec<u32> = step.iter().map(|one| held[one.source as usize]).collect();
            for (place, delivery) in step.iter().enumerate() {
                let before = step[..place].iter();
                let same = before.filter(|one| one.destination == delivery.destination);
                let mut beside = same.map(|one| one.action).chain([delivery.action]);
                let own = &mut held[delivery.destination as usize];
                let is_right = match delivery.action {
                    Action::Reduce => {
                        *own & sent[place] == 0 && beside.all(|one| one == Action::Reduce)
                    }
                    Action::Copy => {
                        *own & !sent[place] == 0 && *own != sent[place] && beside.count() == 1
                    }
                };
                if !is_right {
                    return false;
                }
                *own |= sent[place];
            }
        }
        match collective.after(0) {
            Holders::One(rank) => held[rank as usize] == all,
            Holders::All => held.iter().all(|&set| set == all),
        }
    }

    /// Counting proves only what sets prove, and proves trees to a root and back.
    #[test]
    fn counting_proves_nothing_that_sets_refute() {
        let mut random = Pcg64::seed_from_u64(7);
        let (mut proved, mut refuted) = (0, 0);
        for _ in 0..20_000 {
            let ranks = random.random_range(2..6u32);
            let kinds = [CollectiveKind::AllReduce, CollectiveKind::ReduceScatter];
            let kind = kinds[random.random_range(0..2usize)];
            let collective = Collective::new(kind, ranks).unwrap();
            // Up a random tree towards rank 0 and down again, sometimes with one number changed.
            let mut deliveries = Vec::new();
            let mut add = |step, source, destination, action| {
                deliveries.push(Delivery {
                    step,
                    source,
                    destination,
                    transfer: 0,
                    action,
                });
            };
            let parents: Vec<u32> = (1..ranks)
                .map(|rank| random.random_range(0..rank))
                .collect();
            for (rank, &parent) in (1..ranks).zip(&parents).rev() {
                add(ranks - rank, rank, parent, Action::Reduce);
            }
            if kind == CollectiveKind::AllReduce {
                for (rank, &parent) in (1..ranks).zip(&parents) {
                    add(ranks + rank, parent, rank, Action::Copy);
                }
            }
            if random.random_range(0..3) > 0 {
                let changed = random.random_range(0..deliveries.len());
                let delivery = &mut deliveries[changed];
                match random.random_range(0..4) {
                    0 => delivery.source = random.random_range(0..ranks),
                    1 => delivery.destination = random.random_range(0..ranks),
                    2 => delivery.step = random.random_range(0..2 * ranks),
                    _ => delivery.action = Action::Copy,
                }
                deliveries.sort_by_key(|delivery| delivery.step);
            }
            let mut counting = Counting::new(collective);
            let is_right = holds_by_sets(collective, &deliveries);
            if counting.prove(0, &deliveries) {
                assert!(is_right, "{ranks} ranks");
                proved += 1;
            } else {
                refuted += u32::from(!is_right);
            }
            assert!(
                counting
                    .of_rank
                    .iter()
                    .all(|one| one.contributions == 1 && one.is_open)
            );
        }
        assert!(
            proved > 6_000 && refuted > 2_000,
            "{proved} proved, {refuted} refuted"
        );
    }
}
