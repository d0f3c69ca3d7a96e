//! Plans in which every rank sends by the same shifts, slot by slot.
//!
//! The ranks form a group: Z_N on a circuit switch of N ranks, Z_n x Z_m on a grid of n rows and m
//! columns. A *setting* assigns a shift to each port that works at every rank, or to each of the
//! two planes of a grid. A port with shift s connects every rank u to rank u + s.
//!
//! **All_to_all.** The block for rank u + o travels over circuits of setting 1, then of setting 2,
//! and so on; their shifts add up to o. The route is the same from every rank u. The sum of hops
//! over all offsets o determines the time for the bytes, the number of slots determines the sum of
//! the latencies, and the number of settings determines the sum of the reconfigurations. The lower
//! bound of a circuit switch (theorem C1) has these three numbers, too. Within a setting every
//! block makes its hops from the first slot on: with one port, slot t carries the blocks that make
//! at least t hops in the setting. With cut-through all hops of a setting share a slot. On a grid
//! each setting has one slot.
//!
//! **Rotors.** `shifts=all` goes through the shifts 1, 2, ..., N - 1 in turn, whatever is sent: S =
//! ceil((N - 1) / d) settings of d ports form a *cycle*, in which each block waits for the circuit
//! to its rank. With k cycles, each cycle carries a k-th of every block. With `relays=all`
//! (Valiant) a block has N parts: part w goes to rank w in the first cycle and from there to the
//! destination in the second; the part of the sender itself goes in the second cycle. All circuits
//! out of a rank carry the same number of bytes in the first cycle, and all circuits into a rank in
//! the second, whatever the demand.
//!
//! **Other collectives** run on grids only ([`over_planes`]). If only circuits that change are
//! charged and ranks do not wait for the end of a slot, all slots may use the same shifts, one
//! column and one row: after n + m - 2 slots every block has reached every rank, over circuits that
//! were tuned once.
//!
//! More slots cost more charges, fewer slots more hops. [`search`] chooses the sequences to try.

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
use spread::Spread;

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
            "number of cycles of a circuit switch through all settings; each cycle carries an \
             equal part of a block",
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
        NAME,
        "Shifts",
        &[
            CollectiveKind::AllToAll,
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::Scatter,
            CollectiveKind::Gather,
        ],
        "Every rank sends to ranks at fixed distances, over a few settings of a switch or over \
         both planes of a grid at the same time",
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

const NAME: &str = "shifts";

/// Maximum number of cycles of a rotor; a plan stores every cycle.
const MAX_CYCLES: u32 = 1024;

/// Machines with plans of shifts.
#[derive(Clone, Copy)]
enum ShiftMachine<'a> {
    Switch(&'a CircuitSwitch),
    Grid(&'a WssGrid),
}

impl<'a> ShiftMachine<'a> {
    /// Returns the machine of a question.
    ///
    /// # Errors
    /// A machine that cannot connect all ranks by the same shifts, and too many ranks.
    fn new(problem: &PlanningProblem<'a>) -> Result<ShiftMachine<'a>, AlgorithmError> {
        let ranks = problem.collective.ranks();
        let reason = format!("its search supports at most {MAX_RANKS} ranks");
        ensure(ranks <= MAX_RANKS, NAME, ranks, reason)?;
        match problem.fabric.circuit_machine() {
            Some(CircuitMachine::CircuitSwitch(switch)) => {
                check_joins_all(switch, NAME)?;
                let is_all_to_all = problem.collective.kind() == CollectiveKind::AllToAll;
                let reason = "on a circuit_switch it plans an all_to_all only";
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
                    "it sets the ports of a circuit_switch, or sends along rows and columns of a \
                     wss_grid"
                        .into(),
            }),
        }
    }
}

/// Refuses, in the name of a planner, a switch on which some shift cannot connect all ranks at
/// once.
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

/// Returns the ports that work at every rank.
pub(crate) fn ports_of_all(switch: &CircuitSwitch) -> Vec<u8> {
    let is_dead = |port: u32| switch.dead_ports.iter().any(|dead| dead.port == port);
    let ports = (0..switch.ports).filter(|port| !is_dead(*port));
    ports.map(|port| port as u8).collect()
}

/// Returns the shifts of one setting, kept for the whole plan, with the fewest hops
/// found. `None` if there are too many ranks for the search.
pub(crate) fn kept_setting_shifts(switch: &CircuitSwitch) -> Option<Vec<u32>> {
    if !(2..=MAX_RANKS).contains(&switch.ranks) {
        return None;
    }
    Search::new(&ShiftModel::hops_only(switch), u64::MAX).best_single_setting()
}

fn plan(spec: &Spec, problem: &PlanningProblem<'_>) -> Result<Planned, PlannerError> {
    if problem.collective.ranks() < 2 {
        return Ok(problem.nothing_to_do(spec));
    }
    let machine = ShiftMachine::new(problem)?;
    let refuse_of_switch = |rule: &str| {
        let mut keys = ["cycles", "relays"].into_iter();
        let given = keys.find(|key| spec.option(key).is_some());
        given.map_or(Ok(()), |key| Err(spec.refuse(key, rule)))
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
            let settings = shifts.chunks(model.ports.len());
            Some(Sequence(settings.map(<[u32]>::to_vec).collect()))
        }
        _ => Sequence::parse(text, &model.ports),
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
    let plan = build(problem, machine, &model, &sequence, rotor, spec.to_string())?;
    let plan = plan.ok_or_else(|| spec.refuse("shifts", "does not lead to all ranks"))?;
    Ok(plan.into())
}

/// Builds the plan of a sequence; `None` if the sequence does not reach all ranks.
///
/// # Errors
/// More hops than allowed.
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

/// Returns the best sequence that the search finds; on a grid also the best sequence whose circuits
/// never change.
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
    // Sequences with their times in picoseconds and the hops of all blocks.
    let mut sequences = Vec::new();
    if kind == CollectiveKind::AllToAll {
        let best = search.best();
        sequences
            .extend(best.map(|(sequence, routes)| (sequence, routes.time(&model), routes.count())));
    } else {
        // Circuits that do not change may save time. This does not hold for a scatter: the blocks
        // request its circuits one after the other as they arrive.
        let keeps = problem.policy() == Policy::TwoTier && kind != CollectiveKind::Scatter;
        let kept = keeps.then(|| repeated_setting(&model, kind)).flatten();
        let spread = search.fastest_spread().into_iter().chain(kept);
        sequences.extend(spread.map(|(sequence, time)| (sequence, time, blocks)));
    }
    let problem = *problem;
    let candidates = sequences.into_iter().map(|(sequence, time, hops)| {
        let model = model.clone();
        let spec = Spec::new(NAME).with("shifts", sequence.text(&model.ports));
        Candidate {
            name: spec.to_string(),
            slots: sequence.0.len() as u64,
            lower_bound: Time::ZERO,
            estimate: Time::from_ps(time),
            transfers: match machine {
                ShiftMachine::Switch(_) => hops,
                // Blocks next to one another are one transfer.
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

/// Returns the sequence with the same shifts by one rank in all slots, and its time in picoseconds
/// if only the first slot is charged. A reduce_scatter uses the opposite shifts, so that its
/// circuits, reversed, are those of an all_gather that follows.
fn repeated_setting(model: &ShiftModel, kind: CollectiveKind) -> Option<(Sequence, u64)> {
    let shifts = model.ports.iter().map(|port| match kind {
        CollectiveKind::ReduceScatter => port.max_units * port.unit,
        _ => port.max_units.min(1) * port.unit,
    });
    let slots = model.ports.iter().map(|port| port.max_units).sum::<u32>();
    let sequence = Sequence(vec![shifts.collect(); slots as usize]);
    let load = Spread::of(model.group, &sequence)?.load();
    let time = model.time(1, 1, load);
    Some((sequence, time))
}

/// Number of pieces of a block and the choice of its relays.
#[derive(Clone, Copy)]
struct Rotor {
    cycles: u32,
    /// True if every rank relays a part of each block.
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
    /// Returns the legs of each piece of the block that `source` sends to rank `source` + `after`,
    /// modulo `ranks`. A leg is a pair: a cycle, and the number of ranks by which the piece
    /// advances in the cycle.
    fn legs(self, ranks: u32, source: u32, after: u32) -> Vec<Vec<(u32, u32)>> {
        if !self.is_relayed {
            return (0..self.cycles).map(|cycle| vec![(cycle, after)]).collect();
        }
        let legs_through = |relay: u32| {
            let first = (relay + ranks - source) % ranks;
            let legs = [(0, first), (1, (after + ranks - first) % ranks)];
            legs.into_iter().filter(|(_, places)| *places > 0).collect()
        };
        (0..ranks).map(legs_through).collect()
    }
}

/// Builds the plan of routes over a switch.
///
/// # Errors
/// More hops than allowed.
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
