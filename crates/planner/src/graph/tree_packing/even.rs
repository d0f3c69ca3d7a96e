//! Trees of one root whose edges are moved to links that have less to do.
//!
//! Trees grow low, and take what links have for that. Where as low trees do with less on the busiest links before and after
//! the bottleneck, chunks of unequal sizes (`chunks`) shorten the first and the last steps.
//!
//! An edge to a rank is replaced by one from another rank if the busiest of the links that it gives up was busier than
//! each of those that it takes will be, if no tree becomes higher than the highest was, and if the message takes no more
//! latency. Each exchange makes the loads of links more even, so that the search ends.

use rustc_hash::FxHashMap;

use super::channels::{Channel, Channels};
use super::low::Rooted;
use super::pack::Tree;
use opticoll_base::interrupt;
use opticoll_fabric::network::Network;

/// Rounds over all edges.
const MOST_ROUNDS: usize = 8;

/// The most edges that are looked at in a round.
const MOST_LOOKED_AT: usize = 1 << 24;

/// Moves edges of trees, which run backwards where they are `reversed`, with their channels.
pub(super) fn even(
    network: &dyn Network,
    trees: &mut [Tree],
    channels: &mut Channels,
    reversed: bool,
) {
    let ranks = network.ranks();
    let Some(root) = trees.first().map(|tree| tree.root) else {
        return;
    };
    if trees.len() * (ranks as usize).pow(2) > MOST_LOOKED_AT {
        return;
    }
    let links = network.links();
    let mut load = vec![0u32; links.len()];
    // By tree and rank: the channel to the rank.
    let mut to: Vec<Vec<u32>> = vec![vec![0; ranks as usize]; trees.len()];
    for ((tree, own), into) in trees.iter().zip(&channels.of).zip(&mut to) {
        for (edge, channel) in tree.edges.iter().zip(own) {
            into[edge.1 as usize] = *channel;
            for link in &channels.all[*channel as usize].route {
                load[*link as usize] += 1;
            }
        }
    }
    let mut numbers: FxHashMap<(u32, u32), u32> = (0u32..)
        .zip(&channels.all)
        .filter(|(_, channel)| !channel.is_named)
        .map(|(number, channel)| (channel.ends, number))
        .collect();
    let busy =
        |load: u32, link: u32| f64::from(load) / links[link as usize].rate.bits_per_second() as f64;
    let latency = |route: &[u32]| {
        let of_links = route.iter().map(|link| links[*link as usize].latency.ps());
        of_links.sum::<u64>()
    };
    let mut rooted = Rooted::of(trees, ranks, root);
    let highest = trees.iter().map(Tree::height).max().unwrap_or(0) as u32;
    let mut route = Vec::new();
    for _ in 0..MOST_ROUNDS {
        let mut any = false;
        for (tree, into) in to.iter_mut().enumerate() {
            interrupt::check();
            for rank in (0..ranks).filter(|rank| *rank != root) {
                let old = &channels.all[into[rank as usize] as usize].route;
                let (old, most) = (old.clone(), latency(old));
                let mut best: Option<(f64, u32, Vec<u32>)> = None;
                for before in (0..ranks).filter(|before| *before != rank) {
                    if rooted.longest(tree, rank, before) > highest
                        || before == rooted.before[tree][rank as usize]
                        || rooted.leads_to(tree, rank, before)
                    {
                        continue;
                    }
                    let (from, at) = if reversed {
                        (rank, before)
                    } else {
                        (before, rank)
                    };
                    route.clear();
                    network.route(from, at, &mut route);
                    if latency(&route) > most {
                        continue;
                    }
                    let only = |one: &[u32], other: &[u32], more: u32| {
                        let links = one.iter().filter(|link| !other.contains(link));
                        let busy = links.map(|link| busy(load[*link as usize] + more, *link));
                        busy.fold(0.0, f64::max)
                    };
                    let will_be = only(&route, &old, 1);
                    if will_be
                        < best
                            .as_ref()
                            .map_or_else(|| only(&old, &route, 0), |best| best.0)
                    {
                        best = Some((will_be, before, route.clone()));
                    }
                }
                let Some((_, before, new)) = best else {
                    continue;
                };
                any = true;
                old.iter().for_each(|link| load[*link as usize] -= 1);
                new.iter().for_each(|link| load[*link as usize] += 1);
                rooted.hang(tree, rank, before);
                let ends = (before, rank);
                into[rank as usize] = *numbers.entry(ends).or_insert_with(|| {
                    channels.all.push(Channel {
                        ends,
                        route: new,
                        is_named: false,
                    });
                    channels.all.len() as u32 - 1
                });
            }
        }
        if !any {
            break;
        }
    }
    rooted.write_to(trees);
    for ((tree, own), into) in trees.iter().zip(&mut channels.of).zip(&to) {
        *own = tree
            .edges
            .iter()
            .map(|edge| into[edge.1 as usize])
            .collect();
    }
}
