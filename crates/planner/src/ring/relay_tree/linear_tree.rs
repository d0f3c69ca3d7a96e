//! Relay tree for very large rings, built slot by slot in linear time without a search.
//!
//! In each direction, the *front* is the farthest rank that has the block. In every slot, both
//! fronts (clockwise and counter-clockwise) send a lightpath of several links. The receiver of the
//! lightpath is the next front. A lightpath of l links leaves a gap of l - 1 ranks without the
//! block. Lightpaths of one link fill the gap later, from both ends. An advance by l links thus
//! uses 2 l - 1 channels in total, over several slots. With c channels per direction, a front can
//! advance by a = (c + 1) / 2 links in every slot. The *usual* length is the greatest length up to
//! a that divides N.
//!
//! If there are too few gaps to use all channels, a front advances by the longest possible
//! lightpath, because the long gap uses free channels later. After the fronts have met, free
//! channels are used for longer lightpaths that split the gaps.
//!
//! At the end, each rank except the root has received the block over one lightpath. The sender of
//! the lightpath had the block before the slot. No slot uses more than c channels of a direction.
//! Time and memory are linear in N.

use super::tree::TreeEdge;
use opticoll_base::interrupt;

/// Gap: a run of consecutive ranks that do not have the block yet.
#[derive(Debug, Clone, Copy)]
struct OpenGap {
    /// Rank before the gap, which has the block.
    start: u32,
    size: u32,
}

/// Tree that is built slot by slot. In each direction, the *front* is the farthest rank that has
/// the block.
struct FrontTree<'a> {
    ranks: u32,
    channels: u32,
    /// Lengths that lightpaths may have, in links, ascending from 1. Each length divides `ranks`.
    lengths: &'a [u32],
    /// Number of links of a front's lightpath, if there are enough gaps.
    usual_length: u32,
    slot: u32,
    /// Gap between the clockwise and the counter-clockwise front.
    ahead: OpenGap,
    /// Gaps between the root and the fronts, in the order in which they were opened.
    behind: Vec<OpenGap>,
    /// Number of free channels in the current slot: first clockwise, then counter-clockwise.
    unused: [u32; 2],
    /// Number of gaps behind the fronts below which the fronts' lightpaths exceed the usual length.
    sufficient_gaps: usize,
    edges: Vec<TreeEdge>,
}

/// Builds the tree with the fewest slots. Returns the edges in the order of their slots, and the
/// number of slots. `lengths` are the possible lengths of lightpaths in links, ascending from 1.
pub(crate) fn build(ranks: u32, channels: u32, lengths: &[u32]) -> (Vec<TreeEdge>, u32) {
    let gaps = [channels, channels + channels / 2, 2 * channels];
    let [one, two, three] = gaps.map(|gaps| with_gaps(ranks, channels, lengths, gaps as usize));
    let shorter = |best: (Vec<TreeEdge>, u32), other: (Vec<TreeEdge>, u32)| {
        if other.1 < best.1 { other } else { best }
    };
    shorter(shorter(one, two), three)
}

/// Builds a tree. While there are fewer than `sufficient_gaps` gaps behind the fronts, the fronts
/// send the longest possible lightpaths. Returns the edges in the order of their slots, and the
/// number of slots.
fn with_gaps(
    ranks: u32,
    channels: u32,
    lengths: &[u32],
    sufficient_gaps: usize,
) -> (Vec<TreeEdge>, u32) {
    let usual = lengths.iter().rfind(|&&length| 2 * length <= channels + 1);
    let mut tree = FrontTree {
        ranks,
        channels,
        lengths,
        usual_length: usual.copied().unwrap_or(1),
        slot: 0,
        ahead: OpenGap {
            start: 0,
            size: ranks - 1,
        },
        behind: Vec::new(),
        unused: [0; 2],
        sufficient_gaps,
        edges: Vec::with_capacity(ranks as usize - 1),
    };
    while tree.ahead.size > 0 || !tree.behind.is_empty() {
        interrupt::check();
        tree.add_slot();
    }
    (tree.edges, tree.slot)
}

impl FrontTree<'_> {
    fn add_slot(&mut self) {
        self.unused = [self.channels; 2];
        // Gaps that open in this slot are filled from the next slot on.
        let mut opened = Vec::with_capacity(2);
        for clockwise in [true, false] {
            opened.extend(self.advance(clockwise));
        }
        let have_met = self.ahead.size < self.usual_length;
        self.fill(have_met);
        if have_met && self.ahead.size > 0 {
            opened.push(self.ahead);
            self.ahead.size = 0;
        }
        opened.retain(|gap| gap.size > 0);
        self.behind.append(&mut opened);
        self.slot += 1;
    }

    /// Sends a lightpath from the front of a direction, and returns the gap between this front and
    /// the receiver. Returns `None` and sends nothing if the fronts have met.
    fn advance(&mut self, clockwise: bool) -> Option<OpenGap> {
        if self.ahead.size < self.usual_length {
            return None;
        }
        let limit = match self.behind.len() < self.sufficient_gaps {
            true => self.ahead.size.min(self.channels),
            false => self.usual_length,
        };
        let length = self.longest(limit);
        let OpenGap { start, size } = self.ahead;
        let end = start + size + 1;
        let (parent, behind) = match clockwise {
            true => (start, start),
            false => (end, end - length),
        };
        self.send(parent, length, clockwise);
        self.ahead.size -= length;
        if clockwise {
            self.ahead.start += length;
        }
        Some(OpenGap {
            start: behind,
            size: length - 1,
        })
    }

    /// Adds lightpaths from both ends of each gap behind the fronts, while channels are free. If
    /// `can_split` is false, the lightpaths have one link.
    fn fill(&mut self, can_split: bool) {
        let mut gaps = std::mem::take(&mut self.behind);
        let mut parts = Vec::new();
        let open = u32::try_from(gaps.len()).unwrap_or(u32::MAX);
        let mut spare = self.unused.map(|unused| unused.saturating_sub(open));
        for gap in &mut gaps {
            if self.unused == [0; 2] {
                break;
            }
            interrupt::check();
            for clockwise in [true, false] {
                let direction = usize::from(!clockwise);
                if gap.size == 0 || self.unused[direction] == 0 {
                    continue;
                }
                let length = match can_split {
                    true => self.longest(gap.size.div_ceil(2).min(spare[direction] + 1)),
                    false => 1,
                };
                spare[direction] -= (length - 1).min(spare[direction]);
                let end = gap.start + gap.size + 1;
                self.send(if clockwise { gap.start } else { end }, length, clockwise);
                // The other end of the gap sends into the longer part.
                parts.push(OpenGap {
                    start: if clockwise { gap.start } else { end - length },
                    size: length - 1,
                });
                gap.size -= length;
                if clockwise {
                    gap.start += length;
                }
            }
        }
        gaps.append(&mut parts);
        gaps.retain(|gap| gap.size > 0);
        self.behind = gaps;
    }

    /// Returns the greatest length in `lengths` that is at most `limit` links.
    fn longest(&self, limit: u32) -> u32 {
        let longest = self.lengths.iter().rfind(|&&length| length <= limit);
        longest.copied().unwrap_or(1)
    }

    fn send(&mut self, parent: u32, length: u32, clockwise: bool) {
        self.unused[usize::from(!clockwise)] -= length;
        self.edges.push(TreeEdge {
            parent: parent % self.ranks,
            length,
            clockwise,
            slot: self.slot,
            piece: 0,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_reach_every_rank_within_the_channels() {
        for (ranks, channels) in [
            (2, 1),
            (3, 1),
            (7, 4),
            (64, 5),
            (360, 16),
            (1000, 64),
            (4096, 64),
        ] {
            let lengths: Vec<u32> = (1..=channels.min(ranks / 2).max(1))
                .filter(|length| ranks % length == 0)
                .collect();
            let (edges, slots) = build(ranks, channels, &lengths);
            assert_eq!(edges.len() as u32, ranks - 1);
            let mut reached = vec![None; ranks as usize];
            let mut used = vec![[0; 2]; slots as usize];
            reached[0] = Some(0);
            for edge in &edges {
                let since = reached[edge.parent as usize];
                assert!(since.is_some_and(|since| since <= edge.slot), "{edge:?}");
                let child = &mut reached[edge.child(ranks) as usize];
                assert_eq!(child.replace(edge.slot + 1), None, "{edge:?}");
                used[edge.slot as usize][usize::from(edge.clockwise)] += edge.length;
            }
            assert!(used.iter().flatten().all(|&used| used <= channels));
            assert!(edges.windows(2).all(|pair| pair[0].slot <= pair[1].slot));
        }
    }
}
