//! Components of networks, with published values.
//!
//! A value is what one source states. If sources differ, the list has a value for each source, and
//! nothing is averaged. A value that no source confirms has the condition `unconfirmed`. The text
//! of a source ends with its date if the source states one.
//!
//! A loss budget that names a component uses the greatest loss that is listed
//! ([`Component::greatest_loss`]), because a budget must hold for the worst part. Sums of power use
//! the first value that is a single number; ranges are listed after it.
//!
//! A value that follows from a number of the source has this number as its condition: a mean time
//! between failures (MTBF) of N hours is 10^9 / N failures in 10^9 hours (FIT), and P watts for a
//! rate R are the energy P / R.
//!
//! Some components are listed without values, because no source for them was found. Users state
//! these values in a file.

mod list;
mod sources;

use opticoll_base::decibels::Decibels;

pub use list::COMPONENTS;
use sources::Source;

opticoll_base::named_enum! {
    /// Property of a component.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Property {
        /// Insertion loss; of a fibre, the loss per length.
        Loss = "loss",
        /// Loss of an electrical signal between a switch chip and an optical module.
        ElectricalLoss = "electrical loss",
        /// Power of one component that is switched on.
        Power = "power",
        /// Power of a switch, divided by the number of its ports.
        PowerPerPort = "power per port",
        /// Number of ports of a switch.
        Ports = "ports",
        /// Rate of a port of a switch, in one direction.
        PortRate = "port rate",
        /// Power divided by the rate, counted in one direction.
        Energy = "energy",
        /// Price of one component.
        Price = "price",
        /// Price of a switch, divided by the number of its ports.
        PricePerPort = "price per port",
        /// Failures of one component per 10^9 hours (FIT).
        FailureRate = "failure rate",
        /// Energy of one reconfiguration of a switch of light.
        ReconfigurationEnergy = "reconfiguration energy",
    }

    /// Kind of a source.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum SourceKind {
        /// Data sheet or manual of the maker or seller.
        DataSheet = "data sheet",
        /// Scientific publication.
        Paper = "paper",
        /// Text that quotes others, or parameters of published software.
        Secondary = "secondary text",
        /// Property that follows from what the component is.
        Definition = "definition",
    }
}

impl Property {
    /// Returns the unit of all values of the property; of a fibre, the loss is per kilometre.
    pub const fn unit(self) -> &'static str {
        match self {
            Property::Loss | Property::ElectricalLoss => "dB",
            Property::Power => "W",
            Property::PowerPerPort => "W/port",
            Property::Ports => "ports",
            Property::PortRate => "Gb/s",
            Property::Energy => "pJ/b",
            Property::Price => "USD",
            Property::PricePerPort => "USD/port",
            Property::FailureRate => "FIT",
            Property::ReconfigurationEnergy => "J",
        }
    }
}

/// Value of a property of a component, as one source states it.
#[derive(Debug, Clone, Copy)]
pub struct ComponentValue {
    /// Property that the value measures.
    pub property: Property,
    /// Value as a decimal number, or range such as `5 to 8`.
    pub value: &'static str,
    /// Unit of the value.
    pub unit: &'static str,
    /// Conditions of the value, such as `maximum`; empty if the source states none.
    pub condition: &'static str,
    /// Kind of the source.
    pub kind: SourceKind,
    /// Publication that states the value.
    pub source: &'static str,
}

/// Component with its published values.
#[derive(Debug, Clone, Copy)]
pub struct Component {
    /// Name of the component in loss budgets, bills and files of users.
    pub name: &'static str,
    /// Description in one sentence.
    pub summary: &'static str,
    /// Values; empty if no source was found.
    pub values: &'static [ComponentValue],
}

impl Component {
    /// Returns the greatest listed loss, in dB or, for a fibre, in dB per km. Returns `None` if no
    /// loss is listed.
    pub fn greatest_loss(&self) -> Option<Decibels> {
        let losses = self.values.iter();
        let losses = losses.filter(|value| value.property == Property::Loss);
        let greatest = losses.filter_map(|value| value.value.rsplit(' ').next()?.parse().ok());
        greatest.max()
    }

    /// Returns whether the loss is a loss per kilometre.
    pub fn is_fibre(&self) -> bool {
        self.values.iter().any(|value| value.unit == PER_KM)
    }
}

/// Returns the component that is called `name`.
pub fn component(name: &str) -> Option<&'static Component> {
    COMPONENTS.iter().find(|component| component.name == name)
}

const PER_KM: &str = "dB/km";

/// Power of a passive component.
const PASSIVE: ComponentValue = watts(
    "0",
    "passive",
    sources::definition("a passive component takes no power"),
);

const fn stated(
    property: Property,
    value: &'static str,
    condition: &'static str,
    source: Source,
) -> ComponentValue {
    ComponentValue {
        property,
        value,
        unit: property.unit(),
        condition,
        kind: source.kind,
        source: source.text,
    }
}

const fn loss(value: &'static str, condition: &'static str, source: Source) -> ComponentValue {
    stated(Property::Loss, value, condition, source)
}

const fn per_km(value: &'static str, condition: &'static str, source: Source) -> ComponentValue {
    ComponentValue {
        unit: PER_KM,
        ..loss(value, condition, source)
    }
}

const fn electrical(
    value: &'static str,
    condition: &'static str,
    source: Source,
) -> ComponentValue {
    stated(Property::ElectricalLoss, value, condition, source)
}

const fn watts(value: &'static str, condition: &'static str, source: Source) -> ComponentValue {
    stated(Property::Power, value, condition, source)
}

const fn per_port(value: &'static str, condition: &'static str, source: Source) -> ComponentValue {
    stated(Property::PowerPerPort, value, condition, source)
}

const fn per_bit(value: &'static str, condition: &'static str, source: Source) -> ComponentValue {
    stated(Property::Energy, value, condition, source)
}

const fn price(value: &'static str, condition: &'static str, source: Source) -> ComponentValue {
    stated(Property::Price, value, condition, source)
}

/// Returns a failure rate in FIT. A mean time between failures (MTBF) of N hours gives
/// `10^9 / N` FIT.
const fn failures(value: &'static str, condition: &'static str, source: Source) -> ComponentValue {
    stated(Property::FailureRate, value, condition, source)
}
