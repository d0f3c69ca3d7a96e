//! Ranks around a passive star coupler (broadcast and select).
//!
//! The coupler divides the light of every transmitter among all receivers. In a slot, each
//! wavelength carries the light of at most one rank. Every rank with a receiver tuned to this
//! wavelength receives the light. A rank has t tunable transmitters and r tunable receivers, each
//! of which uses one wavelength at a time.

mod circuits;

use crate::bill::{Bill, PartKind, TUNABLE};
use crate::drawing;
use crate::drawing::Drawing;
use crate::fabric::light::{Light, LightField, LightKind, light_numbers};
use crate::fabric::loss::{
    Decibels, FIXED, LossBudget, LossOption, LossOptions, PassedLoss, Place,
};
use crate::fabric::options;
use crate::fabric::options::DefaultRule::*;
use crate::fabric::options::{Options, declare};
use crate::fabric::wiring::{CHOSEN, MAX_RANKS};
use crate::fabric::{Circuits, Fabric, FabricError, FamilyRecord, Machine, Named};
use opticoll_base::names::plural;
use opticoll_base::spec::{OptionRecord, Role, Spec};
use opticoll_base::units::{Rate, Time};

/// Ranks around a passive star coupler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassiveStar {
    /// Number of ranks, N.
    pub ranks: u32,
    /// Number of wavelengths of the coupler, w.
    pub wavelengths: u32,
    /// Number of tunable transmitters of a rank, t.
    pub transmitters: u32,
    /// Number of tunable receivers of a rank, r.
    pub receivers: u32,
    /// Rate of a wavelength.
    pub rate: Rate,
    /// Time to tune transmitters and receivers.
    pub reconfiguration: Time,
    /// Delay from transmitter to receiver.
    pub latency: Time,
    /// Powers and losses of light; `None` if not given.
    pub budget: Option<LossBudget>,
}

/// Format of the light of a transfer: the wavelength.
pub const LIGHT: LightKind = LightKind {
    words: &[],
    form: "{wavelength}",
    example: "5",
    relays: false,
    fields: &[LightField::new(
        "wavelength",
        16,
        "the wavelength that the source sends on and the destination is tuned to",
    )
    .shifts()],
};

light_numbers! {
    /// Light of a transfer: the wavelength.
    pub struct StarLight {
        /// Index of the wavelength.
        pub wavelength: u16 = 16,
    }
}

const MAX_WAVELENGTHS: u32 = 4096;

/// Record of the family.
pub const RECORD: FamilyRecord = FamilyRecord {
    name: "passive_star",
    summary: "Ranks around a passive star coupler; on each wavelength one rank sends and all \
        ranks may receive",
    citation: "Mukherjee, WDM-based local lightwave networks, part I: single-hop systems, IEEE \
        Network 1992",
    example: "passive_star:ranks=16,wavelengths=8",
    options: || options::list(&RECORD, declared),
    build: |spec| options::read(spec, &RECORD, declared).map(Fabric::new),
    presets: &[],
};

const LOSS_OPTIONS: LossOptions = LossOptions {
    example: "launch_power=5dBm,sensitivity=-20dBm",
    launch_power: "power of a wavelength; with sensitivity it limits the number of ranks",
    losses: &[
        LossOption {
            place: Place::Through,
            name: "excess_loss",
            meaning: "loss of the coupler in addition to 10 log10(ranks)",
            is_required: false,
        },
        FIXED,
    ],
    others: &[],
};

fn losses(budget: &LossBudget, ranks: u32) -> Vec<PassedLoss> {
    let division = PassedLoss {
        what: "division among all ranks",
        count: 1,
        loss: Decibels::from_splitter(ranks),
    };
    let excess = budget.at(Place::Through, "excess of the coupler", 1);
    vec![budget.fixed(), division, excess]
}

fn declared(options: &mut Options<'_, PassiveStar>) -> Result<PassiveStar, FabricError> {
    declare! { options of PassiveStar;
        ranks "ranks" count(MAX_RANKS, Required) "number of ranks";
        wavelengths "wavelengths" count(MAX_WAVELENGTHS, Required)
            "wavelengths of the coupler";
        transmitters "transmitters" count(MAX_WAVELENGTHS, Printed(1))
            "tunable transmitters of a rank";
        receivers "receivers" count(MAX_WAVELENGTHS, Printed(1))
            "tunable receivers of a rank";
        rate "rate" value(Printed(Rate::gigabits(100))) "rate of a wavelength" source CHOSEN;
        reconfiguration "reconfiguration" value(Printed(Time::from_ps(10_000))) Reconfiguration
            "time to tune transmitters and receivers" source CHOSEN;
        latency "latency" value(Silent(Time::ZERO)) "delay from transmitter to receiver";
    }
    let passed = |budget: &LossBudget| losses(budget, ranks);
    let budget = LOSS_OPTIONS.uniform(options, passed, |star| star.budget)?;
    Ok(PassiveStar {
        ranks,
        wavelengths,
        transmitters,
        receivers,
        rate,
        reconfiguration,
        latency,
        budget,
    })
}

impl Named for PassiveStar {
    const NAME: &'static str = RECORD.name;
}

impl Machine for PassiveStar {
    fn record(&self) -> &'static FamilyRecord {
        &RECORD
    }

    fn spec(&self) -> Spec {
        options::print(self, &RECORD, declared)
    }

    fn nature(&self) -> &'static str {
        "a passive star, not a ring of lightpaths"
    }

    /// Returns the parts: tunable transmitters and receivers, the coupler, and a cable between each
    /// rank and the coupler.
    fn bill(&self) -> Bill {
        let ranks = u64::from(self.ranks);
        let lights = [self.transmitters, self.receivers].map(|each| ranks * u64::from(each));
        Bill::default()
            .with_lights(TUNABLE, lights, self.rate)
            .with(1u32, PartKind::new("star_coupler").ports(self.ranks))
            .with(ranks, PartKind::new("fibre_cable"))
    }

    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn description(&self) -> String {
        format!(
            "{}, {} of {} each, {} and {} per rank, {} to tune",
            plural(self.ranks as usize, "rank"),
            plural(self.wavelengths as usize, "wavelength"),
            self.rate.words(),
            plural(self.transmitters as usize, "transmitter"),
            plural(self.receivers as usize, "receiver"),
            self.reconfiguration
        )
    }

    /// Returns the total rate of a rank's transmitters, at most one transmitter per wavelength.
    fn injection_bandwidth(&self) -> u128 {
        let sent = self.transmitters.min(self.wavelengths);
        u128::from(sent) * u128::from(self.rate.bits_per_second())
    }

    fn circuits(&self) -> Option<&dyn Circuits> {
        Some(self)
    }

    fn drawing(&self) -> Option<Drawing> {
        let mut places = drawing::circle(self.ranks);
        places.push([0.0, 0.0]);
        Some(Drawing::new(places))
    }
}
