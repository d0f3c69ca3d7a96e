//! Planners for grids of switches with tunable lasers, and for grids of lightpaths.

pub(super) mod pipelined;
