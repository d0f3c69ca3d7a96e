//! Traffic beside a plan, by patterns: who sends to whom, and how much.
//!
//! ```
//! use opticoll_simulate::background;
//! let two = background::parse("nearest:rate=1GB/s; pair:from=0,to=5,start=1us,end=2us")?;
//! assert_eq!(two.len(), 2);
//! # Ok::<(), opticoll_base::spec::SpecError>(())
//! ```

use super::SimulationError;
use super::fluid;
use super::packet;
use super::pattern::Pattern;
use opticoll_base::names::{same_name, suggest};
use opticoll_base::spec::{Spec, SpecError};
use opticoll_base::units::{Bytes, Rate, Time};
use opticoll_fabric::fabric::Fabric;

/// Who sends to whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Partners {
    /// Every rank by a pattern.
    All(Pattern),
    /// Every rank to the one a group on: the worst case of a dragonfly's minimal routes.
    GroupShift,
    /// One rank to another.
    Pair {
        /// The sender.
        from: u32,
        /// The receiver.
        to: u32,
    },
}

/// One kind of traffic beside a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Background {
    /// Who sends to whom.
    pub partners: Partners,
    /// What random partners depend on.
    pub seed: u64,
    /// The highest rate of each sender. None: that of messages, and without those what the links give it.
    pub rate: Option<Rate>,
    /// Bytes of each message. For packets.
    pub bytes: Option<Bytes>,
    /// From one message of a sender to its next. For packets; None: by the rate.
    pub period: Option<Time>,
    /// Messages of each sender. For packets; None: until the end.
    pub messages: Option<u32>,
    /// When it starts.
    pub start: Time,
    /// When it ends. None: with the plan.
    pub end: Option<Time>,
}

/// All patterns with what they are.
pub const PATTERNS: &[(&str, &str)] = &[
    ("uniform", "to any other rank, each as likely"),
    (
        "group_shift",
        "to the same rank of the next group of a dragonfly",
    ),
    ("permutation", "along a random cycle through all ranks"),
    (
        "hot_spot",
        "percent of the messages to one rank, the others to any",
    ),
    ("nearest", "to the next rank"),
    ("shift", "to the rank so many places on"),
    ("pair", "from one rank to another"),
];

/// The kinds of traffic in a list separated by semicolons.
///
/// # Errors
/// An unknown pattern or option, or a value that is none.
pub fn parse(text: &str) -> Result<Vec<Background>, SpecError> {
    text.split(';').map(parse_one).collect()
}

fn parse_one(text: &str) -> Result<Background, SpecError> {
    let spec: Spec = text.trim().parse()?;
    let Some((pattern, _)) = PATTERNS
        .iter()
        .find(|(name, _)| same_name(name, spec.name()))
    else {
        return Err(SpecError::Unknown {
            what: "traffic pattern",
            name: spec.name().into(),
            hint: suggest(spec.name(), PATTERNS.iter().map(|(name, _)| *name)),
        });
    };
    let own: &[&str] = match *pattern {
        "shift" => &["by"],
        "permutation" | "uniform" => &["seed"],
        "hot_spot" => &["rank", "percent", "seed"],
        "pair" => &["from", "to"],
        _ => &[],
    };
    let common = &["rate", "bytes", "period", "messages", "start", "end"];
    spec.only(&[own, common].concat())?;
    if spec.option("rate").is_some() && spec.option("period").is_some() {
        return Err(spec.refuse("period", "and rate say the same; give one"));
    }
    let needed = |key| {
        let most = u32::MAX;
        let missing = || spec.refuse(key, "is missing, and must be a whole number");
        spec.count(key, 0, most)?.ok_or_else(missing)
    };
    let partners = match *pattern {
        "nearest" => Partners::All(Pattern::Nearest),
        "shift" => Partners::All(Pattern::Shift(needed("by")?)),
        "group_shift" => Partners::GroupShift,
        "permutation" => Partners::All(Pattern::Permutation),
        "uniform" => Partners::All(Pattern::Uniform),
        "hot_spot" => Partners::All(Pattern::HotSpot {
            terminal: spec.count("rank", 0, u32::MAX)?.unwrap_or(0),
            percent: spec.count("percent", 1, 100)?.unwrap_or(100),
        }),
        _ => Partners::Pair {
            from: needed("from")?,
            to: needed("to")?,
        },
    };
    Ok(Background {
        partners,
        seed: spec.count("seed", 0, u32::MAX)?.unwrap_or(1).into(),
        rate: spec.value("rate")?,
        bytes: spec.value("bytes")?,
        period: spec.value("period")?,
        messages: spec.count("messages", 1, u32::MAX)?,
        start: spec.value("start")?.unwrap_or(Time::ZERO),
        end: spec.value("end")?,
    })
}

impl Background {
    /// The pattern on a fabric: a shift by a group has the fabric's size of a group.
    ///
    /// # Errors
    /// A rank that the fabric does not have, or a shift by a group where there are no groups.
    fn pattern(&self, fabric: &Fabric) -> Result<Option<Pattern>, SimulationError> {
        let ranks = fabric.ranks();
        let refuse = |problem: String| Err(SimulationError::value("background", problem));
        match &self.partners {
            Partners::Pair { from, to } if *from.max(to) >= ranks || from == to => refuse(format!(
                "{from} and {to} are not two of the ranks 0 to {}",
                ranks - 1
            )),
            Partners::Pair { .. } => Ok(None),
            Partners::All(Pattern::HotSpot { terminal, .. }) if *terminal >= ranks => refuse(
                format!("{terminal} is not one of the ranks 0 to {}", ranks - 1),
            ),
            Partners::All(pattern) => Ok(Some(pattern.clone())),
            Partners::GroupShift => match fabric.groups() {
                Some(groups) => Ok(Some(Pattern::Shift(groups.ranks_per_group()))),
                None => refuse(format!(
                    "group_shift: {} has no groups; use shift:by=...",
                    fabric.family()
                )),
            },
        }
    }

    /// The flows that stand for it on a fabric, one a sender.
    ///
    /// # Errors
    /// Those of `Background::pattern`, and uniform traffic and hot spots of less than 100 percent, whose
    /// partners change.
    pub(super) fn flows(
        &self,
        fabric: &Fabric,
    ) -> Result<Vec<fluid::BackgroundFlow>, SimulationError> {
        let ranks = fabric.ranks();
        let pairs: Vec<(u32, u32)> = match (&self.partners, self.pattern(fabric)?) {
            (Partners::Pair { from, to }, _) => vec![(*from, *to)],
            (_, None) => Vec::new(),
            (_, Some(pattern)) => {
                let Some(partners) = pattern.partners(ranks, self.seed) else {
                    return Err(SimulationError::value(
                        "background",
                        "uniform: flows need partners that stay; use permutation or \
                                  the packet simulator",
                    ));
                };
                (0..ranks).zip(partners).collect()
            }
        };
        let apart = pairs.into_iter().filter(|(source, to)| source != to);
        let rate = self.mean_rate()?;
        let flow = |(source, destination)| fluid::BackgroundFlow {
            source,
            destination,
            rate,
            from: self.start,
            until: self.end,
        };
        Ok(apart.map(flow).collect())
    }

    /// The rate of each sender, by its messages where it is not given.
    fn mean_rate(&self) -> Result<Option<Rate>, SimulationError> {
        let (Some(bytes), Some(period), None) = (self.bytes, self.period, self.rate) else {
            return Ok(self.rate);
        };
        let bits = u128::from(bytes.get()) * 8 * 1_000_000_000_000 / u128::from(period.ps().max(1));
        let bits = u64::try_from(bits).unwrap_or(u64::MAX);
        Ok(Some(Rate::from_bits_per_second(bits)?))
    }

    /// The messages that it is, packet by packet.
    ///
    /// # Errors
    /// Those of `Background::pattern`, a pair, and no size or period of messages.
    pub fn packets(
        &self,
        fabric: &Fabric,
        draws: packet::Draws,
    ) -> Result<packet::Traffic, SimulationError> {
        let refuse = |problem: &str| Err(SimulationError::value("background", problem));
        let Some(pattern) = self.pattern(fabric)? else {
            return refuse("pair: packets need a pattern in which every rank sends");
        };
        let Some(size) = self.bytes else {
            return refuse("packets need the size of messages, such as bytes=2KiB");
        };
        let period = match (self.period, self.rate) {
            (Some(period), _) => period,
            (None, Some(rate)) => rate.transmission(size)?,
            (None, None) => {
                return refuse("packets need a period or a rate of messages, such as period=2us");
            }
        };
        Ok(packet::Traffic {
            pattern,
            size,
            period,
            messages: self.messages,
            start: self.start,
            end: self.end,
            draws,
            seed: self.seed,
        })
    }
}
