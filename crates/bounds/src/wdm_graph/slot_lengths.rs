//! Lengths of links that differ from slot to slot, for trees from one root (theorem W4).
//!
//! In slot s, link e has the length y_es and the root's end of a lightpath has the length z_s. Any
//! lengths prove that bytes take at least D / Y times the bytes of the vector: D is the least
//! length of a tree (theorem W5), and Y is the greatest length of all channels of a slot. In slot 1
//! every lightpath starts at the root, so that all of the length may be at the root.
//!
//! The search makes resources longer that the shortest tree uses (multiplicative weights: Plotkin,
//! Shmoys, Tardos, Mathematics of Operations Research 20, 1995). The bound is that of the best
//! lengths.

use super::fibres::{FibreLink, Fibres, Ports};
use super::moats::{self, Lightpath, Order, Slot, Trees};
use super::recent::Recent;
use super::trees::{LINK, MAX_RANKS, RelayTrees, Routes};
use opticoll_fabric::family::wdm_graph::WdmGraph;

/// Mean length of a link. Lengths are whole numbers, so that bounds are exact.
const MEAN_LENGTH: f64 = 16.0 * LINK as f64;

/// Maximum number of slots for which lengths are searched.
const MAX_SLOTS: u64 = 16;

/// Maximum number of lengths that the search tries for one number of slots.
const MAX_TRIALS: u32 = 60;

/// Maximum number of slacks and links that the search examines for one number of slots: about
/// 0.1 s.
const MAX_WORK: u64 = 50_000_000;

/// Part by which a trial raises the weight of the link with the greatest load, at first and at
/// last. A first step of 5 gives bounds within 4 % of those of 2 on the graphs of the gap table.
const FIRST_STEP: f64 = 2.0;
const LAST_STEP: f64 = FIRST_STEP / 32.0;

/// Part of the loads of earlier trees that counts in the next trial. Single trees of a symmetric
/// graph use only a few of its equal links.
const FADING: f64 = 0.8;

/// Number of trials without a greater bound after which the step is halved, and the search
/// continues from the best weights.
const MAX_FAILURES: u32 = 5;

/// Approximate number of times that the search for shortest routes examines each link.
const VISITS_OF_LINKS: u64 = 8;

/// Capacity of links and of the ports of ranks.
#[derive(Clone, Copy)]
pub(super) struct Measure {
    pub(super) name: &'static str,
    pub(super) of_link: fn(&FibreLink) -> u128,
    pub(super) of_ports: fn(&Ports) -> u128,
}

/// Capacity in channels and lightpaths.
pub(super) const CHANNELS: Measure = Measure {
    name: "channels",
    of_link: |link| link.channels as u128,
    of_ports: |ports| ports.lightpaths as u128,
};

/// Capacity in bit/s.
pub(super) const RATES: Measure = Measure {
    name: "rates",
    of_link: |link| link.rate,
    of_ports: |ports| ports.rate,
};

/// Trees from, or to, a root.
pub(super) struct FromRoot<'a> {
    pub(super) graph: &'a WdmGraph,
    pub(super) fibres: &'a Fibres,
    pub(super) trees: &'a RelayTrees<'a>,
    /// True if data go to the root.
    pub(super) backwards: bool,
    pub(super) root: u32,
    pub(super) measure: Measure,
}

/// Least length of a tree, and length of all channels of a slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    pub(super) length: u128,
    pub(super) capacity: u128,
}

impl Share {
    /// Returns a share that is at most `length` / `capacity` and has few digits, so that products
    /// with bytes stay within 128 bits.
    fn new(length: u64, capacity: u128) -> Share {
        /// Number of digits of the length: the share is exact within a relative 1e-7.
        const DIGITS: u32 = 24;
        let shift = (u64::BITS - length.leading_zeros()).saturating_sub(DIGITS);
        Share {
            length: (length >> shift).into(),
            capacity: capacity.div_ceil(1 << shift),
        }
    }

    fn is_below(self, other: Share) -> bool {
        self.length * other.capacity < other.length * self.capacity
    }
}

/// Parts of a slot's length that each link has, in the order of the links, and then the root's
/// port.
type Weights = Vec<f64>;

/// Result of a search: the greatest share, and the weights of each slot for this share.
type Searched = Option<(Share, Vec<Weights>)>;

/// Cached results, by direction, root, name of the measure and number of slots.
static SHARES: Recent<(bool, u32, &str, u64), Searched> = Recent::new();

impl FromRoot<'_> {
    /// Returns the greatest share of a slot that one byte, or chunk, is proved to need over trees
    /// of at most `slots` slots. `None` if no tree reaches all ranks.
    pub(super) fn share(&self, slots: u64) -> Option<Share> {
        let equal = Share {
            length: self.trees.within(slots)?.least.into(),
            capacity: self.trees.capacity(self.measure.of_link),
        };
        let searched = (slots <= MAX_SLOTS && self.fibres.ranks <= MAX_RANKS)
            .then(|| self.searched(slots))
            .flatten();
        Some(match searched {
            Some((share, _)) if equal.is_below(share) => share,
            _ => equal,
        })
    }

    fn searched(&self, slots: u64) -> Searched {
        let key = (self.backwards, self.root, self.measure.name, slots);
        SHARES.get(self.graph, key, || self.search(slots))
    }

    /// Returns the capacities of the links and of the root's port.
    fn capacities(&self) -> Vec<u128> {
        let ports = match self.backwards {
            true => &self.fibres.receivers,
            false => &self.fibres.senders,
        };
        let links = self.fibres.links.iter().map(self.measure.of_link);
        let port = (self.measure.of_ports)(&ports[self.root as usize]);
        links.chain([port]).collect()
    }

    /// Returns the weights with which the search begins: those for one slot less, after a slot in
    /// which only the root's port has a length.
    fn first_weights(&self, slots: u64, capacities: &[u128]) -> Vec<Weights> {
        /// Part of the weight that is the same for each channel, so that no link stays at 0.
        const EVEN: f64 = 0.1;
        /// The same for the first slot.
        const EVEN_AT_ROOT: f64 = 0.02;
        let (_, links) = capacities.split_last().expect("the root's port");
        let sum: f64 = links.iter().map(|&capacity| capacity as f64).sum();
        let even = links.iter().map(|&capacity| capacity as f64 / sum);
        let even: Weights = even.map(|weight| weight * 0.75).chain([0.25]).collect();
        let mut at_root = vec![0.0; capacities.len()];
        at_root[links.len()] = 1.0;
        let fewer = (slots > 1).then(|| self.searched(slots - 1)).flatten();
        let mut later = vec![even.clone(); slots as usize - 1];
        if let Some((_, fewer)) = fewer.filter(|_| slots > 2) {
            later[0].clone_from(&fewer[1]);
            later[1..].clone_from_slice(&fewer[1..]);
        }
        let mix = |weights: &Weights, part: f64| -> Weights {
            let pairs = weights.iter().zip(&even);
            pairs
                .map(|(own, even)| own * (1.0 - part) + even * part)
                .collect()
        };
        let later = later.iter().map(|weights| mix(weights, EVEN));
        [mix(&at_root, EVEN_AT_ROOT)]
            .into_iter()
            .chain(later)
            .collect()
    }

    fn search(&self, slots: u64) -> Searched {
        let capacities = self.capacities();
        if capacities.contains(&0) {
            return None;
        }
        let total: u128 = capacities[..capacities.len() - 1].iter().sum();
        let scale = total as f64 * MEAN_LENGTH;
        let ranks = u64::from(self.fibres.ranks);
        let of_routes = slots * ranks * self.fibres.links.len() as u64 * VISITS_OF_LINKS;
        let mut work = 0;
        let mut weights = self.first_weights(slots, &capacities);
        let mut best: Searched = None;
        let mut loads = vec![vec![0.0; capacities.len()]; weights.len()];
        let (mut step, mut failures) = (FIRST_STEP, 0);
        for _ in 0..MAX_TRIALS {
            work += of_routes;
            if work > MAX_WORK {
                break;
            }
            let length = |weight: f64, capacity: u128| (weight * scale / capacity as f64) as u32;
            let lengths = weights.iter().map(|slot| {
                let pairs = slot.iter().zip(&capacities);
                let lengths = pairs.map(|(&weight, &capacity)| length(weight, capacity));
                lengths.collect::<Vec<u32>>()
            });
            let lengths: Vec<Vec<u32>> = lengths.collect();
            let of_slot = |slot: &Vec<u32>| -> u128 {
                let pairs = slot.iter().zip(&capacities);
                pairs
                    .map(|(&length, capacity)| u128::from(length) * capacity)
                    .sum()
            };
            let capacity = lengths.iter().map(of_slot).max()?;
            let routes = lengths
                .iter()
                .map(|slot| self.trees.routes(|link| slot[link]));
            let routes: Vec<Routes> = routes.collect();
            let slots = routes.iter().zip(&lengths).map(|(routes, lengths)| Slot {
                routes: &routes.lengths,
                price: 1,
                at_root: lengths[capacities.len() - 1],
            });
            let trees = Trees {
                ranks: ranks as usize,
                root: self.root as usize,
                slots: &slots.collect::<Vec<Slot<'_>>>(),
            };
            let (proved, tree) = moats::with_tree(&trees, Order::Smallest, MAX_WORK - work)?;
            work += proved.work;
            let share = Share::new(proved.length, capacity);
            failures += 1;
            if best.as_ref().is_none_or(|(best, _)| best.is_below(share)) {
                best = Some((share, weights.clone()));
                failures = 0;
            }
            if tree.is_empty() {
                break;
            }
            if failures == MAX_FAILURES {
                if step <= LAST_STEP {
                    break;
                }
                step /= 2.0;
                failures = 0;
                weights.clone_from(&best.as_ref()?.1);
                continue;
            }
            self.lengthen(&mut weights, &tree, &routes, &capacities, &mut loads, step);
        }
        best
    }

    /// Raises the weights of the links that a tree uses.
    fn lengthen(
        &self,
        weights: &mut [Weights],
        tree: &[Lightpath],
        routes: &[Routes],
        capacities: &[u128],
        loads: &mut [Vec<f64>],
        step: f64,
    ) {
        let port = capacities.len() - 1;
        loads.iter_mut().flatten().for_each(|load| *load *= FADING);
        for lightpath in tree {
            let loads = &mut loads[lightpath.slot];
            for link in routes[lightpath.slot].links(lightpath.from, lightpath.to, |link| {
                self.fibres.links[link].ends(self.backwards).0
            }) {
                loads[link] += 1.0 / capacities[link] as f64;
            }
            if lightpath.from == self.root as usize {
                loads[port] += 1.0 / capacities[port] as f64;
            }
        }
        let greatest = loads.iter().flatten().copied().fold(0.0, f64::max);
        let step = step / greatest;
        for (weights, loads) in weights.iter_mut().zip(loads) {
            for (weight, load) in weights.iter_mut().zip(&*loads) {
                *weight *= 1.0 + load * step;
            }
            let sum: f64 = weights.iter().sum();
            weights.iter_mut().for_each(|weight| *weight /= sum);
        }
    }
}
