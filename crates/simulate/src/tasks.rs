//! Several tasks on one grid: a central arbiter admits them, sets the switches and then stands aside.
//!
//! A task is a verified plan that is carried out again and again, on the ports that its hops use. It asks
//! the arbiter, which admits tasks in the order of their requests (of equal times in the order given),
//! each when all its ports are free; the first that has to wait holds up the later ones. It computes the
//! configuration of the switches, tells every switch that has something to set, which takes
//! `slow_switch`, and the task begins. Setting some ports of a switch leaves the light of its others
//! alone; the arbiter's messages are counted and take no time beside that. Every round starts afresh,
//! with circuits of its own.
//!
//! **Disjoint ports are enough.** A port is an input fibre with the transmitter that feeds it and an output
//! fibre with its receiver. A setting concerns one input port and one output port of its task. So
//! neither have two tasks settings for one input, nor does light of both meet on one output, on whatever
//! wavelengths; and every transmitter and receiver, whose times are all that flows of one plan wait for,
//! has flows of one task. Hence each takes the time that it takes alone, even where a node serves one
//! task with its row and another with its column.

use opticoll_fabric::family::wss_grid::WssGrid;
use std::collections::BTreeMap;

use super::simulators::control;
use super::{Method, SimulationError, run};
use crate::outcome::Outcome;
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::family::wss_grid::{Configuration, SwitchPort};
use opticoll_placement::wss_grid::switches::configuration;
use opticoll_plan::plan::Plan;

/// A collective to be carried out, again and again, on the nodes of a fabric.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// What is carried out.
    pub plan: &'a Plan,
    /// Its size.
    pub size: Bytes,
    /// How often.
    pub rounds: u64,
    /// When it is asked for.
    pub request: Time,
}

/// What became of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Admission {
    /// When its request was granted.
    pub admitted: Time,
    /// When its switches were set.
    pub start: Time,
    /// When its last round had ended.
    pub end: Time,
    /// How its switches are set.
    pub configuration: Configuration,
    /// Messages of the arbiter: the answer to the request, and one to each switch. None later.
    pub arbiter_messages: u32,
    /// One round.
    pub round: Outcome,
}

/// Runs tasks on one machine; the answers are in the order of the tasks.
///
/// # Errors
/// What the control simulator refuses, and tasks that are not for one machine.
pub fn tasks(tasks: &[Task<'_>]) -> Result<Vec<Admission>, SimulationError> {
    let method = Method {
        simulator: Some(&control::RECORD),
        ..Method::default()
    };
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|&task| tasks[task].request);
    // When each port is free again.
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
                hint: "all tasks must be on one grid; they may differ in nodes and wavelengths only",
            });
        }
        if grid.controller.is_some() && tasks.len() > 1 {
            return Err(SimulationError::Fabric {
                simulator: control::RECORD.name,
                family: plan.fabric.family(),
                hint: "a central controller would serve all tasks together, which are timed apart; \
                       leave `controller` out",
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
        let switches =
            settings.chunk_by(|one, next| (one.plane, one.switch) == (next.plane, next.switch));
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
