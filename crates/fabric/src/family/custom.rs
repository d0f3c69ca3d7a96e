//! Custom networks: ranks, switches and links, as read from a file.
//!
//! Vertices are numbered ranks first, then switches. All vertices forward messages. A route has the
//! fewest links; the option `ties` selects one of several equally short routes (`Ties`).
//!
//! The option `links` describes a cable by its two vertices: `0-4` is a full-duplex cable (two
//! links), `0~4` a half-duplex cable (one link), `0>4` one link from 0 to 4. Values that differ
//! from the fabric's rate, latency and sharing follow after `@`, as in `0-4@400Gb/s@1us@per_flow`.
//! A length, as in `0-4@80km`, sets the latency to the propagation delay in a fibre of this length.
//! Several cables are joined by `+`.

mod positions;
mod working;

use positions::Position;
use working::Working;

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::drawing::Drawing;
use crate::fabric::options;
use crate::fabric::options::DefaultRule::*;
use crate::fabric::options::{Options, machine_over_links};
use crate::fabric::wiring;
use crate::fabric::{Fabric, FabricError, FamilyRecord};
use crate::network;
use crate::network::fewest_links::{FewestLinks, Ties};
use crate::network::translations::Translations;
use crate::network::{Duplex, InNetwork, Link, Network, Sharing, Wiring};
use opticoll_base::interrupt;
use opticoll_base::names::{is_printable, terminal_text};
use opticoll_base::spec::{OptionRecord, REQUIRED, Spec};
use opticoll_base::units::Length;

/// Maximum number of vertices. The routes to 2^15 destinations take 4 GiB.
const MAX_VERTICES: u32 = 1 << 15;

/// Directions in which a cable carries data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum CableKind {
    FullDuplex,
    HalfDuplex,
    OneWay,
}

const CABLE_KINDS: &[(char, CableKind)] = &[
    ('-', CableKind::FullDuplex),
    ('~', CableKind::HalfDuplex),
    ('>', CableKind::OneWay),
];

#[derive(Debug, Clone, PartialEq, Eq)]
struct Cable {
    from: u32,
    to: u32,
    kind: CableKind,
    link: Link,
    /// Length, if it is known.
    length: Option<Length>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Graph {
    ranks: u32,
    switches: u32,
    /// Names of all vertices, indexed by vertex; empty if the vertices have no names.
    names: Vec<String>,
    /// Positions of all vertices, indexed by vertex; empty if no position is known.
    positions: Vec<Option<Position>>,
    ties: Ties,
    default: Link,
    working: Working,
    cables: Vec<Cable>,
}

/// Custom network of ranks, switches and links.
#[derive(Debug, Clone)]
pub struct Custom {
    graph: Arc<Graph>,
    wiring: Arc<Wiring>,
    /// Index of each link among the links with the same two ends, indexed by link. `None` if no
    /// other link has these ends.
    cable_numbers: Arc<[Option<u32>]>,
    /// Length of each link, if it is known, indexed by link.
    lengths: Arc<[Option<Length>]>,
    routes: FewestLinks,
    translations: Option<Translations>,
}

/// Record of the family.
pub const RECORD: FamilyRecord = FamilyRecord {
    name: "custom",
    summary: "Ranks, switches and links from a file, routed over the fewest links",
    citation: "Dijkstra, A Note on Two Problems in Connexion with Graphs, 1959",
    example: "custom:ranks=2,switches=1,links=0-2+1-2,rate=100Gb/s",
    options: || options::list(&RECORD, declared),
    build: |spec| Custom::parse(spec).map(Fabric::new),
    presets: &[],
};

fn declared(options: &mut Options<'_, Custom>) -> Result<Graph, FabricError> {
    let missing = options.missing("links");
    let ties = [("spread", Ties::Spread), ("first", Ties::First)];
    let ranks = OptionRecord::new("ranks", "number of ranks");
    let ranks = options.count(ranks, MAX_VERTICES, Required, |custom| custom.graph.ranks)?;
    let switches = options.option(
        OptionRecord::new("switches", "number of switches")
            .range("0 to 16384 less the ranks")
            .default("0"),
        |spec| {
            Ok(spec
                .count("switches", 0, MAX_VERTICES - ranks)?
                .unwrap_or(0))
        },
        |switches| (*switches > 0).then(|| switches.to_string()),
        |custom| custom.graph.switches,
    )?;
    let vertices = ranks + switches;
    let links = OptionRecord::new(
        "links",
        "cables as pairs of vertex numbers, ranks first; @rate, @latency or @sharing if they \
        differ from the defaults; @80km for a length, which sets the latency",
    )
    .range("0-4 full duplex, 0~4 half duplex, 0>4 one way; joined by +")
    .default(REQUIRED);
    // The following options provide the values that the text of a cable omits.
    let texts = options.option(
        links,
        |spec| match spec.option("links") {
            None if ranks > 1 => Err(missing),
            links => Ok(links.unwrap_or("").to_owned()),
        },
        |links| (!links.is_empty()).then(|| links.clone()),
        |custom| {
            let graph = &custom.graph;
            let cables = graph.cables.iter().map(|cable| cable.text(&graph.default));
            cables.collect::<Vec<String>>().join("+")
        },
    )?;
    let names = options.option(
        OptionRecord::new("names", "names of all vertices")
            .range("names joined by +; other letters than a-z, 0-9, _.-/ as %XX")
            .default("none"),
        |spec| names(spec, vertices),
        |names: &Vec<String>| {
            let names: Vec<String> = names.iter().map(|name| encoded(name)).collect();
            (!names.is_empty()).then(|| names.join("+"))
        },
        |custom| custom.graph.names.clone(),
    )?;
    let positions = options.option(
        positions::OPTION,
        |spec| positions::read(spec, vertices),
        |positions: &Vec<_>| positions::print(positions),
        |custom| custom.graph.positions.clone(),
    )?;
    let record = OptionRecord::new(
        "ties",
        "choice among shortest routes: spread by destination, or the first link given",
    );
    let ties = options.word(record, &ties, Silent(Ties::Spread), |custom| {
        custom.graph.ties
    })?;
    let link = wiring::rate_and_latency(options, |custom: &Custom| custom.graph.default)?;
    let sharing = wiring::sharing(options, |custom| custom.graph.default.sharing)?;
    let default = Link { sharing, ..link };
    let cable_texts = texts.split('+').filter(|part| !part.is_empty());
    // Cables are parsed from a specification only, because a printed machine has its cables
    // already.
    let parts = cable_texts.take_while(|_| options.are_read());
    let cables = parts
        .enumerate()
        .map(|(number, text)| {
            cable(text, default, vertices).map_err(|problem| FabricError::Graph {
                problem: format!("link {number} (`{}`): {problem}", terminal_text(text)),
                link: Some(number),
            })
        })
        .collect::<Result<Vec<Cable>, FabricError>>()?;
    wiring::check_size(&RECORD, ranks.into(), cables.len() as u128)?;
    let working = options.option(
        working::OPTION,
        |spec| Working::read(spec, ranks..vertices),
        |working: &Working| working.text(ranks..vertices),
        |custom| custom.graph.working.clone(),
    )?;
    wiring::check_duplex(options, texts.contains('~'), working.work)?;
    Ok(Graph {
        ranks,
        switches,
        names,
        positions,
        ties,
        default,
        working,
        cables,
    })
}

impl PartialEq for Custom {
    /// Compares the options, which determine all other fields.
    fn eq(&self, other: &Custom) -> bool {
        self.graph == other.graph
    }
}

impl Eq for Custom {}

impl Custom {
    /// Builds the machine of a specification such as
    /// `custom:ranks=2,switches=1,links=0-2+1-2@400Gb/s`.
    pub fn parse(spec: &Spec) -> Result<Custom, FabricError> {
        Ok(Custom::from_graph(options::read(spec, &RECORD, declared)?))
    }

    /// Builds a custom network with the ranks, switches, links and vertex names of `network`, but
    /// with the routes of this family. Two equal links in opposite directions become one cable.
    ///
    /// # Errors
    /// The ends of the links are unknown, the network has more vertices than this family supports,
    /// or some switches add and others multicast.
    pub fn from_network(network: &dyn Network) -> Result<Custom, FabricError> {
        let mut cables: Vec<Cable> = Vec::new();
        let mut unpaired: FxHashMap<(u32, u32, Link, _), Vec<usize>> = FxHashMap::default();
        let ends = network.wiring().ends();
        for (index, ((from, to, is_half_duplex), link)) in ends.zip(network.links()).enumerate() {
            let length = network.length(index as u32);
            let back = unpaired.get_mut(&(to, from, *link, length));
            let forth = back.and_then(Vec::pop);
            if let Some(forth) = forth.filter(|_| !is_half_duplex) {
                cables[forth].kind = CableKind::FullDuplex;
                continue;
            }
            let kind = if is_half_duplex {
                CableKind::HalfDuplex
            } else {
                unpaired
                    .entry((from, to, *link, length))
                    .or_default()
                    .push(cables.len());
                CableKind::OneWay
            };
            cables.push(Cable {
                from,
                to,
                kind,
                link: *link,
                length,
            });
        }
        if network.wiring().ends().count() < network.links().len() {
            return Err(wrong("nothing is known of the ends of its links".into()));
        }
        let vertices = network::vertices(network);
        if vertices > MAX_VERTICES {
            let problem =
                format!("{vertices} ranks and switches are too many: at most {MAX_VERTICES}");
            return Err(wrong(problem));
        }
        let works = (network.ranks()..vertices).map(|vertex| network.switch_work(vertex));
        let working = Working::of(network.ranks(), works);
        let working = working.ok_or_else(|| wrong("its switches do different work".into()))?;
        Ok(Custom::from_graph(Graph {
            ranks: network.ranks(),
            switches: vertices - network.ranks(),
            names: (0..vertices)
                .map(|vertex| network.vertex_name(vertex))
                .collect(),
            positions: Vec::new(),
            ties: Ties::Spread,
            default: wiring::default_link(),
            working,
            cables,
        }))
    }

    fn from_graph(graph: Graph) -> Custom {
        let mut wiring = Wiring::new(Duplex::Half);
        let mut lengths = Vec::new();
        for cable in &graph.cables {
            interrupt::check();
            let (from, to, is_half_duplex) =
                (cable.from, cable.to, cable.kind == CableKind::HalfDuplex);
            wiring.add_link(from, to, cable.link, is_half_duplex);
            if cable.kind == CableKind::FullDuplex {
                wiring.add_link(to, from, cable.link, false);
                lengths.push(cable.length);
            }
            lengths.push(cable.length);
        }
        let vertices = graph.ranks + graph.switches;
        // Half-duplex links are excluded, because `Network::ends` returns only one of their two
        // directions.
        let has_half_duplex = graph
            .cables
            .iter()
            .any(|cable| cable.kind == CableKind::HalfDuplex);
        let links = graph.cables.iter().flat_map(|cable| cable.links());
        let translations = Translations::cyclic(graph.ranks, links).filter(|_| !has_half_duplex);
        Custom {
            translations,
            routes: FewestLinks::new(&wiring, vertices, graph.ranks, graph.ties),
            cable_numbers: cable_numbers(&wiring).into(),
            lengths: lengths.into(),
            wiring: Arc::new(wiring),
            graph: Arc::new(graph),
        }
    }
}

impl Cable {
    fn links(&self) -> impl Iterator<Item = (u32, u32, Link)> {
        let back = (self.kind != CableKind::OneWay).then_some((self.to, self.from, self.link));
        [(self.from, self.to, self.link)].into_iter().chain(back)
    }

    fn text(&self, default: &Link) -> String {
        let kind = CABLE_KINDS.iter().find(|(_, kind)| *kind == self.kind);
        let letter = kind.map_or('-', |(letter, _)| *letter);
        let mut text = format!("{}{letter}{}", self.from, self.to);
        if self.link.rate != default.rate {
            text += &format!("@{}", self.link.rate);
        }
        let propagation = self
            .length
            .and_then(|length| wiring::propagation(length).ok());
        if let Some(length) = self.length {
            text += &format!("@{length}");
        }
        if self.link.latency != propagation.unwrap_or(default.latency) {
            text += &format!("@{}", self.link.latency);
        }
        if self.link.sharing != default.sharing {
            text += &format!("@{}", self.link.sharing);
        }
        text
    }
}

/// Returns the index of each link among the links with the same two ends, indexed by link. The
/// index is `None` if no other link has these ends.
fn cable_numbers(wiring: &Wiring) -> Vec<Option<u32>> {
    let mut counts: FxHashMap<(u32, u32, bool), u32> = FxHashMap::default();
    let mut number = |ends| {
        let count = counts.entry(ends).or_insert(0);
        *count += 1;
        *count - 1
    };
    let numbers: Vec<u32> = wiring.ends().map(&mut number).collect();
    let number_if_several = |(number, ends)| (counts[&ends] > 1).then_some(number);
    numbers
        .into_iter()
        .zip(wiring.ends())
        .map(number_if_several)
        .collect()
}

fn wrong(problem: String) -> FabricError {
    FabricError::Graph {
        problem,
        link: None,
    }
}

/// Parses a cable such as `0-4@400Gb/s@1us`.
fn cable(text: &str, default: Link, vertices: u32) -> Result<Cable, String> {
    let mut parts = text.split('@');
    let ends = parts.next().unwrap_or("");
    let (letter, kind) = CABLE_KINDS
        .iter()
        .find(|(letter, _)| ends.contains(*letter))
        .ok_or("write the numbers of two vertices, such as 0-4, 0~4 or 0>4")?;
    let (from, to) = ends.split_once(*letter).unwrap_or((ends, ""));
    let vertex = |text: &str| match text.parse::<u32>() {
        Ok(vertex) if vertex < vertices => Ok(vertex),
        Ok(vertex) => Err(format!(
            "there is no vertex {vertex}; ranks and switches are 0 to {}",
            vertices - 1
        )),
        Err(_) => Err(format!(
            "`{}` is not the number of a vertex",
            terminal_text(text)
        )),
    };
    let (from, to) = (vertex(from)?, vertex(to)?);
    if from == to {
        return Err("a link joins two different vertices".into());
    }
    let mut link = default;
    let (mut length, mut latency) = (None, None);
    for value in parts {
        if let Some(sharing) = Sharing::ALL
            .into_iter()
            .find(|sharing| sharing.name() == value)
        {
            link.sharing = sharing;
        } else if value.contains("/s") || value.contains(['b', 'B']) {
            link.rate = value.parse().map_err(|error| format!("{error}"))?;
        } else if value.ends_with('m') {
            length = Some(value.parse().map_err(|error| format!("{error}"))?);
        } else {
            latency = Some(value.parse().map_err(|error| format!("{error}"))?);
        }
    }
    let propagation = length.map(wiring::propagation).transpose();
    let propagation = propagation.map_err(|error| format!("{error}"))?;
    link.latency = latency.or(propagation).unwrap_or(default.latency);
    Ok(Cable {
        from,
        to,
        kind: *kind,
        link,
        length,
    })
}

fn names(spec: &Spec, vertices: u32) -> Result<Vec<String>, FabricError> {
    let Some(text) = spec.option("names") else {
        return Ok(Vec::new());
    };
    let decode = |part: &str| {
        decoded(part).ok_or_else(|| wrong(format!("`{}` is not a name", terminal_text(part))))
    };
    let names = text
        .split('+')
        .map(decode)
        .collect::<Result<Vec<String>, FabricError>>()?;
    if names.len() != vertices as usize {
        let count = names.len();
        let problem = format!("{count} names for {vertices} ranks and switches");
        return Err(wrong(problem));
    }
    if let Some(name) = names.iter().find(|name| !name.chars().all(is_printable)) {
        let problem = format!(
            "the name `{}` holds characters that do not print",
            terminal_text(name)
        );
        return Err(wrong(problem));
    }
    let mut seen = BTreeSet::new();
    match names.iter().find(|name| !seen.insert(name.as_str())) {
        Some(name) => Err(wrong(format!(
            "the name `{}` is given twice",
            terminal_text(name)
        ))),
        None => Ok(names),
    }
}

fn encoded(name: &str) -> String {
    let letter = |byte: u8| match byte {
        plain if plain.is_ascii_alphanumeric() || b"_.-/".contains(&plain) => {
            char::from(plain).to_string()
        }
        other => format!("%{other:02X}"),
    };
    name.bytes().map(letter).collect()
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut remaining = text.as_bytes();
    while let Some((first, after)) = remaining.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            remaining = &after[2..];
        } else {
            bytes.push(*first);
            remaining = after;
        }
    }
    String::from_utf8(bytes)
        .ok()
        .filter(|name| !name.is_empty())
}

machine_over_links!(Custom, RECORD, declared);

impl Network for Custom {
    fn ranks(&self) -> u32 {
        self.graph.ranks
    }

    fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>) {
        self.routes.route(source, destination, &self.wiring, links);
    }

    fn switch_work(&self, vertex: u32) -> InNetwork {
        self.graph.working.work_of(vertex)
    }

    fn vertex_name(&self, vertex: u32) -> String {
        match self.graph.names.get(vertex as usize) {
            Some(name) => name.clone(),
            None if vertex < self.graph.ranks => format!("rank {vertex}"),
            None => format!("switch {}", vertex - self.graph.ranks),
        }
    }

    fn cable_number(&self, link: u32) -> Option<u32> {
        self.cable_numbers[link as usize]
    }

    fn length(&self, link: u32) -> Option<Length> {
        self.lengths[link as usize]
    }

    fn drawing(&self) -> Drawing {
        let ends = self.graph.cables.iter().map(|cable| (cable.from, cable.to));
        let located = !self.graph.positions.is_empty();
        let located = located.then(|| positions::drawing(&self.graph.positions, ends));
        located.flatten().unwrap_or_else(|| network::drawing(self))
    }

    fn translations(&self) -> Option<&Translations> {
        self.translations.as_ref()
    }

    fn cut_off(&self) -> Option<String> {
        let name = |vertex| terminal_text(&self.vertex_name(vertex)).to_string();
        self.routes.cut_off(name)
    }
}
