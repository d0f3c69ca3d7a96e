//! All_to_all over a few settings of a circuit switch, each of shifts.
//!
//! In setting j every rank u is joined to u + s for d shifts s, over ports that no rank has dead. The block for the rank o places on goes over circuits of setting
//! 1, then of setting 2, and so on, so that their shifts add up to o modulo N: the same way from every rank. What counts is
//! the sum of hops over all o, for the bytes, and the number of settings, for the reconfigurations; no plan with so many settings
//! has fewer hops than the bound of the family says.
//!
//! In a setting all blocks make their hops from its first slot on. With one port slot t so carries the blocks that make t hops or
//! more in the setting. With cut-through all hops of a setting are in one slot.
//!
//! **Search.** With one port the first shift is 1, for all may be multiplied by its inverse where it has one. From the best sequence of
//! p - 1 settings another is put in at each place; then shift after shift is replaced by that with which the hops are
//! fewest, until none helps; and the same from sequences drawn at random.

use rand::RngExt;
use rand_pcg::Pcg64;

use super::contest::{Contender, Contest, ContestOutcome, Made};
use super::{Planned, Planner, PlannerError, Question, least, settings};
use crate::algorithm::AlgorithmError;
use crate::collective::CollectiveKind;
use crate::fabric::Light;
use crate::fabric::circuits::Circuits;
use crate::family::circuit_switch::{CircuitSwitch, SwitchedLight};
use crate::interrupt;
use crate::plan::{AnyPlan, Plan, Relay};
use crate::schedule::{Schedule, Transfer};
use crate::spec::{OptionRecord, Spec, whole};
use crate::units::{Bytes, Time};

/// The planner of sequences of shifts.
pub(super) const PLANNER: Planner = Planner {
    options: &[OptionRecord::new(
        "shifts",
        "shift of each port in each setting, such as 1x15x11, or 1+63x12+52 with two ports",
    )
    .range("numbers below the number of ranks, joined by + and x")
    .default("the fastest found")],
    by_size: true,
    applies: |fabric| fabric.downcast::<CircuitSwitch>().is_some(),
    candidates: contenders,
    ..Planner::new(
        NAME,
        "Shifts",
        &[CollectiveKind::AllToAll],
        "Blocks over circuits of a few settings one after the other, each of which joins every rank to those some places on",
        "opticoll; near to arXiv 2602.10468 and ReTri, arXiv 2605.26930",
        plan,
    )
};

const NAME: &str = "shifts";

/// The most settings that are tried.
const MOST_SETTINGS: usize = 12;

/// Sequences that the search starts from at most.
const STARTS: usize = 64;

/// Steps of the search for each number of settings: ranks x ports x settings for each sequence looked at.
const MOST_WORK: u64 = 1 << 25;

/// The shifts of all settings.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sequence(Vec<Vec<u32>>);

impl Sequence {
    fn text(&self) -> String {
        let joined = |shifts: &Vec<u32>| {
            let shifts: Vec<String> = shifts.iter().map(u32::to_string).collect();
            shifts.join("+")
        };
        let settings: Vec<String> = self.0.iter().map(joined).collect();
        settings.join("x")
    }

    fn parse(text: &str, ranks: u32, ports: usize) -> Option<Sequence> {
        let settings = text.split('x').map(|setting| {
            let shifts: Option<Vec<u32>> = setting.split('+').map(whole).collect();
            shifts.filter(|shifts| {
                let fits = shifts.iter().all(|shift| (1..ranks).contains(shift));
                fits && shifts.len() <= ports
            })
        });
        settings.collect::<Option<Vec<_>>>().map(Sequence)
    }

    /// The least number of hops to each rank, by how many places on it is; `None` where one is not reached.
    fn hops(&self, ranks: u32) -> Option<Vec<u32>> {
        let mut far = vec![u32::MAX; ranks as usize];
        far[0] = 0;
        for shifts in &self.0 {
            match shifts[..] {
                [shift] => around(&mut far, shift),
                _ => spread(&mut far, shifts),
            }
        }
        far.iter().all(|hops| *hops < u32::MAX).then_some(far)
    }

    fn all_hops(&self, ranks: u32) -> u64 {
        self.hops(ranks).map_or(u64::MAX, |far| {
            far.iter().map(|hops| u64::from(*hops)).sum()
        })
    }
}

/// Goes on along one shift, as often as that is shorter.
fn around(far: &mut [u32], shift: u32) {
    let ranks = far.len();
    let mut seen = vec![false; ranks];
    for start in 0..ranks {
        if seen[start] {
            continue;
        }
        // Twice around the cycle, what is nearest has come to all of it.
        let mut at = start;
        for _ in 0..2 {
            loop {
                seen[at] = true;
                let mut next = at + shift as usize;
                if next >= ranks {
                    next -= ranks;
                }
                far[next] = far[next].min(far[at].saturating_add(1));
                at = next;
                if at == start {
                    break;
                }
            }
        }
    }
}

/// The same along several.
fn spread(far: &mut [u32], shifts: &[u32]) {
    let ranks = far.len();
    let mut levels: Vec<Vec<usize>> = Vec::new();
    let put = |levels: &mut Vec<Vec<usize>>, hops: u32, at: usize| {
        if levels.len() <= hops as usize {
            levels.resize(hops as usize + 1, Vec::new());
        }
        levels[hops as usize].push(at);
    };
    for (at, &hops) in far.iter().enumerate().filter(|(_, hops)| **hops < u32::MAX) {
        put(&mut levels, hops, at);
    }
    let mut hops = 0;
    while hops < levels.len() {
        for at in std::mem::take(&mut levels[hops]) {
            if far[at] < hops as u32 {
                continue;
            }
            for shift in shifts {
                let next = (at + *shift as usize) % ranks;
                if far[next] > hops as u32 + 1 {
                    far[next] = hops as u32 + 1;
                    put(&mut levels, hops as u32 + 1, next);
                }
            }
        }
        hops += 1;
    }
}

/// A hop of the blocks for the rank some places on: its slot, and the port and shift of its circuit.
#[derive(Debug, Clone, Copy)]
struct ShiftHop {
    slot: u32,
    port: u8,
    shift: u32,
}

/// The ways of all blocks, by how many places on their rank is.
struct Ways {
    hops: Vec<Vec<ShiftHop>>,
    slots: u32,
}

impl Ways {
    /// Along the fewest hops; `None` where a rank is not reached.
    fn of(sequence: &Sequence, switch: &CircuitSwitch) -> Option<Ways> {
        let ranks = switch.ranks;
        let of_setting: Vec<Vec<u32>> = (0..=sequence.0.len())
            .map(|settings| {
                let before = Sequence(sequence.0[..settings].to_vec());
                let mut far = vec![u32::MAX; ranks as usize];
                far[0] = 0;
                for shifts in &before.0 {
                    spread(&mut far, shifts);
                }
                far
            })
            .collect();
        let mut in_settings: Vec<Vec<Vec<(u8, u32)>>> = Vec::with_capacity(ranks as usize);
        for after in 0..ranks {
            interrupt::check();
            let mut own = vec![Vec::new(); sequence.0.len()];
            let mut at = after;
            for (number, shifts) in sequence.0.iter().enumerate().rev() {
                // Back over circuits of the setting until the one before it reaches as near.
                while of_setting[number][at as usize] != of_setting[number + 1][at as usize] {
                    let left = of_setting[number + 1][at as usize].checked_sub(1)?;
                    let came = |shift: u32| (at + ranks - shift) % ranks;
                    let mut ports = (0u8..).zip(shifts);
                    let (port, shift) = ports.find(|(_, shift)| {
                        of_setting[number + 1][came(**shift) as usize] == left
                    })?;
                    own[number].push((port, *shift));
                    at = came(*shift);
                }
                own[number].reverse();
            }
            if at != 0 {
                return None;
            }
            in_settings.push(own);
        }
        let mut start = 0;
        let mut hops = vec![Vec::new(); ranks as usize];
        for number in 0..sequence.0.len() {
            let mut longest = 0;
            for (own, hops) in in_settings.iter().zip(&mut hops) {
                for (hop, &(port, shift)) in (0..).zip(&own[number]) {
                    let place = if switch.cuts_through() { 0 } else { hop };
                    longest = longest.max(place + 1);
                    let slot = start + place;
                    hops.push(ShiftHop { slot, port, shift });
                }
            }
            start += longest;
        }
        Some(Ways { hops, slots: start })
    }

    /// Hops of all blocks.
    fn count(&self, ranks: u32) -> u64 {
        let of_rank: u64 = self.hops.iter().map(|hops| hops.len() as u64).sum();
        of_rank * u64::from(ranks)
    }

    /// Picoseconds without reconfigurations.
    fn time(&self, switch: &CircuitSwitch, block: Bytes) -> u64 {
        let mut loads = vec![[0u64; 1 << 8]; self.slots as usize];
        let mut begins = vec![false; self.slots as usize];
        let mut longest = vec![0u64; self.slots as usize];
        for hops in &self.hops {
            for (place, hop) in hops.iter().enumerate() {
                loads[hop.slot as usize][usize::from(hop.port)] += 1;
                begins[hop.slot as usize] |= place == 0;
            }
        }
        for hops in &self.hops {
            for of_slot in hops.chunk_by(|one, next| one.slot == next.slot) {
                let longest = &mut longest[of_slot[0].slot as usize];
                *longest = (of_slot.len() as u64).max(*longest);
            }
        }
        let of_slot = |((loads, begins), hops): ((&[u64; 1 << 8], bool), u64)| {
            let most = loads.iter().copied().max().unwrap_or(0);
            let bytes = Bytes::new(block.get().saturating_mul(most));
            let sending = u64::try_from(switch.transmission().ps(bytes)).unwrap_or(u64::MAX);
            let startup = if begins { switch.startup.ps() } else { 0 };
            sending
                .saturating_add(switch.latency.ps().saturating_mul(hops))
                .saturating_add(startup)
        };
        let slots = loads.iter().zip(begins).zip(longest).map(of_slot);
        slots.fold(0, u64::saturating_add)
    }
}

fn plan(spec: &Spec, question: &Question<'_>) -> Result<Planned, PlannerError> {
    spec.only_declared(PLANNER.options)?;
    if question.collective.ranks() < 2 {
        return Ok(question.nothing_to_do(spec));
    }
    let switch = needed(question, NAME)?;
    if let Some(text) = spec.option("shifts") {
        let rule = "must be shifts below the number of ranks, of at most as many ports as no rank has dead, joined by + and x";
        let sequence = Sequence::parse(text, switch.ranks, ports_of_all(switch).len());
        let sequence = sequence.ok_or_else(|| spec.refuse("shifts", rule))?;
        let ways = Ways::of(&sequence, switch);
        let ways = ways.ok_or_else(|| spec.refuse("shifts", "does not lead to all ranks"))?;
        return Ok(AnyPlan::Full(placed(question, switch, &sequence, &ways)?).into());
    }
    let least = least::of_collective(question)?;
    let contest = Contest { question, least };
    let ContestOutcome {
        fastest,
        candidates,
    } = contest.run(contenders(question)?, Vec::new())?;
    let (plan, _) = fastest?;
    Ok(Planned {
        plan,
        candidates,
        reasons: Vec::new(),
    })
}

/// The switch that a planner `name` is asked about, if it can join all ranks to any others at once.
pub(super) fn needed<'a>(
    question: &Question<'a>,
    name: &'static str,
) -> Result<&'a CircuitSwitch, AlgorithmError> {
    let refused = |reason: &str| AlgorithmError::Refused {
        name,
        ranks: question.collective.ranks(),
        reason: reason.into(),
    };
    let switch = question.fabric.downcast::<CircuitSwitch>();
    let switch = switch.ok_or_else(|| refused("it sets the ports of a circuit_switch"))?;
    if !switch.is_one_switch() {
        return Err(refused(
            "it joins every rank to any other, for which each plane must be one switch: leave switch_ports out",
        ));
    }
    if ports_of_all(switch).is_empty() {
        return Err(refused(
            "it joins all ranks over the same ports, but each port is dead at some rank",
        ));
    }
    Ok(switch)
}

/// The ports that no rank has dead.
pub(super) fn ports_of_all(switch: &CircuitSwitch) -> Vec<u8> {
    let is_dead = |port: u32| switch.dead_ports.iter().any(|dead| dead.port == port);
    let ports = (0..switch.ports).filter(|port| !is_dead(*port));
    ports.map(|port| port as u8).collect()
}

/// The best sequence found of each number of settings.
fn contenders<'a>(question: &Question<'a>) -> Result<Vec<Contender<'a>>, PlannerError> {
    let Ok(switch) = needed(question, NAME) else {
        return Ok(Vec::new());
    };
    let ranks = switch.ranks;
    if ranks < 2 || u64::from(ranks).pow(2) > question.most_transfers {
        return Ok(Vec::new());
    }
    let least = least::of_collective(question)?;
    let block = Bytes::new(question.size.get().div_ceil(ranks.into()));
    let (per_slot, change) = settings::prices(question, switch)?;
    let mut contenders = Vec::new();
    let mut best: Option<Sequence> = None;
    let mut fastest = u64::MAX;
    for settings in 1..=MOST_SETTINGS {
        // Each setting has a slot at least.
        let paid = change.saturating_mul(settings as u64 - 1);
        if paid.max(per_slot.saturating_mul(settings as u64)) >= fastest {
            break;
        }
        let Some(found) = search(best.as_ref(), switch, settings) else {
            continue;
        };
        best = Some(found.clone());
        let Some(ways) = Ways::of(&found, switch) else {
            continue;
        };
        let hops = ways.count(ranks);
        if hops > question.most_transfers {
            continue;
        }
        let of_slots = per_slot.saturating_mul(ways.slots.into());
        let charged = paid.saturating_add(of_slots);
        let estimate = ways.time(switch, block).saturating_add(charged);
        fastest = fastest.min(estimate);
        let question = *question;
        contenders.push(Contender {
            name: Spec::new(NAME).with("shifts", found.text()).to_string(),
            slots: ways.slots.into(),
            least,
            estimate: Time::from_ps(estimate),
            transfers: hops,
            make: Box::new(move |_| {
                let plan = placed(&question, switch, &found, &ways)?;
                Ok(Made::Plan(Box::new(AnyPlan::Full(plan))))
            }),
        });
    }
    Ok(contenders)
}

/// The sequence with the fewest hops found.
fn search(fewer: Option<&Sequence>, switch: &CircuitSwitch, settings: usize) -> Option<Sequence> {
    let ranks = switch.ranks;
    let ports = ports_of_all(switch).len().min(ranks as usize - 1);
    let looked = u64::from(ranks) * ports as u64 * settings as u64;
    let mut work = MOST_WORK / looked.max(1);
    let mut random = Pcg64::new(settings as u128, 0);
    let longer = fewer.into_iter().flat_map(|fewer| {
        (1..=fewer.0.len()).map(|place| {
            let mut longer = fewer.clone();
            longer.0.insert(place, fewer.0[place - 1].clone());
            longer
        })
    });
    let drawn = std::iter::repeat_with(|| {
        let mut draw = |_| random.random_range(1..ranks);
        let mut drawn: Vec<Vec<u32>> = (0..settings)
            .map(|_| (0..ports).map(&mut draw).collect())
            .collect();
        drawn[0][0] = 1;
        Sequence(drawn)
    });
    let mut best: Option<(u64, Sequence)> = None;
    for mut sequence in longer.chain(drawn).take(STARTS) {
        let mut least = sequence.all_hops(ranks);
        let mut helps = true;
        while helps && work > 0 {
            helps = false;
            for setting in 0..settings {
                for port in 0..ports {
                    if (setting, port) == (0, 0) {
                        continue;
                    }
                    interrupt::check();
                    let own = sequence.0[setting][port];
                    let mut best = own;
                    for shift in 1..ranks {
                        work = work.saturating_sub(1);
                        sequence.0[setting][port] = shift;
                        let hops = sequence.all_hops(ranks);
                        if hops < least {
                            (least, best) = (hops, shift);
                            helps = true;
                        }
                    }
                    sequence.0[setting][port] = best;
                }
            }
        }
        if best.as_ref().is_none_or(|(fewest, _)| least < *fewest) {
            best = Some((least, sequence));
        }
        if work == 0 {
            break;
        }
    }
    best.filter(|(hops, _)| *hops < u64::MAX)
        .map(|(_, sequence)| sequence)
}

/// The plan of a sequence.
///
/// # Errors
/// More hops than are allowed.
fn placed(
    question: &Question<'_>,
    switch: &CircuitSwitch,
    sequence: &Sequence,
    ways: &Ways,
) -> Result<Plan, PlannerError> {
    let ranks = switch.ranks;
    question.fits(ways.count(ranks))?;
    let mut schedule = Schedule::new(question.collective);
    schedule.reserve(ranks as usize * (ranks as usize - 1));
    schedule.begin_step();
    for source in 0..ranks {
        for after in 1..ranks {
            let destination = (source + after) % ranks;
            schedule.push(Transfer::copy(
                source * ranks + destination,
                source,
                destination,
            ));
        }
    }
    let name = Spec::new(NAME).with("shifts", sequence.text()).to_string();
    let mut plan = Plan::without_light(question.fabric, schedule, name);
    plan.light = vec![Light::NONE; plan.len()];
    plan.step_slots[0] = 0..ways.slots;
    let ports = ports_of_all(switch);
    let mut transfer = 0;
    for source in 0..ranks {
        interrupt::check();
        for hops in &ways.hops[1..] {
            let mut rank = source;
            for (place, hop) in hops.iter().enumerate() {
                let port = ports[usize::from(hop.port)];
                let light = Light::from(SwitchedLight {
                    source_port: port.into(),
                    destination_port: port.into(),
                });
                if place == 0 {
                    plan.slot[transfer] = hop.slot;
                    plan.light[transfer] = light;
                } else {
                    plan.relays.push(Relay {
                        transfer: transfer as u32,
                        rank,
                        light,
                        slot: hop.slot,
                    });
                }
                rank = (rank + hop.shift) % ranks;
            }
            transfer += 1;
        }
    }
    Ok(plan)
}
