//! Greedy assignment of lightpaths to a slot.
//!
//! A *gap* is a run of consecutive ranks that do not have the blocks yet. Reaching the ranks of a
//! gap in later slots has a price. The algorithm has two parts.
//!
//! **First**, the price of a link of this slot determines the cheapest tree of each gap. The
//! algorithm searches for the lowest price at which the lightpaths of all cheapest trees fit into a
//! given share of the slot's capacity, and adds these lightpaths to the slot. (Without this part,
//! the saving in later slots is at least about 0.5 % lower.)
//!
//! **Second**, the algorithm adds the tree edges that fit on existing lightpaths, and then one
//! lightpath after another: each time the one that saves the most per link in later slots.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use super::closed_walks::{self, WalkPosition};
use super::gaps::OpenGap;
use super::grouping::Grouping;
use crate::ring::relay_tree::prices::PricedSlot;
use opticoll_base::interrupt;

/// Factor f of the penalty for loaded links: the value of a lightpath is multiplied by 1 - f x,
/// where x is the relative load (0 to 1) of the most loaded link on the route.
const LOSS_AT_FULL_LINK: f32 = 0.2;

/// Weights that decide which lightpaths are added to a slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChoiceWeights {
    /// Bonus b for long lightpaths: the value of a lightpath of l links is multiplied by
    /// 1 + b ln(l).
    pub(super) length_bonus: f32,
    /// Share (0 to 1) of the slot's capacity that the lightpaths of the gaps' cheapest trees may
    /// occupy.
    pub(super) planned_share: f32,
}

/// Class of equivalent tree edges: their directions and lengths are equal, and their senders are
/// congruent modulo the number of ranks of a group. Equivalent edges can share lightpaths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EdgeClass {
    pub(super) clockwise: bool,
    /// Number of links of each edge.
    pub(super) length: u32,
    /// Ranks that send over the edges, in the tree of group 0.
    pub(super) senders: Vec<u32>,
    /// Lightpaths that the edges share. Each entry is the index of the first channel of a part of
    /// the channels, and the lightpath's position on a closed walk in this part.
    pub(super) lightpaths: Vec<(u32, WalkPosition)>,
}

impl EdgeClass {
    pub(super) fn new(clockwise: bool, length: u32, senders: Vec<u32>) -> EdgeClass {
        EdgeClass {
            clockwise,
            length,
            senders,
            lightpaths: Vec::new(),
        }
    }
}

/// Slot of the tree: edges that are used at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BundleSlot {
    /// Maximum number of pieces on a lightpath.
    pub(super) volume: u32,
    pub(super) edge_classes: Vec<EdgeClass>,
}

/// Number of lightpaths (load) on each link, in each part of the channels of each direction. Links
/// have equal loads if their start ranks are congruent modulo the number of ranks of a group.
#[derive(Clone)]
struct Loads {
    group: u32,
    /// Maximum number of lightpaths on a link, indexed by direction and part of the channels.
    limits: [Vec<u32>; 2],
    /// Number of lightpaths on a link, indexed by direction, part of the channels, and the link's
    /// start rank modulo `group`.
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

    /// Returns the index of the first part of the channels that has capacity for another lightpath.
    /// Also returns the relative load (0 to 1) of the most loaded link on the lightpath's route.
    /// `residue` is the lightpath's start rank modulo `group`. `length` is its number of links.
    fn first_fit(&self, direction: usize, residue: u32, length: u32) -> Option<(usize, f32)> {
        let parts = self.loads[direction].iter().zip(&self.limits[direction]);
        parts.enumerate().find_map(|(part, (loads, &limit))| {
            let mut max_load = 0;
            for (link, &load) in (0..).zip(loads) {
                let passes = closed_walks::passes(self.group, residue, length, link);
                if load + passes > limit {
                    return None;
                }
                max_load = max_load.max(if passes > 0 { load } else { 0 });
            }
            Some((part, max_load as f32 / limit.max(1) as f32))
        })
    }

    fn add(&mut self, direction: usize, part: usize, residue: u32, length: u32) {
        for (link, load) in (0..).zip(&mut self.loads[direction][part]) {
            *load += closed_walks::passes(self.group, residue, length, link);
        }
    }

    /// Adds `count` equal lightpaths. Returns, for each lightpath, the index of the part of the
    /// channels that carries the lightpath. If the capacity does not suffice, returns `None` and
    /// changes nothing.
    fn try_add(
        &mut self,
        direction: usize,
        residue: u32,
        length: u32,
        count: u32,
    ) -> Option<Vec<usize>> {
        let before = (count > 1).then(|| self.loads[direction].clone());
        let assign = |_| {
            let (part, _) = self.first_fit(direction, residue, length)?;
            self.add(direction, part, residue, length);
            Some(part)
        };
        let parts = (0..count).map(assign).collect::<Option<Vec<usize>>>();
        if let (None, Some(before)) = (&parts, before) {
            self.loads[direction] = before;
        }
        parts
    }

    fn has_capacity(&mut self, direction: usize, residue: u32, length: u32, count: u32) -> bool {
        let before = self.loads[direction].clone();
        let has_capacity = self.try_add(direction, residue, length, count).is_some();
        self.loads[direction] = before;
        has_capacity
    }
}

/// Class of equivalent tree edges, to which further edges may be added.
#[derive(Debug, Clone, Default)]
struct OpenClass {
    senders: Vec<u32>,
    /// Index of the part of the channels that carries each lightpath, indexed by lightpath.
    parts: Vec<usize>,
}

/// Lightpaths that the search may add to a class of equivalent edges, and the edges that become
/// possible.
#[derive(Debug, Clone, Copy, Default)]
struct Extension {
    lightpaths: u32,
    /// Maximum number of tree edges that can be added with these lightpaths.
    edges: usize,
    /// Price saved in later slots per link of the added lightpaths. The price is 0 if no edge saves
    /// anything.
    value: f32,
}

struct Filling<'a> {
    grouping: &'a Grouping,
    /// Lengths that lightpaths may have, in links, ascending.
    lengths: &'a [u32],
    /// Price of reaching n consecutive ranks in later slots, indexed by n.
    later_prices: &'a [f32],
    /// Maximum number of pieces on a lightpath.
    volume: u32,
    weights: ChoiceWeights,
    gaps: Vec<OpenGap>,
    loads: Loads,
    /// Classes of equivalent edges, ordered by direction, then by the sender modulo the group size,
    /// then by length.
    classes: Vec<OpenClass>,
    /// Gaps in which another edge would save a price in later slots, indexed by the class of the
    /// edge. Each entry is the saved price and the index of the gap. Entries are in descending
    /// order of the saved price.
    candidates: Vec<Vec<(f32, usize)>>,
    extensions: Vec<Extension>,
    /// Indices of the classes whose entries in `extensions` must be recomputed.
    changed: Vec<usize>,
    is_changed: Vec<bool>,
}

impl<'a> Filling<'a> {
    fn new(
        grouping: &'a Grouping,
        lengths: &'a [u32],
        later_prices: &'a [f32],
        volume: u32,
        weights: ChoiceWeights,
        gaps: &[OpenGap],
        limits: &[Vec<u32>; 2],
    ) -> Filling<'a> {
        let count = 2 * grouping.group as usize * lengths.len();
        Filling {
            grouping,
            lengths,
            later_prices,
            volume,
            weights,
            gaps: gaps.to_vec(),
            loads: Loads::new(grouping, limits),
            classes: vec![OpenClass::default(); count],
            candidates: vec![Vec::new(); count],
            extensions: vec![Extension::default(); count],
            changed: Vec::new(),
            is_changed: vec![false; count],
        }
    }

    /// Returns the index of the class of edges of length `lengths[0]` that start at the near end
    /// (if `near`) or far end of the gap with index `gap`. The class for `lengths[i]` has this
    /// index plus i.
    fn first_class(&self, gap: usize, near: bool) -> usize {
        let residue = self.grouping.residue(self.gaps[gap].end(near), near);
        let direction = usize::from(!near);
        (direction * self.grouping.group as usize + residue as usize) * self.lengths.len()
    }

    /// Returns the direction, the sender modulo the group size, and the length in links of the
    /// edges of a class. `class` is the index of the class.
    fn parameters(&self, class: usize) -> (usize, u32, u32) {
        let (row, length) = (class / self.lengths.len(), class % self.lengths.len());
        let group = self.grouping.group as usize;
        (row / group, (row % group) as u32, self.lengths[length])
    }

    /// Adds the gap with index `gap` to the `candidates` of each class whose edge would save a
    /// price in this gap.
    fn add_candidate(&mut self, gap: usize) {
        for near in [true, false] {
            let first = self.first_class(gap, near);
            for (index, &length) in self.lengths.iter().enumerate() {
                if length > self.gaps[gap].size {
                    break;
                }
                if let Some(saved) = self.gaps[gap].saved(near, length, self.later_prices) {
                    let candidates = &mut self.candidates[first + index];
                    let at =
                        candidates.partition_point(|entry| compare(entry, &(saved, gap)).is_lt());
                    candidates.insert(at, (saved, gap));
                    self.mark_changed(first + index);
                }
            }
        }
    }

    fn remove_candidate(&mut self, gap: usize) {
        for near in [true, false] {
            let first = self.first_class(gap, near);
            let reached = self
                .lengths
                .partition_point(|length| *length <= self.gaps[gap].size);
            for class in first..first + reached {
                let candidates = &mut self.candidates[class];
                if let Some(at) = candidates.iter().position(|(_, other)| *other == gap) {
                    candidates.remove(at);
                    self.mark_changed(class);
                }
            }
        }
    }

    /// Adds the lightpaths of the cheapest trees of all gaps to the slot. `price` is the first
    /// guess for the price of a link.
    fn add_cheapest_trees(&mut self, price: f32) {
        let mut edges: Vec<(u32, usize, bool)> = Vec::new();
        for (gap, tree) in self.cheapest_trees(price).into_iter().enumerate() {
            for (near, lengths) in [true, false].into_iter().zip(tree) {
                edges.extend(lengths.into_iter().map(|length| (length, gap, near)));
            }
        }
        edges.sort_unstable_by(|one, other| other.cmp(one));
        for (length, gap, near) in edges {
            let at = self.lengths.partition_point(|shorter| *shorter < length);
            let class = self.first_class(gap, near) + at;
            let (direction, residue, length) = self.parameters(class);
            let count = self.lightpaths_for_next_edge(class);
            if let Some(parts) = self.loads.try_add(direction, residue, length, count) {
                self.classes[class].parts.extend(parts);
                self.add_edge(class, gap, near, length);
            }
        }
    }

    /// Returns the cheapest tree of each gap: the lengths, in links, of the lightpaths from the
    /// near end, and the lengths from the far end. `price` is the first guess for the price of a
    /// link.
    fn cheapest_trees(&self, price: f32) -> Vec<[Vec<u32>; 2]> {
        let capacity = self.grouping.capacity(self.volume) * self.weights.planned_share;
        if capacity == 0.0 {
            return Vec::new();
        }
        let at_price = |price: f32| -> Vec<[Vec<u32>; 2]> {
            let slot = PricedSlot::new(self.lengths, price, self.later_prices);
            let mut trees_by_size: BTreeMap<u32, [Vec<u32>; 2]> = BTreeMap::new();
            let tree = |gap: &OpenGap| {
                let tree = trees_by_size.entry(gap.size);
                tree.or_insert_with(|| slot.lengths(gap.size as usize))
                    .clone()
            };
            self.gaps.iter().map(tree).collect()
        };
        let links = |trees: &[[Vec<u32>; 2]]| trees.iter().flatten().flatten().sum::<u32>();
        let (mut low, mut high) = (price / 4.0, price * 4.0);
        let (mut fitting, mut too_long) = (Vec::new(), Vec::new());
        for _ in 0..10 {
            let middle = (low * high).sqrt();
            let trees = at_price(middle);
            match links(&trees) as f32 <= capacity {
                true => (fitting, high) = (trees, middle),
                false => (too_long, low) = (trees, middle),
            }
        }
        let mut unused = (capacity as u32).saturating_sub(links(&fitting));
        for (tree, longer_tree) in fitting.iter_mut().zip(too_long) {
            let (tree_links, longer_tree_links) = [&*tree, &longer_tree]
                .map(|tree| tree.iter().flatten().sum::<u32>())
                .into();
            if let Some(still_unused) = (unused + tree_links).checked_sub(longer_tree_links) {
                unused = still_unused;
                *tree = longer_tree;
            }
        }
        fitting
    }

    /// Returns the number of additional lightpaths that a class needs for one more edge.
    fn lightpaths_for_next_edge(&self, class: usize) -> u32 {
        let class = &self.classes[class];
        let pieces = (class.senders.len() as u32 + 1) * self.grouping.pieces_of_group();
        let needed = pieces.div_ceil(self.volume);
        needed.saturating_sub(class.parts.len() as u32)
    }

    /// Adds an edge of `length` links to the class with index `class`. The edge starts at the near
    /// end (if `near`) or far end of the gap with index `gap`.
    fn add_edge(&mut self, class: usize, gap: usize, near: bool, length: u32) {
        let open = &mut self.gaps[gap];
        let sender = open.end(near);
        let lengths = if near { &mut open.near } else { &mut open.far };
        let at = lengths.partition_point(|shorter| *shorter < length);
        lengths.insert(at, length);
        self.classes[class]
            .senders
            .push(sender % self.grouping.ranks);
    }

    fn mark_changed(&mut self, class: usize) {
        if !self.is_changed[class] {
            self.is_changed[class] = true;
            self.changed.push(class);
        }
    }

    fn extension(&self, class: usize) -> Extension {
        let open = &self.classes[class];
        let lightpaths = self.lightpaths_for_next_edge(class);
        let pieces = (open.parts.len() as u32 + lightpaths) * self.volume;
        let edges = (pieces / self.grouping.pieces_of_group()) as usize - open.senders.len();
        let candidates = self.candidates[class].iter().take(edges);
        let saved: f32 = candidates.map(|(saved, _)| saved).sum();
        let (_, _, length) = self.parameters(class);
        let bonus = 1.0 + self.weights.length_bonus * (length as f32).ln();
        let value = match saved > 0.0 {
            true => saved / (length * lightpaths) as f32 * bonus,
            false => 0.0,
        };
        Extension {
            lightpaths,
            edges,
            value,
        }
    }

    fn best_extension(&mut self) -> Option<(usize, Extension)> {
        while let Some(class) = self.changed.pop() {
            self.is_changed[class] = false;
            self.extensions[class] = self.extension(class);
        }
        let mut best: Option<(usize, Extension)> = None;
        for class in 0..self.extensions.len() {
            let extension = self.extensions[class];
            if extension.value == 0.0 {
                continue;
            }
            if extension.lightpaths == 0 {
                return Some((class, extension));
            }
            if best.is_some_and(|(_, best)| extension.value <= best.value) {
                continue;
            }
            let (direction, residue, length) = self.parameters(class);
            let Some((_, fullness)) = self.loads.first_fit(direction, residue, length) else {
                continue;
            };
            let value = extension.value * (1.0 - LOSS_AT_FULL_LINK * fullness);
            let is_better = best.is_none_or(|(_, best)| value > best.value * 1.000_001);
            let count = extension.lightpaths;
            if is_better
                && (count == 1 || self.loads.has_capacity(direction, residue, length, count))
            {
                best = Some((class, Extension { value, ..extension }));
            }
        }
        best
    }

    fn fill(&mut self) {
        for gap in 0..self.gaps.len() {
            self.add_candidate(gap);
        }
        while let Some((class, extension)) = self.best_extension() {
            interrupt::check();
            let (direction, residue, length) = self.parameters(class);
            let count = extension.lightpaths;
            let Some(parts) = self.loads.try_add(direction, residue, length, count) else {
                break;
            };
            self.classes[class].parts.extend(parts);
            self.mark_changed(class);
            let served = self.candidates[class].iter().take(extension.edges);
            for gap in served.map(|(_, gap)| *gap).collect::<Vec<usize>>() {
                self.remove_candidate(gap);
                self.add_edge(class, gap, direction == 0, length);
                self.add_candidate(gap);
            }
        }
    }

    /// Assigns channels to all lightpaths and returns the classes of equivalent edges. If the
    /// assignment fails, the error is the index of the direction and the index of the part of the
    /// channels.
    fn edge_classes(&self) -> Result<Vec<EdgeClass>, (usize, usize)> {
        let mut edge_classes: Vec<EdgeClass> = Vec::new();
        let mut lightpaths: Vec<ClassLightpath> = Vec::new();
        for (class, open) in self.classes.iter().enumerate() {
            if open.senders.is_empty() {
                continue;
            }
            let (direction, residue, length) = self.parameters(class);
            let edge_class = edge_classes.len();
            lightpaths.extend(open.parts.iter().map(|&part| ClassLightpath {
                direction,
                part,
                residue,
                length,
                edge_class,
            }));
            let senders = open.senders.clone();
            edge_classes.push(EdgeClass::new(direction == 0, length, senders));
        }
        assign_channels(self.grouping, &lightpaths, &mut edge_classes)?;
        Ok(edge_classes)
    }
}

fn compare(one: &(f32, usize), other: &(f32, usize)) -> Ordering {
    other.0.total_cmp(&one.0).then(one.1.cmp(&other.1))
}

struct ClassLightpath {
    direction: usize,
    part: usize,
    /// Start rank modulo the group size.
    residue: u32,
    length: u32,
    edge_class: usize,
}

/// Assigns channels to all lightpaths and adds them to their edge classes. If the assignment fails,
/// the error is the index of the direction and the index of the part of the channels.
fn assign_channels(
    grouping: &Grouping,
    lightpaths: &[ClassLightpath],
    edge_classes: &mut [EdgeClass],
) -> Result<(), (usize, usize)> {
    let (group, groups) = (grouping.group, grouping.ranks / grouping.group);
    for direction in 0..2 {
        let mut first = 0;
        for (part, &channels) in grouping.parts.iter().enumerate() {
            let in_part = lightpaths
                .iter()
                .filter(|lightpath| (lightpath.direction, lightpath.part) == (direction, part));
            let in_part: Vec<&ClassLightpath> = in_part.collect();
            let steps = in_part
                .iter()
                .map(|lightpath| (lightpath.residue, lightpath.length));
            let steps: Vec<(u32, u32)> = steps.collect();
            let positions = closed_walks::walk_positions(group, groups, channels, &steps)
                .ok_or((direction, part))?;
            for (lightpath, position) in in_part.iter().zip(positions) {
                let edge_class = &mut edge_classes[lightpath.edge_class];
                edge_class.lightpaths.push((first, position));
            }
            first += channels;
        }
    }
    Ok(())
}

/// Builds a slot from classes of equivalent edges. Each entry of `counted` is a class and its
/// number of lightpaths. `volume` is the maximum number of pieces on a lightpath. Returns `None` if
/// the channel assignment fails.
pub(super) fn slot_of_classes(
    grouping: &Grouping,
    volume: u32,
    mut counted: Vec<(EdgeClass, u32)>,
) -> Option<BundleSlot> {
    counted.sort_by_key(|(edge_class, _)| Reverse(edge_class.length));
    let limits = [grouping.parts.clone(), grouping.parts.clone()];
    let mut loads = Loads::new(grouping, &limits);
    let mut lightpaths = Vec::new();
    for (index, (edge_class, count)) in counted.iter().enumerate() {
        let (direction, length) = (usize::from(!edge_class.clockwise), edge_class.length);
        let residue = grouping.residue(edge_class.senders[0], edge_class.clockwise);
        let parts = loads.try_add(direction, residue, length, *count)?;
        lightpaths.extend(parts.into_iter().map(|part| ClassLightpath {
            direction,
            part,
            residue,
            length,
            edge_class: index,
        }));
    }
    let edge_classes = counted.into_iter().map(|(edge_class, _)| edge_class);
    let mut edge_classes: Vec<EdgeClass> = edge_classes.collect();
    assign_channels(grouping, &lightpaths, &mut edge_classes).ok()?;
    Some(BundleSlot {
        volume,
        edge_classes,
    })
}

/// Assigns lightpaths to a slot. Returns the slot and the remaining gaps, or `None` if the channel
/// assignment fails. `price` is the price of a link of the slot; `later_prices` is the price of
/// reaching n consecutive ranks in later slots, indexed by n.
pub(super) fn fill_slot(
    grouping: &Grouping,
    lengths: &[u32],
    (price, later_prices): (f32, &[f32]),
    volume: u32,
    weights: ChoiceWeights,
    gaps: &[OpenGap],
) -> Option<(BundleSlot, Vec<OpenGap>)> {
    let mut limits = [grouping.parts.clone(), grouping.parts.clone()];
    loop {
        let mut filling = Filling::new(
            grouping,
            lengths,
            later_prices,
            volume,
            weights,
            gaps,
            &limits,
        );
        filling.add_cheapest_trees(price);
        filling.fill();
        match filling.edge_classes() {
            Ok(edge_classes) => {
                let remaining = filling.gaps.iter().flat_map(OpenGap::remaining);
                let slot = BundleSlot {
                    volume,
                    edge_classes,
                };
                return Some((slot, remaining.collect()));
            }
            Err((direction, part)) => {
                // Repeat the search with one channel less in the part of the channels that failed.
                let limit = &mut limits[direction][part];
                *limit = limit.checked_sub(1)?;
            }
        }
    }
}
