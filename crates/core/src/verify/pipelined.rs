//! Proves a pipelined plan from how its first chunks move.
//!
//! Every lightpath of the first chunks stands for K P copies: that for stripe k and piece p carries the chunk c + k P + p, p slots
//! later, on the channel k further on. It is enough to look at the first lightpaths, because:
//!
//! - **Form.** Numbers of a copy are in range if those of the first lightpath are, and those of its last copy.
//! - **Light.** No rule of rings asks for more where fewer lightpaths are up. If all circuits, of all first lightpaths on all
//!   stripes, can be up in one slot, then any of them can in each slot. This is more than the plan needs if it has fewer pieces than slots
//!   of its first chunks. Two first lightpaths on one circuit, on any of their stripes, are refused, for their pieces would meet on it.
//!   Where ranks can share passing light, circuits have to do without it: then no two lightpaths from one rank are on one channel, so that
//!   none is a branch of a light tree.
//! - **Data.** Chunks have nothing to do with one another. If K P divides the chunks of a block, and each first chunk is a
//!   multiple of K P, then every chunk is the copy of just one first chunk, in the same block, and has the same demand. Its
//!   transfers are those of its first chunk in the same order, each p steps later. So one plan of the first chunks only is replayed,
//!   in which a block has K P times fewer chunks.
//! - **Claims.** A rank sends K P chunks for each first one.

use super::form;
use super::order::AdmittedOrder;
use super::report::{Report, each, named};
use super::wdm_ring;
use super::{Violation, ViolationKind, claims, data};
use crate::collective::Collective;
use crate::fabric::{Fabric, Light};
use crate::family::wdm_ring::{CONVERTED, Direction, WdmLight, WdmRing};
use crate::interrupt;
use crate::memory;
use crate::plan::{Lightpath, PipelinedPlan, Plan};
use crate::schedule::{Schedule, Transfer};

/// What the verifier keeps of a circuit, in bytes.
const BYTES_PER_CIRCUIT: u64 = 48;

/// Everything that is wrong with a pipelined plan.
pub(super) fn verify(plan: &PipelinedPlan) -> Vec<Violation> {
    let mut report = Report::default();
    check(plan, &mut report);
    let mut violations = report.finish();
    for violation in &mut violations {
        violation.sentence += " (and likewise for all pieces and stripes)";
    }
    violations
}

fn check(plan: &PipelinedPlan, report: &mut Report) {
    let first = &plan.first;
    let Some(ring) = first.fabric.downcast::<WdmRing>() else {
        return refuse(
            "a pipelined plan needs a ring of wavelengths; unfold it",
            report,
        );
    };
    let collective = first.schedule.collective;
    let copies = u64::from(plan.stripes) * u64::from(plan.pieces);
    let Some(of_firsts) = reduced(collective, copies) else {
        return refuse(
            &format!(
                "a block of {} chunks is not made of {} stripes of {} pieces",
                collective.pieces(),
                plan.stripes,
                plan.pieces
            ),
            report,
        );
    };
    if first
        .step_slots
        .iter()
        .any(|slots| slots.end - slots.start != 1)
    {
        return refuse("each step of a pipelined plan is one slot", report);
    }
    let wrong_light = each(|light| wdm_ring::wrong_light(ring, light));
    let Some(admitted) = form::check(first, &wrong_light, report) else {
        return;
    };
    if ring.ranks != collective.ranks() || admitted.transfers != first.len() || !admitted.all() {
        return;
    }
    if !copies_exist(plan, copies, report) {
        return;
    }
    light(plan, ring, report);
    let firsts = of_first_chunks(first, of_firsts, copies as u32);
    data::check(&firsts, &admitted, 0..of_firsts.chunks(), report);
    claims::check(&firsts, &admitted, report);
}

fn refuse(sentence: &str, report: &mut Report) {
    let kind = ViolationKind::Symmetry;
    report.add(kind, || Violation::new(kind, sentence.into()));
}

/// The collective in which every block has its first chunks only.
fn reduced(collective: Collective, copies: u64) -> Option<Collective> {
    let pieces = u64::from(collective.pieces());
    if copies == 0 || pieces % copies != 0 || collective.demand().is_some() {
        return None;
    }
    collective.with_pieces((pieces / copies) as u32).ok()
}

/// Whether the copies of every first lightpath have chunks and slots; reports those whose copies have not.
fn copies_exist(plan: &PipelinedPlan, copies: u64, report: &mut Report) -> bool {
    let first = &plan.first;
    let slots = u64::from(first.step_slots.last().map_or(0, |slots| slots.end));
    let mut sound = true;
    for index in 0..first.len() {
        interrupt::check();
        let Transfer { chunk, count, .. } = first.schedule.transfer(index);
        let last = u64::from(first.slot[index]) + u64::from(plan.pieces);
        let (kind, problem) = if count != 1 || u64::from(chunk) % copies != 0 {
            let problem = "does not carry one first chunk";
            (ViolationKind::Symmetry, problem)
        } else if last > slots {
            let problem = "has copies in slots that the plan does not have";
            (ViolationKind::SlotRange, problem)
        } else {
            continue;
        };
        sound = false;
        fault(first, kind, index, problem, report);
    }
    sound
}

fn fault(first: &Plan, kind: ViolationKind, index: usize, problem: &str, report: &mut Report) {
    let slot = first.slot[index];
    let sentence = format!("slot {slot}: transfer {} {problem}", named(first, index));
    report.add(kind, || Violation {
        transfers: vec![index],
        slot: Some(slot),
        ..Violation::new(kind, sentence)
    });
}

/// Checks all circuits as lightpaths of one slot.
fn light(plan: &PipelinedPlan, ring: &WdmRing, report: &mut Report) {
    let first = &plan.first;
    let circuits = first.len() as u64 * u64::from(plan.stripes);
    memory::take("verifying this plan", circuits * BYTES_PER_CIRCUIT);
    let mut taken: Vec<((u32, u32), Direction, u64, usize)> = (0..first.len())
        .map(|index| {
            let light = WdmLight::from(first.light[index]);
            let ends = first.schedule.ends(index);
            (ends, light.direction, channel(ring, light), index)
        })
        .collect();
    taken.sort_unstable();
    for pair in taken.windows(2) {
        let [(ends, direction, channel, _), (others, other, above, index)] = [pair[0], pair[1]];
        if (ends, direction) == (others, other) && above - channel < u64::from(plan.stripes) {
            let problem = "is on the circuit of another first chunk";
            fault(first, ViolationKind::Symmetry, index, problem, report);
        }
    }
    let mut together = first.without_lightpaths();
    together.fabric = Fabric::new(WdmRing {
        multicast: false,
        ..ring.clone()
    });
    together.step_slots = std::iter::once(0..1).collect();
    together.schedule.begin_step();
    for index in 0..first.len() {
        let light = WdmLight::from(first.light[index]);
        let channel = channel(ring, light);
        let above = channel + u64::from(plan.stripes);
        if light.wavelength == CONVERTED
            || above > u64::from(ring.wavelengths) * u64::from(ring.fibres)
        {
            let problem = "has no channel for each of its stripes";
            fault(
                first,
                ViolationKind::WavelengthRange,
                index,
                problem,
                report,
            );
            continue;
        }
        for channel in channel..above {
            interrupt::check();
            let light = WdmLight {
                fibre: (channel / u64::from(ring.wavelengths)) as u8,
                wavelength: (channel % u64::from(ring.wavelengths)) as u16,
                ..light
            };
            together.push(Lightpath {
                slot: 0,
                light: Light::from(light),
                transfer: first.schedule.transfer(index),
            });
        }
    }
    let wrong_light = each(|light| wdm_ring::wrong_light(ring, light));
    if let Some(admitted) = form::check(&together, &wrong_light, report) {
        let order = AdmittedOrder::by_slot(&together, &admitted);
        (wdm_ring::RULES.check)(&together, &admitted, &order, report);
    }
}

/// The number of a channel, fibre by fibre.
fn channel(ring: &WdmRing, light: WdmLight) -> u64 {
    u64::from(light.fibre) * u64::from(ring.wavelengths) + u64::from(light.wavelength)
}

/// The first chunks alone, numbered one after the other.
fn of_first_chunks(first: &Plan, collective: Collective, copies: u32) -> Plan {
    let mut firsts = first.without_lightpaths();
    firsts.schedule = Schedule::new(collective);
    firsts.schedule.claims = first.schedule.claims.clone();
    // A claim that is no multiple is of no plan of this form.
    let claimed = &mut firsts.schedule.claims.chunks_sent_per_rank;
    *claimed = claimed.map(|chunks| match chunks % u64::from(copies) {
        0 => chunks / u64::from(copies),
        _ => u64::MAX,
    });
    for step in 0..first.schedule.steps() {
        firsts.schedule.begin_step();
        for index in first.schedule.step(step) {
            interrupt::check();
            let lightpath = first.lightpath(index);
            let transfer = Transfer {
                chunk: lightpath.transfer.chunk / copies,
                ..lightpath.transfer
            };
            firsts.push(Lightpath {
                transfer,
                ..lightpath
            });
        }
    }
    firsts
}
