//! The planner `aggregated_trees`, which sends several blocks on a lightpath of a tree: each slot
//! takes the time of its volume.

use opticoll::bounds::wdm_ring::time;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::family::wdm_ring::WdmRing;
use opticoll::simulate;
use opticoll::simulate::Policy;

use super::{check, on};
use crate::{reconfiguration_cost, refusal, rows};

/// Returns the time (s) of consecutive slots with these numbers of blocks per lightpath: each slot
/// takes a reconfiguration and the blocks of a lightpath.
fn time_of_volumes(volumes: &[u32], block: u64) -> f64 {
    let (reconfiguration, rate) = (25e-6, 40e9);
    let bytes = volumes.iter().map(|&volume| u64::from(volume) * block);
    let times = bytes.map(|bytes| reconfiguration + bytes as f64 * 8.0 / rate);
    times.sum()
}

fn volumes_of(text: &str) -> Vec<u32> {
    text.split('x').map(|one| one.parse().unwrap()).collect()
}

#[test]
fn bundles_take_a_slot_for_every_volume_and_no_more_than_its_blocks() {
    // (ranks, wavelengths, group, volumes)
    for (ranks, wavelengths, group, volumes) in [
        (64, 8, 1, "1x1x1x1x1x2"),
        (64, 8, 2, "2x2x2x2"),
        (64, 8, 4, "4x4x4"),
        (64, 8, 4, "4x2x4x4"),
        (64, 8, 8, "8x16"),
        (60, 4, 3, "3x3x3x3x3"),
        (256, 32, 2, "2x2x2x2x2x2"),
        (256, 32, 16, "16x40"),
    ] {
        let spec = format!("aggregated_trees:group={group},per_lightpath={volumes}");
        for (kind, times, block) in [
            (CollectiveKind::AllGather, 1.0, 1),
            (CollectiveKind::ReduceScatter, 1.0, ranks),
            (CollectiveKind::AllReduce, 2.0, ranks),
        ] {
            let collective = Collective::new(kind, ranks).unwrap();
            let size = format!("{}B", 4096 * u64::from(block));
            let fabric = on(ranks, wavelengths);
            let plan = check(&spec, &fabric, collective, &size, Policy::EveryStep);
            let slots = volumes.split('x').count() as f64 + 1.0;
            // A tree may be complete before the last slot.
            assert!(f64::from(plan.slots()) <= times * slots, "{kind} {spec}");
            let time =
                simulate::simulate(&plan, size.parse().unwrap(), Policy::EveryStep, "circuit");
            let volumes = [&[1], &volumes_of(volumes)[..]].concat();
            let most = times * time_of_volumes(&volumes, 4096);
            let time = time.unwrap().time.seconds();
            assert!(time <= most + 1e-9, "{kind} {spec}: {time} s, {most} s");
        }
    }
}

/// Blocks in pieces: a slot takes the time of its pieces.
#[test]
fn slots_take_what_their_pieces_take() {
    // (ranks, wavelengths, group, pieces, meeting, volumes)
    for (ranks, wavelengths, group, pieces, meeting, volumes) in [
        (64, 8, 1, 4, None, "1x1x1x1x1x1x1x2x2x2x2x2x2x2"),
        (60, 4, 3, 2, None, "6x6x6x6x6"),
        (64, 8, 2, 3, Some(6), "4x6x6x12"),
        (256, 32, 1, 2, None, "1x1x1x2x2x2x2x2x2"),
    ] {
        let meet = meeting.map(|meeting: u32| format!("exchange={meeting},"));
        let meet = meet.unwrap_or_default();
        let spec =
            format!("aggregated_trees:group={group},pieces={pieces},{meet}per_lightpath={volumes}");
        let collective = Collective::new(CollectiveKind::AllReduce, ranks).unwrap();
        let block = 60_000;
        let size = format!("{}B", block * u64::from(ranks));
        let plan = check(
            &spec,
            &on(ranks, wavelengths),
            collective,
            &size,
            Policy::EveryStep,
        );
        assert_eq!(plan.schedule.collective.pieces(), pieces * ranks, "{spec}");
        let simulated =
            simulate::simulate(&plan, size.parse().unwrap(), Policy::EveryStep, "circuit");
        let piece = block / u64::from(pieces);
        let first = match meeting {
            Some(meeting) => time_of_volumes(&[meeting], piece),
            None => 2.0 * time_of_volumes(&[pieces], piece),
        };
        let most = first + 2.0 * time_of_volumes(&volumes_of(volumes), piece);
        let time = simulated.unwrap().time.seconds();
        assert!(time <= most + 1e-9, "{spec}: {time} s, {most} s");
        // Whole blocks on every lightpath would take longer.
        let whole: Vec<u32> = volumes_of(volumes)
            .iter()
            .map(|volume| volume.div_ceil(pieces) * pieces)
            .collect();
        assert!(
            time < first + 2.0 * time_of_volumes(&whole, piece),
            "{spec}"
        );
    }
}

/// The roots exchange their sums in one slot: the all_reduce needs one slot less than twice its
/// halves, and its slots take the times of their volumes.
#[test]
fn sums_that_meet_take_one_slot_in_the_middle() {
    // (ranks, wavelengths, group, meeting, volumes)
    for (ranks, wavelengths, group, meeting, volumes) in [
        (64, 8, 8, 16, "32"),
        (64, 8, 8, 8, "4x8"),
        (64, 8, 4, 2, "4x4x8"),
        (60, 4, 3, 1, "3x3x3x3x3"),
        (256, 32, 8, 8, "8x16"),
        (1024, 64, 4, 2, "2x2x2x2x4x4x4x4"),
    ] {
        let spec =
            format!("aggregated_trees:group={group},exchange={meeting},per_lightpath={volumes}");
        let collective = Collective::new(CollectiveKind::AllReduce, ranks).unwrap();
        let fabric = on(ranks, wavelengths);
        let size = format!("{}B", 4096 * u64::from(ranks));
        let plan = check(&spec, &fabric, collective, &size, Policy::EveryStep);
        let slots = 2 * volumes.split('x').count() as u32 + 1;
        assert!(plan.slots() <= slots, "{spec}: {} slots", plan.slots());
        let simulated =
            simulate::simulate(&plan, size.parse().unwrap(), Policy::EveryStep, "circuit");
        let first = time_of_volumes(&[1], 4096);
        let volumes = volumes_of(volumes);
        let most = time_of_volumes(&[meeting], 4096) + 2.0 * time_of_volumes(&volumes, 4096);
        let without = 2.0 * (first + time_of_volumes(&volumes, 4096));
        let time = simulated.unwrap().time.seconds();
        assert!(time <= most + 1e-9, "{spec}: {time} s, {most} s");
        // That is the point of it.
        assert!(time < without, "{spec}: {time} s, {without} s");
    }
}

#[test]
fn bundles_are_right_on_rings_of_all_kinds() {
    let mut left_out = crate::leaves_out(4);
    for options in [
        "ranks=4,wavelengths=1",
        "ranks=6,wavelengths=2",
        "ranks=12,wavelengths=3",
        "ranks=16,wavelengths=2",
        "ranks=20,wavelengths=4,dead=1",
        "ranks=30,wavelengths=3,fibres=3",
        "ranks=30,wavelengths=4,fibres=2,converters=full",
        "ranks=30,wavelengths=4,multicast=drop_and_continue",
        "ranks=30,wavelengths=8,conversion=1us,propagation=30ns",
        "ranks=16,wavelengths=20,reach=4",
        "ranks=48,wavelengths=8,reach=7",
        "ranks=48,wavelengths=150",
    ] {
        let fabric = Fabric::parse(&format!("wdm_ring:{options}")).unwrap();
        for kind in [
            CollectiveKind::AllGather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::AllReduce,
        ] {
            let collective = Collective::new(kind, fabric.ranks()).unwrap();
            for policy in [Policy::EveryStep, Policy::OnChange, Policy::Free] {
                if left_out() {
                    continue;
                }
                check("aggregated_trees", &fabric, collective, "20KiB", policy);
            }
        }
    }
}

/// A specification, a ring, and a part of the refusal.
const REFUSED: &str = "
aggregated_trees:group=5,per_lightpath=5x5 | ranks=64,wavelengths=8 | must divide the 64 ranks
aggregated_trees:group=2 | ranks=64,wavelengths=8 | are needed with a group
aggregated_trees:group=2,per_lightpath=1x1 | ranks=64,wavelengths=8 | no tree was found
aggregated_trees:group=2,exchange=2,per_lightpath=2x2 | ranks=64,wavelengths=8 | applies to all_reduce only
aggregated_trees:per_lightpath=2x5000 | ranks=64,wavelengths=8 | at most 4096
aggregated_trees | ranks=97,wavelengths=8 | no tree was found
aggregated_trees | ranks=64,wavelengths=8,ports=4 | does not support `ports`
";

#[test]
fn bundles_refuse_what_has_no_tree() {
    for [spec, options, reason] in rows(REFUSED) {
        let fabric = Fabric::parse(&format!("wdm_ring:{options}")).unwrap();
        let collective = Collective::new(CollectiveKind::AllGather, fabric.ranks()).unwrap();
        let error = refusal(spec, &fabric, collective, Some(Policy::EveryStep));
        assert!(error.contains(reason), "{spec} on {options}: {error}");
    }
}

#[test]
fn several_blocks_on_lightpaths_of_trees_are_near_the_bound() {
    // A block of 64 KiB takes half a reconfiguration: with one block on a lightpath there would be
    // too many slots, with three slots too many blocks.
    for (ranks, wavelengths, percent) in [(64, 8, 15.0), (256, 32, 6.0), (1024, 64, 6.0)] {
        let collective = Collective::new(CollectiveKind::AllGather, ranks).unwrap();
        let fabric = on(ranks, wavelengths);
        let plan = check("auto", &fabric, collective, "64KiB", Policy::EveryStep);
        let ring = fabric.downcast::<WdmRing>().unwrap();
        let size = "64KiB".parse().unwrap();
        let charge = reconfiguration_cost(ring, Policy::EveryStep);
        let bound = time::best(ring, &collective, size, charge).unwrap().time;
        let time = simulate::simulate(&plan, size, Policy::EveryStep, "circuit");
        let gap = time.unwrap().time.seconds() / bound.seconds() - 1.0;
        assert!(100.0 * gap <= percent, "{ranks} ranks: {gap}");
    }
}
