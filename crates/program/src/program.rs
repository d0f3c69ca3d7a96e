//! Collectives as programs that each rank executes, in the form that runtimes such as MSCCL use.
//!
//! A schedule defines which chunks move from rank to rank in each step. A program defines the
//! instructions of each rank. A rank has an input, an output and a scratch buffer, which consist of
//! chunks. It also has **thread blocks**, which run in parallel, and each of which executes its
//! instructions in order. An instruction receives, sends, copies or reduces `count` consecutive
//! chunks; a fused instruction does several of these. There are no global steps. Three rules order
//! instructions:
//!
//! - the order of a thread block,
//! - `waits_for`: another instruction of the same rank, which must be complete first,
//! - messages: if rank a sends to rank b on a channel, the k-th send of a precedes the k-th receive
//!   of b, which receives its message.
//!
//! An instruction may also read or write a buffer of another rank (**one-sided access**). No
//! message tells the other rank, so its instructions wait for the access by `waits_for`, which may
//! name an instruction of another rank.
//!
//! If a call is in place, input and output share memory, as the collective libraries define it (see
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
mod mscclpp;
mod switched;

use std::fmt;

pub use execution::RunSettings;
pub use mscclpp::MscclppProtocol;
pub use switched::SwitchedChunk;
use thiserror::Error;

use opticoll_base::names::terminal_text;
use opticoll_base::units::Bytes;
use opticoll_plan::collective::{Collective, CollectiveError};
use opticoll_plan::schedule::Schedule;

/// Reason why there is no program, or no program in some format.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProgramError {
    /// Problem, with the line of the file or the rank where it occurs.
    #[error("{0}")]
    Refused(String),
    /// The collective is invalid.
    #[error(transparent)]
    Collective(#[from] CollectiveError),
}

impl ProgramError {
    fn line(line: u32, problem: &str) -> ProgramError {
        ProgramError::Refused(format!("line {line}: {}", terminal_text(problem)))
    }

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
        /// Result of the collective at the rank.
        Output = "output",
        /// Memory for intermediate values.
        Scratch = "scratch",
    }
}

/// Location of the first chunk of an operand. If an instruction does not use the operand, the
/// offset has no meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operand {
    /// Rank whose buffer contains the chunk; `None` for the rank of the instruction.
    pub rank: Option<u32>,
    /// Buffer that contains the chunk.
    pub buffer: ChunkBuffer,
    /// Index of the chunk in the buffer, counted from 0.
    pub offset: i32,
}

/// Operation of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Sends the source operand.
    Send,
    /// Receives into the destination operand.
    Receive,
    /// Receives into the destination operand and sends the received data.
    ReceiveCopySend,
    /// Receives, adds the source operand, and stores the sum in the destination operand.
    ReceiveReduceCopy,
    /// Receives, adds the source operand, and sends the sum.
    ReceiveReduceSend,
    /// Receives, adds the source operand, stores the sum in the destination operand, and sends the
    /// sum.
    ReceiveReduceCopySend,
    /// Copies the source operand to the destination operand.
    Copy,
    /// Adds the source operand to the destination operand.
    Reduce,
    /// Waits for another instruction and does nothing else.
    Nop,
}

impl Operation {
    /// All operations with their names in MSCCL files.
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

/// Reference to another instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dependency {
    /// Rank of this instruction; `None` for the rank of the instruction that waits.
    pub rank: Option<u32>,
    /// Index of the thread block of this instruction.
    pub thread_block: u32,
    /// Index of the instruction in its thread block.
    pub step: u32,
}

/// Instruction of a thread block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Operation that is executed.
    pub operation: Operation,
    /// Operand that is read.
    pub source: Operand,
    /// Operand that is written.
    pub destination: Operand,
    /// Number of consecutive chunks of each operand.
    pub count: u32,
    /// Instruction that must be complete before this instruction starts.
    pub waits_for: Option<Dependency>,
    /// True if other instructions are allowed to wait for this instruction.
    pub signals: bool,
    /// Step of the schedule in which the instruction sends; `None` if the program does not record
    /// it.
    pub sent_in: Option<u32>,
    /// Line of the instruction in the file, or index of its node in the trace of the rank, counted
    /// from 1. 0 if the program was not read from a file.
    pub line: u32,
}

/// Instructions that run one after another. They send to at most one rank, and receive from at most
/// one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadBlock {
    /// Rank to which the thread block sends.
    pub sends_to: Option<u32>,
    /// Rank from which the thread block receives.
    pub receives_from: Option<u32>,
    /// Channel of the messages of the thread block.
    pub channel: u32,
    /// Instructions in order.
    pub instructions: Vec<Instruction>,
}

/// Thread blocks and buffer sizes of a rank. Sizes are in chunks, as the file states them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankProgram {
    /// Number of chunks of the input buffer; 0 if the file does not state it.
    pub input: u32,
    /// Number of chunks of the output buffer; 0 if the file does not state it.
    pub output: u32,
    /// Number of chunks of the scratch buffer.
    pub scratch: u32,
    /// Thread blocks of the rank, which run in parallel.
    pub thread_blocks: Vec<ThreadBlock>,
}

/// Programs of all ranks for one collective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectiveProgram {
    /// Name of the program, for information only.
    pub name: String,
    /// Collective that the program executes.
    pub collective: Collective,
    /// Protocol that the program requests from the runtime, such as `Simple`.
    pub protocol: String,
    /// True if the program supports calls in place.
    pub in_place: bool,
    /// True if the program supports calls with separate buffers.
    pub out_of_place: bool,
    /// Chunks that switches add or multicast in the schedule that the program executes, in the
    /// order of its steps. The messages of such a program move the same data, but over more links
    /// than the plan. Only MSCCL++ can express the plan.
    pub switched: Vec<SwitchedChunk>,
    /// Number of consecutive ranks that form a server, in which ranks share memory; `None` if all
    /// ranks do.
    pub ranks_per_server: Option<u32>,
    /// True if consecutive calls use two scratch buffers in turn.
    pub double_scratch: bool,
    /// Program of each rank, indexed by rank.
    pub ranks: Vec<RankProgram>,
}

impl CollectiveProgram {
    /// Reads a program from the text of an MSCCL XML file. Fails for malformed XML, or an invalid
    /// element or number. The message contains the line.
    pub fn from_msccl(text: &str) -> Result<CollectiveProgram, ProgramError> {
        msccl::read(text)
    }

    /// Creates a program that executes `schedule`. The claims of the schedule, such as its number
    /// of steps, are lost. Fails for a barrier, which moves no chunks, and for an all_to_all whose
    /// blocks differ in size.
    pub fn from_schedule(
        schedule: &Schedule,
        name: String,
    ) -> Result<CollectiveProgram, ProgramError> {
        lowering::lower(schedule, name)
    }

    /// Returns the program as the text of an MSCCL XML file. Fails if the program exceeds a limit
    /// of the MSCCL runtimes, or if switches add or multicast in its schedule.
    pub fn to_msccl(&self) -> Result<String, ProgramError> {
        self.check_senders()?;
        msccl::write(self)
    }

    /// Reads a program from the text of an execution plan of MSCCL++ (JSON). Fails for malformed
    /// JSON, and for a plan that MSCCL++ cannot execute: an operation without the synchronization
    /// that it needs, or a limit that is exceeded. The message contains the line.
    pub fn from_mscclpp(text: &str) -> Result<CollectiveProgram, ProgramError> {
        mscclpp::read(text)
    }

    /// Returns the program as the text of an execution plan of MSCCL++, for a collective of size
    /// `size`. If no protocol is given, the protocol is `LL` up to 64 KiB if the program allows it,
    /// otherwise `Simple`. Fails if the size cannot be cut into equal chunks of multiples of 16
    /// bytes, if the program exceeds a limit of MSCCL++, or for a program that is [one-sided].
    ///
    /// [one-sided]: CollectiveProgram::is_one_sided
    pub fn to_mscclpp(
        &self,
        size: Bytes,
        protocol: Option<MscclppProtocol>,
    ) -> Result<String, ProgramError> {
        self.check_two_sided()?;
        mscclpp::write(self, size, protocol)
    }

    /// Fails if the program accesses buffers of other ranks, or if switches add or multicast in its
    /// schedule.
    fn check_senders(&self) -> Result<(), ProgramError> {
        if self.switched.is_empty() {
            return self.check_two_sided();
        }
        let problem = "switches add and multicast the chunks of this plan, but the instructions of \
                       a program send from one rank to one rank; plan on a fabric with \
                       in_network=none";
        Err(ProgramError::Refused(problem.into()))
    }

    /// Fails if the program accesses buffers of other ranks.
    fn check_two_sided(&self) -> Result<(), ProgramError> {
        if !self.is_one_sided() {
            return Ok(());
        }
        let problem = "its instructions access the buffers of other ranks, which this format \
                       cannot express; `opticoll import` makes a plan of it, which can be exported";
        Err(ProgramError::Refused(problem.into()))
    }

    /// Returns whether an instruction accesses a buffer of another rank, or waits for another rank.
    pub fn is_one_sided(&self) -> bool {
        let blocks = self.ranks.iter().flat_map(|rank| &rank.thread_blocks);
        blocks.flat_map(|block| &block.instructions).any(|one| {
            let waits = one.waits_for.and_then(|on| on.rank);
            one.source.rank.or(one.destination.rank).or(waits).is_some()
        })
    }

    /// Reads a program from the Chakra traces of all ranks, indexed by rank. Fails if a trace is
    /// malformed, or if it does not define which chunks it moves. The message contains the rank and
    /// the byte.
    pub fn from_chakra(traces: &[&[u8]]) -> Result<CollectiveProgram, ProgramError> {
        chakra::read(traces)
    }

    /// Returns the program as the Chakra traces of all ranks, indexed by rank, for a collective of
    /// size `size`. Fails if the size cannot be divided into equal chunks of whole bytes, or if
    /// switches add or multicast in the schedule of the program.
    pub fn to_chakra(&self, size: Bytes) -> Result<Vec<Vec<u8>>, ProgramError> {
        self.check_senders()?;
        chakra::write(self, size)
    }

    /// Returns the schedule of a proved program and the number of redundant chunks. `in_place` says
    /// whether input and output share memory. The steps follow from the dependences between
    /// messages. A redundant chunk is sent to a rank that already has it; the schedule omits it.
    /// Fails if a rank has several partial sums of one chunk, or if the program is not proved.
    pub fn schedule(&self, in_place: bool) -> Result<(Schedule, u64), ProgramError> {
        lifting::lift(self, in_place)
    }

    /// Returns the number of instructions of all ranks together.
    pub fn instructions(&self) -> usize {
        let blocks = self.ranks.iter().flat_map(|rank| &rank.thread_blocks);
        blocks.map(|block| block.instructions.len()).sum()
    }

    /// Returns the number of thread blocks of all ranks together.
    pub fn thread_blocks(&self) -> usize {
        self.ranks.iter().map(|rank| rank.thread_blocks.len()).sum()
    }
}
