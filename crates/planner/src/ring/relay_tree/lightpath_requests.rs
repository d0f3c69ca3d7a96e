//! Assignment of lightpaths to slots and channels, one lightpath at a time, on irregular rings.
//!
//! A *lightpath request* is a lightpath or a light tree without a slot and a channel. A lightpath
//! delivers its chunks to the last rank of the route. A light tree delivers its chunks to all ranks
//! of the route. Requests are in order of priority. A request comes after the request that delivers
//! its chunks to its source, and is assigned to a later slot. Each request is assigned to the first
//! such slot in which a channel is free along the route, and ports are free at the source and at
//! all receivers (list scheduling; Graham, SIAM Journal on Applied Mathematics 1969).

use opticoll_base::interrupt;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_placement::wdm_ring::placement::channel_occupancy::ChannelOccupancy;
use opticoll_placement::wdm_ring::route::Arc;
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::{NamedRoutes, Plan, Repetition};
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

#[derive(Debug, Clone, Copy)]
pub(crate) struct LightpathRequest {
    /// Index of the first chunk.
    pub(crate) chunk: u32,
    pub(crate) count: u32,
    pub(crate) source: u32,
    pub(crate) direction: Direction,
    /// Number of links of the route.
    pub(crate) length: u32,
    /// True for a light tree (every rank on the route receives the chunks), false for a lightpath
    /// (only the last rank receives the chunks).
    pub(crate) shared: bool,
    /// Index of the first slot to which the request may be assigned.
    pub(crate) earliest: u32,
    /// Index of the request that delivers the chunks to the source. `None` if the source owns the
    /// chunks.
    pub(crate) after: Option<u32>,
}

impl LightpathRequest {
    /// Returns the rank that is `links` links from the source, in the direction of the lightpath.
    pub(crate) fn at(&self, ranks: u32, links: u32) -> u32 {
        match self.direction {
            Direction::Clockwise => (self.source + links) % ranks,
            Direction::CounterClockwise => (self.source + ranks - links) % ranks,
        }
    }

    fn receivers(&self, ranks: u32) -> impl Iterator<Item = u32> + use<> {
        let request = *self;
        let first = if request.shared { 1 } else { request.length };
        (first..=request.length).map(move |links| request.at(ranks, links))
    }

    /// Returns the route as a range of links in clockwise order.
    pub(crate) fn arc(&self, ranks: u32) -> Arc {
        let first = match self.direction {
            Direction::Clockwise => self.source,
            Direction::CounterClockwise => self.at(ranks, self.length),
        };
        Arc {
            direction: self.direction,
            first,
            hops: self.length,
        }
    }
}

/// Slot and channel that are assigned to a request.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PlacedRequest {
    pub(crate) slot: u32,
    channel: u32,
}

/// Assigns a slot and a channel to every request. Returns `None` if the requests do not fit into
/// `max_slots` slots.
pub(crate) fn place(
    ring: &WdmRing,
    requests: &[LightpathRequest],
    max_slots: u32,
) -> Option<Vec<PlacedRequest>> {
    let mut occupancy = Occupancy::new(ring);
    let mut placed: Vec<PlacedRequest> = Vec::with_capacity(requests.len());
    for request in requests {
        let available = request
            .after
            .map_or(0, |parent| placed[parent as usize].slot + 1);
        placed.push(occupancy.place(request, request.earliest.max(available), max_slots)?);
    }
    Some(placed)
}

/// Channels and ports that are occupied in each slot.
pub(crate) struct Occupancy {
    ranks: u32,
    grid: ChannelOccupancy,
    ports: Option<PortUse>,
}

impl Occupancy {
    pub(crate) fn new(ring: &WdmRing) -> Occupancy {
        let without_ports = WdmRing {
            ports: None,
            ..ring.clone()
        };
        Occupancy {
            ranks: ring.ranks,
            grid: ChannelOccupancy::new(&without_ports),
            ports: ring.ports.map(|ports| PortUse {
                ports,
                ranks: ring.ranks as usize,
                sent: Vec::new(),
                received: Vec::new(),
            }),
        }
    }

    /// Assigns a request to the first slot, from `first_slot` on, in which a channel and ports are
    /// free. Marks the channel and the ports as occupied. Returns `None` if the index of this slot
    /// is `max_slots` or more.
    pub(crate) fn place(
        &mut self,
        request: &LightpathRequest,
        first_slot: u32,
        max_slots: u32,
    ) -> Option<PlacedRequest> {
        let arc = request.arc(self.ranks);
        let mut first_slot = first_slot;
        let (slot, channel) = loop {
            interrupt::check();
            let (slot, channel) = self.grid.next_free(first_slot, arc);
            if slot >= max_slots {
                return None;
            }
            let fits = self
                .ports
                .as_mut()
                .is_none_or(|ports| ports.try_occupy(slot as usize, request));
            if fits {
                break (slot, channel);
            }
            first_slot = slot + 1;
        };
        self.grid
            .take(slot, channel, arc, (request.source, request.source));
        Some(PlacedRequest { slot, channel })
    }
}

/// Number of ports that each rank uses for sending and for receiving in each slot.
struct PortUse {
    ports: u32,
    ranks: usize,
    /// Number of lightpaths that rank r sends in slot s, at index `s * ranks + r`.
    sent: Vec<u32>,
    /// Number of lightpaths that rank r receives in slot s, at index `s * ranks + r`.
    received: Vec<u32>,
}

impl PortUse {
    /// Marks the ports of a request as occupied in a slot. If a port is not free, returns false and
    /// changes nothing.
    fn try_occupy(&mut self, slot: usize, request: &LightpathRequest) -> bool {
        let row = slot * self.ranks;
        if self.sent.len() < row + self.ranks {
            self.sent.resize(row + self.ranks, 0);
            self.received.resize(row + self.ranks, 0);
        }
        let sent = row + request.source as usize;
        let mut receivers = request
            .receivers(self.ranks as u32)
            .map(|rank| row + rank as usize);
        if self.sent[sent] >= self.ports
            || receivers.any(|receiver| self.received[receiver] >= self.ports)
        {
            return false;
        }
        self.sent[sent] += 1;
        for receiver in request.receivers(self.ranks as u32) {
            self.received[row + receiver as usize] += 1;
        }
        true
    }
}

pub(crate) fn slot_count(placed: &[PlacedRequest]) -> u32 {
    placed
        .iter()
        .map(|request| request.slot + 1)
        .max()
        .unwrap_or(0)
}

/// Builds the plan of lightpath requests, with one step per slot. `placed[i]` is the slot and
/// channel of `requests[i]`.
pub(crate) fn plan(
    ring: &WdmRing,
    collective: Collective,
    requests: &[LightpathRequest],
    placed: &[PlacedRequest],
    algorithm: &str,
) -> Plan {
    let slots = slot_count(placed);
    let mut plan = Plan {
        fabric: Fabric::new(ring.clone()),
        schedule: Schedule::new(collective),
        algorithm: algorithm.into(),
        size: None,
        light: Vec::new(),
        slot: Vec::new(),
        step_slots: (0..slots).map(|slot| slot..slot + 1).collect(),
        relays: Vec::new(),
        routes: NamedRoutes::default(),
        repetition: Repetition::NONE,
    };
    plan.schedule.claims = Claims {
        schedule_steps: Some(slots),
        ..Claims::default()
    };
    let mut requests_by_slot: Vec<Vec<u32>> = vec![Vec::new(); slots as usize];
    for (index, request) in placed.iter().enumerate() {
        requests_by_slot[request.slot as usize].push(index as u32);
    }
    for (slot, indices) in requests_by_slot.iter().enumerate() {
        interrupt::check();
        plan.schedule.begin_step();
        for &index in indices {
            let request = requests[index as usize];
            let light = ring.light(request.direction, placed[index as usize].channel);
            for receiver in request.receivers(ring.ranks) {
                plan.schedule.push(Transfer {
                    count: request.count,
                    ..Transfer::copy(request.chunk, request.source, receiver)
                });
                plan.light.push(light);
                plan.slot.push(slot as u32);
            }
        }
    }
    plan
}
