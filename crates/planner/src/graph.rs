//! Planners for links of any graph, and the places of ranks on one.

pub(super) mod concurrent_flow;
pub(super) mod logical_links;
pub(super) mod matching;
pub mod rank_mapping;
pub(super) mod tree_packing;
