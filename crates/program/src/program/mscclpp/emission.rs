//! Operations of MSCCL++ that execute a program.
//!
//! Each rank executes its instructions one after another. Their order is that of their levels: an
//! instruction is one level above the latest instruction that must be complete before it. A message
//! becomes a put by its sender into a place at its receiver, and a signal for which the receiver
//! waits:
//!
//! - The place is the destination of the receive, if no earlier instruction of the receiver
//!   accesses these chunks. Nothing can then be wrong with data that arrive early.
//! - Otherwise the place is scratch for this message alone. The receiver copies the data or adds
//!   them.
//!
//! A rank signals at first that it has begun its call. Its senders wait for this signal. No put
//! waits for anything else, so that the order of the levels cannot lead to a deadlock.
//!
//! With packets, all places are in scratch, and readers of packets wait for them. There are no
//! signals.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::super::execution_order::{OrderedInstruction, execution_order};
use super::super::{ChunkBuffer, CollectiveProgram, Instruction, Operand, Operation, ProgramError};
use super::threads::{Access, Threads};
use super::{MAX_BUFFERS_PER_OPERATION, MAX_CHANNELS_PER_OPERATION};
use opticoll_base::interrupt;

/// Index of memory channels, and of port channels, in `CHANNEL_TYPES`.
pub(super) const MEMORY: usize = 0;
pub(super) const PORT: usize = 1;

/// Manner in which the operations move data.
#[derive(Clone, Copy)]
pub(super) struct Manner {
    pub(super) in_place: bool,
    /// True if messages are packets in scratch.
    pub(super) packets: bool,
    /// True if each operand has one chunk, so that equal parts of operands are equal parts of
    /// chunks.
    pub(super) single_chunks: bool,
}

/// Consecutive chunks of a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) rank: u32,
    pub(super) buffer: ChunkBuffer,
    pub(super) first: u32,
    pub(super) count: u32,
}

/// Connection to a peer: its rank, and the channel of the program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Link {
    pub(super) peer: u32,
    pub(super) channel: u32,
}

/// Operation without its thread block.
pub(super) struct Emitted {
    pub(super) name: &'static str,
    pub(super) sources: Vec<Span>,
    pub(super) destinations: Vec<Span>,
    pub(super) links: Vec<Link>,
    /// Type of the channels.
    pub(super) channel_type: Option<usize>,
}

/// Operations of all ranks, and the number of chunks of scratch of each.
pub(super) struct Emission {
    pub(super) operations: Vec<Vec<Emitted>>,
    pub(super) scratch: Vec<u32>,
}

/// Instructions of all ranks in order, and what follows from the order.
struct Sequences<'a> {
    program: &'a CollectiveProgram,
    manner: Manner,
    order: Vec<OrderedInstruction>,
    levels: Vec<u32>,
    /// Instructions of each rank, by level.
    of_rank: Vec<Vec<usize>>,
    /// Place of the message that an instruction receives, and of the one that it sends.
    received_at: FxHashMap<usize, Span>,
    sent_to: FxHashMap<usize, Span>,
    /// Receives whose place is scratch.
    staged: BTreeSet<usize>,
    scratch: Vec<u32>,
}

pub(super) fn emit(program: &CollectiveProgram, manner: Manner) -> Result<Emission, ProgramError> {
    let mut sequences = Sequences::new(program, manner)?;
    sequences.choose_places();
    let mut operations = Vec::new();
    for rank in 0..program.ranks.len() as u32 {
        operations.push(Emitter::new(&sequences, rank).emit()?);
    }
    Ok(Emission {
        operations,
        scratch: sequences.scratch,
    })
}

/// Returns whether every rank to which a rank sends is known to have begun its call before the
/// sender ends its own. Without signals, this is what keeps two calls apart.
pub(super) fn senders_hear_receivers(program: &CollectiveProgram) -> Result<bool, ProgramError> {
    let manner = Manner {
        in_place: false,
        packets: true,
        single_chunks: false,
    };
    let sequences = Sequences::new(program, manner)?;
    let ranks = program.ranks.len();
    let mut known = vec![vec![false; ranks]; sequences.order.len()];
    let mut at_end = vec![vec![false; ranks]; ranks];
    for index in 0..sequences.order.len() {
        let rank = sequences.order[index].rank as usize;
        let mut heard = vec![false; ranks];
        heard[rank] = true;
        for before in sequences.before(index) {
            let both = heard.iter_mut().zip(&known[before]);
            both.for_each(|(heard, known)| *heard |= *known);
        }
        let ends = at_end[rank].iter_mut().zip(&heard);
        ends.for_each(|(end, heard)| *end |= *heard);
        known[index] = heard;
    }
    let mut receives = sequences.order.iter();
    Ok(receives.all(|one| match one.message {
        Some(sent) => {
            let sender = sequences.order[sent as usize].rank;
            at_end[sender as usize][one.rank as usize]
        }
        None => true,
    }))
}

impl<'a> Sequences<'a> {
    fn new(program: &'a CollectiveProgram, manner: Manner) -> Result<Sequences<'a>, ProgramError> {
        let mut sequences = Sequences {
            program,
            manner,
            order: execution_order(program)?,
            levels: Vec::new(),
            of_rank: vec![Vec::new(); program.ranks.len()],
            received_at: FxHashMap::default(),
            sent_to: FxHashMap::default(),
            staged: BTreeSet::new(),
            scratch: program.ranks.iter().map(|rank| rank.scratch).collect(),
        };
        for index in 0..sequences.order.len() {
            interrupt::check();
            let before = sequences.before(index);
            let level = before
                .into_iter()
                .map(|other| 1 + sequences.levels[other])
                .max();
            sequences.levels.push(level.unwrap_or(0));
            sequences.of_rank[sequences.order[index].rank as usize].push(index);
        }
        let Sequences {
            of_rank, levels, ..
        } = &mut sequences;
        for own in of_rank {
            own.sort_by_key(|&index| (levels[index], index));
        }
        Ok(sequences)
    }

    fn instruction(&self, index: usize) -> &'a Instruction {
        let OrderedInstruction {
            rank,
            thread_block,
            step,
            ..
        } = self.order[index];
        &self.program.ranks[rank as usize].thread_blocks[thread_block as usize].instructions
            [step as usize]
    }

    /// Returns the instructions that must be complete before an instruction.
    fn before(&self, index: usize) -> Vec<usize> {
        let one = self.order[index];
        let own = &self.of_rank[one.rank as usize];
        let place = |block: u32, step: u32| {
            let is_it = |&&other: &&usize| {
                let other = self.order[other];
                (other.thread_block, other.step) == (block, step)
            };
            own.iter().rev().find(is_it).copied()
        };
        let previous = one.step.checked_sub(1);
        let previous = previous.and_then(|step| place(one.thread_block, step));
        let waits = self.instruction(index).waits_for;
        let waits = waits.and_then(|on| place(on.thread_block, on.step));
        let sent = one.message.map(|sent| sent as usize);
        [previous, waits, sent].into_iter().flatten().collect()
    }

    fn span(&self, rank: u32, operand: Operand, count: u32) -> Span {
        Span {
            rank,
            buffer: operand.buffer,
            first: operand.offset as u32,
            count,
        }
    }

    /// Returns the memory and the first chunk of a span.
    fn address(&self, span: Span) -> (ChunkBuffer, i64) {
        let in_place = self.manner.in_place;
        let (memory, first) = self.program.address(span.rank, span.buffer, in_place);
        (memory, first + i64::from(span.first))
    }

    /// Chooses the place of each message at its receiver.
    fn choose_places(&mut self) {
        for rank in 0..self.program.ranks.len() {
            // First instruction that accesses each chunk of memory.
            let mut first_access: FxHashMap<(ChunkBuffer, i64), usize> = FxHashMap::default();
            for (position, &index) in self.of_rank[rank].iter().enumerate() {
                let one = self.instruction(index);
                let used = [
                    (one.operation.reads_source(), one.source),
                    (one.operation.writes_destination(), one.destination),
                ];
                for (_, operand) in used.into_iter().filter(|(used, _)| *used) {
                    let span = self.span(rank as u32, operand, one.count);
                    let (memory, first) = self.address(span);
                    for chunk in first..first + i64::from(one.count) {
                        first_access.entry((memory, chunk)).or_insert(position);
                    }
                }
            }
            for (position, &index) in self.of_rank[rank].iter().enumerate() {
                let Some(sent) = self.order[index].message else {
                    continue;
                };
                let one = self.instruction(index);
                let mut place = self.span(rank as u32, one.destination, one.count);
                let (memory, first) = self.address(place);
                let mut chunks = first..first + i64::from(one.count);
                let is_plain = matches!(
                    one.operation,
                    Operation::Receive | Operation::ReceiveCopySend
                );
                let is_free =
                    chunks.all(|chunk| first_access.get(&(memory, chunk)) == Some(&position));
                if self.manner.packets || !is_plain || !is_free {
                    place.buffer = ChunkBuffer::Scratch;
                    place.first = self.scratch[rank];
                    self.scratch[rank] += one.count;
                    self.staged.insert(index);
                }
                self.received_at.insert(index, place);
                self.sent_to.insert(sent as usize, place);
            }
        }
    }
}

/// Sum that waits for more messages to add.
struct Sum {
    links: Vec<Link>,
    sources: Vec<Span>,
    destination: Span,
}

/// Operations of one rank.
struct Emitter<'s, 'a> {
    sequences: &'s Sequences<'a>,
    rank: u32,
    operations: Vec<Emitted>,
    threads: Threads,
    sum: Option<Sum>,
}

impl<'s, 'a> Emitter<'s, 'a> {
    fn new(sequences: &'s Sequences<'a>, rank: u32) -> Emitter<'s, 'a> {
        Emitter {
            sequences,
            rank,
            operations: Vec::new(),
            threads: Threads::default(),
            sum: None,
        }
    }

    fn emit(mut self) -> Result<Vec<Emitted>, ProgramError> {
        let own = &self.sequences.of_rank[self.rank as usize];
        if !self.sequences.manner.packets {
            let of = |wanted: fn(Operation) -> bool, from: bool| -> BTreeSet<Link> {
                let used = |index: &usize| wanted(self.sequences.instruction(*index).operation);
                let own = own.iter().filter(|index| used(index));
                own.filter_map(|&index| self.link(index, from)).collect()
            };
            let (from, to) = (of(Operation::receives, true), of(Operation::sends, false));
            self.signal(from.into_iter().collect());
            self.wait(to.into_iter().collect());
        }
        let levels = &self.sequences.levels;
        for level in own.chunk_by(|&one, &other| levels[one] == levels[other]) {
            interrupt::check();
            self.level(level)?;
        }
        self.end_sum();
        Ok(self.operations)
    }

    /// Returns the connection by which an instruction receives or sends.
    fn link(&self, index: usize, receives: bool) -> Option<Link> {
        let one = self.sequences.order[index];
        let rank = &self.sequences.program.ranks[one.rank as usize];
        let block = &rank.thread_blocks[one.thread_block as usize];
        let peer = if receives {
            block.receives_from
        } else {
            block.sends_to
        };
        peer.map(|peer| Link {
            peer,
            channel: block.channel,
        })
    }

    /// Adds the operations of the instructions of one level, which do not depend on each other.
    fn level(&mut self, level: &[usize]) -> Result<(), ProgramError> {
        let operation = |index: usize| self.sequences.instruction(index).operation;
        if let [only] = *level {
            if operation(only) == Operation::Nop {
                return Ok(());
            }
            if operation(only) == Operation::ReceiveReduceCopy {
                self.continue_sum(only);
                return Ok(());
            }
        }
        self.end_sum();
        let mut puts = Vec::new();
        for &index in level
            .iter()
            .filter(|index| operation(**index) == Operation::Send)
        {
            puts.extend(self.put_of(index, self.source(index)));
        }
        self.put(puts);
        let receives = level.iter().filter(|index| operation(**index).receives());
        let links = receives
            .filter_map(|&index| self.link(index, true))
            .collect();
        self.wait(links);
        let (mut forwards, mut signals) = (Vec::new(), Vec::new());
        for &index in level {
            let destination = self.destination(index);
            match operation(index) {
                Operation::Send | Operation::Nop => {}
                Operation::Copy => self.copy(self.source(index), destination),
                Operation::Reduce => {
                    self.add_up(
                        "re",
                        vec![destination, self.source(index)],
                        vec![destination],
                    );
                }
                Operation::Receive | Operation::ReceiveCopySend => {
                    let held = self.received(index);
                    if self.sequences.staged.contains(&index) {
                        self.copy(held, destination);
                    }
                    if operation(index).sends() {
                        forwards.extend(self.put_of(index, held));
                    }
                }
                Operation::ReceiveReduceCopy => {
                    let sources = vec![self.source(index), self.received(index)];
                    self.add_up("re", sources, vec![destination]);
                }
                Operation::ReceiveReduceSend | Operation::ReceiveReduceCopySend => {
                    let held = self.received(index);
                    let sources = vec![self.source(index), held];
                    let stores = operation(index).writes_destination();
                    let sum = if stores { destination } else { held };
                    let put = self.put_of(index, sum);
                    match put {
                        Some((_, to, link)) if self.channel_type(link.peer) == MEMORY => {
                            self.add_up("res", sources, vec![sum, to]);
                            signals.push(link);
                        }
                        put => {
                            self.add_up("re", sources, vec![sum]);
                            forwards.extend(put);
                        }
                    }
                }
            }
        }
        if !self.sequences.manner.packets {
            self.signal(signals);
        }
        self.put(forwards);
        Ok(())
    }

    fn source(&self, index: usize) -> Span {
        let one = self.sequences.instruction(index);
        self.sequences.span(self.rank, one.source, one.count)
    }

    fn destination(&self, index: usize) -> Span {
        let one = self.sequences.instruction(index);
        self.sequences.span(self.rank, one.destination, one.count)
    }

    /// Returns where the message that an instruction receives arrives.
    fn received(&self, index: usize) -> Span {
        self.sequences.received_at[&index]
    }

    /// Returns the source, the place and the connection of the message that an instruction sends.
    fn put_of(&self, index: usize, source: Span) -> Option<(Span, Span, Link)> {
        let place = *self.sequences.sent_to.get(&index)?;
        Some((source, place, self.link(index, false)?))
    }

    fn channel_type(&self, peer: u32) -> usize {
        let size = self.sequences.program.ranks_per_server;
        let is_near = size.is_none_or(|size| self.rank / size == peer / size);
        if is_near { MEMORY } else { PORT }
    }

    /// Returns the operands of an operation on `span`: chunk by chunk, or the whole span.
    fn parts(&self, span: Span) -> Vec<Span> {
        if !self.sequences.manner.single_chunks {
            return vec![span];
        }
        let chunk = |first| Span {
            first,
            count: 1,
            ..span
        };
        (span.first..span.first + span.count).map(chunk).collect()
    }

    fn push(&mut self, operation: Emitted) {
        self.operations.push(operation);
    }

    /// Adds an operation that only has a name, and connections.
    fn push_named(&mut self, name: &'static str, links: Vec<Link>, channel_type: Option<usize>) {
        self.push(Emitted {
            name,
            sources: Vec::new(),
            destinations: Vec::new(),
            links,
            channel_type,
        });
    }

    fn meet(&mut self) {
        self.push_named("nop", Vec::new(), None);
        self.threads.meet();
    }

    /// Adds an operation with data, after a `nop` if its threads must wait for one another before.
    fn push_data(&mut self, operation: Emitted) {
        let packets = self.sequences.manner.packets;
        let is_packet = |span: &Span| packets && span.buffer == ChunkBuffer::Scratch;
        let spans = operation.sources.iter().map(|span| (span, false));
        let spans = spans.chain(operation.destinations.iter().map(|span| (span, true)));
        let as_packets = spans.clone().any(|(span, _)| is_packet(span));
        let accesses = spans.filter(|(span, _)| !is_packet(span));
        let accesses = accesses.map(|(span, writes)| {
            let (memory, first) = self.sequences.address(*span);
            Access {
                line: 0,
                rank: span.rank,
                memory: (memory, first, first + i64::from(span.count)),
                writes,
                by_port: operation.channel_type == Some(PORT),
                as_packets,
                begin: first,
                packets: None,
            }
        });
        let accesses: Vec<Access> = accesses.collect();
        if self.threads.access(accesses.clone()).is_some() {
            self.meet();
            self.threads.access(accesses);
        }
        self.push(operation);
    }

    fn signal(&mut self, links: Vec<Link>) {
        if !links.is_empty() && self.threads.unfinished().is_some() {
            self.meet();
        }
        self.push_groups("signal", links);
    }

    fn wait(&mut self, links: Vec<Link>) {
        if links.is_empty() || self.sequences.manner.packets {
            return;
        }
        self.push_groups("wait", links);
        self.threads.wait(0);
    }

    fn push_groups(&mut self, name: &'static str, links: Vec<Link>) {
        for channel_type in [MEMORY, PORT] {
            let own = links.iter().copied();
            let own: Vec<Link> = own
                .filter(|link| self.channel_type(link.peer) == channel_type)
                .collect();
            for group in own.chunks(MAX_CHANNELS_PER_OPERATION) {
                self.push_named(name, group.to_vec(), Some(channel_type));
            }
        }
    }

    fn copy(&mut self, source: Span, destination: Span) {
        if self.sequences.address(source) == self.sequences.address(destination) {
            return;
        }
        let from_packets = self.sequences.manner.packets && source.buffer == ChunkBuffer::Scratch;
        let both = self.parts(source).into_iter().zip(self.parts(destination));
        for (source, destination) in both {
            self.push_data(Emitted {
                name: if from_packets { "upkt" } else { "copy" },
                sources: vec![source],
                destinations: vec![destination],
                links: Vec::new(),
                channel_type: None,
            });
        }
    }

    /// Adds operations that store the sum of `sources` in all `destinations`.
    fn add_up(&mut self, name: &'static str, sources: Vec<Span>, destinations: Vec<Span>) {
        let packets = self.sequences.manner.packets
            && sources
                .iter()
                .any(|span| span.buffer == ChunkBuffer::Scratch);
        let name = match (name, packets) {
            ("re", true) => "repkt",
            ("res", true) => "respkt",
            _ => name,
        };
        let parts = |spans: &[Span], part: usize| -> Vec<Span> {
            spans.iter().map(|span| self.parts(*span)[part]).collect()
        };
        let operations: Vec<Emitted> = (0..self.parts(sources[0]).len())
            .map(|part| Emitted {
                name,
                sources: parts(&sources, part),
                destinations: parts(&destinations, part),
                links: Vec::new(),
                channel_type: (destinations.len() > 1).then_some(MEMORY),
            })
            .collect();
        for operation in operations {
            self.push_data(operation);
        }
    }

    /// Adds a message to the current sum, or begins a new sum.
    fn continue_sum(&mut self, index: usize) {
        let (source, destination) = (self.source(index), self.destination(index));
        let received = self.received(index);
        let link = self.link(index, true);
        let continues = self.sum.as_ref().is_some_and(|sum| {
            sum.destination == destination
                && source == destination
                && sum.sources.len() < MAX_BUFFERS_PER_OPERATION
        });
        if !continues {
            self.end_sum();
        }
        let sum = self.sum.get_or_insert_with(|| Sum {
            links: Vec::new(),
            sources: vec![source],
            destination,
        });
        sum.links.extend(link);
        sum.sources.push(received);
    }

    fn end_sum(&mut self) {
        if let Some(sum) = self.sum.take() {
            self.wait(sum.links);
            self.add_up("re", sum.sources, vec![sum.destination]);
        }
    }

    /// Adds puts of sources into places at other ranks, and signals them.
    fn put(&mut self, puts: Vec<(Span, Span, Link)>) {
        let packets = self.sequences.manner.packets;
        let near = |put: &&(Span, Span, Link)| self.channel_type(put.2.peer) == MEMORY;
        let (near, far): (Vec<_>, Vec<_>) = puts.iter().partition(near);
        for buffer in [
            ChunkBuffer::Input,
            ChunkBuffer::Output,
            ChunkBuffer::Scratch,
        ] {
            let own = |puts: &[&(Span, Span, Link)]| -> Vec<(Span, Span, Link)> {
                let own = puts.iter().filter(|(source, ..)| source.buffer == buffer);
                own.map(|put| **put).collect()
            };
            let name = match (packets, buffer) {
                (false, _) => "put",
                (true, ChunkBuffer::Scratch) => "rppkt",
                (true, _) => "ppkt",
            };
            let own_far = own(&far);
            let (mut first, mut last) = (Vec::new(), Vec::new());
            for &(source, place, link) in &own_far {
                let both = self.parts(source).into_iter().zip(self.parts(place));
                first.extend(both.map(|(source, place)| (source, place, link)));
                last.extend(first.pop());
            }
            if !first.is_empty() {
                self.put_group("put", &first, PORT, false);
                self.meet();
            }
            // This signals, too.
            if !last.is_empty() && self.threads.unfinished_writes().is_some() {
                self.meet();
            }
            self.put_group("pwsf", &last, PORT, false);
            let own_near = own(&near);
            let parts = own_near.iter().flat_map(|&(source, place, link)| {
                let both = self.parts(source).into_iter().zip(self.parts(place));
                both.map(move |(source, place)| (source, place, link))
            });
            let parts: Vec<_> = parts.collect();
            self.put_group(name, &parts, MEMORY, name == "rppkt");
        }
        if !packets {
            self.signal(near.iter().map(|(.., link)| *link).collect());
        }
    }

    /// Adds puts from one buffer by channels of one type.
    fn put_group(
        &mut self,
        name: &'static str,
        puts: &[(Span, Span, Link)],
        channel_type: usize,
        one_each: bool,
    ) {
        let most = if one_each {
            1
        } else {
            MAX_CHANNELS_PER_OPERATION
        };
        for group in puts.chunks(most) {
            let links = group.iter().map(|(.., link)| *link);
            self.push_data(Emitted {
                name,
                sources: group.iter().map(|(source, ..)| *source).collect(),
                destinations: group.iter().map(|(_, place, _)| *place).collect(),
                links: links.filter(|_| channel_type == PORT).collect(),
                channel_type: Some(channel_type),
            });
        }
    }
}
