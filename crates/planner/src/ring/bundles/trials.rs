//! Recipes are tried in the order of their times: the first one that has a tree is the fastest.

use std::collections::BTreeMap;

use super::Bundles;
use super::grouping::Grouping;
use super::known::Timed;
use super::limits::PriceLimits;
use super::starts::Start;
use super::tree::{BundleTree, Effort, SMALL_RING, Search};
use opticoll_base::interrupt;
use opticoll_base::memory;

/// The parts of all links that slots have to spare: first trees that have much of them are looked for.
const SPARE: [f32; 8] = [0.5, 0.3, 0.15, 0.06, 0.03, 0.015, 0.007, 0.0];

/// Trees that are looked for with so much to spare; on small rings more.
const MOST_TRIED: usize = 8;
const MOST_TRIED_SMALL: usize = 24;

/// Ranks, slots and lengths, multiplied, of all trees that are tried.
const MOST_WORK: usize = 15_000_000;

/// So many ranks in a group take no more work than one.
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

/// A recipe that may have a tree.
pub(super) struct Try<'a> {
    pub(super) time: u64,
    frame: &'a Frame,
    pieces: u32,
    volumes: Vec<u32>,
    /// By how many blocks the volumes differ.
    spread: u32,
}

impl<'a> Try<'a> {
    pub(super) fn new(time: u64, frame: &'a Frame, pieces: u32, volumes: Vec<u32>) -> Try<'a> {
        let most = volumes.iter().max().unwrap_or(&0);
        let least = volumes.iter().min().unwrap_or(&0);
        Try {
            time,
            frame,
            pieces,
            spread: (most - least).div_ceil(pieces),
            volumes,
        }
    }

    /// The order in which recipes are tried.
    pub(super) fn order(&self) -> (u64, usize, u32, u32, &[u32]) {
        let (slots, group) = (self.volumes.len(), self.frame.grouping.group);
        (self.time, slots, group, self.spread, &self.volumes)
    }

    /// Whose limits it has.
    fn key(&self) -> (usize, u32) {
        (self.frame.index, self.pieces)
    }

    /// Whether slots may have so much to spare, for all trees of the frame.
    fn may_spare(&self, spare: f32) -> bool {
        let sum: u32 = self.volumes.iter().sum();
        self.frame.least * self.pieces as f32 <= sum as f32 * (1.0 - spare)
    }

    /// What looking for its tree takes.
    fn work(&self) -> usize {
        let Grouping { ranks, group, .. } = self.frame.grouping;
        let families = self.frame.lengths.len() * group.div_ceil(GROUP) as usize;
        ranks as usize * self.volumes.len() * families
    }
}

/// A recipe whose tree is to be looked for.
struct Trial<'a> {
    place: usize,
    one: &'a Try<'a>,
    grouping: Grouping,
    starts: Vec<Start>,
    effort: &'a Effort,
    spare: f32,
}

impl Trial<'_> {
    fn search(&self) -> Search<'_> {
        Search {
            grouping: &self.grouping,
            lengths: &self.one.frame.lengths,
            starts: &self.starts,
            volumes: &self.one.volumes,
            effort: self.effort,
            spare: self.spare,
        }
    }

    fn timed(&self, tree: BundleTree) -> Timed {
        let one = self.one;
        let recipe = Bundles {
            group: self.grouping.group,
            pieces: one.pieces,
            meeting: one.frame.meeting.map(|volume| volume * one.pieces),
            volumes: one.volumes.clone(),
        };
        Timed {
            time: one.time,
            recipe,
            tree,
        }
    }
}

/// What is known after some trials.
#[derive(Clone, Default)]
struct Known {
    limits: BTreeMap<(usize, u32), PriceLimits>,
    work: usize,
    /// Trees that were looked for with so much to spare.
    tried: usize,
    /// The places of recipes whose prices were adjusted.
    priced: Vec<usize>,
}

/// The recipes, by their times.
pub(super) struct Trials<'a> {
    tries: &'a [Try<'a>],
    effort: &'a Effort,
    /// Trees that are looked for with so much to spare, where one is known.
    most_tried: usize,
    /// What takes as long or longer is of no use.
    most: u64,
    known: Known,
}

impl<'a> Trials<'a> {
    /// Only recipes that take less than `most` picoseconds are tried.
    pub(super) fn new(
        ranks: u32,
        tries: &'a [Try<'a>],
        effort: &'a Effort,
        most: u64,
    ) -> Trials<'a> {
        Trials {
            tries,
            effort,
            most_tried: match ranks <= SMALL_RING {
                true => MOST_TRIED_SMALL,
                false => MOST_TRIED,
            },
            most,
            known: Known::default(),
        }
    }

    /// The fastest recipe that was found with a tree.
    pub(super) fn fastest(mut self) -> Option<Timed> {
        let mut fastest = None;
        for spare in SPARE {
            self.known.tried = 0;
            if let Some(found) = self.first(spare) {
                self.most = found.time;
                fastest = Some(found);
            }
        }
        fastest
    }

    /// The first recipe that is found with a tree. At the same time the tree of the next recipe is looked for, as if the first had none. It
    /// counts only if the first one's miss leaves out none of the recipes looked at.
    fn first(&mut self, spare: f32) -> Option<Timed> {
        let mut next = self.next(0, spare);
        while let Some(first) = next {
            let known = self.known.clone();
            self.known.priced.clear();
            let (ahead, tree) = interrupt::both(
                || {
                    memory::attempt(|| {
                        let second = self.next(first.place + 1, spare)?;
                        let tree = second.search().tree();
                        Some((second, tree))
                    })
                },
                || first.search().tree(),
            );
            let missed = match tree {
                Ok(tree) => {
                    self.known = known;
                    return Some(first.timed(tree));
                }
                Err(missed) => missed,
            };
            let is_left_out = |&place: &usize| {
                let one = &self.tries[place];
                one.key() == first.one.key() && missed.excludes(&first.grouping, &one.volumes)
            };
            if self.known.priced.iter().any(is_left_out) {
                self.known = known;
                self.limits(first.one).miss(missed);
                next = self.next(first.place + 1, spare);
                continue;
            }
            self.limits(first.one).miss(missed);
            let (second, tree) = ahead.unwrap_or_else(|much| memory::refuse(much))?;
            match tree {
                Ok(tree) => return Some(second.timed(tree)),
                Err(missed) => self.limits(second.one).miss(missed),
            }
            next = self.next(second.place + 1, spare);
        }
        None
    }

    fn limits(&mut self, one: &Try<'_>) -> &mut PriceLimits {
        self.known.limits.entry(one.key()).or_default()
    }

    /// The next recipe that may have a tree, from a place on.
    fn next(&mut self, from: usize, spare: f32) -> Option<Trial<'a>> {
        let (tries, effort) = (self.tries, self.effort);
        for (place, one) in tries.iter().enumerate().skip(from) {
            interrupt::check();
            let is_enough = self.most < u64::MAX && self.known.tried >= self.most_tried;
            if one.time >= self.most || is_enough || self.known.work > MOST_WORK {
                return None;
            }
            if !one.may_spare(spare) {
                continue;
            }
            let grouping = one.frame.grouping.in_pieces(one.pieces);
            if !self.limits(one).allow(&grouping, &one.volumes, spare) {
                continue;
            }
            let starts = one.frame.starts.iter();
            let trial = Trial {
                place,
                one,
                grouping,
                starts: starts.map(|start| start.in_pieces(one.pieces)).collect(),
                effort,
                spare,
            };
            self.known.priced.push(place);
            if trial.search().may_fit(self.limits(one)) {
                self.known.work += one.work();
                self.known.tried += 1;
                return Some(trial);
            }
        }
        None
    }
}

#[cfg(test)]
impl Trials<'_> {
    /// The same, one recipe after the other.
    pub(super) fn fastest_one_by_one(mut self) -> (Option<Timed>, usize) {
        let (mut fastest, mut missed) = (None, 0);
        for spare in SPARE {
            self.known.tried = 0;
            let mut next = self.next(0, spare);
            while let Some(trial) = next {
                match trial.search().tree() {
                    Ok(tree) => {
                        self.most = trial.one.time;
                        fastest = Some(trial.timed(tree));
                    }
                    Err(miss) => {
                        missed += 1;
                        self.limits(trial.one).miss(miss);
                    }
                }
                next = self.next(trial.place + 1, spare);
            }
        }
        (fastest, missed)
    }
}
