//! Collectives over lightpaths that may be blocked, and where their ranks sit.

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

use crate::burst::network_of;
use crate::error::{OrRaise, ScheduleError};
use crate::interrupt;
use crate::method::{Size, texts};
use crate::plan::Plan;
use crate::table::Outcome;

/// Of a replication and collective, the transfers that arrived, in the order in which they did, as a plan to be
/// verified.
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

/// The whole plan, if it is one of messages.
fn messages(plan: &Plan) -> PyResult<plan::Plan> {
    let rows = plan.rows();
    if rows.has_light() {
        return Err(ScheduleError::new_err(
            "the plan has light of its own; make one for an electrical fabric, such as crossbar",
        ));
    }
    Ok(rows.written_out().into_owned())
}

/// Copies of a plan at once over lightpaths; `places` are the hosts of each one's ranks.
///
/// The settings are the records `congestion_settings` and `burst_settings`. Without `external` there are no bursts.
/// `progress` is called with the number of replications so far; what it raises ends the run. The outcome does not depend
/// on the number of threads. Raises FabricError, ScheduleError for a plan with light, or SimulationError with the
/// attribute `setting` where one is at fault.
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
    let network = network_of(py, fabric)?;
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
        let watch = |done: u32| tell(&[done.into()]);
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

/// Nodes of a network, and hosts at each.
#[pyfunction]
pub(crate) fn burst_hosts(py: Python<'_>, fabric: &str) -> PyResult<(u32, u32)> {
    let network = network_of(py, fabric)?;
    Ok((network.nodes(), network.hosts_per_node()))
}

/// Bits per second of a wavelength of a network.
#[pyfunction]
pub(crate) fn burst_rate(py: Python<'_>, fabric: &str) -> PyResult<u64> {
    Ok(network_of(py, fabric)?.rate().bits_per_second())
}

/// Hosts of all ranks, bytes times hops, a lower bound, whether it is the least.
///
/// The search sets out from `starts` among others; without it the first of them is judged.
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
    let network = network_of(py, fabric)?;
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
