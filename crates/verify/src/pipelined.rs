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
//!
//! This proof may fail for plans that hold, and names each violation once for all copies. So a plan of at most [`MOST_WRITTEN_OUT`]
//! lightpaths for which it fails is written out, and then judged as any other plan: its form changes nothing of what is said of it.

use super::form;
use super::order::AdmittedOrder;
use super::report::{Report, each, named, renumbered, up_to};
use super::wdm_ring;
use super::{Violation, ViolationKind, claims, data, full};
use opticoll_base::interrupt;
use opticoll_base::memory;
use opticoll_fabric::fabric::{Fabric, Light};
use opticoll_fabric::family::wdm_ring::{CONVERTED, Direction, WdmLight, WdmRing};
use opticoll_plan::collective::Collective;
use opticoll_plan::plan::{Lightpath, Plan};
use opticoll_plan::schedule::{Schedule, Transfer};

/// What the verifier keeps of a circuit, in bytes.
const BYTES_PER_CIRCUIT: u64 = 48;

/// The most lightpaths of a plan that is written out where it is not proved.
const MOST_WRITTEN_OUT: u64 = 1 << 16;

/// Everything that is wrong with a pipelined plan.
pub(super) fn verify(plan: &Plan) -> Vec<Violation> {
    let mut violations = Vec::new();
    check(plan, &mut violations);
    let is_pipelined = violations
        .iter()
        .all(|violation| violation.kind != ViolationKind::Symmetry);
    if !violations.is_empty()
        && is_pipelined
        && let Some(whole) = written_out(plan)
    {
        return full(&whole);
    }
    violations
}

/// All lightpaths of a small plan: slot by slot, in a slot by first lightpath and then by stripe. `None` where they are too many, or
/// where one of them has no slot.
fn written_out(plan: &Plan) -> Option<Plan> {
    let first = plan;
    let ring = first.fabric.downcast::<WdmRing>()?;
    let (count, slots) = (first.len(), u64::from(first.slots()));
    let copies = u64::from(plan.repetition.stripes) * u64::from(plan.repetition.pieces);
    let have_columns = first.slot.len() == count && first.light.len() == count;
    let have_steps = first.schedule.steps() as u64 == slots;
    let is_last = |slot: &u32| u64::from(*slot) + u64::from(plan.repetition.pieces) <= slots;
    let have_slots = first.slot.is_sorted() && first.slot.iter().all(is_last);
    let is_small = (count as u64).saturating_mul(copies) <= MOST_WRITTEN_OUT;
    if !(have_columns && have_steps && have_slots && is_small) {
        return None;
    }
    let mut whole = first.without_lightpaths();
    for slot in 0..first.slots() {
        whole.schedule.begin_step();
        let begun = first.slot.partition_point(|&own| own <= slot);
        for index in 0..begun {
            interrupt::check();
            let piece = slot - first.slot[index];
            if piece >= plan.repetition.pieces {
                continue;
            }
            let lightpath = first.lightpath(index);
            for stripe in 0..plan.repetition.stripes {
                let behind = stripe
                    .checked_mul(plan.repetition.pieces)?
                    .checked_add(piece)?;
                let transfer = Transfer {
                    chunk: lightpath.transfer.chunk.checked_add(behind)?,
                    ..lightpath.transfer
                };
                let light = beside(ring, WdmLight::from(lightpath.light), stripe);
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

/// The light so many channels further on; beyond the last channel on wavelengths that do not exist. Light on no channel stays.
fn beside(ring: &WdmRing, light: WdmLight, stripe: u32) -> WdmLight {
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
        return violations.push(refused(
            "a pipelined plan needs a ring of wavelengths; unfold it".into(),
        ));
    };
    let collective = first.schedule.collective;
    let copies = u64::from(plan.repetition.stripes) * u64::from(plan.repetition.pieces);
    let Some(of_firsts) = reduced(collective, copies) else {
        return violations.push(refused(wrong_block(plan)));
    };
    if first
        .step_slots
        .iter()
        .any(|slots| slots.end - slots.start != 1)
    {
        return violations.push(refused("each step of a pipelined plan is one slot".into()));
    }
    let wrong_light = each(|light| wdm_ring::wrong_light(ring, light));
    let admitted = form::check(first, &wrong_light, &mut report).filter(|admitted| {
        let is_whole = ring.ranks == collective.ranks() && admitted.transfers == first.len();
        is_whole && admitted.all() && copies_exist(plan, copies, &mut report)
    });
    violations.extend(of_first_pieces(plan, 1, report));
    let Some(admitted) = admitted else {
        return;
    };
    light(plan, ring, violations);
    let mut report = Report::default();
    let firsts = of_first_chunks(first, of_firsts, copies as u32);
    data::check(&firsts, &admitted, 0..of_firsts.chunks(), &mut report);
    claims::check(&firsts, &admitted, copies, &mut report);
    violations.extend(of_first_pieces(plan, copies, report));
}

/// What is wrong with first lightpaths, whose chunks have numbers so many times smaller, said of their first copies: those of the first
/// piece on the first stripe.
fn of_first_pieces(
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
        );
        let likewise = match violation.transfers.is_empty() && violation.chunk.is_none() {
            true => "",
            false => " (and likewise for all pieces on all wavelengths)",
        };
        Violation {
            transfers: numbers.of(violation.transfers.iter().map(|&first| (first, 0, 0))),
            chunk: violation
                .chunk
                .map(|own| u32::try_from(chunk(own)).unwrap_or(u32::MAX)),
            sentence: sentence + likewise,
            ..violation
        }
    })
}

/// The numbers of transfers in the plan written out: slot by slot, in each by first lightpath and then by stripe.
struct Numbers<'a> {
    plan: &'a Plan,
    /// The sums of the slots of the first lightpaths, none of them, one and so on; where these are out of order nothing is numbered.
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
        let begun = own.partition_point(|&other| u64::from(other) < slot);
        let under_way = (begun - ended) as u64 * slot - (sums[begun] - sums[ended]);
        let before = ended as u64 * pieces + under_way;
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

    /// Those of copies, each a first lightpath with its stripe and piece.
    fn of(&self, copies: impl Iterator<Item = (usize, u32, u32)>) -> Vec<usize> {
        copies
            .map(|(first, stripe, piece)| {
                self.number(first, stripe, piece).unwrap_or(first as u64) as usize
            })
            .collect()
    }
}

fn refused(sentence: String) -> Violation {
    Violation::new(ViolationKind::Symmetry, sentence)
}

/// Why the chunks of a block are not those of first chunks with all their copies.
fn wrong_block(plan: &Plan) -> String {
    let collective = plan.schedule.collective;
    let copies = u64::from(plan.repetition.stripes) * u64::from(plan.repetition.pieces);
    let pieces = collective.pieces();
    if collective.demand().is_some() {
        return "blocks of a demand are of different sizes: a pipelined plan needs blocks of as many chunks each; unfold it"
            .into();
    }
    if copies == 0 {
        return "a pipelined plan needs a piece on a wavelength at the least".into();
    }
    let multiple = u64::from(pieces).next_multiple_of(copies);
    format!(
        "each transfer of the plan stands for {copies} chunks, a piece in each of {} slots on each of {} wavelengths, but a block has \
         {pieces} chunks, which is no multiple of {copies}; `pieces={multiple}` of the collective would be one",
        plan.repetition.pieces, plan.repetition.stripes
    )
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
fn copies_exist(plan: &Plan, copies: u64, report: &mut Report) -> bool {
    let first = plan;
    let slots = u64::from(first.step_slots.last().map_or(0, |slots| slots.end));
    let mut sound = true;
    for index in 0..first.len() {
        interrupt::check();
        let Transfer { chunk, count, .. } = first.schedule.transfer(index);
        let last = u64::from(first.slot[index]) + u64::from(plan.repetition.pieces);
        let (kind, problem) = if count != 1 || u64::from(chunk) % copies != 0 {
            let problem = format!(
                "carries {count} chunks from number {chunk} on: the transfer of a first chunk carries one, whose number is a multiple of \
                 {copies} ({} pieces on each of {} wavelengths)",
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
        sound = false;
        fault(first, kind, index, &problem, report);
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
fn light(plan: &Plan, ring: &WdmRing, violations: &mut Vec<Violation>) {
    let mut report = Report::default();
    let first = plan;
    let circuits = first.len() as u64 * u64::from(plan.repetition.stripes);
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
        if (ends, direction) == (others, other)
            && above - channel < u64::from(plan.repetition.stripes)
        {
            let problem = format!("is on the circuit of transfer {}", named(first, pair[0].3));
            fault(first, ViolationKind::Symmetry, index, &problem, &mut report);
        }
    }
    let mut together = first.without_lightpaths();
    together.fabric = Fabric::new(WdmRing {
        multicast: false,
        ..ring.clone()
    });
    together.step_slots = std::iter::once(0..1).collect();
    together.schedule.begin_step();
    // The first lightpath of each circuit, with its stripe.
    let mut circuits: Vec<(usize, u32)> = Vec::new();
    for index in 0..first.len() {
        let light = WdmLight::from(first.light[index]);
        let channel = channel(ring, light);
        let above = channel + u64::from(plan.repetition.stripes);
        if light.wavelength == CONVERTED
            || above > u64::from(ring.wavelengths) * u64::from(ring.fibres)
        {
            let problem = format!(
                "is not on the first of {} wavelengths that follow one another",
                plan.repetition.stripes
            );
            let kind = ViolationKind::WavelengthRange;
            fault(first, kind, index, &problem, &mut report);
            continue;
        }
        for (stripe, channel) in (0..).zip(channel..above) {
            interrupt::check();
            circuits.push((index, stripe));
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
    violations.extend(of_first_pieces(plan, 1, report));
    let mut report = Report::default();
    let wrong_light = each(|light| wdm_ring::wrong_light(ring, light));
    if let Some(admitted) = form::check(&together, &wrong_light, &mut report) {
        let order = AdmittedOrder::by_slot(&together, &admitted);
        (wdm_ring::RULES.check)(&together, &admitted, &order, &mut report);
    }
    let (found, numbers) = (report.finish().into_iter(), Numbers::new(plan));
    violations.extend(found.map(|violation| of_circuits(&numbers, &circuits, violation)));
}

/// What is wrong with circuits, said of the first pieces that are under way on all of them.
fn of_circuits(
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
    let meets = latest - earliest < plan.repetition.pieces;
    // Circuits that are never up together are at fault from their first pieces on.
    let copy = |transfer: usize| {
        let (first, stripe) = circuits[transfer];
        let piece = if meets { latest - plan.slot[first] } else { 0 };
        (first, stripe, piece)
    };
    let name = |transfer: usize| {
        let (first, stripe, piece) = copy(transfer);
        numbers.name(first, stripe, piece)
    };
    let sentence = renumbered(&violation.sentence, name, u64::from);
    let sentence = sentence
        .split_once(": ")
        .map_or("", |(_, sentence)| sentence);
    let sentence = match meets {
        true => format!("slot {latest}: {sentence} (and likewise for other pieces)"),
        false => format!(
            "from slot {earliest} to {latest}: {sentence}, and all circuits of a pipelined plan stay up; write the transfers without \
             `slot+`"
        ),
    };
    let transfers = numbers.of(violation.transfers.iter().map(|&transfer| copy(transfer)));
    Violation {
        transfers,
        slot: meets.then_some(latest),
        sentence,
        ..violation
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
