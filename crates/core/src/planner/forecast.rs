//! The memory that planning takes, forecast before it begins.

use super::prices;
use crate::fabric::WdmRing;
use crate::memory;

/// Refuses a search of relay trees that needs more memory than there is.
///
/// A rank receives no more blocks in a slot than there are channels on both sides of it, so that a tree has at
/// least (N - 1) / 2c steps, and its tables an entry for each step and number of ranks.
pub(super) fn check(ring: &WdmRing) {
    let others = ring.ranks.saturating_sub(1);
    let steps = others.div_ceil(2 * ring.channels().max(1));
    let bytes = prices::table_bytes(steps as usize, others as usize, 0);
    memory::take("the search of a relay tree", bytes);
}
