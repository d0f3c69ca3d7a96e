//! All_to_alls with blocks of different sizes over a circuit switch without relays. The demand is
//! decomposed into configurations of the switch, each with a duration.
//!
//! A *matching* is a set of pairs of ranks in which each rank is the source of at most one pair and
//! the destination of at most one pair. The ports with the same index at all ranks connect the
//! pairs of one matching. If all ports change at the same time, the largest chunk of a matching
//! determines its duration. [`matchings`] distributes the chunks over matchings. The number of
//! matchings is the maximum number of chunks that a rank sends or receives. Chunks of similar size
//! share a matching. Large blocks are divided into chunks of limited size, which adds
//! configurations and reduces idle time. The planner tries several maximum chunk sizes and returns
//! the fastest plan.
//!
//! If the whole switch changes at once (`all_stop`), each slot has one matching per port, all of
//! similar duration. Under `planes` the matchings are distributed over the planes, each to the
//! plane that is idle first. Under `per_port` no port waits for another port. In this case the
//! planner also starts pairs one by one ([`list_scheduling`]), and uses the faster result.
//!
//! On a WDM ring each chunk is a lightpath from its source to its destination, so a large block
//! uses many channels. The wavelength assignment determines the slots.

mod list_scheduling;
mod matchings;

use crate::building::GAIN_DIVISOR;
use crate::selection::evaluation::{Built, Candidate, Evaluation, QUICK_TRANSFERS};
use crate::{Planned, Planner, PlannerError, PlanningProblem, Scope, combined::shifts, empty_plan};
use matchings::Matching;
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Light;
use opticoll_fabric::fabric::circuits::{Circuits, ReconfigurationCharge};
use opticoll_fabric::families::CircuitMachine;
use opticoll_fabric::family::circuit_switch::{CircuitSwitch, FirstConfiguration, SwitchedLight};
use opticoll_plan::collective::{CollectiveKind, DemandMatrix};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Schedule, Transfer};

pub(crate) const PLANNER: Planner = Planner {
    options: &[OptionRecord::new(
        "max_chunk",
        "maximum size of a chunk, into which blocks are cut, such as 1MiB; `whole` cuts no blocks",
    )
    .unit("bytes")
    .range("from 1B, or whole")
    .default("the fastest found")],
    depends_on_size: true,
    takes_demands: true,
    ..Planner::new(
        "decomposition",
        "Decomposition",
        &[CollectiveKind::AllToAll],
        "Blocks of different sizes over circuits without relays: chunks of similar size share \
        a configuration, on parallel planes",
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

/// Maximum number of times that the maximum chunk size is halved. The largest block then has 4,096
/// chunks.
const MAX_HALVINGS: u32 = 12;

/// Returns the longest time with smaller chunks that is short enough after the time `best`. If a
/// configuration cost nothing, smaller and smaller chunks would save less and less time: on 8 ranks
/// with 6 ports the search took more than 40 s without this condition.
fn enough(best: f64) -> f64 {
    best * (1.0 - 1.0 / GAIN_DIVISOR as f64)
}

/// Number of consecutive chunk sizes without sufficient gain after which the search ends.
const MAX_LENGTHS_WITHOUT_GAIN: u32 = 5;

/// Chunk with its slot and port. `amount` is its size in units of the demand.
#[derive(Debug, Clone, Copy)]
struct PlacedChunk {
    source: u32,
    destination: u32,
    amount: u64,
    slot: u32,
    port: u8,
}

/// Ports of a switch, and times that the policy charges.
#[derive(Debug, Clone)]
struct SwitchCosts {
    /// Ports that work at all ranks; indexed by lane. A lane consists of ports that change at the
    /// same time.
    lanes: Vec<Vec<u8>>,
    /// Transmission time per unit of the demand, in picoseconds.
    per_amount: f64,
    /// Fixed time per slot, in picoseconds.
    per_slot: f64,
    /// Time per change of a lane's configuration, in picoseconds: charged for each slot of the lane
    /// but the first.
    change: f64,
    changes_port_by_port: bool,
}

impl SwitchCosts {
    fn of(
        problem: &PlanningProblem<'_>,
        switch: &CircuitSwitch,
        largest: u64,
    ) -> Result<SwitchCosts, PlannerError> {
        let ports = shifts::ports_of_all(switch);
        let charge = switch.charge(problem.policy().name());
        let change = switch.reconfiguration.time()?.ps() as f64;
        let delays = switch.startup.plus(switch.latency)?.ps() as f64;
        let ps_per_byte = 8e12 / switch.rate.bits_per_second() as f64;
        let is_free = switch.first_configuration == FirstConfiguration::Free;
        let (per_slot, change) = match charge {
            Ok(ReconfigurationCharge::Never) => (0.0, 0.0),
            Ok(ReconfigurationCharge::EverySlot) => (change, 0.0),
            _ if is_free => (0.0, change),
            _ => (change, 0.0),
        };
        Ok(SwitchCosts {
            lanes: match charge {
                Ok(ReconfigurationCharge::ChangedPlane) => {
                    let plane = |port: &u8| u32::from(*port) / switch.ports_of_plane();
                    let planes = ports.chunk_by(|one, other| plane(one) == plane(other));
                    planes.map(<[u8]>::to_vec).collect()
                }
                _ => vec![ports],
            },
            per_amount: problem.size.get() as f64 / largest.max(1) as f64 * ps_per_byte,
            per_slot: per_slot + delays,
            change,
            changes_port_by_port: charge == Ok(ReconfigurationCharge::ChangedPort),
        })
    }

    fn ports(&self) -> Vec<u8> {
        self.lanes.concat()
    }

    /// Returns the time of a matching in addition to the transmission time, in picoseconds.
    fn overhead(&self) -> f64 {
        self.per_slot + self.change
    }
}

/// Chunks with slots and ports, and the time of the plan in picoseconds.
struct Decomposition {
    chunks: Vec<PlacedChunk>,
    time: f64,
}

fn plan(spec: &Spec, problem: &PlanningProblem<'_>) -> Result<Planned, PlannerError> {
    let amounts = Amounts::of(problem);
    if let Some(CircuitMachine::WdmRing(_)) = problem.fabric.circuit_machine() {
        let plan = match amounts.longest(spec, problem.size)? {
            None => fastest_on_ring(problem, &amounts)?,
            Some(longest) => plan_on_ring(problem, &amounts, longest)?,
        };
        return Ok(plan.into());
    }
    let Some(CircuitMachine::CircuitSwitch(switch)) = problem.fabric.circuit_machine() else {
        return Err(PlannerError::Algorithm(AlgorithmError::refused(
            PLANNER.name,
            problem.collective.ranks(),
            "it sets the ports of a circuit_switch",
        )));
    };
    shifts::check_joins_all(switch, PLANNER.name)?;
    let costs = SwitchCosts::of(problem, switch, amounts.largest)?;
    let mut work = matchings::MAX_WORK;
    let decomposition = match amounts.longest(spec, problem.size)? {
        None => amounts.fastest(&costs),
        Some(longest) => amounts.decompose(&costs, longest, &mut work),
    };
    problem.fits(decomposition.chunks.len() as u64)?;
    Ok(build(problem, decomposition.chunks, spec.to_string())?.into())
}

/// Builds the plan on a ring with chunks of at most `longest` units of the demand.
fn plan_on_ring(
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
        PLANNER.name.into(),
    )?)
}

/// Builds plans on a ring with several maximum chunk sizes, and returns the fastest plan.
fn fastest_on_ring(problem: &PlanningProblem<'_>, amounts: &Amounts) -> Result<Plan, PlannerError> {
    let evaluation = Evaluation {
        problem,
        lower_bound: Time::ZERO,
    };
    let largest_block = amounts.matrix.iter().max().copied().unwrap_or(0);
    let mut fastest = plan_on_ring(problem, amounts, largest_block)?;
    let mut least = evaluation.time(&fastest, problem.size, None)?;
    let mut lengths_without_gain = 0;
    for halvings in 1..=MAX_HALVINGS {
        interrupt::check();
        let longest = largest_block.div_ceil(1 << halvings);
        if longest < 2
            || lengths_without_gain == MAX_LENGTHS_WITHOUT_GAIN
            || amounts.chunks(longest).len() as u64 > QUICK_TRANSFERS
        {
            break;
        }
        let plan = plan_on_ring(problem, amounts, longest)?;
        let enough = least.map(|time| Time::from_ps(enough(time.ps() as f64) as u64));
        let time = evaluation.time(&plan, problem.size, enough)?;
        if time < enough && time.is_some() {
            (fastest, least, lengths_without_gain) = (plan, time, 0);
        } else {
            lengths_without_gain += 1;
        }
    }
    Ok(fastest.into_expanded())
}

fn candidates<'a>(problem: &PlanningProblem<'a>) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let collective = &problem.collective;
    let switch = match problem.fabric.circuit_machine() {
        Some(CircuitMachine::WdmRing(_)) => None,
        Some(CircuitMachine::CircuitSwitch(switch))
            if shifts::check_joins_all(switch, PLANNER.name).is_ok() =>
        {
            Some(switch)
        }
        _ => return Ok(Vec::new()),
    };
    let equal_blocks_fill = match switch {
        // Equal blocks use all ports except in the last configuration.
        Some(switch) => {
            let (ports, others) = (shifts::ports_of_all(switch).len() as u64, switch.ranks - 1);
            let idle = ports - 1 - (u64::from(others) + ports - 1) % ports;
            idle * 300 < u64::from(others)
        }
        // With many equal blocks, the algorithm `direct` uses all channels of a ring.
        None => u64::from(collective.chunks()) > QUICK_TRANSFERS,
    };
    if collective.demand().is_none() && equal_blocks_fill {
        return Ok(Vec::new());
    }
    let least = problem.least()?;
    let problem = *problem;
    Ok(vec![Candidate {
        name: PLANNER.name.into(),
        slots: 1,
        lower_bound: least,
        estimate: least,
        transfers: problem.collective.chunks().into(),
        build: Box::new(move |limit| {
            if let Some(switch) = switch {
                let amounts = Amounts::of(&problem);
                let costs = SwitchCosts::of(&problem, switch, amounts.largest)?;
                let least = amounts.least(&amounts.rank_amounts(), &costs, u64::MAX);
                if limit
                    .is_some_and(|limit| !costs.changes_port_by_port && least >= limit.ps() as f64)
                {
                    return Ok(Built::NotExpected(
                        "its minimum number of configurations takes longer",
                    ));
                }
            }
            Ok(Built::from(plan(&Spec::new(PLANNER.name), &problem)?.plan))
        }),
    }])
}

/// Amounts that each rank sends to each other rank, in units of the demand.
struct Amounts {
    ranks: u32,
    largest: u64,
    /// Amounts, indexed by source times `ranks` plus destination; zero from a rank to itself.
    matrix: Vec<u64>,
}

impl Amounts {
    /// Returns the amounts of a problem. Without a demand, all blocks have the same size and the
    /// unit is a byte.
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

    /// Returns the maximum chunk size that the option `longest` requests, in units of the demand,
    /// or `None` without the option.
    fn longest(&self, spec: &Spec, size: Bytes) -> Result<Option<u64>, PlannerError> {
        let text = match spec.option("max_chunk") {
            None => return Ok(None),
            Some("whole") => return Ok(Some(u64::MAX)),
            Some(text) => text,
        };
        let longest: Bytes = text
            .parse()
            .map_err(|error| spec.refuse("max_chunk", error))?;
        let longest = self.amount_of_bytes(longest, size).ok_or_else(|| {
            spec.refuse(
                "max_chunk",
                "cuts a block into more than 4096 chunks; give a larger size",
            )
        })?;
        Ok(Some(longest))
    }

    /// Converts a number of bytes to units of the demand. `None` if the largest block would have
    /// more than 4,096 chunks of this size.
    fn amount_of_bytes(&self, bytes: Bytes, size: Bytes) -> Option<u64> {
        let amount =
            u128::from(bytes.get()) * u128::from(self.largest) / u128::from(size.get().max(1));
        let largest_block = self.matrix.iter().max().copied().unwrap_or(0);
        (amount >= u128::from(largest_block.div_ceil(4096).max(1)))
            .then_some(amount.min(u64::MAX.into()) as u64)
    }

    /// Returns (source, destination, amount) of all chunks of at most `longest` units.
    fn chunks(&self, longest: u64) -> Vec<(u32, u32, u64)> {
        let mut chunks = Vec::new();
        for (place, &amount) in (0u64..).zip(&self.matrix) {
            let ranks = u64::from(self.ranks);
            let (source, destination) = ((place / ranks) as u32, (place % ranks) as u32);
            let mut remaining = amount;
            while remaining > 0 {
                let chunk = remaining.min(longest);
                chunks.push((source, destination, chunk));
                remaining -= chunk;
            }
        }
        chunks
    }

    /// Returns the fastest decomposition of several maximum chunk sizes.
    fn fastest(&self, costs: &SwitchCosts) -> Decomposition {
        let mut work = matchings::MAX_WORK;
        let mut fastest = self.decompose(costs, u64::MAX, &mut work);
        let largest_block = self.matrix.iter().max().copied().unwrap_or(0);
        let rank_amounts = self.rank_amounts();
        let mut lengths_without_gain = 0;
        for halvings in 1..=MAX_HALVINGS {
            interrupt::check();
            let longest = largest_block.div_ceil(1 << halvings);
            let enough = enough(fastest.time);
            let least = self.least(&rank_amounts, costs, longest);
            if longest < 2
                || least >= enough
                || lengths_without_gain == MAX_LENGTHS_WITHOUT_GAIN
                || work == 0
            {
                break;
            }
            let cut = self.decompose(costs, longest, &mut work);
            lengths_without_gain = if cut.time < enough {
                0
            } else {
                lengths_without_gain + 1
            };
            if cut.time < fastest.time {
                fastest = cut;
            }
        }
        fastest
    }

    /// Returns the nonzero amounts that each rank sends, followed by the nonzero amounts that each
    /// rank receives.
    fn rank_amounts(&self) -> Vec<Vec<u64>> {
        let ranks = self.ranks as usize;
        let of = |start: usize, step: usize, count: usize| {
            let amounts = self.matrix[start..].iter().step_by(step).take(count);
            amounts.copied().filter(|amount| *amount > 0).collect()
        };
        let rows = (0..ranks).map(|rank| of(rank * ranks, 1, ranks));
        rows.chain((0..ranks).map(|rank| of(rank, ranks, ranks)))
            .collect()
    }

    /// Returns a lower bound in picoseconds on the time of any decomposition into chunks of at most
    /// `longest` units. `rank_amounts` is the result of [`Amounts::rank_amounts`].
    fn least(&self, rank_amounts: &[Vec<u64>], costs: &SwitchCosts, longest: u64) -> f64 {
        let ports = costs.ports().len() as u64;
        let rank_time = |amounts: &Vec<u64>| {
            let pieces: u64 = amounts.iter().map(|amount| amount.div_ceil(longest)).sum();
            let sending = amounts.iter().sum::<u64>() as f64 * costs.per_amount;
            let configurations = pieces.div_ceil(ports) as f64;
            sending / ports as f64 + configurations * costs.overhead() - costs.change
        };
        rank_amounts.iter().map(rank_time).fold(0.0, f64::max)
    }

    /// Assigns slots and ports to chunks of at most `longest` units of the demand. `work` is the
    /// work that exchanges between matchings may still take.
    fn decompose(&self, costs: &SwitchCosts, longest: u64, work: &mut u64) -> Decomposition {
        let chunks = self.chunks(longest);
        let matchings = matchings::similar_sizes(self.ranks, &chunks, work);
        let joint = assign_lanes(costs, matchings);
        // Even if ports may change one by one, it may be faster if all ports wait for each other.
        let separate = costs
            .changes_port_by_port
            .then(|| list_scheduling::schedule(self.ranks, costs, &chunks));
        match separate.filter(|separate| separate.time < joint.time) {
            Some(separate) => separate,
            None => joint,
        }
    }
}

/// Assigns slots and ports to matchings. Matchings of similar duration share a slot, and each slot
/// uses the lane that is idle first.
fn assign_lanes(costs: &SwitchCosts, mut matchings: Vec<Matching>) -> Decomposition {
    matchings.sort_by_key(|matching| std::cmp::Reverse(matching.longest()));
    let mut lanes: Vec<(f64, u32, &[u8])> = Vec::new();
    lanes.extend(costs.lanes.iter().map(|ports| (0.0, 0, &ports[..])));
    let mut chunks = Vec::new();
    let mut remaining = &matchings[..];
    while !remaining.is_empty() {
        interrupt::check();
        let earlier = |one: &&mut (f64, u32, &[u8]), other: &&mut (f64, u32, &[u8])| {
            one.0.total_cmp(&other.0)
        };
        let Some((time, number, ports)) = lanes.iter_mut().min_by(earlier) else {
            break;
        };
        let (slot, others) = remaining.split_at(ports.len().min(remaining.len()));
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
        *time += slot[0].longest() as f64 * costs.per_amount + costs.overhead();
        *number += 1;
        remaining = others;
    }
    let last = lanes.iter().map(|lane| lane.0).fold(0.0, f64::max);
    Decomposition {
        chunks,
        time: last - costs.change,
    }
}

fn build(
    problem: &PlanningProblem<'_>,
    mut chunks: Vec<PlacedChunk>,
    name: String,
) -> Result<Plan, PlannerError> {
    chunks.sort_by_key(|chunk| (chunk.source, chunk.destination, chunk.slot, chunk.port));
    let amounts: Vec<(u32, u32, u64)> = chunks
        .iter()
        .map(|chunk| (chunk.source, chunk.destination, chunk.amount))
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
    let slots = chunks.iter().map(|chunk| chunk.slot + 1).max().unwrap_or(0);
    plan.step_slots[0] = 0..slots;
    Ok(plan)
}

/// Returns a schedule that sends all chunks in one step. `chunks` lists (source, destination,
/// amount), sorted by source and then by destination.
fn schedule(
    problem: &PlanningProblem<'_>,
    chunks: &[(u32, u32, u64)],
) -> Result<Schedule, PlannerError> {
    let requested = problem.collective;
    let collective = match requested.demand() {
        Some(demand) => requested
            .without_demand()
            .with_demand(cut(demand, chunks)?)?,
        None => {
            let blocks = requested.blocks() - u64::from(requested.ranks());
            requested.with_pieces((chunks.len() as u64 / blocks.max(1)).max(1) as u32)?
        }
    };
    let mut schedule = Schedule::new(collective);
    schedule.reserve(chunks.len());
    schedule.begin_step();
    let mut before = None;
    for &(source, destination, _) in chunks {
        let block = source * requested.ranks() + destination;
        let number = match before {
            Some((same, number)) if same == block => number + 1,
            _ => collective.chunks_of_blocks(block..block + 1).start,
        };
        before = Some((block, number));
        schedule.push(Transfer::copy(number, source, destination));
    }
    Ok(schedule)
}

/// Divides the demand into `chunks`, which are sorted by source and then by destination. The block
/// that a rank keeps is a single chunk.
fn cut(demand: &DemandMatrix, chunks: &[(u32, u32, u64)]) -> Result<DemandMatrix, PlannerError> {
    let ranks = demand.ranks();
    let matrix = demand.matrix();
    let kept = (0..ranks).map(|rank| {
        let amount = matrix[rank as usize * (ranks as usize + 1)];
        (rank, rank, amount)
    });
    let kept = kept.filter(|kept| kept.2 > 0);
    let mut all_chunks: Vec<(u32, u32, u64)> = chunks.iter().copied().chain(kept).collect();
    all_chunks.sort_by_key(|(source, destination, _)| (*source, *destination));
    let cut = DemandMatrix::new(ranks, all_chunks);
    cut.map_err(|error| PlannerError::CollectiveSize(error.into()))
}
