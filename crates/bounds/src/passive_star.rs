//! Lower bounds for passive stars.
//!
//! N ranks, w wavelengths, t transmitters and r receivers per rank, P chunks to a block (or to the
//! vector). In a slot there are at most L = min(w, N t) lights, of which a rank sends at most s =
//! min(t, w) and hears at most h = min(r, w). What only one rank needs takes a receiver of its
//! own: of such lights there are at most K = min(w, N t, N r) in a slot.
//!
//! - **lights** (theorem S1). What is heard over h, what is sent over s or L, what only one rank
//!   needs over K; one chunk per light and slot.
//! - **growth**, **senders** (theorem S2). ceil(log_(1+h) N) where something of all ranks must
//!   come to some rank; ceil(N / L) where all ranks have something to send. Both hold for any
//!   number of chunks in a light.
//! - **bandwidth**. The counts of S1 in bytes, over h, s, L or K times the rate of a wavelength;
//!   beside that the latency once and a tuning where any is charged. **rounds**: slots by growth
//!   or senders, each with its latency, and with its tuning where every slot is charged, beside
//!   the bytes.

use crate::{Bound, LeastCharge, TimeBound, growth, over};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::family::passive_star::PassiveStar;
use opticoll_plan::collective::{Collective, CollectiveKind};

/// How much of what passes in a slot at most.
struct Capacities {
    ranks: u128,
    /// Lights, L.
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

    /// What must pass, and how much of it passes in a slot: `own` is that of a block, a pair of ranks or the
    /// vector, in chunks or bytes.
    fn demands(&self, kind: CollectiveKind, own: u128) -> Vec<(u128, u128)> {
        let others = self.ranks - 1;
        match kind {
            CollectiveKind::AllGather => {
                vec![(own * others, self.heard), (own * self.ranks, self.lights)]
            }
            CollectiveKind::Broadcast => vec![(own, self.sent.min(self.heard))],
            CollectiveKind::Scatter => vec![(own * others, self.sent)],
            CollectiveKind::Gather => vec![(own * others, self.heard)],
            CollectiveKind::AllToAll | CollectiveKind::ReduceScatter => {
                vec![(own * self.ranks * others, self.private)]
            }
            CollectiveKind::Reduce => vec![(own * others, self.private)],
            CollectiveKind::AllReduce | CollectiveKind::Barrier => vec![
                (own * self.ranks, self.lights),
                (2 * own * others, self.ranks * self.heard),
            ],
        }
    }
}

/// The greatest bound on slots, for one chunk per light and slot.
pub fn slots(star: &PassiveStar, collective: &Collective) -> Bound {
    let grown = any_load(star, collective);
    if star.ranks < 2 {
        return grown;
    }
    let capacities = Capacities::of(star);
    let demands = capacities.demands(collective.kind(), collective.pieces().into());
    let needed = demands
        .into_iter()
        .map(|(all, at_once)| all.div_ceil(at_once));
    let steps = needed.max().unwrap_or(0) as u64;
    // Of equal ones that which assumes less.
    if grown.steps >= steps {
        return grown;
    }
    Bound {
        steps,
        name: "lights",
        assumption: "one chunk per light and slot",
    }
}

/// The bound on slots for any number of chunks in a light.
pub fn any_load(star: &PassiveStar, collective: &Collective) -> Bound {
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
        assumption: "any number of chunks per light; a rank forwards in later slots than the one in which \
                     it received",
    }
}

/// The greatest bound on the time of a collective of a size.
///
/// # Errors
/// A time beyond 64 bits of picoseconds.
pub fn best(
    star: &PassiveStar,
    collective: &Collective,
    size: Bytes,
    charge: LeastCharge,
) -> Result<TimeBound, UnitError> {
    use CollectiveKind::{AllToAll, Barrier, ReduceScatter};
    if star.ranks < 2 {
        return Ok(TimeBound::ALONE);
    }
    let own = match collective.kind() {
        Barrier => 0,
        // Parts of a size that does not divide evenly are no smaller than this.
        AllToAll | ReduceScatter => u128::from(size.get()) / u128::from(star.ranks),
        _ => size.get().into(),
    };
    let rate = u128::from(star.rate.bits_per_second());
    let mut sending = Time::ZERO;
    for (bytes, at_once) in Capacities::of(star).demands(collective.kind(), own) {
        sending = sending.max(over(bytes, at_once * rate)?);
    }
    let tuning = star.reconfiguration;
    let rounds = match charge {
        LeastCharge::OncePerPort => 1,
        _ => any_load(star, collective).steps,
    };
    let tunings = match charge {
        LeastCharge::EverySlot => tuning.times(rounds)?,
        LeastCharge::Once | LeastCharge::OncePerPort => tuning,
        LeastCharge::Never => Time::ZERO,
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
            assumption: "no rank and no wavelength is faster than its rate, and in a slot a rank hears no more \
                         others than it has receivers, and no more lights are sent than there are wavelengths",
        },
    })
}
