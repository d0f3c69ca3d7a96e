//! Failures of a switch grid.

use super::{WssGrid, components};
use crate::fabric::part;
use opticoll_base::spec::{Spec, SpecError};

/// Options that [`WssGrid::after_failures`] accepts. A specification accepts the same options,
/// except `leaving`.
const KNOWN: [&str; 4] = ["dead_transceivers", "dead_ports", "degraded", "leaving"];

impl WssGrid {
    /// Returns the grid after additional failures. `failures` has the syntax of a grid's options:
    /// `dead_transceivers=5.row+9.column`, `dead_ports=row3.2`, `degraded=5.row@25Gb/s`. The option
    /// `leaving=5+8-11` lists nodes that are no longer allocated to the task.
    ///
    /// # Errors
    /// A component does not exist on the grid, a node in `leaving` is not allocated to the task, or
    /// no node is left.
    pub fn after_failures(&self, failures: &str) -> Result<WssGrid, SpecError> {
        let spec: Spec = format!("failed:{failures}").parse()?;
        spec.only(&KNOWN)?;
        let nodes = self.rows * self.columns;
        let mut grid = self.clone();
        if spec.option("leaving").is_some() {
            let leaving = components::read_nodes(&spec, "leaving", nodes)?;
            if let Some(unallocated) = leaving.iter().find(|node| !self.nodes.contains(node)) {
                let problem = format!("node {unallocated} is not allocated to the task");
                return Err(spec.refuse("leaving", problem));
            }
            grid.nodes
                .retain(|node| leaving.binary_search(node).is_err());
            if grid.nodes.is_empty() {
                return Err(spec.refuse("leaving", "no node is left"));
            }
        }
        grid.dead_transceivers
            .extend(components::read_transceivers(&spec, nodes)?);
        grid.dead_transceivers.sort_unstable();
        grid.dead_transceivers.dedup();
        grid.dead_ports
            .extend(components::read_ports(&spec, self.rows, self.columns)?);
        grid.dead_ports.sort_unstable();
        grid.dead_ports.dedup();
        grid.degraded
            .extend(components::read_degraded(&spec, nodes, self.rate)?);
        grid.degraded = part::slowest_first(grid.degraded);
        Ok(grid)
    }
}
