//! A slot that is filled with lightpaths.
//!
//! At a price of a link, every gap has a cheapest tree with what is left for later at its value V. The lightpaths that these trees have in
//! this slot come first, the longest before others, at the least price at which they fit into a part of the room. Then come single
//! lightpaths, each with as many edges of the tree as find room on it: always the one that saves most of V for a
//! link. Edges for which there is room already come first. (The lightpaths that are best one by one are not the best together: without the first
//! part, slots lose half a percent to some percent of what they could save.)

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use super::gaps::OpenGap;
use super::grouping::Grouping;
use super::walks::{self, Place};
use crate::ring::relay_tree::prices::PricedStep;
use opticoll_base::interrupt;

/// Share of its worth that a lightpath over a full link loses.
const FULL_LINKS: f32 = 0.2;

/// How to choose among lightpaths.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taste {
    /// How much more a longer one is worth, for each doubling or so.
    pub(super) longer: f32,
    /// The part of the room that cheapest trees may take before lightpaths are chosen one by one.
    pub(super) planned: f32,
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

impl Family {
    pub(super) fn new(clockwise: bool, length: u32, senders: Vec<u32>) -> Family {
        Family {
            clockwise,
            length,
            senders,
            lightpaths: Vec::new(),
        }
    }
}

/// A slot of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BundleSlot {
    /// The most pieces of blocks on a lightpath.
    pub(super) volume: u32,
    pub(super) families: Vec<Family>,
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

    /// Puts so many lightpaths into parts with room; none where not all find it.
    fn put(&mut self, direction: usize, class: u32, length: u32, count: u32) -> Option<Vec<usize>> {
        let before = (count > 1).then(|| self.loads[direction].clone());
        let place = |_| {
            let (part, _) = self.room(direction, class, length)?;
            self.add(direction, part, class, length);
            Some(part)
        };
        let parts = (0..count).map(place).collect::<Option<Vec<usize>>>();
        if let (None, Some(before)) = (&parts, before) {
            self.loads[direction] = before;
        }
        parts
    }

    /// Whether so many lightpaths find room.
    fn has_room(&mut self, direction: usize, class: u32, length: u32, count: u32) -> bool {
        let before = self.loads[direction].clone();
        let has_room = self.put(direction, class, length, count).is_some();
        self.loads[direction] = before;
        has_room
    }
}

/// A family in the making.
#[derive(Debug, Clone, Default)]
struct Growing {
    senders: Vec<u32>,
    parts: Vec<usize>,
}

/// What a family offers: so many lightpaths more for so many edges of the tree, with what they save for a link; nothing, where no gap would
/// save by an edge.
#[derive(Debug, Clone, Copy, Default)]
struct Offer {
    more: u32,
    edges: usize,
    worth: f32,
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
    /// What families offer.
    offers: Vec<Offer>,
    /// Families whose offers have changed, and whether each is among them.
    changed: Vec<usize>,
    is_changed: Vec<bool>,
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
        Filling {
            grouping,
            lengths,
            later,
            volume,
            taste,
            gaps: gaps.to_vec(),
            loads: Loads::new(grouping, limits),
            families: vec![Growing::default(); count],
            candidates: vec![Vec::new(); count],
            offers: vec![Offer::default(); count],
            changed: Vec::new(),
            is_changed: vec![false; count],
        }
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
                    self.change(first + index);
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
            for family in first..first + reached {
                let known = &mut self.candidates[family];
                if let Some(at) = known.iter().position(|one| one.1 == gap) {
                    known.remove(at);
                    self.change(family);
                }
            }
        }
    }

    /// Lights what the cheapest trees of all gaps have, at the least price at which they fit into a part of the room.
    fn light_cheapest(&mut self, price: f32) {
        let mut edges: Vec<(u32, usize, bool)> = Vec::new();
        for (gap, tree) in self.cheapest_that_fit(price).into_iter().enumerate() {
            for (near, lengths) in [true, false].into_iter().zip(tree) {
                edges.extend(lengths.into_iter().map(|length| (length, gap, near)));
            }
        }
        edges.sort_unstable_by(|one, other| other.cmp(one));
        for (length, gap, near) in edges {
            let at = self.lengths.partition_point(|known| *known < length);
            let family = self.families_of(gap, near) + at;
            let (direction, class, length) = self.of_family(family);
            let more = self.more_for_an_edge(family);
            if let Some(parts) = self.loads.put(direction, class, length, more) {
                self.families[family].parts.extend(parts);
                self.add(family, gap, near, length);
            }
        }
    }

    /// By gap: lengths from its near end and from its far end.
    fn cheapest_that_fit(&self, price: f32) -> Vec<[Vec<u32>; 2]> {
        let room = self.grouping.room(self.volume) * self.taste.planned;
        if room == 0.0 {
            return Vec::new();
        }
        let at_price = |price: f32| -> Vec<[Vec<u32>; 2]> {
            let step = PricedStep::new(self.lengths, price, self.later);
            let mut known: BTreeMap<u32, [Vec<u32>; 2]> = BTreeMap::new();
            let of_gap = |gap: &OpenGap| {
                let tree = known.entry(gap.size);
                tree.or_insert_with(|| step.lengths(gap.size as usize))
                    .clone()
            };
            self.gaps.iter().map(of_gap).collect()
        };
        let links = |trees: &[[Vec<u32>; 2]]| trees.iter().flatten().flatten().sum::<u32>();
        let (mut low, mut high) = (price / 4.0, price * 4.0);
        let (mut fitting, mut larger) = (Vec::new(), Vec::new());
        for _ in 0..10 {
            let middle = (low * high).sqrt();
            let trees = at_price(middle);
            match links(&trees) as f32 <= room {
                true => (fitting, high) = (trees, middle),
                false => (larger, low) = (trees, middle),
            }
        }
        // Between the two prices some gaps get the one tree, some the other.
        let mut left = (room as u32).saturating_sub(links(&fitting));
        for (own, larger) in fitting.iter_mut().zip(larger) {
            let (now, then) = [&*own, &larger]
                .map(|tree| tree.iter().flatten().sum::<u32>())
                .into();
            if let Some(rest) = (left + now).checked_sub(then) {
                left = rest;
                *own = larger;
            }
        }
        fitting
    }

    /// How many lightpaths a family needs in addition for one more edge.
    fn more_for_an_edge(&self, family: usize) -> u32 {
        let known = &self.families[family];
        let pieces = (known.senders.len() as u32 + 1) * self.grouping.bundle();
        let needed = pieces.div_ceil(self.volume);
        needed.saturating_sub(known.parts.len() as u32)
    }

    /// An edge of a family in a gap.
    fn add(&mut self, family: usize, gap: usize, near: bool, length: u32) {
        let open = &mut self.gaps[gap];
        let sender = open.end(near);
        let own = if near { &mut open.near } else { &mut open.far };
        own.insert(own.partition_point(|known| *known < length), length);
        self.families[family]
            .senders
            .push(sender % self.grouping.ranks);
    }

    /// Marks a family whose offer is to be looked at again.
    fn change(&mut self, family: usize) {
        if !self.is_changed[family] {
            self.is_changed[family] = true;
            self.changed.push(family);
        }
    }

    /// What a family offers now.
    fn offer(&self, family: usize) -> Offer {
        let growing = &self.families[family];
        let more = self.more_for_an_edge(family);
        let pieces = (growing.parts.len() as u32 + more) * self.volume;
        let edges = (pieces / self.grouping.bundle()) as usize - growing.senders.len();
        let candidates = self.candidates[family].iter().take(edges);
        let saved: f32 = candidates.map(|one| one.0).sum();
        let (_, _, length) = self.of_family(family);
        let longer = 1.0 + self.taste.longer * (length as f32).ln();
        // Edges that need no further lightpath save infinitely much for a link.
        let worth = match saved > 0.0 {
            true => saved / (length * more) as f32 * longer,
            false => 0.0,
        };
        Offer { more, edges, worth }
    }

    /// The family that offers most, with its offer.
    fn best(&mut self) -> Option<(usize, Offer)> {
        while let Some(family) = self.changed.pop() {
            self.is_changed[family] = false;
            self.offers[family] = self.offer(family);
        }
        let mut best: Option<(usize, Offer)> = None;
        for family in 0..self.offers.len() {
            let offer = self.offers[family];
            if offer.worth == 0.0 {
                continue;
            }
            if offer.more == 0 {
                return Some((family, offer));
            }
            if best.is_some_and(|(_, best)| offer.worth <= best.worth) {
                continue;
            }
            let (direction, class, length) = self.of_family(family);
            let Some((_, fullest)) = self.loads.room(direction, class, length) else {
                continue;
            };
            let worth = offer.worth * (1.0 - FULL_LINKS * fullest);
            let is_better = best.is_none_or(|(_, best)| worth > best.worth * 1.000_001);
            let more = offer.more;
            if is_better && (more == 1 || self.loads.has_room(direction, class, length, more)) {
                best = Some((family, Offer { worth, ..offer }));
            }
        }
        best
    }

    /// Lights lightpaths as long as any is worth something.
    fn fill(&mut self) {
        for gap in 0..self.gaps.len() {
            self.enter(gap);
        }
        while let Some((family, Offer { more, edges, .. })) = self.best() {
            interrupt::check();
            let (direction, class, length) = self.of_family(family);
            let Some(parts) = self.loads.put(direction, class, length, more) else {
                break;
            };
            self.families[family].parts.extend(parts);
            self.change(family);
            let taken = self.candidates[family].iter().take(edges);
            for gap in taken.map(|one| one.1).collect::<Vec<usize>>() {
                self.leave(gap);
                self.add(family, gap, direction == 0, length);
                self.enter(gap);
            }
        }
    }

    /// The families with their channels; the part of a direction that has none where there is one.
    fn families(&self) -> Result<Vec<Family>, (usize, usize)> {
        let mut families: Vec<Family> = Vec::new();
        let mut lightpaths: Vec<FamilyLightpath> = Vec::new();
        for (family, known) in self.families.iter().enumerate() {
            if known.senders.is_empty() {
                continue;
            }
            let (direction, class, length) = self.of_family(family);
            let into = families.len();
            lightpaths.extend(known.parts.iter().map(|&part| FamilyLightpath {
                direction,
                part,
                class,
                length,
                family: into,
            }));
            let senders = known.senders.clone();
            families.push(Family::new(direction == 0, length, senders));
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
struct FamilyLightpath {
    direction: usize,
    part: usize,
    class: u32,
    length: u32,
    family: usize,
}

/// Gives all lightpaths channels; where a part has no closed walks, that part with its direction.
fn light(
    grouping: &Grouping,
    lightpaths: &[FamilyLightpath],
    families: &mut [Family],
) -> Result<(), (usize, usize)> {
    let (group, groups) = (grouping.group, grouping.ranks / grouping.group);
    for direction in 0..2 {
        let mut first = 0;
        for (part, &channels) in grouping.parts.iter().enumerate() {
            let own = lightpaths
                .iter()
                .filter(|one| (one.direction, one.part) == (direction, part));
            let own: Vec<&FamilyLightpath> = own.collect();
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

/// A slot of families that are all known, each with so many lightpaths; `None` where they do not find channels.
pub(super) fn lit(
    grouping: &Grouping,
    volume: u32,
    mut known: Vec<(Family, u32)>,
) -> Option<BundleSlot> {
    known.sort_by_key(|(family, _)| Reverse(family.length));
    let limits = [grouping.parts.clone(), grouping.parts.clone()];
    let mut loads = Loads::new(grouping, &limits);
    let mut lightpaths = Vec::new();
    for (index, (family, count)) in known.iter().enumerate() {
        let (direction, length) = (usize::from(!family.clockwise), family.length);
        let class = grouping.class(family.senders[0], family.clockwise);
        let parts = loads.put(direction, class, length, *count)?;
        lightpaths.extend(parts.into_iter().map(|part| FamilyLightpath {
            direction,
            part,
            class,
            length,
            family: index,
        }));
    }
    let mut families: Vec<Family> = known.into_iter().map(|(family, _)| family).collect();
    light(grouping, &lightpaths, &mut families).ok()?;
    Some(BundleSlot { volume, families })
}

/// A slot, and the gaps that it leaves. Where closed walks have no channels, dark links are kept free for them.
pub(super) fn filled(
    grouping: &Grouping,
    lengths: &[u32],
    (price, later): (f32, &[f32]),
    volume: u32,
    taste: Taste,
    gaps: &[OpenGap],
) -> Option<(BundleSlot, Vec<OpenGap>)> {
    let mut limits = [grouping.parts.clone(), grouping.parts.clone()];
    loop {
        let mut filling = Filling::new(grouping, lengths, later, volume, taste, gaps, &limits);
        filling.light_cheapest(price);
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
