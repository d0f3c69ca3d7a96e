//! Pipelined plans, simulated by the transfers of their first pieces.
//!
//! **With barriers**, a slot takes as long as the longest of its pieces. The largest chunk of all
//! stripes determines the time of a piece, because stripes use different channels and are sent in
//! parallel.
//!
//! **Without barriers** (`per_port`), every circuit is set up once and then carries piece after
//! piece. Piece p of a transfer starts at the latest of these times: the end of piece p - 1 on the
//! circuit; the arrival of piece p at the source; and, if contributions are added, two times at the
//! destination. These are the ends of the earlier transfers that change piece p there, and the
//! starts of the earlier transfers that read piece p there. Stripes differ only in bytes. If the
//! number of chunks does not divide the size, all chunks take the time of the largest chunk.
//!
//! Bytes and busy times of links are sums over all chunks.

use rustc_hash::FxHashMap;

use super::ledger::{LineLedger, Sums};
use super::messages::{Sizes, SlotMessages};
use super::piece_runs::{self, Cause, PieceRun, PieceTimes, SlotSpans, Wait, run_of};
use super::slots::SlotHops;
use super::{PlanRun, Timing, charge::Charging, check_limit};
use crate::SimulationError;
use crate::outcome::{Critical, Outcome, SlotColumns};
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::circuits::{Circuit, Circuits, ReconfigurationCharge};
use opticoll_fabric::fabric::{Hop, Transmission};
use opticoll_plan::plan::Plan;

pub(super) fn simulate(
    plan: &Plan,
    circuits: &dyn Circuits,
    run: PlanRun,
) -> Result<Outcome, SimulationError> {
    let is_alike = matches!(
        run.charge,
        ReconfigurationCharge::EverySlot
            | ReconfigurationCharge::NewConfiguration
            | ReconfigurationCharge::Never
            | ReconfigurationCharge::ChangedPort
    );
    if !is_alike || !plan.schedule.has_single_chunks() {
        return run.simulate(&plan.expanded(), circuits);
    }
    crate::check_slots(plan)?;
    let pipeline = Pipeline::new(plan, circuits, run.size)?;
    let mut ledger = LineLedger::new(circuits.lines(), plan.fabric.ranks());
    let timing = match run.charge {
        ReconfigurationCharge::ChangedPort => {
            pipeline.without_barriers(circuits, run, &mut ledger)?
        }
        _ => pipeline.with_barriers(circuits, run, &mut ledger)?,
    };
    let run = PlanRun { copies: 1, ..run };
    run.outcome(plan, circuits, timing, ledger)
}

/// Sizes and times of all chunks of a stream. A stream is a chunk that a row of the plan sends,
/// with its copies on all stripes and in all pieces.
struct Stream {
    /// Longest transmission time of each piece, and the first stripe with this time.
    longest: Vec<(Time, u32)>,
    /// Longest transmission time of any piece.
    max: Time,
    bytes: u128,
    /// Sum of the transmission times of all chunks, in picoseconds.
    sending: u128,
}

impl Stream {
    fn new(
        plan: &Plan,
        first: u32,
        size: Bytes,
        transmission: Transmission,
    ) -> Result<Stream, UnitError> {
        let collective = plan.schedule.collective;
        let (mut bytes, mut sending, mut max) = (0u128, 0u128, Time::ZERO);
        let mut longest = Vec::with_capacity(plan.repetition.pieces as usize);
        // Size and transmission time of the previous chunk, because most chunks have equal sizes.
        let mut previous = (Bytes::new(0), transmission.time(Bytes::new(0))?);
        for piece in 0..plan.repetition.pieces {
            interrupt::check();
            let mut longest_chunk: Option<(Time, u32)> = None;
            for stripe in 0..plan.repetition.stripes {
                let chunk = first + stripe * plan.repetition.pieces + piece;
                let chunk_bytes = collective.chunk_bytes(size, chunk);
                if chunk_bytes != previous.0 {
                    previous = (chunk_bytes, transmission.time(chunk_bytes)?);
                }
                bytes += u128::from(chunk_bytes.get());
                sending += u128::from(previous.1.ps());
                if longest_chunk.is_none_or(|(time, _)| previous.1 > time) {
                    longest_chunk = Some((previous.1, stripe));
                }
            }
            let longest_chunk = longest_chunk.unwrap_or_default();
            max = max.max(longest_chunk.0);
            longest.push(longest_chunk);
        }
        Ok(Stream {
            longest,
            max,
            bytes,
            sending,
        })
    }
}

/// Transfer of the first piece of a stream (see [`Stream`]); `stream` is the index of the stream.
struct FirstTransfer {
    hop: Hop,
    circuit: Circuit,
    stream: usize,
}

/// Streams of a plan, and the transfers of their first pieces in the order of the plan.
struct Pipeline<'a> {
    plan: &'a Plan,
    transfers: Vec<FirstTransfer>,
    streams: Vec<Stream>,
    /// Longest transmission time of any chunk.
    max: Time,
}

impl<'a> Pipeline<'a> {
    fn new(
        plan: &'a Plan,
        circuits: &dyn Circuits,
        size: Bytes,
    ) -> Result<Pipeline<'a>, SimulationError> {
        let chunks = u64::from(plan.schedule.collective.chunks());
        let mut numbers: FxHashMap<u32, usize> = FxHashMap::default();
        let mut streams = Vec::new();
        let mut transfers = Vec::with_capacity(plan.len());
        let slots = SlotHops::new(plan);
        let mut messages = SlotMessages::new(plan, circuits, Bytes::new(0), Sizes::Exact);
        let occupied = plan.slots().saturating_sub(plan.repetition.pieces - 1);
        for slot in 0..occupied {
            let block = messages.block(slots.hops(slot))?;
            for (_, hop, message, circuit) in block.iter() {
                let transfer = message.transfer as usize;
                let chunk = plan.schedule.transfer(transfer).chunk;
                if u64::from(chunk) + plan.repetition.copies() > chunks {
                    return Err(crate::missing_chunks(transfer));
                }
                let stream = match numbers.get(&chunk).copied() {
                    Some(stream) => stream,
                    None => {
                        streams.push(Stream::new(plan, chunk, size, circuits.transmission())?);
                        numbers.insert(chunk, streams.len() - 1);
                        streams.len() - 1
                    }
                };
                transfers.push(FirstTransfer {
                    hop: *hop,
                    circuit: circuit.clone(),
                    stream,
                });
            }
        }
        // The transfers of a pipelined plan never share a circuit in a slot.
        if transfers.len() < plan.len() {
            let problem = "first transfers of a pipelined plan share a circuit";
            return Err(SimulationError::Transfer {
                transfer: transfers.len(),
                problem,
            });
        }
        let max = streams.iter().map(|stream| stream.max).max();
        Ok(Pipeline {
            plan,
            transfers,
            streams,
            max: max.unwrap_or_default(),
        })
    }

    fn with_barriers(
        &self,
        circuits: &dyn Circuits,
        run: PlanRun,
        ledger: &mut LineLedger,
    ) -> Result<Timing, SimulationError> {
        let plan = self.plan;
        let slots = SlotHops::new(plan);
        let mut charging = Charging::new(plan, circuits, &slots, run)?;
        let mut columns = SlotColumns::default();
        let mut critical_path = Vec::new();
        let mut ends = vec![Time::ZERO; self.transfers.len()];
        let mut now = Time::ZERO;
        let mut index = 0u64;
        for slot in 0..plan.slots() {
            interrupt::check();
            let start = now;
            let before = charging.charge_before(slot)?;
            let sending = start.plus(before)?;
            let under_way = plan.under_way(slot);
            let (first, count) = (under_way.start, under_way.len() as u64);
            let mut longest: Option<(Time, u64)> = None;
            for position in under_way {
                let transfer = &self.transfers[position];
                let piece = slot - transfer.hop.slot;
                let (time, stripe) = self.streams[transfer.stream].longest[piece as usize];
                let taken = transfer.circuit.delay.plus(time)?;
                if longest.is_none_or(|(most, _)| taken > most) {
                    let offset = (position - first) as u64 * u64::from(plan.repetition.stripes);
                    longest = Some((taken, index + offset + u64::from(stripe)));
                }
                ends[position] = taken;
            }
            // The last piece ends last and overwrites the ends of earlier pieces.
            for end in &mut ends[first..first + count as usize] {
                *end = sending.plus(*end)?;
            }
            now = longest.map_or(Ok(sending), |(taken, _)| sending.plus(taken))?;
            check_limit(run.limit, now)?;
            critical_path.extend(longest.map(|(_, transfer)| Critical {
                transfer: transfer as usize,
                start,
                end: now,
            }));
            columns.start.push(start);
            columns.end.push(now);
            columns.reconfiguration.push(before);
            columns
                .lightpaths
                .push(count * u64::from(plan.repetition.stripes));
            index += count * u64::from(plan.repetition.stripes);
        }
        self.add_to_ledger(circuits, &ends, ledger)?;
        Ok(Timing {
            slots: columns,
            critical_path,
            reconfigurations: charging.reconfigurations(),
        })
    }

    /// Adds each first transfer and all its copies to the ledger. `ends` contains the end of the
    /// last copy, indexed by transfer.
    fn add_to_ledger(
        &self,
        circuits: &dyn Circuits,
        ends: &[Time],
        ledger: &mut LineLedger,
    ) -> Result<(), SimulationError> {
        let copies = self.plan.repetition.copies();
        for (transfer, &end) in self.transfers.iter().zip(ends) {
            let stream = &self.streams[transfer.stream];
            let held_for_delay = match circuits.lines().held_for_delay {
                true => u128::from(transfer.circuit.delay.ps()) * u128::from(copies),
                false => 0,
            };
            let sums = Sums {
                messages: copies,
                held: stream.sending + held_for_delay,
                bytes: stream.bytes,
            };
            ledger.add_messages(&transfer.hop, &transfer.circuit, &sums, end)?;
        }
        Ok(())
    }

    fn without_barriers(
        &self,
        circuits: &dyn Circuits,
        run: PlanRun,
        ledger: &mut LineLedger,
    ) -> Result<Timing, SimulationError> {
        let change = circuits.change()?;
        let retune = match change.first_free {
            true => Time::ZERO,
            false => change.setup,
        };
        let waits = self.waits();
        let slots = self.plan.slots() as usize;
        let mut columns = SlotColumns {
            start: vec![Time::from_ps(u64::MAX); slots],
            end: vec![Time::ZERO; slots],
            reconfiguration: vec![Time::ZERO; slots],
            lightpaths: vec![0; slots],
        };
        let mut started: Vec<Vec<PieceRun>> = Vec::with_capacity(self.transfers.len());
        let mut ends = Vec::with_capacity(self.transfers.len());
        let mut spans = SlotSpans::default();
        for (position, transfer) in self.transfers.iter().enumerate() {
            let times = PieceTimes {
                pieces: self.plan.repetition.pieces,
                retune,
                taken: self.taken(position)?,
                limit: run.limit,
            };
            let runs = piece_runs::starts(times, &waits[position], &started)?;
            let first_slot = transfer.hop.slot as usize;
            columns.reconfiguration[first_slot] = retune;
            let mut end = Time::ZERO;
            for run in &runs {
                end = run.last_start()?.plus(times.taken)?;
                let slot = first_slot + run.first as usize;
                spans.add(&mut columns, slot, run, times.taken)?;
            }
            let slots = first_slot..first_slot + self.plan.repetition.pieces as usize;
            for lightpaths in &mut columns.lightpaths[slots] {
                *lightpaths += u64::from(self.plan.repetition.stripes);
            }
            ends.push(end);
            started.push(runs);
        }
        spans.close(&mut columns);
        self.add_to_ledger(circuits, &ends, ledger)?;
        let tuned = |time: &&Time| **time > Time::ZERO;
        Ok(Timing {
            reconfigurations: columns.reconfiguration.iter().filter(tuned).count() as u64,
            slots: columns,
            critical_path: self.critical_path(&ends, &started, &waits)?,
        })
    }

    /// Returns the time of a piece on the circuit of the transfer with index `position`.
    fn taken(&self, position: usize) -> Result<Time, UnitError> {
        self.transfers[position].circuit.delay.plus(self.max)
    }

    /// Returns the waits of each transfer, indexed by transfer. A wait names a transfer of an
    /// earlier slot for which the pieces wait.
    fn waits(&self) -> Vec<Vec<Wait>> {
        let combines = self.plan.schedule.collective.combines();
        // Transfers that bring each stream to each rank, and transfers that read it there.
        let mut brought: FxHashMap<(u32, usize), Vec<usize>> = FxHashMap::default();
        let mut read: FxHashMap<(u32, usize), Vec<usize>> = FxHashMap::default();
        let mut waits = Vec::with_capacity(self.transfers.len());
        for (position, transfer) in self.transfers.iter().enumerate() {
            let Hop { from, to, slot, .. } = transfer.hop;
            let (source, destination) = ((from, transfer.stream), (to, transfer.stream));
            let earlier = |table: &FxHashMap<_, Vec<usize>>, key| {
                let transfers = table.get(&key).into_iter().flatten().copied();
                transfers
                    .filter(|&other| self.transfers[other].hop.slot < slot)
                    .collect::<Vec<usize>>()
            };
            let mut ended = earlier(&brought, source);
            let mut begun = Vec::new();
            if combines {
                ended.extend(earlier(&brought, destination));
                begun = earlier(&read, destination);
            }
            let ended = ended.into_iter().map(|on| Wait {
                on,
                after: self.taken(on).unwrap_or_default(),
            });
            let begun = begun.into_iter().map(|on| Wait {
                on,
                after: Time::ZERO,
            });
            waits.push(begun.chain(ended).collect());
            brought.entry(destination).or_default().push(position);
            read.entry(source).or_default().push(position);
        }
        waits
    }

    /// Returns the critical path; each of its pieces waited last for the piece before it.
    fn critical_path(
        &self,
        ends: &[Time],
        started: &[Vec<PieceRun>],
        waits: &[Vec<Wait>],
    ) -> Result<Vec<Critical>, SimulationError> {
        let mut path = Vec::new();
        let last = (0..ends.len()).rev().max_by_key(|&position| ends[position]);
        let mut next =
            last.map(|position| (position, self.plan.repetition.pieces - 1, ends[position]));
        while let Some((position, piece, end)) = next {
            interrupt::check();
            let start = Time::from_ps(end.ps().saturating_sub(self.taken(position)?.ps()));
            next = match run_of(&started[position], piece).cause {
                Cause::None => None,
                Cause::PieceBefore => Some((position, piece - 1, start)),
                Cause::Wait(number) => {
                    let wait = &waits[position][number as usize];
                    let began = Time::from_ps(start.ps().saturating_sub(wait.after.ps()));
                    Some((wait.on, piece, began.plus(self.taken(wait.on)?)?))
                }
            };
            path.push(Critical {
                transfer: self.plan.number(position, 0, piece) as usize,
                start: next.map_or(Time::ZERO, |_| start),
                end,
            });
        }
        path.reverse();
        Ok(path)
    }
}
