//! One tree for the blocks of g neighbouring ranks, grown slot by slot at prices.
//!
//! What the tree does is turned by all multiples of g ranks. So a lightpath of length l of the tree loads the links of its direction l / g times
//! in the mean, by classes of links modulo g ([`super::walks`]).
//!
//! In its first slot every owner sends its own block to the *holders*. From then on, the holders of the bundle send all
//! g blocks. Lightpaths of the tree of one direction, class and length are a *family*: their rotations have the same ends, so that n of
//! them, with n g blocks, go over ceil(n g / v) lightpaths in a slot of v blocks for each.
//!
//! Slots have prices, as in [`super::super::prices`], with which what is left for later has a value: V. A slot is filled with
//! one lightpath of a family after the other, with as many edges of the tree as find room on it: always the lightpath that saves most of V for a
//! link. Edges for which there is room already come first.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use super::super::prices::{PriceProblem, PriceTable, adjust};
use super::walks::{self, Place};
use crate::family::wdm_ring::WdmRing;
use crate::interrupt;

/// A ring with groups of ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grouping {
    pub(super) ranks: u32,
    /// Ranks of a group, a divisor of those of the ring.
    pub(super) group: u32,
    /// Channels side by side, so many in each part: divisors of the number of groups.
    pub(super) parts: Vec<u32>,
    /// The most links of a lightpath.
    pub(super) longest: u32,
}

impl Grouping {
    /// Groups of so many ranks.
    pub(super) fn new(ring: &WdmRing, group: u32) -> Grouping {
        let ranks = ring.ranks;
        let groups = ranks / group;
        let mut parts = Vec::new();
        let mut left = ring.channels();
        while left > 0 {
            let part = (1..=left.min(groups)).rfind(|part| groups % part == 0);
            let part = part.unwrap_or(1);
            parts.push(part);
            left -= part;
        }
        Grouping {
            ranks,
            group,
            parts,
            longest: ring.longest(),
        }
    }

    pub(super) fn channels(&self) -> u32 {
        self.parts.iter().sum()
    }

    /// The class of a rank, seen along a direction.
    fn class(&self, rank: u32, clockwise: bool) -> u32 {
        self.along(rank, clockwise) % self.group
    }

    /// The number of a rank along a direction: counter-clockwise the ring is its mirror image.
    pub(super) fn along(&self, rank: u32, clockwise: bool) -> u32 {
        let rank = rank % self.ranks;
        match clockwise {
            true => rank,
            false => (self.ranks - rank) % self.ranks,
        }
    }
}

/// Edges of the tree of one direction, class and length, and the lightpaths that carry them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Family {
    pub(super) clockwise: bool,
    pub(super) length: u32,
    /// Where its edges begin, as ranks beside group 0.
    pub(super) senders: Vec<u32>,
    /// Its lightpaths: the first channel of the part, and the place in it.
    pub(super) lightpaths: Vec<(u32, Place)>,
}

/// A slot of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BundleSlot {
    /// The most blocks of a lightpath.
    pub(super) volume: u32,
    pub(super) families: Vec<Family>,
}

/// The tree of the blocks of ranks 0 to g - 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BundleTree {
    /// In the first, owners send to holders of all blocks.
    pub(super) slots: Vec<BundleSlot>,
}

/// How to choose among lightpaths.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taste {
    /// How much more a longer one is worth, for each doubling or so.
    pub(super) longer: f32,
    /// How much less one over full links is worth.
    pub(super) level: f32,
    /// How much chance adds at most.
    pub(super) chance: f32,
    pub(super) seed: u64,
}

/// The price of a rank that is left at the end: more than any lightpath is worth.
const LEFT_OVER: f32 = 300.0;

/// Table entries that price adjustment may fill.
const MOST_PRICED: usize = 40_000_000;

/// Sets of holders that are tried for channels.
const MOST_STARTS: usize = 400;

/// Least price over supply from where on the last slot would have far more blocks than the others.
const MOST_RATIO: f32 = 1.5;

/// A gap between holders, with the lengths that leave its ends in a slot.
#[derive(Debug, Clone)]
struct OpenGap {
    start: u32,
    size: u32,
    near: Vec<u32>,
    far: Vec<u32>,
}

impl OpenGap {
    fn new(start: u32, size: u32) -> OpenGap {
        OpenGap {
            start,
            size,
            near: Vec::new(),
            far: Vec::new(),
        }
    }

    /// The rank at an end.
    fn end(&self, near: bool) -> u32 {
        match near {
            true => self.start,
            false => self.start + self.size + 1,
        }
    }

    /// What another lightpath from an end saves of what is to be paid later.
    fn saved(&self, near: bool, length: u32, later: &[f32]) -> Option<f32> {
        let (own, other) = match near {
            true => (&self.near, &self.far),
            false => (&self.far, &self.near),
        };
        let reached = other.last().copied().unwrap_or(0);
        if length + reached > self.size {
            return None;
        }
        let at = own.partition_point(|known| *known < length);
        if own.get(at) == Some(&length) {
            return None;
        }
        let below = if at == 0 { 0 } else { own[at - 1] };
        let above = own.get(at).copied().unwrap_or(self.size + 1 - reached);
        let value = |size: u32| later[size as usize];
        let saved =
            value(above - below - 1) - value(length - below - 1) - value(above - length - 1);
        Some(saved).filter(|saved| *saved > 0.0)
    }

    /// The gaps that are left.
    fn rest(&self) -> impl Iterator<Item = OpenGap> + '_ {
        let far = self.far.iter().rev().map(|length| self.size + 1 - length);
        let mut before = 0;
        let ends = self.near.iter().copied().chain(far).chain([self.size + 1]);
        ends.filter_map(move |end| {
            let (start, size) = (self.start + before, end - before - 1);
            before = end;
            (size > 0).then(|| OpenGap::new(start, size))
        })
    }
}

/// Gaps between holders around the ring; holders ascend.
fn gaps_between(ranks: u32, holders: &[u32]) -> Vec<OpenGap> {
    let next = holders.iter().skip(1).copied();
    let around = holders.first().map(|first| first + ranks);
    let pairs = holders.iter().zip(next.chain(around));
    let gaps = pairs.map(|(&start, end)| OpenGap::new(start, end - start - 1));
    gaps.filter(|gap| gap.size > 0).collect()
}

/// How many gaps there are of each size.
fn census(gaps: &[OpenGap]) -> Vec<(usize, u32)> {
    let mut sizes: Vec<u32> = gaps.iter().map(|gap| gap.size).collect();
    sizes.sort_unstable();
    let runs = sizes.chunk_by(|one, other| one == other);
    runs.map(|same| (same[0] as usize, same.len() as u32))
        .collect()
}

/// Lengths that lightpaths may have: all short ones, then each a tenth more than the one before.
pub(super) fn lengths(grouping: &Grouping) -> Vec<u32> {
    let widest = grouping.parts.iter().max().copied().unwrap_or(1);
    let most = (widest * grouping.group)
        .min(grouping.ranks / 2)
        .min(grouping.longest);
    let most = most.max(1);
    let grow = |length: &u32| Some((length + 1).max(length * 12 / 11));
    let lengths = std::iter::successors(Some(1), grow);
    lengths.take_while(|length| *length <= most).collect()
}

/// The holders after the first slot.
#[derive(Debug, Clone)]
pub(super) struct Start {
    /// What is left costs so many link-blocks of the bundle at least.
    pub(super) left: f32,
    pub(super) holders: Vec<u32>,
    pub(super) slot: BundleSlot,
}

/// What trees cost at least where all slots have one price.
pub(super) struct Costs {
    slots: usize,
    table: PriceTable,
}

impl Costs {
    /// Of trees of up to so many slots.
    pub(super) fn new(grouping: &Grouping, lengths: &[u32], slots: usize) -> Costs {
        let even = vec![1.0; slots];
        let problem = PriceProblem {
            lengths,
            capacity: &even,
            left_over: LEFT_OVER,
            hopeless: MOST_RATIO,
        };
        let table = PriceTable::new(&problem, &even, grouping.ranks as usize - 1);
        Costs { slots, table }
    }

    /// Of filling gaps in so many slots, by their sizes.
    pub(super) fn of_gaps(&self, slots: usize) -> &[f32] {
        self.table.values(self.slots - slots)
    }
}

/// The best sets of holders after the first slot, as many as `most`, for trees that cost so much by the sizes of the gaps
/// between them.
pub(super) fn starts(grouping: &Grouping, later: &[f32], most: usize) -> Vec<Start> {
    let (ranks, group) = (grouping.ranks, grouping.group);
    // Pairs of ranks at equal distances from the group's middle, and the whole group or its middle.
    let pair = |x: u32| [x % ranks, (group + 2 * ranks - 1 - x) % ranks];
    let farthest = 2 * grouping.channels() + group;
    let farthest = farthest
        .min(ranks / 2)
        .min(grouping.longest.saturating_sub(group));
    let outer: Vec<u32> = (group..farthest).collect();
    let mut found: Vec<(f32, Vec<u32>)> = Vec::new();
    let mut consider = |holders: Vec<u32>| {
        let mut holders = holders;
        holders.sort_unstable();
        holders.dedup();
        let length: u32 = (0..group)
            .flat_map(|owner| holders.iter().map(move |holder| (owner, *holder)))
            .map(|(owner, holder)| distance(ranks, owner, holder).1)
            .sum();
        if holders.is_empty() || length > 2 * grouping.channels() * group {
            return false;
        }
        let gaps = gaps_between(ranks, &holders);
        let value = gaps.iter().map(|gap| later[gap.size as usize]).sum();
        found.push((value, holders));
        true
    };
    let bases = [Vec::new(), pair(group / 2).to_vec(), (0..group).collect()];
    for base in bases {
        interrupt::check();
        consider(base.clone());
        for &one in &outer {
            let with_one = [&base[..], &pair(one)].concat();
            if !consider(with_one.clone()) {
                break;
            }
            for &other in outer.iter().take_while(|other| **other < one) {
                if !consider([&with_one[..], &pair(other)].concat()) {
                    break;
                }
            }
        }
    }
    found.sort_by(|one, other| one.0.total_cmp(&other.0).then_with(|| one.1.cmp(&other.1)));
    found.dedup();
    let start = |(left, holders): (f32, Vec<u32>)| {
        let slot = gathering(grouping, &holders)?;
        Some(Start {
            left,
            holders,
            slot,
        })
    };
    found
        .into_iter()
        .take(MOST_STARTS)
        .filter_map(start)
        .take(most)
        .collect()
}

/// The shorter way from one rank to another: whether it is clockwise, and its length.
fn distance(ranks: u32, from: u32, to: u32) -> (bool, u32) {
    let clockwise = (to + ranks - from) % ranks;
    match 2 * clockwise <= ranks {
        true => (true, clockwise),
        false => (false, ranks - clockwise),
    }
}

/// The loads of the parts of both directions, by class of link.
#[derive(Clone)]
struct Loads {
    group: u32,
    /// What a link may have in each part of each direction.
    limits: [Vec<u32>; 2],
    loads: [Vec<Vec<u32>>; 2],
}

impl Loads {
    fn new(grouping: &Grouping, limits: &[Vec<u32>; 2]) -> Loads {
        let none = vec![vec![0; grouping.group as usize]; grouping.parts.len()];
        Loads {
            group: grouping.group,
            limits: limits.clone(),
            loads: [none.clone(), none],
        }
    }

    /// The first part with room for a lightpath, and how full its fullest link is.
    fn room(&self, direction: usize, class: u32, length: u32) -> Option<(usize, f32)> {
        let parts = self.loads[direction].iter().zip(&self.limits[direction]);
        parts.enumerate().find_map(|(part, (loads, &limit))| {
            let mut fullest = 0;
            for (link, &load) in (0..).zip(loads) {
                let passes = walks::passes(self.group, class, length, link);
                if load + passes > limit {
                    return None;
                }
                fullest = fullest.max(if passes > 0 { load } else { 0 });
            }
            Some((part, fullest as f32 / limit.max(1) as f32))
        })
    }

    fn add(&mut self, direction: usize, part: usize, class: u32, length: u32) {
        for (link, load) in (0..).zip(&mut self.loads[direction][part]) {
            *load += walks::passes(self.group, class, length, link);
        }
    }

    /// Puts so many lightpaths into parts with room, if all find it; with how full the fullest link was.
    fn put(&mut self, direction: usize, class: u32, length: u32, count: u32) -> Option<Vec<usize>> {
        let place = |_| {
            let (part, _) = self.room(direction, class, length)?;
            self.add(direction, part, class, length);
            Some(part)
        };
        (0..count).map(place).collect()
    }
}

/// A family in the making.
#[derive(Debug, Clone, Default)]
struct Growing {
    senders: Vec<u32>,
    parts: Vec<usize>,
}

/// A lightpath of a family, which some edges of the tree take.
struct Choice {
    worth: f32,
    family: usize,
    more: u32,
    edges: usize,
}

/// A slot that is being filled.
struct Filling<'a> {
    grouping: &'a Grouping,
    lengths: &'a [u32],
    later: &'a [f32],
    volume: u32,
    taste: Taste,
    gaps: Vec<OpenGap>,
    loads: Loads,
    /// By direction, class and length.
    families: Vec<Growing>,
    /// What each gap would save by an edge of a family, the best first.
    candidates: Vec<Vec<(f32, usize)>>,
    random: u64,
}

impl<'a> Filling<'a> {
    fn new(
        grouping: &'a Grouping,
        lengths: &'a [u32],
        later: &'a [f32],
        volume: u32,
        taste: Taste,
        gaps: &[OpenGap],
        limits: &[Vec<u32>; 2],
    ) -> Filling<'a> {
        let count = 2 * grouping.group as usize * lengths.len();
        let mut filling = Filling {
            grouping,
            lengths,
            later,
            volume,
            taste,
            gaps: gaps.to_vec(),
            loads: Loads::new(grouping, limits),
            families: vec![Growing::default(); count],
            candidates: vec![Vec::new(); count],
            random: taste.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
        };
        for gap in 0..filling.gaps.len() {
            filling.enter(gap);
        }
        filling
    }

    /// The families of an end of a gap, one for each length.
    fn families_of(&self, gap: usize, near: bool) -> usize {
        let class = self.grouping.class(self.gaps[gap].end(near), near);
        let direction = usize::from(!near);
        (direction * self.grouping.group as usize + class as usize) * self.lengths.len()
    }

    /// Direction, class and length of a family.
    fn of_family(&self, family: usize) -> (usize, u32, u32) {
        let (row, length) = (family / self.lengths.len(), family % self.lengths.len());
        let group = self.grouping.group as usize;
        (row / group, (row % group) as u32, self.lengths[length])
    }

    /// Enters what a gap would save.
    fn enter(&mut self, gap: usize) {
        for near in [true, false] {
            let first = self.families_of(gap, near);
            for (index, &length) in self.lengths.iter().enumerate() {
                if length > self.gaps[gap].size {
                    break;
                }
                if let Some(saved) = self.gaps[gap].saved(near, length, self.later) {
                    let known = &mut self.candidates[first + index];
                    let at = known.partition_point(|one| before(one, &(saved, gap)).is_lt());
                    known.insert(at, (saved, gap));
                }
            }
        }
    }

    /// Takes back what a gap would have saved.
    fn leave(&mut self, gap: usize) {
        for near in [true, false] {
            let first = self.families_of(gap, near);
            let reached = self
                .lengths
                .partition_point(|length| *length <= self.gaps[gap].size);
            for known in &mut self.candidates[first..first + reached] {
                if let Some(at) = known.iter().position(|one| one.1 == gap) {
                    known.remove(at);
                }
            }
        }
    }

    fn chance(&mut self) -> f32 {
        if self.taste.chance == 0.0 {
            return 0.0;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 40) as f32 / (1u64 << 24) as f32 * self.taste.chance
    }

    /// The lightpath that is worth most.
    fn best(&mut self) -> Option<Choice> {
        let (group, volume) = (self.grouping.group, self.volume);
        let mut best: Option<Choice> = None;
        for family in 0..self.families.len() {
            if self.candidates[family].is_empty() {
                continue;
            }
            let known = &self.families[family];
            let (edges, lit) = (known.senders.len() as u32, known.parts.len() as u32);
            let needed = ((edges + 1) * group).div_ceil(volume).max(lit);
            let (more, room) = (needed - lit, (needed * volume / group - edges) as usize);
            let saved: f32 = self.candidates[family]
                .iter()
                .take(room)
                .map(|one| one.0)
                .sum();
            if more == 0 {
                return Some(Choice {
                    worth: f32::INFINITY,
                    family,
                    more,
                    edges: room,
                });
            }
            let (direction, class, length) = self.of_family(family);
            let worth =
                saved / (length * more) as f32 * (1.0 + self.taste.longer * (length as f32).ln());
            let worth = worth * (1.0 + self.chance());
            if best.as_ref().is_some_and(|best| worth <= best.worth) {
                continue;
            }
            let Some((_, fullest)) = self.loads.room(direction, class, length) else {
                continue;
            };
            let worth = worth * (1.0 - self.taste.level * fullest);
            let is_better = best
                .as_ref()
                .is_none_or(|best| worth > best.worth * 1.000_001);
            if !is_better
                || (more > 1
                    && self
                        .loads
                        .clone()
                        .put(direction, class, length, more)
                        .is_none())
            {
                continue;
            }
            best = Some(Choice {
                worth,
                family,
                more,
                edges: room,
            });
        }
        best
    }

    /// Lights lightpaths as long as any is worth something.
    fn fill(&mut self) {
        while let Some(Choice {
            family,
            more,
            edges,
            ..
        }) = self.best()
        {
            interrupt::check();
            let (direction, class, length) = self.of_family(family);
            let Some(parts) = self.loads.put(direction, class, length, more) else {
                break;
            };
            self.families[family].parts.extend(parts);
            let near = direction == 0;
            let taken: Vec<usize> = self.candidates[family]
                .iter()
                .take(edges)
                .map(|one| one.1)
                .collect();
            for gap in taken {
                self.leave(gap);
                let open = &mut self.gaps[gap];
                let sender = open.end(near);
                let own = if near { &mut open.near } else { &mut open.far };
                own.insert(own.partition_point(|known| *known < length), length);
                self.families[family]
                    .senders
                    .push(sender % self.grouping.ranks);
                self.enter(gap);
            }
        }
    }

    /// The families with their channels; the part of a direction that has none where there is one.
    fn families(&self) -> Result<Vec<Family>, (usize, usize)> {
        let mut families: Vec<Family> = Vec::new();
        let mut lightpaths: Vec<PartOf> = Vec::new();
        for (family, known) in self.families.iter().enumerate() {
            if known.senders.is_empty() {
                continue;
            }
            let (direction, class, length) = self.of_family(family);
            let into = families.len();
            lightpaths.extend(known.parts.iter().map(|&part| PartOf {
                direction,
                part,
                class,
                length,
                family: into,
            }));
            families.push(Family {
                clockwise: direction == 0,
                length,
                senders: known.senders.clone(),
                lightpaths: Vec::new(),
            });
        }
        light(self.grouping, &lightpaths, &mut families)?;
        Ok(families)
    }
}

/// What saves most first, then by gaps.
fn before(one: &(f32, usize), other: &(f32, usize)) -> Ordering {
    other.0.total_cmp(&one.0).then(one.1.cmp(&other.1))
}

/// A lightpath of a family in a part of a direction's channels.
struct PartOf {
    direction: usize,
    part: usize,
    class: u32,
    length: u32,
    family: usize,
}

/// Gives all lightpaths channels; where a part has no closed walks, that part with its direction.
fn light(
    grouping: &Grouping,
    lightpaths: &[PartOf],
    families: &mut [Family],
) -> Result<(), (usize, usize)> {
    let (group, groups) = (grouping.group, grouping.ranks / grouping.group);
    for direction in 0..2 {
        let mut first = 0;
        for (part, &channels) in grouping.parts.iter().enumerate() {
            let own = lightpaths
                .iter()
                .filter(|one| (one.direction, one.part) == (direction, part));
            let own: Vec<&PartOf> = own.collect();
            let walks: Vec<(u32, u32)> = own.iter().map(|one| (one.class, one.length)).collect();
            let places = walks::places(group, groups, channels, &walks).ok_or((direction, part))?;
            for (one, place) in own.iter().zip(places) {
                families[one.family].lightpaths.push((first, place));
            }
            first += channels;
        }
    }
    Ok(())
}

/// The first slot, in which owners send to holders, if it has the channels.
fn gathering(grouping: &Grouping, holders: &[u32]) -> Option<BundleSlot> {
    let limits = [grouping.parts.clone(), grouping.parts.clone()];
    let mut loads = Loads::new(grouping, &limits);
    let mut families = Vec::new();
    let mut lightpaths = Vec::new();
    let mut moves: Vec<(u32, u32, bool, u32)> = Vec::new();
    for owner in 0..grouping.group {
        for &holder in holders.iter().filter(|&&holder| holder != owner) {
            let (clockwise, length) = distance(grouping.ranks, owner, holder);
            moves.push((length, owner, clockwise, holder));
        }
    }
    moves.sort_unstable_by(|one, other| other.cmp(one));
    for (length, owner, clockwise, _) in moves {
        let (direction, class) = (usize::from(!clockwise), grouping.class(owner, clockwise));
        let part = loads.put(direction, class, length, 1)?[0];
        lightpaths.push(PartOf {
            direction,
            part,
            class,
            length,
            family: families.len(),
        });
        families.push(Family {
            clockwise,
            length,
            senders: vec![owner],
            lightpaths: Vec::new(),
        });
    }
    light(grouping, &lightpaths, &mut families).ok()?;
    Some(BundleSlot {
        volume: 1,
        families,
    })
}

/// A tree that is not complete.
#[derive(Clone)]
struct Partial {
    slots: Vec<BundleSlot>,
    gaps: Vec<OpenGap>,
}

/// How much to look for a tree.
#[derive(Debug, Clone)]
pub(super) struct Effort {
    pub(super) tastes: Vec<Taste>,
    /// Partial trees that are kept in each slot.
    pub(super) kept: usize,
}

/// The tree, from holders that [`starts`] gave. After the first slot come slots of so many blocks for each lightpath, and a last one of as
/// few as finish the tree, but within `last`; `None` where no tree was found.
pub(super) fn grow(
    grouping: &Grouping,
    lengths: &[u32],
    starts: &[Start],
    volumes: &[u32],
    last: RangeInclusive<u32>,
    effort: &Effort,
) -> Option<BundleTree> {
    let of_start = |start: &Start| Partial {
        gaps: gaps_between(grouping.ranks, &start.holders),
        slots: vec![start.slot.clone()],
    };
    let mut partials: Vec<Partial> = starts.iter().map(of_start).collect();
    // The last slot is to have no more than the one before it.
    let usual = volumes.last().unwrap_or(&grouping.group);
    let volumes_of_all = volumes.iter().chain([usual]);
    let of_slot = |volume: &u32| 2.0 * (volume * grouping.channels()) as f32;
    let capacity: Vec<f32> = volumes_of_all.map(of_slot).collect();
    let mut prices = vec![1.0; capacity.len()];
    let table = 2 * grouping.ranks as usize * capacity.len() * lengths.len();
    let rounds = (MOST_PRICED / table.max(1)).clamp(10, 60);
    for slot in 0..capacity.len() {
        let first = partials.first()?;
        let problem = PriceProblem {
            lengths,
            capacity: &capacity[slot..],
            left_over: LEFT_OVER,
            hopeless: MOST_RATIO,
        };
        let (rounds, eagerness) = match slot {
            0 => (rounds, 0.3),
            _ => (rounds / 4, 0.15),
        };
        let sizes = census(&first.gaps);
        let ratio = adjust(&problem, &sizes, &mut prices[slot..], rounds, eagerness);
        if ratio > MOST_RATIO {
            return None;
        }
        let sizes = partials.iter().flat_map(|partial| &partial.gaps);
        let most = sizes.map(|gap| gap.size).max().unwrap_or(0);
        let table = PriceTable::new(&problem, &prices[slot..], most as usize);
        let later = table.values(1);
        let grown = |volume: u32| {
            let tastes = effort.tastes.iter();
            let pairs =
                tastes.flat_map(|taste| partials.iter().map(move |partial| (taste, partial)));
            pairs.filter_map(move |(taste, partial)| {
                let (made, gaps) = filled(grouping, lengths, later, volume, *taste, &partial.gaps)?;
                let slots = partial.slots.iter().cloned().chain([made]).collect();
                Some(Partial { slots, gaps })
            })
        };
        match volumes.get(slot) {
            Some(&volume) => partials = best(grown(volume).collect(), later, effort.kept),
            None => {
                // At its price, the lightpaths that finish a tree cost so much at least.
                let (now, price) = (table.values(0), prices[slot] * of_slot(&1));
                let costs = partials.iter().map(|partial| value(partial, now) / price);
                let least = costs.fold(f32::INFINITY, f32::min);
                let least = (least - 0.01).ceil().max(1.0) as u32;
                let finished = |volume: u32| grown(volume).find(|partial| partial.gaps.is_empty());
                let done = least_that(least.max(*last.start()), *last.end(), finished);
                return done.map(|done| BundleTree { slots: done.slots });
            }
        }
    }
    None
}

/// What is made of the least number from `low` to `high` of which something is made, if more will do, too.
fn least_that<T>(low: u32, high: u32, make: impl Fn(u32) -> Option<T>) -> Option<T> {
    let (mut low, mut high) = (low, high);
    let mut made = (low <= high).then(|| make(high)).flatten()?;
    while low < high {
        let middle = low.midpoint(high);
        match make(middle) {
            Some(better) => (made, high) = (better, middle),
            None => low = middle + 1,
        }
    }
    Some(made)
}

/// What the gaps of a partial tree cost, by their sizes.
fn value(partial: &Partial, by_size: &[f32]) -> f32 {
    let gaps = partial.gaps.iter();
    gaps.map(|gap| by_size[gap.size as usize]).sum()
}

/// The partial trees that leave the least for later, of different gaps.
fn best(grown: Vec<Partial>, later: &[f32], kept: usize) -> Vec<Partial> {
    let valued = grown.into_iter();
    let valued = valued.map(|partial| (value(&partial, later), partial));
    let mut valued: Vec<(f32, Partial)> = valued.collect();
    valued.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut known = Vec::new();
    valued.retain(|(_, partial)| {
        let sizes = census(&partial.gaps);
        let is_new = !known.contains(&sizes);
        known.push(sizes);
        is_new
    });
    valued.truncate(kept);
    valued.into_iter().map(|(_, partial)| partial).collect()
}

/// A slot, and the gaps that it leaves. Where closed walks have no channels, dark links are kept free for them.
fn filled(
    grouping: &Grouping,
    lengths: &[u32],
    later: &[f32],
    volume: u32,
    taste: Taste,
    gaps: &[OpenGap],
) -> Option<(BundleSlot, Vec<OpenGap>)> {
    let mut limits = [grouping.parts.clone(), grouping.parts.clone()];
    loop {
        let mut filling = Filling::new(grouping, lengths, later, volume, taste, gaps, &limits);
        filling.fill();
        match filling.families() {
            Ok(families) => {
                let rest = filling.gaps.iter().flat_map(OpenGap::rest).collect();
                return Some((BundleSlot { volume, families }, rest));
            }
            Err((direction, part)) => {
                let limit = &mut limits[direction][part];
                *limit = limit.checked_sub(1)?;
            }
        }
    }
}
