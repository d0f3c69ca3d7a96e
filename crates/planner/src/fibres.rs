//! Planners for graphs of fibres, whose lightpaths take any route.

pub(super) mod one_hop;
pub(super) mod relay_forest;
