//! Writer of Chakra traces that ASTRA-sim accepts as a custom collective.
//!
//! Each instruction becomes up to two nodes, one that receives and one that sends, in the order of
//! its thread block. Instructions that only wait become dependencies of later nodes. A copy waits
//! for nothing if no other instruction changes its source or uses its destination. Copies of a
//! chunk to its own location, as in calls in place, are omitted, so that they take no time.
//!
//! ASTRA-sim requires a number of chunks that is a multiple of the number of ranks. For other
//! programs, the writer divides each chunk into several chunks of the trace.

use rustc_hash::FxHashMap;

use super::super::execution_order::execution_order;
use super::super::{ChunkBuffer, CollectiveProgram, Instruction, Operand, Operation, ProgramError};
use super::parts;
use crate::chakra::{Attribute, ChakraFile, ChakraNode, NodeKind, Value};
use opticoll_base::units::{Bytes, gcd};

/// Version of the schema, in the form of the Chakra packages.
const SCHEMA: &str = "1.0.2-chakra.0.0.4";

/// Writes the traces of all ranks, indexed by rank. The traces are for calls in place if the
/// program supports them.
pub(in super::super) fn write(
    program: &CollectiveProgram,
    size: Bytes,
) -> Result<Vec<Vec<u8>>, ProgramError> {
    let collective = &program.collective;
    let Some(chunk_bytes) = collective
        .uniform_chunk_bytes(size)
        .filter(|bytes| bytes.get() > 0)
    else {
        let chunks = collective.chunks();
        return Err(ProgramError::Refused(format!(
            "{size} cannot be cut into equal chunks of whole bytes; give another size, such as a \
             multiple of {chunks} bytes"
        )));
    };
    let order = execution_order(program).map_err(|_| {
        let problem = "this plan has no program: its instructions wait for one another";
        ProgramError::Refused(problem.into())
    })?;
    let ranks = collective.ranks();
    let chunks = collective.pieces() * parts(collective.kind(), ranks);
    let scale = u128::from(ranks) / gcd(chunks.into(), ranks.into());
    let mut writers: Vec<Writer<'_>> = (0..ranks)
        .map(|rank| Writer::new(program, rank, chunk_bytes, i64::from(chunks), scale as i64))
        .collect();
    for current in order {
        let (rank, block) = (current.rank as usize, current.thread_block as usize);
        let instructions = &program.ranks[rank].thread_blocks[block].instructions;
        let step = current.step as usize;
        writers[rank].add(block, step, &instructions[step]);
    }
    let header = vec![
        Attribute::new("schema", Value::Text(SCHEMA.into())),
        Attribute::new(
            "collective",
            text(&collective.kind().name().replace('_', "")),
        ),
        Attribute::new("name", text(&program.name)),
        Attribute::new("ranks", Value::Int64(ranks.into())),
        Attribute::new("root", Value::Int64(collective.root().into())),
        Attribute::new("pieces", Value::Int64(collective.pieces().into())),
        Attribute::new("size", Value::Uint64(size.get())),
        Attribute::new("inplace", Value::Int64(program.in_place.into())),
        Attribute::new("outofplace", Value::Int64((!program.in_place).into())),
    ];
    let files = writers.into_iter().map(|writer| ChakraFile {
        version: String::new(),
        attributes: header.clone(),
        nodes: writer.nodes(),
    });
    Ok(files.map(|file| file.write()).collect())
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

/// Nodes of a rank, and the data from which they are made.
struct Writer<'a> {
    program: &'a CollectiveProgram,
    rank: u32,
    chunk_bytes: Bytes,
    chunks: i64,
    scale: i64,
    /// Number of chunks of scratch: the scratch of the program, and space for sums that the rank
    /// only forwards.
    scratch: u32,
    /// Number of instructions that use a chunk, and number of instructions that change it. Indexed
    /// by (buffer, index of the chunk in the buffer).
    uses: FxHashMap<(ChunkBuffer, i64), (u32, u32)>,
    /// Number (`id`) of the first node of each instruction, indexed by thread block and step.
    first: Vec<Vec<u64>>,
    nodes: Vec<ChakraNode>,
    /// Numbers (`id`) of the nodes that complete each instruction, indexed by thread block and
    /// step.
    ends: Vec<Vec<Vec<u64>>>,
}

impl<'a> Writer<'a> {
    fn new(
        program: &'a CollectiveProgram,
        rank: u32,
        chunk_bytes: Bytes,
        chunks: i64,
        scale: i64,
    ) -> Writer<'a> {
        let rank_program = &program.ranks[rank as usize];
        let mut writer = Writer {
            program,
            rank,
            chunk_bytes,
            chunks,
            scale,
            scratch: rank_program.scratch,
            uses: FxHashMap::default(),
            first: Vec::new(),
            nodes: Vec::new(),
            ends: Vec::new(),
        };
        let mut next = 0;
        for block in &rank_program.thread_blocks {
            let mut first = Vec::with_capacity(block.instructions.len());
            for instruction in &block.instructions {
                first.push(next);
                next += writer.count(instruction);
                writer.count_uses(instruction);
            }
            writer.first.push(first);
            writer.ends.push(vec![Vec::new(); block.instructions.len()]);
        }
        writer
    }

    fn count(&self, instruction: &Instruction) -> u64 {
        match instruction.operation {
            Operation::Nop => 0,
            Operation::Copy
                if self.address(instruction.source) == self.address(instruction.destination) =>
            {
                0
            }
            other => 1 + u64::from(other.sends() && other.receives()),
        }
    }

    fn address(&self, operand: Operand) -> (ChunkBuffer, i64) {
        let in_place = self.program.in_place;
        let (memory, first) = self.program.address(self.rank, operand.buffer, in_place);
        (memory, first + i64::from(operand.offset))
    }

    /// Counts the uses and changes of the chunks that an instruction accesses.
    fn count_uses(&mut self, instruction: &Instruction) {
        let Instruction {
            operation,
            source,
            destination,
            ..
        } = *instruction;
        for (used, operand, changes) in [
            (operation.reads_source(), source, 0),
            (operation.writes_destination(), destination, 1),
        ] {
            let (memory, first) = self.address(operand);
            for chunk in (0..i64::from(instruction.count)).filter(|_| used) {
                let (uses, changed) = self.uses.entry((memory, first + chunk)).or_default();
                (*uses, *changed) = (*uses + 1, *changed + changes);
            }
        }
    }

    /// Returns whether an instruction is a copy that needs no order: no other instruction changes
    /// its source or uses its destination.
    fn is_independent(&self, instruction: &Instruction) -> bool {
        let fits = |operand: Operand, fits: fn((u32, u32)) -> bool| {
            let (memory, first) = self.address(operand);
            (0..i64::from(instruction.count)).all(|chunk| fits(self.uses[&(memory, first + chunk)]))
        };
        instruction.operation == Operation::Copy
            && fits(instruction.source, |(_, changed)| changed == 0)
            && fits(instruction.destination, |(uses, _)| uses == 1)
    }

    fn add(&mut self, block: usize, step: usize, instruction: &Instruction) {
        let mut after = match step.checked_sub(1) {
            Some(before) => self.ends[block][before].clone(),
            None => Vec::new(),
        };
        if let Some(on) = instruction.waits_for {
            after.extend(&self.ends[on.thread_block as usize][on.step as usize]);
        }
        after.sort_unstable();
        after.dedup();
        if self.count(instruction) == 0 {
            self.ends[block][step] = after;
            return;
        }
        let before_copy = self
            .is_independent(instruction)
            .then(|| std::mem::take(&mut after));
        let mut id = self.first[block][step];
        let (mut source, mut destination) = (instruction.source, instruction.destination);
        if instruction.operation == Operation::ReceiveReduceSend {
            destination = Operand {
                rank: None,
                buffer: ChunkBuffer::Scratch,
                offset: self.scratch as i32,
            };
            self.scratch += instruction.count;
        }
        if instruction.operation.receives() {
            let adds = instruction.operation.reads_source();
            let added = if adds { source } else { destination };
            let mut node = self.node(
                id,
                NodeKind::Receive,
                block,
                step,
                instruction.count,
                [added, destination],
            );
            node.data = after;
            node.attributes
                .push(Attribute::new("is_rrc", Value::Bool(adds)));
            self.nodes.push(node);
            after = vec![id];
            id += 1;
            // A fused instruction sends the value that it has stored.
            source = destination;
        }
        if instruction.operation.sends() {
            let mut node = self.node(
                id,
                NodeKind::Send,
                block,
                step,
                instruction.count,
                [source, source],
            );
            node.data = after;
            if let Some(round) = instruction.sent_in {
                node.attributes
                    .push(Attribute::new("round", Value::Int64(round.into())));
            }
            self.nodes.push(node);
            after = vec![id];
        } else if !instruction.operation.receives() {
            let mut node = self.node(
                id,
                NodeKind::Compute,
                block,
                step,
                instruction.count,
                [source, destination],
            );
            node.data = after;
            let (_, name) = Operation::ALL[instruction.operation as usize];
            node.attributes
                .push(Attribute::new("operation", text(name)));
            self.nodes.push(node);
            after = vec![id];
        }
        self.ends[block][step] = before_copy.unwrap_or(after);
    }

    fn node(
        &self,
        id: u64,
        kind: NodeKind,
        block: usize,
        step: usize,
        count: u32,
        [source, destination]: [Operand; 2],
    ) -> ChakraNode {
        let thread_block = &self.program.ranks[self.rank as usize].thread_blocks[block];
        let (name, peer) = match kind {
            NodeKind::Send => {
                let peer = thread_block.sends_to.map(|to| ("comm_dst", to));
                ("COMM_SEND_NODE", peer)
            }
            NodeKind::Receive => {
                let peer = thread_block.receives_from.map(|from| ("comm_src", from));
                ("COMM_RECV_NODE", peer)
            }
            _ => ("COMP_NODE", None),
        };
        let int32 = |name, value: i64| Attribute::new(name, Value::Int32(value as i32));
        let mut attributes = vec![Attribute::new("is_cpu_op", Value::Bool(false))];
        if let Some((name, other)) = peer {
            let bytes = self.chunk_bytes.get() * u64::from(count);
            attributes.extend([
                Attribute::new("comm_type", Value::Int64(kind as i64)),
                Attribute::new("comm_size", Value::Int64(bytes as i64)),
                int32(name, other.into()),
                int32("comm_tag", thread_block.channel.into()),
            ]);
        }
        let scaled = |offset: i32| (i64::from(offset) * self.scale).max(-1);
        let buffer = |operand: Operand| match operand.buffer {
            ChunkBuffer::Input => text("i"),
            ChunkBuffer::Output => text("o"),
            ChunkBuffer::Scratch => text("s"),
        };
        attributes.extend([
            int32("msg_chunk_cnt", i64::from(count) * self.scale),
            int32("msg_chunk_idx", scaled(source.offset)),
            int32("chunk_offset", scaled(destination.offset)),
            int32("total_chunk_cnt", self.chunks * self.scale),
            Attribute::new("srcbuf", buffer(source)),
            Attribute::new("dstbuf", buffer(destination)),
            int32("tb_id", block as i64),
            int32("local_time_step", step as i64),
        ]);
        ChakraNode {
            id,
            name: format!("{name}_tb{block}_step{step}"),
            kind,
            attributes,
            ..ChakraNode::default()
        }
    }

    fn nodes(mut self) -> Vec<ChakraNode> {
        self.nodes.sort_by_key(|node| node.id);
        self.nodes
    }
}
