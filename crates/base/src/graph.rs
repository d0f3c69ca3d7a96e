//! Breadth-first search, shortest paths and topological order of graphs whose vertices are
//! numbered from 0.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};

use crate::interrupt;

/// Distance of a vertex that no path reaches.
pub const UNREACHED: u32 = u32::MAX;

/// Visits all vertices that a path from `first` reaches, in breadth-first order. `neighbours`
/// yields the pairs (edge, neighbour) of a vertex. Calls `reach(from, edge, to)` once for each
/// visited vertex `to` except `first`.
fn search<E, I: IntoIterator<Item = (E, u32)>>(
    vertices: usize,
    first: u32,
    neighbours: impl Fn(u32) -> I,
    mut reach: impl FnMut(u32, E, u32),
) {
    let mut reached = vec![false; vertices];
    reached[first as usize] = true;
    let mut queue = VecDeque::from([first]);
    while let Some(vertex) = queue.pop_front() {
        interrupt::check();
        for (edge, neighbour) in neighbours(vertex) {
            if !std::mem::replace(&mut reached[neighbour as usize], true) {
                reach(vertex, edge, neighbour);
                queue.push_back(neighbour);
            }
        }
    }
}

/// Returns the minimum number of edges from `first` to each vertex, indexed by vertex. A vertex
/// that no path reaches has the distance [`UNREACHED`].
pub fn distances<I: IntoIterator<Item = u32>>(
    vertices: usize,
    first: u32,
    neighbours: impl Fn(u32) -> I,
) -> Vec<u32> {
    let mut distance = vec![UNREACHED; vertices];
    distance[first as usize] = 0;
    let neighbours = |vertex| neighbours(vertex).into_iter().map(|to| ((), to));
    search(vertices, first, neighbours, |from, (), to| {
        distance[to as usize] = distance[from as usize] + 1;
    });
    distance
}

/// Returns, indexed by vertex, the vertex before this vertex on the path from `first` that the
/// breadth-first search finds first. `first` is its own predecessor, and a vertex that no path
/// reaches has the predecessor [`UNREACHED`].
pub fn predecessors<I: IntoIterator<Item = u32>>(
    vertices: usize,
    first: u32,
    neighbours: impl Fn(u32) -> I,
) -> Vec<u32> {
    let mut previous = vec![UNREACHED; vertices];
    previous[first as usize] = first;
    let neighbours = |vertex| neighbours(vertex).into_iter().map(|to| ((), to));
    search(vertices, first, neighbours, |from, (), to| {
        previous[to as usize] = from;
    });
    previous
}

/// Returns, indexed by vertex, the least sum of lengths on a path from `first`, and the last edge
/// of such a path (Dijkstra, A Note on Two Problems in Connexion with Graphs, 1959). `away` has the
/// edges from each vertex, as (vertex at the end, length, edge). A vertex that no path reaches has
/// the sum `u64::MAX` and no edge.
///
/// ```
/// use opticoll_base::graph::shortest_lengths;
/// // Edge 0 leads from vertex 0 to vertex 2; edges 1 and 2 lead there over vertex 1.
/// let away = [vec![(2, 9, 0), (1, 3, 1)], vec![(2, 4, 2)], vec![], vec![]];
/// let reached = [(0, None), (3, Some(1)), (7, Some(2)), (u64::MAX, None)];
/// assert_eq!(shortest_lengths(&away, 0), reached);
/// ```
pub fn shortest_lengths(away: &[Vec<(u32, u64, u32)>], first: u32) -> Vec<(u64, Option<u32>)> {
    let mut reached = vec![(u64::MAX, None); away.len()];
    reached[first as usize].0 = 0;
    let mut open = BinaryHeap::from([Reverse((0, first))]);
    while let Some(Reverse((length, vertex))) = open.pop() {
        interrupt::check();
        if length > reached[vertex as usize].0 {
            continue;
        }
        for &(to, further, edge) in &away[vertex as usize] {
            let sum = length.saturating_add(further);
            if sum < reached[to as usize].0 {
                reached[to as usize] = (sum, Some(edge));
                open.push(Reverse((sum, to)));
            }
        }
    }
    reached
}

/// Returns a shortest path from `first` to `last`, or `None` if no path exists. The path is a list
/// of pairs (edge, vertex at the end of the edge). If several paths are shortest, returns the path
/// that the breadth-first search finds first.
pub fn shortest_path<E, I: IntoIterator<Item = (E, u32)>>(
    vertices: usize,
    (first, last): (u32, u32),
    neighbours: impl Fn(u32) -> I,
) -> Option<Vec<(E, u32)>> {
    let mut before: Vec<Option<(u32, E)>> = (0..vertices).map(|_| None).collect();
    search(vertices, first, neighbours, |from, edge, to| {
        before[to as usize] = Some((from, edge));
    });
    let (mut path, mut to) = (Vec::new(), last);
    while to != first {
        let (from, edge) = before[to as usize].take()?;
        path.push((edge, to));
        to = from;
    }
    path.reverse();
    Some(path)
}

/// Returns up to `count` paths from `first` to `last` that visit no vertex twice, with the fewest
/// links first, and equal lengths in the order of their links. A path is a list of indices into
/// `links`, whose elements are the start and the end of a link. Several links may join two
/// vertices.
///
/// A path deviates from an earlier path at one vertex; the shortest deviation at each vertex is a
/// candidate for the next path (Yen, Finding the K Shortest Loopless Paths in a Network, 1971).
///
/// ```
/// use opticoll_base::graph::shortest_paths;
/// // A square with one diagonal; links in one direction only.
/// let links = [(0, 1), (1, 2), (0, 3), (3, 2), (0, 2)];
/// assert_eq!(shortest_paths(4, &links, (0, 2), 5), [vec![4], vec![0, 1], vec![2, 3]]);
/// ```
pub fn shortest_paths(
    vertices: usize,
    links: &[(u32, u32)],
    (first, last): (u32, u32),
    count: usize,
) -> Vec<Vec<u32>> {
    let (mut leaving, mut entering) = (vec![Vec::new(); vertices], vec![Vec::new(); vertices]);
    for (link, &(from, to)) in (0..).zip(links) {
        leaving[from as usize].push(link);
        entering[to as usize].push(from);
    }
    let mut visited = vec![false; vertices];
    // Returns the best continuation of a path at `vertex` over vertices that are not visited.
    let rest = |vertex: u32, visited: &[bool], excluded: &BTreeSet<u32>| {
        let before = |to: u32| {
            let from = entering[to as usize].iter().copied();
            from.filter(|from| *from != vertex && !visited[*from as usize])
        };
        let distance = distances(vertices, last, before);
        let end = |link: &u32| links[*link as usize].1;
        let mut path = Vec::new();
        let mut at = vertex;
        while at != last {
            let next = leaving[at as usize].iter();
            let next = next.filter(|link| !path.is_empty() || !excluded.contains(link));
            let next = next.filter(|link| end(link) != vertex && !visited[end(link) as usize]);
            let link = *next.min_by_key(|link| (distance[end(link) as usize], **link))?;
            if distance[end(&link) as usize] == UNREACHED {
                return None;
            }
            path.push(link);
            at = end(&link);
        }
        Some(path)
    };
    let mut paths: Vec<Vec<u32>> = Vec::new();
    let mut candidates: BTreeSet<(usize, Vec<u32>)> = BTreeSet::new();
    if first != last {
        let path = rest(first, &visited, &BTreeSet::new());
        candidates.extend(path.map(|path| (path.len(), path)));
    }
    while paths.len() < count {
        let Some((_, path)) = candidates.pop_first() else {
            break;
        };
        visited.fill(false);
        for place in 0..path.len() {
            interrupt::check();
            let root = &path[..place];
            let same_root = paths.iter().chain([&path]);
            let same_root = same_root.filter(|other| other.starts_with(root));
            let excluded = same_root.filter_map(|other| other.get(place).copied());
            let at = links[path[place] as usize].0;
            if let Some(rest) = rest(at, &visited, &excluded.collect()) {
                candidates.insert((place + rest.len(), [root, &rest].concat()));
            }
            visited[at as usize] = true;
        }
        paths.push(path);
    }
    paths
}

/// Returns the vertices in topological order: each vertex follows all vertices in
/// `predecessors(vertex)`. If several vertices may come next, the lowest number comes next.
/// Vertices on cycles, and vertices that depend on them, are omitted.
pub fn topological_order<I: IntoIterator<Item = u32>>(
    vertices: usize,
    predecessors: impl Fn(u32) -> I,
) -> Vec<u32> {
    let mut waits = vec![0usize; vertices];
    let mut dependents: Vec<Vec<u32>> = vec![Vec::new(); vertices];
    for vertex in 0..vertices as u32 {
        for earlier in predecessors(vertex) {
            waits[vertex as usize] += 1;
            dependents[earlier as usize].push(vertex);
        }
    }
    let free = (0..vertices as u32).filter(|&vertex| waits[vertex as usize] == 0);
    let mut free: BinaryHeap<Reverse<u32>> = free.map(Reverse).collect();
    let mut order = Vec::with_capacity(vertices);
    while let Some(Reverse(vertex)) = free.pop() {
        interrupt::check();
        order.push(vertex);
        for &dependent in &dependents[vertex as usize] {
            waits[dependent as usize] -= 1;
            if waits[dependent as usize] == 0 {
                free.push(Reverse(dependent));
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::hash;

    /// Appends all continuations of `path` from `at` to `last` that visit no vertex twice.
    fn continue_path(
        links: &[(u32, u32)],
        (at, last): (u32, u32),
        (visited, path): (&mut Vec<u32>, &mut Vec<u32>),
        paths: &mut Vec<Vec<u32>>,
    ) {
        if at == last {
            paths.push(path.clone());
            return;
        }
        visited.push(at);
        for (number, &(from, to)) in links.iter().enumerate() {
            if from == at && !visited.contains(&to) {
                path.push(number as u32);
                continue_path(links, (to, last), (visited, path), paths);
                path.pop();
            }
        }
        visited.pop();
    }

    #[test]
    fn shortest_paths_are_the_first_of_all_simple_paths() {
        let mut compared = 0;
        for seed in 0..400u64 {
            let draw = |number: u64, below: u64| (hash(hash(seed) ^ number) % below) as u32;
            let vertices = 3 + draw(0, 5);
            let count = 2 + draw(1, 3 * u64::from(vertices));
            let links = (0..u64::from(count)).map(|link| {
                let from = draw(2 + 2 * link, vertices.into());
                let other = 1 + draw(3 + 2 * link, u64::from(vertices) - 1);
                (from, (from + other) % vertices)
            });
            let links: Vec<(u32, u32)> = links.collect();
            let mut all = Vec::new();
            let state = (&mut Vec::new(), &mut Vec::new());
            continue_path(&links, (0, vertices - 1), state, &mut all);
            all.sort_by_key(|path| (path.len(), path.clone()));
            compared += all.len();
            for count in [1, 2, 5, all.len(), all.len() + 1] {
                let first = all.iter().take(count).cloned().collect::<Vec<_>>();
                let paths = shortest_paths(vertices as usize, &links, (0, vertices - 1), count);
                assert_eq!(
                    paths,
                    first,
                    "seed {seed}, {count} of {}: {links:?}",
                    all.len()
                );
            }
        }
        assert!(compared > 1000, "{compared} paths");
    }
}
