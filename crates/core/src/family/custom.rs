//! Any network: ranks, switches and the links between them, as read from a file.
//!
//! Vertices are numbered ranks first, then switches, and all of them forward. A route has the fewest
//! links. Where several links lead nearer to the destination, in the order in which they are given,
//! `ties=spread` takes the one with number (destination mod how many there are), so that routes to
//! different ranks are spread as in a fat tree; `ties=first` takes the first.
//!
//! Towards each destination the next links of all vertices are found by one search backwards, when
//! the first route to it is asked for: in time linear in the links, at 4 bytes per vertex.
//!
//! Links are written by their vertices: `0-4` is a full-duplex cable (two links), `0~4` a half-duplex
//! cable (one link), `0>4` one link from 0 to 4; what differs from the fabric's rate, latency and
//! sharing follows, as in `0-4@400Gb/s@1us@per_flow`; several are joined by `+`.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use crate::fabric::options::{self, Options, Otherwise::*};
use crate::fabric::wiring;
use crate::fabric::{self, Fabric, FabricError, FamilyRecord};
use crate::graph;
use crate::interrupt;
use crate::names::{prints, shown};
use crate::network::{Duplex, Link, Network, Wiring};
use crate::spec::{OptionRecord, REQUIRED, Spec};

/// The most vertices: beyond them the routes of all destinations would need more than 1 GiB.
const MOST_VERTICES: u32 = 1 << 14;

/// Which ways a cable leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Course {
    FullDuplex,
    HalfDuplex,
    OneWay,
}

const COURSES: &[(char, Course)] = &[
    ('-', Course::FullDuplex),
    ('~', Course::HalfDuplex),
    ('>', Course::OneWay),
];

#[derive(Debug, Clone, PartialEq, Eq)]
struct Cable {
    one: u32,
    other: u32,
    course: Course,
    link: Link,
}

/// How one of several equally short ways is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Ties {
    Spread,
    First,
}

/// What the options say.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Graph {
    ranks: u32,
    switches: u32,
    /// Of all vertices, or empty.
    names: Vec<String>,
    ties: Ties,
    default: Link,
    cables: Vec<Cable>,
}

/// A network of any shape.
#[derive(Debug, Clone)]
pub struct Custom {
    graph: Arc<Graph>,
    wiring: Arc<Wiring>,
    /// Per link: its number among those with the same ends, if it is not the only one.
    parallel: Arc<[Option<u32>]>,
    neighbours: Arc<Neighbours>,
    /// Per destination: the next link of each vertex.
    next: Arc<[OnceLock<Box<[u32]>>]>,
}

/// Per vertex: links out with their other ends, in the order given; vertices with links in.
#[derive(Debug)]
struct Neighbours {
    out: Vec<Vec<(u32, u32)>>,
    into: Vec<Vec<u32>>,
}

const NONE: u32 = u32::MAX;

/// The family's record.
pub const RECORD: FamilyRecord = FamilyRecord {
    name: "custom",
    summary: "Ranks, switches and links from a file, routed over the fewest links",
    citation: "Dijkstra, A Note on Two Problems in Connexion with Graphs, 1959",
    example: "custom:ranks=2,switches=1,links=0-2+1-2,rate=100Gb/s",
    options: || options::list(&RECORD, declared),
    build: |spec| Custom::parse(spec).map(Fabric::new),
};

fn declared(options: &mut Options<'_, Custom>) -> Result<Graph, FabricError> {
    let missing = options.missing("links");
    let ties = [("spread", Ties::Spread), ("first", Ties::First)];
    let ranks = OptionRecord::new("ranks", "number of ranks");
    let ranks = options.count(ranks, MOST_VERTICES, Required, |custom| custom.graph.ranks)?;
    let switches = options.option(
        OptionRecord::new("switches", "number of switches")
            .range("0 to 16384 less the ranks")
            .default("0"),
        |spec| {
            Ok(spec
                .count("switches", 0, MOST_VERTICES - ranks)?
                .unwrap_or(0))
        },
        |switches| (*switches > 0).then(|| switches.to_string()),
        |custom| custom.graph.switches,
    )?;
    let vertices = ranks + switches;
    let links = OptionRecord::new(
        "links",
        "cables by vertices, ranks first, with @rate, @latency, @sharing where they differ",
    )
    .range("0-4 full duplex, 0~4 half duplex, 0>4 one way; joined by +")
    .default(REQUIRED);
    // What a cable does not say of itself the options below say of all.
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
    let given = texts.split('+').filter(|part| !part.is_empty());
    // A machine that is printed has them.
    let parts = given.take_while(|_| options.are_read());
    let cables = parts
        .enumerate()
        .map(|(number, text)| {
            cable(text, default, vertices).map_err(|problem| FabricError::Graph {
                problem: format!("link {number} (`{}`): {problem}", shown(text)),
                link: Some(number),
            })
        })
        .collect::<Result<Vec<Cable>, FabricError>>()?;
    wiring::check_size(&RECORD, ranks.into(), cables.len() as u128)?;
    Ok(Graph {
        ranks,
        switches,
        names,
        ties,
        default,
        cables,
    })
}

impl PartialEq for Custom {
    /// Everything else follows from the options.
    fn eq(&self, other: &Custom) -> bool {
        self.graph == other.graph
    }
}

impl Eq for Custom {}

impl Custom {
    /// Reads a specification such as `custom:ranks=2,switches=1,links=0-2+1-2@400Gb/s`.
    pub fn parse(spec: &Spec) -> Result<Custom, FabricError> {
        let custom = Custom::of(options::read(spec, &RECORD, declared)?);
        custom.check_connected()?;
        Ok(custom)
    }

    fn of(graph: Graph) -> Custom {
        let vertices = (graph.ranks + graph.switches) as usize;
        let mut wiring = Wiring::new(Duplex::Half);
        let mut neighbours = Neighbours {
            out: vec![Vec::new(); vertices],
            into: vec![Vec::new(); vertices],
        };
        let mut lead = |link: u32, from: u32, to: u32| {
            neighbours.out[from as usize].push((link, to));
            neighbours.into[to as usize].push(from);
        };
        for cable in &graph.cables {
            interrupt::check();
            let (one, other, half) = (cable.one, cable.other, cable.course == Course::HalfDuplex);
            let forth = wiring.add_link(one, other, cable.link, half);
            lead(forth, one, other);
            match cable.course {
                Course::FullDuplex => {
                    let back = wiring.add_link(other, one, cable.link, false);
                    lead(back, other, one);
                }
                Course::HalfDuplex => lead(forth, other, one),
                Course::OneWay => {}
            }
        }
        Custom {
            next: (0..graph.ranks).map(|_| OnceLock::new()).collect(),
            graph: Arc::new(graph),
            parallel: parallel(&wiring).into(),
            wiring: Arc::new(wiring),
            neighbours: Arc::new(neighbours),
        }
    }

    /// Refuses ranks that rank 0 cannot reach or that cannot reach it; otherwise all reach all.
    fn check_connected(&self) -> Result<(), FabricError> {
        let out = |vertex: u32| {
            let out = self.neighbours.out[vertex as usize].iter();
            out.map(|(_, to)| *to)
        };
        let into = |vertex: u32| self.neighbours.into[vertex as usize].iter().copied();
        let vertices = self.neighbours.out.len();
        let (from_first, to_first) = (
            graph::distances(vertices, 0, out),
            graph::distances(vertices, 0, into),
        );
        for rank in 0..self.graph.ranks {
            interrupt::check();
            let cut_off = |from, to| {
                let (from, to) = (self.vertex_name(from), self.vertex_name(to));
                let problem = format!("no links lead from {} to {}", shown(&from), shown(&to));
                Err(wrong(problem))
            };
            if from_first[rank as usize] == NONE {
                return cut_off(0, rank);
            }
            if to_first[rank as usize] == NONE {
                return cut_off(rank, 0);
            }
        }
        Ok(())
    }

    /// The next link of each vertex on its way to a rank.
    fn next_links(&self, destination: u32) -> Box<[u32]> {
        let into = |vertex: u32| self.neighbours.into[vertex as usize].iter().copied();
        let vertices = self.neighbours.out.len();
        let distance = graph::distances(vertices, destination, into);
        let next = |vertex: usize| {
            let nearer = |(_, to): &&(u32, u32)| {
                distance[vertex] != NONE && distance[*to as usize] < distance[vertex]
            };
            let ways: Vec<u32> = self.neighbours.out[vertex]
                .iter()
                .filter(nearer)
                .map(|(link, _)| *link)
                .collect();
            let choice = match self.graph.ties {
                Ties::Spread => destination as usize % ways.len().max(1),
                Ties::First => 0,
            };
            ways.get(choice).copied().unwrap_or(NONE)
        };
        (0..vertices).map(next).collect()
    }
}

impl Cable {
    fn text(&self, default: &Link) -> String {
        let course = COURSES.iter().find(|(_, course)| *course == self.course);
        let letter = course.map_or('-', |(letter, _)| *letter);
        let mut text = format!("{}{letter}{}", self.one, self.other);
        if self.link.rate != default.rate {
            text += &format!("@{}", self.link.rate);
        }
        if self.link.latency != default.latency {
            text += &format!("@{}", self.link.latency);
        }
        if self.link.sharing != default.sharing {
            text += &format!("@{}", wiring::sharing_name(self.link.sharing));
        }
        text
    }
}

/// The number of each link among those with the same ends; none for the only one.
fn parallel(wiring: &Wiring) -> Vec<Option<u32>> {
    let mut counts: FxHashMap<(u32, u32, bool), u32> = FxHashMap::default();
    let mut number = |ends| {
        let count = counts.entry(ends).or_insert(0);
        *count += 1;
        *count - 1
    };
    let numbers: Vec<u32> = wiring.ends().map(&mut number).collect();
    let of_several = |(number, ends)| (counts[&ends] > 1).then_some(number);
    numbers
        .into_iter()
        .zip(wiring.ends())
        .map(of_several)
        .collect()
}

fn wrong(problem: String) -> FabricError {
    FabricError::Graph {
        problem,
        link: None,
    }
}

/// Reads `0-4@400Gb/s@1us`.
fn cable(text: &str, default: Link, vertices: u32) -> Result<Cable, String> {
    let mut parts = text.split('@');
    let ends = parts.next().unwrap_or("");
    let (letter, course) = COURSES
        .iter()
        .find(|(letter, _)| ends.contains(*letter))
        .ok_or("write the numbers of two vertices, such as 0-4, 0~4 or 0>4")?;
    let (one, other) = ends.split_once(*letter).unwrap_or((ends, ""));
    let vertex = |text: &str| match text.parse::<u32>() {
        Ok(vertex) if vertex < vertices => Ok(vertex),
        Ok(vertex) => Err(format!(
            "there is no vertex {vertex}; ranks and switches are 0 to {}",
            vertices - 1
        )),
        Err(_) => Err(format!("`{}` is no number of a vertex", shown(text))),
    };
    let (one, other) = (vertex(one)?, vertex(other)?);
    if one == other {
        return Err("a link joins two different vertices".into());
    }
    let mut link = default;
    for value in parts {
        if let Some(sharing) = wiring::sharing_named(value) {
            link.sharing = sharing;
        } else if value.contains("/s") {
            link.rate = value.parse().map_err(|error| format!("{error}"))?;
        } else {
            link.latency = value.parse().map_err(|error| format!("{error}"))?;
        }
    }
    Ok(Cable {
        one,
        other,
        course: *course,
        link,
    })
}

fn names(spec: &Spec, vertices: u32) -> Result<Vec<String>, FabricError> {
    let Some(text) = spec.option("names") else {
        return Ok(Vec::new());
    };
    let decode =
        |part: &str| decoded(part).ok_or_else(|| wrong(format!("`{}` is no name", shown(part))));
    let names = text
        .split('+')
        .map(decode)
        .collect::<Result<Vec<String>, FabricError>>()?;
    if names.len() != vertices as usize {
        let count = names.len();
        let problem = format!("{count} names for {vertices} ranks and switches");
        return Err(wrong(problem));
    }
    if let Some(name) = names.iter().find(|name| !name.chars().all(prints)) {
        let problem = format!(
            "the name `{}` holds characters that do not print",
            shown(name)
        );
        return Err(wrong(problem));
    }
    let mut seen = BTreeSet::new();
    match names.iter().find(|name| !seen.insert(name.as_str())) {
        Some(name) => Err(wrong(format!("the name `{}` is given twice", shown(name)))),
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
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes)
        .ok()
        .filter(|name| !name.is_empty())
}

impl fabric::Machine for Custom {
    fn record(&self) -> &'static FamilyRecord {
        &RECORD
    }

    fn spec(&self) -> Spec {
        options::print(self, &RECORD, declared)
    }

    fn network(&self) -> Option<&dyn Network> {
        Some(self)
    }
}

impl Network for Custom {
    fn ranks(&self) -> u32 {
        self.graph.ranks
    }

    fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>) {
        let next = self.next[destination as usize].get_or_init(|| self.next_links(destination));
        let mut vertex = source;
        // Every rank reaches every other: that was checked.
        while vertex != destination && next[vertex as usize] != NONE {
            let link = next[vertex as usize];
            let (one, other) = self.ends(link).expect("a link of its own");
            links.push(link);
            vertex = if one == vertex { other } else { one };
        }
    }

    fn vertex_name(&self, vertex: u32) -> String {
        match self.graph.names.get(vertex as usize) {
            Some(name) => name.clone(),
            None if vertex < self.graph.ranks => format!("rank {vertex}"),
            None => format!("switch {}", vertex - self.graph.ranks),
        }
    }

    fn cable_number(&self, link: u32) -> Option<u32> {
        self.parallel[link as usize]
    }
}
