//! Capabilities of rings: their specifications, plans and simulations.

mod light_trees;

use crate::reconfiguration_cost;
use opticoll::bounds::wdm_ring;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::family::wdm_ring::{WdmLight, WdmRing};
use opticoll::plan::Plan;
use opticoll::planner::{self, PlannerError};
use opticoll::simulate;
use opticoll::simulate::Policy;
use opticoll::units::Bytes;
use opticoll::verify::verify;

use crate::{number, rows};

fn fabric(options: &str) -> Fabric {
    Fabric::parse(&format!("wdm_ring:{options}")).unwrap_or_else(|error| panic!("{error}"))
}

fn ring(options: &str) -> WdmRing {
    fabric(options).downcast::<WdmRing>().unwrap().clone()
}

#[track_caller]
fn proved(plan: &Plan) {
    let violations = verify(plan);
    let first = violations.first().map(|violation| &violation.sentence);
    assert_eq!(first, None, "{}", plan.fabric);
}

/// Returns a verified all_gather by relay trees, and the bound on its slots.
fn gathered(options: &str, pieces: u32) -> (Plan, u64) {
    let fabric = fabric(options);
    let ring = fabric.downcast::<WdmRing>().unwrap();
    let collective = Collective::new(CollectiveKind::AllGather, ring.ranks)
        .and_then(|collective| collective.with_pieces(pieces))
        .unwrap();
    let plan = planner::relay_tree(&fabric, collective)
        .unwrap_or_else(|error| panic!("{options}: {error}"));
    assert!(verify(&plan).is_empty(), "{options}: {:?}", verify(&plan));
    let plan = plan.into_expanded();
    proved(&plan);
    let bound = wdm_ring::best(ring, &collective).steps;
    assert!(u64::from(plan.slots()) >= bound, "{options}");
    (plan, bound)
}

/// Returns the verified plan of `algorithm`.
fn planned(
    kind: CollectiveKind,
    options: &str,
    algorithm: &str,
    policy: Policy,
) -> Result<Plan, PlannerError> {
    let fabric = fabric(options);
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let (size, spec) = ("1MiB".parse().unwrap(), algorithm.parse().unwrap());
    let plan = planner::plan(&spec, &fabric, collective, size, &policy.into())?
        .plan
        .into_expanded();
    proved(&plan);
    assert_eq!(plan.fabric, fabric);
    Ok(plan)
}

/// Options as they are given, and as the ring writes them.
const WRITTEN: &str = "
multicast=none | -
multicast=drop_and_continue | ,multicast=drop_and_continue
reach=3 | ,reach=3
broken=3-4 | ,broken=3-4
broken=4-3 | ,broken=3-4
broken=0-7 | ,broken=7-0
broken=3-4cw+3-4ccw | ,broken=3-4
broken=6-5ccw+1-2cw | ,broken=1-2cw+5-6ccw
dead=3 | ,dead=3
dead=0.3+1.3+1.0 | ,dead=3+1.0
dead=2+2 | ,dead=2
launch_power=5dBm,sensitivity=-20.50dBm,through_loss=0.000001dB
    | ,launch_power=5dBm,sensitivity=-20.5dBm,through_loss=0.000001dB
launch_power=-0.5dBm,sensitivity=-20dBm,through_loss=0dB,drop_loss=1dB,split_loss=3dB,\
        resonators=9
    | ,launch_power=-0.5dBm,sensitivity=-20dBm,through_loss=0dB,drop_loss=1dB,\
        split_loss=3dB,resonators=9
launch_power=0dBm,sensitivity=-20dBm,through_loss=2*ring_through,fixed_loss=2*connector+0.50dB,\
        link_loss=0.1km*fibre_1310
    | ,launch_power=0dBm,sensitivity=-20dBm,through_loss=0.01dB,link_loss=0.04dB,fixed_loss=2dB
";

#[test]
fn every_option_is_read_back_as_it_is_spelled() {
    let base = "wdm_ring:ranks=8,wavelengths=4,fibres=2,rate=40Gb/s,reconfiguration=25us";
    for [given, spelled] in rows(WRITTEN) {
        let parsed = Fabric::parse(&format!("{base},{given}")).unwrap();
        let written = format!("{base}{}", spelled.trim_start_matches('-'));
        assert_eq!(parsed.to_string(), written, "{given}");
        assert_eq!(Fabric::parse(&parsed.to_string()).unwrap(), parsed);
    }
}

#[test]
fn light_reaches_as_far_as_its_budget() {
    // (options, most links, most links with a share taken at each rank): 10 dB to lose.
    for (losses, alone, shared) in [
        ("through_loss=0dB", 99, 99),
        ("through_loss=1dB,resonators=1", 11, 11),
        ("through_loss=1dB,resonators=1,drop_loss=0.5dB", 10, 10),
        ("through_loss=0.25dB", 11, 11),
        ("through_loss=0.25dB,split_loss=1dB", 11, 6),
        ("through_loss=0.25dB,split_loss=1dB,reach=4", 4, 4),
        ("through_loss=0dB,split_loss=3dB", 99, 4),
        ("through_loss=0.250001dB", 10, 10),
    ] {
        let ring = ring(&format!(
            "ranks=100,wavelengths=4,launch_power=3dBm,sensitivity=-7dBm,{losses}"
        ));
        assert_eq!(
            (ring.longest(), ring.longest_tree()),
            (alone, shared),
            "{losses}"
        );
    }
}

/// A ring, pieces, and the largest excess of the slots over their bound in percent.
const EXCESS_OVER_BOUND: &str = "
# As many slots as a whole ring with half the channels.
ranks=64,wavelengths=8,broken=3-4 | 1 | 63
ranks=64,wavelengths=8,broken=63-0cw | 1 | 63
ranks=16,wavelengths=2,broken=0-1 | 1 | 0
ranks=64,wavelengths=1,broken=63-0 | 1 | 0
# Pieces that fill the channels go from rank to rank, all at once.
ranks=64,wavelengths=8,broken=3-4 | 8 | 0
ranks=33,wavelengths=4,broken=0-1ccw | 4 | 0
ranks=64,wavelengths=8,broken=3-4,multicast=drop_and_continue | 1 | 0
ranks=64,wavelengths=8,dead=0+3 | 1 | 15
ranks=64,wavelengths=8,fibres=2,dead=0.5+1.7 | 1 | 25
ranks=64,wavelengths=8,reach=4 | 1 | 15
ranks=64,wavelengths=8,reach=5,multicast=drop_and_continue | 1 | 15
ranks=64,wavelengths=8,reach=1 | 1 | 0
ranks=64,wavelengths=8,reach=4,broken=3-4 | 1 | 32
";

#[test]
fn slots_stay_near_their_bound_on_a_ring_that_has_or_lacks_something() {
    for [options, pieces, most_percent] in rows(EXCESS_OVER_BOUND) {
        let (plan, bound) = gathered(options, number(pieces));
        let most = bound * (100 + number::<u64>(most_percent)) / 100;
        let slots = u64::from(plan.slots());
        assert!(slots <= most, "{options}: {slots} slots, bound {bound}");
    }
}

/// A ring, a collective, a bound and the slots that it proves; `-` where it does not hold.
const BOUNDS: &str = r"
# 63 blocks over the 8 channels into an end of the line.
ranks=64,wavelengths=8,broken=3-4 | all_gather | receive | 8
ranks=64,wavelengths=8,broken=3-4cw | reduce_scatter | receive | 8
ranks=64,wavelengths=8 | all_gather | receive | 4
ranks=64,wavelengths=8,dead=1+2 | all_gather | receive | 6
# The root, in the middle of the line, takes in from both sides.
ranks=64,wavelengths=8,broken=31-32 | gather | receive | 4
ranks=64,wavelengths=8,broken=63-0 | gather | receive | 8
# 32 * 32 pairs over the 2 * 8 channels between two halves, or 8.
ranks=64,wavelengths=8 | all_to_all | cut | 64
ranks=64,wavelengths=8,broken=9-10ccw | all_to_all | cut | 128
# 32 links, 63 on a line, 4 in a slot; from the root of a line at 0, cut at 3-4: 60.
ranks=64,wavelengths=8,reach=4 | all_reduce | reach | 8
ranks=64,wavelengths=8,reach=4,broken=3-4 | all_gather | reach | 16
ranks=64,wavelengths=8,reach=4,broken=3-4 | broadcast | reach | 15
ranks=64,wavelengths=8 | all_gather | reach | -
# In its first slot a block goes to 2 * (5 + 1 / 6) ranks on average: 255 = 10.3 + 15.3 * 16.
ranks=256,wavelengths=16,ports=16 | all_gather | first_slot | 17
ranks=256,wavelengths=16 | all_gather | first_slot | -
ranks=64,wavelengths=8,multicast=drop_and_continue | all_gather | receive | 4
# A rank hears from 16 others in a slot: 17 * 17 >= 64.
ranks=64,wavelengths=8,multicast=drop_and_continue | all_gather | growth | 2
ranks=64,wavelengths=8,multicast=drop_and_continue | all_gather | relay_tree | -
ranks=64,wavelengths=8,multicast=drop_and_continue | reduce_scatter | relay_tree | 7
ranks=64,wavelengths=8,multicast=drop_and_continue | broadcast | growth | 1
";

#[test]
fn bounds_know_what_a_ring_has_or_lacks() {
    for [options, kind, name, slots] in rows(BOUNDS) {
        let collective = Collective::new(kind.parse().unwrap(), ring(options).ranks).unwrap();
        let bounds = wdm_ring::slots(&ring(options), &collective);
        let found = bounds.iter().find(|bound| bound.name == name);
        assert_eq!(
            found.map(|bound| bound.steps),
            slots.parse().ok(),
            "{kind} on {options}: {name}"
        );
    }
}

#[test]
fn few_ports_are_all_busy() {
    // (N, w): at most a slot more than the bound, and none where it is 10 or more.
    for (ranks, wavelengths) in [(16, 2), (64, 8), (100, 5), (101, 8), (256, 16)] {
        for ports in [1, 2, 4, 8, 16] {
            if ports > 2 * wavelengths {
                continue;
            }
            let options = format!("ranks={ranks},wavelengths={wavelengths},ports={ports}");
            let (plan, bound) = gathered(&options, 1);
            let slots = u64::from(plan.slots());
            assert!(
                slots <= (bound * 11 / 10).max(bound + 1),
                "{options}: {slots}, bound {bound}"
            );
        }
    }
}

#[test]
fn no_named_algorithm_takes_fewer_slots_on_such_a_ring() {
    for options in [
        "ranks=12,wavelengths=3,broken=3-4",
        "ranks=13,wavelengths=2,broken=12-0ccw",
        "ranks=12,wavelengths=4,broken=1-2cw+6-7cw",
        "ranks=16,wavelengths=4,ports=3",
        "ranks=16,wavelengths=4,ports=7",
        "ranks=16,wavelengths=2,reach=3",
        "ranks=9,wavelengths=3,dead=1",
        "ranks=15,wavelengths=2,multicast=drop_and_continue",
        "ranks=16,wavelengths=2,fibres=2,converters=full,ports=2,broken=2-3",
    ] {
        let (ours, _) = gathered(options, 1);
        for record in crate::general_algorithms() {
            if record.collective != CollectiveKind::AllGather {
                continue;
            }
            match planned(record.collective, options, record.name, Policy::EveryStep) {
                Ok(named) => assert!(
                    ours.slots() <= named.slots(),
                    "{options}: {}, {} takes {}",
                    ours.slots(),
                    record.name,
                    named.slots()
                ),
                Err(error) => {
                    let error = error.to_string();
                    let expected = ["reach of light", "broken fibre", "does not run"];
                    assert!(expected.iter().any(|part| error.contains(part)), "{error}");
                }
            }
        }
    }
}

#[test]
fn a_ring_cut_into_parts_is_refused_for_what_it_is() {
    for broken in ["1-2+5-6", "1-2cw+5-6ccw", "1-2+5-6cw"] {
        for (kind, algorithm) in [
            (CollectiveKind::AllGather, "auto"),
            (CollectiveKind::AllGather, "relay_tree"),
            (CollectiveKind::AllGather, "ring"),
            (CollectiveKind::Broadcast, "auto"),
            (CollectiveKind::AllReduce, "auto"),
        ] {
            let options = format!("ranks=8,wavelengths=2,broken={broken}");
            let refused = planned(kind, &options, algorithm, Policy::EveryStep);
            assert_eq!(refused, Err(PlannerError::CutOff), "{options} {algorithm}");
        }
    }
}

#[test]
fn an_algorithm_with_longer_lightpaths_than_light_reaches_is_refused() {
    let options = "ranks=16,wavelengths=4,reach=3";
    let refused = planned(
        CollectiveKind::AllGather,
        options,
        "one_stage",
        Policy::EveryStep,
    );
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("the reach of light is 3"), "{error}");
}

#[test]
fn two_fibres_are_worth_twice_the_wavelengths() {
    for (ranks, half, whole) in [(64, 4, 8), (256, 8, 16), (1024, 32, 64)] {
        let (two, _) = gathered(&format!("ranks={ranks},wavelengths={half},fibres=2"), 1);
        let (one, _) = gathered(&format!("ranks={ranks},wavelengths={whole}"), 1);
        assert_eq!(two.slots(), one.slots(), "{ranks} ranks");
        assert!(
            two.light
                .iter()
                .any(|light| WdmLight::from(*light).fibre == 1)
        );
    }
}

#[test]
fn converters_make_up_for_lengths_that_do_not_divide_the_ring() {
    for (ranks, wavelengths) in [(13, 3), (61, 4), (101, 4), (127, 8), (251, 4)] {
        let options = format!("ranks={ranks},wavelengths={wavelengths}");
        let (without, _) = gathered(&options, 1);
        let (with, bound) = gathered(&format!("{options},converters=full"), 1);
        assert!(with.slots() <= without.slots(), "{options}");
        assert!(
            u64::from(with.slots()) <= bound + 1,
            "{options}: {}",
            with.slots()
        );
    }
}

/// A collective, a ring, an algorithm and a size that the ranks do not divide: the rank at the
/// break may have the smaller blocks.
const BROKEN: &str = "
all_to_all | ranks=4,wavelengths=1,broken=1-2ccw | direct | 5
reduce_scatter | ranks=4,wavelengths=1,broken=3-0cw | relay_tree | 3
reduce_scatter | ranks=9,wavelengths=1,broken=8-0cw | relay_tree | 4096
";

#[test]
fn times_beside_a_broken_link_are_not_below_their_bound() {
    for [kind, options, name, size] in rows(BROKEN) {
        let size = number::<u64>(size);
        let plan = planned(kind.parse().unwrap(), options, name, Policy::PerPort).unwrap();
        let ring = plan.fabric.downcast::<WdmRing>().unwrap();
        for size in [size, size + 1, 7 * size].map(Bytes::new) {
            for policy in Policy::ALL {
                let bound = wdm_ring::time::best(
                    ring,
                    &plan.schedule.collective,
                    size,
                    reconfiguration_cost(ring, policy),
                )
                .unwrap();
                let time = simulate::simulate(&plan, size, policy, "circuit")
                    .unwrap()
                    .time;
                assert!(
                    time >= bound.time,
                    "{kind} on {options}, {policy:?}: {time} below {bound:?}"
                );
            }
        }
    }
}
