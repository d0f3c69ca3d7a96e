//! Lower bound on the time of an all_reduce: the minimum over all numbers of slots S. Only numbers
//! of slots that can be the minimum get the tighter bounds, which are slow to compute.
//!
//! In S slots, a byte occupies at least E_S links. E_S is the maximum of three bounds: C_S(N) + N -
//! 1, the bound by prices of scarce slots (both in [`super::multi_block`]), and the bound of
//! [`super::crossings`]. T >= min over S of S (R + a + delta) + max(bandwidth, E_S M / (2 c B N)).
//!
//! C_S(N) + N - 1 and the closed form of [`super::crossings`] are quick to compute; the other
//! bounds are slow. A queue has the numbers of slots in the order of their best known bounds on the
//! time. The search takes the first number of the queue, computes its next slow bound, and puts the
//! number back. The search ends when all bounds of the first number are computed.
//!
//! The bound G_S(N) of [`super::crossings`] does not rise with S, so that a bound for S also holds
//! for fewer slots. The search therefore computes the bound first for an S that serves several
//! numbers of slots. S is the greatest number for which the bound probably excludes these numbers.
//! A guess of the bound decides this: C_t(N) + C_(S+1-t)(N) links, for the two halves of an
//! all_reduce along trees. Such an S is in the *sequence* 1, 2, ..., 16, 18, 20, ..., in which
//! numbers from 8 on rise by an eighth, rounded down. Later, the search computes the bound for
//! single numbers of slots, those with the least times, until [`MAX_CROSSED`] bounds in total are
//! computed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::crossings;
use super::relay_tree::{MAX_WORK, cost};
use opticoll_base::units::{Time, UnitError};

pub(super) struct AllReduce<'a> {
    pub ranks: u32,
    /// Maximum number of lightpaths that a rank receives, or sends, in a slot.
    pub intake: u64,
    /// Minimum number of slots.
    pub fewest: u64,
    /// Minimum length of a slot without the transmission of bytes.
    pub per_slot: Time,
    /// Time to transmit all bytes if each byte of the vector occupies the given number of links.
    pub sending: &'a dyn Fn(u64) -> Result<Time, UnitError>,
    /// Time to transmit all bytes in the given number of slots, by prices of scarce slots; slow.
    pub priced: &'a dyn Fn(u64) -> Result<Time, UnitError>,
}

/// Number of computed bounds by crossings from which on the search computes no bound that serves
/// only one number of slots.
const MAX_CROSSED: usize = 6;

/// Lightpaths whose links, counted in a proof, give the greatest bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountedBy {
    /// Lightpaths along which data of one rank reach all ranks.
    Trees,
    /// Lightpaths along which contributions leave growing neighbourhoods.
    Crossings,
}

/// Bounds computed for one number of slots. Each variant includes the variants before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    /// Bounds that are quick to compute.
    Quick,
    /// Also the bound by crossings for the next number of the header's sequence, which serves
    /// several numbers of slots.
    Covered,
    /// Also the bound by crossings for exactly this number of slots, unless [`MAX_CROSSED`] is
    /// reached.
    Crossed,
    /// Also the bound by prices of scarce slots.
    Priced,
}

/// Returns the least number of the header's sequence that is at least `slots`.
fn round_up(slots: u64) -> u64 {
    let mut number = 1;
    while number < slots {
        number = after(number);
    }
    number
}

/// Returns the number that follows `number` in the header's sequence.
fn after(number: u64) -> u64 {
    number + (number / 8).max(1)
}

/// Returns a guess of the number of links that a byte occupies in the two halves of an all_reduce
/// along trees. A guess is not a bound.
fn guess_links(ranks: u32, slots: u64) -> u64 {
    let half = slots.div_ceil(2);
    cost(ranks, half) + cost(ranks, slots + 1 - half)
}

struct Search<'a> {
    problem: &'a AllReduce<'a>,
    /// Lower bound by [`crossings::links`] on the number of links that a byte occupies, keyed by
    /// number of slots.
    crossed: BTreeMap<u64, u64>,
    /// Bound on the time by prices of scarce slots, keyed by number of slots.
    priced: BTreeMap<u64, Time>,
    /// Quotient of the computed links and the guessed links in the latest computation, times 1024.
    ratio: u64,
}

impl Search<'_> {
    fn time(&self, slots: u64, sending: Time) -> Result<Time, UnitError> {
        self.problem.per_slot.times(slots)?.plus(sending)
    }

    fn link_time(&self, slots: u64, links: u64) -> Result<Time, UnitError> {
        self.time(slots, (self.problem.sending)(links)?)
    }

    /// Returns the greatest quick lower bound on the number of links that a byte occupies in
    /// `slots` slots.
    fn quick_links(&self, slots: u64) -> u64 {
        let ranks = self.problem.ranks;
        let along_trees = cost(ranks, slots) + u64::from(ranks - 1);
        along_trees.max(crossings::closed_form(ranks, slots))
    }

    /// Returns the greatest computed lower bound on the number of links that a byte occupies in
    /// `slots` slots.
    fn computed_links(&self, slots: u64) -> u64 {
        let links_of_more = self.crossed.range(slots..).map(|(_, &links)| links);
        links_of_more
            .max()
            .unwrap_or(0)
            .max(self.quick_links(slots))
    }

    /// Returns the computed number of links that a byte occupies in `slots` slots. If no number is
    /// computed, returns a guess.
    fn expected_links(&self, slots: u64) -> u64 {
        let guess = guess_links(self.problem.ranks, slots) * self.ratio / 1024;
        self.crossed
            .get(&slots)
            .copied()
            .unwrap_or(guess)
            .max(self.quick_links(slots))
    }

    /// Chooses the number of slots for which the bound by crossings is computed next. Candidates
    /// are the numbers of the header's sequence from `slots` to `last`. Returns the greatest
    /// candidate at which the bound probably proves that `slots` is not the fastest number of
    /// slots.
    fn excluding_number(&self, slots: u64, last: u64) -> Result<u64, UnitError> {
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
            let time = self.link_time(number, self.expected_links(number))?;
            goal = Some(goal.map_or(time, |goal| goal.min(time)));
        }
        let mut excluding_number = first;
        for number in from(first) {
            let is_new = !self.crossed.contains_key(&number);
            let time = self.link_time(slots, self.expected_links(number))?;
            if is_new && goal.is_some_and(|goal| time >= goal) {
                excluding_number = number;
            }
        }
        Ok(excluding_number)
    }

    /// Returns the lightpaths whose links decide the bound `time` for plans with `slots` slots.
    fn counted_by(&self, slots: u64, time: Time) -> Result<CountedBy, UnitError> {
        let ranks = self.problem.ranks;
        let along_trees = self.link_time(slots, cost(ranks, slots) + u64::from(ranks - 1))?;
        let priced = self.priced.get(&slots).copied().unwrap_or_default();
        Ok(match time > along_trees.max(priced) {
            true => CountedBy::Crossings,
            false => CountedBy::Trees,
        })
    }

    fn cross(&mut self, number: u64) {
        let ranks = self.problem.ranks;
        let links = crossings::links(ranks, self.problem.intake, number);
        self.ratio = (links * 1024 / guess_links(ranks, number)).min(1024);
        self.crossed.insert(number, links);
    }
}

/// Returns the minimum time over all numbers of slots, and the lightpaths that decide this time.
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
        // No plan with `next` or more slots is faster than this time.
        let floor = search.link_time(next, ranks - 1)?;
        let top = open.peek().map(|Reverse((time, _, _))| *time);
        if top.is_none_or(|top| floor < top) {
            if next * ranks > MAX_WORK {
                return Ok((floor, CountedBy::Trees));
            }
            let time = search.link_time(next, search.quick_links(next))?;
            open.push(Reverse((time, next, Progress::Quick)));
            next += 1;
            continue;
        }
        let Some(Reverse((time, slots, progress))) = open.pop() else {
            continue;
        };
        let better = search.link_time(slots, search.computed_links(slots))?;
        if better > time {
            open.push(Reverse((better, slots, progress)));
            continue;
        }
        match progress {
            Progress::Quick if !crossings::is_searched(problem.ranks, round_up(slots)) => {
                open.push(Reverse((time, slots, Progress::Covered)));
            }
            Progress::Quick => {
                let number = search.excluding_number(slots, next.max(round_up(slots)))?;
                if !search.crossed.contains_key(&number) {
                    search.cross(number);
                }
                let progress = if number == round_up(slots) {
                    Progress::Covered
                } else {
                    progress
                };
                open.push(Reverse((time, slots, progress)));
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

    /// The result of the search lies between two minimum times: by the quick bounds alone, and by
    /// all bounds.
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
                    let trees = cost(ranks, slots) + u64::from(ranks - 1);
                    1000 * slots + link * trees.max(crossings::closed_form(ranks, slots))
                });
                let all = slots().map(|slots| {
                    let of_more =
                        (slots..=u64::from(ranks)).map(|more| crossings::links(ranks, 16, more));
                    let trees = cost(ranks, slots) + u64::from(ranks - 1);
                    1000 * slots + link * of_more.max().unwrap_or(0).max(trees)
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
