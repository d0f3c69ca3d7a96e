//! Event queue ordered by time, then by kind, then by place, the highest index first. A place is a
//! link, a channel or a terminal. This order does not depend on the history of the simulation, so
//! it is the same for every partition of the network. Events with equal time, kind and place are
//! removed in the order in which they were added; only one part adds such events.
//!
//! The queue is a calendar queue. The near future consists of 2^12 buckets. A bucket covers a power
//! of two of picoseconds and is an unsorted array. The queue sorts a bucket when the time of the
//! bucket comes. A small bucket is first divided into short spans of time, then sorted by
//! insertion. Events after the last bucket are stored in a heap. Adding and removing an event takes
//! O(1) time while each bucket contains a few dozen events. A bitmap is used to skip empty buckets.
//! The array of an emptied bucket is reused for the next bucket that needs an array, so that arrays
//! stay in the cache.
//!
//! Events with equal time, kind and place keep the order in which they were added: arrays keep the
//! order, and both methods of sorting are stable. Events move from the heap to a bucket as soon as
//! the calendar reaches the bucket, before any other event can be added to the bucket.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

const BUCKETS: u64 = 1 << 12;

/// Binary logarithm of the number of spans into which a bucket is divided to sort its events. A
/// bucket with more than `MAX_INSERTION_SORTED` events may have many events in one span, so its
/// events are sorted by comparison.
const SPAN_BITS: u32 = 5;
const MAX_INSERTION_SORTED: usize = 128;

/// Time of an event that never happens.
pub(super) const NEVER: u64 = u64::MAX;

/// Limit of simulated time: 2^60 ps, 13 days. Events at this time or later never happen; the queue
/// only records that such events exist. Each delay in the settings is at most this time, so an
/// instant before the limit plus the delays that follow stays below 2^64. The times of queued
/// messages can grow without a bound, so their sums saturate.
pub(super) const LATEST_PS: u64 = 1 << 60;

/// Kind of an event, in the order in which events of the same time happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventKind {
    /// A chunk has arrived at a router.
    Arrive,
    /// A link is free, and chunks wait for the link.
    Send,
    /// A credit arrives for which a chunk waits.
    Credit,
    /// A terminal cuts a packet into chunks.
    Generate,
    /// A terminal sends a chunk over its link.
    Inject,
    /// The receiver is notified of the last chunk of a message.
    Deliver,
    /// A terminal sends the next message of a traffic pattern.
    Timer,
    /// A rank begins its schedule.
    Begin,
}

impl EventKind {
    const BITS: u32 = 3;
    const ALL: [EventKind; 1 << EventKind::BITS] = [
        EventKind::Arrive,
        EventKind::Send,
        EventKind::Credit,
        EventKind::Generate,
        EventKind::Inject,
        EventKind::Deliver,
        EventKind::Timer,
        EventKind::Begin,
    ];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PacketEvent {
    /// Time in picoseconds, followed by the kind in the lowest bits.
    when: u64,
    /// High half: the index, with all bits inverted, of the link, channel or terminal where the
    /// event happens. Low half: the index of the chunk, link, channel, terminal, message or timer
    /// that the event concerns.
    what: u64,
}

impl PacketEvent {
    /// Returns the time in picoseconds.
    #[inline]
    pub(super) fn time(&self) -> u64 {
        self.when >> EventKind::BITS
    }

    #[inline]
    pub(super) fn kind(&self) -> EventKind {
        EventKind::ALL[(self.when % (1 << EventKind::BITS)) as usize]
    }

    /// Returns the index of the chunk, link, channel, terminal, message or timer that the event
    /// concerns.
    #[inline]
    pub(super) fn index(&self) -> u32 {
        self.what as u32
    }

    #[inline]
    fn order(&self) -> u128 {
        (u128::from(self.when) << 64) + u128::from(self.what >> 32 << 32)
    }

    #[inline]
    fn is_before(&self, other: &PacketEvent) -> bool {
        self.when < other.when || self.when == other.when && self.what >> 32 < other.what >> 32
    }
}

/// Event in the heap: sort key, serial number, and the value of [`PacketEvent::what`].
type DistantEvent = Reverse<(u128, u64, u64)>;

pub(super) struct PacketQueue {
    /// Binary logarithm of the length of a bucket in picoseconds.
    shift: u32,
    buckets: Vec<Vec<PacketEvent>>,
    /// Words with one bit for each bucket. A bit is set if the bucket contains events.
    filled: Vec<u64>,
    /// Empty arrays that will be reused.
    spare: Vec<Vec<PacketEvent>>,
    /// Events of the open bucket and of earlier times, the latest first.
    open: Vec<PacketEvent>,
    /// Index of the open bucket, counted from time 0.
    cursor: u64,
    in_buckets: usize,
    distant: BinaryHeap<DistantEvent>,
    distant_added: u64,
    /// True if the queue has received events at [`LATEST_PS`] or later.
    has_late_events: bool,
}

impl PacketQueue {
    /// Creates an empty queue with buckets of 2^`shift` picoseconds.
    pub(super) fn new(shift: u32) -> PacketQueue {
        PacketQueue {
            shift,
            buckets: vec![Vec::new(); BUCKETS as usize],
            filled: vec![0; BUCKETS as usize / 64],
            spare: Vec::new(),
            open: Vec::new(),
            cursor: 0,
            in_buckets: 0,
            distant: BinaryHeap::new(),
            distant_added: 0,
            has_late_events: false,
        }
    }

    /// Adds an event that happens at `place` and concerns `place`. `time` (ps) is not before the
    /// event that was removed last.
    #[inline]
    pub(super) fn push(&mut self, time: u64, kind: EventKind, place: u32) {
        self.push_at(time, kind, place, place);
    }

    /// Adds an event at `place` that concerns the entry with the index `index`. `time` (ps) is not
    /// before the event that was removed last.
    #[inline]
    pub(super) fn push_at(&mut self, time: u64, kind: EventKind, place: u32, index: u32) {
        if time >= LATEST_PS {
            self.has_late_events = true;
            return;
        }
        let bucket = time >> self.shift;
        let event = PacketEvent {
            when: (time << EventKind::BITS) + kind as u64,
            what: (u64::from(!place) << 32) + u64::from(index),
        };
        if bucket <= self.cursor {
            let order = event.order();
            let before = self.open.partition_point(|other| other.order() > order);
            self.open.insert(before, event);
        } else if bucket - self.cursor < BUCKETS {
            self.push_near(bucket, event);
        } else {
            self.distant
                .push(Reverse((event.order(), self.distant_added, event.what)));
            self.distant_added += 1;
        }
    }

    /// Removes and returns the next event of the open bucket, unless it is at `before` (ps) or
    /// later.
    #[inline]
    pub(super) fn pop(&mut self, before: u64) -> Option<PacketEvent> {
        let next = self.open.last()?;
        if next.time() >= before {
            return None;
        }
        self.open.pop()
    }

    /// Returns the events of the open bucket. If the open bucket is empty, the function first opens
    /// the next bucket with events, unless this bucket begins at `before` (ps) or later. Returns an
    /// empty slice if no bucket can be opened.
    pub(super) fn open(&mut self, before: u64) -> &[PacketEvent] {
        if self.open.is_empty() {
            self.advance(before);
        }
        &self.open
    }

    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns the time (ps) at which the open bucket begins.
    pub(super) fn begin_of_open(&self) -> u64 {
        self.cursor << self.shift
    }

    /// Returns the time (ps) of the next event, or `None` if there are no events. Returns
    /// [`LATEST_PS`] if all events are at that time or later.
    pub(super) fn next_time(&self) -> Option<u64> {
        if let Some(next) = self.open.last() {
            return Some(next.time());
        }
        if self.in_buckets > 0 {
            let slot = (self.next_filled() % BUCKETS) as usize;
            return self.buckets[slot].iter().map(PacketEvent::time).min();
        }
        match self.distant.peek() {
            Some(Reverse((order, ..))) => Some((order >> 64 >> EventKind::BITS) as u64),
            None => self.has_late_events.then_some(LATEST_PS),
        }
    }

    #[inline]
    fn push_near(&mut self, bucket: u64, event: PacketEvent) {
        let slot = (bucket % BUCKETS) as usize;
        let (word, bit) = (slot / 64, 1 << (slot % 64));
        if self.filled[word] & bit == 0 {
            self.filled[word] |= bit;
            self.buckets[slot] = self.spare.pop().unwrap_or_default();
        }
        self.buckets[slot].push(event);
        self.in_buckets += 1;
    }

    /// Opens the next bucket with events, if the bucket begins before `before` (ps).
    fn advance(&mut self, before: u64) {
        let next = if self.in_buckets > 0 {
            self.next_filled()
        } else if let Some(Reverse((order, ..))) = self.distant.peek() {
            (order >> 64 >> EventKind::BITS >> self.shift) as u64
        } else {
            return;
        };
        if next << self.shift >= before {
            return;
        }
        self.cursor = next;
        while let Some(&Reverse((order, _, what))) = self.distant.peek() {
            let when = (order >> 64) as u64;
            let event = PacketEvent { when, what };
            let bucket = event.time() >> self.shift;
            if bucket >= self.cursor + BUCKETS {
                break;
            }
            self.distant.pop();
            self.push_near(bucket, event);
        }
        let slot = (self.cursor % BUCKETS) as usize;
        self.filled[slot / 64] &= !(1 << (slot % 64));
        let mut events = std::mem::take(&mut self.buckets[slot]);
        self.in_buckets -= events.len();
        if events.len() > MAX_INSERTION_SORTED {
            events.reverse();
            events.sort_by_key(|event| Reverse(event.order()));
            std::mem::swap(&mut self.open, &mut events);
        } else {
            sort_few(
                &events,
                self.shift.saturating_sub(SPAN_BITS),
                &mut self.open,
            );
        }
        events.clear();
        self.spare.push(events);
    }

    /// Returns the index of the first bucket with events after the open bucket. Such a bucket must
    /// exist.
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

/// Sorts the events of a small bucket into `sorted`, the latest first. The bucket is divided into
/// 2^SPAN_BITS spans of 2^`shift` ps. The function groups the events by span, then sorts them by
/// insertion.
fn sort_few(events: &[PacketEvent], shift: u32, sorted: &mut Vec<PacketEvent>) {
    const SPANS: usize = 1 << SPAN_BITS;
    let span = |event: &PacketEvent| (event.time() >> shift) as usize % SPANS;
    let mut place = [0_u8; SPANS];
    for event in events {
        place[span(event)] += 1;
    }
    let mut later = 0;
    for count in place.iter_mut().rev() {
        let count_of_span = *count;
        *count = later;
        later += count_of_span;
    }
    sorted.clear();
    sorted.resize(events.len(), PacketEvent { when: 0, what: 0 });
    for event in events.iter().rev() {
        let place = &mut place[span(event)];
        sorted[usize::from(*place)] = *event;
        *place += 1;
    }
    for place in 1..sorted.len() {
        let event = sorted[place];
        let mut to = place;
        while to > 0 && sorted[to - 1].is_before(&event) {
            sorted[to] = sorted[to - 1];
            to -= 1;
        }
        sorted[to] = event;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(event_queue: &mut PacketQueue) -> Option<PacketEvent> {
        let next = event_queue.next_time()?;
        event_queue.open(next);
        assert_eq!(event_queue.pop(next), None);
        event_queue.open(next + 1);
        event_queue.pop(next + 1)
    }

    #[test]
    fn events_leave_by_time_kind_and_place_and_then_in_the_order_of_their_coming() {
        for shift in [0, 4, 10] {
            let mut event_queue = PacketQueue::new(shift);
            let mut plain: Vec<(u64, u8, Reverse<u32>, u32)> = Vec::new();
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
                let (kind, place) = ((state >> 33) as u8 % 8, (state >> 36) as u32 % 4);
                let kinded = EventKind::ALL[usize::from(kind)];
                event_queue.push_at(now + delay, kinded, place, index);
                plain.push((now + delay, kind, Reverse(place), index));
                if draw % 3 == 0 {
                    let least = plain.iter().enumerate().min_by_key(|(_, event)| **event);
                    let expected = plain.remove(least.unwrap().0);
                    let event = take(&mut event_queue).unwrap();
                    assert_eq!(told(event), expected);
                    now = event.time();
                    taken += 1;
                }
            }
            plain.sort_unstable();
            for expected in plain {
                assert_eq!(told(take(&mut event_queue).unwrap()), expected);
                taken += 1;
            }
            assert_eq!((taken, take(&mut event_queue)), (20_000, None));
        }
    }

    #[test]
    fn events_beyond_the_limit_are_reported_and_never_taken() {
        let mut event_queue = PacketQueue::new(4);
        for time in [u64::MAX, LATEST_PS, LATEST_PS - 1, 5] {
            event_queue.push(time, EventKind::Send, 0);
        }
        for time in [5, LATEST_PS - 1] {
            assert_eq!(take(&mut event_queue).map(|event| event.time()), Some(time));
        }
        assert_eq!(event_queue.next_time(), Some(LATEST_PS));
        assert!(event_queue.open(u64::MAX).is_empty());
    }

    #[test]
    fn few_events_are_sorted_like_many() {
        let mut state = 1_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            (state >> 33) % below
        };
        for case in 0..3000 {
            let shift = [0_u32, 3, 5, 9, 14][case % 5];
            // Few times and places, so that many events are equal.
            let times = 1 + draw(1 << shift);
            let few = draw(MAX_INSERTION_SORTED as u64 + 1);
            let events = (0..few).map(|index| PacketEvent {
                when: (((7 << shift) + draw(times)) << EventKind::BITS) + draw(2),
                what: ((!draw(3)) << 32) + index,
            });
            let events: Vec<PacketEvent> = events.collect();
            let mut expected = events.clone();
            expected.sort_by_key(|event| {
                let (time, kind, place, _) = told(*event);
                (time, kind, place)
            });
            expected.reverse();
            let mut sorted = vec![PacketEvent { when: 1, what: 1 }; case % 7];
            sort_few(&events, shift.saturating_sub(SPAN_BITS), &mut sorted);
            // The stable order of equals shows in the indices.
            assert_eq!(sorted, expected, "shift {shift}");
        }
    }

    fn told(event: PacketEvent) -> (u64, u8, Reverse<u32>, u32) {
        let place = Reverse(!(event.what >> 32) as u32);
        (event.time(), event.kind() as u8, place, event.index())
    }
}
