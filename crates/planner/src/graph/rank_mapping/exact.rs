//! Exact mapping of ranks to sites by branch and bound.

use super::{Placement, Problem, linear};
use opticoll_base::interrupt;

/// Maximum work of a search, in partial mappings times ranks times sites: about one second.
const MAX_WORK: u64 = 20_000_000;

struct ExactSearch<'a> {
    problem: &'a Problem,
    order: Vec<usize>,
    /// Lowest of the sites that are equivalent to each site (see [`equivalent_sites`]); indexed by
    /// site.
    equivalent_sites: Vec<u32>,
    sites: Vec<u32>,
    free: Vec<u32>,
    /// Number of partial mappings tried so far, and its maximum.
    tried: u64,
    max_tried: u64,
    best: &'a mut Placement,
}

/// Improves `best` to a mapping with minimum cost. Returns false if the search was stopped.
pub(super) fn search(problem: &Problem, best: &mut Placement) -> bool {
    let mut order: Vec<usize> = (0..problem.ranks).collect();
    order.sort_by_key(|&rank| std::cmp::Reverse(problem.traffic(rank)));
    let mut search = ExactSearch {
        problem,
        order,
        equivalent_sites: equivalent_sites(problem),
        sites: vec![0; problem.ranks],
        free: (0..problem.sites as u32).collect(),
        tried: 0,
        max_tried: MAX_WORK / (problem.ranks * problem.sites).max(1) as u64,
        best,
    };
    search.branch(0, 0);
    search.tried <= search.max_tried
}

/// Returns, for each site, the equivalent site with the lowest number. Two sites are equivalent if
/// exchanging them changes no distance. This is an equivalence relation, because exchanging x and z
/// equals exchanging x and y, then y and z, then x and y again.
fn equivalent_sites(problem: &Problem) -> Vec<u32> {
    let sites = 0..problem.sites as u32;
    let are_equivalent = |one: u32, other: u32| {
        let same_elsewhere = sites
            .clone()
            .filter(|site| *site != one && *site != other)
            .all(|site| {
                problem.hops(one, site) == problem.hops(other, site)
                    && problem.hops(site, one) == problem.hops(site, other)
            });
        same_elsewhere && problem.hops(one, other) == problem.hops(other, one)
    };
    let first = |site: u32| {
        (0..site)
            .find(|other| are_equivalent(site, *other))
            .unwrap_or(site)
    };
    sites.clone().map(first).collect()
}

impl ExactSearch<'_> {
    /// Places the rank at index `depth` of `order` and all later ranks. `fixed` is the cost of the
    /// traffic among earlier ranks.
    fn branch(&mut self, depth: usize, fixed: u128) {
        self.tried += 1;
        if self.tried > self.max_tried {
            return;
        }
        let problem = self.problem;
        let Some(&rank) = self.order.get(depth) else {
            if fixed < self.best.cost {
                self.best.cost = fixed;
                self.best.sites.clone_from(&self.sites);
            }
            return;
        };
        let (placed, unplaced) = self.order.split_at(depth);
        let to_placed = |rank: usize, site: u32| -> u128 {
            let placed = placed.iter();
            placed
                .map(|&other| problem.pair_cost(rank, site, other, self.sites[other]))
                .sum()
        };
        let remaining_bound = linear::bound(problem, unplaced, &self.free, to_placed);
        if fixed + remaining_bound >= self.best.cost {
            return;
        }
        let mut choices: Vec<(u128, u32)> = Vec::new();
        let mut seen: Vec<u32> = Vec::new();
        for &site in &self.free {
            let kind = self.equivalent_sites[site as usize];
            if !seen.contains(&kind) {
                seen.push(kind);
                choices.push((to_placed(rank, site), site));
            }
        }
        choices.sort_unstable();
        for (added, site) in choices {
            interrupt::check();
            self.sites[rank] = site;
            self.free.retain(|free| *free != site);
            self.branch(depth + 1, fixed + added);
            self.free.push(site);
            self.free.sort_unstable();
        }
    }
}
