//! Search for fast sequences of configurations of shifts.
//!
//! For each number of configurations, theorem A4 implies a lower bound on the number of hops. This
//! bound determines the best number of slots and a lower bound on the time. The search tries the
//! numbers of configurations in ascending order of the bound on the time, until the bound exceeds
//! the time of the fastest sequence so far.
//!
//! For each number of configurations, the search starts from regular shifts. On a switch, the
//! shifts are the digits of a number system: the multiples 1, ..., a_i of the product (a_1 + 1) ...
//! (a_(i - 1) + 1), with the fewest digits that reach all ranks. On a grid, the search starts from
//! all shifts in turn. If the limit of work allows, the search also starts from random shifts. From
//! each start, the search replaces one shift after another by the shift with the fewest hops, until
//! no replacement helps. Shifts commute, so the hops of all other configurations are computed once
//! for all values of a shift.
//!
//! For the tree of an all_gather ([`ShiftTree`]), shifts only need to reach all ranks in few slots.

use std::ops::Range;

use rand::RngExt;
use rand_pcg::Pcg64;

use super::group::{HopCounts, Sequence};
use super::model::ShiftModel;
use super::routes::{Routes, Slots};
use super::spread::ShiftTree;
use opticoll_base::interrupt;
use opticoll_bounds::circuit_switch;
use opticoll_bounds::growth;

/// Maximum number of additions and comparisons of a search, which takes about one second.
const MAX_WORK: u64 = 1 << 31;

/// Maximum number of additions and comparisons in the search for the fastest [`ShiftTree`], for
/// each number of slots.
const MAX_TREE_WORK: u64 = MAX_WORK / 32;

/// Maximum number of random sequences for one number of configurations.
const MAX_DRAWN: u32 = 128;

/// Maximum work of the search for routes: the sum, over the sequences, of the number of ranks
/// squared times the number of slots.
const MAX_ROUTE_WORK: u64 = 1 << 26;

/// Numbers of configurations, slots and hops that the search tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    /// Lower bound on the time of a plan with this shape, in picoseconds.
    min_time: u64,
    configurations: u64,
    slots: u64,
    /// Lower bound on the total number of hops of all blocks that a rank sends.
    hops: u64,
}

pub(super) struct Search<'a> {
    model: &'a ShiftModel,
    ranks: u64,
    /// Number of ports that the sequences use.
    ports: usize,
    max_transfers: u64,
    /// Maximum number of additions and comparisons.
    max_work: u64,
    work: u64,
    random: Pcg64,
    /// Shortest estimated time of all sequences so far, in picoseconds.
    min_time: u64,
    sequences: Vec<(u64, Sequence)>,
}

impl<'a> Search<'a> {
    pub(super) fn new(model: &'a ShiftModel, max_transfers: u64) -> Search<'a> {
        let ranks = model.group.ranks();
        Search {
            model,
            ranks: ranks.into(),
            ports: match model.is_grid {
                true => model.ports.len(),
                false => model.ports.len().min(ranks as usize - 1),
            },
            max_transfers,
            max_work: MAX_WORK,
            work: 0,
            random: Pcg64::new(ranks.into(), 0),
            min_time: u64::MAX,
            sequences: Vec::new(),
        }
    }

    /// Returns the fastest sequence for an all_to_all, with the routes of the blocks.
    pub(super) fn fastest(mut self) -> Option<(Sequence, Routes)> {
        let mut shapes = self.shapes();
        shapes.sort();
        let mut best = *shapes.first()?;
        for shape in shapes {
            // On grids, estimates are far below the times, because one plane has a higher load.
            // Half of the work is reserved for random sequences of the best shape.
            let is_slower = shape.min_time >= self.min_time && !self.model.is_grid;
            if is_slower || self.work > self.max_work / 2 {
                break;
            }
            let before = self.min_time;
            self.try_shape(shape, 0);
            if self.min_time < before {
                best = shape;
            }
        }
        if best.min_time < self.min_time {
            self.try_shape(best, MAX_DRAWN);
        }
        self.sequences.sort();
        self.sequences.dedup();
        let mut best: Option<(u64, Sequence, Routes)> = None;
        let mut route_work = 0;
        for (estimate, sequence) in self.sequences {
            let is_final =
                |(time, ..): &(u64, _, _)| estimate >= *time || route_work > MAX_ROUTE_WORK;
            if best.as_ref().is_some_and(is_final) {
                break;
            }
            if let Some(routes) = Routes::of(&sequence, self.model) {
                route_work += self.ranks.pow(2) * u64::from(routes.slots);
                let time = routes.time(self.model);
                if best.as_ref().is_none_or(|(least, ..)| time < *least) {
                    best = Some((time, sequence, routes));
                }
            }
        }
        best.map(|(_, sequence, routes)| (sequence, routes))
    }

    /// Returns the configuration with the fewest hops, if a plan uses this configuration only: its
    /// shifts in ascending order. The number of slots is not limited.
    pub(super) fn best_single_configuration(mut self) -> Option<Vec<u32>> {
        let (ranks, ports) = (self.ranks, self.ports as u64);
        let shape = Shape {
            min_time: 0,
            configurations: 1,
            slots: ranks - 1,
            hops: u64::try_from(circuit_switch::fewest_hops(ranks - 1, ports, 1, ranks - 1)?)
                .ok()?,
        };
        // With d ports, the first sequence has the powers of the d-th root of the number of ranks.
        let root = (ranks as f64).powf(1.0 / ports as f64);
        let power = |port: u64| (root.powi(port as i32) as u32).clamp(1, ranks as u32 - 1);
        let mut starts = vec![Sequence(vec![(0..ports).map(power).collect()])];
        starts.extend((0..MAX_DRAWN).map(|_| self.draw(shape)));
        let mut best: Option<(u64, Vec<u32>)> = None;
        for mut sequence in starts {
            if self.work > self.max_work && best.is_some() {
                break;
            }
            self.descend(&mut sequence, shape);
            if let Some(Slots { hops, .. }) = Slots::of(&sequence, self.model) {
                let shifts = sequence.0.swap_remove(0);
                if best.as_ref().is_none_or(|(fewest, _)| hops < *fewest) {
                    best = Some((hops, shifts));
                }
            }
        }
        best.map(|(_, mut shifts)| {
            shifts.sort_unstable();
            shifts
        })
    }

    /// Returns the sequence with the fastest tree for an all_gather, and the time in picoseconds.
    pub(super) fn fastest_tree(mut self) -> Option<(Sequence, u64)> {
        let lanes = self.model.usable_ports();
        let min_load = (self.ranks - 1).div_ceil(lanes);
        let mut best: Option<(u64, Sequence)> = None;
        for slots in growth(self.ranks, lanes)..=self.partners() {
            let min_time = self.model.time(slots, slots, min_load);
            if best.as_ref().is_some_and(|(time, _)| *time <= min_time) {
                break;
            }
            let shape = Shape {
                min_time,
                configurations: slots,
                slots,
                hops: u64::MAX,
            };
            (self.work, self.max_work) = (0, MAX_TREE_WORK);
            for drawn in 0..=MAX_DRAWN {
                let mut sequence = match drawn {
                    0 => self.consecutive_shifts(slots),
                    _ => self.draw(shape),
                };
                self.descend(&mut sequence, shape);
                if let Some(tree) = ShiftTree::of(self.model.group, &sequence) {
                    let time = self.model.time(slots, slots, tree.load());
                    if best.as_ref().is_none_or(|(least, _)| time < *least) {
                        best = Some((time, sequence));
                    }
                    if time <= min_time {
                        break;
                    }
                }
                if self.work > self.max_work {
                    break;
                }
            }
        }
        best.map(|(time, sequence)| (sequence, time))
    }

    /// Returns the number of ranks to which a rank can have a direct circuit.
    fn partners(&self) -> u64 {
        let ports = self
            .model
            .ports
            .iter()
            .map(|port| u64::from(port.max_units));
        match self.model.is_grid {
            true => ports.sum(),
            false => self.ranks - 1,
        }
    }

    /// Returns, for each number of configurations, the shape with the smallest lower bound on the
    /// time.
    fn shapes(&self) -> Vec<Shape> {
        let others = self.ranks - 1;
        let is_grid = self.model.is_grid;
        // A pair of ranks without a direct circuit needs two hops.
        let min_hops = 2 * others - self.partners();
        let longest = self.model.ports.iter().map(|port| port.max_units).max();
        let max_configurations = match is_grid {
            // All shifts in turn, and two slots for pairs of ranks in different rows and columns.
            true => self.partners().min(u64::from(longest.unwrap_or(0)) + 2),
            false => others.div_ceil(self.ports as u64),
        };
        let lanes = self.model.usable_ports().min(self.ports as u64);
        let max_time = self
            .model
            .estimate(max_configurations, max_configurations, min_hops);
        let mut shapes = Vec::new();
        for configurations in 1..=max_configurations {
            interrupt::check();
            if self.model.estimate(configurations, configurations, 0) > max_time {
                break;
            }
            let mut best: Option<Shape> = None;
            let mut fewest = u128::MAX;
            let hops_in =
                |slots: u64| circuit_switch::fewest_hops(others, lanes, configurations, slots);
            let numbers = match is_grid {
                true => configurations..configurations + 1,
                false => configurations..self.ranks,
            };
            for slots in from_first(numbers, |slots| hops_in(slots).is_some()) {
                interrupt::check();
                let latencies = self.model.estimate(configurations, slots, 0);
                if best.is_some_and(|best| latencies >= best.min_time) {
                    break;
                }
                let Some(hops) = hops_in(slots) else {
                    continue;
                };
                if hops == fewest {
                    break;
                }
                fewest = hops;
                let hops = (hops as u64).max(min_hops);
                let shape = Shape {
                    min_time: self.model.estimate(configurations, slots, hops),
                    configurations,
                    slots,
                    hops,
                };
                if best.is_none_or(|best| shape < best) {
                    best = Some(shape);
                }
            }
            let fits = |shape: &Shape| {
                let once = shape.configurations.saturating_mul(shape.slots) * self.ranks;
                shape.hops.saturating_mul(self.ranks) <= self.max_transfers && once <= MAX_WORK
            };
            shapes.extend(best.filter(fits));
        }
        shapes
    }

    /// Searches for sequences of a shape, starting from regular shifts (`drawn` = 0) or from
    /// `drawn` random sequences. Adds the results to `self.sequences`.
    fn try_shape(&mut self, shape: Shape, drawn: u32) {
        let starts = match drawn {
            0 if self.model.is_grid => vec![self.consecutive_shifts(shape.configurations)],
            0 => vec![self.digits(shape)],
            _ => (0..drawn).map(|_| self.draw(shape)).collect(),
        };
        for mut sequence in starts {
            if self.work > self.max_work {
                break;
            }
            self.descend(&mut sequence, shape);
            let Some(Slots { counts, hops }) = Slots::of(&sequence, self.model) else {
                continue;
            };
            let slots = counts.iter().map(|slots| u64::from(*slots)).sum();
            let time = self.model.estimate(shape.configurations, slots, hops);
            if hops.saturating_mul(self.ranks) <= self.max_transfers {
                self.min_time = self.min_time.min(time);
                self.sequences.push((time, sequence));
            }
        }
    }

    /// Returns a sequence of regular shifts: multiples of 1, then multiples of the first base of a
    /// number system, then multiples of the product of the first two bases, and so on.
    fn digits(&self, shape: Shape) -> Sequence {
        let count = shape.configurations * self.ports as u64;
        let slots_each = shape.slots / shape.configurations;
        let multiples_by_digit = |digits: u64| {
            (0..digits).map(move |digit| count / digits + u64::from(digit < count % digits))
        };
        let reaches_all = |digits: u64| {
            let bases = multiples_by_digit(digits)
                .map(|multiples| multiples.saturating_mul(slots_each) + 1);
            bases.fold(1, u64::saturating_mul) >= self.ranks
        };
        let digits = (1..count)
            .find(|digits| reaches_all(*digits))
            .unwrap_or(count);
        let mut shifts = Vec::with_capacity(count as usize);
        let mut unit = 1u64;
        for multiples in multiples_by_digit(digits) {
            for multiple in 1..=multiples {
                let shift = multiple * unit % self.ranks;
                shifts.push(shift.max(1) as u32);
            }
            unit = unit * (multiples * slots_each + 1) % self.ranks;
        }
        let configurations = shifts.chunks(self.ports);
        Sequence(configurations.map(<[u32]>::to_vec).collect())
    }

    /// Returns a sequence in which each port uses all of its shifts in turn. Each port is one shift
    /// ahead of the previous port.
    fn consecutive_shifts(&self, configurations: u64) -> Sequence {
        let shifts_of = |configuration: u32| {
            let ports = (0..).zip(&self.model.ports);
            let shift = ports.map(|(ahead, port)| match port.max_units {
                0 => 0,
                max_units => ((configuration + ahead) % max_units + 1) * port.unit,
            });
            shift.collect()
        };
        Sequence((0..configurations as u32).map(shifts_of).collect())
    }

    fn draw(&mut self, shape: Shape) -> Sequence {
        let ports = &self.model.ports[..self.ports];
        let shifts_of = |_| {
            let shift = ports.iter().map(|port| match port.max_units {
                0 => 0,
                max_units => self.random.random_range(1..=max_units) * port.unit,
            });
            shift.collect()
        };
        Sequence((0..shape.configurations).map(shifts_of).collect())
    }

    /// Improves a sequence by descent: replaces one shift after another by the shift with the
    /// fewest hops, until no replacement helps or the limit of work is reached.
    fn descend(&mut self, sequence: &mut Sequence, shape: Shape) {
        let slots: Vec<u32> = (0..shape.configurations)
            .map(|configuration| {
                let (each, longer) = (
                    shape.slots / shape.configurations,
                    shape.slots % shape.configurations,
                );
                (each + u64::from(configuration < longer)) as u32
            })
            .collect();
        let mut scratch = [(); 2].map(|()| HopCounts::initial(self.model.group));
        let mut fewest = u64::MAX;
        let mut unchanged = 0;
        let places: Vec<(usize, usize)> = (0..sequence.0.len())
            .flat_map(|configuration| (0..self.ports).map(move |port| (configuration, port)))
            .collect();
        for &(configuration, port) in places.iter().cycle() {
            let mut before = HopCounts::initial(self.model.group);
            for (other, (shifts, slots)) in sequence.0.iter().zip(&slots).enumerate() {
                if other != configuration {
                    before.after(shifts, *slots, &mut scratch);
                    std::mem::swap(&mut before, &mut scratch[0]);
                }
            }
            let shifts = &mut sequence.0[configuration];
            let previous = shifts[port];
            before.after(shifts, slots[configuration], &mut scratch);
            fewest = fewest.min(scratch[0].sum());
            let is_optimal = fewest <= shape.hops && scratch[0].is_complete();
            if is_optimal || unchanged == places.len() || self.work > self.max_work {
                return;
            }
            let mut best = previous;
            let of_port = self.model.ports[port];
            for shift in (1..=of_port.max_units).map(|units| units * of_port.unit) {
                interrupt::check();
                if self.work > self.max_work {
                    break;
                }
                shifts[port] = shift;
                let used = before.after(shifts, slots[configuration], &mut scratch);
                let passes = 2 + u64::from(used) * self.ports as u64;
                self.work += self.ranks * passes;
                let hops = scratch[0].sum();
                if hops < fewest {
                    (fewest, best) = (hops, shift);
                }
            }
            sequence.0[configuration][port] = best;
            unchanged = if best == previous { unchanged + 1 } else { 0 };
        }
    }
}

/// Returns the numbers in `range` for which `is_true` returns true. If `is_true` returns true for a
/// number, it must return true for all larger numbers.
fn from_first(range: Range<u64>, is_true: impl Fn(u64) -> bool) -> Range<u64> {
    let Range { mut start, end } = range;
    let mut until = end;
    while start < until {
        let middle = start + (until - start) / 2;
        match is_true(middle) {
            true => until = middle,
            false => start = middle + 1,
        }
    }
    start..end
}
