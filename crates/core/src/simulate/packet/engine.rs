//! The event loop: ports, terminals, and what happens when.

use super::agenda::{Agenda, Event, Kind};
use super::channel::{Channels, Chunk, Wake};
use super::delays::Delays;
use super::driven::Report;
use super::pool::Pool;
use super::routes::Routes;
use super::steps::{Order, Steps};
use super::stuck;
use super::terminal::{Message, Nic};
use super::traffic::Stream;
use super::{Arbitration, PacketError, Progress, RouterDelay};
use crate::outcome::packets::{Class, Distribution, Meter};

/// Times beyond this are refused, so that a sum with any delay stays in 64 bits.
pub(super) const LATEST_PS: u64 = 1 << 61;
/// Events from one report of progress to the next.
const REPORT: u64 = 1 << 20;
/// Events from one look for stuck channels to the next.
const LOOK: u64 = 1 << 24;

/// A link as its sender sees it. One line of the cache.
#[repr(align(64))]
pub(super) struct Port {
    /// When it can send next, in picoseconds.
    pub(super) free: u64,
    /// How long it was sending.
    pub(super) busy: u64,
    pub(super) full_wire: u64,
    pub(super) latency: u64,
    /// The router or terminal that it leads to.
    pub(super) target: u32,
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
    pub(super) fn new(class: Class, target: u32, full_wire: u64, latency: u64) -> Port {
        Port {
            free: 0,
            busy: 0,
            full_wire,
            latency,
            target,
            decided: 0,
            recent_wire: 0,
            queued: 0,
            class,
            pending: false,
            turn: 0,
        }
    }
}

/// How long chunks stood before a channel's full buffer.
#[derive(Clone, Copy, Default)]
pub(super) struct Stall {
    pub(super) sum: u64,
    pub(super) since: Option<u64>,
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
    /// Per terminal, its link; per link, the terminal that it leads from.
    pub(super) injection: Vec<u32>,
    pub(super) terminal_at: Vec<u32>,
    /// Per link, its rate.
    pub(super) bits_per_second: Vec<u64>,
}

/// A running simulation.
pub(super) struct Engine<R> {
    pub(super) setup: Setup,
    pub(super) routes: R,
    pub(super) ports: Vec<Port>,
    pub(super) channels: Channels,
    pub(super) stalls: Vec<Stall>,
    /// Per channel, the bytes by which its chunks were shorter than full ones.
    pub(super) short_bytes: Vec<u64>,
    pub(super) chunks: Pool<Chunk>,
    pub(super) steps: Option<Steps>,
    pub(super) streams: Vec<Stream>,
    pub(super) measured: Measured,
    pub(super) agenda: Agenda,
    pub(super) messages: Pool<Message>,
    pub(super) nics: Vec<Nic>,
    pub(super) orders: Vec<Order>,
    /// What happens to messages, where somebody outside waits for them.
    pub(super) reports: Option<Vec<Report>>,
    pub(super) now: u64,
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
    pub(super) occupancy: Meter,
    pub(super) stalled: Meter,
}

impl Measured {
    /// Nothing counted; time-lines have bins of so many picoseconds, or are none.
    pub(super) fn new(terminals: usize, bin: u64) -> Measured {
        Measured {
            finish: vec![0; terminals],
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
            occupancy: Meter::new(bin),
            stalled: Meter::new(bin),
        }
    }
}

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
        // Some five events happen per port and chunk time; a bucket then has a few dozen of them.
        let shift = 8 + (20_000 / ports.len().max(1)).max(1).ilog2().min(6);
        Engine {
            nics: setup.injection.iter().map(|&link| Nic::new(link)).collect(),
            stalls: vec![Stall::default(); channels.list.len()],
            short_bytes: vec![0; channels.list.len()],
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
            reports: None,
            now: 0,
        }
    }

    /// Runs until the collective has ended or everything has arrived; returns the time.
    pub(super) fn run(
        &mut self,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<u64, PacketError> {
        let terminals = self.nics.len() as u32;
        self.begin_streams();
        if self.steps.is_some() {
            for rank in 0..terminals {
                self.agenda.push(self.setup.begin, Kind::Begin, rank);
            }
        }
        while let Some(event) = self.next_event() {
            if self.carry_out(event) {
                break;
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

    /// Puts the first message of each terminal and stream on the agenda.
    pub(super) fn begin_streams(&mut self) {
        let terminals = self.nics.len() as u32;
        for stream in 0..self.streams.len() {
            for terminal in 0..terminals {
                let time = self.streams[stream].first(terminal);
                let traffic = self.streams[stream].traffic();
                if traffic.messages == Some(0) || !traffic.sends_at(time) {
                    continue;
                }
                let timer = stream as u32 * terminals + terminal;
                self.agenda.push(time, Kind::Timer, timer);
            }
        }
    }

    /// What happens at an event; whether the collective has ended with it.
    #[inline]
    pub(super) fn carry_out(&mut self, event: Event) -> bool {
        self.now = event.time;
        self.measured.events += 1;
        match event.kind {
            Kind::Arrive => self.arrive(event.index),
            Kind::Send => self.send(event.index),
            Kind::Credit => self.credit(event.index),
            Kind::Generate => self.generate(event.index),
            Kind::Inject => self.inject(event.index),
            Kind::Deliver => return self.deliver(event.index),
            Kind::Timer => self.timer(event.index),
            Kind::Begin => return self.begin(event.index),
        }
        false
    }

    #[inline]
    pub(super) fn next_event(&mut self) -> Option<Event> {
        self.agenda.pop().or_else(|| {
            self.read_ahead();
            self.agenda.pop()
        })
    }

    /// Opens the next events of the agenda and reads what they are about. These reads do not wait for one
    /// another, so that the processor fetches from far memory all at once what the events would fetch one
    /// by one.
    fn read_ahead(&mut self) {
        let events = self.agenda.open();
        let mut read = 0;
        for event in events.iter().rev() {
            match event.kind {
                Kind::Arrive => {
                    let chunk = &self.chunks[event.index];
                    let from = self.channels.number(chunk.link, chunk.channel.into());
                    read ^= self.channels.list[from as usize].occupied;
                    let link = self.routes.probably_next(chunk);
                    let into = self.channels.number(link, 0);
                    read ^= self.channels.list[into as usize].occupied;
                    if self.ports[link as usize].class == Class::Ejection {
                        read ^= self.messages[chunk.message].chunks as u32;
                    }
                }
                Kind::Inject => {
                    let nic = &self.nics[event.index as usize];
                    let into = self.channels.number(nic.link, 0);
                    read ^= self.channels.list[into as usize].occupied;
                    read ^= self.ports[nic.link as usize].target;
                    read ^= self.chunks[nic.queue.head].bytes;
                }
                Kind::Generate => {
                    let nic = &self.nics[event.index as usize];
                    read ^= self.messages[nic.messages.head].chunks as u32;
                }
                Kind::Deliver => read ^= self.messages[event.index].chunks as u32,
                _ => {}
            }
        }
        std::hint::black_box(read);
    }

    #[cold]
    fn report(&mut self, watch: &mut dyn FnMut(&Progress) -> bool) -> Result<(), PacketError> {
        let progress = Progress {
            events: self.measured.events,
            messages_delivered: self.measured.delivered,
            time_ps: self.now,
        };
        if !watch(&progress) {
            return Err(PacketError::BrokenOff);
        }
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
        let router = chunk.router;
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
            self.stall(link, into);
        }
        let state = &mut self.channels.list[into as usize];
        state.wait.push(&mut self.chunks, number);
        state.waiting += 1;
        self.await_credit(into);
    }

    /// Chunks stand before a channel's full buffer.
    pub(super) fn stall(&mut self, link: u32, number: u32) {
        let stall = &mut self.stalls[number as usize];
        if stall.since.is_none() {
            stall.since = Some(self.now);
            let class = self.ports[link as usize].class;
            self.measured.stalled.step(class, self.now, 1);
        }
    }

    /// A place has become free at a time, or the simulation has ended.
    pub(super) fn end_stall(&mut self, link: u32, number: u32, time: u64) {
        let stall = &mut self.stalls[number as usize];
        if let Some(since) = stall.since.take() {
            stall.sum += time.saturating_sub(since);
            let class = self.ports[link as usize].class;
            self.measured.stalled.step(class, time.max(since), -1);
        }
    }

    /// Makes sure that the next credit of a channel becomes an event.
    pub(super) fn await_credit(&mut self, number: u32) {
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
    fn send_credit(&mut self, link: u32, number: u32, time: u64, latency: u64) {
        let delay = self.setup.credit_delay + latency + self.setup.delays.credit();
        let back = self.channels.send_credit(number, self.now, time + delay);
        if self.measured.occupancy.measures() {
            let class = self.ports[link as usize].class;
            self.measured.occupancy.step(class, back, -1);
        }
        let state = &mut self.channels.list[number as usize];
        if state.wake == Wake::Wanted {
            state.wake = Wake::Scheduled;
            self.agenda.push(back, Kind::Credit, number);
        }
    }

    /// Counts a place of a channel's buffer as taken.
    #[inline]
    pub(super) fn occupy(&mut self, link: u32, number: u32, time: u64) {
        let state = &mut self.channels.list[number as usize];
        state.occupied += 1;
        state.peak = state.peak.max(state.occupied);
        let class = self.ports[link as usize].class;
        self.measured.occupancy.step(class, time, 1);
    }

    /// A chunk leaves the buffer of the link it came over for that of its next one.
    fn accept(&mut self, link: u32, into: u32, number: u32) {
        let chunk = &self.chunks[number];
        let (from_link, latency) = (chunk.link, chunk.latency);
        let from = self.channels.number(from_link, chunk.channel.into());
        self.occupy(link, into, self.now);
        self.send_credit(from_link, from, self.now, latency);
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
        self.send_credit(link, into, arrival, chunk.latency);
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
    pub(super) fn put(&mut self, link: u32, into: u32, number: u32, start: u64) -> u64 {
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
        chunk.router = port.target;
        chunk.latency = port.latency;
        chunk.channel = (into - (link << self.channels.shift)) as u8;
        port.free = start + wire + self.setup.delays.send();
        port.recent_wire = wire;
        port.busy += wire;
        let state = &mut self.channels.list[into as usize];
        state.chunks += 1;
        port.free
    }

    /// A credit has come back that somebody waits for.
    fn credit(&mut self, number: u32) {
        self.channels.take_credits(number, self.now);
        let link = number >> self.channels.shift;
        self.end_stall(link, number, self.now);
        self.channels.list[number as usize].wake = Wake::Unwanted;
        if self.ports[link as usize].class == Class::Injection {
            let terminal = self.setup.terminal_at[link as usize];
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
}
