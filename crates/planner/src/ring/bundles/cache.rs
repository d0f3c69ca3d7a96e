//! Cache of a thread's latest searches: an all_reduce searches its own recipe and that of its halves, and its halves
//! are searched again as phases of other plans.

use std::cell::RefCell;
use std::collections::VecDeque;

use super::Bundles;
use super::pace::Pace;
use opticoll_fabric::family::wdm_ring::WdmRing;

/// A recipe with its tree, after its time in picoseconds.
pub(super) type TimedRecipe = (u64, Bundles);

/// Number of searches that are kept: the all_reduce and its halves, for two sizes of a block.
const MAX_CACHED: usize = 4;

thread_local! {
    /// The latest first.
    static SEARCHES: RefCell<VecDeque<(WdmRing, Pace, Option<TimedRecipe>)>> =
        const { RefCell::new(VecDeque::new()) };
}

/// Returns the cached result of a search, or searches.
pub(super) fn fastest(
    ring: &WdmRing,
    pace: &Pace,
    search: impl FnOnce() -> Option<TimedRecipe>,
) -> Option<TimedRecipe> {
    let cached = SEARCHES.with_borrow(|searches| {
        let same = searches.iter().find(|one| (&one.0, &one.1) == (ring, pace));
        same.map(|(_, _, fastest)| fastest.clone())
    });
    cached.unwrap_or_else(|| {
        let fastest = search();
        SEARCHES.with_borrow_mut(|searches| {
            searches.truncate(MAX_CACHED - 1);
            searches.push_front((ring.clone(), pace.clone(), fastest.clone()));
        });
        fastest
    })
}
