//! What a scatter sends behind a cut, and a gather fetches from there: the |I| blocks of the ranks
//! between the cut and the root go over the c channels of one direction alone (theorem R3).

use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::{Collective, CollectiveKind};

/// The most ranks whose blocks go over the channels of one direction.
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
            // From the rank after the cut to the one before the root.
            true => (root + 2 * ranks - link.position - 1) % ranks,
            // From the rank after the root to the one before the cut.
            false => (link.position + ranks - root) % ranks,
        }
    });
    behind.max().unwrap_or(0).into()
}
