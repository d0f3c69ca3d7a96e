//! The policies `per_port` and `planes`: no barriers, only ports, or planes, whose circuits change wait.
//!
//! Transfers keep the order of their slots wherever they share something; otherwise each starts as
//! early as it can. Transfer t from u to v over channel c starts at the latest of
//!
//! * the arrival at u of every chunk it carries (from earlier steps of the schedule);
//! * where contributions combine: the start of every transfer of an earlier step that reads what
//!   t changes, and the end of every one that changes it;
//! * F + R, with F the time from which c is free on every link of its path and its transmitter at
//!   u and receiver at v are free, and R the reconfiguration delay if either was set to another
//!   circuit before (or to none), else zero. A circuit that must be released first adds its release time.
//!
//! A port that is both transmitter and receiver carries messages both ways at once: a message over the circuit that
//! the port holds waits until the circuit is set up, not until the message the other way has ended.
//!
//! Under `planes` all ports of a plane change together: a plane keeps its setting for as long a run of slots as no port
//! of it changes its circuit; F + R is then the time from which all earlier messages of the plane have ended, and R.
//!
//! A transfer that others relay goes over one circuit after the other: it starts over the first when its chunks are
//! there, over each next one when it has come there, and over the last when what it changes may change. Circuits over which it goes in
//! one slot start together (`chains`).
//!
//! Which transmitters and receivers can do that, the fabric says ([`Circuits::tune`]); one is taken that is
//! set to the circuit already, else one that was never used, else the one that is free first. The transfers of
//! a light tree start together, over one transmitter and the receivers of all of them.
//!
//! A *period* Q below N says that the plan turned by Q ranks is the same plan, on the same channels,
//! and that only the transfers of Q ranks are given. What happens to rank, link and block v + Q then
//! happens to v at the same time, so that links and ports are kept modulo Q, and what ranks hold for
//! the blocks 0..Q only: rank v's of block b stands for rank v + Q's of block b + Q. Two circuits of a
//! port that are the same modulo Q are the same, for lengths are at most Q.

use std::ops::Range;

use super::Timing;
use super::block::{Message, MessageBlock};
use super::held::{ChunkTimes, Since};
use super::ledger::LineLedger;
use super::messages::SlotMessages;
use super::planes::PlaneSettings;
use super::slots::SlotHops;
use crate::SimulationError;
use crate::outcome::{Critical, SlotColumns};
use opticoll_base::interrupt;
use opticoll_base::ports::{Ports, TakenPort};
use opticoll_base::units::Time;
use opticoll_fabric::fabric::Hop;
use opticoll_fabric::fabric::circuits::{Change, Charge, Circuit, Circuits, Lines, Port, Tuning};
use opticoll_plan::collective::CollectiveKind;
use opticoll_plan::plan::Plan;
use opticoll_plan::plan::repetition::turned_chunk;
use opticoll_plan::schedule::Transfer;

/// When a transfer ran, and the transfer that it waited for last.
#[derive(Debug, Clone, Copy, Default)]
struct TransferRun {
    start: Time,
    end: Time,
    cause: Option<u32>,
}

/// Since when a port has its circuit, and since when it carries nothing.
#[derive(Debug, Clone, Copy, Default)]
struct PortTimes {
    set: Since,
    free: Since,
}

/// Since when a port that is taken can carry a message, or change for it. Over a fixed circuit a port hears many others,
/// one after the other.
fn available(port: &TakenPort<PortTimes>, is_fixed: bool) -> Since {
    match port.before {
        None => Since::default(),
        Some((_, times)) if port.holds && !is_fixed => times.set,
        Some((_, times)) => times.free,
    }
}

/// What a message waits for.
struct Waiting {
    ready: Since,
    /// When its circuit is there.
    set: Since,
    /// The reconfiguration before it.
    retune: Time,
    /// Its ports, as they are taken.
    transmitter: (Port, TakenPort<PortTimes>),
    receiver: (Port, TakenPort<PortTimes>),
    /// The receivers of its riders.
    others: Vec<(Port, TakenPort<PortTimes>)>,
}

/// Chunks of one block as they are kept, turned back by some ranks.
struct TurnedChunks {
    ranks: u32,
    turns: u32,
    range: Range<u32>,
}

impl TurnedChunks {
    /// Where what a rank holds of them is kept.
    fn rank_at(&self, rank: u32) -> u32 {
        match rank.checked_sub(self.turns) {
            Some(place) => place,
            None => rank + self.ranks - self.turns,
        }
    }
}

/// What transfers wait for.
struct TransferTimeline<'a> {
    plan: &'a Plan,
    lines: Lines,
    change: Change,
    period: u32,
    /// When each chunk arrived at each rank, from earlier steps.
    arrived: ChunkTimes,
    /// When each chunk was last read at each rank, by earlier steps; where contributions combine.
    read: ChunkTimes,
    /// Since when each channel is free on each line, row by row and then channel by channel.
    free: Vec<Since>,
    ports: Ports<PortTimes>,
    /// Where the ports of a plane change together.
    planes: Option<PlaneSettings<Since>>,
    runs: Vec<TransferRun>,
}

/// How transfers are carried out without barriers.
#[derive(Clone, Copy)]
pub(super) struct PortRun {
    pub(super) charge: Charge,
    /// Q.
    pub(super) period: u32,
    /// When to give up.
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
    let (mut turned, mut tunings) = (Vec::new(), Vec::new());
    for step in &plan.step_slots {
        for slot in step.clone() {
            interrupt::check();
            let mut retuned = Time::ZERO;
            let (mut start, mut end) = (None, None);
            let mut lightpaths = 0;
            let block = messages.of(slots.of_slot(slot))?;
            tune(circuits, period, block, &mut turned, &mut tunings);
            retuned = retuned.max(timeline.change_planes(slot, &tunings)?);
            for (place, _, message, _) in block.iter() {
                if message.leader != place {
                    continue;
                }
                interrupt::check();
                lightpaths += 1;
                if let Some((began, retune)) = timeline.start(block, &tunings, place, ledger)? {
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
            super::give_up_past(limit, previous)?;
        }
        for slot in step.clone() {
            let hops = slots.of_slot(slot).iter();
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

/// What the circuits of a block need, modulo the period.
fn tune(
    circuits: &dyn Circuits,
    period: u32,
    block: &MessageBlock,
    turned: &mut Vec<Hop>,
    tunings: &mut Vec<Tuning>,
) {
    turned.clear();
    turned.extend(block.hops.iter().map(|hop| Hop {
        from: hop.from % period,
        to: hop.to % period,
        ..*hop
    }));
    tunings.clear();
    circuits.tune(turned, tunings);
}

impl<'a> TransferTimeline<'a> {
    fn new(
        plan: &'a Plan,
        circuits: &dyn Circuits,
        charge: Charge,
        period: u32,
    ) -> Result<TransferTimeline<'a>, SimulationError> {
        let lines = circuits.lines();
        let times = ChunkTimes::new(plan);
        Ok(TransferTimeline {
            plan,
            lines,
            change: circuits.change()?,
            period,
            // Only sums wait for what was read before.
            read: match plan.schedule.collective.combines() {
                true => times.clone(),
                false => ChunkTimes::none(),
            },
            arrived: times,
            free: vec![Since::default(); lines.count() * lines.channels as usize],
            ports: Ports::default(),
            planes: (charge == Charge::ChangedPlane).then(PlaneSettings::default),
            runs: vec![TransferRun::default(); plan.len()],
        })
    }

    /// Where the channel of a circuit is on its lines, modulo the period: ranges of places, some of which may be empty.
    #[inline]
    fn places(&self, circuit: &Circuit, channel: u32) -> [Range<usize>; 4] {
        let [first, second] = &circuit.lines;
        let [start, around] = self.places_on(first, channel);
        if second.is_empty() {
            return [start, around, 0..0, 0..0];
        }
        let [second_start, second_around] = self.places_on(second, channel);
        [start, around, second_start, second_around]
    }

    #[inline]
    fn places_on(&self, lines: &Range<u32>, channel: u32) -> [Range<usize>; 2] {
        if lines.is_empty() {
            return [0..0, 0..0];
        }
        let [_, (_, columns)] = self.lines.shape;
        let period = self.period.min(columns);
        let row = lines.start / columns;
        let first = (row * self.lines.channels + channel) as usize * period as usize;
        let start = (lines.start - row * columns) % period;
        // Once around at most.
        let end = start + (lines.len() as u32).min(period);
        let around = 0..end.saturating_sub(period);
        [start..end.min(period), around]
            .map(|range| first + range.start as usize..first + range.end as usize)
    }

    /// Gives planes the settings of a slot: the time that one of them waits.
    fn change_planes(&mut self, slot: u32, tunings: &[Tuning]) -> Result<Time, SimulationError> {
        let Some(planes) = &mut self.planes else {
            return Ok(Time::ZERO);
        };
        let mut longest = Time::ZERO;
        for change in planes.enter(slot, tunings) {
            let waits = match change.is_first && self.change.first_free {
                true => Time::ZERO,
                false => self.change.set_up,
            };
            let since = change.ended.unwrap_or_default();
            let ready = Since {
                time: since.time.plus(waits)?,
                ..since
            };
            planes.set_ready(change.plane, ready);
            longest = longest.max(waits);
        }
        Ok(longest)
    }

    /// Starts a message as early as it can, with all that start together with it; `None` where it has started with
    /// another. Returns when the first (or the reconfiguration before it) began, and the reconfiguration that one waited for.
    fn start(
        &mut self,
        block: &MessageBlock,
        tunings: &[Tuning],
        place: u32,
        ledger: &mut LineLedger,
    ) -> Result<Option<(Time, Time)>, SimulationError> {
        if block.together.is_empty() {
            let waiting = self.ready(block, tunings, place)?;
            let retune = waiting.retune;
            return Ok(Some((
                self.send(block, tunings, place, waiting, ledger)?,
                retune,
            )));
        }
        let mut all = Vec::new();
        let mut latest = Since::default();
        for &(_, one) in block.starting_with(place) {
            let waiting = self.ready(block, tunings, one)?;
            latest = latest.later(waiting.ready);
            all.push((one, waiting));
        }
        let mut first: Option<(Time, Time)> = None;
        for (one, waiting) in all {
            let retune = waiting.retune;
            let waiting = Waiting {
                ready: latest,
                ..waiting
            };
            let began = self.send(block, tunings, one, waiting, ledger)?;
            first = Some(first.map_or((began, retune), |(earliest, longest)| {
                (earliest.min(began), longest.max(retune))
            }));
        }
        Ok(first)
    }

    /// When a message can start, with all that ride on its light, and over which ports.
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
        for places in self.places(&block.circuits[leader as usize], channel) {
            for &since in &self.free[places] {
                free = free.later(since);
            }
        }
        // A port that was never used holds its first circuit from the beginning, where that is free.
        let first_free = self.change.first_free;
        let changes_at =
            |port: &TakenPort<PortTimes>| !(port.holds || first_free && port.before.is_none());
        let releases_at = |port: &TakenPort<PortTimes>| !port.holds && port.before.is_some();
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
        let others = riders.map(|&(_, rider)| receive(rider)).collect();
        let receiver = receive(leader);
        let retune = match (&self.planes, changes) {
            (None, true) if !is_fixed && releases => {
                self.change.release.plus(self.change.set_up)?
            }
            (None, true) if !is_fixed => self.change.set_up,
            _ => Time::ZERO,
        };
        if let Some(planes) = &self.planes {
            free = free.later(planes.ready(plane).unwrap_or_default());
        }
        let tuned = Since {
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
            others,
        })
    }

    /// Sends a message, with all that ride on its light: when what it waited for last was over.
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
            ledger.enter(&block.hops[member], message, circuit, leads, end)?;
            for part in block.parts_of(member as u32) {
                let run = &mut self.runs[part.transfer as usize];
                if part.begins {
                    (run.start, run.cause) = (start, waiting.ready.transfer);
                }
                run.end = run.end.max(end);
            }
        }
        let transfer = block.messages[leader as usize].transfer;
        let since = Since {
            time: end,
            transfer: Some(transfer),
        };
        let places = self.places(&block.circuits[leader as usize], channel);
        for places in places {
            self.free[places].fill(since);
        }
        if let Some(planes) = &mut self.planes {
            planes.end(plane, |ended| ended.map_or(since, |one| one.later(since)));
        }
        let own = [waiting.transmitter, waiting.receiver];
        for (port, taken) in own.iter().chain(&waiting.others) {
            let (set, free) = match taken.before {
                Some((_, times)) if taken.holds => (times.set, times.free.later(since)),
                _ => (waiting.set, since),
            };
            self.ports.set_taken(*port, taken, PortTimes { set, free });
        }
        Ok(self.began(transfer as usize))
    }

    /// When everything that a hop of a transfer carries is where it starts, and may be changed where it arrives.
    fn chunks_ready(&self, part: &Message) -> Since {
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
            true => Since::default(),
            false => Since {
                time: self.runs[index].end,
                transfer: Some(part.transfer),
            },
        };
        let latest = |ready: Since, chunks: Range<u32>, here: u32, there: u32| {
            let mut ready = ready;
            if part.begins {
                ready = self.arrived.latest(here, chunks.clone(), ready);
            }
            if part.arrives && combines {
                ready = self.read.latest(there, chunks.clone(), ready);
                ready = self.arrived.latest(there, chunks, ready);
            }
            ready
        };
        if self.is_whole() {
            return latest(relayed, chunk..chunk + count, source, destination);
        }
        self.turned(chunk..chunk + count)
            .fold(relayed, |ready, chunks| {
                let (here, there) = (chunks.rank_at(source), chunks.rank_at(destination));
                latest(ready, chunks.range, here, there)
            })
    }

    /// Lets later steps see what a transfer brought and read.
    fn deliver(&mut self, transfer: u32) {
        let moved = self.plan.schedule.transfer(transfer as usize);
        let TransferRun { start, end, .. } = self.runs[transfer as usize];
        let combines = self.plan.schedule.collective.combines();
        let since = |time: Time| Since {
            time,
            transfer: Some(transfer),
        };
        if self.is_whole() {
            let chunks = moved.chunk..moved.chunk + moved.count;
            self.arrived
                .raise(moved.destination, chunks.clone(), since(end));
            if combines {
                self.read.raise(moved.source, chunks, since(start));
            }
            return;
        }
        for chunks in self.turned(moved.chunk..moved.chunk + moved.count) {
            interrupt::check();
            let rank = chunks.rank_at(moved.destination);
            self.arrived.raise(rank, chunks.range.clone(), since(end));
            if combines {
                let rank = chunks.rank_at(moved.source);
                self.read.raise(rank, chunks.range, since(start));
            }
        }
    }

    /// Whether all transfers are given, so that everything is kept where it is.
    fn is_whole(&self) -> bool {
        self.period == self.plan.fabric.ranks()
    }

    /// Chunks as they are kept: those of each block turned back to the blocks below the period.
    fn turned(&self, chunks: Range<u32>) -> impl Iterator<Item = TurnedChunks> + use<> {
        let (ranks, period) = (self.plan.fabric.ranks(), self.period);
        let collective = self.plan.schedule.collective;
        let by_pairs = collective.kind() == CollectiveKind::AllToAll;
        let of_block = collective.chunks() / ranks;
        let mut next = chunks.start;
        std::iter::from_fn(move || {
            let start = next;
            if start >= chunks.end {
                return None;
            }
            let block = start / of_block;
            next = (block + 1).saturating_mul(of_block).min(chunks.end);
            let turns = block - block % period;
            if by_pairs && turns > 0 {
                // Blocks turn with both of their ranks.
                next = start + 1;
                let back = turned_chunk(&collective, start, ranks - turns);
                return Some(TurnedChunks {
                    ranks,
                    turns,
                    range: back..back + 1,
                });
            }
            let before = turns * (if turns == 0 { 0 } else { of_block });
            Some(TurnedChunks {
                ranks,
                turns,
                range: start - before..next - before,
            })
        })
    }

    /// When what a transfer waited for last was over.
    fn began(&self, index: usize) -> Time {
        let TransferRun { start, cause, .. } = self.runs[index];
        cause.map_or(Time::ZERO, |cause| self.runs[cause as usize].end.min(start))
    }

    /// Back from the transfer that ends last, cause by cause.
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
