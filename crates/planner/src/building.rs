//! Building blocks of planners: assembly of plans, striping, and reversal in time.

pub(crate) mod assembly;
pub(crate) mod striping;
pub(crate) mod time_reversal;

use opticoll_plan::schedule::{Claims, Schedule};

/// Returns claims that state the schedule's number of steps.
pub(crate) fn claim_steps(schedule: &Schedule) -> Claims {
    Claims {
        schedule_steps: Some(schedule.steps() as u32),
        ..Claims::default()
    }
}
