//! Tunable circuits under distributed or central control, event by event.
//!
//! **Protocol.** A flow is what one transmitter sends to one receiver in one slot of a plan. A transmitter
//! takes its flows in the order of their slots. When the data of the first is there, it sends REQUEST
//! over the electrical control network; the receiver answers GRANT when it is free, else puts the request
//! in a queue, first come, first served, of equal times the lower node first. The transmitter tunes its
//! laser, the receiver locks, the data flows, and RELEASE sets the receiver free. Where the next flow of
//! the transmitter is in the very next slot and goes to the same receiver, it *keeps* the circuit and
//! neither asks nor tunes again: so do the two exchanges in the middle of halving and doubling. A
//! receiver that is kept while others wait sends REVOKE, and the transmitter, unless it is sending,
//! releases at once; else when it has sent. Only the two ends of a flow talk with one another.
//!
//! **Time.** A flow of b bytes with a fresh grant takes, from its request on,
//!
//! 2 control + tuning + lock + b / rate + latency,
//!
//! and what it waits in the queue; on a kept circuit b / rate + latency. The slots of a plan order the
//! flows of a transmitter; nothing waits for the end of a slot. A rank has room for what arrives beside
//! what it has still to send. So 2 log2 N exchanges of halving and doubling, of which the two in the middle
//! share their circuits, take
//!
//! 2 (N - 1) / N M / B + 2 log2 N latency + (2 log2 N - 1) (2 control + tuning + lock).
//!
//! **No deadlock.** Of all flows that never arrive, let f be one of the earliest slot. The data that it needs
//! come in earlier steps, or over earlier hops, in earlier slots; hence they arrive. Earlier flows of its
//! transmitter have earlier slots and arrive, so that f is first in its turn and asks. The receiver is
//! held by a transmitter that is sending, which ends; or that keeps the circuit, which is revoked and
//! ends; or that was granted and will send. Whoever is before f in the queue has its data, since it asked,
//! and waits for nothing but this receiver; so the queue moves and f is granted, and arrives. A
//! transmitter that has asked waits for one receiver, and a receiver waits for nobody: there is no circle.
//! The tests go through all interleavings of small cases.
//!
//! **Central controller.** With `controller=t` one controller answers for all receivers, by the same rules.
//! REQUEST and RELEASE go to it, GRANT and REVOKE come from it, each with the delay of a control message. It
//! handles one REQUEST or RELEASE at a time, in order of arrival, and takes t for each; what follows is sent
//! when t is over. An idle controller grants after 2 control + t; the time for which a request waits for
//! messages before it counts as waiting. A receiver is free when its RELEASE is handled and its data has
//! arrived, which the controller knows, since light always takes the same latency. With t = 0 the times are
//! those of distributed control. There is no deadlock here either: the controller waits for nobody, so that it
//! handles every message at some time. Handling acts like a longer delay of the message, and the argument
//! above holds for all delays.
//!
//! **Slow switch.** The switches are set once for a task, before its first collective: `slow_switch` is
//! reported beside the time and not part of it. Several tasks, their arbiter and that time: [`tasks`](super::tasks).

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

/// The time that a plan takes on its grid under distributed or central control.
///
/// # Errors
/// Another fabric, a plan whose transfers leave it (it was not verified), or a time beyond 64 bits.
pub fn simulate(plan: &Plan, size: Bytes) -> Result<Outcome, SimulationError> {
    simulate_within(plan, size, None)
}

/// The same, given up past a limit.
///
/// # Errors
/// Those of [`simulate`], and [`SimulationError::Stopped`].
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
    super::admit(plan)?;
    let flows = TransceiverFlows::of(plan, size, grid)?;
    let run = engine::run(&flows, grid, limit)?;
    let (links, ranks) = ledger(plan, &flows, &run)?;
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

/// Ends, light and times of every flow.
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

/// Sums per transmitter and rank.
fn ledger(
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

/// Per slot: from the first request to the last arrival, and the most that tuning took.
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

/// Back from the flow that arrives last, cause by cause, with what its time was spent on.
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
