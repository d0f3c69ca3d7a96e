//! The least cost by branch and bound.

use super::{Placement, Problem, linear};
use opticoll_base::interrupt;

/// Partial placements times ranks times sites after which a search is broken off: about a second.
const MOST_WORK: u64 = 20_000_000;

struct ExactSearch<'a> {
    problem: &'a Problem,
    /// Ranks, the heaviest first.
    order: Vec<usize>,
    /// Of each site, the lowest that it can be exchanged with.
    alike: Vec<u32>,
    sites: Vec<u32>,
    free: Vec<u32>,
    /// Partial placements, and how many may be tried.
    tried: u64,
    most: u64,
    best: &'a mut Placement,
}

/// Improves a placement to one of the least cost; false where the search was broken off.
pub(super) fn search(problem: &Problem, best: &mut Placement) -> bool {
    let mut order: Vec<usize> = (0..problem.ranks).collect();
    order.sort_by_key(|&rank| std::cmp::Reverse(problem.weight(rank)));
    let mut search = ExactSearch {
        problem,
        order,
        alike: alike(problem),
        sites: vec![0; problem.ranks],
        free: (0..problem.sites as u32).collect(),
        tried: 0,
        most: MOST_WORK / (problem.ranks * problem.sites).max(1) as u64,
        best,
    };
    search.branch(0, 0);
    search.tried <= search.most
}

/// Two sites are alike if exchanging them changes no distance. That is an equivalence: exchanging x and z is
/// exchanging x and y, y and z, and x and y again.
fn alike(problem: &Problem) -> Vec<u32> {
    let sites = 0..problem.sites as u32;
    let same = |one: u32, other: u32| {
        let elsewhere = sites
            .clone()
            .filter(|site| *site != one && *site != other)
            .all(|site| {
                problem.hops(one, site) == problem.hops(other, site)
                    && problem.hops(site, one) == problem.hops(site, other)
            });
        elsewhere && problem.hops(one, other) == problem.hops(other, one)
    };
    let first = |site: u32| (0..site).find(|other| same(site, *other)).unwrap_or(site);
    sites.clone().map(first).collect()
}

impl ExactSearch<'_> {
    /// Places the rank of a depth and all after it; `fixed` is the cost among those before.
    fn branch(&mut self, depth: usize, fixed: u128) {
        self.tried += 1;
        if self.tried > self.most {
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
        let (placed, left) = self.order.split_at(depth);
        let to_placed = |rank: usize, site: u32| -> u128 {
            let placed = placed.iter();
            placed
                .map(|&other| problem.between(rank, site, other, self.sites[other]))
                .sum()
        };
        let rest = linear::bound(problem, left, &self.free, to_placed);
        if fixed + rest >= self.best.cost {
            return;
        }
        let mut choices: Vec<(u128, u32)> = Vec::new();
        let mut seen: Vec<u32> = Vec::new();
        for &site in &self.free {
            let kind = self.alike[site as usize];
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
