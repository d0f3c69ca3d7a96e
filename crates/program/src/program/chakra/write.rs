//! Writes Chakra traces that ASTRA-sim takes as a custom collective.
//!
//! Each instruction becomes the nodes that receive and send for it, in the order of its thread block. Instructions
//! that only wait become dependencies of those that follow. Copies of chunks that no other instruction changes, to
//! where no other looks, wait for nothing. Copies to where a chunk lies already, as calls in place
//! have them, are left out, so that they take no time. ASTRA-sim takes numbers of chunks that are a multiple of the
//! number of ranks: where the collective has others, a chunk counts as several.

use rustc_hash::FxHashMap;

use super::super::{
    ChunkBuffer, CollectiveProgram, Instruction, Operand, Operation, ProgramError, walk,
};
use super::parts;
use crate::chakra::{Attribute, ChakraFile, ChakraNode, NodeKind, Value};
use opticoll_base::units::{Bytes, gcd};

/// The version of the schema, as the packages write it.
const SCHEMA: &str = "1.0.2-chakra.0.0.4";

/// The traces of a program for calls in place, where it is for these, by rank.
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
    let order = walk::order(program).map_err(|_| {
        let problem = "this plan has no program: its instructions wait for one another";
        ProgramError::Refused(problem.into())
    })?;
    let ranks = collective.ranks();
    let chunks = collective.pieces() * parts(collective.kind(), ranks);
    let scale = u128::from(ranks) / gcd(chunks.into(), ranks.into());
    let mut writers: Vec<Writer<'_>> = (0..ranks)
        .map(|rank| Writer::new(program, rank, chunk_bytes, i64::from(chunks), scale as i64))
        .collect();
    for turn in order {
        let own = &program.ranks[turn.rank as usize].thread_blocks[turn.thread_block as usize];
        let one = &own.instructions[turn.step as usize];
        writers[turn.rank as usize].add(turn.thread_block as usize, turn.step as usize, one);
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

/// The nodes of a rank.
struct Writer<'a> {
    program: &'a CollectiveProgram,
    rank: u32,
    chunk_bytes: Bytes,
    chunks: i64,
    scale: i64,
    /// Chunks of scratch: those of the program, and room for sums that it only sends on.
    scratch: u32,
    /// By chunk of memory: how many instructions use it, and how many of these change it.
    uses: FxHashMap<(ChunkBuffer, i64), (u32, u32)>,
    /// By thread block and step: the number of its first node.
    first: Vec<Vec<u64>>,
    nodes: Vec<ChakraNode>,
    /// By thread block and step: what is complete when the instruction is.
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
        let own = &program.ranks[rank as usize];
        let mut writer = Writer {
            program,
            rank,
            chunk_bytes,
            chunks,
            scale,
            scratch: own.scratch,
            uses: FxHashMap::default(),
            first: Vec::new(),
            nodes: Vec::new(),
            ends: Vec::new(),
        };
        let mut next = 0;
        for block in &own.thread_blocks {
            let mut first = Vec::with_capacity(block.instructions.len());
            for one in &block.instructions {
                first.push(next);
                next += writer.count(one);
                writer.note(one);
            }
            writer.first.push(first);
            writer.ends.push(vec![Vec::new(); block.instructions.len()]);
        }
        writer
    }

    /// The number of nodes of an instruction.
    fn count(&self, one: &Instruction) -> u64 {
        match one.operation {
            Operation::Nop => 0,
            Operation::Copy if self.address(one.source) == self.address(one.destination) => 0,
            other => 1 + u64::from(other.sends() && other.receives()),
        }
    }

    fn address(&self, operand: Operand) -> (ChunkBuffer, i64) {
        let in_place = self.program.in_place;
        let (memory, first) = self.program.address(self.rank, operand.buffer, in_place);
        (memory, first + i64::from(operand.offset))
    }

    /// Notes what an instruction uses and changes.
    fn note(&mut self, one: &Instruction) {
        let reads = !matches!(
            one.operation,
            Operation::Receive | Operation::ReceiveCopySend | Operation::Nop
        );
        let writes = !matches!(
            one.operation,
            Operation::Send | Operation::ReceiveReduceSend | Operation::Nop
        );
        for (used, operand, changes) in [(reads, one.source, 0), (writes, one.destination, 1)] {
            let (memory, first) = self.address(operand);
            for chunk in (0..i64::from(one.count)).filter(|_| used) {
                let (uses, changed) = self.uses.entry((memory, first + chunk)).or_default();
                (*uses, *changed) = (*uses + 1, *changed + changes);
            }
        }
    }

    /// Whether an instruction is a copy that nothing has to be before or behind.
    fn apart(&self, one: &Instruction) -> bool {
        let all = |operand: Operand, fits: fn((u32, u32)) -> bool| {
            let (memory, first) = self.address(operand);
            (0..i64::from(one.count)).all(|chunk| fits(self.uses[&(memory, first + chunk)]))
        };
        one.operation == Operation::Copy
            && all(one.source, |(_, changed)| changed == 0)
            && all(one.destination, |(uses, _)| uses == 1)
    }

    fn add(&mut self, block: usize, step: usize, one: &Instruction) {
        let mut after = match step.checked_sub(1) {
            Some(before) => self.ends[block][before].clone(),
            None => Vec::new(),
        };
        if let Some(on) = one.waits_for {
            after.extend(&self.ends[on.thread_block as usize][on.step as usize]);
        }
        after.sort_unstable();
        after.dedup();
        if self.count(one) == 0 {
            self.ends[block][step] = after;
            return;
        }
        let apart = self.apart(one).then(|| std::mem::take(&mut after));
        let mut id = self.first[block][step];
        let (mut source, mut destination) = (one.source, one.destination);
        if one.operation == Operation::ReceiveReduceSend {
            destination = Operand {
                buffer: ChunkBuffer::Scratch,
                offset: self.scratch as i32,
            };
            self.scratch += one.count;
        }
        if one.operation.receives() {
            let adds = !matches!(
                one.operation,
                Operation::Receive | Operation::ReceiveCopySend
            );
            let added = if adds { source } else { destination };
            let mut node = self.node(
                id,
                NodeKind::Receive,
                block,
                step,
                one.count,
                [added, destination],
            );
            node.data = after;
            node.attributes
                .push(Attribute::new("is_rrc", Value::Bool(adds)));
            self.nodes.push(node);
            after = vec![id];
            id += 1;
            // What a fused instruction sends is what it has stored.
            source = destination;
        }
        if one.operation.sends() {
            let mut node = self.node(id, NodeKind::Send, block, step, one.count, [source, source]);
            node.data = after;
            if let Some(round) = one.sent_in {
                node.attributes
                    .push(Attribute::new("round", Value::Int64(round.into())));
            }
            self.nodes.push(node);
            after = vec![id];
        } else if !one.operation.receives() {
            let mut node = self.node(
                id,
                NodeKind::Compute,
                block,
                step,
                one.count,
                [source, destination],
            );
            node.data = after;
            let (_, name) = Operation::ALL[one.operation as usize];
            node.attributes
                .push(Attribute::new("operation", text(name)));
            self.nodes.push(node);
            after = vec![id];
        }
        self.ends[block][step] = apart.unwrap_or(after);
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
        let own = &self.program.ranks[self.rank as usize].thread_blocks[block];
        let (name, peer) = match kind {
            NodeKind::Send => ("COMM_SEND_NODE", own.sends_to.map(|to| ("comm_dst", to))),
            NodeKind::Receive => (
                "COMM_RECV_NODE",
                own.receives_from.map(|of| ("comm_src", of)),
            ),
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
                int32("comm_tag", own.channel.into()),
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
