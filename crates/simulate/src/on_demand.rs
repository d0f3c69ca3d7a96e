//! Lightpaths that are set up message by message, for programs that compute between messages.
//!
//! **Machine.** A ring and a graph of fibres are both a list of links. Each link has the same
//! number of channels (a channel is a wavelength of a fibre). A route is a list of links. A rank
//! has transmitters and receivers, if the fabric limits their number.
//!
//! **Requests.** A message needs a lightpath from its source to its destination. On a ring, the
//! lightpath takes a shortest route without failed links and within reach. Of two routes of equal
//! length, the simulator tries the clockwise route first. On a graph, the simulator tries the
//! graph's route first, then the other shortest routes in the order of their links. A lightpath
//! uses the same channel on every link; with converters, each link may use another free channel. If
//! each vertex has a limited number of converters, the lightpath changes its channel as rarely as
//! possible. If ports are limited, the message also needs a transmitter of the source and a
//! receiver of the destination. The message uses the first free channel, or waits if there is none.
//! Whenever a lightpath ends, the simulator tries all waiting messages in the order of their
//! requests, and starts each message whose channel and ports are free. A message with a long route
//! therefore does not delay messages with short routes.
//!
//! **Duration.** A message of n bytes occupies its lightpath for the propagation delay of its links
//! plus the [transmission](opticoll_fabric::fabric::transmission) time of n bytes, which includes
//! the conversion. If the policy charges the message, the reconfiguration time R comes first. The
//! message departs and arrives at the end of this time.
//!
//! **Policies.** This simulator has no slots, so it charges R per message. `every_step` charges
//! every message, and `free` charges none. Under `on_change` and `per_port`, a lightpath stays up
//! when its message has arrived. A later message between the same ranks uses this lightpath and is
//! not charged. An idle lightpath is torn down when another lightpath needs its channel on some
//! link, its transmitter, its receiver or its converter. A new lightpath uses the first free
//! channel without idle lightpaths on its route, or else the first free channel. Of several idle
//! lightpaths that could make room, the least recently used lightpath is torn down first.
//!
//! **Planned collectives.** For the time of its plan, a planned collective occupies every channel
//! of its links. On a ring, the collective has a span: consecutive ranks that include the ranks of
//! all its circuits. Its links are the links between the ranks of the span, or all links if the
//! span contains all ranks. On a graph, its links are the links that the plan's light passes. If
//! ports are limited, the collective also occupies every port of its ranks, and if converters are
//! limited, every converter at the ends of its links. The plan's time includes the plan's own
//! reconfigurations. Collectives and messages wait in one queue. A collective tears down the idle
//! lightpaths on its links when it starts.
//!
//! **Pools.** Links, transmitters, receivers and converters are pools: each has a capacity, a
//! number of busy units, and idle lightpaths that hold a unit each. A lightpath needs a unit of
//! each of its pools, and a collective needs its pools as a whole.

mod graph;
mod machine;
mod ring;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::live::{
    Live, MessageEvent, MessageTimes, OccupiedPart, PlannedCollective, ReadyMessage,
};
use super::{Policy, SimulationError};
use crate::light_routes::fewest_changes;
use crate::table::Details;
use graph::GraphMachine;
use machine::{Converters, Machine, Resources, Route};
use opticoll_base::event::EventQueue;
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::family::wdm_graph::WdmGraph;
use opticoll_fabric::family::wdm_ring::WdmRing;
use ring::RingMachine;

crate::totals! {
    /// Costs of circuits that are set up on demand.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct LightpathUse {
        /// Number of circuits that were set up.
        pub setups: u64,
        /// Time to set up circuits, summed over messages.
        pub setup: Time,
        /// Number of messages and planned collectives that waited for a channel or a port.
        pub waited: u64,
        /// Sum of the times for which messages and planned collectives waited.
        pub waiting: Time,
        /// Maximum number of circuits that carried data at the same time.
        pub max_simultaneous: u32,
    }
}

#[derive(Debug, Clone, Copy)]
struct MessageRequest {
    number: u32,
    source: u32,
    destination: u32,
    bytes: Bytes,
    requested_at: Time,
}

#[derive(Debug, Clone)]
struct CollectiveRequest {
    number: u32,
    time: Time,
    /// Pools that the collective occupies as a whole.
    pools: Rc<[u32]>,
    requested_at: Time,
}

#[derive(Debug, Clone)]
enum Request {
    Message(MessageRequest),
    Collective(CollectiveRequest),
}

impl Request {
    fn requested_at(&self) -> Time {
        match self {
            Request::Message(MessageRequest { requested_at, .. })
            | Request::Collective(CollectiveRequest { requested_at, .. }) => *requested_at,
        }
    }
}

/// Lightpath between two ranks.
#[derive(Debug, Clone)]
struct Lightpath {
    destination: u32,
    route: Route,
    /// Channel on each link of the route. Empty with full converters, which need no particular
    /// channel.
    channels: Rc<[u32]>,
    /// Pools of which the lightpath holds a unit: the links of the route, the transmitter, the
    /// receiver, then the converters.
    pools: Rc<[u32]>,
}

/// Message or collective that occupies channels and ports until it ends.
enum Occupant {
    Message(u32, Lightpath),
    Collective(CollectiveRequest),
}

/// Links, or the ports or converters of one place, that lightpaths hold.
#[derive(Debug, Clone)]
struct Pool {
    capacity: u32,
    busy: u32,
    /// Keys of the idle lightpaths that hold a unit each.
    idle: BTreeSet<u64>,
}

/// Capacity of a pool that the fabric does not limit.
const UNLIMITED: u32 = u32::MAX;

/// Lightpath on a channel of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ChannelUse {
    Free,
    Idle,
    Busy,
}

/// Fabric with wavelengths whose lightpaths are set up on demand.
pub struct OnDemand<'a> {
    machine: Box<dyn Machine + 'a>,
    resources: Resources,
    policy: Policy,
    /// Pools of all links, then of the transmitters and the receivers of all ranks, then of the
    /// converters of all vertices.
    pools: Vec<Pool>,
    /// Use of each channel by lightpaths, indexed by link and channel. Collectives occupy whole
    /// links: a channel that is not busy is free only if the pool of its link has room.
    channel_uses: Vec<ChannelUse>,
    /// Messages and collectives that occupy channels; `None` at indices that are free.
    occupants: Vec<Option<Occupant>>,
    /// Indices of `occupants` that are free.
    free_indices: Vec<u32>,
    /// End times of the occupants; an event is an index into `occupants`.
    ends: EventQueue<u32>,
    /// Number of lightpaths that have become idle so far.
    use_count: u64,
    /// Waiting requests, in the order of their arrival.
    waiting: Vec<Request>,
    /// Idle lightpaths, which stayed up when their messages had arrived. The key is the value of
    /// `use_count` when the lightpath became idle.
    idle: BTreeMap<u64, Lightpath>,
    used: LightpathUse,
}

impl<'a> OnDemand<'a> {
    /// Creates a ring without lightpaths.
    ///
    /// # Errors
    /// Returns an error for a policy of other fabrics.
    pub fn new(ring: &'a WdmRing, policy: Policy) -> Result<OnDemand<'a>, SimulationError> {
        OnDemand::of(Box::new(RingMachine(ring)), policy)
    }

    /// Creates a graph of fibres without lightpaths.
    ///
    /// # Errors
    /// Returns an error for a policy of other fabrics.
    pub fn on_graph(graph: &'a WdmGraph, policy: Policy) -> Result<OnDemand<'a>, SimulationError> {
        OnDemand::of(Box::new(GraphMachine::new(graph)), policy)
    }

    fn of(machine: Box<dyn Machine + 'a>, policy: Policy) -> Result<Self, SimulationError> {
        if !Policy::ALL.contains(&policy) {
            let problem = format!(
                "the policy {} does not set up lightpaths on fibres with wavelengths; use \
                 every_step, on_change, per_port or free",
                policy.name()
            );
            return Err(SimulationError::refused("on_demand", problem));
        }
        let resources = machine.resources();
        let (converters, vertices) = match resources.converters {
            Converters::PerVertex { count, vertices } => (count, vertices),
            _ => (UNLIMITED, 0),
        };
        let pools = [
            (resources.links, resources.channels),
            (resources.ranks, resources.transmitters.unwrap_or(UNLIMITED)),
            (resources.ranks, resources.receivers.unwrap_or(UNLIMITED)),
            (vertices, converters),
        ];
        let pools = pools.into_iter().flat_map(|(count, capacity)| {
            let pool = Pool {
                capacity,
                busy: 0,
                idle: BTreeSet::new(),
            };
            std::iter::repeat_n(pool, count as usize)
        });
        let channels = match resources.converters {
            Converters::Full => 0,
            _ => resources.links as usize * resources.channels as usize,
        };
        Ok(OnDemand {
            machine,
            resources,
            policy,
            pools: pools.collect(),
            channel_uses: vec![ChannelUse::Free; channels],
            occupants: Vec::new(),
            free_indices: Vec::new(),
            ends: EventQueue::default(),
            use_count: 0,
            waiting: Vec::new(),
            idle: BTreeMap::new(),
            used: LightpathUse::default(),
        })
    }
}

impl Live for OnDemand<'_> {
    fn ranks(&self) -> Option<u32> {
        Some(self.resources.ranks)
    }

    fn send(
        &mut self,
        number: u32,
        message: ReadyMessage,
    ) -> Result<Option<MessageTimes>, SimulationError> {
        if let Some(times) = message.local_delivery() {
            return Ok(Some(times));
        }
        let (source, destination) = (message.source, message.destination);
        let request = MessageRequest {
            number,
            source,
            destination,
            bytes: message.bytes,
            requested_at: message.ready,
        };
        let has_route = !self.machine.routes(source, destination).is_empty();
        if self.resources.channels == 0 || !has_route {
            let problem = format!(
                "no lightpath leads from rank {source} to {destination}: every route is cut, \
                 beyond the reach of light or without wavelengths"
            );
            return Err(SimulationError::refused("on_demand", problem));
        }
        self.submit(Request::Message(request), message.ready)?;
        Ok(None)
    }

    fn carry_out(
        &mut self,
        number: u32,
        planned: PlannedCollective,
        now: Time,
    ) -> Result<(), SimulationError> {
        let request = CollectiveRequest {
            number,
            time: planned.time,
            pools: self.occupied_pools(&planned.part),
            requested_at: now,
        };
        self.submit(Request::Collective(request), now)
    }

    fn next_time(&mut self) -> Result<Option<Time>, SimulationError> {
        Ok(self.ends.next_time().map(Time::from_ps))
    }

    fn advance(&mut self, happened: &mut Vec<MessageEvent>) -> Result<(), SimulationError> {
        let Some(now) = self.next_time()? else {
            return Ok(());
        };
        while let Some((_, index)) = self.ends.pop_until(now.ps()) {
            interrupt::check();
            let arrived = self.release(index);
            happened.extend(arrived.map(|message| MessageEvent::arrival(message, now)));
        }
        let waiting = std::mem::take(&mut self.waiting);
        for request in waiting {
            interrupt::check();
            if self.start(&request, now)? {
                self.used.waited += 1;
                let waited = Time::from_ps(now.ps() - request.requested_at().ps());
                self.used.waiting = self.used.waiting.plus(waited)?;
            } else {
                self.waiting.push(request);
            }
        }
        Ok(())
    }

    fn close(self: Box<Self>, _time: Time) -> Result<Details, SimulationError> {
        Ok(Details::default().with(self.used))
    }
}

impl OnDemand<'_> {
    fn submit(&mut self, request: Request, now: Time) -> Result<(), SimulationError> {
        if !self.start(&request, now)? {
            self.waiting.push(request);
        }
        Ok(())
    }

    /// Starts a request if its channels and ports are free. Returns whether the request started.
    fn start(&mut self, request: &Request, now: Time) -> Result<bool, SimulationError> {
        match request {
            Request::Message(message) => self.start_message(*message, now),
            Request::Collective(collective) => self.start_collective(collective, now),
        }
    }

    fn transmitter(&self, rank: u32) -> u32 {
        self.resources.links + rank
    }

    fn receiver(&self, rank: u32) -> u32 {
        self.resources.links + self.resources.ranks + rank
    }

    fn converter(&self, vertex: u32) -> u32 {
        self.resources.links + 2 * self.resources.ranks + vertex
    }

    /// Returns the pools that a planned collective occupies: its links, the limited ports of its
    /// ranks, and the limited converters at the ends of its links.
    fn occupied_pools(&self, part: &OccupiedPart) -> Rc<[u32]> {
        let (ranks, links): (Vec<u32>, Vec<u32>) = match part {
            OccupiedPart::Span(first, count) => {
                let ranks = *first..first + count;
                let ranks = ranks.map(|rank| rank % self.resources.ranks);
                (
                    ranks.collect(),
                    self.machine.spanned_links((*first, *count)),
                )
            }
            OccupiedPart::Links { ranks, links } => (ranks.to_vec(), links.to_vec()),
        };
        let ports = ranks.into_iter();
        let ports = ports.flat_map(|rank| [self.transmitter(rank), self.receiver(rank)]);
        let limited = ports.filter(|&port| self.pools[port as usize].capacity < UNLIMITED);
        let vertices: BTreeSet<u32> = match self.resources.converters {
            Converters::PerVertex { .. } => {
                let ends = links.iter().flat_map(|&link| self.machine.ends(link));
                ends.collect()
            }
            _ => BTreeSet::new(),
        };
        let converters = vertices.into_iter().map(|vertex| self.converter(vertex));
        let pools = links.iter().copied().chain(limited).chain(converters);
        pools.collect()
    }

    /// Returns the vertex between two consecutive links of a route. A half-duplex link also leads
    /// from its second end to its first.
    fn vertex_between(&self, before: u32, after: u32) -> u32 {
        let (before, after) = (self.machine.ends(before), self.machine.ends(after));
        match after.contains(&before[1]) {
            true => before[1],
            false => before[0],
        }
    }

    /// Starts a planned collective if its pools are free. Returns whether the collective started.
    fn start_collective(
        &mut self,
        request: &CollectiveRequest,
        now: Time,
    ) -> Result<bool, SimulationError> {
        let pools = request.pools.iter();
        if pools
            .clone()
            .any(|&pool| self.pools[pool as usize].busy > 0)
        {
            return Ok(false);
        }
        let end = now.plus(request.time)?;
        for &pool in pools {
            let pool = &mut self.pools[pool as usize];
            pool.busy = pool.capacity;
        }
        self.tear_down_beyond_capacity(&request.pools);
        self.occupy_until(end, Occupant::Collective(request.clone()));
        Ok(true)
    }

    fn has_room(&self, pool: u32) -> bool {
        let pool = &self.pools[pool as usize];
        pool.busy < pool.capacity
    }

    /// Sends a message if a channel and ports are free. Returns whether the message was sent.
    fn start_message(
        &mut self,
        message: MessageRequest,
        now: Time,
    ) -> Result<bool, SimulationError> {
        let ends = (message.source, message.destination);
        if !self.has_room(self.transmitter(ends.0)) || !self.has_room(self.receiver(ends.1)) {
            return Ok(false);
        }
        let mut setup = self.policy == Policy::EveryStep;
        let lightpath = match self.take_idle_between(ends) {
            Some(idle) => idle,
            None => {
                let Some(lightpath) = self.find_lightpath(ends) else {
                    return Ok(false);
                };
                setup |= self.keeps_lightpaths_up();
                lightpath
            }
        };
        let reconfiguration = match setup {
            true => self.resources.reconfiguration,
            false => Time::ZERO,
        };
        let Lightpath {
            route, channels, ..
        } = &lightpath;
        let time = self.machine.time(ends, route, channels, message.bytes)?;
        let end = now.plus(reconfiguration)?.plus(time)?;
        self.used.setups += u64::from(setup);
        self.used.setup = self.used.setup.plus(reconfiguration)?;
        self.hold(&lightpath);
        self.occupy_until(end, Occupant::Message(message.number, lightpath));
        Ok(true)
    }

    /// Occupies the pools and channels of a lightpath, and tears down the idle lightpaths that are
    /// in its way.
    fn hold(&mut self, lightpath: &Lightpath) {
        self.tear_down_on_channels(lightpath);
        self.set_channels(lightpath, ChannelUse::Busy);
        for &pool in lightpath.pools.iter() {
            self.pools[pool as usize].busy += 1;
        }
        self.tear_down_beyond_capacity(&lightpath.pools);
    }

    fn occupy_until(&mut self, end: Time, occupant: Occupant) {
        let index = match self.free_indices.pop() {
            Some(index) => {
                self.occupants[index as usize] = Some(occupant);
                index
            }
            None => {
                self.occupants.push(Some(occupant));
                self.occupants.len() as u32 - 1
            }
        };
        self.ends.put(end.ps(), index);
        self.used.max_simultaneous = self.used.max_simultaneous.max(self.ends.len() as u32);
    }

    /// Releases the resources of the occupant at an index; returns its message or collective
    /// number.
    fn release(&mut self, index: u32) -> Option<u32> {
        let occupant = self.occupants[index as usize].take()?;
        self.free_indices.push(index);
        let (number, lightpath) = match occupant {
            Occupant::Message(number, lightpath) => (number, lightpath),
            Occupant::Collective(request) => {
                for &pool in request.pools.iter() {
                    self.pools[pool as usize].busy = 0;
                }
                return Some(request.number);
            }
        };
        for &pool in lightpath.pools.iter() {
            self.pools[pool as usize].busy -= 1;
        }
        if self.keeps_lightpaths_up() {
            self.use_count += 1;
            self.set_channels(&lightpath, ChannelUse::Idle);
            for &pool in lightpath.pools.iter() {
                self.pools[pool as usize].idle.insert(self.use_count);
            }
            self.idle.insert(self.use_count, lightpath);
        } else {
            self.set_channels(&lightpath, ChannelUse::Free);
        }
        Some(number)
    }

    fn set_channels(&mut self, lightpath: &Lightpath, channel_use: ChannelUse) {
        for (&link, &channel) in lightpath.route.iter().zip(lightpath.channels.iter()) {
            let index = self.channel_index(link, channel);
            self.channel_uses[index] = channel_use;
        }
    }

    fn channel_index(&self, link: u32, channel: u32) -> usize {
        link as usize * self.resources.channels as usize + channel as usize
    }

    fn keeps_lightpaths_up(&self) -> bool {
        matches!(self.policy, Policy::OnChange | Policy::PerPort)
    }

    /// Returns a lightpath on a route with a free channel, preferably without the channels and
    /// converters of idle lightpaths.
    fn find_lightpath(&mut self, ends: (u32, u32)) -> Option<Lightpath> {
        let routes = self.machine.routes(ends.0, ends.1);
        let has_room = |route: &&Route| route.iter().all(|&link| self.has_room(link));
        let mut with_room = routes.iter().filter(has_room);
        if self.resources.converters == Converters::Full {
            let route = with_room.next()?;
            return Some(self.lightpath(ends, route, Rc::new([])));
        }
        let with_room: Vec<&Route> = with_room.collect();
        let limits = [ChannelUse::Free, ChannelUse::Idle];
        // Without idle lightpaths, the second limit permits the same channels as the first.
        let limits = &limits[..1 + usize::from(!self.idle.is_empty())];
        limits.iter().find_map(|&limit| {
            with_room.iter().find_map(|route| {
                let channels = self.find_channels(route, limit)?;
                Some(self.lightpath(ends, route, channels))
            })
        })
    }

    /// Returns a channel for each link of a route whose use is at most `limit`: the first channel
    /// that all links permit, or with a limited number of converters the fewest changes. The links
    /// must have room.
    fn find_channels(&self, route: &[u32], limit: ChannelUse) -> Option<Rc<[u32]>> {
        let is_free = |hop: usize, channel: u32| {
            self.channel_uses[self.channel_index(route[hop], channel)] <= limit
        };
        let same = |channel: &u32| (0..route.len()).all(|hop| is_free(hop, *channel));
        if let Some(channel) = (0..self.resources.channels).find(same) {
            return Some(vec![channel; route.len()].into());
        }
        if self.resources.converters == Converters::None {
            return None;
        }
        let can_change = |hop: usize| {
            let vertex = self.vertex_between(route[hop - 1], route[hop]);
            let pool = &self.pools[self.converter(vertex) as usize];
            let idle = match limit {
                ChannelUse::Free => pool.idle.len() as u32,
                _ => 0,
            };
            pool.busy + idle < pool.capacity
        };
        let channels = self.resources.channels;
        fewest_changes(channels, route.len(), is_free, can_change).map(Rc::from)
    }

    fn lightpath(&self, ends: (u32, u32), route: &Route, channels: Rc<[u32]>) -> Lightpath {
        let ports = [self.transmitter(ends.0), self.receiver(ends.1)];
        let hops = channels.windows(2).zip(route.windows(2));
        let changes = hops.filter(|(channels, _)| channels[0] != channels[1]);
        let converters = changes.map(|(_, links)| {
            let vertex = self.vertex_between(links[0], links[1]);
            self.converter(vertex)
        });
        let pools = route.iter().copied().chain(ports).chain(converters);
        Lightpath {
            destination: ends.1,
            route: route.clone(),
            pools: pools.collect(),
            channels,
        }
    }

    /// Removes and returns the least recently used idle lightpath between two ranks, if there is
    /// one.
    fn take_idle_between(&mut self, ends: (u32, u32)) -> Option<Lightpath> {
        let mut sent = self.pools[self.transmitter(ends.0) as usize].idle.iter();
        let key = sent.find(|&key| self.idle[key].destination == ends.1);
        key.copied().and_then(|key| self.tear_down(key))
    }

    /// Removes and returns the idle lightpath with a key.
    fn tear_down(&mut self, key: u64) -> Option<Lightpath> {
        let lightpath = self.idle.remove(&key)?;
        for &pool in lightpath.pools.iter() {
            self.pools[pool as usize].idle.remove(&key);
        }
        self.set_channels(&lightpath, ChannelUse::Free);
        Some(lightpath)
    }

    /// Tears down the idle lightpaths on the channels of a new lightpath.
    fn tear_down_on_channels(&mut self, new: &Lightpath) {
        for (&link, &channel) in new.route.iter().zip(new.channels.iter()) {
            if self.channel_uses[self.channel_index(link, channel)] != ChannelUse::Idle {
                continue;
            }
            let on_channel = |key: &&u64| {
                let idle = &self.idle[key];
                let mut hops = idle.route.iter().zip(idle.channels.iter());
                hops.any(|hop| hop == (&link, &channel))
            };
            let key = self.pools[link as usize].idle.iter().find(on_channel);
            if let Some(&key) = key {
                self.tear_down(key);
            }
        }
    }

    /// Tears down the least recently used idle lightpaths of each pool until the pool holds no more
    /// lightpaths than its capacity.
    fn tear_down_beyond_capacity(&mut self, pools: &[u32]) {
        for &pool in pools {
            while let Some(&least_recent) = self.pools[pool as usize].idle.first() {
                let Pool {
                    capacity,
                    busy,
                    ref idle,
                } = self.pools[pool as usize];
                if idle.len() as u64 + u64::from(busy) <= u64::from(capacity) {
                    break;
                }
                self.tear_down(least_recent);
            }
        }
    }
}
