//! The Python classes `Outcome` and `Table`: results of all simulators, with descriptions.

use std::sync::Arc;

use numpy::{Element, IntoPyArray, PyArray1, PyArrayMethods};
use opticoll::simulate::burst::BurstOutcome;
use opticoll::simulate::burst::collective::{CollectiveOutcome, RequestUse};
use opticoll::simulate::outcome;
use opticoll::simulate::outcome::packets::PacketOutcome;
use opticoll::simulate::table;
use opticoll::simulate::table::{Described, Description, Outline, Value, Values, outline};
use opticoll::workload::network::ReplayOutcome;
use opticoll::workload::training::Iteration;
use opticoll::workload::training::groups::iteration::GroupedIteration;
use pyo3::exceptions::{PyAttributeError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::plan::Plan;

/// The result of a simulation: totals, which are single values, and tables of columns.
///
/// Totals and tables are attributes: `outcome.time_ps`, `outcome.slots["start_ps"]`. Each simulator
/// has its own totals and tables. `describe` returns the meanings and units of the totals, and
/// `Table.describe` the meanings and units of the columns. Outcomes with equal totals and tables
/// are equal. Outcomes can be pickled.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "optree:radices=4x4")
/// >>> outcome = plan.simulate("4MiB")
/// >>> outcome.time_ps, outcome.totals["reconfigurations"]
/// (10366329600, 12)
/// >>> {name: table.shape for name, table in outcome.tables.items()}
/// {'settings': (0,), 'slots': (12,), 'links': (2, 16), 'ranks': (16,), 'critical_path': (12,)}
/// >>> outcome.slots["start_ps"][:2]
/// array([        0, 863860800], dtype=uint64)
#[pyclass(frozen, module = "opticoll._core")]
pub(crate) struct Outcome {
    pub(crate) result: Arc<dyn Described>,
}

impl Outcome {
    pub(crate) fn from_core(result: impl Described) -> Outcome {
        Outcome {
            result: Arc::new(result),
        }
    }

    /// Returns the result as type `T`, or `None` if the result has another type.
    pub(crate) fn get<T: Described>(&self) -> Option<&T> {
        (*self.result).as_any().downcast_ref()
    }

    fn table(&self, name: &str) -> Table {
        Table {
            result: Arc::clone(&self.result),
            name: name.to_owned(),
        }
    }
}

#[pymethods]
impl Outcome {
    /// The totals by name; None if a total does not apply.
    #[getter]
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let totals = PyDict::new(py);
        for total in Description::of(&*self.result).totals {
            totals.set_item(total.name, to_python(py, total.value)?)?;
        }
        Ok(totals)
    }

    /// The tables by name.
    #[getter]
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tables = PyDict::new(py);
        for table in Description::of(&*self.result).tables {
            tables.set_item(table.name, self.table(table.name))?;
        }
        Ok(tables)
    }

    /// Returns the descriptions of the totals: a list of dictionaries with the name, the unit and
    /// the meaning of each total.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
    /// >>> outcome = plan.simulate("4MiB")
    /// >>> field = outcome.describe()[3]
    /// >>> field["name"], field["unit"]
    /// ('time_ps', 'ps')
    #[pyo3(signature = () -> "list[FieldRecord]")]
    fn describe(&self) -> Vec<FieldRecord> {
        let totals = Description::of(&*self.result).totals.into_iter();
        totals
            .map(|total| FieldRecord::new(total.name, total.unit, total.meaning))
            .collect()
    }

    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let Description { totals, tables } = Description::of(&*self.result);
        if let Some(total) = totals.iter().find(|total| total.name == name) {
            return to_python(py, total.value);
        }
        if tables.iter().any(|table| table.name == name) {
            return Ok(Bound::new(py, self.table(name))?.into_any());
        }
        let names = totals.iter().map(|total| total.name.as_str());
        let names: Vec<&str> = names.chain(tables.iter().map(|table| table.name)).collect();
        Err(PyAttributeError::new_err(format!(
            "there is no `{name}` in this outcome; it has {}",
            names.join(", ")
        )))
    }

    fn __dir__(&self) -> Vec<String> {
        let Description { totals, tables } = Description::of(&*self.result);
        let attributes = ["totals", "tables", "describe", "plot", "to_pandas"].map(str::to_owned);
        let tables = tables.into_iter().map(|table| table.name.to_owned());
        let totals = totals.into_iter().map(|total| total.name);
        attributes.into_iter().chain(totals).chain(tables).collect()
    }

    /// Draws the quantities that the simulator measured over time (see `opticoll.plot.outcome`):
    /// the slots of a plan, the latencies of packets, or the losses of bursts.
    ///
    /// Parameters
    /// ----------
    /// path : str or PathLike, optional
    ///     The file; its suffix (svg, png or pdf) determines the format.
    /// plan : Plan, optional
    ///     The simulated plan. If it was simulated with a `link_bin`, the figure shows the use of
    ///     its links. On a dragonfly, the figure shows the load of links beside the latencies.
    /// title : str
    ///     The title of the figure.
    /// ax : matplotlib.axes.Axes, optional
    ///     The axes in which the figure is drawn, instead of a file.
    ///
    /// Raises
    /// ------
    /// PlotError
    ///     The suffix is unknown, the outcome has no quantities over time, or a figure with several
    ///     panels is requested in axes.
    /// FileError
    ///     The file cannot be written.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
    /// >>> plan.simulate("4MiB").plot("slots.svg")
    #[pyo3(signature = (
        path: "str | PathLike[str] | None" = None, plan: "Plan | None" = None, title: "str" = "",
        *, ax: "Axes | None" = None
    ) -> "None")]
    fn plot<'py>(
        slf: &Bound<'py, Self>,
        path: Option<&Bound<'py, PyAny>>,
        plan: Option<&Bound<'py, PyAny>>,
        title: &str,
        ax: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let plots = slf.py().import("opticoll.plot")?;
        plots.call_method1("outcome", (slf, ax.or(path), plan, title))
    }

    /// Returns the totals as a pandas DataFrame with one row; `Table.to_pandas` returns the rows of
    /// a table.
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
    /// >>> outcome = plan.simulate("4MiB")
    /// >>> outcome.to_pandas()["time_ps"].tolist()
    /// [12957912000]
    #[pyo3(signature = () -> "pandas.DataFrame")]
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        notebook(slf, "frame")
    }

    fn __eq__(&self, other: &Outcome) -> bool {
        Arc::ptr_eq(&self.result, &other.result)
            || Description::of(&*self.result) == Description::of(&*other.result)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        let totals = format!("{:?}", Description::of(&*self.result).totals);
        totals.into_pyobject(py)?.hash()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<Outcome {}>", self.totals(py)?.repr()?))
    }
}

/// Calls a function of `opticoll.notebook` with a value.
pub(crate) fn notebook<'py>(value: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let module = value.py().import("opticoll.notebook")?;
    module.call_method1(name, (value,))
}

/// Implements the methods that notebooks and data frame libraries call.
macro_rules! is_shown {
    ($($kind:ident)*) => {$(
        #[pymethods]
        impl $kind {
            #[pyo3(signature = (requested_schema: "object | None" = None) -> "object")]
            fn __arrow_c_stream__<'py>(
                slf: &Bound<'py, Self>,
                requested_schema: Option<&Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let module = slf.py().import("opticoll.notebook")?;
                module.call_method1("stream", (slf, requested_schema))
            }

            #[pyo3(signature = () -> "str")]
            fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
                notebook(slf, "html")
            }
        }
    )*};
}

is_shown! { Outcome Table Plan }

/// The name, unit and meaning of a total or column.
#[derive(IntoPyObject)]
pub(crate) struct FieldRecord {
    name: String,
    unit: String,
    meaning: String,
}

impl FieldRecord {
    fn new(name: String, unit: &str, meaning: String) -> FieldRecord {
        FieldRecord {
            name,
            unit: unit.to_owned(),
            meaning,
        }
    }
}

/// A table of a simulation: columns by name, as NumPy arrays.
///
/// A column is an array of the table's shape, or a list if its values are texts or may be None.
/// `len(table)` is the number of rows. Iteration over the table yields one dictionary per row.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
/// >>> outcome = plan.simulate("4MiB")
/// >>> links = outcome.links
/// >>> links.name, links.shape, links.axes, len(links)
/// ('links', (2, 16), ('direction', 'rank'), 32)
/// >>> list(links.columns)
/// ['busy_ps', 'bytes']
/// >>> outcome.ranks.row
/// 'A row per rank.'
/// >>> next(iter(outcome.slots))
/// {'start_ps': 0, 'end_ps': 863860800, 'reconfiguration_ps': 25000000, 'lightpaths': 16}
#[pyclass(frozen, module = "opticoll._core")]
pub(crate) struct Table {
    pub(crate) result: Arc<dyn Described>,
    pub(crate) name: String,
}

impl Table {
    /// Applies a function to the description of the table in the core.
    fn read<T>(&self, read: impl FnOnce(&table::Table<'_>) -> T) -> PyResult<T> {
        let description = Description::of(&*self.result);
        let table = description
            .tables
            .iter()
            .find(|table| table.name == self.name);
        table
            .map(read)
            .ok_or_else(|| PyKeyError::new_err(self.name.clone()))
    }
}

#[pymethods]
impl Table {
    /// The number of entries along each axis, as a tuple of integers.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.read(|table| PyTuple::new(py, lengths(table)))?
    }

    /// The names of the axes, as a tuple of texts.
    #[getter]
    fn axes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.read(|table| PyTuple::new(py, table.shape.iter().map(|(axis, _)| axis)))?
    }

    /// Returns the descriptions of the columns: a list of dictionaries with the name, the unit and
    /// the meaning of each column.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
    /// >>> outcome = plan.simulate("4MiB")
    /// >>> field = outcome.slots.describe()[0]
    /// >>> field["name"], field["unit"]
    /// ('start_ps', 'ps')
    #[pyo3(signature = () -> "list[FieldRecord]")]
    fn describe(&self) -> PyResult<Vec<FieldRecord>> {
        self.read(|table| {
            let columns = table.columns.iter();
            columns
                .map(|column| {
                    FieldRecord::new(column.name.clone(), column.unit, column.meaning.clone())
                })
                .collect()
        })
    }

    /// The columns by name, as NumPy arrays of the table's shape or as lists.
    #[getter]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.read(|table| {
            let columns = PyDict::new(py);
            for described in &table.columns {
                columns.set_item(&described.name, column(py, table, described)?)?;
            }
            Ok(columns)
        })?
    }

    /// Returns the rows: a list with one dictionary of plain numbers and texts per row.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring")
    /// >>> outcome = plan.simulate("4MiB")
    /// >>> row = outcome.slots.rows()[1]
    /// >>> row["start_ps"], row["end_ps"]
    /// (863860800, 1727721600)
    #[pyo3(signature = () -> "list[dict[str, Any]]")]
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.read(|table| {
            let rows = PyList::empty(py);
            for row in 0..table.rows() {
                let values = PyDict::new(py);
                for column in &table.columns {
                    values.set_item(&column.name, to_python(py, column.value(row))?)?;
                }
                rows.append(values)?;
            }
            Ok(rows)
        })?
    }

    /// Returns the rows as a pandas DataFrame, with the axes of the table as its index.
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
    /// >>> outcome = plan.simulate("4MiB")
    /// >>> int(outcome.slots.to_pandas()["lightpaths"].sum())
    /// 240
    #[pyo3(signature = () -> "pandas.DataFrame")]
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        notebook(slf, "frame")
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        self.read(|table| {
            let described = table.columns.iter().find(|column| column.name == name);
            let described = described.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
            column(py, table, described)
        })?
    }

    fn __contains__(&self, name: &str) -> PyResult<bool> {
        self.read(|table| table.columns.iter().any(|column| column.name == name))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.rows(py)?.try_iter()?.into_any())
    }

    fn __len__(&self) -> PyResult<usize> {
        self.read(|table| table.rows())
    }

    fn __repr__(&self) -> PyResult<String> {
        self.read(|table| {
            let columns: Vec<&str> = table
                .columns
                .iter()
                .map(|column| column.name.as_str())
                .collect();
            let shape = lengths(table);
            format!("<Table {} {shape:?}: {}>", self.name, columns.join(", "))
        })
    }
}

getters! { Table |self|
    /// The name of the table.
    name: &str = &self.name;
    /// Sentence on the meaning of a row.
    row: PyResult<String> = self.read(|table| table.row.clone());
}

/// Name of a kind of results, and a function that returns the totals and columns of such results.
type Known = (&'static str, fn() -> Vec<Outline>);

/// All kinds of results, by their names in [`fields_of`].
const RESULTS: &[Known] = &[
    ("plan", outline::<outcome::Outcome>),
    ("tuned", outline::<outcome::Tuned>),
    ("packets", outline::<PacketOutcome>),
    ("bursts", outline::<BurstOutcome>),
    ("collectives", outline::<CollectiveOutcome>),
    ("requests", outline::<RequestUse>),
    ("replay", outline::<ReplayOutcome>),
    ("iteration", outline::<Iteration>),
    ("groups", outline::<GroupedIteration>),
];

/// Returns the name, unit and meaning of every total of a type of results, and of every column. A
/// column is named `table.column`.
#[pyfunction]
#[pyo3(signature = (result) -> "list[FieldRecord]")]
pub(crate) fn fields_of(result: &str) -> PyResult<Vec<FieldRecord>> {
    let entry = RESULTS.iter().find(|(name, _)| *name == result);
    let (_, outline) = entry.ok_or_else(|| PyKeyError::new_err(result.to_owned()))?;
    let named = |outline: Outline| {
        let name = match outline.table {
            "" => outline.name,
            table => format!("{table}.{}", outline.name),
        };
        FieldRecord::new(name, outline.unit, outline.meaning)
    };
    Ok(outline().into_iter().map(named).collect())
}

fn lengths(table: &table::Table<'_>) -> Vec<usize> {
    table.shape.iter().map(|(_, length)| *length).collect()
}

pub(crate) fn to_python<'py>(py: Python<'py>, value: Value<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Absent => py.None().into_bound(py),
        Value::Flag(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
        Value::Whole(number) => number.into_pyobject(py)?.into_any(),
        Value::Real(number) => number.into_pyobject(py)?.into_any(),
        Value::Text(text) => text.into_pyobject(py)?.into_any(),
    })
}

/// Returns a column as an array of the table's shape, or as a list of texts.
pub(crate) fn column<'py>(
    py: Python<'py>,
    table: &table::Table<'_>,
    column: &table::Column<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    fn shaped<'py, T: Element>(
        array: Bound<'py, PyArray1<T>>,
        table: &table::Table<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Ok(match table.shape.len() {
            1 => array.into_any(),
            _ => array.reshape(lengths(table))?.into_any(),
        })
    }
    let rows = 0..table.rows();
    match &column.values {
        Values::U8(cells) => shaped(PyArray1::from_slice(py, cells), table),
        Values::U16(cells) => shaped(PyArray1::from_slice(py, cells), table),
        Values::U32(cells) => shaped(PyArray1::from_slice(py, cells), table),
        Values::U64(cells) => shaped(PyArray1::from_slice(py, cells), table),
        Values::F64(cells) => shaped(PyArray1::from_slice(py, cells), table),
        Values::Time(times) => {
            let times: Vec<u64> = times.iter().map(|time| time.ps()).collect();
            shaped(times.into_pyarray(py), table)
        }
        Values::Whole(read) => shaped(rows.map(read).collect::<Vec<u64>>().into_pyarray(py), table),
        Values::Real(read) => shaped(rows.map(read).collect::<Vec<f64>>().into_pyarray(py), table),
        Values::Listed(read) => {
            let list = PyList::empty(py);
            for row in rows {
                list.append(to_python(py, read(row))?)?;
            }
            Ok(list.into_any())
        }
    }
}
