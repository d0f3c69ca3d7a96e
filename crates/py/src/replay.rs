//! `Trace` and `Replay`: traces of MPI programs, replayed over networks.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::str::FromStr;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use opticoll::collective::CollectiveKind;
use opticoll::fabric::Medium;
use opticoll::simulate::live::NetworkUse;
use opticoll::units::{Bytes, Time};
use opticoll::workload::carrier::{Eager, Ends};
use opticoll::workload::error::TraceError as TraceProblem;
use opticoll::workload::expand::Algorithms;
use opticoll::workload::network::{self, Done, Request, Source, Transport};
use opticoll::workload::program::Call;
use opticoll::workload::replay::{ReplaySettings, ReplayedRanks};
use opticoll::workload::{csv, event_table, goal_binary, goal_text, time_independent};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;

use crate::error::{IntoPyErr, TraceError};
use crate::interrupt;
use crate::method::{Settings, method};

/// What a trace was read as.
#[pyclass(frozen, module = "opticoll._core")]
pub(crate) struct Trace {
    source: Source,
}

#[pymethods]
impl Trace {
    #[getter]
    fn ranks(&self) -> u32 {
        self.source.ranks()
    }

    /// Calls; of GOAL, operations.
    #[getter]
    fn events(&self) -> usize {
        match &self.source {
            Source::Calls(trace) => trace.events(),
            Source::Messages(program) => program.len(),
        }
    }

    /// Messages between two ranks that the program itself sends, and their bytes: collectives aside.
    #[getter]
    fn messages(&self) -> (u64, u128) {
        match &self.source {
            Source::Calls(trace) => trace.messages(),
            Source::Messages(program) => program.messages(),
        }
    }

    /// Whether it holds calls, with collectives; otherwise only messages.
    #[getter]
    fn has_calls(&self) -> bool {
        matches!(self.source, Source::Calls(_))
    }

    fn __repr__(&self) -> String {
        format!("<Trace {} ranks, {} events>", self.ranks(), self.events())
    }
}

/// Calls of ranks that come as columns, a batch of rows at a time.
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

    /// Appends rows: names of calls, the index of each row's call among them, the columns of numbers,
    /// and rows of an Alltoallv with the bytes for each member.
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
        let columns = event_table::Columns {
            names: &names,
            call,
            numbers: columns,
            sizes,
        };
        interrupt::run(py, || self.table.extend(columns))?.map_err(IntoPyErr::into_py_err)
    }

    /// The trace of all rows; the table is empty afterwards.
    fn finish(&mut self) -> PyResult<Trace> {
        let read = std::mem::take(&mut self.table).finish();
        read.map(|trace| Trace {
            source: Source::Calls(trace),
        })
        .map_err(TraceError::new_err)
    }
}

/// Reads a trace: `table`, `time_independent`, `goal` or `goal_binary`.
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
    let read = interrupt::run(py, || {
        Ok(match form {
            "goal_binary" => Source::Messages(goal_binary::read(&content)?),
            "goal" => Source::Messages(goal_text::read(text()?)?),
            "time_independent" => {
                Source::Calls(time_independent::read(text()?, operations_per_second)?)
            }
            _ => Source::Calls(csv::read(text()?)?),
        })
    })?;
    read.map(|source| Trace { source })
        .map_err(|error: TraceProblem| error.into_py_err())
}

/// Reads a file in binary GOAL, rank by rank, without holding it.
#[pyfunction]
pub(crate) fn read_goal_file(py: Python<'_>, path: PathBuf) -> PyResult<Trace> {
    let read = interrupt::run(py, || {
        let file = File::open(path)?;
        Ok::<_, io::Error>(goal_binary::read_from(&mut BufReader::new(file)))
    })?;
    read?
        .map(|program| Trace {
            source: Source::Messages(program),
        })
        .map_err(|error: TraceProblem| error.into_py_err())
}

/// Replays a trace; with settings of bursts, over light paths on request in a network of bursts.
#[pyfunction]
#[pyo3(signature = (
    trace, network, algorithms, *, compute_factor = (1, 1), overhead_ps = 0, eager_bytes = None,
    rendezvous = false, timeline = false, bursts = None, **settings
))]
#[expect(clippy::too_many_arguments, reason = "they are keyword arguments")]
pub(crate) fn replay_trace(
    py: Python<'_>,
    trace: &Bound<'_, Trace>,
    network: &str,
    algorithms: BTreeMap<String, String>,
    compute_factor: (u32, u32),
    overhead_ps: u64,
    eager_bytes: Option<u64>,
    rendezvous: bool,
    timeline: bool,
    bursts: Option<BTreeMap<String, String>>,
    settings: Option<Settings>,
) -> PyResult<Replay> {
    let ranks = trace.get().source.ranks();
    let medium = Medium::parse_for(network, ranks).map_err(IntoPyErr::into_py_err)?;
    let texts = bursts.as_ref().map(|texts| {
        let texts = texts.iter();
        texts.map(|(name, text)| (name.as_str(), text.as_str()))
    });
    let network = Transport::new(medium, texts).map_err(IntoPyErr::into_py_err)?;
    let method = method(settings)?;
    let mut chosen = Algorithms::default();
    for (collective, algorithm) in &algorithms {
        let kind = CollectiveKind::from_str(collective).map_err(IntoPyErr::into_py_err)?;
        chosen = chosen.with(kind, algorithm.parse().map_err(spelling)?);
    }
    let eager = match (rendezvous, eager_bytes) {
        (true, _) => Eager::Never,
        (false, Some(limit)) => Eager::UpTo(Bytes::new(limit)),
        (false, None) => Eager::All,
    };
    let request = Request {
        network: &network,
        method: &method,
        algorithms: &chosen,
        ends: Ends {
            overhead: Time::from_ps(overhead_ps),
            eager,
        },
        settings: ReplaySettings {
            compute_factor,
            timeline,
        },
    };
    let source = &trace.get().source;
    interrupt::run(py, || network::run(source, &request))?
        .map(|done| Replay {
            done,
            network: network.to_string(),
        })
        .map_err(IntoPyErr::into_py_err)
}

fn spelling(error: opticoll::spec::SpecError) -> PyErr {
    error.into_py_err()
}

/// Collective, ranks, bytes planned for, what was asked for, the algorithm of the plan.
type Chosen<'a> = (&'static str, u32, Option<u64>, &'a str, &'a str);

/// What a replay found.
#[pyclass(frozen, module = "opticoll._core")]
pub(crate) struct Replay {
    done: Done,
    network: String,
}

impl Replay {
    fn ranks(&self) -> &ReplayedRanks {
        &self.done.replayed.ranks
    }
}

fn picoseconds<'py>(py: Python<'py>, times: &[Time]) -> Bound<'py, PyArray1<u64>> {
    let times: Vec<u64> = times.iter().map(|time| time.ps()).collect();
    times.into_pyarray(py)
}

#[pymethods]
impl Replay {
    #[getter]
    fn time_ps(&self) -> u64 {
        self.done.replayed.time.ps()
    }

    #[getter]
    fn messages(&self) -> u64 {
        self.done.replayed.messages
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.done.replayed.bytes
    }

    #[getter]
    fn events(&self) -> u64 {
        self.done.replayed.events
    }

    #[getter]
    fn nodes(&self) -> usize {
        self.done.nodes
    }

    #[getter]
    fn simulator(&self) -> &'static str {
        self.done.simulator
    }

    #[getter]
    fn network(&self) -> &str {
        &self.network
    }

    /// Set-ups, picoseconds of setting up, messages that waited, picoseconds of waiting, most at once;
    /// the last three only where waiting is simulated. In a network of bursts also requests that were refused,
    /// and bursts beside them, all and lost.
    #[getter]
    fn light_paths<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let ranks = self.ranks();
        let own: u64 = ranks.set_ups.iter().sum();
        let columns = PyDict::new(py);
        match &self.done.found {
            Some(NetworkUse::LightPaths(used)) => {
                columns.set_item("set_ups", used.set_ups)?;
                columns.set_item("setting_up_ps", used.setting_up.ps())?;
                columns.set_item("waited", used.waited)?;
                columns.set_item("waiting_ps", used.waiting.ps())?;
                columns.set_item("most_at_once", used.most)?;
            }
            Some(NetworkUse::Requests(used)) => {
                columns.set_item("set_ups", used.set_ups)?;
                columns.set_item("setting_up_ps", used.setting_up.ps())?;
                columns.set_item("waited", used.waited)?;
                columns.set_item("waiting_ps", used.waiting.ps())?;
                columns.set_item("most_at_once", used.most)?;
                columns.set_item("refusals", used.refusals)?;
                columns.set_item("bursts", used.bursts.offered)?;
                columns.set_item("bursts_lost", used.bursts.lost)?;
            }
            None if own > 0 => {
                let spent: u64 = ranks.setting_up.iter().map(|time| time.ps()).sum();
                columns.set_item("set_ups", own)?;
                columns.set_item("setting_up_ps", spent)?;
            }
            _ => return Ok(None),
        }
        Ok(Some(columns))
    }

    /// By which algorithms collectives ran: (collective, ranks, bytes planned for, asked for, algorithm).
    #[getter]
    fn chosen(&self) -> Vec<Chosen<'_>> {
        let chosen = self.done.chosen.iter();
        chosen
            .map(|one| {
                let size = one.size.map(Bytes::get);
                let names = (one.asked.as_str(), one.algorithm.as_str());
                (one.kind.name(), one.ranks, size, names.0, names.1)
            })
            .collect()
    }

    /// The link used most and the share of its rate that was used.
    #[getter]
    fn busiest_link(&self) -> Option<(&str, f64)> {
        match &self.done.found {
            Some(NetworkUse::Links { busiest }) => {
                let busiest = busiest.as_ref();
                busiest.map(|(name, share)| (name.as_str(), *share))
            }
            _ => None,
        }
    }

    /// Per rank: when it ended, its local work, its set-ups, its messages and bytes.
    #[getter]
    fn ranks_columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ranks = self.ranks();
        let columns = PyDict::new(py);
        columns.set_item("finish_ps", picoseconds(py, &ranks.finish))?;
        columns.set_item("compute_ps", picoseconds(py, &ranks.compute))?;
        columns.set_item("setting_up_ps", picoseconds(py, &ranks.setting_up))?;
        columns.set_item("messages", ranks.messages.clone().into_pyarray(py))?;
        columns.set_item("bytes", ranks.bytes.clone().into_pyarray(py))?;
        Ok(columns)
    }

    /// Per kind of call that was made: calls and picoseconds inside them by rank, messages and bytes.
    #[getter]
    fn calls<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ranks = self.ranks();
        let named = PyDict::new(py);
        for (index, call) in Call::ALL.into_iter().enumerate() {
            let counts: Vec<u64> = ranks.calls.iter().map(|calls| calls[index]).collect();
            if counts.iter().all(|&count| count == 0) {
                continue;
            }
            let inside: Vec<Time> = ranks.in_call.iter().map(|times| times[index]).collect();
            let sent = self.done.replayed.calls[index];
            let columns = PyDict::new(py);
            columns.set_item("calls", counts.into_pyarray(py))?;
            columns.set_item("time_ps", picoseconds(py, &inside))?;
            columns.set_item("messages", sent.messages)?;
            columns.set_item("bytes", sent.bytes)?;
            named.set_item(call.name(), columns)?;
        }
        Ok(named)
    }

    /// The calls in the order in which they ended, if a time-line was asked for.
    #[getter]
    fn timeline<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let timeline = &self.done.replayed.timeline;
        let calls: Vec<u8> = timeline.call.iter().map(|&call| call as u8).collect();
        let columns = PyDict::new(py);
        columns.set_item("rank", timeline.rank.clone().into_pyarray(py))?;
        columns.set_item("event", timeline.event.clone().into_pyarray(py))?;
        columns.set_item("call", calls.into_pyarray(py))?;
        columns.set_item("start_ps", picoseconds(py, &timeline.start))?;
        columns.set_item("end_ps", picoseconds(py, &timeline.end))?;
        Ok(columns)
    }

    fn __repr__(&self) -> String {
        let replayed = &self.done.replayed;
        format!("<Replay {}, {} messages>", replayed.time, replayed.messages)
    }
}

/// The kinds of calls, in the order of their numbers in a time-line.
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
