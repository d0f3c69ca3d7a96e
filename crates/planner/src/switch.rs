//! Planners for circuit switches.

pub(super) mod decomposition;
pub(super) mod static_configuration;
pub(super) mod switch_configurations;
