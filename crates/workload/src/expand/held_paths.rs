//! Setup and teardown of lightpaths by the ranks of a program.
//!
//! A rank with k ports keeps the lightpaths to the k partners that it used most recently. Before
//! messages, the rank sets up all missing lightpaths at the same time, which takes time E. If too
//! few ports are free, the rank first tears down the least recently used lightpaths, which takes
//! time R. Therefore a rank spends no time on partners whose lightpaths it kept, at most R + E
//! before each group of messages, and nothing afterwards. Each end spends this time for its own
//! ports: if only one end tore down a lightpath, only this end sets the lightpath up again.
//!
//! A lightpath with an open request is never torn down. A program may have more open requests than
//! ports (see [`Setup`](super::Setup)). The excess lightpaths are torn down, in time R, as soon as
//! a request is complete.

use std::collections::BTreeMap;

use super::{Expansion, PATH_PROCESSOR};
use crate::error::TraceError;
use crate::program::{Node, NodeKind};
use opticoll_base::units::Time;
use opticoll_simulate::Paths;

/// Lightpaths that a rank keeps, as a list of partners from the least to the most recently used.
#[derive(Debug, Clone, Default)]
pub(super) struct HeldPaths {
    ports: usize,
    partners: Vec<u32>,
    /// Number of open requests, indexed by partner.
    open: BTreeMap<u32, u32>,
}

/// Change of lightpaths before or after messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PathChange {
    pub(super) releases: bool,
    pub(super) sets_up: bool,
}

impl PathChange {
    /// Change before messages, if lightpaths are not kept.
    pub(super) const SET_UP: PathChange = PathChange {
        sets_up: true,
        releases: false,
    };
    /// Change after messages, if lightpaths are not kept.
    pub(super) const RELEASE: PathChange = PathChange {
        sets_up: false,
        releases: true,
    };
}

/// Lightpaths of a rank that are known in advance and are replaced as soon as they have been used.
#[derive(Default)]
pub(super) struct PredictedPaths {
    /// Indices of the nodes after which the current lightpaths may be torn down.
    pub(super) used: Vec<u32>,
    /// True if the current lightpaths still have to be torn down.
    pub(super) is_held: bool,
}

impl HeldPaths {
    pub(super) fn new(ports: u32) -> HeldPaths {
        HeldPaths {
            ports: ports as usize,
            ..HeldPaths::default()
        }
    }

    /// Uses the lightpaths to the ranks `others` in this order. Returns the setups and teardowns
    /// that must happen before this use.
    pub(super) fn use_paths(&mut self, others: impl IntoIterator<Item = u32>) -> PathChange {
        let mut sets_up = false;
        let mut used = Vec::new();
        for other in others {
            // Only the last use of a partner counts.
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

    /// Starts another execution of the program with the current lightpaths.
    pub(super) fn begin_again(&mut self) {
        self.open.clear();
    }

    /// Opens a request on the lightpath to rank `other`.
    pub(super) fn open(&mut self, other: u32) {
        *self.open.entry(other).or_default() += 1;
    }

    /// Closes a request on the lightpath to each rank in `others`. Returns the teardowns that must
    /// happen afterwards.
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

    /// Tears down lightpaths without open requests, the least recently used first, until at most
    /// `max_paths` lightpaths remain. Returns whether any lightpath was torn down.
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

impl Expansion<'_> {
    /// Sets up the lightpaths to the ranks `others`, which the next messages need. Does nothing if
    /// messages need no setup.
    pub(super) fn begin_use(
        &mut self,
        enter: Node,
        others: impl IntoIterator<Item = u32>,
        before: &mut Vec<u32>,
    ) -> Result<(), TraceError> {
        let change = match &mut self.held {
            Some(held) => held.use_paths(others),
            None => PathChange::SET_UP,
        };
        self.setup(enter, change, before)
    }

    /// Tears down the lightpaths of a blocking message or of a group of steps. Does nothing if the
    /// rank keeps its lightpaths.
    pub(super) fn end_use(&mut self, enter: Node, before: &mut Vec<u32>) -> Result<(), TraceError> {
        match self.held {
            Some(_) => Ok(()),
            None => self.setup(enter, PathChange::RELEASE, before),
        }
    }

    /// Closes requests, each given as (index of the node, index of the event). Tears down
    /// lightpaths as the policy requires.
    pub(super) fn close(
        &mut self,
        enter: Node,
        requests: impl IntoIterator<Item = (u32, usize)>,
        before: &mut Vec<u32>,
    ) -> Result<(), TraceError> {
        let change = match &mut self.held {
            Some(held) => {
                let requests = requests.into_iter().map(|(node, _)| node);
                held.close(requests.map(|node| self.builder.node(node).peer))
            }
            None => PathChange::RELEASE,
        };
        self.setup(enter, change, before)
    }

    /// Adds a node with the time to set up or tear down lightpaths, for which the next nodes wait.
    /// With [`Paths::Predicted`], a teardown is added only together with the next setup. Does
    /// nothing if messages need no setup.
    fn setup(
        &mut self,
        enter: Node,
        change: PathChange,
        before: &mut Vec<u32>,
    ) -> Result<(), TraceError> {
        let Some(paths) = self
            .target
            .setup
            .filter(|_| change != PathChange::default())
        else {
            return Ok(());
        };
        let is_predicted = paths.paths == Paths::Predicted;
        if is_predicted && change.releases {
            self.predicted = PredictedPaths {
                used: before.clone(),
                is_held: true,
            };
            return Ok(());
        }
        let releases = change.releases || std::mem::take(&mut self.predicted.is_held);
        let time = |applies: bool, time: Time| if applies { time } else { Time::ZERO };
        let release = time(releases, paths.teardown);
        let node = Node {
            amount: release.plus(time(change.sets_up, paths.setup))?.ps(),
            kind: NodeKind::Setup,
            tag: u32::from(change.sets_up),
            processor: if is_predicted {
                PATH_PROCESSOR
            } else {
                enter.processor
            },
            ..enter
        };
        if is_predicted {
            let used = std::mem::take(&mut self.predicted.used);
            before.push(self.push(node, &used)?);
            self.predicted.used = used;
            return Ok(());
        }
        let node = self.push(node, before)?;
        before.clear();
        before.push(node);
        Ok(())
    }
}
