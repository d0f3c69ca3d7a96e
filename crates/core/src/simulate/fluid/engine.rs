//! The clock: messages begin, wait for their latency, share links, end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use super::endpoint::Endpoints;
use super::ledger::{Ledger, bytes_per_ps, to_time};
use super::queue::Queue;
use super::shares::Shares;
use super::{FluidError, Options, Weights};
use crate::network::{Network, Sharing};

/// Classes without flows are kept, for the next flow of the same pair of ranks, up to this many.
const KEPT_CLASSES: usize = 4096;

/// Instants that near to one another are one instant (see [`super`]).
fn window(instant: f64) -> f64 {
    1.0 / 1024.0 + instant / (1u64 << 40) as f64
}

/// A flow that may start.
#[derive(Clone, Copy)]
pub(super) struct Message {
    pub(super) flow: u32,
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) bytes: u64,
    /// Bytes per ps, or infinite.
    pub(super) cap: f64,
    /// The instant from which it may start (ps).
    pub(super) start: f64,
}

/// An end of a message at its sender, its receiver or both.
#[derive(Clone, Copy)]
pub(super) struct Event {
    pub(super) flow: u32,
    pub(super) sent: bool,
    pub(super) received: bool,
}

/// What decides when messages start.
pub(super) trait Program {
    /// Takes the events of an instant and gives the messages that may start now (or later, by
    /// their `start`). `quiet`: nothing is under way. Returns the instant, which it may move on
    /// only when all is quiet.
    fn advance(
        &mut self,
        now: f64,
        events: &[Event],
        quiet: bool,
        ready: &mut Vec<Message>,
        ledger: &mut Ledger,
    ) -> Result<f64, FluidError>;
}

/// Flows of one pair of ranks, all with one weight, hence with one rate.
struct Class {
    pair: (u32, u32),
    weight: f64,
    /// The least rate that is private to each flow: its cap, links that it does not share.
    limit: f64,
    latency: f64,
    /// Links of which each flow has the whole rate.
    unshared: Vec<u32>,
    shared: u32,
    /// Whether every flow of the pair joins it.
    common: bool,
    /// Bytes that a flow of the class has moved since the class got its first flow.
    served: f64,
    since: f64,
    /// Of one flow, bytes per ps.
    rate: f64,
    flowing: f64,
    /// Bytes moved that the links do not know of yet.
    moved: u64,
    /// By the value of `served` at which they end.
    members: BinaryHeap<Reverse<(u64, u32)>>,
    /// Whether its rate must be looked at again.
    stale: bool,
    /// Messages launched and not received, and background flows.
    users: u32,
}

struct UnderWay {
    message: Message,
    class: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Alarm {
    /// The background flow begins or ends.
    Background { index: u32, begins: bool },
    /// A message's start has come.
    Begin(u32),
    /// The sender is free of the message.
    Sent(u32),
    /// The latency is over.
    Join(u32),
    /// The receiver has the message.
    Received(u32),
}

/// An engine between two instants.
pub(super) struct Engine<'a> {
    network: &'a dyn Network,
    options: &'a Options,
    shares: Shares,
    classes: Vec<Class>,
    by_pair: FxHashMap<(u32, u32), u32>,
    keep_limit: usize,
    under_way: Vec<UnderWay>,
    free_places: Vec<u32>,
    active: usize,
    ends: Queue,
    alarms: BinaryHeap<Reverse<(u64, u64, Alarm)>>,
    alarms_set: u64,
    endpoints: Option<Endpoints>,
    stale: Vec<u32>,
    events: Vec<Event>,
    route: Vec<u32>,
    background: Vec<u32>,
    pub(super) ledger: Ledger,
}

impl<'a> Engine<'a> {
    pub(super) fn new(network: &'a dyn Network, options: &'a Options) -> Engine<'a> {
        let capacities = network.links().iter().map(|link| bytes_per_ps(link.rate));
        Engine {
            network,
            options,
            shares: Shares::new(capacities),
            classes: Vec::new(),
            by_pair: FxHashMap::default(),
            keep_limit: KEPT_CLASSES,
            under_way: Vec::new(),
            free_places: Vec::new(),
            active: 0,
            ends: Queue::default(),
            alarms: BinaryHeap::new(),
            alarms_set: 0,
            endpoints: options
                .endpoint
                .map(|model| Endpoints::new(model, network.ranks())),
            stale: Vec::new(),
            events: Vec::new(),
            route: Vec::new(),
            background: vec![u32::MAX; options.background.len()],
            ledger: Ledger::new(network, options.record_flows),
        }
    }

    /// Runs a program to its end.
    pub(super) fn run(&mut self, program: &mut dyn Program) -> Result<(), FluidError> {
        for (index, flow) in (0u32..).zip(&self.options.background) {
            self.set_alarm(
                flow.from.ps() as f64,
                Alarm::Background {
                    index,
                    begins: true,
                },
            );
            if let Some(until) = flow.until {
                self.set_alarm(
                    until.ps() as f64,
                    Alarm::Background {
                        index,
                        begins: false,
                    },
                );
            }
        }
        let mut now = 0.0;
        let (mut ready, mut events, mut classes) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let quiet = self.active == 0;
            now = program.advance(now, &events, quiet, &mut ready, &mut self.ledger)?;
            events.clear();
            for message in ready.drain(..) {
                self.begin(message, now)?;
            }
            if self.events.is_empty() {
                if self.active == 0 {
                    self.end_all_background(now);
                    return Ok(());
                }
                self.settle(now, &mut classes);
                now = self.next_instant(now)?;
                self.ledger.flow_until(now);
                self.ring(now)?;
                self.finish(now, &mut classes)?;
            }
            std::mem::swap(&mut events, &mut self.events);
            events.sort_unstable_by_key(|event| event.flow);
        }
    }

    fn next_instant(&self, now: f64) -> Result<f64, FluidError> {
        let alarm = self
            .alarms
            .peek()
            .map(|Reverse((bits, _, _))| f64::from_bits(*bits));
        let end = self.ends.first();
        let next = match (alarm, end) {
            (Some(alarm), Some(end)) => alarm.min(end),
            (one, other) => one.or(other).unwrap_or(f64::INFINITY),
        };
        to_time(next)?;
        Ok(next.max(now))
    }

    fn set_alarm(&mut self, instant: f64, alarm: Alarm) {
        self.alarms_set += 1;
        self.alarms
            .push(Reverse((instant.to_bits(), self.alarms_set, alarm)));
    }

    /// Carries out every alarm of this instant.
    fn ring(&mut self, now: f64) -> Result<(), FluidError> {
        let limit = (now + window(now)).to_bits();
        while let Some(&Reverse((instant, _, alarm))) = self.alarms.peek() {
            if instant > limit {
                break;
            }
            self.alarms.pop();
            match alarm {
                Alarm::Background {
                    index,
                    begins: true,
                } => self.begin_background(index, now)?,
                Alarm::Background { index, .. } => self.end_background(index, now),
                Alarm::Begin(place) => self.launch(place, now)?,
                Alarm::Join(place) => self.join(place, now)?,
                Alarm::Sent(place) => self.report(place, true, false),
                Alarm::Received(place) => self.deliver(place, now)?,
            }
        }
        Ok(())
    }

    fn report(&mut self, place: u32, sent: bool, received: bool) {
        let flow = self.under_way[place as usize].message.flow;
        self.events.push(Event {
            flow,
            sent,
            received,
        });
    }

    /// A message may start, now or later.
    fn begin(&mut self, message: Message, now: f64) -> Result<(), FluidError> {
        self.active += 1;
        let under_way = UnderWay {
            message,
            class: u32::MAX,
        };
        let place = if let Some(place) = self.free_places.pop() {
            self.under_way[place as usize] = under_way;
            place
        } else {
            self.under_way.push(under_way);
            self.under_way.len() as u32 - 1
        };
        if message.start > now + window(now) {
            self.set_alarm(message.start, Alarm::Begin(place));
            return Ok(());
        }
        self.launch(place, now)
    }

    /// A message starts: what its sender does, then the latency.
    fn launch(&mut self, place: u32, now: f64) -> Result<(), FluidError> {
        let message = self.under_way[place as usize].message;
        let class = self.class_of(&message)?;
        self.under_way[place as usize].class = class;
        self.classes[class as usize].users += 1;
        let latency = self.classes[class as usize].latency;
        let mut join = now + latency;
        if let Some(endpoints) = &mut self.endpoints {
            let (sent, injected) = endpoints.send(&message, now, latency);
            join = injected + latency;
            if let Some(sent) = sent {
                self.set_alarm(sent, Alarm::Sent(place));
            }
        }
        if join > now {
            self.set_alarm(join, Alarm::Join(place));
            return Ok(());
        }
        self.join(place, now)
    }

    /// A message's first bit has arrived: it takes its share.
    fn join(&mut self, place: u32, now: f64) -> Result<(), FluidError> {
        let UnderWay { message, class, .. } = self.under_way[place as usize];
        let state = &mut self.classes[class as usize];
        let bounded = state.shared > 0 || state.limit.is_finite();
        if message.bytes == 0 || !bounded {
            return self.arrive(place, now);
        }
        self.add_member(class, message.bytes as f64, place, now);
        Ok(())
    }

    fn add_member(&mut self, class: u32, bytes: f64, place: u32, now: f64) {
        let state = &mut self.classes[class as usize];
        state.serve(now);
        let first = state.members.is_empty();
        let target = state.served + bytes;
        state.members.push(Reverse((target.to_bits(), place)));
        if first {
            for link in self
                .shares
                .route(class)
                .chain(state.unshared.iter().copied())
            {
                self.ledger.occupy(link, now);
            }
        }
        self.reweigh(class);
    }

    /// Tells the shares how many flows a class has now.
    fn reweigh(&mut self, class: u32) {
        let state = &mut self.classes[class as usize];
        let weight = state.weight * state.members.len() as f64;
        self.shares.set_weight(class, weight);
        if !state.stale {
            state.stale = true;
            self.stale.push(class);
        }
    }

    /// A message's last bit has left the network.
    fn arrive(&mut self, place: u32, now: f64) -> Result<(), FluidError> {
        let message = self.under_way[place as usize].message;
        let Some(endpoints) = &mut self.endpoints else {
            return self.deliver(place, now);
        };
        let received = endpoints.receive(&message, now);
        if !endpoints.is_eager(message.bytes) {
            self.report(place, true, false);
        }
        if received > now {
            self.set_alarm(received, Alarm::Received(place));
            return Ok(());
        }
        self.deliver(place, now)
    }

    /// The receiver has the message.
    fn deliver(&mut self, place: u32, now: f64) -> Result<(), FluidError> {
        let UnderWay { message, class, .. } = self.under_way[place as usize];
        // With an endpoint model, the sender's end has been reported on its own.
        let sent = self.endpoints.is_none();
        self.report(place, sent, true);
        let ends = (message.source, message.destination);
        self.ledger.end(message.flow, ends, message.bytes, now)?;
        self.active -= 1;
        self.free_places.push(place);
        self.leave(class);
        Ok(())
    }

    /// Brings the rates up to date after all starts and ends of an instant.
    fn settle(&mut self, now: f64, changed: &mut Vec<u32>) {
        changed.clear();
        self.shares.settle(changed);
        for &class in changed.iter() {
            self.classes[class as usize].stale = false;
        }
        for at in 0..self.stale.len() {
            let class = self.stale[at];
            if std::mem::take(&mut self.classes[class as usize].stale) {
                changed.push(class);
            }
        }
        self.stale.clear();
        for &class in changed.iter() {
            self.update(class, now);
        }
    }

    /// Takes over a class's rate from the shares.
    fn update(&mut self, class: u32, now: f64) {
        let state = &mut self.classes[class as usize];
        let Some(&Reverse((target, _))) = state.members.peek() else {
            self.ends.remove(class);
            self.ledger.flowing -= state.flowing;
            state.flowing = 0.0;
            return;
        };
        state.serve(now);
        state.rate = if state.shared == 0 {
            state.limit
        } else {
            self.shares.level(class) * state.weight
        };
        let left = f64::from_bits(target) - state.served;
        let end = now + (left / state.rate).max(0.0);
        if end.is_finite() {
            self.ends.set(class, end);
        }
        let flowing = state.rate * f64::from(state.shared) * state.members.len() as f64;
        self.ledger.flowing += flowing - state.flowing;
        state.flowing = flowing;
        if self.ledger.records_flows() {
            let unshared = state.unshared.iter().copied();
            let bottleneck = if state.shared == 0 {
                // The slowest of its own links, unless the flow's cap is slower still.
                let rate = |link: u32| bytes_per_ps(self.network.links()[link as usize].rate);
                unshared.into_iter().find(|&link| rate(link) <= state.limit)
            } else {
                self.shares.bottleneck(class)
            };
            for Reverse((_, place)) in &state.members {
                if let Some(under_way) = self.under_way.get(*place as usize) {
                    let flow = under_way.message.flow;
                    self.ledger.rate(flow, state.rate, bottleneck);
                }
            }
        }
    }

    /// Ends every flow whose last byte moves at this instant.
    fn finish(&mut self, now: f64, classes: &mut Vec<u32>) -> Result<(), FluidError> {
        classes.clear();
        let limit = now + window(now);
        self.ends.take_until(limit, classes);
        classes.sort_unstable();
        for &class in classes.iter() {
            let state = &mut self.classes[class as usize];
            state.serve(now);
            let reach = state.served + (limit - now) * state.rate;
            let mut first = true;
            while let Some(&Reverse((target, place))) = self.classes[class as usize].members.peek()
            {
                if !first && f64::from_bits(target) > reach {
                    break;
                }
                first = false;
                let state = &mut self.classes[class as usize];
                state.members.pop();
                state.moved += self.under_way[place as usize].message.bytes;
                if state.members.is_empty() {
                    self.vacate(class, now);
                }
                self.reweigh(class);
                self.arrive(place, now)?;
            }
        }
        Ok(())
    }

    /// A class has lost its last flow.
    fn vacate(&mut self, class: u32, now: f64) {
        let state = &mut self.classes[class as usize];
        let moved = std::mem::take(&mut state.moved);
        state.served = 0.0;
        state.rate = 0.0;
        self.ledger.flowing -= std::mem::take(&mut state.flowing);
        let state = &self.classes[class as usize];
        for link in self
            .shares
            .route(class)
            .chain(state.unshared.iter().copied())
        {
            self.ledger.vacate(link, now, moved);
        }
    }

    /// The class of a message: that of its pair of ranks, or its own if it has a cap.
    fn class_of(&mut self, message: &Message) -> Result<u32, FluidError> {
        let mut cap = message.cap;
        if let Some(endpoints) = &self.endpoints {
            cap = cap.min(endpoints.rate());
        }
        let pair = (message.source, message.destination);
        if cap.is_infinite()
            && let Some(&class) = self.by_pair.get(&pair)
        {
            return Ok(class);
        }
        if self.by_pair.len() > self.keep_limit {
            self.forget_idle();
        }
        self.new_class(pair, cap, cap.is_infinite())
    }

    fn new_class(&mut self, pair: (u32, u32), cap: f64, common: bool) -> Result<u32, FluidError> {
        self.route.clear();
        self.network.route(pair.0, pair.1, &mut self.route);
        let links = self.network.links();
        if let Some(&link) = self
            .route
            .iter()
            .find(|&&link| link as usize >= links.len())
        {
            return Err(FluidError::Link {
                link,
                source_rank: pair.0,
                destination: pair.1,
            });
        }
        let latency = self
            .route
            .iter()
            .map(|&link| links[link as usize].latency.ps() as f64)
            .sum();
        let mut unshared = Vec::new();
        let mut limit = cap;
        self.route.retain(|&link| {
            let shared = links[link as usize].sharing == Sharing::Shared;
            if !shared {
                unshared.push(link);
                limit = limit.min(bytes_per_ps(links[link as usize].rate));
            }
            shared
        });
        let slowest = self
            .route
            .iter()
            .map(|&link| bytes_per_ps(links[link as usize].rate))
            .fold(f64::INFINITY, f64::min);
        let own_link = if self.route.is_empty() || limit >= slowest {
            f64::INFINITY
        } else {
            limit
        };
        let common = common && own_link.is_infinite();
        let class = self.shares.add_class(&self.route, own_link);
        let state = Class {
            pair,
            weight: match self.options.weights {
                Weights::InverseLatency if latency > 0.0 => 1.0 / latency,
                _ => 1.0,
            },
            limit,
            latency,
            unshared,
            shared: self.route.len() as u32,
            common,
            served: 0.0,
            since: 0.0,
            rate: 0.0,
            flowing: 0.0,
            moved: 0,
            members: BinaryHeap::new(),
            stale: false,
            users: 0,
        };
        if class as usize == self.classes.len() {
            self.classes.push(state);
        } else {
            self.classes[class as usize] = state;
        }
        if common {
            self.by_pair.insert(pair, class);
        }
        Ok(class)
    }

    /// A class has one user less; the last one takes a class that is not common with it.
    fn leave(&mut self, class: u32) {
        let state = &mut self.classes[class as usize];
        state.users -= 1;
        if state.users == 0 && !state.common {
            self.shares.remove_class(class);
        }
    }

    /// Forgets the classes without flows, so that ever new pairs of ranks do not pile up.
    fn forget_idle(&mut self) {
        for class in 0..self.classes.len() as u32 {
            let state = &mut self.classes[class as usize];
            if state.common && state.users == 0 {
                state.common = false;
                self.by_pair.remove(&state.pair);
                self.shares.remove_class(class);
            }
        }
        self.keep_limit = KEPT_CLASSES.max(2 * self.by_pair.len());
    }

    fn begin_background(&mut self, index: u32, now: f64) -> Result<(), FluidError> {
        let flow = &self.options.background[index as usize];
        let cap = flow.rate.map_or(f64::INFINITY, bytes_per_ps);
        let class = self.new_class((flow.source, flow.destination), cap, false)?;
        let state = &mut self.classes[class as usize];
        state.users = 1;
        // Without a link or a cap it would be infinitely fast, and would load nothing.
        if state.shared > 0 || state.limit.is_finite() {
            self.background[index as usize] = class;
            self.add_member(class, f64::INFINITY, u32::MAX, now);
        }
        Ok(())
    }

    fn end_background(&mut self, index: u32, now: f64) {
        let class = std::mem::replace(&mut self.background[index as usize], u32::MAX);
        if class == u32::MAX {
            return;
        }
        let state = &mut self.classes[class as usize];
        state.serve(now);
        state.moved = state.served.round() as u64;
        state.members.clear();
        self.vacate(class, now);
        self.reweigh(class);
        self.leave(class);
    }

    fn end_all_background(&mut self, now: f64) {
        for index in 0..self.background.len() as u32 {
            self.end_background(index, now);
        }
    }
}

impl Class {
    /// Brings the bytes moved up to `now`, at the rate since the last call.
    fn serve(&mut self, now: f64) {
        self.served += self.rate * (now - self.since);
        self.since = now;
    }
}
