//! What a message costs: the models that a replay runs over.
//!
//! A message occupies its sender's processor for an overhead o, begins on the network, leaves the sender
//! and arrives; its receive then occupies the receiver's processor for o. With latency L, gap g between
//! messages and G per byte (Alexandrov, Ionescu, Schauser and Scheiman, LogGP, SPAA 1995):
//!
//! * [`Zero`]: it arrives when it begins.
//! * [`Hockney`]: it arrives L + n G after it begins, however many others are under way (Hockney, The
//!   communication challenge for MPP, Parallel Computing 1994).
//! * [`LogGp`]: each rank sends one message at a time and receives one at a time. A message begins when
//!   the sender's port is free and holds it for max(g, n G); its head is there L later and waits until
//!   the receiver's port is free, which it then holds for max(g, n G); n G after that it has arrived.

use crate::units::{Bytes, Rate, Time, UnitError};

/// A message that is ready to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// The sending rank.
    pub source: u32,
    /// The receiving rank.
    pub destination: u32,
    /// Its size.
    pub bytes: Bytes,
    /// When it is ready.
    pub ready: Time,
}

impl Message {
    /// Its delivery, if its rank sends it to itself: at once.
    pub(super) fn to_itself(self) -> Option<Delivery> {
        (self.source == self.destination).then_some(Delivery {
            leaves: self.ready,
            arrives: self.ready,
        })
    }
}

/// When a message has left and when it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// When its last byte has left the sender.
    pub leaves: Time,
    /// When its last byte has arrived.
    pub arrives: Time,
}

/// The cost of point-to-point messages.
pub trait CostModel {
    /// The time that a processor spends on sending or receiving a message.
    fn overhead(&self) -> Time {
        Time::ZERO
    }

    /// Whether a message leaves at once and its send ends with the overhead (eager). Otherwise it leaves
    /// when its receive has begun too, and its send ends when the last byte has left (rendezvous).
    fn is_eager(&self, _bytes: Bytes) -> bool {
        true
    }

    /// Sends a message. Calls come in the order of `ready`.
    ///
    /// # Errors
    /// A time that leaves 64 bits.
    fn send(&mut self, message: Message) -> Result<Delivery, UnitError>;
}

/// A network that costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Zero;

impl CostModel for Zero {
    fn send(&mut self, message: Message) -> Result<Delivery, UnitError> {
        Ok(Delivery {
            leaves: message.ready,
            arrives: message.ready,
        })
    }
}

/// Latency and bandwidth, without contention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hockney {
    /// L, from the first byte sent to the first byte received.
    pub latency: Time,
    /// 1 / G.
    pub rate: Rate,
    /// The largest eager message; every message is eager where none is given.
    pub eager_limit: Option<Bytes>,
}

impl CostModel for Hockney {
    fn is_eager(&self, bytes: Bytes) -> bool {
        self.eager_limit.is_none_or(|limit| bytes <= limit)
    }

    fn send(&mut self, message: Message) -> Result<Delivery, UnitError> {
        let leaves = message.ready.plus(self.rate.transmission(message.bytes)?)?;
        Ok(Delivery {
            leaves,
            arrives: leaves.plus(self.latency)?,
        })
    }
}

/// Latency, overhead, gap and gap per byte, with one sending and one receiving port at each rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogGp {
    /// L, from the first byte sent to the first byte received.
    pub latency: Time,
    /// o, of a processor for each message sent and each received.
    pub overhead: Time,
    /// g, at least between the begins of two messages at a port.
    pub gap: Time,
    /// 1 / G.
    pub rate: Rate,
    /// The largest eager message; every message is eager where none is given.
    pub eager_limit: Option<Bytes>,
    /// When each rank's sending and receiving port is free.
    free: Vec<[Time; 2]>,
}

impl LogGp {
    /// A model in which all messages are eager and overhead and gap are zero.
    pub fn new(ranks: u32, latency: Time, rate: Rate) -> LogGp {
        LogGp {
            latency,
            overhead: Time::ZERO,
            gap: Time::ZERO,
            rate,
            eager_limit: None,
            free: vec![[Time::ZERO; 2]; ranks as usize],
        }
    }
}

impl CostModel for LogGp {
    fn overhead(&self) -> Time {
        self.overhead
    }

    fn is_eager(&self, bytes: Bytes) -> bool {
        self.eager_limit.is_none_or(|limit| bytes <= limit)
    }

    fn send(&mut self, message: Message) -> Result<Delivery, UnitError> {
        let stream = self.rate.transmission(message.bytes)?;
        let held = stream.max(self.gap);
        let sending = &mut self.free[message.source as usize][0];
        let begin = message.ready.max(*sending);
        *sending = begin.plus(held)?;
        let receiving = &mut self.free[message.destination as usize][1];
        let head = begin.plus(self.latency)?.max(*receiving);
        *receiving = head.plus(held)?;
        Ok(Delivery {
            leaves: begin.plus(stream)?,
            arrives: head.plus(stream)?,
        })
    }
}
