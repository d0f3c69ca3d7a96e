//! Proof in one pass that a plan without reductions delivers all data. The chunks of each rank are
//! ranges, or bits if there are few chunks.
//!
//! The proof applies the rules of `copying` to all chunks of a transfer at the same time. At the
//! start of the step, the source must have all of these chunks, and the destination must have none
//! of them. A transfer of a million chunks therefore takes as long as a transfer of one chunk, and
//! transfers need not be sorted by chunk.
//!
//! The result is "proved" or "unknown". If a rule is broken, or if a rank's chunks form too many
//! ranges, the chunks are replayed one by one, and the replay reports violations.

use super::form::Admitted;
use opticoll_base::interrupt;
use opticoll_plan::collective::{Collective, Holders};
use opticoll_plan::plan::Plan;

/// Maximum number of ranges per rank. An all_to_all over relays needs one range per source.
const MAX_RANGES: usize = 1 << 12;

/// Maximum number of chunks of a collective that the proof handles.
const MAX_CHUNKS: u32 = 1 << 26;

/// Ranges `start..end` of chunks, in ascending order, with gaps between them.
#[derive(Clone, Default)]
struct ChunkRanges {
    ranges: Vec<(u32, u32)>,
}

impl ChunkRanges {
    fn covers(&self, start: u32, end: u32) -> bool {
        let after = self.ranges.partition_point(|range| range.0 <= start);
        after > 0 && end <= self.ranges[after - 1].1
    }

    /// Adds the chunks `start..end`. Returns false if some of them are already included, or if
    /// there are too many ranges.
    fn add(&mut self, start: u32, end: u32) -> bool {
        let index = self.ranges.partition_point(|range| range.0 < start);
        let before = index.checked_sub(1).map(|index| self.ranges[index].1);
        let next = self.ranges.get(index).map(|range| range.0);
        if before.is_some_and(|before| before > start) || next.is_some_and(|next| next < end) {
            return false;
        }
        match (before == Some(start), next == Some(end)) {
            (true, true) => {
                self.ranges[index - 1].1 = self.ranges[index].1;
                self.ranges.remove(index);
            }
            (true, false) => self.ranges[index - 1].1 = end,
            (false, true) => self.ranges[index].0 = start,
            (false, false) => self.ranges.insert(index, (start, end)),
        }
        self.ranges.len() <= MAX_RANGES
    }
}

/// Maximum number of chunks of a collective whose holdings are stored as bits.
const MAX_CHUNKS_AS_BITS: u32 = 1 << 16;

/// Maximum number of bits for all ranks together.
const MAX_BITS: u64 = 1 << 26;

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

    #[inline]
    fn covers(&self, rank: u32, start: u32, end: u32) -> bool {
        match self {
            Holdings::Ranges(of_ranks) => of_ranks[rank as usize].covers(start, end),
            Holdings::Bits(bits) => bits.covers(rank, start, end),
        }
    }

    /// Adds the chunks `start..end` to `rank`. Returns false if the rank already has some of them,
    /// or if there are too many ranges.
    #[inline]
    fn add(&mut self, rank: u32, start: u32, end: u32) -> bool {
        match self {
            Holdings::Ranges(of_ranks) => of_ranks[rank as usize].add(start, end),
            Holdings::Bits(bits) => bits.add(rank, start, end),
        }
    }
}

/// Chunks that each rank has, as one bit per chunk.
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

    /// Returns the words with the bits of the chunks `start..end` of `rank`, each with a mask.
    fn masks(&self, rank: u32, start: u32, end: u32) -> impl Iterator<Item = (usize, u64)> + use<> {
        let first_word = rank as usize * self.words_per_rank;
        (start / 64..end.div_ceil(64)).map(move |word| {
            let first = start.saturating_sub(word * 64);
            let last = (end - word * 64).min(64);
            let mask = u64::MAX << first & u64::MAX >> (64 - last);
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

/// Returns whether every rank is proved to end with the demanded data. Requires no reductions.
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
        let have_sources = admitted.moved(plan, step).all(|(_, moved)| {
            holdings.covers(moved.source, moved.chunk, moved.chunk + moved.count)
        });
        let are_new = have_sources
            && admitted.moved(plan, step).all(|(_, moved)| {
                let (start, end) = (moved.chunk, moved.chunk + moved.count);
                holdings.add(moved.destination, start, end)
            });
        if !are_new {
            return false;
        }
    }
    are_demands_met(collective, &holdings)
}

/// Returns the chunks of each rank before the collective; `None` if there are too many ranges.
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

/// Returns whether the ranks have the chunks that the collective demands at the end.
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
        // All sequences of up to three ranges within 0..5, compared with an array of booleans.
        let ranges: Vec<(u32, u32)> = (0..5)
            .flat_map(|start| (start + 1..6).map(move |end| (start, end)))
            .collect();
        for &first in &ranges {
            for &second in &ranges {
                for &third in &ranges {
                    let mut holding = ChunkRanges::default();
                    // Chunks 61 to 66 of the second rank, on both sides of the boundary between two
                    // words.
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
