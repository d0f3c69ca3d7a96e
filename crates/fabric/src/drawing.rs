//! Positions of ranks and switches in pictures of electrical fabrics.
//!
//! Families compose pictures from the arrangements below. If only the links of a fabric are known,
//! [`stress_layout`] places vertices that are many links apart at a great distance. Coordinates are
//! used in pictures only; no other numbers of a fabric are floating-point numbers.
//!
//! ```
//! use opticoll_fabric::fabric::Fabric;
//! let torus = Fabric::parse("torus:dims=2x2")?;
//! let drawing = torus.network().expect("a torus has links").drawing();
//! assert_eq!(drawing.places, [[0.0, 0.0], [1.0, 0.0], [0.0, -1.0], [1.0, -1.0]]);
//! # Ok::<(), opticoll_fabric::fabric::FabricError>(())
//! ```

use std::f64::consts::{FRAC_PI_2, PI, TAU};

use opticoll_base::{graph, interrupt};

/// Point (x, y) of a picture. x increases to the right, y upwards. Neighbours are about 1 apart.
pub type Point = [f64; 2];

/// Layout of a fabric in a picture.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Drawing {
    /// Positions of all vertices, ranks first. Empty for more than [`MAX_LAYOUT_VERTICES`]
    /// vertices.
    pub places: Vec<Point>,
    /// Indices of the links that wrap around the fabric. The picture shows such a link as two
    /// halves at opposite edges.
    pub around: Vec<u32>,
}

impl Drawing {
    /// Creates a layout in which no link wraps around.
    pub fn new(places: Vec<Point>) -> Drawing {
        let around = Vec::new();
        Drawing { places, around }
    }
}

/// Returns `count` points on a circle, clockwise. Point 0 is at the top.
pub fn circle(count: u32) -> Vec<Point> {
    let points = f64::from(count.max(1));
    // Neighbours are 1 apart. Circles of few points have radius 1 instead.
    let radius = (points / TAU).max(1.0);
    (0..count)
        .map(|number| polar(radius, FRAC_PI_2 - TAU * f64::from(number) / points))
        .collect()
}

/// Returns the points of a grid with up to three dimensions. `sizes[i]` is the number of points in
/// dimension i. Dimension 0 leads to the right, dimension 1 downwards, dimension 2 into the paper.
pub fn grid(sizes: &[u32]) -> Vec<Point> {
    let size = |dimension: usize| sizes.get(dimension).copied().unwrap_or(1);
    let apart = if size(2) == 1 { 1.0 } else { 1.6 };
    let mut places = Vec::new();
    for z in (0..size(2)).map(f64::from) {
        for y in (0..size(1)).map(f64::from) {
            for x in (0..size(0)).map(f64::from) {
                places.push([x * apart + z * 0.36, -y * apart + z * 0.28]);
            }
        }
    }
    places
}

/// Returns points in horizontal levels, from bottom to top. Level i has `counts[i]` points.
pub fn levels(counts: &[u32]) -> Vec<Point> {
    let widest = counts.iter().copied().max().unwrap_or(1);
    let width = (0.34 * f64::from(widest)).max(4.0);
    let height = 0.42 * width / (counts.len() as f64 - 1.0);
    let level = |(number, &count): (usize, &u32)| {
        (0..count).map(move |place| {
            let x = (f64::from(place) + 0.5) / f64::from(count) * width;
            [x, number as f64 * height]
        })
    };
    counts.iter().enumerate().flat_map(level).collect()
}

/// Returns the positions of all ranks, followed by the positions of all routers. The groups form a
/// circle, and the `routers` routers of each group form a smaller circle. The `terminals` ranks of
/// a router are next to the router, outside the smaller circle.
pub fn groups(groups: u32, routers: u32, terminals: u32) -> Vec<Point> {
    let inner = (0.16 * f64::from(routers) * f64::from(terminals.min(4)) / 2.0).max(0.6);
    let outer = (f64::from(groups) * (inner + 0.75) / PI).max(2.2 * inner);
    let (mut at_rank, mut at_router) = (Vec::new(), Vec::new());
    for group in 0..groups {
        let turn = FRAC_PI_2 - TAU * f64::from(group) / f64::from(groups);
        let centre = polar(outer, turn);
        for router in 0..routers {
            let angle = turn + TAU * (f64::from(router) + 0.5) / f64::from(routers);
            at_router.push(sum(centre, polar(inner, angle)));
            let step = TAU / f64::from(routers) / (f64::from(terminals) + 0.6);
            for terminal in 0..terminals {
                let aside = f64::from(terminal) - (f64::from(terminals) - 1.0) / 2.0;
                at_rank.push(sum(centre, polar(inner + 0.42, angle + aside * step)));
            }
        }
    }
    at_rank.extend(at_router);
    at_rank
}

/// Returns the positions of all ranks, followed by the positions `nodes`. Below each node is a row
/// of `each` ranks. If `each` is `None`, returns only `nodes`.
pub fn with_ranks(nodes: Vec<Point>, each: Option<u32>) -> Vec<Point> {
    let Some(each) = each else { return nodes };
    let apart = 0.6 / f64::from(each.max(2));
    let ranks = nodes.iter().flat_map(|&node| {
        (0..each).map(move |rank| {
            let aside = f64::from(rank) - (f64::from(each) - 1.0) / 2.0;
            sum(node, [aside * apart, -0.34])
        })
    });
    let mut places: Vec<Point> = ranks.collect();
    places.extend(nodes);
    places
}

/// Maximum number of vertices of a stress layout. The layout takes 300 rounds, each over all pairs
/// of vertices.
pub const MAX_LAYOUT_VERTICES: usize = 400;

/// Returns the positions of `vertices` vertices. The distance between two vertices in the picture
/// approximates the number of links of a shortest path between them. `ends` contains the two
/// vertices of each link. The result is empty for more than [`MAX_LAYOUT_VERTICES`] vertices.
///
/// The method is stress majorization, starting from a circle (Gansner, Koren and North, Graph
/// Drawing by Stress Majorization, 2004). Let d be the number of links of a shortest path between
/// vertices u and v. For each v, vertex u has one preferred position: at distance d from v, in the
/// present direction from v to u. Each round moves u to the mean of its preferred positions, with
/// weights 1 / d^2.
pub fn stress_layout(vertices: usize, ends: &[(u32, u32)]) -> Vec<Point> {
    if vertices > MAX_LAYOUT_VERTICES {
        return Vec::new();
    }
    let distances: Vec<Vec<f64>> = hops(vertices, ends);
    let mut places = circle(vertices as u32);
    for _ in 0..300 {
        interrupt::check();
        let wanted = |vertex: usize| {
            let (mut total, mut mean) = (0.0, [0.0; 2]);
            let others = places.iter().zip(&distances[vertex]).enumerate();
            for (_, (other, distance)) in others.filter(|&(other, _)| other != vertex) {
                let apart = [0, 1].map(|axis| places[vertex][axis] - other[axis]);
                let length = (apart[0] * apart[0] + apart[1] * apart[1]).sqrt().max(1e-9);
                let weight = distance.powi(-2);
                total += weight;
                for axis in [0, 1] {
                    mean[axis] += weight * (other[axis] + apart[axis] * distance / length);
                }
            }
            mean.map(|sum: f64| sum / total.max(1e-12))
        };
        places = (0..vertices).map(wanted).collect();
    }
    places
}

/// Returns the number of links of a shortest path, indexed by the first and the last vertex of the
/// path. The number is `vertices` if no path exists.
fn hops(vertices: usize, ends: &[(u32, u32)]) -> Vec<Vec<f64>> {
    let mut neighbours = vec![Vec::new(); vertices];
    for &(first, second) in ends {
        neighbours[first as usize].push(second);
        neighbours[second as usize].push(first);
    }
    let from = |start| {
        let neighbours = |vertex: u32| neighbours[vertex as usize].iter().copied();
        let distances = graph::distances(vertices, start, neighbours).into_iter();
        distances
            .map(|hops| f64::from(hops.min(vertices as u32)))
            .collect()
    };
    (0..vertices as u32).map(from).collect()
}

fn polar(radius: f64, angle: f64) -> Point {
    [radius * angle.cos(), radius * angle.sin()]
}

fn sum(point: Point, offset: Point) -> Point {
    [point[0] + offset[0], point[1] + offset[1]]
}
