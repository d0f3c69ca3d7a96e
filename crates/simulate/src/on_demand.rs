//! Lightpaths on a ring that are set up message by message, for programs that compute between
//! messages.
//!
//! **Requests.** A message needs a lightpath from its source to its destination: a channel (a
//! wavelength of a fibre), the same on every link of a shortest route that has no failed link and
//! is within reach. If ports are limited, the message also needs a transmitter of the source and a
//! receiver of the destination. With converters, each link may use another free channel. Of two
//! routes of equal length, clockwise comes first. The message takes the first free channel; if
//! there is none, it waits. Whenever a lightpath ends, all waiting messages are tried again in the
//! order of their requests, and each message that finds all it needs starts. A long route therefore
//! does not delay a short route.
//!
//! **Duration.** A message of n bytes occupies its lightpath, after the reconfiguration R if the
//! policy charges it, for `propagation * hops` plus the
//! [transmission](opticoll_fabric::fabric::transmission) of its bytes, conversion included. The
//! message departs and arrives at the end of this time.
//!
//! **Policies.** There are no slots here, so R is charged by message. `every_step` always charges
//! it, `free` never. Under `on_change` and `per_port` a lightpath stays set after its message has
//! arrived, until another lightpath needs its channel on some link, its transmitter or its
//! receiver; a message between the same ranks that finds the lightpath set pays nothing. A new
//! lightpath takes the first free channel on which no lightpath stays set along its route,
//! otherwise the first free channel. If ports are limited, the least recently used lightpath is
//! torn down first.
//!
//! **Planned collectives.** A planned collective occupies every channel of the links between the
//! ranks of its span (of all links, if the span has all ranks), and with limited ports every port
//! of these ranks, for the time of its plan, which includes the plan's own reconfigurations. It
//! waits in the same queue as messages. Lightpaths that stayed set on its links are torn down when
//! it starts.

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
    /// Costs of circuits on demand.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct LightpathUse {
        /// Number of circuits that were set up.
        pub setups: u64,
        /// Setup time, summed over messages.
        pub setup: Time,
        /// Number of messages and planned collectives that waited for a channel or a port.
        pub waited: u64,
        /// Time of these waits, summed.
        pub waiting: Time,
        /// Maximum number of circuits that carried data at the same time.
        pub max_simultaneous: u32,
    }
}

/// Route of a lightpath: the links `first..first + hops` (mod N) of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RingPath {
    direction: Direction,
    first: u32,
    hops: u32,
}

/// Message that occupies a lightpath or waits for one.
#[derive(Debug, Clone, Copy)]
struct PathRequest {
    number: u32,
    source: u32,
    destination: u32,
    bytes: Bytes,
    requested_at: Time,
}

/// Planned collective that occupies its links or waits for them.
#[derive(Debug, Clone, Copy)]
struct CollectiveRequest {
    number: u32,
    planned: PlannedCollective,
    requested_at: Time,
}

/// Message or collective that requests channels and ports.
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

/// Message or collective that occupies channels until it ends.
enum Occupant {
    /// Lightpath that carries a message. The channel is `None` on a ring with converters.
    Path {
        message: PathRequest,
        path: RingPath,
        channel: Option<u32>,
    },
    Collective(CollectiveRequest),
}

/// Lightpath that stayed set after its message has arrived.
#[derive(Debug, Clone, Copy)]
struct SetPath {
    source: u32,
    destination: u32,
    path: RingPath,
    channel: Option<u32>,
}

/// Ring whose lightpaths are set up on demand.
pub struct OnDemand<'a> {
    ring: &'a WdmRing,
    policy: Policy,
    /// Number of channels of each link and direction.
    channels: u32,
    /// True if a channel is occupied, by direction, link and channel.
    taken: Vec<bool>,
    /// Number of occupied channels, by direction and link.
    load: Vec<u32>,
    /// Number of lightpaths on which each rank sends.
    sending: Vec<u32>,
    /// Number of lightpaths on which each rank receives.
    receiving: Vec<u32>,
    /// Lightpaths and collectives that occupy channels.
    occupants: Vec<Option<Occupant>>,
    /// Indices of `occupants` without an occupant.
    free_places: Vec<u32>,
    /// Ends of the occupants, which are indices into `occupants`.
    ends: EventQueue<u32>,
    /// Number of lightpaths that have stayed set so far; the next key of `kept`.
    use_count: u64,
    /// Requests in the order of their arrival.
    waiting: Vec<Request>,
    /// Lightpaths that stayed set, in the order in which they were used last.
    kept: BTreeMap<u64, SetPath>,
    used: LightpathUse,
}

impl<'a> OnDemand<'a> {
    /// Creates a ring without lightpaths.
    ///
    /// # Errors
    /// A policy of other fabrics.
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
            taken: vec![false; 2 * ranks * channels as usize],
            load: vec![0; 2 * ranks],
            sending: vec![0; ranks],
            receiving: vec![0; ranks],
            occupants: Vec::new(),
            free_places: Vec::new(),
            ends: EventQueue::default(),
            use_count: 0,
            waiting: Vec::new(),
            kept: BTreeMap::new(),
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
        while let Some((_, place)) = self.ends.pop_until(now.ps()) {
            interrupt::check();
            let arrived = self.release(place);
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
    /// Starts a request, or queues it.
    fn submit(&mut self, request: Request, now: Time) -> Result<(), SimulationError> {
        if !self.start(request, now)? {
            self.waiting.push(request);
        }
        Ok(())
    }

    /// Starts a request if its channels and ports are free; returns whether it started.
    fn start(&mut self, request: Request, now: Time) -> Result<bool, SimulationError> {
        match request {
            Request::Message(message) => self.start_message(message, now),
            Request::Collective(collective) => self.start_collective(collective, now),
        }
    }

    /// Starts a planned collective if its links are dark and its ports free; returns whether it
    /// started.
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
        // The plan changes the circuits of all ports of its ranks, if ports are limited.
        let limited = self.ring.ports.is_some();
        let ranks: Vec<usize> = self.spanned_ranks(span).filter(|_| limited).collect();
        let mut kept = std::mem::take(&mut self.kept);
        kept.retain(|_, kept| {
            let ends = [kept.source, kept.destination];
            let is_free = ends.iter().all(|end| !ranks.contains(&(*end as usize)));
            is_free
                && self
                    .links(kept.path)
                    .all(|link| self.load[link] < self.channels)
        });
        self.kept = kept;
        self.occupy_until(end, Occupant::Collective(request));
        Ok(true)
    }

    /// Occupies or releases every channel and port of a span of ranks.
    fn set_span_occupied(&mut self, span: (u32, u32), taken: bool) {
        let channels = self.channels as usize;
        for link in self.spanned_links(span) {
            self.load[link] = if taken { self.channels } else { 0 };
            self.taken[link * channels..][..channels].fill(taken);
        }
        let Some(ports) = self.ring.ports else {
            return;
        };
        let ports = if taken { ports } else { 0 };
        for rank in self.spanned_ranks(span) {
            (self.sending[rank], self.receiving[rank]) = (ports, ports);
        }
    }

    /// Returns the ranks of a span: the first rank and the number of consecutive ranks.
    fn spanned_ranks(&self, (first, count): (u32, u32)) -> impl Iterator<Item = usize> + use<> {
        let ranks = self.ring.ranks;
        (first..first + count).map(move |rank| (rank % ranks) as usize)
    }

    /// Returns the indices in [`OnDemand::load`] of the links between the ranks of a span, in both
    /// directions.
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

    /// Returns the shortest routes that light can take, clockwise first.
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

    /// Returns the indices in [`OnDemand::load`] of a route's links.
    fn links(&self, path: RingPath) -> impl Iterator<Item = usize> + use<> {
        let ranks = self.ring.ranks as usize;
        let start = path.direction as usize * ranks;
        let first = path.first as usize;
        (first..first + path.hops as usize).map(move |link| start + link % ranks)
    }

    /// Returns whether a channel is free on all links of a route.
    fn is_free(&self, path: RingPath, channel: u32) -> bool {
        let place = |link: usize| link * self.channels as usize + channel as usize;
        self.links(path).all(|link| !self.taken[place(link)])
    }

    /// Sets up a lightpath for a message and sends the message, if a channel and ports are free;
    /// returns whether it was sent.
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
        let mut set_up = self.policy == Policy::EveryStep;
        let found = match self.keeps_lightpaths() {
            true => self.kept_between(source, destination),
            false => None,
        };
        let (path, channel) = match found {
            Some(kept) => (kept.path, kept.channel),
            None => {
                let Some(found) = self.find_channel(source, destination) else {
                    return Ok(false);
                };
                set_up |= self.keeps_lightpaths();
                found
            }
        };
        let reconfiguration = match set_up {
            true => self.ring.reconfiguration,
            false => Time::ZERO,
        };
        let ring = self.ring;
        let span = ring.span(source, destination, path.direction);
        let flight = ring.propagation.times(span.into())?;
        // With converters, the light may use any fibre.
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
        self.used.setups += u64::from(set_up);
        self.used.setup = self.used.setup.plus(reconfiguration)?;
        self.occupy(message, path, channel, end);
        Ok(true)
    }

    /// Occupies a channel and two ports for a message until `end`.
    fn occupy(&mut self, message: PathRequest, path: RingPath, channel: Option<u32>, end: Time) {
        self.set_occupied(path, channel, true);
        self.sending[message.source as usize] += 1;
        self.receiving[message.destination as usize] += 1;
        if self.keeps_lightpaths() {
            self.make_room(message.source, message.destination, path, channel);
        }
        let occupant = Occupant::Path {
            message,
            path,
            channel,
        };
        self.occupy_until(end, occupant);
    }

    /// Stores a lightpath or collective that occupies channels until `end`.
    fn occupy_until(&mut self, end: Time, occupant: Occupant) {
        let place = match self.free_places.pop() {
            Some(place) => {
                self.occupants[place as usize] = Some(occupant);
                place
            }
            None => {
                self.occupants.push(Some(occupant));
                self.occupants.len() as u32 - 1
            }
        };
        self.ends.put(end.ps(), place);
        self.used.max_simultaneous = self.used.max_simultaneous.max(self.ends.len() as u32);
    }

    /// Releases the resources of a message or collective that has ended; returns its number.
    fn release(&mut self, place: u32) -> Option<u32> {
        let occupant = self.occupants[place as usize].take()?;
        self.free_places.push(place);
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
        if self.keeps_lightpaths() {
            let kept = SetPath {
                source,
                destination,
                path,
                channel,
            };
            self.use_count += 1;
            self.kept.insert(self.use_count, kept);
        }
        Some(message.number)
    }

    /// Occupies or releases a channel on the links of a route.
    fn set_occupied(&mut self, path: RingPath, channel: Option<u32>, taken: bool) {
        for link in self.links(path) {
            match taken {
                true => self.load[link] += 1,
                false => self.load[link] -= 1,
            }
            if let Some(channel) = channel {
                self.taken[link * self.channels as usize + channel as usize] = taken;
            }
        }
    }

    /// Returns whether lightpaths stay set under the policy.
    fn keeps_lightpaths(&self) -> bool {
        matches!(self.policy, Policy::OnChange | Policy::PerPort)
    }

    /// Returns a route with a free channel, preferably one on which no lightpath stays set.
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
                    .kept
                    .values()
                    .any(|kept| self.conflicts(kept, path, Some(channel)))
                {
                    return Some((path, Some(channel)));
                }
                fallback = fallback.or(Some((path, Some(channel))));
            }
        }
        fallback
    }

    /// Returns whether a lightpath that stayed set shares a channel of a link with a route and
    /// channel.
    fn conflicts(&self, kept: &SetPath, path: RingPath, channel: Option<u32>) -> bool {
        let ranks = self.ring.ranks;
        let after = |from: u32, to: u32| (to + ranks - from % ranks) % ranks;
        kept.channel == channel
            && kept.path.direction == path.direction
            && (after(kept.path.first, path.first) < kept.path.hops
                || after(path.first, kept.path.first) < path.hops)
    }

    /// Removes and returns the lightpath that stayed set between two ranks.
    fn kept_between(&mut self, source: u32, destination: u32) -> Option<SetPath> {
        let same = |kept: &SetPath| (kept.source, kept.destination) == (source, destination);
        let number = self
            .kept
            .iter()
            .find(|(_, kept)| same(kept))
            .map(|(&number, _)| number)?;
        self.kept.remove(&number)
    }

    /// Tears down the lightpaths that stayed set on the channel of a new lightpath, and the least
    /// recently used ones of its two ranks until there are enough ports.
    fn make_room(&mut self, source: u32, destination: u32, path: RingPath, channel: Option<u32>) {
        if channel.is_some() {
            let mut kept = std::mem::take(&mut self.kept);
            kept.retain(|_, kept| !self.conflicts(kept, path, channel));
            self.kept = kept;
        } else {
            self.drop_beyond_load(path);
        }
        let Some(ports) = self.ring.ports else {
            return;
        };
        for (rank, in_use, end) in [
            (source, self.sending[source as usize], 0),
            (destination, self.receiving[destination as usize], 1),
        ] {
            let of_rank = |kept: &SetPath| [kept.source, kept.destination][end] == rank;
            while self.kept.values().filter(|kept| of_rank(kept)).count() as u32 + in_use > ports {
                let oldest = self.kept.iter().find(|(_, kept)| of_rank(kept));
                let Some(oldest) = oldest.map(|(&number, _)| number) else {
                    break;
                };
                self.kept.remove(&oldest);
            }
        }
    }

    /// Tears down the least recently used lightpaths on links whose lightpaths exceed the channels
    /// of a ring with converters.
    fn drop_beyond_load(&mut self, path: RingPath) {
        for link in self.links(path) {
            loop {
                let on_link: Vec<u64> = self
                    .kept
                    .iter()
                    .filter(|(_, kept)| self.links(kept.path).any(|other| other == link))
                    .map(|(&number, _)| number)
                    .collect();
                if on_link.len() as u32 + self.load[link] <= self.channels {
                    break;
                }
                self.kept.remove(&on_link[0]);
            }
        }
    }
}
