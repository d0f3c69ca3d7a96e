//! Barriers among few ranks in as few slots as a search finds, on any ring.
//!
//! In a barrier a lightpath tells its receiver all that its sender has heard, so that only who is told by whom counts. In each slot
//! the channels of both directions are cut into arcs, each a lightpath from where it begins to where the next begins;
//! with light trees the ranks between hear it, too. What light does not reach, and what ports have no room for, is left
//! out. A state of the search says where the arcs of all channels begin. It costs one for every rank that has not heard of
//! another at the end; a state that costs nothing is a plan.
//!
//! The search lets one arc begin at another rank, or one more or less begin. It takes every change that costs no more, and of those
//! that cost more a share that falls with the cost and with time: simulated annealing (Kirkpatrick, Gelatt and Vecchi,
//! Science 1983). Random numbers are seeded, and the number of changes is fixed, so that the same ring has the same plan.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rustc_hash::FxHashSet;

use super::contest::{Contender, Made};
use super::{Planned, Planner, PlannerError, Question, empty_plan, least, signals};
use crate::algorithm::AlgorithmError;
use crate::collective::CollectiveKind;
use crate::family::wdm_ring::bound;
use crate::family::wdm_ring::{Direction, WdmRing};
use crate::interrupt;
use crate::plan::{AnyPlan, Lightpath, Plan};
use crate::schedule::Transfer;
use crate::spec::{OptionRecord, Spec};
use crate::units::Time;

/// The planner of arcs.
pub(super) const PLANNER: Planner = Planner {
    options: &[OptionRecord::new("slots", "slots of the barrier")
        .range("1 to 32")
        .default("the fewest found")],
    candidates: contenders,
    ..Planner::on_rings(
        NAME,
        "Arcs",
        &[CollectiveKind::Barrier],
        "Channels cut into arcs along which few ranks signal, by a search for few slots",
        "opticoll; simulated annealing: Kirkpatrick, Gelatt and Vecchi, Science 1983",
        plan,
    )
};

const NAME: &str = "arcs";

/// The most ranks that are searched for, and the most links of the channels of all slots.
const MOST_RANKS: u32 = 16;
const MOST_LINKS: u32 = 1 << 9;

/// More slots than that are never asked for.
const MOST_SLOTS: u32 = 32;

/// Numbers of slots that are tried: what is not found next to the bound is seldom found farther from it.
const TRIED: usize = 2;

/// How often a search starts anew, and the changes that it tries each time: 50 ms at most.
const STARTS: u64 = 3;
const CHANGES: u32 = 20_000;

/// The share that is taken of the changes that cost one more: at first, and by how much it falls in each 64th of the
/// changes, to 0.005 at the end.
const FIRST_SHARE: f64 = 0.2;
const FALL: f64 = 0.944;

/// About the transfers that could be timed instead.
const WORK: u64 = 1 << 17;

fn contenders<'a>(question: &Question<'a>) -> Result<Vec<Contender<'a>>, PlannerError> {
    let ring = question.fabric.downcast::<WdmRing>();
    let Some(ring) = ring.filter(|ring| (2..=MOST_RANKS).contains(&ring.ranks)) else {
        return Ok(Vec::new());
    };
    let question = *question;
    let slots = least_slots(ring, &question);
    let least = least::of_slots(ring, question.policy(), slots.into(), 0, 1)?;
    Ok(vec![Contender {
        name: NAME.to_owned(),
        slots: slots.into(),
        least,
        // It is asked for fewer slots than the others have.
        estimate: Time::from_ps(u64::MAX),
        transfers: question.work(WORK),
        make: Box::new(move |limit| fewest(ring, &question, limit)),
    }])
}

/// No barrier takes fewer slots.
fn least_slots(ring: &WdmRing, question: &Question<'_>) -> u32 {
    let least = bound::best(ring, &question.collective).steps.max(1);
    u32::try_from(least).unwrap_or(u32::MAX)
}

/// A plan of as few slots as are found, and of so few that it may be faster than the limit.
fn fewest(
    ring: &WdmRing,
    question: &Question<'_>,
    limit: Option<Time>,
) -> Result<Made, PlannerError> {
    for slots in (least_slots(ring, question)..).take(TRIED) {
        let least = least::of_slots(ring, question.policy(), slots.into(), 0, 1)?;
        if limit.is_some_and(|limit| least >= limit) {
            break;
        }
        if let Some(plan) = searched(ring, question, slots) {
            return Ok(AnyPlan::Full(plan).into());
        }
    }
    Ok(Made::NotExpected("no plan of fewer slots was found"))
}

fn plan(spec: &Spec, question: &Question<'_>) -> Result<Planned, PlannerError> {
    let ring = question.fabric.needed::<WdmRing>(NAME)?;
    if ring.ranks < 2 {
        return Ok(question.nothing_to_do(spec));
    }
    let plan = match spec.count("slots", 1, MOST_SLOTS)? {
        Some(slots) => searched(ring, question, slots),
        None => (least_slots(ring, question)..=MOST_SLOTS)
            .find_map(|slots| searched(ring, question, slots)),
    };
    let refused = || AlgorithmError::Refused {
        name: NAME,
        ranks: ring.ranks,
        reason: format!(
            "no plan of so few slots was found; it is looked for among {MOST_RANKS} ranks at most, on {MOST_LINKS} links \
             of all channels and slots"
        ),
    };
    Ok(AnyPlan::Full(plan.ok_or_else(refused)?).into())
}

/// A plan of so many slots, if one is found.
fn searched(ring: &WdmRing, question: &Question<'_>, slots: u32) -> Option<Plan> {
    let links = u64::from(2 * ring.channels()) * u64::from(slots) * u64::from(ring.ranks);
    if ring.ranks > MOST_RANKS || links > MOST_LINKS.into() {
        return None;
    }
    (0..STARTS).find_map(|seed| {
        let mut search = ArcSearch::new(ring, slots, seed);
        search.run().then(|| search.plan(question))
    })
}

/// A set of ranks, as bits.
type Ranks = u32;

/// Who tells whom, and over which channel.
#[derive(Debug, Clone, Copy)]
struct Signal {
    source: u32,
    destination: u32,
    direction: Direction,
    channel: u32,
}

struct ArcSearch<'a> {
    ring: &'a WdmRing,
    slots: u32,
    channels: u32,
    ports: u32,
    /// The most links of a lightpath.
    farthest: u32,
    /// By direction, the ranks from which the next link is cut.
    cuts: [Ranks; 2],
    /// Where arcs begin, `[slot][direction][channel]`.
    begins: Vec<Ranks>,
    generator: Pcg64Mcg,
}

impl<'a> ArcSearch<'a> {
    fn new(ring: &'a WdmRing, slots: u32, seed: u64) -> ArcSearch<'a> {
        let (ranks, channels) = (ring.ranks, ring.channels());
        let mut generator = Pcg64Mcg::seed_from_u64(seed);
        let begins = (0..2 * channels * slots).map(|_| generator.random_range(0..1 << ranks));
        let begins = begins.collect();
        let cuts = Direction::BOTH.map(|direction| {
            let is_cut =
                |rank: &u32| !ring.is_whole(*rank, after(*rank, direction, ranks), direction);
            (0..ranks)
                .filter(is_cut)
                .fold(0, |cuts, rank| cuts | 1 << rank)
        });
        ArcSearch {
            ring,
            slots,
            channels,
            ports: ring.ports.unwrap_or(u32::MAX),
            farthest: match ring.multicast {
                true => ring.longest().min(ring.longest_tree()),
                false => ring.longest(),
            },
            cuts,
            begins,
            generator,
        }
    }

    /// Searches; whether it ended at a plan.
    fn run(&mut self) -> bool {
        let mut signals = Vec::new();
        let mut share = FIRST_SHARE;
        let mut cost = self.cost(&mut signals);
        for change in 0..CHANGES {
            if cost == 0 {
                return true;
            }
            interrupt::check();
            if change % (CHANGES / 64) == 0 {
                share *= FALL;
            }
            let at = self.generator.random_range(0..self.begins.len());
            let old = self.begins[at];
            self.begins[at] = self.changed(old);
            let new = self.cost(&mut signals);
            let accepted = (cost..new).all(|_| self.generator.random_range(0.0..1.0) < share);
            match accepted {
                true => cost = new,
                false => self.begins[at] = old,
            }
        }
        cost == 0
    }

    fn changed(&mut self, old: Ranks) -> Ranks {
        let ranks = self.ring.ranks;
        let rank = self.generator.random_range(0..ranks);
        let next = (rank + 1) % ranks;
        let moves = self.generator.random_range(0..2) == 0 && (old >> rank ^ old >> next) & 1 == 1;
        old ^ 1 << rank ^ u32::from(moves) << next
    }

    /// How many have not heard of how many others at the end.
    fn cost(&self, signals: &mut Vec<Signal>) -> u32 {
        let ranks = self.ring.ranks;
        let mut heard = [0; MOST_RANKS as usize];
        for rank in 0..ranks {
            heard[rank as usize] = 1 << rank;
        }
        for slot in 0..self.slots {
            self.signals(slot, signals);
            let before = heard;
            for signal in signals.iter() {
                heard[signal.destination as usize] |= before[signal.source as usize];
            }
        }
        let heard: u32 = heard.iter().map(|heard: &Ranks| heard.count_ones()).sum();
        ranks * ranks - heard
    }

    /// The signals of a slot.
    fn signals(&self, slot: u32, signals: &mut Vec<Signal>) {
        let (mut sent, mut received) = ([0; MOST_RANKS as usize], [0; MOST_RANKS as usize]);
        signals.clear();
        for direction in Direction::BOTH {
            for channel in 0..self.channels {
                self.arcs(slot, direction, channel, |source, destination, is_first| {
                    let (from, to) = (
                        &mut sent[source as usize],
                        &mut received[destination as usize],
                    );
                    let starts = u32::from(is_first);
                    let has_room = *from + starts <= self.ports && *to < self.ports;
                    if has_room {
                        *from += starts;
                        *to += 1;
                        signals.push(Signal {
                            source,
                            destination,
                            direction,
                            channel,
                        });
                    }
                    has_room
                });
            }
        }
    }

    /// Calls `tell` with the ends of all signals of a channel, and whether they are the first of their lightpaths, until it
    /// says yes.
    fn arcs(
        &self,
        slot: u32,
        direction: Direction,
        channel: u32,
        mut tell: impl FnMut(u32, u32, bool) -> bool,
    ) {
        let ranks = self.ring.ranks;
        let place = (slot * 2 + direction as u32) * self.channels + channel;
        let begins = self.begins[place as usize];
        if begins == 0 {
            return;
        }
        let cuts = self.cuts[direction as usize];
        let (mut source, mut links, mut is_first) = (begins.trailing_zeros(), 0, true);
        let (mut rank, mut is_lit) = (source, true);
        for _ in 0..ranks {
            is_lit &= cuts >> rank & 1 == 0;
            rank = after(rank, direction, ranks);
            links += 1;
            let ends = begins >> rank & 1 == 1;
            if (ends || self.ring.multicast) && is_lit && links <= self.farthest {
                is_first &= !tell(source, rank, is_first);
            }
            if ends {
                (source, links, is_first, is_lit) = (rank, 0, true, true);
            }
        }
    }

    /// The plan of a state that costs nothing.
    fn plan(&self, question: &Question<'_>) -> Plan {
        let mut steps = Vec::new();
        for slot in 0..self.slots {
            let (mut signals, mut pairs) = (Vec::new(), FxHashSet::default());
            self.signals(slot, &mut signals);
            signals.retain(|signal| pairs.insert((signal.source, signal.destination)));
            steps.push(signals);
        }
        let ends = |signals: &Vec<Signal>| {
            let ends = signals.iter().map(|one| (one.source, one.destination));
            ends.collect()
        };
        let of_use = signals::of_use(self.ring.ranks, &steps.iter().map(ends).collect::<Vec<_>>());
        let name = Spec::new(NAME).with("slots", self.slots).to_string();
        let mut plan = empty_plan(question.fabric, question.collective, name, self.slots);
        for (slot, (signals, of_use)) in (0..).zip(steps.iter().zip(of_use)) {
            plan.schedule.begin_step();
            for (signal, _) in signals.iter().zip(of_use).filter(|(_, of_use)| *of_use) {
                plan.push(Lightpath {
                    slot,
                    light: self.ring.light(signal.direction, signal.channel),
                    transfer: Transfer::reduce(0, signal.source, signal.destination),
                });
            }
        }
        plan
    }
}

/// The next rank in a direction.
fn after(rank: u32, direction: Direction, ranks: u32) -> u32 {
    match direction {
        Direction::Clockwise => (rank + 1) % ranks,
        Direction::CounterClockwise => (rank + ranks - 1) % ranks,
    }
}
