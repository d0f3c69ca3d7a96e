//! Optical fibres in any arrangement, with several wavelengths on each fibre.
//!
//! Vertices are ranks, which send and receive, and switches, which only let light pass. Light also
//! passes ranks. A link has `fibres` fibres in each direction, and each fibre carries
//! `wavelengths` channels. A lightpath occupies one channel of one fibre on every link of its
//! route. The wavelength stays the same along the route unless the vertices have converters.
//!
//! Each family of this module takes its links from a family of electrical fabrics. The options of
//! that family, such as `dims`, are also options of the optical family. The rate of a link is the
//! rate of one wavelength, and the latency of a link is its propagation delay.

mod circuits;
mod presets;

use crate::drawing::Drawing;
use crate::fabric::light::{Light, LightField, LightKind};
use crate::fabric::options;
use crate::fabric::options::DefaultRule::*;
use crate::fabric::options::{FabricOption, Options, declare};
use crate::fabric::part::{self, Part};
use crate::fabric::{Circuits, Fabric, FabricError, FamilyRecord, Machine};
use crate::family::{custom, torus, tree};
use crate::network::Network;
use opticoll_base::names::plural;
use opticoll_base::spec::{OptionRecord, Role, Spec};
use opticoll_base::units::Time;

/// Fibres with wavelengths, in any arrangement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WdmGraph {
    /// Record of the family, which determines the family of the links.
    record: Family,
    /// Electrical fabric with the same ranks, switches, links and routes.
    links: Fabric,
    /// Number of wavelengths per directed fibre.
    pub wavelengths: u32,
    /// Number of fibres per link and direction.
    pub fibres: u32,
    /// Time to reconfigure circuits.
    pub reconfiguration: Time,
    /// True if every vertex can convert passing light to any wavelength.
    pub converters: bool,
    /// Maximum number of lightpaths that a rank sends at a time; `None` if only the channels of its
    /// links limit the number.
    pub transmitters: Option<u32>,
    /// Maximum number of lightpaths that a rank receives at a time, as for `transmitters`.
    pub receivers: Option<u32>,
    /// Maximum number of links of a lightpath, if there is a limit.
    pub reach: Option<u32>,
}

/// Value of the field `wavelength` for light that converters may move to any wavelength.
pub const CONVERTED: u16 = u16::MAX;

/// Format of the light of a transfer: fibre and wavelength on every link of its route.
pub const LIGHT: LightKind = LightKind {
    words: &[],
    form: "{fibre}.{wavelength}",
    example: "0.5",
    relays: false,
    fields: &[
        LightField {
            name: "fibre",
            bits: 8,
            names: &[],
            star: false,
            shifts: true,
            meaning: "index of the fibre among the parallel fibres of every link of the route",
        },
        LightField {
            name: "wavelength",
            bits: 16,
            names: &[],
            star: true,
            shifts: true,
            meaning: "wavelength on every link of the route; * if converters choose it",
        },
    ],
};

/// Light of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GraphLight {
    /// Index of the fibre among the parallel fibres of every link.
    pub fibre: u8,
    /// Wavelength, or [`CONVERTED`].
    pub wavelength: u16,
}

impl From<Light> for GraphLight {
    fn from(light: Light) -> GraphLight {
        GraphLight {
            fibre: LIGHT.value(light, 0) as u8,
            wavelength: LIGHT.value(light, 1) as u16,
        }
    }
}

impl From<GraphLight> for Light {
    fn from(light: GraphLight) -> Light {
        Light(u32::from(light.fibre) << 16 | u32::from(light.wavelength))
    }
}

/// Family of this module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Graph,
    Line,
    Tree,
    Hypercube,
    Torus,
    Mesh,
}

impl Family {
    const ALL: [Family; 6] = [
        Family::Graph,
        Family::Line,
        Family::Tree,
        Family::Hypercube,
        Family::Torus,
        Family::Mesh,
    ];

    fn record(self) -> &'static FamilyRecord {
        match self {
            Family::Graph => &GRAPH,
            Family::Line => &LINE,
            Family::Tree => &TREE,
            Family::Hypercube => &HYPERCUBE,
            Family::Torus => &TORUS,
            Family::Mesh => &MESH,
        }
    }

    /// Returns the electrical family whose links carry the fibres.
    fn links(self) -> &'static FamilyRecord {
        match self {
            Family::Graph => &custom::RECORD,
            Family::Line => &torus::LINE,
            Family::Tree => &tree::RECORD,
            Family::Hypercube => &torus::HYPERCUBE,
            Family::Torus => &torus::TORUS,
            Family::Mesh => &torus::MESH,
        }
    }
}

const CITATION: &str = "Mukherjee, Optical WDM Networks, 2006; Zang, Jue and Mukherjee, A Review of \
    Routing and Wavelength Assignment, Optical Networks Magazine 2000";

/// Record of the family whose links are listed one by one.
pub const GRAPH: FamilyRecord = FamilyRecord {
    name: "wdm_graph",
    summary: "Ranks and light-only switches joined by fibres with wavelengths, in any arrangement",
    citation: CITATION,
    example: "wdm_graph:ranks=3,links=0-1+1-2,wavelengths=4",
    options: || options::list(&GRAPH, declared),
    build: |spec| options::read(spec, &GRAPH, declared).map(Fabric::new),
    presets: presets::PRESETS,
};

/// Record of the optical line.
pub const LINE: FamilyRecord = FamilyRecord {
    name: "wdm_line",
    summary: "Ranks in a line whose links are fibres with wavelengths",
    citation: CITATION,
    example: "wdm_line:ranks=16,wavelengths=8",
    options: || options::list(&LINE, declared),
    build: |spec| options::read(spec, &LINE, declared).map(Fabric::new),
    presets: &[],
};

/// Record of the optical tree.
pub const TREE: FamilyRecord = FamilyRecord {
    name: "wdm_tree",
    summary: "Tree with a rank at every vertex whose links are fibres with wavelengths (a star if \
        arity is ranks - 1)",
    citation: CITATION,
    example: "wdm_tree:ranks=15,arity=2,wavelengths=8",
    options: || options::list(&TREE, declared),
    build: |spec| options::read(spec, &TREE, declared).map(Fabric::new),
    presets: &[],
};

/// Record of the optical hypercube.
pub const HYPERCUBE: FamilyRecord = FamilyRecord {
    name: "wdm_hypercube",
    summary: "Hypercube of 2^d ranks whose links are fibres with wavelengths",
    citation: CITATION,
    example: "wdm_hypercube:ranks=16,wavelengths=8",
    options: || options::list(&HYPERCUBE, declared),
    build: |spec| options::read(spec, &HYPERCUBE, declared).map(Fabric::new),
    presets: &[],
};

/// Record of the optical torus.
pub const TORUS: FamilyRecord = FamilyRecord {
    name: "wdm_torus",
    summary: "Torus of any dimensions whose links are fibres with wavelengths",
    citation: CITATION,
    example: "wdm_torus:dims=4x4,wavelengths=8",
    options: || options::list(&TORUS, declared),
    build: |spec| options::read(spec, &TORUS, declared).map(Fabric::new),
    presets: &[],
};

/// Record of the optical mesh.
pub const MESH: FamilyRecord = FamilyRecord {
    name: "wdm_mesh",
    summary: "Mesh of any dimensions whose links are fibres with wavelengths",
    citation: CITATION,
    example: "wdm_mesh:dims=4x4,wavelengths=8",
    options: || options::list(&MESH, declared),
    build: |spec| options::read(spec, &MESH, declared).map(Fabric::new),
    presets: &[],
};

/// Maximum number of wavelengths of a fibre; plans number wavelengths with 16 bits.
const MAX_WAVELENGTHS: u32 = 4096;

/// Maximum number of fibres of a link; plans number fibres with 8 bits.
const MAX_FIBRES: u32 = 64;

/// Options of families with links that have no meaning for light.
const ELECTRICAL_ONLY: [&str; 5] = [
    "duplex",
    "sharing",
    "terminals",
    "terminal_rate",
    "terminal_latency",
];

/// Options that select a part of the links.
const PART_OPTIONS: [OptionRecord; 3] = [part::WITHOUT, part::DEGRADED, part::MEMBERS];

fn declared(options: &mut Options<'_, WdmGraph>) -> Result<WdmGraph, FabricError> {
    let name = options.family();
    let mut families = Family::ALL.into_iter();
    let record = families.find(|family| family.record().name == name);
    let record = record.unwrap_or(Family::Graph);
    let links_record = record.links();
    let own = (links_record.options)().into_iter();
    let own = own.filter(|option| !ELECTRICAL_ONLY.contains(&option.record.name));
    let records: Vec<FabricOption> = own.chain(PART_OPTIONS.map(FabricOption::from)).collect();
    let names: Vec<&str> = records.iter().map(|option| option.record.name).collect();
    let links = options.several(
        records,
        |spec| {
            let given = spec.options().filter(|(key, _)| names.contains(key));
            let links = given.fold(Spec::new(links_record.name), |links, (key, value)| {
                links.with(key, value)
            });
            let whole = PART_OPTIONS
                .iter()
                .fold(links.clone(), |spec, option| spec.without(option.name));
            Part::build((links_record.build)(&whole)?, &links)
        },
        |spec, links: &Fabric| {
            let printed = links.spec();
            let printed = printed
                .options()
                .map(|(key, value)| (key, value.to_owned()));
            printed.fold(spec.clone(), |spec, (key, value)| spec.with(key, value))
        },
        |graph| graph.links.clone(),
    )?;
    let conversions = [("none", false), ("full", true)];
    declare! { options of WdmGraph;
        wavelengths "wavelengths" count(MAX_WAVELENGTHS, Required)
            "wavelengths per directed fibre";
        fibres "fibres" count(MAX_FIBRES, Printed(1)) "fibres per link and direction";
        reconfiguration "reconfiguration" value(Printed(Time::from_ps(25_000_000))) Reconfiguration
            "time to reconfigure circuits" source "Dai et al., OpTree, section IV.A";
        converters "converters" word(&conversions, Silent(false))
            "wavelength converters at every rank and switch";
        transmitters "transmitters" limit(Some("all"), MAX_WAVELENGTHS)
            "maximum number of lightpaths that a rank sends at a time";
        receivers "receivers" limit(Some("all"), MAX_WAVELENGTHS)
            "maximum number of lightpaths that a rank receives at a time";
        reach "reach" limit(None, u32::MAX) "maximum number of links of a lightpath";
    }
    Ok(WdmGraph {
        record,
        links,
        wavelengths,
        fibres,
        reconfiguration,
        converters,
        transmitters,
        receivers,
        reach,
    })
}

impl WdmGraph {
    /// Returns the fibres: a network with one link for each direction between two vertices.
    pub fn fibre_links(&self) -> &dyn Network {
        match self.links.network() {
            Some(network) => network,
            None => unreachable!("every family of links has a network"),
        }
    }

    /// Returns the number of channels of a link: fibres times wavelengths.
    pub fn channels(&self) -> u32 {
        self.fibres * self.wavelengths
    }
}

impl Machine for WdmGraph {
    fn record(&self) -> &'static FamilyRecord {
        self.record.record()
    }

    fn spec(&self) -> Spec {
        options::print(self, self.record.record(), declared)
    }

    fn nature(&self) -> &'static str {
        "a graph of fibres, not a ring of lightpaths"
    }

    fn ranks(&self) -> u32 {
        self.fibre_links().ranks()
    }

    fn node(&self, rank: u32) -> u32 {
        self.links.node(rank)
    }

    fn description(&self) -> String {
        format!(
            "{}, {}, {} of {} each",
            plural(self.ranks() as usize, "rank"),
            plural(self.fibre_links().links().len(), "link"),
            plural(self.fibres as usize, "fibre"),
            plural(self.wavelengths as usize, "wavelength"),
        )
    }

    /// Returns the minimum, over all ranks, of the rate at which a rank can send: the rates of its
    /// links times the channels, or times the transmitters if these are fewer.
    fn injection_bandwidth(&self) -> u128 {
        let channels = u128::from(self.channels());
        let per_wavelength = self.links.injection_bandwidth();
        let all = per_wavelength * channels;
        let fastest = self.fibre_links().links().iter();
        let fastest = fastest
            .map(|link| u128::from(link.rate.bits_per_second()))
            .max();
        match (self.transmitters, fastest) {
            (Some(transmitters), Some(rate)) => all.min(u128::from(transmitters) * rate),
            _ => all,
        }
    }

    fn circuits(&self) -> Option<&dyn Circuits> {
        Some(self)
    }

    fn drawing(&self) -> Option<Drawing> {
        self.links.drawing()
    }
}
