//! Planners for any graph of links, and the mapping of ranks to hosts.

pub(super) mod concurrent_flow;
pub(super) mod logical_links;
pub(super) mod matching;
pub mod rank_mapping;
pub(super) mod tree_packing;

/// Maximum work of a search for a candidate of `auto`, in visited links.
const MAX_SEARCH: u64 = 50_000_000;
