//! The throughput optimum against published values, and against all sets of vertices of small
//! graphs.

use opticoll::bounds::electrical;
use opticoll::bounds::electrical::Optimum;
use opticoll::bounds::throughput::{Cuts, RatedLink, TightestCut, tightest};
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::planner;
use opticoll::simulate;
use opticoll::simulate::TimingModel;
use opticoll::spec::Spec;
use opticoll::units::Bytes;
use opticoll::verify::verify;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const EVERYTHING: u64 = u64::MAX;

/// Returns the greatest ratio of blocks to rate over all sets of vertices; the rate is 0 if no link
/// leads into a set.
fn ratio_over_sets(ranks: u32, vertices: usize, links: &[RatedLink], cuts: Cuts) -> (u128, u128) {
    let mut best: Option<(u128, u128)> = None;
    for set in 1u32..1 << vertices {
        let inside = |vertex: u32| set >> vertex & 1 == 1;
        let own = (0..ranks).filter(|rank| inside(*rank)).count() as u128;
        let blocks = match cuts {
            Cuts::EachRank if own > 0 => u128::from(ranks) - own,
            Cuts::Into(root) if inside(root) => u128::from(ranks) - own,
            Cuts::From(root) if own > 0 && !inside(root) => 1,
            _ => 0,
        };
        if blocks == 0 {
            continue;
        }
        let into = links
            .iter()
            .filter(|link| !inside(link.0) && inside(link.1));
        let rate = into
            .map(|link| u128::from(link.2.unwrap_or(0)))
            .sum::<u128>();
        if best.is_none_or(|(most, of)| blocks * of > most * rate || (rate == 0 && of > 0)) {
            best = Some((blocks, rate));
        }
    }
    best.expect("there are two ranks")
}

fn check(ranks: u32, vertices: usize, links: &[RatedLink]) {
    let kinds = [Cuts::EachRank, Cuts::Into(0), Cuts::From(ranks - 1)];
    for cuts in kinds {
        let (blocks, rate) = ratio_over_sets(ranks, vertices, links, cuts);
        let cut = tightest(ranks, vertices, links, cuts, EVERYTHING).expect("two ranks");
        let what = || format!("{ranks} of {vertices}, {links:?}, {cuts:?}: {cut:?}");
        if rate == 0 {
            assert_eq!(cut.rate, 0, "{}", what());
        } else {
            assert_eq!(cut.blocks * rate, blocks * cut.rate, "{}", what());
        }
        assert_witness(ranks, links, cuts, &cut);
    }
}

/// Checks that the cut has the blocks and the rate that it states.
fn assert_witness(ranks: u32, links: &[RatedLink], cuts: Cuts, cut: &TightestCut) {
    let inside = |vertex: u32| cut.vertices.contains(&vertex);
    let own = (0..ranks).filter(|rank| inside(*rank)).count() as u128;
    let into = links
        .iter()
        .filter(|link| !inside(link.0) && inside(link.1));
    assert_eq!(
        into.map(|link| u128::from(link.2.unwrap_or(0)))
            .sum::<u128>(),
        cut.rate
    );
    assert!(own > 0 && cut.is_tightest);
    let blocks = match cuts {
        Cuts::From(_) => 1,
        _ => u128::from(ranks) - own,
    };
    assert_eq!(blocks, cut.blocks);
}

#[test]
fn the_optimum_of_all_graphs_of_four_vertices_is_that_of_all_sets() {
    for vertices in 2..=4u32 {
        let ends = (0..vertices).flat_map(|from| (0..vertices).map(move |to| (from, to)));
        let ends: Vec<(u32, u32)> = ends.filter(|(from, to)| from != to).collect();
        // Capacities 1 and 2 of all pairs; of four vertices every 7th graph, since 3^12 take long.
        let step = if vertices == 4 { 7 } else { 1 };
        for number in (0..3u64.pow(ends.len() as u32)).step_by(step) {
            let mut rest = number;
            let mut links = Vec::new();
            for (from, to) in &ends {
                if rest % 3 > 0 {
                    links.push((*from, *to, Some(rest % 3)));
                }
                rest /= 3;
            }
            for ranks in 2..=vertices {
                check(ranks, vertices as usize, &links);
            }
        }
    }
}

#[test]
fn the_optimum_of_random_graphs_is_that_of_all_sets() {
    let mut random = Pcg64::seed_from_u64(19);
    for _ in 0..3000 {
        let vertices = random.random_range(2..=9u32);
        let ranks = random.random_range(2..=vertices);
        let count = random.random_range(vertices..=4 * vertices);
        let most = [2, 10, 400_000_000_000][random.random_range(0..3)];
        let links: Vec<RatedLink> = (0..count)
            .map(|_| {
                let (from, to) = (
                    random.random_range(0..vertices),
                    random.random_range(0..vertices),
                );
                (from, to, Some(random.random_range(1..=most)))
            })
            .filter(|link| link.0 != link.1)
            .collect();
        check(ranks, vertices as usize, &links);
    }
}

/// Returns the least ratio, over all partitions, of the rate between the parts to the number of
/// parts less one.
fn ratio_over_partitions(vertices: u32, cables: &[(u32, u32, u128)]) -> (u128, u128) {
    let mut best: Option<(u128, u128)> = None;
    let mut partitions = vec![vec![0u32]];
    for _ in 1..vertices {
        partitions = partitions
            .iter()
            .flat_map(|labels| {
                let next = labels.iter().max().map_or(0, |most| most + 1);
                (0..=next).map(|label| [labels.as_slice(), &[label]].concat())
            })
            .collect();
    }
    for labels in partitions {
        let joints = u128::from(*labels.iter().max().expect("a vertex"));
        let between = cables
            .iter()
            .filter(|(one, other, _)| labels[*one as usize] != labels[*other as usize]);
        let rate = between.map(|cable| cable.2).sum::<u128>();
        if joints > 0 && best.is_none_or(|(least, of)| rate * of < least * joints) {
            best = Some((rate, joints));
        }
    }
    best.expect("two vertices")
}

/// Returns an all_reduce on ranks that these cables (rates in Gb/s) join, and its optimum.
fn all_reduce_on(ranks: u32, cables: &[(u32, u32, u128)]) -> (Fabric, Collective, Optimum) {
    let links: Vec<String> = cables
        .iter()
        .map(|(one, other, rate)| format!("{one}-{other}@{rate}Gb/s"))
        .collect();
    let text = format!("custom:ranks={ranks},latency=0s,links={}", links.join("+"));
    let fabric = Fabric::parse(&text).expect("a fabric");
    let collective = Collective::new(CollectiveKind::AllReduce, ranks).expect("two ranks");
    let network = fabric.network().expect("links");
    let optimum = electrical::optimum(network, &collective).expect("cables join all");
    let (rate, joints) = ratio_over_partitions(ranks, cables);
    let rate = rate * 1_000_000_000;
    assert_eq!(
        optimum.least.bytes * rate,
        joints * optimum.least.rate,
        "{text}"
    );
    assert_eq!(optimum.most, Some(optimum.least), "{text}");
    (fabric, collective, optimum)
}

/// Checks that the plan along the trees of one root takes little more time than the optimum.
fn check_trees_of_one_root((fabric, collective, optimum): (Fabric, Collective, Optimum)) {
    let size = Bytes::new(1 << 30);
    let spec = Spec::new("tree_packing").with("roots", "one");
    let method = TimingModel::default();
    let planned = planner::plan(&spec, &fabric, collective, size, &method).expect("a plan");
    let plan = planned.plan.into_expanded();
    assert_eq!(verify(&plan), [], "{fabric}");
    let time = simulate::run(&plan, size, &method).expect("a time").time;
    let bits = u128::from(size.get()) * 8 * 1_000_000_000_000;
    let least = bits * optimum.least.bytes / optimum.least.rate;
    let ratio = u128::from(time.ps()) as f64 / least as f64;
    assert!((0.999_999..1.05).contains(&ratio), "{ratio} of {fabric}");
}

#[test]
fn all_reduce_takes_what_the_tightest_of_all_partitions_allows() {
    let mut random = Pcg64::seed_from_u64(7);
    for case in 0..100 {
        let ranks = random.random_range(2..=7u32);
        let rates: &[u128] = if case % 2 == 0 {
            &[1, 2, 3]
        } else {
            &[1, 99_999]
        };
        let mut joined: Vec<(u32, u32)> = (1..ranks)
            .map(|rank| (random.random_range(0..rank), rank))
            .collect();
        for _ in 0..random.random_range(0..=2 * ranks) {
            let (one, other) = (random.random_range(0..ranks), random.random_range(0..ranks));
            if one < other && !joined.contains(&(one, other)) {
                joined.push((one, other));
            }
        }
        let cables: Vec<(u32, u32, u128)> = joined
            .into_iter()
            .map(|(one, other)| (one, other, rates[random.random_range(0..rates.len())]))
            .collect();
        let question = all_reduce_on(ranks, &cables);
        // Of very unequal rates the optimum has too many trees.
        if case % 2 == 0 {
            check_trees_of_one_root(question);
        }
    }
}

#[test]
fn several_cables_between_two_ranks_share_what_goes_up_and_down() {
    let triangle = [
        (0, 1, 1),
        (0, 1, 1),
        (1, 2, 1),
        (1, 2, 1),
        (0, 2, 1),
        (0, 2, 1),
    ];
    check_trees_of_one_root(all_reduce_on(3, &triangle));
}
