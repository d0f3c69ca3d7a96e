//! Thread blocks for nodes with dependencies.
//!
//! The *clock* of a node has a counter for each thread block: the number of nodes of this thread
//! block that happen before the node. The node itself also counts. A node may join a thread block
//! if all nodes of the thread block happen before it.

use rustc_hash::FxHashMap;

use super::super::block_layout::{UnplacedInstruction, lay_out_blocks, wait_instruction};
use super::super::{Instruction, ThreadBlock};
use crate::chakra::{ChakraError, ChakraNode};
use opticoll_base::{graph, interrupt, memory};

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Step {
    /// Number that the trace gives to the thread block of the node.
    pub(super) label: Option<i128>,
    /// Other rank of the message that the node sends or receives.
    pub(super) peer: Option<u32>,
    pub(super) tag: u32,
    /// Instruction on chunks; `None` if the node only takes time.
    pub(super) instruction: Option<Instruction>,
}

/// Maximum number of dependencies of a node that only takes time. Nodes that wait for such a node
/// wait for its dependencies instead. If the node has more dependencies, it becomes an instruction
/// that waits.
const MAX_BYPASSED: usize = 16;

/// Returns the dependencies of each node, as indices of nodes in the file. Ignores dependencies on
/// nodes that the file does not have.
fn dependencies(nodes: &[ChakraNode]) -> Result<Vec<Vec<usize>>, ChakraError> {
    let mut indices: FxHashMap<u64, usize> = FxHashMap::default();
    for (index, node) in nodes.iter().enumerate() {
        if let Some(other) = indices.insert(node.id, index) {
            let record = nodes[other].record;
            return Err(node.error(format!("node {record} of the file has this number, too")));
        }
    }
    let each = nodes.iter().map(|node| {
        let ids = node.control.iter().chain(&node.data);
        let mut on: Vec<usize> = ids.filter_map(|id| indices.get(id).copied()).collect();
        on.sort_unstable();
        on.dedup();
        on
    });
    Ok(each.collect())
}

/// Returns all nodes, and the number of sorted nodes, which come first. Sorted nodes follow their
/// dependencies `on`, as close to the order of the file as possible. The other nodes are on cycles
/// or depend on cycles.
fn topological_order(on: &[Vec<usize>]) -> (Vec<usize>, usize) {
    let waits = |node: u32| on[node as usize].iter().map(|&earlier| earlier as u32);
    let order = graph::topological_order(on.len(), waits).into_iter();
    let mut order: Vec<usize> = order.map(|node| node as usize).collect();
    let sorted_count = order.len();
    let mut on_cycle = vec![true; on.len()];
    order.iter().for_each(|&node| on_cycle[node] = false);
    order.extend((0..on.len()).filter(|&node| on_cycle[node]));
    (order, sorted_count)
}

struct Block {
    sends_to: Option<u32>,
    receives_from: Option<u32>,
    channel: Option<u32>,
    nodes: Vec<usize>,
}

/// Connection of a message: true if the rank sends, the other rank, and the tag.
type Connection = (bool, u32, u32);

impl Block {
    /// Returns the connection on which the thread block sends. If it sends nothing, returns the
    /// connection on which it receives.
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
/// The function first tries thread blocks that send to one rank and receive from another, as
/// runtimes use them. If dependencies do not order the nodes of such thread blocks, each connection
/// gets a thread block of its own.
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
        (0, thread_block, block.nodes)
    });
    Ok(lay_out_blocks(&instructions, blocks.collect()))
}

/// Nodes of each thread block, and the nodes for which each node with an instruction waits.
struct Joined {
    blocks: Vec<Block>,
    waits_for: Vec<Vec<usize>>,
}

/// Assigns nodes to thread blocks. If `shared` is true, a thread block may have one connection to
/// send and one to receive; otherwise it has only one connection. Returns the result as an error if
/// two thread blocks have the same connection, because the order of messages on the connection is
/// then unknown.
fn join(
    steps: &[Step],
    on: &[Vec<usize>],
    (order, sorted_count): &(Vec<usize>, usize),
    shared: bool,
) -> Result<Joined, Joined> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut connection_blocks: FxHashMap<Connection, usize> = FxHashMap::default();
    let mut label_blocks: FxHashMap<i128, usize> = FxHashMap::default();
    let mut clocks: Vec<Vec<u32>> = vec![Vec::new(); steps.len()];
    let mut block_of = vec![usize::MAX; steps.len()];
    let mut waits_for: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    let mut is_bypassed = vec![false; steps.len()];
    let mut is_ambiguous = false;
    for (index, &node) in order.iter().enumerate() {
        interrupt::check();
        let on_cycle = index >= *sorted_count;
        let mut waits: Vec<usize> = Vec::new();
        for &earlier in &on[node] {
            match is_bypassed[earlier] {
                true => waits.extend_from_slice(&waits_for[earlier]),
                false => waits.push(earlier),
            }
        }
        waits.sort_unstable();
        waits.dedup();
        let step = &steps[node];
        let only_waits = step.instruction.is_none();
        is_bypassed[node] = only_waits && !on_cycle && waits.len() <= MAX_BYPASSED;
        if is_bypassed[node] {
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
        let chosen = match known {
            _ if on_cycle => None,
            Some(block) => Some(block).filter(joins),
            // A node without the label could come between messages of a labelled thread block,
            // which would then have no defined order.
            None if step.label.is_some() => labelled.filter(joins),
            None => nearest.find(|block| *block != usize::MAX && joins(block)),
        };
        is_ambiguous |= known.is_some() && chosen.is_none() && !on_cycle;
        let block = chosen.unwrap_or_else(|| {
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
