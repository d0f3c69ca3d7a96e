//! Few slots for small vectors: groups of ranks with owners, level upon level, and a core.
//!
//! **All_reduce of a vector of M bytes.** On a level the ranks of the ring are cut, in ring order, into
//! G groups of nearly equal size, at most m. Each group has k owners, evenly spaced, and the vector
//! k shares. Up: every member of a group sends each owner its share of the vector, and the owner
//! combines what it gets; then an owner's share stands for the whole group. Owners q of all groups
//! form a ring of G ranks (see [`crate::assembly`]) with a vector of M / k bytes; the k rings do the
//! rest side by side on c / k channels each. Down: every owner hands its finished share back to the
//! members. With k = 1 this is a level of WRHT, with k = m a reduce_scatter and an all_gather within
//! groups.
//!
//! A group lies on a line of links of its own. The load of link x of that line, clockwise, is the
//! number of members before it times the number of owners behind it: at most floor(m / 2) for one
//! owner, floor(m^2 / 4) for k = m. With load L a share may be cut into s stripes on channels of their
//! own: the step takes ceil(s L / c) slots of M / (k s) bytes. Intervals on a line need exactly as
//! many channels as their greatest load, so that number of slots is met.
//!
//! The core on n ranks: `exchange`, in which all send the whole vector to all, ceil(floor(n^2 / 4) / 2)
//! channels per stripe and one slot; or `relay_tree`, an all_gather of blocks of an n-th backwards
//! and forwards, of any number of slots; `one_stage` is the same with the all_gather in one stage.
//!
//! **Correctness.** By induction over levels: before the core every chunk has, on each ring of owners,
//! contributions of disjoint sets of ranks that together are all; the core makes them all ranks at
//! every owner of the chunk's share, and each member then gets every share from its own group's owner,
//! in place of what it held.
//!
//! **All_gather of small blocks.** The same with one owner: up, a member sends what it has, the blocks
//! of consecutive ranks, on one lightpath; the core is an all_gather on the owners' ring whose block
//! j is the blocks of group j; down, an owner sends each member all blocks but the member's own. Every
//! rank gets every block exactly once, so that backwards it is a reduce_scatter.

mod search;

use std::ops::Range;

use crate::assembly::{Assembly, Embedding, Move, cut, smaller};
use crate::ring::few_slots::{self, Estimate, Recipe, joined, numbers, numbers_for};
use crate::ring::relay_tree::rotations::on_ring;
use crate::{GATHERED, Planner, PlannerError, Question, time_reversal};
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Bytes;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Action, Schedule, Transfer};
use search::{GroupedKind, layouts};

/// Groups, their owners, and stripes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupLevel {
    /// The most ranks of a group.
    pub(crate) group: u32,
    /// Owners in each group.
    pub(crate) owners: u32,
    /// Stripes of a share.
    pub(crate) stripes: u32,
}

/// What the owners of the last level do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GroupedCore {
    /// Everything to everybody, in so many stripes.
    Exchange(u32),
    /// A one-stage all_gather of blocks in so many pieces; for an all_reduce there and back.
    OneStage(u32),
    /// The same by relay trees.
    RelayTree(u32),
}

/// Levels and a core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GroupedLayout {
    pub(crate) levels: Vec<GroupLevel>,
    pub(crate) core: GroupedCore,
}

impl GroupedCore {
    /// Names as typed.
    pub(crate) const NAMES: [&'static str; 3] = ["exchange", "one_stage", "relay_tree"];

    /// The core with a name and stripes.
    pub(crate) fn new(name: &str, stripes: u32) -> Option<GroupedCore> {
        match name {
            "exchange" => Some(GroupedCore::Exchange(stripes)),
            "one_stage" => Some(GroupedCore::OneStage(stripes)),
            "relay_tree" => Some(GroupedCore::RelayTree(stripes)),
            _ => None,
        }
    }

    fn named(self) -> (&'static str, u32) {
        match self {
            GroupedCore::Exchange(stripes) => (GroupedCore::NAMES[0], stripes),
            GroupedCore::OneStage(stripes) => (GroupedCore::NAMES[1], stripes),
            GroupedCore::RelayTree(stripes) => (GroupedCore::NAMES[2], stripes),
        }
    }
}

/// The planner of few slots in groups.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("groups", "ranks of a group on each level, such as 9x9")
            .range("numbers joined by x")
            .default("the fastest found"),
        OptionRecord::new("owners", "owners in a group on each level, such as 1x1")
            .range("numbers joined by x; 1 where the collective is not all_reduce")
            .default("1"),
        OptionRecord::new(
            "stripes",
            "stripes of each level and of the core, such as 16x16x3",
        )
        .range("numbers joined by x, each 1 to 4096")
        .default("1"),
        OptionRecord::new("core", "exchange among the owners of the last level")
            .range("one_stage, relay_tree; for all_reduce also exchange")
            .default("one_stage"),
    ],
    by_size: true,
    ..Planner::new(
        GroupedLayout::NAME,
        "Grouped",
        GATHERED,
        "Few slots: collect in groups, exchange among their owners, hand back, striped",
        "opticoll; after WRHT, Dai et al., PPoPP 2023",
        few_slots::scope::<GroupedLayout>(),
    )
};

impl Recipe for GroupedLayout {
    const NAME: &'static str = "grouped";

    fn spec(&self) -> Spec {
        let (core, stripes) = self.core.named();
        if self.levels.is_empty() {
            let spec = Spec::new(GroupedLayout::NAME).with("core", core);
            return spec.with("stripes", stripes);
        }
        let levels = self.levels.iter();
        let all_stripes = levels.clone().map(|level| level.stripes).chain([stripes]);
        Spec::new(GroupedLayout::NAME)
            .with("groups", joined(levels.clone().map(|level| level.group)))
            .with("owners", joined(levels.map(|level| level.owners)))
            .with("stripes", joined(all_stripes))
            .with("core", core)
    }

    /// The transfers of the plan or the chunks of its collective, whichever are more, at most.
    fn transfers(&self, ranks: u64) -> u64 {
        let (mut ranks, mut copies, mut transfers) = (ranks, 1u64, 0u64);
        for level in &self.levels {
            let shares = u64::from(level.owners) * u64::from(level.stripes);
            // Two for each stripe: an all_gather cuts what lies before and behind its own blocks.
            let lightpaths = ranks.saturating_mul(shares).saturating_mul(4);
            transfers = transfers.saturating_add(copies.saturating_mul(lightpaths));
            copies = copies.saturating_mul(level.owners.into());
            ranks = ranks.div_ceil(u64::from(level.group).max(1));
        }
        let (_, stripes) = self.core.named();
        let pairs = ranks.saturating_mul(ranks).saturating_mul(stripes.into());
        let core = pairs.saturating_mul(copies).saturating_mul(2);
        let inner = match self.core {
            GroupedCore::Exchange(stripes) => u64::from(stripes),
            GroupedCore::OneStage(stripes) | GroupedCore::RelayTree(stripes) => {
                ranks.saturating_mul(u64::from(stripes))
            }
        };
        let chunks = self.levels.iter().rev().fold(inner, |chunks, level| {
            let refined = chunks.saturating_mul(refinement(chunks, level.stripes).into());
            refined.saturating_mul(level.owners.into())
        });
        transfers.saturating_add(core).max(chunks)
    }

    fn plan(&self, ring: &WdmRing, collective: Collective) -> Result<Plan, PlannerError> {
        match collective.kind() {
            CollectiveKind::AllReduce => all_reduce(ring, self),
            CollectiveKind::ReduceScatter => {
                let gathering = all_gather(ring, self)?;
                time_reversal::reduce_scatter(&gathering)
            }
            _ => all_gather(ring, self),
        }
    }

    fn given(
        spec: &Spec,
        ring: &WdmRing,
        collective: Collective,
    ) -> Result<Option<GroupedLayout>, PlannerError> {
        if spec.options().next().is_none() {
            return Ok(None);
        }
        let groups = numbers(spec, "groups", "9x9")?.unwrap_or_default();
        let owners = numbers_for(spec, "owners", groups.len())?;
        let stripes = few_slots::stripes(spec, groups.len() + 1)?;
        let levels = groups.iter().zip(&owners).zip(&stripes);
        let levels: Vec<GroupLevel> = levels
            .map(|((&group, &owners), &stripes)| GroupLevel {
                group,
                owners,
                stripes,
            })
            .collect();
        let core = spec.option("core").unwrap_or(GroupedCore::NAMES[1]);
        let in_core = stripes.last().copied().unwrap_or(1);
        let Some(core) = GroupedCore::new(core, in_core) else {
            let problem = format!("must be one of {}", GroupedCore::NAMES.join(", "));
            return Err(spec.refuse("core", problem).into());
        };
        let layout = GroupedLayout { levels, core };
        if collective.kind() != CollectiveKind::AllReduce {
            if owners.iter().any(|&owners| owners > 1) {
                let problem = "must be 1: blocks that several owners share are not consecutive";
                return Err(spec.refuse("owners", problem).into());
            }
            if matches!(core, GroupedCore::Exchange(_)) {
                let problem = "exchanges whole vectors; blocks take one_stage or relay_tree";
                return Err(spec.refuse("core", problem).into());
            }
        }
        if !layout.fits(ring.ranks, ring.channels()) {
            let problem = "must be 2 or more and at most the ranks that are left, with at least as many ranks in \
                           every group as owners, and a channel for each owner";
            return Err(spec.refuse("groups", problem).into());
        }
        Ok(Some(layout))
    }

    fn estimated(ring: &WdmRing, question: &Question<'_>) -> Vec<Estimate<GroupedLayout>> {
        let size = question.size;
        let (kind, size) = match question.collective.kind() {
            CollectiveKind::AllReduce => (GroupedKind::AllReduce, size),
            CollectiveKind::ReduceScatter => (GroupedKind::AllGather, block(ring, size)),
            _ => (GroupedKind::AllGather, size),
        };
        layouts(ring, question.slot_cost(ring), kind, size)
    }
}

/// A size's part for one rank, rounded up.
fn block(ring: &WdmRing, size: Bytes) -> Bytes {
    Bytes::new(size.get().div_ceil(u64::from(ring.ranks)))
}

impl GroupedLayout {
    /// Whether the groups can be cut and have channels on a ring of so many ranks and channels.
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

/// Into how many groups of at most `group` ranks are cut; `None` where there are fewer ranks than that, or a group would have fewer
/// than `owners`.
pub(crate) fn groups(ranks: u32, group: u32, owners: u32) -> Option<u32> {
    if group < 2 || group > ranks || owners == 0 {
        return None;
    }
    let groups = ranks.div_ceil(group);
    (ranks / groups >= owners).then_some(groups)
}

/// The greatest load of a link of a group's line, per stripe, in one direction; the other has the same.
pub(crate) fn load(size: u32, owners: u32) -> u32 {
    let owner = |index: u32| owner_place(size, owners, index);
    let clockwise = (0..owners).map(|index| owner(index) * (owners - index));
    let counter = (0..owners).map(|index| (size - 1 - owner(index)) * (index + 1));
    clockwise.chain(counter).max().unwrap_or(0)
}

/// Where in a group its owner with an index stands: evenly spaced, one owner in the middle.
fn owner_place(size: u32, owners: u32, index: u32) -> u32 {
    ((2 * u64::from(index) + 1) * u64::from(size) / (2 * u64::from(owners))) as u32
}

/// The all_reduce of a layout.
///
/// # Errors
/// Chunks beyond 32 bits, or what the core refuses.
fn all_reduce(ring: &WdmRing, layout: &GroupedLayout) -> Result<Plan, PlannerError> {
    let plan = reduced(ring, &layout.levels, layout.core)?;
    Ok(Plan {
        algorithm: layout.spec().to_string(),
        ..plan
    })
}

fn reduced(ring: &WdmRing, levels: &[GroupLevel], core: GroupedCore) -> Result<Plan, PlannerError> {
    let Some((level, deeper)) = levels.split_first() else {
        return reduced_core(ring, core);
    };
    let grouping = Grouping::new(ring.ranks, level);
    let owners = level.owners;
    let channels = ring.channels() / owners;
    let inner = reduced(&smaller(ring, grouping.count, channels), deeper, core)?;
    let inner_chunks = inner.schedule.collective.pieces();
    let share = inner_chunks * refinement(u64::from(inner_chunks), level.stripes);
    let collective =
        Collective::new(CollectiveKind::AllReduce, ring.ranks)?.with_pieces(share * owners)?;
    let mut assembly = Assembly::new(ring, collective);
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for (range, owner, index) in grouping.owners() {
        let of_owner = index * share..(index + 1) * share;
        for member in range.filter(|&member| member != owner) {
            interrupt::check();
            for stripe in cut(of_owner.clone(), level.stripes) {
                up.push(along(member, owner, stripe.clone(), Action::Reduce));
                down.push(along(owner, member, stripe, Action::Copy));
            }
        }
    }
    assembly.step(&up)?;
    let places: Vec<Embedding> = (0..owners)
        .map(|index| Embedding {
            members: grouping.members(index),
            first_channel: index * channels,
            edges: cut(index * share..(index + 1) * share, inner_chunks)
                .map(|chunk| chunk.start)
                .chain([(index + 1) * share])
                .collect(),
        })
        .collect();
    assembly.embed(&inner, &places);
    assembly.step(&down)?;
    Ok(assembly.finish(String::new()))
}

/// The least factor by which to refine `chunks` so that they are cut into `stripes` parts none of
/// which is more than 3 % above the mean.
fn refinement(chunks: u64, stripes: u32) -> u32 {
    let even = |factor: &u32| {
        let fine = u128::from(chunks) * u128::from(*factor);
        let stripes = u128::from(stripes);
        fine.div_ceil(stripes) * stripes * 100 <= fine * 103
    };
    (1..=stripes.max(1)).find(even).unwrap_or(1)
}

fn reduced_core(ring: &WdmRing, core: GroupedCore) -> Result<Plan, PlannerError> {
    let ranks = ring.ranks;
    if ranks == 1 {
        let alone = Collective::new(CollectiveKind::AllReduce, 1)?;
        return Ok(Assembly::new(ring, alone).finish(String::new()));
    }
    let GroupedCore::Exchange(stripes) = core else {
        let gathering = gathered_core(ring, core)?;
        return Ok(time_reversal::all_reduce(&gathering)?.into_written_out());
    };
    let collective = Collective::new(CollectiveKind::AllReduce, ranks)?.with_pieces(stripes)?;
    all_pairs(ring, collective, |chunk, source, destination| Transfer {
        chunk,
        ..Transfer::reduce(0, source, destination)
    })
}

/// One step in which every rank sends every other one a chunk for each stripe.
fn all_pairs(
    ring: &WdmRing,
    collective: Collective,
    transfer: impl Fn(u32, u32, u32) -> Transfer,
) -> Result<Plan, PlannerError> {
    let mut schedule = Schedule::new(collective);
    schedule.begin_step();
    for source in 0..ring.ranks {
        for destination in (0..ring.ranks).filter(|&rank| rank != source) {
            interrupt::check();
            for stripe in 0..collective.pieces() {
                schedule.push(transfer(stripe, source, destination));
            }
        }
    }
    Ok(opticoll_placement::place_by_default(
        schedule,
        &Fabric::new(ring.clone()),
        String::new(),
    )?)
}

/// The all_gather of a layout, of blocks in one piece.
///
/// # Errors
/// An `exchange` as its core, or more than one owner to a group, or what the core refuses.
fn all_gather(ring: &WdmRing, layout: &GroupedLayout) -> Result<Plan, PlannerError> {
    let plan = gathered(ring, &layout.levels, layout.core, 1)?;
    Ok(Plan {
        algorithm: layout.spec().to_string(),
        ..plan
    })
}

fn gathered(
    ring: &WdmRing,
    levels: &[GroupLevel],
    core: GroupedCore,
    pieces: u32,
) -> Result<Plan, PlannerError> {
    let Some((level, deeper)) = levels.split_first() else {
        let (_, stripes) = core.named();
        debug_assert!(stripes == pieces || ring.ranks == 1);
        return gathered_core(ring, core.with_stripes(pieces));
    };
    let grouping = Grouping::new(ring.ranks, level);
    // Every piece of a group's blocks must have a chunk of its own.
    let (_, wanted) = core.named();
    let inner_pieces = wanted.min(pieces * (ring.ranks / grouping.count)).max(1);
    let inside = smaller(ring, grouping.count, ring.channels());
    let inner = gathered(&inside, deeper, core, inner_pieces)?;
    let collective = Collective::new(CollectiveKind::AllGather, ring.ranks)?.with_pieces(pieces)?;
    let mut assembly = Assembly::new(ring, collective);
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for (range, owner, _) in grouping.owners() {
        for member in range.filter(|&member| member != owner) {
            interrupt::check();
            let own = member * pieces..(member + 1) * pieces;
            for stripe in cut(own.clone(), level.stripes) {
                up.push(along(member, owner, stripe, Action::Copy));
            }
            for stripe in cut_around(own, collective.chunks(), level.stripes) {
                down.push(along(owner, member, stripe, Action::Copy));
            }
        }
    }
    assembly.step(&up)?;
    let edges = (0..grouping.count)
        .flat_map(|group| {
            let range = grouping.range(group);
            cut(range.start * pieces..range.end * pieces, inner_pieces)
        })
        .map(|chunk| chunk.start)
        .chain([collective.chunks()])
        .collect();
    let place = Embedding {
        members: grouping.members(0),
        first_channel: 0,
        edges,
    };
    assembly.embed(&inner, &[place]);
    assembly.step(&down)?;
    Ok(assembly.finish(String::new()))
}

/// What lies before and behind `own` of the chunks `0..chunks`, in `stripes` ranges (at least one for
/// each side) of which the longest is as short as can be.
fn cut_around(own: Range<u32>, chunks: u32, stripes: u32) -> impl Iterator<Item = Range<u32>> {
    let (before, behind) = (0..own.start, own.end..chunks);
    let longest = |first: u32| {
        let second = stripes.saturating_sub(first);
        let of = |range: &Range<u32>, parts: u32| {
            let length = range.end - range.start;
            if length == 0 {
                0
            } else if parts == 0 {
                u32::MAX
            } else {
                length.div_ceil(parts)
            }
        };
        of(&before, first).max(of(&behind, second))
    };
    let first = (0..=stripes)
        .min_by_key(|&first| longest(first))
        .unwrap_or(0);
    let second = stripes.saturating_sub(first).max(1);
    cut(before.clone(), first.max(1)).chain(cut(behind.clone(), second))
}

fn gathered_core(ring: &WdmRing, core: GroupedCore) -> Result<Plan, PlannerError> {
    let (_, pieces) = core.named();
    let collective = Collective::new(CollectiveKind::AllGather, ring.ranks)?.with_pieces(pieces)?;
    if ring.ranks == 1 {
        return Ok(Assembly::new(ring, collective).finish(String::new()));
    }
    match core {
        GroupedCore::RelayTree(_) => on_ring(ring, collective).map(Plan::into_written_out),
        GroupedCore::OneStage(_) | GroupedCore::Exchange(_) => {
            all_pairs(ring, collective, |piece, source, destination| {
                Transfer::copy(source * pieces + piece, source, destination)
            })
        }
    }
}

impl GroupedCore {
    fn with_stripes(self, stripes: u32) -> GroupedCore {
        match self {
            GroupedCore::Exchange(_) => GroupedCore::Exchange(stripes),
            GroupedCore::OneStage(_) => GroupedCore::OneStage(stripes),
            GroupedCore::RelayTree(_) => GroupedCore::RelayTree(stripes),
        }
    }
}

/// A move between two ranks of a group, along its line.
fn along(source: u32, destination: u32, chunks: Range<u32>, action: Action) -> Move {
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

/// The ranks of a ring in groups of nearly equal size.
pub(crate) struct Grouping {
    pub(crate) ranks: u32,
    pub(crate) count: u32,
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

    pub(crate) fn range(&self, group: u32) -> Range<u32> {
        let edge =
            |group: u32| (u64::from(self.ranks) * u64::from(group) / u64::from(self.count)) as u32;
        edge(group)..edge(group + 1)
    }

    pub(crate) fn owner(&self, group: u32, index: u32) -> u32 {
        let range = self.range(group);
        range.start + owner_place(range.end - range.start, self.owners, index)
    }

    /// The owners with an index, of all groups.
    fn members(&self, index: u32) -> Vec<u32> {
        (0..self.count)
            .map(|group| self.owner(group, index))
            .collect()
    }

    /// Every owner: the ranks of its group, its rank, its index.
    fn owners(&self) -> impl Iterator<Item = (Range<u32>, u32, u32)> + '_ {
        (0..self.count).flat_map(move |group| {
            (0..self.owners).map(move |index| (self.range(group), self.owner(group, index), index))
        })
    }
}
