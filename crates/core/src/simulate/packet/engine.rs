//! The event loop: ports, terminals, and what happens when.

use super::agenda::{Agenda, Kind};
use super::channel::{Channels, Chunk, Wake};
use super::delays::Delays;
use super::measure::{Class, Distribution, OccupancyMeter};
use super::pool::{Linked, List, NONE, Pool};
use super::routes::Routes;
use super::steps::{Order, Steps};
use super::stuck;
use super::traffic::Stream;
use super::{Arbitration, PacketError, Progress, RouterDelay};

/// Times beyond this are refused, so that a sum with any delay stays in 64 bits.
pub(super) const LATEST_PS: u64 = 1 << 61;
/// Events from one report of progress to the next.
const REPORT: u64 = 1 << 20;
/// Events from one look for stuck channels to the next.
const LOOK: u64 = 1 << 24;

/// A link as its sender sees it.
pub(super) struct Port {
    /// When it can send next, in picoseconds.
    pub(super) free: u64,
    /// How long it was sending.
    pub(super) busy: u64,
    pub(super) full_wire: u64,
    pub(super) latency: u64,
    pub(super) bits_per_second: u64,
    /// The router or terminal that it leads to.
    pub(super) target: u32,
    /// The terminal that it leads from, of an injection link.
    pub(super) source: u32,
    /// When it was decided last which chunk goes, where that is done ahead, and that chunk's time on
    /// the link.
    decided: u64,
    recent_wire: u64,
    /// Accepted chunks that wait.
    queued: u32,
    pub(super) class: Class,
    /// Whether a send is on the agenda.
    pending: bool,
    /// The channel after the one served last.
    turn: u8,
}

impl Port {
    pub(super) fn new(
        class: Class,
        target: u32,
        full_wire: u64,
        latency: u64,
        bits_per_second: u64,
    ) -> Port {
        Port {
            free: 0,
            busy: 0,
            full_wire,
            latency,
            bits_per_second,
            target,
            source: NONE,
            decided: 0,
            recent_wire: 0,
            queued: 0,
            class,
            pending: false,
            turn: 0,
        }
    }
}

/// What a channel has carried.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) bytes: u64,
    pub(super) chunks: u64,
    pub(super) stall: u64,
    pub(super) stalled_since: Option<u64>,
    pub(super) peak: u32,
}

/// A message in the network.
#[derive(Clone, Copy)]
pub(super) struct Message {
    next: u32,
    destination: u32,
    tag: u32,
    /// Bytes that are in no packet yet.
    to_cut: u64,
    /// Chunks that have not arrived.
    chunks: u64,
    /// When it was sent, and when its terminal may cut it.
    sent: u64,
    ready: u64,
}

impl Linked for Message {
    fn next(&self) -> u32 {
        self.next
    }
    fn set_next(&mut self, next: u32) {
        self.next = next;
    }
}

/// A terminal.
struct Nic {
    link: u32,
    /// Messages to be cut, in order.
    messages: List,
    /// Chunks to be sent, in order.
    queue: List,
    queued: u32,
    /// When it can take the next message, and when the next packet may be cut.
    sequenced: u64,
    paced: u64,
    /// Whether a packet is to be cut, and whether that waits for a chunk to leave.
    generating: bool,
    held_up: bool,
    /// Whether a chunk is to be sent or waits for a credit.
    sending: bool,
    /// Chunks made so far.
    made: u64,
}

/// The machine and its rules, in picoseconds and bytes.
pub(super) struct Setup {
    pub(super) packet: u64,
    pub(super) chunk: u64,
    pub(super) router_delay: u64,
    pub(super) router_delay_rule: RouterDelay,
    pub(super) credit_delay: u64,
    pub(super) arbitration: Arbitration,
    pub(super) delays: Delays,
    pub(super) begin: u64,
    /// Chunks at a terminal from which on it cuts no further packet.
    pub(super) most_queued: u32,
    /// Per terminal, its link.
    pub(super) injection: Vec<u32>,
}

/// A running simulation.
pub(super) struct Engine<R> {
    pub(super) setup: Setup,
    pub(super) routes: R,
    pub(super) ports: Vec<Port>,
    pub(super) channels: Channels,
    pub(super) tallies: Vec<Tally>,
    pub(super) chunks: Pool<Chunk>,
    pub(super) steps: Option<Steps>,
    pub(super) streams: Vec<Stream>,
    pub(super) measured: Measured,
    agenda: Agenda,
    messages: Pool<Message>,
    nics: Vec<Nic>,
    orders: Vec<Order>,
    now: u64,
}

/// What is counted on the way.
pub(super) struct Measured {
    pub(super) finish: Vec<u64>,
    pub(super) message_latency: Distribution,
    pub(super) background_latency: Distribution,
    pub(super) chunk_latency: Distribution,
    pub(super) routers_passed: u64,
    pub(super) minimal_chunks: u64,
    pub(super) detoured_chunks: u64,
    pub(super) bytes_sent: u64,
    pub(super) bytes_delivered: u64,
    pub(super) forwards: u64,
    pub(super) events: u64,
    pub(super) delivered: u64,
    pub(super) occupancy: OccupancyMeter,
}

/// Streams' tags stand above the steps'.
const FIRST_STREAM: u32 = 1 << 31;

impl<R: Routes> Engine<R> {
    pub(super) fn new(
        setup: Setup,
        routes: R,
        ports: Vec<Port>,
        channels: Channels,
        steps: Option<Steps>,
        streams: Vec<Stream>,
        measured: Measured,
    ) -> Engine<R> {
        let nic = |&link| Nic {
            link,
            messages: List::EMPTY,
            queue: List::EMPTY,
            queued: 0,
            sequenced: 0,
            paced: 0,
            generating: false,
            held_up: false,
            sending: false,
            made: 0,
        };
        // Some five events happen per port and chunk time; a bucket then has a few of them.
        let shift = 6 + (20_000 / ports.len().max(1)).max(1).ilog2().min(6);
        let mut ports = ports;
        for (terminal, &link) in (0..).zip(&setup.injection) {
            ports[link as usize].source = terminal;
        }
        Engine {
            nics: setup.injection.iter().map(nic).collect(),
            tallies: vec![Tally::default(); channels.list.len()],
            setup,
            routes,
            ports,
            channels,
            steps,
            streams,
            measured,
            agenda: Agenda::new(shift),
            chunks: Pool::new(),
            messages: Pool::new(),
            orders: Vec::new(),
            now: 0,
        }
    }

    /// Runs until the collective has ended or everything has arrived; returns the time.
    pub(super) fn run(&mut self, watch: &mut dyn FnMut(&Progress)) -> Result<u64, PacketError> {
        let terminals = self.nics.len() as u32;
        for stream in 0..self.streams.len() {
            for terminal in 0..terminals {
                if self.streams[stream].traffic().messages == Some(0) {
                    continue;
                }
                let time = self.streams[stream].first(terminal);
                let timer = stream as u32 * terminals + terminal;
                self.agenda.push(time, Kind::Timer, timer);
            }
        }
        if self.steps.is_some() {
            for rank in 0..terminals {
                self.agenda.push(self.setup.begin, Kind::Begin, rank);
            }
        }
        while let Some(event) = self.agenda.pop() {
            self.now = event.time;
            self.measured.events += 1;
            match event.kind {
                Kind::Arrive => self.arrive(event.index),
                Kind::Send => self.send(event.index),
                Kind::Credit => self.credit(event.index),
                Kind::Generate => self.generate(event.index),
                Kind::Inject => self.inject(event.index),
                Kind::Deliver => {
                    if self.deliver(event.index) {
                        break;
                    }
                }
                Kind::Timer => self.timer(event.index),
                Kind::Begin => {
                    if self.begin(event.index) {
                        break;
                    }
                }
            }
            if self.measured.events % REPORT == 0 {
                self.report(watch)?;
            }
        }
        let finished = match &self.steps {
            Some(steps) => steps.finished(),
            None => self.messages.used() == 0,
        };
        if !finished {
            return Err(stuck::error(&self.channels, &self.chunks));
        }
        Ok(self.measured.finish.iter().copied().max().unwrap_or(0))
    }

    #[cold]
    fn report(&mut self, watch: &mut dyn FnMut(&Progress)) -> Result<(), PacketError> {
        watch(&Progress {
            events: self.measured.events,
            messages_delivered: self.measured.delivered,
            time_ps: self.now,
        });
        if self.now > LATEST_PS {
            return Err(PacketError::TooLong);
        }
        if self.measured.events % LOOK == 0 && stuck::any(&self.channels, &self.chunks) {
            return Err(stuck::error(&self.channels, &self.chunks));
        }
        Ok(())
    }

    /// A chunk comes to a router: it takes a place in the buffer of its next channel, or waits.
    fn arrive(&mut self, number: u32) {
        let chunk = &mut self.chunks[number];
        let router = self.ports[chunk.link as usize].target;
        let (link, channel) = self
            .routes
            .next(chunk, router, &mut self.channels, self.now);
        let into = self.channels.number(link, channel);
        self.channels.take_credits(into, self.now);
        let state = &mut self.channels.list[into as usize];
        if state.wait.is_empty() && state.occupied < state.capacity {
            self.accept(link, into, number);
            return;
        }
        if state.queue.is_empty() {
            let tally = &mut self.tallies[into as usize];
            tally.stalled_since.get_or_insert(self.now);
        }
        state.wait.push(&mut self.chunks, number);
        state.waiting += 1;
        self.await_credit(into);
    }

    /// Makes sure that the next credit of a channel becomes an event.
    fn await_credit(&mut self, number: u32) {
        if self.channels.list[number as usize].wake == Wake::Scheduled {
            return;
        }
        self.channels.list[number as usize].wake = match self.channels.next_credit(number) {
            Some(time) => {
                self.agenda.push(time, Kind::Credit, number);
                Wake::Scheduled
            }
            None => Wake::Wanted,
        };
    }

    /// Gives the place of a channel's buffer free, as of a time to come.
    #[inline]
    fn send_credit(&mut self, link: u32, number: u32, time: u64) {
        let port = &self.ports[link as usize];
        let delay = self.setup.credit_delay + port.latency + self.setup.delays.credit();
        let back = self.channels.send_credit(number, self.now, time + delay);
        self.measured.occupancy.step(port.class, back, -1);
        let state = &mut self.channels.list[number as usize];
        if state.wake == Wake::Wanted {
            state.wake = Wake::Scheduled;
            self.agenda.push(back, Kind::Credit, number);
        }
    }

    /// Counts a place of a channel's buffer as taken.
    #[inline]
    fn occupy(&mut self, link: u32, number: u32, time: u64) {
        let state = &mut self.channels.list[number as usize];
        state.occupied += 1;
        let tally = &mut self.tallies[number as usize];
        tally.peak = tally.peak.max(state.occupied);
        let class = self.ports[link as usize].class;
        self.measured.occupancy.step(class, time, 1);
    }

    /// A chunk leaves the buffer of the link it came over for that of its next one.
    fn accept(&mut self, link: u32, into: u32, number: u32) {
        let chunk = &self.chunks[number];
        let (from_link, from) = (
            chunk.link,
            self.channels.number(chunk.link, chunk.channel.into()),
        );
        self.occupy(link, into, self.now);
        self.send_credit(from_link, from, self.now);
        let earliest = self.now + self.setup.delays.handover();
        let port = &mut self.ports[link as usize];
        let next = match self.setup.arbitration {
            // The decision made last is still to come into force, or nothing stands before this one.
            Arbitration::Ahead if self.now < port.decided => port.decided + port.recent_wire,
            Arbitration::Ahead => earliest,
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
            self.agenda.push(next, Kind::Send, link);
        }
        let queue = &mut self.channels.list[into as usize].queue;
        queue.push(&mut self.chunks, number);
    }

    /// It is decided which chunk of a link's queues goes next.
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
            let next = match self.setup.arbitration {
                Arbitration::Ahead => self.now + port.recent_wire + self.setup.delays.send(),
                _ => port.free,
            };
            self.agenda.push(next, Kind::Send, link);
        }
    }

    /// A router puts a chunk on a link at a time when that is free.
    #[inline]
    fn transmit(&mut self, link: u32, into: u32, number: u32, start: u64) {
        let router_delay = self.setup.router_delay;
        let mut arrival = self.put(link, into, number, start) + router_delay;
        let port = &mut self.ports[link as usize];
        if self.setup.router_delay_rule == RouterDelay::OccupiesPort {
            port.free += router_delay;
        }
        arrival += port.latency;
        self.measured.forwards += 1;
        if port.class != Class::Ejection {
            self.agenda.push(arrival, Kind::Arrive, number);
            return;
        }
        let chunk = self.chunks[number];
        self.chunks.remove(number);
        self.send_credit(link, into, arrival);
        let measured = &mut self.measured;
        measured.chunk_latency.add(arrival - chunk.made);
        measured.routers_passed += u64::from(chunk.routers);
        measured.minimal_chunks += u64::from(!chunk.detoured);
        measured.detoured_chunks += u64::from(chunk.detoured);
        measured.bytes_delivered += u64::from(chunk.bytes);
        let message = &mut self.messages[chunk.message];
        message.chunks -= 1;
        if message.chunks == 0 {
            let time = arrival + self.setup.delays.notice();
            self.agenda.push(time, Kind::Deliver, chunk.message);
        }
    }

    /// Puts a chunk on a link; returns when its last bit has left.
    #[inline]
    fn put(&mut self, link: u32, into: u32, number: u32, start: u64) -> u64 {
        let chunk = &mut self.chunks[number];
        let port = &mut self.ports[link as usize];
        let wire = if u64::from(chunk.bytes) == self.setup.chunk {
            port.full_wire
        } else {
            (u64::from(chunk.bytes) * 8_000_000_000_000).div_ceil(port.bits_per_second)
        };
        chunk.link = link;
        chunk.channel = (into - (link << self.channels.shift)) as u8;
        port.free = start + wire + self.setup.delays.send();
        port.recent_wire = wire;
        port.busy += wire;
        let tally = &mut self.tallies[into as usize];
        tally.bytes += u64::from(chunk.bytes);
        tally.chunks += 1;
        port.free
    }

    /// A credit has come back that somebody waits for.
    fn credit(&mut self, number: u32) {
        self.channels.take_credits(number, self.now);
        let tally = &mut self.tallies[number as usize];
        if let Some(since) = tally.stalled_since.take() {
            tally.stall += self.now - since;
        }
        self.channels.list[number as usize].wake = Wake::Unwanted;
        let link = number >> self.channels.shift;
        if self.ports[link as usize].class == Class::Injection {
            let terminal = self.ports[link as usize].source;
            let time = self.now + self.setup.delays.handover();
            self.agenda.push(time, Kind::Inject, terminal);
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

    /// A message is handed to its terminal.
    fn submit(&mut self, order: Order) {
        let chunks_of = |bytes: u64| bytes.div_ceil(self.setup.chunk);
        let (whole, rest) = (
            order.bytes / self.setup.packet,
            order.bytes % self.setup.packet,
        );
        let chunks = whole * chunks_of(self.setup.packet) + chunks_of(rest);
        let delays = &mut self.setup.delays;
        let nic = &mut self.nics[order.source as usize];
        let taken = nic.sequenced.max(order.time + delays.handover());
        nic.sequenced = taken + delays.sequencing() + delays.handover();
        let ready = nic.sequenced;
        let message = self.messages.add(Message {
            next: NONE,
            destination: order.destination,
            tag: order.tag,
            to_cut: order.bytes,
            chunks: chunks.max(1),
            sent: order.time,
            ready,
        });
        self.measured.bytes_sent += order.bytes;
        self.routes.begin(message, order.source, order.destination);
        nic.messages.push(&mut self.messages, message);
        if !nic.generating {
            nic.generating = true;
            let time = ready.max(nic.paced) + delays.handover();
            self.agenda.push(time, Kind::Generate, order.source);
        }
    }

    /// A terminal cuts the next packet of its first message into chunks.
    fn generate(&mut self, terminal: u32) {
        let nic = &mut self.nics[terminal as usize];
        let number = nic.messages.head;
        let message = &mut self.messages[number];
        let mut bytes = message.to_cut.min(self.setup.packet);
        message.to_cut -= bytes;
        let last_packet = message.to_cut == 0;
        let destination = message.destination;
        if last_packet {
            nic.messages.pop(&self.messages);
        }
        let mut count = 0;
        loop {
            let piece = bytes.min(self.setup.chunk);
            bytes -= piece;
            let draw = (u64::from(terminal) << 40) + (nic.made << 3);
            let mut chunk = Chunk::new(number, destination, piece as u32, self.now, draw);
            chunk.last = last_packet && bytes == 0;
            let place = self.chunks.add(chunk);
            nic.queue.push(&mut self.chunks, place);
            nic.made += 1;
            count += 1;
            if bytes == 0 {
                break;
            }
        }
        nic.queued += count as u32;
        let wire = self.ports[nic.link as usize].full_wire;
        nic.paced = self.now + count * wire + self.setup.delays.send();
        nic.held_up = nic.queued >= self.setup.most_queued;
        if !nic.held_up {
            self.pace(terminal);
        }
        let nic = &mut self.nics[terminal as usize];
        if !nic.sending {
            nic.sending = true;
            let time = self.now + self.setup.delays.handover();
            self.agenda.push(time, Kind::Inject, terminal);
        }
    }

    /// Sets the time of a terminal's next packet, if it has one.
    fn pace(&mut self, terminal: u32) {
        let nic = &mut self.nics[terminal as usize];
        nic.generating = !nic.messages.is_empty();
        if nic.generating {
            let ready = self.messages[nic.messages.head].ready;
            let time = ready.max(nic.paced).max(self.now) + self.setup.delays.handover();
            self.agenda.push(time, Kind::Generate, terminal);
        }
    }

    /// A terminal puts its next chunk on its link, if the router has room.
    fn inject(&mut self, terminal: u32) {
        let nic = &mut self.nics[terminal as usize];
        let link = nic.link;
        let into = self.channels.number(link, 0);
        self.channels.take_credits(into, self.now);
        let state = &self.channels.list[into as usize];
        if state.occupied >= state.capacity {
            let tally = &mut self.tallies[into as usize];
            tally.stalled_since.get_or_insert(self.now);
            self.await_credit(into);
            return;
        }
        let number = nic.queue.pop(&self.chunks);
        nic.queued -= 1;
        let (held_up, more) = (nic.held_up, !nic.queue.is_empty());
        nic.sending = more;
        nic.held_up = false;
        self.occupy(link, into, self.now);
        let start = self.now.max(self.ports[link as usize].free);
        let gone = self.put(link, into, number, start);
        let arrival = gone + self.ports[link as usize].latency;
        self.agenda.push(arrival, Kind::Arrive, number);
        if more {
            self.agenda.push(gone, Kind::Inject, terminal);
        }
        if held_up {
            if self.nics[terminal as usize].queued < self.setup.most_queued {
                self.pace(terminal);
            } else {
                self.nics[terminal as usize].held_up = true;
            }
        }
        let chunk = &self.chunks[number];
        if chunk.last {
            let tag = self.messages[chunk.message].tag;
            let left = self.now + self.setup.delays.handover();
            if tag < FIRST_STREAM {
                let finish = &mut self.measured.finish[terminal as usize];
                *finish = (*finish).max(left);
                if let Some(steps) = &mut self.steps {
                    steps.left(terminal, left, &mut self.orders);
                }
                self.submit_orders();
            }
        }
    }

    /// The receiver has a message; returns whether the collective has ended with it.
    fn deliver(&mut self, number: u32) -> bool {
        let message = self.messages[number];
        self.messages.remove(number);
        let measured = &mut self.measured;
        measured.delivered += 1;
        let latency = self.now - message.sent;
        let foreground = message.tag < FIRST_STREAM;
        if foreground || self.steps.is_none() {
            measured.message_latency.add(latency);
            let finish = &mut measured.finish[message.destination as usize];
            *finish = (*finish).max(self.now);
        } else {
            measured.background_latency.add(latency);
        }
        let Some(steps) = self.steps.as_mut().filter(|_| foreground) else {
            return false;
        };
        steps.arrived(message.destination, message.tag, self.now, &mut self.orders);
        if steps.finished() {
            return true;
        }
        self.submit_orders();
        false
    }

    fn submit_orders(&mut self) {
        for place in 0..self.orders.len() {
            self.submit(self.orders[place]);
        }
        self.orders.clear();
    }

    /// A rank begins; returns whether the collective has ended with that.
    fn begin(&mut self, rank: u32) -> bool {
        let Some(steps) = &mut self.steps else {
            return false;
        };
        steps.begin(rank, self.now, &mut self.orders);
        let finished = steps.finished();
        self.submit_orders();
        finished
    }

    /// A terminal sends the next message of a stream.
    fn timer(&mut self, timer: u32) {
        let terminals = self.nics.len() as u32;
        let (number, terminal) = (timer / terminals, timer % terminals);
        let stream = &mut self.streams[number as usize];
        let (destination, more) = stream.next(terminal);
        let order = Order {
            source: terminal,
            destination,
            bytes: stream.traffic().size.get(),
            tag: FIRST_STREAM + number,
            time: self.now,
        };
        if more {
            let next = self.now + stream.traffic().period.ps();
            self.agenda.push(next, Kind::Timer, timer);
        }
        self.submit(order);
    }
}
