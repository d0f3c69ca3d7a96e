//! Messages beside the circuits, over a network whose port the messages of a rank share.

use rustc_hash::FxHashMap;

use super::block::MessageBlock;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::{Light, Transmission};

/// Lets each message of a slot take as long as all bytes that its rank sends there, or the other receives.
///
/// # Errors
/// A time beyond 64 bits.
pub(super) fn share(
    (light, transmission): (Light, Transmission),
    block: &mut MessageBlock,
) -> Result<(), UnitError> {
    // By way (0 out, 1 in) and rank. Looked up only.
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
        let most = ends(place).map(|end| shared[&end]);
        let together = transmission.time(most[0].max(most[1]))?;
        let own = block.messages[place].sending;
        let delay = &mut block.circuits[place].delay;
        *delay = delay.plus(Time::from_ps(together.ps() - own.ps()))?;
    }
    Ok(())
}
