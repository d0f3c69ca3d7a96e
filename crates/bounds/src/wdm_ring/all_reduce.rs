//! Lower bound on the time of an all_reduce: the minimum over all numbers of slots S. Links are
//! counted closely only for those S that can be the minimum.
//!
//! In S slots a byte takes at least E_S links: the maximum of C_S(N) + N - 1, the bound by prices
//! of scarce slots (both in [`super::multi_block`]) and the bound of [`super::crossings`]. T >= min
//! over S of S (R + a + delta) + max(bandwidth, E_S M / (2 c B N)).
//!
//! C_S(N) + N - 1 and the closed form of [`super::crossings`] are quick to compute, the other
//! bounds are not. The search visits S in the order of the known lower bound on their time, and
//! refines the bound of the least S until it has no better one. Since G_S(N) does not rise with S,
//! a bound for S holds for fewer slots, too, so that one S is computed for several: the greatest S
//! that a guess (both halves of an all_reduce along trees, C_t(N) + C_(S+1-t)(N) links) says is
//! enough. From 16 slots on only some S are computed in this way. Then the S with the least time
//! are computed for themselves, while there were fewer than [`MAX_CROSSED`] computations.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::crossings;
use super::relay_tree::{MAX_WORK, cost};
use opticoll_base::units::{Time, UnitError};

/// Ring and size of the all_reduce.
pub(super) struct AllReduce<'a> {
    pub ranks: u32,
    /// Maximum number of lightpaths that a rank receives, or sends, in a slot.
    pub intake: u64,
    /// Least number of slots.
    pub fewest: u64,
    /// Least time of a slot without its bytes.
    pub per_slot: Time,
    /// Time of all bytes if each byte of the vector takes the given number of links.
    pub sending: &'a dyn Fn(u64) -> Result<Time, UnitError>,
    /// Time of all bytes in the given number of slots by prices of scarce slots; slow to compute.
    pub priced: &'a dyn Fn(u64) -> Result<Time, UnitError>,
}

/// Number of computations of crossings after which no number of slots is computed for itself alone.
const MAX_CROSSED: usize = 6;

/// Argument that counts the most links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountedBy {
    /// Lightpaths along which something of one rank spreads.
    Trees,
    /// Lightpaths by which contributions leave growing neighbourhoods.
    Crossings,
}

/// Extent to which the bounds for one number of slots have been computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    /// Bounds that are quick to compute.
    Quick,
    /// Crossings of the next number of slots that is computed for several.
    Covered,
    /// Crossings of this number of slots, unless the limit of computations is reached.
    Crossed,
    /// All bounds.
    Priced,
}

/// Returns the first number from `slots` on that is computed for several numbers of slots.
fn round_up(slots: u64) -> u64 {
    let mut number = 1;
    while number < slots {
        number = after(number);
    }
    number
}

/// Returns the number of slots that is computed after `number`.
fn after(number: u64) -> u64 {
    number + (number / 8).max(1)
}

/// Returns a guess of the links of both halves along trees; no bound follows from it.
fn guess_links(ranks: u32, slots: u64) -> u64 {
    let half = slots.div_ceil(2);
    cost(ranks, half) + cost(ranks, slots + 1 - half)
}

struct Search<'a> {
    problem: &'a AllReduce<'a>,
    /// Links by crossings, for each number of slots.
    crossed: BTreeMap<u64, u64>,
    /// Times by prices of scarce slots, for each number of slots.
    priced: BTreeMap<u64, Time>,
    /// Links of the last computed number over its guess, in parts of 1024.
    ratio: u64,
}

impl Search<'_> {
    fn time(&self, slots: u64, sending: Time) -> Result<Time, UnitError> {
        self.problem.per_slot.times(slots)?.plus(sending)
    }

    fn link_time(&self, slots: u64, links: u64) -> Result<Time, UnitError> {
        self.time(slots, (self.problem.sending)(links)?)
    }

    /// Returns the links in `slots` slots by the bounds that are quick to compute.
    fn quick(&self, slots: u64) -> u64 {
        let ranks = self.problem.ranks;
        let along_trees = cost(ranks, slots) + u64::from(ranks - 1);
        along_trees.max(crossings::closed_form(ranks, slots))
    }

    /// Returns the greatest known lower bound on the links in `slots` slots.
    fn known(&self, slots: u64) -> u64 {
        let links_of_more = self.crossed.range(slots..).map(|(_, &links)| links);
        links_of_more.max().unwrap_or(0).max(self.quick(slots))
    }

    /// Returns the known or guessed number of links in `slots` slots.
    fn expected(&self, slots: u64) -> u64 {
        let guess = guess_links(self.problem.ranks, slots) * self.ratio / 1024;
        self.crossed
            .get(&slots)
            .copied()
            .unwrap_or(guess)
            .max(self.quick(slots))
    }

    /// Returns the greatest number from `slots` on whose crossings probably prove that `slots`
    /// slots are not the minimum.
    fn telling_number(&self, slots: u64, last: u64) -> Result<u64, UnitError> {
        let first = round_up(slots);
        let ranks = self.problem.ranks;
        let from = |first| {
            let numbers = std::iter::successors(Some(first), |&number| Some(after(number)));
            let are_searched =
                move |&number: &u64| number < 2 || crossings::is_searched(ranks, number);
            numbers
                .take_while(move |&number| number <= last)
                .take_while(are_searched)
        };
        let mut goal: Option<Time> = None;
        for number in from(round_up(self.problem.fewest)) {
            let time = self.link_time(number, self.expected(number))?;
            goal = Some(goal.map_or(time, |goal| goal.min(time)));
        }
        let mut telling_number = first;
        for number in from(first) {
            let is_new = !self.crossed.contains_key(&number);
            let time = self.link_time(slots, self.expected(number))?;
            if is_new && goal.is_some_and(|goal| time >= goal) {
                telling_number = number;
            }
        }
        Ok(telling_number)
    }

    /// Returns the argument that decides the time of `slots` slots.
    fn counted_by(&self, slots: u64, time: Time) -> Result<CountedBy, UnitError> {
        let ranks = self.problem.ranks;
        let along_trees = self.link_time(slots, cost(ranks, slots) + u64::from(ranks - 1))?;
        let priced = self.priced.get(&slots).copied().unwrap_or_default();
        Ok(match time > along_trees.max(priced) {
            true => CountedBy::Crossings,
            false => CountedBy::Trees,
        })
    }

    /// Computes the crossings of a number of slots.
    fn cross(&mut self, number: u64) {
        let ranks = self.problem.ranks;
        let links = crossings::links(ranks, self.problem.intake, number);
        self.ratio = (links * 1024 / guess_links(ranks, number)).min(1024);
        self.crossed.insert(number, links);
    }
}

/// Returns the minimum time over all numbers of slots, and the argument that decides it.
pub(super) fn least(problem: &AllReduce) -> Result<(Time, CountedBy), UnitError> {
    let ranks = u64::from(problem.ranks);
    let mut search = Search {
        problem,
        crossed: BTreeMap::new(),
        priced: BTreeMap::new(),
        ratio: 1000,
    };
    let mut open: BinaryHeap<Reverse<(Time, u64, Progress)>> = BinaryHeap::new();
    let mut next = problem.fewest.max(1);
    loop {
        // No plan of `next` slots or more is faster, whatever its links.
        let floor = search.link_time(next, ranks - 1)?;
        let top = open.peek().map(|Reverse((time, _, _))| *time);
        if top.is_none_or(|top| floor < top) {
            if next * ranks > MAX_WORK {
                return Ok((floor, CountedBy::Trees));
            }
            let time = search.link_time(next, search.quick(next))?;
            open.push(Reverse((time, next, Progress::Quick)));
            next += 1;
            continue;
        }
        let Some(Reverse((time, slots, known))) = open.pop() else {
            continue;
        };
        let better = search.link_time(slots, search.known(slots))?;
        if better > time {
            open.push(Reverse((better, slots, known)));
            continue;
        }
        match known {
            Progress::Quick if !crossings::is_searched(problem.ranks, round_up(slots)) => {
                open.push(Reverse((time, slots, Progress::Covered)));
            }
            Progress::Quick => {
                let number = search.telling_number(slots, next.max(round_up(slots)))?;
                if !search.crossed.contains_key(&number) {
                    search.cross(number);
                }
                let known = if number == round_up(slots) {
                    Progress::Covered
                } else {
                    known
                };
                open.push(Reverse((time, slots, known)));
            }
            Progress::Covered => {
                let is_new = !search.crossed.contains_key(&slots);
                if is_new
                    && search.crossed.len() < MAX_CROSSED
                    && crossings::is_searched(problem.ranks, slots)
                {
                    search.cross(slots);
                }
                open.push(Reverse((time, slots, Progress::Crossed)));
            }
            Progress::Crossed => {
                let priced = search.time(slots, (problem.priced)(slots)?)?;
                search.priced.insert(slots, priced);
                open.push(Reverse((time.max(priced), slots, Progress::Priced)));
            }
            Progress::Priced => return Ok((time, search.counted_by(slots, time)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The search result lies between the quick bounds and all bounds.
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
                let problem = AllReduce {
                    ranks,
                    intake: 16,
                    fewest: 2,
                    per_slot: Time::from_ps(1000),
                    sending: &of_link,
                    priced: &|_| Ok(Time::ZERO),
                };
                let found = least(&problem).unwrap().0.ps();
                let slots = || 2..2 * u64::from(ranks);
                let quick = slots().map(|slots| {
                    let both = cost(ranks, slots) + u64::from(ranks - 1);
                    1000 * slots + link * both.max(crossings::closed_form(ranks, slots))
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
