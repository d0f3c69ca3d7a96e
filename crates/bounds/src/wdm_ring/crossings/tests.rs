use super::super::relay_tree::cost;
use super::{Growth, closed_form, links};

/// Exact values (N, S, G_S(N)) that CP-SAT computed over all sets of lightpaths.
const LEAST: [(u32, u64, u64); 12] = [
    (4, 2, 8),
    (4, 3, 6),
    (4, 4, 6),
    (4, 5, 6),
    (4, 6, 6),
    (5, 2, 12),
    (5, 3, 10),
    (5, 4, 8),
    (5, 5, 8),
    (6, 2, 18),
    (6, 3, 14),
    (6, 4, 12),
];

/// Intake that does not limit any lightpath.
const MANY: u64 = 1 << 20;

#[test]
fn no_bound_is_above_the_least_number_of_links() {
    for (ranks, steps, least) in LEAST {
        for intake in [1, 2, 3, MANY] {
            let found = links(ranks, intake, steps);
            let plain = 2 * (u64::from(ranks) - 1);
            assert!(
                (plain..=least).contains(&found),
                "{ranks}, {steps}: {found} and {least}"
            );
        }
    }
}

#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "slow without optimisation: `make validate`"
)]
fn no_bound_is_above_two_trees() {
    let rings = (4..25).chain([32, 33, 48, 63, 64, 100]);
    for ranks in rings {
        for steps in 2..u64::from(ranks).min(36) {
            let two_trees = (1..steps).map(|slots| cost(ranks, slots) + cost(ranks, steps - slots));
            let least = two_trees.min().unwrap();
            for intake in [2, MANY] {
                let found = links(ranks, intake, steps);
                // If `intake` is small, more links than those of two trees may be needed.
                assert!(
                    intake < MANY || found <= least,
                    "{ranks}, {steps}: {found} and {least}"
                );
                assert!(found >= closed_form(ranks, steps));
                assert!(found >= links(ranks, MANY, steps) * 9 / 10);
            }
        }
    }
}

#[test]
fn large_rings_are_not_above_two_trees() {
    for (ranks, steps) in [
        (256, 3),
        (256, 10),
        (256, 40),
        (1024, 3),
        (1024, 17),
        (1024, 55),
    ] {
        let two_trees = (1..steps).map(|slots| cost(ranks, slots) + cost(ranks, steps - slots));
        assert!(links(ranks, MANY, steps) <= two_trees.min().unwrap());
    }
}

#[test]
fn weights_find_nearly_what_long_searches_find() {
    // Rows (N, S, 2c, links): the best result of 2,000 passes with all lengths.
    for (ranks, steps, intake, thorough_result) in [
        (64, 3, 16, 509),
        (64, 8, 16, 265),
        (64, 16, 16, 198),
        (256, 3, 64, 4057),
        (256, 10, 64, 1388),
        (256, 24, 64, 907),
        (1024, 3, 128, 32_094),
        (1024, 10, 128, 7860),
        (1024, 17, 128, 5549),
        (1024, 40, 128, 4075),
    ] {
        let found = links(ranks, intake, steps);
        assert!(
            found * 100 >= thorough_result * 94,
            "{ranks}, {steps}: {found} of {thorough_result}"
        );
        assert!(
            found <= thorough_result * 101 / 100,
            "{ranks}, {steps}: {found} of {thorough_result}"
        );
    }
}

#[test]
fn neighbourhoods_that_grow_by_two_meet_a_plan() {
    for ranks in [16u32, 24, 32, 64, 256] {
        let steps = u64::from(ranks / 2 - 1);
        let two_trees = (1..steps).map(|slots| cost(ranks, slots) + cost(ranks, steps - slots));
        assert_eq!(closed_form(ranks, steps), u64::from(3 * ranks - 2));
        assert_eq!(two_trees.min(), Some(u64::from(3 * ranks - 2)));
        assert_eq!(links(ranks, MANY, steps), u64::from(3 * ranks - 2));
    }
    assert_eq!(closed_form(64, 40), 64 + 98);
    assert_eq!((closed_form(2, 3), closed_form(3, 1)), (2, 4));
}

/// Returns whether each rank belongs to the neighbourhood of rank 0 with `size` ranks, indexed by
/// rank. `is_mirrored` exchanges the two ends of the neighbourhood.
fn neighbourhood(ranks: usize, size: usize, is_mirrored: bool) -> Vec<bool> {
    let mut is_inside = vec![false; ranks];
    for at in 0..size {
        let place = (ranks + at - (size - 1) / 2) % ranks;
        is_inside[if is_mirrored {
            (ranks - place) % ranks
        } else {
            place
        }] = true;
    }
    is_inside
}

#[test]
fn counts_are_never_below_what_is_counted_one_by_one() {
    let mut equal = 0;
    for ranks in 3..15 {
        for from in 1..ranks {
            for to in from..ranks {
                let growth = Growth::new(ranks, from, to, ranks);
                for length in 1..=ranks / 2 {
                    for end in [length, ranks - length] {
                        let mut counted = 0;
                        for is_mirrored in [false, true] {
                            let before = neighbourhood(ranks, from, is_mirrored);
                            let after = neighbourhood(ranks, to, is_mirrored);
                            // Lightpath from rank 0 to `end`, in numbers relative to rank x.
                            let leaves = |x: &usize| {
                                let seen = |rank: usize| (rank + ranks - x) % ranks;
                                before[seen(0)] && !after[seen(end)]
                            };
                            counted += (0..ranks).filter(leaves).count();
                        }
                        assert!(
                            counted <= growth.twice_count(length),
                            "{ranks}: {from}, {to}, {end}"
                        );
                        equal += usize::from(counted == growth.twice_count(length));
                    }
                }
            }
        }
    }
    assert!(equal > 1000);
}
