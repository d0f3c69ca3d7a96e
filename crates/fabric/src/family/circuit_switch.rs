//! Ranks whose ports an optical circuit switch joins (OCS), or several side by side.
//!
//! A rank has d ports out and d ports in. A *setting* says which port out is joined to which port in; each port is in
//! one circuit at most. The switch is made of s *planes*: plane p joins the ports p d / s to (p + 1) d / s - 1 of all
//! ranks, among each other only. Data may go over several circuits, from rank to rank, stored before they are sent on. A plane is
//! several switches where a switch has too few ports for all ranks, and ports may be dead: `wiring`.

mod circuits;
mod presets;
mod wiring;

use std::fmt;
use std::str::FromStr;

use crate::drawing;
use crate::drawing::Drawing;
use crate::fabric::light::{Light, LightField, LightKind};
use crate::fabric::options;
use crate::fabric::options::Otherwise::*;
use crate::fabric::options::{Options, declare};
use crate::fabric::wiring::CHOSEN;
use crate::fabric::{Circuits, Fabric, FabricError, FamilyRecord, Machine, Named};
use opticoll_base::names::plural;
use opticoll_base::spec::{OptionRecord, Role, Spec};
use opticoll_base::units::{Quantity, Rate, Time, UnitError};
pub use wiring::RankPort;

/// Ranks around an optical circuit switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CircuitSwitch {
    /// The number of ranks, n.
    pub ranks: u32,
    /// Ports of a rank, out and in, d.
    pub ports: u32,
    /// Switches side by side, s, which share the ports of a rank evenly.
    pub planes: u32,
    /// Ports of each switch; a plane is several switches where they are too few for all ranks.
    pub switch_ports: u32,
    /// Ports that neither send nor receive, in order.
    pub dead_ports: Vec<RankPort>,
    /// Ports that are slower, out and in, and their rates; in order.
    pub degraded: Vec<(RankPort, Rate)>,
    /// Rate of a port; 1 / beta.
    pub rate: Rate,
    /// From one setting to the next, alpha_r.
    pub reconfiguration: Reconfiguration,
    /// Whether the first setting is there at the beginning.
    pub first_setting: FirstSetting,
    /// Of a message, once, however many circuits it goes over: alpha.
    pub startup: Time,
    /// Of each circuit: delta.
    pub latency: Time,
    /// How a rank sends on what is on its way to another.
    pub forwarding: Forwarding,
    /// Rate of each rank's port into a packet network beside the switch, which joins all ranks at once; none where there is none.
    pub beside_rate: Option<Rate>,
    /// Of a message beside the switch.
    pub beside_latency: Time,
}

/// What a change of the setting takes, in parts that follow one another: control, switching and the receivers' lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconfiguration(Vec<Time>);

/// The most parts of a reconfiguration.
const MOST_PARTS: usize = 3;

impl Reconfiguration {
    /// One part.
    pub fn new(time: Time) -> Reconfiguration {
        Reconfiguration(vec![time])
    }

    /// All parts together.
    ///
    /// # Errors
    /// A time beyond 64 bits.
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
            .splitn(MOST_PARTS, '+')
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
    /// Whether the first setting is there at the beginning.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum FirstSetting {
        /// It is.
        Free = "free",
        /// It is made like any other.
        Charged = "charged",
    }

    /// How a rank sends on what is on its way to another.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Forwarding {
        /// When it has all of a message, in a later slot.
        Store = "store",
        /// While the message arrives, in the same slot, too.
        CutThrough = "cut_through",
    }
}

/// The ports that a circuit joins.
pub const LIGHT: LightKind = LightKind {
    form: "{source_port}.{destination_port}",
    example: "0.1",
    relays: true,
    words: &[("beside", SwitchedLight::BESIDE)],
    fields: &[
        LightField {
            name: "source_port",
            bits: 9,
            names: &[],
            star: false,
            shifts: false,
            meaning: "the port out of the rank that sends",
        },
        LightField {
            name: "destination_port",
            bits: 9,
            names: &[],
            star: false,
            shifts: false,
            meaning: "the port in of the rank that receives",
        },
    ],
};

/// The light of a transfer: the ports that its circuit joins, or [`SwitchedLight::BESIDE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchedLight {
    /// The port out of the rank that sends, 0..ports.
    pub source_port: u16,
    /// The port in of the rank that receives, 0..ports.
    pub destination_port: u16,
}

/// What stands for both ports of a message beside the switch.
pub const BESIDE: u16 = (1 << 9) - 1;

impl SwitchedLight {
    /// What goes beside the switch.
    pub const BESIDE: Light = Light((BESIDE as u32) << 9 | BESIDE as u32);
}

impl From<Light> for SwitchedLight {
    #[inline]
    fn from(Light(word): Light) -> SwitchedLight {
        SwitchedLight {
            source_port: (word >> 9 & 0x1ff) as u16,
            destination_port: (word & 0x1ff) as u16,
        }
    }
}

impl From<SwitchedLight> for Light {
    #[inline]
    fn from(light: SwitchedLight) -> Light {
        Light(u32::from(light.source_port) << 9 | u32::from(light.destination_port))
    }
}

const MOST_RANKS: u32 = 1 << 20;
/// A plan numbers ports with 9 bits, of which the greatest number is no port.
const MOST_PORTS: u32 = 1 << 8;

/// The family's record.
pub const RECORD: FamilyRecord = FamilyRecord {
    name: "circuit_switch",
    summary: "Ranks with a few ports each, joined by an optical circuit switch (OCS) that is set anew between messages",
    citation: "Liu et al., Lightwave Fabrics, SIGCOMM 2023; Poutievski et al., Jupiter Evolving, SIGCOMM 2022",
    example: "circuit_switch:ranks=64",
    options: || options::list(&RECORD, declared),
    build: |spec| {
        let switch = options::read(spec, &RECORD, declared)?;
        if switch.ports % switch.planes != 0 {
            let rule = format!("must divide ports={}", switch.ports);
            return Err(spec.refuse("planes", rule).into());
        }
        switch.reaches_all(spec)?;
        if switch.beside_rate.is_none() && spec.option("beside_latency").is_some() {
            let rule = "needs beside_rate=..., the rate of a port of the network beside the switch";
            return Err(spec.refuse("beside_latency", rule).into());
        }
        Ok(Fabric::new(switch))
    },
    presets: presets::PRESETS,
};

fn declared(options: &mut Options<'_, CircuitSwitch>) -> Result<CircuitSwitch, FabricError> {
    declare! { options of CircuitSwitch;
        ranks "ranks" count(MOST_RANKS, Required) "number of ranks";
        ports "ports" count(MOST_PORTS, Printed(1)) "ports of a rank, each of which sends and receives";
        planes "planes" count(MOST_PORTS, Silent(1))
            "switches side by side, which share the ports of a rank evenly";
        switch_ports "switch_ports" count(MOST_RANKS * MOST_PORTS, Silent(ranks * (ports / planes)))
            "ports of a switch; with too few for all ranks a plane is several switches, of ranks that differ in one digit"
            default "as many as join all ranks";
        dead_ports "dead_ports" list(|spec| wiring::read_dead_ports(spec, ranks, ports), wiring::print_dead_ports)
            Broken "ports out of order, by rank and port" range "3.0+5.1";
        rate "rate" value(Printed(Rate::gigabits(800))) "rate of a port, in each direction" source CHOSEN;
        degraded "degraded" list(|spec| wiring::read_degraded(spec, (ranks, ports), rate), wiring::print_degraded)
            Broken "ports that are slower, out and in, and their rate" range "3.0@100Gb/s+5.1@50Gb/s";
        reconfiguration "reconfiguration" value(Printed(Reconfiguration::new(Time::from_ps(10_000_000)))) Reconfiguration
            "time to change the setting, or its parts: control+switching+lock" source CHOSEN;
        first_setting "first_setting" word(&FirstSetting::WORDS, Silent(FirstSetting::Free)) Reconfiguration
            "whether the first setting is there at the beginning, or charged";
        startup "startup" value(Silent(Time::ZERO)) "delay of a message, once for all circuits that it goes over";
        latency "latency" value(Silent(Time::ZERO)) "delay of each circuit";
        forwarding "forwarding" word(&Forwarding::WORDS, Silent(Forwarding::Store))
            "how ranks send on: when they have all of a message, or while it arrives";
        beside_rate "beside_rate" option(
            |spec| Ok(spec.value("beside_rate")?),
            |rate| rate.map(|rate: Rate| rate.to_string()))
            "rate of each rank's port into a packet network beside the switch, which joins all ranks at once"
            unit "b/s" range "1b/s or more" default "none";
        beside_latency "beside_latency" value(Silent(Time::ZERO)) "delay of a message beside the switch";
    }
    Ok(CircuitSwitch {
        ranks,
        ports,
        planes,
        switch_ports,
        dead_ports,
        degraded,
        rate,
        reconfiguration,
        first_setting,
        startup,
        latency,
        forwarding,
        beside_rate,
        beside_latency,
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
        "a circuit switch, which joins ports and has no links that stay"
    }

    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn words(&self) -> String {
        let beside = self
            .beside_rate
            .map(|rate| format!(", {} beside it", rate.words()));
        format!(
            "{}, {} of {} each, {}, {} to set anew{}",
            plural(self.ranks as usize, "rank"),
            plural(self.ports as usize, "port"),
            self.rate.words(),
            self.switch_words(),
            self.reconfiguration,
            beside.unwrap_or_default()
        )
    }

    /// The rates of the ports that work, and of that beside the switch; of ranks that differ, the least.
    fn injection_bandwidth(&self) -> u128 {
        let dead = self.dead_ports.iter().map(|port| port.rank);
        let slower = self.degraded.iter().map(|(port, _)| port.rank);
        let least = dead
            .chain(slower)
            .map(|rank| self.bits_of_ports(rank))
            .min();
        let whole = u128::from(self.ports) * u128::from(self.rate.bits_per_second());
        least.unwrap_or(whole) + self.bits_beside()
    }

    fn circuits(&self) -> Option<&dyn Circuits> {
        Some(self)
    }

    fn undegraded(&self) -> Vec<Fabric> {
        self.undegraded_switches()
            .into_iter()
            .map(Fabric::new)
            .collect()
    }

    /// The switch in the middle.
    fn drawing(&self) -> Option<Drawing> {
        let mut places = drawing::circle(self.ranks);
        places.push([0.0, 0.0]);
        Some(Drawing::of(places))
    }
}
