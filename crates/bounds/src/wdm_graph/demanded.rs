//! Lower bound on the time of an all_to_all whose blocks differ.
//!
//! **demand.** The bytes that a rank sends (or receives) take at least their number over the rate
//! of the rank's lightpaths (theorem W1). The bytes of all pairs of ranks, times the number of
//! links between the two ranks, take at least their sum over the rate of all channels (theorem W3
//! with links of equal length). A rank that receives from k other ranks, or sends to k other ranks,
//! needs the slots of theorem A2 for k + 1 ranks.

use super::fibres::{Fibres, NO_PATH};
use super::widest;
use crate::{
    ReconfigurationCost, TimeBound, bytes_over_borders, growth, partners, transmission_time,
};
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time, UnitError};
use opticoll_fabric::fabric::Circuits;
use opticoll_fabric::family::wdm_graph::WdmGraph;
use opticoll_plan::collective::Collective;

/// Returns the bound on the time of an all_to_all with a demand. Fails if a time exceeds 64 bits of
/// picoseconds.
pub fn best(
    graph: &WdmGraph,
    collective: &Collective,
    size: Bytes,
    charge: ReconfigurationCost,
) -> Result<TimeBound, UnitError> {
    let fibres = Fibres::of(graph);
    let [receivers, senders] = partners(collective);
    let [sent, received] = bytes_over_borders(collective, size, fibres.ranks, |rank| rank);
    let mut of_source = vec![Vec::new(); fibres.ranks as usize];
    for (source, destination, bytes) in collective.demanded(size) {
        if source != destination {
            of_source[source as usize].push((destination as usize, bytes));
        }
    }
    let most_senders = senders.into_iter().max().unwrap_or(0);
    if most_senders == 0 {
        return Ok(TimeBound::NOTHING_SENT);
    }
    let mut sending = Time::ZERO;
    for (bytes, ports) in [(&sent, &fibres.senders), (&received, &fibres.receivers)] {
        for (bytes, ports) in bytes.iter().zip(ports) {
            sending = sending.max(transmission_time(*bytes, ports.rate)?);
        }
    }
    let neighbours = fibres.neighbours(false);
    let mut byte_links = 0u128;
    for (source, to) in (0u32..).zip(&of_source) {
        interrupt::check();
        if to.is_empty() {
            continue;
        }
        let hops = fibres.hops(&neighbours, source);
        let joined = to.iter().filter(|(to, _)| hops[*to] != NO_PATH);
        let own = joined.map(|(to, bytes)| bytes * u128::from(hops[*to]));
        byte_links += own.sum::<u128>();
    }
    let rate = fibres.links.iter().map(|link| link.rate).sum();
    sending = sending.max(transmission_time(byte_links, rate)?);
    let gathered = growth(most_senders + 1, widest(&fibres.receivers).max(1));
    let most_receivers = receivers.into_iter().max().unwrap_or(0);
    let spread = growth(most_receivers + 1, widest(&fibres.senders).max(1));
    let slots = match charge {
        ReconfigurationCost::OncePerPort => 1,
        // A light tree informs any number of ranks.
        _ if fibres.has_light_trees => gathered,
        _ => gathered.max(spread),
    };
    let charged = match charge {
        ReconfigurationCost::Never => Time::ZERO,
        ReconfigurationCost::EverySlot => graph.reconfiguration.times(slots)?,
        _ => graph.reconfiguration,
    };
    let hop = graph.transmission().latency();
    let hop = hop.plus(Time::from_ps(fibres.least_delay_ps()))?;
    Ok(TimeBound {
        time: charged.plus(hop.times(slots)?)?.plus(sending)?,
        name: "demand",
        assumption: "slots run one after the other, each as long as its longest lightpath; blocks \
                     may be cut into any pieces",
    })
}
