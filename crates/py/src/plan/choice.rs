//! The candidates that a planner compared, and the reasons for its choice.

use opticoll::planner::{CandidateResult, LeftOut};

/// The name of a candidate, its number of slots, its time in picoseconds, and the reason why it was
/// left out (empty if it was simulated).
pub(crate) type CandidateRow = (String, u64, u64, String);

/// The request for a plan, the candidates and the reasons of the choice. The text of a plan does
/// not contain them.
#[derive(Default)]
pub(crate) struct Choice {
    pub(crate) asked: Option<String>,
    pub(crate) candidates: Vec<CandidateRow>,
    pub(crate) reasons: Vec<String>,
}

pub(super) fn row(candidate: &CandidateResult) -> CandidateRow {
    let reason = candidate.left_out.as_ref().map(LeftOut::to_string);
    let reason = reason.unwrap_or_default();
    (
        candidate.name.clone(),
        candidate.slots,
        candidate.time.ps(),
        reason,
    )
}
