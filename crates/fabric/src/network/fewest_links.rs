//! Routes over the fewest links of any wiring.
//!
//! When the first route to a destination is requested, one backward search computes the next link
//! of every vertex towards this destination, in time linear in the number of links. The result
//! takes 4 bytes per vertex.

use std::sync::{Arc, OnceLock};

use super::Wiring;
use opticoll_base::graph;
use opticoll_base::graph::UNREACHED;
use opticoll_base::interrupt;

/// Choice among equally short routes: among the links that lead nearer to the destination, in the
/// order in which they were given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Ties {
    /// Link number (destination mod number of such links), which spreads routes to different ranks
    /// as in a fat tree.
    Spread,
    /// First link.
    First,
}

/// Routes from all vertices of a wiring to the vertices with the lowest numbers.
#[derive(Debug, Clone)]
pub(crate) struct FewestLinks {
    ties: Ties,
    neighbours: Arc<Neighbours>,
    /// Next link of each vertex, for each destination.
    next: Arc<[OnceLock<Box<[u32]>>]>,
}

/// Neighbours of each vertex: outgoing links with their other ends, in the order given; and
/// vertices with a link to this vertex.
#[derive(Debug)]
struct Neighbours {
    out: Vec<Vec<(u32, u32)>>,
    into: Vec<Vec<u32>>,
}

/// Maximum number of ranks that a message names.
const MAX_NAMED_RANKS: usize = 8;

impl FewestLinks {
    /// Prepares routes to the first `destinations` of all vertices.
    pub(crate) fn new(
        wiring: &Wiring,
        vertices: u32,
        destinations: u32,
        ties: Ties,
    ) -> FewestLinks {
        let mut neighbours = Neighbours {
            out: vec![Vec::new(); vertices as usize],
            into: vec![Vec::new(); vertices as usize],
        };
        let mut add = |link: u32, from: u32, to: u32| {
            neighbours.out[from as usize].push((link, to));
            neighbours.into[to as usize].push(from);
        };
        for (link, (from, to, both_ways)) in (0..).zip(wiring.ends()) {
            interrupt::check();
            add(link, from, to);
            if both_ways {
                add(link, to, from);
            }
        }
        FewestLinks {
            ties,
            neighbours: Arc::new(neighbours),
            next: (0..destinations).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Returns a message that names the destinations that vertex 0 cannot reach, or that cannot
    /// reach vertex 0. Returns `None` if all destinations reach each other.
    pub(crate) fn cut_off(&self, name: impl Fn(u32) -> String) -> Option<String> {
        let unreached = |distance: Vec<u32>| -> Vec<u32> {
            let ranks = 0..self.next.len() as u32;
            let ranks = ranks.filter(|rank| distance[*rank as usize] == UNREACHED);
            ranks.collect()
        };
        let names = |ranks: &[u32]| {
            let named = ranks.iter().take(MAX_NAMED_RANKS).map(|rank| name(*rank));
            let named = named.collect::<Vec<String>>().join(", ");
            match ranks.len().saturating_sub(MAX_NAMED_RANKS) {
                0 => named,
                more => format!("{named} and {more} more"),
            }
        };
        let from_first = unreached(self.distances(0, |vertex| self.successors(vertex)));
        if !from_first.is_empty() {
            let sentence = "no links lead from";
            return Some(format!("{sentence} {} to {}", name(0), names(&from_first)));
        }
        let to_first = unreached(self.distances(0, |vertex| self.predecessors(vertex)));
        let sentence = || format!("no links lead from {} to {}", names(&to_first), name(0));
        (!to_first.is_empty()).then(sentence)
    }

    /// Appends the links from a vertex to a destination, in order. The vertex must reach the
    /// destination.
    pub(crate) fn route(
        &self,
        source: u32,
        destination: u32,
        wiring: &Wiring,
        links: &mut Vec<u32>,
    ) {
        let next = self.next[destination as usize].get_or_init(|| self.next_links(destination));
        let mut vertex = source;
        while vertex != destination && next[vertex as usize] != UNREACHED {
            let link = next[vertex as usize];
            let (from, to) = wiring.ends[link as usize];
            links.push(link);
            vertex = if from == vertex { to } else { from };
        }
    }

    /// Computes the next link of each vertex towards a destination; [`UNREACHED`] if there is none.
    fn next_links(&self, destination: u32) -> Box<[u32]> {
        let distance = self.distances(destination, |vertex| self.predecessors(vertex));
        let next = |vertex: usize| {
            let nearer = |(_, to): &&(u32, u32)| {
                distance[vertex] != UNREACHED && distance[*to as usize] < distance[vertex]
            };
            let candidates: Vec<u32> = self.neighbours.out[vertex]
                .iter()
                .filter(nearer)
                .map(|(link, _)| *link)
                .collect();
            let choice = match self.ties {
                Ties::Spread => destination as usize % candidates.len().max(1),
                Ties::First => 0,
            };
            candidates.get(choice).copied().unwrap_or(UNREACHED)
        };
        (0..distance.len()).map(next).collect()
    }

    fn distances<I: Iterator<Item = u32>>(
        &self,
        first: u32,
        beside: impl Fn(u32) -> I,
    ) -> Vec<u32> {
        graph::distances(self.neighbours.out.len(), first, beside)
    }

    fn successors(&self, vertex: u32) -> impl Iterator<Item = u32> + '_ {
        let out = self.neighbours.out[vertex as usize].iter();
        out.map(|(_, to)| *to)
    }

    fn predecessors(&self, vertex: u32) -> impl Iterator<Item = u32> + '_ {
        self.neighbours.into[vertex as usize].iter().copied()
    }
}
