//! `Fabric`.

use std::collections::BTreeMap;

use numpy::{IntoPyArray, PyArrayMethods, PyUntypedArrayMethods};
use opticoll::fabric::{self, Plane};
use opticoll::simulate;
use opticoll::spec::Spec;
use opticoll::units::{Rate, Time};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{FabricError, IntoPyErr};
use crate::interrupt;

/// What the machine is.
#[pyclass(frozen, eq, module = "opticoll._core", from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct Fabric {
    pub(crate) fabric: fabric::Fabric,
}

/// An option of a fabric.
#[derive(IntoPyObject)]
pub(crate) struct OptionValue {
    value: OneValue,
    unit: &'static str,
    meaning: &'static str,
}

/// A number, or a text where it is none.
#[derive(IntoPyObject)]
pub(crate) enum OneValue {
    Number(u64),
    Text(String),
}

/// What a text of a specification says, and its unit.
fn plain(text: &str) -> (OneValue, &'static str) {
    let number = || Some((text.parse().ok()?, ""));
    let time = || {
        let time = text.parse::<Time>().ok()?;
        (time.to_string() == text).then_some((time.ps(), "ps"))
    };
    let rate = || {
        let rate = text.parse::<Rate>().ok()?;
        (rate.to_string() == text).then_some((rate.bits_per_second(), "bit/s"))
    };
    match number().or_else(time).or_else(rate) {
        Some((number, unit)) => (OneValue::Number(number), unit),
        None => (OneValue::Text(text.to_owned()), ""),
    }
}

#[pymethods]
impl Fabric {
    #[new]
    #[pyo3(signature = (spec, /, **options: "str | int"))]
    fn new(spec: &str, options: Option<&Bound<'_, PyDict>>) -> PyResult<Fabric> {
        let mut text = spec.to_owned();
        if let Some(options) = options {
            let problem =
                |error: opticoll::spec::SpecError| FabricError::new_err(error.to_string());
            let given: Spec = spec.parse().map_err(problem)?;
            let mut merged = Spec::new(given.name());
            for (key, value) in given.options() {
                if !options.contains(key)? {
                    merged = merged.with(key, value);
                }
            }
            for (key, value) in options {
                merged = merged.with(key.extract()?, value.str()?.to_str()?);
            }
            text = merged.to_string();
        }
        let fabric = fabric::Fabric::parse(&text).map_err(IntoPyErr::into_py_err)?;
        Ok(Fabric { fabric })
    }

    #[pyo3(signature = (**options: "str | int"))]
    fn with_options(&self, options: Option<&Bound<'_, PyDict>>) -> PyResult<Fabric> {
        Fabric::new(&self.spec(), options)
    }

    #[getter]
    fn spec(&self) -> String {
        self.fabric.to_string()
    }

    #[getter]
    fn family(&self) -> &'static str {
        self.fabric.family()
    }

    /// What it is made of, in words.
    #[getter]
    fn words(&self) -> String {
        self.fabric.words()
    }

    #[getter]
    fn ranks(&self) -> u32 {
        self.fabric.ranks()
    }

    /// The options by name, but for those that have a silent default.
    #[getter]
    fn options(&self) -> BTreeMap<String, OptionValue> {
        let records = self.fabric.record().all_options();
        let described = |(name, text): (&str, &str)| {
            let (value, unit) = plain(text);
            let record = records.iter().find(|one| one.name == name);
            let value = OptionValue {
                value,
                unit,
                meaning: record.map_or("", |one| one.meaning),
            };
            (name.to_owned(), value)
        };
        self.fabric.spec().options().map(described).collect()
    }

    /// The value of an option, times in picoseconds, rates in bits per second; none where it is not in `options`.
    #[pyo3(signature = (name) -> "Any")]
    fn option(&self, name: &str) -> Option<OneValue> {
        self.fabric.spec().option(name).map(|text| plain(text).0)
    }

    /// The fields of light in plans by name, each with the names of its values where it has such.
    #[getter]
    fn light_fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        for field in self.fabric.light().map_or(&[][..], |kind| kind.fields) {
            fields.set_item(field.name, field.names.to_vec())?;
        }
        Ok(fields)
    }

    /// Bits per second that a rank can send: of ranks that differ, the least.
    #[getter]
    fn injection_bandwidth(&self, py: Python<'_>) -> u128 {
        py.detach(|| self.fabric.injection_bandwidth())
    }

    /// The simulator that times plans where none is named.
    #[getter]
    fn simulator(&self) -> &'static str {
        simulate::default_simulator(&self.fabric).name
    }

    #[getter]
    fn electrical(&self) -> bool {
        self.fabric.network().is_some()
    }

    /// The links of an electrical fabric in words, by their numbers.
    #[getter]
    fn link_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        interrupt::run(py, || match self.fabric.network() {
            None => Vec::new(),
            Some(network) => (0..network.links().len() as u32)
                .map(|link| network.link_name(link))
                .collect(),
        })
    }

    #[getter]
    fn link_count(&self) -> usize {
        self.fabric
            .network()
            .map_or(0, |network| network.links().len())
    }

    /// A link of an electrical fabric in words; none where there is no such link.
    fn link_name(&self, link: u32) -> Option<String> {
        let network = self.fabric.network()?;
        ((link as usize) < network.links().len()).then(|| network.link_name(link))
    }

    /// Bits per second of each link of an electrical fabric.
    #[getter]
    fn link_rates(&self) -> Vec<u64> {
        let links = self.fabric.network().map_or(&[][..], |one| one.links());
        links
            .iter()
            .map(|link| link.rate.bits_per_second())
            .collect()
    }

    /// Source and destination of each link, ranks first and then routers; none where they are not known.
    #[getter]
    fn link_ends(&self) -> Option<Vec<(u32, u32)>> {
        let network = self.fabric.network()?;
        let links = 0..network.links().len() as u32;
        links.map(|link| network.ends(link)).collect()
    }

    /// How it is drawn: of an electrical fabric `places` of its vertices, ranks first, and links that lead `around`; of
    /// a grid of switches the `nodes` of its ranks, and ranks with the planes in which they are `dark`.
    #[getter]
    fn drawing<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        if let Some(planes) = self.fabric.planes() {
            let places = 0..planes.rows() * planes.columns();
            let ranked = |place: &u32| {
                planes
                    .rank_at(place / planes.columns(), place % planes.columns())
                    .is_some()
            };
            let nodes: Vec<u32> = places.filter(ranked).collect();
            let ranks = 0..self.fabric.ranks();
            let ends = ranks.flat_map(|rank| Plane::BOTH.map(|plane| (rank, plane)));
            let dark = ends.filter(|&(rank, plane)| !planes.works(rank, plane));
            let dark: Vec<(u32, u32)> = dark.map(|(rank, plane)| (rank, plane as u32)).collect();
            columns.set_item("nodes", nodes.into_pyarray(py))?;
            columns.set_item("dark", dark)?;
        }
        if let Some(drawing) = interrupt::run(py, || self.fabric.drawing())? {
            let places = drawing.places.into_flattened().into_pyarray(py);
            columns.set_item("places", places.reshape([places.len() / 2, 2])?)?;
            columns.set_item("around", drawing.around.into_pyarray(py))?;
        }
        Ok(columns)
    }

    /// The links of an electrical fabric on the way between two ranks.
    fn route(&self, source: u32, destination: u32) -> PyResult<Vec<u32>> {
        let network = self.fabric.network();
        let network = network.filter(|network| source.max(destination) < network.ranks());
        let mut links = Vec::new();
        match network {
            Some(network) if source != destination => {
                network.route(source, destination, &mut links);
                Ok(links)
            }
            _ => Err(FabricError::new_err(format!(
                "there is no route from rank {source} to rank {destination}"
            ))),
        }
    }

    fn __repr__(&self) -> String {
        format!("Fabric('{}')", self.fabric)
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, (String,))> {
        Ok((py.get_type::<Fabric>().into_any().unbind(), (self.spec(),)))
    }
}
