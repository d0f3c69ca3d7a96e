//! Collectives as programs of their ranks, as runtimes such as MSCCL execute them.
//!
//! A schedule defines which chunks move from rank to rank in each step. A program defines what each
//! rank *does*. A rank has an input, an output and a scratch buffer of chunks, and **thread
//! blocks** that run in parallel. Each thread block executes its instructions in order. An
//! instruction receives, sends, copies or reduces `count` consecutive chunks; fused instructions do
//! several of these at once. There are no global steps. Instructions are ordered by
//!
//! - the order within a thread block,
//! - `waits_for`: another instruction of the same rank, which must be complete before,
//! - messages: the k-th send from a rank to another on a channel is received by the k-th receive
//!   there.
//!
//! In calls in place, input and output share memory, as the collective libraries define it (see
//! `opticoll_verify::program`).
//!
//! ```
//! use opticoll_program::program::{CollectiveProgram, Operation};
//! let text = r#"<algo name="pair" nchunksperloop="2" ngpus="2" coll="allgather" inplace="1">
//!   <gpu id="0"><tb id="0" send="1" recv="1" chan="0">
//!     <step s="0" type="s" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1"/>
//!     <step s="1" type="r" srcbuf="o" srcoff="1" dstbuf="o" dstoff="1" cnt="1"/></tb></gpu>
//!   <gpu id="1"><tb id="0" send="0" recv="0" chan="0">
//!     <step s="0" type="s" srcbuf="o" srcoff="1" dstbuf="o" dstoff="1" cnt="1"/>
//!     <step s="1" type="r" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1"/></tb></gpu>
//! </algo>"#;
//! let program = CollectiveProgram::from_msccl(text)?;
//! assert_eq!(program.ranks[1].thread_blocks[0].instructions[1].operation, Operation::Receive);
//! # Ok::<(), opticoll_program::program::ProgramError>(())
//! ```

mod block_layout;
mod chakra;
pub mod element;
mod execution;
mod execution_order;
mod lifting;
mod lowering;
mod memory;
mod msccl;

use std::fmt;

pub use execution::RunSettings;
use thiserror::Error;

use opticoll_base::names::terminal_text;
use opticoll_base::units::Bytes;
use opticoll_plan::collective::{Collective, CollectiveError};
use opticoll_plan::schedule::Schedule;

/// Reason why there is no program, or no program of some form.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// Problem and its place: the line of a file, or the rank.
    #[error("{0}")]
    Refused(String),
    /// The collective is invalid.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
}

impl ProgramError {
    /// Returns the error of a line of a file, counted from 1.
    fn line(line: u32, problem: &str) -> ProgramError {
        ProgramError::Refused(format!("line {line}: {}", terminal_text(problem)))
    }

    /// Returns the error of a rank.
    fn rank(rank: u32, problem: impl fmt::Display) -> ProgramError {
        ProgramError::Refused(format!("rank {rank}: {problem}"))
    }
}

/// Maximum number of chunks of an instruction, as in the MSCCL runtimes.
const MAX_COUNT: u32 = 71;

opticoll_base::named_enum! {
    /// Buffer of a rank.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ChunkBuffer {
        /// Data that the rank contributes.
        Input = "input",
        /// Result of the rank.
        Output = "output",
        /// Memory for intermediate values.
        Scratch = "scratch",
    }
}

/// First chunk of an operand. Unused operands of an instruction may have any offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operand {
    /// Buffer.
    pub buffer: ChunkBuffer,
    /// Index of the chunk in the buffer, from 0.
    pub offset: i32,
}

/// Operation of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Sends the source.
    Send,
    /// Receives into the destination.
    Receive,
    /// Receives into the destination and forwards the data.
    ReceiveCopySend,
    /// Receives, adds the source and stores the sum in the destination.
    ReceiveReduceCopy,
    /// Receives, adds the source and sends the sum.
    ReceiveReduceSend,
    /// Receives, adds the source, stores the sum in the destination and sends it.
    ReceiveReduceCopySend,
    /// Copies the source to the destination.
    Copy,
    /// Adds the source to the destination.
    Reduce,
    /// Only waits.
    Nop,
}

impl Operation {
    /// Operations with their names in MSCCL files.
    pub const ALL: [(Operation, &'static str); 9] = [
        (Operation::Send, "s"),
        (Operation::Receive, "r"),
        (Operation::ReceiveCopySend, "rcs"),
        (Operation::ReceiveReduceCopy, "rrc"),
        (Operation::ReceiveReduceSend, "rrs"),
        (Operation::ReceiveReduceCopySend, "rrcs"),
        (Operation::Copy, "cpy"),
        (Operation::Reduce, "re"),
        (Operation::Nop, "nop"),
    ];
}

/// Reference to an instruction of the same rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dependency {
    /// Index of its thread block.
    pub thread_block: u32,
    /// Index of the instruction in the thread block, from 0.
    pub step: u32,
}

/// Instruction of a thread block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Operation.
    pub operation: Operation,
    /// Operand that is read.
    pub source: Operand,
    /// Operand that is written.
    pub destination: Operand,
    /// Number of consecutive chunks.
    pub count: u32,
    /// Instruction that must be complete before.
    pub waits_for: Option<Dependency>,
    /// True if other instructions may wait for this one.
    pub signals: bool,
    /// Step of a schedule in which the instruction sends, if it is recorded.
    pub sent_in: Option<u32>,
    /// Line of the file, from 1, or the node of its rank's trace; 0 for a program that was not read
    /// from a file.
    pub line: u32,
}

/// Instructions that run one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadBlock {
    /// Rank that it sends to.
    pub sends_to: Option<u32>,
    /// Rank that it receives from.
    pub receives_from: Option<u32>,
    /// Channel of its messages.
    pub channel: u32,
    /// Instructions in order.
    pub instructions: Vec<Instruction>,
}

/// Buffers and thread blocks of a rank. Sizes are in chunks, as the file states them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankProgram {
    /// Number of chunks of the input buffer; 0 if the file leaves it to the collective.
    pub input: u32,
    /// Number of chunks of the output buffer; 0 if the file leaves it to the collective.
    pub output: u32,
    /// Number of chunks of the scratch buffer.
    pub scratch: u32,
    /// Thread blocks, which run in parallel.
    pub thread_blocks: Vec<ThreadBlock>,
}

/// Programs of all ranks for a collective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectiveProgram {
    /// Name, for information.
    pub name: String,
    /// Collective that the program carries out.
    pub collective: Collective,
    /// Protocol that it requests from the runtime, such as `Simple`.
    pub protocol: String,
    /// True if it supports calls in place.
    pub in_place: bool,
    /// True if it supports calls with separate buffers.
    pub out_of_place: bool,
    /// Program of each rank.
    pub ranks: Vec<RankProgram>,
}

impl CollectiveProgram {
    /// Reads a program from MSCCL XML.
    ///
    /// # Errors
    /// Malformed XML, or an invalid element or number; the message contains the line.
    pub fn from_msccl(text: &str) -> Result<CollectiveProgram, ProgramError> {
        msccl::read(text)
    }

    /// Creates the program that carries out a schedule. The schedule's claims are omitted.
    ///
    /// # Errors
    /// A barrier, which moves no chunks, or an all_to_all whose blocks differ.
    pub fn from_schedule(
        schedule: &Schedule,
        name: String,
    ) -> Result<CollectiveProgram, ProgramError> {
        lowering::lower(schedule, name)
    }

    /// Returns the program as MSCCL XML.
    ///
    /// # Errors
    /// A program that exceeds a limit of the runtimes.
    pub fn to_msccl(&self) -> Result<String, ProgramError> {
        msccl::write(self)
    }

    /// Reads a program from Chakra traces, which are in the order of the ranks.
    ///
    /// # Errors
    /// A malformed trace, or a trace that does not define which chunks it moves; the message
    /// contains the rank and the byte.
    pub fn from_chakra(traces: &[&[u8]]) -> Result<CollectiveProgram, ProgramError> {
        chakra::read(traces)
    }

    /// Returns the program as Chakra traces in the order of the ranks, for a collective of some
    /// size.
    ///
    /// # Errors
    /// A size that cannot be divided into equal chunks of whole bytes.
    pub fn to_chakra(&self, size: Bytes) -> Result<Vec<Vec<u8>>, ProgramError> {
        chakra::write(self, size)
    }

    /// Returns the schedule of a proved program, with steps by dependence, and the number of
    /// redundant chunks: chunks that the program sends to ranks that already have them, which the
    /// schedule omits.
    ///
    /// # Errors
    /// A program that keeps several values of a chunk at a rank, or that is not proved.
    pub fn schedule(&self, in_place: bool) -> Result<(Schedule, u64), ProgramError> {
        lifting::lift(self, in_place)
    }

    /// Returns the number of instructions of all ranks.
    pub fn instructions(&self) -> usize {
        let blocks = self.ranks.iter().flat_map(|rank| &rank.thread_blocks);
        blocks.map(|block| block.instructions.len()).sum()
    }

    /// Returns the number of thread blocks of all ranks.
    pub fn thread_blocks(&self) -> usize {
        self.ranks.iter().map(|rank| rank.thread_blocks.len()).sum()
    }
}
