//! `Fabric`.

use numpy::{IntoPyArray, PyArrayMethods, PyUntypedArrayMethods};
use opticoll::fabric::light::Field;
use opticoll::fabric::{self, Plane, WdmRing};
use opticoll::network::Network;
use opticoll::simulate;
use opticoll::spec::Spec;
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

impl Fabric {
    fn needed_ring(&self, what: &'static str) -> PyResult<&WdmRing> {
        self.fabric
            .needed_ring(what)
            .map_err(IntoPyErr::into_py_err)
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

    /// Whether light goes around a ring.
    #[getter]
    fn ring(&self) -> bool {
        self.fabric.ring().is_some()
    }

    /// Rows and columns of a grid of tunable circuits.
    #[getter]
    fn grid(&self) -> Option<(u32, u32)> {
        let grid = self.fabric.wss_grid()?;
        Some((grid.rows, grid.columns))
    }

    /// The node of each rank of a grid of tunable circuits.
    #[getter]
    fn grid_nodes(&self) -> Vec<u32> {
        let grid = self.fabric.wss_grid();
        grid.map_or_else(Vec::new, |grid| grid.nodes.clone())
    }

    /// Ranks of a grid and the planes, 0 or 1, in which no light reaches them.
    #[getter]
    fn grid_dark(&self) -> Vec<(u32, u8)> {
        let Some(grid) = self.fabric.wss_grid() else {
            return Vec::new();
        };
        let places = (0..grid.ranks()).flat_map(|rank| Plane::BOTH.map(|plane| (rank, plane)));
        places
            .filter(|&(rank, plane)| !grid.works(rank, plane))
            .map(|(rank, plane)| (rank, plane as u8))
            .collect()
    }

    /// Delay of one control message of a grid of tunable circuits.
    #[getter]
    fn control_ps(&self) -> Option<u64> {
        Some(self.fabric.wss_grid()?.control.ps())
    }

    /// Time to set the switches of a grid of tunable circuits, once for a task.
    #[getter]
    fn slow_switch_ps(&self) -> Option<u64> {
        Some(self.fabric.wss_grid()?.slow_switch.ps())
    }

    /// Ports of a rank on a grid of light paths.
    #[getter]
    fn path_ports(&self) -> Option<u32> {
        Some(self.fabric.light_path_grid()?.ports)
    }

    /// On a grid of light paths: latency, and the times to set paths up and to release them.
    #[getter]
    fn path_times_ps(&self) -> Option<(u64, u64, u64)> {
        let grid = self.fabric.light_path_grid()?;
        Some((grid.latency.ps(), grid.establish.ps(), grid.release.ps()))
    }

    /// The fields of light in plans: name, meaning, and the names of its values where it has such.
    #[getter]
    fn light_fields(&self) -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
        let fields = self.fabric.light().map_or(&[][..], |kind| kind.fields);
        let described = |field: &Field| (field.name, field.meaning, field.names.to_vec());
        fields.iter().map(described).collect()
    }

    /// Whether plans say which wavelength carries what.
    #[getter]
    fn has_wavelengths(&self) -> bool {
        self.fabric.has_light() && self.fabric.light_path_grid().is_none()
    }

    #[getter]
    fn wavelengths(&self) -> PyResult<u32> {
        if let Some(grid) = self.fabric.wss_grid() {
            return Ok(grid.wavelengths);
        }
        Ok(self.needed_ring("the number of wavelengths")?.wavelengths)
    }

    #[getter]
    fn fibres(&self) -> PyResult<u32> {
        if self.fabric.wss_grid().is_some() {
            return Ok(2);
        }
        Ok(self.needed_ring("the number of fibres")?.fibres)
    }

    #[getter]
    fn rate_bits_per_second(&self) -> PyResult<u64> {
        if let Some(grid) = self.fabric.wss_grid() {
            return Ok(grid.rate.bits_per_second());
        }
        if let Some(grid) = self.fabric.light_path_grid() {
            return Ok(grid.rate.bits_per_second());
        }
        Ok(self
            .needed_ring("the rate of a wavelength")?
            .rate
            .bits_per_second())
    }

    #[getter]
    fn reconfiguration_ps(&self) -> PyResult<u64> {
        if let Some(grid) = self.fabric.wss_grid() {
            return Ok(grid.tuning.ps());
        }
        Ok(self
            .needed_ring("the time of a reconfiguration")?
            .reconfiguration
            .ps())
    }

    /// Bits per second that a rank can send: of ranks that differ, the least.
    #[getter]
    fn injection_bandwidth(&self, py: Python<'_>) -> u128 {
        py.detach(|| self.fabric.injection_bandwidth())
    }

    /// The simulator that times plans where none is named.
    #[getter]
    fn simulator(&self) -> &'static str {
        simulate::default_simulator(&self.fabric)
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

    /// How an electrical fabric is drawn: `places` of its vertices, ranks first, and links that lead `around`.
    #[getter]
    fn drawing<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let network = self.fabric.network();
        let Some(drawing) = interrupt::run(py, || network.map(Network::drawing))? else {
            return Ok(None);
        };
        let columns = PyDict::new(py);
        let places = drawing.places.into_flattened().into_pyarray(py);
        columns.set_item("places", places.reshape([places.len() / 2, 2])?)?;
        columns.set_item("around", drawing.around.into_pyarray(py))?;
        Ok(Some(columns))
    }

    /// Groups, routers per group and ranks per router of a dragonfly.
    #[getter]
    fn dragonfly_shape(&self) -> Option<(u32, u32, u32)> {
        match &self.fabric {
            fabric::Fabric::Dragonfly(dragonfly) => Some((
                dragonfly.groups(),
                dragonfly.routers_per_group(),
                dragonfly.terminals_per_router(),
            )),
            _ => None,
        }
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
