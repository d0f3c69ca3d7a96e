//! Plans of an all_to_all, scatter or gather near the maximum concurrent flow of any graph.
//!
//! Each block is cut into chunks, and each chunk goes end to end over a way of its own, which the plan names as its
//! route ([`concurrent_flow`](opticoll_bounds::concurrent_flow)). All chunks start in one step: nothing is stored and
//! forwarded. Let T be the load of the busiest link over its rate. Under max-min fair sharing of messages of one size it is
//! full from the first of its messages to the last, unless other links hold all of them up; so the plan takes T, and the
//! latency of a way.

use std::rc::Rc;

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
use opticoll_plan::schedule::{Claims, Schedule, Transfer};

/// The planner of concurrent flows.
pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("chunks", "chunks that each block is cut into")
            .range("1 to 64")
            .default("the fastest of 1, 2, 3, 4 and 8, on large fabrics of fewer"),
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
        "Every chunk on a route of its own, so that the busiest link is as little loaded as can be",
        "Shahrokhi and Matula, The maximum concurrent flow problem, JACM 1990",
        Scope::Any(
            |fabric| fabric.network().and_then(ConcurrentFlow::of).is_some(),
            plan,
            candidates,
        ),
    )
};

const NAME: &str = "concurrent_flow";

/// The most chunks of a block.
const MOST_CHUNKS: u32 = 64;

/// The numbers of chunks of which the fastest is taken.
const CHOSEN: [u32; 5] = [1, 2, 3, 4, 8];

/// The most chunks in all where their number is chosen and blocks are cut: where there are many blocks, each is little
/// beside what a link carries.
const MOST_CUT: u64 = 1 << 13;

/// The work of making and timing a way, by its links: rates of flows are found link by link, many times.
const WORK_PER_LINK: u64 = 16;

/// The search for ways is given up after so many steps over links, where it is one of a choice; what is found so far
/// is taken.
const MOST_SEARCH: u64 = 50_000_000;

/// The same where they are asked for.
const MOST_SEARCH_NAMED: u64 = 1_000_000_000;

/// Most steps over links in search of shortest ways, where the plan is one of a choice.
const MOST_LENGTHS: u64 = 1 << 26;

/// What ways are searched for.
struct Demands<'a> {
    flow: ConcurrentFlow<'a>,
    pairs: Vec<Pair>,
    /// No ways take less.
    bound: BlockTime,
    /// The links of the shortest ways of all pairs.
    hops: u64,
}

impl<'a> Demands<'a> {
    /// # Errors
    /// Links that lead nobody knows where, or that flows do not share; ranks that cannot be reached.
    fn of(problem: &PlanningProblem<'a>) -> Result<Demands<'a>, PlannerError> {
        let collective = problem.collective;
        let flow = problem.fabric.network().and_then(ConcurrentFlow::of);
        let flow = flow.ok_or_else(|| AlgorithmError::Refused {
            name: NAME,
            ranks: collective.ranks(),
            reason: "it needs links between known ends that flows share".into(),
        })?;
        let pairs = pairs(&collective).unwrap_or_default();
        let each = vec![
            1;
            problem
                .fabric
                .network()
                .map_or(0, |network| network.links().len())
        ];
        let hops = flow.bound(&pairs, &each).map_or(0, |all| all.blocks as u64);
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

    /// The plan with blocks in so many chunks.
    fn plan(
        &self,
        chunks: u32,
        most_work: u64,
        problem: &PlanningProblem<'_>,
    ) -> Result<Plan, PlannerError> {
        let found = self.flow.routes(&self.pairs, chunks, self.bound, most_work);
        let found = found.ok_or_else(unreachable_ranks)?;
        let collective = problem.collective.with_pieces(chunks)?;
        let mut schedule = Schedule::new(collective);
        schedule.begin_step();
        // The chunks of a block on one way are one transfer.
        let mut taken: Vec<Box<[u32]>> = Vec::new();
        let of_pairs = found.routes.chunks(chunks as usize);
        for (&pair, ways) in self.pairs.iter().zip(of_pairs) {
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
                taken.push(alike[0].clone());
            }
        }
        schedule.claims = Claims {
            schedule_steps: Some(schedule.steps() as u32),
            ..Claims::default()
        };
        let name = Spec::new(NAME).with("chunks", chunks).to_string();
        let mut plan = Plan::without_light(problem.fabric, schedule, name);
        if let Some(network) = problem.fabric.network() {
            let mut route = Vec::new();
            for (transfer, way) in taken.iter().enumerate() {
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
    let sentence = "some ranks cannot be reached: there are no ways to them";
    PlacementError::new(PlacementProblem::Unfit, sentence).into()
}

/// The number of the block that a pair exchanges.
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
    refuse_other_routes(problem)?;
    let demands = Rc::new(Demands::of(problem)?);
    if let Some(chunks) = spec.count("chunks", 1, MOST_CHUNKS)? {
        problem.fits(demands.pairs.len() as u64 * u64::from(chunks))?;
        return Ok(demands.plan(chunks, MOST_SEARCH_NAMED, problem)?.into());
    }
    let evaluation = Evaluation::new(problem)?;
    let candidates = with(&demands, problem)?;
    let EvaluationOutcome { fastest, .. } = evaluation.run(candidates, Vec::new())?;
    Ok(fastest?.0.into())
}

/// Where a plan cannot name routes, it has no ways of its own.
fn refuse_other_routes(problem: &PlanningProblem<'_>) -> Result<(), PlannerError> {
    if problem.may_name_routes {
        return Ok(());
    }
    let sentence = "it names routes, and here messages go by those of the fabric";
    Err(PlacementError::new(PlacementProblem::Unfit, sentence).into())
}

/// The same plans as contenders of a choice.
fn candidates<'a>(problem: &PlanningProblem<'a>) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let ranks = u64::from(problem.collective.ranks());
    let links = problem
        .fabric
        .network()
        .map_or(0, |network| network.links().len() as u64);
    let is_large = problem.fits(ranks * ranks).is_err() || ranks * links > MOST_LENGTHS;
    if ranks < 2 || is_large || !problem.may_name_routes {
        return Ok(Vec::new());
    }
    match Demands::of(problem) {
        Ok(demands) => with(&Rc::new(demands), problem),
        Err(PlannerError::Placement(_)) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn with<'a>(
    demands: &Rc<Demands<'a>>,
    problem: &PlanningProblem<'a>,
) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let least = problem.least()?;
    let mut candidates = Vec::new();
    let blocks = problem.collective.blocks();
    for chunks in CHOSEN {
        let transfers = demands.pairs.len() as u64 * u64::from(chunks);
        let pieces = u64::from(chunks);
        if pieces > 1
            && (pieces.saturating_mul(blocks) > problem.size.get() || transfers > MOST_CUT)
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
                let plan = demands.plan(chunks, MOST_SEARCH, &problem)?;
                Ok(plan.into())
            }),
        });
    }
    Ok(candidates)
}
