//! Plans of few slots for small vectors: groups of ranks with owners on several levels, and an
//! exchange among the owners of the last level.
//!
//! **All_reduce of a vector of M bytes.** On a level the ranks of the ring are cut, in ring order,
//! into G groups of nearly equal size, at most m ranks. Each group has k evenly spaced owners, and
//! the vector has k shares. Up: every member of a group sends each owner its share of the vector,
//! and the owner combines what it receives, so that the owner's share stands for the whole group.
//! The owners of share q of all groups form a ring of G ranks (see [`crate::building::assembly`])
//! with a vector of M / k bytes; the k rings solve the rest in parallel on c / k channels each.
//! Down: every owner returns its finished share to the members. With k = 1 this is a level of WRHT,
//! with k = m a reduce_scatter and an all_gather within groups.
//!
//! A group lies on a line of links of its own. The clockwise load of link x of that line is the
//! number of members before the link times the number of owners behind it: at most floor(m / 2) for
//! one owner, and floor(m^2 / 4) for k = m. With load L a share may be cut into s stripes on
//! channels of their own: the step needs ceil(s L / c) slots of M / (k s) bytes. Intervals on a
//! line need exactly as many channels as their greatest load, so that this number of slots is met.
//!
//! In the exchange on n ranks every rank sends the whole vector to all others:
//! ceil(floor(n^2 / 4) / 2) channels per stripe, and one slot.
//!
//! **Correctness.** By induction over levels: before the exchange every chunk has, on each ring of
//! owners, contributions of disjoint sets of ranks whose union is all ranks. After the exchange
//! every owner of the chunk's share has the contributions of all ranks, and each member then
//! receives every share from the owner of its group, in place of its earlier value.

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

/// Level of groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupLevel {
    /// Maximum number of ranks in a group.
    pub(crate) group: u32,
    /// Number of owners in each group.
    pub(crate) owners: u32,
    /// Stripes of a share.
    pub(crate) stripes: u32,
}

/// Recipe: levels of groups, and the stripes of the exchange among the owners of the last level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HierarchicalLayout {
    pub(crate) levels: Vec<GroupLevel>,
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
        "Grouped",
        &[CollectiveKind::AllReduce],
        "Few slots: collect in groups, exchange among the groups' owners, return the results, all \
         striped",
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
            .with("gateways", joined(levels.map(|level| level.owners)))
            .with("stripes", joined(stripes.chain([self.stripes])))
    }

    /// Returns an upper bound on the number of transfers of the plan or of chunks of its
    /// collective, whichever is larger.
    fn transfers(&self, ranks: u64) -> u64 {
        let (mut ranks, mut copies, mut transfers) = (ranks, 1u64, 0u64);
        for level in &self.levels {
            let shares = u64::from(level.owners) * u64::from(level.stripes);
            // The factor 2 counts the ways up and down.
            let lightpaths = ranks.saturating_mul(shares).saturating_mul(2);
            transfers = transfers.saturating_add(copies.saturating_mul(lightpaths));
            copies = copies.saturating_mul(level.owners.into());
            ranks = ranks.div_ceil(u64::from(level.group).max(1));
        }
        let stripes = u64::from(self.stripes);
        let pairs = ranks.saturating_mul(ranks).saturating_mul(stripes);
        let exchanged = pairs.saturating_mul(copies);
        let chunks = self.levels.iter().rev().fold(stripes, |chunks, level| {
            let refined = chunks.saturating_mul(refinement(chunks, level.stripes).into());
            refined.saturating_mul(level.owners.into())
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
        let owners = numbers_for(spec, "gateways", groups.len())?;
        let stripes = recipe::stripes(spec, groups.len() + 1)?;
        let levels = groups.iter().zip(&owners).zip(&stripes);
        let levels: Vec<GroupLevel> = levels
            .map(|((&group, &owners), &stripes)| GroupLevel {
                group,
                owners,
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
    /// Returns whether the groups can be formed and have channels on a ring of `ranks` ranks and
    /// `channels` channels.
    pub(crate) fn fits(&self, ranks: u32, channels: u32) -> bool {
        let (mut ranks, mut channels) = (ranks, channels);
        for level in &self.levels {
            let Some(groups) = groups(ranks, level.group, level.owners) else {
                return false;
            };
            channels /= level.owners;
            if channels == 0 || level.stripes == 0 {
                return false;
            }
            ranks = groups;
        }
        true
    }
}

/// Returns the number of groups of at most `group` ranks; `None` if there are fewer ranks, or if a
/// group would have fewer ranks than `owners`.
pub(crate) fn groups(ranks: u32, group: u32, owners: u32) -> Option<u32> {
    if group < 2 || group > ranks || owners == 0 {
        return None;
    }
    let groups = ranks.div_ceil(group);
    (ranks / groups >= owners).then_some(groups)
}

/// Returns the greatest load of a link of a group's line in one direction, per stripe. The other
/// direction has the same load.
pub(crate) fn load(size: u32, owners: u32) -> u32 {
    let owner = |index: u32| owner_position(size, owners, index);
    let clockwise = (0..owners).map(|index| owner(index) * (owners - index));
    let counter = (0..owners).map(|index| (size - 1 - owner(index)) * (index + 1));
    clockwise.chain(counter).max().unwrap_or(0)
}

/// Returns the position in a group of the owner with an index. Owners are evenly spaced; a single
/// one is in the middle.
fn owner_position(size: u32, owners: u32, index: u32) -> u32 {
    ((2 * u64::from(index) + 1) * u64::from(size) / (2 * u64::from(owners))) as u32
}

/// Returns the all_reduce over levels, with an exchange in `stripes` stripes after the last level.
///
/// # Errors
/// More chunks than 32 bits can count.
fn all_reduce(ring: &WdmRing, levels: &[GroupLevel], stripes: u32) -> Result<Plan, PlannerError> {
    let Some((level, deeper)) = levels.split_first() else {
        return exchange(ring, stripes);
    };
    let grouping = Grouping::new(ring.ranks, level);
    let owners = level.owners;
    let channels = ring.channels() / owners;
    let inner = all_reduce(&smaller(ring, grouping.count, channels), deeper, stripes)?;
    let inner_chunks = inner.schedule.collective.pieces();
    let share = inner_chunks * refinement(u64::from(inner_chunks), level.stripes);
    let collective =
        Collective::new(CollectiveKind::AllReduce, ring.ranks)?.with_pieces(share * owners)?;
    let mut assembly = Assembly::new(ring, collective);
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for (range, owner, index) in grouping.owners() {
        let owner_share = index * share..(index + 1) * share;
        for member in range.filter(|&member| member != owner) {
            interrupt::check();
            for stripe in cut(owner_share.clone(), level.stripes) {
                up.push(line_move(member, owner, stripe.clone(), Action::Reduce));
                down.push(line_move(owner, member, stripe, Action::Copy));
            }
        }
    }
    assembly.step(&up)?;
    let embeddings: Vec<Embedding> = (0..owners)
        .map(|index| Embedding {
            members: grouping.members(index),
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

/// Returns the least factor by which `chunks` must be refined to be evenly divisible into `stripes`
/// parts (see [`recipe::is_evenly_divisible`]).
fn refinement(chunks: u64, stripes: u32) -> u32 {
    let is_even = |factor: &u32| {
        recipe::is_evenly_divisible(u128::from(chunks) * u128::from(*factor), stripes)
    };
    (1..=stripes.max(1)).find(is_even).unwrap_or(1)
}

/// Returns the all_reduce of one step, in which every rank sends its whole vector to all other
/// ranks.
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

/// Returns the move between two ranks of a group, along its line.
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

/// Groups of nearly equal size of the ranks of a ring.
pub(crate) struct Grouping {
    pub(crate) ranks: u32,
    /// Number of groups.
    pub(crate) count: u32,
    /// Owners in each group.
    owners: u32,
}

impl Grouping {
    pub(crate) fn new(ranks: u32, level: &GroupLevel) -> Grouping {
        Grouping {
            ranks,
            count: ranks.div_ceil(level.group),
            owners: level.owners,
        }
    }

    /// Returns the ranks of a group.
    pub(crate) fn range(&self, group: u32) -> Range<u32> {
        let edge =
            |group: u32| (u64::from(self.ranks) * u64::from(group) / u64::from(self.count)) as u32;
        edge(group)..edge(group + 1)
    }

    /// Returns the rank of the owner of a group with an index.
    pub(crate) fn owner(&self, group: u32, index: u32) -> u32 {
        let range = self.range(group);
        range.start + owner_position(range.end - range.start, self.owners, index)
    }

    /// Returns the owners with an index, of all groups.
    fn members(&self, index: u32) -> Vec<u32> {
        (0..self.count)
            .map(|group| self.owner(group, index))
            .collect()
    }

    /// Returns all owners: the ranks of the group, the owner's rank, and its index.
    fn owners(&self) -> impl Iterator<Item = (Range<u32>, u32, u32)> + '_ {
        (0..self.count).flat_map(move |group| {
            (0..self.owners).map(move |index| (self.range(group), self.owner(group, index), index))
        })
    }
}
