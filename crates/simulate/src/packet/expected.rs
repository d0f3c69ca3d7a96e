//! Estimate of the amount of work of a simulation before the simulation starts.

use super::engine::terminal::chunks_of;
use super::machine::network_of;
use super::{PacketCollective, PacketError, PacketOptions, PacketRouting, PacketWork};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::Fabric;
use opticoll_fabric::network::Network;

/// Expected amount of work. Traffic in addition to a collective is not counted, because nobody
/// knows before the simulation how long the collective lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExpectedWork {
    /// Number of messages.
    pub messages: u64,
    /// Number of chunks of all messages.
    pub chunks: u64,
    /// Approximate number of times that a router forwards a chunk.
    pub forwards: u64,
}

/// Approximate maximum number of routes that the estimate of `forwards` examines. For a collective,
/// the exact maximum is almost twice this number.
const MAX_SAMPLED_ROUTES: u64 = 4096;

/// Returns the expected amount of work. The numbers of messages and chunks are exact if no two
/// transfers of a step have the same source and destination. The number of forwards is estimated
/// from a sample of routes.
///
/// # Errors
/// Returns an error if the fabric has no electrical links or a size exceeds 64 bits.
pub fn expected_work(
    fabric: &Fabric,
    work: &PacketWork<'_>,
    options: &PacketOptions,
) -> Result<ExpectedWork, PacketError> {
    let network = network_of(fabric)?;
    let chunks_of = |bytes| {
        let (packet, chunk) = (options.packet.get(), options.chunk.get());
        chunks_of(bytes, packet.max(1), chunk.max(1))
    };
    let ranks = network.ranks();
    let mut sum = ExpectedWork::default();
    let mut lengths = PathLengths::new(network);
    if let Some(collective) = &work.collective {
        let transfers = collective.schedule.len() as u64;
        let every = (transfers / MAX_SAMPLED_ROUTES).max(1);
        let (mut sampled, mut routers) = (0u64, 0u64);
        for index in 0..collective.schedule.len() {
            interrupt::check();
            let bytes = bytes_of(collective, index)?;
            sum.messages += 1;
            sum.chunks = sum.chunks.saturating_add(chunks_of(bytes));
            if index as u64 % every == 0 {
                let (source, destination) = ends(collective, index);
                if source < ranks && destination < ranks && source != destination {
                    sampled += 1;
                    routers += lengths.routers(source, destination);
                }
            }
        }
        sum.forwards = scaled(sum.chunks, routers, sampled);
    } else {
        for traffic in &work.traffic {
            let messages = u64::from(traffic.messages.unwrap_or(0)) * u64::from(ranks);
            let chunks = messages.saturating_mul(chunks_of(traffic.size.get()));
            // Routes of any pattern are about as long as routes between random pairs of ranks.
            let (mut sampled, mut routers) = (0u64, 0u64);
            let pairs = (0..MAX_SAMPLED_ROUTES.min(u64::from(ranks).pow(2))).map(|draw| {
                let places = opticoll_base::hash::hash(draw);
                let (source, offset) = (places as u32 % ranks, (places >> 32) as u32 % ranks);
                (source, (source + offset) % ranks)
            });
            for (source, destination) in pairs.filter(|(source, other)| source != other) {
                interrupt::check();
                sampled += 1;
                routers += lengths.routers(source, destination);
            }
            sum.messages += messages;
            sum.chunks = sum.chunks.saturating_add(chunks);
            let forwards = scaled(chunks, routers, sampled);
            sum.forwards = sum.forwards.saturating_add(forwards);
        }
    }
    if options.routing != PacketRouting::Minimal {
        // Routes through an intermediate group are up to twice as long; the estimate is the middle.
        sum.forwards = sum.forwards.saturating_mul(3) / 2;
    }
    Ok(sum)
}

fn ends(collective: &PacketCollective<'_>, index: usize) -> (u32, u32) {
    let transfer = collective.schedule.transfer(index);
    let place = |rank: u32| {
        let placed = collective.placement.as_ref();
        placed.map_or(rank, |placed| {
            placed.get(rank as usize).copied().unwrap_or(rank)
        })
    };
    (place(transfer.source), place(transfer.destination))
}

fn bytes_of(collective: &PacketCollective<'_>, index: usize) -> Result<u64, PacketError> {
    let transfer = collective.schedule.transfer(index);
    let whole = collective.schedule.collective;
    Ok(whole
        .range_bytes(collective.size, transfer.chunk, transfer.count)?
        .get())
}

struct PathLengths<'a> {
    network: &'a dyn Network,
    /// Number of routers minus the number of links on a route. The value is -1 if the first and
    /// last link of a route belong to terminals. The value is 1 if ranks are routers, to which the
    /// simulation adds injection and ejection ports.
    extra_routers: i64,
    route: Vec<u32>,
}

impl PathLengths<'_> {
    fn new(network: &dyn Network) -> PathLengths<'_> {
        let ranks = network.ranks();
        let mut leaving = vec![0; ranks as usize];
        for link in 0..network.links().len() as u32 {
            let from = network.ends(link).map_or(u32::MAX, |(from, _)| from);
            if let Some(links) = leaving.get_mut(from as usize) {
                *links += 1;
            }
        }
        let terminals = leaving.iter().all(|links| *links == 1);
        PathLengths {
            network,
            extra_routers: if terminals { -1 } else { 1 },
            route: Vec::new(),
        }
    }

    /// Returns the number of routers on the route between two ranks.
    fn routers(&mut self, source: u32, destination: u32) -> u64 {
        self.route.clear();
        self.network.route(source, destination, &mut self.route);
        self.route
            .len()
            .saturating_add_signed(self.extra_routers as isize) as u64
    }
}

fn scaled(chunks: u64, routers: u64, sampled: u64) -> u64 {
    let forwards = u128::from(chunks) * u128::from(routers) / u128::from(sampled.max(1));
    u64::try_from(forwards).unwrap_or(u64::MAX)
}
