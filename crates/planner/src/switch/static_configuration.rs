//! Plans with a single configuration of a circuit switch for the whole collective.
//!
//! Every rank has d outgoing and d incoming circuits, so the configuration is a graph of degree d
//! ([`graphs`]). All_to_all, scatter and gather use shortest routes ([`shortest_routes`]). The
//! other collectives are planned by planners for any graph, on a fabric that has a link per
//! circuit. A link has the rate of a port, and the startup time and latency of a circuit. Each step
//! of such a plan is a slot of the switch, in which each circuit sends the data of its link. The
//! circuit simulator determines the time of the result.
//!
//! If the graph has a lower degree than a rank has ports, several parallel circuits take the place
//! of each circuit. They stripe its messages: together they act as a circuit of their total rate.

mod graphs;
mod shortest_routes;

use std::collections::BTreeMap;
use std::iter;

use crate::building::MAX_CANDIDATES;
use crate::selection::evaluation::{Built, Candidate, Evaluation};
use crate::{
    FamilyFunctions, PLANNERS, Planned, Planner, PlannerError, PlanningProblem, Scope, ensure,
    selection::candidate_bound,
};
use graphs::{Graph, Topology};
use opticoll_algorithms::AlgorithmError;
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::Time;
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::circuit_switch::CircuitSwitch;
use opticoll_placement::circuit_switch::placement::PortStates;
use opticoll_placement::{PlacementError, PlacementProblem};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Schedule, Transfer};
use opticoll_simulate::TimingModel;

pub(crate) const PLANNER: Planner = Planner {
    options: &[
        OptionRecord::new("topology", "graph of the circuits")
            .range("ring, shifts, kautz, hypercube, torus, demand")
            .default("the fastest of the graphs that the ports allow"),
        OptionRecord::new("shifts", "shift of each port, such as 1+5; topology=shifts")
            .range("numbers below the number of ranks, joined by +")
            .default("the shifts with the fewest hops found"),
        OptionRecord::new(
            "parallel",
            "number of parallel circuits in place of each circuit",
        )
        .range("from 1 to the number of ports")
        .default("the fastest number"),
        OptionRecord::new("on_links", "planner that uses the graph's links")
            .range("tree_packing, matching; not for all_to_all, scatter and gather")
            .default("the fastest"),
    ],
    depends_on_size: true,
    takes_demands: true,
    ..Planner::new(
        "static",
        "Static topology",
        &[
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::AllReduce,
            CollectiveKind::Broadcast,
            CollectiveKind::Reduce,
            CollectiveKind::Scatter,
            CollectiveKind::Gather,
            CollectiveKind::AllToAll,
        ],
        "One configuration for the whole collective: rings of shifts, Kautz graphs, \
        hypercubes, tori",
        "Imase and Itoh, A Design for Directed Graphs with Minimum Diameter, IEEE Transactions on \
         Computers 1983; planners of any graph",
        Scope::Switches(FamilyFunctions::new(plan, candidates)),
    )
};

/// Planners for any graph that are applied to the graph of circuits.
const ON_LINKS: [&str; 2] = ["matching", "tree_packing"];

/// Maximum number of transfers of a plan for the graph of circuits (131,072: 0.13 s at 1,000,000
/// transfers per second).
const MAX_TRANSFERS: u64 = 1 << 17;

fn plan(
    spec: &Spec,
    problem: &PlanningProblem<'_>,
    switch: &CircuitSwitch,
) -> Result<Planned, PlannerError> {
    check(switch)?;
    let on_links = match spec.option("on_links") {
        Some(_) if uses_shortest_routes(problem) => {
            let rule = "all_to_all, scatter and gather use shortest routes, without a planner; \
                        leave the option out";
            return Err(spec.refuse("on_links", rule).into());
        }
        Some(name) => Some(
            ON_LINKS
                .into_iter()
                .find(|planner| *planner == name)
                .ok_or_else(|| spec.refuse("on_links", "must be tree_packing or matching"))?,
        ),
        None => None,
    };
    let demand = problem.collective.demand();
    let topology = Topology::named(spec)?;
    let parallel = spec.count("parallel", 1, switch.ports)?;
    let numbers = parallel.map_or(1..=switch.ports, |number| number..=number);
    let graphs = match topology {
        None => Graph::all(switch, demand, numbers),
        Some(topology) => {
            let mut graphs = Vec::new();
            let mut refusal = None;
            for number in numbers {
                match Graph::new(&topology, number, switch, demand) {
                    Ok(graph) => graphs.push(graph),
                    Err(rule) => refusal = refusal.or(Some(rule)),
                }
            }
            if let (true, Some(rule)) = (graphs.is_empty(), refusal) {
                let mut options = ["parallel", "topology", "shifts"].into_iter();
                let option = options.find(|option| spec.option(option).is_some());
                return Err(spec.refuse(option.unwrap_or("topology"), rule).into());
            }
            graphs
        }
    };
    let offers = graphs
        .into_iter()
        .map(|graph| offer(problem, switch, graph, on_links));
    let evaluation = Evaluation::new(problem)?;
    evaluation.choose(offers.collect::<Result<_, PlannerError>>()?)
}

fn uses_shortest_routes(problem: &PlanningProblem<'_>) -> bool {
    use CollectiveKind::{AllToAll, Gather, Scatter};
    matches!(problem.collective.kind(), AllToAll | Scatter | Gather)
}

/// Fails if the switch has several planes or dead ports.
fn check(switch: &CircuitSwitch) -> Result<(), AlgorithmError> {
    let reason = "it sets the ports of a circuit_switch with planes=1 and without dead ports";
    let fits = switch.planes == 1 && switch.dead_ports.is_empty();
    ensure(fits, PLANNER.name, switch.ranks, reason)
}

/// Returns one candidate per graph that the ports permit. With one port the only graph is a ring,
/// for which there are other planners.
fn candidates<'a>(
    problem: &PlanningProblem<'a>,
    switch: &'a CircuitSwitch,
) -> Result<Vec<Candidate<'a>>, PlannerError> {
    let max_ranks = match problem.collective.kind() {
        CollectiveKind::AllToAll => super::MAX_ROUTED_RANKS,
        _ => u32::MAX,
    };
    let transfers = u64::from(switch.ranks).pow(2);
    if check(switch).is_err()
        || switch.ranks < 2
        || switch.ports < 2
        || switch.ranks > max_ranks
        || transfers > problem.max_transfers
    {
        return Ok(Vec::new());
    }
    let demand = problem.collective.demand();
    let graphs = Graph::all(switch, demand, 1..=switch.ports).into_iter();
    let offers = graphs.map(|graph| offer(problem, switch, graph, None));
    Ok(offers.flatten().collect())
}

/// Returns the candidate that builds the fastest plan on a graph.
fn offer<'a>(
    problem: &PlanningProblem<'a>,
    switch: &'a CircuitSwitch,
    graph: Graph,
    on_links: Option<&'static str>,
) -> Result<Candidate<'a>, PlannerError> {
    let problem = *problem;
    let is_all_to_all = problem.collective.kind() == CollectiveKind::AllToAll;
    let links = match is_all_to_all {
        true => None,
        false => Some(graph.links(switch)?),
    };
    let least = match &links {
        None => Time::ZERO,
        Some(links) => {
            let (collective, method) = (&problem.collective, TimingModel::default());
            candidate_bound::collective_bound(links, collective, problem.size, &method)?
        }
    };
    Ok(Candidate {
        name: graph.spec().to_string(),
        slots: 1,
        lower_bound: least,
        // The search for shortest routes takes long, so other candidates are tried first.
        estimate: match is_all_to_all {
            true => Time::from_ps(u64::MAX - 2),
            false => least,
        },
        transfers: u64::from(switch.ranks).pow(2),
        build: Box::new(move |limit| {
            let Some(links) = links.filter(|_| !uses_shortest_routes(&problem)) else {
                let plan = shortest_routes::plan(&problem, switch, &graph)?;
                return Ok(Built::from(plan));
            };
            let problem = PlanningProblem { limit, ..problem };
            match (
                fastest_on_links(&problem, switch, &graph, &links, on_links),
                limit,
            ) {
                (Err(PlannerError::NothingFits { .. }), Some(_)) => Ok(Built::NotExpected(
                    "no plan on this graph is faster than the one chosen",
                )),
                (plan, _) => Ok(Built::from(plan?)),
            }
        }),
    })
}

/// Returns the plan on the fabric `links` that is fastest when circuits replace its links.
fn fastest_on_links(
    problem: &PlanningProblem<'_>,
    switch: &CircuitSwitch,
    graph: &Graph,
    links: &Fabric,
    on_links: Option<&'static str>,
) -> Result<Plan, PlannerError> {
    let method = TimingModel::default();
    let links_problem = PlanningProblem {
        fabric: links,
        method: &method,
        may_name_routes: false,
        ..*problem
    };
    let planners = PLANNERS.iter().filter(|planner| match on_links {
        Some(name) => planner.name == name,
        None => ON_LINKS.contains(&planner.name),
    });
    let mut candidates = Vec::new();
    for planner in planners {
        let mut offers = planner.candidates(&links_problem)?;
        offers.sort_by_key(|offer| (offer.estimate, offer.transfers));
        let first_small = offers
            .iter()
            .position(|offer| offer.transfers <= MAX_TRANSFERS);
        // If all plans are too large, the first plan is tried.
        let first = first_small.unwrap_or(0);
        let offers = offers.into_iter().enumerate();
        let offers =
            offers.filter(|(place, offer)| *place == first || offer.transfers <= MAX_TRANSFERS);
        for (_, offer) in offers.take(MAX_CANDIDATES) {
            let name = graph.spec().with("on_links", planner.name);
            candidates.push(Candidate {
                build: Box::new(move |_| match (offer.build)(None)? {
                    Built::Plan(plan) => {
                        let plan =
                            over_circuits(plan.into_expanded(), problem, switch, graph, &name)?;
                        Ok(Built::from(plan))
                    }
                    other => Ok(other),
                }),
                ..offer
            });
        }
    }
    let evaluation = Evaluation::new(problem)?;
    let (plan, _) = evaluation.run(candidates, Vec::new())?.fastest?;
    Ok(plan.into_expanded())
}

/// Replaces the links of a plan by the circuits of the graph, with one slot per step. Each chunk is
/// cut into as many pieces as there are parallel circuits.
fn over_circuits(
    links_plan: Plan,
    problem: &PlanningProblem<'_>,
    switch: &CircuitSwitch,
    graph: &Graph,
    name: &Spec,
) -> Result<Plan, PlannerError> {
    let lights = lights(switch, graph);
    let links_schedule = &links_plan.schedule;
    let collective = links_schedule.collective;
    let pieces = collective.pieces() * graph.parallel;
    let mut schedule = Schedule::new(collective.with_pieces(pieces)?);
    let mut light = Vec::new();
    for step in 0..links_schedule.steps() {
        interrupt::check();
        schedule.begin_step();
        for transfer in links_schedule.step(step) {
            let transfer = links_schedule.transfer(transfer);
            let (from, to) = (transfer.source, transfer.destination);
            let circuits = lights.get(&[from, to]).ok_or_else(|| {
                let sentence = format!("no circuit of the topology joins rank {from} to rank {to}");
                PlacementError::new(PlacementProblem::Unfit, sentence)
            })?;
            for (number, circuit) in (0..).zip(circuits) {
                schedule.push(Transfer {
                    chunk: transfer.chunk * graph.parallel + number * transfer.count,
                    ..transfer
                });
                light.push(*circuit);
            }
        }
    }
    let mut plan = Plan::without_light(problem.fabric, schedule, name.to_string());
    plan.light = light;
    Ok(plan)
}

/// Returns the ports of parallel circuits; indexed by [source, destination] of the circuits.
fn lights(switch: &CircuitSwitch, graph: &Graph) -> BTreeMap<[u32; 2], Vec<Light>> {
    let ends = graph.circuits().map(|ends| (0, ends));
    let ends: Vec<(u32, [u32; 2])> = ends
        .flat_map(|ends| iter::repeat_n(ends, graph.parallel as usize))
        .collect();
    let lights = PortStates::new(switch).enter(0, &ends);
    let mut parallel = BTreeMap::<_, Vec<Light>>::new();
    for ((_, ends), light) in ends.into_iter().zip(lights) {
        parallel.entry(ends).or_default().push(light);
    }
    parallel
}

impl Graph {
    fn links(&self, switch: &CircuitSwitch) -> Result<Fabric, PlannerError> {
        let links: Vec<String> = self
            .circuits()
            .map(|[from, to]| format!("{from}>{to}"))
            .collect();
        let latency = switch.latency.plus(switch.startup)?;
        let text = format!(
            "custom:ranks={},links={},rate={}b/s,latency={latency}",
            self.ranks(),
            links.join("+"),
            switch.rate.bits_per_second() * u64::from(self.parallel)
        );
        Fabric::parse(&text)
            .map_err(|error| PlacementError::new(PlacementProblem::Unfit, error).into())
    }

    fn spec(&self) -> Spec {
        let mut spec = Spec::new(PLANNER.name).with("topology", self.topology.name());
        if let Topology::Shifts(Some(shifts)) = &self.topology {
            let shifts: Vec<String> = shifts.iter().map(u32::to_string).collect();
            spec = spec.with("shifts", shifts.join("+"));
        }
        match self.parallel {
            1 => spec,
            parallel => spec.with("parallel", parallel.to_string()),
        }
    }
}
