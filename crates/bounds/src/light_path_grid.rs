//! Bounds for grids of lightpaths, in the cost model of the simulator `circuit`.
//!
//! N >= 2 ranks of k ports. Slots follow one another; one takes the latency a and as long as the
//! longest of its messages, one for each path and direction at rate B. A path is set up for E and
//! released for R, both ways, and a rank has at most k paths at once, perhaps several to the same
//! other. What is sent on has arrived in an earlier slot.
//!
//! - **rounds** (theorem L1). Between two instants at which paths are set up, the *phase* between
//!   them, something of one rank comes in s slots to at most n(s) ranks (Moore's bound, `within`).
//!   With S(P) slots in P phases (`phases`) that cost c(P), T >= min over P of c(P) + S(P) a + m /
//!   (k B):
//!
//!   | paths | c(P) |
//!   |---|---|
//!   | released after their group | P (E + R) |
//!   | kept | P E |
//!   | kept, and there at first | (P - 1) E |
//!   | set up for every slot | (E + R) for each, so that each is a phase |
//!   | known in advance | (P - 1) (E + R) |
//!   | free | 0; phases of one slot |
//!
//! - **per_port** (theorem L2). T >= E + max(a + (S - 1) (a + \[k = 1\] (R + E)), a + m / (k B)),
//!   with (1 + k)^S >= N.
//! - **hops** (theorem L3). In an all_to_all m counts every hop of the blocks ([`crate::places`]).
//! - **both_halves**, **pieces** (theorem L3). In few slots an all_reduce sends more
//!   (`crate::both_halves`), and a vector that one rank has waits longer (`crate::pieces`).

use crate::{
    OfSlots, TimeBound, VectorInSlots, crossing, growth, least_over_slots, or_in_slots, over,
    phases, places,
};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::circuits::{Charge, Paths};
use opticoll_fabric::family::light_path_grid::LightPathGrid;
use opticoll_plan::collective::{Collective, CollectiveKind};

/// What is paid for lightpaths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetUps {
    /// Establishing and releasing, for every phase.
    Released,
    /// Establishing, for every phase.
    Kept,
    /// The same, but nothing for the first.
    Warm,
    /// Both, for every phase but the first.
    Predicted,
    /// Both, for every slot.
    EverySlot,
    /// Both, for every change of a port, beside the messages of the others.
    PerPort,
    /// Nothing.
    Never,
}

impl From<(Charge, Paths)> for SetUps {
    /// Charges of other fabrics charge nothing for lightpaths.
    fn from((charge, paths): (Charge, Paths)) -> SetUps {
        match (charge, paths) {
            (Charge::Groups { each_slot: true }, _) => SetUps::EverySlot,
            (Charge::Groups { .. }, Paths::Released) => SetUps::Released,
            (Charge::Groups { .. }, Paths::Kept) => SetUps::Kept,
            (Charge::Groups { .. }, Paths::Warm) => SetUps::Warm,
            (Charge::Groups { .. }, Paths::Predicted) => SetUps::Predicted,
            (Charge::ChangedPort, _) => SetUps::PerPort,
            _ => SetUps::Never,
        }
    }
}

/// The greatest bound on the time of a collective of a size.
///
/// # Errors
/// A time beyond 64 bits of picoseconds.
pub fn best(
    grid: &LightPathGrid,
    collective: &Collective,
    size: Bytes,
    set_ups: SetUps,
) -> Result<TimeBound, UnitError> {
    let ranks = u64::from(collective.ranks());
    if ranks < 2 {
        return Ok(TimeBound::ALONE);
    }
    let asked = Asked {
        grid,
        size,
        set_ups,
        ranks,
        ports: u64::from(grid.ports).clamp(1, ranks - 1),
    };
    // Two ranks may hold several paths between them, which are no more partners but more bandwidth.
    let sending = sending(grid, collective, size, grid.ports.into())?;
    if set_ups == SetUps::PerPort {
        return asked.per_port(sending);
    }
    let rounds = TimeBound {
        time: asked.rounds()?.plus(sending)?,
        name: "rounds",
        assumption: "slots one after the other, each as long as its longest message; a rank forwards in later \
                     slots than the one in which it received",
    };
    let rate = u128::from(grid.rate.bits_per_second()) * u128::from(grid.ports);
    let vector = over(size.get().into(), rate)?;
    let of_vector = |bound| asked.over_slots(vector, bound);
    or_in_slots(rounds, collective.kind(), of_vector, || asked.hops())
}

/// What a bound is asked for.
struct Asked<'a> {
    grid: &'a LightPathGrid,
    size: Bytes,
    set_ups: SetUps,
    ranks: u64,
    /// Partners that a rank can have at once.
    ports: u64,
}

impl Asked<'_> {
    /// c(P).
    fn paid(&self, phases: u64) -> Result<Time, UnitError> {
        let both = self.grid.establish.plus(self.grid.release)?;
        match self.set_ups {
            SetUps::Released | SetUps::EverySlot => both.times(phases),
            SetUps::Kept => self.grid.establish.times(phases),
            SetUps::Warm => self.grid.establish.times(phases - 1),
            SetUps::Predicted => both.times(phases - 1),
            SetUps::PerPort | SetUps::Never => Ok(Time::ZERO),
        }
    }

    /// The bound where ports change by themselves, of a collective whose bytes take `sending` over all ports.
    fn per_port(&self, sending: Time) -> Result<TimeBound, UnitError> {
        let LightPathGrid {
            latency,
            establish,
            release,
            ..
        } = *self.grid;
        let again = match self.ports {
            1 => latency.plus(release)?.plus(establish)?,
            _ => latency,
        };
        let rounds = again.times(growth(self.ranks, self.ports) - 1)?;
        Ok(TimeBound {
            time: establish.plus(latency)?.plus(rounds.max(sending))?,
            name: "per_port",
            assumption: "a port carries one message each way at a time; a rank forwards what has arrived whole",
        })
    }

    /// Whether each slot is a phase: it is charged as one, or nothing is, or more slots of a phase lead to no other rank.
    fn has_a_slot_each(&self) -> bool {
        matches!(self.set_ups, SetUps::EverySlot | SetUps::Never) || self.ports == 1
    }

    /// The least c(P) + S(P) a.
    fn rounds(&self) -> Result<Time, UnitError> {
        let most = growth(self.ranks, self.ports);
        let phases = match self.set_ups {
            SetUps::EverySlot | SetUps::Never => most..=most,
            _ => 1..=most,
        };
        let mut least: Option<Time> = None;
        for phases in phases {
            let Some(slots) = least_slots(self.ranks, self.ports, phases) else {
                continue;
            };
            let time = self.paid(phases)?.plus(self.grid.latency.times(slots)?)?;
            least = Some(least.map_or(time, |least| least.min(time)));
        }
        Ok(least.unwrap_or(Time::ZERO))
    }

    /// The least time of a vector that takes `sending` over all ports, by a bound that counts slots.
    fn over_slots(&self, sending: Time, bound: OfSlots) -> Result<Option<Time>, UnitError> {
        let (ranks, ports, latency) = (self.ranks, self.ports, self.grid.latency);
        let most = growth(ranks, ports);
        let vector = |fewest, per_slot| VectorInSlots {
            ranks,
            ports,
            fewest,
            per_slot,
            sending,
        };
        if self.has_a_slot_each() {
            let each = self.paid(2)?.ps() - self.paid(1)?.ps();
            let first_free = each - self.paid(1)?.ps();
            let per_slot = Time::from_ps(each).plus(latency)?;
            let time = bound(&vector(most, per_slot))?;
            return Ok(time.map(|time| Time::from_ps(time.ps() - first_free)));
        }
        let mut least: Option<Time> = None;
        for phases in 1..=most {
            let Some(slots) = least_slots(ranks, ports, phases) else {
                continue;
            };
            if let Some(time) = bound(&vector(slots, latency))? {
                let time = time.plus(self.paid(phases)?)?;
                least = Some(least.map_or(time, |least| least.min(time)));
            }
        }
        Ok(least)
    }

    /// The least time of an all_to_all.
    fn hops(&self) -> Result<Option<Time>, UnitError> {
        let (ranks, ports) = (self.ranks, self.ports);
        let block = u128::from(self.size.get()) / u128::from(ranks);
        let rate = u128::from(self.grid.rate.bits_per_second()) * u128::from(self.grid.ports);
        let fewest = match self.has_a_slot_each() {
            true => growth(ranks, ports),
            false => 1,
        };
        least_over_slots(fewest, |phases| {
            let slots = match self.has_a_slot_each() {
                true => Some(phases),
                false => least_slots(ranks, ports, phases),
            };
            let hops = match self.has_a_slot_each() {
                true => places::fewest_hops(ranks - 1, ports, phases, phases),
                false => Some(places::hops(u128::from(ranks - 1), |far| {
                    let ways = places::ordered(far, phases);
                    ways.saturating_mul(places::power(ports, far))
                })),
            };
            let (Some(slots), Some(hops)) = (slots, hops) else {
                return Ok(None);
            };
            let latency = self.grid.latency.times(slots)?;
            let time = self
                .paid(phases)?
                .plus(latency)?
                .plus(over(hops * block, rate)?)?;
            let each = self.grid.latency.times(phases.min(slots))?;
            let direct = over(u128::from(ranks - 1) * block, rate)?;
            Ok(Some((time, self.paid(phases)?.plus(each)?.plus(direct)?)))
        })
    }
}

/// The least number of slots in so many phases after which all ranks may have something of one: S(P).
pub fn least_slots(ranks: u64, ports: u64, phases: u64) -> Option<u64> {
    phases::least_slots(ranks, phases, |slots| within(ports, slots))
}

/// The ranks within so many edges of one, itself included: n(s), as far as 128 bits hold it.
fn within(ports: u64, edges: u64) -> u128 {
    let (mut all, mut outermost) = (1u128, u128::from(ports));
    match ports {
        1 => 1 + u128::from(edges.min(1)),
        2 => 1 + 2 * u128::from(edges),
        _ => {
            for _ in 0..edges.min(128) {
                all = all.saturating_add(outermost);
                outermost = outermost.saturating_mul(u128::from(ports - 1));
            }
            all
        }
    }
}

/// m / (k B).
fn sending(
    grid: &LightPathGrid,
    collective: &Collective,
    size: Bytes,
    ports: u64,
) -> Result<Time, UnitError> {
    let all = u128::from(grid.rate.bits_per_second()) * u128::from(ports);
    let of_one = |is_root| over(crossing(collective, size, 1, is_root), all);
    let time = of_one(true)?.max(of_one(false)?);
    if collective.kind() != CollectiveKind::AllReduce {
        return Ok(time);
    }
    let ranks = u128::from(collective.ranks());
    let together = over(2 * (ranks - 1) * u128::from(size.get()), all * ranks)?;
    Ok(time.max(together))
}
