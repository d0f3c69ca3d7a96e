//! What a message costs at its two ends: an MPI-like model, off unless asked for.
//!
//! It is LogGP (Alexandrov, Ionescu, Schauser, Scheiman, SPAA 1995) with the network between the
//! ends simulated, and with MPI's two protocols. A message of k bytes that may start at t:
//!
//! 1. The sender's processor takes it when it is free, and is busy for `send_overhead` (LogGP's o);
//!    it takes its next message not before max(o, `gap`) after this one (g).
//! 2. Above `eager_threshold` the message is announced and answered first, and waits for twice the
//!    latency. Up to it, the sender is free of the message as soon as its overhead is paid, and
//!    under the rendezvous rule the message does not wait for its receiver.
//! 3. It waits for the latency of its route and `latency` (L), then moves at the share of its links,
//!    at most at `rate` (1/G).
//! 4. The receiver's processor takes it when it is free, for `receive_overhead` (o).
//!
//! On an unloaded network with links that are no bottleneck, and up to the threshold, that is
//! o + L + k G + o. (LogGP counts k - 1 bytes, since its first one is in o.)

use super::instant::bytes_per_ps;
use super::program::FlowStart;
use opticoll_base::units::{Bytes, Rate, Time};

/// The costs of a message at its ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// LogGP's L: a delay of each message, besides the latencies of its links.
    pub latency: Time,
    /// LogGP's o at the sender.
    pub send_overhead: Time,
    /// LogGP's o at the receiver.
    pub receive_overhead: Time,
    /// LogGP's g: the least time between two messages of a sender.
    pub gap: Time,
    /// LogGP's 1/G: the highest rate of a message. None: only the links bound it.
    pub rate: Option<Rate>,
    /// Messages up to this size are sent without asking the receiver.
    pub eager_threshold: Bytes,
}

/// The ends of all ranks.
pub(super) struct Endpoints {
    model: Endpoint,
    /// By rank: when its processor has done all it was given (ps).
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

    /// Bytes per ps, or infinite.
    pub(super) fn rate(&self) -> f64 {
        self.model.rate.map_or(f64::INFINITY, bytes_per_ps)
    }

    pub(super) fn is_eager(&self, bytes: u64) -> bool {
        bytes <= self.model.eager_threshold.get()
    }

    /// The sender takes a message up. When it is free of the message, if that is known already;
    /// and when the message goes into its route, of which the latency is still to come.
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

    /// The last bit of a message is here: when the receiver has it.
    pub(super) fn receive(&mut self, message: &FlowStart, now: f64) -> f64 {
        let free = &mut self.receiver_free[message.destination as usize];
        *free = free.max(now) + self.model.receive_overhead.ps() as f64;
        *free
    }
}
