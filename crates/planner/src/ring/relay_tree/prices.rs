//! Prices per link of the slots of a relay tree, and the cheapest tree at given prices.
//!
//! A *gap* is a run of consecutive ranks that do not have the block yet. The minimum price V_t(n)
//! of reaching the n ranks of a gap in slots t, t + 1, ... satisfies the recursion of theorem R8
//! (`docs/proofs.md`). With a short list of lengths of lightpaths, the computation of V takes
//! O(slots * lengths * N) operations.
//!
//! The prices are adjusted to the gaps and to the capacity of each slot, in several rounds: the
//! price of a slot increases if the load of the slot in the cheapest tree exceeds the capacity, and
//! decreases if the load is below the capacity (multiplicative weights; Arora, Hazan and Kale,
//! Theory of Computing 2012).

use multiversion::multiversion;

use opticoll_base::interrupt;
use opticoll_base::memory;

/// Price that marks an impossible choice. (All other prices are lower.)
pub(crate) const IMPOSSIBLE: f32 = 1e30;

/// Parameters of the computation of link prices.
pub(crate) struct PriceProblem<'a> {
    /// Lengths that lightpaths may have, in links, ascending.
    pub(crate) lengths: &'a [u32],
    /// Capacity, indexed by slot: the maximum total length of the lightpaths of both directions, in
    /// links.
    pub(crate) capacity: &'a [f32],
    /// Price of a rank that does not receive the block in any slot. [`IMPOSSIBLE`] if all ranks
    /// must receive the block.
    pub(crate) unreached_price: f32,
    /// Maximum ratio of the minimum price of a tree to the total price of the links of all slots.
    /// Above this ratio, the adjustment of prices stops, because no acceptable tree exists.
    pub(crate) max_ratio: f32,
}

/// Minimum prices of reaching n consecutive ranks, for all n and all slots, and data for computing
/// the cheapest trees.
pub(crate) struct PriceTable {
    /// `values[t][n]` is the minimum price of reaching n consecutive ranks in slots t, t + 1, ...
    values: Vec<Vec<f32>>,
    /// Cheapest lightpaths from one end of a gap, indexed by slot.
    end_costs: Vec<EndCosts>,
}

impl PriceTable {
    /// Computes the table for up to `largest` consecutive ranks. `prices` is the price of a link,
    /// indexed by slot.
    pub(crate) fn new(problem: &PriceProblem<'_>, prices: &[f32], largest: usize) -> PriceTable {
        let slots = prices.len();
        let bytes = table_bytes(slots, largest, problem.lengths.len());
        memory::check_forecast("the search of a relay tree", bytes);
        let mut values = vec![Vec::new(); slots + 1];
        let mut end_costs = Vec::with_capacity(slots);
        let unreached = (0..=largest).map(|ranks| ranks as f32 * problem.unreached_price);
        values[slots] = unreached.map(|price| price.min(IMPOSSIBLE)).collect();
        for slot in (0..slots).rev() {
            interrupt::check();
            let later = &values[slot + 1];
            let end = EndCosts::new(problem.lengths, prices[slot], later);
            let with_one_end = end.min_plus(later);
            values[slot] = end.min_plus(&with_one_end);
            end_costs.push(end);
        }
        end_costs.reverse();
        PriceTable { values, end_costs }
    }

    /// Returns the minimum price of reaching n consecutive ranks in slot `slot` and later slots,
    /// indexed by n.
    pub(crate) fn values(&self, slot: usize) -> &[f32] {
        &self.values[slot]
    }

    /// Computes the cheapest tree for each gap. Returns the total length of the lightpaths in
    /// links, indexed by slot, and the total price. Each entry of `gaps` is a gap size in ranks,
    /// and the number of gaps of this size.
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
            // With many distinct sizes, this table is faster than a search over all pairs of ends.
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

/// Returns the size in bytes of a [`PriceTable`] for `slots` slots and up to `largest` consecutive
/// ranks. `lengths` is the number of lightpath lengths.
pub(crate) fn table_bytes(slots: usize, largest: usize, lengths: usize) -> u64 {
    let (slots, largest, lengths) = (slots as u64, largest as u64, lengths as u64);
    let value_bytes = (slots + 1) * (largest + 1) * size_of::<f32>() as u64;
    let entry_bytes = size_of::<(f32, usize, usize)>() as u64;
    value_bytes + slots * (lengths + 1) * entry_bytes
}

/// Cheapest sets of lightpaths of a slot from one end of a gap. In set i, the longest lightpath has
/// `lengths[i]` links.
struct EndCosts {
    /// Number of links of the longest lightpath of each set, ascending. Set 0 is empty and has
    /// length 0.
    lengths: Vec<usize>,
    /// Price of each set: the price of its lightpaths, plus the price of reaching the ranks between
    /// their receivers in later slots.
    costs: Vec<f32>,
    /// Index in `lengths` of the second-longest lightpath of each set.
    previous: Vec<usize>,
}

impl EndCosts {
    fn new(lengths: &[u32], price: f32, later: &[f32]) -> EndCosts {
        let lengths = lengths.iter().map(|&length| length as usize);
        let lengths: Vec<usize> = std::iter::once(0).chain(lengths).collect();
        let (mut costs, mut previous) = (vec![0.0], vec![0]);
        for (index, &length) in lengths.iter().enumerate().skip(1) {
            interrupt::check();
            // The prices of gaps are known up to the size `later.len()` - 1.
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

    /// Returns a table indexed by n: the minimum of `costs[i] + other[n - lengths[i]]` over all i.
    fn min_plus(&self, other: &[f32]) -> Vec<f32> {
        min_plus(&self.lengths[1..], &self.costs[1..], other)
    }

    /// Finds the cheapest sets of lightpaths from both ends of a gap of `gap` unreached ranks.
    /// Returns the indices of the two sets, and the number of ranks between the receivers of their
    /// longest lightpaths.
    ///
    /// `later` is the price of reaching n consecutive ranks in later slots, indexed by n. The
    /// search is faster if `from_one_end` is given: the minimum price of reaching n consecutive
    /// ranks with lightpaths from one end only, indexed by n.
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
        // With the prices of one end, skip lightpaths that cannot be part of a cheapest choice.
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
            let remaining = gap - length;
            for (right, (other, with_other)) in within(remaining) {
                let cost = cost + with_other + later[remaining - other];
                if cost < best {
                    (best, ends) = (cost, [left, right]);
                }
            }
        }
        let [left, right] = ends.map(|end| self.lengths[end]);
        (ends, gap - left - right)
    }
}

/// Cheapest lightpaths of a slot for gaps of any size.
pub(crate) struct PricedSlot<'a> {
    /// Price of reaching n consecutive ranks in later slots, indexed by n.
    later: &'a [f32],
    end: EndCosts,
    /// Minimum price of reaching n consecutive ranks with lightpaths from one end only, indexed by
    /// n.
    from_one_end: Vec<f32>,
}

impl<'a> PricedSlot<'a> {
    /// Computes the cheapest lightpaths. `lengths` are the possible lengths of lightpaths in links.
    /// `price` is the price of a link of the slot. `later` is the price of reaching n consecutive
    /// ranks in later slots, indexed by n.
    pub(crate) fn new(lengths: &[u32], price: f32, later: &'a [f32]) -> PricedSlot<'a> {
        let end = EndCosts::new(lengths, price, later);
        PricedSlot {
            from_one_end: end.min_plus(later),
            later,
            end,
        }
    }

    /// Returns the lengths, in links, of the cheapest lightpaths for a gap of `gap` unreached
    /// ranks. The first list has the lengths from the near end, the second list those from the far
    /// end. Each list is descending.
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

/// Number of results that [`min_plus`] computes at the same time. (The results fit into the vector
/// registers of processors with 512-bit registers.)
const VALUES_PER_PASS: usize = 128;

/// Returns a table indexed by n: the minimum of `other[n]` and of `costs[i] + other[n -
/// lengths[i]]` over all i.
#[multiversion(targets("x86_64+avx+avx2+avx512f+avx512vl", "x86_64+avx+avx2"))]
fn min_plus(lengths: &[usize], costs: &[f32], other: &[f32]) -> Vec<f32> {
    let longest = lengths.last().copied().unwrap_or(0);
    // Negative indices of `other` are impossible.
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
            let shifted = &padded[first + longest - length..][..VALUES_PER_PASS];
            for (least, shifted) in least.iter_mut().zip(shifted) {
                // Compiles to one vector instruction, unlike `f32::min`.
                let other = cost + shifted;
                *least = if other < *least { other } else { *least };
            }
        }
        values.copy_from_slice(&least[..values.len()]);
    }
    result
}

/// Returns each distinct size, ascending, and the number of times that the size occurs.
pub(crate) fn count_by_size(sizes: impl Iterator<Item = u32>) -> Vec<(usize, u32)> {
    let mut sizes: Vec<u32> = sizes.collect();
    sizes.sort_unstable();
    let runs = sizes.chunk_by(|size, next| size == next);
    runs.map(|same| (same[0] as usize, same.len() as u32))
        .collect()
}

/// Adjusts the prices of a link (indexed by slot) in `rounds` rounds.
///
/// Returns the greatest ratio, over all rounds, of the minimum price of reaching all ranks to the
/// total price of the links of all slots. If the ratio exceeds 1, no tree fits into the slots.
///
/// Each entry of `gaps` is a gap size in ranks, and the number of gaps of this size. Let x be the
/// relative overload of a slot (its load divided by its capacity, minus 1). In the first round, the
/// price of a link of the slot is multiplied by exp(`learning_rate` x).
pub(crate) fn adjust(
    problem: &PriceProblem<'_>,
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
        let table = PriceTable::new(problem, prices, largest);
        let (loads, price) = table.loads(gaps);
        if price >= IMPOSSIBLE / 2.0 {
            return f32::INFINITY;
        }
        let slots = prices.iter().zip(problem.capacity);
        let capacity_price: f32 = slots.map(|(price, capacity)| price * capacity).sum();
        ratio = ratio.max(price / capacity_price);
        if ratio > problem.max_ratio {
            return ratio;
        }
        let rate = learning_rate / (1.0 + round as f32).sqrt();
        for ((price, load), capacity) in prices.iter_mut().zip(&loads).zip(problem.capacity) {
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
