//! The coarsest equitable partition of flows, links and ranks, by refinement.

use std::hash::{BuildHasher, Hash, Hasher};

use rustc_hash::{FxBuildHasher, FxHashMap, FxHasher};

use super::super::quotient_network::{Colour, Quotient};
use super::StepFlows;
use opticoll_base::hash::hash;
use opticoll_base::interrupt;
use opticoll_fabric::network::Network;

/// Colours, counted from 0 in the order in which they first come.
pub(super) struct Partition {
    /// By flow of all steps.
    pub(super) flows: Vec<u32>,
    /// By link.
    pub(super) links: Vec<u32>,
    /// By rank.
    pub(super) ranks: Vec<u32>,
}

/// Colours by what tells them apart.
#[derive(Default)]
struct Colours {
    by_signature: FxHashMap<u64, u32>,
}

impl Colours {
    fn of(&mut self, signature: u64) -> u32 {
        let next = self.by_signature.len() as u32;
        *self.by_signature.entry(hash(signature)).or_insert(next)
    }

    fn len(&self) -> usize {
        self.by_signature.len()
    }
}

impl Partition {
    /// Refines colours until nothing tells two of a colour apart, as far as hashes show. None with more
    /// than `most` colours of flows, and for ends or routes that the network does not have.
    pub(super) fn refine(
        network: &dyn Network,
        flows: &StepFlows,
        most: usize,
    ) -> Option<Partition> {
        let (link_count, rank_count) = (network.links().len(), network.ranks() as usize);
        let mut colours = Colours::default();
        let signature = |link| FxBuildHasher.hash_one(link);
        let links = network.links().iter();
        let links: Vec<u32> = links.map(|link| colours.of(signature(link))).collect();
        let mut counts = (colours.len(), 1);
        let mut partition = Partition {
            flows: flows.first_colours(),
            links,
            ranks: vec![0; rank_count],
        };
        // The flows on each link, those that leave each rank and those that enter it.
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
                    // Zeros in front would not tell routes of two lengths apart.
                    hasher.write_u32(*partition.links.get(link as usize)? + 1);
                }
                *colour = colours.of(hasher.finish());
                let mark = hash(u64::from(*colour));
                let ends = [link_count + source, link_count + rank_count + destination];
                let places = route.iter().map(|&link| link as usize).chain(ends);
                for place in places {
                    sums[place] = sums[place].wrapping_add(mark);
                }
            }
            if colours.len() > most {
                return None;
            }
            let (on_links, at_ranks) = sums.split_at(link_count);
            let (leaving, entering) = at_ranks.split_at(rank_count);
            let (mut links, mut ranks) = (Colours::default(), Colours::default());
            for (colour, on) in partition.links.iter_mut().zip(on_links) {
                *colour = links.of(FxBuildHasher.hash_one((*colour, on)));
            }
            let ends = leaving.iter().zip(entering);
            for (colour, ends) in partition.ranks.iter_mut().zip(ends) {
                *colour = ranks.of(FxBuildHasher.hash_one((*colour, ends)));
            }
            let before = std::mem::replace(&mut counts, (links.len(), ranks.len()));
            if counts == before {
                return Some(partition);
            }
        }
    }

    /// The quotient, if the colours are equitable: this is checked with exact counts.
    pub(super) fn quotient(&self, network: &dyn Network, flows: &StepFlows) -> Option<Quotient> {
        let (like_links, like_ranks) = (first_of_each(&self.links), first_of_each(&self.ranks));
        let links = network.links();
        for (link, &colour) in links.iter().zip(&self.links) {
            if *link != links[like_links[colour as usize]] {
                return None;
            }
        }
        let mut quotient = Quotient {
            ranks: like_ranks.len() as u32,
            wiring: Vec::from_iter(like_links.iter().map(|&link| links[link])).into(),
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
            let mut alike = None;
            for &member in members {
                let mut flow = flows.flows[member as usize];
                route.clear();
                network.route(flow.source, flow.destination, &mut route);
                counts.add(flow.source, flow.destination, &route);
                for end in [&mut flow.source, &mut flow.destination] {
                    *end = self.ranks[*end as usize];
                }
                let colours = route.iter().map(|&link| self.links[link as usize]);
                if alike.is_none() {
                    quotient.hops.extend(colours);
                } else if !colours.eq(quotient.hops[first_hop..].iter().copied()) {
                    return None;
                }
                if *alike.get_or_insert(flow) != flow {
                    return None;
                }
            }
            if !counts.are_even(self, &like_links, &like_ranks) {
                return None;
            }
            let first_load = quotient.loads.len();
            for &link in &quotient.hops[first_hop..] {
                if quotient.loads[first_load..]
                    .iter()
                    .all(|load| load.0 != link)
                {
                    let flows = counts.on_links[like_links[link as usize]];
                    quotient.loads.push((link, flows));
                }
            }
            // The links of all flows of a colour are counted with 32 bits.
            let hops = (quotient.hops.len() - first_hop) as u32;
            let flows = members.len() as u32;
            flows.checked_mul(hops)?;
            quotient.colours.push(Colour {
                flow: alike?,
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
    /// Colours by step and bytes.
    fn first_colours(&self) -> Vec<u32> {
        let mut colours = Colours::default();
        let mut first = Vec::with_capacity(self.flows.len());
        for (step, range) in self.firsts.windows(2).enumerate() {
            for flow in &self.flows[range[0]..range[1]] {
                first.push(colours.of(FxBuildHasher.hash_one((step, flow.bytes))));
            }
        }
        first
    }
}

/// By colour: the first that has it.
fn first_of_each(colours: &[u32]) -> Vec<usize> {
    let mut firsts = Vec::new();
    for (index, &colour) in colours.iter().enumerate() {
        if colour as usize == firsts.len() {
            firsts.push(index);
        }
    }
    firsts
}

/// Flows by their colours, each colour's in order, and where each colour begins and the last ends.
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

/// How many flows of a colour each link carries, and each rank sends and receives.
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

    /// Whether all links of a colour have the same count, and all ranks of a colour.
    fn are_even(&self, partition: &Partition, like_links: &[usize], like_ranks: &[usize]) -> bool {
        let even = |counts: &[u32], colours: &[u32], like: &[usize]| {
            let mut pairs = counts.iter().zip(colours);
            pairs.all(|(&count, &colour)| count == counts[like[colour as usize]])
        };
        even(&self.on_links, &partition.links, like_links)
            && even(&self.sent, &partition.ranks, like_ranks)
            && even(&self.received, &partition.ranks, like_ranks)
    }
}
