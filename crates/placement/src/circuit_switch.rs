//! Ranks whose ports an optical circuit switch joins.

pub mod placement; // from a schedule to a plan
pub mod ways; // over which ranks messages go
