//! Record of every flow, if flows are recorded.
//!
//! Each simulated flow has an entry. A replayed step (see `steps`) has one entry for all of its
//! flows, which refers to the step that is repeated. In the replay and in the repeated step, flows
//! end at the same times after the beginning, and the same links limit them. The flow for which a
//! flow waits is stored as a distance: the number of flows from that flow to the first flow of the
//! replay. These distances are usually the same in all replays of a step. A collective that repeats
//! one step therefore needs memory for one step.

use rustc_hash::FxHashMap;

use super::FluidError;
use super::conversion::to_time;
use crate::outcome::{FlowColumns, NONE};
use opticoll_base::units::Time;

/// Flows of a run, numbered in the order in which they started.
#[derive(Debug, Default)]
pub(super) struct FlowLog {
    simulated: FlowColumns,
    /// Lowest rate of each simulated flow so far, in bytes per ps.
    slowest: Vec<f64>,
    /// Replays, in the order of time.
    replays: Vec<ReplaySpan>,
    /// Steps that are replayed, each stored once.
    steps: Vec<ReplayedStep>,
    /// Indices in `steps`. The key is the index of the step's first simulated flow. The map is
    /// never iterated over.
    steps_by_flow: FxHashMap<u32, u32>,
    /// Lists of the flows for which the flows of a replay wait. An entry is the distance from such
    /// a flow to the first flow of the replay, or [`NONE`].
    waits: Vec<Box<[u32]>>,
    /// Number of flows in all replays together.
    replayed: u32,
}

/// Replay of a step. `step` is an index in [`FlowLog::steps`], and `waits` is an index in
/// [`FlowLog::waits`].
#[derive(Debug)]
struct ReplaySpan {
    /// Index of the replay's first flow in the log.
    first: u32,
    /// Number of simulated flows before the replay.
    simulated: u32,
    begin: f64,
    step: u32,
    waits: u32,
}

#[derive(Debug)]
struct ReplayedStep {
    /// Index, among the simulated flows, of the first flow of the step.
    original: u32,
    /// End of each flow, in ps after the beginning of the step.
    ends: Box<[f64]>,
    /// Maximum of `ends` (ps).
    latest: f64,
}

/// Recorded properties of one flow (see [`FlowColumns`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Logged {
    pub(super) start: Time,
    pub(super) end: Time,
    pub(super) bottleneck: u32,
    pub(super) waited_for: u32,
}

/// Replay of a step, in the form in which it is added to the log.
pub(super) struct StepReplay<'a> {
    /// Index of the first flow of the step that is repeated.
    pub(super) original: u32,
    /// Index of the first flow of the replay.
    pub(super) first: u32,
    /// Beginning of the replay (ps).
    pub(super) begin: f64,
    /// End of each flow, in ps after `begin`.
    pub(super) ends: &'a [f64],
    /// Index of the flow for which each flow of the replay waited, or [`NONE`].
    pub(super) waited_for: Vec<u32>,
}

impl FlowLog {
    /// Records that a flow may start because the flow `waited_for` has ended.
    pub(super) fn start(&mut self, flow: u32, now: f64, waited_for: u32) -> Result<(), FluidError> {
        let place = (flow - self.replayed) as usize;
        let flows = &mut self.simulated;
        if flows.start.len() <= place {
            flows.start.resize(place + 1, Time::ZERO);
            flows.end.resize(place + 1, Time::ZERO);
            flows.bottleneck.resize(place + 1, NONE);
            flows.waited_for.resize(place + 1, NONE);
            self.slowest.resize(place + 1, f64::INFINITY);
        }
        flows.start[place] = to_time(now)?;
        flows.waited_for[place] = waited_for;
        Ok(())
    }

    /// Records a rate of a flow (bytes per ps) and the link that limits the rate. The log stores
    /// the bottleneck of the lowest rate.
    pub(super) fn rate(&mut self, flow: u32, rate: f64, bottleneck: Option<u32>) {
        let place = (flow - self.replayed) as usize;
        if rate < self.slowest[place] {
            self.slowest[place] = rate;
            self.simulated.bottleneck[place] = bottleneck.unwrap_or(NONE);
        }
    }

    pub(super) fn end(&mut self, flow: u32, now: f64) -> Result<(), FluidError> {
        let place = (flow - self.replayed) as usize;
        self.simulated.end[place] = to_time(now)?;
        Ok(())
    }

    /// Records the replay of a step. No flow of another step may be under way during the replay.
    pub(super) fn replay(&mut self, replayed: StepReplay<'_>) -> Result<(), FluidError> {
        let StepReplay {
            original,
            first,
            begin,
            ends,
            mut waited_for,
        } = replayed;
        let original = self.simulated_index(original);
        let step = *self.steps_by_flow.entry(original).or_insert_with(|| {
            self.steps.push(ReplayedStep {
                original,
                ends: ends.into(),
                latest: ends.iter().copied().fold(0.0, f64::max),
            });
            self.steps.len() as u32 - 1
        });
        to_time(begin + self.steps[step as usize].latest)?;
        for waited_for in waited_for.iter_mut().filter(|flow| **flow != NONE) {
            *waited_for = first - *waited_for;
        }
        if self.waits.last().is_none_or(|last| **last != *waited_for) {
            self.waits.push(waited_for.into());
        }
        self.replays.push(ReplaySpan {
            first,
            simulated: first - self.replayed,
            begin,
            step,
            waits: self.waits.len() as u32 - 1,
        });
        self.replayed += ends.len() as u32;
        Ok(())
    }

    /// Returns the replay that contains a flow, with the step that is repeated, or `None` if the
    /// flow was simulated.
    fn replay_containing(&self, flow: u32) -> Option<(&ReplaySpan, &ReplayedStep)> {
        let after = self.replays.partition_point(|replay| replay.first <= flow);
        let replay = &self.replays[after.checked_sub(1)?];
        let step = &self.steps[replay.step as usize];
        (((flow - replay.first) as usize) < step.ends.len()).then_some((replay, step))
    }

    /// Converts an index among all flows to an index among the simulated flows.
    fn simulated_index(&self, flow: u32) -> u32 {
        let after = self.replays.partition_point(|replay| replay.first <= flow);
        let Some(replay) = after.checked_sub(1).map(|last| &self.replays[last]) else {
            return flow;
        };
        let step_flows = self.steps[replay.step as usize].ends.len() as u32;
        flow - (replay.first + step_flows) + replay.simulated
    }

    pub(super) fn len(&self) -> usize {
        self.simulated.start.len() + self.replayed as usize
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the record of a flow, or `None` if the flow does not exist.
    pub(super) fn flow(&self, flow: u32) -> Option<Logged> {
        if let Some((replay, step)) = self.replay_containing(flow) {
            let place = flow - replay.first;
            let wait = self.waits[replay.waits as usize][place as usize];
            // This time was checked when the replay was recorded.
            let end = to_time(replay.begin + step.ends[place as usize]).ok()?;
            return Some(Logged {
                start: to_time(replay.begin).ok()?,
                end,
                bottleneck: self.simulated.bottleneck[(step.original + place) as usize],
                waited_for: if wait == NONE {
                    NONE
                } else {
                    replay.first - wait
                },
            });
        }
        let place = self.simulated_index(flow) as usize;
        let flows = &self.simulated;
        flows.start.get(place).map(|&start| Logged {
            start,
            end: flows.end[place],
            bottleneck: flows.bottleneck[place],
            waited_for: flows.waited_for[place],
        })
    }

    /// Returns the first start and the last end of `count` flows of one step, from the flow with
    /// index `first` on. Returns `None` if `count` is 0.
    pub(super) fn span(&self, first: u32, count: usize) -> Option<(Time, Time)> {
        if count == 0 {
            return None;
        }
        if let Some((replay, step)) = self.replay_containing(first) {
            let (start, end) = (replay.begin, replay.begin + step.latest);
            return Some((to_time(start).ok()?, to_time(end).ok()?));
        }
        let place = self.simulated_index(first) as usize;
        let start = self.simulated.start.get(place..place + count)?.iter().min();
        let end = self.simulated.end.get(place..place + count)?.iter().max();
        Some((*start?, *end?))
    }

    /// Returns the columns of all flows, including replayed flows.
    pub(super) fn into_columns(self) -> FlowColumns {
        if self.replays.is_empty() {
            return self.simulated;
        }
        let mut columns = FlowColumns::default();
        columns.start.reserve_exact(self.len());
        columns.end.reserve_exact(self.len());
        columns.bottleneck.reserve_exact(self.len());
        columns.waited_for.reserve_exact(self.len());
        let flows = 0..self.len() as u32;
        for logged in flows.filter_map(|flow| self.flow(flow)) {
            columns.start.push(logged.start);
            columns.end.push(logged.end);
            columns.bottleneck.push(logged.bottleneck);
            columns.waited_for.push(logged.waited_for);
        }
        columns
    }
}
