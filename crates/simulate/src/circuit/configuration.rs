//! Configurations: sets of circuits that are up at the same time.
//!
//! A configuration consists of the circuits of the longest run of slots whose circuits can all be
//! up at the same time: no two circuits share a channel of a line, and no pool of ports has more
//! circuits than ports. These circuits are set up together, before the first slot of the run. A
//! slot with a circuit that does not fit begins the next configuration. No other division of the
//! slots has fewer configurations, because every part of a run that fits also fits.
//!
//! In a rotation-symmetric plan, only the circuits that start at rank 0 are examined. The rotations
//! of a circuit over l links use l channels of every line. Two circuits therefore fit together if
//! they have none of these channels in common.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::slots::hop;
use opticoll_base::hash::hash;
use opticoll_base::ports::PoolNumbering;
use opticoll_fabric::fabric::circuits::{Capacity, Circuit, Circuits, LightSharing, Tuning};
use opticoll_fabric::fabric::{Hop, Rotation};
use opticoll_plan::plan::Plan;

/// Identification of a circuit. The first number has the source in its upper and the destination in
/// its lower 32 bits; the second number is the light.
type CircuitEnds = (u64, u32);

/// Number of ports that circuits occupy in a pool of interchangeable ports, and the first of these
/// circuits.
#[derive(Clone, Copy)]
struct OccupiedPorts {
    count: u32,
    first: CircuitEnds,
}

/// Current configuration: the circuits that are up.
pub(super) struct Configuration<'a> {
    plan: &'a Plan,
    circuits: Option<&'a dyn Circuits>,
    /// Rotation of the fabric; `None` if the plan is not rotation-symmetric.
    rotation: Option<&'a dyn Rotation>,
    active: FxHashSet<CircuitEnds>,
    /// Further circuits that are up, which are inserted into `active` if a look-up needs them.
    unlisted: Vec<CircuitEnds>,
    /// Sum of the hashes of all circuits that are up.
    fingerprint: u128,
    /// Lines (links or ports) that circuits occupy on each channel, except the lines of light
    /// trees.
    taken: OccupiedLines,
    /// Ranges of lines that light trees occupy. The outer key is the channel, and the inner key is
    /// the first line of a range. The value is the line after the range, and the tree.
    trees: FxHashMap<u32, BTreeMap<u32, (u32, CircuitEnds)>>,
    /// Number of circuits with converters on each line; the key is the line. Such circuits can use
    /// any channel.
    converted: FxHashMap<u32, u32>,
    pools: PoolNumbering,
    /// Occupied ports of each pool, indexed by the number that `pools` gives to the pool. `used`
    /// lists the pools with occupied ports.
    ports: Vec<OccupiedPorts>,
    used: Vec<u32>,
    /// Light trees whose transmitter already counts as an occupied port.
    counted_trees: FxHashSet<CircuitEnds>,
    /// Buffers for the circuit and the ports of the current hop.
    circuit: Vec<Circuit>,
    tuning: Vec<Tuning>,
}

impl<'a> Configuration<'a> {
    pub(super) fn new(plan: &'a Plan, is_rotation_symmetric: bool) -> Configuration<'a> {
        Configuration {
            plan,
            circuits: plan.fabric.circuits(),
            rotation: plan.fabric.rotation().filter(|_| is_rotation_symmetric),
            active: FxHashSet::default(),
            unlisted: Vec::new(),
            fingerprint: 0,
            taken: OccupiedLines::default(),
            trees: FxHashMap::default(),
            converted: FxHashMap::default(),
            pools: PoolNumbering::default(),
            ports: Vec::new(),
            used: Vec::new(),
            counted_trees: FxHashSet::default(),
            circuit: Vec::new(),
            tuning: Vec::new(),
        }
    }

    /// Adds the circuits of a slot. If they do not fit, starts a new configuration with these
    /// circuits. Returns whether a new configuration started.
    pub(super) fn enter(&mut self, hops: &[u32]) -> bool {
        let was_empty = self.is_empty();
        if hops.iter().all(|&index| self.add(hop(self.plan, index).0)) {
            return was_empty && !self.is_empty();
        }
        self.active.clear();
        self.unlisted.clear();
        self.fingerprint = 0;
        self.taken.clear();
        self.trees.clear();
        self.converted.clear();
        for pool in self.used.drain(..) {
            self.ports[pool as usize].count = 0;
        }
        self.counted_trees.clear();
        // Only the verifier checks whether circuits of one slot conflict.
        for &index in hops {
            self.add(hop(self.plan, index).0);
        }
        true
    }

    /// Adds the circuit of a hop and returns whether it fits into the configuration.
    fn add(&mut self, hop: Hop) -> bool {
        let ends = (u64::from(hop.from) << 32 | u64::from(hop.to), hop.light.0);
        let Some(circuits) = self.circuits else {
            return true;
        };
        let side_network = circuits.side_network();
        if side_network.is_some_and(|(light, _)| light == hop.light) {
            return true;
        }
        let tree = match circuits.sharing() {
            LightSharing::Tree { light } => Some((ends.0 >> 32, ends.1 & light)),
            LightSharing::SameCircuit => None,
        };
        self.tuning.clear();
        circuits.tune(&[hop], &self.plan.routes, &mut self.tuning);
        if self.insert(ends, tree.is_some()) {
            return true;
        }
        let has_ports = self.occupy_ports(ends, tree);
        let has_lines = self.occupy_channels(circuits, hop, tree);
        self.fingerprint = self.fingerprint.wrapping_add(mixed(ends));
        has_ports && has_lines
    }

    fn is_empty(&self) -> bool {
        self.unlisted.is_empty() && self.active.is_empty()
    }

    /// Marks a circuit as up and returns whether it was up before. `may_share` is true if the
    /// circuit may be part of a light tree.
    fn insert(&mut self, ends: CircuitEnds, may_share: bool) -> bool {
        // If at most one circuit uses the pool, this is the circuit, or the circuit is not up.
        if let [tuning] = self.tuning[..]
            && !tuning.is_fixed
            && !may_share
        {
            let pool = self.pools.known(tuning.transmitter.pool);
            let taken = pool.map(|pool| self.ports[pool as usize]);
            let taken = taken.filter(|taken| taken.count > 0);
            if taken.is_none_or(|taken| taken.count == 1) {
                let is_known = taken.is_some_and(|taken| taken.first == ends);
                if !is_known {
                    self.unlisted.push(ends);
                }
                return is_known;
            }
        }
        self.active.extend(self.unlisted.drain(..));
        !self.active.insert(ends)
    }

    /// Occupies a port at each end of a circuit and returns whether there were enough ports. `tree`
    /// is the circuit's light tree, which occupies only one transmitter.
    fn occupy_ports(&mut self, ends: CircuitEnds, tree: Option<CircuitEnds>) -> bool {
        let mut fits = true;
        for tuning in self.tuning.iter().filter(|tuning| !tuning.is_fixed) {
            let needs_transmitter = tree.is_none_or(|tree| self.counted_trees.insert(tree));
            let ports = [
                needs_transmitter.then_some(tuning.transmitter),
                Some(tuning.receiver),
            ];
            for port in ports.into_iter().flatten() {
                let pool = self.pools.number(port.pool);
                if pool as usize == self.ports.len() {
                    self.ports.push(OccupiedPorts {
                        count: 0,
                        first: ends,
                    });
                }
                let taken = &mut self.ports[pool as usize];
                if taken.count == 0 {
                    taken.first = ends;
                    self.used.push(pool);
                }
                taken.count += 1;
                fits &= taken.count <= port.size;
            }
        }
        fits
    }

    /// Occupies the channels of a circuit, and of its rotations if the plan is rotation-symmetric;
    /// returns whether they were free.
    fn occupy_channels(
        &mut self,
        circuits: &dyn Circuits,
        hop: Hop,
        tree: Option<CircuitEnds>,
    ) -> bool {
        let lines = circuits.lines();
        self.circuit.clear();
        let Ok(()) = circuits.measure(&[hop], &self.plan.routes, &mut self.circuit) else {
            // The timing of the message rejects a circuit that does not exist.
            return true;
        };
        let is_converted = self
            .tuning
            .iter()
            .any(|tuning| tuning.channel >= lines.channels);
        let mut fits = true;
        if is_converted {
            let max = match lines.capacity {
                Capacity::Slots(channels) => channels,
                Capacity::Time => lines.channels,
            };
            for line in lines_of(&self.circuit) {
                // The rotations of a circuit over l links occupy l channels of each line of the
                // row.
                let line = self.rotation.map_or(line, |_| line / lines.shape[1].1);
                let taken = self.converted.entry(line).or_default();
                *taken += 1;
                fits &= *taken <= max;
            }
            return fits;
        }
        let Some(rotation) = self.rotation else {
            let channel = self.tuning.first().map_or(0, |tuning| tuning.channel);
            for circuit in 0..self.circuit.len() {
                let ranges = self.circuit[circuit].lines.clone();
                for lines in ranges.iter() {
                    fits &= self.take(channel, lines.clone(), tree);
                }
            }
            return fits;
        };
        let row = lines_of(&self.circuit)
            .map(|line| line / lines.shape[1].1)
            .next()
            .unwrap_or_default();
        self.tuning.clear();
        for by in 0..rotation.span(&hop) {
            let light = rotation.shift_channel(hop.light, by);
            circuits.tune(&[Hop { light, ..hop }], &self.plan.routes, &mut self.tuning);
        }
        for copy in 0..self.tuning.len() {
            fits &= self.take(self.tuning[copy].channel, row..row + 1, tree);
        }
        fits
    }

    /// Occupies a channel on `lines` for a circuit or its light tree; returns whether it was free.
    fn take(&mut self, channel: u32, lines: Range<u32>, tree: Option<CircuitEnds>) -> bool {
        match tree {
            Some(tree) => occupy_for_tree(self.trees.entry(channel).or_default(), lines, tree),
            None => self.taken.take(channel, lines),
        }
    }

    /// Returns a fingerprint of the configuration that does not depend on the order of its
    /// circuits: the sum of 128-bit hashes of the circuits. Two different configurations have equal
    /// fingerprints with a probability of about 2^-128. Returns `None` if no circuit is up.
    pub(super) fn fingerprint(&self) -> Option<u128> {
        (!self.is_empty()).then_some(self.fingerprint)
    }
}

/// Occupied lines of each channel, one bit per line.
#[derive(Default)]
struct OccupiedLines {
    channels: Vec<Vec<u64>>,
    ranges: Vec<(u32, Range<u32>)>,
}

impl OccupiedLines {
    /// Occupies `lines` on a channel and returns whether all of them were free.
    fn take(&mut self, channel: u32, lines: Range<u32>) -> bool {
        if lines.is_empty() {
            return true;
        }
        let index = channel as usize;
        if self.channels.len() <= index {
            self.channels.resize(index + 1, Vec::new());
        }
        let words = &mut self.channels[index];
        let count = lines.end.div_ceil(64) as usize;
        if words.len() < count {
            words.resize(count, 0);
        }
        let mut is_free = true;
        for (word, mask) in masks(&lines) {
            is_free &= words[word] & mask == 0;
            words[word] |= mask;
        }
        self.ranges.push((channel, lines));
        is_free
    }

    fn clear(&mut self) {
        for (channel, lines) in self.ranges.drain(..) {
            for (word, mask) in masks(&lines) {
                self.channels[channel as usize][word] &= !mask;
            }
        }
    }
}

/// Returns the indices and masks of the 64-bit words that contain the bits of `lines`.
fn masks(lines: &Range<u32>) -> impl Iterator<Item = (usize, u64)> + use<> {
    let Range { start, end } = lines.clone();
    (start / 64..end.div_ceil(64)).map(move |word| {
        let first = start.saturating_sub(word * 64);
        let end = (end - word * 64).min(64);
        (word as usize, u64::MAX << first & u64::MAX >> (64 - end))
    })
}

/// Occupies `lines` for a light tree and returns whether no other tree occupies one of them.
fn occupy_for_tree(
    taken: &mut BTreeMap<u32, (u32, CircuitEnds)>,
    mut lines: Range<u32>,
    owner: CircuitEnds,
) -> bool {
    if lines.is_empty() {
        return true;
    }
    while let Some((&first, &(end, other))) = taken.range(..lines.end).next_back()
        && end > lines.start
    {
        if other != owner {
            return false;
        }
        taken.remove(&first);
        lines = lines.start.min(first)..lines.end.max(end);
    }
    taken.insert(lines.start, (lines.end, owner));
    true
}

fn mixed((ends, light): CircuitEnds) -> u128 {
    let light = hash(light.into());
    let high = u128::from(hash(ends ^ light ^ 0x9e37_79b9_7f4a_7c15));
    high << 64 | u128::from(hash(ends ^ light.rotate_left(32)))
}

/// Returns the lines of circuits, one by one.
fn lines_of(circuits: &[Circuit]) -> impl Iterator<Item = u32> {
    let ranges = circuits.iter().flat_map(|circuit| circuit.lines.iter());
    ranges.flat_map(|lines| lines.clone())
}
