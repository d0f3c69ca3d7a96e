//! Lower bounds for passive stars.
//!
//! N ranks have t transmitters and r receivers each; the star has w wavelengths; a block (or
//! vector) has P chunks. A slot has at most L = min(w, N t) lights. A rank sends at most s = min(t,
//! w) of them and hears at most h = min(r, w). A light that only one rank needs takes a receiver of
//! its own, so that a slot has at most K = min(w, N t, N r) such lights.
//!
//! - **lights** (theorem S1). One chunk per light and slot: the chunks that a rank must hear over
//!   h, those that a rank, or all ranks, must send over s, or L, and those that only one rank needs
//!   over K.
//! - **growth**, **senders** (theorem S2). ceil(log_(1+h) N) if something of all ranks must come to
//!   one rank; ceil(N / L) if all ranks have something to send. Both hold for any number of chunks
//!   in a light.
//! - **bandwidth**. The counts of S1 in bytes, divided by h, s, L or K times the rate of a
//!   wavelength, plus one latency, plus one tuning if the policy charges any. **rounds**: the slots
//!   of growth or senders, each with its latency, and with its tuning if every slot is charged,
//!   plus the bytes.

use crate::{Bound, ReconfigurationCost, TimeBound, growth, over};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::family::passive_star::PassiveStar;
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Maximum numbers of lights in a slot.
struct Capacities {
    /// Number of ranks N.
    ranks: u128,
    /// Lights of the whole star, L.
    lights: u128,
    /// Lights that only one rank needs, K.
    private: u128,
    /// Lights that a rank sends, s.
    sent: u128,
    /// Lights that a rank hears, h.
    heard: u128,
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
            heard: receivers.min(wavelengths),
        }
    }

    /// Returns pairs of an amount that must pass and the amount that passes in a slot. `unit` is
    /// the amount of a block, a pair of ranks or the vector, in chunks or bytes.
    fn demands(&self, kind: CollectiveKind, unit: u128) -> Vec<(u128, u128)> {
        let others = self.ranks - 1;
        match kind {
            CollectiveKind::AllGather => {
                vec![
                    (unit * others, self.heard),
                    (unit * self.ranks, self.lights),
                ]
            }
            CollectiveKind::Broadcast => vec![(unit, self.sent.min(self.heard))],
            CollectiveKind::Scatter => vec![(unit * others, self.sent)],
            CollectiveKind::Gather => vec![(unit * others, self.heard)],
            CollectiveKind::AllToAll | CollectiveKind::ReduceScatter => {
                vec![(unit * self.ranks * others, self.private)]
            }
            CollectiveKind::Reduce => vec![(unit * others, self.private)],
            CollectiveKind::AllReduce | CollectiveKind::Barrier => vec![
                (unit * self.ranks, self.lights),
                (2 * unit * others, self.ranks * self.heard),
            ],
        }
    }
}

/// Returns the greatest bound on slots, for one chunk per light and slot.
pub fn slots(star: &PassiveStar, collective: &Collective) -> Bound {
    let grown = slots_for_any_load(star, collective);
    if star.ranks < 2 {
        return grown;
    }
    let capacities = Capacities::of(star);
    let demands = capacities.demands(collective.kind(), collective.pieces().into());
    let needed = demands
        .into_iter()
        .map(|(all, at_once)| all.div_ceil(at_once));
    let steps = needed.max().unwrap_or(0) as u64;
    // Of equal bounds the one with the weaker assumption is returned.
    if grown.steps >= steps {
        return grown;
    }
    Bound {
        steps,
        name: "lights",
        assumption: "one chunk per light and slot",
    }
}

/// Returns the bound on slots for any number of chunks in a light.
pub fn slots_for_any_load(star: &PassiveStar, collective: &Collective) -> Bound {
    use CollectiveKind::{Broadcast, Gather, Reduce, Scatter};
    let ranks = u64::from(star.ranks);
    let heard = u64::from(star.receivers.min(star.wavelengths));
    let (grown, senders) = match collective.kind() {
        Broadcast | Scatter => (u64::from(ranks > 1), 0),
        Gather | Reduce => (growth(ranks, heard), ranks - 1),
        _ if ranks < 2 => (0, 0),
        _ => (growth(ranks, heard), ranks),
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

/// Returns the greatest bound on the time of a collective of a size.
///
/// # Errors
/// A time beyond 64 bits of picoseconds.
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
    let unit = match collective.kind() {
        Barrier => 0,
        // Blocks of a size that N does not divide have at least this number of bytes.
        AllToAll | ReduceScatter => u128::from(size.get()) / u128::from(star.ranks),
        _ => size.get().into(),
    };
    let rate = u128::from(star.rate.bits_per_second());
    let mut sending = Time::ZERO;
    for (bytes, at_once) in Capacities::of(star).demands(collective.kind(), unit) {
        sending = sending.max(over(bytes, at_once * rate)?);
    }
    let tuning = star.reconfiguration;
    let rounds = match charge {
        ReconfigurationCost::OncePerPort => 1,
        _ => slots_for_any_load(star, collective).steps,
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
