//! Messages: transfers of a step that are sent together.

use rustc_hash::FxHashMap;

use super::NamedRoutes;
use crate::schedule::{Action, Schedule, StepColumns};

/// Messages of a step. Transfers of the step with the same source, destination, action and route
/// are one message. A multicast and an aggregation are one message each, with several destinations
/// or several sources. A message has the position of its first transfer.
pub struct StepMessages<'a> {
    step: StepColumns<'a>,
    routes: &'a NamedRoutes,
    /// Index of the first transfer of the step in the schedule.
    first: usize,
    /// Index of each message in the step. `None` if every transfer is a message of its own, because
    /// no two transfers of the step have the same source and destination, and none is in-network.
    numbers: Option<FxHashMap<Key, usize>>,
    count: usize,
}

/// Transfers with the same key are one message: (source, destination, action, index of the route,
/// first chunk, number of chunks). [`ANY`] replaces each number that need not be the same.
type Key = (u32, u32, Action, u32, u32, u32);

/// Marker of a number that differs between the transfers of a message.
const ANY: u32 = u32::MAX;

impl<'a> StepMessages<'a> {
    /// Returns the messages of `step`.
    pub fn of(schedule: &'a Schedule, routes: &'a NamedRoutes, step: usize) -> StepMessages<'a> {
        let ranks = schedule.collective.ranks() as usize;
        let first = schedule.step(step).start;
        let step = schedule.columns(step);
        let mut has_sent = vec![false; ranks];
        let is_repeated = |&rank: &u32| {
            let has_sent = has_sent.get_mut(rank as usize);
            has_sent.is_some_and(|has_sent| std::mem::replace(has_sent, true))
        };
        let is_in_network = step.action().iter().any(|action| action.is_in_network());
        let repeats = is_in_network
            || step.source().iter().any(is_repeated) && !has_no_pair_twice(step, ranks);
        let numbers = repeats.then(FxHashMap::default);
        StepMessages {
            step,
            routes,
            first,
            numbers,
            count: 0,
        }
    }

    /// Returns whether two transfers of the step may have the same source and destination.
    pub fn may_repeat(&self) -> bool {
        self.numbers.is_some()
    }

    /// Returns the index, in the schedule, of the first transfer of each message of `step`.
    pub fn firsts(
        schedule: &'a Schedule,
        routes: &'a NamedRoutes,
        step: usize,
    ) -> impl Iterator<Item = usize> + 'a {
        let mut messages = StepMessages::of(schedule, routes, step);
        let transfers = schedule.step(step).enumerate();
        transfers.filter_map(move |(position, index)| {
            let is_first = messages.earlier(position).is_none();
            is_first.then_some(index)
        })
    }

    /// Assigns a message to the transfer at position `index` of the step. Returns the index, within
    /// the step, of an earlier message to which the transfer belongs. `None` if the transfer begins
    /// the next message. Must be called for all transfers of the step in order.
    pub fn earlier(&mut self, index: usize) -> Option<usize> {
        let next = self.count;
        if let Some(numbers) = &mut self.numbers {
            let (source, destination) = (self.step.source()[index], self.step.destination()[index]);
            let (chunk, count) = (self.step.chunk(index), self.step.count()[index]);
            let key = match self.step.action()[index] {
                action @ (Action::Copy | Action::Reduce) => {
                    let route = self.routes.number(self.first + index);
                    (source, destination, action, route, ANY, ANY)
                }
                action @ Action::Multicast => (source, ANY, action, ANY, chunk, count),
                action @ Action::Aggregate => (ANY, destination, action, ANY, chunk, count),
            };
            let number = *numbers.entry(key).or_insert(next);
            if number < next {
                return Some(number);
            }
        }
        self.count += 1;
        None
    }
}

/// Returns whether no two transfers of a step have the same source and destination. Returns false
/// without a check if pairs of ranks far outnumber the transfers.
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
