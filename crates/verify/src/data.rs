//! Proof that every rank ends with the data that the collective demands.
//!
//! Chunks are independent of each other. The deliveries are therefore sorted by chunk and step, and
//! each chunk is replayed alone: by `copying` if chunks are only forwarded, by `combining` if
//! contributions are added up.
//!
//! Several shortcuts save work. A *chunk group* is a range of chunks that are always sent together;
//! of its chunks in the same block, only one is replayed. If a plan only copies, in long transfers
//! or with chunks that many ranks receive, `intervals` first tries to prove the whole plan. Chunk
//! groups are replayed in windows of a few million deliveries, which limits memory. The work of the
//! replay is estimated in advance, and a plan with too much work is rejected.

use std::ops::Range;

use super::combining::Combining;
use super::copying::Copying;
use super::delivery::{Delivery, DeliveryRule, Effect};
use super::form::Admitted;
use super::intervals;
use super::report::Report;
use super::{Violation, ViolationKind};
use opticoll_base::interrupt;
use opticoll_plan::plan::Plan;
use opticoll_plan::schedule::Transfer;

/// Maximum number of deliveries, and of chunk groups, in a window.
const MAX_WINDOW: u64 = 1 << 22;

/// Number of parts into which a range of chunk groups is divided to find windows.
const PARTS: u32 = 1 << 12;

/// Maximum work of a replay in nanoseconds on a processor of 2020: about a minute.
const MAX_WORK_NS: u64 = 1 << 36;

/// Work of replaying one delivery, in nanoseconds. If contributions are added up, every 64 ranks of
/// the collective add 1 ns.
const DELIVERY_WORK_NS: u64 = 8;

/// Mean number of chunks per transfer above which ranges of chunks are checked: by `intervals`,
/// otherwise in chunk groups. `intervals` is also tried above the same mean number of deliveries
/// per chunk. An unsuccessful attempt costs little compared with the replay.
const MIN_MEAN_FOR_RANGES: u64 = 4;

/// Replays the chunks in the range `chunks` and reports the rules that they break.
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
        chunk_groups: together.then(|| ChunkGroups::new(plan, admitted, &chunks)),
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

/// Returns a time in nanoseconds as words, such as `3 minutes`.
fn duration(work: u64) -> String {
    let minutes = (work / 60_000_000_000).max(1);
    match minutes {
        1 => "a minute".into(),
        2..120 => format!("{minutes} minutes"),
        _ => format!("{} hours", minutes / 60),
    }
}

/// Transfers for the replay. Their chunk numbers are indices of chunk groups if there are chunk
/// groups.
struct Moves<'a> {
    plan: &'a Plan,
    admitted: &'a Admitted,
    chunk_groups: Option<ChunkGroups>,
    chunks: Range<u32>,
}

impl Moves<'_> {
    /// Returns the range of chunk groups that are replayed; without chunk groups, the range of
    /// chunks.
    fn range(&self) -> Range<u32> {
        match &self.chunk_groups {
            None => self.chunks.clone(),
            Some(chunk_groups) => 0..chunk_groups.starts.len() as u32,
        }
    }

    /// Returns the chunks of a range of chunk groups, which is not empty.
    fn chunks(&self, range: &Range<u32>) -> Range<u32> {
        match &self.chunk_groups {
            None => range.clone(),
            Some(chunk_groups) => {
                let start_of =
                    |chunk_group: u32| chunk_groups.starts.get(chunk_group as usize).copied();
                let end = start_of(range.end).unwrap_or(self.chunks.end);
                start_of(range.start).unwrap_or(end)..end
            }
        }
    }

    /// Returns the transfers of a step. Their chunk numbers are indices of chunk groups if there
    /// are chunk groups.
    fn transfers_in_step(&self, step: usize) -> impl Iterator<Item = (usize, Transfer)> {
        let moves = self.admitted.moved(self.plan, step);
        moves.map(|(transfer, moved)| {
            let Some(chunk_groups) = &self.chunk_groups else {
                return (transfer, moved);
            };
            let chunk = chunk_groups.index_of(moved.chunk);
            let count = chunk_groups.index_of(moved.chunk + moved.count) - chunk;
            let moved = Transfer {
                chunk,
                count,
                ..moved
            };
            (transfer, moved)
        })
    }

    /// Returns the number of blocks whose chunks are in `chunk_group`.
    fn blocks(&self, chunk_group: u32) -> u64 {
        let chunks = self.chunks(&(chunk_group..chunk_group + 1));
        let pieces = self.plan.schedule.collective.pieces();
        u64::from((chunks.end - 1) / pieces - chunks.start / pieces + 1)
    }

    /// Returns the work of the replay in nanoseconds. Each delivery counts once per block of its
    /// chunk group. If contributions are added up, a delivery takes 1 ns more for every 64 ranks,
    /// and the end of each block takes 1 ns per rank. A block that no rank sends takes 1 ns.
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
        if self.chunk_groups.is_none() {
            let ends = end * deliveries.min(chunks);
            let replayed = delivery.saturating_mul(deliveries);
            return replayed.saturating_add(ends).saturating_add(idle);
        }
        // Change in the number of deliveries from each chunk group to the next.
        let chunk_groups = self.range();
        let mut change = vec![0i64; chunk_groups.len() + 1];
        for step in 0..self.plan.schedule.steps() {
            for (_, moved) in self.transfers_in_step(step) {
                let sent = within(&moved, &chunk_groups);
                if !sent.is_empty() {
                    change[sent.start as usize] += 1;
                    change[sent.end as usize] -= 1;
                }
            }
        }
        let (mut depth, mut sum) = (0, idle);
        for (chunk_group, change) in chunk_groups.zip(change) {
            depth += change;
            if depth > 0 {
                let each = delivery.saturating_mul(depth as u64).saturating_add(end);
                sum = sum.saturating_add(each.saturating_mul(self.blocks(chunk_group)));
            }
        }
        sum
    }
}

/// Ranges of chunks between the places at which transfers begin or end. A transfer carries all
/// chunks of a chunk group or none of them.
struct ChunkGroups {
    /// First chunk of each chunk group. The chunk groups cover all replayed chunks.
    starts: Vec<u32>,
}

impl ChunkGroups {
    fn new(plan: &Plan, admitted: &Admitted, chunks: &Range<u32>) -> ChunkGroups {
        let mut starts = vec![chunks.start];
        let mut max_unsorted = 1 << 16;
        for step in 0..plan.schedule.steps() {
            for (_, moved) in admitted.moved(plan, step) {
                let sent = within(&moved, chunks);
                starts.extend(
                    [sent.start, sent.end]
                        .iter()
                        .filter(|start| **start < chunks.end),
                );
            }
            // Many transfers begin or end at the same chunks: remove duplicates now and then.
            if starts.len() > max_unsorted {
                starts.sort_unstable();
                starts.dedup();
                max_unsorted = 2 * starts.len().max(max_unsorted / 2);
            }
        }
        starts.sort_unstable();
        starts.dedup();
        ChunkGroups { starts }
    }

    /// Returns the index of the chunk group that begins at `chunk`. Returns the number of chunk
    /// groups if `chunk` is the end of the last chunk group.
    fn index_of(&self, chunk: u32) -> u32 {
        self.starts.partition_point(|start| *start < chunk) as u32
    }
}

/// Replays all windows, and reports the ranks that lack chunks that are never sent.
fn replay(moves: &Moves<'_>, rule: &mut impl DeliveryRule, report: &mut Report) {
    let mut scratch = Scratch::default();
    let range = moves.range();
    let mut first_unsent = range.start;
    for window in windows(moves, range.clone()) {
        interrupt::check();
        if first_unsent < window.start {
            rule.idle(moves.chunks(&(first_unsent..window.start)), report);
        }
        first_unsent = window.end;
        scratch.replay(moves, window, rule, report);
    }
    if first_unsent < range.end {
        rule.idle(moves.chunks(&(first_unsent..range.end)), report);
    }
}

fn within(moved: &Transfer, chunks: &Range<u32>) -> Range<u32> {
    let (start, end) = (moved.chunk, moved.chunk + moved.count);
    start.max(chunks.start)..end.min(chunks.end)
}

/// Returns ranges of chunk groups, in ascending order, that cover all chunk groups of `chunks` with
/// deliveries. Each range has at most [`MAX_WINDOW`] deliveries and chunk groups, unless it is a
/// single chunk group.
fn windows(moves: &Moves<'_>, chunks: Range<u32>) -> Vec<Range<u32>> {
    let part = (chunks.end - chunks.start).div_ceil(PARTS).max(1);
    let load = loads(moves, &chunks, part);
    let mut windows_found: Vec<Range<u32>> = Vec::new();
    let mut last_load = 0;
    for (index, &load) in load.iter().enumerate().filter(|(_, load)| **load > 0) {
        interrupt::check();
        let start = chunks.start + index as u32 * part;
        let end = start.saturating_add(part).min(chunks.end);
        if load > MAX_WINDOW && end - start > 1 {
            windows_found.extend(windows(moves, start..end));
            last_load = MAX_WINDOW;
            continue;
        }
        match windows_found.last_mut() {
            Some(open)
                if last_load + load <= MAX_WINDOW && u64::from(end - open.start) <= MAX_WINDOW =>
            {
                open.end = end;
                last_load += load;
            }
            _ => {
                windows_found.push(start..end);
                last_load = load;
            }
        }
    }
    windows_found
}

/// Divides the range `chunks` of chunk groups into parts of `part` chunk groups each. Returns the
/// number of deliveries in each part.
fn loads(moves: &Moves<'_>, chunks: &Range<u32>, part: u32) -> Vec<u64> {
    let parts = (chunks.end - chunks.start).div_ceil(part) as usize;
    let mut load = vec![0u64; parts];
    // Parts that transfers cover completely: +1 where such parts begin, -1 where they end.
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

/// Deliveries of a window, sorted by chunk group. Each window uses the memory of the previous one.
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
        self.sort_deliveries(moves, &window);
        let mut start = 0;
        let mut idle = window.start;
        for chunk_group in window.clone() {
            interrupt::check();
            let end = self.next[(chunk_group - window.start) as usize] as usize;
            if end > start {
                if idle < chunk_group {
                    rule.idle(moves.chunks(&(idle..chunk_group)), report);
                }
                idle = chunk_group + 1;
                let chunks = moves.chunks(&(chunk_group..idle));
                let pieces = moves.plan.schedule.collective.pieces();
                replay_chunk_group(chunks, pieces, &self.deliveries[start..end], rule, report);
            }
            start = end;
        }
        if idle < window.end {
            rule.idle(moves.chunks(&(idle..window.end)), report);
        }
    }

    /// Sorts the deliveries of a window by chunk group and step. Afterwards, `next[i]` is the end
    /// of the deliveries of the window's chunk group i.
    fn sort_deliveries(&mut self, moves: &Moves<'_>, window: &Range<u32>) {
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
            effect: Effect::Copy,
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
                        effect: moved.action.into(),
                    };
                    *place += 1;
                }
            }
        }
    }
}

/// Replays the chunks of a chunk group. All chunks of a block break the same rules. If the first
/// chunk of a block breaks no rule, the other chunks of the block are skipped. Otherwise they are
/// replayed until the lists of violations are full. The violations of the remaining chunks are only
/// counted.
fn replay_chunk_group(
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
