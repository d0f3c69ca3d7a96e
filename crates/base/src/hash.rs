//! Hash function and shuffle that give the same numbers on every platform.

/// Returns the output of SplitMix64 for the state `value` (Steele, Lea, Flood, Fast Splittable
/// Pseudorandom Number Generators, 2014). The function is a bijection on 64 bits that maps
/// neighbouring inputs to distant outputs.
///
/// ```
/// // The first output of SplitMix64 with seed 0.
/// assert_eq!(opticoll_base::hash::hash(0), 0xE220_A839_7B1D_CDAF);
/// ```
#[inline]
pub fn hash(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Returns the numbers from 0 to `count` - 1, shuffled by the algorithm of Fisher and Yates. For
/// each index i from `count` - 1 down to 1, the state (at first `seed`) is replaced by its hash,
/// and the elements i and (state mod (i + 1)) are exchanged.
pub fn shuffled(count: u32, seed: u64) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    let mut state = seed;
    for last in (1..order.len()).rev() {
        state = hash(state);
        order.swap(last, (state % (last as u64 + 1)) as usize);
    }
    order
}
