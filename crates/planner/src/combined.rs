//! Planners that combine the plans of other planners, or serve several families.

pub(super) mod barrier_from_plan;
pub(super) mod per_rail;
pub(super) mod pipelined;
pub(super) mod shifts;
pub(super) mod two_phases;
pub(super) mod united;
