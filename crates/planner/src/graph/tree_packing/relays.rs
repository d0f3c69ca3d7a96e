//! Trees of one root with a relay each, and low.
//!
//! The root sends a part of its vector to each of some ranks, and these pass it on to all: a
//! scatter and an all_gather, chunk after chunk. With every other rank for a relay, either
//! straight, two edges deep; or to the ranks that share its switch and to one behind each other
//! switch, which passes it on to those that share it, three edges deep. Every rank then receives
//! each part once and sends N - 2 or fewer, so that cables of equal rate to the ranks are used to
//! the full.
//!
//! Of many ranks these are too many messages. In groups of g ranks the g - 1 ranks beside the root
//! are its relays. Each part travels from group to group along a tree of groups. It enters every
//! group at one rank, a different one for each part, and that rank sends it to the rest of its
//! group. A rank with d groups below it sends (g - 1 + d) / (g - 1) of the vector.
//!
//! Messages take the routes of the fabric; what these load the links with says whether the trees
//! reach the optimum.

use super::pack::Tree;
use opticoll_base::interrupt;
use opticoll_fabric::network::Network;

/// A link may have more to carry than the optimum allows by this part of it.
const SLACK: u128 = 100;

/// With more ranks not every one is a relay: these would be too many messages.
pub(super) const MOST_RELAYS: u32 = 512;

/// Ranks behind one switch form so many groups.
const GROUPS: usize = 8;

/// How many groups are below a group: the lower trees are tried first.
const BELOW: [usize; 2] = [GROUPS - 1, 2];

/// Trees in groups may load a link by one part in so many more than the optimum.
const SLACK_OF_GROUPS: u128 = 12;

/// The forests whose busiest link carries at most 1/100 more than in the optimum, `blocks` over
/// `rate`, or in groups 1/12. Backwards if `reversed`.
pub(super) fn trees(
    network: &dyn Network,
    root: u32,
    reversed: bool,
    (blocks, rate): (u128, u128),
) -> Vec<Vec<Tree>> {
    let ranks = network.ranks();
    if ranks < 3 {
        return Vec::new();
    }
    let links = network.links();
    let fits = |trees: &Vec<Tree>, slack: u128| {
        interrupt::check();
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
            load * rate * slack <= (slack + 1) * trees.len() as u128 * own
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
    let mut forests = Vec::new();
    if ranks <= MOST_RELAYS {
        let straight: Vec<Tree> = others().map(straight).collect();
        if fits(&straight, SLACK) {
            forests.push(straight);
        }
    }
    // Ranks that share a switch, and where each is.
    let mut shared: Vec<(u32, Vec<u32>)> = Vec::new();
    let mut place = vec![0; ranks as usize];
    for rank in 0..ranks {
        let mut route = Vec::new();
        network.route(rank, (rank + 1) % ranks, &mut route);
        let ends = route.first().and_then(|link| network.ends(*link));
        let Some((_, switch)) = ends else {
            return forests;
        };
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
    if ranks <= MOST_RELAYS && forests.is_empty() && shared.len() > 1 {
        let over_switches: Vec<Tree> = others().map(over_switches).collect();
        if fits(&over_switches, SLACK) {
            forests.push(over_switches);
        }
    }
    let groups: Vec<Vec<u32>> = match &shared[..] {
        [(_, all)] => {
            let size = all.len().div_ceil(GROUPS);
            all.chunks(size).map(<[u32]>::to_vec).collect()
        }
        _ => shared.into_iter().map(|one| one.1).collect(),
    };
    let in_groups = BELOW
        .iter()
        .filter_map(|below| of_groups(&groups, root, *below));
    forests.extend(
        in_groups
            .filter(|trees| fits(trees, SLACK_OF_GROUPS))
            .take(1),
    );
    forests
}

/// A tree for each rank beside the root in its group, with at most `below` groups below each;
/// `None` where groups differ in size.
fn of_groups(groups: &[Vec<u32>], root: u32, below: usize) -> Option<Vec<Tree>> {
    let own = groups.iter().position(|group| group.contains(&root))?;
    let count = groups.len();
    let size = groups[own].len();
    let is_even = groups.iter().all(|group| group.len() == size);
    let relays = groups[own].iter().enumerate().filter(|one| *one.1 != root);
    let tree = |(place, relay): (usize, &u32)| {
        // The groups in the order of a heap, from that of the root on.
        let first = |number: usize| groups[(own + number) % count][place];
        let mut edges = vec![(root, *relay)];
        edges.extend((1..count).map(|number| (first((number - 1) / below), first(number))));
        for number in 0..count {
            let group = &groups[(own + number) % count];
            let rest = group
                .iter()
                .filter(|rank| **rank != root && **rank != first(number));
            edges.extend(rest.map(|rank| (first(number), *rank)));
        }
        Tree { root, edges }
    };
    let is_small = (3..=MOST_RELAYS as usize).contains(&size);
    (is_even && is_small && count > 1).then(|| relays.map(tree).collect())
}
