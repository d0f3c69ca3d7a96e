//! The protocol as a machine without time: what happens, and what that brings about.
//!
//! Messages may arrive in any order; what is sent is handed back, and the engine, or the test that goes
//! through all interleavings, decides when it arrives.

use std::collections::VecDeque;

use super::flows::TransceiverFlows;

/// Something that happens at one end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum ControlEvent {
    /// A transmitter has sent all of a flow.
    Sent(u32),
    /// All of a flow is at its receiver.
    Arrived(u32),
    /// RELEASE of a receiver by a transmitter reaches it.
    Release { transmitter: u32, receiver: u32 },
    /// REVOKE of a receiver reaches the transmitter that holds it.
    Revoke { transmitter: u32, receiver: u32 },
    /// REQUEST of a flow reaches its receiver.
    Request(u32),
    /// GRANT of a flow reaches its transmitter.
    Grant(u32),
}

/// What follows from something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consequence {
    /// A message is sent.
    Message(ControlEvent),
    /// A flow begins: with a fresh grant it is to be tuned and locked first.
    Begin { flow: u32, fresh: bool },
    /// What a transmitter has sent is under way.
    UnderWay(u32),
}

/// A transmitter. A receiver that is revoked early, or not any more, is told so by `yields`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sender {
    /// Holds nothing.
    Idle,
    /// Has asked for the receiver of its first flow.
    Asking { yields: bool },
    /// Sends its first flow.
    Sending { yields: bool },
    /// Keeps the receiver of its first flow, whose data is not there yet.
    Keeping,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Receiver {
    /// The transmitter that has the grant.
    holder: Option<u32>,
    /// Whether it may keep the circuit.
    kept: bool,
    /// Whether that was revoked.
    revoked: bool,
    /// Whether RELEASE has come.
    released: bool,
    /// Flows that have begun and not arrived.
    arriving: u32,
    queue: VecDeque<u32>,
}

/// Everything that changes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ProtocolState {
    /// Flows sent, by transmitter.
    sent: Vec<u32>,
    senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    /// Arrivals that joins still need.
    join_needs: Vec<u32>,
    /// Joins that flows still need.
    flow_needs: Vec<u32>,
    /// Flows that have arrived.
    pub(super) arrived: u32,
}

impl ProtocolState {
    pub(super) fn new(flows: &TransceiverFlows) -> ProtocolState {
        let ports = flows.of_transmitter.len();
        ProtocolState {
            sent: vec![0; ports],
            senders: vec![Sender::Idle; ports],
            receivers: vec![Receiver::default(); ports],
            join_needs: flows.join_needs.clone(),
            flow_needs: flows.needs.clone(),
            arrived: 0,
        }
    }

    /// Lets every transmitter begin that can.
    pub(super) fn open(&mut self, flows: &TransceiverFlows, then: &mut Vec<Consequence>) {
        for transmitter in 0..self.senders.len() as u32 {
            self.go_on(flows, transmitter, then);
        }
    }

    /// Takes in what happens; adds what follows.
    pub(super) fn handle(
        &mut self,
        flows: &TransceiverFlows,
        happening: ControlEvent,
        then: &mut Vec<Consequence>,
    ) {
        match happening {
            ControlEvent::Request(flow) => {
                let receiver = flows.flows[flow as usize].receiver();
                self.receivers[receiver as usize].queue.push_back(flow);
                self.serve(flows, receiver, then);
            }
            ControlEvent::Grant(flow) => self.granted(flows, flow, then),
            ControlEvent::Sent(flow) => self.sent(flows, flow, then),
            ControlEvent::Arrived(flow) => self.deliver(flows, flow, then),
            ControlEvent::Release { receiver, .. } => {
                self.receivers[receiver as usize].released = true;
                self.free(flows, receiver, then);
            }
            ControlEvent::Revoke {
                transmitter,
                receiver,
            } => self.revoked(flows, transmitter, receiver, then),
        }
    }

    /// The flow whose turn it is at a transmitter.
    fn first(&self, flows: &TransceiverFlows, transmitter: u32) -> Option<u32> {
        let own = &flows.of_transmitter[transmitter as usize];
        own.get(self.sent[transmitter as usize] as usize).copied()
    }

    /// Asks for the first flow of a transmitter, or begins it on the circuit kept, if its data is there.
    fn go_on(&mut self, flows: &TransceiverFlows, transmitter: u32, then: &mut Vec<Consequence>) {
        let Some(flow) = self.first(flows, transmitter) else {
            return;
        };
        if self.flow_needs[flow as usize] > 0 {
            return;
        }
        match self.senders[transmitter as usize] {
            Sender::Idle => {
                self.senders[transmitter as usize] = Sender::Asking { yields: false };
                then.push(Consequence::Message(ControlEvent::Request(flow)));
            }
            Sender::Keeping => self.begin(flows, flow, false, then),
            Sender::Asking { .. } | Sender::Sending { .. } => {}
        }
    }

    fn begin(
        &mut self,
        flows: &TransceiverFlows,
        flow: u32,
        yields: bool,
        then: &mut Vec<Consequence>,
    ) {
        let ends = flows.flows[flow as usize];
        let sender = &mut self.senders[ends.transmitter() as usize];
        let fresh = *sender != Sender::Keeping;
        *sender = Sender::Sending { yields };
        self.receivers[ends.receiver() as usize].arriving += 1;
        then.push(Consequence::Begin { flow, fresh });
    }

    fn granted(&mut self, flows: &TransceiverFlows, flow: u32, then: &mut Vec<Consequence>) {
        let transmitter = flows.flows[flow as usize].transmitter();
        let sender = self.senders[transmitter as usize];
        let yields = sender == Sender::Asking { yields: true };
        self.begin(flows, flow, yields, then);
    }

    /// Keeps the circuit for the next flow or releases it.
    fn sent(&mut self, flows: &TransceiverFlows, flow: u32, then: &mut Vec<Consequence>) {
        let ends = flows.flows[flow as usize];
        let transmitter = ends.transmitter() as usize;
        self.sent[transmitter] += 1;
        then.push(Consequence::UnderWay(flow));
        let yields = self.senders[transmitter] == Sender::Sending { yields: true };
        if ends.keeps && !yields {
            self.senders[transmitter] = Sender::Keeping;
        } else {
            self.senders[transmitter] = Sender::Idle;
            then.push(Consequence::Message(ControlEvent::Release {
                transmitter: ends.transmitter(),
                receiver: ends.receiver(),
            }));
        }
        self.go_on(flows, ends.transmitter(), then);
    }

    /// Lets flows that needed this one go on.
    fn deliver(&mut self, flows: &TransceiverFlows, flow: u32, then: &mut Vec<Consequence>) {
        self.arrived += 1;
        for &join in flows.feeds.of(flow) {
            self.join_needs[join as usize] -= 1;
            if self.join_needs[join as usize] > 0 {
                continue;
            }
            for &waiter in flows.waiters.of(join) {
                self.flow_needs[waiter as usize] -= 1;
                let transmitter = flows.flows[waiter as usize].transmitter();
                if self.first(flows, transmitter) == Some(waiter) {
                    self.go_on(flows, transmitter, then);
                }
            }
        }
        let receiver = flows.flows[flow as usize].receiver();
        self.receivers[receiver as usize].arriving -= 1;
        self.free(flows, receiver, then);
    }

    /// Sets a receiver free that was released and has everything.
    fn free(&mut self, flows: &TransceiverFlows, receiver: u32, then: &mut Vec<Consequence>) {
        let own = &mut self.receivers[receiver as usize];
        if own.released && own.arriving == 0 {
            own.holder = None;
            own.released = false;
            self.serve(flows, receiver, then);
        }
    }

    /// Grants a free receiver to the first who waits, or wants back one that is kept.
    fn serve(&mut self, flows: &TransceiverFlows, receiver: u32, then: &mut Vec<Consequence>) {
        let own = &mut self.receivers[receiver as usize];
        match own.holder {
            None => {
                if let Some(flow) = own.queue.pop_front() {
                    let ends = flows.flows[flow as usize];
                    own.holder = Some(ends.transmitter());
                    own.kept = ends.keeps;
                    own.revoked = false;
                    then.push(Consequence::Message(ControlEvent::Grant(flow)));
                    self.serve(flows, receiver, then);
                }
            }
            Some(transmitter) => {
                if own.kept && !own.revoked && !own.released && !own.queue.is_empty() {
                    own.revoked = true;
                    then.push(Consequence::Message(ControlEvent::Revoke {
                        transmitter,
                        receiver,
                    }));
                }
            }
        }
    }

    /// Gives a receiver back that is kept, or will once its flow is sent. A REVOKE that comes before its
    /// GRANT is remembered; one that comes too late costs a kept circuit and no more.
    fn revoked(
        &mut self,
        flows: &TransceiverFlows,
        transmitter: u32,
        receiver: u32,
        then: &mut Vec<Consequence>,
    ) {
        let of_first = self.first(flows, transmitter);
        if of_first.is_none_or(|flow| flows.flows[flow as usize].receiver() != receiver) {
            return;
        }
        let sender = &mut self.senders[transmitter as usize];
        match sender {
            Sender::Asking { yields } | Sender::Sending { yields } => *yields = true,
            Sender::Keeping => {
                *sender = Sender::Idle;
                then.push(Consequence::Message(ControlEvent::Release {
                    transmitter,
                    receiver,
                }));
            }
            Sender::Idle => {}
        }
    }
}
