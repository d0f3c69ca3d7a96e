//! The Python class `Plan`.

pub(crate) mod choice;
mod timing;
mod transfers;
mod uses;

use std::sync::{Arc, OnceLock};

use opticoll::plan;
use opticoll::plan::text;
use opticoll::planner;
use opticoll::simulate;
use opticoll::simulate::outcome::Outcome;
use opticoll::units::Bytes;
use opticoll::verify;
use pyo3::prelude::*;

use crate::collective::Collective;
use crate::fabric::Fabric;
use crate::interrupt;
use crate::method::Settings;
use crate::violation::Violation;
use choice::{CandidateRow, Choice};

/// A schedule with a route, a wavelength and a slot for every transfer.
///
/// `opticoll.plan` makes a plan, and `opticoll.read_plan` reads a plan. `len(plan)` is the number
/// of transfers. Two plans are equal if they have the same fabric, collective, algorithm and size,
/// and in each step the same transfers with the same light and slots, in any order. Plans can be
/// pickled.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "optree:radices=4x4")
/// >>> plan
/// <Plan of all_gather by optree:radices=4x4 on 16 ranks: 12 slots, 240 transfers>
/// >>> plan.collective.kind, plan.fabric.ranks, plan.algorithm, plan.asked, plan.size_bytes
/// ('all_gather', 16, 'optree:radices=4x4', 'optree:radices=4x4', None)
/// >>> len(plan), plan.slots, plan.step_slots, plan.claimed_steps
/// (240, 12, [4, 8], 12)
/// >>> plan.rotation_symmetric, plan.pipelined, plan.pipeline
/// (False, False, None)
/// >>> plan.wavelengths_used, plan.configurations, plan.bound[:2]
/// (2, 8, (5, 'relay_tree'))
///
/// A plan by `auto` lists the candidates from which it was chosen, and the reasons for the choice:
///
/// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=5,wavelengths=1", size="4MiB")
/// >>> plan.candidates[0]
/// ('ring_bidirectional', 2, 1727721600, '')
/// >>> plan.reasons[1]
/// 'not simulated to the end: 18 candidates that cannot be faster'
#[pyclass(frozen, module = "opticoll._core")]
pub(crate) struct Plan {
    plan: Arc<plan::Plan>,
    pub(crate) choice: Arc<Choice>,
    counts: Arc<Counts>,
    timed: Option<Arc<TimedChoice>>,
}

/// Outcome of the simulation that chose the plan. A simulation with the same size and settings
/// returns this outcome.
struct TimedChoice {
    size: Bytes,
    settings: Settings,
    outcome: Outcome,
}

/// Removes the settings that have no value.
fn present_settings(settings: Option<Settings>) -> Settings {
    let mut settings = settings.unwrap_or_default();
    settings.retain(|_, text| text.is_some());
    settings
}

/// Numbers that depend on all transfers of a plan; each is computed at most once.
#[derive(Default)]
struct Counts {
    wavelengths: OnceLock<u32>,
    configurations: OnceLock<u64>,
    bound: OnceLock<Option<SlotsBound>>,
}

/// A number of slots, the name of the bound, and its assumptions.
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
    pub(crate) fn from_core(plan: plan::Plan) -> Plan {
        Plan {
            plan: Arc::new(plan),
            choice: Arc::default(),
            counts: Arc::default(),
            timed: None,
        }
    }

    /// Creates a plan. `asked` is the requested algorithm, such as `auto`; it is None if the plan's
    /// own algorithm was requested. If a simulation chose the plan, `settings` are the settings of
    /// this simulation.
    pub(crate) fn from_planned(
        planned: planner::Planned,
        asked: Option<&str>,
        settings: Option<Settings>,
    ) -> Plan {
        let timed = planned.outcome.zip(planned.plan.size);
        let timed = timed.map(|(outcome, size)| TimedChoice {
            size,
            settings: present_settings(settings),
            outcome: *outcome,
        });
        Plan {
            timed: timed.map(Arc::new),
            plan: Arc::new(planned.plan),
            choice: Arc::new(Choice {
                asked: asked.map(|asked| asked.trim().to_owned()),
                candidates: planned.candidates.iter().map(choice::row).collect(),
                reasons: planned.reasons,
            }),
            counts: Arc::default(),
        }
    }

    /// Returns the plan in its compact form, in which one transfer may stand for several
    /// repetitions.
    pub(crate) fn rows(&self) -> &plan::Plan {
        &self.plan
    }

    pub(crate) fn shared(&self) -> Arc<plan::Plan> {
        self.plan.clone()
    }
}

#[pymethods]
impl Plan {
    /// Reads the text of a plan file.
    ///
    /// Parameters
    /// ----------
    /// text : str
    ///     The complete text, which starts with `opticoll plan 1`.
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
        interrupt::attempt(py, || text::read_any(text)).map(Plan::from_core)
    }

    /// Returns the plan as the text of a plan file, for `from_text` and `opticoll.read_plan`.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("broadcast", "wdm_ring:ranks=4,wavelengths=1", "binomial")
    /// >>> plan.to_text().splitlines()[1]
    /// 'collective broadcast ranks=4 root=0 pieces=1'
    fn to_text(&self, py: Python<'_>) -> PyResult<String> {
        interrupt::run(py, || text::write(self.rows()))
    }

    /// The requested algorithm, such as `auto`.
    #[getter]
    pub(crate) fn asked(&self) -> &str {
        let asked = self.choice.asked.as_deref();
        asked.unwrap_or(&self.rows().algorithm)
    }

    /// Returns the same plan with another size for later simulations.
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
        if self.rows().size == size {
            return Ok(Plan {
                plan: Arc::clone(&self.plan),
                choice: Arc::clone(&self.choice),
                counts: Arc::clone(&self.counts),
                timed: self.timed.clone(),
            });
        }
        interrupt::run(py, || {
            let mut plan = plan::Plan::clone(&self.plan);
            plan.size = size;
            Plan::from_core(plan)
        })
    }

    fn __len__(&self) -> usize {
        self.plan.transfers() as usize
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        let plan = self.rows();
        let kind = plan.schedule.collective.kind().name();
        let shape = (self.plan.transfers(), plan.size.map(Bytes::get));
        let parts = (plan.fabric.to_string(), kind, &*plan.algorithm, shape);
        parts.into_pyobject(py)?.hash()
    }

    fn __eq__(&self, py: Python<'_>, other: &Plan) -> PyResult<bool> {
        interrupt::run(py, || self.plan.is_same(&other.plan))
    }

    /// The numbers of wavelengths and of pieces that each stored row of a pipelined plan
    /// represents; None for other plans.
    #[getter]
    fn pipeline(&self) -> Option<(u32, u32)> {
        let repetition = self.plan.repetition;
        let form = (repetition.stripes, repetition.pieces);
        repetition.is_pipelined().then_some(form)
    }

    /// The number of different wavelengths in use; 0 on fabrics without wavelengths.
    #[getter]
    fn wavelengths_used(&self, py: Python<'_>) -> PyResult<u32> {
        counted(py, &self.counts.wavelengths, || {
            opticoll::placement::wavelengths_used(self.rows())
        })
    }

    /// The number of different sets of circuits that the slots of the plan use.
    #[getter]
    fn configurations(&self, py: Python<'_>) -> PyResult<u64> {
        counted(py, &self.counts.configurations, || {
            simulate::circuit::configurations(self.rows())
        })
    }

    /// The lower bound on the number of slots of any plan, as (number of slots, name of the bound,
    /// assumptions), or None.
    ///
    /// If some lightpath of the plan carries several chunks, the bound allows any number of chunks
    /// per lightpath.
    #[getter]
    fn bound(&self, py: Python<'_>) -> PyResult<Option<SlotsBound>> {
        let schedule = &self.rows().schedule;
        let fabric = &self.rows().fabric;
        counted(py, &self.counts.bound, || {
            let single = self.rows().has_one_chunk_per_lightpath();
            let bound = opticoll::bounds::slots_bound(fabric, &schedule.collective, single)?;
            Some((bound.steps, bound.name, bound.assumption))
        })
    }

    /// Verifies the plan from its text alone, and returns a list of all violations.
    ///
    /// The list is empty if the plan is valid.
    ///
    /// The verifier shares no code with the planners. It checks that the fabric can carry every
    /// transfer in its slot, that every rank has a chunk before it sends the chunk, and that every
    /// rank ends with the chunks that the collective requires. A violation of a rotation-symmetric
    /// plan represents all rotations of its transfers.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring").verify()
    /// []
    fn verify(&self, py: Python<'_>) -> PyResult<Vec<Violation>> {
        let violations = interrupt::run(py, || verify::verify(self.rows()))?;
        Ok(violations.into_iter().map(Violation::from_core).collect())
    }

    fn __repr__(&self) -> String {
        let plan = self.rows();
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

getters! { Plan |self|
    /// The fabric, with all its options.
    fabric: Fabric = Fabric {
        fabric: self.rows().fabric.clone(),
    };
    /// The collective, with its root and its number of pieces.
    collective: Collective = Collective {
        collective: self.rows().schedule.collective,
    };
    /// The specification of the algorithm, with its options.
    algorithm: &str = &self.rows().algorithm;
    /// The size of the collective in bytes, or None; `Collective.size_convention` says which bytes
    /// the size counts.
    size_bytes: Option<u64> = self.rows().size.map(Bytes::get);
    /// The number of time slots.
    slots: u32 = self.plan.slots();
    /// The number of slots of each step of the schedule, as a list.
    step_slots: Vec<u32> =
        self.rows()
            .step_slots
            .iter()
            .map(|slots| slots.end - slots.start)
            .collect();
    /// True if the plan is rotation-symmetric and only the transfers of rank 0 are stored.
    rotation_symmetric: bool = self.plan.repetition.is_rotation_symmetric();
    /// True if the plan is pipelined and only the transfers of its first chunks are stored.
    pipelined: bool = self.plan.repetition.is_pipelined();
    /// The number of steps that the algorithm's paper states, or None.
    claimed_steps: Option<u64> = self.rows().schedule.claims.paper_steps;
    /// The plans that `auto` compared, as a list of (name, slots, time in picoseconds, reason).
    ///
    /// The chosen plan is first. The reason is empty if the plan was simulated. Otherwise the
    /// reason says why the plan was left out, and slots and time are lower bounds. The list is
    /// empty for other algorithms.
    candidates: Vec<CandidateRow> = self.choice.candidates.clone();
    /// The reasons why `auto` chose this plan, as a list of sentences; empty for other algorithms.
    reasons: Vec<&str> = self.choice.reasons.iter().map(String::as_str).collect();
}
