//! Planners for circuit switches.

pub(super) mod decomposition;
pub(super) mod static_configuration;
pub(super) mod switch_configurations;

/// Maximum number of ranks for which shortest routes are searched. The search visits all circuits
/// for each source.
const MAX_ROUTED_RANKS: u32 = 512;
