//! A step that comes again is not simulated again.
//!
//! When every flow begun so far has ended, nothing of the past bears on the future but the instant:
//! links are free, all ranks may go on. If the next step then has the same flows (ends and sizes, in
//! order) as an earlier step that began and ended so, with no flow of another step beside it, it takes
//! exactly as long and uses links in the same way, shifted in time. The second time such a step comes
//! it is simulated once more and written down; from the third on it is replayed. (So steps that never
//! come again cost no memory but a hash.)

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use super::super::FluidError;
use super::super::flow_log::StepReplay;
use super::super::ledger::{FlowLedger, Stretch};
use super::{StepFlow, Stepped};
use opticoll_base::interrupt;

/// Flows of written-down steps, at most.
const REPLAY_FLOWS: usize = 1 << 20;

/// A step that is written down.
pub(super) struct RecordedStep {
    pub(super) flows: Vec<StepFlow>,
    pub(super) duration: f64,
    /// When each flow ended, after the beginning.
    pub(super) ends: Vec<f64>,
    pub(super) stretch: Stretch,
    /// The flow with which the step began when it was written down.
    pub(super) first_flow: u32,
    pub(super) times: u64,
    pub(super) last_begin: f64,
}

/// A step that began when all was quiet, and which is to be written down.
pub(super) struct Watched {
    pub(super) hash: u64,
    pub(super) step: usize,
    pub(super) begin: f64,
    pub(super) flows: Vec<StepFlow>,
    pub(super) first_flow: u32,
    pub(super) ends: Vec<f64>,
}

impl Stepped<'_> {
    /// The written-down step with the buffer's flows.
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
            // All flows of a step look back at the steps before, not at one another.
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

    /// Remembers the step in the buffer, and watches it if it has come before.
    pub(super) fn watch(&mut self, now: f64, ledger: &mut FlowLedger) {
        let hash = hash(&self.buffer);
        let again = !self.seen.insert(hash);
        let room = self.replay_flows + self.buffer.len() <= REPLAY_FLOWS;
        if again && room && !self.by_hash.contains_key(&hash) {
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

    /// Writes the watched step down, if it was alone.
    pub(super) fn write_down(&mut self, now: f64, ledger: &mut FlowLedger) {
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
