//! Maximum flows from many sources to one sink at a time, searched backwards from the sink.
//!
//! Every vertex v has a *supply* s(v), and every arc has a capacity. The flow to a sink t is the
//! greatest amount that the supplies can send to t. Dinic's algorithm (Soviet Mathematics Doklady
//! 11, 1970) repeats two steps until no supply can reach t:
//!
//! - Assign a level to each vertex from which t can be reached: its distance to t. Stop at the
//!   first level with remaining supply.
//! - Send a blocking flow over arcs from each level to the next lower level.
//!
//! At the end, the vertices that can still reach t are the smallest set X that contains t and has
//! the least (capacity into X) + (supply in X). This least sum equals the flow.
//!
//! Searches stop at the first supply. If vertices near the sink have plenty of supply, as in the
//! bound on gathering, a flow touches few arcs. Only these arcs are reset for the next sink.

use opticoll_base::graph::UNREACHED;
use opticoll_base::interrupt;

/// Supply or capacity that no flow exhausts.
pub const UNLIMITED: u128 = u128::MAX >> 1;

/// All arcs from one vertex to another, merged into a single arc. Stored with the vertex to which
/// the arc leads.
#[derive(Clone, Copy)]
struct Arc {
    from: u32,
    /// Index of the arc in the opposite direction.
    twin: u32,
    /// Total capacity; `room` is the residual capacity.
    capacity: u128,
    room: u128,
}

/// Graph with capacities and supplies, and a flow in it.
pub struct Flow {
    /// Index of the first arc that leads to each vertex, indexed by vertex. The last entry is the
    /// number of arcs.
    first: Vec<u32>,
    arcs: Vec<Arc>,
    supply: Vec<u128>,
    remaining: Vec<u128>,
    /// Arcs that the flow has changed: (index of the arc, room before the change).
    changed_arcs: Vec<(u32, u128)>,
    changed_supplies: Vec<u32>,
    level: Vec<u32>,
    /// Index of the next arc to try at each vertex, indexed by vertex.
    next: Vec<u32>,
    /// Vertices that have a level, nearest to the sink first.
    reached: Vec<u32>,
    /// Number of arcs examined so far.
    pub work: u64,
    /// Number of examined arcs after which no further sink is examined.
    pub max_work: u64,
}

impl Flow {
    /// Builds a graph of `vertices` vertices without supplies. Links are (from, to, capacity);
    /// parallel links are merged.
    pub fn new(vertices: usize, links: &[(u32, u32, u128)]) -> Flow {
        let mut pairs: Vec<(u32, u32, u128, u128)> = links
            .iter()
            .filter(|(from, to, _)| from != to)
            .map(|&(from, to, capacity)| match from < to {
                true => (from, to, capacity, 0),
                false => (to, from, 0, capacity),
            })
            .collect();
        pairs.sort_unstable_by_key(|pair| (pair.0, pair.1));
        pairs.dedup_by(|next, pair| {
            let same = (next.0, next.1) == (pair.0, pair.1);
            if same {
                pair.2 = (pair.2 + next.2).min(UNLIMITED);
                pair.3 = (pair.3 + next.3).min(UNLIMITED);
            }
            same
        });
        let mut first = vec![0u32; vertices + 1];
        for &(one, other, ..) in &pairs {
            first[one as usize + 1] += 1;
            first[other as usize + 1] += 1;
        }
        for vertex in 0..vertices {
            first[vertex + 1] += first[vertex];
        }
        let mut free = first.clone();
        let none = Arc {
            from: 0,
            twin: 0,
            capacity: 0,
            room: 0,
        };
        let mut arcs = vec![none; 2 * pairs.len()];
        for (one, other, forth, back) in pairs {
            let (index, twin_index) = (free[one as usize], free[other as usize]);
            free[one as usize] += 1;
            free[other as usize] += 1;
            for (own, twin, from, capacity) in [
                (index, twin_index, other, back),
                (twin_index, index, one, forth),
            ] {
                arcs[own as usize] = Arc {
                    from,
                    twin,
                    capacity,
                    room: capacity,
                };
            }
        }
        Flow {
            next: first.clone(),
            first,
            arcs,
            supply: vec![0; vertices],
            remaining: vec![0; vertices],
            changed_arcs: Vec::new(),
            changed_supplies: Vec::new(),
            level: vec![UNREACHED; vertices],
            reached: Vec::new(),
            work: 0,
            max_work: u64::MAX,
        }
    }

    /// Sets the supply of `vertex` to `supply`.
    pub fn set_supply(&mut self, vertex: u32, supply: u128) {
        self.supply[vertex as usize] = supply;
        self.remaining[vertex as usize] = supply;
    }

    /// Sets every capacity to its original value times `factor`. Requires that there is no flow.
    pub fn scale(&mut self, factor: u128) {
        for arc in &mut self.arcs {
            arc.room = match arc.capacity {
                UNLIMITED => UNLIMITED,
                capacity => capacity * factor,
            };
        }
    }

    /// Adds `change` to the capacity of the existing arc from vertex `from` to vertex `to`.
    /// Requires that there is no flow.
    pub fn change(&mut self, from: u32, to: u32, change: i128) {
        let arcs = self.first[to as usize] as usize..self.first[to as usize + 1] as usize;
        let place = self.arcs[arcs.clone()].partition_point(|arc| arc.from < from);
        let arc = &mut self.arcs[arcs.start + place];
        arc.room = arc.room.wrapping_add_signed(change);
    }

    /// Returns the residual capacity from vertex `from` to vertex `to`; 0 if there is no arc.
    pub fn room(&self, from: u32, to: u32) -> u128 {
        let arcs = self.first[to as usize] as usize..self.first[to as usize + 1] as usize;
        let arcs = &self.arcs[arcs];
        let place = arcs.partition_point(|arc| arc.from < from);
        arcs.get(place)
            .filter(|arc| arc.from == from)
            .map_or(0, |arc| arc.room)
    }

    /// Returns whether the number of examined arcs exceeds `max_work`.
    pub fn gave_up(&self) -> bool {
        self.work > self.max_work
    }

    /// Checks that the supplies can send the amount `wanted` to each of `sinks`, one sink at a
    /// time. Returns `None` if they can; otherwise returns the amount that is missing at the first
    /// sink that receives less. Sinks that are close in the graph should be close in the list.
    /// Returns `wanted` if the search exceeds its limit of work ([`Flow::gave_up`]).
    pub fn lacking(&mut self, sinks: &[u32], wanted: u128) -> Option<u128> {
        let supplies = self.supply.clone();
        let mut lacking = None;
        for &sink in sinks {
            if self.gave_up() {
                lacking = Some(wanted);
                break;
            }
            let sent = self.send(sink, wanted);
            self.clear();
            if sent < wanted {
                lacking = Some(wanted - sent);
                break;
            }
            // Every cut around this sink is large enough. From now on, only other cuts count.
            self.set_supply(sink, UNLIMITED);
        }
        for (vertex, supply) in (0u32..).zip(supplies) {
            self.set_supply(vertex, supply);
        }
        lacking
    }

    /// Removes the flow and restores all capacities and supplies.
    pub fn clear(&mut self) {
        for (arc, room) in self.changed_arcs.drain(..).rev() {
            self.arcs[arc as usize].room = room;
        }
        for vertex in self.changed_supplies.drain(..) {
            self.remaining[vertex as usize] = self.supply[vertex as usize];
        }
    }

    /// Sends as much as possible to `sink`, but at most `wanted`, and returns the amount sent. If
    /// the amount is less than `wanted`, [`Flow::cut`] returns the vertices of the cut that limits
    /// the flow.
    pub fn send(&mut self, sink: u32, wanted: u128) -> u128 {
        let mut sent = 0;
        while sent < wanted && self.find_levels(sink) {
            interrupt::check();
            sent += self.send_blocking_flow(sink, wanted - sent);
        }
        sent
    }

    /// Returns the vertices that can still reach the sink after the last flow. If the flow was less
    /// than wanted, these vertices form the tightest cut.
    pub fn cut(&self) -> &[u32] {
        &self.reached
    }

    /// Assigns levels to vertices, up to the first level with remaining supply. Returns whether
    /// there is such a level.
    fn find_levels(&mut self, sink: u32) -> bool {
        for vertex in self.reached.drain(..) {
            self.level[vertex as usize] = UNREACHED;
        }
        self.level[sink as usize] = 0;
        self.reached.push(sink);
        let (mut place, mut last) = (0, UNREACHED);
        while let Some(&vertex) = self.reached.get(place) {
            let level = self.level[vertex as usize];
            if level > last {
                break;
            }
            place += 1;
            self.next[vertex as usize] = self.first[vertex as usize];
            if self.remaining[vertex as usize] > 0 {
                last = level;
            }
            if level >= last {
                continue;
            }
            let arcs =
                self.first[vertex as usize] as usize..self.first[vertex as usize + 1] as usize;
            self.work += arcs.len() as u64;
            for arc in &self.arcs[arcs] {
                if arc.room > 0 && self.level[arc.from as usize] == UNREACHED {
                    self.level[arc.from as usize] = level + 1;
                    self.reached.push(arc.from);
                }
            }
        }
        last != UNREACHED
    }

    /// Sends a blocking flow of at most `wanted` over the levels and returns its amount.
    fn send_blocking_flow(&mut self, sink: u32, wanted: u128) -> u128 {
        let (mut path, mut vertex, mut sent) = (Vec::<u32>::new(), sink, 0);
        while sent < wanted {
            let supply = self.remaining[vertex as usize];
            if supply > 0 {
                let rooms = path.iter().map(|arc| self.arcs[*arc as usize].room);
                let amount = rooms.fold(supply.min(wanted - sent), u128::min);
                sent += amount;
                self.changed_supplies.push(vertex);
                self.remaining[vertex as usize] -= amount;
                // Continues at the vertex to which the first full arc leads.
                let mut full = path.len();
                for (place, &arc) in path.iter().enumerate() {
                    if self.send_over_arc(arc, amount) == 0 && full == path.len() {
                        full = place;
                    }
                }
                if let Some(&arc) = path.get(full) {
                    vertex = self.target(arc);
                    path.truncate(full);
                }
                continue;
            }
            let level = self.level[vertex as usize];
            let end = self.first[vertex as usize + 1];
            let mut arc = self.next[vertex as usize];
            let begin = arc;
            while arc < end {
                let candidate = &self.arcs[arc as usize];
                if candidate.room > 0 && self.level[candidate.from as usize] == level + 1 {
                    break;
                }
                arc += 1;
            }
            self.work += u64::from(arc - begin + 1);
            self.next[vertex as usize] = arc;
            if arc < end {
                path.push(arc);
                vertex = self.arcs[arc as usize].from;
            } else if let Some(arc) = path.pop() {
                vertex = self.target(arc);
                self.next[vertex as usize] += 1;
            } else {
                break;
            }
        }
        sent
    }

    fn target(&self, arc: u32) -> u32 {
        self.arcs[self.arcs[arc as usize].twin as usize].from
    }

    fn send_over_arc(&mut self, arc: u32, amount: u128) -> u128 {
        let twin = self.arcs[arc as usize].twin;
        for (arc, room) in [
            (arc, self.arcs[arc as usize].room),
            (twin, self.arcs[twin as usize].room),
        ] {
            self.changed_arcs.push((arc, room));
        }
        self.arcs[twin as usize].room += amount;
        let room = &mut self.arcs[arc as usize].room;
        *room -= amount;
        *room
    }
}
