//! Execution of a program with contributions in place of bytes. Checks that sends and receives
//! match, that there is no deadlock, and that the results are correct.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::contents::{Contents, Contribution, Multiset};
use super::form::{Effects, effects, named};
use super::layout::Layout;
use super::{Findings, ProgramFault, Site, instruction};
use crate::report::counted;
use opticoll_base::interrupt;
use opticoll_plan::collective::{Collective, CollectiveKind};
use opticoll_program::program::{ChunkBuffer, CollectiveProgram, Instruction, Operand, Operation};

pub(super) struct Run {
    pub(super) order: Vec<Site>,
    /// Index in `order` of the send whose message an instruction received; indexed as `order`.
    pub(super) received: Vec<Option<u32>>,
    pub(super) messages: u64,
    pub(super) chunks_sent: u64,
}

/// Messages from a rank to another rank on one channel.
#[derive(Default)]
struct Connection {
    sends: Vec<Site>,
    receives: Vec<Site>,
    in_flight: VecDeque<(u32, Vec<Multiset>)>,
    waiting: Option<usize>,
}

struct Progress {
    rank: u32,
    thread_block: u32,
    next: u32,
    length: u32,
    sends: Option<usize>,
    receives: Option<usize>,
    waiting: Vec<usize>,
}

struct Execution<'a> {
    program: &'a CollectiveProgram,
    layout: &'a Layout,
    findings: &'a mut Findings,
    contents: Contents,
    /// Multiset in each memory cell, indexed by rank and cell. A cell stores one chunk.
    cells: Vec<Vec<Multiset>>,
    /// Last instruction that wrote each memory cell, indexed by rank and cell.
    written_by: Vec<Vec<Option<Site>>>,
    connections: Vec<Connection>,
    blocks: Vec<Progress>,
    /// Index in `blocks` of the first thread block of each rank.
    first_block: Vec<usize>,
    run: Run,
}

/// Executes a program. Reports sends and receives that do not match, deadlocks and wrong results.
pub(super) fn check(program: &CollectiveProgram, layout: &Layout, findings: &mut Findings) -> Run {
    let mut execution = Execution {
        program,
        layout,
        findings,
        contents: Contents::new(),
        cells: Vec::new(),
        written_by: Vec::new(),
        connections: Vec::new(),
        blocks: Vec::new(),
        first_block: Vec::new(),
        run: Run {
            order: Vec::with_capacity(program.instructions()),
            received: Vec::with_capacity(program.instructions()),
            messages: 0,
            chunks_sent: 0,
        },
    };
    execution.fill_inputs();
    execution.connect();
    execution.pair();
    let complete = execution.execute_all();
    if execution.contents.are_too_many() {
        execution
            .findings
            .add_for_rank(ProgramFault::TooLarge, 0, || {
                "the contents of its chunks exceed the memory limit of the verifier".into()
            });
    } else if complete {
        execution.report_wrong_results();
    } else {
        execution.report_deadlocks();
    }
    execution.run
}

impl Execution<'_> {
    /// Fills every input chunk that exists before the collective with its own contribution.
    fn fill_inputs(&mut self) {
        let collective = &self.program.collective;
        for rank in 0..collective.ranks() {
            let mut cells = vec![0; self.layout.cells(rank)];
            let holds = match collective.kind() {
                CollectiveKind::Broadcast | CollectiveKind::Scatter => rank == collective.root(),
                _ => true,
            };
            if holds {
                let start = self.layout.start(rank, ChunkBuffer::Input);
                for chunk in 0..self.layout.size(rank, ChunkBuffer::Input) {
                    cells[start + chunk as usize] = self.contents.number(vec![(rank, chunk)]);
                }
            }
            self.written_by.push(vec![None; cells.len()]);
            self.cells.push(cells);
        }
    }

    /// Lists all connections with their sends and receives, and all thread blocks.
    fn connect(&mut self) {
        let mut known: FxHashMap<(u32, u32, u32), usize> = FxHashMap::default();
        for (rank, own) in self.program.ranks.iter().enumerate() {
            self.first_block.push(self.blocks.len());
            let rank = rank as u32;
            for (thread_block, block) in own.thread_blocks.iter().enumerate() {
                let mut connection = |from: u32, to: u32| {
                    let next = self.connections.len();
                    let index = *known.entry((from, to, block.channel)).or_insert(next);
                    if index == next {
                        self.connections.push(Connection::default());
                    }
                    index
                };
                let sends = block.sends_to.map(|to| connection(rank, to));
                let receives = block.receives_from.map(|from| connection(from, rank));
                let thread_block = thread_block as u32;
                for (step, one) in block.instructions.iter().enumerate() {
                    let site = Site {
                        rank,
                        thread_block,
                        step: step as u32,
                    };
                    let effects = effects(one.operation);
                    if let (true, Some(index)) = (effects.sends, sends) {
                        self.connections[index].sends.push(site);
                    }
                    if let (true, Some(index)) = (effects.receives, receives) {
                        self.connections[index].receives.push(site);
                    }
                }
                self.blocks.push(Progress {
                    rank,
                    thread_block,
                    next: 0,
                    length: block.instructions.len() as u32,
                    sends,
                    receives,
                    waiting: Vec::new(),
                });
            }
        }
    }

    /// Pairs the k-th send with the k-th receive of each connection. Reports pairs with different
    /// numbers of chunks, and sends and receives without a partner.
    fn pair(&mut self) {
        for connection in &self.connections {
            let pairs = connection.sends.iter().zip(&connection.receives);
            for (&send, &receive) in pairs {
                let sent = instruction(self.program, send).count;
                let received = instruction(self.program, receive).count;
                if sent != received {
                    let says = || {
                        let received = counted(received.into(), "chunk");
                        format!("receives {received} of the {sent} that {send} sends")
                    };
                    self.findings
                        .add_at(self.program, ProgramFault::Pairing, receive, says);
                }
            }
            for &send in connection.sends.iter().skip(connection.receives.len()) {
                let says = || {
                    let (to, _, channel) = ends(self.program, send);
                    format!("sends rank {to} a message on channel {channel} that is never received")
                };
                self.findings
                    .add_at(self.program, ProgramFault::Pairing, send, says);
            }
            for &receive in connection.receives.iter().skip(connection.sends.len()) {
                let says = || {
                    let (_, from, channel) = ends(self.program, receive);
                    format!(
                        "waits for a message from rank {from} on channel {channel} that is never \
                         sent"
                    )
                };
                self.findings
                    .add_at(self.program, ProgramFault::Pairing, receive, says);
            }
        }
    }

    /// Executes as many instructions as possible. Returns whether all instructions were executed.
    fn execute_all(&mut self) -> bool {
        let mut ready: Vec<usize> = (0..self.blocks.len()).rev().collect();
        while let Some(block) = ready.pop() {
            while let Some((site, dependency, receives)) = self.next_instruction(block) {
                interrupt::check();
                if self.contents.are_too_many() {
                    return false;
                }
                if let Some((other, step)) = dependency
                    && self.blocks[other].next <= step
                {
                    self.blocks[other].waiting.push(block);
                    break;
                }
                let message = match receives {
                    None => None,
                    Some(index) => match self.connections[index].in_flight.pop_front() {
                        Some(message) => Some(message),
                        None => {
                            self.connections[index].waiting = Some(block);
                            break;
                        }
                    },
                };
                let sent = self.execute(site, message);
                self.blocks[block].next += 1;
                ready.append(&mut self.blocks[block].waiting);
                if let (Some(index), Some(sent)) = (self.blocks[block].sends, sent) {
                    self.run.messages += 1;
                    self.run.chunks_sent += sent.len() as u64;
                    let connection = &mut self.connections[index];
                    let by = self.run.order.len() as u32 - 1;
                    connection.in_flight.push_back((by, sent));
                    ready.extend(connection.waiting.take());
                }
            }
        }
        self.blocks.iter().all(|block| block.next == block.length)
    }

    /// Returns the next instruction of thread block `block`, the (thread block, step) for which it
    /// waits, and the index of the connection from which it receives.
    #[allow(clippy::type_complexity)]
    fn next_instruction(
        &self,
        block: usize,
    ) -> Option<(Site, Option<(usize, u32)>, Option<usize>)> {
        let progress = &self.blocks[block];
        if progress.next == progress.length {
            return None;
        }
        let site = Site {
            rank: progress.rank,
            thread_block: progress.thread_block,
            step: progress.next,
        };
        let current = instruction(self.program, site);
        let dependency = current.waits_for.map(|on| {
            let first = self.first_block[on.rank.unwrap_or(site.rank) as usize];
            (first + on.thread_block as usize, on.step)
        });
        let receives = progress
            .receives
            .filter(|_| effects(current.operation).receives);
        Some((site, dependency, receives))
    }

    /// Executes an instruction and returns the multisets that it sends. `message` has the index in
    /// `run.order` of the instruction that sent the message, and the received multisets.
    fn execute(
        &mut self,
        site: Site,
        message: Option<(u32, Vec<Multiset>)>,
    ) -> Option<Vec<Multiset>> {
        let current = *instruction(self.program, site);
        let effects = effects(current.operation);
        self.run.order.push(site);
        self.run.received.push(message.as_ref().map(|(by, _)| *by));
        if current.operation == Operation::Nop {
            return None;
        }
        let incoming = message.map_or_else(Vec::new, |(_, chunks)| chunks);
        let owner = |operand: Operand| operand.rank.unwrap_or(site.rank) as usize;
        let cells = |operand: Operand| {
            let start = self.layout.start(owner(operand) as u32, operand.buffer);
            let start = start + operand.offset as usize;
            start..start + current.count as usize
        };
        let to = owner(current.destination);
        let source = effects.reads_source.then(|| cells(current.source));
        let destination =
            (effects.writes || effects.reads_destination).then(|| cells(current.destination));
        let read = source.map_or_else(Vec::new, |cells| {
            self.cells[owner(current.source)][cells].to_vec()
        });
        let present = destination
            .clone()
            .map_or_else(Vec::new, |cells| self.cells[to][cells].to_vec());
        self.report_unwritten(site, &current, &effects, &read, &present);
        let mut values = Vec::with_capacity(current.count as usize);
        for chunk in 0..current.count as usize {
            let at = |list: &[Multiset]| list.get(chunk).copied().unwrap_or(0);
            let (incoming, read, present) = (at(&incoming), at(&read), at(&present));
            let parts = match current.operation {
                Operation::Send | Operation::Copy => (read, 0),
                Operation::Receive | Operation::ReceiveCopySend => (incoming, 0),
                Operation::Reduce => (read, present),
                _ => (incoming, read),
            };
            values.push(self.combine(site, parts));
        }
        if let Some(cells) = destination.filter(|_| effects.writes) {
            self.report_remarks(site, &current, &effects, &values, &present);
            self.written_by[to][cells.clone()].fill(Some(site));
            self.cells[to][cells].copy_from_slice(&values);
        }
        if owner(current.source) != to && effects.reads_source && effects.writes {
            self.run.messages += 1;
            self.run.chunks_sent += values.len() as u64;
        }
        effects.sends.then_some(values)
    }

    /// Returns the sum of the multisets `one` and `other`. Reports a contribution that both
    /// contain.
    fn combine(&mut self, site: Site, (one, other): (Multiset, Multiset)) -> Multiset {
        if one == 0 || other == 0 {
            return one.max(other);
        }
        if let Some((rank, chunk)) = self.contents.common(one, other) {
            let says =
                || format!("adds chunk {chunk} of rank {rank} to a chunk that already contains it");
            self.findings
                .add_at(self.program, ProgramFault::DoubleReduction, site, says);
        }
        self.contents.sum(one, other)
    }

    /// Reports chunks that an instruction reads before any instruction has written them.
    fn report_unwritten(
        &mut self,
        site: Site,
        one: &Instruction,
        effects: &Effects,
        read: &[Multiset],
        present: &[Multiset],
    ) {
        let destination = if effects.reads_destination {
            present
        } else {
            &[]
        };
        for (operand, held) in &[(one.source, read), (one.destination, destination)] {
            if let Some(chunk) = held.iter().position(|&held| held == 0) {
                let chunk = operand.offset as usize + chunk;
                let name = named(*operand);
                let says = || format!("reads chunk {chunk} of {name}, which has not been written");
                self.findings
                    .add_at(self.program, ProgramFault::NotWritten, site, says);
            }
        }
    }

    /// Reports messages whose data the receiver already has, and writes to a separate input.
    fn report_remarks(
        &mut self,
        site: Site,
        one: &Instruction,
        effects: &Effects,
        values: &[Multiset],
        present: &[Multiset],
    ) {
        let buffer = one.destination.buffer;
        let brought = values.iter().zip(present);
        let again = brought.filter(|(value, present)| value == present && **value != 0);
        let again = again.count();
        let is_brought = effects.receives
            || one.source.rank.unwrap_or(site.rank) != one.destination.rank.unwrap_or(site.rank);
        if is_brought && again > 0 {
            let name = buffer.name();
            let says = || format!("brings {again} chunks that {name} already holds");
            self.findings
                .add_at(self.program, ProgramFault::Redundant, site, says);
        }
        if !self.layout.in_place && buffer == ChunkBuffer::Input {
            let says = || "writes to the input, which is not the output".to_owned();
            self.findings
                .add_at(self.program, ProgramFault::InputOverwritten, site, says);
        }
    }

    /// Reports output chunks whose final contributions are not those that the collective demands.
    fn report_wrong_results(&mut self) {
        let collective = self.program.collective;
        let mut expected: FxHashMap<(u32, u32), Multiset> = FxHashMap::default();
        for rank in 0..collective.ranks() {
            let root_only = matches!(
                collective.kind(),
                CollectiveKind::Reduce | CollectiveKind::Gather
            );
            if root_only && rank != collective.root() {
                continue;
            }
            let everywhere = matches!(
                collective.kind(),
                CollectiveKind::AllGather | CollectiveKind::AllReduce | CollectiveKind::Broadcast
            );
            let start = self.layout.start(rank, ChunkBuffer::Output);
            for chunk in 0..self.layout.size(rank, ChunkBuffer::Output) {
                interrupt::check();
                let key = (if everywhere { 0 } else { rank }, chunk);
                let contents = &mut self.contents;
                let wanted = *expected
                    .entry(key)
                    .or_insert_with(|| contents.number(demanded(&collective, rank, chunk)));
                let cell = start + chunk as usize;
                let held = self.cells[rank as usize][cell];
                if held != wanted {
                    let says = || {
                        let says = difference(self.contents.get(held), self.contents.get(wanted));
                        format!("output chunk {chunk} {says}")
                    };
                    let by = self.written_by[rank as usize][cell];
                    self.findings.add_written(
                        self.program,
                        ProgramFault::WrongResult,
                        rank,
                        by,
                        says,
                    );
                }
            }
        }
    }

    fn report_deadlocks(&mut self) {
        let senders: FxHashMap<usize, usize> = self
            .blocks
            .iter()
            .enumerate()
            .filter_map(|(index, block)| Some((block.sends?, index)))
            .collect();
        let waits_for = |block: usize| -> Option<usize> {
            let (_, dependency, receives) = self.next_instruction(block)?;
            match dependency {
                Some((other, step)) if self.blocks[other].next <= step => Some(other),
                _ => senders.get(&receives?).copied(),
            }
        };
        let mut seen = vec![usize::MAX; self.blocks.len()];
        let mut cycles = Vec::new();
        for first in 0..self.blocks.len() {
            let mut block = first;
            while seen[block] == usize::MAX {
                seen[block] = first;
                match waits_for(block) {
                    Some(other) => block = other,
                    None => break,
                }
            }
            if seen[block] != first || waits_for(block).is_none() {
                continue;
            }
            let mut cycle = vec![block];
            let mut other = waits_for(block);
            while let Some(next) = other.filter(|next| *next != block) {
                cycle.push(next);
                other = waits_for(next);
            }
            cycles.push(cycle);
        }
        for cycle in cycles {
            let sites: Vec<Site> = cycle
                .iter()
                .filter_map(|&block| Some(self.next_instruction(block)?.0))
                .collect();
            let named: Vec<String> = sites.iter().skip(1).take(3).map(Site::to_string).collect();
            let says = || match sites.len() {
                1 => "waits for itself".to_owned(),
                many => format!(
                    "waits in a cycle of {many} instructions: for {}{}",
                    named.join("; then "),
                    if many > 4 { "; and so on" } else { "" }
                ),
            };
            self.findings
                .add_at(self.program, ProgramFault::Deadlock, sites[0], says);
        }
    }
}

/// Returns the contributions, sorted, that the output chunk `chunk` of `rank` must have at the end.
fn demanded(collective: &Collective, rank: u32, chunk: u32) -> Vec<Contribution> {
    let piece = collective.pieces();
    let (block, part) = (chunk / piece, chunk % piece);
    let from_all_ranks = |chunk: u32| (0..collective.ranks()).map(|rank| (rank, chunk)).collect();
    match collective.kind() {
        CollectiveKind::AllGather | CollectiveKind::Gather => vec![(block, part)],
        CollectiveKind::AllToAll => vec![(block, rank * piece + part)],
        CollectiveKind::Scatter => vec![(collective.root(), rank * piece + chunk)],
        CollectiveKind::Broadcast => vec![(collective.root(), chunk)],
        CollectiveKind::ReduceScatter => from_all_ranks(rank * piece + chunk),
        CollectiveKind::AllReduce | CollectiveKind::Reduce => from_all_ranks(chunk),
        CollectiveKind::Barrier => Vec::new(),
    }
}

/// Describes how the final contents of a chunk differ from the demanded contents.
fn difference(held: &[Contribution], wanted: &[Contribution]) -> String {
    let describe = |list: &[Contribution]| match list {
        [] => "nothing".to_owned(),
        [(rank, chunk)] => format!("chunk {chunk} of rank {rank}"),
        [(_, chunk), ..] if list.iter().all(|other| other.1 == *chunk) => {
            format!("chunk {chunk} of {} ranks", list.len())
        }
        many => format!("{} contributions", many.len()),
    };
    let (lacking, more) = (without(wanted, held), without(held, wanted));
    if held.is_empty() || (wanted.len() == 1 && held.len() == 1) {
        return format!(
            "holds {} at the end, not {}",
            describe(held),
            describe(wanted)
        );
    }
    let first = |list: &[Contribution], relation: &str| {
        let some = match list.len() {
            1 => String::new(),
            many => format!(" and {} more", many - 1),
        };
        list.first()
            .map(|(rank, chunk)| format!("{relation} chunk {chunk} of rank {rank}{some}"))
    };
    let parts = [first(&lacking, "without"), first(&more, "with the surplus")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("ends {}", parts.join(" and "))
}

/// Returns the elements of the sorted multiset `from` that are not in the sorted multiset `other`.
fn without(from: &[Contribution], other: &[Contribution]) -> Vec<Contribution> {
    let mut remaining = other.iter().peekable();
    let mut difference = Vec::new();
    for item in from {
        while remaining.next_if(|other| *other < item).is_some() {}
        if remaining.next_if(|other| *other == item).is_none() {
            difference.push(*item);
        }
    }
    difference
}

/// Returns the rank to which the thread block of an instruction sends, the rank from which the
/// thread block receives, and its channel.
fn ends(program: &CollectiveProgram, site: Site) -> (u32, u32, u32) {
    let block = &program.ranks[site.rank as usize].thread_blocks[site.thread_block as usize];
    let (to, from) = (block.sends_to, block.receives_from);
    (
        to.unwrap_or(site.rank),
        from.unwrap_or(site.rank),
        block.channel,
    )
}
