//! Rule for several tasks on one grid: every switch port is used by at most one task (W4).
//!
//! A hop uses two ports: the port of its sender and the port of its receiver. If no two tasks share
//! a port, they share no input and no output of a switch, no transmitter and no receiver. Each rule
//! of a single plan concerns one of these alone. The rules therefore hold for all tasks together,
//! in whatever slots their hops are.

use std::collections::BTreeMap;

use super::{plane, port_of};
use crate::{Violation, ViolationKind};
use opticoll_fabric::family::wss_grid::{TunedLight, WssGrid};
use opticoll_plan::plan::Plan;

/// Returns all conflicts between plans that run on one grid at the same time. Each plan uses the
/// ports of its hops. [`verify`](crate::verify) checks each plan on its own.
pub fn tasks(plans: &[&Plan]) -> Vec<Violation> {
    let kind = ViolationKind::Allocation;
    let mut violations = Vec::new();
    let mut owner: BTreeMap<(u8, u32, u32), usize> = BTreeMap::new();
    let mut machine: Option<&WssGrid> = None;
    for (task, plan) in plans.iter().enumerate() {
        let Some(grid) = plan.fabric.downcast::<WssGrid>() else {
            let family = plan.fabric.family();
            let sentence = format!("task {task} is for {family}, which has no tunable circuits");
            violations.push(Violation::new(kind, sentence));
            continue;
        };
        if !grid.is_same_machine(machine.get_or_insert(grid)) {
            let sentence = format!("task {task} is for another machine than the tasks before it");
            violations.push(Violation::new(kind, sentence));
            continue;
        }
        for ((number, switch, port), rank) in ports(plan, grid) {
            let other = *owner.entry((number, switch, port)).or_insert(task);
            if other != task {
                let node = grid.nodes[rank as usize];
                let plane = plane(number);
                let sentence = format!(
                    "port {port} of the switch of {plane} {switch}, that of node {node}, is used \
                     by the tasks {other} and {task}"
                );
                violations.push(Violation {
                    rank: Some(rank),
                    ..Violation::new(kind, sentence)
                });
            }
        }
    }
    violations
}

/// Returns the rank at each port that the hops of a plan use, indexed by (plane, switch, port).
/// Hops of ranks that do not exist, and transfers without light, use no ports.
fn ports(plan: &Plan, grid: &WssGrid) -> BTreeMap<(u8, u32, u32), u32> {
    let columns = [plan.slot.len(), plan.light.len()];
    let lit = columns.into_iter().fold(plan.len(), usize::min);
    let hops = (0..lit).flat_map(|transfer| plan.hops_of(transfer));
    let ends = hops.flat_map(|hop| {
        let plane = TunedLight::from(hop.light).plane;
        [(hop.from, plane), (hop.to, plane)]
    });
    let existing = ends.filter(|&(rank, _)| (rank as usize) < grid.nodes.len());
    existing
        .map(|(rank, plane)| {
            let (switch, port) = port_of(grid, rank, plane);
            ((plane, switch, port), rank)
        })
        .collect()
}
