//! Bound of a scatter or gather on a ring with a broken link. The blocks of the |I| ranks between
//! the broken link and the root use only the c channels of one direction (theorem R3).

use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Returns the greatest number of ranks whose blocks can use only the channels of one direction.
/// Returns 0 for collectives other than scatter and gather.
pub(super) fn ranks(ring: &WdmRing, collective: &Collective) -> u64 {
    let (ranks, root) = (ring.ranks, collective.root());
    let scatters = match collective.kind() {
        CollectiveKind::Scatter => true,
        CollectiveKind::Gather => false,
        _ => return 0,
    };
    let ranks_behind = ring.broken.iter().map(|link| {
        let clockwise = link.direction == Direction::Clockwise;
        match clockwise == scatters {
            // From the rank after the broken link to the rank before the root.
            true => (root + 2 * ranks - link.position - 1) % ranks,
            // From the rank after the root to the rank before the broken link.
            false => (link.position + ranks - root) % ranks,
        }
    });
    ranks_behind.max().unwrap_or(0).into()
}
