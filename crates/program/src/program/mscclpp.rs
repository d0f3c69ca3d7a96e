//! Reader of execution plans of MSCCL++ (JSON).
//!
//! A plan states the operations of each thread block of each GPU. An operation copies or adds
//! chunks, which may be in buffers of other GPUs; or it signals, or waits. A thread block may name
//! a part of an operation (`tbg_info`), and repeat operations on pieces of chunks (`pipeline`). The
//! reader makes pieces of the chunks, so that each part and each repetition moves whole pieces, and
//! converts
//!
//! - data to instructions that copy and add, also from and to other ranks (`operations`),
//! - signals, semaphores, barriers and packets to waits for an instruction (`pairing`).
//!
//! The threads of a thread block do not wait for one another, except at a `nop` or a `barrier`. The
//! reader refuses an operation that needs such a point before it: data after a wait, data that an
//! earlier operation of the thread block accesses, a signal after data. Operations with packets
//! give the k-th packet to the same thread, so that two of them need no such point for data that
//! begin at the same place.
//!
//! Assumptions:
//!
//! - The size of a message is a multiple of the pieces. Otherwise the runtime cuts parts of
//!   different lengths.
//! - A pipeline repeats its operations twice for each chunk. If scratch is reused
//!   (`reuse_resources`), a pipeline repeats them once more than scratch has room for.
//! - No other plan is called between two calls of a plan with `use_double_scratch_buffer`: the
//!   runtime alternates for all plans together.
//! - A relaxed signal orders like a signal. A put on a port channel is complete when it returns.
//! - If a thread has received a packet, the thread that wrote the packet has finished all that it
//!   did before.
//!
//! Source: `src/core/executor/execution_plan.cc`, `src/core/include/execution_common.hpp` and
//! `src/core/include/execution_kernel.hpp` of MSCCL++ at commit 1f5f065d.

mod emission;
mod json;
mod operations;
mod pairing;
mod switches;
mod threads;
mod write;

use std::str::FromStr;

use super::block_layout::lay_out_blocks;
use super::{ChunkBuffer, CollectiveProgram, ProgramError, RankProgram};
use json::Value;
use operations::BlockReader;
use opticoll_base::names::{same_name, suggest, terminal_text};
use opticoll_base::units::gcd;
use opticoll_plan::collective::{Collective, CollectiveKind};
use pairing::Pairing;

opticoll_base::named_enum! {
    /// Protocol of an execution plan of MSCCL++.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum MscclppProtocol {
        /// Messages are puts and signals.
        Simple = "Simple",
        /// Messages are packets of data with flags.
        LowLatency = "LL",
    }
}

impl FromStr for MscclppProtocol {
    type Err = ProgramError;

    fn from_str(name: &str) -> Result<MscclppProtocol, ProgramError> {
        let mut known = MscclppProtocol::ALL.into_iter();
        let found = known.find(|one| same_name(one.name(), name));
        found.ok_or_else(|| {
            let hint = suggest(name, MscclppProtocol::ALL.map(MscclppProtocol::name));
            ProgramError::Refused(format!("unknown protocol `{}`{hint}", terminal_text(name)))
        })
    }
}

/// Maximum number of bytes of a file, as for MSCCL XML.
const MAX_BYTES: usize = 256 << 20;

/// Maximum number of ranks, chunks or channels, as for MSCCL XML.
const MAX_NUMBER: u64 = 1 << 20;

/// Maximum number of operations of a thread block (`MAX_OPERATION` of MSCCL++).
const MAX_OPERATIONS: usize = 64;
/// Maximum number of channels, and of remote buffers, of a thread block and type (`MAX_CHANNEL`).
const MAX_CHANNELS: usize = 16;
/// Maximum number of channels of an operation (`MAX_CHANNEL_PER_OPERATION`).
const MAX_CHANNELS_PER_OPERATION: usize = 8;
/// Maximum number of buffers of an operation (`MAX_LOCAL_BUFFER_PER_OPERATION` and the channels).
const MAX_BUFFERS_PER_OPERATION: usize = 2 + MAX_CHANNELS_PER_OPERATION;
/// Maximum number of barriers of a GPU, and of semaphores of an operation (`MAX_DEVICE_SYNCERS`,
/// `MAX_DEVICE_SEMAPHORES`).
const MAX_SEMAPHORES: usize = 16;
/// Number of bytes of scratch if it is reused (`PREDFINED_SCRATCH_SIZE`).
const REUSED_SCRATCH_BYTES: u64 = 1 << 26;

/// Maximum number of repetitions of a pipeline for each chunk. It keeps the proof short.
const MAX_REPETITIONS: u64 = 65;

/// Types of channels between two ranks, with their names in the file.
const CHANNEL_TYPES: [&str; 2] = ["memory", "port"];

/// Channels by which switches add and multicast: the buffer, and the ranks that have part.
struct Group {
    buffer: ChunkBuffer,
    ranks: Vec<u32>,
}

/// Part of the file about one GPU.
struct Gpu<'j> {
    value: &'j Value,
    input: u64,
    output: u64,
    scratch: u64,
    /// Peer of each channel, by type of the channel.
    channels: [Vec<u32>; 2],
    groups: Vec<Group>,
    /// Rank and buffer of each remote buffer.
    remote: Vec<(u32, ChunkBuffer)>,
    /// Initial values of the semaphores.
    semaphores: Vec<u64>,
}

/// Pieces of a chunk.
#[derive(Clone, Copy)]
struct Pieces {
    /// Number of pieces of a chunk.
    per_chunk: u64,
    /// Number of pieces that a repetition of a pipeline moves.
    per_repetition: u64,
    /// Number of repetitions after which scratch is used again; `None` if it is not reused.
    slots: Option<u64>,
}

pub(super) use write::write;

pub(super) fn read(text: &str) -> Result<CollectiveProgram, ProgramError> {
    if text.len() > MAX_BYTES {
        let bytes = text.len();
        return Err(ProgramError::Refused(format!(
            "the file has {bytes} bytes; programs of at most {MAX_BYTES} bytes are read"
        )));
    }
    let root = json::parse(text)?;
    if !root.is_table() || root.get("gpus").is_none() {
        return Err(root.error("the file has no `gpus`: it is not an execution plan of MSCCL++"));
    }
    let gpus = root.required("gpus")?.list()?;
    if gpus.is_empty() || gpus.len() as u64 > MAX_NUMBER {
        return Err(root.error(&format!("the plan has {} gpus", gpus.len())));
    }
    let ranks = gpus.len() as u32;
    let gpus = gpus.iter().enumerate();
    let gpus: Vec<Gpu> = gpus
        .map(|(id, gpu)| read_gpu(gpu, id, ranks))
        .collect::<Result<_, _>>()?;
    check_groups(&gpus)?;
    let pieces = pieces(&root, &gpus)?;
    let collective = collective(&root, &gpus, pieces)?;
    let is_true = |name| root.get(name).map_or(Ok(false), Value::flag);
    let in_place = root.required("inplace")?.flag()?;
    let protocol = root.required("protocol")?.text()?;
    if !MscclppProtocol::ALL
        .map(MscclppProtocol::name)
        .contains(&protocol)
    {
        let problem = format!("protocol `{protocol}` is not Simple or LL");
        return Err(root.required("protocol")?.error(&problem));
    }
    let mut program = CollectiveProgram {
        name: root.required("name")?.text()?.to_owned(),
        collective,
        protocol: protocol.to_owned(),
        in_place,
        out_of_place: !in_place,
        switched: Vec::new(),
        ranks_per_server: None,
        double_scratch: is_true("use_double_scratch_buffer")?,
        ranks: Vec::new(),
    };
    let declared = |chunks: u64| (chunks * pieces.per_chunk) as u32;
    for gpu in &gpus {
        program.ranks.push(RankProgram {
            input: declared(gpu.input),
            output: declared(gpu.output),
            scratch: declared(gpu.scratch),
            thread_blocks: Vec::new(),
        });
    }
    let mut pairing = Pairing::default();
    let mut blocks = Vec::new();
    for (rank, gpu) in gpus.iter().enumerate() {
        for (id, block) in gpu
            .value
            .required("threadblocks")?
            .list()?
            .iter()
            .enumerate()
        {
            if block.number_of("id", MAX_NUMBER)? != id as u64 {
                return Err(block.error(&format!("thread block {id} has another `id`")));
            }
            let mut reader = BlockReader::new(&program, gpu, rank as u32, pieces, block)?;
            let members = reader.read(&mut pairing, blocks.len())?;
            program.ranks[rank].scratch += reader.temporary;
            blocks.push((rank as u32, operations::without_peers(), members));
        }
    }
    let instructions = pairing.resolve(&gpus)?;
    let of_ranks: Vec<u32> = blocks.iter().map(|(rank, ..)| *rank).collect();
    let laid_out = lay_out_blocks(&instructions, blocks);
    for (rank, block) in of_ranks.into_iter().zip(laid_out) {
        program.ranks[rank as usize].thread_blocks.push(block);
    }
    Ok(program)
}

fn read_gpu(gpu: &Value, id: usize, ranks: u32) -> Result<Gpu<'_>, ProgramError> {
    if gpu.number_of("id", MAX_NUMBER)? != id as u64 {
        return Err(gpu.error(&format!("gpu {id} has another `id`")));
    }
    let max_rank = u64::from(ranks) - 1;
    let peer = |value: &Value| Ok::<_, ProgramError>(value.number(max_rank)? as u32);
    let mut channels = [Vec::new(), Vec::new()];
    let mut groups = Vec::new();
    for channel in gpu.list_of("channels")? {
        let name = channel.required("channel_type")?;
        if name.text()? == "switch" {
            let buffer = match channel.get("buffer_type").or_else(|| channel.get("buff")) {
                Some(buffer) => buffer_of(buffer)?,
                None => return Err(channel.error("`buffer_type` is missing")),
            };
            for group in channel.required("rank_groups")?.list()? {
                let ranks = group.required("ranks")?.list()?.iter().map(peer);
                let ranks = ranks.collect::<Result<_, _>>()?;
                groups.push(Group { buffer, ranks });
            }
            continue;
        }
        let kind = channel_type(name)?;
        for to in channel.required("connected_to")?.list()? {
            let other = peer(to)?;
            if other as usize == id {
                return Err(to.error("a channel leads to its own rank"));
            }
            channels[kind].push(other);
        }
    }
    let mut remote = Vec::new();
    for buffer in gpu.list_of("remote_buffers")? {
        let rank = peer(buffer.required("rank")?)?;
        remote.push((rank, buffer_of(buffer.required("type")?)?));
    }
    let semaphores = gpu.list_of("semaphores")?;
    let value_of = |semaphore: &Value| semaphore.number_of("init_value", MAX_NUMBER);
    let semaphores: Vec<u64> = semaphores.iter().map(value_of).collect::<Result<_, _>>()?;
    Ok(Gpu {
        value: gpu,
        input: gpu.number_of("input_chunks", MAX_NUMBER)?,
        output: gpu.number_of("output_chunks", MAX_NUMBER)?,
        scratch: gpu.number_of("scratch_chunks", MAX_NUMBER)?,
        channels,
        groups,
        remote,
        semaphores,
    })
}

/// Fails if a rank of a group of ranks has another list of channels of this group: the ranks of a
/// group make its channels together, each with the same buffer.
fn check_groups(gpus: &[Gpu<'_>]) -> Result<(), ProgramError> {
    let of_group = |rank: usize, ranks: &[u32]| -> Vec<ChunkBuffer> {
        let groups = gpus[rank].groups.iter();
        let groups = groups.filter(|group| group.ranks == ranks);
        groups.map(|group| group.buffer).collect()
    };
    for (rank, gpu) in gpus.iter().enumerate() {
        for group in &gpu.groups {
            let own = of_group(rank, &group.ranks);
            let mut others = group.ranks.iter();
            let is_member = group.ranks.contains(&(rank as u32));
            if !is_member || others.any(|&other| of_group(other as usize, &group.ranks) != own) {
                let problem = format!(
                    "the ranks of the switch channel with {} ranks have different such channels",
                    group.ranks.len()
                );
                return Err(gpu.value.error(&problem));
            }
        }
    }
    Ok(())
}

/// Fails if a number exceeds a limit of the runtime.
fn within(at: &Value, what: &str, number: usize, max: usize) -> Result<(), ProgramError> {
    match number <= max {
        true => Ok(()),
        false => Err(at.error(&format!(
            "MSCCL++ has room for {max} {what}, not for {number}"
        ))),
    }
}

fn buffer_of(value: &Value) -> Result<ChunkBuffer, ProgramError> {
    match value.text()? {
        "i" => Ok(ChunkBuffer::Input),
        "o" => Ok(ChunkBuffer::Output),
        "s" => Ok(ChunkBuffer::Scratch),
        other => Err(value.error(&format!("buffer `{other}` is not i, o or s"))),
    }
}

/// Returns the index in `CHANNEL_TYPES`.
fn channel_type(value: &Value) -> Result<usize, ProgramError> {
    let name = value.text()?;
    let kind = CHANNEL_TYPES.iter().position(|other| *other == name);
    kind.ok_or_else(|| value.error(&format!("channel_type `{name}` is not memory or port")))
}

/// Determines the pieces from all parts (`tbg_info`) and pipelines of the plan.
fn pieces(root: &Value, gpus: &[Gpu<'_>]) -> Result<Pieces, ProgramError> {
    let (mut parts, mut unit) = (1u64, None);
    let mut read_part = |op: &Value| {
        if let Some(group) = op.get("tbg_info") {
            let size = group.number_of("tbg_size", MAX_NUMBER)?.max(1);
            parts = parts / gcd(parts.into(), size.into()) as u64 * size;
            if parts > MAX_NUMBER {
                return Err(group.error("thread block groups have too many different sizes"));
            }
        }
        Ok(())
    };
    for gpu in gpus {
        for block in gpu.value.required("threadblocks")?.list()? {
            for op in block.list_of("ops")? {
                read_part(op)?;
                op.list_of("ops")?.iter().try_for_each(&mut read_part)?;
                let Some(context) = op.get("iter_context") else {
                    continue;
                };
                let own = context.number_of("unit_size", u64::from(u32::MAX))?.max(1);
                if *unit.get_or_insert(own) != own {
                    return Err(context.error("pipelines with units of different sizes"));
                }
            }
        }
    }
    let is_true = |name| root.get(name).map_or(Ok(false), Value::flag);
    let scratch = gpus.iter().map(|gpu| gpu.scratch).max().unwrap_or(0);
    let halves = 1 + u64::from(is_true("use_double_scratch_buffer")?);
    let slots = match (is_true("reuse_resources")?, unit) {
        (true, Some(unit)) if scratch > 0 => {
            Some((REUSED_SCRATCH_BYTES / halves / scratch / unit).max(1))
        }
        _ => None,
    };
    let slots = slots.filter(|slots| *slots < MAX_REPETITIONS);
    let repetitions = match (slots, unit) {
        (_, None) => 1,
        (Some(slots), _) => slots + 1,
        (None, _) => 2,
    };
    Ok(Pieces {
        per_chunk: parts * repetitions,
        per_repetition: parts,
        slots,
    })
}

fn collective(root: &Value, gpus: &[Gpu<'_>], pieces: Pieces) -> Result<Collective, ProgramError> {
    let name = root.required("collective")?;
    let parsed: Result<CollectiveKind, _> = name.text()?.parse();
    let kind = parsed.map_err(|error| name.error(&error.to_string()))?;
    let ranks = gpus.len() as u32;
    let first = &gpus[0];
    let (chunks, parts) = match kind {
        CollectiveKind::Barrier => return Err(name.error("a barrier moves no chunks")),
        CollectiveKind::ReduceScatter | CollectiveKind::Scatter => (first.output, 1),
        CollectiveKind::AllToAll => (first.input, u64::from(ranks)),
        _ => (first.input, 1),
    };
    let unequal = |gpu: &&Gpu| (gpu.input, gpu.output) != (first.input, first.output);
    if let Some(gpu) = gpus.iter().find(unequal) {
        return Err(gpu
            .value
            .error("its numbers of chunks differ from those of gpu 0"));
    }
    let scratch = gpus.iter().map(|gpu| gpu.scratch);
    let largest = scratch.fold(first.input.max(first.output), u64::max) * pieces.per_chunk;
    let is_doubled = root.get("use_double_scratch_buffer").map(Value::flag) == Some(Ok(true));
    let other = gpus
        .iter()
        .find(|gpu| is_doubled && gpu.scratch != first.scratch);
    if let Some(other) = other {
        let problem = "its doubled scratch differs in size from that of gpu 0, so that its second \
                       half begins elsewhere";
        return Err(other.value.error(problem));
    }
    let total = chunks / parts * pieces.per_chunk;
    if chunks == 0 || chunks % parts != 0 || largest > MAX_NUMBER {
        let problem = format!("{kind} of {ranks} ranks cannot be cut into {chunks} chunks");
        return Err(first.value.error(&problem));
    }
    let root_rank = root
        .get("root")
        .map_or(Ok(0), |value| value.number(MAX_NUMBER))? as u32;
    let collective = Collective::new(kind, ranks)?.with_root(root_rank)?;
    Ok(collective.with_pieces(total as u32)?)
}
