//! Searches of graphs whose vertices are numbers.

use std::collections::VecDeque;

use crate::interrupt;

/// The distance of a vertex that is not reached.
pub const UNREACHED: u32 = u32::MAX;

/// The least number of edges from a vertex to each, by breadth-first search.
pub fn distances<I: IntoIterator<Item = u32>>(
    vertices: usize,
    first: u32,
    beside: impl Fn(u32) -> I,
) -> Vec<u32> {
    let mut distance = vec![UNREACHED; vertices];
    distance[first as usize] = 0;
    let mut waiting = VecDeque::from([first]);
    while let Some(vertex) = waiting.pop_front() {
        interrupt::check();
        for other in beside(vertex) {
            if distance[other as usize] == UNREACHED {
                distance[other as usize] = distance[vertex as usize] + 1;
                waiting.push_back(other);
            }
        }
    }
    distance
}
