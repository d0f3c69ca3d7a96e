//! Chunks and bytes that ranks must receive and send (theorem W1).

use super::fibres::{Fibres, Ports};
use opticoll_plan::collective::{Collective, CollectiveKind};

/// Ranks that receive, or send, the same number of blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    All,
    Root,
    Others,
}

/// Least number of blocks (for collectives of a vector: vectors) that ranks receive and send.
struct Amounts {
    received: (u64, Who),
    sent: (u64, Who),
    /// Blocks that all ranks together receive.
    total: u64,
}

fn amounts(collective: &Collective) -> Amounts {
    use CollectiveKind::{
        AllGather, AllReduce, AllToAll, Barrier, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
    };
    use Who::{All, Others, Root};
    let ranks = u64::from(collective.ranks());
    let others = ranks - 1;
    let (received, sent, total) = match collective.kind() {
        AllGather => ((others, All), (1, All), ranks * others),
        ReduceScatter => ((1, All), (others, All), ranks * others),
        AllToAll => ((others, All), (others, All), ranks * others),
        AllReduce | Barrier => ((1, All), (1, All), 2 * others),
        Broadcast => ((1, Others), (1, Root), others),
        Reduce => ((1, Root), (1, Others), others),
        Scatter => ((1, Others), (others, Root), others),
        Gather => ((others, Root), (1, Others), others),
    };
    Amounts {
        received,
        sent,
        total,
    }
}

/// Returns the least value of `measure` over the ranks `who`.
fn least(who: Who, root: u32, ports: &[Ports], measure: fn(&Ports) -> u128) -> u128 {
    let ranks = (0u32..).zip(ports);
    let ranks = ranks.filter(|(rank, _)| match who {
        Who::All => true,
        Who::Root => *rank == root,
        Who::Others => *rank != root,
    });
    ranks.map(|(_, ports)| measure(ports)).min().unwrap_or(0)
}

/// Returns the sum of `measure` over the ranks that receive, or over the ranks that send.
fn total(who: Who, root: u32, ports: &[Ports], measure: fn(&Ports) -> u128) -> u128 {
    let ranks = (0u32..).zip(ports);
    let ranks = ranks.filter(|(rank, _)| who != Who::Others || *rank != root);
    ranks.map(|(_, ports)| measure(ports)).sum()
}

/// Returns the number of slots in which all ranks can receive and send their chunks, if a lightpath
/// carries one chunk.
pub(super) fn slots(fibres: &Fibres, collective: &Collective) -> u64 {
    let pieces = u128::from(collective.pieces());
    let quotients = quotients(fibres, collective, |ports| ports.lightpaths.into());
    let slots = quotients.map(|(blocks, lightpaths)| match lightpaths {
        0 => 0,
        _ => (pieces * u128::from(blocks)).div_ceil(lightpaths) as u64,
    });
    slots.into_iter().max().unwrap_or(0)
}

/// Returns the quotients of bytes and rates (in bit/s) that bound the time: each as (bytes, rate).
pub(super) fn bytes(fibres: &Fibres, collective: &Collective, size: u64) -> [(u128, u128); 3] {
    use CollectiveKind::{AllToAll, Barrier, ReduceScatter};
    let (size, ranks) = (u128::from(size), u128::from(collective.ranks()));
    let mut quotients = quotients(fibres, collective, |ports| ports.rate)
        .map(|(blocks, rate)| (size * u128::from(blocks), rate));
    let [received, sent, total] = &mut quotients;
    match collective.kind() {
        // Blocks differ by a byte if N does not divide the size. A rank keeps its own block.
        ReduceScatter | AllToAll => {
            received.0 = received.0 / size.max(1) * (size / ranks);
            sent.0 = size - size.div_ceil(ranks);
            total.0 = (ranks - 1) * size;
        }
        Barrier => quotients = [(0, 1); 3],
        _ => {}
    }
    quotients
}

/// Returns the blocks that a rank receives, that a rank sends, and that all ranks together receive,
/// each with the sum of `measure` over the ports that limit them.
fn quotients(
    fibres: &Fibres,
    collective: &Collective,
    measure: fn(&Ports) -> u128,
) -> [(u64, u128); 3] {
    let amounts = amounts(collective);
    let root = collective.root();
    let (received, receiving) = amounts.received;
    let (sent, sending) = amounts.sent;
    let all_receive = match collective.kind() {
        CollectiveKind::Broadcast | CollectiveKind::Scatter => Who::Others,
        _ => Who::All,
    };
    let all_send = match collective.kind() {
        CollectiveKind::Reduce | CollectiveKind::Gather => Who::Others,
        _ => Who::All,
    };
    let mut together = total(all_receive, root, &fibres.receivers, measure);
    if !fibres.has_light_trees {
        together = together.min(total(all_send, root, &fibres.senders, measure));
    }
    [
        (received, least(receiving, root, &fibres.receivers, measure)),
        (sent, least(sending, root, &fibres.senders, measure)),
        (amounts.total, together),
    ]
}
