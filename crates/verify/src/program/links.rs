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
    for (rank, own) in program.ranks.iter().enumerate() {
        // First sending instruction for each receiving rank.
        let mut peers: BTreeMap<u32, Site> = BTreeMap::new();
        for (thread_block, block) in own.thread_blocks.iter().enumerate() {
            let mut instructions = block.instructions.iter();
            let first = instructions.position(|one| effects(one.operation).sends);
            if let (Some(peer), Some(step)) = (block.sends_to, first) {
                peers.entry(peer).or_insert(Site {
                    rank: rank as u32,
                    thread_block: thread_block as u32,
                    step: step as u32,
                });
            }
        }
        if peers.is_empty() {
            continue;
        }
        let reached = reached(rank as u32, ranks, &next);
        let unreachable = peers.iter().filter(|(peer, _)| !reached.contains(peer));
        for (&peer, &site) in unreachable {
            let says = || {
                let name = &graph.name;
                format!(
                    "sends to rank {peer}, but no links of {name} join the two ranks, directly or \
                     through switches"
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
