//! Planners for circuit switches.

pub(super) mod decomposition;
pub(super) mod kept_setting;
pub(super) mod settings;
