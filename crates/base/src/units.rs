//! Exact quantities with units: [`Time`] in picoseconds, [`Bytes`], [`Rate`] in bits per second,
//! [`Length`] in metres.
//!
//! Each quantity is a whole number of its smallest unit, so sums are exact. The parser converts a
//! time or a size exactly or returns an error: `1.5us` is 1 500 000 ps, and `0.3ps` is an error. A
//! rate is rounded to a whole number of bits per second. A bare prefix, as in `4M`, is an error,
//! because it may mean 4 * 10^6 or 4 * 2^20.
//!
//! ```
//! use opticoll_base::units::{Bytes, Rate, Time};
//! let size: Bytes = "4MiB".parse()?;
//! let rate: Rate = "40Gb/s".parse()?;
//! assert_eq!(rate.transmission(size)?, "838.8608us".parse::<Time>()?);
//! assert!("4M".parse::<Bytes>().is_err());
//! # Ok::<(), opticoll_base::units::UnitError>(())
//! ```

use std::fmt;
use std::str::FromStr;

use crate::names::terminal_text;
use thiserror::Error;

/// Reason why a quantity was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnitError {
    /// A text that is not a number followed by a known unit.
    #[error("`{}` is not a {quantity}; {hint}", terminal_text(text))]
    Syntax {
        /// The text as given.
        text: String,
        /// Expected quantity: `time`, `size` or `rate`.
        quantity: &'static str,
        /// Description of the correct form.
        hint: String,
    },
    /// A number that is not a multiple of the smallest unit.
    #[error(
        "`{}` is not a whole number of {smallest}; a {quantity} is stored exactly",
        terminal_text(text)
    )]
    Inexact {
        /// The text as given.
        text: String,
        /// Expected quantity.
        quantity: &'static str,
        /// Unit of which the quantity must be a multiple.
        smallest: &'static str,
    },
    /// A quantity of 2^64 smallest units or more.
    #[error("{what} is too large: it does not fit into 64 bits of {smallest}")]
    Overflow {
        /// The text or computation that overflowed.
        what: String,
        /// Smallest unit of the quantity.
        smallest: &'static str,
    },
}

/// Duration or instant as a whole number of picoseconds (up to 213 days).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// Number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

/// Data rate as a whole number of bits per second, greater than zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

/// Length of a fibre as a whole number of metres.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Length(u64);

/// Type of quantity, such as [`Time`], that an option or a setting may have as its value.
pub trait Quantity {
    /// Base unit, as printed in lists of options.
    const UNIT: &'static str;
    /// Accepted values, in words.
    const RANGE: &'static str;
}

impl Quantity for Time {
    const UNIT: &'static str = "s";
    const RANGE: &'static str = "0s or more";
}

impl Quantity for Bytes {
    const UNIT: &'static str = "B";
    const RANGE: &'static str = "0B or more";
}

impl Quantity for Rate {
    const UNIT: &'static str = "b/s";
    const RANGE: &'static str = "1b/s or more";
}

impl Time {
    /// Zero seconds.
    pub const ZERO: Time = Time(0);

    /// Creates a time from a number of picoseconds.
    pub const fn from_ps(picoseconds: u64) -> Time {
        Time(picoseconds)
    }

    /// Returns the time in picoseconds.
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// Returns the time in seconds. The result is rounded, for display and plots only.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// Returns the sum of two times.
    ///
    /// # Errors
    /// The sum is 2^64 ps or more.
    #[inline]
    pub fn plus(self, other: Time) -> Result<Time, UnitError> {
        self.0
            .checked_add(other.0)
            .map(Time)
            .ok_or_else(time_overflow)
    }

    /// Returns `count` times this time.
    ///
    /// # Errors
    /// The product is 2^64 ps or more.
    #[inline]
    pub fn times(self, count: u64) -> Result<Time, UnitError> {
        self.0
            .checked_mul(count)
            .map(Time)
            .ok_or_else(time_overflow)
    }
}

#[cold]
fn time_overflow() -> UnitError {
    UnitError::Overflow {
        what: "a sum of times".into(),
        smallest: "picoseconds",
    }
}

impl Bytes {
    /// Creates a size from a number of bytes.
    pub const fn new(bytes: u64) -> Bytes {
        Bytes(bytes)
    }

    /// Returns the number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the sum of two sizes.
    ///
    /// # Errors
    /// The sum is 2^64 bytes or more.
    #[inline]
    pub fn plus(self, other: Bytes) -> Result<Bytes, UnitError> {
        let overflow = || UnitError::Overflow {
            what: "a sum of sizes".into(),
            smallest: "bytes",
        };
        self.0.checked_add(other.0).map(Bytes).ok_or_else(overflow)
    }
}

impl Length {
    /// Returns the length in metres.
    pub const fn metres(self) -> u64 {
        self.0
    }
}

impl Rate {
    /// Creates a rate from a number of gigabits per second. The number 0 is replaced by 1.
    pub const fn gigabits(gigabits: u32) -> Rate {
        Rate(if gigabits == 0 { 1 } else { gigabits as u64 } * 1_000_000_000)
    }

    /// Creates a rate from a number of megabytes per second. The number 0 is replaced by 1.
    pub const fn megabytes(megabytes: u32) -> Rate {
        Rate(if megabytes == 0 { 1 } else { megabytes as u64 } * 8_000_000)
    }

    /// Creates a rate from a number of bits per second.
    ///
    /// # Errors
    /// The number is zero.
    pub fn from_bits_per_second(bits: u64) -> Result<Rate, UnitError> {
        if bits == 0 {
            return Err(UnitError::Syntax {
                text: "0b/s".into(),
                quantity: "rate",
                hint: "a rate is greater than zero".into(),
            });
        }
        Ok(Rate(bits))
    }

    /// Returns the rate in bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Returns the time to send `bytes` at this rate, rounded up to a whole picosecond.
    ///
    /// # Errors
    /// The time is 2^64 ps or more.
    pub fn transmission(self, bytes: Bytes) -> Result<Time, UnitError> {
        let bit_ps = u128::from(bytes.0) * 8 * 1_000_000_000_000;
        u64::try_from(bit_ps.div_ceil(u128::from(self.0)))
            .map(Time)
            .map_err(|_| UnitError::Overflow {
                what: format!("sending {bytes} at {self}"),
                smallest: "picoseconds",
            })
    }
}

const TIME_UNITS: &[(&str, u128)] = &[
    ("s", 1_000_000_000_000),
    ("ms", 1_000_000_000),
    ("us", 1_000_000),
    ("ns", 1_000),
    ("ps", 1),
];

const BYTE_UNITS: &[(&str, u128)] = &[
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1_000),
    ("KB", 1_000),
    ("B", 1),
];

const RATE_UNITS: &[(&str, u128)] = &[
    ("Tb/s", 1_000_000_000_000),
    ("Gb/s", 1_000_000_000),
    ("Mb/s", 1_000_000),
    ("kb/s", 1_000),
    ("b/s", 1),
    ("TB/s", 8_000_000_000_000),
    ("GB/s", 8_000_000_000),
    ("MB/s", 8_000_000),
    ("kB/s", 8_000),
    ("B/s", 8),
    ("TiB/s", 8 << 40),
    ("GiB/s", 8 << 30),
    ("MiB/s", 8 << 20),
    ("KiB/s", 8 << 10),
];

const LENGTH_UNITS: &[(&str, u128)] = &[("km", 1_000), ("m", 1)];

/// Notation in which the parser reads a quantity.
struct Notation {
    name: &'static str,
    smallest: &'static str,
    example: &'static str,
    units: &'static [(&'static str, u128)],
    /// True if the parser rounds a value to the nearest multiple of the smallest unit. Otherwise
    /// the parser refuses a value that is not a multiple of the smallest unit.
    rounded: bool,
}

const TIME: Notation = Notation {
    name: "time",
    smallest: "picoseconds",
    example: "25us",
    units: TIME_UNITS,
    rounded: false,
};
const SIZE: Notation = Notation {
    name: "size",
    smallest: "bytes",
    example: "4MiB",
    units: BYTE_UNITS,
    rounded: false,
};
const LENGTH: Notation = Notation {
    name: "length",
    smallest: "metres",
    example: "80km",
    units: LENGTH_UNITS,
    rounded: false,
};
const RATE: Notation = Notation {
    name: "rate",
    smallest: "bits per second",
    example: "40Gb/s",
    units: RATE_UNITS,
    rounded: true,
};

impl Notation {
    /// Parses a quantity. Returns the number of smallest units, and true if this number is exact or
    /// false if it is rounded.
    fn parse(&self, text: &str) -> Result<(u64, bool), UnitError> {
        let trimmed = text.trim();
        let split = trimmed
            .find(|character: char| !(character.is_ascii_digit() || character == '.'))
            .unwrap_or(trimmed.len());
        let (number, unit) = (&trimmed[..split], trimmed[split..].trim_start());
        let (digits, decimals) = split_number(number).ok_or_else(|| {
            self.refuse(
                trimmed,
                format!("write a number and a unit, such as {}", self.example),
            )
        })?;
        let factor = self
            .units
            .iter()
            .find(|(name, _)| *name == unit)
            .map(|(_, factor)| *factor)
            .ok_or_else(|| self.refuse(trimmed, self.unit_hint(number, unit)))?;
        let overflow = || UnitError::Overflow {
            what: format!("`{}`", terminal_text(trimmed)),
            smallest: self.smallest,
        };
        let scale = 10u128.checked_pow(decimals).ok_or_else(overflow)?;
        let scaled = digits.checked_mul(factor).ok_or_else(overflow)?;
        let exact = scaled % scale == 0;
        if !exact && !self.rounded {
            return Err(UnitError::Inexact {
                text: trimmed.into(),
                quantity: self.name,
                smallest: self.smallest,
            });
        }
        // Rounds halves up.
        let nearest = scaled / scale + u128::from(scaled % scale >= scale.div_ceil(2) && !exact);
        let nearest = u64::try_from(nearest).map_err(|_| overflow())?;
        Ok((nearest, exact))
    }

    fn refuse(&self, text: &str, hint: String) -> UnitError {
        UnitError::Syntax {
            text: text.into(),
            quantity: self.name,
            hint,
        }
    }

    fn unit_hint(&self, number: &str, unit: &str) -> String {
        if unit.is_empty() {
            return format!("give the unit, such as {}", self.example);
        }
        if self.name == "size" && matches!(unit, "k" | "K" | "M" | "G" | "T") {
            return format!(
                "`{unit}` may be a power of 1000 or of 1024: write {number}{unit}B or {number}{}iB",
                unit.to_uppercase()
            );
        }
        if self.name == "rate" && unit.ends_with("bps") {
            return format!("write {number}{}b/s", unit.trim_end_matches("bps"));
        }
        let names: Vec<&str> = self.units.iter().map(|(name, _)| *name).collect();
        format!("known units are {}", names.join(", "))
    }
}

/// Splits a decimal number such as `12.50` into its digits (1250) and the number of decimals (2).
fn split_number(number: &str) -> Option<(u128, u32)> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let digits = format!("{whole}{fraction}").parse().ok()?;
    Some((digits, u32::try_from(fraction.len()).ok()?))
}

/// Writes a quantity of `count` smallest units as an exact decimal in the unit `name`. `factor` is
/// the number of smallest units in one unit `name`.
fn write_decimal(
    formatter: &mut fmt::Formatter<'_>,
    count: u64,
    (name, factor): (&str, u64),
) -> fmt::Result {
    let whole = count / factor;
    let rest = count % factor;
    if rest == 0 {
        return write!(formatter, "{whole}{name}");
    }
    let digits = factor.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    write!(
        formatter,
        "{whole}.{}{name}",
        fraction.trim_end_matches('0')
    )
}

impl FromStr for Time {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Time, UnitError> {
        TIME.parse(text).map(|(count, _)| Time(count))
    }
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Bytes, UnitError> {
        SIZE.parse(text).map(|(count, _)| Bytes(count))
    }
}

impl FromStr for Length {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Length, UnitError> {
        LENGTH.parse(text).map(|(count, _)| Length(count))
    }
}

impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Rate, UnitError> {
        let (bits, _) = RATE.parse(text)?;
        Rate::from_bits_per_second(bits)
    }
}

impl Rate {
    /// Parses a rate. Returns the rate if `text`, such as `4.7GiB/s`, had to be rounded to a whole
    /// number of bits per second. Returns `None` if `text` is exact.
    ///
    /// # Errors
    /// The text is not a rate.
    pub fn rounded(text: &str) -> Result<Option<Rate>, UnitError> {
        let (bits, exact) = RATE.parse(text)?;
        let rate = Rate::from_bits_per_second(bits)?;
        Ok((!exact).then_some(rate))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.0 {
            0 => ("s", 1),
            1..1_000 => ("ps", 1),
            1_000..1_000_000 => ("ns", 1_000),
            1_000_000..1_000_000_000 => ("us", 1_000_000),
            1_000_000_000..1_000_000_000_000 => ("ms", 1_000_000_000),
            _ => ("s", 1_000_000_000_000),
        };
        write_decimal(formatter, self.0, unit)
    }
}

impl fmt::Display for Length {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = if self.0 < 1_000 {
            ("m", 1)
        } else {
            ("km", 1_000)
        };
        write_decimal(formatter, self.0, unit)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = |factor: u128| {
            let number = (u128::from(self.0) / factor).to_string();
            number.trim_end_matches('0').len()
        };
        // Chooses the unit with the fewest significant digits: 4MiB, but 64MB instead of 62500KiB.
        let exact = BYTE_UNITS
            .iter()
            .filter(|(_, factor)| self.0 > 0 && u128::from(self.0) % factor == 0)
            .min_by_key(|(_, factor)| digits(*factor))
            .unwrap_or(&("B", 1));
        write!(formatter, "{}{}", u128::from(self.0) / exact.1, exact.0)
    }
}

impl Rate {
    /// Returns the rate as text for readers, such as `40 Gb/s`.
    pub fn words(self) -> String {
        let text = self.to_string();
        let unit = text.find(char::is_alphabetic).unwrap_or(text.len());
        format!("{} {}", &text[..unit], &text[unit..])
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.0 {
            0..1_000 => ("b/s", 1),
            1_000..1_000_000 => ("kb/s", 1_000),
            1_000_000..1_000_000_000 => ("Mb/s", 1_000_000),
            1_000_000_000..1_000_000_000_000 => ("Gb/s", 1_000_000_000),
            _ => ("Tb/s", 1_000_000_000_000),
        };
        write_decimal(formatter, self.0, unit)
    }
}

/// Returns the greatest common divisor of `first` and `second`.
pub fn gcd(first: u128, second: u128) -> u128 {
    match second {
        0 => first,
        _ => gcd(second, first % second),
    }
}
