//! Routes over the fewest links, in any wiring.
//!
//! The first request for a route to a destination starts a backward search. The search computes the
//! next link of every vertex towards this destination, in time linear in the number of links. The
//! result takes 4 bytes per vertex.

use std::sync::{Arc, OnceLock};

use super::Wiring;
use opticoll_base::graph;
use opticoll_base::graph::UNREACHED;
use opticoll_base::interrupt;

/// Rule that selects one of several shortest routes. At each vertex, the candidates are the links
/// that lead nearer to the destination, in the order of the wiring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Ties {
    /// Candidate with index (destination mod number of candidates), which spreads routes to
    /// different ranks as in a fat tree.
    Spread,
    /// First candidate.
    First,
}

/// Routes over the fewest links from all vertices to the ranks, which are the first vertices.
#[derive(Debug, Clone)]
pub(crate) struct FewestLinks {
    ties: Ties,
    neighbours: Arc<Neighbours>,
    /// Index of the link that follows on the route, indexed by destination and present vertex.
    /// Computed on demand.
    next: Arc<[OnceLock<Box<[u32]>>]>,
}

/// Neighbours, indexed by vertex. `out` contains the outgoing links with their other ends. `into`
/// contains the vertices that have a link to the vertex.
#[derive(Debug)]
struct Neighbours {
    out: Vec<Vec<(u32, u32)>>,
    into: Vec<Vec<u32>>,
}

const MAX_NAMED_RANKS: usize = 8;

impl FewestLinks {
    /// Prepares routes from all vertices to vertices 0 to `destinations` - 1.
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

    /// Returns an error message that names the destinations that vertex 0 cannot reach, or that
    /// cannot reach vertex 0. Returns `None` if all destinations reach each other. `name` returns
    /// the name of a vertex.
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

    /// Appends the links of the route from `source` to `destination`, in order. A route must exist.
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

    /// Computes the next link of each vertex towards `destination`, or [`UNREACHED`].
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
