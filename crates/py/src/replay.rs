//! The Python class `Trace`: traces of MPI programs, which are replayed on networks.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use numpy::PyReadonlyArray1;
use opticoll::families::Medium;
use opticoll::units::{Bytes, Time};
use opticoll::workload::error::TraceError as TraceProblem;
use opticoll::workload::network::{self, ReplayRequest, TraceContent, TransportModel};
use opticoll::workload::plan_messages::PlanMessages;
use opticoll::workload::program::Call;
use opticoll::workload::replay::{Eager, EndCosts, ReplaySettings};
use opticoll::workload::{chakra, csv, event_table, goal_plan, goal_text, time_independent};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;

use crate::error::{IntoPyErr, OrRaise, TraceError};
use crate::interrupt;
use crate::method::{Settings, method, named_algorithms, texts};
use crate::plan::Plan;
use crate::schedule::Schedule;
use crate::table::Outcome;

/// The trace of an MPI program, which `opticoll.read_trace` reads and `opticoll.replay` replays.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> trace = opticoll.read_trace(
/// ...     b"# app=hello ranks=2\nrank,call,peer,send_bytes,recv_bytes,tag,comm,req,compute_ns\n"
/// ...     b"0,Send,1,8,0,7,0,,100\n1,Recv,0,0,8,7,0,,40\n"
/// ... )
/// >>> trace
/// <Trace 2 ranks, 2 events>
/// >>> trace.ranks, trace.events, trace.messages, trace.has_calls, trace.plan
/// (2, 2, (1, 8), True, None)
#[pyclass(frozen, module = "opticoll._core")]
pub(crate) struct Trace {
    source: TraceContent,
    /// The plan from which this trace was exported, if any.
    exported: Option<Py<Plan>>,
}

impl From<TraceContent> for Trace {
    fn from(source: TraceContent) -> Trace {
        Trace {
            source,
            exported: None,
        }
    }
}

#[pymethods]
impl Trace {
    /// The number of ranks of the program.
    #[getter]
    fn ranks(&self) -> u32 {
        self.source.ranks()
    }

    /// The number of calls; for a GOAL file, the number of operations; for a Chakra trace, the
    /// number of nodes.
    #[getter]
    fn events(&self) -> usize {
        match &self.source {
            TraceContent::Calls(trace) => trace.events(),
            TraceContent::Messages(program) => program.len(),
        }
    }

    /// The number of point-to-point messages of the program, without collectives, and their bytes.
    #[getter]
    fn messages(&self) -> (u64, u128) {
        match &self.source {
            TraceContent::Calls(trace) => trace.messages(),
            TraceContent::Messages(program) => program.messages(),
        }
    }

    /// True if each rank of the trace makes one call after another; False for traces of single
    /// messages, and for graphs of dependent operations.
    #[getter]
    fn has_calls(&self) -> bool {
        matches!(&self.source, TraceContent::Calls(trace) if trace.after.is_empty())
    }

    /// The plan that was exported as this trace, or None.
    ///
    /// A replay on the plan's fabric executes the plan instead of the trace.
    #[getter]
    fn plan(&self, py: Python<'_>) -> Option<Py<Plan>> {
        self.exported.as_ref().map(|plan| plan.clone_ref(py))
    }

    /// Returns the same trace, with `plan` as the plan that was exported as this trace.
    ///
    /// Parameters
    /// ----------
    /// plan : Plan or None
    ///     The plan, which must have a size; None for a trace without a plan.
    ///
    /// Raises
    /// ------
    /// TraceError
    ///     The plan has no size.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=2,wavelengths=1", "ring")
    /// >>> plan = plan.with_size(16)
    /// >>> messages = b"num_ranks 2\nrank 0 {\nl0: send 8b to 1\n}\n"
    /// >>> messages += b"rank 1 {\nl0: recv 8b from 0\n}\n"
    /// >>> trace = opticoll.read_trace(messages).exported_from(plan)
    /// >>> trace.plan == plan
    /// True
    fn exported_from(&self, plan: Option<Py<Plan>>) -> PyResult<Trace> {
        let size = |plan: &Py<Plan>| plan.get().rows().size;
        if plan.as_ref().is_some_and(|plan| size(plan).is_none()) {
            let sentence = "the plan states no size; use plan.with_size(size_bytes)";
            return Err(TraceError::new_err(sentence));
        }
        Ok(Trace {
            source: self.source.clone(),
            exported: plan,
        })
    }

    fn __repr__(&self) -> String {
        format!("<Trace {} ranks, {} events>", self.ranks(), self.events())
    }
}

/// A table of the ranks' calls, to which batches of rows are appended.
#[pyclass(module = "opticoll._core")]
pub(crate) struct EventTable {
    table: event_table::EventTable,
}

#[pymethods]
impl EventTable {
    #[new]
    fn new(ranks: Option<u32>, communicators: BTreeMap<u32, Vec<u32>>) -> PyResult<EventTable> {
        let mut table = event_table::EventTable::default();
        if let Some(ranks) = ranks {
            table.declare(ranks);
        }
        for (id, members) in communicators {
            table
                .communicator(id, members)
                .map_err(TraceError::new_err)?;
        }
        Ok(EventTable { table })
    }

    /// Appends rows. `names` are the names of calls, and `call` has the index in `names` of each
    /// row's call. `numbers` has eight columns with one number per row.
    ///
    /// The columns are rank, peer, send_bytes, recv_bytes, tag, comm, req and compute_ns; 2^64 - 1
    /// stands for a missing number. `sizes` has (row, bytes for each member) for each Alltoallv.
    /// Raises TraceError, which names the row.
    #[pyo3(signature = (
        names, call: "NDArray[np.uint32]", numbers: "list[NDArray[np.uint64]]", sizes
    ))]
    fn extend(
        &mut self,
        py: Python<'_>,
        names: Vec<String>,
        call: PyReadonlyArray1<'_, u32>,
        numbers: [PyReadonlyArray1<'_, u64>; 8],
        sizes: Vec<(usize, Vec<u64>)>,
    ) -> PyResult<()> {
        let call = call.as_slice()?;
        let mut columns = [&[][..]; 8];
        for (column, numbers) in columns.iter_mut().zip(&numbers) {
            *column = numbers.as_slice()?;
        }
        if columns.iter().any(|column| column.len() != call.len()) {
            return Err(TraceError::new_err("the columns have different lengths"));
        }
        let columns = event_table::EventColumns {
            names: &names,
            call,
            numbers: columns,
            sizes,
        };
        interrupt::run(py, || self.table.extend(columns))?.or_raise()
    }

    /// Returns the trace of all rows, and empties the table. Raises TraceError.
    fn finish(&mut self) -> PyResult<Trace> {
        let read = std::mem::take(&mut self.table).finish();
        read.map(|trace| TraceContent::Calls(trace).into())
            .map_err(TraceError::new_err)
    }
}

/// Reads a trace in the format `table`, `time_independent` or `goal`.
///
/// Raises TraceError, which names the line, the byte, or the rank and event.
#[pyfunction]
#[pyo3(signature = (content, form, operations_per_second = 1_000_000_000))]
pub(crate) fn read_trace(
    py: Python<'_>,
    content: PyBackedBytes,
    form: &str,
    operations_per_second: u64,
) -> PyResult<Trace> {
    let text = || {
        std::str::from_utf8(&content).map_err(|error| TraceProblem::Binary {
            offset: error.valid_up_to(),
            problem: "no UTF-8 text".into(),
        })
    };
    let read = interrupt::attempt(py, || {
        Ok::<_, TraceProblem>(match form {
            "goal" => TraceContent::Messages(goal_text::read(text()?)?),
            "time_independent" => {
                TraceContent::Calls(time_independent::read(text()?, operations_per_second)?)
            }
            _ => TraceContent::Calls(csv::read(text()?)?),
        })
    })?;
    Ok(read.into())
}

/// Reads an execution trace from the contents of its Chakra files, one for each rank. Raises
/// TraceError.
#[pyfunction]
#[pyo3(signature = (contents: "list[bytes]"))]
pub(crate) fn read_chakra(py: Python<'_>, contents: Vec<PyBackedBytes>) -> PyResult<Trace> {
    let read = interrupt::attempt(py, || {
        let contents: Vec<&[u8]> = contents.iter().map(|content| &content[..]).collect();
        chakra::read(&contents)
    })?;
    Ok(TraceContent::Calls(read).into())
}

/// Writes the messages of a plan to a file, in the format `goal` or `time_independent`.
///
/// Raises OSError, or TraceError if the format cannot express the messages.
#[pyfunction]
pub(crate) fn write_messages(
    py: Python<'_>,
    plan: &Plan,
    path: PathBuf,
    form: &str,
    size_bytes: u64,
) -> PyResult<()> {
    let written = interrupt::run(py, || {
        let size = Bytes::new(size_bytes);
        let messages = PlanMessages::of(&plan.rows().expanded(), size)?;
        if form != "time_independent" {
            messages.each_has_bytes("GOAL")?;
        }
        let write = || {
            let mut to = BufWriter::new(File::create(path)?);
            match form {
                "goal" => goal_plan::write_text(&messages, &mut to)?,
                _ => time_independent::write(&messages, &mut to)?,
            }
            to.flush()
        };
        Ok::<io::Result<()>, TraceProblem>(write())
    })?;
    Ok(written.or_raise()??)
}

/// Reads the schedule that a GOAL file states in its comments. Raises TraceError, which names the
/// line.
#[pyfunction]
pub(crate) fn read_goal_schedule(py: Python<'_>, text: &str) -> PyResult<Schedule> {
    let schedule = interrupt::run(py, || goal_plan::read(text))?;
    schedule.map(Schedule::from_core).or_raise()
}

/// Replays a trace on a fabric, or with a cost model such as `zero`, `hockney:...`, `loggp:...` or
/// `lightpath_grid:...`.
///
/// With `bursts`, which are settings of lightpaths and bursts, the network is a network of
/// `simulate_bursts`, and each message requests a lightpath. Raises FabricError, SimulationError,
/// AlgorithmError, or TraceError, which names the rank, the event and the line if they are known.
#[pyfunction]
#[pyo3(signature = (
    trace, network, algorithms, *, compute_factor: "tuple[int, int]" = (1, 1),
    rank_factors: "dict[int, tuple[int, int]]" = BTreeMap::new(), overhead_ps = 0,
    eager_bytes = None, rendezvous = false, timeline = false, bursts = None,
    **settings: "Unpack[Settings]"
))]
#[expect(clippy::too_many_arguments, reason = "they are keyword arguments")]
pub(crate) fn replay_trace(
    py: Python<'_>,
    trace: &Bound<'_, Trace>,
    network: &str,
    algorithms: BTreeMap<String, String>,
    compute_factor: (u32, u32),
    rank_factors: BTreeMap<u32, (u32, u32)>,
    overhead_ps: u64,
    eager_bytes: Option<u64>,
    rendezvous: bool,
    timeline: bool,
    bursts: Option<BTreeMap<String, String>>,
    settings: Option<Settings>,
) -> PyResult<Outcome> {
    let ranks = trace.get().source.ranks();
    let medium = Medium::parse_for(network, ranks).or_raise()?;
    let network = TransportModel::new(medium, bursts.as_ref().map(texts)).or_raise()?;
    let method = method(settings)?;
    let chosen = named_algorithms(&algorithms)?;
    let eager = match (rendezvous, eager_bytes) {
        (true, _) => Eager::Never,
        (false, Some(limit)) => Eager::UpTo(Bytes::new(limit)),
        (false, None) => Eager::All,
    };
    let request = ReplayRequest {
        network: &network,
        method: &method,
        algorithms: &chosen,
        settings: ReplaySettings {
            compute_factor,
            rank_factors,
            timeline,
            ends: EndCosts {
                overhead: Time::from_ps(overhead_ps),
                eager,
            },
        },
    };
    let Trace { source, exported } = trace.get();
    let fabric = request.network.to_string();
    let planned = exported
        .as_ref()
        .map(|plan| (plan.get().shared(), plan.get().rows().size))
        .filter(|(plan, _)| plan.fabric.to_string() == fabric);
    interrupt::run(py, || match planned {
        Some((plan, size)) => network::carry_out(&plan, size.unwrap_or_default(), &request),
        None => network::run(source, &request),
    })?
    .map(Outcome::from_core)
    .or_raise()
}

/// Returns the names of the kinds of calls; a timeline refers to them by index.
#[pyfunction]
pub(crate) fn call_names() -> Vec<&'static str> {
    Call::ALL.into_iter().map(Call::name).collect()
}

impl IntoPyErr for TraceProblem {
    fn into_py_err(self) -> PyErr {
        match self {
            TraceProblem::Network(problem) => problem.into_py_err(),
            TraceProblem::Units(problem) => problem.into_py_err(),
            _ => TraceError::new_err(self.to_string()),
        }
    }
}
