//! What the parts of a divided network tell one another.
//!
//! # Parts side by side
//!
//! A network may be divided into parts, each with routers, their terminals and all links that lead from
//! either, and each simulated by itself. Only links between routers cross from part to part. What happens at
//! a time t in one part can touch another by a chunk, which arrives at t + D or later, with D the least sum of
//! the time of the shortest chunk, router delay and latency over crossing links; or by a credit, at t + C or later, with C the least
//! sum of credit delays and latency, or D where that is less. Chunks and credits are put into the *mail* of the other part.
//!
//! **Clocks.** Each part shows a clock: whatever it mails from then on comes of events at that time or later.
//! With c the least clock of the others, a part knows all chunks that arrive before c + D, and may carry out
//! all events before (Chandy and Misra, Distributed Simulation: A Case Study in Design and Verification of
//! Distributed Programs, 1979). D is a router's delay, some thousand events of a large network. A clock may be
//! shown late: others then wait for what they might have done. It is shown several times in D, together with all
//! mail until then, and whenever a part would wait.
//!
//! **Credits.** C is mostly some hundred times less than D. But what a sender of chunks knows of its channel's
//! credits may be late as long as it does not matter: credits that it does not know make the buffer look
//! fuller than it is. Only where it looks full, where a chunk waits for a credit, or where loads are compared,
//! does a part wait until c + C has passed the time of its event; so decisions are those of a network in one
//! part. While a chunk waits, the part goes no further than c + C. Where a buffer looks fuller than ever
//! before, that is noted, and corrected by the credits that become known later.
//!
//! **No deadlock.** The part whose next event is the earliest waits for nobody: clocks of idle parts rise
//! with those of others, by D or C at a time, and C and D are more than nothing.
//!
//! **The end.** A collective ends at the time T at which its last rank does, and all events up to T happen. A
//! part whose own ranks have all ended goes no further than the clock of a part with a rank that has not.
//!
//! **The same outcome.** At each time a part has the same events before it as the whole has at its places, since
//! what crosses is there before that time, and takes them in the same order, which depends on kind and place
//! alone. So by induction over time all that happens is the same, however the network is divided.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use opticoll_base::interrupt;

use super::channel::Chunk;

/// No time.
pub(super) const NEVER: u64 = u64::MAX;

/// A message on its way into another part.
pub(super) struct Begun {
    /// The part that it comes from, and its number there.
    pub(super) home: u8,
    pub(super) number: u32,
    pub(super) destination: u32,
    pub(super) tag: u32,
    pub(super) chunks: u64,
    pub(super) sent: u64,
}

/// What is told to a part, each kind in the order of telling.
#[derive(Default)]
pub(super) struct Mail {
    pub(super) begun: Vec<Begun>,
    /// Chunks, and when each arrives.
    pub(super) chunks: Vec<Chunk>,
    pub(super) arrivals: Vec<u64>,
    /// Channels, and when a credit comes back.
    pub(super) credits: Vec<(u32, u64)>,
    /// Numbers of messages that have been delivered.
    pub(super) delivered: Vec<u32>,
}

impl Mail {
    fn is_empty(&self) -> bool {
        self.begun.is_empty()
            && self.chunks.is_empty()
            && self.credits.is_empty()
            && self.delivered.is_empty()
    }

    fn append(&mut self, other: &mut Mail) {
        self.begun.append(&mut other.begun);
        self.chunks.append(&mut other.chunks);
        self.arrivals.append(&mut other.arrivals);
        self.credits.append(&mut other.credits);
        self.delivered.append(&mut other.delivered);
    }
}

/// What a part shows the others. Lines of the cache of its own.
#[repr(align(128))]
struct Post {
    clock: AtomicU64,
    /// Its next event, as far as it knows.
    next: AtomicU64,
    /// When its last rank ended.
    ended: AtomicU64,
    mail: Mutex<Mail>,
}

impl Post {
    fn mail(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The posts of all parts.
pub(super) struct Border {
    posts: Vec<Post>,
    /// All parts stop before this time, for a while.
    rest: AtomicU64,
}

/// What a part sees of the others.
pub(super) struct Seen {
    /// The least clock.
    pub(super) clock: u64,
    /// The earliest next event.
    pub(super) next: u64,
    /// The greatest clock of a part with a rank that has not ended; none where all have.
    pub(super) lead: Option<u64>,
    /// When the last rank of those that have ended did.
    pub(super) ended: u64,
}

impl Border {
    /// Among so many parts.
    pub(super) fn new(parts: u32) -> Border {
        let post = |_| Post {
            clock: AtomicU64::new(0),
            next: AtomicU64::new(0),
            ended: AtomicU64::new(NEVER),
            mail: Mutex::default(),
        };
        Border {
            posts: (0..parts).map(post).collect(),
            rest: AtomicU64::new(NEVER),
        }
    }

    /// A part sees the others.
    pub(super) fn see(&self, part: u8) -> Seen {
        let mut seen = Seen {
            clock: NEVER,
            next: NEVER,
            lead: None,
            ended: 0,
        };
        for (number, post) in self.posts.iter().enumerate() {
            if number == usize::from(part) {
                continue;
            }
            // The clock first: where no end is seen afterwards, there was none before that time.
            let clock = post.clock.load(Ordering::Acquire);
            let ended = post.ended.load(Ordering::Acquire);
            seen.clock = seen.clock.min(clock);
            seen.next = seen.next.min(post.next.load(Ordering::Relaxed));
            if ended == NEVER {
                seen.lead = seen.lead.max(Some(clock));
            } else {
                seen.ended = seen.ended.max(ended);
            }
        }
        seen
    }

    /// A part shows its clock and next event, after what it has mailed before.
    pub(super) fn show(&self, part: u8, clock: u64, next: u64) {
        let post = &self.posts[usize::from(part)];
        post.next.store(next, Ordering::Relaxed);
        post.clock.store(clock, Ordering::Release);
    }

    /// All ranks of a part have ended.
    pub(super) fn end(&self, part: u8, time: u64) {
        self.posts[usize::from(part)]
            .ended
            .store(time, Ordering::Release);
    }

    /// When the last rank of all parts ended, if all have.
    pub(super) fn ended(&self) -> Option<u64> {
        let ends = self
            .posts
            .iter()
            .map(|post| post.ended.load(Ordering::Acquire));
        ends.max().filter(|&time| time != NEVER)
    }

    /// The time before which all parts stop, read after [`Border::see`].
    pub(super) fn rest(&self) -> u64 {
        self.rest.load(Ordering::Acquire)
    }

    /// All parts stop before a time, which none has reached yet.
    pub(super) fn rest_before(&self, time: u64) {
        self.rest.fetch_min(time, Ordering::AcqRel);
    }

    /// No part stops.
    pub(super) fn rest_no_more(&self) {
        self.rest.store(NEVER, Ordering::Release);
    }

    /// Mails to a part.
    pub(super) fn send(&self, part: usize, mail: &mut Mail) {
        if !mail.is_empty() {
            self.posts[part].mail().append(mail);
        }
    }

    /// Takes the mail of a part, for an empty one.
    pub(super) fn take(&self, part: u8, empty: &mut Mail) {
        std::mem::swap(&mut *self.posts[usize::from(part)].mail(), empty);
    }
}

/// Waits a little, longer after more rounds: a part that waits leaves its core to others.
pub(super) fn wait(rounds: u32) {
    interrupt::check();
    if rounds < 256 {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
}
