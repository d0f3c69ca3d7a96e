//! Bounds for grids of tunable circuits.
//!
//! N >= 2 ranks. A transceiver is usable if it works and some other that works is on its switch;
//! rank r has u_r <= 2 of them, g at most. It sends at rate B to one other of its switch at a
//! time, and receives from one at a time, any wavelength. c = 2 control + tuning + lock is paid
//! for a circuit that the transmitter does not have already; a central controller adds its
//! handling time once. Light is under way for L. Where transceivers have different rates, u_r B
//! and w B are sums of their rates, and g B is that of g at the full rate.
//!
//! - **growth** (theorem A2). ceil(log_(1+g) N) slots.
//! - **bandwidth**, **cut** (theorem G1). T >= c + L + m / (w B) for m bytes that cross w usable
//!   transceivers: of a rank, of a row, of a column; in an all_reduce and an all_to_all of all
//!   ranks together.
//! - **rounds** (theorem G2). With P(N) the least time in which N ranks are told where every rank
//!   tells g others when it is told, g more c later, and so on, each arriving L later: T >= c +
//!   P(N). In a broadcast and a scatter the first g are told c + L later, and what is told last
//!   receives its m bytes then: T >= P'(N) + m / (g B).
//! - **Slot by slot** (theorem G3). Where every slot is charged, or none is, G slots by growth
//!   take G (c + L), or G L, beside s, the greatest m / (w B). More slots than G carry less each:
//!   **pieces** of a broadcast or reduce (`crate::pieces`), **both_halves** of an all_reduce
//!   (`crate::both_halves`), **hops** of an all_to_all, whose blocks take more hops in few slots.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::{
    Bound, LeastCharge, TimeBound, VectorInSlots, crossing, growth, least_over_slots, or_in_slots,
    over, places,
};
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::Plane;
use opticoll_fabric::family::wss_grid::WssGrid;
use opticoll_plan::collective::{Collective, CollectiveKind};

/// The greatest bound on the slots of a collective.
pub fn slots(grid: &WssGrid, collective: &Collective) -> Bound {
    let ranks = u64::from(collective.ranks());
    Bound {
        steps: growth(ranks, UsableTransceivers::of(grid).most().max(1)),
        name: "growth",
        assumption: "any number of chunks in a burst; a rank forwards in later slots than the one in \
                     which it received",
    }
}

/// The greatest bound on the time of a collective of a size; the slow switches are not part of it.
///
/// # Errors
/// A time beyond 64 bits of picoseconds.
pub fn best(
    grid: &WssGrid,
    collective: &Collective,
    size: Bytes,
    charge: LeastCharge,
) -> Result<TimeBound, UnitError> {
    let ranks = u64::from(collective.ranks());
    if ranks < 2 {
        return Ok(TimeBound::ALONE);
    }
    let ports = UsableTransceivers::of(grid);
    let fresh = grid.setup_time()?;
    let (sending, name) = ports.sending(grid, collective, size)?;
    let slots = growth(ranks, ports.most().max(1));
    let per_slot = match charge {
        LeastCharge::EverySlot => Some(fresh.plus(grid.latency)?),
        LeastCharge::Never => Some(grid.latency),
        LeastCharge::Once | LeastCharge::OncePerPort => None,
    };
    if let Some(per_slot) = per_slot {
        let rounds = TimeBound {
            time: per_slot.times(slots)?.plus(sending)?,
            name: if slots > 1 { "rounds" } else { name },
            assumption: "slots one after the other, each as long as its longest burst",
        };
        let most = ports.most().max(1);
        let vector = VectorInSlots {
            ranks,
            ports: most,
            fewest: slots,
            per_slot,
            sending: over(size.get().into(), rate(grid, most))?,
        };
        let hops = || ports.forwarding(size, slots, per_slot);
        return or_in_slots(rounds, collective.kind(), |bound| bound(&vector), hops);
    }
    let sent = TimeBound {
        time: fresh.plus(grid.latency)?.plus(sending)?,
        name,
        assumption: "no transceiver sends or receives faster than its rate; first a circuit is tuned",
    };
    let told = TimeBound {
        time: rounds(grid, collective, size, ports.most().max(1), fresh)?,
        name: "rounds",
        assumption: "a transmitter tunes anew for every rank that it tells after the first, and what \
                     is forwarded has arrived before",
    };
    Ok(if told.time > sent.time { told } else { sent })
}

/// c + P(N); of a broadcast and a scatter P'(N) and what the last rank receives.
fn rounds(
    grid: &WssGrid,
    collective: &Collective,
    size: Bytes,
    most: u64,
    fresh: Time,
) -> Result<Time, UnitError> {
    let ranks = u64::from(collective.ranks());
    match collective.kind() {
        CollectiveKind::Broadcast | CollectiveKind::Scatter => {
            let last = over(size.get().into(), rate(grid, most))?;
            told(ranks, most, grid.latency.plus(fresh)?, fresh)?.plus(last)
        }
        _ => told(ranks, most, grid.latency, fresh)?.plus(fresh),
    }
}

/// The time in which `ranks` are told, where each tells `most` others `first` after it was told, and as
/// many more every `next` later.
fn told(ranks: u64, most: u64, first: Time, next: Time) -> Result<Time, UnitError> {
    if next == Time::ZERO {
        return Ok(if ranks > 1 { first } else { Time::ZERO });
    }
    let mut tellings = BinaryHeap::from([Reverse(first)]);
    let (mut now, mut informed) = (Time::ZERO, 1u64);
    while informed < ranks {
        let Some(Reverse(at)) = tellings.pop() else {
            break;
        };
        (now, informed) = (at, informed + most);
        tellings.push(Reverse(at.plus(next)?));
        // Those told now tell the next ones together.
        for _ in 0..most {
            tellings.push(Reverse(at.plus(first)?));
        }
    }
    Ok(now)
}

/// The transceivers of a grid that are usable.
struct UsableTransceivers {
    /// Bits per second by rank, for row and column; 0 of one that is not usable.
    rates: Vec<[u128; 2]>,
    /// Ordered pairs of ranks that share a switch by transceivers that work.
    direct: u128,
    /// How many ranks have so many others on their switches, by transceivers that work, for row and column.
    partners: BTreeMap<[u128; 2], u128>,
}

impl UsableTransceivers {
    fn of(grid: &WssGrid) -> UsableTransceivers {
        let mut working = Plane::BOTH.map(|plane| {
            let switches = grid.rows * grid.columns / grid.ports_in_use(plane).max(1);
            vec![0u128; switches as usize]
        });
        for (rank, plane) in transceivers(grid) {
            if grid.works(rank, plane) {
                working[plane as usize][grid.port(rank, plane).0 as usize] += 1;
            }
        }
        let mut rates = vec![[0; 2]; grid.ranks() as usize];
        let mut partners = BTreeMap::new();
        for (rank, own) in (0..).zip(&mut rates) {
            interrupt::check();
            let others = Plane::BOTH.map(|plane| match grid.works(rank, plane) {
                true => working[plane as usize][grid.port(rank, plane).0 as usize] - 1,
                false => 0,
            });
            *own = Plane::BOTH.map(|plane| match others[plane as usize] {
                0 => 0,
                _ => grid.rate_of(rank, plane).bits_per_second().into(),
            });
            *partners.entry(others).or_insert(0) += 1;
        }
        let pairs = working.iter().flatten().map(|&count| count * count - count);
        UsableTransceivers {
            rates,
            direct: pairs.sum(),
            partners,
        }
    }

    /// The least time of an all_to_all over all numbers of slots.
    fn forwarding(
        &self,
        size: Bytes,
        fewest: u64,
        per_slot: Time,
    ) -> Result<Option<Time>, UnitError> {
        let ranks = self.rates.len() as u128;
        let everywhere = self.rates.iter().flatten().sum();
        let block = u128::from(size.get()) / ranks;
        let shortest = 2 * ranks * (ranks - 1) - self.direct;
        least_over_slots(fewest, |slots| {
            let of_ranks = self.partners.iter();
            let hops =
                of_ranks.map(|(others, count)| count * fewest_hops(ranks - 1, *others, slots));
            let paid = per_slot.times(slots)?;
            let sending = over(hops.sum::<u128>() * block, everywhere)?;
            let at_least = over(shortest * block, everywhere)?;
            Ok(Some((paid.plus(sending)?, paid.plus(at_least)?)))
        })
    }

    /// g.
    fn most(&self) -> u64 {
        let usable = self
            .rates
            .iter()
            .map(|own| own.iter().filter(|rate| **rate > 0));
        usable.map(|own| own.count() as u64).max().unwrap_or(0)
    }

    /// The greatest m / (w B), and whether it is that of a rank or of a cut.
    fn sending(
        &self,
        grid: &WssGrid,
        collective: &Collective,
        size: Bytes,
    ) -> Result<(Time, &'static str), UnitError> {
        let ranks = u128::from(collective.ranks());
        let root = collective.root();
        let mut greatest = (Time::ZERO, "bandwidth");
        let mut enter = |bytes: u128, across: u128, name: &'static str| {
            if across > 0 {
                let time = over(bytes, across)?;
                greatest = if time > greatest.0 {
                    (time, name)
                } else {
                    greatest
                };
            }
            Ok::<(), UnitError>(())
        };
        for (rank, own) in (0..).zip(&self.rates) {
            let bytes = crossing(collective, size, 1, rank == root);
            enter(bytes, own.iter().sum(), "bandwidth")?;
        }
        let everywhere = self.rates.iter().flatten().sum();
        let block = u128::from(size.get()) / ranks;
        match collective.kind() {
            CollectiveKind::AllReduce => {
                enter(
                    2 * (ranks - 1) * u128::from(size.get()),
                    everywhere,
                    "bandwidth",
                )?;
            }
            CollectiveKind::AllToAll => {
                let hops = 2 * ranks * (ranks - 1) - self.direct;
                enter(hops * block, everywhere, "bandwidth")?;
            }
            _ => {}
        }
        for plane in Plane::BOTH {
            let switches = grid.rows * grid.columns / grid.ports_in_use(plane).max(1);
            // Ranks, bits per second to the other switches, and whether the root is there.
            let mut sets = vec![(0u128, 0u128, false); switches as usize];
            for (rank, own) in (0..).zip(&self.rates) {
                interrupt::check();
                let (inside, across, has_root) = &mut sets[grid.port(rank, plane).0 as usize];
                *inside += 1;
                *across += own[plane.other() as usize];
                *has_root |= rank == root;
            }
            for (inside, across, has_root) in sets {
                if (1..ranks).contains(&inside) {
                    enter(crossing(collective, size, inside, has_root), across, "cut")?;
                }
            }
        }
        Ok(greatest)
    }
}

/// The least hops of the blocks of a rank with so many others on its switches, in so many slots.
fn fewest_hops(others: u128, on_switches: [u128; 2], slots: u64) -> u128 {
    // C(S, h) are the ways of h hops in different settings, with a circuit in each.
    let ways = |far: u64| match far > slots {
        true => 0,
        false => places::ordered(far, slots - far + 1),
    };
    let along =
        on_switches.map(|ranks| places::hops(ranks, |far| if far > 2 { ranks } else { ways(far) }));
    let beyond = others - on_switches[0] - on_switches[1];
    // One hop more than in a count that begins with one.
    let far = places::hops(beyond, |far| {
        let turns = places::power(2, far + 1).saturating_sub(2);
        ways(far + 1).saturating_mul(turns)
    });
    along[0] + along[1] + beyond + far
}

/// Bits per second of so many transceivers.
fn rate(grid: &WssGrid, transceivers: u64) -> u128 {
    u128::from(grid.rate.bits_per_second()) * u128::from(transceivers)
}

fn transceivers(grid: &WssGrid) -> impl Iterator<Item = (u32, Plane)> {
    (0..grid.ranks()).flat_map(|rank| Plane::BOTH.map(|plane| (rank, plane)))
}
