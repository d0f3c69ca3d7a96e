//! Ranks joined by lightpaths that are set up on demand and torn down afterwards. The model is a
//! grid of computers on an optical burst-switched network.
//!
//! A lightpath joins a port of one rank to a port of another rank and carries data in both
//! directions at the same time (full duplex). A rank has k ports, and therefore can have lightpaths
//! to at most k other ranks at a time. Setting up any number of lightpaths at the same time takes
//! time `setup`; tearing them down takes time `teardown`. The network between the ranks is not
//! modelled: a lightpath between two free ports can always be set up.

mod circuits;

use crate::bill::{AT_RANKS, Bill, PartKind};
use crate::fabric::light::{Light, LightField, LightKind, light_numbers};
use crate::fabric::loss::{FIXED, LossBudget, LossOptions, PassedLoss};
use crate::fabric::options;
use crate::fabric::options::DefaultRule::*;
use crate::fabric::options::{Options, declare};
use crate::fabric::wiring::MAX_RANKS;
use crate::fabric::{Circuits, Fabric, FabricError, FamilyRecord, Machine, Named};
use opticoll_base::names::plural;
use opticoll_base::spec::{OptionRecord, Role, Spec};
use opticoll_base::units::{Rate, Time};

/// Ranks with ports for lightpaths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LightpathGrid {
    /// Number of ranks, p.
    pub ranks: u32,
    /// Number of ports per rank, k. Each port has at most one lightpath at a time.
    pub ports: u32,
    /// Delay from the first bit sent to the first bit received, alpha.
    pub latency: Time,
    /// Rate of a lightpath in each direction, 1 / beta.
    pub rate: Rate,
    /// Time to set up any number of lightpaths at the same time.
    pub setup: Time,
    /// Time to tear down any number of lightpaths at the same time. `setup` plus `teardown`
    /// is the paper's gamma.
    pub teardown: Time,
    /// Powers and losses of light; `None` if not given.
    pub budget: Option<LossBudget>,
}

/// Format of the light of a transfer: the ports at the two ends of the lightpath.
pub const LIGHT: LightKind = LightKind {
    words: &[],
    form: "{source_port}.{destination_port}",
    example: "0.1",
    relays: false,
    fields: &[
        LightField::new("source_port", 8, "the port of the rank that sends"),
        LightField::new("destination_port", 16, "the port of the rank that receives"),
    ],
};

light_numbers! {
    /// Light of a transfer: the ports at the two ends of the lightpath.
    pub struct PortsLight {
        /// Index of the port at the sending rank.
        pub source_port: u8 = 8,
        /// Index of the port at the receiving rank.
        pub destination_port: u16 = 16,
    }
}

/// Maximum number of ports of a rank, because plans number ports with 8 bits.
const MAX_PORTS: u32 = 1 << 8;

/// Record of the family. The defaults are the values of the cited paper.
pub const RECORD: FamilyRecord = FamilyRecord {
    name: "lightpath_grid",
    summary: "Ranks with a few ports each, joined by lightpaths that are set up and torn down",
    citation: "Matsuoka, Takizawa, Nakada, Koga and Takada, MPI Collective Communication over OBS \
        Grid",
    example: "lightpath_grid:ranks=64,ports=2",
    options: || options::list(&RECORD, declared),
    build: |spec| options::read(spec, &RECORD, declared).map(Fabric::new),
    presets: &[],
};

const LOSS_OPTIONS: LossOptions = LossOptions {
    example: "launch_power=5dBm,sensitivity=-10dBm",
    launch_power: "power of light at a port; with sensitivity it limits the losses",
    losses: &[FIXED],
    others: &[],
};

fn losses(budget: &LossBudget) -> Vec<PassedLoss> {
    vec![budget.fixed()]
}

fn declared(options: &mut Options<'_, LightpathGrid>) -> Result<LightpathGrid, FabricError> {
    declare! { options of LightpathGrid;
        ranks "ranks" count(MAX_RANKS, Required) "number of ranks";
        ports "ports" count(MAX_PORTS, Printed(1))
            "ports of a rank, each for one lightpath at a time";
        latency "latency" value(Printed(Time::from_ps(100_000_000))) "latency of a message";
        rate "rate" value(Printed(Rate::gigabits(1))) "rate of a lightpath, in each direction";
        setup "setup" value(Printed(Time::from_ps(5_000_000_000))) Reconfiguration
            "time to set up any number of lightpaths at the same time";
        teardown "teardown" value(Silent(setup)) Reconfiguration
            "time to tear down any number of lightpaths at the same time" default "setup";
    }
    let budget = LOSS_OPTIONS.uniform(options, losses, |machine| machine.budget)?;
    Ok(LightpathGrid {
        ranks,
        ports,
        latency,
        rate,
        setup,
        teardown,
        budget,
    })
}

impl Named for LightpathGrid {
    const NAME: &'static str = RECORD.name;
}

impl Machine for LightpathGrid {
    fn record(&self) -> &'static FamilyRecord {
        &RECORD
    }

    fn spec(&self) -> Spec {
        options::print(self, &RECORD, declared)
    }

    fn nature(&self) -> &'static str {
        "a lightpath grid, which models ports only, not routes or wavelengths"
    }

    /// Returns the transceivers of the ranks. The network between the ranks is not modelled, so its
    /// parts are not known.
    fn bill(&self) -> Bill {
        let ports = u64::from(self.ranks) * u64::from(self.ports);
        let transceiver = PartKind::new("transceiver").at(AT_RANKS).rate(self.rate);
        Bill::default().with(ports, transceiver)
    }

    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn description(&self) -> String {
        format!(
            "{}, {} each, {} per lightpath, latency {}, {} to set up, {} to tear down",
            plural(self.ranks as usize, "rank"),
            plural(self.ports as usize, "port"),
            self.rate.words(),
            self.latency,
            self.setup,
            self.teardown
        )
    }

    fn injection_bandwidth(&self) -> u128 {
        u128::from(self.ports) * u128::from(self.rate.bits_per_second())
    }

    fn circuits(&self) -> Option<&dyn Circuits> {
        Some(self)
    }
}
