//! Multicasts and aggregations: loads, bounds, times, and what the verifier refuses.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use opticoll::algorithms;
use opticoll::bounds::electrical as electrical_bound;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::plan::Plan;
use opticoll::schedule::{Action, Schedule, Transfer};
use opticoll::simulate;
use opticoll::simulate::TimingModel;
use opticoll::units::{Bytes, Time};
use opticoll::verify::{ViolationKind, verify};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::proved;

const BOTH: &str = "in_network=reduce+multicast";

fn parse(fabric: &str) -> Fabric {
    Fabric::parse(fabric).unwrap()
}

fn time(plan: &Plan, size: u64, settings: &[(&str, &str)]) -> Time {
    let method = TimingModel::from_settings(settings.iter().copied()).unwrap();
    simulate::run(plan, Bytes::new(size), &method).unwrap().time
}

fn bound(fabric: &Fabric, kind: CollectiveKind, size: u64) -> (Time, &'static str) {
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let network = fabric.network().unwrap();
    let best = electrical_bound::best(network, &collective, Bytes::new(size));
    let best = best.unwrap().unwrap();
    (best.time, best.name)
}

/// Contributions to one byte at each rank, as bits: at the start of the step, and now.
type State = (Vec<u8>, Vec<u8>);

/// Transfer of one byte: senders, receivers, whether receivers add, crossings of cables out of
/// ranks, and crossings of cables into ranks.
struct Operation {
    senders: Vec<usize>,
    receivers: Vec<usize>,
    adds: bool,
    cost: (u32, u32),
}

/// Returns all transfers between `ranks` ranks around a switch, by the loads of docs/model.md.
fn operations(ranks: usize, adds: bool, multicasts: bool) -> Vec<Operation> {
    let mut found = Vec::new();
    for hub in 0..ranks {
        for members in 1..1u32 << ranks {
            if members >> hub & 1 == 1 {
                continue;
            }
            let members: Vec<usize> = (0..ranks).filter(|rank| members >> rank & 1 == 1).collect();
            let count = members.len() as u32;
            if let [other] = members[..] {
                for adds in [false, true] {
                    found.push(Operation {
                        senders: vec![hub],
                        receivers: vec![other],
                        adds,
                        cost: (1, 1),
                    });
                }
            }
            if multicasts {
                found.push(Operation {
                    senders: vec![hub],
                    receivers: members.clone(),
                    adds: false,
                    cost: (1, count + 1),
                });
            }
            if adds {
                found.push(Operation {
                    senders: members,
                    receivers: vec![hub],
                    adds: true,
                    cost: (count + 1, 1),
                });
            }
        }
    }
    found
}

impl Operation {
    /// Returns the contributions at all ranks after the transfer; `None` if a contribution would
    /// count twice or get lost.
    fn applied(&self, (start, now): &State) -> Option<Vec<u8>> {
        let mut after = now.clone();
        let mut sum = 0;
        for &sender in &self.senders {
            if sum & start[sender] != 0 {
                return None;
            }
            sum |= start[sender];
        }
        for &receiver in &self.receivers {
            let is_right = match self.adds {
                true => after[receiver] & sum == 0,
                false => after[receiver] & !sum == 0,
            };
            if !is_right {
                return None;
            }
            after[receiver] |= sum;
        }
        Some(after)
    }
}

/// Returns the least cost of an all_reduce of one byte, over all schedules (Dijkstra). `cost` is
/// the cost of a transfer with the given crossings out of ranks and into ranks.
fn least_cost(ranks: usize, (adds, multicasts): (bool, bool), cost: fn((u32, u32)) -> u32) -> u32 {
    let operations = operations(ranks, adds, multicasts);
    let own: Vec<u8> = (0..ranks).map(|rank| 1 << rank).collect();
    let done = vec![(1u8 << ranks) - 1; ranks];
    let mut least: HashMap<State, u32> = HashMap::new();
    let mut open = BinaryHeap::from([Reverse((0u32, (own.clone(), own)))]);
    while let Some(Reverse((known, state))) = open.pop() {
        if state.1 == done {
            return known;
        }
        if least.get(&state).is_some_and(|&cost| cost < known) {
            continue;
        }
        let in_step = operations.iter().filter_map(|operation| {
            let after = operation.applied(&state)?;
            Some(((state.0.clone(), after), known + cost(operation.cost)))
        });
        let next_step = ((state.1.clone(), state.1.clone()), known);
        for (next, total) in in_step.chain([next_step]) {
            if least.get(&next).is_none_or(|&cost| total < cost) {
                least.insert(next.clone(), total);
                open.push(Reverse((total, next)));
            }
        }
    }
    panic!("an all_reduce exists");
}

#[test]
fn each_byte_crosses_cables_as_often_as_the_theorems_say() {
    for ranks in 2..=4usize {
        let n = ranks as u32;
        let both = least_cost(ranks, (true, true), |(out, into)| out + into);
        assert_eq!(both, if n == 2 { 4 } else { 2 * n + 2 }, "{ranks} ranks");
        let plain = least_cost(ranks, (false, false), |(out, _)| out);
        assert_eq!(plain, 2 * (n - 1), "{ranks} ranks");
        // With one kind of work, one direction is loaded as without any.
        let adding = least_cost(ranks, (true, false), |(out, _)| out);
        assert_eq!(adding, 2 * (n - 1), "{ranks} ranks");
        let copying = least_cost(ranks, (false, true), |(_, into)| into);
        assert_eq!(copying, 2 * (n - 1), "{ranks} ranks");
    }
}

#[test]
fn an_all_reduce_on_a_dgx_h100_needs_two_and_a_half_milliseconds_per_gigabyte() {
    let size = 1_000_000_000;
    // M (1 + 1/N) / rate, and 2 (N - 1) / N M / rate without work of switches; N is 8.
    let with = bound(
        &parse("dgx_h100:latency=0s"),
        CollectiveKind::AllReduce,
        size,
    );
    assert_eq!(with, ("2.5ms".parse().unwrap(), "in_network"));
    let plain = parse("dgx_h100:latency=0s,in_network=none");
    let without = bound(&plain, CollectiveKind::AllReduce, size);
    assert_eq!(
        without.0,
        Time::from_ps(2 * 7 * size / 8 * 1_000_000 / 450_000)
    );
    let adding = parse("dgx_h100:latency=0s,in_network=reduce");
    assert_eq!(bound(&adding, CollectiveKind::AllReduce, size).0, without.0);
    let copying = parse("dgx_h100:latency=0s,in_network=multicast");
    assert_eq!(
        bound(&copying, CollectiveKind::AllReduce, size).0,
        without.0
    );
}

#[test]
fn the_optimum_of_an_all_reduce_is_exact_on_a_star() {
    for ranks in [3u32, 4, 8] {
        let fabric = parse(&format!("crossbar:ranks={ranks},rate=8b/s,{BOTH}"));
        let collective = Collective::new(CollectiveKind::AllReduce, ranks).unwrap();
        let network = fabric.network().unwrap();
        let optimum = electrical_bound::optimum(network, &collective).unwrap();
        let least = (optimum.least.bytes, optimum.least.rate);
        assert_eq!(
            least.0 * 8 * u128::from(ranks),
            u128::from(ranks + 1) * least.1
        );
        assert_eq!(optimum.most, Some(optimum.least));
    }
}

#[test]
fn nvls_takes_as_long_as_its_loads_say() {
    for (ranks, pieces) in [(2u64, 1u64), (3, 4), (8, 16), (5, 8)] {
        let fabric = parse(&format!(
            "crossbar:ranks={ranks},rate=1GB/s,latency=1us,{BOTH}"
        ));
        let plan = proved(
            CollectiveKind::AllReduce,
            &format!("nvls:segments={pieces}"),
            &fabric,
        );
        let piece = 1000 * ranks;
        let size = piece * ranks * pieces;
        // All steps but the first and the last carry sums and results; a route has two cables.
        let bytes = 2 * ranks + (pieces - 1) * (ranks + 1);
        let expected = Time::from_ps(bytes * piece * 1000 + (pieces + 1) * 2_000_000);
        for settings in [
            &[][..],
            &[("start", "step")],
            &[("start", "sender")],
            &[("simulator", "bulk_synchronous")],
        ] {
            assert_eq!(
                time(&plan, size, settings),
                expected,
                "{ranks} ranks, {settings:?}"
            );
        }
        let least = bound(&fabric, CollectiveKind::AllReduce, size).0;
        assert!(least <= expected, "{least} > {expected}");
    }
}

#[test]
fn algorithms_in_one_step_load_each_cable_with_the_part_of_every_rank() {
    for (fabric, ranks) in [
        (
            format!("crossbar:ranks=6,rate=1GB/s,latency=1us,{BOTH}"),
            6u64,
        ),
        (
            format!("fat_tree:down=3x2,up=1x3,rate=1GB/s,latency=1us,{BOTH}"),
            6,
        ),
    ] {
        let fabric = parse(&fabric);
        for (kind, size, bytes) in [
            (CollectiveKind::AllGather, 1000, ranks * 1000),
            (CollectiveKind::ReduceScatter, 1000 * ranks, ranks * 1000),
            (CollectiveKind::Broadcast, 1000, 1000),
            (CollectiveKind::Reduce, 1000, 1000),
        ] {
            let plan = proved(kind, "nvls", &fabric);
            let longest = if fabric.family() == "crossbar" { 2 } else { 4 };
            let expected = Time::from_ps(bytes * 1000 + longest * 1_000_000);
            for settings in [
                &[][..],
                &[("start", "link")],
                &[("simulator", "bulk_synchronous")],
            ] {
                let taken = time(&plan, size, settings);
                let alone = settings == [("start", "link")]
                    && matches!(
                        kind,
                        CollectiveKind::AllGather | CollectiveKind::ReduceScatter
                    );
                // Under the start rule `link`, multicasts on a common link follow each other.
                assert!(
                    if alone {
                        taken > expected
                    } else {
                        taken == expected
                    },
                    "{kind} {taken}"
                );
            }
            assert!(bound(&fabric, kind, size).0 <= expected);
        }
    }
}

fn plan_of(fabric: &Fabric, kind: CollectiveKind, steps: &[&[Transfer]]) -> Plan {
    let mut schedule = Schedule::new(Collective::new(kind, fabric.ranks()).unwrap());
    for step in steps {
        schedule.begin_step();
        step.iter().for_each(|transfer| schedule.push(*transfer));
    }
    Plan::without_light(fabric, schedule, "by hand".into())
}

fn moved(action: Action, source: u32, destination: u32) -> Transfer {
    Transfer {
        action,
        ..Transfer::copy(0, source, destination)
    }
}

fn kinds(plan: &Plan) -> Vec<ViolationKind> {
    let mut kinds: Vec<ViolationKind> = verify(plan).iter().map(|one| one.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

#[test]
fn only_switches_that_can_multicast_or_add() {
    use Action::{Aggregate, Multicast};
    use CollectiveKind::{Broadcast, Reduce};
    let multicast = [moved(Multicast, 0, 1), moved(Multicast, 0, 2)];
    let aggregate = [moved(Aggregate, 1, 0), moved(Aggregate, 2, 0)];
    let cases = [
        ("crossbar:ranks=3,in_network=multicast", true, false),
        ("crossbar:ranks=3,in_network=reduce", false, true),
        ("crossbar:ranks=3,in_network=reduce+multicast", true, true),
        ("crossbar:ranks=3", false, false),
        ("gpu_servers:model=dgx_h100,members=0-2", true, true),
        ("gpu_servers:model=dgx_a100,members=0-2", false, false),
        // The NICs and the switch between servers only forward.
        (
            "gpu_servers:model=dgx_h100,boxes=3,members=0+8+16",
            false,
            false,
        ),
        // Ranks forward, but neither add nor multicast.
        (
            "custom:ranks=3,switches=1,links=0-1+0-2+1-2+0-3,in_network=reduce+multicast",
            false,
            false,
        ),
        ("torus:dims=3", false, false),
        // Rank 3 is no member, and its vertex is no switch.
        ("tree:ranks=3", false, false),
        // No link leads back from the switch to rank 0, whose own data pass the switch as well.
        (
            "custom:ranks=3,switches=1,links=0>3+3-1+3-2+1>0,in_network=multicast",
            false,
            false,
        ),
        // A switch in each of two levels.
        (
            "fat_tree:down=1x3,up=1x1,in_network=reduce+multicast",
            true,
            true,
        ),
        ("wdm_ring:ranks=3,wavelengths=4", false, false),
        ("circuit_switch:ranks=3", false, false),
    ];
    for (fabric, can_multicast, can_add) in cases {
        let fabric = parse(fabric);
        for (kind, transfers, can, wrong) in [
            (
                Broadcast,
                &multicast,
                can_multicast,
                ViolationKind::Multicast,
            ),
            (Reduce, &aggregate, can_add, ViolationKind::Aggregation),
        ] {
            let mut plan = plan_of(&fabric, kind, &[transfers]);
            if fabric.has_light() {
                plan.light = vec![Default::default(); 2];
            }
            let found = kinds(&plan);
            assert_eq!(
                !found.contains(&wrong),
                can,
                "{kind} on {fabric}: {found:?}"
            );
            assert!(!can || found.is_empty(), "{kind} on {fabric}: {found:?}");
        }
    }
}

#[test]
fn changes_of_a_plan_are_found() {
    use Action::{Aggregate, Multicast};
    let fabric = parse(&format!("crossbar:ranks=4,{BOTH}"));
    let plan = proved(CollectiveKind::AllReduce, "nvls:segments=1", &fabric);
    let steps: Vec<Vec<Transfer>> = (0..2)
        .map(|step| plan.schedule.columns(step).transfers().collect())
        .collect();
    let changed = |change: &dyn Fn(&mut Vec<Vec<Transfer>>)| {
        let mut steps = steps.clone();
        change(&mut steps);
        let mut schedule = Schedule::new(plan.schedule.collective);
        for step in &steps {
            schedule.begin_step();
            step.iter().for_each(|transfer| schedule.push(*transfer));
        }
        kinds(&Plan::without_light(&fabric, schedule, "changed".into()))
    };
    assert_eq!(changed(&|_| {}), []);
    let missing = [ViolationKind::Missing];
    let without_first = |steps: &mut Vec<Transfer>| *steps = steps.split_off(1);
    assert_eq!(changed(&|steps| without_first(&mut steps[1])), missing);
    // Without a member, the sum of the owner lacks a contribution, and so do the copies of it.
    let lacking = changed(&|steps| without_first(&mut steps[0]));
    assert!(lacking.contains(&ViolationKind::Missing), "{lacking:?}");
    let twice = [ViolationKind::DoubleReduction];
    assert_eq!(
        changed(&|steps| {
            let one = steps[0][0];
            steps[0].push(one)
        }),
        twice
    );
    // A plain copy or reduction beside the group needs no switch that adds or multicasts.
    assert_eq!(changed(&|steps| steps[1][0].action = Action::Copy), []);
    assert_eq!(changed(&|steps| steps[0][0].action = Action::Reduce), []);
    let lost = changed(&|steps| steps[0][0].action = Multicast);
    assert!(lost.contains(&ViolationKind::LostContribution), "{lost:?}");
    let doubled = changed(&|steps| steps[1][0].action = Aggregate);
    assert!(
        doubled.contains(&ViolationKind::DoubleReduction),
        "{doubled:?}"
    );
    // Aggregations into one rank that differ in their chunks are two. Rank 0 gets one contribution
    // too many to chunk 1, which the later copy of the whole sum replaces.
    let wide = |steps: &mut Vec<Vec<Transfer>>| {
        for transfer in &mut steps[0] {
            if (transfer.source, transfer.destination) == (1, 0) {
                transfer.count = 2;
            }
        }
    };
    assert_eq!(changed(&wide), []);
    let nothing_to_add = plan_of(
        &fabric,
        CollectiveKind::Broadcast,
        &[&[1, 2, 3].map(|rank| moved(Aggregate, rank, 0))],
    );
    assert!(kinds(&nothing_to_add).contains(&ViolationKind::WrongAction));
}

#[test]
fn groups_follow_named_routes() {
    // Both switches multicast, but a rank cannot send one multicast over two cables.
    let fabric = "custom:ranks=3,switches=2,links=0-3+1-3+2-3+0-4+1-4+2-4,in_network=multicast";
    let fabric = parse(fabric);
    let transfers = [
        moved(Action::Multicast, 0, 1),
        moved(Action::Multicast, 0, 2),
    ];
    let mut plan = plan_of(&fabric, CollectiveKind::Broadcast, &[&transfers]);
    // Links 2 i and 2 i + 1 are the directions of cable i.
    plan.routes.assign(0, &[0, 3]);
    plan.routes.assign(1, &[0, 5]);
    assert_eq!(kinds(&plan), []);
    plan.routes.assign(1, &[6, 11]);
    assert_eq!(kinds(&plan), [ViolationKind::Multicast]);
    let refused = simulate::run(&plan, Bytes::new(1), &TimingModel::default());
    assert!(refused.is_err());
}

#[test]
fn other_simulators_refuse_groups() {
    let fabric = parse(&format!("crossbar:ranks=4,{BOTH}"));
    let plan = proved(CollectiveKind::AllReduce, "nvls", &fabric);
    let packets = TimingModel::from_settings([("simulator", "packet")]).unwrap();
    let refused = simulate::run(&plan, Bytes::new(1000), &packets).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("use fluid or bulk_synchronous"),
        "{refused}"
    );
}

#[test]
fn algorithms_need_the_work_of_switches_that_their_records_state() {
    for (work, expected) in [
        ("none", vec![]),
        ("multicast", vec!["all_gather", "broadcast"]),
        ("reduce", vec!["reduce_scatter", "reduce"]),
        (
            "reduce+multicast",
            vec![
                "all_gather",
                "reduce_scatter",
                "all_reduce",
                "broadcast",
                "reduce",
            ],
        ),
    ] {
        let fabric = parse(&format!("crossbar:ranks=4,in_network={work}"));
        let named: Vec<&str> = algorithms::records_for(&fabric)
            .filter(|record| record.name == "nvls")
            .map(|record| record.collective.name())
            .collect();
        assert_eq!(named, expected, "{work}");
    }
}

#[test]
fn servers_add_and_multicast_within_and_send_along_rails_between() {
    // 2 servers of 8 GPUs: a cable to the switch has 450 GB/s, a NIC 50 GB/s. In a step of one
    // segment of S bytes, a rank sends S for the sums and S/8 as owner, and S/16 along its rail in
    // each of two phases.
    let fabric = parse("dgx_h100:boxes=2,latency=0s,library=none");
    let plan = proved(CollectiveKind::AllReduce, "nvls_rails", &fabric);
    let size = 16 * 450 * 1000u64;
    let steps = [size * 10 / 4500, size * 10 / 16 / 500];
    let expected = Time::from_ps((2 * steps[0] + 2 * steps[1]) * 1000);
    assert_eq!(time(&plan, size, &[("start", "step")]), expected);
    let least = bound(&fabric, CollectiveKind::AllReduce, size).0;
    assert!(least <= expected);
}

#[test]
fn switches_of_servers_add_and_multicast_around_trees() {
    // 2 servers of 8 GPUs, one piece for each tree, of S = M / 16 bytes per channel. A cable to the
    // switch has 450 GB/s, a NIC 50 GB/s. To sum up or to distribute a piece of all channels, a
    // cable carries 8 S in one direction, which takes less time than S on a NIC. The child sums up
    // its pieces in steps 0 and 1, NICs send the sums to the root in steps 1 and 2 and the result
    // back in steps 3 and 4, and the child distributes the result in steps 4 and 5. So all steps
    // take S / NIC, except the first and the last step.
    let fabric = parse("dgx_h100:boxes=2,latency=0s,library=none");
    let spec = "nvls_tree:segments=2";
    let plan = proved(CollectiveKind::AllReduce, spec, &fabric);
    let size = 16 * 450 * 1000u64;
    let (switch, network) = (8 * size / 16 / 450, size / 16 / 50);
    let expected = Time::from_ps((2 * switch + 4 * network) * 1000);
    assert_eq!(plan.schedule.steps(), 6);
    assert_eq!(time(&plan, size, &[("start", "step")]), expected);
    assert!(bound(&fabric, CollectiveKind::AllReduce, size).0 <= expected);
}

#[test]
fn no_plan_is_faster_than_the_bounds() {
    let fabrics = [
        "crossbar:ranks=2,latency=0s",
        "crossbar:ranks=3,latency=1us",
        "crossbar:ranks=5,latency=0s",
        "crossbar:ranks=6,latency=20ns",
        "fat_tree:down=3x2,up=1x3,latency=100ns",
        "fat_tree:down=2x2x2,up=1x1x1,latency=0s",
        "gpu_servers:model=dgx_h100,boxes=2,latency=100ns,library=none",
        "gpu_servers:model=dgx_h100,boxes=2,members=0-2+8-10,library=none",
        "custom:ranks=4,switches=2,links=0-4+1-4+2-5+3-5+4-5@200Gb/s,latency=50ns",
    ];
    let mut times = 0;
    for fabric in fabrics {
        for work in ["none", "multicast", "reduce", "reduce+multicast"] {
            let fabric = parse(&format!("{fabric},in_network={work}"));
            let network = fabric.network().unwrap();
            for record in algorithms::records_for(&fabric) {
                let lit = matches!(record.name, "one_stage" | "wrht");
                if lit || (record.accepts)(fabric.ranks()).is_err() {
                    continue;
                }
                let collective = Collective::new(record.collective, fabric.ranks()).unwrap();
                let spec = record.name.parse().unwrap();
                let Ok(schedule) = algorithms::build(&spec, collective, &fabric) else {
                    continue;
                };
                let plan = Plan::without_light(&fabric, schedule, record.name.into());
                assert_eq!(kinds(&plan), [], "{} on {fabric}", record.name);
                for size in [1, 1000, 1 << 20] {
                    let least = electrical_bound::best(network, &collective, Bytes::new(size));
                    let least = least.unwrap().unwrap();
                    for settings in [&[][..], &[("simulator", "bulk_synchronous")]] {
                        let taken = time(&plan, size, settings).seconds();
                        let (least, name) = (least.time.seconds(), least.name);
                        assert!(
                            taken >= least * (1.0 - 1e-12),
                            "{} on {fabric}: {taken} < {least} ({name})",
                            record.name
                        );
                        times += 1;
                    }
                }
            }
        }
    }
    assert!(times > 1000, "{times}");
}

/// Returns an all_reduce of one chunk over random aggregations, reductions, multicasts and copies.
fn random_all_reduce(ranks: u32, random: &mut Pcg64Mcg) -> Vec<Vec<Transfer>> {
    let mut steps = Vec::new();
    let some_of = |from: &mut Vec<u32>, random: &mut Pcg64Mcg| -> Vec<u32> {
        let count = random.random_range(0..from.len()) + 1;
        let mut one = |_| from.swap_remove(random.random_range(0..from.len()));
        (0..count).map(&mut one).collect()
    };
    let mut holders: Vec<u32> = (0..ranks).collect();
    while holders.len() > 1 {
        let hub = holders.swap_remove(random.random_range(0..holders.len()));
        let senders = some_of(&mut holders, random);
        let action = [Action::Aggregate, Action::Reduce][random.random_range(0..2usize)];
        steps.push(
            senders
                .iter()
                .map(|&rank| moved(action, rank, hub))
                .collect(),
        );
        holders.push(hub);
    }
    let mut lacking: Vec<u32> = (0..ranks).filter(|rank| *rank != holders[0]).collect();
    while !lacking.is_empty() {
        let hub = holders[random.random_range(0..holders.len())];
        let receivers = some_of(&mut lacking, random);
        let action = [Action::Multicast, Action::Copy][random.random_range(0..2usize)];
        steps.push(
            receivers
                .iter()
                .map(|&rank| moved(action, hub, rank))
                .collect(),
        );
        holders.extend(receivers);
    }
    steps
}

#[test]
fn random_plans_load_cables_no_less_than_the_bound() {
    let mut random = Pcg64Mcg::seed_from_u64(1);
    for case in 0..300u32 {
        let ranks = 3 + case % 5;
        let fabric = parse(&format!(
            "crossbar:ranks={ranks},rate=1GB/s,latency=0s,{BOTH}"
        ));
        let steps = random_all_reduce(ranks, &mut random);
        let steps: Vec<&[Transfer]> = steps.iter().map(Vec::as_slice).collect();
        let plan = plan_of(&fabric, CollectiveKind::AllReduce, &steps);
        assert_eq!(kinds(&plan), []);
        let outcome = simulate::run(&plan, Bytes::new(1000), &TimingModel::default()).unwrap();
        let crossed: u64 = outcome.links.bytes.iter().sum();
        assert!(
            crossed >= 1000 * (2 * u64::from(ranks) + 2),
            "{crossed} bytes, {ranks} ranks"
        );
        let least = bound(&fabric, CollectiveKind::AllReduce, 1000).0;
        assert!(outcome.time >= least, "{} < {least}", outcome.time);
    }
}
