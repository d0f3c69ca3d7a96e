//! Planner of lightpaths of one hop: the plan of an electrical network on the same links, in which
//! each message is divided among all channels of its link.
//!
//! A link of a graph of fibres has c channels of rate B. A message of b bytes over the link takes
//! b / (c B) if it is divided into c stripes, one on each channel, as on an electrical link of rate
//! c B. The planners of electrical networks therefore find plans for light. All lightpaths lead
//! over one link, or over the same links in every slot, so they can stay up.
//!
//! The electrical network has links of rate B. Messages of a c-th of the size take the same time on
//! this network.

use crate::building::{SEARCHED_TRANSFERS, claim_steps};
use crate::selection::evaluation::{Built, Candidate, Evaluation, concerns_one_candidate};
use crate::{FamilyFunctions, Planned, Planner, PlannerError, PlanningProblem, Scope};
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec, flat, nested};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::circuits::{Circuits, ReconfigurationCharge};
use opticoll_fabric::family::wdm_graph::{GraphLight, WdmGraph};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::plan::{Lightpath, Plan};
use opticoll_plan::schedule::{Schedule, Transfer};
use opticoll_simulate::TimingModel;
use rustc_hash::FxHashMap;

pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("plan", "electrical plan, such as matching/chunks=3")
            .range("planners and algorithms for links")
            .default("the fastest found"),
    ],
    depends_on_size: true,
    ..Planner::new(
        "one_hop",
        "One-hop lightpaths",
        &[
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::AllReduce,
            CollectiveKind::Broadcast,
            CollectiveKind::Reduce,
        ],
        "The plan of an electrical network on the same links, with messages striped over all \
        channels of a link",
        "opticoll",
        Scope::Fibres(FamilyFunctions {
            applies,
            plan,
            candidates,
        }),
    )
};

/// Numbers of chunks of the plans by `matching` that are tried if every slot is charged.
const CHUNKS: [u32; 8] = [1, 2, 3, 4, 6, 8, 12, 16];

/// Returns whether a rank has transmitters and receivers for all channels of its links, and each
/// link has one direction. (The electrical plan may use both directions of a link at once.)
fn applies(graph: &WdmGraph) -> bool {
    let links = graph.fibre_links().wiring();
    if links.ends().any(|(_, _, leads_both_ways)| leads_both_ways) {
        return false;
    }
    let has_all = |limit: Option<u32>, channels: fn(&WdmGraph, u32) -> u32| {
        let ranks = 0..graph.fibre_links().ranks();
        let mut most = ranks.map(|rank| channels(graph, rank));
        limit.is_none_or(|limit| most.all(|most| most <= limit))
    };
    has_all(graph.transmitters, WdmGraph::channels_from)
        && has_all(graph.receivers, WdmGraph::channels_to)
}

fn plan(
    spec: &Spec,
    problem: &PlanningProblem<'_>,
    graph: &WdmGraph,
) -> Result<Planned, PlannerError> {
    match spec.option("plan") {
        Some(text) => Ok(build(graph, problem, Some(&nested(text)?), u64::MAX)?.into()),
        None => Evaluation::new(problem)?.choose(candidates(problem, graph)?),
    }
}

fn candidates<'a>(
    problem: &PlanningProblem<'a>,
    graph: &'a WdmGraph,
) -> Result<Vec<Candidate<'a>>, PlannerError> {
    if problem.collective.ranks() < 2 {
        return Ok(Vec::new());
    }
    let charge = graph.charge(problem.policy().name());
    let is_every_slot = matches!(charge, Ok(ReconfigurationCharge::EverySlot));
    let mut specs = vec![None];
    if is_every_slot {
        let matching = CHUNKS.map(|chunks| Some(Spec::new("matching").with("chunks", chunks)));
        specs.extend(matching);
    }
    let least = problem.least()?;
    let ranks = u64::from(problem.collective.ranks());
    let candidates = specs.into_iter().zip(0..).map(|(inner, place)| {
        let problem = *problem;
        let slots = if is_every_slot {
            ranks.ilog2().into()
        } else {
            1
        };
        Ok(Candidate {
            name: spec_of(inner.as_ref()).to_string(),
            slots,
            lower_bound: Time::ZERO,
            estimate: least.plus(Time::from_ps(place))?,
            transfers: ranks * ranks,
            build: Box::new(move |limit| {
                if limit
                    .is_some_and(|limit| limit.ps() <= least.ps().saturating_add(least.ps() / 100))
                {
                    return Ok(Built::NotExpected("the plan chosen is near the bound"));
                }
                match build(graph, &problem, inner.as_ref(), SEARCHED_TRANSFERS / 2) {
                    Ok(plan) => Ok(plan.into()),
                    Err(error) if concerns_one_candidate(&error) => {
                        Ok(Built::NotExpected("its electrical plan has no lightpaths"))
                    }
                    Err(error) => Err(error),
                }
            }),
        })
    });
    candidates.collect()
}

fn spec_of(inner: Option<&Spec>) -> Spec {
    match inner {
        Some(inner) => Spec::new(PLANNER.name).with("plan", flat(&inner.to_string())),
        None => Spec::new(PLANNER.name),
    }
}

/// Builds the plan whose electrical plan is `inner`, or the fastest one. Fails if it has more than
/// `most` lightpaths, or if messages over different routes share a link in a step.
fn build(
    graph: &WdmGraph,
    problem: &PlanningProblem<'_>,
    inner: Option<&Spec>,
    most: u64,
) -> Result<Plan, PlannerError> {
    let channels = graph.channels();
    let method = TimingModel::default();
    let electrical = PlanningProblem {
        fabric: graph.electrical(),
        size: Bytes::new((problem.size.get() / u64::from(channels)).max(1)),
        method: &method,
        max_work: SEARCHED_TRANSFERS,
        limit: None,
        joined: None,
        wanted: 1,
        ..*problem
    };
    let messages = match inner {
        Some(inner) => electrical.solve(inner)?.plan,
        None => electrical.fastest()?.plan,
    };
    let messages = messages.into_expanded();
    let chunks = (0..messages.len()).map(|index| messages.schedule.transfer(index).count);
    let lightpaths = chunks.map(u64::from).sum::<u64>() * u64::from(channels);
    problem.fits(lightpaths)?;
    if lightpaths > most {
        let transfers = lightpaths;
        return Err(PlannerError::TooLarge { transfers, most });
    }
    let lights: Vec<GraphLight> = (0..channels)
        .map(|channel| {
            let (fibre, wavelength) = graph.channel(channel);
            GraphLight { fibre, wavelength }
        })
        .collect();
    let pieces = messages
        .schedule
        .collective
        .pieces()
        .saturating_mul(channels);
    let collective = problem.collective.with_pieces(pieces)?;
    let name = spec_of(Some(&messages.algorithm.parse()?)).to_string();
    let mut plan = Plan::without_light(problem.fabric, Schedule::new(collective), name);
    plan.reserve(lightpaths as usize);
    let (mut route, mut route_on) = (Vec::new(), FxHashMap::default());
    for step in 0..messages.schedule.steps() {
        let slot = step as u32;
        plan.step_slots.push(slot..slot + 1);
        plan.schedule.begin_step();
        route_on.clear();
        for index in messages.schedule.step(step) {
            interrupt::check();
            let transfer = messages.schedule.transfer(index);
            route.clear();
            match messages.routes.of(index) {
                Some(links) => route.extend_from_slice(links),
                None => {
                    let network = graph.fibre_links();
                    network.route(transfer.source, transfer.destination, &mut route);
                }
            }
            let shares = route
                .iter()
                .any(|&link| *route_on.entry(link).or_insert_with(|| route.clone()) != route);
            let is_long = graph
                .reach
                .is_some_and(|reach| route.len() > reach as usize);
            if shares || is_long || graph.too_weak(&route, 0).is_some() {
                let reason = "messages over different routes share a link, or light over a route \
                              is too weak; use relay_forest";
                return Err(
                    AlgorithmError::refused(PLANNER.name, collective.ranks(), reason).into(),
                );
            }
            for chunk in transfer.chunk..transfer.chunk + transfer.count {
                for (stripe, &light) in (0..).zip(&lights) {
                    plan.routes.assign(plan.len(), &route);
                    plan.push(Lightpath {
                        slot,
                        light: light.into(),
                        transfer: Transfer {
                            chunk: chunk * channels + stripe,
                            count: 1,
                            ..transfer
                        },
                    });
                }
            }
        }
    }
    plan.schedule.claims = claim_steps(&plan.schedule);
    Ok(plan)
}
