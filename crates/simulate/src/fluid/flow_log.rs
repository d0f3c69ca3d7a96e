//! What is written down of every flow, where flows are recorded.
//!
//! Flows that were simulated have an entry each. A replayed step (see `steps`) is one entry: when it
//! began, and what its flows have in common with those of the step that it repeats. They end as long after
//! its beginning, and are bounded by the same links; mostly they also wait for flows as far before them
//! as those of the replay before did. So a collective that repeats one step costs memory for one step.

use rustc_hash::FxHashMap;

use super::FluidError;
use super::instant::to_time;
use crate::outcome::{FlowColumns, NONE};
use opticoll_base::units::Time;

/// The flows of a run, numbered in the order in which they were begun.
#[derive(Debug, Default)]
pub(super) struct FlowLog {
    /// Of the flows that were simulated, in order.
    simulated: FlowColumns,
    /// The lowest rate of each of them, bytes per ps.
    slowest: Vec<f64>,
    /// Replayed steps, in order.
    replays: Vec<ReplaySpan>,
    /// The steps that they repeat.
    steps: Vec<ReplayedStep>,
    /// Among `steps`, by the place of the first flow. Looked up only.
    steps_by_flow: FxHashMap<u32, u32>,
    /// For which flows those of a replay wait: how far before the first of the step each of them is, and
    /// [`NONE`] where there is none.
    waits: Vec<Box<[u32]>>,
    /// The flows of all replays.
    replayed: u32,
}

/// A step that was replayed.
#[derive(Debug)]
struct ReplaySpan {
    /// Its first flow.
    first: u32,
    /// How many of the flows before it were simulated.
    simulated: u32,
    begin: f64,
    step: u32,
    waits: u32,
}

/// A step that is replayed.
#[derive(Debug)]
struct ReplayedStep {
    /// The first of its flows, among those simulated.
    like: u32,
    /// When each flow ended, ps after the beginning.
    ends: Box<[f64]>,
    /// The last of `ends`.
    latest: f64,
}

/// A flow as written down (see [`FlowColumns`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Logged {
    pub(super) start: Time,
    pub(super) end: Time,
    pub(super) bottleneck: u32,
    pub(super) waited_for: u32,
}

/// A step that is about to be written down as a replay.
pub(super) struct StepReplay<'a> {
    /// The flow with which the step began that it repeats.
    pub(super) like: u32,
    /// The first flow.
    pub(super) first: u32,
    /// When it begins, ps.
    pub(super) begin: f64,
    /// When each of its flows ends, ps after the beginning.
    pub(super) ends: &'a [f64],
    /// The flow that each waited for, or [`NONE`].
    pub(super) waited_for: Vec<u32>,
}

impl FlowLog {
    /// A flow may start, because the flow `waited_for` has ended.
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

    /// A flow now has this rate (bytes per ps), bounded by this link.
    pub(super) fn rate(&mut self, flow: u32, rate: f64, bottleneck: Option<u32>) {
        let place = (flow - self.replayed) as usize;
        if rate < self.slowest[place] {
            self.slowest[place] = rate;
            self.simulated.bottleneck[place] = bottleneck.unwrap_or(NONE);
        }
    }

    /// A flow has ended.
    pub(super) fn end(&mut self, flow: u32, now: f64) -> Result<(), FluidError> {
        let place = (flow - self.replayed) as usize;
        self.simulated.end[place] = to_time(now)?;
        Ok(())
    }

    /// A step is replayed. No flow of another is under way.
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

    /// The replay with which a flow begins or of which it is, if any.
    fn replay_of(&self, flow: u32) -> Option<(&ReplaySpan, &ReplayedStep)> {
        let after = self.replays.partition_point(|replay| replay.first <= flow);
        let replay = &self.replays[after.checked_sub(1)?];
        let step = &self.steps[replay.step as usize];
        (((flow - replay.first) as usize) < step.ends.len()).then_some((replay, step))
    }

    /// How many of the flows before one were simulated; that flow was.
    fn simulated_before(&self, flow: u32) -> u32 {
        let after = self.replays.partition_point(|replay| replay.first <= flow);
        let Some(replay) = after.checked_sub(1).map(|last| &self.replays[last]) else {
            return flow;
        };
        let own = self.steps[replay.step as usize].ends.len() as u32;
        flow - (replay.first + own) + replay.simulated
    }

    /// The number of flows.
    pub(super) fn len(&self) -> usize {
        self.simulated.start.len() + self.replayed as usize
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is written down of a flow; `None` beyond the last.
    pub(super) fn flow(&self, flow: u32) -> Option<Logged> {
        if let Some((replay, step)) = self.replay_of(flow) {
            let place = flow - replay.first;
            let wait = self.waits[replay.waits as usize][place as usize];
            // Checked when the replay was written down.
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

    /// The first start and the last end of the flows of one step; `None` if it has none.
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

    /// Every flow.
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
