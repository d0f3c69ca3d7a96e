//! Rules of a `passive_star`: a wavelength carries one light at a time. A rank sends on at most as
//! many wavelengths as it has transmitters, and receives on at most as many as it has receivers.
//!
//! Transfers of the same chunks from one rank on one wavelength are a single light. All of their
//! destinations receive this light completely, whether they copy or reduce.

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

pub(super) const RULES: Rules = Rules {
    family: PassiveStar::NAME,
    wrong_light: |fabric| match fabric.downcast() {
        Some(star) => each(|light| wrong_light(star, light)),
        None => each(|_| Vec::new()),
    },
    check,
    bytes_per_transfer: 64,
};

fn wrong_light(star: &PassiveStar, light: Light) -> Vec<Fault> {
    let wavelength = StarLight::from(light).wavelength;
    if u32::from(wavelength) < star.wavelengths {
        return Vec::new();
    }
    let wavelengths = up_to(star.wavelengths);
    let problem = format!("is on wavelength {wavelength}, but wavelengths are {wavelengths}");
    vec![(ViolationKind::WavelengthRange, problem)]
}

fn check(plan: &Plan, admitted: &Admitted, order: &AdmittedOrder, report: &mut Report) {
    let Some(star) = plan.fabric.downcast::<PassiveStar>() else {
        return report.unchecked(plan.fabric.family());
    };
    // First transfer on each wavelength.
    let mut first_on: FxHashMap<u16, usize> = FxHashMap::default();
    // Ranks that send (0) or receive (1) on a wavelength. `crowded` lists the ranks with too few
    // transmitters or receivers in the order of the plan.
    let mut tuned: FxHashSet<(u8, u32, u16)> = FxHashSet::default();
    let mut used: FxHashMap<(u8, u32), u64> = FxHashMap::default();
    for slot in order.slots(plan) {
        interrupt::check();
        first_on.clear();
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
            let first = *first_on.entry(wavelength).or_insert(transfer);
            if first != transfer && !is_one_light(plan, first, transfer) {
                collision(plan, [first, transfer], wavelength, report);
            }
            let (source, destination) = plan.schedule.ends(transfer);
            let ends = [
                (0, source, star.transmitters),
                (1, destination, star.receivers),
            ];
            for (end, rank, limit) in ends {
                if tuned.insert((end, rank, wavelength)) {
                    let count = used.entry((end, rank)).or_default();
                    *count += 1;
                    if *count == u64::from(limit) + 1 {
                        crowded.push((end, rank, limit, transfer));
                    }
                }
            }
        }
        for (end, rank, limit, transfer) in crowded {
            ports(
                plan,
                (end, rank),
                used[&(end, rank)],
                limit,
                transfer,
                report,
            );
        }
    }
}

/// Returns whether two transfers on one wavelength carry the same chunks from the same rank.
fn is_one_light(plan: &Plan, one: usize, other: usize) -> bool {
    let [one, other] = [one, other].map(|transfer| plan.schedule.transfer(transfer));
    let sent = |moved: opticoll_plan::schedule::Transfer| (moved.source, moved.chunk, moved.count);
    sent(one) == sent(other)
}

/// Reports that two lights use the same wavelength.
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

/// Reports a rank with too few transmitters (`end` is 0) or too few receivers (`end` is 1).
fn ports(
    plan: &Plan,
    (end, rank): (u8, u32),
    count: u64,
    limit: u32,
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
                counted(limit.into(), what)
            ),
        )
    });
}
