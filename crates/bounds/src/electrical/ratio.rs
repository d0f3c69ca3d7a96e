//! Bounds on the throughput optimum of a collective, as fractions.

use super::Witness;
use crate::throughput::TightestCut;
use opticoll_base::units::gcd;

/// Number of bytes over a rate in bit/s. Eight times this quotient is the time in seconds for each
/// byte of `size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    /// Number of bytes that cross the links for each byte of `size`.
    pub bytes: u128,
    /// Rate of the links in bit/s.
    pub rate: u128,
}

/// Lower and upper bound on the throughput optimum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Optimum {
    /// Lower bound: no plan takes less time per byte.
    pub least: Ratio,
    /// Upper bound on the time per byte of the best plan; `None` if no upper bound is known.
    pub most: Option<Ratio>,
    /// Witness of the lower bound: a cut, or lengths of links.
    pub witness: Witness,
}

impl Ratio {
    pub(super) fn of(cut: &TightestCut) -> Ratio {
        Ratio {
            bytes: cut.blocks,
            rate: cut.rate,
        }
        .reduced()
    }

    /// Returns the fraction in lowest terms.
    pub(super) fn reduced(self) -> Ratio {
        let divisor = gcd(self.bytes, self.rate).max(1);
        Ratio {
            bytes: self.bytes / divisor,
            rate: self.rate / divisor,
        }
    }

    /// Returns whether this ratio is less than `other`; `None` if a product exceeds 128 bits.
    pub(super) fn is_below(self, other: Ratio) -> Option<bool> {
        let product = self.bytes.checked_mul(other.rate)?;
        Some(product < other.bytes.checked_mul(self.rate)?)
    }

    /// Returns the sum as a fraction in lowest terms; `None` if a number exceeds 128 bits.
    pub(super) fn plus(self, other: Ratio) -> Option<Ratio> {
        let (first, second) = (
            self.bytes.checked_mul(other.rate)?,
            other.bytes.checked_mul(self.rate)?,
        );
        let sum = Ratio {
            bytes: first.checked_add(second)?,
            rate: self.rate.checked_mul(other.rate)?,
        };
        Some(sum.reduced())
    }

    /// Returns this ratio divided by `ranks`, in lowest terms; `None` if the rate exceeds 128 bits.
    pub(super) fn divided_by(self, ranks: u128) -> Option<Ratio> {
        let rate = self.rate.checked_mul(ranks)?;
        Some(Ratio { rate, ..self }.reduced())
    }

    /// Returns the time in seconds for 10^9 bytes, as a fraction (numerator, denominator) in lowest
    /// terms. `None` if a number exceeds 128 bits.
    ///
    /// ```
    /// use opticoll_bounds::electrical::Ratio;
    /// let ratio = Ratio { bytes: 7, rate: 2_400_000_000_000 };
    /// assert_eq!(ratio.seconds_per_gigabyte(), Some((7, 300)));
    /// ```
    pub fn seconds_per_gigabyte(self) -> Option<(u128, u128)> {
        let bytes = self.bytes.checked_mul(8_000_000_000)?;
        let scaled = Ratio { bytes, ..self }.reduced();
        Some((scaled.bytes, scaled.rate))
    }
}
