//! Proof of a pipelined plan by its first lightpaths: those of the first piece on the first stripe.
//!
//! K is the number of stripes, and P the number of pieces. Every first lightpath stands for K P
//! copies. The copy for stripe k and piece p carries chunk c + k P + p, p slots later, on a channel
//! whose index is k higher. It is enough to examine the first lightpaths, for four reasons:
//!
//! - **Form.** The numbers of all copies are in range if the numbers of the first lightpath and of
//!   its last copy are in range.
//! - **Light.** A set of lightpaths that fulfils the rules of rings also fulfils them without some
//!   of its lightpaths. If the circuits of all first lightpaths on all stripes can be up in one
//!   slot, any of them can be up in each slot. This condition is too strong if a plan has fewer
//!   pieces than its first lightpaths have slots. The verifier rejects two first lightpaths on one
//!   circuit, on any of their stripes, because their pieces would meet there. If ranks can share
//!   passing light, no two lightpaths from one rank may share a channel, so that no lightpath is a
//!   branch of a light tree.
//! - **Data.** Chunks are independent. Suppose that K P divides the number of chunks of a block,
//!   and that each first chunk is a multiple of K P. Then every chunk is the copy of exactly one
//!   first chunk, in the same block, with the same demand. Its transfers are the transfers of the
//!   first chunk, in the same order, p steps later. It is therefore enough to replay the plan of
//!   the first chunks, whose blocks have K P times fewer chunks.
//! - **Claims.** A rank sends K P chunks for each first chunk that it sends.
//!
//! This proof may fail for valid plans, and it reports each violation once for all copies. If it
//! fails for a plan of at most [`MAX_EXPANDED`] lightpaths, the plan is expanded and verified like
//! any other plan. The form of such a plan thus does not change the result.

use super::form;
use super::in_network;
use super::order::AdmittedOrder;
use super::report::{Report, each, named, renumbered, transfer_violation, up_to};
use super::wdm_ring;
use super::{Violation, ViolationKind, claims, data, full};
use opticoll_base::interrupt;
use opticoll_base::memory;
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::wdm_ring::{CONVERTED, Direction, WdmLight, WdmRing};
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::{Lightpath, Plan};
use opticoll_plan::schedule::{Schedule, Transfer};

/// Memory of the verifier for each circuit, in bytes.
const BYTES_PER_CIRCUIT: u64 = 48;

/// Maximum number of lightpaths of a plan that is expanded.
const MAX_EXPANDED: u64 = 1 << 16;

pub(super) fn verify(plan: &Plan) -> Vec<Violation> {
    let mut violations = Vec::new();
    check(plan, &mut violations);
    let is_pipelined = violations
        .iter()
        .all(|violation| violation.kind != ViolationKind::Symmetry);
    if !violations.is_empty()
        && is_pipelined
        && let Some(whole) = expanded(plan)
    {
        return full(&whole);
    }
    violations
}

/// Returns the expanded plan of a small plan, sorted by slot, first lightpath and stripe. `None` if
/// there are too many lightpaths, or if a lightpath has no slot.
fn expanded(plan: &Plan) -> Option<Plan> {
    let first = plan;
    let ring = first.fabric.downcast::<WdmRing>()?;
    let (count, slots) = (first.len(), u64::from(first.slots()));
    let copies = u64::from(plan.repetition.stripes) * u64::from(plan.repetition.pieces);
    let have_columns = first.slot.len() == count && first.light.len() == count;
    let have_steps = first.schedule.steps() as u64 == slots;
    let is_last = |slot: &u32| u64::from(*slot) + u64::from(plan.repetition.pieces) <= slots;
    let have_slots = first.slot.is_sorted() && first.slot.iter().all(is_last);
    let is_small = (count as u64).saturating_mul(copies) <= MAX_EXPANDED;
    if !(have_columns && have_steps && have_slots && is_small) {
        return None;
    }
    let mut whole = first.without_lightpaths();
    for slot in 0..first.slots() {
        whole.schedule.begin_step();
        let started = first.slot.partition_point(|&own| own <= slot);
        for index in 0..started {
            interrupt::check();
            let piece = slot - first.slot[index];
            if piece >= plan.repetition.pieces {
                continue;
            }
            let lightpath = first.lightpath(index);
            for stripe in 0..plan.repetition.stripes {
                let chunk_offset = stripe
                    .checked_mul(plan.repetition.pieces)?
                    .checked_add(piece)?;
                let transfer = Transfer {
                    chunk: lightpath.transfer.chunk.checked_add(chunk_offset)?,
                    ..lightpath.transfer
                };
                let light = on_stripe(ring, WdmLight::from(lightpath.light), stripe);
                whole.push(Lightpath {
                    slot,
                    light: Light::from(light),
                    transfer,
                });
            }
        }
    }
    Some(whole)
}

/// Returns `light` with a channel number that is `stripe` higher. Above the last channel, the
/// wavelength of the result does not exist. If the channel of `light` does not exist, returns
/// `light` unchanged.
fn on_stripe(ring: &WdmRing, light: WdmLight, stripe: u32) -> WdmLight {
    let exists = u32::from(light.fibre) < ring.fibres
        && u32::from(light.wavelength) < ring.wavelengths
        && light.wavelength != CONVERTED;
    if !exists {
        return light;
    }
    let channel = channel(ring, light) + u64::from(stripe);
    let wavelengths = u64::from(ring.wavelengths);
    let fibre = (channel / wavelengths).min(u64::from(ring.fibres) - 1);
    let wavelength = (channel - fibre * wavelengths).min(u64::from(CONVERTED) - 1);
    WdmLight {
        fibre: fibre as u8,
        wavelength: wavelength as u16,
        ..light
    }
}

fn check(plan: &Plan, violations: &mut Vec<Violation>) {
    let mut report = Report::default();
    let first = plan;
    let Some(ring) = first.fabric.downcast::<WdmRing>() else {
        return violations.push(unpipelined(
            "a pipelined plan needs a wdm_ring; expand the plan".into(),
        ));
    };
    let collective = first.schedule.collective;
    let copies = u64::from(plan.repetition.stripes) * u64::from(plan.repetition.pieces);
    let Some(first_collective) = with_first_chunks(collective, copies) else {
        return violations.push(unpipelined(wrong_block(plan)));
    };
    if first
        .step_slots
        .iter()
        .any(|slots| slots.end - slots.start != 1)
    {
        return violations.push(unpipelined(
            "each step of a pipelined plan is one slot".into(),
        ));
    }
    let wrong_light = each(|light| wdm_ring::wrong_light(ring, light));
    let admitted = form::check(first, &wrong_light, &mut report).filter(|admitted| {
        let is_whole = ring.ranks == collective.ranks() && admitted.transfers == first.len();
        in_network::check(first, admitted, &mut report);
        is_whole && admitted.is_complete() && check_copies(plan, copies, &mut report)
    });
    violations.extend(for_first_copies(plan, 1, report));
    let Some(admitted) = admitted else {
        return;
    };
    light(plan, ring, violations);
    let mut report = Report::default();
    let firsts = first_chunks(first, first_collective, copies as u32);
    data::check(
        &firsts,
        &admitted,
        0..first_collective.chunks(),
        &mut report,
    );
    claims::check(&firsts, &admitted, copies, &mut report);
    violations.extend(for_first_copies(plan, copies, report));
}

/// Converts violations of the plan of the first chunks to violations of the whole plan. The
/// transfers become the copies with the first piece on the first stripe. Chunk numbers in `report`
/// are divided by `copies`.
fn for_first_copies(
    plan: &Plan,
    copies: u64,
    report: Report,
) -> impl Iterator<Item = Violation> + use<'_> {
    let numbers = Numbers::new(plan);
    report.finish().into_iter().map(move |violation| {
        let chunk = |chunk: u32| u64::from(chunk) * copies;
        let sentence = renumbered(
            &violation.sentence,
            |first| numbers.name(first, 0, 0),
            chunk,
            |rank| rank,
        );
        let likewise = match violation.transfers.is_empty() && violation.chunk.is_none() {
            true => "",
            false => " (and likewise for all pieces on all wavelengths)",
        };
        Violation {
            transfers: numbers.list(violation.transfers.iter().map(|&first| (first, 0, 0))),
            chunk: violation
                .chunk
                .map(|own| u32::try_from(chunk(own)).unwrap_or(u32::MAX)),
            sentence: sentence + likewise,
            ..violation
        }
    })
}

/// Numbering of the transfers of the expanded plan, by slot, first lightpath and stripe.
struct Numbers<'a> {
    plan: &'a Plan,
    /// Sum of the slots of the first lightpaths 0..i, indexed by i. `None` if the slots of the
    /// first lightpaths are not in order; no transfer then has a number.
    sums: Option<Vec<u64>>,
}

impl Numbers<'_> {
    fn new(plan: &Plan) -> Numbers<'_> {
        let slots = &plan.slot;
        let is_in_order = slots.is_sorted() && slots.len() == plan.len();
        let sum = |sum: &mut u64, slot: u64| {
            *sum += slot;
            Some(*sum)
        };
        let slots = std::iter::once(0).chain(slots.iter().map(|&slot| slot.into()));
        let sums = is_in_order.then(|| slots.scan(0, sum).collect());
        Numbers { plan, sums }
    }

    fn number(&self, first: usize, stripe: u32, piece: u32) -> Option<u64> {
        let (own, sums) = (&self.plan.slot, self.sums.as_ref()?);
        let slot = u64::from(*own.get(first)?) + u64::from(piece);
        let pieces = u64::from(self.plan.repetition.pieces);
        let ended = own.partition_point(|&other| u64::from(other) + pieces <= slot);
        let started = own.partition_point(|&other| u64::from(other) < slot);
        let in_flight = (started - ended) as u64 * slot - (sums[started] - sums[ended]);
        let before = ended as u64 * pieces + in_flight;
        Some(
            (before + (first - ended) as u64) * u64::from(self.plan.repetition.stripes)
                + u64::from(stripe),
        )
    }

    fn name(&self, first: usize, stripe: u32, piece: u32) -> String {
        match self.number(first, stripe, piece) {
            Some(number) => number.to_string(),
            None => format!("{first} of the first chunks"),
        }
    }

    /// Returns the numbers of `copies`, each given as (first lightpath, stripe, piece).
    fn list(&self, copies: impl Iterator<Item = (usize, u32, u32)>) -> Vec<usize> {
        copies
            .map(|(first, stripe, piece)| {
                self.number(first, stripe, piece).unwrap_or(first as u64) as usize
            })
            .collect()
    }
}

fn unpipelined(sentence: String) -> Violation {
    Violation::new(ViolationKind::Symmetry, sentence)
}

/// Returns the reason why the chunks of a block do not consist of first chunks and their copies.
fn wrong_block(plan: &Plan) -> String {
    let collective = plan.schedule.collective;
    let copies = u64::from(plan.repetition.stripes) * u64::from(plan.repetition.pieces);
    let pieces = collective.pieces();
    if collective.demand().is_some() {
        return "the blocks of a demand differ in size, but a pipelined plan needs blocks with \
                equal numbers of chunks; expand the plan"
            .into();
    }
    if copies == 0 {
        return "a pipelined plan needs at least one piece and one stripe".into();
    }
    let multiple = u64::from(pieces).next_multiple_of(copies);
    format!(
        "each transfer of the plan stands for {copies} chunks, a piece in each of {} slots on each \
         of {} wavelengths, but a block has {pieces} chunks, which is not a multiple of {copies}; \
         give the collective `pieces={multiple}`",
        plan.repetition.pieces, plan.repetition.stripes
    )
}

/// Returns `collective` with only the first chunks of each block. `None` if the blocks do not
/// consist of `copies` copies of their first chunks.
fn with_first_chunks(collective: Collective, copies: u64) -> Option<Collective> {
    let pieces = u64::from(collective.pieces());
    if copies == 0 || pieces % copies != 0 || collective.demand().is_some() {
        return None;
    }
    collective.with_pieces((pieces / copies) as u32).ok()
}

/// Returns whether the chunks and slots of all copies of the first lightpaths exist, and reports
/// the first lightpaths for which they do not.
fn check_copies(plan: &Plan, copies: u64, report: &mut Report) -> bool {
    let first = plan;
    let slots = u64::from(first.step_slots.last().map_or(0, |slots| slots.end));
    let mut are_valid = true;
    for index in 0..first.len() {
        interrupt::check();
        let Transfer { chunk, count, .. } = first.schedule.transfer(index);
        let last = u64::from(first.slot[index]) + u64::from(plan.repetition.pieces);
        let (kind, problem) = if count != 1 || u64::from(chunk) % copies != 0 {
            let problem = format!(
                "carries {count} chunks from number {chunk} on: the transfer of a first chunk \
                 carries one, whose number is a multiple of {copies} ({} pieces on each of {} \
                 wavelengths)",
                plan.repetition.pieces, plan.repetition.stripes
            );
            (ViolationKind::Symmetry, problem)
        } else if last > slots {
            let last = last - 1;
            let slots = up_to(slots as u32);
            let problem = format!("has its last piece in slot {last}, but slots are {slots}");
            (ViolationKind::SlotRange, problem)
        } else {
            continue;
        };
        are_valid = false;
        fault(first, kind, index, &problem, report);
    }
    are_valid
}

fn fault(first: &Plan, kind: ViolationKind, index: usize, problem: &str, report: &mut Report) {
    let slot = first.slot[index];
    report.add(kind, || {
        transfer_violation(first, kind, slot, index, problem)
    });
}

/// Checks the circuits of all first lightpaths on all stripes as lightpaths of one slot.
fn light(plan: &Plan, ring: &WdmRing, violations: &mut Vec<Violation>) {
    let mut report = Report::default();
    let first = plan;
    let circuits = first.len() as u64 * u64::from(plan.repetition.stripes);
    memory::check_forecast("verifying this plan", circuits * BYTES_PER_CIRCUIT);
    let mut circuits_used: Vec<((u32, u32), Direction, u64, usize)> = (0..first.len())
        .map(|index| {
            let light = WdmLight::from(first.light[index]);
            let ends = first.schedule.ends(index);
            (ends, light.direction, channel(ring, light), index)
        })
        .collect();
    circuits_used.sort_unstable();
    for pair in circuits_used.windows(2) {
        let [
            (ends, direction, channel, _),
            (others, other, next_channel, index),
        ] = [pair[0], pair[1]];
        if (ends, direction) == (others, other)
            && next_channel - channel < u64::from(plan.repetition.stripes)
        {
            let problem = format!(
                "uses the same circuit as transfer {}",
                named(first, pair[0].3)
            );
            fault(first, ViolationKind::Symmetry, index, &problem, &mut report);
        }
    }
    let mut one_slot = first.without_lightpaths();
    one_slot.fabric = Fabric::new(WdmRing {
        multicast: false,
        ..ring.clone()
    });
    one_slot.step_slots = std::iter::once(0..1).collect();
    one_slot.schedule.begin_step();
    // First lightpath and stripe of each circuit.
    let mut circuits: Vec<(usize, u32)> = Vec::new();
    for index in 0..first.len() {
        let light = WdmLight::from(first.light[index]);
        let channel = channel(ring, light);
        let channel_end = channel + u64::from(plan.repetition.stripes);
        if light.wavelength == CONVERTED
            || channel_end > u64::from(ring.wavelengths) * u64::from(ring.fibres)
        {
            let problem = format!(
                "is not on the first of {} consecutive wavelengths",
                plan.repetition.stripes
            );
            let kind = ViolationKind::WavelengthRange;
            fault(first, kind, index, &problem, &mut report);
            continue;
        }
        for (stripe, channel) in (0..).zip(channel..channel_end) {
            interrupt::check();
            circuits.push((index, stripe));
            let light = WdmLight {
                fibre: (channel / u64::from(ring.wavelengths)) as u8,
                wavelength: (channel % u64::from(ring.wavelengths)) as u16,
                ..light
            };
            one_slot.push(Lightpath {
                slot: 0,
                light: Light::from(light),
                transfer: first.schedule.transfer(index),
            });
        }
    }
    violations.extend(for_first_copies(plan, 1, report));
    let mut report = Report::default();
    let wrong_light = each(|light| wdm_ring::wrong_light(ring, light));
    if let Some(admitted) = form::check(&one_slot, &wrong_light, &mut report) {
        let order = AdmittedOrder::new(&one_slot, &admitted);
        (wdm_ring::RULES.check)(&one_slot, &admitted, &order, &mut report);
    }
    let (listed, numbers) = (report.finish().into_iter(), Numbers::new(plan));
    violations.extend(listed.map(|violation| for_circuits(&numbers, &circuits, violation)));
}

/// Converts a violation of circuits to a violation of the pieces that first use all of these
/// circuits at the same time. `circuits` has the first lightpath and the stripe of each circuit.
fn for_circuits(
    numbers: &Numbers<'_>,
    circuits: &[(usize, u32)],
    violation: Violation,
) -> Violation {
    let plan = numbers.plan;
    let slot_of = |&transfer: &usize| plan.slot[circuits[transfer].0];
    let slots = violation.transfers.iter().map(slot_of);
    let (Some(earliest), Some(latest)) = (slots.clone().min(), slots.max()) else {
        return violation;
    };
    let overlap = latest - earliest < plan.repetition.pieces;
    // If the circuits are never up at the same time, the violation names their first pieces.
    let copy = |transfer: usize| {
        let (first, stripe) = circuits[transfer];
        let piece = if overlap {
            latest - plan.slot[first]
        } else {
            0
        };
        (first, stripe, piece)
    };
    let name = |transfer: usize| {
        let (first, stripe, piece) = copy(transfer);
        numbers.name(first, stripe, piece)
    };
    let sentence = renumbered(&violation.sentence, name, u64::from, |rank| rank);
    let sentence = sentence
        .split_once(": ")
        .map_or("", |(_, sentence)| sentence);
    let sentence = match overlap {
        true => format!("slot {latest}: {sentence} (and likewise for other pieces)"),
        false => format!(
            "from slot {earliest} to {latest}: {sentence}, and all circuits of a pipelined plan \
             stay up; write the transfers without `slot+`"
        ),
    };
    let transfers = numbers.list(violation.transfers.iter().map(|&transfer| copy(transfer)));
    Violation {
        transfers,
        slot: overlap.then_some(latest),
        sentence,
        ..violation
    }
}

/// Returns the index of the channel of `light`. Channels are counted fibre by fibre.
fn channel(ring: &WdmRing, light: WdmLight) -> u64 {
    u64::from(light.fibre) * u64::from(ring.wavelengths) + u64::from(light.wavelength)
}

/// Returns the plan of the first chunks alone. Chunk numbers are divided by `copies`.
fn first_chunks(first: &Plan, collective: Collective, copies: u32) -> Plan {
    let mut firsts = first.without_lightpaths();
    firsts.schedule = Schedule::new(collective);
    firsts.schedule.claims = first.schedule.claims.clone();
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
