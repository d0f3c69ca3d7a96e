//! Reader of custom collectives from Chakra traces: one trace per rank, with nodes that send,
//! receive and compute.
//!
//! Three sources may define the chunks of a message. The reader uses the first one that is present:
//!
//! 1. The attributes `srcbuf` and `dstbuf` (`i`, `o` or `s`) with `msg_chunk_idx`, `chunk_offset`
//!    and `msg_chunk_cnt`, as opticoll writes them. `msg_chunk_idx` is a chunk of the source.
//!    `chunk_offset` is a chunk of the destination, or of the source if the node sends.
//! 2. MSCCL XML in the header attribute `input_file`, if nodes are named after their thread block
//!    and step, as ASTRA-sim's converter names them.
//! 3. The attributes `msg_chunk_idx`, `chunk_offset` and `msg_chunk_cnt` alone. They refer to the
//!    buffers of a call in place.
//!
//! A receive with `is_rrc` adds the received data. A node that computes copies or reduces if its
//! `operation` (`cpy`, `re`) or the XML says so. Otherwise the node only takes time. Nodes that
//! wait for such a node then wait for its dependencies instead.
//!
//! Nodes have dependencies instead of thread blocks. A node joins a thread block only if the last
//! node of the thread block happens before it, so that thread blocks add no order. The k-th send of
//! a (source, destination, tag) is matched with the k-th receive. If the dependencies do not define
//! the order of sends, two thread blocks use the same connection, which the verifier reports as a
//! violation.
//!
//! Source: `CustomAlgorithm.cc` of ASTRA-sim, and the converter of MSCCL XML in ASTRA-sim.

mod blocks;
mod write;

use super::{
    ChunkBuffer, CollectiveProgram, Instruction, Operand, Operation, ProgramError, RankProgram,
    msccl,
};
use crate::chakra::{ChakraError, ChakraFile, ChakraNode, NodeKind};
use blocks::{Step, build_thread_blocks};
use opticoll_plan::collective::{Collective, CollectiveKind};
pub(super) use write::write;

/// Maximum number of ranks, maximum number of chunks and greatest tag, as for MSCCL XML.
const MAX_NUMBER: i128 = 1 << 20;

/// Reads a program from the traces of all ranks, indexed by rank.
pub(super) fn read(traces: &[&[u8]]) -> Result<CollectiveProgram, ProgramError> {
    let files = traces.iter().enumerate();
    let files = files.map(|(rank, bytes)| ChakraFile::read(bytes).map_err(|error| at(rank, error)));
    let files: Vec<ChakraFile> = files.collect::<Result<_, _>>()?;
    let Some(first) = files.first() else {
        let problem = "no trace of a rank was given";
        return Err(ProgramError::Refused(problem.into()));
    };
    for (rank, file) in files.iter().enumerate() {
        for name in ["collective", "input_file"] {
            if file.text(name) != first.text(name) {
                let problem = format!("its header has another `{name}` than that of rank 0");
                return Err(at(rank, header(problem)));
            }
        }
        for name in ["ranks", "root", "pieces", "size", "inplace", "outofplace"] {
            let value = |rank: usize| files[rank].whole(name).map_err(|error| at(rank, error));
            if value(rank)? != value(0)? {
                let problem = format!("its header has another `{name}` than that of rank 0");
                return Err(at(rank, header(problem)));
            }
        }
    }
    let mut reader = Reader::new(&files)?;
    let ranks = files.iter().enumerate().map(|(rank, file)| {
        let program = reader.rank(rank, file);
        program.map_err(|error| at(rank, error))
    });
    let ranks = ranks.collect::<Result<Vec<RankProgram>, _>>()?;
    let template = reader.template.as_ref();
    let flag = |name, default| {
        let value = first.whole(name);
        value.map(|value| value.map_or(default, |number| number != 0))
    };
    let in_place = flag("inplace", template.is_none_or(|template| template.in_place));
    let out_of_place = flag(
        "outofplace",
        template.is_some_and(|template| template.out_of_place),
    );
    let program = CollectiveProgram {
        name: match (first.text("name"), template) {
            (Some(name), _) => name.to_owned(),
            (None, Some(template)) => template.name.clone(),
            (None, None) => String::new(),
        },
        collective: reader.collective,
        protocol: template
            .map_or_else(|| "Simple".to_owned(), |template| template.protocol.clone()),
        in_place: in_place.map_err(|error| at(0, error))?,
        out_of_place: out_of_place.map_err(|error| at(0, error))?,
        switched: Vec::new(),
        ranks_per_server: None,
        double_scratch: false,
        ranks,
    };
    if !program.in_place && !program.out_of_place {
        let problem = "the program supports calls neither in place nor out of place";
        return Err(at(0, header(problem.into())));
    }
    Ok(program)
}

fn at(rank: usize, error: ChakraError) -> ProgramError {
    ProgramError::rank(rank as u32, error)
}

fn header(problem: String) -> ChakraError {
    ChakraError { offset: 0, problem }
}

/// Returns the number of blocks in a buffer for a collective of `kind`.
fn parts(kind: CollectiveKind, ranks: u32) -> u32 {
    match kind {
        CollectiveKind::AllReduce | CollectiveKind::Broadcast | CollectiveKind::Reduce => 1,
        _ => ranks,
    }
}

struct Reader {
    collective: Collective,
    /// Program that the header contains as MSCCL XML.
    template: Option<CollectiveProgram>,
    /// Number of chunks of the trace that form one chunk of the collective.
    scale: i128,
    /// Number of bytes of a chunk of the collective; `None` if not yet known.
    chunk_bytes: Option<i128>,
}

impl Reader {
    fn new(files: &[ChakraFile]) -> Result<Reader, ProgramError> {
        let first = &files[0];
        let whole = |name| first.whole(name).map_err(|error| at(0, error));
        let wrong = |problem: String| Err(at(0, header(problem)));
        let ranks = files.len() as u32;
        if let Some(stated) = whole("ranks")?.filter(|stated| *stated != ranks.into()) {
            return wrong(format!(
                "its header states {stated} ranks, but there are {ranks} traces; give the traces \
                 of all ranks"
            ));
        }
        let embedded = first
            .text("input_file")
            .filter(|text| text.contains("<algo"));
        let template = embedded.map(msccl::read).transpose()?;
        let named = match (first.text("collective"), &template) {
            (Some(name), _) => name.parse::<CollectiveKind>()?,
            (None, Some(template)) => template.collective.kind(),
            (None, None) => {
                let problem = "its header has no `collective`, such as allreduce; without it \
                               nothing can be proved";
                return wrong(problem.into());
            }
        };
        if named == CollectiveKind::Barrier {
            return wrong("a barrier moves no chunks".into());
        }
        let parts = parts(named, ranks);
        let stated = files.iter().enumerate().flat_map(|(rank, file)| {
            let nodes = file.nodes.iter();
            nodes.map(move |node| {
                node.whole("total_chunk_cnt")
                    .map_err(|error| at(rank, error))
            })
        });
        let mut total = None;
        if template.is_none() {
            for stated in stated {
                total = total.or(stated?.filter(|total| *total > 0));
                if total.is_some() {
                    break;
                }
            }
        }
        let pieces = match (whole("pieces")?, &template, total) {
            (Some(pieces), _, _) => pieces,
            (None, Some(template), _) => template.collective.pieces().into(),
            (None, None, Some(total)) => total / i128::from(parts),
            (None, None, None) => 1,
        };
        let chunks = pieces * i128::from(parts);
        let scale = total.unwrap_or(chunks) / chunks.max(1);
        if !(1..=MAX_NUMBER).contains(&chunks)
            || scale * chunks != total.unwrap_or(chunks)
            || scale > MAX_NUMBER
        {
            let total = total.unwrap_or(chunks);
            return wrong(format!(
                "{named} of {ranks} ranks cannot be cut into {total} chunks"
            ));
        }
        let root = whole("root")?.unwrap_or(0);
        let root = u32::try_from(root).unwrap_or(u32::MAX);
        let collective = Collective::new(named, ranks)?;
        let collective = collective.with_root(root)?.with_pieces(pieces as u32)?;
        if let Some(template) = template
            .as_ref()
            .filter(|template| template.collective != collective)
        {
            let (kind, ranks) = (template.collective.kind(), template.collective.ranks());
            return wrong(format!(
                "the program in its header is of {kind} on {ranks} ranks, the trace of \
                 {collective_kind} on {of}",
                collective_kind = collective.kind(),
                of = collective.ranks(),
            ));
        }
        let chunk_bytes = match whole("size")? {
            None => None,
            Some(size) => {
                let bytes = opticoll_base::units::Bytes::new(u64::try_from(size).unwrap_or(0));
                let Some(bytes) = collective.uniform_chunk_bytes(bytes) else {
                    return wrong(format!(
                        "its size of {size} bytes cannot be cut into equal chunks"
                    ));
                };
                Some(bytes.get().into())
            }
        };
        Ok(Reader {
            collective,
            template,
            scale,
            chunk_bytes,
        })
    }

    fn rank(&mut self, rank: usize, file: &ChakraFile) -> Result<RankProgram, ChakraError> {
        let mut steps = Vec::with_capacity(file.nodes.len());
        for node in &file.nodes {
            steps.push(self.step(rank, node)?);
        }
        let thread_blocks = build_thread_blocks(&file.nodes, &steps)?;
        let instructions = thread_blocks.iter().flat_map(|block| &block.instructions);
        let ends = instructions.flat_map(|instruction| {
            let operands = [instruction.source, instruction.destination].into_iter();
            operands
                .filter(|operand| operand.buffer == ChunkBuffer::Scratch)
                .map(|operand| operand.offset + instruction.count as i32)
        });
        Ok(RankProgram {
            input: 0,
            output: 0,
            scratch: ends.max().unwrap_or(0).max(0) as u32,
            thread_blocks,
        })
    }

    fn step(&mut self, rank: usize, node: &ChakraNode) -> Result<Step, ChakraError> {
        let position = named_position(&node.name);
        let label = match node.whole("tb_id")? {
            Some(block) => Some(block),
            None => position.map(|(block, _)| block as i128),
        };
        let template_instruction =
            self.template
                .as_ref()
                .zip(position)
                .and_then(|(template, (block, step))| {
                    let blocks = &template.ranks.get(rank)?.thread_blocks;
                    blocks.get(block)?.instructions.get(step).copied()
                });
        let Some(operation) = operation(node, template_instruction.as_ref())? else {
            return Ok(Step {
                label,
                ..Step::default()
            });
        };
        let peer = match operation {
            Operation::Send => Some("comm_dst"),
            Operation::Receive | Operation::ReceiveReduceCopy => Some("comm_src"),
            _ => None,
        };
        let peer = peer.map(|name| {
            let found = node.whole(name)?;
            let other = found.filter(|other| (0..MAX_NUMBER).contains(other));
            let other = other.ok_or_else(|| match found {
                None => node.error(format!("it has no {name}")),
                Some(other) => node.error(format!("{name} is {other}, which is not a rank")),
            })?;
            Ok(other as u32)
        });
        let tag = node.whole("comm_tag")?.unwrap_or(0);
        if !(0..=i128::from(u32::MAX)).contains(&tag) {
            return Err(node.error(format!("comm_tag is {tag}")));
        }
        let (source, destination, count) =
            self.operands(node, operation, template_instruction.as_ref())?;
        if peer.is_some() {
            self.check_bytes(node, count)?;
        }
        let sent_in = node
            .whole("round")?
            .filter(|_| operation == Operation::Send);
        Ok(Step {
            label,
            peer: peer.transpose()?,
            tag: tag as u32,
            instruction: Some(Instruction {
                operation,
                source,
                destination,
                count,
                waits_for: None,
                signals: false,
                sent_in: sent_in.and_then(|step| u32::try_from(step).ok()),
                line: node.record,
            }),
        })
    }

    /// Returns the source operand, the destination operand and the number of chunks of a node.
    /// `template_instruction` is the instruction of the node in the header's program.
    fn operands(
        &self,
        node: &ChakraNode,
        operation: Operation,
        template_instruction: Option<&Instruction>,
    ) -> Result<(Operand, Operand, u32), ChakraError> {
        let count = node.whole("msg_chunk_cnt")?.filter(|count| *count >= 0);
        let names_buffer = node.text("srcbuf").or(node.text("dstbuf")).is_some();
        if let Some(instruction) = template_instruction.filter(|_| !names_buffer) {
            if count.is_some_and(|count| count != instruction.count.into()) {
                let count = count.unwrap_or(0);
                return Err(node.error(format!(
                    "it has {count} chunks, but the program in the header has {} chunks",
                    instruction.count
                )));
            }
            // A fused instruction sends the value that it has stored.
            let sends = operation == Operation::Send && instruction.operation != Operation::Send;
            let source = if sends {
                instruction.destination
            } else {
                instruction.source
            };
            return Ok((source, instruction.destination, instruction.count));
        }
        let Some(count) = count else {
            return Err(node.error(
                "neither the node (msg_chunk_cnt, msg_chunk_idx) nor a program in the header \
                 states the chunks that it carries; such a trace cannot be proved",
            ));
        };
        let parts = parts(self.collective.kind(), self.collective.ranks());
        let total = i128::from(self.collective.pieces()) * i128::from(parts) * self.scale;
        let stated = node.whole("total_chunk_cnt")?.filter(|stated| *stated > 0);
        if let Some(stated) = stated.filter(|stated| *stated != total) {
            return Err(node.error(format!("total_chunk_cnt is {stated}, elsewhere {total}")));
        }
        let first = node.whole("msg_chunk_idx")?;
        let second = node.whole("chunk_offset")?;
        let (first, second) = match operation {
            Operation::Send => (second.or(first), second.or(first)),
            _ => (first.or(second), second.or(first)),
        };
        let kind = self.collective.kind();
        // Buffers that contain all chunks if the call is in place.
        let (reads, writes) = match kind {
            CollectiveKind::AllGather | CollectiveKind::Gather => ("o", "o"),
            CollectiveKind::AllToAll => ("i", "o"),
            _ => ("i", "i"),
        };
        Ok((
            self.operand(node, "srcbuf", reads, first)?,
            self.operand(node, "dstbuf", writes, second)?,
            self.chunks(node, "msg_chunk_cnt", count)? as u32,
        ))
    }

    fn operand(
        &self,
        node: &ChakraNode,
        buffer: &str,
        default: &str,
        offset: Option<i128>,
    ) -> Result<Operand, ChakraError> {
        let buffer = match node.text(buffer).unwrap_or(default) {
            "i" => ChunkBuffer::Input,
            "o" => ChunkBuffer::Output,
            "s" => ChunkBuffer::Scratch,
            _ => return Err(node.error(format!("{buffer} is not i, o or s"))),
        };
        let offset = offset.ok_or_else(|| node.error("it has no msg_chunk_idx"))?;
        let offset = self.chunks(node, "the chunk", offset)?;
        Ok(Operand {
            rank: None,
            buffer,
            offset,
        })
    }

    /// Converts `number`, a number of chunks of the trace, to a number of chunks of the collective.
    /// `what` names the number in errors.
    fn chunks(&self, node: &ChakraNode, what: &str, number: i128) -> Result<i32, ChakraError> {
        if !(-1..=MAX_NUMBER * self.scale).contains(&number) {
            return Err(node.error(format!("{what} is {number}")));
        }
        if number > 0 && number % self.scale != 0 {
            let scale = self.scale;
            return Err(node.error(format!(
                "{what} is {number}, which is not a multiple of {scale}"
            )));
        }
        Ok(if number < 0 {
            -1
        } else {
            (number / self.scale) as i32
        })
    }

    /// Checks that the bytes of a message agree with its number of chunks.
    fn check_bytes(&mut self, node: &ChakraNode, count: u32) -> Result<(), ChakraError> {
        let Some(bytes) = node.whole("comm_size")?.filter(|_| count > 0) else {
            return Ok(());
        };
        let count = i128::from(count);
        let chunk_bytes = *self.chunk_bytes.get_or_insert(bytes / count);
        if bytes != chunk_bytes * count {
            let chunks = if count == 1 { "chunk" } else { "chunks" };
            return Err(node.error(format!(
                "its {count} {chunks} have {bytes} bytes, but should have {} bytes",
                chunk_bytes * count
            )));
        }
        Ok(())
    }
}

/// Returns the operation of a node; `None` if the node does not use chunks. `from` is the node's
/// instruction in the MSCCL XML of the header, if there is one.
fn operation(
    node: &ChakraNode,
    template_instruction: Option<&Instruction>,
) -> Result<Option<Operation>, ChakraError> {
    let template_operation = template_instruction.map(|instruction| instruction.operation);
    let adds = match node.whole("is_rrc")? {
        Some(adds) => adds != 0,
        None => matches!(
            template_operation,
            Some(Operation::ReceiveReduceCopy | Operation::ReceiveReduceCopySend)
        ),
    };
    let known = match node.kind {
        NodeKind::Send if template_operation.is_none_or(Operation::sends) => Some(Operation::Send),
        NodeKind::Receive if template_operation == Some(Operation::ReceiveReduceSend) => None,
        NodeKind::Receive if template_operation.is_none_or(Operation::receives) => {
            Some(match adds {
                true => Operation::ReceiveReduceCopy,
                false => Operation::Receive,
            })
        }
        NodeKind::Compute => {
            return Ok(match (node.text("operation"), template_operation) {
                (Some("cpy"), _) | (None, Some(Operation::Copy)) => Some(Operation::Copy),
                (Some("re"), _) | (None, Some(Operation::Reduce)) => Some(Operation::Reduce),
                _ => None,
            });
        }
        NodeKind::Collective => {
            return Err(node.error(
                "it is a whole collective, but a schedule has nodes that send and receive; use \
                 opticoll replay for workloads",
            ));
        }
        NodeKind::Send | NodeKind::Receive => None,
        _ => return Ok(None),
    };
    known.map(Some).ok_or_else(|| {
        let name = template_operation.map_or("", |operation| Operation::ALL[operation as usize].1);
        node.error(format!(
            "the program in the header has `{name}` in its place"
        ))
    })
}

/// Parses the thread block and the step in a name such as `COMM_SEND_NODE_tb0_step3`.
fn named_position(name: &str) -> Option<(usize, usize)> {
    let (rest, step) = name.rsplit_once("_step")?;
    let (_, block) = rest.rsplit_once("_tb")?;
    Some((block.parse().ok()?, step.parse().ok()?))
}
