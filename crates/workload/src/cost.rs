//! Cost models of messages for replays.
//!
//! The models use the latency L (seconds), the gap g between two messages at a port (seconds) and
//! the time per byte G (seconds per byte); n is the size of a message in bytes (Alexandrov,
//! Ionescu, Schauser and Scheiman, LogGP, SPAA 1995):
//!
//! * [`Zero`]: a message arrives at the moment when it starts.
//! * [`Hockney`]: a message arrives L + n G after its start, regardless of other messages (Hockney,
//!   The communication challenge for MPP, Parallel Computing 1994).
//! * [`LogGp`]: each network interface of a rank sends one message at a time and receives one
//!   message at a time. A message starts when the sender's port is free and occupies this port for
//!   max(g, n G). The first byte reaches the receiver L after the start and waits until the
//!   receiver's port is free. From this moment, the message occupies the receiver's port for
//!   max(g, n G), and arrives after n G.

use opticoll_base::units::{Rate, Time};
use opticoll_simulate::SimulationError;
use opticoll_simulate::live::{Live, MessageTimes, ReadyMessage};

/// Cost model in which messages take no time.
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

/// Cost model with latency and rate, without contention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hockney {
    /// Latency L: time from the first byte sent to the first byte received.
    pub latency: Time,
    /// Rate of a message, 1 / G.
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

/// Cost model with latency, gap and rate. Each network interface of a rank has one sending port and
/// one receiving port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogGp {
    /// Latency L: time from the first byte sent to the first byte received.
    pub latency: Time,
    /// Gap g: minimum time between the starts of two messages at a port.
    pub gap: Time,
    /// Rate of a port, 1 / G.
    pub rate: Rate,
    ranks: u32,
    /// Times at which the sending port and the receiving port of each interface become free,
    /// indexed by interface and rank. Ports beyond the end are free.
    free: Vec<[Time; 2]>,
}

impl LogGp {
    /// Creates a model with gap 0.
    pub fn new(ranks: u32, latency: Time, rate: Rate) -> LogGp {
        LogGp {
            latency,
            gap: Time::ZERO,
            rate,
            ranks,
            free: vec![[Time::ZERO; 2]; ranks as usize],
        }
    }

    /// Returns the time at which the sending port (0) or receiving port (1) of a rank's interface
    /// becomes free.
    fn free(&mut self, rank: u32, interface: u8, port: usize) -> &mut Time {
        let place = interface as usize * self.ranks as usize + rank as usize;
        if place >= self.free.len() {
            self.free.resize(place + 1, [Time::ZERO; 2]);
        }
        &mut self.free[place][port]
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
        let [own, other] = message.interfaces;
        let latency = self.latency;
        let sending = self.free(message.source, own, 0);
        let begin = message.ready.max(*sending);
        *sending = begin.plus(held)?;
        let receiving = self.free(message.destination, other, 1);
        let head = begin.plus(latency)?.max(*receiving);
        *receiving = head.plus(held)?;
        Ok(Some(MessageTimes {
            leaves: begin.plus(stream)?,
            arrives: head.plus(stream)?,
        }))
    }
}
