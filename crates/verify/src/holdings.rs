//! A proof in one go that a plan which only copies delivers everything: what each rank holds, as
//! ranges of chunks, or as a bit for each where there are few.
//!
//! It follows the rules of `copying` for all chunks of a transfer at once: at the start of its step the
//! source holds them all, and the destination never holds one of them before it gets it. A transfer of
//! a million chunks is then as quick to follow as one of a single chunk, and chunks that many ranks get
//! need not be sorted out of the transfers first. It answers yes or "do not
//! know": where something is wrong, or holdings fall into many ranges, chunks are replayed one by one,
//! and say what is wrong.

use super::form::Admitted;
use opticoll_base::interrupt;
use opticoll_plan::collective::{Collective, Holders};
use opticoll_plan::plan::Plan;

/// The most ranges in which a rank's holding is followed: of an all_to_all over relays, those of the blocks of each source.
const MOST_RANGES: usize = 1 << 12;

/// The most chunks of a collective whose demands are gone through.
const MOST_CHUNKS: u32 = 1 << 26;

/// Chunks as ranges `start..end`, in order, with gaps between them.
#[derive(Clone, Default)]
struct Holding {
    ranges: Vec<(u32, u32)>,
}

impl Holding {
    /// Whether all of `start..end` is held.
    fn covers(&self, start: u32, end: u32) -> bool {
        let after = self.ranges.partition_point(|range| range.0 <= start);
        after > 0 && end <= self.ranges[after - 1].1
    }

    /// Adds `start..end`; false if some of it is held, or there come to be too many ranges.
    fn add(&mut self, start: u32, end: u32) -> bool {
        let place = self.ranges.partition_point(|range| range.0 < start);
        let before = place.checked_sub(1).map(|place| self.ranges[place].1);
        let next = self.ranges.get(place).map(|range| range.0);
        if before.is_some_and(|before| before > start) || next.is_some_and(|next| next < end) {
            return false;
        }
        match (before == Some(start), next == Some(end)) {
            (true, true) => {
                self.ranges[place - 1].1 = self.ranges[place].1;
                self.ranges.remove(place);
            }
            (true, false) => self.ranges[place - 1].1 = end,
            (false, true) => self.ranges[place].0 = start,
            (false, false) => self.ranges.insert(place, (start, end)),
        }
        self.ranges.len() <= MOST_RANGES
    }
}

/// So many chunks at most are held as bits, of so many over all ranks.
const FEW_CHUNKS: u32 = 1 << 16;
const MOST_BITS: u64 = 1 << 26;

/// What each rank holds.
enum Holdings {
    Ranges(Vec<Holding>),
    Bits(HeldBits),
}

impl Holdings {
    fn new(collective: &Collective) -> Holdings {
        let (ranks, chunks) = (collective.ranks(), collective.chunks());
        match chunks <= FEW_CHUNKS && u64::from(ranks) * u64::from(chunks) <= MOST_BITS {
            true => Holdings::Bits(HeldBits::new(ranks, chunks)),
            false => Holdings::Ranges(vec![Holding::default(); ranks as usize]),
        }
    }

    /// Whether a rank holds all of `start..end`.
    #[inline]
    fn covers(&self, rank: u32, start: u32, end: u32) -> bool {
        match self {
            Holdings::Ranges(of_ranks) => of_ranks[rank as usize].covers(start, end),
            Holdings::Bits(bits) => bits.covers(rank, start, end),
        }
    }

    /// Gives `start..end` to a rank; false if it holds some of it, or there come to be too many ranges.
    #[inline]
    fn add(&mut self, rank: u32, start: u32, end: u32) -> bool {
        match self {
            Holdings::Ranges(of_ranks) => of_ranks[rank as usize].add(start, end),
            Holdings::Bits(bits) => bits.add(rank, start, end),
        }
    }
}

/// What each rank holds, a bit for each chunk.
struct HeldBits {
    words_per_rank: usize,
    words: Vec<u64>,
}

impl HeldBits {
    fn new(ranks: u32, chunks: u32) -> HeldBits {
        let words_per_rank = chunks.div_ceil(64) as usize;
        HeldBits {
            words_per_rank,
            words: vec![0; words_per_rank * ranks as usize],
        }
    }

    /// The words of a range of a rank's chunks, each with the bits of these.
    fn masks(&self, rank: u32, start: u32, end: u32) -> impl Iterator<Item = (usize, u64)> + use<> {
        let of_rank = rank as usize * self.words_per_rank;
        (start / 64..end.div_ceil(64)).map(move |word| {
            let first = start.saturating_sub(word * 64);
            let behind = (end - word * 64).min(64);
            let mask = u64::MAX << first & u64::MAX >> (64 - behind);
            (of_rank + word as usize, mask)
        })
    }

    fn covers(&self, rank: u32, start: u32, end: u32) -> bool {
        let mut masks = self.masks(rank, start, end);
        masks.all(|(word, mask)| self.words[word] & mask == mask)
    }

    fn add(&mut self, rank: u32, start: u32, end: u32) -> bool {
        self.masks(rank, start, end).all(|(word, mask)| {
            let held = &mut self.words[word];
            let is_new = *held & mask == 0;
            *held |= mask;
            is_new
        })
    }
}

/// Whether every rank is proved to end with what the collective, which does not combine, demands.
pub(super) fn suffice(plan: &Plan, admitted: &Admitted) -> bool {
    let collective = &plan.schedule.collective;
    if collective.chunks() > MOST_CHUNKS {
        return false;
    }
    let Some(mut holdings) = before(collective) else {
        return false;
    };
    let schedule = &plan.schedule;
    for step in 0..schedule.steps() {
        interrupt::check();
        let founded = admitted.moved(plan, step).all(|(_, moved)| {
            holdings.covers(moved.source, moved.chunk, moved.chunk + moved.count)
        });
        let new = founded
            && admitted.moved(plan, step).all(|(_, moved)| {
                let (start, end) = (moved.chunk, moved.chunk + moved.count);
                holdings.add(moved.destination, start, end)
            });
        if !new {
            return false;
        }
    }
    meet(collective, &holdings)
}

/// What the ranks hold before the collective, if that is in few ranges.
fn before(collective: &Collective) -> Option<Holdings> {
    let mut holdings = Holdings::new(collective);
    for chunk in 0..collective.chunks() {
        interrupt::check();
        let fits = match collective.before(chunk) {
            Holders::One(rank) => holdings.add(rank, chunk, chunk + 1),
            Holders::All => false,
        };
        if !fits {
            return None;
        }
    }
    Some(holdings)
}

/// Whether the ranks hold what is demanded of them after the collective.
fn meet(collective: &Collective, holdings: &Holdings) -> bool {
    let mut for_all = Holding::default();
    for chunk in 0..collective.chunks() {
        interrupt::check();
        let met = match collective.after(chunk) {
            Holders::One(rank) => holdings.covers(rank, chunk, chunk + 1),
            Holders::All => for_all.add(chunk, chunk + 1),
        };
        if !met {
            return false;
        }
    }
    let covers_all = |rank: u32| {
        let mut demanded = for_all.ranges.iter();
        demanded.all(|&(start, end)| holdings.covers(rank, start, end))
    };
    (0..collective.ranks()).all(covers_all)
}

#[cfg(test)]
mod tests {
    use super::{HeldBits, Holding};

    #[test]
    fn ranges_are_sets_of_chunks() {
        // Every order of adding up to three ranges of 0..5, beside a set of chunks.
        let ranges: Vec<(u32, u32)> = (0..5)
            .flat_map(|start| (start + 1..6).map(move |end| (start, end)))
            .collect();
        for &first in &ranges {
            for &second in &ranges {
                for &third in &ranges {
                    let mut holding = Holding::default();
                    // Around the end of a word, and beside another rank.
                    let mut bits = HeldBits::new(2, 67);
                    let mut held = [false; 5];
                    for (start, end) in [first, second, third] {
                        let of = &mut held[start as usize..end as usize];
                        let is_held = of.iter().all(|held| *held);
                        assert_eq!(holding.covers(start, end), is_held);
                        assert_eq!(bits.covers(1, 61 + start, 61 + end), is_held);
                        assert!(!bits.covers(0, 61 + start, 61 + end));
                        let free = of.iter().all(|held| !*held);
                        assert_eq!(holding.add(start, end), free);
                        assert_eq!(bits.add(1, 61 + start, 61 + end), free);
                        if !free {
                            break;
                        }
                        of.fill(true);
                    }
                }
            }
        }
    }
}
