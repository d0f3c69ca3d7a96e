//! Bounds of an all_to_all whose blocks differ in size. Every rank sends and receives the bytes of
//! the demand over its own cables, and no message arrives before the latency of its route has
//! passed ([`distances`]).

use super::cuts::CutPart;
use super::distances;
use super::links::Links;
use crate::{TimeBound, bits_ps};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_plan::collective::Collective;

/// Returns [received bytes, sent bytes] of each rank, indexed by rank.
fn received_and_sent(collective: &Collective, size: Bytes) -> Vec<[u128; 2]> {
    let mut received_and_sent = vec![[0; 2]; collective.ranks() as usize];
    for (source, destination, bytes) in collective.demanded(size) {
        if source != destination {
            received_and_sent[destination as usize][0] += bytes;
            received_and_sent[source as usize][1] += bytes;
        }
    }
    received_and_sent
}

/// Returns the bound `bandwidth` of the cables of each rank, and the bound `latency`. `alone` has
/// the cables of each rank, indexed by rank.
pub(super) fn bounds(
    links: &Links,
    alone: &[CutPart],
    collective: &Collective,
    size: Bytes,
) -> Result<[TimeBound; 2], UnitError> {
    let mut bandwidth = Time::ZERO;
    for (rank, [received, sent]) in alone.iter().zip(received_and_sent(collective, size)) {
        for (windows, bytes) in [
            (&rank.inwards, received),
            (&rank.outwards, sent),
            (&rank.both, received + sent),
        ] {
            if bytes > 0 && windows.rate() > 0 {
                bandwidth = bandwidth.max(windows.time_to_carry(bits_ps(bytes)?)?);
            }
        }
    }
    Ok([
        TimeBound {
            time: bandwidth,
            name: "bandwidth",
            assumption: "no rank sends or receives faster than its cables",
        },
        TimeBound {
            time: distances::best(links, alone, collective, size)?,
            name: "latency",
            assumption: "data from another rank take at least the latencies of a shortest route \
                         from that rank",
        },
    ])
}
