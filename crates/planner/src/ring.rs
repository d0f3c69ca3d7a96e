//! Planners for rings of wavelengths.

pub(super) mod bundles;
pub(super) mod collectors;
pub(super) mod detour;
pub(super) mod few_slots;
pub(super) mod grouped;
pub(super) mod pipelined;
pub(super) mod relay_tree;
pub(super) mod slot_cost;
pub(super) mod store_and_forward;
pub(super) mod tree;
pub(super) mod unfold;
