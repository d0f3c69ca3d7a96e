//! The choice among plans: candidates, lower bounds, and the fastest plan; new plans after a
//! failure.

pub(super) mod auto;
pub(super) mod bounds;
pub(super) mod degraded;
pub(super) mod evaluation;
pub(super) mod lower_bound;
pub(super) mod named;
pub mod replan;
