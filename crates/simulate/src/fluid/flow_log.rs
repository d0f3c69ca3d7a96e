//! Record of every flow, if flows are recorded.
//!
//! Each simulated flow has an entry. A replayed step (see `steps`) is a single entry: its
//! beginning, and the properties that its flows share with those of the step that it repeats. The
//! flows end at the same times after the beginning, and the same links limit them. Usually they
//! also wait for flows at the same distance before them as the flows of the previous replay did. A
//! collective that repeats one step therefore needs memory for one step.

use rustc_hash::FxHashMap;

use super::FluidError;
use super::conversion::to_time;
use crate::outcome::{FlowColumns, NONE};
use opticoll_base::units::Time;

/// Flows of a run, numbered in the order in which they started.
#[derive(Debug, Default)]
pub(super) struct FlowLog {
    /// Columns of the flows that were simulated, in order.
    simulated: FlowColumns,
    /// Lowest rate of each simulated flow in bytes per ps.
    slowest: Vec<f64>,
    /// Replayed steps, in order.
    replays: Vec<ReplaySpan>,
    /// Steps that the replayed steps repeat.
    steps: Vec<ReplayedStep>,
    /// Index in `steps` by the step's first simulated flow. Never iterated.
    steps_by_flow: FxHashMap<u32, u32>,
    /// Flows that the flows of a replay wait for, as distances before the first flow of the step;
    /// [`NONE`] if a flow waits for none.
    waits: Vec<Box<[u32]>>,
    /// Number of flows of all replays.
    replayed: u32,
}

/// Replay of a step.
#[derive(Debug)]
struct ReplaySpan {
    /// First flow of the replay.
    first: u32,
    /// Number of simulated flows before the replay.
    simulated: u32,
    begin: f64,
    step: u32,
    waits: u32,
}

/// Step that is replayed.
#[derive(Debug)]
struct ReplayedStep {
    /// First flow of the step, as an index into the simulated flows.
    like: u32,
    /// End of each flow after the beginning of the step (ps).
    ends: Box<[f64]>,
    /// Maximum of `ends`.
    latest: f64,
}

/// Record of a flow (see [`FlowColumns`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Logged {
    pub(super) start: Time,
    pub(super) end: Time,
    pub(super) bottleneck: u32,
    pub(super) waited_for: u32,
}

/// Replay of a step, to be recorded.
pub(super) struct StepReplay<'a> {
    /// First flow of the step that is repeated.
    pub(super) like: u32,
    /// First flow of the replay.
    pub(super) first: u32,
    /// Beginning of the replay (ps).
    pub(super) begin: f64,
    /// End of each of its flows after the beginning (ps).
    pub(super) ends: &'a [f64],
    /// Flow that each flow waited for, or [`NONE`].
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

    /// Records the rate of a flow (bytes per ps) and the link that limits it.
    pub(super) fn rate(&mut self, flow: u32, rate: f64, bottleneck: Option<u32>) {
        let place = (flow - self.replayed) as usize;
        if rate < self.slowest[place] {
            self.slowest[place] = rate;
            self.simulated.bottleneck[place] = bottleneck.unwrap_or(NONE);
        }
    }

    /// Records the end of a flow.
    pub(super) fn end(&mut self, flow: u32, now: f64) -> Result<(), FluidError> {
        let place = (flow - self.replayed) as usize;
        self.simulated.end[place] = to_time(now)?;
        Ok(())
    }

    /// Records the replay of a step. No flow of another step may be under way.
    pub(super) fn replay(&mut self, replayed: StepReplay<'_>) -> Result<(), FluidError> {
        let StepReplay {
            like,
            first,
            begin,
            ends,
            mut waited_for,
        } = replayed;
        let like = self.simulated_before(like);
        let step = *self.steps_by_flow.entry(like).or_insert_with(|| {
            self.steps.push(ReplayedStep {
                like,
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

    /// Returns the replay that contains a flow, if there is one.
    fn replay_of(&self, flow: u32) -> Option<(&ReplaySpan, &ReplayedStep)> {
        let after = self.replays.partition_point(|replay| replay.first <= flow);
        let replay = &self.replays[after.checked_sub(1)?];
        let step = &self.steps[replay.step as usize];
        (((flow - replay.first) as usize) < step.ends.len()).then_some((replay, step))
    }

    /// Returns the number of simulated flows before a simulated flow.
    fn simulated_before(&self, flow: u32) -> u32 {
        let after = self.replays.partition_point(|replay| replay.first <= flow);
        let Some(replay) = after.checked_sub(1).map(|last| &self.replays[last]) else {
            return flow;
        };
        let step_flows = self.steps[replay.step as usize].ends.len() as u32;
        flow - (replay.first + step_flows) + replay.simulated
    }

    /// Returns the number of flows.
    pub(super) fn len(&self) -> usize {
        self.simulated.start.len() + self.replayed as usize
    }

    /// Returns whether there are no flows.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the record of a flow; `None` if there is no such flow.
    pub(super) fn flow(&self, flow: u32) -> Option<Logged> {
        if let Some((replay, step)) = self.replay_of(flow) {
            let place = flow - replay.first;
            let wait = self.waits[replay.waits as usize][place as usize];
            // This time was checked when the replay was recorded.
            let end = to_time(replay.begin + step.ends[place as usize]).ok()?;
            return Some(Logged {
                start: to_time(replay.begin).ok()?,
                end,
                bottleneck: self.simulated.bottleneck[(step.like + place) as usize],
                waited_for: if wait == NONE {
                    NONE
                } else {
                    replay.first - wait
                },
            });
        }
        let place = self.simulated_before(flow) as usize;
        let flows = &self.simulated;
        flows.start.get(place).map(|&start| Logged {
            start,
            end: flows.end[place],
            bottleneck: flows.bottleneck[place],
            waited_for: flows.waited_for[place],
        })
    }

    /// Returns the first start and the last end of the flows of one step; `None` if it has no
    /// flows.
    pub(super) fn span(&self, first: u32, count: usize) -> Option<(Time, Time)> {
        if count == 0 {
            return None;
        }
        if let Some((replay, step)) = self.replay_of(first) {
            let (start, end) = (replay.begin, replay.begin + step.latest);
            return Some((to_time(start).ok()?, to_time(end).ok()?));
        }
        let place = self.simulated_before(first) as usize;
        let start = self.simulated.start.get(place..place + count)?.iter().min();
        let end = self.simulated.end.get(place..place + count)?.iter().max();
        Some((*start?, *end?))
    }

    /// Returns the columns of all flows.
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
