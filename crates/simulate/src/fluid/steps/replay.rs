//! Replay of repeated steps.
//!
//! When all flows so far have ended, only the present instant affects the future: links are free,
//! and all ranks may continue. Suppose that an earlier step began and ended in this state, without
//! flows of other steps, and that the next step has the same flows (ranks and sizes, in order). The
//! next step then takes exactly as long and uses links in the same way, shifted in time. At its
//! second occurrence, such a step is simulated again and recorded. From the third occurrence on,
//! the step is replayed. Steps that never repeat therefore need only the memory of a hash.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::super::FluidError;
use super::super::flow_log::StepReplay;
use super::super::ledger::{FlowLedger, RecordedPeriod};
use super::{StepFlow, Stepped};
use opticoll_base::interrupt;

/// Maximum number of flows of all recorded steps.
const MAX_RECORDED_FLOWS: usize = 1 << 20;

/// Step that can be replayed.
pub(super) struct RecordedStep {
    pub(super) flows: Vec<StepFlow>,
    pub(super) duration: f64,
    /// End of each flow, in ps after the beginning of the step.
    pub(super) ends: Vec<f64>,
    pub(super) period: RecordedPeriod,
    /// Index of the first flow of the step when the step was recorded.
    pub(super) first_flow: u32,
    pub(super) times: u64,
    pub(super) last_begin: f64,
}

/// Step that is being recorded. No flow was under way when the step began.
pub(super) struct Watched {
    pub(super) hash: u64,
    pub(super) step: usize,
    pub(super) begin: f64,
    pub(super) flows: Vec<StepFlow>,
    pub(super) first_flow: u32,
    pub(super) ends: Vec<f64>,
}

impl Stepped<'_> {
    /// Returns the index of the recorded step whose flows equal the flows in the buffer.
    pub(super) fn find(&mut self) -> Option<u32> {
        let equal = |replays: &[RecordedStep], replay: u32, flows: &[StepFlow]| {
            replays[replay as usize].flows == flows
        };
        if let Some(latest) = self.latest_replay
            && equal(&self.replays, latest, &self.buffer)
        {
            return Some(latest);
        }
        if self.by_hash.is_empty() {
            return None;
        }
        let found = self.by_hash.get(&hash(&self.buffer)).copied();
        let found = found.filter(|&replay| equal(&self.replays, replay, &self.buffer));
        self.latest_replay = found;
        found
    }

    pub(super) fn replay(
        &mut self,
        index: u32,
        now: f64,
        ledger: &mut FlowLedger,
    ) -> Result<f64, FluidError> {
        let replay = &mut self.replays[index as usize];
        replay.times += 1;
        replay.last_begin = now;
        self.replayed += 1;
        let end = now + replay.duration;
        ledger.replay_flowing(&replay.period, now, end);
        let first = self.next_flow;
        self.next_flow += replay.flows.len() as u32;
        self.next_step += 1;
        self.first_loaded = self.next_flow;
        ledger.last_end = end;
        if ledger.records_flows() {
            // A flow of a step waits for flows of earlier steps, not for flows of its own step.
            let replay = &self.replays[index as usize];
            let before: Vec<u32> = replay
                .flows
                .iter()
                .map(|flow| self.waited_for(flow, None, ledger))
                .collect();
            ledger.replay_flows(StepReplay {
                original: replay.first_flow,
                first,
                begin: now,
                ends: &replay.ends,
                waited_for: before,
            })?;
            for (at, (flow, flow_end)) in (first..).zip(replay.flows.iter().zip(&replay.ends)) {
                interrupt::check();
                let end = now + flow_end;
                for rank in [flow.source, flow.destination] {
                    let last = &mut self.last[rank as usize];
                    if end >= last.1 || last.0 < first {
                        *last = (at, end);
                    }
                }
            }
        }
        Ok(end)
    }

    /// Marks the step in the buffer as seen. Starts to record the step at `now` (ps) if the step
    /// has been seen before.
    pub(super) fn begin_recording(&mut self, now: f64, ledger: &mut FlowLedger) {
        let hash = hash(&self.buffer);
        let again = !self.seen.insert(hash);
        let has_room = self.replay_flows + self.buffer.len() <= MAX_RECORDED_FLOWS;
        if again && has_room && !self.by_hash.contains_key(&hash) {
            ledger.take_snapshot(now);
            self.watched = Some(Watched {
                hash,
                step: self.next_step,
                begin: now,
                flows: self.buffer.clone(),
                first_flow: self.next_flow,
                ends: vec![0.0; self.buffer.len()],
            });
        }
    }

    /// Stores the step that is being recorded, unless another step overlapped with it.
    pub(super) fn finish_recording(&mut self, now: f64, ledger: &mut FlowLedger) {
        let Some(watched) = self.watched.take() else {
            return;
        };
        let Some(period) = ledger.period() else {
            return;
        };
        if watched.step + 1 != self.next_step {
            return;
        }
        self.replay_flows += watched.flows.len();
        self.by_hash.insert(watched.hash, self.replays.len() as u32);
        self.replays.push(RecordedStep {
            duration: now - watched.begin,
            flows: watched.flows,
            ends: watched.ends,
            period,
            first_flow: watched.first_flow,
            times: 0,
            last_begin: 0.0,
        });
    }
}

fn hash(flows: &[StepFlow]) -> u64 {
    let mut hasher = FxHasher::default();
    flows.hash(&mut hasher);
    hasher.finish()
}
