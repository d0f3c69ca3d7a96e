//! Time model of shifts on a circuit switch and on a grid.

use super::ShiftMachine;
use super::group::{Group, PortShifts};
use crate::{PlannerError, PlanningProblem};
use opticoll_base::units::{Bytes, Time};
use opticoll_fabric::fabric::Transmission;
use opticoll_fabric::fabric::circuits::Circuits;
use opticoll_fabric::family::circuit_switch::CircuitSwitch;
use opticoll_plan::collective::CollectiveKind;
use opticoll_simulate::Policy;

/// Shifts that a fabric allows, and the times of slots, configurations and blocks.
#[derive(Clone)]
pub(super) struct ShiftModel {
    pub(super) group: Group,
    /// Shifts that each port of a switch, or each plane of a grid, allows.
    pub(super) ports: Vec<PortShifts>,
    pub(super) is_grid: bool,
    pub(super) max_slots: u32,
    /// True if all hops of a block in a configuration share a slot.
    pub(super) cuts_through: bool,
    pub(super) block: Bytes,
    pub(super) transmission: Transmission,
    /// Startup time of a message in picoseconds.
    pub(super) startup: u64,
    /// Time of a slot in addition to the transmission, in picoseconds: the latency of a hop, plus
    /// the reconfiguration if the policy charges one for every slot.
    pub(super) slot: u64,
    /// Time of a change to the next configuration, in picoseconds.
    pub(super) change: u64,
}

impl ShiftModel {
    pub(super) fn new(
        problem: &PlanningProblem<'_>,
        machine: ShiftMachine<'_>,
    ) -> Result<ShiftModel, PlannerError> {
        let ranks = u64::from(problem.collective.ranks());
        let block = match problem.collective.kind() {
            CollectiveKind::AllGather | CollectiveKind::Scatter | CollectiveKind::Gather => {
                problem.size
            }
            _ => Bytes::new(problem.size.get().div_ceil(ranks)),
        };
        let grid = match machine {
            ShiftMachine::Switch(switch) => {
                let (charged, change) = problem.switch_cost(switch)?;
                let latency = switch.latency.ps();
                let (slot, change) = match switch.cuts_through() {
                    true => (latency, change.saturating_add(charged)),
                    false => (latency.saturating_add(charged), change),
                };
                return Ok(ShiftModel {
                    block,
                    slot,
                    change,
                    ..ShiftModel::hops_only(switch)
                });
            }
            ShiftMachine::Grid(grid) => grid,
        };
        let setup = match problem.policy() {
            Policy::Free => Time::ZERO,
            _ => grid.change()?.setup,
        };
        let port = |unit: u32, ranks: u32| PortShifts {
            unit,
            max_units: ranks - 1,
        };
        Ok(ShiftModel {
            group: Group {
                rows: grid.rows,
                columns: grid.columns,
            },
            ports: vec![port(1, grid.columns), port(grid.columns, grid.rows)],
            is_grid: true,
            max_slots: 1,
            cuts_through: false,
            block,
            transmission: grid.transmission(),
            startup: 0,
            slot: setup.plus(grid.latency)?.ps(),
            change: 0,
        })
    }

    /// Creates a model of a circuit switch with blocks of one byte, in which slots and changes of
    /// the configuration take no time.
    pub(super) fn hops_only(switch: &CircuitSwitch) -> ShiftModel {
        let port = PortShifts {
            unit: 1,
            max_units: switch.ranks - 1,
        };
        let ports = super::ports_of_all(switch).len();
        ShiftModel {
            group: Group {
                rows: 1,
                columns: switch.ranks,
            },
            ports: vec![port; ports],
            is_grid: false,
            max_slots: switch.ranks,
            cuts_through: switch.cuts_through(),
            block: Bytes::new(1),
            transmission: switch.transmission(),
            startup: switch.startup.ps(),
            slot: 0,
            change: 0,
        }
    }

    /// Returns the number of ports that allow at least one shift.
    pub(super) fn usable_ports(&self) -> u64 {
        self.ports.iter().filter(|port| port.max_units > 0).count() as u64
    }

    /// Returns the transmission time of `blocks` blocks over one port, in picoseconds.
    pub(super) fn sending(&self, blocks: u64) -> u64 {
        let bytes = Bytes::new(self.block.get().saturating_mul(blocks));
        u64::try_from(self.transmission.ps(bytes)).unwrap_or(u64::MAX)
    }

    /// Estimates the time of a plan in picoseconds, assuming that all ports have equal loads.
    /// `hops` is the total number of hops of all blocks that a rank sends.
    pub(super) fn estimate(&self, configurations: u64, slots: u64, hops: u64) -> u64 {
        self.time(
            configurations,
            slots,
            hops.div_ceil(self.usable_ports().max(1)),
        )
    }

    /// Returns the time of a plan in picoseconds. `blocks` is the sum, over all slots, of the
    /// number of blocks on the port with the highest load.
    pub(super) fn time(&self, configurations: u64, slots: u64, blocks: u64) -> u64 {
        let startups = self.startup.saturating_mul(configurations);
        let changes = self.change.saturating_mul(configurations - 1);
        let latencies = self.slot.saturating_mul(slots);
        let parts = [startups, changes, latencies, self.sending(blocks)];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}
