//! The bidirectional WDM ring: lightpaths around it, each on a channel of its own.

pub mod placement;
pub mod route;
