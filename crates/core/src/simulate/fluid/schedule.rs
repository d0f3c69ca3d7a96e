//! The steps and messages of a schedule.

use rustc_hash::FxHashMap;

use super::program::{StepFlow, Steps};
use crate::interrupt;
use crate::plan::NamedRoutes;
use crate::schedule::{Action, Schedule, StepColumns};
use crate::units::{Bytes, UnitError};

/// Chunks of unequal sizes whose cuts are kept in a table, at most: 8 MB.
const MOST_CUTS: usize = 1 << 20;

/// The transfers of a schedule, for a collective of some size.
pub(super) struct ScheduledSteps<'a> {
    schedule: &'a Schedule,
    routes: &'a NamedRoutes,
    size: Bytes,
    /// The bytes of every chunk, if they are all of one size.
    uniform: Option<u64>,
    /// The bytes before each chunk, and before the end. Empty where chunks are many, or all equal.
    cuts: Vec<u64>,
}

impl<'a> ScheduledSteps<'a> {
    /// # Errors
    /// A size beyond 64 bits.
    pub(super) fn new(
        schedule: &'a Schedule,
        routes: &'a NamedRoutes,
        size: Bytes,
    ) -> Result<ScheduledSteps<'a>, UnitError> {
        let collective = &schedule.collective;
        let uniform = collective.uniform_chunk_bytes(size).map(Bytes::get);
        let chunks = collective.chunks();
        let mut cuts = Vec::new();
        // A table is worth it where most of it is looked up.
        if uniform.is_none() && (chunks as usize) < MOST_CUTS.min(schedule.len()) {
            for chunk in 0..=chunks {
                cuts.push(collective.range_bytes(size, 0, chunk)?.get());
            }
        }
        Ok(ScheduledSteps {
            schedule,
            routes,
            size,
            uniform,
            cuts,
        })
    }

    fn range_bytes(&self, chunk: u32, count: u32) -> Result<u64, UnitError> {
        if let Some(bytes) = self.uniform
            && let Some(bytes) = bytes.checked_mul(u64::from(count))
        {
            return Ok(bytes);
        }
        let end = chunk as usize + count as usize;
        if let Some(end) = self.cuts.get(end) {
            return Ok(end - self.cuts[chunk as usize]);
        }
        let collective = &self.schedule.collective;
        Ok(collective.range_bytes(self.size, chunk, count)?.get())
    }
}

impl Steps for ScheduledSteps<'_> {
    fn steps(&self) -> usize {
        self.schedule.steps()
    }

    fn step(&self, step: usize, flows: &mut Vec<StepFlow>) -> Result<(), UnitError> {
        let mut messages = StepMessages::of(self.schedule, self.routes, step);
        let before = flows.len();
        for (place, transfer) in self.schedule.columns(step).transfers().enumerate() {
            interrupt::check();
            let bytes = self.range_bytes(transfer.chunk, transfer.count)?;
            if let Some(message) = messages.earlier(place) {
                let whole: &mut u64 = &mut flows[before + message].bytes;
                *whole = whole
                    .checked_add(bytes)
                    .ok_or_else(|| UnitError::Overflow {
                        what: format!("a message of {whole} and {bytes} bytes"),
                        smallest: "bytes",
                    })?;
                continue;
            }
            flows.push(StepFlow {
                source: transfer.source,
                destination: transfer.destination,
                bytes,
            });
        }
        Ok(())
    }

    fn names_routes(&self) -> bool {
        !self.routes.is_empty()
    }

    fn routes(&self, step: usize, routes: &mut Vec<u32>) {
        if self.names_routes() {
            let firsts = StepMessages::firsts(self.schedule, self.routes, step);
            routes.extend(firsts.map(|transfer| self.routes.number(transfer)));
        }
    }
}

/// The messages of a step: its transfers with the same source, destination, action and route are one, which
/// takes the place of the first of them.
pub(super) struct StepMessages<'a> {
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
    pub(super) fn of(
        schedule: &'a Schedule,
        routes: &'a NamedRoutes,
        step: usize,
    ) -> StepMessages<'a> {
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

    /// The first transfer of each message of a step, as indices.
    pub(super) fn firsts(
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
    pub(super) fn earlier(&mut self, place: usize) -> Option<usize> {
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
