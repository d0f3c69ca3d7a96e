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

use crate::network::{Network, vertices};
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
}

/// Number of parts of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BillLine {
    /// Kind of the parts.
    pub kind: PartKind,
    /// Number of parts, at least 1.
    pub count: u64,
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
    pub(crate) fn with(mut self, count: u64, kind: PartKind) -> Bill {
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
    pub(crate) fn with_copies(self, copies: u64, other: &Bill) -> Bill {
        other
            .0
            .iter()
            .fold(self, |bill, line| bill.with(copies * line.count, line.kind))
    }

    /// Returns the parts of a network of links. A cable is what joins two vertices in both
    /// directions; a link without a link back is a cable as well.
    ///
    /// * Each cable has a transceiver at each of its two ends.
    /// * A rank has a NIC for each cable to a switch. Between ranks, chips send on their own ports.
    /// * Each vertex that is no rank is a packet switch with a port for each of its cables. The
    ///   rate of its ports is that of its fastest cable.
    pub fn for_network(network: &(impl Network + ?Sized)) -> Bill {
        let ranks = network.ranks() + network.idle_ranks();
        let mut bill = Bill::default();
        let mut switches = vec![(0u32, None); vertices(network).saturating_sub(ranks) as usize];
        let (mut at_ranks, mut at_switches, mut nics) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut cable_count = 0;
        for ((first, second, rate), count) in cables(network) {
            cable_count += count;
            for (end, other) in [(first, second), (second, first)] {
                let Some(switch) = end.checked_sub(ranks) else {
                    *at_ranks.entry(rate).or_insert(0) += count;
                    if other >= ranks {
                        *nics.entry(rate).or_insert(0) += count;
                    }
                    continue;
                };
                *at_switches.entry(rate).or_insert(0) += count;
                let (ports, fastest) = &mut switches[switch as usize];
                *ports += count as u32;
                *fastest = (*fastest).max(Some(rate));
            }
        }
        let by_rate = |bill: Bill, counts: BTreeMap<Rate, u64>, kind: PartKind| {
            let counts = counts.into_iter();
            counts.fold(bill, |bill, (rate, count)| {
                bill.with(count, kind.rate(rate))
            })
        };
        let transceiver = PartKind::new("transceiver");
        bill = by_rate(bill, at_ranks, transceiver.at(AT_RANKS));
        bill = by_rate(bill, at_switches, transceiver.at(AT_SWITCHES));
        bill = bill.with(cable_count, PartKind::new("fibre_cable"));
        bill = by_rate(bill, nics, PartKind::new("nic").at(AT_RANKS));
        let mut kinds = BTreeMap::new();
        for (ports, rate) in switches {
            if let Some(rate) = rate {
                *kinds.entry((ports, rate)).or_insert(0) += 1;
            }
        }
        kinds
            .into_iter()
            .fold(bill, |bill, ((ports, rate), count)| {
                bill.with(
                    count,
                    PartKind::new("packet_switch").ports(ports).rate(rate),
                )
            })
    }
}

/// Returns the number of cables between two vertices (the lower one first) at a rate.
pub(crate) fn cables(network: &(impl Network + ?Sized)) -> BTreeMap<(u32, u32, Rate), u64> {
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
