//! Plans on circuit switches: times equal formulas to the picosecond, settings are the best ones by
//! search, and no plan is below its bounds.

mod forwarding;
mod packet_network;
mod wiring;

use std::collections::BTreeMap;

use itertools::iproduct;
use opticoll::bounds::circuit_switch;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::family::circuit_switch::CircuitSwitch;
use opticoll::plan::Plan;
use opticoll::simulate;
use opticoll::simulate::circuit::succession::{Direction, EndCircuits, RankPorts};
use opticoll::simulate::{Paths, Policy, TimingModel};
use opticoll::units::{Bytes, Time};

use crate::proved_plan;

use CollectiveKind::{AllGather, AllReduce, AllToAll, Broadcast};

const POLICIES: [Policy; 5] = [
    Policy::AllStop,
    Policy::Planes,
    Policy::PerPort,
    Policy::EveryStep,
    Policy::Free,
];

/// Returns the verified plan of an algorithm or a planner.
pub(crate) fn proved(
    kind: CollectiveKind,
    algorithm: &str,
    fabric: &str,
    size: u64,
    policy: Policy,
) -> Plan {
    let fabric = Fabric::parse(&format!("circuit_switch:{fabric}")).unwrap();
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let (size, method) = (Bytes::new(size), TimingModel::from(policy));
    proved_plan(algorithm, &fabric, collective, size, &method).plan
}

/// Returns the time of that plan in picoseconds, which is never below the bound.
pub(crate) fn time(
    kind: CollectiveKind,
    algorithm: &str,
    fabric: &str,
    size: u64,
    policy: Policy,
) -> u64 {
    let plan = proved(kind, algorithm, fabric, size, policy);
    let outcome = simulate::circuit::simulate(&plan, Bytes::new(size), policy).unwrap();
    let collective = &plan.schedule.collective;
    let least = bound_of(&plan.fabric, collective, size, policy);
    assert!(
        outcome.time >= least,
        "{kind} {algorithm} on {}, {size} bytes, {}: {} below {least}",
        plan.fabric.spec(),
        policy.name(),
        outcome.time
    );
    outcome.time.ps()
}

pub(crate) fn bound_of(
    fabric: &Fabric,
    collective: &Collective,
    size: u64,
    policy: Policy,
) -> Time {
    let switch = fabric.downcast::<CircuitSwitch>().unwrap();
    let charge = fabric.circuits().unwrap().charge(policy.name()).unwrap();
    let size = Bytes::new(size);
    circuit_switch::best(switch, collective, size, charge)
        .unwrap()
        .time
}

/// alpha and delta of 100 ns, in picoseconds.
const ALPHA: u64 = 100_000;
const DELTA: u64 = 100_000;

/// Picoseconds of a byte at 800 Gb/s.
pub(crate) const BETA: u64 = 10;

fn paper(ranks: u64, reconfiguration: &str) -> String {
    format!(
        "ranks={ranks},rate=800Gb/s,startup=100ns,latency=100ns,reconfiguration={reconfiguration}"
    )
}

/// Lists the steps of halving and doubling along a cycle: the base-2 logarithm of the distance, and
/// the bytes of each message.
fn steps(ranks: u64, size: u64) -> Vec<(u32, u64)> {
    let halving = (0..ranks.ilog2()).map(|exponent| (exponent, size >> (exponent + 1)));
    let halving: Vec<(u32, u64)> = halving.collect();
    let doubling = halving.iter().rev().copied();
    halving.iter().copied().chain(doubling).collect()
}

/// Returns the time of a step over a distance of 2^b on a setting of shifts by 2^a.
fn step_time((exponent, bytes): (u32, u64), setting: u32) -> Option<u64> {
    let hops = 1 << exponent.checked_sub(setting)?;
    Some(ALPHA + hops * (DELTA + BETA * bytes))
}

/// Returns the least time over all sequences of settings of one plane.
fn exhaustive(steps: &[(u32, u64)], settings: u32, change: u64, before: Option<u32>) -> u64 {
    let Some((first, rest)) = steps.split_first() else {
        return 0;
    };
    let of_setting = |setting: u32| {
        let changed = before.is_some_and(|before| before != setting);
        let rest = exhaustive(rest, settings, change, Some(setting));
        Some(step_time(*first, setting)? + u64::from(changed) * change + rest)
    };
    (0..settings).filter_map(of_setting).min().unwrap()
}

/// Returns the least end over all sequences of settings and planes, where a plane changes as soon
/// as its last transfer has ended. Each plane is the time from which it is free, and its setting.
fn exhaustive_on_planes(
    steps: &[(u32, u64)],
    settings: u32,
    change: u64,
    planes: &[(u64, Option<u32>)],
    now: u64,
) -> u64 {
    let Some((first, rest)) = steps.split_first() else {
        return now;
    };
    let mut least = u64::MAX;
    for setting in 0..settings {
        let Some(time) = step_time(*first, setting) else {
            continue;
        };
        for (plane, &(free, held)) in planes.iter().enumerate() {
            let changed = held.is_some_and(|held| held != setting);
            let end = now.max(free + u64::from(changed) * change) + time;
            let mut planes = planes.to_vec();
            planes[plane] = (end, Some(setting));
            let all = exhaustive_on_planes(rest, settings, change, &planes, end);
            least = least.min(all);
        }
    }
    least
}

#[test]
fn the_best_settings_are_those_of_an_exhaustive_search_under_every_policy() {
    let algorithm = "switch_configurations:algorithm=cyclic_doubling";
    for ranks in [4u64, 8] {
        for size in SIZES {
            for change in [0u64, 10, 100, 300, 1_000, 10_000, 100_000, 1_000_000] {
                let steps = steps(ranks, size);
                let settings = ranks.ilog2();
                for (planes, policy) in [(1, Policy::PerPort), (1, Policy::Planes)] {
                    let fabric = paper(ranks, &format!("{change}ns"));
                    let fabric = format!("{fabric},ports={planes},planes={planes}");
                    let found = time(AllReduce, algorithm, &fabric, size, policy);
                    let planes = vec![(0, None); planes];
                    let least = exhaustive_on_planes(&steps, settings, change * 1000, &planes, 0);
                    assert_eq!(found, least, "{ranks} {size} {change} ns {planes:?}");
                }
                // R in each slot, of which a step over h circuits has h.
                let each = |step: &(u32, u64)| {
                    let time = |setting: u32| {
                        let hops = 1u64 << step.0.checked_sub(setting)?;
                        Some(step_time(*step, setting)? + hops * change * 1000)
                    };
                    (0..settings).filter_map(time).min().unwrap()
                };
                let least: u64 = steps.iter().map(each).sum();
                let fabric = paper(ranks, &format!("{change}ns"));
                let found = time(AllReduce, algorithm, &fabric, size, Policy::EveryStep);
                assert_eq!(found, least, "{ranks} {size} {change} ns");
                for (policy, charged) in [(Policy::AllStop, change), (Policy::Free, 0)] {
                    let least = exhaustive(&steps, settings, charged * 1000, None);
                    let found = time(AllReduce, algorithm, &fabric, size, policy);
                    assert_eq!(found, least, "{ranks} {size} {change} ns");
                }
            }
        }
    }
}

const SIZES: [u64; 3] = [1 << 10, 1 << 20, 1 << 30];

#[test]
fn halving_and_doubling_takes_what_its_formulas_say() {
    for ranks in [4u64, 8, 16, 64] {
        let rounds = u64::from(ranks.ilog2());
        for size in SIZES {
            for (text, change) in [
                ("10ns", 10_000),
                ("1us", 1_000_000),
                ("10us", 10_000_000),
                ("1ms", 1_000_000_000),
            ] {
                let fabric = paper(ranks, text);
                let cyclic = |settings: &str| {
                    let algorithm = format!(
                        "switch_configurations:algorithm=cyclic_doubling,configurations={settings}"
                    );
                    time(AllReduce, &algorithm, &fabric, size, Policy::AllStop)
                };
                let fixed = 2 * rounds * ALPHA + 2 * (ranks - 1) * DELTA + rounds * BETA * size;
                assert_eq!(cyclic("one"), fixed, "{ranks} {size}");
                let sent = 2 * BETA * (size - size / ranks);
                let each = 2 * rounds * (ALPHA + DELTA) + sent + (2 * rounds - 2) * change;
                assert_eq!(cyclic("each"), each, "{ranks} {size} {text}");
                let ring = 2 * (ranks - 1) * (ALPHA + DELTA + BETA * size / ranks);
                let found = time(AllReduce, "ring", &fabric, size, Policy::AllStop);
                assert_eq!(found, ring, "{ranks} {size}");
            }
        }
    }
}

#[test]
fn the_best_settings_take_the_times_of_the_literature() {
    // 64 ranks, in hundredths of a nanosecond; computed by others with a shortest path over steps
    // and settings.
    for (size, change, expected) in [
        (1 << 10, "10ns", 252_016),
        (1 << 10, "1us", 603_456),
        (1 << 20, "10ns", 2_314_384),
        (1 << 20, "1us", 3_108_224),
        (1 << 20, "10us", 5_625_728),
        (1 << 30, "10ns", 2_114_179_216),
        (1 << 30, "1us", 2_115_169_216),
        (1 << 30, "10us", 2_124_169_216),
        (1 << 30, "1ms", 2_881_981_376),
    ] {
        let algorithm = "switch_configurations:algorithm=cyclic_doubling";
        let found = time(
            AllReduce,
            algorithm,
            &paper(64, change),
            size,
            Policy::AllStop,
        );
        assert_eq!(found, expected * 10, "{size} {change}");
    }
}

#[test]
fn auto_takes_the_ring_where_changes_are_dear() {
    let auto = proved(
        AllReduce,
        "auto",
        &paper(64, "10us"),
        1 << 20,
        Policy::AllStop,
    );
    let outcome = simulate::circuit::simulate(&auto, Bytes::new(1 << 20), Policy::AllStop).unwrap();
    // The static ring takes 45,843.84 ns.
    assert!(
        outcome.time <= Time::from_ps(45_843_840),
        "{}",
        outcome.time
    );
}

#[test]
fn hops_of_an_all_to_all_are_those_counted_by_hand() {
    let least = |ranks: u128, ports: u32, settings: u64| {
        circuit_switch::least_hops(ranks - 1, |hops| {
            circuit_switch::hop_orders(hops, settings) * u128::from(ports).pow(hops as u32)
        })
    };
    for (ranks, ports, expected) in [
        (16, 1, [120, 45, 33, 27]),
        (64, 1, [2016, 420, 258, 200]),
        (256, 1, [32640, 3608, 1845, 1330]),
    ] {
        let found = [1, 2, 3, 4].map(|settings| least(ranks, ports, settings));
        assert_eq!(found, expected, "{ranks}");
    }
    assert_eq!(
        [1, 2, 4].map(|settings| least(64, 2, settings)),
        [264, 184, 133]
    );
}

/// Returns the least sum of hops of the shortest routes over all sequences of `settings` settings
/// of one port; the search does not use the symmetry of shifts.
fn fewest_hops(ranks: usize, settings: usize) -> u64 {
    let permutations = permutations(ranks);
    let mut least = u64::MAX;
    let mut chosen = vec![0; settings];
    loop {
        let mut all = 0u64;
        for source in 0..ranks {
            let mut far = vec![u64::MAX; ranks];
            far[source] = 0;
            for &one in &chosen {
                for _ in 0..ranks {
                    for rank in 0..ranks {
                        let to = permutations[one][rank];
                        far[to] = far[to].min(far[rank].saturating_add(1));
                    }
                }
            }
            all = far.iter().fold(all, |all, hops| all.saturating_add(*hops));
        }
        least = least.min(all);
        let Some(place) = (0..settings).find(|place| chosen[*place] + 1 < permutations.len())
        else {
            return least;
        };
        chosen[place] += 1;
        chosen[..place].fill(0);
    }
}

fn permutations(ranks: usize) -> Vec<Vec<usize>> {
    if ranks == 0 {
        return vec![Vec::new()];
    }
    let shorter = permutations(ranks - 1).into_iter();
    let longer = shorter.flat_map(|one| {
        (0..ranks).map(move |place| {
            let mut longer = one.clone();
            longer.insert(place, ranks - 1);
            longer
        })
    });
    longer.collect()
}

/// Returns the least sum of hops to this number of ranks where a route has at most as many hops in
/// a setting as the setting has slots. The function counts every route.
fn counted_hops(ranks: u64, ports: u64, settings: &[u64]) -> Option<u128> {
    let mut ways = vec![1u64];
    for slots in settings {
        let mut longer = vec![0; ways.len() + *slots as usize];
        for (hops, ways) in ways.iter().enumerate() {
            (0..=*slots as usize).for_each(|more| longer[hops + more] += ways);
        }
        ways = longer;
    }
    let (mut left, mut all) = (ranks, 0);
    for (hops, ways) in ways.iter().enumerate().skip(1) {
        let here = (ways * ports.pow(hops as u32)).min(left);
        (left, all) = (left - here, all + u128::from(here) * hops as u128);
    }
    (left == 0).then_some(all)
}

#[test]
fn hops_in_few_slots_are_those_of_the_best_division_of_slots_among_settings() {
    // All ways to divide slots among settings, the even one among them.
    fn divisions(settings: usize, slots: u64) -> Vec<Vec<u64>> {
        if settings == 0 {
            return if slots == 0 {
                vec![Vec::new()]
            } else {
                Vec::new()
            };
        }
        let first = 0..=slots;
        let all = first.flat_map(|first| {
            let rest = divisions(settings - 1, slots - first);
            rest.into_iter().map(move |mut rest| {
                rest.push(first);
                rest
            })
        });
        all.collect()
    }
    let mut reached = 0;
    for settings in 1..=4 {
        for slots in settings..=8 {
            for ports in 1..=3 {
                for ranks in [3, 7, 12, 15, 40, 63] {
                    let all = divisions(settings as usize, slots);
                    let all = all.iter().filter_map(|own| counted_hops(ranks, ports, own));
                    let found = circuit_switch::fewest_hops(ranks, ports, settings, slots);
                    assert_eq!(found, all.min(), "{ranks} {ports} {settings} {slots}");
                    reached += u32::from(found.is_some());
                }
            }
        }
    }
    assert!(reached > 200, "{reached}");
}

#[test]
fn no_sequence_of_settings_has_fewer_hops_than_the_bound() {
    for (ranks, settings) in [(3, 1), (3, 2), (4, 1), (4, 2), (5, 1), (5, 2)] {
        let found = fewest_hops(ranks, settings);
        let least = circuit_switch::least_hops(ranks as u128 - 1, |hops| {
            circuit_switch::hop_orders(hops, settings as u64)
        });
        let least = least as u64 * ranks as u64;
        assert!(found >= least, "{ranks} {settings}: {found} below {least}");
        // One cycle, and two shifts on 3 to 5 ranks, meet it.
        assert_eq!(found, least, "{ranks} {settings}");
    }
}

#[test]
fn shifts_come_near_the_bound() {
    let mut left_out = crate::leaves_out(3);
    // Hops of one rank in the sequences that others found.
    for (ranks, shifts, hops) in [
        (64u64, "1x12", 436u64),
        (64, "1x15x11", 266),
        (64, "1x14x9x34", 209),
        (256, "1x25", 3720),
        (256, "1x9x56", 1911),
    ] {
        // Without latency and changes a time is bytes of hops alone.
        let fabric = format!("ranks={ranks},rate=800Gb/s,reconfiguration=0s");
        let algorithm = format!("shifts:shifts={shifts}");
        let found = time(AllToAll, &algorithm, &fabric, ranks * 1000, Policy::AllStop);
        assert_eq!(found, hops * 1000 * BETA, "{ranks} {shifts}");
    }
    // As said of 64 ranks, 1 MiB, 200 ns: 33.39 us is Bruck's time with 1 us.
    let fabric = "ranks=64,rate=800Gb/s,latency=200ns,reconfiguration=1us";
    assert!(time(AllToAll, "shifts", fabric, 1 << 20, Policy::AllStop) <= 33_390_000);
    let fabric = "ranks=64,rate=800Gb/s,latency=200ns,reconfiguration=100us";
    let bytes = 436 * (1 << 14) * BETA + 100_000_000;
    assert!(time(AllToAll, "shifts", fabric, 1 << 20, Policy::AllStop) <= bytes + 64 * 200_000);
    for (ranks, latency) in [
        (16, 0),
        (64, 0),
        (100, 0),
        (16, 200),
        (64, 200),
        (100, 200),
        (256, 200),
    ] {
        for change in ["1us", "10us", "30us", "100us", "1ms"] {
            if left_out() {
                continue;
            }
            let fabric =
                format!("ranks={ranks},rate=800Gb/s,latency={latency}ns,reconfiguration={change}");
            let found = time(AllToAll, "shifts", &fabric, ranks << 14, Policy::AllStop);
            let fabric = Fabric::parse(&format!("circuit_switch:{fabric}")).unwrap();
            let collective = Collective::new(AllToAll, ranks as u32).unwrap();
            let least = bound_of(&fabric, &collective, ranks << 14, Policy::AllStop).ps();
            assert!(
                found * 1000 <= least * 1075,
                "{ranks} {latency} ns {change}: {found}, {least}"
            );
        }
    }
}

#[test]
fn uniform_all_to_alls_on_planes_take_no_more_than_rows_and_columns_ask_for() {
    for (ranks, planes) in [(7u64, 1u64), (7, 2), (7, 3), (13, 4), (16, 5)] {
        for first in ["charged", "free"] {
            let change = 3_000_000;
            let fabric = format!(
                "ranks={ranks},ports={planes},planes={planes},rate=800Gb/s,\
                 reconfiguration=1us+1us+1us,\
                 first_configuration={first}"
            );
            let found = time(AllToAll, "direct", &fabric, ranks * 1000, Policy::Planes);
            // (sum + settings R) / s, with (n - 1) divisible by s.
            let settings = (ranks - 1) / planes;
            let charged = settings - u64::from(first == "free");
            let expected = settings * 1000 * BETA + charged * change;
            assert_eq!(found, expected, "{ranks} {planes} {first}");
        }
    }
}

#[test]
fn a_plane_changes_while_another_sends() {
    // Pairwise exchange on two planes: what follows needs what came before, so that each plane has
    // time to change.
    let fabric =
        "ranks=5,ports=2,planes=2,rate=800Gb/s,reconfiguration=1us,first_configuration=charged";
    let size = 5 * 50_000;
    // Four messages of 500 ns over two planes that change for 1 us each.
    let together = time(AllToAll, "pairwise", fabric, size, Policy::AllStop);
    let planes = time(AllToAll, "pairwise", fabric, size, Policy::Planes);
    let ports = time(AllToAll, "pairwise", fabric, size, Policy::PerPort);
    // Planes 0 and 1 change at once for the first two messages, and again when those are over.
    assert_eq!([planes, ports], [3_000_000, 3_000_000]);
    assert!(together > planes, "{together}");
}

#[test]
fn every_collective_is_planned_and_above_its_bound() {
    let mut left_out = crate::leaves_out(4);
    for kind in CollectiveKind::ALL {
        for fabric in [
            "ranks=2",
            "ranks=6,startup=1us,latency=100ns",
            "ranks=8,ports=2,latency=1us,reconfiguration=1ms",
            "ranks=9,ports=4,planes=2,reconfiguration=1us,first_configuration=charged",
        ] {
            for size in [64, 1 << 20] {
                for policy in POLICIES {
                    if left_out() {
                        continue;
                    }
                    time(kind, "auto", fabric, size, policy);
                }
            }
        }
    }
}

#[test]
fn shifts_are_chosen_for_what_the_policy_charges() {
    let fabric = "ranks=16,rate=800Gb/s,latency=200ns,reconfiguration=1ms";
    // Without a charge many settings cost nothing, and no block needs to be sent on.
    let free = proved(AllToAll, "shifts", fabric, 1 << 20, Policy::Free);
    let stopped = proved(AllToAll, "shifts", fabric, 1 << 20, Policy::AllStop);
    assert_eq!(stopped.algorithm, "shifts:shifts=1");
    assert!(free.relays.is_empty(), "{}", free.algorithm);
}

#[test]
fn no_circuits_stay_up_for_another_run() {
    let plan = proved(AllGather, "ring", "ranks=4", 1000, Policy::AllStop);
    for paths in [Paths::Kept, Paths::Warm] {
        let found =
            simulate::circuit::simulate_with(&plan, Bytes::new(1000), Policy::AllStop, paths);
        assert!(found.is_err(), "{paths:?}");
    }
}

#[test]
fn a_step_with_as_many_partners_as_ports_takes_one_slot() {
    let plan = proved(
        AllGather,
        "direct",
        "ranks=5,ports=4",
        1000,
        Policy::AllStop,
    );
    assert_eq!(plan.slots(), 4, "a step of direct has one partner");
    let at_once = proved(
        AllGather,
        "direct:order=at_once",
        "ranks=5,ports=4",
        1000,
        Policy::AllStop,
    );
    assert_eq!(at_once.slots(), 1);
    let one_port = proved(
        AllGather,
        "direct:order=at_once",
        "ranks=9",
        1000,
        Policy::AllStop,
    );
    assert_eq!(one_port.slots(), 8);
    let tree = proved(Broadcast, "binomial", "ranks=8", 1000, Policy::AllStop);
    assert_eq!(tree.slots(), 3);
}

#[test]
fn parts_of_a_reconfiguration_add_up() {
    let fabric =
        Fabric::parse("circuit_switch:ranks=8,reconfiguration=68.5us+2.8us+8.7us").unwrap();
    let switch = fabric.downcast::<CircuitSwitch>().unwrap();
    assert_eq!(
        switch.reconfiguration.time().unwrap(),
        Time::from_ps(80_000_000)
    );
}

#[test]
fn a_plan_needs_no_setup_after_one_that_ends_with_its_first_circuits() {
    let plan = |ports: u32, kind, algorithm: &str| {
        let fabric = format!("ranks=4,ports={ports},reconfiguration=10us");
        EndCircuits::new(&proved(kind, algorithm, &fabric, 1 << 20, Policy::AllStop))
    };
    // Whether circuits are set up before each plan of a sequence.
    let setups = |ports: usize, sequence: &[&EndCircuits]| -> Vec<bool> {
        let mut of_ranks = BTreeMap::<_, RankPorts>::new();
        let pass = |circuits: &&EndCircuits| {
            let ends = iproduct!(0..4, [Direction::Out, Direction::In]);
            let used = ends.filter_map(|(rank, direction)| {
                let next = circuits.rank_circuits(rank, direction)?;
                let own = of_ranks.entry((rank, direction)).or_default();
                Some(own.pass(next, ports))
            });
            used.fold(false, |any, own| any | own)
        };
        sequence.iter().map(pass).collect()
    };
    let one = plan(1, AllGather, "static:topology=shifts,shifts=1");
    let three = plan(1, AllGather, "static:topology=shifts,shifts=3");
    // Partners at distance 2, 1, 1, 2; and at distance 1, 2.
    let far = plan(1, AllReduce, "halving_doubling:order=far");
    let near = plan(1, AllGather, "recursive_doubling");
    // Each rank sends to the root in turn, so the root starts with another circuit than it ends.
    let gather = plan(1, CollectiveKind::Gather, "direct");
    let cases: [(&[&EndCircuits], &[bool]); 5] = [
        (&[&one, &one, &three, &one], &[false, false, true, true]),
        (&[&far, &far], &[false, false]),
        (&[&near, &near], &[false, true]),
        (&[&near, &far, &near], &[false, false, true]),
        (&[&gather, &gather], &[false, true]),
    ];
    for (sequence, expected) in cases {
        assert_eq!(setups(1, sequence), expected);
    }
    // A port that was not used before has its circuit from the beginning, and other circuits stay.
    let one = plan(2, AllGather, "static:topology=shifts,shifts=1,parallel=1");
    let both = plan(2, AllGather, "static:topology=shifts,shifts=1+2");
    let three = plan(2, AllGather, "static:topology=shifts,shifts=3,parallel=1");
    let sequence = [&one, &both, &one, &three, &one, &both];
    let expected = [false, false, false, true, false, true];
    assert_eq!(setups(2, &sequence), expected);
}
