//! Powers and ratios of light in decibels, stored exactly.

use std::fmt;
use std::str::FromStr;

/// Power in dBm, or loss in dB; stored as a whole number of millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Decibels(i64);

/// Number of millionths in one.
pub const MILLION: i64 = 1_000_000;

/// Exclusive maximum of powers and losses, in decibels.
pub const MAX_DECIBELS: i64 = 1000;

impl Decibels {
    /// Loss of 0 dB, or power of 0 dBm, which is one milliwatt.
    pub const ZERO: Decibels = Decibels(0);

    /// Creates a value from millionths of a decibel.
    pub const fn from_millionths(millionths: i64) -> Decibels {
        Decibels(millionths)
    }

    /// Returns the value in decibels.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / MILLION as f64
    }

    /// Returns the value in millionths of a decibel.
    pub const fn millionths(self) -> i64 {
        self.0
    }

    /// Returns the loss of dividing light evenly among `outputs` outputs, 10 log10(outputs),
    /// rounded to the nearest millionth.
    pub fn from_splitter(outputs: u32) -> Decibels {
        let loss = 10.0 * libm::log10(f64::from(outputs.max(1)));
        Decibels(libm::round(loss * MILLION as f64) as i64)
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
