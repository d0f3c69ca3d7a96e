//! Pipelines along trees of one root: number and sizes of the chunks, and the step of each chunk.
//!
//! Along trees of one root, chunk k crosses the edges of depth d in step k + d. In an all_reduce,
//! the chunk is first summed up along the same trees of height h: it crosses these edges upwards in
//! step k + h - 1 - d, and downwards in step k + h + d. The busiest link determines the length of a
//! step. With chunks of equal size, the busiest link is idle in the first and the last steps, each
//! for the time of a whole chunk. If the links before and after the busiest link are faster, small
//! chunks at the beginning and at the end shorten this idle time, and large chunks in the middle
//! keep the number of steps, and thus the latencies, small. If each depth has a link as busy as the
//! busiest link, chunks of equal size are best.

use super::chunks::Chunks;
use super::edge_routes::EdgeRoutes;
use super::packing::Tree;
use super::timetable::{TimedSchedule, Timetable};
use crate::building::MAX_PARTS;
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time};
use opticoll_plan::collective::Collective;
use opticoll_plan::schedule::Schedule;

/// Maximum number of chunks of equal size. Without latencies, the formula of [`Steps::equal`] would
/// give an unlimited number.
const MAX_EQUAL_CHUNKS: u32 = 256;

const MAX_UNEQUAL_CHUNKS: usize = 24;

const MAX_UNEQUAL_PIECES: f64 = 192.0;

/// Maximum work of the search for unequal sizes, in products of a load and a size. On long trees
/// unequal sizes would save little.
const MAX_WORK: usize = 1 << 27;

/// Ratios of consecutive chunk sizes to try.
const SIZE_RATIOS: [f64; 9] = [1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0];

/// Ratios of the largest to the smallest chunk size to try.
const SIZE_RANGES: [f64; 8] = [1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0];

/// Maximum ratio of the time with unequal chunk sizes to the time with equal chunk sizes.
const MAX_TIME_RATIO: f64 = 0.99;

impl Timetable<'_> {
    /// Returns the steps of a pipeline along trees of one root: in each step, each chunk crosses
    /// one edge of its tree.
    pub(super) fn pipeline_steps(&self, collective: Collective, chunks: &Chunks) -> TimedSchedule {
        let depths: Vec<Vec<usize>> = self.trees.iter().map(Tree::depths).collect();
        let sizes = chunks.sizes();
        let mut begins = vec![0];
        begins.extend(sizes.iter().scan(0, |end, size| {
            *end += size;
            Some(*end)
        }));
        let mut timed = TimedSchedule {
            schedule: Schedule::new(collective),
            edge_routes: Vec::new(),
        };
        let height = self.height();
        for step in 0..sizes.len() + self.stages(height) - 1 {
            interrupt::check();
            timed.schedule.begin_step();
            for (number, tree) in (0u32..).zip(self.trees) {
                let depths = &depths[number as usize];
                for (edge, (ends, depth)) in tree.edges.iter().zip(depths).enumerate() {
                    for (is_up, stage, edge_routes) in self.passes(height, *depth) {
                        let chunk = step.checked_sub(stage).filter(|chunk| *chunk < sizes.len());
                        let pieces = chunk.map_or(0..0, |chunk| begins[chunk]..begins[chunk + 1]);
                        let edge_route = edge_routes.of[number as usize][edge];
                        for piece in pieces {
                            let piece = number * chunks.pieces() + piece;
                            match is_up {
                                // Indices of upward routes follow the indices of downward routes.
                                true => timed.push_up(
                                    piece,
                                    *ends,
                                    self.edge_routes.all.len() as u32 + edge_route,
                                ),
                                false => timed.push(piece, *ends, edge_route),
                            }
                        }
                    }
                }
            }
        }
        timed
    }

    /// Returns the number of steps that a chunk needs in trees of height `height`.
    fn stages(&self, height: usize) -> usize {
        height * if self.up.is_some() { 2 } else { 1 }
    }

    /// Returns the times at which a chunk crosses an edge at depth `depth` in trees of height
    /// `height`, as (true if upwards, number of steps after the chunk's first step, routes).
    fn passes(
        &self,
        height: usize,
        depth: usize,
    ) -> impl Iterator<Item = (bool, usize, &EdgeRoutes)> {
        let up = self.up.map(|up| (true, height - 1 - depth, up));
        let before = if up.is_some() { height } else { 0 };
        up.into_iter()
            .chain([(false, before + depth, self.edge_routes)])
    }
}

/// Durations of the steps of a pipeline, for any chunk sizes. A chunk is in stage s in its s-th
/// step.
struct Steps {
    /// Seconds that each link needs for the whole vector in each stage; indexed by link and then by
    /// stage. A link is left out if another link needs at least as long in every stage.
    loads: Vec<Vec<f64>>,
    /// Maximum latency of a message in each stage, in seconds.
    latency: Vec<f64>,
}

impl Steps {
    fn new(timetable: &Timetable<'_>, size: Bytes) -> Steps {
        let links = timetable.network.links();
        let height = timetable.height();
        let stages = timetable.stages(height);
        let mut latency = vec![0u64; stages];
        let mut trees_of_link = vec![Vec::new(); links.len()];
        for (number, tree) in timetable.trees.iter().enumerate() {
            for (edge, depth) in tree.depths().into_iter().enumerate() {
                for (_, stage, edge_routes) in timetable.passes(height, depth) {
                    let edge_route = edge_routes.of[number][edge];
                    let route = &edge_routes.all[edge_route as usize].route;
                    let whole = route.iter().map(|link| links[*link as usize].latency.ps());
                    latency[stage] = latency[stage].max(whole.sum());
                    for link in route {
                        let counts: &mut Vec<u32> = &mut trees_of_link[*link as usize];
                        counts.resize(stages, 0);
                        counts[stage] += 1;
                    }
                }
            }
        }
        let bits = 8.0 * size.get() as f64 / timetable.trees.len().max(1) as f64;
        let mut loads: Vec<Vec<f64>> = Vec::new();
        for (trees, link) in trees_of_link
            .iter()
            .zip(links)
            .filter(|(trees, _)| !trees.is_empty())
        {
            let seconds_per_piece = bits / link.rate.bits_per_second() as f64;
            let stage_loads: Vec<f64> = trees
                .iter()
                .map(|trees| f64::from(*trees) * seconds_per_piece)
                .collect();
            let exceeds =
                |one: &[f64], other: &[f64]| one.iter().zip(other).all(|(one, other)| one >= other);
            if !loads.iter().any(|other| exceeds(other, &stage_loads)) {
                loads.retain(|other| !exceeds(&stage_loads, other));
                loads.push(stage_loads);
            }
        }
        let latency = latency.into_iter().map(|ps| Time::from_ps(ps).seconds());
        Steps {
            loads,
            latency: latency.collect(),
        }
    }

    /// Returns the total duration of all steps in seconds. `sizes` may have any unit.
    fn time(&self, sizes: &[f64]) -> f64 {
        let height = self.latency.len();
        let total: f64 = sizes.iter().sum();
        let step = |step: usize| {
            // Stages in which some chunk is sent in this step.
            let depths = step.saturating_sub(sizes.len() - 1)..=step.min(height - 1);
            let latency = self.latency[depths.clone()]
                .iter()
                .copied()
                .fold(0.0, f64::max);
            let link_seconds = |load: &Vec<f64>| {
                let parts = depths
                    .clone()
                    .map(|depth| load[depth] * sizes[step - depth]);
                parts.sum::<f64>()
            };
            latency + self.loads.iter().map(link_seconds).fold(0.0, f64::max) / total
        };
        (0..sizes.len() + height - 1).map(step).sum()
    }

    /// Returns the number of equal chunks with the shortest total duration. For trees of height h,
    /// a busiest link that needs t seconds for the vector, and latency a, n chunks take (n + h -
    /// 1)(a + t / n) seconds, with the minimum at n = sqrt((h - 1) t / a).
    fn equal(&self, max_chunks: u32) -> u32 {
        let loads = self.loads.iter().map(|load| load.iter().sum::<f64>());
        let latency = self.latency.iter().copied().fold(0.0, f64::max);
        let count = ((self.latency.len() - 1) as f64 * loads.fold(0.0, f64::max) / latency).sqrt();
        // The quotient is not a number if there are neither latencies nor relays.
        let count = if count.is_nan() { 1.0 } else { count };
        (count as u32).clamp(1, MAX_EQUAL_CHUNKS.min(max_chunks))
    }

    /// Returns chunk sizes that increase and then decrease, if they are clearly faster than equal
    /// sizes.
    fn unequal(&self, max_pieces: u32) -> Option<Chunks> {
        let (height, links) = (self.latency.len(), self.loads.len());
        let tried = MAX_UNEQUAL_CHUNKS * SIZE_RATIOS.len().pow(2) * SIZE_RANGES.len();
        if tried * (MAX_UNEQUAL_CHUNKS + height) * height.min(MAX_UNEQUAL_CHUNKS) * links > MAX_WORK
        {
            return None;
        }
        let mut fastest = (
            MAX_TIME_RATIO * self.time(&vec![1.0; self.equal(max_pieces) as usize]),
            None,
        );
        for count in 2..=MAX_UNEQUAL_CHUNKS {
            interrupt::check();
            for growth in SIZE_RATIOS {
                for fall in SIZE_RATIOS {
                    for largest in SIZE_RANGES {
                        let size = |chunk: usize| {
                            let up = growth.powi(chunk as i32);
                            up.min(fall.powi((count - 1 - chunk) as i32)).min(largest)
                        };
                        let sizes: Vec<f64> = (0..count).map(size).collect();
                        let time = self.time(&sizes);
                        if time < fastest.0 {
                            fastest = (time, Some(sizes));
                        }
                    }
                }
            }
        }
        let (least, sizes) = (fastest.0, fastest.1?);
        // Round to whole pieces, as few as possible.
        let max_pieces = f64::from(max_pieces).min(MAX_UNEQUAL_PIECES);
        let scaled = (1..=8).map(|scale| {
            let pieces = sizes.iter().map(|size| (size * f64::from(scale)).round());
            pieces.collect::<Vec<f64>>()
        });
        let scaled = scaled.filter(|sizes| sizes.iter().sum::<f64>() <= max_pieces);
        let timed: Vec<(f64, Vec<f64>)> = scaled.map(|sizes| (self.time(&sizes), sizes)).collect();
        let near = timed
            .iter()
            .map(|timing| timing.0)
            .fold(least / MAX_TIME_RATIO, f64::min)
            / MAX_TIME_RATIO;
        let first = timed.into_iter().find(|timing| timing.0 <= near)?;
        let sizes = first.1.into_iter().map(|size| size as u32);
        Some(Chunks::with_sizes(sizes.collect()))
    }
}

/// Returns several divisions into chunks that are expected to be fast along trees of one root. Let
/// n be the optimal number of equal chunks. The divisions are n / 2, n and 2 n equal chunks, and a
/// division into unequal chunks. If `too_many(n)` is true, 2 n / 3 replaces the three numbers of
/// equal chunks.
pub(super) fn fastest(
    timetable: &Timetable<'_>,
    size: Bytes,
    max_pieces: u32,
    too_many: impl Fn(u32) -> bool,
) -> Vec<Chunks> {
    let max_pieces = max_pieces.clamp(1, MAX_PARTS);
    let steps = Steps::new(timetable, size);
    let balanced = steps.equal(max_pieces);
    let counts = match too_many(balanced) {
        true => vec![balanced / 3 * 2],
        false => vec![balanced / 2, balanced, balanced.saturating_mul(2)],
    };
    let equal = counts.into_iter();
    let equal = equal.map(|count| Chunks::equal(count.clamp(1, max_pieces)));
    let unequal = steps.unequal(max_pieces);
    let unequal = unequal.filter(|chunks| !too_many(chunks.pieces()));
    equal.chain(unequal).collect()
}
