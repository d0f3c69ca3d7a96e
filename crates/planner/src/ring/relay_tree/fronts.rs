//! A relay tree for very many ranks, made step by step without a table of prices.
//!
//! Two *fronts* leave the root, one each way around, and advance in every step by a lightpath of several links. A
//! front that advances by l leaves a gap of l - 1 ranks behind it, which lightpaths of one link fill later, from
//! both ends. To advance by l thus takes 2 l - 1 channels in all, over several steps. With c channels a direction
//! a front can advance by a = (c + 1) / 2 in every step; the greatest length up to there that divides N is the
//! *usual* one. While fewer gaps are open than keep all channels busy, the front advances by the longest that there
//! is: that costs hardly more, and what it leaves behind fills the channels later. Once the fronts have met, channels to
//! spare split the gaps.
//!
//! All ranks but the root hold the block at the end, each from one lightpath whose sender held it in the step
//! before; no step has more than c channels in a direction. Time and memory grow with N alone.

use crate::ring::relay_tree::tree::TreeEdge;
use opticoll_base::interrupt;

/// Ranks without the block behind a front, or between both: `size` ranks after the holder at `start`.
#[derive(Debug, Clone, Copy)]
struct OpenGap {
    start: u32,
    size: u32,
}

/// A tree that grows by one step after the other.
struct FrontTree<'a> {
    ranks: u32,
    channels: u32,
    /// Ascending, from 1; each divides the number of ranks.
    lengths: &'a [u32],
    /// By how much a front advances in the long run.
    usual: u32,
    step: u32,
    /// Between the fronts.
    ahead: OpenGap,
    /// Behind the fronts, in the order of their making.
    behind: Vec<OpenGap>,
    /// Channels left in the step, clockwise and counter-clockwise.
    left: [u32; 2],
    /// So many open gaps keep all channels busy.
    enough: usize,
    edges: Vec<TreeEdge>,
}

/// The tree, its edges in the order of their steps, with its number of steps. `lengths` are ascending, from 1.
pub(crate) fn build(ranks: u32, channels: u32, lengths: &[u32]) -> (Vec<TreeEdge>, u32) {
    // A gap takes a channel of each direction, and the front some of them.
    let enough = [channels, channels + channels / 2, 2 * channels];
    let trees = enough.map(|enough| with_gaps(ranks, channels, lengths, enough as usize));
    let [one, two, three] = trees;
    let fewer = |best: (Vec<TreeEdge>, u32), other: (Vec<TreeEdge>, u32)| {
        if other.1 < best.1 { other } else { best }
    };
    fewer(fewer(one, two), three)
}

/// The tree whose fronts hurry while fewer gaps than `enough` are open.
fn with_gaps(ranks: u32, channels: u32, lengths: &[u32], enough: usize) -> (Vec<TreeEdge>, u32) {
    let usual = lengths.iter().rfind(|&&length| 2 * length <= channels + 1);
    let mut tree = FrontTree {
        ranks,
        channels,
        lengths,
        usual: usual.copied().unwrap_or(1),
        step: 0,
        ahead: OpenGap {
            start: 0,
            size: ranks - 1,
        },
        behind: Vec::new(),
        left: [0; 2],
        enough,
        edges: Vec::with_capacity(ranks as usize - 1),
    };
    while tree.ahead.size > 0 || !tree.behind.is_empty() {
        interrupt::check();
        tree.grow();
    }
    (tree.edges, tree.step)
}

impl FrontTree<'_> {
    /// Adds a step.
    fn grow(&mut self) {
        self.left = [self.channels; 2];
        // What arrives in this step is sent on in later ones.
        let mut left_behind = Vec::with_capacity(2);
        for clockwise in [true, false] {
            left_behind.extend(self.advance(clockwise));
        }
        let met = self.ahead.size < self.usual;
        self.fill(met);
        if met && self.ahead.size > 0 {
            left_behind.push(self.ahead);
            self.ahead.size = 0;
        }
        left_behind.retain(|gap| gap.size > 0);
        self.behind.append(&mut left_behind);
        self.step += 1;
    }

    /// Lets the front of a direction advance: the gap that it leaves behind.
    fn advance(&mut self, clockwise: bool) -> Option<OpenGap> {
        if self.ahead.size < self.usual {
            return None;
        }
        let most = match self.behind.len() < self.enough {
            true => self.ahead.size.min(self.channels),
            false => self.usual,
        };
        let length = self.longest(most);
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

    /// Sends into the gaps from both ends, with what is left of the channels.
    fn fill(&mut self, splits: bool) {
        let mut gaps = std::mem::take(&mut self.behind);
        let mut parts = Vec::new();
        // Beyond a channel for each gap and direction.
        let open = u32::try_from(gaps.len()).unwrap_or(u32::MAX);
        let mut spare = self.left.map(|left| left.saturating_sub(open));
        for gap in &mut gaps {
            if self.left == [0; 2] {
                break;
            }
            interrupt::check();
            for clockwise in [true, false] {
                let direction = usize::from(!clockwise);
                if gap.size == 0 || self.left[direction] == 0 {
                    continue;
                }
                let length = match splits {
                    true => self.longest(gap.size.div_ceil(2).min(spare[direction] + 1)),
                    false => 1,
                };
                spare[direction] -= (length - 1).min(spare[direction]);
                let end = gap.start + gap.size + 1;
                self.send(if clockwise { gap.start } else { end }, length, clockwise);
                // The longer part stays the gap that the other end sends into.
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

    /// The longest lightpath of so many links at most.
    fn longest(&self, most: u32) -> u32 {
        let known = self.lengths.iter().rfind(|&&length| length <= most);
        known.copied().unwrap_or(1)
    }

    fn send(&mut self, parent: u32, length: u32, clockwise: bool) {
        self.left[usize::from(!clockwise)] -= length;
        self.edges.push(TreeEdge {
            parent: parent % self.ranks,
            length,
            clockwise,
            step: self.step,
            piece: 0,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every rank is reached once, from a rank that held the block before, within the channels of every step.
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
            let (edges, steps) = build(ranks, channels, &lengths);
            assert_eq!(edges.len() as u32, ranks - 1);
            let mut reached = vec![None; ranks as usize];
            let mut used = vec![[0; 2]; steps as usize];
            reached[0] = Some(0);
            for edge in &edges {
                let since = reached[edge.parent as usize];
                assert!(since.is_some_and(|since| since <= edge.step), "{edge:?}");
                let child = &mut reached[edge.child(ranks) as usize];
                assert_eq!(child.replace(edge.step + 1), None, "{edge:?}");
                used[edge.step as usize][usize::from(edge.clockwise)] += edge.length;
            }
            assert!(used.iter().flatten().all(|&used| used <= channels));
            assert!(edges.windows(2).all(|pair| pair[0].step <= pair[1].step));
        }
    }
}
