//! Ranks on sites: the heuristic, the bound and the exact answer against all placements.

use opticoll::algorithms;
use opticoll::collective::{Collective, CollectiveKind};
use opticoll::fabric::Fabric;
use opticoll::families::Medium;
use opticoll::hash::hash;
use opticoll::planner::rank_mapping::{Problem, heuristic, lower_bound, place};
use opticoll::schedule::Schedule;
use opticoll::simulate::burst::BurstNetwork;
use opticoll::units::Bytes;

/// Bytes and hops in rows, and their cost by the definition.
struct Case {
    bytes: Vec<Vec<u64>>,
    hops: Vec<Vec<u32>>,
}

impl Case {
    fn problem(&self) -> Problem {
        let (ranks, sites) = (self.bytes.len(), self.hops.len());
        Problem::new(ranks, self.bytes.concat(), sites, self.hops.concat())
    }

    fn cost(&self, sites: &[u32]) -> u128 {
        let mut sum = 0;
        for (a, row) in self.bytes.iter().enumerate() {
            for (b, bytes) in row.iter().enumerate() {
                let hops = self.hops[sites[a] as usize][sites[b] as usize];
                sum += u128::from(*bytes) * u128::from(hops);
            }
        }
        sum
    }

    fn least_of_all(&self, placed: &mut Vec<u32>) -> u128 {
        if placed.len() == self.bytes.len() {
            return self.cost(placed);
        }
        let mut least = u128::MAX;
        for site in 0..self.hops.len() as u32 {
            if !placed.contains(&site) {
                placed.push(site);
                least = least.min(self.least_of_all(placed));
                placed.pop();
            }
        }
        least
    }
}

/// Draws bytes, many of them 0, and hops that are symmetric in half of the cases.
fn random(ranks: usize, sites: usize, seed: u64) -> Case {
    let draw = |place: usize, below: u64| hash(seed << 16 | place as u64) % below;
    let both_ways = seed % 2 == 0;
    let hops = |x: usize, y: usize| match (x == y, both_ways && x > y) {
        (true, _) => 0,
        (_, false) => draw(x * sites + y, 5) as u32,
        (_, true) => draw(y * sites + x, 5) as u32,
    };
    let bytes = |a: usize, b: usize| match a == b || draw(4096 + a * ranks + b, 3) == 0 {
        true => 0,
        false => draw(8192 + a * ranks + b, 1000),
    };
    Case {
        bytes: (0..ranks)
            .map(|a| (0..ranks).map(|b| bytes(a, b)).collect())
            .collect(),
        hops: (0..sites)
            .map(|x| (0..sites).map(|y| hops(x, y)).collect())
            .collect(),
    }
}

#[test]
fn bound_exact_answer_and_heuristic_stand_in_their_order_on_every_small_case() {
    let (mut bound_met, mut heuristic_met, mut cases) = (0, 0, 0);
    let small = (1..=7).flat_map(|ranks| (ranks..=7).map(move |sites| (ranks, sites)));
    for (number, (ranks, sites)) in small.enumerate() {
        for seed in 0..4 {
            let case = random(ranks, sites, 4 * number as u64 + seed);
            let problem = case.problem();
            let least = case.least_of_all(&mut Vec::new());
            let starts = [(0..ranks as u32).rev().collect::<Vec<u32>>()];
            let found = heuristic(&problem, &starts);
            let (bound, cost) = (lower_bound(&problem), case.cost(&found));
            assert!(bound <= least && least <= cost, "{bound} {least} {cost}");
            assert!(cost <= case.cost(&starts[0]));
            assert!(problem.check(&found).is_ok());
            assert!(problem.check(&[sites as u32]).is_err() && problem.check(&[0, 0]).is_err());
            let best = place(&problem, &starts);
            assert_eq!((best.cost, best.bound, best.is_best), (least, least, true));
            assert_eq!(case.cost(&best.sites), least);
            let mut different = best.sites.clone();
            different.sort_unstable();
            different.dedup();
            assert_eq!(different.len(), ranks);
            bound_met += usize::from(bound == least);
            heuristic_met += usize::from(cost == least);
            cases += 1;
        }
    }
    // Neither a bound of nothing nor a heuristic that never finds it would pass.
    assert!(4 * bound_met > cases, "{bound_met} of {cases}");
    assert!(2 * heuristic_met > cases, "{heuristic_met} of {cases}");
}

fn schedule(kind: CollectiveKind, name: &str, ranks: u32) -> Schedule {
    let fabric = Fabric::parse(&format!("crossbar:ranks={ranks},rate=10Gb/s")).unwrap();
    let collective = Collective::new(kind, ranks).unwrap();
    algorithms::build(&name.parse().unwrap(), collective, &fabric).unwrap()
}

#[test]
fn a_ring_of_ranks_is_laid_around_a_ladder() {
    let network =
        BurstNetwork::of(&Medium::parse("wdm_ladder:rungs=5,wavelengths=1,rate=10Gb/s").unwrap())
            .unwrap();
    let ring = schedule(CollectiveKind::AllGather, "ring", 10);
    let problem = Problem::on_network(&network, &[(&ring, Bytes::new(7))]).unwrap();
    let natural: Vec<u32> = (0..10).collect();
    // In each of nine steps every rank sends seven bytes to the next; naturally 4 to 5 and 9 to 0
    // are five links apart, and all others one.
    assert_eq!(problem.cost(&natural), 9 * 7 * (8 + 5 + 5));
    let best = place(&problem, &[natural]);
    // A ladder has a way around all its nodes, and no rank can have its neighbours nearer.
    assert_eq!((best.cost, best.is_best), (9 * 7 * 10, true));
}

#[test]
fn ranks_that_fit_on_one_node_are_put_there_and_two_collectives_do_not_mix() {
    let medium = Medium::parse("wdm_ladder:rungs=3,hosts=4,wavelengths=1,rate=10Gb/s").unwrap();
    let network = BurstNetwork::of(&medium).unwrap();
    let tree = schedule(CollectiveKind::Broadcast, "binomial", 4);
    let jobs = [(&tree, Bytes::new(1000)), (&tree, Bytes::new(1000))];
    let problem = Problem::on_network(&network, &jobs).unwrap();
    // Both trees begin on other nodes than where they end.
    let best = place(&problem, &[(0..8).map(|rank| 3 * rank).collect()]);
    assert_eq!((best.cost, best.bound, best.is_best), (0, 0, true));
    let node = |rank: usize| network.node(best.sites[rank]);
    for rank in 1..4 {
        assert_eq!(node(rank), node(0));
        assert_eq!(node(4 + rank), node(4));
    }
}
