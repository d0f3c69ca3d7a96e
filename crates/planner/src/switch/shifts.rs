//! Plans in which every rank does the same: each sends to the ranks some shifts after it, slot by
//! slot.
//!
//! The ranks are a group, Z_N on a circuit switch and Z_n x Z_m on a grid of n rows and m columns.
//! A *setting* has a shift for each port that no rank has dead, or for both planes of the grid: its
//! port joins every rank u to u + s.
//!
//! **All_to_all.** The block for the rank o places on goes over circuits of setting 1, then of
//! setting 2, and so on, so that their shifts add up to o: the same way from every rank. What
//! counts is the sum of hops over all o, for the bytes, the number of slots, for the latencies, and
//! that of settings, for the reconfigurations; no plan with so many of each takes less than the
//! bound of the family says. In a setting all blocks make their hops from its first slot on. With
//! one port slot t so carries the blocks that make t hops or more in the setting. With cut-through
//! all hops of a setting are in one slot. On a grid each setting has one slot.
//!
//! **Rotors.** `shifts=all` goes through the shifts 1, 2, ..., N - 1 in turn, whatever is sent: S =
//! ceil((N - 1) / d) settings of d ports are a *cycle*, in which each block waits for the circuit
//! to its rank. In k cycles each carries a k-th of it. With `relays=all` (Valiant) the N-th part of
//! a block that belongs to rank w goes to w in the first cycle, and on from there in the second;
//! the part of the sender itself goes in the second cycle. So the circuits out of one rank carry
//! the same in the first cycle, and those into one rank in the second, whatever the demand.
//!
//! **Other collectives** run on grids alone ([`over_planes`]). Where only circuits that change are
//! charged and ranks do not wait for the end of a slot, all slots may have the same shifts, by one
//! column and by one row: after n + m - 2 slots all have heard of all, over circuits that are tuned
//! once.
//!
//! More slots cost more charges, fewer of them more hops. Which sequences are tried: `search`.

mod group;
mod over_planes;
mod search;
mod spread;
mod ways;

use crate::selection::contest::{Contender, Contest, ContestOutcome};
use crate::{Planned, Planner, PlannerError, Question, Scope, ensure};
use group::{MAX_RANKS, Sequence};
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Time;
use opticoll_fabric::fabric::Light;
use opticoll_fabric::families::CircuitMachine;
use opticoll_fabric::family::circuit_switch::{CircuitSwitch, SwitchedLight};
use opticoll_fabric::family::wss_grid::WssGrid;
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::plan::{Plan, Relay};
use opticoll_plan::schedule::{Schedule, Transfer};
use opticoll_simulate::Policy;
use search::Search;
use spread::Spread;
use ways::{Price, Ways};

/// The planner of shifts.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new(
            "shifts",
            "shift of each port in each setting, such as 1x15x11, or 1+63x12+52 with two ports; \
             on a grid along the row and along the column, such as 3+1x1+2; all, on a circuit \
             switch: 1, 2, ... in turn",
        )
        .range("numbers below the number of ranks, columns or rows, joined by + and x; all")
        .default("the fastest found"),
        OptionRecord::new(
            "cycles",
            "times that a circuit switch goes through all settings; each carries as much of a \
             block",
        )
        .range("1 to 1024")
        .default("1"),
        OptionRecord::new(
            "relays",
            "relays of a block on a circuit switch: the fewest, or all ranks, a part of the block \
             each, in two cycles",
        )
        .range("fewest, all")
        .default("fewest"),
    ],
    by_size: true,
    ..Planner::new(
        NAME,
        "Shifts",
        &[
            CollectiveKind::AllToAll,
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::Scatter,
            CollectiveKind::Gather,
        ],
        "Every rank sends to the ranks some places on, over a few settings of a switch or both \
         planes of a grid at once",
        "opticoll; near to arXiv 2602.10468 and ReTri, arXiv 2605.26930; rotors: Mellette et al., \
         RotorNet, SIGCOMM 2017",
        Scope::Any(
            |fabric| {
                use CircuitMachine::{CircuitSwitch, WssGrid};
                let machine = fabric.circuit_machine();
                matches!(machine, Some(CircuitSwitch(_) | WssGrid(_)))
            },
            plan,
            contenders,
        ),
    )
};

const NAME: &str = "shifts";

const MAX_CYCLES: u32 = 1024;

/// A machine that shifts are planned on.
#[derive(Clone, Copy)]
enum ShiftMachine<'a> {
    Switch(&'a CircuitSwitch),
    Grid(&'a WssGrid),
}

impl<'a> ShiftMachine<'a> {
    /// Returns the machine of a question; refuses one on which it cannot join all ranks by the same
    /// shifts.
    fn of(question: &Question<'a>) -> Result<ShiftMachine<'a>, AlgorithmError> {
        let ranks = question.collective.ranks();
        let reason = format!("its search is for {MAX_RANKS} ranks at most");
        ensure(ranks <= MAX_RANKS, NAME, ranks, reason)?;
        match question.fabric.circuit_machine() {
            Some(CircuitMachine::CircuitSwitch(switch)) => {
                check_joins_all(switch, NAME)?;
                let is_all_to_all = question.collective.kind() == CollectiveKind::AllToAll;
                let reason = "on a circuit_switch it plans an all_to_all alone";
                ensure(is_all_to_all, NAME, ranks, reason)?;
                Ok(ShiftMachine::Switch(switch))
            }
            Some(CircuitMachine::WssGrid(grid)) => {
                let reason = "every place of the grid must have a rank whose two transceivers work";
                ensure(grid.is_whole(), NAME, ranks, reason)?;
                Ok(ShiftMachine::Grid(grid))
            }
            _ => Err(AlgorithmError::Refused {
                name: NAME,
                ranks,
                reason:
                    "it sets the ports of a circuit_switch, or sends along rows and columns of \
                         a wss_grid"
                        .into(),
            }),
        }
    }
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

/// Returns the ports that no rank has dead.
pub(crate) fn ports_of_all(switch: &CircuitSwitch) -> Vec<u8> {
    let is_dead = |port: u32| switch.dead_ports.iter().any(|dead| dead.port == port);
    let ports = (0..switch.ports).filter(|port| !is_dead(*port));
    ports.map(|port| port as u8).collect()
}

/// Returns the shifts of one setting with the fewest hops found; `None` where the ranks are too
/// many for the search.
pub(crate) fn fewest_hops(switch: &CircuitSwitch) -> Option<Vec<u32>> {
    if !(2..=MAX_RANKS).contains(&switch.ranks) {
        return None;
    }
    Search::new(&Price::of_hops(switch), u64::MAX).fewest_hops()
}

fn plan(spec: &Spec, question: &Question<'_>) -> Result<Planned, PlannerError> {
    if question.collective.ranks() < 2 {
        return Ok(question.nothing_to_do(spec));
    }
    let machine = ShiftMachine::of(question)?;
    let refuse_of_switch = |rule: &str| {
        let mut keys = ["cycles", "relays"].into_iter();
        let given = keys.find(|key| spec.option(key).is_some());
        given.map_or(Ok(()), |key| Err(spec.refuse(key, rule)))
    };
    let Some(text) = spec.option("shifts") else {
        refuse_of_switch("needs shifts=all, or other shifts")?;
        let contest = Contest::new(question)?;
        let contenders = contenders(question)?;
        let ContestOutcome {
            fastest,
            candidates,
            ..
        } = contest.run(contenders, Vec::new())?;
        return Ok(Planned {
            candidates,
            ..fastest?.0.into()
        });
    };
    let mut price = Price::new(question, machine)?;
    let sequence = match (text, machine) {
        ("all", ShiftMachine::Switch(switch)) => {
            price.most_slots = 1;
            let shifts: Vec<u32> = (1..switch.ranks).collect();
            let settings = shifts.chunks(price.ports.len());
            Some(Sequence(settings.map(<[u32]>::to_vec).collect()))
        }
        _ => Sequence::parse(text, &price.ports),
    };
    let rule = "must be a shift of each port or plane in each setting, joined by + and x: numbers \
                below the ranks of the switch, or the columns and the rows of the grid";
    let sequence = sequence.ok_or_else(|| spec.refuse("shifts", rule))?;
    let rotor = Rotor {
        cycles: spec.count("cycles", 1, MAX_CYCLES)?.unwrap_or(1),
        is_relayed: opticoll_algorithms::choice(
            spec,
            "relays",
            &[("fewest", false), ("all", true)],
        )?,
    };
    if matches!(machine, ShiftMachine::Grid(_)) {
        refuse_of_switch("needs a circuit_switch")?;
    }
    if rotor.is_relayed && spec.option("cycles").is_some() {
        let rule =
            "must be left out with relays=all: one cycle leads to the relays, and one from them";
        return Err(spec.refuse("cycles", rule).into());
    }
    let plan = built(
        question,
        machine,
        &price,
        &sequence,
        rotor,
        spec.to_string(),
    )?;
    let plan = plan.ok_or_else(|| spec.refuse("shifts", "does not lead to all ranks"))?;
    Ok(plan.into())
}

/// Builds the plan of a sequence; `None` where it does not lead to all ranks.
///
/// # Errors
/// More hops than are allowed.
fn built(
    question: &Question<'_>,
    machine: ShiftMachine<'_>,
    price: &Price,
    sequence: &Sequence,
    rotor: Rotor,
    name: String,
) -> Result<Option<Plan>, PlannerError> {
    match machine {
        ShiftMachine::Switch(switch) => {
            let ways = Ways::of(sequence, price);
            let plan = ways.map(|ways| over_circuits(question, switch, &ways, rotor, name));
            plan.transpose()
        }
        ShiftMachine::Grid(_) => {
            let schedule = over_planes::scheduled(question, price, sequence)?;
            let plan = schedule.map(|schedule| {
                opticoll_placement::place_by_default(schedule, question.fabric, name)
            });
            Ok(plan.transpose()?)
        }
    }
}

/// Returns the best sequence that the search comes to; on a grid also that whose circuits stay.
fn contenders<'a>(question: &Question<'a>) -> Result<Vec<Contender<'a>>, PlannerError> {
    let ranks = u64::from(question.collective.ranks());
    let kind = question.collective.kind();
    let blocks = match kind {
        CollectiveKind::Scatter | CollectiveKind::Gather => 8 * ranks,
        _ => ranks * ranks,
    };
    let machine = match ShiftMachine::of(question) {
        Ok(machine) if ranks > 1 && blocks <= question.most_transfers => machine,
        _ => return Ok(Vec::new()),
    };
    let price = Price::new(question, machine)?;
    let search = Search::new(&price, question.most_transfers);
    // Sequences, with their times and the hops of their blocks.
    let mut found = Vec::new();
    if kind == CollectiveKind::AllToAll {
        let best = search.best();
        found.extend(best.map(|(sequence, ways)| (sequence, ways.time(&price), ways.count())));
    } else {
        // Circuits that do not change may save time: those of a scatter are asked for one after the
        // other, as its blocks come.
        let keeps = question.policy() == Policy::TwoTier && kind != CollectiveKind::Scatter;
        let kept = keeps.then(|| steady(&price, kind)).flatten();
        let spread = search.best_spread().into_iter().chain(kept);
        found.extend(spread.map(|(sequence, time)| (sequence, time, blocks)));
    }
    let question = *question;
    let contenders = found.into_iter().map(|(sequence, time, hops)| {
        let price = price.clone();
        let spec = Spec::new(NAME).with("shifts", sequence.text(&price.ports));
        Contender {
            name: spec.to_string(),
            slots: sequence.0.len() as u64,
            least: Time::ZERO,
            estimate: Time::from_ps(time),
            transfers: match machine {
                ShiftMachine::Switch(_) => hops,
                // Blocks next to one another are one transfer.
                ShiftMachine::Grid(_) => question.work(hops) / 8,
            },
            make: Box::new(move |_| {
                let (rotor, name) = (Rotor::default(), spec.to_string());
                let plan = built(&question, machine, &price, &sequence, rotor, name)?;
                Ok(plan.ok_or(PlannerError::NotFound { pieces: 1 })?.into())
            }),
        }
    });
    Ok(contenders.collect())
}

/// Returns the sequence of the same shifts in all slots, by one rank, and the time that it takes
/// where only the first slot is charged. A reduce_scatter goes backwards: its circuits are then
/// those of an all_gather that follows.
fn steady(price: &Price, kind: CollectiveKind) -> Option<(Sequence, u64)> {
    let shifts = price.ports.iter().map(|port| match kind {
        CollectiveKind::ReduceScatter => port.most * port.unit,
        _ => port.most.min(1) * port.unit,
    });
    let slots = price.ports.iter().map(|port| port.most).sum::<u32>();
    let sequence = Sequence(vec![shifts.collect(); slots as usize]);
    let load = Spread::of(price.group, &sequence)?.load();
    let time = price.time(1, 1, load);
    Some((sequence, time))
}

/// The pieces of blocks, and the relays that they take.
#[derive(Clone, Copy)]
struct Rotor {
    cycles: u32,
    /// Whether all ranks relay a part of each block.
    is_relayed: bool,
}

impl Default for Rotor {
    fn default() -> Rotor {
        Rotor {
            cycles: 1,
            is_relayed: false,
        }
    }
}

impl Rotor {
    /// Returns, for each piece of the block for the rank `after` places on, the cycles in which it
    /// goes how many places on.
    fn legs(self, ranks: u32, source: u32, after: u32) -> Vec<Vec<(u32, u32)>> {
        if !self.is_relayed {
            return (0..self.cycles).map(|cycle| vec![(cycle, after)]).collect();
        }
        let by_way_of = |between: u32| {
            let first = (between + ranks - source) % ranks;
            let legs = [(0, first), (1, (after + ranks - first) % ranks)];
            legs.into_iter().filter(|(_, places)| *places > 0).collect()
        };
        (0..ranks).map(by_way_of).collect()
    }
}

/// Returns the plan of ways over a switch.
///
/// # Errors
/// More hops than are allowed.
fn over_circuits(
    question: &Question<'_>,
    switch: &CircuitSwitch,
    ways: &Ways,
    rotor: Rotor,
    name: String,
) -> Result<Plan, PlannerError> {
    let ranks = switch.ranks;
    let (pieces, cycles, legs) = match rotor.is_relayed {
        true => (ranks, 2, u64::from(ranks)),
        false => (rotor.cycles, rotor.cycles, u64::from(rotor.cycles)),
    };
    question.fits(ways.count().saturating_mul(legs))?;
    let mut schedule = Schedule::new(question.collective.with_pieces(pieces)?);
    schedule.begin_step();
    let ports = ports_of_all(switch);
    let (mut slots, mut lights, mut relays) = (Vec::new(), Vec::new(), Vec::new());
    for source in 0..ranks {
        for after in 1..ranks {
            interrupt::check();
            let destination = (source + after) % ranks;
            let block = source * ranks + destination;
            for (piece, legs) in (0..).zip(rotor.legs(ranks, source, after)) {
                let transfer = schedule.len() as u32;
                schedule.push(Transfer::copy(block * pieces + piece, source, destination));
                let hops = legs.into_iter().flat_map(|(cycle, places)| {
                    let hops = ways.hops[places as usize].iter();
                    hops.map(move |hop| (cycle * ways.slots + hop.slot, hop))
                });
                let mut rank = source;
                for (place, (slot, hop)) in hops.enumerate() {
                    let port = ports[usize::from(hop.port)];
                    let light = Light::from(SwitchedLight {
                        source_port: port.into(),
                        destination_port: port.into(),
                    });
                    if place == 0 {
                        slots.push(slot);
                        lights.push(light);
                    } else {
                        relays.push(Relay {
                            transfer,
                            rank,
                            light,
                            slot,
                        });
                    }
                    rank = (rank + hop.shift) % ranks;
                }
            }
        }
    }
    let mut plan = Plan::without_light(question.fabric, schedule, name);
    plan.light = lights;
    plan.slot = slots;
    plan.relays = relays;
    plan.step_slots[0] = 0..cycles * ways.slots;
    Ok(plan)
}
