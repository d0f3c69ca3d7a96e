//! Which transfers of a step are one message.

use rustc_hash::FxHashMap;

use super::NamedRoutes;
use crate::schedule::{Action, Schedule, StepColumns};

/// The messages of a step: its transfers with the same source, destination, action and route are one, which
/// takes the place of the first of them.
pub struct StepMessages<'a> {
    step: StepColumns<'a>,
    routes: &'a NamedRoutes,
    /// The first transfer of the step.
    first: usize,
    /// The number of each message by source, destination, action and route; none where no rank sends twice, or
    /// none twice to another.
    numbers: Option<FxHashMap<(u32, u32, Action, u32), usize>>,
    count: usize,
}

impl<'a> StepMessages<'a> {
    /// The messages of one step.
    pub fn of(schedule: &'a Schedule, routes: &'a NamedRoutes, step: usize) -> StepMessages<'a> {
        let ranks = schedule.collective.ranks() as usize;
        let first = schedule.step(step).start;
        let step = schedule.columns(step);
        let mut sends = vec![false; ranks];
        let again = |&rank: &u32| {
            let sends = sends.get_mut(rank as usize);
            sends.is_some_and(|sends| std::mem::replace(sends, true))
        };
        let repeats = step.source().iter().any(again) && !has_no_pair_twice(step, ranks);
        let numbers = repeats.then(FxHashMap::default);
        StepMessages {
            step,
            routes,
            first,
            numbers,
            count: 0,
        }
    }

    /// Whether two transfers of the step may have the same ends.
    pub fn may_repeat(&self) -> bool {
        self.numbers.is_some()
    }

    /// The first transfer of each message of a step, as indices.
    pub fn firsts(
        schedule: &'a Schedule,
        routes: &'a NamedRoutes,
        step: usize,
    ) -> impl Iterator<Item = usize> + 'a {
        let mut messages = StepMessages::of(schedule, routes, step);
        let transfers = schedule.step(step).enumerate();
        transfers.filter_map(move |(place, index)| {
            let begins = messages.earlier(place).is_none();
            begins.then_some(index)
        })
    }

    /// The number, within the step, of the message that the transfer at a place of the step joins; none
    /// where it begins the next one. The transfers of the step must come in order.
    pub fn earlier(&mut self, place: usize) -> Option<usize> {
        let next = self.count;
        if let Some(numbers) = &mut self.numbers {
            let key = (
                self.step.source()[place],
                self.step.destination()[place],
                self.step.action()[place],
                self.routes.number(self.first + place),
            );
            let number = *numbers.entry(key).or_insert(next);
            if number < next {
                return Some(number);
            }
        }
        self.count += 1;
        None
    }
}

/// Whether no two transfers of a step have the same ends; where pairs of ranks are far more than transfers
/// that is not looked at.
fn has_no_pair_twice(step: StepColumns<'_>, ranks: usize) -> bool {
    let pairs = ranks * ranks;
    if pairs / 64 > step.len() {
        return false;
    }
    let mut seen = vec![0u64; pairs.div_ceil(64)];
    step.source()
        .iter()
        .zip(step.destination())
        .all(|(&source, &destination)| {
            let pair = source as usize * ranks + destination as usize;
            let bit = 1 << (pair % 64);
            let word = seen.get_mut(pair / 64);
            word.is_some_and(|word| std::mem::replace(word, *word | bit) & bit == 0)
        })
}
