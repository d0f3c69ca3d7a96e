//! Policies without barriers between slots: `per_port`, in which only ports wait for a
//! reconfiguration, and `planes`, in which a whole switch (*plane*) waits.
//!
//! Transfers that share a port, a channel or a chunk keep the order of their slots. Apart from this
//! order, each transfer starts as early as possible. A transfer t from u to v over channel c starts
//! at the latest of these times:
//!
//! * the arrival at u, in earlier steps, of every chunk that t sends;
//! * if contributions are added: at v, the start of every transfer of an earlier step that reads
//!   chunks which t changes, and the end of every transfer of an earlier step that changes them;
//! * F + R. F is the time from which c is free on every link of the route, and the transmitter at u
//!   and the receiver at v are free. R is the setup time if one of these two ports has another
//!   circuit or none, and otherwise 0. If a port must release another circuit first, R includes the
//!   release time.
//!
//! A port that is both transmitter and receiver sends and receives at the same time over its
//! circuit. A message over this circuit therefore waits until the circuit is up, but not for a
//! message in the opposite direction.
//!
//! Under `planes`, all ports of a plane change at the same time. A plane keeps its configuration
//! over a run of slots in which no port of the plane changes its circuit. If the configuration
//! changes, F is the time at which all earlier messages of the plane have ended.
//!
//! A relayed transfer uses one circuit after another. It starts over its first circuit when its
//! chunks have arrived at the source, and over each next circuit when its chunks have arrived at
//! the relay. It starts over its last circuit no earlier than its chunks may be changed at the
//! destination. Circuits that a transfer uses in one slot start together (see `chains`).
//!
//! The fabric ([`Circuits::tune`]) defines which transmitters and receivers a transfer can use. The
//! simulator selects among them a port that already has the circuit, otherwise a port that was
//! never used, and otherwise the port that is free first. The transfers of a light tree start
//! together. The tree uses one transmitter, and one receiver at each of its ranks.
//!
//! A *period* Q that is less than the number of ranks means that only the transfers of Q ranks are
//! simulated: rotated by Q ranks, the plan is the same plan on the same channels. Events at rank,
//! link and block v + Q therefore happen at the same time as at v. Links and ports are stored
//! modulo Q, and times of chunks only for the blocks 0..Q: an entry for rank v and block b also
//! stands for rank v + Q and block b + Q. Two circuits of a port that are equal modulo Q are the
//! same circuit, because circuits have at most Q links.

use std::ops::Range;

use super::Timing;
use super::availability::{Availability, ChunkTimes};
use super::block::{Message, MessageBlock};
use super::ledger::LineLedger;
use super::messages::SlotMessages;
use super::planes::PlaneConfigurations;
use super::slots::SlotHops;
use crate::SimulationError;
use crate::outcome::{Critical, SlotColumns};
use opticoll_base::interrupt;
use opticoll_base::ports::{Ports, SelectedPort};
use opticoll_base::units::Time;
use opticoll_fabric::fabric::Hop;
use opticoll_fabric::fabric::circuits::{
    Change, Circuits, Lines, Port, ReconfigurationCharge, Tuning,
};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::plan::Plan;
use opticoll_plan::plan::repetition::rotated_chunk;
use opticoll_plan::schedule::Transfer;

#[derive(Debug, Clone, Copy, Default)]
struct TransferRun {
    start: Time,
    end: Time,
    /// Index of the transfer for which this transfer waited last.
    cause: Option<u32>,
}

/// Time from which a port's circuit is up, and time from which the port is idle.
#[derive(Debug, Clone, Copy, Default)]
struct PortTimes {
    set: Availability,
    free: Availability,
}

/// Returns the time from which `port` can send (or receive) a message or start a reconfiguration. A
/// port that already has the message's circuit need not be free, unless the circuit is fixed: over
/// a fixed circuit, a port receives from many ranks one after another.
fn available(port: &SelectedPort<PortTimes>, is_fixed: bool) -> Availability {
    match port.before {
        None => Availability::default(),
        Some((_, times)) if port.holds && !is_fixed => times.set,
        Some((_, times)) => times.free,
    }
}

/// Earliest start of a message, and the ports that the message will use.
struct Waiting {
    ready: Availability,
    /// Time from which the message's circuit is up.
    set: Availability,
    /// Duration of the reconfiguration before the message; 0 if the circuit is up.
    retune: Time,
    transmitter: (Port, SelectedPort<PortTimes>),
    receiver: (Port, SelectedPort<PortTimes>),
    /// Receivers of the riders: the other messages of the message's light tree.
    rider_receivers: Vec<(Port, SelectedPort<PortTimes>)>,
}

/// Chunks of one rank (in an all_to_all, of one source rank), rotated back to a rank below the
/// period (the number of simulated ranks).
struct RotatedChunks {
    ranks: u32,
    /// Number of ranks by which the chunks are rotated back.
    rotation: u32,
    /// Chunks after the rotation.
    range: Range<u32>,
}

impl RotatedChunks {
    /// Returns the rank for which the times of these chunks at `rank` are stored: `rank` -
    /// `rotation`, modulo the number of ranks.
    fn representative(&self, rank: u32) -> u32 {
        match rank.checked_sub(self.rotation) {
            Some(representative) => representative,
            None => rank + self.ranks - self.rotation,
        }
    }
}

/// State of a simulation without barriers.
struct TransferTimeline<'a> {
    plan: &'a Plan,
    lines: Lines,
    change: Change,
    period: u32,
    /// Time at which each chunk last arrived at each rank in earlier steps.
    arrived: ChunkTimes,
    /// Time at which each chunk was last read at each rank in earlier steps, if contributions are
    /// added.
    read: ChunkTimes,
    /// Time from which each channel of each line is free, at index (row * channels + channel) * Q +
    /// column modulo Q. Row and column are the coordinates of the line (see [`Lines`]).
    free: Vec<Availability>,
    ports: Ports<PortTimes>,
    /// Configurations of the planes under `planes`; `None` under `per_port`.
    planes: Option<PlaneConfigurations<Availability>>,
    runs: Vec<TransferRun>,
}

#[derive(Clone, Copy)]
pub(super) struct PortRun {
    pub(super) charge: ReconfigurationCharge,
    /// Number of ranks whose transfers are simulated (the period Q).
    pub(super) period: u32,
    pub(super) limit: Option<Time>,
}

pub(super) fn run(
    plan: &Plan,
    circuits: &dyn Circuits,
    ports: PortRun,
    slots: &SlotHops,
    mut messages: SlotMessages<'_>,
    ledger: &mut LineLedger,
) -> Result<Timing, SimulationError> {
    let PortRun {
        charge,
        period,
        limit,
    } = ports;
    let mut timeline = TransferTimeline::new(plan, circuits, charge, period)?;
    let mut columns = SlotColumns::default();
    let mut previous = Time::ZERO;
    let mut tunings = Vec::new();
    for step in &plan.step_slots {
        for slot in step.clone() {
            interrupt::check();
            let mut retuned = Time::ZERO;
            let (mut start, mut end) = (None, None);
            let mut lightpaths = 0;
            let block = messages.block(slots.hops(slot))?;
            tunings.clear();
            tunings.extend(block.hops.iter().map(|hop| {
                let (from, to) = (hop.from % period, hop.to % period);
                circuits.tuning(&Hop { from, to, ..*hop }, &plan.routes)
            }));
            retuned = retuned.max(timeline.change_planes(slot, &tunings)?);
            for (index, _, message, _) in block.iter() {
                if message.leader != index {
                    continue;
                }
                interrupt::check();
                lightpaths += 1;
                if let Some((began, retune)) = timeline.start(block, &tunings, index, ledger)? {
                    retuned = retuned.max(retune);
                    start = Some(start.map_or(began, |start: Time| start.min(began)));
                }
                end = end.max(Some(timeline.runs[message.transfer as usize].end));
            }
            columns.start.push(start.unwrap_or(previous));
            columns.end.push(end.unwrap_or(previous));
            columns.reconfiguration.push(retuned);
            columns.lightpaths.push(lightpaths);
            previous = previous.max(end.unwrap_or(previous));
            super::check_limit(limit, previous)?;
        }
        for slot in step.clone() {
            let hops = slots.hops(slot).iter();
            hops.filter(|&&hop| (hop as usize) < plan.len())
                .for_each(|&transfer| timeline.deliver(transfer));
        }
    }
    let charged = |time: &&Time| **time > Time::ZERO;
    Ok(Timing {
        reconfigurations: columns.reconfiguration.iter().filter(charged).count() as u64,
        slots: columns,
        critical_path: timeline.critical_path(),
    })
}

impl<'a> TransferTimeline<'a> {
    fn new(
        plan: &'a Plan,
        circuits: &dyn Circuits,
        charge: ReconfigurationCharge,
        period: u32,
    ) -> Result<TransferTimeline<'a>, SimulationError> {
        let lines = circuits.lines();
        let times = ChunkTimes::new(plan);
        Ok(TransferTimeline {
            plan,
            lines,
            change: circuits.change()?,
            period,
            // Only a transfer that changes chunks waits for earlier transfers that read them.
            read: match plan.schedule.collective.combines() {
                true => times.clone(),
                false => ChunkTimes::none(),
            },
            arrived: times,
            free: vec![Availability::default(); lines.count() * lines.channels as usize],
            ports: Ports::default(),
            planes: (charge == ReconfigurationCharge::ChangedPlane)
                .then(PlaneConfigurations::default),
            runs: vec![TransferRun::default(); plan.len()],
        })
    }

    /// Returns the indices into `free` of `channel` on a range of lines, modulo the period, as two
    /// ranges that may be empty.
    #[inline]
    fn channel_ranges(
        shape: Lines,
        period: u32,
        lines: &Range<u32>,
        channel: u32,
    ) -> [Range<usize>; 2] {
        if lines.is_empty() {
            return [0..0, 0..0];
        }
        let [_, (_, columns)] = shape.shape;
        let period = period.min(columns);
        let row = lines.start / columns;
        let first = (row * shape.channels + channel) as usize * period as usize;
        let start = (lines.start - row * columns) % period;
        // A circuit uses each line modulo the period at most once.
        let end = start + (lines.len() as u32).min(period);
        let around = 0..end.saturating_sub(period);
        [start..end.min(period), around]
            .map(|range| first + range.start as usize..first + range.end as usize)
    }

    /// Changes the configurations of planes for a slot; returns the duration of the longest
    /// reconfiguration.
    fn change_planes(&mut self, slot: u32, tunings: &[Tuning]) -> Result<Time, SimulationError> {
        let Some(planes) = &mut self.planes else {
            return Ok(Time::ZERO);
        };
        let mut longest = Time::ZERO;
        for change in planes.enter(slot, tunings) {
            let waits = match change.is_first && self.change.first_free {
                true => Time::ZERO,
                false => self.change.setup,
            };
            let since = change.ended.unwrap_or_default();
            let ready = Availability {
                time: since.time.plus(waits)?,
                ..since
            };
            planes.set_ready(change.plane, ready);
            longest = longest.max(waits);
        }
        Ok(longest)
    }

    /// Starts the message `index`, and all messages that must start together with it, as early as
    /// possible. Returns the time at which the first of these messages or its reconfiguration
    /// starts, and the duration of the longest reconfiguration. Returns `None` if the message has
    /// already started.
    fn start(
        &mut self,
        block: &MessageBlock,
        tunings: &[Tuning],
        index: u32,
        ledger: &mut LineLedger,
    ) -> Result<Option<(Time, Time)>, SimulationError> {
        if block.start_sets.is_empty() {
            let waiting = self.ready(block, tunings, index)?;
            let retune = waiting.retune;
            return Ok(Some((
                self.send(block, tunings, index, waiting, ledger)?,
                retune,
            )));
        }
        let mut members = Vec::new();
        let mut latest = Availability::default();
        for &(_, member) in block.starting_with(index) {
            let waiting = self.ready(block, tunings, member)?;
            latest = latest.later(waiting.ready);
            members.push((member, waiting));
        }
        let mut first: Option<(Time, Time)> = None;
        for (member, waiting) in members {
            let retune = waiting.retune;
            let waiting = Waiting {
                ready: latest,
                ..waiting
            };
            let began = self.send(block, tunings, member, waiting, ledger)?;
            first = Some(first.map_or((began, retune), |(earliest, longest)| {
                (earliest.min(began), longest.max(retune))
            }));
        }
        Ok(first)
    }

    /// Returns the earliest start of a message and of the riders of its light tree, and the ports
    /// that these messages will use.
    fn ready(
        &self,
        block: &MessageBlock,
        tunings: &[Tuning],
        leader: u32,
    ) -> Result<Waiting, SimulationError> {
        let members = block.members(leader);
        let Tuning {
            transmitter,
            channel,
            plane,
            is_fixed,
            ..
        } = tunings[leader as usize];
        let free_first = |times: PortTimes| times.free.time;
        let sender = self.ports.take(transmitter, free_first);
        let mut free = available(&sender, is_fixed);
        for lines in block.circuits[leader as usize].lines.line_ranges() {
            for indices in Self::channel_ranges(self.lines, self.period, lines, channel) {
                for &since in &self.free[indices] {
                    free = free.later(since);
                }
            }
        }
        // If first circuits are free, a port's first circuit is up from the start.
        let first_free = self.change.first_free;
        let changes_at =
            |port: &SelectedPort<PortTimes>| !(port.holds || first_free && port.before.is_none());
        let releases_at = |port: &SelectedPort<PortTimes>| !port.holds && port.before.is_some();
        let (mut changes, mut releases) = (changes_at(&sender), releases_at(&sender));
        let mut receive = |member: u32| {
            let receiver = tunings[member as usize].receiver;
            let port = self.ports.take(receiver, free_first);
            free = free.later(available(&port, is_fixed));
            changes |= changes_at(&port);
            releases |= releases_at(&port);
            (receiver, port)
        };
        let riders = block.riders_of(leader).iter();
        let rider_receivers = riders.map(|&(_, rider)| receive(rider)).collect();
        let receiver = receive(leader);
        let retune = match (&self.planes, changes) {
            (None, true) if !is_fixed && releases => {
                self.change.teardown.plus(self.change.setup)?
            }
            (None, true) if !is_fixed => self.change.setup,
            _ => Time::ZERO,
        };
        if let Some(planes) = &self.planes {
            free = free.later(planes.ready(plane).unwrap_or_default());
        }
        let tuned = Availability {
            time: free.time.plus(retune)?,
            transfer: free.transfer,
        };
        let parts = members.flat_map(|member| block.parts_of(member as u32));
        Ok(Waiting {
            ready: parts.fold(tuned, |ready, part| ready.later(self.chunks_ready(part))),
            set: tuned,
            retune,
            transmitter: (transmitter, sender),
            receiver,
            rider_receivers,
        })
    }

    /// Sends a message and the riders of its light tree at `waiting.ready`. Returns the start of
    /// the message, or of the reconfiguration before it.
    fn send(
        &mut self,
        block: &MessageBlock,
        tunings: &[Tuning],
        leader: u32,
        waiting: Waiting,
        ledger: &mut LineLedger,
    ) -> Result<Time, SimulationError> {
        let Tuning { channel, plane, .. } = tunings[leader as usize];
        let start = waiting.ready.time;
        let mut end = start;
        for member in block.members(leader) {
            let (message, circuit) = (&block.messages[member], &block.circuits[member]);
            end = start.plus(circuit.delay.plus(message.sending)?)?;
            let leads = member == leader as usize;
            ledger.add(&block.hops[member], message, circuit, leads, end)?;
            for part in block.parts_of(member as u32) {
                let run = &mut self.runs[part.transfer as usize];
                if part.begins {
                    (run.start, run.cause) = (start, waiting.ready.transfer);
                }
                run.end = run.end.max(end);
            }
        }
        let transfer = block.messages[leader as usize].transfer;
        let since = Availability {
            time: end,
            transfer: Some(transfer),
        };
        for lines in block.circuits[leader as usize].lines.line_ranges() {
            for indices in Self::channel_ranges(self.lines, self.period, lines, channel) {
                self.free[indices].fill(since);
            }
        }
        if let Some(planes) = &mut self.planes {
            planes.end(plane, |ended| {
                ended.map_or(since, |ended| ended.later(since))
            });
        }
        let leader_ports = [waiting.transmitter, waiting.receiver];
        for (port, taken) in leader_ports.iter().chain(&waiting.rider_receivers) {
            let (set, free) = match taken.before {
                Some((_, times)) if taken.holds => (times.set, times.free.later(since)),
                _ => (waiting.set, since),
            };
            self.ports.set_taken(*port, taken, PortTimes { set, free });
        }
        Ok(self.began(transfer as usize))
    }

    /// Returns the time at which all chunks of a hop have arrived at the rank that sends them. If
    /// contributions are added, the last hop of a transfer also waits until its chunks may be
    /// changed at the destination.
    fn chunks_ready(&self, part: &Message) -> Availability {
        let index = part.transfer as usize;
        let Transfer {
            chunk,
            count,
            source,
            destination,
            ..
        } = self.plan.schedule.transfer(index);
        let combines = self.plan.schedule.collective.combines();
        let relayed = match part.begins {
            true => Availability::default(),
            false => Availability {
                time: self.runs[index].end,
                transfer: Some(part.transfer),
            },
        };
        let latest = |ready: Availability, chunks: Range<u32>, from: u32, to: u32| {
            let mut ready = ready;
            if part.begins {
                ready = self.arrived.latest(from, chunks.clone(), ready);
            }
            if part.arrives && combines {
                ready = self.read.latest(to, chunks.clone(), ready);
                ready = self.arrived.latest(to, chunks, ready);
            }
            ready
        };
        if self.is_whole() {
            return latest(relayed, chunk..chunk + count, source, destination);
        }
        self.rotated_chunks(chunk..chunk + count)
            .fold(relayed, |ready, chunks| {
                let from = chunks.representative(source);
                let to = chunks.representative(destination);
                latest(ready, chunks.range, from, to)
            })
    }

    /// Stores the times at which a transfer delivered and read its chunks, for later steps.
    fn deliver(&mut self, transfer: u32) {
        let moved = self.plan.schedule.transfer(transfer as usize);
        let TransferRun { start, end, .. } = self.runs[transfer as usize];
        let combines = self.plan.schedule.collective.combines();
        let since = |time: Time| Availability {
            time,
            transfer: Some(transfer),
        };
        if self.is_whole() {
            let chunks = moved.chunk..moved.chunk + moved.count;
            self.arrived
                .postpone(moved.destination, chunks.clone(), since(end));
            if combines {
                self.read.postpone(moved.source, chunks, since(start));
            }
            return;
        }
        for chunks in self.rotated_chunks(moved.chunk..moved.chunk + moved.count) {
            interrupt::check();
            let rank = chunks.representative(moved.destination);
            self.arrived
                .postpone(rank, chunks.range.clone(), since(end));
            if combines {
                let rank = chunks.representative(moved.source);
                self.read.postpone(rank, chunks.range, since(start));
            }
        }
    }

    /// Returns whether the transfers of all ranks are simulated.
    fn is_whole(&self) -> bool {
        self.period == self.plan.fabric.ranks()
    }

    /// Splits `chunks` by rank (in an all_to_all, by source rank), and rotates each part back to a
    /// rank below the period (the number of simulated ranks).
    fn rotated_chunks(&self, chunks: Range<u32>) -> impl Iterator<Item = RotatedChunks> + use<> {
        let (ranks, period) = (self.plan.fabric.ranks(), self.period);
        let collective = self.plan.schedule.collective;
        let has_pairs = collective.kind() == CollectiveKind::AllToAll;
        let block_chunks = collective.chunks() / ranks;
        let mut next = chunks.start;
        std::iter::from_fn(move || {
            let start = next;
            if start >= chunks.end {
                return None;
            }
            let block = start / block_chunks;
            next = (block + 1).saturating_mul(block_chunks).min(chunks.end);
            let rotation = block - block % period;
            if has_pairs && rotation > 0 {
                // The block of a pair rotates with both ranks, so adjacent chunks are separated.
                next = start + 1;
                let rotated = rotated_chunk(&collective, start, ranks - rotation);
                return Some(RotatedChunks {
                    ranks,
                    rotation,
                    range: rotated..rotated + 1,
                });
            }
            let offset = rotation * block_chunks;
            Some(RotatedChunks {
                ranks,
                rotation,
                range: start - offset..next - offset,
            })
        })
    }

    /// Returns the time at which the transfer `index` begins on the critical path: the end of the
    /// transfer for which this transfer waited last, or zero if there is none. A reconfiguration
    /// before this transfer starts at this time.
    fn began(&self, index: usize) -> Time {
        let TransferRun { start, cause, .. } = self.runs[index];
        cause.map_or(Time::ZERO, |cause| self.runs[cause as usize].end.min(start))
    }

    /// Returns the critical path; each of its transfers waited last for the transfer before it.
    fn critical_path(&self) -> Vec<Critical> {
        let mut path = Vec::new();
        let mut next = (0..self.runs.len())
            .rev()
            .max_by_key(|&index| self.runs[index].end);
        while let Some(transfer) = next {
            let TransferRun { end, cause, .. } = self.runs[transfer];
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
