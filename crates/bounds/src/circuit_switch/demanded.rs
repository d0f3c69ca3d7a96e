//! Lower bounds for an all_to_all whose blocks differ (theorem C4).
//!
//! A *line* is what one rank sends to others, or what it receives from others: of k pairs, m bytes
//! together. A rank has d ports of rate B that work; R is the reconfiguration, alpha and delta are
//! the delays of a message and of a circuit.
//!
//! **Any plan.** In the bound `settings` ([`super`]) k + 1 takes the place of n, and the largest
//! blocks take the fewest hops. A rank may send all to one other that relays it, so that the pairs
//! of its line do not bound its settings.
//!
//! **Plans without relays.** Each pair of a line has a circuit of its own. With ports, or planes,
//! that change one by one, T >= alpha + delta + (m / B + (k - c) R) / d, with c = d where the
//! first settings are free, else 0. Where the whole switch changes at once, T >= K (alpha +
//! delta) + (K - 1) R + m / (d B) with K = ceil(k / d), and K R where the first setting is
//! charged, or every slot.

use crate::{TimeBound, over};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::circuits::Charge;
use opticoll_fabric::family::circuit_switch::{CircuitSwitch, FirstSetting};
use opticoll_plan::collective::Collective;

/// The bound of a demand in which no rank sends to another.
pub(super) const NOTHING: TimeBound = TimeBound {
    time: Time::ZERO,
    name: "settings",
    assumption: "no rank sends anything to another",
};

/// The bytes of the pairs of each line, the most first: of all senders, then of all receivers.
pub struct DemandLines {
    lines: [Vec<Vec<u128>>; 2],
}

impl DemandLines {
    /// The lines of a collective with a demand, at a size.
    pub fn of(collective: &Collective, size: Bytes) -> DemandLines {
        let mut lines = [0, 1].map(|_| vec![Vec::new(); collective.ranks() as usize]);
        for (source, destination, bytes) in collective.demanded(size) {
            if source != destination {
                lines[0][source as usize].push(bytes);
                lines[1][destination as usize].push(bytes);
            }
        }
        for line in lines.iter_mut().flatten() {
            line.sort_unstable_by(|one, other| other.cmp(one));
        }
        DemandLines { lines }
    }

    fn all(&self) -> impl Iterator<Item = &Vec<u128>> {
        self.lines.iter().flatten()
    }

    /// The most ranks that a rank sends to or receives from, itself included.
    pub fn reached(&self) -> u64 {
        1 + self.all().map(|line| line.len() as u64).max().unwrap_or(0)
    }

    /// The time of the line that takes longest over the working ports of its rank, and the network beside the switch.
    ///
    /// # Errors
    /// A time beyond 64 bits of picoseconds.
    pub fn slowest(&self, switch: &CircuitSwitch) -> Result<Time, UnitError> {
        let mut slowest = Time::ZERO;
        for (rank, line) in self.by_rank() {
            slowest = slowest.max(over(line.iter().sum(), rate_of(switch, rank))?);
        }
        Ok(slowest)
    }

    fn by_rank(&self) -> impl Iterator<Item = (u32, &Vec<u128>)> {
        self.lines.iter().flat_map(|lines| (0..).zip(lines))
    }

    /// The least bytes of all hops, where `ways` is how many ranks at most are so many hops away.
    pub fn hops(&self, ways: impl Fn(u64) -> u128) -> u128 {
        let together = |lines: &Vec<Vec<u128>>| -> u128 {
            lines.iter().map(|line| hops_of(line, &ways)).sum()
        };
        self.lines.iter().map(together).max().unwrap_or(0)
    }
}

/// The greatest bound of plans in which no rank relays; none where there are no such plans, for no switch joins a pair.
///
/// # Errors
/// A time beyond 64 bits of picoseconds.
pub fn direct(
    switch: &CircuitSwitch,
    collective: &Collective,
    size: Bytes,
    charge: Charge,
) -> Result<Option<TimeBound>, UnitError> {
    let needs_circuit = |from, to| from != to && switch.beside_rate.is_none();
    let mut pairs = collective.demanded(size);
    if pairs.any(|(from, to, _)| needs_circuit(from, to) && !switch.joins([from, to])) {
        return Ok(None);
    }
    let mut most = Time::ZERO;
    let lines = DemandLines::of(collective, size);
    for (rank, line) in lines.by_rank().filter(|(_, line)| !line.is_empty()) {
        most = most.max(of_line(switch, rank, line, charge)?);
    }
    Ok(Some(TimeBound {
        time: most,
        name: "direct",
        assumption: "no rank relays: each pair of ranks that sends anything has a circuit of its own",
    }))
}

/// What all ports of a rank that work send together, and the network beside the switch: bits per second.
fn rate_of(switch: &CircuitSwitch, rank: u32) -> u128 {
    switch.bits_of_ports(rank) + switch.bits_beside()
}

fn of_line(
    switch: &CircuitSwitch,
    rank: u32,
    line: &[u128],
    charge: Charge,
) -> Result<Time, UnitError> {
    let (ports, pairs) = (u64::from(switch.ports_alive(rank)), line.len() as u64);
    let change = switch.reconfiguration.time()?;
    let is_free = switch.first_setting == FirstSetting::Free;
    let delays = switch.startup.plus(switch.latency)?;
    let sending = over(line.iter().sum(), rate_of(switch, rank))?;
    if switch.beside_rate.is_some() {
        return delays.min(switch.beside_latency).plus(sending);
    }
    let settings = pairs.div_ceil(ports);
    let changes = match charge {
        Charge::Never => 0,
        Charge::ChangedPort | Charge::ChangedPlane => {
            let charged = pairs.saturating_sub(if is_free { ports } else { 0 });
            let waiting = Time::from_ps(change.times(charged)?.ps() / ports);
            return delays.plus(waiting)?.plus(sending);
        }
        Charge::EverySlot => settings,
        _ => settings - u64::from(is_free),
    };
    delays
        .times(settings)?
        .plus(change.times(changes)?)?
        .plus(sending)
}

/// The least bytes of all hops to ranks that are sent so many bytes each, the most first.
fn hops_of(line: &[u128], ways: impl Fn(u64) -> u128) -> u128 {
    let (mut left, mut all, mut far) = (line, 0, 0);
    while !left.is_empty() {
        far += 1;
        let here = ways(far).clamp(1, left.len() as u128) as usize;
        all += left[..here].iter().sum::<u128>() * u128::from(far);
        left = &left[here..];
    }
    all
}
