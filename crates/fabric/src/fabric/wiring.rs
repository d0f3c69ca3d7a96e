//! Cables, and the options of all electrical fabrics: rate, latency, duplex, sharing.
//!
//! A full-duplex cable consists of two directed links, one in each direction. A half-duplex cable
//! is one link whose rate the flows of both directions share. Vertices are numbered ranks first,
//! then switches.

use std::fmt;
use std::str::FromStr;

use super::options::{DefaultRule::*, FabricOption, Options};
use super::{FabricError, FamilyRecord};
use crate::network::{Duplex, InNetwork, Link, Sharing};
use opticoll_base::names::terminal_text;
use opticoll_base::spec::{OptionRecord, Spec, SpecError};
use opticoll_base::units::{Length, Quantity, Rate, Time, UnitError};

/// Maximum number of ranks of a fabric.
pub const MAX_RANKS: u32 = 1 << 20;

/// Maximum number of directed links of an electrical fabric. Each link takes 32 bytes of memory.
pub const MAX_LINKS: u64 = 1 << 24;

/// Properties of a cable: rate, latency, sharing and duplex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wire {
    /// Properties of each link of the cable. A full-duplex cable has two equal links, a half-duplex
    /// cable has one link.
    pub link: Link,
    /// Relation between the two directions of the cable.
    pub duplex: Duplex,
}

/// Time that light takes for a metre of fibre, in picoseconds: the group index 1.468 of standard
/// single-mode fibre at 1550 nm (Corning, SMF-28 Ultra, product information: 1.4682) over the
/// speed of light in vacuum, 299,792,458 m/s. A kilometre takes 4.897 us.
const PS_PER_METRE: u64 = 4_897;

/// Returns the time that light takes for a fibre of length `length`.
///
/// # Errors
/// The time is 2^64 ps or more.
pub(crate) fn propagation(length: Length) -> Result<Time, UnitError> {
    Time::from_ps(PS_PER_METRE).times(length.metres())
}

/// Citation of defaults for which the literature gives no value.
pub(crate) const CHOSEN: &str = "opticoll; no source gives a value";

/// Default rate of a cable.
pub(crate) const DEFAULT_RATE: Rate = Rate::gigabits(100);

const RATE: OptionRecord =
    OptionRecord::new("rate", "rate of a cable, in each direction").source(CHOSEN);
const LATENCY: OptionRecord = OptionRecord::new("latency", "delay of a cable");
const DUPLEX: OptionRecord = OptionRecord::new(
    "duplex",
    "full: each direction has the whole rate; half: both directions divide it",
);
/// Option that says what switches do on data that pass them.
pub(crate) const IN_NETWORK: OptionRecord = OptionRecord::new(
    "in_network",
    "work of switches on data that pass: add the data of several ranks, send copies to several",
);
const SHARING: OptionRecord = OptionRecord::new(
    "sharing",
    "shared: flows on a link divide its rate; per_flow: each flow has the whole rate",
);

/// Declares an option with one value for all parts of a fabric, or with one value per part, joined
/// by `x`. `parts` is the number of parts, and `part` is the name of a part in error messages.
pub(crate) fn each<T, M>(
    options: &mut Options<'_, M>,
    record: OptionRecord,
    (parts, part): (usize, &str),
    default: T,
    of: impl FnOnce(&M) -> Vec<T>,
) -> Result<Vec<T>, FabricError>
where
    T: FromStr + fmt::Display + PartialEq + Copy + Quantity,
    T::Err: fmt::Display,
{
    let key = record.name;
    let read = |spec: &Spec| -> Result<Vec<T>, FabricError> {
        let Some(text) = spec.option(key) else {
            return Ok(vec![default; parts]);
        };
        let values = text.split('x').map(|value| value.trim().parse::<T>());
        let values: Vec<T> = values
            .collect::<Result<_, _>>()
            .map_err(|problem| spec.refuse(key, problem))?;
        match values[..] {
            _ if values.len() == parts => Ok(values),
            [all] => Ok(vec![all; parts]),
            _ => {
                let value_count = values.len();
                let problem = format!(
                    "has {value_count} values for {parts} {part}s: give one, or one for each {part}"
                );
                Err(spec.refuse(key, problem).into())
            }
        }
    };
    let print = |values: &Vec<T>| {
        let texts: Vec<String> = values.iter().map(T::to_string).collect();
        let alike = values.iter().all(|value| *value == values[0]);
        match alike {
            true => texts.first().cloned(),
            false => Some(texts.join("x")),
        }
    };
    let option = FabricOption::new(record.unit(T::UNIT), T::RANGE, Some(&default));
    options.option(option, read, print, of)
}

/// Declares the options `rate` and `latency`.
pub(crate) fn rate_and_latency<M>(
    options: &mut Options<'_, M>,
    of: impl Fn(&M) -> Link,
) -> Result<Link, FabricError> {
    let rate = options.value(RATE, Printed(DEFAULT_RATE), |machine| of(machine).rate)?;
    Ok(Link {
        rate,
        latency: latency(options, |machine| of(machine).latency)?,
        sharing: Sharing::Shared,
    })
}

/// Returns a link with the default rate and latency.
pub(crate) fn default_link() -> Link {
    Link {
        rate: DEFAULT_RATE,
        latency: Time::ZERO,
        sharing: Sharing::Shared,
    }
}

/// Declares the option `latency`.
pub(crate) fn latency<M>(
    options: &mut Options<'_, M>,
    of: impl FnOnce(&M) -> Time,
) -> Result<Time, FabricError> {
    options.value(LATENCY, Printed(Time::ZERO), of)
}

/// Declares the option `sharing`.
pub(crate) fn sharing<M>(
    options: &mut Options<'_, M>,
    of: impl FnOnce(&M) -> Sharing,
) -> Result<Sharing, FabricError> {
    options.word(SHARING, &Sharing::WORDS, Silent(Sharing::Shared), of)
}

/// Declares the option `in_network`. `has_half_duplex` says whether some cables are half-duplex.
///
/// # Errors
/// Switches add or multicast on half-duplex cables.
pub(crate) fn switch_work<M>(
    options: &mut Options<'_, M>,
    has_half_duplex: bool,
    of: impl FnOnce(&M) -> InNetwork,
) -> Result<InNetwork, FabricError> {
    let default = Silent(InNetwork::None);
    let in_network = options.word(IN_NETWORK, &InNetwork::WORDS, default, of)?;
    check_duplex(options, has_half_duplex, in_network)?;
    Ok(in_network)
}

/// Checks that switches do not add or multicast on half-duplex cables.
///
/// # Errors
/// They do.
pub(crate) fn check_duplex<M>(
    options: &Options<'_, M>,
    has_half_duplex: bool,
    in_network: InNetwork,
) -> Result<(), FabricError> {
    if !has_half_duplex || in_network == InNetwork::None {
        return Ok(());
    }
    let problem = "switches add and multicast over full-duplex cables only";
    Err(options.refuse(IN_NETWORK.name, problem))
}

/// Declares the rate and latency of a class of cables. The defaults are the rate and latency of
/// `others`, the cables of all other classes.
pub(crate) fn class<M>(
    options: &mut Options<'_, M>,
    (rate, latency): (OptionRecord, OptionRecord),
    others: Link,
    of: impl Fn(&M) -> Link,
) -> Result<Link, FabricError> {
    Ok(Link {
        rate: options.value(rate.default("rate"), Silent(others.rate), |machine| {
            of(machine).rate
        })?,
        latency: options.value(
            latency.default("latency"),
            Silent(others.latency),
            |machine| of(machine).latency,
        )?,
        ..others
    })
}

/// Declares the options `ranks`, `rate`, `latency`, `duplex` and `sharing`.
pub(crate) fn ranks_and_wire<M>(
    options: &mut Options<'_, M>,
    of: impl Fn(&M) -> (u32, Wire),
) -> Result<(u32, Wire), FabricError> {
    let ranks = OptionRecord::new("ranks", "number of ranks");
    let ranks = options.count(ranks, MAX_RANKS, Required, |machine| of(machine).0)?;
    let link = rate_and_latency(options, |machine| of(machine).1.link)?;
    let wire = Wire::declared(options, link, |machine| of(machine).1)?;
    Ok((ranks, wire))
}

impl Wire {
    /// Declares the options `duplex` and `sharing`.
    pub(crate) fn declared<M>(
        options: &mut Options<'_, M>,
        link: Link,
        of: impl Fn(&M) -> Wire,
    ) -> Result<Wire, FabricError> {
        let duplex = options.word(DUPLEX, &Duplex::WORDS, Silent(Duplex::Full), |machine| {
            of(machine).duplex
        })?;
        let sharing = sharing(options, |machine| of(machine).link.sharing)?;
        let link = Link { sharing, ..link };
        Ok(Wire { link, duplex })
    }
}

/// Returns the index of the pair (`low`, `high`) in the list of [`pairs`] of 0..count.
pub(crate) fn pair_number(low: u32, high: u32, count: u32) -> u32 {
    let (low, high, count) = (u64::from(low), u64::from(high), u64::from(count));
    // The cast is exact, because at most MAX_LINKS pairs are ever built.
    (low * (2 * count - low - 1) / 2 + high - low - 1) as u32
}

/// Returns all pairs (low, high) of numbers in 0..count with low < high, in lexicographic order.
pub(crate) fn pairs(count: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..count).flat_map(move |low| (low + 1..count).map(move |high| (low, high)))
}

/// Checks the number of ranks and cables, before the cables are built.
///
/// # Errors
/// There are more than [`MAX_RANKS`] ranks or [`MAX_LINKS`] links.
pub(crate) fn check_size(
    record: &FamilyRecord,
    ranks: u128,
    cables: u128,
) -> Result<(), FabricError> {
    let refuse = |what, count, most| {
        Err(FabricError::TooLarge {
            family: record.name,
            what,
            count,
            most,
        })
    };
    if ranks > u128::from(MAX_RANKS) {
        return refuse("ranks", ranks, MAX_RANKS.into());
    }
    let links = cables.saturating_mul(2);
    if links > u128::from(MAX_LINKS) {
        return refuse("links", links, MAX_LINKS);
    }
    Ok(())
}

/// Parses the option `key` with a value such as `16x8x8`: at most 16 numbers from 1 to `most`.
/// Returns `None` if the option is missing.
pub(crate) fn counts(spec: &Spec, key: &str, most: u32) -> Result<Option<Vec<u32>>, SpecError> {
    let Some(value) = spec.option(key) else {
        return Ok(None);
    };
    let refuse = |part: &str| {
        let problem = format!(
            "`{}` must be a whole number from 1 to {most}; write numbers such as 16x8x8",
            terminal_text(part)
        );
        spec.refuse(key, problem)
    };
    let numbers = value
        .split('x')
        .map(|part| match part.parse::<u32>() {
            Ok(number) if (1..=most).contains(&number) => Ok(number),
            _ => Err(refuse(part)),
        })
        .collect::<Result<Vec<u32>, SpecError>>()?;
    if numbers.len() > 16 {
        return Err(spec.refuse(key, "must be at most 16 numbers"));
    }
    Ok(Some(numbers))
}

/// Formats numbers as `16x8x8`.
pub(crate) fn print_counts(numbers: &[u32]) -> String {
    let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
    words.join("x")
}
