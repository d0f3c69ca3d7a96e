//! Collectives over light paths that may be refused, and where their ranks sit.

use std::collections::BTreeMap;

use numpy::{IntoPyArray, PyArray1};
use opticoll::plan::{self, AnyPlan};
use opticoll::planner::placement::{self, Problem};
use opticoll::simulate::burst::collective::{
    self, CollectiveOutcome, Congestion, Job, JobRun, Run, executed,
};
use opticoll::simulate::burst::{BurstNetwork, Work};
use opticoll::units::{Bytes, Time};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::burst::network_of;
use crate::error::{IntoPyErr, ScheduleError};
use crate::interrupt;
use crate::method::Size;
use crate::plan::Plan;

/// Step, hosts of the light path, tries, and picoseconds from the beginning.
type Refused = (u32, (u32, u32), u32, u64);

/// What became of collectives, replication by replication.
#[pyclass(frozen, module = "opticoll._core")]
pub(crate) struct CollectiveRuns {
    outcome: CollectiveOutcome,
    plan: plan::Plan,
    network: BurstNetwork,
}

impl CollectiveRuns {
    fn job(&self, run: usize, collective: usize) -> PyResult<&JobRun> {
        let run = self.outcome.runs.get(run);
        run.and_then(|run| run.jobs.get(collective))
            .ok_or_else(|| PyIndexError::new_err("there is no such replication or collective"))
    }
}

#[pymethods]
impl CollectiveRuns {
    #[getter]
    fn network(&self) -> &str {
        self.network.spelling()
    }

    fn __len__(&self) -> usize {
        self.outcome.runs.len()
    }

    #[getter]
    fn failed(&self) -> u32 {
        self.outcome.failed
    }

    #[getter]
    fn mean_seconds(&self) -> Option<f64> {
        self.outcome.mean_seconds
    }

    #[getter]
    fn interval_seconds(&self) -> Option<(f64, f64)> {
        self.outcome.interval_seconds
    }

    /// Of each replication: when its last collective had ended, in picoseconds.
    #[getter]
    fn times_ps(&self) -> Vec<Option<u64>> {
        let runs = self.outcome.runs.iter();
        runs.map(|run| run.time.map(Time::ps)).collect()
    }

    /// Sums over the collectives of each replication, and bursts beside them.
    #[getter]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let column = |of: &dyn Fn(&Run) -> u64| -> Bound<'py, PyArray1<u64>> {
            let column: Vec<u64> = self.outcome.runs.iter().map(of).collect();
            column.into_pyarray(py)
        };
        let jobs = |of: fn(&JobRun) -> u64| move |run: &Run| run.jobs.iter().map(of).sum::<u64>();
        let columns = PyDict::new(py);
        columns.set_item("refusals", column(&jobs(|job| job.refusals)))?;
        columns.set_item("phases", column(&jobs(|job| job.phases.into())))?;
        columns.set_item("degraded", column(&jobs(|job| job.degraded.into())))?;
        columns.set_item("waited_ps", column(&jobs(|job| job.waited.ps())))?;
        columns.set_item("bursts", column(&|run| run.bursts.offered))?;
        columns.set_item("bursts_lost", column(&|run| run.bursts.lost))?;
        Ok(columns)
    }

    /// Why a collective gave up, or nothing.
    fn failure(&self, run: usize, collective: usize) -> PyResult<Option<Refused>> {
        let failure = self.job(run, collective)?.failure;
        Ok(failure.map(|one| (one.step, one.hosts, one.tries, one.at.ps())))
    }

    /// The transfers that arrived, in the order in which they did, as a plan to be verified.
    fn executed(&self, py: Python<'_>, run: usize, collective: usize) -> PyResult<Plan> {
        let job = self.job(run, collective)?;
        interrupt::run(py, || {
            let schedule = executed(&self.plan.schedule, &job.delivered);
            let algorithm = self.plan.algorithm.clone();
            let plan = plan::Plan::without_light(&self.plan.fabric, schedule, algorithm);
            Plan::from_core(AnyPlan::Full(plan))
        })
    }
}

/// The whole plan, if it is one of messages.
fn messages(plan: &Plan) -> PyResult<plan::Plan> {
    let whole = plan.whole();
    if whole.kept().has_light() {
        return Err(ScheduleError::new_err(
            "the plan has light of its own; make one for an electrical fabric, such as crossbar",
        ));
    }
    Ok(match whole {
        plan::PlanRef::Full(plan) => plan.clone(),
        plan::PlanRef::Folded(plan) => plan.unfold(),
    })
}

/// Carries out copies of a plan at once, the ranks of each at hosts.
#[pyfunction]
#[pyo3(signature = (fabric, plan, places, size, settings, *, external = true, threads = 1, progress = None))]
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
) -> PyResult<CollectiveRuns> {
    let texts = settings
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()));
    let (congestion, settings) = Congestion::from_texts(texts).map_err(IntoPyErr::into_py_err)?;
    let network = network_of(py, fabric)?;
    let (plan, size) = (messages(plan)?, size.bytes()?);
    let work = match external {
        true => Work::Random,
        false => Work::Given(Vec::new()),
    };
    let mut raised = None;
    let outcome = interrupt::run(py, || {
        let job = |places: &Vec<u32>| Job {
            schedule: &plan.schedule,
            places: places.clone(),
            size,
        };
        let jobs: Vec<Job<'_>> = places.iter().map(job).collect();
        let watch = |done: u32| {
            let told = Python::attach(|py| match &progress {
                Some(progress) => progress.call1(py, (done,)).map(|_| ()),
                None => Ok(()),
            });
            raised = told.err();
            raised.is_none()
        };
        collective::simulate(
            &network,
            &jobs,
            &work,
            &settings,
            &congestion,
            threads,
            watch,
        )
    })?;
    match (raised, outcome) {
        (Some(error), _) => Err(error),
        (None, outcome) => outcome
            .map(|outcome| CollectiveRuns {
                outcome,
                plan,
                network,
            })
            .map_err(IntoPyErr::into_py_err),
    }
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

/// Hosts for the ranks of several copies of a plan, from given ones on: (hosts, bytes times hops, the lower
/// bound, whether it is the least). Without a search the first given ones are only judged.
#[pyfunction]
#[pyo3(signature = (fabric, plan, copies, size, starts, *, search = true))]
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
        let problem = Problem::on_network(&network, &jobs).map_err(IntoPyErr::into_py_err)?;
        for start in &starts {
            problem.check(start).map_err(IntoPyErr::into_py_err)?;
        }
        let placement = match (search, starts.first()) {
            (false, Some(start)) => placement::judge(&problem, start),
            _ => placement::place(&problem, &starts),
        };
        Ok((
            placement.sites,
            placement.cost,
            placement.bound,
            placement.is_best,
        ))
    })?
}
