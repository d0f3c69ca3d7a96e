//! Lower bounds for circuit switches, in the cost model of the simulator `circuit`.
//!
//! n >= 2 ranks of d ports, rate B, start-up alpha, latency delta, reconfiguration R. A hop is a message on a circuit in a slot;
//! what is sent on has arrived in an earlier slot.
//!
//! **bandwidth.** A rank that must send, or receive, m bytes needs m / (d B). All ranks together receive 2 (n - 1) M bytes
//! in an all_reduce of M (Patarasuk and Yuan, Journal of Parallel and Distributed Computing 2009), at n d B. Where ports are dead,
//! n d is the number of those that work, and the rank with the fewest bounds what each must send or receive.
//!
//! **settings.** Where the whole switch changes at once, let the setting be another P - 1 times. In s slots of one setting
//! something of a rank reaches at most 1 + d + ... + d^s ranks, for every rank has d circuits out. So S(P) slots at
//! least are needed for all ranks ([`phases`]), with P >= 1 settings,
//!
//! T >= min over P of c(P) + alpha + S(P) delta + m / (d B),
//!
//! where c(P) is (P - 1) R, or P R where the first setting is charged. With cut-through a message may go over many circuits in a
//! slot, in the time of its bytes and a latency for each: hops count in place of slots, S(P) hops at least to the farthest
//! rank, and a slot at least for each setting, so that alpha + S(P) delta + m / (d B) becomes
//! alpha + max(S(P) delta, P delta + m / (d B)).
//!
//! In an **all_to_all** what goes over h circuits takes h times its bytes of them. Over h circuits of P settings in their order
//! there are C(h + P - 1, h) d^h ways from a rank at most: which of the settings has each hop, none before that of the
//! hop before, and which port. So at most that many ranks are h hops away, and the n - 1 blocks of a rank take
//! H(n, d, P) hops at least: as many as can be one hop away, then two, and so on. With blocks of b bytes m is b H(n, d, P).
//!
//! **Ports that change one by one**, or planes. If no port has more than P settings, one that has P of them waits (P - 1) R,
//! and over h hops there are (P d)^h ways at most, for the settings of two ports have no common order. With D(P) the least h
//! with 1 + P d + ... + (P d)^h >= n,
//!
//! T >= min over P of max(c(P), alpha + D(P) delta, alpha + delta + m / (d B)),
//!
//! and in an all_to_all m is as above with (P d)^h ways.
//!
//! **A demand.** Of an all_to_all whose blocks differ, see [`demanded`]: n becomes the ranks that a rank reaches, itself included,
//! and m the bytes of all hops of its blocks, where the largest blocks take the fewest hops.
//!
//! **Beside the switch**, with rate b and latency L of each rank there, no setting keeps a rank from another, and every
//! block may take one hop. In a slot of time t the circuits of a rank carry d B (t - delta) bytes and the network
//! b (t - L), and in the first slot d B (t - alpha - delta) and b (t - L), so that
//!
//! T >= min(alpha + delta, L) + m / (d B + b), and R more where each slot is charged.

use rustc_hash::FxHashMap;

use crate::bound::{Bound, TimeBound, crossing, growth, over, phases};
use crate::collective::{Collective, CollectiveKind};
use crate::fabric::circuits::Charge;
use crate::family::circuit_switch::demanded::{self, DemandLines};
use crate::family::circuit_switch::{CircuitSwitch, FirstSetting, Forwarding};
use crate::units::{Bytes, Time, UnitError};

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
        alive: AlivePorts::new(switch, collective),
    };
    if switch.beside_rate.is_some() {
        return Ok(TimeBound {
            time: asked.with_network(charge)?,
            name: "bandwidth",
            assumption: "no port is faster than its rate, neither of the switch nor beside it",
        });
    }
    let mut least: Option<Time> = None;
    for settings in 1..=ranks {
        let (charged, time) = asked.with_settings(settings, charge)?;
        least = Some(least.map_or(time, |least| least.min(time)));
        // More settings cost more than the best so far.
        if charge == Charge::Never || Some(charged) >= least {
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
    alive: AlivePorts,
}

impl Asked<'_> {
    /// What so many settings cost, and the least time with them.
    fn with_settings(&self, settings: u64, charge: Charge) -> Result<(Time, Time), UnitError> {
        let most = growth(self.reached, self.ports);
        let change = self.switch.reconfiguration.time()?;
        let paid = match self.switch.first_setting {
            FirstSetting::Free => change.times(settings - 1)?,
            FirstSetting::Charged => change.times(settings)?,
        };
        let ordered = |hops: u64| ordered(hops, settings).saturating_mul(power(self.ports, hops));
        match charge {
            Charge::Never => {
                let all = |_| u128::from(self.ranks);
                Ok((Time::ZERO, self.together(1, most, all)?))
            }
            // Each slot has a setting.
            Charge::EverySlot => {
                let (slots, hops) = match self.switch.forwarding {
                    Forwarding::Store => (settings.max(most), settings.max(most)),
                    Forwarding::CutThrough => (settings, self.hops(settings).unwrap_or(most)),
                };
                let paid = change.times(slots)?;
                let time = self.together(slots, hops, ordered)?;
                Ok((paid, paid.plus(time)?))
            }
            Charge::ChangedPort | Charge::ChangedPlane => {
                Ok((paid, paid.max(self.one_by_one(settings)?)))
            }
            _ => {
                let hops = self.hops(settings).unwrap_or(most);
                let time = self.together(settings, hops, ordered)?;
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

    /// The fewest hops to the farthest rank with so many settings.
    fn hops(&self, settings: u64) -> Option<u64> {
        phases::least_slots(self.reached, settings, |hops| within(self.ports, hops))
    }

    /// Start-up, the latencies of so many slots with so many hops to the farthest rank, and bytes; `ways` are those of so many
    /// hops from a rank.
    fn together(
        &self,
        slots: u64,
        hops: u64,
        ways: impl Fn(u64) -> u128,
    ) -> Result<Time, UnitError> {
        let far = self.switch.latency.times(hops)?;
        let sent = self.sending(ways)?;
        let passed = match self.switch.forwarding {
            Forwarding::Store => far.plus(sent)?,
            Forwarding::CutThrough => far.max(self.switch.latency.times(slots)?.plus(sent)?),
        };
        self.switch.startup.plus(passed)
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
        let rate = u128::from(self.switch.rate.bits_per_second());
        let (collective, size) = (self.collective, self.size);
        let ranks = u128::from(self.ranks);
        let beside = self.switch.bits_beside();
        let all = rate * self.alive.all + ranks * beside;
        if let Some(demanded) = &self.demanded {
            let of_one = over(demanded.largest(), rate * u128::from(self.ports) + beside)?;
            return Ok(of_one.max(over(demanded.hops(&ways), all)?));
        }
        let together = match collective.kind() {
            CollectiveKind::AllToAll => {
                let block = u128::from(size.get()) / ranks;
                over(ranks * block * hops(ranks - 1, ways), all)?
            }
            CollectiveKind::AllReduce => over(2 * (ranks - 1) * u128::from(size.get()), all)?,
            _ => Time::ZERO,
        };
        let of_one = |is_root: bool| {
            let ports = self.alive.of_one[usize::from(is_root)];
            over(
                crossing(collective, size, 1, is_root),
                rate * ports + beside,
            )
        };
        Ok(together.max(of_one(true)?).max(of_one(false)?))
    }
}

/// Ports that work.
struct AlivePorts {
    /// Of all ranks together.
    all: u128,
    /// The fewest of a rank that is not the root, and those of the root.
    of_one: [u128; 2],
}

impl AlivePorts {
    fn new(switch: &CircuitSwitch, collective: &Collective) -> AlivePorts {
        let (ranks, root) = (collective.ranks(), collective.root());
        let mut dead: FxHashMap<u32, u32> = FxHashMap::default();
        for port in switch.dead_ports.iter().filter(|port| port.rank < ranks) {
            *dead.entry(port.rank).or_default() += 1;
        }
        let all = u128::from(ranks) * u128::from(switch.ports);
        let of_others = dead.iter().filter(|(rank, _)| **rank != root);
        let most = of_others.map(|(_, dead)| *dead).max().unwrap_or(0);
        let of_root = dead.get(&root).copied().unwrap_or(0);
        let alive = |dead: u32| u128::from(switch.ports - dead);
        AlivePorts {
            all: all - dead.values().map(|dead| u128::from(*dead)).sum::<u128>(),
            of_one: [alive(most), alive(of_root)],
        }
    }
}

/// The least sum of hops to so many ranks, where `ways` is how many at most are so many hops away.
pub fn hops(ranks: u128, ways: impl Fn(u64) -> u128) -> u128 {
    let (mut left, mut all, mut far) = (ranks, 0, 0);
    while left > 0 {
        far += 1;
        let here = ways(far).clamp(1, left);
        all += here * u128::from(far);
        left -= here;
    }
    all
}

/// C(h + p - 1, h): in how many ways h hops have p settings in their order, as far as 128 bits hold it.
pub fn ordered(hops: u64, settings: u64) -> u128 {
    let fewer = hops.min(settings - 1);
    let all = u128::from(hops) + u128::from(settings) - 1;
    let mut ways = 1u128;
    for one in 1..=u128::from(fewer) {
        let Some(product) = ways.checked_mul(all - u128::from(fewer) + one) else {
            return u128::MAX;
        };
        ways = product / one;
    }
    ways
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

fn power(base: u64, exponent: u64) -> u128 {
    u128::from(base).saturating_pow(u32::try_from(exponent).unwrap_or(u32::MAX))
}
