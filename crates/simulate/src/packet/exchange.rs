//! Communication between the parts of a divided network: clocks and mail.
//!
//! # Parallel simulation of parts
//!
//! A network may be divided into *network parts*. Each part consists of some routers, their
//! terminals and all links that lead from these routers and terminals, and is simulated on its own.
//! Only links between routers lead from one part to another. An event at time t in one part can
//! affect another part in two ways. First, by a chunk, which arrives at t + D or later. D is the
//! minimum, over the links between parts, of the sum of shortest chunk time, router delay and
//! latency. Second, by a credit, which arrives at t + C or later. C is the minimum of credit delay
//! plus latency, or D if D is less. The sender appends chunks and credits to the *mail* of the
//! other part.
//!
//! **Clocks.** Each part publishes a clock: all mail that the part sends later comes from events at
//! the time of the clock or later. If c is the minimum of the other parts' clocks, a part knows all
//! chunks that arrive before c + D and may process all events before c + D (Chandy and Misra,
//! Distributed Simulation: A Case Study in Design and Verification of Distributed Programs, 1979).
//! D is about one router delay, in which a large network has some thousand events. If a part
//! publishes its clock late, the other parts wait longer than necessary. Each part publishes its
//! clock and sends its mail several times per D, and before it waits.
//!
//! **Credits.** C is usually some hundred times smaller than D. But a sender may learn of credits
//! late as long as no decision depends on them: unknown credits only make a buffer look fuller than
//! it is. In three cases a part waits until c + C has passed the time of its event: if a buffer
//! looks full, if a chunk waits for a credit, or if loads are compared. All decisions are therefore
//! those of an undivided network. While a chunk waits, the part processes no events after c + C. If
//! a buffer looks fuller than ever before, the part records an *uncertain peak*. Credits that
//! become known later lower the uncertain peak.
//!
//! **No deadlock.** The part with the earliest next event waits for no other part. The clocks of
//! idle parts rise with the other clocks by D or C at a time, and both C and D are positive.
//!
//! **End.** A collective ends at the time T at which its last rank ends, and all events up to T are
//! processed. A part whose ranks have all ended does not pass the clock of an unfinished part.
//!
//! **Same outcome.** At each time, a part has processed the same events of its links, channels and
//! terminals as an undivided network, because mail arrives before the time of its event. The part
//! processes these events in the same order, which depends only on the kind of an event and its
//! link, channel or terminal. By induction over time, the outcome does not depend on the partition.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use opticoll_base::interrupt;

use super::channel::Chunk;
use super::event_queue::NEVER;

/// Announcement of a message, sent to the network part of the message's destination.
pub(super) struct AnnouncedMessage {
    /// Network part of the message's source.
    pub(super) home: u8,
    /// Index of the message in the part `home`.
    pub(super) number: u32,
    pub(super) destination: u32,
    pub(super) tag: u32,
    pub(super) chunks: u64,
    pub(super) sent: u64,
}

/// Mail to a network part. Each list is in the order of sending.
#[derive(Default)]
pub(super) struct Mail {
    pub(super) announced: Vec<AnnouncedMessage>,
    /// Chunks that arrive at the times in `arrivals`.
    pub(super) chunks: Vec<Chunk>,
    /// Arrival time (ps) of each chunk, in the order of `chunks`.
    pub(super) arrivals: Vec<u64>,
    /// Pairs (index of the channel, arrival time in ps) of the credits.
    pub(super) credits: Vec<(u32, u64)>,
    /// Indices of delivered messages in the network part that receives this mail.
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

/// State that a network part publishes to the other parts. The struct has cache lines of its own.
#[repr(align(128))]
struct PartState {
    clock: AtomicU64,
    /// Time (ps) of the next event that the network part knows.
    next: AtomicU64,
    /// Time (ps) at which the network part's last rank ended; `NEVER` if a rank has not ended.
    ended: AtomicU64,
    mail: Mutex<Mail>,
}

impl PartState {
    fn mail(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct Exchange {
    states: Vec<PartState>,
    /// Time (ps) before which all network parts pause; `NEVER` if no pause is requested.
    pause: AtomicU64,
}

/// State of the other network parts from the view of one part. Times are in picoseconds.
pub(super) struct OtherParts {
    /// Minimum of the other network parts' clocks.
    pub(super) clock: u64,
    /// Time of the earliest next event of the other network parts.
    pub(super) next: u64,
    /// Maximum of the clocks of those other network parts that have an unfinished rank; `None` if
    /// there are no such parts.
    pub(super) lead: Option<u64>,
    /// Time at which the last rank ended in those other network parts whose ranks have all ended.
    pub(super) ended: u64,
}

impl Exchange {
    /// Creates the state of `parts` network parts, with all clocks at 0.
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

    /// Returns the state of all network parts other than `part`.
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
            // The clock is read before `ended`: if no end is read, the part has not ended before
            // its clock.
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

    /// Publishes a network part's clock and next event time (ps). The caller must send the mail
    /// first.
    pub(super) fn publish(&self, part: u8, clock: u64, next: u64) {
        let state = &self.states[usize::from(part)];
        state.next.store(next, Ordering::Relaxed);
        state.clock.store(clock, Ordering::Release);
    }

    pub(super) fn end(&self, part: u8, time: u64) {
        self.states[usize::from(part)]
            .ended
            .store(time, Ordering::Release);
    }

    /// Returns the time (ps) at which the last rank ended, or `None` if a rank has not ended.
    pub(super) fn ended(&self) -> Option<u64> {
        let ends = self
            .states
            .iter()
            .map(|state| state.ended.load(Ordering::Acquire));
        ends.max().filter(|&time| time != NEVER)
    }

    /// Returns the time (ps) before which all network parts pause. The caller must call
    /// [`Exchange::observe`] first.
    pub(super) fn pause_time(&self) -> u64 {
        self.pause.load(Ordering::Acquire)
    }

    /// Asks all network parts to pause before `time` (ps). No part may have reached this time yet.
    pub(super) fn request_pause(&self, time: u64) {
        self.pause.fetch_min(time, Ordering::AcqRel);
    }

    pub(super) fn end_pause(&self) {
        self.pause.store(NEVER, Ordering::Release);
    }

    /// Appends mail to the mailbox of a network part, and empties `mail`.
    pub(super) fn send(&self, part: usize, mail: &mut Mail) {
        if !mail.is_empty() {
            self.states[part].mail().append(mail);
        }
    }

    /// Empties the mailbox of a network part, and moves the contents to `empty`, which must be
    /// empty.
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
