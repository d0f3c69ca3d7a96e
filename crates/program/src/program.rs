//! A collective as programs of its ranks: what runtimes such as MSCCL execute.
//!
//! A schedule says what moves from rank to rank, step by step. A program says what each rank *does*: it has
//! an input, an output and a scratch buffer of chunks, and **thread blocks** that run side by side, each of
//! which carries out its instructions in order. An instruction receives, sends, copies or reduces `count`
//! consecutive chunks; the fused ones do several of these at once. There are no global steps. What orders
//! instructions is
//!
//! - the order within a thread block,
//! - `waits_for`: another instruction of the same rank, which must be complete before,
//! - messages: the k-th send from a rank to another on a channel is received by the k-th receive there.
//!
//! In place, input and output share memory, as the collective libraries define it (`opticoll_verify::program`
//! says where).
//!
//! ```
//! use opticoll_program::program::{CollectiveProgram, Operation};
//! let text = r#"<algo name="pair" nchunksperloop="2" ngpus="2" coll="allgather" inplace="1">
//!   <gpu id="0"><tb id="0" send="1" recv="1" chan="0">
//!     <step s="0" type="s" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1"/>
//!     <step s="1" type="r" srcbuf="o" srcoff="1" dstbuf="o" dstoff="1" cnt="1"/></tb></gpu>
//!   <gpu id="1"><tb id="0" send="0" recv="0" chan="0">
//!     <step s="0" type="s" srcbuf="o" srcoff="1" dstbuf="o" dstoff="1" cnt="1"/>
//!     <step s="1" type="r" srcbuf="o" srcoff="0" dstbuf="o" dstoff="0" cnt="1"/></tb></gpu></algo>"#;
//! let program = CollectiveProgram::from_msccl(text)?;
//! assert_eq!(program.ranks[1].thread_blocks[0].instructions[1].operation, Operation::Receive);
//! # Ok::<(), opticoll_program::program::ProgramError>(())
//! ```

mod chakra;
pub mod element;
mod lay_out;
mod lower;
mod memory;
mod msccl;
mod raise;
mod run;
mod walk;

use std::fmt;

pub use run::RunSettings;
use thiserror::Error;

use opticoll_base::names::shown;
use opticoll_base::units::Bytes;
use opticoll_plan::collective::{Collective, CollectiveError};
use opticoll_plan::schedule::Schedule;

/// Why there is no program, or none of some form.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// What is wrong, and where: the line of a file, or the rank.
    #[error("{0}")]
    Refused(String),
    /// The collective cannot be.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
}

impl ProgramError {
    /// A problem of a line of a file, counted from 1.
    fn line(line: u32, problem: &str) -> ProgramError {
        ProgramError::Refused(format!("line {line}: {}", shown(problem)))
    }

    /// A problem of a rank.
    fn rank(rank: u32, problem: impl fmt::Display) -> ProgramError {
        ProgramError::Refused(format!("rank {rank}: {problem}"))
    }
}

/// Chunks of an instruction at most, as runtimes have it.
const MOST_COUNT: u32 = 71;

opticoll_base::named_enum! {
    /// One of the three buffers of a rank.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ChunkBuffer {
        /// What the rank contributes.
        Input = "input",
        /// What the rank ends with.
        Output = "output",
        /// Room of the program's own.
        Scratch = "scratch",
    }
}

/// The first chunk of an operand. Instructions that do not use an operand may have any offset there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operand {
    /// The buffer.
    pub buffer: ChunkBuffer,
    /// The chunk of the buffer, from 0.
    pub offset: i32,
}

/// What an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Sends the source.
    Send,
    /// Receives into the destination.
    Receive,
    /// Receives into the destination and sends it on.
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
    /// Does nothing but wait.
    Nop,
}

impl Operation {
    /// All operations, with their names in MSCCL files.
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

/// Another instruction of the same rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dependency {
    /// Its thread block.
    pub thread_block: u32,
    /// Its place there, from 0.
    pub step: u32,
}

/// An instruction of a thread block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// What it does.
    pub operation: Operation,
    /// What it reads.
    pub source: Operand,
    /// What it writes.
    pub destination: Operand,
    /// How many consecutive chunks.
    pub count: u32,
    /// What must be complete before.
    pub waits_for: Option<Dependency>,
    /// Whether it tells others that it is complete, so that they may wait for it.
    pub signals: bool,
    /// The step of a schedule in which it sends, where somebody wrote it down.
    pub sent_in: Option<u32>,
    /// The line of the file, from 1, or the node of the trace of its rank; 0 for a program that was not read.
    pub line: u32,
}

/// Instructions that run one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadBlock {
    /// The rank that it sends to.
    pub sends_to: Option<u32>,
    /// The rank that it receives from.
    pub receives_from: Option<u32>,
    /// The channel of its messages.
    pub channel: u32,
    /// What it does, in order.
    pub instructions: Vec<Instruction>,
}

/// The buffers and thread blocks of a rank. Sizes are in chunks, as the file states them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankProgram {
    /// Chunks of the input buffer; 0 where the file leaves them to the collective.
    pub input: u32,
    /// Chunks of the output buffer; likewise.
    pub output: u32,
    /// Chunks of the scratch buffer.
    pub scratch: u32,
    /// What runs side by side.
    pub thread_blocks: Vec<ThreadBlock>,
}

/// The programs of all ranks for a collective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectiveProgram {
    /// Its name, for information.
    pub name: String,
    /// What it carries out.
    pub collective: Collective,
    /// The protocol that it asks the runtime for, such as `Simple`.
    pub protocol: String,
    /// Whether it is for calls in place.
    pub in_place: bool,
    /// Whether it is for calls with separate buffers.
    pub out_of_place: bool,
    /// By rank.
    pub ranks: Vec<RankProgram>,
}

impl CollectiveProgram {
    /// Reads MSCCL XML.
    ///
    /// # Errors
    /// Malformed XML, or an element or number that is not as it must be; the message has the line.
    pub fn from_msccl(text: &str) -> Result<CollectiveProgram, ProgramError> {
        msccl::read(text)
    }

    /// The program that carries a schedule out; its claims are left out, which no program has.
    ///
    /// # Errors
    /// A barrier, which moves no chunks.
    pub fn of_schedule(
        schedule: &Schedule,
        name: String,
    ) -> Result<CollectiveProgram, ProgramError> {
        lower::lower(schedule, name)
    }

    /// The program as MSCCL XML.
    ///
    /// # Errors
    /// A limit of the runtimes.
    pub fn to_msccl(&self) -> Result<String, ProgramError> {
        msccl::write(self)
    }

    /// Reads Chakra traces, one of each rank in the order of ranks.
    ///
    /// # Errors
    /// A malformed trace, or one that does not say which chunks it moves; the message has rank and byte.
    pub fn from_chakra(traces: &[&[u8]]) -> Result<CollectiveProgram, ProgramError> {
        chakra::read(traces)
    }

    /// The program as Chakra traces, one of each rank, for a collective of some size.
    ///
    /// # Errors
    /// A size that cannot be cut into equal chunks of whole bytes.
    pub fn to_chakra(&self, size: Bytes) -> Result<Vec<Vec<u8>>, ProgramError> {
        chakra::write(self, size)
    }

    /// The schedule of a proved program, with steps by dependence, and how many chunks the program sends to
    /// ranks that have them, which the schedule leaves out.
    ///
    /// # Errors
    /// A program that keeps several values of a chunk at a rank, or that is not proved.
    pub fn schedule(&self, in_place: bool) -> Result<(Schedule, u64), ProgramError> {
        raise::raise(self, in_place)
    }

    /// The number of instructions of all ranks.
    pub fn instructions(&self) -> usize {
        let blocks = self.ranks.iter().flat_map(|rank| &rank.thread_blocks);
        blocks.map(|block| block.instructions.len()).sum()
    }

    /// The number of thread blocks of all ranks.
    pub fn thread_blocks(&self) -> usize {
        self.ranks.iter().map(|rank| rank.thread_blocks.len()).sum()
    }
}
