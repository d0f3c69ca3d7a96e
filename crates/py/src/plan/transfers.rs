//! Methods of `Plan` that return transfers as arrays, or one transfer.

use opticoll::plan::Lightpath;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Plan;
use crate::columns;
use crate::table::notebook;

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
