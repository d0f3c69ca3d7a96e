//! Proof of reductions along trees by counting contributions.
//!
//! A rank is *open* until it sends its set of contributions. Suppose that every rank sends its set
//! by at most one reduction, and receives nothing more before it receives the result. Then no
//! contribution counts twice, and the number of contributions of a rank decides which copies are
//! correct. At first every rank is open and has its own contribution. The sets of the open ranks
//! are disjoint and together contain all ranks, as long as every delivery is of one of two kinds:
//!
//! - Reduction: an open rank that receives nothing in this step sends its set, for the only time,
//!   to an open rank that sends nothing in this step. The sender is then no longer open, and the
//!   receiver has both sets.
//! - Copy: a rank that had all contributions at the start of the step sends a copy to a rank that
//!   did not have all of them. The receiver sends and receives nothing else in this step. If one
//!   rank has all contributions, no other rank is open, so that no set of an open rank changes.
//!
//! Under these conditions no rule is broken, and a rank with as many contributions as there are
//! ranks has all of them. All other deliveries are replayed with sets ([`super::combining`]), which
//! prove them or report violations. Time and memory are proportional to the number of deliveries.

use std::ops::Range;

use super::delivery::{Delivery, Effect};
use opticoll_plan::collective::{Collective, Holders};

const NEVER: u32 = u32::MAX;

/// Number of contributions of a rank, and the last steps in which it took part.
#[derive(Clone, Copy)]
struct Tally {
    contributions: u32,
    is_open: bool,
    /// Last step in which the rank sent its set.
    sent_in: u32,
    /// Last step in which the rank received a set.
    received_in: u32,
}

const UNTOUCHED: Tally = Tally {
    contributions: 1,
    is_open: true,
    sent_in: NEVER,
    received_in: NEVER,
};

/// Tally of each rank, for one chunk after another.
pub(super) struct Counting {
    collective: Collective,
    tallies: Vec<Tally>,
}

impl Counting {
    pub(super) fn new(collective: Collective) -> Counting {
        Counting {
            collective,
            tallies: vec![UNTOUCHED; collective.ranks() as usize],
        }
    }

    /// Returns whether counting proves that the deliveries of `chunk` break no rule and that all
    /// ranks end with the demanded contributions. The deliveries are sorted by step.
    pub(super) fn prove(&mut self, chunk: u32, deliveries: &[Delivery]) -> bool {
        let steps = deliveries.chunk_by(|one, next| one.step == next.step);
        let proved = steps.into_iter().all(|step| self.count_step(step)) && self.is_complete(chunk);
        for delivery in deliveries {
            for rank in [delivery.source, delivery.destination] {
                self.tallies[rank as usize] = UNTOUCHED;
            }
        }
        proved
    }

    /// Counts the deliveries of one step. Returns whether all of them are of the two allowed kinds.
    fn count_step(&mut self, step: &[Delivery]) -> bool {
        let ranks = self.collective.ranks();
        for delivery in step {
            let source = &mut self.tallies[delivery.source as usize];
            let is_right = match delivery.effect {
                Effect::Reduce => source.is_open && source.sent_in != delivery.step,
                Effect::Copy => source.contributions == ranks,
            };
            if !is_right {
                return false;
            }
            if delivery.effect == Effect::Reduce {
                source.sent_in = delivery.step;
            }
        }
        for delivery in step {
            let sent = self.tallies[delivery.source as usize].contributions;
            let receiver = &mut self.tallies[delivery.destination as usize];
            let is_right = match delivery.effect {
                Effect::Reduce => receiver.is_open,
                Effect::Copy => {
                    receiver.contributions < ranks && receiver.received_in != delivery.step
                }
            };
            if !is_right || receiver.sent_in == delivery.step {
                return false;
            }
            receiver.received_in = delivery.step;
            receiver.contributions = match delivery.effect {
                Effect::Reduce => receiver.contributions + sent,
                Effect::Copy => ranks,
            };
            receiver.is_open &= delivery.effect == Effect::Reduce;
        }
        for delivery in step {
            if delivery.effect == Effect::Reduce {
                self.tallies[delivery.source as usize].is_open = false;
            }
        }
        true
    }

    /// Returns whether all ranks that need `chunk` at the end have all contributions.
    fn is_complete(&self, chunk: u32) -> bool {
        let demanded: Range<u32> = match self.collective.after(chunk) {
            Holders::One(rank) => rank..rank + 1,
            Holders::All => 0..self.collective.ranks(),
        };
        let demanded = demanded.start as usize..demanded.end as usize;
        let mut demanded = self.tallies[demanded].iter();
        demanded.all(|tally| tally.contributions == self.collective.ranks())
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;
    use opticoll_plan::collective::CollectiveKind;

    /// Returns whether deliveries break no rule and all ranks end with the demanded contributions.
    /// Computes the sets of contributions as bit masks.
    fn holds_by_sets(collective: Collective, deliveries: &[Delivery]) -> bool {
        let all = (1u32 << collective.ranks()) - 1;
        let mut held: Vec<u32> = (0..collective.ranks()).map(|rank| 1 << rank).collect();
        for step in deliveries.chunk_by(|one, next| one.step == next.step) {
            let sent: Vec<u32> = step.iter().map(|one| held[one.source as usize]).collect();
            for (index, delivery) in step.iter().enumerate() {
                let before = step[..index].iter();
                let same = before.filter(|one| one.destination == delivery.destination);
                let mut effects = same.map(|one| one.effect).chain([delivery.effect]);
                let own = &mut held[delivery.destination as usize];
                let is_right = match delivery.effect {
                    Effect::Reduce => {
                        *own & sent[index] == 0 && effects.all(|one| one == Effect::Reduce)
                    }
                    Effect::Copy => {
                        *own & !sent[index] == 0 && *own != sent[index] && effects.count() == 1
                    }
                };
                if !is_right {
                    return false;
                }
                *own |= sent[index];
            }
        }
        match collective.after(0) {
            Holders::One(rank) => held[rank as usize] == all,
            Holders::All => held.iter().all(|&set| set == all),
        }
    }

    /// Counting proves no deliveries that `holds_by_sets` refutes. It proves reductions along a tree to the root, and the copies from the root to the ranks.
    #[test]
    fn counting_proves_nothing_that_sets_refute() {
        let mut random = Pcg64::seed_from_u64(7);
        let (mut proved, mut refuted) = (0, 0);
        for _ in 0..20_000 {
            let ranks = random.random_range(2..6u32);
            let kinds = [CollectiveKind::AllReduce, CollectiveKind::ReduceScatter];
            let kind = kinds[random.random_range(0..2usize)];
            let collective = Collective::new(kind, ranks).unwrap();
            // Reductions along a random tree to rank 0, then copies back, in some cases with one
            // number changed.
            let mut deliveries = Vec::new();
            let mut add = |step, source, destination, effect| {
                deliveries.push(Delivery {
                    step,
                    source,
                    destination,
                    transfer: 0,
                    effect,
                });
            };
            let parents: Vec<u32> = (1..ranks)
                .map(|rank| random.random_range(0..rank))
                .collect();
            for (rank, &parent) in (1..ranks).zip(&parents).rev() {
                add(ranks - rank, rank, parent, Effect::Reduce);
            }
            if kind == CollectiveKind::AllReduce {
                for (rank, &parent) in (1..ranks).zip(&parents) {
                    add(ranks + rank, parent, rank, Effect::Copy);
                }
            }
            if random.random_range(0..3) > 0 {
                let changed = random.random_range(0..deliveries.len());
                let delivery = &mut deliveries[changed];
                match random.random_range(0..4) {
                    0 => delivery.source = random.random_range(0..ranks),
                    1 => delivery.destination = random.random_range(0..ranks),
                    2 => delivery.step = random.random_range(0..2 * ranks),
                    _ => delivery.effect = Effect::Copy,
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
                    .tallies
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
