//! Placement on the lightpath grid: lightpaths that are set up on demand.

pub mod placement;
