//! The maximum concurrent flow: lower bounds on the time by lengths of links, times of routes, and
//! the optimum where both are equal.

use opticoll::bounds::concurrent_flow::{ConcurrentFlow, pairs};
use opticoll::bounds::electrical::optimum;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

fn all_to_all(ranks: u32) -> Collective {
    Collective::new(CollectiveKind::AllToAll, ranks).unwrap()
}

/// Seconds for a block of a gigabyte of each pair, at 1 GB/s: the table of optima by linear
/// programs.
#[test]
fn optima_of_the_linear_program_are_found_without_one() {
    for (spec, blocks) in [
        ("electrical_ring:ranks=8", 8),
        ("mesh:dims=4x4", 16),
        ("torus:dims=4x4", 8),
        ("torus:dims=8x8", 64),
        ("torus:dims=4x4x4", 32),
        ("torus:dims=8x8x8", 512),
        // N k / 8 for the longest side k, whose links alone are full.
        ("torus:dims=4x8", 32),
        ("torus:dims=4x4x8", 128),
        ("torus:dims=4x6x10", 300),
    ] {
        check_optimum(&format!("{spec},rate=1GB/s"), (blocks, 1));
    }
    check_optimum("gpu_servers:model=dgx1", (8, 75));
    check_optimum("gpu_servers:model=dgx_a100,boxes=2", (8, 25));
    check_optimum("gpu_servers:model=dgx_h100,boxes=2", (4, 25));
}

/// Checks the seconds, a fraction, of an optimum whose witness has links.
fn check_optimum(spec: &str, (seconds, of): (u128, u128)) {
    let fabric = Fabric::parse(spec).unwrap();
    let ranks = fabric.ranks();
    let found = optimum(fabric.network().unwrap(), &all_to_all(ranks)).unwrap();
    assert_eq!(found.most, Some(found.least), "{spec}");
    let (least, per) = found.least.seconds_per_gigabyte().unwrap();
    assert_eq!(least * u128::from(ranks) * of, seconds * per, "{spec}");
    assert!(!found.witness.links.is_empty());
    assert_eq!(found.witness.links.len(), found.witness.lengths.len());
}

/// Bounds by random lengths are never above the times of the routes that are found.
#[test]
fn no_lengths_prove_more_than_some_ways_take() {
    let mut random = Pcg64::seed_from_u64(7);
    for spec in [
        "gpu_servers:model=dgx1",
        "gpu_servers:model=ndv2,boxes=2",
        "mesh:dims=3x4,duplex=half",
        "custom:ranks=4,switches=2,links=0-4+1-4+2-5+3-5+4-5@40Gb/s+0>3@7Gb/s+2~1@9Gb/s,\
         rate=100Gb/s",
    ] {
        let fabric = Fabric::parse(spec).unwrap();
        let network = fabric.network().unwrap();
        let flow = ConcurrentFlow::of(network).unwrap();
        for kind in [
            CollectiveKind::AllToAll,
            CollectiveKind::Scatter,
            CollectiveKind::Gather,
        ] {
            let pairs = pairs(&Collective::new(kind, fabric.ranks()).unwrap()).unwrap();
            let (bound, _) = flow.best_bound(&pairs, None).unwrap();
            let mut least = None;
            for chunks in [1, 2, 3] {
                let ways = flow.routes(&pairs, chunks, bound, u64::MAX).unwrap();
                assert_eq!(ways.routes.len(), pairs.len() * chunks as usize);
                check_ways(&fabric, &pairs, &ways.routes, chunks, &ways.loads);
                if least.is_none_or(|least| ways.time.is_below(least)) {
                    least = Some(ways.time);
                }
                let (better, _) = flow.best_bound(&pairs, Some(&flow.uses(&ways))).unwrap();
                assert!(!ways.time.is_below(better), "{spec}");
            }
            for _ in 0..50 {
                let links = network.links().iter();
                let lengths: Vec<u64> = links.map(|_| random.random_range(0..5)).collect();
                if let Some(proved) = flow.bound(&pairs, &lengths) {
                    assert!(!least.unwrap().is_below(proved), "{spec}: {lengths:?}");
                }
            }
        }
    }
}

/// Ways lead from end to end, and the loads are theirs.
fn check_ways(
    fabric: &Fabric,
    pairs: &[(u32, u32)],
    ways: &[Box<[u32]>],
    chunks: u32,
    loads: &[u64],
) {
    let network = fabric.network().unwrap();
    let mut counted = vec![0u64; network.links().len()];
    for (place, way) in ways.iter().enumerate() {
        let (source, destination) = pairs[place / chunks as usize];
        let mut at = source;
        for &link in way {
            counted[link as usize] += 1;
            let (from, to) = network.ends(link).unwrap();
            at = if from == at { to } else { from };
            assert!(at == to || network.leads_both_ways(link));
        }
        assert_eq!(at, destination);
    }
    assert_eq!(counted, loads);
}

#[test]
fn what_is_not_joined_has_no_bound() {
    let fabric = Fabric::parse("electrical_ring:ranks=4").unwrap();
    let flow = ConcurrentFlow::of(fabric.network().unwrap()).unwrap();
    // Of lengths that are too long to be summed up exactly nothing is said.
    assert!(flow.bound(&[(0, 2)], &[1 << 60; 8]).is_none());
    assert!(pairs(&Collective::new(CollectiveKind::AllGather, 4).unwrap()).is_none());
}
