//! The events to come, in order of time; events of one time in the order in which they were added.
//!
//! A calendar: the near future is cut into 2^12 buckets of a power of two of picoseconds, each an
//! unsorted array; a bucket is sorted when its time comes. What lies beyond the last bucket waits in
//! a heap. Adding and taking an event is O(1) while buckets hold a few dozen events each; a bitmap
//! skips the empty ones. The array of an emptied bucket goes to the next that needs one, so that
//! arrays stay in the cache.
//!
//! Order among equal times: an array is in the order of adding, and sorting is stable. Events come
//! from the heap into a bucket at the moment the bucket comes within reach, before any other event
//! can be put there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

const BUCKETS: u64 = 1 << 12;

/// What happens, and to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A chunk has come over a link to a router.
    Arrive,
    /// A link is free and chunks wait for it.
    Send,
    /// A credit comes back that somebody waits for.
    Credit,
    /// A terminal cuts a packet into chunks.
    Generate,
    /// A terminal puts a chunk on its link.
    Inject,
    /// The last chunk of a message has been handed to its receiver.
    Deliver,
    /// A terminal sends the next message of a traffic pattern.
    Timer,
    /// A rank begins its schedule.
    Begin,
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event {
    /// Picoseconds.
    pub(super) time: u64,
    /// The chunk, link, channel, terminal, message or timer it is about.
    pub(super) index: u32,
    pub(super) kind: Kind,
}

/// A queue of events.
pub(super) struct Agenda {
    /// The logarithm of a bucket's picoseconds.
    shift: u32,
    buckets: Vec<Vec<Event>>,
    /// One bit per bucket: whether it has events.
    filled: Vec<u64>,
    /// Empty arrays, to be used again.
    spare: Vec<Vec<Event>>,
    /// Events of the open bucket and before, latest first.
    open: Vec<Event>,
    /// The number of the open bucket, counted from time 0.
    cursor: u64,
    in_buckets: usize,
    far: BinaryHeap<Reverse<(u64, u64, Kind, u32)>>,
    far_added: u64,
}

impl Agenda {
    /// An empty one with buckets of 2^`shift` picoseconds.
    pub(super) fn new(shift: u32) -> Agenda {
        Agenda {
            shift,
            buckets: vec![Vec::new(); BUCKETS as usize],
            filled: vec![0; BUCKETS as usize / 64],
            spare: Vec::new(),
            open: Vec::new(),
            cursor: 0,
            in_buckets: 0,
            far: BinaryHeap::new(),
            far_added: 0,
        }
    }

    /// Adds an event, not before the one taken last.
    #[inline]
    pub(super) fn push(&mut self, time: u64, kind: Kind, index: u32) {
        let bucket = time >> self.shift;
        let event = Event { time, index, kind };
        if bucket <= self.cursor {
            let place = self.open.partition_point(|other| other.time > time);
            self.open.insert(place, event);
        } else if bucket - self.cursor < BUCKETS {
            self.push_near(bucket, event);
        } else {
            self.far.push(Reverse((time, self.far_added, kind, index)));
            self.far_added += 1;
        }
    }

    /// Takes the next event.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<Event> {
        self.open.pop()
    }

    /// The time of the next event; none at the end.
    pub(super) fn next_time(&mut self) -> Option<u64> {
        if self.open.is_empty() {
            self.advance();
        }
        self.open.last().map(|event| event.time)
    }

    /// The events of the next bucket that has some, where all before have been taken; none at the end.
    pub(super) fn open(&mut self) -> &[Event] {
        self.advance();
        &self.open
    }

    #[inline]
    fn push_near(&mut self, bucket: u64, event: Event) {
        let slot = (bucket % BUCKETS) as usize;
        let (word, bit) = (slot / 64, 1 << (slot % 64));
        if self.filled[word] & bit == 0 {
            self.filled[word] |= bit;
            self.buckets[slot] = self.spare.pop().unwrap_or_default();
        }
        self.buckets[slot].push(event);
        self.in_buckets += 1;
    }

    /// Opens the next bucket that has events.
    fn advance(&mut self) {
        if self.in_buckets > 0 {
            self.cursor = self.next_filled();
        } else if let Some(Reverse((time, ..))) = self.far.peek() {
            self.cursor = time >> self.shift;
        } else {
            return;
        }
        while let Some(&Reverse((time, _, kind, index))) = self.far.peek() {
            let bucket = time >> self.shift;
            if bucket >= self.cursor + BUCKETS {
                break;
            }
            self.far.pop();
            self.push_near(bucket, Event { time, index, kind });
        }
        let slot = (self.cursor % BUCKETS) as usize;
        self.filled[slot / 64] &= !(1 << (slot % 64));
        let events = std::mem::take(&mut self.buckets[slot]);
        self.spare.push(std::mem::replace(&mut self.open, events));
        self.in_buckets -= self.open.len();
        self.open.reverse();
        self.open.sort_by_key(|event| Reverse(event.time));
    }

    /// The first bucket after the open one that has events; there is one.
    fn next_filled(&self) -> u64 {
        let words = self.filled.len();
        let from = (self.cursor + 1) % BUCKETS;
        let (first, bit) = ((from / 64) as usize, from % 64);
        let masked = self.filled[first] & (u64::MAX << bit);
        let mut word = first;
        let mut bits = masked;
        while bits == 0 {
            word = (word + 1) % words;
            bits = self.filled[word];
        }
        let slot = word as u64 * 64 + u64::from(bits.trailing_zeros());
        self.cursor + 1 + (slot + BUCKETS - from) % BUCKETS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(agenda: &mut Agenda) -> Option<Event> {
        agenda.pop().or_else(|| {
            agenda.open();
            agenda.pop()
        })
    }

    #[test]
    fn events_leave_by_time_and_then_in_the_order_of_their_coming() {
        for shift in [0, 4, 10] {
            let mut agenda = Agenda::new(shift);
            let mut plain: Vec<(u64, u32)> = Vec::new();
            let (mut state, mut now, mut taken) = (shift as u64, 0, 0);
            for index in 0..20_000_u32 {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                let draw = state >> 40;
                let delay = match draw % 5 {
                    0 => 0,
                    1 => draw % 7,
                    2 => draw % 900,
                    3 => 1_000,
                    _ => draw % 40_000_000,
                };
                agenda.push(now + delay, Kind::Arrive, index);
                plain.push((now + delay, index));
                if draw % 3 == 0 {
                    let least = plain.iter().enumerate().min_by_key(|(_, event)| **event);
                    let expected = plain.remove(least.unwrap().0);
                    let event = take(&mut agenda).unwrap();
                    assert_eq!((event.time, event.index), expected);
                    now = event.time;
                    taken += 1;
                }
            }
            plain.sort_unstable();
            for expected in plain {
                let event = take(&mut agenda).unwrap();
                assert_eq!((event.time, event.index), expected);
                taken += 1;
            }
            assert_eq!((taken, take(&mut agenda)), (20_000, None));
        }
    }
}
