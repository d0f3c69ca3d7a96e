//! Copies and pickles. An immutable value is its own copy. A pickled value is restored from a
//! description that the value gives of itself.

use std::any::Any;
use std::sync::Arc;

use numpy::{Element, PyReadonlyArrayDyn};
use opticoll::plan::text;
use opticoll::simulate::table;
use opticoll::simulate::table::{Described, Description, Value, Values};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::collective::{Collective, Demand};
use crate::error::OrRaise;
use crate::fabric::Fabric;
use crate::interrupt;
use crate::plan::Plan;
use crate::plan::choice::{CandidateRow, Choice};
use crate::table::{Outcome, Table, column, to_python};

/// Implements `copy` and `deepcopy` of immutable values.
macro_rules! is_its_own_copy {
    ($($kind:ident)*) => {$(
        #[pymethods]
        impl $kind {
            fn __copy__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            #[pyo3(signature = (memo, /))]
            fn __deepcopy__(slf: Py<Self>, memo: &Bound<'_, PyAny>) -> Py<Self> {
                let _ = memo;
                slf
            }
        }
    )*};
}

is_its_own_copy! { Collective Demand Fabric Outcome Plan Table }

/// A function of the core, and the arguments with which this function restores a value.
type Reduced<'py, T> = PyResult<(Bound<'py, PyAny>, T)>;

fn function<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("opticoll._core")?.getattr(name)
}

/// Plan for pickling: its text, the requested algorithm, the candidates and the reasons of the
/// choice.
type ToldPlan = (String, Option<String>, Vec<CandidateRow>, Vec<String>);

#[pymethods]
impl Plan {
    fn __reduce__<'py>(&self, py: Python<'py>) -> Reduced<'py, ToldPlan> {
        let text = interrupt::run(py, || text::write(self.rows()))?;
        let Choice {
            asked,
            candidates,
            reasons,
        } = &*self.choice;
        let arguments = (text, asked.clone(), candidates.clone(), reasons.clone());
        Ok((function(py, "pickled_plan")?, arguments))
    }
}

/// Restores a pickled plan, with the candidates that `auto` compared.
#[pyfunction]
pub(crate) fn pickled_plan(
    py: Python<'_>,
    text: &str,
    asked: Option<String>,
    candidates: Vec<CandidateRow>,
    reasons: Vec<String>,
) -> PyResult<Plan> {
    let plan = interrupt::run(py, || text::read_any(text))?;
    let mut plan = plan.map(Plan::from_core).or_raise()?;
    plan.choice = Arc::new(Choice {
        asked,
        candidates,
        reasons,
    });
    Ok(plan)
}

#[pymethods]
impl Collective {
    #[pyo3(signature = () -> "tuple[tuple[str, int], dict[str, Any]]")]
    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<((&'static str, u32), Bound<'py, PyDict>)> {
        let options = PyDict::new(py);
        options.set_item("root", self.root())?;
        options.set_item("pieces", self.pieces())?;
        options.set_item("demand", self.demand())?;
        Ok(((self.kind(), self.ranks()), options))
    }
}

#[pymethods]
impl Demand {
    fn __getnewargs__(&self) -> (Vec<Vec<u64>>,) {
        (self.amounts(),)
    }
}

#[pymethods]
impl Table {
    fn __reduce__<'py>(&self, py: Python<'py>) -> Reduced<'py, (Outcome, String)> {
        let outcome = Outcome {
            result: Arc::clone(&self.result),
        };
        let getattr = py.import("builtins")?.getattr("getattr")?;
        Ok((getattr, (outcome, self.name.clone())))
    }
}

/// The name, unit, meaning and value of a total or column.
type Told<'py> = (String, String, String, Bound<'py, PyAny>);

/// The name, noun for a row, axes and columns of a table.
type ToldTable<'py> = (String, String, Vec<(String, usize)>, Vec<Told<'py>>);

#[pymethods]
impl Outcome {
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> Reduced<'py, (Vec<Told<'py>>, Vec<ToldTable<'py>>)> {
        let Description { totals, tables } = Description::of(&*self.result);
        let totals = totals.into_iter().map(|total| {
            let value = to_python(py, total.value)?;
            Ok((total.name, total.unit.to_owned(), total.meaning, value))
        });
        let tables = tables.into_iter().map(|table| {
            let columns = table.columns.iter().map(|described| {
                let values = column(py, &table, described)?;
                let (name, meaning) = (described.name.clone(), described.meaning.clone());
                Ok((name, described.unit.to_owned(), meaning, values))
            });
            let columns = columns.collect::<PyResult<_>>()?;
            let axes = table
                .shape
                .iter()
                .map(|&(axis, length)| (axis.to_owned(), length));
            Ok((
                table.name.to_owned(),
                table.row.clone(),
                axes.collect(),
                columns,
            ))
        });
        let arguments = (
            totals.collect::<PyResult<_>>()?,
            tables.collect::<PyResult<_>>()?,
        );
        Ok((function(py, "pickled_outcome")?, arguments))
    }
}

/// Restores a pickled outcome.
#[pyfunction]
#[pyo3(signature = (totals: "list[Any]", tables: "list[Any]"))]
pub(crate) fn pickled_outcome(
    totals: Vec<(String, String, String, Cell)>,
    tables: Vec<ToldTable<'_>>,
) -> PyResult<Outcome> {
    let tables = tables.into_iter().map(|(name, row, axes, described)| {
        let columns = described
            .into_iter()
            .map(|(name, unit, meaning, values)| Ok((name, unit, meaning, Cells::read(&values)?)));
        let columns = columns.collect::<PyResult<_>>()?;
        Ok(PickledTable {
            name,
            row,
            axes,
            columns,
        })
    });
    let tables = tables.collect::<PyResult<_>>()?;
    Ok(Outcome::from_core(Pickled { totals, tables }))
}

/// A result that is restored from its description.
#[derive(Debug, Clone, PartialEq)]
struct Pickled {
    totals: Vec<(String, String, String, Cell)>,
    tables: Vec<PickledTable>,
}

#[derive(Debug, Clone, PartialEq)]
struct PickledTable {
    name: String,
    row: String,
    axes: Vec<(String, usize)>,
    columns: Vec<(String, String, String, Cells)>,
}

/// A single value. Truth values are tried first, because Python's `True` is also a whole number.
#[derive(Debug, Clone, PartialEq, FromPyObject)]
pub(crate) enum Cell {
    Flag(bool),
    Whole(u128),
    Real(f64),
    Text(String),
    Absent(Option<bool>),
}

impl Cell {
    fn value(&self) -> Value<'_> {
        match self {
            Cell::Flag(flag) => Value::Flag(*flag),
            Cell::Whole(number) => Value::Whole(*number),
            Cell::Real(number) => Value::Real(*number),
            Cell::Text(text) => Value::Text(text),
            Cell::Absent(_) => Value::Absent,
        }
    }
}

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
enum Cells {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    F64(Vec<f64>),
    Listed(Vec<Cell>),
}

impl Cells {
    /// Reads the values of an array of any shape, or of a list.
    fn read(values: &Bound<'_, PyAny>) -> PyResult<Cells> {
        fn array<T: Element + Copy>(values: &Bound<'_, PyAny>) -> Option<Vec<T>> {
            let array: PyReadonlyArrayDyn<'_, T> = values.extract().ok()?;
            Some(array.as_array().iter().copied().collect())
        }
        let read = array(values).map(Cells::U8);
        let read = read.or_else(|| array(values).map(Cells::U16));
        let read = read.or_else(|| array(values).map(Cells::U32));
        let read = read.or_else(|| array(values).map(Cells::U64));
        let read = read.or_else(|| array(values).map(Cells::F64));
        read.map_or_else(|| values.extract().map(Cells::Listed), Ok)
    }

    fn values(&self) -> Values<'_> {
        match self {
            Cells::U8(cells) => Values::U8(cells),
            Cells::U16(cells) => Values::U16(cells),
            Cells::U32(cells) => Values::U32(cells),
            Cells::U64(cells) => Values::U64(cells),
            Cells::F64(cells) => Values::F64(cells),
            Cells::Listed(cells) => Values::Listed(Box::new(|row| cells[row].value())),
        }
    }
}

impl Described for Pickled {
    fn describe<'a>(&'a self, into: &mut Description<'a>) {
        into.totals.extend(
            self.totals
                .iter()
                .map(|(name, unit, meaning, cell)| table::Total {
                    name: name.clone(),
                    unit,
                    meaning: meaning.clone(),
                    value: cell.value(),
                }),
        );
        into.tables.extend(self.tables.iter().map(|pickled| {
            let columns = pickled.columns.iter();
            let column = |(name, unit, meaning, cells): &'a (String, String, String, Cells)| {
                table::Column::new(name, unit, meaning, cells.values())
            };
            table::Table {
                name: &pickled.name,
                row: pickled.row.clone(),
                shape: pickled
                    .axes
                    .iter()
                    .map(|(axis, length)| (axis.as_str(), *length))
                    .collect(),
                columns: columns.map(column).collect(),
            }
        }));
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn equals(&self, other: &dyn Described) -> bool {
        other.as_any().downcast_ref() == Some(self)
    }
}
