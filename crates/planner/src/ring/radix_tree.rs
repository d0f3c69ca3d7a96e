//! Radix tree that distributes data from a root to the ranks of a line (a ring that is cut open).
//!
//! Each segment of the line has a *head*: the rank of the segment that receives the data first. A
//! level of radix q cuts every segment into q parts of nearly equal length. The head of the segment
//! is also the head of its own part, and sends the data to the heads of the other parts. The head
//! of a segment lies in the middle part on every level: floor(q / 2) parts lie before the head's
//! part, and ceil(q / 2) - 1 parts lie behind.

use std::ops::Range;

use crate::building::assembly::cut;
use opticoll_base::interrupt;

/// Transfer from the head of a segment to the head of a part of this segment. (A head is the rank
/// that receives the data first.)
pub(crate) struct Handover {
    /// Position of the segment's head on the line.
    pub(crate) from: u32,
    /// Position of the part's head on the line.
    pub(crate) to: u32,
    /// Positions of all ranks of the part.
    pub(crate) part: Range<u32>,
}

/// Returns whether levels with the radices `radices` cut a line of `ranks` ranks into single ranks.
pub(crate) fn are_sufficient(ranks: u32, radices: impl Iterator<Item = u32>) -> bool {
    radices.fold(ranks, |length, radix| length.div_ceil(radix.max(1))) <= 1
}

/// Returns the position of the head of a segment: the rank that receives the data first. `radices`
/// lists the radix of each level that cuts the segment.
pub(crate) fn head(segment: Range<u32>, radices: &[u32]) -> u32 {
    let mut range = segment;
    for &radix in radices {
        let parts = radix.min(range.end - range.start).max(1);
        if let Some(middle) = cut(range.clone(), parts).nth((parts / 2) as usize) {
            range = middle;
        }
    }
    range.start + (range.end - range.start) / 2
}

/// Returns the transfers on a line of `ranks` ranks, indexed by level. The root of the tree is the
/// [`head`] of the whole line.
pub(crate) fn handovers_by_level(ranks: u32, radices: &[u32]) -> Vec<Vec<Handover>> {
    let mut segments = vec![(0..ranks, head(0..ranks, radices))];
    let mut handovers_by_level = Vec::with_capacity(radices.len());
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
                let to = head(part.clone(), deeper);
                parts.push((part.clone(), to));
                handovers.push(Handover { from, to, part });
            }
        }
        handovers_by_level.push(handovers);
        segments = parts;
    }
    handovers_by_level
}
