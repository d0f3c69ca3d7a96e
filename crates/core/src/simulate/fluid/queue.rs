//! A heap of instants, one per key, whose entries move when their instant changes.

/// Children of an entry. Four make the heap half as deep as two, and lie on one cache line.
const ARITY: usize = 4;

const ABSENT: u32 = u32::MAX;

/// Keys 0, 1, 2, ... with an instant each (ps), the earliest first.
#[derive(Default)]
pub(super) struct Queue {
    entries: Vec<(f64, u32)>,
    /// By key: where its entry stands.
    place: Vec<u32>,
}

impl Queue {
    /// The earliest instant.
    pub(super) fn first(&self) -> Option<f64> {
        self.entries.first().map(|&(instant, _)| instant)
    }

    /// Sets the instant of a key, whether or not it has one.
    pub(super) fn set(&mut self, key: u32, instant: f64) {
        if key as usize >= self.place.len() {
            self.place.resize(key as usize + 1, ABSENT);
        }
        let place = self.place[key as usize];
        if place == ABSENT {
            self.entries.push((instant, key));
            self.rise(self.entries.len() - 1);
            return;
        }
        let earlier = instant < self.entries[place as usize].0;
        self.entries[place as usize].0 = instant;
        if earlier {
            self.rise(place as usize);
        } else {
            self.sink(place as usize);
        }
    }

    /// Takes a key's instant away, if it has one.
    pub(super) fn remove(&mut self, key: u32) {
        let Some(&place) = self.place.get(key as usize) else {
            return;
        };
        if place == ABSENT {
            return;
        }
        self.place[key as usize] = ABSENT;
        let last = self.entries.pop();
        let place = place as usize;
        if let Some(entry) = last
            && place < self.entries.len()
        {
            self.entries[place] = entry;
            self.place[entry.1 as usize] = place as u32;
            self.rise(place);
            self.sink(self.place[entry.1 as usize] as usize);
        }
    }

    /// Moves all keys whose instant is not after `limit` to `keys`, in no particular order.
    pub(super) fn take_until(&mut self, limit: f64, keys: &mut Vec<u32>) {
        let before = keys.len();
        // They are a tree of their own at the top of the heap.
        let mut open: Vec<u32> = Vec::new();
        if self.first().is_some_and(|instant| instant <= limit) {
            open.push(0);
        }
        while let Some(place) = open.pop() {
            keys.push(self.entries[place as usize].1);
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
            self.place[key as usize] = ABSENT;
        }
        let place = &self.place;
        self.entries
            .retain(|&(_, key)| place[key as usize] != ABSENT);
        for at in 0..self.entries.len() {
            self.place[self.entries[at].1 as usize] = at as u32;
        }
        for at in (0..self.entries.len()).rev() {
            self.sink(at);
        }
    }

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

    fn put(&mut self, at: usize, entry: (f64, u32)) {
        self.entries[at] = entry;
        self.place[entry.1 as usize] = at as u32;
    }
}
