//! Control protocol as a state machine without times.
//!
//! Messages may arrive in any order. Each event returns its effects. The engine, or the test that
//! enumerates all interleavings, decides when the effects happen.

use std::collections::VecDeque;

use super::flows::TransceiverFlows;

/// Event at the transmitter or the receiver of a flow, with the flow's index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum ControlEvent {
    /// The transmitter has sent all data of a flow.
    Sent(u32),
    /// All data of a flow have arrived at the receiver.
    Arrived(u32),
    /// The transmitter's RELEASE reaches the receiver.
    Release { transmitter: u32, receiver: u32 },
    /// The receiver's REVOKE reaches the transmitter to which the receiver is granted.
    Revoke { transmitter: u32, receiver: u32 },
    /// The REQUEST for a flow reaches the flow's receiver.
    Request(u32),
    /// The GRANT for a flow reaches the flow's transmitter.
    Grant(u32),
}

/// Effect of an event; a flow is given by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// A control message is sent.
    Message(ControlEvent),
    /// A flow begins. If the grant is `fresh`, the laser is tuned and the receiver locks first.
    Begin { flow: u32, fresh: bool },
    /// All data of the flow have left the transmitter and are on their way.
    UnderWay(u32),
}

/// State of a transmitter. `yields` is true if a REVOKE has arrived since the request, so that the
/// circuit must not be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Sender {
    /// No receiver is granted to the transmitter.
    Idle,
    /// The transmitter has requested the receiver of its first flow.
    Asking { yields: bool },
    /// The transmitter is sending its first flow.
    Sending { yields: bool },
    /// The transmitter keeps the circuit for its first flow, whose data are not at its rank yet.
    Keeping,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Receiver {
    /// Transmitter to which the receiver is granted.
    holder: Option<u32>,
    /// True if the transmitter may keep the circuit for its next flow.
    kept: bool,
    /// True if REVOKE was sent.
    revoked: bool,
    /// True if RELEASE has arrived.
    released: bool,
    /// Number of flows that have begun and have not arrived completely.
    arriving: u32,
    queue: VecDeque<u32>,
}

/// State of all transmitters and receivers, indexed by transceiver number, and of all flows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ProtocolState {
    /// Number of flows that each transmitter has sent, indexed by transceiver number.
    sent: Vec<u32>,
    senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    /// Number of arrivals that each join (set of arrivals) still waits for, indexed by join.
    join_needs: Vec<u32>,
    /// Number of joins (sets of arrivals) that each flow still waits for, indexed by flow.
    flow_needs: Vec<u32>,
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

    /// Starts the first flow of every transmitter if the flow waits for no data.
    pub(super) fn open(&mut self, flows: &TransceiverFlows, effects: &mut Vec<Effect>) {
        for transmitter in 0..self.senders.len() as u32 {
            self.start_next(flows, transmitter, effects);
        }
    }

    /// Processes an event: updates the state and appends the effects to `effects`.
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

    /// Returns the transmitter's first flow that is not sent yet.
    fn first(&self, flows: &TransceiverFlows, transmitter: u32) -> Option<u32> {
        let queue = &flows.flows_of_transmitter[transmitter as usize];
        queue.get(self.sent[transmitter as usize] as usize).copied()
    }

    /// Starts the transmitter's first flow, over a new or a kept circuit, if its data are present.
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
        let endpoints = flows.flows[flow as usize];
        let sender = &mut self.senders[endpoints.transmitter() as usize];
        let fresh = *sender != Sender::Keeping;
        *sender = Sender::Sending { yields };
        self.receivers[endpoints.receiver() as usize].arriving += 1;
        effects.push(Effect::Begin { flow, fresh });
    }

    fn granted(&mut self, flows: &TransceiverFlows, flow: u32, effects: &mut Vec<Effect>) {
        let transmitter = flows.flows[flow as usize].transmitter();
        let sender = self.senders[transmitter as usize];
        let yields = sender == Sender::Asking { yields: true };
        self.begin(flows, flow, yields, effects);
    }

    /// Processes the end of a transmission: the transmitter keeps or releases the circuit.
    fn sent(&mut self, flows: &TransceiverFlows, flow: u32, effects: &mut Vec<Effect>) {
        let endpoints = flows.flows[flow as usize];
        let transmitter = endpoints.transmitter() as usize;
        self.sent[transmitter] += 1;
        effects.push(Effect::UnderWay(flow));
        let yields = self.senders[transmitter] == Sender::Sending { yields: true };
        if endpoints.keeps && !yields {
            self.senders[transmitter] = Sender::Keeping;
        } else {
            self.senders[transmitter] = Sender::Idle;
            effects.push(Effect::Message(ControlEvent::Release {
                transmitter: endpoints.transmitter(),
                receiver: endpoints.receiver(),
            }));
        }
        self.start_next(flows, endpoints.transmitter(), effects);
    }

    /// Processes the arrival of a flow, and starts flows that waited for it.
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

    /// Frees the receiver if RELEASE and all data have arrived.
    fn free(&mut self, flows: &TransceiverFlows, receiver: u32, effects: &mut Vec<Effect>) {
        let state = &mut self.receivers[receiver as usize];
        if state.released && state.arriving == 0 {
            state.holder = None;
            state.released = false;
            self.serve(flows, receiver, effects);
        }
    }

    /// Grants a free receiver to the first request in its queue. If the receiver is busy, its
    /// circuit is kept and requests wait, sends a REVOKE.
    fn serve(&mut self, flows: &TransceiverFlows, receiver: u32, effects: &mut Vec<Effect>) {
        let state = &mut self.receivers[receiver as usize];
        match state.holder {
            None => {
                if let Some(flow) = state.queue.pop_front() {
                    let endpoints = flows.flows[flow as usize];
                    state.holder = Some(endpoints.transmitter());
                    state.kept = endpoints.keeps;
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

    /// Processes a REVOKE. A transmitter that keeps the circuit releases the receiver; any other
    /// transmitter will release the receiver after its present flow. A REVOKE may arrive before its
    /// GRANT, or after the RELEASE of its circuit. In the second case, its only effect is that the
    /// next circuit to the same receiver is not kept.
    fn revoked(
        &mut self,
        flows: &TransceiverFlows,
        transmitter: u32,
        receiver: u32,
        effects: &mut Vec<Effect>,
    ) {
        let first_flow = self.first(flows, transmitter);
        if first_flow.is_none_or(|flow| flows.flows[flow as usize].receiver() != receiver) {
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
