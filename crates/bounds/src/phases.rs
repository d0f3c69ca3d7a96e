//! Minimum number of slots if circuits change a limited number of times.
//!
//! A *phase* is a sequence of s slots in which no circuit changes. In a phase, data of one block
//! reach at most n(s) ranks from each rank that had some of these data before the phase. After
//! phases of s_1, ..., s_P slots, the data are at most at n(s_1) ... n(s_P) ranks. If n(s + 1) /
//! n(s) falls with s, this product is greatest if the s_i differ by at most 1 (theorem A3).

use crate::hop_counts::power;

/// Returns the minimum number of slots, divided into `phases` phases of at least one slot each,
/// after which data of one rank can be at all `ranks` ranks. `within(s)` is n(s), the maximum
/// number of ranks that data reach in a phase of s slots. `None` if no number of slots is enough,
/// for example if n(s) is always 2 and `phases` is small.
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
