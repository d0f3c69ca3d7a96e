//! Lightpaths on a ring that are asked for message by message, for programs that compute between
//! messages.
//!
//! A message needs a lightpath from its source to its destination: a channel (a wavelength of a
//! fibre), the same on every link of the shortest way around that is whole and within reach, and with
//! limited ports a transmitter of the source and a receiver of the destination. With converters any free
//! channel of each link does. At equal lengths clockwise comes first. The channel is the first that is
//! free; where there is none the message waits. Whenever a lightpath ends, all that wait are looked at
//! in the order of their asking, and each that finds what it needs goes: a long way does not hold up a
//! short one.
//!
//! A message of n bytes holds its lightpath, after R where that is charged, for
//! `propagation * hops` and its bytes' [transmission](opticoll_fabric::fabric::transmission) with conversion; at the end it
//! has left and arrived.
//!
//! The reconfiguration R is charged by the policy, message by message, as there are no slots here:
//! `every_step`: always. `free`: never. `on_change` and `per_port`: a lightpath stays set when its
//! message has arrived, until its channel on some link, its transmitter or its receiver is needed for
//! another; a message from the same source to the same destination that finds it so pays nothing. A new
//! lightpath takes the first free channel on which nothing stays set along its way, otherwise the first
//! free one. Where ports are limited, what stayed set longest unused goes first.
//!
//! A planned collective holds every channel of the links between the ranks that it spans (of all ranks:
//! of the whole ring), and with limited ports every port of these ranks, for the time of its plan, which
//! contains the plan's own reconfigurations. It waits in the same queue as messages. Lightpaths that
//! stayed set on its links are gone when it begins.

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
    /// What circuits on demand have cost.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct LightPathUse {
        /// How often one was set up.
        pub set_ups: u64,
        /// Time that setting up took, summed over messages.
        pub setting_up: Time,
        /// Messages and planned collectives that had to wait for a channel or a port.
        pub waited: u64,
        /// Time of their waiting, summed.
        pub waiting: Time,
        /// The most circuits that carried data at once.
        pub most_at_once: u32,
    }
}

/// The way of a lightpath: the links `first..first + hops` (mod N) of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RingPath {
    direction: Direction,
    first: u32,
    hops: u32,
}

/// A message that holds a lightpath or waits for one.
#[derive(Debug, Clone, Copy)]
struct PathRequest {
    number: u32,
    source: u32,
    destination: u32,
    bytes: Bytes,
    asked: Time,
}

/// A planned collective that holds its links or waits for them.
#[derive(Debug, Clone, Copy)]
struct CollectiveRequest {
    number: u32,
    planned: PlannedCollective,
    asked: Time,
}

/// What waits for channels or ports.
#[derive(Debug, Clone, Copy)]
enum Request {
    Message(PathRequest),
    Collective(CollectiveRequest),
}

impl Request {
    fn asked(self) -> Time {
        match self {
            Request::Message(PathRequest { asked, .. })
            | Request::Collective(CollectiveRequest { asked, .. }) => asked,
        }
    }
}

/// What holds channels until it ends.
enum Lit {
    /// A lightpath that carries a message; its channel is `None` where converters take any.
    Path {
        message: PathRequest,
        path: RingPath,
        channel: Option<u32>,
    },
    Collective(CollectiveRequest),
}

/// A lightpath that stayed set.
#[derive(Debug, Clone, Copy)]
struct SetPath {
    source: u32,
    destination: u32,
    path: RingPath,
    channel: Option<u32>,
}

/// A ring with lightpaths.
pub struct OnDemand<'a> {
    ring: &'a WdmRing,
    policy: Policy,
    channels: u32,
    /// Per direction, link and channel: whether light is on it.
    taken: Vec<bool>,
    /// Per direction and link: how many channels are taken.
    load: Vec<u32>,
    /// Lightpaths of each rank as a source, and as a destination.
    sending: Vec<u32>,
    receiving: Vec<u32>,
    lit: Vec<Option<Lit>>,
    free_places: Vec<u32>,
    /// When each lightpath ends, by its place.
    ends: EventQueue<u32>,
    begun: u64,
    waiting: Vec<Request>,
    /// What stayed set, by when it was last used.
    kept: BTreeMap<u64, SetPath>,
    used: LightPathUse,
}

impl<'a> OnDemand<'a> {
    /// A dark ring.
    ///
    /// # Errors
    /// A policy of other fabrics.
    pub fn new(ring: &'a WdmRing, policy: Policy) -> Result<OnDemand<'a>, SimulationError> {
        if !Policy::ALL.contains(&policy) {
            let problem = format!(
                "lightpaths on a ring are not set up by the policy {}; use every_step, on_change, per_port or \
                 free",
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
            lit: Vec::new(),
            free_places: Vec::new(),
            ends: EventQueue::default(),
            begun: 0,
            waiting: Vec::new(),
            kept: BTreeMap::new(),
            used: LightPathUse::default(),
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
        if let Some(own) = message.to_itself() {
            return Ok(Some(own));
        }
        let (source, destination) = (message.source, message.destination);
        let request = PathRequest {
            number,
            source,
            destination,
            bytes: message.bytes,
            asked: message.ready,
        };
        if self.channels == 0 || self.paths(source, destination).next().is_none() {
            let problem = format!(
                "no lightpath leads from rank {source} to {destination}: both ways around are cut, beyond the \
                 reach of light or without wavelengths"
            );
            return Err(SimulationError::refused("on_demand", problem));
        }
        self.ask(Request::Message(request), message.ready)?;
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
            asked: now,
        };
        self.ask(Request::Collective(request), now)
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
            let arrived = self.darken(place);
            happened.extend(arrived.map(|message| MessageEvent::arrival(message, now)));
        }
        let waiting = std::mem::take(&mut self.waiting);
        for request in waiting {
            interrupt::check();
            if self.begin(request, now)? {
                self.used.waited += 1;
                let waited = Time::from_ps(now.ps() - request.asked().ps());
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
    /// Begins what is asked for, or lets it wait.
    fn ask(&mut self, request: Request, now: Time) -> Result<(), SimulationError> {
        if !self.begin(request, now)? {
            self.waiting.push(request);
        }
        Ok(())
    }

    /// Begins what is asked for, if there is all it needs.
    fn begin(&mut self, request: Request, now: Time) -> Result<bool, SimulationError> {
        match request {
            Request::Message(message) => self.light(message, now),
            Request::Collective(collective) => self.begin_collective(collective, now),
        }
    }

    /// Begins a planned collective, if no light is on its links and its ports are free.
    fn begin_collective(
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
        self.hold(span, true);
        // The plan sets the ports of its ranks anew, where they are limited.
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
        self.until(end, Lit::Collective(request));
        Ok(true)
    }

    /// Takes every channel and port of a span, or gives them back.
    fn hold(&mut self, span: (u32, u32), taken: bool) {
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

    fn spanned_ranks(&self, (first, count): (u32, u32)) -> impl Iterator<Item = usize> + use<> {
        let ranks = self.ring.ranks;
        (first..first + count).map(move |rank| (rank % ranks) as usize)
    }

    /// The indices in [`OnDemand::load`] of the links between the ranks of a span, both ways.
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

    /// The shortest ways that light can take, clockwise first.
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
            // Links are numbered by the rank at which they start.
            first: match direction {
                Direction::Clockwise => source,
                Direction::CounterClockwise => destination + 1,
            },
            hops: hops(direction),
        })
    }

    /// The indices of a way's links in [`OnDemand::load`].
    fn links(&self, path: RingPath) -> impl Iterator<Item = usize> + use<> {
        let ranks = self.ring.ranks as usize;
        let start = path.direction as usize * ranks;
        let first = path.first as usize;
        (first..first + path.hops as usize).map(move |link| start + link % ranks)
    }

    fn is_free(&self, path: RingPath, channel: u32) -> bool {
        let place = |link: usize| link * self.channels as usize + channel as usize;
        self.links(path).all(|link| !self.taken[place(link)])
    }

    /// Sets up a lightpath for a message and sends it, if there is all it needs.
    fn light(&mut self, message: PathRequest, now: Time) -> Result<bool, SimulationError> {
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
        let found = match self.keeps() {
            true => self.kept_between(source, destination),
            false => None,
        };
        let (path, channel) = match found {
            Some(kept) => (kept.path, kept.channel),
            None => {
                let Some(found) = self.find(source, destination) else {
                    return Ok(false);
                };
                set_up |= self.keeps();
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
        // Light whose wavelength changes on the way may be on any fibre.
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
        self.used.set_ups += u64::from(set_up);
        self.used.setting_up = self.used.setting_up.plus(reconfiguration)?;
        self.occupy(message, path, channel, end);
        Ok(true)
    }

    fn occupy(&mut self, message: PathRequest, path: RingPath, channel: Option<u32>, end: Time) {
        self.change(path, channel, true);
        self.sending[message.source as usize] += 1;
        self.receiving[message.destination as usize] += 1;
        if self.keeps() {
            self.make_room(message.source, message.destination, path, channel);
        }
        let lit = Lit::Path {
            message,
            path,
            channel,
        };
        self.until(end, lit);
    }

    /// Keeps what holds channels until it ends.
    fn until(&mut self, end: Time, lit: Lit) {
        let place = match self.free_places.pop() {
            Some(place) => {
                self.lit[place as usize] = Some(lit);
                place
            }
            None => {
                self.lit.push(Some(lit));
                self.lit.len() as u32 - 1
            }
        };
        self.ends.put(end.ps(), place);
        self.used.most_at_once = self.used.most_at_once.max(self.ends.len() as u32);
    }

    /// Gives back what a message or collective held that has ended; returns its number.
    fn darken(&mut self, place: u32) -> Option<u32> {
        let lit = self.lit[place as usize].take()?;
        self.free_places.push(place);
        let (message, path, channel) = match lit {
            Lit::Path {
                message,
                path,
                channel,
            } => (message, path, channel),
            Lit::Collective(request) => {
                self.hold(request.planned.span, false);
                return Some(request.number);
            }
        };
        self.change(path, channel, false);
        let (source, destination) = (message.source, message.destination);
        self.sending[source as usize] -= 1;
        self.receiving[destination as usize] -= 1;
        if self.keeps() {
            let kept = SetPath {
                source,
                destination,
                path,
                channel,
            };
            self.begun += 1;
            self.kept.insert(self.begun, kept);
        }
        Some(message.number)
    }

    fn change(&mut self, path: RingPath, channel: Option<u32>, taken: bool) {
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

    /// Whether lightpaths stay set.
    fn keeps(&self) -> bool {
        matches!(self.policy, Policy::OnChange | Policy::PerPort)
    }

    /// A way with a free channel.
    fn find(&self, source: u32, destination: u32) -> Option<(RingPath, Option<u32>)> {
        let mut second = None;
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
                    .any(|kept| self.meets(kept, path, Some(channel)))
                {
                    return Some((path, Some(channel)));
                }
                second = second.or(Some((path, Some(channel))));
            }
        }
        second
    }

    /// Whether two lightpaths share a channel of a link.
    fn meets(&self, kept: &SetPath, path: RingPath, channel: Option<u32>) -> bool {
        let ranks = self.ring.ranks;
        let after = |from: u32, to: u32| (to + ranks - from % ranks) % ranks;
        kept.channel == channel
            && kept.path.direction == path.direction
            && (after(kept.path.first, path.first) < kept.path.hops
                || after(path.first, kept.path.first) < path.hops)
    }

    /// Takes what stayed set between two ranks, to be used again.
    fn kept_between(&mut self, source: u32, destination: u32) -> Option<SetPath> {
        let same = |kept: &SetPath| (kept.source, kept.destination) == (source, destination);
        let number = self
            .kept
            .iter()
            .find(|(_, kept)| same(kept))
            .map(|(&number, _)| number)?;
        self.kept.remove(&number)
    }

    /// Drops what stayed set where a new lightpath goes, and, where ports are limited, what was not
    /// used longest until there are ports for the rest.
    fn make_room(&mut self, source: u32, destination: u32, path: RingPath, channel: Option<u32>) {
        if channel.is_some() {
            let mut kept = std::mem::take(&mut self.kept);
            kept.retain(|_, kept| !self.meets(kept, path, channel));
            self.kept = kept;
        } else {
            self.drop_beyond_load(path);
        }
        let Some(ports) = self.ring.ports else {
            return;
        };
        for (rank, lit, end) in [
            (source, self.sending[source as usize], 0),
            (destination, self.receiving[destination as usize], 1),
        ] {
            let of_rank = |kept: &SetPath| [kept.source, kept.destination][end] == rank;
            while self.kept.values().filter(|kept| of_rank(kept)).count() as u32 + lit > ports {
                let oldest = self.kept.iter().find(|(_, kept)| of_rank(kept));
                let Some(oldest) = oldest.map(|(&number, _)| number) else {
                    break;
                };
                self.kept.remove(&oldest);
            }
        }
    }

    /// With converters: drops the oldest of what stayed set on a link that has more than its channels.
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
