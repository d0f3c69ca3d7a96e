//! Hierarchical plans of few slots for small vectors: groups of ranks on several levels, and an
//! exchange among the gateway ranks of the last level.
//!
//! **All_reduce of a vector of M bytes.** A level divides the ranks, in ring order, into G groups
//! of nearly equal size. A group has at most m ranks, among them k evenly spaced *gateways*. The
//! vector is divided into k shares, one per gateway. A level has three parts:
//!
//! - Upward step: every member of a group sends each share to the gateway of this share. The
//!   gateway adds the contributions of its group.
//! - Inner all_reduce: the gateways of the same share in all groups form a ring of G ranks
//!   ([`crate::building::assembly`]) and execute an all_reduce of M / k bytes. The k rings work in
//!   parallel, each with c / k of the c channels.
//! - Downward step: every gateway sends the sum of its share to the members of its group.
//!
//! With k = 1, a level corresponds to a level of WRHT.
//!
//! **Number of slots.** The links between the ranks of a group form a line, which no other group
//! uses. The clockwise load of a link is the number of members before the link times the number of
//! gateways behind the link. The maximum load L is floor(m / 2) if k = 1, and floor(m^2 / 4) if k =
//! m. If a share is cut into s stripes on separate channels, a step needs ceil(s L / c) slots of M
//! / (k s) bytes. (Lightpaths on a line can be assigned to L channels if L is the maximum load.)
//!
//! In the exchange among n gateways, every gateway sends its whole vector to all other gateways in
//! one slot. The exchange needs ceil(floor(n^2 / 4) / 2) channels per stripe.
//!
//! **Correctness** (induction over levels). Before the exchange, the gateways of a share have the
//! contributions of disjoint sets of ranks, whose union is the set of all ranks. After the
//! exchange, every gateway has the contributions of all ranks, and sends the sums to the members of
//! its group.

mod search;

use std::ops::Range;

use crate::building::assembly::{Assembly, Embedding, Move, cut, smaller};
use crate::ring::recipe::{self, Estimate, Recipe, joined, numbers, numbers_for};
use crate::{Planner, PlannerError, PlanningProblem};
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Action, Schedule, Transfer};
use search::layouts;

/// Parameters of a level of the hierarchy, which divides the ranks into groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupLevel {
    /// Maximum number of ranks in a group.
    pub(crate) group: u32,
    pub(crate) gateways: u32,
    /// Number of stripes (pieces on separate channels) of each gateway's share of the vector.
    pub(crate) stripes: u32,
}

/// Parameters of a hierarchical all_reduce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HierarchicalLayout {
    pub(crate) levels: Vec<GroupLevel>,
    /// Number of stripes (pieces on separate channels) into which each gateway of the last level
    /// cuts its vector in the exchange.
    pub(crate) stripes: u32,
}

pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new(
            "groups",
            "number of ranks of a group on each level, such as 9x9",
        )
        .range("numbers joined by x")
        .default("the fastest found"),
        OptionRecord::new(
            "gateways",
            "number of owners in a group on each level, such as 1x1",
        )
        .range("numbers joined by x")
        .default("1"),
        OptionRecord::new(
            "stripes",
            "number of stripes of each level and of the exchange, such as 16x16x3",
        )
        .range("numbers joined by x, each 1 to 4096")
        .default("1"),
    ],
    depends_on_size: true,
    ..Planner::new(
        HierarchicalLayout::NAME,
        "Hierarchical",
        &[CollectiveKind::AllReduce],
        "Ranks send to gateways of their group, the gateways exchange sums and return the results, \
        all striped",
        "opticoll; after WRHT, Dai et al., PPoPP 2023",
        recipe::scope::<HierarchicalLayout>(),
    )
};

impl Recipe for HierarchicalLayout {
    const NAME: &'static str = "hierarchical";

    fn spec(&self) -> Spec {
        let spec = Spec::new(HierarchicalLayout::NAME);
        if self.levels.is_empty() {
            return spec.with("stripes", self.stripes);
        }
        let levels = self.levels.iter();
        let stripes = levels.clone().map(|level| level.stripes);
        spec.with("groups", joined(levels.clone().map(|level| level.group)))
            .with("gateways", joined(levels.map(|level| level.gateways)))
            .with("stripes", joined(stripes.chain([self.stripes])))
    }

    fn transfers(&self, ranks: u64) -> u64 {
        let (mut ranks, mut copies, mut transfers) = (ranks, 1u64, 0u64);
        for level in &self.levels {
            let shares = u64::from(level.gateways) * u64::from(level.stripes);
            // The factor 2 counts the upward and the downward step.
            let lightpaths = ranks.saturating_mul(shares).saturating_mul(2);
            transfers = transfers.saturating_add(copies.saturating_mul(lightpaths));
            copies = copies.saturating_mul(level.gateways.into());
            ranks = ranks.div_ceil(u64::from(level.group).max(1));
        }
        let stripes = u64::from(self.stripes);
        let pairs = ranks.saturating_mul(ranks).saturating_mul(stripes);
        let exchanged = pairs.saturating_mul(copies);
        let chunks = self.levels.iter().rev().fold(stripes, |chunks, level| {
            let refined = chunks.saturating_mul(refinement(chunks, level.stripes).into());
            refined.saturating_mul(level.gateways.into())
        });
        transfers.saturating_add(exchanged).max(chunks)
    }

    fn plan(&self, ring: &WdmRing, _: Collective) -> Result<Plan, PlannerError> {
        let plan = all_reduce(ring, &self.levels, self.stripes)?;
        Ok(Plan {
            algorithm: self.spec().to_string(),
            ..plan
        })
    }

    fn from_options(
        spec: &Spec,
        ring: &WdmRing,
        _: Collective,
    ) -> Result<Option<HierarchicalLayout>, PlannerError> {
        if spec.options().next().is_none() {
            return Ok(None);
        }
        let groups = numbers(spec, "groups", "9x9")?.unwrap_or_default();
        let gateways = numbers_for(spec, "gateways", groups.len())?;
        let stripes = recipe::stripes(spec, groups.len() + 1)?;
        let levels = groups.iter().zip(&gateways).zip(&stripes);
        let levels: Vec<GroupLevel> = levels
            .map(|((&group, &gateways), &stripes)| GroupLevel {
                group,
                gateways,
                stripes,
            })
            .collect();
        let stripes = stripes.last().copied().unwrap_or(1);
        let layout = HierarchicalLayout { levels, stripes };
        if !layout.fits(ring.ranks, ring.channels()) {
            let error = "must be at least 2 and at most the number of remaining ranks, with at \
                         least as many ranks in every group as owners, and a channel for each \
                         owner";
            return Err(spec.refuse("groups", error).into());
        }
        Ok(Some(layout))
    }

    fn estimates(
        ring: &WdmRing,
        problem: &PlanningProblem<'_>,
    ) -> Vec<Estimate<HierarchicalLayout>> {
        layouts(ring, problem.slot_cost(ring), problem.size)
    }
}

impl HierarchicalLayout {
    /// Returns whether the layout is possible on a ring of `ranks` ranks and `channels` channels
    /// per direction. Every group needs at least as many ranks as gateways, and every gateway needs
    /// a channel.
    pub(crate) fn fits(&self, ranks: u32, channels: u32) -> bool {
        let (mut ranks, mut channels) = (ranks, channels);
        for level in &self.levels {
            let Some(groups) = groups(ranks, level.group, level.gateways) else {
                return false;
            };
            channels /= level.gateways;
            if channels == 0 || level.stripes == 0 {
                return false;
            }
            ranks = groups;
        }
        true
    }
}

/// Returns the number of groups of at most `group` ranks on a ring of `ranks` ranks. Returns `None`
/// if `group` is less than 2 or exceeds `ranks`, or if a group would have fewer ranks than
/// gateways.
pub(crate) fn groups(ranks: u32, group: u32, gateways: u32) -> Option<u32> {
    if group < 2 || group > ranks || gateways == 0 {
        return None;
    }
    let groups = ranks.div_ceil(group);
    (ranks / groups >= gateways).then_some(groups)
}

/// Returns the maximum load within a group: the number of lightpaths on the busiest link, in one
/// direction. Every member of the group sends one stripe to every gateway. The group has `size`
/// ranks.
pub(crate) fn load(size: u32, gateways: u32) -> u32 {
    let gateway = |index: u32| gateway_position(size, gateways, index);
    let clockwise = (0..gateways).map(|index| gateway(index) * (gateways - index));
    let counter = (0..gateways).map(|index| (size - 1 - gateway(index)) * (index + 1));
    clockwise.chain(counter).max().unwrap_or(0)
}

/// Returns the position (from 0) of the gateway with index `index` in a group of `size` ranks.
fn gateway_position(size: u32, gateways: u32, index: u32) -> u32 {
    ((2 * u64::from(index) + 1) * u64::from(size) / (2 * u64::from(gateways))) as u32
}

/// Builds the plan of an all_reduce on `levels`. In the exchange after the last level, each vector
/// has `stripes` stripes.
fn all_reduce(ring: &WdmRing, levels: &[GroupLevel], stripes: u32) -> Result<Plan, PlannerError> {
    let Some((level, deeper)) = levels.split_first() else {
        return exchange(ring, stripes);
    };
    let grouping = Grouping::new(ring.ranks, level);
    let gateways = level.gateways;
    let channels = ring.channels() / gateways;
    let inner = all_reduce(&smaller(ring, grouping.count, channels), deeper, stripes)?;
    let inner_chunks = inner.schedule.collective.pieces();
    let share = inner_chunks * refinement(u64::from(inner_chunks), level.stripes);
    let collective =
        Collective::new(CollectiveKind::AllReduce, ring.ranks)?.with_pieces(share * gateways)?;
    let mut assembly = Assembly::new(ring, collective);
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for (range, gateway, index) in grouping.all_gateways() {
        let gateway_share = index * share..(index + 1) * share;
        for member in range.filter(|&member| member != gateway) {
            interrupt::check();
            for stripe in cut(gateway_share.clone(), level.stripes) {
                up.push(line_move(member, gateway, stripe.clone(), Action::Reduce));
                down.push(line_move(gateway, member, stripe, Action::Copy));
            }
        }
    }
    assembly.step(&up)?;
    let embeddings: Vec<Embedding> = (0..gateways)
        .map(|index| Embedding {
            members: grouping.gateway_ring(index),
            first_channel: index * channels,
            edges: cut(index * share..(index + 1) * share, inner_chunks)
                .map(|chunk| chunk.start)
                .chain([(index + 1) * share])
                .collect(),
        })
        .collect();
    assembly.embed(&inner, &embeddings);
    assembly.step(&down)?;
    Ok(assembly.finish(String::new()))
}

/// Returns the smallest factor such that `chunks` times the factor can be divided evenly into
/// `stripes` stripes (see [`recipe::is_evenly_divisible`]).
fn refinement(chunks: u64, stripes: u32) -> u32 {
    let is_even = |factor: &u32| {
        recipe::is_evenly_divisible(u128::from(chunks) * u128::from(*factor), stripes)
    };
    (1..=stripes.max(1)).find(is_even).unwrap_or(1)
}

/// Builds the plan of an all_reduce of one step. Every rank sends its whole vector to all other
/// ranks, in `stripes` stripes.
fn exchange(ring: &WdmRing, stripes: u32) -> Result<Plan, PlannerError> {
    if ring.ranks == 1 {
        let trivial = Collective::new(CollectiveKind::AllReduce, 1)?;
        return Ok(Assembly::new(ring, trivial).finish(String::new()));
    }
    let collective =
        Collective::new(CollectiveKind::AllReduce, ring.ranks)?.with_pieces(stripes)?;
    let mut schedule = Schedule::new(collective);
    schedule.begin_step();
    for source in 0..ring.ranks {
        for destination in (0..ring.ranks).filter(|&rank| rank != source) {
            interrupt::check();
            for stripe in 0..stripes {
                schedule.push(Transfer {
                    chunk: stripe,
                    ..Transfer::reduce(0, source, destination)
                });
            }
        }
    }
    Ok(opticoll_placement::place_by_default(
        schedule,
        &Fabric::new(ring.clone()),
        String::new(),
    )?)
}

fn line_move(source: u32, destination: u32, chunks: Range<u32>, action: Action) -> Move {
    let transfer = Transfer {
        chunk: chunks.start,
        count: chunks.end - chunks.start,
        source,
        destination,
        action,
    };
    let direction = if destination > source {
        Direction::Clockwise
    } else {
        Direction::CounterClockwise
    };
    (transfer, direction)
}

/// Division of a ring's ranks into groups of nearly equal size.
pub(crate) struct Grouping {
    pub(crate) ranks: u32,
    /// Number of groups.
    pub(crate) count: u32,
    gateways: u32,
}

impl Grouping {
    pub(crate) fn new(ranks: u32, level: &GroupLevel) -> Grouping {
        Grouping {
            ranks,
            count: ranks.div_ceil(level.group),
            gateways: level.gateways,
        }
    }

    pub(crate) fn range(&self, group: u32) -> Range<u32> {
        let edge =
            |group: u32| (u64::from(self.ranks) * u64::from(group) / u64::from(self.count)) as u32;
        edge(group)..edge(group + 1)
    }

    /// Returns the rank of the gateway with index `index` in the group with index `group`.
    pub(crate) fn gateway(&self, group: u32, index: u32) -> u32 {
        let range = self.range(group);
        range.start + gateway_position(range.end - range.start, self.gateways, index)
    }

    fn gateway_ring(&self, index: u32) -> Vec<u32> {
        (0..self.count)
            .map(|group| self.gateway(group, index))
            .collect()
    }

    /// Returns an entry for each gateway of each group: the ranks of the group, the rank of the
    /// gateway, and the index of the gateway in the group.
    fn all_gateways(&self) -> impl Iterator<Item = (Range<u32>, u32, u32)> + '_ {
        (0..self.count).flat_map(move |group| {
            (0..self.gateways)
                .map(move |index| (self.range(group), self.gateway(group, index), index))
        })
    }
}
