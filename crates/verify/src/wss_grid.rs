//! Rules of a grid of tunable circuits: the switches can be configured for the plan, and every
//! burst has a laser and a receiver of its own.
//!
//! The switches keep their configuration during the whole plan. Two rules hold over all slots
//! together:
//!
//! - light of one wavelength that enters a switch at an input port leaves it at a single output
//!   port, and
//! - no two input ports send light of one wavelength to the same output port (W1).
//!
//! Two rules hold in every slot:
//!
//! - a transmitter uses one wavelength (W2), and
//! - a receiver, which accepts any wavelength, receives light from one transmitter (W3).
//!
//! Several transfers over the same circuit in one slot are one burst. If a formula defines the
//! configuration of the fabric's switches, light must leave at the port that the formula gives. A
//! transfer may use relays, which store the data: each hop is in a slot of the transfer's step,
//! later than the previous hop.

pub(super) mod tasks;

use rustc_hash::FxHashMap;

use super::form::Admitted;
use super::order::AdmittedOrder;
use super::relays;
use super::report::{Fault, Report, each, pair_violation, transfer_violation, up_to};
use super::rules::Rules;
use super::{Violation, ViolationKind};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::{Hop, Light, Named};
use opticoll_fabric::family::wss_grid::WavelengthPlan;
use opticoll_fabric::family::wss_grid::{TunedLight, WssGrid};
use opticoll_plan::plan::Plan;

/// Transceiver of a rank: rank and plane.
type Transceiver = (u32, u8);
/// Port and wavelength at a switch: plane, index of the switch, index of the port, wavelength.
type SwitchChannel = (u8, u32, u32, u16);

pub(super) const RULES: Rules = Rules {
    family: WssGrid::NAME,
    wrong_light: |fabric| match fabric.downcast() {
        Some(grid) => each(|light| wrong_light(grid, light)),
        None => each(|_| Vec::new()),
    },
    check,
    bytes_per_transfer: 270,
};

/// Returns the faults of a plane or a wavelength that does not exist.
fn wrong_light(grid: &WssGrid, light: Light) -> Vec<Fault> {
    let TunedLight { plane, wavelength } = TunedLight::from(light);
    let mut faults = Vec::new();
    if plane >= 2 {
        let problem = format!("is in plane {plane}, but planes are {}", up_to(2));
        faults.push((ViolationKind::FibreRange, problem));
    }
    if u32::from(wavelength) >= grid.wavelengths {
        let wavelengths = up_to(grid.wavelengths);
        let problem = format!("is on wavelength {wavelength}, but wavelengths are {wavelengths}");
        faults.push((ViolationKind::WavelengthRange, problem));
    }
    faults
}

fn check(plan: &Plan, admitted: &Admitted, _: &AdmittedOrder, report: &mut Report) {
    let Some(grid) = plan.fabric.downcast::<WssGrid>() else {
        return report.unchecked(plan.fabric.family());
    };
    if !relays::are_in_order(plan, report) {
        return;
    }
    let mut hop_use = HopUse::default();
    for step in 0..plan.schedule.steps() {
        interrupt::check();
        for transfer in admitted.transfers_in_step(plan, step) {
            interrupt::check();
            if !admitted.is_lit(transfer) {
                continue;
            }
            let mut earliest = None;
            for hop in plan.hops_of(transfer) {
                let light = no_such_light(grid, hop);
                if let Some((kind, text)) = relays::fault(plan, step, hop, earliest, light) {
                    report.add(kind, || Violation {
                        rank: Some(hop.from),
                        ..grid_violation(plan, kind, transfer, hop, &text)
                    });
                    break;
                }
                earliest = Some(hop.slot.saturating_add(1));
                if is_connected(plan, grid, transfer, hop, report) {
                    hop_use.add_hop(plan, grid, transfer, hop, report);
                }
            }
        }
    }
}

/// Returns the fault of a hop whose plane or wavelength does not exist.
fn no_such_light(grid: &WssGrid, hop: Hop) -> Option<Fault> {
    let light = TunedLight::from(hop.light);
    if light.plane >= 2 {
        let text = format!("is relayed in plane {}, but there are two", light.plane);
        return Some((ViolationKind::FibreRange, text));
    }
    (u32::from(light.wavelength) >= grid.wavelengths).then(|| {
        let text = format!(
            "is relayed on wavelength {}, but a laser has {}",
            light.wavelength, grid.wavelengths
        );
        (ViolationKind::WavelengthRange, text)
    })
}

/// Returns a violation by the hop `hop` of `transfer`; `text` follows the name of the transfer.
fn grid_violation(
    plan: &Plan,
    kind: ViolationKind,
    transfer: usize,
    hop: Hop,
    text: &str,
) -> Violation {
    Violation {
        wavelength: Some(TunedLight::from(hop.light).wavelength),
        ..transfer_violation(plan, kind, hop.slot, transfer, text)
    }
}

/// Returns the index of the switch in `plane` to which `rank` is connected, and the index of its
/// port.
fn port_of(grid: &WssGrid, rank: u32, plane: u8) -> (u32, u32) {
    let node = grid.nodes[rank as usize];
    let (row, column) = (node / grid.columns, node % grid.columns);
    if plane == 0 {
        (row, column)
    } else {
        (column, row)
    }
}

fn plane(number: u8) -> &'static str {
    if number == 0 { "row" } else { "column" }
}

/// Returns whether the wavelength of a hop connects the two ports of the hop. Reports a violation
/// if it does not, or if the ports are on different switches. Also reports dead ports.
fn is_connected(
    plan: &Plan,
    grid: &WssGrid,
    transfer: usize,
    hop: Hop,
    report: &mut Report,
) -> bool {
    let light = TunedLight::from(hop.light);
    let (switch, input) = port_of(grid, hop.from, light.plane);
    let (other_switch, output) = port_of(grid, hop.to, light.plane);
    let plane = plane(light.plane);
    let kind = ViolationKind::Path;
    if switch != other_switch {
        report.add(kind, || {
            let text = format!(
                "goes from rank {} to {} in the {plane} plane, but they share no {plane}",
                hop.from, hop.to
            );
            grid_violation(plan, kind, transfer, hop, &text)
        });
        return false;
    }
    let ports = if light.plane == 0 {
        grid.columns
    } else {
        grid.rows
    };
    let wavelength = u32::from(light.wavelength);
    let expected_output = match grid.plan {
        WavelengthPlan::Xor => (wavelength < 31)
            .then(|| input ^ (1 << wavelength))
            .filter(|to| *to < ports),
        WavelengthPlan::Cyclic => {
            (wavelength + 1 < ports).then(|| (input + wavelength + 1) % ports)
        }
        WavelengthPlan::EdgeColouring => Some(output),
    };
    if expected_output != Some(output) {
        report.add(kind, || {
            let place = expected_output.map_or("nowhere".into(), |port| format!("to port {port}"));
            let text = format!(
                "enters the switch of {plane} {switch} at port {input} on wavelength {wavelength}, \
                 which leads {place}, not to port {output}"
            );
            grid_violation(plan, kind, transfer, hop, &text)
        });
        return false;
    }
    for (rank, port) in [(hop.from, input), (hop.to, output)] {
        let node = grid.nodes[rank as usize];
        let dead_transceiver = grid
            .dead_transceivers
            .iter()
            .any(|dead| dead.node == node && dead.plane as u8 == light.plane);
        let dead_port = grid.dead_ports.iter().any(|dead| {
            dead.plane as u8 == light.plane && dead.switch == switch && dead.port == port
        });
        if dead_transceiver || dead_port {
            let kind = ViolationKind::DeadPort;
            report.add(kind, || {
                let what = if dead_port {
                    "switch port"
                } else {
                    "transceiver"
                };
                let text = format!("needs the dead {plane} {what} of rank {rank}");
                let violation = grid_violation(plan, kind, transfer, hop, &text);
                Violation {
                    rank: Some(rank),
                    ..violation
                }
            });
        }
    }
    true
}

/// Resources that earlier hops use. The maps are only looked up, never iterated.
#[derive(Default)]
struct HopUse {
    /// Output port at which light leaves the switch, and the first transfer with such light.
    /// Indexed by input port and wavelength.
    leaves_at: FxHashMap<SwitchChannel, (u32, usize)>,
    /// Input port at which light enters the switch, and the first transfer with such light. Indexed
    /// by output port and wavelength.
    enters_at: FxHashMap<SwitchChannel, (u32, usize)>,
    /// Wavelength of each transmitter, and the first transfer that uses it. Indexed by slot and
    /// transceiver.
    tuned: FxHashMap<(u32, Transceiver), (u16, usize)>,
    /// Rank from which each receiver receives, and the first such transfer. Indexed by slot and
    /// transceiver.
    received_from: FxHashMap<(u32, Transceiver), (u32, usize)>,
}

impl HopUse {
    /// Adds a hop. Reports a violation for each resource (switch, port, transmitter or receiver)
    /// that an earlier hop uses in a different way.
    fn add_hop(
        &mut self,
        plan: &Plan,
        grid: &WssGrid,
        transfer: usize,
        hop: Hop,
        report: &mut Report,
    ) {
        let Hop {
            from,
            to,
            light,
            slot,
            ..
        } = hop;
        let TunedLight {
            plane: number,
            wavelength,
        } = TunedLight::from(light);
        let plane = plane(number);
        let (switch, input) = port_of(grid, from, number);
        let (_, output) = port_of(grid, to, number);
        let mut report_conflict = |kind, other: usize, what: &dyn Fn() -> String| {
            report.add(kind, || Violation {
                wavelength: Some(wavelength),
                rank: Some(to),
                ..pair_violation(plan, kind, slot, [other, transfer], &what())
            });
        };
        let channel = (number, switch, input, wavelength);
        let &mut (leaves, other) = self.leaves_at.entry(channel).or_insert((output, transfer));
        if leaves != output {
            report_conflict(ViolationKind::SwitchConfiguration, other, &|| {
                format!(
                    "need wavelength {wavelength} to lead from port {input} of the switch of \
                     {plane} {switch} to port {leaves} and to port {output}"
                )
            });
        }
        let channel = (number, switch, output, wavelength);
        let &mut (enters, other) = self.enters_at.entry(channel).or_insert((input, transfer));
        if enters != input {
            report_conflict(ViolationKind::Collision, other, &|| {
                format!(
                    "put wavelength {wavelength} of ports {enters} and {input} onto output port \
                     {output} of the switch of {plane} {switch}"
                )
            });
        }
        let transmitter = (slot, (from, number));
        let &mut (tuned, other) = self
            .tuned
            .entry(transmitter)
            .or_insert((wavelength, transfer));
        if tuned != wavelength {
            report_conflict(ViolationKind::Tuning, other, &|| {
                format!(
                    "need the {plane} transmitter of rank {from} on wavelengths {tuned} and \
                     {wavelength} at the same time"
                )
            });
        }
        let receiver = (slot, (to, number));
        let &mut (received_from, other) = self
            .received_from
            .entry(receiver)
            .or_insert((from, transfer));
        if received_from != from {
            report_conflict(ViolationKind::Receiver, other, &|| {
                format!(
                    "come to the {plane} receiver of rank {to} at the same time, from ranks \
                     {received_from} and {from}"
                )
            });
        }
    }
}
