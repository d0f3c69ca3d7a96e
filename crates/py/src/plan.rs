//! `Plan`: what Python sees of a plan.

mod choice;
mod timing;

use std::sync::{Arc, OnceLock};

use opticoll::families;
use opticoll::plan::{self, AnyPlan, Lightpath, PlanRef, text};
use opticoll::planner;
use opticoll::simulate;
use opticoll::units::Bytes;
use opticoll::verify;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::collective::Collective;
use crate::columns;
use crate::error::IntoPyErr;
use crate::fabric::Fabric;
use crate::interrupt;
use crate::method::{Settings, Size};
use crate::table::{Outcome, notebook};
use crate::violation::Violation;
use choice::Choice;

/// A schedule with a route, a wavelength and a slot for every transfer.
///
/// `opticoll.plan` makes a plan and `opticoll.read_plan` reads one. `len(plan)` is the number of transfers. Plans are equal
/// if they have the same transfers with the same light and slots in each step, in any order, and the same fabric,
/// collective, algorithm and size.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "optree:radices=4x4")
/// >>> plan
/// <Plan of all_gather by optree:radices=4x4 on 16 ranks: 12 slots, 240 transfers>
/// >>> plan.collective.kind, plan.fabric.ranks, plan.algorithm, plan.asked, plan.size_bytes
/// ('all_gather', 16, 'optree:radices=4x4', 'optree:radices=4x4', None)
/// >>> len(plan), plan.slots, plan.step_slots, plan.claimed_steps, plan.folded
/// (240, 12, [4, 8], 12, False)
/// >>> plan.wavelengths_used, plan.configurations, plan.bound[:2]
/// (2, 8, (5, 'relay_tree'))
///
/// A plan by `auto` says what it was chosen from, and why:
///
/// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=5,wavelengths=1", size="4MiB")
/// >>> plan.candidates[:2]
/// [('ring_bidirectional', 2, 1727721600, ''), ('optree', 3, 2591582400, '')]
/// >>> plan.reasons[1]
/// 'next is optree with 3 slots and 2.5915824ms (simulated)'
#[pyclass(frozen, module = "opticoll._core")]
pub(crate) struct Plan {
    plan: Arc<AnyPlan>,
    choice: Arc<Choice>,
    counts: Arc<Counts>,
}

/// What is counted over all transfers of a plan, once: rows of every size and setting have it.
#[derive(Default)]
struct Counts {
    wavelengths: OnceLock<u32>,
    configurations: OnceLock<u64>,
    bound: OnceLock<Option<SlotsBound>>,
}

/// Number of slots, name of the bound, and its assumptions.
type SlotsBound = (u64, &'static str, &'static str);

fn counted<T: Copy + Send>(
    py: Python<'_>,
    known: &OnceLock<T>,
    count: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    if let Some(known) = known.get() {
        return Ok(*known);
    }
    let counted = interrupt::run(py, count)?;
    Ok(*known.get_or_init(|| counted))
}

impl Plan {
    pub(crate) fn from_core(plan: AnyPlan) -> Plan {
        Plan {
            plan: Arc::new(plan),
            choice: Arc::default(),
            counts: Arc::default(),
        }
    }

    /// A plan for which `asked` was asked, such as `auto`, if that is no more than its algorithm.
    pub(crate) fn from_planned(planned: planner::Planned, asked: Option<&str>) -> Plan {
        Plan {
            plan: Arc::new(planned.plan),
            choice: Arc::new(Choice {
                asked: asked.map(|asked| asked.trim().to_owned()),
                candidates: planned.candidates,
                reasons: planned.reasons,
            }),
            counts: Arc::default(),
        }
    }

    pub(crate) fn representative(&self) -> &plan::Plan {
        self.plan.representative()
    }

    pub(crate) fn whole(&self) -> PlanRef<'_> {
        PlanRef::from(&*self.plan)
    }
}

#[pymethods]
impl Plan {
    /// Read the text of a plan file.
    ///
    /// Parameters
    /// ----------
    /// text : str
    ///     The whole text, which begins with `opticoll plan 1`.
    ///
    /// Raises
    /// ------
    /// PlanFileError
    ///     The text is no plan; the message names line and column.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("broadcast", "wdm_ring:ranks=4,wavelengths=1", "binomial")
    /// >>> opticoll.Plan.from_text(plan.to_text()).slots == plan.slots
    /// True
    #[staticmethod]
    fn from_text(py: Python<'_>, text: &str) -> PyResult<Plan> {
        interrupt::run(py, || text::read_any(text))?
            .map(Plan::from_core)
            .map_err(IntoPyErr::into_py_err)
    }

    /// The plan as the text of a plan file, which `from_text` and `opticoll.read_plan` read.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("broadcast", "wdm_ring:ranks=4,wavelengths=1", "binomial")
    /// >>> plan.to_text().splitlines()[1]
    /// 'collective broadcast ranks=4 root=0 pieces=1'
    fn to_text(&self, py: Python<'_>) -> PyResult<String> {
        interrupt::run(py, || text::write(self.whole()))
    }

    /// The fabric, with all its options.
    #[getter]
    fn fabric(&self) -> Fabric {
        Fabric {
            fabric: self.representative().fabric.clone(),
        }
    }

    /// The collective, with its root and its number of pieces.
    #[getter]
    fn collective(&self) -> Collective {
        Collective {
            collective: self.representative().schedule.collective,
        }
    }

    /// The specification of the algorithm, with its options.
    #[getter]
    fn algorithm(&self) -> &str {
        &self.representative().algorithm
    }

    /// The specification of the algorithm as it was asked for, such as `auto`.
    #[getter]
    pub(crate) fn asked(&self) -> &str {
        let asked = self.choice.asked.as_deref();
        asked.unwrap_or(&self.representative().algorithm)
    }

    /// The size of the collective in bytes, or None; `Collective.size_convention` says what it counts.
    #[getter]
    fn size_bytes(&self) -> Option<u64> {
        self.representative().size.map(Bytes::get)
    }

    /// The same plan with another size for later simulations.
    ///
    /// Parameters
    /// ----------
    /// size_bytes : int
    ///     The size in bytes.
    ///
    /// Raises
    /// ------
    /// OverflowError
    ///     The size is negative or not below 2^64.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
    /// >>> plan.with_size(1024).size_bytes
    /// 1024
    fn with_size(&self, py: Python<'_>, size_bytes: u64) -> PyResult<Plan> {
        let size = Some(Bytes::new(size_bytes));
        if self.representative().size == size {
            return Ok(Plan {
                plan: Arc::clone(&self.plan),
                choice: Arc::clone(&self.choice),
                counts: Arc::clone(&self.counts),
            });
        }
        interrupt::run(py, || {
            let mut plan = AnyPlan::clone(&self.plan);
            plan.kept_mut().size = size;
            Plan::from_core(plan)
        })
    }

    /// The number of time slots.
    #[getter]
    fn slots(&self) -> u32 {
        self.plan.slots()
    }

    /// The number of slots of each step of the schedule, as a list.
    #[getter]
    fn step_slots(&self) -> Vec<u32> {
        self.representative()
            .step_slots
            .iter()
            .map(|slots| slots.end - slots.start)
            .collect()
    }

    fn __len__(&self) -> usize {
        self.plan.transfers() as usize
    }

    fn __eq__(&self, py: Python<'_>, other: &Plan) -> PyResult<bool> {
        interrupt::run(py, || self.plan.is_same(&other.plan))
    }

    /// Whether the plan is rotation-symmetric and kept as the transfers of rank 0.
    #[getter]
    fn folded(&self) -> bool {
        matches!(*self.plan, AnyPlan::Folded(_))
    }

    /// The number of different wavelengths in use; 0 on fabrics without wavelengths.
    #[getter]
    fn wavelengths_used(&self, py: Python<'_>) -> PyResult<u32> {
        counted(py, &self.counts.wavelengths, || {
            families::wavelengths_used(self.whole())
        })
    }

    /// The number of different circuit settings among the slots.
    #[getter]
    fn configurations(&self, py: Python<'_>) -> PyResult<u64> {
        counted(py, &self.counts.configurations, || {
            simulate::circuit::configurations(self.whole())
        })
    }

    /// The number of steps that the paper of the algorithm gives, or None.
    #[getter]
    fn claimed_steps(&self) -> Option<u64> {
        self.representative().schedule.claims.paper_steps
    }

    /// The lower bound on the slots of any plan, as (number of slots, name of the bound, its assumptions), or None.
    ///
    /// If a lightpath of the plan carries several chunks, the bound is the one that holds for any number of chunks.
    #[getter]
    fn bound(&self, py: Python<'_>) -> PyResult<Option<SlotsBound>> {
        let schedule = &self.representative().schedule;
        let fabric = &self.representative().fabric;
        counted(py, &self.counts.bound, || {
            let single = self.representative().has_one_chunk_per_lightpath();
            let bound = families::slots_bound(fabric, &schedule.collective, single)?;
            Some((bound.steps, bound.name, bound.assumption))
        })
    }

    /// The plans that `auto` compared, as a list of (name, slots, time in picoseconds, reason).
    ///
    /// The chosen plan is first. The reason is empty if the plan was simulated, and otherwise says why it was left out; slots
    /// and time are then lower bounds. The list is empty for other algorithms.
    #[getter]
    fn candidates(&self) -> Vec<(&str, u64, u64, String)> {
        self.choice.rows()
    }

    /// The reasons for which `auto` chose this plan, as a list of sentences; empty for other algorithms.
    #[getter]
    fn reasons(&self) -> Vec<&str> {
        self.choice.reasons.iter().map(String::as_str).collect()
    }

    /// The transfers as NumPy arrays: a dictionary of columns, each of shape `(len(plan),)`, in the order of the schedule.
    ///
    /// Other optical fabrics have other columns in place of direction, fibre and wavelength: `Fabric.light_fields` names them.
    /// Electrical fabrics have none.
    ///
    /// Columns
    /// -------
    /// chunk : uint32
    ///     First chunk that the transfer moves, from 0 to `plan.collective.chunks` - 1.
    /// count : uint32
    ///     Number of consecutive chunks.
    /// source, destination : uint32
    ///     Ranks, from 0 to `plan.fabric.ranks` - 1.
    /// action : uint8
    ///     0: the destination stores a copy. 1: the destination reduces the chunks into its own.
    /// direction, fibre : uint8
    ///     On a `wdm_ring` only: the direction of the lightpath (0 clockwise, 1 counter-clockwise) and its fibre.
    /// wavelength : uint16
    ///     On a `wdm_ring` only: the wavelength, from 0; 65535 where converters choose a wavelength for each link.
    /// slot : uint32
    ///     Slot of the transfer, from 0 to `plan.slots` - 1; on electrical fabrics its step.
    ///
    /// Raises
    /// ------
    /// ScheduleError
    ///     The plan has more than 2^26 transfers; `slot_columns` gives those of one slot.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "optree:radices=4x4")
    /// >>> columns = plan.columns()
    /// >>> for name, column in columns.items():
    /// ...     print(name, column.dtype, column.shape, column[-1])
    /// chunk uint32 (240,) 15
    /// count uint32 (240,) 1
    /// source uint32 (240,) 15
    /// destination uint32 (240,) 14
    /// action uint8 (240,) 0
    /// direction uint8 (240,) 1
    /// fibre uint8 (240,) 0
    /// wavelength uint16 (240,) 1
    /// slot uint32 (240,) 7
    #[pyo3(signature = () -> "dict[str, NDArray[Any]]")]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        columns::of_plan(py, &self.plan)
    }

    /// The transfers of one slot as NumPy arrays: the columns of `columns`, and their indices in the plan.
    ///
    /// Parameters
    /// ----------
    /// slot : int
    ///     The slot, from 0.
    ///
    /// Columns
    /// -------
    /// transfer : uint64
    ///     Index of the transfer in the plan, as in the arrays of `columns`.
    ///
    /// Raises
    /// ------
    /// OverflowError
    ///     The slot is negative or not below 2^32.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "optree:radices=4x4")
    /// >>> slot = plan.slot_columns(0)
    /// >>> len(slot["transfer"]), slot["source"][:3], slot["destination"][:3]
    /// (12, array([0, 1, 1], dtype=uint32), array([4, 5, 9], dtype=uint32))
    #[pyo3(signature = (slot) -> "dict[str, NDArray[Any]]")]
    fn slot_columns<'py>(&self, py: Python<'py>, slot: u32) -> PyResult<Bound<'py, PyDict>> {
        columns::of_slot(py, self.whole(), slot)
    }

    /// The hops of transfers on a grid of tunable circuits (`wss_grid`) as NumPy arrays of equal length.
    ///
    /// A transfer between nodes that share neither row nor column has two hops, by way of a relay. Other fabrics have no hops:
    /// the arrays are empty.
    ///
    /// The fields of the fabric's light (`Fabric.light_fields`) are further columns.
    ///
    /// Parameters
    /// ----------
    /// slot : int, optional
    ///     Only the hops of this slot (default: all slots).
    ///
    /// Columns
    /// -------
    /// transfer : uint64
    ///     Index of the transfer in the plan.
    /// source, destination : uint32
    ///     Ranks at the ends of the hop.
    /// slot : uint32
    ///     Slot of the hop.
    ///
    /// Raises
    /// ------
    /// OverflowError
    ///     The slot is negative or not below 2^32.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_to_all", "wss_grid:rows=2,columns=2", "direct")
    /// >>> hops = plan.hop_columns(slot=0)
    /// >>> list(hops)
    /// ['transfer', 'source', 'destination', 'slot', 'plane', 'wavelength']
    #[pyo3(signature = (slot = None) -> "dict[str, NDArray[Any]]")]
    fn hop_columns<'py>(&self, py: Python<'py>, slot: Option<u32>) -> PyResult<Bound<'py, PyDict>> {
        columns::of_hops(py, self.representative(), slot)
    }

    /// The source and the destination of a transfer: two ranks.
    ///
    /// Parameters
    /// ----------
    /// transfer : int
    ///     Index of the transfer, from 0 to `len(plan)` - 1.
    ///
    /// Raises
    /// ------
    /// IndexError
    ///     There is no such transfer.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring").ends(3)
    /// (3, 4)
    fn ends(&self, transfer: u64) -> PyResult<(u32, u32)> {
        let Lightpath {
            transfer: moved, ..
        } = self.whole().lightpath(transfer).ok_or_else(|| {
            let transfers = self.plan.transfers();
            PyIndexError::new_err(format!("there is no transfer {transfer}, of {transfers}"))
        })?;
        Ok((moved.source, moved.destination))
    }

    /// The links that a transfer takes on an electrical fabric, in order; empty on other fabrics.
    ///
    /// They are those that the plan names, or else the fabric's route (`Fabric.route`).
    ///
    /// Parameters
    /// ----------
    /// transfer : int
    ///     Index of the transfer, from 0 to `len(plan)` - 1.
    ///
    /// Raises
    /// ------
    /// IndexError
    ///     There is no such transfer.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> text = opticoll.plan("broadcast", "electrical_ring:ranks=3", "linear").to_text()
    /// >>> plan = opticoll.Plan.from_text(text.replace("copy 0 0>2", "copy 0 0>2 via 0.2"))
    /// >>> plan.route(0), plan.route(1)
    /// ([0], [0, 2])
    fn route(&self, transfer: usize) -> PyResult<Vec<u32>> {
        let (source, destination) = self.ends(transfer as u64)?;
        let plan = self.representative();
        let mut links = plan.routes.of(transfer).map_or(Vec::new(), <[u32]>::to_vec);
        if let Some(network) = plan.fabric.network().filter(|_| links.is_empty()) {
            network.route(source, destination, &mut links);
        }
        Ok(links)
    }

    /// Whether the plan names the route of some transfer on an electrical fabric.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> opticoll.plan("broadcast", "electrical_ring:ranks=3", "linear").names_routes
    /// False
    #[getter]
    fn names_routes(&self) -> bool {
        !self.representative().routes.is_empty()
    }

    /// Check the plan from its text alone: a list of everything that is wrong, empty if the plan is right.
    ///
    /// The verifier shares no code with the planners. It checks that every transfer fits the fabric in its slot, that every
    /// rank has a chunk before it sends the chunk, and that every rank ends with what the collective says. A violation of a
    /// rotation-symmetric plan stands for all rotations of its transfers.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring").verify()
    /// []
    fn verify(&self, py: Python<'_>) -> PyResult<Vec<Violation>> {
        let violations = interrupt::run(py, || verify::verify(self.whole()))?;
        Ok(violations.into_iter().map(Violation::from_core).collect())
    }

    /// Time the plan by a simulator.
    ///
    /// Parameters
    /// ----------
    /// size : int or str, optional
    ///     Size of the collective, in bytes or as text with a unit such as `"4MiB"` (default: the size of the plan).
    /// watch : callable, optional
    ///     The packet simulator calls it now and then as `watch(events, messages_delivered, time_ps)`.
    /// timeline : bool
    ///     Whether the packet simulator measures the table `timeline`.
    /// settings
    ///     The simulator and its settings, as text: `simulator="packet"`, `policy="free"`, `start="step"`. `opticoll list
    ///     settings` has them all. By default the simulator is `circuit` under the policy `every_step` on a `wdm_ring`, and
    ///     `fluid` on electrical fabrics.
    ///
    /// Returns
    /// -------
    /// Outcome
    ///     Its total `time_ps` is the time in picoseconds.
    ///
    /// Raises
    /// ------
    /// UnitError
    ///     No size is given and the plan has none, or the size is no size.
    /// SimulationError
    ///     A setting is unknown or does not apply; the attribute `setting` names the setting.
    /// MemoryLimitError
    ///     The simulation would need more memory than the limit.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
    /// >>> plan.simulate("4MiB").time_ps
    /// 12957912000
    /// >>> plan.simulate("4MiB", policy="free").time_ps
    /// 12582912000
    #[pyo3(signature = (size: "int | str | None" = None, *, watch: "Callable[[int, int, int], None] | None" = None, timeline = false, **settings: "Unpack[Settings]"))]
    fn simulate(
        &self,
        py: Python<'_>,
        size: Option<Size>,
        watch: Option<Py<PyAny>>,
        timeline: bool,
        settings: Option<Settings>,
    ) -> PyResult<Outcome> {
        timing::simulate(py, self, size, watch.as_ref(), timeline, settings)
    }

    /// The work of the packet simulator before it starts: messages, chunks and an estimate of the forwards by routers.
    ///
    /// Parameters
    /// ----------
    /// size : int or str, optional
    ///     Size of the collective, in bytes or as text with a unit (default: the size of the plan).
    /// settings
    ///     Settings of the packet simulator, as for `simulate`.
    ///
    /// Raises
    /// ------
    /// SimulationError
    ///     The fabric has no routers, or a setting is unknown or does not apply.
    /// UnitError
    ///     No size is given and the plan has none, or the size is no size.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "torus:dims=4x4", "ring")
    /// >>> plan.expected_packets("1MiB")
    /// (240, 491520, 1105920)
    #[pyo3(signature = (size: "int | str | None" = None, **settings: "Unpack[Settings]"))]
    fn expected_packets(
        &self,
        py: Python<'_>,
        size: Option<Size>,
        settings: Option<Settings>,
    ) -> PyResult<(u64, u64, u64)> {
        timing::expected_packets(py, self, size, settings)
    }

    /// The messages of a plan on an electrical fabric: a list of (transfer, start, end), times in picoseconds.
    ///
    /// Parameters
    /// ----------
    /// size : int or str, optional
    ///     Size of the collective, in bytes or as text with a unit (default: the size of the plan).
    /// start : str
    ///     The start rule: `rendezvous`, `step` or another of `opticoll list start_rules`.
    ///
    /// Raises
    /// ------
    /// SimulationError
    ///     The fabric is not electrical, or the start rule is unknown.
    /// UnitError
    ///     No size is given and the plan has none, or the size is no size.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "crossbar:ranks=4", "ring")
    /// >>> plan.message_times("1MiB")[:2]
    /// [(0, 0, 83886080), (1, 0, 83886080)]
    #[pyo3(signature = (size: "int | str | None" = None, start = "rendezvous"))]
    fn message_times(
        &self,
        py: Python<'_>,
        size: Option<Size>,
        start: &str,
    ) -> PyResult<Vec<(usize, u64, u64)>> {
        timing::message_times(py, self, size, start)
    }

    /// The transfers as a DataFrame of pandas, with the columns of `columns`.
    ///
    /// Raises
    /// ------
    /// UsageError
    ///     The package `pandas` is not installed.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
    /// >>> len(plan.to_pandas())
    /// 240
    #[pyo3(signature = () -> "pandas.DataFrame")]
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        notebook(slf, "frame")
    }

    #[pyo3(signature = () -> "str")]
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        notebook(slf, "html")
    }

    /// Draw the plan to a file, by `opticoll.plot.plan`.
    ///
    /// Parameters
    /// ----------
    /// path : str or PathLike
    ///     The file; its suffix (svg, png or pdf) chooses the format.
    /// view : str, optional
    ///     The view, such as `space_time` (default: the usual view of the fabric).
    /// slot : int, optional
    ///     The slot, for views of one slot.
    /// size : int, optional
    ///     Size of the collective in bytes, for views of time.
    /// rank, chunk : int, optional
    ///     The rank or the chunk whose trees the view `trees` draws.
    ///
    /// Raises
    /// ------
    /// PlotError
    ///     The suffix or the view is unknown, or the plan does not fit the view.
    /// FileError
    ///     The file cannot be written.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "optree:radices=4x4")
    /// >>> plan.plot("slot0.svg", slot=0)
    #[pyo3(signature = (path: "str | PathLike[str]", view: "str | None" = None, *, slot: "int | None" = None, size: "int | None" = None, rank: "int | None" = None, chunk: "int | None" = None))]
    fn plot(
        slf: &Bound<'_, Plan>,
        path: &Bound<'_, PyAny>,
        view: Option<&str>,
        slot: Option<u32>,
        size: Option<u64>,
        rank: Option<u32>,
        chunk: Option<u32>,
    ) -> PyResult<()> {
        let options = PyDict::new(slf.py());
        options.set_item("slot", slot)?;
        options.set_item("rank", rank)?;
        options.set_item("chunk", chunk)?;
        options.set_item("size", size)?;
        let plots = slf.py().import("opticoll.plot")?;
        plots
            .call_method("plan", (slf, path, view), Some(&options))
            .map(drop)
    }

    /// Write the plan in a format of others, such as MSCCL XML; `opticoll.write_plan` writes plan files.
    ///
    /// What has no words for light and slots has the plan file beside it, as `ours.xml.plan`.
    ///
    /// Parameters
    /// ----------
    /// path : str or PathLike
    ///     The file.
    /// format : str, optional
    ///     The format, such as `msccl`; see `opticoll list formats` (default: by the ending of the file).
    /// size : str or int, optional
    ///     Size of the collective in bytes or with its unit, for formats that state bytes (default: the size that the plan
    ///     was made for, or 4MiB).
    ///
    /// Returns
    /// -------
    /// list of Path
    ///     The files that are written.
    ///
    /// Raises
    /// ------
    /// FileError
    ///     The file cannot be written.
    /// UsageError
    ///     There is no such format.
    /// ProgramError
    ///     The plan exceeds a limit of the format.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=4,wavelengths=1", "ring")
    /// >>> [path.name for path in plan.export("ours.xml")]
    /// ['ours.xml', 'ours.xml.plan']
    #[pyo3(signature = (path: "str | PathLike[str]", format: "str | None" = None, *, size: "str | int | None" = None) -> "list[Path]")]
    fn export<'py>(
        slf: &Bound<'py, Plan>,
        path: &Bound<'py, PyAny>,
        format: Option<&str>,
        size: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let exports = slf.py().import("opticoll.exports")?;
        exports.call_method1("export", (slf, path, format, size))
    }

    /// Carry the plan out with real bytes, and compare every byte with the definition of the collective.
    ///
    /// Times are of this machine; they say nothing of a fabric.
    ///
    /// Parameters
    /// ----------
    /// size : str or int, optional
    ///     Size of the collective in bytes or with its unit; several, separated by commas (default: 4MiB).
    /// on : str
    ///     Who carries it out: `threads` of this process, or a process for each rank by `mpi`.
    /// type : str
    ///     Type of the elements, such as `float32`.
    /// operator : str
    ///     How reductions combine elements: `sum`, `prod`, `min` or `max`.
    /// repetitions : int
    ///     Number of repetitions, whose mean time is given.
    /// time_limit : str
    ///     Time without any progress after which MPI processes are ended.
    ///
    /// Returns
    /// -------
    /// list of RunRow
    ///     A row for each size and mode (in place, out of place).
    ///
    /// Raises
    /// ------
    /// UsageError
    ///     The plan is violated; MPI is missing.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_reduce", "wdm_ring:ranks=4,wavelengths=1", "ring")
    /// >>> [(row.mode, row.wrong) for row in plan.run("1KiB", operator="max")]
    /// [('out of place', 0), ('in place', 0)]
    #[pyo3(signature = (size: "str | int | None" = None, *, on = "threads", r#type = "int32", operator = "sum", repetitions = 1, time_limit = "30s") -> "list[RunRow]")]
    fn run<'py>(
        slf: &Bound<'py, Plan>,
        size: Option<&Bound<'py, PyAny>>,
        on: &str,
        r#type: &str,
        operator: &str,
        repetitions: u32,
        time_limit: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let asked = PyDict::new(slf.py());
        asked.set_item("source", slf)?;
        asked.set_item("size", size.map(|size| size.str()).transpose()?)?;
        asked.set_item("on", on)?;
        asked.set_item("type", r#type)?;
        asked.set_item("operator", operator)?;
        asked.set_item("repetitions", repetitions)?;
        asked.set_item("time_limit", time_limit)?;
        let commands = slf.py().import("opticoll.interface.command")?;
        commands.call_method("rows", ("run",), Some(&asked))
    }

    fn __repr__(&self) -> String {
        let plan = self.representative();
        let kind = plan.schedule.collective.kind();
        format!(
            "<Plan of {kind} by {} on {} ranks: {} slots, {} transfers>",
            plan.algorithm,
            plan.fabric.ranks(),
            plan.slots(),
            self.plan.transfers()
        )
    }
}
