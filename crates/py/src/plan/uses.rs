//! Methods of `Plan` that Python code implements: figures, exports, and execution.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Plan;

#[pymethods]
impl Plan {
    /// Draws the plan to a file or in matplotlib axes (see `opticoll.plot.plan`).
    ///
    /// Parameters
    /// ----------
    /// path : str or PathLike, optional
    ///     The file; its suffix (svg, png or pdf) determines the format.
    /// view : str, optional
    ///     The view, such as `space_time` (default: the fabric's default view).
    /// slot : int, optional
    ///     The slot, for views of one slot.
    /// size : int, optional
    ///     Size of the collective in bytes, for views of time.
    /// rank, chunk : int, optional
    ///     The rank or the chunk whose trees are drawn, for the view `trees`.
    /// ax : matplotlib.axes.Axes, optional
    ///     The axes in which the figure is drawn, instead of a file.
    ///
    /// Raises
    /// ------
    /// PlotError
    ///     The suffix or the view is unknown, the plan does not fit the view, or a view with
    ///     several panels is requested in axes.
    /// FileError
    ///     The file cannot be written.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> ring = "wdm_ring:ranks=16,wavelengths=2"
    /// >>> plan = opticoll.plan("all_gather", ring, "optree:radices=4x4")
    /// >>> plan.plot("slot0.svg", slot=0)
    #[pyo3(signature = (
        path: "str | PathLike[str] | None" = None, view: "str | None" = None, *,
        slot: "int | None" = None, size: "int | None" = None, rank: "int | None" = None,
        chunk: "int | None" = None, ax: "Axes | None" = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn plot(
        slf: &Bound<'_, Plan>,
        path: Option<&Bound<'_, PyAny>>,
        view: Option<&str>,
        slot: Option<u32>,
        size: Option<u64>,
        rank: Option<u32>,
        chunk: Option<u32>,
        ax: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let options = PyDict::new(slf.py());
        options.set_item("slot", slot)?;
        options.set_item("rank", rank)?;
        options.set_item("chunk", chunk)?;
        options.set_item("size", size)?;
        let plots = slf.py().import("opticoll.plot")?;
        plots
            .call_method("plan", (slf, ax.or(path), view), Some(&options))
            .map(drop)
    }

    /// Writes the plan in the format of another program, such as MSCCL XML; `opticoll.write_plan`
    /// writes plan files.
    ///
    /// If the format cannot express light and slots, a plan file such as `ours.xml.plan` is written
    /// as well.
    ///
    /// Parameters
    /// ----------
    /// path : str or PathLike
    ///     The file.
    /// format : str, optional
    ///     The format, such as `msccl`; see `opticoll list formats` (default: the format of the
    ///     file's ending).
    /// size : str or int, optional
    ///     Size of the collective, in bytes or as text with a unit, for formats that contain bytes
    ///     (default: the plan's size, or 4 MiB).
    ///
    /// Returns
    /// -------
    /// list of Path
    ///     The written files.
    ///
    /// Raises
    /// ------
    /// FileError
    ///     The file cannot be written.
    /// UsageError
    ///     The format does not exist.
    /// ProgramError
    ///     The plan exceeds a limit of the format.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=4,wavelengths=1", "ring")
    /// >>> [path.name for path in plan.export("ours.xml")]
    /// ['ours.xml', 'ours.xml.plan']
    #[pyo3(signature = (
        path: "str | PathLike[str]", format: "str | None" = None, *,
        size: "str | int | None" = None
    ) -> "list[Path]")]
    fn export<'py>(
        slf: &Bound<'py, Plan>,
        path: &Bound<'py, PyAny>,
        format: Option<&str>,
        size: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let exports = slf.py().import("opticoll.exports")?;
        exports.call_method1("export", (slf, path, format, size))
    }

    /// Executes the plan with real bytes, and compares every output byte with the definition of the
    /// collective.
    ///
    /// The measured times are those of this machine, not of the fabric.
    ///
    /// Parameters
    /// ----------
    /// size : str or int, optional
    ///     Size of the collective, in bytes or as text with a unit; commas separate several sizes
    ///     (default: 4 MiB).
    /// on : str
    ///     Place of execution: `process` for this process, or `mpi` for one MPI process per rank.
    /// type : str
    ///     Type of the elements, such as `float32`.
    /// operator : str
    ///     Operator that reductions apply: `sum`, `prod`, `min` or `max`.
    /// repetitions : int
    ///     Number of repetitions; the reported time is their mean.
    /// time_limit : str
    ///     Time without progress after which MPI processes are stopped.
    ///
    /// Returns
    /// -------
    /// list of RunRow
    ///     One row for each size and mode (in place, out of place).
    ///
    /// Raises
    /// ------
    /// UsageError
    ///     The plan violates a rule, or MPI is not installed.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_reduce", "wdm_ring:ranks=4,wavelengths=1", "ring")
    /// >>> [(row.mode, row.wrong) for row in plan.run("1KiB", operator="max")]
    /// [('out of place', 0), ('in place', 0)]
    #[pyo3(signature = (
        size: "str | int | None" = None, *, on = "process", r#type = "int32", operator = "sum",
        repetitions = 1, time_limit = "30s"
    ) -> "list[RunRow]")]
    fn run<'py>(
        slf: &Bound<'py, Plan>,
        size: Option<&Bound<'py, PyAny>>,
        on: &str,
        r#type: &str,
        operator: &str,
        repetitions: u32,
        time_limit: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let parameters = PyDict::new(slf.py());
        parameters.set_item("source", slf)?;
        parameters.set_item("size", size.map(|size| size.str()).transpose()?)?;
        parameters.set_item("on", on)?;
        parameters.set_item("type", r#type)?;
        parameters.set_item("operator", operator)?;
        parameters.set_item("repetitions", repetitions)?;
        parameters.set_item("time_limit", time_limit)?;
        let commands = slf.py().import("opticoll.interface.command")?;
        commands.call_method("rows", ("run",), Some(&parameters))
    }
}
