//! Fixed routes on any network, with virtual channels that exclude deadlock.
//!
//! A link *depends* on the next link of each route that contains both links in succession. A
//! depth-first search over this graph determines the *breaks*: the dependencies that lead back to a
//! link that the search has not finished. Without the breaks, the graph has no cycle. A chunk
//! starts on channel 0 and changes to the next channel at every break. Number the links so that
//! every dependency other than a break leads to a higher number, and order the channels of the
//! network by (channel, number of the link). Along a route, the channel rises at each break, and
//! otherwise the number of the link rises. Every chunk therefore follows a single order of all
//! channels, which excludes cyclic waiting (Dally and Seitz 1987). A ring needs two channels. If d
//! dimensions of a torus have four or more places, dimension-order routes need d + 1 channels. The
//! search covers every pair of ranks, so the order is checked and not assumed. Routes that need
//! more than [`MAX_CHANNELS`] channels are refused.
//!
//! If more than one link leads from a rank or to a rank, ranks are routers as well. Then every rank
//! gets an injection port and an ejection port, each as fast as the rank's fastest link.

use super::arena::NONE;
use super::channel::{Chunk, VirtualChannels};
use super::partition::Partition;
use super::port::{PacketPort, port};
use super::routes::{PacketMachine, Routes};
use super::{PacketError, PacketOptions};
use crate::outcome::packets::LinkClass;
use opticoll_base::interrupt;
use opticoll_base::units::Bytes;
use opticoll_fabric::network::Network;

/// Maximum number of virtual channels of a link.
const MAX_CHANNELS: u32 = 16;
/// Maximum number of pairs of ranks whose routes are searched for deadlocks.
const MAX_PAIRS: u64 = 1 << 24;

/// Fixed routes of a network.
#[derive(Clone)]
pub(super) struct PathRoutes<'a> {
    network: &'a dyn Network,
    channels: u32,
    /// Pairs of successive links at which the channel changes, sorted.
    breaks: Vec<(u32, u32)>,
    /// Pairs (injection port, ejection port) that are added to the ports of each rank, indexed by
    /// rank. Empty if links of the network serve as these ports.
    rank_ports: Vec<(u32, u32)>,
    route: Vec<u32>,
    /// Path of each message as pairs (link, channel on this link), indexed by message.
    paths: Vec<Vec<(u32, u32)>>,
}

/// Builds the ports and routes of a network.
pub(super) fn machine<'a>(
    network: &'a dyn Network,
    options: &PacketOptions,
) -> Result<PacketMachine<PathRoutes<'a>>, PacketError> {
    let ranks = network.ranks();
    let count = network.links().len() as u32;
    let mut routes = PathRoutes {
        network,
        channels: 1,
        breaks: Vec::new(),
        rank_ports: Vec::new(),
        route: Vec::new(),
        paths: Vec::new(),
    };
    routes.search(count)?;
    let mut leaving = vec![Vec::new(); ranks as usize];
    let mut coming = vec![Vec::new(); ranks as usize];
    for link in 0..count {
        let (from, to) = network.ends(link).ok_or(PacketError::Ends { link })?;
        if let Some(links) = leaving.get_mut(from as usize) {
            links.push(link);
        }
        if let Some(links) = coming.get_mut(to as usize) {
            links.push(link);
        }
    }
    let direct = leaving.iter().chain(&coming).all(|links| links.len() == 1);
    let mut ports = Vec::new();
    for link in 0..count {
        let (from, to) = network.ends(link).ok_or(PacketError::Ends { link })?;
        let class = match (direct && from < ranks, direct && to < ranks) {
            (true, true) => {
                return Err(PacketError::Link {
                    link: network.link_name(link),
                    problem: "joins two ranks without a router between",
                });
            }
            (true, false) => LinkClass::Injection,
            (false, true) => LinkClass::Ejection,
            (false, false) => LinkClass::Local,
        };
        ports.push(port(network, link, class, to, options)?);
    }
    let mut rates: Vec<u64> = network
        .links()
        .iter()
        .map(|link| link.rate.bits_per_second())
        .collect();
    let mut injection: Vec<u32> = leaving
        .iter()
        .filter_map(|links| links.first())
        .copied()
        .collect();
    let mut rank_ports = Vec::new();
    if !direct {
        injection.clear();
        for (rank, (out, into)) in (0..).zip(leaving.iter().zip(&coming)) {
            rank_ports.push((ports.len() as u32, ports.len() as u32 + 1));
            injection.push(ports.len() as u32);
            for (links, class) in [(out, LinkClass::Injection), (into, LinkClass::Ejection)] {
                let fastest = links
                    .iter()
                    .max_by_key(|&&link| network.links()[link as usize].rate.bits_per_second());
                let &fastest = fastest.ok_or(PacketError::Unreachable { rank })?;
                let link = network.links()[fastest as usize];
                let wire = link.rate.transmission(Bytes::new(options.chunk.get()))?;
                ports.push(PacketPort::new(class, rank, wire.ps(), 0));
                rates.push(link.rate.bits_per_second());
            }
        }
    }
    routes.rank_ports = rank_ports;
    if let Some(most) = options.virtual_channels {
        routes.channels = routes.channels.min(most);
    }
    let partition = Partition::whole(ranks as usize, ports.len());
    Ok(PacketMachine {
        routes,
        ports,
        injection,
        rates,
        partition,
    })
}

impl PathRoutes<'_> {
    /// Computes `breaks`, where routes change the channel, and the number of channels needed.
    fn search(&mut self, links: u32) -> Result<(), PacketError> {
        let ranks = self.network.ranks();
        let pairs = u64::from(ranks) * u64::from(ranks.saturating_sub(1));
        if pairs > MAX_PAIRS {
            return Err(PacketError::Option {
                option: "the fabric",
                problem: format!(
                    "has {pairs} pairs of ranks; at most {MAX_PAIRS} are searched for deadlocks"
                ),
            });
        }
        let mut next: Vec<Vec<u32>> = vec![Vec::new(); links as usize];
        let mut route = Vec::new();
        for (source, destination) in all_pairs(ranks) {
            interrupt::check();
            route.clear();
            self.network.route(source, destination, &mut route);
            self.check_route(source, destination, &route)?;
            for hop in route.windows(2) {
                let after = &mut next[hop[0] as usize];
                if !after.contains(&hop[1]) {
                    after.push(hop[1]);
                }
            }
        }
        self.breaks = back_edges(&next);
        let mut needed = 1;
        for (source, destination) in all_pairs(ranks) {
            interrupt::check();
            route.clear();
            self.network.route(source, destination, &mut route);
            let breaks = route.windows(2).filter(|hop| self.is_break(hop[0], hop[1]));
            needed = needed.max(1 + breaks.count() as u32);
        }
        if needed > MAX_CHANNELS {
            return Err(PacketError::Channels {
                needed,
                most: MAX_CHANNELS,
            });
        }
        self.channels = needed;
        Ok(())
    }

    /// Checks that a route leads from `source` to `destination` along the direction of each link.
    fn check_route(&self, source: u32, destination: u32, route: &[u32]) -> Result<(), PacketError> {
        let mut at = source;
        for &link in route {
            let (from, to) = self.network.ends(link).ok_or(PacketError::Ends { link })?;
            if from != at {
                return Err(PacketError::Link {
                    link: self.network.link_name(link),
                    problem: "is used backwards; half-duplex links are not simulated packet by \
                              packet",
                });
            }
            at = to;
        }
        if at != destination {
            return Err(PacketError::Unreachable { rank: destination });
        }
        Ok(())
    }

    fn is_break(&self, link: u32, next: u32) -> bool {
        self.breaks.binary_search(&(link, next)).is_ok()
    }
}

fn all_pairs(ranks: u32) -> impl Iterator<Item = (u32, u32)> {
    let pairs = move |source| (0..ranks).map(move |destination| (source, destination));
    (0..ranks)
        .flat_map(pairs)
        .filter(|(source, destination)| source != destination)
}

/// Returns the edges of a graph that lead back to an unfinished vertex of a depth-first search,
/// sorted. `next` contains the successors of each vertex.
fn back_edges(next: &[Vec<u32>]) -> Vec<(u32, u32)> {
    #[derive(Clone, Copy, PartialEq)]
    enum VisitState {
        New,
        Open,
        Done,
    }
    let mut state = vec![VisitState::New; next.len()];
    let mut back = Vec::new();
    let mut path: Vec<(u32, usize)> = Vec::new();
    for start in 0..next.len() as u32 {
        interrupt::check();
        if state[start as usize] == VisitState::New {
            state[start as usize] = VisitState::Open;
            path.push((start, 0));
        }
        while let Some((vertex, edge)) = path.last_mut() {
            interrupt::check();
            let Some(&to) = next[*vertex as usize].get(*edge) else {
                state[*vertex as usize] = VisitState::Done;
                path.pop();
                continue;
            };
            *edge += 1;
            match state[to as usize] {
                VisitState::Open => back.push((*vertex, to)),
                VisitState::New => {
                    state[to as usize] = VisitState::Open;
                    path.push((to, 0));
                }
                VisitState::Done => {}
            }
        }
    }
    back.sort_unstable();
    back
}

impl Routes for PathRoutes<'_> {
    fn begin(&mut self, message: u32, source: u32, destination: u32) {
        let message = message as usize;
        if self.paths.len() <= message {
            self.paths.resize(message + 1, Vec::new());
        }
        let mut route = std::mem::take(&mut self.route);
        route.clear();
        self.network.route(source, destination, &mut route);
        let mut path = std::mem::take(&mut self.paths[message]);
        path.clear();
        if let Some(&(into, _)) = self.rank_ports.get(source as usize) {
            path.push((into, 0));
        }
        let (mut channel, mut last) = (0, NONE);
        for &link in &route {
            channel += u32::from(last != NONE && self.is_break(last, link));
            last = link;
            path.push((link, channel.min(self.channels - 1)));
        }
        if let Some(&(_, out)) = self.rank_ports.get(destination as usize) {
            path.push((out, 0));
        }
        self.paths[message] = path;
        self.route = route;
    }

    fn next(
        &self,
        chunk: &mut Chunk,
        _router: u32,
        _channels: &mut VirtualChannels,
        _now: u64,
    ) -> (u32, u32) {
        chunk.routers += 1;
        self.paths[chunk.message as usize][usize::from(chunk.routers)]
    }

    fn predicted_link(&self, chunk: &Chunk) -> u32 {
        self.paths[chunk.message as usize][usize::from(chunk.routers) + 1].0
    }

    fn channels(&self) -> u32 {
        self.channels
    }
}
