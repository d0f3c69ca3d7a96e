//! Few slots for small vectors: groups of ranks with owners, level upon level, and an exchange among the last owners.
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
//! In the exchange on n ranks all send the whole vector to all: ceil(floor(n^2 / 4) / 2)
//! channels per stripe and one slot.
//!
//! **Correctness.** By induction over levels: before the exchange every chunk has, on each ring of owners,
//! contributions of disjoint sets of ranks that together are all; the exchange makes them all ranks at
//! every owner of the chunk's share, and each member then gets every share from its own group's owner,
//! in place of what it held.

mod search;

use std::ops::Range;

use crate::assembly::{Assembly, Embedding, Move, cut, smaller};
use crate::ring::few_slots::{self, Estimate, Recipe, joined, numbers, numbers_for};
use crate::{Planner, PlannerError, Question};
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Action, Schedule, Transfer};
use search::layouts;

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

/// Levels, and the stripes of the exchange among the owners of the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GroupedLayout {
    pub(crate) levels: Vec<GroupLevel>,
    pub(crate) stripes: u32,
}

/// The planner of few slots in groups.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("groups", "ranks of a group on each level, such as 9x9")
            .range("numbers joined by x")
            .default("the fastest found"),
        OptionRecord::new("owners", "owners in a group on each level, such as 1x1")
            .range("numbers joined by x")
            .default("1"),
        OptionRecord::new(
            "stripes",
            "stripes of each level and of the exchange, such as 16x16x3",
        )
        .range("numbers joined by x, each 1 to 4096")
        .default("1"),
    ],
    by_size: true,
    ..Planner::new(
        GroupedLayout::NAME,
        "Grouped",
        &[CollectiveKind::AllReduce],
        "Few slots: collect in groups, exchange among their owners, hand back, striped",
        "opticoll; after WRHT, Dai et al., PPoPP 2023",
        few_slots::scope::<GroupedLayout>(),
    )
};

impl Recipe for GroupedLayout {
    const NAME: &'static str = "grouped";

    fn spec(&self) -> Spec {
        let spec = Spec::new(GroupedLayout::NAME);
        if self.levels.is_empty() {
            return spec.with("stripes", self.stripes);
        }
        let levels = self.levels.iter();
        let stripes = levels.clone().map(|level| level.stripes);
        spec.with("groups", joined(levels.clone().map(|level| level.group)))
            .with("owners", joined(levels.map(|level| level.owners)))
            .with("stripes", joined(stripes.chain([self.stripes])))
    }

    /// The transfers of the plan or the chunks of its collective, whichever are more, at most.
    fn transfers(&self, ranks: u64) -> u64 {
        let (mut ranks, mut copies, mut transfers) = (ranks, 1u64, 0u64);
        for level in &self.levels {
            let shares = u64::from(level.owners) * u64::from(level.stripes);
            // Up and down.
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
        let plan = reduced(ring, &self.levels, self.stripes)?;
        Ok(Plan {
            algorithm: self.spec().to_string(),
            ..plan
        })
    }

    fn given(
        spec: &Spec,
        ring: &WdmRing,
        _: Collective,
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
        let stripes = stripes.last().copied().unwrap_or(1);
        let layout = GroupedLayout { levels, stripes };
        if !layout.fits(ring.ranks, ring.channels()) {
            let problem = "must be 2 or more and at most the ranks that are left, with at least as many ranks in \
                           every group as owners, and a channel for each owner";
            return Err(spec.refuse("groups", problem).into());
        }
        Ok(Some(layout))
    }

    fn estimated(ring: &WdmRing, question: &Question<'_>) -> Vec<Estimate<GroupedLayout>> {
        layouts(ring, question.slot_cost(ring), question.size)
    }
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

/// Returns the all_reduce of levels, with an exchange in so many stripes after the last.
///
/// # Errors
/// Chunks beyond 32 bits.
fn reduced(ring: &WdmRing, levels: &[GroupLevel], stripes: u32) -> Result<Plan, PlannerError> {
    let Some((level, deeper)) = levels.split_first() else {
        return exchange(ring, stripes);
    };
    let grouping = Grouping::new(ring.ranks, level);
    let owners = level.owners;
    let channels = ring.channels() / owners;
    let inner = reduced(&smaller(ring, grouping.count, channels), deeper, stripes)?;
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

/// Returns the all_reduce of one step, in which every rank sends every other one its whole vector.
fn exchange(ring: &WdmRing, stripes: u32) -> Result<Plan, PlannerError> {
    if ring.ranks == 1 {
        let alone = Collective::new(CollectiveKind::AllReduce, 1)?;
        return Ok(Assembly::new(ring, alone).finish(String::new()));
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
