//! Times at which chunks arrived at ranks, or were read there.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;

use opticoll_base::interrupt;
use opticoll_base::units::Time;
use opticoll_plan::plan::Plan;

/// Time from which a resource is free or a chunk is present, and the transfer that determined this
/// time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Availability {
    pub(super) time: Time,
    pub(super) transfer: Option<u32>,
}

impl Availability {
    pub(super) fn later(self, other: Availability) -> Availability {
        if other.time > self.time { other } else { self }
    }
}

/// Time of each chunk at each rank. Some chunks have no time at some ranks.
#[derive(Clone)]
pub(super) enum ChunkTimes {
    /// Times indexed by `rank * chunks + chunk`, for plans in which most ranks receive most chunks.
    Table {
        chunks: usize,
        times: Vec<Availability>,
    },
    Single(FxHashMap<(u32, u32), Availability>),
    /// Times of ranges of chunks, indexed by rank, for plans whose transfers move several chunks. A
    /// key is the first chunk of a range, and a value is the chunk after the range and the time.
    Ranges(Vec<BTreeMap<u32, (u32, Availability)>>),
}

impl ChunkTimes {
    pub(super) fn new(plan: &Plan) -> ChunkTimes {
        let ranks = plan.fabric.ranks() as usize;
        let chunks = plan.schedule.collective.chunks() as usize;
        if !plan.schedule.has_single_chunks() {
            return ChunkTimes::ranges(ranks);
        }
        match ranks.saturating_mul(chunks) <= plan.len().saturating_mul(2) {
            true => ChunkTimes::Table {
                chunks,
                times: vec![Availability::default(); ranks * chunks],
            },
            false => ChunkTimes::none(),
        }
    }

    /// Creates an empty store with one entry for each rank and chunk that has a time.
    pub(super) fn none() -> ChunkTimes {
        ChunkTimes::Single(FxHashMap::default())
    }

    fn ranges(ranks: usize) -> ChunkTimes {
        ChunkTimes::Ranges(vec![BTreeMap::new(); ranks])
    }

    /// Returns the latest of `ready` and the times of `chunks` at `rank`. If several times are
    /// equal, `ready` is preferred, and then the chunk with the lowest index.
    pub(super) fn latest(
        &self,
        rank: u32,
        chunks: Range<u32>,
        ready: Availability,
    ) -> Availability {
        match self {
            ChunkTimes::Table { chunks: row, times } => {
                let first = rank as usize * row;
                let times = &times[first + chunks.start as usize..first + chunks.end as usize];
                times.iter().fold(ready, |ready, &since| ready.later(since))
            }
            ChunkTimes::Single(times) => chunks
                .filter_map(|chunk| times.get(&(rank, chunk)))
                .fold(ready, |ready, &since| ready.later(since)),
            ChunkTimes::Ranges(ranks) => {
                let before = ranks[rank as usize].range(..chunks.end).rev();
                let overlapping = before.take_while(|(_, (end, _))| *end > chunks.start);
                // The iteration is backwards, so the first of equal times is visited last.
                let latest = overlapping
                    .map(|(_, &(_, since))| since)
                    .reduce(|later, since| match since.time >= later.time {
                        true => since,
                        false => later,
                    });
                latest.map_or(ready, |since| ready.later(since))
            }
        }
    }

    /// Raises the times of `chunks` at `rank` to `since` if they are earlier.
    pub(super) fn postpone(&mut self, rank: u32, chunks: Range<u32>, since: Availability) {
        match self {
            ChunkTimes::Table { chunks: row, times } => {
                let first = rank as usize * *row;
                for existing in
                    &mut times[first + chunks.start as usize..first + chunks.end as usize]
                {
                    *existing = existing.later(since);
                }
            }
            ChunkTimes::Single(times) => {
                for chunk in chunks {
                    interrupt::check();
                    let existing = times.entry((rank, chunk)).or_default();
                    *existing = existing.later(since);
                }
            }
            ChunkTimes::Ranges(ranks) => {
                let times = &mut ranks[rank as usize];
                // Usually the chunks are exactly one of the ranges, or overlap with none of them.
                let existing = times.range_mut(..chunks.end).next_back();
                let existing = existing.filter(|(_, (end, _))| *end > chunks.start);
                match existing {
                    Some((start, (end, existing)))
                        if (*start, *end) == (chunks.start, chunks.end) =>
                    {
                        *existing = existing.later(since);
                        return;
                    }
                    Some(_) => {}
                    None => {
                        times.insert(
                            chunks.start,
                            (chunks.end, Availability::default().later(since)),
                        );
                        return;
                    }
                }
                split(times, chunks.start);
                split(times, chunks.end);
                let mut at = chunks.start;
                while at < chunks.end {
                    interrupt::check();
                    let existing = times.range_mut(at..chunks.end).next();
                    let (next, end) = match existing {
                        Some((&start, (end, existing))) if start == at => {
                            *existing = existing.later(since);
                            at = *end;
                            continue;
                        }
                        Some((&start, _)) => (start, start),
                        None => (chunks.end, chunks.end),
                    };
                    times.insert(at, (end, Availability::default().later(since)));
                    at = next;
                }
            }
        }
    }
}

/// Splits the range that contains `chunk`, so that a range begins at `chunk`.
fn split(times: &mut BTreeMap<u32, (u32, Availability)>, chunk: u32) {
    let before = times.range_mut(..chunk).next_back();
    if let Some((_, (end, since))) = before.filter(|(_, (end, _))| *end > chunk) {
        let upper = (*end, *since);
        *end = chunk;
        times.insert(chunk, upper);
    }
}

#[cfg(test)]
mod tests {
    use rustc_hash::FxHashMap;

    use super::{Availability, ChunkTimes};
    use opticoll_base::units::Time;

    #[test]
    fn ranges_tell_what_single_chunks_do() {
        let mut seed = 7u64;
        let mut random = |below: u64| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) % below
        };
        for _ in 0..50 {
            let mut ranges = ChunkTimes::ranges(2);
            let mut single = ChunkTimes::Single(FxHashMap::default());
            let mut table = ChunkTimes::Table {
                chunks: 22,
                times: vec![Availability::default(); 44],
            };
            for transfer in 0..30 {
                let (rank, start) = (random(2) as u32, random(16) as u32);
                let chunks = start..start + 1 + random(6) as u32;
                let since = Availability {
                    time: Time::from_ps(random(8)),
                    transfer: Some(transfer),
                };
                ranges.postpone(rank, chunks.clone(), since);
                single.postpone(rank, chunks.clone(), since);
                table.postpone(rank, chunks, since);
                for start in 0..22 {
                    for end in start + 1..=22 {
                        let ready = Availability::default();
                        let latest = |times: &ChunkTimes| {
                            let latest = times.latest(rank, start..end, ready);
                            (latest.time, latest.transfer)
                        };
                        assert_eq!(latest(&ranges), latest(&single));
                        assert_eq!(latest(&table), latest(&single));
                    }
                }
            }
        }
    }
}
