//! Conditions that exclude recipes for which no tree exists or no tree was found.
//!
//! Assign a price to every link of every slot. The price of a tree is the sum of the prices of its
//! links. By theorem R8 of `docs/proofs.md`, a tree exists only if, for all prices, the minimum
//! price of a tree is at most the total price of the links of all slots.

use super::grouping::Grouping;

/// Ratio of the minimum price of a tree to the total price of the links of all slots. Above this
/// ratio, no tree exists. (The ratio exceeds 1 because of rounding errors.)
pub(super) const PRICE_TOLERANCE: f32 = 1.001;

/// Results of earlier tree searches. These results exclude searches that cannot succeed.
#[derive(Clone, Default)]
pub(super) struct PriceLimits {
    /// Results of price adjustments. Each entry is the price of a link, indexed by slot, and the
    /// minimum price of a tree at these link prices.
    min_prices: Vec<(Vec<f32>, f32)>,
    /// Capacities, in links, of the slots of each unsuccessful search, indexed by search and slot.
    failed_capacities: Vec<Vec<f32>>,
}

impl PriceLimits {
    /// Returns whether a tree search may succeed, given the results of earlier searches. The tree
    /// must leave at least the share `min_free_share` of all links free. `volumes` is the maximum
    /// number of pieces on a lightpath, indexed by slot.
    pub(super) fn allow(&self, grouping: &Grouping, volumes: &[u32], min_free_share: f32) -> bool {
        let capacities = capacities(grouping, volumes);
        let is_no_larger = |failed_capacities: &Vec<f32>| {
            capacities
                .iter()
                .zip(failed_capacities)
                .all(|(a, b)| a <= b)
        };
        if self.failed_capacities.iter().any(is_no_larger) {
            return false;
        }
        let mut min_prices = self.min_prices.iter();
        min_prices.all(|(prices, min_price)| {
            *min_price
                <= (1.0 - min_free_share) * PRICE_TOLERANCE * total_price(prices, &capacities)
        })
    }

    pub(super) fn latest(&self) -> Option<&[f32]> {
        self.min_prices.last().map(|(prices, _)| &prices[..])
    }

    /// Records that every tree has at least the price `min_price` if a link of slot i has the price
    /// `prices[i]`.
    pub(super) fn add_min_price(&mut self, prices: &[f32], min_price: f32) {
        self.min_prices.push((prices.to_vec(), min_price));
    }

    /// Records an unsuccessful tree search. `capacities` is the capacity in links, indexed by slot.
    pub(super) fn add_failed(&mut self, capacities: Vec<f32>) {
        self.failed_capacities.push(capacities);
    }
}

/// Returns the capacities, indexed by slot: the maximum total length of the slot's tree edges, in
/// links. `volumes` is the maximum number of pieces on a lightpath, indexed by slot.
pub(super) fn capacities(grouping: &Grouping, volumes: &[u32]) -> Vec<f32> {
    let capacities = volumes.iter().map(|volume| grouping.capacity(*volume));
    capacities.collect()
}

/// Returns the total price of the links of all slots. `prices` (of a link) and `capacities` (in
/// links) are indexed by slot.
pub(super) fn total_price(prices: &[f32], capacities: &[f32]) -> f32 {
    let slots = prices.iter().zip(capacities);
    slots.map(|(price, capacity)| price * capacity).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_that_offer_too_little_are_left_out() {
        let fabric =
            opticoll_fabric::fabric::Fabric::parse("wdm_ring:ranks=16,wavelengths=5").unwrap();
        let ring = crate::ring_of(&fabric).unwrap();
        let grouping = Grouping::new(ring, 1);
        let mut limits = PriceLimits::default();
        assert!(limits.allow(&grouping, &[1, 1], 0.0));
        // A slot of v blocks per lightpath has a capacity of 10 v links: 10 + 2 * 20 = 50.
        limits.add_min_price(&[1.0, 2.0], 50.0);
        assert!(limits.allow(&grouping, &[1, 2], 0.0));
        assert!(!limits.allow(&grouping, &[1, 2], 0.1));
        assert!(!limits.allow(&grouping, &[2, 1], 0.0));
        assert!(limits.allow(&grouping, &[2, 2], 0.1));
    }

    #[test]
    fn slots_without_a_tree_are_not_tried_again() {
        let fabric =
            opticoll_fabric::fabric::Fabric::parse("wdm_ring:ranks=16,wavelengths=5").unwrap();
        let grouping = Grouping::new(crate::ring_of(&fabric).unwrap(), 1);
        let mut limits = PriceLimits::default();
        limits.add_failed(capacities(&grouping, &[2, 3]));
        for (volumes, allowed) in [
            ([2, 3], false),
            ([1, 3], false),
            ([3, 1], true),
            ([1, 4], true),
        ] {
            assert_eq!(
                limits.allow(&grouping, &volumes, 0.0),
                allowed,
                "{volumes:?}"
            );
        }
    }
}
