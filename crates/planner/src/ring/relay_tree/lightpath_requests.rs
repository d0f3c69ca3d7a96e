//! Placement of lightpaths one by one, for rings that do not look the same from every rank.
//!
//! A *lightpath request* is a lightpath or a light tree that carries consecutive chunks, mostly
//! one, from a rank to the last, or to all, of the ranks that it passes. Requests are given in
//! order of importance, each after the request that brings its chunk to its source. Each request
//! takes the earliest later slot in which a channel is free along its route and ports are free at
//! all its ends: list scheduling (Graham, SIAM Journal on Applied Mathematics 1969).

use opticoll_base::interrupt;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_placement::wdm_ring::placement::channel_occupancy::ChannelOccupancy;
use opticoll_placement::wdm_ring::route::Arc;
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::{NamedRoutes, Plan, Repetition};
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// Request for a lightpath or a light tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LightpathRequest {
    /// First chunk.
    pub(crate) chunk: u32,
    /// Number of chunks.
    pub(crate) count: u32,
    /// Rank at which the light starts.
    pub(crate) source: u32,
    /// Direction around the ring.
    pub(crate) direction: Direction,
    /// Links of the route.
    pub(crate) length: u32,
    /// True for a light tree: every rank on the route receives the chunks, not only the last.
    pub(crate) shared: bool,
    /// Earliest slot, provided that the chunks are at the source by then.
    pub(crate) earliest: u32,
    /// Index of the request that brings the chunks to the source; `None` at the owner.
    pub(crate) after: Option<u32>,
}

impl LightpathRequest {
    /// Returns the rank `links` links from the source.
    pub(crate) fn at(&self, ranks: u32, links: u32) -> u32 {
        match self.direction {
            Direction::Clockwise => (self.source + links) % ranks,
            Direction::CounterClockwise => (self.source + ranks - links) % ranks,
        }
    }

    /// Returns the ranks that receive the chunks.
    fn receivers(&self, ranks: u32) -> impl Iterator<Item = u32> + use<> {
        let request = *self;
        let first = if request.shared { 1 } else { request.length };
        (first..=request.length).map(move |links| request.at(ranks, links))
    }

    /// Returns the links of the route, from the first one in clockwise order.
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

/// Slot and channel of a request.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PlacedRequest {
    pub(crate) slot: u32,
    channel: u32,
}

/// Returns a slot and channel for every request; `None` if a request needs slot `max_slots` or a
/// later one.
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
        placed.push(occupancy.take(request, request.earliest.max(available), max_slots)?);
    }
    Some(placed)
}

/// Channels and ports that requests occupy, in all slots.
pub(crate) struct Occupancy {
    ranks: u32,
    grid: ChannelOccupancy,
    ports: Option<PortUse>,
}

impl Occupancy {
    /// Creates an occupancy in which all channels and ports are free.
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

    /// Occupies the earliest slot from `from` on in which a channel and ports are free for a
    /// request. `None` if there is no such slot before slot `max_slots`.
    pub(crate) fn take(
        &mut self,
        request: &LightpathRequest,
        from: u32,
        max_slots: u32,
    ) -> Option<PlacedRequest> {
        let arc = request.arc(self.ranks);
        let mut from = from;
        let (slot, channel) = loop {
            interrupt::check();
            let (slot, channel) = self.grid.next_free(from, arc);
            if slot >= max_slots {
                return None;
            }
            let fits = self
                .ports
                .as_mut()
                .is_none_or(|ports| ports.take(slot as usize, request));
            if fits {
                break (slot, channel);
            }
            from = slot + 1;
        };
        self.grid
            .take(slot, channel, arc, (request.source, request.source));
        Some(PlacedRequest { slot, channel })
    }
}

/// Numbers of lightpaths that each rank sends and receives, as `[slot][rank]`.
struct PortUse {
    /// Ports of a rank.
    ports: u32,
    ranks: usize,
    sent: Vec<u32>,
    received: Vec<u32>,
}

impl PortUse {
    /// Occupies the ports of a request in a slot. Returns whether all of them were free.
    fn take(&mut self, slot: usize, request: &LightpathRequest) -> bool {
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

/// Returns the number of slots of placed requests.
pub(crate) fn slot_count(placed: &[PlacedRequest]) -> u32 {
    placed
        .iter()
        .map(|request| request.slot + 1)
        .max()
        .unwrap_or(0)
}

/// Returns the plan of placed requests, with one step for every slot.
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
