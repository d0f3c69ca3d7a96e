//! Ranks that each switch of a plane joins, and dead or degraded ports.
//!
//! **Switches with few ports.** If a switch joins only k of n ranks, a plane consists of several
//! switches. A rank number has D digits in base k. On plane p, a switch joins the ranks that differ
//! only in digit p modulo D. For D = 2, one plane joins rows of ranks, and the next plane joins
//! columns. D planes connect all ranks, because a route can change one digit after another. The
//! route first sets all digits to zero, from the highest digit down. Then the route sets the digits
//! of the destination, from the lowest digit up. No rank number on this route exceeds n - 1.

use std::collections::VecDeque;
use std::fmt;

use rustc_hash::FxHashSet;

use super::CircuitSwitch;
use crate::fabric::{FabricError, part};
use opticoll_base::interrupt;
use opticoll_base::names::{plural, terminal_text};
use opticoll_base::spec::{Spec, SpecError, whole_number};
use opticoll_base::units::Rate;

/// Port of a rank, written `3.0` for port 0 of rank 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RankPort {
    /// Rank that has the port.
    pub rank: u32,
    /// Index of the port at this rank.
    pub port: u32,
}

impl fmt::Display for RankPort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.rank, self.port)
    }
}

/// Parses the option `dead_ports`, such as `3.0+5.1`. The result is sorted and has no duplicates.
pub(super) fn read_dead_ports(
    spec: &Spec,
    ranks: u32,
    ports: u32,
) -> Result<Vec<RankPort>, SpecError> {
    let Some(text) = spec.option("dead_ports") else {
        return Ok(Vec::new());
    };
    let dead = text.split('+');
    let dead = dead.map(|part| read_port(spec, "dead_ports", part, (ranks, ports)));
    let mut dead: Vec<RankPort> = dead.collect::<Result<_, SpecError>>()?;
    dead.sort_unstable();
    dead.dedup();
    Ok(dead)
}

/// Parses a port such as `3.0` in the value of the option that is called `option`.
fn read_port(
    spec: &Spec,
    option: &str,
    text: &str,
    (ranks, ports): (u32, u32),
) -> Result<RankPort, SpecError> {
    let port = text.split_once('.').and_then(|(rank, port)| {
        let rank = whole_number(rank).filter(|rank| *rank < ranks)?;
        let port = whole_number(port).filter(|port| *port < ports)?;
        Some(RankPort { rank, port })
    });
    port.ok_or_else(|| {
        let problem = format!(
            "`{}` is not a port of {ranks} ranks with {ports} ports each, counted from 0; write \
             3.0 (port \
             0 of rank 3)",
            terminal_text(text)
        );
        spec.refuse(option, problem)
    })
}

/// Parses the option `degraded`, such as `3.0@100Gb/s+5.1@50Gb/s`. Returns the ports with their
/// reduced rates, sorted by port.
pub(super) fn read_degraded(
    spec: &Spec,
    counts: (u32, u32),
    full: Rate,
) -> Result<Vec<(RankPort, Rate)>, SpecError> {
    let slower = part::read_degraded(spec, |name| {
        Ok((read_port(spec, "degraded", name, counts)?, full))
    })?;
    Ok(part::slowest_first(slower))
}

/// Formats degraded ports such that [`read_degraded`] parses them.
pub(super) fn print_degraded(degraded: &[(RankPort, Rate)]) -> String {
    part::joined(degraded, |(port, rate)| format!("{port}@{rate}"))
}

/// Formats dead ports such that [`read_dead_ports`] parses them.
pub(super) fn print_dead_ports(dead: &[RankPort]) -> String {
    part::joined(dead, RankPort::to_string)
}

impl CircuitSwitch {
    /// Returns the number of ports that each rank has on each plane.
    pub fn ports_of_plane(&self) -> u32 {
        self.ports / self.planes
    }

    /// Returns the maximum number of ranks that a switch joins, k.
    pub fn ranks_of_switch(&self) -> u32 {
        (self.switch_ports / self.ports_of_plane()).clamp(1, self.ranks)
    }

    /// Returns whether each plane is one switch.
    pub fn is_one_switch(&self) -> bool {
        self.ranks_of_switch() == self.ranks
    }

    /// Returns D >= 1, the number of digits of rank numbers in base
    /// [`CircuitSwitch::ranks_of_switch`].
    pub fn digits(&self) -> u32 {
        let base = self.ranks_of_switch().max(2);
        let mut digits = 1;
        let mut remaining = (self.ranks - 1) / base;
        while remaining > 0 {
            digits += 1;
            remaining /= base;
        }
        digits
    }

    /// Returns the difference of two rank numbers that differ by 1 in the digit of `plane` (module
    /// header) and agree in all other digits.
    fn digit_step(&self, plane: u32) -> u32 {
        self.ranks_of_switch().pow(plane % self.digits())
    }

    /// Returns the lowest rank at the switch of `plane` to which `rank` is connected.
    pub fn lowest_on_switch(&self, plane: u32, rank: u32) -> u32 {
        if self.is_one_switch() {
            return 0;
        }
        let step = self.digit_step(plane);
        rank - rank / step % self.ranks_of_switch() * step
    }

    /// Returns all ranks at the switch of `plane` to which `rank` is connected, in ascending order.
    pub fn ranks_on_switch(&self, plane: u32, rank: u32) -> impl Iterator<Item = u32> + use<> {
        let step = match self.is_one_switch() {
            true => 1,
            false => self.digit_step(plane),
        };
        let first = self.lowest_on_switch(plane, rank);
        let ranks = u64::from(self.ranks);
        (0..u64::from(self.ranks_of_switch()))
            .map(move |place| u64::from(first) + place * u64::from(step))
            .take_while(move |rank| *rank < ranks)
            .map(|rank| rank as u32)
    }

    /// Returns the number of switches of all planes.
    pub fn switch_count(&self) -> u64 {
        if self.is_one_switch() {
            return self.planes.into();
        }
        // Planes with the same digit have the same switches.
        let switches = |plane: &u32| {
            let lowest = |rank: &u32| self.lowest_on_switch(*plane, *rank) == *rank;
            let with_this_digit = (self.planes - 1 - plane) / self.digits() + 1;
            (0..self.ranks).filter(lowest).count() as u64 * u64::from(with_this_digit)
        };
        let digits = 0..self.planes.min(self.digits());
        digits.map(|plane| switches(&plane)).sum()
    }

    /// Returns a number that identifies the switch at port `port` of `rank`.
    pub(super) fn switch_number(&self, rank: u32, port: u32) -> u32 {
        let plane = port / self.ports_of_plane();
        plane * self.ranks + self.lowest_on_switch(plane, rank)
    }

    /// Returns the rate of each rank's port to the packet network, in bits per second. Returns 0 if
    /// there is no such network.
    pub fn bits_beside(&self) -> u128 {
        let rate = self.packet_rate.map(|rate| rate.bits_per_second());
        rate.unwrap_or(0).into()
    }

    /// Returns whether port `port` of `rank` works.
    pub fn is_alive(&self, rank: u32, port: u32) -> bool {
        let place = RankPort { rank, port };
        self.dead_ports.is_empty() || self.dead_ports.binary_search(&place).is_err()
    }

    /// Returns the number of working ports of `rank` in the range `ports`.
    fn alive_among(&self, rank: u32, ports: std::ops::Range<u32>) -> u32 {
        let before = |port: u32| {
            let end = RankPort { rank, port };
            self.dead_ports.partition_point(|dead| *dead < end) as u32
        };
        ports.end - ports.start - (before(ports.end) - before(ports.start))
    }

    /// Returns the number of working ports of `rank`.
    pub fn ports_alive(&self, rank: u32) -> u32 {
        self.alive_among(rank, 0..self.ports)
    }

    /// Returns the rate of port `port` of `rank`.
    pub fn rate_of(&self, rank: u32, port: u32) -> Rate {
        let place = RankPort { rank, port };
        let slower = self
            .degraded
            .binary_search_by_key(&place, |(port, _)| *port);
        slower.map_or(self.rate, |index| self.degraded[index].1)
    }

    /// Returns the total rate of all working ports of `rank`, in bits per second.
    pub fn bits_of_ports(&self, rank: u32) -> u128 {
        let lowest = RankPort { rank, port: 0 };
        let first = self.degraded.partition_point(|(port, _)| *port < lowest);
        let slower = self.degraded[first..].iter();
        let slower = slower.take_while(|(port, _)| port.rank == rank);
        let alive = slower.filter(|(port, _)| self.is_alive(rank, port.port));
        let full = u128::from(self.rate.bits_per_second());
        let lost: u128 = alive
            .map(|(_, rate)| full - u128::from(rate.bits_per_second()))
            .sum();
        full * u128::from(self.ports_alive(rank)) - lost
    }

    /// Returns the switch with all ports at full rate. Also returns the switch without the degraded
    /// ports if circuits still connect all ranks. Returns an empty list if no port is degraded.
    pub(super) fn undegraded_switches(&self) -> Vec<CircuitSwitch> {
        if self.degraded.is_empty() {
            return Vec::new();
        }
        let mut at_full_rate = self.clone();
        let slower = std::mem::take(&mut at_full_rate.degraded);
        let mut without_slower = at_full_rate.clone();
        without_slower
            .dead_ports
            .extend(slower.into_iter().map(|(port, _)| port));
        without_slower.dead_ports.sort_unstable();
        without_slower.dead_ports.dedup();
        let is_left = without_slower.stranded().is_none();
        std::iter::once(at_full_rate)
            .chain(is_left.then_some(without_slower))
            .collect()
    }

    /// Returns the number of working ports of `rank` on `plane`.
    pub fn ports_alive_on(&self, plane: u32, rank: u32) -> u32 {
        let ports_of_plane = self.ports_of_plane();
        self.alive_among(rank, plane * ports_of_plane..(plane + 1) * ports_of_plane)
    }

    /// Returns whether a switch of `plane` can join rank `from` to rank `to`.
    pub fn joins_on(&self, plane: u32, [from, to]: [u32; 2]) -> bool {
        self.lowest_on_switch(plane, from) == self.lowest_on_switch(plane, to)
            && self.ports_alive_on(plane, from) > 0
            && self.ports_alive_on(plane, to) > 0
    }

    /// Returns whether any switch can join the two ranks in `ends`.
    pub fn joins(&self, ends: [u32; 2]) -> bool {
        if self.is_one_switch() && self.dead_ports.is_empty() {
            return true;
        }
        (0..self.planes).any(|plane| self.joins_on(plane, ends))
    }

    /// Returns the lowest rank that rank 0 cannot reach over circuits and relay ranks, or `None` if
    /// rank 0 reaches all ranks.
    fn stranded(&self) -> Option<u32> {
        let mut is_reached = vec![false; self.ranks as usize];
        is_reached[0] = true;
        let mut open = VecDeque::from([0]);
        // The set is never iterated over, so its order does not matter.
        let mut seen: FxHashSet<(u32, u32)> = FxHashSet::default();
        while let Some(rank) = open.pop_front() {
            interrupt::check();
            for plane in 0..self.planes {
                let switch = (plane, self.lowest_on_switch(plane, rank));
                if self.ports_alive_on(plane, rank) == 0 || !seen.insert(switch) {
                    continue;
                }
                for other in self.ranks_on_switch(plane, rank) {
                    if !is_reached[other as usize] && self.ports_alive_on(plane, other) > 0 {
                        is_reached[other as usize] = true;
                        open.push_back(other);
                    }
                }
            }
        }
        let stranded = is_reached.iter().position(|is_reached| !is_reached);
        stranded.map(|rank| rank as u32)
    }

    /// Checks that circuits connect all ranks, possibly over relay ranks.
    ///
    /// # Errors
    /// The switches have too few ports, or dead ports disconnect a rank.
    pub(super) fn reaches_all(&self, spec: &Spec) -> Result<(), FabricError> {
        if self.ranks == 1 {
            return Ok(());
        }
        let ports_of_plane = self.ports_of_plane();
        if self.ranks_of_switch() < 2 {
            let rule = format!(
                "must be {} or more, for two ranks on each switch",
                2 * ports_of_plane
            );
            return Err(spec.refuse("switch_ports", rule).into());
        }
        let (joined, digits) = (self.ranks_of_switch(), self.digits());
        if digits > self.planes {
            let rule = format!(
                "leaves ranks unconnected: switches of {joined} ranks each need \
                 planes={digits} or more for {} ranks, not planes={}",
                self.ranks, self.planes
            );
            return Err(spec.refuse("switch_ports", rule).into());
        }
        let Some(rank) = (!self.dead_ports.is_empty())
            .then(|| self.stranded())
            .flatten()
        else {
            return Ok(());
        };
        let rule =
            format!("leaves no circuits from rank 0 to rank {rank}, not even over other ranks");
        Err(spec.refuse("dead_ports", rule).into())
    }

    /// Describes the planes, the switches of each plane, and the ports that each switch needs.
    pub(super) fn switch_words(&self) -> String {
        let ranks = u64::from(self.ranks);
        let switches_of_plane = |plane: u32| match self.is_one_switch() {
            true => 1,
            false => {
                let below = u64::from(self.digit_step(plane));
                let period = below * u64::from(self.ranks_of_switch());
                ranks / period * below + (ranks % period).min(below)
            }
        };
        let mut planes = (0..self.planes).map(switches_of_plane);
        let first = planes.next().unwrap_or(1);
        let needs = plural(
            (self.ranks_of_switch() * self.ports_of_plane()) as usize,
            "port",
        );
        let count = plural(self.planes as usize, "plane");
        if planes.clone().all(|switches| switches == first) {
            let switches = match first {
                1 => "a switch".to_owned(),
                _ => format!("{first} switches"),
            };
            return format!("{count} of {switches} with {needs}");
        }
        let each: Vec<String> = std::iter::once(first)
            .chain(planes)
            .map(|switches| switches.to_string())
            .collect();
        format!("{count} of {} switches with {needs}", each.join("+"))
    }
}
