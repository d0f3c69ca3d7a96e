//! Busy times and bytes, summed per line (a link, or a port on fabrics without links) and per rank.

use std::ops::Range;

use super::block::Message;
use crate::SimulationError;
use crate::outcome::{LinkColumns, RankColumns};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::Hop;
use opticoll_fabric::fabric::circuits::{Circuit, Lines};

/// Sums per line (link or port) and per rank. For lines, the ledger stores the differences between
/// the sums of neighbouring lines, so that the cost of adding a circuit does not depend on its
/// number of lines.
pub(super) struct LineLedger {
    lines: Lines,
    changes: Vec<LineUse>,
    ranks: Vec<RankUse>,
    occupied: u64,
}

/// Sums over several messages on one circuit.
pub(super) struct Sums {
    pub(super) messages: u64,
    /// Picoseconds for which the messages occupy the lines of the circuit.
    pub(super) held: u128,
    pub(super) bytes: u128,
}

/// Busy time (in picoseconds) and number of bytes of a line (link or port), minus the same two
/// numbers of the previous line.
#[derive(Clone, Copy, Default)]
struct LineUse {
    busy: u128,
    bytes: u128,
}

#[derive(Clone, Copy, Default)]
struct RankUse {
    sent: Bytes,
    received: Bytes,
    finish: Time,
}

impl LineLedger {
    pub(super) fn new(lines: Lines, ranks: u32) -> LineLedger {
        LineLedger {
            lines,
            changes: vec![LineUse::default(); lines.count() + 1],
            ranks: vec![RankUse::default(); ranks as usize],
            occupied: 0,
        }
    }

    /// Adds a message that arrives at `end`. If `leads` is false, the message shares the light of
    /// another message, and only the receiver's bytes are added.
    #[inline]
    pub(super) fn add(
        &mut self,
        hop: &Hop,
        message: &Message,
        circuit: &Circuit,
        leads: bool,
        end: Time,
    ) -> Result<(), UnitError> {
        let receiver = &mut self.ranks[hop.to as usize];
        receiver.received = receiver.received.plus(message.bytes)?;
        receiver.finish = receiver.finish.max(end);
        let sender = &mut self.ranks[hop.from as usize];
        sender.finish = sender.finish.max(end);
        if !leads {
            return Ok(());
        }
        sender.sent = sender.sent.plus(message.bytes)?;
        let held = match self.lines.held_for_delay {
            true => circuit.delay.ps() + message.sending.ps(),
            false => message.sending.ps(),
        };
        let sums = Sums {
            messages: 1,
            held: held.into(),
            bytes: message.bytes.get().into(),
        };
        for lines in circuit
            .lines
            .line_ranges()
            .filter(|lines| !lines.is_empty())
        {
            self.occupy(lines, &sums);
        }
        Ok(())
    }

    /// Adds several messages over one circuit, given their sums. The last message arrives at `end`.
    pub(super) fn add_messages(
        &mut self,
        hop: &Hop,
        circuit: &Circuit,
        sums: &Sums,
        end: Time,
    ) -> Result<(), UnitError> {
        let bytes = u64::try_from(sums.bytes).map_err(|_| UnitError::Overflow {
            what: "the bytes of a rank".into(),
            smallest: "bytes",
        })?;
        for rank in [hop.from, hop.to] {
            let finish = &mut self.ranks[rank as usize].finish;
            *finish = end.max(*finish);
        }
        let sent = &mut self.ranks[hop.from as usize].sent;
        *sent = sent.plus(Bytes::new(bytes))?;
        let received = &mut self.ranks[hop.to as usize].received;
        *received = received.plus(Bytes::new(bytes))?;
        for lines in circuit.lines.line_ranges() {
            self.occupy(lines, sums);
        }
        Ok(())
    }

    #[inline(always)]
    fn occupy(&mut self, lines: &Range<u32>, sums: &Sums) {
        let start = &mut self.changes[lines.start as usize];
        start.busy = start.busy.wrapping_add(sums.held);
        start.bytes = start.bytes.wrapping_add(sums.bytes);
        let end = &mut self.changes[lines.end as usize];
        end.busy = end.busy.wrapping_sub(sums.held);
        end.bytes = end.bytes.wrapping_sub(sums.bytes);
        self.occupied += u64::from(lines.end - lines.start) * sums.messages;
    }

    /// Returns the number of occupied lines (links or ports), summed over circuits.
    pub(super) fn occupied(&self) -> u64 {
        self.occupied
    }

    pub(super) fn close(self) -> Result<(LinkColumns, RankColumns), SimulationError> {
        let sum = |what: &str, read: fn(&LineUse) -> u128| -> Result<Vec<u64>, UnitError> {
            let lines = self.changes.len() - 1;
            let mut level = 0u128;
            let levels = self.changes[..lines].iter().map(|change| {
                level = level.wrapping_add(read(change));
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
        let busy = sum("busy time", |line| line.busy)?;
        let shape = self.lines.shape.map(|(name, count)| (name, count as usize));
        let links = LinkColumns {
            busy: busy.into_iter().map(Time::from_ps).collect(),
            bytes: sum("traffic", |line| line.bytes)?,
            shape: shape.to_vec(),
        };
        let ranks = RankColumns {
            sent: self.ranks.iter().map(|rank| rank.sent.get()).collect(),
            received: self.ranks.iter().map(|rank| rank.received.get()).collect(),
            finish: self.ranks.iter().map(|rank| rank.finish).collect(),
        };
        Ok((links, ranks))
    }
}
