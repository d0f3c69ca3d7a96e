//! Which transfers are one light tree.
//!
//! Where ranks can take a share of passing light, what leaves a rank with the same chunks in one slot on one
//! channel of one direction is a single lightpath. It is up until its farthest drop
//! has everything, takes one transmitter, and a receiver at each drop. The farthest *leads*.

use super::block::MessageBlock;
use opticoll_plan::plan::Plan;

/// Gives the messages of a slot their leaders, with whose circuits they go; light is one where it agrees in
/// some bits.
pub(super) fn join(plan: &Plan, light: u32, block: &mut MessageBlock) {
    block.riders.clear();
    let mut drops = Vec::new();
    // Asking for a transfer checks for interrupts.
    for (place, hop, message, circuit) in block.iter() {
        let moved = plan.schedule.transfer(message.transfer as usize);
        let length: usize = circuit.lines.iter().map(|lines| lines.len()).sum();
        let tree = (hop.light.0 & light, hop.from, moved.chunk, moved.count);
        drops.push((tree, length, place));
    }
    drops.sort_unstable();
    for together in drops.chunk_by(|one, other| one.0 == other.0) {
        let [riders @ .., (_, _, leader)] = together else {
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
