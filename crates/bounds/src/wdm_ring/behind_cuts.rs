//! Bound of a scatter or gather over a broken link: the |I| blocks of the ranks between the broken
//! link and the root use the c channels of one direction alone (theorem R3).

use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Returns |I|, the greatest number of ranks whose blocks use the channels of one direction alone;
/// 0 for other collectives.
pub(super) fn ranks(ring: &WdmRing, collective: &Collective) -> u64 {
    let (ranks, root) = (ring.ranks, collective.root());
    let scatters = match collective.kind() {
        CollectiveKind::Scatter => true,
        CollectiveKind::Gather => false,
        _ => return 0,
    };
    let behind = ring.broken.iter().map(|link| {
        let clockwise = link.direction == Direction::Clockwise;
        match clockwise == scatters {
            // From the rank after the broken link to the rank before the root.
            true => (root + 2 * ranks - link.position - 1) % ranks,
            // From the rank after the root to the rank before the broken link.
            false => (link.position + ranks - root) % ranks,
        }
    });
    behind.max().unwrap_or(0).into()
}
