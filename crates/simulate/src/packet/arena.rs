//! Arena of numbered entries, and linked lists through an arena.

/// Index that refers to no entry.
pub(super) const NONE: u32 = u32::MAX;

/// Entry that can be a member of a list.
pub(super) trait Linked: Copy {
    fn next(&self) -> u32;
    fn set_next(&mut self, next: u32);
}

/// Arena of entries. The places of removed entries are reused.
#[derive(Clone)]
pub(super) struct Arena<T> {
    places: Vec<T>,
    free: u32,
    used: usize,
}

impl<T: Linked> Arena<T> {
    pub(super) fn new() -> Arena<T> {
        Arena {
            places: Vec::new(),
            free: NONE,
            used: 0,
        }
    }

    pub(super) fn used(&self) -> usize {
        self.used
    }

    #[inline]
    pub(super) fn add(&mut self, thing: T) -> u32 {
        self.used += 1;
        let place = self.free;
        if place == NONE {
            self.places.push(thing);
            return (self.places.len() - 1) as u32;
        }
        self.free = self.places[place as usize].next();
        self.places[place as usize] = thing;
        place
    }

    #[inline]
    pub(super) fn remove(&mut self, place: u32) {
        self.used -= 1;
        self.places[place as usize].set_next(self.free);
        self.free = place;
    }
}

impl<T> std::ops::Index<u32> for Arena<T> {
    type Output = T;

    #[inline]
    fn index(&self, place: u32) -> &T {
        &self.places[place as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Arena<T> {
    #[inline]
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.places[place as usize]
    }
}

/// Linked list of entries of an arena; first in, first out.
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    pub(super) head: u32,
    tail: u32,
}

impl List {
    pub(super) const EMPTY: List = List {
        head: NONE,
        tail: NONE,
    };

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head == NONE
    }

    #[inline]
    pub(super) fn push<T: Linked>(&mut self, arena: &mut Arena<T>, place: u32) {
        arena[place].set_next(NONE);
        if self.head == NONE {
            self.head = place;
        } else {
            arena[self.tail].set_next(place);
        }
        self.tail = place;
    }

    #[inline]
    pub(super) fn tail<T: Linked>(&self, arena: &Arena<T>) -> Option<T> {
        (self.head != NONE).then(|| arena[self.tail])
    }

    /// Removes the first member of a list that is not empty, and returns the index of the member.
    #[inline]
    pub(super) fn pop<T: Linked>(&mut self, arena: &Arena<T>) -> u32 {
        let place = self.head;
        self.head = arena[place].next();
        place
    }

    pub(super) fn members<'a, T: Linked>(
        &self,
        arena: &'a Arena<T>,
    ) -> impl Iterator<Item = u32> + 'a {
        let first = (self.head != NONE).then_some(self.head);
        std::iter::successors(first, |&place| {
            let next = arena[place].next();
            (next != NONE).then_some(next)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[derive(Clone, Copy)]
    struct Numbered {
        number: u32,
        next: u32,
    }

    impl Linked for Numbered {
        fn next(&self) -> u32 {
            self.next
        }
        fn set_next(&mut self, next: u32) {
            self.next = next;
        }
    }

    #[test]
    fn lists_are_first_come_first_served_while_places_are_used_again() {
        let mut arena = Arena::new();
        let mut lists = [List::EMPTY; 3];
        let mut plain = [const { VecDeque::new() }; 3];
        let mut state: u64 = 1;
        for number in 0..10_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            let which = (state >> 40) as usize % 3;
            if state >> 63 == 0 {
                let place = arena.add(Numbered { number, next: NONE });
                lists[which].push(&mut arena, place);
                plain[which].push_back(number);
            } else if let Some(expected) = plain[which].pop_front() {
                let place = lists[which].pop(&arena);
                assert_eq!(arena[place].number, expected);
                arena.remove(place);
            }
            let members = lists[which]
                .members(&arena)
                .map(|place| arena[place].number);
            assert!(members.eq(plain[which].iter().copied()));
            assert_eq!(arena.used(), plain.iter().map(VecDeque::len).sum::<usize>());
        }
    }
}
