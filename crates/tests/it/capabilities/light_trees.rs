//! Rings with light trees: ranks take a share of the passing light.

use opticoll::collective::{Collective, CollectiveKind};
use opticoll::plan::{NamedRoutes, Plan, Repetition};
use opticoll::schedule::Transfer;
use opticoll::simulate;
use opticoll::simulate::Policy;
use opticoll::units::{Bytes, Time};

use super::{fabric, gathered, planned, proved};
use opticoll::family::wdm_ring::{Direction, WdmLight};

#[test]
fn light_trees_gather_in_half_as_many_slots_as_ranks_per_channel() {
    for (ranks, wavelengths) in [
        (2u32, 1u32),
        (3, 1),
        (16, 2),
        (17, 2),
        (33, 16),
        (64, 8),
        (100, 7),
        (101, 5),
        (256, 16),
        (1024, 64),
    ] {
        let options =
            format!("ranks={ranks},wavelengths={wavelengths},multicast=drop_and_continue");
        let (plan, bound) = gathered(&options, 1);
        let tight = ranks % 2 == 0 || (ranks - 1) / 2 % wavelengths != 0;
        let most = if tight {
            bound
        } else {
            u64::from(ranks).div_ceil(2 * u64::from(wavelengths))
        };
        assert!(
            u64::from(plan.slots()) <= most,
            "{options}: {}",
            plan.slots()
        );
    }
}

#[test]
fn light_trees_broadcast_in_one_slot_and_halve_the_way_back_of_an_all_reduce() {
    let options = "ranks=16,wavelengths=2,multicast=drop_and_continue";
    // As many pieces as both directions have channels go all the way around in a slot.
    for algorithm in ["auto", "tree:light_trees=1", "tree:light_trees=4"] {
        let kind = CollectiveKind::Broadcast;
        let tree = planned(kind, options, algorithm, Policy::EveryStep).unwrap();
        assert_eq!(tree.slots(), 1, "{algorithm}");
    }
    // Five slots of relay trees there (their bound), four of light trees back.
    let both = planned(
        CollectiveKind::AllReduce,
        options,
        "relay_tree",
        Policy::EveryStep,
    )
    .unwrap();
    assert_eq!(both.slots(), 5 + 4);
}

/// Builds a plan on a ring of 5 ranks: a light tree from rank 0 to ranks 1, 2 and 3, then a
/// lightpath from rank 3 to rank 4, all clockwise.
fn tree_then_lightpath(options: &str) -> Plan {
    let fabric = fabric(options);
    let collective = Collective::new(CollectiveKind::Broadcast, 5).unwrap();
    let mut schedule = opticoll::schedule::Schedule::new(collective);
    schedule.push(Transfer::copy(0, 0, 1));
    schedule.push(Transfer::copy(0, 0, 3));
    schedule.push(Transfer::copy(0, 0, 2));
    schedule.begin_step();
    schedule.push(Transfer::copy(0, 3, 4));
    let clockwise = WdmLight::towards(Direction::Clockwise);
    Plan {
        fabric,
        schedule,
        algorithm: "by hand".into(),
        size: None,
        light: vec![clockwise; 4],
        slot: vec![0, 0, 0, 1],
        step_slots: vec![0..1, 1..2],
        relays: Vec::new(),
        routes: NamedRoutes::default(),
        repetition: Repetition::NONE,
    }
}

#[test]
fn a_light_tree_takes_as_long_as_its_farthest_drop() {
    let plan = tree_then_lightpath(
        "ranks=5,wavelengths=1,rate=8Gb/s,reconfiguration=25us,propagation=1us,conversion=2us,\
         multicast=drop_and_continue",
    );
    proved(&plan);
    // 1000 bytes in 1 us. The tree: 2 + 3 * 1 + 1 us; the lightpath after it: 2 + 1 + 1 us.
    let (tree, path, retune) = (6, 4, 25);
    for (policy, microseconds) in [
        (Policy::Free, tree + path),
        (Policy::EveryStep, retune + tree + retune + path),
        // The tree and the lightpath share no link, and are set up together.
        (Policy::OnChange, retune + tree + path),
        // Rank 3's transmitter and rank 4's receiver are tuned while the tree is up.
        (Policy::PerPort, retune + tree + path),
    ] {
        let outcome = simulate::circuit::simulate(&plan, Bytes::new(1000), policy).unwrap();
        let expected = Time::from_ps(microseconds * 1_000_000);
        assert_eq!(outcome.time, expected, "{}", policy.name());
        // The tree's light crosses links 0, 1, 2 once, and leaves rank 0 once.
        assert_eq!(outcome.links.bytes[..5], [1000, 1000, 1000, 1000, 0]);
        assert_eq!(outcome.ranks.sent, [1000, 0, 0, 1000, 0]);
        assert_eq!(outcome.ranks.received, [0, 1000, 1000, 1000, 1000]);
        assert_eq!(outcome.slots.lightpaths, [1, 1]);
    }
    // Four links in use, of 2 directions, 5 links, 1 channel and 2 slots.
    assert!((simulate::circuit::utilisation(&plan) - 4.0 / 20.0).abs() < 1e-12);
}

#[test]
fn reductions_on_rings_of_light_trees_are_proved() {
    for ranks in [2, 4, 6, 8, 9] {
        for (kind, name) in [
            (CollectiveKind::ReduceScatter, "relay_tree"),
            (CollectiveKind::ReduceScatter, "auto"),
            (CollectiveKind::AllReduce, "relay_tree"),
            (CollectiveKind::AllReduce, "auto"),
        ] {
            let options = format!("ranks={ranks},wavelengths=2,multicast=drop_and_continue");
            planned(kind, &options, name, Policy::EveryStep).unwrap();
        }
    }
}
