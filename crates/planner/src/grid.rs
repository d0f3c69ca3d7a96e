//! Planners for grids: of switches with tunable lasers, and of lightpaths.

pub(super) mod pipelined;
