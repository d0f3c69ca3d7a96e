//! What a plan was chosen from.

use opticoll::planner::{Candidate, LeftOut};

/// What was asked for, and what the plan was chosen from and why; no part of the plan itself.
#[derive(Default)]
pub(super) struct Choice {
    pub(super) asked: Option<String>,
    pub(super) candidates: Vec<Candidate>,
    pub(super) reasons: Vec<String>,
}

impl Choice {
    /// Each candidate with its slots, its picoseconds and why it was left out, if it was.
    pub(super) fn rows(&self) -> Vec<(&str, u64, u64, String)> {
        let candidates = self.candidates.iter();
        candidates
            .map(|one| {
                let reason = one.left_out.as_ref().map(LeftOut::to_string);
                let time = one.time.ps();
                (
                    one.name.as_str(),
                    one.slots,
                    time,
                    reason.unwrap_or_default(),
                )
            })
            .collect()
    }
}
