//! Functions on libraries of collectives: their costs, and times of plans with other costs.

use opticoll::library::{Library, NUMBERS, NumberUnit};
use opticoll::simulate::bulk_synchronous;
use opticoll::spec::Spec;
use opticoll::units::Bytes;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

use crate::error::OrRaise;
use crate::interrupt;
use crate::plan::Plan;

/// Cost of a library: name, unit (`time` in picoseconds, `millionths` or `whole`), meaning, value,
/// smallest and greatest value.
type NumberEntry = (&'static str, &'static str, &'static str, u64, u64, u64);

/// Returns the costs of the record of a library that is called `name`. Raises KeyError if there is
/// no such record.
#[pyfunction]
pub(crate) fn library_numbers(name: &str) -> PyResult<Vec<NumberEntry>> {
    let missing = || PyKeyError::new_err(name.to_owned());
    let library = Library::named(name).ok_or_else(missing)?;
    let numbers = NUMBERS.iter();
    let numbers = numbers.filter(|number| library.constants.has(number));
    let entries = numbers.map(|number| {
        let unit = match number.unit {
            NumberUnit::Time => "time",
            NumberUnit::Millionths => "millionths",
            NumberUnit::Whole => "whole",
        };
        let value = number.of(&library.costs);
        let option = number.option;
        (
            option.name,
            unit,
            option.meaning,
            value,
            number.least,
            number.most,
        )
    });
    Ok(entries.collect())
}

/// Returns the times of NCCL's own collectives that run like `plan`, as pairs of picoseconds and
/// protocol, for several sizes. `library` has the options `library` and costs of `gpu_servers`; its
/// name is ignored.
#[pyfunction]
pub(crate) fn library_times(
    py: Python<'_>,
    plan: &Plan,
    sizes: Vec<u64>,
    library: &str,
) -> PyResult<Vec<(u64, &'static str)>> {
    let spec: Spec = library.parse().or_raise()?;
    let costs = Library::read(&spec, None).or_raise()?;
    let costs = costs.ok_or_else(|| PyKeyError::new_err(library.to_owned()))?;
    interrupt::run(py, || {
        let times = sizes.iter().map(|size| {
            let size = Bytes::new(*size);
            let parts = bulk_synchronous::library_time(plan.rows(), size, &costs)?;
            Ok((parts.total()?.ps(), parts.protocol.unwrap_or_default()))
        });
        times.collect::<Result<Vec<_>, opticoll::simulate::SimulationError>>()
    })?
    .or_raise()
}
