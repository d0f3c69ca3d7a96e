//! Check that links connect ranks that exchange messages, directly or through switches.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::form::effects;
use super::{Findings, LinkGraph, ProgramFault, Site, instruction};
use opticoll_program::program::CollectiveProgram;

pub(super) fn check(program: &CollectiveProgram, graph: &LinkGraph, findings: &mut Findings) {
    let ranks = program.ranks.len() as u32;
    let mut next: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for &(from, to) in &graph.links {
        next.entry(from).or_default().push(to);
    }
    // First instruction that moves data, for each sending rank and each receiving rank.
    let mut peers: BTreeMap<u32, BTreeMap<u32, Site>> = BTreeMap::new();
    for (rank, own) in program.ranks.iter().enumerate() {
        let rank = rank as u32;
        for (thread_block, block) in own.thread_blocks.iter().enumerate() {
            for (step, one) in block.instructions.iter().enumerate() {
                let effects = effects(one.operation);
                let sent = block.sends_to.filter(|_| effects.sends);
                let (from, to) = (one.source.rank.unwrap_or(rank), one.destination.rank);
                let to = to.unwrap_or(rank);
                let is_moved = effects.reads_source && effects.writes && from != to;
                let moved = is_moved.then_some((from, to));
                for (from, to) in sent.map(|to| (rank, to)).into_iter().chain(moved) {
                    peers.entry(from).or_default().entry(to).or_insert(Site {
                        rank,
                        thread_block: thread_block as u32,
                        step: step as u32,
                    });
                }
            }
        }
    }
    for (rank, peers) in peers {
        let reached = reached(rank, ranks, &next);
        let unreachable = peers.iter().filter(|(peer, _)| !reached.contains(peer));
        for (&peer, &site) in unreachable {
            let says = || {
                let name = &graph.name;
                let sends = match site.rank == rank {
                    true => "sends".to_owned(),
                    false => format!("moves data of rank {rank}"),
                };
                format!(
                    "{sends} to rank {peer}, but no links of {name} join the two ranks, directly \
                     or through switches"
                )
            };
            // Instructions of programs that were made from plans have no line numbers.
            match instruction(program, site).line {
                0 => findings.add_for_rank(ProgramFault::NoLink, site.rank, says),
                _ => findings.add_at(program, ProgramFault::NoLink, site, says),
            }
        }
    }
}

/// Returns the ranks and switches that `rank` reaches over links without passing through another
/// rank. `next` has the ends of the links from each vertex.
fn reached(rank: u32, ranks: u32, next: &FxHashMap<u32, Vec<u32>>) -> BTreeSet<u32> {
    let mut reached = BTreeSet::from([rank]);
    let mut open = vec![rank];
    while let Some(vertex) = open.pop() {
        for &other in next.get(&vertex).into_iter().flatten() {
            if reached.insert(other) && other >= ranks {
                open.push(other);
            }
        }
    }
    reached
}
