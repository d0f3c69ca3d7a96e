//! All_to_all in few slots: stage by stage to smaller segments of the ring, several blocks on a
//! lightpath.
//!
//! The ring is cut into m_1 segments of nearly equal length, each of these into m_2, and so on down to
//! single ranks. Before stage j a rank holds, for a set of sources, the blocks for all ranks of its
//! segment: for each source a range of consecutive destinations. In stage j it keeps those for its
//! own part of the segment, and sends each other part's range, one lightpath for each source, to the
//! rank at the same place of that part (parts differ by a rank at most; the last rank of a shorter
//! one takes for two).
//!
//! With N = m_1 ... m_k a rank has m_1 ... m_(j-1) sources before stage j, and segments have
//! g_j m_j ranks, g_j = N / (m_1 ... m_j): lines of m_j ranks, g_j side by side, each with
//! m_1 ... m_(j-1) lightpaths per ordered pair of load floor(m_j^2 / 4). That makes
//! (N / m_j) floor(m_j^2 / 4) on every stage, half of it on the first, which goes round the ring both
//! ways. So the slots are about N (m_1 / 2 + m_2 + ... + m_k) / (4 c), each of g_j blocks, instead of
//! N^2 / (8 c) slots of one: fewer slots, more bytes. One stage meets the cut bound.

use std::collections::BTreeMap;
use std::ops::Range;

use super::PlannerError;
use super::assembly::{Assembly, cut};
use super::pace::{Pace, spread};
use super::unfold::reaches;
use crate::collective::Collective;
use crate::fabric::{Fabric, WdmLight, WdmRing};
use crate::interrupt;
use crate::plan::Plan;
use crate::route;
use crate::schedule::{Action, Schedule, Transfer};
use crate::spec::Spec;
use crate::units::Bytes;

/// Radices from the whole ring down, and the stripes of each stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stages {
    pub(super) radices: Vec<u32>,
    pub(super) stripes: Vec<u32>,
}

/// Stages with their estimates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// Picoseconds.
    pub(super) time: u64,
    pub(super) slots: u64,
    pub(super) stages: Stages,
}

/// More stages than that save no slots: radices of 2 and 3 cost as much as 4.
const MOST_STAGES: usize = 6;

impl Stages {
    /// The spelling, such as `exchange:radices=16x8x8,stripes=1x1x1`.
    pub(super) fn spelling(&self) -> String {
        let join = |numbers: &[u32]| {
            let parts: Vec<String> = numbers.iter().map(u32::to_string).collect();
            parts.join("x")
        };
        Spec::new("exchange")
            .with("radices", join(&self.radices))
            .with("stripes", join(&self.stripes))
            .to_string()
    }

    /// Whether the radices cut so many ranks into single ones.
    pub(super) fn reaches(&self, ranks: u32) -> bool {
        reaches(ranks, self.radices.iter().copied())
    }
}

/// The plan of the stages.
///
/// # Errors
/// Chunks beyond 32 bits.
pub(super) fn plan(
    fabric: &Fabric,
    collective: Collective,
    stages: &Stages,
) -> Result<Plan, PlannerError> {
    let ring = fabric.needed_ring("the planner")?;
    let ranks = collective.ranks();
    let pieces = stages.stripes.last().copied().unwrap_or(1).max(1);
    let collective = collective.with_pieces(pieces)?;
    let mut assembly = Assembly::new(ring, collective);
    let mut segments: Vec<Range<u32>> = std::iter::once(0..ranks).collect();
    let mut sources: Vec<Vec<u32>> = (0..ranks).map(|rank| vec![rank]).collect();
    for (&radix, &stripes) in stages.radices.iter().zip(&stages.stripes) {
        let mut schedule = Schedule::new(collective);
        schedule.begin_step();
        let mut received = vec![Vec::new(); ranks as usize];
        let mut parts_of_all = Vec::new();
        for segment in segments {
            let parts: Vec<Range<u32>> = cut(segment, radix).collect();
            for part in &parts {
                interrupt::check();
                for rank in part.clone() {
                    for other in parts.iter().filter(|other| *other != part) {
                        let partner = (other.start + rank - part.start).min(other.end - 1);
                        for &source in &sources[rank as usize] {
                            interrupt::check();
                            let first = (source * ranks + other.start) * pieces;
                            let end = (source * ranks + other.end) * pieces;
                            for chunks in cut(first..end, stripes) {
                                schedule.push(Transfer {
                                    chunk: chunks.start,
                                    count: chunks.end - chunks.start,
                                    source: rank,
                                    destination: partner,
                                    action: Action::Copy,
                                });
                            }
                        }
                        received[partner as usize].extend_from_slice(&sources[rank as usize]);
                    }
                }
            }
            parts_of_all.extend(parts);
        }
        let light = route::shortest_arcs(&schedule, ring).into_iter();
        let directions = light.map(|light| WdmLight::from(light).direction);
        let moves: Vec<_> = schedule.transfers().zip(directions).collect();
        assembly.step(&moves)?;
        for (own, new) in sources.iter_mut().zip(received) {
            own.extend(new);
        }
        segments = parts_of_all;
    }
    Ok(assembly.finish(stages.spelling()))
}

/// For every number of stages the radices of least time, fastest first.
pub(super) fn stages(ring: &WdmRing, pace: Pace, size: Bytes) -> Vec<Found> {
    let mut search = Search {
        ring,
        pace,
        size,
        solved: BTreeMap::new(),
    };
    let mut found: Vec<Found> = (1..=MOST_STAGES)
        .filter_map(|stages| search.cut_into(ring.ranks, stages, true))
        .collect();
    found.sort_by_key(|found| (found.time, found.slots));
    found
}

struct Search<'a> {
    ring: &'a WdmRing,
    pace: Pace,
    size: Bytes,
    /// By length and stages, of what comes after the first stage.
    solved: BTreeMap<(u32, usize), Option<Found>>,
}

impl Search<'_> {
    /// What is left after the first stage, solved once.
    fn rest(&mut self, length: u32, stages: usize) -> Option<Found> {
        if let Some(known) = self.solved.get(&(length, stages)) {
            return known.clone();
        }
        let found = self.cut_into(length, stages, false);
        self.solved.insert((length, stages), found.clone());
        found
    }

    /// The best of so many stages that cut segments of a length into single ranks.
    fn cut_into(&mut self, length: u32, stages: usize, first: bool) -> Option<Found> {
        let radices = if stages == 1 {
            vec![length]
        } else {
            spread(length)
        };
        let mut best: Option<Found> = None;
        for radix in radices {
            let part = length.div_ceil(radix);
            if (part > 1) != (stages > 1) {
                continue;
            }
            let (time, slots, stripes) = self.stage(length, radix, first);
            if best.as_ref().is_some_and(|best| best.time <= time) {
                continue;
            }
            let rest = if part > 1 {
                self.rest(part, stages - 1)
            } else {
                Some(Found {
                    time: 0,
                    slots: 0,
                    stages: Stages {
                        radices: Vec::new(),
                        stripes: Vec::new(),
                    },
                })
            };
            let Some(rest) = rest else {
                continue;
            };
            let time = time.saturating_add(rest.time);
            if best.as_ref().is_none_or(|best| time < best.time) {
                best = Some(Found {
                    time,
                    slots: slots + rest.slots,
                    stages: Stages {
                        radices: [vec![radix], rest.stages.radices].concat(),
                        stripes: [vec![stripes], rest.stages.stripes].concat(),
                    },
                });
            }
        }
        best
    }

    /// The time, slots and stripes of a stage.
    fn stage(&self, length: u32, radix: u32, first: bool) -> (u64, u64, u32) {
        let ranks = u64::from(self.ring.ranks);
        let channels = u64::from(self.ring.channels());
        let radix = u64::from(radix.min(length));
        let part = u64::from(length).div_ceil(radix);
        let pairs = radix * radix / 4;
        let pairs = if first { pairs.div_ceil(2) } else { pairs };
        let load = (ranks * pairs).div_ceil(radix).max(1);
        let lightpaths = ranks / u64::from(length).max(1) * (radix - 1);
        let intake = self.ring.ports.map_or(u64::MAX, u64::from);
        // The last stage's stripes are pieces of a block.
        let most = if part == 1 { u64::MAX } else { part };
        let stripes = (channels / load).min(intake / lightpaths.max(1)).min(most);
        let stripes = stripes.max(1);
        let by_ports = (stripes * lightpaths).div_ceil(intake);
        let slots = (stripes * load).div_ceil(channels).max(by_ports);
        let bytes = u128::from(self.size.get()) * u128::from(part);
        let bytes = bytes.div_ceil(u128::from(ranks) * u128::from(stripes));
        let bytes = Bytes::new(u64::try_from(bytes).unwrap_or(u64::MAX));
        let time = self.pace.slots(slots, bytes, u64::from(length / 2).max(1));
        (time, slots, u32::try_from(stripes).unwrap_or(u32::MAX))
    }
}
