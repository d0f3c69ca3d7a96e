//! Prices of the slots of a relay tree, and the cheapest tree at given prices.
//!
//! The ranks that a block has not reached yet form *gaps* between ranks that have it. V_t(n), the
//! least price of filling a gap of n ranks in slots t, t + 1, ..., satisfies the recursion of
//! theorem R8 (`docs/proofs.md`). Here lightpaths have lengths from a short list, so that a table
//! takes O(slots * lengths * N) operations. The right prices depend on the gaps to be filled and on
//! the capacity of each slot: the price of a slot rises if its load in the cheapest tree exceeds
//! its capacity, and falls if there is room (multiplicative weights; Arora, Hazan and Kale, Theory
//! of Computing 2012). The mean of the trees of all rounds approaches the best mixture of trees.

use multiversion::multiversion;

use opticoll_base::interrupt;
use opticoll_base::memory;

/// Price of what is impossible; larger than any other price.
pub(crate) const IMPOSSIBLE: f32 = 1e30;

/// Problem whose prices are tabulated or adjusted.
pub(crate) struct PriceProblem<'a> {
    /// Lengths that lightpaths may have, in links, ascending.
    pub(crate) lengths: &'a [u32],
    /// Maximum total length of the lightpaths of each slot over both directions, in links.
    pub(crate) capacity: &'a [f32],
    /// Price of a rank that is not reached in the last slot; [`IMPOSSIBLE`] if all ranks must be
    /// reached.
    pub(crate) unreached_price: f32,
    /// Maximum ratio of the least price of a tree to the total price of the slots' capacity. Above
    /// this ratio no tree fits, and the adjustment of prices stops.
    pub(crate) max_ratio: f32,
}

/// Values V_t(n) of all slots t and gap sizes n, with the data of a backward search.
pub(crate) struct PriceTable {
    /// `values[t][n]` for t from 0 to the number of slots.
    values: Vec<Vec<f32>>,
    /// `end_costs[t]`: L_t.
    end_costs: Vec<EndCosts>,
}

impl PriceTable {
    /// Tabulates gaps of up to `largest` ranks.
    pub(crate) fn new(error: &PriceProblem<'_>, prices: &[f32], largest: usize) -> PriceTable {
        let slots = prices.len();
        let bytes = table_bytes(slots, largest, error.lengths.len());
        memory::check_forecast("the search of a relay tree", bytes);
        let mut values = vec![Vec::new(); slots + 1];
        let mut end_costs = Vec::with_capacity(slots);
        let unreached = (0..=largest).map(|ranks| ranks as f32 * error.unreached_price);
        values[slots] = unreached.map(|price| price.min(IMPOSSIBLE)).collect();
        for slot in (0..slots).rev() {
            interrupt::check();
            let later = &values[slot + 1];
            let end = EndCosts::new(error.lengths, prices[slot], later);
            let with_one_end = end.min_plus(later);
            values[slot] = end.min_plus(&with_one_end);
            end_costs.push(end);
        }
        end_costs.reverse();
        PriceTable { values, end_costs }
    }

    /// Returns V_t by gap size: the least price of filling a gap from slot `slot` on.
    pub(crate) fn values(&self, slot: usize) -> &[f32] {
        &self.values[slot]
    }

    /// Returns the load of each slot in links, and the total price, if `gaps` (sizes with their
    /// numbers) are filled in the cheapest way from slot 0 on.
    pub(crate) fn loads(&self, gaps: &[(usize, u32)]) -> (Vec<f32>, f32) {
        let slots = self.end_costs.len();
        let sizes = self.values[0].len();
        let mut loads = vec![0.0; slots];
        let mut price = 0.0;
        let mut count = vec![0u32; sizes];
        for &(gap, times) in gaps {
            count[gap] += times;
            price += self.values[0][gap] * times as f32;
        }
        let mut next = vec![0u32; sizes];
        for (slot, load) in loads.iter_mut().enumerate() {
            let (end, later) = (&self.end_costs[slot], &self.values[slot + 1]);
            let sizes = || (1..count.len()).filter(|&gap| count[gap] > 0);
            let (largest, distinct) = (sizes().next_back().unwrap_or(0), sizes().count());
            // The table takes less time than a search through all pairs of ends.
            let from_one_end =
                (distinct * end.lengths.len() > largest).then(|| end.min_plus(&later[..=largest]));
            next.fill(0);
            for (gap, &times) in count.iter().enumerate().skip(1) {
                interrupt::check();
                if times == 0 {
                    continue;
                }
                let (ends, middle) = end.cheapest_split(from_one_end.as_deref(), later, gap);
                next[middle] += times;
                for mut at in ends {
                    while at > 0 {
                        let previous = end.previous[at];
                        let (from, to) = (end.lengths[previous], end.lengths[at]);
                        *load += to as f32 * times as f32;
                        next[to - from - 1] += times;
                        at = previous;
                    }
                }
            }
            std::mem::swap(&mut count, &mut next);
        }
        (loads, price)
    }
}

/// Returns the size in bytes of a table of gaps of up to `largest` ranks.
pub(crate) fn table_bytes(slots: usize, largest: usize, lengths: usize) -> u64 {
    let (slots, largest, lengths) = (slots as u64, largest as u64, lengths as u64);
    let value_bytes = (slots + 1) * (largest + 1) * size_of::<f32>() as u64;
    let entry_bytes = size_of::<(f32, usize, usize)>() as u64;
    value_bytes + slots * (lengths + 1) * entry_bytes
}

/// Costs L_t of the lightpaths from one end of a gap in a slot, by the length of the longest one,
/// including the price of the gaps between them.
struct EndCosts {
    /// 0 and all lengths of lightpaths, ascending.
    lengths: Vec<usize>,
    costs: Vec<f32>,
    /// Index of the next shorter lightpath in the cheapest choice.
    previous: Vec<usize>,
}

impl EndCosts {
    fn new(lengths: &[u32], price: f32, later: &[f32]) -> EndCosts {
        let lengths = lengths.iter().map(|&length| length as usize);
        let lengths: Vec<usize> = std::iter::once(0).chain(lengths).collect();
        let (mut costs, mut previous) = (vec![0.0], vec![0]);
        for (index, &length) in lengths.iter().enumerate().skip(1) {
            interrupt::check();
            // Gaps are tabulated up to the size `later.len()` - 1.
            let near = lengths[..index].partition_point(|from| length - from > later.len());
            let mut best = (IMPOSSIBLE, 0);
            let shorter = lengths[..index].iter().zip(&costs);
            for (at, (from, cost)) in shorter.enumerate().skip(near) {
                let cost = cost + later[length - from - 1];
                if cost < best.0 {
                    best = (cost, at);
                }
            }
            costs.push((best.0 + price * length as f32).min(IMPOSSIBLE));
            previous.push(best.1);
        }
        EndCosts {
            lengths,
            costs,
            previous,
        }
    }

    /// Returns r with r(n) = min over lengths x, including 0, of L(x) + other(n - x).
    fn min_plus(&self, other: &[f32]) -> Vec<f32> {
        min_plus(&self.lengths[1..], &self.costs[1..], other)
    }

    /// Returns the indices of the longest lightpaths from both ends of a gap in the cheapest split,
    /// and the size of the gap that remains between them.
    fn cheapest_split(
        &self,
        from_one_end: Option<&[f32]>,
        later: &[f32],
        gap: usize,
    ) -> ([usize; 2], usize) {
        let within = |longest: usize| {
            let count = self.lengths.partition_point(|length| *length <= longest);
            self.lengths[..count].iter().zip(&self.costs).enumerate()
        };
        // If the least prices with the other end are known, ends that cost more than the cheapest
        // (up to rounding) are skipped.
        let min_total = |length: usize, cost: f32| {
            cost + from_one_end.map_or(0.0, |prices| prices[gap - length])
        };
        let cheapest = match from_one_end {
            Some(_) => within(gap)
                .map(|(_, (&length, &cost))| min_total(length, cost))
                .fold(f32::INFINITY, f32::min),
            None => f32::INFINITY,
        };
        let (mut best, mut ends) = (f32::INFINITY, [0, 0]);
        for (left, (&length, &cost)) in within(gap) {
            if min_total(length, cost) > cheapest * 1.000_01 {
                continue;
            }
            let rest = gap - length;
            for (right, (other, with_other)) in within(rest) {
                let cost = cost + with_other + later[rest - other];
                if cost < best {
                    (best, ends) = (cost, [left, right]);
                }
            }
        }
        let [left, right] = ends.map(|end| self.lengths[end]);
        (ends, gap - left - right)
    }
}

/// Cheapest lightpaths of a slot at a price of a link, given the prices of gaps in later slots.
pub(crate) struct PricedSlot<'a> {
    later: &'a [f32],
    end: EndCosts,
    from_one_end: Vec<f32>,
}

impl<'a> PricedSlot<'a> {
    pub(crate) fn new(lengths: &[u32], price: f32, later: &'a [f32]) -> PricedSlot<'a> {
        let end = EndCosts::new(lengths, price, later);
        PricedSlot {
            from_one_end: end.min_plus(later),
            later,
            end,
        }
    }

    /// Returns the lengths of the lightpaths from both ends of a gap, in links, descending.
    pub(crate) fn lengths(&self, gap: usize) -> [Vec<u32>; 2] {
        let from_one_end = Some(&self.from_one_end[..]);
        let (ends, _) = self.end.cheapest_split(from_one_end, self.later, gap);
        ends.map(|longest| {
            let previous = |at: &usize| Some(self.end.previous[*at]);
            let indices = std::iter::successors(Some(longest), previous);
            let indices = indices.take_while(|at| *at > 0);
            indices.map(|at| self.end.lengths[at] as u32).collect()
        })
    }
}

/// Number of values that [`min_plus`] keeps in registers while it visits all lengths: all that the
/// widest registers hold.
const VALUES_PER_PASS: usize = 128;

/// Returns r with r(n) = the least of other(n) and, over all lengths x, cost(x) + other(n - x).
#[multiversion(targets("x86_64+avx+avx2+avx512f+avx512vl", "x86_64+avx+avx2"))]
fn min_plus(lengths: &[usize], costs: &[f32], other: &[f32]) -> Vec<f32> {
    let longest = lengths.last().copied().unwrap_or(0);
    // Values at negative n are impossible.
    let mut padded = vec![IMPOSSIBLE; longest];
    padded.extend_from_slice(other);
    padded.resize(
        padded.len().next_multiple_of(VALUES_PER_PASS) + VALUES_PER_PASS,
        IMPOSSIBLE,
    );
    let mut result = other.to_vec();
    for (first, values) in (0..)
        .step_by(VALUES_PER_PASS)
        .zip(result.chunks_mut(VALUES_PER_PASS))
    {
        interrupt::check();
        let mut least = [IMPOSSIBLE; VALUES_PER_PASS];
        least[..values.len()].copy_from_slice(values);
        for (length, cost) in lengths.iter().zip(costs) {
            if *length >= first + VALUES_PER_PASS {
                break;
            }
            let rest = &padded[first + longest - length..][..VALUES_PER_PASS];
            for (least, rest) in least.iter_mut().zip(rest) {
                // Compiles to one vector instruction, unlike `f32::min`.
                let other = cost + rest;
                *least = if other < *least { other } else { *least };
            }
        }
        values.copy_from_slice(&least[..values.len()]);
    }
    result
}

/// Returns the distinct sizes of gaps, ascending, each with its number of gaps.
pub(crate) fn count_by_size(sizes: impl Iterator<Item = u32>) -> Vec<(usize, u32)> {
    let mut sizes: Vec<u32> = sizes.collect();
    sizes.sort_unstable();
    let runs = sizes.chunk_by(|size, next| size == next);
    runs.map(|same| (same[0] as usize, same.len() as u32))
        .collect()
}

/// Adjusts `prices` for `gaps` (sizes with their numbers) in `rounds` rounds. `learning_rate` is
/// the initial relative change of a price per relative overload. Returns the greatest ratio of the
/// least price of a tree to the total price of the slots' capacity. No mixture of trees fits the
/// slots if the ratio exceeds 1 by more than rounding errors.
pub(crate) fn adjust(
    error: &PriceProblem<'_>,
    gaps: &[(usize, u32)],
    prices: &mut [f32],
    rounds: usize,
    learning_rate: f32,
) -> f32 {
    let largest = gaps.iter().map(|&(gap, _)| gap).max().unwrap_or(0);
    if prices.is_empty() || largest == 0 {
        return 0.0;
    }
    let mut ratio = 0.0f32;
    let mut mean = vec![0.0; prices.len()];
    let mut weight = 0.0;
    for round in 0..rounds {
        let table = PriceTable::new(error, prices, largest);
        let (loads, price) = table.loads(gaps);
        if price >= IMPOSSIBLE / 2.0 {
            return f32::INFINITY;
        }
        let supplies = prices.iter().zip(error.capacity);
        let supply: f32 = supplies.map(|(price, capacity)| price * capacity).sum();
        ratio = ratio.max(price / supply);
        if ratio > error.max_ratio {
            return ratio;
        }
        let rate = learning_rate / (1.0 + round as f32).sqrt();
        for ((price, load), capacity) in prices.iter_mut().zip(&loads).zip(error.capacity) {
            let overload = (load / capacity - 1.0).clamp(-1.0, 2.0);
            *price = (*price * (rate * overload).exp()).clamp(1e-3, 1e3);
        }
        let total: f32 = prices.iter().sum();
        let scale = prices.len() as f32 / total;
        prices.iter_mut().for_each(|price| *price *= scale);
        if 2 * round >= rounds {
            weight += 1.0;
            mean.iter_mut()
                .zip(prices.iter())
                .for_each(|(mean, price)| *mean += price);
        }
    }
    if weight > 0.0 {
        for (price, mean) in prices.iter_mut().zip(&mean) {
            *price = mean / weight;
        }
    }
    ratio
}
