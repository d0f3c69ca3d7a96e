//! Which rank sits where: heavy pairs of ranks on short ways.
//!
//! # The problem
//!
//! With f(a, b) the bytes that rank a sends to rank b in a whole collective and d(x, y) the links from site x to
//! site y, find different sites p(a) with the least
//!
//! cost(p) = sum over a and b of f(a, b) d(p(a), p(b)),
//!
//! the bytes times hops that a network has to carry: Koopmans and Beckmann's quadratic assignment problem
//! (Assignment Problems and the Location of Economic Activities, 1957), which is NP-hard.
//!
//! **Heuristic.** A start is made greedily: the rank with the most bytes to and from those placed takes the free site
//! that adds the least. This start and those given (so that the answer is never worse than any of
//! them) are improved by exchanging the sites of two ranks, or moving a rank to a free site, as long as that
//! lowers the cost.
//!
//! **Lower bound** (Gilmore, Optimal and Suboptimal Algorithms for the Quadratic Assignment Problem, 1962; Lawler,
//! The Quadratic Assignment Problem, 1963). Whatever p is, the bytes of rank a meet different distances from
//! its site: sum over b of f(a, b) d(p(a), p(b)) >= l(a, p(a)), where l(a, x) pairs the greatest of f(a, .) with
//! the least of d(x, .), next greatest with next least and so on, since of all pairings of two lists of
//! numbers that one has the least sum of products. As the p(a) are all different, cost(p) is
//! at least the least sum of l(a, x_a) over different x_a, a linear assignment problem (`linear`).
//!
//! **Exact answer.** Up to [`MOST_EXACT`] ranks are placed one by one, heaviest first, on all sites that differ, as
//! long as the bound of what is left, with the bytes to and from ranks that are placed as linear costs, is less than
//! the best cost known. Sites that can be exchanged without changing any distance count as one. The number of
//! partial placements is limited; where the search is broken off, the answer says so.
//!
//! ```
//! use opticoll_planner::rank_mapping::{Problem, place};
//! // Of three ranks, 0 and 2 and 2 and 1 send the most: rank 2 belongs in the middle of a row.
//! let bytes = vec![0, 1, 5, 0, 0, 0, 0, 4, 0];
//! let hops = vec![0, 1, 2, 1, 0, 1, 2, 1, 0];
//! let placement = place(&Problem::new(3, bytes, 3, hops), &[vec![0, 1, 2]]);
//! assert_eq!((placement.sites[2], placement.cost), (1, 5 + 4 + 2));
//! assert!(placement.is_best);
//! ```

mod exact;
mod linear;

use thiserror::Error;

use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, UnitError};
use opticoll_plan::schedule::Schedule;
use opticoll_simulate::burst::BurstNetwork;

/// The most ranks that are placed exactly.
pub const MOST_EXACT: usize = 10;

/// The most hosts of a network at which ranks are placed.
pub const MOST_SITES: u32 = 512;

/// Why ranks cannot be placed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SiteError {
    /// More ranks than hosts.
    #[error("{ranks} ranks cannot sit at {hosts} hosts; ask for fewer ranks or collectives")]
    Ranks {
        /// The ranks of all collectives.
        ranks: usize,
        /// The hosts of the network.
        hosts: u32,
    },
    /// Too many hosts to choose from.
    #[error("ranks are placed at one of at most {MOST_SITES} hosts, not {hosts}; give fewer")]
    Sites {
        /// The hosts of the network.
        hosts: u32,
    },
    /// Sites that do not exist, too few, or twice the same.
    #[error("{ranks} different sites below {sites} are needed for as many ranks")]
    Start {
        /// The ranks of all collectives.
        ranks: usize,
        /// The sites that there are.
        sites: usize,
    },
    /// More bytes than 64 bits count.
    #[error(transparent)]
    Unit(#[from] UnitError),
}

/// Who sends how much to whom, and how far sites are from one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    ranks: usize,
    sites: usize,
    /// From rank a to rank b, at a * ranks + b.
    bytes: Vec<u64>,
    /// From site x to site y, at x * sites + y.
    hops: Vec<u32>,
}

/// Sites of ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Of each rank, all different.
    pub sites: Vec<u32>,
    /// Bytes times hops.
    pub cost: u128,
    /// No placement costs less.
    pub bound: u128,
    /// Whether this one is known to cost the least.
    pub is_best: bool,
}

impl Problem {
    /// Bytes of each pair of ranks and hops of each pair of sites, row by row; missing entries are 0.
    pub fn new(ranks: usize, mut bytes: Vec<u64>, sites: usize, mut hops: Vec<u32>) -> Problem {
        bytes.resize(ranks * ranks, 0);
        hops.resize(sites * sites, 0);
        Problem {
            ranks,
            sites,
            bytes,
            hops,
        }
    }

    /// The ranks of several schedules, one after the other, on the hosts of a network.
    ///
    /// # Errors
    /// More ranks than hosts, too many hosts, or more bytes than 64 bits count.
    pub fn on_network(
        network: &BurstNetwork,
        jobs: &[(&Schedule, Bytes)],
    ) -> Result<Problem, SiteError> {
        let of_job = |(schedule, _): &(&Schedule, Bytes)| schedule.collective.ranks() as usize;
        let ranks: usize = jobs.iter().map(of_job).sum();
        let hosts = network.hosts();
        if hosts > MOST_SITES {
            return Err(SiteError::Sites { hosts });
        }
        if ranks > hosts as usize {
            return Err(SiteError::Ranks { ranks, hosts });
        }
        let mut bytes = vec![0; ranks * ranks];
        let mut first = 0;
        for (schedule, size) in jobs {
            for moved in schedule.transfers() {
                interrupt::check();
                let own = schedule
                    .collective
                    .range_bytes(*size, moved.chunk, moved.count)?;
                let (from, to) = (moved.source as usize, moved.destination as usize);
                let place = &mut bytes[(first + from) * ranks + first + to];
                *place = Bytes::new(*place).plus(own)?.get();
            }
            first += schedule.collective.ranks() as usize;
        }
        let hops = (0..hosts).flat_map(|from| {
            (0..hosts)
                .map(move |to| network.routes(network.node(from), network.node(to))[0].len() as u32)
        });
        let hops = hops.collect();
        Ok(Problem::new(ranks, bytes, hosts as usize, hops))
    }

    /// Refuses what is no placement.
    ///
    /// # Errors
    /// Sites that do not exist, too few or too many, or one twice.
    pub fn check(&self, sites: &[u32]) -> Result<(), SiteError> {
        let mut different = sites.to_vec();
        different.sort_unstable();
        different.dedup();
        let exist = different
            .last()
            .is_none_or(|&last| (last as usize) < self.sites);
        match exist && sites.len() == self.ranks && different.len() == self.ranks {
            true => Ok(()),
            false => Err(SiteError::Start {
                ranks: self.ranks,
                sites: self.sites,
            }),
        }
    }

    /// Bytes times hops of a placement.
    pub fn cost(&self, sites: &[u32]) -> u128 {
        let ranks = 0..self.ranks;
        let own = |rank| self.among(sites, rank, &mut (0..self.ranks));
        ranks.map(own).sum::<u128>() / 2
    }

    fn bytes(&self, from: usize, to: usize) -> u128 {
        self.bytes[from * self.ranks + to].into()
    }

    fn hops(&self, from: u32, to: u32) -> u128 {
        self.hops[from as usize * self.sites + to as usize].into()
    }

    /// Both ways between two ranks.
    fn between(&self, a: usize, at: u32, b: usize, there: u32) -> u128 {
        self.bytes(a, b) * self.hops(at, there) + self.bytes(b, a) * self.hops(there, at)
    }

    /// Both ways between a rank and some, without itself.
    fn among(&self, sites: &[u32], rank: usize, others: &mut dyn Iterator<Item = usize>) -> u128 {
        others
            .filter(|other| *other != rank)
            .map(|other| self.between(rank, sites[rank], other, sites[other]))
            .sum()
    }

    /// All bytes of a rank.
    fn weight(&self, rank: usize) -> u128 {
        let others = 0..self.ranks;
        others
            .map(|other| self.bytes(rank, other) + self.bytes(other, rank))
            .sum()
    }
}

/// Places ranks, at most as many as there are sites. `starts` are placements of all ranks on different sites, from
/// which the search sets out besides its own; the answer costs no more than any of them.
pub fn place(problem: &Problem, starts: &[Vec<u32>]) -> Placement {
    let mut placement = judge(problem, &heuristic(problem, starts));
    if !placement.is_best && problem.ranks <= MOST_EXACT {
        placement.is_best = exact::search(problem, &mut placement);
        if placement.is_best {
            placement.bound = placement.cost;
        }
    }
    placement
}

/// A placement of all ranks on different sites, its cost and the bound.
pub fn judge(problem: &Problem, sites: &[u32]) -> Placement {
    let (cost, bound) = (problem.cost(sites), lower_bound(problem));
    Placement {
        sites: sites.to_vec(),
        cost,
        bound,
        is_best: bound == cost,
    }
}

/// The best of those given and the greedy start, each improved by exchanges and moves; the first of equals.
pub fn heuristic(problem: &Problem, starts: &[Vec<u32>]) -> Vec<u32> {
    let starts = starts.iter().cloned().chain([greedy(problem)]);
    let improved = starts.map(|start| improve(problem, start));
    improved
        .min_by_key(|sites| problem.cost(sites))
        .unwrap_or_default()
}

/// Gilmore and Lawler's bound: no placement costs less.
pub fn lower_bound(problem: &Problem) -> u128 {
    let ranks: Vec<usize> = (0..problem.ranks).collect();
    let sites: Vec<u32> = (0..problem.sites as u32).collect();
    linear::bound(problem, &ranks, &sites, |_, _| 0)
}

fn greedy(problem: &Problem) -> Vec<u32> {
    let mut sites = vec![0; problem.ranks];
    let mut placed: Vec<usize> = Vec::new();
    let mut free: Vec<u32> = (0..problem.sites as u32).collect();
    let mut left: Vec<usize> = (0..problem.ranks).collect();
    while !left.is_empty() {
        interrupt::check();
        let drawn_by_placed = |rank: usize| {
            let bytes = |other: &usize| problem.bytes(rank, *other) + problem.bytes(*other, rank);
            let drawn: u128 = placed.iter().map(bytes).sum();
            (drawn, problem.weight(rank), std::cmp::Reverse(rank))
        };
        let heaviest = (0..left.len()).max_by_key(|place| drawn_by_placed(left[*place]));
        let rank = left.remove(heaviest.unwrap_or(0));
        let added = |site: u32| -> (u128, u128) {
            let between = |other: &usize| problem.between(rank, site, *other, sites[*other]);
            let to_all = free.iter().map(|&other| problem.hops(site, other)).sum();
            (placed.iter().map(between).sum(), to_all)
        };
        let nearest = (0..free.len()).min_by_key(|place| added(free[*place]));
        let site = free.remove(nearest.unwrap_or(0));
        sites[rank] = site;
        placed.push(rank);
    }
    sites
}

/// Exchanges and moves as long as one lowers the cost.
fn improve(problem: &Problem, mut sites: Vec<u32>) -> Vec<u32> {
    let mut free: Vec<u32> = (0..problem.sites as u32)
        .filter(|site| !sites.contains(site))
        .collect();
    let own = |sites: &[u32], rank| problem.among(sites, rank, &mut (0..problem.ranks));
    let mut changed = true;
    while changed {
        changed = false;
        for a in 0..problem.ranks {
            for b in a + 1..problem.ranks {
                interrupt::check();
                let of_both = |sites: &[u32]| {
                    let between = problem.between(a, sites[a], b, sites[b]);
                    own(sites, a) + own(sites, b) - between
                };
                let before = of_both(&sites);
                sites.swap(a, b);
                match of_both(&sites) < before {
                    true => changed = true,
                    false => sites.swap(a, b),
                }
            }
            for site in &mut free {
                let before = own(&sites, a);
                std::mem::swap(site, &mut sites[a]);
                match own(&sites, a) < before {
                    true => changed = true,
                    false => std::mem::swap(site, &mut sites[a]),
                }
            }
        }
    }
    sites
}
