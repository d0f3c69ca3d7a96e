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
use opticoll_fabric::fabric::circuits::{Circuits, LightSharing, LineRanges, Tuning};
use opticoll_fabric::fabric::{Hop, Rotation};
use opticoll_plan::plan::Plan;

/// Identification of a circuit. The first number has the source in its upper and the destination in
/// its lower 32 bits; the second number has the named route in its upper and the light in its lower
/// 32 bits.
type CircuitEnds = (u64, u64);

/// Identification of the light of a light tree on a line: the source and the first line, the light,
/// and the line before this line. The last number is 0 if the light of the tree cannot branch.
type TreeLight = (u64, u32, u32);

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
    trees: FxHashMap<u32, BTreeMap<u32, (u32, TreeLight)>>,
    /// Number of circuits on each fibre of a line, if converters assign its channels; the key is
    /// the line and the fibre.
    on_fibre: FxHashMap<(u32, u32), u32>,
    /// Light trees that already count in `on_fibre`, with the line.
    trees_on_fibre: FxHashSet<(u32, TreeLight)>,
    /// Number of converters in use at each vertex, if their number is limited.
    converting: FxHashMap<u32, u32>,
    pools: PoolNumbering,
    /// Occupied ports of each pool, indexed by the number that `pools` gives to the pool. `used`
    /// lists the pools with occupied ports.
    ports: Vec<OccupiedPorts>,
    used: Vec<u32>,
    /// Light trees whose transmitter already counts as an occupied port.
    counted_trees: FxHashSet<TreeLight>,
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
            on_fibre: FxHashMap::default(),
            trees_on_fibre: FxHashSet::default(),
            converting: FxHashMap::default(),
            pools: PoolNumbering::default(),
            ports: Vec::new(),
            used: Vec::new(),
            counted_trees: FxHashSet::default(),
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
        self.on_fibre.clear();
        self.trees_on_fibre.clear();
        self.converting.clear();
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
        let ends = (
            u64::from(hop.from) << 32 | u64::from(hop.to),
            u64::from(hop.route) << 32 | u64::from(hop.light.0),
        );
        let Some(circuits) = self.circuits else {
            return true;
        };
        let side_network = circuits.side_network();
        if side_network.is_some_and(|(light, _)| light == hop.light) {
            return true;
        }
        let sharing = circuits.sharing();
        let tuning = circuits.tuning(&hop, &self.plan.routes);
        if self.insert(ends, &tuning, sharing != LightSharing::SameCircuit) {
            return true;
        }
        // The timing of the message rejects a circuit that does not exist.
        let circuit = circuits.circuit(&hop, &self.plan.routes);
        let lines = circuit.map_or_else(|_| LineRanges::default(), |circuit| circuit.lines);
        let tree = match sharing {
            LightSharing::Tree { light, branches } => {
                let first_line = lines.first_line().filter(|_| branches).unwrap_or(0);
                let source = u64::from(hop.from) << 32 | u64::from(first_line);
                Some((source, hop.light.0 & light, 0))
            }
            LightSharing::SameCircuit => None,
        };
        let has_ports = self.occupy_ports(ends, &tuning, tree);
        let has_lines = self.occupy_channels(circuits, hop, tuning.channel, &lines, tree);
        self.fingerprint = self.fingerprint.wrapping_add(mixed(ends));
        has_ports && has_lines
    }

    fn is_empty(&self) -> bool {
        self.unlisted.is_empty() && self.active.is_empty()
    }

    /// Marks a circuit as up and returns whether it was up before. `may_share` is true if the
    /// circuit may be part of a light tree.
    fn insert(&mut self, ends: CircuitEnds, tuning: &Tuning, may_share: bool) -> bool {
        // If at most one circuit uses the pool, this is the circuit, or the circuit is not up.
        if !tuning.is_fixed && !may_share {
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
    fn occupy_ports(
        &mut self,
        ends: CircuitEnds,
        tuning: &Tuning,
        tree: Option<TreeLight>,
    ) -> bool {
        if tuning.is_fixed {
            return true;
        }
        let needs_transmitter = tree.is_none_or(|tree| self.counted_trees.insert(tree));
        let transmitter = needs_transmitter.then_some(tuning.transmitter);
        let mut fits = true;
        for port in transmitter.into_iter().chain([tuning.receiver]) {
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
        fits
    }

    /// Occupies the channel `channel` of a circuit on `lines`, and the channels of its rotations if
    /// the plan is rotation-symmetric; returns whether they were free.
    fn occupy_channels(
        &mut self,
        circuits: &dyn Circuits,
        hop: Hop,
        channel: u32,
        lines: &LineRanges,
        tree: Option<TreeLight>,
    ) -> bool {
        let mut fits = match circuits.fibre(hop.light) {
            Some(fibre) => self.count_on_fibre(circuits, fibre, hop, lines, tree),
            None => true,
        };
        if !circuits.has_channel(hop.light) {
            return fits;
        }
        let Some(rotation) = self.rotation else {
            let mut on_line = tree;
            for lines in lines.line_ranges() {
                fits &= self.take(channel, lines.clone(), on_line);
                on_line = on_line.map(|tree| after(circuits, tree, lines));
            }
            return fits;
        };
        let row = lines.first_line().unwrap_or(0) / circuits.lines().shape[1].1;
        for by in 0..rotation.span(&hop) {
            let light = rotation.shift_channel(hop.light, by);
            let tuning = circuits.tuning(&Hop { light, ..hop }, &self.plan.routes);
            fits &= self.take(tuning.channel, row..row + 1, tree);
        }
        fits
    }

    /// Counts a circuit on the lines of its fibre, and at the vertices where it uses a converter.
    /// Returns whether the fibre has enough channels and each vertex has enough converters.
    fn count_on_fibre(
        &mut self,
        circuits: &dyn Circuits,
        (fibre, channels): (u32, u32),
        hop: Hop,
        lines: &LineRanges,
        tree: Option<TreeLight>,
    ) -> bool {
        let per_row = circuits.lines().shape[1].1;
        let converters = circuits.converters_per_vertex();
        let converters = converters.filter(|_| !circuits.has_channel(hop.light));
        let (mut fits, mut on_line) = (true, tree);
        let network = circuits.fibre_links();
        let mut vertex = hop.from;
        for line in lines.line_ranges().cloned().flatten() {
            let is_new = on_line.is_none_or(|tree| self.trees_on_fibre.insert((line, tree)));
            on_line = on_line.map(|tree| after(circuits, tree, &(line..line + 1)));
            let passed = vertex;
            if let Some((from, to)) = network.and_then(|network| network.ends(line)) {
                vertex = if from == passed { to } else { from };
            }
            if !is_new {
                continue;
            }
            // The rotations of a circuit over l links occupy l channels of each line of the row.
            let line_or_row = self.rotation.map_or(line, |_| line / per_row);
            let used = self.on_fibre.entry((line_or_row, fibre)).or_default();
            *used += 1;
            fits &= *used <= channels;
            if let Some(limit) = converters.filter(|_| passed != hop.from) {
                let used = self.converting.entry(passed).or_default();
                *used += 1;
                fits &= *used <= limit;
            }
        }
        fits
    }

    /// Occupies a channel on `lines` for a circuit or its light tree; returns whether it was free.
    fn take(&mut self, channel: u32, lines: Range<u32>, tree: Option<TreeLight>) -> bool {
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

/// Returns the light of a tree on the line that follows `lines`. If light may branch, two circuits
/// share a line only if they agree in all lines before it.
fn after(circuits: &dyn Circuits, tree: TreeLight, lines: &Range<u32>) -> TreeLight {
    match circuits.sharing() {
        LightSharing::Tree { branches: true, .. } if !lines.is_empty() => {
            (tree.0, tree.1, lines.start + 1)
        }
        _ => tree,
    }
}

/// Occupies `lines` for a light tree and returns whether no other tree occupies one of them.
fn occupy_for_tree(
    taken: &mut BTreeMap<u32, (u32, TreeLight)>,
    mut lines: Range<u32>,
    owner: TreeLight,
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
    let light = hash(light);
    let high = u128::from(hash(ends ^ light ^ 0x9e37_79b9_7f4a_7c15));
    high << 64 | u128::from(hash(ends ^ light.rotate_left(32)))
}
