//! Messages of the steps of an algorithm.

use rustc_hash::FxHashMap;

use opticoll_base::units::{Bytes, UnitError};
use opticoll_plan::schedule::Schedule;

/// All data that one rank sends another rank in a step, with the indices of the transfers.
#[derive(Debug, Clone)]
pub(super) struct StepMessage {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) bytes: Bytes,
    pub(super) transfers: Vec<u32>,
}

#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) ranks: u32,
    pub(super) messages: Vec<StepMessage>,
    /// (shift, bytes) if every rank u sends one message of `bytes` bytes to rank u + shift,
    /// otherwise `None`.
    pub(super) shift: Option<(u32, Bytes)>,
}

impl Step {
    pub(super) fn of(
        schedule: &Schedule,
        step: usize,
        size: Bytes,
        ranks: u32,
    ) -> Result<Step, UnitError> {
        let mut messages: Vec<StepMessage> = Vec::new();
        let mut places: FxHashMap<(u32, u32), usize> = FxHashMap::default();
        for transfer in schedule.step(step) {
            let moved = schedule.transfer(transfer);
            let bytes = schedule
                .collective
                .range_bytes(size, moved.chunk, moved.count)?;
            let ends = (moved.source, moved.destination);
            let place = *places.entry(ends).or_insert(messages.len());
            if place == messages.len() {
                messages.push(StepMessage {
                    from: ends.0,
                    to: ends.1,
                    bytes: Bytes::new(0),
                    transfers: Vec::new(),
                });
            }
            let message = &mut messages[place];
            message.bytes = message.bytes.plus(bytes)?;
            message.transfers.push(transfer as u32);
        }
        messages.sort_by_key(|message| (message.from, message.to));
        let shift = messages.first().map(|message| {
            let after = (message.to + ranks - message.from) % ranks;
            (after, message.bytes)
        });
        let is_shift = |(after, bytes): &(u32, Bytes)| {
            let mut ranked_messages = (0..ranks).zip(&messages);
            messages.len() == ranks as usize
                && ranked_messages.all(|(rank, message)| {
                    message.from == rank
                        && message.to == (rank + after) % ranks
                        && message.bytes == *bytes
                })
        };
        Ok(Step {
            ranks,
            shift: shift.filter(is_shift),
            messages,
        })
    }
}
