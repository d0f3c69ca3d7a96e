//! Light trees: transfers that share the light of one lightpath.
//!
//! On some fabrics, ranks can take a share of passing light. Transfers that send the same chunks
//! from one rank, in one slot and on one channel of one direction, then form a single lightpath,
//! the light tree. The tree is up until its farthest rank has received all bytes. The tree uses one
//! transmitter, and one receiver at each of its destinations. The message to the farthest
//! destination is the *leader* of the tree, and the other messages are its *riders*.

use super::block::MessageBlock;
use opticoll_plan::plan::Plan;

/// Forms the light trees of a slot: sets the leader and the riders of each tree, and gives the
/// riders the leader's circuit. The messages of a tree have lights that agree in the bits of the
/// mask `light`.
pub(super) fn join(plan: &Plan, light: u32, block: &mut MessageBlock) {
    block.riders.clear();
    let mut drops = Vec::new();
    // `transfer` checks for interrupts.
    for (index, hop, message, circuit) in block.iter() {
        let moved = plan.schedule.transfer(message.transfer as usize);
        let length: usize = circuit.lines.iter().map(|lines| lines.len()).sum();
        let tree = (hop.light.0 & light, hop.from, moved.chunk, moved.count);
        drops.push((tree, length, index));
    }
    drops.sort_unstable();
    for members in drops.chunk_by(|one, other| one.0 == other.0) {
        let [riders @ .., (_, _, leader)] = members else {
            continue;
        };
        for &(_, _, rider) in riders {
            block.riders.push((*leader, rider));
            block.messages[rider as usize].leader = *leader;
            block.circuits[rider as usize] = block.circuits[*leader as usize].clone();
        }
    }
    block.riders.sort_by_key(|&(leader, _)| leader);
}
