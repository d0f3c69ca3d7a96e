//! Proof of a program, or a list of everything that is wrong with it.
//!
//! The verifier follows the definitions alone and shares no code with readers, writers and
//! executors of programs. A program is valid if
//!
//! - every peer, operand and dependency exists, and for each peer and channel a rank has at most
//!   one thread block that sends and at most one that receives (`form`),
//! - every message that is sent is received, in the same number of chunks, and no instructions wait
//!   for one another in a circle (`execution`),
//! - no two instructions access a chunk of a buffer, with at least one of them writing, unless one
//!   happens before the other (`races`),
//! - every output chunk ends with exactly the contributions that the collective demands, each once
//!   (`execution`),
//! - each message has a link between its ranks, if a graph of links is given (`links`).
//!
//! An instruction *happens before* another by the order of its thread block, by `waits_for`, and as
//! the k-th send from a rank to another on a channel before the k-th receive there. Runtimes buffer
//! only a few messages of a channel, which adds more order. The verifier ignores this order, so
//! that the proof holds for any size of buffer.
//!
//! The contents of a chunk are a multiset of *contributions*: (rank, chunk of its input). A
//! reduction adds multisets. If no accesses race, all orders of execution that the program allows
//! give the same result, so that one order is enough.
//!
//! Chunks of the buffers, with N ranks and p pieces of each block:
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
    /// Rule that a program breaks.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ProgramFault {
        /// A rank does not exist, or a peer is missing.
        Peer = "peer",
        /// An operand names a chunk that the buffer does not have.
        Bounds = "bounds",
        /// An instruction waits for an instruction that does not exist or does not signal.
        Dependency = "dependency",
        /// Two thread blocks use one connection.
        Connection = "connection",
        /// A message is not received, not sent, or has another length than its receive.
        Pairing = "pairing",
        /// Instructions wait for one another in a circle.
        Deadlock = "deadlock",
        /// Two accesses of a chunk are not ordered.
        Race = "race",
        /// An instruction reads a chunk that was not written.
        NotWritten = "not_written",
        /// A contribution is combined into a chunk that already has it.
        DoubleReduction = "double_reduction",
        /// An output chunk does not end with the contributions that the collective demands.
        WrongResult = "wrong_result",
        /// Two ranks exchange a message, but no link joins them.
        NoLink = "no_link",
        /// The program is larger than the verifier can replay.
        TooLarge = "too_large",
        /// A message brings data that are there already. A remark.
        Redundant = "redundant",
        /// A chunk of a separate input is overwritten. A remark.
        InputOverwritten = "input_overwritten",
        /// The declared size of a buffer is not the collective's. A remark.
        DeclaredSize = "declared_size",
    }
}

impl ProgramFault {
    /// Returns whether the finding is a remark and not a violation.
    pub const fn is_remark(self) -> bool {
        matches!(
            self,
            ProgramFault::Redundant | ProgramFault::InputOverwritten | ProgramFault::DeclaredSize
        )
    }
}

/// Rule that is broken in one place of a program, or a remark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramViolation {
    /// Broken rule.
    pub kind: ProgramFault,
    /// Rank of the finding.
    pub rank: Option<u32>,
    /// Thread block of that rank.
    pub thread_block: Option<u32>,
    /// Instruction of that thread block.
    pub step: Option<u32>,
    /// Line of the file; 0 if the program was not read from a file.
    pub line: u32,
    /// Sentence that says what is wrong.
    pub sentence: String,
}

/// Result of the verification of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgramProof {
    /// Everything that is wrong; empty if the program is proved.
    pub violations: Vec<ProgramViolation>,
    /// Remarks, which do not break a rule.
    pub remarks: Vec<ProgramViolation>,
    /// Number of messages between ranks.
    pub messages: u64,
    /// Number of chunks in these messages.
    pub chunks_sent: u64,
}

/// Links that a program may use. Vertices below the number of ranks are ranks, all others switches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkGraph {
    /// Name of the links' machine, for sentences.
    pub name: String,
    /// Directed links (from, to).
    pub links: Vec<(u32, u32)>,
}

/// Maximum number of findings of a kind in the list; more are only counted.
const MAX_LISTED: usize = 10_000;

/// Verifies a program with in-place or separate buffers, and its messages against `links` if given.
pub fn verify_program(
    program: &CollectiveProgram,
    in_place: bool,
    links: Option<&LinkGraph>,
) -> ProgramProof {
    let mut findings = Findings::default();
    let layout = Layout::new(program, in_place);
    let sound = form::check(program, &layout, &mut findings);
    let mut proof = ProgramProof::default();
    if let Some(links) = links {
        links::check(program, links, &mut findings);
    }
    if sound {
        let run = execution::check(program, &layout, &mut findings);
        races::check(program, &layout, &run, &mut findings);
        proof.messages = run.messages;
        proof.chunks_sent = run.chunks_sent;
    }
    findings.finish(proof)
}

/// Place of an instruction.
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

/// Violations and remarks found so far.
#[derive(Default)]
struct Findings {
    listed: Vec<ProgramViolation>,
    counts: std::collections::BTreeMap<ProgramFault, usize>,
}

impl Findings {
    /// Adds a finding at an instruction; the sentence begins with the place.
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

    /// Adds a finding about the contents of a rank's memory at the end; the sentence names the
    /// instruction that wrote them, if any.
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

    /// Adds a finding about a rank.
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

    /// Counts a finding. Returns whether it is listed.
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
