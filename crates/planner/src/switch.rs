//! Planners for circuit switches, and of shifts on grids of switches.

pub(super) mod decomposition;
pub(super) mod kept_setting;
pub(super) mod settings;
pub(super) mod shifts;
