//! Control protocol as a state machine without time.
//!
//! Messages may arrive in any order. Each event returns its effects; the engine, or the test
//! that enumerates all interleavings, decides when they happen.

use std::collections::VecDeque;

use super::flows::TransceiverFlows;

/// Event at one end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum ControlEvent {
    /// A transmitter has sent all data of a flow.
    Sent(u32),
    /// All data of a flow have arrived at the receiver.
    Arrived(u32),
    /// A transmitter's RELEASE reaches its receiver.
    Release { transmitter: u32, receiver: u32 },
    /// A receiver's REVOKE reaches the transmitter that holds it.
    Revoke { transmitter: u32, receiver: u32 },
    /// REQUEST of a flow reaches its receiver.
    Request(u32),
    /// GRANT of a flow reaches its transmitter.
    Grant(u32),
}

/// Effect of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// A message is sent.
    Message(ControlEvent),
    /// A flow begins. Under a fresh grant, the laser is tuned and the receiver locks first.
    Begin { flow: u32, fresh: bool },
    /// The data of a flow have left the transmitter.
    UnderWay(u32),
}

/// State of a transmitter; `yields` says whether the receiver was revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sender {
    /// Holds no receiver.
    Idle,
    /// Has requested the receiver of its first flow.
    Asking { yields: bool },
    /// Sends its first flow.
    Sending { yields: bool },
    /// Keeps the receiver of its first flow, whose data have not arrived yet.
    Keeping,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Receiver {
    /// Transmitter that has the grant.
    holder: Option<u32>,
    /// True if the transmitter may keep the circuit.
    kept: bool,
    /// True if the circuit was revoked.
    revoked: bool,
    /// True if RELEASE has arrived.
    released: bool,
    /// Number of flows that have begun and not arrived.
    arriving: u32,
    queue: VecDeque<u32>,
}

/// State of all transmitters, receivers and flows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ProtocolState {
    /// Per transmitter, the number of flows sent.
    sent: Vec<u32>,
    senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    /// Per join, the number of arrivals that it still needs.
    join_needs: Vec<u32>,
    /// Per flow, the number of joins that it still needs.
    flow_needs: Vec<u32>,
    /// Number of flows that have arrived.
    pub(super) arrived: u32,
}

impl ProtocolState {
    pub(super) fn new(flows: &TransceiverFlows) -> ProtocolState {
        let ports = flows.flows_of_transmitter.len();
        ProtocolState {
            sent: vec![0; ports],
            senders: vec![Sender::Idle; ports],
            receivers: vec![Receiver::default(); ports],
            join_needs: flows.join_needs.clone(),
            flow_needs: flows.needs.clone(),
            arrived: 0,
        }
    }

    /// Starts every transmitter whose first flow is ready.
    pub(super) fn open(&mut self, flows: &TransceiverFlows, effects: &mut Vec<Effect>) {
        for transmitter in 0..self.senders.len() as u32 {
            self.start_next(flows, transmitter, effects);
        }
    }

    /// Updates the state for an event and appends the effects.
    pub(super) fn handle(
        &mut self,
        flows: &TransceiverFlows,
        event: ControlEvent,
        effects: &mut Vec<Effect>,
    ) {
        match event {
            ControlEvent::Request(flow) => {
                let receiver = flows.flows[flow as usize].receiver();
                self.receivers[receiver as usize].queue.push_back(flow);
                self.serve(flows, receiver, effects);
            }
            ControlEvent::Grant(flow) => self.granted(flows, flow, effects),
            ControlEvent::Sent(flow) => self.sent(flows, flow, effects),
            ControlEvent::Arrived(flow) => self.deliver(flows, flow, effects),
            ControlEvent::Release { receiver, .. } => {
                self.receivers[receiver as usize].released = true;
                self.free(flows, receiver, effects);
            }
            ControlEvent::Revoke {
                transmitter,
                receiver,
            } => self.revoked(flows, transmitter, receiver, effects),
        }
    }

    /// Returns the next flow of a transmitter.
    fn first(&self, flows: &TransceiverFlows, transmitter: u32) -> Option<u32> {
        let queue = &flows.flows_of_transmitter[transmitter as usize];
        queue.get(self.sent[transmitter as usize] as usize).copied()
    }

    /// Starts the transmitter's next flow if the data of this flow are present: requests a circuit,
    /// or uses a circuit that the transmitter kept.
    fn start_next(
        &mut self,
        flows: &TransceiverFlows,
        transmitter: u32,
        effects: &mut Vec<Effect>,
    ) {
        let Some(flow) = self.first(flows, transmitter) else {
            return;
        };
        if self.flow_needs[flow as usize] > 0 {
            return;
        }
        match self.senders[transmitter as usize] {
            Sender::Idle => {
                self.senders[transmitter as usize] = Sender::Asking { yields: false };
                effects.push(Effect::Message(ControlEvent::Request(flow)));
            }
            Sender::Keeping => self.begin(flows, flow, false, effects),
            Sender::Asking { .. } | Sender::Sending { .. } => {}
        }
    }

    fn begin(
        &mut self,
        flows: &TransceiverFlows,
        flow: u32,
        yields: bool,
        effects: &mut Vec<Effect>,
    ) {
        let ends = flows.flows[flow as usize];
        let sender = &mut self.senders[ends.transmitter() as usize];
        let fresh = *sender != Sender::Keeping;
        *sender = Sender::Sending { yields };
        self.receivers[ends.receiver() as usize].arriving += 1;
        effects.push(Effect::Begin { flow, fresh });
    }

    fn granted(&mut self, flows: &TransceiverFlows, flow: u32, effects: &mut Vec<Effect>) {
        let transmitter = flows.flows[flow as usize].transmitter();
        let sender = self.senders[transmitter as usize];
        let yields = sender == Sender::Asking { yields: true };
        self.begin(flows, flow, yields, effects);
    }

    /// Keeps the circuit for the next flow, or releases the receiver.
    fn sent(&mut self, flows: &TransceiverFlows, flow: u32, effects: &mut Vec<Effect>) {
        let ends = flows.flows[flow as usize];
        let transmitter = ends.transmitter() as usize;
        self.sent[transmitter] += 1;
        effects.push(Effect::UnderWay(flow));
        let yields = self.senders[transmitter] == Sender::Sending { yields: true };
        if ends.keeps && !yields {
            self.senders[transmitter] = Sender::Keeping;
        } else {
            self.senders[transmitter] = Sender::Idle;
            effects.push(Effect::Message(ControlEvent::Release {
                transmitter: ends.transmitter(),
                receiver: ends.receiver(),
            }));
        }
        self.start_next(flows, ends.transmitter(), effects);
    }

    /// Notes an arrival and starts flows that needed it.
    fn deliver(&mut self, flows: &TransceiverFlows, flow: u32, effects: &mut Vec<Effect>) {
        self.arrived += 1;
        for &join in flows.feeds.members(flow) {
            self.join_needs[join as usize] -= 1;
            if self.join_needs[join as usize] > 0 {
                continue;
            }
            for &waiter in flows.waiters.members(join) {
                self.flow_needs[waiter as usize] -= 1;
                let transmitter = flows.flows[waiter as usize].transmitter();
                if self.first(flows, transmitter) == Some(waiter) {
                    self.start_next(flows, transmitter, effects);
                }
            }
        }
        let receiver = flows.flows[flow as usize].receiver();
        self.receivers[receiver as usize].arriving -= 1;
        self.free(flows, receiver, effects);
    }

    /// Frees a receiver that was released and has received all data.
    fn free(&mut self, flows: &TransceiverFlows, receiver: u32, effects: &mut Vec<Effect>) {
        let state = &mut self.receivers[receiver as usize];
        if state.released && state.arriving == 0 {
            state.holder = None;
            state.released = false;
            self.serve(flows, receiver, effects);
        }
    }

    /// Grants a free receiver to the first request in its queue, or revokes a kept circuit.
    fn serve(&mut self, flows: &TransceiverFlows, receiver: u32, effects: &mut Vec<Effect>) {
        let state = &mut self.receivers[receiver as usize];
        match state.holder {
            None => {
                if let Some(flow) = state.queue.pop_front() {
                    let ends = flows.flows[flow as usize];
                    state.holder = Some(ends.transmitter());
                    state.kept = ends.keeps;
                    state.revoked = false;
                    effects.push(Effect::Message(ControlEvent::Grant(flow)));
                    self.serve(flows, receiver, effects);
                }
            }
            Some(transmitter) => {
                if state.kept && !state.revoked && !state.released && !state.queue.is_empty() {
                    state.revoked = true;
                    effects.push(Effect::Message(ControlEvent::Revoke {
                        transmitter,
                        receiver,
                    }));
                }
            }
        }
    }

    /// Releases a receiver that is kept, or marks it to be released when the present flow is sent.
    /// A REVOKE that arrives before its GRANT is remembered; a REVOKE that arrives too late only
    /// ends a kept circuit.
    fn revoked(
        &mut self,
        flows: &TransceiverFlows,
        transmitter: u32,
        receiver: u32,
        effects: &mut Vec<Effect>,
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
                effects.push(Effect::Message(ControlEvent::Release {
                    transmitter,
                    receiver,
                }));
            }
            Sender::Idle => {}
        }
    }
}
