//! Numbers below which no plan goes: lower bounds on slots and on time, each stated with the
//! assumption under which it holds. `docs/proofs.md` proves them; "theorem R5" and the like name
//! its theorems.
#![forbid(unsafe_code)]

pub(crate) mod both_halves;
pub mod circuit_switch;
pub mod concurrent_flow;
pub mod electrical;
mod families;
pub mod light_path_grid;
pub mod passive_star;
pub(crate) mod phases;
pub(crate) mod pieces;
pub mod places;
pub mod throughput;
pub mod wdm_ring;
pub mod wss_grid;

pub use families::{Charged, direct_bound, slots_bound, time_bound};
use opticoll_fabric::fabric::circuits;
use opticoll_plan::collective::{Collective, CollectiveKind};

use opticoll_base::units::{Bytes, Time, UnitError};

/// A number of slots that no plan can go below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// The slots (what the papers count as steps).
    pub steps: u64,
    /// Which bound, such as `relay_tree`.
    pub name: &'static str,
    /// Under which conditions it holds, in words.
    pub assumption: &'static str,
}

/// How often a plan pays for reconfiguration at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeastCharge {
    /// In every slot: policy `every_step`.
    EverySlot,
    /// Once, to set up the first circuits, and slots run one after the other: `on_change`.
    Once,
    /// Never, but slots run one after the other: `free`.
    Never,
    /// Once, and ports go on without waiting for each other: `per_port`.
    OncePerPort,
}

/// A time that no plan can go below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeBound {
    /// The time.
    pub time: Time,
    /// Which bound, such as `bandwidth`.
    pub name: &'static str,
    /// Under which conditions it holds, in words.
    pub assumption: &'static str,
}

impl TimeBound {
    /// That of a collective of one rank.
    pub const ALONE: TimeBound = TimeBound {
        time: Time::ZERO,
        name: "bandwidth",
        assumption: "a single rank has everything",
    };
}

impl From<circuits::Charge> for LeastCharge {
    /// What a policy charges at the least. Lightpaths in groups have charges of their own.
    fn from(charge: circuits::Charge) -> LeastCharge {
        match charge {
            circuits::Charge::EverySlot | circuits::Charge::EachCircuit => LeastCharge::EverySlot,
            circuits::Charge::NewSetting => LeastCharge::Once,
            circuits::Charge::ChangedCircuit
            | circuits::Charge::ChangedPort
            | circuits::Charge::ChangedPlane => LeastCharge::OncePerPort,
            circuits::Charge::Never | circuits::Charge::Groups { .. } => LeastCharge::Never,
        }
    }
}

/// The least S with (1 + intake)^S >= ranks.
pub fn growth(ranks: u64, intake: u64) -> u64 {
    let (mut steps, mut informed) = (0, 1u64);
    while informed < ranks {
        informed = informed.saturating_mul(1 + intake);
        steps += 1;
    }
    steps
}

/// The time in which bytes go at a rate in bits per second, rounded down.
pub(crate) fn over(bytes: u128, rate: u128) -> Result<Time, UnitError> {
    quotient(bits_ps(bytes)?, rate)
}

pub(crate) fn bits_ps(bytes: u128) -> Result<u128, UnitError> {
    bytes.checked_mul(8_000_000_000_000).ok_or_else(too_long)
}

pub(crate) fn quotient(bit_ps: u128, rate: u128) -> Result<Time, UnitError> {
    let ps = bit_ps.checked_div(rate).unwrap_or(0);
    u64::try_from(ps).map(Time::from_ps).map_err(|_| too_long())
}

pub(crate) fn too_long() -> UnitError {
    UnitError::Overflow {
        what: "a bound on the time".into(),
        smallest: "picoseconds",
    }
}

/// The least of a time for each number of slots from `fewest` on, of which `of_slots` tells the time, and a time that no more slots go
/// below.
///
/// # Errors
/// Those of `of_slots`.
pub(crate) fn least_over_slots(
    fewest: u64,
    of_slots: impl Fn(u64) -> Result<Option<(Time, Time)>, UnitError>,
) -> Result<Option<Time>, UnitError> {
    let mut least: Option<Time> = None;
    for slots in fewest..fewest + MOST_SLOTS {
        let Some((time, at_least)) = of_slots(slots)? else {
            continue;
        };
        if least.is_some_and(|least| least <= at_least) {
            return Ok(least);
        }
        let is_last = slots + 1 == fewest + MOST_SLOTS;
        let time = if is_last { at_least } else { time };
        least = Some(least.map_or(time, |least| least.min(time)));
    }
    Ok(least)
}

/// A vector over slots one after the other, at one of `ranks` ranks or at all of them.
pub(crate) struct VectorInSlots {
    pub(crate) ranks: u64,
    /// Of each rank.
    pub(crate) ports: u64,
    /// There are so many slots or more.
    pub(crate) fewest: u64,
    /// What a slot takes beside the bytes.
    pub(crate) per_slot: Time,
    /// What the vector takes over all ports of a rank.
    pub(crate) sending: Time,
}

impl VectorInSlots {
    /// The time of the vector so many times over all ports of a rank. A factor is the sum and quotient of few dozens of numbers: what
    /// they are rounded by is taken off.
    pub(crate) fn stretched(&self, factor: f64) -> Time {
        Time::from_ps((self.sending.ps() as f64 * factor * (1.0 - 1e-9)) as u64)
    }

    /// The least time over all numbers of slots, where the ports of a rank take the vector `factor` times in so many slots; none where
    /// those are too few. In any number of slots they take `at_least`.
    ///
    /// # Errors
    /// A time beyond 64 bits.
    pub(crate) fn least(
        &self,
        at_least: Time,
        factor: impl Fn(u64) -> Option<f64>,
    ) -> Result<Option<Time>, UnitError> {
        least_over_slots(self.fewest, |slots| {
            let paid = self.per_slot.times(slots)?;
            let Some(factor) = factor(slots) else {
                return Ok(None);
            };
            let stretched = self.stretched(factor).max(at_least);
            Ok(Some((paid.plus(stretched)?, paid.plus(at_least)?)))
        })
    }
}

/// The least time of a vector over slots.
pub(crate) type OfSlots = fn(&VectorInSlots) -> Result<Option<Time>, UnitError>;

/// The greater of a bound by rounds and of what few slots cost, where slots follow one another:
/// `of_vector` is the least time of a vector by a bound that counts slots, `hops` that of an
/// all_to_all.
///
/// # Errors
/// A time beyond 64 bits.
pub(crate) fn or_in_slots(
    rounds: TimeBound,
    kind: CollectiveKind,
    of_vector: impl FnOnce(OfSlots) -> Result<Option<Time>, UnitError>,
    hops: impl FnOnce() -> Result<Option<Time>, UnitError>,
) -> Result<TimeBound, UnitError> {
    let (time, name, assumption) = match kind {
        CollectiveKind::Broadcast | CollectiveKind::Reduce => (
            of_vector(pieces::time)?,
            "pieces",
            "slots one after the other; fewer of them carry longer pieces, which ranks wait for",
        ),
        CollectiveKind::AllReduce => (
            of_vector(both_halves::time)?,
            "both_halves",
            "slots one after the other; in few of them a byte is sent more often to be gathered and \
             spread",
        ),
        CollectiveKind::AllToAll => (
            hops()?,
            "hops",
            "slots one after the other; fewer of them lead to fewer ranks directly, and a block takes \
             bandwidth in each hop",
        ),
        _ => return Ok(rounds),
    };
    let greater = time.filter(|time| *time > rounds.time);
    Ok(greater.map_or(rounds, |time| TimeBound {
        time,
        name,
        assumption,
    }))
}

/// Of more slots nothing is asked but what any number of them takes.
const MOST_SLOTS: u64 = 1 << 12;

/// The bytes that must come into `inside` of all ranks, or go out of them, whichever are more.
pub(crate) fn crossing(collective: &Collective, size: Bytes, inside: u128, has_root: bool) -> u128 {
    let ranks = u128::from(collective.ranks());
    let bytes = u128::from(size.get());
    let outside = ranks - inside;
    match collective.kind() {
        CollectiveKind::AllGather => outside * bytes,
        CollectiveKind::Gather | CollectiveKind::Scatter if has_root => outside * bytes,
        CollectiveKind::Gather | CollectiveKind::Scatter => inside * bytes,
        CollectiveKind::ReduceScatter => inside.max(outside) * (bytes / ranks),
        CollectiveKind::AllReduce | CollectiveKind::Broadcast | CollectiveKind::Reduce => bytes,
        CollectiveKind::AllToAll => inside * outside * (bytes / ranks),
        CollectiveKind::Barrier => 0,
    }
}
