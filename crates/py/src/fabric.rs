//! The Python class `Fabric`.

use std::collections::BTreeMap;

use numpy::{IntoPyArray, PyArrayMethods, PyUntypedArrayMethods};
use opticoll::bill::{Bill, BillLine, PartKind};
use opticoll::fabric;
use opticoll::fabric::Plane;
use opticoll::family::circuit_switch::CircuitSwitch;
use opticoll::family::custom::Custom;
use opticoll::family::gpu_servers::ServersOnLight;
use opticoll::network::Network;
use opticoll::simulate;
use opticoll::spec::{Role, Spec};
use opticoll::units::{Rate, Time};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{FabricError, OrRaise};
use crate::interrupt;

/// A network: a family, such as `wdm_ring` or `dragonfly`, and its options.
///
/// Fabrics with equal specifications are equal. They can be pickled and used as keys of a
/// dictionary.
///
/// Parameters
/// ----------
/// spec : str
///     A specification such as `wdm_ring:ranks=16,wavelengths=2`, or the name of a family or preset
///     (see `opticoll list fabrics` for the options of each family with units and defaults).
/// options : int or str
///     Options by name, which replace options in the specification; rates and times are text with a
///     unit.
///
/// Raises
/// ------
/// FabricError
///     The family or an option is unknown, a value is out of range, or an option is missing. The
///     attribute `option` names the option.
///
/// Examples
/// --------
/// >>> import opticoll
/// >>> ring = opticoll.Fabric("wdm_ring:ranks=16,wavelengths=2", rate="25Gb/s")
/// >>> ring.spec
/// 'wdm_ring:ranks=16,wavelengths=2,fibres=1,rate=25Gb/s,reconfiguration=25us'
/// >>> ring.family, ring.ranks, ring.electrical
/// ('wdm_ring', 16, False)
/// >>> ring.accelerator, opticoll.Fabric("dgx_h100").accelerator
/// (None, 'h100')
/// >>> opticoll.Fabric("circuit_switch:ranks=4,ports=2").circuit_ports
/// 2
/// >>> opticoll.Fabric("dgx_h100:boxes=2").group_size
/// 8
/// >>> ring.simulator, ring.policy, ring.injection_bandwidth
/// ('circuit', 'every_step', 100000000000)
/// >>> ring.words.split(", ")[:3]
/// ['16 ranks', '1 fibre per direction', '2 wavelengths per fibre']
/// >>> ring.options["rate"]["value"], ring.options["rate"]["unit"]
/// (25000000000, 'bit/s')
/// >>> ring.light_fields
/// {'direction': ['cw', 'ccw'], 'fibre': [], 'wavelength': []}
/// >>> star = opticoll.Fabric("crossbar:ranks=2")
/// >>> star.link_count, star.link_names[:2]
/// (4, ['rank 0 -> switch', 'switch -> rank 0'])
/// >>> opticoll.Fabric("crossbar:ranks=2,in_network=reduce").switch_work
/// ['reduce']
/// >>> star.link_rates[0], star.link_ends
/// (100000000000, [(0, 2), (2, 0), (1, 2), (2, 1)])
/// >>> star.bill[-1]
/// ('packet_switch', '', 100000000000, 2, 1)
/// >>> opticoll.Fabric("crossbar:ranks=2,latency=1us").latency_ps
/// 2000000
/// >>> star.drawing["places"].shape
/// (3, 2)
#[pyclass(frozen, eq, module = "opticoll._core", from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct Fabric {
    pub(crate) fabric: fabric::Fabric,
}

/// The name of a circuit switch, and the pairs of ports that it connects.
type JoinedPorts = (String, Vec<(String, String)>);

/// Parts of one kind: component, place, rate, ports, number.
pub(crate) type BillEntry = (&'static str, &'static str, Option<u64>, Option<u32>, u128);

/// Returns the lines of a bill as tuples (component, place, rate, ports, number).
pub(crate) fn bill_entries(bill: &Bill) -> Vec<BillEntry> {
    let entry = |line: BillLine| {
        let PartKind {
            component,
            place,
            rate,
            ports,
        } = line.kind;
        let rate = rate.map(Rate::bits_per_second);
        (component, place, rate, ports, line.count)
    };
    bill.lines().map(entry).collect()
}

/// An option of a fabric.
#[derive(IntoPyObject)]
pub(crate) struct OptionValue {
    value: OptionContent,
    unit: &'static str,
    meaning: &'static str,
}

/// The value of an option: a number, or text.
#[derive(IntoPyObject)]
pub(crate) enum OptionContent {
    Number(u64),
    Text(String),
}

/// Returns the value of an option's text, and its unit.
fn parse_value(text: &str) -> (OptionContent, &'static str) {
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
        Some((number, unit)) => (OptionContent::Number(number), unit),
        None => (OptionContent::Text(text.to_owned()), ""),
    }
}

impl Fabric {
    /// Returns the links of an electrical fabric, or the fibres of a graph of fibres.
    fn wired(&self) -> Option<&dyn Network> {
        self.fabric.routed_links()
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
        let fabric = fabric::Fabric::parse(&text).or_raise()?;
        Ok(Fabric { fabric })
    }

    /// Returns the same fabric with changed options.
    ///
    /// Parameters
    /// ----------
    /// options : int or str
    ///     Options by name; rates and times are text with a unit.
    ///
    /// Raises
    /// ------
    /// FabricError
    ///     An option is unknown or a value is out of range.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> opticoll.Fabric("wdm_ring:ranks=16,wavelengths=2").with_options(ranks=32).ranks
    /// 32
    #[pyo3(signature = (**options: "str | int"))]
    fn with_options(&self, options: Option<&Bound<'_, PyDict>>) -> PyResult<Fabric> {
        Fabric::new(&self.spec(), options)
    }

    /// Returns the part of the fabric that some of its ranks occupy.
    ///
    /// The ranks are renumbered in their order.
    ///
    /// On a fabric with links, the part has these ranks and all links. On a fabric with circuits,
    /// the part is a smaller fabric of the same family.
    ///
    /// Parameters
    /// ----------
    /// members : list of int
    ///     The ranks, in increasing order.
    ///
    /// Raises
    /// ------
    /// FabricError
    ///     The fabric has no such part.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> opticoll.Fabric("torus:dims=4x4").part([0, 4, 8]).ranks
    /// 3
    fn part(&self, members: Vec<u32>) -> PyResult<Fabric> {
        let part = self.fabric.part(&members).or_raise()?;
        Ok(Fabric { fabric: part })
    }

    /// Returns an electrical fabric as a fabric of the family `custom`, with the same ranks,
    /// switches, links and names.
    ///
    /// Routes on the new fabric have the fewest links, as on all custom fabrics. They may differ
    /// from the routes of this fabric.
    ///
    /// Raises
    /// ------
    /// FabricError
    ///     The fabric has neither links that messages share nor a graph of fibres, or more than
    ///     16384 ranks and switches.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> custom = opticoll.Fabric("crossbar:ranks=2,rate=40Gb/s").as_custom()
    /// >>> custom.spec.split(",")[:3]
    /// ['custom:ranks=2', 'switches=1', 'links=0-2@40Gb/s+1-2@40Gb/s']
    fn as_custom(&self, py: Python<'_>) -> PyResult<Fabric> {
        let family = self.fabric.record().name;
        let custom = interrupt::run(py, || match self.wired() {
            Some(network) => Custom::from_network(network),
            None => Err(fabric::FabricError::Graph {
                problem: format!("a {family} has circuits, not links that messages share"),
                link: None,
            }),
        })?;
        let fabric = fabric::Fabric::new(custom.or_raise()?);
        Ok(Fabric { fabric })
    }

    /// Returns the ranks, switches and links of an electrical fabric as a NetworkX graph.
    ///
    /// All functions with a parameter `fabric` accept such a graph.
    ///
    /// Nodes have the attribute `kind` (`rank` or `switch`). Edges have the attributes `rate` and
    /// `latency`. The graph is directed if some links lead in one direction only.
    ///
    /// Raises
    /// ------
    /// FabricError
    ///     The fabric has no links that messages share.
    /// UsageError
    ///     The package `networkx` is not installed.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> graph = opticoll.Fabric("crossbar:ranks=2,rate=40Gb/s").to_networkx()
    /// >>> graph.edges["rank 0", "switch"]
    /// {'rate': '40Gb/s', 'latency': '0s'}
    /// >>> opticoll.plan("all_reduce", graph, "ring").fabric.family
    /// 'custom'
    #[pyo3(signature = () -> "networkx.Graph")]
    fn to_networkx<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let graphs = slf.py().import("opticoll.formats.node_link")?;
        graphs.call_method1("to_networkx", (slf,))
    }

    /// The fabric as it was before all failures.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> opticoll.Fabric("torus:dims=4x4", without="rank 5").intact.ranks
    /// 16
    #[getter]
    fn intact(&self) -> PyResult<Fabric> {
        let records = self.fabric.record().all_options();
        let broken = records
            .iter()
            .map(|option| &option.record)
            .filter(|record| record.role == Role::Broken);
        let spec = broken.fold(self.fabric.spec(), |spec, record| spec.without(record.name));
        let fabric = fabric::Fabric::parse(&spec.to_string()).or_raise()?;
        Ok(Fabric { fabric })
    }

    /// The options that are set, by name, each with its value, unit and meaning.
    ///
    /// Times are in picoseconds (unit `ps`), rates in bits per second (unit `bit/s`).
    #[getter]
    fn options(&self) -> BTreeMap<String, OptionValue> {
        let records = self.fabric.record().all_options();
        let described = |(name, text): (&str, &str)| {
            let (value, unit) = parse_value(text);
            let record = records.iter().find(|option| option.record.name == name);
            let value = OptionValue {
                value,
                unit,
                meaning: record.map_or("", |option| option.record.meaning),
            };
            (name.to_owned(), value)
        };
        self.fabric.spec().options().map(described).collect()
    }

    /// Returns the value of an option, or None if the option is not set.
    ///
    /// Times are in picoseconds, rates in bits per second.
    ///
    /// Parameters
    /// ----------
    /// name : str
    ///     The option, such as `rate`.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> opticoll.Fabric("torus:dims=4x4").option("rate")
    /// 100000000000
    #[pyo3(signature = (name) -> "Any")]
    fn option(&self, name: &str) -> Option<OptionContent> {
        self.fabric
            .spec()
            .option(name)
            .map(|text| parse_value(text).0)
    }

    /// The fields of light that each transfer on this fabric has, with the names of their values.
    ///
    /// A field without names has numbers as values. Electrical fabrics have no fields.
    #[getter]
    fn light_fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        for field in self.fabric.light().map_or(&[][..], |kind| kind.fields) {
            fields.set_item(field.name, field.names.to_vec())?;
        }
        Ok(fields)
    }

    /// The rate at which a rank can send on all of its links or transmitters at once, in bits per
    /// second; the minimum over all ranks.
    #[getter]
    fn injection_bandwidth(&self, py: Python<'_>) -> u128 {
        py.detach(|| self.fabric.injection_bandwidth())
    }

    /// The time in picoseconds of a message without bytes from rank 0 to the farthest rank.
    #[getter]
    fn latency_ps(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.fabric.latency().ps())
    }

    /// The default policy, which defines the reconfigurations that cost time; None on an electrical
    /// fabric.
    #[getter]
    fn policy(&self) -> Option<&'static str> {
        let has_circuits = self.fabric.circuits().is_some();
        has_circuits.then(|| simulate::default_policy(&self.fabric).name())
    }

    /// The names of the links of an electrical fabric or of a graph of fibres, as a list indexed by
    /// link.
    #[getter]
    fn link_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        interrupt::run(py, || match self.wired() {
            None => Vec::new(),
            Some(network) => (0..network.links().len() as u32)
                .map(|link| network.link_name(link))
                .collect(),
        })
    }

    /// Returns the name of a link of an electrical fabric or of a graph of fibres, or None if there
    /// is no such link.
    ///
    /// Parameters
    /// ----------
    /// link : int
    ///     Number of the link, from 0 to `link_count` - 1.
    ///
    /// Raises
    /// ------
    /// OverflowError
    ///     The number is negative or not below 2^32.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> opticoll.Fabric("torus:dims=4x4").link_name(0)
    /// 'rank 0 -> rank 1'
    fn link_name(&self, link: u32) -> Option<String> {
        let network = self.wired()?;
        ((link as usize) < network.links().len()).then(|| network.link_name(link))
    }

    /// The names of the ranks and then of the switches of an electrical fabric or of a graph of
    /// fibres, as a list; empty for other fabrics.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> opticoll.Fabric("crossbar:ranks=2").vertex_names
    /// ['rank 0', 'rank 1', 'switch']
    #[getter]
    fn vertex_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        interrupt::run(py, || match self.wired() {
            None => Vec::new(),
            Some(network) => (0..opticoll::network::vertices(network))
                .map(|vertex| network.vertex_name(vertex))
                .collect(),
        })
    }

    /// The number of vertices, directly after the ranks, that are ranks of the whole fabric, but
    /// failed (`without`) or take no part (`members`).
    ///
    /// Data or light of other ranks pass them.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> part = opticoll.Fabric("wdm_line:ranks=3,wavelengths=1,without=1")
    /// >>> part.ranks, part.idle_ranks, part.vertex_names
    /// (2, 1, ['rank 0', 'rank 1 (node 2)', 'node 1'])
    #[getter]
    fn idle_ranks(&self) -> u32 {
        self.wired().map_or(0, Network::idle_ranks)
    }

    /// The circuit switches of a fabric, as a list of (name, pairs of connected ports).
    ///
    /// Only an `ocs_torus` has switches in this list. They are set before a plan starts.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> torus = opticoll.Fabric("ocs_torus:dims=4x4x8,spares=1")
    /// >>> len(torus.switches), torus.switch_ports
    /// (48, 6)
    /// >>> torus.switches[-1]
    /// ('switch z 3.3', [('cube 0 +z', 'cube 1 -z'), ('cube 1 +z', 'cube 0 -z')])
    #[getter]
    fn switches(&self, py: Python<'_>) -> PyResult<Vec<JoinedPorts>> {
        interrupt::run(py, || {
            let switches = self.fabric.switches();
            let switches = switches
                .map(|switches| (switches, 0..switches.count()))
                .into_iter();
            let numbered = switches
                .flat_map(|(switches, indices)| indices.map(move |switch| (switches, switch)));
            numbered
                .map(|(switches, switch)| {
                    let name = |port| switches.port_name(switch, port);
                    let joined = switches.joined(switch).into_iter();
                    let joined = joined.map(|(from, to)| (name(from), name(to))).collect();
                    (switches.switch_name(switch), joined)
                })
                .collect()
        })
    }

    /// The rates of the links of an electrical fabric, or of the channels of the links of a graph
    /// of fibres, in bits per second, as a list indexed by link.
    #[getter]
    fn link_rates(&self) -> Vec<u64> {
        let links = self.wired().map_or(&[][..], |network| network.links());
        links
            .iter()
            .map(|link| link.rate.bits_per_second())
            .collect()
    }

    /// The parts of the fabric, as a list with a tuple for each kind of part.
    ///
    /// A tuple has the component; the place, which is empty if the component has one place only;
    /// the rate of the part or of each of its ports in bits per second, or None; the number of
    /// ports of a switch, or None; and the number of parts.
    #[getter]
    fn bill(&self, py: Python<'_>) -> PyResult<Vec<BillEntry>> {
        let bill = interrupt::run(py, || self.fabric.bill())?;
        Ok(bill_entries(&bill))
    }

    /// The source and destination of each link of an electrical fabric or of a graph of fibres, as
    /// a list indexed by link; None if they are unknown.
    ///
    /// Sources and destinations are vertices; ranks have the lowest numbers, and switches follow.
    #[getter]
    fn link_ends(&self) -> Option<Vec<(u32, u32)>> {
        let network = self.wired()?;
        let links = 0..network.links().len() as u32;
        links.map(|link| network.ends(link)).collect()
    }

    /// The positions at which figures draw the parts of the fabric: a dictionary with some of these
    /// entries.
    ///
    /// - `places`: for an electrical fabric, the x (to the right) and y (upwards) of each vertex,
    ///   ranks first; float64 array of shape (vertices, 2).
    /// - `around`: for an electrical fabric, the links that lead from one side of the picture to
    ///   the other; uint32 array.
    /// - `nodes`: for a grid of switches, the node of each rank; uint32 array of shape (ranks,).
    /// - `dark`: for a grid of switches, (rank, plane) for each plane in which no light reaches a
    ///   rank; list.
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

    /// Returns the links of a message between two ranks of an electrical fabric: a list of link
    /// numbers, in order.
    ///
    /// Parameters
    /// ----------
    /// source : int
    ///     Rank that sends.
    /// destination : int
    ///     Rank that receives.
    ///
    /// Raises
    /// ------
    /// FabricError
    ///     The fabric is not electrical, or the ranks are equal or do not exist.
    ///
    /// Examples
    /// --------
    /// >>> import opticoll
    /// >>> torus = opticoll.Fabric("torus:dims=4x4")
    /// >>> [torus.link_name(link) for link in torus.route(0, 5)]
    /// ['rank 0 -> rank 1', 'rank 1 -> rank 5']
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

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.spec().into_pyobject(py)?.hash()
    }

    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, (String,))> {
        Ok((py.get_type::<Fabric>().into_any().unbind(), (self.spec(),)))
    }
}

getters! { Fabric |self|
    /// The specification with all options that are set, which `Fabric` accepts.
    spec: String = self.fabric.to_string();
    /// The name of the family, such as `wdm_ring`.
    family: &'static str = self.fabric.family();
    /// Sentence on the components of the fabric.
    words: String = self.fabric.description();
    /// The number of ranks.
    ranks: u32 = self.fabric.ranks();
    /// The name of the accelerator of a rank, such as `h100`; None if the fabric does not state it.
    accelerator: Option<&'static str> = self.fabric.accelerator();
    /// The name of the simulator that times plans by default.
    simulator: &'static str = simulate::default_simulator(&self.fabric).name;
    /// True if messages share links, as on all fabrics without circuits.
    electrical: bool = self.fabric.network().is_some();
    /// The number of directed links of an electrical fabric or of a graph of fibres; 0 for other
    /// fabrics.
    link_count: usize = self.wired().map_or(0, |network| network.links().len());
    /// Work of each switch of an electrical fabric on data that pass: `none`, `multicast`, `reduce`
    /// or `reduce+multicast`.
    switch_work: Vec<&'static str> = self.fabric.network().map_or_else(Vec::new, |network| {
        let switches = network.ranks()..opticoll::network::vertices(network);
        switches.map(|vertex| network.switch_work(vertex).name()).collect()
    });
    /// The number of ports of a rank on the `circuit_switch` that joins the ranks, or of a server
    /// on the one that joins servers; None without such a switch.
    circuit_ports: Option<u32> = {
        let servers = self.fabric.downcast::<ServersOnLight>();
        let joining = servers.map_or(&self.fabric, |servers| &servers.outside().fabric);
        joining.downcast::<CircuitSwitch>().map(|switch| switch.ports)
    };
    /// The number of consecutive ranks of a server or group; None if ranks form no groups.
    group_size: Option<u32> = self.fabric.group_size();
    /// The number of ports of each circuit switch; 0 if the fabric has no circuit switches.
    switch_ports: u32 = self.fabric.switches().map_or(0, |switches| switches.ports());
}
