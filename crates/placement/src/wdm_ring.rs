//! Placement on the bidirectional WDM ring: a direction and a channel for each lightpath.

pub mod placement;
pub mod route;
