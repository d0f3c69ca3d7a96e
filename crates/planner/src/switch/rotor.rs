//! All_to_all over a rotor switch: matchings that follow one another whatever is sent.
//!
//! The d ports of each rank go through the n - 1 shifts in turn, d at a time, so that after S = ceil((n - 1) / d) settings each rank
//! was joined to every other: a *cycle*. With slots of one length T, of which R passes in the dark, a share of (T - R) / T
//! carries data.
//!
//! * **One hop.** A block waits for the circuit to its rank. In k cycles each carries a k-th of it:
//!   k S slots, k S - 1 changes.
//! * **Two hops** (Valiant). The n-th part of a block that belongs to rank w goes to w in the first cycle, and on from there in
//!   the second; the part of the sender itself goes in the second cycle. So whatever the demand, each circuit carries the same.
//!   Of blocks of b bytes it carries (n - 1) b / n in each of the 2 S slots, so that the throughput is half of that over one hop.
//!
//! It is a baseline: the planner `shifts` takes fewer settings where that is faster.

use crate::selection::contest::{Contender, Made};
use crate::{OnMachine, Planned, Planner, PlannerError, Question, Scope, ensure, switch::settings};
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Light;
use opticoll_fabric::fabric::circuits::Circuits;
use opticoll_fabric::family::circuit_switch::{CircuitSwitch, SwitchedLight};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::plan::{Plan, Relay};
use opticoll_plan::schedule::{Schedule, Transfer};

/// The planner of rotor schedules.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("hops", "circuits that a part of a block goes over at most")
            .range("1, 2")
            .default("1"),
        OptionRecord::new(
            "cycles",
            "cycles through all shifts; each carries as much of a block",
        )
        .range("1 to 1024; 2 with hops=2")
        .default("1, or 2 with hops=2"),
    ],
    by_size: true,
    ..Planner::new(
        NAME,
        "Rotor",
        &[CollectiveKind::AllToAll],
        "Blocks over a switch that goes through the shifts by 1, 2, ..., n - 1 in turn, directly or over a rank between",
        "Mellette et al., RotorNet, SIGCOMM 2017; Ballani et al., Sirius, SIGCOMM 2020",
        Scope::Switches(OnMachine::new(plan, contenders)),
    )
};

const NAME: &str = "rotor";

const MOST_CYCLES: u32 = 1024;

fn plan(
    spec: &Spec,
    question: &Question<'_>,
    switch: &CircuitSwitch,
) -> Result<Planned, PlannerError> {
    if question.collective.ranks() < 2 {
        return Ok(question.nothing_to_do(spec));
    }
    check_whole(switch)?;
    let hops = spec.count("hops", 1, 2)?.unwrap_or(1);
    let cycles = spec.count("cycles", 1, MOST_CYCLES)?;
    let plan = match (hops, cycles) {
        (1, cycles) => direct(question, switch, cycles.unwrap_or(1)),
        (_, None | Some(2)) => by_way_of_all(question, switch),
        _ => {
            let rule = "must be 2 with hops=2: one to the ranks between, and one from them";
            return Err(spec.refuse("cycles", rule).into());
        }
    };
    Ok(plan?.into())
}

/// Refuses a switch over which some rank cannot be joined to some other by every port.
fn check_whole(switch: &CircuitSwitch) -> Result<(), AlgorithmError> {
    let reason = "it joins every rank to every other over a circuit_switch without dead ports, \
                  each of whose planes is one switch";
    let is_whole = switch.is_one_switch() && switch.dead_ports.is_empty();
    ensure(is_whole, NAME, switch.ranks, reason)
}

/// One cycle over one hop.
fn contenders<'a>(
    question: &Question<'a>,
    switch: &'a CircuitSwitch,
) -> Result<Vec<Contender<'a>>, PlannerError> {
    let others = u64::from(switch.ranks - 1);
    let transfers = others * u64::from(switch.ranks);
    if check_whole(switch).is_err() || others == 0 || transfers > question.most_transfers {
        return Ok(Vec::new());
    }
    let slots = others.div_ceil(switch.ports.into());
    let (per_slot, change) = settings::prices(question, switch)?;
    let block = Bytes::new(question.size.get().div_ceil(switch.ranks.into()));
    let sending = u64::try_from(switch.transmission().ps(block)).unwrap_or(u64::MAX);
    let of_slot = [switch.startup.ps(), switch.latency.ps(), per_slot];
    let of_slot = of_slot.into_iter().fold(sending, u64::saturating_add);
    let changes = change.saturating_mul(slots - 1);
    let question = *question;
    Ok(vec![Contender {
        name: NAME.into(),
        slots,
        least: Time::ZERO,
        estimate: Time::from_ps(of_slot.saturating_mul(slots).saturating_add(changes)),
        transfers,
        make: Box::new(move |_| Ok(Made::from(direct(&question, switch, 1)?))),
    }])
}

/// The port of a shift, and the setting of a cycle that has it.
fn turn(switch: &CircuitSwitch, shift: u32) -> (u32, Light) {
    let (setting, port) = ((shift - 1) / switch.ports, (shift - 1) % switch.ports);
    let light = Light::from(SwitchedLight {
        source_port: port as u16,
        destination_port: port as u16,
    });
    (setting, light)
}

/// The settings of a cycle.
fn settings_of(switch: &CircuitSwitch) -> u32 {
    (switch.ranks - 1).div_ceil(switch.ports)
}

/// Each cycle carries a part of every block to its rank.
fn direct(
    question: &Question<'_>,
    switch: &CircuitSwitch,
    cycles: u32,
) -> Result<Plan, PlannerError> {
    let ranks = switch.ranks;
    let all = u64::from(ranks) * u64::from(ranks - 1) * u64::from(cycles);
    question.fits(all)?;
    let mut schedule = Schedule::new(question.collective.with_pieces(cycles)?);
    schedule.reserve(all as usize);
    schedule.begin_step();
    let (mut slots, mut light) = (Vec::new(), Vec::new());
    for cycle in 0..cycles {
        for shift in 1..ranks {
            interrupt::check();
            let (setting, own) = turn(switch, shift);
            for source in 0..ranks {
                let destination = (source + shift) % ranks;
                let chunk = (source * ranks + destination) * cycles + cycle;
                schedule.push(Transfer::copy(chunk, source, destination));
                slots.push(cycle * settings_of(switch) + setting);
                light.push(own);
            }
        }
    }
    let name = match cycles {
        1 => Spec::new(NAME),
        _ => Spec::new(NAME).with("cycles", cycles),
    };
    let mut plan = Plan::without_light(question.fabric, schedule, name.to_string());
    plan.light = light;
    plan.slot = slots;
    plan.step_slots[0] = 0..cycles * settings_of(switch);
    Ok(plan)
}

/// Every block over all ranks, a part each.
fn by_way_of_all(question: &Question<'_>, switch: &CircuitSwitch) -> Result<Plan, PlannerError> {
    let ranks = switch.ranks;
    let all = u64::from(ranks).pow(2) * u64::from(ranks - 1);
    question.fits(all)?;
    let mut schedule = Schedule::new(question.collective.with_pieces(ranks)?);
    schedule.reserve(all as usize);
    schedule.begin_step();
    let cycle = settings_of(switch);
    let (mut slots, mut light, mut relays) = (Vec::new(), Vec::new(), Vec::new());
    for source in 0..ranks {
        for after in 1..ranks {
            interrupt::check();
            let destination = (source + after) % ranks;
            for between in 0..ranks {
                let chunk = (source * ranks + destination) * ranks + between;
                let transfer = schedule.len() as u32;
                schedule.push(Transfer::copy(chunk, source, destination));
                if between == source {
                    let (setting, own) = turn(switch, after);
                    slots.push(cycle + setting);
                    light.push(own);
                    continue;
                }
                let (setting, own) = turn(switch, (between + ranks - source) % ranks);
                slots.push(setting);
                light.push(own);
                if between != destination {
                    let (setting, own) = turn(switch, (destination + ranks - between) % ranks);
                    relays.push(Relay {
                        transfer,
                        rank: between,
                        light: own,
                        slot: cycle + setting,
                    });
                }
            }
        }
    }
    let name = Spec::new(NAME).with("hops", 2).to_string();
    let mut plan = Plan::without_light(question.fabric, schedule, name);
    plan.light = light;
    plan.slot = slots;
    plan.relays = relays;
    plan.step_slots[0] = 0..2 * cycle;
    Ok(plan)
}
