//! Sizes and times as text, and the formulas of the papers.

use std::num::NonZeroU32;

use opticoll::algorithms::{one_stage, optree, wrht};
use opticoll::collective::CollectiveKind;
use opticoll::units::{Bytes, Rate, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::IntoPyErr;
use crate::interrupt;

/// Convert a size with its unit to a whole number of bytes.
///
/// Parameters
/// ----------
/// text : str
///     A size such as `4MiB`.
///
/// Raises
/// ------
/// UnitError
///     The text is no size, has no unit, or is no whole number of bytes.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> opticoll.parse_size("4MiB")
/// 4194304
#[pyfunction]
pub(crate) fn parse_size(text: &str) -> PyResult<u64> {
    text.parse::<Bytes>()
        .map(Bytes::get)
        .map_err(IntoPyErr::into_py_err)
}

/// What a rate such as `4.7GiB/s` is rounded to; none where it is a whole number of bits per second.
#[pyfunction]
pub(crate) fn rounded_rate(text: &str) -> PyResult<Option<String>> {
    Rate::rounded(text)
        .map(|rate| rate.map(|rate| rate.to_string()))
        .map_err(IntoPyErr::into_py_err)
}

/// Convert a time with its unit to a whole number of picoseconds.
///
/// Parameters
/// ----------
/// text : str
///     A time such as `25us`.
///
/// Raises
/// ------
/// UnitError
///     The text is no time, has no unit, or is no whole number of picoseconds.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> opticoll.parse_time("25us")
/// 25000000
#[pyfunction]
pub(crate) fn parse_time(text: &str) -> PyResult<u64> {
    text.parse::<Time>()
        .map(Time::ps)
        .map_err(IntoPyErr::into_py_err)
}

/// Write a size in the largest unit in which it is a whole number.
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

/// Write a time as an exact decimal number with its unit.
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

/// The printed name of a collective, from any accepted name.
#[pyfunction]
pub(crate) fn collective_kind(name: &str) -> PyResult<&'static str> {
    name.parse()
        .map(CollectiveKind::name)
        .map_err(IntoPyErr::into_py_err)
}

/// Theorem 1 of the OpTree paper.
#[pyfunction]
pub(crate) fn optree_steps(ranks: u32, wavelengths: NonZeroU32, depth: u32) -> u64 {
    optree::paper_steps(ranks, wavelengths.get(), depth)
}

/// Theorem 2 of the OpTree paper; None where it is undefined.
#[pyfunction]
#[pyo3(signature = (ranks, rounding: "Literal['ceil', 'round']" = "ceil"))]
pub(crate) fn optree_depth(ranks: u32, rounding: &str) -> PyResult<Option<u32>> {
    let rounding = match rounding {
        "ceil" => optree::DepthRounding::Ceil,
        "round" => optree::DepthRounding::Nearest,
        _ => {
            return Err(PyValueError::new_err(
                "rounding is either `ceil` or `round`",
            ));
        }
    };
    Ok(optree::paper_depth(ranks, rounding))
}

/// The greatest link load of each stage of an OpTree.
#[pyfunction]
pub(crate) fn optree_stage_loads(ranks: u32, radices: Vec<NonZeroU32>) -> Vec<u64> {
    let radices: Vec<u32> = radices.into_iter().map(NonZeroU32::get).collect();
    optree::tree::stage_loads(ranks, &radices)
}

/// The radices that `optree:depth=auto` picks.
#[pyfunction]
pub(crate) fn optree_best_radices(
    py: Python<'_>,
    ranks: NonZeroU32,
    wavelengths: NonZeroU32,
) -> PyResult<Vec<u32>> {
    interrupt::run(py, || {
        optree::tree::best_radices(ranks.get(), wavelengths.get())
    })
}

/// Wavelengths of a one-stage all-to-all on a ring, exact or as the paper has it.
#[pyfunction]
#[pyo3(signature = (ranks, *, paper = false))]
pub(crate) fn one_stage_wavelengths(ranks: u32, paper: bool) -> u64 {
    if paper {
        one_stage::paper_ring_wavelengths(ranks)
    } else {
        one_stage::ring_wavelengths(ranks)
    }
}

/// Steps of WRHT as the OpTree paper turns it into an all-gather.
#[pyfunction]
pub(crate) fn wrht_all_gather_steps(ranks: u32, wavelengths: NonZeroU32) -> u64 {
    wrht::paper_all_gather_steps(ranks, wavelengths.get())
}

/// Steps of WRHT as its poster gives them; the group size is 2w + 1 where none is given.
#[pyfunction]
#[pyo3(signature = (ranks, wavelengths, group_size = None))]
pub(crate) fn wrht_all_reduce_steps(
    ranks: u32,
    wavelengths: NonZeroU32,
    group_size: Option<NonZeroU32>,
) -> u64 {
    let default = wrht::default_group_size(wavelengths.get());
    let group_size = group_size.map_or(default, NonZeroU32::get);
    wrht::paper_all_reduce_steps(ranks, wavelengths.get(), group_size)
}
