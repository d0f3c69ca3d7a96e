//! Planners that put plans of other collectives together.

pub(super) mod signals;
pub(super) mod two_phases;
