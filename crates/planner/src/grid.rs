//! Planners for grids: of switches with tunable lasers, of lightpaths.

pub(super) mod halving_exchange;
pub(super) mod pipelined;
pub(super) mod plane_shifts;
