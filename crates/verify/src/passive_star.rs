//! Rules of a `passive_star`: a wavelength carries one light at a time, and a rank sends and hears
//! on at most as many wavelengths as it has transmitters and receivers.
//!
//! Transfers of the same chunks from one rank on one wavelength are one light, which all of their
//! destinations hear, whether they copy or reduce. A light is heard as a whole.

use rustc_hash::{FxHashMap, FxHashSet};

use super::form::Admitted;
use super::order::AdmittedOrder;
use super::report::{Fault, Report, counted, each, pair_violation, up_to};
use super::rules::Rules;
use super::{Violation, ViolationKind};
use opticoll_base::interrupt;
use opticoll_fabric::fabric::{Light, Named};
use opticoll_fabric::family::passive_star::{PassiveStar, StarLight};
use opticoll_plan::plan::Plan;

/// Rules of passive stars.
pub(super) const RULES: Rules = Rules {
    family: PassiveStar::NAME,
    wrong_light: |fabric| match fabric.downcast() {
        Some(star) => each(|light| wrong_light(star, light)),
        None => each(|_| Vec::new()),
    },
    check,
    bytes_per_transfer: 64,
};

/// Returns the fault of a wavelength that does not exist.
fn wrong_light(star: &PassiveStar, light: Light) -> Vec<Fault> {
    let wavelength = StarLight::from(light).wavelength;
    if u32::from(wavelength) < star.wavelengths {
        return Vec::new();
    }
    let wavelengths = up_to(star.wavelengths);
    let problem = format!("is on wavelength {wavelength}, but wavelengths are {wavelengths}");
    vec![(ViolationKind::WavelengthRange, problem)]
}

/// Checks wavelengths, transmitters and receivers, slot by slot.
fn check(plan: &Plan, admitted: &Admitted, order: &AdmittedOrder, report: &mut Report) {
    let Some(star) = plan.fabric.downcast::<PassiveStar>() else {
        return report.unchecked(plan.fabric.family());
    };
    // First transfer on each wavelength. Only looked up.
    let mut on: FxHashMap<u16, usize> = FxHashMap::default();
    // Ranks that send (0) or hear (1) on a wavelength, each once. `crowded` has them in the order
    // of the plan.
    let mut tuned: FxHashSet<(u8, u32, u16)> = FxHashSet::default();
    let mut used: FxHashMap<(u8, u32), u64> = FxHashMap::default();
    for slot in order.slots(plan) {
        interrupt::check();
        on.clear();
        tuned.clear();
        used.clear();
        let mut crowded = Vec::new();
        for position in slot {
            interrupt::check();
            let transfer = order.at(position);
            if !admitted.is_lit(transfer) {
                continue;
            }
            let wavelength = StarLight::from(plan.light[transfer]).wavelength;
            let first = *on.entry(wavelength).or_insert(transfer);
            if first != transfer && !is_one_light(plan, first, transfer) {
                collision(plan, [first, transfer], wavelength, report);
            }
            let (source, destination) = plan.schedule.ends(transfer);
            let ends = [
                (0, source, star.transmitters),
                (1, destination, star.receivers),
            ];
            for (end, rank, most) in ends {
                if tuned.insert((end, rank, wavelength)) {
                    let count = used.entry((end, rank)).or_default();
                    *count += 1;
                    if *count == u64::from(most) + 1 {
                        crowded.push((end, rank, most, transfer));
                    }
                }
            }
        }
        for (end, rank, most, transfer) in crowded {
            ports(
                plan,
                (end, rank),
                used[&(end, rank)],
                most,
                transfer,
                report,
            );
        }
    }
}

/// Returns whether two transfers on one wavelength carry the same chunks from one rank.
fn is_one_light(plan: &Plan, one: usize, other: usize) -> bool {
    let [one, other] = [one, other].map(|transfer| plan.schedule.transfer(transfer));
    let sent = |moved: opticoll_plan::schedule::Transfer| (moved.source, moved.chunk, moved.count);
    sent(one) == sent(other)
}

/// Reports two lights on one wavelength.
fn collision(plan: &Plan, transfers: [usize; 2], wavelength: u16, report: &mut Report) {
    let kind = ViolationKind::Collision;
    let slot = plan.slot[transfers[0]];
    report.add(kind, || {
        let problem = format!(
            "are both on wavelength {wavelength}, and are not the same chunks from one rank"
        );
        Violation {
            wavelength: Some(wavelength),
            ..pair_violation(plan, kind, slot, transfers, &problem)
        }
    });
}

/// Reports a rank with too few transmitters (`end` 0) or receivers (`end` 1).
fn ports(
    plan: &Plan,
    (end, rank): (u8, u32),
    count: u64,
    most: u32,
    transfer: usize,
    report: &mut Report,
) {
    let kind = ViolationKind::Ports;
    let slot = plan.slot[transfer];
    let (verb, what) = match end {
        0 => ("sends", "transmitter"),
        _ => ("hears", "receiver"),
    };
    report.add(kind, || Violation {
        transfers: vec![transfer],
        slot: Some(slot),
        rank: Some(rank),
        ..Violation::new(
            kind,
            format!(
                "slot {slot}: rank {rank} {verb} on {}, but has {}",
                counted(count, "wavelength"),
                counted(most.into(), what)
            ),
        )
    });
}
