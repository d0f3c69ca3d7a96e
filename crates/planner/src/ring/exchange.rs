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

use crate::ring::assembly::{Assembly, cut};
use crate::ring::few_slots::{self, Estimate, Recipe};
use crate::ring::slot_cost::{SlotCost, spread};
use crate::{Planner, PlannerError, Question};
use opticoll_core::collective::{Collective, CollectiveKind};
use opticoll_core::fabric::Fabric;
use opticoll_core::family::wdm_ring::route;
use opticoll_core::family::wdm_ring::{WdmLight, WdmRing};
use opticoll_core::interrupt;
use opticoll_core::plan::{AnyPlan, Plan};
use opticoll_core::schedule::{Action, Schedule, Transfer};
use opticoll_core::spec::{OptionRecord, Spec};
use opticoll_core::units::Bytes;

/// Radices from the whole ring down, and the stripes of each stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stages {
    pub(crate) radices: Vec<u32>,
    pub(crate) stripes: Vec<u32>,
}

/// More stages than that save no slots: radices of 2 and 3 cost as much as 4.
const MOST_STAGES: usize = 6;

/// The planner of all_to_alls in few slots.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new(
            "radices",
            "parts that each stage divides a segment of the ring into, from the whole \
         ring down, such as 16x8x8",
        )
        .range("numbers joined by x")
        .default("the fastest found"),
        OptionRecord::new("stripes", "stripes of each stage, such as 2x1x1")
            .range("numbers joined by x, each 1 to 4096")
            .default("1"),
    ],
    by_size: true,
    candidates: few_slots::contenders::<Stages>,
    ..Planner::on_rings(
        Stages::NAME,
        "Exchange",
        &[CollectiveKind::AllToAll],
        "Stage by stage to smaller segments of the ring, several blocks on a lightpath",
        "opticoll; several items per lightpath after Opatrny, TCS 2003",
        few_slots::plan::<Stages>,
    )
};

impl Recipe for Stages {
    const NAME: &'static str = "exchange";

    fn spec(&self) -> Spec {
        Spec::new(Stages::NAME)
            .with("radices", few_slots::joined(self.radices.iter().copied()))
            .with("stripes", few_slots::joined(self.stripes.iter().copied()))
    }

    fn transfers(&self, ranks: u64) -> u64 {
        let stripes = self.stripes.iter().copied().max().unwrap_or(1);
        u64::from(stripes).saturating_mul(ranks.saturating_mul(ranks))
    }

    fn plan(&self, fabric: &Fabric, collective: Collective) -> Result<AnyPlan, PlannerError> {
        plan(fabric, collective, self).map(AnyPlan::Full)
    }

    fn given(
        spec: &Spec,
        ring: &WdmRing,
        _collective: Collective,
    ) -> Result<Option<Stages>, PlannerError> {
        let given = few_slots::radices(spec, ring.ranks)?;
        Ok(given.map(|stages| {
            let (radices, stripes) = stages.into_iter().unzip();
            Stages { radices, stripes }
        }))
    }

    fn estimated(ring: &WdmRing, question: &Question<'_>) -> Vec<Estimate<Stages>> {
        if u64::from(ring.ranks).pow(2) > question.most_transfers {
            return Vec::new();
        }
        stages(ring, question.slot_cost(ring), question.size)
    }
}

/// The plan of the stages.
///
/// # Errors
/// Chunks beyond 32 bits.
fn plan(fabric: &Fabric, collective: Collective, stages: &Stages) -> Result<Plan, PlannerError> {
    let ring = fabric.needed::<WdmRing>("the planner")?;
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
    Ok(assembly.finish(stages.spec().to_string()))
}

/// For every number of stages the radices of least time, fastest first.
fn stages(ring: &WdmRing, cost: SlotCost, size: Bytes) -> Vec<Estimate<Stages>> {
    let mut search = ExchangeSearch {
        ring,
        cost,
        size,
        solved: BTreeMap::new(),
    };
    let mut found: Vec<Estimate<Stages>> = (1..=MOST_STAGES)
        .filter_map(|stages| search.cut_into(ring.ranks, stages, true))
        .collect();
    found.sort_by_key(|found| (found.time, found.slots));
    found
}

struct ExchangeSearch<'a> {
    ring: &'a WdmRing,
    cost: SlotCost,
    size: Bytes,
    /// By length and stages, of what comes after the first stage.
    solved: BTreeMap<(u32, usize), Option<Estimate<Stages>>>,
}

impl ExchangeSearch<'_> {
    /// What is left after the first stage, solved once.
    fn rest(&mut self, length: u32, stages: usize) -> Option<Estimate<Stages>> {
        if let Some(known) = self.solved.get(&(length, stages)) {
            return known.clone();
        }
        let found = self.cut_into(length, stages, false);
        self.solved.insert((length, stages), found.clone());
        found
    }

    /// The best of so many stages that cut segments of a length into single ranks.
    fn cut_into(&mut self, length: u32, stages: usize, first: bool) -> Option<Estimate<Stages>> {
        let radices = if stages == 1 {
            vec![length]
        } else {
            spread(length)
        };
        let mut best: Option<Estimate<Stages>> = None;
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
                Some(Estimate {
                    time: 0,
                    slots: 0,
                    recipe: Stages {
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
                best = Some(Estimate {
                    time,
                    slots: slots + rest.slots,
                    recipe: Stages {
                        radices: [vec![radix], rest.recipe.radices].concat(),
                        stripes: [vec![stripes], rest.recipe.stripes].concat(),
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
        let time = self.cost.slots(slots, bytes, u64::from(length / 2).max(1));
        (time, slots, u32::try_from(stripes).unwrap_or(u32::MAX))
    }
}
