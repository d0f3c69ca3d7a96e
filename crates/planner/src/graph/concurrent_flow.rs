//! Plans of an all_to_all, scatter or gather on any graph. The time of the busiest link is close to
//! the lower bound of the maximum concurrent flow.
//!
//! Each block is divided into chunks. Each chunk travels without relays along a route of its own,
//! which the plan names ([`concurrent_flow`](opticoll_bounds::concurrent_flow), theorem E10). All
//! chunks start in the same step. Let T be the load of the busiest link in bits, divided by its
//! rate. If messages of equal size share links by max-min fairness, the busiest link is fully used
//! from its first message to its last, unless other links delay all its messages. The plan then
//! takes T plus the latency of a route.

use std::rc::Rc;

use crate::building::claim_steps;
use crate::selection::evaluation::{Candidate, Evaluation, EvaluationOutcome};
use crate::{Planned, Planner, PlannerError, PlanningProblem, Scope};
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Time;
use opticoll_bounds::concurrent_flow::{BlockTime, ConcurrentFlow, Pair, pairs};
use opticoll_placement::{PlacementError, PlacementProblem};
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Schedule, Transfer};

pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("chunks", "number of chunks of each block")
            .range("1 to 64")
            .default("the fastest of 1, 2, 3, 4 and 8, or of fewer numbers on large fabrics"),
    ],
    depends_on_size: true,
    ..Planner::new(
        "concurrent_flow",
        "Concurrent flow",
        &[
            CollectiveKind::AllToAll,
            CollectiveKind::Scatter,
            CollectiveKind::Gather,
        ],
        "A route for each chunk, so that the load of the busiest link is as small as possible",
        "Shahrokhi and Matula, The maximum concurrent flow problem, JACM 1990",
        Scope::Any(
            |fabric| fabric.network().and_then(ConcurrentFlow::of).is_some(),
            plan,
            candidates,
        ),
    )
};

/// Maximum number of chunks per block.
const MAX_CHUNKS: u32 = 64;

/// Numbers of chunks per block to try if the option `chunks` is not set.
const CHUNK_NUMBERS: [u32; 5] = [1, 2, 3, 4, 8];

/// Maximum number of transfers of a plan with several chunks per block if the option `chunks` is
/// not set. If there are many blocks, each block is small compared to the load of a link, so
/// dividing blocks saves little.
const MAX_DIVIDED_TRANSFERS: u64 = 1 << 13;

/// Work of building and simulating one link of a route, as a number of transfers with equal work.
/// The simulator computes the rates of flows link by link, many times.
const WORK_PER_LINK: u64 = 16;

/// Maximum work of the search for the routes of a plan requested by name, in visited links.
const MAX_SEARCH_NAMED: u64 = 1_000_000_000;

/// Maximum number of ranks times number of links for which the planner has candidates. The search
/// for shortest routes needs as many steps.
const MAX_SHORTEST_PATHS: u64 = 1 << 26;

/// Routing problem of a collective: the pairs of ranks that need routes, and their concurrent flow.
struct Demands<'a> {
    flow: ConcurrentFlow<'a>,
    pairs: Vec<Pair>,
    /// Lower bound on the time per block, whatever the routes.
    bound: BlockTime,
    /// Total number of links on shortest routes of all pairs.
    hops: u64,
}

impl<'a> Demands<'a> {
    /// Collects the pairs of a collective. Fails if a rank is unreachable, or if flows do not share
    /// a link.
    fn of(problem: &PlanningProblem<'a>) -> Result<Demands<'a>, PlannerError> {
        let collective = problem.collective;
        let flow = problem.fabric.network().and_then(ConcurrentFlow::of);
        let flow = flow.ok_or_else(|| {
            AlgorithmError::refused(
                PLANNER.name,
                collective.ranks(),
                "it needs links between known ends that flows share",
            )
        })?;
        let pairs = pairs(&collective).unwrap_or_default();
        let unit_lengths = vec![
            1;
            problem
                .fabric
                .network()
                .map_or(0, |network| network.links().len())
        ];
        let hops = flow
            .bound(&pairs, &unit_lengths)
            .map_or(0, |bound| bound.blocks as u64);
        let (bound, _) = flow
            .best_bound(&pairs, None)
            .ok_or_else(unreachable_ranks)?;
        Ok(Demands {
            flow,
            pairs,
            bound,
            hops,
        })
    }

    fn plan(
        &self,
        chunks: u32,
        max_work: u64,
        problem: &PlanningProblem<'_>,
    ) -> Result<Plan, PlannerError> {
        let flow_routes = self.flow.routes(&self.pairs, chunks, self.bound, max_work);
        let flow_routes = flow_routes.ok_or_else(unreachable_ranks)?;
        let collective = problem.collective.with_pieces(chunks)?;
        let mut schedule = Schedule::new(collective);
        schedule.begin_step();
        // All chunks of a block on the same route form one transfer.
        let mut routes: Vec<Box<[u32]>> = Vec::new();
        let pair_routes = flow_routes.routes.chunks(chunks as usize);
        for (&pair, chunk_routes) in self.pairs.iter().zip(pair_routes) {
            interrupt::check();
            let (source, destination) = pair;
            let mut chunk_routes = chunk_routes.to_vec();
            chunk_routes.sort_unstable();
            let mut chunk = block(&problem.collective, pair) * chunks;
            for equal_routes in chunk_routes.chunk_by(|one, other| one == other) {
                let count = equal_routes.len() as u32;
                schedule.push(Transfer {
                    count,
                    ..Transfer::copy(chunk, source, destination)
                });
                chunk += count;
                routes.push(equal_routes[0].clone());
            }
        }
        schedule.claims = claim_steps(&schedule);
        let name = Spec::new(PLANNER.name).with("chunks", chunks).to_string();
        let mut plan = Plan::without_light(problem.fabric, schedule, name);
        if let Some(network) = problem.fabric.network() {
            let mut route = Vec::new();
            for (transfer, named_route) in routes.iter().enumerate() {
                interrupt::check();
                let (source, destination) = plan.schedule.ends(transfer);
                route.clear();
                network.route(source, destination, &mut route);
                if route[..] != named_route[..] {
                    plan.routes.assign(transfer, named_route);
                }
            }
        }
        Ok(plan)
    }
}

fn unreachable_ranks() -> PlannerError {
    let sentence = "some ranks cannot be reached: no routes lead to them";
    PlacementError::new(PlacementProblem::Unfit, sentence).into()
}

/// Returns the index of the block that the source of a pair sends to the destination.
fn block(collective: &Collective, (source, destination): Pair) -> u32 {
    match collective.kind() {
        CollectiveKind::AllToAll => source * collective.ranks() + destination,
        CollectiveKind::Scatter => destination,
        _ => source,
    }
}

fn plan(spec: &Spec, problem: &PlanningProblem<'_>) -> Result<Planned, PlannerError> {
    check_may_name_routes(problem)?;
    let demands = Rc::new(Demands::of(problem)?);
    if let Some(chunks) = spec.count("chunks", 1, MAX_CHUNKS)? {
        problem.fits(demands.pairs.len() as u64 * u64::from(chunks))?;
        return Ok(demands.plan(chunks, MAX_SEARCH_NAMED, problem)?.into());
    }
    let evaluation = Evaluation::new(problem)?;
    let candidates = candidates_of(&demands, problem)?;
    let EvaluationOutcome { fastest, .. } = evaluation.run(candidates, Vec::new())?;
    Ok(fastest?.0.into())
}

fn check_may_name_routes(problem: &PlanningProblem<'_>) -> Result<(), PlannerError> {
    if problem.may_name_routes {
        return Ok(());
    }
    let sentence = "it names routes, but messages use the routes of the fabric here";
    Err(PlacementError::new(PlacementProblem::Unfit, sentence).into())
}

fn candidates<'a>(problem: &PlanningProblem<'a>) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let ranks = u64::from(problem.collective.ranks());
    let links = problem
        .fabric
        .network()
        .map_or(0, |network| network.links().len() as u64);
    let is_large = problem.fits(ranks * ranks).is_err() || ranks * links > MAX_SHORTEST_PATHS;
    if ranks < 2 || is_large || !problem.may_name_routes {
        return Ok(Vec::new());
    }
    match Demands::of(problem) {
        Ok(demands) => candidates_of(&Rc::new(demands), problem),
        Err(PlannerError::Placement(_)) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn candidates_of<'a>(
    demands: &Rc<Demands<'a>>,
    problem: &PlanningProblem<'a>,
) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let least = problem.least()?;
    let mut candidates = Vec::new();
    let blocks = problem.collective.blocks();
    for chunks in CHUNK_NUMBERS {
        let transfers = demands.pairs.len() as u64 * u64::from(chunks);
        let pieces = u64::from(chunks);
        if pieces > 1
            && (pieces.saturating_mul(blocks) > problem.size.get()
                || transfers > MAX_DIVIDED_TRANSFERS)
            || problem.fits(transfers).is_err()
        {
            continue;
        }
        let work = (demands.hops * pieces).saturating_mul(WORK_PER_LINK);
        let (demands, problem) = (Rc::clone(demands), *problem);
        candidates.push(Candidate {
            name: Spec::new(PLANNER.name).with("chunks", chunks).to_string(),
            slots: 1,
            lower_bound: least,
            estimate: least.plus(Time::from_ps(pieces))?,
            transfers: work,
            build: Box::new(move |_| {
                let plan = demands.plan(chunks, super::MAX_SEARCH, &problem)?;
                Ok(plan.into())
            }),
        });
    }
    Ok(candidates)
}
