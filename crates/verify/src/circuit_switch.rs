//! Rules of circuit switches: a switch connects each port with one other port, and no transfer uses
//! a port while its circuit changes.
//!
//! A circuit connects an output port of a rank with an input port of another rank, on one plane. In
//! a slot, every output port and every input port has at most one circuit. No circuit uses a dead
//! port. If a switch has too few ports for all ranks, a plane consists of several switches, each of
//! which connects b ranks. These are the ranks whose numbers, to the base b, differ in one digit
//! only. Circuits change only between slots, and transfers end with their slots, so that no
//! transfer uses a port while it changes. Transfers over the network beside the switch, which
//! connects all ranks, use no port.
//!
//! A transfer may use several circuits from rank to rank. Each hop is in a later slot of the
//! transfer's step than the previous hop. With cut-through forwarding, it may be in the same slot,
//! but the transfer must not reach a rank twice in that slot.

use rustc_hash::FxHashMap;

use super::form::Admitted;
use super::order::AdmittedOrder;
use super::relays;
use super::report::{Fault, Report, each, pair_violation, transfer_violation, up_to};
use super::rules::Rules;
use super::{Violation, ViolationKind};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::{Hop, Light, Named};
use opticoll_fabric::family::circuit_switch::{CircuitSwitch, Forwarding, SwitchedLight};
use opticoll_plan::plan::Plan;

const KIND: ViolationKind = ViolationKind::Ports;

/// Port of a rank: direction (`out` or `in`), rank, and index of the port.
type SwitchPort = (&'static str, u32, u16);

pub(super) const RULES: Rules = Rules {
    family: CircuitSwitch::NAME,
    wrong_light: |fabric| match fabric.downcast() {
        Some(switch) => each(|light| wrong_light(switch, light)),
        None => each(|_| Vec::new()),
    },
    check,
    bytes_per_transfer: 120,
};

/// Returns the faults of `light`: ports that do not exist, or that no switch connects.
fn wrong_light(switch: &CircuitSwitch, light: Light) -> Vec<Fault> {
    if light == SwitchedLight::PACKET {
        let problem = "is sent beside the switch, but the fabric has no network there (option \
                       packet_rate)"
            .to_owned();
        let has_network = switch.packet_rate.is_some();
        return match has_network {
            true => Vec::new(),
            false => vec![(ViolationKind::Path, problem)],
        };
    }
    let SwitchedLight {
        source_port,
        destination_port,
    } = SwitchedLight::from(light);
    let port = source_port.max(destination_port);
    if u32::from(port) >= switch.ports {
        let problem = format!("uses port {port}, but ports are {}", up_to(switch.ports));
        return vec![(KIND, problem)];
    }
    let ports_per_plane = switch.ports / switch.planes;
    let planes = [source_port, destination_port].map(|port| u32::from(port) / ports_per_plane);
    if planes[0] == planes[1] {
        return Vec::new();
    }
    let problem = format!(
        "joins port {source_port} of switch {} to port {destination_port} of switch {}, but no \
         circuit joins two switches",
        planes[0], planes[1]
    );
    vec![(ViolationKind::Path, problem)]
}

/// Ranks that each switch connects.
struct Switches<'a> {
    switch: &'a CircuitSwitch,
    ports_per_plane: u32,
    /// Number of ranks that a switch connects, and number of digits of a rank to this base. `None`
    /// if a switch connects all ranks.
    base: Option<(u64, u32)>,
}

impl Switches<'_> {
    fn new(switch: &CircuitSwitch) -> Switches<'_> {
        let ports_per_plane = switch.ports / switch.planes;
        let connected = u64::from(switch.switch_ports / ports_per_plane);
        let mut digits = 0;
        let mut remaining = u64::from(switch.ranks.saturating_sub(1));
        while remaining > 0 && connected > 1 {
            digits += 1;
            remaining /= connected;
        }
        let ranks = u64::from(switch.ranks);
        Switches {
            switch,
            ports_per_plane,
            base: (connected < ranks).then_some((connected, digits.max(1))),
        }
    }

    /// Returns a fault if a port of `hop` is dead, or if the two ranks are on different switches of
    /// the plane. Requires that the ports exist.
    fn end_fault(&self, hop: Hop) -> Option<Fault> {
        if hop.light == SwitchedLight::PACKET {
            return None;
        }
        let light = SwitchedLight::from(hop.light);
        let ends = [
            (hop.from, light.source_port),
            (hop.to, light.destination_port),
        ];
        let dead = ends.into_iter().find(|(rank, port)| {
            let mut dead = self.switch.dead_ports.iter();
            dead.any(|dead| (dead.rank, dead.port) == (*rank, u32::from(*port)))
        });
        if let Some((rank, port)) = dead {
            let text = format!("uses port {port} of rank {rank}, which is dead");
            return Some((ViolationKind::DeadPort, text));
        }
        let (base, digits) = self.base?;
        let plane = u32::from(light.source_port) / self.ports_per_plane;
        let step = base.pow(plane % digits);
        // Digits of the rank number without the digit of the plane.
        let [one, other] = [hop.from, hop.to].map(u64::from).map(|rank| {
            let above = rank / (step * base);
            (above, rank % step)
        });
        (one != other).then(|| {
            let text = format!(
                "joins rank {} to rank {} on plane {plane}, but the ranks are on different \
                 switches of that plane",
                hop.from, hop.to
            );
            (ViolationKind::Path, text)
        })
    }
}

fn check(plan: &Plan, admitted: &Admitted, _: &AdmittedOrder, report: &mut Report) {
    let Some(switch) = plan.fabric.downcast::<CircuitSwitch>() else {
        return report.unchecked(plan.fabric.family());
    };
    if !relays::are_in_order(plan, report) {
        return;
    }
    let switches = Switches::new(switch);
    let stores = switch.forwarding == Forwarding::Store;
    let mut passed = Vec::new();
    // For each port in use: the port at the other end of its circuit, and the first transfer that
    // uses the circuit.
    let mut ends: FxHashMap<(u32, SwitchPort), (SwitchPort, usize)> = FxHashMap::default();
    for step in 0..plan.schedule.steps() {
        interrupt::check();
        // Each slot belongs to one step.
        ends.clear();
        for transfer in admitted.transfers_in_step(plan, step) {
            interrupt::check();
            if !admitted.is_lit(transfer) {
                continue;
            }
            let mut before: Option<u32> = None;
            // Ranks that the transfer has reached in the slot of the previous hop.
            passed.clear();
            for hop in plan.hops_of(transfer) {
                let light = wrong_light(switch, hop.light).pop();
                let light = light.or_else(|| switches.end_fault(hop));
                let earliest = before.map(|slot| slot + u32::from(stores));
                let fault = relays::fault(plan, step, hop, earliest, light);
                if before != Some(hop.slot) {
                    passed.clear();
                    passed.push(hop.from);
                }
                let fault = fault.or_else(|| repeated_rank(hop, &passed));
                passed.push(hop.to);
                if let Some((kind, text)) = fault {
                    report.add(kind, || Violation {
                        rank: Some(hop.from),
                        ..transfer_violation(plan, kind, hop.slot, transfer, &text)
                    });
                    break;
                }
                before = Some(hop.slot);
                if hop.light == SwitchedLight::PACKET {
                    continue;
                }
                for [end, other] in both_orders(hop) {
                    let place = ends.entry((hop.slot, end));
                    let &mut (first_peer, first) = place.or_insert((other, transfer));
                    if first_peer != other {
                        two_circuits(
                            plan,
                            [first, transfer],
                            hop.slot,
                            end,
                            [first_peer, other],
                            report,
                        );
                    }
                }
            }
        }
    }
}

/// Returns a fault if the transfer reaches the same rank twice in a slot. `passed` has the ranks
/// that it has reached in this slot before `hop`.
fn repeated_rank(hop: Hop, passed: &[u32]) -> Option<Fault> {
    passed.contains(&hop.to).then(|| {
        let text = format!("reaches rank {} twice in one slot", hop.to);
        (ViolationKind::Relays, text)
    })
}

/// Returns the two ports of a hop in both orders: (output, input) and (input, output).
fn both_orders(hop: Hop) -> [[SwitchPort; 2]; 2] {
    let light = SwitchedLight::from(hop.light);
    let out = ("out", hop.from, light.source_port);
    let into = ("in", hop.to, light.destination_port);
    [[out, into], [into, out]]
}

/// Reports that two circuits use the same port in a slot. `first_peer` and `other` are the ports at
/// the other ends of the two circuits.
fn two_circuits(
    plan: &Plan,
    transfers: [usize; 2],
    slot: u32,
    (direction, rank, port): SwitchPort,
    [first_peer, other]: [SwitchPort; 2],
    report: &mut Report,
) {
    report.add(KIND, || {
        let problem = format!(
            "need port {port} {direction} of rank {rank} for two circuits, with port {} of rank \
             {} and with port {} of rank {}",
            first_peer.2, first_peer.1, other.2, other.1
        );
        Violation {
            rank: Some(rank),
            ..pair_violation(plan, KIND, slot, transfers, &problem)
        }
    });
}
