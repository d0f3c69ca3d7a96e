//! Proof of barriers, for a limited number of ranks at a time.
//!
//! A rank has *heard* of rank x if a chain of signals leads from x to this rank. Which ranks have
//! heard of x does not depend on which ranks have heard of other ranks. The signals are therefore
//! replayed several
//! times, each time for [`COLUMNS`] ranks x. One replay needs 128 N bytes for N ranks, whereas sets
//! of all ranks would need N^2 / 8 bytes.
//!
//! A signal is *useful* if its receiver hears of a rank of which it had not heard at the start of
//! the step; this is decided after all replays. Barriers that this module cannot prove are replayed
//! with sets ([`super::combining`]), which also reports violations.

use std::collections::BTreeSet;
use std::ops::Range;

use super::delivery::{Delivery, Effect};
use opticoll_base::interrupt;

const WORDS: usize = 16;

/// Number of ranks whose signals are followed together in one replay.
const COLUMNS: usize = 64 * WORDS;

/// Set of ranks of which a rank has heard, as bits.
type Heard = [u64; WORDS];

/// Returns whether each of `ranks` ranks hears of all ranks, every signal is useful, and no step
/// repeats a signal. The deliveries are sorted by step.
pub(super) fn prove(ranks: u32, deliveries: &[Delivery]) -> bool {
    let steps = || deliveries.chunk_by(|one, next| one.step == next.step);
    if !steps().all(are_different_signals) {
        return false;
    }
    let mut is_useful = vec![false; deliveries.len()];
    let ranks = ranks as usize;
    for first in (0..ranks).step_by(COLUMNS) {
        interrupt::check();
        let columns = first..ranks.min(first + COLUMNS);
        let mut heard = initial_state(ranks, columns.clone());
        let mut place = 0;
        for step in steps() {
            replay(step, &mut heard, &mut is_useful[place..][..step.len()]);
            place += step.len();
        }
        let full = bits(columns.len());
        if heard.iter().any(|one| *one != full) {
            return false;
        }
    }
    is_useful.iter().all(|&one| one)
}

/// Returns whether the step has only signals, with at most one from a rank to another rank.
fn are_different_signals(step: &[Delivery]) -> bool {
    let mut ends = BTreeSet::new();
    step.iter()
        .all(|one| one.effect == Effect::Reduce && ends.insert((one.source, one.destination)))
}

/// Returns the state at the start: each rank of `columns` has heard of itself only.
fn initial_state(ranks: usize, columns: Range<usize>) -> Vec<Heard> {
    let mut heard = vec![[0; WORDS]; ranks];
    for (column, rank) in columns.enumerate() {
        heard[rank][column / 64] |= 1 << (column % 64);
    }
    heard
}

/// Returns a set with the first `columns` bits.
fn bits(columns: usize) -> Heard {
    let mut mask = [0; WORDS];
    for column in 0..columns {
        mask[column / 64] |= 1u64 << (column % 64);
    }
    mask
}

/// Replays a step and marks its useful signals in `is_useful`.
fn replay(step: &[Delivery], heard: &mut [Heard], is_useful: &mut [bool]) {
    let sent: Vec<Heard> = step.iter().map(|one| heard[one.source as usize]).collect();
    for ((delivery, sent), is_useful) in step.iter().zip(&sent).zip(is_useful) {
        let heard_before = &heard[delivery.destination as usize];
        *is_useful |= sent
            .iter()
            .zip(heard_before)
            .any(|(sent, heard_before)| sent & !heard_before != 0);
    }
    for (delivery, sent) in step.iter().zip(&sent) {
        let heard_before = &mut heard[delivery.destination as usize];
        for (heard_before, sent) in heard_before.iter_mut().zip(sent) {
            *heard_before |= sent;
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;

    use super::*;

    fn signal(step: u32, source: u32, destination: u32) -> Delivery {
        Delivery {
            step,
            source,
            destination,
            transfer: 0,
            effect: Effect::Reduce,
        }
    }

    /// Returns what `prove` should return. Computes the sets of ranks signal by signal.
    fn holds_by_sets(ranks: u32, deliveries: &[Delivery]) -> bool {
        let mut heard: Vec<BTreeSet<u32>> = (0..ranks).map(|rank| [rank].into()).collect();
        for step in deliveries.chunk_by(|one, next| one.step == next.step) {
            let before = heard.clone();
            let mut ends = BTreeSet::new();
            for one in step {
                let (from, to) = (one.source as usize, one.destination as usize);
                if !ends.insert((from, to)) || before[from].is_subset(&before[to]) {
                    return false;
                }
                heard[to].extend(&before[from]);
            }
        }
        heard.iter().all(|one| one.len() == ranks as usize)
    }

    #[test]
    fn proofs_agree_with_sets_of_numbers() {
        let mut random = Pcg64::seed_from_u64(11);
        let (mut proved, mut refuted) = (0, 0);
        for _ in 0..20_000 {
            let ranks = random.random_range(2..7u32);
            // All ranks signal to rank 0, which signals back, in any order. In some cases a signal
            // is changed, added or removed.
            let mut deliveries: Vec<Delivery> = (1..ranks)
                .flat_map(|rank| [signal(0, rank, 0), signal(1, 0, rank)])
                .collect();
            let place = random.random_range(0..deliveries.len());
            match random.random_range(0..6) {
                0 => deliveries[place].source = random.random_range(0..ranks),
                1 => deliveries[place].step = random.random_range(0..3),
                2 => drop(deliveries.remove(place)),
                3 => deliveries.push(signal(
                    random.random_range(0..3),
                    random.random_range(0..ranks),
                    random.random_range(0..ranks),
                )),
                _ => (),
            }
            deliveries.sort_by_key(|one| one.step);
            let is_right = holds_by_sets(ranks, &deliveries);
            assert_eq!(prove(ranks, &deliveries), is_right, "{ranks} ranks");
            proved += u32::from(is_right);
            refuted += u32::from(!is_right);
        }
        assert!(proved > 5_000 && refuted > 5_000, "{proved} {refuted}");
    }

    #[test]
    fn ranks_beyond_the_first_columns_are_heard_of() {
        // A chain of signals to rank 0 and back, and the same chain without its first signal.
        let ranks = 3 * COLUMNS as u32 + 5;
        let forth = (1..ranks).rev().map(|rank| (rank, rank - 1));
        let back = (1..ranks).map(|rank| (rank - 1, rank));
        let chain: Vec<Delivery> = forth
            .chain(back)
            .zip(0..)
            .map(|((from, to), step)| signal(step, from, to))
            .collect();
        assert!(prove(ranks, &chain));
        assert!(!prove(ranks, &chain[1..]));
    }
}
