//! Routes for the transfers of a step, chosen by the loads of links.
//!
//! The load of a link is the number of routes of the step that cross the link. A transfer takes a
//! path with the fewest links. Among these paths it takes the one whose links have the smallest sum
//! of loads: a transfer on a link of load l raises the sum of the squares of all loads by 2 l + 1.
//! A small step is then routed again, transfer by transfer, with costs that rise with a higher
//! power of the load, as long as the greatest load falls.

use std::ops::Range;

use opticoll_base::interrupt;
use opticoll_fabric::network::Network;

/// Routes of transfers, one after the other.
#[derive(Debug, Clone, Default)]
pub(super) struct Routes {
    links: Vec<u32>,
    ends: Vec<u32>,
}

impl Routes {
    /// Returns the links of the route with index `index`.
    pub(super) fn get(&self, index: usize) -> &[u32] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.links[start as usize..self.ends[index] as usize]
    }

    pub(super) fn push(&mut self, route: &[u32]) {
        self.links.extend_from_slice(route);
        self.ends.push(self.links.len() as u32);
    }

    /// Returns the maximum number of routes over one link.
    pub(super) fn greatest_load(&self, links: usize) -> u32 {
        let mut loads = vec![0; links];
        self.links
            .iter()
            .for_each(|&link| loads[link as usize] += 1);
        loads.into_iter().max().unwrap_or(0)
    }
}

/// Light tree, or a lightpath if the tree has one transfer.
pub(super) struct Tree {
    /// Transfers of the tree, as indices in the step.
    pub(super) transfers: Vec<usize>,
    pub(super) destinations: Vec<u32>,
    /// All links of the routes, each once.
    pub(super) links: Vec<u32>,
}

/// Links at each vertex, and the distances to each destination that was asked for.
pub(super) struct Router {
    /// Links that leave each vertex with the vertex at their other end, and links that enter it.
    leaving: Adjacency,
    entering: Adjacency,
    /// Number of links from each vertex to a destination, indexed by destination; empty for
    /// destinations that were not asked for.
    distances: Vec<Box<[u16]>>,
    load: Vec<u64>,
    /// Best known cost of each vertex and the link by which the path enters it, valid if the mark
    /// of the vertex equals `mark`.
    reached: Vec<(u64, u32)>,
    marks: Vec<u32>,
    mark: u32,
}

/// Links at the vertices of a graph.
struct Adjacency {
    /// Index in `links` at which the links of each vertex start.
    starts: Vec<u32>,
    /// Link, and the vertex at its other end.
    links: Vec<(u32, u32)>,
}

impl Adjacency {
    /// Sorts links, given as (vertex, (link, other vertex)), by their vertices.
    fn new(vertices: usize, at: impl Iterator<Item = (u32, (u32, u32))>) -> Adjacency {
        let mut links: Vec<(u32, (u32, u32))> = at.collect();
        links.sort_unstable();
        let mut starts = vec![0; vertices + 1];
        for (vertex, _) in &links {
            starts[*vertex as usize + 1] += 1;
        }
        for vertex in 0..vertices {
            starts[vertex + 1] += starts[vertex];
        }
        let links = links.into_iter().map(|(_, link)| link).collect();
        Adjacency { starts, links }
    }

    fn range(&self, vertex: u32) -> Range<usize> {
        self.starts[vertex as usize] as usize..self.starts[vertex as usize + 1] as usize
    }

    fn at(&self, vertex: u32) -> &[(u32, u32)] {
        &self.links[self.range(vertex)]
    }
}

/// Distance of a vertex from which no path of fewer links leads to the destination.
const UNREACHABLE: u16 = u16::MAX;

/// Maximum number of distances that are stored, of two bytes each.
const MAX_STORED_DISTANCES: usize = 1 << 27;

/// Estimate of the number of links that the search for a route looks at, per link of the route.
const LOOKS_PER_LINK: usize = 8;

/// Exponents of the loads in the costs of links, in the order of passes.
const EXPONENTS: [u32; 6] = [2, 4, 6, 4, 8, 6];

/// Number of levels of loads from 0 to the greatest load that the costs of links distinguish. The
/// greatest cost is about (2 * 64)^8 = 2^56.
const LEVELS: u64 = 64;

impl Router {
    pub(super) fn new(network: &dyn Network) -> Router {
        let ends = || (0..).zip(network.wiring().ends());
        let last = ends().map(|(_, (from, to, _))| from.max(to) + 1).max();
        let vertices = last.unwrap_or(0).max(network.ranks()) as usize;
        let leaving = ends().map(|(link, (from, to, _))| (from, (link, to)));
        let entering = ends().map(|(link, (from, to, _))| (to, (link, from)));
        Router {
            leaving: Adjacency::new(vertices, leaving),
            entering: Adjacency::new(vertices, entering),
            distances: vec![Box::default(); network.ranks() as usize],
            load: vec![0; network.links().len()],
            reached: vec![(0, 0); vertices],
            marks: vec![0; vertices],
            mark: 0,
        }
    }

    /// Returns the number of vertices.
    pub(super) fn vertices(&self) -> usize {
        self.reached.len()
    }

    /// Returns a route for each pair of a source and a destination. A slot offers `capacity`
    /// channels on each link. `budget` is the number of links that passes after the first may still
    /// look at. Fails with the index of a pair that no path joins.
    pub(super) fn routes(
        &mut self,
        network: &dyn Network,
        ends: &[(u32, u32)],
        capacity: u32,
        budget: &mut u64,
    ) -> Result<Routes, usize> {
        let mut fewest_links = 0;
        for (index, &(source, destination)) in ends.iter().enumerate() {
            self.measure(destination);
            match self.distances[destination as usize][source as usize] {
                UNREACHABLE => return Err(index),
                distance => fewest_links += usize::from(distance),
            }
        }
        let links = self.load.len();
        let slots = |load: usize| load.div_ceil(capacity.max(1) as usize);
        let fewest_slots = slots(fewest_links.div_ceil(links.max(1)));
        // The fabric's routes: dimension by dimension on tori and meshes.
        let mut own = Routes::default();
        let mut route = Vec::new();
        for &(source, destination) in ends {
            interrupt::check();
            route.clear();
            network.route(source, destination, &mut route);
            own.push(&route);
        }
        let own_load = match own.links.len() == fewest_links {
            true => own.greatest_load(links) as usize,
            false => usize::MAX,
        };
        if own_load != usize::MAX && slots(own_load) <= fewest_slots {
            return Ok(own);
        }
        self.load.fill(0);
        let mut routes = Routes::default();
        for &(source, destination) in ends {
            interrupt::check();
            self.find(source, destination, |load| load, &mut route);
            route.iter().for_each(|&link| self.load[link as usize] += 1);
            routes.push(&route);
        }
        let mut least = routes.greatest_load(links) as usize;
        for exponent in EXPONENTS {
            let work = (fewest_links * LOOKS_PER_LINK) as u64;
            if slots(least) <= fewest_slots || *budget < work {
                break;
            }
            *budget -= work;
            let rerouted = self.reroute(ends, &routes, least as u64, exponent);
            let load = rerouted.greatest_load(links) as usize;
            if load <= least {
                (routes, least) = (rerouted, load);
            } else {
                self.load.fill(0);
                let crossed = routes.links.iter();
                crossed.for_each(|&link| self.load[link as usize] += 1);
            }
        }
        Ok(if own_load < least { own } else { routes })
    }

    /// Returns a route for each pair of a source and a destination, and light trees: transfers of
    /// the same chunks from one rank over the same first link. `chunks` has the first chunk and the
    /// number of chunks of each transfer.
    pub(super) fn trees(
        &mut self,
        ends: &[(u32, u32)],
        chunks: &[(u32, u32)],
    ) -> Result<(Routes, Vec<Tree>), usize> {
        self.load.fill(0);
        let mut routes: Vec<Vec<u32>> = vec![Vec::new(); ends.len()];
        let mut trees = Vec::new();
        let sent = |transfer: &usize| (ends[*transfer].0, chunks[*transfer]);
        let mut order: Vec<usize> = (0..ends.len()).collect();
        order.sort_by_key(sent);
        for same in order.chunk_by(|one, other| sent(one) == sent(other)) {
            interrupt::check();
            for &transfer in same {
                let (source, destination) = ends[transfer];
                if !self.find(source, destination, |load| load, &mut routes[transfer]) {
                    return Err(transfer);
                }
            }
            let mut same = same.to_vec();
            let first_link = |transfer: &usize| routes[*transfer].first().copied();
            same.sort_by_key(first_link);
            for members in same.chunk_by(|one, other| first_link(one) == first_link(other)) {
                let crossed = members.iter().flat_map(|&transfer| &routes[transfer]);
                let mut links: Vec<u32> = crossed.copied().collect();
                links.sort_unstable();
                links.dedup();
                links.iter().for_each(|&link| self.load[link as usize] += 1);
                let destinations = members.iter().map(|&transfer| ends[transfer].1);
                let mut destinations: Vec<u32> = destinations.collect();
                destinations.sort_unstable();
                destinations.dedup();
                trees.push(Tree {
                    transfers: members.to_vec(),
                    destinations,
                    links,
                });
            }
        }
        let mut all = Routes::default();
        routes.iter().for_each(|route| all.push(route));
        Ok((all, trees))
    }

    /// Routes all transfers again, one after the other. The cost of a link is a power of its load.
    fn reroute(
        &mut self,
        ends: &[(u32, u32)],
        routes: &Routes,
        greatest_load: u64,
        exponent: u32,
    ) -> Routes {
        let (mut rerouted, mut route) = (Routes::default(), Vec::new());
        for (index, &(source, destination)) in ends.iter().enumerate() {
            interrupt::check();
            let crossed = routes.get(index).iter();
            crossed.for_each(|&link| self.load[link as usize] -= 1);
            let cost = |load: u64| (load * LEVELS / greatest_load.max(1) + 1).pow(exponent);
            self.find(source, destination, cost, &mut route);
            route.iter().for_each(|&link| self.load[link as usize] += 1);
            rerouted.push(&route);
        }
        rerouted
    }

    /// Returns up to `most` paths from `source` to `destination` that have at most one link more
    /// than the shortest path, the shorter paths first.
    pub(super) fn alternatives(&mut self, ends: (u32, u32), most: usize) -> Vec<Box<[u32]>> {
        let (source, destination) = ends;
        self.measure(destination);
        let shortest = self.distances[destination as usize][source as usize];
        let mut paths = Vec::new();
        for length in shortest..=shortest.saturating_add(1) {
            let mut path = (vec![source], Vec::new());
            self.extend(&mut path, destination, length, most, &mut paths);
        }
        paths
    }

    /// Adds all paths to `paths` that continue `path`, the vertices and links so far, by exactly
    /// `links` links to the destination and visit no vertex twice.
    fn extend(
        &self,
        path: &mut (Vec<u32>, Vec<u32>),
        destination: u32,
        links: u16,
        most: usize,
        paths: &mut Vec<Box<[u32]>>,
    ) {
        let last = path.0[path.0.len() - 1];
        if paths.len() >= most {
            return;
        }
        if links == 0 {
            paths.push(path.1.as_slice().into());
            return;
        }
        let distances = &self.distances[destination as usize];
        for &(link, to) in self.leaving.at(last) {
            let is_near = distances[to as usize] < links;
            let ends_here = (to == destination) == (links == 1);
            if is_near && ends_here && !path.0.contains(&to) {
                path.0.push(to);
                path.1.push(link);
                self.extend(path, destination, links - 1, most, paths);
                path.0.pop();
                path.1.pop();
            }
        }
    }

    /// Computes the distances to a destination.
    fn measure(&mut self, destination: u32) {
        if !self.distances[destination as usize].is_empty() {
            return;
        }
        let stored = self.distances.iter().map(|distances| distances.len());
        if stored.sum::<usize>() > MAX_STORED_DISTANCES {
            self.distances.fill(Box::default());
        }
        let mut distances = vec![UNREACHABLE; self.reached.len()];
        distances[destination as usize] = 0;
        let mut queue = vec![destination];
        let mut next = 0;
        while let Some(&vertex) = queue.get(next) {
            next += 1;
            let distance = distances[vertex as usize] + 1;
            if distance == UNREACHABLE {
                break;
            }
            for &(_, from) in self.entering.at(vertex) {
                if distances[from as usize] == UNREACHABLE {
                    distances[from as usize] = distance;
                    queue.push(from);
                }
            }
        }
        self.distances[destination as usize] = distances.into();
    }

    /// Stores the path with the fewest links in `route`; among such paths, the path with the
    /// smallest sum of costs, where `cost` returns the cost of a link with a load. Among paths of
    /// equal cost, the link that enters a vertex has the lowest index, so that paths from one
    /// source form a tree while the loads stay the same. Returns whether there is a path.
    fn find(
        &mut self,
        source: u32,
        destination: u32,
        cost: impl Fn(u64) -> u64,
        route: &mut Vec<u32>,
    ) -> bool {
        self.measure(destination);
        let distances = &self.distances[destination as usize];
        route.clear();
        if distances[source as usize] == UNREACHABLE {
            return false;
        }
        // All vertices on shortest paths, layer by layer from the source.
        self.mark += 1;
        self.marks[source as usize] = self.mark;
        self.reached[source as usize] = (0, u32::MAX);
        let (mut layer, mut next) = (vec![source], Vec::new());
        for left in (0..distances[source as usize]).rev() {
            for &vertex in &layer {
                let (so_far, _) = self.reached[vertex as usize];
                for &(link, to) in self.leaving.at(vertex) {
                    let to = to as usize;
                    if distances[to] != left {
                        continue;
                    }
                    let sum = so_far.saturating_add(cost(self.load[link as usize]));
                    if self.marks[to] != self.mark {
                        self.marks[to] = self.mark;
                        next.push(to as u32);
                    } else if self.reached[to] <= (sum, link) {
                        continue;
                    }
                    self.reached[to] = (sum, link);
                }
            }
            std::mem::swap(&mut layer, &mut next);
            next.clear();
        }
        // The links that enter the vertices of the path, from the destination back.
        let mut vertex = destination;
        while vertex != source {
            let (_, link) = self.reached[vertex as usize];
            route.push(link);
            let entering = self.entering.at(vertex).iter();
            let mut before = entering
                .filter(|(entry, _)| *entry == link)
                .map(|(_, from)| *from);
            vertex = before.next_back().unwrap_or(source);
        }
        route.reverse();
        true
    }
}
