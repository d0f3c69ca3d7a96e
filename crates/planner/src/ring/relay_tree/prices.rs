//! Prices for the steps of a relay tree, and the cheapest tree at given prices.
//!
//! The ranks that a block has not reached yet form *gaps* between its holders. V_t(n), the least
//! price of filling a gap of n ranks in steps t, t + 1, ..., satisfies the recursion of
//! `bound::price`; here lightpaths have lengths from a short list, so that a table takes
//! O(steps * lengths * N). Which prices are right depends on the gaps to be filled and on the
//! capacity of each step: a step whose load in the cheapest tree exceeds its capacity becomes dearer,
//! one with room becomes cheaper (multiplicative weights; Arora, Hazan and Kale, Theory of Computing
//! 2012). The mean of the trees met on the way approaches the best mixture.

use multiversion::multiversion;

use opticoll_base::interrupt;
use opticoll_base::memory;

/// Larger than any price.
pub(crate) const UNREACHED: f32 = 1e30;

/// What a table is made for.
pub(crate) struct PriceProblem<'a> {
    /// Lengths that lightpaths may have, ascending.
    pub(crate) lengths: &'a [u32],
    /// Total length of each step, over both directions.
    pub(crate) capacity: &'a [f32],
    /// The price of a rank that is left after the last step, [`UNREACHED`] where none may be.
    pub(crate) left_over: f32,
    /// A ratio of least price to supply from where on adjusting is given up, for no tree fits the steps.
    pub(crate) hopeless: f32,
}

/// V_t(n) for steps 0..steps, and what a backward search needs.
pub(crate) struct PriceTable {
    /// `values[t][n]` for t in 0..=steps.
    values: Vec<Vec<f32>>,
    /// `reaches[t]`: L_t.
    reaches: Vec<Reach>,
}

impl PriceTable {
    /// The tables of gaps up to `most` ranks.
    pub(crate) fn new(problem: &PriceProblem<'_>, prices: &[f32], most: usize) -> PriceTable {
        let steps = prices.len();
        let bytes = table_bytes(steps, most, problem.lengths.len());
        memory::take("the search of a relay tree", bytes);
        let mut values = vec![Vec::new(); steps + 1];
        let mut reaches = Vec::with_capacity(steps);
        let left = (0..=most).map(|left| (left as f32 * problem.left_over).min(UNREACHED));
        values[steps] = left.collect();
        for step in (0..steps).rev() {
            interrupt::check();
            let later = &values[step + 1];
            let reach = Reach::new(problem.lengths, prices[step], later);
            let with_one_end = reach.fill(later);
            values[step] = reach.fill(&with_one_end);
            reaches.push(reach);
        }
        reaches.reverse();
        PriceTable { values, reaches }
    }

    /// V_t: the price of filling gaps from step `step` on.
    pub(crate) fn values(&self, step: usize) -> &[f32] {
        &self.values[step]
    }

    /// The load of each step when `gaps` (how many there are of each size) are filled in the cheapest
    /// way from step 0 on, and its price.
    pub(crate) fn loads(&self, gaps: &[(usize, u32)]) -> (Vec<f32>, f32) {
        let steps = self.reaches.len();
        let most = self.values[0].len();
        let mut loads = vec![0.0; steps];
        let mut price = 0.0;
        let mut count = vec![0u32; most];
        for &(gap, times) in gaps {
            count[gap] += times;
            price += self.values[0][gap] * times as f32;
        }
        let mut next = vec![0u32; most];
        for (step, load) in loads.iter_mut().enumerate() {
            let (reach, later) = (&self.reaches[step], &self.values[step + 1]);
            let sizes = || (1..count.len()).filter(|&gap| count[gap] > 0);
            let (largest, distinct) = (sizes().next_back().unwrap_or(0), sizes().count());
            // Where that takes less than looking at all pairs of ends.
            let from_one_end =
                (distinct * reach.places.len() > largest).then(|| reach.fill(&later[..=largest]));
            next.fill(0);
            for (gap, &times) in count.iter().enumerate().skip(1) {
                interrupt::check();
                if times == 0 {
                    continue;
                }
                let (ends, middle) = reach.cheapest_split(from_one_end.as_deref(), later, gap);
                next[middle] += times;
                for mut at in ends {
                    while at > 0 {
                        let before = reach.before[at];
                        let (from, to) = (reach.places[before], reach.places[at]);
                        *load += to as f32 * times as f32;
                        next[to - from - 1] += times;
                        at = before;
                    }
                }
            }
            std::mem::swap(&mut count, &mut next);
        }
        (loads, price)
    }
}

/// What a table takes: its values, and what it knows of each length.
pub(crate) fn table_bytes(steps: usize, most: usize, lengths: usize) -> u64 {
    let (steps, most, lengths) = (steps as u64, most as u64, lengths as u64);
    let of_values = (steps + 1) * (most + 1) * size_of::<f32>() as u64;
    let of_place = size_of::<(f32, usize, usize)>() as u64;
    of_values + steps * (lengths + 1) * of_place
}

/// L_t at 0 and at every length: what lightpaths from one end cost, the farthest of which has that length, with what is left between them.
struct Reach {
    /// 0 and all lengths.
    places: Vec<usize>,
    costs: Vec<f32>,
    /// The index of the place before.
    before: Vec<usize>,
}

impl Reach {
    fn new(lengths: &[u32], price: f32, later: &[f32]) -> Reach {
        let lengths = lengths.iter().map(|&length| length as usize);
        let places: Vec<usize> = std::iter::once(0).chain(lengths).collect();
        let (mut costs, mut before) = (vec![0.0], vec![0]);
        for (index, &place) in places.iter().enumerate().skip(1) {
            interrupt::check();
            // What is between two places is known up to some size.
            let near = places[..index].partition_point(|from| place - from > later.len());
            let mut best = (UNREACHED, 0);
            let from = places[..index].iter().zip(&costs).enumerate().skip(near);
            for (at, (from, cost)) in from {
                let cost = cost + later[place - from - 1];
                if cost < best.0 {
                    best = (cost, at);
                }
            }
            costs.push((best.0 + price * place as f32).min(UNREACHED));
            before.push(best.1);
        }
        Reach {
            places,
            costs,
            before,
        }
    }

    /// result[n] = min over places x of L(x) + other[n - x].
    fn fill(&self, other: &[f32]) -> Vec<f32> {
        fill(&self.places[1..], &self.costs[1..], other)
    }

    /// The places of the farthest lightpaths from both ends, by their indices, and the gap that remains between them.
    fn cheapest_split(
        &self,
        from_one_end: Option<&[f32]>,
        later: &[f32],
        gap: usize,
    ) -> ([usize; 2], usize) {
        let within = |most: usize| {
            let count = self.places.partition_point(|place| *place <= most);
            self.places[..count].iter().zip(&self.costs).enumerate()
        };
        // Where the best prices with one more end are known: no left end that costs more than the cheapest, but for rounding.
        let of_left =
            |place: usize, cost: f32| cost + from_one_end.map_or(0.0, |prices| prices[gap - place]);
        let least = match from_one_end {
            Some(_) => within(gap)
                .map(|(_, (&place, &cost))| of_left(place, cost))
                .fold(f32::INFINITY, f32::min),
            None => f32::INFINITY,
        };
        let (mut best, mut ends) = (f32::INFINITY, [0, 0]);
        for (left, (&place, &cost)) in within(gap) {
            if of_left(place, cost) > least * 1.000_01 {
                continue;
            }
            let rest = gap - place;
            for (right, (other, with_other)) in within(rest) {
                let cost = cost + with_other + later[rest - other];
                if cost < best {
                    (best, ends) = (cost, [left, right]);
                }
            }
        }
        let [left, right] = ends.map(|end| self.places[end]);
        (ends, gap - left - right)
    }
}

/// The cheapest lightpaths of a step at a price, where what comes later has its value.
pub(crate) struct PricedStep<'a> {
    later: &'a [f32],
    reach: Reach,
    from_one_end: Vec<f32>,
}

impl<'a> PricedStep<'a> {
    pub(crate) fn new(lengths: &[u32], price: f32, later: &'a [f32]) -> PricedStep<'a> {
        let reach = Reach::new(lengths, price, later);
        PricedStep {
            from_one_end: reach.fill(later),
            later,
            reach,
        }
    }

    /// The lengths of the lightpaths from both ends of a gap.
    pub(crate) fn lengths(&self, gap: usize) -> [Vec<u32>; 2] {
        let from_one_end = Some(&self.from_one_end[..]);
        let (ends, _) = self.reach.cheapest_split(from_one_end, self.later, gap);
        ends.map(|last| {
            let before = |at: &usize| Some(self.reach.before[*at]);
            let places = std::iter::successors(Some(last), before);
            let places = places.take_while(|at| *at > 0);
            places.map(|at| self.reach.places[at] as u32).collect()
        })
    }
}

/// So many values stay in registers while all lengths are looked at: all that the widest registers hold.
const AT_ONCE: usize = 128;

/// result[n] = min over places x of their costs + other[n - x]; of no place other[n].
#[multiversion(targets("x86_64+avx+avx2+avx512f+avx512vl", "x86_64+avx+avx2"))]
fn fill(places: &[usize], costs: &[f32], other: &[f32]) -> Vec<f32> {
    let longest = places.last().copied().unwrap_or(0);
    // Nothing is before the first.
    let mut padded = vec![UNREACHED; longest];
    padded.extend_from_slice(other);
    padded.resize(padded.len().next_multiple_of(AT_ONCE) + AT_ONCE, UNREACHED);
    let mut filled = other.to_vec();
    for (first, values) in (0..).step_by(AT_ONCE).zip(filled.chunks_mut(AT_ONCE)) {
        interrupt::check();
        let mut least = [UNREACHED; AT_ONCE];
        least[..values.len()].copy_from_slice(values);
        for (place, cost) in places.iter().zip(costs) {
            if *place >= first + AT_ONCE {
                break;
            }
            let rest = &padded[first + longest - place..][..AT_ONCE];
            for (least, rest) in least.iter_mut().zip(rest) {
                // Unlike `min`, one instruction for several numbers.
                let other = cost + rest;
                *least = if other < *least { other } else { *least };
            }
        }
        values.copy_from_slice(&least[..values.len()]);
    }
    filled
}

/// Adjusts prices for `gaps` over so many rounds. Returns the greatest ratio of least price to
/// supply met: above 1 (by more than rounding) no mixture of such trees fits the steps.
pub(crate) fn adjust(
    problem: &PriceProblem<'_>,
    gaps: &[(usize, u32)],
    prices: &mut [f32],
    rounds: usize,
    eagerness: f32,
) -> f32 {
    let most = gaps.iter().map(|&(gap, _)| gap).max().unwrap_or(0);
    if prices.is_empty() || most == 0 {
        return 0.0;
    }
    let mut ratio = 0.0f32;
    let mut mean = vec![0.0; prices.len()];
    let mut weight = 0.0;
    for round in 0..rounds {
        let table = PriceTable::new(problem, prices, most);
        let (loads, price) = table.loads(gaps);
        if price >= UNREACHED / 2.0 {
            return f32::INFINITY;
        }
        let supplies = prices.iter().zip(problem.capacity);
        let supply: f32 = supplies.map(|(price, capacity)| price * capacity).sum();
        ratio = ratio.max(price / supply);
        if ratio > problem.hopeless {
            return ratio;
        }
        let rate = eagerness / (1.0 + round as f32).sqrt();
        for ((price, load), capacity) in prices.iter_mut().zip(&loads).zip(problem.capacity) {
            let over = (load / capacity - 1.0).clamp(-1.0, 2.0);
            *price = (*price * (rate * over).exp()).clamp(1e-3, 1e3);
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
