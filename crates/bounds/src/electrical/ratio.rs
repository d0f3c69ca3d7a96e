//! What is known of the throughput optimum of a collective, as a fraction.

use super::Witness;
use crate::throughput::TightestCut;
use opticoll_base::units::gcd;

/// A number of bytes of a rate of one bit per second: a fraction of them is the time of a byte of `size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    /// Bytes that cross for each byte of `size`.
    pub bytes: u128,
    /// Bits per second of what they cross.
    pub rate: u128,
}

/// What is known of the optimum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Optimum {
    /// No plan takes less.
    pub least: Ratio,
    /// Some plan takes no more; `None` where that is not known.
    pub most: Option<Ratio>,
    /// The cut that shows it, or lengths of links.
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

    pub(super) fn reduced(self) -> Ratio {
        let divisor = gcd(self.bytes, self.rate).max(1);
        Ratio {
            bytes: self.bytes / divisor,
            rate: self.rate / divisor,
        }
    }

    /// Whether it is less than another; `None` beyond 128 bits.
    pub(super) fn is_below(self, other: Ratio) -> Option<bool> {
        let own = self.bytes.checked_mul(other.rate)?;
        Some(own < other.bytes.checked_mul(self.rate)?)
    }

    pub(super) fn plus(self, other: Ratio) -> Option<Ratio> {
        let (one, two) = (
            self.bytes.checked_mul(other.rate)?,
            other.bytes.checked_mul(self.rate)?,
        );
        let sum = Ratio {
            bytes: one.checked_add(two)?,
            rate: self.rate.checked_mul(other.rate)?,
        };
        Some(sum.reduced())
    }

    pub(super) fn over(self, ranks: u128) -> Option<Ratio> {
        let rate = self.rate.checked_mul(ranks)?;
        Some(Ratio { rate, ..self }.reduced())
    }

    /// Seconds for 10^9 bytes, as a reduced fraction; `None` beyond 128 bits.
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
