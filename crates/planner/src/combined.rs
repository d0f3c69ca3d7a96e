//! Planners that put plans of others together, or ask those of a family.

pub(super) mod pipelined;
pub(super) mod shifts;
pub(super) mod signals;
pub(super) mod two_phases;
