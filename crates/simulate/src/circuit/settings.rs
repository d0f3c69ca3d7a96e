//! Which circuits are set, slot after slot.
//!
//! A setting holds the circuits of as long a run of slots as can be up side by side: on every line they have channels
//! of their own, and no pool has more of them than ports. They are set up together, before the first slot of the
//! run; a slot that needs a circuit for which there is no room begins the next setting. No other division into
//! settings has fewer of them, for a part of a run that fits together fits together, too.
//!
//! Of a folded plan the circuits that leave rank 0 are looked at. The copies of one that spans l links are on l channels of every
//! line, so that two have room side by side where none of these channels is the same.

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::slots::hop;
use opticoll_base::hash::hash;
use opticoll_base::ports::PoolNumbers;
use opticoll_fabric::fabric::circuits::{Capacity, Circuit, Circuits, LightSharing, Tuning};
use opticoll_fabric::fabric::{Hop, Rotation};
use opticoll_plan::plan::Plan;

/// Both ends and the light of a circuit.
type CircuitEnds = (u64, u32);

/// How many ports of a pool are taken, the first of them by which circuit.
#[derive(Clone, Copy)]
struct TakenPorts {
    count: u32,
    first: CircuitEnds,
}

/// The setting in force: the circuits that are up.
pub(super) struct Settings<'a> {
    plan: &'a Plan,
    circuits: Option<&'a dyn Circuits>,
    /// Where the plan is folded.
    rotation: Option<&'a dyn Rotation>,
    in_force: FxHashSet<CircuitEnds>,
    /// More of them, which are not looked up yet.
    unlisted: Vec<CircuitEnds>,
    /// The sum over its circuits.
    fingerprint: u128,
    /// The channels that circuits have on lines, where no two share them.
    taken: TakenLines,
    /// By channel, the lines that a light tree has: the first one, that behind the last, and whose they are.
    trees: FxHashMap<u32, BTreeMap<u32, (u32, CircuitEnds)>>,
    /// How many circuits a line has whose channel changes on the way.
    converted: FxHashMap<u32, u32>,
    pools: PoolNumbers,
    /// What is taken of each pool, and the pools of which something is.
    ports: Vec<TakenPorts>,
    used: Vec<u32>,
    /// Light trees that have a transmitter.
    sent: FxHashSet<CircuitEnds>,
    /// Of the hop looked at.
    circuit: Vec<Circuit>,
    tuning: Vec<Tuning>,
}

impl<'a> Settings<'a> {
    /// Before the first slot of a plan, or of the representatives of one that is folded.
    pub(super) fn new(plan: &'a Plan, is_folded: bool) -> Settings<'a> {
        Settings {
            plan,
            circuits: plan.fabric.circuits(),
            rotation: plan.fabric.rotation().filter(|_| is_folded),
            in_force: FxHashSet::default(),
            unlisted: Vec::new(),
            fingerprint: 0,
            taken: TakenLines::default(),
            trees: FxHashMap::default(),
            converted: FxHashMap::default(),
            pools: PoolNumbers::default(),
            ports: Vec::new(),
            used: Vec::new(),
            sent: FxHashSet::default(),
            circuit: Vec::new(),
            tuning: Vec::new(),
        }
    }

    /// Moves to a slot's circuits; whether a new setting begins with them.
    pub(super) fn enter(&mut self, hops: &[u32]) -> bool {
        let was_empty = self.is_empty();
        if hops.iter().all(|&index| self.add(hop(self.plan, index).0)) {
            return was_empty && !self.is_empty();
        }
        self.in_force.clear();
        self.unlisted.clear();
        self.fingerprint = 0;
        self.taken.clear();
        self.trees.clear();
        self.converted.clear();
        for pool in self.used.drain(..) {
            self.ports[pool as usize].count = 0;
        }
        self.sent.clear();
        // What has no room beside others of its own slot is for the verifier to find.
        for &index in hops {
            self.add(hop(self.plan, index).0);
        }
        true
    }

    /// Adds the circuit of a hop to the setting; whether there was room for it.
    fn add(&mut self, hop: Hop) -> bool {
        let ends = (u64::from(hop.from) << 32 | u64::from(hop.to), hop.light.0);
        let Some(circuits) = self.circuits else {
            return true;
        };
        if circuits
            .side_network()
            .is_some_and(|(beside, _)| beside == hop.light)
        {
            return true;
        }
        let tree = match circuits.sharing() {
            LightSharing::Tree { light } => Some((ends.0 >> 32, ends.1 & light)),
            LightSharing::SameCircuit => None,
        };
        self.tuning.clear();
        circuits.tune(&[hop], &mut self.tuning);
        if self.holds(ends, tree.is_some()) {
            return true;
        }
        let has_ports = self.has_ports(ends, tree);
        let has_lines = self.has_lines(circuits, hop, tree);
        self.fingerprint = self.fingerprint.wrapping_add(mixed(ends));
        has_ports && has_lines
    }

    fn is_empty(&self) -> bool {
        self.unlisted.is_empty() && self.in_force.is_empty()
    }

    /// Whether a circuit is in force already; otherwise it is from now on.
    fn holds(&mut self, ends: CircuitEnds, may_share: bool) -> bool {
        // Where one circuit at most has a port of the pool, either that one is the circuit asked for, or it has to be set up.
        if let [tuning] = self.tuning[..]
            && !tuning.is_fixed
            && !may_share
        {
            let pool = self.pools.known(tuning.transmitter.pool);
            let taken = pool.map(|pool| self.ports[pool as usize]);
            let taken = taken.filter(|taken| taken.count > 0);
            if taken.is_none_or(|taken| taken.count == 1) {
                let holds = taken.is_some_and(|taken| taken.first == ends);
                if !holds {
                    self.unlisted.push(ends);
                }
                return holds;
            }
        }
        self.in_force.extend(self.unlisted.drain(..));
        !self.in_force.insert(ends)
    }

    /// Takes a port at each end of a circuit, which may be part of a light tree; whether there is one.
    fn has_ports(&mut self, ends: CircuitEnds, tree: Option<CircuitEnds>) -> bool {
        let mut fits = true;
        for tuning in self.tuning.iter().filter(|one| !one.is_fixed) {
            let leaves = tree.is_none_or(|tree| self.sent.insert(tree));
            let ports = [leaves.then_some(tuning.transmitter), Some(tuning.receiver)];
            for port in ports.into_iter().flatten() {
                let pool = self.pools.number(port.pool);
                if pool as usize == self.ports.len() {
                    self.ports.push(TakenPorts {
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

    /// Takes the channels of a circuit, and those of its copies where the plan is folded; whether they are free.
    fn has_lines(&mut self, circuits: &dyn Circuits, hop: Hop, tree: Option<CircuitEnds>) -> bool {
        let lines = circuits.lines();
        self.circuit.clear();
        let Ok(()) = circuits.measure(&[hop], &mut self.circuit) else {
            // A circuit that does not exist is refused when its message is timed.
            return true;
        };
        let own = self.circuit.iter().flat_map(|circuit| &circuit.lines);
        let own = own.flat_map(|lines| lines.clone());
        let is_converted = self.tuning.iter().any(|one| one.channel >= lines.channels);
        let mut fits = true;
        if is_converted {
            let most = match lines.capacity {
                Capacity::Slots(most) => most,
                Capacity::Time => lines.channels,
            };
            for line in own {
                // Its copies take as many channels of one line as it takes lines of a row.
                let line = self.rotation.map_or(line, |_| line / lines.shape[1].1);
                let taken = self.converted.entry(line).or_default();
                *taken += 1;
                fits &= *taken <= most;
            }
            return fits;
        }
        let Some(rotation) = self.rotation else {
            let channel = self.tuning.first().map_or(0, |one| one.channel);
            for circuit in 0..self.circuit.len() {
                for lines in self.circuit[circuit].lines.clone() {
                    fits &= self.take(channel, lines, tree);
                }
            }
            return fits;
        };
        let row = own
            .map(|line| line / lines.shape[1].1)
            .next()
            .unwrap_or_default();
        self.tuning.clear();
        for by in 0..rotation.span(&hop) {
            let light = rotation.shift_channel(hop.light, by);
            circuits.tune(&[Hop { light, ..hop }], &mut self.tuning);
        }
        for copy in 0..self.tuning.len() {
            fits &= self.take(self.tuning[copy].channel, row..row + 1, tree);
        }
        fits
    }

    /// Takes lines of a channel for a circuit, or for its light tree; whether no other has one of them.
    fn take(&mut self, channel: u32, lines: Range<u32>, tree: Option<CircuitEnds>) -> bool {
        match tree {
            Some(tree) => take(self.trees.entry(channel).or_default(), lines, tree),
            None => self.taken.take(channel, lines),
        }
    }

    /// A number that equal settings share, whatever their order: the sum of a well-mixed 128-bit
    /// hash over the circuits. Two different settings share one with a chance of about 2^-128. None before the first circuit.
    pub(super) fn fingerprint(&self) -> Option<u128> {
        (!self.is_empty()).then_some(self.fingerprint)
    }
}

/// The lines of channels that are taken, a bit for each.
#[derive(Default)]
struct TakenLines {
    channels: Vec<Vec<u64>>,
    /// What was taken, each with its channel.
    ranges: Vec<(u32, Range<u32>)>,
}

impl TakenLines {
    /// Takes lines of a channel; whether all were free.
    fn take(&mut self, channel: u32, lines: Range<u32>) -> bool {
        if lines.is_empty() {
            return true;
        }
        let of_channel = channel as usize;
        if self.channels.len() <= of_channel {
            self.channels.resize(of_channel + 1, Vec::new());
        }
        let words = &mut self.channels[of_channel];
        let most = lines.end.div_ceil(64) as usize;
        if words.len() < most {
            words.resize(most, 0);
        }
        let mut is_free = true;
        for (word, mask) in masks(&lines) {
            is_free &= words[word] & mask == 0;
            words[word] |= mask;
        }
        self.ranges.push((channel, lines));
        is_free
    }

    /// Frees all of them.
    fn clear(&mut self) {
        for (channel, lines) in self.ranges.drain(..) {
            for (word, mask) in masks(&lines) {
                self.channels[channel as usize][word] &= !mask;
            }
        }
    }
}

/// The words of 64 bits that some lines are in, each with their bits.
fn masks(lines: &Range<u32>) -> impl Iterator<Item = (usize, u64)> + use<> {
    let Range { start, end } = lines.clone();
    (start / 64..end.div_ceil(64)).map(move |word| {
        let first = start.saturating_sub(word * 64);
        let behind = (end - word * 64).min(64);
        (word as usize, u64::MAX << first & u64::MAX >> (64 - behind))
    })
}

/// Takes lines of a channel for a light tree; whether no other has one of them.
fn take(
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
