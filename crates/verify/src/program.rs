//! Proves a program, or says everything that is wrong with it.
//!
//! It is written from the definitions alone and shares no code with readers, writers and executors of programs.
//! A program holds when
//!
//! - every peer, operand and dependency exists, and a rank has one thread block at most that sends to a rank on
//!   a channel, and one that receives (`form`),
//! - every message that is sent is received, in the same number of chunks, and no instructions wait for one
//!   another in a circle (`execution`),
//! - no two instructions access a chunk of a buffer, one of them writing, unless one happens before the other
//!   (`races`),
//! - every output chunk ends with exactly the contributions that the collective demands: each once (`execution`),
//! - each message has a link between its ranks, where a graph of links is given (`links`).
//!
//! An instruction *happens before* another by the order of its thread block, by `waits_for`, and as the k-th
//! send from a rank to another on a channel before the k-th receive there. Runtimes hold a few messages of a
//! channel at a time, which orders more; that is left out, so that what is proved holds for any room.
//!
//! What a chunk holds is a multiset of *contributions*: (rank, chunk of its input). A reduction adds
//! multisets. If no accesses race, every order of execution that the program allows computes the same, so that
//! one order is enough.
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
    /// What rule a program breaks.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ProgramFault {
        /// A rank to send to or to receive from that is missing, or the rank itself.
        Peer = "peer",
        /// A chunk that the buffer does not have.
        Bounds = "bounds",
        /// An instruction to wait for that does not exist or never tells.
        Dependency = "dependency",
        /// Two thread blocks with one connection.
        Connection = "connection",
        /// A message that is not received, not sent, or of another length than its receive.
        Pairing = "pairing",
        /// Instructions that wait for one another.
        Deadlock = "deadlock",
        /// Two accesses of a chunk that nothing orders.
        Race = "race",
        /// A chunk is read that nothing has written.
        NotWritten = "not_written",
        /// A contribution is combined into a chunk that already has it.
        DoubleReduction = "double_reduction",
        /// An output chunk that does not end with what the collective demands.
        WrongResult = "wrong_result",
        /// A message between ranks that no link joins.
        NoLink = "no_link",
        /// The program is larger than the verifier can replay.
        TooLarge = "too_large",
        /// A message brings what is there already. A remark.
        Redundant = "redundant",
        /// A chunk of a separate input is overwritten. A remark.
        InputOverwritten = "input_overwritten",
        /// A size of a buffer that is not the collective's. A remark.
        DeclaredSize = "declared_size",
    }
}

impl ProgramFault {
    /// Whether it is no violation, but worth to know.
    pub const fn is_remark(self) -> bool {
        matches!(
            self,
            ProgramFault::Redundant | ProgramFault::InputOverwritten | ProgramFault::DeclaredSize
        )
    }
}

/// A rule broken in one place of a program, or a remark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramViolation {
    /// Which rule.
    pub kind: ProgramFault,
    /// The rank concerned.
    pub rank: Option<u32>,
    /// The thread block concerned, of that rank.
    pub thread_block: Option<u32>,
    /// The instruction concerned, of that thread block.
    pub step: Option<u32>,
    /// The line of the file; 0 where there is none.
    pub line: u32,
    /// What is wrong, in one sentence.
    pub sentence: String,
}

/// What the verifier says of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProgramProof {
    /// Everything that is wrong; empty where the program is proved.
    pub violations: Vec<ProgramViolation>,
    /// What is not wrong, but worth to know.
    pub remarks: Vec<ProgramViolation>,
    /// Messages between ranks.
    pub messages: u64,
    /// Chunks that they carry.
    pub chunks_sent: u64,
}

/// Links that a program may use: vertices below the number of ranks are ranks, all others switches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkGraph {
    /// What the links belong to, for sentences.
    pub name: String,
    /// Directed links.
    pub links: Vec<(u32, u32)>,
}

/// Violations of one kind that are listed; further ones are counted.
const MOST_LISTED: usize = 10_000;

/// Everything that is wrong with a program, in place or with separate buffers.
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

/// A number of chunks, in words.
fn chunks(count: u32) -> String {
    match count {
        1 => "1 chunk".into(),
        _ => format!("{count} chunks"),
    }
}

/// An instruction by its place: rank, thread block, step.
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

/// The violations and remarks found so far.
#[derive(Default)]
struct Findings {
    listed: Vec<ProgramViolation>,
    counts: std::collections::BTreeMap<ProgramFault, usize>,
}

impl Findings {
    /// Something at an instruction; the sentence begins with its place.
    fn at(
        &mut self,
        program: &CollectiveProgram,
        kind: ProgramFault,
        site: Site,
        says: impl FnOnce() -> String,
    ) {
        if self.counted(kind) {
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

    /// Something that a rank ends with; the sentence names the instruction that wrote it, if one did.
    fn written(
        &mut self,
        program: &CollectiveProgram,
        kind: ProgramFault,
        rank: u32,
        by: Option<Site>,
        says: impl FnOnce() -> String,
    ) {
        let listed = self.listed.len();
        self.of_rank(kind, rank, || match by {
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

    /// Something of a rank.
    fn of_rank(&mut self, kind: ProgramFault, rank: u32, says: impl FnOnce() -> String) {
        if self.counted(kind) {
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

    /// Counts one more; whether it is listed.
    fn counted(&mut self, kind: ProgramFault) -> bool {
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        *count <= MOST_LISTED
    }

    fn finish(mut self, proof: ProgramProof) -> ProgramProof {
        for (&kind, &count) in &self.counts {
            if count > MOST_LISTED {
                self.listed.push(ProgramViolation {
                    kind,
                    rank: None,
                    thread_block: None,
                    step: None,
                    line: 0,
                    sentence: format!(
                        "and {} more of the kind {}",
                        count - MOST_LISTED,
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
