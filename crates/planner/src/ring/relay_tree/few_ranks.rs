//! All_gathers among few ranks in as few slots as a search finds, on any ring.
//!
//! Every rank gets every other rank's block once. For each such delivery a state of the search says in which slot,
//! from which side and on which channel; the light then comes from the nearest rank on that side that has the
//! block in an earlier slot. With light trees, the deliveries of a slot that come from one rank and one side
//! share the light of the farthest. A state costs one for every lightpath too many on a channel of a link, and for
//! every port too many; more where no light comes. A state that costs nothing is a plan.
//!
//! The search changes one delivery at a time. It takes every change that costs no more, and of those that cost
//! more a share that falls with the cost and with time: simulated annealing (Kirkpatrick, Gelatt and
//! Vecchi, Science 1983). It starts anew a few times. Numbers of slots are tried from a lower bound on. The random
//! numbers are seeded, and the number of changes is fixed, so that the same ring has the same plan.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::empty_plan;
use opticoll_base::interrupt;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::{Lightpath, Plan};
use opticoll_plan::schedule::Transfer;

/// The most ranks that are searched for.
const MOST_RANKS: u32 = 12;

/// How often a search starts anew, and the changes that it tries each time: 50 ms.
const STARTS: u64 = 5;
const CHANGES: u32 = 100_000;

/// The share that is taken of the changes that cost one more: at first, and by how much it falls in each 64th of the
/// changes, to 0.005 at the end.
const FIRST_SHARE: f64 = 0.2;
const FALL: f64 = 0.944;

/// The cost of a delivery that no light reaches.
const UNLIT: i32 = 8;

/// An all_gather of whole blocks in as few slots as are found: `least` or more, and fewer than `enough`.
pub(crate) fn all_gather(
    ring: &WdmRing,
    collective: Collective,
    name: &str,
    least: u32,
    enough: u32,
) -> Option<Plan> {
    let is_small = (2..=MOST_RANKS).contains(&ring.ranks) && collective.pieces() == 1;
    let slots = if is_small { least.max(1)..enough } else { 0..0 };
    // What is not found next to the bound is seldom found farther from it.
    slots.take(2).find_map(|slots| {
        (0..STARTS).find_map(|seed| {
            let mut search = DeliverySearch::new(ring, slots, seed);
            let is_free = search.run();
            is_free.then(|| search.plan(collective, name))
        })
    })
}

/// How a rank gets a block.
#[derive(Debug, Clone, Copy)]
struct Delivery {
    slot: u32,
    direction: Direction,
    channel: u32,
}

/// The lightpath of a delivery.
#[derive(Debug, Clone, Copy)]
struct Beam {
    delivery: Delivery,
    source: u32,
    destination: u32,
    hops: u32,
    /// Whether a farther delivery has the same light.
    shared: bool,
}

struct DeliverySearch<'a> {
    ring: &'a WdmRing,
    slots: u32,
    channels: u32,
    ports: i32,
    reach: u32,
    /// `[block][rank]`; that of the block's owner means nothing.
    deliveries: Vec<Delivery>,
    /// Lightpaths, `[slot][direction][channel][link]`.
    load: Vec<i32>,
    /// `[slot][rank]`.
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

    /// Searches; whether it ended at a plan.
    fn run(&mut self) -> bool {
        let ranks = self.ring.ranks;
        let mut share = FIRST_SHARE;
        let mut beams = Vec::with_capacity(ranks as usize);
        for change in 0..CHANGES {
            if self.cost == 0 {
                return true;
            }
            interrupt::check();
            if change % (CHANGES / 64) == 0 {
                share *= FALL;
            }
            let block = self.generator.random_range(0..ranks);
            let rank = (block + self.generator.random_range(1..ranks)) % ranks;
            let (at, before) = ((block * ranks + rank) as usize, self.cost);
            let old = self.deliveries[at];
            self.beams(block, &mut beams);
            self.count(&beams, -1);
            self.deliveries[at] = self.changed(old);
            self.put(block, 1);
            let more = self.cost - before;
            let accepted = (0..more).all(|_| self.generator.random_range(0.0..1.0) < share);
            if !accepted {
                self.put(block, -1);
                self.deliveries[at] = old;
                self.count(&beams, 1);
            }
        }
        self.cost == 0
    }

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

    /// Adds the lightpaths of a block (1) or takes them away (-1).
    fn put(&mut self, block: u32, sign: i32) {
        let mut beams = Vec::with_capacity(self.ring.ranks as usize);
        self.beams(block, &mut beams);
        self.count(&beams, sign);
    }

    /// The lightpaths of a block.
    fn beams(&self, block: u32, beams: &mut Vec<Beam>) {
        let ranks = self.ring.ranks;
        let own = &self.deliveries[(block * ranks) as usize..][..ranks as usize];
        beams.clear();
        for destination in (0..ranks).filter(|&rank| rank != block) {
            let delivery = own[destination as usize];
            let back = |hops: u32| match delivery.direction {
                Direction::Clockwise => (destination + ranks - hops) % ranks,
                Direction::CounterClockwise => (destination + hops) % ranks,
            };
            let has = |rank: u32| rank == block || own[rank as usize].slot < delivery.slot;
            let hops = (1..ranks).find(|&hops| has(back(hops))).unwrap_or(ranks);
            beams.push(Beam {
                delivery,
                source: back(hops),
                destination,
                hops,
                shared: false,
            });
        }
        if self.ring.multicast {
            self.share(beams);
        }
    }

    /// Gives the deliveries of a slot from one rank and side the channel of the farthest.
    fn share(&self, beams: &mut [Beam]) {
        for at in 0..beams.len() {
            let beam = beams[at];
            let same = |other: &&Beam| {
                let (one, other_delivery) = (beam.delivery, other.delivery);
                one.slot == other_delivery.slot
                    && one.direction == other_delivery.direction
                    && beam.source == other.source
            };
            let farthest = beams.iter().filter(same).max_by_key(|other| other.hops);
            if let Some(farthest) = farthest.filter(|other| other.hops > beam.hops).copied() {
                beams[at].delivery.channel = farthest.delivery.channel;
                beams[at].shared = true;
            }
        }
    }

    /// Counts lightpaths in (1) or out (-1).
    fn count(&mut self, beams: &[Beam], sign: i32) {
        let ranks = self.ring.ranks;
        for beam in beams {
            let (source, destination, way) =
                (beam.source, beam.destination, beam.delivery.direction);
            let is_lit =
                beam.hops <= self.farthest() && self.ring.is_whole(source, destination, way);
            if !is_lit {
                self.cost += sign * UNLIT;
            }
            let slot = beam.delivery.slot * ranks;
            let (sent, received) = ((slot + source) as usize, (slot + destination) as usize);
            if self.ports < i32::MAX {
                self.cost += change(&mut self.received[received], sign, self.ports);
            }
            if beam.shared {
                continue;
            }
            if self.ports < i32::MAX {
                self.cost += change(&mut self.sent[sent], sign, self.ports);
            }
            let first = match way {
                Direction::Clockwise => source,
                Direction::CounterClockwise => destination,
            };
            let track =
                (beam.delivery.slot * 2 + way as u32) * self.channels + beam.delivery.channel;
            for link in first..first + beam.hops {
                let link = if link >= ranks { link - ranks } else { link };
                let load = &mut self.load[(track * ranks + link) as usize];
                self.cost += change(load, sign, 1);
            }
        }
    }

    /// The most links of a lightpath.
    fn farthest(&self) -> u32 {
        match self.ring.multicast {
            true => self.reach.min(self.ring.longest_tree()),
            false => self.reach,
        }
    }

    /// The plan of a state that costs nothing.
    fn plan(&self, collective: Collective, name: &str) -> Plan {
        let mut all: Vec<(u32, Beam)> = Vec::new();
        let mut beams = Vec::new();
        for block in 0..self.ring.ranks {
            self.beams(block, &mut beams);
            all.extend(beams.iter().map(|beam| (block, *beam)));
        }
        let fabric = Fabric::new(self.ring.clone());
        let mut plan = empty_plan(fabric, collective, name.into(), self.slots);
        for slot in 0..self.slots {
            plan.schedule.begin_step();
            for (block, beam) in all.iter().filter(|(_, beam)| beam.delivery.slot == slot) {
                plan.push(Lightpath {
                    slot,
                    light: self
                        .ring
                        .light(beam.delivery.direction, beam.delivery.channel),
                    transfer: Transfer::copy(*block, beam.source, beam.destination),
                });
            }
        }
        plan
    }
}

/// Changes a count by one; by how much it then is farther above what is allowed.
fn change(count: &mut i32, sign: i32, most: i32) -> i32 {
    let before = (*count - most).max(0);
    *count += sign;
    (*count - most).max(0) - before
}
