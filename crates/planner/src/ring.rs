//! Planners for WDM rings.

pub(super) mod bundles;
pub(super) mod collectors;
pub(super) mod detour;
pub(super) mod grouped;
pub(super) mod pipelined;
pub(super) mod radix_tree;
pub(super) mod recipe;
pub(super) mod relay_tree;
pub(super) mod slot_cost;
pub(super) mod store_and_forward;
pub(super) mod tree;
