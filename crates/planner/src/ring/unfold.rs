//! How data spreads over a ring cut open, from one root, by radices.
//!
//! A holder serves a segment of ranks that contains it. On a level of radix q the segment is cut into
//! q parts of nearly equal length; the holder keeps the part in which it is, and a relay becomes the
//! holder of each other part. A holder stands where the middle part of the middle part ... of its
//! segment ends up, so that floor(q / 2) parts lie before it and ceil(q / 2) - 1 behind, on every level.

use std::ops::Range;

use crate::assembly::cut;
use opticoll_base::interrupt;

/// What a holder hands to a relay: all that is meant for a part.
pub(crate) struct Hand {
    /// The holder's place.
    pub(crate) from: u32,
    /// The relay's place.
    pub(crate) to: u32,
    /// The places of the part.
    pub(crate) part: Range<u32>,
}

/// Whether the radices cut so many ranks into single ones.
pub(crate) fn reaches(ranks: u32, radices: impl Iterator<Item = u32>) -> bool {
    radices.fold(ranks, |length, radix| length.div_ceil(radix.max(1))) <= 1
}

/// The holder of a segment that the radices will cut.
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

/// The hands of every level, over `ranks` places; the root's place is [`holder`] of all of them.
pub(crate) fn unfold(ranks: u32, radices: &[u32]) -> Vec<Vec<Hand>> {
    let mut segments = vec![(0..ranks, holder(0..ranks, radices))];
    let mut levels = Vec::with_capacity(radices.len());
    for (level, &radix) in radices.iter().enumerate() {
        let deeper = &radices[level + 1..];
        let (mut hands, mut parts) = (Vec::new(), Vec::new());
        for (range, from) in segments {
            interrupt::check();
            for part in cut(range, radix) {
                if part.contains(&from) {
                    parts.push((part, from));
                    continue;
                }
                let to = holder(part.clone(), deeper);
                parts.push((part.clone(), to));
                hands.push(Hand { from, to, part });
            }
        }
        levels.push(hands);
        segments = parts;
    }
    levels
}
