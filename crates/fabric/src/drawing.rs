//! Where the ranks and switches of an electrical fabric are drawn, as its family is usually drawn.
//!
//! A family composes its picture from the arrangements below; whatever is known by its links only is
//! laid out so that distances on paper are near those in links. Coordinates are for pictures alone and
//! are the only floats of a fabric.
//!
//! ```
//! use opticoll_fabric::fabric::Fabric;
//! let torus = Fabric::parse("torus:dims=2x2")?;
//! let drawing = torus.network().expect("a torus has links").drawing();
//! assert_eq!(drawing.places, [[0.0, 0.0], [1.0, 0.0], [0.0, -1.0], [1.0, -1.0]]);
//! # Ok::<(), opticoll_fabric::fabric::FabricError>(())
//! ```

use std::f64::consts::{FRAC_PI_2, PI, TAU};

use opticoll_base::interrupt;

/// A point of a picture: x to the right, y upwards. Neighbours are about 1 apart.
pub type Point = [f64; 2];

/// How a fabric is drawn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Drawing {
    /// Places of all vertices, ranks first; empty where there are too many to be laid out by links.
    pub places: Vec<Point>,
    /// Links that lead around the fabric, from one side of the picture to the other.
    pub around: Vec<u32>,
}

impl Drawing {
    /// A picture in which no link leads around.
    pub fn of(places: Vec<Point>) -> Drawing {
        let around = Vec::new();
        Drawing { places, around }
    }
}

/// A circle with number 0 at the top, clockwise.
pub fn circle(count: u32) -> Vec<Point> {
    let all = f64::from(count.max(1));
    // Neighbours a fixed distance apart, but never all on one point.
    let radius = (all / TAU).max(1.0);
    (0..count)
        .map(|number| polar(radius, FRAC_PI_2 - TAU * f64::from(number) / all))
        .collect()
}

/// A grid of up to three dimensions: coordinate 0 to the right, 1 downwards, 2 into the paper.
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

/// Levels above one another, so many vertices in each, spread over the same width.
pub fn levels(counts: &[u32]) -> Vec<Point> {
    let most = counts.iter().copied().max().unwrap_or(1);
    let width = (0.34 * f64::from(most)).max(4.0);
    let height = 0.42 * width / (counts.len() as f64 - 1.0);
    let level = |(number, &count): (usize, &u32)| {
        (0..count).map(move |place| {
            let x = (f64::from(place) + 0.5) / f64::from(count) * width;
            [x, number as f64 * height]
        })
    };
    counts.iter().enumerate().flat_map(level).collect()
}

/// Groups around a circle, the routers of a group around a smaller one, its ranks outside of them.
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

/// Nodes, and below each its ranks in a row where ranks stand beside the nodes; ranks first.
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

/// The most vertices that are laid out by their links: the distances between all pairs are needed.
pub const MOST_BY_DISTANCE: usize = 400;

/// Places whose distances are near those in links, by stress majorization from a circle; none for
/// more than [`MOST_BY_DISTANCE`] vertices.
///
/// Gansner, Koren and North, Graph Drawing by Stress Majorization, 2004: each round moves every vertex
/// to the mean of where the others would have it, weighted by 1 / distance^2.
pub fn by_distance(vertices: usize, ends: &[(u32, u32)]) -> Vec<Point> {
    if vertices > MOST_BY_DISTANCE {
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

/// The distances between all pairs in links; the number of vertices where no way leads.
fn hops(vertices: usize, ends: &[(u32, u32)]) -> Vec<Vec<f64>> {
    let mut beside = vec![Vec::new(); vertices];
    for &(one, other) in ends {
        beside[one as usize].push(other as usize);
        beside[other as usize].push(one as usize);
    }
    let from = |start: usize| {
        let mut far = vec![vertices as f64; vertices];
        far[start] = 0.0;
        let mut front = vec![start];
        let mut next = 0;
        while let Some(&vertex) = front.get(next) {
            for &other in &beside[vertex] {
                if other != start && far[other] == vertices as f64 {
                    far[other] = far[vertex] + 1.0;
                    front.push(other);
                }
            }
            next += 1;
        }
        far
    };
    (0..vertices).map(from).collect()
}

fn polar(radius: f64, angle: f64) -> Point {
    [radius * angle.cos(), radius * angle.sin()]
}

fn sum(one: Point, other: Point) -> Point {
    [one[0] + other[0], one[1] + other[1]]
}
