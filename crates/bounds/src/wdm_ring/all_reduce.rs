//! The bound on the time of an all_reduce: the least over numbers of slots, where links are counted closely only for the
//! numbers that can be the least.
//!
//! In S slots a byte takes E_S links at least: the greatest of C_S(N) + N - 1 and what prices of scarce slots give (both in
//! [`super::multi_block`]) and of [`super::crossings`]. T >= min over S of S (R + a + delta) + max(bandwidth, E_S M / (2 c B N)). The first term
//! and the closed form of [`super::crossings`] are quick to compute, the others are not. So S is looked at in the order of the time that is known
//! to be needed, and more is computed for the least of them, until nothing more can be said of it. Since G_S(N) does not
//! rise with S, what is found for S slots holds for fewer slots, too. So one S is computed for several: it is chosen as far from the least one as a
//! guess (both halves of an all_reduce along trees, C_t(N) + C_(S+1-t)(N) links) says that it is enough. From 16 slots on, only
//! some S are computed in this way; after that the one that is the least, as long as few were.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::crossings;
use super::relay_tree::{MOST_WORK, cost};
use opticoll_base::units::{Time, UnitError};

/// What is asked of the ring and the size.
pub(super) struct Question<'a> {
    pub ranks: u32,
    /// How many lightpaths a rank takes in, or sends, in a slot at most.
    pub intake: u64,
    /// The least number of slots.
    pub fewest: u64,
    /// What each slot takes at least.
    pub per_slot: Time,
    /// The time in which so many links for each byte of the vector are gone over, and what else is to be sent.
    pub sending: &'a dyn Fn(u64) -> Result<Time, UnitError>,
    /// The same by prices of scarce slots, which takes long.
    pub priced: &'a dyn Fn(u64) -> Result<Time, UnitError>,
}

/// With so many numbers of slots computed, no more are computed for themselves alone.
const ENOUGH: usize = 6;

/// The argument that counts the most links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountedBy {
    /// The lightpaths along which something of one rank spreads.
    Trees,
    /// Those by which contributions leave growing neighbourhoods.
    Crossings,
}

/// How much is known of a number of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Known {
    /// What is quick.
    Quickly,
    /// What crossings of the next number that is computed for several give.
    Covered,
    /// What crossings of this number give, if there was time for it.
    Crossed,
    /// All there is.
    Priced,
}

/// The next number of slots from `slots` on that is computed.
fn computed(slots: u64) -> u64 {
    let mut number = 1;
    while number < slots {
        number = after(number);
    }
    number
}

fn after(number: u64) -> u64 {
    number + (number / 8).max(1)
}

/// Links of both halves along trees, about: a guess that nothing is concluded from.
fn guessed(ranks: u32, slots: u64) -> u64 {
    let half = slots.div_ceil(2);
    cost(ranks, half) + cost(ranks, slots + 1 - half)
}

struct Search<'a> {
    asked: &'a Question<'a>,
    /// Links that crossings give, by slots.
    crossed: BTreeMap<u64, u64>,
    /// Times by prices of scarce slots, by slots.
    priced: BTreeMap<u64, Time>,
    /// Links of the last computed number over its guess, in parts of 1024.
    ratio: u64,
}

impl Search<'_> {
    fn time(&self, slots: u64, sending: Time) -> Result<Time, UnitError> {
        self.asked.per_slot.times(slots)?.plus(sending)
    }

    fn by_links(&self, slots: u64, links: u64) -> Result<Time, UnitError> {
        self.time(slots, (self.asked.sending)(links)?)
    }

    /// The links of so many slots that are quick to compute.
    fn quick(&self, slots: u64) -> u64 {
        let ranks = self.asked.ranks;
        let both = cost(ranks, slots) + u64::from(ranks - 1);
        both.max(crossings::by_two(ranks, slots))
    }

    /// The most links that are known to be needed in so many slots.
    fn known(&self, slots: u64) -> u64 {
        let of_more = self.crossed.range(slots..).map(|(_, &links)| links);
        of_more.max().unwrap_or(0).max(self.quick(slots))
    }

    /// The links that are known or guessed.
    fn expected(&self, slots: u64) -> u64 {
        let guess = guessed(self.asked.ranks, slots) * self.ratio / 1024;
        self.crossed
            .get(&slots)
            .copied()
            .unwrap_or(guess)
            .max(self.quick(slots))
    }

    /// The greatest number of slots to compute from `slots` on that is likely to tell that so few are not the least.
    fn telling(&self, slots: u64, last: u64) -> Result<u64, UnitError> {
        let first = computed(slots);
        let ranks = self.asked.ranks;
        let from = |first| {
            let numbers = std::iter::successors(Some(first), |&number| Some(after(number)));
            let are_worth = move |&number: &u64| number < 2 || crossings::is_worth(ranks, number);
            numbers
                .take_while(move |&number| number <= last)
                .take_while(are_worth)
        };
        let mut goal: Option<Time> = None;
        for number in from(computed(self.asked.fewest)) {
            let time = self.by_links(number, self.expected(number))?;
            goal = Some(goal.map_or(time, |goal| goal.min(time)));
        }
        let mut telling = first;
        for number in from(first) {
            let is_new = !self.crossed.contains_key(&number);
            let time = self.by_links(slots, self.expected(number))?;
            if is_new && goal.is_some_and(|goal| time >= goal) {
                telling = number;
            }
        }
        Ok(telling)
    }

    /// What decides the time of so many slots.
    fn counted_by(&self, slots: u64, time: Time) -> Result<CountedBy, UnitError> {
        let ranks = self.asked.ranks;
        let along_trees = self.by_links(slots, cost(ranks, slots) + u64::from(ranks - 1))?;
        let priced = self.priced.get(&slots).copied().unwrap_or_default();
        Ok(match time > along_trees.max(priced) {
            true => CountedBy::Crossings,
            false => CountedBy::Trees,
        })
    }

    fn cross(&mut self, number: u64) {
        let ranks = self.asked.ranks;
        let links = crossings::links(ranks, self.asked.intake, number);
        self.ratio = (links * 1024 / guessed(ranks, number)).min(1024);
        self.crossed.insert(number, links);
    }
}

/// The least time over all numbers of slots, and by what links are counted there.
pub(super) fn least(asked: &Question) -> Result<(Time, CountedBy), UnitError> {
    let ranks = u64::from(asked.ranks);
    let mut search = Search {
        asked,
        crossed: BTreeMap::new(),
        priced: BTreeMap::new(),
        ratio: 1000,
    };
    let mut open: BinaryHeap<Reverse<(Time, u64, Known)>> = BinaryHeap::new();
    let mut next = asked.fewest.max(1);
    loop {
        // No plan of this many slots or more is faster than that, whatever its links.
        let floor = search.by_links(next, ranks - 1)?;
        let top = open.peek().map(|Reverse((time, _, _))| *time);
        if top.is_none_or(|top| floor < top) {
            if next * ranks > MOST_WORK {
                return Ok((floor, CountedBy::Trees));
            }
            let time = search.by_links(next, search.quick(next))?;
            open.push(Reverse((time, next, Known::Quickly)));
            next += 1;
            continue;
        }
        let Some(Reverse((time, slots, known))) = open.pop() else {
            continue;
        };
        let better = search.by_links(slots, search.known(slots))?;
        if better > time {
            open.push(Reverse((better, slots, known)));
            continue;
        }
        match known {
            Known::Quickly if !crossings::is_worth(asked.ranks, computed(slots)) => {
                open.push(Reverse((time, slots, Known::Covered)));
            }
            Known::Quickly => {
                let number = search.telling(slots, next.max(computed(slots)))?;
                if !search.crossed.contains_key(&number) {
                    search.cross(number);
                }
                let known = if number == computed(slots) {
                    Known::Covered
                } else {
                    known
                };
                open.push(Reverse((time, slots, known)));
            }
            Known::Covered => {
                let is_new = !search.crossed.contains_key(&slots);
                if is_new
                    && search.crossed.len() < ENOUGH
                    && crossings::is_worth(asked.ranks, slots)
                {
                    search.cross(slots);
                }
                open.push(Reverse((time, slots, Known::Crossed)));
            }
            Known::Crossed => {
                let priced = search.time(slots, (asked.priced)(slots)?)?;
                search.priced.insert(slots, priced);
                open.push(Reverse((time.max(priced), slots, Known::Priced)));
            }
            Known::Priced => return Ok((time, search.counted_by(slots, time)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the search leaves out lies between what is quick and all that could be computed.
    #[test]
    #[cfg_attr(
        debug_assertions,
        ignore = "slow without optimisation: `make validate`"
    )]
    fn the_least_is_not_above_that_of_all_numbers_of_slots() {
        let (mut above_quick, mut as_good) = (0, 0);
        for ranks in [4, 9, 16, 33, 64, 100] {
            for link in [1, 3, 10, 30, 100, 300, 1000] {
                let of_link = |links: u64| Ok(Time::from_ps(links * link));
                let asked = Question {
                    ranks,
                    intake: 16,
                    fewest: 2,
                    per_slot: Time::from_ps(1000),
                    sending: &of_link,
                    priced: &|_| Ok(Time::ZERO),
                };
                let found = least(&asked).unwrap().0.ps();
                let slots = || 2..2 * u64::from(ranks);
                let quick = slots().map(|slots| {
                    let both = cost(ranks, slots) + u64::from(ranks - 1);
                    1000 * slots + link * both.max(crossings::by_two(ranks, slots))
                });
                let all = slots().map(|slots| {
                    let of_more =
                        (slots..=u64::from(ranks)).map(|more| crossings::links(ranks, 16, more));
                    let both = cost(ranks, slots) + u64::from(ranks - 1);
                    1000 * slots + link * of_more.max().unwrap_or(0).max(both)
                });
                let (quick, all) = (quick.min().unwrap(), all.min().unwrap());
                assert!(
                    (quick..=all).contains(&found),
                    "{ranks}, {link}: {quick}, {found}, {all}"
                );
                above_quick += usize::from(found > quick);
                as_good += usize::from(found == all);
            }
        }
        assert!(above_quick > 10 && as_good > 20, "{above_quick}, {as_good}");
    }
}
