//! The memory limit: the limit that the user set, or the memory that the machine has available.

use std::fs;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use opticoll::memory;
use opticoll::units::Bytes;
use pyo3::prelude::*;

use crate::error::{MemoryLimitError, OrRaise};

/// Time for which a measurement of the available memory remains valid.
const READING_LIFETIME: Duration = Duration::from_secs(1);

/// Limit that the user set, in bytes; `None` if the available memory is the limit.
static LIMIT: Mutex<Option<u64>> = Mutex::new(None);

/// Time and result in bytes of the last measurement of the available memory.
static AVAILABLE: Mutex<Option<(Instant, Option<u64>)>> = Mutex::new(None);

/// Limits the memory that the compiled core may use, as estimated before each computation.
///
/// Parameters
/// ----------
/// limit : str or None
///     A size such as `4GiB`; None for the memory that the machine has available.
///
/// Raises
/// ------
/// UnitError
///     The text is not a size.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> opticoll.set_memory_limit("4GiB")
/// >>> opticoll.set_memory_limit(None)
#[pyfunction]
#[pyo3(signature = (limit))]
pub(crate) fn set_memory_limit(limit: Option<&str>) -> PyResult<()> {
    let bytes = limit.map(str::parse::<Bytes>).transpose();
    let bytes = bytes.or_raise()?.map(Bytes::get);
    *LIMIT.lock().unwrap_or_else(PoisonError::into_inner) = bytes;
    Ok(())
}

/// Raises an error if a computation needs more memory than the limit, before it starts.
///
/// Parameters
/// ----------
/// what : str
///     The computation, as the error names it.
/// bytes : int
///     The estimated memory in bytes.
///
/// Raises
/// ------
/// MemoryLimitError
///     The estimate is above the limit.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> opticoll._core.take_memory("reading `a.json`", 1000)
#[pyfunction]
#[pyo3(signature = (what, bytes))]
pub(crate) fn take_memory(what: &str, bytes: u64) -> PyResult<()> {
    set_limit();
    memory::attempt(|| memory::check_forecast(what, bytes))
        .map_err(|much| MemoryLimitError::new_err(much.to_string()))
}

/// Returns the limit in bytes: the limit that the user set, or the memory that the machine has
/// available. Returns None if this memory is unknown.
#[pyfunction]
pub(crate) fn memory_limit() -> Option<u64> {
    let given = *LIMIT.lock().unwrap_or_else(PoisonError::into_inner);
    given.or_else(available)
}

/// Passes the present limit to the core.
pub(crate) fn set_limit() {
    memory::set_limit(memory_limit().unwrap_or(u64::MAX));
}

fn available() -> Option<u64> {
    let mut last = AVAILABLE.lock().unwrap_or_else(PoisonError::into_inner);
    match *last {
        Some((read_at, bytes)) if read_at.elapsed() < READING_LIFETIME => bytes,
        _ => {
            let bytes = [machine_memory(), control_group_memory()]
                .into_iter()
                .flatten()
                .min();
            *last = Some((Instant::now(), bytes));
            bytes
        }
    }
}

/// Returns the bytes that Linux reports as available without swapping.
fn machine_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// Returns the bytes that a control group, such as a container, may still allocate.
fn control_group_memory() -> Option<u64> {
    let number = |name: &str| -> Option<u64> {
        let text = fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?;
        text.trim().parse().ok()
    };
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}
