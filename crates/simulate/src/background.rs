//! Background traffic that shares the network with a plan, by traffic patterns.
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

/// Pairs of ranks that exchange background traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Partners {
    /// Every rank sends to the destination that the pattern defines.
    All(Pattern),
    /// Every rank sends to the rank at the same position of the next group. With minimal routes,
    /// this pattern is the worst case of a dragonfly.
    GroupShift,
    /// A single rank sends to another rank.
    Pair {
        /// Rank that sends.
        from: u32,
        /// Rank that receives.
        to: u32,
    },
}

/// Background traffic of one pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Background {
    /// Senders and receivers.
    pub partners: Partners,
    /// Seed of the random numbers with which partners are drawn.
    pub seed: u64,
    /// Maximum rate of each sender. If it is `None`, `bytes` and `period` define the rate. If one
    /// of these is `None` too, `fluid` sets no limit and `packet` rejects the traffic.
    pub rate: Option<Rate>,
    /// Size of each message; for the `packet` simulator.
    pub bytes: Option<Bytes>,
    /// Time between the starts of two messages of a sender, for the `packet` simulator. If it is
    /// `None`, it follows from `rate`.
    pub period: Option<Time>,
    /// Number of messages of each sender, for the `packet` simulator. If it is `None`, each sender
    /// sends until the end of the traffic.
    pub messages: Option<u32>,
    /// Time at which the traffic starts.
    pub start: Time,
    /// Time at which the traffic ends. If it is `None`, the traffic ends with the plan.
    pub end: Option<Time>,
}

/// Names and descriptions of all patterns.
pub const PATTERNS: &[(&str, &str)] = &[
    (
        "uniform",
        "to any other rank, all with the same probability",
    ),
    (
        "group_shift",
        "to the same rank of the next group of a dragonfly",
    ),
    ("permutation", "along a random cycle through all ranks"),
    (
        "hot_spot",
        "percent of the messages to one rank, the others to any rank",
    ),
    ("nearest", "to the next rank"),
    ("shift", "to the rank a fixed number of places further"),
    ("pair", "from one rank to another"),
];

/// Reads background traffic from a list of specifications separated by semicolons.
///
/// # Errors
/// Returns an error for an unknown pattern or option, or an invalid value.
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
    let specific: &[&str] = match *pattern {
        "shift" => &["by"],
        "permutation" | "uniform" => &["seed"],
        "hot_spot" => &["rank", "percent", "seed"],
        "pair" => &["from", "to"],
        _ => &[],
    };
    let common = &["rate", "bytes", "period", "messages", "start", "end"];
    spec.only(&[specific, common].concat())?;
    if spec.option("rate").is_some() && spec.option("period").is_some() {
        return Err(spec.refuse("period", "and rate both set the load; give one of them"));
    }
    let needed = |key| {
        let missing = || spec.refuse(key, "is missing, and must be a whole number");
        spec.count(key, 0, u32::MAX)?.ok_or_else(missing)
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
    /// Returns the pattern on `fabric`, or `None` for a single pair of ranks. `GroupShift` becomes
    /// a `Shift` by the number of ranks per group.
    ///
    /// # Errors
    /// Returns an error for a rank that the fabric does not have, and for `GroupShift` on a fabric
    /// without groups.
    fn pattern(&self, fabric: &Fabric) -> Result<Option<Pattern>, SimulationError> {
        let ranks = fabric.ranks();
        let refuse = |problem: String| Err(SimulationError::invalid_value("background", problem));
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

    /// Returns the flows of the traffic on a fabric, one flow per sender.
    ///
    /// # Errors
    /// Returns the errors of `Background::pattern`. Also returns an error for uniform traffic and
    /// for hot spots below 100 percent, because their destinations change from message to message.
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
                    return Err(SimulationError::invalid_value(
                        "background",
                        "uniform: flows need fixed partners; use permutation or the packet \
                         simulator",
                    ));
                };
                (0..ranks).zip(partners).collect()
            }
        };
        let pairs = pairs.into_iter().filter(|(source, to)| source != to);
        let rate = self.mean_rate()?;
        let flow = |(source, destination)| fluid::BackgroundFlow {
            source,
            destination,
            rate,
            from: self.start,
            until: self.end,
        };
        Ok(pairs.map(flow).collect())
    }

    /// Returns `rate`. If `rate` is `None`, returns `bytes` divided by `period`, or `None` if one
    /// of these is not given.
    fn mean_rate(&self) -> Result<Option<Rate>, SimulationError> {
        let (Some(bytes), Some(period), None) = (self.bytes, self.period, self.rate) else {
            return Ok(self.rate);
        };
        let bits = u128::from(bytes.get()) * 8 * 1_000_000_000_000 / u128::from(period.ps().max(1));
        let bits = u64::try_from(bits).unwrap_or(u64::MAX);
        Ok(Some(Rate::from_bits_per_second(bits)?))
    }

    /// Returns the messages of the traffic for the `packet` simulator. `draws` defines how the
    /// simulator draws random numbers.
    ///
    /// # Errors
    /// Returns the errors of `Background::pattern`. Also returns an error for a single pair, and
    /// for messages without a size or a period.
    pub fn packets(
        &self,
        fabric: &Fabric,
        draws: packet::Draws,
    ) -> Result<packet::Traffic, SimulationError> {
        let refuse = |problem: &str| Err(SimulationError::invalid_value("background", problem));
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
