//! What a scatter sends behind a cut, and a gather fetches from there.
//!
//! Let the clockwise link from rank q to q + 1 be cut, and let I be the ranks q + 1, ..., root - 1. What goes
//! from the root to I enters over the counter-clockwise link from the root to root - 1 alone: |I| blocks over c
//! channels, in whatever order and over whatever relays. With a counter-clockwise cut between q and q + 1 it is
//! the same of root + 1, ..., q. Backwards the same holds for what goes from I to the root of a gather. A slot takes c
//! chunks: S >= ceil(P |I| / c), and T >= |I| d / (c B).

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
