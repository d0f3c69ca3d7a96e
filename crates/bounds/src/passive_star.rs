//! Lower bounds for passive stars.
//!
//! N ranks have t transmitters and r receivers each, and the star has w wavelengths. A block, or
//! the vector, has P chunks. A *light* is one wavelength that one rank sends in one slot; any
//! number of ranks may receive the light. A slot has at most L = min(w, N t) lights. In a slot, a
//! rank sends at most s = min(t, w) lights and receives at most h = min(r, w) lights. A light that
//! only one rank needs occupies a receiver of its own, so that a slot has at most K = min(w, N t, N
//! r) such lights.
//!
//! - **lights** (theorem S1). If each light carries one chunk, the number of slots is at least the
//!   number of chunks divided by the lights per slot. The bound counts the chunks that a rank must
//!   receive (h lights), that a rank must send (s), that all ranks must send (L), and that only one
//!   rank needs (K).
//! - **growth**, **senders** (theorem S2). ceil(log_(1+h) N) slots if data of all ranks must reach
//!   one rank; ceil(N / L) slots if all ranks have data to send. Both bounds hold for any number of
//!   chunks per light.
//! - **bandwidth**. The amounts of `lights` in bytes, divided by h, s, L or K times the rate of a
//!   wavelength, plus one latency, plus one tuning if the policy charges any. **rounds**: the time
//!   of the bytes, plus the slots of `growth` or `senders`. Each of these slots takes a latency,
//!   and a tuning if every slot is charged.
//! - **A demand** (theorem S3). The bytes that a rank sends to others, receives from others, and
//!   that all ranks send, are divided by s, h and K. In `growth`, 1 plus the greatest number of
//!   ranks that have data for one rank replaces N. In `senders`, the number of ranks that have data
//!   for others replaces N.

use crate::{
    Bound, ReconfigurationCost, TimeBound, bytes_over_borders, growth, partners, transmission_time,
};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::family::passive_star::PassiveStar;
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Maximum numbers of lights in a slot.
struct Capacities {
    ranks: u128,
    /// Maximum number of lights of the whole star, L.
    lights: u128,
    /// Maximum number of lights that only one rank needs, K.
    private: u128,
    /// Maximum number of lights that a rank sends, s.
    sent: u128,
    /// Maximum number of lights that a rank receives, h.
    received: u128,
}

impl Capacities {
    fn of(star: &PassiveStar) -> Capacities {
        let [ranks, wavelengths, transmitters, receivers] = [
            star.ranks,
            star.wavelengths,
            star.transmitters,
            star.receivers,
        ]
        .map(u128::from);
        Capacities {
            ranks,
            lights: wavelengths.min(ranks * transmitters),
            private: wavelengths.min(ranks * transmitters.min(receivers)),
            sent: transmitters.min(wavelengths),
            received: receivers.min(wavelengths),
        }
    }

    /// Returns pairs (amount that the star must transmit, number of lights per slot among which
    /// this amount is divided). `unit` is the amount of a block, of a pair of ranks or of the
    /// vector, in chunks or bytes.
    fn demands(&self, kind: CollectiveKind, unit: u128) -> Vec<(u128, u128)> {
        let others = self.ranks - 1;
        match kind {
            CollectiveKind::AllGather => {
                vec![
                    (unit * others, self.received),
                    (unit * self.ranks, self.lights),
                ]
            }
            CollectiveKind::Broadcast => vec![(unit, self.sent.min(self.received))],
            CollectiveKind::Scatter => vec![(unit * others, self.sent)],
            CollectiveKind::Gather => vec![(unit * others, self.received)],
            CollectiveKind::AllToAll | CollectiveKind::ReduceScatter => {
                vec![(unit * self.ranks * others, self.private)]
            }
            CollectiveKind::Reduce => vec![(unit * others, self.private)],
            CollectiveKind::AllReduce | CollectiveKind::Barrier => vec![
                (unit * self.ranks, self.lights),
                (2 * unit * others, self.ranks * self.received),
            ],
        }
    }

    /// Returns the pairs of [`Capacities::demands`] in bytes, for an all_to_all with a demand.
    fn demand_counts(&self, collective: &Collective, size: Bytes) -> Vec<(u128, u128)> {
        let [sent, received] =
            bytes_over_borders(collective, size, collective.ranks(), |rank| rank);
        let most = |bytes: &[u128]| bytes.iter().copied().max().unwrap_or(0);
        vec![
            (most(&sent), self.sent),
            (most(&received), self.received),
            (sent.iter().sum(), self.private),
        ]
    }
}

/// Returns the greatest bound on the number of slots if each light carries one chunk. For a demand,
/// the bound holds for any number of chunks.
pub fn slots(star: &PassiveStar, collective: &Collective) -> Bound {
    let grown = slots_for_any_load(star, collective);
    if star.ranks < 2 || collective.demand().is_some() {
        return grown;
    }
    let capacities = Capacities::of(star);
    let demands = capacities.demands(collective.kind(), collective.pieces().into());
    let needed = demands
        .into_iter()
        .map(|(all, at_once)| all.div_ceil(at_once));
    let steps = needed.max().unwrap_or(0) as u64;
    // Of equal bounds, the bound with the weaker assumption is returned.
    if grown.steps >= steps {
        return grown;
    }
    Bound {
        steps,
        name: "lights",
        assumption: "one chunk per light and slot",
    }
}

/// Returns the greatest bound on the number of slots if a light may carry any number of chunks.
pub fn slots_for_any_load(star: &PassiveStar, collective: &Collective) -> Bound {
    use CollectiveKind::{Broadcast, Gather, Reduce, Scatter};
    let ranks = u64::from(star.ranks);
    let received = u64::from(star.receivers.min(star.wavelengths));
    let (grown, senders) = match collective.kind() {
        _ if collective.demand().is_some() => {
            let [to, from] = partners(collective);
            let most = from.into_iter().max().unwrap_or(0);
            let senders = to.iter().filter(|others| **others > 0).count();
            (growth(1 + most, received), senders as u64)
        }
        Broadcast | Scatter => (u64::from(ranks > 1), 0),
        Gather | Reduce => (growth(ranks, received), ranks - 1),
        _ if ranks < 2 => (0, 0),
        _ => (growth(ranks, received), ranks),
    };
    let lights = u64::from(star.wavelengths).min(ranks * u64::from(star.transmitters));
    let sent = senders.div_ceil(lights);
    Bound {
        steps: grown.max(sent),
        name: if sent > grown { "senders" } else { "growth" },
        assumption: "any number of chunks per light; a rank forwards data only in a later slot \
                     than the one in which it received them",
    }
}

/// Returns the greatest bound on the time of `collective` at the size `size`. Fails if a time
/// exceeds 64 bits of picoseconds.
pub fn best(
    star: &PassiveStar,
    collective: &Collective,
    size: Bytes,
    charge: ReconfigurationCost,
) -> Result<TimeBound, UnitError> {
    use CollectiveKind::{AllToAll, Barrier, ReduceScatter};
    if star.ranks < 2 {
        return Ok(TimeBound::SINGLE_RANK);
    }
    let any_load = slots_for_any_load(star, collective);
    if any_load.steps == 0 {
        return Ok(TimeBound::NOTHING_SENT);
    }
    let unit = match collective.kind() {
        Barrier => 0,
        // If N does not divide the size, each block has at least this number of bytes.
        AllToAll | ReduceScatter => u128::from(size.get()) / u128::from(star.ranks),
        _ => size.get().into(),
    };
    let rate = u128::from(star.rate.bits_per_second());
    let mut sending = Time::ZERO;
    let capacities = Capacities::of(star);
    let amounts = match collective.demand() {
        Some(_) => capacities.demand_counts(collective, size),
        None => capacities.demands(collective.kind(), unit),
    };
    for (bytes, at_once) in amounts {
        sending = sending.max(transmission_time(bytes, at_once * rate)?);
    }
    let tuning = star.reconfiguration;
    let rounds = match charge {
        ReconfigurationCost::OncePerPort => 1,
        _ => any_load.steps,
    };
    let tunings = match charge {
        ReconfigurationCost::EverySlot => tuning.times(rounds)?,
        ReconfigurationCost::Once | ReconfigurationCost::OncePerPort => tuning,
        ReconfigurationCost::Never => Time::ZERO,
    };
    let time = star.latency.times(rounds)?.plus(tunings)?.plus(sending)?;
    Ok(match rounds {
        1 => TimeBound {
            time,
            name: "bandwidth",
            assumption: "no rank and no wavelength is faster than its rate",
        },
        _ => TimeBound {
            time,
            name: "rounds",
            assumption: "no rank and no wavelength is faster than its rate, and in a slot a rank \
                         hears at most as many ranks as it has receivers, and there are at most as \
                         many lights as wavelengths",
        },
    })
}
