//! An all_to_all whose blocks differ, over a circuit switch without relays: the demand as a sum of
//! settings, each for a time.
//!
//! A *matching* is a set of pairs of ranks, each rank the source of one pair at most and the
//! destination of one. Ports with one number join the pairs of one matching. Where all ports of a
//! setting change together, a matching lasts as long as its largest chunk; [`matchings`] makes as
//! few of them as the busiest rank has pairs and puts chunks of like size together. Blocks above a
//! length are cut, so that they fill matchings of their own: more settings, and less idle time. A
//! few lengths are tried, and the one with the least time is taken.
//!
//! Where the whole switch changes at once (`all_stop`), the matchings of a slot are those of as
//! many ports, of like length. Under `planes` they are shared out over planes, each to the plane
//! that is done first. Under `per_port` no port need wait for another: pairs are also started one
//! by one ([`list`]), and the faster of both is taken.
//!
//! On a ring of wavelengths chunks are lightpaths from source to destination, so that a large block
//! takes many channels, and the assignment of wavelengths gives them slots.

mod list;
mod matchings;

use crate::selection::evaluation::{Built, Candidate, Evaluation, QUICK_TRANSFERS};
use crate::{Planned, Planner, PlannerError, PlanningProblem, Scope, combined::shifts, empty_plan};
use matchings::Matching;
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Light;
use opticoll_fabric::fabric::circuits::{Charge, Circuits};
use opticoll_fabric::families::CircuitMachine;
use opticoll_fabric::family::circuit_switch::{CircuitSwitch, FirstSetting, SwitchedLight};
use opticoll_plan::collective::{CollectiveKind, DemandMatrix};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Schedule, Transfer};

/// The planner of demands.
pub(crate) const PLANNER: Planner = Planner {
    options: &[OptionRecord::new(
        "longest",
        "largest chunk into which blocks are cut, such as 1MiB; `whole` cuts none",
    )
    .unit("bytes")
    .range("from 1B, or whole")
    .default("the fastest found")],
    by_size: true,
    takes_demands: true,
    ..Planner::new(
        NAME,
        "Decomposition",
        &[CollectiveKind::AllToAll],
        "Blocks that differ over circuits without relays: chunks of like size in one setting, on \
         planes side by side",
        "opticoll; decompositions of Birkhoff and von Neumann as in Spectra, arXiv 2603.07373",
        Scope::Any(
            |fabric| {
                use CircuitMachine::{CircuitSwitch, WdmRing};
                let machine = fabric.circuit_machine();
                matches!(machine, Some(CircuitSwitch(_) | WdmRing(_)))
            },
            plan,
            candidates,
        ),
    )
};

const NAME: &str = "decomposition";

/// How often the length of chunks is halved at most.
const MOST_HALVINGS: u32 = 12;

/// Shorter chunks are tried while they take less than this part of the time, and given up after so
/// many lengths that do not: without a cost of settings ever more of them would save ever less.
const WORTH: f64 = 1.0 - 1.0 / 300.0;
const PATIENCE: u32 = 5;

/// What one circuit carries in one slot.
#[derive(Debug, Clone, Copy)]
struct PlacedChunk {
    source: u32,
    destination: u32,
    amount: u64,
    slot: u32,
    port: u8,
}

/// Ports, prices and policy.
#[derive(Debug, Clone)]
struct Terms {
    /// The ports that work at all ranks, those together that change together.
    lanes: Vec<Vec<u8>>,
    /// Picoseconds of an amount of one.
    per_amount: f64,
    /// Picoseconds of each slot, and of each beside the first of a lane.
    per_slot: f64,
    change: f64,
    one_by_one: bool,
}

impl Terms {
    fn of(
        problem: &PlanningProblem<'_>,
        switch: &CircuitSwitch,
        largest: u64,
    ) -> Result<Terms, PlannerError> {
        let ports = shifts::ports_of_all(switch);
        let charge = switch.charge(problem.policy().name());
        let change = switch.reconfiguration.time()?.ps() as f64;
        let delays = switch.startup.plus(switch.latency)?.ps() as f64;
        let ps_per_byte = 8e12 / switch.rate.bits_per_second() as f64;
        let is_free = switch.first_setting == FirstSetting::Free;
        let (per_slot, change) = match charge {
            Ok(Charge::Never) => (0.0, 0.0),
            Ok(Charge::EverySlot) => (change, 0.0),
            _ if is_free => (0.0, change),
            _ => (change, 0.0),
        };
        Ok(Terms {
            lanes: match charge {
                Ok(Charge::ChangedPlane) => {
                    let of_plane = |port: &u8| u32::from(*port) / switch.ports_of_plane();
                    let planes = ports.chunk_by(|one, other| of_plane(one) == of_plane(other));
                    planes.map(<[u8]>::to_vec).collect()
                }
                _ => vec![ports],
            },
            per_amount: problem.size.get() as f64 / largest.max(1) as f64 * ps_per_byte,
            per_slot: per_slot + delays,
            change,
            one_by_one: charge == Ok(Charge::ChangedPort),
        })
    }

    fn ports(&self) -> Vec<u8> {
        self.lanes.concat()
    }

    /// What a matching of a lane costs beside its chunks.
    fn overhead(&self) -> f64 {
        self.per_slot + self.change
    }
}

/// Chunks in slots on ports, and the picoseconds that they take.
struct Decomposed {
    chunks: Vec<PlacedChunk>,
    time: f64,
}

fn plan(spec: &Spec, problem: &PlanningProblem<'_>) -> Result<Planned, PlannerError> {
    let amounts = Amounts::of(problem);
    if let Some(CircuitMachine::WdmRing(_)) = problem.fabric.circuit_machine() {
        let plan = match amounts.longest(spec, problem.size)? {
            None => on_ring_fastest(problem, &amounts)?,
            Some(longest) => on_ring(problem, &amounts, longest)?,
        };
        return Ok(plan.into());
    }
    let Some(CircuitMachine::CircuitSwitch(switch)) = problem.fabric.circuit_machine() else {
        return Err(PlannerError::Algorithm(AlgorithmError::Refused {
            name: NAME,
            ranks: problem.collective.ranks(),
            reason: "it sets the ports of a circuit_switch".into(),
        }));
    };
    shifts::check_joins_all(switch, NAME)?;
    let terms = Terms::of(problem, switch, amounts.largest)?;
    let mut work = matchings::MOST_WORK;
    let decomposed = match amounts.longest(spec, problem.size)? {
        None => amounts.fastest(&terms),
        Some(longest) => amounts.decomposed(&terms, longest, &mut work),
    };
    problem.fits(decomposed.chunks.len() as u64)?;
    Ok(placed(problem, decomposed.chunks, spec.to_string())?.into())
}

/// The plan on a ring whose chunks are at most so long.
fn on_ring(
    problem: &PlanningProblem<'_>,
    amounts: &Amounts,
    longest: u64,
) -> Result<Plan, PlannerError> {
    let chunks = amounts.chunks(longest);
    problem.fits(chunks.len() as u64)?;
    let schedule = schedule(problem, &chunks)?;
    Ok(opticoll_placement::place_by_default(
        schedule,
        problem.fabric,
        NAME.into(),
    )?)
}

/// The fastest plan on a ring of a few lengths of chunks.
fn on_ring_fastest(problem: &PlanningProblem<'_>, amounts: &Amounts) -> Result<Plan, PlannerError> {
    let evaluation = Evaluation {
        problem,
        least: Time::ZERO,
    };
    let most = amounts.matrix.iter().max().copied().unwrap_or(0);
    let mut fastest = on_ring(problem, amounts, most)?;
    let mut least = evaluation.time(&fastest, problem.size, None)?;
    let mut since = 0;
    for halvings in 1..=MOST_HALVINGS {
        interrupt::check();
        let longest = most.div_ceil(1 << halvings);
        if longest < 2
            || since == PATIENCE
            || amounts.chunks(longest).len() as u64 > QUICK_TRANSFERS
        {
            break;
        }
        let plan = on_ring(problem, amounts, longest)?;
        let enough = least.map(|time| Time::from_ps((time.ps() as f64 * WORTH) as u64));
        let time = evaluation.time(&plan, problem.size, enough)?;
        if time < enough && time.is_some() {
            (fastest, least, since) = (plan, time, 0);
        } else {
            since += 1;
        }
    }
    Ok(fastest.into_written_out())
}

fn candidates<'a>(problem: &PlanningProblem<'a>) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let collective = &problem.collective;
    let switch = match problem.fabric.circuit_machine() {
        Some(CircuitMachine::WdmRing(_)) => None,
        Some(CircuitMachine::CircuitSwitch(switch))
            if shifts::check_joins_all(switch, NAME).is_ok() =>
        {
            Some(switch)
        }
        _ => return Ok(Vec::new()),
    };
    let alike_fill = match switch {
        // Equal blocks fill all ports but in the last setting of whole blocks.
        Some(switch) => {
            let (ports, others) = (shifts::ports_of_all(switch).len() as u64, switch.ranks - 1);
            let idle = ports - 1 - (u64::from(others) + ports - 1) % ports;
            idle * 300 < u64::from(others)
        }
        // Many equal blocks fill the channels of a ring, as `direct` sends them.
        None => u64::from(collective.chunks()) > QUICK_TRANSFERS,
    };
    if collective.demand().is_none() && alike_fill {
        return Ok(Vec::new());
    }
    let least = problem.least()?;
    let problem = *problem;
    Ok(vec![Candidate {
        name: NAME.into(),
        slots: 1,
        least,
        estimate: least,
        transfers: problem.collective.chunks().into(),
        make: Box::new(move |limit| {
            if let Some(switch) = switch {
                let amounts = Amounts::of(&problem);
                let terms = Terms::of(&problem, switch, amounts.largest)?;
                let least = amounts.least(&amounts.lines(), &terms, u64::MAX);
                if limit.is_some_and(|limit| !terms.one_by_one && least >= limit.ps() as f64) {
                    return Ok(Built::NotExpected("its fewest settings take longer"));
                }
            }
            Ok(Built::from(plan(&Spec::new(NAME), &problem)?.plan))
        }),
    }])
}

/// What each rank sends to each other, in the units of the demand.
struct Amounts {
    ranks: u32,
    largest: u64,
    /// Row by row; nothing from a rank to itself.
    matrix: Vec<u64>,
}

impl Amounts {
    /// Without a demand blocks of bytes, all alike.
    fn of(problem: &PlanningProblem<'_>) -> Amounts {
        let collective = &problem.collective;
        let ranks = collective.ranks();
        let (largest, mut matrix) = match collective.demand() {
            Some(demand) => (demand.largest(), demand.matrix()),
            None => {
                let block = (problem.size.get() / u64::from(ranks)).max(1);
                let matrix = vec![block; collective.blocks() as usize];
                (block * u64::from(ranks), matrix)
            }
        };
        let diagonal = matrix.iter_mut().step_by(ranks as usize + 1);
        diagonal.for_each(|amount| *amount = 0);
        Amounts {
            ranks,
            largest,
            matrix,
        }
    }

    /// The largest chunk that is asked for, in the units of the demand; `None` where it is left
    /// open.
    fn longest(&self, spec: &Spec, size: Bytes) -> Result<Option<u64>, PlannerError> {
        let text = match spec.option("longest") {
            None => return Ok(None),
            Some("whole") => return Ok(Some(u64::MAX)),
            Some(text) => text,
        };
        let longest: Bytes = text
            .parse()
            .map_err(|error| spec.refuse("longest", error))?;
        let longest = self
            .of_bytes(longest, size)
            .ok_or_else(|| spec.refuse("longest", "cuts a block into more than 4096 chunks"))?;
        Ok(Some(longest))
    }

    /// Bytes at a size as an amount; `None` where the largest block has more than 4,096 such
    /// chunks.
    fn of_bytes(&self, bytes: Bytes, size: Bytes) -> Option<u64> {
        let amount =
            u128::from(bytes.get()) * u128::from(self.largest) / u128::from(size.get().max(1));
        let most = self.matrix.iter().max().copied().unwrap_or(0);
        (amount >= u128::from(most.div_ceil(4096).max(1)))
            .then_some(amount.min(u64::MAX.into()) as u64)
    }

    /// The pairs with their amounts, cut into chunks of at most `longest`.
    fn chunks(&self, longest: u64) -> Vec<(u32, u32, u64)> {
        let mut chunks = Vec::new();
        for (place, &amount) in (0u64..).zip(&self.matrix) {
            let ranks = u64::from(self.ranks);
            let (source, destination) = ((place / ranks) as u32, (place % ranks) as u32);
            let mut left = amount;
            while left > 0 {
                let chunk = left.min(longest);
                chunks.push((source, destination, chunk));
                left -= chunk;
            }
        }
        chunks
    }

    /// The fastest of a few lengths of chunks.
    fn fastest(&self, terms: &Terms) -> Decomposed {
        let mut work = matchings::MOST_WORK;
        let mut best = self.decomposed(terms, u64::MAX, &mut work);
        let most = self.matrix.iter().max().copied().unwrap_or(0);
        let lines = self.lines();
        let mut since = 0;
        for halvings in 1..=MOST_HALVINGS {
            interrupt::check();
            let longest = most.div_ceil(1 << halvings);
            let enough = best.time * WORTH;
            let least = self.least(&lines, terms, longest);
            if longest < 2 || least >= enough || since == PATIENCE || work == 0 {
                break;
            }
            let cut = self.decomposed(terms, longest, &mut work);
            since = if cut.time < enough { 0 } else { since + 1 };
            if cut.time < best.time {
                best = cut;
            }
        }
        best
    }

    /// The amounts of each rank's pairs, sent and received.
    fn lines(&self) -> Vec<Vec<u64>> {
        let ranks = self.ranks as usize;
        let of = |start: usize, step: usize, count: usize| {
            let line = self.matrix[start..].iter().step_by(step).take(count);
            line.copied().filter(|amount| *amount > 0).collect()
        };
        let rows = (0..ranks).map(|rank| of(rank * ranks, 1, ranks));
        rows.chain((0..ranks).map(|rank| of(rank, ranks, ranks)))
            .collect()
    }

    /// A time that no decomposition into chunks of at most `longest` goes below.
    fn least(&self, lines: &[Vec<u64>], terms: &Terms, longest: u64) -> f64 {
        let ports = terms.ports().len() as u64;
        let of_line = |line: &Vec<u64>| {
            let pieces: u64 = line.iter().map(|amount| amount.div_ceil(longest)).sum();
            let sending = line.iter().sum::<u64>() as f64 * terms.per_amount;
            let settings = pieces.div_ceil(ports) as f64;
            sending / ports as f64 + settings * terms.overhead() - terms.change
        };
        lines.iter().map(of_line).fold(0.0, f64::max)
    }

    /// The chunks of at most `longest` in slots; `work` is what may be spent on exchanges between
    /// matchings.
    fn decomposed(&self, terms: &Terms, longest: u64, work: &mut u64) -> Decomposed {
        let chunks = self.chunks(longest);
        let matchings = matchings::of_like_size(self.ranks, &chunks, work);
        let together = in_lanes(terms, matchings);
        // Where ports are set one by one, it may still be faster if all wait for one another.
        let alone = terms
            .one_by_one
            .then(|| list::started_one_by_one(self.ranks, terms, &chunks));
        match alone.filter(|alone| alone.time < together.time) {
            Some(alone) => alone,
            None => together,
        }
    }
}

/// Gives matchings their slots and ports: those of a slot of like length, each slot to the lane
/// that is done first.
fn in_lanes(terms: &Terms, mut matchings: Vec<Matching>) -> Decomposed {
    matchings.sort_by_key(|matching| std::cmp::Reverse(matching.longest()));
    let mut lanes: Vec<(f64, u32, &[u8])> = Vec::new();
    lanes.extend(terms.lanes.iter().map(|ports| (0.0, 0, &ports[..])));
    let mut chunks = Vec::new();
    let mut left = &matchings[..];
    while !left.is_empty() {
        interrupt::check();
        let earlier = |one: &&mut (f64, u32, &[u8]), other: &&mut (f64, u32, &[u8])| {
            one.0.total_cmp(&other.0)
        };
        let Some((time, number, ports)) = lanes.iter_mut().min_by(earlier) else {
            break;
        };
        let (slot, others) = left.split_at(ports.len().min(left.len()));
        for (matching, &port) in slot.iter().zip(*ports) {
            let pairs = matching.pairs();
            let placed = pairs.map(|(source, destination, amount)| PlacedChunk {
                source,
                destination,
                amount,
                slot: *number,
                port,
            });
            chunks.extend(placed);
        }
        *time += slot[0].longest() as f64 * terms.per_amount + terms.overhead();
        *number += 1;
        left = others;
    }
    let last = lanes.iter().map(|lane| lane.0).fold(0.0, f64::max);
    Decomposed {
        chunks,
        time: last - terms.change,
    }
}

/// The plan of chunks in slots.
fn placed(
    problem: &PlanningProblem<'_>,
    mut chunks: Vec<PlacedChunk>,
    name: String,
) -> Result<Plan, PlannerError> {
    chunks.sort_by_key(|one| (one.source, one.destination, one.slot, one.port));
    let amounts: Vec<(u32, u32, u64)> = chunks
        .iter()
        .map(|one| (one.source, one.destination, one.amount))
        .collect();
    let schedule = schedule(problem, &amounts)?;
    if chunks.is_empty() {
        let fabric = problem.fabric.clone();
        return Ok(empty_plan(fabric, schedule.collective, name, 0));
    }
    let mut plan = Plan::without_light(problem.fabric, schedule, name);
    plan.light = vec![Light::NONE; plan.len()];
    for (transfer, chunk) in chunks.iter().enumerate() {
        plan.slot[transfer] = chunk.slot;
        plan.light[transfer] = Light::from(SwitchedLight {
            source_port: chunk.port.into(),
            destination_port: chunk.port.into(),
        });
    }
    let slots = chunks.iter().map(|one| one.slot + 1).max().unwrap_or(0);
    plan.step_slots[0] = 0..slots;
    Ok(plan)
}

/// All chunks in one step: source, destination and amount of each, in the order of pairs.
fn schedule(
    problem: &PlanningProblem<'_>,
    chunks: &[(u32, u32, u64)],
) -> Result<Schedule, PlannerError> {
    let asked = problem.collective;
    let collective = match asked.demand() {
        Some(demand) => asked.without_demand().with_demand(cut(demand, chunks)?)?,
        // All blocks are cut alike.
        None => {
            let blocks = asked.blocks() - u64::from(asked.ranks());
            asked.with_pieces((chunks.len() as u64 / blocks.max(1)).max(1) as u32)?
        }
    };
    let mut schedule = Schedule::new(collective);
    schedule.reserve(chunks.len());
    schedule.begin_step();
    let mut before = None;
    for &(source, destination, _) in chunks {
        let block = source * asked.ranks() + destination;
        let number = match before {
            Some((same, number)) if same == block => number + 1,
            _ => collective.chunks_of_blocks(block..block + 1).start,
        };
        before = Some((block, number));
        schedule.push(Transfer::copy(number, source, destination));
    }
    Ok(schedule)
}

/// A demand with the chunks that are sent, which are in the order of pairs; what a rank keeps is
/// one chunk.
fn cut(demand: &DemandMatrix, chunks: &[(u32, u32, u64)]) -> Result<DemandMatrix, PlannerError> {
    let ranks = demand.ranks();
    let matrix = demand.matrix();
    let own = (0..ranks).map(|rank| {
        let amount = matrix[rank as usize * (ranks as usize + 1)];
        (rank, rank, amount)
    });
    let own = own.filter(|own| own.2 > 0);
    let mut all: Vec<(u32, u32, u64)> = chunks.iter().copied().chain(own).collect();
    all.sort_by_key(|(source, destination, _)| (*source, *destination));
    let cut = DemandMatrix::new(ranks, all);
    cut.map_err(|error| PlannerError::CollectiveSize(error.into()))
}
