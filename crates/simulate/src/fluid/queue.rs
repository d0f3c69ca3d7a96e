//! Priority queue that contains one instant per key and supports changes of an instant.

/// Number of children of an entry of the heap. With four children, the heap is half as deep as with
/// two, and children share a cache line.
const ARITY: usize = 4;

/// Value of [`QueueKey::place`] for a key without an entry.
const ABSENT: u32 = u32::MAX;

/// Priority queue of the keys 0, 1, 2, ..., ordered by their instants (ps), the earliest first.
///
/// The instant in a key's entry is never later than the key's instant. An entry that is too early
/// is corrected when it reaches the front, so postponing an instant costs no work until then.
#[derive(Default)]
pub(super) struct Queue {
    entries: Vec<(f64, u32)>,
    keys: Vec<QueueKey>,
}

#[derive(Clone, Copy)]
struct QueueKey {
    instant: f64,
    /// Instant in the key's entry.
    queued: f64,
    /// Index of the key's entry, or [`ABSENT`].
    place: u32,
}

impl Queue {
    /// Returns the earliest instant (ps).
    pub(super) fn first(&mut self) -> Option<f64> {
        loop {
            let &(queued, key) = self.entries.first()?;
            let instant = self.keys[key as usize].instant;
            if instant <= queued {
                return Some(instant);
            }
            self.correct(0);
        }
    }

    /// Sets the instant of the entry at index `place` to the instant of its key.
    fn correct(&mut self, place: usize) {
        let key = &mut self.keys[self.entries[place].1 as usize];
        key.queued = key.instant;
        self.entries[place].0 = key.instant;
        self.sink(place);
    }

    /// Sets the instant of a key, or replaces the instant if the key has one.
    pub(super) fn set(&mut self, key: u32, instant: f64) {
        if key as usize >= self.keys.len() {
            let none = QueueKey {
                instant: 0.0,
                queued: 0.0,
                place: ABSENT,
            };
            self.keys.resize(key as usize + 1, none);
        }
        let state = &mut self.keys[key as usize];
        state.instant = instant;
        if state.place == ABSENT {
            state.queued = instant;
            self.entries.push((instant, key));
            self.rise(self.entries.len() - 1);
        } else if instant < state.queued {
            state.queued = instant;
            let place = state.place as usize;
            self.entries[place].0 = instant;
            self.rise(place);
        }
    }

    pub(super) fn remove(&mut self, key: u32) {
        let Some(state) = self.keys.get_mut(key as usize) else {
            return;
        };
        let place = std::mem::replace(&mut state.place, ABSENT) as usize;
        if place == ABSENT as usize {
            return;
        }
        let last = self.entries.pop();
        if let Some(entry) = last
            && place < self.entries.len()
        {
            self.put(place, entry);
            self.rise(place);
            self.sink(self.keys[entry.1 as usize].place as usize);
        }
    }

    /// Removes all keys with instants up to `limit` (ps), and appends them to `keys`, unordered.
    pub(super) fn take_until(&mut self, limit: f64, keys: &mut Vec<u32>) {
        let before = keys.len();
        // Entries with instants up to `limit` form a tree at the front of the heap.
        let mut open: Vec<u32> = Vec::new();
        if self.first().is_some_and(|instant| instant <= limit) {
            open.push(0);
        }
        while let Some(place) = open.pop() {
            let key = self.entries[place as usize].1;
            if self.keys[key as usize].instant <= limit {
                keys.push(key);
            }
            let children = place as usize * ARITY + 1;
            for child in children..(children + ARITY).min(self.entries.len()) {
                if self.entries[child].0 <= limit {
                    open.push(child as u32);
                }
            }
        }
        let taken = keys.len() - before;
        if taken * 8 < self.entries.len() {
            for &key in &keys[before..] {
                self.remove(key);
            }
            return;
        }
        for &key in &keys[before..] {
            self.keys[key as usize].place = ABSENT;
        }
        let states = &self.keys;
        self.entries
            .retain(|&(_, key)| states[key as usize].place != ABSENT);
        for at in 0..self.entries.len() {
            self.keys[self.entries[at].1 as usize].place = at as u32;
        }
        for at in (0..self.entries.len()).rev() {
            self.sink(at);
        }
    }

    /// Moves an entry towards the front until its parent is not later.
    fn rise(&mut self, mut at: usize) {
        let entry = self.entries[at];
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.entries[parent].0 <= entry.0 {
                break;
            }
            self.put(at, self.entries[parent]);
            at = parent;
        }
        self.put(at, entry);
    }

    /// Moves an entry away from the front until no child is earlier.
    fn sink(&mut self, mut at: usize) {
        let entry = self.entries[at];
        loop {
            let children = at * ARITY + 1;
            let mut least = at;
            let mut least_instant = entry.0;
            for child in children..(children + ARITY).min(self.entries.len()) {
                if self.entries[child].0 < least_instant {
                    least = child;
                    least_instant = self.entries[child].0;
                }
            }
            if least == at {
                break;
            }
            self.put(at, self.entries[least]);
            at = least;
        }
        self.put(at, entry);
    }

    /// Stores `entry` at index `at` of the heap, and stores `at` as the place of the entry's key.
    fn put(&mut self, at: usize, entry: (f64, u32)) {
        self.entries[at] = entry;
        self.keys[entry.1 as usize].place = at as u32;
    }
}
