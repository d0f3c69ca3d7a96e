//! Coarsest equitable partition of flows, links and ranks, computed by refinement.

use std::hash::{BuildHasher, Hash, Hasher};

use rustc_hash::{FxBuildHasher, FxHashMap, FxHasher};

use super::super::quotient_network::{Colour, Quotient};
use super::StepFlows;
use opticoll_base::hash::hash;
use opticoll_base::interrupt;
use opticoll_fabric::network::Network;

/// Colours of flows, links and ranks, numbered from 0 in the order of their first occurrence.
pub(super) struct Partition {
    /// Colour of each flow of all steps, indexed by flow.
    pub(super) flows: Vec<u32>,
    /// Colour of each link, indexed by link.
    pub(super) links: Vec<u32>,
    /// Colour of each rank, indexed by rank.
    pub(super) ranks: Vec<u32>,
}

/// Indices of colours. The key is the signature of a colour: a hash of all properties that
/// distinguish the colour from others.
#[derive(Default)]
struct Colours {
    by_signature: FxHashMap<u64, u32>,
}

impl Colours {
    fn number(&mut self, signature: u64) -> u32 {
        let next = self.by_signature.len() as u32;
        *self.by_signature.entry(hash(signature)).or_insert(next)
    }

    fn len(&self) -> usize {
        self.by_signature.len()
    }
}

impl Partition {
    /// Divides colours until all members of a colour have equal signatures. Returns `None` if flows
    /// have more than `max_colours` colours or use a rank or link that does not exist.
    pub(super) fn refine(
        network: &dyn Network,
        flows: &StepFlows,
        max_colours: usize,
    ) -> Option<Partition> {
        let (link_count, rank_count) = (network.links().len(), network.ranks() as usize);
        let mut colours = Colours::default();
        let signature = |link| FxBuildHasher.hash_one(link);
        let links = network.links().iter();
        let links: Vec<u32> = links.map(|link| colours.number(signature(link))).collect();
        let mut counts = (colours.len(), 1);
        let mut partition = Partition {
            flows: flows.first_colours(),
            links,
            ranks: vec![0; rank_count],
        };
        // Sums of hashes of flows: of the flows on each link, then of the flows that leave each
        // rank, then of the flows that enter each rank.
        let mut sums = vec![0u64; link_count + 2 * rank_count];
        let mut route = Vec::new();
        loop {
            sums.fill(0);
            let mut colours = Colours::default();
            for (flow, colour) in flows.flows.iter().zip(&mut partition.flows) {
                interrupt::check();
                let (source, destination) = (flow.source as usize, flow.destination as usize);
                if source.max(destination) >= rank_count || source == destination {
                    return None;
                }
                route.clear();
                network.route(flow.source, flow.destination, &mut route);
                let mut hasher = FxHasher::default();
                let ranks = &partition.ranks;
                (*colour, ranks[source], ranks[destination]).hash(&mut hasher);
                for &link in &route {
                    // Adding 1 distinguishes routes that differ only by leading links of colour 0.
                    hasher.write_u32(*partition.links.get(link as usize)? + 1);
                }
                *colour = colours.number(hasher.finish());
                let flow_hash = hash(u64::from(*colour));
                let ends = [link_count + source, link_count + rank_count + destination];
                let places = route.iter().map(|&link| link as usize).chain(ends);
                for place in places {
                    sums[place] = sums[place].wrapping_add(flow_hash);
                }
            }
            if colours.len() > max_colours {
                return None;
            }
            let (on_links, at_ranks) = sums.split_at(link_count);
            let (leaving, entering) = at_ranks.split_at(rank_count);
            let (mut links, mut ranks) = (Colours::default(), Colours::default());
            for (colour, on) in partition.links.iter_mut().zip(on_links) {
                *colour = links.number(FxBuildHasher.hash_one((*colour, on)));
            }
            let ends = leaving.iter().zip(entering);
            for (colour, ends) in partition.ranks.iter_mut().zip(ends) {
                *colour = ranks.number(FxBuildHasher.hash_one((*colour, ends)));
            }
            let before = std::mem::replace(&mut counts, (links.len(), ranks.len()));
            if counts == before {
                return Some(partition);
            }
        }
    }

    /// Returns the quotient, or `None` if exact counts show that the colours are not equitable.
    pub(super) fn quotient(&self, network: &dyn Network, flows: &StepFlows) -> Option<Quotient> {
        let (first_links, first_ranks) = (first_members(&self.links), first_members(&self.ranks));
        let links = network.links();
        for (link, &colour) in links.iter().zip(&self.links) {
            if *link != links[first_links[colour as usize]] {
                return None;
            }
        }
        let mut quotient = Quotient {
            ranks: first_ranks.len() as u32,
            wiring: Vec::from_iter(first_links.iter().map(|&link| links[link])).into(),
            firsts: vec![0],
            colours: Vec::new(),
            hops: Vec::new(),
            loads: Vec::new(),
        };
        let (members, starts) = members(&self.flows);
        let mut counts = Counts::new(links.len(), self.ranks.len());
        let mut route = Vec::new();
        for (colour, range) in starts.windows(2).enumerate() {
            interrupt::check();
            let members = &members[range[0]..range[1]];
            counts.clear();
            let (first, last) = (members[0] as usize, members[members.len() - 1] as usize);
            let step = flows.firsts.partition_point(|&step| step <= first) - 1;
            while quotient.firsts.len() <= step {
                quotient.firsts.push(colour);
            }
            if last >= flows.firsts[step + 1] {
                return None;
            }
            let first_hop = quotient.hops.len();
            let mut representative = None;
            for &member in members {
                let mut flow = flows.flows[member as usize];
                route.clear();
                network.route(flow.source, flow.destination, &mut route);
                counts.add(flow.source, flow.destination, &route);
                for end in [&mut flow.source, &mut flow.destination] {
                    *end = self.ranks[*end as usize];
                }
                let colours = route.iter().map(|&link| self.links[link as usize]);
                if representative.is_none() {
                    quotient.hops.extend(colours);
                } else if !colours.eq(quotient.hops[first_hop..].iter().copied()) {
                    return None;
                }
                if *representative.get_or_insert(flow) != flow {
                    return None;
                }
            }
            if !counts.are_even(self, &first_links, &first_ranks) {
                return None;
            }
            let first_load = quotient.loads.len();
            for &link in &quotient.hops[first_hop..] {
                if quotient.loads[first_load..]
                    .iter()
                    .all(|load| load.0 != link)
                {
                    let flows = counts.on_links[first_links[link as usize]];
                    quotient.loads.push((link, flows));
                }
            }
            // The number of links of all flows of a colour must fit into 32 bits.
            let hops = (quotient.hops.len() - first_hop) as u32;
            let flows = members.len() as u32;
            flows.checked_mul(hops)?;
            quotient.colours.push(Colour {
                flow: representative?,
                flows,
                first_hop,
                first_load,
            });
        }
        quotient
            .firsts
            .resize(flows.firsts.len(), quotient.colours.len());
        Some(quotient)
    }
}

impl StepFlows {
    /// Returns the initial colours of the flows. Flows have the same initial colour if their steps
    /// and their numbers of bytes are equal.
    fn first_colours(&self) -> Vec<u32> {
        let mut colours = Colours::default();
        let mut first = Vec::with_capacity(self.flows.len());
        for (step, range) in self.firsts.windows(2).enumerate() {
            for flow in &self.flows[range[0]..range[1]] {
                first.push(colours.number(FxBuildHasher.hash_one((step, flow.bytes))));
            }
        }
        first
    }
}

/// Returns the index of the first member of each colour, indexed by colour.
fn first_members(colours: &[u32]) -> Vec<usize> {
    let mut firsts = Vec::new();
    for (index, &colour) in colours.iter().enumerate() {
        if colour as usize == firsts.len() {
            firsts.push(index);
        }
    }
    firsts
}

/// Returns two lists: the flows sorted by colour and index, and the position of each colour's first
/// flow in that list. The last entry of the second list is the number of flows. `colours` is
/// indexed by flow.
fn members(colours: &[u32]) -> (Vec<u32>, Vec<usize>) {
    let count = colours.iter().max().map_or(0, |&most| most as usize + 1);
    let mut starts = vec![0; count + 1];
    for &colour in colours {
        starts[colour as usize + 1] += 1;
    }
    for colour in 0..count {
        starts[colour + 1] += starts[colour];
    }
    let mut next = starts.clone();
    let mut members = vec![0; colours.len()];
    for (flow, &colour) in (0u32..).zip(colours) {
        members[next[colour as usize]] = flow;
        next[colour as usize] += 1;
    }
    (members, starts)
}

/// Numbers of flows of one colour: on each link, sent by each rank, and received by each rank.
struct Counts {
    on_links: Vec<u32>,
    sent: Vec<u32>,
    received: Vec<u32>,
}

impl Counts {
    fn new(links: usize, ranks: usize) -> Counts {
        Counts {
            on_links: vec![0; links],
            sent: vec![0; ranks],
            received: vec![0; ranks],
        }
    }

    fn clear(&mut self) {
        for counts in [&mut self.on_links, &mut self.sent, &mut self.received] {
            counts.fill(0);
        }
    }

    fn add(&mut self, source: u32, destination: u32, route: &[u32]) {
        self.sent[source as usize] += 1;
        self.received[destination as usize] += 1;
        for &link in route {
            self.on_links[link as usize] += 1;
        }
    }

    /// Returns whether all links of a colour have the same count, and all ranks of a colour have
    /// the same counts. `first_links` and `first_ranks` contain the first member of each colour.
    fn are_even(
        &self,
        partition: &Partition,
        first_links: &[usize],
        first_ranks: &[usize],
    ) -> bool {
        let even = |counts: &[u32], colours: &[u32], first: &[usize]| {
            let mut pairs = counts.iter().zip(colours);
            pairs.all(|(&count, &colour)| count == counts[first[colour as usize]])
        };
        even(&self.on_links, &partition.links, first_links)
            && even(&self.sent, &partition.ranks, first_ranks)
            && even(&self.received, &partition.ranks, first_ranks)
    }
}
