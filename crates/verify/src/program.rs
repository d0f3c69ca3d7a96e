//! Proof of a program, or a list of all rules that the program breaks.
//!
//! The verifier implements the definitions below alone. It shares no code with the code that reads,
//! writes or executes programs. A program is valid if
//!
//! - every peer, operand and dependency exists, and each connection of a rank, to or from a peer on
//!   a channel, is used by one thread block (`form`),
//! - every message that is sent is received, with the same number of chunks, and no instructions
//!   wait for one another in a cycle (`execution`),
//! - if two instructions access the same chunk of a buffer and one of them writes, one of the two
//!   happens before the other (`races`),
//! - a rank accesses the buffers of another rank only during the call of this rank (`races`),
//! - every output chunk ends with exactly the contributions that the collective demands, each of
//!   them once (`execution`),
//! - if a graph of links is given, links connect the two ranks of each message (`links`).
//!
//! Three rules define which instruction *happens before* another: the order of a thread block,
//! `waits_for`, and messages: the k-th send from one rank to another on a channel happens before
//! the k-th receive there. Runtimes buffer only a few messages of a channel, which orders more
//! instructions. The verifier ignores this order, so that the proof holds for buffers of any size.
//!
//! The content of a chunk is a multiset of *contributions*, each of which is (rank, chunk of the
//! input of this rank). A reduction adds multisets. If no accesses race, all allowed orders of
//! execution have the same result, so that one order is enough.
//!
//! Number of chunks of each buffer, for N ranks and p pieces per block:
//!
//! | collective | input | output | in place |
//! |---|---|---|---|
//! | all_gather | p | N p, block r from rank r | input is block r of the output of rank r |
//! | reduce_scatter | N p, block r for rank r | p | output is block r of the input of rank r |
//! | all_reduce, broadcast, reduce | p | p | output is input |
//! | all_to_all | N p, block r for rank r | N p, block r from rank r | output is input |
//! | gather | p | N p at the root | input is the root's own block of its output |
//! | scatter | N p at the root | p | output is the root's own block of its input |
//!
//! ```
//! use opticoll_program::program::CollectiveProgram;
//! use opticoll_verify::program::verify_program;
//! let text = r#"<algo nchunksperloop="1" ngpus="2" coll="broadcast" inplace="1">
//!   <gpu id="0"/><gpu id="1"/></algo>"#;
//! let proof = verify_program(&CollectiveProgram::from_msccl(text)?, true, None);
//! assert_eq!(proof.violations[0].sentence,
//!     "rank 1: output chunk 0 holds nothing at the end, not chunk 0 of rank 0");
//! # Ok::<(), opticoll_program::program::ProgramError>(())
//! ```

mod contents;
mod execution;
mod form;
mod layout;
mod links;
mod races;

use std::fmt;

use layout::Layout;
use opticoll_program::program::{CollectiveProgram, Instruction};

opticoll_base::named_enum! {
    /// Rule that a program breaks, or a remark.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ProgramFault {
        /// A peer is missing or does not exist.
        Peer = "peer",
        /// An operand exceeds its buffer.
        Bounds = "bounds",
        /// An instruction waits for another instruction that does not exist or does not signal.
        Dependency = "dependency",
        /// Two thread blocks use the same connection.
        Connection = "connection",
        /// A message is not received or not sent, or differs in length from its receive.
        Pairing = "pairing",
        /// Instructions wait for one another in a cycle.
        Deadlock = "deadlock",
        /// Two conflicting accesses of a chunk are not ordered.
        Race = "race",
        /// A rank accesses the buffer of another rank before this rank has begun its call, or
        /// after it has ended the call.
        OutsideCall = "outside_call",
        /// An instruction reads a chunk that no instruction has written.
        NotWritten = "not_written",
        /// A reduction adds a contribution to a chunk that already contains this contribution.
        DoubleReduction = "double_reduction",
        /// An output chunk does not end with the contributions that the collective demands.
        WrongResult = "wrong_result",
        /// Two ranks exchange a message, but no links connect the two ranks.
        NoLink = "no_link",
        /// The program is too large for the verifier to execute.
        TooLarge = "too_large",
        /// A message brings data that the receiver already has. A remark.
        Redundant = "redundant",
        /// An input chunk is overwritten although the program is not in place. This is a remark,
        /// not a violation.
        InputOverwritten = "input_overwritten",
        /// The declared size of a buffer differs from the size that the collective needs. A remark.
        DeclaredSize = "declared_size",
    }
}

impl ProgramFault {
    /// Returns whether the fault is a remark rather than a violation.
    pub const fn is_remark(self) -> bool {
        matches!(
            self,
            ProgramFault::Redundant | ProgramFault::InputOverwritten | ProgramFault::DeclaredSize
        )
    }
}

/// Single place in which a program breaks a rule, or a remark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramViolation {
    /// Rule that is broken, or kind of remark.
    pub kind: ProgramFault,
    /// Rank to which the finding applies.
    pub rank: Option<u32>,
    /// Index of the thread block at this rank.
    pub thread_block: Option<u32>,
    /// Index of the instruction in this thread block.
    pub step: Option<u32>,
    /// Line number in the file; 0 if the program was not read from a file.
    pub line: u32,
    /// Sentence that says what is wrong.
    pub sentence: String,
}

/// Result of the verification of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgramProof {
    /// All rules that the program breaks; empty if the program is proved.
    pub violations: Vec<ProgramViolation>,
    /// Remarks, which do not break a rule.
    pub remarks: Vec<ProgramViolation>,
    /// Number of messages between ranks that were executed.
    pub messages: u64,
    /// Number of chunks that these messages carry.
    pub chunks_sent: u64,
}

/// Links that a program may use. Vertices below the number of ranks are ranks, others switches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkGraph {
    /// Name of the fabric that has the links, for sentences.
    pub name: String,
    /// Directed links, as (from, to).
    pub links: Vec<(u32, u32)>,
}

/// Maximum number of listed findings of each kind. Further findings are only counted.
const MAX_LISTED: usize = 10_000;

/// Verifies a program. `in_place` says whether input and output share memory. If `links` is given,
/// also checks that links connect the ranks of each message.
pub fn verify_program(
    program: &CollectiveProgram,
    in_place: bool,
    links: Option<&LinkGraph>,
) -> ProgramProof {
    let mut findings = Findings::default();
    let layout = Layout::new(program, in_place);
    let is_executable = form::check(program, &layout, &mut findings);
    let mut proof = ProgramProof::default();
    if let Some(links) = links {
        links::check(program, links, &mut findings);
    }
    if is_executable {
        let run = execution::check(program, &layout, &mut findings);
        races::check(program, &layout, &run, &mut findings);
        proof.messages = run.messages;
        proof.chunks_sent = run.chunks_sent;
    }
    findings.finish(proof)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Site {
    rank: u32,
    thread_block: u32,
    step: u32,
}

impl fmt::Display for Site {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Site {
            rank,
            thread_block,
            step,
        } = self;
        write!(
            formatter,
            "rank {rank}, thread block {thread_block}, step {step}"
        )
    }
}

fn instruction(program: &CollectiveProgram, site: Site) -> &Instruction {
    let rank = &program.ranks[site.rank as usize];
    &rank.thread_blocks[site.thread_block as usize].instructions[site.step as usize]
}

#[derive(Default)]
struct Findings {
    listed: Vec<ProgramViolation>,
    counts: std::collections::BTreeMap<ProgramFault, usize>,
}

impl Findings {
    /// Adds a finding about the instruction at `site`. The sentence begins with the position of the
    /// instruction.
    fn add_at(
        &mut self,
        program: &CollectiveProgram,
        kind: ProgramFault,
        site: Site,
        says: impl FnOnce() -> String,
    ) {
        if self.count(kind) {
            let line = instruction(program, site).line;
            self.listed.push(ProgramViolation {
                kind,
                rank: Some(site.rank),
                thread_block: Some(site.thread_block),
                step: Some(site.step),
                line,
                sentence: format!("{site}: {}", says()),
            });
        }
    }

    /// Adds a finding about the final memory of `rank`. `by` is the instruction that last wrote
    /// this memory, which the sentence names.
    fn add_written(
        &mut self,
        program: &CollectiveProgram,
        kind: ProgramFault,
        rank: u32,
        by: Option<Site>,
        says: impl FnOnce() -> String,
    ) {
        let listed = self.listed.len();
        self.add_for_rank(kind, rank, || match by {
            Some(by) => format!(
                "{}; thread block {}, step {} wrote it",
                says(),
                by.thread_block,
                by.step
            ),
            None => says(),
        });
        if let (Some(by), Some(last)) = (by, self.listed.get_mut(listed)) {
            last.thread_block = Some(by.thread_block);
            last.step = Some(by.step);
            last.line = instruction(program, by).line;
        }
    }

    fn add_for_rank(&mut self, kind: ProgramFault, rank: u32, says: impl FnOnce() -> String) {
        if self.count(kind) {
            self.listed.push(ProgramViolation {
                kind,
                rank: Some(rank),
                thread_block: None,
                step: None,
                line: 0,
                sentence: format!("rank {rank}: {}", says()),
            });
        }
    }

    /// Counts a finding of `kind`. Returns whether the finding is to be listed.
    fn count(&mut self, kind: ProgramFault) -> bool {
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        *count <= MAX_LISTED
    }

    fn finish(mut self, proof: ProgramProof) -> ProgramProof {
        for (&kind, &count) in &self.counts {
            if count > MAX_LISTED {
                self.listed.push(ProgramViolation {
                    kind,
                    rank: None,
                    thread_block: None,
                    step: None,
                    line: 0,
                    sentence: format!(
                        "and {} more of the kind {}",
                        count - MAX_LISTED,
                        kind.name()
                    ),
                });
            }
        }
        let (remarks, violations) = self
            .listed
            .into_iter()
            .partition(|one| one.kind.is_remark());
        ProgramProof {
            violations,
            remarks,
            ..proof
        }
    }
}
