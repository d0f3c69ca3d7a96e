//! Lightpaths placed one by one, for rings that do not look the same from every rank.
//!
//! A *demand* is a lightpath, or a light tree, that carries consecutive chunks, mostly one, from a rank to the
//! last, or to all, of the ranks that it passes. Demands are given in order of importance, each after the one that brings
//! its chunk to its source. Each takes the earliest slot after that one's in which a channel is free
//! along its path, and ports at all its ends: list scheduling (Graham, SIAM Journal on Applied
//! Mathematics 1969).

use opticoll_base::interrupt;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_placement::wdm_ring::placement::grid::ChannelOccupancy;
use opticoll_placement::wdm_ring::route::Arc;
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::{NamedRoutes, Plan, Repetition};
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// One lightpath or light tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand {
    /// What it carries, from this chunk on.
    pub(crate) chunk: u32,
    /// How many chunks.
    pub(crate) count: u32,
    /// Where it starts.
    pub(crate) source: u32,
    /// The way around the ring.
    pub(crate) direction: Direction,
    /// Links.
    pub(crate) length: u32,
    /// Whether every rank on the way takes a share, or only the last.
    pub(crate) shared: bool,
    /// The earliest slot, if its chunk is there by then.
    pub(crate) earliest: u32,
    /// The demand that brings the chunk to its source, by its place in the list; `None` at the owner.
    pub(crate) after: Option<u32>,
}

impl Demand {
    /// The rank so many links from its source.
    pub(crate) fn at(&self, ranks: u32, links: u32) -> u32 {
        match self.direction {
            Direction::Clockwise => (self.source + links) % ranks,
            Direction::CounterClockwise => (self.source + ranks - links) % ranks,
        }
    }

    /// The ranks that it delivers to.
    fn drops(&self, ranks: u32) -> impl Iterator<Item = u32> + use<> {
        let demand = *self;
        let first = if demand.shared { 1 } else { demand.length };
        (first..=demand.length).map(move |links| demand.at(ranks, links))
    }

    fn arc(&self, ranks: u32) -> Arc {
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

/// Where a demand went.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PlacedDemand {
    pub(crate) slot: u32,
    channel: u32,
}

/// A slot and channel for every demand; `None` where one would need slot `most` or a later one.
pub(crate) fn place(ring: &WdmRing, demands: &[Demand], most: u32) -> Option<Vec<PlacedDemand>> {
    let mut room = Room::new(ring);
    let mut placed: Vec<PlacedDemand> = Vec::with_capacity(demands.len());
    for demand in demands {
        let there = demand
            .after
            .map_or(0, |parent| placed[parent as usize].slot + 1);
        placed.push(room.take(demand, demand.earliest.max(there), most)?);
    }
    Some(placed)
}

/// The channels and ports that demands have taken so far, in all slots.
pub(crate) struct Room {
    ranks: u32,
    grid: ChannelOccupancy,
    ports: Option<PortUse>,
}

impl Room {
    /// Nothing taken yet.
    pub(crate) fn new(ring: &WdmRing) -> Room {
        let free_ports = WdmRing {
            ports: None,
            ..ring.clone()
        };
        Room {
            ranks: ring.ranks,
            grid: ChannelOccupancy::new(&free_ports),
            ports: ring.ports.map(|most| PortUse {
                most,
                ranks: ring.ranks as usize,
                sent: Vec::new(),
                received: Vec::new(),
            }),
        }
    }

    /// Takes the earliest slot from `from` on in which a channel and ports are free for a demand, if one comes
    /// before slot `most`.
    pub(crate) fn take(&mut self, demand: &Demand, from: u32, most: u32) -> Option<PlacedDemand> {
        let arc = demand.arc(self.ranks);
        let mut from = from;
        let (slot, channel) = loop {
            interrupt::check();
            let (slot, channel) = self.grid.next_free(from, arc);
            if slot >= most {
                return None;
            }
            let fits = self
                .ports
                .as_mut()
                .is_none_or(|ports| ports.take(slot as usize, demand));
            if fits {
                break (slot, channel);
            }
            from = slot + 1;
        };
        self.grid
            .take(slot, channel, arc, (demand.source, demand.source));
        Some(PlacedDemand { slot, channel })
    }
}

/// Lightpaths sent and received, `[slot][rank]`.
struct PortUse {
    most: u32,
    ranks: usize,
    sent: Vec<u32>,
    received: Vec<u32>,
}

impl PortUse {
    /// Takes the ports of a demand in a slot, if they are free there.
    fn take(&mut self, slot: usize, demand: &Demand) -> bool {
        let row = slot * self.ranks;
        if self.sent.len() < row + self.ranks {
            self.sent.resize(row + self.ranks, 0);
            self.received.resize(row + self.ranks, 0);
        }
        let sent = row + demand.source as usize;
        let mut drops = demand
            .drops(self.ranks as u32)
            .map(|rank| row + rank as usize);
        if self.sent[sent] >= self.most || drops.any(|drop| self.received[drop] >= self.most) {
            return false;
        }
        self.sent[sent] += 1;
        for drop in demand.drops(self.ranks as u32) {
            self.received[row + drop as usize] += 1;
        }
        true
    }
}

/// How many slots placed demands take.
pub(crate) fn slots(placed: &[PlacedDemand]) -> u32 {
    placed
        .iter()
        .map(|demand| demand.slot + 1)
        .max()
        .unwrap_or(0)
}

/// The plan of placed demands: a step for every slot.
pub(crate) fn plan(
    ring: &WdmRing,
    collective: Collective,
    demands: &[Demand],
    placed: &[PlacedDemand],
    algorithm: &str,
) -> Plan {
    let steps = slots(placed);
    let mut plan = Plan {
        fabric: Fabric::new(ring.clone()),
        schedule: Schedule::new(collective),
        algorithm: algorithm.into(),
        size: None,
        light: Vec::new(),
        slot: Vec::new(),
        step_slots: (0..steps).map(|slot| slot..slot + 1).collect(),
        relays: Vec::new(),
        routes: NamedRoutes::default(),
        repetition: Repetition::NONE,
    };
    plan.schedule.claims = Claims {
        schedule_steps: Some(steps),
        ..Claims::default()
    };
    let mut by_slot: Vec<Vec<u32>> = vec![Vec::new(); steps as usize];
    for (index, demand) in placed.iter().enumerate() {
        by_slot[demand.slot as usize].push(index as u32);
    }
    for (slot, indices) in by_slot.iter().enumerate() {
        interrupt::check();
        plan.schedule.begin_step();
        for &index in indices {
            let demand = demands[index as usize];
            let light = ring.light(demand.direction, placed[index as usize].channel);
            for drop in demand.drops(ring.ranks) {
                plan.schedule.push(Transfer {
                    count: demand.count,
                    ..Transfer::copy(demand.chunk, demand.source, drop)
                });
                plan.light.push(light);
                plan.slot.push(slot as u32);
            }
        }
    }
    plan
}
