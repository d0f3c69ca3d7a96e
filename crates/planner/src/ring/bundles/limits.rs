//! What is known of slots that are too few for any tree, or in which none was found: prices of their links, and what the slots must
//! offer at these prices in all.

use super::grouping::Grouping;

/// Prices have rounding errors: a tree that costs so many times what slots offer still fits.
pub(super) const FITTING: f32 = 1.001;

/// For groups of one size, holders and a number of slots.
#[derive(Clone, Default)]
pub(super) struct PriceLimits {
    /// What trees cost at least.
    least: Vec<(Vec<f32>, f32)>,
    /// Rooms in which none was found.
    missed: Vec<Vec<f32>>,
}

impl PriceLimits {
    /// Whether slots with so many pieces on a lightpath offer enough, for all that is known, with a part to spare.
    pub(super) fn allow(&self, grouping: &Grouping, volumes: &[u32], spare: f32) -> bool {
        let rooms = rooms(grouping, volumes);
        let fits = |missed: &Vec<f32>| {
            rooms
                .iter()
                .zip(missed)
                .all(|(room, missed)| room <= missed)
        };
        if self.missed.iter().any(fits) {
            return false;
        }
        let offers = |prices: &[f32]| offered(prices, &rooms);
        let mut least = self.least.iter();
        least.all(|(prices, cost)| *cost <= (1.0 - spare) * FITTING * offers(prices))
    }

    /// The prices that were learned last.
    pub(super) fn latest(&self) -> Option<&[f32]> {
        self.least.last().map(|(prices, _)| &prices[..])
    }

    /// Trees cost so much at least.
    pub(super) fn learn(&mut self, prices: &[f32], cost: f32) {
        self.least.push((prices.to_vec(), cost));
    }

    /// There is no tree in these rooms, nor in others none of which is larger.
    pub(super) fn miss(&mut self, rooms: Vec<f32>) {
        self.missed.push(rooms);
    }
}

/// Links that lightpaths may have in all in each slot.
pub(super) fn rooms(grouping: &Grouping, volumes: &[u32]) -> Vec<f32> {
    let rooms = volumes.iter().map(|volume| grouping.room(*volume));
    rooms.collect()
}

/// What slots offer at prices of their links.
pub(super) fn offered(prices: &[f32], rooms: &[f32]) -> f32 {
    let offers = prices.iter().zip(rooms);
    offers.map(|(price, room)| price * room).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two slots at prices of 1 and 2: what offers less than trees cost is left out, also where a part is to be spared.
    #[test]
    fn slots_that_offer_too_little_are_left_out() {
        let fabric =
            opticoll_fabric::fabric::Fabric::parse("wdm_ring:ranks=16,wavelengths=5").unwrap();
        let ring = crate::ring_of(&fabric).unwrap();
        let grouping = Grouping::new(ring, 1);
        let mut limits = PriceLimits::default();
        assert!(limits.allow(&grouping, &[1, 1], 0.0));
        // A slot of v blocks has room for 10 v links: 10 + 2 * 20 = 50.
        limits.learn(&[1.0, 2.0], 50.0);
        assert!(limits.allow(&grouping, &[1, 2], 0.0));
        assert!(!limits.allow(&grouping, &[1, 2], 0.1));
        assert!(!limits.allow(&grouping, &[2, 1], 0.0));
        assert!(limits.allow(&grouping, &[2, 2], 0.1));
    }

    /// Where no tree was found in slots of 2 and 3 pieces, none is looked for in slots neither of which has more.
    #[test]
    fn slots_without_a_tree_are_not_tried_again() {
        let fabric =
            opticoll_fabric::fabric::Fabric::parse("wdm_ring:ranks=16,wavelengths=5").unwrap();
        let grouping = Grouping::new(crate::ring_of(&fabric).unwrap(), 1);
        let mut limits = PriceLimits::default();
        limits.miss(rooms(&grouping, &[2, 3]));
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
