//! Whether links join the ranks that send to one another: directly, or through switches.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::form::effects;
use super::{Findings, LinkGraph, ProgramFault};
use crate::program::CollectiveProgram;

pub(super) fn check(program: &CollectiveProgram, graph: &LinkGraph, findings: &mut Findings) {
    let ranks = program.ranks.len() as u32;
    let mut next: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for &(from, to) in &graph.links {
        next.entry(from).or_default().push(to);
    }
    for (rank, own) in program.ranks.iter().enumerate() {
        let sending = own.thread_blocks.iter().filter(|block| {
            let mut all = block.instructions.iter();
            all.any(|one| effects(one.operation).sends)
        });
        let peers: BTreeSet<u32> = sending.filter_map(|block| block.sends_to).collect();
        if peers.is_empty() {
            continue;
        }
        let reached = reached(rank as u32, ranks, &next);
        for peer in peers.difference(&reached) {
            findings.of_rank(ProgramFault::NoLink, rank as u32, || {
                let name = &graph.name;
                format!("sends to rank {peer}, but no link of {name} joins them, nor do switches")
            });
        }
    }
}

/// The ranks that a rank reaches without passing another rank.
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
