//! Trees of one root with a relay each: as many as there are other ranks, and low.
//!
//! The root sends a part of its vector to each other rank, and that rank passes it on to all: a scatter and an all_gather,
//! chunk after chunk. Either straight, two edges deep; or to the ranks that share its switch and to one behind each other
//! switch, which passes it on to those that share it, three edges deep. Every rank then receives each part once and
//! sends N - 2 or fewer, so that cables of equal rate to the ranks are used to the full. Messages take the routes of the
//! fabric; what these load the links with says whether the trees reach the optimum.

use super::pack::Tree;
use crate::network::Network;

/// A link may have more to carry than the optimum allows by this part of it.
const SLACK: u128 = 100;

/// More ranks than these make too many messages.
const MOST_RANKS: u32 = 512;

/// The trees; `None` where they are slower than the optimum: `blocks` over `rate`. Backwards if `reversed`.
pub(super) fn trees(
    network: &dyn Network,
    root: u32,
    reversed: bool,
    (blocks, rate): (u128, u128),
) -> Option<Vec<Tree>> {
    let ranks = network.ranks();
    if !(3..=MOST_RANKS).contains(&ranks) {
        return None;
    }
    let links = network.links();
    let fits = |trees: &Vec<Tree>| {
        let mut load = vec![0u128; links.len()];
        let mut route = Vec::new();
        for &(from, to) in trees.iter().flat_map(|tree| &tree.edges) {
            route.clear();
            match reversed {
                true => network.route(to, from, &mut route),
                false => network.route(from, to, &mut route),
            }
            route.iter().for_each(|link| load[*link as usize] += 1);
        }
        load.iter().zip(links).all(|(load, link)| {
            let own = u128::from(link.rate.bits_per_second()) * blocks;
            load * rate * SLACK <= (SLACK + 1) * trees.len() as u128 * own
        })
    };
    let others = || (0..ranks).filter(|rank| *rank != root);
    let straight = |relay: u32| {
        let rest = others().filter(|rank| *rank != relay);
        Tree {
            root,
            edges: std::iter::once((root, relay))
                .chain(rest.map(|rank| (relay, rank)))
                .collect(),
        }
    };
    let straight: Vec<Tree> = others().map(straight).collect();
    if fits(&straight) {
        return Some(straight);
    }
    // Ranks that share a switch, and where each is.
    let mut shared: Vec<(u32, Vec<u32>)> = Vec::new();
    let mut place = vec![0; ranks as usize];
    for rank in 0..ranks {
        let mut route = Vec::new();
        network.route(rank, (rank + 1) % ranks, &mut route);
        let (_, switch) = network.ends(*route.first()?)?;
        let number = shared.iter().position(|one| one.0 == switch);
        let number = number.unwrap_or_else(|| {
            shared.push((switch, Vec::new()));
            shared.len() - 1
        });
        place[rank as usize] = number;
        shared[number].1.push(rank);
    }
    // Of those behind each switch, the one whose turn it is.
    let mut turn = vec![0usize; shared.len()];
    let over_switches = |relay: u32| {
        let own = place[relay as usize];
        let mut edges = vec![(root, relay)];
        let mut second = Vec::new();
        for (number, (_, mates)) in shared.iter().enumerate() {
            let first = match number == own {
                true => relay,
                false => {
                    // The root has everything already.
                    let beside = mates.iter().filter(|rank| **rank != root);
                    let count = beside.clone().count();
                    let Some(first) = beside.copied().nth(turn[number] % count.max(1)) else {
                        continue;
                    };
                    turn[number] += 1;
                    edges.push((relay, first));
                    first
                }
            };
            let rest = mates
                .iter()
                .filter(|rank| **rank != root && **rank != first);
            second.extend(rest.map(|rank| (first, *rank)));
        }
        edges.extend(second);
        Tree { root, edges }
    };
    let over_switches: Vec<Tree> = others().map(over_switches).collect();
    (shared.len() > 1 && fits(&over_switches)).then_some(over_switches)
}
