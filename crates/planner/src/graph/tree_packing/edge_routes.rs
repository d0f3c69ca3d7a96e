//! Links of the messages of a forest.
//!
//! An edge of a tree stands for one unit of the capacity between two ranks, and therefore for a
//! path over switches that edge splitting has joined. Each edge takes the path with the most
//! capacity left, and of several cables between two vertices the cable with the least load relative
//! to its rate.

use rustc_hash::FxHashMap;

use super::edge_splitting::Paths;
use super::packing::Tree;
use opticoll_fabric::network::Network;

/// A route from one rank to another rank.
pub(super) struct EdgeRoute {
    /// Ends of the edge in its tree.
    pub(super) ends: (u32, u32),
    /// Links of a message, in the order in which the message passes them.
    pub(super) route: Vec<u32>,
    /// True if the route is not the route of the fabric.
    pub(super) is_named: bool,
}

/// All routes of the edges of a forest.
pub(super) struct EdgeRoutes {
    /// Routes, without duplicates.
    pub(super) all: Vec<EdgeRoute>,
    /// Route of each edge, by tree and edge.
    pub(super) of: Vec<Vec<u32>>,
}

impl EdgeRoutes {
    /// Chooses the routes of trees; the messages run backwards if `reversed`. Without paths, all
    /// messages use the routes of the fabric. `load` is the number of messages of each link; the
    /// function adds the messages of these trees.
    pub(super) fn new(
        network: &dyn Network,
        trees: &[Tree],
        reversed: bool,
        mut paths: Option<Paths>,
        load: &mut Vec<u64>,
    ) -> EdgeRoutes {
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
        let mut edge_routes = EdgeRoutes {
            all: Vec::new(),
            of: Vec::with_capacity(trees.len()),
        };
        for tree in trees {
            let mut numbers_of_tree = Vec::with_capacity(tree.edges.len());
            for &ends in &tree.edges {
                let (from, to) = if reversed { (ends.1, ends.0) } else { ends };
                let mut fabric_route = Vec::new();
                network.route(from, to, &mut fabric_route);
                let switches = paths.as_mut().and_then(|paths| take(paths, ends));
                let route = switches.and_then(|mut switches| {
                    if reversed {
                        switches.reverse();
                    }
                    let hops = std::iter::once(from).chain(switches.iter().copied());
                    let hops = hops.zip(switches.iter().copied().chain([to]));
                    hops.map(|hop| {
                        let relative_load = |link: &&u32| {
                            let rate = network.links()[**link as usize].rate.bits_per_second();
                            (load[**link as usize] + 1) * (u64::MAX >> 24) / rate.max(1)
                        };
                        cables.get(&hop)?.iter().min_by_key(relative_load).copied()
                    })
                    .collect::<Option<Vec<u32>>>()
                });
                let route = route.unwrap_or_else(|| fabric_route.clone());
                route.iter().for_each(|link| load[*link as usize] += 1);
                let is_named = route != fabric_route;
                let number = *numbers
                    .entry((ends, route))
                    .or_insert_with_key(|(ends, route)| {
                        edge_routes.all.push(EdgeRoute {
                            ends: *ends,
                            route: route.clone(),
                            is_named,
                        });
                        edge_routes.all.len() as u32 - 1
                    });
                numbers_of_tree.push(number);
            }
            edge_routes.of.push(numbers_of_tree);
        }
        edge_routes
    }
}

/// Takes one unit of the paths between two ranks and returns its switches.
fn take(paths: &mut Paths, ends: (u32, u32)) -> Option<Vec<u32>> {
    let switches = paths.get_mut(&ends)?.iter_mut();
    let path = switches.rev().max_by_key(|path| path.1)?;
    path.1 = path.1.checked_sub(1)?;
    Some(path.0.clone())
}
