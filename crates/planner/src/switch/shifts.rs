//! All_to_all over a few settings of a circuit switch, each of shifts.
//!
//! In setting j every rank u is joined to u + s for d shifts s, over ports that no rank has dead. The block for the rank o places on goes over circuits of setting
//! 1, then of setting 2, and so on, so that their shifts add up to o modulo N: the same way from every rank. What counts is
//! the sum of hops over all o, for the bytes, the number of slots, for the latencies, and that of settings, for the
//! reconfigurations; no plan with so many of each takes less than the bound of the family says.
//!
//! In a setting all blocks make their hops from its first slot on. With one port slot t so carries the blocks that make t hops or
//! more in the setting. With cut-through all hops of a setting are in one slot. Which sequences are tried: `search`.

mod search;
mod sequence;
mod ways;

use crate::selection::contest::{Contender, Contest, ContestOutcome, Made};
use crate::{OnMachine, Planned, Planner, PlannerError, Question, Scope, ensure};
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Light;
use opticoll_fabric::family::circuit_switch::{CircuitSwitch, SwitchedLight};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::plan::{Plan, Relay};
use opticoll_plan::schedule::{Schedule, Transfer};
use opticoll_simulate::Policy;
use search::Search;
use sequence::{MOST_RANKS, Sequence};
use ways::{Price, Ways};

/// The planner of sequences of shifts.
pub(crate) const PLANNER: Planner = Planner {
    options: &[OptionRecord::new(
        "shifts",
        "shift of each port in each setting, such as 1x15x11, or 1+63x12+52 with two ports",
    )
    .range("numbers below the number of ranks, joined by + and x")
    .default("the fastest found")],
    by_size: true,
    ..Planner::new(
        NAME,
        "Shifts",
        &[CollectiveKind::AllToAll],
        "Blocks over circuits of a few settings one after the other, each of which joins every rank to those some places on",
        "opticoll; near to arXiv 2602.10468 and ReTri, arXiv 2605.26930",
        Scope::Switches(OnMachine::new(plan, contenders)),
    )
};

const NAME: &str = "shifts";

/// So many sequences are timed where the policy has no barriers, for then the search only estimates.
const TIMED: usize = 4;

fn plan(
    spec: &Spec,
    question: &Question<'_>,
    switch: &CircuitSwitch,
) -> Result<Planned, PlannerError> {
    if question.collective.ranks() < 2 {
        return Ok(question.nothing_to_do(spec));
    }
    check_few_ranks(switch)?;
    if let Some(text) = spec.option("shifts") {
        let rule = "must be shifts below the number of ranks, of at most as many ports as no rank has dead, joined by + and x";
        let sequence = Sequence::parse(text, switch.ranks, ports_of_all(switch).len());
        let sequence = sequence.ok_or_else(|| spec.refuse("shifts", rule))?;
        let ways = Ways::of(&sequence, &Price::new(question, switch)?);
        let ways = ways.ok_or_else(|| spec.refuse("shifts", "does not lead to all ranks"))?;
        return Ok(placed(question, switch, &sequence, &ways)?.into());
    }
    let contest = Contest::new(question)?;
    let ContestOutcome {
        fastest,
        candidates,
        ..
    } = contest.run(contenders(question, switch)?, Vec::new())?;
    let (plan, _) = fastest?;
    Ok(Planned {
        plan,
        candidates,
        reasons: Vec::new(),
        outcome: None,
    })
}

/// Refuses a switch that cannot join all ranks to any others, or has too many for the search.
fn check_few_ranks(switch: &CircuitSwitch) -> Result<(), AlgorithmError> {
    check_joins_all(switch, NAME)?;
    let reason = format!("its search is for {MOST_RANKS} ranks at most");
    ensure(switch.ranks <= MOST_RANKS, NAME, switch.ranks, reason)
}

/// Refuses, for a planner `name`, a switch that cannot join all ranks to any others at once.
pub(crate) fn check_joins_all(
    switch: &CircuitSwitch,
    name: &'static str,
) -> Result<(), AlgorithmError> {
    let reason = "it joins every rank to any other, for which each plane must be one switch: leave \
                  switch_ports out";
    ensure(switch.is_one_switch(), name, switch.ranks, reason)?;
    let reason = "it joins all ranks over the same ports, but each port is dead at some rank";
    ensure(!ports_of_all(switch).is_empty(), name, switch.ranks, reason)
}

/// The ports that no rank has dead.
pub(crate) fn ports_of_all(switch: &CircuitSwitch) -> Vec<u8> {
    let is_dead = |port: u32| switch.dead_ports.iter().any(|dead| dead.port == port);
    let ports = (0..switch.ports).filter(|port| !is_dead(*port));
    ports.map(|port| port as u8).collect()
}

/// The best sequences that the search comes to.
fn contenders<'a>(
    question: &Question<'a>,
    switch: &'a CircuitSwitch,
) -> Result<Vec<Contender<'a>>, PlannerError> {
    let ranks = switch.ranks;
    let is_large = u64::from(ranks).pow(2) > question.most_transfers;
    if check_few_ranks(switch).is_err() || ranks < 2 || is_large {
        return Ok(Vec::new());
    }
    let price = Price::new(question, switch)?;
    let timed = match question.policy() {
        Policy::PerPort | Policy::Planes => TIMED,
        _ => 1,
    };
    let sequences = Search::new(&price, question.most_transfers).best(timed);
    let contenders = sequences.into_iter().map(|(sequence, ways)| {
        let question = *question;
        Contender {
            name: named(&sequence).to_string(),
            slots: ways.slots.into(),
            least: Time::ZERO,
            estimate: Time::from_ps(ways.time(&price)),
            transfers: ways.count(ranks),
            make: Box::new(move |_| {
                let plan = placed(&question, switch, &sequence, &ways)?;
                Ok(Made::Plan(Box::new(plan)))
            }),
        }
    });
    Ok(contenders.collect())
}

/// The shifts of one setting with the fewest hops found; `None` where the ranks are too many for the search.
pub(crate) fn fewest_hops(switch: &CircuitSwitch) -> Option<Vec<u32>> {
    let price = Price {
        switch,
        ports: ports_of_all(switch).len() as u32,
        block: Bytes::new(1),
        slot: 0,
        change: 0,
    };
    let few = (2..=MOST_RANKS).contains(&switch.ranks);
    few.then(|| Search::new(&price, u64::MAX).fewest_hops())?
}

fn named(sequence: &Sequence) -> Spec {
    Spec::new(NAME).with("shifts", sequence.text())
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
    let name = named(sequence).to_string();
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
