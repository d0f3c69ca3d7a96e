//! Proof in one pass that a plan which only copies delivers everything: the holding of each rank as
//! ranges of chunks, or as bits if the chunks are few.
//!
//! The proof follows the rules of `copying` for all chunks of a transfer at the same time: at the
//! start of the step the source holds them all, and the destination holds none of them before it
//! receives them. So a transfer of a million chunks takes as long as a transfer of one chunk, and
//! transfers need not be sorted by chunk. The result is "proved" or "unknown": if a rule is broken,
//! or if holdings consist of too many ranges, the chunks are replayed one by one, and the replay
//! reports violations.

use super::form::Admitted;
use opticoll_base::interrupt;
use opticoll_plan::collective::{Collective, Holders};
use opticoll_plan::plan::Plan;

/// Maximum number of ranges of a rank's holding. An all_to_all over relays needs a range for the
/// blocks of each source.
const MAX_RANGES: usize = 1 << 12;

/// Maximum number of chunks of a collective.
const MAX_CHUNKS: u32 = 1 << 26;

/// Ordered ranges `start..end` of chunks, with gaps between them.
#[derive(Clone, Default)]
struct ChunkRanges {
    ranges: Vec<(u32, u32)>,
}

impl ChunkRanges {
    /// Returns whether all of `start..end` is held.
    fn covers(&self, start: u32, end: u32) -> bool {
        let after = self.ranges.partition_point(|range| range.0 <= start);
        after > 0 && end <= self.ranges[after - 1].1
    }

    /// Adds `start..end`. Returns false if some of it is held already, or if there are too many
    /// ranges.
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
        self.ranges.len() <= MAX_RANGES
    }
}

/// Maximum number of chunks that are held as bits, and of bits of all ranks together.
const MAX_CHUNKS_AS_BITS: u32 = 1 << 16;
const MAX_BITS: u64 = 1 << 26;

/// Holdings of all ranks.
enum Holdings {
    Ranges(Vec<ChunkRanges>),
    Bits(HeldBits),
}

impl Holdings {
    fn new(collective: &Collective) -> Holdings {
        let (ranks, chunks) = (collective.ranks(), collective.chunks());
        match chunks <= MAX_CHUNKS_AS_BITS && u64::from(ranks) * u64::from(chunks) <= MAX_BITS {
            true => Holdings::Bits(HeldBits::new(ranks, chunks)),
            false => Holdings::Ranges(vec![ChunkRanges::default(); ranks as usize]),
        }
    }

    /// Returns whether a rank holds all of `start..end`.
    #[inline]
    fn covers(&self, rank: u32, start: u32, end: u32) -> bool {
        match self {
            Holdings::Ranges(of_ranks) => of_ranks[rank as usize].covers(start, end),
            Holdings::Bits(bits) => bits.covers(rank, start, end),
        }
    }

    /// Gives `start..end` to a rank. Returns false if the rank holds some of it already, or if
    /// there are too many ranges.
    #[inline]
    fn add(&mut self, rank: u32, start: u32, end: u32) -> bool {
        match self {
            Holdings::Ranges(of_ranks) => of_ranks[rank as usize].add(start, end),
            Holdings::Bits(bits) => bits.add(rank, start, end),
        }
    }
}

/// Holdings of all ranks, a bit for each chunk.
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

    /// Returns the words of a range of a rank's chunks, each with a mask of the chunks.
    fn masks(&self, rank: u32, start: u32, end: u32) -> impl Iterator<Item = (usize, u64)> + use<> {
        let first_word = rank as usize * self.words_per_rank;
        (start / 64..end.div_ceil(64)).map(move |word| {
            let first = start.saturating_sub(word * 64);
            let behind = (end - word * 64).min(64);
            let mask = u64::MAX << first & u64::MAX >> (64 - behind);
            (first_word + word as usize, mask)
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

/// Returns whether every rank is proved to end with the data that a collective that does not
/// combine demands.
pub(super) fn prove(plan: &Plan, admitted: &Admitted) -> bool {
    let collective = &plan.schedule.collective;
    if collective.chunks() > MAX_CHUNKS {
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
    are_demands_met(collective, &holdings)
}

/// Returns the holdings before the collective; `None` if they consist of too many ranges.
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

/// Returns whether the ranks hold what the collective demands at the end.
fn are_demands_met(collective: &Collective, holdings: &Holdings) -> bool {
    let mut for_all = ChunkRanges::default();
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
    use super::{ChunkRanges, HeldBits};

    #[test]
    fn ranges_are_sets_of_chunks() {
        // Every order of adding up to three ranges of 0..5, compared with a set of chunks.
        let ranges: Vec<(u32, u32)> = (0..5)
            .flat_map(|start| (start + 1..6).map(move |end| (start, end)))
            .collect();
        for &first in &ranges {
            for &second in &ranges {
                for &third in &ranges {
                    let mut holding = ChunkRanges::default();
                    // At the end of a word, and next to another rank.
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
