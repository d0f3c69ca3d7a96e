//! Start times of the pieces of a stream on one circuit after another.
//!
//! Let x(p) be the start of piece p on a circuit. The piece starts when the previous piece has
//! ended, at x(p - 1) + t, where t is the time of a piece on this circuit. If the circuit has
//! waits, the piece starts no earlier than y(p) + a for each wait. Here y(p) is the start of piece
//! p on a circuit of an earlier slot, and a is the time that must pass after y(p). Starts are
//! stored as *runs*: consecutive pieces that start at equal intervals for the same reason.
//!
//! - If x(p) = x(p - 1) + t, the run continues until a wait with a longer interval determines the
//!   start.
//! - If x(p) = y(p) + a and the interval of y exceeds t, the run continues until another wait with
//!   a longer interval determines the start, or until the run of y ends.
//! - Otherwise, piece p is a run of one piece.
//!
//! All x are convex functions of p, so there are few runs.

use std::collections::BTreeMap;
use std::ops::Range;

use super::check_limit;
use crate::SimulationError;
use crate::outcome::SlotColumns;
use opticoll_base::interrupt;
use opticoll_base::units::{Time, UnitError};

/// Event for which a piece waited last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The first piece waited for the setup of its circuit.
    None,
    /// The piece waited for the end of the previous piece on its circuit.
    PieceBefore,
    /// The piece waited for its start on another circuit; the number is the index of the wait.
    Wait(u32),
}

/// Condition for the start of a piece: the time `after` has passed since the same piece started in
/// transfer `on`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    pub(super) on: usize,
    pub(super) after: Time,
}

/// Consecutive pieces that start at equal intervals: piece `first` at `start`, each next piece
/// `step` later.
#[derive(Debug, Clone, Copy)]
pub(super) struct PieceRun {
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) start: Time,
    pub(super) step: Time,
    pub(super) cause: Cause,
}

impl PieceRun {
    fn end(&self) -> u32 {
        self.first + self.count
    }

    /// Returns the start of `piece`, which is a piece of the run or the piece after its last piece.
    fn start_of(&self, piece: u32) -> Result<Time, UnitError> {
        let before = u64::from(piece - self.first);
        self.start.plus(self.step.times(before)?)
    }

    pub(super) fn last_start(&self) -> Result<Time, UnitError> {
        self.start_of(self.end() - 1)
    }
}

pub(super) fn run_of(runs: &[PieceRun], piece: u32) -> &PieceRun {
    &runs[runs.partition_point(|run| run.end() <= piece)]
}

/// Number of pieces that pass a circuit one after another, and their times on the circuit.
#[derive(Debug, Clone, Copy)]
pub(super) struct PieceTimes {
    pub(super) pieces: u32,
    /// Time until the circuit is up.
    pub(super) retune: Time,
    /// Time of each piece on the circuit.
    pub(super) taken: Time,
    pub(super) limit: Option<Time>,
}

/// Returns the starts of all pieces on a circuit, as runs. `started` contains the runs of the
/// transfers on earlier circuits, indexed by transfer.
///
/// # Errors
/// Returns an error for a time that exceeds 64 bits or the limit.
pub(super) fn starts(
    times: PieceTimes,
    waits: &[Wait],
    started: &[Vec<PieceRun>],
) -> Result<Vec<PieceRun>, SimulationError> {
    let PieceTimes { pieces, taken, .. } = times;
    let mut runs: Vec<PieceRun> = Vec::new();
    // For each wait, the index of the run that contains `piece`.
    let mut current = vec![0usize; waits.len()];
    let (mut free, mut cause) = (times.retune, Cause::None);
    let mut piece = 0;
    while piece < pieces {
        interrupt::check();
        // Advance to the runs on the other circuits that contain this piece.
        for (index, wait) in current.iter_mut().zip(waits) {
            *index += started[wait.on][*index..].partition_point(|run| run.end() <= piece);
        }
        let others = || {
            let indices = current.iter().zip(waits);
            indices.map(|(&index, wait)| (&started[wait.on][index], wait.after))
        };
        let mut start = free;
        for (number, (run, after)) in others().enumerate() {
            let until = run.start_of(piece)?.plus(after)?;
            if until > start {
                start = until;
                cause = Cause::Wait(number as u32);
            }
        }
        let known_until = others().map(|(run, _)| run.end()).min();
        let known_until = known_until.map_or(pieces, |end| end.min(pieces));
        let (step, count) = match cause {
            Cause::None => (taken, 1),
            Cause::PieceBefore => {
                let mut count = u64::from(known_until - piece);
                for (run, after) in others().filter(|(run, _)| run.step > taken) {
                    let behind = start.ps() - run.start_of(piece)?.plus(after)?.ps();
                    let gained = run.step.ps() - taken.ps();
                    count = count.min(behind / gained + 1);
                }
                (taken, count as u32)
            }
            Cause::Wait(number) => {
                let step = others().nth(number as usize).map(|(run, _)| run.step);
                let step = step.unwrap_or_default();
                let mut count = u64::from(known_until - piece);
                for (other, (run, after)) in others().enumerate() {
                    if run.step > step {
                        let behind = start.ps() - run.start_of(piece)?.plus(after)?.ps();
                        let gained = run.step.ps() - step.ps();
                        // Of several waits with equal times, the first is the cause.
                        count = count.min(match (other as u32) < number {
                            true => behind.div_ceil(gained),
                            false => behind / gained + 1,
                        });
                    }
                }
                match step > taken {
                    true => (step, count as u32),
                    false => (taken, 1),
                }
            }
        };
        let run = PieceRun {
            first: piece,
            count,
            start,
            step,
            cause,
        };
        free = run.last_start()?.plus(taken)?;
        piece += count;
        cause = Cause::PieceBefore;
        match runs.last_mut() {
            // A run can continue past the end of a run on another circuit.
            Some(last)
                if last.cause == run.cause
                    && last.step == run.step
                    && last.start_of(run.first)? == run.start =>
            {
                last.count += run.count;
            }
            _ => runs.push(run),
        }
    }
    check_limit(times.limit, free)?;
    Ok(runs)
}

/// Long runs of pieces, whose times are added to the starts and ends of their slots at the end.
#[derive(Default)]
pub(super) struct SlotSpans {
    /// Long runs; the key is the interval between pieces in picoseconds.
    long: BTreeMap<u64, Vec<LongRun>>,
}

/// Run of pieces that occupies the slots `slots`, with one piece per slot. Let d be the interval
/// between pieces, which is the key in [`SlotSpans::long`]. In slot s the piece starts at `start` +
/// s d and ends at `end` + s d, in picoseconds.
struct LongRun {
    slots: Range<usize>,
    start: i128,
    end: i128,
}

/// Minimum number of pieces of a long run. The pieces of shorter runs are simulated one by one.
const MIN_LONG_RUN: usize = 64;

impl SlotSpans {
    /// Adds the pieces of a run. The first piece is in slot `slot`, and each piece takes the time
    /// `taken`.
    pub(super) fn add(
        &mut self,
        columns: &mut SlotColumns,
        slot: usize,
        run: &PieceRun,
        taken: Time,
    ) -> Result<(), UnitError> {
        let slots = slot..slot + run.count as usize;
        if slots.len() >= MIN_LONG_RUN {
            let step = i128::from(run.step.ps());
            let start = i128::from(run.start.ps()) - slot as i128 * step;
            self.long.entry(run.step.ps()).or_default().push(LongRun {
                slots,
                start,
                end: start + i128::from(taken.ps()),
            });
            return Ok(());
        }
        for (slot, piece) in slots.zip(run.first..) {
            let start = run.start_of(piece)?;
            let began = match run.cause {
                Cause::None => Time::ZERO,
                _ => start,
            };
            columns.start[slot] = columns.start[slot].min(began);
            columns.end[slot] = columns.end[slot].max(start.plus(taken)?);
        }
        Ok(())
    }

    /// Adds the long runs to the columns. Among runs with equal intervals, the run that starts
    /// first in one slot also starts first in every other slot that the runs share, and the run
    /// that ends last also ends last in these slots.
    pub(super) fn close(self, columns: &mut SlotColumns) {
        let mut free = UnassignedSlots::default();
        for (step, mut runs) in self.long {
            let at = |offset: i128, slot: usize| {
                let time = offset + slot as i128 * i128::from(step);
                Time::from_ps(u64::try_from(time).unwrap_or(u64::MAX))
            };
            runs.sort_by_key(|run| run.start);
            free.clear(columns.start.len());
            for run in &runs {
                free.assign_free(&run.slots, |slot| {
                    columns.start[slot] = columns.start[slot].min(at(run.start, slot));
                });
            }
            runs.sort_by_key(|run| std::cmp::Reverse(run.end));
            free.clear(columns.end.len());
            for run in &runs {
                free.assign_free(&run.slots, |slot| {
                    columns.end[slot] = columns.end[slot].max(at(run.end, slot));
                });
            }
        }
    }
}

/// Slots to which no run has been assigned yet, as a union-find forest.
#[derive(Default)]
struct UnassignedSlots {
    /// Slot from which to search for the next free slot; a free slot refers to itself.
    next: Vec<usize>,
}

impl UnassignedSlots {
    fn clear(&mut self, slots: usize) {
        self.next.clear();
        self.next.extend(0..=slots);
    }

    /// Calls `assign` for each free slot of a range, and marks these slots as assigned.
    fn assign_free(&mut self, slots: &Range<usize>, mut assign: impl FnMut(usize)) {
        let mut slot = self.free_from(slots.start);
        while slot < slots.end {
            interrupt::check();
            assign(slot);
            self.next[slot] = slot + 1;
            slot = self.free_from(slot + 1);
        }
    }

    fn free_from(&mut self, slot: usize) -> usize {
        let mut free = slot;
        while self.next[free] != free {
            free = self.next[free];
        }
        let mut passed = slot;
        while self.next[passed] != free {
            passed = std::mem::replace(&mut self.next[passed], free);
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_last_from_their_first_piece_to_their_last() {
        let mut seed = 3u64;
        let mut random = |below: u64| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) % below
        };
        const SLOTS: usize = 400;
        for _ in 0..50 {
            let blank = || SlotColumns {
                start: vec![Time::from_ps(u64::MAX); SLOTS],
                end: vec![Time::ZERO; SLOTS],
                ..SlotColumns::default()
            };
            let (mut columns, mut expected) = (blank(), blank());
            let mut spans = SlotSpans::default();
            for _ in 0..20 {
                let slot = random(200) as usize;
                let run = PieceRun {
                    first: random(5) as u32,
                    count: 1 + random(190) as u32,
                    start: Time::from_ps(random(3000)),
                    step: Time::from_ps(10 + random(3)),
                    cause: Cause::PieceBefore,
                };
                let taken = Time::from_ps(random(30));
                let entered = spans.add(&mut columns, slot, &run, taken);
                entered.expect("short times");
                for piece in 0..run.count as usize {
                    let start = run.start.ps() + piece as u64 * run.step.ps();
                    let slot = slot + piece;
                    expected.start[slot] = expected.start[slot].min(Time::from_ps(start));
                    let end = Time::from_ps(start + taken.ps());
                    expected.end[slot] = expected.end[slot].max(end);
                }
            }
            spans.close(&mut columns);
            assert_eq!(columns.start, expected.start);
            assert_eq!(columns.end, expected.end);
        }
    }

    #[test]
    fn runs_are_what_the_rule_says_of_each_piece() {
        let mut seed = 11u64;
        let mut random = |below: u64| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) % below
        };
        let mut most_runs = 0;
        for case in 0..300 {
            let pieces = 1 + random(40) as u32;
            let retune = Time::from_ps(random(2) * 50);
            let mut started: Vec<Vec<PieceRun>> = Vec::new();
            let mut expected: Vec<Vec<Time>> = Vec::new();
            for circuit in 0..12usize {
                let taken = Time::from_ps(1 + random(if case % 2 == 0 { 3 } else { 30 }));
                let waits: Vec<Wait> = (0..random(4).min(circuit as u64))
                    .map(|_| Wait {
                        on: random(circuit as u64) as usize,
                        after: Time::from_ps(random(40)),
                    })
                    .collect();
                let times = PieceTimes {
                    pieces,
                    retune,
                    taken,
                    limit: None,
                };
                let runs = starts(times, &waits, &started).expect("short times");
                most_runs = most_runs.max(runs.len());
                let (mut free, mut cause) = (retune.ps(), Cause::None);
                let mut starts = Vec::new();
                for piece in 0..pieces {
                    let mut start = free;
                    for (number, wait) in waits.iter().enumerate() {
                        let until = expected[wait.on][piece as usize].ps() + wait.after.ps();
                        if until > start {
                            (start, cause) = (until, Cause::Wait(number as u32));
                        }
                    }
                    let run = run_of(&runs, piece);
                    assert_eq!(run.start_of(piece), Ok(Time::from_ps(start)));
                    assert_eq!(run.cause, cause);
                    starts.push(Time::from_ps(start));
                    (free, cause) = (start + taken.ps(), Cause::PieceBefore);
                }
                let counted: u32 = runs.iter().map(|run| run.count).sum();
                assert_eq!(counted, pieces);
                started.push(runs);
                expected.push(starts);
            }
        }
        assert!(most_runs >= 3, "{most_runs} runs");
    }

    /// Checks the number of runs of pieces that wait for two circuits. If the slower circuit
    /// overtakes the faster circuit at some piece, there are two runs, otherwise one run.
    #[test]
    fn waits_that_overtake_one_another_are_few_runs() {
        const PIECES: u32 = 200_000;
        let times = |taken: u64, retune: u64| PieceTimes {
            pieces: PIECES,
            retune: Time::from_ps(retune),
            taken: Time::from_ps(taken),
            limit: None,
        };
        let first = |taken, retune| starts(times(taken, retune), &[], &[]).expect("short times");
        let started = [first(1001, 100_000_000), first(1002, 0)];
        let waits = [0, 1].map(|on| Wait {
            on,
            after: Time::from_ps(7),
        });
        let runs = starts(times(1000, 0), &waits, &started).expect("short times");
        let causes: Vec<Cause> = runs.iter().map(|run| run.cause).collect();
        assert!(runs.len() <= 3, "{causes:?}");
        // The second circuit would fall behind at p = 1e8, where 1e8 + 1001 p = 1002 p. This is
        // after the last piece.
        assert_eq!(causes, [Cause::Wait(0)]);
        let near = [first(1001, 100_000), first(1002, 0)];
        let runs = starts(times(1000, 0), &waits, &near).expect("short times");
        let known: Vec<_> = runs.iter().map(|run| (run.first, run.cause)).collect();
        assert_eq!(known, [(0, Cause::Wait(0)), (100_001, Cause::Wait(1))]);
    }
}
