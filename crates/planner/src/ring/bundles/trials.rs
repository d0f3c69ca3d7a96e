//! Recipes are tried in the order of their times: the first one that has a tree is the fastest.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::Bundles;
use super::cache::TimedRecipe;
use super::grouping::Grouping;
use super::limits::{PriceLimits, rooms};
use super::starts::Start;
use super::tree::{BundleTree, Search};
use opticoll_base::interrupt;

/// The parts of all links that slots have to spare: first trees that have much of them are looked for. Without such
/// rounds, 12 of 49 recipes take up to 19 % longer.
const SPARE: [f32; 8] = [0.5, 0.3, 0.15, 0.06, 0.03, 0.015, 0.007, 0.0];

/// Maximum number of tree searches with the same part to spare, once a tree is known.
const MAX_TRIED: usize = 24;

/// Budget of a question's tree searches, in ranks times slots times lengths.
const MOST_WORK: usize = 15_000_000;

/// Ranks in a group that take no more work than one.
const GROUP: u32 = 8;

/// A number of slots for groups of a size.
pub(super) struct Frame {
    /// Its place among all.
    pub(super) index: usize,
    pub(super) slots: usize,
    pub(super) grouping: Grouping,
    pub(super) lengths: Vec<u32>,
    /// Blocks of a lightpath in the slot in which holders of sums meet.
    pub(super) meeting: Option<u32>,
    pub(super) starts: Vec<Start>,
    /// The sum of volumes after the first slot, at least.
    pub(super) least: f32,
}

/// Pieces on a lightpath in the slots after the first: few, then many, and in the last slot what is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Volumes {
    /// Pieces of the first slots, and the number of these slots.
    pub(super) few: (u32, usize),
    pub(super) many: (u32, usize),
    pub(super) last: u32,
}

impl Volumes {
    /// Returns each volume with the number of its slots.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (u32, usize)> + Clone {
        let kinds = [self.few, self.many, (self.last, 1)];
        kinds.into_iter().filter(|(_, slots)| *slots > 0)
    }

    fn slots(&self) -> impl Iterator<Item = u32> {
        let slots = |(volume, slots)| std::iter::repeat_n(volume, slots);
        self.kinds().flat_map(slots)
    }

    pub(super) fn sum(&self) -> u32 {
        let sums = self.kinds().map(|(volume, slots)| volume * slots as u32);
        sums.sum()
    }

    /// Returns by how many pieces they differ.
    fn spread(&self) -> u32 {
        let volumes = self.kinds().map(|(volume, _)| volume);
        let least = volumes.clone().min().unwrap_or(0);
        volumes.max().unwrap_or(0) - least
    }
}

/// A recipe that may have a tree.
pub(super) struct Try<'a> {
    pub(super) time: u64,
    pub(super) frame: &'a Frame,
    pub(super) pieces: u32,
    pub(super) volumes: Volumes,
}

impl Try<'_> {
    /// Returns the key by which recipes are tried: the faster ones first, then those with the more even volumes, of these
    /// those with the smaller volumes in the first slots.
    pub(super) fn order(&self) -> impl Ord + use<> {
        let Frame {
            slots, grouping, ..
        } = self.frame;
        let Volumes { few, many, last } = self.volumes;
        let spread = self.volumes.spread().div_ceil(self.pieces);
        let of_slots = (few.0, Reverse(few.1), many.0, last);
        (self.time, *slots, grouping.group, spread, of_slots)
    }

    fn volumes(&self) -> Vec<u32> {
        self.volumes.slots().collect()
    }

    /// Whose limits it has.
    fn key(&self) -> (usize, u32) {
        (self.frame.index, self.pieces)
    }

    /// Whether slots may have so much to spare, for all trees of the frame.
    fn may_spare(&self, spare: f32) -> bool {
        let sum = self.volumes.sum() as f32;
        self.frame.least * self.pieces as f32 <= sum * (1.0 - spare)
    }

    /// What looking for its tree takes.
    fn work(&self) -> usize {
        let Grouping { ranks, group, .. } = self.frame.grouping;
        let families = self.frame.lengths.len() * group.div_ceil(GROUP) as usize;
        ranks as usize * (self.frame.slots - 1) * families
    }
}

/// A recipe whose tree is to be looked for.
struct Trial<'a> {
    place: usize,
    one: &'a Try<'a>,
    grouping: Grouping,
    starts: Vec<Start>,
    volumes: Vec<u32>,
    spare: f32,
}

impl Trial<'_> {
    fn search(&self) -> Search<'_> {
        Search {
            grouping: &self.grouping,
            lengths: &self.one.frame.lengths,
            starts: &self.starts,
            volumes: &self.volumes,
            spare: self.spare,
        }
    }

    fn timed(self, tree: BundleTree) -> TimedRecipe {
        let one = self.one;
        let recipe = Bundles {
            group: self.grouping.group,
            pieces: one.pieces,
            meeting: one.frame.meeting.map(|volume| volume * one.pieces),
            volumes: self.volumes,
            tree: Some(tree),
        };
        (one.time, recipe)
    }
}

/// The recipes, by their times.
pub(super) struct Trials<'a> {
    tries: &'a [Try<'a>],
    /// Recipes that take as long or longer are of no use.
    most: u64,
    limits: BTreeMap<(usize, u32), PriceLimits>,
    /// Work of all tree searches so far.
    work: usize,
    /// Tree searches so far with the same part to spare.
    tried: usize,
}

impl<'a> Trials<'a> {
    /// Tries only recipes that take less than `most` picoseconds.
    pub(super) fn new(tries: &'a [Try<'a>], most: u64) -> Trials<'a> {
        Trials {
            tries,
            most,
            limits: BTreeMap::new(),
            work: 0,
            tried: 0,
        }
    }

    /// Returns the fastest recipe that was found with a tree.
    pub(super) fn fastest(mut self) -> Option<TimedRecipe> {
        let mut fastest = None;
        for spare in SPARE {
            self.tried = 0;
            if let Some(found) = self.first(spare) {
                self.most = found.0;
                fastest = Some(found);
            }
        }
        fastest
    }

    /// Returns the first recipe that is found with a tree.
    fn first(&mut self, spare: f32) -> Option<TimedRecipe> {
        let mut from = 0;
        while let Some(trial) = self.next(from, spare) {
            match trial.search().tree() {
                Some(tree) => return Some(trial.timed(tree)),
                None => {
                    let missed = rooms(&trial.grouping, &trial.volumes);
                    self.limits(trial.one).miss(missed);
                }
            }
            from = trial.place + 1;
        }
        None
    }

    fn limits(&mut self, one: &Try<'_>) -> &mut PriceLimits {
        self.limits.entry(one.key()).or_default()
    }

    /// Returns the next recipe that may have a tree, from a place on.
    fn next(&mut self, from: usize, spare: f32) -> Option<Trial<'a>> {
        for (place, one) in self.tries.iter().enumerate().skip(from) {
            interrupt::check();
            let is_enough = self.most < u64::MAX && self.tried >= MAX_TRIED;
            if one.time >= self.most || is_enough || self.work > MOST_WORK {
                return None;
            }
            if !one.may_spare(spare) {
                continue;
            }
            let grouping = one.frame.grouping.in_pieces(one.pieces);
            let volumes = one.volumes();
            if !self.limits(one).allow(&grouping, &volumes, spare) {
                continue;
            }
            let starts = one.frame.starts.iter();
            let trial = Trial {
                place,
                one,
                grouping,
                starts: starts.map(|start| start.in_pieces(one.pieces)).collect(),
                volumes,
                spare,
            };
            if trial.search().may_fit(self.limits(one)) {
                self.work += one.work();
                self.tried += 1;
                return Some(trial);
            }
        }
        None
    }
}
