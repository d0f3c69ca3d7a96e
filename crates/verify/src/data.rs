//! Does every rank end with what the collective demands?
//!
//! Chunks have nothing to do with one another, so the transfers are dealt out chunk by chunk, in
//! the order of their steps, and each chunk is replayed with little state: by `copying` where
//! chunks are only passed on, by `combining` where contributions are added up. Chunks that are always sent
//! together are one stretch (`stretches`), of which one chunk of each block is replayed. Plans that only copy, in
//! long transfers or chunks that many ranks get, are tried first as a whole, by `holdings`. To bound
//! memory the stretches are taken in windows of a few million deliveries. What the replay takes is counted
//! before it begins, and refused where that is too much.

use std::ops::Range;

use super::combining::Combining;
use super::copying::Copying;
use super::delivery::{Delivery, DeliveryRule};
use super::form::Admitted;
use super::holdings;
use super::report::Report;
use super::{Violation, ViolationKind};
use opticoll_base::interrupt;
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Action, Transfer};

/// The most deliveries, and the most stretches, of a window.
const WINDOW: u64 = 1 << 22;

/// Into how many parts stretches are cut to find windows.
const PARTS: u32 = 1 << 12;

/// The most work of a replay, in nanoseconds of some processor of 2020: about a minute.
const MOST_WORK: u64 = 1 << 36;

/// The work of replaying a delivery and, where contributions are added up, a word of 64 of them.
const DELIVERY_WORK: u64 = 8;

/// How many chunks a transfer carries, or how often a chunk is sent, on average, from where on chunks are
/// first followed as ranges: what that costs in vain is little then beside replaying them one by one.
const LONG: u64 = 4;

/// Replays the chunks of a range.
pub(super) fn check(plan: &Plan, admitted: &Admitted, chunks: Range<u32>, report: &mut Report) {
    let (mut transfers, mut deliveries) = (0, 0u64);
    for step in 0..plan.schedule.steps() {
        for (_, moved) in admitted.moved(plan, step) {
            transfers += 1;
            deliveries = deliveries.saturating_add(moved.count.into());
        }
    }
    let whole = chunks == (0..plan.schedule.collective.chunks());
    let collective = &plan.schedule.collective;
    let dense = deliveries > LONG * transfers.min(u64::from(collective.chunks()));
    if dense && whole && !collective.combines() && holdings::suffice(plan, admitted) {
        return;
    }
    let together = deliveries > LONG * transfers;
    let moves = Moves {
        plan,
        admitted,
        stretches: together.then(|| Stretches::new(plan, admitted, &chunks)),
        chunks,
    };
    let work = moves.work(deliveries);
    if work > MOST_WORK {
        return report.add(ViolationKind::TooLarge, || {
            let sentence = format!(
                "the plan delivers {deliveries} chunks to {} ranks; to replay them would take about {}, and \
                 no more than about {} is spent on it",
                collective.ranks(),
                duration(work),
                duration(MOST_WORK)
            );
            Violation::new(ViolationKind::TooLarge, sentence)
        });
    }
    if plan.schedule.collective.combines() {
        replay(&moves, &mut Combining::new(plan), report);
    } else {
        replay(&moves, &mut Copying::new(plan), report);
    }
}

/// So much work, in words.
fn duration(work: u64) -> String {
    let minutes = (work / 60_000_000_000).max(1);
    match minutes {
        1 => "a minute".into(),
        2..120 => format!("{minutes} minutes"),
        _ => format!("{} hours", minutes / 60),
    }
}

/// The transfers as the replay takes them: in the numbers of stretches, which are chunks where there is no
/// gain in seeing several as one.
struct Moves<'a> {
    plan: &'a Plan,
    admitted: &'a Admitted,
    stretches: Option<Stretches>,
    /// The chunks that are replayed.
    chunks: Range<u32>,
}

impl Moves<'_> {
    /// The stretches to be replayed.
    fn range(&self) -> Range<u32> {
        match &self.stretches {
            None => self.chunks.clone(),
            Some(stretches) => 0..stretches.starts.len() as u32,
        }
    }

    /// The chunks of a range of stretches that is not empty.
    fn chunks(&self, range: &Range<u32>) -> Range<u32> {
        match &self.stretches {
            None => range.clone(),
            Some(stretches) => {
                let start_of = |stretch: u32| stretches.starts.get(stretch as usize).copied();
                let end = start_of(range.end).unwrap_or(self.chunks.end);
                start_of(range.start).unwrap_or(end)..end
            }
        }
    }

    /// The transfers of a step, with the stretches that they carry in place of the chunks.
    fn of_step(&self, step: usize) -> impl Iterator<Item = (usize, Transfer)> {
        let moves = self.admitted.moved(self.plan, step);
        moves.map(|(transfer, moved)| {
            let Some(stretches) = &self.stretches else {
                return (transfer, moved);
            };
            let chunk = stretches.of(moved.chunk);
            let count = stretches.of(moved.chunk + moved.count) - chunk;
            let moved = Transfer {
                chunk,
                count,
                ..moved
            };
            (transfer, moved)
        })
    }

    /// The blocks that a stretch has chunks of.
    fn blocks(&self, stretch: u32) -> u64 {
        let chunks = self.chunks(&(stretch..stretch + 1));
        let pieces = self.plan.schedule.collective.pieces();
        u64::from((chunks.end - 1) / pieces - chunks.start / pieces + 1)
    }

    /// What the replay takes, in nanoseconds: a delivery for each block that it has chunks of; where
    /// contributions are added up, a word for every 64 ranks of a delivery, and a look at every rank at the
    /// end of each block's part of a stretch; and a look at each block that nobody sends.
    fn work(&self, deliveries: u64) -> u64 {
        let collective = &self.plan.schedule.collective;
        let ranks = u64::from(collective.ranks());
        let (mut delivery, mut end) = (DELIVERY_WORK, 0);
        if collective.combines() {
            delivery += ranks.div_ceil(64);
            end = ranks;
        }
        let chunks = u64::from(self.chunks.end - self.chunks.start);
        let idle = chunks / u64::from(collective.pieces());
        if self.stretches.is_none() {
            let ends = end * deliveries.min(chunks);
            let replayed = delivery.saturating_mul(deliveries);
            return replayed.saturating_add(ends).saturating_add(idle);
        }
        // How often a stretch is delivered, as the change from the one before.
        let stretches = self.range();
        let mut change = vec![0i64; stretches.len() + 1];
        for step in 0..self.plan.schedule.steps() {
            for (_, moved) in self.of_step(step) {
                let own = within(&moved, &stretches);
                if !own.is_empty() {
                    change[own.start as usize] += 1;
                    change[own.end as usize] -= 1;
                }
            }
        }
        let (mut depth, mut sum) = (0, idle);
        for (stretch, change) in stretches.zip(change) {
            depth += change;
            if depth > 0 {
                let each = delivery.saturating_mul(depth as u64).saturating_add(end);
                sum = sum.saturating_add(each.saturating_mul(self.blocks(stretch)));
            }
        }
        sum
    }
}

/// Chunks between two places where some transfer begins or ends: whichever is sent, all are.
struct Stretches {
    /// Of each, the first chunk; they cover the chunks that are replayed.
    starts: Vec<u32>,
}

impl Stretches {
    fn new(plan: &Plan, admitted: &Admitted, chunks: &Range<u32>) -> Stretches {
        let mut starts = vec![chunks.start];
        let mut tidy_at = 1 << 16;
        for step in 0..plan.schedule.steps() {
            for (_, moved) in admitted.moved(plan, step) {
                let own = within(&moved, chunks);
                starts.extend(
                    [own.start, own.end]
                        .iter()
                        .filter(|start| **start < chunks.end),
                );
            }
            // Most places are known from other transfers.
            if starts.len() > tidy_at {
                starts.sort_unstable();
                starts.dedup();
                tidy_at = 2 * starts.len().max(tidy_at / 2);
            }
        }
        starts.sort_unstable();
        starts.dedup();
        Stretches { starts }
    }

    /// The stretch that begins at a chunk; one more than the last at their end.
    fn of(&self, chunk: u32) -> u32 {
        self.starts.partition_point(|start| *start < chunk) as u32
    }
}

fn replay(moves: &Moves<'_>, rule: &mut impl DeliveryRule, report: &mut Report) {
    let mut scratch = Scratch::default();
    let range = moves.range();
    let mut untouched = range.start;
    for window in windows(moves, range.clone()) {
        interrupt::check();
        if untouched < window.start {
            rule.idle(moves.chunks(&(untouched..window.start)), report);
        }
        untouched = window.end;
        scratch.replay(moves, window, rule, report);
    }
    if untouched < range.end {
        rule.idle(moves.chunks(&(untouched..range.end)), report);
    }
}

/// The part of a transfer's chunks that lies in a range.
fn within(moved: &Transfer, chunks: &Range<u32>) -> Range<u32> {
    let (start, end) = (moved.chunk, moved.chunk + moved.count);
    start.max(chunks.start)..end.min(chunks.end)
}

/// Ranges of stretches, in order, that cover all of `chunks` with deliveries and have no more
/// than [`WINDOW`] of each, unless a single one has.
fn windows(moves: &Moves<'_>, chunks: Range<u32>) -> Vec<Range<u32>> {
    let part = (chunks.end - chunks.start).div_ceil(PARTS).max(1);
    let load = loads(moves, &chunks, part);
    let mut found: Vec<Range<u32>> = Vec::new();
    let mut open_load = 0;
    for (index, &load) in load.iter().enumerate().filter(|(_, load)| **load > 0) {
        interrupt::check();
        let start = chunks.start + index as u32 * part;
        let end = start.saturating_add(part).min(chunks.end);
        if load > WINDOW && end - start > 1 {
            found.extend(windows(moves, start..end));
            open_load = WINDOW;
            continue;
        }
        match found.last_mut() {
            Some(open) if open_load + load <= WINDOW && u64::from(end - open.start) <= WINDOW => {
                open.end = end;
                open_load += load;
            }
            _ => {
                found.push(start..end);
                open_load = load;
            }
        }
    }
    found
}

/// The number of deliveries in each part of a range of stretches.
fn loads(moves: &Moves<'_>, chunks: &Range<u32>, part: u32) -> Vec<u64> {
    let parts = (chunks.end - chunks.start).div_ceil(part) as usize;
    let mut load = vec![0u64; parts];
    // Parts that a transfer covers from end to end: +1 where they begin, -1 where they end.
    let mut covered = vec![0i64; parts + 1];
    let steps = 0..moves.plan.schedule.steps();
    for (_, moved) in steps.flat_map(|step| moves.of_step(step)) {
        let own = within(&moved, chunks);
        if own.is_empty() {
            continue;
        }
        let (start, last) = (own.start - chunks.start, own.end - 1 - chunks.start);
        let (first_part, last_part) = (start / part, last / part);
        if first_part == last_part {
            load[first_part as usize] += u64::from(last - start + 1);
            continue;
        }
        load[first_part as usize] += u64::from(part - start % part);
        load[last_part as usize] += u64::from(last % part + 1);
        covered[first_part as usize + 1] += 1;
        covered[last_part as usize] -= 1;
    }
    let mut depth = 0;
    for (load, covered) in load.iter_mut().zip(covered) {
        depth += covered;
        *load += depth as u64 * u64::from(part);
    }
    load
}

/// The deliveries of a window, stretch by stretch. Both columns are kept from window to window.
#[derive(Default)]
struct Scratch {
    next: Vec<u32>,
    deliveries: Vec<Delivery>,
}

impl Scratch {
    fn replay(
        &mut self,
        moves: &Moves<'_>,
        window: Range<u32>,
        rule: &mut impl DeliveryRule,
        report: &mut Report,
    ) {
        self.deal(moves, &window);
        let mut start = 0;
        let mut idle = window.start;
        for stretch in window.clone() {
            interrupt::check();
            let end = self.next[(stretch - window.start) as usize] as usize;
            if end > start {
                if idle < stretch {
                    rule.idle(moves.chunks(&(idle..stretch)), report);
                }
                idle = stretch + 1;
                let chunks = moves.chunks(&(stretch..idle));
                let pieces = moves.plan.schedule.collective.pieces();
                replay_stretch(chunks, pieces, &self.deliveries[start..end], rule, report);
            }
            start = end;
        }
        if idle < window.end {
            rule.idle(moves.chunks(&(idle..window.end)), report);
        }
    }

    /// Sorts the deliveries of a window by stretch, keeping the order of steps; afterwards
    /// `next[i]` is the end of those of the window's stretch i.
    fn deal(&mut self, moves: &Moves<'_>, window: &Range<u32>) {
        self.next.clear();
        self.next
            .resize((window.end - window.start) as usize + 1, 0);
        for step in 0..moves.plan.schedule.steps() {
            interrupt::check();
            for (_, moved) in moves.of_step(step) {
                for chunk in within(&moved, window) {
                    interrupt::check();
                    self.next[(chunk - window.start) as usize + 1] += 1;
                }
            }
        }
        for chunk in 1..self.next.len() {
            self.next[chunk] += self.next[chunk - 1];
        }
        let blank = Delivery {
            step: 0,
            source: 0,
            destination: 0,
            transfer: 0,
            action: Action::Copy,
        };
        self.deliveries
            .resize(self.next.last().map_or(0, |&total| total as usize), blank);
        for step in 0..moves.plan.schedule.steps() {
            interrupt::check();
            for (transfer, moved) in moves.of_step(step) {
                for chunk in within(&moved, window) {
                    interrupt::check();
                    let place = &mut self.next[(chunk - window.start) as usize];
                    self.deliveries[*place as usize] = Delivery {
                        step: step as u32,
                        source: moved.source,
                        destination: moved.destination,
                        transfer: transfer as u32,
                        action: moved.action,
                    };
                    *place += 1;
                }
            }
        }
    }
}

/// Replays the chunks of a stretch. Those of a block fare alike: after one that breaks no rule the others
/// break none, and after one that does they break the same, which is listed until lists are full.
fn replay_stretch(
    chunks: Range<u32>,
    pieces: u32,
    deliveries: &[Delivery],
    rule: &mut impl DeliveryRule,
    report: &mut Report,
) {
    let mut chunk = chunks.start;
    while chunk < chunks.end {
        let block_end = (u64::from(chunk / pieces) + 1) * u64::from(pieces);
        let end = block_end.min(u64::from(chunks.end)) as u32;
        if end - chunk == 1 {
            rule.replay(chunk, deliveries, report);
            chunk = end;
            continue;
        }
        let before = report.counts();
        rule.replay(chunk, deliveries, report);
        chunk += 1;
        let broken = report.since(&before);
        while chunk < end && !broken.iter().all(|(kind, _)| report.is_full(*kind)) {
            rule.replay(chunk, deliveries, report);
            chunk += 1;
        }
        for (kind, each) in broken {
            report.count(kind, each.saturating_mul(u64::from(end - chunk)));
        }
        chunk = end;
    }
}
