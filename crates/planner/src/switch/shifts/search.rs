//! Sequences of settings of shifts that take little time.
//!
//! For each number of settings the family's bound says with how many slots, and above which time. Numbers are tried from the one
//! of the least bound on, up and down in strides that become shorter, until their bounds are above the best time found.
//!
//! A number of settings and slots is tried thus: the shifts begin as the multiples 1, ..., a_i of a_1 + 1 times ... times a_(i - 1) + 1, as few
//! groups of them as reach all ranks (digits of a number); and with what work is left as numbers drawn at
//! random. Then shift after shift is replaced by that with which the hops are fewest, until none helps. As shifts
//! commute, all other settings may come first: their hops are counted once for all values of the shift.

use std::collections::BTreeSet;
use std::ops::Range;

use rand::RngExt;
use rand_pcg::Pcg64;

use super::sequence::{Reach, Sequence};
use super::ways::{Price, Slots, Ways};
use opticoll_base::interrupt;
use opticoll_bounds::circuit_switch::fewest_hops;

/// Numbers added and compared in a search: about a second's.
const MOST_WORK: u64 = 1 << 31;

/// The part of it that is spent on numbers of settings; the rest is for the best of them.
const ON_NUMBERS: u64 = MOST_WORK / 2;

/// Sequences drawn at random for a number of settings, at most.
const MOST_DRAWN: u32 = 128;

/// A number of settings and of slots, with the time that no plan with them goes below, and the fewest hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    least: u64,
    settings: u64,
    slots: u64,
    hops: u64,
}

/// A sequence with what it is estimated to take.
type Rated = (u64, Sequence);

/// A search for all_to_alls of one size on one switch.
pub(super) struct Search<'a> {
    price: &'a Price<'a>,
    ranks: u32,
    ports: u32,
    most_transfers: u64,
    work: u64,
    random: Pcg64,
    /// Settings and slots that were tried from digits.
    tried: BTreeSet<(u64, u64)>,
    least: u64,
    sequences: Vec<Rated>,
}

impl<'a> Search<'a> {
    pub(super) fn new(price: &'a Price<'a>, most_transfers: u64) -> Search<'a> {
        let ranks = price.switch.ranks;
        Search {
            price,
            ranks,
            ports: price.ports.min(ranks - 1),
            most_transfers,
            work: 0,
            random: Pcg64::new(ranks.into(), 0),
            tried: BTreeSet::new(),
            least: u64::MAX,
            sequences: Vec::new(),
        }
    }

    /// So many of the best found, each with its ways, the best first.
    pub(super) fn best(mut self, most: usize) -> Vec<(Sequence, Ways)> {
        let shapes = self.shapes();
        let Some(start) = (0..shapes.len()).min_by_key(|place| shapes[*place]) else {
            return Vec::new();
        };
        let mut stride = (start / 8).max(1);
        let mut at = start;
        self.try_shape(shapes[at], 0);
        while stride > 0 && self.work < ON_NUMBERS {
            let before = self.least;
            let near = [at.saturating_add(stride), at.wrapping_sub(stride)];
            for place in near.into_iter().filter(|place| *place < shapes.len()) {
                self.try_shape(shapes[place], 0);
                if self.least < before {
                    at = place;
                    break;
                }
            }
            if self.least == before {
                stride /= 2;
            }
        }
        // With slots more, and from other shifts.
        let best = shapes[at];
        for slots in [best.slots + 1, best.slots + 2] {
            self.try_shape(Shape { slots, ..best }, 0);
        }
        for place in [at, at + 1, at.wrapping_sub(1)] {
            if let Some(shape) = shapes.get(place) {
                self.try_shape(*shape, MOST_DRAWN);
            }
        }
        self.sequences.sort_by_key(|(time, _)| *time);
        self.sequences.dedup();
        let sequences = self.sequences.into_iter().take(most);
        let ways = sequences.filter_map(|(_, sequence)| {
            Ways::of(&sequence, self.price).map(|ways| (sequence, ways))
        });
        ways.collect()
    }

    /// The shifts of one setting with the fewest hops found, whatever the slots.
    pub(super) fn fewest_hops(mut self) -> Option<Vec<u32>> {
        let (ranks, ports) = (u64::from(self.ranks), u64::from(self.ports));
        let shape = Shape {
            least: 0,
            settings: 1,
            slots: ranks - 1,
            hops: u64::try_from(fewest_hops(ranks - 1, ports, 1, ranks - 1)?).ok()?,
        };
        // Powers of the ports-th root of the ranks.
        let root = (ranks as f64).powf(1.0 / ports as f64);
        let power = |port: u64| (root.powi(port as i32) as u32).clamp(1, self.ranks - 1);
        let mut starts = vec![Sequence(vec![(0..ports).map(power).collect()])];
        starts.extend((0..MOST_DRAWN).map(|_| self.draw(shape)));
        let mut best: Option<(u64, Vec<u32>)> = None;
        for mut sequence in starts {
            if self.work > MOST_WORK && best.is_some() {
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

    /// By the number of settings: the number of slots with which the bound is least.
    fn shapes(&self) -> Vec<Shape> {
        let (ranks, ports) = (u64::from(self.ranks), u64::from(self.ports));
        let enough = (ranks - 1).div_ceil(ports);
        // A setting for each rank.
        let most = self.price.estimate(enough, enough, ranks - 1);
        let mut shapes = Vec::new();
        for settings in 1..=enough {
            interrupt::check();
            if self.price.estimate(settings, settings, 0) > most {
                break;
            }
            let mut best: Option<Shape> = None;
            let mut fewest = u128::MAX;
            let hops_in = |slots: u64| fewest_hops(ranks - 1, ports, settings, slots);
            for slots in first_that(settings..ranks, |slots| hops_in(slots).is_some()) {
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
                let hops = hops as u64;
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
                let once = shape.settings.saturating_mul(shape.slots) * ranks;
                shape.hops.saturating_mul(ranks) <= self.most_transfers && once <= MOST_WORK
            };
            shapes.extend(best.filter(fits));
        }
        shapes
    }

    /// From digits, or from so many sequences drawn at random.
    fn try_shape(&mut self, shape: Shape, drawn: u32) {
        let is_new = drawn > 0 || self.tried.insert((shape.settings, shape.slots));
        if shape.least >= self.least || !is_new {
            return;
        }
        let starts = match drawn {
            0 => vec![self.digits(shape)],
            _ => (0..drawn).map(|_| self.draw(shape)).collect(),
        };
        for mut sequence in starts {
            if self.work > MOST_WORK {
                break;
            }
            self.descend(&mut sequence, shape);
            let Some(Slots { of_setting, hops }) = Slots::of(&sequence, self.price) else {
                continue;
            };
            let slots = of_setting.iter().map(|slots| u64::from(*slots)).sum();
            let time = self.price.estimate(shape.settings, slots, hops);
            if hops.saturating_mul(self.ranks.into()) <= self.most_transfers {
                self.least = self.least.min(time);
                self.sequences.push((time, sequence));
            }
        }
    }

    /// Multiples of prefix products: one of each group for a digit.
    fn digits(&self, shape: Shape) -> Sequence {
        let all = shape.settings * u64::from(self.ports);
        let often = shape.slots / shape.settings;
        let of_groups = |groups: u64| {
            (0..groups).map(move |group| all / groups + u64::from(group < all % groups))
        };
        let reached = |groups: u64| {
            let ranges = of_groups(groups).map(|multiples| multiples.saturating_mul(often) + 1);
            ranges.fold(1, u64::saturating_mul) >= u64::from(self.ranks)
        };
        let groups = (1..all).find(|groups| reached(*groups)).unwrap_or(all);
        let mut shifts = Vec::with_capacity(all as usize);
        let mut unit = 1u64;
        for multiples in of_groups(groups) {
            for multiple in 1..=multiples {
                let shift = multiple * unit % u64::from(self.ranks);
                shifts.push(shift.max(1) as u32);
            }
            unit = unit * (multiples * often + 1) % u64::from(self.ranks);
        }
        let settings = shifts.chunks(self.ports as usize);
        Sequence(settings.map(<[u32]>::to_vec).collect())
    }

    fn draw(&mut self, shape: Shape) -> Sequence {
        let ranks = self.ranks;
        let mut draw = || self.random.random_range(1..ranks);
        let settings = 0..shape.settings;
        Sequence(
            settings
                .map(|_| (0..self.ports).map(|_| draw()).collect())
                .collect(),
        )
    }

    /// Replaces shift after shift by the best.
    fn descend(&mut self, sequence: &mut Sequence, shape: Shape) {
        let slots: Vec<u32> = (0..shape.settings)
            .map(|setting| {
                let (each, longer) = (shape.slots / shape.settings, shape.slots % shape.settings);
                (each + u64::from(setting < longer)) as u32
            })
            .collect();
        let mut scratch = [(); 2].map(|()| Reach::of_none(self.ranks));
        let mut fewest = u64::MAX;
        let mut unchanged = 0;
        let places: Vec<(usize, usize)> = (0..sequence.0.len())
            .flat_map(|setting| (0..self.ports as usize).map(move |port| (setting, port)))
            .collect();
        for &(setting, port) in places.iter().cycle() {
            let mut before = Reach::of_none(self.ranks);
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
            if fewest <= shape.hops || unchanged == places.len() || self.work > MOST_WORK {
                return;
            }
            let mut best = own;
            for shift in 1..self.ranks {
                interrupt::check();
                if self.work > MOST_WORK {
                    break;
                }
                shifts[port] = shift;
                let used = before.after(shifts, slots[setting], &mut scratch);
                let passes = 2 + u64::from(used) * u64::from(self.ports);
                self.work += u64::from(self.ranks) * passes;
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

/// The part of a range that begins with the first number for which `holds`, which then holds for
/// all after it.
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
