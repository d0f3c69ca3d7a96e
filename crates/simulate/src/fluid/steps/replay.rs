//! Replay of repeated steps.
//!
//! When all flows so far have ended, the past affects the future only through the present instant:
//! links are free, and all ranks may continue. If the next step then has the same flows (ranks and
//! sizes, in order) as an earlier step that began and ended in this state, without flows of other
//! steps, it takes exactly as long and uses links in the same way, shifted in time. At its second
//! occurrence such a step is simulated once more and recorded; from the third occurrence on it is
//! replayed. Steps that never repeat therefore cost only the memory of a hash.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::super::FluidError;
use super::super::flow_log::StepReplay;
use super::super::ledger::{FlowLedger, Stretch};
use super::{StepFlow, Stepped};
use opticoll_base::interrupt;

/// Maximum number of flows of all recorded steps.
const MAX_RECORDED_FLOWS: usize = 1 << 20;

/// Recorded step.
pub(super) struct RecordedStep {
    pub(super) flows: Vec<StepFlow>,
    pub(super) duration: f64,
    /// End of each flow after the beginning of the step (ps).
    pub(super) ends: Vec<f64>,
    pub(super) stretch: Stretch,
    /// Index of the first flow of the step when it was recorded.
    pub(super) first_flow: u32,
    pub(super) times: u64,
    pub(super) last_begin: f64,
}

/// Step that began when no flow was under way and is being recorded.
pub(super) struct Watched {
    pub(super) hash: u64,
    pub(super) step: usize,
    pub(super) begin: f64,
    pub(super) flows: Vec<StepFlow>,
    pub(super) first_flow: u32,
    pub(super) ends: Vec<f64>,
}

impl Stepped<'_> {
    /// Returns the recorded step with the flows of the buffer.
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
        ledger.replay_flowing(&replay.stretch, now, end);
        let first = self.next_flow;
        self.next_flow += replay.flows.len() as u32;
        self.next_step += 1;
        self.first_loaded = self.next_flow;
        ledger.last_end = end;
        if ledger.records_flows() {
            // The flows of a step refer to earlier steps, not to each other.
            let replay = &self.replays[index as usize];
            let before: Vec<u32> = replay
                .flows
                .iter()
                .map(|flow| self.waited_for(flow, ledger))
                .collect();
            ledger.replay_flows(StepReplay {
                like: replay.first_flow,
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

    /// Remembers the step in the buffer, and starts to record it if it has occurred before.
    pub(super) fn watch(&mut self, now: f64, ledger: &mut FlowLedger) {
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

    /// Keeps the step that is being recorded, if no other step overlapped with it.
    pub(super) fn keep_watched(&mut self, now: f64, ledger: &mut FlowLedger) {
        let Some(watched) = self.watched.take() else {
            return;
        };
        let Some(stretch) = ledger.stretch() else {
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
            stretch,
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
