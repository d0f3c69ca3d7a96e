//! Light trees: transfers that share the light of one lightpath.
//!
//! On some fabrics, ranks can take a share of passing light. Transfers that send the same chunks
//! from one rank, in one slot and on one light, then form a single lightpath, the light tree. If
//! light may branch, the transfers of a tree leave their source over the same link. The tree is up
//! until each of its ranks has received all bytes, at the rate of its slowest circuit. The tree
//! uses one transmitter, and one receiver at each of its destinations. The message with the longest
//! circuit is the *leader* of the tree, and the other messages are its *riders*.

use super::block::MessageBlock;
use opticoll_base::units::Time;
use opticoll_fabric::fabric::Light;
use opticoll_fabric::fabric::circuits::{Circuit, LineRanges};
use opticoll_plan::plan::Plan;

/// Forms the light trees of a slot: sets the leader and the riders of each tree, and gives all
/// messages the circuit of the tree. The messages of a tree have lights that agree in the bits of
/// the mask `light`. If `branches`, the circuits of a tree have the same first line, and the
/// circuit of the tree has the lines of all of them. Messages with the light `packet` use the side
/// network and are in no tree.
pub(super) fn join(
    plan: &Plan,
    (light, branches): (u32, bool),
    packet: Option<Light>,
    block: &mut MessageBlock,
) {
    block.riders.clear();
    let mut drops = Vec::new();
    // `transfer` checks for interrupts.
    for (index, hop, message, circuit) in block.iter() {
        if Some(hop.light) == packet {
            continue;
        }
        let moved = plan.schedule.transfer(message.transfer as usize);
        let length: usize = circuit.lines.line_ranges().map(|lines| lines.len()).sum();
        let first_line = branches.then(|| circuit.lines.first_line()).flatten();
        let tree = (
            hop.light.0 & light,
            hop.from,
            moved.chunk,
            moved.count,
            first_line,
        );
        drops.push((tree, length, index));
    }
    drops.sort_unstable();
    for members in drops.chunk_by(|one, other| one.0 == other.0) {
        let [riders @ .., (_, _, leader)] = members else {
            continue;
        };
        if riders.is_empty() {
            continue;
        }
        let indices = || members.iter().map(|&(_, _, index)| index as usize);
        let circuits = || indices().map(|index| &block.circuits[index]);
        let circuit = Circuit {
            delay: circuits()
                .map(|circuit| circuit.delay)
                .max()
                .unwrap_or(Time::ZERO),
            lines: match branches {
                true => union(circuits()),
                false => block.circuits[*leader as usize].lines.clone(),
            },
        };
        let sending = indices()
            .map(|index| block.messages[index].sending)
            .max()
            .unwrap_or(Time::ZERO);
        for &(_, _, member) in members {
            block.messages[member as usize].leader = *leader;
            block.messages[member as usize].sending = sending;
            block.circuits[member as usize] = circuit.clone();
        }
        let pairs = riders.iter().map(|&(_, _, rider)| (*leader, rider));
        block.riders.extend(pairs);
    }
    block.riders.sort_by_key(|&(leader, _)| leader);
}

/// Returns the lines of several circuits, each line once.
fn union<'a>(circuits: impl Iterator<Item = &'a Circuit>) -> LineRanges {
    let ranges = circuits.flat_map(|circuit| circuit.lines.line_ranges());
    let mut lines: Vec<u32> = ranges.flat_map(|lines| lines.clone()).collect();
    lines.sort_unstable();
    lines.dedup();
    lines.into_iter().collect()
}
