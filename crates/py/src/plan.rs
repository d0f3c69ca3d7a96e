//! `Plan`: what Python sees of a plan.

use opticoll::families;
use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1};
use opticoll::fabric::{Hop, Light, LightKind};
use opticoll::plan::{self, AnyPlan, Lightpath, PlanRef, text};
use opticoll::planner::{self, LeftOut};
use opticoll::schedule::Transfer;
use opticoll::simulate::{self, fluid, packet};
use opticoll::units::Bytes;
use opticoll::verify;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::collective::Collective;
use crate::error::{IntoPyErr, ScheduleError, UnitError};
use crate::fabric::Fabric;
use crate::interrupt;
use crate::method::{Settings, Size, method};
use crate::packets::{expected_tuple, watching};
use crate::table::Outcome;
use crate::violation::Violation;

/// A schedule with a route, a wavelength and a slot for every transfer.
#[pyclass(frozen, eq, module = "opticoll._core")]
pub(crate) struct Plan {
    plan: Arc<AnyPlan>,
    choice: Arc<Choice>,
}

/// What was asked for, and what the plan was chosen from and why; no part of the plan itself.
#[derive(Default)]
struct Choice {
    asked: Option<String>,
    candidates: Vec<planner::Candidate>,
    reasons: Vec<String>,
}

impl PartialEq for Plan {
    fn eq(&self, other: &Plan) -> bool {
        self.plan == other.plan
    }
}

impl Plan {
    pub(crate) fn from_core(plan: AnyPlan) -> Plan {
        Plan {
            plan: Arc::new(plan),
            choice: Arc::default(),
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
        }
    }

    pub(crate) fn representative(&self) -> &plan::Plan {
        self.plan.representative()
    }

    pub(crate) fn whole(&self) -> PlanRef<'_> {
        PlanRef::from(&*self.plan)
    }

    /// The size given, else the plan's own.
    pub(crate) fn size_or(&self, size: Option<Size>) -> PyResult<Bytes> {
        match (size, self.representative().size) {
            (Some(size), _) => size.bytes(),
            (None, Some(size)) => Ok(size),
            (None, None) => Err(UnitError::new_err(
                "the plan has no size of its own; give one, such as `4MiB`",
            )),
        }
    }
}

#[pymethods]
impl Plan {
    #[staticmethod]
    fn from_text(py: Python<'_>, text: &str) -> PyResult<Plan> {
        interrupt::run(py, || text::read_any(text))?
            .map(Plan::from_core)
            .map_err(IntoPyErr::into_py_err)
    }

    fn to_text(&self, py: Python<'_>) -> PyResult<String> {
        interrupt::run(py, || text::write(self.whole()))
    }

    #[getter]
    fn fabric(&self) -> Fabric {
        Fabric {
            fabric: self.representative().fabric.clone(),
        }
    }

    #[getter]
    fn collective(&self) -> Collective {
        Collective {
            collective: self.representative().schedule.collective,
        }
    }

    #[getter]
    fn algorithm(&self) -> &str {
        &self.representative().algorithm
    }

    /// What was asked for, such as `auto`, where the algorithm was chosen by it.
    #[getter]
    pub(crate) fn asked(&self) -> &str {
        let asked = self.choice.asked.as_deref();
        asked.unwrap_or(&self.representative().algorithm)
    }

    #[getter]
    fn size_bytes(&self) -> Option<u64> {
        self.representative().size.map(Bytes::get)
    }

    fn with_size(&self, py: Python<'_>, size_bytes: u64) -> PyResult<Plan> {
        let size = Some(Bytes::new(size_bytes));
        if self.representative().size == size {
            return Ok(Plan {
                plan: Arc::clone(&self.plan),
                choice: Arc::clone(&self.choice),
            });
        }
        interrupt::run(py, || {
            let mut plan = AnyPlan::clone(&self.plan);
            plan.kept_mut().size = size;
            Plan::from_core(plan)
        })
    }

    #[getter]
    fn slots(&self) -> u32 {
        self.plan.slots()
    }

    /// Slots of each step of the schedule.
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

    /// Whether the plan is kept as what rank 0 sends, for all ranks.
    #[getter]
    fn folded(&self) -> bool {
        matches!(*self.plan, AnyPlan::Folded(_))
    }

    #[getter]
    fn wavelengths_used(&self, py: Python<'_>) -> PyResult<u32> {
        interrupt::run(py, || families::wavelengths_used(self.whole()))
    }

    #[getter]
    fn configurations(&self, py: Python<'_>) -> PyResult<u64> {
        interrupt::run(py, || simulate::circuit::configurations(self.whole()))
    }

    #[getter]
    fn claimed_steps(&self) -> Option<u64> {
        self.representative().schedule.claims.paper_steps
    }

    /// The lower bound on slots, its name and its assumption. Where lightpaths carry several chunks, the
    /// one that holds for any number of them.
    #[getter]
    fn bound(&self, py: Python<'_>) -> PyResult<Option<(u64, &'static str, &'static str)>> {
        let schedule = &self.representative().schedule;
        let fabric = &self.representative().fabric;
        interrupt::run(py, || {
            let single = schedule.is_in_single_chunks();
            let bound = families::slots_bound(fabric, &schedule.collective, single)?;
            Some((bound.steps, bound.name, bound.assumption))
        })
    }

    /// What `auto` compared, the chosen one first, then by time: name, slots, picoseconds, why it was left out.
    ///
    /// The reason is empty where the plan was made and simulated. Where it was not, slots and time are the least that
    /// they may be.
    #[getter]
    fn candidates(&self) -> Vec<(&str, u64, u64, String)> {
        let candidates = self.choice.candidates.iter();
        candidates
            .map(|one| {
                (
                    one.name.as_str(),
                    one.slots,
                    one.time.ps(),
                    one.left_out
                        .as_ref()
                        .map_or(String::new(), LeftOut::to_string),
                )
            })
            .collect()
    }

    /// Why `auto` chose this plan, in sentences.
    #[getter]
    fn reasons(&self) -> Vec<&str> {
        self.choice.reasons.iter().map(String::as_str).collect()
    }

    /// One entry a transfer, in the order of the schedule.
    ///
    /// chunk, count, source, destination, action (0 copy, 1 reduce), the fields of the fabric's light (`light_fields`) and
    /// slot. Raises ScheduleError for a folded plan of more than 2^26 transfers.
    #[pyo3(signature = () -> "dict[str, NDArray[Any]]")]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let transfers = self.plan.transfers();
        if transfers > MOST_COLUMNS {
            return Err(ScheduleError::new_err(format!(
                "columns of {transfers} transfers are too large: {MOST_COLUMNS} at most; \
                 `slot_columns` gives those of a slot"
            )));
        }
        match &*self.plan {
            AnyPlan::Full(plan) => to_columns(py, plan),
            AnyPlan::Folded(plan) => to_columns(py, &interrupt::run(py, || plan.unfold())?),
        }
    }

    /// The columns of one slot, and `transfer`: the indices in the whole plan.
    #[pyo3(signature = (slot) -> "dict[str, NDArray[Any]]")]
    fn slot_columns<'py>(&self, py: Python<'py>, slot: u32) -> PyResult<Bound<'py, PyDict>> {
        let (indices, plan) = interrupt::run(py, || {
            let mut here = self.representative().without_lightpaths();
            let of_slot = self.whole().of_slot(slot);
            let indices: Vec<u64> = of_slot
                .map(|(index, lightpath)| {
                    here.push(lightpath);
                    index
                })
                .collect();
            (indices, here)
        })?;
        let columns = to_columns(py, &plan)?;
        columns.set_item("transfer", indices.into_pyarray(py))?;
        Ok(columns)
    }

    /// The hops of a slot, or of all, on a grid of tunable circuits.
    #[pyo3(signature = (slot = None) -> "dict[str, NDArray[Any]]")]
    fn hop_columns<'py>(&self, py: Python<'py>, slot: Option<u32>) -> PyResult<Bound<'py, PyDict>> {
        let hops: Vec<(u64, Hop)> = interrupt::run(py, || {
            let representative = self.representative();
            let relays = representative
                .fabric
                .light()
                .is_some_and(|kind| kind.relays);
            let transfers = (0..representative.len()).filter(|_| relays);
            let hops = transfers.flat_map(|transfer| {
                representative
                    .hops_of(transfer)
                    .map(move |hop| (transfer as u64, hop))
            });
            hops.filter(|(_, hop)| slot.is_none_or(|slot| hop.slot == slot))
                .collect()
        })?;
        let of =
            |part: fn(&Hop) -> u32| -> Vec<u32> { hops.iter().map(|(_, hop)| part(hop)).collect() };
        let transfers: Vec<u64> = hops.iter().map(|(transfer, _)| *transfer).collect();
        let columns = PyDict::new(py);
        columns.set_item("transfer", transfers.into_pyarray(py))?;
        columns.set_item("source", of(|hop| hop.from).into_pyarray(py))?;
        columns.set_item("destination", of(|hop| hop.to).into_pyarray(py))?;
        columns.set_item("slot", of(|hop| hop.slot).into_pyarray(py))?;
        let light = hops.iter().map(|(_, hop)| hop.light);
        set_light(py, self.representative().fabric.light(), light, &columns)?;
        Ok(columns)
    }

    /// Source and destination of a transfer.
    fn ends(&self, transfer: u64) -> PyResult<(u32, u32)> {
        let Lightpath {
            transfer: moved, ..
        } = self.whole().lightpath(transfer).ok_or_else(|| {
            let transfers = self.plan.transfers();
            PyIndexError::new_err(format!("there is no transfer {transfer}, of {transfers}"))
        })?;
        Ok((moved.source, moved.destination))
    }

    /// Everything wrong; transfers of a folded plan are orbits, for all their rotations.
    fn verify(&self, py: Python<'_>) -> PyResult<Vec<Violation>> {
        let violations = interrupt::run(py, || verify::verify(self.whole()))?;
        Ok(violations.into_iter().map(Violation::from_core).collect())
    }

    /// Run a simulator; the size in bytes or as text with a unit, else the plan's own.
    ///
    /// On rings: circuit under the policy every_step, if nothing else is said. On electrical fabrics: fluid. The packet
    /// simulator calls `watch(events, messages_delivered, time_ps)` now and then, and measures the table `timeline` if
    /// asked. Raises SimulationError, with the attribute `setting` where one is at fault.
    #[pyo3(signature = (size: "int | str | None" = None, *, watch: "Callable[[int, int, int], None] | None" = None, timeline = false, **settings: "Unpack[Settings]"))]
    fn simulate(
        &self,
        py: Python<'_>,
        size: Option<Size>,
        watch: Option<Py<PyAny>>,
        timeline: bool,
        settings: Option<Settings>,
    ) -> PyResult<Outcome> {
        let mut method = method(settings)?;
        if timeline {
            method.packet.options.timeline_bin = Some(simulate::TIMELINE_BIN);
        }
        let size = self.size_or(size)?;
        let mut problem = None;
        let found = interrupt::run(py, || {
            let mut watch = watching(watch.as_ref(), &mut problem);
            simulate::run_watched(self.whole(), size, &method, &mut watch)
        })?;
        match problem {
            Some(problem) => Err(problem),
            None => found
                .map(Outcome::from_core)
                .map_err(IntoPyErr::into_py_err),
        }
    }

    /// The work of the packet simulator: messages, chunks, about how many forwards by routers.
    #[pyo3(signature = (size: "int | str | None" = None, **settings: "Unpack[Settings]"))]
    fn expected_packets(
        &self,
        py: Python<'_>,
        size: Option<Size>,
        settings: Option<Settings>,
    ) -> PyResult<(u64, u64, u64)> {
        let method = method(settings)?;
        let size = self.size_or(size)?;
        let plan = self.representative();
        interrupt::run(py, || {
            let settings = simulate::packet_settings(&plan.fabric, &method)?;
            let work = packet::work_of(&plan.schedule, &plan.fabric, size, &settings);
            Ok(packet::expected(&plan.fabric, &work, &settings.options)?)
        })?
        .map(expected_tuple)
        .map_err(simulate::SimulationError::into_py_err)
    }

    /// (transfer, start, end) of each message on an electrical fabric, in picoseconds.
    #[pyo3(signature = (size: "int | str | None" = None, start = "rendezvous"))]
    fn message_times(
        &self,
        py: Python<'_>,
        size: Option<Size>,
        start: &str,
    ) -> PyResult<Vec<(usize, u64, u64)>> {
        let rule = start.parse().map_err(IntoPyErr::into_py_err)?;
        let size = self.size_or(size)?;
        let plain = fluid::FlowOptions::default();
        let times = interrupt::run(py, || {
            fluid::message_times(self.representative(), size, rule, &plain)
        })?;
        let times = times.map_err(IntoPyErr::into_py_err)?;
        let told = |one: fluid::MessageTime| (one.transfer, one.start.ps(), one.end.ps());
        Ok(times.into_iter().map(told).collect())
    }

    /// Draws the plan by `opticoll.plot.plan`, in a view or the usual one of its fabric; a size in bytes.
    #[pyo3(signature = (path: "str | PathLike[str]", view: "str | None" = None, *, slot: "int | None" = None, size: "int | None" = None))]
    fn plot(
        slf: &Bound<'_, Plan>,
        path: &Bound<'_, PyAny>,
        view: Option<&str>,
        slot: Option<u32>,
        size: Option<u64>,
    ) -> PyResult<()> {
        let options = PyDict::new(slf.py());
        options.set_item("slot", slot)?;
        options.set_item("size", size)?;
        let plots = slf.py().import("opticoll.plot")?;
        plots
            .call_method("plan", (slf, path, view), Some(&options))
            .map(drop)
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

/// The most transfers that are put into columns: some 4 GB on the way.
const MOST_COLUMNS: u64 = 1 << 26;

fn to_columns<'py>(py: Python<'py>, plan: &plan::Plan) -> PyResult<Bound<'py, PyDict>> {
    let schedule = &plan.schedule;
    let of = |part: fn(&Transfer) -> u32| -> Vec<u32> {
        schedule.transfers().map(|moved| part(&moved)).collect()
    };
    let actions: Vec<u8> = schedule.transfers().map(|one| one.action as u8).collect();
    let columns = PyDict::new(py);
    columns.set_item("chunk", of(|one| one.chunk).into_pyarray(py))?;
    columns.set_item("count", of(|one| one.count).into_pyarray(py))?;
    columns.set_item("source", of(|one| one.source).into_pyarray(py))?;
    columns.set_item("destination", of(|one| one.destination).into_pyarray(py))?;
    columns.set_item("action", actions.into_pyarray(py))?;
    set_light(
        py,
        plan.fabric.light(),
        plan.light.iter().copied(),
        &columns,
    )?;
    columns.set_item("slot", PyArray1::from_slice(py, &plan.slot))?;
    Ok(columns)
}

/// A column for each field of light, of the smallest type that holds it.
fn set_light(
    py: Python<'_>,
    kind: Option<&LightKind>,
    light: impl Iterator<Item = Light> + Clone,
    columns: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let Some(kind) = kind else {
        return Ok(());
    };
    for (index, field) in kind.fields.iter().enumerate() {
        let values = light.clone().map(|light| kind.value(light, index));
        let column = match field.bits {
            0..=8 => values
                .map(|value| value as u8)
                .collect::<Vec<_>>()
                .into_pyarray(py)
                .into_any(),
            9..=16 => values
                .map(|value| value as u16)
                .collect::<Vec<_>>()
                .into_pyarray(py)
                .into_any(),
            _ => values.collect::<Vec<_>>().into_pyarray(py).into_any(),
        };
        columns.set_item(field.name, column)?;
    }
    Ok(())
}
