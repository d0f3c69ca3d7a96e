//! The choice among plans: candidates, lower bounds, the fastest; plans after a failure.

pub(super) mod auto;
pub(super) mod bounds;
pub(super) mod contest;
pub(super) mod degraded;
pub(super) mod least;
pub(super) mod named;
pub mod replan;
