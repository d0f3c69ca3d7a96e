//! Maximum number of spanning trees that fit into full-duplex cables, and the partition of the
//! ranks that proves the maximum (theorem E9).
//!
//! Each tree uses a share of the rate of its cables, and x* is the greatest sum of shares:
//!
//! ```text
//! x* = min over partitions of (rate between parts) / (G - 1),  G the number of parts
//! ```
//!
//! Along each tree, an all_reduce adds the vectors in one direction of the cables and distributes
//! the sum in the other direction. A vector of M bytes takes M / x*, and no plan is faster.
//!
//! **Search** (Lee and Streinu, Pebble game algorithms and sparse graphs, Discrete Mathematics 308,
//! 2008, with amounts in place of single edges). Each rank has k places for units
//! of cables. If the search uses a unit of a cable, the unit fills a place at one
//! of the two ends of the cable, and may later move to a place at the other end. A chain of such
//! moves frees a place of one rank and fills a place of another rank.
//!
//! For each cable, the search first frees as many places at both ends as possible. It can then use
//! as many units of the cable as the two ends have free places beyond k. If this is not the whole
//! cable, the ranks that chains can reach form a *full set*: they have k trees among themselves.
//! Full sets with a common rank merge into one. At the end, the full sets are the parts of the
//! partition.

use rustc_hash::FxHashMap;

use opticoll_base::{graph, interrupt};

/// Cable between two ranks: (rank, other rank, rate in each direction).
pub type Cable = (u32, u32, u128);

/// Entry of `reached_by` for a rank at which a search begins.
const NO_CABLE: usize = usize::MAX;

/// Partition of the ranks that allows the fewest trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TightestPartition {
    /// Index of the part of each rank, indexed by rank.
    pub parts: Vec<u32>,
    /// Number of parts.
    pub count: u128,
    /// Sum of the rates of the cables between different parts, in the unit of the given cables.
    pub rate: u128,
}

/// Returns the tightest partition. `None` for a single rank, if the cables do not connect all
/// ranks, or after `max_steps` cable visits.
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
        let mut places = Places::new(ranks, &wider?, tightest.rate);
        places.work = work;
        if places.fill_places(max_steps)? {
            return Some(tightest);
        }
        work = places.work;
        let next = TightestPartition::of(&places.parts(), cables);
        debug_assert!(next.count < tightest.count, "parts are joined");
        tightest = next;
    }
    None
}

/// Packs `trees` units of spanning trees that lead away from `root`. Returns the rate that the
/// trees use between ranks, keyed by (from, to). Returns `Some(None)` if the trees do not fit into
/// the cables, and `None` after `max_steps` cable visits. Each cable first fills places at its end
/// that is farther from `root`, so that the trees are shallow.
pub fn away_from(
    root: u32,
    ranks: u32,
    cables: &[Cable],
    trees: u128,
    max_steps: u64,
) -> Option<Option<FxHashMap<(u32, u32), u128>>> {
    let mut places = Places::new(ranks, cables, trees);
    places.begin_at(root);
    if !places.fill_places(max_steps)? {
        return Some(None);
    }
    while places.free[root as usize] < trees {
        places.try_free(&[root], trees).ok()?;
    }
    let mut used = FxHashMap::default();
    for (&(one, other, _), &[into_one, into_other]) in places.cables.iter().zip(&places.used) {
        for (ends, amount) in [((other, one), into_one), ((one, other), into_other)] {
            if amount > 0 {
                *used.entry(ends).or_default() += amount;
            }
        }
    }
    Some(Some(used))
}

impl TightestPartition {
    /// Returns the partition in which two ranks are in the same part if their entries in `numbers`
    /// are equal.
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

/// State of the search: the used amounts of all cables, and the free places of all ranks.
struct Places {
    cables: Vec<Cable>,
    /// Amount of each cable that fills places at its first and second end; indexed by cable.
    used: Vec<[u128; 2]>,
    /// Indices of the cables at each rank, indexed by rank.
    cables_at: Vec<Vec<usize>>,
    /// Number of free places of each rank, indexed by rank.
    free: Vec<u128>,
    /// Number of places of each rank.
    trees: u128,
    /// Parent of each rank in the union-find forest of full sets; itself for a representative.
    set_parents: Vec<u32>,
    /// Last search that reached each rank, indexed by rank: (number of the search, index of the
    /// cable by which the search reached the rank).
    reached_by: Vec<(u64, usize)>,
    searches: u64,
    work: u64,
}

impl Places {
    fn new(ranks: u32, cables: &[Cable], trees: u128) -> Places {
        let mut places = Places {
            used: vec![[0; 2]; cables.len()],
            cables: cables.to_vec(),
            cables_at: Vec::new(),
            free: vec![trees; ranks as usize],
            trees,
            set_parents: (0..ranks).collect(),
            reached_by: vec![(0, NO_CABLE); ranks as usize],
            searches: 0,
            work: 0,
        };
        places.list_cables();
        places
    }

    fn list_cables(&mut self) {
        self.cables_at = vec![Vec::new(); self.free.len()];
        for (number, &(one, other, _)) in self.cables.iter().enumerate() {
            self.cables_at[one as usize].push(number);
            self.cables_at[other as usize].push(number);
        }
    }

    /// Sorts the cables by their distance from `root` in links, and reverses cables so that the
    /// second end of each is the end farther from `root`.
    fn begin_at(&mut self, root: u32) {
        let places = &*self;
        let distances = graph::distances(places.free.len(), root, |rank| {
            let cables = places.cables_at[rank as usize].iter();
            cables.map(move |&cable| places.other_end(cable, rank))
        });
        for cable in &mut self.cables {
            if distances[cable.0 as usize] > distances[cable.1 as usize] {
                *cable = (cable.1, cable.0, cable.2);
            }
        }
        self.cables
            .sort_by_key(|cable| (distances[cable.0 as usize], distances[cable.1 as usize]));
        self.list_cables();
    }

    fn other_end(&self, cable: usize, rank: u32) -> u32 {
        let (one, other, _) = self.cables[cable];
        if rank == one { other } else { one }
    }

    /// Uses as much of every cable as possible. All trees fit if the free places that remain are as
    /// many as the places of one rank. Returns whether all trees fit; `None` after `max_steps`
    /// cable visits.
    fn fill_places(&mut self, max_steps: u64) -> Option<bool> {
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
            let into_other = room.min(self.free[other as usize]);
            self.free[other as usize] -= into_other;
            self.free[one as usize] -= room - into_other;
            self.used[number] = [room - into_other, into_other];
            for rank in reached {
                let (into, from) = (self.full_set(one), self.full_set(rank));
                self.set_parents[from as usize] = into;
            }
        }
        let free: u128 = self.free.iter().sum();
        Some(free == self.trees)
    }

    /// Returns the representative of the full set that contains `rank`.
    fn full_set(&mut self, rank: u32) -> u32 {
        let mut at = rank;
        while self.set_parents[at as usize] != at {
            let above = self.set_parents[at as usize];
            self.set_parents[at as usize] = self.set_parents[above as usize];
            at = above;
        }
        at
    }

    /// Returns the representative of the full set of each rank, indexed by rank.
    fn parts(&mut self) -> Vec<u32> {
        (0..self.set_parents.len() as u32)
            .map(|rank| self.full_set(rank))
            .collect()
    }

    /// Frees at most `max_places` places of the ranks `ends` by filling free places of another
    /// rank. If no rank with a free place can be reached, fails with the list of all ranks that can
    /// be reached.
    fn try_free(&mut self, ends: &[u32], max_places: u128) -> Result<(), Vec<u32>> {
        self.searches += 1;
        let mut reached = ends.to_vec();
        for &end in ends {
            self.reached_by[end as usize] = (self.searches, NO_CABLE);
        }
        let mut index = 0;
        while let Some(&rank) = reached.get(index) {
            index += 1;
            if self.free[rank as usize] > 0 && !ends.contains(&rank) {
                self.move_along(rank, max_places);
                return Ok(());
            }
            self.work += self.cables_at[rank as usize].len() as u64;
            for &cable in &self.cables_at[rank as usize] {
                let other = self.other_end(cable, rank);
                let is_new = self.reached_by[other as usize].0 < self.searches;
                if is_new && self.filled_by(cable, rank) > 0 {
                    self.reached_by[other as usize] = (self.searches, cable);
                    reached.push(other);
                }
            }
        }
        Err(reached)
    }

    /// Returns the amount of a cable that fills places of `rank`.
    fn filled_by(&self, cable: usize, rank: u32) -> u128 {
        self.used[cable][usize::from(self.cables[cable].1 == rank)]
    }

    /// Moves up to `max_places` units along the chain of cables by which the last search reached
    /// rank `from`. Fills places of `from` and frees places of the rank at which the search began.
    fn move_along(&mut self, from: u32, max_places: u128) {
        let mut path = Vec::new();
        let mut amount = max_places.min(self.free[from as usize]);
        let mut at = from;
        loop {
            let cable = self.reached_by[at as usize].1;
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
            self.used[cable][side] -= amount;
            self.used[cable][1 - side] += amount;
        }
        self.free[from as usize] -= amount;
        self.free[at as usize] += amount;
    }
}
