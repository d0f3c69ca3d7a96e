//! Lower bounds for graphs of fibres.
//!
//! A rank receives at most as many lightpaths in a slot as channels lead to the rank, or as it has
//! receivers, and sends at most as many as channels lead from it, or as it has transmitters.
//!
//! - **receive** (theorem R1). Each lightpath carries one chunk: the number of slots is at least
//!   the number of chunks that a rank must receive (or send), divided by its lightpaths in a slot.
//! - **growth** (theorem A2). The number of ranks that have data of a block grows at most by the
//!   factor 1 + k in a slot, if no rank sends more than k lightpaths.
//! - **bandwidth**. The bytes that a rank must receive (or send), divided by the rate of all of its
//!   lightpaths in a slot. **rounds**: the time of the bytes, plus the reconfigurations of the
//!   slots of `growth`.

use crate::{Bound, ReconfigurationCost, TimeBound, growth, transmission_time};
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::family::wdm_graph::WdmGraph;
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Lightpaths that ranks send and receive in a slot.
struct Ports {
    ranks: u64,
    /// Least number of lightpaths that a rank receives or sends.
    least: u64,
    /// Greatest number of lightpaths that a rank receives or sends.
    greatest: u64,
    /// Greatest rate of a link, in bit/s.
    rate: u128,
}

impl Ports {
    fn of(graph: &WdmGraph) -> Ports {
        let network = graph.fibre_links();
        let ranks = network.ranks() as usize;
        let (mut sent, mut received) = (vec![0u64; ranks], vec![0u64; ranks]);
        let channels = u64::from(graph.channels());
        for link in 0..network.links().len() as u32 {
            let Some((from, to)) = network.ends(link) else {
                continue;
            };
            for (counts, vertex) in [(&mut sent, from), (&mut received, to)] {
                if let Some(count) = counts.get_mut(vertex as usize) {
                    *count += channels;
                }
            }
        }
        let limited = |counts: &[u64], limit: Option<u32>| -> Vec<u64> {
            let limit = limit.map_or(u64::MAX, u64::from);
            counts.iter().map(|&count| count.min(limit)).collect()
        };
        let sent = limited(&sent, graph.transmitters);
        let received = limited(&received, graph.receivers);
        let counts = || sent.iter().chain(&received).copied();
        let rates = network.links().iter();
        let rates = rates.map(|link| u128::from(link.rate.bits_per_second()));
        Ports {
            ranks: ranks as u64,
            least: counts().min().unwrap_or(0).max(1),
            greatest: counts().max().unwrap_or(0).max(1),
            rate: rates.max().unwrap_or(1),
        }
    }

    /// Returns the least amount that some rank must receive or send, and whether every rank must.
    /// `unit` is the amount of a block, of a pair of ranks or of the vector.
    fn amount(&self, kind: CollectiveKind, unit: u128) -> (u128, bool) {
        use CollectiveKind::{AllGather, AllToAll, Gather, ReduceScatter, Scatter};
        let others = u128::from(self.ranks - 1);
        match kind {
            AllGather | AllToAll | ReduceScatter => (unit * others, true),
            Gather | Scatter => (unit * others, false),
            // The ranks other than one rank contribute to its part of the result.
            _ => (unit, false),
        }
    }

    /// Returns the number of lightpaths of the ranks among which an amount may be divided.
    fn lightpaths(&self, is_every_rank: bool) -> u64 {
        match is_every_rank {
            true => self.least,
            false => self.greatest,
        }
    }
}

/// Returns the greatest bound on the number of slots. If `single` is true, each lightpath carries
/// one chunk.
pub fn slots(graph: &WdmGraph, collective: &Collective, single: bool) -> Bound {
    let ports = Ports::of(graph);
    let grown = match collective.kind() {
        _ if ports.ranks < 2 => 0,
        CollectiveKind::AllToAll | CollectiveKind::Gather | CollectiveKind::Scatter => 1,
        _ => growth(ports.ranks, ports.greatest),
    };
    let received = match single && ports.ranks > 1 {
        true => {
            let (amount, every) = ports.amount(collective.kind(), collective.pieces().into());
            amount.div_ceil(ports.lightpaths(every).into()) as u64
        }
        false => 0,
    };
    match received > grown {
        true => Bound {
            steps: received,
            name: "receive",
            assumption: "one chunk per lightpath and slot",
        },
        false => Bound {
            steps: grown,
            name: "growth",
            assumption: "any number of chunks per lightpath; a rank forwards data only in a later \
                         slot than the one in which it received them",
        },
    }
}

/// Returns the greatest bound on the time of `collective` at the size `size`. Fails if a time
/// exceeds 64 bits of picoseconds.
pub fn best(
    graph: &WdmGraph,
    collective: &Collective,
    size: Bytes,
    charge: ReconfigurationCost,
) -> Result<TimeBound, UnitError> {
    use CollectiveKind::{AllToAll, Barrier, ReduceScatter};
    let ports = Ports::of(graph);
    if ports.ranks < 2 {
        return Ok(TimeBound::SINGLE_RANK);
    }
    let unit = match collective.kind() {
        Barrier => 0,
        // If N does not divide the size, each block has at least this number of bytes.
        AllToAll | ReduceScatter => u128::from(size.get()) / u128::from(ports.ranks),
        _ => size.get().into(),
    };
    let (bytes, every) = ports.amount(collective.kind(), unit);
    let at_once = u128::from(ports.lightpaths(every));
    let sending = transmission_time(bytes, at_once * ports.rate)?;
    let rounds = slots(graph, collective, false).steps.max(1);
    let setups = match charge {
        ReconfigurationCost::EverySlot => graph.reconfiguration.times(rounds)?,
        ReconfigurationCost::Once | ReconfigurationCost::OncePerPort => graph.reconfiguration,
        ReconfigurationCost::Never => Time::ZERO,
    };
    Ok(TimeBound {
        time: setups.plus(sending)?,
        name: if rounds > 1 { "rounds" } else { "bandwidth" },
        assumption: "no rank sends or receives faster than all of its lightpaths together, and a \
                     rank forwards data only in a later slot",
    })
}
