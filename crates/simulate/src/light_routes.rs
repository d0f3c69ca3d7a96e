//! Routes of light over the links of a graph, and changes of the channel along a route. The engines
//! that set up lightpaths on demand share this module.

use opticoll_base::graph;
use opticoll_fabric::network::Network;

/// Maximum number of shortest routes of a pair of vertices. A grid has more shortest routes than
/// anyone can try: two corners of a mesh of 8 x 8 have 3432.
const MAX_SHORTEST_ROUTES: usize = 64;

/// Links of a graph, by the vertices that they join.
pub(crate) struct ShortestRoutes {
    /// Links that leave each vertex, as (link, vertex at the other end), in ascending order.
    leaving: Vec<Vec<(u32, u32)>>,
    /// Vertices with a link to each vertex.
    entering: Vec<Vec<u32>>,
}

impl ShortestRoutes {
    /// Stores the links of a network with `vertices` ranks and switches.
    pub(crate) fn new(network: &dyn Network, vertices: u32) -> ShortestRoutes {
        let mut routes = ShortestRoutes {
            leaving: vec![Vec::new(); vertices as usize],
            entering: vec![Vec::new(); vertices as usize],
        };
        for (link, (from, to, both_ways)) in (0..).zip(network.wiring().ends()) {
            let ends = [(from, to), (to, from)];
            for &(from, to) in &ends[..1 + usize::from(both_ways)] {
                routes.leaving[from as usize].push((link, to));
                routes.entering[to as usize].push(from);
            }
        }
        routes
    }

    /// Returns the number of links from each vertex to `destination`, or
    /// [`UNREACHED`](graph::UNREACHED).
    pub(crate) fn distances_to(&self, destination: u32) -> Vec<u32> {
        let before = |vertex: u32| self.entering[vertex as usize].iter().copied();
        graph::distances(self.leaving.len(), destination, before)
    }

    /// Returns the network's route between two different ranks, then the other shortest routes.
    /// `distance` contains the distances to the destination. A route is a list of link indices.
    pub(crate) fn between(
        &self,
        network: &dyn Network,
        (source, destination): (u32, u32),
        distance: &[u32],
    ) -> Vec<Box<[u32]>> {
        let mut fixed = Vec::new();
        network.route(source, destination, &mut fixed);
        let others = self.shortest(source, distance).into_iter();
        let others = others.filter(|other| **other != *fixed);
        let mut routes = vec![fixed.clone().into_boxed_slice()];
        routes.extend(others);
        routes
    }

    /// Returns up to [`MAX_SHORTEST_ROUTES`] shortest routes, sorted by their link indices.
    fn shortest(&self, source: u32, distance: &[u32]) -> Vec<Box<[u32]>> {
        let mut routes = Vec::new();
        let mut partial_routes = vec![(source, Vec::new())];
        while let Some((vertex, route)) = partial_routes.pop() {
            let hops_left = distance[vertex as usize];
            if hops_left == 0 {
                routes.push(route.into_boxed_slice());
                if routes.len() == MAX_SHORTEST_ROUTES {
                    break;
                }
                continue;
            }
            for &(link, to) in self.leaving[vertex as usize].iter().rev() {
                if distance[to as usize].checked_add(1) == Some(hops_left) {
                    let mut longer = route.clone();
                    longer.push(link);
                    partial_routes.push((to, longer));
                }
            }
        }
        routes
    }
}

/// Returns one channel per link of a route, with as few changes of the channel as possible, or
/// `None` if no such channels exist. `is_free` returns whether a channel is free on the link with a
/// given index on the route. `can_change` returns whether a converter is free at the vertex before
/// this link. Among equals, the last link has the lowest possible channel. Each link before it has
/// the channel of the next link if possible, and otherwise the lowest possible channel.
///
/// The function computes for each link and channel the minimum number of changes up to this link.
/// It is the minimum for the same channel on the previous link or, if smaller, one more than the
/// minimum over all channels of the previous link.
pub(crate) fn fewest_changes(
    channels: u32,
    links: usize,
    is_free: impl Fn(usize, u32) -> bool,
    can_change: impl Fn(usize) -> bool,
) -> Option<Vec<u32>> {
    let mut fewest: Vec<Vec<Option<u32>>> = Vec::new();
    for hop in 0..links {
        let before = hop.checked_sub(1).map(|before| &fewest[before]);
        let changed = match before {
            None => Some(0),
            Some(before) if can_change(hop) => before.iter().flatten().min().map(|least| least + 1),
            Some(_) => None,
        };
        let reached = (0..channels).map(|channel| {
            let kept = before.and_then(|before| before[channel as usize]);
            let reached = kept.into_iter().chain(changed).min();
            reached.filter(|_| is_free(hop, channel))
        });
        let reached = reached.collect();
        fewest.push(reached);
    }
    let mut chosen = vec![0; links];
    let mut wanted: Option<(usize, u32)> = None;
    for (hop, reached) in fewest.iter().enumerate().rev() {
        let lowest = |count: Option<u32>| {
            let mut counts = (0..channels as usize)
                .filter_map(|channel| reached[channel].map(|count| (count, channel)));
            match count {
                None => counts.min(),
                Some(count) => counts.find(|(found, _)| *found == count),
            }
        };
        let (changes, channel) = match wanted {
            None => lowest(None)?,
            Some((same, changes)) if reached[same] == Some(changes) => (changes, same),
            Some((_, changes)) => lowest(changes.checked_sub(1))?,
        };
        chosen[hop] = channel as u32;
        wanted = Some((channel, changes));
    }
    Some(chosen)
}
