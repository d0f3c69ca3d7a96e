//! Several tasks on one grid of tunable circuits, admitted by a central arbiter.
//!
//! A task is a verified plan that is executed one or more times. Its hops define the ports that the
//! task needs. Each task sends a request to the arbiter. The arbiter admits the tasks in the order
//! of their requests, each as soon as all its ports are free. A waiting task delays all later
//! tasks. For an admitted task, the arbiter computes the configuration of the switches and sends a
//! message to every switch that must change. Setting the switches takes `slow_switch`; then the
//! task begins. Setting some ports of a switch does not disturb the light of its other ports. The
//! arbiter's messages take no time beyond `slow_switch`. Every round of a task starts with new
//! circuits.
//!
//! **Disjoint ports are sufficient.** A port is an input fibre with the transmitter that feeds it,
//! or an output fibre with its receiver. A switch joins an input port to an output port of the same
//! task. Two tasks with disjoint ports therefore never need the same input, and their light never
//! meets on an output, whatever their wavelengths. Every transmitter and receiver serves the flows
//! of one task, and the flows of a plan wait for nothing else. Hence each task takes as long as it
//! takes alone, even if one node serves two tasks, one with its row ports and one with its column
//! ports.

use opticoll_fabric::family::wss_grid::WssGrid;
use std::collections::BTreeMap;

use super::simulators::control;
use super::{SimulationError, TimingModel, run};
use crate::outcome::Outcome;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::family::wss_grid::{Configuration, SwitchPort};
use opticoll_placement::wss_grid::switches::configuration;
use opticoll_plan::plan::Plan;

/// Collective that is executed one or more times on the nodes of a fabric.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// Plan of the collective.
    pub plan: &'a Plan,
    /// Size of the collective.
    pub size: Bytes,
    /// Number of executions.
    pub rounds: u64,
    /// Time at which the task sends its request.
    pub request: Time,
}

/// Times and results of an admitted task.
#[derive(Debug, Clone, PartialEq)]
pub struct Admission {
    /// Time at which the arbiter granted the request.
    pub admitted: Time,
    /// Time at which the switches were set and the first round started.
    pub start: Time,
    /// End of the last round.
    pub end: Time,
    /// Configuration of the switches.
    pub configuration: Configuration,
    /// Number of messages that the arbiter sent: the answer to the request, and one message to each
    /// switch.
    pub arbiter_messages: u32,
    /// Outcome of one round.
    pub round: Outcome,
}

/// Simulates `tasks` on one machine and returns their admissions in the order of `tasks`.
///
/// # Errors
/// Returns the errors of the `control` simulator, and an error if the tasks need different
/// machines.
pub fn run_tasks(tasks: &[Task<'_>]) -> Result<Vec<Admission>, SimulationError> {
    let method = TimingModel {
        simulator: Some(&control::RECORD),
        ..TimingModel::default()
    };
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&task| tasks[task].request);
    // Time from which each port is free.
    let mut free_from: BTreeMap<SwitchPort, Time> = BTreeMap::new();
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
            .filter_map(|port| free_from.get(port))
            .max()
            .copied();
        let admitted = request.max(arbiter).max(ready.unwrap_or_default());
        let start = admitted.plus(grid.slow_switch)?;
        let end = start.plus(round.time.times(rounds)?)?;
        free_from.extend(ports.into_iter().map(|port| (port, end)));
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
