//! WDM ring whose lightpaths are set up message by message, for programs that compute between
//! messages.
//!
//! **Requests.** A message needs a lightpath from its source to its destination. The lightpath
//! takes a shortest route without failed links and within reach. Of two routes of equal length, the
//! simulator tries the clockwise route first. A lightpath uses the same channel (a wavelength of a
//! fibre) on every link; with converters, each link may use another free channel. If ports are
//! limited, the message also needs a transmitter of the source and a receiver of the destination.
//! The message uses the first free channel, or waits if there is none. Whenever a lightpath ends,
//! the simulator tries all waiting messages in the order of their requests, and starts each message
//! whose channel and ports are free. A message with a long route therefore does not delay messages
//! with short routes.
//!
//! **Duration.** A message of n bytes occupies its lightpath for `propagation * hops` plus the
//! [transmission](opticoll_fabric::fabric::transmission) time of n bytes, which includes the
//! conversion. If the policy charges the message, the reconfiguration time R comes first. The
//! message departs and arrives at the end of this time.
//!
//! **Policies.** This simulator has no slots, so it charges R per message. `every_step` charges
//! every message, and `free` charges none. Under `on_change` and `per_port`, a lightpath stays up
//! when its message has arrived. A later message between the same ranks uses this lightpath and is
//! not charged. An idle lightpath is torn down when another lightpath needs its channel on some
//! link, its transmitter or its receiver. A new lightpath uses the first free channel without idle
//! lightpaths on its route, or else the first free channel. If ports are limited, the least
//! recently used lightpath is torn down first.
//!
//! **Planned collectives.** A planned collective has a span: consecutive ranks that include the
//! ranks of all its circuits. For the time of its plan, the collective occupies every channel of
//! the links between the ranks of the span, or of all links if the span contains all ranks. If
//! ports are limited, the collective also occupies every port of these ranks. The plan's time
//! includes the plan's own reconfigurations. Collectives and messages wait in one queue. A
//! collective tears down the idle lightpaths on its links when it starts.

use std::collections::BTreeMap;

use super::live::{Live, MessageEvent, MessageTimes, PlannedCollective, ReadyMessage};
use super::{Policy, SimulationError};
use crate::table::Details;
use opticoll_base::event::EventQueue;
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Circuits;
use opticoll_fabric::fabric::Transmission;
use opticoll_fabric::family::wdm_ring::{Direction, WdmLight, WdmRing};

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

/// Route over the links `first..first + hops` (modulo the number of links) in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RingPath {
    direction: Direction,
    first: u32,
    hops: u32,
}

#[derive(Debug, Clone, Copy)]
struct PathRequest {
    number: u32,
    source: u32,
    destination: u32,
    bytes: Bytes,
    requested_at: Time,
}

#[derive(Debug, Clone, Copy)]
struct CollectiveRequest {
    number: u32,
    planned: PlannedCollective,
    requested_at: Time,
}

#[derive(Debug, Clone, Copy)]
enum Request {
    Message(PathRequest),
    Collective(CollectiveRequest),
}

impl Request {
    fn requested_at(self) -> Time {
        match self {
            Request::Message(PathRequest { requested_at, .. })
            | Request::Collective(CollectiveRequest { requested_at, .. }) => requested_at,
        }
    }
}

/// Message or collective that occupies channels and ports until it ends.
enum Occupant {
    /// Lightpath that carries a message. The channel is `None` on a ring with converters.
    Path {
        message: PathRequest,
        path: RingPath,
        channel: Option<u32>,
    },
    Collective(CollectiveRequest),
}

/// Idle lightpath: it stayed up when its message had arrived.
#[derive(Debug, Clone, Copy)]
struct IdlePath {
    source: u32,
    destination: u32,
    path: RingPath,
    channel: Option<u32>,
}

/// WDM ring whose lightpaths are set up on demand.
pub struct OnDemand<'a> {
    ring: &'a WdmRing,
    policy: Policy,
    /// Number of channels of each link in each direction.
    channels: u32,
    /// True if a channel is occupied; indexed by direction, link and channel.
    occupied: Vec<bool>,
    /// Number of occupied channels; indexed by direction and link.
    load: Vec<u32>,
    /// Number of lightpaths on which each rank sends, indexed by rank.
    sending: Vec<u32>,
    /// Number of lightpaths on which each rank receives, indexed by rank.
    receiving: Vec<u32>,
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
    /// Idle lightpaths. The key is the value of `use_count` when the lightpath became idle.
    idle: BTreeMap<u64, IdlePath>,
    used: LightpathUse,
}

impl<'a> OnDemand<'a> {
    /// Creates a ring without lightpaths.
    ///
    /// # Errors
    /// Returns an error for a policy of other fabrics.
    pub fn new(ring: &'a WdmRing, policy: Policy) -> Result<OnDemand<'a>, SimulationError> {
        if !Policy::ALL.contains(&policy) {
            let problem = format!(
                "the policy {} does not set up lightpaths on a ring; use every_step, on_change, \
                 per_port or free",
                policy.name()
            );
            return Err(SimulationError::refused("on_demand", problem));
        }
        let ranks = ring.ranks as usize;
        let channels = ring.channels();
        Ok(OnDemand {
            ring,
            policy,
            channels,
            occupied: vec![false; 2 * ranks * channels as usize],
            load: vec![0; 2 * ranks],
            sending: vec![0; ranks],
            receiving: vec![0; ranks],
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
        Some(self.ring.ranks)
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
        let request = PathRequest {
            number,
            source,
            destination,
            bytes: message.bytes,
            requested_at: message.ready,
        };
        if self.channels == 0 || self.paths(source, destination).next().is_none() {
            let problem = format!(
                "no lightpath leads from rank {source} to {destination}: both directions around \
                 the ring are cut, beyond the reach of light or without wavelengths"
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
            planned,
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
            if self.start(request, now)? {
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

impl<'a> OnDemand<'a> {
    fn submit(&mut self, request: Request, now: Time) -> Result<(), SimulationError> {
        if !self.start(request, now)? {
            self.waiting.push(request);
        }
        Ok(())
    }

    /// Starts a request if its channels and ports are free. Returns whether the request started.
    fn start(&mut self, request: Request, now: Time) -> Result<bool, SimulationError> {
        match request {
            Request::Message(message) => self.start_message(message, now),
            Request::Collective(collective) => self.start_collective(collective, now),
        }
    }

    /// Starts a planned collective if its links and, if ports are limited, its ports are free.
    /// Returns whether the collective started.
    fn start_collective(
        &mut self,
        request: CollectiveRequest,
        now: Time,
    ) -> Result<bool, SimulationError> {
        let span = request.planned.span;
        let mut ranks = self.spanned_ranks(span);
        let ports_in_use = self.ring.ports.is_some()
            && ranks.any(|rank| self.sending[rank] > 0 || self.receiving[rank] > 0);
        if ports_in_use || self.spanned_links(span).any(|link| self.load[link] > 0) {
            return Ok(false);
        }
        let end = now.plus(request.planned.time)?;
        self.set_span_occupied(span, true);
        // If ports are limited, the plan changes the circuits of all ports of its ranks.
        let limited = self.ring.ports.is_some();
        let ranks: Vec<usize> = self.spanned_ranks(span).filter(|_| limited).collect();
        let mut idle = std::mem::take(&mut self.idle);
        idle.retain(|_, idle| {
            let ends = [idle.source, idle.destination];
            let is_free = ends.iter().all(|end| !ranks.contains(&(*end as usize)));
            is_free
                && self
                    .links(idle.path)
                    .all(|link| self.load[link] < self.channels)
        });
        self.idle = idle;
        self.occupy_until(end, Occupant::Collective(request));
        Ok(true)
    }

    /// Occupies (or releases) every channel and port of consecutive ranks. `span` is the first rank
    /// and the number of ranks.
    fn set_span_occupied(&mut self, span: (u32, u32), occupied: bool) {
        let channels = self.channels as usize;
        for link in self.spanned_links(span) {
            self.load[link] = if occupied { self.channels } else { 0 };
            self.occupied[link * channels..][..channels].fill(occupied);
        }
        let Some(ports) = self.ring.ports else {
            return;
        };
        let ports = if occupied { ports } else { 0 };
        for rank in self.spanned_ranks(span) {
            (self.sending[rank], self.receiving[rank]) = (ports, ports);
        }
    }

    fn spanned_ranks(&self, (first, count): (u32, u32)) -> impl Iterator<Item = usize> + use<> {
        let ranks = self.ring.ranks;
        (first..first + count).map(move |rank| (rank % ranks) as usize)
    }

    /// Returns the links between consecutive ranks, as indices into [`OnDemand::load`]. `first` is
    /// the first rank, and `count` is the number of ranks.
    fn spanned_links(&self, (first, count): (u32, u32)) -> impl Iterator<Item = usize> + use<> {
        let ranks = self.ring.ranks as usize;
        let joints = if count < self.ring.ranks {
            count.saturating_sub(1)
        } else {
            count
        };
        (first..first + joints).flat_map(move |rank| {
            let rank = rank as usize;
            [rank % ranks, ranks + (rank + 1) % ranks]
        })
    }

    /// Returns the shortest routes that a lightpath can take, the clockwise route first.
    fn paths(&self, source: u32, destination: u32) -> impl Iterator<Item = RingPath> + use<'a> {
        let ring = self.ring;
        let possible = move |direction: &Direction| {
            ring.reaches(ring.span(source, destination, *direction))
                && ring.is_whole(source, destination, *direction)
        };
        let directions = Direction::BOTH.into_iter().filter(possible);
        let hops = move |direction| ring.hops(source, destination, direction);
        let least = directions.clone().map(hops).min();
        let shortest = directions.filter(move |&direction| Some(hops(direction)) == least);
        shortest.map(move |direction| RingPath {
            direction,
            // A link has the number of the rank at its counter-clockwise end.
            first: match direction {
                Direction::Clockwise => source,
                Direction::CounterClockwise => destination + 1,
            },
            hops: hops(direction),
        })
    }

    /// Returns the links of a route, as indices into [`OnDemand::load`].
    fn links(&self, path: RingPath) -> impl Iterator<Item = usize> + use<> {
        let ranks = self.ring.ranks as usize;
        let start = path.direction as usize * ranks;
        let first = path.first as usize;
        (first..first + path.hops as usize).map(move |link| start + link % ranks)
    }

    fn is_free(&self, path: RingPath, channel: u32) -> bool {
        let index = |link: usize| link * self.channels as usize + channel as usize;
        self.links(path).all(|link| !self.occupied[index(link)])
    }

    /// Sends a message if a channel and ports are free. Returns whether the message was sent.
    fn start_message(&mut self, message: PathRequest, now: Time) -> Result<bool, SimulationError> {
        let PathRequest {
            source,
            destination,
            ..
        } = message;
        let ports = self.ring.ports.unwrap_or(u32::MAX);
        if self.sending[source as usize] >= ports || self.receiving[destination as usize] >= ports {
            return Ok(false);
        }
        let mut setup = self.policy == Policy::EveryStep;
        let lightpath = match self.keeps_lightpaths_up() {
            true => self.take_idle_between(source, destination),
            false => None,
        };
        let (path, channel) = match lightpath {
            Some(idle) => (idle.path, idle.channel),
            None => {
                let Some(lightpath) = self.find_channel(source, destination) else {
                    return Ok(false);
                };
                setup |= self.keeps_lightpaths_up();
                lightpath
            }
        };
        let reconfiguration = match setup {
            true => self.ring.reconfiguration,
            false => Time::ZERO,
        };
        let ring = self.ring;
        let span = ring.span(source, destination, path.direction);
        let flight = ring.propagation.times(span.into())?;
        // With converters, the lightpath may use any fibre.
        let lights = match channel {
            Some(channel) => vec![WdmLight::from(ring.light(path.direction, channel))],
            None => ring.converted(path.direction).collect(),
        };
        let rates = lights
            .into_iter()
            .map(|light| ring.rate_of(source, destination, light));
        let transmission = Transmission {
            rate: rates.min().unwrap_or(ring.rate),
            ..ring.transmission()
        };
        let flight = flight.plus(transmission.time(message.bytes)?)?;
        let end = now.plus(reconfiguration)?.plus(flight)?;
        self.used.setups += u64::from(setup);
        self.used.setup = self.used.setup.plus(reconfiguration)?;
        self.occupy(message, path, channel, end);
        Ok(true)
    }

    /// Occupies a channel and two ports for a message until time `end`.
    fn occupy(&mut self, message: PathRequest, path: RingPath, channel: Option<u32>, end: Time) {
        self.set_occupied(path, channel, true);
        self.sending[message.source as usize] += 1;
        self.receiving[message.destination as usize] += 1;
        if self.keeps_lightpaths_up() {
            self.tear_down_conflicting(message.source, message.destination, path, channel);
        }
        let occupant = Occupant::Path {
            message,
            path,
            channel,
        };
        self.occupy_until(end, occupant);
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
        let (message, path, channel) = match occupant {
            Occupant::Path {
                message,
                path,
                channel,
            } => (message, path, channel),
            Occupant::Collective(request) => {
                self.set_span_occupied(request.planned.span, false);
                return Some(request.number);
            }
        };
        self.set_occupied(path, channel, false);
        let (source, destination) = (message.source, message.destination);
        self.sending[source as usize] -= 1;
        self.receiving[destination as usize] -= 1;
        if self.keeps_lightpaths_up() {
            let idle = IdlePath {
                source,
                destination,
                path,
                channel,
            };
            self.use_count += 1;
            self.idle.insert(self.use_count, idle);
        }
        Some(message.number)
    }

    /// Occupies (or releases) a channel on a route; with converters, `channel` is `None`.
    fn set_occupied(&mut self, path: RingPath, channel: Option<u32>, occupied: bool) {
        for link in self.links(path) {
            match occupied {
                true => self.load[link] += 1,
                false => self.load[link] -= 1,
            }
            if let Some(channel) = channel {
                self.occupied[link * self.channels as usize + channel as usize] = occupied;
            }
        }
    }

    fn keeps_lightpaths_up(&self) -> bool {
        matches!(self.policy, Policy::OnChange | Policy::PerPort)
    }

    /// Returns a route with a free channel, preferably a channel without idle lightpaths.
    fn find_channel(&self, source: u32, destination: u32) -> Option<(RingPath, Option<u32>)> {
        let mut fallback = None;
        for path in self.paths(source, destination) {
            if self.ring.converters {
                if self.links(path).all(|link| self.load[link] < self.channels) {
                    return Some((path, None));
                }
                continue;
            }
            for channel in (0..self.channels).filter(|&channel| self.is_free(path, channel)) {
                if !self
                    .idle
                    .values()
                    .any(|idle| self.conflicts(idle, path, Some(channel)))
                {
                    return Some((path, Some(channel)));
                }
                fallback = fallback.or(Some((path, Some(channel))));
            }
        }
        fallback
    }

    /// Returns whether an idle lightpath uses `channel` on a link of the route `path`.
    fn conflicts(&self, idle: &IdlePath, path: RingPath, channel: Option<u32>) -> bool {
        let ranks = self.ring.ranks;
        let after = |from: u32, to: u32| (to + ranks - from % ranks) % ranks;
        idle.channel == channel
            && idle.path.direction == path.direction
            && (after(idle.path.first, path.first) < idle.path.hops
                || after(path.first, idle.path.first) < path.hops)
    }

    /// Removes and returns the idle lightpath from `source` to `destination`, if there is one.
    fn take_idle_between(&mut self, source: u32, destination: u32) -> Option<IdlePath> {
        let same = |idle: &IdlePath| (idle.source, idle.destination) == (source, destination);
        let number = self
            .idle
            .iter()
            .find(|(_, idle)| same(idle))
            .map(|(&number, _)| number)?;
        self.idle.remove(&number)
    }

    /// Tears down the idle lightpaths on the channel of a new lightpath (with converters: on links
    /// without a free channel). Then tears down the least recently used idle lightpaths of the two
    /// ranks until there are enough ports.
    fn tear_down_conflicting(
        &mut self,
        source: u32,
        destination: u32,
        path: RingPath,
        channel: Option<u32>,
    ) {
        if channel.is_some() {
            let mut idle = std::mem::take(&mut self.idle);
            idle.retain(|_, idle| !self.conflicts(idle, path, channel));
            self.idle = idle;
        } else {
            self.tear_down_beyond_channels(path);
        }
        let Some(ports) = self.ring.ports else {
            return;
        };
        for (rank, in_use, end) in [
            (source, self.sending[source as usize], 0),
            (destination, self.receiving[destination as usize], 1),
        ] {
            let of_rank = |idle: &IdlePath| [idle.source, idle.destination][end] == rank;
            while self.idle.values().filter(|idle| of_rank(idle)).count() as u32 + in_use > ports {
                let least_recent = self.idle.iter().find(|(_, idle)| of_rank(idle));
                let Some(least_recent) = least_recent.map(|(&number, _)| number) else {
                    break;
                };
                self.idle.remove(&least_recent);
            }
        }
    }

    /// Tears down idle lightpaths on the links of a route, the least recently used first, until no
    /// link has more lightpaths than channels. Only for rings with converters.
    fn tear_down_beyond_channels(&mut self, path: RingPath) {
        for link in self.links(path) {
            loop {
                let on_link: Vec<u64> = self
                    .idle
                    .iter()
                    .filter(|(_, idle)| self.links(idle.path).any(|other| other == link))
                    .map(|(&number, _)| number)
                    .collect();
                if on_link.len() as u32 + self.load[link] <= self.channels {
                    break;
                }
                self.idle.remove(&on_link[0]);
            }
        }
    }
}
