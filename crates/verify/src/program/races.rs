//! Check, by vector clocks, that all conflicting accesses of a chunk are ordered.
//!
//! The clock of an instruction has a counter for each thread block of one rank: the number of
//! instructions of this thread block that happen before the instruction. The instruction itself
//! also counts. Only accesses at the same rank can conflict, but the order between them may lead
//! over other ranks. The check therefore computes the clocks of one rank at a time, and the
//! instructions of all ranks pass the clocks on.
//!
//! Each access of a chunk is compared with the last write of the chunk. Each write is also compared
//! with the reads since the last write. If none of these pairs race, no accesses race.

use super::execution::Run;
use super::form::{self, effects};
use super::layout::Layout;
use super::{Findings, ProgramFault, Site, instruction};
use opticoll_base::{interrupt, memory};
use opticoll_program::program::{CollectiveProgram, Operand, Operation};

/// Last accesses of a chunk, as positions in the order of execution.
#[derive(Default, Clone)]
struct Accesses {
    write: Option<u32>,
    reads: Vec<u32>,
}

pub(super) fn check(
    program: &CollectiveProgram,
    layout: &Layout,
    run: &Run,
    findings: &mut Findings,
) {
    let first_block: Vec<usize> = program
        .ranks
        .iter()
        .scan(0, |sum, rank| {
            let first = *sum;
            *sum += rank.thread_blocks.len();
            Some(first)
        })
        .collect();
    // Position of each instruction in the order of execution, indexed by thread block and step.
    let mut positions = vec![Vec::new(); program.thread_blocks()];
    for (position, site) in run.order.iter().enumerate() {
        let block = first_block[site.rank as usize] + site.thread_block as usize;
        positions[block].push(position as u32);
    }
    for (rank, own) in program.ranks.iter().enumerate() {
        if own.thread_blocks.len() > 1 {
            check_rank(
                program,
                layout,
                run,
                &first_block,
                &positions,
                rank as u32,
                findings,
            );
        }
    }
}

fn check_rank(
    program: &CollectiveProgram,
    layout: &Layout,
    run: &Run,
    first_block: &[usize],
    positions: &[Vec<u32>],
    rank: u32,
    findings: &mut Findings,
) {
    let width = program.ranks[rank as usize].thread_blocks.len();
    let bytes = 4 * (width * run.order.len()) as u64;
    memory::check_forecast("looking for data races in this program", bytes);
    let mut clocks = vec![0u32; width * run.order.len()];
    let mut cells = vec![Accesses::default(); layout.cells(rank)];
    for (position, &site) in run.order.iter().enumerate() {
        interrupt::check();
        let (before, own_clock) = clocks.split_at_mut(position * width);
        let own_clock = &mut own_clock[..width];
        let current = instruction(program, site);
        let first = first_block[site.rank as usize];
        let block_positions = &positions[first + site.thread_block as usize];
        let previous = site
            .step
            .checked_sub(1)
            .map(|step| block_positions[step as usize]);
        let waited = current
            .waits_for
            .map(|on| positions[first + on.thread_block as usize][on.step as usize]);
        for earlier in [previous, waited, run.received[position]]
            .into_iter()
            .flatten()
        {
            let start = earlier as usize * width;
            for (clock, other) in own_clock.iter_mut().zip(&before[start..start + width]) {
                *clock = (*clock).max(*other);
            }
        }
        if site.rank != rank {
            continue;
        }
        own_clock[site.thread_block as usize] = site.step + 1;
        let happened_before = |other: u32| {
            let other = run.order[other as usize];
            own_clock[other.thread_block as usize] > other.step
        };
        let mut effects = effects(current.operation);
        let range = |operand: Operand| {
            let start = layout.start(rank, operand.buffer);
            let start = start.saturating_add(operand.offset as usize);
            start..start.saturating_add(current.count as usize)
        };
        // If the program is in place, a copy of the input onto itself changes nothing.
        if current.operation == Operation::Copy
            && range(current.source) == range(current.destination)
        {
            effects = form::effects(Operation::Nop);
        }
        let mut conflict: Option<(u32, Operand, usize, bool)> = None;
        let reads = [
            (effects.reads_source, current.source),
            (effects.reads_destination, current.destination),
        ];
        for (_, operand) in reads.into_iter().filter(|(used, _)| *used) {
            for (chunk, cell) in range(operand).enumerate() {
                let accesses = &mut cells[cell];
                if let Some(write) = accesses.write.filter(|write| !happened_before(*write)) {
                    conflict.get_or_insert((write, operand, chunk, true));
                }
                accesses.reads.push(position as u32);
            }
        }
        if effects.writes {
            for (chunk, cell) in range(current.destination).enumerate() {
                let accesses = &mut cells[cell];
                let others = accesses.write.iter().map(|&write| (write, true));
                let mut others = others.chain(accesses.reads.iter().map(|&read| (read, false)));
                if let Some((other, wrote)) = others.find(|(other, _)| !happened_before(*other)) {
                    conflict.get_or_insert((other, current.destination, chunk, wrote));
                }
                accesses.write = Some(position as u32);
                accesses.reads.clear();
            }
            let (from, to) = (range(current.source), range(current.destination));
            if effects.reads_source && from != to && from.start < to.end && to.start < from.end {
                findings.add_at(program, ProgramFault::Race, site, || {
                    "reads and writes chunks that overlap".to_owned()
                });
            }
        }
        if let Some((other, operand, chunk, wrote)) = conflict {
            report(
                program,
                site,
                run.order[other as usize],
                operand,
                chunk,
                wrote,
                findings,
            );
        }
    }
}

/// Reports that the accesses of two instructions, `site` and `other`, to a chunk are not ordered.
fn report(
    program: &CollectiveProgram,
    site: Site,
    other: Site,
    operand: Operand,
    chunk: usize,
    wrote: bool,
    findings: &mut Findings,
) {
    findings.add_at(program, ProgramFault::Race, site, || {
        let chunk = operand.offset as usize + chunk;
        let name = operand.buffer.name();
        let does = if wrote { "writes" } else { "reads" };
        let line = match instruction(program, other).line {
            0 => String::new(),
            line => format!(" (line {line})"),
        };
        let Site {
            thread_block, step, ..
        } = other;
        format!(
            "accesses chunk {chunk} of {name}, which thread block {thread_block}, step \
             {step}{line} {does}, and nothing orders the two"
        )
    });
}
