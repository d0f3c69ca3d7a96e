//! Lower bounds: numbers of slots and times that no plan can be below. Each bound states the
//! assumption under which the bound holds. `docs/proofs.md` proves the bounds, and comments cite
//! the theorems of that page by number ("theorem R5").
#![forbid(unsafe_code)]

pub(crate) mod both_halves;
pub mod circuit_switch;
pub mod concurrent_flow;
pub mod electrical;
mod families;
pub mod hop_counts;
pub mod lightpath_grid;
pub mod passive_star;
pub(crate) mod phases;
pub(crate) mod pieces;
mod servers;
pub mod throughput;
pub mod wdm_graph;
pub mod wdm_ring;
pub mod wss_grid;

pub use families::{CircuitProblem, direct_bound, slots_bound, time_bound, time_bounds};
use opticoll_fabric::fabric::circuits;
use opticoll_plan::collective::{Collective, CollectiveKind};

use opticoll_base::units::{Bytes, Time, UnitError};

/// Lower bound on the number of slots of every plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Number of slots. The output and the papers call slots steps.
    pub steps: u64,
    /// Name of the bound, such as `relay_tree`.
    pub name: &'static str,
    /// Assumption under which the bound holds, as a sentence for users.
    pub assumption: &'static str,
}

/// Minimum number of reconfigurations that a policy charges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReconfigurationCost {
    /// A reconfiguration in every slot, as under the policy `every_step`.
    EverySlot,
    /// A single reconfiguration before the first slot, as under `on_change`; slots run in sequence.
    Once,
    /// No reconfiguration, as under `free`. Slots run one after the other.
    Never,
    /// A single reconfiguration, and no port waits for another port, as under `per_port`.
    OncePerPort,
}

/// Lower bound on the time of every plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeBound {
    /// Minimum time.
    pub time: Time,
    /// Name of the bound, such as `bandwidth`.
    pub name: &'static str,
    /// Assumption under which the bound holds, as a sentence for users.
    pub assumption: &'static str,
}

impl TimeBound {
    /// Bound of a collective on a single rank: 0 s.
    pub const SINGLE_RANK: TimeBound = TimeBound {
        time: Time::ZERO,
        name: "bandwidth",
        assumption: "a single rank has everything",
    };

    /// Bound of a demand in which no rank sends data to another rank: 0 s.
    pub(crate) const NOTHING_SENT: TimeBound = TimeBound {
        time: Time::ZERO,
        name: "demand",
        assumption: "no rank sends anything to another",
    };
}

/// Returns the assumptions of bounds on relay trees.
const fn tree_assumption(has_light_trees: bool) -> &'static str {
    match has_light_trees {
        false => {
            "slots run one after the other, each as long as its longest lightpath; lightpaths \
             deliver only at their end; blocks may be cut into any pieces"
        }
        true => {
            "slots run one after the other, each as long as its longest lightpath; blocks may be \
             cut into any pieces"
        }
    }
}

impl From<circuits::ReconfigurationCharge> for ReconfigurationCost {
    /// Returns the minimum cost of reconfigurations under the rule `charge`. `Groups` maps to
    /// `Never`, because `lightpath_grid::Setups` has the costs of groups.
    fn from(charge: circuits::ReconfigurationCharge) -> ReconfigurationCost {
        match charge {
            circuits::ReconfigurationCharge::EverySlot
            | circuits::ReconfigurationCharge::EachCircuit => ReconfigurationCost::EverySlot,
            circuits::ReconfigurationCharge::NewConfiguration => ReconfigurationCost::Once,
            circuits::ReconfigurationCharge::ChangedCircuit
            | circuits::ReconfigurationCharge::ChangedPort
            | circuits::ReconfigurationCharge::ChangedPlane => ReconfigurationCost::OncePerPort,
            circuits::ReconfigurationCharge::Never
            | circuits::ReconfigurationCharge::Groups { .. } => ReconfigurationCost::Never,
        }
    }
}

/// Returns the least number of slots S with (1 + `intake`)^S >= `ranks` (theorem A2). In a slot,
/// the number of ranks that have data of one block grows at most by the factor 1 + `intake`.
pub fn growth(ranks: u64, intake: u64) -> u64 {
    let (mut steps, mut informed) = (0, 1u64);
    while informed < ranks {
        informed = informed.saturating_mul(1 + intake);
        steps += 1;
    }
    steps
}

/// Returns the minimum number of slots in which all ranks are informed, if rank i informs at most
/// `widths[i]` other ranks in a slot. The first informed rank is `first`, or the rank with the
/// least width if `first` is `None`. Returns 0 if no link leads to or from a rank, so that no plan
/// exists (theorem A2).
pub(crate) fn slots_to_inform(mut widths: Vec<u64>, first: Option<usize>) -> u64 {
    let narrowest = || (0..widths.len()).min_by_key(|&rank| widths[rank]);
    let Some(first) = first.or_else(narrowest) else {
        return 0;
    };
    let ranks = widths.len() as u64;
    let first_width = widths.swap_remove(first);
    widths.sort_unstable_by(|one, other| other.cmp(one));
    let (mut slots, mut informed, mut informed_next) = (0, 1u64, first_width);
    while informed < ranks {
        if informed_next == 0 {
            return 0;
        }
        let next = (informed + informed_next).min(ranks);
        informed_next += widths[informed as usize - 1..next as usize - 1]
            .iter()
            .sum::<u64>();
        (slots, informed) = (slots + 1, next);
    }
    slots
}

/// Returns the time in which `bytes` bytes pass at `rate` bit/s, rounded down to picoseconds.
pub(crate) fn transmission_time(bytes: u128, rate: u128) -> Result<Time, UnitError> {
    quotient(bits_ps(bytes)?, rate)
}

/// Returns 8e12 times `bytes`: the number of bits times the number of picoseconds per second.
pub(crate) fn bits_ps(bytes: u128) -> Result<u128, UnitError> {
    bytes.checked_mul(8_000_000_000_000).ok_or_else(too_long)
}

/// Returns `bit_ps` / `rate` as a time, or 0 if `rate` is 0. `bit_ps` is a number of bits times the
/// number of picoseconds per second, and `rate` is in bit/s.
pub(crate) fn quotient(bit_ps: u128, rate: u128) -> Result<Time, UnitError> {
    let ps = bit_ps.checked_div(rate).unwrap_or(0);
    u64::try_from(ps).map(Time::from_ps).map_err(|_| too_long())
}

/// Returns the error for a time bound that exceeds 64 bits of picoseconds.
pub(crate) fn too_long() -> UnitError {
    UnitError::Overflow {
        what: "a bound on the time".into(),
        smallest: "picoseconds",
    }
}

/// Returns the minimum of a time bound over all numbers of slots S >= `fewest`; `None` if no number
/// of slots is possible. For each S, `bounds_with(S)` returns two bounds: the first for plans of
/// exactly S slots, the second for plans of S or more slots. `bounds_with(S)` returns `None` if no
/// plan has S slots. Fails if `bounds_with` fails.
pub(crate) fn least_over_slots(
    fewest: u64,
    bounds_with: impl Fn(u64) -> Result<Option<(Time, Time)>, UnitError>,
) -> Result<Option<Time>, UnitError> {
    let mut least: Option<Time> = None;
    for slots in fewest..fewest + MAX_SLOT_COUNTS {
        let Some((time, at_least)) = bounds_with(slots)? else {
            continue;
        };
        if least.is_some_and(|least| least <= at_least) {
            return Ok(least);
        }
        let is_last = slots + 1 == fewest + MAX_SLOT_COUNTS;
        let time = if is_last { at_least } else { time };
        least = Some(least.map_or(time, |least| least.min(time)));
    }
    Ok(least)
}

/// Vector that is sent slot by slot: from one rank, to one rank, or between all ranks.
pub(crate) struct VectorInSlots {
    pub(crate) ranks: u64,
    /// Number of ports of each rank.
    pub(crate) ports: u64,
    /// Minimum number of slots of any plan.
    pub(crate) fewest: u64,
    /// Time that each slot costs in addition to the transmission of bytes.
    pub(crate) per_slot: Time,
    /// Time to send the whole vector over all ports of a rank.
    pub(crate) sending: Time,
}

impl VectorInSlots {
    /// Returns `factor` times `sending`, reduced by a relative 1e-9. The reduction exceeds the
    /// rounding error of `factor`, which is a sum of a few dozen floating-point numbers.
    pub(crate) fn stretched(&self, factor: f64) -> Time {
        Time::from_ps((self.sending.ps() as f64 * factor * (1.0 - 1e-9)) as u64)
    }

    /// Returns the minimum time over all numbers of slots S >= `fewest`. With S slots, the
    /// transmissions take at least `factor(S)` times `sending`; `factor(S)` is `None` if S slots
    /// are too few. With any number of slots, the transmissions take at least the time `at_least`.
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

/// Function that returns the minimum time of a vector over all numbers of slots; `None` if no
/// number of slots is possible.
pub(crate) type VectorBound = fn(&VectorInSlots) -> Result<Option<Time>, UnitError>;

/// Returns the greater of two bounds on plans whose slots run one after the other: `rounds`, and
/// the bound of theorems A4 to A7 for collectives of this `kind`. `of_vector` applies a
/// [`VectorBound`] to the vector of a broadcast, reduce or all_reduce. `hops` returns the minimum
/// time of an all_to_all.
pub(crate) fn max_with_slot_bounds(
    rounds: TimeBound,
    kind: CollectiveKind,
    of_vector: impl FnOnce(VectorBound) -> Result<Option<Time>, UnitError>,
    hops: impl FnOnce() -> Result<Option<Time>, UnitError>,
) -> Result<TimeBound, UnitError> {
    let (time, name, assumption) = match kind {
        CollectiveKind::Broadcast | CollectiveKind::Reduce => (
            of_vector(pieces::time)?,
            "pieces",
            "slots run one after the other; with fewer slots the pieces are longer, and ranks wait \
             longer for them",
        ),
        CollectiveKind::AllReduce => (
            of_vector(both_halves::time)?,
            "both_halves",
            "slots run one after the other; with few slots each byte needs more transfers to be \
             gathered and spread",
        ),
        CollectiveKind::AllToAll => (
            hops()?,
            "hops",
            "slots run one after the other; with fewer slots a rank reaches fewer ranks directly, \
             and a block uses bandwidth on every hop",
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

/// Number of slot counts that [`least_over_slots`] examines one by one; others share one bound.
const MAX_SLOT_COUNTS: u64 = 1 << 12;

/// Returns a number of bytes that must cross the border of a set of `inside` ranks in the same
/// direction, by the table of theorem G1. `has_root` is true if the set contains the root.
pub(crate) fn crossing_bytes(
    collective: &Collective,
    size: Bytes,
    inside: u128,
    has_root: bool,
) -> u128 {
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

/// Returns, for each of `parts` parts of the ranks, the bytes that a demand sends out of the part,
/// and the bytes that it sends into the part. `part_of` gives the part of a rank.
pub(crate) fn bytes_over_borders(
    collective: &Collective,
    size: Bytes,
    parts: u32,
    part_of: impl Fn(u32) -> u32,
) -> [Vec<u128>; 2] {
    let mut bytes_over = [0, 1].map(|_| vec![0; parts as usize]);
    for (source, destination, bytes) in collective.demanded(size) {
        let ends = [source, destination].map(|rank| part_of(rank) as usize);
        if ends[0] != ends[1] {
            bytes_over[0][ends[0]] += bytes;
            bytes_over[1][ends[1]] += bytes;
        }
    }
    bytes_over
}

/// Returns, for each rank, the number of other ranks to which a demand sends data of this rank, and
/// the number of other ranks whose data it sends to this rank.
pub(crate) fn partners(collective: &Collective) -> [Vec<u64>; 2] {
    let mut partners = [0, 1].map(|_| vec![0; collective.ranks() as usize]);
    for (source, destination, _) in collective.demanded(Bytes::default()) {
        if source != destination {
            partners[0][source as usize] += 1;
            partners[1][destination as usize] += 1;
        }
    }
    partners
}

/// Returns the greatest number of ranks that have data for one rank, or for which one rank has
/// data, including this rank: all ranks, or fewer with a demand.
pub(crate) fn reached(collective: &Collective) -> u64 {
    match collective.demand() {
        Some(_) => {
            1 + partners(collective)
                .into_iter()
                .flatten()
                .max()
                .unwrap_or(0)
        }
        None => collective.ranks().into(),
    }
}
