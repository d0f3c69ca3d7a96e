//! Thread blocks for nodes with dependencies.
//!
//! The *clock* of a node states, for each thread block, how many of its nodes happen before the
//! node or are the node. A node may join a thread block if all nodes of the thread block happen
//! before the node.

use rustc_hash::FxHashMap;

use super::super::block_layout::{UnplacedInstruction, lay_out_blocks, wait_instruction};
use super::super::{Instruction, ThreadBlock};
use crate::chakra::{ChakraError, ChakraNode};
use opticoll_base::{graph, interrupt, memory};

/// Operation of a node.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Step {
    /// Thread block that the trace names.
    pub(super) label: Option<i128>,
    /// Other rank of a message.
    pub(super) peer: Option<u32>,
    pub(super) tag: u32,
    /// Instruction on chunks; `None` for a node that only takes time.
    pub(super) instruction: Option<Instruction>,
}

/// Maximum number of dependencies that a node which only takes time passes on to the nodes that
/// wait for it. A node with more dependencies becomes an instruction that waits.
const MAX_PASSED_ON: usize = 16;

/// Returns the dependencies of each node as indices into the file. Dependencies on missing nodes
/// are ignored.
fn dependencies(nodes: &[ChakraNode]) -> Result<Vec<Vec<usize>>, ChakraError> {
    let mut places: FxHashMap<u64, usize> = FxHashMap::default();
    for (place, node) in nodes.iter().enumerate() {
        if let Some(other) = places.insert(node.id, place) {
            let record = nodes[other].record;
            return Err(node.error(format!("node {record} of the file has this number, too")));
        }
    }
    let each = nodes.iter().map(|node| {
        let ids = node.control.iter().chain(&node.data);
        let mut on: Vec<usize> = ids.filter_map(|id| places.get(id).copied()).collect();
        on.sort_unstable();
        on.dedup();
        on
    });
    Ok(each.collect())
}

/// Returns a topological order that stays as close to the order of the file as possible, and its
/// length. Nodes on cycles follow at the end.
fn topological_order(on: &[Vec<usize>]) -> (Vec<usize>, usize) {
    let waits = |node: u32| on[node as usize].iter().map(|&earlier| earlier as u32);
    let order = graph::topological_order(on.len(), waits).into_iter();
    let mut order: Vec<usize> = order.map(|node| node as usize).collect();
    let sorted = order.len();
    let mut on_cycle = vec![true; on.len()];
    order.iter().for_each(|&node| on_cycle[node] = false);
    order.extend((0..on.len()).filter(|&node| on_cycle[node]));
    (order, sorted)
}

/// Thread block that is being filled.
struct Block {
    sends_to: Option<u32>,
    receives_from: Option<u32>,
    channel: Option<u32>,
    nodes: Vec<usize>,
}

/// Connection of a message: true if the rank sends, the other rank, and the tag.
type Connection = (bool, u32, u32);

impl Block {
    /// Returns the connection that it sends on or, if it sends nothing, receives on.
    fn connection(&self) -> Option<Connection> {
        let sends = self.sends_to.map(|peer| (true, peer));
        let (sends, peer) = sends.or(self.receives_from.map(|peer| (false, peer)))?;
        Some((sends, peer, self.channel?))
    }

    fn accepts(&self, connection: Option<Connection>, shared: bool) -> bool {
        if !shared && self.connection() != connection {
            return false;
        }
        connection.is_none_or(|(sends, peer, tag)| {
            let known = if sends {
                self.sends_to
            } else {
                self.receives_from
            };
            known.is_none_or(|known| known == peer) && self.channel.is_none_or(|known| known == tag)
        })
    }
}

/// Builds the thread blocks of a rank.
///
/// First it tries thread blocks that send to a rank and receive from another rank, as runtimes use
/// them. If their nodes are not ordered, each connection gets a thread block of its own.
pub(super) fn build_thread_blocks(
    nodes: &[ChakraNode],
    steps: &[Step],
) -> Result<Vec<ThreadBlock>, ChakraError> {
    let on = dependencies(nodes)?;
    let order = topological_order(&on);
    let Joined { blocks, waits_for } = match join(steps, &on, &order, true) {
        Ok(joined) => joined,
        Err(_) => match join(steps, &on, &order, false) {
            Ok(joined) | Err(joined) => joined,
        },
    };
    let rows = nodes.iter().zip(steps).zip(waits_for);
    let instructions: Vec<UnplacedInstruction> = rows
        .map(|((node, step), waits_for)| UnplacedInstruction {
            instruction: step
                .instruction
                .unwrap_or_else(|| wait_instruction(None, node.record)),
            waits_for,
        })
        .collect();
    let blocks = blocks.into_iter().map(|block| {
        let thread_block = ThreadBlock {
            sends_to: block.sends_to,
            receives_from: block.receives_from,
            channel: block.channel.unwrap_or(0),
            instructions: Vec::new(),
        };
        (thread_block, block.nodes)
    });
    Ok(lay_out_blocks(&instructions, blocks.collect()))
}

/// Nodes of each thread block, and for each node with an instruction the nodes that it waits for.
struct Joined {
    blocks: Vec<Block>,
    waits_for: Vec<Vec<usize>>,
}

/// Assigns nodes to thread blocks. A thread block has one connection or, if `shared`, one to send
/// on and one to receive on. Returns an error if two thread blocks have the same connection,
/// because the order of their nodes is unknown.
fn join(
    steps: &[Step],
    on: &[Vec<usize>],
    (order, sorted): &(Vec<usize>, usize),
    shared: bool,
) -> Result<Joined, Joined> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut connection_blocks: FxHashMap<Connection, usize> = FxHashMap::default();
    let mut label_blocks: FxHashMap<i128, usize> = FxHashMap::default();
    let mut clocks: Vec<Vec<u32>> = vec![Vec::new(); steps.len()];
    let mut block_of = vec![usize::MAX; steps.len()];
    let mut waits_for: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    let mut passed_on = vec![false; steps.len()];
    let mut is_ambiguous = false;
    for (place, &node) in order.iter().enumerate() {
        interrupt::check();
        let on_cycle = place >= *sorted;
        let mut waits: Vec<usize> = Vec::new();
        for &earlier in &on[node] {
            match passed_on[earlier] {
                true => waits.extend_from_slice(&waits_for[earlier]),
                false => waits.push(earlier),
            }
        }
        waits.sort_unstable();
        waits.dedup();
        let step = &steps[node];
        let only_waits = step.instruction.is_none();
        passed_on[node] = only_waits && !on_cycle && waits.len() <= MAX_PASSED_ON;
        if passed_on[node] {
            waits_for[node] = waits;
            continue;
        }
        let mut clock = vec![0u32; blocks.len()];
        for &earlier in &waits {
            for (own, other) in clock.iter_mut().zip(&clocks[earlier]) {
                *own = (*own).max(*other);
            }
        }
        let connection = step.instruction.zip(step.peer);
        let connection =
            connection.map(|(instruction, peer)| (instruction.operation.sends(), peer, step.tag));
        let is_last = |block: usize| clock[block] as usize == blocks[block].nodes.len();
        let joins = |&block: &usize| blocks[block].accepts(connection, shared) && is_last(block);
        let known = connection.and_then(|connection| connection_blocks.get(&connection).copied());
        let labelled = step
            .label
            .and_then(|label| label_blocks.get(&label).copied());
        let mut nearest = waits.iter().rev().map(|&earlier| block_of[earlier]);
        let found = match known {
            _ if on_cycle => None,
            Some(block) => Some(block).filter(joins),
            // A node without this label could come between the messages of a named thread block,
            // which would then have no order.
            None if step.label.is_some() => labelled.filter(joins),
            None => nearest.find(|block| *block != usize::MAX && joins(block)),
        };
        is_ambiguous |= known.is_some() && found.is_none() && !on_cycle;
        let block = found.unwrap_or_else(|| {
            blocks.push(Block {
                sends_to: None,
                receives_from: None,
                channel: None,
                nodes: Vec::new(),
            });
            let bytes = 4 * blocks.len() as u64 * steps.len() as u64;
            memory::check_forecast("the thread blocks of this trace", bytes);
            blocks.len() - 1
        });
        let joined = &mut blocks[block];
        if let Some(connection @ (sends, peer, tag)) = connection {
            match sends {
                true => joined.sends_to = Some(peer),
                false => joined.receives_from = Some(peer),
            }
            joined.channel = Some(tag);
            connection_blocks.insert(connection, block);
        }
        joined.nodes.push(node);
        clock.resize(blocks.len(), 0);
        clock[block] = blocks[block].nodes.len() as u32;
        clocks[node] = clock;
        block_of[node] = block;
        waits_for[node] = waits;
        if let Some(label) = step.label {
            label_blocks.insert(label, block);
        }
    }
    let joined = Joined { blocks, waits_for };
    match is_ambiguous {
        true => Err(joined),
        false => Ok(joined),
    }
}
