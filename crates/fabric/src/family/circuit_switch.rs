//! Ranks whose ports are joined by an optical circuit switch (OCS), or by several parallel
//! switches.
//!
//! A rank has d output ports and d input ports. A *configuration* is a set of circuits from output
//! ports to input ports, in which each port belongs to at most one circuit. The machine has s
//! parallel *planes*, each with d / s ports of every rank: plane 0 joins the first d / s ports of
//! all ranks, plane 1 joins the next d / s ports, and so on. A message may pass through relay ranks
//! and then uses several circuits. If a switch has too few ports for all ranks, a plane consists of
//! several switches. Ports may be dead (`wiring`).

mod circuits;
mod presets;
mod wiring;

use std::fmt;
use std::str::FromStr;

use crate::bill::{AT_RANKS, Bill, PartKind};
use crate::drawing;
use crate::drawing::Drawing;
use crate::fabric::light::{Light, LightField, LightKind, PACKET, light_numbers};
use crate::fabric::loss::{FIXED, LossBudget, LossOptions, PassedLoss, Place, SWITCH};
use crate::fabric::options;
use crate::fabric::options::DefaultRule::*;
use crate::fabric::options::{Options, declare};
use crate::fabric::wiring::{CHOSEN, MAX_RANKS};
use crate::fabric::{Circuits, Fabric, FabricError, FamilyRecord, Machine, Named};
use opticoll_base::names::plural;
use opticoll_base::spec::{OptionRecord, Role, Spec};
use opticoll_base::units::{Quantity, Rate, Time, UnitError};
pub use wiring::RankPort;

/// Ranks around an optical circuit switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CircuitSwitch {
    /// Number of ranks, n.
    pub ranks: u32,
    /// Number of output ports per rank, which is also the number of input ports per rank, d.
    pub ports: u32,
    /// Number of planes, s. The ports of a rank are divided evenly among the planes.
    pub planes: u32,
    /// Number of ports per switch. If one switch has too few ports for all ranks, a plane consists
    /// of several switches.
    pub switch_ports: u32,
    /// Ports that are out of order, sorted.
    pub dead_ports: Vec<RankPort>,
    /// Ports with a reduced rate, each as (port, reduced rate), sorted.
    pub degraded: Vec<(RankPort, Rate)>,
    /// Rate of each port, 1 / beta.
    pub rate: Rate,
    /// Time to change the configuration, alpha_r.
    pub reconfiguration: Reconfiguration,
    /// Rule that decides whether the first configuration is charged.
    pub first_configuration: FirstConfiguration,
    /// Delay that is added once per message, regardless of its number of circuits, alpha.
    pub startup: Time,
    /// Delay of each circuit of a message, delta.
    pub latency: Time,
    /// Rule by which a rank forwards messages to other ranks.
    pub forwarding: Forwarding,
    /// Rate of each rank's port to a packet network that exists in addition to the switch. This
    /// network joins all ranks. `None` if there is no such network.
    pub packet_rate: Option<Rate>,
    /// Delay of a message on the packet network.
    pub packet_latency: Time,
    /// Powers and losses of light; `None` if not given.
    pub budget: Option<LossBudget>,
}

/// Time to change the configuration, as up to three parts: control, switching, receiver lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconfiguration(Vec<Time>);

const MAX_PARTS: usize = 3;

impl Reconfiguration {
    /// Creates a reconfiguration time of one part.
    pub fn new(time: Time) -> Reconfiguration {
        Reconfiguration(vec![time])
    }

    /// Returns the sum of all parts.
    pub fn time(&self) -> Result<Time, UnitError> {
        let mut parts = self.0.iter();
        parts.try_fold(Time::ZERO, |all, part| all.plus(*part))
    }
}

impl fmt::Display for Reconfiguration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(Time::to_string).collect();
        formatter.write_str(&parts.join("+"))
    }
}

impl FromStr for Reconfiguration {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Reconfiguration, UnitError> {
        let parts: Vec<Time> = text
            .splitn(MAX_PARTS, '+')
            .map(str::parse)
            .collect::<Result<_, UnitError>>()?;
        Ok(Reconfiguration(parts))
    }
}

impl Quantity for Reconfiguration {
    const UNIT: &'static str = Time::UNIT;
    const RANGE: &'static str =
        "0s or more, or up to three parts, such as 68us+3us+9us for control, switching and lock";
}

opticoll_base::named_enum! {
    /// Rule that decides whether the first configuration is charged.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum FirstConfiguration {
        /// The first configuration is up at the start, at no cost.
        Free = "free",
        /// The first configuration is charged like every other configuration.
        Charged = "charged",
    }

    /// Rule by which a rank forwards a message to another rank.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Forwarding {
        /// The rank forwards a message after it has received the whole message, in a later slot.
        Store = "store",
        /// The rank forwards a message while it arrives, possibly in the same slot.
        CutThrough = "cut_through",
    }
}

/// Format of the light of a transfer: the ports at the two ends of the circuit.
pub const LIGHT: LightKind = LightKind {
    form: "{source_port}.{destination_port}",
    example: "0.1",
    relays: true,
    words: &[(PACKET, SwitchedLight::PACKET)],
    fields: &[
        LightField::new("source_port", 9, "the port out of the rank that sends"),
        LightField::new(
            "destination_port",
            9,
            "the port in of the rank that receives",
        ),
    ],
};

light_numbers! {
    /// Light of a transfer: the ports at the two ends of the circuit, or [`SwitchedLight::PACKET`].
    pub struct SwitchedLight {
        /// Index of the output port at the sending rank.
        pub source_port: u16 = 9,
        /// Index of the input port at the receiving rank.
        pub destination_port: u16 = 9,
    }
}

/// Port index that marks messages on the packet network.
pub const BESIDE: u16 = (1 << 9) - 1;

impl SwitchedLight {
    /// Light of messages on the packet network.
    pub const PACKET: Light = Light((BESIDE as u32) << 9 | BESIDE as u32);
}

/// Maximum number of ports of a rank. Port indices in plans have 9 bits, and their maximum is
/// [`BESIDE`].
const MAX_PORTS: u32 = 1 << 8;

/// Record of the family.
pub const RECORD: FamilyRecord = FamilyRecord {
    name: "circuit_switch",
    summary: "Ranks with a few ports each, joined by an optical circuit switch (OCS) that is \
        reconfigured between messages",
    citation: "Liu et al., Lightwave Fabrics, SIGCOMM 2023; Poutievski et al., Jupiter Evolving, \
        SIGCOMM 2022",
    example: "circuit_switch:ranks=64",
    options: || options::list(&RECORD, declared),
    build: |spec| {
        let switch = options::read(spec, &RECORD, declared)?;
        if switch.ports % switch.planes != 0 {
            let rule = format!("must divide ports={}", switch.ports);
            return Err(spec.refuse("planes", rule).into());
        }
        switch.reaches_all(spec)?;
        if switch.packet_rate.is_none() && spec.option("packet_latency").is_some() {
            let rule = "needs packet_rate=..., the rate of a port of the packet network";
            return Err(spec.refuse("packet_latency", rule).into());
        }
        Ok(Fabric::new(switch))
    },
    presets: presets::PRESETS,
};

const LOSS_OPTIONS: LossOptions = LossOptions {
    example: "launch_power=5dBm,sensitivity=-10dBm,switch_loss=2dB",
    launch_power: "power of light at a port; with sensitivity it limits the losses",
    losses: &[SWITCH, FIXED],
    others: &[],
};

fn losses(budget: &LossBudget) -> Vec<PassedLoss> {
    vec![budget.fixed(), budget.at(Place::Through, "switch", 1)]
}

fn declared(options: &mut Options<'_, CircuitSwitch>) -> Result<CircuitSwitch, FabricError> {
    declare! { options of CircuitSwitch;
        ranks "ranks" count(MAX_RANKS, Required) "number of ranks";
        ports "ports" count(MAX_PORTS, Printed(1))
            "ports of a rank, each of which sends and receives";
        planes "planes" count(MAX_PORTS, Silent(1))
            "parallel switches, among which the ports of a rank are divided evenly";
        switch_ports "switch_ports" count(MAX_RANKS * MAX_PORTS, Silent(ranks * (ports / planes)))
            "ports of a switch; if they are too few for all ranks, a plane consists of several \
             switches"
            default "the number that joins all ranks";
        dead_ports "dead_ports" list(
            |spec| wiring::read_dead_ports(spec, ranks, ports),
            wiring::print_dead_ports)
            Broken "failed ports, by rank and port" range "3.0+5.1";
        rate "rate" value(Printed(Rate::gigabits(800)))
            "rate of a port, in each direction" source CHOSEN;
        degraded "degraded" list(
            |spec| wiring::read_degraded(spec, (ranks, ports), rate),
            wiring::print_degraded)
            Broken "slower ports (sending and receiving) and their rates"
            range "3.0@100Gb/s+5.1@50Gb/s";
        reconfiguration "reconfiguration"
            value(Printed(Reconfiguration::new(Time::from_ps(10_000_000)))) Reconfiguration
            "time to reconfigure, or its parts: control+switching+lock" source CHOSEN;
        first_configuration "first_configuration"
            word(&FirstConfiguration::WORDS, Silent(FirstConfiguration::Free)) Reconfiguration
            "charge for the first configuration: free (up at the start) or charged";
        startup "startup" value(Silent(Time::ZERO))
            "delay of a message, once for all circuits of its route";
        latency "latency" value(Silent(Time::ZERO)) "delay of each circuit";
        forwarding "forwarding" word(&Forwarding::WORDS, Silent(Forwarding::Store))
            "forwarding at ranks: store (after the whole message has arrived) or cut_through \
             (while it arrives)";
        packet_rate "packet_rate" option(
            |spec| Ok(spec.value("packet_rate")?),
            |rate| rate.map(|rate: Rate| rate.to_string()))
            "rate of each rank's port into a packet network that joins all ranks, in addition to \
             the switch"
            unit "b/s" range "1b/s or more" default "none";
        packet_latency "packet_latency" value(Silent(Time::ZERO))
            "delay of a message in the packet network";
    }
    let budget = LOSS_OPTIONS.uniform(options, losses, |machine| machine.budget)?;
    Ok(CircuitSwitch {
        ranks,
        ports,
        planes,
        switch_ports,
        dead_ports,
        degraded,
        rate,
        reconfiguration,
        first_configuration,
        startup,
        latency,
        forwarding,
        packet_rate,
        packet_latency,
        budget,
    })
}

impl Named for CircuitSwitch {
    const NAME: &'static str = RECORD.name;
}

impl Machine for CircuitSwitch {
    fn record(&self) -> &'static FamilyRecord {
        &RECORD
    }

    fn spec(&self) -> Spec {
        options::print(self, &RECORD, declared)
    }

    fn nature(&self) -> &'static str {
        "a circuit switch, which has no permanent links"
    }

    /// Returns the parts: a transceiver at each port of a rank, a cable from each to a switch, the
    /// switches, and the NIC of each rank in the packet network, whose switches are not modelled.
    fn bill(&self) -> Bill {
        let ranks = u64::from(self.ranks);
        let ports = ranks * u64::from(self.ports);
        let at_ranks = |name| PartKind::new(name).at(AT_RANKS);
        let bill = Bill::default()
            .with(ports, at_ranks("transceiver").rate(self.rate))
            .with(ports, PartKind::new("fibre_cable"))
            .with(
                self.switch_count(),
                PartKind::new("ocs").ports(self.switch_ports),
            );
        self.packet_rate.into_iter().fold(bill, |bill, rate| {
            bill.with(ranks, at_ranks("transceiver").rate(rate))
                .with(ranks, at_ranks("nic").rate(rate))
        })
    }

    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn description(&self) -> String {
        let beside = self
            .packet_rate
            .map(|rate| format!(", packet network of {}", rate.words()));
        format!(
            "{}, {} of {} each, {}, {} to reconfigure{}",
            plural(self.ranks as usize, "rank"),
            plural(self.ports as usize, "port"),
            self.rate.words(),
            self.switch_words(),
            self.reconfiguration,
            beside.unwrap_or_default()
        )
    }

    /// Returns the minimum of the injection bandwidths of all ranks. The injection bandwidth of a
    /// rank is the total rate of its working ports and of its port to the packet network.
    fn injection_bandwidth(&self) -> u128 {
        let dead = self.dead_ports.iter().map(|port| port.rank);
        let slower = self.degraded.iter().map(|(port, _)| port.rank);
        let least = dead
            .chain(slower)
            .map(|rank| self.bits_of_ports(rank))
            .min();
        let all_ports = u128::from(self.ports) * u128::from(self.rate.bits_per_second());
        least.unwrap_or(all_ports) + self.bits_beside()
    }

    fn circuits(&self) -> Option<&dyn Circuits> {
        Some(self)
    }

    fn planning_alternatives(&self) -> Vec<Fabric> {
        self.undegraded_switches()
            .into_iter()
            .map(Fabric::new)
            .collect()
    }

    fn drawing(&self) -> Option<Drawing> {
        let mut places = drawing::circle(self.ranks);
        places.push([0.0, 0.0]);
        Some(Drawing::new(places))
    }
}
