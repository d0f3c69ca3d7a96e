//! Search for lightpaths slot by slot.
//!
//! Every chunk starts at one rank and must reach its targets. In each slot, ranks that have a chunk
//! at the start of the slot send it to ranks that lack it, over paths of links on which one channel
//! is free. The search adds one lightpath at a time, the one with the highest score, until no more
//! lightpaths fit.
//!
//! **Score.** The *distance* of a target is its number of links to the nearest rank that has the
//! chunk. The *gain* of a lightpath to rank v is the sum, over all targets, of the amounts by which
//! their distances fall. [`super::rule`] computes the score from the gain and the length. As
//! lightpaths are added, gains only fall and paths only become longer. Scores are therefore
//! recomputed only when they come to the top of the queue.
//!
//! **Last slot.** Before each slot, the search tries to send all missing chunks in this slot, those
//! with the longest paths first.
//!
//! **Translations.** If translations map the graph to itself and the chunks to one another, the
//! search only plans the chunks of rank 0. Each lightpath stands for its images under all
//! translations. All images must find a free channel.
//!
//! **Limits of the delay.** A slot lasts as long as its longest lightpath. If lightpaths of later
//! slots are limited more than those of the first slot, ranks that a later slot cannot join count
//! as farther from one another than all other ranks. The first slot then joins such ranks first.
//! If some ranks remain far from all holders of a chunk, the search starts again, and joining these
//! ranks counts more.
//!
//! **Paths.** See [`super::path_search`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::light_graph::{Channels, LightGraph, Turns};
use super::path_search::{Path, PathSearch};
use super::rule::{Reception, Rule};
use opticoll_base::interrupt;

/// Chunk with the rank that has it and the ranks that must receive it.
pub(super) struct Item {
    pub(super) chunk: u32,
    pub(super) source: u32,
    /// Rank that must receive the chunk; `None` for all ranks.
    pub(super) target: Option<u32>,
}

/// Lightpath that carries an item, or its images under all translations.
pub(super) struct Delivery {
    pub(super) item: u32,
    pub(super) from: u32,
    pub(super) to: u32,
    /// Range of the links in [`Filled::links`].
    pub(super) route: Range<u32>,
    /// Position in [`Filled::channels`] of the channel, and of the channels of the images.
    pub(super) channels: u32,
}

/// Lightpaths of all slots.
#[derive(Default)]
pub(super) struct Filled {
    pub(super) slots: Vec<Vec<Delivery>>,
    links: Vec<u32>,
    channels: Vec<u8>,
}

impl Filled {
    /// Returns the links of a lightpath from its start to its end.
    pub(super) fn route(&self, delivery: &Delivery) -> &[u32] {
        &self.links[delivery.route.start as usize..delivery.route.end as usize]
    }

    /// Returns the channel of a lightpath's image number `image`.
    pub(super) fn channel(&self, delivery: &Delivery, image: u32) -> u32 {
        self.channels[(delivery.channels + image) as usize].into()
    }

    fn push(&mut self, delivery: &Delivery, route: &[u32], channels: &[u8]) -> Delivery {
        let start = self.links.len() as u32;
        self.links.extend_from_slice(route);
        self.channels.extend_from_slice(channels);
        Delivery {
            route: start..self.links.len() as u32,
            channels: (self.channels.len() - channels.len()) as u32,
            ..*delivery
        }
    }
}

/// Lightpaths that a plan may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lightpaths {
    /// True if a lightpath stays up from the slot in which it is first used to the end.
    pub(super) stay: bool,
    /// Maximum number of links.
    pub(super) max_links: u32,
    /// Maximum propagation delays in the first slot and in all later slots, in picoseconds.
    pub(super) max_delays: [u64; 2],
    /// Maximum number of items that a lightpath carries in a slot.
    pub(super) load: u32,
}

/// Problem of the search.
pub(super) struct SlotFilling<'a> {
    pub(super) graph: &'a LightGraph,
    pub(super) turns: Option<&'a Turns>,
    pub(super) items: &'a [&'a Item],
    pub(super) lightpaths: Lightpaths,
    /// Maximum number of slots.
    pub(super) max_slots: u32,
}

/// Number of queue entries after which the search counts the free channels.
const COUNT_INTERVAL: u32 = 1 << 8;

/// Maximum number of searches with the same rule, each of which gives more weight to the ranks that
/// the search before left far from all holders of a chunk.
const MAX_RESTARTS: u32 = 3;

/// Maximum weight of a rank: with it, distances in links remain below 2^16 up to 500 links.
const MAX_WEIGHT: u16 = 128;

/// Slot of a rank that lacks an item.
const NEVER: u16 = u16::MAX;

/// Lightpath that is up.
struct Open {
    from: u32,
    to: u32,
    route: Range<u32>,
    channels: u32,
    /// Slot in which the lightpath was last used.
    slot: u16,
    /// Number of items that the lightpath carries in this slot.
    carried: u32,
}

/// Lightpath in the queue: score, gain, item and end, and the number of links known so far.
type Entry = (u64, u32, Reverse<(u32, u32)>, u32);

struct State<'a> {
    problem: &'a SlotFilling<'a>,
    rule: Rule,
    slot: u16,
    /// Slot in which each rank receives each item, indexed by item * ranks + rank. Sources have 0,
    /// and slots are numbered from 1.
    since: Vec<u16>,
    /// Distance of each target from the nearest rank with the item, indexed as `since`. 0 for ranks
    /// that are not targets.
    near: Vec<u16>,
    free: Vec<Channels>,
    /// Number of links of a lightpath below which shorter lightpaths save nothing: if the ranks
    /// that have items send as many lightpaths as they can, each can have this number of links.
    ample: u32,
    sent: Vec<u32>,
    received: Vec<u32>,
    /// Number of items that each rank lacks.
    missing: Vec<u32>,
    open: Vec<Open>,
    /// Indices in `open` of the lightpaths that end at each rank. With translations, all are in the
    /// first list.
    open_to: Vec<Vec<u32>>,
    filled: Filled,
    search: PathSearch,
}

impl SlotFilling<'_> {
    /// Returns the lightpaths of the slots under `rule`, within the limits of the delay. Returns
    /// `None` if the search finds none within the maximum number of slots. Increases the `weights`
    /// of the ranks that are hard to join in the first slot.
    pub(super) fn fill_within_delays(&self, rule: Rule, weights: &mut [u16]) -> Option<Filled> {
        let later = self.lightpaths.max_delays[1];
        if later == u64::MAX {
            return self.fill(rule).ok();
        }
        for _ in 0..MAX_RESTARTS {
            let graph = &self.graph.with_far_ranks(later, weights);
            match (SlotFilling { graph, ..*self }).fill(rule) {
                Ok(filled) => return Some(filled),
                Err(far) if far.is_empty() => return None,
                Err(far) => {
                    for rank in far {
                        weights[rank as usize] = (weights[rank as usize] * 2).min(MAX_WEIGHT);
                    }
                }
            }
        }
        None
    }

    /// Returns the lightpaths of the slots under `rule`. If they need more than the maximum number
    /// of slots, returns the ranks that are still far from all holders of a chunk after the first
    /// slot.
    fn fill(&self, rule: Rule) -> Result<Filled, Vec<u32>> {
        let mut state = State::new(self, rule);
        while state.missing.iter().any(|&missing| missing > 0) {
            interrupt::check();
            if u32::from(state.slot) >= self.max_slots || state.slot == NEVER - 1 {
                return Err(Vec::new());
            }
            state.begin_slot();
            let may_finish = state.may_finish();
            if may_finish && state.finish() {
                break;
            }
            let is_last = u32::from(state.slot) == self.max_slots;
            let may_fill = may_finish && self.lightpaths.load == 1;
            if is_last && !may_fill && !self.lightpaths.stay {
                return Err(Vec::new());
            }
            state.fill_slot();
            let far = state.far_ranks();
            if !far.is_empty() || state.filled.slots.last().is_none_or(Vec::is_empty) {
                return Err(far);
            }
        }
        state.remove_unused();
        Ok(state.filled)
    }
}

impl State<'_> {
    fn new<'a>(problem: &'a SlotFilling<'a>, rule: Rule) -> State<'a> {
        let graph = problem.graph;
        let ranks = graph.ranks as usize;
        let places = problem.items.len() * ranks;
        let (mut since, mut near) = (vec![NEVER; places], vec![0; places]);
        let mut missing = vec![0; ranks];
        for (item, first) in problem.items.iter().zip((0..).step_by(ranks)) {
            since[first + item.source as usize] = 0;
            let distances = graph.distances_from(item.source);
            for (target, &distance) in distances.iter().enumerate() {
                if item.target.is_none_or(|only| only as usize == target) {
                    near[first + target] = distance;
                    missing[target] += u32::from(distance > 0);
                }
            }
        }
        let vertices = graph.entering.len();
        State {
            problem,
            rule,
            slot: 0,
            since,
            near,
            free: graph.usable.clone(),
            ample: 1,
            sent: vec![0; ranks],
            received: vec![0; ranks],
            missing,
            open: Vec::new(),
            open_to: vec![Vec::new(); ranks],
            filled: Filled::default(),
            search: PathSearch::new(vertices),
        }
    }

    fn ranks(&self) -> usize {
        self.problem.graph.ranks as usize
    }

    /// Returns the index of a rank in `sent`, `received` and `open_to`: 0 with translations, under
    /// which all ranks are alike.
    fn counter(&self, rank: u32) -> usize {
        match self.problem.turns {
            Some(_) => 0,
            None => rank as usize,
        }
    }

    fn begin_slot(&mut self) {
        self.slot += 1;
        self.filled.slots.push(Vec::new());
        self.sent.fill(0);
        self.received.fill(0);
        if !self.problem.lightpaths.stay {
            self.free.clone_from(&self.problem.graph.usable);
            self.close();
        }
        let graph = self.problem.graph;
        let is_sender = |rank: &u32| {
            let mut since = self.since.iter().skip(*rank as usize).step_by(self.ranks());
            self.problem.turns.is_some() || since.any(|since| *since < self.slot)
        };
        let senders = (0..graph.ranks).filter(is_sender);
        let sent: u64 = senders
            .map(|rank| u64::from(graph.sent_at_once(rank)))
            .sum();
        self.ample = (self.free_channels() / sent.max(1)).max(1) as u32;
    }

    /// Takes down all lightpaths.
    fn close(&mut self) {
        for open in self.open.drain(..) {
            let counter = match self.problem.turns {
                Some(_) => 0,
                None => open.to as usize,
            };
            self.open_to[counter].clear();
        }
    }

    /// Returns the targets that are far from all holders of an item.
    fn far_ranks(&self) -> Vec<u32> {
        if self.problem.lightpaths.max_delays[1] == u64::MAX {
            return Vec::new();
        }
        let ranks = self.ranks();
        let is_far = |rank: &u32| {
            let near = self.near.iter().skip(*rank as usize).step_by(ranks);
            near.copied()
                .any(|near| self.problem.graph.links_of(near).1)
        };
        (0..self.problem.graph.ranks).filter(is_far).collect()
    }

    fn has(&self, item: u32, rank: u32) -> bool {
        self.since[item as usize * self.ranks() + rank as usize] < self.slot
    }

    /// Returns false if the missing items cannot all be sent in the current slot: they need more
    /// channels than are free, or a rank lacks more items than it can receive. Also returns false
    /// if lightpaths stay.
    fn may_finish(&self) -> bool {
        let graph = self.problem.graph;
        let images = self.problem.turns.map_or(1, |_| u64::from(graph.ranks));
        let distances = self.near.iter().map(|&near| graph.links_of(near));
        let needed: u64 = distances.map(|(links, _)| u64::from(links)).sum();
        let load = self.problem.lightpaths.load;
        let is_full = |rank: u32| self.missing[rank as usize] > graph.received_at_once(rank) * load;
        !self.problem.lightpaths.stay
            && needed * images <= self.free_channels() * u64::from(load)
            && (images > 1 || !(0..graph.ranks).any(is_full))
    }

    /// Sends all missing items in the current slot. Returns false, and sends none, if the search
    /// finds no paths for all of them.
    fn finish(&mut self) -> bool {
        let ranks = self.ranks();
        let places = self.near.iter().enumerate();
        let places = places.filter(|(place, near)| **near > 0 && self.since[*place] == NEVER);
        let mut missing: Vec<(Reverse<u16>, u32, u32)> = places
            .map(|(place, &near)| {
                (
                    Reverse(near),
                    (place / ranks) as u32,
                    (place % ranks) as u32,
                )
            })
            .collect();
        missing.sort_by_key(|&(near, item, rank)| {
            (near, Reverse(self.missing[rank as usize]), rank, item)
        });
        let free = self.free.clone();
        let (links, channels) = (self.filled.links.len(), self.filled.channels.len());
        for &(_, item, rank) in &missing {
            let path = self.path(item, rank);
            if path.is_some_and(|path| self.light(item, rank, path)) {
                continue;
            }
            self.free = free;
            self.close();
            self.sent.fill(0);
            self.received.fill(0);
            self.filled.links.truncate(links);
            self.filled.channels.truncate(channels);
            if let Some(slot) = self.filled.slots.last_mut() {
                for delivery in slot.drain(..) {
                    self.since[delivery.item as usize * ranks + delivery.to as usize] = NEVER;
                }
            }
            return false;
        }
        true
    }

    /// Removes the deliveries of items with a single target that do not lead to it: reversed in
    /// time, they would come from ranks that do not have the item.
    fn remove_unused(&mut self) {
        let targets = self.problem.items.iter().map(|item| item.target);
        let mut awaited: Vec<Option<u32>> = targets.collect();
        for slot in self.filled.slots.iter_mut().rev() {
            slot.retain(|delivery| match &mut awaited[delivery.item as usize] {
                Some(rank) if *rank != delivery.to => false,
                Some(rank) => {
                    *rank = delivery.from;
                    true
                }
                None => true,
            });
        }
        self.filled.slots.retain(|slot| !slot.is_empty());
    }

    fn free_channels(&self) -> u64 {
        let free = self.free.iter();
        free.map(|free| u64::from(free.count_ones())).sum()
    }

    /// Adds lightpaths in the order of their scores until no more fit.
    fn fill_slot(&mut self) {
        let ranks = self.ranks();
        let mut queue = BinaryHeap::new();
        for place in 0..self.since.len() {
            let (item, rank) = ((place / ranks) as u32, (place % ranks) as u32);
            let target = self.problem.items[item as usize].target;
            let is_relay = target.is_some_and(|target| target != rank);
            if self.since[place] != NEVER || is_relay && self.is_direct() {
                continue;
            }
            let gain = self.gain(item, rank);
            if gain > 0 {
                // The distance of a target is a lower bound on the length of its path.
                let (links, _) = self.problem.graph.links_of(self.near[place]);
                queue.push(self.entry(gain, links.into(), item, rank));
            }
        }
        // Number of entries until the free channels are counted again.
        let mut countdown = COUNT_INTERVAL;
        while let Some((_, _, Reverse((item, rank)), length)) = queue.pop() {
            interrupt::check();
            countdown -= 1;
            if countdown == 0 {
                let lightpaths = self.problem.lightpaths;
                if !lightpaths.stay && lightpaths.load == 1 && self.free_channels() == 0 {
                    break;
                }
                countdown = COUNT_INTERVAL;
            }
            if !self.can_receive(rank) {
                continue;
            }
            let gain = self.gain(item, rank);
            if gain == 0 {
                continue;
            }
            let is_next = |entry: &Entry| queue.peek().is_none_or(|next| next <= entry);
            // The score may have fallen so far that the search for a path can wait.
            let known = self.entry(gain, length, item, rank);
            if !is_next(&known) {
                queue.push(known);
                continue;
            }
            let Some(path) = self.path(item, rank) else {
                continue;
            };
            let entry = self.entry(gain, path.links.len() as u32, item, rank);
            if !is_next(&entry) {
                queue.push(entry);
            } else if self.light(item, rank, path) {
                self.update_distances(item, rank);
            }
        }
    }

    /// Returns the sum of the amounts by which the distances of the targets fall if `rank`
    /// receives `item`.
    fn gain(&self, item: u32, rank: u32) -> u32 {
        let ranks = self.ranks();
        let distances = self.problem.graph.distances_from(rank);
        match self.problem.items[item as usize].target {
            Some(target) => {
                let near = self.near[item as usize * ranks + target as usize];
                near.saturating_sub(distances[target as usize]).into()
            }
            None => {
                let near = &self.near[item as usize * ranks..][..ranks];
                let falls = near.iter().zip(distances);
                falls
                    .map(|(near, distance)| u32::from(near.saturating_sub(*distance)))
                    .sum()
            }
        }
    }

    /// Returns the queue entry of a lightpath of a gain and a length.
    fn entry(&self, gain: u32, length: u32, item: u32, rank: u32) -> Entry {
        // Under translations, all ranks receive alike.
        let reception = self.problem.turns.is_none().then(|| Reception {
            received: self.received[rank as usize],
            missing: self.missing[rank as usize],
            at_once: self.problem.graph.received_at_once(rank),
        });
        let score = self.rule.score(gain, length.max(self.ample), reception);
        (score, gain, Reverse((item, rank)), length)
    }

    /// Returns whether items with a single target take one lightpath each: relays then save neither
    /// channels nor slots.
    fn is_direct(&self) -> bool {
        !self.has_open() && self.problem.graph.reach == u32::MAX
    }

    /// Returns whether lightpaths that are up may carry further items.
    fn has_open(&self) -> bool {
        self.problem.lightpaths.stay || self.problem.lightpaths.load > 1
    }

    fn can_receive(&self, rank: u32) -> bool {
        let graph = self.problem.graph;
        let mut entering = graph.entering[rank as usize].iter();
        let is_free = entering.any(|&(link, _)| self.free[link as usize] != 0);
        let has_receiver = self.received[self.counter(rank)] < graph.receivers;
        has_receiver && is_free || self.has_open()
    }

    /// Returns the shortest path on which `item` can reach `to`: a lightpath that is up already,
    /// or free channels.
    fn path(&mut self, item: u32, to: u32) -> Option<Path> {
        let graph = self.problem.graph;
        if let Some(path) = self.open_path(item, to) {
            return Some(path);
        }
        match self.received[self.counter(to)] >= graph.receivers {
            true => None,
            false => self.new_path(item, to),
        }
    }

    fn open_path(&self, item: u32, to: u32) -> Option<Path> {
        let graph = self.problem.graph;
        for &index in &self.open_to[self.counter(to)] {
            let open = &self.open[index as usize];
            let is_used = open.slot == self.slot;
            if is_used && open.carried >= self.problem.lightpaths.load {
                continue;
            }
            let from = match self.problem.turns {
                None => open.from,
                Some(turns) => turns.rank(open.from, turns.between(open.to, to)),
            };
            let has_ports = self.sent[self.counter(from)] < graph.transmitters
                && self.received[self.counter(to)] < graph.receivers;
            if self.has(item, from) && (is_used || has_ports) {
                return Some(Path {
                    from,
                    channel: 0,
                    links: Vec::new(),
                    open: Some(index as usize),
                });
            }
        }
        None
    }

    fn new_path(&mut self, item: u32, to: u32) -> Option<Path> {
        let graph = self.problem.graph;
        let mut search = std::mem::replace(&mut self.search, PathSearch::empty());
        let is_holder = |vertex: u32| {
            vertex < graph.ranks
                && self.has(item, vertex)
                && self.sent[self.counter(vertex)] < graph.transmitters
        };
        let max_links = self.problem.lightpaths.max_links.min(graph.reach);
        let max_delay = self.problem.lightpaths.max_delays[usize::from(self.slot > 1)];
        let path = search.find(graph, &self.free, to, max_links, is_holder);
        let path = path.and_then(|path| match graph.allows(&path.links, max_delay) {
            true => Some(path),
            false => {
                let fastest = search.find_fastest(graph, &self.free, to, max_delay, is_holder);
                let fastest = fastest.filter(|path| graph.allows(&path.links, max_delay));
                fastest.filter(|path| path.links.len() <= max_links as usize)
            }
        });
        self.search = search;
        path
    }

    /// Lights a path, with all its images. Returns false if an image has no free channel.
    fn light(&mut self, item: u32, to: u32, path: Path) -> bool {
        let place = item as usize * self.ranks() + to as usize;
        let mut delivery = Delivery {
            item,
            from: path.from,
            to,
            route: 0..0,
            channels: 0,
        };
        if let Some(index) = path.open {
            let open = &mut self.open[index];
            let is_used = open.slot == self.slot;
            open.carried = if is_used { open.carried + 1 } else { 1 };
            open.slot = self.slot;
            if !is_used {
                self.use_ports(path.from, to);
            }
            let open = &self.open[index];
            let Some(turns) = self.problem.turns else {
                delivery.route = open.route.clone();
                delivery.channels = open.channels;
                self.record(delivery, place);
                return true;
            };
            let by = turns.between(open.to, to);
            let route = open.route.start as usize..open.route.end as usize;
            let links: Vec<u32> = self.filled.links[route]
                .iter()
                .map(|&link| turns.link(link, by))
                .collect();
            let images = 0..self.problem.graph.ranks;
            let channel = |image: u32| (open.channels + turns.rank(by, image)) as usize;
            let channels: Vec<u8> = images
                .map(|image| self.filled.channels[channel(image)])
                .collect();
            let delivery = self.filled.push(&delivery, &links, &channels);
            self.record(delivery, place);
            return true;
        }
        let Some(channels) = self.occupy(&path) else {
            return false;
        };
        let delivery = self.filled.push(&delivery, &path.links, &channels);
        self.use_ports(path.from, to);
        if self.has_open() {
            let counter = self.counter(to);
            self.open_to[counter].push(self.open.len() as u32);
            self.open.push(Open {
                from: path.from,
                to,
                route: delivery.route.clone(),
                channels: delivery.channels,
                slot: self.slot,
                carried: 1,
            });
        }
        self.record(delivery, place);
        true
    }

    fn use_ports(&mut self, from: u32, to: u32) {
        let (from, to) = (self.counter(from), self.counter(to));
        self.sent[from] += 1;
        self.received[to] += 1;
    }

    fn record(&mut self, delivery: Delivery, place: usize) {
        self.since[place] = self.slot;
        if let Some(slot) = self.filled.slots.last_mut() {
            slot.push(delivery);
        }
    }

    /// Occupies the channel of a path, and a channel for each image. Returns the channels, or
    /// `None` if an image has no free channel.
    fn occupy(&mut self, path: &Path) -> Option<Vec<u8>> {
        let Some(turns) = self.problem.turns else {
            let taken: Channels = 1 << path.channel;
            path.links
                .iter()
                .for_each(|&link| self.free[link as usize] &= !taken);
            return Some(vec![path.channel as u8]);
        };
        let images = self.problem.graph.ranks;
        let mut channels = Vec::with_capacity(images as usize);
        let mut links = Vec::with_capacity(path.links.len() * images as usize);
        for image in 0..images {
            let start = links.len();
            links.extend(path.links.iter().map(|&link| turns.link(link, image)));
            let route = links[start..].iter();
            let common = route.fold(Channels::MAX, |common, &link| {
                common & self.free[link as usize]
            });
            if common == 0 {
                let lengths = channels.iter().zip(links.chunks(path.links.len().max(1)));
                for (&channel, route) in lengths {
                    let given: Channels = 1 << u32::from(channel);
                    route
                        .iter()
                        .for_each(|&link| self.free[link as usize] |= given);
                }
                return None;
            }
            let channel = common.trailing_zeros();
            let taken: Channels = 1 << channel;
            links[start..]
                .iter()
                .for_each(|&link| self.free[link as usize] &= !taken);
            channels.push(channel as u8);
        }
        Some(channels)
    }

    /// Updates the distances of the targets after `rank` has received `item`.
    fn update_distances(&mut self, item: u32, rank: u32) {
        let ranks = self.ranks();
        let near = &mut self.near[item as usize * ranks..][..ranks];
        let target = self.problem.items[item as usize].target;
        if target.is_none_or(|target| target == rank) {
            self.missing[rank as usize] -= 1;
        }
        let distances = self.problem.graph.distances_from(rank);
        for (near, &distance) in near.iter_mut().zip(distances) {
            *near = (*near).min(distance);
        }
    }
}
