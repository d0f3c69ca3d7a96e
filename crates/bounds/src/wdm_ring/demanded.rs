//! Lower bound on the time of an all_to_all whose blocks differ.
//!
//! **demand.** An *arc* is a set of k consecutive ranks. The bytes that leave an arc use the links
//! at its two ends, with c channels each, and each rank of the arc sends over at most r channels.
//! If the demand sends m bytes from an arc to other ranks, these bytes take at least m / (min(c per
//! unbroken link, k r) B), in any slots. The other ranks of the ring form an arc as well, so that
//! this also covers the bytes that enter an arc.
//!
//! In a slot whose longest lightpath carries b bytes, each channel carries at most b bytes, so that
//! the times of the slots add up (theorem R10). A rank that sends to, or receives from, k other
//! ranks needs G = ceil(log_(1+r) (k + 1)) slots. With light trees, this holds only for the ranks
//! from which a rank receives, because a light tree informs any number of ranks.

use super::{growth, intake, time, width};
use crate::{ReconfigurationCost, TimeBound, partners};
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::Circuits;
use opticoll_fabric::family::wdm_ring::{Direction, WdmRing};
use opticoll_plan::collective::Collective;

/// Maximum number of ranks for which all arcs are examined. On larger rings, only arcs of a single
/// rank are examined.
const MAX_RANKS: u32 = 1024;

/// Returns the greatest bound on the time of an all_to_all with a demand. Fails if a time exceeds
/// 64 bits of picoseconds.
pub fn best(
    ring: &WdmRing,
    collective: &Collective,
    size: Bytes,
    charge: ReconfigurationCost,
) -> Result<TimeBound, UnitError> {
    let partners = partners(collective);
    let mut sent = vec![Vec::new(); ring.ranks as usize];
    for (source, destination, bytes) in collective.demanded(size) {
        if source != destination {
            sent[source as usize].push((destination, bytes));
        }
    }
    if sent.iter().all(Vec::is_empty) {
        return Ok(TimeBound::NOTHING_SENT);
    }
    let sending = time_over_ends(ring, &sent)?;
    let counted = match ring.multicast {
        true => &partners[1..],
        false => &partners[..],
    };
    let most = counted.iter().flatten().copied().max().unwrap_or(0);
    let hop = ring.transmission().latency();
    let hop = hop.plus(ring.least_propagation()?)?;
    let slots = match charge {
        ReconfigurationCost::OncePerPort => 1,
        _ => growth(most + 1, intake(ring)),
    };
    let charged = match charge {
        ReconfigurationCost::Never => Time::ZERO,
        ReconfigurationCost::EverySlot => ring.reconfiguration.times(slots)?,
        _ => ring.reconfiguration,
    };
    Ok(TimeBound {
        time: charged.plus(hop.times(slots)?)?.plus(sending)?,
        name: "demand",
        assumption: "slots run one after the other, each as long as its longest lightpath; blocks \
                     may be cut into any pieces",
    })
}

/// Returns the greatest time, over all arcs, in which the bytes that leave an arc pass the channels
/// at its ends. `sent` has the (destination, bytes) of each source, indexed by source.
fn time_over_ends(ring: &WdmRing, sent: &[Vec<(u32, u128)>]) -> Result<Time, UnitError> {
    let ranks = ring.ranks;
    let mut received = vec![0u128; ranks as usize];
    for (destination, bytes) in sent.iter().flatten() {
        received[*destination as usize] += bytes;
    }
    let mut most = Time::ZERO;
    for rank in 0..ranks {
        let leaving = sent[rank as usize].iter().map(|(_, bytes)| bytes).sum();
        for (bytes, is_incoming) in [(leaving, false), (received[rank as usize], true)] {
            let channels = width(ring, rank, is_incoming).max(1);
            most = most.max(time::channel_time(ring, bytes, 1, channels)?);
        }
    }
    if ranks > MAX_RANKS {
        return Ok(most);
    }
    // For each source: sum of the bytes for all destinations below each destination.
    let mut before = vec![vec![0u128; ranks as usize + 1]; ranks as usize];
    for (own, sent) in before.iter_mut().zip(sent) {
        for (destination, bytes) in sent {
            own[*destination as usize + 1] += bytes;
        }
        for rank in 0..ranks as usize {
            own[rank + 1] += own[rank];
        }
    }
    let to_arc = |source: usize, first: u32, last: u32| match first <= last {
        true => before[source][last as usize + 1] - before[source][first as usize],
        false => {
            before[source][ranks as usize] - before[source][first as usize]
                + before[source][last as usize + 1]
        }
    };
    let leads = |from: u32, to: u32, direction| u64::from(ring.is_whole(from, to, direction));
    for first in 0..ranks {
        interrupt::check();
        let below = (first + ranks - 1) % ranks;
        let down = leads(first, below, Direction::CounterClockwise);
        let mut leaving = 0u128;
        let mut from_arc = vec![0u128; ranks as usize];
        for length in 1..ranks {
            let last = (first + length - 1) % ranks;
            // Bytes between the last rank and the arc now stay inside.
            leaving += before[last as usize][ranks as usize] - to_arc(last as usize, first, last);
            leaving -= from_arc[last as usize];
            for (destination, bytes) in &sent[last as usize] {
                from_arc[*destination as usize] += bytes;
            }
            let up = leads(last, (last + 1) % ranks, Direction::Clockwise);
            let ends = (up + down) * u64::from(ring.channels());
            let ends = ends.min(u64::from(length) * intake(ring));
            if ends > 0 {
                most = most.max(time::channel_time(ring, leaving, 1, ends)?);
            }
        }
    }
    Ok(most)
}
