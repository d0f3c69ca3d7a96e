//! Check, by vector clocks, that all conflicting accesses of a chunk are ordered.
//!
//! The clock of an instruction has a counter for each thread block that accesses the memory of one
//! rank: the number of instructions of this thread block that happen before the instruction. The
//! instruction itself also counts. Only accesses to the memory of the same rank can conflict, but
//! the order between them may lead over other ranks. The check therefore computes the clocks of one
//! rank at a time, and the instructions of all ranks pass the clocks on.
//!
//! Each access of a chunk is compared with the last write of the chunk. Each write is also compared
//! with the reads since the last write. If none of these pairs race, no accesses race.
//!
//! Nothing orders the calls of different ranks, except the instructions. An access of rank a to the
//! memory of rank r is therefore only allowed after an instruction of r (r has begun its call), and
//! before an instruction of r (r does not end its call, after which the caller uses the buffers).
//! If consecutive calls use two scratch buffers in turn, an access to scratch may come before r has
//! begun: the calls c and c + 2 share a buffer. It is then enough that a ends call c + 1 after r
//! has begun call c + 1, and hence ended call c. If they use one scratch buffer, it is enough that
//! a ends call c after the last access to the same chunks.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::execution::Run;
use super::form::{self, effects};
use super::layout::Layout;
use super::{Findings, ProgramFault, Site, instruction};
use opticoll_base::{interrupt, memory};
use opticoll_program::program::{ChunkBuffer, CollectiveProgram, Operand, Operation};

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
    for rank in 0..program.ranks.len() as u32 {
        let check = RankCheck::new(program, layout, run, rank);
        let from_afar = check.columns.keys().any(|(other, _)| *other != rank);
        if check.columns.len() > 1 || from_afar {
            check.run(&first_block, &positions, findings);
        }
    }
}

/// Check of the accesses to the memory of one rank.
struct RankCheck<'a> {
    program: &'a CollectiveProgram,
    layout: &'a Layout,
    run: &'a Run,
    rank: u32,
    /// Column in the clocks of each thread block, by (rank, thread block). All thread blocks of the
    /// rank have one, and those of other ranks that access the memory of the rank.
    columns: FxHashMap<(u32, u32), usize>,
}

impl<'a> RankCheck<'a> {
    fn new(
        program: &'a CollectiveProgram,
        layout: &'a Layout,
        run: &'a Run,
        rank: u32,
    ) -> RankCheck<'a> {
        let mut columns = FxHashMap::default();
        for (other, own) in program.ranks.iter().enumerate() {
            let other = other as u32;
            for (index, block) in own.thread_blocks.iter().enumerate() {
                let accesses = |operand: Operand| operand.rank == Some(rank);
                let mut instructions = block.instructions.iter();
                if other == rank
                    || instructions.any(|one| accesses(one.source) || accesses(one.destination))
                {
                    let column = columns.len();
                    columns.insert((other, index as u32), column);
                }
            }
        }
        RankCheck {
            program,
            layout,
            run,
            rank,
            columns,
        }
    }

    fn column(&self, site: Site) -> Option<usize> {
        self.columns.get(&(site.rank, site.thread_block)).copied()
    }

    fn is_of_rank(&self, site: Site, operand: Operand) -> bool {
        operand.rank.unwrap_or(site.rank) == self.rank
    }

    fn range(&self, operand: Operand, count: u32) -> Range<usize> {
        let start = self.layout.start(self.rank, operand.buffer);
        let start = start.saturating_add(operand.offset as usize);
        start..start.saturating_add(count as usize)
    }

    fn run(&self, first_block: &[usize], positions: &[Vec<u32>], findings: &mut Findings) {
        let (program, run) = (self.program, self.run);
        let width = self.columns.len();
        let bytes = 4 * (width * run.order.len()) as u64;
        memory::check_forecast("looking for data races in this program", bytes);
        let mut clocks = vec![0u32; width * run.order.len()];
        let mut cells = vec![Accesses::default(); self.layout.cells(self.rank)];
        // Instructions of other ranks that access the memory, each with its operand.
        let mut from_afar: Vec<(u32, Operand)> = Vec::new();
        for (position, &site) in run.order.iter().enumerate() {
            interrupt::check();
            let (before, own_clock) = clocks.split_at_mut(position * width);
            let own_clock = &mut own_clock[..width];
            let current = instruction(program, site);
            let positions_of = |rank: u32, block: u32| {
                let block = first_block[rank as usize] + block as usize;
                &positions[block]
            };
            let previous = site
                .step
                .checked_sub(1)
                .map(|step| positions_of(site.rank, site.thread_block)[step as usize]);
            let waited = current.waits_for.map(|on| {
                let rank = on.rank.unwrap_or(site.rank);
                positions_of(rank, on.thread_block)[on.step as usize]
            });
            for earlier in [previous, waited, run.received[position]]
                .into_iter()
                .flatten()
            {
                let start = earlier as usize * width;
                for (clock, other) in own_clock.iter_mut().zip(&before[start..start + width]) {
                    *clock = (*clock).max(*other);
                }
            }
            let Some(column) = self.column(site) else {
                continue;
            };
            own_clock[column] = site.step + 1;
            let position = position as u32;
            self.check_accesses(position, own_clock, &mut cells, &mut from_afar, findings);
        }
        let clock_of = |site: Site| {
            let block = first_block[site.rank as usize] + site.thread_block as usize;
            let position = positions[block].get(site.step as usize);
            position.map(|&position| &clocks[position as usize * width..][..width])
        };
        self.check_calls(&from_afar, clock_of, findings);
    }

    /// Checks the accesses of one instruction to the memory of the rank.
    fn check_accesses(
        &self,
        position: u32,
        clock: &[u32],
        cells: &mut [Accesses],
        from_afar: &mut Vec<(u32, Operand)>,
        findings: &mut Findings,
    ) {
        let (program, run) = (self.program, self.run);
        let site = run.order[position as usize];
        let current = instruction(program, site);
        let happened_before = |other: u32| {
            let other = run.order[other as usize];
            let column = self.column(other);
            column.is_some_and(|column| clock[column] > other.step)
        };
        let is_here = |operand: Operand| self.is_of_rank(site, operand);
        let range = |operand: Operand| self.range(operand, current.count);
        let (source, destination) = (current.source, current.destination);
        let mut effects = effects(current.operation);
        let are_both_here = is_here(source) && is_here(destination);
        // If the program is in place, a copy of the input onto itself changes nothing.
        if current.operation == Operation::Copy
            && are_both_here
            && range(source) == range(destination)
        {
            effects = form::effects(Operation::Nop);
        }
        let mut conflict: Option<(u32, Operand, usize, bool)> = None;
        let reads = [
            (effects.reads_source, source),
            (effects.reads_destination, destination),
        ];
        let reads = reads
            .into_iter()
            .filter(|(used, operand)| *used && is_here(*operand));
        for (_, operand) in reads {
            from_afar.extend((site.rank != self.rank).then_some((position, operand)));
            for (chunk, cell) in range(operand).enumerate() {
                let accesses = &mut cells[cell];
                if let Some(write) = accesses.write.filter(|write| !happened_before(*write)) {
                    conflict.get_or_insert((write, operand, chunk, true));
                }
                accesses.reads.push(position);
            }
        }
        if effects.writes && is_here(destination) {
            from_afar.extend((site.rank != self.rank).then_some((position, destination)));
            for (chunk, cell) in range(destination).enumerate() {
                let accesses = &mut cells[cell];
                let others = accesses.write.iter().map(|&write| (write, true));
                let mut others = others.chain(accesses.reads.iter().map(|&read| (read, false)));
                if let Some((other, wrote)) = others.find(|(other, _)| !happened_before(*other)) {
                    conflict.get_or_insert((other, destination, chunk, wrote));
                }
                accesses.write = Some(position);
                accesses.reads.clear();
            }
            let (from, to) = (range(source), range(destination));
            if effects.reads_source
                && are_both_here
                && from != to
                && from.start < to.end
                && to.start < from.end
            {
                findings.add_at(program, ProgramFault::Race, site, || {
                    "reads and writes chunks that overlap".to_owned()
                });
            }
        }
        if let Some((other, operand, chunk, wrote)) = conflict {
            let other = run.order[other as usize];
            report(program, site, other, operand, chunk, wrote, findings);
        }
    }

    /// Checks that accesses of other ranks to the memory of the rank are within its call.
    /// `clock_of` returns the clock of an instruction that was executed.
    fn check_calls<'c>(
        &self,
        from_afar: &[(u32, Operand)],
        clock_of: impl Fn(Site) -> Option<&'c [u32]>,
        findings: &mut Findings,
    ) {
        let has_begun = |clock: &[u32]| {
            let own = self
                .columns
                .iter()
                .filter(|((rank, _), _)| *rank == self.rank);
            own.map(|(_, &column)| clock[column]).any(|count| count > 0)
        };
        // Clocks of the last instructions of the thread blocks of a rank.
        let ends = |rank: u32| {
            let blocks = self.program.ranks[rank as usize].thread_blocks.iter();
            let sites = blocks.enumerate().map(move |(index, block)| Site {
                rank,
                thread_block: index as u32,
                step: (block.instructions.len() as u32).wrapping_sub(1),
            });
            sites.filter_map(&clock_of)
        };
        // For each chunk of scratch: the columns whose instructions access the chunk, each with the
        // number of instructions up to the last of them.
        let mut last_of_scratch: FxHashMap<usize, FxHashMap<usize, u32>> = FxHashMap::default();
        for site in &self.run.order {
            let one = instruction(self.program, *site);
            let effects = effects(one.operation);
            let used = [
                (effects.reads_source, one.source),
                (effects.writes || effects.reads_destination, one.destination),
            ];
            let Some(column) = self.column(*site) else {
                continue;
            };
            for (_, operand) in used.into_iter().filter(|(used, operand)| {
                *used && operand.buffer == ChunkBuffer::Scratch && self.is_of_rank(*site, *operand)
            }) {
                for cell in self.range(operand, one.count) {
                    let last = last_of_scratch.entry(cell).or_default();
                    last.insert(column, site.step + 1);
                }
            }
        }
        for &(position, operand) in from_afar {
            let site = self.run.order[position as usize];
            let (rank, name) = (self.rank, operand.buffer.name());
            let is_doubled = self.program.double_scratch && operand.buffer == ChunkBuffer::Scratch;
            let begun = match operand.buffer {
                ChunkBuffer::Scratch if is_doubled => ends(site.rank).any(has_begun),
                ChunkBuffer::Scratch => {
                    let knows = |(&column, &last): (&usize, &u32)| {
                        ends(site.rank).any(|clock| clock[column] >= last)
                    };
                    let mut chunks = self.range(operand, instruction(self.program, site).count);
                    clock_of(site).is_some_and(has_begun)
                        || chunks.all(|cell| last_of_scratch[&cell].iter().all(knows))
                }
                _ => clock_of(site).is_some_and(has_begun),
            };
            let column = self.column(site).unwrap_or(0);
            if !begun {
                let when = match is_doubled {
                    true => "its rank ends without knowing",
                    false => "nothing tells before",
                };
                findings.add_at(self.program, ProgramFault::OutsideCall, site, || {
                    format!("accesses {name} of rank {rank}, but {when} that rank {rank} has begun")
                });
            } else if !ends(rank).any(|clock| clock[column] > site.step) {
                findings.add_at(self.program, ProgramFault::OutsideCall, site, || {
                    format!("accesses {name} of rank {rank}, which may end its call before")
                });
            }
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
        let name = form::named(operand);
        let does = if wrote { "writes" } else { "reads" };
        let line = match instruction(program, other).line {
            0 => String::new(),
            line => format!(" (line {line})"),
        };
        let other = match other.rank == site.rank {
            true => format!("thread block {}, step {}", other.thread_block, other.step),
            false => other.to_string(),
        };
        format!(
            "accesses chunk {chunk} of {name}, which {other}{line} {does}, and nothing orders the \
             two"
        )
    });
}
