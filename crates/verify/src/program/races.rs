//! Check that accesses of a chunk are ordered, by vector clocks.
//!
//! The clock of an instruction counts, for each thread block of a rank, its instructions that
//! happen before the instruction, and the instruction itself. Only accesses of one rank can meet,
//! but their order may lead over other ranks. So the clocks cover the thread blocks of one rank at
//! a time, and the instructions of all ranks pass them on. Each access of a chunk is compared with
//! the last write, and each write also with the reads since then: if none of these pairs race, no
//! accesses race.

use super::execution::Run;
use super::form::{self, effects};
use super::layout::Layout;
use super::{Findings, ProgramFault, Site, instruction};
use opticoll_base::{interrupt, memory};
use opticoll_program::program::{CollectiveProgram, Operand, Operation};

/// Last accesses of a chunk, each a place in the order of execution.
#[derive(Default, Clone)]
struct Accesses {
    write: Option<u32>,
    reads: Vec<u32>,
}

/// Reports races in the memories of all ranks.
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
    // Place in the order of each executed instruction of a thread block.
    let mut places = vec![Vec::new(); program.thread_blocks()];
    for (place, site) in run.order.iter().enumerate() {
        let block = first_block[site.rank as usize] + site.thread_block as usize;
        places[block].push(place as u32);
    }
    for (rank, own) in program.ranks.iter().enumerate() {
        if own.thread_blocks.len() > 1 {
            check_rank(
                program,
                layout,
                run,
                &first_block,
                &places,
                rank as u32,
                findings,
            );
        }
    }
}

/// Reports races in the memory of one rank.
fn check_rank(
    program: &CollectiveProgram,
    layout: &Layout,
    run: &Run,
    first_block: &[usize],
    places: &[Vec<u32>],
    rank: u32,
    findings: &mut Findings,
) {
    let width = program.ranks[rank as usize].thread_blocks.len();
    let bytes = 4 * (width * run.order.len()) as u64;
    memory::check_forecast("looking for data races in this program", bytes);
    let mut clocks = vec![0u32; width * run.order.len()];
    let mut cells = vec![Accesses::default(); layout.cells(rank)];
    for (place, &site) in run.order.iter().enumerate() {
        interrupt::check();
        let (before, own_clock) = clocks.split_at_mut(place * width);
        let own_clock = &mut own_clock[..width];
        let current = instruction(program, site);
        let first = first_block[site.rank as usize];
        let block_places = &places[first + site.thread_block as usize];
        let previous = site
            .step
            .checked_sub(1)
            .map(|step| block_places[step as usize]);
        let waited = current
            .waits_for
            .map(|on| places[first + on.thread_block as usize][on.step as usize]);
        for earlier in [previous, waited, run.received[place]]
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
        let happened = |other: u32| {
            let other = run.order[other as usize];
            own_clock[other.thread_block as usize] > other.step
        };
        let mut effects = effects(current.operation);
        let range = |operand: Operand| {
            let start = layout.start(rank, operand.buffer);
            let start = start.saturating_add(operand.offset as usize);
            start..start.saturating_add(current.count as usize)
        };
        // In place, a copy of the input onto itself changes nothing.
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
                if let Some(write) = accesses.write.filter(|write| !happened(*write)) {
                    conflict.get_or_insert((write, operand, chunk, true));
                }
                accesses.reads.push(place as u32);
            }
        }
        if effects.writes {
            for (chunk, cell) in range(current.destination).enumerate() {
                let accesses = &mut cells[cell];
                let others = accesses.write.iter().map(|&write| (write, true));
                let mut others = others.chain(accesses.reads.iter().map(|&read| (read, false)));
                if let Some((other, wrote)) = others.find(|(other, _)| !happened(*other)) {
                    conflict.get_or_insert((other, current.destination, chunk, wrote));
                }
                accesses.write = Some(place as u32);
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

/// Reports an access that is not ordered with another.
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
