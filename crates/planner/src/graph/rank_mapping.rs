//! Mapping of ranks to hosts (*sites*) such that pairs of ranks with much traffic have short
//! routes.
//!
//! # The problem
//!
//! Let f(a, b) be the bytes that rank a sends to rank b in a whole collective, and d(x, y) the
//! number of links from site x to site y. The problem is to find different sites p(a) with minimum
//!
//! cost(p) = sum over a and b of f(a, b) d(p(a), p(b)),
//!
//! the total of bytes times hops. This is Koopmans and Beckmann's quadratic assignment problem
//! (Assignment Problems and the Location of Economic Activities, 1957), which is NP-hard.
//!
//! **Heuristic.** The greedy start repeatedly selects the rank that exchanges the most bytes with
//! the ranks that have a site, and assigns the free site that increases the cost least. The greedy
//! start and the given starts are then improved: two ranks exchange their sites, or a rank moves to
//! a free site, as long as this lowers the cost. The result costs no more than any given start.
//!
//! **Lower bound** (Gilmore, Optimal and Suboptimal Algorithms for the Quadratic Assignment
//! Problem, 1962; Lawler, The Quadratic Assignment Problem, 1963). For any p, the bytes of rank a
//! travel different distances: sum over b of f(a, b) d(p(a), p(b)) >= l(a, p(a)). Here l(a, x)
//! multiplies the largest of f(a, .) by the smallest of d(x, .), the second largest by the second
//! smallest, and so on. Of all pairings of two lists of numbers, this pairing has the smallest sum
//! of products. The sites p(a) are all different. Hence cost(p) is at least the minimum of the sum
//! of l(a, x_a) over different x_a, which is a linear assignment problem (`linear`).
//!
//! **Exact search.** Up to [`MAX_EXACT_RANKS`] ranks are placed one by one, the rank with the most
//! traffic first. A branch is abandoned if its lower bound reaches the lowest known cost; the bound
//! counts the traffic with placed ranks as linear costs. If two sites can be exchanged without
//! changing a distance, only one of them is tried. The number of partial placements is limited;
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

/// Maximum number of ranks for which the search is exact. On 10 sites there are 10! = 3,628,800
/// placements.
pub const MAX_EXACT_RANKS: usize = 10;

/// Maximum number of hosts of a network to which ranks are mapped. For 512 hosts, the table of hops
/// takes 1 MiB.
pub const MAX_SITES: u32 = 512;

/// Reason why ranks cannot be mapped to hosts.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SiteError {
    /// There are more ranks than hosts.
    #[error("{ranks} ranks do not fit on {hosts} hosts; request fewer ranks or collectives")]
    Ranks {
        /// Number of ranks of all collectives.
        ranks: usize,
        /// Number of hosts of the network.
        hosts: u32,
    },
    /// The network has too many hosts.
    #[error("ranks are placed at one of at most {MAX_SITES} hosts, not {hosts}; give fewer")]
    Sites {
        /// Number of hosts of the network.
        hosts: u32,
    },
    /// The sites are not different sites of the network, one per rank.
    #[error("{ranks} ranks need {ranks} different sites below {sites}")]
    Start {
        /// Number of ranks of all collectives.
        ranks: usize,
        /// Number of sites.
        sites: usize,
    },
    /// The traffic between two ranks exceeds 2^64 bytes.
    #[error(transparent)]
    Unit(#[from] UnitError),
}

/// Bytes between pairs of ranks, and hops between pairs of sites (hosts).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    ranks: usize,
    sites: usize,
    /// Number of bytes from rank a to rank b; indexed by a times `ranks` plus b.
    bytes: Vec<u64>,
    /// Number of hops from site x to site y; indexed by x times `sites` plus y.
    hops: Vec<u32>,
}

/// Mapping of ranks to sites, with its cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// Site of each rank, indexed by rank; all sites are different.
    pub sites: Vec<u32>,
    /// Sum of bytes times hops over all pairs of ranks.
    pub cost: u128,
    /// Lower bound on the cost of any mapping, in bytes times hops.
    pub bound: u128,
    /// True if it is proved that no mapping costs less.
    pub is_best: bool,
}

impl Problem {
    /// Creates a problem. `bytes` lists the bytes of each pair of ranks, sender by sender. `hops`
    /// lists the hops of each pair of sites, source by source. Missing entries are 0.
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

    /// Creates the problem of mapping the ranks of several schedules to the hosts of a network. The
    /// ranks of the schedules are numbered one schedule after another.
    ///
    /// # Errors
    /// Fails if there are more ranks than hosts, more hosts than [`MAX_SITES`], or more than 2^64
    /// bytes.
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

    /// Checks that `sites` lists a site for each rank.
    ///
    /// # Errors
    /// Fails with [`SiteError::Start`] if a site does not exist or occurs twice, and if the number
    /// of sites is not the number of ranks.
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

    /// Returns the cost of a mapping, in bytes times hops.
    pub fn cost(&self, sites: &[u32]) -> u128 {
        let ranks = 0..self.ranks;
        let rank_cost = |rank| self.rank_cost_with(sites, rank, &mut (0..self.ranks));
        ranks.map(rank_cost).sum::<u128>() / 2
    }

    fn bytes(&self, from: usize, to: usize) -> u128 {
        self.bytes[from * self.ranks + to].into()
    }

    fn hops(&self, from: u32, to: u32) -> u128 {
        self.hops[from as usize * self.sites + to as usize].into()
    }

    /// Returns the bytes that ranks `a` and `b` send each other, times the hops between `site_a`
    /// and `site_b`.
    fn pair_cost(&self, a: usize, site_a: u32, b: usize, site_b: u32) -> u128 {
        self.bytes(a, b) * self.hops(site_a, site_b) + self.bytes(b, a) * self.hops(site_b, site_a)
    }

    /// Returns the bytes that `rank` exchanges with `others`, times the hops between their sites.
    fn rank_cost_with(
        &self,
        sites: &[u32],
        rank: usize,
        others: &mut dyn Iterator<Item = usize>,
    ) -> u128 {
        others
            .filter(|other| *other != rank)
            .map(|other| self.pair_cost(rank, sites[rank], other, sites[other]))
            .sum()
    }

    /// Returns the total bytes that a rank sends and receives.
    fn traffic(&self, rank: usize) -> u128 {
        let others = 0..self.ranks;
        others
            .map(|other| self.bytes(rank, other) + self.bytes(other, rank))
            .sum()
    }
}

/// Maps ranks to sites. There must be at least as many sites as ranks. `starts` are mappings of all
/// ranks to different sites. The search begins at each of these starts, and at a start of its own.
/// The result costs no more than any start.
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

/// Returns the mapping that `sites` describes, with its cost and a lower bound on any cost.
pub fn judge(problem: &Problem, sites: &[u32]) -> Placement {
    let (cost, bound) = (problem.cost(sites), lower_bound(problem));
    Placement {
        sites: sites.to_vec(),
        cost,
        bound,
        is_best: bound == cost,
    }
}

/// Improves each of `starts` and the greedy start by exchanges and moves, and returns the mapping
/// with the lowest cost. On a tie the first start wins.
pub fn heuristic(problem: &Problem, starts: &[Vec<u32>]) -> Vec<u32> {
    let starts = starts.iter().cloned().chain([greedy(problem)]);
    let improved = starts.map(|start| improve(problem, start));
    improved
        .min_by_key(|sites| problem.cost(sites))
        .unwrap_or_default()
}

/// Returns Gilmore and Lawler's lower bound on the cost of any mapping, in bytes times hops.
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
                problem.traffic(rank),
                std::cmp::Reverse(rank),
            )
        };
        let heaviest = (0..unplaced.len()).max_by_key(|place| priority(unplaced[*place]));
        let rank = unplaced.remove(heaviest.unwrap_or(0));
        let added = |site: u32| -> (u128, u128) {
            let between = |other: &usize| problem.pair_cost(rank, site, *other, sites[*other]);
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

fn improve(problem: &Problem, mut sites: Vec<u32>) -> Vec<u32> {
    let mut free: Vec<u32> = (0..problem.sites as u32)
        .filter(|site| !sites.contains(site))
        .collect();
    let rank_cost =
        |sites: &[u32], rank| problem.rank_cost_with(sites, rank, &mut (0..problem.ranks));
    let mut changed = true;
    while changed {
        changed = false;
        for a in 0..problem.ranks {
            for b in a + 1..problem.ranks {
                interrupt::check();
                let pair_cost = |sites: &[u32]| {
                    let between = problem.pair_cost(a, sites[a], b, sites[b]);
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
