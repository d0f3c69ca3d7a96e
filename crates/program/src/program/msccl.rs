//! Reader of MSCCL XML, whose elements are `algo` > `gpu` > `tb` > `step`. Files of SCCL also have
//! `gpu` > `copy`.
//!
//! Attributes that only some runtimes write (`redop`, `maxcount`, `nthreadblocks`, `outofplace`,
//! `minBytes`, ...) may be missing or unknown. Document types, and with them entities, are
//! rejected. Files and attributes that exceed any realistic size are rejected as well. The
//! attribute `round` is an addition of opticoll, which runtimes ignore: the step of the schedule in
//! which an instruction sends.

mod write;

use roxmltree::{Document, Node, ParsingOptions};

use super::block_layout::wait_instruction;
use super::{
    ChunkBuffer, CollectiveProgram, Dependency, Instruction, Operand, Operation, ProgramError,
    RankProgram, ThreadBlock,
};
use opticoll_base::interrupt;
use opticoll_base::names::terminal_text;
use opticoll_plan::collective::{Collective, CollectiveKind};

pub(super) use write::write;

/// Maximum number of bytes of a file. The largest public file has 0.7 MB.
const MAX_BYTES: usize = 256 << 20;

/// Maximum number of elements, comments and texts in a file.
const MAX_NODES: u32 = 1 << 23;

/// Maximum number of bytes of an attribute. Runtimes accept names of 255 bytes.
const MAX_ATTRIBUTE_BYTES: usize = 4096;

/// Maximum depth of nested elements. Programs need a depth of four.
const MAX_DEPTH: usize = 64;

/// Element of a copy from input to output before all instructions. SCCL wrote such elements until
/// July 2021 (`sccl/ncclize.py` of msccl-tools at commit 4627fd1).
const COPY: &str = "copy";

/// Maximum number of ranks, chunks or channels. It is small enough for the number types of runtimes
/// and for memory.
const MAX_NUMBER: i64 = 1 << 20;

pub(super) fn read(text: &str) -> Result<CollectiveProgram, ProgramError> {
    if text.len() > MAX_BYTES {
        let bytes = text.len();
        return Err(ProgramError::Refused(format!(
            "the file has {bytes} bytes; programs of at most {MAX_BYTES} bytes are read"
        )));
    }
    check_depth(text)?;
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: MAX_NODES,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let problem = format!("the file is not XML of a program: {error}");
        ProgramError::Refused(terminal_text(&problem))
    })?;
    let reader = Reader {
        line_starts: text.match_indices('\n').map(|(at, _)| at + 1).collect(),
    };
    reader.algorithm(document.root_element())
}

/// Checks, before parsing, that elements are not nested too deeply. Also counts tags inside
/// comments, which only makes the limit stricter.
fn check_depth(text: &str) -> Result<(), ProgramError> {
    let (mut depth, mut line) = (0usize, 1u32);
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\n' => line += 1,
            b'<' => match bytes.get(at + 1) {
                Some(b'/') => depth = depth.saturating_sub(1),
                Some(b'!' | b'?') | None => {}
                _ => depth += 1,
            },
            b'>' if at > 0 && bytes[at - 1] == b'/' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            let problem = format!("elements are nested more than {MAX_DEPTH} deep");
            return Err(ProgramError::line(line, &problem));
        }
    }
    Ok(())
}

struct Reader {
    /// Byte offset of each line, from the second line on.
    line_starts: Vec<usize>,
}

impl Reader {
    fn line(&self, node: Node<'_, '_>) -> u32 {
        let start = node.range().start;
        1 + self.line_starts.partition_point(|&line| line <= start) as u32
    }

    fn error(&self, node: Node<'_, '_>, problem: String) -> ProgramError {
        ProgramError::line(self.line(node), &problem)
    }

    fn algorithm(&self, algo: Node<'_, '_>) -> Result<CollectiveProgram, ProgramError> {
        if algo.tag_name().name() != "algo" {
            let problem = format!(
                "the file begins with <{}>, not <algo>",
                algo.tag_name().name()
            );
            return Err(self.error(algo, problem));
        }
        let ranks = self.number(algo, "ngpus", 1, MAX_NUMBER)? as u32;
        let chunks = self.number(algo, "nchunksperloop", 1, MAX_NUMBER)? as u32;
        let coll = self.attribute(algo, "coll")?;
        let kind: CollectiveKind =
            coll.parse()
                .map_err(|error: opticoll_plan::collective::CollectiveError| {
                    self.error(algo, format!("coll: {error}"))
                })?;
        let parts = match kind {
            CollectiveKind::AllGather
            | CollectiveKind::ReduceScatter
            | CollectiveKind::AllToAll
            | CollectiveKind::Gather
            | CollectiveKind::Scatter => ranks,
            _ => 1,
        };
        if kind == CollectiveKind::Barrier || chunks % parts != 0 {
            let problem = format!("{kind} of {ranks} ranks cannot be cut into {chunks} chunks");
            return Err(self.error(algo, problem));
        }
        let root = self.number_or(algo, "root", 0, 0, MAX_NUMBER)? as u32;
        let collective = Collective::new(kind, ranks)?
            .with_root(root)?
            .with_pieces(chunks / parts)?;
        let in_place = self.number_or(algo, "inplace", 0, 0, 1)? == 1;
        let default = i64::from(!in_place);
        let out_of_place = self.number_or(algo, "outofplace", default, 0, 1)? == 1;
        if !in_place && !out_of_place {
            let problem = "the program supports calls neither in place nor out of place".into();
            return Err(self.error(algo, problem));
        }
        let gpus = self.numbered(algo, "gpu", "id", |gpu| self.rank(gpu, ranks))?;
        if gpus.len() != ranks as usize {
            let problem = format!("ngpus is {ranks}, but there are {} gpus", gpus.len());
            return Err(self.error(algo, problem));
        }
        Ok(CollectiveProgram {
            name: self.attribute_or(algo, "name", "")?.to_owned(),
            collective,
            protocol: self.attribute_or(algo, "proto", "Simple")?.to_owned(),
            in_place,
            out_of_place,
            switched: Vec::new(),
            ranks_per_server: None,
            double_scratch: false,
            ranks: gpus,
        })
    }

    fn rank(&self, gpu: Node<'_, '_>, ranks: u32) -> Result<RankProgram, ProgramError> {
        let mut blocks = self.numbered(gpu, "tb", "id", |tb| self.thread_block(tb, ranks))?;
        self.add_copies(gpu, &mut blocks)?;
        Ok(RankProgram {
            input: self.number_or(gpu, "i_chunks", 0, 0, MAX_NUMBER)? as u32,
            output: self.number_or(gpu, "o_chunks", 0, 0, MAX_NUMBER)? as u32,
            scratch: self.number_or(gpu, "s_chunks", 0, 0, MAX_NUMBER)? as u32,
            thread_blocks: blocks,
        })
    }

    /// Adds a thread block with the initial copies (`<copy>`) of a rank, for which all others wait.
    fn add_copies(
        &self,
        gpu: Node<'_, '_>,
        blocks: &mut Vec<ThreadBlock>,
    ) -> Result<(), ProgramError> {
        let offset = |copy, name| self.number(copy, name, 0, MAX_NUMBER);
        let operand = |buffer, offset: i64| Operand {
            rank: None,
            buffer,
            offset: offset as i32,
        };
        let copies = gpu.children().filter(|child| child.has_tag_name(COPY));
        let mut instructions = Vec::new();
        for copy in copies {
            instructions.push(Instruction {
                operation: Operation::Copy,
                source: operand(ChunkBuffer::Input, offset(copy, "i_off")?),
                destination: operand(ChunkBuffer::Output, offset(copy, "o_off")?),
                count: 1,
                waits_for: None,
                signals: false,
                sent_in: None,
                line: self.line(copy),
            });
        }
        let Some(last) = instructions.last_mut() else {
            return Ok(());
        };
        last.signals = true;
        let copied = Dependency {
            rank: None,
            thread_block: blocks.len() as u32,
            step: instructions.len() as u32 - 1,
        };
        for block in &mut *blocks {
            // The instruction that waits for the copies is the first, so all others are one later.
            for waits in block.instructions.iter_mut() {
                waits.waits_for = waits.waits_for.map(|on| Dependency {
                    step: on.step + 1,
                    ..on
                });
            }
            let line = block.instructions.first().map_or(0, |first| first.line);
            block
                .instructions
                .insert(0, wait_instruction(Some(copied), line));
        }
        blocks.push(ThreadBlock {
            sends_to: None,
            receives_from: None,
            channel: 0,
            instructions,
        });
        Ok(())
    }

    fn thread_block(&self, tb: Node<'_, '_>, ranks: u32) -> Result<ThreadBlock, ProgramError> {
        let max_rank = i64::from(ranks) - 1;
        let peer = |name| {
            let rank = self.number_or(tb, name, -1, -1, max_rank)?;
            Ok::<_, ProgramError>(u32::try_from(rank).ok())
        };
        Ok(ThreadBlock {
            sends_to: peer("send")?,
            receives_from: peer("recv")?,
            channel: self.number_or(tb, "chan", 0, 0, MAX_NUMBER)? as u32,
            instructions: self.numbered(tb, "step", "s", |step| self.instruction(step))?,
        })
    }

    fn instruction(&self, step: Node<'_, '_>) -> Result<Instruction, ProgramError> {
        interrupt::check();
        let name = self.attribute(step, "type")?;
        let matching = Operation::ALL.into_iter().find(|(_, other)| *other == name);
        let Some((operation, _)) = matching else {
            let names = Operation::ALL.map(|(_, name)| name).join(", ");
            let problem = format!("type `{name}` is not one of {names}");
            return Err(self.error(step, problem));
        };
        let thread_block = self.number_or(step, "depid", -1, -1, MAX_NUMBER)?;
        let waited = self.number_or(step, "deps", -1, -1, MAX_NUMBER)?;
        let waits_for = match (u32::try_from(thread_block), u32::try_from(waited)) {
            (Ok(thread_block), Ok(step)) => Some(Dependency {
                rank: None,
                thread_block,
                step,
            }),
            (Ok(_), Err(_)) => {
                return Err(self.error(step, "depid without deps: no step to wait for".into()));
            }
            _ => None,
        };
        let min_count = i64::from(operation != Operation::Nop);
        Ok(Instruction {
            operation,
            source: self.operand(step, "srcbuf", "srcoff")?,
            destination: self.operand(step, "dstbuf", "dstoff")?,
            count: self.number_or(step, "cnt", min_count, min_count, MAX_NUMBER)? as u32,
            waits_for,
            signals: self.number_or(step, "hasdep", 0, 0, 1)? == 1,
            sent_in: u32::try_from(self.number_or(step, "round", -1, -1, MAX_NUMBER)?).ok(),
            line: self.line(step),
        })
    }

    fn operand(
        &self,
        step: Node<'_, '_>,
        buffer: &str,
        offset: &str,
    ) -> Result<Operand, ProgramError> {
        let name = step.attribute(buffer).unwrap_or("i");
        let buffer = match name {
            "i" => ChunkBuffer::Input,
            "o" => ChunkBuffer::Output,
            "s" => ChunkBuffer::Scratch,
            _ => {
                let problem = format!("{buffer} `{name}` is not i, o or s");
                return Err(self.error(step, problem));
            }
        };
        Ok(Operand {
            rank: None,
            buffer,
            offset: self.number_or(step, offset, -1, -1, MAX_NUMBER)? as i32,
        })
    }

    /// Reads the children of `parent`, sorted by their numbers, which must be 0, 1, 2, ... without
    /// gaps.
    fn numbered<T>(
        &self,
        parent: Node<'_, '_>,
        tag: &str,
        number: &str,
        read: impl Fn(Node<'_, '_>) -> Result<T, ProgramError>,
    ) -> Result<Vec<T>, ProgramError> {
        let mut children = Vec::new();
        for child in parent.children() {
            if child.is_text() && child.text().is_some_and(|text| !text.trim().is_empty()) {
                let problem = format!("text within <{}>", parent.tag_name().name());
                return Err(self.error(child, problem));
            }
            if !child.is_element() || (tag == "tb" && child.has_tag_name(COPY)) {
                continue;
            }
            if child.tag_name().name() != tag {
                let (inner, outer) = (child.tag_name().name(), parent.tag_name().name());
                let problem = format!("<{inner}> within <{outer}>, where only <{tag}> may be");
                return Err(self.error(child, problem));
            }
            children.push((self.number(child, number, 0, MAX_NUMBER)? as usize, child));
        }
        children.sort_by_key(|(number, _)| *number);
        let gap = children
            .iter()
            .enumerate()
            .find(|(place, (number, _))| place != number);
        if let Some((place, (found, child))) = gap {
            let problem = if *found < place {
                format!("<{tag}> {found} occurs twice")
            } else {
                format!("<{tag}> {place} is missing: elements are numbered from 0 without gaps")
            };
            return Err(self.error(*child, problem));
        }
        children.into_iter().map(|(_, child)| read(child)).collect()
    }

    fn attribute<'a>(&self, node: Node<'a, '_>, name: &str) -> Result<&'a str, ProgramError> {
        let Some(value) = node.attribute(name) else {
            let problem = format!("<{}> has no attribute `{name}`", node.tag_name().name());
            return Err(self.error(node, problem));
        };
        if value.len() > MAX_ATTRIBUTE_BYTES {
            let problem = format!("{name} has {} bytes", value.len());
            return Err(self.error(node, problem));
        }
        Ok(value)
    }

    fn attribute_or<'a>(
        &self,
        node: Node<'a, '_>,
        name: &str,
        default: &'a str,
    ) -> Result<&'a str, ProgramError> {
        match node.attribute(name) {
            Some(_) => self.attribute(node, name),
            None => Ok(default),
        }
    }

    fn number(
        &self,
        node: Node<'_, '_>,
        name: &str,
        min: i64,
        max: i64,
    ) -> Result<i64, ProgramError> {
        let value = self.attribute(node, name)?;
        let number: Option<i64> = value.trim().parse().ok();
        number
            .filter(|number| (min..=max).contains(number))
            .ok_or_else(|| {
                let problem = format!("{name} `{value}` is not a number from {min} to {max}");
                self.error(node, problem)
            })
    }

    fn number_or(
        &self,
        node: Node<'_, '_>,
        name: &str,
        default: i64,
        min: i64,
        max: i64,
    ) -> Result<i64, ProgramError> {
        match node.attribute(name) {
            Some(_) => self.number(node, name, min, max),
            None => Ok(default),
        }
    }
}
