//! Lower bounds for grids of tunable circuits.
//!
//! A transceiver is *usable* if it works and another working transceiver is on its switch. N >= 2
//! ranks have u_r usable transceivers each, with a maximum of g <= 2. A transceiver sends at rate B
//! to one rank of its switch at a time, and receives from one rank at a time, on any wavelength. A
//! circuit that its transmitter does not have already costs c = 2 control + tuning + lock; a
//! central controller adds its handling time once. The propagation latency is L. If transceivers
//! have different rates, w B stands for the sum of the rates of w transceivers, and g B for g times
//! the full rate.
//!
//! - **growth** (theorem A2). At least ceil(log_(1+g) N) slots.
//! - **bandwidth**, **cut** (theorem G1). T >= c + L + m / (w B) if m bytes must cross w usable
//!   transceivers. These are the transceivers of a rank, of a row or of a column. In an all_reduce
//!   or an all_to_all, they are also the transceivers of all ranks.
//! - **rounds** (theorem G2). T >= c + P(N), where P(N) is the least time after which N ranks can
//!   be informed. A rank informs g others when a time L has passed since it was informed itself. It
//!   informs g more after every further time c. In a broadcast or scatter, a rank has no circuits
//!   before it is informed, so that it informs the first g others only after c + L. If P'(N) is the
//!   least time with this rule, T >= P'(N) + m / (g B), because the last informed rank then
//!   receives its m bytes.
//! - **Slot by slot** (theorem G3). If every slot is charged, or no slot is charged, the G slots of
//!   `growth` take G (c + L), or G L, plus the greatest m / (w B). Three bounds count more bytes
//!   for plans with few slots: **pieces** of a broadcast or reduce (`crate::pieces`),
//!   **both_halves** of an all_reduce (`crate::both_halves`), and **hops** of an all_to_all, whose
//!   blocks make more hops in few slots.
//! - **A demand** (theorem G4). m is the number of bytes that the demand sends out of a rank, row
//!   or column, or into it. In `growth` and `rounds`, N is replaced by 1 plus the greatest number
//!   of ranks to which a rank sends data, or from which it receives data.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::{
    Bound, ReconfigurationCost, TimeBound, VectorInSlots, bytes_over_borders, crossing_bytes,
    growth, hop_counts, least_over_slots, max_with_slot_bounds, reached, transmission_time,
};
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::Plane;
use opticoll_fabric::family::wss_grid::WssGrid;
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Returns the greatest bound on the number of slots of `collective`.
pub fn slots(grid: &WssGrid, collective: &Collective) -> Bound {
    Bound {
        steps: growth(
            reached(collective),
            UsableTransceivers::of(grid).max_usable().max(1),
        ),
        name: "growth",
        assumption: "any number of chunks in a burst; a rank forwards data only in a later slot \
                     than the one in which it received them",
    }
}

/// Returns the greatest bound on the time of `collective` at the size `size`. The bound does not
/// count the slow switches. Fails if a time exceeds 64 bits of picoseconds.
pub fn best(
    grid: &WssGrid,
    collective: &Collective,
    size: Bytes,
    charge: ReconfigurationCost,
) -> Result<TimeBound, UnitError> {
    let ranks = reached(collective);
    if collective.ranks() < 2 {
        return Ok(TimeBound::SINGLE_RANK);
    }
    if ranks < 2 {
        return Ok(TimeBound::NOTHING_SENT);
    }
    let ports = UsableTransceivers::of(grid);
    let setup_time = grid.setup_time()?;
    let (sending, name) = ports.sending(grid, collective, size)?;
    let slots = growth(ranks, ports.max_usable().max(1));
    let per_slot = match charge {
        ReconfigurationCost::EverySlot => Some(setup_time.plus(grid.latency)?),
        ReconfigurationCost::Never => Some(grid.latency),
        ReconfigurationCost::Once | ReconfigurationCost::OncePerPort => None,
    };
    if let Some(per_slot) = per_slot {
        let rounds = TimeBound {
            time: per_slot.times(slots)?.plus(sending)?,
            name: if slots > 1 { "rounds" } else { name },
            assumption: "slots run one after the other, each as long as its longest burst",
        };
        let max_usable = ports.max_usable().max(1);
        let vector = VectorInSlots {
            ranks,
            ports: max_usable,
            fewest: slots,
            per_slot,
            sending: transmission_time(size.get().into(), rate(grid, max_usable))?,
        };
        let hops = || match collective.demand() {
            Some(_) => Ok(None),
            None => ports.forwarding(size, slots, per_slot),
        };
        return max_with_slot_bounds(rounds, collective.kind(), |bound| bound(&vector), hops);
    }
    let sent = TimeBound {
        time: setup_time.plus(grid.latency)?.plus(sending)?,
        name,
        assumption: "no transceiver sends or receives faster than its rate; a circuit is tuned \
                     before the first burst",
    };
    let informing_time = TimeBound {
        time: rounds(
            grid,
            collective,
            size,
            ports.max_usable().max(1),
            setup_time,
        )?,
        name: "rounds",
        assumption: "a transmitter tunes anew for every further rank that it sends to, and a rank \
                     forwards only data that have arrived",
    };
    Ok(if informing_time.time > sent.time {
        informing_time
    } else {
        sent
    })
}

/// Returns the bound `rounds`: the time to inform all ranks. For a broadcast or a scatter, adds the
/// time in which the last informed rank receives its bytes. `setup_time` is the time to set up a
/// circuit.
fn rounds(
    grid: &WssGrid,
    collective: &Collective,
    size: Bytes,
    max_usable: u64,
    setup_time: Time,
) -> Result<Time, UnitError> {
    let ranks = reached(collective);
    match collective.kind() {
        CollectiveKind::Broadcast | CollectiveKind::Scatter => {
            let last = transmission_time(size.get().into(), rate(grid, max_usable))?;
            informing_time(
                ranks,
                max_usable,
                grid.latency.plus(setup_time)?,
                setup_time,
            )?
            .plus(last)
        }
        _ => informing_time(ranks, max_usable, grid.latency, setup_time)?.plus(setup_time),
    }
}

/// Returns the time after which `ranks` ranks can be informed. An informed rank informs
/// `max_usable` other ranks after the time `first`, and `max_usable` further ranks after each later
/// time `next`.
fn informing_time(ranks: u64, max_usable: u64, first: Time, next: Time) -> Result<Time, UnitError> {
    if next == Time::ZERO {
        return Ok(if ranks > 1 { first } else { Time::ZERO });
    }
    let mut arrivals = BinaryHeap::from([Reverse(first)]);
    let (mut now, mut informed) = (Time::ZERO, 1u64);
    while informed < ranks {
        let Some(Reverse(at)) = arrivals.pop() else {
            break;
        };
        (now, informed) = (at, informed + max_usable);
        arrivals.push(Reverse(at.plus(next)?));
        // Ranks that are informed at the same time inform their next ranks at the same time.
        for _ in 0..max_usable {
            arrivals.push(Reverse(at.plus(first)?));
        }
    }
    Ok(now)
}

struct UsableTransceivers {
    /// Rates of each rank in bit/s, indexed by rank: [rate of the row transceiver, rate of the
    /// column transceiver]. 0 if the transceiver is not usable.
    rates: Vec<[u128; 2]>,
    /// Number of ordered pairs of ranks with working transceivers on a common switch.
    direct: u128,
    /// Number of ranks, keyed by [number of other ranks on the row switch, number of other ranks on
    /// the column switch]. The numbers count only working transceivers.
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

    /// Returns the minimum time of an all_to_all over all numbers of slots from `fewest` on. Each
    /// slot costs `per_slot` in addition to its bytes.
    fn forwarding(
        &self,
        size: Bytes,
        fewest: u64,
        per_slot: Time,
    ) -> Result<Option<Time>, UnitError> {
        let ranks = self.rates.len() as u128;
        let total_rate = self.rates.iter().flatten().sum();
        let block = u128::from(size.get()) / ranks;
        let shortest = 2 * ranks * (ranks - 1) - self.direct;
        least_over_slots(fewest, |slots| {
            let partner_counts = self.partners.iter();
            let hops = partner_counts
                .map(|(others, count)| count * fewest_hops(ranks - 1, *others, slots));
            let paid = per_slot.times(slots)?;
            let sending = transmission_time(hops.sum::<u128>() * block, total_rate)?;
            let at_least = transmission_time(shortest * block, total_rate)?;
            Ok(Some((paid.plus(sending)?, paid.plus(at_least)?)))
        })
    }

    /// Returns the greatest number of usable transceivers of a rank.
    fn max_usable(&self) -> u64 {
        let usable = self
            .rates
            .iter()
            .map(|own| own.iter().filter(|rate| **rate > 0));
        usable.map(|own| own.count() as u64).max().unwrap_or(0)
    }

    /// Returns the greatest of the times that bytes need at the transceivers that they must cross.
    /// Also returns the name of this bound: `bandwidth` or `cut`.
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
                let time = transmission_time(bytes, across)?;
                greatest = if time > greatest.0 {
                    (time, name)
                } else {
                    greatest
                };
            }
            Ok::<(), UnitError>(())
        };
        // The greater number of bytes that a demand sends out of each part, or into it.
        let demanded = |parts: u32, part_of: &dyn Fn(u32) -> u32| -> Option<Vec<u128>> {
            let [out, into] = (collective.demand())
                .map(|_| bytes_over_borders(collective, size, parts, part_of))?;
            Some(
                out.into_iter()
                    .zip(into)
                    .map(|(one, other)| one.max(other))
                    .collect(),
            )
        };
        let of_ranks = demanded(collective.ranks(), &|rank| rank);
        for (rank, own) in (0..).zip(&self.rates) {
            let bytes = match &of_ranks {
                Some(bytes) => bytes[rank as usize],
                None => crossing_bytes(collective, size, 1, rank == root),
            };
            enter(bytes, own.iter().sum(), "bandwidth")?;
        }
        let total_rate = self.rates.iter().flatten().sum();
        let block = u128::from(size.get()) / ranks;
        match collective.kind() {
            CollectiveKind::AllReduce => {
                enter(
                    2 * (ranks - 1) * u128::from(size.get()),
                    total_rate,
                    "bandwidth",
                )?;
            }
            CollectiveKind::AllToAll => {
                let all = collective.demanded(size);
                let bytes = match collective.demand() {
                    Some(_) => all
                        .map(|(from, to, bytes)| bytes * hops(grid, from, to))
                        .sum(),
                    None => (2 * ranks * (ranks - 1) - self.direct) * block,
                };
                enter(bytes, total_rate, "bandwidth")?;
            }
            _ => {}
        }
        for plane in Plane::BOTH {
            let switches = grid.rows * grid.columns / grid.ports_in_use(plane).max(1);
            // For each switch: number of its ranks, their rate to other switches in bit/s, and
            // whether the root is one of these ranks.
            let mut sets = vec![(0u128, 0u128, false); switches as usize];
            let of_sets = demanded(switches, &|rank| grid.port(rank, plane).0);
            for (rank, own) in (0..).zip(&self.rates) {
                interrupt::check();
                let (inside, across, has_root) = &mut sets[grid.port(rank, plane).0 as usize];
                *inside += 1;
                *across += own[plane.other() as usize];
                *has_root |= rank == root;
            }
            for (set, (inside, across, has_root)) in sets.into_iter().enumerate() {
                if (1..ranks).contains(&inside) {
                    let bytes = match &of_sets {
                        Some(bytes) => bytes[set],
                        None => crossing_bytes(collective, size, inside, has_root),
                    };
                    enter(bytes, across, "cut")?;
                }
            }
        }
        Ok(greatest)
    }
}

/// Returns the least total number of hops of a rank's blocks to `others` other ranks in `slots`
/// slots. `on_switches` is [number of these ranks on the row switch, number of these ranks on the
/// column switch].
fn fewest_hops(others: u128, on_switches: [u128; 2], slots: u64) -> u128 {
    // C(S, h) is the number of ways to choose different slots for h hops.
    let routes = |hops: u64| match hops > slots {
        true => 0,
        false => hop_counts::hop_orders(hops, slots - hops + 1),
    };
    let along = on_switches.map(|ranks| {
        hop_counts::least_hops(ranks, |hops| if hops > 2 { ranks } else { routes(hops) })
    });
    let off_switch = others - on_switches[0] - on_switches[1];
    // `least_hops` counts from one hop on, but these ranks are at least two hops away.
    let hops = hop_counts::least_hops(off_switch, |hops| {
        let turns = hop_counts::power(2u64, hops + 1).saturating_sub(2);
        routes(hops + 1).saturating_mul(turns)
    });
    along[0] + along[1] + off_switch + hops
}

/// Returns the least number of hops from rank `from` to rank `to`: 0 to the rank itself, 1 if both
/// have working transceivers on a common switch, else at least 2.
fn hops(grid: &WssGrid, from: u32, to: u32) -> u128 {
    let joins = |plane: Plane| {
        let works = grid.works(from, plane) && grid.works(to, plane);
        works && grid.port(from, plane).0 == grid.port(to, plane).0
    };
    match from == to {
        true => 0,
        false => 2 - u128::from(Plane::BOTH.into_iter().any(joins)),
    }
}

/// Returns the rate of `transceivers` transceivers in bit/s.
fn rate(grid: &WssGrid, transceivers: u64) -> u128 {
    u128::from(grid.rate.bits_per_second()) * u128::from(transceivers)
}

fn transceivers(grid: &WssGrid) -> impl Iterator<Item = (u32, Plane)> {
    (0..grid.ranks()).flat_map(|rank| Plane::BOTH.map(|plane| (rank, plane)))
}
