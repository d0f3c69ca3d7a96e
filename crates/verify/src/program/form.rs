//! Checks of single instructions: conditions without which a program cannot be executed.

use rustc_hash::FxHashMap;

use super::layout::Layout;
use super::{Findings, ProgramFault, Site};
use crate::report::counted;
use opticoll_base::interrupt;
use opticoll_program::program::{ChunkBuffer, CollectiveProgram, Instruction, Operand, Operation};

/// Messages and operands that an operation uses.
pub(super) struct Effects {
    pub(super) receives: bool,
    pub(super) sends: bool,
    pub(super) reads_source: bool,
    pub(super) reads_destination: bool,
    pub(super) writes: bool,
}

pub(super) const fn effects(operation: Operation) -> Effects {
    let (receives, sends, reads_source, reads_destination, writes) = match operation {
        Operation::Send => (false, true, true, false, false),
        Operation::Receive => (true, false, false, false, true),
        Operation::ReceiveCopySend => (true, true, false, false, true),
        Operation::ReceiveReduceCopy => (true, false, true, false, true),
        Operation::ReceiveReduceSend => (true, true, true, false, false),
        Operation::ReceiveReduceCopySend => (true, true, true, false, true),
        Operation::Copy => (false, false, true, false, true),
        Operation::Reduce => (false, false, true, true, true),
        Operation::Nop => (false, false, false, false, false),
    };
    Effects {
        receives,
        sends,
        reads_source,
        reads_destination,
        writes,
    }
}

/// Reports instructions that cannot be executed. Returns whether all instructions can be executed.
pub(super) fn check(program: &CollectiveProgram, layout: &Layout, findings: &mut Findings) -> bool {
    let before: usize = violations(findings);
    for rank in 0..program.ranks.len() as u32 {
        declared(program, layout, rank, findings);
        connections(program, rank, findings);
        let blocks = &program.ranks[rank as usize].thread_blocks;
        for (thread_block, block) in blocks.iter().enumerate() {
            interrupt::check();
            for (step, one) in block.instructions.iter().enumerate() {
                let site = Site {
                    rank,
                    thread_block: thread_block as u32,
                    step: step as u32,
                };
                let effects = effects(one.operation);
                let peers = [
                    (effects.sends, "send to", block.sends_to),
                    (effects.receives, "receive from", block.receives_from),
                ];
                for (_, does, peer) in peers.into_iter().filter(|(used, ..)| *used) {
                    match peer {
                        None => findings.add_at(program, ProgramFault::Peer, site, || {
                            format!("its thread block has no rank to {does}")
                        }),
                        Some(peer) if peer == rank || peer as usize >= program.ranks.len() => {
                            findings.add_at(program, ProgramFault::Peer, site, || {
                                format!("rank {rank} cannot {does} rank {peer}")
                            });
                        }
                        Some(_) => {}
                    }
                }
                operands(program, layout, site, one, findings);
                dependency(program, site, one, findings);
            }
        }
    }
    violations(findings) == before
}

/// Returns the number of violations found so far, without remarks.
fn violations(findings: &Findings) -> usize {
    let counts = findings.counts.iter();
    counts
        .filter(|(kind, _)| !kind.is_remark())
        .map(|(_, count)| count)
        .sum()
}

/// Reports declared buffer sizes that differ from the sizes that the collective needs.
fn declared(program: &CollectiveProgram, layout: &Layout, rank: u32, findings: &mut Findings) {
    let declared_sizes = &program.ranks[rank as usize];
    let stated = [
        (ChunkBuffer::Input, declared_sizes.input),
        (ChunkBuffer::Output, declared_sizes.output),
    ];
    for (buffer, stated) in stated {
        let size = layout.size(rank, buffer);
        if stated != 0 && stated != size {
            findings.add_for_rank(ProgramFault::DeclaredSize, rank, || {
                let name = buffer.name();
                format!("{name} is declared with {stated} chunks, the collective has {size}")
            });
        }
    }
}

/// Reports connections with several sending or several receiving thread blocks, for which the order
/// of messages is undefined.
fn connections(program: &CollectiveProgram, rank: u32, findings: &mut Findings) {
    let mut known: FxHashMap<(bool, u32, u32), usize> = FxHashMap::default();
    let blocks = program.ranks[rank as usize].thread_blocks.iter();
    for (index, block) in blocks.enumerate() {
        let uses = |wanted: fn(&Effects) -> bool| {
            let mut instructions = block.instructions.iter();
            instructions.position(|one| wanted(&effects(one.operation)))
        };
        let ends = [
            (true, block.sends_to, uses(|one| one.sends)),
            (false, block.receives_from, uses(|one| one.receives)),
        ];
        for (sends, peer, used) in ends {
            let (Some(peer), Some(step)) = (peer, used) else {
                continue;
            };
            if let Some(other) = known.insert((sends, peer, block.channel), index) {
                let site = Site {
                    rank,
                    thread_block: index as u32,
                    step: step as u32,
                };
                findings.add_at(program, ProgramFault::Connection, site, || {
                    let does = if sends { "sends to" } else { "receives from" };
                    let channel = block.channel;
                    format!(
                        "{does} rank {peer} on channel {channel} as thread block {other} does, so \
                         that the order of messages is not defined"
                    )
                });
            }
        }
    }
}

/// Returns the name of the buffer of an operand, with its rank if this is another rank.
pub(super) fn named(operand: Operand) -> String {
    let name = operand.buffer.name();
    match operand.rank {
        None => name.to_owned(),
        Some(rank) => format!("{name} of rank {rank}"),
    }
}

fn operands(
    program: &CollectiveProgram,
    layout: &Layout,
    site: Site,
    one: &Instruction,
    findings: &mut Findings,
) {
    let effects = effects(one.operation);
    let used = [
        ("reads", effects.reads_source, one.source),
        (
            if effects.writes { "writes" } else { "reads" },
            effects.writes || effects.reads_destination,
            one.destination,
        ),
    ];
    for (does, _, operand) in used.into_iter().filter(|(_, used, _)| *used) {
        let owner = operand.rank.unwrap_or(site.rank);
        if owner as usize >= program.ranks.len() {
            findings.add_at(program, ProgramFault::Peer, site, || {
                format!("{does} a buffer of rank {owner}, which does not exist")
            });
            continue;
        }
        let size = layout.size(owner, operand.buffer);
        if !within(operand, one.count, size) {
            findings.add_at(program, ProgramFault::Bounds, site, || {
                let first = i64::from(operand.offset);
                let last = first + i64::from(one.count) - 1;
                let name = named(operand);
                let which = match first == last {
                    true => format!("chunk {first}"),
                    false => format!("chunks {first} to {last}"),
                };
                let size = counted(size.into(), "chunk");
                format!("{does} {which} of {name}, which has {size}")
            });
        }
    }
    if one.operation != Operation::Nop && one.count == 0 {
        findings.add_at(program, ProgramFault::Bounds, site, || {
            "moves no chunks".into()
        });
    }
}

fn within(operand: Operand, count: u32, size: u32) -> bool {
    let end = i64::from(operand.offset) + i64::from(count);
    operand.offset >= 0 && end <= i64::from(size)
}

/// Reports a dependency on an instruction that does not exist or does not signal.
fn dependency(program: &CollectiveProgram, site: Site, one: &Instruction, findings: &mut Findings) {
    let Some(waits) = one.waits_for else {
        return;
    };
    let rank = program.ranks.get(waits.rank.unwrap_or(site.rank) as usize);
    let block = rank.and_then(|rank| rank.thread_blocks.get(waits.thread_block as usize));
    let awaited = block.and_then(|block| block.instructions.get(waits.step as usize));
    let problem = match awaited {
        None => "does not exist",
        Some(awaited) if !awaited.signals => "never signals its completion (hasdep)",
        Some(_) => return,
    };
    findings.add_at(program, ProgramFault::Dependency, site, || {
        let (block, step) = (waits.thread_block, waits.step);
        let of = waits
            .rank
            .map_or(String::new(), |rank| format!("rank {rank}, "));
        format!("waits for {of}thread block {block}, step {step}, which {problem}")
    });
}
