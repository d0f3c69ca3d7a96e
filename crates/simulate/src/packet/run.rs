//! Run of a divided network: parts run one at a time if events are sparse, in parallel if dense.

use super::engine::PacketEngine;
use super::event_queue::{LATEST_PS, NEVER};
use super::exchange::Exchange;
use super::routes::Routes;
use super::{PacketError, PacketProgress, deadlock};
use opticoll_base::interrupt;

/// Number of events between two reports of progress.
const EVENTS_PER_REPORT: u64 = 1 << 20;
/// Number of events after which network parts that run one at a time may start to run in parallel.
const EVENTS_PER_TRIAL: u64 = 1 << 12;
/// Minimum number of events per network part and window for running in parallel. A window is a
/// period in which no part can affect another part. With this number of events, clocks are read
/// every few microseconds.
const MIN_PARALLEL_EVENTS: u64 = 16;
/// Time (ps) of the first search for a deadlock. Each further search is at twice the time of the
/// previous search or later.
const FIRST_SEARCH_PS: u64 = 1 << 20;

/// Runs the network parts until the collective ends or all messages arrive. Returns the end (ps).
pub(super) fn run<R: Routes + Send>(
    parts: &mut [PacketEngine<R>],
    exchange: &Exchange,
    watch: &mut dyn FnMut(&PacketProgress) -> bool,
) -> Result<u64, PacketError> {
    let (mut next_search, mut reported) = (FIRST_SEARCH_PS, 0);
    let mut turn_taking = TurnTaking {
        pause: EVENTS_PER_TRIAL,
        turns: EVENTS_PER_TRIAL,
    };
    loop {
        interrupt::check();
        let next = next_times(parts).into_iter().min().unwrap_or(NEVER);
        let end = exchange.ended().map_or(NEVER, |time| time + 1);
        if end != NEVER && next >= end {
            break;
        }
        let everything = |part: &PacketEngine<R>| part.steps.is_none() && part.messages.used() == 0;
        if next == NEVER && parts.iter().all(everything) {
            break;
        }
        if next == NEVER {
            return Err(deadlock::error(parts, LATEST_PS));
        }
        if next >= LATEST_PS {
            return Err(PacketError::TooLong);
        }
        if next >= next_search {
            if deadlock::exists(parts, next) {
                return Err(deadlock::error(parts, next));
            }
            next_search = 2 * next.max(next_search);
        }
        turn_taking.proceed(parts, exchange, next_search.min(end).min(LATEST_PS), next);
        if events(parts) / EVENTS_PER_REPORT > reported / EVENTS_PER_REPORT {
            reported = events(parts);
            let progress = PacketProgress {
                events: reported,
                messages_delivered: parts.iter().map(|part| part.counters.delivered).sum(),
                time_ps: next,
            };
            if !watch(&progress) {
                return Err(PacketError::Stopped);
            }
        }
    }
    let finish = parts.iter().flat_map(|part| &part.counters.finish);
    Ok(finish.copied().max().unwrap_or(0))
}

/// Choice between running network parts one at a time and in parallel. The choice depends on the
/// load of the computer, but the outcome does not depend on the choice.
struct TurnTaking {
    /// Value to which `turns` is set while events are sparse, and after an attempt to run in
    /// parallel that was too slow. Each such attempt doubles the value.
    pause: u64,
    /// Number of events until the next attempt to run in parallel. Until then, the network parts
    /// run one at a time.
    turns: u64,
}

impl TurnTaking {
    /// Processes some events before `until` (ps). `next` is the time (ps) of the next event.
    fn proceed<R: Routes + Send>(
        &mut self,
        parts: &mut [PacketEngine<R>],
        exchange: &Exchange,
        until: u64,
        next: u64,
    ) {
        let before = events(parts);
        exchange.end_pause();
        if parts.len() == 1 || self.turns > 0 {
            take_turns(parts, exchange, until);
        } else {
            run_in_parallel(parts, exchange, until, next);
            if parts.iter().any(PacketEngine::waits_too_often) {
                self.pause = self.pause.saturating_mul(2);
                self.turns = self.pause;
            }
        }
        let done = events(parts) - before;
        let after = next_times(parts).into_iter().min().unwrap_or(NEVER);
        let partition = &parts[0].setup.partition;
        let windows =
            u128::from(after - next) * u128::from(MIN_PARALLEL_EVENTS * u64::from(partition.parts));
        let dense = done > 0 && u128::from(done) * u128::from(partition.min_chunk_ps) >= windows;
        self.turns = if dense {
            self.turns.saturating_sub(done)
        } else {
            self.pause
        };
    }
}

fn events<R>(parts: &[PacketEngine<R>]) -> u64 {
    parts.iter().map(|part| part.counters.events).sum()
}

/// Reads the mail of all network parts. Returns the time (ps) of each part's next event, indexed by
/// part.
fn next_times<R: Routes>(parts: &mut [PacketEngine<R>]) -> Vec<u64> {
    let next = parts.iter_mut().map(|part| {
        part.take_mail();
        part.event_queue.next_time().unwrap_or(NEVER)
    });
    next.collect()
}

/// Runs every network part on its own thread. `next` is the time (ps) of the next event. The run
/// pauses when a part has processed [`EVENTS_PER_REPORT`] / (number of parts) events, or when no
/// part has an event for a long time.
fn run_in_parallel<R: Routes + Send>(
    parts: &mut [PacketEngine<R>],
    exchange: &Exchange,
    until: u64,
    next: u64,
) {
    let share = EVENTS_PER_REPORT / parts.len() as u64;
    for part in parts.iter_mut() {
        exchange.publish(part.part, next, next);
        part.pause_after = part.counters.events + share;
        (part.waits, part.waits_since) = (0, part.counters.events);
    }
    interrupt::parallel_map(parts, |part| part.run(until, true));
}

/// Runs one network part at a time, always the part with the earliest event, up to `until` (ps).
fn take_turns<R: Routes>(parts: &mut [PacketEngine<R>], exchange: &Exchange, until: u64) {
    let (alone, first) = (parts.len() == 1, events(parts));
    for part in parts.iter_mut() {
        part.pause_after = match alone {
            true => (part.counters.events / EVENTS_PER_REPORT + 1) * EVENTS_PER_REPORT,
            false => u64::MAX,
        };
        part.waits = 0;
    }
    loop {
        interrupt::check();
        let next = next_times(parts);
        let until = exchange.ended().map_or(until, |time| until.min(time + 1));
        let Some((turn, &time)) = next.iter().enumerate().min_by_key(|(_, time)| **time) else {
            return;
        };
        if time >= until
            || events(parts) >= first + EVENTS_PER_TRIAL
            || exchange.pause_time() != NEVER
        {
            return;
        }
        // The other network parts have no event before the earliest event that this part can cause.
        let credit = parts[0].setup.partition.min_credit_ps;
        let mut others = NEVER;
        for (number, &other) in (0u8..).zip(&next) {
            let clock = other.min(time.saturating_add(credit));
            exchange.publish(number, clock, clock);
            if usize::from(number) != turn {
                others = others.min(clock);
            }
        }
        parts[turn].run(until.min(others.saturating_add(credit)), false);
    }
}
