//! The bounds of an all_to_all whose blocks differ: every rank sends and receives what the demand says over its own cables, and
//! no message is there before its latencies are over ([`distances`]).

use super::cuts::CutPart;
use super::distances;
use super::links::Links;
use crate::{TimeBound, bits_ps};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_plan::collective::Collective;

/// By rank: the bytes that it takes in from others, and those that it sends to others.
fn crossing(collective: &Collective, size: Bytes) -> Vec<[u128; 2]> {
    let mut crossing = vec![[0; 2]; collective.ranks() as usize];
    for (source, destination, bytes) in collective.demanded(size) {
        if source != destination {
            crossing[destination as usize][0] += bytes;
            crossing[source as usize][1] += bytes;
        }
    }
    crossing
}

/// The bound of the cables of each rank, and that of distances.
pub(super) fn bounds(
    links: &Links,
    alone: &[CutPart],
    collective: &Collective,
    size: Bytes,
) -> Result<[TimeBound; 2], UnitError> {
    let mut bandwidth = Time::ZERO;
    for (rank, [taken, sent]) in alone.iter().zip(crossing(collective, size)) {
        for (windows, bytes) in [
            (&rank.inwards, taken),
            (&rank.outwards, sent),
            (&rank.both, taken + sent),
        ] {
            if bytes > 0 && windows.rate() > 0 {
                bandwidth = bandwidth.max(windows.carry(bits_ps(bytes)?)?);
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
            assumption: "what a rank needs of another takes the latencies of a shortest way between them",
        },
    ])
}
