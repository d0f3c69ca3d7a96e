//! Event loop of one part of the network: ports, terminals and the order of events. An undivided
//! network is a single part, which waits for no other part.

mod occupancy;
mod synchronisation;
pub(super) mod terminal;

use std::sync::Arc;

use occupancy::UncertainPeak;
use terminal::{Nic, PacketMessage};

use super::arena::Arena;
use super::channel::{BufferPlace, Chunk, VirtualChannels, Wake};
use super::delays::Delays;
use super::event_queue::{EventKind, LATEST_PS, NEVER, PacketQueue};
use super::exchange::{Exchange, Mail};
use super::partition::Partition;
use super::port::PacketPort;
use super::routes::Routes;
use super::steps::{IssuedMessage, ScheduleProgress};
use super::traffic::Stream;
use super::{Arbitration, RouterDelay};
use crate::live::MessageEvent;
use crate::outcome::meter::ClassMeter;
use crate::outcome::packets::{Distribution, LinkClass};
use opticoll_base::interrupt;

/// Minimum number of times in a window that a network part sends its mail and publishes its clock.
/// A window is a period in which no part can affect another part.
const CLOCKS_PER_WINDOW: u64 = 16;

/// Time for which chunks waited for a place in the full buffer of a channel: the sum of past waits
/// (ps), and the beginning (ps) of the present wait.
#[derive(Clone, Copy, Default)]
pub(super) struct Stall {
    pub(super) sum: u64,
    pub(super) since: Option<u64>,
}

/// Parameters of the network and of the model, in picoseconds and bytes.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) partition: Partition,
    pub(super) packet: u64,
    pub(super) chunk: u64,
    pub(super) router_delay: u64,
    pub(super) router_delay_rule: RouterDelay,
    pub(super) credit_delay: u64,
    pub(super) arbitration: Arbitration,
    pub(super) delays: Delays,
    pub(super) begin: u64,
    /// Number of queued chunks at which a terminal stops cutting packets.
    pub(super) max_queued_chunks: u32,
    /// Link of each terminal to the network, indexed by terminal.
    pub(super) injection: Vec<u32>,
    /// Terminal at the sending end of each link, indexed by link; `NONE` if a router is at this
    /// end.
    pub(super) terminal_at: Vec<u32>,
    pub(super) bits_per_second: Vec<u64>,
}

/// Part of a running simulation. Lists have entries for all links and terminals of the network; a
/// part uses only the entries of its own links and terminals.
#[repr(align(128))]
pub(super) struct PacketEngine<R> {
    pub(super) setup: Setup,
    exchange: Arc<Exchange>,
    pub(super) part: u8,
    pub(super) routes: R,
    pub(super) ports: Vec<PacketPort>,
    pub(super) channels: VirtualChannels,
    pub(super) stalls: Vec<Stall>,
    /// Number of bytes by which the chunks of each channel were shorter than full chunks.
    pub(super) short_bytes: Vec<u64>,
    pub(super) chunks: Arena<Chunk>,
    pub(super) steps: Option<ScheduleProgress>,
    pub(super) streams: Vec<Stream>,
    pub(super) counters: Counters,
    pub(super) event_queue: PacketQueue,
    pub(super) messages: Arena<PacketMessage>,
    pub(super) nics: Vec<Nic>,
    pub(super) orders: Vec<IssuedMessage>,
    /// Departures and arrivals of messages, if the caller submits the messages.
    pub(super) message_events: Option<Vec<MessageEvent>>,
    pub(super) now: u64,
    /// Mail to each network part, indexed by part.
    pub(super) mail: Vec<Mail>,
    /// Mail that was received last.
    inbox: Mail,
    /// Index in `messages` of each message from another network part, `[part][index of the message
    /// in that part]`.
    received: Vec<Vec<u32>>,
    /// Time (ps) before which events may be processed.
    limit: u64,
    /// Time (ps) before which all returned credits are known.
    credits_known: u64,
    /// Uncertain peaks, as the header of [`super::exchange`] defines them.
    uncertain_peaks: Vec<UncertainPeak>,
    /// Number of channels to other network parts whose next credit is not known, although a chunk
    /// waits for this credit.
    awaited: u32,
    /// Clock that was published last (ps).
    clock: u64,
    /// Time (ps) at which the last rank of the network part ended.
    ended: u64,
    /// Number of events after which the network part asks all parts to pause.
    pub(super) pause_after: u64,
    /// Number of times that this part has waited for other network parts, counted since
    /// `waits_since`.
    pub(super) waits: u64,
    /// Value of the counter `events` when `waits` was last set to 0.
    pub(super) waits_since: u64,
}

pub(super) struct Counters {
    pub(super) finish: Vec<u64>,
    pub(super) message_latency: Distribution,
    pub(super) background_latency: Distribution,
    pub(super) chunk_latency: Distribution,
    pub(super) routers_passed: u64,
    pub(super) minimal_chunks: u64,
    pub(super) detoured_chunks: u64,
    pub(super) bytes_sent: u128,
    pub(super) bytes_delivered: u64,
    pub(super) forwards: u64,
    pub(super) events: u64,
    pub(super) delivered: u64,
    pub(super) occupancy: ClassMeter,
    pub(super) stalled: ClassMeter,
}

impl Counters {
    /// Creates counters at 0. `bin` is the length of a bin of the timeline (ps); 0: no timeline.
    pub(super) fn new(terminals: u32, bin: u64) -> Counters {
        Counters {
            finish: vec![0; terminals as usize],
            message_latency: Distribution::default(),
            background_latency: Distribution::default(),
            chunk_latency: Distribution::default(),
            routers_passed: 0,
            minimal_chunks: 0,
            detoured_chunks: 0,
            bytes_sent: 0,
            bytes_delivered: 0,
            forwards: 0,
            events: 0,
            delivered: 0,
            occupancy: ClassMeter::new(bin),
            stalled: ClassMeter::new(bin),
        }
    }
}

impl<R: Routes> PacketEngine<R> {
    pub(super) fn new(
        (setup, exchange, part): (Setup, Arc<Exchange>, u8),
        routes: R,
        ports: Vec<PacketPort>,
        channels: VirtualChannels,
        steps: Option<ScheduleProgress>,
        streams: Vec<Stream>,
        counters: Counters,
    ) -> PacketEngine<R> {
        let parts = setup.partition.parts as usize;
        // About five events happen per port and chunk time, so a bucket has a few dozen events.
        let ports_of_part = (ports.len() / parts).max(1);
        let shift = 9 + (40_000 / ports_of_part).max(1).ilog2().min(5);
        let mut engine = PacketEngine {
            nics: setup.injection.iter().map(|&link| Nic::new(link)).collect(),
            setup,
            exchange,
            part,
            stalls: vec![Stall::default(); channels.list.len()],
            short_bytes: vec![0; channels.list.len()],
            routes,
            ports,
            channels,
            steps,
            streams,
            counters,
            event_queue: PacketQueue::new(shift),
            chunks: Arena::new(),
            messages: Arena::new(),
            orders: Vec::new(),
            message_events: None,
            now: 0,
            mail: (0..parts).map(|_| Mail::default()).collect(),
            inbox: Mail::default(),
            received: vec![Vec::new(); parts],
            limit: 0,
            credits_known: 0,
            uncertain_peaks: Vec::new(),
            awaited: 0,
            clock: 0,
            ended: NEVER,
            pause_after: u64::MAX,
            waits: 0,
            waits_since: 0,
        };
        engine.plan();
        engine
    }

    /// Adds the events that are known before the simulation to the event queue.
    fn plan(&mut self) {
        let terminals = self.nics.len() as u32;
        let part_of = &self.setup.partition.part_of_terminal;
        let is_own = |terminal: &u32| part_of[*terminal as usize] == self.part;
        for stream in 0..self.streams.len() {
            for terminal in (0..terminals).filter(is_own) {
                interrupt::check();
                let time = self.streams[stream].first(terminal);
                let traffic = self.streams[stream].traffic();
                if traffic.messages == Some(0) || !traffic.sends_at(time) {
                    continue;
                }
                let timer = stream as u32 * terminals + terminal;
                self.event_queue.push(time, EventKind::Timer, timer);
            }
        }
        if let Some(steps) = &self.steps {
            for rank in (0..terminals).filter(|&rank| is_own(&steps.terminal(rank))) {
                interrupt::check();
                self.event_queue
                    .push(self.setup.begin, EventKind::Begin, rank);
            }
        }
    }

    fn work(&mut self) {
        loop {
            while let Some(event) = self.event_queue.pop(self.limit) {
                interrupt::check();
                self.now = event.time();
                self.counters.events += 1;
                match event.kind() {
                    EventKind::Arrive => self.arrive(event.index()),
                    EventKind::Send => self.send(event.index()),
                    EventKind::Credit => self.credit(event.index()),
                    EventKind::Generate => self.generate(event.index()),
                    EventKind::Inject => self.inject(event.index()),
                    EventKind::Deliver => self.deliver(event.index()),
                    EventKind::Timer => self.timer(event.index()),
                    EventKind::Begin => self.begin(event.index()),
                }
            }
            if self.counters.events >= self.pause_after || self.waits_too_often() {
                self.pause_after = u64::MAX;
                self.request_pause();
            }
            if self.event_queue.is_open() || !self.prefetch() {
                return;
            }
            if self.mail.len() > 1 {
                let (clock, next) = (self.event_queue.begin_of_open(), self.now);
                if clock >= self.clock + self.setup.partition.min_chunk_ps / CLOCKS_PER_WINDOW {
                    self.publish(clock, next);
                }
            }
        }
    }

    /// Opens the next bucket of the event queue and reads the data of its events. These reads do
    /// not depend on one another, so the processor fetches the data in parallel, instead of one by
    /// one when events are processed. Returns whether there are events before `limit`.
    fn prefetch(&mut self) -> bool {
        let events = self.event_queue.open(self.limit);
        let mut read = 0;
        for event in events.iter().rev() {
            match event.kind() {
                EventKind::Arrive => {
                    let chunk = &self.chunks[event.index()];
                    let from = self.channels.number(chunk.link, chunk.channel.into());
                    read ^= self.channels.list[from as usize].occupied;
                    let link = self.routes.predicted_link(chunk);
                    let into = self.channels.number(link, 0);
                    read ^= self.channels.list[into as usize].occupied;
                    if self.ports[link as usize].class == LinkClass::Ejection {
                        read ^= self.messages[chunk.message].chunks as u32;
                    }
                }
                EventKind::Inject => {
                    let nic = &self.nics[event.index() as usize];
                    let into = self.channels.number(nic.link, 0);
                    read ^= self.channels.list[into as usize].occupied;
                    read ^= self.ports[nic.link as usize].target;
                    read ^= self.chunks[nic.queue.head].bytes;
                }
                EventKind::Generate => {
                    let nic = &self.nics[event.index() as usize];
                    read ^= self.messages[nic.messages.head].chunks as u32;
                }
                EventKind::Deliver => read ^= self.messages[event.index()].chunks as u32,
                _ => {}
            }
        }
        std::hint::black_box(read);
        self.event_queue.is_open()
    }

    /// Handles the arrival of the chunk with the index `number` at a router. The chunk occupies a
    /// place in the buffer of its next channel, or waits for a place.
    fn arrive(&mut self, number: u32) {
        if self.mail.len() > 1 {
            let links = self.routes.compares(&self.chunks[number]);
            if links.is_some_and(|links| links.iter().any(|&link| self.crosses(link))) {
                self.await_known_credits();
            }
        }
        let chunk = &mut self.chunks[number];
        let router = chunk.router;
        let (link, channel) = self
            .routes
            .next(chunk, router, &mut self.channels, self.now);
        let into = self.channels.number(link, channel);
        self.channels.take_credits(into, self.now);
        let state = &self.channels.list[into as usize];
        if state.occupied >= state.capacity && state.wait.is_empty() && self.crosses(link) {
            self.await_known_credits();
            self.channels.take_credits(into, self.now);
        }
        let state = &self.channels.list[into as usize];
        if state.wait.is_empty() && state.occupied < state.capacity {
            self.accept(link, into, number);
            return;
        }
        if state.queue.is_empty() {
            self.stall(link, into);
        }
        let state = &mut self.channels.list[into as usize];
        state.wait.push(&mut self.chunks, number);
        state.waiting += 1;
        self.await_credit(into);
    }

    /// Schedules an event for the next credit of the channel with the index `number`, as soon as
    /// the arrival time of this credit is known.
    pub(super) fn await_credit(&mut self, number: u32) {
        if self.channels.list[number as usize].wake != Wake::Unwanted {
            return;
        }
        self.channels.list[number as usize].wake = Wake::Wanted;
        if let Some(time) = self.channels.next_credit(number) {
            self.wake(number, time);
        } else if self.crosses(number >> self.channels.shift) {
            self.awaited += 1;
            self.limit = self.limit.min(self.credits_known);
        }
    }

    /// Schedules the event of a credit that arrives at `time` (ps) at the channel with the index
    /// `number`, if a chunk waits for the credit. Returns whether a chunk waits.
    #[inline]
    fn wake(&mut self, number: u32, time: u64) -> bool {
        let state = &mut self.channels.list[number as usize];
        let wanted = state.wake == Wake::Wanted;
        if wanted {
            state.wake = Wake::Scheduled;
            self.event_queue.push(time, EventKind::Credit, number);
        }
        wanted
    }

    /// Sends back the credit for `buffer_place`. A chunk leaves this place at `time` (ps) and
    /// continues over link `by`.
    #[inline]
    fn send_credit(&mut self, buffer_place: BufferPlace, time: u64, by: u32) {
        let delay = self.setup.credit_delay
            + buffer_place.latency
            + self.setup.delays.credit(&mut self.ports, by);
        let number = self
            .channels
            .number(buffer_place.link, buffer_place.channel);
        let back = if buffer_place.sender == self.part {
            let back = self.channels.send_credit(number, self.now, time + delay);
            self.wake(number, back);
            back
        } else {
            let back = self.channels.return_credit(number, time + delay);
            let mail = &mut self.mail[usize::from(buffer_place.sender)];
            mail.credits.push((number, back));
            back
        };
        if self.counters.occupancy.measures() {
            let class = self.ports[buffer_place.link as usize].class;
            self.counters.occupancy.step(class, back, -1);
        }
    }

    /// Moves the chunk with the index `number` from the buffer of its previous link to channel
    /// `into` of its next link, `link`.
    fn accept(&mut self, link: u32, into: u32, number: u32) {
        let buffer_place = self.chunks[number].buffer_place();
        self.occupy(link, into, self.now);
        self.send_credit(buffer_place, self.now, link);
        let earliest = self.now + self.setup.delays.handover(&mut self.ports, link);
        let port = &mut self.ports[link as usize];
        let next = match self.setup.arbitration {
            // No other chunk is selected before this chunk, and no earlier decision is pending.
            Arbitration::Ahead if self.now >= port.decided => earliest,
            _ => port.free.max(earliest),
        };
        if !port.pending && next == earliest {
            port.decided = earliest;
            let start = port.free.max(earliest);
            self.transmit(link, into, number, start);
            return;
        }
        port.queued += 1;
        if !port.pending {
            port.pending = true;
            self.event_queue.push(next, EventKind::Send, link);
        }
        let queue = &mut self.channels.list[into as usize].queue;
        queue.push(&mut self.chunks, number);
    }

    /// Selects the next chunk from the queues of a link and sends the chunk.
    fn send(&mut self, link: u32) {
        let first = link << self.channels.shift;
        let count = 1 << self.channels.shift;
        let waits = |channel: &u32| {
            let state = &self.channels.list[(first + channel) as usize];
            !state.queue.is_empty()
        };
        let turn = u32::from(self.ports[link as usize].turn);
        let channel = match self.setup.arbitration {
            Arbitration::Ahead | Arbitration::Strict => (0..count).rev().find(waits),
            Arbitration::RoundRobin => (0..count).map(|place| (turn + place) % count).find(waits),
        };
        let Some(channel) = channel else {
            return;
        };
        let queue = &mut self.channels.list[(first + channel) as usize].queue;
        let number = queue.pop(&self.chunks);
        let port = &mut self.ports[link as usize];
        port.turn = ((channel + 1) % count) as u8;
        port.queued -= 1;
        port.decided = self.now;
        let start = port.free.max(self.now);
        self.transmit(link, first + channel, number, start);
        let port = &mut self.ports[link as usize];
        port.pending = port.queued > 0;
        if port.pending {
            self.event_queue.push(port.free, EventKind::Send, link);
        }
    }

    /// Sends the chunk with the index `number` over channel `into` of `link`, which starts at a
    /// router and is free from `start` (ps) on.
    #[inline]
    fn transmit(&mut self, link: u32, into: u32, number: u32, start: u64) {
        if start >= LATEST_PS {
            return self.event_queue.push(start, EventKind::Send, link);
        }
        let router_delay = self.setup.router_delay;
        let mut arrival = self.put(link, into, number, start) + router_delay;
        let port = &mut self.ports[link as usize];
        if self.setup.router_delay_rule == RouterDelay::OccupiesPort {
            port.free += router_delay;
        }
        arrival += port.latency;
        self.counters.forwards += 1;
        if port.class != LinkClass::Ejection {
            if port.part == self.part {
                self.event_queue
                    .push_at(arrival, EventKind::Arrive, link, number);
                return;
            }
            let mail = &mut self.mail[usize::from(port.part)];
            mail.chunks.push(self.chunks[number]);
            mail.arrivals.push(arrival);
            self.chunks.remove(number);
            return;
        }
        let chunk = self.chunks[number];
        self.chunks.remove(number);
        self.send_credit(chunk.buffer_place(), arrival, link);
        let counters = &mut self.counters;
        counters.chunk_latency.add(arrival - chunk.cut_at);
        counters.routers_passed += u64::from(chunk.routers);
        counters.minimal_chunks += u64::from(!chunk.detoured);
        counters.detoured_chunks += u64::from(chunk.detoured);
        counters.bytes_delivered += u64::from(chunk.bytes);
        let message = &mut self.messages[chunk.message];
        message.chunks -= 1;
        if message.chunks == 0 {
            let time = arrival + self.setup.delays.notice(&mut self.ports, link);
            let (terminal, message) = (chunk.destination, chunk.message);
            self.event_queue
                .push_at(time, EventKind::Deliver, terminal, message);
        }
    }

    /// Starts to send the chunk with the index `number` at `start` (ps). Returns the time (ps) at
    /// which the last bit of the chunk has left.
    #[inline]
    pub(super) fn put(&mut self, link: u32, into: u32, number: u32, start: u64) -> u64 {
        let send = self.setup.delays.send(&mut self.ports, link);
        let chunk = &mut self.chunks[number];
        let port = &mut self.ports[link as usize];
        let short = self.setup.chunk - u64::from(chunk.bytes);
        let wire = if short == 0 {
            port.full_wire
        } else {
            self.short_bytes[into as usize] += short;
            (u64::from(chunk.bytes) * 8_000_000_000_000)
                .div_ceil(self.setup.bits_per_second[link as usize])
        };
        chunk.link = link;
        chunk.sender = self.part;
        chunk.router = port.target;
        chunk.latency = port.latency;
        chunk.channel = (into - (link << self.channels.shift)) as u8;
        port.free = start + wire + send;
        port.busy += wire;
        let state = &mut self.channels.list[into as usize];
        state.chunks += 1;
        port.free
    }

    /// Handles the arrival of a credit for which a chunk waited, at the channel with the index
    /// `number`.
    fn credit(&mut self, number: u32) {
        let link = number >> self.channels.shift;
        if self.crosses(link) {
            self.await_known_credits();
        }
        self.channels.take_credits(number, self.now);
        self.end_stall(link, number, self.now);
        self.channels.list[number as usize].wake = Wake::Unwanted;
        if self.ports[link as usize].class == LinkClass::Injection {
            let terminal = self.setup.terminal_at[link as usize];
            let time = self.now + self.setup.delays.handover(&mut self.ports, link);
            self.event_queue.push(time, EventKind::Inject, terminal);
            return;
        }
        loop {
            let state = &mut self.channels.list[number as usize];
            if state.wait.is_empty() {
                return;
            }
            if state.occupied >= state.capacity {
                break;
            }
            let chunk = state.wait.pop(&self.chunks);
            state.waiting -= 1;
            self.accept(link, number, chunk);
        }
        self.await_credit(number);
    }
}
