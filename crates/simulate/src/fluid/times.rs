//! When each message of a plan flows, for pictures and tables of small plans.

use super::{FlowOptions, StartRule, log_plan};
use crate::{SimulationError, admit_routes, needed_network};
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time};
use opticoll_plan::plan::{Plan, StepMessages};

/// A message: the first of its transfers, when it might start, and when its last byte had arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageTime {
    /// The index of the first of its transfers.
    pub transfer: usize,
    /// When its start rule let it go.
    pub start: Time,
    /// When its last byte had arrived.
    pub end: Time,
}

/// Runs a plan as flows and lists its messages, in the order of the schedule.
///
/// # Errors
/// As [`super::simulate_plan`].
pub fn message_times(
    plan: &Plan,
    size: Bytes,
    rule: StartRule,
    options: &FlowOptions,
) -> Result<Vec<MessageTime>, SimulationError> {
    let network = needed_network(&plan.fabric, "fluid")?;
    let options = FlowOptions {
        record_flows: true,
        ..options.clone()
    };
    admit_routes(plan, network)?;
    let (_, flows) = log_plan(network, &plan.schedule, &plan.routes, size, rule, &options)?;
    let flows = flows.into_columns();
    let mut times = Vec::with_capacity(flows.start.len());
    for step in 0..plan.schedule.steps() {
        for transfer in StepMessages::firsts(&plan.schedule, &plan.routes, step) {
            interrupt::check();
            let flow = times.len();
            times.push(MessageTime {
                transfer,
                start: flows.start[flow],
                end: flows.end[flow],
            });
        }
    }
    Ok(times)
}
