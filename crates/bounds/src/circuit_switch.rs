//! Lower bounds for circuit switches, in the cost model of the simulator `circuit`.
//!
//! n >= 2 ranks have d ports of rate B each. alpha is the start-up time, delta the latency, and R
//! the reconfiguration time. m is the number of bytes that a rank must send, or must receive. A hop
//! is a message on a circuit in a slot. A rank forwards only data that arrived in an earlier slot.
//! If ports are dead or slower, n d B is the sum of the rates of all working ports. The rank with
//! the least rate then bounds the bytes that each rank sends or receives.
//!
//! - **configurations** (theorem C1). If the whole switch changes at once, T >= min over P of
//!   c(P) + alpha + S(P) delta + m / (d B). P configurations need S(P) slots (`phases`). They cost
//!   c(P) = (P - 1) R, or P R if the first configuration is charged. With cut-through forwarding,
//!   T >= min over P of c(P) + alpha + max(S(P) delta, P delta + m / (d B)). In an all_to_all, m
//!   counts every hop of the blocks (`hop_counts`), and the bound is the minimum over P and over
//!   the number of slots.
//! - **Ports, or planes, that change one by one** (theorem C2). P is the number of configurations
//!   of a port. T >= min over P of max(c(P), alpha + D(P) delta, alpha + delta + m / (d B)). D(P)
//!   is the least h with 1 + P d + ... + (P d)^h >= n.
//! - **A demand** (theorem C4), see [`demanded`]. n is then the number of ranks that a rank
//!   reaches, including itself. m is the sum of bytes times hops over the blocks of a rank, where
//!   the largest blocks make the fewest hops.
//! - **A network beside the switch** (theorem C3), of rate b and latency L. T >= min(alpha + delta,
//!   L) + m / (d B + b).

pub mod demanded;

use crate::circuit_switch::demanded::DemandLines;
use crate::hop_counts::power;
pub use crate::hop_counts::{fewest_hops, hop_orders, least_hops};
use crate::{Bound, TimeBound, crossing_bytes, growth, phases, reached, transmission_time};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::circuits::ReconfigurationCharge;
use opticoll_fabric::family::circuit_switch::{CircuitSwitch, FirstConfiguration, Forwarding};
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Returns the bound on the number of slots: in a slot, a rank informs at most as many ranks as it
/// has ports.
pub fn slots(switch: &CircuitSwitch, collective: &Collective) -> Bound {
    let reached = reached(collective);
    Bound {
        steps: match switch.forwarding {
            _ if switch.packet_rate.is_some() => u64::from(reached > 1),
            Forwarding::Store => growth(reached, switch.ports.into()),
            Forwarding::CutThrough => u64::from(reached > 1),
        },
        name: "growth",
        assumption: match switch.forwarding {
            _ if switch.packet_rate.is_some() => {
                "any number of messages over the network beside the switch"
            }
            Forwarding::Store => {
                "any number of chunks per circuit; a rank forwards data only in a later slot than \
                 the one in which it received them"
            }
            Forwarding::CutThrough => {
                "any number of chunks per circuit, and any number of circuits one after the other \
                 in a slot"
            }
        },
    }
}

/// Returns the greatest bound on the time of `collective` at the size `size`. Fails if a time
/// exceeds 64 bits of picoseconds.
pub fn best(
    switch: &CircuitSwitch,
    collective: &Collective,
    size: Bytes,
    charge: ReconfigurationCharge,
) -> Result<TimeBound, UnitError> {
    let ranks = u64::from(collective.ranks());
    if ranks < 2 {
        return Ok(TimeBound::SINGLE_RANK);
    }
    let demanded = collective.demand();
    let demanded = demanded.map(|_| DemandLines::of(collective, size));
    let reached = reached(collective);
    if reached < 2 {
        return Ok(TimeBound::NOTHING_SENT);
    }
    let problem = Problem {
        switch,
        collective,
        size,
        demanded,
        ranks,
        reached,
        ports: u64::from(switch.ports),
        rates: PortRates::new(switch, collective),
    };
    if switch.packet_rate.is_some() {
        return Ok(TimeBound {
            time: problem.with_network()?,
            name: "bandwidth",
            assumption: "no port is faster than its rate, on the switch or on the network beside \
                         it",
        });
    }
    let mut least: Option<Time> = None;
    let mut most = 0;
    while most < ranks {
        let configurations = [most + 1, ranks.min(end_of_range(most))];
        most = configurations[1];
        let (charged, time) = problem.with_configurations(configurations, charge)?;
        least = Some(least.map_or(time, |least| least.min(time)));
        // The search ends if the number of configurations does not matter, or if more
        // configurations alone cost more than the least bound so far.
        let is_last_range = match charge {
            ReconfigurationCharge::Never => true,
            ReconfigurationCharge::EverySlot => {
                switch.forwarding == Forwarding::Store && problem.demanded.is_none()
            }
            _ => false,
        };
        if is_last_range || Some(charged) >= least {
            break;
        }
    }
    Ok(TimeBound {
        time: least.unwrap_or(Time::ZERO),
        name: "configurations",
        assumption: "no port is faster than its rate, and each configuration gives a rank as many \
                     circuits as it has ports",
    })
}

struct Problem<'a> {
    switch: &'a CircuitSwitch,
    collective: &'a Collective,
    size: Bytes,
    demanded: Option<DemandLines>,
    ranks: u64,
    /// Number of ranks that data of one rank must reach, including the rank itself.
    reached: u64,
    ports: u64,
    rates: PortRates,
}

impl Problem<'_> {
    /// Returns the cost of reconfigurations, and a lower bound on the whole time, of plans with
    /// `fewest` to `most` configurations. `configurations` is `[fewest, most]`. The cost is that
    /// of `fewest` configurations.
    fn with_configurations(
        &self,
        configurations: [u64; 2],
        charge: ReconfigurationCharge,
    ) -> Result<(Time, Time), UnitError> {
        let [fewest, most] = configurations;
        let change = self.switch.reconfiguration.time()?;
        let paid = match self.switch.first_configuration {
            FirstConfiguration::Free => change.times(fewest - 1)?,
            FirstConfiguration::Charged => change.times(fewest)?,
        };
        let growth = growth(self.reached, self.ports);
        let stores = self.switch.forwarding == Forwarding::Store;
        let in_order = |hops: u64| hop_orders(hops, most).saturating_mul(power(self.ports, hops));
        match charge {
            // Each slot has a configuration of its own.
            ReconfigurationCharge::Never if stores => {
                Ok((Time::ZERO, self.over_slot_counts(growth, None, Time::ZERO)?))
            }
            ReconfigurationCharge::EverySlot if stores && self.demanded.is_none() => {
                Ok((change, self.over_slot_counts(growth, None, change)?))
            }
            ReconfigurationCharge::EverySlot if stores => {
                let slots = fewest.max(growth);
                let paid = change.times(slots)?;
                let time = self.over_slot_counts(slots, Some(most.max(growth)), Time::ZERO)?;
                Ok((paid, paid.plus(time)?))
            }
            ReconfigurationCharge::Never => {
                let any = |_| u128::from(self.ranks);
                Ok((Time::ZERO, self.cut_through(1, growth, any)?))
            }
            ReconfigurationCharge::EverySlot => {
                let paid = change.times(fewest)?;
                let hops = self.least_slots(configurations).unwrap_or(growth);
                Ok((paid, paid.plus(self.cut_through(fewest, hops, in_order)?)?))
            }
            ReconfigurationCharge::ChangedPort | ReconfigurationCharge::ChangedPlane => {
                Ok((paid, paid.max(self.one_by_one(most)?)))
            }
            _ => {
                let hops = self.least_slots(configurations).unwrap_or(growth);
                let time = match stores {
                    true => self.over_slot_counts(hops.max(fewest), Some(most), Time::ZERO)?,
                    false => self.cut_through(fewest, hops, in_order)?,
                };
                Ok((paid, paid.plus(time)?))
            }
        }
    }

    /// Returns the bound of theorem C3, for a switch with a network beside it.
    fn with_network(&self) -> Result<Time, UnitError> {
        let circuit = self.switch.startup.plus(self.switch.latency)?;
        let first = circuit.min(self.switch.packet_latency);
        let sent = self.sending(|_| u128::from(self.ranks))?;
        first.plus(sent)
    }

    /// Returns a lower bound on the number of slots of plans with `fewest` to `most`
    /// configurations. `None` if no number of slots is enough. The bound is the minimum number of
    /// slots of plans with `most` configurations if this minimum exceeds `most`. Otherwise the
    /// bound is `fewest`, because each configuration has at least one slot.
    fn least_slots(&self, [fewest, most]: [u64; 2]) -> Option<u64> {
        let hops = phases::least_slots(self.reached, most, |hops| within(self.ports, hops))?;
        Some(if hops > most { hops } else { fewest })
    }

    /// Returns the bound for cut-through forwarding. The start-up time precedes the longer of two
    /// times: `hops` latencies, or `slots` latencies and the transmission of the bytes. `routes(h)`
    /// is the maximum number of ranks that are h hops away from a rank.
    fn cut_through(
        &self,
        slots: u64,
        hops: u64,
        routes: impl Fn(u64) -> u128,
    ) -> Result<Time, UnitError> {
        let far = self.switch.latency.times(hops)?;
        let sent = self.sending(routes)?;
        let near = self.switch.latency.times(slots)?.plus(sent)?;
        self.switch.startup.plus(far.max(near))
    }

    /// Returns the minimum, over all numbers of slots from `fewest` on, of the sum of start-up
    /// time, slots, and transmission of the bytes. Each slot takes the latency and the time
    /// `charged`. Plans have at most `configurations` configurations; `None` means one
    /// configuration per slot.
    fn over_slot_counts(
        &self,
        fewest: u64,
        configurations: Option<u64>,
        charged: Time,
    ) -> Result<Time, UnitError> {
        let of_slot = self.switch.latency.plus(charged)?;
        let before = |slots| self.switch.startup.plus(of_slot.times(slots)?);
        let routes = |hops: u64| match configurations {
            Some(configurations) => {
                hop_orders(hops, configurations).saturating_mul(power(self.ports, hops))
            }
            None => u128::from(self.ranks),
        };
        if self.collective.kind() != CollectiveKind::AllToAll || self.demanded.is_some() {
            return before(fewest)?.plus(self.sending(routes)?);
        }
        let others = self.ranks - 1;
        let enough = least_hops(others.into(), routes);
        let mut least: Option<Time> = None;
        let mut slots = fewest;
        loop {
            let last = end_of_range(slots - 1).max(slots);
            let started = before(slots)?;
            // If a slot costs nothing, the number of slots is unlimited.
            let reached = match of_slot {
                Time::ZERO => Some(enough),
                _ => fewest_hops(others, self.ports, configurations.unwrap_or(last), last),
            };
            if let Some(reached) = reached {
                let time = started.plus(self.sending_over(reached)?)?;
                least = Some(least.map_or(time, |least| least.min(time)));
                if reached <= enough || Some(started) >= least {
                    return Ok(least.unwrap_or(time));
                }
            }
            slots = last + 1;
        }
    }

    /// Returns the bound of theorem C2 without the cost of reconfigurations, if no port has more
    /// than `configurations` configurations.
    fn one_by_one(&self, configurations: u64) -> Result<Time, UnitError> {
        let routes = |hops: u64| power(self.ports.saturating_mul(configurations), hops);
        let (mut hops, mut reached) = (0, 1u128);
        while reached < self.reached.into() {
            hops += 1;
            reached = reached.saturating_add(routes(hops));
        }
        let CircuitSwitch {
            startup, latency, ..
        } = *self.switch;
        let far = startup.plus(latency.times(hops)?)?;
        let near = startup.plus(latency)?.plus(self.sending(routes)?)?;
        Ok(far.max(near))
    }

    /// Returns the transmission time of the busiest rank over its ports. `routes(h)` is the maximum
    /// number of ranks that are h hops away from a rank.
    fn sending(&self, routes: impl Fn(u64) -> u128) -> Result<Time, UnitError> {
        let Some(demanded) = &self.demanded else {
            return self.sending_over(least_hops(u128::from(self.ranks) - 1, routes));
        };
        let beside = self.switch.bits_beside();
        let total_rate = self.rates.total_rate + u128::from(self.ranks) * beside;
        let of_rank = demanded.slowest(self.switch)?;
        Ok(of_rank.max(transmission_time(demanded.hops(&routes), total_rate)?))
    }

    /// Returns the transmission time of the busiest rank for equal blocks. In an all_to_all, the
    /// blocks of a rank make `hops` hops in total.
    fn sending_over(&self, hops: u128) -> Result<Time, UnitError> {
        let (collective, size) = (self.collective, self.size);
        let ranks = u128::from(self.ranks);
        let beside = self.switch.bits_beside();
        let total_rate = self.rates.total_rate + ranks * beside;
        let together = match collective.kind() {
            CollectiveKind::AllToAll => {
                let block = u128::from(size.get()) / ranks;
                transmission_time(ranks * block * hops, total_rate)?
            }
            CollectiveKind::AllReduce => {
                transmission_time(2 * (ranks - 1) * u128::from(size.get()), total_rate)?
            }
            _ => Time::ZERO,
        };
        let of_rank = |is_root: bool| {
            let rate = self.rates.of_rank[usize::from(is_root)];
            transmission_time(
                crossing_bytes(collective, size, 1, is_root),
                rate.saturating_add(beside),
            )
        };
        Ok(together.max(of_rank(true)?).max(of_rank(false)?))
    }
}

/// Rates of the working ports, in bit/s.
struct PortRates {
    /// Sum of the rates of all ranks.
    total_rate: u128,
    /// Rates of ranks: [least rate of the ranks other than the root, rate of the root].
    of_rank: [u128; 2],
}

impl PortRates {
    fn new(switch: &CircuitSwitch, collective: &Collective) -> PortRates {
        let root = collective.root();
        let mut total_rate = 0;
        let mut of_rank = [u128::MAX; 2];
        for rank in 0..collective.ranks() {
            let rate = switch.bits_of_ports(rank);
            total_rate += rate;
            let least = &mut of_rank[usize::from(rank == root)];
            *least = rate.min(*least);
        }
        PortRates {
            total_rate,
            of_rank,
        }
    }
}

/// Returns the maximum number of ranks within `circuits` circuits of a rank, including itself.
fn within(ports: u64, circuits: u64) -> u128 {
    if ports == 1 {
        return 1 + u128::from(circuits);
    }
    let (mut reached, mut outermost) = (1u128, 1u128);
    for _ in 0..circuits.min(128) {
        outermost = outermost.saturating_mul(ports.into());
        reached = reached.saturating_add(outermost);
    }
    reached
}

/// Returns the last number of the range that begins with `number` + 1. All numbers of a range share
/// one bound, which combines the cost of the least number with the reach of the greatest number.
fn end_of_range(number: u64) -> u64 {
    number + 1 + number / MAX_SINGLE_RANGE
}

/// Greatest number of configurations, or of slots, that is a range of its own.
const MAX_SINGLE_RANGE: u64 = 256;
