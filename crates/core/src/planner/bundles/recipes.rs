//! Which groups, how holders get their bundles, and how many blocks a lightpath has in which slot.
//!
//! The least length of a tree of S slots ([`super::starts`]) says of how many blocks the longest lightpaths of all slots are
//! in sum at least. Slots carry few blocks first, when few ranks have the bundle and lightpaths are long, and more of
//! them later. Volumes that divide the bundle, or that it divides, waste no room on a lightpath. So S - 2 slots take one or two such
//! volumes in rising order, and the last slot takes what is left. These recipes are tried by their times; the first
//! that has a tree is the fastest.

use std::cell::RefCell;

use super::filling::Taste;
use super::grouping::{Grouping, lengths};
use super::starts::{Evenly, Start, meetings, starts};
use super::tree::{Costs, Effort, grow};
use super::{Bundles, Tree};
use crate::family::wdm_ring::WdmRing;
use crate::interrupt;
use crate::planner::slot_cost::SlotCost;
use crate::units::Bytes;

/// More ranks in a group find no channels in the first slot.
const MOST_GROUP: u32 = 16;

/// The same where holders of sums meet: they send whole bundles.
const MOST_MEETING: u32 = 64;

/// Blocks of a lightpath in a meeting, as parts and multiples of a bundle.
const MEETING_PARTS: [u32; 3] = [4, 2, 1];
const MEETING_TIMES: [u32; 8] = [1, 2, 3, 4, 6, 8, 12, 16];

/// Volumes of meetings that are tried with a number of slots.
const MEETINGS: usize = 2;

/// With so few slots after the first, lightpaths of all lengths are needed.
const FINE_SLOTS: usize = 1;

/// More slots are no better than one block on each lightpath.
const MOST_SLOTS: usize = 20;

/// The sum of volumes over what it is at least, where all goes well.
const SLACK: f32 = 1.03;

/// The last slot has so many times the volume of the one before it, at most.
const MOST_MORE: u32 = 2;

/// And so many times the ranks of a group.
const MOST_LAST: u32 = 4;

/// Slots and groups whose times are so much longer than the least are not tried.
const FAR: f64 = 1.15;

/// On rings of so many ranks slots and groups of any time are tried where none of those was found.
const SMALL: u32 = 256;

/// Recipes that are tried.
const MOST_TRIED: usize = 64;

/// So many slots have volumes of more kinds.
const FEW_SLOTS: usize = 5;

/// Ranks, slots and lengths, multiplied, of all trees that are tried.
const MOST_WORK: usize = 30_000_000;

/// So many ranks in a group take no more work than one.
const GROUP: u32 = 8;

/// A recipe with its time.
#[derive(Debug, Clone)]
pub(super) struct Timed {
    pub(super) time: u64,
    pub(super) recipe: Bundles,
}

/// A number of slots for groups of a size.
struct Frame {
    slots: usize,
    grouping: Grouping,
    lengths: Vec<u32>,
    /// Blocks of a lightpath in the slot in which holders of sums meet.
    meeting: Option<u32>,
    starts: Vec<Start>,
    /// The sum of volumes after the first slot, at least.
    least: f32,
}

/// The tree of a recipe.
pub(super) fn tree(ring: &WdmRing, recipe: &Bundles) -> Option<Tree> {
    let Bundles {
        group,
        meeting,
        volumes,
    } = recipe;
    let slots = volumes.len();
    let grouping = Grouping::new(ring, *group);
    let lengths = lengths(&grouping, slots <= FINE_SLOTS);
    let costs = Costs::new(&grouping, &lengths, slots);
    let later = costs.of_gaps(slots);
    let starts = match meeting {
        None => starts(&grouping, later, STARTS),
        Some(volume) => meetings(&grouping, &Evenly::all(&grouping, later), *volume, STARTS),
    };
    let (last, volumes) = volumes.split_last()?;
    let effort = effort(ring.ranks);
    let tree = grow(
        &grouping,
        &lengths,
        &starts,
        volumes,
        *last..=*last,
        &effort,
    )?;
    Some(Tree {
        grouping,
        tree,
        is_meeting: meeting.is_some(),
    })
}

/// Sets of holders to start from.
const STARTS: usize = 3;

/// Small trees take little time, and chance helps them.
fn effort(ranks: u32) -> Effort {
    let (seeds, kept) = if ranks <= 128 { (8, 8) } else { (1, 2) };
    let tastes = (0..seeds).flat_map(|seed| {
        let chance = if seed == 0 { 0.0 } else { 0.1 };
        let ways = [(0.97, 0.05), (0.0, 0.15)];
        ways.map(|(planned, longer)| Taste {
            planned,
            longer,
            level: 0.2,
            chance,
            seed,
        })
    });
    Effort {
        tastes: tastes.collect(),
        kept,
    }
}

/// What a plan of any number of slots takes at least.
pub(super) fn least(ring: &WdmRing, pace: &Pace) -> f64 {
    let group = groups(ring.ranks, MOST_GROUP).last().unwrap_or(1);
    let grouping = Grouping::new(ring, group);
    let costs = AllCosts::new(&grouping);
    let whole = |slots| {
        let length = costs.of_gaps(slots)[ring.ranks as usize - 1];
        pace.halves as f64 * pace.of_sum(slots, length / grouping.room())
    };
    let meeting = |slots| {
        let later = costs.of_gaps(slots - 1);
        let times = Evenly::all(&grouping, later).into_iter().map(|evenly| {
            let volume = evenly.length as f32 / grouping.room();
            let both = 2.0 * pace.of_sum(slots - 1, evenly.left / grouping.room());
            pace.of_sum(1, volume) + both
        });
        times.fold(f64::INFINITY, f64::min)
    };
    let mut least = (3..MOST_SLOTS).map(whole).fold(f64::INFINITY, f64::min);
    if pace.halves == 2 {
        least = (2..MOST_SLOTS).map(meeting).fold(least, f64::min);
    }
    least
}

/// The sizes of groups that a ring has, up to so many ranks.
fn groups(ranks: u32, most: u32) -> impl Iterator<Item = u32> {
    (1..=most.min(ranks / 2)).filter(move |group| ranks % group == 0)
}

/// What trees of all numbers of slots cost at least.
struct AllCosts {
    fine: (Vec<u32>, Costs),
    usual: (Vec<u32>, Costs),
}

impl AllCosts {
    fn new(grouping: &Grouping) -> AllCosts {
        let with = |slots| {
            let lengths = lengths(grouping, slots <= FINE_SLOTS);
            let costs = Costs::new(grouping, &lengths, slots);
            (lengths, costs)
        };
        AllCosts {
            fine: with(FINE_SLOTS),
            usual: with(MOST_SLOTS),
        }
    }

    /// Lengths of lightpaths where so many slots come after the first, and costs.
    fn of(&self, slots: usize) -> &(Vec<u32>, Costs) {
        match slots <= FINE_SLOTS {
            true => &self.fine,
            false => &self.usual,
        }
    }

    fn of_gaps(&self, slots: usize) -> &[f32] {
        self.of(slots).1.of_gaps(slots)
    }
}

/// The fastest recipe that was found with a tree.
pub(super) fn fastest(ring: &WdmRing, pace: Pace) -> Option<Timed> {
    let asked = (ring.clone(), pace);
    let known = LATEST.with_borrow(|latest| {
        let latest = latest.as_ref().filter(|(known, _)| *known == asked);
        latest.map(|(_, fastest)| fastest.clone())
    });
    known.unwrap_or_else(|| {
        let fastest = search(ring, &asked.1);
        LATEST.set(Some((asked, fastest.clone())));
        fastest
    })
}

/// A question, and what was found.
type Answered = ((WdmRing, Pace), Option<Timed>);

thread_local! {
    /// The last one: the halves of an all_reduce ask alike.
    static LATEST: RefCell<Option<Answered>> = const { RefCell::new(None) };
}

fn search(ring: &WdmRing, pace: &Pace) -> Option<Timed> {
    let near = fastest_of(ring, pace, FAR);
    // With few channels trees may need more slots than their length says.
    match near.is_none() && ring.ranks <= SMALL {
        true => fastest_of(ring, pace, f64::INFINITY),
        false => near,
    }
}

/// The same, of slots and groups that may take so many times the least.
fn fastest_of(ring: &WdmRing, pace: &Pace, far: f64) -> Option<Timed> {
    let frames = pace.frames(ring, far);
    let mut tries: Vec<(u64, &Frame, Vec<u32>, u32)> = Vec::new();
    for frame in &frames {
        for (volumes, last) in volumes(frame) {
            let whole = [&volumes[..], &[last]].concat();
            tries.push((pace.time(frame.meeting, &whole), frame, volumes, last));
        }
    }
    tries.sort_by_key(|(time, frame, volumes, _)| (*time, volumes.len(), frame.grouping.group));
    let effort = effort(ring.ranks);
    let (mut best, mut work) = (None, 0);
    let mut most = u64::MAX;
    for (time, frame, volumes, last) in tries.into_iter().take(MOST_TRIED) {
        interrupt::check();
        let families = frame.lengths.len() * frame.grouping.group.div_ceil(GROUP) as usize;
        work += ring.ranks as usize * (volumes.len() + 1) * families;
        if time >= most || work > MOST_WORK {
            break;
        }
        // The volumes of the last slot that are still fast enough.
        let fast = |last: &u32| {
            let volumes = [&volumes[..], &[*last]].concat();
            pace.time(frame.meeting, &volumes) < most
        };
        let highest = (last..=MOST_LAST * frame.grouping.group)
            .take_while(fast)
            .last();
        let Frame {
            grouping,
            lengths,
            starts,
            ..
        } = frame;
        let last = 1..=highest.unwrap_or(last);
        if let Some(tree) = grow(grouping, lengths, starts, &volumes, last, &effort) {
            let group = grouping.group;
            let volumes: Vec<u32> = tree.slots.iter().skip(1).map(|slot| slot.volume).collect();
            let time = pace.time(frame.meeting, &volumes);
            let recipe = Bundles {
                group,
                meeting: frame.meeting,
                volumes,
            };
            // Who names the recipe gets its tree.
            if self::tree(ring, &recipe).is_some() {
                most = time;
                best = Some(Timed { time, recipe });
            }
        }
    }
    best
}

/// What slots take for blocks of a size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pace {
    pub(super) cost: SlotCost,
    pub(super) block: u64,
    pub(super) hops: u64,
    /// How often blocks go along the tree: in an all_reduce twice.
    pub(super) halves: u64,
}

impl Pace {
    fn slot(&self, volume: u32) -> u64 {
        let bytes = Bytes::new(self.block.saturating_mul(volume.into()));
        self.cost.slots(1, bytes, self.hops)
    }

    /// The first slot of both halves, or the one in which they meet.
    fn first(&self, meeting: Option<u32>) -> u64 {
        match meeting {
            None => self.slot(1).saturating_mul(self.halves),
            Some(volume) => self.slot(volume),
        }
    }

    /// Of slots with such volumes after the first.
    fn time(&self, meeting: Option<u32>, volumes: &[u32]) -> u64 {
        let slots = volumes.iter().map(|&volume| self.slot(volume));
        let half = slots.fold(0, u64::saturating_add);
        let halves = half.saturating_mul(self.halves);
        self.first(meeting).saturating_add(halves)
    }

    /// Of so many slots whose volumes have such a sum.
    fn of_sum(&self, slots: usize, sum: f32) -> f64 {
        let empty = self.slot(0);
        let block = self.slot(1) - empty;
        slots as f64 * empty as f64 + f64::from(sum) * block as f64
    }

    /// The time of a frame, at least.
    fn of_frame(&self, slots: usize, meeting: Option<u32>, least: f32) -> f64 {
        self.first(meeting) as f64 + self.halves as f64 * self.of_sum(slots - 1, least)
    }

    /// Slots and groups that may take so many times what the best of them may.
    fn frames(&self, ring: &WdmRing, far: f64) -> Vec<Frame> {
        let mut frames: Vec<Frame> = Vec::new();
        let mut best = f64::INFINITY;
        let most = if self.halves == 2 {
            MOST_MEETING
        } else {
            MOST_GROUP
        };
        for group in groups(ring.ranks, most) {
            let grouping = Grouping::new(ring, group);
            let costs = AllCosts::new(&grouping);
            for slots in 2..MOST_SLOTS {
                interrupt::check();
                let gathered = (slots > 2 && group <= MOST_GROUP)
                    .then(|| self.gathering(&grouping, &costs, slots, best))
                    .flatten();
                let met = match self.halves {
                    2 => self.meeting(&grouping, &costs, slots, best),
                    _ => Vec::new(),
                };
                for frame in gathered.into_iter().chain(met) {
                    let time = self.of_frame(frame.slots, frame.meeting, frame.least);
                    best = best.min(far * time);
                    frames.push(frame);
                }
            }
        }
        frames.retain(|frame| self.of_frame(frame.slots, frame.meeting, frame.least) <= best);
        frames
    }

    /// Owners send to holders first, where that may be as fast as the best.
    fn gathering(
        &self,
        grouping: &Grouping,
        costs: &AllCosts,
        slots: usize,
        best: f64,
    ) -> Option<Frame> {
        let whole = costs.of_gaps(slots)[grouping.ranks as usize - 1] / grouping.room();
        if self.halves as f64 * self.of_sum(slots, whole) > best {
            return None;
        }
        let (lengths, costs) = costs.of(slots - 1);
        let starts = starts(grouping, costs.of_gaps(slots - 1), STARTS);
        let least = starts.first()?.left / grouping.room();
        Some(Frame {
            slots,
            grouping: grouping.clone(),
            lengths: lengths.clone(),
            meeting: None,
            starts,
            least,
        })
    }

    /// Holders of sums exchange them, where that may be as fast as the best: with so many blocks on a lightpath as
    /// take the least time.
    fn meeting(
        &self,
        grouping: &Grouping,
        costs: &AllCosts,
        slots: usize,
        best: f64,
    ) -> Vec<Frame> {
        let (lengths, costs) = costs.of(slots - 1);
        let even = Evenly::all(grouping, costs.of_gaps(slots - 1));
        let group = grouping.group;
        let parts = MEETING_PARTS.into_iter().filter(|part| group % part == 0);
        let volumes = parts.map(|part| group / part);
        let volumes = volumes.chain(MEETING_TIMES.map(|times| times * group).into_iter().skip(1));
        let mut timed: Vec<(f64, u32)> = Vec::new();
        for volume in volumes {
            let room = grouping.room() * volume as f32;
            let fitting = even.iter().find(|evenly| evenly.length as f32 <= room);
            timed.extend(fitting.map(|evenly| {
                let least = evenly.left / grouping.room();
                (self.of_frame(slots, Some(volume), least), volume)
            }));
        }
        timed.retain(|(time, _)| *time <= best);
        timed.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let frames = timed.into_iter().filter_map(|(_, volume)| {
            let starts = meetings(grouping, &even, volume, STARTS);
            let least = starts.first()?.left / grouping.room();
            Some(Frame {
                slots,
                grouping: grouping.clone(),
                lengths: lengths.clone(),
                meeting: Some(volume),
                starts,
                least,
            })
        });
        frames.take(MEETINGS).collect()
    }
}

/// Volumes of the slots between the first and the last, with the least of the last.
fn volumes(frame: &Frame) -> Vec<(Vec<u32>, u32)> {
    let group = frame.grouping.group;
    let middle = frame.slots - 2;
    let sum = (SLACK * (1.0 + frame.least)).ceil() as u32;
    let mut all = Vec::new();
    // With few slots each counts, and there are few ways.
    let (most, rise) = if frame.slots <= FEW_SLOTS {
        (2, 4)
    } else {
        (1, 2)
    };
    for many in (1..=most).map(|times| times * group) {
        // Smaller ones divide the bundle.
        let fitting = |few: &u32| group % few == 0 && rise * few >= many;
        for few in (1..=group).filter(fitting) {
            for count in usize::from(few < many)..=middle {
                let few = std::iter::repeat_n(few, count);
                let many = std::iter::repeat_n(many, middle - count);
                let volumes: Vec<u32> = few.chain(many).collect();
                let before = 1 + volumes.iter().sum::<u32>();
                let last = sum.saturating_sub(before).max(1);
                let usual = volumes.last().copied().unwrap_or(group);
                let most = if volumes.is_empty() {
                    MOST_LAST
                } else {
                    MOST_MORE
                };
                if last <= most * usual && before <= sum + sum / 4 {
                    all.push((volumes, last));
                }
            }
        }
    }
    all.sort();
    all.dedup();
    all
}
