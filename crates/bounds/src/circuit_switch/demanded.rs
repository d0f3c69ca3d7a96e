//! Lower bounds for an all_to_all whose blocks differ (theorem C4).
//!
//! A *line* of the demand is all data that one rank sends, or all data that one rank receives: k
//! pairs of ranks with m bytes in total. A rank has d working ports of rate B. R is the
//! reconfiguration time, alpha is the start-up time of a message, and delta is the latency of a
//! circuit.
//!
//! **Any plan.** In the bound `configurations` ([`super`]), k + 1 replaces n. The bound assumes
//! that the largest blocks make the fewest hops. A rank may send all its data to one other rank
//! that relays them, so that the number of its partners does not bound the number of its
//! configurations.
//!
//! **Plans without relays.** Each pair of a line has a circuit of its own. If ports, or planes,
//! change one by one, T >= alpha + delta + (m / B + max(0, k - c) R) / d. c is d if the first
//! configurations are free, and 0 otherwise. If the whole switch changes at once, T >= K (alpha +
//! delta) + (K - 1) R + m / (d B) with K = ceil(k / d). K R replaces (K - 1) R if the first
//! configuration, or every slot, is charged.

use crate::{TimeBound, transmission_time};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::circuits::ReconfigurationCharge;
use opticoll_fabric::family::circuit_switch::{CircuitSwitch, FirstConfiguration};
use opticoll_plan::collective::Collective;

/// Lines of a demand: of each sender, and of each receiver. A line has the bytes of all pairs of
/// its sender or receiver, in falling order.
pub struct DemandLines {
    lines: [Vec<Vec<u128>>; 2],
}

impl DemandLines {
    /// Returns the lines of the demand of `collective` at the size `size`.
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

    /// Returns the greatest time of a line: its bytes over the working ports of its rank and over
    /// the network beside the switch. Fails if a time exceeds 64 bits of picoseconds.
    pub fn slowest(&self, switch: &CircuitSwitch) -> Result<Time, UnitError> {
        let mut slowest = Time::ZERO;
        for (rank, line) in self.ranks_and_lines() {
            slowest = slowest.max(transmission_time(
                line.iter().sum(),
                rank_rate(switch, rank),
            )?);
        }
        Ok(slowest)
    }

    fn ranks_and_lines(&self) -> impl Iterator<Item = (u32, &Vec<u128>)> {
        self.lines.iter().flat_map(|lines| (0..).zip(lines))
    }

    /// Returns the least sum, over all blocks, of bytes times hops. At most `routes(h)` ranks are h
    /// hops away from a rank.
    pub fn hops(&self, routes: impl Fn(u64) -> u128) -> u128 {
        let together = |lines: &Vec<Vec<u128>>| -> u128 {
            lines.iter().map(|line| line_hops(line, &routes)).sum()
        };
        self.lines.iter().map(together).max().unwrap_or(0)
    }
}

/// Returns the greatest bound on plans in which no rank relays. `None` if no switch joins some pair
/// with data, so that every plan needs relays. Fails if a time exceeds 64 bits of picoseconds.
pub fn direct(
    switch: &CircuitSwitch,
    collective: &Collective,
    size: Bytes,
    charge: ReconfigurationCharge,
) -> Result<Option<TimeBound>, UnitError> {
    let needs_circuit = |from, to| from != to && switch.packet_rate.is_none();
    let mut pairs = collective.demanded(size);
    if pairs.any(|(from, to, _)| needs_circuit(from, to) && !switch.joins([from, to])) {
        return Ok(None);
    }
    let mut most = Time::ZERO;
    let lines = DemandLines::of(collective, size);
    for (rank, line) in lines.ranks_and_lines().filter(|(_, line)| !line.is_empty()) {
        most = most.max(line_time(switch, rank, line, charge)?);
    }
    Ok(Some(TimeBound {
        time: most,
        name: "direct",
        assumption: "no rank relays: each pair of ranks that sends anything has a circuit of its \
                     own",
    }))
}

/// Returns the rate of the working ports of `rank` and of the network beside the switch, in bit/s.
fn rank_rate(switch: &CircuitSwitch, rank: u32) -> u128 {
    switch.bits_of_ports(rank) + switch.bits_beside()
}

/// Returns the bound of one line on plans without relays. `line` has the bytes of its pairs.
fn line_time(
    switch: &CircuitSwitch,
    rank: u32,
    line: &[u128],
    charge: ReconfigurationCharge,
) -> Result<Time, UnitError> {
    let (ports, pairs) = (u64::from(switch.ports_alive(rank)), line.len() as u64);
    let change = switch.reconfiguration.time()?;
    let is_free = switch.first_configuration == FirstConfiguration::Free;
    let delays = switch.startup.plus(switch.latency)?;
    let sending = transmission_time(line.iter().sum(), rank_rate(switch, rank))?;
    if switch.packet_rate.is_some() {
        return delays.min(switch.packet_latency).plus(sending);
    }
    let settings = pairs.div_ceil(ports);
    let changes = match charge {
        ReconfigurationCharge::Never => 0,
        ReconfigurationCharge::ChangedPort | ReconfigurationCharge::ChangedPlane => {
            let charged = pairs.saturating_sub(if is_free { ports } else { 0 });
            let waiting = Time::from_ps(change.times(charged)?.ps() / ports);
            return delays.plus(waiting)?.plus(sending);
        }
        ReconfigurationCharge::EverySlot => settings,
        _ => settings - u64::from(is_free),
    };
    delays
        .times(settings)?
        .plus(change.times(changes)?)?
        .plus(sending)
}

/// Returns the least sum, over the blocks of one rank, of bytes times hops. `line` has the bytes of
/// the blocks in falling order, and at most `routes(h)` ranks are h hops away.
fn line_hops(line: &[u128], routes: impl Fn(u64) -> u128) -> u128 {
    let (mut remaining, mut total, mut hops) = (line, 0, 0);
    while !remaining.is_empty() {
        hops += 1;
        let count = routes(hops).clamp(1, remaining.len() as u128) as usize;
        total += remaining[..count].iter().sum::<u128>() * u128::from(hops);
        remaining = &remaining[count..];
    }
    total
}
