//! Lightpaths that a rank keeps: those that it used most recently.
//!
//! A rank with k ports keeps the paths to the k partners that it used most recently. Before
//! messages it sets up, at the same time, the missing paths to their partners, which takes the time
//! E. If too few ports are free, it first releases the least recently used paths, which takes the
//! time R. So a rank pays nothing for partners whose paths it kept, at most R + E before each group
//! of messages, and nothing afterwards. Each end pays for its own ports: if only one end released a
//! path, only that end sets the path up again.
//!
//! A path with an open request is never released. A program may have more open requests than ports
//! (see [`SetUp`](super::SetUp)); the excess paths are released, in the time R, as soon as a
//! request is complete.

use std::collections::BTreeMap;

/// The paths of a rank, from the least to the most recently used.
#[derive(Debug, Clone, Default)]
pub(super) struct HeldPaths {
    ports: usize,
    partners: Vec<u32>,
    /// Number of open requests on each path.
    open: BTreeMap<u32, u32>,
}

/// Change of the paths before or after messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PathChange {
    pub(super) releases: bool,
    pub(super) sets_up: bool,
}

impl PathChange {
    /// Change before messages over paths that are not kept.
    pub(super) const SET_UP: PathChange = PathChange {
        sets_up: true,
        releases: false,
    };
    /// Change after messages over paths that are not kept.
    pub(super) const RELEASE: PathChange = PathChange {
        sets_up: false,
        releases: true,
    };
}

/// Lightpaths of a rank that are known in advance and are replaced as soon as they have been used.
#[derive(Default)]
pub(super) struct PredictedPaths {
    /// Last messages over the current lightpaths; when these messages have ended, the lightpaths
    /// may be released.
    pub(super) used: Vec<u32>,
    /// True if the current lightpaths still have to be released.
    pub(super) is_held: bool,
}

impl HeldPaths {
    pub(super) fn new(ports: u32) -> HeldPaths {
        HeldPaths {
            ports: ports as usize,
            ..HeldPaths::default()
        }
    }

    /// Uses the paths to `others` in this order, each at least once, and returns the change that
    /// this needs.
    pub(super) fn take(&mut self, others: impl IntoIterator<Item = u32>) -> PathChange {
        let mut sets_up = false;
        let mut used = Vec::new();
        for other in others {
            // The last use counts.
            if let Some(place) = used.iter().position(|&partner| partner == other) {
                used.remove(place);
            } else {
                match self.partners.iter().position(|&partner| partner == other) {
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

    /// Starts another run with the paths that the previous run left. Its unfinished requests are
    /// dropped.
    pub(super) fn begin_again(&mut self) {
        self.open.clear();
    }

    /// Opens a request on the path to another rank.
    pub(super) fn open(&mut self, other: u32) {
        *self.open.entry(other).or_default() += 1;
    }

    /// Closes requests on the paths to `others`, and returns the change that follows.
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

    /// Releases paths without open requests until at most `max_paths` paths remain. Returns whether
    /// any path was released.
    fn shrink(&mut self, max_paths: usize) -> bool {
        let mut excess = self.partners.len().saturating_sub(max_paths);
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
