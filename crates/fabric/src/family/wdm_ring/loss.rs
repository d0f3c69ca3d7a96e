//! Loss budget: the maximum number of links over which light is strong enough to be received.
//!
//! Light enters the fibre at its source with the power `launch` (dBm). At each ring resonator of
//! the ranks that it passes, light loses `through` (dB). At the destination, one more resonator
//! drops the light, with a loss of `drop` (dB). Each rank has R resonators on a fibre, by default
//! one for every wavelength (TeraRack's interfaces have 64 micro-ring resonators for 64
//! wavelengths: Dai et al., OpTree, section IV.A). A lightpath of h links is received if
//!
//! ```text
//! launch - (h - 1) * R * through - drops * split - drop >= sensitivity
//! ```
//!
//! Here `drops` is the number of ranks before the destination that receive a share of the light
//! (drop-and-continue), and `split` (dB) is the loss of the remaining light at each of these ranks.
//! Numbers are stored in millionths of a decibel, so sums are exact. The user must provide the
//! values, because the papers state none.

use std::fmt;
use std::str::FromStr;

use crate::fabric::FabricError;
use opticoll_base::spec::{OptionRecord, Spec};

/// Power in dBm, or loss in dB; stored as a whole number of millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decibels(i64);

const MILLION: i64 = 1_000_000;

/// Exclusive maximum of powers and losses, in decibels.
const MAX_DECIBELS: i64 = 1000;

impl Decibels {
    /// Loss of 0 dB, or power of 0 dBm, which is one milliwatt.
    pub const ZERO: Decibels = Decibels(0);

    /// Returns the value in millionths of a decibel.
    pub const fn millionths(self) -> i64 {
        self.0
    }
}

impl FromStr for Decibels {
    type Err = String;

    /// Parses a decimal number with at most six digits after the point.
    fn from_str(text: &str) -> Result<Decibels, String> {
        let problem = || "must be a number with at most six digits after the point".to_string();
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text),
        };
        let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !is_number(whole) || !is_number(part) || part.len() > 6 {
            return Err(problem());
        }
        let whole: i64 = whole.parse().map_err(|_| problem())?;
        let part: i64 = format!("{part:0<6}").parse().map_err(|_| problem())?;
        if whole >= MAX_DECIBELS {
            return Err(format!("must be below {MAX_DECIBELS}"));
        }
        let size = whole * MILLION + part;
        Ok(Decibels(if negative { -size } else { size }))
    }
}

impl fmt::Display for Decibels {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, part) = (size / MILLION as u64, size % MILLION as u64);
        let digits = format!("{part:06}");
        match digits.trim_end_matches('0') {
            "" => write!(formatter, "{sign}{whole}"),
            digits => write!(formatter, "{sign}{whole}.{digits}"),
        }
    }
}

/// Powers and losses that limit the length of lightpaths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossBudget {
    /// Power of one wavelength at its source, in dBm.
    pub launch_power: Decibels,
    /// Minimum power that a receiver detects, in dBm.
    pub sensitivity: Decibels,
    /// Loss at each ring resonator that light passes, in dB.
    pub through_loss: Decibels,
    /// Loss at the destination, where a resonator drops the light, in dB.
    pub drop_loss: Decibels,
    /// Loss of the light that continues after a rank has received a share, in dB.
    pub split_loss: Decibels,
    /// Number of ring resonators per rank and fibre. Passing light passes all of them.
    pub resonators: u32,
}

/// Options of a loss budget. If any option is given, the first three are required.
pub(super) const OPTIONS: &[OptionRecord] = &[
    OptionRecord::new(
        "launch_power",
        "power of a wavelength; with sensitivity and through_loss it limits the reach",
    )
    .unit("dBm")
    .range(LEVELS)
    .default("none"),
    OptionRecord::new("sensitivity", "minimum power at a receiver")
        .unit("dBm")
        .range(LEVELS)
        .default("none"),
    loss("through_loss", "loss at each ring resonator passed").default("none"),
    loss("drop_loss", "loss where light is received"),
    loss(
        "split_loss",
        "loss of light that continues where a rank takes a share",
    ),
    OptionRecord::new("resonators", "ring resonators of a rank on each fibre")
        .range("1 to 65536")
        .default("one per wavelength")
        .source("Dai et al., OpTree, section IV.A: as many as wavelengths"),
];

const LEVELS: &str = "whole millionths of a decibel";

const fn loss(name: &'static str, meaning: &'static str) -> OptionRecord {
    let record = OptionRecord::new(name, meaning).unit("dB");
    record.range("0dB or more").default("0dB")
}

const MAX_RESONATORS: u32 = 1 << 16;

impl LossBudget {
    /// Parses the options of a loss budget. Returns `None` if none of the options is given.
    pub(super) fn read(spec: &Spec, wavelengths: u32) -> Result<Option<LossBudget>, FabricError> {
        if OPTIONS
            .iter()
            .all(|option| spec.option(option.name).is_none())
        {
            return Ok(None);
        }
        let value = |key: &'static str, unit: &str| match spec.option(key) {
            None => Ok(None),
            Some(text) => {
                let number = text.strip_suffix(unit).ok_or_else(|| {
                    spec.refuse(key, format!("needs its unit, such as {text}{unit}"))
                })?;
                let parsed: Result<Decibels, String> = number.trim().parse();
                parsed
                    .map(Some)
                    .map_err(|problem| spec.refuse(key, problem))
            }
        };
        let needed = |key: &'static str, unit: &str| {
            value(key, unit)?.ok_or(FabricError::Missing {
                family: "wdm_ring",
                key,
                example: "launch_power=5dBm,sensitivity=-20dBm,through_loss=0.01dB",
            })
        };
        let loss = |key: &'static str, found: Decibels| {
            if found < Decibels::ZERO {
                return Err(spec.refuse(key, "is a loss and must not be negative"));
            }
            Ok(found)
        };
        let budget = LossBudget {
            launch_power: needed("launch_power", "dBm")?,
            sensitivity: needed("sensitivity", "dBm")?,
            through_loss: loss("through_loss", needed("through_loss", "dB")?)?,
            drop_loss: loss(
                "drop_loss",
                value("drop_loss", "dB")?.unwrap_or(Decibels::ZERO),
            )?,
            split_loss: loss(
                "split_loss",
                value("split_loss", "dB")?.unwrap_or(Decibels::ZERO),
            )?,
            resonators: spec
                .count("resonators", 1, MAX_RESONATORS)?
                .unwrap_or(wavelengths),
        };
        if budget.farthest(0) == 0 {
            return Err(spec
                .refuse("sensitivity", "the light does not reach the next rank")
                .into());
        }
        Ok(Some(budget))
    }

    /// Returns the maximum number of links over which light can be received. At each rank that it
    /// passes, the light loses `more` millionths of a decibel in addition to the loss at ring
    /// resonators. Returns 0 if the light does not reach the next node.
    pub fn farthest(&self, more: i64) -> u32 {
        let spare = self.launch_power.0 - self.sensitivity.0 - self.drop_loss.0;
        let per_rank = self.through_loss.0 * i64::from(self.resonators) + more;
        match (spare, per_rank) {
            (..0, _) => 0,
            (_, 0) => u32::MAX,
            _ => {
                u32::try_from(spare / per_rank).map_or(u32::MAX, |passed| passed.saturating_add(1))
            }
        }
    }

    /// Adds the options of the budget to a specification.
    pub(super) fn print(&self, spec: Spec, wavelengths: u32) -> Spec {
        let mut spec = spec
            .with("launch_power", format!("{}dBm", self.launch_power))
            .with("sensitivity", format!("{}dBm", self.sensitivity))
            .with("through_loss", format!("{}dB", self.through_loss));
        for (key, loss) in [
            ("drop_loss", self.drop_loss),
            ("split_loss", self.split_loss),
        ] {
            if loss != Decibels::ZERO {
                spec = spec.with(key, format!("{loss}dB"));
            }
        }
        if self.resonators != wavelengths {
            spec = spec.with("resonators", self.resonators);
        }
        spec
    }
}
