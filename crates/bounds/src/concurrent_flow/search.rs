//! Shortest routes over links with given lengths (Dijkstra's algorithm).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{ConcurrentFlow, Pair};

pub(super) struct Search {
    /// Value of `round` at the last search that reached each vertex, indexed by vertex. `distances`
    /// and `before` of a vertex are valid if this value is the present `round`.
    reached: Vec<u32>,
    distances: Vec<f64>,
    /// Last link of the shortest route to each vertex, and the vertex before this link; indexed by
    /// vertex.
    before: Vec<(u32, u32)>,
    /// Number of searches so far.
    round: u32,
    /// Priority queue of the vertices to visit: (bits of the distance, vertex). Distances are not
    /// negative, so that their bits have the same order as the distances.
    open: BinaryHeap<Reverse<(u64, u32)>>,
    pub(super) work: u64,
}

impl Search {
    pub(super) fn new(vertices: usize) -> Search {
        Search {
            reached: vec![0; vertices],
            distances: vec![0.0; vertices],
            before: vec![(0, 0); vertices],
            round: 0,
            open: BinaryHeap::new(),
            work: 0,
        }
    }

    /// Searches shortest routes from `source` to all vertices, or until the search reaches vertex
    /// `until`. `length` returns the length of a link.
    pub(super) fn from(
        &mut self,
        flow: &ConcurrentFlow<'_>,
        source: u32,
        until: Option<u32>,
        length: impl Fn(u32) -> f64,
    ) {
        self.round += 1;
        self.open.clear();
        self.reached[source as usize] = self.round;
        self.distances[source as usize] = 0.0;
        self.open.push(Reverse((0, source)));
        while let Some(Reverse((bits, vertex))) = self.open.pop() {
            let distance = f64::from_bits(bits);
            if Some(vertex) == until {
                break;
            }
            if distance > self.distances[vertex as usize] {
                continue;
            }
            for &(link, to) in &flow.away[vertex as usize] {
                self.work += 1;
                let through = distance + length(link);
                let to_place = to as usize;
                if self.reached[to_place] < self.round || through < self.distances[to_place] {
                    self.reached[to_place] = self.round;
                    self.distances[to_place] = through;
                    self.before[to_place] = (link, vertex);
                    self.open.push(Reverse((through.to_bits(), to)));
                }
            }
        }
    }

    /// Returns the distance of `vertex` from the source; `None` if it was not reached.
    pub(super) fn distance(&self, vertex: u32) -> Option<f64> {
        let place = vertex as usize;
        (self.reached[place] == self.round).then_some(self.distances[place])
    }

    /// Returns the links of the shortest route from the source to `destination`; `None` if the last
    /// search did not reach `destination`.
    pub(super) fn route(&self, (source, destination): Pair) -> Option<Vec<u32>> {
        self.distance(destination)?;
        let (mut route, mut at) = (Vec::new(), destination);
        while at != source {
            let (link, from) = self.before[at as usize];
            route.push(link);
            at = from;
        }
        route.reverse();
        Some(route)
    }
}
