//! Control protocol with times, driven by an event queue.
//!
//! Events of the same time are processed in this order: ends of sending, arrivals, releases,
//! revocations, requests, grants. Events of the same kind are ordered by transceiver number, so
//! that the lower node comes first. A REQUEST or RELEASE that reaches a central controller is
//! queued again until the controller has handled it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::flows::TransceiverFlows;
use super::protocol::{ControlEvent, Effect, ProtocolState};
use crate::SimulationError;
use opticoll_base::interrupt;
use opticoll_base::units::Time;
use opticoll_fabric::family::wss_grid::WssGrid;

/// Event for which a flow waited last before its request or, on a circuit kept from the previous
/// slot, before its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitCause {
    /// The start of the simulation.
    None,
    /// The arrival of the flow with this index.
    Arrival(u32),
    /// The end of the transmission of the flow with this index, by the same transmitter.
    Transmitter(u32),
}

/// Times of all flows, each vector indexed by flow, and counters.
pub(super) struct ControlRun {
    pub(super) time: Time,
    /// Time of each flow's request or, on a circuit kept from the previous slot, time at which the
    /// transmission starts.
    pub(super) begun: Vec<Time>,
    /// Time that each flow's REQUEST and GRANT take, without waiting.
    pub(super) control: Vec<Time>,
    /// Time that each flow's tuning and locking take.
    pub(super) tuning: Vec<Time>,
    /// Number of grants. Each grant tunes a laser.
    pub(super) grants: u64,
    /// Time at which each flow's first bit is sent.
    pub(super) start: Vec<Time>,
    /// Time at which each flow's last bit is sent.
    pub(super) sent: Vec<Time>,
    /// Time at which each flow's last bit arrives.
    pub(super) arrived: Vec<Time>,
    pub(super) cause: Vec<WaitCause>,
    /// Number of control messages that each rank sent, indexed by rank.
    pub(super) messages: Vec<u32>,
    /// Number of REVOKE messages that receivers or a central controller sent.
    pub(super) revocations: u64,
    pub(super) controller_messages: u64,
}

impl ControlRun {
    /// Returns the transmission time of the flow with index `flow`.
    pub(super) fn sending(&self, flow: usize) -> Time {
        Time::from_ps(self.sent[flow].ps() - self.start[flow].ps())
    }
}

/// Entry of the event queue: time, place of the event's kind in the order of the module's header,
/// transceiver number, event, and true if a central controller has handled the event.
type QueuedEvent = Reverse<(Time, u8, u32, ControlEvent, bool)>;

struct ControlEngine<'a> {
    flows: &'a TransceiverFlows,
    grid: &'a WssGrid,
    queue: BinaryHeap<QueuedEvent>,
    /// Time at which a central controller will have handled all messages that have reached it so
    /// far.
    controller_free: Time,
    run: ControlRun,
}

/// Simulates all flows, or returns an error if a time exceeds `limit` or 64 bits, or if flows wait
/// for one another.
pub(super) fn run(
    flows: &TransceiverFlows,
    grid: &WssGrid,
    limit: Option<Time>,
) -> Result<ControlRun, SimulationError> {
    let count = flows.flows.len();
    let mut engine = ControlEngine {
        flows,
        grid,
        queue: BinaryHeap::with_capacity(count),
        controller_free: Time::ZERO,
        run: ControlRun {
            time: Time::ZERO,
            begun: vec![Time::ZERO; count],
            control: vec![Time::ZERO; count],
            tuning: vec![Time::ZERO; count],
            grants: 0,
            start: vec![Time::ZERO; count],
            sent: vec![Time::ZERO; count],
            arrived: vec![Time::ZERO; count],
            cause: vec![WaitCause::None; count],
            messages: vec![0; flows.flows_of_transmitter.len() / 2],
            revocations: 0,
            controller_messages: 0,
        },
    };
    let mut state = ProtocolState::new(flows);
    let mut effects = Vec::new();
    state.open(flows, &mut effects);
    engine.enter(Time::ZERO, WaitCause::None, &mut effects)?;
    while let Some(Reverse((now, _, _, event, handled))) = engine.queue.pop() {
        interrupt::check();
        if let Some(limit) = limit.filter(|limit| now > *limit && (state.arrived as usize) < count)
        {
            let problem = format!("the plan takes longer than {limit}");
            return Err(SimulationError::Stopped(problem));
        }
        if !handled && engine.waits_for_controller(now, event)? {
            continue;
        }
        let cause = match event {
            ControlEvent::Arrived(flow) => {
                engine.run.arrived[flow as usize] = now;
                engine.run.time = now;
                WaitCause::Arrival(flow)
            }
            ControlEvent::Sent(flow) => WaitCause::Transmitter(flow),
            _ => WaitCause::None,
        };
        state.handle(flows, event, &mut effects);
        engine.enter(now, cause, &mut effects)?;
    }
    if state.arrived as usize != count {
        let flows = count as u64 - u64::from(state.arrived);
        let problem = format!(
            "{flows} flows never arrive: they wait for data that never comes; verify the plan \
             first"
        );
        return Err(SimulationError::refused("stuck", problem));
    }
    Ok(engine.run)
}

impl ControlEngine<'_> {
    /// Executes the effects of an event at time `now`; `cause` is recorded as the cause of flows
    /// that start.
    fn enter(
        &mut self,
        now: Time,
        cause: WaitCause,
        effects: &mut Vec<Effect>,
    ) -> Result<(), SimulationError> {
        for effect in effects.drain(..) {
            match effect {
                Effect::Message(message) => {
                    self.send(now, cause, message)?;
                }
                Effect::Begin { flow, fresh } => self.begin(now, cause, flow, fresh)?,
                Effect::UnderWay(flow) => {
                    let arrival = now.plus(self.grid.latency)?;
                    self.put(arrival, ControlEvent::Arrived(flow), false);
                }
            }
        }
        Ok(())
    }

    /// Queues a message for the time at which the central controller will have handled it. Returns
    /// whether the message has to wait.
    fn waits_for_controller(
        &mut self,
        now: Time,
        message: ControlEvent,
    ) -> Result<bool, SimulationError> {
        let (ControlEvent::Request(_) | ControlEvent::Release { .. }) = message else {
            return Ok(false);
        };
        let Some(time) = self.grid.controller else {
            return Ok(false);
        };
        self.controller_free = self.controller_free.max(now).plus(time)?;
        let waits = self.controller_free > now;
        if waits {
            self.put(self.controller_free, message, true);
        }
        Ok(waits)
    }

    fn send(
        &mut self,
        now: Time,
        cause: WaitCause,
        message: ControlEvent,
    ) -> Result<(), SimulationError> {
        let delay = self.grid.control;
        let sender = match message {
            ControlEvent::Request(flow) => {
                let index = flow as usize;
                self.run.begun[index] = now;
                self.run.cause[index] = cause;
                self.run.control[index] = self.grid.request_time()?;
                self.flows.flows[index].source
            }
            ControlEvent::Grant(flow) => self.flows.flows[flow as usize].destination,
            ControlEvent::Revoke { receiver, .. } => {
                self.run.revocations += 1;
                receiver / 2
            }
            ControlEvent::Release { transmitter, .. } => transmitter / 2,
            ControlEvent::Sent(_) | ControlEvent::Arrived(_) => return Ok(()),
        };
        let is_answer = matches!(
            message,
            ControlEvent::Grant(_) | ControlEvent::Revoke { .. }
        );
        match self.grid.controller {
            Some(_) if is_answer => self.run.controller_messages += 1,
            _ => self.run.messages[sender as usize] += 1,
        }
        self.put(now.plus(delay)?, message, false);
        Ok(())
    }

    fn begin(
        &mut self,
        now: Time,
        cause: WaitCause,
        flow: u32,
        fresh: bool,
    ) -> Result<(), SimulationError> {
        let (index, grid) = (flow as usize, self.grid);
        let sent_flow = self.flows.flows[index];
        let mut start = now;
        if fresh {
            self.run.grants += 1;
            self.run.tuning[index] = grid.tuning.plus(grid.lock)?;
            start = now.plus(self.run.tuning[index])?;
        } else {
            self.run.begun[index] = now;
            self.run.cause[index] = cause;
        }
        let rate = grid.rate_between([sent_flow.source, sent_flow.destination], sent_flow.light);
        let sent = start.plus(rate.transmission(sent_flow.bytes)?)?;
        self.run.start[index] = start;
        self.run.sent[index] = sent;
        self.put(sent, ControlEvent::Sent(flow), false);
        Ok(())
    }

    fn put(&mut self, time: Time, event: ControlEvent, handled: bool) {
        let flow = |flow: u32| self.flows.flows[flow as usize].transmitter();
        let (order, transceiver) = match event {
            ControlEvent::Sent(sent) => (0, flow(sent)),
            ControlEvent::Arrived(arrived) => (1, flow(arrived)),
            ControlEvent::Release { receiver, .. } => (2, receiver),
            ControlEvent::Revoke { transmitter, .. } => (3, transmitter),
            ControlEvent::Request(request) => (4, flow(request)),
            ControlEvent::Grant(grant) => (5, flow(grant)),
        };
        self.queue
            .push(Reverse((time, order, transceiver, event, handled)));
    }
}
