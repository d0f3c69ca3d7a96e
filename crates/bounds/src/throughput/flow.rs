//! Maximum flows from many sources to one sink after another, found near the sink.
//!
//! Let every vertex v have a *supply* s(v), and every arc a capacity. The flow to a sink t is the most that
//! supplies can send to t. By Dinic's algorithm (Soviet Mathematics Doklady 11, 1970): the vertices from which t
//! can still be reached are put into levels by their distance to t, up to the first level with supply left; a
//! blocking flow is sent over arcs from one level to the next; and again, until no supply can reach t. The
//! vertices that can still reach t are then the smallest set X that holds t of least
//! (capacity into X) + (supply in X), which equals the flow.
//!
//! Searches go backwards from the sink and stop at the first supply. Where vertices near the sink have plenty of it,
//! as in the bound on gathering, a flow touches few arcs, and only those are set back for the next sink.

use opticoll_base::interrupt;

/// A supply that no flow exhausts.
pub const UNLIMITED: u128 = u128::MAX >> 1;

/// The level of a vertex that is not reached.
const UNREACHED: u32 = u32::MAX;

/// The arcs between two vertices, seen from the one they lead to.
#[derive(Clone, Copy)]
struct Arc {
    /// The vertex from which they lead.
    from: u32,
    /// The same the other way round: an index.
    twin: u32,
    /// What they can carry, and what is left of it.
    capacity: u128,
    room: u128,
}

/// A graph with capacities and supplies, and a flow in it.
pub struct Flow {
    /// By vertex: the first of its arcs; and the end of the last.
    first: Vec<u32>,
    arcs: Vec<Arc>,
    supply: Vec<u128>,
    left: Vec<u128>,
    /// What the flow has changed.
    changed_arcs: Vec<(u32, u128)>,
    changed_supplies: Vec<u32>,
    level: Vec<u32>,
    /// By vertex: the arc to be tried next.
    next: Vec<u32>,
    /// Vertices that have a level, the nearest to the sink first.
    reached: Vec<u32>,
    /// Arcs looked at so far.
    pub work: u64,
    /// No more sinks are looked at after so many arcs.
    pub most_work: u64,
}

impl Flow {
    /// A graph of so many vertices without supplies; links are (from, to, capacity), and several of the same ends
    /// are one.
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
            let (here, there) = (free[one as usize], free[other as usize]);
            free[one as usize] += 1;
            free[other as usize] += 1;
            for (own, twin, from, capacity) in
                [(here, there, other, back), (there, here, one, forth)]
            {
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
            left: vec![0; vertices],
            changed_arcs: Vec::new(),
            changed_supplies: Vec::new(),
            level: vec![UNREACHED; vertices],
            reached: Vec::new(),
            work: 0,
            most_work: u64::MAX,
        }
    }

    /// Gives a vertex a supply.
    pub fn set_supply(&mut self, vertex: u32, supply: u128) {
        self.supply[vertex as usize] = supply;
        self.left[vertex as usize] = supply;
    }

    /// Makes all capacities this many times what they were when the graph was made; there must be no flow.
    pub fn scale(&mut self, factor: u128) {
        for arc in &mut self.arcs {
            arc.room = match arc.capacity {
                UNLIMITED => UNLIMITED,
                capacity => capacity * factor,
            };
        }
    }

    /// Changes the capacity between two vertices, between which there are arcs; there must be no flow.
    pub fn change(&mut self, from: u32, to: u32, more: i128) {
        let arcs = self.first[to as usize] as usize..self.first[to as usize + 1] as usize;
        let place = self.arcs[arcs.clone()].partition_point(|arc| arc.from < from);
        let arc = &mut self.arcs[arcs.start + place];
        arc.room = arc.room.wrapping_add_signed(more);
    }

    /// What is left between two vertices.
    pub fn room(&self, from: u32, to: u32) -> u128 {
        let arcs = self.first[to as usize] as usize..self.first[to as usize + 1] as usize;
        let arcs = &self.arcs[arcs];
        let place = arcs.partition_point(|arc| arc.from < from);
        arcs.get(place)
            .filter(|arc| arc.from == from)
            .map_or(0, |arc| arc.room)
    }

    /// Whether it took too much work.
    pub fn gave_up(&self) -> bool {
        self.work > self.most_work
    }

    /// Whether the supplies can send what is wanted to each of some sinks, alone; otherwise how
    /// much is lacking to the first to which they cannot. Sinks beside one another should follow
    /// one another. After too much work it gives up ([`Flow::gave_up`]), and all that was wanted is
    /// said to be lacking.
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
            // Cuts with this sink are fine, and so all that are left have it outside.
            self.set_supply(sink, UNLIMITED);
        }
        for (vertex, supply) in (0u32..).zip(supplies) {
            self.set_supply(vertex, supply);
        }
        lacking
    }

    /// Takes the flow away.
    pub fn clear(&mut self) {
        for (arc, room) in self.changed_arcs.drain(..).rev() {
            self.arcs[arc as usize].room = room;
        }
        for vertex in self.changed_supplies.drain(..) {
            self.left[vertex as usize] = self.supply[vertex as usize];
        }
    }

    /// Sends as much as possible to a sink, but no more than is wanted; returns what was sent. If that is less, then
    /// [`Flow::cut`] has the vertices of the cut.
    pub fn send(&mut self, sink: u32, wanted: u128) -> u128 {
        let mut sent = 0;
        while sent < wanted && self.find_levels(sink) {
            interrupt::check();
            sent += self.block(sink, wanted - sent);
        }
        sent
    }

    /// The vertices that can still reach the sink of a flow that was less than wanted.
    pub fn cut(&self) -> &[u32] {
        &self.reached
    }

    /// Puts vertices into levels, up to the first that has supply left; whether there is one.
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
            if self.left[vertex as usize] > 0 {
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

    /// Sends what the levels let through.
    fn block(&mut self, sink: u32, wanted: u128) -> u128 {
        let (mut path, mut vertex, mut sent) = (Vec::<u32>::new(), sink, 0);
        while sent < wanted {
            let supply = self.left[vertex as usize];
            if supply > 0 {
                let rooms = path.iter().map(|arc| self.arcs[*arc as usize].room);
                let amount = rooms.fold(supply.min(wanted - sent), u128::min);
                sent += amount;
                self.changed_supplies.push(vertex);
                self.left[vertex as usize] -= amount;
                // Back to where the path is full.
                let mut full = path.len();
                for (place, &arc) in path.iter().enumerate() {
                    if self.carry(arc, amount) == 0 && full == path.len() {
                        full = place;
                    }
                }
                if let Some(&arc) = path.get(full) {
                    vertex = self.to(arc);
                    path.truncate(full);
                }
                continue;
            }
            let level = self.level[vertex as usize];
            let end = self.first[vertex as usize + 1];
            let mut arc = self.next[vertex as usize];
            let begin = arc;
            while arc < end {
                let one = &self.arcs[arc as usize];
                if one.room > 0 && self.level[one.from as usize] == level + 1 {
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
                vertex = self.to(arc);
                self.next[vertex as usize] += 1;
            } else {
                break;
            }
        }
        sent
    }

    /// The vertex to which an arc leads.
    fn to(&self, arc: u32) -> u32 {
        self.arcs[self.arcs[arc as usize].twin as usize].from
    }

    /// Sends over an arc; what is left of its room.
    fn carry(&mut self, arc: u32, amount: u128) -> u128 {
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
