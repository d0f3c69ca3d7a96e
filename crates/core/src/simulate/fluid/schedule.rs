//! The steps and messages of a schedule.

use rustc_hash::FxHashMap;

use super::steps::{StepFlow, Steps};
use crate::schedule::{Action, Schedule, StepColumns};
use crate::units::{Bytes, UnitError};

/// The transfers of a schedule, for a collective of some size.
pub(super) struct ScheduledSteps<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) size: Bytes,
}

impl Steps for ScheduledSteps<'_> {
    fn steps(&self) -> usize {
        self.schedule.steps()
    }

    fn step(&self, step: usize, flows: &mut Vec<StepFlow>) -> Result<(), UnitError> {
        let collective = &self.schedule.collective;
        let uniform = collective.uniform_chunk_bytes(self.size);
        let mut messages = Messages::of(self.schedule, step);
        let before = flows.len();
        for (place, transfer) in self.schedule.columns(step).transfers().enumerate() {
            let count = transfer.count;
            let known = uniform.and_then(|chunk| chunk.get().checked_mul(u64::from(count)));
            let bytes = match known {
                Some(bytes) => bytes,
                None => collective
                    .range_bytes(self.size, transfer.chunk, count)?
                    .get(),
            };
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
}

/// The messages of a step: its transfers with the same source, destination and action are one, which
/// takes the place of the first of them.
pub(super) struct Messages<'a> {
    step: StepColumns<'a>,
    /// The number of each message by source, destination and action; none where no rank sends twice.
    numbers: Option<FxHashMap<(u32, u32, Action), usize>>,
    count: usize,
}

impl<'a> Messages<'a> {
    pub(super) fn of(schedule: &'a Schedule, step: usize) -> Messages<'a> {
        let mut sends = vec![false; schedule.collective.ranks() as usize];
        let step = schedule.columns(step);
        let again = |&rank: &u32| {
            let sends = sends.get_mut(rank as usize);
            sends.is_some_and(|sends| std::mem::replace(sends, true))
        };
        let numbers = step.source().iter().any(again).then(FxHashMap::default);
        Messages {
            step,
            numbers,
            count: 0,
        }
    }

    /// The first transfer of each message of a step, as indices.
    pub(super) fn firsts(schedule: &'a Schedule, step: usize) -> impl Iterator<Item = usize> + 'a {
        let mut messages = Messages::of(schedule, step);
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
