//! Channels for the rotations of a relay tree, where lengths do not divide N: by list scheduling.
//!
//! A lightpath may go as soon as its block has arrived at its source. Each channel of a step is filled
//! along the ring, from the rank of the most urgent lightpath on, at every rank with the most urgent
//! one that still fits: that of the earliest step in the tree, of these the longest. What the tree
//! meant for a step and finds no room there goes soon after, and delays only what comes after it.
//!
//! With few channels, where one lightpath left over is a large part of a step, this loses a step where
//! [`crate::ring::relay_tree::pack::greedily`] loses every third; with many, it is the other way round.

use std::collections::BTreeSet;

use crate::ring::relay_tree::pack::{PlacedLightpath, children};
use crate::ring::relay_tree::tree::TreeEdge;
use opticoll_base::interrupt;

/// A lightpath that may go: the most urgent comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct WaitingLightpath {
    step: u32,
    /// The larger, the shorter.
    shortness: u32,
    edge: u32,
    origin: u32,
}

impl WaitingLightpath {
    fn new(tree: &[TreeEdge], edge: u32, origin: u32) -> WaitingLightpath {
        let TreeEdge { step, length, .. } = tree[edge as usize];
        WaitingLightpath {
            step,
            shortness: u32::MAX - length,
            edge,
            origin,
        }
    }

    fn length(self) -> u32 {
        u32::MAX - self.shortness
    }
}

/// The lightpaths of one direction that may go, by the rank at which they start.
struct ReadyLightpaths {
    at: Vec<BTreeSet<WaitingLightpath>>,
    clockwise: bool,
}

impl ReadyLightpaths {
    /// Fills one channel; false where nothing waits.
    fn fill(&mut self, mut put: impl FnMut(WaitingLightpath)) -> bool {
        let ranks = self.at.len() as u32;
        let most_urgent = (0..ranks)
            .filter_map(|rank| Some((*self.at[rank as usize].first()?, rank)))
            .min();
        let Some((_, start)) = most_urgent else {
            return false;
        };
        let mut passed = 0;
        while passed < ranks {
            interrupt::check();
            let ahead = if self.clockwise {
                passed
            } else {
                ranks - passed
            };
            let here = &mut self.at[((start + ahead) % ranks) as usize];
            let fits = |waiting: &&WaitingLightpath| waiting.length() <= ranks - passed;
            let Some(waiting) = here.iter().find(fits).copied() else {
                passed += 1;
                continue;
            };
            here.remove(&waiting);
            put(waiting);
            passed += waiting.length();
        }
        true
    }
}

/// Places all lightpaths; one list per step, each with whether it goes clockwise. `None` where more
/// than `most` steps would be needed.
pub(crate) fn place(
    ranks: u32,
    channels: u32,
    tree: &[TreeEdge],
    most: u32,
) -> Option<Vec<Vec<(bool, PlacedLightpath)>>> {
    let children = children(ranks, tree);
    let mut ready = [false, true].map(|clockwise| ReadyLightpaths {
        at: vec![BTreeSet::new(); ranks as usize],
        clockwise,
    });
    let release = |ready: &mut [ReadyLightpaths; 2], edge: u32, origin: u32| {
        let TreeEdge {
            parent, clockwise, ..
        } = tree[edge as usize];
        ready[usize::from(clockwise)].at[((origin + parent) % ranks) as usize]
            .insert(WaitingLightpath::new(tree, edge, origin));
    };
    for (edge, _) in (0..).zip(tree).filter(|(_, edge)| edge.parent == 0) {
        (0..ranks).for_each(|origin| release(&mut ready, edge, origin));
    }
    let mut steps = Vec::new();
    let mut left = tree.len() * ranks as usize;
    while left > 0 {
        interrupt::check();
        if steps.len() >= most as usize {
            return None;
        }
        let mut placed = Vec::new();
        for ready in &mut ready {
            let clockwise = ready.clockwise;
            for channel in 0..channels {
                let some = ready.fill(|WaitingLightpath { edge, origin, .. }| {
                    placed.push((
                        clockwise,
                        PlacedLightpath {
                            edge,
                            origin,
                            channel,
                        },
                    ));
                });
                if !some {
                    break;
                }
            }
        }
        for (_, path) in &placed {
            for &child in &children[path.edge as usize] {
                release(&mut ready, child, path.origin);
            }
        }
        left -= placed.len();
        steps.push(placed);
    }
    Some(steps)
}
