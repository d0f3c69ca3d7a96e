//! Lightpaths that are requested message by message, for programs that compute between messages.
//!
//! # The model
//!
//! A message from one host to another needs a lightpath in this direction. The lightpath is
//! requested and reserved like the lightpaths of [collectives](super), while the bursts of the
//! settings' source continue. The setup of a granted lightpath takes `setup`. A message takes
//! `latency`, plus the propagation delay of the route, plus its bytes divided by the rate. A
//! lightpath carries one message at a time. Later messages for the same host wait until the
//! lightpath has carried the earlier messages. When no message waits for the lightpath, its release
//! takes the time `teardown`.
//!
//! With k ports, a host has lightpaths to or from at most k other hosts at the same time. If the
//! source or the destination has no free port, the message waits. When ports become free, the
//! waiting lightpaths are requested in the order of their first requests.
//!
//! After its i-th blocked request, a lightpath waits for min(max_back_off, back_off 2^(i-1)) U
//! as in [collectives](super), and occupies neither wavelengths nor ports meanwhile. After more
//! than `retries` blocked requests, the simulation ends with an error that names the hosts. The
//! settings `congestion` and `degrade_after` have no effect, because each lightpath is requested
//! separately.
//!
//! # No deadlock
//!
//! A lightpath that is up waits for no other lightpath: each of its messages ends at a known time,
//! and a program sends finitely many messages. A waiting lightpath occupies nothing. Hence there is
//! no circular wait. A lightpath that waits for ports can be overtaken by lightpaths that need
//! fewer ports, but at most once per message. A blocked lightpath is requested again a limited
//! number of times.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::loaded_network::LoadedNetwork;
use super::path::HeldChannels;
use super::settings::Congestion;
use crate::SimulationError;
use crate::burst::settings::BurstSettings;
use crate::burst::{BurstError, BurstNetwork, BurstWork, check};
use crate::live::{Live, MessageEvent, MessageTimes, ReadyMessage};
use crate::table::Details;
use opticoll_base::event::EventQueue;
use opticoll_base::units::{Bytes, Time};

crate::totals! {
    /// Use of circuits that are set up on request.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct RequestUse {
        /// Number of circuits that were set up.
        pub setups: u64,
        /// Time of setups and releases, summed over circuits.
        pub setup: Time,
        /// Number of circuits that were not granted at the time of their first message's request.
        pub waited: u64,
        /// Time that messages waited for ports and after blocked requests, summed over messages.
        pub waiting: Time,
        /// Maximum number of circuits that were up at the same time.
        pub max_simultaneous: u32,
        /// Number of blocked requests.
        pub blocked: u64,
        /// Number of background bursts that arrived or were lost during the replay.
        pub bursts: u64,
        /// Number of lost bursts.
        pub bursts_lost: u64,
    }
}

/// Source host and destination host of a lightpath.
type HostPair = (u32, u32);

#[derive(Debug, Clone, Copy)]
struct RequestedMessage {
    number: u32,
    bytes: Bytes,
    /// Time of the request in picoseconds, from the start of the engine.
    asked: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RequestEvent {
    /// The wait after a blocked request is over.
    Retry,
    /// The first message of the queue has arrived.
    Arrived,
    /// The wavelengths of the lightpath are free again.
    Released,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum LightpathState {
    /// The lightpath is down, and no message needs it.
    #[default]
    Dark,
    /// The lightpath is requested but waits for ports.
    WaitingForPorts,
    /// The lightpath waits after a blocked request.
    BackingOff,
    /// The lightpath is up and carries the first message of its queue.
    Up,
    /// The lightpath is being released.
    Releasing,
}

/// Lightpath in one direction between two hosts, with its queue of messages.
#[derive(Debug, Default)]
struct RequestedPath {
    state: LightpathState,
    messages: VecDeque<RequestedMessage>,
    blocked: u32,
    /// Serial number of the first request for the current setup of the lightpath.
    order: u64,
    held: HeldChannels,
}

/// Network in which lightpaths are set up on request.
pub struct OnRequest<'a> {
    congestion: &'a Congestion,
    loaded: LoadedNetwork<'a>,
    paths: BTreeMap<HostPair, RequestedPath>,
    /// Number of lightpaths between two hosts that are up or being released: 1 or 2 (one per
    /// direction). The key is (lower host, higher host).
    active_directions: BTreeMap<HostPair, u32>,
    /// Number of occupied ports of each host, indexed by host: the number of other hosts to or from
    /// which the host has lightpaths.
    ports: Vec<u32>,
    /// Lightpaths that wait for a port of a host, indexed by host. A lightpath is given by its
    /// `order` and its two hosts.
    waiting_for_ports: Vec<BTreeSet<(u64, HostPair)>>,
    queue: EventQueue<(HostPair, RequestEvent)>,
    requests: u64,
    active_circuits: u32,
    used: RequestUse,
}

impl<'a> OnRequest<'a> {
    /// Creates a network without messages, and simulates the bursts of the warm-up.
    ///
    /// # Errors
    /// Returns an error if the settings are inconsistent or do not apply to the network.
    pub fn new(
        network: &'a BurstNetwork,
        work: &BurstWork,
        settings: &'a BurstSettings,
        congestion: &'a Congestion,
    ) -> Result<OnRequest<'a>, BurstError> {
        check(network, work, settings)?;
        congestion.check()?;
        let hosts = network.hosts() as usize;
        Ok(OnRequest {
            congestion,
            loaded: LoadedNetwork::new(network, work, settings, congestion, 0)?,
            paths: BTreeMap::new(),
            active_directions: BTreeMap::new(),
            ports: vec![0; hosts],
            waiting_for_ports: vec![BTreeSet::new(); hosts],
            queue: EventQueue::default(),
            requests: 0,
            active_circuits: 0,
            used: RequestUse::default(),
        })
    }
}

impl Live for OnRequest<'_> {
    fn ranks(&self) -> Option<u32> {
        Some(self.loaded.engine.network.hosts())
    }

    fn send(
        &mut self,
        number: u32,
        message: ReadyMessage,
    ) -> Result<Option<MessageTimes>, SimulationError> {
        if let Some(own) = message.local_delivery() {
            return Ok(Some(own));
        }
        let direction = (message.source, message.destination);
        self.loaded
            .run_until(self.loaded.start + message.ready.ps())?;
        let asked = self.loaded.engine.now;
        let path = self.paths.entry(direction).or_default();
        path.messages.push_back(RequestedMessage {
            number,
            bytes: message.bytes,
            asked,
        });
        if path.state == LightpathState::Dark {
            self.begin_request(direction)?;
        }
        Ok(None)
    }

    fn next_time(&mut self) -> Result<Option<Time>, SimulationError> {
        let first = self.queue.next_time();
        Ok(first.map(|at| Time::from_ps(at - self.loaded.start)))
    }

    fn advance(&mut self, happened: &mut Vec<MessageEvent>) -> Result<(), SimulationError> {
        let Some((at, (direction, event))) = self.queue.pop() else {
            return Ok(());
        };
        self.loaded.run_until(at)?;
        match event {
            RequestEvent::Retry => self.request(direction)?,
            RequestEvent::Arrived => {
                let arrived = self.arrive(direction)?;
                let time = self.loaded.elapsed();
                happened.extend(arrived.map(|message| MessageEvent::arrival(message, time)));
            }
            RequestEvent::Released => self.end(direction)?,
        }
        Ok(())
    }

    fn close(self: Box<Self>, _time: Time) -> Result<Details, SimulationError> {
        let bursts = self.loaded.engine.tally.total;
        Ok(Details::default().with(RequestUse {
            bursts: bursts.offered,
            bursts_lost: bursts.lost,
            ..self.used
        }))
    }
}

impl OnRequest<'_> {
    fn put(&mut self, at: Time, direction: HostPair, event: RequestEvent) {
        self.queue.put(at.ps(), (direction, event));
    }

    fn after(&self, duration: Time) -> Result<Time, BurstError> {
        Ok(Time::from_ps(self.loaded.engine.now).plus(duration)?)
    }

    fn begin_request(&mut self, direction: HostPair) -> Result<(), BurstError> {
        self.requests += 1;
        let order = self.requests;
        if let Some(path) = self.paths.get_mut(&direction) {
            (path.order, path.blocked) = (order, 0);
        }
        self.request(direction)
    }

    /// Requests a lightpath, or makes it wait for ports.
    fn request(&mut self, direction: HostPair) -> Result<(), BurstError> {
        let (from, to) = direction;
        let has_port = |host: u32| self.ports[host as usize] < self.congestion.ports;
        let pair_is_active = self.active_directions.contains_key(&pair(direction));
        let ports_available = pair_is_active || (has_port(from) && has_port(to));
        let Some(path) = self.paths.get_mut(&direction) else {
            return Ok(());
        };
        let entry = (path.order, direction);
        if !ports_available {
            path.state = LightpathState::WaitingForPorts;
            for end in [from, to] {
                self.waiting_for_ports[end as usize].insert(entry);
            }
            return Ok(());
        }
        for end in [from, to] {
            self.waiting_for_ports[end as usize].remove(&entry);
        }
        if self.loaded.engine.open(from, to, &mut path.held) {
            return self.grant(direction);
        }
        self.loaded.engine.undo(&mut path.held);
        path.state = LightpathState::BackingOff;
        path.blocked += 1;
        self.used.blocked += 1;
        let blocked = path.blocked;
        if blocked > self.congestion.retries {
            return Err(BurstError::GaveUp {
                hosts: direction,
                tries: blocked,
                at: self.loaded.elapsed(),
            });
        }
        let wait = self.loaded.back_off(blocked);
        let at = self.after(Time::from_ps(wait))?;
        self.put(at, direction, RequestEvent::Retry);
        Ok(())
    }

    fn grant(&mut self, direction: HostPair) -> Result<(), BurstError> {
        let directions = self.active_directions.entry(pair(direction)).or_default();
        *directions += 1;
        if *directions == 1 {
            self.ports[direction.0 as usize] += 1;
            self.ports[direction.1 as usize] += 1;
        }
        let now = self.loaded.engine.now;
        let Congestion {
            setup, teardown, ..
        } = *self.congestion;
        if let Some(path) = self.paths.get_mut(&direction) {
            path.state = LightpathState::Up;
            let asked = path.messages.front().map_or(now, |message| message.asked);
            self.used.waited += u64::from(asked < now);
            self.used.waiting = self.used.waiting.plus(Time::from_ps(now - asked))?;
        }
        self.used.setups += 1;
        self.used.setup = self.used.setup.plus(setup)?.plus(teardown)?;
        self.active_circuits += 1;
        self.used.max_simultaneous = self.used.max_simultaneous.max(self.active_circuits);
        self.carry(direction, setup)?;
        // The lightpath in the opposite direction needs no further port.
        let opposite = (direction.1, direction.0);
        match self.paths.get(&opposite).map(|path| path.state) {
            Some(LightpathState::WaitingForPorts) => self.request(opposite),
            _ => Ok(()),
        }
    }

    /// Sends the first message of a lightpath's queue after the time `after`.
    fn carry(&mut self, direction: HostPair, after: Time) -> Result<(), BurstError> {
        let Some(path) = self.paths.get(&direction) else {
            return Ok(());
        };
        let bytes = path
            .messages
            .front()
            .map_or(Bytes::new(0), |message| message.bytes);
        let propagation_ps = path.held.propagation_ps.iter().sum();
        let time = after
            .plus(self.congestion.latency)?
            .plus(Time::from_ps(propagation_ps))?
            .plus(self.loaded.engine.network.rate().transmission(bytes)?)?;
        let at = self.after(time)?;
        self.put(at, direction, RequestEvent::Arrived);
        Ok(())
    }

    /// Removes the first message of a lightpath's queue, which has arrived. Returns the number of
    /// the message.
    fn arrive(&mut self, direction: HostPair) -> Result<Option<u32>, BurstError> {
        let Some(path) = self.paths.get_mut(&direction) else {
            return Ok(None);
        };
        let arrived = path.messages.pop_front().map(|message| message.number);
        if path.messages.is_empty() {
            path.state = LightpathState::Releasing;
            let at = self.after(self.congestion.teardown)?;
            self.put(at, direction, RequestEvent::Released);
        } else {
            self.carry(direction, Time::ZERO)?;
        }
        Ok(arrived)
    }

    fn end(&mut self, direction: HostPair) -> Result<(), BurstError> {
        let Some(path) = self.paths.get_mut(&direction) else {
            return Ok(());
        };
        self.loaded.engine.release(&mut path.held);
        self.active_circuits -= 1;
        path.state = LightpathState::Dark;
        let messages_wait = !path.messages.is_empty();
        let directions = self.active_directions.entry(pair(direction)).or_default();
        *directions -= 1;
        if *directions == 0 {
            self.active_directions.remove(&pair(direction));
            let ends = [direction.0, direction.1];
            for end in ends {
                self.ports[end as usize] -= 1;
            }
            let waiting = ends.map(|end| &self.waiting_for_ports[end as usize]);
            let waiting: BTreeSet<(u64, HostPair)> =
                waiting.into_iter().flatten().copied().collect();
            for (_, waits) in waiting {
                let state = self.paths.get(&waits).map(|path| path.state);
                if state == Some(LightpathState::WaitingForPorts) {
                    self.request(waits)?;
                }
            }
        }
        match messages_wait {
            true => self.begin_request(direction),
            false => Ok(()),
        }
    }
}

fn pair((from, to): HostPair) -> HostPair {
    (from.min(to), from.max(to))
}
