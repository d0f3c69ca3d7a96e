//! Lower bound on the length of trees of lightpaths with at most S generations (theorem W5).
//!
//! A tree spans all ranks from a root v. A lightpath of slot t leads from a rank that has the data
//! after slot t - 1 to another rank. Its length is that of a shortest route between them in slot t.
//! A *moat* is a set of pairs (rank, slot after which the rank has the data) that every tree must
//! enter:
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
const NO_LIGHTPATH: u32 = NO_PATH;

/// Order in which the search raises moats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The smallest moat first, each as far as the slack permits.
    Smallest,
    /// The rank with the least sum of weights first, each by this weight, so that all moats grow at
    /// the same pace.
    Even(u32),
}

/// Lengths of the lightpaths of a slot.
#[derive(Clone, Copy)]
pub(super) struct Slot<'a> {
    /// Length of a shortest route from rank a to rank b, at the index a * ranks + b; [`NO_PATH`] if
    /// there is no lightpath.
    pub(super) routes: &'a [u32],
    /// Factor by which lightpaths are longer than their routes.
    pub(super) price: u32,
    /// Length that is added to each lightpath from the root.
    pub(super) at_root: u32,
}

/// Trees from the rank `root` to all ranks.
pub(super) struct Trees<'a> {
    pub(super) ranks: usize,
    pub(super) root: usize,
    pub(super) slots: &'a [Slot<'a>],
}

/// Lightpath of a tree. It leads away from the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lightpath {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Index of the slot.
    pub(super) slot: usize,
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

impl Trees<'_> {
    /// Returns the length of a lightpath in the slot with the index `slot`, or [`NO_PATH`].
    fn length(&self, from: usize, to: usize, slot: usize) -> u32 {
        let slot = &self.slots[slot];
        let added = if from == self.root { slot.at_root } else { 0 };
        match slot.routes[from * self.ranks + to] {
            NO_PATH => NO_PATH,
            route => {
                let length = route.saturating_mul(slot.price).saturating_add(added);
                length.min(NO_PATH - 1)
            }
        }
    }
}

/// Lower bound on the length of trees.
pub(super) struct Proved {
    pub(super) length: u64,
    /// Number of slacks that the search examined.
    pub(super) work: u64,
}

/// Returns a lower bound on the length of the shortest tree. `None` if no tree reaches all
/// ranks in so few slots. The search stops after about `max_work` slacks.
pub(super) fn least_length(trees: &Trees<'_>, order: Order, max_work: u64) -> Option<Proved> {
    raised(trees, order, max_work).map(|(proved, _)| proved)
}

/// Returns the same as [`least_length`], and a short tree, which is empty if the search stopped
/// early.
pub(super) fn with_tree(
    trees: &Trees<'_>,
    order: Order,
    max_work: u64,
) -> Option<(Proved, Vec<Lightpath>)> {
    let (proved, complete) = raised(trees, order, max_work)?;
    let tree = complete.map_or(Vec::new(), |search| search.tree());
    Some((proved, tree))
}

/// Raises moats. Returns the bound, and the search unless it stopped early.
fn raised<'a>(
    trees: &'a Trees<'a>,
    order: Order,
    max_work: u64,
) -> Option<(Proved, Option<Search<'a>>)> {
    let mut search = Search::new(trees);
    let mut open = BinaryHeap::new();
    let others = (0..trees.ranks).filter(|&rank| rank != trees.root);
    open.extend(others.map(|rank| Reverse((0u64, rank))));
    let mut weights = vec![0u64; trees.ranks];
    let mut sum = 0u64;
    while let Some(Reverse((key, rank))) = open.pop() {
        interrupt::check();
        if search.work > max_work {
            open.push(Reverse((key, rank)));
            break;
        }
        if search.joins_root(rank) {
            continue;
        }
        let own_key = match order {
            Order::Smallest => search.size(),
            Order::Even(_) => weights[rank],
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
            Order::Even(step) => least.min(step.max(1)),
        };
        search.raise(raise);
        sum += u64::from(raise);
        weights[rank] += u64::from(raise);
        open.push(Reverse((own_key, rank)));
    }
    let proved = Proved {
        length: sum,
        work: search.work,
    };
    Some((proved, open.is_empty().then_some(search)))
}

/// Returns a tree in which each lightpath is replaced by a shorter one if there is one that fits
/// between its parent and its children.
pub(super) fn shortened(trees: &Trees<'_>, mut tree: Vec<Lightpath>) -> Vec<Lightpath> {
    /// Number of times that each rank looks for a shorter lightpath.
    const PASSES: usize = 2;
    // Number of slots until each rank has the data, and until its first child has them.
    let mut slots = vec![0; trees.ranks];
    for lightpath in &tree {
        slots[lightpath.to] = lightpath.slot + 1;
    }
    for _ in 0..PASSES {
        for place in 0..tree.len() {
            let Lightpath { from, to, slot } = tree[place];
            let children = tree.iter().filter(|child| child.from == to);
            let until = children.map(|child| child.slot).min();
            let until = until.unwrap_or(trees.slots.len());
            let mut best = (trees.length(from, to, slot), from, slot);
            for slot in 0..until {
                for from in (0..trees.ranks).filter(|&from| slots[from] <= slot && from != to) {
                    best = best.min((trees.length(from, to, slot), from, slot));
                }
            }
            let (_, from, slot) = best;
            tree[place] = Lightpath { from, to, slot };
            slots[to] = slot + 1;
        }
    }
    tree
}

impl Search<'_> {
    fn new<'a>(trees: &'a Trees<'a>) -> Search<'a> {
        let ranks = trees.ranks;
        let mut slack = Vec::with_capacity(trees.slots.len() * ranks * ranks);
        for slot in 0..trees.slots.len() {
            for b in 0..ranks {
                slack.extend((0..ranks).map(|a| trees.length(a, b, slot)));
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
        let mut open = vec![(rank, self.trees.slots.len())];
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

    /// Returns a tree of lightpaths without slack, each in the first slot that has one, and
    /// replaces its lightpaths by shorter ones. Empty if some rank is not joined to the root.
    fn tree(&self) -> Vec<Lightpath> {
        let (ranks, trees) = (self.trees.ranks, self.trees);
        // Number of slots until each rank has the data.
        let mut slots = vec![usize::MAX; ranks];
        slots[trees.root] = 0;
        let mut tree = Vec::with_capacity(ranks);
        for slot in 0..trees.slots.len() {
            for to in 0..ranks {
                if slots[to] != usize::MAX {
                    continue;
                }
                let row = &self.slack[self.place(slot + 1, to)..][..ranks];
                let joined = (0..ranks).filter(|&from| row[from] == 0 && slots[from] <= slot);
                let shortest = joined.min_by_key(|&from| trees.length(from, to, slot));
                if let Some(from) = shortest {
                    slots[to] = slot + 1;
                    tree.push(Lightpath { from, to, slot });
                }
            }
        }
        match slots.contains(&usize::MAX) {
            true => Vec::new(),
            false => shortened(trees, tree),
        }
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
    use super::{Lightpath, Order, Slot, Trees, least_length, with_tree};
    use crate::wdm_ring::relay_tree::RelayCosts;

    const ORDERS: [Order; 2] = [Order::Smallest, Order::Even(1)];

    /// Units of a link, so that weights may be fractions of links.
    const UNITS: u32 = 8;

    fn ring(ranks: usize) -> Vec<u32> {
        let apart = |a: usize, b: usize| a.abs_diff(b).min(ranks - a.abs_diff(b)) as u32;
        (0..ranks * ranks)
            .map(|place| apart(place / ranks, place % ranks))
            .collect()
    }

    /// Returns the least length over all trees and slots of their lightpaths; `None` if there is no
    /// tree. A rank in slot t may have any parent in an earlier slot; the root has slot 0.
    fn exhaustive(ranks: usize, lengths: &[Slot<'_>]) -> Option<u64> {
        let mut least = None;
        let mut slots = vec![1; ranks];
        slots[0] = 0;
        loop {
            let to = |rank: usize| {
                let parents = (0..ranks).filter(|&parent| slots[parent] < slots[rank]);
                let own = lengths[slots[rank] - 1];
                let length = |parent: usize| match own.routes[parent * ranks + rank] {
                    u32::MAX => None,
                    route if parent == 0 => Some(route * own.price + own.at_root),
                    route => Some(route * own.price),
                };
                parents.filter_map(length).min().map(u64::from)
            };
            let length: Option<u64> = (1..ranks).map(to).sum();
            least = match (least, length) {
                (Some(least), Some(length)) => Some(length.min(least)),
                (least, length) => least.or(length),
            };
            let Some(next) = (1..ranks).find(|&rank| slots[rank] < lengths.len()) else {
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
                let slot = Slot {
                    routes: &ring(ranks),
                    price: UNITS,
                    at_root: 0,
                };
                let trees = Trees {
                    ranks,
                    root: ranks / 3,
                    slots: &vec![slot; slots],
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

    /// Asserts that the lightpaths join the root to every rank, and are at least as long as the
    /// shortest tree.
    fn check(trees: &Trees<'_>, tree: &[Lightpath], exact: Option<u64>) {
        let mut slots = vec![None; trees.ranks];
        slots[trees.root] = Some(0);
        let mut ordered = tree.to_vec();
        ordered.sort_by_key(|lightpath| lightpath.slot);
        let mut length = 0;
        for Lightpath { from, to, slot } in ordered {
            assert!(slots[from].is_some_and(|before| before <= slot), "{tree:?}");
            assert_eq!(slots[to].replace(slot + 1), None, "{tree:?}");
            length += u64::from(trees.length(from, to, slot));
        }
        assert!(slots.iter().all(Option::is_some), "{tree:?}");
        assert!(exact.is_some_and(|exact| exact <= length), "{tree:?}");
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
            let mut routes = || -> Vec<u32> {
                let places = 0..ranks * ranks;
                places
                    .map(|_| match random(6) {
                        0 => u32::MAX,
                        _ => 1 + random(9),
                    })
                    .collect()
            };
            let routes = [routes(), routes(), routes()];
            for slots in 1..=ranks {
                let lengths = (0..slots).map(|slot| Slot {
                    routes: &routes[slot % 3],
                    price: random(5),
                    at_root: random(2) * random(20),
                });
                let lengths: Vec<Slot<'_>> = lengths.collect();
                let trees = Trees {
                    ranks,
                    root: 0,
                    slots: &lengths,
                };
                let exact = exhaustive(ranks, &lengths);
                for order in ORDERS.into_iter().chain([Order::Even(7)]) {
                    for work in [40, 400, u64::MAX] {
                        let proved = with_tree(&trees, order, work);
                        let tree = proved.as_ref().map(|(_, tree)| tree.as_slice());
                        if let Some(tree) = tree.filter(|tree| !tree.is_empty()) {
                            check(&trees, tree, exact);
                        }
                        let proved = proved.map(|(proved, _)| proved.length);
                        let below = match (proved, exact) {
                            (Some(proved), Some(exact)) => proved <= exact,
                            (None, Some(_)) => false,
                            (_, None) => true,
                        };
                        assert!(below, "{routes:?}, {slots} slots: {proved:?}, {exact:?}");
                    }
                }
            }
        }
    }
}
