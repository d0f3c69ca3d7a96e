//! Lightpaths that a rank keeps: those to the others that it used last.
//!
//! A rank with k ports keeps the paths to the k others that it used last. Before messages it sets up, at one instant,
//! the paths to their partners that it does not have, which costs E; where that takes more ports than are left
//! it first releases paths, those used longest ago first, which costs R. So a rank pays nothing for partners
//! that it still has, R + E at most before each group of messages, and nothing after it. Each end pays for its
//! own ports: what only one end has given up is set up by that end alone.
//!
//! A path with a request open on it is not given up. What a program has open may be more than there are ports
//! (see [`SetUp`](super::SetUp)); what is too much goes as soon as a request is over, for R.

use std::collections::BTreeMap;

/// The paths of a rank, the one used last at the end.
#[derive(Debug, Clone, Default)]
pub(super) struct HeldPaths {
    ports: usize,
    partners: Vec<u32>,
    /// Requests open on each path.
    open: BTreeMap<u32, u32>,
}

/// What is done before messages, or after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PathChange {
    pub(super) releases: bool,
    pub(super) sets_up: bool,
}

impl PathChange {
    /// Done before messages over paths that are not held.
    pub(super) const SET_UP: PathChange = PathChange {
        sets_up: true,
        releases: false,
    };
    /// Done after them.
    pub(super) const RELEASE: PathChange = PathChange {
        sets_up: false,
        releases: true,
    };
}

/// Lightpaths of a rank that are known in advance, and so replaced as soon as they were used.
#[derive(Default)]
pub(super) struct PredictedPaths {
    /// The last messages over the rank's present lightpaths: when they have ended, these may go.
    pub(super) used: Vec<u32>,
    /// Whether these are still to be released.
    pub(super) is_held: bool,
}

impl HeldPaths {
    pub(super) fn new(ports: u32) -> HeldPaths {
        HeldPaths {
            ports: ports as usize,
            ..HeldPaths::default()
        }
    }

    /// Uses the paths to these others in this order, each named once or more.
    pub(super) fn take(&mut self, others: impl IntoIterator<Item = u32>) -> PathChange {
        let mut sets_up = false;
        let mut used = Vec::new();
        for other in others {
            // Used once more: the one used last is the last.
            if let Some(place) = used.iter().position(|&one| one == other) {
                used.remove(place);
            } else {
                match self.partners.iter().position(|&one| one == other) {
                    Some(place) => _ = self.partners.remove(place),
                    None => sets_up = true,
                }
            }
            used.push(other);
        }
        let releases = self.shrink(self.ports.saturating_sub(used.len()));
        self.partners.extend(used);
        PathChange { releases, sets_up }
    }

    /// A program begins with the paths that one before has left; requests that were never waited for
    /// are over with it.
    pub(super) fn begin_again(&mut self) {
        self.open.clear();
    }

    /// A request is open on the path to another.
    pub(super) fn open(&mut self, other: u32) {
        *self.open.entry(other).or_default() += 1;
    }

    /// Requests on paths to these others are over.
    pub(super) fn close(&mut self, others: impl IntoIterator<Item = u32>) -> PathChange {
        for other in others {
            if let Some(open) = self.open.get_mut(&other) {
                *open = open.saturating_sub(1);
            }
        }
        PathChange {
            releases: self.shrink(self.ports),
            sets_up: false,
        }
    }

    /// Gives up paths until so many are left, or those with open requests; whether there were any to give up.
    fn shrink(&mut self, most: usize) -> bool {
        let mut excess = self.partners.len().saturating_sub(most);
        let open = &self.open;
        let before = self.partners.len();
        self.partners.retain(|other| {
            let goes = excess > 0 && open.get(other).is_none_or(|&requests| requests == 0);
            excess -= usize::from(goes);
            !goes
        });
        self.partners.len() < before
    }
}
