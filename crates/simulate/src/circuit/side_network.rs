//! Messages over a network beside the circuits, in which the messages of a rank share its port.

use rustc_hash::FxHashMap;

use super::block::MessageBlock;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::{Light, Transmission};

/// Delays each such message of a slot until the port has sent (or received) all bytes of its source
/// (or destination) in the slot.
///
/// # Errors
/// A time that exceeds 64 bits.
pub(super) fn share(
    (light, transmission): (Light, Transmission),
    block: &mut MessageBlock,
) -> Result<(), UnitError> {
    // Keyed by direction (0 out, 1 in) and rank. Never iterated.
    let mut shared: FxHashMap<(usize, u32), Bytes> = FxHashMap::default();
    let messages = || (0..block.hops.len()).filter(|place| block.hops[*place].light == light);
    let ends = |place: usize| [(0, block.hops[place].from), (1, block.hops[place].to)];
    for place in messages() {
        for end in ends(place) {
            let bytes = shared.entry(end).or_default();
            *bytes = bytes.plus(block.messages[place].bytes)?;
        }
    }
    for place in messages() {
        let bytes = ends(place).map(|end| shared[&end]);
        let port_time = transmission.time(bytes[0].max(bytes[1]))?;
        let sending = block.messages[place].sending;
        let delay = &mut block.circuits[place].delay;
        *delay = delay.plus(Time::from_ps(port_time.ps() - sending.ps()))?;
    }
    Ok(())
}
