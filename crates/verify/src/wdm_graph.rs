//! Rules of a graph of fibres: every lightpath names its links, crosses at most as many links as
//! light reaches, and is on a fibre and a wavelength that exist. In a slot, no channel of a link
//! carries two lightpaths, no fibre carries more converted lightpaths than wavelengths, and no rank
//! uses more transmitters or receivers than it has. (`routes` checks that the links join the ranks.)

use rustc_hash::FxHashMap;

use super::form::Admitted;
use super::order::AdmittedOrder;
use super::report::{Fault, Report, counted, each, pair_violation, transfer_violation, up_to};
use super::rules::Rules;
use super::{Violation, ViolationKind};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::Light;
use opticoll_fabric::family::wdm_graph::{CONVERTED, GraphLight, WdmGraph};
use opticoll_plan::plan::Plan;

/// Returns the rules of a family of graphs.
pub(super) const fn rules(family: &'static str) -> Rules {
    Rules {
        family,
        wrong_light: |fabric| match fabric.downcast() {
            Some(graph) => each(|light| wrong_light(graph, light)),
            None => each(|_| Vec::new()),
        },
        check,
        bytes_per_transfer: 256,
    }
}

/// Returns the faults of a fibre or wavelength that does not exist, or of an impossible conversion.
fn wrong_light(graph: &WdmGraph, light: Light) -> Vec<Fault> {
    let GraphLight { fibre, wavelength } = GraphLight::from(light);
    let mut faults = Vec::new();
    if u32::from(fibre) >= graph.fibres {
        let problem = format!(
            "is on fibre {fibre}, but fibres are {}",
            up_to(graph.fibres)
        );
        faults.push((ViolationKind::FibreRange, problem));
    }
    if wavelength == CONVERTED {
        if !graph.converters {
            let problem = "changes its wavelength, but the fabric has no converters".into();
            faults.push((ViolationKind::Conversion, problem));
        }
    } else if u32::from(wavelength) >= graph.wavelengths {
        let wavelengths = up_to(graph.wavelengths);
        let problem = format!("is on wavelength {wavelength}, but wavelengths are {wavelengths}");
        faults.push((ViolationKind::WavelengthRange, problem));
    }
    faults
}

fn check(plan: &Plan, admitted: &Admitted, order: &AdmittedOrder, report: &mut Report) {
    let Some(graph) = plan.fabric.downcast::<WdmGraph>() else {
        return report.unchecked(plan.fabric.family());
    };
    // First transfer on each channel of a link.
    let mut first_on: FxHashMap<(u32, GraphLight), usize> = FxHashMap::default();
    // Converted lightpaths on each fibre of a link.
    let mut converted: FxHashMap<(u32, u8), u64> = FxHashMap::default();
    // Lightpaths that a rank sends (0) or receives (1).
    let mut used: FxHashMap<(u8, u32), u64> = FxHashMap::default();
    for slot in order.slots(plan) {
        interrupt::check();
        first_on.clear();
        converted.clear();
        used.clear();
        for position in slot {
            interrupt::check();
            let transfer = order.at(position);
            let (source, destination) = plan.schedule.ends(transfer);
            let ends = [
                (0, source, graph.transmitters),
                (1, destination, graph.receivers),
            ];
            for (end, rank, limit) in ends {
                let count = used.entry((end, rank)).or_default();
                *count += 1;
                if let Some(limit) = limit.filter(|&limit| *count == u64::from(limit) + 1) {
                    ports(plan, transfer, (end, rank), limit, report);
                }
            }
            if !admitted.is_lit(transfer) {
                continue;
            }
            let Some(route) = plan.routes.of(transfer) else {
                let kind = ViolationKind::Route;
                report.add(kind, || {
                    let problem = "names no links for its light";
                    transfer_violation(plan, kind, plan.slot[transfer], transfer, problem)
                });
                continue;
            };
            if let Some(reach) = graph.reach.filter(|&reach| route.len() > reach as usize) {
                let kind = ViolationKind::Reach;
                report.add(kind, || {
                    let links = counted(route.len() as u64, "link");
                    let problem = format!("spans {links}, but the reach of light is {reach}");
                    transfer_violation(plan, kind, plan.slot[transfer], transfer, &problem)
                });
            }
            let light = GraphLight::from(plan.light[transfer]);
            for &link in route {
                if light.wavelength == CONVERTED {
                    let count = converted.entry((link, light.fibre)).or_default();
                    *count += 1;
                    if *count == u64::from(graph.wavelengths) + 1 {
                        overload(plan, transfer, link, graph.wavelengths, report);
                    }
                    continue;
                }
                let first = *first_on.entry((link, light)).or_insert(transfer);
                if first != transfer {
                    collision(plan, [first, transfer], link, light, report);
                    break;
                }
            }
        }
    }
}

/// Reports a rank with too few transmitters (`end` is 0) or too few receivers (`end` is 1).
fn ports(plan: &Plan, transfer: usize, (end, rank): (u8, u32), limit: u32, report: &mut Report) {
    let kind = ViolationKind::Ports;
    let (verb, what) = match end {
        0 => ("sends", "transmitter"),
        _ => ("receives", "receiver"),
    };
    report.add(kind, || Violation {
        transfers: vec![transfer],
        slot: Some(plan.slot[transfer]),
        rank: Some(rank),
        ..Violation::new(
            kind,
            format!(
                "slot {}: rank {rank} {verb} more lightpaths than it has {}",
                plan.slot[transfer],
                counted(limit.into(), what)
            ),
        )
    });
}

fn overload(plan: &Plan, transfer: usize, link: u32, wavelengths: u32, report: &mut Report) {
    let kind = ViolationKind::Overload;
    report.add(kind, || {
        let problem = format!(
            "is one of more than {} on a fibre of link {link}",
            counted(wavelengths.into(), "converted lightpath")
        );
        transfer_violation(plan, kind, plan.slot[transfer], transfer, &problem)
    });
}

fn collision(
    plan: &Plan,
    transfers: [usize; 2],
    link: u32,
    light: GraphLight,
    report: &mut Report,
) {
    let kind = ViolationKind::Collision;
    let slot = plan.slot[transfers[0]];
    report.add(kind, || {
        let problem = format!(
            "are both on wavelength {} of fibre {} of link {link}",
            light.wavelength, light.fibre
        );
        Violation {
            wavelength: Some(light.wavelength),
            ..pair_violation(plan, kind, slot, transfers, &problem)
        }
    });
}
