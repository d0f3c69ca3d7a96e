//! Trees of one root as a pipeline: how many chunks there are, how large each is, and in which step
//! each goes.
//!
//! Along trees of one root chunk k goes over the edges of depth d in step k + d. Where it is summed
//! up before, along the same trees of height h, it goes up over them in step k + h - 1 - d, and
//! down in step k + h + d. A step is as long as its busiest link. With chunks of one size the first
//! and the last steps leave the busiest link idle for the time of a whole chunk each. Where links
//! before and after the busiest one have more rate, small chunks at the beginning and at the end
//! shorten that time, and large ones between keep steps, hence latencies, few. Where a link of each
//! depth is as busy as the busiest, chunks of one size are best.

use super::channels::Channels;
use super::chunks::{Chunks, MOST};
use super::pack::Tree;
use super::timetable::{Timed, Timetable};
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time};
use opticoll_plan::collective::Collective;
use opticoll_plan::schedule::Schedule;

/// The most chunks of a pipeline without latencies.
const MOST_EQUAL: u32 = 256;

/// The most chunks of unequal sizes, and the most pieces of all of them.
const MOST_UNEQUAL: usize = 24;
const MOST_PIECES: f64 = 192.0;

/// The most products of loads and sizes in the search for them; on long trees they would save
/// little.
const MOST_WORK: usize = 1 << 27;

/// From one chunk to the next, in a search.
const GROWTHS: [f64; 9] = [1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0];

/// The largest chunk in units of the smallest, in a search.
const LARGEST: [f64; 8] = [1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 32.0];

/// Chunks of unequal sizes are worth this part of the time.
const WORTH: f64 = 0.99;

impl Timetable<'_> {
    /// The steps of trees of one root: each chunk goes one edge further in each step.
    pub(super) fn pipelined(&self, collective: Collective, chunks: &Chunks) -> Timed {
        let depths: Vec<Vec<usize>> = self.trees.iter().map(Tree::depths).collect();
        let sizes = chunks.sizes();
        let mut begins = vec![0];
        begins.extend(sizes.iter().scan(0, |end, size| {
            *end += size;
            Some(*end)
        }));
        let mut timed = Timed {
            schedule: Schedule::new(collective),
            channels: Vec::new(),
        };
        let height = self.height();
        for step in 0..sizes.len() + self.stages(height) - 1 {
            interrupt::check();
            timed.schedule.begin_step();
            for (number, tree) in (0u32..).zip(self.trees) {
                let depths = &depths[number as usize];
                for (edge, (ends, depth)) in tree.edges.iter().zip(depths).enumerate() {
                    for (is_up, stage, channels) in self.ways(height, *depth) {
                        let chunk = step.checked_sub(stage).filter(|chunk| *chunk < sizes.len());
                        let pieces = chunk.map_or(0..0, |chunk| begins[chunk]..begins[chunk + 1]);
                        let channel = channels.of[number as usize][edge];
                        for piece in pieces {
                            let piece = number * chunks.pieces() + piece;
                            match is_up {
                                // Channels up follow those down.
                                true => timed.push_up(
                                    piece,
                                    *ends,
                                    self.channels.all.len() as u32 + channel,
                                ),
                                false => timed.push(piece, *ends, channel),
                            }
                        }
                    }
                }
            }
        }
        timed
    }

    /// Steps that a chunk takes over trees of a height.
    fn stages(&self, height: usize) -> usize {
        height * if self.up.is_some() { 2 } else { 1 }
    }

    /// The ways of a chunk over an edge of a depth, of trees of a height: whether up, after how
    /// many steps, and by which channels.
    fn ways(&self, height: usize, depth: usize) -> impl Iterator<Item = (bool, usize, &Channels)> {
        let up = self.up.map(|up| (true, height - 1 - depth, up));
        let before = if up.is_some() { height } else { 0 };
        up.into_iter()
            .chain([(false, before + depth, self.channels)])
    }
}

/// What steps of a pipeline take, for any chunks.
struct Steps {
    /// For links that no other exceeds: the seconds of the whole vector in each stage.
    loads: Vec<Vec<f64>>,
    /// By stage: the latency of a message.
    latency: Vec<f64>,
}

impl Steps {
    fn new(timetable: &Timetable<'_>, size: Bytes) -> Steps {
        let links = timetable.network.links();
        let height = timetable.height();
        let stages = timetable.stages(height);
        let mut latency = vec![0u64; stages];
        let mut over = vec![Vec::new(); links.len()];
        for (number, tree) in timetable.trees.iter().enumerate() {
            for (edge, depth) in tree.depths().into_iter().enumerate() {
                for (_, stage, channels) in timetable.ways(height, depth) {
                    let channel = channels.of[number][edge];
                    let route = &channels.all[channel as usize].route;
                    let whole = route.iter().map(|link| links[*link as usize].latency.ps());
                    latency[stage] = latency[stage].max(whole.sum());
                    for link in route {
                        let own: &mut Vec<u32> = &mut over[*link as usize];
                        own.resize(stages, 0);
                        own[stage] += 1;
                    }
                }
            }
        }
        let bits = 8.0 * size.get() as f64 / timetable.trees.len().max(1) as f64;
        let mut loads: Vec<Vec<f64>> = Vec::new();
        for (trees, link) in over
            .iter()
            .zip(links)
            .filter(|(trees, _)| !trees.is_empty())
        {
            let of_bit = bits / link.rate.bits_per_second() as f64;
            let own: Vec<f64> = trees
                .iter()
                .map(|trees| f64::from(*trees) * of_bit)
                .collect();
            let exceeds =
                |one: &[f64], other: &[f64]| one.iter().zip(other).all(|(one, other)| one >= other);
            if !loads.iter().any(|other| exceeds(other, &own)) {
                loads.retain(|other| !exceeds(&own, other));
                loads.push(own);
            }
        }
        let latency = latency.into_iter().map(|ps| Time::from_ps(ps).seconds());
        Steps {
            loads,
            latency: latency.collect(),
        }
    }

    /// Seconds of all steps, with the sizes of the chunks in any unit.
    fn time(&self, sizes: &[f64]) -> f64 {
        let height = self.latency.len();
        let all: f64 = sizes.iter().sum();
        let step = |step: usize| {
            // The depths whose edges have something to carry.
            let depths = step.saturating_sub(sizes.len() - 1)..=step.min(height - 1);
            let latency = self.latency[depths.clone()]
                .iter()
                .copied()
                .fold(0.0, f64::max);
            let of_link = |load: &Vec<f64>| {
                let parts = depths
                    .clone()
                    .map(|depth| load[depth] * sizes[step - depth]);
                parts.sum::<f64>()
            };
            latency + self.loads.iter().map(of_link).fold(0.0, f64::max) / all
        };
        (0..sizes.len() + height - 1).map(step).sum()
    }

    /// The number of chunks of one size with which the steps take least. With trees of height h, a
    /// busiest link that needs t for all and a message's latency a, n chunks take (n + h - 1)(a + t
    /// / n), least at n = sqrt((h - 1) t / a).
    fn equal(&self, most: u32) -> u32 {
        let loads = self.loads.iter().map(|load| load.iter().sum::<f64>());
        let latency = self.latency.iter().copied().fold(0.0, f64::max);
        let count = ((self.latency.len() - 1) as f64 * loads.fold(0.0, f64::max) / latency).sqrt();
        // Without latencies and without relays the quotient is no number.
        let count = if count.is_nan() { 1.0 } else { count };
        (count as u32).clamp(1, MOST_EQUAL.min(most))
    }

    /// Chunks that grow and shrink again, where steps take clearly less with them.
    fn unequal(&self, most: u32) -> Option<Chunks> {
        let (height, links) = (self.latency.len(), self.loads.len());
        let tried = MOST_UNEQUAL * GROWTHS.len().pow(2) * LARGEST.len();
        if tried * (MOST_UNEQUAL + height) * height.min(MOST_UNEQUAL) * links > MOST_WORK {
            return None;
        }
        let mut best = (
            WORTH * self.time(&vec![1.0; self.equal(most) as usize]),
            None,
        );
        for count in 2..=MOST_UNEQUAL {
            interrupt::check();
            for growth in GROWTHS {
                for fall in GROWTHS {
                    for largest in LARGEST {
                        let size = |chunk: usize| {
                            let up = growth.powi(chunk as i32);
                            up.min(fall.powi((count - 1 - chunk) as i32)).min(largest)
                        };
                        let sizes: Vec<f64> = (0..count).map(size).collect();
                        let time = self.time(&sizes);
                        if time < best.0 {
                            best = (time, Some(sizes));
                        }
                    }
                }
            }
        }
        let (least, sizes) = (best.0, best.1?);
        // In whole pieces, few where they do.
        let most = f64::from(most).min(MOST_PIECES);
        let scaled = (1..=8).map(|scale| {
            let pieces = sizes.iter().map(|size| (size * f64::from(scale)).round());
            pieces.collect::<Vec<f64>>()
        });
        let scaled = scaled.filter(|sizes| sizes.iter().sum::<f64>() <= most);
        let timed: Vec<(f64, Vec<f64>)> = scaled.map(|sizes| (self.time(&sizes), sizes)).collect();
        let near = timed.iter().map(|one| one.0).fold(least / WORTH, f64::min) / WORTH;
        let first = timed.into_iter().find(|one| one.0 <= near)?;
        let sizes = first.1.into_iter().map(|size| size as u32);
        Some(Chunks::of_sizes(sizes.collect()))
    }
}

/// Chunks that seem fastest along trees of one root: of one size, half and twice as many, and of
/// sizes of their own. Somewhat fewer of one size alone where so many pieces of all trees are
/// `too_many`.
pub(super) fn fastest(
    timetable: &Timetable<'_>,
    size: Bytes,
    most: u32,
    too_many: impl Fn(u32) -> bool,
) -> Vec<Chunks> {
    let most = most.clamp(1, MOST);
    let steps = Steps::new(timetable, size);
    let balanced = steps.equal(most);
    let counts = match too_many(balanced) {
        true => vec![balanced / 3 * 2],
        false => vec![balanced / 2, balanced, balanced.saturating_mul(2)],
    };
    let equal = counts.into_iter();
    let equal = equal.map(|count| Chunks::equal(count.clamp(1, most)));
    let unequal = steps.unequal(most);
    let unequal = unequal.filter(|chunks| !too_many(chunks.pieces()));
    equal.chain(unequal).collect()
}
