//! Methods of `Plan` that return transfers as arrays, or one transfer.

use numpy::IntoPyArray;
use opticoll::fabric::loss::Decibels;
use opticoll::plan::Lightpath;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Plan;
use crate::columns;
use crate::interrupt;
use crate::table::notebook;

/// Converts millionths of a decibel to decibels.
fn decibels(millionths: i64) -> f64 {
    millionths as f64 / 1e6
}

#[pymethods]
impl Plan {
    /// Returns the transfers as NumPy arrays: a dictionary of columns, each with one entry per
    /// transfer in the order of the schedule.
    ///
    /// The columns direction, fibre and wavelength exist on a `wdm_ring`. Other optical fabrics
    /// have the columns that `Fabric.light_fields` names. Electrical fabrics have none of these
    /// columns.
    ///
    /// Columns
    /// -------
    /// chunk : uint32
    ///     First chunk of the transfer, from 0 to `plan.collective.chunks` - 1.
    /// count : uint32
    ///     Number of consecutive chunks.
    /// source, destination : uint32
    ///     Ranks that send and receive, from 0 to `plan.fabric.ranks` - 1.
    /// action : uint8
    ///     0: the destination stores a copy. 1: the destination reduces the chunks into its own.
    /// direction, fibre : uint8
    ///     On a `wdm_ring` only: the direction of the lightpath (0 clockwise, 1 counter-clockwise)
    ///     and its fibre.
    /// wavelength : uint16
    ///     On a `wdm_ring` only: the wavelength, from 0; 65535 if converters choose a wavelength
    ///     for each link.
    /// slot : uint32
    ///     Slot of the transfer, from 0 to `plan.slots` - 1; on electrical fabrics the step of the
    ///     transfer.
    ///
    /// Raises
    /// ------
    /// ScheduleError
    ///     The plan has more than 2^26 transfers; use `slot_columns` slot by slot.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> ring = "wdm_ring:ranks=16,wavelengths=2"
    /// >>> plan = opticoll.plan("all_gather", ring, "optree:radices=4x4")
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
        columns::plan_columns(py, &self.plan)
    }

    /// Returns the transfers of a slot as NumPy arrays: the columns of `columns`, and the indices
    /// of the transfers in the plan.
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
    /// >>> ring = "wdm_ring:ranks=16,wavelengths=2"
    /// >>> plan = opticoll.plan("all_gather", ring, "optree:radices=4x4")
    /// >>> slot = plan.slot_columns(0)
    /// >>> len(slot["transfer"]), slot["source"][:3], slot["destination"][:3]
    /// (12, array([0, 1, 1], dtype=uint32), array([4, 5, 9], dtype=uint32))
    #[pyo3(signature = (slot) -> "dict[str, NDArray[Any]]")]
    fn slot_columns<'py>(&self, py: Python<'py>, slot: u32) -> PyResult<Bound<'py, PyDict>> {
        columns::slot_columns(py, self.rows(), slot)
    }

    /// Returns the margins of the transfers of a slot as NumPy arrays of equal length: the power
    /// that arrives at the receiver, above the least power that the receiver detects.
    ///
    /// The arrays are empty if the fabric has no loss budget (option `launch_power`).
    ///
    /// Parameters
    /// ----------
    /// slot : int
    ///     The slot, from 0.
    ///
    /// Columns
    /// -------
    /// transfer : uint64
    ///     Index of the transfer in the plan. Transfers without light are not listed.
    /// margin : float64
    ///     Margin in dB. Of a relayed transfer, the margin of its weakest hop.
    /// osnr : float64
    ///     Ratio of signal to noise in a band of 0.1 nm, in dB. NaN if the fabric states no noise.
    ///
    /// Raises
    /// ------
    /// OverflowError
    ///     The slot is negative or not below 2^32.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> losses = "launch_power=0dBm,sensitivity=-10dBm,through_loss=1dB,resonators=1"
    /// >>> plan = opticoll.plan("broadcast", f"wdm_ring:ranks=4,wavelengths=2,{losses}", "direct")
    /// >>> plan.margins(0)["margin"]
    /// array([10.,  9., 10.])
    #[pyo3(signature = (slot) -> "dict[str, NDArray[Any]]")]
    fn margins<'py>(&self, py: Python<'py>, slot: u32) -> PyResult<Bound<'py, PyDict>> {
        let margins = interrupt::run(py, || self.rows().margins_in_slot(slot))?;
        let columns = PyDict::new(py);
        let transfers: Vec<u64> = margins.iter().map(|one| one.transfer).collect();
        let osnr = margins
            .iter()
            .map(|one| one.osnr.map_or(f64::NAN, Decibels::as_f64));
        columns.set_item("osnr", osnr.collect::<Vec<f64>>().into_pyarray(py))?;
        let margins: Vec<f64> = margins.iter().map(|one| decibels(one.margin)).collect();
        columns.set_item("transfer", transfers.into_pyarray(py))?;
        columns.set_item("margin", margins.into_pyarray(py))?;
        Ok(columns)
    }

    /// Returns the loss budget of the transfer with the least margin; None if the fabric has no
    /// loss budget, or if no transfer has light.
    ///
    /// Powers are in dBm, losses and margins in dB. Each entry of `losses` has the name of what the
    /// light passes (`what`), the number of times (`count`) and the loss each time (`loss_db`).
    ///
    /// Raises
    /// ------
    /// MemoryLimitError
    ///     The margins of all rows need more memory than the limit.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> star = "passive_star:ranks=8,wavelengths=4,launch_power=0dBm,sensitivity=-12dBm"
    /// >>> weakest = opticoll.plan("broadcast", star).least_margin()
    /// >>> weakest["margin_db"], weakest["losses"][1]["loss_db"]
    /// (2.9691, 9.0309)
    #[pyo3(signature = () -> "LossBudget | None")]
    fn least_margin<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let plan = self.rows();
        let budget = plan.fabric.circuits().and_then(|one| one.loss_budget());
        let weakest = interrupt::run(py, || plan.least_margin())?;
        let (Some(budget), Some(weakest)) = (budget, weakest) else {
            return Ok(None);
        };
        let losses = weakest.losses.iter();
        let losses = losses.map(|part| {
            let entry = PyDict::new(py);
            entry.set_item("what", part.what)?;
            entry.set_item("count", part.count)?;
            entry.set_item("loss_db", decibels(part.loss.millionths()))?;
            Ok(entry)
        });
        let losses: Vec<Bound<'py, PyDict>> = losses.collect::<PyResult<_>>()?;
        let fields = PyDict::new(py);
        let power = Decibels::as_f64;
        fields.set_item("transfer", weakest.transfer)?;
        fields.set_item("launch_power_dbm", power(budget.launch_power))?;
        fields.set_item("sensitivity_dbm", power(budget.sensitivity))?;
        fields.set_item("losses", losses)?;
        fields.set_item("margin_db", decibels(weakest.margin))?;
        fields.set_item("osnr_db", weakest.osnr.map(Decibels::as_f64))?;
        Ok(Some(fields))
    }

    /// Returns the hops of transfers on a grid of tunable circuits (`wss_grid`) as NumPy arrays of
    /// equal length.
    ///
    /// A transfer between nodes that share neither row nor column has two hops, over a relay. On
    /// other fabrics the arrays are empty. The fields of the fabric's light (`Fabric.light_fields`)
    /// are additional columns.
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
        columns::hop_columns(py, self.rows(), slot)
    }

    /// Returns the rank that sends a transfer, and the rank that receives it.
    ///
    /// Parameters
    /// ----------
    /// transfer : int
    ///     Index of the transfer, from 0 to `len(plan)` - 1.
    ///
    /// Raises
    /// ------
    /// IndexError
    ///     The transfer does not exist.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> opticoll.plan("all_gather", "wdm_ring:ranks=16,wavelengths=2", "ring").ends(3)
    /// (3, 4)
    fn ends(&self, transfer: u64) -> PyResult<(u32, u32)> {
        let Lightpath {
            transfer: moved, ..
        } = self.rows().numbered(transfer).ok_or_else(|| {
            let transfers = self.plan.transfers();
            PyIndexError::new_err(format!("there is no transfer {transfer}, of {transfers}"))
        })?;
        Ok((moved.source, moved.destination))
    }

    /// Returns the links of a transfer's route on an electrical fabric, in order; an empty list on
    /// other fabrics.
    ///
    /// If the plan names no route for the transfer, the result is the fabric's route
    /// (`Fabric.route`).
    ///
    /// Parameters
    /// ----------
    /// transfer : int
    ///     Index of the transfer, from 0 to `len(plan)` - 1.
    ///
    /// Raises
    /// ------
    /// IndexError
    ///     The transfer does not exist.
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
        let plan = self.rows();
        let mut links = plan.routes.of(transfer).map_or(Vec::new(), <[u32]>::to_vec);
        if let Some(network) = plan.fabric.network().filter(|_| links.is_empty()) {
            network.route(source, destination, &mut links);
        }
        Ok(links)
    }

    /// True if the plan names the route of some transfer on an electrical fabric.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> opticoll.plan("broadcast", "electrical_ring:ranks=3", "linear").names_routes
    /// False
    #[getter]
    fn names_routes(&self) -> bool {
        !self.rows().routes.is_empty()
    }

    /// Returns the transfers as a pandas DataFrame with the columns of `columns`.
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
}
