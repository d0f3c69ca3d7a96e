//! The linear assignment problem, and Gilmore and Lawler's bound, which uses it.
//!
//! Columns are assigned to one row after another, each by a shortest augmenting path under the
//! reduced costs c(i, j) - u(i) - v(j) >= 0, which are 0 for assigned pairs (Kuhn, The Hungarian
//! Method for the Assignment Problem, 1955, in the form of Jonker and Volgenant, 1987). The
//! potentials u and v are an optimal dual solution, so the assignment is optimal. The time is
//! O(rows^2 columns).

use super::Problem;
use opticoll_base::interrupt;

/// Returns the minimum total cost of an assignment of a different column to each row. There are at
/// least as many columns as rows. `costs` is indexed by row times `columns` plus column.
pub(super) fn least_sum(rows: usize, columns: usize, costs: &[i128]) -> i128 {
    // Rows and columns count from 1. `row_of[column]` is the row of a column; `row_of[0]` is the
    // row that is assigned next.
    let mut row_potential = vec![0i128; rows + 1];
    let mut column_potential = vec![0i128; columns + 1];
    let mut row_of = vec![0usize; columns + 1];
    for row in 1..=rows {
        row_of[0] = row;
        let mut least = vec![i128::MAX; columns + 1];
        let mut came_from = vec![0usize; columns + 1];
        let mut visited = vec![false; columns + 1];
        let mut column = 0;
        while row_of[column] != 0 {
            interrupt::check();
            visited[column] = true;
            let current = row_of[column];
            let (mut step, mut next) = (i128::MAX, 0);
            for other in 1..=columns {
                if visited[other] {
                    continue;
                }
                let cost = costs[(current - 1) * columns + other - 1];
                let reduced = cost - row_potential[current] - column_potential[other];
                if reduced < least[other] {
                    least[other] = reduced;
                    came_from[other] = column;
                }
                if least[other] < step {
                    (step, next) = (least[other], other);
                }
            }
            for other in 0..=columns {
                if visited[other] {
                    row_potential[row_of[other]] += step;
                    column_potential[other] -= step;
                } else if other > 0 {
                    least[other] -= step;
                }
            }
            column = next;
        }
        while column != 0 {
            let before = came_from[column];
            row_of[column] = row_of[before];
            column = before;
        }
    }
    let assigned = (1..=columns).filter(|column| row_of[*column] != 0);
    assigned
        .map(|column| costs[(row_of[column] - 1) * columns + column - 1])
        .sum()
}

/// Returns a lower bound on the cost of mapping `ranks` to `sites`. The cost is the cost of the
/// traffic among these ranks, plus `linear_cost(rank, site)` for each rank and its site.
pub(super) fn bound(
    problem: &Problem,
    ranks: &[usize],
    sites: &[u32],
    linear_cost: impl Fn(usize, u32) -> u128,
) -> u128 {
    let falling: Vec<Vec<u128>> = ranks
        .iter()
        .map(|&rank| {
            let others = ranks.iter().filter(|other| **other != rank);
            let mut bytes: Vec<u128> = others.map(|&other| problem.bytes(rank, other)).collect();
            bytes.sort_unstable_by(|one, other| other.cmp(one));
            bytes
        })
        .collect();
    let rising: Vec<Vec<u128>> = sites
        .iter()
        .map(|&site| {
            let others = sites.iter().filter(|other| **other != site);
            let mut hops: Vec<u128> = others.map(|&other| problem.hops(site, other)).collect();
            hops.sort_unstable();
            hops
        })
        .collect();
    let mut costs = Vec::with_capacity(ranks.len() * sites.len());
    for (&rank, bytes) in ranks.iter().zip(&falling) {
        for (&site, hops) in sites.iter().zip(&rising) {
            let products = bytes.iter().zip(hops).map(|(bytes, hops)| bytes * hops);
            costs.push((products.sum::<u128>() + linear_cost(rank, site)) as i128);
        }
    }
    least_sum(ranks.len(), sites.len(), &costs) as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the minimum total cost by trying all assignments.
    fn least_of_all(rows: usize, columns: usize, costs: &[i128], taken: &mut Vec<usize>) -> i128 {
        let row = taken.len();
        if row == rows {
            return 0;
        }
        let mut least = i128::MAX;
        for column in 0..columns {
            if !taken.contains(&column) {
                taken.push(column);
                let other_rows = least_of_all(rows, columns, costs, taken);
                taken.pop();
                least = least.min(costs[row * columns + column] + other_rows);
            }
        }
        least
    }

    #[test]
    fn the_least_sum_is_that_of_all_assignments() {
        for seed in 0..200u64 {
            let rows = 1 + (seed % 5) as usize;
            let columns = rows + (seed / 5 % 3) as usize;
            let cost =
                |place: u64| i128::from((seed * 7919 + place * place * 31 + place * 59) % 97 % 20);
            let costs: Vec<i128> = (0..(rows * columns) as u64).map(cost).collect();
            let expected = least_of_all(rows, columns, &costs, &mut Vec::new());
            assert_eq!(least_sum(rows, columns, &costs), expected, "{costs:?}");
        }
    }
}
