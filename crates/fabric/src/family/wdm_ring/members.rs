//! Rings on which only some ranks take part: the ranks in the option `members`, except failed ranks
//! (option `without`).
//!
//! The other ranks send and receive nothing, and light passes their nodes. Between two consecutive
//! members, a lightpath occupies all links between nodes or none. Therefore these links form one
//! link of the ring of members; they matter only for propagation delay, reach and loss. A cut
//! between two nodes breaks the link between the members before and after the cut. A link that is
//! longer than the reach of light is broken, too.

use super::{BrokenLink, Degraded, Direction, WdmRing};
use crate::fabric::part;
use opticoll_base::spec::{Spec, SpecError};
use opticoll_base::units::{Time, UnitError};

/// Parses the option `members` to sorted node numbers; empty if all nodes are members.
pub(super) fn read(spec: &Spec, nodes: u32, failed: &[u32]) -> Result<Vec<u32>, SpecError> {
    let refuse = |problem| spec.refuse("members", problem);
    let items = spec.option("members").into_iter();
    let mut members = Vec::new();
    for item in items.flat_map(|list| list.split('+')) {
        let (first, last) = part::parse_rank_range(item.trim(), nodes).map_err(refuse)?;
        members.extend(first..=last);
    }
    sort_and_dedup(&mut members);
    if !members.is_empty() && members.iter().all(|node| failed.contains(node)) {
        return Err(refuse("no rank is left".into()));
    }
    if members.len() as u32 == nodes {
        members.clear();
    }
    Ok(members)
}

/// Formats members such that [`read`] parses them.
pub(super) fn print(members: &[u32]) -> String {
    let runs = members.chunk_by(|node, next| node + 1 == *next);
    let runs: Vec<(u32, u32)> = runs.map(|run| (run[0], run[run.len() - 1])).collect();
    part::joined(&runs, part::rank_range_text)
}

fn sort_and_dedup<T: Ord>(items: &mut Vec<T>) {
    items.sort_unstable();
    items.dedup();
}

impl WdmRing {
    /// Returns the ring restricted to the ranks that take part.
    pub(super) fn among_members(mut self) -> WdmRing {
        if self.members.is_empty() && self.failed.is_empty() {
            return self;
        }
        let is_left = |node: &u32| {
            let asked = self.members.is_empty() || self.members.binary_search(node).is_ok();
            asked && self.failed.binary_search(node).is_err()
        };
        self.node_of_rank = (0..self.nodes).filter(is_left).collect();
        self.ranks = self.node_of_rank.len() as u32;
        let rank_before =
            |node: u32| match self.node_of_rank.partition_point(|place| *place <= node) {
                0 => self.ranks - 1,
                after => after as u32 - 1,
            };
        let cuts = self.cuts.iter().map(|cut| BrokenLink {
            position: rank_before(cut.position),
            ..*cut
        });
        let farthest = u64::from(self.farthest(0));
        let too_long = (0..self.ranks).filter(|&rank| self.links_to_next(rank) > farthest);
        let too_long = too_long.flat_map(|position| {
            Direction::BOTH.map(|direction| BrokenLink {
                position,
                direction,
            })
        });
        let mut broken: Vec<BrokenLink> = cuts.chain(too_long).collect();
        sort_and_dedup(&mut broken);
        self.broken = if self.ranks > 1 { broken } else { Vec::new() };
        self
    }

    /// Returns the ring with all parts at full rate. Also returns the ring without the degraded
    /// parts if this ring is still connected. Returns an empty list if nothing is degraded.
    pub(super) fn undegraded_rings(&self) -> Vec<WdmRing> {
        if !self.degraded.has_slower_parts() {
            return Vec::new();
        }
        let mut at_full_rate = self.clone();
        let Degraded { links, channels } = std::mem::take(&mut at_full_rate.degraded);
        let mut without_slower = at_full_rate.clone();
        without_slower.cuts.extend(links.into_keys());
        without_slower.dead.extend(channels.into_keys());
        sort_and_dedup(&mut without_slower.cuts);
        sort_and_dedup(&mut without_slower.dead);
        without_slower.broken.clone_from(&without_slower.cuts);
        if without_slower.dead.len() as u64
            == u64::from(without_slower.fibres) * u64::from(without_slower.wavelengths)
        {
            return vec![at_full_rate];
        }
        let without_slower = without_slower.among_members();
        let is_connected = without_slower.is_connected();
        std::iter::once(at_full_rate)
            .chain(is_connected.then_some(without_slower))
            .collect()
    }

    /// Returns the length of a lightpath in links between nodes.
    pub fn span(&self, source: u32, destination: u32, direction: Direction) -> u32 {
        if self.node_of_rank.is_empty() {
            return self.hops(source, destination, direction);
        }
        let nodes = [source, destination].map(|rank| self.node_of_rank[rank as usize]);
        super::links_between(nodes, direction, self.nodes)
    }

    /// Returns whether a lightpath can span `span` links between nodes.
    pub fn reaches(&self, span: u32) -> bool {
        span <= self.farthest(0)
    }

    /// Returns the minimum propagation delay between neighbouring ranks.
    pub fn least_propagation(&self) -> Result<Time, UnitError> {
        let nearest = match self.node_of_rank.is_empty() {
            true => 1,
            false => (0..self.ranks)
                .map(|rank| self.links_to_next(rank))
                .min()
                .unwrap_or(1),
        };
        self.propagation.times(nearest)
    }

    /// Returns whether the delay and the reach of a lightpath depend only on its number of links,
    /// not on the rank at which it starts.
    pub(super) fn is_evenly_spaced(&self) -> bool {
        let has_limit = self.reach.is_some() || self.budget.is_some();
        let counts = has_limit || self.propagation != Time::ZERO;
        self.node_of_rank.is_empty() || !counts || {
            let first = self.links_to_next(0);
            (1..self.ranks).all(|rank| self.links_to_next(rank) == first)
        }
    }

    /// Returns the number of links between ranks of the longest lightpath with at most `farthest`
    /// links between nodes. The result is [minimum, maximum] over all start ranks, both at least 1
    /// and below N. Lightpaths that end before a link longer than `farthest` do not count for the
    /// minimum.
    pub(super) fn links_within(&self, farthest: u32) -> [u32; 2] {
        let others = self.ranks.saturating_sub(1).max(1);
        if self.node_of_rank.is_empty() || farthest >= self.nodes {
            return [farthest.min(others); 2];
        }
        let (mut least, mut most) = (others, 1);
        let mut last = 0;
        for first in 0..u64::from(self.ranks) {
            last = last.max(first);
            let start = self.unrolled_node(first);
            let end = first + u64::from(others);
            while last < end && self.unrolled_node(last + 1) - start <= farthest.into() {
                last += 1;
            }
            let links = (last - first) as u32;
            if self.unrolled_node(last + 1) - self.unrolled_node(last) <= farthest.into() {
                least = least.min(links);
            }
            most = most.max(links);
        }
        [least.max(1), most]
    }

    /// Returns the number of links between nodes from `rank` to the next rank.
    fn links_to_next(&self, rank: u32) -> u64 {
        self.unrolled_node(u64::from(rank) + 1) - self.unrolled_node(rank.into())
    }

    /// Returns the node of `rank`. Rank numbers and node numbers continue to increase after each
    /// turn around the ring: rank N is rank 0 after one turn.
    fn unrolled_node(&self, rank: u64) -> u64 {
        let ranks = u64::from(self.ranks);
        let place = self.node_of_rank[(rank % ranks) as usize];
        u64::from(place) + rank / ranks * u64::from(self.nodes)
    }
}
