//! Simulation of one replication: event queue, setups, control messages and transmitters.

use std::collections::VecDeque;
use std::ops::Range;

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use super::BurstWork;
use super::channels::{ChannelGroups, Span};
use super::choice::Chooser;
use super::network::BurstNetwork;
use super::outcome::{BurstRecord, ChannelReservation, LossCause, Tally};
use super::routing;
use super::settings::{
    AfterBlocking, BurstRouting, BurstSettings, BurstSource, Converters, Signalling,
};
use super::source::{Generated, Generator, NEVER, ReadyBurst};
use crate::light_routes;
use opticoll_base::event::EventQueue;
use opticoll_base::hash::hash;
use opticoll_base::interrupt;
use opticoll_base::units::Time;

/// State of one replication, which the caller advances.
pub(super) struct BurstEngine<'a> {
    pub(super) network: &'a BurstNetwork,
    pub(super) settings: &'a BurstSettings,
    random: Pcg64Mcg,
    generator: Generator,
    queue: EventQueue<BurstEvent>,
    pub(super) now: u64,
    pub(super) links: ChannelGroups,
    /// Rule of the converters, and their reservations if their number is limited.
    conversion: Converters,
    pub(super) converters: ChannelGroups,
    receivers: Option<ChannelGroups>,
    chooser: Chooser,
    /// Waiting bursts of each host, and whether its transmitter is busy; indexed by host.
    transmitters: Vec<Transmitter>,
    /// Bursts whose control message is on its way. `free_flights` contains the indices of `flights`
    /// that are free.
    flights: Vec<Flight>,
    free_flights: Vec<u32>,
    pub(super) spans: Vec<Span>,
    pub(super) tally: Tally,
    measured_from: u64,
    pub(super) records: Vec<BurstRecord>,
}

#[derive(Default)]
struct Transmitter {
    waiting: VecDeque<ReadyBurst>,
    taken: bool,
}

#[derive(Debug, Clone, Copy)]
enum BurstEvent {
    /// The transmitter of the host has finished sending.
    Sent(u32),
    /// The on/off source of the host starts sending.
    On(u32),
    /// The next node has processed the control message of the flight with this index.
    Control(u32),
    /// The first packet of burst `number` of a pair of hosts has waited for the time-out.
    TimeOut { pair: u32, number: u32 },
}

/// Burst with one-way signalling, whose control message has reached link `hop` of its route.
#[derive(Debug, Clone, Copy)]
struct Flight {
    burst: ReadyBurst,
    record: usize,
    pair: u32,
    route: u32,
    hop: u32,
    /// Time at which the control message was sent, in picoseconds.
    begun: u64,
    /// Time from the control message until the burst is sent, in picoseconds.
    offset: u64,
    /// Sum of the propagation delays of the links before link `hop`, in picoseconds.
    passed: u64,
    wavelength: u32,
    first_wavelength: u32,
}

impl<'a> BurstEngine<'a> {
    pub(super) fn new(
        network: &'a BurstNetwork,
        settings: &'a BurstSettings,
        work: &BurstWork,
        mean_length_ps: u64,
        replication: u32,
    ) -> BurstEngine<'a> {
        let seed = hash(settings.seed).wrapping_add(u64::from(replication));
        let mut random = Pcg64Mcg::seed_from_u64(hash(seed));
        let generator = Generator::new(network, settings, work, mean_length_ps, &mut random);
        // Under JET with processing, a burst with a short route can overtake one with a long route.
        let out_of_order =
            settings.signalling == Signalling::Jet && settings.processing > Time::ZERO;
        let links = network.links().len();
        let channel_groups =
            |groups: u32, per_group| ChannelGroups::new(groups as usize, per_group, true);
        let conversion = settings.converters.unwrap_or(network.converters());
        let converters = match conversion {
            Converters::PerNode(count) => channel_groups(network.vertices(), count),
            _ => channel_groups(0, 0),
        };
        let receivers = [settings.receivers, network.receivers()];
        let receivers = receivers.into_iter().flatten().min();
        let mut engine = BurstEngine {
            network,
            settings,
            random,
            generator,
            queue: EventQueue::default(),
            now: 0,
            links: ChannelGroups::new(links, network.wavelengths(), out_of_order),
            conversion,
            converters,
            receivers: receivers.map(|count| channel_groups(network.hosts(), count)),
            chooser: Chooser::new(settings.assignment, network.wavelengths(), network.nodes()),
            transmitters: Vec::new(),
            flights: Vec::new(),
            free_flights: Vec::new(),
            spans: Vec::new(),
            tally: Tally::new(links, network.nodes(), network.max_hops()),
            measured_from: 0,
            records: Vec::new(),
        };
        engine
            .transmitters
            .resize_with(network.hosts() as usize, Transmitter::default);
        if engine.generator.is_on_off() {
            for host in 0..network.hosts() {
                interrupt::check();
                let pause = engine.generator.pause(&mut engine.random);
                engine.put(pause, BurstEvent::On(host));
            }
        }
        engine
    }

    /// Runs until `bursts` more bursts have arrived or been lost, or no event is left.
    pub(super) fn run(&mut self, bursts: u64) {
        self.proceed(self.tally.total.offered + bursts, NEVER);
    }

    /// Processes all events before the time `instant` (ps), which becomes the current time.
    pub(super) fn run_until(&mut self, instant: u64) {
        self.proceed(u64::MAX, instant);
        self.now = instant;
    }

    fn proceed(&mut self, offered: u64, until: u64) {
        while self.tally.total.offered < offered {
            interrupt::check();
            let listed = self.queue.next_time().unwrap_or(NEVER);
            if listed.min(self.generator.next) >= until {
                return;
            }
            if listed <= self.generator.next {
                if let Some((at, event)) = self.queue.pop() {
                    self.now = at;
                    self.handle(event);
                }
                continue;
            }
            self.now = self.generator.next;
            match self.generator.generate(&mut self.random) {
                Generated::Burst(burst) => self.admit(burst),
                Generated::Started { pair, number, due } => {
                    self.put(due, BurstEvent::TimeOut { pair, number });
                }
                Generated::Nothing => {}
            }
        }
    }

    pub(super) fn begin_measuring(&mut self) {
        self.tally.clear();
        self.measured_from = self.now;
    }

    pub(super) fn measured_ps(&self) -> u64 {
        self.now - self.measured_from
    }

    fn put(&mut self, at: u64, event: BurstEvent) {
        self.queue.put(at, event);
    }

    fn handle(&mut self, event: BurstEvent) {
        match event {
            BurstEvent::Sent(host) => self.serve(host),
            BurstEvent::On(host) => {
                let burst = self.generator.burst_of(host, self.now, &mut self.random);
                let sent = self.send(burst);
                let pause = self.generator.pause(&mut self.random);
                self.put(sent + pause, BurstEvent::On(host));
            }
            BurstEvent::Control(index) => {
                let flight = self.flights[index as usize];
                self.free_flights.push(index);
                self.advance(flight);
            }
            BurstEvent::TimeOut { pair, number } => {
                if let Some(burst) = self.generator.complete(pair, number, self.now) {
                    self.admit(burst);
                }
            }
        }
    }

    /// Sends a ready burst, or appends the burst to the queue of its host's transmitter.
    fn admit(&mut self, burst: ReadyBurst) {
        if self.settings.source != BurstSource::Transmitter {
            self.send(burst);
            return;
        }
        let transmitter = &mut self.transmitters[burst.source as usize];
        transmitter.waiting.push_back(burst);
        if !transmitter.taken {
            self.serve(burst.source);
        }
    }

    /// Sends the next bursts of a host's queue until a burst occupies the transmitter.
    fn serve(&mut self, host: u32) {
        loop {
            interrupt::check();
            let transmitter = &mut self.transmitters[host as usize];
            let Some(burst) = transmitter.waiting.pop_front() else {
                transmitter.taken = false;
                return;
            };
            transmitter.taken = true;
            let sent = self.send(burst);
            if sent > self.now {
                self.put(sent, BurstEvent::Sent(host));
                return;
            }
        }
    }

    /// Sends a burst's control message. Returns the time (ps) from which the transmitter is free.
    fn send(&mut self, burst: ReadyBurst) -> u64 {
        self.tally.sent += 1;
        self.tally.waited_ps += u128::from(self.now - burst.at);
        let network = self.network;
        let nodes = (network.node(burst.source), network.node(burst.destination));
        let pair = nodes.0 * network.nodes() + nodes.1;
        let routes = network.routes(nodes.0, nodes.1);
        let tried = self.tried_routes(routes);
        let (route, links) = (tried.start, &routes[tried.start]);
        let record = self.records.len();
        if self.settings.record {
            self.records.push(BurstRecord {
                ready: Time::from_ps(burst.at),
                sent: Time::from_ps(self.now),
                source: burst.source,
                destination: burst.destination,
                length: Time::from_ps(burst.length),
                route: links.to_vec(),
                reservations: Vec::new(),
                arrived: None,
            });
        }
        if self.settings.signalling == Signalling::TwoWay {
            return self.setup(burst, pair, &routes[tried], record);
        }
        let control = links.len() as u64 * self.settings.processing.ps();
        let offset = control + self.settings.switching.ps() + self.settings.offset.ps();
        self.advance(Flight {
            burst,
            record,
            pair,
            route: route as u32,
            hop: 0,
            begun: self.now,
            offset,
            passed: 0,
            wavelength: 0,
            first_wavelength: 0,
        });
        self.now + offset + burst.length
    }

    /// Returns the indices in `routes` of the routes that the routing rule tries at the current
    /// time, one after another.
    #[inline(always)]
    pub(super) fn tried_routes(&self, routes: &[Box<[u32]>]) -> Range<usize> {
        match self.settings.routing {
            BurstRouting::Fixed => 0..routes.len().min(self.settings.routes as usize),
            BurstRouting::LeastLoaded => {
                let route = routing::least_loaded(routes, &self.links, self.now);
                route..route + 1
            }
        }
    }

    /// Requests one route after another, each of them whole at one instant, until a route is
    /// granted (two-way signalling). Returns the time (ps) from which the transmitter is free. A
    /// blocked burst counts among the bursts of its first route.
    fn setup(&mut self, burst: ReadyBurst, pair: u32, routes: &[Box<[u32]>], record: usize) -> u64 {
        let now = self.now;
        let mut blocked = None;
        for links in routes {
            match self.request(burst, pair, links, record) {
                Ok(sent) => return sent,
                Err(cause) => _ = blocked.get_or_insert(cause),
            }
        }
        self.finish(pair, routes[0].len(), record, blocked);
        match self.settings.blocked {
            AfterBlocking::Silent => now + burst.length,
            AfterBlocking::Next => now,
        }
    }

    /// Requests a route at one instant, and reserves it if it is granted. Returns the time (ps)
    /// from which the transmitter is free, or the cause of the blocking.
    #[inline(always)]
    fn request(
        &mut self,
        burst: ReadyBurst,
        pair: u32,
        links: &[u32],
        record: usize,
    ) -> Result<u64, LossCause> {
        let (now, network) = (self.now, self.network);
        self.spans.clear();
        let mut passed = 0;
        for &link in links {
            self.spans.push(Span {
                group: link,
                from: now,
                until: passed,
            });
            passed += network.links()[link as usize].latency_ps;
        }
        let control = links.len() as u64 * self.settings.processing.ps();
        let sent = now + 2 * (passed + control) + self.settings.switching.ps() + burst.length;
        for span in &mut self.spans {
            span.until += sent;
        }
        let receiver = Span {
            group: burst.destination,
            from: now,
            until: sent + passed,
        };
        let chosen = self.assign_wavelengths(pair)?;
        let number = self.free_receiver(&receiver)?;
        self.reserve_receiver(&receiver, number);
        for hop in 0..links.len() {
            if let Some((at, number)) = self.converter_at(&chosen, hop) {
                self.converters.reserve(&at, number, now);
            }
            self.reserve(self.spans[hop], chosen.at(hop), record);
        }
        if self.settings.record {
            self.records[record].route = links.to_vec();
        }
        self.finish(pair, links.len(), record, None);
        Ok(sent)
    }

    /// Returns a free converter at the start of link `hop` if the wavelength changes there: the
    /// span of the converter's node, and the index of the converter at the node.
    #[inline(always)]
    pub(super) fn converter_at(
        &self,
        chosen: &RouteWavelengths,
        hop: usize,
    ) -> Option<(Span, u32)> {
        if hop == 0 || !matches!(self.conversion, Converters::PerNode(_)) {
            return None;
        }
        let change = chosen.at(hop - 1) != chosen.at(hop);
        let bank =
            change.then(|| routing::converter(self.network, &self.converters, &self.spans[hop]));
        bank.flatten()
    }

    /// Selects wavelengths for the route whose links and times are in `self.spans`, or returns the
    /// cause of the loss. `pair` is source node * nodes + destination node.
    #[inline(always)]
    pub(super) fn assign_wavelengths(&mut self, pair: u32) -> Result<RouteWavelengths, LossCause> {
        let (links, spans) = (&self.links, &self.spans);
        if spans.is_empty() {
            return Ok(RouteWavelengths::Same(0));
        }
        let mut choose = |spans: &[Span]| self.chooser.choose(links, spans, pair, &mut self.random);
        if self.conversion == Converters::Full {
            let each = spans.chunks(1).map(choose);
            let each: Option<Vec<u32>> = each.collect();
            self.chooser
                .learn_route(pair, each.as_ref().map(|each| each[0]));
            return each.map(RouteWavelengths::Each).ok_or(LossCause::Link);
        }
        let same = choose(spans);
        self.chooser.learn_route(pair, same);
        match (same, self.conversion) {
            (Some(wavelength), _) => Ok(RouteWavelengths::Same(wavelength)),
            (None, Converters::PerNode(_)) => {
                let (network, converters) = (self.network, &self.converters);
                let is_free = |hop: usize, wavelength| links.is_free(&spans[hop], wavelength);
                let can_change =
                    |hop: usize| routing::converter(network, converters, &spans[hop]).is_some();
                let wavelengths = network.wavelengths();
                light_routes::fewest_changes(wavelengths, spans.len(), is_free, can_change)
                    .map(RouteWavelengths::Each)
                    .ok_or(LossCause::Converter)
            }
            (None, _) => Err(LossCause::Link),
        }
    }

    /// Reserves the links that the control message has reached by now (one-way signalling).
    fn advance(&mut self, mut flight: Flight) {
        let network = self.network;
        let nodes = network.nodes();
        let routes = network.routes(flight.pair / nodes, flight.pair % nodes);
        let links = &*routes[flight.route as usize];
        let processing = self.settings.processing.ps();
        loop {
            interrupt::check();
            let hop = flight.hop as usize;
            // The last node forwards the burst to the host without processing.
            let worked = (hop + 1).min(links.len()) as u64 * processing;
            let control = flight.begun + worked + flight.passed;
            if control > self.now {
                self.schedule_control(flight, control);
                return;
            }
            let burst_from = flight.begun + flight.offset + flight.passed;
            let span = Span {
                group: links.get(hop).copied().unwrap_or(flight.burst.destination),
                from: match self.settings.signalling {
                    Signalling::Jit => control,
                    _ => burst_from,
                },
                until: burst_from + flight.burst.length,
            };
            if hop == links.len() {
                self.chooser
                    .learn(flight.pair, flight.first_wavelength, true);
                let lost = match self.free_receiver(&span) {
                    Ok(number) => {
                        self.reserve_receiver(&span, number);
                        None
                    }
                    Err(cause) => Some(cause),
                };
                self.end_flight(&flight, links, lost);
                return;
            }
            if let Err(cause) = self.reserve_link(&mut flight, span) {
                self.end_flight(&flight, links, Some(cause));
                return;
            }
            flight.passed += network.links()[links[hop] as usize].latency_ps;
            flight.hop += 1;
        }
    }

    fn schedule_control(&mut self, flight: Flight, until: u64) {
        let index = match self.free_flights.pop() {
            Some(index) => {
                self.flights[index as usize] = flight;
                index
            }
            None => {
                self.flights.push(flight);
                self.flights.len() as u32 - 1
            }
        };
        self.put(until, BurstEvent::Control(index));
    }

    /// Reserves a wavelength of the flight's next link for the time of `span`.
    fn reserve_link(&mut self, flight: &mut Flight, span: Span) -> Result<(), LossCause> {
        let first = flight.hop == 0;
        let is_kept = !first && self.links.is_free(&span, flight.wavelength);
        let wavelength = match self.conversion {
            _ if first => self.assign(span, flight.pair).ok_or(LossCause::Link)?,
            Converters::Full => self.assign(span, flight.pair).ok_or(LossCause::Link)?,
            _ if is_kept => flight.wavelength,
            Converters::None => return Err(LossCause::Link),
            Converters::PerNode(_) => {
                let wavelength = self.assign(span, flight.pair).ok_or(LossCause::Link)?;
                let bank = routing::converter(self.network, &self.converters, &span);
                let (at, number) = bank.ok_or(LossCause::Converter)?;
                self.converters.reserve(&at, number, self.now);
                wavelength
            }
        };
        if first {
            flight.first_wavelength = wavelength;
        }
        flight.wavelength = wavelength;
        self.reserve(span, wavelength, flight.record);
        Ok(())
    }

    fn assign(&mut self, span: Span, pair: u32) -> Option<u32> {
        self.chooser
            .choose(&self.links, &[span], pair, &mut self.random)
    }

    /// Ends a flight (a burst with one-way signalling). If the burst is lost, its earlier
    /// reservations count as wasted.
    fn end_flight(&mut self, flight: &Flight, links: &[u32], lost: Option<LossCause>) {
        let hop = flight.hop as usize;
        if let Some(link) = links.get(hop) {
            self.tally.links[*link as usize].2 += 1;
            if hop > 0 {
                self.chooser
                    .learn(flight.pair, flight.first_wavelength, false);
            }
        }
        let wasted_links = if lost.is_some() { &links[..hop] } else { &[] };
        let processing = self.settings.processing.ps();
        for (before, link) in (1..).zip(wasted_links) {
            let control_lead = match self.settings.signalling {
                Signalling::Jit => flight.offset - before * processing,
                _ => 0,
            };
            self.tally.links[*link as usize].1 += u128::from(flight.burst.length + control_lead);
        }
        self.finish(flight.pair, links.len(), flight.record, lost);
    }

    #[inline]
    fn reserve(&mut self, span: Span, wavelength: u32, record: usize) {
        self.links.reserve(&span, wavelength, self.now);
        self.tally.links[span.group as usize].0 += u128::from(span.until - span.from);
        if self.settings.record {
            self.records[record].reservations.push(ChannelReservation {
                link: span.group,
                wavelength,
                from: Time::from_ps(span.from),
                until: Time::from_ps(span.until),
            });
        }
    }

    fn free_receiver(&self, span: &Span) -> Result<u32, LossCause> {
        match &self.receivers {
            None => Ok(0),
            Some(receivers) => receivers.first_free(span).ok_or(LossCause::Receiver),
        }
    }

    fn reserve_receiver(&mut self, span: &Span, number: u32) {
        if let Some(receivers) = &mut self.receivers {
            receivers.reserve(span, number, self.now);
        }
    }

    /// Counts a burst that has arrived or been lost.
    #[inline]
    fn finish(&mut self, pair: u32, hops: usize, record: usize, lost: Option<LossCause>) {
        self.tally.count(pair, hops, lost);
        if self.settings.record {
            self.records[record].arrived = Some(lost.is_none());
        }
    }
}

/// Wavelengths of a route: one wavelength for all links, or one wavelength per link.
pub(super) enum RouteWavelengths {
    Same(u32),
    Each(Vec<u32>),
}

impl RouteWavelengths {
    #[inline]
    pub(super) fn at(&self, hop: usize) -> u32 {
        match self {
            RouteWavelengths::Same(wavelength) => *wavelength,
            RouteWavelengths::Each(each) => each[hop],
        }
    }
}
