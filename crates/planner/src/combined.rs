//! Planners that put plans of other collectives together.

pub(super) mod mirror;
pub(super) mod signals;
pub(super) mod two_phases;
