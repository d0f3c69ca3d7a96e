//! Routes of messages through a circuit switch, as lists of ranks.
//!
//! If a switch joins the two ranks of a message, the route is one circuit. Otherwise, the indices
//! of both ranks are written with as many digits as needed, in a base equal to the number of ranks
//! per switch. The route begins at the source and replaces one digit after the other by the
//! destination's digit. If no switch joins two consecutive ranks of this route, a breadth-first
//! search finds a shortest route instead. Among several, it finds the route over the lowest ranks.

use rustc_hash::FxHashMap;

use opticoll_base::graph;
use opticoll_fabric::family::circuit_switch::CircuitSwitch;

/// Maximum number of entries (4 bytes each) in all lists of [`RankRoutes::previous`] together.
const MAX_CACHED_ENTRIES: usize = 1 << 24;

/// Routes between the ranks of a switch.
pub(crate) struct RankRoutes<'a> {
    switch: &'a CircuitSwitch,
    /// Results of [`search`]; the key is the source. The map is never iterated over.
    previous: FxHashMap<u32, Vec<u32>>,
}

impl RankRoutes<'_> {
    pub(crate) fn new(switch: &CircuitSwitch) -> RankRoutes<'_> {
        RankRoutes {
            switch,
            previous: FxHashMap::default(),
        }
    }

    /// Returns the ranks of a route from `ends[0]` to `ends[1]`, including both. A valid fabric has
    /// a route between all ranks.
    pub(crate) fn route(&mut self, ends: [u32; 2]) -> Vec<u32> {
        if self.switch.joins(ends) {
            return ends.to_vec();
        }
        self.digit_route(ends)
            .unwrap_or_else(|| self.searched_route(ends))
    }

    fn digit_route(&self, [from, to]: [u32; 2]) -> Option<Vec<u32>> {
        let (switch, base) = (self.switch, self.switch.ranks_of_switch());
        let mut route = vec![from];
        let (mut at, mut step) = (from, 1);
        for _ in 0..switch.digits() {
            let next = at - at / step % base * step + to / step % base * step;
            if next != at {
                let is_joined = next < switch.ranks && switch.joins([at, next]);
                route.push(is_joined.then_some(next)?);
                at = next;
            }
            step = step.saturating_mul(base);
        }
        (at == to).then_some(route)
    }

    fn searched_route(&mut self, [from, to]: [u32; 2]) -> Vec<u32> {
        if self.previous.len() * self.switch.ranks as usize > MAX_CACHED_ENTRIES {
            self.previous.clear();
        }
        let switch = self.switch;
        let previous = self
            .previous
            .entry(from)
            .or_insert_with(|| search(switch, from));
        let mut route = vec![to];
        let mut at = to;
        while at != from {
            at = previous[at as usize];
            route.push(at);
        }
        route.reverse();
        route
    }
}

/// Returns, indexed by rank, the rank before this rank on a shortest route from `from`.
fn search(switch: &CircuitSwitch, from: u32) -> Vec<u32> {
    let has_port = |plane: u32, rank: u32| switch.ports_alive_on(plane, rank) > 0;
    graph::predecessors(switch.ranks as usize, from, |rank| {
        let planes = (0..switch.planes).filter(move |&plane| has_port(plane, rank));
        planes.flat_map(move |plane| {
            let others = switch.ranks_on_switch(plane, rank);
            others.filter(move |&other| has_port(plane, other))
        })
    })
}
