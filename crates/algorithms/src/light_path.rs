//! The paper's cost of collectives over lightpaths that are set up and released, with k ports at each rank.
//!
//! A message of m bytes takes a + m b: the latency and m bytes at the rate. A port holds a path to one
//! peer, both ways; setting up and releasing any number of paths at one instant costs g. With p ranks, n
//! bytes and L = ceil(log2 p) (Matsuoka, Takizawa, Nakada, Koga and
//! Takada, MPI Collective Communication over OBS Grid; sums and roundings corrected):
//!
//! | algorithm | ideal: no setup | naive: one port | k ports |
//! |---|---|---|---|
//! | linear | (p-1)(a + n b) | + (p-1) g | + ceil((p-1)/k) g |
//! | ring | (p-1)(a + (n/p) b) | H (p-1)(a + (n/p) b + g) | k >= 2: + g |
//! | recursive doubling | L a + (p-1)(n/p) b | + L g | + ceil(L/k) g |
//! | binomial tree | L (a + n b) | + L g | + ceil(L/k) g |
//!
//! H is the number of parts into which one port cuts a step of the ring, in which every rank talks to two
//! peers: 2 for even p, 3 for odd p (a ring of odd length is no union of two matchings), 1 for p = 2,
//! whose two ranks have one peer each. All ranks take the parts in turn; if each went ahead as soon as it
//! could, parts of consecutive steps of an odd ring would overlap, and it would take less than 3. Recursive
//! doubling is for powers of two.

use thiserror::Error;

use opticoll_base::units::{Bytes, Rate, Time, UnitError};
use opticoll_plan::collective::CollectiveKind;

/// Why there is no cost.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LightPathError {
    /// Recursive doubling among other than a power of two.
    #[error("recursive doubling among {ranks} ranks has no formula; take a power of two")]
    NoPower {
        /// The number of ranks.
        ranks: u32,
    },
    /// A block of the ring or of recursive doubling would not be whole.
    #[error("{bytes} are no whole number of bytes for each of {ranks} ranks")]
    Blocks {
        /// The bytes in all.
        bytes: Bytes,
        /// The number of ranks.
        ranks: u32,
    },
    /// No ranks, or no ports.
    #[error("{ranks} ranks with {ports} ports: both are at least 1")]
    Nothing {
        /// The number of ranks.
        ranks: u32,
        /// The ports of each.
        ports: u32,
    },
    /// A time that leaves 64 bits.
    #[error(transparent)]
    Units(#[from] UnitError),
}

/// Messages that follow one another: so many of so many bytes each.
pub type MessageRuns = Vec<(u64, Bytes)>;

/// The time of an algorithm over lightpaths, by the paper.
#[derive(Clone, Copy)]
pub struct PathFormula {
    /// The collectives for which the paper has it.
    pub collectives: &'static [CollectiveKind],
    /// The messages that follow one another, for ranks and bytes in all.
    pub messages: fn(u32, Bytes) -> Result<MessageRuns, LightPathError>,
    /// Into how many parts, one after the other, so many ranks with so many ports cut a step.
    pub parts: fn(u32, u32) -> u64,
    /// How often so many ranks with so many ports set paths up.
    pub set_ups: fn(u32, u32) -> u64,
}

/// What a message and a lightpath cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathCost {
    /// a, one way.
    pub latency: Time,
    /// 1 / b.
    pub rate: Rate,
    /// g, to set up and release any number of paths at once.
    pub set_up: Time,
}

impl PathFormula {
    /// The time of the collective with so many ports at each rank, each used for one peer until the next
    /// setup; `None` where all paths are there from the beginning.
    ///
    /// # Errors
    /// No ranks or ports, blocks that are no whole bytes, recursive doubling without a power of two, a time
    /// that leaves 64 bits.
    pub fn time(
        &self,
        ranks: u32,
        bytes: Bytes,
        cost: PathCost,
        ports: Option<u32>,
    ) -> Result<Time, LightPathError> {
        let most = ports.unwrap_or(u32::MAX);
        if ranks == 0 || most == 0 {
            return Err(LightPathError::Nothing { ranks, ports: most });
        }
        if ranks == 1 {
            return Ok(Time::ZERO);
        }
        let mut time = Time::ZERO;
        for (messages, bytes) in (self.messages)(ranks, bytes)? {
            let message = cost.latency.plus(cost.rate.transmission(bytes)?)?;
            time = time.plus(message.times(messages)?)?;
        }
        let set_ups = ports.map_or(0, |ports| (self.set_ups)(ranks, ports));
        let parts = (self.parts)(ranks, most);
        Ok(time.times(parts)?.plus(cost.set_up.times(set_ups)?)?)
    }
}

/// The bytes of one of `ranks` blocks.
pub(super) fn block(ranks: u32, bytes: Bytes) -> Result<u64, LightPathError> {
    match bytes.get() % u64::from(ranks) {
        0 => Ok(bytes.get() / u64::from(ranks)),
        _ => Err(LightPathError::Blocks { bytes, ranks }),
    }
}

/// L: the rounds in which what one rank holds reaches all.
pub(super) fn rounds(ranks: u32) -> u32 {
    ranks.next_power_of_two().ilog2()
}

/// For [`PathFormula::parts`]: no step is cut.
pub(super) fn whole(_ranks: u32, _ports: u32) -> u64 {
    1
}
