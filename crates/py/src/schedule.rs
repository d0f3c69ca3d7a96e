//! The Python class `Schedule`, built step by step from NumPy columns.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{PyArrayDescrMethods, PyReadonlyArray1, PyUntypedArray, PyUntypedArrayMethods};
use opticoll::schedule;
use opticoll::schedule::{Action, Transfer};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;

use crate::collective::Collective;
use crate::error::ScheduleError;

/// The transfers of a collective in steps, without routes and wavelengths.
///
/// A user's algorithm returns a schedule.
///
/// `len(schedule)` is the number of transfers. `opticoll.plan` assigns the routes, wavelengths and
/// slots of the transfers.
///
/// Parameters
/// ----------
/// collective : Collective
///     The collective that the transfers perform.
///
/// Examples
/// --------
/// >>> import numpy as np
/// >>> import opticoll
/// >>> def ring(collective, fabric):
/// ...     "Ring all_gather: in each step every rank passes on the block that it received last."
/// ...     schedule = opticoll.Schedule(collective)
/// ...     ranks = np.arange(fabric.ranks)
/// ...     for step in range(fabric.ranks - 1):
/// ...         schedule.step((ranks - step) % fabric.ranks, ranks, (ranks + 1) % fabric.ranks)
/// ...     return schedule
/// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=8,wavelengths=1", ring)
/// >>> plan.slots, plan.verify()
/// (7, [])
/// >>> schedule = ring(plan.collective, plan.fabric)
/// >>> schedule.steps, len(schedule), schedule.collective.kind
/// (7, 56, 'all_gather')
#[pyclass(frozen, module = "opticoll._core")]
pub(crate) struct Schedule {
    schedule: Mutex<schedule::Schedule>,
}

impl Schedule {
    pub(crate) fn from_core(schedule: schedule::Schedule) -> Schedule {
        Schedule {
            schedule: Mutex::new(schedule),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, schedule::Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Schedule {
    #[new]
    fn new(collective: Collective) -> Schedule {
        Schedule::from_core(schedule::Schedule::new(collective.collective))
    }

    /// Appends a step: transfers that do not depend on each other.
    ///
    /// Every argument except `action` is an integer, or a one-dimensional array of integers with
    /// one entry per transfer. A single integer applies to all transfers of the step.
    ///
    /// Parameters
    /// ----------
    /// chunk : int or array of int, shape (transfers,)
    ///     First chunk to send, from 0 to `collective.chunks` - 1.
    /// source : int or array of int, shape (transfers,)
    ///     Rank that sends.
    /// destination : int or array of int, shape (transfers,)
    ///     Rank that receives.
    /// count : int or array of int, shape (transfers,), optional
    ///     Number of consecutive chunks (default: 1).
    /// action : str or list of str, optional
    ///     `copy`: the destination stores the chunks. `reduce`: the destination adds the chunks to
    ///     its own chunks. A single word applies to all transfers of the step (default: `copy`).
    ///
    /// Raises
    /// ------
    /// ScheduleError
    ///     An array has another type, shape or length, or a value is out of range. The schedule
    ///     remains unchanged.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> schedule = opticoll.Schedule(opticoll.Collective("broadcast", 4))
    /// >>> schedule.step(0, 0, [1, 2, 3])
    /// >>> schedule
    /// <Schedule of broadcast: 1 steps, 3 transfers>
    #[pyo3(signature = (
        chunk, source, destination, count = None, action: "str | list[str] | None" = None
    ))]
    fn step(
        &self,
        chunk: &Bound<'_, PyAny>,
        source: &Bound<'_, PyAny>,
        destination: &Bound<'_, PyAny>,
        count: Option<&Bound<'_, PyAny>>,
        action: Option<Words>,
    ) -> PyResult<()> {
        let mut schedule = self.lock();
        let collective = schedule.collective;
        let ranks = u64::from(collective.ranks());
        let chunks = u64::from(collective.chunks());
        let chunk = Column::read("chunk", chunk, 0, chunks)?;
        let source = Column::read("source", source, 0, ranks)?;
        let destination = Column::read("destination", destination, 0, ranks)?;
        let count = match count {
            Some(count) => Column::read("count", count, 1, chunks + 1)?,
            None => Column {
                name: "count",
                values: Values::One(1),
            },
        };
        let action = Column::actions(action)?;
        let columns = [&chunk, &source, &destination, &count, &action];
        let length = common_length(&columns)?;
        schedule.begin_step();
        schedule.reserve(length);
        for index in 0..length {
            schedule.push(Transfer {
                chunk: chunk.at(index),
                count: count.at(index),
                source: source.at(index),
                destination: destination.at(index),
                action: Action::ALL[action.at(index) as usize],
            });
        }
        Ok(())
    }

    /// Replaces the claims that the schedule makes about itself.
    ///
    /// The verifier reports every false claim, except `paper_steps`.
    ///
    /// Parameters
    /// ----------
    /// paper_steps : int, optional
    ///     Number of steps that a paper states, for comparison.
    /// schedule_steps : int, optional
    ///     Number of steps of the schedule.
    /// chunks_sent_per_rank : int, optional
    ///     Number of chunks that each rank sends.
    /// neighbours_only : bool
    ///     True if every transfer is between neighbours on the ring.
    ///
    /// Raises
    /// ------
    /// OverflowError
    ///     A number is negative or too large.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> def late(collective, fabric):
    /// ...     schedule = opticoll.Schedule(collective)
    /// ...     schedule.step(0, 0, [1, 2, 3])
    /// ...     schedule.claim(schedule_steps=2)
    /// ...     return schedule
    /// >>> plan = opticoll.plan("broadcast", "crossbar:ranks=4", late)
    /// >>> [violation.kind for violation in plan.verify()]
    /// ['claim']
    #[pyo3(signature = (
        *, paper_steps = None, schedule_steps = None, chunks_sent_per_rank = None,
        neighbours_only = false
    ))]
    fn claim(
        &self,
        paper_steps: Option<u64>,
        schedule_steps: Option<u32>,
        chunks_sent_per_rank: Option<u64>,
        neighbours_only: bool,
    ) {
        self.lock().claims = schedule::Claims {
            paper_steps,
            neighbours_only,
            schedule_steps,
            chunks_sent_per_rank,
        };
    }

    fn __len__(&self) -> usize {
        self.lock().len()
    }

    fn __repr__(&self) -> String {
        let schedule = self.lock();
        let kind = schedule.collective.kind();
        format!(
            "<Schedule of {kind}: {} steps, {} transfers>",
            schedule.steps(),
            schedule.len()
        )
    }
}

getters! { Schedule |self|
    /// The collective that the transfers perform.
    collective: Collective = Collective {
        collective: self.lock().collective,
    };
    /// The number of steps.
    steps: usize = self.lock().steps();
}

/// A column of a step: one number for all transfers, or one number per transfer.
struct Column {
    name: &'static str,
    values: Values,
}

enum Values {
    One(u32),
    Many(Vec<u32>),
}

/// A word for all transfers of a step, or one word per transfer.
#[derive(FromPyObject)]
enum Words {
    One(PyBackedStr),
    Many(Vec<PyBackedStr>),
}

impl Column {
    /// Reads integers in `least..end` from any object that NumPy can convert to an array.
    fn read(
        name: &'static str,
        object: &Bound<'_, PyAny>,
        start: u64,
        end: u64,
    ) -> PyResult<Column> {
        let py = object.py();
        let refuse = |problem: String| ScheduleError::new_err(format!("{name}: {problem}"));
        let array = py.import("numpy")?.call_method1("asarray", (object,))?;
        let untyped = array.cast::<PyUntypedArray>().map_err(PyErr::from)?;
        if !matches!(untyped.dtype().kind(), b'i' | b'u') && !untyped.is_empty() {
            let dtype = untyped.dtype();
            return Err(refuse(format!("must be integers, not {dtype}")));
        }
        let scalar = untyped.ndim() == 0;
        if untyped.ndim() > 1 {
            return Err(refuse(format!(
                "must have at most one dimension, not {}",
                untyped.ndim()
            )));
        }
        let casting = PyDict::new(py);
        casting.set_item("casting", "unsafe")?;
        let wide = array.call_method("astype", ("int64",), Some(&casting))?;
        let wide: PyReadonlyArray1<'_, i64> = wide.call_method1("reshape", (-1,))?.extract()?;
        let convert = |value: &i64| {
            u64::try_from(*value)
                .ok()
                .filter(|value| (start..end).contains(value))
                .and_then(|value| u32::try_from(value).ok())
                .ok_or_else(|| refuse(format!("{value} is none of {start} to {}", end - 1)))
        };
        let view = wide.as_array();
        let mut values = view.iter().map(convert).collect::<PyResult<Vec<u32>>>()?;
        let values = match (scalar, values.pop()) {
            (true, Some(value)) => Values::One(value),
            (_, Some(last)) => {
                values.push(last);
                Values::Many(values)
            }
            (_, None) => Values::Many(values),
        };
        Ok(Column { name, values })
    }

    /// Converts words to the positions of actions in `Action::ALL`.
    fn actions(words: Option<Words>) -> PyResult<Column> {
        let number = |word: &PyBackedStr| {
            let position = Action::ALL
                .iter()
                .position(|action| action.name() == &**word);
            position.map(|position| position as u32).ok_or_else(|| {
                let known = Action::ALL.map(|action| format!("`{action}`")).join(", ");
                ScheduleError::new_err(format!("action `{word}` is none of {known}"))
            })
        };
        let values = match words {
            None => Values::One(0),
            Some(Words::One(word)) => Values::One(number(&word)?),
            Some(Words::Many(words)) => {
                Values::Many(words.iter().map(number).collect::<PyResult<_>>()?)
            }
        };
        Ok(Column {
            name: "action",
            values,
        })
    }

    fn at(&self, index: usize) -> u32 {
        match &self.values {
            Values::One(value) => *value,
            Values::Many(values) => values[index],
        }
    }

    fn length(&self) -> Option<usize> {
        match &self.values {
            Values::One(_) => None,
            Values::Many(values) => Some(values.len()),
        }
    }
}

/// Returns the length of all columns with more than a single number, which must agree; 1 if there
/// are no such columns.
fn common_length(columns: &[&Column]) -> PyResult<usize> {
    let mut longest: Option<(&str, usize)> = None;
    for column in columns {
        match (longest, column.length()) {
            (_, None) => {}
            (None, Some(length)) => longest = Some((column.name, length)),
            (Some((other, length)), Some(own_length)) if own_length != length => {
                return Err(ScheduleError::new_err(format!(
                    "{other} has {length} entries, {} has {own_length}: give as many, or one \
                        number",
                    column.name
                )));
            }
            _ => {}
        }
    }
    Ok(longest.map_or(1, |(_, length)| length))
}
