//! Does every rank end with what the collective demands?
//!
//! Chunks have nothing to do with one another, so the transfers are dealt out chunk by chunk, in
//! the order of their steps, and each chunk is replayed with little state: by `copying` where
//! chunks are only passed on, by `combining` where contributions are added up. Plans that only copy, in
//! long transfers or chunks that many ranks get, are tried first as a whole, by `holdings`. To bound
//! memory the chunks are taken in windows of a few million deliveries.

use std::ops::Range;

use super::combining::Combining;
use super::copying::Copying;
use super::form::Admitted;
use super::holdings;
use super::report::Report;
use super::{Violation, ViolationKind};
use crate::interrupt;
use crate::plan::Plan;
use crate::schedule::{Action, Transfer};

/// The most deliveries, and the most chunks, of a window.
const WINDOW: u64 = 1 << 22;

/// Into how many parts chunks are cut to find windows.
const PARTS: u32 = 1 << 12;

/// The most deliveries that are replayed: some minutes of work.
const MOST_DELIVERIES: u64 = 1 << 36;

/// How many chunks a transfer carries, or how often a chunk is sent, on average, from where on chunks are
/// first followed as ranges: what that costs in vain is little then beside replaying them one by one.
const LONG: u64 = 4;

/// One chunk of a transfer.
#[derive(Clone, Copy)]
pub(super) struct Delivery {
    pub(super) step: u32,
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) transfer: u32,
    pub(super) action: Action,
}

/// What is demanded of a chunk.
pub(super) trait Rule {
    /// Replays the deliveries of a chunk, which are in the order of steps and not empty.
    fn replay(&mut self, chunk: u32, deliveries: &[Delivery], report: &mut Report);

    /// The chunks of a range are never sent.
    fn idle(&mut self, chunks: Range<u32>, report: &mut Report);
}

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
    if deliveries > MOST_DELIVERIES {
        return report.add(ViolationKind::TooLarge, || {
            let sentence = format!(
                "the plan delivers {deliveries} chunks; no more than {MOST_DELIVERIES} are replayed"
            );
            Violation::new(ViolationKind::TooLarge, sentence)
        });
    }
    if plan.schedule.collective.combines() {
        replay(plan, admitted, chunks, &mut Combining::new(plan), report);
    } else {
        replay(plan, admitted, chunks, &mut Copying::new(plan), report);
    }
}

fn replay(
    plan: &Plan,
    admitted: &Admitted,
    chunks: Range<u32>,
    rule: &mut impl Rule,
    report: &mut Report,
) {
    let mut scratch = Scratch::default();
    let mut untouched = chunks.start;
    for window in windows(plan, admitted, chunks.clone()) {
        interrupt::check();
        if untouched < window.start {
            rule.idle(untouched..window.start, report);
        }
        untouched = window.end;
        scratch.replay(plan, admitted, window, rule, report);
    }
    if untouched < chunks.end {
        rule.idle(untouched..chunks.end, report);
    }
}

/// The part of a transfer's chunks that lies in a range.
fn within(moved: &Transfer, chunks: &Range<u32>) -> Range<u32> {
    let (start, end) = (moved.chunk, moved.chunk + moved.count);
    start.max(chunks.start)..end.min(chunks.end)
}

/// Ranges of chunks, in order, that cover all chunks of `chunks` with deliveries and have no more
/// than [`WINDOW`] of each, unless a single chunk has.
fn windows(plan: &Plan, admitted: &Admitted, chunks: Range<u32>) -> Vec<Range<u32>> {
    let part = (chunks.end - chunks.start).div_ceil(PARTS).max(1);
    let load = loads(plan, admitted, &chunks, part);
    let mut found: Vec<Range<u32>> = Vec::new();
    let mut open_load = 0;
    for (index, &load) in load.iter().enumerate().filter(|(_, load)| **load > 0) {
        interrupt::check();
        let start = chunks.start + index as u32 * part;
        let end = start.saturating_add(part).min(chunks.end);
        if load > WINDOW && end - start > 1 {
            found.extend(windows(plan, admitted, start..end));
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

/// The number of deliveries in each part of a range of chunks.
fn loads(plan: &Plan, admitted: &Admitted, chunks: &Range<u32>, part: u32) -> Vec<u64> {
    let parts = (chunks.end - chunks.start).div_ceil(part) as usize;
    let mut load = vec![0u64; parts];
    // Parts that a transfer covers from end to end: +1 where they begin, -1 where they end.
    let mut covered = vec![0i64; parts + 1];
    let steps = 0..plan.schedule.steps();
    for (_, moved) in steps.flat_map(|step| admitted.moved(plan, step)) {
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

/// The deliveries of a window, chunk by chunk. Both columns are kept from window to window.
#[derive(Default)]
struct Scratch {
    next: Vec<u32>,
    deliveries: Vec<Delivery>,
}

impl Scratch {
    fn replay(
        &mut self,
        plan: &Plan,
        admitted: &Admitted,
        window: Range<u32>,
        rule: &mut impl Rule,
        report: &mut Report,
    ) {
        self.deal(plan, admitted, &window);
        let mut start = 0;
        let mut idle = window.start;
        for chunk in window.clone() {
            interrupt::check();
            let end = self.next[(chunk - window.start) as usize] as usize;
            if end > start {
                if idle < chunk {
                    rule.idle(idle..chunk, report);
                }
                idle = chunk + 1;
                rule.replay(chunk, &self.deliveries[start..end], report);
            }
            start = end;
        }
        if idle < window.end {
            rule.idle(idle..window.end, report);
        }
    }

    /// Sorts the deliveries of a window by chunk, keeping the order of steps; afterwards
    /// `next[i]` is the end of those of the window's chunk i.
    fn deal(&mut self, plan: &Plan, admitted: &Admitted, window: &Range<u32>) {
        self.next.clear();
        self.next
            .resize((window.end - window.start) as usize + 1, 0);
        for step in 0..plan.schedule.steps() {
            interrupt::check();
            for (_, moved) in admitted.moved(plan, step) {
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
        for step in 0..plan.schedule.steps() {
            interrupt::check();
            for (transfer, moved) in admitted.moved(plan, step) {
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

/// Reports that ranks lack chunks that are never sent: `lacking` gives the ranks of a chunk, which
/// are as many for each chunk of one block.
pub(super) fn report_idle<Ranks: Iterator<Item = u32>>(
    plan: &Plan,
    chunks: Range<u32>,
    lacking: impl Fn(u32) -> Ranks,
    lacking_count: impl Fn(u32) -> u64,
    missing: impl Fn(u32, u32) -> Violation,
    report: &mut Report,
) {
    let kind = ViolationKind::Missing;
    let pieces = plan.schedule.collective.pieces();
    let mut chunk = chunks.start;
    while chunk < chunks.end {
        let block_end = (u64::from(chunk / pieces) + 1) * u64::from(pieces);
        let end = block_end.min(u64::from(chunks.end)) as u32;
        let each = lacking_count(chunk);
        if each == 0 {
            chunk = end;
        } else if report.is_full(kind) {
            report.count(kind, each * u64::from(end - chunk));
            chunk = end;
        } else {
            for rank in lacking(chunk) {
                report.add(kind, || missing(rank, chunk));
            }
            chunk += 1;
        }
    }
}
