//! Costs of a message at its two ranks, as in MPI. By default, messages have no such costs.
//!
//! The model is LogGP (Alexandrov, Ionescu, Schauser, Scheiman, SPAA 1995) with a simulated network
//! between the ranks and with MPI's two protocols. A message of k bytes that may start at t:
//!
//! 1. The sender's processor accepts the message when the processor is free, and is then busy for
//!    `send_overhead` (LogGP's o). The processor accepts its next message at the earliest max(o,
//!    `gap`) later (LogGP's g).
//! 2. A message above `eager_threshold` is first announced to the receiver, which answers. The
//!    exchange takes twice the latency. For a message up to the threshold, the sender is free as
//!    soon as its overhead has passed, and under the rendezvous rule the message does not wait for
//!    its receiver.
//! 3. The message waits for the latency of its route plus `latency` (LogGP's L). It then moves at
//!    its share of its links, at most at `rate` (LogGP's 1/G).
//! 4. The receiver's processor accepts the message when the processor is free, and is then busy for
//!    `receive_overhead` (LogGP's o).
//!
//! On an unloaded network whose links are no bottleneck, a message up to the threshold takes
//! o + L + k G + o. (LogGP counts k - 1 bytes, because o includes the first byte.)

use super::conversion::bytes_per_ps;
use super::program::FlowStart;
use opticoll_base::units::{Bytes, Rate, Time};

/// Costs of a message at its sender and its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// LogGP's L: a delay of each message in addition to the latencies of its links.
    pub latency: Time,
    /// LogGP's o: the time for which a message occupies the sender's processor.
    pub send_overhead: Time,
    /// LogGP's o: the time for which a message occupies the receiver's processor.
    pub receive_overhead: Time,
    /// LogGP's g: the minimum time between two messages of a sender.
    pub gap: Time,
    /// LogGP's 1/G: the maximum rate of a message; `None` if only the links limit the rate.
    pub rate: Option<Rate>,
    /// Maximum size of messages that are sent without an announcement to the receiver.
    pub eager_threshold: Bytes,
}

/// State of the processors of all ranks.
pub(super) struct Endpoints {
    model: Endpoint,
    /// Instant at which the sending processor of each rank becomes free (ps), indexed by rank.
    sender_free: Vec<f64>,
    receiver_free: Vec<f64>,
}

impl Endpoints {
    pub(super) fn new(model: Endpoint, ranks: u32) -> Endpoints {
        Endpoints {
            model,
            sender_free: vec![0.0; ranks as usize],
            receiver_free: vec![0.0; ranks as usize],
        }
    }

    /// Returns the maximum rate of a message in bytes per ps, or infinity.
    pub(super) fn rate(&self) -> f64 {
        self.model.rate.map_or(f64::INFINITY, bytes_per_ps)
    }

    pub(super) fn is_eager(&self, bytes: u64) -> bool {
        bytes <= self.model.eager_threshold.get()
    }

    /// Sends a message at the instant `now` (ps) over a route with the given latency (ps). Returns
    /// two instants (ps): when the message ends at its sender (`None` if this instant is not known
    /// yet), and when the message enters its route.
    pub(super) fn send(
        &mut self,
        message: &FlowStart,
        now: f64,
        latency: f64,
    ) -> (Option<f64>, f64) {
        let overhead = self.model.send_overhead.ps() as f64;
        let free = &mut self.sender_free[message.source as usize];
        let begin = free.max(now);
        *free = begin + overhead.max(self.model.gap.ps() as f64);
        let sent = begin + overhead;
        let extra = self.model.latency.ps() as f64;
        if self.is_eager(message.bytes) {
            (Some(sent), sent + extra)
        } else {
            (None, sent + 2.0 * (latency + extra) + extra)
        }
    }

    /// Receives the last bit of a message at `now` (ps). Returns the instant (ps) at which the
    /// receiver has accepted the message.
    pub(super) fn receive(&mut self, message: &FlowStart, now: f64) -> f64 {
        let free = &mut self.receiver_free[message.destination as usize];
        *free = free.max(now) + self.model.receive_overhead.ps() as f64;
        *free
    }
}
