//! Planners for grids: of switches with tunable lasers, of lightpaths.

pub(super) mod pipelined;
