//! Conversion of sizes and of simulator settings from Python.

use std::collections::BTreeMap;

use opticoll::simulate::Method;
use opticoll::units::Bytes;
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

/// Settings from Python; None for a setting that is left out.
pub(crate) type Settings = BTreeMap<String, Option<String>>;

/// Returns the names of settings with their texts.
pub(crate) fn texts(
    settings: &BTreeMap<String, String>,
) -> impl Iterator<Item = (&str, &str)> + Clone {
    settings
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
}

/// Returns the method with the given settings, which time a plan.
pub(crate) fn method(settings: Option<Settings>) -> PyResult<Method> {
    let settings = settings.unwrap_or_default();
    let given = settings
        .iter()
        .filter_map(|(name, text)| Some((name.as_str(), text.as_deref()?)));
    Method::from_settings(given).or_raise()
}

/// Checks that settings are valid for some plan.
#[pyfunction]
#[pyo3(signature = (**settings: "Unpack[Settings]"))]
pub(crate) fn check_settings(settings: Option<Settings>) -> PyResult<()> {
    method(settings).map(drop)
}
