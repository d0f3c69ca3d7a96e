//! Messages: transfers of a step that are sent as one.

use rustc_hash::FxHashMap;

use super::NamedRoutes;
use crate::schedule::{Action, Schedule, StepColumns};

/// Messages of a step. Transfers with the same source, destination, action and route are one
/// message, which has the place of the first of them.
pub struct StepMessages<'a> {
    step: StepColumns<'a>,
    routes: &'a NamedRoutes,
    /// Index of the first transfer of the step.
    first: usize,
    /// Number of each message by source, destination, action and route. `None` if every transfer is
    /// a message of its own: no rank sends twice, or none sends twice to the same rank.
    numbers: Option<FxHashMap<(u32, u32, Action, u32), usize>>,
    count: usize,
}

impl<'a> StepMessages<'a> {
    /// Returns the messages of one step.
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

    /// Returns whether two transfers of the step may have the same ends.
    pub fn may_repeat(&self) -> bool {
        self.numbers.is_some()
    }

    /// Returns the index of the first transfer of each message of a step.
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

    /// Returns the number, within the step, of the earlier message that the transfer at `place` of
    /// the step joins; `None` if the transfer begins the next message. The transfers of the step
    /// must come in order.
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

/// Returns whether no two transfers of a step have the same ends. If pairs of ranks far outnumber
/// the transfers, this is not examined and the result is false.
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
