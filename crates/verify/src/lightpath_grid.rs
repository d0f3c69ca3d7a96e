//! Rule of grids of lightpaths: every port holds one path at a time.
//!
//! A path joins a port of a rank with a port of another rank, and serves both directions. Every
//! transfer names the port of its source and of its destination. A rank has the ports 0..k, and in
//! a slot all transfers that use a port, out or in, use the same path. Hence a rank holds paths to
//! at most k others at a time: k ports with one path each, and a path has one other end. The same
//! holds from slot to slot, whichever paths stay up in between, since a port holds at most the path
//! of its last slot.

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

/// Port of a rank: the rank and the number.
type RankPort = (u32, u32);

/// Rules of grids of lightpaths. A port that does not exist is reported where it is used.
pub(super) const RULES: Rules = Rules {
    family: LightpathGrid::NAME,
    wrong_light: |_| each(|_| Vec::new()),
    check,
    bytes_per_transfer: 24,
};

/// Checks the ports, slot by slot.
fn check(plan: &Plan, admitted: &Admitted, order: &AdmittedOrder, report: &mut Report) {
    let Some(grid) = plan.fabric.downcast::<LightpathGrid>() else {
        return report.unchecked(plan.fabric.family());
    };
    // Other end of each port's path in the slot, and a transfer that uses the path. Only looked up.
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
                let &mut (held, before) = ends.entry(end).or_insert((other, transfer));
                if held != other {
                    two_paths(plan, [before, transfer], end, [held, other], report);
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

/// Reports a port that two paths use in a slot.
fn two_paths(
    plan: &Plan,
    transfers: [usize; 2],
    (rank, port): RankPort,
    [held, other]: [RankPort; 2],
    report: &mut Report,
) {
    let slot = plan.slot[transfers[1]];
    report.add(KIND, || {
        let problem = format!(
            "need port {port} of rank {rank} for two paths, to port {} of rank {} and to port {} \
             of rank {}",
            held.1, held.0, other.1, other.0
        );
        Violation {
            rank: Some(rank),
            ..pair_violation(plan, KIND, slot, transfers, &problem)
        }
    });
}
