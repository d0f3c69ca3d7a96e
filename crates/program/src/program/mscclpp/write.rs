//! Writer of execution plans of MSCCL++.
//!
//! The operations of a rank become a sequence of thread blocks, of which each begins after the one
//! before ([`MAX_OPERATIONS`]). If messages are long, several such sequences share the work: each
//! executes all operations on its part of the chunks (`tbg_info`), with channels of its own.
//!
//! A part of an operand must be the same part of its chunks in all operations that access them. If
//! operands of different lengths overlap, the writer moves chunk by chunk.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;

use super::super::{ChunkBuffer, CollectiveProgram, Operation, ProgramError};
use super::emission::{
    Emission, Emitted, Link, MEMORY, Manner, PORT, Span, emit, senders_hear_receivers,
};
use super::switches::{ALL_RANKS, emit_switched};
use super::{CHANNEL_TYPES, MAX_CHANNELS, MAX_OPERATIONS, MscclppProtocol};
use opticoll_base::units::Bytes;
use opticoll_plan::collective::CollectiveKind;

/// Number of bytes of which each chunk is a multiple (`buffer_alignment`). Some operations of
/// MSCCL++ handle only such numbers of bytes.
const ALIGNMENT: u64 = 16;
/// Number of threads of a thread block: the largest number, which is the default of MSCCL++.
const THREADS: u64 = 1024;
/// Minimum number of bytes of a part of a message: each thread moves 16 bytes.
const MIN_PART_BYTES: u64 = THREADS * 16;
/// Maximum number of parts: the number of thread blocks of `test/execution-files/allreduce.json`.
const MAX_PARTS: u64 = 8;
/// Maximum number of thread blocks of a rank. All of them must run at the same time, one on each
/// multiprocessor, of which an A100 has 108.
const MAX_BLOCKS: usize = 108;
/// Maximum number of bytes of a collective that moves packets: the largest size of the smallest
/// plan that MSCCL++ installs (`allreduce_2nodes_1K_64K.json`).
const MAX_PACKET_BYTES: u64 = 64 << 10;
/// Number of bytes that 32-bit offsets can address.
const MAX_OFFSET: u64 = u32::MAX as u64;

/// Operations of a thread block besides those of its sequence: it acquires and releases a
/// semaphore, each with a `nop`.
const OPERATIONS_BETWEEN_BLOCKS: usize = 4;

/// Type of the channels by which switches add and multicast.
const SWITCH: &str = "switch";

/// Connections of a rank by type: peer and channel of the program.
type Links = [BTreeSet<Link>; 2];

/// Plan to write.
struct Writer<'a> {
    program: &'a CollectiveProgram,
    manner: Manner,
    emission: &'a Emission,
    parts: u64,
    blocks: Vec<Vec<Range<usize>>>,
    links: Vec<Links>,
    /// Buffers that switches read or write, each of which has a channel of all ranks.
    switched: BTreeSet<ChunkBuffer>,
}

/// Returns the plan as text, for a collective of size `size`. If no protocol is given, the size
/// decides.
pub(in super::super) fn write(
    program: &CollectiveProgram,
    size: Bytes,
    protocol: Option<MscclppProtocol>,
) -> Result<String, ProgramError> {
    let chunk_bytes = chunk_bytes(program, size)?;
    let is_switched = !program.switched.is_empty();
    let packets = match protocol {
        Some(MscclppProtocol::Simple) => false,
        None if size.get() > MAX_PACKET_BYTES => false,
        asked => match packet_problem(program)? {
            None => true,
            Some(_) if asked.is_none() => false,
            Some(problem) => {
                return Err(ProgramError::Refused(format!(
                    "protocol LL does not fit, because {problem}; use protocol Simple"
                )));
            }
        },
    };
    let manner = Manner {
        in_place: is_called_in_place(program),
        packets,
        single_chunks: false,
    };
    let mut emission = match is_switched {
        true => emit_switched(program, manner.in_place)?,
        false => emit(program, manner)?,
    };
    let operations = emission.operations.iter().flatten();
    let longest = operations.flat_map(|operation| &operation.sources);
    let longest = longest.map(|span| u64::from(span.count)).max();
    let message = longest.unwrap_or(1) * chunk_bytes;
    let mut parts = MAX_PARTS;
    while parts > 1 && (message / parts < MIN_PART_BYTES || chunk_bytes % (parts * ALIGNMENT) != 0)
    {
        parts /= 2;
    }
    // Operations of switches do not depend on one another.
    if parts > 1 && !is_switched && !spans_are_equal_or_apart(program, manner, &emission) {
        let single_chunks = Manner {
            single_chunks: true,
            ..manner
        };
        emission = emit(program, single_chunks)?;
    }
    let mut writer = Writer::new(program, manner, &emission, parts);
    let mut blocks = writer.largest();
    if blocks > MAX_BLOCKS && parts > 1 && !is_switched {
        let whole = emit(program, manner)?;
        let text = Writer::new(program, manner, &whole, 1);
        blocks = text.largest();
        if blocks <= MAX_BLOCKS {
            return text.text(chunk_bytes);
        }
    }
    if blocks > MAX_BLOCKS {
        let (most, room) = (blocks * MAX_OPERATIONS, MAX_BLOCKS * MAX_OPERATIONS);
        return Err(ProgramError::Refused(format!(
            "a rank needs {blocks} thread blocks of MSCCL++, for about {most} operations; \
             {MAX_BLOCKS} run at the same time, which have room for {room}; plan with fewer \
             pieces, or with an algorithm of fewer transfers such as `direct`"
        )));
    }
    while writer.largest() > MAX_BLOCKS {
        writer.parts /= 2;
    }
    writer.text(chunk_bytes)
}

/// Returns the number of bytes of a chunk.
fn chunk_bytes(program: &CollectiveProgram, size: Bytes) -> Result<u64, ProgramError> {
    let collective = &program.collective;
    let bytes = collective.uniform_chunk_bytes(size).map_or(0, Bytes::get);
    if bytes != 0 && bytes % ALIGNMENT == 0 {
        return Ok(bytes);
    }
    // The size is proportional to the bytes of a chunk.
    let unit = (1..=u64::from(collective.chunks())).map(|count| count * ALIGNMENT);
    let unit = unit.map(Bytes::new).find(|unit| {
        let bytes = collective.uniform_chunk_bytes(*unit);
        bytes.is_some_and(|bytes| bytes.get() == ALIGNMENT)
    });
    let unit = unit.map_or(ALIGNMENT, Bytes::get);
    let next = Bytes::new(size.get().div_ceil(unit).max(1).saturating_mul(unit));
    Err(ProgramError::Refused(format!(
        "{size} cannot be cut into equal chunks of a multiple of {ALIGNMENT} bytes, as MSCCL++ \
         needs them; the next size that fits is {next}"
    )))
}

/// Returns whether callers usually give a collective one buffer. PyTorch does so for `all_reduce`,
/// `reduce` and `broadcast`, but not for the others.
fn is_called_in_place(program: &CollectiveProgram) -> bool {
    let is_usual = matches!(
        program.collective.kind(),
        CollectiveKind::AllReduce | CollectiveKind::Reduce | CollectiveKind::Broadcast
    );
    program.in_place && (is_usual || !program.out_of_place)
}

/// Returns why messages cannot be packets; `None` if they can.
fn packet_problem(program: &CollectiveProgram) -> Result<Option<&'static str>, ProgramError> {
    let blocks = program.ranks.iter().flat_map(|rank| &rank.thread_blocks);
    let mut instructions = blocks.flat_map(|block| &block.instructions);
    let ranks = program.ranks.len() as u32;
    Ok(if !program.switched.is_empty() {
        Some("packets do not pass through switches that add")
    } else if program.ranks_per_server.is_some_and(|size| size < ranks) {
        Some("packets need memory channels, but ranks are in several servers")
    } else if program.ranks.iter().any(|rank| rank.scratch > 0) {
        Some("all scratch holds packets then, but the program keeps chunks there")
    } else if instructions.any(|one| one.operation == Operation::ReceiveReduceSend) {
        Some("a rank sends a sum that it does not keep")
    } else if !senders_hear_receivers(program)? {
        Some("a sender does not hear from its receivers that they have ended the previous call")
    } else {
        None
    })
}

/// Returns whether spans of all operations that overlap in memory are equal.
fn spans_are_equal_or_apart(
    program: &CollectiveProgram,
    manner: Manner,
    emission: &Emission,
) -> bool {
    let mut spans: BTreeSet<(u32, ChunkBuffer, i64, i64)> = BTreeSet::new();
    for operation in emission.operations.iter().flatten() {
        for span in operation.sources.iter().chain(&operation.destinations) {
            let (memory, first) = program.address(span.rank, span.buffer, manner.in_place);
            let first = first + i64::from(span.first);
            spans.insert((span.rank, memory, first, first + i64::from(span.count)));
        }
    }
    let after = spans.iter().skip(1);
    let mut pairs = spans.iter().zip(after);
    pairs.all(|(one, next)| (one.0, one.1) != (next.0, next.1) || one.3 <= next.2)
}

impl<'a> Writer<'a> {
    fn new(
        program: &'a CollectiveProgram,
        manner: Manner,
        emission: &'a Emission,
        parts: u64,
    ) -> Writer<'a> {
        let operations = emission.operations.iter().enumerate();
        let blocks = operations.map(|(rank, own)| blocks(rank, own)).collect();
        let ranks = emission.operations.len();
        let mut links: Vec<Links> = vec![Links::default(); ranks];
        // Both ends of a connection have a channel, in the same order.
        for (rank, own) in emission.operations.iter().enumerate() {
            for operation in own {
                for link in &operation.links {
                    let Some(kind) = operation.channel_type else {
                        continue;
                    };
                    links[rank][kind].insert(*link);
                    let back = Link {
                        peer: rank as u32,
                        ..*link
                    };
                    links[link.peer as usize][kind].insert(back);
                }
            }
        }
        Writer {
            program,
            manner,
            emission,
            parts,
            blocks,
            links,
            switched: emission
                .operations
                .iter()
                .flatten()
                .flat_map(|operation| operation.sources.iter().chain(&operation.destinations))
                .filter(|span| span.rank == ALL_RANKS)
                .map(|span| span.buffer)
                .collect(),
        }
    }

    /// Returns the largest number of thread blocks of a rank.
    fn largest(&self) -> usize {
        let most = self.blocks.iter().map(Vec::len).max().unwrap_or(0);
        most * self.parts as usize
    }

    /// Returns the number of chunks of a buffer that all ranks have. A rank without data still
    /// gives a buffer, because the runtime divides by the number of its chunks.
    fn chunks(&self, buffer: ChunkBuffer) -> u32 {
        let ranks = 0..self.program.ranks.len() as u32;
        let chunks = ranks.map(|rank| self.program.buffer_chunks(rank, buffer));
        chunks.max().unwrap_or(0).max(1)
    }

    fn text(&self, chunk_bytes: u64) -> Result<String, ProgramError> {
        let program = self.program;
        let (input, output) = (
            self.chunks(ChunkBuffer::Input),
            self.chunks(ChunkBuffer::Output),
        );
        // The halves of doubled scratch begin at the same place at all ranks.
        let scratch = self.emission.scratch.iter().copied().max().unwrap_or(0);
        let packet_factor = if self.manner.packets { 4 } else { 1 };
        let largest = u64::from(input.max(output)).max(u64::from(scratch) * packet_factor);
        let unit = self.parts * ALIGNMENT;
        let max_chunk_bytes = MAX_OFFSET / largest / unit * unit;
        let kind = program.collective.kind();
        let counted = if kind == CollectiveKind::AllGather {
            output
        } else {
            input
        };
        if chunk_bytes > max_chunk_bytes {
            let (bytes, max) = (chunk_bytes, max_chunk_bytes);
            return Err(ProgramError::Refused(format!(
                "chunks of {bytes} bytes need offsets beyond the 32 bits of MSCCL++; chunks of at \
                 most {max} bytes fit, for example with more pieces"
            )));
        }
        let max_bytes = match self.manner.packets {
            true => MAX_PACKET_BYTES.max(chunk_bytes * u64::from(counted)),
            false => max_chunk_bytes * u64::from(counted),
        };
        let mut text = String::from("{\n");
        let name = program.name.replace('\\', "\\\\").replace('"', "\\\"");
        let root = match kind {
            CollectiveKind::Broadcast
            | CollectiveKind::Reduce
            | CollectiveKind::Gather
            | CollectiveKind::Scatter => format!(" \"root\": {},", program.collective.root()),
            _ => String::new(),
        };
        let _ = writeln!(
            text,
            " \"name\": \"{name}\", \"collective\": \"{}\",{root}\n \"protocol\": \"{}\", \
             \"inplace\": {}, \"reuse_resources\": false,\n \"use_double_scratch_buffer\": {}, \
             \"buffer_alignment\": {ALIGNMENT}, \"num_threads_per_block\": {THREADS},\n \
             \"min_message_size\": 0, \"max_message_size\": {max_bytes},\n \"gpus\": [",
            kind.name().replace('_', ""),
            if self.manner.packets {
                MscclppProtocol::LowLatency
            } else {
                MscclppProtocol::Simple
            },
            self.manner.in_place,
            self.manner.packets,
        );
        for rank in 0..program.ranks.len() {
            let scratch = match self.manner.packets {
                true => scratch,
                false => self.emission.scratch[rank],
            };
            let _ = writeln!(
                text,
                "  {{\"id\": {rank}, \"input_chunks\": {input}, \"output_chunks\": {output}, \
                 \"scratch_chunks\": {scratch},"
            );
            self.write_rank(&mut text, rank);
            let comma = if rank + 1 < program.ranks.len() {
                ","
            } else {
                ""
            };
            let _ = writeln!(text, "  }}{comma}");
        }
        text.push_str(" ]\n}\n");
        // What the reader refuses, the runtime cannot execute.
        super::read(&text).map(|_| text)
    }

    fn write_rank(&self, text: &mut String, rank: usize) {
        let own = &self.emission.operations[rank];
        let mut remote: Vec<(usize, u32, ChunkBuffer)> = own
            .iter()
            .flat_map(|one| remote_buffers(rank, one))
            .collect();
        remote.sort_unstable();
        remote.dedup();
        let links = &self.links[rank];
        let channels = [MEMORY, PORT].map(|kind| {
            let peers = links[kind].iter().map(|link| link.peer);
            let peers: Vec<u32> = peers.collect();
            let all = std::iter::repeat_n(peers, self.parts as usize);
            let peers = listed(all.flatten());
            let name = CHANNEL_TYPES[kind];
            format!("{{\"channel_type\": \"{name}\", \"connected_to\": [{peers}]}}")
        });
        let used = [MEMORY, PORT]
            .into_iter()
            .filter(|&kind| !links[kind].is_empty());
        let ranks = listed(0..self.program.ranks.len());
        let switched = self.switched.iter().map(|&buffer| {
            let (letter, size) = (letter(buffer), self.program.ranks.len());
            format!(
                "{{\"channel_type\": \"switch\", \"buffer_type\": \"{letter}\", \"rank_groups\": \
                 [{{\"size\": {size}, \"ranks\": [{ranks}]}}]}}"
            )
        });
        let channels = used.map(|kind| channels[kind].clone()).chain(switched);
        let _ = writeln!(text, "   \"channels\": [{}],", listed(channels));
        let buffers = remote.iter().map(|&(kind, peer, buffer)| {
            let (name, letter) = (CHANNEL_TYPES[kind], letter(buffer));
            format!(
                "{{\"rank\": {peer}, \"type\": \"{letter}\", \"access_channel_types\": \
                 [\"{name}\"]}}"
            )
        });
        let _ = writeln!(text, "   \"remote_buffers\": [{}],", listed(buffers));
        let blocks = &self.blocks[rank];
        let joints = blocks.len().saturating_sub(1);
        let semaphores = std::iter::repeat_n("{\"init_value\": 0}", joints * self.parts as usize);
        let _ = writeln!(text, "   \"semaphores\": [{}],", listed(semaphores));
        text.push_str("   \"threadblocks\": [\n");
        let mut id = 0;
        for part in 0..self.parts as usize {
            for (index, range) in blocks.iter().enumerate() {
                let before = index.checked_sub(1).map(|joint| part * joints + joint);
                let after = (index < joints).then_some(part * joints + index);
                let operations = &own[range.clone()];
                let body = self.block(rank, part, operations, &remote, (before, after));
                let last = id + 1 == blocks.len() * self.parts as usize;
                let _ = writeln!(
                    text,
                    "    {{\"id\": {id},\n{body}    }}{}",
                    if last { "" } else { "," }
                );
                id += 1;
            }
        }
        text.push_str("   ]\n");
    }

    /// Returns the text of a thread block. It acquires and releases the semaphores `joints`.
    fn block(
        &self,
        rank: usize,
        part: usize,
        operations: &[Emitted],
        remote: &[(usize, u32, ChunkBuffer)],
        joints: (Option<usize>, Option<usize>),
    ) -> String {
        let mut channels: [BTreeSet<usize>; 2] = Default::default();
        let mut buffers: [BTreeSet<usize>; 2] = Default::default();
        let channel = |kind: usize, link: &Link| {
            let links = &self.links[rank][kind];
            part * links.len() + links.iter().position(|other| other == link).unwrap_or(0)
        };
        let buffer = |key: (usize, u32, ChunkBuffer)| remote.binary_search(&key).unwrap_or(0);
        for operation in operations {
            if let Some(kind) = operation.channel_type {
                channels[kind].extend(operation.links.iter().map(|link| channel(kind, link)));
            }
            for key in remote_buffers(rank, operation) {
                buffers[key.0].insert(buffer(key));
            }
        }
        let is_switched = |operation: &Emitted| {
            let mut spans = operation.sources.iter().chain(&operation.destinations);
            spans.any(|span| span.rank == ALL_RANKS)
        };
        let mut by_switches = BTreeSet::new();
        if operations.iter().any(is_switched) {
            by_switches.extend(0..self.switched.len());
        }
        let references = |name: &str, ids: &str, used: &[&BTreeSet<usize>]| {
            let kinds = CHANNEL_TYPES.iter().chain(&[SWITCH]);
            let used = used.iter().zip(kinds).filter(|(used, _)| !used.is_empty());
            listed(used.map(|(used, kind)| {
                format!("{{\"{name}\": \"{kind}\", \"{ids}\": [{}]}}", listed(*used))
            }))
        };
        let mut text = format!(
            "     \"channels\": [{}],\n     \"remote_buffer_refs\": [{}],\n     \"ops\": [\n",
            references(
                "channel_type",
                "channel_ids",
                &[&channels[MEMORY], &channels[PORT], &by_switches]
            ),
            references(
                "access_channel_type",
                "remote_buffer_ids",
                &[&buffers[MEMORY], &buffers[PORT]]
            ),
        );
        let place = |among: &BTreeSet<usize>, index: usize| {
            among.iter().position(|other| *other == index).unwrap_or(0)
        };
        let span = |operation: &Emitted, span: &Span| {
            let channel = self.switched.iter().position(|own| *own == span.buffer);
            let at = match (span.rank as usize == rank, operation.channel_type) {
                _ if span.rank == ALL_RANKS => {
                    format!("\"switch_channel_id\": {}", channel.unwrap_or(0))
                }
                (false, Some(kind)) => {
                    let index = buffer((kind, span.rank, span.buffer));
                    format!("\"buffer_id\": {}", place(&buffers[kind], index))
                }
                _ => format!("\"type\": \"{}\"", letter(span.buffer)),
            };
            format!(
                "{{{at}, \"index\": {}, \"size\": {}}}",
                span.first, span.count
            )
        };
        let mut lines = Vec::new();
        if let Some(semaphore) = joints.0 {
            lines.push(format!(
                "{{\"name\": \"sem_acquire\", \"semaphore_ids\": [{semaphore}]}}"
            ));
            lines.push("{\"name\": \"nop\"}".to_owned());
        }
        for operation in operations {
            let mut line = format!("{{\"name\": \"{}\"", operation.name);
            if let Some(kind) = operation.channel_type {
                let _ = write!(line, ", \"channel_type\": \"{}\"", CHANNEL_TYPES[kind]);
                if !operation.links.is_empty() {
                    let ids = operation.links.iter();
                    let ids = ids.map(|link| place(&channels[kind], channel(kind, link)));
                    let _ = write!(line, ", \"channel_ids\": [{}]", listed(ids));
                }
            }
            if is_switched(operation) {
                let _ = write!(line, ", \"channel_type\": \"{SWITCH}\"");
            }
            if !operation.sources.is_empty() {
                let spans = |spans: &[Span]| listed(spans.iter().map(|one| span(operation, one)));
                let _ = write!(
                    line,
                    ", \"src_buff\": [{}], \"dst_buff\": [{}]",
                    spans(&operation.sources),
                    spans(&operation.destinations)
                );
                if self.parts > 1 {
                    let size = self.parts;
                    let _ = write!(
                        line,
                        ", \"tbg_info\": {{\"tb_id\": {part}, \"tbg_size\": {size}}}"
                    );
                }
            }
            line.push('}');
            lines.push(line);
        }
        if let Some(semaphore) = joints.1 {
            lines.push("{\"name\": \"nop\"}".to_owned());
            lines.push(format!(
                "{{\"name\": \"sem_release\", \"semaphore_ids\": [{semaphore}]}}"
            ));
        }
        let _ = writeln!(text, "      {}\n     ]", lines.join(",\n      "));
        text
    }
}

fn letter(buffer: ChunkBuffer) -> char {
    match buffer {
        ChunkBuffer::Input => 'i',
        ChunkBuffer::Output => 'o',
        ChunkBuffer::Scratch => 's',
    }
}

fn listed(items: impl IntoIterator<Item = impl ToString>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(", ")
}

/// Returns the buffers of other ranks that an operation accesses, with the type of the channels.
fn remote_buffers(
    rank: usize,
    operation: &Emitted,
) -> impl Iterator<Item = (usize, u32, ChunkBuffer)> {
    let spans = operation.sources.iter().chain(&operation.destinations);
    let kind = operation.channel_type.unwrap_or(MEMORY);
    spans
        .filter(move |span| span.rank as usize != rank && span.rank != ALL_RANKS)
        .map(move |span| (kind, span.rank, span.buffer))
}

/// Cuts the operations of `rank` into thread blocks.
fn blocks(rank: usize, operations: &[Emitted]) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    let mut used: BTreeSet<(bool, usize, u32, u32)> = BTreeSet::new();
    for (index, operation) in operations.iter().enumerate() {
        let kind = operation.channel_type.unwrap_or(MEMORY);
        let links = operation.links.iter();
        let links = links.map(|link| (true, kind, link.peer, link.channel));
        let buffers = remote_buffers(rank, operation);
        let buffers = buffers.map(|(kind, peer, buffer)| (false, kind, peer, buffer as u32));
        let new: Vec<_> = links.chain(buffers).collect();
        used.extend(new.iter().copied());
        let is_over = [true, false].into_iter().any(|is_channel| {
            [MEMORY, PORT].into_iter().any(|kind| {
                let own = used
                    .iter()
                    .filter(|key| (key.0, key.1) == (is_channel, kind));
                own.count() > MAX_CHANNELS
            })
        });
        if is_over || index - start + 1 > MAX_OPERATIONS - OPERATIONS_BETWEEN_BLOCKS {
            blocks.push(start..index);
            start = index;
            used = new.into_iter().collect();
        }
    }
    blocks.push(start..operations.len());
    blocks
}
