//! Search for all_gathers on small rings by simulated annealing.
//!
//! Every rank receives the block of every other rank once. A *delivery* is the slot, the direction
//! and the channel over which a rank receives a block. A state of the search consists of all
//! deliveries. Among the ranks that have the block before the slot, the source of a delivery is the
//! nearest rank against the direction. On rings with light trees, deliveries with the same slot,
//! source and direction share the light tree to the farthest destination. If n > 1 lightpaths use
//! the same channel of a link, the cost of the state increases by n - 1. If a rank needs n ports
//! more than it has, the cost increases by n. If the route of a delivery is cut or exceeds the
//! reach, the cost increases by [`UNLIT_COST`]. A state of cost 0 is a plan.
//!
//! The search changes one delivery at a time. It accepts every change that does not increase the
//! cost. A change that increases the cost by x is accepted with the probability p^x, and p
//! decreases during the search (Kirkpatrick, Gelatt and Vecchi, Science 1983). The result is
//! deterministic.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::empty_plan;
use opticoll_base::interrupt;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::{Lightpath, Plan};
use opticoll_plan::schedule::Transfer;

/// Maximum number of ranks of a ring for which the search is used.
const MAX_RANKS: u32 = 12;

/// Number of attempts of the search, each with another random seed.
const RESTARTS: u64 = 5;

/// Number of changes that each attempt tries. (All attempts together take about 50 ms.)
const CHANGES: u32 = 100_000;

/// Initial probability of accepting a change that increases the cost by 1.
const INITIAL_ACCEPTANCE: f64 = 0.2;

/// Factor by which the acceptance probability is multiplied after each 1/64 of the changes. (The
/// final probability is 0.005.)
const ACCEPTANCE_FACTOR: f64 = 0.944;

/// Cost of a delivery whose route is cut or exceeds the reach.
const UNLIT_COST: i32 = 8;

/// Searches for an all_gather of whole blocks with few slots. The plan has at least `min_slots`
/// slots and fewer than `limit` slots.
pub(crate) fn all_gather(
    ring: &WdmRing,
    collective: Collective,
    name: &str,
    min_slots: u32,
    limit: u32,
) -> Option<Plan> {
    let is_small = (2..=MAX_RANKS).contains(&ring.ranks) && collective.pieces() == 1;
    let slots = if is_small {
        min_slots.max(1)..limit
    } else {
        0..0
    };
    // Only two numbers of slots are tried: after two failures, more slots rarely help.
    slots.take(2).find_map(|slots| {
        (0..RESTARTS).find_map(|seed| {
            let mut search = DeliverySearch::new(ring, slots, seed);
            let is_plan = search.run();
            is_plan.then(|| search.plan(collective, name))
        })
    })
}

/// Slot, direction and channel over which a rank receives a block.
#[derive(Debug, Clone, Copy)]
struct Delivery {
    slot: u32,
    direction: Direction,
    channel: u32,
}

#[derive(Debug, Clone, Copy)]
struct DeliveryLightpath {
    delivery: Delivery,
    source: u32,
    destination: u32,
    hops: u32,
    /// True if the destination receives its data from the light tree to a farther destination.
    shared: bool,
}

struct DeliverySearch<'a> {
    ring: &'a WdmRing,
    slots: u32,
    channels: u32,
    /// Number of ports of a rank. `i32::MAX` if ports are unlimited.
    ports: i32,
    /// Maximum number of links of a lightpath.
    reach: u32,
    /// Delivery of block b to rank r, at index `b * N + r` on a ring of N ranks. The entries with b
    /// = r are unused.
    deliveries: Vec<Delivery>,
    /// Number of lightpaths on each link, ordered by slot, then direction, then channel, then link.
    load: Vec<i32>,
    /// Number of lightpaths that each rank sends, ordered by slot, then by rank.
    sent: Vec<i32>,
    received: Vec<i32>,
    cost: i32,
    generator: Pcg64Mcg,
}

impl<'a> DeliverySearch<'a> {
    fn new(ring: &'a WdmRing, slots: u32, seed: u64) -> DeliverySearch<'a> {
        let (ranks, channels) = (ring.ranks, ring.channels());
        let mut generator = Pcg64Mcg::seed_from_u64(seed);
        let deliveries = (0..ranks * ranks).map(|_| Delivery {
            slot: generator.random_range(0..slots),
            direction: Direction::BOTH[generator.random_range(0..2)],
            channel: generator.random_range(0..channels),
        });
        let deliveries = deliveries.collect();
        let ends = (slots * ranks) as usize;
        let mut search = DeliverySearch {
            ring,
            slots,
            channels,
            ports: ring.ports.map_or(i32::MAX, |ports| ports as i32),
            reach: ring.longest(),
            deliveries,
            load: vec![0; 2 * channels as usize * ends],
            sent: vec![0; ends],
            received: vec![0; ends],
            cost: 0,
            generator,
        };
        for block in 0..ranks {
            search.count_block(block, 1);
        }
        search
    }

    /// Runs one attempt of the search. Returns whether the final state is a plan.
    fn run(&mut self) -> bool {
        let ranks = self.ring.ranks;
        let mut acceptance = INITIAL_ACCEPTANCE;
        let mut lightpaths = Vec::with_capacity(ranks as usize);
        for change in 0..CHANGES {
            if self.cost == 0 {
                return true;
            }
            interrupt::check();
            if change % (CHANGES / 64) == 0 {
                acceptance *= ACCEPTANCE_FACTOR;
            }
            let block = self.generator.random_range(0..ranks);
            let rank = (block + self.generator.random_range(1..ranks)) % ranks;
            let (at, before) = ((block * ranks + rank) as usize, self.cost);
            let old = self.deliveries[at];
            self.lightpaths(block, &mut lightpaths);
            self.count(&lightpaths, -1);
            self.deliveries[at] = self.changed(old);
            self.count_block(block, 1);
            let more = self.cost - before;
            let accepted = (0..more).all(|_| self.generator.random_range(0.0..1.0) < acceptance);
            if !accepted {
                self.count_block(block, -1);
                self.deliveries[at] = old;
                self.count(&lightpaths, 1);
            }
        }
        self.cost == 0
    }

    /// Returns the delivery `old` with a random channel. With probability 1/3, the slot is also
    /// random. With probability 1/3, the direction is also reversed.
    fn changed(&mut self, old: Delivery) -> Delivery {
        let generator = &mut self.generator;
        let mut new = Delivery {
            channel: generator.random_range(0..self.channels),
            ..old
        };
        match generator.random_range(0..3) {
            0 => new.slot = generator.random_range(0..self.slots),
            1 => new.direction = old.direction.opposite(),
            _ => {}
        }
        new
    }

    /// Counts the lightpaths of all deliveries of a block: adds them to the loads and the cost if
    /// `sign` is 1, or subtracts them if `sign` is -1.
    fn count_block(&mut self, block: u32, sign: i32) {
        let mut lightpaths = Vec::with_capacity(self.ring.ranks as usize);
        self.lightpaths(block, &mut lightpaths);
        self.count(&lightpaths, sign);
    }

    /// Replaces the contents of `lightpaths` by the lightpaths of all deliveries of block `block`.
    fn lightpaths(&self, block: u32, lightpaths: &mut Vec<DeliveryLightpath>) {
        let ranks = self.ring.ranks;
        let deliveries = &self.deliveries[(block * ranks) as usize..][..ranks as usize];
        lightpaths.clear();
        for destination in (0..ranks).filter(|&rank| rank != block) {
            let delivery = deliveries[destination as usize];
            let upstream = |hops: u32| match delivery.direction {
                Direction::Clockwise => (destination + ranks - hops) % ranks,
                Direction::CounterClockwise => (destination + hops) % ranks,
            };
            let has_block =
                |rank: u32| rank == block || deliveries[rank as usize].slot < delivery.slot;
            let source = (1..ranks).find(|&hops| has_block(upstream(hops)));
            let hops = source.unwrap_or(ranks);
            lightpaths.push(DeliveryLightpath {
                delivery,
                source: upstream(hops),
                destination,
                hops,
                shared: false,
            });
        }
        if self.ring.multicast {
            self.share(lightpaths);
        }
    }

    /// Combines deliveries with the same slot, source and direction to a light tree. The light tree
    /// uses the channel of the delivery with the farthest destination.
    fn share(&self, lightpaths: &mut [DeliveryLightpath]) {
        for at in 0..lightpaths.len() {
            let lightpath = lightpaths[at];
            let same = |other: &&DeliveryLightpath| {
                let (delivery, other_delivery) = (lightpath.delivery, other.delivery);
                delivery.slot == other_delivery.slot
                    && delivery.direction == other_delivery.direction
                    && lightpath.source == other.source
            };
            let farthest = lightpaths
                .iter()
                .filter(same)
                .max_by_key(|other| other.hops);
            if let Some(farthest) = farthest
                .filter(|other| other.hops > lightpath.hops)
                .copied()
            {
                lightpaths[at].delivery.channel = farthest.delivery.channel;
                lightpaths[at].shared = true;
            }
        }
    }

    /// Counts lightpaths: adds them to the loads and the cost if `sign` is 1, or subtracts them if
    /// `sign` is -1.
    fn count(&mut self, lightpaths: &[DeliveryLightpath], sign: i32) {
        let ranks = self.ring.ranks;
        for lightpath in lightpaths {
            let (source, destination) = (lightpath.source, lightpath.destination);
            let direction = lightpath.delivery.direction;
            let is_lit = lightpath.hops <= self.farthest()
                && self.ring.is_whole(source, destination, direction);
            if !is_lit {
                self.cost += sign * UNLIT_COST;
            }
            let slot = lightpath.delivery.slot * ranks;
            let (sent, received) = ((slot + source) as usize, (slot + destination) as usize);
            if self.ports < i32::MAX {
                self.cost += change(&mut self.received[received], sign, self.ports);
            }
            if lightpath.shared {
                continue;
            }
            if self.ports < i32::MAX {
                self.cost += change(&mut self.sent[sent], sign, self.ports);
            }
            let first = match direction {
                Direction::Clockwise => source,
                Direction::CounterClockwise => destination,
            };
            let track = (lightpath.delivery.slot * 2 + direction as u32) * self.channels
                + lightpath.delivery.channel;
            for link in first..first + lightpath.hops {
                let link = if link >= ranks { link - ranks } else { link };
                let load = &mut self.load[(track * ranks + link) as usize];
                self.cost += change(load, sign, 1);
            }
        }
    }

    fn farthest(&self) -> u32 {
        match self.ring.multicast {
            true => self.reach.min(self.ring.longest_tree()),
            false => self.reach,
        }
    }

    fn plan(&self, collective: Collective, name: &str) -> Plan {
        let mut by_block: Vec<(u32, DeliveryLightpath)> = Vec::new();
        let mut lightpaths = Vec::new();
        for block in 0..self.ring.ranks {
            self.lightpaths(block, &mut lightpaths);
            by_block.extend(lightpaths.iter().map(|lightpath| (block, *lightpath)));
        }
        let fabric = Fabric::new(self.ring.clone());
        let mut plan = empty_plan(fabric, collective, name.into(), self.slots);
        for slot in 0..self.slots {
            plan.schedule.begin_step();
            for (block, lightpath) in by_block
                .iter()
                .filter(|(_, lightpath)| lightpath.delivery.slot == slot)
            {
                plan.push(Lightpath {
                    slot,
                    light: self
                        .ring
                        .light(lightpath.delivery.direction, lightpath.delivery.channel),
                    transfer: Transfer::copy(*block, lightpath.source, lightpath.destination),
                });
            }
        }
        plan
    }
}

/// Adds `sign` to `count`. Returns the change of the excess max(`count` - `limit`, 0).
fn change(count: &mut i32, sign: i32, limit: i32) -> i32 {
    let before = (*count - limit).max(0);
    *count += sign;
    (*count - limit).max(0) - before
}
