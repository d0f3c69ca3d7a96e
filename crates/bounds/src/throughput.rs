//! Throughput optimum of a collective on any directed graph with capacities: a fraction, and the
//! cut that proves it (theorem E8).
//!
//! Vertices are ranks and switches; switches only forward. For a set X of vertices, in(X) is the
//! rate of the links into X, and r(X) the number of ranks in X. Each of N ranks sends x blocks per
//! second; x* is the greatest possible x:
//!
//! ```text
//! 1 / x* = max over X with a rank in it of (N - r(X)) / in(X)        all_gather
//! 1 / x* = max over X that holds the root of (N - r(X)) / in(X)      gather
//! 1 / x* = max over X with a rank but not the root of 1 / in(X)      broadcast
//! ```
//!
//! These equations hold if no switch has more rate out than in; otherwise the right-hand sides are
//! lower bounds. reduce_scatter, scatter and reduce are the same over reversed links. A half-duplex
//! link counts with its full rate in each direction. The result is then a lower bound, which
//! perhaps no plan reaches.
//!
//! The search of theorem E8 finds the tightest cut by maximum flows. It starts with the tightest of
//! the cuts around single ranks.

pub mod flow;
pub mod spanning;

use flow::{Flow, UNLIMITED};
use opticoll_base::units::gcd;

/// Link from one vertex to another: (from, to, rate in bit/s). The rate is `None` if the link gives
/// every flow the whole rate.
pub type RatedLink = (u32, u32, Option<u64>);

/// Tightest cut of a collective: the set of vertices whose incoming links need the longest time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TightestCut {
    /// Number of blocks that must cross into the cut; 1 for a broadcast.
    pub blocks: u128,
    /// Sum of the rates of the links into the cut.
    pub rate: u128,
    /// Vertices of the cut, in ascending order.
    pub vertices: Vec<u32>,
    /// True if no cut is tighter; false if the search reached its limit of link visits.
    pub is_tightest: bool,
}

impl TightestCut {
    fn is_tighter(&self, other: &TightestCut) -> bool {
        self.blocks * other.rate > other.blocks * self.rate
    }
}

/// Sets of vertices among which the tightest cut is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cuts {
    /// All sets that contain a rank. The blocks of all ranks outside a set must enter the set.
    EachRank,
    /// All sets that contain this rank. The blocks of all ranks outside a set must enter the set.
    Into(u32),
    /// All sets that contain a rank, but not this root. One block must enter each set.
    From(u32),
}

/// Returns the tightest of the cuts `cuts`; its rate is 0 if no link leads into it. Vertices below
/// `ranks` are ranks, all other vertices are switches. After about `max_steps` link visits,
/// the search returns the tightest cut so far. `None` for a single rank, or if a link of unlimited
/// rate crosses every cut.
pub fn tightest(
    ranks: u32,
    vertices: usize,
    links: &[RatedLink],
    cuts: Cuts,
    max_steps: u64,
) -> Option<TightestCut> {
    let rates = links.iter().filter_map(|link| link.2);
    let unit = rates.fold(0, |unit, rate| gcd(unit, rate.into())).max(1);
    let links: Vec<(u32, u32, u128)> = links
        .iter()
        .map(|&(from, to, rate)| {
            (
                from,
                to,
                rate.map_or(UNLIMITED, |rate| u128::from(rate) / unit),
            )
        })
        .collect();
    let graph = Graph {
        ranks,
        vertices,
        links: &links,
        max_steps,
    };
    let best = match cuts {
        Cuts::EachRank => graph.gathering_cut(&graph.order(0)),
        Cuts::Into(rank) => graph.gathering_cut(&[rank]),
        Cuts::From(root) => graph.broadcast_cut(root),
    };
    let best = best?;
    (best.rate < UNLIMITED).then(|| TightestCut {
        rate: best.rate * unit,
        ..best
    })
}

struct Graph<'a> {
    ranks: u32,
    vertices: usize,
    links: &'a [(u32, u32, u128)],
    max_steps: u64,
}

impl Graph<'_> {
    /// Returns all ranks in the order of a breadth-first search from `first` that ignores the
    /// directions of links. Ranks that the search does not reach follow at the end.
    fn order(&self, first: u32) -> Vec<u32> {
        let mut neighbours = vec![Vec::new(); self.vertices];
        for &(from, to, _) in self.links {
            neighbours[from as usize].push(to);
            neighbours[to as usize].push(from);
        }
        let mut order = vec![first];
        let mut reached = vec![false; self.vertices];
        reached[first as usize] = true;
        let mut index = 0;
        while let Some(&vertex) = order.get(index) {
            index += 1;
            for &other in &neighbours[vertex as usize] {
                if !std::mem::replace(&mut reached[other as usize], true) {
                    order.push(other);
                }
            }
        }
        order.extend((0..self.ranks).filter(|rank| !reached[*rank as usize]));
        order.retain(|vertex| *vertex < self.ranks);
        order
    }

    /// Returns the sum of the rates of the links into the set of all vertices v with `inside(v)`.
    fn rate_into(&self, inside: impl Fn(u32) -> bool) -> u128 {
        let links = self.links.iter();
        let crossing = links.filter(|(from, to, _)| !inside(*from) && inside(*to));
        crossing.fold(0, |sum, link| (sum + link.2).min(UNLIMITED))
    }

    /// Returns the cut of a set of vertices; its blocks are those of the ranks outside the set.
    fn cut(&self, mut vertices: Vec<u32>) -> TightestCut {
        vertices.sort_unstable();
        let mut inside = vec![false; self.vertices];
        vertices
            .iter()
            .for_each(|vertex| inside[*vertex as usize] = true);
        let ranks_inside = vertices.partition_point(|vertex| *vertex < self.ranks);
        TightestCut {
            blocks: u128::from(self.ranks) - ranks_inside as u128,
            rate: self.rate_into(|vertex| inside[vertex as usize]),
            vertices,
            is_tightest: true,
        }
    }

    /// Returns the tightest of the cuts around a single rank of `ranks`, other than `except`.
    fn single_vertex_cut(&self, ranks: &[u32], except: Option<u32>) -> Option<TightestCut> {
        let mut rates = vec![0u128; self.vertices];
        for (_, to, rate) in self.links {
            let sum = &mut rates[*to as usize];
            *sum = (*sum + rate).min(UNLIMITED);
        }
        let ranks = ranks.iter().filter(|rank| Some(**rank) != except);
        let tightest = ranks.min_by_key(|rank| rates[**rank as usize])?;
        Some(self.cut(vec![*tightest]))
    }

    /// Returns the tightest of all cuts that contain at least one of `sinks`.
    fn gathering_cut(&self, sinks: &[u32]) -> Option<TightestCut> {
        if self.ranks < 2 {
            return None;
        }
        let ranks = u128::from(self.ranks);
        let mut best = self.single_vertex_cut(sinks, None)?;
        let mut flow = Flow::new(self.vertices, self.links);
        let mut checked: Vec<u32> = Vec::new();
        let mut scaled = false;
        for &sink in sinks {
            if flow.work > self.max_steps {
                best.is_tightest = false;
                break;
            }
            while best.rate > 0 && best.rate < UNLIMITED {
                let divisor = gcd(best.blocks, best.rate);
                let (p, q) = (best.blocks / divisor, best.rate / divisor);
                if !scaled {
                    flow.scale(p);
                    (0..self.ranks).for_each(|rank| flow.set_supply(rank, q));
                    checked
                        .iter()
                        .for_each(|rank| flow.set_supply(*rank, UNLIMITED));
                    scaled = true;
                }
                let sent = flow.send(sink, q * ranks);
                let cut = (sent < q * ranks).then(|| self.cut(flow.cut().to_vec()));
                flow.clear();
                match cut {
                    Some(cut) if cut.is_tighter(&best) => best = cut,
                    _ => break,
                }
                scaled = false;
            }
            if scaled {
                flow.set_supply(sink, UNLIMITED);
            }
            checked.push(sink);
        }
        Some(best)
    }

    fn broadcast_cut(&self, root: u32) -> Option<TightestCut> {
        let order = self.order(root);
        let with_one_block = |cut| TightestCut { blocks: 1, ..cut };
        let mut best = with_one_block(self.single_vertex_cut(&order, Some(root))?);
        let mut flow = Flow::new(self.vertices, self.links);
        flow.set_supply(root, UNLIMITED);
        for &sink in &order[1..] {
            if flow.work > self.max_steps {
                best.is_tightest = false;
                break;
            }
            let sent = flow.send(sink, best.rate);
            if sent < best.rate {
                best = with_one_block(self.cut(flow.cut().to_vec()));
            }
            flow.clear();
            flow.set_supply(sink, UNLIMITED);
        }
        Some(best)
    }
}
