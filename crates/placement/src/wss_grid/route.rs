//! Routes through a switch grid: the ranks and transceivers over which a transfer travels.
//!
//! Two ranks of the same row or column are one hop apart, through the switch of the row or column.
//! Other ranks are two hops apart, over one of the two corners of the rectangle that the ranks
//! span: a message crosses either the row or the column first. If dead transceivers or missing
//! corners exclude these routes, a breadth-first search finds a shortest route over working
//! transceivers. If several routes are equally short, the search returns the route over the lowest
//! ranks.

use opticoll_base::graph;
use opticoll_fabric::fabric::Plane;
use opticoll_fabric::family::wss_grid::WssGrid;

/// Hop of a route: the rank that receives, and the plane (row or column) of transmitter and
/// receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Leg {
    pub(crate) plane: Plane,
    pub(crate) to: u32,
}

/// Returns the shortest routes between two ranks: the direct route, the routes over working
/// corners, or one route around dead transceivers. Returns no routes if the ranks are not
/// connected.
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
        paths.extend(route_around_dead_parts(grid, source, destination));
    }
    paths
}

fn route_around_dead_parts(grid: &WssGrid, source: u32, destination: u32) -> Option<Vec<Leg>> {
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
