//! Cost of collectives over light paths that are set up and released, with k ports at each rank.
//!
//! A message of m bytes takes a + m b: the latency and m bytes at the rate. A port holds a path to one
//! peer, both ways; setting up and releasing any number of paths at one instant costs g. With p ranks, n
//! bytes and L = ceil(log2 p) (Matsuoka, Takizawa, Nakada, Koga and
//! Takada, MPI Collective Communication over OBS Grid; sums and roundings corrected):
//!
//! | algorithm | ideal: no set-up | naive: one port | k ports |
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

use crate::units::{Bytes, Rate, Time, UnitError};

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

/// The algorithms that have a formula.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// The root sends n bytes to each other rank in turn.
    Linear,
    /// Blocks of n / p bytes go around a ring.
    Ring,
    /// Blocks double with every exchange, n / p at first.
    RecursiveDoubling,
    /// Holders of n bytes double with every step.
    BinomialTree,
}

/// What a message and a light path cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathCost {
    /// a, one way.
    pub latency: Time,
    /// 1 / b.
    pub rate: Rate,
    /// g, to set up and release any number of paths at once.
    pub set_up: Time,
}

/// How paths are managed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paths {
    /// All paths are there from the beginning.
    Ideal,
    /// Set up for each message and released after it, by one port: [`Paths::Ports`] of 1.
    Naive,
    /// So many ports, used for so many peers before the next set-up.
    Ports(u32),
}

/// The time of a collective.
///
/// # Errors
/// No ranks or ports, blocks that are no whole bytes, recursive doubling without a power of two, a time
/// that leaves 64 bits.
pub fn collective_time(
    algorithm: Algorithm,
    ranks: u32,
    bytes: Bytes,
    cost: PathCost,
    paths: Paths,
) -> Result<Time, LightPathError> {
    let ports = match paths {
        Paths::Ideal => u32::MAX,
        Paths::Naive => 1,
        Paths::Ports(ports) => ports,
    };
    if ranks == 0 || ports == 0 {
        return Err(LightPathError::Nothing { ranks, ports });
    }
    if ranks == 1 {
        return Ok(Time::ZERO);
    }
    let parts = match (algorithm, paths) {
        (Algorithm::Ring, Paths::Naive | Paths::Ports(1)) => u64::from(ring_parts(ranks)),
        _ => 1,
    };
    let transfer = transfer_time(algorithm, ranks, bytes, cost)?.times(parts)?;
    let set_ups = match paths {
        Paths::Ideal => 0,
        _ => set_ups(algorithm, ranks, ports),
    };
    Ok(transfer.plus(cost.set_up.times(set_ups)?)?)
}

/// How often paths are set up with k ports at each rank (at least 1 rank and 1 port).
pub fn set_ups(algorithm: Algorithm, ranks: u32, ports: u32) -> u64 {
    let others = ranks.saturating_sub(1);
    let rounds = ranks.next_power_of_two().ilog2();
    let ports = ports.max(1);
    u64::from(match algorithm {
        Algorithm::Linear => others.div_ceil(ports),
        // Every part of every step has paths of its own.
        Algorithm::Ring if ports == 1 && ranks > 2 => {
            return u64::from(others) * u64::from(ring_parts(ranks));
        }
        Algorithm::Ring => others.min(1),
        Algorithm::RecursiveDoubling | Algorithm::BinomialTree => rounds.div_ceil(ports),
    })
}

/// H: into how many matchings the edges of a ring fall.
fn ring_parts(ranks: u32) -> u32 {
    match ranks {
        0..=2 => 1,
        _ if ranks % 2 == 0 => 2,
        _ => 3,
    }
}

/// The ideal time: messages one after another over paths that are there.
fn transfer_time(
    algorithm: Algorithm,
    ranks: u32,
    bytes: Bytes,
    cost: PathCost,
) -> Result<Time, LightPathError> {
    let others = u64::from(ranks - 1);
    let rounds = u64::from(ranks.next_power_of_two().ilog2());
    let whole = || cost.rate.transmission(bytes);
    let block = || match bytes.get() % u64::from(ranks) {
        0 => Ok(Bytes::new(bytes.get() / u64::from(ranks))),
        _ => Err(LightPathError::Blocks { bytes, ranks }),
    };
    let (messages, stream): (u64, Time) = match algorithm {
        Algorithm::Linear => (others, whole()?.times(others)?),
        Algorithm::BinomialTree => (rounds, whole()?.times(rounds)?),
        Algorithm::Ring => (others, cost.rate.transmission(block()?)?.times(others)?),
        Algorithm::RecursiveDoubling => {
            if !ranks.is_power_of_two() {
                return Err(LightPathError::NoPower { ranks });
            }
            let block = block()?.get();
            // Rounded up to a picosecond in each round, as the messages of the rounds are.
            let sent = (0..rounds).map(|round| cost.rate.transmission(Bytes::new(block << round)));
            let sum = sent
                .into_iter()
                .try_fold(Time::ZERO, |sum, time| sum.plus(time?))?;
            (rounds, sum)
        }
    };
    Ok(cost.latency.times(messages)?.plus(stream)?)
}
