//! From nodes with dependencies to thread blocks.
//!
//! The clock of a node says of each thread block how many of its nodes happen before the node or are it. A node may
//! join a thread block if all of its nodes happen before.

use rustc_hash::FxHashMap;

use super::super::lay_out::{Unplaced, lay_out};
use super::super::{ChunkBuffer, Instruction, Operand, Operation, ThreadBlock};
use crate::chakra::{ChakraError, ChakraNode};
use opticoll_base::{graph, interrupt, memory};

/// What a node does.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Step {
    /// The thread block that the trace names.
    pub(super) label: Option<i128>,
    /// The other rank of a message.
    pub(super) peer: Option<u32>,
    pub(super) tag: u32,
    /// What it does with chunks; nothing for what only takes time.
    pub(super) instruction: Option<Instruction>,
}

/// Dependencies of a node that only takes time, at most, that are handed on to those that wait for it. One with more
/// becomes an instruction that waits.
const MOST_HANDED_ON: usize = 16;

/// Dependencies by places in the file; those on nodes that are not there are left out.
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

/// The nodes in an order that respects dependencies, as near to that of the file as can be, and how many these are;
/// those on circles come last.
fn ordered(on: &[Vec<usize>]) -> (Vec<usize>, usize) {
    let waits = |node: u32| on[node as usize].iter().map(|&earlier| earlier as u32);
    let order = graph::topological_order(on.len(), waits).into_iter();
    let mut order: Vec<usize> = order.map(|node| node as usize).collect();
    let sorted = order.len();
    let mut on_circle = vec![true; on.len()];
    order.iter().for_each(|&node| on_circle[node] = false);
    order.extend((0..on.len()).filter(|&node| on_circle[node]));
    (order, sorted)
}

/// A thread block that is being filled.
struct Block {
    sends_to: Option<u32>,
    receives_from: Option<u32>,
    channel: Option<u32>,
    nodes: Vec<usize>,
}

/// Whether a message leaves, the other rank, and the tag.
type Connection = (bool, u32, u32);

impl Block {
    /// What it sends to, or else receives from.
    fn connection(&self) -> Option<Connection> {
        let sends = self.sends_to.map(|peer| (true, peer));
        let (sends, peer) = sends.or(self.receives_from.map(|peer| (false, peer)))?;
        Some((sends, peer, self.channel?))
    }

    fn takes(&self, connection: Option<Connection>, shared: bool) -> bool {
        if !shared && self.connection() != connection {
            return false;
        }
        connection.is_none_or(|(sends, peer, tag)| {
            let own = if sends {
                self.sends_to
            } else {
                self.receives_from
            };
            own.is_none_or(|own| own == peer) && self.channel.is_none_or(|own| own == tag)
        })
    }
}

/// The thread blocks of a rank.
///
/// Thread blocks that send to a rank and receive from another are tried first, as runtimes have them. Where their
/// nodes have no order among one another, each connection has a thread block of its own.
pub(super) fn blocks_of(
    nodes: &[ChakraNode],
    steps: &[Step],
) -> Result<Vec<ThreadBlock>, ChakraError> {
    let on = dependencies(nodes)?;
    let order = ordered(&on);
    let Joined { blocks, waits_for } = match join(steps, &on, &order, true) {
        Ok(joined) => joined,
        Err(_) => match join(steps, &on, &order, false) {
            Ok(joined) | Err(joined) => joined,
        },
    };
    let nowhere = Operand {
        buffer: ChunkBuffer::Input,
        offset: 0,
    };
    let all = nodes.iter().zip(steps).zip(waits_for);
    let all: Vec<Unplaced> = all
        .map(|((node, step), waits_for)| Unplaced {
            instruction: step.instruction.unwrap_or(Instruction {
                operation: Operation::Nop,
                source: nowhere,
                destination: nowhere,
                count: 0,
                waits_for: None,
                signals: false,
                sent_in: None,
                line: node.record,
            }),
            waits_for,
        })
        .collect();
    let blocks = blocks.into_iter().map(|block| {
        let own = ThreadBlock {
            sends_to: block.sends_to,
            receives_from: block.receives_from,
            channel: block.channel.unwrap_or(0),
            instructions: Vec::new(),
        };
        (own, block.nodes)
    });
    Ok(lay_out(&all, blocks.collect()))
}

/// Nodes by thread block, and what each node waits for, of nodes that have instructions.
struct Joined {
    blocks: Vec<Block>,
    waits_for: Vec<Vec<usize>>,
}

/// Puts nodes into thread blocks: each of one connection, or, if they may be `shared`, of one of each kind. An error
/// where two thread blocks have the same connection, since no order is known among their nodes.
fn join(
    steps: &[Step],
    on: &[Vec<usize>],
    (order, sorted): &(Vec<usize>, usize),
    shared: bool,
) -> Result<Joined, Joined> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut of_connection: FxHashMap<Connection, usize> = FxHashMap::default();
    let mut of_label: FxHashMap<i128, usize> = FxHashMap::default();
    let mut clocks: Vec<Vec<u32>> = vec![Vec::new(); steps.len()];
    let mut block_of = vec![usize::MAX; steps.len()];
    let mut waits_for: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    let mut handed_on = vec![false; steps.len()];
    let mut open = false;
    for (place, &node) in order.iter().enumerate() {
        interrupt::check();
        let on_circle = place >= *sorted;
        let mut waits: Vec<usize> = Vec::new();
        for &earlier in &on[node] {
            match handed_on[earlier] {
                true => waits.extend_from_slice(&waits_for[earlier]),
                false => waits.push(earlier),
            }
        }
        waits.sort_unstable();
        waits.dedup();
        let step = &steps[node];
        let idle = step.instruction.is_none();
        handed_on[node] = idle && !on_circle && waits.len() <= MOST_HANDED_ON;
        if handed_on[node] {
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
        let connection = connection.map(|(one, peer)| (one.operation.sends(), peer, step.tag));
        let behind = |block: usize| clock[block] as usize == blocks[block].nodes.len();
        let joins = |&block: &usize| blocks[block].takes(connection, shared) && behind(block);
        let known = connection.and_then(|connection| of_connection.get(&connection).copied());
        let labelled = step.label.and_then(|label| of_label.get(&label).copied());
        let mut nearest = waits.iter().rev().map(|&earlier| block_of[earlier]);
        let found = match known {
            _ if on_circle => None,
            Some(block) => Some(block).filter(joins),
            // A stranger to a named thread block could come between its messages, which then had no order.
            None if step.label.is_some() => labelled.filter(joins),
            None => nearest.find(|block| *block != usize::MAX && joins(block)),
        };
        open |= known.is_some() && found.is_none() && !on_circle;
        let block = found.unwrap_or_else(|| {
            blocks.push(Block {
                sends_to: None,
                receives_from: None,
                channel: None,
                nodes: Vec::new(),
            });
            let bytes = 4 * blocks.len() as u64 * steps.len() as u64;
            memory::take("the thread blocks of this trace", bytes);
            blocks.len() - 1
        });
        let own = &mut blocks[block];
        if let Some(connection @ (sends, peer, tag)) = connection {
            match sends {
                true => own.sends_to = Some(peer),
                false => own.receives_from = Some(peer),
            }
            own.channel = Some(tag);
            of_connection.insert(connection, block);
        }
        own.nodes.push(node);
        clock.resize(blocks.len(), 0);
        clock[block] = blocks[block].nodes.len() as u32;
        clocks[node] = clock;
        block_of[node] = block;
        waits_for[node] = waits;
        if let Some(label) = step.label {
            of_label.insert(label, block);
        }
    }
    let joined = Joined { blocks, waits_for };
    if open { Err(joined) } else { Ok(joined) }
}
