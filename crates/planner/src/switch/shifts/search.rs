//! Sequences of settings of shifts that take little time.
//!
//! For each number of settings the family's bound says with how many slots, and above which time.
//! Numbers are tried in the order of their bounds, until these are above the best time found.
//!
//! A number of settings and slots is tried thus: on a switch the shifts begin as the multiples 1,
//! ..., a_i of a_1 + 1 times ... times a_(i - 1) + 1, as few groups of them as reach all ranks
//! (digits of a number), on a grid as all shifts in turn; and with what work is left as numbers
//! drawn at random. Then shift after shift is replaced by that with which the hops are fewest,
//! until none helps. As shifts commute, all other settings may come first: their hops are counted
//! once for all values of the shift.
//!
//! A tree by which something of every rank spreads ([`Spread`]) only needs shifts that reach all
//! ranks, in few slots.

use std::ops::Range;

use rand::RngExt;
use rand_pcg::Pcg64;

use super::group::{Reach, Sequence};
use super::spread::Spread;
use super::ways::{Price, Slots, Ways};
use opticoll_base::interrupt;
use opticoll_bounds::circuit_switch::fewest_hops;
use opticoll_bounds::growth;

/// Maximum work of a search, in numbers added and compared: about a second's.
const MAX_WORK: u64 = 1 << 31;

/// The share of it for a number of slots in which something spreads, of which there are a few.
const OF_SPREAD: u64 = MAX_WORK / 32;

/// Maximum number of sequences drawn at random for a number of settings.
const MAX_DRAWN: u32 = 128;

/// Maximum work of the ways of sequences, in ranks squared times slots.
const MAX_BALANCED: u64 = 1 << 26;

/// A number of settings and of slots, with the time that no plan with them goes below, and the
/// fewest hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    least: u64,
    settings: u64,
    slots: u64,
    hops: u64,
}

/// A search for collectives of one size on one machine.
pub(super) struct Search<'a> {
    price: &'a Price,
    ranks: u64,
    /// Ports that are set.
    ports: usize,
    most_transfers: u64,
    most_work: u64,
    work: u64,
    random: Pcg64,
    least: u64,
    /// Sequences with their estimated times.
    sequences: Vec<(u64, Sequence)>,
}

impl<'a> Search<'a> {
    pub(super) fn new(price: &'a Price, most_transfers: u64) -> Search<'a> {
        let ranks = price.group.ranks();
        Search {
            price,
            ranks: ranks.into(),
            ports: match price.most_slots {
                1 => price.ports.len(),
                _ => price.ports.len().min(ranks as usize - 1),
            },
            most_transfers,
            most_work: MAX_WORK,
            work: 0,
            random: Pcg64::new(ranks.into(), 0),
            least: u64::MAX,
            sequences: Vec::new(),
        }
    }

    /// Returns the best sequence found for blocks that all differ, with its ways.
    pub(super) fn best(mut self) -> Option<(Sequence, Ways)> {
        let mut shapes = self.shapes();
        shapes.sort();
        let mut best = *shapes.first()?;
        for shape in shapes {
            // On grids estimates are far below times, for planes are not as busy as one another.
            // The other half of the work is for the best of them.
            let is_slower = shape.least >= self.least && self.price.most_slots > 1;
            if is_slower || self.work > self.most_work / 2 {
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
        // An estimate is below the time where ports are not as busy as one another.
        let mut best: Option<(u64, Sequence, Ways)> = None;
        let mut balanced = 0;
        for (estimate, sequence) in self.sequences {
            let is_enough = |(time, ..): &(u64, _, _)| estimate >= *time || balanced > MAX_BALANCED;
            if best.as_ref().is_some_and(is_enough) {
                break;
            }
            if let Some(ways) = Ways::of(&sequence, self.price) {
                balanced += self.ranks.pow(2) * u64::from(ways.slots);
                let time = ways.time(self.price);
                if best.as_ref().is_none_or(|(least, ..)| time < *least) {
                    best = Some((time, sequence, ways));
                }
            }
        }
        best.map(|(_, sequence, ways)| (sequence, ways))
    }

    /// Returns the shifts of one setting with the fewest hops found, whatever the slots.
    pub(super) fn fewest_hops(mut self) -> Option<Vec<u32>> {
        let (ranks, ports) = (self.ranks, self.ports as u64);
        let shape = Shape {
            least: 0,
            settings: 1,
            slots: ranks - 1,
            hops: u64::try_from(fewest_hops(ranks - 1, ports, 1, ranks - 1)?).ok()?,
        };
        // Powers of the ports-th root of the ranks.
        let root = (ranks as f64).powf(1.0 / ports as f64);
        let power = |port: u64| (root.powi(port as i32) as u32).clamp(1, ranks as u32 - 1);
        let mut starts = vec![Sequence(vec![(0..ports).map(power).collect()])];
        starts.extend((0..MAX_DRAWN).map(|_| self.draw(shape)));
        let mut best: Option<(u64, Vec<u32>)> = None;
        for mut sequence in starts {
            if self.work > self.most_work && best.is_some() {
                break;
            }
            self.descend(&mut sequence, shape);
            if let Some(Slots { hops, .. }) = Slots::of(&sequence, self.price) {
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

    /// Returns the sequence by whose tree something of every rank spreads in the least time found,
    /// with that time.
    pub(super) fn best_spread(mut self) -> Option<(Sequence, u64)> {
        let lanes = self.price.lanes();
        let least_load = (self.ranks - 1).div_ceil(lanes);
        let mut best: Option<(u64, Sequence)> = None;
        for slots in growth(self.ranks, lanes)..=self.partners() {
            let least = self.price.time(slots, slots, least_load);
            if best.as_ref().is_some_and(|(time, _)| *time <= least) {
                break;
            }
            let shape = Shape {
                least,
                settings: slots,
                slots,
                hops: u64::MAX,
            };
            (self.work, self.most_work) = (0, OF_SPREAD);
            for drawn in 0..=MAX_DRAWN {
                let mut sequence = match drawn {
                    0 => self.in_turn(slots),
                    _ => self.draw(shape),
                };
                self.descend(&mut sequence, shape);
                if let Some(spread) = Spread::of(self.price.group, &sequence) {
                    let time = self.price.time(slots, slots, spread.load());
                    if best.as_ref().is_none_or(|(least, _)| time < *least) {
                        best = Some((time, sequence));
                    }
                    if time <= least {
                        break;
                    }
                }
                if self.work > self.most_work {
                    break;
                }
            }
        }
        best.map(|(time, sequence)| (sequence, time))
    }

    /// Returns the number of ranks to which some port has a circuit.
    fn partners(&self) -> u64 {
        let ports = self.price.ports.iter().map(|port| u64::from(port.most));
        match self.price.most_slots {
            1 => ports.sum(),
            _ => self.ranks - 1,
        }
    }

    /// Returns, by the number of settings, the number of slots with which the bound is least.
    fn shapes(&self) -> Vec<Shape> {
        let others = self.ranks - 1;
        let has_one_slot = self.price.most_slots == 1;
        // Ranks that share no switch of a grid are two hops apart.
        let least_hops = 2 * others - self.partners();
        let longest = self.price.ports.iter().map(|port| port.most).max();
        let enough = match has_one_slot {
            // All shifts in turn, and two slots for those that meet.
            true => self.partners().min(u64::from(longest.unwrap_or(0)) + 2),
            false => others.div_ceil(self.ports as u64),
        };
        let lanes = self.price.lanes().min(self.ports as u64);
        let most = self.price.estimate(enough, enough, least_hops);
        let mut shapes = Vec::new();
        for settings in 1..=enough {
            interrupt::check();
            if self.price.estimate(settings, settings, 0) > most {
                break;
            }
            let mut best: Option<Shape> = None;
            let mut fewest = u128::MAX;
            let hops_in = |slots: u64| fewest_hops(others, lanes, settings, slots);
            let numbers = match has_one_slot {
                true => settings..settings + 1,
                false => settings..self.ranks,
            };
            for slots in first_that(numbers, |slots| hops_in(slots).is_some()) {
                interrupt::check();
                let latencies = self.price.estimate(settings, slots, 0);
                if best.is_some_and(|best| latencies >= best.least) {
                    break;
                }
                let Some(hops) = hops_in(slots) else {
                    continue;
                };
                // More slots do not help any more.
                if hops == fewest {
                    break;
                }
                fewest = hops;
                let hops = (hops as u64).max(least_hops);
                let shape = Shape {
                    least: self.price.estimate(settings, slots, hops),
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
                shape.hops.saturating_mul(self.ranks) <= self.most_transfers && once <= MAX_WORK
            };
            shapes.extend(best.filter(fits));
        }
        shapes
    }

    /// Tries regular shifts, or so many sequences drawn at random.
    fn try_shape(&mut self, shape: Shape, drawn: u32) {
        let starts = match drawn {
            0 if self.price.most_slots == 1 => vec![self.in_turn(shape.settings)],
            0 => vec![self.digits(shape)],
            _ => (0..drawn).map(|_| self.draw(shape)).collect(),
        };
        for mut sequence in starts {
            if self.work > self.most_work {
                break;
            }
            self.descend(&mut sequence, shape);
            let Some(Slots { of_setting, hops }) = Slots::of(&sequence, self.price) else {
                continue;
            };
            let slots = of_setting.iter().map(|slots| u64::from(*slots)).sum();
            let time = self.price.estimate(shape.settings, slots, hops);
            if hops.saturating_mul(self.ranks) <= self.most_transfers {
                self.least = self.least.min(time);
                self.sequences.push((time, sequence));
            }
        }
    }

    /// Returns multiples of prefix products: one of each group for a digit.
    fn digits(&self, shape: Shape) -> Sequence {
        let all = shape.settings * self.ports as u64;
        let often = shape.slots / shape.settings;
        let of_groups = |groups: u64| {
            (0..groups).map(move |group| all / groups + u64::from(group < all % groups))
        };
        let reached = |groups: u64| {
            let ranges = of_groups(groups).map(|multiples| multiples.saturating_mul(often) + 1);
            ranges.fold(1, u64::saturating_mul) >= self.ranks
        };
        let groups = (1..all).find(|groups| reached(*groups)).unwrap_or(all);
        let mut shifts = Vec::with_capacity(all as usize);
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

    /// Returns all shifts of each port in turn, each port one ahead of the one before.
    fn in_turn(&self, settings: u64) -> Sequence {
        let of_setting = |setting: u32| {
            let ports = (0..).zip(&self.price.ports);
            let shift = ports.map(|(ahead, port)| match port.most {
                0 => 0,
                most => ((setting + ahead) % most + 1) * port.unit,
            });
            shift.collect()
        };
        Sequence((0..settings as u32).map(of_setting).collect())
    }

    fn draw(&mut self, shape: Shape) -> Sequence {
        let ports = &self.price.ports[..self.ports];
        let of_setting = |_| {
            let shift = ports.iter().map(|port| match port.most {
                0 => 0,
                most => self.random.random_range(1..=most) * port.unit,
            });
            shift.collect()
        };
        Sequence((0..shape.settings).map(of_setting).collect())
    }

    /// Replaces shift after shift by the best.
    fn descend(&mut self, sequence: &mut Sequence, shape: Shape) {
        let slots: Vec<u32> = (0..shape.settings)
            .map(|setting| {
                let (each, longer) = (shape.slots / shape.settings, shape.slots % shape.settings);
                (each + u64::from(setting < longer)) as u32
            })
            .collect();
        let mut scratch = [(); 2].map(|()| Reach::of_none(self.price.group));
        let mut fewest = u64::MAX;
        let mut unchanged = 0;
        let places: Vec<(usize, usize)> = (0..sequence.0.len())
            .flat_map(|setting| (0..self.ports).map(move |port| (setting, port)))
            .collect();
        for &(setting, port) in places.iter().cycle() {
            let mut before = Reach::of_none(self.price.group);
            for (other, (shifts, slots)) in sequence.0.iter().zip(&slots).enumerate() {
                if other != setting {
                    before.after(shifts, *slots, &mut scratch);
                    std::mem::swap(&mut before, &mut scratch[0]);
                }
            }
            let shifts = &mut sequence.0[setting];
            let own = shifts[port];
            before.after(shifts, slots[setting], &mut scratch);
            fewest = fewest.min(scratch[0].sum());
            let is_enough = fewest <= shape.hops && scratch[0].is_complete();
            if is_enough || unchanged == places.len() || self.work > self.most_work {
                return;
            }
            let mut best = own;
            let of_port = self.price.ports[port];
            for shift in (1..=of_port.most).map(|units| units * of_port.unit) {
                interrupt::check();
                if self.work > self.most_work {
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
            unchanged = if best == own { unchanged + 1 } else { 0 };
        }
    }
}

/// Returns the part of a range that begins with the first number for which `holds`, which then
/// holds for all after it.
fn first_that(range: Range<u64>, holds: impl Fn(u64) -> bool) -> Range<u64> {
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
