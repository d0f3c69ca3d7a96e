//! Shallow trees of one root that have a relay each.
//!
//! The root sends one part of its vector to each relay, and each relay forwards its part to all
//! ranks: a scatter and an all_gather, chunk after chunk. In the simplest case, every rank but the
//! root is a relay. Then there are two shapes. Either each relay sends to all ranks (depth 2). Or
//! each relay sends to the ranks at its own switch and to one rank at each other switch, which
//! forwards the part to the ranks at that switch (depth 3). Every rank receives each part once and
//! sends at most N - 2 parts, so cables of equal rate to the ranks are fully used.
//!
//! With many ranks this takes too many messages. With groups of g ranks, the relays are the g - 1
//! other ranks in the root's group. Each part travels from group to group along a tree of groups.
//! The part enters every group at one rank, a different rank for each part, and this rank sends the
//! part to the other ranks of its group. A rank whose group has d child groups sends (g - 1 + d) /
//! (g - 1) of the vector.
//!
//! Messages use the default routes of the fabric. The link loads show whether the trees reach the
//! optimum.

use super::packing::Tree;
use opticoll_base::interrupt;
use opticoll_fabric::network::Network;

/// Maximum relative excess of the busiest link's time over the optimum time: 1 / `SLACK_DIVISOR`.
const SLACK_DIVISOR: u128 = 100;

/// Maximum number of ranks for which every rank is a relay. More ranks would send too many
/// messages.
pub(super) const MAX_RELAYS: u32 = 512;

/// Number of groups into which the ranks at a single switch are divided. Measured: a broadcast of 1
/// MiB on a crossbar of 1,024 ranks takes 123.9 us, and 169.6 us without groups.
const GROUPS: usize = 8;

/// Maximum numbers of child groups per group to try, for shallow trees first.
const CHILD_GROUPS: [usize; 2] = [GROUPS - 1, 2];

/// Maximum relative excess of the busiest link's time over the optimum time, for trees of groups: 1
/// / `GROUP_SLACK_DIVISOR`.
const GROUP_SLACK_DIVISOR: u128 = 12;

/// Returns the forests that nearly reach the optimum time `blocks` / `rate`. The busiest link may
/// need longer by 1 / `SLACK_DIVISOR` or, with groups, by 1 / `GROUP_SLACK_DIVISOR`. If `reversed`,
/// messages travel towards the root.
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
    let two_level_tree = |relay: u32| {
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
        let two_level_tree: Vec<Tree> = others().map(two_level_tree).collect();
        if fits(&two_level_tree, SLACK_DIVISOR) {
            forests.push(two_level_tree);
        }
    }
    // Ranks at each switch, and the index of each rank's switch.
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
    // Index of the next rank to use at each switch.
    let mut next_rank = vec![0usize; shared.len()];
    let three_level_tree = |relay: u32| {
        let relay_switch = switch_of[relay as usize];
        let mut edges = vec![(root, relay)];
        let mut second = Vec::new();
        for (number, (_, switch_ranks)) in shared.iter().enumerate() {
            let first = match number == relay_switch {
                true => relay,
                false => {
                    // The root already has the whole vector.
                    let beside = switch_ranks.iter().filter(|rank| **rank != root);
                    let count = beside.clone().count();
                    let Some(first) = beside.copied().nth(next_rank[number] % count.max(1)) else {
                        continue;
                    };
                    next_rank[number] += 1;
                    edges.push((relay, first));
                    first
                }
            };
            let rest = switch_ranks
                .iter()
                .filter(|rank| **rank != root && **rank != first);
            second.extend(rest.map(|rank| (first, *rank)));
        }
        edges.extend(second);
        Tree { root, edges }
    };
    if ranks <= MAX_RELAYS && forests.is_empty() && shared.len() > 1 {
        let three_level_tree: Vec<Tree> = others().map(three_level_tree).collect();
        if fits(&three_level_tree, SLACK_DIVISOR) {
            forests.push(three_level_tree);
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

/// Returns one tree for each relay. The relays are the other ranks of the root's group. In a tree,
/// a group has at most `below` child groups. `None` if groups differ in size.
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
        // Groups are numbered from the root's group and form a heap: the parent of group n is group
        // (n - 1) / below.
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
