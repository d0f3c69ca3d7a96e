//! Plans in which every rank sends to ranks at the same distances (*shifts*), slot by slot.
//!
//! The ranks form an algebraic group: Z_N on a circuit switch of N ranks, Z_n x Z_m on a grid of n
//! rows and m columns. A *configuration* assigns a shift to each port that works at every rank, or
//! to each of the two planes of a grid. A port with shift s connects every rank u to rank u + s.
//!
//! **All_to_all.** The block of rank u for rank u + o uses circuits of configuration 1, then of
//! configuration 2, and so on. The shifts of these circuits add up to o. The route is the same from
//! every rank u. Three numbers determine the time, and they also occur in the lower bound of a
//! circuit switch (theorem C1):
//!
//! - the sum of hops over all offsets o determines the transmission time,
//! - the number of slots determines the sum of the latencies, and
//! - the number of configurations determines the sum of the reconfigurations.
//!
//! Within a configuration, every block makes its hops from the first slot on. With cut-through, all
//! hops of a configuration share a slot. On a grid, each configuration has one slot.
//!
//! **Rotors.** `shifts=all` uses the shifts 1, 2, ..., N - 1 in turn. With d ports, ceil((N-1) / d)
//! configurations form a *cycle*, in which each block waits for the circuit to its
//! destination. With k cycles, each cycle transmits a k-th of every block. With `relays=all`
//! (Valiant), a block has N parts. Part w is sent to rank w in the first cycle, and from rank w to
//! the destination in the second cycle. (The sender keeps its own part during the first cycle.) For
//! every demand, all circuits out of a rank then carry equal numbers of bytes in the first cycle,
//! and all circuits into a rank carry equal numbers of bytes in the second cycle.
//!
//! **Other collectives** are supported on grids only ([`over_planes`]). Some policies charge only
//! circuits that change, and ranks do not wait for the end of a slot. Under these policies, all
//! slots may use the same two shifts, by one column and by one row. After n + m - 2 slots, every
//! block has reached every rank over circuits that were set up once.
//!
//! More slots are charged more reconfigurations; fewer slots need more hops. [`search`] chooses the
//! sequences of configurations that the planner tries.

mod group;
mod model;
mod over_planes;
mod routes;
mod search;
mod spread;

use crate::selection::evaluation::{Candidate, Evaluation};
use crate::{Planned, Planner, PlannerError, PlanningProblem, Scope, ensure};
use group::{MAX_RANKS, Sequence};
use model::ShiftModel;
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
use routes::Routes;
use search::Search;
use spread::ShiftTree;

pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new(
            "shifts",
            "shift of each port in each configuration, such as 1x15x11, or 1+63x12+52 with two \
             ports; on a grid along the row and along the column, such as 3+1x1+2; all, on a \
             circuit switch: 1, 2, ... in turn",
        )
        .range("numbers below the number of ranks, columns or rows, joined by + and x; all")
        .default("the fastest found"),
        OptionRecord::new(
            "cycles",
            "number of cycles of a circuit switch through all configurations; each cycle \
            carries an equal part of a block",
        )
        .range("1 to 1024")
        .default("1"),
        OptionRecord::new(
            "relays",
            "relays of a block on a circuit switch: the fewest, or all ranks, each with a part of \
             the block, in two cycles",
        )
        .range("fewest, all")
        .default("fewest"),
    ],
    depends_on_size: true,
    ..Planner::new(
        "shifts",
        "Shifts",
        &[
            CollectiveKind::AllToAll,
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::Scatter,
            CollectiveKind::Gather,
        ],
        "Every rank sends to ranks at fixed distances, over a few configurations of a switch \
        or over both planes of a grid at the same time",
        "opticoll; near to arXiv 2602.10468 and ReTri, arXiv 2605.26930; rotors: Mellette et al., \
         RotorNet, SIGCOMM 2017",
        Scope::Any(
            |fabric| {
                use CircuitMachine::{CircuitSwitch, WssGrid};
                let machine = fabric.circuit_machine();
                matches!(machine, Some(CircuitSwitch(_) | WssGrid(_)))
            },
            plan,
            candidates,
        ),
    )
};

const MAX_CYCLES: u32 = 1024;

/// Fabric that supports plans of shifts, in which all ranks send to ranks at the same distances.
#[derive(Clone, Copy)]
enum ShiftMachine<'a> {
    Switch(&'a CircuitSwitch),
    Grid(&'a WssGrid),
}

impl<'a> ShiftMachine<'a> {
    /// Returns the fabric of a planning problem.
    fn new(problem: &PlanningProblem<'a>) -> Result<ShiftMachine<'a>, AlgorithmError> {
        let ranks = problem.collective.ranks();
        let reason = format!("its search supports at most {MAX_RANKS} ranks");
        ensure(ranks <= MAX_RANKS, PLANNER.name, ranks, reason)?;
        match problem.fabric.circuit_machine() {
            Some(CircuitMachine::CircuitSwitch(switch)) => {
                check_joins_all(switch, PLANNER.name)?;
                let is_all_to_all = problem.collective.kind() == CollectiveKind::AllToAll;
                let reason = "on a circuit_switch it plans an all_to_all only";
                ensure(is_all_to_all, PLANNER.name, ranks, reason)?;
                Ok(ShiftMachine::Switch(switch))
            }
            Some(CircuitMachine::WssGrid(grid)) => {
                let reason = "every place of the grid must have a rank whose two transceivers work";
                ensure(grid.is_whole(), PLANNER.name, ranks, reason)?;
                Ok(ShiftMachine::Grid(grid))
            }
            _ => Err(AlgorithmError::Refused {
                name: PLANNER.name,
                ranks,
                reason:
                    "it sets the ports of a circuit_switch, or sends along rows and columns of a \
                     wss_grid"
                        .into(),
            }),
        }
    }
}

/// Checks that every shift can connect all ranks of the switch at the same time.
pub(crate) fn check_joins_all(
    switch: &CircuitSwitch,
    name: &'static str,
) -> Result<(), AlgorithmError> {
    let reason = "it joins every rank to every other rank, so each plane must be one switch: leave \
                  switch_ports out";
    ensure(switch.is_one_switch(), name, switch.ranks, reason)?;
    let reason = "it joins all ranks over the same ports, but each port is dead at some rank";
    ensure(!ports_of_all(switch).is_empty(), name, switch.ranks, reason)
}

/// Returns the indices of the ports that work at every rank.
pub(crate) fn ports_of_all(switch: &CircuitSwitch) -> Vec<u8> {
    let is_dead = |port: u32| switch.dead_ports.iter().any(|dead| dead.port == port);
    let ports = (0..switch.ports).filter(|port| !is_dead(*port));
    ports.map(|port| port as u8).collect()
}

/// Searches for the shifts, one per port, with the fewest hops if the switch has the same
/// configuration in the whole plan. Returns `None` if the number of ranks is not supported.
pub(crate) fn kept_setting_shifts(switch: &CircuitSwitch) -> Option<Vec<u32>> {
    if !(2..=MAX_RANKS).contains(&switch.ranks) {
        return None;
    }
    Search::new(&ShiftModel::hops_only(switch), u64::MAX).best_single_configuration()
}

fn plan(spec: &Spec, problem: &PlanningProblem<'_>) -> Result<Planned, PlannerError> {
    let machine = ShiftMachine::new(problem)?;
    let refuse_of_switch = |rule: &str| {
        let mut keys = ["cycles", "relays"].into_iter();
        let key = keys.find(|key| spec.option(key).is_some());
        key.map_or(Ok(()), |key| Err(spec.refuse(key, rule)))
    };
    let Some(text) = spec.option("shifts") else {
        refuse_of_switch("needs shifts=all, or other shifts")?;
        return Evaluation::new(problem)?.choose(candidates(problem)?);
    };
    let mut model = ShiftModel::new(problem, machine)?;
    let sequence = match (text, machine) {
        ("all", ShiftMachine::Switch(switch)) => {
            model.max_slots = 1;
            let shifts: Vec<u32> = (1..switch.ranks).collect();
            let configurations = shifts.chunks(model.ports.len());
            Some(Sequence(configurations.map(<[u32]>::to_vec).collect()))
        }
        _ => Sequence::parse(text, &model.ports),
    };
    let rule = "must be a shift of each port or plane in each configuration, joined by + and x: \
                numbers below the ranks of the switch, or the columns and the rows of the grid";
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
    let plan = build(problem, machine, &model, &sequence, rotor, spec.to_string())?;
    let plan = plan.ok_or_else(|| spec.refuse("shifts", "does not lead to all ranks"))?;
    Ok(plan.into())
}

/// Builds the plan of a sequence of configurations. Returns `None` if the blocks cannot reach all
/// ranks.
fn build(
    problem: &PlanningProblem<'_>,
    machine: ShiftMachine<'_>,
    model: &ShiftModel,
    sequence: &Sequence,
    rotor: Rotor,
    name: String,
) -> Result<Option<Plan>, PlannerError> {
    match machine {
        ShiftMachine::Switch(switch) => {
            let routes = Routes::of(sequence, model);
            let plan = routes.map(|routes| over_circuits(problem, switch, &routes, rotor, name));
            plan.transpose()
        }
        ShiftMachine::Grid(_) => {
            let schedule = over_planes::build_schedule(problem, model, sequence)?;
            let plan = schedule.map(|schedule| {
                opticoll_placement::place_by_default(schedule, problem.fabric, name)
            });
            Ok(plan.transpose()?)
        }
    }
}

/// Searches for the fastest sequence of configurations and returns it as a candidate for `auto`. On
/// a grid, may also return a sequence whose circuits never change.
fn candidates<'a>(problem: &PlanningProblem<'a>) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let ranks = u64::from(problem.collective.ranks());
    let kind = problem.collective.kind();
    let blocks = match kind {
        CollectiveKind::Scatter | CollectiveKind::Gather => 8 * ranks,
        _ => ranks * ranks,
    };
    let machine = match ShiftMachine::new(problem) {
        Ok(machine) if ranks > 1 && blocks <= problem.max_transfers => machine,
        _ => return Ok(Vec::new()),
    };
    let model = ShiftModel::new(problem, machine)?;
    let search = Search::new(&model, problem.max_transfers);
    let mut sequences = Vec::new();
    if kind == CollectiveKind::AllToAll {
        let best = search.fastest();
        sequences
            .extend(best.map(|(sequence, routes)| (sequence, routes.time(&model), routes.count())));
    } else {
        // Circuits that never change may save time, except in a scatter: there, circuits are
        // requested one after the other as blocks arrive.
        let may_repeat = problem.policy() == Policy::TwoTier && kind != CollectiveKind::Scatter;
        let repeated = may_repeat
            .then(|| repeated_configuration(&model, kind))
            .flatten();
        let timed = search.fastest_tree().into_iter().chain(repeated);
        sequences.extend(timed.map(|(sequence, time)| (sequence, time, blocks)));
    }
    let problem = *problem;
    let candidates = sequences.into_iter().map(|(sequence, time, hops)| {
        let model = model.clone();
        let spec = Spec::new(PLANNER.name).with("shifts", sequence.text(&model.ports));
        Candidate {
            name: spec.to_string(),
            slots: sequence.0.len() as u64,
            lower_bound: Time::ZERO,
            estimate: Time::from_ps(time),
            transfers: match machine {
                ShiftMachine::Switch(_) => hops,
                ShiftMachine::Grid(_) => problem.work(hops) / 8,
            },
            build: Box::new(move |_| {
                let (rotor, name) = (Rotor::default(), spec.to_string());
                let plan = build(&problem, machine, &model, &sequence, rotor, name)?;
                Ok(plan.ok_or(PlannerError::NotFound { pieces: 1 })?.into())
            }),
        }
    });
    Ok(candidates.collect())
}

/// Returns the sequence in which every slot sends data one row and one column further (in the
/// opposite direction for a reduce_scatter), and the time in picoseconds if only the first slot is
/// charged.
fn repeated_configuration(model: &ShiftModel, kind: CollectiveKind) -> Option<(Sequence, u64)> {
    let shifts = model.ports.iter().map(|port| match kind {
        CollectiveKind::ReduceScatter => port.max_units * port.unit,
        _ => port.max_units.min(1) * port.unit,
    });
    let slots = model.ports.iter().map(|port| port.max_units).sum::<u32>();
    let sequence = Sequence(vec![shifts.collect(); slots as usize]);
    let load = ShiftTree::of(model.group, &sequence)?.load();
    let time = model.time(1, 1, load);
    Some((sequence, time))
}

/// Options of a rotor: a plan that uses all shifts in turn.
#[derive(Clone, Copy)]
struct Rotor {
    cycles: u32,
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
    /// Returns the legs of each piece of a block. The destination of the block is `offset` ranks
    /// after `source`. A leg is (index of a cycle of configurations, number of ranks by which the
    /// piece advances in this cycle).
    fn legs(self, ranks: u32, source: u32, offset: u32) -> Vec<Vec<(u32, u32)>> {
        if !self.is_relayed {
            return (0..self.cycles)
                .map(|cycle| vec![(cycle, offset)])
                .collect();
        }
        let legs_through = |relay: u32| {
            let first = (relay + ranks - source) % ranks;
            let legs = [(0, first), (1, (offset + ranks - first) % ranks)];
            legs.into_iter().filter(|(_, places)| *places > 0).collect()
        };
        (0..ranks).map(legs_through).collect()
    }
}

fn over_circuits(
    problem: &PlanningProblem<'_>,
    switch: &CircuitSwitch,
    routes: &Routes,
    rotor: Rotor,
    name: String,
) -> Result<Plan, PlannerError> {
    let ranks = switch.ranks;
    let (pieces, cycles, legs) = match rotor.is_relayed {
        true => (ranks, 2, u64::from(ranks)),
        false => (rotor.cycles, rotor.cycles, u64::from(rotor.cycles)),
    };
    problem.fits(routes.count().saturating_mul(legs))?;
    let mut schedule = Schedule::new(problem.collective.with_pieces(pieces)?);
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
                    let hops = routes.hops[places as usize].iter();
                    hops.map(move |hop| (cycle * routes.slots + hop.slot, hop))
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
    let mut plan = Plan::without_light(problem.fabric, schedule, name);
    plan.light = lights;
    plan.slot = slots;
    plan.relays = relays;
    plan.step_slots[0] = 0..cycles * routes.slots;
    Ok(plan)
}
