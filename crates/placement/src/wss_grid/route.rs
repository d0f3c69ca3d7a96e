//! Routes through a switch grid: the transceivers and ranks that carry a transfer.
//!
//! Ranks of one row or one column are one hop apart, through the switch that they share. Other
//! ranks are two hops apart, over either of the two corners that complete their rectangle: along
//! the row first, or along the column first. If dead transceivers or unallocated corners rule out
//! these routes, a breadth-first search finds a shortest route over working transceivers; among
//! equally short routes, the one over the lowest ranks.

use opticoll_base::graph;
use opticoll_fabric::fabric::Plane;
use opticoll_fabric::family::wss_grid::WssGrid;

/// Hop: the plane of the transceiver that sends, and the rank that receives in the same plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leg {
    /// Plane of the light.
    pub(crate) plane: Plane,
    /// Rank that receives the light.
    pub(crate) to: u32,
}

/// Returns the shortest routes between two ranks: the direct one, one over each working corner, or
/// one around dead parts; none if no route exists.
pub(crate) fn shortest_paths(grid: &WssGrid, source: u32, destination: u32) -> Vec<Vec<Leg>> {
    let works = |rank, plane| grid.works(rank, plane);
    if let Some(plane) = grid.shared_plane(source, destination)
        && works(source, plane)
        && works(destination, plane)
    {
        let to = destination;
        return vec![vec![Leg { plane, to }]];
    }
    let (row, column) = grid.place(source);
    let (last_row, last_column) = grid.place(destination);
    let mut paths = Vec::new();
    if row != last_row && column != last_column {
        for (first, corner) in [
            (Plane::Row, grid.rank_at(row, last_column)),
            (Plane::Column, grid.rank_at(last_row, column)),
        ] {
            let second = first.other();
            let Some(to) = corner.filter(|&corner| works(corner, first) && works(corner, second))
            else {
                continue;
            };
            if works(source, first) && works(destination, second) {
                let last = Leg {
                    plane: second,
                    to: destination,
                };
                paths.push(vec![Leg { plane: first, to }, last]);
            }
        }
    }
    if paths.is_empty() {
        paths.extend(around(grid, source, destination));
    }
    paths
}

/// Returns a route with the fewest hops over working transceivers.
fn around(grid: &WssGrid, source: u32, destination: u32) -> Option<Vec<Leg>> {
    let neighbours_of = |rank: u32| {
        let (row, column) = grid.place(rank);
        let planes = Plane::BOTH
            .into_iter()
            .filter(move |&plane| grid.works(rank, plane));
        planes.flat_map(move |plane| {
            let neighbours = (0..grid.ports_in_use(plane)).filter_map(move |port| match plane {
                Plane::Row => grid.rank_at(row, port),
                Plane::Column => grid.rank_at(port, column),
            });
            let neighbours = neighbours.filter(move |&neighbour| grid.works(neighbour, plane));
            neighbours.map(move |neighbour| (plane, neighbour))
        })
    };
    let path = graph::shortest_path(grid.ranks() as usize, (source, destination), neighbours_of)?;
    Some(
        path.into_iter()
            .map(|(plane, to)| Leg { plane, to })
            .collect(),
    )
}
