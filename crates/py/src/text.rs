//! Sizes, times and rates as text.

use opticoll::collective::CollectiveKind;
use opticoll::units::{Bytes, Rate, Time};
use pyo3::prelude::*;

use crate::error::OrRaise;

/// Converts a size with its unit to a whole number of bytes.
///
/// Parameters
/// ----------
/// text : str
///     A size such as `4MiB`.
///
/// Raises
/// ------
/// UnitError
///     The text is malformed, has no unit, or is no whole number of bytes.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> opticoll.parse_size("4MiB")
/// 4194304
#[pyfunction]
pub(crate) fn parse_size(text: &str) -> PyResult<u64> {
    text.parse::<Bytes>().map(Bytes::get).or_raise()
}

/// Returns the rounded value of a rate such as `4.7GiB/s`. Returns None if the rate is a whole
/// number of bits per second.
#[pyfunction]
pub(crate) fn rounded_rate(text: &str) -> PyResult<Option<String>> {
    Rate::rounded(text)
        .map(|rate| rate.map(|rate| rate.to_string()))
        .or_raise()
}

/// Converts a time with its unit to a whole number of picoseconds.
///
/// Parameters
/// ----------
/// text : str
///     A time such as `25us`.
///
/// Raises
/// ------
/// UnitError
///     The text is malformed, has no unit, or is no whole number of picoseconds.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> opticoll.parse_time("25us")
/// 25000000
#[pyfunction]
pub(crate) fn parse_time(text: &str) -> PyResult<u64> {
    text.parse::<Time>().map(Time::ps).or_raise()
}

/// Writes a size in the largest unit in which it is a whole number.
///
/// Parameters
/// ----------
/// size_bytes : int
///     The size in bytes.
///
/// Raises
/// ------
/// OverflowError
///     The number is negative or not below 2^64.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> opticoll.format_size(4194304)
/// '4MiB'
#[pyfunction]
pub(crate) fn format_size(size_bytes: u64) -> String {
    Bytes::new(size_bytes).to_string()
}

/// Writes a time as an exact decimal number with its unit.
///
/// Parameters
/// ----------
/// time_ps : int
///     The time in picoseconds.
///
/// Raises
/// ------
/// OverflowError
///     The number is negative or not below 2^64.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> opticoll.format_time(1500000)
/// '1.5us'
#[pyfunction]
pub(crate) fn format_time(time_ps: u64) -> String {
    Time::from_ps(time_ps).to_string()
}

/// Returns the printed name of a collective for a name in any accepted spelling.
#[pyfunction]
pub(crate) fn collective_kind(name: &str) -> PyResult<&'static str> {
    name.parse().map(CollectiveKind::name).or_raise()
}
