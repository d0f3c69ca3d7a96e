//! Fat trees: k-ary n-trees, optionally tapered, with any number of parallel cables.
//!
//! Level 0 contains the ranks, and levels 1 to L contain the switches. A vertex of level l has a
//! number with L digits; digit 0 varies fastest. Digit j is below `up[j]` if j < l, and below
//! `down[j]` otherwise. If the numbers of a vertex of level l and a vertex of level l+1 agree in
//! every digit except digit l, `links[l]` parallel cables join the two vertices. Therefore a switch
//! of level l+1 has `down[l]` neighbours below, and a vertex of level l has `up[l]` neighbours
//! above.
//!
//! A route goes up to the first vertex from which the destination can be reached downwards, and
//! then down. Only the upward part has alternatives. D-mod-k selects among them by the number d of
//! the destination. At level l, let `q = d div (up[0] * ... * up[l-1])` and
//! `p = q mod (up[l] * links[l])`. Digit l of the next vertex is `p mod up[l]`, and the route uses
//! parallel cable `p div up[l]`. Therefore routes to the same rank meet as early as possible, and
//! routes to different ranks are spread evenly. Downwards from level l+1, a route uses parallel
//! cable `source mod links[l]`.

use std::sync::Arc;

use crate::drawing;
use crate::drawing::Drawing;
use crate::fabric::options;
use crate::fabric::options::{Options, machine_over_links};
use crate::fabric::wiring;
use crate::fabric::wiring::{CHOSEN, DEFAULT_RATE, MAX_RANKS, Wire};
use crate::fabric::{Fabric, FabricError, FamilyRecord};
use crate::network::{Duplex, InNetwork, Link, Network, Sharing, Wiring};
use opticoll_base::interrupt;
use opticoll_base::spec::{OptionRecord, REQUIRED, Spec};

/// Fat tree: ranks below several levels of switches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FatTree {
    ranks: u32,
    down: Vec<u32>,
    up: Vec<u32>,
    parallel: Vec<u32>,
    /// Levels 0 to L, indexed by level. Level 0 contains the ranks.
    levels: Vec<SwitchLevel>,
    /// Cable properties, indexed by the level below the cables.
    wires: Vec<Wire>,
    in_network: InNetwork,
    wiring: Arc<Wiring>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SwitchLevel {
    vertices: u32,
    first_vertex: u32,
    /// Index of the first cable to the next level. Cables are numbered vertex by vertex.
    first_cable: u32,
    /// Difference of two vertex numbers that differ by 1 in digit l and agree in all other digits:
    /// `up[0] * ... * up[l-1]`. Both vertices are on this level l or on level l + 1.
    stride: u32,
    /// Number of ranks below each vertex of this level l: `down[0] * ... * down[l-1]`.
    ranks_below: u32,
}

/// Record of the family.
pub const RECORD: FamilyRecord = FamilyRecord {
    name: "fat_tree",
    summary: "Levels of switches with several links up, routed up and down by D-mod-k",
    citation: "Petrini and Vanneschi, k-ary n-trees, 1997; Zahavi, Fat-tree routing and node \
               ordering providing contention free traffic for MPI global collectives, 2012",
    example: "fat_tree:down=16x8x8,up=1x8x8,links=1x1x1,rate=12.5GB/s",
    options: || options::list(&RECORD, declared),
    build: |spec| FatTree::parse(spec).map(Fabric::new),
    presets: &[],
};

const SHAPE: &[OptionRecord] = &[
    OptionRecord::new(
        "down",
        "number of neighbours below a switch, for levels 1, 2, ...; or give arity",
    )
    .range(COUNTS)
    .default(REQUIRED),
    OptionRecord::new(
        "up",
        "number of neighbours above a rank, above a switch of level 1, ...; with down",
    )
    .range(COUNTS)
    .default(REQUIRED),
    OptionRecord::new(
        "links",
        "number of parallel cables between neighbours, above levels 0, 1, \
        ...; with down",
    )
    .range(COUNTS)
    .default("all 1"),
    OptionRecord::new(
        "arity",
        "k of a k-ary n-tree, with k below and k above each switch, in place of down and up",
    )
    .range("1 to 1048576")
    .default("none"),
    OptionRecord::new("levels", "levels of switches, n; with arity")
        .range("1 to 16")
        .default("2"),
    OptionRecord::new(
        "taper",
        "ratio of cables down to cables up at a leaf switch; with arity",
    )
    .range("divisors of arity")
    .default("1"),
];

const RATES: OptionRecord = OptionRecord::new(
    "rate",
    "rate of a cable, in each direction: one value for all cables, or one for each level (above \
     level 0, 1, ...) joined by x, such as 100Gb/sx400Gb/s",
)
.range("1b/s or more, for all or for each level")
.source(CHOSEN);

/// Range of options with one number per level, in words.
const COUNTS: &str = "1 to 1048576 for each level, such as 16x8x8";

/// `down`, `up` and `links`, the cable properties of each level, and the work of the switches.
type Declared = ([Vec<u32>; 3], Vec<Wire>, InNetwork);

fn declared(options: &mut Options<'_, FatTree>) -> Result<Declared, FabricError> {
    let print = |spec: Spec, [down, up, parallel]: &[Vec<u32>; 3]| {
        spec.with("down", wiring::print_counts(down))
            .with("up", wiring::print_counts(up))
            .with("links", wiring::print_counts(parallel))
    };
    let numbers = options.several(SHAPE.iter().copied(), shape, print, |tree| {
        [tree.down.clone(), tree.up.clone(), tree.parallel.clone()]
    })?;
    let levels = numbers[0].len();
    let rates_of = |tree: &FatTree| tree.wires.iter().map(|wire| wire.link.rate).collect();
    let rates = wiring::each(options, RATES, (levels, "level"), DEFAULT_RATE, rates_of)?;
    let link = Link {
        rate: rates[0],
        latency: wiring::latency(options, |tree: &FatTree| tree.wires[0].link.latency)?,
        sharing: Sharing::Shared,
    };
    let wire = Wire::declared(options, link, |tree| tree.wires[0])?;
    let wires = rates.into_iter().map(|rate| Wire {
        link: Link { rate, ..wire.link },
        ..wire
    });
    let is_half = wire.duplex == Duplex::Half;
    let in_network = wiring::switch_work(options, is_half, |tree| tree.in_network)?;
    Ok((numbers, wires.collect(), in_network))
}

/// Reads the options `down`, `up` and `links`, or derives them from `arity`, `levels` and `taper`.
fn shape(spec: &Spec) -> Result<[Vec<u32>; 3], FabricError> {
    let missing = |key| FabricError::Missing {
        family: RECORD.name,
        key,
        example: RECORD.example,
    };
    let arity = spec.count("arity", 1, MAX_RANKS)?;
    let (down, up) = if let Some(arity) = arity {
        for key in ["down", "up"] {
            if spec.option(key).is_some() {
                return Err(spec.refuse(key, "give either arity or down and up").into());
            }
        }
        let levels = spec.count("levels", 1, 16)?.unwrap_or(2) as usize;
        let taper = spec.count("taper", 1, arity)?.unwrap_or(1);
        if arity % taper != 0 {
            return Err(spec
                .refuse("taper", format!("must divide arity={arity}"))
                .into());
        }
        let mut up = vec![arity; levels];
        up[0] = 1;
        if levels > 1 {
            up[1] = arity / taper;
        }
        (vec![arity; levels], up)
    } else {
        for key in ["levels", "taper"] {
            if spec.option(key).is_some() {
                return Err(spec.refuse(key, "goes with arity, not with down").into());
            }
        }
        (
            wiring::counts(spec, "down", MAX_RANKS)?.ok_or(missing("down"))?,
            wiring::counts(spec, "up", MAX_RANKS)?.ok_or(missing("up"))?,
        )
    };
    let parallel = wiring::counts(spec, "links", MAX_RANKS)?.unwrap_or_else(|| vec![1; down.len()]);
    for (key, numbers) in [("up", &up), ("links", &parallel)] {
        if numbers.len() != down.len() {
            let levels = down.len();
            let problem = format!(
                "has {} numbers, down has {levels}: give one for each level",
                numbers.len()
            );
            return Err(spec.refuse(key, problem).into());
        }
    }
    Ok([down, up, parallel])
}

impl FatTree {
    /// Builds the machine of a specification such as `fat_tree:down=16x8x8,up=1x8x8,links=1x1x1` or
    /// `fat_tree:arity=8,levels=3,taper=2`.
    pub fn parse(spec: &Spec) -> Result<FatTree, FabricError> {
        let ([down, up, parallel], wires, in_network) = options::read(spec, &RECORD, declared)?;
        let levels = levels(&down, &up, &parallel)?;
        let mut tree = FatTree {
            ranks: levels[0].vertices,
            down,
            up,
            parallel,
            levels,
            wiring: Arc::new(Wiring::new(wires[0].duplex)),
            wires,
            in_network,
        };
        tree.wiring = Arc::new(tree.wired());
        Ok(tree)
    }

    fn wired(&self) -> Wiring {
        let mut wiring = Wiring::new(self.wires[0].duplex);
        for below in 0..self.down.len() {
            let (low, high) = (self.levels[below], self.levels[below + 1]);
            for number in 0..low.vertices {
                interrupt::check();
                for _ in 0..self.parallel[below] {
                    for digit in 0..self.up[below] {
                        wiring.add(
                            low.first_vertex + number,
                            high.first_vertex + self.neighbour_above(below, number, digit),
                            self.wires[below].link,
                        );
                    }
                }
            }
        }
        wiring
    }

    /// Returns the number of the upper neighbour of vertex `number` that has the digit `digit` at
    /// position `level`. Vertex `number` is on level `level`, its upper neighbours on the next
    /// level.
    fn neighbour_above(&self, level: usize, number: u32, digit: u32) -> u32 {
        let stride = self.levels[level].stride;
        let (high, low) = (number / stride / self.down[level], number % stride);
        (high * self.up[level] + digit) * stride + low
    }

    /// Returns (number of the lower neighbour, digit) for vertex `number` on level `level + 1`. The
    /// lower neighbour is the next vertex on the route to `rank`, on level `level`. The digit is
    /// the digit of `number` at position `level`.
    fn neighbour_below(&self, level: usize, number: u32, rank: u32) -> (u32, u32) {
        let stride = self.levels[level].stride;
        let (high, low) = (number / stride / self.up[level], number % stride);
        let upper_digit = number / stride % self.up[level];
        let digit = self.leading_digits(level, rank) % self.down[level];
        (
            (high * self.down[level] + digit) * stride + low,
            upper_digit,
        )
    }

    /// Returns the digits of a rank number from digit `level` on. All ranks below the same switch
    /// of this level have the same result.
    fn leading_digits(&self, level: usize, rank: u32) -> u32 {
        rank / self.levels[level].ranks_below
    }

    /// Returns the index of a cable from vertex `number` on level `level` to the upper neighbour
    /// that has the digit `digit` at position `level`. `parallel` is the index of the cable among
    /// the parallel cables.
    fn cable(&self, level: usize, number: u32, digit: u32, parallel: u32) -> u32 {
        let width = self.up[level] * self.parallel[level];
        self.levels[level].first_cable + number * width + parallel * self.up[level] + digit
    }
}

/// Returns the levels, after checking the numbers of vertices and cables.
fn levels(down: &[u32], up: &[u32], parallel: &[u32]) -> Result<Vec<SwitchLevel>, FabricError> {
    let product = |numbers: &[u32]| -> u128 {
        // The product of at most 16 numbers up to 2^20 may saturate, far above the accepted
        // maximum.
        let wide = numbers.iter().map(|number| u128::from(*number));
        wide.fold(1, u128::saturating_mul)
    };
    let (mut vertices_before, mut cables_before) = (0, 0);
    let mut levels = Vec::new();
    for level in 0..=down.len() {
        let vertices = product(&up[..level]).saturating_mul(product(&down[level..]));
        let cables = match level < down.len() {
            true => vertices.saturating_mul(u128::from(up[level]) * u128::from(parallel[level])),
            false => 0,
        };
        if level == 0 {
            wiring::check_size(&RECORD, vertices, 0)?;
        }
        // This check also limits the number of vertices, because each vertex has a cable.
        wiring::check_size(&RECORD, 0, cables)?;
        levels.push(SwitchLevel {
            vertices: vertices as u32,
            first_vertex: vertices_before as u32,
            first_cable: cables_before as u32,
            stride: product(&up[..level]) as u32,
            ranks_below: product(&down[..level]) as u32,
        });
        vertices_before += vertices;
        cables_before += cables;
    }
    wiring::check_size(&RECORD, 0, cables_before)?;
    Ok(levels)
}

machine_over_links!(FatTree, RECORD, declared);

impl Network for FatTree {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn wiring(&self) -> &Wiring {
        &self.wiring
    }

    fn group_size(&self) -> Option<u32> {
        self.down.first().copied()
    }

    fn route(&self, source: u32, destination: u32, links: &mut Vec<u32>) {
        let (mut level, mut number) = (0, source);
        while self.leading_digits(level, source) != self.leading_digits(level, destination) {
            let (up, parallel) = (self.up[level], self.parallel[level]);
            let choice = destination / self.levels[level].stride % (up * parallel);
            let (digit, cable) = (choice % up, choice / up);
            links.push(self.wiring.forth(self.cable(level, number, digit, cable)));
            number = self.neighbour_above(level, number, digit);
            level += 1;
        }
        while level > 0 {
            level -= 1;
            let (below, digit) = self.neighbour_below(level, number, destination);
            let cable = source % self.parallel[level];
            links.push(self.wiring.back(self.cable(level, below, digit, cable)));
            number = below;
        }
    }

    fn switch_work(&self, vertex: u32) -> InNetwork {
        match vertex < self.ranks {
            true => InNetwork::None,
            false => self.in_network,
        }
    }

    fn vertex_name(&self, vertex: u32) -> String {
        let level = self
            .levels
            .iter()
            .rposition(|level| vertex >= level.first_vertex);
        let level = level.unwrap_or(0);
        let number = vertex - self.levels[level].first_vertex;
        match (level, self.down.len()) {
            (0, _) => format!("rank {number}"),
            (1, 1) => format!("switch {number}"),
            (1, _) => format!("leaf {number}"),
            (level, top) if level == top => format!("spine {number}"),
            (level, _) => format!("level {level} switch {number}"),
        }
    }

    fn cable_number(&self, link: u32) -> Option<u32> {
        let cable = link / (self.wiring.back(0) + 1);
        let mut levels = self.levels[..self.parallel.len()].iter();
        let below = levels.rposition(|level| cable >= level.first_cable)?;
        let (parallel, up) = (self.parallel[below], self.up[below]);
        let number = (cable - self.levels[below].first_cable) % (up * parallel) / up;
        (parallel > 1).then_some(number)
    }

    fn drawing(&self) -> Drawing {
        let counts: Vec<u32> = self.levels.iter().map(|level| level.vertices).collect();
        Drawing::new(drawing::levels(&counts))
    }
}
