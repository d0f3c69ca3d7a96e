//! What a message costs: the models that a replay runs over.
//!
//! A message begins on the network, leaves the sender and arrives. With latency L, gap g between messages and G
//! per byte (Alexandrov, Ionescu, Schauser and Scheiman, LogGP, SPAA 1995):
//!
//! * [`Zero`]: it arrives when it begins.
//! * [`Hockney`]: it arrives L + n G after it begins, however many others are under way (Hockney, The
//!   communication challenge for MPP, Parallel Computing 1994).
//! * [`LogGp`]: each rank sends one message at a time and receives one at a time. A message begins when
//!   the sender's port is free and holds it for max(g, n G); its head is there L later and waits until
//!   the receiver's port is free, which it then holds for max(g, n G); n G after that it has arrived.

use opticoll_base::units::{Rate, Time};
use opticoll_simulate::SimulationError;
use opticoll_simulate::live::{Live, MessageTimes, ReadyMessage};

/// A network that costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Zero;

impl Live for Zero {
    fn send(
        &mut self,
        _: u32,
        message: ReadyMessage,
    ) -> Result<Option<MessageTimes>, SimulationError> {
        Ok(Some(MessageTimes {
            leaves: message.ready,
            arrives: message.ready,
        }))
    }
}

/// Latency and bandwidth, without contention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hockney {
    /// L, from the first byte sent to the first byte received.
    pub latency: Time,
    /// 1 / G.
    pub rate: Rate,
}

impl Live for Hockney {
    fn send(
        &mut self,
        _: u32,
        message: ReadyMessage,
    ) -> Result<Option<MessageTimes>, SimulationError> {
        let leaves = message.ready.plus(self.rate.transmission(message.bytes)?)?;
        Ok(Some(MessageTimes {
            leaves,
            arrives: leaves.plus(self.latency)?,
        }))
    }
}

/// Latency, gap and gap per byte, with one sending and one receiving port at each rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogGp {
    /// L, from the first byte sent to the first byte received.
    pub latency: Time,
    /// g, at least between the begins of two messages at a port.
    pub gap: Time,
    /// 1 / G.
    pub rate: Rate,
    /// When each rank's sending and receiving port is free.
    free: Vec<[Time; 2]>,
}

impl LogGp {
    /// A model without a gap.
    pub fn new(ranks: u32, latency: Time, rate: Rate) -> LogGp {
        LogGp {
            latency,
            gap: Time::ZERO,
            rate,
            free: vec![[Time::ZERO; 2]; ranks as usize],
        }
    }
}

impl Live for LogGp {
    fn send(
        &mut self,
        _: u32,
        message: ReadyMessage,
    ) -> Result<Option<MessageTimes>, SimulationError> {
        let stream = self.rate.transmission(message.bytes)?;
        let held = stream.max(self.gap);
        let sending = &mut self.free[message.source as usize][0];
        let begin = message.ready.max(*sending);
        *sending = begin.plus(held)?;
        let receiving = &mut self.free[message.destination as usize][1];
        let head = begin.plus(self.latency)?.max(*receiving);
        *receiving = head.plus(held)?;
        Ok(Some(MessageTimes {
            leaves: begin.plus(stream)?,
            arrives: head.plus(stream)?,
        }))
    }
}
