//! Grids: torus and mesh of any number of dimensions, the 2 x n ladder, the electrical ring, the
//! line and the hypercube, which is a torus with two nodes in each dimension.
//!
//! A node has a coordinate in each dimension; coordinate 0 varies fastest in node numbers. In each
//! dimension, a cable joins each node to the next node. In a torus, a cable also joins the last
//! node to the first node. A dimension of two nodes has one cable between them, not two. By
//! default, the nodes are the ranks, which also forward messages of other ranks. With
//! `terminals=k`, nodes are routers with k ranks each: rank r is at router r div k.
//!
//! Routing is in dimension order: all hops in dimension 0, then in dimension 1, and so on. In a
//! torus, a route uses the shorter direction around each dimension. If both directions are equally
//! short, the route goes upwards, to higher coordinates.

use std::sync::Arc;

use crate::drawing;
use crate::drawing::Drawing;
use crate::fabric;
use crate::fabric::options;
use crate::fabric::options::Options;
use crate::fabric::wiring;
use crate::fabric::wiring::{CHOSEN, DEFAULT_RATE, MAX_RANKS, Wire};
use crate::fabric::{Fabric, FabricError, FamilyRecord};
use crate::network::translations::Translations;
use crate::network::{Link, Network, Sharing, Wiring};
use opticoll_base::interrupt;
use opticoll_base::names::same_name;
use opticoll_base::spec::{OptionRecord, REQUIRED, Spec};
use opticoll_base::units::Time;

/// Shape of a grid. Each shape is a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GridShape {
    /// Grid that wraps around in every dimension.
    Torus,
    /// Grid that wraps around in no dimension.
    Mesh,
    /// Mesh of two rows.
    Ladder,
    /// Torus of one dimension.
    Ring,
    /// Mesh of one dimension.
    Line,
    /// Torus of two nodes in each dimension.
    Hypercube,
}

/// Torus, mesh, ladder, electrical ring, line or hypercube.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    shape: GridShape,
    nodes: u32,
    /// Number of ranks per router; `None` if the nodes are the ranks.
    terminals: Option<u32>,
    dimensions: Vec<Dimension>,
    /// Translations of the grid; `None` if the grid does not wrap around or has routers.
    translations: Option<Translations>,
    wire: Wire,
    terminal: Link,
    wiring: Arc<Wiring>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dimension {
    nodes: u32,
    /// Difference between the numbers of two nodes whose coordinates in this dimension differ by 1.
    stride: u32,
    /// Number of cables in each line of nodes. The nodes of a line differ only in this coordinate.
    cables: u32,
    first_cable: u32,
    link: Link,
}

const DIMS: &str = "number of nodes in each dimension; ranks r and r+1 are neighbours in the first \
    dimension";
const RATES: OptionRecord = OptionRecord::new(
    "rate",
    "rate of a cable, in each direction: one value for all cables, or one for each dimension \
     joined by x, such as 50GB/sx75GB/s",
)
.range("1b/s or more, for all or for each dimension")
.source(CHOSEN);
const LATENCIES: OptionRecord = OptionRecord::new(
    "latency",
    "delay of a cable: one value for all cables, or one for each dimension joined by x, such as \
     500nsx1us",
)
.range("0s or more, for all or for each dimension");
const TERMINALS: OptionRecord = OptionRecord::new(
    "terminals",
    "number of ranks on each node, each with its own cable; none: the nodes are the ranks",
);
const TERMINAL_RATE: OptionRecord = OptionRecord::new("terminal_rate", "rate of cables to ranks");
const TERMINAL_LATENCY: OptionRecord =
    OptionRecord::new("terminal_latency", "delay of cables to ranks");

const GRID_CITATION: &str =
    "Dally and Towles, Principles and Practices of Interconnection Networks, 2004";

/// Record of the torus.
pub const TORUS: FamilyRecord = FamilyRecord {
    name: "torus",
    summary: "Grid of any dimensions that wraps around, routed by dimension order",
    citation: GRID_CITATION,
    example: "torus:dims=8x8,rate=100Gb/s",
    options: || options::list(&TORUS, declared),
    build,
    presets: &[],
};

/// Record of the mesh.
pub const MESH: FamilyRecord = FamilyRecord {
    name: "mesh",
    summary: "Grid of any dimensions that does not wrap around, routed by dimension order",
    example: "mesh:dims=4x4,rate=100Gb/s",
    options: || options::list(&MESH, declared),
    ..TORUS
};

/// Record of the ladder.
pub const LADDER: FamilyRecord = FamilyRecord {
    name: "ladder",
    summary: "Two rows of nodes with a link between opposite nodes, routed along the row first",
    citation: "Matsuoka et al., MPI Collective Communication over OBS Grid: 2 x 5, ten computers \
        a node",
    example: "ladder:rungs=5,terminals=10",
    options: || options::list(&LADDER, declared),
    build,
    presets: &[],
};

/// Record of the electrical ring.
pub const RING: FamilyRecord = FamilyRecord {
    name: "electrical_ring",
    summary: "Electrical ring of ranks, routed in the shorter direction; the optical ring is \
        wdm_ring",
    citation: GRID_CITATION,
    example: "electrical_ring:ranks=16",
    options: || options::list(&RING, declared),
    build,
    presets: &[],
};

/// Record of the line.
pub const LINE: FamilyRecord = FamilyRecord {
    name: "line",
    summary: "Ranks in a line, each with a cable to the next",
    example: "line:ranks=16",
    options: || options::list(&LINE, declared),
    ..RING
};

/// Record of the hypercube.
pub const HYPERCUBE: FamilyRecord = FamilyRecord {
    name: "hypercube",
    summary: "Hypercube of 2^d ranks: a cable joins ranks whose numbers differ in one bit; routed \
        from the lowest bit to the highest",
    citation: "Leighton, Introduction to Parallel Algorithms and Architectures, 1992",
    example: "hypercube:ranks=16",
    options: || options::list(&HYPERCUBE, declared),
    ..RING
};

fn build(spec: &Spec) -> Result<Fabric, FabricError> {
    Grid::parse(spec).map(Fabric::new)
}

impl GridShape {
    const ALL: [GridShape; 6] = [
        GridShape::Torus,
        GridShape::Mesh,
        GridShape::Ladder,
        GridShape::Ring,
        GridShape::Line,
        GridShape::Hypercube,
    ];

    /// Returns the record of the family.
    pub fn record(self) -> &'static FamilyRecord {
        match self {
            GridShape::Torus => &TORUS,
            GridShape::Mesh => &MESH,
            GridShape::Ladder => &LADDER,
            GridShape::Ring => &RING,
            GridShape::Line => &LINE,
            GridShape::Hypercube => &HYPERCUBE,
        }
    }

    fn wraps(self) -> bool {
        matches!(
            self,
            GridShape::Torus | GridShape::Ring | GridShape::Hypercube
        )
    }

    /// Returns the shape whose family is called `name`.
    fn named(name: &str) -> GridShape {
        let named = |shape: &GridShape| same_name(shape.record().name, name);
        GridShape::ALL
            .into_iter()
            .find(named)
            .unwrap_or(GridShape::Torus)
    }

    /// Returns name, meaning and range of the option that sets the size of the grid.
    fn size(self) -> (&'static str, &'static str, &'static str) {
        const ONE: &str = "1 to 1048576";
        match self {
            GridShape::Torus | GridShape::Mesh => {
                ("dims", DIMS, "1 to 1048576 for each dimension, such as 8x8")
            }
            GridShape::Ladder => ("rungs", "nodes in a row, n of 2 x n", ONE),
            GridShape::Ring | GridShape::Line => ("ranks", "number of ranks", ONE),
            GridShape::Hypercube => ("ranks", "number of ranks", "1, 2, 4, ... 1048576"),
        }
    }

    /// Returns whether the size of the grid is one number.
    fn has_one_size(self) -> bool {
        !matches!(self, GridShape::Torus | GridShape::Mesh)
    }

    /// Returns whether nodes may be routers with several ranks.
    fn has_terminals(self) -> bool {
        matches!(self, GridShape::Torus | GridShape::Mesh | GridShape::Ladder)
    }

    /// Returns the number of nodes in each dimension of a grid whose size is one number, or `None`
    /// if there is no such grid.
    fn sizes(self, size: u32) -> Option<Vec<u32>> {
        match self {
            GridShape::Ladder => Some(vec![size, 2]),
            GridShape::Hypercube if size > 1 => {
                let is_possible = size.is_power_of_two();
                is_possible.then(|| vec![2; size.ilog2() as usize])
            }
            _ => Some(vec![size]),
        }
    }

    /// Returns the text of the option that sets the size of the grid.
    fn print_sizes(self, sizes: &[u32]) -> String {
        match self {
            GridShape::Torus | GridShape::Mesh => wiring::print_counts(sizes),
            GridShape::Hypercube => sizes.iter().product::<u32>().to_string(),
            _ => sizes[0].to_string(),
        }
    }
}

struct GridOptions {
    sizes: Vec<u32>,
    /// Link properties, indexed by dimension.
    links: Vec<Link>,
    terminals: Option<u32>,
    wire: Wire,
    terminal: Link,
}

fn declared(options: &mut Options<'_, Grid>) -> Result<GridOptions, FabricError> {
    let shape = GridShape::named(options.family());
    let (key, meaning, range) = shape.size();
    let record = OptionRecord::new(key, meaning);
    let record = record.range(range).default(REQUIRED);
    let missing = options.missing(key);
    let read = |spec: &Spec| {
        let sizes = match shape.has_one_size() {
            true => {
                let size = spec.count(key, 1, MAX_RANKS)?;
                let sizes = |size| shape.sizes(size).ok_or("must be a power of 2");
                let sizes = size.map(sizes).transpose();
                sizes.map_err(|problem| spec.refuse(key, problem))?
            }
            false => wiring::counts(spec, key, MAX_RANKS)?,
        };
        sizes.ok_or(missing)
    };
    let print = |sizes: &Vec<u32>| Some(shape.print_sizes(sizes));
    let sizes = options.option(record, read, print, |grid| {
        grid.dimensions.iter().map(|one| one.nodes).collect()
    })?;
    let terminals = match shape.has_terminals() {
        false => None,
        true => options.limit(TERMINALS, None, MAX_RANKS, |grid| grid.terminals)?,
    };
    let links_of = |grid: &Grid| {
        grid.dimensions
            .iter()
            .map(|one| one.link)
            .collect::<Vec<Link>>()
    };
    let rates_of = |grid: &Grid| links_of(grid).iter().map(|link| link.rate).collect();
    let rates = wiring::each(
        options,
        RATES,
        (sizes.len(), "dimension"),
        DEFAULT_RATE,
        rates_of,
    )?;
    let latencies_of = |grid: &Grid| links_of(grid).iter().map(|link| link.latency).collect();
    let latencies = wiring::each(
        options,
        LATENCIES,
        (sizes.len(), "dimension"),
        Time::ZERO,
        latencies_of,
    )?;
    let link = Link {
        rate: rates[0],
        latency: latencies[0],
        sharing: Sharing::Shared,
    };
    let terminal = match shape.has_terminals() {
        false => link,
        true => {
            let records = (TERMINAL_RATE, TERMINAL_LATENCY);
            wiring::class(options, records, link, |grid| grid.terminal)?
        }
    };
    let wire = Wire::declared(options, link, |grid| grid.wire)?;
    let sharing = wire.link.sharing;
    let links = rates.into_iter().zip(latencies);
    let links = links.map(|(rate, latency)| Link {
        rate,
        latency,
        sharing,
    });
    Ok(GridOptions {
        links: links.collect(),
        sizes,
        terminals,
        wire,
        terminal: Link {
            sharing,
            ..terminal
        },
    })
}

impl Grid {
    /// Builds the machine of a specification such as `torus:dims=8x8`, `mesh:dims=4x4x4`,
    /// `ladder:rungs=5,terminals=10` or `electrical_ring:ranks=16`.
    pub fn parse(spec: &Spec) -> Result<Grid, FabricError> {
        let shape = GridShape::named(spec.name());
        let GridOptions {
            sizes,
            links,
            terminals,
            wire,
            terminal,
        } = options::read(spec, shape.record(), declared)?;
        let (nodes, dimensions) = dimensions(shape, &sizes, &links, terminals)?;
        let wraps = shape.wraps() && terminals.is_none();
        let translations = wraps.then_some(sizes).map(Translations::straight);
        let mut grid = Grid {
            shape,
            nodes,
            terminals,
            dimensions,
            translations,
            wire,
            terminal,
            wiring: Arc::new(Wiring::new(wire.duplex)),
        };
        if terminals.is_none() && grid.terminal != wire.link {
            let key = match spec.option("terminal_rate") {
                Some(_) => "terminal_rate",
                None => "terminal_latency",
            };
            let problem = "there are no cables to ranks without terminals=...";
            return Err(spec.refuse(key, problem).into());
        }
        grid.wiring = Arc::new(grid.wired());
        Ok(grid)
    }

    /// Returns the shape of the grid.
    pub fn shape(&self) -> GridShape {
        self.shape
    }

    fn vertex(&self, node: u32) -> u32 {
        match self.terminals {
            None => node,
            Some(_) => self.ranks() + node,
        }
    }

    /// Returns the indices of the links that wrap around. Returns no links if the picture is a
    /// circle.
    fn around(&self) -> Vec<u32> {
        if !self.shape.wraps() || self.dimensions.len() == 1 {
            return Vec::new();
        }
        let first_vertex = self.vertex(0);
        let leads_around = |&link: &u32| {
            let Some((first_end, second_end)) = self.ends(link) else {
                return false;
            };
            first_end.min(second_end) >= first_vertex
                && self.dimensions.iter().any(|dimension| {
                    let coordinate =
                        |vertex: u32| (vertex - first_vertex) / dimension.stride % dimension.nodes;
                    coordinate(first_end).abs_diff(coordinate(second_end)) > 1
                })
        };
        (0..self.links().len() as u32)
            .filter(leads_around)
            .collect()
    }

    fn wired(&self) -> Wiring {
        let mut wiring = Wiring::new(self.wire.duplex);
        for dimension in &self.dimensions {
            let line = dimension.stride * dimension.nodes;
            for first in (0..self.nodes).step_by(line as usize) {
                interrupt::check();
                for cable in 0..dimension.cables {
                    for low in 0..dimension.stride {
                        let at = |coordinate| first + coordinate * dimension.stride + low;
                        let next = (cable + 1) % dimension.nodes;
                        let ends = (self.vertex(at(cable)), self.vertex(at(next)));
                        wiring.add(ends.0, ends.1, dimension.link);
                    }
                }
            }
        }
        if let Some(terminals) = self.terminals {
            for rank in 0..self.ranks() {
                interrupt::check();
                wiring.add(rank, self.vertex(rank / terminals), self.terminal);
            }
        }
        wiring
    }

    /// Appends the links from node `from` to the coordinate of node `to` in one dimension. Returns
    /// the node at the end of the links.
    fn append_links(&self, dimension: &Dimension, from: u32, to: u32, links: &mut Vec<u32>) -> u32 {
        let Dimension { nodes, stride, .. } = *dimension;
        // Nodes of a line differ only in this coordinate, and so do the cables between them.
        let (block, low) = (from / (stride * nodes), from % stride);
        let first_cable = dimension.first_cable + block * (stride * dimension.cables) + low;
        let mut coordinate = from / stride % nodes;
        let first_node = from - coordinate * stride;
        let target = to / stride % nodes;
        let upwards = match self.shape.wraps() {
            true => (target + nodes - coordinate) % nodes <= nodes / 2,
            false => target > coordinate,
        };
        while coordinate != target {
            let next = match upwards {
                true if coordinate + 1 == nodes => 0,
                true => coordinate + 1,
                false if coordinate == 0 => nodes - 1,
                false => coordinate - 1,
            };
            // Cables are numbered by the node from which they lead upwards. If there is only one
            // cable between two nodes, a route from the second node to the first uses this cable
            // backwards.
            links.push(if upwards && coordinate < dimension.cables {
                self.wiring.forth(first_cable + coordinate * stride)
            } else {
                self.wiring.back(first_cable + next * stride)
            });
            coordinate = next;
        }
        first_node + target * stride
    }
}

/// Returns the number of nodes and the dimensions, after checking the size of the grid.
fn dimensions(
    shape: GridShape,
    sizes: &[u32],
    links: &[Link],
    terminals: Option<u32>,
) -> Result<(u32, Vec<Dimension>), FabricError> {
    let record = shape.record();
    let wide = sizes.iter().map(|size| u128::from(*size));
    let nodes = wide.fold(1, u128::saturating_mul);
    let ranks = nodes.saturating_mul(terminals.unwrap_or(1).into());
    wiring::check_size(record, ranks, 0)?;
    let nodes = nodes as u32;
    let (mut stride, mut first_cable) = (1, 0u64);
    let mut dimensions = Vec::new();
    for (&size, &link) in sizes.iter().zip(links) {
        let cables = match shape.wraps() && size > 2 {
            true => size,
            false => size - 1,
        };
        dimensions.push(Dimension {
            nodes: size,
            stride,
            cables,
            // The cast is exact: at most 16 dimensions have 2^20 cables each.
            first_cable: first_cable as u32,
            link,
        });
        first_cable += u64::from(nodes / size) * u64::from(cables);
        stride *= size;
    }
    let terminal_cables = if terminals.is_some() { ranks } else { 0 };
    wiring::check_size(record, ranks, u128::from(first_cable) + terminal_cables)?;
    Ok((nodes, dimensions))
}

impl fabric::Machine for Grid {
    fn record(&self) -> &'static FamilyRecord {
        self.shape.record()
    }

    fn spec(&self) -> Spec {
        options::print(self, self.shape.record(), declared)
    }

    fn network(&self) -> Option<&dyn Network> {
        Some(self)
    }
}

impl Network for Grid {
    fn ranks(&self) -> u32 {
        self.nodes * self.terminals.unwrap_or(1)
    }

    fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>) {
        let terminals = self.terminals.unwrap_or(1);
        let last = self.dimensions.last().map_or(0, |dimension| {
            dimension.first_cable + self.nodes / dimension.nodes * dimension.cables
        });
        if self.terminals.is_some() {
            links.push(self.wiring.forth(last + source));
        }
        let mut node = source / terminals;
        for dimension in &self.dimensions {
            node = self.append_links(dimension, node, destination / terminals, links);
        }
        if self.terminals.is_some() {
            links.push(self.wiring.back(last + destination));
        }
    }

    fn vertex_name(&self, vertex: u32) -> String {
        match vertex {
            rank if rank < self.ranks() => format!("rank {rank}"),
            router => format!("router {}", router - self.ranks()),
        }
    }

    fn translations(&self) -> Option<&Translations> {
        self.translations.as_ref()
    }

    fn drawing(&self) -> Drawing {
        let sizes: Vec<u32> = self
            .dimensions
            .iter()
            .map(|dimension| dimension.nodes)
            .collect();
        let nodes = match (self.shape.wraps(), sizes.len()) {
            (true, 1) => drawing::circle(self.nodes),
            (_, ..=3) => drawing::grid(&sizes),
            _ => {
                let links = 0..self.links().len() as u32;
                let ends: Vec<_> = links.filter_map(|link| self.ends(link)).collect();
                let routers = if self.terminals.is_some() {
                    self.nodes
                } else {
                    0
                };
                let vertices = self.ranks() + routers;
                return Drawing::new(drawing::stress_layout(vertices as usize, &ends));
            }
        };
        Drawing {
            places: drawing::with_ranks(nodes, self.terminals),
            around: self.around(),
        }
    }
}
