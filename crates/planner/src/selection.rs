//! Selection of the fastest plan: candidates, their lower bounds, and their simulation. Also new
//! plans after a failure.

pub(super) mod auto;
pub(super) mod candidate_bound;
pub(super) mod degraded;
pub(super) mod evaluation;
pub(super) mod named;
pub mod replan;
pub(super) mod ring_and_graph;
pub(super) mod stated_bound;
