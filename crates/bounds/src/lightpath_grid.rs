//! Lower bounds for grids of lightpaths, in the cost model of the simulator `circuit`.
//!
//! N >= 2 ranks have k ports each. Slots run one after the other. A slot takes the latency a and
//! the time of its longest message; a lightpath carries one message per direction at rate B.
//! Setting up a lightpath takes E, and tearing it down takes R, for both directions together. A
//! rank has at most k lightpaths at a time, and several of them may lead to the same rank. A rank
//! forwards only data that arrived in an earlier slot. m is the number of bytes that a rank must
//! send, or must receive.
//!
//! - **rounds** (theorem L1). A *phase* is the time between two instants at which lightpaths are
//!   set up. In a phase of s slots, data of one rank reach at most n(s) ranks (Moore's bound,
//!   `within`). P phases cost c(P) and need S(P) slots (`phases`). T >= min over P of c(P) +
//!   S(P) a + m / (k B):
//!
//!   | paths | c(P) |
//!   |---|---|
//!   | torn down after their group of slots | P (E + R) |
//!   | stay up | P E |
//!   | stay up, and the first ones are up at the start | (P - 1) E |
//!   | set up for every slot | (E + R) per slot, so that each slot is a phase |
//!   | known in advance | (P - 1) (E + R) |
//!   | free | 0; phases of one slot |
//!
//! - **per_port** (theorem L2). T >= E + max(a + (S - 1) (a + \[k = 1\] (R + E)), a + m / (k B)),
//!   where S is the least number with (1 + k)^S >= N. \[k = 1\] is 1 if k = 1, and 0 otherwise.
//! - **hops** (theorem L3). In an all_to_all, m counts every hop of the blocks
//!   ([`crate::hop_counts`]).
//! - **both_halves**, **pieces** (theorem L3). With few slots, an all_reduce sends more bytes
//!   (`crate::both_halves`), and ranks wait longer for the vector of one rank (`crate::pieces`).
//! - **A demand** (theorem G4). In `rounds` and `per_port`, m is the greatest number of bytes that
//!   the demand sends from one rank or to one rank, and 1 plus the greatest number of partners of a
//!   rank replaces N.

use crate::{
    TimeBound, VectorBound, VectorInSlots, bytes_over_borders, crossing_bytes, growth, hop_counts,
    least_over_slots, max_with_slot_bounds, phases, reached, transmission_time,
};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::circuits::{Paths, ReconfigurationCharge};
use opticoll_fabric::family::lightpath_grid::LightpathGrid;
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Rule by which setups and teardowns of lightpaths cost time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setups {
    /// Setup and teardown in every phase.
    Released,
    /// Setup in every phase.
    Kept,
    /// Setup in every phase except the first.
    Warm,
    /// Setup and teardown in every phase except the first.
    Predicted,
    /// Setup and teardown in every slot.
    EverySlot,
    /// Setup and teardown for every change of a port, while other ports send.
    PerPort,
    /// No cost.
    Never,
}

impl From<(ReconfigurationCharge, Paths)> for Setups {
    /// Returns the costs of lightpaths under a charging rule. Rules of other fabrics cost nothing.
    fn from((charge, paths): (ReconfigurationCharge, Paths)) -> Setups {
        match (charge, paths) {
            (ReconfigurationCharge::Groups { each_slot: true }, _) => Setups::EverySlot,
            (ReconfigurationCharge::Groups { .. }, Paths::Released) => Setups::Released,
            (ReconfigurationCharge::Groups { .. }, Paths::Kept) => Setups::Kept,
            (ReconfigurationCharge::Groups { .. }, Paths::Warm) => Setups::Warm,
            (ReconfigurationCharge::Groups { .. }, Paths::Predicted) => Setups::Predicted,
            (ReconfigurationCharge::ChangedPort, _) => Setups::PerPort,
            _ => Setups::Never,
        }
    }
}

/// Returns the greatest bound on the time of `collective` at the size `size`. Fails if a time
/// exceeds 64 bits of picoseconds.
pub fn best(
    grid: &LightpathGrid,
    collective: &Collective,
    size: Bytes,
    setups: Setups,
) -> Result<TimeBound, UnitError> {
    if collective.ranks() < 2 {
        return Ok(TimeBound::SINGLE_RANK);
    }
    let ranks = reached(collective);
    if ranks < 2 {
        return Ok(TimeBound::NOTHING_SENT);
    }
    let problem = Problem {
        grid,
        size,
        setups,
        ranks,
        ports: grid.ports.clamp(1, collective.ranks() - 1).into(),
    };
    // Several lightpaths between two ranks add bandwidth, but no partners.
    let sending = sending(grid, collective, size)?;
    if setups == Setups::PerPort {
        return problem.per_port(sending);
    }
    let rounds = TimeBound {
        time: problem.rounds()?.plus(sending)?,
        name: "rounds",
        assumption: "slots run one after the other, each as long as its longest message; a rank \
                     forwards data only in a later slot than the one in which it received them",
    };
    let rate = u128::from(grid.rate.bits_per_second()) * u128::from(grid.ports);
    let vector = transmission_time(size.get().into(), rate)?;
    let of_vector = |bound| problem.over_slots(vector, bound);
    max_with_slot_bounds(rounds, collective.kind(), of_vector, || {
        match collective.demand() {
            Some(_) => Ok(None),
            None => problem.hops(),
        }
    })
}

struct Problem<'a> {
    grid: &'a LightpathGrid,
    size: Bytes,
    setups: Setups,
    ranks: u64,
    /// Maximum number of ranks to which a rank is connected at a time.
    ports: u64,
}

impl Problem<'_> {
    /// Returns the cost of setups and teardowns in `phases` phases.
    fn paid(&self, phases: u64) -> Result<Time, UnitError> {
        let set_up_and_release = self.grid.setup.plus(self.grid.teardown)?;
        match self.setups {
            Setups::Released | Setups::EverySlot => set_up_and_release.times(phases),
            Setups::Kept => self.grid.setup.times(phases),
            Setups::Warm => self.grid.setup.times(phases - 1),
            Setups::Predicted => set_up_and_release.times(phases - 1),
            Setups::PerPort | Setups::Never => Ok(Time::ZERO),
        }
    }

    /// Returns the bound `per_port` (theorem L2), for ports that change independently. `sending` is
    /// the time to send the bytes of a rank over all its ports.
    fn per_port(&self, sending: Time) -> Result<TimeBound, UnitError> {
        let LightpathGrid {
            latency,
            setup,
            teardown,
            ..
        } = *self.grid;
        let again = match self.ports {
            1 => latency.plus(teardown)?.plus(setup)?,
            _ => latency,
        };
        let rounds = again.times(growth(self.ranks, self.ports) - 1)?;
        Ok(TimeBound {
            time: setup.plus(latency)?.plus(rounds.max(sending))?,
            name: "per_port",
            assumption: "a port carries one message at a time in each direction; a rank forwards \
                         only messages that have arrived completely",
        })
    }

    /// Returns whether each slot is a phase. This holds if every slot is charged, if no slot is
    /// charged, or if a phase of several slots reaches no more ranks than a phase of one slot.
    fn is_slot_a_phase(&self) -> bool {
        matches!(self.setups, Setups::EverySlot | Setups::Never) || self.ports == 1
    }

    /// Returns the least time in which data of one rank can be at all ranks, without the
    /// transmission of bytes: the minimum over all numbers of phases.
    fn rounds(&self) -> Result<Time, UnitError> {
        let most = growth(self.ranks, self.ports);
        let phases = match self.setups {
            Setups::EverySlot | Setups::Never => most..=most,
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

    /// Returns the minimum time of a vector, over all numbers of phases. `bound` gives the minimum
    /// time for given costs of slots. `sending` is the time to send the vector over all ports of a
    /// rank.
    fn over_slots(&self, sending: Time, bound: VectorBound) -> Result<Option<Time>, UnitError> {
        let (ranks, ports, latency) = (self.ranks, self.ports, self.grid.latency);
        let most = growth(ranks, ports);
        let vector = |fewest, per_slot| VectorInSlots {
            ranks,
            ports,
            fewest,
            per_slot,
            sending,
        };
        if self.is_slot_a_phase() {
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

    /// Returns the minimum time of an all_to_all over all numbers of phases.
    fn hops(&self) -> Result<Option<Time>, UnitError> {
        let (ranks, ports) = (self.ranks, self.ports);
        let block = u128::from(self.size.get()) / u128::from(ranks);
        let rate = u128::from(self.grid.rate.bits_per_second()) * u128::from(self.grid.ports);
        let fewest = match self.is_slot_a_phase() {
            true => growth(ranks, ports),
            false => 1,
        };
        least_over_slots(fewest, |phases| {
            let slots = match self.is_slot_a_phase() {
                true => Some(phases),
                false => least_slots(ranks, ports, phases),
            };
            let hops = match self.is_slot_a_phase() {
                true => hop_counts::fewest_hops(ranks - 1, ports, phases, phases),
                false => Some(hop_counts::least_hops(u128::from(ranks - 1), |far| {
                    let routes = hop_counts::hop_orders(far, phases);
                    routes.saturating_mul(hop_counts::power(ports, far))
                })),
            };
            let (Some(slots), Some(hops)) = (slots, hops) else {
                return Ok(None);
            };
            let latency = self.grid.latency.times(slots)?;
            let time = self
                .paid(phases)?
                .plus(latency)?
                .plus(transmission_time(hops * block, rate)?)?;
            let each = self.grid.latency.times(phases.min(slots))?;
            let direct = transmission_time(u128::from(ranks - 1) * block, rate)?;
            Ok(Some((time, self.paid(phases)?.plus(each)?.plus(direct)?)))
        })
    }
}

/// Returns the minimum number of slots, in `phases` phases, after which data of one rank can be at
/// all ranks. `None` if no number of slots is enough.
pub fn least_slots(ranks: u64, ports: u64, phases: u64) -> Option<u64> {
    phases::least_slots(ranks, phases, |slots| within(ports, slots))
}

/// Returns the maximum number of ranks within `edges` lightpaths of a rank, including the rank
/// itself. `u128::MAX` if the number exceeds 128 bits.
fn within(ports: u64, edges: u64) -> u128 {
    let (mut total, mut outermost) = (1u128, u128::from(ports));
    match ports {
        1 => 1 + u128::from(edges.min(1)),
        2 => 1 + 2 * u128::from(edges),
        _ => {
            for _ in 0..edges.min(128) {
                total = total.saturating_add(outermost);
                outermost = outermost.saturating_mul(u128::from(ports - 1));
            }
            total
        }
    }
}

/// Returns the time to send the bytes of a rank over all its ports. For an all_reduce, the time is
/// at least that of the bytes of all ranks over all ports.
fn sending(grid: &LightpathGrid, collective: &Collective, size: Bytes) -> Result<Time, UnitError> {
    let rank_rate = u128::from(grid.rate.bits_per_second()) * u128::from(grid.ports);
    if collective.demand().is_some() {
        let bytes = bytes_over_borders(collective, size, collective.ranks(), |rank| rank);
        return transmission_time(bytes.into_iter().flatten().max().unwrap_or(0), rank_rate);
    }
    let rank_time =
        |is_root| transmission_time(crossing_bytes(collective, size, 1, is_root), rank_rate);
    let time = rank_time(true)?.max(rank_time(false)?);
    if collective.kind() != CollectiveKind::AllReduce {
        return Ok(time);
    }
    let ranks = u128::from(collective.ranks());
    let together = transmission_time(2 * (ranks - 1) * u128::from(size.get()), rank_rate * ranks)?;
    Ok(time.max(together))
}
