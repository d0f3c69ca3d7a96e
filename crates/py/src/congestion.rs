//! Functions on collectives whose lightpaths may be blocked, and on the mapping of ranks to hosts.

use std::collections::BTreeMap;

use opticoll::plan;
use opticoll::planner::rank_mapping::{self, Problem};
use opticoll::simulate::burst::BurstWork;
use opticoll::simulate::burst::collective;
use opticoll::simulate::burst::collective::{
    CollectiveOutcome, Congestion, Job, delivered_schedule,
};
use opticoll::units::Bytes;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;

use crate::burst::parse_network;
use crate::error::{OrRaise, ScheduleError};
use crate::interrupt;
use crate::method::{Size, texts};
use crate::plan::Plan;
use crate::table::Outcome;

/// Returns the transfers of one copy of `plan` in the order of their arrival, as a plan for the
/// verifier. `run` is the index of the replication, and `collective` is the index of the copy.
#[pyfunction]
pub(crate) fn delivered_plan(
    py: Python<'_>,
    runs: &Outcome,
    plan: &Plan,
    run: usize,
    collective: usize,
) -> PyResult<Plan> {
    let missing = || PyIndexError::new_err("there is no such replication or collective");
    let outcome: &CollectiveOutcome = runs.get().ok_or_else(missing)?;
    let job = outcome
        .replications
        .get(run)
        .and_then(|run| run.jobs.get(collective));
    let delivered = &job.ok_or_else(missing)?.delivered;
    interrupt::run(py, || {
        let rows = plan.rows();
        let schedule = delivered_schedule(&rows.schedule, delivered);
        let algorithm = rows.algorithm.clone();
        let plan = plan::Plan::without_light(&rows.fabric, schedule, algorithm);
        Plan::from_core(plan)
    })
}

/// Returns the plan with all of its transfers. Fails if the plan has lightpaths.
fn messages(plan: &Plan) -> PyResult<plan::Plan> {
    let rows = plan.rows();
    if rows.has_light() {
        return Err(ScheduleError::new_err(
            "the plan has light of its own; make one for an electrical fabric, such as crossbar",
        ));
    }
    Ok(rows.expanded().into_owned())
}

/// Simulates copies of a plan that run concurrently over lightpaths. `places` has the host of each
/// rank, for each copy.
///
/// `settings` are texts, by the names of the records `congestion_settings` and `burst_settings`. If
/// `external` is false, there are no background bursts. `progress` is called with the number of
/// completed replications; an exception in it ends the run. The outcome does not depend on the
/// number of threads. Raises FabricError, ScheduleError for a plan with lightpaths, or
/// SimulationError, whose attribute `setting` names the setting at fault, if there is one.
#[pyfunction]
#[pyo3(signature = (
    fabric, plan, places, size: "int | str", settings, *, external = true, threads = 1,
    progress: "Callable[[int], object] | None" = None
))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn simulate_collectives(
    py: Python<'_>,
    fabric: &str,
    plan: &Plan,
    places: Vec<Vec<u32>>,
    size: Size,
    settings: BTreeMap<String, String>,
    external: bool,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Outcome> {
    let read = Congestion::from_texts(texts(&settings));
    let (congestion, settings) = read.or_raise()?;
    let network = parse_network(py, fabric)?;
    let (plan, size) = (messages(plan)?, size.bytes()?);
    let work = match external {
        true => BurstWork::Random,
        false => BurstWork::Given(Vec::new()),
    };
    interrupt::watched(py, progress, |tell| {
        let job = |places: &Vec<u32>| Job {
            schedule: &plan.schedule,
            places: places.clone(),
            size,
        };
        let jobs: Vec<Job<'_>> = places.iter().map(job).collect();
        let watch = |completed: u32| tell(&[completed.into()]);
        collective::simulate(
            &network,
            &jobs,
            &work,
            &settings,
            &congestion,
            threads,
            watch,
        )
    })
    .map(Outcome::from_core)
}

/// Returns the number of nodes of a network, the number of hosts per node, and the specification
/// of an electrical fabric with the same nodes and links.
#[pyfunction]
pub(crate) fn burst_hosts(py: Python<'_>, fabric: &str) -> PyResult<(u32, u32, String)> {
    let network = parse_network(py, fabric)?;
    let links = network.electrical().to_owned();
    Ok((network.nodes(), network.hosts_per_node(), links))
}

/// Returns the rate of a wavelength of a network in bits per second.
#[pyfunction]
pub(crate) fn burst_rate(py: Python<'_>, fabric: &str) -> PyResult<u64> {
    Ok(parse_network(py, fabric)?.rate().bits_per_second())
}

/// Places the ranks of `copies` copies of a plan on hosts. Returns the host of each rank, the cost
/// in bytes times hops, a lower bound on the cost, and True if the cost is the minimum.
///
/// The search starts from the placements `starts`, among others. If `search` is false, the first of
/// them is evaluated instead.
#[pyfunction]
#[pyo3(signature = (fabric, plan, copies, size: "int | str", starts, *, search = true))]
pub(crate) fn place_ranks(
    py: Python<'_>,
    fabric: &str,
    plan: &Plan,
    copies: usize,
    size: Size,
    starts: Vec<Vec<u32>>,
    search: bool,
) -> PyResult<(Vec<u32>, u128, u128, bool)> {
    let network = parse_network(py, fabric)?;
    let (plan, size) = (messages(plan)?, size.bytes()?);
    interrupt::run(py, || {
        let jobs: Vec<(_, Bytes)> = vec![(&plan.schedule, size); copies];
        let problem = Problem::on_network(&network, &jobs).or_raise()?;
        for start in &starts {
            problem.check(start).or_raise()?;
        }
        let placement = match (search, starts.first()) {
            (false, Some(start)) => rank_mapping::judge(&problem, start),
            _ => rank_mapping::place(&problem, &starts),
        };
        Ok((
            placement.sites,
            placement.cost,
            placement.bound,
            placement.is_best,
        ))
    })?
}
