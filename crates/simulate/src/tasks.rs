//! Several tasks on one grid, admitted by a central arbiter.
//!
//! A task is a verified plan that is executed one or more times, on the ports that its hops use.
//! Each task sends a request to the arbiter. The arbiter admits tasks in the order of their
//! requests (in the given order for equal times), each when all its ports are free; a task that has
//! to wait delays all later tasks. For an admitted task, the arbiter computes the configuration of
//! the switches and sends a message to every switch with a setting, which takes `slow_switch`. Then
//! the task begins. Setting some ports of a switch does not disturb the light of its other ports.
//! The arbiter's messages are counted; they take no time beyond `slow_switch`. Every round starts
//! with new circuits.
//!
//! **Disjoint ports are sufficient.** A port is an input fibre with the transmitter that feeds it,
//! or an output fibre with its receiver. A setting concerns one input port and one output port of
//! its task. Two tasks with disjoint ports therefore have no settings for the same input, and their
//! light never meets on an output, whatever its wavelengths. Every transmitter and receiver serves
//! flows of one task, and the flows of a plan wait for nothing else. Hence each task takes the time
//! that it takes alone, even if a node serves one task with its row and another with its column.

use opticoll_fabric::family::wss_grid::WssGrid;
use std::collections::BTreeMap;

use super::simulators::control;
use super::{Method, SimulationError, run};
use crate::outcome::Outcome;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::family::wss_grid::{Configuration, SwitchPort};
use opticoll_placement::wss_grid::switches::configuration;
use opticoll_plan::plan::Plan;

/// Collective to be executed one or more times on the nodes of a fabric.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// Plan of the collective.
    pub plan: &'a Plan,
    /// Size of the collective.
    pub size: Bytes,
    /// Number of executions.
    pub rounds: u64,
    /// Time of the request.
    pub request: Time,
}

/// Admission and execution of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Admission {
    /// Time at which the request was granted.
    pub admitted: Time,
    /// Time at which the switches were set.
    pub start: Time,
    /// End of the last round.
    pub end: Time,
    /// Configuration of the switches.
    pub configuration: Configuration,
    /// Number of messages of the arbiter: the answer to the request, and one to each switch.
    pub arbiter_messages: u32,
    /// Outcome of one round.
    pub round: Outcome,
}

/// Simulates tasks on one machine. Returns the admissions in the order of the tasks.
///
/// # Errors
/// Returns the errors of the control simulator, and an error if the tasks are not for one machine.
pub fn run_tasks(tasks: &[Task<'_>]) -> Result<Vec<Admission>, SimulationError> {
    let method = Method {
        simulator: Some(&control::RECORD),
        ..Method::default()
    };
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&task| tasks[task].request);
    // Time at which each port becomes free.
    let mut free: BTreeMap<SwitchPort, Time> = BTreeMap::new();
    let mut machine = None;
    let mut arbiter = Time::ZERO;
    let mut admissions: Vec<Option<Admission>> = vec![None; tasks.len()];
    for task in order {
        let Task {
            plan,
            size,
            rounds,
            request,
        } = tasks[task];
        let round = run(plan, size, &method)?;
        let Some(grid) = plan.fabric.downcast::<WssGrid>() else {
            continue;
        };
        if !grid.is_same_machine(machine.get_or_insert(grid)) {
            return Err(SimulationError::Fabric {
                simulator: control::RECORD.name,
                family: plan.fabric.family(),
                hint: "all tasks must be on one grid; they may differ in nodes and wavelengths \
                       only",
            });
        }
        if grid.controller.is_some() && tasks.len() > 1 {
            return Err(SimulationError::Fabric {
                simulator: control::RECORD.name,
                family: plan.fabric.family(),
                hint: "a central controller would serve all tasks together, but tasks are timed \
                       separately; leave `controller` out",
            });
        }
        let configuration = configuration(plan);
        let ports = configuration.ports();
        let ready = ports
            .iter()
            .filter_map(|port| free.get(port))
            .max()
            .copied();
        let admitted = request.max(arbiter).max(ready.unwrap_or_default());
        let start = admitted.plus(grid.slow_switch)?;
        let end = start.plus(round.time.times(rounds)?)?;
        free.extend(ports.into_iter().map(|port| (port, end)));
        arbiter = admitted;
        let settings = configuration.settings();
        let switches = settings
            .chunk_by(|first, next| (first.plane, first.switch) == (next.plane, next.switch));
        admissions[task] = Some(Admission {
            admitted,
            start,
            end,
            arbiter_messages: 1 + switches.count() as u32,
            configuration,
            round,
        });
    }
    Ok(admissions.into_iter().flatten().collect())
}
