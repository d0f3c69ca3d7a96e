//! What the package in Python does with a plan: figures, formats of others, runs with bytes.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Plan;

#[pymethods]
impl Plan {
    /// Draw the plan to a file or in axes of matplotlib, by `opticoll.plot.plan`.
    ///
    /// Parameters
    /// ----------
    /// path : str or PathLike, optional
    ///     The file; its suffix (svg, png or pdf) chooses the format.
    /// view : str, optional
    ///     The view, such as `space_time` (default: the usual view of the fabric).
    /// slot : int, optional
    ///     The slot, for views of one slot.
    /// size : int, optional
    ///     Size of the collective in bytes, for views of time.
    /// rank, chunk : int, optional
    ///     The rank or the chunk whose trees the view `trees` draws.
    /// ax : matplotlib.axes.Axes, optional
    ///     The axes in which the figure is drawn, in place of a file.
    ///
    /// Raises
    /// ------
    /// PlotError
    ///     The suffix or the view is unknown, the plan does not fit the view, or the view has several panels and is asked for
    ///     in axes.
    /// FileError
    ///     The file cannot be written.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> plan = opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "optree:radices=4x4")
    /// >>> plan.plot("slot0.svg", slot=0)
    #[pyo3(signature = (path: "str | PathLike[str] | None" = None, view: "str | None" = None, *, slot: "int | None" = None, size: "int | None" = None, rank: "int | None" = None, chunk: "int | None" = None, ax: "Axes | None" = None))]
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
    ///     Who carries it out: this `process`, or a process for each rank by `mpi`.
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
    #[pyo3(signature = (size: "str | int | None" = None, *, on = "process", r#type = "int32", operator = "sum", repetitions = 1, time_limit = "30s") -> "list[RunRow]")]
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
}
