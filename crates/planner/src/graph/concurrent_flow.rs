//! Plans of an all_to_all, scatter or gather near the maximum concurrent flow of any graph.
//!
//! Each block is divided into chunks, and each chunk travels end to end along a route of its own,
//! which the plan names ([`concurrent_flow`](opticoll_bounds::concurrent_flow), theorem E10). All
//! chunks start in one step; no rank stores and forwards. Let T be the load of the busiest link
//! divided by its rate. Under max-min fair sharing of messages of one size, this link is full from
//! the first of its messages to the last, unless other links delay all of them; the plan then takes
//! T and the latency of a route.

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

/// Declaration of the planner of concurrent flows.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("chunks", "number of chunks of each block")
            .range("1 to 64")
            .default("the fastest of 1, 2, 3, 4 and 8, or of fewer numbers on large fabrics"),
    ],
    by_size: true,
    ..Planner::new(
        NAME,
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

const NAME: &str = "concurrent_flow";

/// Maximum number of chunks of a block.
const MAX_CHUNKS: u32 = 64;

/// Numbers of chunks to try without the option `chunks`.
const CHUNK_NUMBERS: [u32; 5] = [1, 2, 3, 4, 8];

/// Maximum number of transfers for plans of divided blocks without the option `chunks`. With many
/// blocks, each block is small compared with the load of a link, so dividing blocks saves little.
const MAX_DIVIDED_TRANSFERS: u64 = 1 << 13;

/// Work of building and timing a link of a route, in transfers: the simulator computes the rates of
/// flows link by link, many times.
const WORK_PER_LINK: u64 = 16;

/// Maximum number of steps over links in the search for routes of a candidate; the search returns
/// the best routes found until then.
const MAX_SEARCH: u64 = 50_000_000;

/// Maximum number of steps over links in the search for routes of a plan requested by name.
const MAX_SEARCH_NAMED: u64 = 1_000_000_000;

/// Maximum number of ranks times links for candidates: the search for shortest routes takes this
/// number of steps.
const MAX_SHORTEST_PATHS: u64 = 1 << 26;

/// Pairs of ranks that need routes.
struct Demands<'a> {
    flow: ConcurrentFlow<'a>,
    pairs: Vec<Pair>,
    /// Lower bound on the time of all routes.
    bound: BlockTime,
    /// Number of links of the shortest routes of all pairs.
    hops: u64,
}

impl<'a> Demands<'a> {
    /// Collects the pairs of a problem.
    ///
    /// # Errors
    /// Links with unknown ends or links that flows do not share; ranks that cannot be reached.
    fn of(problem: &PlanningProblem<'a>) -> Result<Demands<'a>, PlannerError> {
        let collective = problem.collective;
        let flow = problem.fabric.network().and_then(ConcurrentFlow::of);
        let flow = flow.ok_or_else(|| AlgorithmError::Refused {
            name: NAME,
            ranks: collective.ranks(),
            reason: "it needs links between known ends that flows share".into(),
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

    /// Builds the plan with `chunks` chunks of each block.
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
        // The chunks of a block on the same route are one transfer.
        let mut routes: Vec<Box<[u32]>> = Vec::new();
        let pair_routes = flow_routes.routes.chunks(chunks as usize);
        for (&pair, ways) in self.pairs.iter().zip(pair_routes) {
            interrupt::check();
            let (source, destination) = pair;
            let mut ways = ways.to_vec();
            ways.sort_unstable();
            let mut chunk = block(&problem.collective, pair) * chunks;
            for alike in ways.chunk_by(|one, other| one == other) {
                let count = alike.len() as u32;
                schedule.push(Transfer {
                    count,
                    ..Transfer::copy(chunk, source, destination)
                });
                chunk += count;
                routes.push(alike[0].clone());
            }
        }
        schedule.claims = claim_steps(&schedule);
        let name = Spec::new(NAME).with("chunks", chunks).to_string();
        let mut plan = Plan::without_light(problem.fabric, schedule, name);
        if let Some(network) = problem.fabric.network() {
            let mut route = Vec::new();
            for (transfer, way) in routes.iter().enumerate() {
                interrupt::check();
                let (source, destination) = plan.schedule.ends(transfer);
                route.clear();
                network.route(source, destination, &mut route);
                if route[..] != way[..] {
                    plan.routes.assign(transfer, way);
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

/// Returns the number of the block that a pair exchanges.
fn block(collective: &Collective, (source, destination): Pair) -> u32 {
    match collective.kind() {
        CollectiveKind::AllToAll => source * collective.ranks() + destination,
        CollectiveKind::Scatter => destination,
        _ => source,
    }
}

fn plan(spec: &Spec, problem: &PlanningProblem<'_>) -> Result<Planned, PlannerError> {
    if problem.collective.ranks() < 2 {
        return Ok(problem.nothing_to_do(spec));
    }
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

/// Refuses a plan that may not name routes.
fn check_may_name_routes(problem: &PlanningProblem<'_>) -> Result<(), PlannerError> {
    if problem.may_name_routes {
        return Ok(());
    }
    let sentence = "it names routes, but messages use the routes of the fabric here";
    Err(PlacementError::new(PlacementProblem::Unfit, sentence).into())
}

/// Returns the plans as candidates of a choice.
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
            name: Spec::new(NAME).with("chunks", chunks).to_string(),
            slots: 1,
            least,
            estimate: least.plus(Time::from_ps(pieces))?,
            transfers: work,
            make: Box::new(move |_| {
                let plan = demands.plan(chunks, MAX_SEARCH, &problem)?;
                Ok(plan.into())
            }),
        });
    }
    Ok(candidates)
}
