//! Parts of electrical fabrics, with broken or degraded components or with ranks that only forward.
//!
//! Every family with links has three options that select a part:
//!
//! * `without=0>1+2-3+17`: the links from vertex 0 to 1, the links between 2 and 3 in both
//!   directions, and vertex 17 with all its links are broken.
//! * `degraded=0-1@50Gb/s+3@40Gb/s`: the links between 0 and 1 have a rate of 50 Gb/s each, all
//!   links of vertex 3 have 40 Gb/s each.
//! * `members=0-7+16`: ranks 0 to 7 and rank 16 take part in collectives; the other ranks forward
//!   data like switches.
//!
//! Vertices are numbered ranks first, then switches. Names are accepted as well: `rank 0 -> rank
//! 1`, `NIC of rank 3`. A suffix `#2` selects cable 2 of several cables between two vertices. The
//! ranks of the part are renumbered from 0 in ascending order. A message keeps its route in the
//! whole fabric if all links of this route work, and otherwise uses a route over the fewest links.
//!
//! ```
//! use opticoll_fabric::fabric::Fabric;
//! let torus = Fabric::parse("torus:dims=4x4,without=0>1+rank 5")?;
//! assert_eq!(torus.ranks(), 15);
//! assert!(torus.to_string().ends_with("without=0>1+5"));
//! # Ok::<(), opticoll_fabric::fabric::FabricError>(())
//! ```

mod places;

use std::collections::BTreeSet;

pub(crate) use self::places::ends_of;

use self::places::{Names, Place};
use super::{Drawing, Fabric, FabricError, FamilyRecord, Machine, Switches};
use crate::bill::{Bill, MovedBytes};
use crate::library::Library;
use crate::network::fewest_links::{FewestLinks, Ties};
use crate::network::in_network::described;
use crate::network::{Duplex, InNetwork, Network, Wiring, vertices};
use opticoll_base::interrupt;
use opticoll_base::names::{plural, terminal_text};
use opticoll_base::spec::{OptionRecord, Role, Spec, SpecError, whole_number};
use opticoll_base::units::{Length, Rate, UnitError};

/// Option that lists broken links, switches and ranks.
pub(crate) const WITHOUT: OptionRecord = OptionRecord::new(
    "without",
    "broken links, switches and ranks; the remaining ranks are numbered anew",
)
.range("0>1 a link, 0-1 both ways, 17 a vertex, or their names; joined by +")
.default("none")
.role(Role::Broken);

/// Option that lists degraded links, switches and ranks.
pub(crate) const DEGRADED: OptionRecord = OptionRecord::new(
    "degraded",
    "slower links and their rates; a switch, NIC or rank stands for all its links",
)
.range("0-1@50Gb/s, 0>1@50Gb/s, 17@50Gb/s, or names before the @; joined by +")
.default("none")
.role(Role::Broken);

/// Parses the option `degraded` of `spec` to a list of parts and their rates. `place` looks up a
/// part by name and returns the part and its full rate.
///
/// # Errors
/// An item of the option has no rate, names no part, or has a rate that is not below the full rate.
pub(crate) fn read_degraded<P>(
    spec: &Spec,
    mut place: impl FnMut(&str) -> Result<(P, Rate), SpecError>,
) -> Result<Vec<(P, Rate)>, SpecError> {
    let refuse = |problem: String| spec.refuse(DEGRADED.name, problem);
    let items = spec.option(DEGRADED.name).into_iter();
    let slower = items.flat_map(|list| list.split('+')).map(|item| {
        let (named, rate) = item.rsplit_once('@').ok_or_else(|| {
            let item = terminal_text(item);
            refuse(format!(
                "`{item}` has no rate; write {item}@10Gb/s, for example"
            ))
        })?;
        let named = named.trim();
        let (part, full) = place(named)?;
        let rate = rate.trim().parse::<Rate>();
        let rate = rate.map_err(|error: UnitError| refuse(error.to_string()))?;
        match rate < full {
            true => Ok((part, rate)),
            false => {
                let named = terminal_text(named);
                let problem = format!("`{named}` has {full}; a degraded part has less");
                Err(refuse(problem))
            }
        }
    });
    slower.collect()
}

/// Sorts degraded parts by part. If a part has several rates, keeps only the lowest rate.
pub(crate) fn slowest_first<P: Ord>(mut slower: Vec<(P, Rate)>) -> Vec<(P, Rate)> {
    slower.sort_unstable();
    slower.dedup_by(|later, first| later.0 == first.0);
    slower
}

/// Option that lists the ranks that take part.
pub(crate) const MEMBERS: OptionRecord = OptionRecord::new(
    "members",
    "ranks that take part, numbered anew; the other ranks only forward",
)
.range("ranks such as 0-7+16, or their names; joined by +")
.default("all")
.role(Role::Members);

/// Part of the fabric `whole`.
#[derive(Debug)]
pub(crate) struct Part {
    whole: Fabric,
    without: Vec<Place>,
    /// True if light passes the vertices of ranks that failed.
    passes_failed: bool,
    degraded: Vec<(Place, Rate)>,
    /// Ranges of ranks (first, last), both inclusive. Empty if all ranks take part.
    members: Vec<(u32, u32)>,
    ranks: u32,
    /// Vertex numbers in the whole fabric, indexed by vertex of the part.
    vertices: Vec<u32>,
    /// Link numbers in the whole fabric, indexed by link of the part.
    links: Vec<u32>,
    /// Link numbers in the part, indexed by link of the whole fabric; [`GONE`] for broken links.
    number_in_part: Vec<u32>,
    wiring: Wiring,
    routes: FewestLinks,
}

/// Marker of a broken link or vertex, in place of its number.
const GONE: u32 = u32::MAX;

impl PartialEq for Part {
    /// Compares the options, which determine all other fields.
    fn eq(&self, other: &Part) -> bool {
        let options = |part: &Part| {
            (
                part.without.clone(),
                part.degraded.clone(),
                part.members.clone(),
            )
        };
        self.whole == other.whole && options(self) == options(other)
    }
}

impl Part {
    /// Returns the part of `whole` that the options `without`, `degraded` and `members` of `spec`
    /// select. Returns `whole` itself if none of these options is given.
    ///
    /// # Errors
    /// A vertex or link does not exist, a rate is not below the full rate, or ranks are cut off
    /// from each other.
    pub(crate) fn build(whole: Fabric, spec: &Spec) -> Result<Fabric, FabricError> {
        Part::built(whole, spec, false)
    }

    /// Returns the part of links that are fibres. Light passes a rank that failed, as it passes a
    /// rank that is no member.
    ///
    /// # Errors
    /// Fails as [`Part::build`] does.
    pub(crate) fn with_passing_light(whole: Fabric, spec: &Spec) -> Result<Fabric, FabricError> {
        Part::built(whole, spec, true)
    }

    fn built(whole: Fabric, spec: &Spec, passes_failed: bool) -> Result<Fabric, FabricError> {
        let items = |option: &OptionRecord| spec.option(option.name).map(|text| text.split('+'));
        let (without, members) = (items(&WITHOUT), items(&MEMBERS));
        // If a spare replaces a broken component, the family handles the failure.
        let (mut whole, mut broken_items) = (whole, Vec::new());
        for item in without.into_iter().flatten().map(str::trim) {
            match whole.with_replacement(item) {
                Some(Ok(without)) => whole = without,
                Some(Err(problem)) => return Err(spec.refuse(WITHOUT.name, problem).into()),
                None => broken_items.push(item),
            }
        }
        let Some(network) = whole.network() else {
            return Ok(whole);
        };
        let intact = || match network.cut_off() {
            Some(problem) => Err(FabricError::Graph {
                problem,
                link: None,
            }),
            None => Ok(whole.clone()),
        };
        if broken_items.is_empty() && members.is_none() && spec.option(DEGRADED.name).is_none() {
            return intact();
        }
        let names = Names::new(network);
        let place = |option: OptionRecord, item: &str| {
            let place = names.parse_place(item);
            let place = place.filter(|place| place.is_part_of(network, names.vertices));
            place.ok_or_else(|| spec.refuse(option.name, names.unknown(item)))
        };
        let without = broken_items.into_iter().map(|item| place(WITHOUT, item));
        let without: Vec<Place> = without.collect::<Result<_, _>>()?;
        let degraded = read_degraded(spec, |named| {
            let place = place(DEGRADED, named)?;
            let highest = place.highest_rate(network);
            Ok((
                place,
                highest.ok_or_else(|| {
                    let named = terminal_text(named);
                    spec.refuse(DEGRADED.name, format!("`{named}` has no link"))
                })?,
            ))
        })?;
        let members = members.into_iter().flatten();
        let members = members.map(|item| {
            let item = item.trim();
            let named = names
                .by_name
                .get(item)
                .filter(|rank| **rank < network.ranks());
            match named {
                Some(&rank) => Ok((rank, rank)),
                None => parse_rank_range(item, network.ranks())
                    .map_err(|problem| spec.refuse(MEMBERS.name, problem)),
            }
        });
        let mut members: Vec<(u32, u32)> = members.collect::<Result<_, _>>()?;
        let is_member = |rank| {
            members
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&rank))
        };
        if (0..network.ranks()).all(is_member) {
            members.clear();
        }
        if without.is_empty() && degraded.is_empty() && members.is_empty() {
            return intact();
        }
        let part = Part::new(&whole, network, (without, passes_failed), degraded, members);
        let option = if part.members.is_empty() {
            WITHOUT
        } else {
            MEMBERS
        };
        if part.ranks == 0 {
            return Err(spec.refuse(option.name, "no rank is left").into());
        }
        match part.routes.cut_off(|vertex| part.vertex_name(vertex)) {
            Some(problem) => Err(spec.refuse(option.name, problem).into()),
            None => Ok(Fabric::new(part)),
        }
    }

    fn new(
        whole: &Fabric,
        network: &dyn Network,
        (without, passes_failed): (Vec<Place>, bool),
        degraded: Vec<(Place, Rate)>,
        members: Vec<(u32, u32)>,
    ) -> Part {
        let whole_links = network.links().len() as u32;
        let whole_vertices = vertices(network);
        let broken: BTreeSet<u32> = without.iter().filter_map(|place| place.vertex()).collect();
        let passes = |vertex: &u32| passes_failed && *vertex < network.ranks();
        let takes_part = |rank: &u32| {
            let named = members
                .iter()
                .any(|(first, last)| (first..=last).contains(&rank));
            (members.is_empty() || named) && !broken.contains(rank)
        };
        let works = |vertex: &u32| !broken.contains(vertex) || passes(vertex);
        let is_rank = |vertex: &u32| *vertex < network.ranks() && takes_part(vertex);
        let ranks = (0..whole_vertices).filter(works).filter(is_rank);
        let mut part_vertices: Vec<u32> = ranks.collect();
        let ranks = part_vertices.len() as u32;
        part_vertices.extend(
            (0..whole_vertices)
                .filter(works)
                .filter(|vertex| !is_rank(vertex)),
        );
        let mut numbers = vec![GONE; whole_vertices as usize];
        for (number, vertex) in (0..).zip(&part_vertices) {
            numbers[*vertex as usize] = number;
        }
        let mut wiring = Wiring::new(Duplex::Half);
        let (mut links, mut number_in_part) = (Vec::new(), vec![GONE; whole_links as usize]);
        for (link, ends) in (0..whole_links).zip(network.wiring().ends()) {
            interrupt::check();
            let (from, to, both_ways) = ends;
            let ends_in_part = [from, to].map(|vertex| numbers[vertex as usize]);
            let is_broken = |broken: &Place| broken.names_link(ends, network.cable_number(link));
            if ends_in_part.contains(&GONE) || without.iter().any(is_broken) {
                continue;
            }
            let slower = degraded
                .iter()
                .filter(|(place, _)| place.names_link_or_end(ends, network.cable_number(link)));
            let mut degraded_link = network.links()[link as usize];
            degraded_link.rate = slower
                .map(|(_, rate)| *rate)
                .fold(degraded_link.rate, Rate::min);
            let [from, to] = ends_in_part;
            number_in_part[link as usize] = wiring.add_link(from, to, degraded_link, both_ways);
            links.push(link);
        }
        Part {
            routes: FewestLinks::new(&wiring, part_vertices.len() as u32, ranks, Ties::Spread),
            whole: whole.clone(),
            without,
            passes_failed,
            degraded,
            members,
            ranks,
            vertices: part_vertices,
            links,
            number_in_part,
            wiring,
        }
    }

    fn whole_network(&self) -> &dyn Network {
        self.whole
            .network()
            .expect("only a fabric with links has parts")
    }
}

/// Implements the default of [`Machine::part`]: returns the part of a machine that the nodes in
/// `members` use for a separate job.
pub(crate) fn part_of_machine(
    record: &FamilyRecord,
    spec: &Spec,
    has_links: bool,
    members: impl ExactSizeIterator<Item = u32>,
) -> Result<Fabric, FabricError> {
    if !has_links {
        return (record.build)(&spec.without("ranks").with("ranks", members.len()));
    }
    let parts = [WITHOUT, MEMBERS, DEGRADED];
    let plain = parts
        .iter()
        .fold(spec.clone(), |spec, option| spec.without(option.name));
    let whole = (record.build)(&plain)?;
    let members: Vec<u32> = members.collect();
    let spec = spec
        .without(MEMBERS.name)
        .with(MEMBERS.name, joined(&members, u32::to_string));
    Part::build(whole, &spec)
}

/// Parses a rank or a range of ranks, such as `3` or `0-7`, to the first and the last rank.
pub(crate) fn parse_rank_range(item: &str, ranks: u32) -> Result<(u32, u32), String> {
    let (first, last) = item.split_once('-').unwrap_or((item, item));
    match (whole_number(first.trim()), whole_number(last.trim())) {
        (Some(first), Some(last)) if first <= last && last < ranks => Ok((first, last)),
        (Some(_), Some(_)) => Err(format!("`{item}`: ranks are 0 to {}", ranks - 1)),
        _ => Err(format!(
            "`{}`: write ranks such as 0-7+16",
            terminal_text(item)
        )),
    }
}

/// Formats a range of ranks such that [`parse_rank_range`] can parse it.
pub(crate) fn rank_range_text(&(first, last): &(u32, u32)) -> String {
    match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    }
}

/// Joins the texts of items with `+`.
pub(crate) fn joined<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<String>>().join("+")
}

impl Machine for Part {
    fn record(&self) -> &'static FamilyRecord {
        self.whole.record()
    }

    fn spec(&self) -> Spec {
        let mut spec = self.whole.spec();
        if !self.without.is_empty() {
            let broken = joined(&self.without, Place::to_string);
            let all_broken = match spec.option(WITHOUT.name) {
                Some(replaced) => format!("{replaced}+{broken}"),
                None => broken,
            };
            spec = spec.without(WITHOUT.name).with(WITHOUT.name, all_broken);
        }
        if !self.degraded.is_empty() {
            let item = |(place, rate): &(Place, Rate)| format!("{place}@{rate}");
            spec = spec.with(DEGRADED.name, joined(&self.degraded, item));
        }
        if !self.members.is_empty() {
            spec = spec.with(MEMBERS.name, joined(&self.members, rank_range_text));
        }
        spec
    }

    fn nature(&self) -> &'static str {
        "an electrical fabric with members, or with broken or slower parts"
    }

    fn description(&self) -> String {
        let ranks = plural(self.ranks as usize, "rank");
        let links = plural(self.links.len(), "link");
        let (whole_ranks, whole_links) = (self.whole.ranks(), self.number_in_part.len());
        let slower = self.links.iter().zip(self.links());
        let slower = slower.filter(|(whole, link)| {
            self.whole_network().links()[**whole as usize].rate != link.rate
        });
        let slower = match slower.count() {
            0 => String::new(),
            count => format!(", {count} of them slower"),
        };
        let work = described(self);
        format!("{ranks} of {whole_ranks}, {links} of {whole_links}{slower}{work}")
    }

    fn accelerator(&self) -> Option<&'static str> {
        self.whole.accelerator()
    }

    fn bill(&self) -> Bill {
        self.whole.bill()
    }

    fn bill_of_bytes(&self, moved: &MovedBytes<'_>) -> Bill {
        let mut links = vec![0; self.number_in_part.len()];
        for (&whole, &bytes) in self.links.iter().zip(moved.links) {
            links[whole as usize] = bytes;
        }
        let links = &links;
        self.whole.bill_of_bytes(&MovedBytes { links, ..*moved })
    }

    fn link_of_whole(&self, link: u32) -> u32 {
        self.links[link as usize]
    }

    fn link_in_part(&self, whole: u32) -> Option<u32> {
        Some(self.number_in_part[whole as usize]).filter(|own| *own != GONE)
    }

    fn planning_alternatives(&self) -> Vec<Fabric> {
        let spec = self.spec().without(DEGRADED.name);
        let with_broken = |broken: &[String]| {
            let already_broken = spec.option(WITHOUT.name).map(str::to_owned);
            let broken: Vec<String> = already_broken
                .into_iter()
                .chain(broken.iter().cloned())
                .collect();
            let spec = spec.clone().without(WITHOUT.name);
            spec.with(WITHOUT.name, broken.join("+"))
        };
        let slower: Vec<String> = self
            .degraded
            .iter()
            .map(|(place, _)| place.to_string())
            .collect();
        // If one direction of a cable is broken, a plan without the other direction may be faster.
        let network = self.whole_network();
        let opposite = self.without.iter().filter_map(|place| place.opposite());
        let opposite = opposite.filter(|place| place.is_part_of(network, vertices(network)));
        let opposite: Vec<String> = opposite.map(|place| place.to_string()).collect();
        let mut others = Vec::new();
        if !slower.is_empty() {
            others.extend([spec.clone(), with_broken(&slower)]);
        }
        if !opposite.is_empty() {
            others.push(with_broken(&[slower, opposite].concat()));
        }
        let parts = others
            .iter()
            .map(|spec| Part::built(self.whole.clone(), spec, self.passes_failed));
        let parts = parts.flatten().filter(|part| {
            let links = part.network().map_or(0, |network| network.links().len());
            part.ranks() == self.ranks && (!self.degraded.is_empty() || links < self.links.len())
        });
        parts.collect()
    }

    fn node(&self, rank: u32) -> u32 {
        self.whole.node(self.vertices[rank as usize])
    }

    fn network(&self) -> Option<&dyn Network> {
        Some(self)
    }

    fn switches(&self) -> Option<&dyn Switches> {
        self.whole.switches()
    }
}

impl Network for Part {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>) {
        let before = links.len();
        let [from, to] = [source, destination].map(|rank| self.vertices[rank as usize]);
        self.whole_network().route(from, to, links);
        for link in &mut links[before..] {
            *link = self.number_in_part[*link as usize];
        }
        if links[before..].contains(&GONE) {
            links.truncate(before);
            self.routes.route(source, destination, &self.wiring, links);
        }
    }

    fn switch_work(&self, vertex: u32) -> InNetwork {
        self.whole_network()
            .switch_work(self.vertices[vertex as usize])
    }

    fn vertex_name(&self, vertex: u32) -> String {
        let number = self.vertices[vertex as usize];
        let name = self.whole_network().vertex_name(number);
        let is_numbered = name == format!("rank {number}");
        match (is_numbered, vertex < self.ranks) {
            (true, true) if vertex == number => name,
            (true, true) => format!("rank {vertex} (node {number})"),
            (true, false) => format!("node {number}"),
            (false, _) => name,
        }
    }

    fn idle_ranks(&self) -> u32 {
        let others = self.vertices[self.ranks as usize..].iter();
        let of_whole = self.whole_network().ranks();
        others.take_while(|vertex| **vertex < of_whole).count() as u32
    }

    fn cable_number(&self, link: u32) -> Option<u32> {
        self.whole_network().cable_number(self.links[link as usize])
    }

    fn length(&self, link: u32) -> Option<Length> {
        self.whole_network().length(self.links[link as usize])
    }

    /// Returns the number of members in a group of the whole fabric, if it is the same in all
    /// groups that have members.
    fn group_size(&self) -> Option<u32> {
        let whole = self.whole_network().group_size()?;
        let members = &self.vertices[..self.ranks as usize];
        let mut groups = members.chunk_by(|one, next| one / whole == next / whole);
        let size = groups.next()?.len();
        groups
            .all(|group| group.len() == size)
            .then_some(size as u32)
    }

    fn same_group(&self, first: u32, second: u32) -> bool {
        let [first, second] = [first, second].map(|rank| self.vertices[rank as usize]);
        self.whole_network().same_group(first, second)
    }

    fn library(&self) -> Option<&Library> {
        self.whole_network().library()
    }

    fn drawing(&self) -> Drawing {
        let whole = self.whole_network().drawing();
        let places = self.vertices.iter();
        let places = places.map(|vertex| whole.places.get(*vertex as usize).copied());
        let around = whole
            .around
            .iter()
            .map(|link| self.number_in_part[*link as usize]);
        Drawing {
            places: places.collect::<Option<_>>().unwrap_or_default(),
            around: around.filter(|link| *link != GONE).collect(),
        }
    }
}
