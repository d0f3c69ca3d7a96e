//! OpTree against the paper's formulas and against step counts of explicit schedules from other
//! sources.

use opticoll::algorithms::optree::tree::{best_radices, stage_loads, uniform_radices};
use opticoll::algorithms::optree::{paper_depth, paper_steps};
use opticoll::collective::CollectiveKind::AllGather;

use crate::{verified, verified_with};
use opticoll::family::wdm_ring::{Direction, WdmLight};

#[test]
fn theorem_1_for_64_wavelengths() {
    // Ceil of the continuous formula, k = 1..10.
    let table = [
        (512, [512, 68, 40, 34, 32, 32, 32, 33, 34, 36]),
        (1024, [2048, 192, 101, 80, 72, 70, 70, 72, 74, 76]),
        (2048, [8192, 544, 254, 189, 166, 157, 155, 156, 159, 163]),
        (4096, [32768, 1536, 640, 448, 381, 352, 342, 340, 343, 350]),
        (64, [8, 3, 3, 3, 3, 3, 3, 4, 4, 5]),
        (256, [128, 24, 16, 14, 14, 14, 15, 15, 16, 17]),
    ];
    for (ranks, steps) in table {
        // The source of the last two rows stops at k = 8.
        let known = if ranks < 512 { 8 } else { 10 };
        for (depth, expected) in (1..).zip(steps).take(known) {
            assert_eq!(
                paper_steps(ranks, 64, depth),
                expected,
                "N = {ranks}, k = {depth}"
            );
        }
    }
}

#[test]
fn theorem_1_is_exact_for_large_values() {
    // By whole-number arithmetic: the least S with (8 w S)^k >= (2k - 1)^k N^(k + 1).
    for (ranks, wavelengths, depth, steps) in [
        (8394, 1, 2, 288_394),
        (8394, 3, 2, 96_132),
        (5841, 1, 7, 32_766),
        (10465, 2, 2, 200_730),
        (1_048_575, 64, 2, 6_291_448),
        (1024, 64, 5, 72),
    ] {
        assert_eq!(paper_steps(ranks, wavelengths, depth), steps, "{ranks}");
    }
}

#[test]
fn a_tree_of_k_stages_has_k_stages() {
    for (ranks, depth) in [
        (9, 3),
        (27, 4),
        (16, 3),
        (1024, 7),
        (1024, 10),
        (5, 3),
        (7, 2),
    ] {
        let plan = verified(AllGather, &format!("optree:k={depth}"), ranks, 2);
        assert_eq!(plan.schedule.steps(), depth, "{ranks}");
    }
}

#[test]
fn theorem_2_rounded_up() {
    for (ranks, depth) in [
        (7, None),
        (16, Some(3)),
        (64, Some(4)),
        (256, Some(5)),
        (512, Some(6)),
        (1024, Some(7)),
        (2048, Some(8)),
        (4096, Some(8)),
    ] {
        assert_eq!(paper_depth(ranks), depth, "{ranks}");
    }
}

#[test]
fn loads_of_the_16_rank_examples() {
    assert_eq!(stage_loads(16, &[4, 4]), [8, 16]);
    assert_eq!(stage_loads(16, &[2, 3, 3]), [4, 12, 12]);
    assert_eq!(stage_loads(16, &[4, 2, 2]), [8, 8, 8]);
    assert_eq!(stage_loads(1024, &[4; 5]), [512, 1024, 1024, 1024, 1024]);
}

#[test]
fn slots_of_explicit_trees_with_first_fit() {
    // (N, tree, w, slots): load bound and first-fit agree, or first-fit needs what is given.
    for (ranks, radices, wavelengths, slots) in [
        (16, "4x4", 2, 12),
        (16, "2x3x3", 2, 14),
        (16, "3x3x3", 2, 17),
        (16, "2x2x2x2", 2, 14),
        (16, "4x2x2", 2, 12),
        (16, "8x2", 2, 12),
        (64, "8x8", 64, 3),
        (64, "4x4x4", 64, 3),
        (64, "4x4x4", 8, 20),
        (64, "2x2x2x2x2x2", 8, 22),
        (64, "3x3x3x3", 8, 28),
        (256, "16x16", 64, 25),
        (256, "4x4x4x4", 64, 14),
        (256, "2x2x2x2x2x2x2x2", 64, 15),
        (256, "3x3x3x3x3x3", 64, 22),
        (512, "8x4x4x4", 64, 32),
        (512, "4x4x4x4x2", 64, 32),
        (512, "3x3x3x3x3x3", 64, 41),
        (1024, "32x32", 64, 194),
        (1024, "16x8x8", 64, 98),
        (1024, "4x4x4x4x4", 64, 72),
        (1024, "2x2x2x2x2x2x2x2x2x2", 64, 76),
        (1024, "3x3x3x3x3x3x3", 64, 91),
        (1024, "7x3x2x3x3x3", 64, 78),
    ] {
        let fabric = format!("wdm_ring:ranks={ranks},wavelengths={wavelengths}");
        let algorithm = format!("optree:radices={radices}");
        let plan = verified_with(AllGather, &algorithm, &fabric, "first_fit");
        assert_eq!(plan.slots(), slots, "{ranks} {radices}");
    }
}

#[test]
fn slots_are_never_below_the_sum_of_the_loads() {
    // (N, tree, w, sum over stages of ceil(load / w)), as counted from explicit schedules.
    for (ranks, radices, wavelengths, bound) in [
        (16, "3x3x3", 2, 15),
        (64, "3x3x3x3", 8, 25),
        (256, "16x16", 64, 24),
        (256, "3x3x3x3x3x3", 64, 21),
        (512, "3x3x3x3x3x3", 64, 38),
        (1024, "32x32", 64, 192),
        (1024, "16x8x8", 64, 96),
        (1024, "3x3x3x3x3x3x3", 64, 86),
        (1024, "7x3x2x3x3x3", 64, 73),
    ] {
        let list: Vec<u32> = radices
            .split('x')
            .map(|radix| radix.parse().unwrap())
            .collect();
        let loads = stage_loads(ranks, &list);
        let by_load: u64 = loads.iter().map(|load| load.div_ceil(wavelengths)).sum();
        assert_eq!(by_load, bound, "{ranks} {radices}");
        let plan = verified(
            AllGather,
            &format!("optree:radices={radices}"),
            ranks,
            wavelengths as u32,
        );
        assert!(u64::from(plan.slots()) >= bound, "{ranks} {radices}");
    }
}

#[test]
fn equal_splits_meet_their_load_with_the_optimal_first_stage() {
    for (ranks, radices, slots) in [
        (1024, "16x8x8", 96),
        (1024, "32x32", 192),
        (256, "16x16", 24),
    ] {
        let plan = verified(AllGather, &format!("optree:radices={radices}"), ranks, 64);
        assert_eq!(plan.slots(), slots, "{ranks} {radices}");
    }
}

#[test]
fn the_best_trees_need_the_fewest_slots_found_by_search() {
    // An exhaustive search over radix lists from {2..8} found 3, 14, 32 and 72.
    for (ranks, slots) in [(64, 3), (256, 14), (512, 32), (1024, 72), (2048, 160)] {
        assert_eq!(
            verified(AllGather, "optree", ranks, 64).slots(),
            slots,
            "{ranks}"
        );
    }
    let radices = best_radices(4096, 64);
    assert_eq!(4096 % radices[0], 0, "stage 1 takes its load");
    let loads = stage_loads(4096, &radices);
    assert_eq!(loads.iter().map(|load| load.div_ceil(64)).sum::<u64>(), 350);
}

/// Lists all radices in which every stage has groups to cut, and cuts no group into more parts than
/// it has ranks.
fn all_trees(ranks: u32) -> Vec<Vec<u32>> {
    let (mut whole, mut begun) = (Vec::new(), vec![(Vec::new(), 1)]);
    while let Some((radices, leaves)) = begun.pop() {
        if leaves >= ranks {
            whole.push(radices);
            continue;
        }
        for radix in 2..=ranks.div_ceil(leaves) {
            begun.push(([&radices[..], &[radix]].concat(), leaves * radix));
        }
    }
    whole
}

#[test]
fn no_tree_needs_fewer_slots_than_the_best() {
    for ranks in 2..=40u32 {
        // The slots of stage 1, which do not depend on later stages, and the loads of all later
        // stages.
        let first: Vec<u64> = (2..=ranks)
            .map(|radix| {
                let rest = ranks.div_ceil(radix);
                let last = if rest > 1 {
                    format!("x{rest}")
                } else {
                    String::new()
                };
                let algorithm = format!("optree:radices={radix}{last}");
                verified(AllGather, &algorithm, ranks, 1).step_slots[0]
                    .end
                    .into()
            })
            .collect();
        let needs: Vec<Vec<u64>> = all_trees(ranks)
            .iter()
            .map(|radices| {
                let mut needs = stage_loads(ranks, radices);
                needs[0] = first[radices[0] as usize - 2];
                needs
            })
            .collect();
        for wavelengths in [1, 2, 3, 5, 8, 64] {
            let slots = |needs: &Vec<u64>| -> u64 {
                needs.iter().map(|need| need.div_ceil(wavelengths)).sum()
            };
            let fewest = needs.iter().map(slots).min().unwrap();
            let plan = verified(AllGather, "optree", ranks, wavelengths as u32);
            assert_eq!(u64::from(plan.slots()), fewest, "{ranks} {wavelengths}");
        }
    }
}

#[test]
fn the_best_tree_of_1000_ranks() {
    // The fewest of all 48,362 lists of radices, found without leaving any out; the best of those
    // that never increase, 5x5x5x3x3, needs 563.
    assert_eq!(verified(AllGather, "optree", 1000, 8).slots(), 553);
}

#[test]
fn claims_and_what_is_needed_are_two_numbers() {
    let check = |algorithm: &str, claim: Option<u64>| {
        let plan = verified(AllGather, algorithm, 1024, 64);
        assert_eq!(plan.schedule.claims.paper_steps, claim, "{algorithm}");
    };
    check("optree", Some(70));
    check("optree:depth=paper", Some(70));
    check("optree:k=7", Some(70));
    check("optree:k=6", Some(70));
    check("optree:radices=4x4x4x4x4", Some(72));
    assert_eq!(uniform_radices(1024, 7), [3; 7]);
    assert_eq!(uniform_radices(1024, 5), [4; 5]);
    assert_eq!(verified(AllGather, "optree:k=1", 16, 2).slots(), 16);
}

#[test]
fn later_stages_stay_on_their_segment() {
    // No lightpath of stage 2 or later leaves the group of stage 1 it belongs to.
    for (ranks, radices) in [
        (64, "4x4x4"),
        (60, "4x4x4"),
        (61, "2x8x4"),
        (7, "2x2x2"),
        (5, "3x2"),
    ] {
        let plan = verified(AllGather, &format!("optree:radices={radices}"), ranks, 4);
        let first: u32 = radices.split('x').next().unwrap().parse().unwrap();
        let (size, larger) = (ranks / first, ranks % first);
        let group = |rank: u32| {
            if rank < larger * (size + 1) {
                rank / (size + 1)
            } else {
                (rank - larger) / size
            }
        };
        for lightpath in plan
            .lightpaths()
            .filter(|path| path.slot >= plan.step_slots[0].end)
        {
            let transfer = lightpath.transfer;
            let inside = (transfer.source.min(transfer.destination)
                ..=transfer.source.max(transfer.destination))
                .all(|rank| group(rank) == group(transfer.source));
            let upwards = transfer.destination > transfer.source;
            let clockwise = WdmLight::from(lightpath.light).direction == Direction::Clockwise;
            assert!(
                inside && upwards == clockwise,
                "{ranks} {radices}: {lightpath:?}"
            );
        }
    }
}

#[test]
fn each_rank_receives_each_block_once_wherever_the_tree_runs() {
    use crate::electrical::proved;
    use opticoll::fabric::Fabric;
    for (fabric, ranks) in [
        ("crossbar:ranks=9", 9u32),
        ("fat_tree:down=4x4,up=1x2", 16),
        ("torus:dims=3x4", 12),
        ("circuit_switch:ranks=12,ports=3,rate=100Gb/s", 12),
        ("lightpath_grid:ranks=10,ports=2", 10),
        ("wss_grid:rows=3,columns=4", 12),
        ("fully_connected:ranks=7", 7),
    ] {
        let fabric = Fabric::parse(fabric).unwrap();
        assert_eq!(fabric.ranks(), ranks);
        for (algorithm, stages) in [
            ("optree".to_string(), ranks.next_power_of_two().ilog2()),
            (format!("optree:radices=3x{}", ranks.div_ceil(3)), 2),
            (format!("optree:radices={ranks}"), 1),
        ] {
            let plan = proved(AllGather, &algorithm, &fabric);
            assert_eq!(
                plan.schedule.steps() as u32,
                stages,
                "{algorithm} on {fabric}"
            );
            // No more than every other block, for each of them: N (N - 1).
            let sent: u64 = (0..plan.len())
                .map(|index| u64::from(plan.schedule.transfer(index).count))
                .sum();
            assert_eq!(
                sent,
                u64::from(ranks * (ranks - 1)),
                "{algorithm} on {fabric}"
            );
        }
    }
}
