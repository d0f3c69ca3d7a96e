//! Rule of grids of lightpaths: every port is used by at most one lightpath at a time.
//!
//! A lightpath connects a port of a rank with a port of another rank, in both directions. Every
//! transfer names the port of its source and the port of its destination. A rank has the ports
//! 0..k. In a slot, all transfers that use a port, in either direction, must use the same
//! lightpath. A rank therefore has at most k lightpaths, to at most k other ranks. This also holds
//! between slots, whichever lightpaths stay up: each port has at most the lightpath of its last
//! slot.

use opticoll_fabric::family::lightpath_grid::LightpathGrid;
use rustc_hash::FxHashMap;

use super::form::Admitted;
use super::order::AdmittedOrder;
use super::report::{Report, each, pair_violation, transfer_violation};
use super::rules::Rules;
use super::{Violation, ViolationKind};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::Named;
use opticoll_fabric::family::lightpath_grid::PortsLight;
use opticoll_plan::plan::Plan;

const KIND: ViolationKind = ViolationKind::Ports;

/// Port of a rank: rank, and index of the port.
type RankPort = (u32, u32);

/// Rules of grids of lightpaths. Ports that do not exist are reported where they are used.
pub(super) const RULES: Rules = Rules {
    family: LightpathGrid::NAME,
    wrong_light: |_| each(|_| Vec::new()),
    check,
    bytes_per_transfer: 24,
};

fn check(plan: &Plan, admitted: &Admitted, order: &AdmittedOrder, report: &mut Report) {
    let Some(grid) = plan.fabric.downcast::<LightpathGrid>() else {
        return report.unchecked(plan.fabric.family());
    };
    // For each port in use: the port at the other end of its lightpath in the slot, and a transfer
    // that uses the lightpath.
    let mut ends: FxHashMap<RankPort, (RankPort, usize)> = FxHashMap::default();
    for slot in order.slots(plan) {
        interrupt::check();
        ends.clear();
        for position in slot {
            interrupt::check();
            let transfer = order.at(position);
            if !admitted.is_lit(transfer) {
                continue;
            }
            let (from, to) = plan.schedule.ends(transfer);
            let light = PortsLight::from(plan.light[transfer]);
            let source = (from, u32::from(light.source_port));
            let destination = (to, u32::from(light.destination_port));
            for (end, other) in [(source, destination), (destination, source)] {
                if end.1 >= grid.ports {
                    no_such_port(plan, transfer, end, grid.ports, report);
                    continue;
                }
                let &mut (first_peer, before) = ends.entry(end).or_insert((other, transfer));
                if first_peer != other {
                    two_lightpaths(plan, [before, transfer], end, [first_peer, other], report);
                }
            }
        }
    }
}

/// Reports a port that the rank does not have.
fn no_such_port(
    plan: &Plan,
    transfer: usize,
    (rank, port): RankPort,
    ports: u32,
    report: &mut Report,
) {
    let slot = plan.slot[transfer];
    report.add(KIND, || {
        let problem =
            format!("uses port {port} of rank {rank}, but a rank has {ports}, counted from 0");
        Violation {
            rank: Some(rank),
            ..transfer_violation(plan, KIND, slot, transfer, &problem)
        }
    });
}

/// Reports that two lightpaths, to the ports `first_peer` and `other`, use the same port in a slot.
fn two_lightpaths(
    plan: &Plan,
    transfers: [usize; 2],
    (rank, port): RankPort,
    [first_peer, other]: [RankPort; 2],
    report: &mut Report,
) {
    let slot = plan.slot[transfers[1]];
    report.add(KIND, || {
        let problem = format!(
            "need port {port} of rank {rank} for two paths, to port {} of rank {} and to port {} \
             of rank {}",
            first_peer.1, first_peer.0, other.1, other.0
        );
        Violation {
            rank: Some(rank),
            ..pair_violation(plan, KIND, slot, transfers, &problem)
        }
    });
}
