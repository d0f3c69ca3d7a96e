//! Shallow trees of one root with a relay each.
//!
//! The root sends a part of its vector to each of some ranks, and these relays pass it on to all
//! ranks: a scatter and an all_gather, chunk after chunk. Every other rank may be a relay. Then
//! either each relay sends to all ranks, two edges deep; or it sends to the ranks that share its
//! switch and to one rank behind each other switch, which passes the part on to the ranks that
//! share its switch, three edges deep. Every rank then receives each part once and sends N - 2
//! parts at most, so cables of equal rate to the ranks are fully used.
//!
//! With many ranks these are too many messages. With groups of g ranks, the g - 1 ranks in the
//! group of the root are the relays. Each part travels from group to group along a tree of groups.
//! It enters every group at one rank, a different rank for each part, and this rank sends the part
//! to the rest of its group. A rank with d groups below it sends (g - 1 + d) / (g - 1) of the
//! vector.
//!
//! Messages take the routes of the fabric; the loads of the links tell whether the trees reach the
//! optimum.

use super::packing::Tree;
use opticoll_base::interrupt;
use opticoll_fabric::network::Network;

/// Inverse of the relative amount by which the load of a link may exceed the optimum: 1 / 100.
const SLACK_DIVISOR: u128 = 100;

/// Maximum number of ranks for which every rank is a relay: more would send too many messages.
pub(super) const MAX_RELAYS: u32 = 512;

/// Number of groups of the ranks behind one switch. Measured: a broadcast of 1 MiB on a crossbar of
/// 1,024 ranks takes 123.9 us, and 169.6 us without groups.
const GROUPS: usize = 8;

/// Maximum number of groups below a group to try; shallow trees come first.
const CHILD_GROUPS: [usize; 2] = [GROUPS - 1, 2];

/// Inverse of the relative amount by which the load of a link may exceed the optimum with groups: 1
/// / 12.
const GROUP_SLACK_DIVISOR: u128 = 12;

/// Returns the forests whose busiest link carries at most 1 / 100 more than in the optimum,
/// `blocks` over `rate`, or 1 / 12 more with groups. The messages run backwards if `reversed`.
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
            let capacity = u128::from(link.rate.bits_per_second()) * blocks;
            load * rate * slack <= (slack + 1) * trees.len() as u128 * capacity
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
    if ranks <= MAX_RELAYS {
        let straight: Vec<Tree> = others().map(straight).collect();
        if fits(&straight, SLACK_DIVISOR) {
            forests.push(straight);
        }
    }
    // Ranks that share a switch, and the index of the switch of each rank.
    let mut shared: Vec<(u32, Vec<u32>)> = Vec::new();
    let mut switch_of = vec![0; ranks as usize];
    for rank in 0..ranks {
        let mut route = Vec::new();
        network.route(rank, (rank + 1) % ranks, &mut route);
        let ends = route.first().and_then(|link| network.ends(*link));
        let Some((_, switch)) = ends else {
            return forests;
        };
        let number = shared.iter().position(|group| group.0 == switch);
        let number = number.unwrap_or_else(|| {
            shared.push((switch, Vec::new()));
            shared.len() - 1
        });
        switch_of[rank as usize] = number;
        shared[number].1.push(rank);
    }
    // Index of the next rank to use behind each switch.
    let mut next_rank = vec![0usize; shared.len()];
    let over_switches = |relay: u32| {
        let relay_switch = switch_of[relay as usize];
        let mut edges = vec![(root, relay)];
        let mut second = Vec::new();
        for (number, (_, mates)) in shared.iter().enumerate() {
            let first = match number == relay_switch {
                true => relay,
                false => {
                    // The root has everything already.
                    let beside = mates.iter().filter(|rank| **rank != root);
                    let count = beside.clone().count();
                    let Some(first) = beside.copied().nth(next_rank[number] % count.max(1)) else {
                        continue;
                    };
                    next_rank[number] += 1;
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
    if ranks <= MAX_RELAYS && forests.is_empty() && shared.len() > 1 {
        let over_switches: Vec<Tree> = others().map(over_switches).collect();
        if fits(&over_switches, SLACK_DIVISOR) {
            forests.push(over_switches);
        }
    }
    let groups: Vec<Vec<u32>> = match &shared[..] {
        [(_, all)] => {
            let size = all.len().div_ceil(GROUPS);
            all.chunks(size).map(<[u32]>::to_vec).collect()
        }
        _ => shared.into_iter().map(|group| group.1).collect(),
    };
    let grouped = CHILD_GROUPS
        .iter()
        .filter_map(|below| group_trees(&groups, root, *below));
    forests.extend(
        grouped
            .filter(|trees| fits(trees, GROUP_SLACK_DIVISOR))
            .take(1),
    );
    forests
}

/// Returns a tree for each rank other than the root in the root's group, with at most `below`
/// groups below each group; `None` if groups differ in size.
fn group_trees(groups: &[Vec<u32>], root: u32, below: usize) -> Option<Vec<Tree>> {
    let root_group = groups.iter().position(|group| group.contains(&root))?;
    let count = groups.len();
    let size = groups[root_group].len();
    let is_even = groups.iter().all(|group| group.len() == size);
    let relays = groups[root_group]
        .iter()
        .enumerate()
        .filter(|relay| *relay.1 != root);
    let tree = |(place, relay): (usize, &u32)| {
        // Groups in the order of a heap, from the root's group on.
        let first = |number: usize| groups[(root_group + number) % count][place];
        let mut edges = vec![(root, *relay)];
        edges.extend((1..count).map(|number| (first((number - 1) / below), first(number))));
        for number in 0..count {
            let group = &groups[(root_group + number) % count];
            let rest = group
                .iter()
                .filter(|rank| **rank != root && **rank != first(number));
            edges.extend(rest.map(|rank| (first(number), *rank)));
        }
        Tree { root, edges }
    };
    let is_small = (3..=MAX_RELAYS as usize).contains(&size);
    (is_even && is_small && count > 1).then(|| relays.map(tree).collect())
}
