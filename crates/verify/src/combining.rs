//! Replay of collectives with reductions. For each chunk, every rank has a set of ranks: those
//! whose contributions its copy of the chunk contains.
//!
//! Before the collective, rank r has the set {r}. A reduction adds the set that is sent to the
//! receiver's set. The two sets must be disjoint; otherwise a contribution would count twice. A
//! copy replaces the receiver's set by the set that is sent, which must be a strict superset. A
//! sender keeps its set; if one of its contributions arrives a second time somewhere, this is
//! reported there.
//!
//! In a barrier nothing is computed, so that sets may overlap. A signal must carry a contribution
//! that its receiver did not have at the start of the step, and a rank must not signal twice to the
//! same rank in a step.
//!
//! Sets are rows of bits, with one bit per rank. Copies share a row. A reduction changes a row in
//! place if no other rank uses the row, so that a final result that all ranks share needs no
//! further rows. No sets are needed if counting is enough (`counting`) or if `signals` proves a
//! barrier.

use std::collections::BTreeSet;
use std::ops::Range;

use super::counting::Counting;
use super::delivery::{Delivery, DeliveryRule, Effect, report_idle};
use super::report::{Report, counted, named, transfer_violation};
use super::signals;
use super::{Violation, ViolationKind};
use opticoll_base::interrupt;
use opticoll_plan::collective::Holders;
use opticoll_plan::plan::Plan;

/// Maximum number of 64-bit words in the rows of one chunk: 2 GiB.
const MAX_WORDS: usize = 1 << 28;

/// Set of ranks whose contributions a chunk contains.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Set {
    /// Contribution of this rank only.
    Own(u32),
    /// Index of a row of bits.
    Row(u32),
}

/// Rows of bits, and the number of users of each row.
struct Rows {
    words: usize,
    bits: Vec<u64>,
    users: Vec<u32>,
    free: Vec<u32>,
}

impl Rows {
    fn row(&self, row: u32) -> &[u64] {
        &self.bits[row as usize * self.words..][..self.words]
    }

    fn clear(&mut self) {
        self.bits.clear();
        self.users.clear();
        self.free.clear();
    }

    fn has_room(&self) -> bool {
        !self.free.is_empty() || self.bits.len() + self.words <= MAX_WORDS
    }

    fn add_user(&mut self, set: Set) {
        if let Set::Row(row) = set {
            self.users[row as usize] += 1;
        }
    }

    fn remove_user(&mut self, set: Set) {
        if let Set::Row(row) = set {
            self.users[row as usize] -= 1;
            if self.users[row as usize] == 0 {
                self.free.push(row);
            }
        }
    }

    fn contains(&self, set: Set, rank: u32) -> bool {
        match set {
            Set::Own(own) => own == rank,
            Set::Row(row) => self.row(row)[rank as usize / 64] >> (rank % 64) & 1 == 1,
        }
    }

    fn len(&self, set: Set) -> u32 {
        match set {
            Set::Own(_) => 1,
            Set::Row(row) => self.row(row).iter().map(|word| word.count_ones()).sum(),
        }
    }

    /// Applies `combine` to each pair of words of the sets `one` and `two`. Returns the lowest rank
    /// whose bit is set in the results.
    fn first_rank(&self, one: Set, two: Set, combine: impl Fn(u64, u64) -> u64) -> Option<u32> {
        let word_of = |set: Set, index: usize| match set {
            Set::Row(row) => self.row(row)[index],
            Set::Own(rank) if rank as usize / 64 == index => 1 << (rank % 64),
            Set::Own(_) => 0,
        };
        (0..self.words).find_map(|index| {
            let bits = combine(word_of(one, index), word_of(two, index));
            (bits != 0).then(|| index as u32 * 64 + bits.trailing_zeros())
        })
    }

    fn common(&self, one: Set, two: Set) -> Option<u32> {
        match (one, two) {
            (Set::Own(rank), other) | (other, Set::Own(rank)) => {
                self.contains(other, rank).then_some(rank)
            }
            (Set::Row(a), Set::Row(b)) => {
                let common_bits = self
                    .row(a)
                    .iter()
                    .zip(self.row(b))
                    .fold(0, |common_bits, (a, b)| common_bits | a & b);
                if common_bits == 0 {
                    None
                } else {
                    self.first_rank(one, two, |a, b| a & b)
                }
            }
        }
    }

    /// Returns the lowest rank that is in `one` but not in `two`.
    fn missing_rank(&self, one: Set, two: Set) -> Option<u32> {
        match one {
            Set::Own(rank) => (!self.contains(two, rank)).then_some(rank),
            Set::Row(_) => self.first_rank(one, two, |a, b| a & !b),
        }
    }

    /// Returns the index of a row with the bits of `set`. Only the caller uses this row, and the
    /// caller no longer uses `set`.
    fn own_row(&mut self, set: Set) -> u32 {
        if let Set::Row(row) = set
            && self.users[row as usize] == 1
        {
            return row;
        }
        let new_row = self.free.pop().unwrap_or_else(|| {
            self.users.push(0);
            self.bits.resize(self.bits.len() + self.words, 0);
            (self.users.len() - 1) as u32
        });
        self.users[new_row as usize] = 1;
        let start = new_row as usize * self.words;
        match set {
            Set::Own(rank) => {
                self.bits[start..start + self.words].fill(0);
                self.bits[start + rank as usize / 64] |= 1 << (rank % 64);
            }
            Set::Row(row) => {
                let from = row as usize * self.words;
                self.bits.copy_within(from..from + self.words, start);
            }
        }
        self.remove_user(set);
        new_row
    }

    fn unite(&mut self, row: u32, set: Set) {
        let start = row as usize * self.words;
        match set {
            Set::Own(rank) => self.bits[start + rank as usize / 64] |= 1 << (rank % 64),
            Set::Row(other) if other == row => {}
            Set::Row(other) => {
                let from = other as usize * self.words;
                let (low, high) = self.bits.split_at_mut(start.max(from));
                let (into, from) = if start < from {
                    (&mut low[start..start + self.words], &high[..self.words])
                } else {
                    (&mut high[..self.words], &low[from..from + self.words])
                };
                for (word, more) in into.iter_mut().zip(from) {
                    *word |= more;
                }
            }
        }
    }
}

/// Last delivery of the chunk to a rank: its step, and its index among the deliveries of the chunk.
#[derive(Clone, Copy)]
struct Arrival {
    step: u32,
    position: u32,
}

const NO_ARRIVAL: Arrival = Arrival {
    step: u32::MAX,
    position: 0,
};

/// State of the replay, which handles one chunk after another.
pub(super) struct Combining<'a> {
    plan: &'a Plan,
    rows: Rows,
    /// Set of contributions that each rank has now, indexed by rank.
    held: Vec<Set>,
    /// Set that each delivery of the step sends, indexed by position in the step.
    sent: Vec<Set>,
    arrival: Vec<Arrival>,
    counting: Counting,
}

impl<'a> Combining<'a> {
    pub(super) fn new(plan: &'a Plan) -> Combining<'a> {
        let ranks = plan.schedule.collective.ranks();
        let words = (ranks as usize).div_ceil(64);
        Combining {
            plan,
            rows: Rows {
                words,
                bits: Vec::new(),
                users: Vec::new(),
                free: Vec::new(),
            },
            held: (0..ranks).map(Set::Own).collect(),
            sent: Vec::new(),
            arrival: vec![NO_ARRIVAL; ranks as usize],
            counting: Counting::new(plan.schedule.collective),
        }
    }

    /// Replays the deliveries in the range `step`, which form one step. Returns false if the limit
    /// of memory is reached.
    fn replay_step(
        &mut self,
        chunk: u32,
        deliveries: &[Delivery],
        step: Range<usize>,
        report: &mut Report,
    ) -> bool {
        self.sent.clear();
        for delivery in &deliveries[step.clone()] {
            interrupt::check();
            let set = self.held[delivery.source as usize];
            self.rows.add_user(set);
            self.sent.push(set);
        }
        if self.plan.schedule.collective.overlaps() {
            self.check_signals(chunk, &deliveries[step.clone()], report);
        }
        for position in step.clone() {
            interrupt::check();
            let set = self.sent[position - step.start];
            if !self.rows.has_room() {
                return false;
            }
            self.deliver(chunk, deliveries, position, set, report);
        }
        for &set in &self.sent {
            self.rows.remove_user(set);
        }
        true
    }

    /// Applies the delivery with index `position` and reports the rules that it breaks. `set` is
    /// the set that the delivery sends.
    fn deliver(
        &mut self,
        chunk: u32,
        deliveries: &[Delivery],
        position: usize,
        set: Set,
        report: &mut Report,
    ) {
        let delivery = &deliveries[position];
        let rank = delivery.destination as usize;
        let earlier = self.arrival[rank];
        if earlier.step == delivery.step {
            let other = &deliveries[earlier.position as usize];
            if other.effect == Effect::Copy || delivery.effect == Effect::Copy {
                // The first delivery counts, and the second is ignored.
                return report.add(ViolationKind::CopyConflict, || {
                    self.copy_conflict(chunk, other, delivery)
                });
            }
        }
        self.arrival[rank] = Arrival {
            step: delivery.step,
            position: position as u32,
        };
        let current = self.held[rank];
        match delivery.effect {
            Effect::Reduce => {
                let overlaps = self.plan.schedule.collective.overlaps();
                let twice = self.rows.common(set, current).filter(|_| !overlaps);
                if let Some(twice) = twice {
                    report.add(ViolationKind::DoubleReduction, || {
                        self.double_reduction(chunk, delivery, twice)
                    });
                }
                let row = self.rows.own_row(current);
                self.rows.unite(row, set);
                self.held[rank] = Set::Row(row);
            }
            Effect::Copy => {
                if let Some(missing_rank) = self.rows.missing_rank(current, set) {
                    report.add(ViolationKind::LostContribution, || {
                        self.lost_contribution(chunk, delivery, missing_rank)
                    });
                } else if self.rows.missing_rank(set, current).is_none() {
                    report.add(ViolationKind::Duplicate, || self.duplicate(chunk, delivery));
                }
                self.rows.add_user(set);
                self.rows.remove_user(current);
                self.held[rank] = set;
            }
        }
    }

    /// Reports the signals of a step that bring nothing new to their receivers, or that repeat a
    /// signal.
    fn check_signals(&self, chunk: u32, step: &[Delivery], report: &mut Report) {
        let mut ends = BTreeSet::new();
        // Copies are checked on delivery.
        let signals = step.iter().zip(&self.sent);
        for (delivery, &set) in signals.filter(|(delivery, _)| delivery.effect == Effect::Reduce) {
            interrupt::check();
            let receiver_set = self.held[delivery.destination as usize];
            let is_repeated = !ends.insert((delivery.source, delivery.destination));
            if is_repeated || self.rows.missing_rank(set, receiver_set).is_none() {
                report.add(ViolationKind::Duplicate, || self.duplicate(chunk, delivery));
            }
        }
    }

    fn finish(&self, chunk: u32, report: &mut Report) {
        let ranks = self.plan.schedule.collective.ranks();
        match self.plan.schedule.collective.after(chunk) {
            Holders::One(rank) => self.finish_rank(chunk, rank, report),
            Holders::All => {
                // Copies share rows, so that most ranks have the same row as the previous rank.
                let mut complete = None;
                for rank in 0..ranks {
                    let set = self.held[rank as usize];
                    if complete != Some(set) {
                        complete = (self.rows.len(set) == ranks).then_some(set);
                    }
                    if complete.is_none() {
                        self.finish_rank(chunk, rank, report);
                    }
                }
            }
        }
    }

    fn finish_rank(&self, chunk: u32, rank: u32, report: &mut Report) {
        let ranks = self.plan.schedule.collective.ranks();
        let lacking = ranks - self.rows.len(self.held[rank as usize]);
        if lacking > 0 {
            report.add(ViolationKind::Missing, || {
                missing(ranks, rank, chunk, lacking)
            });
        }
    }

    fn violation(
        &self,
        kind: ViolationKind,
        chunk: u32,
        delivery: &Delivery,
        ending: &str,
    ) -> Violation {
        let verb = match delivery.effect {
            Effect::Copy => "copies",
            Effect::Reduce => "reduces",
        };
        let transfer = delivery.transfer as usize;
        let slot = self.plan.slot[transfer];
        let problem = format!("{verb} chunk {chunk} {ending}");
        Violation {
            rank: Some(delivery.destination),
            chunk: Some(chunk),
            ..transfer_violation(self.plan, kind, slot, transfer, &problem)
        }
    }

    fn double_reduction(&self, chunk: u32, delivery: &Delivery, twice: u32) -> Violation {
        let ending = format!(
            "into that of rank {}, which already has the contribution of rank {twice}",
            delivery.destination
        );
        self.violation(ViolationKind::DoubleReduction, chunk, delivery, &ending)
    }

    fn lost_contribution(&self, chunk: u32, delivery: &Delivery, missing_rank: u32) -> Violation {
        let ending = format!(
            "over that of rank {} and loses the contribution of rank {missing_rank}",
            delivery.destination
        );
        self.violation(ViolationKind::LostContribution, chunk, delivery, &ending)
    }

    fn duplicate(&self, chunk: u32, delivery: &Delivery) -> Violation {
        let where_to = match delivery.effect {
            Effect::Copy => "over that",
            Effect::Reduce => "into that",
        };
        let ending = format!(
            "{where_to} of rank {}, which has the same already",
            delivery.destination
        );
        self.violation(ViolationKind::Duplicate, chunk, delivery, &ending)
    }

    fn copy_conflict(&self, chunk: u32, earlier: &Delivery, delivery: &Delivery) -> Violation {
        let ending = format!(
            "into rank {} in the same step as transfer {}, and one of them is a copy",
            delivery.destination,
            named(self.plan, earlier.transfer as usize)
        );
        let mut conflict = self.violation(ViolationKind::CopyConflict, chunk, delivery, &ending);
        conflict.transfers.insert(0, earlier.transfer as usize);
        conflict
    }
}

impl DeliveryRule for Combining<'_> {
    fn replay(&mut self, chunk: u32, deliveries: &[Delivery], report: &mut Report) {
        let collective = self.plan.schedule.collective;
        let proved = match collective.overlaps() {
            true => signals::prove(collective.ranks(), deliveries),
            false => self.counting.prove(chunk, deliveries),
        };
        if proved {
            return;
        }
        let mut start = 0;
        let mut has_room = true;
        while has_room && start < deliveries.len() {
            interrupt::check();
            let step = deliveries[start].step;
            let length = deliveries[start..].partition_point(|delivery| delivery.step == step);
            has_room = self.replay_step(chunk, deliveries, start..start + length, report);
            start += length;
        }
        if has_room {
            self.finish(chunk, report);
        } else {
            report.add(ViolationKind::TooLarge, || Violation {
                chunk: Some(chunk),
                ..Violation::new(
                    ViolationKind::TooLarge,
                    format!("the contributions of chunk {chunk} do not fit into memory"),
                )
            });
        }
        for rank in deliveries.iter().map(|delivery| delivery.destination) {
            self.held[rank as usize] = Set::Own(rank);
            self.arrival[rank as usize] = NO_ARRIVAL;
        }
        self.rows.clear();
    }

    fn idle(&mut self, chunks: Range<u32>, report: &mut Report) {
        let collective = self.plan.schedule.collective;
        let ranks = collective.ranks();
        let lacking = |chunk| match collective.after(chunk) {
            Holders::One(rank) => rank..rank + 1,
            Holders::All => 0..ranks,
        };
        let lacking_count = |chunk: u32| match ranks {
            1 => 0,
            _ => lacking(chunk).len() as u64,
        };
        let missing = |rank, chunk| missing(ranks, rank, chunk, ranks - 1);
        report_idle(self.plan, chunks, lacking, lacking_count, missing, report);
    }
}

fn missing(ranks: u32, rank: u32, chunk: u32, lacking: u32) -> Violation {
    let sentence = format!(
        "at the end rank {rank} holds chunk {chunk} without {} of {ranks}",
        counted(u64::from(lacking), "contribution")
    );
    Violation {
        rank: Some(rank),
        chunk: Some(chunk),
        ..Violation::new(ViolationKind::Missing, sentence)
    }
}
