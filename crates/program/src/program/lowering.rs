//! Lowering of a schedule to a program.
//!
//! Each transfer becomes a message, or several messages if its chunks are not contiguous in memory.
//! A rank has a thread block for each rank to which it sends, and for each rank from which it
//! receives. Where possible, a thread block both receives and sends, so that a receive and a send
//! can be fused. Pairs of ranks between which the rank forwards most chunks are chosen first.
//!
//! A multicast becomes one message to each receiver, and an aggregation one message from each
//! sender, whose chunks the receiver adds: the same data by other loads of links. Most files of
//! programs refuse such a program ([`CollectiveProgram::switched`]).
//!
//! A chunk is in the input until a message with it arrives. Then it is in the output or, if it is
//! not part of the rank's result, in scratch. Such programs are also correct in place, except for
//! an all_to_all, whose input and output share memory among different chunks.
//!
//! # Order
//!
//! Within a step, messages are ordered in rounds: the k-th send of every thread block, then the
//! k-th receive. If a receive overwrites chunks that a send of the same step reads, the send comes
//! first. All ranks use the order (step, round, sends before receives). Every instruction therefore
//! waits only for earlier instructions, for any amount of buffer space of a channel.

use rustc_hash::FxHashMap;

use super::block_layout::{UnplacedInstruction, lay_out_blocks};
use super::switched::switched_chunks;
use super::{
    ChunkBuffer, CollectiveProgram, Instruction, MAX_COUNT, Operand, Operation, ProgramError,
    RankProgram, ThreadBlock,
};
use opticoll_base::interrupt;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_plan::schedule::Schedule;

/// Maximum number of thread blocks of a rank on one channel, as in the MSCCL runtimes.
const MAX_BLOCKS_PER_CHANNEL: u32 = 32;

/// Part of a transfer; the chunks of the part are contiguous in the memories of both ranks.
struct Message {
    source: u32,
    destination: u32,
    read: Operand,
    /// Operand to which a reduction adds the received chunks; `None` for copies.
    added: Option<Operand>,
    written: Operand,
    chunk: u32,
    count: u32,
}

/// Instruction whose position in its thread block is not final.
struct Draft {
    operation: Operation,
    source: Operand,
    destination: Operand,
    chunk: u32,
    count: u32,
    waits_for: Vec<usize>,
    /// Step of the schedule in which the instruction sends.
    sent_in: Option<u32>,
    /// True if another instruction or the caller reads the value that this instruction writes.
    read: bool,
    /// Index of the draft with which this send was fused.
    fused: Option<usize>,
}

/// Draft instructions of a rank, and the state of its chunks.
#[derive(Default)]
struct Lowered {
    drafts: Vec<Draft>,
    /// Indices of the drafts of each thread block, in order.
    blocks: Vec<Vec<usize>>,
    peers: Vec<(Option<u32>, Option<u32>, u32)>,
    sends: FxHashMap<u32, usize>,
    receives: FxHashMap<u32, usize>,
    block_of: Vec<usize>,
    chunks: FxHashMap<u32, ChunkState>,
    scratch: u32,
    step: u32,
}

#[derive(Default, Clone)]
struct ChunkState {
    /// Location of the chunk after the first message with it; `None` before this message.
    location: Option<Operand>,
    write: Option<usize>,
    reads: Vec<usize>,
}

pub(super) fn lower(schedule: &Schedule, name: String) -> Result<CollectiveProgram, ProgramError> {
    let collective = schedule.collective;
    if collective.kind() == CollectiveKind::Barrier {
        let problem = "this plan has no program: a barrier moves no chunks";
        return Err(ProgramError::Refused(problem.into()));
    }
    if collective.demand().is_some() {
        let problem = "this plan has no program: its blocks differ in size, but all chunks of a \
                       program have the same size";
        return Err(ProgramError::Refused(problem.into()));
    }
    let mut ranks: Vec<Lowered> = connect(schedule);
    for step in 0..schedule.steps() {
        interrupt::check();
        lower_step(schedule, step, &mut ranks);
    }
    let ranks = ranks
        .into_iter()
        .enumerate()
        .map(|(rank, lowered)| lowered.finish(&collective, rank as u32));
    Ok(CollectiveProgram {
        name,
        collective,
        protocol: "Simple".into(),
        in_place: collective.kind() != CollectiveKind::AllToAll,
        out_of_place: true,
        switched: switched_chunks(schedule),
        ranks_per_server: None,
        double_scratch: false,
        ranks: ranks.collect(),
    })
}

/// Returns the location of `chunk` in the input of `rank`; `None` if it is not part of the input.
pub(super) fn input_operand(collective: &Collective, rank: u32, chunk: u32) -> Option<Operand> {
    let pieces = collective.pieces();
    let (block, part) = (chunk / pieces, chunk % pieces);
    let ranks = collective.ranks();
    let offset = match collective.kind() {
        CollectiveKind::AllGather | CollectiveKind::Gather => (block == rank).then_some(part),
        CollectiveKind::AllToAll => {
            (block / ranks == rank).then_some(block % ranks * pieces + part)
        }
        CollectiveKind::Broadcast | CollectiveKind::Scatter => {
            (rank == collective.root()).then_some(chunk)
        }
        _ => Some(chunk),
    };
    offset.map(|offset| operand(ChunkBuffer::Input, offset))
}

/// Returns the location of `chunk` in the output of `rank`; `None` if it is not part of the output.
pub(super) fn output_operand(collective: &Collective, rank: u32, chunk: u32) -> Option<Operand> {
    let pieces = collective.pieces();
    let (block, part) = (chunk / pieces, chunk % pieces);
    let ranks = collective.ranks();
    let offset = match collective.kind() {
        CollectiveKind::ReduceScatter | CollectiveKind::Scatter => (block == rank).then_some(part),
        CollectiveKind::AllToAll => {
            (block % ranks == rank).then_some(block / ranks * pieces + part)
        }
        CollectiveKind::Reduce | CollectiveKind::Gather => {
            (rank == collective.root()).then_some(chunk)
        }
        _ => Some(chunk),
    };
    offset.map(|offset| operand(ChunkBuffer::Output, offset))
}

fn operand(buffer: ChunkBuffer, offset: u32) -> Operand {
    let offset = offset as i32;
    Operand {
        rank: None,
        buffer,
        offset,
    }
}

/// Returns the location `chunks` chunks after `first`.
fn shifted(first: Operand, chunks: u32) -> Operand {
    Operand {
        offset: first.offset + chunks as i32,
        ..first
    }
}

/// Returns whether the location `next` is `distance` chunks after `first`.
fn follows(first: Operand, distance: u32, next: Operand) -> bool {
    shifted(first, distance) == next
}

/// Creates the thread blocks of all ranks, without instructions.
fn connect(schedule: &Schedule) -> Vec<Lowered> {
    let ranks = schedule.collective.ranks();
    // Destinations and sources of each rank, indexed by rank.
    let mut ends: Vec<(Vec<u32>, Vec<u32>)> = vec![Default::default(); ranks as usize];
    // Number of chunks that a rank forwards, indexed by rank and by (previous rank, next rank).
    let mut forwarded: Vec<FxHashMap<(u32, u32), u64>> = vec![FxHashMap::default(); ranks as usize];
    let mut received_from: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let mut seen = FxHashMap::default();
    for step in 0..schedule.steps() {
        let transfers: Vec<_> = schedule.columns(step).transfers().collect();
        for transfer in &transfers {
            let (source, destination) = (transfer.source, transfer.destination);
            if seen.insert((source, destination), ()).is_none() {
                ends[source as usize].0.push(destination);
                ends[destination as usize].1.push(source);
            }
            for chunk in transfer.chunk..transfer.chunk + transfer.count {
                if let Some(&from) = received_from.get(&(source, chunk)) {
                    let pair = (from, destination);
                    *forwarded[source as usize].entry(pair).or_default() += 1;
                }
            }
        }
        for transfer in &transfers {
            for chunk in transfer.chunk..transfer.chunk + transfer.count {
                received_from.insert((transfer.destination, chunk), transfer.source);
            }
        }
    }
    let needs_several_channels = ends
        .iter()
        .any(|(to, from)| to.len().max(from.len()) > MAX_BLOCKS_PER_CHANNEL as usize);
    let channel = |from: u32, to: u32| {
        let distance = (to + ranks - from) % ranks;
        if needs_several_channels {
            (distance - 1) / MAX_BLOCKS_PER_CHANNEL
        } else {
            0
        }
    };
    let rows = ends.into_iter().zip(forwarded).enumerate();
    rows.map(|(rank, ((mut to, mut from), forwarded))| {
        let rank = rank as u32;
        let mut lowered = Lowered::default();
        let mut pairs: Vec<_> = forwarded.into_iter().collect();
        pairs.sort_by_key(|&(pair, chunks)| (std::cmp::Reverse(chunks), pair));
        let join = |lowered: &mut Lowered, to: Option<u32>, from: Option<u32>| {
            let channel = to
                .map(|to| channel(rank, to))
                .or_else(|| Some(channel(from?, rank)));
            let block = lowered.peers.len();
            lowered.peers.push((to, from, channel.unwrap_or(0)));
            lowered.blocks.push(Vec::new());
            lowered.sends.extend(to.map(|to| (to, block)));
            lowered.receives.extend(from.map(|from| (from, block)));
        };
        to.sort_unstable();
        from.sort_unstable();
        let preferred_pairs = pairs.into_iter().map(|(pair, _)| pair);
        for (source, destination) in preferred_pairs {
            let are_free = from.contains(&source) && to.contains(&destination);
            if are_free && channel(source, rank) == channel(rank, destination) {
                from.retain(|other| *other != source);
                to.retain(|other| *other != destination);
                join(&mut lowered, Some(destination), Some(source));
            }
        }
        for destination in to {
            let place = from
                .iter()
                .position(|&source| channel(source, rank) == channel(rank, destination));
            let source = place.map(|place| from.remove(place));
            join(&mut lowered, Some(destination), source);
        }
        for source in from {
            join(&mut lowered, None, Some(source));
        }
        lowered
    })
    .collect()
}

fn lower_step(schedule: &Schedule, step: usize, ranks: &mut [Lowered]) {
    let collective = &schedule.collective;
    let mut messages: Vec<Message> = Vec::new();
    // Locations of the chunks that arrive in the step, indexed by (rank, chunk).
    let mut arrived: FxHashMap<(u32, u32), Operand> = FxHashMap::default();
    for transfer in schedule.columns(step).transfers() {
        let (source, destination) = (transfer.source, transfer.destination);
        for chunk in transfer.chunk..transfer.chunk + transfer.count {
            let read = ranks[source as usize].location(collective, source, chunk);
            let receiver = &mut ranks[destination as usize];
            let added =
                (transfer.action.adds()).then(|| receiver.location(collective, destination, chunk));
            let written = *arrived
                .entry((destination, chunk))
                .or_insert_with(|| receiver.target(collective, destination, chunk));
            match messages.last_mut() {
                Some(last)
                    if (last.source, last.destination) == (source, destination)
                        && last.chunk + last.count == chunk
                        && last.count < MAX_COUNT
                        && follows(last.read, last.count, read)
                        && follows(last.written, last.count, written)
                        && last.added.is_some() == added.is_some()
                        && last
                            .added
                            .zip(added)
                            .is_none_or(|(first, next)| follows(first, last.count, next)) =>
                {
                    last.count += 1;
                }
                _ => messages.push(Message {
                    source,
                    destination,
                    read,
                    added,
                    written,
                    chunk,
                    count: 1,
                }),
            }
        }
    }
    let mut by_rank: Vec<(Vec<usize>, Vec<usize>)> = vec![Default::default(); ranks.len()];
    for (index, message) in messages.iter().enumerate() {
        by_rank[message.source as usize].0.push(index);
        by_rank[message.destination as usize].1.push(index);
    }
    for (rank, (sends, receives)) in by_rank.into_iter().enumerate() {
        ranks[rank].add_rounds(step as u32, &messages, &sends, &receives);
    }
}

impl Lowered {
    /// Returns the location of the value of `chunk`. If the rank does not have the chunk, returns a
    /// location that nothing writes.
    fn location(&mut self, collective: &Collective, rank: u32, chunk: u32) -> Operand {
        self.arrived_location(chunk)
            .or_else(|| input_operand(collective, rank, chunk))
            .unwrap_or_else(|| self.allocate_scratch())
    }

    /// Returns the location to which a message writes `chunk`.
    fn target(&mut self, collective: &Collective, rank: u32, chunk: u32) -> Operand {
        self.arrived_location(chunk)
            .or_else(|| output_operand(collective, rank, chunk))
            .unwrap_or_else(|| self.allocate_scratch())
    }

    /// Returns the location of `chunk` if a message with it has arrived; otherwise `None`.
    fn arrived_location(&self, chunk: u32) -> Option<Operand> {
        self.chunks.get(&chunk).and_then(|state| state.location)
    }

    fn allocate_scratch(&mut self) -> Operand {
        self.scratch += 1;
        operand(ChunkBuffer::Scratch, self.scratch - 1)
    }

    /// Adds the sends and receives of a step, round by round.
    fn add_rounds(&mut self, step: u32, messages: &[Message], sends: &[usize], receives: &[usize]) {
        self.step = step;
        let mut to_send: Vec<Vec<usize>> = vec![Vec::new(); self.blocks.len()];
        let mut to_receive: Vec<Vec<usize>> = vec![Vec::new(); self.blocks.len()];
        let mut reading: FxHashMap<u32, Vec<(usize, usize)>> = FxHashMap::default();
        for &index in sends {
            let message = &messages[index];
            let block = self.sends[&message.destination];
            for chunk in message.chunk..message.chunk + message.count {
                let place = (block, to_send[block].len());
                reading.entry(chunk).or_default().push(place);
            }
            to_send[block].push(index);
        }
        for &index in receives {
            to_receive[self.receives[&messages[index].source]].push(index);
        }
        let mut sent = vec![0; self.blocks.len()];
        let longest = |lists: &[Vec<usize>]| lists.iter().map(Vec::len).max().unwrap_or(0);
        for round in 0..longest(&to_send).max(longest(&to_receive)) {
            for (block, list) in to_send.iter().enumerate() {
                if sent[block] <= round && round < list.len() {
                    self.send(block, &messages[list[round]]);
                    sent[block] = round + 1;
                }
            }
            for (block, list) in to_receive.iter().enumerate() {
                let Some(&index) = list.get(round) else {
                    continue;
                };
                let message = &messages[index];
                let overwritten = message.chunk..message.chunk + message.count;
                let first = overwritten
                    .filter_map(|chunk| reading.get(&chunk))
                    .flatten();
                for &(other, place) in first {
                    while sent[other] <= place {
                        self.send(other, &messages[to_send[other][sent[other]]]);
                        sent[other] += 1;
                    }
                }
                self.receive(block, message);
            }
        }
    }

    fn draft(&mut self, block: usize, draft: Draft) -> usize {
        let index = self.drafts.len();
        self.drafts.push(draft);
        self.block_of.push(block);
        self.blocks[block].push(index);
        index
    }

    fn send(&mut self, block: usize, message: &Message) {
        let index = self.drafts.len();
        let mut waits_for = Vec::new();
        for chunk in message.chunk..message.chunk + message.count {
            let state = self.chunks.entry(chunk).or_default();
            waits_for.extend(state.write);
            state.reads.push(index);
        }
        waits_for.sort_unstable();
        waits_for.dedup();
        let draft = Draft {
            operation: Operation::Send,
            source: message.read,
            destination: message.read,
            chunk: message.chunk,
            count: message.count,
            waits_for,
            sent_in: Some(self.step),
            read: false,
            fused: None,
        };
        self.draft(block, draft);
        self.fuse(block, index);
    }

    /// Fuses a send with the previous instruction of its thread block, if this instruction receives
    /// exactly the chunks that the send forwards.
    fn fuse(&mut self, block: usize, send: usize) {
        let drafts = &self.blocks[block];
        let before = drafts.len().checked_sub(2).map(|place| drafts[place]);
        let joined = before.filter(|&receive| {
            let (first, then) = (&self.drafts[receive], &self.drafts[send]);
            let received = (first.chunk, first.count, first.destination);
            matches!(
                first.operation,
                Operation::Receive | Operation::ReceiveReduceCopy
            ) && received == (then.chunk, then.count, then.source)
                && then.waits_for == [receive]
        });
        match joined {
            Some(receive) => {
                self.blocks[block].pop();
                self.drafts[send].fused = Some(receive);
                let sent_in = self.drafts[send].sent_in;
                let first = &mut self.drafts[receive];
                first.operation = match first.operation {
                    Operation::Receive => Operation::ReceiveCopySend,
                    _ => Operation::ReceiveReduceCopySend,
                };
                first.sent_in = sent_in;
            }
            None => {
                let writers = self.drafts[send].waits_for.clone();
                writers
                    .into_iter()
                    .for_each(|writer| self.drafts[writer].read = true);
            }
        }
    }

    fn receive(&mut self, block: usize, message: &Message) {
        let added = message.added.map(|first| self.added(block, message, first));
        let index = self.drafts.len();
        let mut waits_for = Vec::new();
        for place in 0..message.count {
            let state = self.chunks.entry(message.chunk + place).or_default();
            if let Some(write) = state.write {
                waits_for.push(write);
                if added.is_some() {
                    self.drafts[write].read = true;
                }
            }
            waits_for.append(&mut state.reads);
            state.write = Some(index);
            state.location = Some(shifted(message.written, place));
        }
        waits_for.sort_unstable();
        waits_for.dedup();
        let operation = match added {
            Some(_) => Operation::ReceiveReduceCopy,
            None => Operation::Receive,
        };
        let draft = Draft {
            operation,
            source: added.unwrap_or(message.written),
            destination: message.written,
            chunk: message.chunk,
            count: message.count,
            waits_for,
            sent_in: None,
            read: false,
            fused: None,
        };
        self.draft(block, draft);
    }

    /// Returns the location of the first chunk to which the reduction of `message` adds. At the
    /// start of the step, these chunks are at `first`. A chunk that has arrived in this step is at
    /// the destination of the message instead. If some chunks have arrived in this step, the
    /// function copies the others to the destination as well.
    fn added(&mut self, block: usize, message: &Message, first: Operand) -> Operand {
        let arrived: Vec<u32> = (0..message.count)
            .filter(|place| {
                let state = self.chunks.get(&(message.chunk + place));
                state.is_some_and(|state| state.location == Some(shifted(message.written, *place)))
            })
            .collect();
        if arrived.is_empty() {
            return first;
        }
        for place in (0..message.count).filter(|place| !arrived.contains(place)) {
            let index = self.drafts.len();
            let chunk = message.chunk + place;
            let state = self.chunks.entry(chunk).or_default();
            let waits_for = state
                .write
                .into_iter()
                .chain(state.reads.drain(..))
                .collect();
            let destination = shifted(message.written, place);
            (state.write, state.location) = (Some(index), Some(destination));
            let draft = Draft {
                operation: Operation::Copy,
                source: shifted(first, place),
                destination,
                chunk,
                count: 1,
                waits_for,
                sent_in: None,
                read: true,
                fused: None,
            };
            self.draft(block, draft);
        }
        message.written
    }

    /// Copies the initial chunks of the rank to its output, and arranges all instructions in thread
    /// blocks.
    fn finish(mut self, collective: &Collective, rank: u32) -> RankProgram {
        // The caller reads the output.
        for (&chunk, state) in &self.chunks {
            if let (Some(write), Some(_)) = (state.write, output_operand(collective, rank, chunk)) {
                self.drafts[write].read = true;
            }
        }
        self.copy_initial(collective, rank);
        for draft in &mut self.drafts {
            if draft.operation == Operation::ReceiveReduceCopySend && !draft.read {
                draft.operation = Operation::ReceiveReduceSend;
                draft.destination = draft.source;
            }
        }
        let scratch = self.pack_scratch();
        RankProgram {
            input: 0,
            output: 0,
            scratch,
            thread_blocks: self.place_instructions(),
        }
    }

    fn copy_initial(&mut self, collective: &Collective, rank: u32) {
        let mut copies: Vec<(u32, Operand, Operand, u32)> = Vec::new();
        for chunk in 0..collective.chunks() {
            let (Some(from), Some(to)) = (
                input_operand(collective, rank, chunk),
                output_operand(collective, rank, chunk),
            ) else {
                continue;
            };
            if self.arrived_location(chunk).is_some() {
                continue;
            }
            match copies.last_mut() {
                Some((_, first, target, count))
                    if *count < MAX_COUNT
                        && follows(*first, *count, from)
                        && follows(*target, *count, to) =>
                {
                    *count += 1;
                }
                _ => copies.push((chunk, from, to, 1)),
            }
        }
        if !copies.is_empty() && self.blocks.is_empty() {
            self.blocks.push(Vec::new());
            self.peers.push((None, None, 0));
        }
        for (chunk, source, destination, count) in copies {
            let draft = Draft {
                operation: Operation::Copy,
                source,
                destination,
                chunk,
                count,
                waits_for: Vec::new(),
                sent_in: None,
                read: true,
                fused: None,
            };
            self.draft(0, draft);
        }
    }

    /// Removes unused chunks of scratch. Returns the number of used chunks.
    fn pack_scratch(&mut self) -> u32 {
        let mut used = vec![false; self.scratch as usize];
        let is_scratch = |operand: Operand| operand.buffer == ChunkBuffer::Scratch;
        for draft in self.drafts.iter().filter(|draft| draft.fused.is_none()) {
            for operand in [draft.source, draft.destination] {
                if is_scratch(operand) {
                    let first = operand.offset as usize;
                    used[first..first + draft.count as usize].fill(true);
                }
            }
        }
        let mut next = 0;
        let places: Vec<i32> = used
            .iter()
            .map(|&used| {
                next += i32::from(used);
                next - 1
            })
            .collect();
        for draft in self.drafts.iter_mut().filter(|draft| draft.fused.is_none()) {
            for operand in [&mut draft.source, &mut draft.destination] {
                if is_scratch(*operand) {
                    operand.offset = places[operand.offset as usize];
                }
            }
        }
        next as u32
    }

    fn place_instructions(self) -> Vec<ThreadBlock> {
        let resolve = |mut draft: usize| {
            while let Some(into) = self.drafts[draft].fused {
                draft = into;
            }
            draft
        };
        let unplaced = |draft: &Draft| UnplacedInstruction {
            instruction: Instruction {
                operation: draft.operation,
                source: draft.source,
                destination: draft.destination,
                count: draft.count,
                waits_for: None,
                signals: false,
                sent_in: draft.sent_in,
                line: 0,
            },
            waits_for: draft.waits_for.iter().map(|&on| resolve(on)).collect(),
        };
        let instructions: Vec<UnplacedInstruction> = self.drafts.iter().map(unplaced).collect();
        let rows = self.blocks.iter().zip(&self.peers);
        let blocks = rows.map(|(drafts, &(sends_to, receives_from, channel))| {
            let block = ThreadBlock {
                sends_to,
                receives_from,
                channel,
                instructions: Vec::new(),
            };
            (0, block, drafts.clone())
        });
        lay_out_blocks(&instructions, blocks.collect())
    }
}
