//! Light trees: transfers that share the light of one lightpath.
//!
//! If ranks can take a share of passing light, the transfers that leave a rank with the same
//! chunks, in one slot and on one channel of one direction, form a single lightpath. This light
//! tree is up until its farthest drop has received all bytes. It uses one transmitter, and one
//! receiver at each drop. The message to the farthest drop is the *leader*, the other messages are
//! its *riders*.

use super::block::MessageBlock;
use opticoll_plan::plan::Plan;

/// Sets the leaders and riders of a slot's messages; riders get the circuit of their leader. Two
/// lights belong to one tree if they agree in the bits of the mask `light`.
pub(super) fn join(plan: &Plan, light: u32, block: &mut MessageBlock) {
    block.riders.clear();
    let mut drops = Vec::new();
    // `transfer` checks for interrupts.
    for (place, hop, message, circuit) in block.iter() {
        let moved = plan.schedule.transfer(message.transfer as usize);
        let length: usize = circuit.lines.iter().map(|lines| lines.len()).sum();
        let tree = (hop.light.0 & light, hop.from, moved.chunk, moved.count);
        drops.push((tree, length, place));
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
