//! The policy `per_port`: no barriers, only ports whose circuit changes wait.
//!
//! Transfers keep the order of their slots wherever they share something; otherwise each starts as
//! early as it can. Transfer t from u to v over channel c starts at the latest of
//!
//! * the arrival at u of every chunk it carries (from earlier steps of the schedule);
//! * where contributions combine: the start of every transfer of an earlier step that reads what
//!   t changes;
//! * F + R, with F the time from which c is free on every link of its path and its transmitter at
//!   u and receiver at v are free, and R the reconfiguration delay if either was set to another
//!   circuit before (or to none), else zero.
//!
//! A transmitter or receiver is the ring resonator of one channel of a rank, unless the fabric
//! limits ports: then a rank has that many tunable ones, and takes one that is set to the circuit
//! already, else the one that is free first.

use rustc_hash::FxHashMap;

use super::{Ledger, Slots, Timing};
use crate::fabric::{Direction, WdmRing};
use crate::outcome::{Critical, SlotColumns};
use crate::plan::Plan;
use crate::simulate::{Policy, SimulationError};
use crate::units::Time;

/// Something that became free, or a chunk that arrived, with the transfer that made it so.
#[derive(Debug, Clone, Copy, Default)]
struct Since {
    time: Time,
    transfer: Option<u32>,
}

impl Since {
    fn later(self, other: Since) -> Since {
        if other.time > self.time { other } else { self }
    }
}

/// What a port is set to, and since when it is free.
#[derive(Debug, Clone, Copy)]
struct Port {
    circuit: (u32, u32, u32),
    free: Since,
}

/// The transmitters or the receivers of all ranks.
struct Ports {
    per_rank: Option<usize>,
    ports: FxHashMap<u64, Vec<Port>>,
}

impl Ports {
    /// Finds the port for a circuit `(rank, far end, channel)`: its key, its place (perhaps one
    /// past the last: a port not used yet), and since when it is free.
    fn find(&self, circuit: (u32, u32, u32)) -> (u64, usize, Since, bool) {
        let (rank, _, channel) = circuit;
        let (key, most) = match self.per_rank {
            Some(most) => (u64::from(rank), most),
            None => (u64::from(rank) << 32 | u64::from(channel), 1),
        };
        let ports = self.ports.get(&key).map_or(&[][..], Vec::as_slice);
        if let Some(place) = ports.iter().position(|port| port.circuit == circuit) {
            return (key, place, ports[place].free, false);
        }
        if ports.len() < most {
            return (key, ports.len(), Since::default(), true);
        }
        let (place, port) = ports
            .iter()
            .enumerate()
            .min_by_key(|(_, port)| port.free.time)
            .expect("a full set of ports is not empty");
        (key, place, port.free, true)
    }

    fn set(&mut self, key: u64, place: usize, port: Port) {
        let ports = self.ports.entry(key).or_default();
        match ports.get_mut(place) {
            Some(old) => *old = port,
            None => ports.push(port),
        }
    }
}

/// A transfer of the current step, timed but not yet entered into what later steps see.
struct Started {
    transfer: u32,
    begin: Time,
    start: Time,
    end: Time,
}

pub(super) fn run(
    plan: &Plan,
    ring: &WdmRing,
    slots: &Slots,
    ledger: &mut Ledger<'_>,
) -> Result<Timing, SimulationError> {
    if ring.converters {
        return Err(SimulationError::Policy {
            simulator: "circuit",
            policy: Policy::PerPort.name(),
            reason: "with converters a lightpath has no wavelength of its own; use on_change",
        });
    }
    let schedule = &plan.schedule;
    let combines = schedule.collective.combines();
    let mut arrived: FxHashMap<(u32, u32), Since> = FxHashMap::default();
    let mut read: FxHashMap<(u32, u32), Since> = FxHashMap::default();
    let channels = ring.channels() as usize;
    let mut links = vec![Since::default(); 2 * channels * ring.ranks as usize];
    let ports = || Ports {
        per_rank: ring.ports.map(|ports| ports as usize),
        ports: FxHashMap::default(),
    };
    let (mut transmitters, mut receivers) = (ports(), ports());
    let mut ends = vec![(Time::ZERO, Time::ZERO, None); plan.len()];
    let mut columns = SlotColumns::default();
    let mut step_ends = plan.step_slots.iter().map(|slots| slots.end).peekable();
    let mut started: Vec<Started> = Vec::new();
    for slot in 0..plan.slots() {
        let first = started.len();
        let mut waited = Time::ZERO;
        for &transfer in slots.of_slot(slot) {
            let index = transfer as usize;
            let moved = schedule.transfer(index);
            let (source, destination) = (moved.source, moved.destination);
            let circuit = plan.circuit(index);
            let way = circuit.direction as usize;
            let channel = u32::from(circuit.fibre) * ring.wavelengths + u32::from(circuit.wavelength);
            let row = (way * channels + channel as usize) * ring.ranks as usize;
            let path = path(ring, source, destination, circuit.direction).map(|link| row + link);
            let name = way as u32 * channels as u32 + channel;
            let (sender_key, sender, sender_free, sender_changes) =
                transmitters.find((source, destination, name));
            let (receiver_key, receiver, receiver_free, receiver_changes) =
                receivers.find((destination, source, name));
            let free = path
                .clone()
                .map(|link| links[link])
                .fold(sender_free.later(receiver_free), Since::later);
            let retune = if sender_changes || receiver_changes {
                waited = ring.reconfiguration;
                ring.reconfiguration
            } else {
                Time::ZERO
            };
            let mut ready = Since { time: free.time.plus(retune)?, transfer: free.transfer };
            for chunk in moved.chunk..moved.chunk + moved.count {
                if let Some(&since) = arrived.get(&(source, chunk)) {
                    ready = ready.later(since);
                }
                if let Some(&since) = read.get(&(destination, chunk)).filter(|_| combines) {
                    ready = ready.later(since);
                }
            }
            let start = ready.time;
            let end = start.plus(ledger.enter(index)?)?;
            ledger.finish(index, end);
            let cause = ready.transfer;
            ends[index] = (start, end, cause);
            let since = Since { time: end, transfer: Some(transfer) };
            path.for_each(|link| links[link] = since);
            let port = |circuit| Port { circuit, free: since };
            transmitters.set(sender_key, sender, port((source, destination, name)));
            receivers.set(receiver_key, receiver, port((destination, source, name)));
            let begin = cause.map_or(Time::ZERO, |cause| ends[cause as usize].1).min(start);
            started.push(Started { transfer, begin, start, end });
        }
        let previous = columns.end.last().copied().unwrap_or(Time::ZERO);
        let of_slot = &started[first..];
        columns.start.push(of_slot.iter().map(|one| one.begin).min().unwrap_or(previous));
        columns.end.push(of_slot.iter().map(|one| one.end).max().unwrap_or(previous));
        columns.reconfiguration.push(waited);
        columns.lightpaths.push(of_slot.len() as u64);
        if step_ends.next_if(|&end| end <= slot + 1).is_none() {
            continue;
        }
        // Steps without slots end where the one before does.
        while step_ends.next_if(|&end| end <= slot + 1).is_some() {}
        for Started { transfer, start, end, .. } in started.drain(..) {
            let moved = schedule.transfer(transfer as usize);
            for chunk in moved.chunk..moved.chunk + moved.count {
                let later = |entry: &mut Since, time: Time| {
                    *entry = entry.later(Since { time, transfer: Some(transfer) });
                };
                later(arrived.entry((moved.destination, chunk)).or_default(), end);
                if combines {
                    later(read.entry((moved.source, chunk)).or_default(), start);
                }
            }
        }
    }
    Ok(Timing { slots: columns, critical_path: critical_path(&ends) })
}

/// The links of a path, by the lower of the ranks they join.
fn path(
    ring: &WdmRing,
    source: u32,
    destination: u32,
    direction: Direction,
) -> impl Iterator<Item = usize> + Clone + use<> {
    let first = match direction {
        Direction::Clockwise => source,
        Direction::CounterClockwise => destination,
    };
    let ranks = ring.ranks;
    (first..first + ring.hops(source, destination, direction)).map(move |link| (link % ranks) as usize)
}

/// Back from the transfer that ends last, cause by cause.
fn critical_path(ends: &[(Time, Time, Option<u32>)]) -> Vec<Critical> {
    let last = (0..ends.len()).rev().max_by_key(|&index| ends[index].1);
    let mut path = Vec::new();
    let mut next = last;
    while let Some(transfer) = next {
        let (start, end, cause) = ends[transfer];
        let begin = cause.map_or(Time::ZERO, |cause| ends[cause as usize].1.min(start));
        path.push(Critical { transfer, start: begin, end });
        next = cause.map(|cause| cause as usize);
    }
    path.reverse();
    path
}
