//! The throughput optimum of a collective as a fraction: how long each byte takes at large sizes, by the best plan
//! there is.
//!
//! Of a collective of size S the time of large messages is S times the optimum. All that is gathered or spread is
//! limited by its tightest cut alone ([`throughput`](crate::bound::throughput)). An all_reduce of S takes at most a
//! reduce_scatter and then an all_gather of blocks of S / N, and at least the longer of both; and at least 2 (G - 1) S
//! over what all parts of a partition into G parts take in together (Patarasuk and Yuan, Journal of Parallel and
//! Distributed Computing 2009). Where the two meet, that is the optimum.

use super::Witness;
use super::cuts;
use super::links::Links;
use super::tightest::{cuts_of, witness};
use crate::bound::throughput::TightestCut;
use crate::collective::{Collective, CollectiveKind};
use crate::network::Network;

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
    /// The cut that shows it; of an all_reduce that of its all_gather.
    pub witness: Witness,
}

impl Ratio {
    fn of(cut: &TightestCut) -> Ratio {
        Ratio {
            bytes: cut.blocks,
            rate: cut.rate,
        }
        .reduced()
    }

    fn reduced(self) -> Ratio {
        let divisor = gcd(self.bytes, self.rate).max(1);
        Ratio {
            bytes: self.bytes / divisor,
            rate: self.rate / divisor,
        }
    }

    /// Whether it is less than another; `None` beyond 128 bits.
    fn is_below(self, other: Ratio) -> Option<bool> {
        let own = self.bytes.checked_mul(other.rate)?;
        Some(own < other.bytes.checked_mul(self.rate)?)
    }

    fn plus(self, other: Ratio) -> Option<Ratio> {
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

    fn over(self, ranks: u128) -> Option<Ratio> {
        let rate = self.rate.checked_mul(ranks)?;
        Some(Ratio { rate, ..self }.reduced())
    }

    /// Seconds for 10^9 bytes, as a reduced fraction; `None` beyond 128 bits.
    ///
    /// ```
    /// use opticoll::bound::electrical::Ratio;
    /// let ratio = Ratio { bytes: 7, rate: 2_400_000_000_000 };
    /// assert_eq!(ratio.seconds_per_gigabyte(), Some((7, 300)));
    /// ```
    pub fn seconds_per_gigabyte(self) -> Option<(u128, u128)> {
        let bytes = self.bytes.checked_mul(8_000_000_000)?;
        let scaled = Ratio { bytes, ..self }.reduced();
        Some((scaled.bytes, scaled.rate))
    }
}

/// The throughput optimum; `None` of a single rank, a barrier, an all_to_all (of which bounds are known only), where
/// ranks cannot reach each other, links are not shared, lead nobody knows where, or numbers leave 128 bits.
pub fn optimum(network: &dyn Network, collective: &Collective) -> Option<Optimum> {
    let links = Links::of(network)?;
    let half_duplex = links.edges.iter().any(|edge| edge.both_ways);
    let cuts = cuts_of(&links, collective, u64::MAX);
    let (first, reversed) = cuts.first()?;
    let witness = witness(&links, first, *reversed);
    if cuts.iter().any(|(cut, _)| cut.rate == 0) {
        return None;
    }
    let least = Ratio::of(first);
    if collective.kind() != CollectiveKind::AllReduce {
        // Of a reduce_scatter the size counts all N blocks.
        let blocks = match collective.kind() {
            CollectiveKind::ReduceScatter => u128::from(collective.ranks()),
            _ => 1,
        };
        let least = least.over(blocks)?;
        return Some(Optimum {
            least,
            most: (!half_duplex).then_some(least),
            witness,
        });
    }
    let ranks = u128::from(collective.ranks());
    let [gathered, scattered, spread, reduced] = &cuts[..] else {
        return None;
    };
    let gathered = Ratio::of(&gathered.0).over(ranks)?;
    let scattered = Ratio::of(&scattered.0).over(ranks)?;
    let mut least = gathered;
    for (bytes, rate) in [scattered, Ratio::of(&spread.0), Ratio::of(&reduced.0)]
        .map(|ratio| (ratio.bytes, ratio.rate))
        .into_iter()
        .chain(cuts::partition_ratios(&links, collective.root()))
    {
        let ratio = Ratio { bytes, rate }.reduced();
        if least.is_below(ratio)? {
            least = ratio;
        }
    }
    Some(Optimum {
        least,
        most: if half_duplex {
            None
        } else {
            gathered.plus(scattered)
        },
        witness,
    })
}

fn gcd(one: u128, other: u128) -> u128 {
    if one == 0 {
        other
    } else {
        gcd(other % one, one)
    }
}
