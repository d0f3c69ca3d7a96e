//! By which links the messages of a forest go.
//!
//! An edge of a tree stands for one unit of the capacity between two ranks, and so for a path over
//! switches: one of those that edge splitting put together. Each edge takes a path of which most is
//! left, and of several cables between two vertices the one that has least to do for its rate.

use rustc_hash::FxHashMap;

use super::pack::Tree;
use super::split::Paths;
use opticoll_fabric::network::Network;

/// A way from one rank to another.
pub(super) struct Channel {
    /// The ends of the edge in its tree.
    pub(super) ends: (u32, u32),
    /// The links that a message takes, in its order.
    pub(super) route: Vec<u32>,
    /// Whether that is not the route of the fabric.
    pub(super) is_named: bool,
}

/// All ways that edges of a forest stand for.
pub(super) struct Channels {
    pub(super) all: Vec<Channel>,
    /// By tree and edge.
    pub(super) of: Vec<Vec<u32>>,
}

impl Channels {
    /// The channels of trees, which run backwards where they are `reversed`. `None` as paths: all
    /// go by the routes of the fabric. `load` is what each link has to do: at first of the channels
    /// before, then of these, too.
    pub(super) fn new(
        network: &dyn Network,
        trees: &[Tree],
        reversed: bool,
        mut paths: Option<Paths>,
        load: &mut Vec<u64>,
    ) -> Channels {
        let mut cables: FxHashMap<(u32, u32), Vec<u32>> = FxHashMap::default();
        if paths.is_some() {
            for (number, _) in (0u32..).zip(network.links()) {
                let Some((from, to)) = network.ends(number) else {
                    continue;
                };
                cables.entry((from, to)).or_default().push(number);
                if network.leads_both_ways(number) {
                    cables.entry((to, from)).or_default().push(number);
                }
            }
        }
        load.resize(network.links().len(), 0);
        let mut numbers: FxHashMap<((u32, u32), Vec<u32>), u32> = FxHashMap::default();
        let mut channels = Channels {
            all: Vec::new(),
            of: Vec::with_capacity(trees.len()),
        };
        for tree in trees {
            let mut own = Vec::with_capacity(tree.edges.len());
            for &ends in &tree.edges {
                let (from, to) = if reversed { (ends.1, ends.0) } else { ends };
                let mut of_fabric = Vec::new();
                network.route(from, to, &mut of_fabric);
                let between = paths.as_mut().and_then(|paths| take(paths, ends));
                let route = between.and_then(|mut between| {
                    if reversed {
                        between.reverse();
                    }
                    let hops = std::iter::once(from).chain(between.iter().copied());
                    let hops = hops.zip(between.iter().copied().chain([to]));
                    hops.map(|hop| {
                        let after = |link: &&u32| {
                            let rate = network.links()[**link as usize].rate.bits_per_second();
                            (load[**link as usize] + 1) * (u64::MAX >> 24) / rate.max(1)
                        };
                        cables.get(&hop)?.iter().min_by_key(after).copied()
                    })
                    .collect::<Option<Vec<u32>>>()
                });
                let route = route.unwrap_or_else(|| of_fabric.clone());
                route.iter().for_each(|link| load[*link as usize] += 1);
                let is_named = route != of_fabric;
                let number = *numbers
                    .entry((ends, route))
                    .or_insert_with_key(|(ends, route)| {
                        channels.all.push(Channel {
                            ends: *ends,
                            route: route.clone(),
                            is_named,
                        });
                        channels.all.len() as u32 - 1
                    });
                own.push(number);
            }
            channels.of.push(own);
        }
        channels
    }
}

/// The switches on one unit of the paths between two ranks.
fn take(paths: &mut Paths, ends: (u32, u32)) -> Option<Vec<u32>> {
    let between = paths.get_mut(&ends)?.iter_mut();
    let path = between.rev().max_by_key(|path| path.1)?;
    path.1 = path.1.checked_sub(1)?;
    Some(path.0.clone())
}
