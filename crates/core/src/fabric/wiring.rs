//! Cables, and what is spelled alike for every electrical fabric: rate, latency, duplex, sharing.
//!
//! A full-duplex cable is two directed links, one for each way; a half-duplex cable is one link that
//! flows of both ways divide among them. Vertices are numbered ranks first, then switches.

use super::{FabricError, FamilyRecord};
use crate::network::{Link, Sharing};
use crate::spec::{Spec, SpecError};
use crate::spelling::shown;
use crate::units::{Rate, Time};

/// The most ranks of an electrical fabric.
pub const MOST_RANKS: u32 = 1 << 20;

/// The most directed links of an electrical fabric; a link takes 32 bytes.
pub const MOST_LINKS: u64 = 1 << 24;

/// What the two directions of a cable have to do with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Duplex {
    /// Nothing: each has the whole rate.
    Full,
    /// They divide the rate.
    Half,
}

/// How cables are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wire {
    /// Each direction of a full-duplex cable, or the one link of a half-duplex cable.
    pub link: Link,
    /// Whether the directions share.
    pub duplex: Duplex,
}

const DEFAULT_RATE: &str = "100Gb/s";

pub(super) const RATE: (&str, &str) = (
    "rate",
    "rate of a cable, in each direction; default 100Gb/s",
);
pub(super) const LATENCY: (&str, &str) = ("latency", "delay of a cable; default 0s");
pub(super) const DUPLEX: (&str, &str) = (
    "duplex",
    "full: each direction has the whole rate; half: they divide it; default full",
);
pub(super) const SHARING: (&str, &str) = (
    "sharing",
    "shared: flows on a link divide its rate; per_flow: each has all of it; default shared",
);

/// The options of a fabric of which only the number of ranks is to be told.
pub(super) const RANKS_AND_WIRE: &[(&str, &str)] = &[
    ("ranks", "number of ranks; required"),
    RATE,
    LATENCY,
    DUPLEX,
    SHARING,
];

const SHARINGS: &[(&str, Sharing)] = &[("shared", Sharing::Shared), ("per_flow", Sharing::PerFlow)];

impl Wire {
    /// Reads `rate`, `latency`, `duplex` and `sharing`.
    pub(super) fn parse(spec: &Spec) -> Result<Wire, FabricError> {
        Wire::with_rate(spec, spec.option("rate").unwrap_or(DEFAULT_RATE))
    }

    /// Reads the same for each of some levels, with one `rate` for all or one for each, joined by
    /// `x`.
    pub(super) fn parse_levels(spec: &Spec, levels: usize) -> Result<Vec<Wire>, FabricError> {
        let rates = spec.option("rate").unwrap_or(DEFAULT_RATE);
        let wires = rates
            .split('x')
            .map(|rate| Wire::with_rate(spec, rate))
            .collect::<Result<Vec<Wire>, FabricError>>()?;
        if wires.len() == levels {
            return Ok(wires);
        }
        match wires[..] {
            [all] => Ok(vec![all; levels]),
            _ => {
                let problem = format!(
                    "has {} rates, down has {levels} levels: give one, or one for each level",
                    wires.len()
                );
                Err(spec.refuse("rate", problem).into())
            }
        }
    }

    fn with_rate(spec: &Spec, rate: &str) -> Result<Wire, FabricError> {
        let rate = rate.parse().map_err(|error| spec.refuse("rate", error))?;
        let duplexes = [("full", Duplex::Full), ("half", Duplex::Half)];
        Ok(Wire {
            link: Link {
                rate,
                latency: time_or(spec, "latency", Time::ZERO)?,
                sharing: one_of(spec, "sharing", SHARINGS)?.unwrap_or(Sharing::Shared),
            },
            duplex: one_of(spec, "duplex", &duplexes)?.unwrap_or(Duplex::Full),
        })
    }

    /// Adds what [`Wire::parse`] reads.
    pub(super) fn spell(&self, spec: Spec) -> Spec {
        self.spell_with(spec, self.link.rate.to_string())
    }

    /// Adds what [`Wire::parse_levels`] reads.
    pub(super) fn spell_levels(wires: &[Wire], spec: Spec) -> Spec {
        let Some(first) = wires.first() else {
            return spec;
        };
        let rates: Vec<String> = wires
            .iter()
            .map(|wire| wire.link.rate.to_string())
            .collect();
        if wires.iter().all(|wire| wire == first) {
            return first.spell(spec);
        }
        first.spell_with(spec, rates.join("x"))
    }

    fn spell_with(&self, spec: Spec, rate: String) -> Spec {
        let mut spec = spec.with("rate", rate).with("latency", self.link.latency);
        if self.duplex == Duplex::Half {
            spec = spec.with("duplex", "half");
        }
        if self.link.sharing != Sharing::Shared {
            spec = spec.with("sharing", sharing_name(self.link.sharing));
        }
        spec
    }

    /// The links of a class of cables, by its options `CLASS_rate` and `CLASS_latency`.
    pub(super) fn class(&self, spec: &Spec, class: &str) -> Result<Link, FabricError> {
        Ok(Link {
            rate: rate_or(spec, &format!("{class}_rate"), self.link.rate)?,
            latency: time_or(spec, &format!("{class}_latency"), self.link.latency)?,
            sharing: self.link.sharing,
        })
    }

    /// Adds what [`Wire::class`] reads, where it differs from the other cables.
    pub(super) fn spell_class(&self, mut spec: Spec, class: &str, link: &Link) -> Spec {
        if link.rate != self.link.rate {
            spec = spec.with(&format!("{class}_rate"), link.rate);
        }
        if link.latency != self.link.latency {
            spec = spec.with(&format!("{class}_latency"), link.latency);
        }
        spec
    }
}

/// The links of cables that were added one after another; cable c was the c-th.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wiring {
    duplex: Duplex,
    links: Vec<Link>,
    ends: Vec<(u32, u32)>,
}

impl Wiring {
    pub(super) fn new(duplex: Duplex) -> Wiring {
        Wiring {
            duplex,
            links: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Adds a cable between two vertices.
    pub(super) fn add(&mut self, one: u32, other: u32, link: Link) {
        self.links.push(link);
        self.ends.push((one, other));
        if self.duplex == Duplex::Full {
            self.links.push(link);
            self.ends.push((other, one));
        }
    }

    /// The link of a cable from its one end to its other.
    pub(super) fn forth(&self, cable: u32) -> u32 {
        match self.duplex {
            Duplex::Full => 2 * cable,
            Duplex::Half => cable,
        }
    }

    /// The link of a cable from its other end to its one.
    pub(super) fn back(&self, cable: u32) -> u32 {
        match self.duplex {
            Duplex::Full => 2 * cable + 1,
            Duplex::Half => cable,
        }
    }

    pub(super) fn links(&self) -> &[Link] {
        &self.links
    }

    pub(super) fn ends(&self, link: u32) -> Option<(u32, u32)> {
        self.ends.get(link as usize).copied()
    }

    pub(super) fn is_half_duplex(&self) -> bool {
        self.duplex == Duplex::Half
    }

    /// A link in words, from words for its ends.
    pub(super) fn name(&self, link: u32, vertex: impl Fn(u32) -> String) -> String {
        link_words(self.ends(link), self.duplex == Duplex::Half, link, vertex)
    }
}

/// `leaf 3 -> spine 0`, or `leaf 3 <-> spine 0` where both directions share.
pub(super) fn link_words(
    ends: Option<(u32, u32)>,
    half: bool,
    link: u32,
    vertex: impl Fn(u32) -> String,
) -> String {
    let arrow = if half { "<->" } else { "->" };
    match ends {
        Some((one, other)) => format!("{} {arrow} {}", vertex(one), vertex(other)),
        None => format!("link {link}"),
    }
}

/// The number of the pair one < other among all pairs of 0..count, in lexicographic order.
pub(super) fn pair_number(one: u32, other: u32, count: u32) -> u32 {
    let (one, other, count) = (u64::from(one), u64::from(other), u64::from(count));
    // At most MOST_LINKS pairs are ever built.
    (one * (2 * count - one - 1) / 2 + other - one - 1) as u32
}

/// All pairs one < other of 0..count, in the order of [`pair_number`].
pub(super) fn pairs(count: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..count).flat_map(move |one| (one + 1..count).map(move |other| (one, other)))
}

/// Refuses options that the family does not have.
pub(super) fn only(spec: &Spec, record: &FamilyRecord) -> Result<(), SpecError> {
    let known: Vec<&str> = record.options.iter().map(|(key, _)| *key).collect();
    spec.only(&known)
}

/// Refuses more ranks or cables than are accepted, before any is built.
pub(super) fn check_size(
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
    if ranks > u128::from(MOST_RANKS) {
        return refuse("ranks", ranks, MOST_RANKS.into());
    }
    let links = cables.saturating_mul(2);
    if links > u128::from(MOST_LINKS) {
        return refuse("links", links, MOST_LINKS);
    }
    Ok(())
}

/// The numbers of an option such as `16x8x8`, each within `1..=most`, at most 16 of them.
pub(super) fn counts(spec: &Spec, key: &str, most: u32) -> Result<Option<Vec<u32>>, SpecError> {
    let Some(value) = spec.option(key) else {
        return Ok(None);
    };
    let refuse = |part: &str| {
        let problem = format!(
            "`{}` must be a whole number from 1 to {most}; write numbers such as 16x8x8",
            shown(part)
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

/// `16x8x8`.
pub(super) fn spell_counts(numbers: &[u32]) -> String {
    let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
    words.join("x")
}

/// The meaning of an option that is one of a few words.
pub(super) fn one_of<T: Copy>(
    spec: &Spec,
    key: &str,
    words: &[(&str, T)],
) -> Result<Option<T>, SpecError> {
    let Some(value) = spec.option(key) else {
        return Ok(None);
    };
    match words.iter().find(|(word, _)| *word == value) {
        Some((_, meaning)) => Ok(Some(*meaning)),
        None => {
            let known: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            Err(spec.refuse(key, format!("must be {}", known.join(" or "))))
        }
    }
}

/// The sharing that a word stands for.
pub(super) fn sharing(word: &str) -> Option<Sharing> {
    let found = SHARINGS.iter().find(|(name, _)| *name == word);
    found.map(|(_, sharing)| *sharing)
}

/// `shared` or `per_flow`.
pub(super) fn sharing_name(sharing: Sharing) -> &'static str {
    match sharing {
        Sharing::Shared => "shared",
        Sharing::PerFlow => "per_flow",
    }
}

fn rate_or(spec: &Spec, key: &str, default: Rate) -> Result<Rate, SpecError> {
    match spec.option(key) {
        None => Ok(default),
        Some(value) => value.parse().map_err(|error| spec.refuse(key, error)),
    }
}

fn time_or(spec: &Spec, key: &str, default: Time) -> Result<Time, SpecError> {
    match spec.option(key) {
        None => Ok(default),
        Some(value) => value.parse().map_err(|error| spec.refuse(key, error)),
    }
}
