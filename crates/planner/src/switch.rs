//! Planners for circuit switches.

pub(super) mod decomposition;
pub(super) mod kept_setting;
pub(super) mod rotor;
pub(super) mod settings;
pub(super) mod shifts;
