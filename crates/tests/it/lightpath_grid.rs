//! Port-limited collectives over lightpaths: plans, verdicts of the verifier, and times against the
//! paper's formulas and a slow simulation.

mod bounds;
mod exhaustive;
mod planners;
mod rules;
mod slow;
mod timing;

use opticoll::collective::CollectiveKind;

pub(crate) use crate::placed as proved;

/// Lists the algorithms, with their collectives, that need no wavelengths and accept this number of
/// ranks.
fn algorithms(ranks: u32) -> impl Iterator<Item = (CollectiveKind, &'static str)> {
    crate::general_algorithms()
        .filter(move |record| (record.accepts)(ranks).is_ok())
        .filter(|record| !["wrht", "one_stage"].contains(&record.name))
        .map(|record| (record.collective, record.name))
}
