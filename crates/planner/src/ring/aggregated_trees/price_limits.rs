//! Knowledge about slots that are too few for any tree, or in which no tree was found.
//!
//! A tree exists only if, at all prices of links, the least price of a tree (theorem R8 of
//! `docs/proofs.md`) is at most the total price of the links of all slots.

use super::grouping::Grouping;

/// Tolerance for rounding errors of prices: a tree still fits if its price is at most this multiple
/// of the slots' total.
pub(super) const PRICE_TOLERANCE: f32 = 1.001;

/// Limits for one class of recipes and one number of pieces per block.
#[derive(Clone, Default)]
pub(super) struct PriceLimits {
    /// Known limits: for each, the price per link in every slot, and the least cost of a tree at
    /// these prices.
    min_costs: Vec<(Vec<f32>, f32)>,
    /// Rooms of the slots, in links, in which no tree was found.
    failed: Vec<Vec<f32>>,
}

impl PriceLimits {
    /// Returns whether slots with these volumes may have room for a tree that leaves the share
    /// `spare` of all links free.
    pub(super) fn allow(&self, grouping: &Grouping, volumes: &[u32], spare: f32) -> bool {
        let rooms = rooms(grouping, volumes);
        let is_no_larger = |failed: &Vec<f32>| rooms.iter().zip(failed).all(|(a, b)| a <= b);
        if self.failed.iter().any(is_no_larger) {
            return false;
        }
        let mut min_costs = self.min_costs.iter();
        min_costs.all(|(prices, cost)| {
            *cost <= (1.0 - spare) * PRICE_TOLERANCE * total_price(prices, &rooms)
        })
    }

    /// Returns the prices that were added last.
    pub(super) fn latest(&self) -> Option<&[f32]> {
        self.min_costs.last().map(|(prices, _)| &prices[..])
    }

    /// Records the least price of a tree at prices of the slots' links.
    pub(super) fn add_min_cost(&mut self, prices: &[f32], cost: f32) {
        self.min_costs.push((prices.to_vec(), cost));
    }

    /// Records that no tree was found in slots with these rooms.
    pub(super) fn add_failed(&mut self, rooms: Vec<f32>) {
        self.failed.push(rooms);
    }
}

/// Returns the room of each slot, in links.
pub(super) fn rooms(grouping: &Grouping, volumes: &[u32]) -> Vec<f32> {
    let rooms = volumes.iter().map(|volume| grouping.room(*volume));
    rooms.collect()
}

/// Returns the total price of the rooms of the slots.
pub(super) fn total_price(prices: &[f32], rooms: &[f32]) -> f32 {
    let slots = prices.iter().zip(rooms);
    slots.map(|(price, room)| price * room).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two slots at prices of 1 and 2: slots whose links cost less than a tree are refused, also if
    /// a share is to be spared.
    #[test]
    fn slots_that_offer_too_little_are_left_out() {
        let fabric =
            opticoll_fabric::fabric::Fabric::parse("wdm_ring:ranks=16,wavelengths=5").unwrap();
        let ring = crate::ring_of(&fabric).unwrap();
        let grouping = Grouping::new(ring, 1);
        let mut limits = PriceLimits::default();
        assert!(limits.allow(&grouping, &[1, 1], 0.0));
        // A slot of v blocks has room for 10 v links: 10 + 2 * 20 = 50.
        limits.add_min_cost(&[1.0, 2.0], 50.0);
        assert!(limits.allow(&grouping, &[1, 2], 0.0));
        assert!(!limits.allow(&grouping, &[1, 2], 0.1));
        assert!(!limits.allow(&grouping, &[2, 1], 0.0));
        assert!(limits.allow(&grouping, &[2, 2], 0.1));
    }

    /// If no tree was found in slots of 2 and 3 pieces, none is searched in slots neither of which
    /// has more.
    #[test]
    fn slots_without_a_tree_are_not_tried_again() {
        let fabric =
            opticoll_fabric::fabric::Fabric::parse("wdm_ring:ranks=16,wavelengths=5").unwrap();
        let grouping = Grouping::new(crate::ring_of(&fabric).unwrap(), 1);
        let mut limits = PriceLimits::default();
        limits.add_failed(rooms(&grouping, &[2, 3]));
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
