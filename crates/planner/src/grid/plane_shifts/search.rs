//! Which shifts are tried: for each number of slots a walk that changes one shift at a time and keeps what is no worse, from
//! sequences that are known to do and from drawn ones.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

use super::spread::Reach;
use super::torus::{Sequence, Shifts, Torus};
use super::ways::{Layers, Ways, fewest_hops};
use opticoll_base::interrupt;
use opticoll_bounds::growth;
use opticoll_plan::collective::CollectiveKind;

/// What a slot costs beside its bytes, and what a block costs, in picoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Price {
    pub(super) slot: u64,
    pub(super) block: u64,
}

impl Price {
    fn time(&self, slots: usize, blocks: u64) -> u64 {
        let slots = self.slot.saturating_mul(slots as u64);
        slots.saturating_add(self.block.saturating_mul(blocks))
    }
}

/// Places looked at for one number of slots.
const WORK: usize = 8_000_000;
const MOST_STEPS: usize = 3000;
/// From so many drawn sequences a walk begins.
const WALKS: usize = 4;
/// What a place that is not reached counts, in blocks.
const MISSING: u64 = 8;

/// The best sequence found, and the time that it takes.
pub(super) fn best(torus: Torus, kind: CollectiveKind, price: &Price) -> Option<(Sequence, u64)> {
    match kind {
        CollectiveKind::AllToAll => best_ways(torus, price),
        _ => best_spread(torus, price),
    }
}

/// The same shifts in all slots, by one place, and the time that they take where only the first slot is charged. A reduce_scatter goes
/// backwards: its circuits are then those of an all_gather that follows.
pub(super) fn steady(torus: Torus, kind: CollectiveKind, price: &Price) -> (Sequence, u64) {
    let most = torus.most();
    let shifts = match kind {
        CollectiveKind::ReduceScatter => most,
        _ => most.map(|most| most.min(1)),
    };
    let slots = vec![shifts; most.into_iter().sum::<u32>() as usize];
    let (_, load) = Reach::new(torus).rate(torus, &slots);
    (Sequence { slots }, price.time(1, load))
}

/// The planes along which there is another place.
fn planes(torus: Torus) -> u64 {
    torus.most().iter().filter(|most| **most > 0).count() as u64
}

fn best_spread(torus: Torus, price: &Price) -> Option<(Sequence, u64)> {
    let places = u64::from(torus.places());
    let doubling = doubling(torus);
    let least_load = (places - 1).div_ceil(planes(torus));
    let mut reach = Reach::new(torus);
    let mut best: Option<(Sequence, u64)> = None;
    for slots in growth(places, planes(torus)) as usize..=doubling.len() {
        let starts = (slots == doubling.len()).then(|| doubling.clone());
        let mut walk = Walk::new(torus, slots, WORK / (torus.places() as usize * slots));
        let rated = walk.best(starts, |shifts| reach.rate(torus, shifts));
        let Some((shifts, load)) = rated else {
            continue;
        };
        let time = price.time(slots, load);
        if best.as_ref().is_none_or(|(_, least)| time < *least) {
            best = Some((Sequence { slots: shifts }, time));
        }
        if load == least_load || price.block == 0 {
            break;
        }
    }
    best
}

/// Shifts of 1, 2, 4, ... along rows and then along columns, which reach all places; the other plane goes through its own
/// meanwhile.
fn doubling(torus: Torus) -> Vec<Shifts> {
    let [rows, columns] = torus.most().map(|most| {
        let bits = (most + 1).next_power_of_two().ilog2();
        (0..bits).map(|bit| 1 << bit).collect::<Vec<u32>>()
    });
    let in_turn = |shifts: &[u32], turn: usize| match shifts.len() {
        0 => 0,
        count => shifts[turn % count],
    };
    let slots = 0..rows.len() + columns.len();
    let shifts = slots.map(|slot| {
        let turn = slot.checked_sub(rows.len()).unwrap_or(slot);
        [in_turn(&rows, slot), in_turn(&columns, turn)]
    });
    shifts.collect()
}

/// So many numbers of slots between the fewest and a circuit for every partner: each that is a growth step apart.
fn best_ways(torus: Torus, price: &Price) -> Option<(Sequence, u64)> {
    let places = u64::from(torus.places());
    let planes = planes(torus);
    let fewest = growth(places, planes) as usize;
    let partners = torus.most().into_iter().sum::<u32>() as usize;
    let longest = torus.most().into_iter().max().unwrap_or(0) as usize;
    let mut numbers: Vec<usize> = (fewest..=fewest + 4).collect();
    let mut more = 8;
    while fewest + more < partners {
        numbers.push(fewest + more);
        more *= 2;
    }
    numbers.extend([longest, longest + 1, longest + 2, partners]);
    numbers.retain(|slots| (fewest..=partners.max(fewest)).contains(slots));
    numbers.sort_unstable();
    numbers.dedup();
    let mut rated: Vec<(u64, Vec<Shifts>)> = Vec::new();
    // Ranks that share no switch are two hops apart.
    let partners = partners as u64;
    let least_load = (2 * (places - 1) - partners).div_ceil(planes);
    let mut layers = Layers::default();
    let mut least = u64::MAX;
    for slots in numbers {
        if price.time(slots, least_load) >= least {
            continue;
        }
        let steps = WORK / (torus.places() as usize * slots);
        let mut rate = |shifts: &[Shifts]| match fewest_hops(torus, shifts, &mut layers) {
            Ok(hops) => (0, hops),
            Err(missing) => (missing, 0),
        };
        let in_turn = turning(torus, slots);
        let drawn = Walk::new(torus, slots, steps).best(None, &mut rate);
        let walked = in_turn
            .clone()
            .map(|start| Walk::new(torus, slots, steps).best(Some(start), &mut rate));
        let in_turn = in_turn.map(|shifts| (rate(&shifts).1, shifts));
        let of_turning = in_turn
            .filter(|(hops, _)| *hops > 0)
            .map(|(hops, shifts)| (shifts, hops));
        for (shifts, hops) in [drawn, walked.flatten(), of_turning].into_iter().flatten() {
            let time = price.time(slots, hops.div_ceil(planes));
            least = least.min(time);
            rated.push((time, shifts));
        }
    }
    rated.sort();
    // Fewer hops are of no use where one plane has most of them: the ways tell.
    let mut best: Option<(Sequence, u64)> = None;
    let mut traced = 0;
    for (estimate, slots) in rated {
        traced += torus.places() as usize * torus.places() as usize * slots.len();
        let is_enough = |(_, least): &(Sequence, u64)| estimate >= *least || traced > TRACED;
        if best.as_ref().is_some_and(is_enough) {
            break;
        }
        let sequence = Sequence { slots };
        let Some(ways) = Ways::of(torus, &sequence) else {
            continue;
        };
        let time = price.time(sequence.slots.len(), ways.load());
        if best.as_ref().is_none_or(|(_, least)| time < *least) {
            best = Some((sequence, time));
        }
    }
    best
}

/// Places looked at for the ways of sequences, once in each pass.
const TRACED: usize = 70_000_000;

/// All shifts along rows in turn, those along columns one ahead of them, in so many slots; none in fewer slots than shifts.
fn turning(torus: Torus, slots: usize) -> Option<Vec<Shifts>> {
    let most = torus.most();
    let longest = most.into_iter().max()? as usize;
    let shift = |slot: usize, plane: usize| match most[plane] as usize {
        0 => 0,
        count => ((slot + plane) % count + 1) as u32,
    };
    let both_in_turn = || {
        (0..slots)
            .map(|slot| [shift(slot, 0), shift(slot, 1)])
            .collect()
    };
    (slots >= longest).then(both_in_turn)
}

/// A walk among the sequences of so many slots.
struct Walk {
    most: [u32; 2],
    slots: usize,
    steps: usize,
    random: Pcg64,
}

impl Walk {
    fn new(torus: Torus, slots: usize, steps: usize) -> Walk {
        Walk {
            most: torus.most(),
            slots,
            steps: steps.clamp(20, MOST_STEPS),
            random: Pcg64::new(u128::from(torus.places()), slots as u128),
        }
    }

    fn below(&mut self, count: u32) -> u32 {
        ((u64::from(self.random.next_u32()) * u64::from(count)) >> 32) as u32
    }

    /// A shift of a plane; 0 where it has no other place.
    fn shift(&mut self, plane: usize) -> u32 {
        match self.most[plane] {
            0 => 0,
            most => 1 + self.below(most),
        }
    }

    fn drawn(&mut self) -> Vec<Shifts> {
        (0..self.slots)
            .map(|_| [self.shift(0), self.shift(1)])
            .collect()
    }

    /// The best sequence found that misses no place, and its blocks. `rate` tells the places missed and the blocks.
    fn best(
        &mut self,
        start: Option<Vec<Shifts>>,
        mut rate: impl FnMut(&[Shifts]) -> (u64, u64),
    ) -> Option<(Vec<Shifts>, u64)> {
        let mut best: Option<(Vec<Shifts>, u64)> = None;
        let walks = if start.is_some() { 1 } else { WALKS };
        for _ in 0..walks {
            let mut shifts = start.clone().unwrap_or_else(|| self.drawn());
            let (mut missing, mut blocks) = rate(&shifts);
            for _ in 0..self.steps / walks {
                interrupt::check();
                let slot = self.below(self.slots as u32) as usize;
                let before = shifts[slot];
                let plane = self.below(2) as usize;
                shifts[slot][plane] = self.shift(plane);
                let (now_missing, now_blocks) = rate(&shifts);
                if now_missing * MISSING + now_blocks <= missing * MISSING + blocks {
                    (missing, blocks) = (now_missing, now_blocks);
                } else {
                    shifts[slot] = before;
                }
            }
            if missing == 0 && best.as_ref().is_none_or(|(_, least)| blocks < *least) {
                best = Some((shifts, blocks));
            }
        }
        best
    }
}
