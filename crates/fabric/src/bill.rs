//! Bills of materials: the parts of a machine, as numbers of components.
//!
//! Each family states its parts from its own options ([`Machine::bill`]). A network of links has
//! the parts of its cables, whatever its family ([`Bill::for_network`]). Failed parts, and the
//! parts of ranks that take no part, count, because the machine still has them.
//!
//! ```
//! use opticoll_fabric::fabric::Fabric;
//! let star = Fabric::parse("crossbar:ranks=4,rate=800Gb/s")?;
//! let lines: Vec<String> = star.bill().lines().map(|line| line.to_string()).collect();
//! assert_eq!(
//!     lines,
//!     [
//!         "4 transceiver at ranks of 800Gb/s",
//!         "4 transceiver at switches of 800Gb/s",
//!         "4 fibre_cable",
//!         "4 nic at ranks of 800Gb/s",
//!         "1 packet_switch with 4 ports of 800Gb/s",
//!     ]
//! );
//! # Ok::<(), opticoll_fabric::fabric::FabricError>(())
//! ```
//!
//! [`Machine::bill`]: crate::fabric::Machine::bill

use std::collections::BTreeMap;
use std::fmt;

use crate::network::Network;
use opticoll_base::interrupt;
use opticoll_base::units::Rate;

/// Kind of a part. Two parts of the same kind have the same power and price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartKind {
    /// Name of the component ([`COMPONENTS`](crate::components::COMPONENTS)).
    pub component: &'static str,
    /// Place of the parts, such as `at ranks`. Empty if the component has one place only.
    pub place: &'static str,
    /// Rate of the part or of each of its ports, in one direction. `None` if it has no rate.
    pub rate: Option<Rate>,
    /// Number of ports of the part. `None` if it is not a switch.
    pub ports: Option<u32>,
}

impl PartKind {
    pub(crate) const fn new(component: &'static str) -> PartKind {
        PartKind {
            component,
            place: "",
            rate: None,
            ports: None,
        }
    }

    pub(crate) const fn at(self, place: &'static str) -> PartKind {
        PartKind { place, ..self }
    }

    pub(crate) const fn rate(self, rate: Rate) -> PartKind {
        PartKind {
            rate: Some(rate),
            ..self
        }
    }

    pub(crate) const fn ports(self, ports: u32) -> PartKind {
        PartKind {
            ports: Some(ports),
            ..self
        }
    }

    /// Returns the place of a part of a network in a bill: cables and their ends before switches.
    fn place_in_bill(self) -> usize {
        let order = [
            "copper_cable",
            "transceiver",
            "fibre_cable",
            "nic",
            "server_switch",
        ];
        let place = order.iter().position(|name| *name == self.component);
        place.unwrap_or(order.len())
    }
}

/// Number of parts of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BillLine {
    /// Kind of the parts.
    pub kind: PartKind,
    /// Number of parts, at least 1.
    pub count: u128,
}

impl fmt::Display for BillLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PartKind {
            component,
            place,
            rate,
            ports,
        } = self.kind;
        write!(formatter, "{} {component}", self.count)?;
        if !place.is_empty() {
            write!(formatter, " {place}")?;
        }
        if let Some(ports) = ports {
            write!(formatter, " with {ports} ports")?;
        }
        rate.map_or(Ok(()), |rate| write!(formatter, " of {rate}"))
    }
}

/// Place of parts at ranks.
pub(crate) const AT_RANKS: &str = "at ranks";

/// Components of the transmitters and receivers of wavelengths.
pub(crate) const WDM: [&str; 3] = ["wdm_transceiver", "wdm_transmitter", "wdm_receiver"];

/// Components of transmitters and receivers that are tuned to a wavelength.
pub(crate) const TUNABLE: [&str; 3] = [
    "tunable_transceiver",
    "tunable_transmitter",
    "tunable_receiver",
];

/// Place of parts at switches.
pub(crate) const AT_SWITCHES: &str = "at switches";

/// Parts of a machine, in the order in which the machine states their kinds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bill(Vec<BillLine>);

impl Bill {
    /// Returns the numbers of parts, one line for each kind.
    pub fn lines(&self) -> impl Iterator<Item = BillLine> + '_ {
        self.0.iter().copied()
    }

    /// Returns the bill with `count` more parts of `kind`.
    pub(crate) fn with(mut self, count: impl Into<u128>, kind: PartKind) -> Bill {
        let count = count.into();
        if count == 0 {
            return self;
        }
        match self.0.iter_mut().find(|line| line.kind == kind) {
            Some(line) => line.count += count,
            None => self.0.push(BillLine { kind, count }),
        }
        self
    }

    /// Returns the bill with the transmitters and receivers of ranks, each of one wavelength. One
    /// of each is a transceiver. `names` are the components of a transceiver, of a transmitter and
    /// of a receiver.
    pub(crate) fn with_lights(
        self,
        names: [&'static str; 3],
        [transmitters, receivers]: [u64; 2],
        rate: Rate,
    ) -> Bill {
        let pairs = transmitters.min(receivers);
        let counts = [pairs, transmitters - pairs, receivers - pairs];
        let lines = names.into_iter().zip(counts);
        lines.fold(self, |bill, (name, count)| {
            bill.with(count, PartKind::new(name).at(AT_RANKS).rate(rate))
        })
    }

    /// Returns the bill with `copies` times the parts of `other`.
    pub(crate) fn with_copies(self, copies: impl Into<u128>, other: &Bill) -> Bill {
        let copies = copies.into();
        other
            .0
            .iter()
            .fold(self, |bill, line| bill.with(copies * line.count, line.kind))
    }

    /// Returns the bytes that pass the transceivers of this bill, in halves of bytes. Circuits have
    /// the rate `rate`. Messages that use no circuit pass transceivers and NICs of the rate
    /// `packet_rate`.
    pub(crate) fn bytes_over_circuits(
        &self,
        rate: Rate,
        packet_rate: Option<Rate>,
        moved: &MovedBytes<'_>,
    ) -> Bill {
        let of_rate = |rate: Option<Rate>| self.lines().filter(move |line| line.kind.rate == rate);
        let lit = of_rate(Some(rate)).find(|line| line.kind.component.ends_with("transceiver"));
        let circuits = lit.map(|line| (moved.sent + moved.received, line.kind));
        let packets = of_rate(packet_rate.filter(|_| moved.packets > 0));
        let packets = packets.map(|line| (2 * moved.packets, line.kind));
        let passed = circuits.into_iter().chain(packets);
        passed.fold(Bill::default(), |bill, (halves, kind)| {
            bill.with(halves, kind)
        })
    }

    /// Returns the parts of a network of links: of its cables, NICs and switches.
    pub fn for_network(network: &(impl Network + ?Sized)) -> Bill {
        Bill::default().with_cables(network, &WholeNetwork::of(network))
    }

    /// Returns the bill with the parts of the cables of a network, and with its switches. A cable
    /// is what joins two vertices in both directions; a link without a link back is a cable as
    /// well. A switch has a port for each of its cables. The rate of its ports is that of its
    /// fastest cable.
    pub(crate) fn with_cables(
        self,
        network: &(impl Network + ?Sized),
        cabling: &impl Cabling,
    ) -> Bill {
        let cables = cables(network);
        let mut counts: BTreeMap<(usize, PartKind), u64> = BTreeMap::new();
        let mut count = |kind: PartKind, number| {
            *counts.entry((kind.place_in_bill(), kind)).or_insert(0) += number;
        };
        for (&(first, second, rate), &number) in &cables {
            let ends = [(first, second), (second, first)];
            for kind in ends
                .iter()
                .flat_map(|(end, other)| cabling.parts_at(*end, *other))
            {
                count(kind.rate(rate), number);
            }
            if let Some(cable) = cabling.cable(first, second) {
                count(PartKind::new(cable), number);
            }
        }
        for kind in switches(&cables, cabling).into_values() {
            count(kind, 1);
        }
        let counts = counts.into_iter();
        counts.fold(self, |bill, ((_, kind), number)| bill.with(number, kind))
    }

    /// Returns the bill with the bytes that pass the parts of a network, in halves of bytes, if
    /// `bytes` cross each of its links. Half of a byte passes the parts at each end of a link, and
    /// a whole byte passes its cable. So a byte that enters and leaves a switch passes it once.
    pub(crate) fn with_bytes(
        self,
        network: &(impl Network + ?Sized),
        cabling: &impl Cabling,
        bytes: &[u64],
    ) -> Bill {
        let switches = switches(&cables(network), cabling);
        let mut passed: BTreeMap<(usize, PartKind), u128> = BTreeMap::new();
        let mut pass = |kind: PartKind, halves: u128| {
            *passed.entry((kind.place_in_bill(), kind)).or_insert(0) += halves;
        };
        let links = network.wiring().ends().zip(network.links()).zip(bytes);
        for (((from, to, _), link), &bytes) in links {
            let bytes = u128::from(bytes);
            for (end, other) in [(from, to), (to, from)] {
                for kind in cabling.parts_at(end, other) {
                    pass(kind.rate(link.rate), bytes);
                }
                if let Some(kind) = switches.get(&end) {
                    pass(*kind, bytes);
                }
            }
            if let Some(cable) = cabling.cable(from, to) {
                pass(PartKind::new(cable), 2 * bytes);
            }
        }
        let passed = passed.into_iter();
        passed.fold(self, |bill, ((_, kind), halves)| bill.with(halves, kind))
    }
}

/// Bytes that a plan moves over a machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct MovedBytes<'a> {
    /// Bytes over each link of the network. Empty if data move over circuits.
    pub links: &'a [u64],
    /// Bytes that ranks send over circuits.
    pub sent: u128,
    /// Bytes that ranks receive over circuits. One transmitter may have several receivers.
    pub received: u128,
    /// Bytes of messages that use no circuit, on a fabric with circuits
    /// ([`Circuits::side_network`](crate::fabric::Circuits::side_network)).
    pub packets: u128,
}

/// Parts of the cables and vertices of a network.
pub(crate) trait Cabling {
    /// Returns the component of the cable between two vertices. Returns `None` if no part is
    /// between them.
    fn cable(&self, first: u32, second: u32) -> Option<&'static str>;

    /// Returns the parts of a cable at its end `end`, without their rates.
    fn parts_at(&self, end: u32, other: u32) -> Vec<PartKind>;

    /// Returns the component of a vertex if the vertex is a switch.
    fn switch(&self, vertex: u32) -> Option<&'static str>;
}

/// Parts of a network of fibres, whatever its family:
///
/// * Each cable has a transceiver at each of its two ends.
/// * A rank has a NIC for each cable to a switch. Between ranks, chips send on their own ports.
/// * Each vertex that is no rank is a packet switch.
pub(crate) struct WholeNetwork {
    ranks: u32,
}

impl WholeNetwork {
    pub(crate) fn of(network: &(impl Network + ?Sized)) -> WholeNetwork {
        WholeNetwork {
            ranks: network.ranks() + network.idle_ranks(),
        }
    }
}

impl Cabling for WholeNetwork {
    fn cable(&self, _first: u32, _second: u32) -> Option<&'static str> {
        Some("fibre_cable")
    }

    fn parts_at(&self, end: u32, other: u32) -> Vec<PartKind> {
        let transceiver = PartKind::new("transceiver");
        match (end < self.ranks, other < self.ranks) {
            (true, true) => vec![transceiver.at(AT_RANKS)],
            (true, false) => vec![transceiver.at(AT_RANKS), PartKind::new("nic").at(AT_RANKS)],
            (false, _) => vec![transceiver.at(AT_SWITCHES)],
        }
    }

    fn switch(&self, vertex: u32) -> Option<&'static str> {
        (vertex >= self.ranks).then_some("packet_switch")
    }
}

/// Number of cables between two vertices (the lower one first) at a rate.
type Cables = BTreeMap<(u32, u32, Rate), u64>;

/// Returns each switch that has cables, as a part with its ports, indexed by vertex.
fn switches(cables: &Cables, cabling: &impl Cabling) -> BTreeMap<u32, PartKind> {
    let mut switches: BTreeMap<u32, PartKind> = BTreeMap::new();
    for (&(first, second, rate), &count) in cables {
        for vertex in [first, second] {
            let Some(component) = cabling.switch(vertex) else {
                continue;
            };
            let switch = switches.entry(vertex);
            let switch = switch.or_insert(PartKind::new(component).ports(0));
            switch.ports = switch.ports.map(|ports| ports + count as u32);
            switch.rate = switch.rate.max(Some(rate));
        }
    }
    switches
}

/// Returns the cables of a network.
fn cables(network: &(impl Network + ?Sized)) -> Cables {
    // Links upwards, links downwards, and links that lead both ways.
    let mut links: BTreeMap<(u32, u32, Rate), [u64; 3]> = BTreeMap::new();
    for ((from, to, both_ways), link) in network.wiring().ends().zip(network.links()) {
        interrupt::check();
        let direction = match (both_ways, from < to) {
            (true, _) => 2,
            (false, true) => 0,
            (false, false) => 1,
        };
        let ends = (from.min(to), from.max(to), link.rate);
        links.entry(ends).or_default()[direction] += 1;
    }
    let cables = links.into_iter();
    cables
        .map(|(ends, [up, down, both])| (ends, up.max(down) + both))
        .collect()
}
