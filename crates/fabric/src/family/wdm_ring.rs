//! Bidirectional WDM ring of the OpTree and WRHT papers (TeraRack).
//!
//! `fibres` directed fibres lead clockwise from rank i to rank i+1 (mod N), and `fibres` directed
//! fibres lead counter-clockwise from rank i to rank i-1. Each directed fibre carries `wavelengths`
//! channels. A lightpath occupies one channel of one fibre on every link between its ends. The
//! wavelength changes along the route only if the fabric has converters.
//!
//! Link i of a direction *starts* at rank i: clockwise i -> i+1, counter-clockwise i -> i-1. If
//! some ranks do not take part or have failed, light passes the nodes of these ranks. A link to the
//! next rank then consists of several links between nodes (`members`).

mod circuits;
mod faults;
mod light;
mod loss;
mod members;

use crate::bill::{Bill, PartKind, WDM};
use crate::fabric::channels;
use crate::fabric::channels::Channel;
use crate::fabric::loss::{LossBudget, Place};
use crate::fabric::options;
use crate::fabric::options::DefaultRule::*;
use crate::fabric::options::{Options, declare};
use crate::fabric::part;
use crate::fabric::part::{DEGRADED, MEMBERS, WITHOUT};
use crate::fabric::transmission;
use crate::fabric::transmission::Conversion;
use crate::fabric::wiring::MAX_RANKS;
use crate::fabric::{Circuits, Fabric, FabricError, FamilyRecord, Machine, Named, PresetRecord};
pub use faults::{BrokenLink, Degraded};
pub use light::{CONVERTED, LIGHT, WdmLight};
use opticoll_base::names::plural;
use opticoll_base::spec::{OptionRecord, Role, Spec};
use opticoll_base::units::{Bytes, Rate, Time};

/// Direction around the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Direction {
    /// Direction of increasing ranks.
    Clockwise = 0,
    /// Direction of decreasing ranks.
    CounterClockwise = 1,
}

impl Direction {
    /// Both directions.
    pub const BOTH: [Direction; 2] = [Direction::Clockwise, Direction::CounterClockwise];

    /// Returns `cw` or `ccw`.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Clockwise => "cw",
            Direction::CounterClockwise => "ccw",
        }
    }

    /// Returns the opposite direction.
    pub const fn opposite(self) -> Direction {
        match self {
            Direction::Clockwise => Direction::CounterClockwise,
            Direction::CounterClockwise => Direction::Clockwise,
        }
    }
}

/// Bidirectional ring with wavelength-division multiplexing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WdmRing {
    /// Number of ranks that take part, N.
    pub ranks: u32,
    /// Number of nodes on the ring, including nodes whose ranks do not take part.
    pub nodes: u32,
    /// Number of wavelengths per directed fibre, w.
    pub wavelengths: u32,
    /// Number of fibres per direction.
    pub fibres: u32,
    /// Rate of one wavelength, B.
    pub rate: Rate,
    /// Time to tune the ring resonators of a rank to other wavelengths.
    pub reconfiguration: Time,
    /// Time to convert a flit, or a message without flits, from electrical to optical and back.
    /// Half of this time passes at the start of a lightpath, the other half at the end.
    pub conversion: Time,
    /// Number of bytes per flit; `None` if a message is converted as a whole.
    pub flit: Option<Bytes>,
    /// Number of bytes per packet; `None` if the whole message is one packet. While the flits of a
    /// packet are converted, the next packet is sent.
    pub packet: Option<Bytes>,
    /// Propagation delay of one link between neighbouring nodes.
    pub propagation: Time,
    /// Maximum number of lightpaths that a rank can send at a time, and that a rank can receive at
    /// a time. `None` if only the channels limit these numbers.
    pub ports: Option<u32>,
    /// True if every rank can convert passing light to any wavelength.
    pub converters: bool,
    /// True if a rank can receive a share of passing light while the remaining light continues
    /// (drop-and-continue). One lightpath then delivers data to several ranks.
    pub multicast: bool,
    /// Maximum length of a lightpath in links between nodes, if the option `reach` is given.
    pub reach: Option<u32>,
    /// Powers and losses that limit the length of lightpaths; `None` if not given.
    pub budget: Option<LossBudget>,
    /// Number of ring resonators per rank and fibre. Passing light passes all of them.
    pub resonators: u32,
    /// Links between ranks that no lightpath can cross, sorted. These links have a cut or are
    /// longer than the reach of light.
    pub broken: Vec<BrokenLink>,
    /// Cuts between neighbouring nodes, sorted.
    pub cuts: Vec<BrokenLink>,
    /// Channels that are out of order, sorted.
    pub dead: Vec<Channel>,
    /// Links and channels with a reduced rate.
    pub degraded: Degraded,
    /// Nodes whose ranks take part unless they have failed, sorted. Empty if all nodes are members.
    pub members: Vec<u32>,
    /// Nodes whose ranks have failed, sorted.
    pub failed: Vec<u32>,
    /// Node of each rank, indexed by rank. Empty if all ranks of the ring take part.
    pub node_of_rank: Vec<u32>,
}

/// Maximum number of wavelengths of a fibre. Plans have 16 bits for the index of a wavelength.
const MAX_WAVELENGTHS: u32 = 4096;

/// Maximum number of fibres per direction. Plans have 8 bits for the index of a fibre.
const MAX_FIBRES: u32 = 64;

/// Record of the family.
pub const RECORD: FamilyRecord = FamilyRecord {
    name: "wdm_ring",
    summary: "Bidirectional optical ring with wavelength-division multiplexing",
    citation: "Khani et al., TeraRack: A Tbps Rack for Machine Learning Training, 2020",
    example: "wdm_ring:ranks=1024,wavelengths=64",
    options: || options::list(&RECORD, declared),
    build: |spec| options::read(spec, &RECORD, declared).map(Fabric::new),
    presets: PRESETS,
};

/// Presets of the family.
pub const PRESETS: &[PresetRecord] = &[
    PresetRecord {
        name: "optree_paper",
        summary: "Ring of the OpTree paper's evaluation: one fibre per direction, 40 Gb/s, 25 us",
        citation: "Dai et al., OpTree, section IV.A",
        spec: "wdm_ring:ranks=1024,wavelengths=64,fibres=1,rate=40Gb/s,reconfiguration=25us",
        unconfirmed: "",
    },
    PresetRecord {
        name: "terarack",
        summary: "TeraRack with 256 ranks and two fibres per direction",
        citation: "Khani et al., TeraRack, 2020; rates and delays as in Dai et al., OpTree",
        spec: "wdm_ring:ranks=256,wavelengths=64,fibres=2,rate=40Gb/s,reconfiguration=25us",
        unconfirmed: "",
    },
    PresetRecord {
        name: "passage_l200",
        summary: "Ring over Passage L200 engines: one fibre per direction, 16 wavelengths of 112 \
            Gb/s; ranks=... is needed",
        citation: "Wavelengths of a fibre and rate of each: Lightmatter, Passage achieves record \
            1.6 Tbps per fiber, press release of 11 March 2026",
        spec: "wdm_ring:wavelengths=16,fibres=1,rate=112Gb/s",
        unconfirmed: "the maker publishes engines, but no ring of them; light of both directions \
            may share a fibre's 16 wavelengths, while here each direction has 16; no \
            reconfiguration time is published",
    },
];

fn declared(options: &mut Options<'_, WdmRing>) -> Result<WdmRing, FabricError> {
    let conversions = [("none", false), ("full", true)];
    let sharings = [("none", false), ("drop_and_continue", true)];
    declare! { options of WdmRing;
        nodes "ranks" count(MAX_RANKS, Required) "number of ranks";
        wavelengths "wavelengths" count(MAX_WAVELENGTHS, Required)
            "wavelengths per directed fibre";
        fibres "fibres" count(MAX_FIBRES, Printed(1)) "fibres per direction"
            source "the OpTree paper has one; TeraRack has two";
        rate "rate" value(Printed(Rate::gigabits(40))) "rate per wavelength"
            source "Dai et al., OpTree, section IV.A";
        reconfiguration "reconfiguration" value(Printed(Time::from_ps(25_000_000))) Reconfiguration
            "time to reconfigure circuits" source "Dai et al., OpTree, section IV.A";
    }
    let Conversion {
        conversion,
        flit,
        packet,
    } = transmission::declare_conversion(options, |ring: &WdmRing| ring.transmission())?;
    declare! { options of WdmRing;
        propagation "propagation" value(Silent(Time::ZERO)) "delay per hop";
        ports "ports" limit(Some("all"), 2 * fibres * wavelengths)
            "maximum number of lightpaths that a rank sends, and receives, at a time"
            range "1 to 2 * fibres * wavelengths, all";
        converters "converters" word(&conversions, Silent(false))
            "wavelength converters at every rank";
        multicast "multicast" word(&sharings, Silent(false))
            "light trees: with drop_and_continue, ranks take a share of passing light, and the \
             rest continues";
        reach "reach" limit(None, MAX_RANKS) "maximum number of links of a lightpath";
    }
    let (budget, resonators) = loss::OPTIONS.declared(
        options,
        |spec, budget| loss::read_resonators(spec, budget, wavelengths),
        |spec, resonators| match *resonators == wavelengths {
            true => spec,
            false => spec.with("resonators", resonators),
        },
        |ring| (ring.budget, ring.resonators),
    )?;
    declare! { options of WdmRing;
        cuts "broken" list(
            |spec| faults::read_broken(spec, nodes),
            |cuts| faults::print_broken(cuts, nodes))
            Broken "cuts between neighbours"
            range "3-4, or one way 3-4cw, 3-4ccw; several joined by +";
        dead "dead" list(
            |spec| channels::read_dead(spec, (fibres, wavelengths)),
            |dead| channels::print_dead(dead, fibres))
            Broken "failed wavelengths" range "5, or on one fibre 1.5; several joined by +";
    }
    let degraded = options.option(
        OptionRecord {
            meaning: "slower links and wavelengths, and their rates",
            range: "3-4@10Gb/s, one way 3>4@10Gb/s, w5@10Gb/s, or on one fibre w1.5@10Gb/s; \
                several joined by +",
            ..DEGRADED
        },
        |spec| {
            Ok(faults::read_degraded(
                spec,
                nodes,
                (fibres, wavelengths),
                rate,
            )?)
        },
        |degraded| {
            let has_any = degraded.has_slower_parts();
            has_any.then(|| faults::print_degraded(degraded, nodes))
        },
        |ring: &WdmRing| ring.degraded.clone(),
    )?;
    let failed = options.list(
        OptionRecord {
            meaning: "failed ranks; light still passes their nodes, and the remaining ranks are \
                numbered anew",
            range: "5, or rank 5; also cuts, 3-4, or one way 3>4; several joined by +",
            ..WITHOUT
        },
        |spec| faults::read_failed(spec, nodes),
        |failed| part::joined(failed, u32::to_string),
        |ring| ring.failed.clone(),
    )?;
    let members = options.list(
        OptionRecord {
            meaning: "ranks that take part, numbered anew; light still passes the nodes of the \
                other ranks",
            ..MEMBERS
        },
        |spec| members::read(spec, nodes, &failed),
        members::print,
        |ring| ring.members.clone(),
    )?;
    // Limits without effect are stored as `None`.
    let channels = (fibres * wavelengths).saturating_sub(dead.len() as u32);
    let ports = ports.filter(|&ports| ports < 2 * channels);
    let reach = reach.filter(|&links| links + 1 < nodes);
    let ring = WdmRing {
        ranks: nodes,
        nodes,
        wavelengths,
        fibres,
        rate,
        reconfiguration,
        conversion,
        flit,
        packet,
        propagation,
        ports,
        converters,
        multicast,
        reach,
        budget,
        resonators,
        broken: cuts.clone(),
        cuts,
        dead,
        degraded,
        members,
        failed,
        node_of_rank: Vec::new(),
    };
    Ok(ring.among_members())
}

impl WdmRing {
    /// Returns whether the ring looks the same from every rank on all channels, and every lightpath
    /// has one receiver. Such a ring has evenly spaced ranks, and no broken links, dead channels,
    /// degraded parts or light trees. Only such rings have rotation-symmetric plans.
    pub fn is_even(&self) -> bool {
        self.is_intact() && !self.multicast && self.is_evenly_spaced()
    }

    /// Returns whether all nodes are ranks that take part, and all links work at their full rate.
    pub fn has_all_links(&self) -> bool {
        self.broken.is_empty() && self.nodes == self.ranks && !self.degraded.has_slower_parts()
    }

    /// Returns whether all links and wavelengths work at their full rate.
    pub fn is_intact(&self) -> bool {
        self.broken.is_empty() && self.dead.is_empty() && !self.degraded.has_slower_parts()
    }

    /// Returns the rate of a lightpath from `source` to `destination`: the minimum of the rates of
    /// its wavelength and its links. If converters may change the wavelength, the minimum over all
    /// wavelengths of the fibre applies.
    pub fn rate_of(&self, source: u32, destination: u32, light: WdmLight) -> Rate {
        let Degraded { links, channels } = &self.degraded;
        let channels = channels.iter().filter(|(channel, _)| {
            let is_on_channel =
                light.wavelength == CONVERTED || channel.wavelength == u32::from(light.wavelength);
            is_on_channel && channel.fibre == u32::from(light.fibre)
        });
        let span = self.span(source, destination, light.direction);
        let first = self.node(match light.direction {
            Direction::Clockwise => source,
            Direction::CounterClockwise => destination,
        });
        let links = links.iter().filter(|(link, _)| {
            let behind = (link.position + self.nodes - first) % self.nodes;
            link.direction == light.direction && behind < span
        });
        let slower = channels
            .map(|(_, rate)| *rate)
            .chain(links.map(|(_, rate)| *rate));
        slower.min().unwrap_or(self.rate)
    }

    /// Returns the total rate, in bits per second, at which `rank` can send to its two neighbours.
    fn total_send_rate(&self, rank: u32) -> u128 {
        let next = |direction| self.rank_after(rank, direction, 1);
        let intact = Direction::BOTH
            .into_iter()
            .filter(|&direction| self.is_whole(rank, next(direction), direction));
        let lights = intact.flat_map(|direction| {
            let channels = 0..self.channels();
            channels.map(move |channel| (direction, self.channel(channel)))
        });
        let rates = lights.map(|(direction, (fibre, wavelength))| {
            let light = WdmLight {
                direction,
                fibre,
                wavelength,
            };
            u128::from(self.rate_of(rank, next(direction), light).bits_per_second())
        });
        let mut rates: Vec<u128> = rates.collect();
        rates.sort_unstable_by_key(|rate| std::cmp::Reverse(*rate));
        rates
            .iter()
            .take(self.ports.map_or(usize::MAX, |ports| ports as usize))
            .sum()
    }

    /// Returns the number of usable channels per direction, without dead channels.
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

    /// Returns the maximum number of links of a lightpath from the least favourable rank, at most
    /// N - 1. Broken links are ignored.
    pub fn longest(&self) -> u32 {
        self.links_within(self.farthest(0))[0]
    }

    /// Returns the maximum number of links of a lightpath from the most favourable rank, at most
    /// N - 1. The result exceeds [`WdmRing::longest`] only if ranks are not evenly spaced.
    pub fn longest_from_best_start(&self) -> u32 {
        self.links_within(self.farthest(0))[1]
    }

    /// Returns the maximum number of links of a light tree that delivers data to every rank on its
    /// way, from the least favourable rank.
    pub fn longest_tree(&self) -> u32 {
        let split = self.budget.map_or(0, |budget| {
            budget.losses[Place::Split as usize].millionths()
        });
        self.links_within(self.farthest(split))[0]
    }

    /// Returns the maximum length of a lightpath in links between nodes. The lightpath loses
    /// `lost_per_node` millionths of a decibel at each node, in addition to the loss at ring
    /// resonators.
    pub fn farthest(&self, lost_per_node: i64) -> u32 {
        let reach_limit = self.reach.unwrap_or(u32::MAX);
        let lit = self.budget.map_or(u32::MAX, |budget| {
            budget.farthest(0, self.through_loss_of_rank(&budget) + lost_per_node)
        });
        reach_limit.min(lit)
    }

    /// Returns whether all links from `source` to `destination` in `direction` are unbroken.
    pub fn is_whole(&self, source: u32, destination: u32, direction: Direction) -> bool {
        let first = match direction {
            Direction::Clockwise => source,
            Direction::CounterClockwise => destination,
        };
        let hops = self.hops(source, destination, direction);
        !self.broken.iter().any(|link| {
            link.direction == direction && (link.position + self.ranks - first) % self.ranks < hops
        })
    }

    /// Returns the directions in which all links are unbroken.
    pub fn whole_directions(&self) -> impl Iterator<Item = Direction> + '_ {
        let is_whole =
            |direction: &Direction| self.broken.iter().all(|link| link.direction != *direction);
        Direction::BOTH.into_iter().filter(is_whole)
    }

    /// Returns whether every rank can reach every other rank, possibly over relays: one direction
    /// has no broken link, or both directions have exactly one broken link, at the same position.
    pub fn is_connected(&self) -> bool {
        self.whole_directions().next().is_some()
            || (self.broken.len() == 2 && self.broken[0].position == self.broken[1].position)
    }

    /// Returns the rank at a distance of `links` links from `rank` in `direction`.
    pub fn rank_after(&self, rank: u32, direction: Direction, links: u32) -> u32 {
        let (ranks, links) = (u64::from(self.ranks), u64::from(links % self.ranks.max(1)));
        let by = match direction {
            Direction::Clockwise => links,
            Direction::CounterClockwise => ranks - links,
        };
        ((u64::from(rank) + by) % ranks) as u32
    }

    /// Returns the number of links from `source` to `destination` in `direction`, from 0 to N - 1.
    pub fn hops(&self, source: u32, destination: u32, direction: Direction) -> u32 {
        links_between([source, destination], direction, self.ranks)
    }
}

/// Returns the number of links from place `ends[0]` to place `ends[1]` in `direction`, on a ring of
/// `places` places.
fn links_between(ends: [u32; 2], direction: Direction, places: u32) -> u32 {
    let [from, to] = match direction {
        Direction::Clockwise => ends,
        Direction::CounterClockwise => [ends[1], ends[0]],
    };
    match to >= from {
        true => to - from,
        false => to + places - from,
    }
}

impl Named for WdmRing {
    const NAME: &'static str = RECORD.name;
}

impl Machine for WdmRing {
    fn record(&self) -> &'static FamilyRecord {
        &RECORD
    }

    fn spec(&self) -> Spec {
        options::print(self, &RECORD, declared)
    }

    fn nature(&self) -> &'static str {
        "a ring of wavelengths"
    }

    /// Returns the parts: transmitters and receivers of all channels of both directions, or as many
    /// as the ports allow; the ring resonators of each fibre at each rank; and the fibres.
    fn bill(&self) -> Bill {
        let (nodes, fibres) = (u64::from(self.nodes), 2 * u64::from(self.fibres));
        let channels = fibres * u64::from(self.wavelengths);
        let lights = nodes
            * self
                .ports
                .map_or(channels, |ports| channels.min(ports.into()));
        let resonators = nodes * fibres * u64::from(self.resonators);
        Bill::default()
            .with_lights(WDM, [lights, lights], self.rate)
            .with(resonators, PartKind::new("ring_drop"))
            .with(nodes * fibres, PartKind::new("fibre"))
    }

    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn node(&self, rank: u32) -> u32 {
        self.node_of_rank
            .get(rank as usize)
            .copied()
            .unwrap_or(rank)
    }

    /// Returns the range of the members if they are consecutive ranks with intact links between
    /// them. Otherwise returns the range of all ranks.
    fn part_span(&self, members: &[u32]) -> (u32, u32) {
        let whole_ring = (0, self.ranks);
        let (Some(&first), Some(&last)) = (members.first(), members.last()) else {
            return whole_ring;
        };
        let consecutive = members.windows(2).all(|pair| pair[1] == pair[0] + 1);
        let nodes = self.node(first)..self.node(last);
        let mut slower = self.degraded.links.keys();
        let is_intact = self
            .broken
            .iter()
            .all(|cut| !(first..last).contains(&cut.position))
            && slower.all(|link| !nodes.contains(&link.position));
        match consecutive && is_intact {
            true => (first, last + 1 - first),
            false => whole_ring,
        }
    }

    /// Returns a ring of the members. If the members are consecutive ranks with intact links
    /// between them, the ring has only these links. Otherwise the ring has all links.
    fn part(&self, members: &[u32]) -> Result<Fabric, FabricError> {
        let nodes: Vec<u32> = members.iter().map(|&rank| self.node(rank)).collect();
        let mut spec = self.spec().without(MEMBERS.name);
        spec = spec.with(MEMBERS.name, part::joined(&nodes, u32::to_string));
        let has_span = self.part_span(members).1 as usize == members.len();
        if let (Some(&last), true) = (nodes.last(), has_span) {
            let cut = format!("{last}-{}", (last + 1) % self.nodes);
            let cuts = spec.option("broken").map(|cuts| format!("{cuts}+"));
            let cuts = cuts.unwrap_or_default() + &cut;
            spec = spec.without("broken").with("broken", cuts);
        }
        (RECORD.build)(&spec)
    }

    fn description(&self) -> String {
        let of_nodes = match self.node_of_rank.is_empty() {
            true => String::new(),
            false => format!(" of {}", self.nodes),
        };
        format!(
            "{}{of_nodes}, {} per direction, {} per fibre, {} per wavelength, {} to reconfigure",
            plural(self.ranks as usize, "rank"),
            plural(self.fibres as usize, "fibre"),
            plural(self.wavelengths as usize, "wavelength"),
            self.rate.words(),
            self.reconfiguration
        )
    }

    /// Returns the total rate of the channels that leave a rank in both directions; the minimum
    /// over all ranks. Dead channels and broken links do not count, and the ports of a rank limit
    /// the rate.
    fn injection_bandwidth(&self) -> u128 {
        let cuts_at = |rank: u32| {
            // A clockwise link starts at rank `position`; a counter-clockwise link starts at the
            // next rank.
            let leaves = self.broken.iter().filter(|link| match link.direction {
                Direction::Clockwise => link.position == rank,
                Direction::CounterClockwise => (link.position + 1) % self.ranks == rank,
            });
            leaves.count() as u32
        };
        let intact_directions = 2 - (0..self.ranks).map(cuts_at).max().unwrap_or(0).min(2);
        let channels = self.channels() * intact_directions;
        let sent = self.ports.map_or(channels, |ports| ports.min(channels));
        let full_rate = u128::from(sent) * u128::from(self.rate.bits_per_second());
        match self.degraded.has_slower_parts() {
            false => full_rate,
            true => (0..self.ranks)
                .map(|rank| self.total_send_rate(rank))
                .min()
                .unwrap_or(full_rate),
        }
    }

    fn planning_alternatives(&self) -> Vec<Fabric> {
        self.undegraded_rings()
            .into_iter()
            .map(Fabric::new)
            .collect()
    }

    fn circuits(&self) -> Option<&dyn Circuits> {
        Some(self)
    }
}
