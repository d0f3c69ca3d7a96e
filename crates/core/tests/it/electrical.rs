//! Plans on electrical fabrics, from the spelling of the fabric to the time.

use opticoll::algorithm;
use opticoll::bound::electrical as electrical_bound;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::plan::{Plan, fold, text};
use opticoll::planner;
use opticoll::simulate::fluid::{Options, StartRule, Weights};
use opticoll::simulate::{self, Method, Policy};
use opticoll::spec::Spec;
use opticoll::units::{Bytes, Time};
use opticoll::verify::{ViolationKind, verify};
use serde_json::Value;

const FABRICS: &[&str] = &[
    "crossbar:ranks=16,rate=12.5GB/s",
    "fat_tree:down=4x4,up=1x2,rate=12.5GB/s",
    "dragonfly:terminals_per_router=2,routers_per_group=2,groups=4,global_per_router=2",
    "torus:dims=4x4",
    "mesh:dims=4x4",
    "ladder:rungs=8",
    "electrical_ring:ranks=16",
    "fully_connected:ranks=16",
];

/// A plan that is proved.
pub(crate) fn proved(kind: CollectiveKind, algorithm: &str, fabric: &Fabric) -> Plan {
    let collective = Collective::new(kind, fabric.ranks()).unwrap();
    let spec = algorithm.parse().unwrap();
    let method = Method::default();
    let planned = planner::plan(&spec, fabric, collective, Bytes::new(4 << 20), &method);
    let plan = planned.unwrap_or_else(|error| panic!("{algorithm} on {fabric}: {error}"));
    let plan = plan.plan.unfold();
    let violations = verify(&plan);
    let first = violations.first().map(|violation| &violation.sentence);
    assert_eq!(first, None, "{kind} by {algorithm} on {fabric}");
    plan
}

fn seconds(plan: &Plan, bytes: u64, start: StartRule, options: Options) -> f64 {
    let method = Method {
        start: Some(start),
        fluid: options,
        ..Method::default()
    };
    let outcome = simulate::run(plan, Bytes::new(bytes), &method).unwrap();
    assert_eq!(outcome.simulator, "fluid");
    outcome.time.seconds()
}

#[test]
fn every_algorithm_that_needs_no_light_is_proved_on_every_fabric_and_read_back() {
    for fabric in FABRICS {
        let fabric = Fabric::parse(fabric).unwrap();
        let mut planned = 0;
        for record in algorithm::records_for(&fabric) {
            if matches!(record.name, "optree" | "one_stage" | "wrht") {
                continue;
            }
            let plan = proved(record.collective, record.name, &fabric);
            assert!(plan.direction.is_empty() && plan.wavelength.is_empty());
            assert_eq!(plan.slots() as usize, plan.schedule.steps());
            assert_eq!(fold(&plan), None);
            let written = text::write(&plan);
            assert!(!written.contains("cw"), "{written}");
            let read = text::read(&written).unwrap();
            assert_eq!(text::write(&read), written);
            assert_eq!(verify(&read), [], "{}", record.name);
            planned += 1;
        }
        assert!(planned > 40, "{planned}");
    }
}

#[test]
fn any_number_of_ranks_will_do() {
    for ranks in 1..=20 {
        let fabric = Fabric::parse(&format!("crossbar:ranks={ranks}")).unwrap();
        for record in algorithm::records_for(&fabric) {
            let lit = matches!(record.name, "optree" | "one_stage" | "wrht");
            if !lit && (record.accepts)(ranks).is_ok() {
                let plan = proved(record.collective, record.name, &fabric);
                simulate::run(&plan, Bytes::new(1000), &Method::default()).unwrap();
            }
        }
    }
}

/// A platform of the reference as a fabric is spelled.
fn spelled(reference: &Value, name: &str, ranks: u64, latency: &str) -> Option<String> {
    let parameters = reference[name][ranks.to_string()].as_str();
    Some(match name {
        "star" => format!("crossbar:ranks={ranks},rate=12.5GB/s,latency={latency}"),
        "fat_tree" => {
            let parts: Vec<String> = parameters?
                .split(';')
                .map(|x| x.replace(',', "x"))
                .collect();
            let (down, up, links) = (&parts[1], &parts[2], &parts[3]);
            format!("fat_tree:down={down},up={up},links={links},rate=12.5GB/s,latency={latency}")
        }
        "dragonfly" => {
            let numbers: Vec<&str> = parameters?.split([';', ',']).collect();
            let [groups, blue, "1", _, routers, "1", hosts] = numbers[..] else {
                panic!("{numbers:?}");
            };
            let global = blue.parse::<u64>().unwrap() * 100;
            format!(
                "dragonfly:terminals_per_router={hosts},routers_per_group={routers},\
                 groups={groups},arrangement=simgrid,rate=12.5GB/s,global_rate={global}Gb/s,\
                 latency={latency}"
            )
        }
        _ => return None,
    })
}

/// Collectives of the reference, as they are named here; and by how much a size is divided.
const NAMED: &[(&str, CollectiveKind, &str, bool)] = &[
    ("ag_ring", CollectiveKind::AllGather, "ring", true),
    (
        "ag_rdb",
        CollectiveKind::AllGather,
        "recursive_doubling",
        true,
    ),
    ("ag_bruck", CollectiveKind::AllGather, "bruck", true),
    ("ar_ring", CollectiveKind::AllReduce, "ring", false),
    (
        "ar_rdb",
        CollectiveKind::AllReduce,
        "recursive_doubling",
        false,
    ),
    (
        "ar_rabnear",
        CollectiveKind::AllReduce,
        "halving_doubling",
        false,
    ),
    (
        "ar_rab",
        CollectiveKind::AllReduce,
        "halving_doubling:order=far",
        false,
    ),
    ("a2a_pair", CollectiveKind::AllToAll, "pairwise", false),
];

/// Compares the times of the reference's rows; how many there were.
fn agree(rows: &str, latency: &str, weights: Weights) -> usize {
    let reference: Value = serde_json::from_str(include_str!("../data/simgrid.json")).unwrap();
    let mut compared = 0;
    for case in reference[rows]["rows"].as_array().unwrap() {
        let ranks = case[1].as_u64().unwrap();
        let named = NAMED.iter().find(|named| case[2] == named.0);
        let platform = spelled(&reference, case[0].as_str().unwrap(), ranks, latency);
        let (Some((_, kind, algorithm, blocks)), Some(platform)) = (named, platform) else {
            continue;
        };
        if ranks > 256 {
            continue;
        }
        let fabric = Fabric::parse(&platform).unwrap();
        let plan = proved(*kind, algorithm, &fabric);
        let bytes = case[3].as_u64().unwrap() / if *blocks { ranks } else { 1 };
        let options = Options {
            weights,
            ..Options::default()
        };
        let start = case[4].as_str().unwrap().parse().unwrap();
        let (got, expected) = (
            seconds(&plan, bytes, start, options),
            case[5].as_f64().unwrap(),
        );
        assert!((got - expected).abs() <= 1e-6 * expected, "{case}: {got}");
        compared += 1;
    }
    compared
}

#[test]
fn named_algorithms_take_as_long_as_in_simgrid() {
    assert!(agree("collectives", "0s", Weights::Equal) >= 60);
}

#[test]
fn named_algorithms_take_as_long_as_in_simgrid_with_latencies_and_their_weights() {
    assert!(agree("latencies", "1us", Weights::InverseLatency) >= 10);
}

/// On a switch of rate B without latency, a vector of M bytes.
#[test]
fn times_on_a_switch_are_those_of_theory() {
    let fabric = Fabric::parse("crossbar:ranks=8,rate=8Gb/s").unwrap();
    let size = 8_000_000;
    // M / B is 8 ms.
    for (kind, algorithm, expected) in [
        (CollectiveKind::AllGather, "ring", 56e-3),
        (CollectiveKind::AllGather, "direct", 56e-3),
        (CollectiveKind::AllReduce, "ring", 14e-3),
        (CollectiveKind::AllReduce, "halving_doubling", 14e-3),
        (CollectiveKind::AllReduce, "recursive_doubling", 24e-3),
        (CollectiveKind::AllToAll, "pairwise", 7e-3),
        (CollectiveKind::Broadcast, "binomial", 24e-3),
        (CollectiveKind::Barrier, "dissemination", 0.0),
    ] {
        let plan = proved(kind, algorithm, &fabric);
        for rule in StartRule::ALL {
            let got = seconds(&plan, size, rule, Options::default());
            assert!(
                (got - expected).abs() <= 1e-9 * expected,
                "{algorithm}: {got}"
            );
        }
    }
}

/// Bruck sends ranges that go on from the first chunk after the last: two transfers, one message. Were
/// they two flows, they would take twice the share of a link of others.
#[test]
fn transfers_with_the_same_ends_are_one_message() {
    let fabric = Fabric::parse("crossbar:ranks=8,latency=1us").unwrap();
    let plan = proved(CollectiveKind::AllGather, "bruck", &fabric);
    let outcome = simulate::run(&plan, Bytes::new(1000), &Method::default()).unwrap();
    assert!(plan.len() > 24, "{}", plan.len());
    assert_eq!(outcome.slots.lightpaths, [8, 8, 8]);
    let single = Plan::without_light(
        &fabric,
        plan.schedule.clone().in_single_chunks(),
        "bruck".into(),
    );
    assert_eq!(verify(&single), []);
    let other = simulate::run(&single, Bytes::new(1000), &Method::default()).unwrap();
    assert_eq!((other.time, &other.slots), (outcome.time, &outcome.slots));
    assert_eq!(other.links, outcome.links);
}

#[test]
fn a_simulation_says_what_bounds_the_plan() {
    // The slow link is half as fast as the others, and every block crosses it.
    let fabric = Fabric::parse("custom:ranks=3,switches=1,links=0-3+1-3+2-3@4Gb/s,rate=8Gb/s");
    let fabric = fabric.unwrap();
    let plan = proved(CollectiveKind::AllGather, "direct", &fabric);
    let outcome = simulate::run(&plan, Bytes::new(1_000_000), &Method::default()).unwrap();
    let flowing = outcome.flowing.as_ref().unwrap();
    // Two blocks of 1 MB at 4 Gb/s.
    assert_eq!(outcome.time, "4ms".parse::<Time>().unwrap());
    assert_eq!(outcome.policy, None);
    let network = fabric.network().unwrap();
    let is_slow = |link: Option<u32>| {
        let link = link.unwrap();
        let name = network.link_name(link);
        assert!(name.contains('2'), "{name}");
        network.links()[link as usize].rate == "4Gb/s".parse().unwrap()
    };
    assert!(is_slow(flowing.bottleneck) && is_slow(flowing.most_loaded_link));
    assert_eq!(outcome.links.bytes.iter().sum::<u64>(), 12_000_000);
    let last = outcome.critical_path.last().unwrap();
    assert_eq!(last.end, outcome.time);
    // Two steps, one after the other.
    let half: Time = "2ms".parse().unwrap();
    assert_eq!(outcome.slots.start, [Time::ZERO, half]);
    assert_eq!(outcome.slots.end, [half, outcome.time]);
    assert!(flowing.settings.is_empty());
    assert!((flowing.link_utilisation.iter().cloned().fold(0.0, f64::max) - 1.0).abs() < 1e-9);
}

#[test]
fn auto_takes_the_fastest_of_the_named_algorithms() {
    for (fabric, size, fastest) in [
        ("crossbar:ranks=16,rate=100Gb/s,latency=1us", 8, "direct"),
        ("electrical_ring:ranks=16,rate=100Gb/s", 1 << 30, "ring"),
    ] {
        let fabric = Fabric::parse(fabric).unwrap();
        let collective = Collective::new(CollectiveKind::AllReduce, 16).unwrap();
        let size = Bytes::new(size);
        let auto = Spec::new("auto");
        let planned = planner::plan(&auto, &fabric, collective, size, &Method::default()).unwrap();
        let plan = planned.plan.unfold();
        assert_eq!(verify(&plan), []);
        assert_eq!(plan.algorithm, fastest, "{:?}", planned.candidates);
        let time = simulate::run(&plan, size, &Method::default()).unwrap().time;
        assert_eq!(planned.candidates[0].name, fastest);
        assert!(planned.candidates.len() >= 5);
        for candidate in &planned.candidates {
            let other = proved(CollectiveKind::AllReduce, &candidate.name, &fabric);
            let other = simulate::run(&other, size, &Method::default())
                .unwrap()
                .time;
            assert!(
                candidate.time == other && time <= other,
                "{}",
                candidate.name
            );
        }
        assert_eq!(planned.reasons.len(), 2);
    }
}

#[test]
fn a_mutant_is_refused_for_the_right_reason() {
    let fabric = Fabric::parse("torus:dims=3x3").unwrap();
    let plan = proved(CollectiveKind::AllReduce, "ring", &fabric);
    type Mutation = fn(&mut Plan);
    let mutations: &[(ViolationKind, Mutation)] = &[
        (ViolationKind::Columns, |plan| {
            plan.fibre = vec![0; plan.len()]
        }),
        (ViolationKind::Columns, |plan| plan.wavelength.push(0)),
        (ViolationKind::Columns, |plan| {
            plan.direction.push(opticoll::fabric::Direction::Clockwise);
        }),
        (ViolationKind::Columns, |plan| {
            plan.slot.pop();
        }),
        (ViolationKind::StepOrder, |plan| plan.slot[0] += 1),
        (ViolationKind::StepOrder, |plan| {
            let last = plan.step_slots.last_mut().unwrap();
            last.end += 1;
        }),
        (ViolationKind::SlotRange, |plan| plan.slot[0] = 1000),
        (ViolationKind::RankCount, |plan| {
            plan.fabric = Fabric::parse("crossbar:ranks=8").unwrap();
        }),
        (ViolationKind::Claim, |plan| {
            plan.schedule.claims.schedule_steps = Some(3);
        }),
    ];
    for (number, (kind, mutate)) in mutations.iter().enumerate() {
        let mut mutant = plan.clone();
        mutate(&mut mutant);
        let found = verify(&mutant);
        let kinds: Vec<_> = found.iter().map(|violation| violation.kind).collect();
        assert!(kinds.contains(kind), "{number}: {found:?}");
    }
}

/// Without a transfer somebody lacks something; with one twice, or with another chunk, something comes
/// twice.
#[test]
fn no_transfer_can_be_dropped_doubled_or_changed() {
    for (kind, algorithm) in [
        (CollectiveKind::AllGather, "bruck"),
        (CollectiveKind::AllReduce, "halving_doubling"),
        (CollectiveKind::AllToAll, "bruck"),
        (CollectiveKind::Scatter, "binomial"),
    ] {
        let fabric = Fabric::parse("fat_tree:down=3x2,up=1x2").unwrap();
        let plan = proved(kind, algorithm, &fabric);
        for index in 0..plan.len() {
            for change in ["drop", "double", "source", "chunk"] {
                let mut mutant = plan.without_lightpaths();
                for step in 0..plan.schedule.steps() {
                    mutant.schedule.begin_step();
                    for own in plan.schedule.step(step) {
                        let mut lightpath = plan.lightpath(own);
                        let transfer = &mut lightpath.transfer;
                        match change {
                            "drop" if own == index => continue,
                            "double" if own == index => mutant.push(lightpath),
                            "source" if own == index => {
                                let others = (0..6).filter(|r| {
                                    ![transfer.source, transfer.destination].contains(r)
                                });
                                transfer.source = others.max().unwrap();
                            }
                            "chunk" if own == index => transfer.chunk += 1,
                            _ => {}
                        }
                        mutant.push(lightpath);
                    }
                }
                // A whole vector may come from another rank that has the same by then.
                let same = change == "source" && kind != CollectiveKind::AllToAll;
                assert!(
                    same || !verify(&mutant).is_empty(),
                    "{algorithm}: {change} {index}"
                );
            }
        }
    }
}

#[test]
fn what_does_not_fit_the_fabric_is_refused_with_a_hint() {
    let fabric = Fabric::parse("crossbar:ranks=16").unwrap();
    let plan = proved(CollectiveKind::AllGather, "ring", &fabric);
    let lit = crate::verified(CollectiveKind::AllGather, "ring", 16, 1);
    let method = |simulator, policy, start| Method {
        simulator,
        policy,
        start,
        ..Method::default()
    };
    let every = Some(Policy::EveryStep);
    let sender = Some(StartRule::Sender);
    for (plan, method, hint) in [
        (&plan, method(None, every, None), "leave the policy out"),
        (&plan, method(Some("circuit"), None, None), "use fluid"),
        (&plan, method(Some("closed_form"), every, None), "use fluid"),
        (&lit, method(Some("fluid"), None, None), "use circuit"),
        (&lit, method(Some("fluid"), every, sender), "use circuit"),
        (&lit, method(None, None, sender), "leave the start out"),
    ] {
        let error = simulate::run(plan, Bytes::new(1), &method)
            .unwrap_err()
            .to_string();
        assert!(error.contains(hint), "{error}");
    }
    let collective = Collective::new(CollectiveKind::AllGather, 16).unwrap();
    for (algorithm, hint) in [
        ("relay_tree", "relay_tree needs a wdm_ring; got crossbar"),
        ("grouped", "grouped needs a wdm_ring"),
        ("wrht", "wrht needs a wdm_ring"),
        ("optree", "optree needs a wdm_ring"),
        ("rnig", "did you mean `ring`"),
        ("auto:transfers=1", "allow more"),
    ] {
        let spec = algorithm.parse().unwrap();
        let method = Method::default();
        let error = planner::plan(&spec, &fabric, collective, Bytes::new(1), &method);
        let error = error.err().unwrap().to_string();
        assert!(error.contains(hint), "{error}");
    }
}

#[test]
fn statements_of_light_are_refused_in_a_plan_without() {
    let fabric = Fabric::parse("crossbar:ranks=4").unwrap();
    let plan = proved(CollectiveKind::AllGather, "ring", &fabric);
    let written = text::write(&plan);
    assert!(
        written.contains("copy 0 0>1 x4 chunk+1 rank+1\n"),
        "{written}"
    );
    for (from, to, hint) in [
        ("0>1 x4", "0>1 cw 0.0 x4", "expected a repetition"),
        (
            "x4 chunk+1",
            "x4 wavelength+1 chunk+1",
            "what shifts is one of chunk, rank",
        ),
    ] {
        let error = text::read(&written.replacen(from, to, 1))
            .unwrap_err()
            .to_string();
        assert!(error.contains(hint), "{error}");
    }
}

/// Whether a time is at least another, within the rounding of rates that are no whole numbers.
fn at_least(time: Time, least: Time) -> bool {
    time.seconds() >= least.seconds() * (1.0 - 1e-9)
}

#[test]
fn no_plan_is_faster_than_the_bound_and_some_meet_it() {
    let smaller = [
        "crossbar:ranks=2",
        "crossbar:ranks=3",
        "fully_connected:ranks=4",
        "electrical_ring:ranks=5",
    ];
    for fabric in FABRICS.iter().chain(&smaller) {
        for options in [
            "latency=0s",
            "latency=1us",
            "duplex=half",
            "sharing=per_flow",
        ] {
            let fabric = Fabric::parse(&format!("{fabric},{options}")).unwrap();
            let network = fabric.network().unwrap();
            for record in algorithm::records_for(&fabric) {
                let lit = matches!(record.name, "optree" | "one_stage" | "wrht");
                if lit || (record.accepts)(fabric.ranks()).is_err() {
                    continue;
                }
                let plan = proved(record.collective, record.name, &fabric);
                for size in [1, 1000, 1 << 20] {
                    let size = Bytes::new(size);
                    let collective = Collective::new(record.collective, fabric.ranks()).unwrap();
                    let bound = electrical_bound::best(network, &collective, size).unwrap();
                    assert_eq!(bound.is_none(), options == "sharing=per_flow");
                    let time = simulate::run(&plan, size, &Method::default()).unwrap().time;
                    let least = bound.map_or(Time::ZERO, |bound| bound.time);
                    assert!(at_least(time, least), "{}: {time} < {least}", record.name);
                }
            }
        }
    }
    // Theory: on a switch these are as fast as any plan can be.
    let fabric = Fabric::parse("crossbar:ranks=16,rate=8Gb/s").unwrap();
    for (kind, algorithm, milliseconds) in [
        (CollectiveKind::AllGather, "ring", 240.0),
        (CollectiveKind::AllReduce, "ring", 30.0),
        (CollectiveKind::AllReduce, "halving_doubling", 30.0),
        (CollectiveKind::ReduceScatter, "recursive_halving", 15.0),
        (CollectiveKind::AllToAll, "pairwise", 15.0),
        (CollectiveKind::Gather, "binomial", 240.0),
        (CollectiveKind::Scatter, "linear", 240.0),
    ] {
        let (size, collective) = (Bytes::new(16_000_000), Collective::new(kind, 16).unwrap());
        let bound = electrical_bound::best(fabric.network().unwrap(), &collective, size);
        let least = bound.unwrap().unwrap().time;
        assert_eq!(
            (least.seconds() * 1e9).round(),
            milliseconds * 1e6,
            "{kind}"
        );
        let plan = proved(kind, algorithm, &fabric);
        let time = simulate::run(&plan, size, &Method::default()).unwrap().time;
        assert!(at_least(least, time), "{kind}: {time} > {least}");
    }
}

/// On a switch of N = 16 ranks, where a message waits 2 us and a rank moves 1 byte per ns.
#[test]
fn rounds_are_paid_for_with_latencies_or_with_bytes() {
    let fabric = Fabric::parse("crossbar:ranks=16,rate=8Gb/s,latency=1us").unwrap();
    let bound = |kind, bytes| {
        let collective = Collective::new(kind, 16).unwrap();
        let bound = electrical_bound::best(fabric.network().unwrap(), &collective, bytes);
        bound.unwrap().unwrap()
    };
    for (kind, bytes, name, nanoseconds) in [
        // One round: 15 messages from (or to) the root.
        (CollectiveKind::Broadcast, 100, "rounds", 3500.0),
        (CollectiveKind::Reduce, 100, "rounds", 3500.0),
        // Two: the root alone sends for 2000 ns, then all 15 others take in at once.
        (
            CollectiveKind::Broadcast,
            2000,
            "rounds",
            4000.0 + 28_000.0 / 15.0,
        ),
        (
            CollectiveKind::Reduce,
            2000,
            "rounds",
            4000.0 + 28_000.0 / 15.0,
        ),
        // One: 16 * 15 messages over 16 cables.
        (CollectiveKind::AllReduce, 100, "rounds", 3500.0),
        // Two: 4000 + 1000 - 2000 / 15.
        (
            CollectiveKind::AllReduce,
            1000,
            "rounds",
            5000.0 - 2000.0 / 15.0,
        ),
        // 30 messages of a vector over 16 cables.
        (CollectiveKind::AllReduce, 16_000, "bandwidth", 32_000.0),
        (CollectiveKind::AllGather, 1000, "bandwidth", 17_000.0),
        (CollectiveKind::Barrier, 0, "rounds", 2000.0),
    ] {
        let bound = bound(kind, Bytes::new(bytes));
        assert_eq!(bound.name, name, "{kind} of {bytes} bytes");
        let difference = bound.time.seconds() * 1e9 - nanoseconds;
        assert!(
            difference.abs() < 0.01,
            "{kind} of {bytes} bytes: {}",
            bound.time
        );
    }
}

/// Two ranks and a half-duplex cable: what either sends takes the cable from the other.
#[test]
fn bounds_count_the_cables_of_each_rank_each_way() {
    for (fabric, milliseconds) in [
        ("crossbar:ranks=2,rate=8Gb/s", 1.0),
        ("crossbar:ranks=2,rate=8Gb/s,duplex=half", 1.0),
        ("crossbar:ranks=2,rate=8Gb/s,latency=3ms", 7.0),
        ("fully_connected:ranks=5,rate=8Gb/s,latency=3ms", 4.0),
        ("electrical_ring:ranks=3,rate=8Gb/s", 1.0),
        ("fully_connected:ranks=5,rate=8Gb/s", 1.0),
        ("custom:ranks=2,links=0>1@8Gb/s+1>0@4Gb/s", 2.0),
    ] {
        let fabric = Fabric::parse(fabric).unwrap();
        let collective = Collective::new(CollectiveKind::AllGather, fabric.ranks()).unwrap();
        let size = Bytes::new(1_000_000);
        let bound = electrical_bound::best(fabric.network().unwrap(), &collective, size);
        let time = bound.unwrap().unwrap().time;
        assert_eq!(time.seconds() * 1e3, milliseconds, "{fabric}");
    }
}

/// Closed forms of what crosses a cut, in blocks of 1 MB over cables of 1 MB per ms; and plans that
/// take no longer.
#[test]
fn cuts_bound_what_single_ranks_do_not() {
    for (fabric, kind, algorithm, milliseconds) in [
        // Four leaves of 4 ranks, 2 cables above each: 4 * 12 blocks must leave a leaf.
        (
            "fat_tree:down=4x4,up=1x2,rate=8Gb/s",
            CollectiveKind::AllToAll,
            "direct",
            24.0,
        ),
        // Runs of 7 and 8 ranks of a ring, 7 * 8 blocks each way over two cables.
        (
            "electrical_ring:ranks=15,rate=8Gb/s",
            CollectiveKind::AllToAll,
            "direct",
            28.0,
        ),
        // Halves of a mesh's longer side, whichever it is: 8 * 8 blocks over two cables.
        (
            "mesh:dims=2x8,rate=8Gb/s",
            CollectiveKind::AllToAll,
            "",
            32.0,
        ),
        (
            "mesh:dims=8x2,rate=8Gb/s",
            CollectiveKind::AllToAll,
            "",
            32.0,
        ),
        // The blocks of 6 ranks for the other two, over a cable of a quarter of the rate.
        (
            "custom:ranks=8,switches=2,links=0-8+1-8+2-9+3-9+4-9+5-9+6-9+7-9+8-9@2Gb/s+0-1,rate=8Gb/s",
            CollectiveKind::AllGather,
            "",
            24.0,
        ),
        // A vector of 8 blocks for each of two parts, over one cable.
        (
            "custom:ranks=8,switches=2,links=0-8+1-8+2-8+3-8+4-9+5-9+6-9+7-9+8-9@4Gb/s,rate=8Gb/s",
            CollectiveKind::AllReduce,
            "",
            16.0,
        ),
    ] {
        let fabric = Fabric::parse(fabric).unwrap();
        let collective = Collective::new(kind, fabric.ranks()).unwrap();
        let blocks = match kind {
            CollectiveKind::AllGather => 1,
            _ => u64::from(fabric.ranks()),
        };
        let size = Bytes::new(1_000_000 * blocks);
        let network = fabric.network().unwrap();
        let bound = electrical_bound::best(network, &collective, size).unwrap();
        let bound = bound.unwrap();
        assert_eq!(bound.name, "cut", "{kind} on {fabric}");
        assert_eq!(
            bound.time.seconds() * 1e3,
            milliseconds,
            "{kind} on {fabric}"
        );
        if !algorithm.is_empty() {
            let plan = proved(kind, algorithm, &fabric);
            let time = simulate::run(&plan, size, &Method::default()).unwrap().time;
            assert!(
                at_least(bound.time, time),
                "{fabric}: {time} > {}",
                bound.time
            );
        }
    }
}
