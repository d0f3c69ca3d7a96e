//! Simulation of the control protocol of tunable circuits, event by event. Control is distributed
//! among the ranks, or central.
//!
//! **Protocol.** A *flow* is all data that one transmitter sends to one receiver in one slot of a
//! plan. A transmitter processes its flows in the order of their slots. When the data of its first
//! flow are present at its rank, the transmitter sends REQUEST to the flow's receiver over the
//! electrical control network. A free receiver answers GRANT. A busy receiver queues the request:
//! first come, first served, and among equal times the lower node first. After GRANT the
//! transmitter tunes its laser, the receiver locks, and the data flow. RELEASE then frees the
//! receiver. If the transmitter's next flow is in the very next slot and has the same receiver and
//! wavelength, the transmitter *keeps* the circuit: it sends no request and does not tune, as in
//! the two middle exchanges of halving and doubling. If a transmitter keeps the circuit of a
//! receiver for which other requests wait, the receiver sends REVOKE. The transmitter then releases
//! the receiver at once or, if it is sending, after the present flow. Only the transmitter and the
//! receiver of a flow exchange messages.
//!
//! **Time.** Under a new grant, the time of a flow of b bytes, from its request to its arrival, is
//! the wait in the queue plus
//!
//! 2 control + tuning + lock + b / rate + latency
//!
//! On a kept circuit, the time is b / rate + latency. The slots of a plan order the flows of a
//! transmitter; no flow waits for the end of a slot. A rank can store arriving data in addition to
//! the data that it has not sent yet. Let M be the bytes of the vector and B the rate. Halving and
//! doubling has 2 log2 N exchanges, of which the middle two share their circuits. The exchanges
//! take
//!
//! 2 (N - 1) / N M / B + 2 log2 N latency + (2 log2 N - 1) (2 control + tuning + lock).
//!
//! **No deadlock.** Suppose that some flows never arrive, and let f be a flow in the earliest slot
//! among them. The data of f come in earlier steps or over earlier hops, in earlier slots, so they
//! arrive. Earlier flows of the transmitter of f have earlier slots and arrive, so f is next and is
//! requested. The receiver of f is granted to a transmitter of one of three kinds: it is sending,
//! and the flow ends; or it keeps the circuit, and the circuit is revoked; or it has just been
//! granted the receiver and will send. The flows before f in the queue have their data, because
//! they were requested, and wait only for this receiver. The queue therefore advances, f is
//! granted, and f arrives, which is a contradiction. In short, a transmitter waits for one
//! receiver, and a receiver waits for nobody, so there is no cycle. The tests enumerate all
//! interleavings of small cases.
//!
//! **Central controller.** With `controller=t`, one controller answers for all receivers, by the
//! rules above. It receives REQUEST and RELEASE and sends GRANT and REVOKE; each message has the
//! delay of a control message. It handles one REQUEST or RELEASE at a time, in order of arrival.
//! Handling takes the time t, and the answers are sent afterwards. An idle controller grants a
//! request after 2 control + t; the time for which a request waits behind other messages counts as
//! waiting. A receiver is free when its RELEASE has been handled and its data have arrived. The
//! controller knows the time of arrival, because the latency of light is constant. With t = 0 all
//! times are equal to those of distributed control. Central control has no deadlock either: the
//! controller waits for nobody, so it handles every message eventually. Handling is equivalent to a
//! longer delay of the message, and the argument above is valid for all delays.
//!
//! **Slow switch.** The switches are set once for a task, before its first collective. The result
//! reports `slow_switch` separately and does not add it to the time. See [`tasks`](super::tasks)
//! for several tasks and their arbiter.

mod engine;
mod flows;
#[cfg(test)]
mod interleavings;
mod protocol;

use super::SimulationError;
use crate::outcome::{
    ControlColumns, Critical, LinkColumns, Outcome, RankColumns, SlotColumns, Tuned, TunedFlows,
};
use crate::table::Details;
use engine::{ControlRun, WaitCause};
use flows::TransceiverFlows;
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::family::wss_grid::WssGrid;
use opticoll_plan::plan::Plan;

/// Simulates a plan on a grid of tunable circuits, under distributed or central control.
///
/// # Errors
/// Returns an error for another fabric, for a plan whose transfers leave the fabric (a verified
/// plan has none), or for a time that exceeds 64 bits.
pub fn simulate(plan: &Plan, size: Bytes) -> Result<Outcome, SimulationError> {
    simulate_within(plan, size, None)
}

/// Simulates a plan and stops when the time exceeds `limit`.
///
/// # Errors
/// Returns the errors of [`simulate`], and [`SimulationError::Stopped`] if the time exceeds the
/// limit.
pub fn simulate_within(
    plan: &Plan,
    size: Bytes,
    limit: Option<Time>,
) -> Result<Outcome, SimulationError> {
    let grid = plan
        .fabric
        .downcast::<WssGrid>()
        .ok_or(SimulationError::Fabric {
            simulator: "control",
            family: plan.fabric.family(),
            hint: "the simulator control needs a wss_grid; leave the simulator out",
        })?;
    super::check_slots(plan)?;
    let flows = TransceiverFlows::new(plan, size, grid)?;
    let run = engine::run(&flows, grid, limit)?;
    let (links, ranks) = usage(plan, &flows, &run)?;
    let (critical_path, on_path) = critical_path(&flows, &run);
    let slots = slots(plan, &flows, &run)?;
    let busy: u128 = links.busy.iter().map(|time| u128::from(time.ps())).sum();
    let capacity = u128::from(run.time.ps()) * links.busy.len() as u128;
    Ok(Outcome {
        policy: Some(super::Policy::TwoTier.name()),
        time: run.time,
        reconfigurations: run.grants,
        utilisation: busy as f64 / capacity.max(1) as f64,
        slots,
        links,
        ranks,
        critical_path,
        details: Details::default().with(Tuned {
            flows: columns(flows, &run),
            control_messages: run.controller_messages
                + run.messages.iter().copied().map(u64::from).sum::<u64>(),
            controller_messages: run.controller_messages,
            control_messages_per_rank: run.messages.iter().copied().max().unwrap_or(0),
            ranks: ControlColumns {
                control_messages: run.messages,
            },
            revocations: run.revocations,
            slow_switch: grid.slow_switch,
            ..on_path
        }),
        ..Outcome::default()
    })
}

fn columns(flows: TransceiverFlows, run: &ControlRun) -> TunedFlows {
    let flows = &flows.flows;
    TunedFlows {
        source: flows.iter().map(|flow| flow.source).collect(),
        destination: flows.iter().map(|flow| flow.destination).collect(),
        plane: flows.iter().map(|flow| flow.light.plane).collect(),
        wavelength: flows.iter().map(|flow| flow.light.wavelength).collect(),
        begin: run.begun.clone(),
        start: run.start.clone(),
        sent: run.sent.clone(),
        end: run.arrived.clone(),
    }
}

fn usage(
    plan: &Plan,
    flows: &TransceiverFlows,
    run: &ControlRun,
) -> Result<(LinkColumns, RankColumns), SimulationError> {
    let count = plan.fabric.ranks() as usize;
    let mut links = LinkColumns {
        shape: vec![("plane", 2), ("rank", count)],
        busy: vec![Time::ZERO; 2 * count],
        bytes: vec![0; 2 * count],
    };
    let mut ranks = RankColumns {
        sent: vec![0; count],
        received: vec![0; count],
        finish: vec![Time::ZERO; count],
    };
    for (index, flow) in flows.flows.iter().enumerate() {
        interrupt::check();
        let (from, to) = (flow.source as usize, flow.destination as usize);
        let link = usize::from(flow.light.plane) * count + from;
        links.busy[link] = links.busy[link].plus(run.sending(index))?;
        for (column, place) in [
            (&mut links.bytes, link),
            (&mut ranks.sent, from),
            (&mut ranks.received, to),
        ] {
            column[place] = Bytes::new(column[place]).plus(flow.bytes)?.get();
        }
        for rank in [from, to] {
            ranks.finish[rank] = ranks.finish[rank].max(run.arrived[index]);
        }
    }
    Ok((links, ranks))
}

/// Returns the results per slot, from the first request to the last arrival.
fn slots(
    plan: &Plan,
    flows: &TransceiverFlows,
    run: &ControlRun,
) -> Result<SlotColumns, SimulationError> {
    let count = plan.slots() as usize;
    let mut columns = SlotColumns {
        start: vec![Time::ZERO; count],
        end: vec![Time::ZERO; count],
        reconfiguration: vec![Time::ZERO; count],
        lightpaths: vec![0; count],
    };
    for (index, flow) in flows.flows.iter().enumerate() {
        interrupt::check();
        let slot = flow.slot as usize;
        let first = columns.lightpaths[slot] == 0;
        let begun = run.begun[index];
        columns.start[slot] = match first {
            true => begun,
            false => columns.start[slot].min(begun),
        };
        columns.end[slot] = columns.end[slot].max(run.arrived[index]);
        let tuning = &mut columns.reconfiguration[slot];
        *tuning = (*tuning).max(run.tuning[index]);
        columns.lightpaths[slot] += 1;
    }
    Ok(columns)
}

/// Returns the critical path of the flow that arrives last, and the times along this path: sending,
/// tuning, control, latency and waiting.
fn critical_path(flows: &TransceiverFlows, run: &ControlRun) -> (Vec<Critical>, Tuned) {
    let mut path = Vec::new();
    let mut on_path = Tuned::default();
    let add = |sum: &mut Time, from: Time, to: Time| {
        *sum = Time::from_ps(sum.ps() + to.ps().saturating_sub(from.ps()));
    };
    let last = (0..flows.flows.len()).rev();
    let mut next = last.max_by_key(|&index| run.arrived[index]);
    let mut end = run.time;
    while let Some(index) = next {
        interrupt::check();
        let (begun, start) = (run.begun[index], run.start[index]);
        path.push(Critical {
            transfer: flows.flows[index].transfer as usize,
            start: begun,
            end: run.arrived[index],
        });
        let (asked, tuned) = (run.control[index], run.tuning[index]);
        add(&mut on_path.path_control, Time::ZERO, asked);
        add(&mut on_path.path_tuning, Time::ZERO, tuned);
        let spent = Time::from_ps(begun.ps() + asked.ps() + tuned.ps());
        add(&mut on_path.path_waiting, spent, start);
        let sent = Time::from_ps(start.ps() + run.sending(index).ps());
        add(&mut on_path.path_transmission, start, sent);
        add(&mut on_path.path_latency, sent, end);
        let cause = run.cause[index];
        end = begun;
        next = match cause {
            WaitCause::None => None,
            WaitCause::Arrival(flow) | WaitCause::Transmitter(flow) => Some(flow as usize),
        };
    }
    path.reverse();
    (path, on_path)
}
