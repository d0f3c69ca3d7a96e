//! Exact mapping of ranks to sites by branch and bound.

use super::{Placement, Problem, linear};
use opticoll_base::interrupt;

/// Maximum work of a search, in partial placements times ranks times sites; takes about one second.
const MAX_WORK: u64 = 20_000_000;

struct ExactSearch<'a> {
    problem: &'a Problem,
    /// Ranks, the heaviest first.
    order: Vec<usize>,
    /// Lowest site that each site can be exchanged with.
    equivalent_sites: Vec<u32>,
    sites: Vec<u32>,
    free: Vec<u32>,
    /// Number of partial placements, and its maximum.
    tried: u64,
    max_tried: u64,
    best: &'a mut Placement,
}

/// Improves a placement to one with the least cost; returns false if the search was stopped.
pub(super) fn search(problem: &Problem, best: &mut Placement) -> bool {
    let mut order: Vec<usize> = (0..problem.ranks).collect();
    order.sort_by_key(|&rank| std::cmp::Reverse(problem.weight(rank)));
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

/// Returns the lowest equivalent site of each site. Two sites are equivalent if exchanging them
/// changes no distance. This is an equivalence relation: exchanging x and z is exchanging x and y,
/// y and z, and x and y again.
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
    /// Places the rank of a depth and all later ranks; `fixed` is the cost among the earlier ranks.
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
                .map(|&other| problem.between(rank, site, other, self.sites[other]))
                .sum()
        };
        let rest = linear::bound(problem, unplaced, &self.free, to_placed);
        if fixed + rest >= self.best.cost {
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
