//! Plans of all_gathers among few ranks on any ring, found by simulated annealing.
//!
//! Every rank receives the block of every other rank once. For each such delivery a state of the
//! search gives the slot, the side from which the light comes, and the channel. The source is the
//! nearest rank on that side that has the block in an earlier slot. With light trees, the
//! deliveries of a slot from one rank and one side share the light of the farthest delivery. The
//! cost of a state is 1 for every excess lightpath on a channel of a link and for every excess
//! port, and [`UNLIT_COST`] for every delivery without light. A state of cost 0 is a plan.
//!
//! The search changes one delivery at a time. It accepts every change that does not raise the cost,
//! and a share of the other changes that falls with the increase of cost and with time: simulated
//! annealing (Kirkpatrick, Gelatt and Vecchi, Science 1983). It restarts a few times. Numbers of
//! slots are tried from a lower bound on. The random numbers are seeded and the number of changes
//! is fixed, so that the same ring always has the same plan.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::empty_plan;
use opticoll_base::interrupt;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::{Lightpath, Plan};
use opticoll_plan::schedule::Transfer;

/// Maximum number of ranks of rings that are searched.
const MAX_RANKS: u32 = 12;

/// Number of restarts of a search.
const RESTARTS: u64 = 5;

/// Number of changes that are tried after each restart; all restarts take about 50 ms.
const CHANGES: u32 = 100_000;

/// Initial share of accepted changes among those that raise the cost by 1.
const INITIAL_ACCEPTANCE: f64 = 0.2;

/// Factor by which this share falls after each 64th of the changes, to 0.005 at the end.
const ACCEPTANCE_FACTOR: f64 = 0.944;

/// Cost of a delivery that no light reaches, where an excess lightpath costs 1.
const UNLIT_COST: i32 = 8;

/// Searches for an all_gather of whole blocks in the fewest slots: at least `min_slots`, and fewer
/// than `limit`.
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
    // A search that fails near the lower bound seldom succeeds with more slots.
    slots.take(2).find_map(|slots| {
        (0..RESTARTS).find_map(|seed| {
            let mut search = DeliverySearch::new(ring, slots, seed);
            let is_plan = search.run();
            is_plan.then(|| search.plan(collective, name))
        })
    })
}

/// Delivery of a block to a rank.
#[derive(Debug, Clone, Copy)]
struct Delivery {
    slot: u32,
    direction: Direction,
    channel: u32,
}

/// Lightpath of a delivery.
#[derive(Debug, Clone, Copy)]
struct DeliveryLightpath {
    delivery: Delivery,
    source: u32,
    destination: u32,
    hops: u32,
    /// True if the light of a farther delivery serves this delivery, too.
    shared: bool,
}

/// State of the search.
struct DeliverySearch<'a> {
    ring: &'a WdmRing,
    slots: u32,
    channels: u32,
    ports: i32,
    reach: u32,
    /// Deliveries, as `[block][rank]`. The entries of the blocks' owners are not used.
    deliveries: Vec<Delivery>,
    /// Numbers of lightpaths on links, as `[slot][direction][channel][link]`.
    load: Vec<i32>,
    /// Numbers of lightpaths that ranks send and receive, as `[slot][rank]`.
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
            search.put(block, 1);
        }
        search
    }

    /// Runs the search. Returns whether the final state is a plan.
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
            self.put(block, 1);
            let more = self.cost - before;
            let accepted = (0..more).all(|_| self.generator.random_range(0.0..1.0) < acceptance);
            if !accepted {
                self.put(block, -1);
                self.deliveries[at] = old;
                self.count(&lightpaths, 1);
            }
        }
        self.cost == 0
    }

    /// Returns a delivery with a random channel and, in two of three cases, a random slot or the
    /// opposite direction.
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

    /// Adds the lightpaths of a block (`sign` = 1) or removes them (`sign` = -1).
    fn put(&mut self, block: u32, sign: i32) {
        let mut lightpaths = Vec::with_capacity(self.ring.ranks as usize);
        self.lightpaths(block, &mut lightpaths);
        self.count(&lightpaths, sign);
    }

    /// Writes the lightpaths of a block to `lightpaths`.
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

    /// Assigns to all deliveries of a slot from one rank and side the channel of the farthest one.
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

    /// Adds lightpaths to the loads and the cost (`sign` = 1) or removes them (`sign` = -1).
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

    /// Returns the maximum number of links of a lightpath.
    fn farthest(&self) -> u32 {
        match self.ring.multicast {
            true => self.reach.min(self.ring.longest_tree()),
            false => self.reach,
        }
    }

    /// Returns the plan of a state of cost 0.
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

/// Adds `sign` to a count and returns by how much its excess above `limit` grows.
fn change(count: &mut i32, sign: i32, limit: i32) -> i32 {
    let before = (*count - limit).max(0);
    *count += sign;
    (*count - limit).max(0) - before
}
