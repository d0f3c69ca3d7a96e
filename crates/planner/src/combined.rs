//! Planners that combine the plans of other planners, or serve several families.

pub(super) mod pipelined;
pub(super) mod shifts;
pub(super) mod signals;
pub(super) mod two_phases;
