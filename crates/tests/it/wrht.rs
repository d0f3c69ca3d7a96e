//! WRHT against its formula and against counts by hand.

use opticoll::algorithms::wrht::{paper_all_gather_steps, paper_all_reduce_steps};
use opticoll::collective::CollectiveKind::{AllGather, AllReduce};

use crate::verified;

#[test]
fn all_reduce_steps_of_the_poster() {
    for (ranks, steps) in [(16, 1), (32, 2), (128, 2), (256, 3), (2048, 3), (4096, 4)] {
        // At 32 ranks and w = 64 two steps would be a group and its broadcast; an all-to-all needs
        // 128 wavelengths.
        assert_eq!(paper_all_reduce_steps(ranks, 64, 129), steps, "{ranks}");
    }
    for (wavelengths, steps) in [
        (1, 13),
        (2, 9),
        (4, 7),
        (16, 4),
        (64, 3),
        (128, 3),
        (256, 3),
    ] {
        assert_eq!(
            paper_all_reduce_steps(1024, wavelengths, 2 * wavelengths + 1),
            steps
        );
    }
}

#[test]
fn the_construction_needs_what_the_formula_says() {
    for wavelengths in [1, 2, 4, 16, 64, 128, 256] {
        for ranks in (2..1200).step_by(131) {
            let plan = verified(AllReduce, "wrht", ranks, wavelengths);
            let claim = paper_all_reduce_steps(ranks, wavelengths, 2 * wavelengths + 1);
            assert_eq!(
                u64::from(plan.slots()),
                claim,
                "N = {ranks}, w = {wavelengths}"
            );
        }
    }
}

#[test]
fn all_gather_steps_as_the_optree_paper_evaluates_them() {
    for (wavelengths, steps) in [(64, 259), (96, 387), (128, 515), (256, 1027)] {
        assert_eq!(paper_all_gather_steps(1024, wavelengths), steps);
    }
}

#[test]
fn the_all_gather_really_needs_1041_slots() {
    // By hand for (1024, 64): 1 to collect, ceil(8 * 129 / 64) = 17 for the exchange of 129 blocks
    // among 8 representatives, 1023 to hand out.
    let plan = verified(AllGather, "wrht", 1024, 64);
    let slots: Vec<u32> = plan
        .step_slots
        .iter()
        .map(|step| step.end - step.start)
        .collect();
    assert_eq!(slots, [1, 17, 1023]);
}

#[test]
fn striping_fills_the_spare_wavelengths() {
    // Groups of 3 use one wavelength a side, so 64 pieces; groups of 5 use two, so 32.
    for (group_size, pieces) in [(3, 64), (5, 32), (129, 1)] {
        let algorithm = format!("wrht:group_size={group_size},striping=true");
        let plan = verified(AllReduce, &algorithm, 1024, 64);
        assert_eq!(plan.schedule.collective.pieces(), pieces);
        assert_eq!(
            plan.slots() as usize,
            plan.schedule.steps(),
            "every step fits one slot"
        );
    }
}
