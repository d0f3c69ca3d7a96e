//! Sums per line and rank.

use std::ops::Range;

use crate::fabric::circuits::{Lines, Message};
use crate::outcome::{LinkColumns, RankColumns};
use crate::simulate::SimulationError;
use crate::units::{Bytes, Time, UnitError};

/// Adds an amount on a range of lines.
#[inline]
fn change(column: &mut [u128], range: &Range<u32>, amount: u128) {
    let (start, end) = (range.start as usize, range.end as usize);
    column[start] = column[start].wrapping_add(amount);
    column[end] = column[end].wrapping_sub(amount);
}

/// Sums per line and rank. Lines are kept as changes from each to the next, so that what occupies many
/// costs as much as what occupies one.
pub(super) struct Ledger {
    lines: Lines,
    busy: Vec<u128>,
    crossed: Vec<u128>,
    ranks: RankColumns,
}

impl Ledger {
    pub(super) fn new(lines: Lines) -> Ledger {
        let ranks = lines.ranks as usize;
        let changes = lines.rows as usize * ranks + 1;
        Ledger {
            lines,
            busy: vec![0; changes],
            crossed: vec![0; changes],
            ranks: RankColumns {
                sent: vec![0; ranks],
                received: vec![0; ranks],
                finish: vec![Time::ZERO; ranks],
            },
        }
    }

    /// Enters what a message carries; on lines and from its sender where it has light of its own.
    #[inline]
    pub(super) fn enter(&mut self, message: &Message) -> Result<(), UnitError> {
        let received = &mut self.ranks.received[message.receiver as usize];
        *received = Bytes::new(*received).plus(message.bytes)?.get();
        if !message.leads {
            return Ok(());
        }
        let (busy, bytes) = (message.busy.ps().into(), message.bytes.get().into());
        for range in message.lines.iter().filter(|range| !range.is_empty()) {
            change(&mut self.busy, range, busy);
            change(&mut self.crossed, range, bytes);
        }
        let sent = &mut self.ranks.sent[message.hop.from as usize];
        *sent = Bytes::new(*sent).plus(message.bytes)?.get();
        Ok(())
    }

    /// A message has arrived.
    #[inline]
    pub(super) fn finish(&mut self, message: &Message, end: Time) {
        for rank in [message.hop.from, message.receiver] {
            let finish = &mut self.ranks.finish[rank as usize];
            *finish = (*finish).max(end);
        }
    }

    /// Sums the changes up.
    pub(super) fn close(self) -> Result<(LinkColumns, RankColumns), SimulationError> {
        let sum = |what: &str, changes: Vec<u128>| -> Result<Vec<u64>, UnitError> {
            let lines = changes.len() - 1;
            let mut level = 0u128;
            let levels = changes.into_iter().take(lines).map(|change| {
                level = level.wrapping_add(change);
                level
            });
            let overflow = |_| UnitError::Overflow {
                what: format!("the {what} of a link"),
                smallest: "picoseconds or bytes",
            };
            levels
                .map(|level| u64::try_from(level).map_err(overflow))
                .collect()
        };
        let busy = sum("busy time", self.busy)?;
        let links = LinkColumns {
            busy: busy.into_iter().map(Time::from_ps).collect(),
            bytes: sum("traffic", self.crossed)?,
            shape: vec![
                (self.lines.row, self.lines.rows as usize),
                ("rank", self.lines.ranks as usize),
            ],
        };
        Ok((links, self.ranks))
    }
}
