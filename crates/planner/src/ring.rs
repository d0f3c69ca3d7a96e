//! Planners for WDM rings.

pub(super) mod aggregated_trees;
pub(super) mod faulty_ring;
pub(super) mod gateways;
pub(super) mod hierarchical;
pub(super) mod pipelined;
pub(super) mod radix_tree;
pub(super) mod recipe;
pub(super) mod relay_tree;
pub(super) mod slot_cost;
pub(super) mod store_and_forward;
pub(super) mod tree;
