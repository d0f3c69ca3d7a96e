//! Links of the messages of a forest.
//!
//! An edge of a tree represents one unit of the capacity between two ranks, and therefore a path
//! over the switches that edge splitting has removed. Each edge uses the path with the most
//! remaining capacity. If several cables connect two vertices of the path, the cable with the
//! lowest load relative to its rate is used.

use rustc_hash::FxHashMap;

use super::edge_splitting::Paths;
use super::packing::Tree;
use opticoll_fabric::network::Network;

pub(super) struct EdgeRoute {
    /// Ranks that the edge connects, the parent first.
    pub(super) ends: (u32, u32),
    /// Links of the route, in the order in which a message crosses them.
    pub(super) route: Vec<u32>,
    /// True if the route differs from the default route of the fabric.
    pub(super) is_named: bool,
}

pub(super) struct EdgeRoutes {
    /// Routes without duplicates.
    pub(super) all: Vec<EdgeRoute>,
    /// Index in `all` of the route of each edge; indexed by tree and then by edge.
    pub(super) of: Vec<Vec<u32>>,
}

impl EdgeRoutes {
    /// Assigns routes to the edges of trees. If `reversed`, messages travel against the direction
    /// of the edges. If `paths` is `None`, all messages use the default routes of the fabric.
    /// `load` is the number of messages on each link; the messages of these trees are added.
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
                let switches = paths.as_mut().and_then(|paths| use_path(paths, ends));
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

/// Uses one unit of the paths between two ranks, and returns the switches on this path.
fn use_path(paths: &mut Paths, ends: (u32, u32)) -> Option<Vec<u32>> {
    let switches = paths.get_mut(&ends)?.iter_mut();
    let path = switches.rev().max_by_key(|path| path.1)?;
    path.1 = path.1.checked_sub(1)?;
    Some(path.0.clone())
}
