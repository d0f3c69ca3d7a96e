//! Breadth-first search and topological order of graphs whose vertices are numbered from 0.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

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
    let neighbours = |vertex| {
        neighbours(vertex)
            .into_iter()
            .map(|neighbour| ((), neighbour))
    };
    search(vertices, first, neighbours, |from, (), to| {
        distance[to as usize] = distance[from as usize] + 1;
    });
    distance
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
