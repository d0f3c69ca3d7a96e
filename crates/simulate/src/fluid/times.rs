//! Start and end of each message of a plan, for figures and tables of small plans.

use super::{FlowOptions, StartRule, log_plan};
use crate::{SimulationError, check_routes, require_network};
use opticoll_base::interrupt;
use opticoll_base::units::{Bytes, Time};
use opticoll_plan::plan::{Plan, StepMessages};

/// Start and end of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageTime {
    /// Index of the first transfer of the message.
    pub transfer: usize,
    /// Time at which the start rule allowed the message to start.
    pub start: Time,
    /// Time at which the last byte of the message arrived.
    pub end: Time,
}

/// Simulates a plan as flows and returns the times of its messages, in the order of the schedule.
///
/// # Errors
/// The errors of [`super::simulate_plan`].
pub fn message_times(
    plan: &Plan,
    size: Bytes,
    rule: StartRule,
    options: &FlowOptions,
) -> Result<Vec<MessageTime>, SimulationError> {
    let network = require_network(&plan.fabric, "fluid")?;
    let options = FlowOptions {
        record_flows: true,
        ..options.clone()
    };
    check_routes(plan, network)?;
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
