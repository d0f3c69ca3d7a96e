//! Building blocks of planners: assembly of plans, striping, and reversal in time.

pub(crate) mod assembly;
pub(crate) mod striping;
pub(crate) mod time_reversal;

use opticoll_plan::schedule::{Claims, Schedule};

/// Maximum number of pieces, stripes, chunks or trees that an option accepts, which bounds the
/// memory of a plan.
pub(crate) const MAX_PARTS: u32 = 4096;

/// Maximum number of transfers of the plans that a planner builds and simulates in a search of its
/// own: about two seconds at 1,000,000 transfers per second. Half of it is the number from which a
/// single plan counts as large.
pub(crate) const SEARCHED_TRANSFERS: u64 = 1 << 21;

/// Number of plans that a planner tries for a part of its own plan, such as a phase, a rail or the
/// ring without faults, because some plans do not fit. (Four plans of two phases are 16 pairs.)
pub(crate) const PLANS_OF_PART: usize = 4;

/// Maximum number of plans of one planner among the candidates of `auto`, or for one graph.
pub(crate) const MAX_CANDIDATES: usize = 3;

/// Divisor d: two times count as nearly equal if they differ by at most 1/d of the shorter time.
pub(crate) const GAIN_DIVISOR: u64 = 300;

/// Returns claims that state the schedule's number of steps.
pub(crate) fn claim_steps(schedule: &Schedule) -> Claims {
    Claims {
        schedule_steps: Some(schedule.steps() as u32),
        ..Claims::default()
    }
}
