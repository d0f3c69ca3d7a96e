//! How a part goes on beside others: what it waits for, and its mail; see [`border`](super::super::border).

use super::super::border::{Begun, NEVER, wait};
use super::super::division::Division;
use super::super::event_queue::EventKind;
use super::super::pool::NONE;
use super::super::routes::Routes;
use super::PacketEngine;
use super::terminal::PacketMessage;

/// Parts whose next events are further away than so many steps of their clocks stop, to be told of it.
const FAR_STEPS: u64 = 1 << 9;

/// So many waits of a part, with fewer events between them on average, are too many: a wait takes about as
/// long as a dozen events.
const LEAST_WAITS: u64 = 8;
const EVENTS_PER_WAIT: u64 = 16;

impl<R: Routes> PacketEngine<R> {
    /// Carries out all events before a time, or before a rest that a part asked for. A part that does not wait
    /// stops where it would have to.
    pub(in super::super) fn run(&mut self, until: u64, waits: bool) {
        self.clock = 0;
        let mut idle = 0;
        while !self.look(until) {
            let events = self.measured.events;
            self.work();
            if self.measured.events > events {
                idle = 0;
            } else if waits {
                self.waits += u64::from(idle == 0);
                idle += 1;
                self.rest_if_far();
                wait(idle);
            } else {
                return;
            }
        }
    }

    /// Sees how far others are, takes their mail and says how far it may go and has come; returns whether
    /// it has come to the end.
    pub(super) fn look(&mut self, until: u64) -> bool {
        let seen = self.border.see(self.part);
        let mut until = until.min(self.border.rest());
        self.take_mail();
        let Division { chunk, credit, .. } = self.setup.division;
        let soonest = if self.wanted > 0 { credit } else { chunk };
        let known = until.min(seen.clock.saturating_add(soonest));
        self.credits_known = seen.clock.saturating_add(credit);
        self.resolve_doubts(self.credits_known);
        self.limit = known;
        if self.ended != NEVER {
            let last = seen.lead.unwrap_or(seen.ended.max(self.ended));
            self.limit = known.min(last + 1);
            if seen.lead.is_none() {
                until = until.min(last + 1);
            }
        }
        let next = self.event_queue.next_time().unwrap_or(NEVER);
        self.show(next.min(known), next);
        next >= until && known >= until
    }

    /// Asks for a rest where clocks would have to rise in many steps before any part has something to do.
    pub(super) fn rest_if_far(&mut self) {
        let seen = self.border.see(self.part);
        let next = self.event_queue.next_time().unwrap_or(NEVER).min(seen.next);
        let steps = FAR_STEPS * self.setup.division.chunk;
        if next > self.clock.saturating_add(steps) {
            self.ask_for_rest();
        }
    }

    /// Asks all parts to stop at a time that none can have come to: its clock has shown no later one than now.
    #[cold]
    pub(super) fn ask_for_rest(&mut self) {
        let time = self.now.max(self.clock) + self.setup.division.chunk + 1;
        self.border.rest_before(time);
        self.limit = self.limit.min(time);
    }

    /// Mails what it has for others and shows its clock.
    pub(super) fn show(&mut self, clock: u64, next: u64) {
        self.clock = self.clock.max(clock);
        if self.mail.len() > 1 {
            for (part, mail) in self.mail.iter_mut().enumerate() {
                self.border.send(part, mail);
            }
            self.border.show(self.part, self.clock, next);
        }
    }

    /// Waits until all credits that have come back from other parts are known.
    #[cold]
    pub(super) fn settle(&mut self) {
        if self.now < self.credits_known {
            return;
        }
        self.show(self.now, self.now);
        let mut rounds = 0;
        loop {
            let seen = self.border.see(self.part);
            self.credits_known = seen.clock.saturating_add(self.setup.division.credit);
            if self.now < self.credits_known {
                break;
            }
            self.waits += u64::from(rounds == 0);
            rounds += 1;
            wait(rounds);
        }
        self.take_mail();
    }

    /// Whether a link leads to another part.
    #[inline]
    pub(super) fn crosses(&self, link: u32) -> bool {
        self.ports[link as usize].part != self.part
    }

    /// Takes in what other parts have mailed.
    pub(in super::super) fn take_mail(&mut self) {
        if self.mail.len() == 1 {
            return;
        }
        let mut mail = std::mem::take(&mut self.came);
        self.border.take(self.part, &mut mail);
        for begun in mail.begun.drain(..) {
            self.expect(&begun);
        }
        for (time, mut chunk) in mail.arrivals.drain(..).zip(mail.chunks.drain(..)) {
            let destination = self.setup.division.of_terminal[chunk.destination as usize];
            if destination == self.part && chunk.home != self.part {
                let home = usize::from(chunk.home);
                chunk.message = self.received[home][chunk.message as usize];
            }
            let number = self.chunks.add(chunk);
            self.event_queue
                .push_at(time, EventKind::Arrive, chunk.link, number);
        }
        for (channel, time) in mail.credits.drain(..) {
            self.credit_doubts(channel, time);
            let back = self.channels.send_credit(channel, self.now, time);
            self.wanted -= u32::from(self.wake(channel, back));
        }
        for message in mail.delivered.drain(..) {
            self.messages.remove(message);
        }
        self.came = mail;
    }

    /// A message comes from another part.
    pub(super) fn expect(&mut self, begun: &Begun) {
        let received = &mut self.received[usize::from(begun.home)];
        let place = begun.number as usize;
        if received.len() <= place {
            received.resize(place + 1, NONE);
        }
        received[place] = self.messages.add(PacketMessage::received(begun));
    }

    /// Whether it waits for others too often to be of use at the same time as they.
    pub(in super::super) fn waits_much(&self) -> bool {
        let events = self.measured.events - self.waits_since;
        self.waits > LEAST_WAITS && events < self.waits * EVENTS_PER_WAIT
    }

    /// All of its ranks have ended: only what happens at this time is still sure to happen.
    pub(in super::super) fn end(&mut self) {
        self.ended = self.now;
        self.border.end(self.part, self.now);
        self.limit = self.limit.min(self.now + 1);
    }
}
