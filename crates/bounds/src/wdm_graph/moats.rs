//! Lower bound on the length of trees of lightpaths with at most S generations (theorem W5).
//!
//! A tree spans all ranks from a root v. A lightpath of slot t leads from a rank that has the data
//! after slot t - 1 to another rank. Its length is the length d of a shortest route between them,
//! times the price of slot t. A *moat* is a set of pairs (rank, slot after which the rank has the
//! data) that every tree must enter:
//!
//! ```text
//! moat tau:      the pairs (b, t) with 1 <= t <= tau(b);  tau(v) = 0, and tau(w) = S for some w
//! is crossed by: a lightpath of slot t from a to b with t <= tau(b), and a = v or t > tau(a) + 1
//! bound:         sum of z_j, if for each lightpath the weights z_j of the moats that the lightpath
//!                crosses sum up to at most its length
//! ```
//!
//! The search raises the weight of one moat at a time (dual ascent: Wong, Mathematical Programming
//! 28, 1984). The slack of a lightpath is its length minus the weights of the moats that it
//! crosses. The moat of a rank w consists of all pairs from which lightpaths without slack lead to
//! w in rising slots. If such lightpaths lead from the root to w, rank w needs no further moat.
//! Every state of the search proves a bound, so that the search may stop at any time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::fibres::NO_PATH;
use opticoll_base::interrupt;

/// Slack of a lightpath that does not exist.
const NO_LIGHTPATH: u32 = u32::MAX;

/// Order in which the search raises moats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The smallest moat first, each as far as the slack permits.
    Smallest,
    /// The rank with the least sum of weights first, each by a weight of 1, so that all moats grow
    /// at the same pace.
    Even,
}

/// Trees from the rank `root` to all ranks. The number of slots is the number of prices.
pub(super) struct Trees<'a> {
    pub(super) ranks: usize,
    /// Length of a shortest lightpath from rank a to rank b, at the index a * ranks + b;
    /// [`NO_PATH`] if there is no lightpath.
    pub(super) lengths: &'a [u32],
    pub(super) root: usize,
    /// Factor by which the lightpaths of each slot are longer.
    pub(super) prices: &'a [u32],
}

/// State of the search.
struct Search<'a> {
    trees: &'a Trees<'a>,
    /// Slack of the lightpath of slot t from a to b, at the index ((t - 1) * ranks + b) * ranks +
    /// a.
    slack: Vec<u32>,
    /// The header's tau of the moat in hand, indexed by rank.
    last: Vec<usize>,
    /// Ranks with tau > 0.
    inside: Vec<usize>,
    /// Number of slacks examined.
    work: u64,
}

/// Lower bound on the priced length of trees.
pub(super) struct Proved {
    pub(super) length: u64,
    /// Number of slacks that the search examined.
    pub(super) work: u64,
}

/// Returns a lower bound on the priced length of the shortest tree. `None` if no tree reaches all
/// ranks in so few slots. The search stops after about `max_work` slacks.
pub(super) fn least_length(trees: &Trees<'_>, order: Order, max_work: u64) -> Option<Proved> {
    let mut search = Search::new(trees);
    let mut open = BinaryHeap::new();
    let others = (0..trees.ranks).filter(|&rank| rank != trees.root);
    open.extend(others.map(|rank| Reverse((0u64, rank))));
    let mut weights = vec![0u64; trees.ranks];
    let mut sum = 0u64;
    while let Some(Reverse((key, rank))) = open.pop() {
        interrupt::check();
        if search.work > max_work {
            break;
        }
        if search.joins_root(rank) {
            continue;
        }
        let own_key = match order {
            Order::Smallest => search.size(),
            Order::Even => weights[rank],
        };
        if own_key > key
            && open
                .peek()
                .is_some_and(|Reverse((next, _))| own_key > *next)
        {
            open.push(Reverse((own_key, rank)));
            continue;
        }
        let least = search.least_slack()?;
        let raise = match order {
            Order::Smallest => least,
            Order::Even => least.min(1),
        };
        search.raise(raise);
        sum += u64::from(raise);
        weights[rank] += u64::from(raise);
        open.push(Reverse((own_key, rank)));
    }
    Some(Proved {
        length: sum,
        work: search.work,
    })
}

impl Search<'_> {
    fn new<'a>(trees: &'a Trees<'a>) -> Search<'a> {
        let ranks = trees.ranks;
        let mut slack = Vec::with_capacity(trees.prices.len() * ranks * ranks);
        for price in trees.prices {
            for b in 0..ranks {
                slack.extend((0..ranks).map(|a| match trees.lengths[a * ranks + b] {
                    NO_PATH => NO_LIGHTPATH,
                    length => length.saturating_mul(*price).min(NO_LIGHTPATH - 1),
                }));
            }
        }
        Search {
            trees,
            work: slack.len() as u64,
            slack,
            last: vec![0; ranks],
            inside: Vec::new(),
        }
    }

    /// Returns the place of the slacks of the lightpaths to rank `to` in slot `slot`.
    fn place(&self, slot: usize, to: usize) -> usize {
        ((slot - 1) * self.trees.ranks + to) * self.trees.ranks
    }

    /// Finds the moat of a rank. Returns whether lightpaths without slack join the root to the
    /// rank, so that the rank has no moat.
    fn joins_root(&mut self, rank: usize) -> bool {
        let (ranks, root) = (self.trees.ranks, self.trees.root);
        for inside in self.inside.drain(..) {
            self.last[inside] = 0;
        }
        let mut open = vec![(rank, self.trees.prices.len())];
        while let Some((to, until)) = open.pop() {
            let before = self.last[to];
            if before >= until {
                continue;
            }
            if before == 0 {
                self.inside.push(to);
            }
            self.last[to] = until;
            for slot in before + 1..=until {
                let place = self.place(slot, to);
                let row = &self.slack[place..place + ranks];
                if row[root] == 0 {
                    return true;
                }
                if slot == 1 {
                    continue;
                }
                self.work += ranks as u64;
                for (from, slack) in row.iter().enumerate() {
                    if *slack == 0 && from != to && self.last[from] < slot - 1 {
                        open.push((from, slot - 1));
                    }
                }
            }
        }
        false
    }

    /// Returns the number of pairs of the moat.
    fn size(&self) -> u64 {
        self.inside.iter().map(|&rank| self.last[rank] as u64).sum()
    }

    /// Calls `visit` for the slack of every lightpath that crosses the moat.
    fn for_each_crossing(&mut self, mut visit: impl FnMut(&mut u32)) {
        let (ranks, root) = (self.trees.ranks, self.trees.root);
        for &to in &self.inside {
            for slot in 1..=self.last[to] {
                let place = ((slot - 1) * ranks + to) * ranks;
                let row = &mut self.slack[place..place + ranks];
                if slot == 1 {
                    visit(&mut row[root]);
                    continue;
                }
                self.work += ranks as u64;
                for (from, slack) in row.iter_mut().enumerate() {
                    let is_outside = from == root || self.last[from] < slot - 1;
                    if is_outside && from != to {
                        visit(slack);
                    }
                }
            }
        }
    }

    /// Returns the least slack of the lightpaths that cross the moat; `None` if there is no such
    /// lightpath.
    fn least_slack(&mut self) -> Option<u32> {
        let mut least = NO_LIGHTPATH;
        self.for_each_crossing(|slack| least = least.min(*slack));
        (least < NO_LIGHTPATH).then_some(least)
    }

    fn raise(&mut self, weight: u32) {
        self.for_each_crossing(|slack| {
            if *slack != NO_LIGHTPATH {
                *slack -= weight;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Order, Trees, least_length};
    use crate::wdm_ring::relay_tree::RelayCosts;

    const ORDERS: [Order; 2] = [Order::Smallest, Order::Even];

    /// Units of a link, so that weights may be fractions of links.
    const UNITS: u32 = 8;

    fn ring(ranks: usize) -> Vec<u32> {
        let apart = |a: usize, b: usize| a.abs_diff(b).min(ranks - a.abs_diff(b)) as u32;
        (0..ranks * ranks)
            .map(|place| apart(place / ranks, place % ranks))
            .collect()
    }

    /// Returns the least priced length over all trees and slots of their lightpaths; `None` if
    /// there is no tree. A rank in slot t may have any parent in an earlier slot; the root has slot
    /// 0.
    fn exhaustive(ranks: usize, lengths: &[u32], prices: &[u32]) -> Option<u64> {
        let mut least = None;
        let mut slots = vec![1; ranks];
        slots[0] = 0;
        loop {
            let to = |rank: usize| {
                let parents = (0..ranks).filter(|&parent| slots[parent] < slots[rank]);
                let shortest = parents.map(|parent| lengths[parent * ranks + rank]).min()?;
                let price = u64::from(prices[slots[rank] - 1]);
                (shortest < u32::MAX).then(|| u64::from(shortest) * price)
            };
            let length: Option<u64> = (1..ranks).map(to).sum();
            least = match (least, length) {
                (Some(least), Some(length)) => Some(length.min(least)),
                (least, length) => least.or(length),
            };
            let Some(next) = (1..ranks).find(|&rank| slots[rank] < prices.len()) else {
                return least;
            };
            slots[1..next].fill(1);
            slots[next] += 1;
        }
    }

    #[test]
    fn moats_prove_the_lengths_of_relay_trees_on_rings() {
        for ranks in [3, 8, 16, 33, 64] {
            for (slots, exact) in (1..=8).zip(RelayCosts::new(ranks as u32)) {
                let trees = Trees {
                    ranks,
                    lengths: &ring(ranks),
                    root: ranks / 3,
                    prices: &vec![UNITS; slots],
                };
                let proved = ORDERS.map(|order| least_length(&trees, order, u64::MAX));
                let proved = proved.map(|proved| proved.expect("a tree").length);
                let greatest = proved
                    .into_iter()
                    .max()
                    .map(|length| length.div_ceil(UNITS.into()));
                assert_eq!(greatest, Some(exact), "{ranks} ranks, {slots} slots");
            }
        }
    }

    #[test]
    fn moats_never_exceed_the_shortest_of_all_trees() {
        let mut seed = 17u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(99);
            ((seed >> 33) % below) as u32
        };
        for case in 0..300 {
            let ranks = 2 + case % 5;
            // Distances on a graph with directed links, without the triangle inequality in part;
            // some lightpaths do not exist.
            let lengths: Vec<u32> = (0..ranks * ranks)
                .map(|_| match random(6) {
                    0 => u32::MAX,
                    _ => 1 + random(9),
                })
                .collect();
            for slots in 1..=ranks {
                let prices: Vec<u32> = (0..slots).map(|_| random(5)).collect();
                let trees = Trees {
                    ranks,
                    lengths: &lengths,
                    root: 0,
                    prices: &prices,
                };
                let exact = exhaustive(ranks, &lengths, &prices);
                for order in ORDERS {
                    for work in [40, 400, u64::MAX] {
                        let proved = least_length(&trees, order, work).map(|proved| proved.length);
                        let below = match (proved, exact) {
                            (Some(proved), Some(exact)) => proved <= exact,
                            (None, Some(_)) => false,
                            (_, None) => true,
                        };
                        assert!(below, "{lengths:?}, {prices:?}: {proved:?}, {exact:?}");
                    }
                }
            }
        }
    }
}
