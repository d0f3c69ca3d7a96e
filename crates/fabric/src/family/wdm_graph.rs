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

mod bill;
mod circuits;
mod loss;
mod presets;
mod reach;
mod ring;
mod shapes;

use std::collections::BTreeMap;

use crate::bill::Bill;
use crate::drawing::Drawing;
use crate::fabric::channels;
use crate::fabric::channels::Channel;
use crate::fabric::light;
pub use crate::fabric::light::CONVERTED;
use crate::fabric::light::{Light, LightField, LightKind, light_numbers};
use crate::fabric::loss::LossBudget;
use crate::fabric::options;
use crate::fabric::options::DefaultRule::*;
use crate::fabric::options::{FabricOption, Options, declare};
use crate::fabric::part::{self, Part};
use crate::fabric::transmission;
use crate::fabric::{Circuits, Fabric, FabricError, FamilyRecord, Machine, Transmission};
use crate::family::{custom, torus, tree};
use crate::network::Network;
pub use loss::NoiseBudget;
use opticoll_base::names::plural;
use opticoll_base::spec::{OptionRecord, Role, Spec, SpecError};
use opticoll_base::units::{Rate, Time};
pub use ring::RingAndGraph;

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
    /// Time model of a lightpath at the highest rate of the graph.
    pub transmission: Transmission,
    /// True if vertices can convert passing light to any wavelength.
    pub converters: bool,
    /// Number of converters of every vertex; `None` if it is not limited.
    pub converters_per_vertex: Option<u32>,
    /// True if a vertex can send passing light on over several links, and a rank can receive a
    /// share of passing light (drop-and-continue). One lightpath then delivers data to several
    /// ranks.
    pub multicast: bool,
    /// Maximum number of lightpaths that a rank sends at a time; `None` if only the channels of its
    /// links limit the number.
    pub transmitters: Option<u32>,
    /// Maximum number of lightpaths that a rank receives at a time, as for `transmitters`.
    pub receivers: Option<u32>,
    /// Maximum number of links of a lightpath, if there is a limit: the option `reach`, or a limit
    /// that follows from loss or noise.
    pub reach: Option<u32>,
    /// Value of the option `reach`.
    stated_reach: Option<u32>,
    /// Maximum rates of lightpaths, as pairs (number of links, rate) in ascending order of links. A
    /// lightpath has the rate of the first pair with at least its number of links. Empty if the
    /// length does not limit the rate.
    pub reach_rates: Vec<(u32, Rate)>,
    /// Channels that are out of order, sorted.
    pub dead: Vec<Channel>,
    /// Reduced rate of each degraded channel, on all links.
    pub slower: BTreeMap<Channel, Rate>,
    /// Powers and losses of light; `None` if not given.
    pub budget: Option<LossBudget>,
    /// Noise of light; `None` if not given.
    pub noise: Option<NoiseBudget>,
    /// Number of working channels that lead from each rank, indexed by rank.
    leaving: Vec<u32>,
    /// Number of working channels that lead to each rank, indexed by rank.
    entering: Vec<u32>,
    /// Number of hosts at each rank. Hosts request lightpaths on demand; plans need one host.
    pub hosts: u32,
}

/// Format of the light of a transfer: fibre and wavelength on every link of its route.
pub const LIGHT: LightKind = LightKind {
    // Only servers joined by light have a packet network. On a plain fabric, the light has a fibre
    // that does not exist.
    words: &[(light::PACKET, Light(0xff_ffff))],
    form: "{fibre}.{wavelength}",
    example: "0.5",
    relays: false,
    fields: &[
        LightField::new(
            "fibre",
            8,
            "index of the fibre among the parallel fibres of every link of the route",
        )
        .shifts(),
        LightField::new(
            "wavelength",
            16,
            "wavelength on every link of the route; * if converters choose it",
        )
        .star()
        .shifts(),
    ],
};

light_numbers! {
    /// Light of a transfer.
    pub struct GraphLight {
        /// Index of the fibre among the parallel fibres of every link.
        pub fibre: u8 = 8,
        /// Wavelength, or [`CONVERTED`].
        pub wavelength: u16 = 16,
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
    Ladder,
}

impl Family {
    const ALL: [Family; 7] = [
        Family::Graph,
        Family::Line,
        Family::Tree,
        Family::Hypercube,
        Family::Torus,
        Family::Mesh,
        Family::Ladder,
    ];

    fn record(self) -> &'static FamilyRecord {
        match self {
            Family::Graph => &GRAPH,
            Family::Line => &LINE,
            Family::Tree => &TREE,
            Family::Hypercube => &HYPERCUBE,
            Family::Torus => &TORUS,
            Family::Mesh => &MESH,
            Family::Ladder => &LADDER,
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
            Family::Ladder => &torus::LADDER,
        }
    }
}

const CITATION: &str = "Mukherjee, Optical WDM Networks, 2006; Zang, Jue and Mukherjee, A Review \
    of Routing and Wavelength Assignment, Optical Networks Magazine 2000";

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

pub use shapes::{HYPERCUBE, LADDER, LINE, MESH, TORUS, TREE};

/// Returns the family of fibres over the links of an electrical family, if there is one.
pub fn over(electrical: &str) -> Option<&'static str> {
    let mut families = Family::ALL.into_iter();
    let family = families.find(|family| family.links().name == electrical);
    family.map(|family| family.record().name)
}

/// Maximum number of wavelengths of a fibre; plans number wavelengths with 16 bits.
const MAX_WAVELENGTHS: u32 = 4096;

/// Maximum number of fibres of a link; plans number fibres with 8 bits.
const MAX_FIBRES: u32 = 64;

/// Maximum number of hosts of a rank.
const MAX_HOSTS: u32 = 1 << 20;

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
            let slower = items_of_links(spec);
            let links = links.without(part::DEGRADED.name);
            let links = match slower.is_empty() {
                true => links,
                false => links.with(part::DEGRADED.name, slower.join("+")),
            };
            Part::with_passing_light((links_record.build)(&whole)?, &links)
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
    let sharings = [("none", false), ("drop_and_continue", true)];
    declare! { options of WdmGraph;
        wavelengths "wavelengths" count(MAX_WAVELENGTHS, Required)
            "wavelengths per directed fibre";
        fibres "fibres" count(MAX_FIBRES, Printed(1)) "fibres per link and direction";
        reconfiguration "reconfiguration" value(Printed(Time::from_ps(25_000_000))) Reconfiguration
            "time to reconfigure circuits" source "Dai et al., OpTree, section IV.A";
    }
    let conversion =
        transmission::declare_conversion(options, |graph: &WdmGraph| graph.transmission)?;
    let (converters, converters_per_vertex) = options.option(
        OptionRecord::new(
            "converters",
            "wavelength converters of every rank and switch",
        )
        .range("none, full, or their number")
        .default("none"),
        |spec| match spec.option("converters") {
            None | Some("none") => Ok((false, None)),
            Some("full") => Ok((true, None)),
            Some(_) => match spec.count("converters", 1, u32::MAX) {
                Ok(count) => Ok((true, count)),
                Err(_) => Err(spec
                    .refuse(
                        "converters",
                        "must be `none`, `full`, or a number such as 4",
                    )
                    .into()),
            },
        },
        |converters| match converters {
            (false, _) => None,
            (true, None) => Some("full".to_owned()),
            (true, Some(count)) => Some(count.to_string()),
        },
        |graph: &WdmGraph| (graph.converters, graph.converters_per_vertex),
    )?;
    declare! { options of WdmGraph;
        multicast "multicast" word(&sharings, Silent(false))
            "light trees: with drop_and_continue, light may branch at every vertex, and ranks take \
             a share of passing light";
        transmitters "transmitters" limit(Some("all"), MAX_WAVELENGTHS)
            "maximum number of lightpaths that a rank sends at a time";
        receivers "receivers" limit(Some("all"), MAX_WAVELENGTHS)
            "maximum number of lightpaths that a rank receives at a time";
    }
    let (reach, reach_rates) = options.option(
        OptionRecord::new(
            "reach",
            "maximum number of links of a lightpath; with rates, the rate of each length",
        )
        .range("8, or 8@100Gb/s; several lengths with rates joined by +")
        .default("none"),
        reach::read,
        reach::print,
        |graph: &WdmGraph| (graph.stated_reach, graph.reach_rates.clone()),
    )?;
    declare! { options of WdmGraph;
        dead "dead" list(
            |spec| channels::read_dead(spec, (fibres, wavelengths)),
            |dead| channels::print_dead(dead, fibres))
            Broken "failed wavelengths" range "5, or on one fibre 1.5; several joined by +";
        hosts "hosts" count(MAX_HOSTS, Silent(1))
            "hosts at each rank, which request lightpaths on demand";
    }
    let full = rates(&links).max().unwrap_or(Rate::gigabits(1));
    // Without links, every rate of a wavelength is lower.
    let fastest = rates(&links).max().unwrap_or(Rate::gigabits(u32::MAX));
    let slower = options.several(
        [] as [OptionRecord; 0],
        |spec| Ok(read_slower(spec, (fibres, wavelengths), fastest)?),
        |spec, slower| {
            let links = spec.option(part::DEGRADED.name).map(str::to_owned);
            let items: Vec<String> = links
                .into_iter()
                .chain(channels::slower_texts(slower))
                .collect();
            match items.is_empty() {
                true => spec,
                false => spec
                    .without(part::DEGRADED.name)
                    .with(part::DEGRADED.name, items.join("+")),
            }
        },
        |graph: &WdmGraph| graph.slower.clone(),
    )?;
    let (budget, noise) = loss::declared(options, links.network())?;
    let one_hop = reach_rates.first().map_or(full, |&(_, rate)| rate);
    let graph = WdmGraph {
        record,
        wavelengths,
        fibres,
        reconfiguration,
        transmission: Transmission {
            rate: full.min(one_hop),
            conversion: conversion.conversion,
            flit: conversion.flit,
            packet: conversion.packet,
        },
        converters,
        converters_per_vertex,
        multicast,
        transmitters,
        receivers,
        reach,
        stated_reach: reach,
        reach_rates,
        dead,
        slower,
        hosts,
        budget,
        noise,
        leaving: Vec::new(),
        entering: Vec::new(),
        links: links.clone(),
    };
    Ok(graph.over(links))
}

/// Returns the rates of the links of a fabric.
fn rates(links: &Fabric) -> impl Iterator<Item = Rate> {
    let links = links.network().into_iter().flat_map(Network::links);
    links.map(|link| link.rate)
}

/// Returns whether an item of the option `degraded` names a wavelength: `w5@10Gb/s`, `w1.5@10Gb/s`.
fn names_wavelength(item: &str) -> bool {
    let name = item.split('@').next().unwrap_or(item).trim();
    let number = channels::wavelength_named(name);
    number.is_some_and(|number| {
        number
            .bytes()
            .all(|letter| letter.is_ascii_digit() || letter == b'.')
    })
}

/// Returns the items of the option `degraded`.
fn degraded_items(spec: &Spec) -> impl Iterator<Item = &str> {
    let list = spec.option(part::DEGRADED.name).into_iter();
    list.flat_map(|list| list.split('+')).map(str::trim)
}

/// Returns the items of the option `degraded` that do not name wavelengths.
fn items_of_links(spec: &Spec) -> Vec<&str> {
    degraded_items(spec)
        .filter(|item| !names_wavelength(item))
        .collect()
}

/// Parses the slower wavelengths in the option `degraded`. Keeps only the lowest rate of each
/// channel.
fn read_slower(
    spec: &Spec,
    counts: (u32, u32),
    full: Rate,
) -> Result<BTreeMap<Channel, Rate>, SpecError> {
    let items: Vec<&str> = degraded_items(spec)
        .filter(|item| names_wavelength(item))
        .collect();
    let mut slower = BTreeMap::new();
    if items.is_empty() {
        return Ok(slower);
    }
    let option = part::DEGRADED.name;
    let own = Spec::new(spec.name()).with(option, items.join("+"));
    for (name, rate) in part::read_degraded(&own, |name| Ok((name.to_owned(), full)))? {
        let wavelength = channels::wavelength_named(&name).unwrap_or_default();
        for channel in channels::parse(spec, option, wavelength, counts)? {
            let slowest = slower.entry(channel).or_insert(rate);
            *slowest = rate.min(*slowest);
        }
    }
    Ok(slower)
}

impl WdmGraph {
    /// Returns the fibres: a network with one link for each direction between two vertices.
    pub fn fibre_links(&self) -> &dyn Network {
        match self.links.network() {
            Some(network) => network,
            None => unreachable!("every family of links has a network"),
        }
    }

    /// Returns the graph with the same options over other links.
    fn over(self, links: Fabric) -> WdmGraph {
        let mut graph = WdmGraph { links, ..self };
        let channels = graph.channels();
        let ranks = graph.ranks() as usize;
        let (mut leaving, mut entering) = (vec![0u32; ranks], vec![0u32; ranks]);
        for (from, to, both_ways) in graph.fibre_links().wiring().ends() {
            let ends = [(from, to), (to, from)];
            for &(from, to) in &ends[..1 + usize::from(both_ways)] {
                for (counts, vertex) in [(&mut leaving, from), (&mut entering, to)] {
                    if let Some(count) = counts.get_mut(vertex as usize) {
                        *count = count.saturating_add(channels);
                    }
                }
            }
        }
        (graph.leaving, graph.entering) = (leaving, entering);
        let farthest = graph.budget.as_ref().map(|budget| {
            loss::farthest(
                budget,
                graph.noise.as_ref(),
                loss::lengths(graph.fibre_links()),
            )
        });
        let limits = graph.stated_reach.into_iter().chain(farthest);
        graph.reach = limits.filter(|&links| links < u32::MAX).min();
        graph
    }

    /// Returns the electrical fabric with the same ranks, switches, links and routes.
    pub fn electrical(&self) -> &Fabric {
        &self.links
    }

    /// Returns the number of usable channels of a link, without dead channels.
    pub fn channels(&self) -> u32 {
        self.fibres * self.wavelengths - self.dead.len() as u32
    }

    /// Returns (fibre, wavelength) of the usable channel with index `index`. Usable channels are
    /// numbered from 0, fibre by fibre.
    pub fn channel(&self, index: u32) -> (u8, u16) {
        channels::usable(index, self.wavelengths, &self.dead)
    }

    /// Returns the number of usable wavelengths of the fibre with index `fibre`.
    pub fn wavelengths_of(&self, fibre: u32) -> u32 {
        channels::usable_wavelengths(fibre, self.wavelengths, &self.dead)
    }

    /// Returns the number of usable channels that lead from `rank`, over all its links.
    pub fn channels_from(&self, rank: u32) -> u32 {
        self.leaving[rank as usize]
    }

    /// Returns the number of usable channels that lead to `rank`, over all its links.
    pub fn channels_to(&self, rank: u32) -> u32 {
        self.entering[rank as usize]
    }

    /// Returns the rate of a lightpath over `route`: the minimum of the rates of its links, of its
    /// wavelength, and of its length. If converters may change the wavelength, the minimum over all
    /// wavelengths of the fibre applies.
    pub fn rate_of(&self, route: &[u32], light: GraphLight) -> Rate {
        let links = self.fibre_links().links();
        let rates = route.iter().filter_map(|&link| links.get(link as usize));
        let rates = rates.map(|link| link.rate);
        let slower = self.slower.iter().filter(|(channel, _)| {
            let is_on_channel =
                light.wavelength == CONVERTED || channel.wavelength == u32::from(light.wavelength);
            is_on_channel && channel.fibre == u32::from(light.fibre)
        });
        let slower = slower.map(|(_, rate)| *rate);
        let by_length = self
            .reach_rates
            .iter()
            .find(|(links, _)| *links as usize >= route.len())
            .map(|(_, rate)| *rate);
        let rate = rates.chain(slower).chain(by_length).min();
        rate.unwrap_or(self.transmission.rate)
    }

    /// Returns the total rate, in bits per second, at which each rank can send over one-hop
    /// lightpaths, limited by its transmitters.
    fn send_rates(&self) -> Vec<u128> {
        let network = self.fibre_links();
        let dead = |channel: &Channel| self.dead.binary_search(channel).is_ok();
        let slower = self.slower.iter().filter(|(channel, _)| !dead(channel));
        let slower: Vec<Rate> = slower.map(|(_, rate)| *rate).collect();
        let at_full_rate = self.channels() - slower.len() as u32;
        let one_hop = self.reach_rates.first().map(|(_, rate)| *rate);
        // Pairs (rate, number of channels) of each rank.
        let mut channels = vec![Vec::new(); network.ranks() as usize];
        for (link, (from, to, both_ways)) in network.links().iter().zip(network.wiring().ends()) {
            let rate = one_hop.map_or(link.rate, |rate| rate.min(link.rate));
            let ends = [from, to];
            for &rank in &ends[..1 + usize::from(both_ways)] {
                if let Some(channels) = channels.get_mut(rank as usize) {
                    channels.push((rate, at_full_rate));
                    channels.extend(slower.iter().map(|&slow| (slow.min(rate), 1)));
                }
            }
        }
        let total = |mut channels: Vec<(Rate, u32)>| {
            channels.sort_unstable_by_key(|(rate, _)| std::cmp::Reverse(*rate));
            let mut free = self.transmitters.unwrap_or(u32::MAX);
            let taken = channels.iter().map(|&(rate, count)| {
                let taken = count.min(free);
                free -= taken;
                u128::from(rate.bits_per_second()) * u128::from(taken)
            });
            taken.sum()
        };
        channels.into_iter().map(total).collect()
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

    fn bill(&self) -> Bill {
        let given = self.spec();
        let whole = PART_OPTIONS
            .iter()
            .fold(given.clone(), |spec, option| spec.without(option.name));
        match (self.record().build)(&whole) {
            Ok(fabric) if whole != given => fabric.bill(),
            _ => self.bill_of_whole(),
        }
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

    /// Returns the minimum, over all ranks, of the rate at which a rank can send: the rates of the
    /// channels of its links, or of the fastest of them if it has fewer transmitters.
    fn injection_bandwidth(&self) -> u128 {
        self.send_rates().into_iter().min().unwrap_or(0)
    }

    /// Returns the graph on which only `members` are ranks. Light still passes the other vertices.
    fn part(&self, members: &[u32]) -> Result<Fabric, FabricError> {
        let nodes: Vec<u32> = members.iter().map(|&rank| self.node(rank)).collect();
        let spec = self.spec().without(part::MEMBERS.name);
        let nodes = part::joined(&nodes, u32::to_string);
        (self.record().build)(&spec.with(part::MEMBERS.name, nodes))
    }

    fn link_of_whole(&self, link: u32) -> u32 {
        self.links.link_of_whole(link)
    }

    fn link_in_part(&self, whole: u32) -> Option<u32> {
        self.links.link_in_part(whole)
    }

    fn planning_alternatives(&self) -> Vec<Fabric> {
        let mut links = self.links.planning_alternatives();
        if links.is_empty() && !self.slower.is_empty() {
            links.push(self.links.clone());
        }
        let at_full_rate = WdmGraph {
            slower: BTreeMap::new(),
            ..self.clone()
        };
        let mut graphs = vec![at_full_rate];
        if !self.slower.is_empty() {
            let mut without_slower = graphs[0].clone();
            without_slower.dead.extend(self.slower.keys());
            without_slower.dead.sort_unstable();
            without_slower.dead.dedup();
            if without_slower.channels() > 0 {
                graphs.push(without_slower);
            }
        }
        let over = |links: Fabric| {
            let graphs = graphs.iter().cloned();
            graphs.map(move |graph| Fabric::new(graph.over(links.clone())))
        };
        links.into_iter().flat_map(over).collect()
    }

    fn circuits(&self) -> Option<&dyn Circuits> {
        Some(self)
    }

    fn drawing(&self) -> Option<Drawing> {
        self.links.drawing()
    }
}
