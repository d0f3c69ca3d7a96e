//! The policy `per_port`: no barriers, only ports whose circuit changes wait.
//!
//! Transfers keep the order of their slots wherever they share something; otherwise each starts as
//! early as it can. Transfer t from u to v over channel c starts at the latest of
//!
//! * the arrival at u of every chunk it carries (from earlier steps of the schedule);
//! * where contributions combine: the start of every transfer of an earlier step that reads what
//!   t changes, and the end of every one that changes it;
//! * F + R, with F the time from which c is free on every link of its path and its transmitter at
//!   u and receiver at v are free, and R the reconfiguration delay if either was set to another
//!   circuit before (or to none), else zero.
//!
//! A transmitter or receiver is the ring resonator of one channel of a rank, unless the fabric
//! limits ports: then a rank has that many tunable ones, and takes one that is set to the circuit
//! already, else the one that is free first. The transfers of a light tree start together, over one
//! transmitter and the receivers of all of them.
//!
//! A *period* Q below N says that the plan turned by Q ranks is the same plan, on the same channels,
//! and that only the transfers of Q ranks are given. What happens to rank, link and block v + Q then
//! happens to v at the same time, so that links and ports are kept modulo Q, and what ranks hold for
//! the blocks 0..Q only: rank v's of block b stands for rank v + Q's of block b + Q. Two circuits of a
//! port that are the same modulo Q are the same, for lengths are at most Q.

use rustc_hash::FxHashMap;

use super::Timing;
use super::ledger::Ledger;
use super::messages::{Messages, Slots};
use crate::family::wdm_ring::{Direction, WdmLight, WdmRing};
use crate::interrupt;
use crate::outcome::{Critical, SlotColumns};
use crate::plan::Plan;
use crate::schedule::Transfer;
use crate::simulate::SimulationError;
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

/// A port found for a circuit.
struct Found {
    /// The set of ports it belongs to, and its place there (one past the last: not used yet).
    key: u64,
    place: usize,
    free: Since,
    /// Whether it is set to another circuit, or to none.
    changes: bool,
}

impl Ports {
    /// Finds the port for a circuit `(rank, far end, channel)`.
    fn find(&self, circuit: (u32, u32, u32)) -> Found {
        let (rank, _, channel) = circuit;
        let (key, most) = match self.per_rank {
            Some(most) => (u64::from(rank), most),
            None => (u64::from(rank) << 32 | u64::from(channel), 1),
        };
        let ports = self.ports.get(&key).map_or(&[][..], Vec::as_slice);
        if let Some(place) = ports.iter().position(|port| port.circuit == circuit) {
            return Found {
                key,
                place,
                free: ports[place].free,
                changes: false,
            };
        }
        let unused = Found {
            key,
            place: ports.len(),
            free: Since::default(),
            changes: true,
        };
        if ports.len() < most {
            return unused;
        }
        let earliest = ports
            .iter()
            .enumerate()
            .min_by_key(|(_, port)| port.free.time);
        earliest.map_or(unused, |(place, port)| Found {
            key,
            place,
            free: port.free,
            changes: true,
        })
    }

    fn set(&mut self, found: Found, port: Port) {
        let ports = self.ports.entry(found.key).or_default();
        match ports.get_mut(found.place) {
            Some(old) => *old = port,
            None => ports.push(port),
        }
    }
}

/// When a transfer ran, and the transfer that it waited for last.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    start: Time,
    end: Time,
    cause: Option<u32>,
}

/// What transfers wait for.
struct Network<'a> {
    plan: &'a Plan,
    ring: &'a WdmRing,
    period: u32,
    /// When each chunk arrived at each rank, from earlier steps.
    arrived: FxHashMap<(u32, u32), Since>,
    /// When each chunk was last read at each rank, by earlier steps; where contributions combine.
    read: FxHashMap<(u32, u32), Since>,
    /// Since when each channel is free on each link.
    links: Vec<Since>,
    transmitters: Ports,
    receivers: Ports,
    messages: Messages<'a>,
    runs: Vec<Run>,
}

pub(super) fn run(
    plan: &Plan,
    ring: &WdmRing,
    period: u32,
    slots: &Slots,
    messages: Messages<'_>,
    ledger: &mut Ledger,
) -> Result<Timing, SimulationError> {
    let mut network = Network::new(plan, ring, period, messages);
    let mut columns = SlotColumns::default();
    let mut previous = Time::ZERO;
    for step in &plan.step_slots {
        for slot in step.clone() {
            interrupt::check();
            let mut retuned = Time::ZERO;
            let (mut start, mut end) = (None, None);
            let trees = network.messages.trees;
            let leaders = slots.of_slot(slot).iter().copied();
            let mut lightpaths = 0;
            for transfer in leaders.filter(|&transfer| trees.leads(transfer)) {
                interrupt::check();
                lightpaths += 1;
                let (began, retune) = network.start(transfer, ledger)?;
                retuned = retuned.max(retune);
                start = Some(start.map_or(began, |start: Time| start.min(began)));
                end = end.max(Some(network.runs[transfer as usize].end));
            }
            columns.start.push(start.unwrap_or(previous));
            columns.end.push(end.unwrap_or(previous));
            columns.reconfiguration.push(retuned);
            columns.lightpaths.push(lightpaths);
            previous = previous.max(end.unwrap_or(previous));
        }
        for slot in step.clone() {
            slots
                .of_slot(slot)
                .iter()
                .for_each(|&transfer| network.deliver(transfer));
        }
    }
    let charged = |time: &&Time| **time > Time::ZERO;
    Ok(Timing {
        reconfigurations: columns.reconfiguration.iter().filter(charged).count() as u64,
        slots: columns,
        critical_path: network.critical_path(),
    })
}

impl<'a> Network<'a> {
    fn new(plan: &'a Plan, ring: &'a WdmRing, period: u32, messages: Messages<'a>) -> Network<'a> {
        let ports = || Ports {
            per_rank: ring.ports.map(|ports| ports as usize),
            ports: FxHashMap::default(),
        };
        Network {
            plan,
            ring,
            period,
            arrived: FxHashMap::default(),
            read: FxHashMap::default(),
            links: vec![Since::default(); channels_in_all(ring) as usize * 2 * period as usize],
            transmitters: ports(),
            receivers: ports(),
            messages,
            runs: vec![Run::default(); plan.len()],
        }
    }

    /// Starts a transfer, with all that ride on its light, as early as it can. Returns when it (or the
    /// reconfiguration before it) began, and the reconfiguration it waited for.
    fn start(
        &mut self,
        transfer: u32,
        ledger: &mut Ledger,
    ) -> Result<(Time, Time), SimulationError> {
        let index = transfer as usize;
        let Transfer {
            source,
            destination,
            ..
        } = self.plan.schedule.transfer(index);
        let circuit = WdmLight::from(self.plan.light[index]);
        let channels = channels_in_all(self.ring);
        let channel = circuit.direction as u32 * channels
            + u32::from(circuit.fibre) * self.ring.wavelengths
            + u32::from(circuit.wavelength);
        let period = self.period;
        let row = channel as usize * period as usize;
        let path = path(self.ring, source, destination, circuit.direction)
            .map(move |link| row + (link % period) as usize);
        let sending = (source % period, destination % period, channel);
        let members: Vec<u32> = self
            .messages
            .trees
            .riders(transfer)
            .iter()
            .copied()
            .chain([transfer])
            .collect();
        let sender = self.transmitters.find(sending);
        let receiving = members.iter().map(|&member| {
            let drop = self.plan.schedule.ends(member as usize).1;
            (drop % period, source % period, channel)
        });
        let receivers: Vec<_> = receiving
            .map(|circuit| (circuit, self.receivers.find(circuit)))
            .collect();
        let free = path
            .clone()
            .map(|link| self.links[link])
            .chain(receivers.iter().map(|(_, receiver)| receiver.free))
            .fold(sender.free, Since::later);
        let changes = sender.changes || receivers.iter().any(|(_, receiver)| receiver.changes);
        let retune = if changes {
            self.ring.reconfiguration
        } else {
            Time::ZERO
        };
        let tuned = Since {
            time: free.time.plus(retune)?,
            transfer: free.transfer,
        };
        let ready = members.iter().fold(tuned, |ready, &member| {
            ready.later(self.chunks_ready(member as usize))
        });
        let start = ready.time;
        let mut end = start;
        for &member in &members {
            let message = self.messages.of_transfer(member, self.ring)?;
            end = start.plus(message.taken)?;
            ledger.enter(&message)?;
            ledger.finish(&message, end);
            self.runs[member as usize] = Run {
                start,
                end,
                cause: ready.transfer,
            };
        }
        let since = Since {
            time: end,
            transfer: Some(transfer),
        };
        path.for_each(|link| self.links[link] = since);
        self.transmitters.set(
            sender,
            Port {
                circuit: sending,
                free: since,
            },
        );
        for (circuit, receiver) in receivers {
            let port = Port {
                circuit,
                free: since,
            };
            self.receivers.set(receiver, port);
        }
        Ok((self.began(index), retune))
    }

    /// When everything that a transfer carries is at its source and may be changed where it goes.
    fn chunks_ready(&self, index: usize) -> Since {
        let Transfer {
            chunk,
            count,
            source,
            destination,
            ..
        } = self.plan.schedule.transfer(index);
        let combines = self.plan.schedule.collective.combines();
        (chunk..chunk + count)
            .flat_map(|chunk| {
                let changed = self.arrived.get(&self.place(destination, chunk));
                [
                    self.arrived.get(&self.place(source, chunk)),
                    self.read.get(&self.place(destination, chunk)),
                    changed.filter(|_| combines),
                ]
            })
            .flatten()
            .fold(Since::default(), |ready, &since| ready.later(since))
    }

    /// Lets later steps see what a transfer brought and read.
    fn deliver(&mut self, transfer: u32) {
        let moved = self.plan.schedule.transfer(transfer as usize);
        let Run { start, end, .. } = self.runs[transfer as usize];
        let combines = self.plan.schedule.collective.combines();
        for chunk in moved.chunk..moved.chunk + moved.count {
            interrupt::check();
            let since = |time: Time| Since {
                time,
                transfer: Some(transfer),
            };
            let place = self.place(moved.destination, chunk);
            let arrived = self.arrived.entry(place).or_default();
            *arrived = arrived.later(since(end));
            if combines {
                let place = self.place(moved.source, chunk);
                let read = self.read.entry(place).or_default();
                *read = read.later(since(start));
            }
        }
    }

    /// Where what a rank holds of a chunk is kept: turned back to the blocks below the period.
    fn place(&self, rank: u32, chunk: u32) -> (u32, u32) {
        let ranks = self.ring.ranks;
        if self.period == ranks {
            return (rank, chunk);
        }
        let chunks = self.plan.schedule.collective.chunks() / ranks;
        let block = chunk / chunks;
        let turns = block - block % self.period;
        ((rank + ranks - turns) % ranks, chunk - turns * chunks)
    }

    /// When what a transfer waited for last was over.
    fn began(&self, index: usize) -> Time {
        let Run { start, cause, .. } = self.runs[index];
        cause.map_or(Time::ZERO, |cause| self.runs[cause as usize].end.min(start))
    }

    /// Back from the transfer that ends last, cause by cause.
    fn critical_path(&self) -> Vec<Critical> {
        let mut path = Vec::new();
        let mut next = (0..self.runs.len())
            .rev()
            .max_by_key(|&index| self.runs[index].end);
        while let Some(transfer) = next {
            let Run { end, cause, .. } = self.runs[transfer];
            path.push(Critical {
                transfer,
                start: self.began(transfer),
                end,
            });
            next = cause.map(|cause| cause as usize);
        }
        path.reverse();
        path
    }
}

/// Channels per direction, with those that cannot be used.
fn channels_in_all(ring: &WdmRing) -> u32 {
    ring.fibres * ring.wavelengths
}

/// The links of a path, by the lower of the ranks they join.
fn path(
    ring: &WdmRing,
    source: u32,
    destination: u32,
    direction: Direction,
) -> impl Iterator<Item = u32> + Clone + use<> {
    let first = match direction {
        Direction::Clockwise => source,
        Direction::CounterClockwise => destination,
    };
    let ranks = ring.ranks;
    (first..first + ring.hops(source, destination, direction)).map(move |link| link % ranks)
}
