//! Relay tree for very many ranks, built slot by slot in linear time, without a table of prices.
//!
//! Two *fronts* leave the root, one in each direction, and advance in every slot by a lightpath of
//! several links. A front that advances by l links leaves a gap of l - 1 ranks behind, which
//! lightpaths of one link fill later, from both ends. An advance by l links thus uses 2 l - 1
//! channels in total, over several slots. With c channels per direction, a front can advance by
//! a = (c + 1) / 2 links in every slot; the greatest length up to a that divides N is the *usual*
//! length. While too few gaps are open to keep all channels busy, the front advances by the longest
//! possible lightpath: this costs hardly more, and the gap behind it fills the channels later. Once
//! the fronts have met, unused channels split the gaps.
//!
//! At the end all ranks but the root have received the block over one lightpath each, whose sender
//! had it before the slot. No slot has more than c channels in a direction. Time and memory are
//! linear in N.

use super::tree::TreeEdge;
use opticoll_base::interrupt;

/// Gap behind a front, or between both fronts: `size` ranks without the block after the rank
/// `start`, which has it.
#[derive(Debug, Clone, Copy)]
struct OpenGap {
    start: u32,
    size: u32,
}

/// Tree that grows slot by slot.
struct FrontTree<'a> {
    ranks: u32,
    channels: u32,
    /// Lengths that lightpaths may have, in links, ascending from 1; each divides the number of
    /// ranks.
    lengths: &'a [u32],
    /// Links by which a front advances in a slot if enough gaps are open.
    usual: u32,
    slot: u32,
    /// Gap between the fronts.
    ahead: OpenGap,
    /// Gaps behind the fronts, in the order in which they were opened.
    behind: Vec<OpenGap>,
    /// Unused channels of the slot, clockwise and counter-clockwise.
    unused: [u32; 2],
    /// Number of open gaps that keeps all channels busy.
    sufficient_gaps: usize,
    edges: Vec<TreeEdge>,
}

/// Returns a tree and its number of slots. Edges are in the order of their slots. `lengths` are
/// ascending, from 1.
pub(crate) fn build(ranks: u32, channels: u32, lengths: &[u32]) -> (Vec<TreeEdge>, u32) {
    // A gap uses a channel of each direction, and the fronts use some channels.
    let gaps = [channels, channels + channels / 2, 2 * channels];
    let [one, two, three] = gaps.map(|gaps| with_gaps(ranks, channels, lengths, gaps as usize));
    let shorter = |best: (Vec<TreeEdge>, u32), other: (Vec<TreeEdge>, u32)| {
        if other.1 < best.1 { other } else { best }
    };
    shorter(shorter(one, two), three)
}

/// Returns the tree whose fronts advance by the longest lightpaths while fewer gaps than
/// `sufficient_gaps` are open.
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
        usual: usual.copied().unwrap_or(1),
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
        tree.grow();
    }
    (tree.edges, tree.slot)
}

impl FrontTree<'_> {
    /// Adds a slot.
    fn grow(&mut self) {
        self.unused = [self.channels; 2];
        // Gaps that open in this slot are filled from the next slot on.
        let mut opened = Vec::with_capacity(2);
        for clockwise in [true, false] {
            opened.extend(self.advance(clockwise));
        }
        let have_met = self.ahead.size < self.usual;
        self.fill(have_met);
        if have_met && self.ahead.size > 0 {
            opened.push(self.ahead);
            self.ahead.size = 0;
        }
        opened.retain(|gap| gap.size > 0);
        self.behind.append(&mut opened);
        self.slot += 1;
    }

    /// Advances the front of a direction, unless the fronts have met. Returns the gap behind it.
    fn advance(&mut self, clockwise: bool) -> Option<OpenGap> {
        if self.ahead.size < self.usual {
            return None;
        }
        let limit = match self.behind.len() < self.sufficient_gaps {
            true => self.ahead.size.min(self.channels),
            false => self.usual,
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

    /// Sends lightpaths into the gaps from both ends, over the unused channels. If `splits`, spare
    /// channels allow lightpaths of more than one link.
    fn fill(&mut self, splits: bool) {
        let mut gaps = std::mem::take(&mut self.behind);
        let mut parts = Vec::new();
        // Channels that remain after one channel for each gap and direction.
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
                let length = match splits {
                    true => self.longest(gap.size.div_ceil(2).min(spare[direction] + 1)),
                    false => 1,
                };
                spare[direction] -= (length - 1).min(spare[direction]);
                let end = gap.start + gap.size + 1;
                self.send(if clockwise { gap.start } else { end }, length, clockwise);
                // The longer part remains the gap into which the other end sends.
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

    /// Returns the greatest possible length of a lightpath of at most `limit` links.
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

    /// Every rank is reached once, from a rank that had the block before, within the channels of
    /// every slot.
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
