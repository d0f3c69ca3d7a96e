//! Messages over the side network, an additional network without circuits. The messages of a rank
//! share the rank's port of this network.

use rustc_hash::FxHashMap;

use super::block::MessageBlock;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::{Light, Transmission};

/// Delays the messages over the side network: each ends when the ports of its source and its
/// destination have sent and received all their bytes of the slot.
pub(super) fn share(
    (light, transmission): (Light, Transmission),
    block: &mut MessageBlock,
) -> Result<(), UnitError> {
    // Bytes of each port, by direction (0 for sending, 1 for receiving) and rank. Never iterated.
    let mut port_bytes: FxHashMap<(usize, u32), Bytes> = FxHashMap::default();
    let messages = || (0..block.hops.len()).filter(|index| block.hops[*index].light == light);
    let ends = |index: usize| [(0, block.hops[index].from), (1, block.hops[index].to)];
    for index in messages() {
        for end in ends(index) {
            let bytes = port_bytes.entry(end).or_default();
            *bytes = bytes.plus(block.messages[index].bytes)?;
        }
    }
    for index in messages() {
        let bytes = ends(index).map(|end| port_bytes[&end]);
        let port_time = transmission.time(bytes[0].max(bytes[1]))?;
        let sending = block.messages[index].sending;
        let delay = &mut block.circuits[index].delay;
        *delay = delay.plus(Time::from_ps(port_time.ps() - sending.ps()))?;
    }
    Ok(())
}
