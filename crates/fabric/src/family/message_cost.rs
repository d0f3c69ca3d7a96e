//! Cost models of single messages, for replays of programs. The time of a message does not depend
//! on other messages, except in LogGP, where messages wait for ports.

use crate::fabric::options::FabricOption;
use crate::fabric::{Fabric, FabricError, FamilyRecord};
use opticoll_base::names::same_name;
use opticoll_base::spec::{OptionRecord, Spec};
use opticoll_base::units::{Quantity, Rate, Time};

/// Cost model of single messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageCost {
    /// A message takes no time.
    Zero,
    /// A message takes latency + bytes / rate.
    Hockney {
        /// Delay from the first bit sent to the first bit received.
        latency: Time,
        /// Rate of each message.
        rate: Rate,
    },
    /// A message takes latency + bytes / rate, through one sending and one receiving port per rank.
    LogGp {
        /// Delay from the first bit sent to the first bit received.
        latency: Time,
        /// Minimum time between the starts of two messages at a port.
        gap: Time,
        /// Rate of a port.
        rate: Rate,
    },
}

/// Record of the model in which messages take no time.
pub(crate) const ZERO: FamilyRecord = FamilyRecord {
    name: "zero",
    summary: "Cost model of single messages: each message arrives when it is sent",
    citation: "opticoll",
    example: "zero",
    options: Vec::new,
    build: |_| no_fabric(ZERO.name),
    presets: &[],
};

/// Record of Hockney's model.
pub(crate) const HOCKNEY: FamilyRecord = FamilyRecord {
    name: "hockney",
    summary: "Cost model of single messages: a latency and a rate, without contention",
    citation: "Hockney, The communication challenge for MPP, Parallel Computing 1994",
    example: "hockney:latency=1us,rate=10Gb/s",
    options: || {
        vec![
            latency(),
            quantity_option::<Rate>("rate", "rate of each message", None),
        ]
    },
    build: |_| no_fabric(HOCKNEY.name),
    presets: &[],
};

/// Record of the LogGP model.
pub(crate) const LOGGP: FamilyRecord = FamilyRecord {
    name: "loggp",
    summary: "Cost model of single messages: one sending and one receiving port at each rank",
    citation: "Alexandrov, Ionescu, Schauser and Scheiman, LogGP, SPAA 1995",
    example: "loggp:latency=1us,gap=200ns,rate=10Gb/s",
    options: || {
        let gap = "time between the starts of two messages at a port";
        let gap = quantity_option::<Time>("gap", gap, Some("0s"));
        let rate = quantity_option::<Rate>("rate", "rate of a port", None);
        vec![latency(), gap, rate]
    },
    build: |_| no_fabric(LOGGP.name),
    presets: &[],
};

fn latency() -> FabricOption {
    let meaning = "delay from the first bit sent to the first bit received";
    quantity_option::<Time>("latency", meaning, Some("0s"))
}

fn quantity_option<T: Quantity>(
    name: &'static str,
    meaning: &'static str,
    default: Option<&str>,
) -> FabricOption {
    FabricOption::new(
        OptionRecord::new(name, meaning).unit(T::UNIT),
        T::RANGE,
        default,
    )
}

fn no_fabric(family: &'static str) -> Result<Fabric, FabricError> {
    Err(FabricError::NoFabric {
        family,
        reason: "it is a cost model of single messages; use it in replay",
    })
}

fn rate(spec: &Spec, family: &'static str) -> Result<Rate, FabricError> {
    spec.value("rate")?.ok_or(FabricError::Missing {
        family,
        key: "rate",
        example: "rate=10Gb/s",
    })
}

impl MessageCost {
    /// Parses a specification. Returns `None` if the specification does not name a cost model.
    pub(crate) fn read(spec: &Spec) -> Option<Result<MessageCost, FabricError>> {
        let named = |record: &FamilyRecord| same_name(record.name, spec.name());
        if named(&ZERO) {
            return Some(
                spec.only(&[])
                    .map(|()| MessageCost::Zero)
                    .map_err(FabricError::from),
            );
        }
        let is_loggp = named(&LOGGP);
        (is_loggp || named(&HOCKNEY)).then(|| MessageCost::read_rated(spec, is_loggp))
    }

    fn read_rated(spec: &Spec, is_loggp: bool) -> Result<MessageCost, FabricError> {
        let option_names: &[&str] = if is_loggp {
            &["latency", "gap", "rate"]
        } else {
            &["latency", "rate"]
        };
        spec.only(option_names)?;
        let latency = spec.value("latency")?.unwrap_or(Time::ZERO);
        if !is_loggp {
            let rate = rate(spec, HOCKNEY.name)?;
            return Ok(MessageCost::Hockney { latency, rate });
        }
        Ok(MessageCost::LogGp {
            latency,
            gap: spec.value("gap")?.unwrap_or(Time::ZERO),
            rate: rate(spec, LOGGP.name)?,
        })
    }

    /// Returns the name of the family.
    pub fn family(self) -> &'static str {
        match self {
            MessageCost::Zero => ZERO.name,
            MessageCost::Hockney { .. } => HOCKNEY.name,
            MessageCost::LogGp { .. } => LOGGP.name,
        }
    }

    pub(crate) fn spec(self) -> Spec {
        let spec = Spec::new(self.family());
        match self {
            MessageCost::Zero => spec,
            MessageCost::Hockney { latency, rate } => {
                spec.with("latency", latency).with("rate", rate)
            }
            MessageCost::LogGp { latency, gap, rate } => spec
                .with("latency", latency)
                .with("gap", gap)
                .with("rate", rate),
        }
    }
}
