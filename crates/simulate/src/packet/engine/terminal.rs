//! Terminals. A terminal cuts messages into packets and packets into chunks, sends the chunks, and
//! receives messages.

use super::super::arena::{Linked, List, NONE};
use super::super::channel::Chunk;
use super::super::event_queue::{EventKind, LATEST_PS};
use super::super::exchange::AnnouncedMessage;
use super::super::routes::Routes;
use super::super::steps::{IssuedMessage, ScheduleProgress};
use super::PacketEngine;
use crate::live::MessageEvent;
use opticoll_base::units::Time;

/// Tag of the messages of the first traffic stream. The tag of a message of a collective is its
/// step, which is lower.
pub(in super::super) const FIRST_STREAM: u32 = 1 << 31;

/// Message in the network. If source and destination are in different network parts, both parts
/// have an entry for the message. The part of the source cuts the message, and the part of the
/// destination receives it.
#[derive(Clone, Copy)]
pub(in super::super) struct PacketMessage {
    next: u32,
    destination: u32,
    tag: u32,
    /// Network part of the message's source.
    home: u8,
    /// Index of the message in `home`, if `home` is another part.
    number: u32,
    /// Number of bytes that are not yet cut into packets.
    to_cut: u64,
    /// Number of chunks that have not arrived.
    pub(in super::super) chunks: u64,
    /// Time (ps) at which the message was sent.
    sent: u64,
    /// Time (ps) from which the terminal may cut the message.
    ready: u64,
}

impl PacketMessage {
    /// Creates the entry of an announced message in the network part of its destination.
    pub(in super::super) fn received(announced: &AnnouncedMessage) -> PacketMessage {
        PacketMessage {
            next: NONE,
            destination: announced.destination,
            tag: announced.tag,
            home: announced.home,
            number: announced.number,
            to_cut: 0,
            chunks: announced.chunks,
            sent: announced.sent,
            ready: 0,
        }
    }
}

impl Linked for PacketMessage {
    fn next(&self) -> u32 {
        self.next
    }
    fn set_next(&mut self, next: u32) {
        self.next = next;
    }
}

pub(in super::super) struct Nic {
    pub(in super::super) link: u32,
    /// Messages that are not completely cut into chunks, in order.
    pub(in super::super) messages: List,
    /// Chunks that wait to be sent, in order.
    pub(in super::super) queue: List,
    queued: u32,
    /// Time (ps) from which the next message can be sequenced.
    sequenced: u64,
    /// Time (ps) from which the next packet may be cut.
    paced: u64,
    /// True if a `Generate` event is due.
    generating: bool,
    /// True if the next packet waits until a chunk has left.
    held_up: bool,
    /// True if an `Inject` event is due, or if a chunk waits for a credit.
    sending: bool,
    chunks_cut: u64,
}

impl Nic {
    pub(in super::super) fn new(link: u32) -> Nic {
        Nic {
            link,
            messages: List::EMPTY,
            queue: List::EMPTY,
            queued: 0,
            sequenced: 0,
            paced: 0,
            generating: false,
            held_up: false,
            sending: false,
            chunks_cut: 0,
        }
    }
}

/// Returns the number of chunks of a message of `bytes` bytes. `packet` and `chunk` are the sizes
/// of packets and chunks in bytes. An empty message is one chunk.
pub(in super::super) fn chunks_of(bytes: u64, packet: u64, chunk: u64) -> u64 {
    (bytes / packet * packet.div_ceil(chunk) + (bytes % packet).div_ceil(chunk)).max(1)
}

impl<R: Routes> PacketEngine<R> {
    /// Passes a message to the terminal of its source.
    pub(in super::super) fn submit(&mut self, order: IssuedMessage) {
        let chunks = chunks_of(order.bytes, self.setup.packet, self.setup.chunk);
        let (delays, ports) = (&self.setup.delays, &mut self.ports);
        let nic = &mut self.nics[order.source as usize];
        let link = nic.link;
        let taken = nic.sequenced.max(order.time + delays.handover(ports, link));
        let sequencing = delays.sequencing() + delays.handover(ports, link);
        nic.sequenced = taken.saturating_add(sequencing);
        let ready = nic.sequenced;
        let message = self.messages.add(PacketMessage {
            next: NONE,
            destination: order.destination,
            tag: order.tag,
            home: self.part,
            number: NONE,
            to_cut: order.bytes,
            chunks,
            sent: order.time,
            ready,
        });
        let part = self.setup.partition.part_of_terminal[order.destination as usize];
        if part != self.part {
            self.mail[usize::from(part)]
                .announced
                .push(AnnouncedMessage {
                    home: self.part,
                    number: message,
                    destination: order.destination,
                    tag: order.tag,
                    chunks,
                    sent: order.time,
                });
        }
        self.counters.bytes_sent += u128::from(order.bytes);
        self.routes.begin(message, order.source, order.destination);
        nic.messages.push(&mut self.messages, message);
        if !nic.generating {
            nic.generating = true;
            let delay = delays.handover(&mut self.ports, link);
            let time = ready.max(nic.paced).saturating_add(delay);
            self.event_queue
                .push(time, EventKind::Generate, order.source);
        }
    }

    /// Cuts the next packet of the first message of a terminal into chunks.
    pub(in super::super) fn generate(&mut self, terminal: u32) {
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
            let draw = (u64::from(terminal) << 40) + (nic.chunks_cut << 3);
            let mut chunk = Chunk::new(
                (self.part, number),
                destination,
                piece as u32,
                self.now,
                draw,
            );
            chunk.last = last_packet && bytes == 0;
            let place = self.chunks.add(chunk);
            nic.queue.push(&mut self.chunks, place);
            nic.chunks_cut += 1;
            count += 1;
            if bytes == 0 {
                break;
            }
        }
        nic.queued += count as u32;
        let link = nic.link;
        let wire = self.ports[link as usize].full_wire;
        let after = self.now + self.setup.delays.send(&mut self.ports, link);
        nic.paced = after.saturating_add(wire.saturating_mul(count));
        nic.held_up = nic.queued >= self.setup.max_queued_chunks;
        if !nic.held_up {
            self.set_next_time(terminal);
        }
        let nic = &mut self.nics[terminal as usize];
        if !nic.sending {
            nic.sending = true;
            let time = self.now + self.setup.delays.handover(&mut self.ports, link);
            self.event_queue.push(time, EventKind::Inject, terminal);
        }
    }

    /// Schedules the cutting of the next packet of a terminal, if the terminal has a packet.
    fn set_next_time(&mut self, terminal: u32) {
        let nic = &mut self.nics[terminal as usize];
        nic.generating = !nic.messages.is_empty();
        if nic.generating {
            let ready = self.messages[nic.messages.head].ready;
            let delay = self.setup.delays.handover(&mut self.ports, nic.link);
            let time = ready.max(nic.paced).max(self.now).saturating_add(delay);
            self.event_queue.push(time, EventKind::Generate, terminal);
        }
    }

    /// Sends the next chunk of a terminal over its link, if the link's buffer has a free place.
    pub(in super::super) fn inject(&mut self, terminal: u32) {
        let nic = &mut self.nics[terminal as usize];
        let link = nic.link;
        let into = self.channels.number(link, 0);
        self.channels.take_credits(into, self.now);
        let state = &self.channels.list[into as usize];
        if state.occupied >= state.capacity {
            self.stall(link, into);
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
        if start >= LATEST_PS {
            return self.event_queue.push(start, EventKind::Inject, terminal);
        }
        let gone = self.put(link, into, number, start);
        let arrival = gone + self.ports[link as usize].latency;
        self.event_queue
            .push_at(arrival, EventKind::Arrive, link, number);
        if more {
            self.event_queue.push(gone, EventKind::Inject, terminal);
        }
        if held_up {
            if self.nics[terminal as usize].queued < self.setup.max_queued_chunks {
                self.set_next_time(terminal);
            } else {
                self.nics[terminal as usize].held_up = true;
            }
        }
        let chunk = &self.chunks[number];
        if chunk.last {
            let tag = self.messages[chunk.message].tag;
            let departure = self.now + self.setup.delays.handover(&mut self.ports, link);
            if tag < FIRST_STREAM {
                let finish = &mut self.counters.finish[terminal as usize];
                *finish = (*finish).max(departure);
                if let Some(happened) = &mut self.message_events {
                    happened.push(MessageEvent {
                        message: tag,
                        left: true,
                        arrived: false,
                        time: Time::from_ps(departure),
                    });
                }
                if let Some(steps) = &mut self.steps {
                    steps.note_departure(terminal, departure, &mut self.orders);
                }
                self.send_orders();
            }
        }
    }

    pub(in super::super) fn deliver(&mut self, number: u32) {
        let message = self.messages[number];
        self.messages.remove(number);
        if message.home != self.part {
            let mail = &mut self.mail[usize::from(message.home)];
            mail.delivered.push(message.number);
        }
        let counters = &mut self.counters;
        counters.delivered += 1;
        let latency = self.now - message.sent;
        let foreground = message.tag < FIRST_STREAM;
        if foreground || self.steps.is_none() && self.message_events.is_none() {
            counters.message_latency.add(latency);
            let finish = &mut counters.finish[message.destination as usize];
            *finish = (*finish).max(self.now);
        } else {
            counters.background_latency.add(latency);
        }
        if let Some(happened) = self.message_events.as_mut().filter(|_| foreground) {
            happened.push(MessageEvent {
                message: message.tag,
                left: false,
                arrived: true,
                time: Time::from_ps(self.now),
            });
        }
        let Some(steps) = self.steps.as_mut().filter(|_| foreground) else {
            return;
        };
        steps.note_arrival(message.destination, message.tag, self.now, &mut self.orders);
        self.send_orders();
    }

    /// Submits the messages that ranks have issued, and ends the network part if its ranks have
    /// finished.
    fn send_orders(&mut self) {
        if self
            .steps
            .as_ref()
            .is_some_and(ScheduleProgress::is_finished)
        {
            self.end();
        }
        for place in 0..self.orders.len() {
            self.submit(self.orders[place]);
        }
        self.orders.clear();
    }

    pub(in super::super) fn begin(&mut self, rank: u32) {
        let Some(steps) = &mut self.steps else {
            return;
        };
        steps.begin(rank, self.now, &mut self.orders);
        self.send_orders();
    }

    /// Sends the next message of a stream from a terminal, and schedules the message after it.
    /// `timer` is (index of the stream) * (number of terminals) + (index of the terminal).
    pub(in super::super) fn timer(&mut self, timer: u32) {
        let terminals = self.nics.len() as u32;
        let (number, terminal) = (timer / terminals, timer % terminals);
        let stream = &mut self.streams[number as usize];
        let (destination, more) = stream.next(terminal);
        let order = IssuedMessage {
            source: terminal,
            destination,
            bytes: stream.traffic().size.get(),
            tag: FIRST_STREAM + number,
            time: self.now,
        };
        let next = self.now + stream.traffic().period.ps();
        if more && stream.traffic().sends_at(next) {
            self.event_queue.push(next, EventKind::Timer, timer);
        }
        self.submit(order);
    }
}
