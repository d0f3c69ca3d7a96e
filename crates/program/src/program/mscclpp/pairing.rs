//! Order between operations: signals, semaphores, barriers and packets as waits for an instruction.
//!
//! The reader pairs them as follows, and refuses a plan in which they have no partner or in which
//! their partner is not determined:
//!
//! - The k-th wait on a channel is for the k-th signal on the channel at its other end. If several
//!   thread blocks signal, or several wait, semaphores or barriers order them one after another.
//! - The k-th acquire of a semaphore with initial value v is for the (k - v)-th release. If several
//!   thread blocks release, acquires that follow one another wait for all releases together.
//! - The k-th round of a barrier waits for all thread blocks to arrive.
//! - Whoever reads packets waits for the instruction that writes them.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::block_layout::UnplacedInstruction;
use super::super::{Instruction, ProgramError};
use super::{CHANNEL_TYPES, Gpu};

/// End of a connection or semaphore: index of the instruction, its thread block, and its line.
#[derive(Clone, Copy)]
pub(super) struct Point {
    pub(super) index: usize,
    pub(super) block: usize,
    pub(super) line: u32,
}

/// Channel: sending rank, receiving rank, type, and how many channels of these ranks and this type
/// come before it.
pub(super) type Channel = (u32, u32, usize, usize);

/// All instructions of the plan, and what orders them.
#[derive(Default)]
pub(super) struct Pairing {
    instructions: Vec<UnplacedInstruction>,
    /// Rank and thread block of each instruction. Those of a thread block follow one another.
    owners: Vec<(u32, usize)>,
    pub(super) signals: BTreeMap<Channel, Vec<Point>>,
    pub(super) waits: BTreeMap<Channel, Vec<Point>>,
    /// Releases of each semaphore, by rank and number of the semaphore.
    pub(super) releases: BTreeMap<(u32, usize), Vec<Point>>,
    /// Acquires of each semaphore. Acquires with the same number follow one another.
    pub(super) acquires: BTreeMap<(u32, usize), Vec<(usize, Point)>>,
    /// Arrivals at each barrier, with the number of thread blocks that meet there.
    pub(super) barriers: BTreeMap<(u32, usize), Vec<(u64, Point)>>,
    /// Instruction that writes packets to a piece of scratch, by (rank, piece).
    writers: FxHashMap<(u32, u64), usize>,
    readers: Vec<(Point, u32, u64, u64)>,
}

fn refused(line: u32, problem: &str) -> ProgramError {
    ProgramError::line(line, problem)
}

impl Pairing {
    /// Returns the number of instructions so far.
    pub(super) fn instructions(&self) -> usize {
        self.instructions.len()
    }

    /// Adds an instruction and returns its index.
    pub(super) fn add(&mut self, rank: u32, block: usize, instruction: Instruction) -> usize {
        self.owners.push((rank, block));
        self.instructions.push(UnplacedInstruction {
            instruction,
            waits_for: Vec::new(),
        });
        self.instructions.len() - 1
    }

    /// Notes that an instruction writes packets to the pieces `start..end` of scratch of `rank`.
    pub(super) fn write_packets(
        &mut self,
        at: Point,
        rank: u32,
        (start, end): (u64, u64),
    ) -> Result<(), ProgramError> {
        for piece in start..end {
            let before = self.writers.insert((rank, piece), at.index);
            if before.is_some_and(|before| before != at.index) {
                let problem = format!(
                    "writes packets to scratch of rank {rank} where another operation writes \
                     packets"
                );
                return Err(refused(at.line, &problem));
            }
        }
        Ok(())
    }

    /// Notes that an instruction reads packets from the pieces `start..end` of scratch of `rank`.
    pub(super) fn read_packets(&mut self, at: Point, rank: u32, (start, end): (u64, u64)) {
        self.readers.push((at, rank, start, end));
    }

    /// Returns all instructions with the instructions for which they wait.
    pub(super) fn resolve(
        mut self,
        gpus: &[Gpu<'_>],
    ) -> Result<Vec<UnplacedInstruction>, ProgramError> {
        self.pair_semaphores(gpus)?;
        self.meet_at_barriers()?;
        self.pair_signals()?;
        for &(at, rank, start, end) in &self.readers {
            for piece in start..end {
                let Some(&writer) = self.writers.get(&(rank, piece)) else {
                    let problem = "reads packets that no operation writes, and waits for ever";
                    return Err(refused(at.line, problem));
                };
                let waits = &mut self.instructions[at.index].waits_for;
                if waits.last() != Some(&writer) {
                    waits.push(writer);
                }
            }
        }
        Ok(self.instructions)
    }

    /// Returns whether the order of thread blocks, semaphores and barriers of one rank put `first`
    /// before `then`.
    fn is_before(&self, first: usize, then: usize) -> bool {
        let (rank, block) = self.owners[first];
        let mut seen = FxHashSet::default();
        let mut open = vec![then];
        while let Some(index) = open.pop() {
            if self.owners[index] == (rank, block) && index >= first {
                return true;
            }
            let previous = index.checked_sub(1);
            let previous = previous.filter(|&other| self.owners[other] == self.owners[index]);
            let waits = self.instructions[index].waits_for.iter().copied();
            let earlier = previous.into_iter().chain(waits);
            open.extend(
                earlier.filter(|&other| self.owners[other].0 == rank && seen.insert(other)),
            );
        }
        false
    }

    fn pair_signals(&mut self) -> Result<(), ProgramError> {
        let channels = self.signals.keys().chain(self.waits.keys());
        let channels: Vec<Channel> = channels.copied().collect();
        for channel in channels {
            let (from, to, kind, _) = channel;
            let points = |ends: &BTreeMap<Channel, Vec<Point>>| {
                ends.get(&channel).cloned().unwrap_or_default()
            };
            let (signals, waits) = (points(&self.signals), points(&self.waits));
            for (ends, does) in [(&signals, "signal"), (&waits, "wait")] {
                let unordered = ends.windows(2).find(|pair| {
                    pair[0].block != pair[1].block && !self.is_before(pair[0].index, pair[1].index)
                });
                if let Some([_, other]) = unordered {
                    let problem = format!(
                        "two thread blocks {does} on the same channel of ranks {from} and {to}, so \
                         that the order of signals is not defined"
                    );
                    return Err(refused(other.line, &problem));
                }
            }
            let name = CHANNEL_TYPES[kind];
            if let Some(wait) = waits.get(signals.len()) {
                let problem = format!(
                    "waits for a signal of rank {from} on a {name} channel, which rank {from} \
                     never gives"
                );
                return Err(refused(wait.line, &problem));
            }
            if let Some(signal) = signals.get(waits.len()) {
                let problem = format!(
                    "signals rank {to} on a {name} channel, where rank {to} does not wait for it"
                );
                return Err(refused(signal.line, &problem));
            }
            for (signal, wait) in signals.iter().zip(&waits) {
                self.instructions[wait.index].waits_for.push(signal.index);
            }
        }
        Ok(())
    }

    fn pair_semaphores(&mut self, gpus: &[Gpu<'_>]) -> Result<(), ProgramError> {
        let acquires = std::mem::take(&mut self.acquires);
        let mut releases = std::mem::take(&mut self.releases);
        for ((rank, semaphore), acquires) in acquires {
            let releases = releases.remove(&(rank, semaphore)).unwrap_or_default();
            let initial = gpus[rank as usize].semaphores[semaphore] as usize;
            let (_, first) = acquires[0];
            if acquires.len() != releases.len() {
                let problem = format!(
                    "semaphore {semaphore} of rank {rank} is acquired {} times and released {} \
                     times, so that the next call finds another value",
                    acquires.len(),
                    releases.len()
                );
                return Err(refused(first.line, &problem));
            }
            if let Some((_, point)) = acquires
                .iter()
                .find(|(_, point)| point.block != first.block)
            {
                let problem = format!(
                    "two thread blocks acquire semaphore {semaphore} of rank {rank}, so that it is \
                     not defined which of them gets which release"
                );
                return Err(refused(point.line, &problem));
            }
            let releaser = releases[0].block;
            let are_of_several = releases.iter().any(|point| point.block != releaser);
            for (place, (run, acquire)) in acquires.iter().enumerate() {
                if !are_of_several {
                    if let Some(before) = place.checked_sub(initial) {
                        let release = releases[before].index;
                        self.instructions[acquire.index].waits_for.push(release);
                    }
                    continue;
                }
                let is_last = acquires.get(place + 1).is_none_or(|(next, _)| next != run);
                if is_last && initial == 0 && place + 1 == releases.len() {
                    let all = releases.iter().map(|release| release.index);
                    self.instructions[acquire.index].waits_for.extend(all);
                } else if is_last && place >= initial {
                    let problem = format!(
                        "several thread blocks release semaphore {semaphore} of rank {rank}, so \
                         that it is not defined for which of them this waits"
                    );
                    return Err(refused(acquire.line, &problem));
                }
            }
        }
        if let Some((&(rank, semaphore), points)) = releases.iter().next() {
            let problem = format!("semaphore {semaphore} of rank {rank} is never acquired");
            return Err(refused(points[0].line, &problem));
        }
        Ok(())
    }

    fn meet_at_barriers(&mut self) -> Result<(), ProgramError> {
        for ((rank, barrier), arrivals) in std::mem::take(&mut self.barriers) {
            let (meeting, first) = arrivals[0];
            let mut by_block: BTreeMap<usize, Vec<Point>> = BTreeMap::new();
            for (others, point) in arrivals {
                if others != meeting {
                    let problem = format!(
                        "barrier {barrier} of rank {rank} waits for {others} and for {meeting} \
                         thread blocks"
                    );
                    return Err(refused(point.line, &problem));
                }
                by_block.entry(point.block).or_default().push(point);
            }
            let rounds = by_block.values().next().map_or(0, Vec::len);
            let equal = by_block.values().all(|points| points.len() == rounds);
            if by_block.len() as u64 != meeting || !equal {
                let problem = format!(
                    "{} thread blocks meet at barrier {barrier} of rank {rank}, which waits for \
                     {meeting}{}",
                    by_block.len(),
                    if equal { "" } else { " as often" }
                );
                return Err(refused(first.line, &problem));
            }
            for round in 0..rounds {
                for (block, points) in &by_block {
                    let others = by_block.iter().filter(|(other, _)| *other != block);
                    let others: Vec<usize> =
                        others.map(|(_, points)| points[round].index).collect();
                    // The instruction after the arrival waits.
                    self.instructions[points[round].index + 1]
                        .waits_for
                        .extend(others);
                }
            }
        }
        Ok(())
    }
}
