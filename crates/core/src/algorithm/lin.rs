//! Linear scatter: the root sends every block straight to its rank, ascending from itself, one after
//! the other.

use super::AlgorithmError;
use crate::collective::{Collective, CollectiveKind};
use crate::schedule::{Claims, Schedule, Transfer};

/// The scatter, in one step.
///
/// # Errors
/// No such root, or no rank at all.
pub fn scatter(ranks: u32, root: u32) -> Result<Schedule, AlgorithmError> {
    let collective = Collective::new(CollectiveKind::Scatter, ranks)?.with_root(root)?;
    let mut schedule = Schedule::new(collective);
    schedule.begin_step();
    for place in 1..ranks {
        let rank = (root + place) % ranks;
        schedule.push(Transfer::copy(rank, root, rank));
    }
    schedule.claims = Claims {
        schedule_steps: Some(1),
        ..Claims::default()
    };
    Ok(schedule)
}
