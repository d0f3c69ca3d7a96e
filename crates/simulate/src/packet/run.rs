//! The parts of a network from beginning to end: in turns where little happens, side by side where much does.

use super::border::{Border, NEVER};
use super::engine::PacketEngine;
use super::event_queue::LATEST_PS;
use super::routes::Routes;
use super::{PacketError, PacketProgress, stuck};
use opticoll_base::interrupt;

/// Events from one report of progress to the next.
const REPORT: u64 = 1 << 20;
/// Events from one choice between turns and side by side to the next, while parts take turns.
const TURNS: u64 = 1 << 12;
/// Events for each part, in the time in which another cannot touch it, from which on parts run side by side:
/// then clocks are read every few microseconds.
const DENSE: u64 = 16;
/// Whether some chunks are stuck is looked at first after this time, then each time at twice that before.
const FIRST_LOOK_PS: u64 = 1 << 20;

/// Runs until the collective has ended or everything has arrived; returns the time.
pub(super) fn run<R: Routes + Send>(
    parts: &mut [PacketEngine<R>],
    border: &Border,
    watch: &mut dyn FnMut(&PacketProgress) -> bool,
) -> Result<u64, PacketError> {
    let (mut look_at, mut reported) = (FIRST_LOOK_PS, 0);
    let mut turn_taking = TurnTaking {
        pause: TURNS,
        turns: TURNS,
    };
    loop {
        interrupt::check();
        let next = next_times(parts).into_iter().min().unwrap_or(NEVER);
        let end = border.ended().map_or(NEVER, |time| time + 1);
        if end != NEVER && next >= end {
            break;
        }
        let everything = |part: &PacketEngine<R>| part.steps.is_none() && part.messages.used() == 0;
        if next == NEVER && parts.iter().all(everything) {
            break;
        }
        if next == NEVER {
            return Err(stuck::error(parts, LATEST_PS));
        }
        if next >= LATEST_PS {
            return Err(PacketError::TooLong);
        }
        if next >= look_at {
            if stuck::any(parts, next) {
                return Err(stuck::error(parts, next));
            }
            look_at = 2 * next.max(look_at);
        }
        turn_taking.go_on(parts, border, look_at.min(end).min(LATEST_PS), next);
        if events(parts) / REPORT > reported / REPORT {
            reported = events(parts);
            let progress = PacketProgress {
                events: reported,
                messages_delivered: parts.iter().map(|part| part.measured.delivered).sum(),
                time_ps: next,
            };
            if !watch(&progress) {
                return Err(PacketError::BrokenOff);
            }
        }
    }
    let finish = parts.iter().flat_map(|part| &part.measured.finish);
    Ok(finish.copied().max().unwrap_or(0))
}

/// Whether parts take turns or run side by side. It depends on the machine's load too; the outcome does not
/// depend on it.
struct TurnTaking {
    /// Events in turns between two tries of running side by side; more after each that was slow.
    pause: u64,
    /// Of those, the ones to come.
    turns: u64,
}

impl TurnTaking {
    /// Goes on for a while, to a time at most.
    fn go_on<R: Routes + Send>(
        &mut self,
        parts: &mut [PacketEngine<R>],
        border: &Border,
        until: u64,
        next: u64,
    ) {
        let before = events(parts);
        border.rest_no_more();
        if parts.len() == 1 || self.turns > 0 {
            in_turns(parts, border, until);
        } else {
            side_by_side(parts, border, until, next);
            if parts.iter().any(PacketEngine::waits_much) {
                self.pause = self.pause.saturating_mul(2);
                self.turns = self.pause;
            }
        }
        let done = events(parts) - before;
        let after = next_times(parts).into_iter().min().unwrap_or(NEVER);
        let division = &parts[0].setup.division;
        let windows = u128::from(after - next) * u128::from(DENSE * u64::from(division.parts));
        let dense = done > 0 && u128::from(done) * u128::from(division.chunk) >= windows;
        self.turns = if dense {
            self.turns.saturating_sub(done)
        } else {
            self.pause
        };
    }
}

fn events<R>(parts: &[PacketEngine<R>]) -> u64 {
    parts.iter().map(|part| part.measured.events).sum()
}

/// Takes all mail in; returns the time of each part's next event.
fn next_times<R: Routes>(parts: &mut [PacketEngine<R>]) -> Vec<u64> {
    let next = parts.iter_mut().map(|part| {
        part.take_mail();
        part.event_queue.next_time().unwrap_or(NEVER)
    });
    next.collect()
}

/// Every part on a thread of its own, until one has come through its share of a report or all have nothing to
/// do for long. `next` is the time of the next event.
fn side_by_side<R: Routes + Send>(
    parts: &mut [PacketEngine<R>],
    border: &Border,
    until: u64,
    next: u64,
) {
    let share = REPORT / parts.len() as u64;
    for part in parts.iter_mut() {
        border.show(part.part, next, next);
        part.rest_after = part.measured.events + share;
        (part.waits, part.waits_since) = (0, part.measured.events);
    }
    interrupt::side_by_side(parts, |part| part.run(until, true));
}

/// One part after the other, always the one with the earliest event.
fn in_turns<R: Routes>(parts: &mut [PacketEngine<R>], border: &Border, until: u64) {
    let (alone, first) = (parts.len() == 1, events(parts));
    for part in parts.iter_mut() {
        part.rest_after = match alone {
            true => (part.measured.events / REPORT + 1) * REPORT,
            false => u64::MAX,
        };
        part.waits = 0;
    }
    loop {
        interrupt::check();
        let next = next_times(parts);
        let until = border.ended().map_or(until, |time| until.min(time + 1));
        let Some((turn, &time)) = next.iter().enumerate().min_by_key(|(_, time)| **time) else {
            return;
        };
        if time >= until || events(parts) >= first + TURNS || border.rest() != NEVER {
            return;
        }
        // The others have no event before the soonest that this one can cause.
        let credit = parts[0].setup.division.credit;
        let mut others = NEVER;
        for (number, &other) in (0u8..).zip(&next) {
            let clock = other.min(time.saturating_add(credit));
            border.show(number, clock, clock);
            if usize::from(number) != turn {
                others = others.min(clock);
            }
        }
        parts[turn].run(until.min(others.saturating_add(credit)), false);
    }
}
