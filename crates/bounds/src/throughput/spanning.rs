//! Greatest number of spanning trees that fit into two-way cables, and the partition that proves
//! that no more trees fit (theorem E9).
//!
//! Each tree takes a share of the rate of its cables, and x* is the greatest sum of shares:
//!
//! ```text
//! x* = min over partitions of (rate between parts) / (G - 1),  G the number of parts
//! ```
//!
//! An all_reduce combines along a tree in one direction of its cables and spreads in the other, so
//! that a vector of M takes M / x*, and no plan takes less.
//!
//! **Search** (Lee and Streinu, Pebble game algorithms and sparse graphs, Discrete Mathematics 308,
//! 2008, with amounts in place of single edges). Each rank has k slots. A unit that is taken of a
//! cable fills a slot of one of its ends, and may move to a slot of the other end. A chain of such
//! moves frees a slot of one rank and fills a slot of another. For each cable the search first
//! frees as many slots of its two ends as possible; the free slots of both ends beyond k can then
//! be taken of the cable. If a cable is not taken whole, the ranks that such chains reach are full:
//! they have k trees among themselves. Full sets with a common rank are full together, and these
//! sets are the parts.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use opticoll_base::interrupt;

/// Cable between two ranks, with its rate in each direction.
pub type Cable = (u32, u32, u128);

/// Mark of the rank at which a search begins.
const NO_CABLE: usize = usize::MAX;

/// Partition that allows the fewest trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TightestPartition {
    /// Part of each rank, numbered from 0.
    pub parts: Vec<u32>,
    /// Number of parts.
    pub count: u128,
    /// Rate of the cables between parts, in the unit of the given cables.
    pub rate: u128,
}

/// Returns the tightest partition; `None` for a single rank, if cables do not join all ranks, or if
/// the search takes more than `max_steps` steps over cables.
pub fn tightest_partition(
    ranks: u32,
    cables: &[Cable],
    max_steps: u64,
) -> Option<TightestPartition> {
    let mut tightest = TightestPartition::of(&(0..ranks).collect::<Vec<u32>>(), cables);
    let mut work = 0;
    while tightest.count > 1 && tightest.rate > 0 {
        // Rates are scaled so that this partition allows a whole number of trees.
        let wider: Option<Vec<Cable>> = cables
            .iter()
            .map(|&(one, other, rate)| Some((one, other, rate.checked_mul(tightest.count - 1)?)))
            .collect();
        let mut slots = Slots::new(ranks, &wider?, tightest.rate);
        slots.work = work;
        if slots.take_all(max_steps)? {
            return Some(tightest);
        }
        work = slots.work;
        let next = TightestPartition::of(&slots.parts(), cables);
        debug_assert!(next.count < tightest.count, "parts are joined");
        tightest = next;
    }
    None
}

/// Packs `trees` trees that lead away from `root`, and returns the rate that they use from each
/// rank to each other rank. `Some(None)` if the cables cannot hold the trees, `None` after
/// `max_steps` steps over cables. The far ends of cables fill their slots first, so that the trees
/// are shallow.
pub fn away_from(
    root: u32,
    ranks: u32,
    cables: &[Cable],
    trees: u128,
    max_steps: u64,
) -> Option<Option<FxHashMap<(u32, u32), u128>>> {
    let mut slots = Slots::new(ranks, cables, trees);
    slots.begin_at(root);
    if !slots.take_all(max_steps)? {
        return Some(None);
    }
    while slots.free[root as usize] < trees {
        slots.try_free(&[root], trees).ok()?;
    }
    let mut taken = FxHashMap::default();
    for (&(one, other, _), &[into_one, into_other]) in slots.cables.iter().zip(&slots.taken) {
        for (ends, amount) in [((other, one), into_one), ((one, other), into_other)] {
            if amount > 0 {
                *taken.entry(ends).or_default() += amount;
            }
        }
    }
    Some(Some(taken))
}

impl TightestPartition {
    /// Returns the partition of ranks with equal numbers.
    fn of(numbers: &[u32], cables: &[Cable]) -> TightestPartition {
        let mut from_0: FxHashMap<u32, u32> = FxHashMap::default();
        let parts = numbers.iter().map(|number| {
            let next = from_0.len() as u32;
            *from_0.entry(*number).or_insert(next)
        });
        let parts: Vec<u32> = parts.collect();
        let between = cables
            .iter()
            .filter(|(one, other, _)| parts[*one as usize] != parts[*other as usize]);
        TightestPartition {
            count: from_0.len() as u128,
            rate: between.map(|(.., rate)| *rate).sum(),
            parts,
        }
    }
}

/// Amounts taken of cables, by the end whose slots they fill.
struct Slots {
    cables: Vec<Cable>,
    /// Amounts of each cable that fill slots of its first and its second end.
    taken: Vec<[u128; 2]>,
    /// Cables of each rank.
    at: Vec<Vec<usize>>,
    /// Free slots of each rank.
    free: Vec<u128>,
    /// Number of slots of each rank.
    trees: u128,
    /// Another rank of the same full set for each rank; the representative of a set has itself.
    full: Vec<u32>,
    /// Last search that reached each rank, and the cable by which it was reached.
    back: Vec<(u64, usize)>,
    searches: u64,
    work: u64,
}

impl Slots {
    fn new(ranks: u32, cables: &[Cable], trees: u128) -> Slots {
        let mut slots = Slots {
            taken: vec![[0; 2]; cables.len()],
            cables: cables.to_vec(),
            at: Vec::new(),
            free: vec![trees; ranks as usize],
            trees,
            full: (0..ranks).collect(),
            back: vec![(0, NO_CABLE); ranks as usize],
            searches: 0,
            work: 0,
        };
        slots.list_cables();
        slots
    }

    /// Fills `at` from `cables`.
    fn list_cables(&mut self) {
        self.at = vec![Vec::new(); self.free.len()];
        for (number, &(one, other, _)) in self.cables.iter().enumerate() {
            self.at[one as usize].push(number);
            self.at[other as usize].push(number);
        }
    }

    /// Orders the cables so that those near a rank are taken first and fill slots of their far
    /// ends.
    fn begin_at(&mut self, root: u32) {
        let mut distances = vec![u32::MAX; self.free.len()];
        distances[root as usize] = 0;
        let mut queue = VecDeque::from([root]);
        while let Some(rank) = queue.pop_front() {
            for &cable in &self.at[rank as usize] {
                let other = self.other_end(cable, rank);
                if distances[other as usize] == u32::MAX {
                    distances[other as usize] = distances[rank as usize] + 1;
                    queue.push_back(other);
                }
            }
        }
        for cable in &mut self.cables {
            if distances[cable.0 as usize] > distances[cable.1 as usize] {
                *cable = (cable.1, cable.0, cable.2);
            }
        }
        self.cables
            .sort_by_key(|cable| (distances[cable.0 as usize], distances[cable.1 as usize]));
        self.list_cables();
    }

    /// Returns the rank at the other end of a cable.
    fn other_end(&self, cable: usize, rank: u32) -> u32 {
        let (one, other, _) = self.cables[cable];
        if rank == one { other } else { one }
    }

    /// Takes as much of all cables as possible. Returns whether all slots but those of one rank are
    /// filled; `None` after `max_steps` steps.
    fn take_all(&mut self, max_steps: u64) -> Option<bool> {
        for number in 0..self.cables.len() {
            let (one, other, whole) = self.cables[number];
            if one == other || self.full_set(one) == self.full_set(other) {
                continue;
            }
            let mut reached = Vec::new();
            let room = loop {
                if self.work > max_steps {
                    return None;
                }
                interrupt::check();
                let free = self.free[one as usize] + self.free[other as usize];
                let room = free.saturating_sub(self.trees);
                if room >= whole {
                    break whole;
                }
                if let Err(from) = self.try_free(&[one, other], whole + self.trees - free) {
                    reached = from;
                    break room;
                }
            };
            let far = room.min(self.free[other as usize]);
            self.free[other as usize] -= far;
            self.free[one as usize] -= room - far;
            self.taken[number] = [room - far, far];
            for rank in reached {
                let (into, from) = (self.full_set(one), self.full_set(rank));
                self.full[from as usize] = into;
            }
        }
        let free: u128 = self.free.iter().sum();
        Some(free == self.trees)
    }

    /// Returns the representative of the full set of a rank.
    fn full_set(&mut self, rank: u32) -> u32 {
        let mut at = rank;
        while self.full[at as usize] != at {
            let above = self.full[at as usize];
            self.full[at as usize] = self.full[above as usize];
            at = above;
        }
        at
    }

    /// Returns the representative of each rank.
    fn parts(&mut self) -> Vec<u32> {
        (0..self.full.len() as u32)
            .map(|rank| self.full_set(rank))
            .collect()
    }

    /// Frees at most `most` slots of the ranks `ends` by filling free slots of another rank. If no
    /// free slot can be reached, returns the ranks that can be reached as an error.
    fn try_free(&mut self, ends: &[u32], most: u128) -> Result<(), Vec<u32>> {
        self.searches += 1;
        let mut reached = ends.to_vec();
        for &end in ends {
            self.back[end as usize] = (self.searches, NO_CABLE);
        }
        let mut place = 0;
        while let Some(&rank) = reached.get(place) {
            place += 1;
            if self.free[rank as usize] > 0 && !ends.contains(&rank) {
                self.move_along(rank, most);
                return Ok(());
            }
            self.work += self.at[rank as usize].len() as u64;
            for &cable in &self.at[rank as usize] {
                let other = self.other_end(cable, rank);
                let is_new = self.back[other as usize].0 < self.searches;
                if is_new && self.filled_by(cable, rank) > 0 {
                    self.back[other as usize] = (self.searches, cable);
                    reached.push(other);
                }
            }
        }
        Err(reached)
    }

    /// Returns the amount of a cable that fills slots of `rank`.
    fn filled_by(&self, cable: usize, rank: u32) -> u128 {
        self.taken[cable][usize::from(self.cables[cable].1 == rank)]
    }

    /// Moves up to `most` of the cables between `from` and an end to the slots of their other ends.
    fn move_along(&mut self, from: u32, most: u128) {
        let mut path = Vec::new();
        let mut amount = most.min(self.free[from as usize]);
        let mut at = from;
        loop {
            let cable = self.back[at as usize].1;
            if cable == NO_CABLE {
                break;
            }
            let next = self.other_end(cable, at);
            amount = amount.min(self.filled_by(cable, next));
            path.push((cable, next));
            at = next;
        }
        for (cable, next) in path {
            let side = usize::from(self.cables[cable].1 == next);
            self.taken[cable][side] -= amount;
            self.taken[cable][1 - side] += amount;
        }
        self.free[from as usize] -= amount;
        self.free[at as usize] += amount;
    }
}
