//! Event loop of the flow simulator: messages start, wait for latencies, share links and end.

use std::rc::Rc;

use super::classes::Classes;
use super::conversion::{bytes_per_ps, to_time};
use super::endpoint::Endpoints;
use super::ledger::FlowLedger;
use super::meter::LinkMeter;
use super::program::{FlowEnd, FlowProgram, FlowStart};
use super::quotient_network::Quotient;
use super::{FlowOptions, FluidError};
use opticoll_base::event::EventQueue;
use opticoll_base::interrupt;
use opticoll_fabric::network::Network;
use opticoll_plan::plan::NamedRoutes;
use opticoll_plan::plan::routes::FABRIC_ROUTE;

/// Returns the length (ps) of the window after `instant` in which events count as simultaneous, as
/// described in [`super`].
fn window(instant: f64) -> f64 {
    1.0 / 1024.0 + instant / (1u64 << 40) as f64
}

struct UnderWay {
    message: FlowStart,
    class: u32,
}

/// Event whose instant is known in advance. Messages are given by their indices in `under_way`.
#[derive(Clone, Copy)]
enum Alarm {
    /// Start or end of a background flow.
    Background { index: u32, begins: bool },
    /// Start of a message.
    Begin(u32),
    /// End of the message at its sender.
    Sent(u32),
    /// End of the message's latency.
    Join(u32),
    /// End of the message at its receiver.
    Received(u32),
}

/// State of the flow simulator between two instants.
pub(super) struct FluidEngine<'a> {
    options: Rc<FlowOptions>,
    /// True if routes are looked up by the index of a flow instead of its ranks, as in a
    /// [`Quotient`].
    routes_by_flow: bool,
    classes: Classes<'a>,
    under_way: Vec<UnderWay>,
    free_places: Vec<u32>,
    active: usize,
    alarms: EventQueue<Alarm>,
    endpoints: Option<Endpoints>,
    pub(super) events: Vec<FlowEnd>,
    /// Class of each background flow; `u32::MAX` if the flow is not under way.
    background: Vec<u32>,
    pub(super) ledger: FlowLedger,
}

impl<'a> FluidEngine<'a> {
    pub(super) fn new(
        network: &'a dyn Network,
        options: &FlowOptions,
    ) -> Result<FluidEngine<'a>, FluidError> {
        FluidEngine::over(network, None, options)
    }

    /// Creates an engine that simulates a quotient: one flow for each set of equivalent flows
    /// ([`super::quotient`]).
    pub(super) fn for_quotient(
        quotient: &'a Quotient,
        options: &FlowOptions,
    ) -> Result<FluidEngine<'a>, FluidError> {
        FluidEngine::over(quotient, Some(quotient), options)
    }

    fn over(
        network: &'a dyn Network,
        quotient: Option<&'a Quotient>,
        options: &FlowOptions,
    ) -> Result<FluidEngine<'a>, FluidError> {
        let links = network.links().len();
        let meter = options.link_bin.map(|bin| LinkMeter::new(links, bin));
        Ok(FluidEngine {
            options: Rc::new(options.clone()),
            routes_by_flow: quotient.is_some(),
            classes: Classes::new(network, quotient, options.weights),
            under_way: Vec::new(),
            free_places: Vec::new(),
            active: 0,
            alarms: EventQueue::default(),
            endpoints: options
                .endpoint
                .map(|model| Endpoints::new(model, network.ranks())),
            events: Vec::new(),
            background: vec![u32::MAX; options.background.len()],
            ledger: FlowLedger::new(network, options.record_flows, meter.transpose()?),
        })
    }

    pub(super) fn take_routes(&mut self, routes: &NamedRoutes) {
        self.classes.take_routes(routes);
    }

    /// Schedules the starts and ends of the background traffic.
    pub(super) fn announce_background(&mut self) {
        let options = Rc::clone(&self.options);
        for (index, flow) in (0u32..).zip(&options.background) {
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
    }

    /// Runs a program until all flows have ended.
    pub(super) fn run(&mut self, program: &mut dyn FlowProgram) -> Result<(), FluidError> {
        self.announce_background();
        let mut now = 0.0;
        let (mut ready, mut events, mut ended) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            interrupt::check();
            let quiet = self.active == 0;
            now = program.advance(now, &events, quiet, &mut ready, &mut self.ledger)?;
            events.clear();
            for message in ready.drain(..) {
                interrupt::check();
                self.begin(message, now)?;
            }
            // Frees the memory of a step with many messages.
            ready.shrink_to(1 << 12);
            if self.events.is_empty() {
                if self.active == 0 {
                    self.end_all_background(now);
                    return Ok(());
                }
                now = self.next_instant(now)?;
                self.options.check_limit(now)?;
                self.move_to(now, &mut ended)?;
            }
            std::mem::swap(&mut events, &mut self.events);
            events.sort_unstable_by_key(|event| event.flow);
        }
    }

    /// Returns the instant (ps) of the next event at the present rates, or infinity if there is
    /// none.
    pub(super) fn next_instant(&mut self, now: f64) -> Result<f64, FluidError> {
        self.settle(now);
        let alarm = self.alarms.next_time().map(f64::from_bits);
        let end = self.classes.next_end();
        let next = match (alarm, end) {
            (Some(alarm), Some(end)) => alarm.min(end),
            (one, other) => one.or(other).unwrap_or(f64::INFINITY),
        };
        if self.active > 0 {
            to_time(next)?;
        }
        Ok(next.max(now))
    }

    /// Advances the clock to the instant `now` (ps) and handles the events of this instant.
    pub(super) fn move_to(&mut self, now: f64, ended: &mut Vec<u32>) -> Result<(), FluidError> {
        self.ledger.flow_until(now);
        self.handle_alarms(now)?;
        self.finish(now, ended)
    }

    fn set_alarm(&mut self, instant: f64, alarm: Alarm) {
        self.alarms.put(instant.to_bits(), alarm);
    }

    fn handle_alarms(&mut self, now: f64) -> Result<(), FluidError> {
        let limit = (now + window(now)).to_bits();
        while let Some((_, alarm)) = self.alarms.pop_until(limit) {
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

    /// Reports that a message has ended at its sender, its receiver or both.
    fn report(&mut self, place: u32, sent: bool, received: bool) {
        let flow = self.under_way[place as usize].message.flow;
        self.events.push(FlowEnd {
            flow,
            sent,
            received,
        });
    }

    /// Accepts a message that starts at `message.start`, which may be later than `now` (ps).
    pub(super) fn begin(&mut self, message: FlowStart, now: f64) -> Result<(), FluidError> {
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

    /// Starts a message: applies the costs at its sender, then the latency of its route.
    fn launch(&mut self, place: u32, now: f64) -> Result<(), FluidError> {
        let message = self.under_way[place as usize].message;
        let mut cap = message.cap;
        if let Some(endpoints) = &self.endpoints {
            cap = cap.min(endpoints.rate());
        }
        let pair = match (message.route, self.routes_by_flow) {
            (FABRIC_ROUTE, false) => (message.source, message.destination),
            (FABRIC_ROUTE, true) => (message.flow, message.flow),
            (route, _) => (route, FABRIC_ROUTE),
        };
        let class = self.classes.enter(pair, cap)?;
        self.under_way[place as usize].class = class;
        let latency = self.classes.latency(class);
        let mut join = now + latency;
        if let Some(endpoints) = &mut self.endpoints {
            let (sent, injected) = endpoints.send(&message, now, latency);
            join = injected + latency;
            match sent {
                // This report must precede the delivery, which may happen at the same instant.
                Some(sent) if sent <= now => self.report(place, true, false),
                Some(sent) => self.set_alarm(sent, Alarm::Sent(place)),
                None => {}
            }
        }
        if join > now {
            self.set_alarm(join, Alarm::Join(place));
            return Ok(());
        }
        self.join(place, now)
    }

    /// Starts to move the bytes of a message; the latency of its route has passed at `now`.
    fn join(&mut self, place: u32, now: f64) -> Result<(), FluidError> {
        let UnderWay { message, class, .. } = self.under_way[place as usize];
        if message.bytes == 0 || !self.classes.is_bounded(class) {
            return self.arrive(place, now);
        }
        let bytes = Some(message.bytes);
        self.classes
            .join(class, bytes, place, now, &mut self.ledger);
        Ok(())
    }

    /// Handles the arrival of a message's last bit.
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

    fn deliver(&mut self, place: u32, now: f64) -> Result<(), FluidError> {
        let UnderWay { message, class, .. } = self.under_way[place as usize];
        // With an endpoint model, the end at the sender has been reported separately.
        let sent = self.endpoints.is_none();
        self.report(place, sent, true);
        let ends = (message.source, message.destination);
        self.ledger.end(message.flow, ends, message.bytes, now)?;
        self.active -= 1;
        self.free_places.push(place);
        self.classes.leave(class);
        Ok(())
    }

    /// Updates the rates after all starts and ends of an instant.
    fn settle(&mut self, now: f64) {
        self.classes.settle(now, &mut self.ledger);
        if !self.ledger.records_flows() {
            return;
        }
        for &class in self.classes.changed() {
            interrupt::check();
            let (rate, bottleneck) = self.classes.rate(class);
            for place in self.classes.members(class) {
                interrupt::check();
                if let Some(under_way) = self.under_way.get(place as usize) {
                    let flow = under_way.message.flow;
                    self.ledger.rate(flow, rate, bottleneck);
                }
            }
        }
    }

    /// Ends every flow whose last byte moves at the instant `now` (ps).
    fn finish(&mut self, now: f64, ended: &mut Vec<u32>) -> Result<(), FluidError> {
        let limit = now + window(now);
        self.classes.finish(now, limit, ended, &mut self.ledger);
        for place in ended.drain(..) {
            self.arrive(place, now)?;
        }
        Ok(())
    }

    fn begin_background(&mut self, index: u32, now: f64) -> Result<(), FluidError> {
        let flow = &self.options.background[index as usize];
        let cap = flow.rate.map_or(f64::INFINITY, bytes_per_ps);
        let pair = (flow.source, flow.destination);
        let class = self.classes.enter_alone(pair, cap)?;
        // A flow without links and without a cap would be infinitely fast and would load no link.
        if self.classes.is_bounded(class) {
            self.background[index as usize] = class;
            let place = u32::MAX;
            self.classes.join(class, None, place, now, &mut self.ledger);
        }
        Ok(())
    }

    fn end_background(&mut self, index: u32, now: f64) {
        let class = std::mem::replace(&mut self.background[index as usize], u32::MAX);
        if class != u32::MAX {
            self.classes.stop(class, now, &mut self.ledger);
            self.classes.leave(class);
        }
    }

    pub(super) fn end_all_background(&mut self, now: f64) {
        for index in 0..self.background.len() as u32 {
            self.end_background(index, now);
        }
    }
}
