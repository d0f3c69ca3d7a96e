//! Slots between instants at which circuits change.
//!
//! In a *phase* of s slots no circuit changes, and something of one rank comes to n(s) ranks at
//! most, counted from each that had it before. After phases of s_1, ..., s_P slots it is at n(s_1)
//! ... n(s_P) ranks, which is most when the s_i differ by 1 at most (theorem A3; n(s + 1) / n(s)
//! must fall with s).

/// The least number of slots in so many phases, at least 1 and one slot each, after which all ranks may have something of
/// one, where `within` is n. `None` where no number of slots is enough, as where n stays at 2 and there are few phases.
pub(crate) fn least_slots(ranks: u64, phases: u64, within: impl Fn(u64) -> u128) -> Option<u64> {
    let phases = phases.max(1);
    let reached = |slots: u64| {
        let (each, more) = (slots / phases, slots % phases);
        let longer = power(within(each + 1), more);
        longer.saturating_mul(power(within(each), phases - more))
    };
    // A phase of as many slots as ranks reaches as far as any.
    let (mut few, mut enough) = (phases - 1, phases.max(ranks));
    if reached(enough) < u128::from(ranks) {
        return None;
    }
    while enough - few > 1 {
        let middle = few + (enough - few) / 2;
        match reached(middle) >= u128::from(ranks) {
            true => enough = middle,
            false => few = middle,
        }
    }
    Some(enough)
}

fn power(base: u128, exponent: u64) -> u128 {
    base.saturating_pow(u32::try_from(exponent).unwrap_or(u32::MAX))
}
