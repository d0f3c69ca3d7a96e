//! Event queue of a simulation. Events are removed in the order of their times; events of the same
//! time are removed in the order in which they were added.
//!
//! ```
//! use opticoll_base::event::EventQueue;
//! let mut queue = EventQueue::default();
//! queue.put(20, "later");
//! queue.put(10, "first");
//! queue.put(10, "second");
//! assert_eq!(queue.next_time(), Some(10));
//! let order: Vec<(u64, &str)> = std::iter::from_fn(|| queue.pop()).collect();
//! assert_eq!(order, [(10, "first"), (10, "second"), (20, "later")]);
//! ```

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Queue of events of type `E`. The caller chooses the unit of time.
#[derive(Debug, Clone)]
pub struct EventQueue<E> {
    entries: BinaryHeap<Reverse<Entry<E>>>,
    entered: u64,
}

#[derive(Debug, Clone)]
struct Entry<E> {
    time: u64,
    number: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Entry<E>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Entry<E>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Entry<E>) -> Ordering {
        (self.time, self.number).cmp(&(other.time, other.number))
    }
}

impl<E> Default for EventQueue<E> {
    fn default() -> EventQueue<E> {
        EventQueue {
            entries: BinaryHeap::new(),
            entered: 0,
        }
    }
}

impl<E> EventQueue<E> {
    /// Adds an event that happens at `time`.
    pub fn put(&mut self, time: u64, event: E) {
        self.entered += 1;
        self.entries.push(Reverse(Entry {
            time,
            number: self.entered,
            event,
        }));
    }

    /// Returns the time of the next event, or `None` if the queue is empty.
    pub fn next_time(&self) -> Option<u64> {
        self.entries.peek().map(|entry| entry.0.time)
    }

    /// Removes the next event and returns the event with its time.
    pub fn pop(&mut self) -> Option<(u64, E)> {
        let Reverse(entry) = self.entries.pop()?;
        Some((entry.time, entry.event))
    }

    /// Removes and returns the next event, unless the event happens after `time`.
    pub fn pop_until(&mut self, time: u64) -> Option<(u64, E)> {
        match self.next_time() {
            Some(next) if next <= time => self.pop(),
            _ => None,
        }
    }

    /// Returns the number of events in the queue.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the queue has no events.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
