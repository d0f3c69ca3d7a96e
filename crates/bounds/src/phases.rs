//! Number of slots between changes of circuits.
//!
//! In a *phase* of s slots no circuit changes, and something of one rank comes to at most n(s)
//! ranks, counted from each rank that had it before. After phases of s_1, ..., s_P slots it is at
//! most at n(s_1) ... n(s_P) ranks. If n(s + 1) / n(s) falls with s, this product is greatest if
//! the s_i differ by at most 1 (theorem A3).

use crate::hop_counts::power;

/// Returns the least number of slots, in `phases` phases of at least one slot, after which all
/// ranks may have something of one rank; `within` is n. `None` if no number of slots is enough, as
/// with n = 2 and few phases.
pub(crate) fn least_slots(ranks: u64, phases: u64, within: impl Fn(u64) -> u128) -> Option<u64> {
    let phases = phases.max(1);
    let reached = |slots: u64| {
        let (each, more) = (slots / phases, slots % phases);
        let longer = power(within(each + 1), more);
        longer.saturating_mul(power(within(each), phases - more))
    };
    // A phase with as many slots as ranks reaches as many ranks as any longer phase.
    let (mut too_few, mut enough) = (phases - 1, phases.max(ranks));
    if reached(enough) < u128::from(ranks) {
        return None;
    }
    while enough - too_few > 1 {
        let middle = too_few + (enough - too_few) / 2;
        match reached(middle) >= u128::from(ranks) {
            true => enough = middle,
            false => too_few = middle,
        }
    }
    Some(enough)
}
