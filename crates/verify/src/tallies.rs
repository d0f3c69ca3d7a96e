//! Reductions along trees, proved by counting.
//!
//! Where every rank gives away what it holds of a chunk at most once, and takes nothing more until it is given the
//! result, no contribution can be counted twice, and how many contributions a rank holds says which copies are right.
//! A rank is *open* until it has given its set away. As long as all goes on as follows, the sets of the open ranks are disjoint
//! and make up all ranks: at first each has its own, and
//!
//! - an open rank that takes in nothing in this step gives its set, once, to an open rank that gives nothing in this step. The
//!   first is open no more, and the second has both sets;
//! - a rank that held all contributions when the step began is copied to one that does not, and gives and takes nothing else in this
//!   step. If one rank holds all, no other is open, so no open set changes.
//!
//! No rule is broken then, and who holds as many contributions as there are ranks holds all. Whatever goes on in another
//! way is replayed with the sets themselves ([`super::combining`]), which is right for it or says what is wrong. Time and memory are
//! those of the deliveries.

use std::ops::Range;

use super::delivery::Delivery;
use opticoll_plan::collective::{Collective, Holders};
use opticoll_plan::schedule::Action;

const NEVER: u32 = u32::MAX;

/// What is known of the set of a rank.
#[derive(Clone, Copy)]
struct Tally {
    contributions: u32,
    is_open: bool,
    /// The step in which it gave last, and in which it took last.
    gave: u32,
    took: u32,
}

const UNTOUCHED: Tally = Tally {
    contributions: 1,
    is_open: true,
    gave: NEVER,
    took: NEVER,
};

/// The tallies of all ranks for one chunk after the other.
pub(super) struct Tallies {
    collective: Collective,
    of_rank: Vec<Tally>,
}

impl Tallies {
    pub(super) fn new(collective: Collective) -> Tallies {
        Tallies {
            collective,
            of_rank: vec![UNTOUCHED; collective.ranks() as usize],
        }
    }

    /// Whether counting proves that the deliveries of a chunk break no rule and that all ranks get what is demanded.
    /// The deliveries are in the order of their steps.
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

    /// Whether a step goes on as it must; then it is counted.
    fn counts(&mut self, step: &[Delivery]) -> bool {
        let all = self.collective.ranks();
        for delivery in step {
            let source = &mut self.of_rank[delivery.source as usize];
            let is_right = match delivery.action {
                Action::Reduce => source.is_open && source.gave != delivery.step,
                Action::Copy => source.contributions == all,
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
                Action::Copy => taker.contributions < all && taker.took != delivery.step,
            };
            if !is_right || taker.gave == delivery.step {
                return false;
            }
            taker.took = delivery.step;
            taker.contributions = match delivery.action {
                Action::Reduce => taker.contributions + given,
                Action::Copy => all,
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

    /// Whether deliveries break no rule of sets and give the ranks what they must have, with the sets as masks.
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

    /// What counting proves is right by the sets; trees there and back are proved.
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
            let mut tallies = Tallies::new(collective);
            let is_right = holds_by_sets(collective, &deliveries);
            if tallies.prove(0, &deliveries) {
                assert!(is_right, "{ranks} ranks");
                proved += 1;
            } else {
                refuted += u32::from(!is_right);
            }
            assert!(
                tallies
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
