//! Synchronisation of a part with the other parts: waiting, clocks and mail. The model is described
//! in [`exchange`](super::super::exchange).

use super::super::arena::NONE;
use super::super::event_queue::EventKind;
use super::super::event_queue::NEVER;
use super::super::exchange::{AnnouncedMessage, wait};
use super::super::partition::Partition;
use super::super::routes::Routes;
use super::PacketEngine;
use super::terminal::PacketMessage;

/// A waiting network part asks all parts to pause if the next event is later than this number of
/// periods of length `min_chunk_ps`. After the pause, clocks start at the time of that event,
/// because clocks that rise step by step would take long.
const MAX_CLOCK_STEPS: u64 = 1 << 9;

/// Running in parallel is too slow for a network part that has waited more than `MIN_WAITS` times
/// with fewer than `EVENTS_PER_WAIT` events per wait. A wait takes about as long as a dozen events.
const MIN_WAITS: u64 = 8;
const EVENTS_PER_WAIT: u64 = 16;

impl<R: Routes> PacketEngine<R> {
    /// Processes all events before `until` (ps), or before a pause that a network part has
    /// requested. If `waits` is false, the function returns when it would have to wait for other
    /// parts.
    pub(in super::super) fn run(&mut self, until: u64, waits: bool) {
        self.clock = 0;
        let mut idle = 0;
        while !self.synchronise(until) {
            let events = self.counters.events;
            self.work();
            if self.counters.events > events {
                idle = 0;
            } else if waits {
                self.waits += u64::from(idle == 0);
                idle += 1;
                self.pause_if_next_is_distant();
                wait(idle);
            } else {
                return;
            }
        }
    }

    /// Reads the state of the other network parts and their mail, computes `limit` and publishes
    /// the clock. Returns whether the part has reached `until` (ps).
    pub(super) fn synchronise(&mut self, until: u64) -> bool {
        let others = self.exchange.observe(self.part);
        let mut until = until.min(self.exchange.pause_time());
        self.take_mail();
        let Partition {
            min_chunk_ps: chunk,
            min_credit_ps: credit,
            ..
        } = self.setup.partition;
        let window = if self.awaited > 0 { credit } else { chunk };
        let known = until.min(others.clock.saturating_add(window));
        self.credits_known = others.clock.saturating_add(credit);
        self.resolve_uncertain_peaks(self.credits_known);
        self.limit = known;
        if self.ended != NEVER {
            let last = others.lead.unwrap_or(others.ended.max(self.ended));
            self.limit = known.min(last + 1);
            if others.lead.is_none() {
                until = until.min(last + 1);
            }
        }
        let next = self.event_queue.next_time().unwrap_or(NEVER);
        self.publish(next.min(known), next);
        next >= until && known >= until
    }

    /// Requests a pause if clocks would have to rise in many steps before the next event of any
    /// network part.
    pub(super) fn pause_if_next_is_distant(&mut self) {
        let others = self.exchange.observe(self.part);
        let next = self
            .event_queue
            .next_time()
            .unwrap_or(NEVER)
            .min(others.next);
        let steps = MAX_CLOCK_STEPS * self.setup.partition.min_chunk_ps;
        if next > self.clock.saturating_add(steps) {
            self.request_pause();
        }
    }

    /// Asks all network parts to pause. The time of the pause is so late that no part can have
    /// passed it, given that the published clock of this part is at most the present time.
    #[cold]
    pub(super) fn request_pause(&mut self) {
        let time = self.now.max(self.clock) + self.setup.partition.min_chunk_ps + 1;
        self.exchange.request_pause(time);
        self.limit = self.limit.min(time);
    }

    /// Sends the mail to the other network parts, then publishes the clock and the next event time
    /// (ps).
    pub(super) fn publish(&mut self, clock: u64, next: u64) {
        self.clock = self.clock.max(clock);
        if self.mail.len() > 1 {
            for (part, mail) in self.mail.iter_mut().enumerate() {
                self.exchange.send(part, mail);
            }
            self.exchange.publish(self.part, self.clock, next);
        }
    }

    /// Waits until all credits that other network parts have sent up to the present time are known.
    #[cold]
    pub(super) fn await_known_credits(&mut self) {
        if self.now < self.credits_known {
            return;
        }
        self.publish(self.now, self.now);
        let mut rounds = 0;
        loop {
            let others = self.exchange.observe(self.part);
            self.credits_known = others
                .clock
                .saturating_add(self.setup.partition.min_credit_ps);
            if self.now < self.credits_known {
                break;
            }
            self.waits += u64::from(rounds == 0);
            rounds += 1;
            wait(rounds);
        }
        self.take_mail();
    }

    /// Returns whether a link leads to another network part.
    #[inline]
    pub(super) fn crosses(&self, link: u32) -> bool {
        self.ports[link as usize].part != self.part
    }

    pub(in super::super) fn take_mail(&mut self) {
        if self.mail.len() == 1 {
            return;
        }
        let mut mail = std::mem::take(&mut self.inbox);
        self.exchange.take(self.part, &mut mail);
        for announced in mail.announced.drain(..) {
            self.register(&announced);
        }
        for (time, mut chunk) in mail.arrivals.drain(..).zip(mail.chunks.drain(..)) {
            let destination = self.setup.partition.part_of_terminal[chunk.destination as usize];
            if destination == self.part && chunk.home != self.part {
                let home = usize::from(chunk.home);
                chunk.message = self.received[home][chunk.message as usize];
            }
            let number = self.chunks.add(chunk);
            self.event_queue
                .push_at(time, EventKind::Arrive, chunk.link, number);
        }
        for (channel, time) in mail.credits.drain(..) {
            self.correct_uncertain_peaks(channel, time);
            let back = self.channels.send_credit(channel, self.now, time);
            self.awaited -= u32::from(self.wake(channel, back));
        }
        for message in mail.delivered.drain(..) {
            self.messages.remove(message);
        }
        self.inbox = mail;
    }

    /// Adds the entry of a message that comes from another network part.
    pub(super) fn register(&mut self, announced: &AnnouncedMessage) {
        let received = &mut self.received[usize::from(announced.home)];
        let place = announced.number as usize;
        if received.len() <= place {
            received.resize(place + 1, NONE);
        }
        received[place] = self.messages.add(PacketMessage::received(announced));
    }

    /// Returns whether the network part waits so often that running in parallel with other parts is
    /// too slow.
    pub(in super::super) fn waits_too_often(&self) -> bool {
        let events = self.counters.events - self.waits_since;
        self.waits > MIN_WAITS && events < self.waits * EVENTS_PER_WAIT
    }

    /// Records that all ranks of the network part have ended. From now on, the part processes
    /// events only up to the time that parts with unfinished ranks have reached.
    pub(in super::super) fn end(&mut self) {
        self.ended = self.now;
        self.exchange.end(self.part, self.now);
        self.limit = self.limit.min(self.now + 1);
    }
}
