//! Bounds of an all_to_all whose blocks differ: every rank sends and receives the bytes of the
//! demand over its own cables, and no message arrives before its latencies have passed
//! ([`distances`]).

use super::cuts::CutPart;
use super::distances;
use super::links::Links;
use crate::{TimeBound, bits_ps};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_plan::collective::Collective;

/// Returns the bytes that each rank takes in from others and sends to others.
fn bytes_of_ranks(collective: &Collective, size: Bytes) -> Vec<[u128; 2]> {
    let mut bytes_of_ranks = vec![[0; 2]; collective.ranks() as usize];
    for (source, destination, bytes) in collective.demanded(size) {
        if source != destination {
            bytes_of_ranks[destination as usize][0] += bytes;
            bytes_of_ranks[source as usize][1] += bytes;
        }
    }
    bytes_of_ranks
}

/// Returns the bound `bandwidth` of the cables of each rank, and the bound `latency`.
pub(super) fn bounds(
    links: &Links,
    alone: &[CutPart],
    collective: &Collective,
    size: Bytes,
) -> Result<[TimeBound; 2], UnitError> {
    let mut bandwidth = Time::ZERO;
    for (rank, [taken, sent]) in alone.iter().zip(bytes_of_ranks(collective, size)) {
        for (windows, bytes) in [
            (&rank.inwards, taken),
            (&rank.outwards, sent),
            (&rank.both, taken + sent),
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
