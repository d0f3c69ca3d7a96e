//! Conversion of sizes and of simulator settings from Python.

use std::collections::BTreeMap;

use opticoll::planner;
use opticoll::simulate::TimingModel;
use opticoll::units::Bytes;
use opticoll::workload::expand::Algorithms;
use pyo3::prelude::*;

use crate::error::{OrRaise, UnitError};

/// A size from Python: a number of bytes, or text with a unit.
#[derive(FromPyObject)]
pub(crate) enum Size {
    Count(u64),
    Text(String),
    Other(Py<PyAny>),
}

impl Size {
    pub(crate) fn bytes(&self) -> PyResult<Bytes> {
        match self {
            Size::Count(bytes) => Ok(Bytes::new(*bytes)),
            Size::Text(text) => text.parse().or_raise(),
            Size::Other(value) => Err(UnitError::new_err(format!(
                "`{value}` is no size; give a whole number of bytes, or text such as `4MiB`"
            ))),
        }
    }
}

/// Settings from Python: texts, indexed by name. A setting that is left out is None.
pub(crate) type Settings = BTreeMap<String, Option<String>>;

/// Returns settings as pairs of name and text.
pub(crate) fn texts(
    settings: &BTreeMap<String, String>,
) -> impl Iterator<Item = (&str, &str)> + Clone {
    settings
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
}

/// Returns the timing model with these settings. Settings that are None are ignored.
pub(crate) fn method(settings: Option<Settings>) -> PyResult<TimingModel> {
    let settings = settings.unwrap_or_default();
    let settings = settings.iter();
    method_with(settings.map(|(name, text)| (name.as_str(), text.as_deref())))
}

/// Returns the timing model with these settings, each given as (name, text). Settings without a
/// text are ignored.
pub(crate) fn method_with<'a>(
    settings: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> PyResult<TimingModel> {
    let settings = settings.into_iter();
    let present = settings.filter_map(|(name, text)| Some((name, text?)));
    TimingModel::from_settings(present).or_raise()
}

/// Returns algorithms by collective; collectives that are not named get their defaults.
pub(crate) fn named_algorithms(names: &BTreeMap<String, String>) -> PyResult<Algorithms> {
    let mut algorithms = Algorithms::default();
    for (collective, algorithm) in names {
        let kind = collective.parse().or_raise()?;
        algorithms = algorithms.with(kind, algorithm.parse().or_raise()?);
    }
    Ok(algorithms)
}

/// Checks that an algorithm of a collective has this name.
#[pyfunction]
pub(crate) fn check_algorithm(collective: &str, name: &str) -> PyResult<()> {
    let kind = collective.parse().or_raise()?;
    planner::check_name(kind, name).or_raise()
}

/// Checks that settings are valid for at least one plan.
#[pyfunction]
#[pyo3(signature = (**settings: "Unpack[Settings]"))]
pub(crate) fn check_settings(settings: Option<Settings>) -> PyResult<()> {
    method(settings).map(drop)
}
