//! Search for the path of a lightpath, breadth-first from the destination. The search tracks, for
//! each vertex, the set of channels that are free on a path from the vertex to the destination.
//!
//! If the path with the fewest links exceeds a limit of the propagation delay, the search finds the
//! fastest path, in the order of delays.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::light_graph::{Channels, LightGraph};

/// Path of a lightpath.
pub(super) struct Path {
    pub(super) from: u32,
    pub(super) channel: u32,
    pub(super) links: Vec<u32>,
    /// Index of the lightpath that is up already.
    pub(super) open: Option<usize>,
}

/// Vertex with channels that are free on a path from the vertex to the destination.
struct Label {
    vertex: u32,
    channels: Channels,
    /// First link of the path, and the index of the label at its end.
    before: Option<(u32, usize)>,
}

/// Memory of the search for paths.
pub(super) struct PathSearch {
    /// Channels with a path to the destination, indexed by vertex.
    seen: Vec<Channels>,
    /// Vertices of each level with their channels.
    levels: Vec<Vec<(u32, Channels)>>,
    /// Channels of the vertices of the level that is being built, indexed by vertex.
    next: Vec<Channels>,
    /// Memory for further levels.
    spare: Vec<Vec<(u32, Channels)>>,
}

impl PathSearch {
    /// Returns the memory for a graph with `vertices` vertices.
    pub(super) fn new(vertices: usize) -> PathSearch {
        PathSearch {
            seen: vec![0; vertices],
            next: vec![0; vertices],
            ..PathSearch::empty()
        }
    }

    pub(super) const fn empty() -> PathSearch {
        PathSearch {
            seen: Vec::new(),
            levels: Vec::new(),
            next: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Returns a shortest path from a vertex for which `is_holder` is true to `to`, on which one
    /// of the channels `free` is free. Among these paths, prefers those whose links have many free
    /// channels.
    pub(super) fn find(
        &mut self,
        graph: &LightGraph,
        free: &[Channels],
        to: u32,
        max_links: u32,
        is_holder: impl Fn(u32) -> bool,
    ) -> Option<Path> {
        self.recycle();
        let mut start = self.spare.pop().unwrap_or_default();
        start.push((to, Channels::MAX));
        self.levels.push(start);
        self.seen[to as usize] = Channels::MAX;
        let mut first = None;
        while first.is_none() && (self.levels.len() as u32) <= max_links {
            let mut level = self.spare.pop().unwrap_or_default();
            let last = self.levels.last().map_or(&[][..], Vec::as_slice);
            for &(vertex, channels) in last {
                for &(link, before) in &graph.entering[vertex as usize] {
                    let fresh = channels & free[link as usize] & !self.seen[before as usize];
                    if fresh != 0 {
                        if self.next[before as usize] == 0 {
                            level.push((before, 0));
                        }
                        self.next[before as usize] |= fresh;
                    }
                }
            }
            if level.is_empty() {
                self.spare.push(level);
                break;
            }
            for (vertex, channels) in &mut level {
                *channels = std::mem::take(&mut self.next[*vertex as usize]);
                self.seen[*vertex as usize] |= *channels;
            }
            let holders = level.iter().filter(|(vertex, _)| is_holder(*vertex));
            first = holders
                .max_by_key(|(vertex, channels)| (channels.count_ones(), Reverse(*vertex)))
                .copied();
            self.levels.push(level);
        }
        let path = first.map(|(from, channels)| self.trace(graph, free, from, channels));
        for level in &self.levels {
            for &(vertex, _) in level {
                self.seen[vertex as usize] = 0;
            }
        }
        path
    }

    /// Returns the path with the least delay from a vertex for which `is_holder` is true to `to`,
    /// on which one of the channels `free` is free. Returns `None` if its delay exceeds
    /// `max_delay`.
    pub(super) fn find_fastest(
        &mut self,
        graph: &LightGraph,
        free: &[Channels],
        to: u32,
        max_delay: u64,
        is_holder: impl Fn(u32) -> bool,
    ) -> Option<Path> {
        let mut labels = vec![Label {
            vertex: to,
            channels: Channels::MAX,
            before: None,
        }];
        let mut queue = BinaryHeap::from([Reverse((0, 0))]);
        let mut found = None;
        while let Some(Reverse((delay, index))) = queue.pop() {
            let label: &Label = &labels[index];
            let (vertex, next) = (label.vertex, label.channels);
            let channels = next & !self.seen[vertex as usize];
            if channels == 0 {
                continue;
            }
            self.seen[vertex as usize] |= channels;
            if is_holder(vertex) {
                found = Some((index, channels.trailing_zeros()));
                break;
            }
            for &(link, before) in &graph.entering[vertex as usize] {
                let fresh = channels & free[link as usize] & !self.seen[before as usize];
                let sum = graph.latency[link as usize].saturating_add(delay);
                if fresh != 0 && sum <= max_delay {
                    queue.push(Reverse((sum, labels.len())));
                    labels.push(Label {
                        vertex: before,
                        channels: fresh,
                        before: Some((link, index)),
                    });
                }
            }
        }
        for label in &labels {
            self.seen[label.vertex as usize] = 0;
        }
        let (mut index, channel) = found?;
        let from = labels[index].vertex;
        let mut links = Vec::new();
        while let Some((link, next)) = labels[index].before {
            links.push(link);
            index = next;
        }
        Some(Path {
            from,
            channel,
            links,
            open: None,
        })
    }

    /// Returns the memory of all levels to the spare levels.
    fn recycle(&mut self) {
        for mut level in self.levels.drain(..) {
            level.clear();
            self.spare.push(level);
        }
    }

    /// Returns the path from a vertex of the last level to the destination.
    fn trace(&self, graph: &LightGraph, free: &[Channels], from: u32, channels: Channels) -> Path {
        let channel = channels.trailing_zeros();
        let bit: Channels = 1 << channel;
        let (mut vertex, mut links) = (from, Vec::with_capacity(self.levels.len() - 1));
        for level in self.levels.iter().rev().skip(1) {
            let on = level.iter().filter(|(_, channels)| channels & bit != 0);
            let entering = on.flat_map(|&(next, _)| {
                let entering = graph.entering[next as usize].iter();
                entering.map(move |&(link, before)| (link, before, next))
            });
            let entering = entering
                .filter(|&(link, before, _)| before == vertex && free[link as usize] & bit != 0);
            let best = entering
                .max_by_key(|&(link, ..)| (free[link as usize].count_ones(), Reverse(link)));
            let Some((link, _, next)) = best else { break };
            links.push(link);
            vertex = next;
        }
        Path {
            from,
            channel,
            links,
            open: None,
        }
    }
}
