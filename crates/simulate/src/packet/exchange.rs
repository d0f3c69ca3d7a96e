//! Communication between the parts of a divided network: clocks and mail.
//!
//! # Parallel simulation of parts
//!
//! A network may be divided into parts. Each part has some routers, their terminals and all links
//! that lead from these routers and terminals, and is simulated on its own. Only links between
//! routers cross from part to part. An event at time t in one part can affect another part in two
//! ways: by a chunk, which arrives at t + D or later, where D is the minimum over crossing links of
//! the sum of the time of the shortest chunk, the router delay and the latency; or by a credit,
//! which arrives at t + C or later, where C is the minimum of credit delays plus latency, or D if D
//! is less. The sender puts chunks and credits into the *mail* of the other part.
//!
//! **Clocks.** Each part publishes a clock: all mail that it sends later comes from events at the
//! time of the clock or later. If c is the minimum of the other parts' clocks, a part knows all
//! chunks that arrive before c + D and may process all events before c + D (Chandy and Misra,
//! Distributed Simulation: A Case Study in Design and Verification of Distributed Programs, 1979).
//! D is about one router delay, which covers some thousand events of a large network. A part may
//! publish its clock late; the other parts then wait longer than necessary. Each part publishes its
//! clock several times per D, together with all its mail up to that time, and before it waits.
//!
//! **Credits.** C is usually some hundred times smaller than D. But a sender may learn of credits
//! late as long as no decision depends on them: unknown credits only make a buffer look fuller than
//! it is. A part waits until c + C has passed the time of its event only if a buffer looks full, if
//! a chunk waits for a credit, or if loads are compared. All decisions are therefore those of an
//! undivided network. While a chunk waits, the part does not go beyond c + C. If a buffer looks
//! fuller than ever before, the part records a doubt, and credits that become known later correct
//! it.
//!
//! **No deadlock.** The part whose next event is the earliest waits for no other part: the clocks
//! of idle parts rise with those of the others by D or C at a time, and both C and D are positive.
//!
//! **End.** A collective ends at the time T at which its last rank ends, and all events up to T are
//! processed. A part whose own ranks have all ended does not go beyond the clock of a part that has
//! an unfinished rank.
//!
//! **Same outcome.** At each time, a part has processed the same events at its places as an
//! undivided network, because mail arrives before the time of its event. The part processes them in
//! the same order, which depends only on kind and place. By induction over time, the outcome does
//! not depend on the partition.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use opticoll_base::interrupt;

use super::channel::Chunk;
use super::event_queue::NEVER;

/// Announcement of a message to the part of its destination.
pub(super) struct AnnouncedMessage {
    /// Part of the message's source, and the number of the message in that part.
    pub(super) home: u8,
    pub(super) number: u32,
    pub(super) destination: u32,
    pub(super) tag: u32,
    pub(super) chunks: u64,
    pub(super) sent: u64,
}

/// Mail to a part; each column is in the order of sending.
#[derive(Default)]
pub(super) struct Mail {
    pub(super) announced: Vec<AnnouncedMessage>,
    /// Chunks, and the arrival time of each.
    pub(super) chunks: Vec<Chunk>,
    pub(super) arrivals: Vec<u64>,
    /// Channel and arrival time of each credit.
    pub(super) credits: Vec<(u32, u64)>,
    /// Numbers of delivered messages.
    pub(super) delivered: Vec<u32>,
}

impl Mail {
    fn is_empty(&self) -> bool {
        self.announced.is_empty()
            && self.chunks.is_empty()
            && self.credits.is_empty()
            && self.delivered.is_empty()
    }

    fn append(&mut self, other: &mut Mail) {
        self.announced.append(&mut other.announced);
        self.chunks.append(&mut other.chunks);
        self.arrivals.append(&mut other.arrivals);
        self.credits.append(&mut other.credits);
        self.delivered.append(&mut other.delivered);
    }
}

/// State that a part publishes to the other parts, in cache lines of its own.
#[repr(align(128))]
struct PartState {
    clock: AtomicU64,
    /// Time of the part's next known event.
    next: AtomicU64,
    /// Time at which the part's last rank ended; `NEVER` before.
    ended: AtomicU64,
    mail: Mutex<Mail>,
}

impl PartState {
    fn mail(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Published state of all parts.
pub(super) struct Exchange {
    states: Vec<PartState>,
    /// Time before which all parts pause; `NEVER` if they do not pause.
    pause: AtomicU64,
}

/// State of the other parts as one part sees it.
pub(super) struct OtherParts {
    /// Minimum of their clocks.
    pub(super) clock: u64,
    /// Time of their earliest next event.
    pub(super) next: u64,
    /// Maximum clock of the parts that have an unfinished rank; `None` if all ranks have ended.
    pub(super) lead: Option<u64>,
    /// Time at which the last rank ended, over the parts without unfinished ranks.
    pub(super) ended: u64,
}

impl Exchange {
    /// Creates the state of `parts` parts, with all clocks at 0.
    pub(super) fn new(parts: u32) -> Exchange {
        let state = |_| PartState {
            clock: AtomicU64::new(0),
            next: AtomicU64::new(0),
            ended: AtomicU64::new(NEVER),
            mail: Mutex::default(),
        };
        Exchange {
            states: (0..parts).map(state).collect(),
            pause: AtomicU64::new(NEVER),
        }
    }

    /// Returns the state of all parts other than `part`.
    pub(super) fn observe(&self, part: u8) -> OtherParts {
        let mut others = OtherParts {
            clock: NEVER,
            next: NEVER,
            lead: None,
            ended: 0,
        };
        for (number, state) in self.states.iter().enumerate() {
            if number == usize::from(part) {
                continue;
            }
            // Read the clock first: if no end is seen afterwards, no end came before the clock's
            // time.
            let clock = state.clock.load(Ordering::Acquire);
            let ended = state.ended.load(Ordering::Acquire);
            others.clock = others.clock.min(clock);
            others.next = others.next.min(state.next.load(Ordering::Relaxed));
            if ended == NEVER {
                others.lead = others.lead.max(Some(clock));
            } else {
                others.ended = others.ended.max(ended);
            }
        }
        others
    }

    /// Publishes the clock and the time of the next event of a part. Send the mail first.
    pub(super) fn publish(&self, part: u8, clock: u64, next: u64) {
        let state = &self.states[usize::from(part)];
        state.next.store(next, Ordering::Relaxed);
        state.clock.store(clock, Ordering::Release);
    }

    /// Publishes that all ranks of a part have ended.
    pub(super) fn end(&self, part: u8, time: u64) {
        self.states[usize::from(part)]
            .ended
            .store(time, Ordering::Release);
    }

    /// Returns the time at which the last rank of all parts ended; `None` if some rank has not.
    pub(super) fn ended(&self) -> Option<u64> {
        let ends = self
            .states
            .iter()
            .map(|state| state.ended.load(Ordering::Acquire));
        ends.max().filter(|&time| time != NEVER)
    }

    /// Returns the time before which all parts pause. Read it after [`Exchange::observe`].
    pub(super) fn pause_time(&self) -> u64 {
        self.pause.load(Ordering::Acquire)
    }

    /// Asks all parts to pause before `time`, which no part may have reached yet.
    pub(super) fn request_pause(&self, time: u64) {
        self.pause.fetch_min(time, Ordering::AcqRel);
    }

    /// Ends the pause.
    pub(super) fn end_pause(&self) {
        self.pause.store(NEVER, Ordering::Release);
    }

    /// Appends mail to the mailbox of a part.
    pub(super) fn send(&self, part: usize, mail: &mut Mail) {
        if !mail.is_empty() {
            self.states[part].mail().append(mail);
        }
    }

    /// Swaps the mailbox of a part with an empty one.
    pub(super) fn take(&self, part: u8, empty: &mut Mail) {
        std::mem::swap(&mut *self.states[usize::from(part)].mail(), empty);
    }
}

/// Waits briefly, and yields the core to other threads after 256 rounds.
pub(super) fn wait(rounds: u32) {
    interrupt::check();
    if rounds < 256 {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}
