//! Mapping of ranks to sites: pairs of ranks with much traffic on short routes.
//!
//! # The problem
//!
//! Let f(a, b) be the bytes that rank a sends to rank b in a whole collective, and d(x, y) the
//! number of links from site x to site y. Find different sites p(a) with the least
//!
//! cost(p) = sum over a and b of f(a, b) d(p(a), p(b)),
//!
//! the bytes times hops that the network carries. This is Koopmans and Beckmann's quadratic
//! assignment problem (Assignment Problems and the Location of Economic Activities, 1957), which is
//! NP-hard.
//!
//! **Heuristic.** The greedy start: the rank with the most bytes to and from placed ranks takes the
//! free site that adds the least cost. This start and the given starts are improved by exchanging
//! the sites of two ranks, or moving a rank to a free site, as long as this lowers the cost. The
//! result costs no more than any given start.
//!
//! **Lower bound** (Gilmore, Optimal and Suboptimal Algorithms for the Quadratic Assignment
//! Problem, 1962; Lawler, The Quadratic Assignment Problem, 1963). For any p, the bytes of rank a
//! travel different distances from its site: sum over b of f(a, b) d(p(a), p(b)) >= l(a, p(a)),
//! where l(a, x) multiplies the greatest of f(a, .) with the least of d(x, .), the next greatest
//! with the next least, and so on. Of all pairings of two lists of numbers this one has the least
//! sum of products. The sites p(a) are all different, so cost(p) is at least the least sum of l(a,
//! x_a) over different x_a, which is a linear assignment problem (`linear`).
//!
//! **Exact search.** Up to [`MAX_EXACT_RANKS`] ranks are placed one by one, heaviest first, on all
//! sites that differ, as long as the bound of the remaining ranks, with the bytes to and from
//! placed ranks as linear costs, is less than the best cost known. Sites that can be exchanged
//! without changing a distance count as one. The number of partial placements is limited;
//! [`Placement::is_best`] is false if the search was stopped.
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

/// Maximum number of ranks that are placed exactly: 10! = 3,628,800 placements on 10 sites.
pub const MAX_EXACT_RANKS: usize = 10;

/// Maximum number of hosts in a network for the mapping of ranks: the table of hops has 1 MiB for
/// 512 hosts.
pub const MAX_SITES: u32 = 512;

/// Reason why ranks cannot be placed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SiteError {
    /// More ranks than hosts.
    #[error("{ranks} ranks do not fit on {hosts} hosts; request fewer ranks or collectives")]
    Ranks {
        /// Number of ranks of all collectives.
        ranks: usize,
        /// Number of hosts of the network.
        hosts: u32,
    },
    /// Too many hosts.
    #[error("ranks are placed at one of at most {MAX_SITES} hosts, not {hosts}; give fewer")]
    Sites {
        /// Number of hosts of the network.
        hosts: u32,
    },
    /// Sites that do not exist, too few sites, or the same site twice.
    #[error("{ranks} ranks need {ranks} different sites below {sites}")]
    Start {
        /// Number of ranks of all collectives.
        ranks: usize,
        /// Number of sites.
        sites: usize,
    },
    /// More than 2^64 bytes.
    #[error(transparent)]
    Unit(#[from] UnitError),
}

/// Bytes between ranks and distances between sites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    ranks: usize,
    sites: usize,
    /// Bytes from rank a to rank b, at a * ranks + b.
    bytes: Vec<u64>,
    /// Hops from site x to site y, at x * sites + y.
    hops: Vec<u32>,
}

/// Sites of ranks and their cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Site of each rank; all sites are different.
    pub sites: Vec<u32>,
    /// Sum of bytes times hops.
    pub cost: u128,
    /// Lower bound on the cost of all placements.
    pub bound: u128,
    /// True if no placement costs less.
    pub is_best: bool,
}

impl Problem {
    /// Creates a problem from the bytes of each pair of ranks and the hops of each pair of sites,
    /// row by row; missing entries are 0.
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

    /// Creates the problem of placing the ranks of several schedules, one after the other, on the
    /// hosts of a network.
    ///
    /// # Errors
    /// More ranks than hosts, too many hosts, or more than 2^64 bytes.
    pub fn on_network(
        network: &BurstNetwork,
        jobs: &[(&Schedule, Bytes)],
    ) -> Result<Problem, SiteError> {
        let ranks_of_job =
            |(schedule, _): &(&Schedule, Bytes)| schedule.collective.ranks() as usize;
        let ranks: usize = jobs.iter().map(ranks_of_job).sum();
        let hosts = network.hosts();
        if hosts > MAX_SITES {
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
                let moved_bytes =
                    schedule
                        .collective
                        .range_bytes(*size, moved.chunk, moved.count)?;
                let (from, to) = (moved.source as usize, moved.destination as usize);
                let place = &mut bytes[(first + from) * ranks + first + to];
                *place = Bytes::new(*place).plus(moved_bytes)?.get();
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

    /// Checks that sites are a placement.
    ///
    /// # Errors
    /// Sites that do not exist, too few or too many sites, or a site twice.
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

    /// Returns the cost of a placement, in bytes times hops.
    pub fn cost(&self, sites: &[u32]) -> u128 {
        let ranks = 0..self.ranks;
        let rank_cost = |rank| self.among(sites, rank, &mut (0..self.ranks));
        ranks.map(rank_cost).sum::<u128>() / 2
    }

    fn bytes(&self, from: usize, to: usize) -> u128 {
        self.bytes[from * self.ranks + to].into()
    }

    fn hops(&self, from: u32, to: u32) -> u128 {
        self.hops[from as usize * self.sites + to as usize].into()
    }

    /// Returns the cost, in bytes times hops, of the traffic in both directions between rank `a` at
    /// site `at` and rank `b` at site `there`.
    fn between(&self, a: usize, at: u32, b: usize, there: u32) -> u128 {
        self.bytes(a, b) * self.hops(at, there) + self.bytes(b, a) * self.hops(there, at)
    }

    /// Returns the cost of both directions between a rank and others, without the rank itself.
    fn among(&self, sites: &[u32], rank: usize, others: &mut dyn Iterator<Item = usize>) -> u128 {
        others
            .filter(|other| *other != rank)
            .map(|other| self.between(rank, sites[rank], other, sites[other]))
            .sum()
    }

    /// Returns all bytes to and from a rank.
    fn weight(&self, rank: usize) -> u128 {
        let others = 0..self.ranks;
        others
            .map(|other| self.bytes(rank, other) + self.bytes(other, rank))
            .sum()
    }
}

/// Places ranks; there must not be more ranks than sites. `starts` are placements of all ranks on
/// different sites, from which the search begins in addition to its own start; the result costs no
/// more than any of them.
pub fn place(problem: &Problem, starts: &[Vec<u32>]) -> Placement {
    let mut placement = judge(problem, &heuristic(problem, starts));
    if !placement.is_best && problem.ranks <= MAX_EXACT_RANKS {
        placement.is_best = exact::search(problem, &mut placement);
        if placement.is_best {
            placement.bound = placement.cost;
        }
    }
    placement
}

/// Returns a placement of all ranks on different sites, with its cost and the bound.
pub fn judge(problem: &Problem, sites: &[u32]) -> Placement {
    let (cost, bound) = (problem.cost(sites), lower_bound(problem));
    Placement {
        sites: sites.to_vec(),
        cost,
        bound,
        is_best: bound == cost,
    }
}

/// Returns the best of the given starts and the greedy start, each improved by exchanges and moves;
/// the first one of equals.
pub fn heuristic(problem: &Problem, starts: &[Vec<u32>]) -> Vec<u32> {
    let starts = starts.iter().cloned().chain([greedy(problem)]);
    let improved = starts.map(|start| improve(problem, start));
    improved
        .min_by_key(|sites| problem.cost(sites))
        .unwrap_or_default()
}

/// Returns Gilmore and Lawler's lower bound on the cost of all placements.
pub fn lower_bound(problem: &Problem) -> u128 {
    let ranks: Vec<usize> = (0..problem.ranks).collect();
    let sites: Vec<u32> = (0..problem.sites as u32).collect();
    linear::bound(problem, &ranks, &sites, |_, _| 0)
}

fn greedy(problem: &Problem) -> Vec<u32> {
    let mut sites = vec![0; problem.ranks];
    let mut placed: Vec<usize> = Vec::new();
    let mut free: Vec<u32> = (0..problem.sites as u32).collect();
    let mut unplaced: Vec<usize> = (0..problem.ranks).collect();
    while !unplaced.is_empty() {
        interrupt::check();
        let priority = |rank: usize| {
            let bytes = |other: &usize| problem.bytes(rank, *other) + problem.bytes(*other, rank);
            let bytes_to_placed: u128 = placed.iter().map(bytes).sum();
            (
                bytes_to_placed,
                problem.weight(rank),
                std::cmp::Reverse(rank),
            )
        };
        let heaviest = (0..unplaced.len()).max_by_key(|place| priority(unplaced[*place]));
        let rank = unplaced.remove(heaviest.unwrap_or(0));
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

/// Improves a placement by exchanges and moves as long as one lowers the cost.
fn improve(problem: &Problem, mut sites: Vec<u32>) -> Vec<u32> {
    let mut free: Vec<u32> = (0..problem.sites as u32)
        .filter(|site| !sites.contains(site))
        .collect();
    let rank_cost = |sites: &[u32], rank| problem.among(sites, rank, &mut (0..problem.ranks));
    let mut changed = true;
    while changed {
        changed = false;
        for a in 0..problem.ranks {
            for b in a + 1..problem.ranks {
                interrupt::check();
                let pair_cost = |sites: &[u32]| {
                    let between = problem.between(a, sites[a], b, sites[b]);
                    rank_cost(sites, a) + rank_cost(sites, b) - between
                };
                let before = pair_cost(&sites);
                sites.swap(a, b);
                match pair_cost(&sites) < before {
                    true => changed = true,
                    false => sites.swap(a, b),
                }
            }
            for site in &mut free {
                let before = rank_cost(&sites, a);
                std::mem::swap(site, &mut sites[a]);
                match rank_cost(&sites, a) < before {
                    true => changed = true,
                    false => std::mem::swap(site, &mut sites[a]),
                }
            }
        }
    }
    sites
}
