//! Radix tree that spreads data from one root over a ring that is cut open.
//!
//! A *holder* serves a segment of ranks that contains the holder. A level of radix q cuts the
//! segment into q parts of nearly equal length. The holder keeps the part that contains it; in each
//! other part a relay becomes the holder. Repeatedly taking the middle part of the segment leads to
//! its holder, so that on every level floor(q / 2) parts lie before the holder's part and
//! ceil(q / 2) - 1 parts behind.

use std::ops::Range;

use crate::building::assembly::cut;
use opticoll_base::interrupt;

/// Transfer from a holder to a relay of all data for the relay's part.
pub(crate) struct Handover {
    /// Position of the holder.
    pub(crate) from: u32,
    /// Position of the relay.
    pub(crate) to: u32,
    /// Positions of the part.
    pub(crate) part: Range<u32>,
}

/// Returns whether the radices cut `ranks` ranks into single ranks.
pub(crate) fn are_sufficient(ranks: u32, radices: impl Iterator<Item = u32>) -> bool {
    radices.fold(ranks, |length, radix| length.div_ceil(radix.max(1))) <= 1
}

/// Returns the holder of a segment that the radices will cut.
pub(crate) fn holder(range: Range<u32>, radices: &[u32]) -> u32 {
    let mut range = range;
    for &radix in radices {
        let parts = radix.min(range.end - range.start).max(1);
        if let Some(middle) = cut(range.clone(), parts).nth((parts / 2) as usize) {
            range = middle;
        }
    }
    range.start + (range.end - range.start) / 2
}

/// Returns the transfers of every level over `ranks` positions. The root is at position [`holder`]
/// of all positions.
pub(crate) fn handovers_by_level(ranks: u32, radices: &[u32]) -> Vec<Vec<Handover>> {
    let mut segments = vec![(0..ranks, holder(0..ranks, radices))];
    let mut handovers_of_levels = Vec::with_capacity(radices.len());
    for (level, &radix) in radices.iter().enumerate() {
        let deeper = &radices[level + 1..];
        let (mut handovers, mut parts) = (Vec::new(), Vec::new());
        for (range, from) in segments {
            interrupt::check();
            for part in cut(range, radix) {
                if part.contains(&from) {
                    parts.push((part, from));
                    continue;
                }
                let to = holder(part.clone(), deeper);
                parts.push((part.clone(), to));
                handovers.push(Handover { from, to, part });
            }
        }
        handovers_of_levels.push(handovers);
        segments = parts;
    }
    handovers_of_levels
}
