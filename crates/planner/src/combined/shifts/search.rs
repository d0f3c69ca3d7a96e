//! Search for sequences of settings of shifts that take little time.
//!
//! For each number of settings theorem A4 gives a lower bound on the hops, and with it the best
//! number of slots and a lower bound on the time. The search tries the numbers of settings in the
//! order of these bounds until they exceed the best time found.
//!
//! A try starts from regular shifts, on a switch the digits of a number system: multiples 1, ...,
//! a_i of the product (a_1 + 1) ... (a_(i - 1) + 1), with the fewest digits that reach all ranks;
//! on a grid all shifts in turn. Work that remains goes into random starts. Then the search
//! replaces one shift after another by the shift with the fewest hops, until none helps. Shifts
//! commute, so all other settings may be applied first: their hops are counted once for all values
//! of the shift.
//!
//! The tree of an all_gather ([`Spread`]) only needs shifts that reach all ranks in few slots.

use std::ops::Range;

use rand::RngExt;
use rand_pcg::Pcg64;

use super::group::{Reach, Sequence};
use super::model::ShiftModel;
use super::routes::{Routes, Slots};
use super::spread::Spread;
use opticoll_base::interrupt;
use opticoll_bounds::circuit_switch;
use opticoll_bounds::growth;

/// Maximum work of a search, in numbers added and compared; takes about one second. More work finds
/// better sequences.
const MAX_WORK: u64 = 1 << 31;

/// Maximum work for one number of slots of a [`Spread`], in numbers added and compared. A search
/// tries a few numbers of slots.
const MAX_SPREAD_WORK: u64 = MAX_WORK / 32;

/// Maximum number of random sequences for a number of settings.
const MAX_DRAWN: u32 = 128;

/// Maximum work of the routes of sequences, in ranks squared times slots.
const MAX_ROUTE_WORK: u64 = 1 << 26;

/// A number of settings and of slots, with a lower bound in picoseconds on the time of any plan
/// that has them, and the fewest hops of the blocks of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    least: u64,
    settings: u64,
    slots: u64,
    hops: u64,
}

/// A search for one collective of one size on one machine.
pub(super) struct Search<'a> {
    model: &'a ShiftModel,
    ranks: u64,
    /// Number of ports that have shifts.
    ports: usize,
    max_transfers: u64,
    max_work: u64,
    work: u64,
    random: Pcg64,
    least: u64,
    /// Sequences with their estimated times in picoseconds.
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
            least: u64::MAX,
            sequences: Vec::new(),
        }
    }

    /// Returns the best sequence for an all_to_all, with its routes.
    pub(super) fn best(mut self) -> Option<(Sequence, Routes)> {
        let mut shapes = self.shapes();
        shapes.sort();
        let mut best = *shapes.first()?;
        for shape in shapes {
            // Estimates on grids are far below times, because one plane is busier than the other.
            // Half of the work is left for the best shape.
            let is_slower = shape.least >= self.least && !self.model.is_grid;
            if is_slower || self.work > self.max_work / 2 {
                break;
            }
            let before = self.least;
            self.try_shape(shape, 0);
            if self.least < before {
                best = shape;
            }
        }
        if best.least < self.least {
            self.try_shape(best, MAX_DRAWN);
        }
        self.sequences.sort();
        self.sequences.dedup();
        // An estimate is below the time if some port is busier than others.
        let mut best: Option<(u64, Sequence, Routes)> = None;
        let mut route_work = 0;
        for (estimate, sequence) in self.sequences {
            let is_enough =
                |(time, ..): &(u64, _, _)| estimate >= *time || route_work > MAX_ROUTE_WORK;
            if best.as_ref().is_some_and(is_enough) {
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

    /// Returns the shifts of one setting with the fewest hops found, however many
    /// slots they take.
    pub(super) fn best_single_setting(mut self) -> Option<Vec<u32>> {
        let (ranks, ports) = (self.ranks, self.ports as u64);
        let shape = Shape {
            least: 0,
            settings: 1,
            slots: ranks - 1,
            hops: u64::try_from(circuit_switch::fewest_hops(ranks - 1, ports, 1, ranks - 1)?)
                .ok()?,
        };
        // Powers of the root of the number of ranks, with as many factors as ports.
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

    /// Returns the sequence whose tree takes the least time found for an all_gather, and this time
    /// in picoseconds.
    pub(super) fn fastest_spread(mut self) -> Option<(Sequence, u64)> {
        let lanes = self.model.lanes();
        let least_load = (self.ranks - 1).div_ceil(lanes);
        let mut best: Option<(u64, Sequence)> = None;
        for slots in growth(self.ranks, lanes)..=self.partners() {
            let least = self.model.time(slots, slots, least_load);
            if best.as_ref().is_some_and(|(time, _)| *time <= least) {
                break;
            }
            let shape = Shape {
                least,
                settings: slots,
                slots,
                hops: u64::MAX,
            };
            (self.work, self.max_work) = (0, MAX_SPREAD_WORK);
            for drawn in 0..=MAX_DRAWN {
                let mut sequence = match drawn {
                    0 => self.consecutive_shifts(slots),
                    _ => self.draw(shape),
                };
                self.descend(&mut sequence, shape);
                if let Some(spread) = Spread::of(self.model.group, &sequence) {
                    let time = self.model.time(slots, slots, spread.load());
                    if best.as_ref().is_none_or(|(least, _)| time < *least) {
                        best = Some((time, sequence));
                    }
                    if time <= least {
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

    /// Returns the number of ranks to which some port can connect a rank.
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

    /// Returns, for each number of settings, the number of slots with the least bound.
    fn shapes(&self) -> Vec<Shape> {
        let others = self.ranks - 1;
        let is_grid = self.model.is_grid;
        // Ranks that share no switch of a grid are two hops apart.
        let least_hops = 2 * others - self.partners();
        let longest = self.model.ports.iter().map(|port| port.max_units).max();
        let enough = match is_grid {
            // All shifts in turn, and two slots for the rank pairs that differ in row and column.
            true => self.partners().min(u64::from(longest.unwrap_or(0)) + 2),
            false => others.div_ceil(self.ports as u64),
        };
        let lanes = self.model.lanes().min(self.ports as u64);
        let max_time = self.model.estimate(enough, enough, least_hops);
        let mut shapes = Vec::new();
        for settings in 1..=enough {
            interrupt::check();
            if self.model.estimate(settings, settings, 0) > max_time {
                break;
            }
            let mut best: Option<Shape> = None;
            let mut fewest = u128::MAX;
            let hops_in = |slots: u64| circuit_switch::fewest_hops(others, lanes, settings, slots);
            let numbers = match is_grid {
                true => settings..settings + 1,
                false => settings..self.ranks,
            };
            for slots in from_first(numbers, |slots| hops_in(slots).is_some()) {
                interrupt::check();
                let latencies = self.model.estimate(settings, slots, 0);
                if best.is_some_and(|best| latencies >= best.least) {
                    break;
                }
                let Some(hops) = hops_in(slots) else {
                    continue;
                };
                // More slots save no more hops.
                if hops == fewest {
                    break;
                }
                fewest = hops;
                let hops = (hops as u64).max(least_hops);
                let shape = Shape {
                    least: self.model.estimate(settings, slots, hops),
                    settings,
                    slots,
                    hops,
                };
                if best.is_none_or(|best| shape < best) {
                    best = Some(shape);
                }
            }
            let fits = |shape: &Shape| {
                let once = shape.settings.saturating_mul(shape.slots) * self.ranks;
                shape.hops.saturating_mul(self.ranks) <= self.max_transfers && once <= MAX_WORK
            };
            shapes.extend(best.filter(fits));
        }
        shapes
    }

    /// Tries regular shifts (`drawn` = 0), or `drawn` random sequences.
    fn try_shape(&mut self, shape: Shape, drawn: u32) {
        let starts = match drawn {
            0 if self.model.is_grid => vec![self.consecutive_shifts(shape.settings)],
            0 => vec![self.digits(shape)],
            _ => (0..drawn).map(|_| self.draw(shape)).collect(),
        };
        for mut sequence in starts {
            if self.work > self.max_work {
                break;
            }
            self.descend(&mut sequence, shape);
            let Some(Slots { per_setting, hops }) = Slots::of(&sequence, self.model) else {
                continue;
            };
            let slots = per_setting.iter().map(|slots| u64::from(*slots)).sum();
            let time = self.model.estimate(shape.settings, slots, hops);
            if hops.saturating_mul(self.ranks) <= self.max_transfers {
                self.least = self.least.min(time);
                self.sequences.push((time, sequence));
            }
        }
    }

    /// Returns multiples of prefix products, a group of them for each digit of a number system.
    fn digits(&self, shape: Shape) -> Sequence {
        let count = shape.settings * self.ports as u64;
        let often = shape.slots / shape.settings;
        let of_groups = |groups: u64| {
            (0..groups).map(move |group| count / groups + u64::from(group < count % groups))
        };
        let reached = |groups: u64| {
            let ranges = of_groups(groups).map(|multiples| multiples.saturating_mul(often) + 1);
            ranges.fold(1, u64::saturating_mul) >= self.ranks
        };
        let groups = (1..count).find(|groups| reached(*groups)).unwrap_or(count);
        let mut shifts = Vec::with_capacity(count as usize);
        let mut unit = 1u64;
        for multiples in of_groups(groups) {
            for multiple in 1..=multiples {
                let shift = multiple * unit % self.ranks;
                shifts.push(shift.max(1) as u32);
            }
            unit = unit * (multiples * often + 1) % self.ranks;
        }
        let settings = shifts.chunks(self.ports);
        Sequence(settings.map(<[u32]>::to_vec).collect())
    }

    /// Returns all shifts of each port in turn; each port is one shift ahead of the port before.
    fn consecutive_shifts(&self, settings: u64) -> Sequence {
        let of_setting = |setting: u32| {
            let ports = (0..).zip(&self.model.ports);
            let shift = ports.map(|(ahead, port)| match port.max_units {
                0 => 0,
                max_units => ((setting + ahead) % max_units + 1) * port.unit,
            });
            shift.collect()
        };
        Sequence((0..settings as u32).map(of_setting).collect())
    }

    fn draw(&mut self, shape: Shape) -> Sequence {
        let ports = &self.model.ports[..self.ports];
        let of_setting = |_| {
            let shift = ports.iter().map(|port| match port.max_units {
                0 => 0,
                max_units => self.random.random_range(1..=max_units) * port.unit,
            });
            shift.collect()
        };
        Sequence((0..shape.settings).map(of_setting).collect())
    }

    /// Replaces one shift after another by the best shift, until none helps or the work is spent.
    fn descend(&mut self, sequence: &mut Sequence, shape: Shape) {
        let slots: Vec<u32> = (0..shape.settings)
            .map(|setting| {
                let (each, longer) = (shape.slots / shape.settings, shape.slots % shape.settings);
                (each + u64::from(setting < longer)) as u32
            })
            .collect();
        let mut scratch = [(); 2].map(|()| Reach::initial(self.model.group));
        let mut fewest = u64::MAX;
        let mut unchanged = 0;
        let places: Vec<(usize, usize)> = (0..sequence.0.len())
            .flat_map(|setting| (0..self.ports).map(move |port| (setting, port)))
            .collect();
        for &(setting, port) in places.iter().cycle() {
            let mut before = Reach::initial(self.model.group);
            for (other, (shifts, slots)) in sequence.0.iter().zip(&slots).enumerate() {
                if other != setting {
                    before.after(shifts, *slots, &mut scratch);
                    std::mem::swap(&mut before, &mut scratch[0]);
                }
            }
            let shifts = &mut sequence.0[setting];
            let previous = shifts[port];
            before.after(shifts, slots[setting], &mut scratch);
            fewest = fewest.min(scratch[0].sum());
            let is_enough = fewest <= shape.hops && scratch[0].is_complete();
            if is_enough || unchanged == places.len() || self.work > self.max_work {
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
                let used = before.after(shifts, slots[setting], &mut scratch);
                let passes = 2 + u64::from(used) * self.ports as u64;
                self.work += self.ranks * passes;
                let hops = scratch[0].sum();
                if hops < fewest {
                    (fewest, best) = (hops, shift);
                }
            }
            sequence.0[setting][port] = best;
            unchanged = if best == previous { unchanged + 1 } else { 0 };
        }
    }
}

/// Returns the part of a range from the first number for which `holds`; the condition must hold for
/// all numbers after it.
fn from_first(range: Range<u64>, holds: impl Fn(u64) -> bool) -> Range<u64> {
    let Range { mut start, end } = range;
    let mut until = end;
    while start < until {
        let middle = start + (until - start) / 2;
        match holds(middle) {
            true => until = middle,
            false => start = middle + 1,
        }
    }
    start..end
}
