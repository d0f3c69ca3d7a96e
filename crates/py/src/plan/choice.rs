//! What a plan was chosen from.

use opticoll::planner::{CandidateResult, LeftOut};

/// A candidate with its slots, its picoseconds and why it was left out, if it was.
pub(crate) type CandidateRow = (String, u64, u64, String);

/// What was asked for, and what the plan was chosen from and why; no part of the plan itself.
#[derive(Default)]
pub(crate) struct Choice {
    pub(crate) asked: Option<String>,
    pub(crate) candidates: Vec<CandidateRow>,
    pub(crate) reasons: Vec<String>,
}

pub(super) fn row(one: &CandidateResult) -> CandidateRow {
    let reason = one.left_out.as_ref().map(LeftOut::to_string);
    let reason = reason.unwrap_or_default();
    (one.name.clone(), one.slots, one.time.ps(), reason)
}
