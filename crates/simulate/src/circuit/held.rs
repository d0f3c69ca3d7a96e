//! Since when ranks hold their chunks, or have read them.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;

use opticoll_base::interrupt;
use opticoll_base::units::Time;
use opticoll_plan::plan::Plan;

/// Something that became free, or a chunk that arrived, with the transfer that made it so.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Since {
    pub(super) time: Time,
    pub(super) transfer: Option<u32>,
}

impl Since {
    pub(super) fn later(self, other: Since) -> Since {
        if other.time > self.time { other } else { self }
    }
}

/// A time for each chunk at each rank, where there is one. Most plans move single chunks; where transfers move many, chunks
/// that came together are kept as one range.
#[derive(Clone)]
pub(super) enum ChunkTimes {
    /// All chunks of one rank after the other, where most ranks come to hold most chunks.
    Table {
        chunks: usize,
        times: Vec<Since>,
    },
    Single(FxHashMap<(u32, u32), Since>),
    /// By rank; the ranges of a rank, by their first chunk with their end, do not overlap.
    Ranges(Vec<BTreeMap<u32, (u32, Since)>>),
}

impl ChunkTimes {
    /// None yet of the chunks of a plan.
    pub(super) fn new(plan: &Plan) -> ChunkTimes {
        let ranks = plan.fabric.ranks() as usize;
        let chunks = plan.schedule.collective.chunks() as usize;
        if !plan.schedule.is_in_single_chunks() {
            return ChunkTimes::ranges(ranks);
        }
        match ranks.saturating_mul(chunks) <= plan.len().saturating_mul(2) {
            true => ChunkTimes::Table {
                chunks,
                times: vec![Since::default(); ranks * chunks],
            },
            false => ChunkTimes::none(),
        }
    }

    /// None, where none are asked for.
    pub(super) fn none() -> ChunkTimes {
        ChunkTimes::Single(FxHashMap::default())
    }

    fn ranges(ranks: usize) -> ChunkTimes {
        ChunkTimes::Ranges(vec![BTreeMap::new(); ranks])
    }

    /// The latest of `ready` and the times of some chunks at a rank; the first of those that are equal.
    pub(super) fn latest(&self, rank: u32, chunks: Range<u32>, ready: Since) -> Since {
        match self {
            ChunkTimes::Table { chunks: all, times } => {
                let first = rank as usize * all;
                let times = &times[first + chunks.start as usize..first + chunks.end as usize];
                times.iter().fold(ready, |ready, &since| ready.later(since))
            }
            ChunkTimes::Single(times) => chunks
                .filter_map(|chunk| times.get(&(rank, chunk)))
                .fold(ready, |ready, &since| ready.later(since)),
            ChunkTimes::Ranges(of_ranks) => {
                let before = of_ranks[rank as usize].range(..chunks.end).rev();
                let own = before.take_while(|(_, (end, _))| *end > chunks.start);
                // The first of those that are equal comes last.
                let latest = own.map(|(_, &(_, since))| since).reduce(|later, since| {
                    match since.time >= later.time {
                        true => since,
                        false => later,
                    }
                });
                latest.map_or(ready, |since| ready.later(since))
            }
        }
    }

    /// Puts the times of some chunks at a rank no earlier than `since`.
    pub(super) fn raise(&mut self, rank: u32, chunks: Range<u32>, since: Since) {
        match self {
            ChunkTimes::Table { chunks: all, times } => {
                let first = rank as usize * *all;
                for known in &mut times[first + chunks.start as usize..first + chunks.end as usize]
                {
                    *known = known.later(since);
                }
            }
            ChunkTimes::Single(times) => {
                for chunk in chunks {
                    interrupt::check();
                    let known = times.entry((rank, chunk)).or_default();
                    *known = known.later(since);
                }
            }
            ChunkTimes::Ranges(of_ranks) => {
                let times = &mut of_ranks[rank as usize];
                // As a rule the chunks are one of the ranges, or next to others.
                let known = times.range_mut(..chunks.end).next_back();
                let known = known.filter(|(_, (end, _))| *end > chunks.start);
                match known {
                    Some((start, (end, known))) if (*start, *end) == (chunks.start, chunks.end) => {
                        *known = known.later(since);
                        return;
                    }
                    Some(_) => {}
                    None => {
                        times.insert(chunks.start, (chunks.end, Since::default().later(since)));
                        return;
                    }
                }
                split(times, chunks.start);
                split(times, chunks.end);
                let mut at = chunks.start;
                while at < chunks.end {
                    interrupt::check();
                    let known = times.range_mut(at..chunks.end).next();
                    let (next, end) = match known {
                        Some((&start, (end, known))) if start == at => {
                            *known = known.later(since);
                            at = *end;
                            continue;
                        }
                        Some((&start, _)) => (start, start),
                        None => (chunks.end, chunks.end),
                    };
                    times.insert(at, (end, Since::default().later(since)));
                    at = next;
                }
            }
        }
    }
}

/// Cuts the range that goes on over a chunk in two at it.
fn split(times: &mut BTreeMap<u32, (u32, Since)>, chunk: u32) {
    let before = times.range_mut(..chunk).next_back();
    if let Some((_, (end, since))) = before.filter(|(_, (end, _))| *end > chunk) {
        let rest = (*end, *since);
        *end = chunk;
        times.insert(chunk, rest);
    }
}

#[cfg(test)]
mod tests {
    use rustc_hash::FxHashMap;

    use super::{ChunkTimes, Since};
    use opticoll_base::units::Time;

    /// Ranges against a table of single chunks, over all ranges of random moves.
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
                times: vec![Since::default(); 44],
            };
            for transfer in 0..30 {
                let (rank, start) = (random(2) as u32, random(16) as u32);
                let chunks = start..start + 1 + random(6) as u32;
                let since = Since {
                    time: Time::from_ps(random(8)),
                    transfer: Some(transfer),
                };
                ranges.raise(rank, chunks.clone(), since);
                single.raise(rank, chunks.clone(), since);
                table.raise(rank, chunks, since);
                for start in 0..22 {
                    for end in start + 1..=22 {
                        let ready = Since::default();
                        let of = |times: &ChunkTimes| {
                            let latest = times.latest(rank, start..end, ready);
                            (latest.time, latest.transfer)
                        };
                        assert_eq!(of(&ranges), of(&single));
                        assert_eq!(of(&table), of(&single));
                    }
                }
            }
        }
    }
}
