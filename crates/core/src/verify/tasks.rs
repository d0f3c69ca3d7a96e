//! Several tasks on one grid: does every switch port belong to one of them (W4)?
//!
//! A node's ports are its own, and a plan names ranks of its task only. Hence tasks get along if they
//! are for the same machine and no node is allocated twice.

use super::{Violation, ViolationKind};
use crate::fabric::WssGrid;
use crate::plan::Plan;

/// What is wrong with running plans side by side on one grid, each on the nodes of its fabric. Each plan
/// for itself is the business of [`verify`](super::verify).
pub fn tasks(plans: &[&Plan]) -> Vec<Violation> {
    let kind = ViolationKind::Allocation;
    let mut violations = Vec::new();
    let mut owner: Vec<Option<usize>> = Vec::new();
    let mut machine: Option<&WssGrid> = None;
    for (task, plan) in plans.iter().enumerate() {
        let Some(grid) = plan.fabric.wss_grid() else {
            let family = plan.fabric.family();
            let sentence = format!("task {task} is for {family}, which has no tunable circuits");
            violations.push(Violation::new(kind, sentence));
            continue;
        };
        let first = *machine.get_or_insert(grid);
        if !is_same_machine(first, grid) {
            let sentence = format!("task {task} is for another machine than the tasks before it");
            violations.push(Violation::new(kind, sentence));
            continue;
        }
        owner.resize((grid.rows * grid.columns) as usize, None);
        for (rank, &node) in (0..).zip(&grid.nodes) {
            match owner[node as usize] {
                None => owner[node as usize] = Some(task),
                Some(other) => {
                    let sentence = format!(
                        "node {node} and its switch ports belong to the tasks {other} and {task}"
                    );
                    violations.push(Violation {
                        rank: Some(rank),
                        ..Violation::new(kind, sentence)
                    });
                }
            }
        }
    }
    violations
}

/// Whether two grids are one, but for the nodes allocated and the wavelengths between them.
fn is_same_machine(one: &WssGrid, other: &WssGrid) -> bool {
    let like = WssGrid {
        nodes: one.nodes.clone(),
        plan: one.plan,
        wavelengths: one.wavelengths,
        ..other.clone()
    };
    *one == like
}
