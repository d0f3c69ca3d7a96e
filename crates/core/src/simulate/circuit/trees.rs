//! Which transfers are one light tree.
//!
//! Where ranks can take a share of passing light, the copies of the same chunks that leave a rank in
//! one slot on one channel of one direction are a single lightpath. It is up until its farthest drop
//! has everything, takes one transmitter, and a receiver at each drop. The farthest *leads*.

use super::block::MessageBlock;
use crate::plan::Plan;
use crate::schedule::Action;

/// Gives the messages of a slot their leaders, with whose circuits they go; light is one where it agrees in
/// some bits.
pub(super) fn join(plan: &Plan, light: u32, block: &mut MessageBlock) {
    block.riders.clear();
    let mut copies = Vec::new();
    // Asking for a transfer checks for interrupts.
    for (place, hop, message, circuit) in block.iter() {
        let moved = plan.schedule.transfer(message.transfer as usize);
        if moved.action == Action::Copy {
            let length: usize = circuit.lines.iter().map(|lines| lines.len()).sum();
            let tree = (hop.light.0 & light, hop.from, moved.chunk, moved.count);
            copies.push((tree, length, place));
        }
    }
    copies.sort_unstable();
    for together in copies.chunk_by(|one, other| one.0 == other.0) {
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
