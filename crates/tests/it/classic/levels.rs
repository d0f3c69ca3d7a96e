//! The algorithms for tori and for fabrics whose ranks come in groups: verified, at the cost that
//! theory gives, with times computed by hand.

use opticoll::algorithms;
use opticoll::algorithms::{AlgorithmError, find};
use opticoll::collective::CollectiveKind::*;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::plan::Plan;
use opticoll::schedule::{Schedule, Transfer};
use opticoll::simulate;
use opticoll::simulate::TimingModel;
use opticoll::units::Bytes;

use super::dragonfly::{check_costs, proved};
use crate::rows;
use opticoll::algorithms::formula::rank_variables;

/// Returns the time (s) of a plan under the default start rule.
fn time(kind: CollectiveKind, spec: &str, fabric: &str, size: u64) -> f64 {
    let fabric = Fabric::parse(fabric).unwrap();
    let schedule = proved(kind, spec, &fabric, 0);
    let plan = Plan::without_light(&fabric, schedule, spec.into());
    let outcome = simulate::run(&plan, Bytes::new(size), &TimingModel::default()).unwrap();
    outcome.time.seconds()
}

fn check_time(found: f64, by_hand: f64, what: &str) {
    let difference = (found / by_hand - 1.0).abs();
    assert!(difference < 1e-6, "{what}: {found} s, {by_hand} s by hand");
}

#[test]
fn rings_in_all_dimensions_take_as_many_steps_as_the_farthest_ranks_are_hops_apart() {
    let shapes: [&[u32]; 10] = [
        &[4, 4, 4],
        &[3, 3],
        &[4, 4],
        &[5, 3, 2],
        &[8, 8],
        &[2, 2],
        &[1, 4],
        &[2],
        &[7],
        &[6, 1, 3, 2],
    ];
    for sides in shapes {
        let dims: Vec<String> = sides.iter().map(u32::to_string).collect();
        let fabric = Fabric::parse(&format!("torus:dims={}", dims.join("x"))).unwrap();
        for (kind, passes) in [(AllGather, 1), (ReduceScatter, 1), (AllReduce, 2)] {
            let schedule = proved(kind, "multi_ring", &fabric, 0);
            let steps: u32 = sides.iter().map(|side| side / 2).sum();
            assert_eq!(schedule.steps() as u32, passes * steps, "{kind} {fabric}");
            assert_eq!(schedule.claims.schedule_steps, Some(passes * steps));
            let record = find(kind, "multi_ring").unwrap();
            check_costs(record, &schedule, &rank_variables(fabric.ranks()));
        }
    }
}

/// If all sides are equal, every link carries (N - 1) / (2 D) blocks and never waits for a block.
#[test]
fn rings_in_all_dimensions_of_a_torus_use_all_links_evenly() {
    for (dims, steps, loads) in [
        ("4x4x4", 6, 63.0 / 6.0),
        ("3x3x3", 3, 26.0 / 6.0),
        ("8x8", 8, 63.0 / 4.0),
    ] {
        let fabric = format!("torus:dims={dims},latency=500ns,rate=100Gb/s");
        let block = 12u32 << 20;
        let moving = loads * f64::from(block) * 8.0 / 100e9;
        let by_hand = f64::from(steps) * 500e-9 + moving;
        let check = |kind, size, by_hand| {
            check_time(time(kind, "multi_ring", &fabric, size), by_hand, dims);
        };
        check(AllGather, block.into(), by_hand);
        let ranks = Fabric::parse(&fabric).unwrap().ranks();
        let vector = u64::from(block) * u64::from(ranks);
        check(ReduceScatter, vector, by_hand);
        check(AllReduce, vector, 2.0 * by_hand);
    }
}

#[test]
fn rails_take_a_step_for_each_level_and_direction() {
    for fabric in [
        "dgx_a100:boxes=2",
        "dgx_h100:boxes=3",
        "mi250:boxes=2",
        "fat_tree:down=4x4,up=1x2",
        "dragonfly:terminals_per_router=2,routers_per_group=2,global_per_router=1",
    ] {
        let fabric = Fabric::parse(fabric).unwrap();
        let values = rank_variables(fabric.ranks());
        for (kind, spec, steps) in [
            (AllGather, "rails", 2),
            (AllGather, "rails:segments=3", 4),
            (ReduceScatter, "rails", 2),
            (ReduceScatter, "rails:segments=3", 4),
            (AllReduce, "rails", 4),
            (AllReduce, "rails:segments=3", 6),
            (AllReduce, "rails:minimize=steps", 3),
            (AllReduce, "rails:segments=3,minimize=steps", 5),
        ] {
            let schedule = proved(kind, spec, &fabric, 0);
            assert_eq!(schedule.steps(), steps, "{kind} {spec} on {fabric}");
            assert_eq!(schedule.claims.schedule_steps, Some(steps as u32));
            if spec == "rails" {
                check_costs(find(kind, "rails").unwrap(), &schedule, &values);
            }
        }
    }
}

/// Two servers of 8 GPUs: 2 links of 450 GB/s within, 4 links, the slowest of 50 GB/s, across.
#[test]
fn rails_of_two_servers_take_their_formula() {
    let fabric = "dgx_h100:boxes=2,latency=500ns,library=none";
    let size = 16u32 << 20;
    let bytes = f64::from(size);
    let all_gather = 2e-6 + bytes / 50e9 + 1e-6 + 7.0 * bytes / 450e9;
    check_time(
        time(AllGather, "rails", fabric, size.into()),
        all_gather,
        "all_gather",
    );
    let within = 1e-6 + 7.0 / 8.0 * bytes / 450e9;
    let whole = 2.0 * within + 2e-6 + bytes / 8.0 / 50e9;
    check_time(
        time(AllReduce, "rails:minimize=steps", fabric, size.into()),
        whole,
        "minimize=steps",
    );
    let halves = 2.0 * within + 2.0 * (2e-6 + bytes / 16.0 / 50e9);
    check_time(
        time(AllReduce, "rails", fabric, size.into()),
        halves,
        "minimize=bytes",
    );
}

/// Counts the chunks that each rank sends to ranks of other servers of 8, and returns whether all
/// of these chunks stay on their rail.
fn crossing(schedule: &Schedule) -> (Vec<usize>, bool) {
    let crosses = |one: &Transfer| one.source / 8 != one.destination / 8;
    let across: Vec<Transfer> = schedule.transfers().filter(crosses).collect();
    let mut sent = vec![0; schedule.collective.ranks() as usize];
    for one in &across {
        sent[one.source as usize] += one.count as usize;
    }
    let stay = across
        .iter()
        .all(|one| one.source % 8 == one.destination % 8);
    (sent, stay)
}

/// Each of 8 rings leaves a server once a step, at a rank of its own.
#[test]
fn channels_of_a_ring_leave_servers_at_all_ranks() {
    for boxes in 2..6 {
        let fabric = Fabric::parse(&format!("dgx_h100:boxes={boxes}")).unwrap();
        let values = rank_variables(fabric.ranks());
        for (kind, passes) in [(AllGather, 1), (ReduceScatter, 1), (AllReduce, 2)] {
            let schedule = proved(kind, "ring:channels=all", &fabric, 0);
            check_costs(find(kind, "ring").unwrap(), &schedule, &values);
            let steps = passes * (8 * boxes - 1);
            let (sent, stay) = crossing(&schedule);
            assert_eq!(sent, vec![steps; 8 * boxes], "{kind} {boxes}");
            assert!(stay, "{kind} {boxes}");
        }
    }
}

/// Between two servers every piece goes up once and down once; a server with two servers below it
/// sends the piece twice. Each chain adds 7 steps in each direction to the trees among servers.
#[test]
fn channels_of_trees_leave_servers_at_all_ranks() {
    for boxes in 1..9usize {
        let fabric = Fabric::parse(&format!("dgx_h100:boxes={boxes}")).unwrap();
        for (channels, pieces) in [("all", 8), ("3", 8), ("all", 5)] {
            let spec = format!("double_binary_tree:channels={channels},segments={pieces}");
            let schedule = proved(AllReduce, &spec, &fabric, 0);
            let depth = (boxes - 1)
                .checked_ilog2()
                .map_or(0, |levels| 4 * levels + 2) as usize;
            assert!(schedule.steps() <= pieces + depth + 2 * 8, "{spec} {boxes}");
            let (sent, stay) = crossing(&schedule);
            assert!(stay, "{spec} {boxes}");
            let first = if channels == "all" { 8 } else { 3 };
            for server in sent.chunks(8) {
                let (used, idle) = server.split_at(first);
                assert!(
                    used.iter().all(|own| *own == used[0]),
                    "{spec} {boxes}: {sent:?}"
                );
                assert!(used[0] <= 2 * pieces + 1, "{spec} {boxes}: {sent:?}");
                assert!(idle.iter().all(|own| *own == 0), "{spec} {boxes}: {sent:?}");
                assert!(boxes != 2 || used[0] == pieces, "{spec}: {sent:?}");
            }
        }
    }
}

/// Each rank of a server is the rank of one channel in the trees. The switch adds one step before
/// the trees among servers, and one step after them. A binary tree of n servers below the root has
/// floor(log2 n) + 1 levels, so a piece that goes up and down the second tree waits no more than
/// twice two steps per level.
#[test]
fn trees_of_servers_whose_switches_add_take_two_steps_more_than_the_trees_of_servers() {
    for boxes in 2..18usize {
        let fabric = Fabric::parse(&format!("dgx_h100:boxes={boxes}")).unwrap();
        for pieces in [2usize, 7, 8] {
            let spec = format!("nvls_tree:segments={pieces}");
            let schedule = proved(AllReduce, &spec, &fabric, 0);
            let levels = (boxes - 1).ilog2() as usize;
            let most = pieces + pieces % 2 + 4 * levels + 4;
            assert!(schedule.steps() <= most, "{spec} {boxes}");
            // Up and down one level, one step between the trees, and the switches.
            assert!(schedule.steps() >= pieces + 3, "{spec} {boxes}");
            let (sent, stay) = crossing(&schedule);
            assert!(stay, "{spec} {boxes}");
            for server in sent.chunks(8) {
                assert!(server.iter().all(|own| *own == server[0]), "{sent:?}");
                assert!(server[0] <= 2 * pieces + 1, "{spec} {boxes}: {sent:?}");
            }
            // Every link of a tree is used once in each direction per piece.
            let all: usize = sent.iter().sum();
            assert_eq!(all, 8 * 2 * pieces * (boxes - 1), "{spec} {boxes}");
        }
    }
}

/// In each step a chunk crosses by each interface: 4 links, the slowest of 25 GB/s.
#[test]
fn a_ring_of_eight_channels_takes_an_eighth_of_the_bytes_over_an_interface() {
    for boxes in [2u32, 3] {
        let fabric = format!("dgx_a100:boxes={boxes},latency=2us,library=none");
        let ranks = 8 * boxes;
        let chunk = 1u64 << 20;
        let step = 4.0 * 2e-6 + chunk as f64 / 25e9;
        let by_hand = f64::from(2 * (ranks - 1)) * step;
        let size = u64::from(8 * ranks) * chunk;
        let found = time(AllReduce, "ring:channels=all", &fabric, size);
        check_time(found, by_hand, &fabric);
    }
}

/// An algorithm, a fabric that it does not run on, and words of the error.
const REFUSED: &str = "
ring:channels=9 | dgx_a100:boxes=2 | a group has 8 ranks
ring:channels=2 | crossbar:ranks=8 | no groups
double_binary_tree:channels=2 | torus:dims=4x4 | no groups
ring:channels=0 | dgx_a100:boxes=2 | from 1
ring:channels=2,order=shuffled | dgx_a100:boxes=2 | order=natural
";

#[test]
fn channels_that_there_are_no_ranks_for_are_refused() {
    for [spec, fabric, words] in rows(REFUSED) {
        let fabric = Fabric::parse(fabric).unwrap();
        let collective = Collective::new(AllReduce, fabric.ranks()).unwrap();
        let refused = algorithms::build(&spec.parse().unwrap(), collective, &fabric);
        let said = refused.err().map(|error| error.to_string());
        assert!(said.is_some_and(|said| said.contains(words)), "{spec}");
    }
    // Where ranks form no groups, there is one channel.
    let star = Fabric::parse("crossbar:ranks=6").unwrap();
    for spec in ["ring", "double_binary_tree"] {
        let all = proved(AllReduce, &format!("{spec}:channels=all"), &star, 0);
        let plain = proved(AllReduce, spec, &star, 0);
        assert!(all.transfers().eq(plain.transfers()), "{spec}");
    }
}

#[test]
fn fabrics_without_dimensions_or_groups_are_refused() {
    for (spec, fabric) in [
        ("multi_ring", "mesh:dims=4x4"),
        ("multi_ring", "crossbar:ranks=8"),
        ("rails", "crossbar:ranks=8"),
        ("rails", "dgx_a100"),
        ("nvls_rails", "dgx_h100"),
        ("nvls_tree", "dgx_h100"),
    ] {
        let fabric = Fabric::parse(fabric).unwrap();
        let kind = match spec.starts_with("nvls") {
            true => AllReduce,
            false => AllGather,
        };
        let collective = Collective::new(kind, fabric.ranks()).unwrap();
        let refused = algorithms::build(&spec.parse().unwrap(), collective, &fabric);
        let is_right = matches!(refused, Err(AlgorithmError::WrongFamily(_)));
        assert!(is_right, "{spec} on {fabric}");
    }
}
