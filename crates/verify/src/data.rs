//! Proof that every rank ends with the data that the collective demands.
//!
//! Chunks are independent, so that the transfers are sorted by chunk and step, and each chunk is
//! replayed with little state: by `copying` if chunks are only passed on, by `combining` if
//! contributions are added up. Chunks that are always sent together form a stretch (`Stretches`),
//! of which one chunk of each block is replayed. Plans that only copy, in long transfers or chunks
//! that many ranks receive, are first tried as a whole by `intervals`. To bound memory, the
//! stretches are taken in windows of a few million deliveries. The work of the replay is counted
//! before it begins, and a plan with too much work is refused.

use std::ops::Range;

use super::combining::Combining;
use super::copying::Copying;
use super::delivery::{Delivery, DeliveryRule};
use super::form::Admitted;
use super::intervals;
use super::report::Report;
use super::{Violation, ViolationKind};
use opticoll_base::interrupt;
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::{Action, Transfer};

/// Maximum number of deliveries, and of stretches, in a window.
const MAX_WINDOW: u64 = 1 << 22;

/// Number of parts into which stretches are cut to find windows.
const PARTS: u32 = 1 << 12;

/// Maximum work of a replay in nanoseconds on a processor of 2020: about a minute.
const MAX_WORK_NS: u64 = 1 << 36;

/// Work of replaying a delivery in nanoseconds. If contributions are added up, each word of 64
/// ranks adds 1 ns.
const DELIVERY_WORK_NS: u64 = 8;

/// Mean number of chunks per transfer, or of deliveries per chunk, above which chunks are followed
/// as ranges: as a whole by `intervals`, and otherwise in stretches. An attempt that fails costs
/// little compared with the replay.
const MIN_MEAN_FOR_RANGES: u64 = 4;

/// Replays the chunks of a range and reports the rules that they break.
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
    let dense = deliveries > MIN_MEAN_FOR_RANGES * transfers.min(u64::from(collective.chunks()));
    if dense && whole && !collective.combines() && intervals::prove(plan, admitted) {
        return;
    }
    let together = deliveries > MIN_MEAN_FOR_RANGES * transfers;
    let moves = Moves {
        plan,
        admitted,
        stretches: together.then(|| Stretches::new(plan, admitted, &chunks)),
        chunks,
    };
    let work = moves.work(deliveries);
    if work > MAX_WORK_NS {
        return report.add(ViolationKind::TooLarge, || {
            let sentence = format!(
                "the plan delivers {deliveries} chunks to {} ranks; to replay them would take \
                 about {}, and no more than about {} is spent on it",
                collective.ranks(),
                duration(work),
                duration(MAX_WORK_NS)
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

/// Returns a work in nanoseconds as words.
fn duration(work: u64) -> String {
    let minutes = (work / 60_000_000_000).max(1);
    match minutes {
        1 => "a minute".into(),
        2..120 => format!("{minutes} minutes"),
        _ => format!("{} hours", minutes / 60),
    }
}

/// Transfers as the replay sees them: chunks are numbered by stretches, or by themselves if
/// stretches gain nothing.
struct Moves<'a> {
    plan: &'a Plan,
    admitted: &'a Admitted,
    stretches: Option<Stretches>,
    /// Chunks that are replayed.
    chunks: Range<u32>,
}

impl Moves<'_> {
    /// Returns the stretches that are replayed.
    fn range(&self) -> Range<u32> {
        match &self.stretches {
            None => self.chunks.clone(),
            Some(stretches) => 0..stretches.starts.len() as u32,
        }
    }

    /// Returns the chunks of a non-empty range of stretches.
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

    /// Returns the transfers of a step, with stretches in place of chunks.
    fn transfers_in_step(&self, step: usize) -> impl Iterator<Item = (usize, Transfer)> {
        let moves = self.admitted.moved(self.plan, step);
        moves.map(|(transfer, moved)| {
            let Some(stretches) = &self.stretches else {
                return (transfer, moved);
            };
            let chunk = stretches.index_of(moved.chunk);
            let count = stretches.index_of(moved.chunk + moved.count) - chunk;
            let moved = Transfer {
                chunk,
                count,
                ..moved
            };
            (transfer, moved)
        })
    }

    /// Returns the number of blocks that a stretch has chunks of.
    fn blocks(&self, stretch: u32) -> u64 {
        let chunks = self.chunks(&(stretch..stretch + 1));
        let pieces = self.plan.schedule.collective.pieces();
        u64::from((chunks.end - 1) / pieces - chunks.start / pieces + 1)
    }

    /// Returns the work of the replay in nanoseconds: deliveries, for each block that a stretch has
    /// chunks of; if contributions are added up, a word for every 64 ranks of a delivery, and a
    /// look at every rank at the end of each block's part of a stretch; and a look at each block
    /// that no rank sends.
    fn work(&self, deliveries: u64) -> u64 {
        let collective = &self.plan.schedule.collective;
        let ranks = u64::from(collective.ranks());
        let (mut delivery, mut end) = (DELIVERY_WORK_NS, 0);
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
        // Number of deliveries of a stretch, as the difference to the stretch before.
        let stretches = self.range();
        let mut change = vec![0i64; stretches.len() + 1];
        for step in 0..self.plan.schedule.steps() {
            for (_, moved) in self.transfers_in_step(step) {
                let sent = within(&moved, &stretches);
                if !sent.is_empty() {
                    change[sent.start as usize] += 1;
                    change[sent.end as usize] -= 1;
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

/// Ranges of chunks between two places at which some transfer begins or ends: a transfer carries
/// all chunks of a stretch or none.
struct Stretches {
    /// First chunk of each stretch; the stretches cover the replayed chunks.
    starts: Vec<u32>,
}

impl Stretches {
    fn new(plan: &Plan, admitted: &Admitted, chunks: &Range<u32>) -> Stretches {
        let mut starts = vec![chunks.start];
        let mut tidy_at = 1 << 16;
        for step in 0..plan.schedule.steps() {
            for (_, moved) in admitted.moved(plan, step) {
                let sent = within(&moved, chunks);
                starts.extend(
                    [sent.start, sent.end]
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

    /// Returns the stretch that begins at a chunk, or the number of stretches for the end of the
    /// chunks.
    fn index_of(&self, chunk: u32) -> u32 {
        self.starts.partition_point(|start| *start < chunk) as u32
    }
}

/// Replays all windows, and reports what ranks lack of chunks that are never sent.
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

/// Returns the part of a transfer's chunks that lies in a range.
fn within(moved: &Transfer, chunks: &Range<u32>) -> Range<u32> {
    let (start, end) = (moved.chunk, moved.chunk + moved.count);
    start.max(chunks.start)..end.min(chunks.end)
}

/// Returns ranges of stretches, in order, that cover all of `chunks` with deliveries. Each range
/// has at most [`MAX_WINDOW`] deliveries and stretches, unless it is a single stretch.
fn windows(moves: &Moves<'_>, chunks: Range<u32>) -> Vec<Range<u32>> {
    let part = (chunks.end - chunks.start).div_ceil(PARTS).max(1);
    let load = loads(moves, &chunks, part);
    let mut found: Vec<Range<u32>> = Vec::new();
    let mut open_load = 0;
    for (index, &load) in load.iter().enumerate().filter(|(_, load)| **load > 0) {
        interrupt::check();
        let start = chunks.start + index as u32 * part;
        let end = start.saturating_add(part).min(chunks.end);
        if load > MAX_WINDOW && end - start > 1 {
            found.extend(windows(moves, start..end));
            open_load = MAX_WINDOW;
            continue;
        }
        match found.last_mut() {
            Some(open)
                if open_load + load <= MAX_WINDOW && u64::from(end - open.start) <= MAX_WINDOW =>
            {
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

/// Returns the number of deliveries in each part of a range of stretches.
fn loads(moves: &Moves<'_>, chunks: &Range<u32>, part: u32) -> Vec<u64> {
    let parts = (chunks.end - chunks.start).div_ceil(part) as usize;
    let mut load = vec![0u64; parts];
    // Parts that a transfer covers from end to end: +1 where they begin, -1 where they end.
    let mut covered = vec![0i64; parts + 1];
    let steps = 0..moves.plan.schedule.steps();
    for (_, moved) in steps.flat_map(|step| moves.transfers_in_step(step)) {
        let sent = within(&moved, chunks);
        if sent.is_empty() {
            continue;
        }
        let (start, last) = (sent.start - chunks.start, sent.end - 1 - chunks.start);
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

/// Deliveries of a window, sorted by stretch. The memory of both columns is used again for each
/// window.
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

    /// Sorts the deliveries of a window by stretch, in the order of steps. Afterwards `next[i]` is
    /// the end of the deliveries of the window's stretch i.
    fn deal(&mut self, moves: &Moves<'_>, window: &Range<u32>) {
        self.next.clear();
        self.next
            .resize((window.end - window.start) as usize + 1, 0);
        for step in 0..moves.plan.schedule.steps() {
            interrupt::check();
            for (_, moved) in moves.transfers_in_step(step) {
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
            for (transfer, moved) in moves.transfers_in_step(step) {
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

/// Replays the chunks of a stretch. Chunks of a block break the same rules: if the first breaks
/// none, the others are skipped; otherwise they are replayed until the lists of violations are
/// full, and counted from there on.
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
