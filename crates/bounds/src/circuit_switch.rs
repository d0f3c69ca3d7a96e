//! Lower bounds for circuit switches, in the cost model of the simulator `circuit`.
//!
//! n >= 2 ranks of d ports, rate B, start-up alpha, latency delta, reconfiguration R. A hop is a
//! message on a circuit in a slot; what is sent on has arrived in an earlier slot. Where ports are
//! dead or slower, n d B is the sum of the rates of those that work, and the rank with the least
//! bounds what each must send or receive.
//!
//! - **settings** (theorem C1). Where the whole switch changes at once, T >= min over P of c(P) +
//!   alpha + S(P) delta + m / (d B), where P settings cost c(P) = (P - 1) R, or P R where the
//!   first is charged, and need S(P) slots (`phases`). With cut-through alpha + max(S(P) delta, P
//!   delta + m / (d B)) follows c(P). In an all_to_all m counts every hop of the blocks
//!   (`places`): the bound is the least over P and the number of slots.
//! - **Ports that change one by one**, or planes (theorem C2): T >= min over P of max(c(P),
//!   alpha + D(P) delta, alpha + delta + m / (d B)), with D(P) the least h with 1 + P d + ... + (P
//!   d)^h >= n.
//! - **A demand** (theorem C4), see [`demanded`]: n becomes the ranks that a rank reaches, itself
//!   included, and m the bytes of all hops of its blocks, where the largest blocks take the fewest
//!   hops.
//! - **Beside the switch** (theorem C3), with rate b and latency L: T >= min(alpha + delta, L) + m
//!   / (d B + b), and R more where each slot is charged.

pub mod demanded;

use crate::circuit_switch::demanded::DemandLines;
use crate::places::power;
pub use crate::places::{fewest_hops, hops, ordered};
use crate::{Bound, TimeBound, crossing, growth, over, phases};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::circuits::Charge;
use opticoll_fabric::family::circuit_switch::{CircuitSwitch, FirstSetting, Forwarding};
use opticoll_plan::collective::{Collective, CollectiveKind};

/// The bound on slots: in a slot a rank tells d others.
pub fn slots(switch: &CircuitSwitch, collective: &Collective) -> Bound {
    let reached = match collective.demand() {
        Some(_) => DemandLines::of(collective, Bytes::new(0)).reached(),
        None => collective.ranks().into(),
    };
    Bound {
        steps: match switch.forwarding {
            _ if switch.beside_rate.is_some() => u64::from(reached > 1),
            Forwarding::Store => growth(reached, switch.ports.into()),
            Forwarding::CutThrough => u64::from(reached > 1),
        },
        name: "growth",
        assumption: match switch.forwarding {
            _ if switch.beside_rate.is_some() => "any number of messages beside the switch",
            Forwarding::Store => {
                "any number of chunks per circuit; a rank forwards in later slots than the one in which it received"
            }
            Forwarding::CutThrough => "any number of chunks per circuit, and of circuits in a slot",
        },
    }
}

/// The greatest bound on the time of a collective of a size.
///
/// # Errors
/// A time beyond 64 bits of picoseconds.
pub fn best(
    switch: &CircuitSwitch,
    collective: &Collective,
    size: Bytes,
    charge: Charge,
) -> Result<TimeBound, UnitError> {
    let ranks = u64::from(collective.ranks());
    if ranks < 2 {
        return Ok(TimeBound::ALONE);
    }
    let demanded = collective.demand();
    let demanded = demanded.map(|_| DemandLines::of(collective, size));
    let reached = demanded.as_ref().map_or(ranks, DemandLines::reached);
    if reached < 2 {
        return Ok(demanded::NOTHING);
    }
    let asked = Asked {
        switch,
        collective,
        size,
        demanded,
        ranks,
        reached,
        ports: u64::from(switch.ports),
        rates: PortRates::new(switch, collective),
    };
    if switch.beside_rate.is_some() {
        return Ok(TimeBound {
            time: asked.with_network(charge)?,
            name: "bandwidth",
            assumption: "no port is faster than its rate, neither of the switch nor beside it",
        });
    }
    let mut least: Option<Time> = None;
    let mut most = 0;
    while most < ranks {
        let settings = [most + 1, ranks.min(next(most))];
        most = settings[1];
        let (charged, time) = asked.with_settings(settings, charge)?;
        least = Some(least.map_or(time, |least| least.min(time)));
        // More settings cost more than the best so far.
        let is_all = match charge {
            Charge::Never => true,
            Charge::EverySlot => switch.forwarding == Forwarding::Store && asked.demanded.is_none(),
            _ => false,
        };
        if is_all || Some(charged) >= least {
            break;
        }
    }
    Ok(TimeBound {
        time: least.unwrap_or(Time::ZERO),
        name: "settings",
        assumption: "no port is faster than its rate, and each setting gives a rank as many circuits as it has ports",
    })
}

/// What a bound is asked for.
struct Asked<'a> {
    switch: &'a CircuitSwitch,
    collective: &'a Collective,
    size: Bytes,
    demanded: Option<DemandLines>,
    ranks: u64,
    /// The ranks, itself included, that something of a rank must reach.
    reached: u64,
    ports: u64,
    rates: PortRates,
}

impl Asked<'_> {
    /// What a number of settings costs, between the least and the most given, and the least time with them.
    fn with_settings(&self, settings: [u64; 2], charge: Charge) -> Result<(Time, Time), UnitError> {
        let [fewest, most] = settings;
        let change = self.switch.reconfiguration.time()?;
        let paid = match self.switch.first_setting {
            FirstSetting::Free => change.times(fewest - 1)?,
            FirstSetting::Charged => change.times(fewest)?,
        };
        let growth = growth(self.reached, self.ports);
        let stores = self.switch.forwarding == Forwarding::Store;
        let in_order = |hops: u64| ordered(hops, most).saturating_mul(power(self.ports, hops));
        match charge {
            // Each slot has a setting.
            Charge::Never if stores => Ok((Time::ZERO, self.in_slots(growth, None, Time::ZERO)?)),
            Charge::EverySlot if stores && self.demanded.is_none() => {
                Ok((change, self.in_slots(growth, None, change)?))
            }
            Charge::EverySlot if stores => {
                let slots = fewest.max(growth);
                let paid = change.times(slots)?;
                let time = self.in_slots(slots, Some(most.max(growth)), Time::ZERO)?;
                Ok((paid, paid.plus(time)?))
            }
            Charge::Never => {
                let all = |_| u128::from(self.ranks);
                Ok((Time::ZERO, self.cut_through(1, growth, all)?))
            }
            Charge::EverySlot => {
                let paid = change.times(fewest)?;
                let hops = self.hops(settings).unwrap_or(growth);
                Ok((paid, paid.plus(self.cut_through(fewest, hops, in_order)?)?))
            }
            Charge::ChangedPort | Charge::ChangedPlane => {
                Ok((paid, paid.max(self.one_by_one(most)?)))
            }
            _ => {
                let hops = self.hops(settings).unwrap_or(growth);
                let time = match stores {
                    true => self.in_slots(hops.max(fewest), Some(most), Time::ZERO)?,
                    false => self.cut_through(fewest, hops, in_order)?,
                };
                Ok((paid, paid.plus(time)?))
            }
        }
    }

    /// The least time with a network beside the switch.
    fn with_network(&self, charge: Charge) -> Result<Time, UnitError> {
        let change = match charge {
            Charge::EverySlot => self.switch.reconfiguration.time()?,
            _ => Time::ZERO,
        };
        let circuit = self.switch.startup.plus(self.switch.latency)?;
        let first = circuit.min(self.switch.beside_latency);
        let sent = self.sending(|_| u128::from(self.ranks))?;
        change.plus(first)?.plus(sent)
    }

    /// The fewest slots in which all settings of a run send and reach the farthest rank, of numbers between the least and the
    /// most given: as many as reach it with the most, or as there are settings.
    fn hops(&self, [fewest, most]: [u64; 2]) -> Option<u64> {
        let hops = phases::least_slots(self.reached, most, |hops| within(self.ports, hops))?;
        Some(if hops > most { hops } else { fewest })
    }

    /// Start-up, and the latencies of so many slots with bytes, or of so many hops to the farthest rank; `ways` are those of so
    /// many hops from a rank.
    fn cut_through(
        &self,
        slots: u64,
        hops: u64,
        ways: impl Fn(u64) -> u128,
    ) -> Result<Time, UnitError> {
        let far = self.switch.latency.times(hops)?;
        let sent = self.sending(ways)?;
        let near = self.switch.latency.times(slots)?.plus(sent)?;
        self.switch.startup.plus(far.max(near))
    }

    /// Start-up, the latencies of slots with what each is charged, and bytes: the least over numbers of slots from the
    /// fewest on, with so many settings at most, or one for each slot.
    fn in_slots(
        &self,
        fewest: u64,
        settings: Option<u64>,
        charged: Time,
    ) -> Result<Time, UnitError> {
        let of_slot = self.switch.latency.plus(charged)?;
        let before = |slots| self.switch.startup.plus(of_slot.times(slots)?);
        let ways = |hops: u64| match settings {
            Some(settings) => ordered(hops, settings).saturating_mul(power(self.ports, hops)),
            None => u128::from(self.ranks),
        };
        if self.collective.kind() != CollectiveKind::AllToAll || self.demanded.is_some() {
            return before(fewest)?.plus(self.sending(ways)?);
        }
        let others = self.ranks - 1;
        let enough = hops(others.into(), ways);
        let mut least: Option<Time> = None;
        let mut slots = fewest;
        loop {
            let last = next(slots - 1).max(slots);
            let started = before(slots)?;
            // Where latency is nothing, as many slots as help are there at once.
            let reached = match of_slot {
                Time::ZERO => Some(enough),
                _ => fewest_hops(others, self.ports, settings.unwrap_or(last), last),
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

    /// The same where ports change one by one, and none has more settings.
    fn one_by_one(&self, settings: u64) -> Result<Time, UnitError> {
        let ways = |hops: u64| power(self.ports.saturating_mul(settings), hops);
        let (mut hops, mut reached) = (0, 1u128);
        while reached < self.reached.into() {
            hops += 1;
            reached = reached.saturating_add(ways(hops));
        }
        let CircuitSwitch {
            startup, latency, ..
        } = *self.switch;
        let far = startup.plus(latency.times(hops)?)?;
        let near = startup.plus(latency)?.plus(self.sending(ways)?)?;
        Ok(far.max(near))
    }

    /// The bytes of the busiest rank over the rate of its ports; `ways` are those of so many hops from a rank.
    fn sending(&self, ways: impl Fn(u64) -> u128) -> Result<Time, UnitError> {
        let Some(demanded) = &self.demanded else {
            return self.sending_over(hops(u128::from(self.ranks) - 1, ways));
        };
        let beside = self.switch.bits_beside();
        let all = self.rates.all + u128::from(self.ranks) * beside;
        let of_one = demanded.slowest(self.switch)?;
        Ok(of_one.max(over(demanded.hops(&ways), all)?))
    }

    /// The same; the blocks of a rank in an all_to_all, all alike, make so many hops.
    fn sending_over(&self, hops: u128) -> Result<Time, UnitError> {
        let (collective, size) = (self.collective, self.size);
        let ranks = u128::from(self.ranks);
        let beside = self.switch.bits_beside();
        let all = self.rates.all + ranks * beside;
        let together = match collective.kind() {
            CollectiveKind::AllToAll => {
                let block = u128::from(size.get()) / ranks;
                over(ranks * block * hops, all)?
            }
            CollectiveKind::AllReduce => over(2 * (ranks - 1) * u128::from(size.get()), all)?,
            _ => Time::ZERO,
        };
        let of_one = |is_root: bool| {
            let own = self.rates.of_one[usize::from(is_root)];
            over(
                crossing(collective, size, 1, is_root),
                own.saturating_add(beside),
            )
        };
        Ok(together.max(of_one(true)?).max(of_one(false)?))
    }
}

/// Bits per second of the ports that work.
struct PortRates {
    /// Of all ranks together.
    all: u128,
    /// The least of a rank that is not the root, and those of the root.
    of_one: [u128; 2],
}

impl PortRates {
    fn new(switch: &CircuitSwitch, collective: &Collective) -> PortRates {
        let root = collective.root();
        let mut all = 0;
        let mut of_one = [u128::MAX; 2];
        for rank in 0..collective.ranks() {
            let own = switch.bits_of_ports(rank);
            all += own;
            let least = &mut of_one[usize::from(rank == root)];
            *least = own.min(*least);
        }
        PortRates { all, of_one }
    }
}

/// The ranks within so many circuits of one, itself included.
fn within(ports: u64, circuits: u64) -> u128 {
    if ports == 1 {
        return 1 + u128::from(circuits);
    }
    let (mut all, mut outermost) = (1u128, 1u128);
    for _ in 0..circuits.min(128) {
        outermost = outermost.saturating_mul(ports.into());
        all = all.saturating_add(outermost);
    }
    all
}

/// The number after those that are taken together: bounds are for the least of a run, with the reach of the most.
fn next(number: u64) -> u64 {
    number + 1 + number / TOGETHER
}

/// Numbers of settings and of slots up to this are tried one by one.
const TOGETHER: u64 = 256;
