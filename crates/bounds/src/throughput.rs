//! The throughput optimum of a collective on any directed graph with capacities: a fraction, and
//! the cut that proves it.
//!
//! Vertices are ranks and switches, which only forward. For a set X of vertices in(X) is the rate
//! of the links into X, and r(X) its number of ranks. With x the blocks per second of each of N
//! ranks (theorem E8),
//!
//! ```text
//! 1 / x* = max over X with a rank in it of (N - r(X)) / in(X)                                       all_gather
//! 1 / x* = max over X that holds the root of (N - r(X)) / in(X)                                     gather
//! 1 / x* = max over X with a rank but not the root of 1 / in(X)                                     broadcast
//! ```
//!
//! where no switch has more rate out of it than into it; elsewhere these are bounds.
//! reduce_scatter, scatter and reduce are the same over reversed links. A half-duplex link counts
//! with its full rate in each direction, and so is a bound, but perhaps not reached. Maximum flows
//! find the cuts, from the greatest ratio p / q known on (theorem E8, search).

pub mod flow;
pub mod spanning;

use flow::{Flow, UNLIMITED};
use opticoll_base::units::gcd;

/// A link from one vertex to another with its rate; `None` where every flow has the whole rate.
pub type RatedLink = (u32, u32, Option<u64>);

/// The tightest cut of a collective.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TightestCut {
    /// Blocks that must cross into it; 1 of a broadcast.
    pub blocks: u128,
    /// The rate of the links into it.
    pub rate: u128,
    /// Its vertices, in ascending order.
    pub vertices: Vec<u32>,
    /// Whether there is no tighter one; otherwise the search was given up.
    pub is_tightest: bool,
}

impl TightestCut {
    /// Whether blocks of this one take longer.
    fn is_tighter(&self, other: &TightestCut) -> bool {
        self.blocks * other.rate > other.blocks * self.rate
    }
}

/// Which cuts count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cuts {
    /// Every set with a rank in it, by the blocks of the ranks outside.
    EachRank,
    /// Every set with this rank in it, by the blocks of the ranks outside.
    Into(u32),
    /// Every set with a rank, but not this one, by one block.
    From(u32),
}

/// The tightest cut; with rate zero where ranks cannot be reached. The search is given up after `most_work` steps over
/// links. `None` for a single rank, or where flows that share nothing join all.
pub fn tightest(
    ranks: u32,
    vertices: usize,
    links: &[RatedLink],
    cuts: Cuts,
    most_work: u64,
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
        most_work,
    };
    let best = match cuts {
        Cuts::EachRank => graph.gathering(&graph.order(0)),
        Cuts::Into(rank) => graph.gathering(&[rank]),
        Cuts::From(root) => graph.spreading(root),
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
    most_work: u64,
}

impl Graph<'_> {
    /// The ranks, in the order of a breadth-first search over links either way.
    fn order(&self, first: u32) -> Vec<u32> {
        let mut beside = vec![Vec::new(); self.vertices];
        for &(from, to, _) in self.links {
            beside[from as usize].push(to);
            beside[to as usize].push(from);
        }
        let mut order = vec![first];
        let mut reached = vec![false; self.vertices];
        reached[first as usize] = true;
        let mut place = 0;
        while let Some(&vertex) = order.get(place) {
            place += 1;
            for &other in &beside[vertex as usize] {
                if !std::mem::replace(&mut reached[other as usize], true) {
                    order.push(other);
                }
            }
        }
        order.extend((0..self.ranks).filter(|rank| !reached[*rank as usize]));
        order.retain(|vertex| *vertex < self.ranks);
        order
    }

    /// The rate of the links into a set.
    fn into(&self, inside: impl Fn(u32) -> bool) -> u128 {
        let links = self.links.iter();
        let crossing = links.filter(|(from, to, _)| !inside(*from) && inside(*to));
        crossing.fold(0, |sum, link| (sum + link.2).min(UNLIMITED))
    }

    /// The cut of a set of vertices, given in any order.
    fn cut(&self, mut vertices: Vec<u32>) -> TightestCut {
        vertices.sort_unstable();
        let mut inside = vec![false; self.vertices];
        vertices
            .iter()
            .for_each(|vertex| inside[*vertex as usize] = true);
        let own = vertices.partition_point(|vertex| *vertex < self.ranks);
        TightestCut {
            blocks: u128::from(self.ranks) - own as u128,
            rate: self.into(|vertex| inside[vertex as usize]),
            vertices,
            is_tightest: true,
        }
    }

    /// The tightest of the cuts around single vertices.
    fn around(&self, ranks: &[u32], except: Option<u32>) -> Option<TightestCut> {
        let mut rates = vec![0u128; self.vertices];
        for (_, to, rate) in self.links {
            let sum = &mut rates[*to as usize];
            *sum = (*sum + rate).min(UNLIMITED);
        }
        let ranks = ranks.iter().filter(|rank| Some(**rank) != except);
        let tightest = ranks.min_by_key(|rank| rates[**rank as usize])?;
        Some(self.cut(vec![*tightest]))
    }

    fn gathering(&self, sinks: &[u32]) -> Option<TightestCut> {
        if self.ranks < 2 {
            return None;
        }
        let ranks = u128::from(self.ranks);
        let mut best = self.around(sinks, None)?;
        let mut flow = Flow::new(self.vertices, self.links);
        let mut checked: Vec<u32> = Vec::new();
        let mut scaled = false;
        for &sink in sinks {
            if flow.work > self.most_work {
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

    fn spreading(&self, root: u32) -> Option<TightestCut> {
        let order = self.order(root);
        let one = |cut| TightestCut { blocks: 1, ..cut };
        let mut best = one(self.around(&order, Some(root))?);
        let mut flow = Flow::new(self.vertices, self.links);
        flow.set_supply(root, UNLIMITED);
        for &sink in &order[1..] {
            if flow.work > self.most_work {
                best.is_tightest = false;
                break;
            }
            let sent = flow.send(sink, best.rate);
            if sent < best.rate {
                best = one(self.cut(flow.cut().to_vec()));
            }
            flow.clear();
            flow.set_supply(sink, UNLIMITED);
        }
        Some(best)
    }
}
